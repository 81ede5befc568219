# SPDX-License-Identifier: BSD-2-Clause
"""What a native hart does with firmware that fails, or that computes for long.

The image is tests/soc/native_trial.c, and the straps select what it does.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_soc import Machine

from essd.build import fw_build, qemu_build
from essd.storage import flash as fl

(WRITE, DIVIDE, STACK, LONG_STEP, COPY, SHORT_STEPS, JUMP, OVERWRITE,
 QUEUES) = range(1, 10)
ILLEGAL, LOAD_FAULT = 2, 5      # mcause
IDLE = "trial: idle"
LONG = "ms in one step, and nothing could stop it meanwhile"


@pytest.fixture(scope="module")
def image() -> Path:
    return fw_build.ensure_native_trial()


@pytest.fixture
def run(image: Path, tmp_path: Path) -> Iterator[Callable[[int], Machine]]:
    flash = tmp_path / "flash"
    fl.new_flash(fw_build.ensure_firmware(), fl.Identity.random(), fl.Config()).save(flash)
    found: list[Machine] = []

    def start(straps: int) -> Machine:
        found.append(Machine(
            qemu_build.ensure_qemu(), tmp_path, flash, name=f"machine{straps}",
            machine=f"essd,media=media,straps={straps},hart=native,hart-image={image}"))
        return found[-1]

    yield start
    for machine in found:
        machine.close()


@pytest.mark.parametrize(("straps", "cause", "value", "signalled"), [
    (WRITE, LOAD_FAULT, 0x10, 11), (COPY, LOAD_FAULT, 0x20, 11), (JUMP, LOAD_FAULT, 0x30, 11),
    (DIVIDE, ILLEGAL, 0, 8), (OVERWRITE, LOAD_FAULT, 0x40, 11)],
    ids=["write", "copy", "jump", "divide", "overwrite"])
def test_what_the_processor_refuses_is_a_trap_of_the_firmware(
        run: Callable[[int], Machine], straps: int, cause: int, value: int,
        signalled: int) -> None:
    machine = run(straps)
    log = machine.wait_for(IDLE)
    assert re.search(rf"panic: trap {cause} at 0x[0-9a-f]+, value 0x{value:x}\s", log)
    assert f"trial: {straps} after panic" in log
    assert f"trial: panic 1: cause {cause} value {value:x}" in log
    errors = machine.errors.read_text()
    assert re.search(rf"the firmware has failed at 0x[0-9a-f]+: signal {signalled}, address "
                     rf"0x{value:x}\n", errors)
    assert machine.ask("query-status")["status"] == "running"   # type: ignore[index]


def test_a_stack_that_is_too_small_is_a_trap_in_the_pages_before_it(
        run: Callable[[int], Machine]) -> None:
    machine = run(STACK)
    log = machine.wait_for(IDLE)
    trap = re.search(r"panic: trap 5 at 0x[0-9a-f]+, value 0x([0-9a-f]+)", log)
    bottom = re.search(r"stack ([0-9a-f]+)", log)
    assert trap and bottom
    assert 0 < int(bottom[1], 16) - int(trap[1], 16) <= 65536


def test_devices_find_nothing_in_the_pages_before_the_stack(
        run: Callable[[int], Machine], tmp_path: Path) -> None:
    machine = run(0)
    bottom = re.search(r"stack ([0-9a-f]+)", machine.wait_for(IDLE))
    assert bottom
    saved = tmp_path / "memory"
    machine.ask("pmemsave", val=int(bottom[1], 16) - 8192, size=16384, filename=str(saved))
    assert saved.read_bytes()[:8192] == bytes(8192)
    assert machine.ask("query-status")["status"] == "running"   # type: ignore[index]


def test_a_device_refuses_memory_before_the_stack(run: Callable[[int], Machine]) -> None:
    assert "trial: queues 0001" in run(QUEUES).wait_for(IDLE)


def test_a_step_that_computes_for_more_than_a_second_is_warned_of(
        run: Callable[[int], Machine]) -> None:
    machine = run(LONG_STEP)
    machine.wait_for(IDLE, 120)
    found = re.findall(rf"has computed for (\d+) {LONG}", machine.errors.read_text())
    assert len(found) == 1 and int(found[0]) > 1000


def test_a_step_during_which_the_computer_does_something_else_is_not_long(
        run: Callable[[int], Machine]) -> None:
    machine = run(SHORT_STEPS)
    for step in range(3):
        machine.wait_for_count("trial: step", 3 * step + 1)
        os.kill(machine.process.pid, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(machine.process.pid, signal.SIGCONT)
    machine.wait_for_count("trial: step", 12)
    assert LONG not in machine.errors.read_text()


def test_a_fault_of_the_machine_itself_ends_it(run: Callable[[int], Machine]) -> None:
    machine = run(0)
    machine.wait_for(IDLE)
    os.kill(machine.process.pid, signal.SIGSEGV)
    assert machine.process.wait(30) == -signal.SIGSEGV
