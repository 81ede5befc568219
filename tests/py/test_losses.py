# SPDX-License-Identifier: BSD-2-Clause
"""The counters of lost frames are found in what guests and switches print."""

import json

import pytest

from essd.base.errors import EssdError
from essd.bench import bench
from essd.instance.config import Config, Host, Switch
from essd.instance.instance import Instance, Result
from essd.observe import losses

QUEUES = [{"kind": "noqueue", "dev": "lo", "root": True, "drops": 3},
          {"kind": "pfifo", "handle": "8001:", "dev": "eth0", "root": True, "refcnt": 2,
           "options": {"limit": 10000}, "bytes": 4, "packets": 2, "drops": 7, "qlen": 0},
          {"kind": "mq", "dev": "eth1", "root": True, "drops": 2},
          {"kind": "pfifo", "dev": "eth1", "parent": ":1", "drops": 2},
          {"kind": "pfifo", "dev": "mgmt", "root": True, "drops": 9}]
PRINTED = f"""{json.dumps(QUEUES)}
card eth0
NIC statistics:
     rx_drops: 5
     rx_kicks: 1
     rx0_drops: 5
     tx_tx_timeouts: 0
tx_errors: 0
rx_errors: 4
card eth1
tx_errors: 0
rx_errors: 0
0000ff12 00000010 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000
00000001 00000002 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000
"""


def test_a_guest_counts_in_its_queues_drivers_and_backlogs() -> None:
    assert losses.of_guest(PRINTED) == {
        "eth0 pfifo": 7, "eth1 mq": 2, "eth0 rx_drops": 5, "eth0 tx_tx_timeouts": 0,
        "eth0 tx_errors": 0, "eth0 rx_errors": 4, "eth1 tx_errors": 0, "eth1 rx_errors": 0,
        "backlog": 18}


def test_a_switch_counts_what_its_settings_do_not_ask_for() -> None:
    counters = {name: number for number, name in enumerate(losses.SWITCH)}
    shown = {"ports": [{"port": 3, "counters": {**counters, "tx_lost": 9}}]}
    assert losses.of_switch(shown) == {
        "port 3 rx_offloaded": 0, "port 3 tx_full": 1, "port 3 tx_stalled": 2,
        "port 3 tx_long": 3, "port 3 tx_refused": 4}


@pytest.mark.parametrize(("before", "after", "lost"), [
    ({}, {"host: eth0 pfifo": 0}, {}),
    ({"a": 1, "b": 2}, {"a": 1, "b": 5}, {"b": 3}),
    ({"a": 4}, {"a": 3}, {"a": 3}),         # The part was started again.
    ({"a": 4}, {"a": 0}, {})])
def test_only_what_has_been_lost_in_between_counts(
        before: dict[str, int], after: dict[str, int], lost: dict[str, int]) -> None:
    assert losses.grown(losses.Losses(before), losses.Losses(after)) == losses.Losses(lost)


def test_a_part_that_was_not_asked_at_one_look_keeps_its_counters() -> None:
    first = losses.Losses({"host: eth0 pfifo": 3, "sw: port 1 tx_full": 4})
    second = losses.Losses({"sw: port 1 tx_full": 5}, {}, {"host": "off"})
    third = losses.Losses({"host: eth0 pfifo": 3, "sw: port 1 tx_full": 5})
    seen = losses.known(first, second)
    assert seen == losses.Losses(third.counts, {}, {"host": "off"})
    assert not losses.grown(seen, third).complaint


def test_a_person_reads_what_was_lost() -> None:
    assert losses.words(losses.Losses()) == "frames lost between drive and host: none"
    assert losses.words(losses.Losses({"host: eth0 pfifo": 3, "sw: port 1 tx_full": 4})) == (
        "frames lost between drive and host: host: eth0 pfifo 3, sw: port 1 tx_full 4")
    lost = losses.Losses({}, {"host": "no\nanswer"}, {"peer": "off"})
    assert losses.words(lost) == ("frames lost between drive and host: host unknown (no answer), "
                                  "peer was not asked (off)")
    assert lost.complaint and not losses.Losses(unasked={"peer": "off"}).complaint
    assert "none, peer" in losses.words(losses.Losses(unasked={"peer": "off"}))


@pytest.mark.parametrize(("text", "why"), [
    ("", "cannot be read"),
    ("tc: not found", "cannot be read"),
    (PRINTED.replace('"drops": 7', '"drops": null'), "cannot be read"),
    (PRINTED.replace("rx_errors: 4", "rx_errors: "), "not printed eth0 rx_errors"),
    (PRINTED[:PRINTED.index("card eth1") + 10], "not printed eth1 tx_errors"),
    (PRINTED.replace('"dev": "eth0"', '"dev": "other"'), "not printed .*the queue of eth0"),
    ("[]\n", "not printed backlog"),
])
def test_what_a_guest_has_not_printed_is_unknown(text: str, why: str) -> None:
    with pytest.raises(losses.UnknownError, match=why):
        losses.of_guest(text)


def test_what_a_switch_has_not_answered_is_unknown() -> None:
    for shown in ({}, [], {"ports": [{"port": 1, "counters": {}}]}):
        with pytest.raises(losses.UnknownError, match="cannot be read"):
            losses.of_switch(shown)


def test_a_loss_since_an_unknown_beginning_is_unknown() -> None:
    before = losses.Losses(unknown={"host": "it hangs"})
    lost = losses.grown(before, losses.Losses({"host: eth0 pfifo": 3, "sw: port 1 tx_full": 4}))
    assert lost == losses.Losses({"sw: port 1 tx_full": 4}, {"host": "before: it hangs"})
    assert not losses.grown(before, losses.Losses({"host: eth0 pfifo": 0})).complaint
    with pytest.raises(EssdError, match="lost frames: .* host unknown"):
        bench.check_known(lost)
    bench.check_known(losses.Losses({"host: eth0 pfifo": 3}))


def test_every_guest_and_switch_that_can_answer_is_asked(
        monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance("lab")
    config = Config("lab", "/guest", "tcg", [],
                    hosts={name: Host() for name in ("one", "off", "halted", "hung")},
                    switches={"sw": Switch("/program", [], {})})
    ready = {"state": "running", "ready": True, "halted": False}
    parts = {"one": ready, "off": ready | {"ready": False}, "hung": ready,
             "halted": ready | {"halted": True}, "sw": ready}
    asked: list[str] = []

    def run(command: str, part: str, **options: object) -> Result:
        asked.append(part)
        if part == "hung":
            raise EssdError("it does not answer")
        return Result(command, 0, PRINTED, part)

    counters = {name: 2 for name in losses.SWITCH}
    shown = {"ports": [{"port": 0, "counters": counters}]}
    monkeypatch.setattr(Instance, "config", config)
    monkeypatch.setattr(instance, "status", lambda: {"parts": parts})
    monkeypatch.setattr(instance, "run", run)
    monkeypatch.setattr(instance, "ask", lambda command, part, request: shown)
    found = losses.read(instance)
    assert asked == ["one", "hung"]
    assert found.counts["one: eth0 pfifo"] == 7 and found.counts["sw: port 0 tx_full"] == 2
    assert found.unknown == {"hung": "it does not answer"}
    assert found.unasked == {"off": "not ready", "halted": "not ready"}
    assert "hung unknown" in losses.grown(losses.Losses(), found).complaint
