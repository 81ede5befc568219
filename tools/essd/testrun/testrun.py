# SPDX-License-Identifier: BSD-2-Clause
"""`essd test`: run every check and test in stages, and show each stage's time.

QEMU and the Linux guest build in the background while the native stages run.
A stage runs even if an earlier one failed, unless it needs something that the
earlier one failed to build.  The whole output of each stage is kept in
build/test/<stage>.log; the screen has a line per file and the failures
(testrun/screen.py).  Tests in real time that fail are repeated (testrun/repeat.py).
"""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from ..base import cpu, interrupts, paths, show
from ..base.chosen import check_word
from ..base.errors import EssdError, LOOK_UP_S
from ..build import fw_build, guest_build, guest_variant, native_build, qemu_build, uml_build
from ..build.fw_build import BuildError
from ..instance.config import STOCK, UML
from ..machine import uml
from ..setup import prepare
from . import (coverage as coverage_report, dissect as conform_dissect, fuzz as fuzzing, headers,
               lints, repeat as repeats, screen as screens)

LOGS = paths.TOP / "build" / "test"
LAST_TEST = "build/native/Testing/Temporary/LastTest.log"    # ctest's own log
CTEST_FAILED = 8        # ctest's exit status when tests failed
# What a native test prints when the firmware has crashed.  A busy machine is no reason for that.
CRASHED = re.compile(r"assertion failed: |Sanitizer|runtime error: |failed with -\d")
TAIL_LINES = 40
CLEAN_UP_S = 30         # for a command that was interrupted
STAGE_S = 3 * 3600      # time limit of each command of a stage
PROGRESS_S = 30         # interval of progress lines during a quiet build
NINJA = re.compile(r"\[(\d+)/(\d+)\]")
ASIDE_NICE = 10         # niceness of a command that runs beside another one
# Summary lines of the test runners; they are repeated at the end of the output.
SUMMARY = re.compile(
    r"\d+% tests passed|tests failed out of|^=+ .*(passed|failed|error|no tests).* =+$|"
    r"^\d+ (passed|failed)")


ShowLine = Callable[[str], None]


class StageError(EssdError):
    """A stage has failed; the text says how.  `status` is that of its command, if any."""

    status = 0


@dataclass
class Run:
    """State that the stages share."""

    every: bool
    background: dict[str, Future[object]] = field(default_factory=dict)
    summaries: list[str] = field(default_factory=list)
    counts: dict[str, Counter[str]] = field(default_factory=dict)   # tests of each stage
    repeated: list[str] = field(default_factory=list)   # lines about repeated tests
    reports: list[Path] = field(default_factory=list)
    stage: str = ""

    @property
    def log(self) -> Path:
        return LOGS / f"{self.stage}.log"

    def command(self, *words: str | Path, quiet: bool = False,
                env: dict[str, str] | None = None, title: str = "",
                show_line: ShowLine = show.line, is_aside: bool = False,
                is_counted: bool = True) -> None:
        """Run a command of this stage; its output goes to screen and log.

        `title` stands before its summary at the end of the output instead of the
        stage's name.  A command aside leaves the processor to one in real time.
        A command that repeats a test is not counted: it has no summary at the end.
        """
        with open(self.log, "a", encoding="utf-8") as log:
            log.write("$ " + " ".join(map(str, words)) + "\n")
            process = None
            try:
                with interrupts.held():
                    process = subprocess.Popen(
                        [str(w) for w in words], cwd=paths.TOP, text=True,
                        errors="replace", stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                        env={**os.environ, **(env or {})}, process_group=0)
                    watchdog = interrupts.kill_after(process, STAGE_S)
                assert process.stdout is not None
                if is_aside:
                    os.setpriority(os.PRIO_PROCESS, process.pid,
                                   max(ASIDE_NICE, os.getpriority(os.PRIO_PROCESS, 0)))
                lines = list(self.copy(process.stdout, log, quiet, title or self.stage,
                                       show_line, is_counted))
                process.communicate(timeout=STAGE_S)
            except BaseException:
                if process:
                    end_group(process)
                raise
            watchdog.cancel()
        if process.returncode != 0:
            if quiet:
                for line in lines[-TAIL_LINES:]:
                    show_line(line)
            error = StageError(f"{Path(words[0]).name}: status {process.returncode}; "
                               f"see {self.log}")
            error.status = process.returncode
            raise error

    def copy(self, source: Iterator[str], log: TextIO, quiet: bool, title: str,
             show_line: ShowLine, is_counted: bool = True) -> Iterator[str]:
        shown = time.monotonic()
        for text in source:
            line = text.rstrip("\n")
            log.write(text)
            log.flush()
            if not quiet:
                show_line(line)
            elif quiet and time.monotonic() - shown > PROGRESS_S and (at := NINJA.match(line)):
                shown = time.monotonic()
                show_line(f"compiling: {at[1]} of {at[2]} files")
            plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
            if is_counted and SUMMARY.search(plain):
                self.summaries.append(f"{title}: {plain.strip('= ')}")
                self.count(screens.conform_count(plain))
            yield line

    def count(self, count: Counter[str]) -> None:
        """Add to the numbers of the stage's tests."""
        self.counts[self.stage] = self.counts.get(self.stage, Counter()) + count

    def repeat(self, failed: dict[str, Counter[str]], run_one: Callable[[str], None]) -> str:
        """Repeat failed tests in real time, each alone; return a complaint or ""."""
        found = repeats.again(list(failed), run_one, self.show_and_log,
                              repeats.first_failures(self.log))
        self.repeated += repeats.summary(self.stage, found)
        count = self.counts.setdefault(self.stage, Counter())
        for test in found.passed:
            count -= failed[test]
            count += Counter({screens.REPEATED: 1})
        return found.complaint

    def show_and_log(self, line: str) -> None:
        """Write a line of the stage's own to the screen and to its log."""
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(line + "\n")
        show.line(line)

    def need(self, name: str) -> None:
        """Wait for a background build."""
        try:
            self.background[name].result()
        except (BuildError, OSError) as error:
            raise StageError(str(error)) from None


def end_group(process: "subprocess.Popen[str]") -> None:
    """Interrupt a stage's command as Ctrl-C does; kill it if it does not end itself.

    It runs in a process group of its own, so that it is interrupted only once.
    """
    with interrupts.ignored(), contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(CLEAN_UP_S)
        os.killpg(process.pid, signal.SIGKILL)


def lint(run: Run) -> None:
    complaints = []
    for name in lints.default_names():
        def show_line(line: str, name: str = name) -> None:
            show.line(line if line.startswith("check_") else f"{name}: {line}")
        for command in lints.commands(name, run.every):
            try:
                run.command(*command, show_line=show_line)
            except StageError as error:
                complaints.append(str(error))
    if complaints:
        raise StageError("; ".join(complaints))


# Tests that boot machines also wait, so several test files run at a time.  Of the time
# of the Python tests, a third to a half is waiting: for machines that are stopped on
# purpose, for their consoles and for periods of the tools.  Three of the end-to-end tests
# use two cores if all hosts are emulated.  With hosts of user-mode Linux, three leave
# more than half of two cores idle.
THREE_WORKERS = ("-n", "3", "--dist", "loadfile")
# The end-to-end tests have an order of their own (tests/e2e/conftest.py).
SIX_WORKERS = ("-n", "6", "--dist", "loadfile", "--no-loadscope-reorder")
SIX_NEED_MIB = 8 * 1024     # of memory that is available; each has two drives and two hosts
TESTS_FAILED = 1        # pytest's exit status when nothing else went wrong


def always(_report: Path) -> bool:
    return True


def pytest(run: Run, *words: str | Path,
           is_repeated: Callable[[Path], bool] = always) -> None:
    """Run pytest; a test that fails is repeated at the end.

    `is_repeated` says of a JUnit report whether all tests that failed are in real time.
    An error while fixtures begin or end may be of any test of the file, so the whole file
    is repeated then.  Nothing is repeated if a drive has restarted by itself, or if
    there are failures without a test, as of a file that cannot be read.
    """
    marks = [] if run.every else ["-m", "not long"]
    command = [sys.executable, "-m", "pytest", "-v", "--color=no", "-p",
               "no:cacheprovider", "-c", "tests/pytest.ini"]
    unbuffered = {"PYTHONUNBUFFERED": "1"}
    kept = repeats.first_failures(run.log)
    repeats.forget(kept)
    report = run.log.with_suffix(".xml")
    report.unlink(missing_ok=True)      # of an earlier run
    run.reports.append(report)
    screen = screens.PytestScreen()
    error = None
    try:
        run.command(*command, *marks, "--junitxml", report, "--essd-evidence", kept, *words,
                    env=unbuffered, show_line=screen)
    except StageError as one:
        error = one
    run.count(screen.count)
    # If the run broke off, pytest's own error says why.
    if (error is None or error.status == TESTS_FAILED) and screen.lost:
        raise StageError(f"{screen.lost}; see {run.log}")
    if error is None:
        return
    if not (error.status == TESTS_FAILED
            and repeats.are_all(report, screen.failed) and is_repeated(report)
            and not repeats.has_restarted(run.log)):
        raise error

    def run_one(test: str) -> None:
        once = screens.PytestScreen()
        run.command(*command, *marks, test, env=unbuffered, is_counted=False, show_line=once)
        if not once.count["passed"] or ("::" in test and once.count != {"passed": 1}):
            raise StageError(f"it has not passed: {screens.counted(once.count) or 'not run'}")
        if once.lost:
            raise StageError(once.lost)
    if why := run.repeat(repeats.targets(screen.failed), run_one):
        raise StageError(f"{why}; see {run.log}")


def native(run: Run) -> None:
    jobs = str(os.cpu_count() or 1)
    with fw_build.alone(paths.TOP / "build/native", paths.TOP):
        run.command("cmake", "--preset", "native", quiet=True)
        run.command("cmake", "--build", "build/native", "-j", jobs, quiet=True)
    counts, objects = headers.read_build(paths.TOP / "build/native")
    run.summaries.append(f"native: {headers.summary(counts, objects)}")
    report = run.log.with_suffix(".xml")
    labels = [] if run.every else ["-LE", "long"]
    words = ["ctest", "--preset", "native", "--no-tests=error", *labels]
    listed = subprocess.run([*words, "--show-only=json-v1"], cwd=paths.TOP, check=True,
                            text=True, stdout=subprocess.PIPE, timeout=LOOK_UP_S).stdout
    screen = screens.CtestScreen(screens.folders(listed, paths.TOP / "build/native"))
    error = None
    # One more than there are cores: the programs with a peer in Linux's kernel wait.
    beside = str((os.cpu_count() or 1) + 1)
    repeats.forget(repeats.first_failures(run.log))
    try:
        run.command(*words, "-j", beside, "--output-junit", report, show_line=screen)
    except StageError as one:
        error = one
    finally:
        run.count(screen.count)
        run.reports.append(report)
    # If the run broke off, ctest's own error says why.
    if error is not None and error.status != CTEST_FAILED:
        raise error
    if screen.lost:
        raise StageError(f"{screen.lost}; see {run.log}")
    run.summaries.append(f"native: {random_cuts():,} random power cuts of the translation layer")
    if error is not None:
        repeat_native(run, screens.real_time(listed), screen.failed, error)
    if wrong := headers.complaints(counts, headers.listed()):
        raise StageError("\n".join(wrong))


def repeat_native(run: Run, real: set[str], failed: list[str], error: StageError) -> None:
    """Repeat each failed test alone, if all that failed are in real time.

    Nothing is repeated if a program was ended by an assertion, a sanitizer or a signal.
    """
    said = run.log.read_text(encoding="utf-8", errors="replace").rpartition("\n$ ctest ")[2]
    if not failed or not {*failed} <= real or CRASHED.search(said):
        raise error
    repeats.keep(repeats.first_failures(run.log), run.log, run.log.with_suffix(".xml"),
                 paths.TOP / LAST_TEST)

    def run_one(test: str) -> None:
        once = screens.CtestScreen({test: test})
        run.command("ctest", "--preset", "native", "--no-tests=error", "-R",
                    f"^{re.escape(test)}$", is_counted=False, show_line=once)
        if once.count != {"passed": 1}:
            raise StageError(f"it has not passed: {screens.counted(once.count) or 'not run'}")
    if why := run.repeat({test: Counter(failed=1) for test in failed}, run_one):
        raise StageError(f"{why}; see {run.log}")


def random_cuts() -> int:
    """How many cuts test_ftl_cuts has made, in all of its runs."""
    lines = re.findall(r"^(\d+) power cuts of \d+ shapes",
                       (paths.TOP / LAST_TEST).read_text(errors="replace"), re.M)
    return sum(int(count) for count in lines)


def mutants(run: Run) -> None:
    """Run the tests against a few drives with a deliberate defect; with --all, against all."""
    lines: list[str] = []

    def show_line(line: str) -> None:
        lines.append(line)
        show.line(line)
    seed = random.SystemRandom().randrange(1_000_000)
    words = [] if run.every else ["--sample", str(seed)]
    try:
        run.command(sys.executable, "-m", "essd", "conform", "--mutants", *words,
                    show_line=show_line)
    finally:
        run.summaries += [f"mutants: {line}" for line in lines if "mutants killed" in line]


def clang(run: Run) -> None:
    """Build the drive and the fuzz targets with clang; with --all, the tests too."""
    with fw_build.alone(paths.TOP / "build/clang", paths.TOP):
        run.command("cmake", "--preset", "clang", quiet=True)
        targets = ["all"] if run.every else [
            name for name in directories("build/clang")
            if not name.startswith("tests/") or name.startswith("tests/fuzz/")]
        run.command("cmake", "--build", "build/clang", "-j", str(os.cpu_count() or 1),
                    "--target", *targets, quiet=True)


def directories(build: str) -> list[str]:
    """CMake's targets that build everything of one directory ("net/wire/all")."""
    listed = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"],
                            cwd=paths.TOP, check=True, text=True,
                            stdout=subprocess.PIPE, timeout=LOOK_UP_S).stdout
    return re.findall(r"^(\S+/all): phony$", listed, re.M)


# Seconds of processor time for all fuzzers together, without and with --all.
FUZZ_S, FUZZ_ALL_S = 60, 900
BUILT_WHOLE = fuzzing.BUILT / f"fuzz_{fuzzing.WHOLE}{fuzzing.SUFFIX}"


def fuzz(run: Run) -> None:
    clang(run)
    names = fuzzing.targets()
    if BUILT_WHOLE not in names:
        raise StageError(f"the fuzz target {BUILT_WHOLE.name} was not built; see {run.log}")
    failed = fuzzing.run(FUZZ_ALL_S if run.every else FUZZ_S, run.show_and_log)
    run.summaries.append(f"fuzz: {len(names) - len(failed)} of {len(names)} targets "
                         "found nothing")
    if failed:
        raise StageError("; ".join(f"fuzz_{x.name}: status {x.status}, input in "
                                   f"{fuzzing.WORK / x.name}" for x in failed))


def firmware(run: Run) -> None:
    fw_build.ensure_firmware(lambda text: None)
    for compiler in ("gcc", "clang"):
        fw_build.compile_everything(compiler, lambda text: None)
    show.line("firmware: built; all sources compile with gcc and clang")


def qemu(run: Run) -> None:
    run.need("qemu")
    path = qemu_build.ensure_qemu(lambda text: None)
    symbols = subprocess.run(["nm", path], check=True, text=True,
                             stdout=subprocess.PIPE, timeout=LOOK_UP_S).stdout
    ours = re.findall(r"\b\S*nvmeof\S*", symbols)
    if ours:
        raise StageError(f"QEMU contains an NVMe-oF symbol, {ours[0]}; NVMe-oF belongs "
                         "in the firmware only")
    show.line(f"QEMU: built, contains no NVMe-oF symbol: {path}")


def guest(run: Run) -> None:
    run.need("guest")
    run.need("host-tests")
    built = guest_build.ensure_guest(lambda text: None)
    show.line(f"Linux guest: built: {built.path}")


def python_tests(run: Run) -> None:
    run.need("qemu")        # Some of these tests boot the drive without a host.
    pytest(run, *THREE_WORKERS, "tests/py", is_repeated=repeats.are_real)


def e2e(run: Run) -> None:
    run.need("qemu")
    run.need("guest")
    run.need("host-tests")
    hosts = host_kind(run)
    if run.every:
        wait([run.background["peers"]])     # If it fails, the tests of the peers say why.
    workers = (SIX_WORKERS if hosts == UML and cpu.memory_mib() >= SIX_NEED_MIB
               else THREE_WORKERS)
    pytest(run, *workers, "tests/e2e", f"--hosts={hosts}")


def host_kind(run: Run) -> str:
    """What the hosts of tests are whose subject is not the stock kernel; says why.

    User-mode Linux has been built beside the native stages, which takes less time than it
    saves in one run (docs/hosts.md).
    """
    try:
        run.background["uml"].result()
        uml.check(uml_build.ensure(lambda text: None),
                  guest_build.ensure_guest(lambda text: None))
    except (EssdError, OSError) as error:
        run.show_and_log(f"all hosts are stock Linux: {error}")
        return STOCK
    run.show_and_log("hosts of files with the mark uml are user-mode Linux, the others stock")
    return UML


# With three drives, no drive has more to do than the longest chapter, which is not divided.
CONFORM_DRIVES = "3"


def conform(run: Run) -> None:
    """Run the suite on the default drive in QEMU, and natively on one with a block medium.

    The reports are kept in build/test.  Tests in QEMU that fail are repeated there.
    """
    run.need("qemu")
    kept = repeats.first_failures(run.log)
    repeats.forget(kept)
    words = [sys.executable, "-m", "essd", "conform", *(["--all"] if run.every else [])]
    runs: dict[str, list[str | Path]] = {"qemu": ["--drives", CONFORM_DRIVES],
                                             "native": ["--native", "--block"]}
    for name, options in runs.items():
        shutil.rmtree(captures(name), ignore_errors=True)
        (LOGS / f"conform-{name}.xml").unlink(missing_ok=True)      # of an earlier run
        options += ["--pcap", captures(name), "--junit", LOGS / f"conform-{name}.xml",
                    "--html", LOGS / f"conform-{name}.html"]
        run.reports.append(LOGS / f"conform-{name}.html")
    complaints = []
    # The drive in QEMU mostly waits, so the native run, which only computes, goes
    # on beside it.
    with interrupts.pool(1) as pool:
        aside = pool.submit(conform_native, run, [*words, *runs.pop("native")])
        for name, options in runs.items():
            show.line(f"-- {name}")
            try:
                run.command(*words, *options, title=f"conform ({name})")
            except StageError as error:
                complaints.append(f"{name}: {error}")
                if name == "qemu":
                    keep_failures(kept)
        lines, complaints_there = aside.result()
    for line in lines:
        show.line(line)
    # Before the repetitions, whose results replace those of the whole run.
    malformed = dissect("qemu")
    if (failed := repeats.failed_in(LOGS / "conform-qemu.xml")) and kept.exists():
        def run_one(test: str) -> None:
            run.command(*words, "--only", test, "--pcap", LOGS / "conform-pcap-repeated",
                        is_counted=False)
        why = run.repeat({test: Counter(failed=1) for test in failed}, run_one)
        complaints = [one for one in complaints if not one.startswith("qemu: ")]
        complaints += [f"qemu: {why}"] if why else []
    complaints += [*complaints_there, *malformed]
    if complaints:
        raise StageError("; ".join(complaints))


def keep_failures(kept: Path) -> None:
    """Keep what is known of failures in QEMU: consoles, counters and captures.

    The counters are in the reports.
    """
    repeats.keep(kept, paths.TOP / "build/conform/qemu",
                 *(LOGS / f"conform-qemu.{kind}" for kind in ("xml", "html")),
                 *(captures("qemu") / f"{test}.pcap" for test in
                   repeats.failed_in(LOGS / "conform-qemu.xml")))


def conform_native(run: Run, command: list[str | Path]) -> tuple[list[str], list[str]]:
    """Run the suite natively and check its captures, beside the run in QEMU.

    Returns the lines to show when both runs are over, and the complaints.
    """
    lines: list[str] = ["-- native (at the same time)"]
    complaints = []
    try:
        run.command(*command, title="conform (native)", show_line=lines.append,
                    is_aside=True)
    except StageError as error:
        complaints.append(f"native: {error}")
    complaints += dissect("native", lines.append)
    return lines, complaints


def captures(name: str) -> Path:
    """The folder with the captures of the "qemu" or the "native" run."""
    return LOGS / f"conform-pcap-{name}"


def dissect(name: str, show_line: ShowLine = show.line) -> list[str]:
    """Have Wireshark check a run's captures; delete them if all are good."""
    results = paths.TOP / "build/conform" / name / "results.jsonl"
    try:
        files, packets, found = conform_dissect.complaints(results, captures(name))
    except (OSError, RuntimeError, conform_dissect.CaptureError) as error:
        return [f"captures of the {name} run: {error}"]
    if not found:
        shutil.rmtree(captures(name), ignore_errors=True)
    for text in found:
        show_line(text)
    show_line(f"Wireshark: {packets} packets of {files} captures of the {name} run, "
              f"{len(found)} malformed")
    if packets == 0:
        return [f"the {name} run left no capture that Wireshark could read"]
    return [f"{len(found)} malformed packets in the {name} run"] if found else []


def instructions(run: Run) -> None:
    """Count the firmware's instructions for each command, with callgrind."""
    run.command(sys.executable, "tools/count_instructions.py")


def coverage(run: Run) -> None:
    coverage_report.measure(run.command)


Stage = Callable[[Run], None]
STAGES: dict[str, Stage] = {
    "lint": lint, "native": native, "mutants": mutants, "clang": clang, "fuzz": fuzz,
    "firmware": firmware, "qemu": qemu, "python": python_tests, "guest": guest, "e2e": e2e,
    "conform": conform, "instructions": instructions, "coverage": coverage,
}
ABOUT = {
    "lint": "formats, names, documents, types",
    "native": "unit tests, and the whole drive in one process, with gcc and sanitizers",
    "mutants": "the tests notice deliberate defects in the drive",
    "clang": "the drive and the fuzz targets compile with clang",
    "fuzz": "random input for the parsers and for the whole drive",
    "firmware": "the RISC-V firmware compiles with gcc and clang",
    "qemu": "QEMU has the drive's devices, and no NVMe-oF of its own",
    "python": "the essd command and its library; some tests boot a drive",
    "guest": "the Linux guest and the programs that run in it",
    "e2e": "a stock Linux host uses the drive",
    "conform": "the conformance suite, on drives in QEMU and natively",
    "instructions": "how many instructions the firmware needs for each command",
    "coverage": "which lines and branches of the drive the native tests reach",
}
ONLY_WITH_ALL = ("instructions", "coverage")
BACKGROUND: dict[str, tuple[tuple[str, ...], Callable[[fw_build.Progress], object]]] = {
    # name: (stages that need it, what builds it)
    "qemu": (("qemu", "python", "e2e", "conform"), qemu_build.ensure_qemu),
    "guest": (("guest", "e2e"), guest_build.ensure_guest),
    "host-tests": (("guest", "e2e"), native_build.host_tests),
    "uml": (("e2e",), uml_build.ensure),
    "peers": (("e2e",), lambda progress: guest_variant.ensure(guest_variant.PEERS, progress)),
}
BUILT_WITH_ALL = ("peers",)


def run_stage(run: Run, name: str) -> str:
    """Run one stage; return "" if it passed, else the reason of its failure."""
    run.stage = name
    run.log.write_text("")
    show.heading(f"{name}: {ABOUT[name]}")
    try:
        STAGES[name](run)
    except (EssdError, OSError,
            subprocess.SubprocessError) as error:
        show.error(f"{name}: {error}")
        return str(error)
    return ""


def run_tests(every: bool, only: list[str]) -> int:
    """Run the stages; return the exit status of the process."""
    for name in only:
        check_word("--only", name, STAGES)
    LOGS.mkdir(parents=True, exist_ok=True)
    with paths.locked_or("another essd test runs in this checkout now, and two of them would "
                         f"write the same files in {LOGS}: wait until it has ended, or take "
                         "another checkout", LOGS / "lock"):
        return run_stages(every, only or [x for x in STAGES if every or x not in ONLY_WITH_ALL])


def run_stages(every: bool, names: list[str]) -> int:
    """Run these stages one after another; as run_tests()."""
    run = Run(every)
    times: dict[str, float] = {}
    failures: dict[str, str] = {}
    begin = time.monotonic()
    if names == [x for x in STAGES if x not in ONLY_WITH_ALL]:
        show.line("This takes about half an hour on two cores, and about ten minutes more when "
                  "QEMU, the Linux guest and user-mode Linux are built, which are kept. "
                  "CONTRIBUTING.md says what takes how long, and why.")
    show.line(f"Each stage's whole output is kept in {LOGS}/<stage>.log.")
    progress = show.Progress()
    progress.status = None      # The stages print too, so progress is plain lines.
    # Background builds run one at a time, which leaves a core to the native stages.
    with ThreadPoolExecutor(1) as pool:
        with prepare.ending(run.background.values()):
            with interrupts.held():
                for name, (stages, build) in BACKGROUND.items():
                    if set(stages) & set(names) and (every or name not in BUILT_WITH_ALL):
                        run.background[name] = pool.submit(build, progress.task(name))
            for name in names:
                start = time.monotonic()
                why = run_stage(run, name)
                times[name] = time.monotonic() - start
                if why:
                    failures[name] = why
                show.line(f"-- {name}: {'FAILED' if why else 'passed'} "
                          f"in {times[name]:.0f} s")
        pool.shutdown(cancel_futures=True)
    show.heading(f"total: {time.monotonic() - begin:.0f} s")
    show_summary(run, times, failures)
    return 1 if failures else 0


def show_summary(run: Run, times: dict[str, float], failures: dict[str, str]) -> None:
    """Print the stages, where everything is, and last the counts, which a CI reads."""
    results = {name: f"FAILED: {failures[name].splitlines()[0]}" if name in failures
               else "passed" for name in times}
    for line in screens.share_lines(times, results, run.counts):
        show.line(line)
    show.line(f"logs: {', '.join(f'{name}.log' for name in times)} in {LOGS}")
    if reports := [path for path in run.reports if path.exists()]:
        show.line("reports: " + ", ".join(str(path.relative_to(LOGS)) for path in reports)
                  + f" in {LOGS}")
    for name in times:
        if (kept := repeats.first_failures(LOGS / f"{name}.log")).exists():
            show.line(f"evidence of the first failures: {kept}")
    for line in run.summaries:
        show.line(line)
    for line in run.repeated:
        show.line(line)
    show.line(screens.last_line(run.counts.values(), list(failures)))
