# SPDX-License-Identifier: BSD-2-Clause
"""The key log of the system controller: lines for a character device, if there is one.

There is no firmware: the tests access the registers over qtest.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_i2c import load, save
from test_port_media import Machine, medium, qemu  # noqa: F401

KEY_LOG, KEY_LOG_OUT = 0x10001050, 0x10001054       # registers of hw-model/regs/sysctl.h
LONGEST = 256       # bytes of a line
Start = Callable[..., Machine]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def start(qemu: Path, tmp_path: Path, medium: Path,         # noqa: F811
          log: Path) -> Iterator[Start]:
    machines: list[Machine] = []

    def start_one(*options: str) -> Machine:
        machines.append(Machine(qemu, tmp_path / f"machine{len(machines)}", medium,
                                "-chardev", f"file,id=keys,path={log},append=on",
                                "-global", "essd-sysctl.key-log=keys", *options))
        return machines[-1]

    yield start_one
    for machine in machines:
        machine.end()


@pytest.fixture
def machine(start: Start) -> Machine:
    return start()


def put(machine: Machine, text: bytes) -> None:
    for byte in text:
        machine.write32(KEY_LOG_OUT, byte)


def test_lines_come_whole(machine: Machine, log: Path) -> None:
    log.write_bytes(b"earlier\n")
    assert machine.read32(KEY_LOG) == 1
    put(machine, b"LABEL 00 11")
    assert log.read_bytes() == b"earlier\n"
    put(machine, b"\nsecond")
    assert log.read_bytes() == b"earlier\nLABEL 00 11\n"
    machine.ask("system_reset")
    machine.wait(lambda: machine.ask("query-status") is not None and any(
        one["event"] == "RESET" for one in machine.events), "the reset")
    put(machine, b"third\n")
    assert log.read_bytes() == b"earlier\nLABEL 00 11\nthird\n"


def test_a_load_drops_what_was_written_before_it(start: Start, log: Path,
                                                 tmp_path: Path) -> None:
    save(start(), tmp_path / "state")
    machine = start("-incoming", "defer")
    put(machine, b"of another firmware ")
    load(machine, tmp_path / "state")
    put(machine, b"LABEL 00 11\n")
    assert log.read_bytes() == b"LABEL 00 11\n"


def test_a_line_that_is_too_long_is_dropped(machine: Machine, log: Path) -> None:
    longest = b"x" * (LONGEST - 1) + b"\n"
    put(machine, b"y" + longest)
    put(machine, longest)
    assert log.read_bytes() == longest


def test_without_a_device_nobody_keeps_it(qemu: Path, medium: Path,     # noqa: F811
                                          tmp_path: Path) -> None:
    machine = Machine(qemu, tmp_path / "machine", medium)
    assert machine.read32(KEY_LOG) == 0
    put(machine, b"nowhere\n")
    assert machine.read32(KEY_LOG) == 0
    machine.end()
