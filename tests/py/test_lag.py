# SPDX-License-Identifier: BSD-2-Clause
"""essd-lag in QEMU, without firmware: an aggregate is saved, and a new machine resumes
it with both cables or with one.
"""

import signal
from pathlib import Path

import pytest
from test_port_media import (  # noqa: F401
    PORT0, Machine, medium, qemu, start, start_port)

LAG = 0x10120000
PORT1 = PORT0 + 0x10000

# hw-model/regs/lag.h
CTRL, MEMBERS, ACTIVE, STATUS, QUIET, COUNTERS = 0x10, 0x14, 0x18, 0x1c, 0x24, 0x100
STANDBY, DISTRIBUTE, FOLLOW = 1, 2, 1 << 4
BOTH = 3 | 3 << 8       # collect and distribute; links and usable
MOVES = COUNTERS + 8 * 5


@pytest.fixture
def cabled(start, tmp_path: Path):  # noqa: F811
    """Like `start`, but port 1 has a cable too."""
    count = iter(range(9))

    def new(*options: str) -> Machine:
        n = next(count)
        return start("-machine", "port1-netdev=n1", "-netdev",
                     "dgram,id=n1,local.type=unix,remote.type=unix,"
                     f"local.path={tmp_path}/near{n},remote.path={tmp_path}/far{n}",
                     *options)
    return new


def form(machine: Machine, mode: int) -> None:
    for port in (PORT0, PORT1):
        machine.write32(port + 0x1c, 25000 << 8 | 1 << 4 | 1)
    machine.write32(LAG + MEMBERS, BOTH)
    machine.write32(LAG + CTRL, mode)
    assert machine.read32(LAG + STATUS) == BOTH


def save(machine: Machine, state: Path) -> None:
    machine.ask("stop")
    machine.ask("migrate", uri=f"file:{state}")
    machine.wait(lambda: machine.ask("query-migrate").get("status") == "completed",
                 "save")
    machine.end(signal.SIGTERM)


def load(machine: Machine, state: Path) -> None:
    machine.ask("migrate-incoming", uri=f"file:{state}")
    machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    machine.ask("cont")


@pytest.mark.parametrize("mode", [STANDBY | FOLLOW, DISTRIBUTE])
def test_a_saved_aggregate_resumes(cabled, tmp_path: Path, mode: int) -> None:
    machine = cabled()
    form(machine, mode)
    machine.write32(LAG + QUIET, 250)
    machine.write32(LAG + ACTIVE, 1)
    save(machine, tmp_path / "state")
    machine = cabled("-incoming", "defer")
    load(machine, tmp_path / "state")
    assert [machine.read32(LAG + at) for at in (CTRL, MEMBERS, ACTIVE, STATUS, QUIET)] \
        == [mode, BOTH, 1, BOTH, 250]
    assert machine.read32(LAG + MOVES) == 0


def test_an_aggregate_is_loaded_although_one_cable_is_gone(cabled, tmp_path: Path) -> None:
    machine = cabled()
    form(machine, STANDBY | FOLLOW)
    save(machine, tmp_path / "state")
    machine = cabled("-incoming", "defer")
    machine.ask("set_link", name="n", up=False)
    load(machine, tmp_path / "state")
    assert machine.read32(LAG + STATUS) == 2 | 2 << 8
    assert (machine.read32(LAG + ACTIVE), machine.read32(LAG + MOVES)) == (1, 1)
    # When the cable is back, its port is a member, but traffic does not move.
    machine.ask("set_link", name="n", up=True)
    assert machine.read32(LAG + STATUS) == BOTH
    assert machine.read32(LAG + ACTIVE) == 1
