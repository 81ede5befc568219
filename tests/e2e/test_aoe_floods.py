# SPDX-License-Identifier: BSD-2-Clause
"""More stations of AoE than the drive has room for, beside a host that verifies its data.

The host is at port 0.  This program is at port 1, and sends what 1,000 stations would:
discoveries, commands, and frames that are wrong.  Each frame gets a right answer, an error
of the protocol, or nothing, and moves one counter of the drive.
"""

import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import uart_dialogue

from essd.drive import mgmt, port
from essd.instance import steps
from essd.instance.steps import Job
from essd.machine.outside import Outside

pytestmark = [pytest.mark.drive, pytest.mark.uml]

DISCOVERERS, STATIONS, COMMANDS, WRONG = 1000, 64, 16, 100
ROUNDS = 3
ETHERTYPE = b"\x88\xa2"
SHELF, OTHER_SHELF = 7, 8
ATA, CONFIG, UNKNOWN = 0, 1, 9
IS_ANSWER, IS_ERROR = 0x08, 0x04
HEADER = struct.Struct(">BBHBBI")
ATA_AT, ATA_LEN, DATA_LEN = 14 + 10, 12, 1024
LENGTH = struct.Struct(">I")
QUIET_S = 1.0           # Nothing more comes after so long.
FIRST_ANSWER_S = 60.0
# Other programs may keep the drive from a processor for longer than the 5 s that
# Linux waits for the answer to a Keep Alive.  Commands of fio still have 30 s.
PATIENT = "--keep-alive-tmo=60"
FIO = ("fio --name=beside --filename={device} --direct=1 --ioengine=libaio --bs=4k --iodepth=4 "
       "--rw=randwrite --size=4m --verify=crc32c --verify_fatal=1 --verify_backlog=64 "
       "--time_based --runtime=600")


def mac(number: int) -> bytes:
    return b"\x02\xae\xf1\x00" + struct.pack(">H", number)


def request(number: int, command: int, tag: int, shelf: int = SHELF, slot: int = 0,
            flags: int = 0x10) -> bytes:
    """A frame of a station up to its AoE header, for the drive."""
    return (b"\xff" * 6 + mac(number) + ETHERTYPE
            + HEADER.pack(flags, 0, shelf, slot, command, tag))


def discovery(number: int) -> bytes:
    return request(number, CONFIG, 0, 0xffff, 0xff) + bytes(8)


def read(number: int, tag: int) -> bytes:
    """READ SECTORS EXT of two sectors."""
    return request(number, ATA, tag) + bytes([0x40, 0, 2, 0x24, tag % COMMANDS * 2]) + bytes(7)


class Wire:
    """The cable of port 1, whose frames this program sends and receives."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.rest = b""

    def send(self, frames: list[bytes]) -> None:
        self.socket.settimeout(FIRST_ANSWER_S)
        whole = [frame.ljust(60, b"\0") for frame in frames]
        self.socket.sendall(b"".join(LENGTH.pack(len(frame)) + frame for frame in whole))

    def frames(self) -> Iterator[bytes]:
        """The frames that come until there is silence."""
        while True:
            while len(self.rest) >= LENGTH.size and \
                    len(self.rest) >= (end := LENGTH.size + LENGTH.unpack_from(self.rest)[0]):
                frame, self.rest = self.rest[LENGTH.size:end], self.rest[end:]
                yield frame
            self.socket.settimeout(QUIET_S)
            try:
                more = self.socket.recv(1 << 16)
            except TimeoutError:
                return
            assert more, "the drive has closed the cable"
            self.rest += more

    def answers(self) -> list[bytes]:
        return [frame for frame in self.frames() if frame[12:14] == ETHERTYPE]


@dataclass
class Flood:
    job: Job
    wire: Wire

    def counters(self) -> dict[str, int]:
        """What AoE has counted, and the frames for which port 1 had no room."""
        return {**mgmt.ask(self.job.instance, "counters")["aoe"],
                "rxDropped": port.state(self.job.instance, 1)["counters"].get("rxDropped", 0)}

    def play(self, frames: list[bytes]) -> tuple[list[bytes], dict[str, int]]:
        """Send frames; return the answers, and by how much counters have grown."""
        before = self.counters()
        self.wire.send(frames)
        answers = self.wire.answers()
        grown = {name: value - before[name] for name, value in self.counters().items()
                 if value != before[name]}
        assert grown.pop("received") + grown.get("rxDropped", 0) == len(frames), grown
        assert grown.pop("sent", 0) == len(answers), grown
        return answers, grown


@pytest.fixture
def flood(booted: Callable[..., Job], tmp_path: Path) -> Flood:
    """A drive that exports namespace 1, and a host that verifies what it writes there."""
    path = tmp_path / "port1"
    job = booted(size="64M", outside=(None, Outside("listen", str(path))))
    # The host's own driver, if it has one, leaves the counters alone.
    job.quiet("[ ! -e /dev/etherd/interfaces ] || echo none > /dev/etherd/interfaces")
    for line in ("config set aoe.export 1", f"config set aoe.shelf {SHELF}", "config save"):
        assert uart_dialogue.ask(job.instance, line)[-1].startswith("ok")
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)
    device = steps.connect(job, options=PATIENT)
    job.quiet(f"dmesg -C; (({FIO.format(device=device)} > /tmp/fio.txt 2>&1; "
              "echo $? > /tmp/fio.end) &) < /dev/null > /dev/null 2>&1")
    return Flood(job, Wire(path))


def dropped(grown: dict[str, int]) -> int:
    """Frames for which there was no room: in the port's ring, or in AoE's pools."""
    return grown.pop("rxDropped", 0) + grown.pop("dropped-full", 0)


def discover(flood: Flood) -> None:
    """Each query is answered once, or dropped because others are being answered."""
    for _ in range(ROUNDS):
        answers, grown = flood.play([discovery(n) for n in range(DISCOVERERS)])
        assert len({frame[:6] for frame in answers}) == len(answers)
        for frame in answers:
            assert HEADER.unpack_from(frame, 14)[:5] == (0x10 | IS_ANSWER, 0, SHELF, 0, CONFIG)
        print(f"{len(answers)} of {DISCOVERERS} discoveries answered")
        assert len(answers) + dropped(grown) == DISCOVERERS
        assert len(answers) >= 32 and not grown, grown


def use_disk(flood: Flood) -> None:
    """Each station repeats its commands until they are answered, and all of them are."""
    left = {(n, tag) for n in range(STATIONS) for tag in range(COMMANDS)}
    while left:
        sent = sorted(left)
        answers, grown = flood.play([read(*one) for one in sent])
        for frame in answers:
            number, = struct.unpack_from(">H", frame, 4)
            flags, error, *_, tag = HEADER.unpack_from(frame, 14)
            assert frame[:6] == mac(number) and (flags, error) == (0x10 | IS_ANSWER, 0)
            assert len(frame) == ATA_AT + ATA_LEN + DATA_LEN and frame[ATA_AT + 3] == 0x40
            left.remove((number, tag))      # KeyError: it was answered twice
        print(f"{len(answers)} of {len(sent)} reads answered")
        assert grown.pop("reads") == len(answers)
        assert len(answers) + dropped(grown) == len(sent)
        assert answers and not grown, grown


def be_wrong(flood: Flood) -> None:
    """What is wrong gets nothing, or the protocol's error, and moves one counter."""
    kinds: list[tuple[str, Callable[[int], bytes]]] = [
        ("dropped-malformed", lambda n: request(n, ATA, n, flags=0x10 | IS_ANSWER) + bytes(40)),
        ("dropped-malformed", lambda n: request(n, CONFIG, n, 0xffff, 0xff)
         + struct.pack(">HHBBH", 0, 0, 0, 0x03, 0)),        # set the string of all devices
        ("dropped-not-ours", lambda n: request(n, ATA, n, OTHER_SHELF) + bytes(40)),
        ("dropped-not-ours", lambda n: request(n, ATA, n, slot=1 + n % 200) + bytes(40)),
        ("refused", lambda n: request(n, UNKNOWN, n) + bytes(40)),
        ("refused", lambda n: request(n, ATA, n) + bytes([0x40, 0, 200, 0x24]) + bytes(40)),
        ("refused", lambda n: request(n, ATA, n, flags=0x20) + bytes(40)),
    ]
    for counter, make in kinds:
        answers, grown = flood.play([make(n) for n in range(WRONG)])
        assert grown == {counter: WRONG}, (counter, grown)
        assert len(answers) == (WRONG if counter == "refused" else 0)
        for frame in answers:
            assert frame[14] & (IS_ANSWER | IS_ERROR) == IS_ANSWER | IS_ERROR and frame[15]


def test_floods_of_stations_disturb_nobody(flood: Flood) -> None:
    job = flood.job
    for what in (discover, use_disk, be_wrong):
        what(flood)
        assert job.quiet("cat /tmp/fio.end 2>/dev/null; true") == "", job.quiet("cat /tmp/fio.txt")
    job.quiet("pkill -INT -x fio")
    job.quiet("for n in $(seq 600); do [ -e /tmp/fio.end ] && exit 0; sleep 0.1; done; exit 1")
    report = job.quiet("cat /tmp/fio.txt")
    assert "err= 0" in report and "bad magic" not in report, report
    said = job.quiet("dmesg | grep -iE 'nvme.*(error|timeout|reconnect)'; true")
    assert said == "", said
