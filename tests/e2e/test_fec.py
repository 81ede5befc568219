# SPDX-License-Identifier: BSD-2-Clause
"""FEC and the link partner as the host notices them.

The data sheet's story: the switch runs RS-FEC, the drive comes with FC-FEC,
there is no link; the drive is changed to RS-FEC, and there is one.
"""

import re
import socket
import time
from collections.abc import Callable, Iterator

import pytest

from essd import console, port, setup, steps
from essd.instance import Instance
from essd.setup import Wish
from essd.steps import Job

pytestmark = pytest.mark.drive

FEATURE = "0xc0"        # docs/nvme.md, "Vendor features"
FC, RS = 1, 2
SAVE = "--save"


def wait(true: Callable[[], object], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def type_line(instance: Instance, line: str) -> str:
    """One line to the drive's console, and its answer."""
    with socket.socket(socket.AF_UNIX) as uart:
        uart.settimeout(20)
        uart.connect(str(instance.folder / "console.sock"))
        uart.sendall(line.encode() + b"\r")
        answer = b""
        while b"essd> " not in answer:  # a log line may follow
            more = uart.recv(4096)
            assert more, answer
            answer += more
    return answer.decode()


def set_partner(job: Job, number: int, **wish: object) -> None:
    port.change(job.instance, number, port.Wish(**wish))    # type: ignore[arg-type]


def link(job: Job, number: int) -> dict:
    return port.state(job.instance, number)


@pytest.fixture
def back_to_fc(job: Job) -> Iterator[Job]:
    yield job
    set_partner(job, 0, partner_fec="auto", partner_speed=25, ber=0.0)
    type_line(job.instance, "fec 0 fc")
    steps.clean_host(job)


def no_link_then_fixed_by(job: Job, fix: Callable[[], None]) -> None:
    set_partner(job, 0, partner_fec="rs")
    wait(lambda: not steps.carrier(job, 0), "the host still sees a carrier")
    state = link(job, 0)
    assert (state["up"], state["reason"]) == (False, "FEC mismatch")
    assert steps.carrier(job, 1)
    result = job.instance.run(f"ping -c 1 -W 1 {job.addresses[0]}", check=False)
    assert result.status != 0

    fix()
    wait(lambda: steps.carrier(job, 0), "no carrier though both ends run RS-FEC")
    assert link(job, 0)["fec-in-use"] == "rs"
    steps.wait_target(job, 30)
    steps.discover(job)
    steps.connect(job, port=0)


def test_rs_switch_fc_drive_changed_on_the_console(back_to_fc: Job) -> None:
    job = back_to_fc

    def fix() -> None:
        assert "port 0: down: FEC mismatch" in type_line(job.instance, "port 0")
        assert "ok" in type_line(job.instance, "fec 0 rs")

    no_link_then_fixed_by(job, fix)
    assert b"port 0: link down: FEC mismatch" in console.log(job.instance)


def test_rs_switch_fc_drive_changed_through_the_other_port(back_to_fc: Job) -> None:
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
    # It is in the flash: a power cycle changes nothing.
    steps.clean_host(job)
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    wait(lambda: "FEC rs (saved: rs)" in type_line(job.instance, "port 0"),
         "RS-FEC was not saved", 60)


def test_bit_errors_are_corrected_or_survived(connected: Job,
                                              back_to_fc: Job) -> None:
    """FC-FEC at 10^-5: many codewords restored, some frames lost and sent again."""
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


def test_flaps_and_speed_are_noticed(back_to_fc: Job) -> None:
    job = back_to_fc
    changes = link(job, 0)["counters"]["linkChanges"]
    port.flap(job.instance, 0, 2)
    assert link(job, 0)["counters"]["linkChanges"] == changes + 4
    set_partner(job, 0, partner_speed=10)
    wait(lambda: not steps.carrier(job, 0), "the host still sees a carrier")
    assert link(job, 0)["reason"] == "speed mismatch"
    set_partner(job, 0, partner_speed=25)
    wait(lambda: steps.carrier(job, 0), "no carrier")


def test_straps_choose_rs_fec() -> None:
    wish = Wish(name="e2e-straps", host=False, size="512M",
                extra=["-machine", "straps=3"])
    instance = Instance(wish.name)
    instance.stop()
    setup.forget(wish.name)
    try:
        instance.start(setup.configure(wish))
        wait(lambda: (instance.folder / "console.sock").exists()
             and "listening" in console.log(instance).decode(errors="replace"),
             "the drive does not start", 60)
        assert all(p["fec"] == "rs" for p in port.states(instance, None))
        assert "FEC rs (saved: fc)" in type_line(instance, "port 1")
    finally:
        instance.stop()
        setup.forget(wish.name)
