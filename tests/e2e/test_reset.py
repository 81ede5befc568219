# SPDX-License-Identifier: BSD-2-Clause
"""The effect of a drive's reset on hosts that are connected to it.

The reset drive has no queue pairs, and its QPNs begin anew.  Still, a host's first
connect must succeed, and the host's old associations must recover by themselves.
"""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from test_save_load import verified_io

from essd.base import paths
from essd.debug import crash, telemetry
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = pytest.mark.uml

JUMP_TO_ITSELF = "01a0"     # c.j 0
WFI = "73005010"
PC = "20"                   # number of pc in gdb's list, hexadecimal
LONGEST_WAIT_S = 60
PROVOKES = paths.TOP / "firmware/app/board_crash.c"
FAST_S = 20                 # Linux waits 60 s for a command that has no answer


def two_associations(job: Job) -> None:
    """Make an association through each port, the second one as another host."""
    steps.connect(job, port=0)
    connect_as_other_host(job, port=1)


def connect_as_other_host(job: Job, port: int) -> None:
    other = "11111111-2222-4333-8444-555555555555"
    job.run(f"nvme connect -t rdma -a {job.addresses[port]} -s 4420 -n {job.nqn} "
            f"--hostid {other} --hostnqn nqn.2014-08.org.nvmexpress:uuid:{other}")


def live_controllers(job: Job) -> int:
    return job.quiet("cat /sys/class/nvme/nvme*/state").split().count("live")


def wait_live(job: Job, count: int) -> None:
    deadline = time.monotonic() + LONGEST_WAIT_S
    while live_controllers(job) != count:
        assert time.monotonic() < deadline, job.quiet("dmesg | tail -n 30")
        time.sleep(0.3)


def touch(job: Job) -> None:
    """Do I/O through every controller, so that the host notices the reset."""
    job.quiet("for d in /dev/nvme*n1; do dd if=$d of=/dev/null bs=4k count=1 "
              "iflag=direct & done; wait")


@pytest.mark.drive
@pytest.mark.parametrize("how", ["reset", "power"])
def test_first_connect_after_a_reset_succeeds(job: Job, how: str) -> None:
    two_associations(job)
    assert live_controllers(job) == 2
    if how == "reset":
        job.instance.ask("reset")
    else:
        job.instance.ask("power-cut")
        job.instance.ask("power-on")
    # Connect once, while the host still has the old associations.
    job.run(f"nvme connect -t rdma -a {job.addresses[0]} -s 4420 -n {job.nqn} -D")
    assert live_controllers(job) >= 1
    # The old associations recover by themselves.
    touch(job)
    wait_live(job, 3)
    touch(job)
    steps.clean_host(job)


def test_io_survives_the_hosts_own_resets_of_its_controller(connected: Job) -> None:
    """A controller is disabled only when no earlier write can take effect (NVMe 1.4 7.3.2).

    So the data that the host writes again after the reset is what it reads back.
    """
    job = connected
    with verified_io(job) as fio:
        for _ in range(3):
            assert not fio.done()
            job.run(f"nvme reset {job.controller()}")
            wait_live(job, 1)


@pytest.mark.drive
def test_a_host_recovers_from_its_own_subsystem_reset_on_both_ports(job: Job) -> None:
    """The requesting controller is reset as soon as its command is answered.

    The other one finds its connection ended and connects again after 10 s.
    """
    steps.connect(job, port=0)
    steps.connect(job, port=1)
    wait_live(job, 2)
    controllers = job.quiet("cd /sys/class/nvme && ls -d nvme*").split()
    assert len(controllers) == 2
    for asking in controllers:
        job.run(f"nvme subsystem-reset /dev/{asking}")
        wait_live_again(job, asking, FAST_S)
        touch(job)
        wait_live(job, 2)
        touch(job)
    steps.clean_host(job)


def wait_live_again(job: Job, controller: str, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while job.quiet(f"cat /sys/class/nvme/{controller}/state").strip() != "live":
        assert time.monotonic() < deadline, job.quiet("dmesg | tail -n 30")
        time.sleep(0.3)


@contextmanager
def debugger(job: Job) -> Iterator["Gdb"]:
    path = job.instance.folder / "drive/gdb"
    said = ""
    if not path.exists():       # it listens again when a debugger has left
        said = job.instance.ask(
            "qmp", part="drive", execute="human-monitor-command", arguments={
                "command-line": f"gdbserver unix:{path},server=on,wait=off"})
    gdb = Gdb(str(path), str(said))
    try:
        yield gdb
    finally:
        gdb.file.close()
        gdb.socket.close()


class Gdb:
    """A minimal client of gdb's protocol, used to break the firmware."""

    def __init__(self, path: str, said: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        try:
            self.socket.connect(path)
        except OSError as error:
            raise AssertionError(f"{error}: {said}") from None
        self.file = self.socket.makefile("rb")

    def ask(self, text: str) -> str:
        data = text.encode()
        self.socket.sendall(b"$%s#%02x" % (data, sum(data) & 255))
        while self.file.read(1) != b"$":
            pass
        answer = b""
        while (byte := self.file.read(1)) != b"#":
            answer += byte
        self.file.read(2)
        self.socket.sendall(b"+")
        return answer.decode()


def change_sleep(job: Job, code: str) -> int:
    """Overwrite the instruction behind the `wfi` in which the firmware sleeps.

    The handlers of a crash do not execute it.  If it were an instruction of, say,
    memcpy(), they would hang or trap themselves.
    """
    deadline = time.monotonic() + LONGEST_WAIT_S
    while True:
        with debugger(job) as gdb:
            at = int.from_bytes(bytes.fromhex(gdb.ask("p" + PC)), "little")
            is_asleep = gdb.ask(f"m{at - 4:x},4") == WFI
            if is_asleep:
                assert gdb.ask(f"M{at:x},2:{code}") == "OK"
            assert gdb.ask("D") == "OK"
        if is_asleep:
            return at
        assert time.monotonic() < deadline


def restarts(job: Job, count: int) -> list[str]:
    deadline = time.monotonic() + LONGEST_WAIT_S
    while True:
        found = job.instance.status()["parts"]["drive"]["restarts"]
        if len(found) >= count:
            return list(found)
        assert time.monotonic() < deadline
        time.sleep(0.1)


def wait_console(job: Job, text: str) -> None:
    """Wait for a line on the console; the reset is reported before the drive is up again."""
    file = job.instance.folder / "drive/console.log"
    deadline = time.monotonic() + LONGEST_WAIT_S
    while text not in (said := file.read_text(errors="replace")):
        assert time.monotonic() < deadline, said
        time.sleep(0.1)


def raw_telemetry_of(job: Job, area: int) -> bytes:
    """The dump that the drive has made by itself, fetched with nvme-cli."""
    job.quiet(f"nvme telemetry-log {job.controller()} --output-file=/tmp/dump.bin "
              f"--controller-init --data-area={area}")
    return bytes.fromhex(job.quiet("od -An -v -tx1 /tmp/dump.bin | tr -d ' \\n'"))


def telemetry_of(job: Job) -> telemetry.Dump:
    return telemetry.parse(raw_telemetry_of(job, area=1))


@contextmanager
def trace_reader(job: Job) -> Iterator[None]:
    """Somebody wants trace events, so the firmware records them."""
    command = [str(paths.TOP / "essd"), "trace", "--name", job.instance.name, "--events",
               "all", "--output", os.devnull]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert "tracing" in process.stderr.readline()
            yield
        finally:
            process.kill()


@pytest.mark.drive
def test_hanging_or_trapping_firmware_restarts_and_is_reported(booted) -> None:
    """The host's I/O survives both restarts, and every report mentions them."""
    job = booted()
    steps.connect(job)
    at = change_sleep(job, JUMP_TO_ITSELF)
    assert restarts(job, 1) == ["watchdog"]
    wait_console(job, "reset by watchdog")
    touch(job)
    wait_live(job, 1)
    (hang,) = crash.in_drive(job.instance)
    assert (hang.cause, hang.registers[0]) == ("watchdog", at)
    change_sleep(job, "0000")       # an illegal instruction
    last = restarts(job, 2)[1]
    assert last.startswith("firmware: panic: trap 2 at"), last
    touch(job)
    wait_live(job, 1)
    wait_console(job, "reset by panic")
    dump = telemetry_of(job)
    assert dump.page == "controller-initiated" and dump.available
    (panic,) = (found.value() for found in dump.sections if found.name == "panic")
    assert (panic["kind"], panic["mcause"]) == ("trap", 2)
    with trace_reader(job):
        touch(job)
        crash.provoke(job.instance, "assertion")
    touch(job)
    wait_live(job, 1)
    fetched = job.instance.folder / "fetched"
    fetched.write_bytes(raw_telemetry_of(job, area=3))
    (of_host,) = crash.in_file(fetched)
    dumps = crash.in_drive(job.instance)
    assert [each.cause for each in dumps] == ["assertion", "trap", "watchdog"]
    assert of_host.registers == dumps[0].registers
    assert of_host.trace_records == dumps[0].trace_records
    assert 0 < dumps[0].trace_records <= 256
    done = subprocess.run([str(paths.TOP / "essd"), "dump", "--name", job.instance.name,
                           "--json"], check=True, capture_output=True, text=True, timeout=120)
    told = json.loads(done.stdout)
    assert told["cause"] == "assertion" and told["backtrace"]
    assert told["trace-records"] == dumps[0].trace_records
    frames = crash.backtrace(of_host, crash.symbols(of_host, None))
    line, = [number for number, text in enumerate(PROVOKES.read_text().splitlines(), 1)
             if "ASSERT(hal_now_us() ==" in text]
    assert (frames[1]["function"], frames[1]["file"], frames[1]["line"]) == (
        "provoke_assertion", "firmware/app/board_crash.c", line)
    assert frames[-2]["function"] == "arch_main"
    with pytest.raises(Exception, match="restarted by itself"):
        job.instance.check()
    steps.disconnect(job)
