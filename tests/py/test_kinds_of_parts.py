# SPDX-License-Identifier: BSD-2-Clause
"""A part of a new kind works with cables and snapshots, which know no kind."""

import asyncio
from pathlib import Path

from essd.instance.config import Config, End, Link, VHOST_USER
from essd.supervisor import snapshot_keeper
from essd.supervisor.part import Part
from essd.supervisor.supervisor import Supervisor


class Probe(Part):
    """A drive of another kind, on a switch of another kind: it notes what it is told."""

    kind = "probe"
    has_state = False

    def __init__(self, supervisor: Supervisor, name: str) -> None:
        super().__init__(supervisor, name)
        self.told: list[tuple[object, ...]] = []

    async def plug(self, port: int, number: int, plugged: bool) -> None:
        self.told.append(("plug", port, number, plugged))

    async def set_carrier(self, number: int, is_up: bool) -> None:
        self.told.append(("carrier", number, is_up))

    async def reaches_outside(self, port: int) -> bool | None:
        return port == 7


def test_a_part_of_a_new_kind_is_told_of_its_cables(tmp_path: Path) -> None:
    links = [Link(4, [], ends=[End("a", 7), End(outside="tap=x")]),
             Link(5, [], ends=[End("a", 8), End("b", 1)])]
    supervisor = Supervisor(tmp_path, Config("t", "", "tcg", links))
    a, b = Probe(supervisor, "a"), Probe(supervisor, "b")
    supervisor.parts |= {"a": a, "b": b}
    asyncio.run(supervisor.cables.plug(5, False))
    assert a.told == [("carrier", 5, False), ("plug", 8, 5, False)]
    assert b.told == [("carrier", 5, False), ("plug", 1, 5, False)]
    asyncio.run(supervisor.cables.read_outside())
    assert supervisor.cables[4].connected
    asyncio.run(supervisor.cables.part_gone(a))
    assert supervisor.cables[5].port_up is None
    assert snapshot_keeper.machines(supervisor) == []
    assert a.status()["kind"] == "probe"
    assert a.files_lock is None and not a.has_capacitors


def test_a_cable_in_shared_memory_has_no_carrier_after_the_end_of_a_part(tmp_path: Path) -> None:
    """The host itself does not tell that it has lost its drive."""
    links = [Link(4, [], ends=[End("a", 0), End("b", 0)], kind=VHOST_USER),
             Link(5, [], ends=[End("a", 1), End("b", 1)])]
    supervisor = Supervisor(tmp_path, Config("t", "", "tcg", links))
    a, b = Probe(supervisor, "a"), Probe(supervisor, "b")
    supervisor.parts |= {"a": a, "b": b}
    for cable in supervisor.cables.values():
        cable.connected = cable.port_up = True
    asyncio.run(supervisor.cables.part_gone(a))
    assert b.told == [("carrier", 4, False)]


def test_cables_and_snapshots_ask_no_part_for_its_kind() -> None:
    folder = Path(snapshot_keeper.__file__).parent
    for name in ("cable_keeper.py", "snapshot_keeper.py", "part.py"):
        text = (folder / name).read_text(encoding="utf-8")
        for word in ("is_drive", "is_host", "isinstance(part", ".kind ==", "SwitchPart)"):
            assert word not in text, (name, word)
