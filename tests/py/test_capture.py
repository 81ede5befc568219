# SPDX-License-Identifier: BSD-2-Clause
"""`essd capture` with the real supervisor, and a script instead of the drive's QEMU."""

import contextlib
import io
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_qemu import make_fake
from fake_supervisor import FakeSupervisor
from scapy.utils import RawPcapReader

from essd.base import paths
from essd.base.errors import EssdError
from essd.instance.config import Config, Drive, End, Host, Link
from essd.instance.instance import Instance
from essd.machine.drive import drive_command
from essd.machine.vm import guest_command
from essd.observe import capture
from essd.observe.capture import HEADER
from essd.setup.setup import captures
from essd.supervisor import capture_keeper, capture_rotation

VIRTUAL_S = 1000        # the fake machine's time at its start

# Its dump filters write numbered frames when they are asked for.
ANSWERS = """
import struct, time
dumps = {}
sent = 0
begin = time.time() - virtual_s
def add(told):
    file = open(told["file"], "wb", buffering=0)
    file.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65536, 1))
    dumps[told["id"]] = file, int(time.time())
for word in sys.argv:
    if word.startswith("filter-dump,"):
        add(dict(one.split("=") for one in word.split(",")[1:]))
def answer(name, told):
    global sent
    if name == "object-add":
        add(told)
    elif name == "object-del":
        dumps.pop(told["id"])
    elif name == "human-monitor-command":
        if told["command-line"].startswith("xp"):
            ns = int(1e9 * (time.time() - begin))
            return f"10130044: {ns & 0xffffffff:#010x} {ns >> 32:#010x}\\r\\n"
    elif name == "frames":
        for _ in range(told["count"]):
            us = int(1e6 * (time.time() - begin))
            frame = struct.pack("!I", sent).ljust(told["size"], b"x")
            sent += 1
            for file, start in dumps.values():
                us += 7     # Each filter reads the clock itself.
                file.write(struct.pack("<IIII", us // 1000000 + start, us % 1000000,
                                       len(frame), len(frame)) + frame[:told["size"] // 2])
                file.write(frame[told["size"] // 2:])
    elif name == "dumps":
        return sorted(dumps)
    elif name == "say":
        print(told["words"], flush=True)
    return {}
"""


class Lab:
    """An instance with a fake drive."""

    def __init__(self, folder: Path) -> None:
        fake = make_fake(folder / "qemu", ANSWERS, virtual_s=VIRTUAL_S)
        self.instance = Instance("unit")
        self.instance.start(Config(
            "unit", "", "tcg", [Link(0, ["10.0.0.10/24"])],
            drives={"drive": Drive(str(fake), "flash", "media", "raw", "nqn")}))
        self.instance.wait_started()
        self.processes: list[subprocess.Popen[bytes]] = []

    def ask(self, command: str, **arguments: object) -> object:
        return self.instance.ask("qmp", part="drive", execute=command, arguments=arguments)

    def frames(self, count: int, size: int = 100) -> None:
        self.ask("frames", count=count, size=size)

    def files(self) -> list[Path]:
        return list(self.instance.folder.glob("drive/live*"))

    def capture(self, *words: str) -> subprocess.Popen[bytes]:
        """Start essd capture; return when frames are captured."""
        process = subprocess.Popen(
            [sys.executable, "-m", "essd", "capture", "--name", "unit", *words],
            cwd=paths.TOP / "tools", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=os.environ)
        self.processes.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        assert b"capturing port 0 of the drive" in line, line + process.stderr.read()
        return process

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < deadline, what
            time.sleep(0.02)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    lab = Lab(tmp_path)
    yield lab
    for process in lab.processes:
        process.kill()
        process.wait(60)
    lab.instance.stop()


def packets(data: bytes) -> list[tuple[int, float]]:
    """Number and time of each packet of a capture; each must be whole."""
    found = []
    with RawPcapReader(io.BytesIO(data)) as reader:
        for packet, facts in reader:
            assert len(packet) == facts.caplen == facts.wirelen
            found.append((struct.unpack("!I", packet[:4])[0], facts.sec + facts.usec / 1e6))
    return found


def test_frames_arrive_while_they_are_sent_with_the_hosts_time(lab: Lab) -> None:
    process = lab.capture()
    assert process.stdout is not None
    assert process.stdout.read(24) == HEADER
    for number in range(3):
        before = time.time()
        lab.frames(1)
        seconds, us, size, _ = struct.unpack("<IIII", process.stdout.read(16))
        assert before - 0.5 < seconds + us / 1e6 < time.time() + 0.5
        assert struct.unpack("!I", process.stdout.read(size)[:4])[0] == number
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=60)
    assert process.returncode == 0 and rest == b""
    assert said == b"captured 3 frames\n"


@pytest.mark.parametrize(("status", "says"), [
    ({"queue-pairs": 4}, "4 queue pairs were connected before this capture"),
    ({"queue-pairs": 0}, ""), (None, "")])
def test_a_capture_that_begins_in_mid_connection_says_what_wireshark_cannot_know(
        status: dict[str, int] | None, says: str) -> None:
    with FakeSupervisor("mid-connection") as supervisor:
        supervisor.mgmt = {} if status is None else {"status": status}
        said = capture.connected_before(Instance("mid-connection"))
    assert said.startswith(says) and bool(said) == bool(says)
    assert not said or "docs/captures.md" in said


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_over_however_the_capture_ends(lab: Lab, how: int) -> None:
    process = lab.capture("--write", os.devnull)
    assert lab.ask("dumps") == ["live1"] and lab.files()
    process.send_signal(how)
    process.wait(60)
    lab.wait(lambda: lab.ask("dumps") == [] and lab.files() == [], "something is left over")


def test_a_file_gets_every_frame_that_was_sent(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "x.pcap"
    process = lab.capture("--write", str(file))
    for _ in range(20):
        lab.frames(500, 3000)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert [number for number, _ in packets(file.read_bytes())] == list(range(10000))


def test_a_capture_ends_after_the_given_seconds(lab: Lab) -> None:
    process = lab.capture("--seconds", "0.3")
    assert process.wait(60) == 0


def test_a_reader_that_ends_ends_the_capture_in_one_line(lab: Lab) -> None:
    process = lab.capture()
    assert process.stdout is not None and process.stderr is not None
    lab.frames(1)
    process.stdout.read(50)
    process.stdout.close()      # No more frames come, so that nothing is written.
    assert process.wait(60) == 0
    assert process.stderr.read() == \
        b"the program that reads the capture has ended: 1 frames\n"


@pytest.mark.parametrize("end, said", [
    (lambda lab: lab.instance.ask("power-cut"), "the power of the drive was cut"),
    (lambda lab: lab.instance.stop(), "the instance has ended"),
    (lambda lab: lab.ask("say", words="network dump write error - stopping dump"),
     "is the disk full?"),
])
def test_a_drive_that_ends_is_named_in_one_line(lab: Lab, end: Callable[[Lab], object],
                                                said: str) -> None:
    process = lab.capture()
    lab.frames(2)
    end(lab)
    data, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    (line,) = errors.decode().splitlines()
    assert line.startswith("essd: ") and said in line
    assert line.endswith("the capture ends after 2 frames")
    assert len(packets(data)) == 2


def test_a_drive_that_is_off_or_a_port_without_a_cable_is_refused(lab: Lab) -> None:
    def refused(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "essd", "capture", "--name", "unit", *words],
            cwd=paths.TOP / "tools", stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=60, env=os.environ)
        assert done.returncode == 1 and done.stdout == ""
        (line,) = done.stderr.splitlines()
        return line

    assert "drive has no cable at port 7" in refused("--port", "7")
    assert "--write /nowhere/x: No such file" in refused("--write", "/nowhere/x")
    lab.instance.ask("power-cut")
    assert refused() == "essd: the drive is off: ./essd power-on --name unit starts it"


def test_a_slow_reader_delays_nobody_and_uses_bounded_disk_space(
        lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    process = lab.capture()
    assert process.stdout is not None
    process.send_signal(signal.SIGSTOP)
    most = 0
    for _ in range(30):
        lab.frames(400, 9000)
        most = max(most, sum(path.stat().st_blocks * 512 for path in lab.files()))
        time.sleep(2 * capture_keeper.LOOK_S)
    assert most < capture_keeper.FILE_MAX + (16 << 20)
    assert lab.ask("dumps") == []
    process.send_signal(signal.SIGCONT)
    got = bytearray(process.stdout.read(64 << 20))
    # Having read everything, the client gets frames again.
    os.set_blocking(process.stdout.fileno(), False)

    def read_on() -> bool:
        got.extend(process.stdout.read() or b"")
        return lab.ask("dumps") == ["live2"]

    lab.wait(read_on, "the capture does not go on")
    lab.frames(5)
    process.send_signal(signal.SIGINT)
    os.set_blocking(process.stdout.fileno(), True)
    rest, said = process.communicate(timeout=60)
    found = [number for number, _ in packets(bytes(got) + rest)]
    assert b"frames are missing at 1 places" in said
    assert found[-5:] == list(range(12000, 12005))
    assert found[:-5] == list(range(len(found) - 5))


def test_what_has_been_read_uses_no_disk_space(lab: Lab) -> None:
    process = lab.capture("--write", os.devnull)
    for _ in range(40):
        lab.frames(400, 9000)       # 144 MB, more than FILE_MAX
        lab.wait(lambda: sum(path.stat().st_blocks * 512 for path in lab.files()) < 8 << 20,
                 "the file has not shrunk")
    assert lab.ask("dumps") == ["live1"]
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == b"captured 16000 frames\n"


# essd up --capture

def config(capture: bool, *ends: End, hosts: dict[str, Host] | None = None) -> Config:
    return Config("unit", "/guest", "tcg",
                  [Link(0, ["10.0.0.10/24"], capture=capture, ends=list(ends))],
                  {"drive": Drive("/qemu", "/flash", "/media", "raw", "nqn")}, hosts or {})


@pytest.mark.parametrize("ends", [
    (), (End("host", 0), End("drive", 0)), (End(outside="listen=/x"), End("drive", 0))])
def test_without_a_host_the_drive_writes_the_capture(tmp_path: Path,
                                                     ends: tuple[End, ...]) -> None:
    words = " ".join(drive_command(config(True, *ends), tmp_path))
    assert f"filter-dump,id=dump0,netdev=port0,maxlen=65536,file={tmp_path}/link0.pcap" in words
    assert "filter-dump" not in " ".join(drive_command(config(False, *ends), tmp_path))


def test_with_a_host_the_host_writes_the_capture(tmp_path: Path) -> None:
    both = config(True, hosts={"host": Host()})
    assert "filter-dump" not in " ".join(drive_command(both, tmp_path))
    words = " ".join(guest_command(both, "host", tmp_path))
    assert f"id=dump0,netdev=cable0,maxlen=65536,file={tmp_path}/link0.pcap" in words


def test_up_says_where_the_captures_are(tmp_path: Path,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert captures(config(True)) == [
        f"cable 0 is captured: {tmp_path}/essd/unit/link0.pcap"]
    assert captures(config(False)) == []


class Limited:
    """A lab whose cable is captured from the start, with a limit for the files."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.lab = Lab(folder)
        config = self.lab.instance.config
        self.lab.instance.stop()
        config.links[0].capture = True
        config.capture_bytes = limit
        self.lab.instance.start(config)
        self.lab.instance.wait_started()
        self.file = self.lab.instance.folder / "link0.pcap"

    def fill(self, name: str) -> None:
        """Send frames until there is a full file with this name."""
        self.lab.frames(200)
        # Frames that come while two filters write are in both files at first.
        self.lab.wait(lambda: (self.lab.frames(3), name in self.earlier())[1], "no new file")

    def earlier(self) -> list[str]:
        return [file.name for file in capture_rotation.numbered(self.file)]

    def found(self) -> list[tuple[int, float]]:
        """Number and time of the frames in all files."""
        return [entry for file in (*capture_rotation.numbered(self.file), self.file)
                for entry in packets(file.read_bytes())]


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Limited]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    limited = Limited(tmp_path, 20000)
    yield limited
    limited.lab.instance.stop()


def test_a_full_capture_is_continued_in_a_new_file_without_gap_or_repetition(
        limited: Limited) -> None:
    began = time.time()
    for count in range(1, 4):
        limited.fill(f"link0-{count}.pcap")
    limited.lab.frames(10)
    ended = time.time()
    limited.lab.instance.ask("power-cut")
    limited.lab.wait(lambda: not limited.file.with_suffix(".next").exists(), "two files")
    found = limited.found()
    assert limited.earlier() == ["link0-1.pcap", "link0-2.pcap", "link0-3.pcap"]
    assert [number for number, _ in found] == list(range(len(found))) and len(found) > 600
    times = [when for _, when in found]
    # A later filter's times are ahead of the first one's, if nobody corrects them.
    assert times == sorted(times) and times[-1] - times[0] < ended - began
    for name in limited.earlier():
        assert 20000 < (limited.file.with_name(name)).stat().st_size < 200000


def test_the_oldest_files_of_a_capture_are_deleted(limited: Limited) -> None:
    for count in range(1, 7):
        limited.fill(f"link0-{count}.pcap")
    assert limited.earlier() == [f"link0-{n}.pcap" for n in (3, 4, 5, 6)]


def test_a_capture_that_fills_up_as_the_drive_ends_is_whole(limited: Limited) -> None:
    limited.lab.frames(200)
    limited.lab.wait(limited.file.with_suffix(".next").exists, "no second filter")
    limited.lab.instance.ask("power-cut")
    assert not limited.file.with_suffix(".next").exists()
    assert [number for number, _ in limited.found()] == list(range(200))


@pytest.mark.parametrize("text, size", [("0", 0), ("64K", 65536), ("1G", 1 << 30),
                                        ("64m", 64 << 20)])
def test_the_limit_of_captures_is_a_size(text: str, size: int) -> None:
    assert capture_rotation.parse_limit(text) == size


@pytest.mark.parametrize("text", ["1K", "x", "-1", "", "64 M", "1T"])
def test_a_limit_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(EssdError, match="--capture-size .*: write a size of at least 64K"):
        capture_rotation.parse_limit(text)


def test_a_power_cycle_keeps_the_captures_so_far(tmp_path: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    lab = Lab(tmp_path)
    try:
        with contextlib.suppress(EssdError):
            lab.instance.stop()
        told = lab.instance.config
        told.links[0].capture = True
        lab.instance.start(told)
        lab.instance.wait_started()
        for number in range(2):
            (lab.instance.folder / "link0.pcap").write_text(f"run {number}")
            lab.instance.ask("power-cut")
            lab.instance.ask("power-on")
        kept = sorted(lab.instance.folder.glob("link0-*.pcap"))
        assert [file.read_text() for file in kept] == ["run 0", "run 1"]
    finally:
        lab.instance.stop()
