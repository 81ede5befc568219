# SPDX-License-Identifier: BSD-2-Clause
"""Effects of FEC and of the link partner that a host can observe.

The data sheet's example: the switch uses RS-FEC and a new drive uses FC-FEC, so there
is no link.  After the drive has been changed to RS-FEC, there is one.
"""

import json
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from essd.base import paths
from essd.drive import console, port
from essd.instance import steps
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.setup import setup
from essd.setup.setup import Wish

pytestmark = [pytest.mark.drive, pytest.mark.uml]

FEATURE = "0xd0"        # docs/nvme.md, "Vendor features"
FC, RS = 1, 2
SAVE = "--save"


def wait(true: Callable[[], object], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def type_line(instance: Instance, line: str) -> str:
    """Type one line on the drive's console; return the answer."""
    with socket.socket(socket.AF_UNIX) as uart:
        uart.settimeout(20)
        uart.connect(str(instance.folder / "drive/console"))
        uart.sendall(line.encode() + b"\r")
        answer = b""
        while b"essd> " not in answer:  # a log line may follow
            more = uart.recv(4096)
            assert more, answer
            answer += more
    return answer.decode()


def wait_carrier(job: Job, number: int, is_there: bool) -> None:
    """Wait until the host's card has or loses its carrier."""
    wait(lambda: steps.carrier(job, number) == is_there,
         f"port {number}: {'no' if is_there else 'still a'} carrier")


def set_partner(job: Job, number: int, **wish: object) -> None:
    port.change(job.instance, number, port.Wish(**wish))    # type: ignore[arg-type]


def link(job: Job, number: int) -> dict:
    return port.state(job.instance, number)


@pytest.fixture
def back_to_fc(job: Job) -> Iterator[Job]:
    yield job
    set_partner(job, 0, partner_fec="auto", partner_speed=25, ber=0.0)
    type_line(job.instance, "fec 0 fc")
    if "25 Gb/s" not in type_line(job.instance, "port 0"):
        set_partner(job, 1, partner_speed=25)
        type_line(job.instance, "speed 25")
    steps.clean_host(job)


def no_link_then_fixed_by(job: Job, fix: Callable[[], None]) -> None:
    set_partner(job, 0, partner_fec="rs")
    wait_carrier(job, 0, False)
    state = link(job, 0)
    assert (state["up"], state["reason"]) == (False, "FEC mismatch")
    assert steps.carrier(job, 1)
    result = job.instance.run(f"ping -c 1 -W 1 {job.addresses[0]}", check=False)
    assert result.status != 0

    fix()
    wait_carrier(job, 0, True)
    assert link(job, 0)["fec-in-use"] == "rs"
    steps.wait_target(job, 30)
    steps.discover(job)
    steps.connect(job, port=0)
    # The FEC is saved in flash, so it survives a power cycle.
    steps.clean_host(job)
    power_cycle(job)                    # of the drive: the switch stays as it is
    assert port.state(job.instance, 0)["partner-fec"] == "rs"
    wait(lambda: "FEC rs (saved: rs)" in type_line(job.instance, "port 0"),
         "RS-FEC was not saved", 60)
    assert link(job, 0)["fec-in-use"] == "rs"
    assert "FEC fc (saved: fc)" in type_line(job.instance, "port 1")


def power_cycle(job: Job) -> None:
    job.instance.ask("power-cut")
    job.instance.ask("power-on")


def test_a_drive_is_changed_to_rs_fec_on_the_console(back_to_fc: Job) -> None:
    job = back_to_fc

    def fix() -> None:
        assert "port 0: down: FEC mismatch" in type_line(job.instance, "port 0")
        assert "ok" in type_line(job.instance, "fec 0 rs")

    no_link_then_fixed_by(job, fix)
    assert b"port 0: link down: FEC mismatch" in console.log(job.instance)


def test_a_drive_is_changed_to_rs_fec_through_the_other_port(back_to_fc: Job) -> None:
    job = back_to_fc

    def fix() -> None:
        steps.connect(job, port=1)
        drive = job.controller()

        def read(select: int) -> int:
            output = job.run(f"nvme get-feature {drive} -f {FEATURE} -s {select} "
                             "--cdw11=0x0")
            found = re.search(r"value:\s*(?:0x)?([0-9a-f]+)", output, re.I)
            assert found, output
            return int(found[1], 16)

        assert read(0) == FC | 0xff << 8 | 5 << 16      # no link: FEC mismatch
        job.run(f"nvme set-feature {drive} -f {FEATURE} --value={RS} {SAVE}")
        assert read(0) == RS | RS << 8
        assert read(2) == RS                            # saved
        steps.clean_host(job)

    no_link_then_fixed_by(job, fix)


def test_io_survives_bit_errors_that_fec_does_not_correct(connected: Job,
                                              back_to_fc: Job) -> None:
    """FC-FEC at 10^-5 corrects many codewords; a few frames are lost and sent again."""
    job = connected
    before = link(job, 0)["counters"]
    set_partner(job, 0, seed=1, ber=1e-5)
    result = job.instance.run(
        f"fio --name=ber --filename={job.device()} --ioengine=libaio --direct=1 "
        "--rw=randwrite --bs=4k --iodepth=8 --size=4m --verify=crc32c "
        "--verify_fatal=1")
    assert "err= 0" in result.output
    after = link(job, 0)["counters"]
    assert after["aFECCorrectedBlocks"] > before["aFECCorrectedBlocks"] + 100


def test_the_host_sees_link_flaps_and_the_speed(back_to_fc: Job) -> None:
    job = back_to_fc
    changes = link(job, 0)["counters"]["linkChanges"]
    port.flap(job.instance, 0, 2)
    assert link(job, 0)["counters"]["linkChanges"] == changes + 4
    set_partner(job, 0, partner_speed=10)
    wait_carrier(job, 0, False)
    assert link(job, 0)["reason"] == "speed mismatch"
    set_partner(job, 0, partner_speed=25)
    wait_carrier(job, 0, True)


def test_both_ports_run_at_10_gigabits(back_to_fc: Job) -> None:
    """There is no link until the partners run at 10 Gb/s too."""
    job = back_to_fc
    type_line(job.instance, "speed 10")
    for number in (0, 1):
        wait_carrier(job, number, False)
        assert link(job, number)["reason"] == "speed mismatch"
        set_partner(job, number, partner_speed=10)
        wait_carrier(job, number, True)
    # One port alone cannot have another speed.
    assert "at once" in type_line(job.instance, "config set port.1.speed 25")
    refused = type_line(job.instance, "config save")
    assert "error: port.1.speed: 25 differs from port.0.speed, 10" in refused
    type_line(job.instance, "config discard")
    power_cycle(job)
    steps.wait_target(job)
    assert [(p["up"], p["speed"], p["fec-in-use"])
            for p in port.states(job.instance, None)] == [(True, 10, "fc")] * 2
    steps.discover(job)
    device = steps.connect(job, port=1)
    result = job.instance.run(steps.FIO.format(
        device=device, name="slow", options="--rw=randwrite --bs=16k --size=2m"))
    assert "err= 0" in result.output


def test_link_faults_are_reported(job: Job) -> None:
    """No partner is a local fault; a partner that receives nothing is a remote fault."""
    for wish, said in (({"partner_fault": True}, ("remote fault", False, True)),
                       ({"present": False}, ("no partner", True, False))):
        set_partner(job, 1, **wish)
        try:
            wait_carrier(job, 1, False)
            state = link(job, 1)
            assert (state["reason"], state["local-fault"],
                    state["remote-fault"]) == said
            told = type_line(job.instance, "port 1")
            assert f"port 1: down: {said[0]}" in told, told
            assert steps.carrier(job, 0)
        finally:
            set_partner(job, 1, partner_fault=False, present=True)
        wait_carrier(job, 1, True)
        state = link(job, 1)
        assert (state["up"], state["local-fault"], state["remote-fault"]) == (
            True, False, False)


def test_essd_port_changes_and_shows_the_ports(back_to_fc: Job) -> None:
    """The commands of the README have the effect that the host sees."""
    job = back_to_fc

    def essd(*words: str) -> str:
        done = subprocess.run([paths.TOP / "essd", "port", *words, "--name",
                               job.instance.name], text=True, capture_output=True,
                              check=False, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    shown = essd("0", "--partner-fec", "rs")
    assert re.search(r"^0 +down: FEC mismatch +25 Gb/s +FC-FEC +25 Gb/s, RS-FEC",
                     shown, re.M), shown
    wait_carrier(job, 0, False)
    essd("0", "--partner-fec", "auto")
    essd("1", "--down")
    wait_carrier(job, 1, False)
    first, second = json.loads(essd("--json"))
    assert (first["port"], first["up"], first["reason"]) == (0, True, "")
    assert (second["port"], second["up"], second["reason"]) == (1, False, "no cable")
    assert second["counters"].keys() >= {
        "aFramesReceivedOK", "aFrameCheckSequenceErrors", "aFECCorrectedBlocks",
        "aFECUncorrectableBlocks", "etherStatsUndersizePkts", "etherStatsOversizePkts"}
    essd("1", "--up")
    wait_carrier(job, 1, True)
    essd("0", "--flap", "2", "--ber", "1e-6")
    (after,) = json.loads(essd("0", "--json"))
    assert after["up"] and after["ber"] == 1e-6
    assert after["counters"]["linkChanges"] == first["counters"]["linkChanges"] + 4
    wait_carrier(job, 0, True)
    steps.ping(job)


def test_straps_choose_rs_fec() -> None:
    """The straps override the flash for both ports; a switch with RS-FEC gets a link."""
    from conftest import SESSION
    wish = Wish(name=f"{SESSION}-straps", host=False, size="512M",
                extra=["-machine", "straps=3", "-global", "essd-port.partner-fec=rs"])
    instance = Instance(wish.name)
    instance.stop()
    setup.forget(wish.name)
    try:
        instance.start(setup.configure(wish))
        wait(lambda: (instance.folder / "drive/console").exists()
             and "listening" in console.log(instance).decode(errors="replace"),
             "the drive does not start", 60)
        assert all(p["fec"] == "rs" for p in port.states(instance, None))
        assert "FEC rs (saved: fc)" in type_line(instance, "port 1")
    finally:
        instance.stop()
        setup.forget(wish.name)
