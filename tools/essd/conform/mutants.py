# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform --mutants`: check that the suite fails a drive with a defect.

tests/conformance/mutants/defects/*.toml describe the defects.  One program has
all of them in a second copy of the drive, and `--mutant N` enables one.  A run
ends with the first test that does not pass.  A defect may name a unit test or a
native test instead, which is then run with the defect.  docs/conformance.md says
how to add a defect.

The drive without a defect runs first.  Each test then notes which defects' places it
executes: a test that does not come by a defect's place cannot notice it.  So a defect
is tried with the tests that come by its place first, those ahead whose names and
purposes have most words in common with its description, the cheapest first among
equals.  The other tests follow, so that a defect that survives has met the whole suite.

A run of all defects that is interrupted continues where it stopped: its verdicts
are kept in build/conform/mutants.jsonl until it is complete.  `--sample SEED` runs
a few defects that the seed chooses, in the build with sanitizers, most of which
the native tests have built before.  A sample does not run the whole suite without a
defect, so only the words order its tests.
"""

import contextlib
import hashlib
import json
import math
import os
import random
import re
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.table import Table

from ..base import interrupts, paths, show
from ..base.errors import EssdError
from ..base.process import stat_fields, thread_states
from ..build import native_build
from . import conform
from .results import Results, ResultsError, Test

PROGRAM = "tests/conformance/mutants/essd_conform_mutants"
TESTS = "tests/conformance/mutants/mutant_tests"    # builds mutants_TEST for each test
PRESET = "fast"
SAMPLE_PRESET = "native"
SAMPLE = 12         # defects of a sample
DEFECTS = paths.TOP / "tests/conformance/mutants/defects"
AT_ONCE = 2
# A test hangs that takes this long, although tests run in virtual time.  Its time
# is that of its processes, or time in which none of them runs or could run: on a
# busy machine a test may take any amount of real time.
HANG_S = 90.0
REACHED = "ESSD_MUTANT_REACHED"     # the environment's name of the file for Suite.take()
PREPARE = 2         # runs of main.c before the tests, which find out what the drive is
FLOOD_BYTES = 1 << 28   # No test prints as much, unless it never ends.
LOOK_S = 0.2
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SURVIVED = "SURVIVED"
UNKNOWN = "NO VERDICT"
# With these signals the machine, or its user, ends a process: Linux does when it has no
# memory left.  A defect does not send them.
FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
NOT_PREPARED = re.compile(r"^(prepare\.\w+): (?:fail|not-run): (.*)", re.M)
FAILED = re.compile(r"^\[  FAILED  \] (?:\w+: )?(test_\w+)", re.M)
BEGUN = re.compile(r"^\[ RUN      \] (test_\w+)", re.M)
ENDED = re.compile(r"^\[ (?:      OK| FAILED | SKIPPED) \] (?:\w+: )?test_\w+", re.M)


@dataclass(frozen=True)
class Defect:
    number: int
    chapter: str
    what: str
    nand: str = ""      # tests that find it on a drive with NAND flash; "": none are needed
    test: str = ""      # program that finds it instead of the conformance tests
    file: str = ""      # that has it


@dataclass(frozen=True)
class Verdict:
    """The result of a run with one defect, or with none."""

    by: str             # the test that failed, "crash" or "hang"; "": all passed
    reason: str = ""
    seconds: float = 0.0        # of processor time
    is_known: bool = True       # False: the process was ended from outside
    ended: int = 0              # tests of the suite that had ended by then

    @property
    def words(self) -> str:
        return (self.by or SURVIVED) if self.is_known else UNKNOWN

    @property
    def is_test(self) -> bool:
        """Whether a test failed, as it should."""
        return self.by not in ("", "crash", "hang")


def read(folder: Path) -> list[Defect]:
    """All defects, sorted by number."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        for one in tomllib.loads(path.read_text(encoding="utf-8"))["defect"]:
            found.append(Defect(int(one["id"]), str(one["chapter"]), str(one["what"]),
                                str(one.get("nand", "")), str(one.get("test", "")),
                                str(one["file"])))
    return sorted(found, key=lambda defect: defect.number)


def sampled(defects: Sequence[Defect], seed: int) -> list[Defect]:
    """The defects that this seed chooses, sorted by number."""
    found = random.Random(seed).sample(list(defects), min(SAMPLE, len(defects)))
    return sorted(found, key=lambda defect: defect.number)


def chosen(defects: Sequence[Defect], only: Sequence[str]) -> list[Defect]:
    """The defects that `--only` selects by number or by chapter."""
    known = {str(d.number) for d in defects} | {d.chapter for d in defects}
    for word in only:
        if word not in known:
            raise conform.UsageError(f"--only {word}: no defect has this number or "
                                     "belongs to a chapter of this name")
    return [d for d in defects
            if not only or str(d.number) in only or d.chapter in only]


def check(options: conform.Options) -> None:
    if options.target or options.peer:
        raise conform.UsageError("--mutants brings its own drive: omit --target and "
                                 "--peer")
    if options.junit or options.html or options.pcap:
        raise conform.UsageError("--mutants writes no reports and no captures: omit "
                                 "--junit, --html and --pcap; for one defect, run "
                                 "essd_conform_mutants --mutant N")


# Running one

def read_results(path: Path) -> Results:
    """Read the results up to the first incomplete line, which a crash may leave."""
    results = Results()
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                results.take(line)
            except ResultsError:
                break
    return results


def ended_from_outside(status: int) -> Verdict | None:
    """No verdict, if neither the defect nor this program has ended the process."""
    if status >= 0 or -status not in FROM_OUTSIDE:
        return None
    why = " (out of memory?)" if -status == signal.SIGKILL else ""
    return Verdict("", f"{signal.Signals(-status).name} from outside{why}", is_known=False)


def judge(results: Results, status: int, said: str) -> Verdict:
    """The verdict on a run that ended; incomplete results count as a crash."""
    failed = [t for t in results.tests if t.verdict in ("fail", "not-run")]
    if failed:
        return Verdict(failed[0].id, failed[0].reason)
    if (unknown := ended_from_outside(status)) is not None:
        return unknown
    if status == 0 and results.is_over and results.total.of["pass"] > 0:
        return Verdict("")
    if status == 2:         # A usage error is no verdict on the drive.
        raise EssdError(f"{Path(PROGRAM).name}: {said or 'status 2'}")
    if (found := NOT_PREPARED.search(said)) is not None:
        return Verdict(found[1], found[2])
    how = (f"signal {signal.Signals(-status).name}" if status < 0
           else f"status {status}")
    after = results.tests[-1].id if results.tests else "its start"
    return Verdict("crash", f"{how} after {after}" + (f": {said}" if said else ""))


def family(process: int) -> Iterator[tuple[int, str, float]]:
    """Number, state and processor time of a process and of those it has started."""
    with contextlib.suppress(OSError):
        words = stat_fields(process)
        threads = thread_states(process)
        state = next((one for one in threads if one in "RD"), words[0] if words else "Z")
        # Of its children that have ended, too.
        yield process, state, sum(map(int, words[11:15])) * TICK_S
        for file in Path(f"/proc/{process}/task").glob("*/children"):
            for child in file.read_text(encoding="utf-8").split():
                yield from family(int(child))


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that may have ended, and those it has started."""
    if process.poll() is None:
        for number, _, _ in list(family(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)


@dataclass(frozen=True)
class End:
    """How a process has ended."""

    status: int | None      # None: it was ended here, because it hung or was not needed
    seconds: float          # of processor time, with that of its children
    is_hung: bool = False   # no test had ended for HANG_S seconds


def follow(process: "subprocess.Popen[bytes]", count_ended: Callable[[], int],
           is_enough: Callable[[], bool] = lambda: False) -> End:
    """Wait for the end; the caller ends a process that has hung or is not needed any more.

    `count_ended` counts the tests that have ended.  Output alone is no progress: a test
    that hangs may print something all the time.
    """
    count, used, asleep = -1, 0.0, 0.0
    with open(os.pidfd_open(process.pid), "rb", buffering=0) as ending:
        while True:
            has_ended = bool(select.select([ending], [], [], LOOK_S)[0])
            found = list(family(process.pid))       # A zombie still has its times.
            total = sum(seconds for _, _, seconds in found)
            if has_ended:
                return End(process.wait(timeout=LOOK_S), total)
            if is_enough():
                return End(None, total)
            if (now := count_ended()) != count:
                count, used, asleep = now, total, 0.0
            if all(state not in "RD" for _, state, _ in found):
                asleep += LOOK_S
            if total - used + asleep > HANG_S:
                return End(None, total, is_hung=True)


def run_one(program: Path, words: Sequence[str], most: int | None = None,
            order: Sequence[str] = (), suite: "Suite | None" = None) -> Verdict:
    """Run one process until it ends or hangs, or until `most` tests have ended.

    The tests that `order` names run first.  `suite` learns which tests come by which defect.
    """
    folder = Path(tempfile.mkdtemp(prefix="essd-mutant-"))
    file = folder / "results.jsonl"
    if order:
        (folder / "order").write_text("".join(f"{name}\n" for name in order), encoding="utf-8")
        words = [*words, "--order", str(folder / "order")]

    def size() -> int:          # The file gets a line when a test ends.
        return file.stat().st_size if file.exists() else 0

    try:
        with open(folder / "log", "w+", encoding="utf-8", errors="replace") as log:
            with subprocess.Popen(
                    [str(program), "--native", *words, "--stop-at-first",
                     "--results", str(file)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder,
                    env={**os.environ, **({REACHED: str(folder / "reached")}
                                          if suite is not None else {})}) as process:
                try:
                    ended = follow(process, size, lambda: most is not None
                                   and len(read_results(file).tests) >= most)
                finally:
                    end(process)
            log.seek(0)
            said = conform.cause_line(log.read())
        results = read_results(file)
        if suite is not None and (folder / "reached").exists():
            suite.take(results.tests, (folder / "reached").read_text(encoding="ascii"))
        if most is not None and len(results.tests) >= most:
            results.tests = results.tests[:most]
            ended = replace(ended, status=None, is_hung=False)
        return replace(judge_run(results, ended, said), seconds=ended.seconds,
                       ended=len(results.tests))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def judge_run(results: Results, ended: End, said: str) -> Verdict:
    """The verdict on a run of the suite, which may have been ended here."""
    if ended.is_hung:
        last = results.tests[-1].id if results.tests else "its start"
        return Verdict("hang", f"no test ended within {HANG_S:.0f} s after {last}")
    if ended.status is None and all(t.verdict in ("pass", "na") for t in results.tests):
        return Verdict("")
    return judge(results, ended.status or 0, said)


class TestLog:
    """What a program of cmocka tests has printed so far."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.ended = 0
        self.begun = "the first test"
        self.failed = ""
        self.rest = b""         # a line that is not complete yet
        self.at = 0

    def read(self) -> "TestLog":
        with open(self.file, "rb") as log:
            log.seek(self.at)
            new = log.read()
        self.at += len(new)
        *lines, self.rest = (self.rest + new).split(b"\n")
        for text in lines:
            line = text.decode(errors="replace")
            self.ended += bool(ENDED.match(line))
            if match := BEGUN.match(line):
                self.begun = match[1]
            if (match := FAILED.match(line)) and not self.failed:
                self.failed = match[1]
        return self


def judge_test(test: str, status: int, said: str) -> Verdict:
    """The verdict on the run of a unit test or a native test."""
    if status == 0:
        return Verdict("")
    failed = FAILED.search(said)
    if status > 0 and failed:
        return Verdict(f"{test}: {failed[1]}", failed[1])
    if (unknown := ended_from_outside(status)) is not None:
        return unknown
    how = (f"signal {signal.Signals(-status).name}" if status < 0
           else f"status {status}")
    return Verdict("crash", f"{how}: {conform.cause_line(said)}")


def run_test(folder: Path, test: str, number: int) -> Verdict:
    """Run the program of a test with a defect until its first test fails."""
    with tempfile.TemporaryDirectory(prefix="essd-mutant-") as temporary:
        file = Path(temporary) / "log"
        seen = TestLog(file)
        with open(file, "wb") as log, subprocess.Popen(
                [folder / f"mutants_{test}"], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, cwd=temporary,
                env={**os.environ, "ESSD_MUTANT": str(number)}) as process:
            try:
                ended = follow(process, lambda: seen.read().ended,
                               lambda: bool(seen.read().failed) or seen.at > FLOOD_BYTES)
            finally:
                end(process)
        said = "" if ended.status is None else file.read_text(encoding="utf-8",
                                                              errors="replace")
    if ended.status is None and not ended.is_hung and not seen.failed:
        verdict = Verdict("hang", f"{test}: {seen.begun} prints without end")
    elif ended.is_hung:
        verdict = Verdict("hang", f"{test}: {seen.begun} did not end within {HANG_S:.0f} s")
    elif ended.status is None:
        verdict = Verdict(f"{test}: {seen.failed}", seen.failed)
    else:
        verdict = judge_test(test, ended.status, said)
    return replace(verdict, seconds=ended.seconds)


class Suite:
    """The tests of the suite, and in which order they are tried with a defect."""

    def __init__(self, tests: Sequence[Test] = ()) -> None:
        self.tests = list(tests)
        self.reached: dict[int, set[str]] = {}      # tests that come by a defect's place
        count = Counter(word for test in tests for word in words_in(test.id, test.purpose))
        self.rarity = {word: math.log(len(tests) / of) for word, of in count.items()}

    def take(self, tests: Sequence[Test], noted: str) -> None:
        """`noted` has a line of defects' numbers for each run; PREPARE are not of tests."""
        lines = noted.splitlines()
        if len(lines) != PREPARE + len(tests):
            raise EssdError(f"{Path(PROGRAM).name}: {len(tests)} tests have noted "
                            f"{len(lines) - PREPARE} times which defects they come by")
        seconds = {test.id: test.seconds for test in tests}
        self.tests = [replace(test, seconds=seconds.get(test.id, 0.0)) for test in self.tests]
        for test, line in zip(tests, lines[PREPARE:], strict=True):
            for number in line.split():
                self.reached.setdefault(int(number), set()).add(test.id)

    def order(self, defect: Defect) -> list[str]:
        """All tests; those ahead that are likely to notice the defect."""
        said = words_in(defect.what, Path(defect.file).stem)
        reached = self.reached.get(defect.number, set())

        def place(test: Test) -> tuple[bool, float, bool, float]:
            like = sum(self.rarity[word] for word in words_in(test.id, test.purpose) & said)
            return (test.id not in reached, -like, test.chapter != defect.chapter,
                    test.seconds)
        return [test.id for test in sorted(self.tests, key=place)]

    def explains(self, defect: Defect, verdict: Verdict) -> bool:
        """Whether the test that failed is known to come by the defect's place."""
        return (not self.reached or bool(defect.test or defect.nand)
                or verdict.by in self.reached.get(defect.number, ()))


def words_in(*texts: str) -> set[str]:
    """The words of texts, without the ends that differ in their forms."""
    found = re.findall(r"[a-z0-9]+", " ".join(texts).lower())
    return {re.sub(r"(ed|es|s|ing|ion)$", "", word) if len(word) > 4 else word for word in found}


def read_suite(program: Path) -> Suite:
    """The tests as the program lists them: a line with name, clause and purpose for each."""
    said = subprocess.run([str(program), "--list", "--all"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, check=True, encoding="utf-8",
                          timeout=HANG_S).stdout
    lines = [re.split(r" {2,}", line.strip()) for line in said.splitlines()]
    return Suite([Test(line[0], line[0].partition(".")[0], "", line[-1], "pass")
                  for line in lines])


def nand_words(tests: str) -> list[str]:
    """Return the arguments that give the drive NAND flash and run only these tests."""
    return ["--nand", "--only", tests] if tests else []


def no_defect(all_defects: Sequence[Defect]) -> int:
    """A number that no defect has."""
    return max(defect.number for defect in all_defects) + 1


def run_sound(program: Path, defects: Sequence[Defect], words: Sequence[str],
              none: int, suite: Suite) -> float:
    """Run the same programs with no defect enabled; return the processor time it took.

    Two run at a time, the suite first, because it takes longest.
    """
    def one(what: tuple[str, str]) -> Verdict:
        test, nand = what
        if test:
            return run_test(program.parent, test, none)
        return run_one(program, ["--mutant", str(none), *nand_words(nand), *words],
                       suite=None if nand else suite)

    seconds = 0.0
    with interrupts.pool(AT_ONCE) as pool:
        for verdict in pool.map(one, sorted({(defect.test, defect.nand)
                                             for defect in defects})):
            if verdict.by or not verdict.is_known:
                raise EssdError("the drive without a defect does not pass, so results "
                                f"with defects would be meaningless: {verdict.words}: "
                                f"{verdict.reason}")
            seconds += verdict.seconds
    return seconds


def try_defect(program: Path, defect: Defect, number: int, words: Sequence[str],
               suite: Suite, most: int | None = None) -> Verdict:
    """Run the tests for a defect; with another number, the same tests without it."""
    if defect.test:
        return run_test(program.parent, defect.test, number)
    return run_one(program, ["--mutant", str(number), *nand_words(defect.nand), *words], most,
                   () if defect.nand else suite.order(defect))


def control(program: Path, defect: Defect, verdict: Verdict, words: Sequence[str],
            none: int, suite: Suite) -> None:
    """Repeat what found the defect, with no defect enabled: EssdError unless it passes.

    The suite gets the same arguments, and goes as far as it went with the defect.
    """
    sound = try_defect(program, defect, none, words, suite,
                       max(1, verdict.ended + (0 if verdict.is_test else 1)))
    if sound.by or not sound.is_known:
        raise EssdError(f"{verdict.words}, which found defect {defect.number}, also comes "
                        f"without a defect: {sound.words}: {sound.reason}")


def run_all(program: Path, defects: Sequence[Defect], words: Sequence[str], suite: Suite,
            record: "Record | None" = None,
            none: int = 0) -> Iterator[tuple[Defect, Verdict]]:
    """Yield the verdicts in the order of the defects, each as early as possible.

    After a crash or a hang, which the machine may have caused, the same run without the
    defect, whose number is `none`, has to pass, and so it has if the test that failed did
    not come by the defect's place in the run without a defect.
    """
    def one(defect: Defect) -> Verdict:
        if record is not None and (known := record.find(defect)) is not None:
            return known
        verdict = try_defect(program, defect, defect.number, words, suite)
        if none and verdict.by and not (verdict.is_test and suite.explains(defect, verdict)):
            control(program, defect, verdict, words, none, suite)
        if record is not None and verdict.is_known:
            record.add(defect, verdict)
        return verdict

    with interrupts.pool(AT_ONCE) as pool:
        yield from zip(defects, pool.map(one, defects), strict=True)


# Continuing an interrupted run

class Record:
    """The verdicts of a run of all defects that is not complete yet.

    The file has a line for each verdict, with a digest of the program and the
    arguments that it belongs to.  Lines with another digest do not count.
    """

    def __init__(self, path: Path, program: Path, words: Sequence[str]) -> None:
        self.path = path
        self.program = program
        self.words = words
        self.lock = threading.Lock()
        self.digests: dict[str, str] = {}
        self.verdicts: dict[tuple[int, str], Verdict] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text(encoding="utf-8").splitlines():
                self.take(line)

    def digest(self, defect: Defect) -> str:
        """A digest of everything that a defect's verdict follows from.

        The program follows from the sources and from the defects that are in it.
        """
        with self.lock:
            if defect.test not in self.digests:
                program = (self.program.with_name(f"mutants_{defect.test}") if defect.test
                           else self.program)
                self.digests[defect.test] = hashlib.sha256(program.read_bytes()).hexdigest()
        said = [self.digests[defect.test], defect.nand, *([] if defect.test else self.words)]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]

    def take(self, line: str) -> None:
        # The last line may be cut; then this defect is run again.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            self.verdicts[int(entry["defect"]), entry["digest"]] = Verdict(**entry["verdict"])

    def find(self, defect: Defect) -> Verdict | None:
        return self.verdicts.get((defect.number, self.digest(defect)))

    def add(self, defect: Defect, verdict: Verdict) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"digest": self.digest(defect), "defect": defect.number,
                           "verdict": asdict(verdict)})
        with self.lock, open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def end(self) -> None:
        """The run is complete: the next one begins from the start."""
        self.path.unlink(missing_ok=True)


# Output

def show_verdict(defect: Defect, verdict: Verdict, width: int, progress: str) -> None:
    show.line(f"{defect.number:4} {progress} {defect.chapter:7} {defect.what:{width}}  "
              + verdict.words + ("" if verdict.is_test or not verdict.reason
                                 else f" ({verdict.reason})"),
              None if verdict.by else "bold red")


def table(found: Sequence[tuple[Defect, Verdict]]) -> Table:
    """A table of the results by chapter."""
    lines = Table(box=None, pad_edge=False)
    for heading in ("chapter", "defects", "killed", "by a crash or a hang"):
        lines.add_column(heading, justify="left" if heading == "chapter" else "right")
    for chapter in [*dict.fromkeys(defect.chapter for defect, _ in found), "all"]:
        verdicts = [v for d, v in found if chapter in ("all", d.chapter)]
        lines.add_row(chapter, str(len(verdicts)), str(sum(bool(v.by) for v in verdicts)),
                      str(sum(v.by in ("crash", "hang") for v in verdicts)),
                      style="bold" if chapter == "all" else None)
    return lines


def build(preset: str, defects: Sequence[Defect]) -> Path:
    """Build the programs with defects; return the path of the conformance tests'."""
    if any(defect.test for defect in defects):
        native_build.native_program(preset, TESTS, "tests with defects")
    return native_build.native_program(preset, PROGRAM, "the drive with defects")


def show_all(verdicts: Iterator[tuple[Defect, Verdict]], count: int,
             width: int) -> list[tuple[Defect, Verdict]]:
    found = []
    for defect, verdict in verdicts:
        found.append((defect, verdict))
        show_verdict(defect, verdict, width, f"[{len(found)}/{count}]")
    return found


def replay(program: Path, defect: Defect, words: Sequence[str]) -> str:
    """The command that runs one defect's tests, to be entered in the project's folder."""
    if defect.test:
        program = program.with_name(f"mutants_{defect.test}")
    name = str(program.relative_to(paths.TOP) if program.is_relative_to(paths.TOP)
               else program)
    if defect.test:
        return f"ESSD_MUTANT={defect.number} {name}"
    return shlex.join([name, "--native", "--mutant", str(defect.number),
                       *nand_words(defect.nand), *words, "--stop-at-first"])


def show_survivors(program: Path, found: Sequence[tuple[Defect, Verdict]],
                   words: Sequence[str], suite: Suite) -> None:
    """List the defects that no test has noticed, each with the command that repeats it."""
    for defect, verdict in found:
        if verdict.by or not verdict.is_known:
            continue
        count = len(suite.reached.get(defect.number, ()))
        come = (f"; tests that come by its place: {count} of {len(suite.tests)}"
                if suite.reached and not defect.test and not defect.nand else "")
        show.line(f"survived: {defect.number}, in {defect.file}: {defect.what}{come}")
        show.line(f"    {replay(program, defect, words)}")


def conclude(found: Sequence[tuple[Defect, Verdict]], seconds: float) -> int:
    killed = sum(bool(verdict.by) for _, verdict in found)
    unknown = sum(not verdict.is_known for _, verdict in found)
    is_all = killed == len(found)
    used = sum(verdict.seconds for _, verdict in found)
    show.line(f"{killed} of {len(found)} mutants killed, in {seconds:.0f} s ({used:.0f} s of "
              "processor time with defects)" + (f"; {unknown} without a verdict, because "
                                                "their programs were ended from outside"
                                                if unknown else ""),
              "bold green" if is_all else "bold red")
    return 0 if is_all else 1


def command(options: conform.Options, sample: int | None = None) -> int:
    """Run `--mutants`; return 0 if every defect made a test fail."""
    check(options)
    all_defects = read(DEFECTS)
    defects = chosen(all_defects, options.only)
    none = no_defect(all_defects)
    # The long tests are included, because virtual time makes them fast.
    words = ["--seed", str(options.seed), "--slow", str(options.slow), "--all"]
    if sample is not None:
        return run_sample(defects, words, sample, none)
    program = build(PRESET, defects)
    record = None
    if not options.only:
        record = Record(paths.build() / "conform" / "mutants.jsonl", program, words)
        if known := sum(record.find(defect) is not None for defect in defects):
            show.line(f"{known} of {len(defects)} defects have their verdict from a run that "
                      "did not end; the others follow")
    begin = time.monotonic()
    suite = read_suite(program)
    sound_s = run_sound(program, defects, words, none, suite)
    show.line(f"the drive without a defect passes all tests in {sound_s:.0f} s of "
              "processor time")
    width = max(len(defect.what) for defect in defects)
    found = show_all(run_all(program, defects, words, suite, record, none), len(defects), width)
    if record is not None and all(verdict.is_known for _, verdict in found):
        record.end()
    show.line()
    show.console.print(table(found))
    show.line()
    show_survivors(program, found, words, suite)
    return conclude(found, time.monotonic() - begin)


def run_sample(all_defects: Sequence[Defect], words: Sequence[str], seed: int,
               none: int) -> int:
    """Run a sample.  What found a defect has to pass when no defect is enabled."""
    program = build(SAMPLE_PRESET, all_defects)
    defects = sampled(all_defects, seed)
    show.line(f"{len(defects)} of {len(all_defects)} defects, chosen at random; this "
              f"chooses the same ones: ./essd conform --mutants --sample {seed}")
    begin = time.monotonic()
    suite = read_suite(program)
    width = max(len(defect.what) for defect in defects)
    found = show_all(run_all(program, defects, words, suite, none=none), len(defects), width)
    with interrupts.pool(AT_ONCE) as pool:
        failed = [(defect, verdict) for defect, verdict in found if verdict.is_test]
        list(pool.map(lambda one: control(program, one[0], one[1], words, none, suite), failed))
    show_survivors(program, found, words, suite)
    return conclude(found, time.monotonic() - begin)
