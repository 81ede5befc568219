# SPDX-License-Identifier: BSD-2-Clause
"""One part of an instance: a process that the supervisor starts, watches and ends.

Part is what all kinds have in common, and the list of what a kind can do: the
supervisor, its cables and its snapshots only use these methods.  The kinds are in
drive_part.py, guest_part.py, uml_part.py and switch_part.py.
"""

import asyncio
import contextlib
import ctypes
import os
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qemu.qmp import EventListener, Message, QMPClient
from qemu.qmp.error import QMPError

from ..instance.config import Link, console_log, monitor_socket, process_log, user_socket
from . import capture_rotation, resident

if TYPE_CHECKING:
    from .cable_keeper import Cable
    from .supervisor import Supervisor

PR_SET_PDEATHSIG = 1
DISCONNECT_S = 2
LOAD_END_S = 5          # time that QEMU gets to end when it could not load a state


def die_with_parent() -> None:
    """Called in the child: request SIGKILL when the supervisor ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()


# Not an event of QEMU's: it ends the task that handles a process's events.
LAST_EVENT = "ESSD_LAST_EVENT"
EVENT_TASK = "events"       # name of that task
EVENT_TASK_S = 5            # time that it gets for the event that it is handling


class Part:
    """One part, whose state is "off", "running" or "crashed"."""

    def __init__(self, supervisor: "Supervisor", name: str) -> None:
        self.supervisor = supervisor
        self.name = name
        self.process: asyncio.subprocess.Process | None = None
        self.qmp: QMPClient | None = None
        self.state = "off"
        self.why = ""
        self.started = 0.0
        self.ssh_port = 0
        self.ready = False
        self.listener: EventListener | None = None
        self.tasks: list[asyncio.Task[None]] = []
        self.restarts: list[str] = []   # causes of restarts that were not requested
        self.bitten = False             # its watchdog expired; a reset event follows
        self.saved: Path | None = None  # file with the saved state
        self.halted = False             # its virtual CPUs and clock stand still
        self.is_resumed = False         # its state was loaded: its guest does not boot
        self.is_saving = False          # stopped by us, for its state to be written

    @property
    def folder(self) -> Path:
        return self.supervisor.folder

    @property
    def title(self) -> str:
        """The part's name in a message."""
        return f"the {self.name}" if self.name in ("drive", "host", "peer") else self.name

    @property
    def has_monitor(self) -> bool:
        """Whether the supervisor can send commands to the part."""
        return self.qmp is not None

    # What a kind of part is, besides a process.  Each method has the answer of a part to
    # which this means nothing; DrivePart, HostPart, PeerPart and SwitchPart have theirs.

    kind = ""               # as `essd status` prints it
    has_state = True        # It is a virtual machine, of which snapshots are made.

    def check_start(self) -> None:
        """EssdError if the process must not be started; nothing has changed then."""

    def command(self, descriptors: dict[int, int]) -> list[str]:
        """The command line of the process; `descriptors` are those of open_devices()."""
        raise NotImplementedError

    def open_devices(self) -> dict[int, int]:
        """Files that the process inherits, by the port that each is for."""
        return {}

    def inherited(self) -> list[int]:
        """Other open files that the process inherits, which stay open here."""
        return []

    @property
    def console(self) -> Path:
        """The file with what the part writes to its console."""
        return console_log(self.folder, self.name)

    @property
    def files_lock(self) -> Path | None:
        """The file that a command locks while it writes the part's files, which must not
        run then; None if no command does."""
        return None

    @property
    def has_capacitors(self) -> bool:
        """Whether the part saves its write buffer when the power fails."""
        return False

    async def fail_power(self) -> None:
        """Make the power fail, and wait until the process has ended."""
        await self.kill()

    async def prepare_cables(self) -> None:
        """Before the start: make the sockets of the part's cables usable."""

    async def after_start(self, loads: bool) -> None:
        """The process runs and its monitor is connected; `loads`: it loads a state."""

    async def after_load(self) -> None:
        """The part runs on from a state that was loaded."""

    async def on_event(self, event: dict[str, Any]) -> None:
        """Handle an event of the monitor."""

    def after_end(self) -> None:
        """The process has ended."""

    def port_name(self, port: int, link: Link) -> str:
        """The name that QEMU has for one of the part's network cards or ports."""
        return f"cable{link.number}"

    def lose_cable(self, cable: "Cable") -> None:
        """The process has ended, at one end of this cable."""
        cable.port_up = None

    async def read_cables(self) -> None:
        """Read which of the part's cables are connected, if that is known here."""

    async def reaches_outside(self, port: int) -> bool | None:
        """Whether what is outside, at this port, is connected; None: it is not known here."""
        return None

    async def set_carrier(self, number: int, is_up: bool) -> None:
        """Give the card at a cable a carrier, or take it away."""

    async def plug(self, port: int, number: int, plugged: bool) -> None:
        """Plug or pull a cable at the part's port."""

    def keep_captures(self) -> None:
        """Rename the captures of the last process: the next one begins new files."""
        for link in self.supervisor.config.captures(self.name):
            file = link.pcap(self.folder)
            if file.exists():
                capture_rotation.keep(file)

    def limit_captures(self) -> None:
        """Watch the size of the captures that the machine writes."""
        config = self.supervisor.config
        for link in config.captures(self.name) if config.capture_bytes else []:
            port = next(n for n, there in config.ports_of(self.name).items()
                        if there is link)
            rotation = capture_rotation.Rotation(
                self, self.port_name(port, link), link, config.capture_bytes)
            self.tasks.append(asyncio.create_task(rotation.run()))

    @property
    def log(self) -> Path:
        return process_log(self.folder, self.name)

    async def start(self, *more: str) -> None:
        """Start the process; `more` are additional options."""
        for path in (monitor_socket(self.folder, self.name),
                     user_socket(self.folder, self.name)):
            path.unlink(missing_ok=True)
        self.keep_captures()
        descriptors = self.open_devices()
        command = [*self.command(descriptors), *more]
        resident.read_ahead(Path(command[0]))
        with open(self.log, "a", encoding="utf-8") as log:
            log.write("$ " + " ".join(command) + "\n")
            log.flush()
            self.process = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                # QEMU's captures would otherwise be wrong by the local time zone.
                env={**os.environ, "TZ": "UTC"},
                preexec_fn=die_with_parent,
                pass_fds=[*descriptors.values(), *self.inherited()])
        for descriptor in descriptors.values():
            os.close(descriptor)
        self.state = "running"
        self.why = ""
        self.supervisor.tell("part", part=self.name, state=self.state, why="")
        self.ready = False
        self.is_resumed = "-incoming" in more
        self.started = time.time()
        # A task that is in no list may be deleted while it waits.
        self.tasks.append(asyncio.create_task(self.watch(self.process)))
        self.supervisor.save()
        await self.connect_qmp()

    async def connect_qmp(self) -> None:
        path = monitor_socket(self.folder, self.name)
        process = self.process
        while process is not None and process.returncode is None:
            client = QMPClient(f"{self.supervisor.config.name}-{self.name}")
            listener = EventListener()
            client.register_listener(listener)
            if path.exists():
                with contextlib.suppress(QMPError, OSError, asyncio.TimeoutError):
                    await asyncio.wait_for(client.connect(str(path)), 10)
                    break
            await asyncio.sleep(0.02)
        else:
            return
        if self.process is not process:     # It was ended while we connected.
            with contextlib.suppress(Exception):
                await asyncio.wait_for(client.disconnect(), DISCONNECT_S)
            return
        self.qmp = client
        self.listener = listener
        self.tasks.append(asyncio.create_task(self.events(listener),
                                              name=EVENT_TASK))
        asyncio.get_running_loop().run_in_executor(
            None, self.supervisor.resident.keep, process.pid)

    async def events(self, listener: EventListener) -> None:
        """Handle the events of one process, until the event LAST_EVENT."""
        while (event := dict(await listener.get()))["event"] != LAST_EVENT:
            await self.on_event(event)

    async def end_tasks(self) -> None:
        """End the tasks of a process that has ended; one of them may be the caller.

        The task that handles events is not cancelled at once, because it may be in
        the middle of a command to another part.
        """
        if self.listener is not None:
            await self.listener.put(Message({"event": LAST_EVENT}))
            self.listener = None
        others = [task for task in self.tasks if task is not asyncio.current_task()]
        self.tasks = []
        handling = [task for task in others if task.get_name() == EVENT_TASK]
        for task in others:
            if task not in handling:
                task.cancel()
        if handling:
            await asyncio.wait(handling, timeout=EVENT_TASK_S)
        for task in handling:
            task.cancel()
        for result in await asyncio.gather(*others, return_exceptions=True):
            if isinstance(result, Exception):
                self.supervisor.say(f"{self.name}: a task failed: {result!r}")

    async def watch(self, process: asyncio.subprocess.Process) -> None:
        await process.wait()
        if self.process is not process or self.state != "running":
            return
        rule = self.supervisor.power_cut_by(self)
        if rule:
            self.state = "off"
            self.why = f"the fault rule {rule} has cut the power"
            self.supervisor.say(f"{self.name}: {self.why}")
            await self.gone()
            return
        self.state = "crashed"
        status = self.cause(process).returncode or 0
        how = f"signal {-status}" if status < 0 else f"status {status}"
        self.why = f"ended unexpectedly ({how})"
        last = self.last_words()
        if last:
            self.why += f": {last}"
        self.supervisor.say(f"{self.name} {self.why}")
        await self.gone()

    def cause(self, process: asyncio.subprocess.Process) -> asyncio.subprocess.Process:
        """The process of the part whose end made this one end."""
        return process

    def pids(self) -> list[int]:
        """The processes that belong to the part."""
        return [self.process.pid] if self.process else []

    def last_words(self) -> str:
        """The log line that names the cause of a crash, or ""."""
        console = console_log(self.folder, self.name)
        with contextlib.suppress(OSError):
            text = console.read_text(errors="replace")[-20000:]
            found = re.findall(r"(?:Kernel panic|WARNING:|BUG:|ASSERT|"
                               r"panic: (?:trap|\S+\.[ch]:)).*", text)
            if found:
                return str(found[0].strip())
        with contextlib.suppress(OSError):
            lines = self.log.read_text(errors="replace").splitlines()
            if lines and not lines[-1].startswith("$ "):
                return lines[-1].strip()
        return ""

    async def gone(self) -> None:
        """Clean up after the process has ended in any way."""
        self.process = None
        self.ready = False
        self.supervisor.tell("part", part=self.name, state=self.state, why=self.why)
        self.halted = False
        if self.qmp is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self.qmp.disconnect(), DISCONNECT_S)
            self.qmp = None
        await self.end_tasks()
        await self.supervisor.on_gone(self)
        self.supervisor.save()

    async def kill(self) -> None:
        """End the process at once, as a power cut does."""
        process = self.process
        if process is None:
            self.state = "off"
            return
        self.state = "off"
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await self.gone()

    async def save_state(self, path: Path) -> None:
        """Stop the machine and write its state; if that fails, let it run on."""
        await self.execute("stop", {})
        try:
            await self.execute("migrate", {"uri": f"file:{path}"})
            while True:
                found = await self.execute("query-migrate", {})
                assert isinstance(found, dict)
                if found["status"] == "completed":
                    return
                if found["status"] in ("failed", "cancelled"):
                    raise ValueError(found.get("error-desc", "saving failed"))
                await asyncio.sleep(0.02)
        except (QMPError, ValueError):
            with contextlib.suppress(QMPError):
                await self.execute("cont", {})
            raise

    async def load_failure(self, error: str) -> ValueError:
        """Why QEMU could not load a state: usually it says so in its log, and ends."""
        process = self.process
        try:
            async with asyncio.timeout(LOAD_END_S):
                if process is not None:
                    await process.wait()
            log = self.log.read_text(errors="replace")
            said = log.rpartition("\n$ ")[2].splitlines()[1:]      # after the command
            # The lines of devices come before the general ones, and are the cause.
            causes = [line.partition(": ")[2] for line in said if ": " in line]
            error = next((cause for cause in causes if cause.startswith("essd-")),
                         causes[0] if causes else error)
        except (TimeoutError, OSError):
            pass
        return ValueError(f"{self.title} could not load its state: {error}")

    async def give_file(self, descriptor: int, name: str) -> None:
        """Give QEMU an open file, which commands can call by the name."""
        if self.qmp is None:
            raise ValueError(f"{self.name} is not running")
        self.qmp.send_fd_scm(descriptor)
        await self.execute("getfd", {"fdname": name})

    async def execute(self, command: str, arguments: dict[str, Any]) -> object:
        if self.qmp is None:
            raise ValueError(f"{self.name} is not running")
        return await self.qmp.execute(command, arguments)

    def status(self) -> dict[str, Any]:
        return {"kind": self.kind, "state": self.state, "why": self.why, "ready": self.ready,
                "monitor": self.has_monitor,
                "pid": self.process.pid if self.process else None, "pids": self.pids(),
                "log": str(self.log),
                "console": str(self.console),
                "restarts": self.restarts, "saved": self.saved is not None,
                "halted": self.halted,
                **({"ssh_port": self.ssh_port} if self.ssh_port else {})}
