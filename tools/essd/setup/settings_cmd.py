# SPDX-License-Identifier: BSD-2-Clause
"""`essd config`: read and write the configuration of a drive, running or not.

For a running drive, the management channel is used, so that the firmware's own
checks decide.  For a drive that is not powered, the flash file is used.
"""

import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base import chosen, show, yaml_mistakes
from ..base.errors import EssdError, Mistakes
from ..drive import mgmt
from ..instance.instance import Instance
from ..settings import block as config_block, settings, yaml_values as settings_yaml
from ..settings.schema import schema
from ..settings.settings import Refused, Values
from ..storage import flash
from . import setup

COLUMNS = 100


# The user's changes

def read_file(path: Path) -> tuple[Values, list[str]]:
    if str(path) != "-":
        return settings_yaml.load(yaml_mistakes.read_file(path), str(path))
    try:
        text = sys.stdin.read()
    except UnicodeDecodeError:
        raise EssdError("-: not valid YAML: the file is not UTF-8 text") from None
    return settings_yaml.load(text, "stdin")


def read_words(words: Sequence[str]) -> tuple[Values, list[str]]:
    """Parse words of the form KEY=VALUE."""
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
    """`base` with the changes of a file and of words; reports all mistakes at once."""
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


# The drive's configuration

@dataclass(frozen=True)
class Running:
    """The values of a running drive: those in its flash, and those in force."""

    saved: Values
    in_force: Values


def ask_running(instance: Instance) -> Running:
    """Read the configuration of a running drive."""
    keys = mgmt.ask(instance, "config")["keys"]
    saved = {entry["key"]: entry["saved"] for entry in keys if entry["key"] in settings.KEYS}
    in_force = {entry["key"]: entry["in-force"] for entry in keys
                if entry["key"] in settings.KEYS}
    missing = settings.KEYS.keys() - saved.keys()
    if missing:
        raise EssdError(f"the drive does not report the key {min(missing)}: its firmware "
                        "is another version than this essd; stop the drive and start "
                        "it again")
    return Running(saved, in_force)


def is_running(instance: Instance) -> bool:
    if not instance.is_running:
        return False
    drive = instance.status()["parts"].get(instance.drive)
    if drive is None:
        raise EssdError("this instance has no drive")
    if drive["saved"]:
        raise EssdError("the drive's state is saved, so its configuration cannot be "
                        "read or changed: resume the drive first with "
                        f"{instance.drive_hint('load')}")
    return bool(drive["state"] == "running")


def read(instance: Instance) -> Values:
    """The saved configuration, which the drive uses from its next start."""
    if is_running(instance):
        return ask_running(instance).saved
    return settings.from_config(stopped(instance)[1])


def dump(values: Values) -> str:
    """The values as YAML, in which a comment marks the keys that wait for a start."""
    waits = {key for key, row in schema().key_rows() if not row.live}
    return settings_yaml.dump(values, frozenset(waits), "from the next start")


def describe() -> str:
    """Every key in a few lines of text: its values, its default, and when it is in force."""
    lines = ["N is a port, 0 or 1, or an address, 0 to 3.  A value is one word; none: there is "
             "no such item."]
    for setting in schema().settings.values():
        doc = re.sub(r"\[[^]]*\]\(([^)#]*)[^)]*\)", r"docs/\1", setting.doc).replace("`", "")
        lines += ["", f"{setting.key}: {setting.documented} (default {setting.default}; "
                      f"{setting.effective})",
                  *textwrap.wrap(doc, COLUMNS, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines) + "\n"


def waiting(instance: Instance) -> Values:
    """Values that stay in force until the next start, and differ from the saved."""
    if not is_running(instance):
        return {}
    said = ask_running(instance)
    return settings.changed(said.saved, said.in_force)


def base(instance: Instance, is_check: bool) -> Values:
    """The configuration that changes apply to.

    With `is_check`, the defaults are used if there is no drive, so that a file
    can be checked without one.
    """
    if is_check and not instance.is_running and \
            not setup.flash_path(instance.name, instance.drive).exists():
        return dict(settings.DEFAULTS)
    return read(instance)


def for_start(wish: setup.Wish, path: Path) -> config_block.Config:
    """The configuration of the drive, existing or new, with a file's changes."""
    before = setup.wanted(wish, setup.kept_config(wish.name, wish.part))
    return settings.to_config(wanted(settings.from_config(before), path))


def stopped(instance: Instance) -> tuple[flash.FlashImage, config_block.Config]:
    name = instance.name
    path = setup.flash_path(name, instance.drive)
    if not path.exists():
        raise EssdError(f"there is no drive {name} yet: create one with "
                        f"{chosen.hint(name, 'up')}, or with "
                        f"{chosen.hint(name, 'up', '--config', 'FILE')} to configure it at "
                        f"once{chosen.mean(name, chosen.kept())}")
    image = flash.FlashImage.load(path)
    return image, image.config or config_block.Config()


def write(instance: Instance, changes: Values) -> list[str]:
    """Save the changed values; return the keys that take effect at the next start only.

    Keys that the changes do not have keep the value that they have now, which another
    command may have written since this one has read them.
    """
    if is_running(instance):
        return list(instance.ask("configure", part=instance.drive, changes=changes)
                    if changes else [])
    with instance.writable("essd config"):
        image, before = stopped(instance)
        whole = settings.from_config(before) | changes
        mistakes = settings.check(whole)
        if mistakes:
            raise Mistakes(mistakes)
        image.config = settings.to_config(whole)
        image.save(setup.flash_path(instance.name, instance.drive))
    return []


def report(instance: Instance, later: Sequence[str], restarts: bool = False) -> None:
    """Say what was saved, and restart the firmware if it was asked for and needed."""
    show.note("saved")
    if not later:
        return
    if restarts:
        instance.ask("reset", part=instance.drive, halt=False)
        show.note(f"the firmware restarts, with the new {', '.join(later)}")
        return
    show.note(f"in force from the drive's next start: {', '.join(later)}")
    show.note(f"      {instance.drive_hint('reset')} restarts the firmware now, "
              "as --restart would have done; connections end")
