# SPDX-License-Identifier: BSD-2-Clause
"""`essd tcp`: the connections of the drive, read in pages and shown as ss does."""

import json
from pathlib import Path
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor

from essd.base import show
from essd.cli.commands import look
from essd.drive import tcp
from essd.instance.instance import Instance
from essd.observe import status

OPEN: dict[str, Any] = {
    "tid": 0x10000, "state": "ESTABLISHED", "user": "echo", "port": 0, "vlan": 5,
    "local": "10.0.0.10", "local-port": 7, "remote": "10.0.0.1", "remote-port": 40001,
    "send-window": 64256, "receive-window": 8192, "send-scale": 7, "receive-scale": 0,
    "cwnd": 14480, "ssthresh": 7240, "mss": 1448, "rtt-us": 212, "rtt-deviation-us": 40,
    "least-rtt-us": 180, "rto-us": 1000000, "in-flight": 2896, "pipe": 1448,
    "sacked": 1448, "ranges-in-flight": 2, "ranges-early": 0, "retransmits": 3,
    "recovers": True, "timestamps": True, "sack": True, "ecn": False,
    "sent-bytes": 300000, "received-bytes": 302896}
HALF: dict[str, Any] = {
    "tid": 0x10001, "state": "SYN-RECEIVED", "user": "", "port": 1,
    "local": "fd00::10", "local-port": 4420, "remote": "fd00::1", "remote-port": 40002}
NVME: dict[str, Any] = {
    **OPEN, "user": "nvme-tcp", "local-port": 4420, "nvme": {
        "qid": 3, "header-digests": True, "data-digests": True, "commands": 4,
        "responses": 1, "r2ts": 2, "waits": True, "digest-errors": 5}}
WAIT: dict[str, Any] = {**HALF, "tid": 1090, "state": "TIME-WAIT", "left-ms": 58250}


@pytest.fixture(autouse=True)
def folder_of_instances(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "essd").mkdir(mode=0o700)


class Drive(FakeSupervisor):
    """A fake drive with two pages of connections."""

    def ask_drive(self, request: dict[str, Any]) -> Any:
        pages = {0: {"tcp-connections": [OPEN, HALF], "next": 2},
                 2: {"tcp-connections": [WAIT]}}
        assert request["request"] == "tcp-connections"
        return pages[request["arguments"]["from"]]


def test_all_pages_are_read() -> None:
    with Drive("unit"):
        assert tcp.read(Instance("unit")) == [OPEN, HALF, WAIT]


def test_a_page_that_points_back_does_not_read_for_ever() -> None:
    with FakeSupervisor("unit") as drive:
        drive.mgmt["tcp-connections"] = {"tcp-connections": [OPEN], "next": 0}
        assert tcp.read(Instance("unit")) == [OPEN]


def test_connections_are_shown_as_by_ss(capsys: pytest.CaptureFixture[str]) -> None:
    with Drive("unit"):
        look.tcp(name="unit")
        shown = capsys.readouterr().out.splitlines()
        look.tcp(name="unit", as_json=True)
    assert shown == [
        "ESTABLISHED  echo     10.0.0.10:7 10.0.0.1:40001  port 0, VLAN 5",
        "    mss:1448 wscale:7,0 send-window:64256 receive-window:8192 cwnd:14480 "
        "ssthresh:7240",
        "    rtt:0.212ms/0.04ms minrtt:0.18ms rto:1000ms in-flight:2896 sacked:1448 "
        "retransmits:3 recovers timestamps sack",
        "    bytes-acked:300000 bytes-received:302896",
        "SYN-RECEIVED -        [fd00::10]:4420 [fd00::1]:40002  port 1",
        "TIME-WAIT    -        [fd00::10]:4420 [fd00::1]:40002  port 1",
        "    ends in 58.2 s"]
    assert json.loads(capsys.readouterr().out) == [OPEN, HALF, WAIT]


def test_a_connection_of_nvme_tcp_has_a_line_of_its_queue() -> None:
    plain = {"header-digests": False, "data-digests": False, "commands": 0, "responses": 0,
             "r2ts": 0, "waits": False, "digest-errors": 0}
    assert [tcp.text([{**NVME, "nvme": nvme}]).splitlines()[-1]
            for nvme in (NVME["nvme"], plain)] == [
        "    qid:3 digests:header,data commands:4 responses:1 r2ts:2 digest-errors:5 not-read",
        "    no Connect yet digests:none commands:0"]


def test_a_drive_without_connections_says_so() -> None:
    with FakeSupervisor("unit") as drive:
        drive.mgmt["tcp-connections"] = {"tcp-connections": []}
        with show.console.capture() as captured:
            look.tcp(name="unit")
    assert "the drive has no TCP connection" in captured.get()


def test_the_status_has_a_line_only_for_drives_with_connections() -> None:
    drives = {"d1": {"drive": {"tcp-connections": 2}}, "d2": {"drive": {"why": "off"}},
              "d3": {"drive": {"tcp-connections": 0}}, "d4": {"drive": {"tcp-connections": 1}},
              "d5": {"drive": {"tcp-connections": 3, "nvme-tcp-queues": 2}}}
    assert status.tcp_lines({"drives": drives}) == [
        "d1: 2 TCP connections; see essd tcp", "d4: 1 TCP connection; see essd tcp",
        "d5: 3 TCP connections, 2 of them for NVMe/TCP; see essd tcp"]
