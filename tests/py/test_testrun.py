# SPDX-License-Identifier: BSD-2-Clause
"""`essd test`: what it shows, and which failed tests it repeats."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path, PurePath
from typing import Any

import pytest
from test_conform import END, run_event, told
from test_conform import test_event as event_of

from essd.base import paths, show
from essd.base.errors import EssdError
from essd.build.fw_build import BuildError
from essd.conform import report as conform_report
from essd.instance.config import STOCK
from essd.testrun import repeat as repeats, screen as screens, testrun
from essd.testrun.testrun import Run, StageError

TOP = paths.TOP         # which fixtures replace

# What `pytest -v -n 2 --dist loadfile` prints.
PYTEST = """\
============================= test session starts ==============================
platform linux -- Python 3.11.2, pytest-9.2.0, pluggy-1.7.0 -- /usr/bin/python3
rootdir: /home/tests
plugins: xdist-3.8.0, timeout-2.4.0
created: 2/2 workers
2 workers [7 items]

scheduling tests via LoadFileScheduling

tests/py/test_a.py::test_one~
[gw0] [ 14%] PASSED tests/py/test_a.py::test_one~
tests/py/test_b.py::test_two[a b]~
[gw1] [ 28%] FAILED tests/py/test_b.py::test_two[a b]~
tests/py/test_a.py::test_three~
[gw0] [ 42%] SKIPPED tests/py/test_a.py::test_three~
tests/py/test_c.py::TestIt::test_four~
[gw1] [ 57%] PASSED tests/py/test_c.py::TestIt::test_four~
[gw1] [ 57%] ERROR tests/py/test_c.py::TestIt::test_four~
[gw0] node down: Not properly terminated
---------------- generated xml file: /home/build/test/python.xml -----------------

==================================== ERRORS ====================================
____________________ ERROR at teardown of TestIt.test_four _____________________

E       assert False
=================================== FAILURES ===================================
________________________________ test_two[a b] _________________________________

E   AssertionError: assert 'a b' == 'c'

tests/py/test_a.py::test_one was not run by this
=========================== short test summary info ============================
FAILED tests/py/test_b.py::test_two[a b] - AssertionError: assert 'a b' == 'c'
ERROR tests/py/test_c.py::TestIt::test_four - assert False
============== 1 failed, 2 passed, 1 skipped, 1 error in 39.40s ================
""".replace("~\n", " \n")       # xdist ends these lines with a space.


def test_pytest_is_shown_by_file_and_its_failures_whole() -> None:
    lines: list[str] = []
    now = iter(range(100))
    screen = screens.PytestScreen(lines.append, lambda: next(now))
    for line in PYTEST.splitlines():
        screen(line)
    text = "\n".join(lines)
    assert [" ".join(line.split()) for line in lines if ".py" in line and " s " in line] == [
        "tests/py/test_b.py 2.0 s 1 failed",
        "tests/py/test_a.py 3.0 s 1 passed, 1 skipped",
        "tests/py/test_c.py 3.0 s 1 passed, 1 errors"]
    assert screen.count == {"passed": 2, "failed": 1, "errors": 1, "skipped": 1}
    assert screen.failed == {"tests/py/test_b.py::test_two[a b]": {"failed": 1},
                             "tests/py/test_c.py::TestIt::test_four": {"errors": 1}}
    assert lines[0] == "FAILED tests/py/test_b.py::test_two[a b]"
    assert "node down" in text
    # The failures are whole, empty lines and lines that look like a test included.
    begin = PYTEST.index("=\n____________________ ERROR")
    assert PYTEST[begin + 2:PYTEST.index("\n=========================== short")] in text
    for other in ("PASSED", "platform", "LoadFile", "short test summary", "2 workers", "generated"):
        assert other not in text


def test_the_lines_of_a_run_that_does_not_begin_are_shown() -> None:
    lines: list[str] = []
    screen = screens.PytestScreen(lines.append)
    for line in ("ERROR: usage: __main__.py [options]", "", "INTERNALERROR> no"):
        screen(line)
    assert lines == ["ERROR: usage: __main__.py [options]", "", "INTERNALERROR> no"]


def test_the_result_of_a_single_process_is_read_too() -> None:
    screen = screens.PytestScreen(lambda line: None)
    for line in ("============ test session starts ============",
                 "tests/e2e/test_a.py::test_one PASSED                           [ 50%]",
                 "tests/e2e/test_a.py::test_two[x] SKIPPED (no reason)           [100%]"):
        screen(line)
    assert screen.count == {"passed": 1, "skipped": 1}


CTEST = """\
Test project /x/build/native
      Start  1: test_a
      Start  2: test_b
1/4 Test  #2: test_b ...........................   Passed    0.02 sec
2/4 Test  #1: test_a ...........................***Failed    1.50 sec
test_a.c:5: error: Failure!

      Start  3: test_c
3/4 Test  #3: test_c ...........................Subprocess aborted***Exception:   0.10 sec
      Start  4: test_d
4/4 Test  #4: test_d ...........................   Passed    2.00 sec

50% tests passed, 2 tests failed out of 4
"""


def test_ctest_is_shown_by_folder_and_the_output_of_failed_tests_whole() -> None:
    listed = json.dumps({"tests": [
        {"name": f"test_{name}", "properties": [
            {"name": "WORKING_DIRECTORY", "value": f"/x/build/native/{folder}"}]}
        for name, folder in zip("abcd", ("net", "net", "lib", "lib"), strict=True)]})
    lines: list[str] = []
    screen = screens.CtestScreen(
        screens.folders(listed, PurePath("/x/build/native")), lines.append)
    for line in CTEST.splitlines():
        screen(line)
    assert screen.count == {"passed": 2, "failed": 2}
    assert screen.failed == ["test_a", "test_c"] and screen.lost == ""
    screen.folder["test_e"] = "lib"
    assert screen.lost == "5 tests were listed, and 4 have a result"
    said = [" ".join(line.split()) for line in lines]
    assert "net 1.5 s 1 passed, 1 failed" in said and "lib 2.1 s 1 passed, 1 failed" in said
    assert "test_a.c:5: error: Failure!" in lines
    assert not any("test_b" in line or "Start" in line for line in lines)
    assert lines[-1] == "50% tests passed, 2 tests failed out of 4"


# Tests that fail by chance

FLAKY = """\
from pathlib import Path

def test_that_passes():
    pass

def test_that_passes_the_second_time(tmp_path):
    (tmp_path / "link.pcap").write_bytes(b"frames")
    seen = Path(__file__).with_name("seen")
    was_there = seen.exists()
    seen.touch()
    assert was_there, "the first time"
"""
BROKEN = "\ndef test_that_never_passes():\n    assert False, 'always'\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of `essd test` in a tree of its own."""
    monkeypatch.setenv("PYTHONPATH", str(paths.TOP / "tools"))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setattr(paths, "TOP", tmp_path)
    monkeypatch.setattr(testrun, "LOGS", tmp_path / "build/test")
    testrun.LOGS.mkdir(parents=True)
    (tmp_path / "tests/e2e").mkdir(parents=True)
    (tmp_path / "tests/pytest.ini").write_text(
        "[pytest]\nmarkers =\n    long: x\naddopts = -p essd.pytest_plugin\n")
    made = Run(False)
    made.stage = "e2e"
    return made


def said_by(run: Run, text: str, workers: tuple[str, ...] = (),
            is_repeated: Callable[[Path], bool] = testrun.always) -> tuple[str, str]:
    """What a stage with these tests prints, and its error or ""."""
    (paths.TOP / "tests/e2e/test_it.py").write_text(text)
    error = ""
    with show.console.capture() as captured:
        try:
            testrun.pytest(run, *workers, "tests/e2e", is_repeated=is_repeated)
        except StageError as why:
            error = str(why)
    return captured.get(), error


def test_an_end_to_end_test_that_fails_by_chance_is_repeated_alone(run: Run) -> None:
    text, error = said_by(run, FLAKY, testrun.THREE_WORKERS)
    name = "tests/e2e/test_it.py::test_that_passes_the_second_time"
    assert error == ""
    assert f"FAILED {name}" in text and "AssertionError: the first time" in text
    assert f"-- {name}: failed, and passed when repeated alone" in text
    assert run.repeated == [f"e2e: passed when repeated: {name}"]
    assert run.counts["e2e"] == {"passed": 1, screens.REPEATED: 1}
    # The evidence is beside the log, and the log has both runs.
    (kept,) = (testrun.LOGS / "e2e-first-failures").iterdir()
    assert (kept / "link.pcap").read_bytes() == b"frames"
    assert "the first time" in (kept / "call.txt").read_text()
    assert run.log.read_text().count("test session starts") == 2
    # The summaries are those of the whole run only.
    assert run.summaries == [x for x in run.summaries if "1 failed, 1 passed" in x]


def test_a_test_that_fails_twice_is_a_failure(run: Run) -> None:
    text, error = said_by(run, FLAKY + BROKEN)
    name = "tests/e2e/test_it.py::test_that_never_passes"
    assert error.startswith(f"failed twice in a row: {name}; see ")
    assert f"-- {name}: failed, and failed again when repeated alone" in text
    assert f"e2e: failed twice: {name}" in run.repeated
    assert run.counts["e2e"] == {"passed": 1, "failed": 1, screens.REPEATED: 1}


ENDS = """\
import os

def test_first():
    pass

def test_that_ends_its_process():
    os._exit(0)

def test_last():
    pass
"""


@pytest.mark.parametrize("is_repeated", [testrun.always, repeats.are_real])
def test_a_run_that_lost_tests_has_failed(
        run: Run, is_repeated: Callable[[Path], bool]) -> None:
    """The process may end with status 0, for example because a library ends it."""
    text, error = said_by(run, ENDS, is_repeated=is_repeated)
    assert error.startswith("3 tests were collected, and 1 have a result")


def test_workers_that_die_lose_no_test_silently(run: Run) -> None:
    """pytest-xdist goes on without a worker that is not replaced."""
    (paths.TOP / "tests/e2e/test_other.py").write_text(ENDS.replace("first", "other"))
    text, error = said_by(run, ENDS, (*testrun.THREE_WORKERS, "--max-worker-restart", "0"))
    assert error.startswith("6 tests were collected, and 4 have a result")
    screen = screens.PytestScreen(lambda line: None)
    for line in ("2 workers [4 items]", "[gw0] [ 25%] PASSED tests/e2e/test_a.py::test_b ",
                 "[gw0] node down: Not properly terminated"):
        screen(line)
    assert screen.lost.startswith("4 tests were collected, and 1 have a result")


def test_tests_that_are_left_out_are_not_missed(run: Run) -> None:
    text, error = said_by(run, "import pytest\n\n@pytest.mark.long\ndef test_long():\n    pass\n\n"
                          "@pytest.mark.parametrize('x', ['a b', 'c\\nd'])\n"
                          "def test_it(x):\n    pass\n\n@pytest.fixture\ndef bad():\n    yield\n"
                          "    assert False\n\ndef test_error(bad):\n    pass\n\n"
                          "@pytest.mark.skip\ndef test_skipped():\n    pass\n",
                          is_repeated=repeats.are_real)
    assert run.counts["e2e"] == {"passed": 3, "errors": 1, "skipped": 1}
    assert "status 1" in error
    for line, count in (("collected 17 items / 14 deselected / 3 selected", 3),
                        ("collecting ... collected 1 item", 1), ("1 worker [1 item]", 1),
                        ("collected 5 items / 1 error / 1 skipped", 5)):
        screen = screens.PytestScreen(lambda line: None)
        screen(line)
        assert screen.collected == count, line


STARTS = "import subprocess, sys\n    subprocess.run([sys.executable, '-c', ''])"


@pytest.fixture
def as_tests_py(run: Run) -> None:
    """The tests of the run have the conftest.py of tests/py."""
    folder = paths.TOP / "tests/e2e"
    shutil.copy(Path(__file__).with_name("conftest.py"), folder / "conftest.py")


def test_unit_tests_are_not_repeated(run: Run, as_tests_py: None) -> None:
    text, error = said_by(run, FLAKY, is_repeated=repeats.are_real)
    assert "status 1" in error and run.repeated == []
    assert "when repeated" not in text


@pytest.mark.parametrize("start", [
    STARTS,
    "import socket\n    socket.socket().bind(('127.0.0.1', 0))"])
@pytest.mark.parametrize("workers", [(), testrun.THREE_WORKERS])
def test_tests_that_use_other_programs_are_repeated(
        run: Run, as_tests_py: None, start: str, workers: tuple[str, ...]) -> None:
    text, error = said_by(run, FLAKY.replace("():\n", f"():\n    {start}\n", 1), workers,
                          repeats.are_real)
    assert error == "" and len(run.repeated) == 1 and "passed when repeated alone" in text


def test_beside_a_unit_test_that_failed_nothing_is_repeated(run: Run, as_tests_py: None) -> None:
    (paths.TOP / "tests/e2e/test_other.py").write_text(BROKEN)
    text, error = said_by(run, FLAKY.replace("():\n", f"():\n    {STARTS}\n", 1),
                          is_repeated=repeats.are_real)
    assert "status 1" in error and run.repeated == []


def test_a_run_that_broke_off_is_not_repeated(run: Run) -> None:
    (paths.TOP / "tests/e2e/conftest.py").write_text("import no_such_module\n")
    text, error = said_by(run, FLAKY)
    assert "status 4" in error and "no_such_module" in text and run.repeated == []


LEAKY = """\
import pytest

@pytest.fixture(scope="module", autouse=True)
def nothing_is_lost():
    yield
    assert False, "frames were lost"

def test_last():
    pass
"""


@pytest.mark.parametrize("workers", [(), testrun.THREE_WORKERS])
@pytest.mark.parametrize("lost", ["always", "once"])
def test_after_an_error_when_fixtures_end_the_whole_file_is_repeated(
        run: Run, workers: tuple[str, ...], lost: str) -> None:
    """It may be of any test of the file; the last one alone would prove nothing."""
    leaky = LEAKY if lost == "always" else LEAKY.replace(
        "    assert False", """    from pathlib import Path
    seen = Path(__file__).with_name("seen")
    was_there = seen.exists()
    seen.touch()
    assert was_there""")
    text, error = said_by(run, leaky, workers)
    name = "tests/e2e/test_it.py"
    assert "frames were lost" in text
    assert error.startswith(f"failed twice in a row: {name}; see " if lost == "always" else "")
    assert (error == "") == (lost == "once")
    assert run.repeated == [f"e2e: {'failed twice' if error else 'passed when repeated'}: {name}"]


def test_a_drive_that_restarted_by_itself_is_no_chance(run: Run) -> None:
    text, error = said_by(run, FLAKY.replace("the first time", "drive has restarted by itself"))
    assert "status 1" in error and "restarted by itself" in text and run.repeated == []


def test_beside_a_file_that_cannot_be_read_nothing_is_repeated(run: Run) -> None:
    """With workers, the others run, and the exit status is that of a failed test."""
    (paths.TOP / "tests/e2e/test_other.py").write_text("import no_such_module\n")
    text, error = said_by(run, FLAKY, testrun.THREE_WORKERS)
    assert error != "" and "no_such_module" in text and run.repeated == []


SKIPS = FLAKY.replace('assert was_there, "the first time"',
                      'assert was_there, "the first time"\n    import pytest\n'
                      '    pytest.skip("no network")')


def test_a_test_that_is_skipped_when_it_is_repeated_has_not_passed(run: Run) -> None:
    _text, error = said_by(run, SKIPS)
    assert "failed twice in a row" in error


def test_many_failures_are_not_repeated() -> None:
    names = [f"test_{n}" for n in range(repeats.MOST + 1)]
    lines: list[str] = []
    found = repeats.again(names, lambda name: pytest.fail(name), lines.append, Path("/kept"))
    assert found.complaint == "9 tests failed" and "none of them is repeated" in lines[0]
    assert repeats.summary("e2e", found) == []


class Suite:
    """Takes the place of Run.command() in the conform stage."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: list[dict[str, Any]],
                 passes_again: bool = True) -> None:
        self.first = first
        self.passes_again = passes_again
        self.commands: list[list[str]] = []
        monkeypatch.setattr(Run, "command", self.command)
        monkeypatch.setattr(testrun, "dissect", self.dissect)

    def dissect(self, name: str, *_more: object) -> list[str]:
        self.commands.append(["dissect", name])
        return []

    def command(self, *words: str | Path, **_options: object) -> None:
        plain = list(map(str, words))
        self.commands.append(plain)
        if "--native" in plain:
            return
        if "--only" in plain:
            if not self.passes_again:
                raise StageError("status 1")
            return
        folder = paths.TOP / "build/conform/qemu/drive0"
        folder.mkdir(parents=True)
        (folder / "drive.console").write_text("boot")
        testrun.captures("qemu").mkdir(parents=True)
        (testrun.captures("qemu") / "cm.slow.pcap").write_bytes(b"frames")
        results = told(*self.first)
        (testrun.LOGS / "conform-qemu.xml").write_bytes(
            conform_report.junit(results, conform_report.Facts()))
        if not results.is_conforming:
            raise StageError("status 1")


def conform_stage(run: Run) -> str:
    run.stage = "conform"
    run.background["qemu"] = None   # type: ignore[assignment]
    Run.need, need = (lambda *_: None), Run.need    # type: ignore[method-assign]
    try:
        testrun.conform(run)
    except StageError as error:
        return str(error)
    finally:
        Run.need = need             # type: ignore[method-assign]
    return ""


FAILED = [run_event(2), event_of("cm.slow", "fail"), event_of("cm.fast"), END]


@pytest.mark.parametrize("passes_again", [True, False])
def test_a_conformance_test_that_fails_in_qemu_is_repeated_alone(
        run: Run, monkeypatch: pytest.MonkeyPatch, passes_again: bool) -> None:
    suite = Suite(monkeypatch, FAILED, passes_again)
    run.counts["conform"] = Counter(failed=1, passed=1)
    error = conform_stage(run)
    assert [words[words.index("--only") + 1] for words in suite.commands
            if "--only" in words] == ["cm.slow"]
    assert error == ("" if passes_again else "qemu: failed twice in a row: cm.slow")
    # A repetition replaces the results with which the captures are checked.
    assert suite.commands.index(["dissect", "qemu"]) < next(
        at for at, words in enumerate(suite.commands) if "--only" in words)
    how = "passed when repeated" if passes_again else "failed twice"
    assert run.repeated == [f"conform: {how}: cm.slow"]
    kept = testrun.LOGS / "conform-first-failures"
    assert (kept / "qemu/drive0/drive.console").read_text() == "boot"
    assert (kept / "cm.slow.pcap").read_bytes() == b"frames"
    assert (kept / "conform-qemu.xml").exists()


@pytest.mark.parametrize("events, complaint", [
    ([run_event(3), *FAILED[1:]], "a test has no result"),
    (FAILED[:-1], "the program broke off")])
def test_a_conformance_run_with_other_faults_is_not_repeated(
        run: Run, monkeypatch: pytest.MonkeyPatch, events: list[dict[str, Any]],
        complaint: str) -> None:
    suite = Suite(monkeypatch, events)
    if complaint == "the program broke off":
        junit = conform_report.junit

        def broken(results: Any, facts: Any) -> bytes:
            results.complaints.append(complaint)
            return junit(results, facts)
        monkeypatch.setattr(conform_report, "junit", broken)
    assert conform_stage(run) == "qemu: status 1"
    assert not any("--only" in words for words in suite.commands)


def test_a_report_of_an_earlier_run_repeats_nothing(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = Suite(monkeypatch, FAILED)
    (testrun.LOGS / "conform-qemu.xml").write_bytes(
        conform_report.junit(told(*FAILED), conform_report.Facts()))

    def broken(*words: str | Path, **_options: object) -> None:
        suite.commands.append(list(map(str, words)))
        if "--native" not in words:
            raise StageError("the drive does not start")
    monkeypatch.setattr(Run, "command", broken)
    assert conform_stage(run) == "qemu: the drive does not start"
    assert not any("--only" in words for words in suite.commands)


# The end of the output

def test_the_end_has_shares_reports_and_the_counts_last(run: Run) -> None:
    run.counts = {"python": Counter(passed=40, skipped=2), "e2e": Counter(passed=10)}
    run.counts["e2e"][screens.REPEATED] = 1
    run.summaries = ["python: 40 passed, 2 skipped in 30.00s"]
    run.repeated = ["e2e: passed when repeated: tests/e2e/test_a.py::test_b"]
    run.reports = [testrun.LOGS / "python.xml", testrun.LOGS / "none.xml"]
    run.reports[0].touch()
    with show.console.capture() as captured:
        testrun.show_summary(run, {"lint": 10, "python": 30, "e2e": 60},
                             {"lint": "ruff: status 1\nmore"})
    lines = [" ".join(line.split()) for line in captured.get().splitlines()]
    assert lines[:3] == ["lint 10 s 10 % FAILED: ruff: status 1",
                         "python 30 s 30 % passed: 40 passed, 2 skipped",
                         "e2e 60 s 60 % passed: 10 passed, 1 passed when repeated"]
    assert lines[4] == f"reports: python.xml in {testrun.LOGS}"
    assert lines[-3:] == [
        "python: 40 passed, 2 skipped in 30.00s",
        "e2e: passed when repeated: tests/e2e/test_a.py::test_b",
        "essd test: 50 passed, 0 failed, 2 skipped, 1 passed when repeated: FAILED in lint"]


def test_the_counts_of_a_conformance_run_are_read() -> None:
    last = told(run_event(3), event_of("a.x"), event_of("a.y", "na"), END).last_line
    assert screens.conform_count(last) == {"passed": 1, "failed": 0, "skipped": 1,
                                           "errors": 1}
    assert screens.conform_count("lint: passed") == Counter()


@pytest.mark.parametrize("only", [["lint"], ["native"]])
def test_a_second_run_in_a_checkout_is_refused_and_touches_nothing(
        only: list[str], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def second(run: Run) -> None:
        before = run.log.read_text()
        with pytest.raises(EssdError, match="another essd test runs in this checkout"):
            testrun.run_tests(False, only)
        assert run.log.read_text() == before == "of the first run\n"

    def first(run: Run) -> None:
        run.show_and_log("of the first run")
        second(run)
        ended.append(run.stage)
    ended: list[str] = []
    monkeypatch.setattr(testrun, "BACKGROUND", {})
    monkeypatch.setattr(testrun, "STAGES", {"native": first, "lint": lambda run: None})
    assert testrun.run_tests(False, ["native"]) == 0
    assert ended == ["native"]
    assert testrun.run_tests(False, ["lint"]) == 0      # The first has ended.


# Native tests with another program or Linux's kernel as peer

PRESETS = {"version": 3, "configurePresets": [
    {"name": "native", "generator": "Ninja", "binaryDir": "${sourceDir}/build/native"}],
    "testPresets": [{"name": "native", "configurePreset": "native",
                     "output": {"outputOnFailure": True}}]}


def native_stage(run: Run, monkeypatch: pytest.MonkeyPatch, tests: dict[str, str],
                 real: tuple[str, ...] = ()) -> str:
    """Run the stage with tests that are scripts of the shell; return its complaint."""
    monkeypatch.setattr(testrun.headers, "read_build", lambda build: ({}, 0))
    monkeypatch.setattr(testrun.headers, "summary", lambda counts, objects: "")
    monkeypatch.setattr(testrun.headers, "complaints", lambda counts, listed: [])
    (paths.TOP / "CMakePresets.json").write_text(json.dumps(PRESETS))
    (paths.TOP / "CMakeLists.txt").write_text("\n".join([
        "cmake_minimum_required(VERSION 3.25)", "project(sample NONE)", "enable_testing()",
        *(f"add_test(NAME {name} COMMAND sh -c \"{script}\")" for name, script in tests.items()),
        *(f"set_tests_properties({name} PROPERTIES LABELS real-time)" for name in real)]))
    run.stage = "native"
    run.log.write_text("")
    try:
        testrun.native(run)
    except StageError as error:
        return str(error)
    return ""


def test_a_native_test_in_real_time_that_fails_by_chance_is_repeated_alone(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = {"tcp_peer": "rmdir first || { mkdir first && exit 1; }",
             "cuts": "echo 12 power cuts of 3 shapes"}
    assert native_stage(run, monkeypatch, tests, ("tcp_peer",)) == ""
    assert run.repeated == ["native: passed when repeated: tcp_peer"]
    assert run.counts["native"] == {"passed": 1, screens.REPEATED: 1}
    assert "native: 12 random power cuts of the translation layer" in run.summaries
    kept = repeats.first_failures(run.log)
    assert {"native.log", "native.xml", "LastTest.log"} == {one.name for one in kept.iterdir()}


def test_a_native_test_that_fails_twice_is_a_failure(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    error = native_stage(run, monkeypatch, {"tcp_peer": "exit 1"}, ("tcp_peer",))
    assert error.startswith("failed twice in a row: tcp_peer")


def test_native_tests_that_only_compute_are_not_repeated(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    error = native_stage(run, monkeypatch, {"tcp_peer": "exit 1", "unit": "exit 1"},
                         ("tcp_peer",))
    assert error.startswith("ctest: status 8") and not run.repeated


@pytest.mark.parametrize("said", [
    "panic: x.c:7: assertion failed: is_sound", "x.c:7:1: runtime error: shift of 64",
    "ERROR: AddressSanitizer: stack-use-after-return", "tcp_tap failed with -11"])
def test_a_native_test_in_real_time_that_crashed_is_not_repeated(
        said: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"rmdir first || {{ mkdir first && echo '{said}' && exit 1; }}"
    error = native_stage(run, monkeypatch, {"tcp_peer": script}, ("tcp_peer",))
    assert error.startswith("ctest: status 8") and not run.repeated


def test_what_ctest_itself_complains_about_is_the_error(
        run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has then run some of the tests, or none and has no log of them."""
    command = Run.command

    def break_off(run: Run, *words: Any, **options: Any) -> None:
        if words[0] == "ctest":
            words = ("sh", "-c", "exit 3")
        command(run, *words, **options)
    monkeypatch.setattr(Run, "command", break_off)
    assert native_stage(run, monkeypatch, {"unit": "true"}).startswith("sh: status 3")


def test_every_native_test_with_another_process_as_peer_is_in_real_time() -> None:
    """A script that starts it is what such a test runs."""
    names = []
    for path in TOP.glob("tests/**/CMakeLists.txt"):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"add_test\(NAME (\S+) COMMAND \$\{Python3_EXECUTABLE\}", text):
            names.append(name)
            (properties,) = re.findall(rf"set_tests_properties\({name} PROPERTIES ([^)]*)\)", text)
            assert "LABELS real-time" in properties, name
    assert len(names) >= 6


# What the hosts of end-to-end tests are

@pytest.mark.parametrize(("every", "built"), [(False, ["uml"]), (True, ["uml", "peers"])])
def test_user_mode_linux_is_built_for_the_end_to_end_tests(
        every: bool, built: list[str], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def builder(name: str) -> Callable[[object], None]:
        return lambda progress: found.append(name)
    found: list[str] = []
    stages = {name: stages for name, (stages, _) in testrun.BACKGROUND.items()}
    monkeypatch.setattr(testrun, "BACKGROUND", {
        name: (stages[name], builder(name)) for name in ("uml", "peers")})
    monkeypatch.setattr(testrun, "STAGES", {
        "e2e": lambda run: [one.result() for one in run.background.values()]})
    assert testrun.run_tests(every, ["e2e"]) == 0
    assert found == built


def test_hosts_are_stock_linux_where_user_mode_linux_cannot_be_built(
        run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    failed: Future[object] = Future()
    failed.set_exception(BuildError("Debian's archive offers none"))
    run.background["uml"] = failed
    assert testrun.host_kind(run) == STOCK
    assert "all hosts are stock Linux: Debian's archive offers none" in capsys.readouterr().out
