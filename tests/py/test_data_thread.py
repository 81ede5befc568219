# SPDX-License-Identifier: BSD-2-Clause
"""Who reads the cables and runs the RNIC (docs/decisions/0051).

Hart 0's thread does while the hart waits for an interrupt, and the main loop does while
the hart executes instructions, or has no thread of its own.  Hart 0 executes
tests/soc/main.c, while the test programs the devices over qtest.
"""

import json
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import test_cable_bursts
import test_port_media
import test_rnic
from test_cable_stream import is_listening, sent
from test_port_media import MEDIA, MIB, PORT0, READ, Machine, MediaQueue
from test_rnic import DATA, Rnic, start_rnic
from test_soc import qemu, trial  # noqa: F401

from essd.build import fw_build
from essd.storage import flash as fl

IDLE, HANG, COMPUTE, WRITES = 0, 3, 10, 11      # the straps, for tests/soc/main.c
WATCHDOG = 0x10002000
TCG = ("-accel", "tcg")
SINGLE = ("-accel", "tcg,thread=single")
ICOUNT = ("-accel", "tcg", "-icount", "shift=3")
LIST = 0x80000000 + (112 << 20)     # of the register writes for WRITES
DOORBELL = 0x120
OTHERS_DRAM = 0x80000000 + (128 << 20)      # above what tests/soc/main.c uses
FRAMES = 1000
ROUNDS = 20
SENT = 4
POWER_DONE = 0x1000104c
BURSTS = 60


class Cable:
    """The far end of a stream cable, which looks like the datagram cable of Machine."""

    def __init__(self, machine: Machine) -> None:
        machine.wait(lambda: is_listening(machine), "listening")
        self.socket = machine.connect("cable")
        machine.wait(lambda: not is_listening(machine), "accepted")
        self.data = b""

    def settimeout(self, seconds: float) -> None:
        self.socket.settimeout(seconds)

    def recv(self, _size: int) -> bytes:
        while len(self.data) < 4 or len(self.data) < 4 + int.from_bytes(self.data[:4]):
            more = self.socket.recv(1 << 16)
            assert more, "QEMU closed the cable's connection"
            self.data += more
        size = int.from_bytes(self.data[:4])
        frame, self.data = self.data[4:4 + size], self.data[4 + size:]
        return frame

    def sendto(self, frame: bytes, _to: str) -> None:
        self.socket.sendall(struct.pack("!I", len(frame)) + frame)


@pytest.fixture
def run(qemu: Path, trial: fw_build.Firmware, tmp_path: Path,  # noqa: F811
        monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Machine]]:
    """Start a machine whose hart 0 does what the straps say, with a stream cable."""
    for module in (test_port_media, test_rnic, test_cable_bursts):
        monkeypatch.setattr(module, "DRAM", OTHERS_DRAM)
    monkeypatch.chdir(tmp_path)
    machines: list[Machine] = []

    def new(straps: int, *options: str, accel: tuple[str, ...] = TCG,
            cable: str = "server=on", **paths: str) -> Machine:
        number = len(machines)
        flash, console = tmp_path / f"flash{number}", tmp_path / f"console{number}"
        fl.new_flash(trial, fl.Identity.random(), fl.Config()).save(flash)
        path = paths.get("path", f"m{number}/cable")
        medium = tmp_path / f"medium{number}"
        with open(medium, "wb") as file:
            file.truncate(64 * MIB)
        machine = Machine(
            qemu, tmp_path / f"m{number}", medium, "-M", f"straps={straps}",
            "-M", "port0-netdev=s", "-netdev",
            f"stream,id=s,{cable},addr.type=unix,addr.path={path}",
            "-chardev", f"file,id=console,path={console}", "-serial", "chardev:console",
            *options, accel=accel, flash=flash)
        machines.append(machine)
        until = b"soc: idle" if straps == IDLE else b"soc: trial %d" % straps
        machine.wait(lambda: until in console.read_bytes(), "the firmware starts")
        machine.write32(WATCHDOG + 0xc00, 0x1acce551)
        machine.write32(WATCHDOG, 0xffffffff)
        return machine

    yield new
    for machine in machines:
        machine.end()


def cabled(machine: Machine) -> Rnic:
    machine.cable = Cable(machine)
    return start_rnic(machine)


def exchange(rnic: Rnic, number: int) -> None:
    """An RDMA WRITE between two queue pairs; the test returns frames and ACKs."""
    data = bytes([number + 1]) * 5000
    rnic.m.write(DATA, data)
    rnic.post_write(number, len(data), DATA, DATA + 0x10000)
    assert rnic.completion() == (1000 + number, 0)
    assert rnic.m.read(DATA + 0x10000, len(data)) == data


@pytest.mark.parametrize("options", [(), ("-smp", "4")], ids=["1 hart", "4 harts"])
@pytest.mark.parametrize("straps", [IDLE, HANG, COMPUTE], ids=["waits", "hangs", "computes"])
def test_packets_are_acknowledged_whatever_the_hart_does(run, straps, options) -> None:
    rnic = cabled(run(straps, *options))
    for number in range(3):
        exchange(rnic, number)


@pytest.mark.parametrize("accel", [SINGLE, ICOUNT], ids=["one thread", "icount"])
def test_packets_are_acknowledged_without_a_thread_of_the_hart(run, accel) -> None:
    rnic = cabled(run(IDLE, accel=accel))
    for number in range(3):
        exchange(rnic, number)


def switches(machine: Machine, thread: int) -> int:
    status = Path(f"/proc/{machine.process.pid}/task/{thread}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def test_a_frame_for_a_waiting_hart_does_not_wake_the_main_loop(run) -> None:
    machine = run(IDLE)
    cabled(machine)
    hart = machine.ask("query-cpus-fast")[0]["thread-id"]
    before = [switches(machine, n) for n in (machine.process.pid, hart)]
    for _ in range(FRAMES):
        machine.cable.sendto(bytes(60), "")     # for another station
        time.sleep(0.0005)
    main, of_hart = (switches(machine, n) - n0 for n, n0 in zip(
        (machine.process.pid, hart), before, strict=True))
    assert of_hart > FRAMES / 4, "the hart's thread has not read the frames"
    assert main < FRAMES / 4


def test_a_hart_that_computes_takes_the_cables_back(run, tmp_path) -> None:
    """Without a register write, if the main loop has read them in the meantime."""
    trace = tmp_path / "trace"
    machine = run(COMPUTE, "-trace", "essd_data_reader", "-D", str(trace))
    rnic = cabled(machine)
    for number in range(3):
        exchange(rnic, number)
        machine.wait(lambda: trace.read_text().splitlines()[-1].endswith(" 1"), "taken back")


def test_packets_are_acknowledged_although_the_machine_stops_in_between(run) -> None:
    rnic = cabled(run(IDLE))
    for number in range(ROUNDS):
        data = bytes([number]) * 5000
        rnic.m.write(DATA, data)
        rnic.post_write(number, len(data), DATA, DATA + 0x10000)
        rnic.m.ask("stop")
        test_rnic.reflect(rnic.m)
        rnic.m.ask("cont")
        assert rnic.completion() == (1000 + number, 0)
        assert rnic.m.read(DATA + 0x10000, len(data)) == data


def test_a_reset_and_a_new_connection_are_followed_by_packets(run) -> None:
    machine = run(IDLE)
    exchange(cabled(machine), 0)
    machine.ask("system_reset")
    machine.ask("query-status")
    rnic = start_rnic(machine)
    exchange(rnic, 0)
    machine.cable.socket.shutdown(socket.SHUT_RDWR)
    machine.cable.socket.close()
    machine.cable = Cable(machine)
    exchange(rnic, 1)


def test_two_drives_flood_each_other(run) -> None:
    """Neither waits for the other to read, with sockets that are full both ways."""
    here = run(IDLE)
    there = run(IDLE, cable="server=off,reconnect-ms=20", path="m0/cable")
    here.wait(lambda: not is_listening(here), "connected")
    senders = []
    for machine in (here, there):
        test_cable_bursts.start_port(machine)
        senders.append(test_cable_bursts.Sender(machine))
    for _ in range(BURSTS):
        for sender in senders:
            sender.machine.wait(lambda s=sender: sent(s.machine) == s.posted, "sent")
            sender.post(test_cable_bursts.TX_RING)
    for sender in senders:
        sender.machine.wait(lambda s=sender: sent(s.machine) == s.posted, "the last are sent")


def let_hart_write(machine: Machine, *writes: tuple[int, int]) -> None:
    """Hart 0 writes these registers, and then executes instructions.

    It looks after the cables at the first write, so that the next ones find a batch that
    waits for more frames.
    """
    writes = ((test_rnic.RNIC + test_rnic.IRQ_ENABLE, 0), *writes)
    data = b"".join(struct.pack("<II", *write) for write in writes)
    machine.do(f"write {LIST + 4:#x} {len(data)} 0x{data.hex()}")
    machine.write32(LIST, len(writes))


def ready_to_send(machine: Machine, count: int) -> test_cable_bursts.Sender:
    """The port has frames in its ring, and waits for the doorbell."""
    machine.cable = Cable(machine)
    test_cable_bursts.start_port(machine)
    sender = test_cable_bursts.Sender(machine)
    machine.wait(sender.asleep, "the port waits for a doorbell")
    sender.put(count)
    return sender


def power_ends_by_a_rule(machine: Machine) -> tuple[int, int]:
    """Return the register write that cuts the power."""
    machine.ask("qom-set", path="/machine/faults", property="add",
                value="id=1 site=media do=power-cut argument=0")
    queue = MediaQueue(machine)
    machine.wait(lambda: machine.read(queue.PAGE + 0xc0, 1) == b"\1", "sleep")
    machine.write(queue.COMMANDS, struct.pack(
        "<BBHIQQQQII", READ, 0, 1, 8, 0, 0, 0, OTHERS_DRAM + queue.DATA, 4096, 0))
    machine.write(queue.PAGE, struct.pack("<I", 1))
    return MEDIA + DOORBELL, 1


def power_ends_with_the_capacitors(machine: Machine) -> tuple[int, int]:
    machine.ask("qom-set", path="/machine/sysctl", property="power-fail", value=True)
    return POWER_DONE, 1


@pytest.mark.parametrize("end", [power_ends_by_a_rule, power_ends_with_the_capacitors])
def test_frames_that_were_sent_before_the_power_ends_arrive(run, end) -> None:
    machine = run(WRITES, "-machine", "plp=" + (
        "on" if end is power_ends_with_the_capacitors else "off"))
    ready_to_send(machine, SENT)
    let_hart_write(machine, (PORT0 + DOORBELL, 1), end(machine))
    assert machine.process.wait(60) == -signal.SIGKILL
    for number in range(SENT):
        assert machine.cable.recv(0) == test_cable_bursts.frame(number)


def test_frames_that_were_sent_before_a_rule_of_the_cable_cuts_the_power_arrive(run) -> None:
    machine = run(IDLE)
    ready_to_send(machine, SENT)
    machine.ask("qom-set", path="/machine/faults", property="add",
                value=f"id=1 site=wire do=power-cut argument=0 nth={SENT}")
    machine.qtest.write(f"writel {PORT0 + DOORBELL:#x} 1\n")
    machine.qtest.flush()
    assert machine.process.wait(60) == -signal.SIGKILL
    for number in range(SENT - 1):
        assert machine.cable.recv(0) == test_cable_bursts.frame(number)
    assert machine.cable.socket.recv(1) == b""


def test_frames_arrive_before_others_hear_that_the_link_is_down(run) -> None:
    machine = run(WRITES)
    sender = ready_to_send(machine, SENT)
    for link in range(ROUNDS):
        let_hart_write(machine, (PORT0 + DOORBELL, 1), (PORT0 + 0x1c, 25000 << 8 | 1 << 4))
        for line in machine.qmp:
            event = json.loads(line)
            if event.get("event") == "ESSD_PORT_LINK" and not event["data"]["up"]:
                break
        machine.cable.settimeout(0)
        for number in range(sender.posted - SENT, sender.posted):
            assert machine.cable.recv(0) == test_cable_bursts.frame(number), link
        machine.write32(PORT0 + 0x1c, 25000 << 8 | 1 << 4 | 1)
        machine.wait(lambda: machine.read32(PORT0 + 0x18) & 1 == 1, "link")
        machine.wait(sender.asleep, "the port waits for a doorbell")
        sender.put(SENT)
