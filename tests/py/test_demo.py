# SPDX-License-Identifier: BSD-2-Clause
"""The demo's order, and its steps with two ports or two hosts, without machines."""

import contextlib
import re
import shlex
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, cast

import pytest
import typer

from essd import cli
from essd.api import Drive, Host
from essd.base import paths, show
from essd.base.errors import EssdError
from essd.demo import (demo, protocol_steps, report as demo_report, subsystem_steps,
                       transcript as demo_transcript)
from essd.demo.subsystem_steps import SECOND_HOST
from essd.demo.transcript import Transcript
from essd.instance import steps
from essd.instance.config import Config
from essd.instance.instance import Instance, Result
from essd.instance.steps import Job, Step
from essd.observe import losses
from essd.topology import reader as topology_yaml, setup as topology_setup

EBADE = "dd: error writing '/dev/nvme0n1': Invalid exchange"


class FakeHosts:
    """Two hosts that share a drive with reservations, as far as the demo uses them."""

    def __init__(self) -> None:
        self.holder = ""
        self.refusal = EBADE
        self.enforces = True

    def run(self, command: str, part: str, timeout_s: float = 300, check: bool = True,
            apart: bool = False) -> Result:
        status, output = self.answer(command, part)
        assert status == 0 or not check, command
        return Result(command, status, output, part)

    def answer(self, command: str, part: str) -> tuple[int, str]:
        is_barred = self.enforces and self.holder not in ("", part)
        if "nvme-subsystem" in command:
            return 0, "nvme0n1 nvme0n2"
        if command.startswith("cd /sys/block"):
            # The second host has seen the namespaces in another order.
            return 0, ("nvme0n1 1\nnvme0n2 2" if part == "host" else "nvme0n1 2\nnvme0n2 1")
        if "resv-acquire" in command:
            if is_barred:
                return 1, "NVMe status: Reservation Conflict(0x83)"
            self.holder = part
        if "resv-release" in command:
            self.holder = ""
        if "of=/dev/nvme" in command and is_barred:
            return 1, self.refusal
        return 0, ""


@pytest.fixture
def hosts() -> FakeHosts:
    return FakeHosts()


@pytest.fixture
def shown() -> list[Result]:
    return []


@pytest.fixture
def job(hosts: FakeHosts, shown: list[Result], monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setattr(steps, "disconnect", lambda job: None)
    return Job(cast(Instance, hosts), "drive", "nqn", ["10.0.0.10", "10.0.1.10"],
               show_result=shown.append)


def test_a_reservation_conflict_becomes_a_result(job: Job, shown: list[Result]) -> None:
    subsystem_steps.reservation_conflict(job)
    assert len(job.proven) == 1
    refused = [result for result in shown if result.status != 0]
    assert [result.part for result in refused] == [SECOND_HOST, SECOND_HOST]
    # The same namespace is another device there.
    assert "/dev/nvme0n2" in refused[0].command


def test_a_drive_that_ignores_its_reservation_fails_the_step(
        job: Job, hosts: FakeHosts) -> None:
    hosts.enforces = False
    with pytest.raises(EssdError, match=f"{SECOND_HOST} could write, though a reservation"):
        subsystem_steps.reservation_conflict(job)
    assert not job.proven


def test_a_write_that_fails_for_another_reason_is_no_conflict(
        job: Job, hosts: FakeHosts) -> None:
    hosts.refusal = "dd: error writing '/dev/nvme0n1': Input/output error"
    with pytest.raises(EssdError, match="not because of a reservation"):
        subsystem_steps.reservation_conflict(job)


@pytest.mark.parametrize(("received", "expected"), [
    ((900, 12), None), ((900, 800), "port 1 has received 800"),
    ((12, 12), "port 0 has received 12")])
def test_frames_tell_which_port_carries_io(
        job: Job, monkeypatch: pytest.MonkeyPatch, received: tuple[int, int],
        expected: str | None) -> None:
    counters: Iterator[tuple[int, int]] = iter([(5, 5), (5 + received[0], 5 + received[1])])
    monkeypatch.setattr(subsystem_steps, "frames", lambda job: next(counters))
    monkeypatch.setattr(subsystem_steps, "LOOK_S", 0)
    if expected is None:
        subsystem_steps.look(job, (0,))
        return
    with pytest.raises(EssdError, match=expected):
        subsystem_steps.look(job, (0,))


def test_the_second_boot_has_two_hosts_that_reach_both_ports(tmp_path: Path) -> None:
    topology = topology_yaml.load(subsystem_steps.TWO_HOSTS, "two hosts", tmp_path)
    assert list(topology.hosts) == ["host", SECOND_HOST]
    topology.drives["drive"].nqn = demo.DATASHEET_NQN
    assert topology_setup.wishes(topology, "demo")["drive"].nqn == demo.DATASHEET_NQN
    networks = topology.segments()
    for port in (0, 1):
        segment = next(ends for ends in networks if ("drive", port) in ends)
        assert {("host", port), (SECOND_HOST, port)} <= segment


class DeadPath:
    """A host with a path that does not come back."""

    def wait_paths(self, drive: Drive, live: int) -> None:
        raise EssdError(f"host has 1 live paths to drive; expected {live}")


@pytest.mark.parametrize(("state", "expected"), [
    ("ERR", r"expected 2\. QP 1 of the host's rxe0 is in error.*a defect of Linux's rxe"),
    ("RTS", r"expected 2$")])
def test_a_host_that_cannot_reconnect_any_more_is_named(
        job: Job, monkeypatch: pytest.MonkeyPatch, state: str, expected: str) -> None:
    """What Linux 6.12 has shown of its queue pairs after such a failure."""
    shown = ("link rxe0/1 lqpn 55 rqpn 0 type RC state INIT rq-psn 0 sq-psn 0 comm [rdma_cm] \n"
             f"link rxe0/1 lqpn 1 type GSI state {state} sq-psn 138 comm [ib_core] \n"
             "link rxe1/1 lqpn 17 rqpn 10369034 type RC state RTS comm [rdma_cm] \n"
             "link rxe1/1 lqpn 1 type GSI state RTS sq-psn 4 comm [ib_core] \n")
    monkeypatch.setattr(Job, "quiet", lambda job, command, check: shown)
    with pytest.raises(EssdError, match=expected):
        subsystem_steps.wait_reconnected(job, cast(Host, DeadPath()), cast(Drive, None))


class FakeInstance:
    """An instance that is never started."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.is_there = True        # until the demo ends it

    def claimed(self, _what: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def stop(self) -> None:
        self.is_there = False

    stop_started = stop


NQN = "nqn.2014-08.org.nvmexpress:uuid:0f53e15b-7a5f-4a5f-8d4c-7cba3a2e8f10"
DISCOVERY = f"""
Discovery Log Number of Records 2, Generation counter 1
=====Discovery Log Entry 0======
trtype:  rdma
adrfam:  ipv4
subtype: nvme subsystem
treq:    not required
portid:  1
trsvcid: 4420
subnqn:  {NQN}
traddr:  10.0.0.10
rdma_prtype: roce-v2
=====Discovery Log Entry 1======
trtype:  rdma
subtype: nvme subsystem
trsvcid: 4420
subnqn:  {NQN}
traddr:  10.0.1.10
"""
ID_CTRL = f"""NVME Identify Controller:
vid       : 0
sn        : ESSD1
mn        : essd
fr        : 0.1.0
rab       : 0
cntlid    : 0x1
subnqn    : {NQN}
ps      0 : mp:25.00W operational
"""
FIO = """random-4k: (groupid=0, jobs=1): err= 0: pid=321: Sat
  write: IOPS=812, BW=3250KiB/s (3328kB/s)(16.0MiB/5041msec); 0 zone resets
"""


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    found = {"host": "Linux 6.12", "target": "the essd drive"}
    monkeypatch.setattr(demo_report, "facts_of", lambda job: found)
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    return found


@pytest.fixture
def instance(tmp_path: Path) -> FakeInstance:
    folder = tmp_path / "instance"
    folder.mkdir()
    (folder / "drive").mkdir()
    (folder / "drive/console.log").write_text(
        "boot: mask ROM\nboot: starting slot A\n<script>alert(1)</script>\n"
        f"nvme-of: listening on 4420, {NQN}\n")
    (folder / "supervisor.log").write_text("started\n")
    return FakeInstance("demo", folder)


@pytest.fixture
def demo_steps(monkeypatch: pytest.MonkeyPatch, facts: dict[str, str],
               instance: FakeInstance) -> list[str]:
    """Names of the steps that the demo runs; each of them has a result."""
    names: list[str] = []

    def boot(instance: Any, config: Any, transcript: Transcript) -> Job:
        return Job(cast(Instance, instance), "drive", NQN, [], show_result=transcript.take)

    def every(steps: list[tuple[str, Step]]) -> list[tuple[str, Step]]:
        def action(name: str) -> Step:
            def run(job: Job) -> None:
                names.append(name)
                job.show_result(Result(f"nvme discover -n {NQN}", 0, DISCOVERY))
                job.show_result(Result(f"nvme connect -n {NQN}", 0, ""))
                job.show_result(Result("nvme id-ctrl /dev/nvme0", 0, ID_CTRL))
                job.show_result(Result("fio --x --name=random-4k --rw=randwrite", 0, FIO))
                job.claim(name, "a command")
            return run

        return [(name, action(name)) for name, _ in steps]

    monkeypatch.setattr(demo, "Instance", lambda name: instance)
    monkeypatch.setattr(demo, "boot", boot)
    for found in ("FIRST_BOOT", "DRIVE_ONLY", "LAST", "POWER_OFF", "FOUR_PROTOCOLS",
                  "SECOND_BOOT", "TWO_HOSTS"):
        monkeypatch.setattr(demo, found, every(getattr(demo, found)))
    monkeypatch.setattr(losses, "read", lambda instance: losses.Losses(
        {"host: eth0 pfifo": 3, "host: eth1 pfifo": 0}))
    monkeypatch.setattr(demo, "two_hosts", lambda name: cast(Config, None))
    monkeypatch.setattr(protocol_steps, "problem", lambda: "")
    monkeypatch.setattr(protocol_steps, "configured", lambda *_: cast(Config, None))
    monkeypatch.setattr(demo.setup, "configure", lambda wish: None)
    monkeypatch.setattr(demo.setup, "forget", lambda name: None)
    return names


def demo_output(target: str = "drive", folder: Path | None = None) -> str:
    with show.console.capture() as captured:
        demo.run_demo(target, False, folder)
    return captured.get()


def test_each_step_of_the_demo_is_a_row_of_its_table(demo_steps: list[str]) -> None:
    text = demo_output()
    for name in demo_steps:
        assert re.search(rf"{re.escape(name)} +│ a command", text), text
    for words in ("fail over", "Four namespaces", "reserves"):
        assert any(words in name for name in demo_steps)


@pytest.mark.parametrize(("target", "boots"), [("drive", 3), ("nvmet", 2)])
def test_the_demo_prints_the_lost_frames_of_each_boot(
        demo_steps: list[str], target: str, boots: int) -> None:
    assert demo_output(target).count(
        "frames lost between drive and host: host: eth0 pfifo 3\n") == boots


def test_lost_frames_that_cannot_be_read_end_no_demo(
        demo_steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def read(instance: Instance) -> losses.Losses:
        raise EssdError("it does not answer")
    monkeypatch.setattr(losses, "read", read)
    assert "all parts unknown (it does not answer)" in demo_output()


def test_the_demo_with_nvmet_leaves_out_what_only_the_drive_has(
        demo_steps: list[str]) -> None:
    demo_output("nvmet")
    only_drive = {name for name, _ in [*demo.DRIVE_ONLY, *demo.FOUR_PROTOCOLS, *demo.TWO_HOSTS]}
    assert not only_drive & set(demo_steps)
    assert {name for name, _ in demo.SECOND_BOOT} <= set(demo_steps)


def test_without_user_mode_linux_the_demo_says_what_it_leaves_out(
        demo_steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_steps, "problem", lambda: "there is none")
    text = demo_output()
    assert "One file over four protocols is left out: there is none" in text
    assert not {name for name, _ in demo.FOUR_PROTOCOLS} & set(demo_steps)
    assert {name for name, _ in demo.TWO_HOSTS} <= set(demo_steps)


class OneFile:
    """A host that mounts one device after the other and reads a file's checksum."""

    def __init__(self, wrong: str = "") -> None:
        self.wrong = wrong          # a device that shows another file
        self.mounted: list[str] = []
        self.connected: list[str] = []

    def run(self, command: str, **_options: Any) -> Result:
        words = command.split()
        if words[0] == "mount":
            self.mounted.append(words[3])
        if words[:2] == ["nvme", "connect"]:
            self.connected.append(f"{words[3]} {words[5]}")
        is_wrong = words[0] == "mount" and words[3] == self.wrong
        return Result(command, 0, f"{'0' if is_wrong else '1'}abc  /mnt/bin/bash\n")


@pytest.mark.parametrize("wrong", ["", protocol_steps.AOE_DISK])
def test_a_file_has_the_same_checksum_over_four_protocols(
        monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    host = OneFile(wrong)
    monkeypatch.setattr(Job, "device", lambda job: "/dev/nvme0n1")
    job = Job(cast(Instance, host), "drive", "nqn", ["10.0.0.10", "10.0.1.10"])
    if wrong:
        with pytest.raises(EssdError, match="by AoE the checksum .* is 0abc, and by NVMe/RoCE"):
            protocol_steps.four_protocols(job)
        return
    protocol_steps.four_protocols(job)
    assert host.connected == ["rdma 10.0.0.10", "rdma 10.0.1.10", "tcp 10.0.0.10"]
    assert host.mounted == ["/dev/nvme0n1"] * 3 + [protocol_steps.AOE_DISK]
    assert "NVMe/RoCE, NVMe/iWARP, NVMe/TCP and AoE" in job.proven[0][0]


def test_the_host_of_four_protocols_is_at_both_ports(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text(protocol_steps.SETTINGS)
    topology = topology_yaml.load(protocol_steps.TOPOLOGY, "x", tmp_path)
    assert topology.segments() == [{("host", n), ("drive", n)} for n in (0, 1)]


def test_the_demo_shows_the_nqn_once_and_no_answer_twice(demo_steps: list[str]) -> None:
    text = demo_output()
    assert text.count(NQN) == 1
    assert "nvme connect -n $NQN" in text
    discovered = "nvme subsystem: rdma 10.0.1.10, service 4420, $NQN"
    assert text.count(discovered) == 1
    assert text.count("sn: ESSD1") == 1
    assert text.count(f"  =>  {demo_transcript.SAME}") == 2 * (len(demo_steps) - 1)


def test_the_demo_shows_of_a_long_answer_what_says_something(demo_steps: list[str]) -> None:
    text = demo_output()
    for line in ("vid       : 0", "rab       : 0", "treq:", "ps      0"):
        assert line not in text
    assert "cntlid: 0x1" in text
    assert "mask ROM" not in text and "boot: starting slot A" in text
    assert "listening on 4420, $NQN" in text
    assert ("host# fio ... --name=random-4k --rw=randwrite  =>  write 812 IOPS, 3328kB/s; "
            "no error") in text


def test_an_answer_of_a_command_that_failed_is_shown_as_it_is() -> None:
    failed = Result("nvme id-ctrl /dev/nvme9", 1, "nvme9: No such file or directory\n")
    assert demo_transcript.essence(failed) == ["nvme9: No such file or directory"]
    bad = Result("fio --name=x", 0, "x: verify: bad magic header 0\nx: err=84\n")
    assert "bad magic" in demo_transcript.essence(bad)[0]
    paths_of = Result("nvme list-subsys /dev/nvme0n1", 0, (
        "nvme-subsys0 - NQN=nqn.x\n               hostnqn=nqn.y\n\\\n"
        " +- nvme0 rdma traddr=10.0.0.10,trsvcid=4420 live optimized\n"))
    assert demo_transcript.essence(paths_of) == [
        "nvme-subsys0 - NQN=nqn.x",
        "+- nvme0 rdma traddr=10.0.0.10,trsvcid=4420 live optimized"]
    piped = Result("nvme smart-log /dev/nvme0 | grep media", 0, "media_errors : 0\n")
    assert demo_transcript.essence(piped) == ["media_errors : 0"]


def test_the_demo_ends_with_its_report_and_three_things_to_try(
        demo_steps: list[str], tmp_path: Path) -> None:
    text = demo_output(folder=tmp_path / "report")
    end = text[text.index("└"):]
    assert f"report: {tmp_path / 'report/report.html'}" in end
    assert end.index("report: ") < end.index("Three things to try next:")
    commands = [command for command, _ in demo_report.next_commands()]
    assert len(commands) == 3 and all(command in end for command in commands)


def test_the_report_is_one_file_with_everything_a_colleague_asks(
        demo_steps: list[str], tmp_path: Path, facts: dict[str, str]) -> None:
    facts["host"] = "Linux <6.12> & fio"
    demo_output(folder=tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    ElementTree.fromstring(re.sub("<!DOCTYPE html>|<meta[^>]*>", "", page))
    assert not re.search(r"(src|href)=|@import|url\(", page)
    assert "Linux &lt;6.12&gt; &amp; fio" in page and "<script>" not in page
    assert "alert(1)" in page                           # of the drive's UART, as text
    for words in ("traddr:  10.0.1.10", "cntlid    : 0x1", "<td>random-4k</td>", "812",
                  "All", "nvme connect -n", demo_report.bench_command()):
        assert words in page, words
    for name in demo_steps:
        assert escape(name, quote=True) in page or name in page


def test_a_failure_is_one_line_with_the_step_and_the_evidence(
        demo_steps: list[str], instance: FakeInstance, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job: Job) -> None:
        job.show_result(Result("nvme list", 0, "nothing"))
        raise EssdError("nvme list does not show /dev/nvme0n1")

    monkeypatch.setattr(demo, "LAST", [("What the host sees", fail)])
    with show.console.capture(), pytest.raises(EssdError) as caught:
        demo.run_demo("drive", False, tmp_path / "report")
    path = tmp_path / "report/report.html"
    assert str(caught.value) == (
        'the demo has failed in the step "What the host sees": nvme list does not show '
        f"/dev/nvme0n1; evidence: {path}, with logs beside it")
    page = path.read_text(encoding="utf-8")
    assert "nvme list does not show /dev/nvme0n1" in page and "All" not in page
    assert (tmp_path / "report/supervisor.log").read_text() == "started\n"
    assert (tmp_path / "report/drive/console.log").exists()
    assert not instance.is_there                # the demo has ended what it started


def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job: Job) -> None:
        raise EssdError("nvme list does not show /dev/nvme0n1")

    monkeypatch.setattr(demo, "LAST", [("What the host sees", fail)])


FAILURE = ('the demo has failed in the step "What the host sees": nvme list does not show '
           "/dev/nvme0n1; ")


@pytest.mark.parametrize(("broken", "problem", "said"), [
    ("html", KeyError("claims"), "the report cannot be written: KeyError: 'claims'; logs: "),
    ("write", EssdError("the report cannot be written: x: No space left on device"),
     "the report cannot be written: x: No space left on device; logs: "),
    ("keep_evidence", OSError("no space"), "; the logs could not be kept: OSError: no space")])
def test_an_error_of_the_report_does_not_hide_that_of_the_step(
        demo_steps: list[str], instance: FakeInstance, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch, broken: str, problem: Exception, said: str) -> None:
    def fail(*_words: object) -> None:
        raise problem

    failing(monkeypatch)
    monkeypatch.setattr(demo_report, broken, fail)
    with show.console.capture(), pytest.raises(EssdError) as caught:
        demo.run_demo("drive", False, tmp_path / "report")
    assert str(caught.value).startswith(FAILURE) and said in str(caught.value)
    assert not instance.is_there


def test_an_error_of_the_end_does_not_hide_that_of_the_step(
        demo_steps: list[str], instance: FakeInstance, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_words: object) -> None:
        raise EssdError("the supervisor of demo does not answer")

    failing(monkeypatch)
    monkeypatch.setattr(demo, "end", fail)
    with show.console.capture(), pytest.raises(EssdError) as caught:
        demo.run_demo("drive", False, tmp_path / "report")
    assert str(caught.value).startswith(FAILURE)
    assert str(caught.value).endswith("it has not ended: the supervisor of demo does not answer")


def test_a_report_has_its_folder_also_if_that_was_deleted_meanwhile(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    folder = demo_report.folder_for(None)
    folder.parent.rmdir()               # `essd clean reports`, while the demo runs
    monkeypatch.setattr(demo_report, "html", lambda *_words: "page")
    path = demo_report.write(folder, Transcript(), {})
    assert path.read_text(encoding="utf-8") == "page"


def test_an_interrupted_demo_leaves_no_report(
        demo_steps: list[str], instance: FakeInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_job: Job) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "LAST", [("Disconnect", interrupt)])
    with show.console.capture(), pytest.raises(KeyboardInterrupt):
        demo.run_demo("drive", False)
    assert list((paths.cache() / "reports").iterdir()) == []
    assert not instance.is_there


def test_reports_in_the_cache_do_not_pile_up(demo_steps: list[str]) -> None:
    for number in range(demo_report.KEEP + 3):
        (paths.cache() / f"reports/demo-20200101-0000{number:02}").mkdir(parents=True)
    text = demo_output()
    kept = sorted((paths.cache() / "reports").iterdir())
    assert len(kept) == demo_report.KEEP
    assert f"report: {kept[-1] / 'report.html'}" in text


def test_a_report_that_cannot_be_written_is_refused_before_anything_starts(
        demo_steps: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EssdError, match="the report cannot be written: .*file/report"):
        demo.run_demo("drive", False, tmp_path / "file/report")
    assert demo_steps == []


@pytest.mark.parametrize("command", [word for command, _ in demo_report.next_commands()
                                     for word in command.split(" && ./essd ")])
def test_what_the_demo_says_to_try_is_a_command(command: str) -> None:
    """tests/e2e/test_demo.py runs them."""
    words = shlex.split(command.removeprefix("./essd "))
    group = typer.main.get_command(cli.app)
    context = group.make_context("essd", words, resilient_parsing=False)
    found = group.get_command(context, words[0])        # type: ignore[attr-defined]
    assert found is not None
    found.make_context(words[0], words[1:], parent=context)


def test_the_first_error_is_told_when_undoing_fails_too() -> None:
    def undo() -> None:
        raise EssdError("the drive is gone")

    with pytest.raises(EssdError, match="no path"), subsystem_steps.undone_by(undo):
        raise EssdError("no path")
    with pytest.raises(EssdError, match="the drive is gone"), subsystem_steps.undone_by(undo):
        pass
