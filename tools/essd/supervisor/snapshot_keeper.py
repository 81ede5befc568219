# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor's half of named snapshots: the state of all machines and their disks.

To save, every machine is stopped, then the state of every machine is written, then the
drives' flash, media and NAND are copied, and the machines go on.  Frames that are in a
socket at that time are lost in the snapshot, as on a cable; hosts and drives send them
again.

A snapshot is written under a name that begins with a dot, and renamed when it is
complete.  So neither a full disk nor a killed supervisor leaves half a snapshot.

To load, all files are copied, every machine is ended, the drives' files are replaced,
and all machines start from their states.  The old files are kept until every machine
has loaded its state; if anything fails before, or the supervisor is killed, they are
put back (disk_swap.py).
"""

import asyncio
import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qemu.qmp.error import QMPError

from ..base import in_use, paths
from ..base.disk_swap import Swap, fresh_of
from ..base.errors import EssdError
from ..instance.config import Config
from ..storage import snapshots
from .part import Part

if TYPE_CHECKING:
    from .supervisor import Supervisor

LOOK_S = 0.02
FD_NAME = "essd-state"


async def copy(source: Path, target: Path) -> None:
    """Copy a file, without using disk space where the filesystem can share blocks."""
    process = await asyncio.create_subprocess_exec(
        "cp", "--reflink=auto", "--sparse=always", str(source), str(target),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE)
    said = (await process.communicate())[1].decode(errors="replace").strip()
    if process.returncode:
        raise ValueError(said.removeprefix("cp: ") or f"{source} could not be copied")


def machines(supervisor: "Supervisor") -> list[Part]:
    """All virtual machines, in the order in which they start."""
    return sorted((part for part in supervisor.parts.values() if part.has_state),
                  key=lambda part: supervisor.kinds.index(part.kind))


def disks(config: Config, folder: Path) -> list[tuple[Path, Path]]:
    """Each drive's flash, media and NAND, and their copies in the snapshot's folder."""
    found = []
    for name, drive in config.drives.items():
        found += [(Path(drive.flash), folder / f"{name}.flash"),
                  (Path(drive.media), folder / f"{name}.media")]
        if drive.nand is not None:
            found.append((Path(drive.nand.path), folder / f"{name}.nand"))
    return found


async def write_state(part: Part, path: Path) -> None:
    """Write a stopped machine's state; QEMU 7.2 can only write to a descriptor."""
    with open(path, "wb") as file:
        await part.give_file(file.fileno(), FD_NAME)
        await part.execute("migrate", {"uri": f"fd:{FD_NAME}"})
        while True:
            found = await part.execute("query-migrate", {})
            assert isinstance(found, dict)
            if found.get("status") == "completed":
                break
            if found.get("status") in ("failed", "cancelled"):
                raise ValueError(f"the state of {part.title} could not be written: "
                                 f"{found.get('error-desc', 'is the disk full?')}")
            await asyncio.sleep(LOOK_S)
        # The kernel reports a full disk at the latest here.
        await asyncio.to_thread(os.fsync, file.fileno())


async def read_state(part: Part, path: Path) -> None:
    """Load a state into a machine that was started with -incoming defer."""
    try:
        with open(path, "rb") as file:
            await part.give_file(file.fileno(), FD_NAME)
            await part.execute("migrate-incoming", {"uri": f"fd:{FD_NAME}"})
        while part.state == "running":
            found = await part.execute("query-status", {})
            assert isinstance(found, dict)
            if found["status"] != "inmigrate":
                return
            await asyncio.sleep(LOOK_S)
    except QMPError as error:
        raise await part.load_failure(str(error)) from None
    raise await part.load_failure(part.why)


def check_savable(supervisor: "Supervisor") -> None:
    for drive in supervisor.config.drives.values():
        drive.need_riscv("the state of a native hart cannot be saved")
    for link in supervisor.config.links:
        if link.outside:
            raise ValueError(f"{link.label} leads to {link.outside}, and a machine outside "
                             "cannot be saved: a snapshot needs an instance without such "
                             "cables")
    for name, host in supervisor.config.hosts.items():
        if host.uml:
            raise ValueError(f"{supervisor.parts[name].title} is user-mode Linux, whose state "
                             "cannot be saved: a snapshot needs hosts of kind stock")
    for part in machines(supervisor):
        supervisor.check_flash_free(part)
        if part.state != "running" or part.qmp is None:
            raise ValueError(f"{part.title} is not running: a snapshot is of a system "
                             "that runs")
        if part.halted:
            raise ValueError(f"{part.title} is halted: continue it first")


async def save(supervisor: "Supervisor", name: str) -> dict[str, Any]:
    """Save a snapshot; the system runs on, also if that fails."""
    check_savable(supervisor)
    config = supervisor.config
    folder = snapshots.folder(config.name, name)
    if folder.exists():
        raise ValueError(f"there is a snapshot {name} already")
    for old in folder.parent.glob(".*"):        # A supervisor was killed while it saved.
        if not in_use.is_removed(old):          # Its removal may go on now.
            shutil.rmtree(old, ignore_errors=True)
    in_use.sweep(folder.parent)
    temporary = folder.with_name(f".saving-{name}")
    temporary.mkdir(mode=0o700, parents=True)
    parts = machines(supervisor)
    begin = time.monotonic()
    for part in parts:
        part.is_saving = True
    try:
        await asyncio.gather(*(part.execute("stop", {}) for part in parts))
        for part in parts:
            await write_state(part, temporary / f"{part.name}.state")
        for disk, target in disks(config, temporary):
            await copy(disk, target)
        paused_s = time.monotonic() - begin
        (temporary / snapshots.FACTS).write_text(snapshots.describe(config, name))
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    finally:
        for part in parts:
            with contextlib.suppress(QMPError, ValueError):     # It has crashed.
                await part.execute("cont", {})
            part.is_saving = False
    supervisor.say(f"snapshot {name} saved; all machines stood still for {paused_s:.1f} s")
    return {"name": name, "bytes": snapshots.disk_bytes(folder), "paused_s": paused_s}


async def load(supervisor: "Supervisor", name: str) -> None:
    """Go back to a snapshot of this instance."""
    config = supervisor.config
    folder = snapshots.folder(config.name, name)
    snapshots.check(config, name, snapshots.read(folder))
    for link in config.links:
        if link.outside:
            raise ValueError(f"{link.label} leads to {link.outside}: a snapshot cannot be "
                             "loaded into an instance with such cables")
    for part in machines(supervisor):
        part.check_start()
    with snapshots.kept(folder), supervisor.all_flash_kept():
        await replace_disks(supervisor, folder, disks(config, folder))
    for part in machines(supervisor):
        supervisor.forget_saved(part)
    supervisor.say(f"snapshot {name} loaded")


async def replace_disks(supervisor: "Supervisor", folder: Path,
                        sources: list[tuple[Path, Path]]) -> None:
    """Replace the drives' files, and start all machines from the states."""
    parts = machines(supervisor)
    with Swap(paths.drives() / supervisor.config.name, (disk for disk, _ in sources)) as swap:
        # All copies exist before anything is ended, so that a full disk changes nothing.
        for disk, source in sources:
            await copy(source, fresh_of(disk))
        try:
            for part in parts:
                await part.kill()
            swap.swap()
            await resume(supervisor, folder)
        except BaseException as error:
            for part in parts:
                await part.kill()
            if not isinstance(error, (EssdError, QMPError, ValueError, OSError)):
                raise
            raise ValueError(f"{error}; all machines are off, and the drives have the "
                             "data from before the load") from None
        swap.keep()


async def resume(supervisor: "Supervisor", folder: Path) -> None:
    """Start all machines from the states in a snapshot's folder."""
    parts = machines(supervisor)
    for cable in supervisor.cables.values():
        cable.port_up = False       # until it has been read
    try:
        for part in parts:
            part.is_saving = True
            await supervisor.start_part(part.name, "-incoming", "defer")
        for part in parts:
            await read_state(part, folder / f"{part.name}.state")
        for part in parts:
            await part.execute("cont", {})
    finally:
        for part in parts:
            part.is_saving = False
    for cable in supervisor.cables.values():
        cable.port_up = None
    for part in parts:
        await part.read_cables()
    for part in parts:
        await part.after_load()
    for number in supervisor.cables:
        await supervisor.cables.set_carrier(number)


async def start_fork(supervisor: "Supervisor") -> None:
    """Start the machines of a fork; end the instance if that fails."""
    async with supervisor.snapshot_turn:
        try:
            folder = Path(supervisor.config.snapshot)
            with snapshots.kept(folder):
                await resume(supervisor, folder)
        except (EssdError, QMPError, ValueError, OSError) as error:
            supervisor.say(f"the snapshot could not be loaded: {error}")
            await supervisor.do_stop({})
            return
    supervisor.say(f"running from the snapshot {supervisor.config.snapshot}")
