# SPDX-License-Identifier: BSD-2-Clause
"""`essd bench --links`, with stand-ins for the machines: nothing is measured."""

import json
from contextlib import contextmanager
from typing import Any

import pytest
from test_json import check as check_fields
from typer.testing import CliRunner

from essd import cli
from essd.base import show
from essd.base.errors import EssdError
from essd.bench import links
from essd.bench.links import CABLES, Cable, Turn

NAMES = [cable.name for cable in CABLES]


@pytest.fixture
def bed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a turn on a cable finds: a Turn, or an error when its drive is started.  "ran"
    has the turns in their order, and "ended" the cables whose machines have ended."""
    found: dict[str, Any] = {name: Turn(1000, 900, 2000, 50, 200) for name in NAMES}
    found |= {"ran": [], "ended": []}

    @contextmanager
    def connected(cable: Cable, _mtu: int) -> Any:
        if isinstance(found[cable.name], EssdError):
            raise found[cable.name]
        try:
            yield cable.name, "/dev/nvme0n1"
        finally:
            found["ended"].append(cable.name)

    def turn(name: str, _device: str, workload: str, _seconds: int) -> Turn:
        found["ran"].append((workload, name))
        if isinstance(found[name], BaseException):
            raise found[name]
        result: Turn = found[name]
        return result

    monkeypatch.setattr(links, "connected", connected)
    monkeypatch.setattr(links, "turn", turn)
    monkeypatch.setattr(show.console, "stderr", False)
    return found


def run(*words: str) -> Any:
    return CliRunner().invoke(cli.app, ["bench", "--links", *words])


def test_each_link_is_compared_with_the_same_host_on_streams() -> None:
    for cable in CABLES:
        base = next(one for one in CABLES if one.name == cable.base)
        assert base.host_kind == cable.host_kind and base.link == links.STREAM


def test_every_link_has_its_turns_in_changing_order(bed: dict[str, Any]) -> None:
    bed["vhost-user"] = Turn(4000, 200, 300, 25, 100)
    done = run("--json", "--rounds", "2")
    assert done.exception is None, done.output
    found = json.loads(done.stdout)
    check_fields("bench --links", found)
    first = [name for workload, name in bed["ran"] if workload == "4k-randread-qd1"]
    assert first == [*NAMES, *NAMES[1:], NAMES[0]]
    row = next(row for row in found["workloads"] if row["link"] == "vhost-user")
    assert (row["drive_ratio"], row["host_ratio"], row["iops_ratio"]) == (0.5, 0.5, 4)
    assert sorted(bed["ended"]) == sorted(NAMES)


def test_a_link_that_cannot_be_started_is_left_out(bed: dict[str, Any]) -> None:
    bed["uml-datagram"] = EssdError("no user-mode\nLinux here")
    done = run()
    assert done.exception is None, done.output
    assert "uml-datagram is left out: no user-mode Linux here" in done.output
    assert len([line for line in done.output.splitlines() if " uml-vhost-user " in line]) == 2
    done = run("--only", "datagram")
    assert isinstance(done.exception, EssdError)
    assert str(done.exception) == "no link can be measured: no user-mode Linux here"


def test_an_interrupt_ends_all_machines(bed: dict[str, Any]) -> None:
    bed["uml-vhost-user"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        links.measured(CABLES, 1, 1, 1500, lambda _: None)
    assert sorted(bed["ended"]) == sorted(NAMES)


@pytest.mark.parametrize("words, said", [
    (("--only", "tape"), "--only tape: no link contains this text; use stream, vhost-user"),
    (("--rounds", "0"), "--rounds 0: use 1 or more"),
    (("--seconds", "0.5"), "--seconds 0.5: use whole seconds"),
    (("--compare", "x"), "--compare does not go with --links"),
    (("--native",), "--native does not go with --links"),
    (("--growth",), "--growth does not go with --links")])
def test_mistakes_are_refused(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...],
                              said: str) -> None:
    monkeypatch.setattr(links, "connected", None)
    done = run(*words)
    assert isinstance(done.exception, EssdError) and str(done.exception).startswith(said)
