# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor: a process per instance that runs its virtual machines.

The kernel kills its children when the supervisor ends (PR_SET_PDEATHSIG), so no
process is left over.  The supervisor holds a QMP connection to each part.  It
notices a part that ends unexpectedly, and carries out the commands of its clients.
control.py serves the clients, cable_keeper.py keeps the cables, and part.py runs one
process.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from qemu.qmp.error import QMPError

from ..base import chosen, claims, in_use, paths
from ..base.errors import EssdError
from ..base.process import start_time
from ..build import elf
from ..instance.config import Config, part_file
from ..machine.drive import (MODULE_PROPERTIES, loading, module_get, module_set,
                             port_set)
from . import snapshot_keeper
from .cable_keeper import CableKeeper
from .channel import Messages, Trace
from .control import Control, check_members
from .drive_part import DrivePart
from .fault_keeper import FaultKeeper
from .guest_part import HostPart, PeerPart
from .part import Part
from .resident import Resident
from .switch_part import SwitchPart
from .uml_part import UmlPart


ANSWER_S = 5.0      # time limit of a request to the drive's firmware
SAVE_S = 20.0       # and of one that erases flash sectors
MONITOR_S = 30.0    # and of one to QEMU itself


async def answer_in_time(asked: Awaitable[object]) -> object:
    """The answer of a machine to a command; TimeoutError if it does not come.

    A machine whose process is stopped does not answer; the commands that wait for it
    would otherwise never end.
    """
    try:
        return await asyncio.wait_for(asked, MONITOR_S)
    except TimeoutError:
        raise TimeoutError(f"no answer within {MONITOR_S:.0f} s") from None


class Supervisor:
    def __init__(self, folder: Path, config: Config, bond: int | None = None,
                 claim: int | None = None) -> None:
        self.folder = folder
        self.config = config
        # Open lock file (claims.py), which the drives' processes inherit, too.
        self.inherited = [claim] if claim is not None else []
        # A pipe from the process that started this instance, which ends with that
        # process; None: the instance runs until it is stopped.
        self.bond = bond
        self.done = asyncio.Event()
        self.parts: dict[str, Part] = {}
        self.resident = Resident()
        self.cables = CableKeeper(self)
        self.messages = {name: Messages(part_file(folder, name, "mgmt"))
                         for name in config.drives}
        self.configuring = {name: asyncio.Lock() for name in config.drives}
        self.traces = {name: Trace(part_file(folder, name, "trace"))
                       for name in config.drives}
        # For each drive, what was changed of the modules in its ports.  The next process
        # of the drive has the same modules.
        self.modules: dict[str, dict[int, dict[str, Any]]] = {
            name: {0: {}, 1: {}} for name in config.drives}
        self.control = Control(self)
        # One snapshot is saved or loaded at a time; power commands wait for its end.
        self.snapshot_turn = asyncio.Lock()
        self.halter: Part | None = None     # the drive that halted all others
        # A host's QEMU listens on the cables' sockets, so it is started first.
        for name in config.switches:
            self.parts[name] = SwitchPart(self, name)
        for name, host in config.hosts.items():
            self.parts[name] = (UmlPart if host.uml else HostPart)(self, name)
        for name in config.drives:
            self.parts[name] = DrivePart(self, name)
        if config.peer:
            self.parts["peer"] = PeerPart(self, "peer")
        for name in self.parts:
            part_file(folder, name, "").mkdir(mode=0o700, exist_ok=True)
        self.faults = {name: self.new_keeper(name) for name in config.drives}

    def tell(self, kind: str, **facts: Any) -> None:
        """Send an event to the subscribers (docs/management.md)."""
        self.control.tell(kind, **facts)

    def say(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)

    # Parts

    async def start_part(self, name: str, *more: str) -> None:
        part = self.parts[name]
        if part.state == "running":
            return
        await part.prepare_cables()
        part.check_start()
        await part.start(*more)
        if part.state != "running":
            return
        part.limit_captures()
        await part.after_start(bool(more))

    async def on_halt(self, drive: Part, halted: bool, since: dict[str, int]) -> None:
        """A drive was halted, by a debugger or with the others, or goes on.

        The time of all parts stands still with that of the drive that a debugger
        halts, so that nothing of theirs runs into a time-out.
        """
        if halted and self.halter is None:
            self.halter = drive
            drive.halted = True
            await self.halt_others(True, since)
        elif not halted and self.halter in (drive, None):
            self.halter = None
            drive.halted = False
            await self.halt_others(False, since)
        else:
            drive.halted = halted

    async def halt_others(self, halted: bool, since: dict[str, int]) -> None:
        """Stop every other part; or continue those that were stopped here."""
        others = [part for part in self.parts.values()
                  if part is not self.halter and part.qmp is not None
                  and part.halted != halted]
        for part in others:
            part.halted = halted
        answers = await asyncio.gather(
            *(answer_in_time(part.execute("stop" if halted else "cont", {}))
              for part in others), return_exceptions=True)
        ms = 1e3 * (time.time() - since["seconds"]) - since["microseconds"] / 1e3
        for part, answer in zip(others, answers, strict=True):
            what = "halted" if halted else "continued"
            if isinstance(answer, BaseException):
                self.say(f"{part.name} could not be {what} with the drive: {answer}")
            else:
                self.say(f"{part.name} {what} {ms:.1f} ms after the drive")

    async def on_gone(self, part: Part) -> None:
        if part is self.halter:         # nobody else continues the others now
            self.halter = None
            now = time.time()
            await self.halt_others(False, {"seconds": 0, "microseconds": int(1e6 * now)})
        part.after_end()
        await self.cables.part_gone(part)

    # Commands

    async def command(self, request: dict[str, Any]) -> object:
        kind = request["command"]
        table: dict[str, Callable[[dict[str, Any]], Awaitable[object]]] = {
            "status": self.do_status, "stop": self.do_stop,
            "power-cut": self.do_power_cut, "power-on": self.do_power_on,
            "save": self.do_save, "load": self.do_load, "reset": self.do_reset,
            "mgmt": self.do_mgmt, "configure": self.do_configure,
            "port": self.do_port,
            "partner": self.do_partner, "module": self.do_module, "qmp": self.do_qmp,
            "faults": self.do_faults, "switch": self.do_switch,
            "save-all": self.do_save_all, "load-all": self.do_load_all,
            "several": self.control.several}
        check_members(request)
        if kind not in table:
            raise ValueError(f"several requests cannot have the command {kind}")
        if kind in ("power-cut", "power-on", "reset", "save", "load"):
            async with self.snapshot_turn:
                pass            # Its end is what this waits for.
        return await table[kind](request)

    async def do_status(self, _request: dict[str, Any]) -> object:
        await self.cables.read_outside()
        return {"name": self.config.name, "folder": str(self.folder),
                "accel": self.config.accel,
                "parts": {n: p.status() for n, p in self.parts.items()},
                "cables": self.cables.status()}

    async def do_stop(self, _request: dict[str, Any]) -> object:
        self.halter = None              # Its end lets nobody go on: all of them end.
        for part in self.parts.values():
            await part.kill()
        self.done.set()
        return None

    def target(self, request: dict[str, Any]) -> str:
        """The part that a request names; by default the only drive, or the peer."""
        name = str(request.get("part") or "")
        if not name and len(self.config.drives) > 1:
            raise ValueError("this instance has several drives: name one of "
                             f"{', '.join(self.config.drives)}")
        if not name:
            name = (self.config.targets() or ["drive"])[0]
        if name not in self.parts:
            raise ValueError(f"this instance has no {name}: its parts are "
                             f"{', '.join(self.parts)}")
        return name

    def drive(self, request: dict[str, Any]) -> Part:
        """The drive that a request names; by default the only one."""
        name = self.target(request)
        if name not in self.config.drives:
            raise ValueError("this instance has no drive" if not request.get("part")
                             else f"{name} is not a drive")
        return self.parts[name]

    def running_drive(self, request: dict[str, Any]) -> Part:
        part = self.drive(request)
        if part.state != "running":
            raise ValueError(f"{part.title} is not powered")
        return part

    def check_flash_free(self, part: Part) -> None:
        """ValueError while another command writes the files of the drive."""
        lock = part.files_lock
        if lock is not None and lock.exists() and paths.is_locked(lock):
            raise ValueError(self.flash_refusal(part))

    def flash_refusal(self, part: Part) -> str:
        return (f"another essd command writes the flash of {part.title} now: wait until it "
                "has ended")

    async def do_power_cut(self, request: dict[str, Any]) -> object:
        part = self.parts[self.target(request)]
        if part.state != "running":
            raise ValueError(f"{part.title} is not powered")
        await (part.fail_power() if part.has_capacitors else part.kill())
        self.say(f"{part.name}: power cut")
        return None

    async def do_power_on(self, request: dict[str, Any]) -> object:
        name = self.target(request)
        if self.parts[name].state == "running":
            raise ValueError(f"{self.parts[name].title} is powered already")
        if request.get("flashing"):     # It is `essd flash` itself, which holds the lock.
            await self.power_on(name, request)
            return None
        # Nobody begins to write the drive's files before its state is "running".
        with self.flash_kept(self.parts[name]):
            await self.power_on(name, request)
        return None

    async def power_on(self, name: str, request: dict[str, Any]) -> None:
        self.parts[name].check_start()
        # A saved state becomes invalid, because the drive will change the media.
        self.forget_saved(self.parts[name])
        if request.get("forget_restarts"):
            self.parts[name].restarts.clear()
        await self.start_part(name)
        self.say(f"{name}: power on")

    @contextlib.contextmanager
    def flash_kept(self, part: Part) -> Iterator[None]:
        """Let nobody else write the files of a drive; EssdError if somebody does."""
        if part.files_lock is None:
            yield
            return
        with paths.locked_or(self.flash_refusal(part), part.files_lock, shared=True):
            yield

    @contextlib.contextmanager
    def all_flash_kept(self) -> Iterator[None]:
        """The same for all drives, also those that are off at this moment."""
        with contextlib.ExitStack() as stack:
            for part in self.parts.values():
                stack.enter_context(self.flash_kept(part))
            yield

    def forget_saved(self, part: Part) -> None:
        if part.saved is not None:
            part.saved.unlink(missing_ok=True)
            part.saved = None

    async def do_save(self, request: dict[str, Any]) -> object:
        """Write a drive's state to a file and end its process."""
        part = self.running_drive(request)
        self.config.drives[part.name].need_riscv("the state of a native hart cannot be saved")
        self.check_flash_free(part)
        path = part_file(self.folder, part.name, "saved.state")
        path.unlink(missing_ok=True)
        part.is_saving = True
        try:
            await part.save_state(path)
            part.saved = path
            await part.kill()
        finally:
            part.is_saving = False
        self.say(f"{part.name}: saved")
        return {"bytes": path.stat().st_size}

    async def do_load(self, request: dict[str, Any]) -> object:
        """Resume the saved state in a new process; a state can be used only once."""
        part = self.drive(request)
        if part.saved is None:
            save = chosen.hint(self.config.name, "save", *chosen.part_words(part.name))
            raise ValueError(f"no state of {part.title} is saved: run {save} first")
        self.check_flash_free(part)
        part.check_start()
        # A link that was up when the state was saved sends no event.  It is read
        # after the state has been loaded; until then there is no carrier.
        links = self.config.ports_of(part.name).values()
        for link in links:
            self.cables[link.number].port_up = False
        await self.start_part(part.name, *loading(part.saved))
        try:
            while part.state == "running":
                found = await part.execute("query-status", {})
                assert isinstance(found, dict)
                if found["status"] != "inmigrate":
                    await part.execute("cont", {})
                    break
                await asyncio.sleep(0.02)
        except QMPError as error:
            raise await part.load_failure(str(error)) from None
        if part.state != "running":
            raise await part.load_failure(part.why)
        self.forget_saved(part)
        for link in links:
            self.cables[link.number].port_up = None
        await self.cables.ask_links(part)
        await self.read_modules(part)
        self.say(f"{part.name}: loaded")
        return None

    async def do_save_all(self, request: dict[str, Any]) -> object:
        """Save a named snapshot of all machines."""
        async with self.snapshot_turn:
            return await snapshot_keeper.save(self, str(request["name"]))

    async def do_load_all(self, request: dict[str, Any]) -> object:
        """Go back to a named snapshot."""
        async with self.snapshot_turn:
            await snapshot_keeper.load(self, str(request["name"]))
        return None

    async def do_reset(self, request: dict[str, Any]) -> object:
        """Pulse the reset pin: a warm reset while the power stays on.

        With "halt", the drive is halted first, and so are the guests.  Its harts then
        stand at the reset vector until a debugger or QMP continues them.
        """
        part = self.running_drive(request)
        if request.get("halt"):
            self.config.drives[part.name].need_riscv("a native hart has no reset vector")
            await part.execute("stop", {})
        await part.execute("system_reset", {})
        self.say(f"{part.name}: reset{' and halted' if request.get('halt') else ''}")
        return None

    async def do_port(self, request: dict[str, Any]) -> object:
        await self.cables.plug(self.cables.number_of(request), bool(request["plugged"]))
        return None

    async def do_partner(self, request: dict[str, Any]) -> object:
        """Change a cable's link partner until the instance ends."""
        part = self.running_drive(request)
        cable = self.cables[self.cables.number_of({**request, "part": part.name})]
        for name, value in request["settings"].items():
            await part.execute(*port_set(int(request["port"]), name, value))
            cable.partner[name] = value
        return None

    async def do_module(self, request: dict[str, Any]) -> object:
        """Change the module in a drive's port until the instance ends."""
        part = self.running_drive(request)
        port = int(request["port"])
        kept = self.modules[part.name]
        if port not in kept:
            raise ValueError(f"no port {port}: there are {', '.join(map(str, kept))}")
        for name, value in request["settings"].items():
            await part.execute(*module_set(port, name, value))
            kept[port][name] = value
        return None

    async def read_modules(self, part: Part) -> None:
        """Take over the modules of a drive whose state has been loaded."""
        for port, kept in self.modules[part.name].items():
            for name in MODULE_PROPERTIES:
                with contextlib.suppress(QMPError, ValueError):
                    value = await part.execute(*module_get(port, name))
                    if isinstance(value, int):      # of which bool is a kind
                        kept[name] = value

    async def do_mgmt(self, request: dict[str, Any]) -> object:
        """Forward one request to a drive (docs/management.md)."""
        part = self.running_drive(request)
        return await self.messages[part.name].ask(str(request["request"]),
                                                  request.get("arguments") or {},
                                                  float(request.get("timeout_s", 5)))

    async def do_configure(self, request: dict[str, Any]) -> object:
        """Save changes of a drive's settings; return the keys that wait for a start.

        The firmware has one set of changes that are not saved yet, for all who ask.  So
        the changes of one command are made and saved before those of the next one.
        """
        part = self.running_drive(request)
        async with self.configuring[part.name]:
            ask = self.messages[part.name].ask
            await ask("config-discard", {}, ANSWER_S)
            try:
                for key, value in request["changes"].items():
                    await ask("config-set", {"key": str(key), "value": value}, ANSWER_S)
                return (await ask("config-save", {}, SAVE_S))["later"]
            except BaseException:
                with contextlib.suppress(EssdError, ValueError, OSError):
                    await ask("config-discard", {}, ANSWER_S)
                raise

    async def do_switch(self, request: dict[str, Any]) -> object:
        """Forward one line to a switch's control socket."""
        part = self.parts.get(str(request["part"]))
        if not isinstance(part, SwitchPart):
            names = ", ".join(self.config.switches)
            raise ValueError(f"{request['part']} is not a switch: there are "
                             f"{names or 'none'}")
        return await part.ask(str(request["request"]))

    async def do_qmp(self, request: dict[str, Any]) -> object:
        name = self.target(request)
        return await self.parts[name].execute(request["execute"],
                                              request.get("arguments") or {})

    # Fault rules

    def power_cut_by(self, part: Part) -> str:
        """The fault rule that ended this part, or ""."""
        keeper = self.faults.get(part.name)
        return keeper.cut_by(part.log) if keeper else ""

    def new_keeper(self, name: str) -> FaultKeeper:
        part = self.parts[name]
        return FaultKeeper(part.execute,
                           lambda request, arguments:
                           self.messages[name].ask(request, arguments, 30),
                           has_nand=self.config.drives[name].nand is not None)

    async def do_faults(self, request: dict[str, Any]) -> object:
        """Change or list the fault rules of a drive (docs/faults.md)."""
        part = self.drive(request)
        keeper = self.faults[part.name]
        is_running = part.state == "running"
        names = [str(name) for name in request.get("names") or []]
        do = request.get("do", "list")
        if do == "add":
            return await keeper.add(request["rules"], is_running)
        if do == "remove":
            await keeper.remove(names, is_running)
        elif do in ("on", "off"):
            await keeper.turn(names, do == "on", is_running)
        elif do != "list":
            raise ValueError(f"faults: do is {do!r}; it has to be add, list, off, on or remove")
        return await keeper.report(is_running)

    def save(self) -> None:
        """Save process ids and start times, for `down` if the supervisor was killed.

        A folder that somebody has deleted is not made again: the instance goes on
        without it, and ends when `down` finds its claim and sends it a signal.
        """
        state = [{"pid": pid, "start": start_time(pid)}
                 for pid in [os.getpid(), *(pid for part in self.parts.values()
                                            for pid in part.pids())]]
        temporary = self.folder / "state.json.new"
        with contextlib.suppress(FileNotFoundError):
            temporary.write_text(json.dumps(state))
            temporary.rename(self.folder / "state.json")

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(
                number, lambda: asyncio.ensure_future(self.do_stop({})))
        self.save()
        server = await self.control.start()
        if self.bond is not None:
            loop.add_reader(self.bond, self.on_bond)
        try:
            await self.start_parts()
            await self.done.wait()
            await asyncio.sleep(0.05)     # time to send the reply to "stop"
        finally:
            server.close()
            self.remove_sockets()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of parts in the order in which they start.

        Hosts' QEMUs listen on their cables' sockets; the peer connects to them.  With
        vhost-user, the drive listens, and a host's QEMU answers nobody before.
        """
        shared = any(link.is_shared for link in self.config.links)
        return ("switch", *(("drive", "host") if shared else ("host", "drive")), "peer")

    async def start_parts(self) -> None:
        from_snapshot = bool(self.config.snapshot)
        with self.all_flash_kept():
            for kind in ("switch",) if from_snapshot else self.kinds:
                if self.done.is_set():
                    break
                await asyncio.gather(*(self.start_part(part.name) for part in
                                       self.parts.values() if part.kind == kind))
            if from_snapshot:
                await snapshot_keeper.start_fork(self)

    def remove_sockets(self) -> None:
        (self.folder / "control.sock").unlink(missing_ok=True)
        if self.bond is not None and self.folder.is_dir():  # Nobody else removes these.
            for path in self.folder.rglob("*"):
                if path.is_socket():
                    path.unlink(missing_ok=True)
            (self.folder / "state.json").unlink(missing_ok=True)

    def on_bond(self) -> None:
        """A byte ends the bond with the starting process; its end ends the instance."""
        assert self.bond is not None
        data = os.read(self.bond, 1)
        asyncio.get_running_loop().remove_reader(self.bond)
        if data:
            os.close(self.bond)
            self.bond = None
            return
        self.say("the process that started this instance has ended: stopping")
        self.stopping = asyncio.ensure_future(self.do_stop({}))


def main() -> None:
    """Run as `python -m essd.supervisor FOLDER CLAIM [PIPE]`, with config.json in FOLDER.

    CLAIM and PIPE are open files: the claim to the instance's name, and the pipe to the
    process that the instance is bound to.
    """
    os.umask(0o077)
    folder = Path(sys.argv[1])
    assert folder.parent == paths.runtime()
    config = Config.from_json((folder / "config.json").read_text())
    claim = int(sys.argv[2])
    bond = int(sys.argv[3]) if len(sys.argv) > 3 else None
    claims.inherit(claim, folder)
    in_use.hold_python()
    in_use.hold(elf.folder())
    in_use.hold_all([*map(config.guest_of, [*config.hosts, "peer"]),
                     *(drive.qemu for drive in config.drives.values()),
                     *(host.uml for host in config.hosts.values()),
                     *(host.relay for host in config.hosts.values())])

    async def start() -> None:
        await Supervisor(folder, config, bond, claim).run()

    asyncio.run(start())
