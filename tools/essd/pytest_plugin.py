# SPDX-License-Identifier: BSD-2-Clause
"""The pytest plug-in: running drives as fixtures (docs/python.md).

With the package installed, pytest loads it by itself; otherwise say
`-p essd.pytest_plugin`.
"""

import contextlib
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

import essd

from .base import ends
from .base.errors import EssdError
from .instance.config import HOST_KINDS, STOCK, console_log

if TYPE_CHECKING:
    from .instance.instance import Instance
    from .observe.losses import Losses

Factory = Callable[..., "essd.System"]
LINES = 20          # of each console, in the report of a failed test


class LossWarning(UserWarning):
    """Frames were lost between a drive and a host, or it is not known whether they were."""


class Watch:
    """What the systems of the tests have lost, and what of it nobody has said yet."""

    def __init__(self) -> None:
        self.known: dict[str, Losses] = {}
        self.found: dict[str, Losses] = {}

    def begin(self, system: "essd.System") -> None:
        """What somebody else's system has lost before the test is not the test's."""
        from .api.system import open_systems
        if system.name not in self.known and system not in open_systems():
            self.look(system)
            self.found.pop(system.name, None)

    def look(self, system: "essd.System") -> None:
        from .observe import losses
        before = self.known.get(system.name, losses.Losses())
        try:
            now = losses.read(system.instance)
        except (EssdError, OSError):        # The test has ended the system, or stopped it.
            return
        self.known[system.name] = losses.known(before, now)
        if (lost := losses.grown(before, now)).complaint:
            self.found[system.name] = lost

    def end(self, system: "essd.System") -> None:
        """The last look: another system with this name begins at 0.

        A host that has just given no answer would take as long again to give none.
        """
        before = self.known.get(system.name)
        if before is None or not before.unknown:
            self.look(system)
        self.known.pop(system.name, None)

    def take(self) -> dict[str, str]:
        """What was found since the last call, in words, by the system's name."""
        found = {name: lost.complaint for name, lost in self.found.items()}
        self.found.clear()
        return found


class Outcome(Protocol):
    """What pytest hands to a hook wrapper."""

    excinfo: Any

    def get_result(self) -> Any: ...

    def force_exception(self, exception: BaseException) -> None: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("essd", "emulated drives (essd)")
    group.addoption("--essd-size", default="1G", metavar="SIZE",
                    help="capacity of the drives that the tests get (default: 1G)")
    group.addoption("--essd-host-kind", default=STOCK, choices=HOST_KINDS,
                    help="what the hosts of the tests are (default: stock)")
    group.addoption("--essd-keep", action="store_true",
                    help="leave the drives and hosts running after the last test")
    group.addoption("--essd-evidence", default="", metavar="DIR",
                    help="keep consoles, logs, counters and captures of the systems of each "
                         "failed test in a folder of its own in DIR")


def _show_kept(system: "essd.System") -> None:
    print(f"\nessd: {system.name} is still running: "
          f"{system.instance.hint('host')}, {system.instance.hint('down')}")


@contextlib.contextmanager
def session_drive(config: pytest.Config, host_kind: str) -> Iterator["essd.Drive"]:
    """A running drive with a host of this kind, as the options say."""
    keep = bool(config.getoption("--essd-keep"))
    with essd.up(size=str(config.getoption("--essd-size")), keep=keep,
                 host_kind=host_kind) as system:
        yield system.drives[0]
        if keep:
            _show_kept(system)


@pytest.fixture(scope="session")
def essd_drive(pytestconfig: pytest.Config) -> Iterator["essd.Drive"]:
    """A running drive with a host, for the whole session.

    `essd_drive.system` is what it belongs to.  After each test, its fault rules are
    removed and its connections ended (essd_undo).  The drive keeps everything else, so a
    test that changes settings, cables or power sets that right again.
    """
    with session_drive(pytestconfig,
                       str(pytestconfig.getoption("--essd-host-kind"))) as drive:
        yield drive


def _remove_rules(faults: "essd.Faults", before: list[str]) -> None:
    """Remove the rules that were added since, except those that somebody else removed."""
    there = [rule.name for rule in faults]
    faults.added = [name for name in faults.added if name in before or name in there]
    if new := [name for name in faults.added if name not in before]:
        faults.remove(*new)


@pytest.fixture(autouse=True)
def essd_undo(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test has added to the session's drive ends with it, also if the test fails.

    These are the fault rules and the connections that it made with Faults.add() or
    load() and Host.connect(), itself or in a fixture for this test alone.
    """
    if "essd_drive" not in request.fixturenames:
        yield
        return
    drive: essd.Drive = request.getfixturevalue("essd_drive")
    hosts = drive.system.hosts
    rules, connected = list(drive.faults.added), [list(host.connected) for host in hosts]
    yield
    # Each step is done, also if another one fails: first the rules, then the connections.
    with contextlib.ExitStack() as undo:
        for host, before in zip(hosts, connected, strict=True):
            for one in [one for one in host.connected if one not in before]:
                undo.callback(host.disconnect, one)
        undo.callback(_remove_rules, drive.faults, rules)


@pytest.fixture(scope="session", autouse=True)
def essd_losses() -> Iterator[Watch | None]:
    """Looks after each test, and before a system ends, for frames that got lost.

    Who looks in another way has a fixture of this name that returns None.
    """
    watch = Watch()
    ends.before_end.append(watch.end)
    yield watch
    ends.before_end.remove(watch.end)


@pytest.fixture
def essd_system(pytestconfig: pytest.Config) -> Iterator[Factory]:
    """A function that starts a system with the arguments of essd.up().

    The system ends after the test.
    """
    started: list[essd.System] = []
    keep = bool(pytestconfig.getoption("--essd-keep"))

    def start(**arguments: Any) -> "essd.System":
        if "topology" not in arguments and "nand" not in arguments:
            arguments.setdefault("size", pytestconfig.getoption("--essd-size"))
        if "topology" not in arguments:
            arguments.setdefault("host_kind", pytestconfig.getoption("--essd-host-kind"))
        started.append(essd.up(**{"keep": keep, **arguments}))
        return started[-1]

    yield start
    for system in started:
        system.close()
        if keep:
            _show_kept(system)


def systems_of(item: pytest.Item) -> "list[essd.System]":
    """The systems that a test uses: values of fixtures, or what their parts belong to."""
    api = sys.modules.get("essd.api.system")
    if api is None:         # Nobody has a system.
        return []
    values = getattr(item, "funcargs", {}).values()
    found = [one for one in (getattr(value, "system", value) for value in values)
             if isinstance(one, api.System)]
    if "essd_system" in getattr(item, "fixturenames", ()):
        found += api.open_systems()
    return list({one.name: one for one in found}.values())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Outcome, None]:
    """Say what got lost during a test: in its report if it fails, else as a warning."""
    watch: Watch | None = getattr(item, "funcargs", {}).get("essd_losses")
    if watch is None:
        yield
        return
    for system in systems_of(item):
        watch.begin(system)
    outcome = yield
    for system in systems_of(item):
        watch.look(system)
    say(item, watch, outcome)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Outcome, None]:
    """What got lost in systems that have ended since."""
    watch: Watch | None = getattr(item, "funcargs", {}).get("essd_losses")
    outcome = yield
    if watch is not None:
        say(item, watch, outcome)


def say(item: pytest.Item, watch: Watch, outcome: Outcome) -> None:
    for name, words in watch.take().items():
        if outcome.excinfo is not None:
            item.add_report_section("call", f"essd {name}", words)
            continue
        try:
            item.warn(LossWarning(f"{name}: {words}"))
        except LossWarning as error:        # of -W error
            if not hasattr(outcome, "force_exception"):
                raise                       # pluggy before 1.1
            outcome.force_exception(error)


def instances_of(item: pytest.Item) -> "dict[str, Instance]":
    """The systems that a test uses, by name.

    A test uses a system if the value of one of its fixtures has an `instance`, as
    systems and their parts do, or has started it: such a function has the list
    `instances`, or is essd_system.
    """
    from .api.system import open_systems
    from .instance.instance import Instance
    values = getattr(item, "funcargs", {}).values()
    found = [getattr(value, "instance", None) for value in values]
    for value in values:
        with contextlib.suppress(TypeError):
            found += getattr(value, "instances", ())
    if "essd_system" in getattr(item, "fixturenames", ()):
        found += [system.instance for system in open_systems()]
    return {one.name: one for one in found if isinstance(one, Instance)}


def sections(item: pytest.Item) -> Iterator[tuple[str, str]]:
    """Title and lines of what a report has of each system that a test uses.

    That is first of all a restart that nobody asked for, then the fault rules of its
    drives and the last lines of all consoles.
    """
    from .api.part import last_lines
    from .observe import evidence
    for name, instance in instances_of(item).items():
        try:
            config = instance.config
        except (OSError, ValueError):       # It has been deleted.
            continue
        if lines := list(evidence.restart_lines(instance)):
            yield f"essd {name}: RESTARTED BY ITSELF", "\n".join(lines)
        for part in config.drives:
            rules = []
            with contextlib.suppress(EssdError, OSError):       # It may have ended.
                rules = instance.ask("faults", part=part, do="list")
            if rules:
                yield (f"essd {name}: fault rules of {part}", "\n".join(
                    f"{rule['name']}: {rule['rule']}: {'on' if rule['on'] else 'off'}, "
                    f"matched {rule['matched']}, fired {rule['fired']}" for rule in rules))
        for part in (*config.targets(), *config.hosts):
            lines = last_lines(console_log(instance.folder, part), LINES)
            what = "UART" if part in config.drives else "console"
            if lines:
                yield f"essd {name}: last lines of the {what} of {part}", "\n".join(lines)


def keep_evidence(item: pytest.Item, report: pytest.TestReport, folder: Path) -> None:
    """Copy what is known of a failed test's systems, its captures and its report."""
    from .observe import evidence
    kept = folder / evidence.folder_name(item.nodeid)
    for name, instance in instances_of(item).items():
        evidence.keep(instance, kept / name)
    if isinstance(own := getattr(item, "funcargs", {}).get("tmp_path"), Path):
        evidence.copy_files(own, kept)
    kept.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join([report.longreprtext,
                        *(f"{title}\n{lines}" for title, lines in report.sections)])
    (kept / f"{report.when}.txt").write_text(text + "\n", encoding="utf-8")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Outcome, None]:
    """Add what is known of the systems to the report of a failed test, and keep it."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        folder = str(item.config.getoption("--essd-evidence", ""))
        try:
            report.sections += sections(item)
            if folder:
                keep_evidence(item, report, Path(folder))
        except (EssdError, OSError) as error:
            report.sections.append(("essd", f"the consoles could not be read: {error}"))
