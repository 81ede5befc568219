# SPDX-License-Identifier: BSD-2-Clause
"""essd-switch with stream sockets in the place of drives and hosts."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from switch_bed import BROADCAST, Switch, frame, mac, running

from essd import prepare

Start = Callable[..., Switch]


@pytest.fixture(scope="session")
def program() -> Path:
    """The switch with sanitizers."""
    return prepare.native_program("native", "tools/switch/essd-switch", "the switch")


@pytest.fixture
def start(program: Path, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda *ports, **more: stack.enter_context(
            running(program, tmp_path, *ports, **more))


def run(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], check=False, text=True, capture_output=True,
                          timeout=60)


def test_a_frame_to_an_unknown_address_goes_to_all_other_ports(start: Start) -> None:
    a, b, c = start("", "", "").connect_all(3)
    a.send(frame(mac(2), mac(1)))
    assert b.receive() == c.receive() == frame(mac(2), mac(1))
    assert a.hears_nothing()


def test_a_frame_to_a_known_address_goes_to_its_port_alone(start: Start) -> None:
    switch = start("", "", "")
    a, b, c = switch.connect_all(3)
    b.send(frame(BROADCAST, mac(2)))
    assert a.receive() == c.receive()
    a.send(frame(mac(2), mac(1)))
    assert b.receive() == frame(mac(2), mac(1))
    assert c.hears_nothing()
    macs = switch.control.ask("macs")["macs"]
    assert sorted((m["mac"], m["port"], m["vlan"]) for m in macs) == [
        ("02:00:00:00:00:01", 0, 1), ("02:00:00:00:00:02", 1, 1)]
