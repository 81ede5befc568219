# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform --mutants`: the verdict on each defect, with a script as program."""

import contextlib
import re
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from essd.base import paths
from essd.base.errors import EssdError
from essd.build import native_build
from essd.conform import conform, mutants
from essd.conform.results import Test as SuiteTest

# The drive's behaviour with defect N; without a defect, it is that of `sound`.
FAKE = """#!{python}
import json, os, signal, sys, time
at = sys.argv.index
if "--list" in sys.argv:
    print("cm.first    12.9  a REQ has a reply\\nroce.first  9.7   a SEND has an ACK")
    sys.exit()
number = int(sys.argv[at("--mutant") + 1])
out = open(sys.argv[at("--results") + 1], "w")
assert "--native" in sys.argv and "--stop-at-first" in sys.argv
def say(**event):
    print(json.dumps(event), file=out, flush=True)
def test(name, verdict):
    say(event="test", id=name, chapter=name.split(".")[0], verdict=verdict,
        reason="" if verdict == "pass" else "another answer")
say(event="run", target="native", seed=1, tests=2)
if number == {none}:
    number = {sound}
if "--order" in sys.argv:
    test(open(sys.argv[at("--order") + 1]).readline().strip(), "pass")
if number == 1:
    test("roce.ack.psn", "fail")
elif number == 2:
    print("x.c:3: Assertion `a == b' failed.")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGABRT)
elif number == 3:
    time.sleep(60)
elif number == 5:
    sys.exit(0)
elif number == 6:
    print("essd_conform: one of --native", file=sys.stderr)
    sys.exit(2)
elif number == 7:
    test("cm.req.good", "not-run")
elif number == 8:
    print("killed by the machine", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
elif number == 9:
    test("cm.req.good", "pass")
    test("cm.req.last", "pass")
    os.abort()
else:
    test("cm.req.good", "pass")
say(event="end", passed=2, failed=0, na=0, not_run=0, seconds=0.1)
sys.exit(number in (1, 7))
"""

DEFECT = """[[defect]]
id = {0}
chapter = "{1}"
what = "what {0} is"
file = "a.c"
find = "x"
replace = "DEFECT"
"""


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that makes a program and defects (chapters by number)."""
    def make(defects: dict[int, str], sound: int = 0) -> Path:
        program = tmp_path / "program"
        program.write_text(FAKE.format(python=sys.executable, sound=sound,
                                       none=max(defects) + 1))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        for chapter in set(defects.values()):
            (tmp_path / f"{chapter}.toml").write_text("".join(
                DEFECT.format(number, of) for number, of in defects.items()
                if of == chapter))
        monkeypatch.setattr(mutants, "DEFECTS", tmp_path)
        monkeypatch.setattr(mutants, "HANG_S", 3.0)
        monkeypatch.setattr(paths, "build", lambda: tmp_path / "build")
        monkeypatch.setattr(native_build, "native_program", lambda *_: program)
        return program
    return make


def lines_of(text: str) -> dict[str, str]:
    """The line of output for each defect, by number."""
    return {line.split()[0]: line for line in text.splitlines()
            if line[:4].strip().isdigit()}


def test_each_end_of_a_run_has_its_own_verdict(stand, capsys: pytest.CaptureFixture):
    stand({1: "roce", 2: "roce", 3: "cm", 4: "cm", 5: "cm"})
    assert mutants.command(conform.Options()) == 1
    said = capsys.readouterr().out
    lines = lines_of(said)
    assert lines["1"].split() == ["1", "[1/5]", "roce", "what", "1", "is",
                                  "roce.ack.psn"]
    assert "crash (signal SIGABRT after roce.first: x.c:3: Assertion" in lines["2"]
    assert "hang (no test ended within 3 s after cm.first)" in lines["3"]
    assert lines["4"].endswith("SURVIVED")
    # A run with status 0 that did not report its end has not passed.
    assert "crash (status 0 after cm.first" in lines["5"]
    assert "4 of 5 mutants killed" in said


def test_the_status_is_0_if_every_defect_fails_a_test(stand, capsys: pytest.CaptureFixture):
    stand({1: "roce", 2: "roce"})
    assert mutants.command(conform.Options()) == 0
    assert "2 of 2 mutants killed" in capsys.readouterr().out


def test_a_test_that_waits_for_a_processor_does_not_hang(tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch):
    """A program that is stopped could run: it is only slow, as on a busy machine."""
    monkeypatch.setattr(mutants, "HANG_S", 0.4)
    times = iter([(0, "R", 0.1)] * 8)
    monkeypatch.setattr(mutants, "family", lambda process: [next(times, (0, "S", 0.1))])
    program = tmp_path / "mutants_test_x"
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(1)\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert mutants.run_test(tmp_path, "test_x", 1).by == ""
    program.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    monkeypatch.undo()
    monkeypatch.setattr(mutants, "HANG_S", 0.4)
    assert mutants.run_test(tmp_path, "test_x", 1).by == "hang"


def test_the_time_of_a_program_is_that_of_its_children_too(tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mutants, "HANG_S", 0.5)
    program = tmp_path / "mutants_test_x"
    program.write_text(f"#!{sys.executable}\nimport subprocess, sys\n"
                       "child = subprocess.Popen([sys.executable, '-c', "
                       "'while True: pass'])\n"
                       f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
                       "child.wait()\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    begin = time.monotonic()
    assert mutants.run_test(tmp_path, "test_x", 1).by == "hang"
    assert time.monotonic() - begin < 60
    state = Path("/proc") / (tmp_path / "child").read_text() / "stat"
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        # It was killed, and ends as soon as a core has time for it.
        while " Z " not in state.read_text():
            assert time.monotonic() - begin < 60
            time.sleep(0.05)


def test_a_run_that_was_interrupted_continues_where_it_stopped(
        stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture):
    stand({1: "roce", 2: "roce"})
    ran = []
    run_one = mutants.run_one

    def interrupted(program: Path, words: list[str], *more: Any, **named: Any) -> mutants.Verdict:
        if words[:2] == ["--mutant", "2"]:
            raise KeyboardInterrupt
        return run_one(program, words, *more, **named)

    def counted(program: Path, words: list[str], most: int | None = None, *more: Any,
                **named: Any) -> mutants.Verdict:
        ran.append((words[1], most))
        return run_one(program, words, most, *more, **named)
    monkeypatch.setattr(mutants, "run_one", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mutants.command(conform.Options())
    with open(tmp_path / "build/conform/mutants.jsonl", "a", encoding="utf-8") as file:
        file.write('{"digest": "')      # The machine may have lost power.
    monkeypatch.setattr(mutants, "run_one", counted)
    assert mutants.command(conform.Options()) == 0
    said = capsys.readouterr().out
    assert "1 of 2 defects have their verdict from a run that did not end" in said
    assert "2 of 2 mutants killed" in said
    # 3 is the drive without a defect, which also runs again after the crash of 2.
    assert ran == [("3", None), ("2", None), ("3", 2)]
    # The next run begins from the start, and so does one with other programs.
    ran.clear()
    assert mutants.command(conform.Options()) == 0
    assert {number for number, most in ran if most is None} == {"1", "2", "3"}


def test_a_verdict_belongs_to_its_program_and_arguments(tmp_path: Path) -> None:
    suite, unit = tmp_path / "program", tmp_path / "mutants_test_x"
    suite.write_text("1")
    unit.write_text("2")
    defects = [mutants.Defect(1, "cm", ""), mutants.Defect(2, "ftl", "", test="test_x")]

    def known(*words: str) -> list[bool]:
        record = mutants.Record(tmp_path / "record", suite, words)
        return [record.find(defect) is not None for defect in defects]
    record = mutants.Record(tmp_path / "record", suite, ["--all"])
    for defect in defects:
        record.add(defect, mutants.Verdict("x"))
    assert record.path.read_text().count("\n") == 2
    assert known("--all") == [True, True]
    assert known("--seed", "2") == [False, True]
    suite.write_text("3")
    assert known("--all") == [False, True]
    unit.write_text("4")
    assert known("--all") == [False, False]
    # Another test of a drive with NAND flash is another run.
    record = mutants.Record(tmp_path / "record", suite, [])
    record.add(mutants.Defect(3, "nvme", "", nand="nvme.x"), mutants.Verdict("x"))
    record = mutants.Record(tmp_path / "record", suite, [])
    assert record.find(mutants.Defect(3, "nvme", "", nand="nvme.y")) is None


def test_a_seed_chooses_a_sample(stand, capsys: pytest.CaptureFixture,
                                 monkeypatch: pytest.MonkeyPatch):
    stand(dict.fromkeys(range(10, 50), "roce"))
    monkeypatch.setattr(mutants, "SAMPLE", 3)

    def numbers(seed: int) -> set[str]:
        assert mutants.command(conform.Options(), seed) == 1
        said = capsys.readouterr().out
        assert f"./essd conform --mutants --sample {seed}" in said
        assert "0 of 3 mutants killed" in said
        return set(lines_of(said))
    assert len(numbers(1)) == 3
    assert numbers(1) == numbers(1) != numbers(2)


def test_what_found_a_defect_of_a_sample_has_to_pass_without_it(
        stand, capsys: pytest.CaptureFixture):
    stand({1: "roce", 2: "roce"}, sound=4)
    assert mutants.command(conform.Options(), 0) == 0
    assert "2 of 2 mutants killed" in capsys.readouterr().out
    stand({1: "roce"}, sound=7)
    with pytest.raises(EssdError, match=r"roce\.ack\.psn, which found defect 1, also comes"):
        mutants.command(conform.Options(), 0)


def test_a_crash_is_repeated_without_the_defect_from_the_same_beginning(
        stand, monkeypatch: pytest.MonkeyPatch):
    """With --only, the tests before the crash would not run, and neither would it come."""
    program = stand({2: "roce", 4: "cm"}, sound=2)
    suite = mutants.read_suite(program)
    defect, verdict = mutants.Defect(2, "roce", ""), mutants.Verdict("crash", ended=1)
    with pytest.raises(EssdError, match="crash, which found defect 2, also comes"):
        mutants.control(program, defect, verdict, [], 5, suite)
    with pytest.raises(EssdError, match="also comes without a defect: crash"):
        list(mutants.run_all(program, [defect], [], suite, none=5))
    ran = []
    run_one = mutants.run_one

    def listed(program: Path, words: list[str], most: int | None,
               order: list[str]) -> mutants.Verdict:
        ran.append((words, most, order))
        return run_one(program, words, most, order)
    monkeypatch.setattr(mutants, "run_one", listed)
    program = stand({2: "roce", 9: "cm"}, sound=9)
    # The same run goes on to its own end, and only as far as it came with the defect.
    (_, verdict), = mutants.run_all(program, [defect], ["--all"], suite, none=10)
    assert (verdict.by, verdict.ended) == ("crash", 1)
    order = ["roce.first", "cm.first"]
    assert ran == [(["--mutant", "2", "--all"], None, order),
                   (["--mutant", "10", "--all"], 2, order)]


def suite_test(name: str, purpose: str, seconds: float = 0.0) -> SuiteTest:
    return SuiteTest(name, name.partition(".")[0], "", purpose, "pass", seconds=seconds)


def test_the_tests_that_come_by_a_defect_and_are_like_it_run_first() -> None:
    tests = [suite_test("nvme.flush", "a Flush is answered"),
             suite_test("nvme.slow", "a Read is answered"),
             suite_test("nvme.fua", "Force Unit Access makes a Read durable"),
             suite_test("roce.fua", "Force Unit Access"),
             suite_test("nvme.fast", "a Read is answered")]
    suite = mutants.Suite(tests)
    defect = mutants.Defect(2, "nvme", "Force Unit Access is ignored", file="a/reads.c")
    # Nobody knows yet which tests come by it: among equals, those of its chapter.
    assert suite.order(defect) == ["nvme.fua", "roce.fua", "nvme.slow", "nvme.fast",
                                   "nvme.flush"]
    # The first two lines are not of tests.
    suite.take([suite_test("nvme.slow", "", 9), suite_test("nvme.fua", "", 20),
                suite_test("roce.fua", "", 1), suite_test("nvme.fast", "", 2)],
               "7 2 \n1 \n1 2 \n2 \n\n2 1 \n")
    assert suite.order(defect) == ["nvme.fua", "nvme.fast", "nvme.slow", "roce.fua",
                                   "nvme.flush"]
    assert suite.reached == {1: {"nvme.slow", "nvme.fast"},
                             2: {"nvme.slow", "nvme.fua", "nvme.fast"}}
    # Without a line for each run, nobody knows which line is whose.
    with pytest.raises(EssdError, match="5 tests have noted 4 times"):
        suite.take(tests, "1 \n" * 6)


# Test cm.b comes by 1 and 2, cm.a only by 1; 2 and 4 fail cm.a, 3 fails cm.b.
NOTING = """#!{python}
import json, os, sys
at = sys.argv.index
if "--list" in sys.argv:
    print("cm.a  12.9  a REQ has a reply\\ncm.b  12.9  a REJ has a reason")
    sys.exit()
number = int(sys.argv[at("--mutant") + 1])
names, failed = ["cm.a", "cm.b"], False
if "--order" in sys.argv:
    names = open(sys.argv[at("--order") + 1]).read().split()
with open({said!r}, "a") as said:
    print(number, *names, file=said)
reached = os.environ.get("ESSD_MUTANT_REACHED", "/dev/null")
print("1\\n1", file=open(reached, "a"))
with open(sys.argv[at("--results") + 1], "w") as out:
    for name in names:
        failed = (number, name) in ((2, "cm.a"), (4, "cm.a"), (3, "cm.b"))
        print(json.dumps(dict(event="test", id=name, chapter="cm", reason="x",
                              verdict="fail" if failed else "pass")), file=out)
        print("1 2" if name == "cm.b" else "1", file=open(reached, "a"))
        if failed:
            break
    print(json.dumps(dict(event="end", passed=1, failed=0, na=0, not_run=0, seconds=1)),
          file=out)
sys.exit(failed)
"""


def test_a_defect_meets_the_tests_that_come_by_it_and_then_all_others(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    program = tmp_path / "program"
    program.write_text(NOTING.format(python=sys.executable, said=str(tmp_path / "said")))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "cm.toml").write_text("".join(DEFECT.format(n, "cm") for n in (1, 2, 3, 4)))
    monkeypatch.setattr(mutants, "DEFECTS", tmp_path)
    monkeypatch.setattr(paths, "build", lambda: tmp_path / "build")
    monkeypatch.setattr(native_build, "native_program", lambda *_: program)
    assert mutants.command(conform.Options()) == 1
    said = capsys.readouterr().out
    assert [line.split()[-1] for line in lines_of(said).values()] == [
        "SURVIVED", "cm.a", "cm.b", "cm.a"]
    ran = sorted((tmp_path / "said").read_text().splitlines())
    assert ran == ["1 cm.a cm.b",
                   # Tests that have not noted that they come by a place, and yet fail, are
                   # repeated without the defect, which has number 5.
                   "2 cm.b cm.a", "3 cm.a cm.b", "4 cm.a cm.b",
                   "5 cm.a cm.b", "5 cm.a cm.b", "5 cm.a cm.b", "5 cm.b cm.a"]
    # What survived is listed with the command that repeats it.
    assert ("survived: 1, in a.c: what 1 is; tests that come by its place: 2 of 2\n"
            f"    {program} --native --mutant 1 --seed 1 --slow 1 --all --stop-at-first\n"
            ) in said
    assert said.count("survived: ") == 1


def test_the_command_that_repeats_a_run_fits_the_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "TOP", Path("/x"))
    program = Path("/x/build/fast/mutants/suite")
    assert mutants.replay(program, mutants.Defect(1, "ftl", "", test="test_ftl"), []) == (
        "ESSD_MUTANT=1 build/fast/mutants/mutants_test_ftl")
    assert mutants.replay(program, mutants.Defect(2, "nvme", "", nand="nvme.x,nvme.y"),
                          ["--all"]) == (
        "build/fast/mutants/suite --native --mutant 2 --nand --only nvme.x,nvme.y --all "
        "--stop-at-first")


def test_a_drive_that_does_not_answer_before_the_first_test_has_not_crashed() -> None:
    verdict = mutants.judge(mutants.Results(), 1, "prepare.identify: fail: Connect: no answer")
    assert verdict.is_test
    assert (verdict.by, verdict.reason) == ("prepare.identify", "Connect: no answer")


def test_a_program_that_the_machine_has_killed_is_no_verdict(
        stand, tmp_path: Path, capsys: pytest.CaptureFixture):
    stand({1: "roce", 8: "cm"})
    assert mutants.command(conform.Options()) == 1
    said = capsys.readouterr().out
    assert "NO VERDICT (SIGKILL from outside (out of memory?))" in lines_of(said)["8"]
    assert "1 of 2 mutants killed" in said and "1 without a verdict" in said
    # The next run tries it again.
    assert '"defect": 8' not in (tmp_path / "build/conform/mutants.jsonl").read_text()
    stand({8: "cm"}, sound=8)
    with pytest.raises(EssdError, match="NO VERDICT"):
        mutants.command(conform.Options())
    program = tmp_path / "mutants_test_x"
    program.write_text("#!/bin/sh\nkill -KILL $$\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert not mutants.run_test(tmp_path, "test_x", 1).is_known


def test_a_test_that_hangs_is_named_also_when_it_prints(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mutants, "HANG_S", 0.5)
    program = tmp_path / "mutants_test_x"
    program.write_text(f"""#!{sys.executable}
for name in "test_first", "test_second":
    print(f"[ RUN      ] {{name}}", flush=True)
    while name == "test_second":
        print("still here", flush=True)
    print(f"[       OK ] {{name}}", flush=True)
""")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    verdict = mutants.run_test(tmp_path, "test_x", 1)
    assert verdict.by == "hang"
    assert verdict.reason == "test_x: test_second did not end within 0 s"
    monkeypatch.setattr(mutants, "FLOOD_BYTES", 20)
    assert mutants.run_test(tmp_path, "test_x", 1).reason == (
        "test_x: test_second prints without end")


def test_a_program_ends_with_its_first_test_that_fails(tmp_path: Path):
    program = tmp_path / "mutants_test_x"
    program.write_text(f"""#!{sys.executable}
import time
print("[  FAILED  ] test_second", flush=True)
time.sleep(300)
""")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    begin = time.monotonic()
    assert mutants.run_test(tmp_path, "test_x", 1).words == "test_x: test_second"
    assert time.monotonic() - begin < 60


def test_only_selects_by_number_and_by_chapter(stand, capsys: pytest.CaptureFixture):
    stand({1: "roce", 2: "roce", 4: "cm"})
    # The drive without a defect has the number of none, also of those not selected.
    assert mutants.command(conform.Options(only=["1"])) == 0
    assert set(lines_of(capsys.readouterr().out)) == {"1"}
    assert mutants.command(conform.Options(only=["cm", "2"])) == 1
    assert set(lines_of(capsys.readouterr().out)) == {"2", "4"}
    with pytest.raises(conform.UsageError, match="--only eth"):
        mutants.command(conform.Options(only=["eth"]))


def test_the_drive_without_a_defect_must_pass_first(stand):
    stand({4: "cm"}, sound=7)
    with pytest.raises(EssdError, match=r"without a defect .*cm\.req\.good"):
        mutants.command(conform.Options())


def test_a_usage_error_of_the_program_is_not_a_verdict(stand):
    stand({6: "cm"})
    with pytest.raises(EssdError, match="one of --native"):
        mutants.command(conform.Options())


@pytest.mark.parametrize("options", [
    conform.Options(target="10.0.0.1", via="eth0"), conform.Options(peer="nvmet"),
    conform.Options(html=Path("x.html"))])
def test_options_that_contradict_mutants_are_refused(options: conform.Options):
    with pytest.raises(conform.UsageError, match="--mutants"):
        mutants.command(options)


def test_the_defects_of_the_tree_can_be_read():
    """test_every_defect_applies_to_the_sources checks whether they fit the sources."""
    defects = mutants.read(paths.TOP / "tests/conformance/mutants/defects")
    assert len({defect.number for defect in defects}) == len(defects) > 0
    assert len({defect.what for defect in defects}) == len(defects)


def test_the_document_has_the_numbers_of_the_defects():
    defects = mutants.read(paths.TOP / "tests/conformance/mutants/defects")
    text = (paths.TOP / "docs/conformance.md").read_text(encoding="utf-8")
    assert f"\nThere are {len(defects)} mutants." in text
    names, _, counts = text[text.index("| `roce` | `cm` |"):].splitlines()[:3]
    chapters = [name.strip(" `") for name in names.strip("|").split("|")]
    right = [sum(defect.chapter == chapter for defect in defects) for chapter in chapters]
    assert [int(count) for count in counts.strip("|").split("|")] == right
    assert sum(right) == len(defects)


GENERATE = paths.TOP / "tests/conformance/mutants/generate.py"


def generate(root: Path, defects: Path, to: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, GENERATE, root, defects, to], text=True,
                          capture_output=True, check=False, timeout=300)


def test_every_defect_applies_to_the_sources(tmp_path: Path):
    done = generate(paths.TOP, paths.TOP / "tests/conformance/mutants/defects", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "MUTANT(" in (tmp_path / "nvmeof/target/connect/ctrl.c").read_text()


def test_a_defect_whose_source_text_does_not_exist_is_refused(tmp_path: Path):
    (tmp_path / "one.toml").write_text(DEFECT.format(7, "roce"))
    (tmp_path / "a.c").write_text("y")
    done = generate(tmp_path, tmp_path, tmp_path / "out")
    assert done.returncode == 1
    assert "defect 7: its text occurs 0 times in a.c" in done.stderr


def test_a_defect_may_need_a_drive_with_nand_flash(tmp_path: Path):
    (tmp_path / "a.toml").write_text(DEFECT.format(1, "nvme") + 'nand = "nvme.x"\n'
                                     + DEFECT.format(2, "nvme"))
    program = tmp_path / "program"
    program.write_text(f"#!{sys.executable}\nimport sys\n"
                       f"open({str(tmp_path / 'said')!r}, 'a').write("
                       "' '.join(sys.argv[2:-3]) + '\\n')\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    defects = mutants.read(tmp_path)
    suite = mutants.Suite()
    list(mutants.run_all(program, defects, [], suite))
    with pytest.raises(EssdError):      # The program reports no results.
        mutants.run_sound(program, defects, [], 3, suite)
    said = (tmp_path / "said").read_text()
    assert "--mutant 1 --nand --only nvme.x\n" in said
    assert "--mutant 2\n" in said
    assert "--mutant 3\n" in said


def test_a_defect_may_be_found_by_another_test(tmp_path: Path):
    (tmp_path / "a.toml").write_text("".join(
        DEFECT.format(number, "ftl") + 'test = "test_x"\n' for number in range(1, 5)))
    program = tmp_path / "mutants_test_x"
    program.write_text(f"""#!{sys.executable}
import os, signal, sys
number = os.environ["ESSD_MUTANT"]
print("[       OK ] test_first")
if number == "1":
    print("[  FAILED  ] test_second\\n[  FAILED  ] test_third")
    sys.exit(2)
if number == "2":
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGABRT)
if number == "3":
    sys.exit(1)
if number == "5":
    sum(range(5_000_000))       # more processor time than the kernel's clock has in a tick
""")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    defects = mutants.read(tmp_path)
    found = [verdict for _, verdict in
             mutants.run_all(tmp_path / "program", defects, [], mutants.Suite())]
    assert found[0].words == "test_x: test_second"
    assert found[1].by == "crash" and "SIGABRT" in found[1].reason
    assert found[2].by == "crash" and "status 1" in found[2].reason
    assert found[3].words == mutants.SURVIVED
    assert mutants.run_sound(tmp_path / "program", defects, [], 5, mutants.Suite()) > 0


def test_the_highest_number_is_that_of_the_c_sources(tmp_path: Path):
    folder = paths.TOP / "tests/conformance"
    limit = re.search(r"MUTANT_NUMBERS = (\d+)", (folder / "mutants/mutant.h").read_text())
    assert limit and f"\nNUMBERS = {limit[1]} " in GENERATE.read_text()
    (tmp_path / "one.toml").write_text(DEFECT.format(limit[1], "roce"))
    (tmp_path / "a.c").write_text("x")
    done = generate(tmp_path, tmp_path, tmp_path / "out")
    assert done.returncode == 1 and "has no number from 1 to 9999" in done.stderr


def test_the_tests_that_find_defects_are_listed(tmp_path: Path):
    (tmp_path / "a.toml").write_text(
        DEFECT.format(1, "ftl") + 'test = "test_b"\n'
        + DEFECT.format(2, "ftl") + 'test = "test_a"\n'
        + DEFECT.format(3, "ftl") + 'test = "test_b"\n' + DEFECT.format(4, "nvme"))
    done = subprocess.run([sys.executable, GENERATE, "--tests", tmp_path], text=True,
                          capture_output=True, check=True, timeout=300)
    assert done.stdout.split() == ["test_a", "test_b"]
