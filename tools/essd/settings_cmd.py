# SPDX-License-Identifier: BSD-2-Clause
"""`essd config`: read and write the configuration of a drive, running or not.

A running drive is asked and told on its console, so that its own checks have the
last word; of one that is not powered the flash file is read and written.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import console, flash, settings, settings_yaml, setup, show
from .errors import EssdError
from .instance import Instance
from .settings import Refused, Values

LINE = re.compile(r"(\S+) (\S+)(?: \(saved: (\S+)\))?(?: \(in force: (\S+)\))?")
LATER = ": from the next start"


class Mistakes(EssdError):
    """What is wrong with a configuration, one line each."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = list(lines)


# What is asked for

def read_file(path: Path) -> tuple[Values, list[str]]:
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
    except OSError as error:
        raise EssdError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise EssdError(f"{path}: no YAML: it is no text in UTF-8") from None
    return settings_yaml.load(text, "stdin" if str(path) == "-" else str(path))


def read_words(words: Sequence[str]) -> tuple[Values, list[str]]:
    """KEY=VALUE each."""
    values, mistakes = {}, []
    for word in words:
        key, equals, value = word.partition("=")
        try:
            if not equals or not value:
                raise Refused(f"--set {word}: write KEY=VALUE")
            values[key] = settings.parse(key, value)
        except Refused as refused:
            mistakes.append(str(refused))
    return values, mistakes


def wanted(base: Values, path: Path | None, words: Sequence[str] = ()) -> Values:
    """`base` with what a file and words change; all mistakes at once."""
    values, mistakes = read_file(path) if path else ({}, [])
    more, others = read_words(words)
    whole = base | values | more
    mistakes += others
    if not mistakes:
        where = f"{path}: " if path and not words else ""
        mistakes = [f"{where}{text}" for text in settings.check(whole)]
    if mistakes:
        raise Mistakes(mistakes)
    return whole


# Where it is

@dataclass(frozen=True)
class Running:
    """What a running drive says about each key."""

    saved: Values
    in_force: Values


def parse_console(lines: Sequence[str]) -> Running:
    saved, in_force = {}, {}
    for line in lines:
        match = LINE.fullmatch(line)
        if match and match[1] in settings.KEYS:
            saved[match[1]] = match[3] or match[2]
            in_force[match[1]] = match[4] or match[2]
    missing = settings.KEYS.keys() - saved.keys()
    if missing:
        raise EssdError(f"the drive does not say what {min(missing)} is: its firmware "
                        "is another version than this essd")
    return Running(saved, in_force)


def is_running(instance: Instance) -> bool:
    if not instance.is_running:
        return False
    drive = instance.status()["parts"].get("drive")
    if drive is None:
        raise EssdError("this instance has no drive")
    if drive["saved"]:
        raise EssdError("the drive is saved: its configuration can be seen and changed "
                        "when it goes on (./essd load)")
    return bool(drive["state"] == "running")


def read(instance: Instance) -> Values:
    """What is saved: what the next start of the drive has."""
    if is_running(instance):
        return parse_console(console.ask(instance, "config")).saved
    return settings.from_config(stopped(instance.name)[1])


def waiting(instance: Instance) -> Values:
    """What is in force yet and will not be from the next start."""
    if not is_running(instance):
        return {}
    said = parse_console(console.ask(instance, "config"))
    return settings.changed(said.saved, said.in_force)


def base(instance: Instance, is_check: bool) -> Values:
    """What changes start from; a file can be checked without any drive."""
    if is_check and not instance.is_running and \
            not setup.flash_path(instance.name).exists():
        return dict(settings.DEFAULTS)
    return read(instance)


def for_start(wish: setup.Wish, path: Path) -> flash.Config:
    """A file on top of what the drive has, or of what a new one would have."""
    before = setup.wanted(wish, setup.kept_config(wish.name))
    return settings.to_config(wanted(settings.from_config(before), path))


def stopped(name: str) -> tuple[flash.FlashImage, flash.Config]:
    path = setup.flash_path(name)
    if not path.exists():
        raise EssdError(f"there is no drive {name} yet: ./essd up makes one, with "
                        "--config FILE from the start")
    image = flash.FlashImage.load(path)
    return image, image.config or flash.Config()


def write(instance: Instance, values: Values) -> list[str]:
    """Save it.  The keys that wait for the next start of a running drive."""
    if not is_running(instance):
        image, _ = stopped(instance.name)
        image.config = settings.to_config(values)
        image.save(setup.flash_path(instance.name))
        return []
    now = parse_console(console.ask(instance, "config")).saved
    changes = settings.changed(now, values)
    if not changes:
        return []
    console.ask(instance, "config discard")
    for key, value in changes.items():
        console.ask(instance, f"config set {key} {value}")
    answer = console.ask(instance, "config save")
    if "ok" not in answer:
        raise EssdError(f"the drive did not save it: {' '.join(answer)}")
    return [line.removesuffix(LATER) for line in answer if line.endswith(LATER)]


def report(later: Sequence[str]) -> None:
    show.line("saved")
    if later:
        show.line(f"from the drive's next start: {', '.join(later)}")
        show.line("      ./essd power-cycle starts it anew")
