# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform`: run the conformance suite against a target of the user's choice.

The tests are a C program, tests/conformance.  This module builds it and provides
the target: a drive that is booted in QEMU, the drive that is linked into the
program itself, or a target at the other end of a link.  It reads the program's
results and writes the reports.  docs/conformance.md describes the interface.
"""

import contextlib
import fcntl
import os
import re
import selectors
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..base import interrupts, paths, show
from ..base.errors import EssdError, LOOK_UP_S
from ..build import native_build, provenance
from ..instance.config import process_log
from ..instance.instance import Instance
from ..observe import evidence
from ..settings import block as config_block
from ..setup import setup
from ..setup.setup import Wish
from ..setup.temporary import Temporary
from . import (drives as conform_drives, names as conform_names, report as conform_report,
               screen as conform_screen)
from .control import Control, EmulatedDrive, wait_listening
from .results import Results, ResultsError

PROGRAM = "tests/conformance/essd_conform"
# Sanitizers make the native run take 1.7 times as long: 27 s instead of 16 s for
# 245 tests on a busy machine.
NATIVE_PRESET = "native"
LINK_PRESET = "fast"
# The native drive has the same addresses.
PORTS = ("10.0.0.1/24,fd00:0:0:1::1/64", "10.0.1.1/24,fd00:0:0:2::1/64")
SIZE = "256M"           # small, so that sanitizing the flash takes seconds
NAMESPACES = "1x128M"   # room is left for namespaces that tests create
# Time limits of a single test.  They keep a test that hangs from blocking a CI job.
SILENCE_S = 300.0
SILENCE_ALL_S = 3600.0      # with --all, for the long tests
PEERS = ("nvmet", "siw")
REPORT_S = 10.0             # how often reports are written during a run


class UsageError(EssdError):
    """The options are wrong or contradict each other; exit status 2."""


@dataclass
class Options:
    """The user's options of `essd conform`."""

    native: bool = False
    nand: bool = True       # the medium of a drive of ours; False: a block medium
    target: str = ""
    via: str = ""
    ip: str = ""
    peer: str = ""
    only: list[str] = field(default_factory=list)
    every: bool = False
    over_tcp: bool = False  # the chapter nvme uses NVMe/TCP
    over_iwarp: bool = False    # or NVMe over iWARP
    seed: int = 1
    slow: int = 1
    drives: int = 1
    chapters: list[str] = field(default_factory=list)  # of one of several drives
    junit: Path | None = None
    html: Path | None = None
    pcap: Path | None = None

    def check(self) -> None:
        if bool(self.target) != bool(self.via):
            raise UsageError("--target ADDR and --via SOCKET|IFACE need each other")
        if self.ip and not self.target:
            raise UsageError("--ip is the suite's own address on the link to --target: "
                             "give --target too")
        if self.target and all(":" in word for word in self.target.split(",")):
            raise UsageError(f"--target {self.target}: most tests need the IPv4 address "
                             "too: give ADDR,ADDR6")
        if self.native + bool(self.target) + bool(self.peer) > 1:
            raise UsageError("give only one of --native, --target and --peer")
        if not self.nand and (self.target or self.peer):
            raise UsageError("--block is for a drive that the suite starts itself, not for "
                             "--target or --peer")
        if self.drives > 1 and (self.native or self.target or self.peer):
            raise UsageError("--drives N is for drives in QEMU, not for --native, --target "
                             "or --peer")
        if self.over_tcp and (self.target or self.peer):
            raise UsageError("--over-tcp is for a drive that the suite starts itself, not for "
                             "--target or --peer")
        if self.over_iwarp and (self.target or self.peer == "nvmet"):
            raise UsageError("--over-iwarp is for a drive that the suite starts itself, and "
                             "for --peer siw")
        if self.over_tcp and self.over_iwarp:
            raise UsageError("give only one of --over-tcp and --over-iwarp")
        if self.peer not in ("", *PEERS):
            raise UsageError(f"--peer {self.peer}: the peers are {' and '.join(PEERS)}")
        if self.slow < 1:
            raise UsageError(f"--slow {self.slow}: must be a number from 1")

    @property
    def selection(self) -> list[str]:
        words = ["--only", ",".join(self.only)] if self.only else []
        return [*words, "--all"] if self.every else words

    @property
    def program(self) -> list[str]:
        """The options that are passed on to the test program."""
        words = ["--seed", str(self.seed), "--slow", str(self.slow), *self.selection]
        if self.over_tcp:
            words.append("--over-tcp")
        if self.over_iwarp:
            words.append("--over-iwarp")
        if self.chapters:
            words += ["--chapters", ",".join(self.chapters)]
        if self.pcap is not None:
            words += ["--pcap", str(self.pcap.absolute())]
        return words


@dataclass
class Stand:
    """A target under test: the program's options for it, and facts for the report."""

    name: str                       # name of the folder for its logs
    words: list[str]                # the program's options
    qemu: str | None = None
    drive: dict[str, object] = field(default_factory=dict)  # facts for the report
    # Called at the end: returns faults that the program cannot see, such as a crash.
    complaints: Callable[[], list[str]] = lambda: []
    # Returns what killed the target, if the target can be restarted; else "".
    death: Callable[[], str] = lambda: ""
    # Called after each test: the causes of all restarts that nobody asked for, so far.
    restarts: Callable[[], list[str]] = list
    # Called after a failed test: what the drive has counted, for the report.
    counted: Callable[[], list[str]] = list
    # Called at the end: what went wrong on the wire.
    transport: Callable[[], list[str]] = list
    logs: list[Path] = field(default_factory=list)


def build(preset: str) -> Path:
    return native_build.native_program(preset, PROGRAM, "the conformance suite")


def check_names(preset: str, options: Options) -> None:
    """Refuse names of --only that no test has, if possible before the build."""
    if not options.only:
        return
    program = paths.build() / preset / PROGRAM
    if conform_names.is_new(program):
        test_ids(program, options)
    elif why := conform_names.impossible(options.only):
        raise UsageError(why)


# Targets

@contextlib.contextmanager
def emulated(has_nand: bool = True) -> Iterator[Stand]:
    """A new drive, booted for this run and deleted afterwards."""
    owner = Temporary("conform-")
    instance = Instance(owner.name)

    def complaints() -> list[str]:
        try:
            instance.check()
        except EssdError as error:
            return [str(error)]
        return []

    try:
        config = setup.configure(Wish(name=owner.name, ports=list(PORTS), size=SIZE,
                                      namespaces=NAMESPACES, host=False, listens=True,
                                      block=not has_nand,
                                      network=config_block.Network(echo=True)))
        assert config.drive is not None
        drive = EmulatedDrive(instance, config)
        instance.start(config, bound=True)
        wait_for_drive(instance)
        with Control(instance.folder / "conform.sock", drive) as control:
            words = ["--control", str(control.path)]
            for link in config.links:
                words += ["--socket", str(link.socket(instance.folder))]
            yield Stand("qemu", words, config.drive.qemu, drive.describe(), complaints,
                        restarts=lambda: evidence.restarts(instance).get(instance.drive, []),
                        counted=drive.counted, transport=drive.transport,
                        logs=[drive.console_log, process_log(instance.folder, "drive"),
                              instance.folder / "supervisor.log"])
    finally:
        with interrupts.ignored():
            instance.stop_started()
            owner.delete()


def wait_for_drive(instance: Instance) -> None:
    """Wait until QEMU listens; the program itself waits until the drive has booted."""
    instance.wait_started()
    wait_listening(instance, [link.socket(instance.folder)
                              for link in instance.config.links])


@contextlib.contextmanager
def native(has_nand: bool) -> Iterator[Stand]:
    yield Stand("native", ["--native", *(["--nand"] if has_nand else [])])


@contextlib.contextmanager
def link(options: Options) -> Iterator[Stand]:
    """A target at the other end of a socket or of a network interface."""
    is_socket = "/" in options.via or Path(options.via).is_socket()
    words = ["--socket" if is_socket else "--iface", options.via]
    for address in options.target.split(","):
        words += ["--target6" if ":" in address else "--target", address]
    if options.ip:
        words += ["--ip", options.ip]
    yield Stand("link", words)


@contextlib.contextmanager
def nvmet(name: str) -> Iterator[Stand]:
    """The Linux kernel's own target (nvmet) in a guest: one of PEERS."""
    from . import peer as conform_peer, siw_peer
    with siw_peer.started() if name == "siw" else conform_peer.nvmet() as peer:
        yield Stand(name, ["--socket", str(peer.socket), "--target", peer.ip,
                           *(["--target6", peer.ip6] if peer.ip6 else []),
                           "--nqn", peer.nqn, "--nsid", str(peer.nsid),
                           "--mtu", str(peer.mtu),
                           *(["--echo"] if peer.has_echo else []),
                           *(["--iwarp"] if peer.has_iwarp else [])],
                    drive={"mn": "Linux nvmet", "fr": peer.kernel,
                           "subnqn": peer.nqn},
                    complaints=peer.complaints, death=peer.death,
                    logs=[peer.console_log])


def stand_for(options: Options) -> contextlib.AbstractContextManager[Stand]:
    if options.native:
        return native(options.nand)
    if options.peer:
        return nvmet(options.peer)
    return link(options) if options.target else emulated(options.nand)


# Running

def test_ids(program: Path, options: Options) -> list[str]:
    """The tests that the program is going to run; progress bars need their number."""
    done = subprocess.run([str(program), "--list", *options.selection], check=False,
                          text=True, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=LOOK_UP_S)
    if done.returncode != 0:
        raise UsageError(cause_line(done.stderr or done.stdout)
                         or f"{program.name} --list: status {done.returncode}")
    ids = re.findall(r"^([a-z-]+\.[a-z0-9._-]+)", done.stdout, re.M)
    if not ids:
        raise UsageError("--only names no test: ./essd conform --list shows the names")
    return ids


# Patterns of a log line that names the cause of a failure, in order of preference.
CAUSES = (r"ERROR: \w+Sanitizer.*|.*runtime error:.*", r".*[Aa]ssertion .*",
          r"(?<=^essd_conform: ).*", r"(?<=^prepare\.target: fail: ).*")


def cause_line(text: str) -> str:
    """The line of a program's output that names the cause, else its last line."""
    for cause in CAUSES:
        found = re.search(cause, text, re.M)
        if found:
            return found[0].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


class Lines:
    """The lines of a pipe as they arrive, until it is closed or silent too long."""

    def __init__(self, descriptor: int, silence_s: float) -> None:
        self.descriptor = descriptor
        self.silence_s = silence_s
        self.timed_out = False

    def __iter__(self) -> Iterator[str]:
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.descriptor, selectors.EVENT_READ)
            while True:
                if not selector.select(self.silence_s):
                    self.timed_out = True
                    return
                data = os.read(self.descriptor, 65536)
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    yield line.decode(errors="replace")
        if rest:
            yield rest.decode(errors="replace")


def run_program(program: Path, words: list[str], folder: Path, results: Results,
                screen: conform_screen.Screen, silence_s: float, stand: Stand) -> bool:
    """Run the program; its results go to `results` and `screen`.

    Returns false if the program was killed because the last test had killed
    the target.
    """
    reader, writer = os.pipe()
    command = [str(program), *words, "--results", f"/dev/fd/{writer}"]
    log = folder / "program.log"
    # Append, because the program runs again after each restart of the target.
    with open(log, "a", encoding="utf-8") as output, \
            open(folder / "results.jsonl", "a", encoding="utf-8") as copy:
        output.write("$ " + shlex.join(command) + "\n")
        output.flush()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                              stderr=output, pass_fds=[writer]) as process:
            os.close(writer)
            try:
                lines = Lines(reader, silence_s)
                known = len(stand.restarts())
                for line in lines:
                    copy.write(line + "\n")
                    copy.flush()
                    test = results.take(line)
                    if test is None:
                        continue
                    cause = stand.death() if test.verdict == "fail" else ""
                    if cause:
                        test = results.killed_by_last(cause)
                    elif news := stand.restarts()[known:]:
                        known += len(news)
                        test = results.restarted_in_last(news)
                    if test.verdict == "fail" and not cause:
                        test = results.failed_with(stand.counted())
                    screen.test(test)
                    if cause:
                        process.kill()
                        return False
                if lines.timed_out:
                    process.kill()
                    last = results.tests[-1].id if results.tests else "its start"
                    results.complaints.append(
                        f"no test ended within {silence_s:.0f} s after {last}: "
                        "the program was killed")
            except ResultsError as error:
                process.kill()
                results.complaints.append(str(error))
            except BaseException:
                process.kill()
                raise
            finally:
                os.close(reader)
    if not results.complaints:
        judge(results, process.returncode, log)
    return True


def judge(results: Results, status: int, log: Path) -> None:
    """Check that the program's exit status agrees with its results."""
    said = cause_line(log.read_text(errors="replace").partition("\n")[2])
    if status == 2:
        raise UsageError(said or f"essd_conform ended with status 2; see {log}")
    if status == 1 and not results.announced:
        raise EssdError(said or f"essd_conform ended with status {status}; see {log}")
    if not results.is_over:
        how = f"signal {-status}" if status < 0 else f"status {status}"
        last = results.tests[-1].id if results.tests else "its start"
        results.complaints.append(f"essd_conform ended with {how} after {last}"
                                  + (f": {said}" if said else ""))
    elif status != 0 and results.is_conforming:
        results.complaints.append(f"essd_conform ended with status {status} though "
                                  "no test failed" + (f": {said}" if said else ""))


def alone(kept: Path) -> contextlib.AbstractContextManager[None]:
    """While one run replaces the logs of the last one, no other run does."""
    return paths.flocked(kept.with_name(f"{kept.name}.lock"), fcntl.LOCK_EX)


def keep_logs(folder: Path, stand: Stand) -> Path:
    """Keep the logs in build/conform/; they replace those of the previous run."""
    kept = paths.build() / "conform" / stand.name
    with alone(kept):
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True, exist_ok=True)
        for path in (*folder.iterdir(), *stand.logs):
            if path.exists():
                shutil.copy(path, kept / path.name)
    return kept


def run_stand(program: Path, options: Options, stand: Stand, folder: Path,
              results: Results, screen: conform_screen.Screen) -> bool:
    """Run the tests after the last one in `results`; returns as run_program()."""
    words = [*stand.words, *options.program]
    if results.tests:
        words += ["--after", results.tests[-1].id]
    is_done = run_program(program, words, folder, results, screen,
                          (SILENCE_ALL_S if options.every else SILENCE_S)
                          * options.slow, stand)
    results.complaints += stand.complaints()
    results.transport += stand.transport()
    return is_done


def check_places(options: Options) -> None:
    """Check before the run that the reports and captures can be written."""
    for report in (options.junit, options.html):
        if report is None:
            continue
        if not report.absolute().parent.is_dir():
            raise UsageError(f"{report}: its folder does not exist")
        try:
            if report.exists():
                with report.open("ab"):
                    pass
            else:
                with tempfile.TemporaryFile(dir=report.absolute().parent):
                    pass
        except OSError as error:
            raise UsageError(f"{report} cannot be written: {error.strerror}") from None
    if options.pcap is not None:
        try:
            options.pcap.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=options.pcap):
                pass
        except OSError as error:
            raise UsageError(f"{options.pcap}: captures cannot be written there: "
                             f"{error.strerror}") from None


@dataclass
class Run:
    """A run that goes on: its results so far, and its reports, which are kept up to date."""

    options: Options
    ids: list[str]
    results: Results
    facts: conform_report.Facts
    parts: list[Results] = field(default_factory=list)      # of several drives
    begin: float = field(default_factory=time.monotonic)

    def now(self) -> Results:
        """The results of all drives so far."""
        found = replace(self.results, tests=list(self.results.tests),
                        complaints=list(self.results.complaints),
                        transport=list(self.results.transport))
        if self.parts:
            conform_drives.join(found, self.parts, self.ids)
        # Real time is measured here, because the program's clock may be virtual.
        found.seconds = time.monotonic() - self.begin
        return found

    @contextlib.contextmanager
    def reported(self) -> Iterator[None]:
        """Write the reports now and then, and when the run is interrupted or fails.

        A report of a run that is not over says so.  An earlier report stays where it is
        until there is a result.
        """
        over = threading.Event()

        def keep_up() -> None:
            pause_s = REPORT_S
            while not over.wait(pause_s):
                begin = time.monotonic()
                self.write()
                # Writing takes at most a thirtieth of the processor's time.
                pause_s = max(REPORT_S, 30 * (time.monotonic() - begin))
        thread = threading.Thread(target=keep_up, daemon=True)
        thread.start()
        try:
            yield
        except BaseException as error:
            over.set()
            with interrupts.ignored():
                thread.join()
                self.results.complaints.append(
                    "the run was interrupted" if isinstance(error, interrupts.INTERRUPTS)
                    else f"the run broke off: {error}")
                self.write()
            raise
        over.set()
        thread.join()

    def write(self) -> None:
        """Write reports of the tests that have ended, if there are any."""
        found = self.now()
        if found.tests:
            with contextlib.suppress(EssdError):    # The last report says why.
                write_reports(found, self.facts, replace(
                    self.options, junit=lasting(self.options.junit),
                    html=lasting(self.options.html)))


def lasting(report: Path | None) -> Path | None:
    """The report, if it is a file that can be written several times: no pipe or device."""
    return report if report is None or report.is_file() or not report.exists() else None


def run_one(program: Path, options: Options, ids: list[str], folder: Path,
            results: Results, facts: conform_report.Facts,
            screen: conform_screen.Screen) -> Path:
    """Run on one target, which is started again if a test kills it; return its logs."""
    is_done = False
    while not is_done and len(results.tests) < len(ids):
        with stand_for(options) as stand:
            results.drive |= stand.drive
            facts.versions = provenance.versions(stand.qemu)
            try:
                is_done = run_stand(program, options, stand, folder, results, screen)
            finally:
                kept = keep_logs(folder, stand)
    return kept


def run_drives(program: Path, options: Options, ids: list[str], folder: Path,
               run: Run, screen: conform_screen.Screen) -> Path:
    """Run on several drives in QEMU, each with its chapters; return their logs."""
    shares = conform_drives.share(ids, options.drives)
    run.parts = [Results() for _ in shares]
    kept = paths.build() / "conform" / "qemu"
    with contextlib.ExitStack() as stack:
        stands = [stack.enter_context(emulated()) for _ in shares]
        run.results.drive |= stands[0].drive
        run.facts.versions = provenance.versions(stands[0].qemu)
        for number, stand in enumerate(stands):
            stand.name += f"/drive{number}"
            (folder / str(number)).mkdir()
        try:
            with interrupts.pool(len(shares)) as pool:
                running = [
                    pool.submit(run_stand, program, replace(options, chapters=share), stand,
                                folder / str(number), part, screen)
                    for number, (share, stand, part) in enumerate(
                        zip(shares, stands, run.parts, strict=True))]
                for one in running:
                    one.result()
        finally:
            with alone(kept):
                shutil.rmtree(kept, ignore_errors=True)
                logs = [keep_logs(folder / str(number), stand)
                        for number, stand in enumerate(stands)]
                (kept / "results.jsonl").write_text("".join(
                    path.read_text(encoding="utf-8") for log in logs
                    if (path := log / "results.jsonl").exists()), encoding="utf-8")
    run.results = run.now()
    run.parts = []
    return kept


def run(options: Options) -> Results:
    """Run the suite once and write the reports."""
    options.check()
    check_places(options)
    preset = NATIVE_PRESET if options.native else LINK_PRESET
    check_names(preset, options)
    program = build(preset)
    ids = test_ids(program, options)
    going = Run(options, ids, Results(is_partial=bool(options.only)), conform_report.Facts(
        command=shlex.join(["./essd", *sys.argv[1:]]), slow=options.slow))
    with tempfile.TemporaryDirectory(prefix="essd-conform-") as temporary, \
            conform_screen.Screen(ids) as screen, going.reported():
        if options.drives > 1:
            kept = run_drives(program, options, ids, Path(temporary), going, screen)
        else:
            kept = run_one(program, options, ids, Path(temporary), going.results,
                           going.facts, screen)
    results = going.now()
    conform_screen.summary(results)
    write_reports(results, going.facts, options)
    if not results.is_conforming:
        show.line("logs: " + str(kept.relative_to(paths.TOP) if
                                kept.is_relative_to(paths.TOP) else kept))
    return results


def write_reports(results: Results, facts: conform_report.Facts,
                  options: Options) -> None:
    try:
        if options.junit is not None:
            replace_file(options.junit, conform_report.junit(results, facts))
        if options.html is not None:
            replace_file(options.html, conform_report.html(results, facts).encode())
    except OSError as error:
        raise EssdError(f"{error.filename}: {error.strerror}") from None


def replace_file(path: Path, data: bytes) -> None:
    """Replace a report by a newer one; whoever reads it meanwhile sees a whole file."""
    path = path.resolve()
    if path.is_file() and os.access(path.parent, os.W_OK):
        new = path.with_name(f".{path.name}-{os.getpid()}")
        try:
            new.write_bytes(data)
            new.chmod(path.stat().st_mode & 0o777)
            new.replace(path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
    else:       # It is new, or a device such as /dev/stdout.
        path.write_bytes(data)


def list_tests(options: Options) -> int:
    """Run `--list`; return the program's exit status."""
    check_names(LINK_PRESET, options)
    program = build(LINK_PRESET)
    sys.stdout.flush()
    return subprocess.run([str(program), "--list", *options.selection],
                          stdin=subprocess.DEVNULL, check=False,
                          timeout=LOOK_UP_S).returncode
