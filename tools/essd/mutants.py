# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform --mutants`: check that the suite fails a drive with a defect.

tests/conformance/mutants/defects/*.toml describe the defects.  One program has
all of them in a second copy of the drive, and `--mutant N` enables one.  A run
begins with the chapter named in the defect and ends with the first test that
does not pass.  A defect may name a unit test or a native test instead, which is
then run with the defect.  docs/conformance.md says how to add a defect.

A run of all defects that is interrupted continues where it stopped: its verdicts
are kept in build/conform/mutants.jsonl until it is complete.  `--sample SEED` runs
a few defects that the seed chooses, in the build with sanitizers, most of which
the native tests have built before.
"""

import contextlib
import hashlib
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.table import Table

from . import conform, interrupts, paths, prepare, show
from .conform_results import Results, ResultsError
from .errors import EssdError
from .process import stat_fields, thread_states

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
FLOOD_BYTES = 1 << 28   # No test prints as much, unless it never ends.
LOOK_S = 0.2
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SURVIVED = "SURVIVED"
UNKNOWN = "NO VERDICT"
# With these signals the machine, or its user, ends a process: Linux does when it has no
# memory left.  A defect does not send them.
FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
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
                                str(one.get("nand", "")), str(one.get("test", ""))))
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


def run_one(program: Path, words: Sequence[str], most: int | None = None) -> Verdict:
    """Run one process until it ends or hangs, or until `most` tests have ended."""
    folder = Path(tempfile.mkdtemp(prefix="essd-mutant-"))
    file = folder / "results.jsonl"

    def size() -> int:          # The file gets a line when a test ends.
        return file.stat().st_size if file.exists() else 0

    try:
        with open(folder / "log", "w+", encoding="utf-8", errors="replace") as log:
            with subprocess.Popen(
                    [str(program), "--native", *words, "--stop-at-first",
                     "--results", str(file)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    cwd=folder) as process:
                try:
                    ended = follow(process, size, lambda: most is not None
                                   and len(read_results(file).tests) >= most)
                finally:
                    end(process)
            log.seek(0)
            said = conform.cause_line(log.read())
        results = read_results(file)
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


def nand_words(tests: str) -> list[str]:
    """Return the arguments that give the drive NAND flash and run only these tests."""
    return ["--nand", "--only", tests] if tests else []


def no_defect(all_defects: Sequence[Defect]) -> int:
    """A number that no defect has."""
    return max(defect.number for defect in all_defects) + 1


def run_sound(program: Path, defects: Sequence[Defect], words: Sequence[str],
              none: int) -> float:
    """Run the same programs with no defect enabled; return the processor time it took."""
    seconds = 0.0
    for test, nand in sorted({(defect.test, defect.nand) for defect in defects}):
        verdict = (run_test(program.parent, test, none) if test else
                   run_one(program, ["--mutant", str(none), *nand_words(nand), *words]))
        if verdict.by or not verdict.is_known:
            raise EssdError("the drive without a defect does not pass, so results "
                            f"with defects would be meaningless: {verdict.words}: "
                            f"{verdict.reason}")
        seconds += verdict.seconds
    return seconds


def words_of(defect: Defect, number: int, words: Sequence[str]) -> list[str]:
    """The arguments of the suite for a defect; with another number, the same without it."""
    where = nand_words(defect.nand) or ["--first", defect.chapter]
    return ["--mutant", str(number), *where, *words]


def control(program: Path, defect: Defect, verdict: Verdict, words: Sequence[str],
            none: int) -> None:
    """Repeat what found the defect, with no defect enabled: EssdError unless it passes.

    The suite gets the same arguments, and goes as far as it went with the defect.
    """
    if defect.test:
        sound = run_test(program.parent, defect.test, none)
    else:
        sound = run_one(program, words_of(defect, none, words),
                        verdict.ended + (0 if verdict.is_test else 1))
    if sound.by or not sound.is_known:
        raise EssdError(f"{verdict.words}, which found defect {defect.number}, also comes "
                        f"without a defect: {sound.words}: {sound.reason}")


def run_all(program: Path, defects: Sequence[Defect], words: Sequence[str],
            record: "Record | None" = None,
            none: int = 0) -> Iterator[tuple[Defect, Verdict]]:
    """Yield the verdicts in the order of the defects, each as early as possible.

    After a crash or a hang, which the machine may have caused, the same run without the
    defect, whose number is `none`, has to pass.
    """
    def one(defect: Defect) -> Verdict:
        if record is not None and defect.number in record.verdicts:
            return record.verdicts[defect.number]
        verdict = (run_test(program.parent, defect.test, defect.number) if defect.test else
                   run_one(program, words_of(defect, defect.number, words)))
        if none and verdict.by and not verdict.is_test:
            control(program, defect, verdict, words, none)
        if record is not None and verdict.is_known:
            record.add(defect.number, verdict)
        return verdict

    with interrupts.pool(AT_ONCE) as pool:
        yield from zip(defects, pool.map(one, defects), strict=True)


# Continuing an interrupted run

class Record:
    """The verdicts of a run of all defects that is not complete yet.

    The file has a line for each verdict, with a digest of the programs and
    arguments that it belongs to.  Lines with another digest do not count.
    """

    def __init__(self, path: Path, programs: Sequence[Path], words: Sequence[str]) -> None:
        self.path = path
        self.lock = threading.Lock()
        digest = hashlib.sha256(" ".join(words).encode())
        for program in programs:
            digest.update(program.read_bytes())
        self.digest = digest.hexdigest()[:16]
        self.verdicts: dict[int, Verdict] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text(encoding="utf-8").splitlines():
                self.take(line)

    def take(self, line: str) -> None:
        # The last line may be cut; then this defect is run again.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            if entry["digest"] == self.digest:
                self.verdicts[int(entry["defect"])] = Verdict(**entry["verdict"])

    def add(self, number: int, verdict: Verdict) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"digest": self.digest, "defect": number,
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
        prepare.native_program(preset, TESTS, "tests with defects")
    return prepare.native_program(preset, PROGRAM, "the drive with defects")


def show_all(verdicts: Iterator[tuple[Defect, Verdict]], count: int,
             width: int) -> list[tuple[Defect, Verdict]]:
    found = []
    for defect, verdict in verdicts:
        found.append((defect, verdict))
        show_verdict(defect, verdict, width, f"[{len(found)}/{count}]")
    return found


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
        programs = [program, *(program.with_name(f"mutants_{test}") for test in
                               sorted({d.test for d in defects if d.test}))]
        record = Record(paths.build() / "conform" / "mutants.jsonl", programs, words)
        if record.verdicts:
            show.line(f"{len(record.verdicts)} of {len(defects)} defects have their verdict "
                      "from a run that did not end; the others follow")
    begin = time.monotonic()
    sound_s = run_sound(program, defects, words, none)
    show.line(f"the drive without a defect passes all tests in {sound_s:.0f} s of "
              "processor time")
    width = max(len(defect.what) for defect in defects)
    found = show_all(run_all(program, defects, words, record, none), len(defects), width)
    if record is not None and all(verdict.is_known for _, verdict in found):
        record.end()
    show.line()
    show.console.print(table(found))
    show.line()
    return conclude(found, time.monotonic() - begin)


def run_sample(all_defects: Sequence[Defect], words: Sequence[str], seed: int,
               none: int) -> int:
    """Run a sample.  What found a defect has to pass when no defect is enabled."""
    program = build(SAMPLE_PRESET, all_defects)
    defects = sampled(all_defects, seed)
    show.line(f"{len(defects)} of {len(all_defects)} defects, chosen at random; this "
              f"chooses the same ones: ./essd conform --mutants --sample {seed}")
    begin = time.monotonic()
    width = max(len(defect.what) for defect in defects)
    found = show_all(run_all(program, defects, words, none=none), len(defects), width)
    with interrupts.pool(AT_ONCE) as pool:
        failed = [(defect, verdict) for defect, verdict in found if verdict.is_test]
        list(pool.map(lambda one: control(program, one[0], one[1], words, none), failed))
    return conclude(found, time.monotonic() - begin)
