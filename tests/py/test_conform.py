# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform`: results, reports, options, and the control of a drive.

A script takes the place of the conformance program and prints given results.
"""

import contextlib
import html.parser
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from fake_supervisor import FakeSupervisor
from typer.testing import CliRunner

from essd import cli
from essd.base import paths, show
from essd.base.errors import EssdError
from essd.conform import (conform, control as conform_control, names as conform_names,
                          report as conform_report, screen as conform_screen)
from essd.conform.control import Control, ControlError
from essd.conform.results import Results, ResultsError
from essd.drive.console import find_answer
from essd.instance.instance import Instance
from essd.testrun import dissect as conform_dissect

DRIVE = {"mn": "A <drive> & more", "sn": "S1", "fr": "0.1", "subnqn": "nqn.x",
         "ports": [{"mac": "02:00:00:00:00:01", "ipv4": "10.0.0.1", "ipv6": "fd00::1"},
                   {"mac": "02:00:00:00:00:02", "ipv4": "10.0.1.1", "ipv6": ""}]}


def run_event(tests: int) -> dict[str, Any]:
    return {"event": "run", "target": "native", "seed": 7, "drive": DRIVE,
            "tests": tests}


def test_event(name: str, verdict: str = "pass", **more: object) -> dict[str, Any]:
    return {"event": "test", "id": name, "chapter": name.partition(".")[0],
            "clause": "IBTA 9.7.5", "purpose": f"purpose of {name}",
            "verdict": verdict, "reason": "" if verdict == "pass" else "because",
            "seconds": 0.25, "steps": ["sent SEND_ONLY psn 5", "got NAK psn 4"],
            "pcap": f"{name}.pcap", **more}


test_event.__test__ = False     # type: ignore[attr-defined]
END = {"event": "end", "passed": 0, "failed": 0, "na": 0, "not_run": 0, "seconds": 2.5}


def told(*events: dict[str, Any]) -> Results:
    results = Results()
    for event in events:
        results.take(json.dumps(event))
    return results


MIXED = [run_event(5), test_event("eth.runt"),
         test_event("eth.giant", "fail",
                    reason="expected silence\ngot \x01 <b>an answer</b> \u2603"),
         test_event("roce.responder.psn-gap"),
         test_event("roce.v1", "na", reason="RoCE v1 is off"),
         test_event("nvme.fused", "not-run", reason="no control"), END]


# Results

@pytest.mark.parametrize("events, conforming, verdict", [
    ([run_event(1), test_event("a.x"), END], True, "conforming"),
    ([run_event(2), test_event("a.x"), test_event("a.y", "na"), END], True,
     "conforming"),
    ([run_event(2), test_event("a.x"), test_event("a.y", "fail"), END], False,
     "not conforming"),
    ([run_event(2), test_event("a.x"), test_event("a.y", "not-run"), END], False,
     "inconclusive"),
    # These are never conforming: no test ran or applied, the run broke off, results are lost.
    ([run_event(0), END], False, "inconclusive"),
    ([run_event(1), test_event("a.y", "na"), END], False, "inconclusive"),
    ([run_event(1), test_event("a.x")], False, "inconclusive"),
    ([run_event(2), test_event("a.x"), END], False, "inconclusive"),
    ([], False, "inconclusive")])
def test_a_drive_conforms_only_if_all_applicable_tests_passed(events, conforming, verdict):
    results = told(*events)
    assert results.is_conforming is conforming
    assert results.verdict == verdict


def test_a_run_with_a_complaint_is_not_conforming():
    results = told(run_event(1), test_event("a.x"), END)
    results.complaints.append("the drive restarted by itself")
    assert not results.is_conforming


def test_the_last_line_of_a_partial_run_says_so():
    results = told(run_event(1), test_event("a.x"), END)
    results.is_partial = True
    assert results.verdict == "conforming in the chosen tests"


def test_counts_by_chapter_and_in_the_last_line():
    results = told(*MIXED)
    assert {name: count.of for name, count in results.chapters.items()} == {
        "eth": {"pass": 1, "fail": 1, "na": 0, "not-run": 0},
        "roce": {"pass": 1, "fail": 0, "na": 1, "not-run": 0},
        "nvme": {"pass": 0, "fail": 0, "na": 0, "not-run": 1}}
    assert results.last_line == (
        "2 passed, 1 failed, 1 not applicable, 1 not run: not conforming")


def test_announced_tests_without_a_result_count_as_not_run():
    results = told(run_event(9), test_event("a.x"), END)
    assert results.total.of["not-run"] == 8


@pytest.mark.parametrize("line", [
    "not json", "[]", "{}", '{"event": "test"}', '{"event": "run"}',
    json.dumps(test_event("a.x", "maybe")),
    json.dumps(test_event("a.x", seconds="soon"))])
def test_a_line_that_is_not_a_result_is_an_error(line):
    with pytest.raises(ResultsError):
        Results().take(line)


def test_unknown_events_are_ignored():
    assert Results().take('{"event": "note", "text": "hello"}') is None


# JUnit

# The part of Jenkins' schema (xunit plugin, junit-10.xsd) for the elements that essd writes:
# element: (attributes that must be, attributes that may be, children)
JUNIT = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"},
                   {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors"},
                  {"group", "time", "skipped", "timestamp", "hostname", "id",
                   "package", "file", "log", "url"},
                  {"testsuite", "properties", "testcase", "system-out", "system-err"}),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": ({"name"}, {"time", "classname", "group"},
                 {"skipped", "error", "failure", "system-out", "system-err"}),
    "skipped": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "failure": (set(), {"type", "message"}, set()),
}
JUNIT_TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")


def check_junit(data: bytes) -> ElementTree.Element:
    root = ElementTree.fromstring(data)
    assert root.tag == "testsuites"
    for element in root.iter():
        must, may, children = JUNIT[element.tag]
        assert must <= set(element.attrib) <= must | may, element.attrib
        assert {child.tag for child in element} <= children
        if element.tag in ("testsuites", "testsuite"):
            assert JUNIT_TIME.fullmatch(element.get("time", ""))
            assert not (element.text or "").strip()
            cases = list(element.iter("testcase"))
            for name, kind in (("failures", "failure"), ("errors", "error"),
                               ("skipped", "skipped")):
                if name in element.attrib:
                    found = sum(1 for case in cases if case.find(kind) is not None)
                    assert int(element.get(name, "")) == found, (element.attrib, name)
            assert int(element.get("tests", "")) == len(cases)
    return root


def test_junit_reports_are_valid_in_the_schema_of_jenkins():
    facts = conform_report.Facts(command="./essd conform", versions={"suite": "v1"})
    root = check_junit(conform_report.junit(told(*MIXED), facts))
    assert root.get("tests") == "5"
    cases = {(x.get("classname"), x.get("name")): x for x in root.iter("testcase")}
    assert set(cases) == {
        ("conform.eth", "runt"), ("conform.eth", "giant"),
        ("conform.roce", "responder.psn-gap"), ("conform.roce", "v1"),
        ("conform.nvme", "fused")}
    failure = cases["conform.eth", "giant"].find("failure")
    assert failure is not None
    assert failure.get("message") == "expected silence"
    text = failure.text or ""
    assert "got \ufffd <b>an answer</b> \u2603" in text     # no U+0001 in XML
    assert "sent SEND_ONLY psn 5\ngot NAK psn 4" in text
    assert "capture: eth.giant.pcap" in text and "IBTA 9.7.5" in text
    skipped = cases["conform.roce", "v1"].find("skipped")
    assert skipped is not None and skipped.get("message") == "RoCE v1 is off"
    assert cases["conform.nvme", "fused"].find("error") is not None
    assert len(cases["conform.eth", "runt"]) == 0
    pairs = {x.get("name"): x.get("value") for x in root.iter("property")}
    assert pairs["seed"] == "7" and pairs["suite"] == "v1" and pairs["NQN"] == "nqn.x"


def test_junit_of_a_run_that_broke_off_has_errors():
    results = told(run_event(3), test_event("a.x"))
    results.complaints.append("essd_conform ended with signal 6 after a.x")
    root = check_junit(conform_report.junit(results, conform_report.Facts()))
    assert [x.get("message") for x in root.iter("error")] == [
        "essd_conform ended with signal 6 after a.x",
        "2 announced tests have no result"]


def test_a_junit_report_without_tests_is_valid():
    check_junit(conform_report.junit(Results(), conform_report.Facts()))


# HTML

VOID = {"meta", "input", "br"}


class Page(html.parser.HTMLParser):
    """Checks that elements nest, and that nothing is fetched from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.seen: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert name not in ("src", "srcset", "action", "onclick"), (tag, name)
            if name == "href":
                assert value.startswith("#"), value
                self.links.add(value[1:])
            if name == "id":
                self.ids.add(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.words += data
        else:
            assert "http" not in data and "@import" not in data
            assert "url(" not in data


def page(results: Results, **facts: Any) -> Page:
    return Page(conform_report.html(results, conform_report.Facts(**facts)))


def test_the_html_report_is_one_complete_file():
    found = page(told(*MIXED), command="./essd conform --native",
                 versions={"QEMU": "10.0.13"}, slow=3)
    assert found.links <= found.ids
    for text in ("not conforming", "A <drive> & more", "nqn.x", "10.0.13",
                 "./essd conform --native", "7, time-outs × 3", "10.0.1.1",
                 "got \x01 <b>an answer</b> \u2603", "sent SEND_ONLY psn 5",
                 "purpose of roce.responder.psn-gap", "eth.runt.pcap",
                 "RoCE v1 is off", "no control", "IBTA 9.7.5", "2.5 s"):
        assert text in found.words, text
    assert "meta" in found.seen         # the telephone's viewport


def test_the_html_report_shows_all_steps_of_failed_tests_and_some_of_others():
    steps = [f"step {number} of many" for number in range(100)]
    text = page(told(run_event(2), test_event("eth.long", steps=steps),
                     test_event("eth.bad", "fail", steps=steps), END)).words
    # The steps of a failed test are there twice: among the failures, and in its chapter.
    assert text.count("step 99 of many") == 2
    assert text.count("step 0 of many") == 3
    assert "and 76 steps more" in text


def test_the_html_report_begins_with_the_failures():
    words = page(told(*MIXED)).words
    order = [words.index(x) for x in ("Chapters", "Failed", "purpose of eth.giant",
                                      "Not run", "purpose of nvme.fused",
                                      "Not applicable", "All tests",
                                      "purpose of eth.runt")]
    assert order == sorted(order)


@pytest.mark.parametrize("results", [
    Results(), told(run_event(3), test_event("a.x", steps=[], clause="", pcap=""))])
def test_the_html_report_says_that_a_run_broke_off(results):
    results.complaints.append("the program <died>")
    found = page(results)
    assert "the program <died>" in found.words
    assert "inconclusive" in found.words


def test_a_failure_is_printed_with_its_steps():
    test = told(*MIXED).tests[1]
    lines = conform_screen.failure_lines(test)
    assert lines[:2] == ["FAILED eth.giant  [IBTA 9.7.5]", "    expected silence"]
    assert lines[3:6] == ["    Tested: purpose of eth.giant",
                          "      sent SEND_ONLY psn 5", "      got NAK psn 4"]


COUNTERS = {"reads": 0, "writes": 3, "rnic": {"dropped": 825, "malformed": 0},
            "connection-manager": {"requests": 12}}
POOLS = {"capsules": {"used": 0, "all": 8191}, "neighbours": {"used": 7, "all": 1024}}
COUNTED = ("writes 3, rnic dropped 825, connection-manager requests 12, "
           "neighbours 7 of 1024")


@pytest.mark.parametrize("answers, counted", [
    ({"counters": COUNTERS, "pools": POOLS}, COUNTED),
    ({}, "not known: "),
])
def test_a_failure_shows_what_the_drive_has_counted(
        fake, monkeypatch, tmp_path, answers, counted):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    paths.runtime()
    with FakeSupervisor("lab") as lab:
        lab.mgmt |= answers
        drive = conform_control.EmulatedDrive.__new__(conform_control.EmulatedDrive)
        drive.instance = Instance("lab")
        monkeypatch.setattr(conform, "stand_for", lambda _options: contextlib.nullcontext(
            conform.Stand("qemu", [], counted=drive.counted, transport=drive.transport)))
        fake.plan(*MIXED, status=1)
        _status, output = command()
    shown = "dropped 825" if answers else "not known: "
    assert f"The drive's RNIC has counted: {shown}" in " ".join(output.split())
    failures = output[output.index("FAILED eth.giant"):output.index("roce   ")]
    assert counted in " ".join(failures.split())
    results = told(*MIXED)
    results.tests = results.tests[:2]
    results.failed_with([counted])
    assert counted in conform_report.html(results, conform_report.Facts())
    assert counted in conform_report.junit(results, conform_report.Facts()).decode()


def test_the_last_of_many_steps_are_printed():
    event = test_event("a.x", "fail", steps=[f"step {n}" for n in range(500)])
    lines = conform_screen.failure_lines(told(event).tests[0])
    assert len(lines) < 70
    assert "      ... 440 more steps" in lines and "      step 499" in lines


# Runs with a script instead of the program

FAKE = """#!{python}
import json, os, signal, sys, time
plan = json.load(open({plan!r}))
words = sys.argv[1:]
if "--list" in words:
    print(plan.get("list", "eth.a  802.3  a frame"))
    sys.exit(plan.get("list_status", 0))
json.dump(words, open({args!r}, "w"))
print(plan.get("says", ""), file=sys.stderr)
if "--results" in words and "lines" in plan:
    with open(words[words.index("--results") + 1], "w") as out:
        for line in plan["lines"]:
            out.write(line + "\\n")
            out.flush()
        time.sleep(plan.get("sleep", 0))
if "signal" in plan:
    os.kill(os.getpid(), plan["signal"])
sys.exit(plan.get("status", 0))
"""


class Fake:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "essd_conform"
        self.program.write_text(FAKE.format(
            python=sys.executable, plan=str(folder / "plan.json"),
            args=str(folder / "args.json")))
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        self.presets: list[str] = []

    def build(self, preset: str) -> Path:
        self.presets.append(preset)
        return self.program

    def plan(self, *events: dict[str, Any] | str, **more: object) -> None:
        lines = [x if isinstance(x, str) else json.dumps(x) for x in events]
        (self.folder / "plan.json").write_text(json.dumps({"lines": lines, **more}))

    @property
    def args(self) -> list[str]:
        return list(json.loads((self.folder / "args.json").read_text()))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake(tmp_path)
    monkeypatch.setattr(conform, "build", fake.build)
    # Keep the logs of real runs.
    (tmp_path / "top").mkdir()
    monkeypatch.setattr(paths, "TOP", tmp_path / "top")
    return fake


def command(*words: str) -> tuple[int, str]:
    with show.console.capture() as captured, show.errors.capture() as errors:
        done = CliRunner().invoke(cli.app, ["conform", *words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, captured.get() + errors.get() + done.output


GOOD = [run_event(2), test_event("eth.a"), test_event("net.b"), END]


def test_a_good_run_ends_with_status_0_and_says_conforming(fake):
    fake.plan(*GOOD, list="eth.a  clause  text\nnet.b  clause  text")
    status, output = command("--native")
    assert status == 0
    assert output.splitlines()[-1] == (
        "2 passed, 0 failed, 0 not applicable, 0 not run: conforming")
    assert re.search(r"^eth +0\.2 s  1 passed$", output, re.M)
    assert fake.presets == [conform.NATIVE_PRESET]


def test_a_failure_is_printed_at_once_and_ends_with_status_1(fake):
    fake.plan(*MIXED, status=1)
    status, output = command("--native")
    assert status == 1
    assert output.index("FAILED eth.giant") < output.index("roce   ")
    assert "NOT RUN nvme.fused" in output and "1 RoCE v1 is off" in output
    assert output.splitlines()[-1] == "logs: build/conform/native"
    assert "5 not run" not in output
    logs = paths.TOP / "build/conform/native"
    assert len((logs / "results.jsonl").read_text().splitlines()) == len(MIXED)
    assert "--native" in (logs / "program.log").read_text()


def test_reports_are_written_with_every_verdict(fake, tmp_path):
    fake.plan(*MIXED, status=1)
    xml, page_file, captures = (tmp_path / x for x in ("a.xml", "a.html", "pcaps"))
    status, _ = command("--native", "--junit", str(xml), "--html", str(page_file),
                        "--pcap", str(captures))
    assert status == 1
    check_junit(xml.read_bytes())
    assert "eth.giant" in Page(page_file.read_text()).words
    assert captures.is_dir() and str(captures) in fake.args


@pytest.mark.parametrize("plan, said", [
    ({"signal": signal.SIGABRT, "says": "==9==ERROR: AddressSanitizer: heap\nmore"},
     "essd_conform ended with signal 6 after net.b: ERROR: AddressSanitizer: heap"),
    ({"status": 3}, "essd_conform ended with status 3 after net.b")])
def test_a_program_that_breaks_off_is_a_failure(fake, plan, said):
    fake.plan(*GOOD[:-1], **plan)
    status, output = command("--native")
    assert status == 1 and said in output
    assert "inconclusive" in output.splitlines()[-2]


def test_a_program_that_only_claims_success_is_not_believed(fake):
    fake.plan(*GOOD, status=1, says="a leak of 3 frames")
    status, output = command("--native")
    assert status == 1
    assert "status 1 though no test failed: a leak of 3 frames" in output


def test_a_target_that_a_test_has_killed_is_started_again(fake, monkeypatch):
    a, b, c = test_event("eth.a"), test_event("eth.b", "fail", reason="silence"), \
        test_event("net.c")
    starts: list[list[str]] = []

    @contextlib.contextmanager
    def stand_for(_options):
        # Results that the first program reports after the target's death do not count.
        events = [run_event(1), c, END] if starts else [run_event(3), a, b, c, END]
        fake.plan(*events, list="eth.a  x\neth.b  x\nnet.c  x",
                  sleep=0 if starts else 60)
        deaths = iter(["" if starts else "Oops: a test"])
        yield conform.Stand("nvmet", ["--fake"], death=lambda: next(deaths),
                            complaints=lambda: [] if len(starts) > 1 else ["Oops"])

    def record(*arguments):
        starts.append(arguments[1])
        return run_program(*arguments)

    run_program = conform.run_program
    monkeypatch.setattr(conform, "stand_for", stand_for)
    monkeypatch.setattr(conform, "run_program", record)
    fake.plan(list="eth.a  x\neth.b  x\nnet.c  x")
    status, output = command("--peer", "nvmet")
    assert status == 1
    assert "    the target died: Oops: a test\n    silence\n" in output
    assert "--after" not in starts[0] and starts[1][-2:] == ["--after", "eth.b"]
    assert output.splitlines()[-2] == (
        "2 passed, 1 failed, 0 not applicable, 0 not run: not conforming")
    assert output.splitlines()[-3] == "Oops"


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_a_restart_that_nobody_asked_for_fails_the_test_in_which_it_happened(
        fake, monkeypatch, verdict):
    # Asked once before the first test, and after each one.
    seen = iter([["before the run"]] * 2 + [["before the run", "watchdog"]] * 2)
    monkeypatch.setattr(conform, "stand_for", lambda _options: contextlib.nullcontext(
        conform.Stand("qemu", [], restarts=lambda: next(seen), counted=lambda: ["reads 3"])))
    fake.plan(run_event(3), test_event("eth.a"), test_event("eth.b", verdict),
              test_event("net.c"), END, list="eth.a  x\neth.b  x\nnet.c  x",
              status=int(verdict == "fail"))
    status, output = command("--junit", str(fake.folder / "a.xml"))
    assert status == 1
    assert ("FAILED eth.b  [IBTA 9.7.5]\n    the target restarted by itself during this test: "
            "watchdog\n") in output
    assert "before the run" not in output and "reads 3" in output
    assert output.splitlines()[-2] == (
        "2 passed, 1 failed, 0 not applicable, 0 not run: not conforming")


def test_a_malformed_result_ends_the_run(fake):
    fake.plan(run_event(1), "{half a li", END, sleep=60)
    status, output = command("--native")
    assert status == 1 and "not a result: '{half a li'" in output


def test_a_program_that_hangs_is_ended(fake, monkeypatch):
    monkeypatch.setattr(conform, "SILENCE_S", 5)     # it has to start in that time
    fake.plan(*GOOD[:2], sleep=60)
    status, output = command("--native")
    assert status == 1
    assert "no test ended within 5 s after eth.a: the program was killed" in output


def test_an_error_of_the_program_is_reported_in_one_line(fake):
    fake.plan(status=2, list="eth.a", says="essd_conform: eth9: needs CAP_NET_RAW\nusage: x")
    status, output = command("--target", "10.0.0.1", "--via", "eth9")
    assert status == 2
    assert output.splitlines()[-1] == "essd: eth9: needs CAP_NET_RAW"


@pytest.mark.parametrize("words", [
    ("--target", "10.0.0.1"), ("--via", "eth0"), ("--native", "--ip", "10.0.0.2"),
    ("--native", "--target", "10.0.0.1", "--via", "eth0"), ("--peer", "spdk"),
    ("--peer", "nvmet", "--over-iwarp"), ("--native", "--over-tcp", "--over-iwarp"),
    ("--target", "10.0.0.1", "--via", "eth0", "--over-iwarp"),
    ("--native", "--peer", "nvmet"), ("--slow", "0", "--native"),
    ("--native", "--junit", "/nowhere/at/all.xml"),
    # The report's place is checked before the run, so that no run is lost.
    ("--native", "--junit", "/"), ("--native", "--html", "/proc/report.html"),
    ("--native", "--pcap", "/proc/captures"), ("--native", "--pcap", "/etc/passwd"),
    ("--native", "--pcap", "/proc"), ("--native", "--only", ",")])
def test_contradicting_options_end_with_status_2(fake, words):
    fake.plan(*GOOD)
    status, output = command(*words)
    assert status == 2 and "Traceback" not in output
    assert not (fake.folder / "args.json").exists()


def test_an_old_report_is_kept_until_the_new_one_is_complete(fake, tmp_path):
    report = tmp_path / "a.html"
    report.write_text("old")
    fake.plan(list="eth.a", status=2, says="essd_conform: no")
    assert command("--native", "--html", str(report))[0] == 2
    assert report.read_text() == "old"


@pytest.mark.parametrize("drives", [1, 2])
def test_a_report_is_written_as_the_run_goes(fake, tmp_path, monkeypatch, drives):
    """Whoever looks, or pulls the plug, finds the tests that have ended."""
    monkeypatch.setattr(conform, "REPORT_S", 0.1)
    report, page_file = tmp_path / "a.xml", tmp_path / "a.html"
    report.write_text("old")
    found: list[ElementTree.Element] = []

    def restarts() -> list[str]:
        # The first test has ended.
        if restarts.calls == drives:        # type: ignore[attr-defined]
            wait_until(lambda: report.read_text() != "old" and page_file.exists())
            found.append(check_junit(report.read_bytes()))
        restarts.calls += 1                     # type: ignore[attr-defined]
        return []
    restarts.calls = 0                          # type: ignore[attr-defined]
    monkeypatch.setattr(conform, "stand_for", lambda _options: contextlib.nullcontext(
        conform.Stand("native", [], restarts=restarts)))
    monkeypatch.setattr(conform, "emulated", lambda: contextlib.nullcontext(
        conform.Stand("qemu", [], restarts=restarts)))
    fake.plan(*GOOD, list="eth.a  x\nnet.b  x")
    status, _ = command("--junit", str(report), "--html", str(page_file), "--drives",
                        str(drives))
    assert found and found[0].findall("testsuite/testcase/error")[-1].get(
        "message", "").endswith("announced tests have no result")
    assert status == 0 and not list(tmp_path.glob(".*"))
    assert not check_junit(report.read_bytes()).findall("testsuite/testcase/error")


def wait_until(is_true, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("error, said", [
    (KeyboardInterrupt, "the run was interrupted"),
    (OSError("the disk is gone"), "the run broke off: the disk is gone")])
def test_an_interrupted_run_leaves_a_report(fake, tmp_path, monkeypatch, error, said):
    calls: list[int] = []

    def restarts() -> list[str]:
        calls.append(0)
        if len(calls) > 2:      # after the second test
            raise error
        return []
    monkeypatch.setattr(conform, "stand_for", lambda _options: contextlib.nullcontext(
        conform.Stand("native", [], restarts=restarts)))
    fake.plan(*GOOD, list="eth.a  x\nnet.b  x")
    report = tmp_path / "a.xml"
    with contextlib.suppress(KeyboardInterrupt, OSError):
        command("--native", "--junit", str(report))
    root = check_junit(report.read_bytes())
    assert [x.get("name") for x in root.iter("testcase")][:2] == ["a", "b"]
    assert said in [x.get("message") for x in root.iter("error")]


CHAPTER = """\
static const struct conf_test tests[] = {
    TEST("half-open.many-queues", "12.9.7", "what it does", run),
    TEST(LEVEL("unknown-" TEXT), "5.2", "more", run),
};
CONF_TESTS(conf_tests_cm_half_open, "cm", tests);
"""


@pytest.mark.parametrize("name, said", [
    ("cn", "--only cn: no chapter is called cn: did you mean cm?"),
    ("cm.hlaf-open", "no test of cm has hlaf in its name; did you mean half?"),
    ("cm.half-open.many-queues", ""), ("cm.unknown-0x77", ""), ("cm", "")])
@pytest.mark.parametrize("listing", [(), ("--list",)])
def test_a_name_that_no_test_has_is_refused_before_the_build(fake, name, said, listing):
    folder = paths.TOP / "tests/conformance/chapters"
    folder.mkdir(parents=True)
    (folder / "cm_half_open.c").write_text(CHAPTER)
    fake.plan(*GOOD)
    status, output = command("--native", "--only", name, *listing)
    assert said in output and bool(fake.presets) == (said == "")
    assert status == (2 if said else 0)


def test_a_program_as_new_as_its_sources_knows_its_names_before_the_build(fake):
    (paths.TOP / "tests/conformance").mkdir(parents=True)
    source = paths.TOP / "tests/conformance/cm.c"
    source.write_text(CHAPTER)
    built = paths.build() / conform.NATIVE_PRESET / conform.PROGRAM
    built.parent.mkdir(parents=True)
    built.symlink_to(fake.program)
    os.utime(source, (0, 0))
    fake.plan(list_status=2, list="no test is called cm.many-half")
    status, output = command("--native", "--only", "cm.many-half")
    assert status == 2 and "no test is called cm.many-half" in output
    assert fake.presets == []


def test_every_name_of_the_suite_may_be_given_before_the_build():
    """The words of all names are in the sources, also of those that macros make."""
    program = paths.build() / conform.LINK_PRESET / conform.PROGRAM
    if not program.exists():
        program = paths.build() / conform.NATIVE_PRESET / conform.PROGRAM
    if not program.exists():
        pytest.skip("the suite is not built")
    ids = conform.test_ids(program, conform.Options(every=True))
    assert len(ids) > 1000 and conform_names.impossible(ids) == ""


def test_a_missing_target_is_reported_in_one_line(fake):
    fake.plan(list="eth.a", status=1,
              says="prepare.target: fail: nobody answers ARP\n1 failed")
    with pytest.raises(EssdError, match="^nobody answers ARP$"):
        command("--target", "10.0.0.1", "--via", "eth9")


def test_an_empty_selection_ends_with_status_2(fake):
    fake.plan(*GOOD, list="")
    status, output = command("--native", "--only", "frob")
    assert status == 2 and "--only names no test" in output


def test_a_test_that_does_not_exist_ends_with_status_2(fake):
    fake.plan(*GOOD, list_status=2, list="no test is called frob")
    status, output = command("--native", "--only", "frob")
    assert status == 2 and "no test is called frob" in output


@pytest.mark.parametrize("words, passed", [
    (("--native",), ["--native", "--nand", "--seed", "1", "--slow", "1"]),
    (("--native", "--nand"), ["--native", "--nand", "--seed", "1", "--slow", "1"]),
    (("--native", "--block", "--only", "eth,roce.a", "--only", "cm", "--all", "--seed", "9"),
     ["--native", "--seed", "9", "--slow", "1", "--only", "eth,roce.a,cm", "--all"]),
    (("--target", "10.0.0.1", "--via", "eth0", "--ip", "10.0.0.9", "--slow", "4"),
     ["--iface", "eth0", "--target", "10.0.0.1", "--ip", "10.0.0.9", "--seed", "1",
      "--slow", "4"]),
    (("--target", "10.0.0.1,fd00::1", "--via", "/run/x.sock"),
     ["--socket", "/run/x.sock", "--target", "10.0.0.1", "--target6", "fd00::1",
      "--seed", "1", "--slow", "1"])])
def test_options_are_passed_to_the_program(fake, words, passed):
    fake.plan(*GOOD)
    assert command(*words)[0] == 0
    at = fake.args.index("--results")
    assert fake.args[:at] == passed


def test_a_target_without_ipv4_ends_with_status_2(fake):
    fake.plan(*GOOD)
    status, output = command("--target", "fd00::1", "--via", "eth0")
    assert status == 2 and "most tests need the IPv4 address" in output


def test_the_list_comes_from_the_program(fake, capfd):
    fake.plan(list="eth.a  802.3  a frame")
    assert command("--list")[0] == 0
    assert capfd.readouterr().out == "eth.a  802.3  a frame\n"


def test_the_clauses_come_from_the_list_of_the_program(fake):
    fake.plan(list="eth.a  RFC 768  a frame\neth.b  RFC 768  another")
    status, output = command("--clauses")
    assert status == 0 and output.splitlines()[2:4] == ["| RFC 768 | whole (2) |", ""]
    assert "IEEE 802.3 clauses 49, 74, 91, 107, 108" in output, "what has no test follows"


def test_a_list_with_an_unknown_specification_has_no_clauses(fake):
    fake.plan(list="eth.a  RFX 768  a frame")
    with pytest.raises(EssdError, match="SPECIFICATIONS has no row for RFX 768"):
        command("--clauses")


# Captures that Wireshark checks

def frame(payload: bytes) -> bytes:
    """A UDP packet to RoCEv2's port."""
    udp = (50000).to_bytes(2) + (4791).to_bytes(2) + (8 + len(payload)).to_bytes(2)
    ip = (b"\x45\0" + (28 + len(payload)).to_bytes(2) + b"\0\0\x40\0\x40\x11\0\0"
          + bytes([10, 0, 0, 1, 10, 0, 0, 2]))
    return bytes(5) + b"\2" + bytes(5) + b"\1\x08\0" + ip + udp + b"\0\0" + payload


def capture(path: Path, *frames: bytes) -> None:
    header = bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000")
    path.write_bytes(header + b"".join(
        bytes(8) + len(x).to_bytes(4, "little") * 2 + x for x in frames))


GSI = bytes.fromhex("6440ffff0000000100000000" "8001000000000001")
MAD = bytes.fromhex("01070203" + "00" * 12 + "0015" + "00" * 6) + bytes(232)
GOOD_FRAME = frame(GSI + MAD + bytes(4))
CUT_FRAME = GOOD_FRAME[:120]


def test_wireshark_finds_the_malformed_packet(tmp_path):
    capture(tmp_path / "a.x.pcap", GOOD_FRAME, GOOD_FRAME)
    capture(tmp_path / "a.y.pcap", GOOD_FRAME, CUT_FRAME, GOOD_FRAME)
    for name in ("a.malformed", "a.failed"):
        capture(tmp_path / f"{name}.pcap", CUT_FRAME)
    results = tmp_path / "results.jsonl"
    results.write_text("\n".join(map(json.dumps, [
        run_event(5), test_event("a.x"), test_event("a.y"),
        test_event("a.malformed", malformed=True), test_event("a.failed", "fail"),
        test_event("a.none", pcap=""), END])))
    files, packets, found = conform_dissect.complaints(results, tmp_path)
    assert (files, packets) == (2, 5)
    assert [text.partition(": eth")[0] for text in found] == ["a.y.pcap: packet 2"]


def test_files_that_are_not_captures_are_refused(tmp_path):
    capture(tmp_path / "a.x.pcap", GOOD_FRAME)
    good = (tmp_path / "a.x.pcap").read_bytes()
    results = tmp_path / "results.jsonl"
    results.write_text(json.dumps(test_event("a.x")))
    for bad in (good[:-1], b"", b"x" * 100):
        (tmp_path / "a.x.pcap").write_bytes(bad)
        with pytest.raises(conform_dissect.CaptureError):
            conform_dissect.complaints(results, tmp_path)


# Control

def test_a_socket_listens_only_after_listen(tmp_path: Path) -> None:
    path = tmp_path / "a cable.sock"
    assert not conform_control.listens(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert not conform_control.listens(path)
        server.listen()
        assert conform_control.listens(path)
    assert not conform_control.listens(path)


class Scripted:
    """A fake drive that records its requests."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def info(self) -> dict[str, Any]:
        return {"nsid": 1}

    def partner(self, port: int, name: str, value: object) -> None:
        self.done.append((port, name, value))

    def power_cut(self) -> None:
        self.done.append("power-cut")

    def reset(self) -> None:
        raise EssdError("the drive is\nnot powered")

    def console(self, text: str) -> str:
        if text == "hang":
            raise ControlError("no answer")
        return f"said {text}\nand more"

    def log(self) -> str:
        return "[ 0.1] boot"

    def turn(self) -> None:
        self.done.append("turn")


@pytest.fixture
def control(tmp_path: Path) -> Iterator[tuple[Scripted, Path]]:
    drive = Scripted()
    with Control(tmp_path / "c.sock", drive) as server:
        yield drive, server.path
    assert not server.thread.is_alive() and not server.path.exists()


def ask(path: Path, *requests: str) -> list[str]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        with connection.makefile("rw") as lines:
            replies = []
            for request in requests:
                lines.write(request + "\n")
                lines.flush()
                replies.append(lines.readline())
    assert all(reply.endswith("\n") for reply in replies)
    return [reply.rstrip("\n") for reply in replies]


@pytest.mark.parametrize("request_line, reply", [
    ("info", 'ok {"nsid": 1}'), ("log", 'ok "[ 0.1] boot"'),
    ("power-cut", "ok"), ("reset", "error the drive is not powered"),
    ("console fec 0 rs", 'ok "said fec 0 rs\\nand more"'),
    ("console hang", "error no answer"),
    ("info now", "error info takes no argument"),
    ("partner 0", "error the request must be: partner PORT KEY VALUE"),
    ("partner 2 fec rs", "error there is no port 2; the ports are 0 and 1"),
    ("partner 0 colour red", "error there is no key 'colour'; the keys are speed, fec, "
                             "ber, seed, present, fault"),
    ("partner 0 ber many", "error ber cannot be 'many'"),
    ("partner 1 present maybe", "error present cannot be 'maybe'"),
    ("explode", "error unknown request 'explode'; the requests are partner, console, "
                "info, power-cut, reset, log, turn"),
    ("", "error unknown request ''; the requests are partner, console, info, "
         "power-cut, reset, log, turn")])
def test_each_request_gets_one_line(control, request_line, reply):
    assert ask(control[1], request_line, "info") == [reply, 'ok {"nsid": 1}']


@pytest.mark.parametrize("words, change", [
    ("0 speed 10", (0, "partner-speed", 10)), ("1 fec rs", (1, "partner-fec", "rs")),
    ("0 ber 1e-6", (0, "ber", 1e-6)), ("0 seed 7", (0, "seed", 7)),
    ("1 present 0", (1, "present", False)), ("1 present on", (1, "present", True)),
    ("0 fault true", (0, "partner-fault", True))])
def test_partner_requests_become_properties_of_the_port(control, words, change):
    drive, path = control
    assert ask(path, f"partner {words}") == ["ok"]
    assert drive.done == [change]


def test_control_serves_programs_in_turn_and_ends_while_one_is_connected(
        tmp_path):
    with Control(tmp_path / "c.sock", Scripted()) as server:
        assert ask(server.path, "power-cut") == ["ok"]
        assert ask(server.path, "power-cut") == ["ok"]
        idle = socket.socket(socket.AF_UNIX)
        idle.connect(str(server.path))
    assert not server.thread.is_alive()
    idle.close()


@pytest.mark.parametrize("heard, reply", [
    ("", None), ("essd> \r\nessd> ", None), ("port 0\r\n", None),
    ("port 0\r\nport 0: up\r\nessd> ", "port 0: up"),
    ("port 0\r\nessd> ", ""),
    ("essd> port 0\r\na\r\n[ 1.0] log essd\r\nb\r\nessd> [ 2.0] late\r\n",
     "a\n[ 1.0] log essd\nb"),
    ("po[ 1.0] queue pair\r\n[ 2.0] ended\r\nrt 0[ 3.0] x\r\n\r\nup\r\nessd> ",
     "up"),
    ("po\r\n[ 1.0] queue pair\r\nrt 0\r\nup\r\nessd> ", "up"),
    ("port 0\r\nname essd> \r\nname port 0\r\nessd> ", "name essd> \nname port 0"),
    ("port 0\r\nessd> x\r\nport 0\r\nnew\r\nessd> ", "new")])
def test_the_consoles_answer_is_between_echo_and_prompt(heard, reply):
    assert find_answer(heard, "port 0") == reply


# A drive in QEMU

def take_frame(path: str) -> tuple[socket.socket, bytes]:
    """Connect to a port; return the first frame that the drive sends there.

    That is an LLDP frame, sent every 30 s, if the drive's first frames are over.
    """
    cable = socket.socket(socket.AF_UNIX)
    cable.settimeout(60)
    cable.connect(path)
    frames = cable.makefile("rb")
    length = int.from_bytes(frames.read(4), "big")
    return cable, frames.read(length)


def check_turn_of_a_drive_that_stands_still(path: Path) -> None:
    (drive,) = [one["pid"] for one in json.loads((path.parent / "state.json").read_text())
                if "qemu" in Path(f"/proc/{one['pid']}/comm").read_text()]
    os.kill(drive, signal.SIGSTOP)
    timer = threading.Timer(1, os.kill, (drive, signal.SIGCONT))
    timer.start()
    begin = time.monotonic()
    assert ask(path, "turn") == ["ok"]
    assert time.monotonic() - begin > 0.9
    timer.join()


def test_a_booted_drive_is_controlled_through_the_socket():
    with conform.emulated() as stand:
        assert stand.words[::2] == ["--control", "--socket", "--socket"]
        path, *sockets = map(Path, stand.words[1::2])
        info = json.loads(ask(path, "info")[0].removeprefix("ok "))
        assert [(x["ipv4"], x["ipv6"]) for x in info["ports"]] == [
            ("10.0.0.1", "fd00:0:0:1::1"), ("10.0.1.1", "fd00:0:0:2::1")]
        assert len(info["macs"]) == 8 and info["mtu"] == 1500 and info["echo"]
        assert stand.drive["subnqn"] == info["nqn"]

        cables = [take_frame(str(x)) for x in sockets]
        for (_, frame), port in zip(cables, info["ports"], strict=True):
            assert frame[6:12] == bytes.fromhex(port["mac"].replace(":", ""))
        assert ask(path, "console port 0") == [
            'ok "port 0: up, 25 Gb/s, FEC fc (saved: fc)"']
        assert ask(path, "partner 0 present 0", "console port 0")[1] == (
            'ok "port 0: down: no partner, 25 Gb/s, FEC fc (saved: fc)"')
        assert ask(path, "partner 0 speed 40")[0].startswith("error ")
        log = ask(path, "log", "log")
        assert info["nqn"] in log[0] and log[1] == 'ok ""'
        assert ask(path, "turn", "turn") == ["ok", "ok"]
        check_turn_of_a_drive_that_stands_still(path)

        assert ask(path, "reset", "console port 1") == [
            "ok", 'ok "port 1: up, 25 Gb/s, FEC fc (saved: fc)"']
        assert ask(path, "power-cut") == ["ok"]
        again = [take_frame(str(x)) for x in sockets]   # at once: it listens
        for cable, _ in (*cables, *again):
            cable.close()
        assert "reset by power-on" in ask(path, "log")[0]
        assert stand.complaints() == []
        folder = path.parent
    assert not folder.exists()


def test_a_tester_that_stands_still_does_not_blame_the_drives_keep_alive_timer(
        tmp_path: Path) -> None:
    """The timers are of a second or two, so the drive rightly ends the associations."""
    tests = [f"nvmf.kato.{name}" for name in ("expires", "rearmed", "traffic", "granularity")]
    results = tmp_path / "results"
    with conform.emulated() as stand:
        words = [str(conform.build("fast")), *stand.words, "--results", str(results),
                 "--only", ",".join(tests)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as tester:
            assert tester.stdout is not None
            said = ""
            for line in tester.stdout:
                said += line
                if line.startswith("[ RUN "):
                    time.sleep(0.4)     # By now the test waits.
                    os.kill(tester.pid, signal.SIGSTOP)
                    time.sleep(2.1 if "granularity" in line else 1.1)
                    os.kill(tester.pid, signal.SIGCONT)
    assert tester.returncode == 0, said
    assert results.read_text().count("begins anew") >= len(tests), said


def test_a_drive_that_dies_is_a_complaint():
    with conform.emulated() as stand:
        folder = Path(stand.words[1]).parent
        for process in json.loads((folder / "state.json").read_text()):
            comm = Path(f"/proc/{process['pid']}/comm").read_text()
            if comm.startswith("qemu"):
                os.kill(process["pid"], signal.SIGSEGV)
        wait = threading.Event()
        while not stand.complaints():
            wait.wait(0.05)
        assert "drive ended unexpectedly (signal 11)" in stand.complaints()[0]


def test_conform_control_names_the_requests_of_the_document():
    text = (Path(__file__).parents[2] / "docs/conformance.md").read_text()
    for word in ("info", "partner", "console", "power-cut", "reset", "log", "turn",
                 *conform_control.PARTNER):
        assert f"`{word}" in text, word


def test_two_runs_are_compared_by_verdict(tmp_path: Path) -> None:
    before = told(test_event("eth.a"), test_event("eth.b", "fail", reason="r"),
                        test_event("eth.gone"), END)
    after = told(test_event("eth.a"), test_event("eth.b"),
                       test_event("eth.new", "na"), END)
    path = tmp_path / "before.json"
    path.write_text(json.dumps(before.as_json()))
    assert after.changes(Results.load(path)) == [
        "eth.b: failed before, passed now",
        "eth.new: not applicable now, not in the earlier run",
        "eth.gone: passed before, not in this run"]
    assert Results.load(path).as_json() == before.as_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tests": 1}', "null"])
def test_a_file_without_results_of_a_run_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(EssdError, match="the file has no results"):
        Results.load(path)
