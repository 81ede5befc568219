# SPDX-License-Identifier: BSD-2-Clause
"""Start, stop and use one instance, from the command line and from tests.

An instance is controlled through its supervisor.  Commands in a guest run over
the ssh connection that the supervisor keeps open.
"""

import contextlib
import json
import math
import os
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from ..base import chosen, claims, paths, persisted
from ..base.errors import EssdError
from ..base.process import Started, is_stopped, start_time
from .config import Config, console_log, flash_lock, part_file, ssh_socket

# Time limits, in seconds, of the supervisor's answers.
STATUS_S = 30.0
STOP_S = 60.0           # all processes have ended then
CALL_S = 2 * 3600.0     # of other commands, which may copy disks
LOOK_S = 1.0            # how often a client that waits looks whether the supervisor is stopped
END_LOOK_S = 0.05       # how often it looks whether a supervisor has ended
KILLED_LOOKS = 250      # how often it looks whether killed processes have ended: 5 s and more
CREDENTIALS = "iII"     # struct ucred: process, user, group


class SupervisorEnded(EssdError):
    """The supervisor ended after it had accepted a command and before it answered."""


SSH_FAILED = 255        # exit status of ssh when it could not run the command


class OtherVersionError(EssdError):
    """Another version of essd started the instance."""


class NotAnsweringError(EssdError):
    """The supervisor is there, and does not answer."""


@dataclass(frozen=True)
class Result:
    """The result of a command in a guest."""

    command: str
    status: int
    output: str     # stdout and stderr, in the order written
    part: str = "host"      # the guest
    errors: str = ""        # stderr, if it was asked for apart from the output


def send_to(process: IO[bytes], number: int) -> None:
    """Send a signal to the process of a pidfd, if it has not ended."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(process.fileno(), number)


def has_ended(process: IO[bytes], pid: int) -> bool:
    """Wait until the process of a pidfd has ended; false if it is stopped or goes on.

    The time is counted in looks, as in Instance.wait_answer().
    """
    for _ in range(math.ceil(STOP_S / END_LOOK_S)):
        if select.select([process], [], [], END_LOOK_S)[0]:
            return True
        if is_stopped(pid):
            return False
    return False


class Instance:
    """A named instance, running or not."""

    def __init__(self, name: str = "default", part: str = "") -> None:
        self.name = chosen.check_name(name)
        self.folder = claims.folder(name)
        self.bond: int | None = None    # pipe to a supervisor that is bound to us
        self.has_started = False        # by start(), and not stopped again
        self.part = part        # the drive that commands act on; "": the only one

    def of(self, part: str) -> "Instance":
        """The same instance, with another drive for commands to act on."""
        return Instance(self.name, part)

    @property
    def drives(self) -> list[str]:
        """Names of the drives: those that run, or else those that are kept."""
        if self.is_running:
            return list(self.config.drives)
        return paths.kept_drives(self.name)

    @property
    def drive(self) -> str:
        """The drive that commands act on; EssdError if there are several to choose."""
        names = [] if self.part else self.drives
        if len(names) > 1:
            raise EssdError(f"{self.name} has several drives: name one of "
                            f"{chosen.listed(names)}")
        return self.part or (names[0] if names else "drive")

    @property
    def the_drive(self) -> str:
        """The drive's name for a message."""
        return "the drive" if self.drive == "drive" else self.drive

    def file(self, name: str) -> Path:
        """A file of the drive in the instance's folder."""
        return part_file(self.folder, self.drive, name)

    @contextlib.contextmanager
    def writable(self, what: str) -> Iterator[None]:
        """Keep everybody else from writing the drive's files, and from powering it on.

        `what` is the command, for those who find the files locked.  EssdError if the drive
        is powered or suspended, or if somebody else holds the files.
        """
        if not self.is_running:
            with claims.claimed(self.name, what):
                yield
            return
        # The supervisor holds the claim, and powers no drive on whose flash is locked.
        with paths.locked_or(f"another command writes the files of {self.the_drive} now: "
                             "wait until it has ended", flash_lock(self.folder, self.drive)):
            part = self.status()["parts"][self.drive]
            if part["state"] == "running":
                raise EssdError(f"{self.the_drive} is powered: stop it with "
                                f"{self.hint('down')}, or cut its power with "
                                f"{self.drive_hint('power-cut')}, first")
            if part["saved"]:       # Its memory would not go with the changed files.
                raise EssdError(f"the state of {self.the_drive} is saved: resume it with "
                                f"{self.drive_hint('load')}, or give the state up with "
                                f"{self.drive_hint('power-on')}, first")
            yield

    # The supervisor

    @property
    def is_running(self) -> bool:
        with contextlib.suppress(OSError, SupervisorEnded):
            self.call("status")
            return True
        return False

    def call(self, command: str, **arguments: Any) -> Any:
        """Send a command to the supervisor.

        Raises OSError if none is running, SupervisorEnded if it took the command and ended
        before it answered, and NotAnsweringError if it does not answer.
        """
        limits = {"status": STATUS_S, "stop": STOP_S}
        return self.call_within(limits.get(command, CALL_S), command, **arguments)

    def call_within(self, limit_s: float, command: str, **arguments: Any) -> Any:
        """The same with this time limit for the answer."""
        line = bytearray()
        with self.connect() as connection:
            request = {"command": command, **arguments}
            connection.sendall(json.dumps(request).encode() + b"\n")
            while not line.endswith(b"\n"):
                self.wait_answer(connection, limit_s)
                more = connection.recv(1 << 16)
                if not more:
                    break
                line += more
        if not line.endswith(b"\n"):
            raise SupervisorEnded(f"the supervisor of {self.name} ended; "
                                  f"see {self.folder}/supervisor.log")
        reply = json.loads(line)
        if "error" in reply:
            raise EssdError(reply["error"])
        return reply["return"]

    def connect(self) -> socket.socket:
        """A connection to the supervisor; OSError if none is running."""
        connection = chosen.control_socket()
        try:
            connection.connect(str(self.folder / "control.sock"))
        except OSError as error:
            connection.close()
            if isinstance(error, BlockingIOError):      # Too many others wait for it.
                raise self.not_answering(0) from None
            raise
        return connection

    def wait_answer(self, connection: socket.socket, limit_s: float) -> None:
        """Wait until the supervisor has said something; NotAnsweringError if it does not.

        The time is counted in looks, so that all of a stall of the machine, in which the
        supervisor could not answer either, is one look.  A supervisor that was stopped is
        looked at once more: it may go on just now.
        """
        stopped = 0
        for _ in range(math.ceil(limit_s / LOOK_S)):
            if select.select([connection], [], [], LOOK_S)[0]:
                return
            pid = struct.unpack(CREDENTIALS, connection.getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(CREDENTIALS)))[0]
            stopped = stopped + 1 if is_stopped(pid) else 0
            if stopped > 1:
                break
        raise self.not_answering(pid)

    def not_answering(self, pid: int) -> NotAnsweringError:
        who = f"the supervisor of {self.name}" + (f" (process {pid})" if pid else "")
        if not is_stopped(pid):
            return NotAnsweringError(f"{who} does not answer; see "
                                     f"{self.folder}/supervisor.log")
        return NotAnsweringError(
            f"{who} is stopped and does not answer: continue it with kill -CONT {pid}, or "
            f"end it and its drives, as a power cut does, with kill -KILL {pid}")

    def ask(self, command: str, **arguments: Any) -> Any:
        """Send a command to the supervisor; raises EssdError if none is running."""
        try:
            return self.call(command, **arguments)
        except OSError:
            raise EssdError(self.not_running()) from None

    def not_running(self) -> str:
        return chosen.not_running(self.name)

    def hint(self, command: str, *rest: str) -> str:
        """A command for the user to type, with this instance's --name."""
        return chosen.hint(self.name, command, *rest)

    def drive_hint(self, command: str, *rest: str) -> str:
        """A command for the user to type that acts on this drive of the instance."""
        return self.hint(command, *chosen.part_words(self.drive), *rest)

    def status(self) -> dict[str, Any]:
        return dict(self.ask("status"))

    @property
    def config(self) -> Config:
        try:
            return Config.from_json((self.folder / "config.json").read_text())
        except (persisted.ShapeError, ValueError):
            raise OtherVersionError(f"another version of essd started the instance {self.name}: "
                            f"stop it with {self.hint('down')}, then start it again"
                            ) from None

    def start(self, config: Config, bound: bool = False) -> None:
        """Start the supervisor, which starts every part.

        A bound instance ends when this process ends in whatever way, unless
        release() has been called.
        """
        # If two processes start the same instance at once, one of them is refused.  The
        # second lock is for those whose data are in different folders.
        with claims.claimed(self.name, "essd up") as claim, paths.locked_or(
                f"another essd command is starting an instance {self.name} now: choose "
                "another --name", paths.runtime() / f".{self.name}.lock"):
            self.folder = paths.instance(self.name)
            self.start_alone(config, bound, claim.fileno())

    def check_stopped(self) -> None:
        """EssdError if the instance runs."""
        if self.is_running:
            raise EssdError(f"instance {self.name} is running already: "
                            f"stop it with {self.hint('down')}")

    @contextlib.contextmanager
    def claimed(self, what: str) -> Iterator[None]:
        """Claim the name for a command that starts the instance and ends it again.

        EssdError also if an instance runs that does not hold this claim: one with its
        drives in another data folder, or one of an older version.
        """
        with claims.claimed(self.name, what):
            self.folder = paths.instance(self.name)
            self.check_stopped()
            yield

    def start_alone(self, config: Config, bound: bool, claim: int) -> None:
        self.check_stopped()
        self.clean_up()
        self.keep_logs()
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            (self.folder / "config.json").write_text(config.to_json())
        except OSError as error:
            raise EssdError(f"{self.folder}/config.json cannot be written: {error.strerror}"
                            ) from None
        environment = {**os.environ, "PYTHONPATH": str(paths.PACKAGE.parent)}
        reader = -1
        if bound:
            # Kept at once: stop() ends also a supervisor whose start is interrupted.
            reader, self.bond = os.pipe()
        self.has_started = True
        inherited = [claim, *([reader] if bound else [])]
        try:
            with open(self.folder / "supervisor.log", "w", encoding="utf-8") as log:
                supervisor = subprocess.Popen(
                    [sys.executable, "-m", "essd.supervisor", self.folder,
                     *map(str, inherited)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                    start_new_session=True, cwd="/", pass_fds=inherited)
        finally:
            if bound:
                os.close(reader)
        deadline = time.monotonic() + 30
        while not self.is_running:
            if supervisor.poll() is not None and not self.is_running:
                raise EssdError(f"the supervisor ended while it started; see "
                                f"{self.folder}/supervisor.log")
            if time.monotonic() > deadline:
                raise EssdError("the supervisor did not start within 30 s; see "
                                f"{self.folder}/supervisor.log")
            time.sleep(0.05)

    def release(self) -> None:
        """Let a bound instance go on running when this process ends."""
        if self.bond is not None:
            with contextlib.suppress(OSError):      # The supervisor has ended.
                os.write(self.bond, b"r")
            self.end_bond()

    def end_bond(self) -> None:
        if self.bond is not None:
            os.close(self.bond)
            self.bond = None

    def keep_logs(self) -> None:
        """Move the previous run's logs to <name>.old."""
        old = self.folder.with_name(f"{self.name}.old")
        if self.folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            self.folder.rename(old)

    def stop(self) -> bool:
        """End every process of the instance; return false if none was running.

        NotAnsweringError if the supervisor does not answer, or does not end although its
        socket is lost: whoever has stopped it may want it to go on.  A supervisor that is
        bound to this process is killed then, with its drives, because it would end with this
        process anyway.
        """
        was_running = True
        try:
            self.call("stop")
        except NotAnsweringError:
            if self.bond is None:
                raise
        except OSError:
            was_running = self.end_unreachable()
        except EssdError:
            was_running = False
        # This also ends a supervisor that does not listen on its socket yet.
        self.end_bond()
        was_running = self.clean_up() or was_running
        self.wait_unclaimed()
        self.has_started = False
        return was_running

    def stop_started(self) -> None:
        """Stop what start() has started here.

        Nothing if start() was refused: another instance then runs, which may have the name
        and its drives in another data folder.
        """
        if self.has_started:
            self.stop()

    def end_unreachable(self) -> bool:
        """End a supervisor without a socket, such as one whose folder somebody has deleted;
        return whether there was one.

        If it does not end, it is killed if it is bound to this process, and otherwise
        NotAnsweringError says so.
        """
        found = claims.holder(self.name)
        if found is None or found.folder != str(self.folder):
            return False
        try:
            opened = os.pidfd_open(found.pid)
        except OSError:         # It has ended, or its id is now that of a thread.
            return False
        # Unlike its id, a pidfd never means another process when this one has ended.
        with open(opened, "rb", buffering=0) as process:
            if not claims.has_open(found.pid, self.name):
                return False
            is_bound = self.bond is not None
            self.end_bond()
            if not is_bound:
                send_to(process, signal.SIGTERM)
            if has_ended(process, found.pid):
                return True
            if not is_bound:
                raise self.not_answering(found.pid)
            send_to(process, signal.SIGKILL)
            select.select([process], [], [], STOP_S)
            return True

    def wait_unclaimed(self) -> None:
        """Wait until the kernel has ended the last process of the stopped instance."""
        deadline = time.monotonic() + 5
        while not claims.is_ours(self.name) and time.monotonic() < deadline:
            found = claims.holder(self.name)
            if found is None or found.folder != str(self.folder):
                break
            time.sleep(0.02)

    def clean_up(self) -> bool:
        """Kill the processes named in the state file, unless an id was reused."""
        ours = persisted.read_or_none(self.folder / "state.json", list[Started])
        if ours is None:
            return False
        deadline = time.monotonic() + 2
        while (ours := [p for p in ours if start_time(p.pid) == p.start]) \
                and time.monotonic() < deadline:
            time.sleep(0.02)
        for process in ours:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        # The kernel closes a process's files, and so frees its claim, before it has ended.
        for _ in range(KILLED_LOOKS):
            if not any(start_time(p.pid) == p.start for p in ours):
                break
            time.sleep(0.02)
        (self.folder / "state.json").unlink(missing_ok=True)
        for path in self.folder.rglob("*"):
            if path.is_socket():
                path.unlink(missing_ok=True)
        return bool(ours)

    def check(self, restarts: Mapping[str, int] = MappingProxyType({})) -> None:
        """Raise EssdError if a part has crashed or restarted by itself.

        `restarts` has the numbers of restarts that are known before.
        """
        for name, part in self.status()["parts"].items():
            if part["state"] == "crashed":
                raise EssdError(f"{name} {part['why']}; see {part['log']} and "
                                f"{part['console']}")
            if len(part["restarts"]) > restarts.get(name, 0):
                raise EssdError(f"{name} has restarted by itself "
                                f"({part['restarts'][-1]}); see {part['console']}")

    def wait_started(self, timeout_s: float = 60) -> None:
        """Wait until every part's QEMU answers its monitor: its sockets then exist."""
        deadline = time.monotonic() + timeout_s
        while waiting := [name for name, part in self.status()["parts"].items()
                          if not part["monitor"]]:
            self.check()
            if time.monotonic() > deadline:
                raise EssdError(f"{', '.join(waiting)} did not start within "
                                f"{timeout_s:.0f} s; see {self.folder}/supervisor.log")
            time.sleep(0.05)

    def wait_ready(self, part: str = "host", timeout_s: float = 180) -> None:
        """Wait until a guest can run commands."""
        deadline = time.monotonic() + timeout_s
        while not self.status()["parts"][part]["ready"]:
            self.check()
            if time.monotonic() > deadline:
                raise EssdError(f"the guest {part} was not ready within {timeout_s:.0f} s; "
                                f"see {console_log(self.folder, part)}")
            time.sleep(0.1)

    # Guests

    def ssh(self, part: str = "host", tty: bool = False) -> list[str]:
        """The ssh command up to and including the host."""
        from ..build.guest_build import Guest
        from .ssh import ssh_options
        status = self.status()["parts"].get(part)
        if status is None:
            raise EssdError(f"this instance has no {part}")
        if status["state"] != "running":
            raise EssdError(f"the guest {part} is not running: its state is "
                            f"{status['state']} {status['why']}".strip())
        guest = Guest(Path(self.config.guest_of(part)))
        return ["ssh", *ssh_options(guest, ssh_socket(self.folder, part)),
                *(["-t"] if tty else []), "-p", str(status["ssh_port"]),
                "root@127.0.0.1"]

    def run(self, command: str | Sequence[str], part: str = "host",
            timeout_s: float = 300, check: bool = True,
            send: bytes | None = None, apart: bool = False) -> Result:
        """Run one command (a shell line, or words) in a guest.

        With `apart`, the output is what the command has written to stdout alone, for
        callers that parse it.  What ssh itself has to say is never a part of the output.
        """
        line = command if isinstance(command, str) else shlex.join(command)
        try:
            done = subprocess.run([*self.ssh(part), "--",
                                   line if apart else f"exec 2>&1\n{line}"], check=False,
                                  input=send or b"", capture_output=True,
                                  timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.check()
            raise EssdError(f"in {part}: {line}: did not end within "
                            f"{timeout_s:.0f} s; see {console_log(self.folder, part)}"
                            ) from None
        output = done.stdout.decode(errors="replace")
        errors = done.stderr.decode(errors="replace")
        if check and done.returncode != 0:
            self.check()
            said = errors if done.returncode == SSH_FAILED or apart else output
            last = (said.strip() or output.strip()).splitlines()[-1:] or ["no output"]
            raise EssdError(f"in {part}: {line}: status {done.returncode}: "
                            f"{last[0]}; see {console_log(self.folder, part)}")
        return Result(line, done.returncode, output, part, errors if apart else "")

    def put(self, file: Path, target: str, part: str = "host") -> None:
        """Copy a file into a guest; an executable file stays executable."""
        mode = "755" if os.access(file, os.X_OK) else "644"
        name = shlex.quote(target)
        self.run(f"cat > {name} && chmod {mode} {name}", part,
                 send=file.read_bytes())
