# SPDX-License-Identifier: BSD-2-Clause
"""`essd capture`: the frames of a drive's port, as pcap, while they are sent.

capture_keeper.py, in the supervisor, has QEMU write the frames to a file.  This
program follows the file and writes whole packets to its output.
"""

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from ..base import show
from ..base.errors import EssdError
from ..drive import console, mgmt
from ..instance.instance import Instance

# Little-endian pcap with microseconds: magic, version 2.4, zone, accuracy, longest
# packet, Ethernet.
HEADER = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65536, 1)
PACKET = struct.Struct("<IIII")     # seconds, microseconds, bytes kept, bytes
CHUNK = 1 << 20
LOOK_MS = 20
STARTED_S = 60.0        # time limit of the supervisor's answer
ANSWER_S = 1.0          # for the drive to say how many queue pairs it has
FLUSH_S = 2.0           # how long a slow reader gets for the rest at the end
SECONDS_MAX = 1e8       # setitimer() takes about this much
KEEP_SIZE_AND_PUNCH = 1 | 2     # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE


class ReaderGone(EssdError):
    """The program that reads the output has closed it."""


class Follower:
    """Reads packets from a dump's file, of which the last one may be incomplete."""

    def __init__(self, path: Path, shift_us: int) -> None:
        self.file = open(path, "r+b", buffering=0)      # noqa: SIM115
        self.shift_us = shift_us
        self.at = len(HEADER)
        self.freed = 0

    def read(self) -> tuple[bytes, int]:
        """The next whole packets with the host's time, and their number."""
        data = os.pread(self.file.fileno(), CHUNK, self.at)
        out = bytearray()
        count = at = 0
        while len(data) - at >= PACKET.size:
            seconds, us, kept, size = PACKET.unpack_from(data, at)
            end = at + PACKET.size + kept
            if end > len(data):
                break
            now = seconds * 1000000 + us + self.shift_us
            out += PACKET.pack(now // 1000000, now % 1000000, kept, size)
            out += data[at + PACKET.size:end]
            at = end
            count += 1
        self.at += at
        return bytes(out), count

    def free(self) -> None:
        """Give back the disk space of what has been read."""
        if self.at - self.freed < CHUNK:
            return
        with contextlib.suppress(OSError, AttributeError):
            # Some filesystems cannot do this; the file is then replaced when it is full.
            libc = ctypes.CDLL(None)
            libc.fallocate64(self.file.fileno(), KEEP_SIZE_AND_PUNCH,
                             ctypes.c_int64(0), ctypes.c_int64(self.at))
        self.freed = self.at

    def close(self) -> None:
        self.file.close()


class Output:
    """Standard output or a file; an end is noticed also while nothing is written."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is None:
            self.descriptor = sys.stdout.fileno()
        else:
            try:
                self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            except OSError as error:
                raise EssdError(f"--write {path}: {error.strerror}") from None
        mode = os.fstat(self.descriptor).st_mode
        self.is_pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        self.poll = select.poll()
        self.poll.register(self.descriptor, 0)
        self.room = select.poll()
        self.room.register(self.descriptor, select.POLLOUT)
        self.waiting = b""

    @property
    def has_reader(self) -> bool:
        return not (self.is_pipe and self.poll.poll(0))

    def write_some(self, timeout_ms: int) -> None:
        """Write what the reader takes without making this process wait for long."""
        try:
            while self.waiting and (not self.is_pipe or self.room.poll(timeout_ms)):
                # A pipe with room takes PIPE_BUF bytes at once.
                most = select.PIPE_BUF if self.is_pipe else CHUNK
                taken = os.write(self.descriptor, self.waiting[:most])
                self.waiting = self.waiting[taken:]
                timeout_ms = 0
        except BrokenPipeError:
            raise ReaderGone from None
        except OSError as error:
            name = self.path or "standard output"
            why = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
            raise EssdError(f"{name} cannot be written: {why}") from None

    def close(self) -> None:
        if self.path is not None:
            os.close(self.descriptor)


class Client:
    """The connection to the supervisor, and what it has said."""

    def __init__(self, instance: Instance, port: int) -> None:
        try:
            self.connection = instance.connect()
        except OSError:
            raise EssdError(instance.not_running()) from None
        self.text = b""
        request = {"command": "capture", "part": instance.drive, "port": port}
        self.send(json.dumps(request).encode())
        instance.wait_answer(self.connection, STARTED_S)
        reply = json.loads(self.wait_line() or b"{}")
        if "return" not in reply:
            self.connection.close()
            raise EssdError(reply.get("error", "the supervisor ended"))

    def send(self, line: bytes) -> None:
        with contextlib.suppress(OSError):      # The supervisor has ended.
            self.connection.sendall(line + b"\n")

    def wait_line(self) -> bytes:
        while b"\n" not in self.text:
            more = self.connection.recv(4096)
            if not more:
                return b""
            self.text += more
        line, self.text = self.text.split(b"\n", 1)
        return line

    def events(self) -> Iterator[dict[str, object]]:
        """What the supervisor has said since the last call, without waiting."""
        while b"\n" in self.text or select.select([self.connection], [], [], 0)[0]:
            with contextlib.suppress(ConnectionResetError):
                line = self.wait_line()
                if line:
                    said = json.loads(line)
                    yield said if "event" in said else {"event": "end", "why": said["error"]}
                    if said.get("event") in ("file", "full"):
                        continue
                    return
            yield {"event": "end", "why": "the instance has ended"}
            return


class Capture:
    def __init__(self, client: Client, output: Output) -> None:
        self.client = client
        self.output = output
        self.follower: Follower | None = None
        self.is_full = False        # QEMU writes no more to the file
        self.why: str | None = None     # why the capture has ended; "": we ended it
        self.frames = 0
        self.gaps = 0

    def take(self, event: dict[str, object]) -> None:
        if event["event"] == "file":
            self.close()
            self.follower = Follower(Path(str(event["file"])), int(str(event["shift_us"])))
            self.is_full = False
        elif event["event"] == "full":
            self.is_full = True
        elif event["event"] == "end":
            self.why = str(event["why"])

    def copy(self) -> bool:
        """Copy a piece of the file; false if there was nothing new."""
        if self.follower is None:
            return False
        data, count = self.follower.read()
        self.frames += count
        self.output.waiting = data
        self.follower.free()
        return bool(data)

    def step(self) -> None:
        """Copy what is there, or wait a moment."""
        if not self.output.has_reader:
            raise ReaderGone
        if self.output.waiting:
            self.output.write_some(LOOK_MS)
        for event in self.client.events():
            self.take(event)
        if self.why is not None or self.output.waiting or self.copy():
            return
        if self.is_full:        # All of it has been read.
            self.is_full = False
            self.gaps += 1
            self.client.send(b"more")
        select.select([self.client.connection], [], [], LOOK_MS / 1000)

    def finish(self) -> None:
        """Copy the rest after QEMU has closed the file."""
        deadline = time.monotonic() + FLUSH_S
        while self.output.waiting or self.copy():
            before = len(self.output.waiting)
            self.output.write_some(LOOK_MS)
            if len(self.output.waiting) < before:
                deadline = time.monotonic() + FLUSH_S
            elif time.monotonic() > deadline:
                raise EssdError("the program that reads the capture takes no more: the end "
                                "of the capture is missing there")

    def close(self) -> None:
        if self.follower is not None:
            self.follower.close()
            self.follower = None

    def summary(self) -> str:
        words = f"{self.frames} frames"
        if self.gaps:
            words += (f"; frames are missing at {self.gaps} places, because the program that "
                      "reads the capture was too slow")
        return words


def check_output(instance: Instance, path: Path | None) -> None:
    if path is None and sys.stdout.isatty():
        raise EssdError("a capture is not text: write it to a file with --write FILE, or add "
                        "| wireshark -k -i -")
    parts = instance.status()["parts"]
    if parts.get(instance.drive, {}).get("state", "running") != "running":
        raise EssdError(console.off_words(instance))


def connected_before(instance: Instance) -> str:
    """What to say if the drive has queue pairs whose Connects are in no capture that
    begins now; "" if there are none, or the drive does not answer."""
    try:
        count = mgmt.ask(instance, "status", ANSWER_S)["queue-pairs"]
    except EssdError:
        return ""
    if not count:
        return ""
    return (f"{count} queue pairs were connected before this capture: Wireshark shows their "
            "frames as bare SENDs, READs and WRITEs, because only the connection's first "
            "frames say that it carries NVMe.  Connect the host once more during the capture "
            "to have NVMe decoded (docs/captures.md)")


def run(instance: Instance, port: int, path: Path | None, seconds: float) -> None:
    """Run `essd capture` until Ctrl-C, or for the given number of seconds."""
    show.only_data()
    check_output(instance, path)
    output = Output(path)
    output.waiting = HEADER
    has_ended = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal has_ended
        if has_ended:           # The rest does not come, or cannot be written.
            raise KeyboardInterrupt
        has_ended = True

    before = {number: signal.signal(number, stop)
              for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    client: Client | None = None
    try:
        advice = connected_before(instance)
        client = Client(instance, port)
        if seconds:
            signal.setitimer(signal.ITIMER_REAL, min(seconds, SECONDS_MAX))
        show.note(f"capturing port {port} of {instance.the_drive}; press Ctrl-C to end")
        if advice:
            show.note(advice)
        capture = Capture(client, output)
        follow(capture, lambda: has_ended)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        if client is not None:
            client.connection.close()
        output.close()


def follow(capture: Capture, is_over: Callable[[], bool]) -> None:
    """Copy frames until something ends the capture, and say what it was."""
    try:
        while capture.why is None and not is_over():
            capture.step()
        if capture.why is None:
            capture.client.send(b"end")
            deadline = time.monotonic() + FLUSH_S
            while capture.why is None and time.monotonic() < deadline:
                select.select([capture.client.connection], [], [], LOOK_MS / 1000)
                for event in capture.client.events():
                    capture.take(event)
        capture.finish()
    except ReaderGone:
        show.note(f"the program that reads the capture has ended: {capture.summary()}")
        return
    finally:
        capture.close()
    if capture.why:
        raise EssdError(f"{capture.why}: the capture ends after {capture.summary()}")
    show.note(f"captured {capture.summary()}")
