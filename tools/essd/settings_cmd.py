# SPDX-License-Identifier: BSD-2-Clause
"""`essd config`: read and write the configuration of a drive, running or not.

A running drive is asked and told by its management channel, so that its own checks have the
last word; of one that is not powered the flash file is read and written.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import flash, mgmt, settings, settings_yaml, setup, show
from .errors import EssdError
from .instance import Instance
from .settings import Refused, Values

SAVE_S = 20.0       # erasing flash takes its time


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


def ask_running(instance: Instance) -> Running:
    """What a running drive says of its configuration."""
    keys = mgmt.ask(instance, "config")["keys"]
    saved = {entry["key"]: entry["saved"] for entry in keys if entry["key"] in settings.KEYS}
    in_force = {entry["key"]: entry["in-force"] for entry in keys
                if entry["key"] in settings.KEYS}
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
        return ask_running(instance).saved
    return settings.from_config(stopped(instance.name)[1])


def waiting(instance: Instance) -> Values:
    """What is in force yet and will not be from the next start."""
    if not is_running(instance):
        return {}
    said = ask_running(instance)
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
    now = ask_running(instance).saved
    changes = settings.changed(now, values)
    if not changes:
        return []
    mgmt.ask(instance, "config-discard")
    for key, value in changes.items():
        mgmt.ask(instance, "config-set", key=key, value=value)
    return list(mgmt.ask(instance, "config-save", SAVE_S)["later"])


def report(later: Sequence[str]) -> None:
    show.line("saved")
    if later:
        show.line(f"from the drive's next start: {', '.join(later)}")
        show.line("      ./essd power-cycle starts it anew")
