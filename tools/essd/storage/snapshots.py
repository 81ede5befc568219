# SPDX-License-Identifier: BSD-2-Clause
"""Named snapshots of an instance: where they are, and what they belong to."""

import contextlib
import dataclasses
import hashlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from ..base import chosen, claims, in_use, interrupts, paths, persisted
from ..base.errors import EssdError, LOOK_UP_S
from ..instance.config import Config
from ..instance.instance import Instance
from ..machine.vm import QEMU
from . import boot_key, media, nand

COPY_S = 3600.0
LOAD_S = 120.0
FACTS = "snapshot.json"
VERSION = 1             # of that file
ALREADY = "there is an instance {} already: choose another name"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


def folder(instance: str, name: str) -> Path:
    """The folder of a snapshot; EssdError if it cannot have this name."""
    if not NAME.fullmatch(name):
        raise EssdError(f"{name!r}: a snapshot's name has up to 64 letters, digits, and "
                        "the characters . _ - (not at the beginning)")
    return paths.drives() / instance / "snapshots" / name


def is_snapshot(instance: Instance, word: str) -> bool:
    """Whether a word after save or load names a snapshot and not parts of the instance."""
    if not word or any(x in word for x in "*?["):
        return False
    return word not in instance.status()["parts"]


def table(found: list[dict[str, Any]]) -> Table:
    rows = Table(box=None, pad_edge=False)
    for heading in ("snapshot", "saved", "size", "parts"):
        # Why one cannot be used is long.
        rows.add_column(heading, no_wrap=heading != "parts", overflow="fold")
    for entry in found:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry["time"]))
        rows.add_row(entry["name"], when, f"{entry['bytes'] / 1e6:.1f} MB",
                     ", ".join(entry["parts"]) or f"cannot be used: {entry['why']}")
    return rows


def disk_bytes(of: Path) -> int:
    """Bytes of the disk; blocks that are shared with the drive's files count, too."""
    return sum(path.stat().st_blocks * 512 for path in of.iterdir())


def host_qemu() -> str:
    """The first line of what the hosts' QEMU says about its version."""
    done = subprocess.run([QEMU, "--version"], check=False, text=True,
                          stdout=subprocess.PIPE, timeout=LOOK_UP_S)
    return done.stdout.split("\n")[0]


def shape(config: Config) -> dict[str, Any]:
    """The configuration without the names and paths that a fork has of its own."""
    data = dataclasses.asdict(config)
    del data["name"], data["snapshot"], data["capture_bytes"], data["capture_keys"]
    for drive in data["drives"].values():
        del drive["flash"], drive["media"], drive["qemu"]
        if not drive["straps"]:
            del drive["straps"]     # as in snapshots from before they could be set
        if drive["boot_key"]:
            del drive["boot_key"]["file"]
        else:
            del drive["boot_key"]   # as in snapshots from before there were keys
        if not drive["devices"]:
            del drive["devices"]
        if drive["nand"]:
            del drive["nand"]["path"]
            if not drive["nand"]["blocks"]:     # an older array, as in older snapshots
                del drive["nand"]["blocks"], drive["nand"]["wordlines"]
        else:
            del drive["nand"]   # as in snapshots from before there were arrays
    for link in data["links"]:
        del link["capture"]
    return data


def belongs_to(config: Config) -> dict[str, str]:
    """What a state can be loaded with, by the words of a message."""
    found = {"accelerator": config.accel}
    if config.hosts or config.peer:
        found |= {"hosts' QEMU": host_qemu(), "guest image": Path(config.guest).name}
    if config.drive:
        found["drives' QEMU"] = config.drive.qemu
    text = json.dumps(shape(config), sort_keys=True)
    found["configuration"] = hashlib.sha256(text.encode()).hexdigest()[:12]
    return found


@dataclass
class Facts:
    """What the file snapshot.json says of a snapshot."""

    name: str
    time: float             # when it was saved, in seconds since 1970
    belongs_to: dict[str, str]
    parts: list[str]
    config: Config


def describe(config: Config, name: str) -> str:
    """The text of snapshot.json."""
    # A fork writes no secrets, so the file for them is nobody's business.
    kept = dataclasses.replace(config, capture_keys="")
    facts = Facts(name, time.time(), belongs_to(config), config.parts(), kept)
    return json.dumps({"version": VERSION, **dataclasses.asdict(facts)}, indent=2)


def check_there(of: Path) -> None:
    if not of.is_dir():
        known = ", ".join(entry["name"] for entry in list_all(of.parent.parent.name))
        raise EssdError(f"there is no snapshot {of.name}; there are: {known or 'none'}")


def read(of: Path) -> Facts:
    check_there(of)
    remedy = f"{chosen.hint(of.parent.parent.name, 'snapshots', '--remove', of.name)} deletes " \
             "the snapshot"
    try:
        return persisted.read(of / FACTS, "the description of a snapshot", Facts, VERSION, remedy)
    except FileNotFoundError:
        raise EssdError(f"the snapshot {of.name} has no file {FACTS}: {remedy}") from None


def check(config: Config, name: str, facts: Facts) -> None:
    """EssdError if the snapshot does not belong to what this configuration runs."""
    now = belongs_to(config)
    for what, value in facts.belongs_to.items():
        if now.get(what) != value:
            raise EssdError(f"the snapshot {name} belongs to another {what}: {value}, not "
                            f"{now.get(what, 'none')}")


def list_all(instance: str) -> list[dict[str, Any]]:
    """The snapshots of an instance, the oldest first."""
    found = []
    for path in (paths.drives() / instance / "snapshots").glob("[!.]*"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):    # It is removed now.
            entry = {"name": path.name, "time": path.stat().st_mtime, "bytes": disk_bytes(path),
                     "parts": [], "belongs_to": {}, "why": ""}
            try:
                facts = read(path)
                entry |= {"time": facts.time, "parts": facts.parts,
                          "belongs_to": facts.belongs_to}
            except EssdError as error:
                entry["why"] = str(error)
            found.append(entry)
    return sorted(found, key=lambda entry: float(str(entry["time"])))


def remove(instance: str, name: str) -> None:
    """Delete a snapshot; EssdError if an instance loads it now."""
    of = folder(instance, name)
    check_there(of)
    try:
        is_gone = in_use.remove(of)     # At no time is half a snapshot in the list.
    except OSError as error:
        raise EssdError(f"the snapshot {name} cannot be deleted: {error.filename}: "
                        f"{error.strerror}") from None
    if not is_gone:
        raise EssdError(f"another essd command uses the snapshot {name} now: try again when it "
                        "has ended")


@contextlib.contextmanager
def kept(of: Path) -> Iterator[None]:
    """Nobody removes the snapshot in this folder meanwhile; EssdError if it is gone."""
    with in_use.held(of) as is_there:
        if not is_there:
            raise EssdError(f"there is no snapshot {of.name}")
        yield


def copy(source: Path, target: Path) -> None:
    """Copy a file, without using disk space where the filesystem can share blocks."""
    done = subprocess.run(["cp", "--reflink=auto", "--sparse=always", source, target],
                          check=False, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=COPY_S)
    if done.returncode:
        raise EssdError(done.stderr.strip().removeprefix("cp: "))


def fork(source: str, name: str, new: str) -> Instance:
    """Start a new instance from a copy of a snapshot."""
    of = folder(source, name)
    facts = read(of)
    if Instance(new).is_running:
        raise EssdError(ALREADY.format(new))
    with claims.claimed(new, "essd fork"):
        return forked(of, facts, name, new)


def forked(of: Path, facts: Facts, name: str, new: str) -> Instance:
    """Start a new instance, whose name is claimed, from the snapshot in the folder `of`."""
    instance = Instance(new)
    if instance.is_running or (paths.drives() / new).exists():
        raise EssdError(ALREADY.format(new))
    config = deepcopy(facts.config)
    check(config, name, facts)
    chosen.check_sockets(new, [*config.hosts, *["peer"] * bool(config.peer)],
                         [*config.drives, *config.switches])
    config.name = new
    config.snapshot = str(of)
    try:
        for part, drive in config.drives.items():
            if not Path(drive.qemu).exists():
                raise EssdError(f"the snapshot {name} needs {drive.qemu}, which is gone")
            place = paths.drive(new, part)
            place.mkdir(mode=0o700, parents=True)
            drive.flash = str(place / "flash.img")
            drive.media = str(place / f"media.{drive.media_format}")
            copy(of / f"{part}.flash", Path(drive.flash))
            copy(of / f"{part}.media", Path(drive.media))
            media.record_format(Path(drive.media), drive.media_format)
            if drive.nand is not None:
                drive.nand.path = str(place / nand.FILE)
                copy(of / f"{part}.nand", Path(drive.nand.path))
                nand.record(drive.nand)
            if drive.boot_key is not None:
                boot_key.record(place, drive.boot_key)
        for link in config.links:
            link.capture = False
        config.capture_keys = ""
        instance.start(config, bound=True)
        wait_resumed(instance)
        if is_replaced(of, facts):
            raise EssdError(f"the snapshot {name} was replaced by another one while it was "
                            "copied: fork it again")
    except BaseException:
        with interrupts.ignored():
            instance.stop_started()
            shutil.rmtree(paths.drives() / new, ignore_errors=True)
        raise
    instance.release()
    return instance


def is_replaced(of: Path, facts: Facts) -> bool:
    """Whether the folder holds another snapshot now.  After a removal it holds none, and
    everything that was read from it belongs together."""
    with contextlib.suppress(EssdError):
        return read(of) != facts
    return False


def wait_resumed(instance: Instance) -> None:
    """Wait until the supervisor has loaded all states."""
    log = instance.folder / "supervisor.log"
    deadline = time.monotonic() + LOAD_S
    while "running from the snapshot" not in log.read_text():
        if not instance.is_running or time.monotonic() > deadline:
            words = log.read_text().strip().splitlines() or ["nothing was loaded"]
            raise EssdError(f"{instance.name} did not start: {words[-1]}")
        time.sleep(0.05)
