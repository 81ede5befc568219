# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the end-to-end tests: a drive connected to a Linux host.

`job` is a drive and a host that are kept for the whole session; `booted` starts
others with their own options.  In a file with the mark `uml`, the host is user-mode
Linux if that is built (docs/hosts.md), and stock Linux otherwise; `--hosts` decides
otherwise.  Every test begins with the power on, the cables
plugged and no host connected.  With `--target nvmet` a Linux nvmet guest replaces
the drive, which shows whether a test expects more than NVMe-oF demands.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import essd
from essd.base.errors import EssdError
from essd.build import uml_build
from essd.instance import steps
from essd.instance.config import HOST_KINDS, STOCK, UML
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.observe import evidence, losses
from essd.pytest_plugin import session_drive
from essd.setup import setup
from essd.setup.setup import Wish

import fresh
import names
import transport
from fresh import pytest_runtest_makereport, pytest_runtest_teardown  # noqa: F401

# Instances are named after this: another one runs beside, and so do the other
# workers of this one.
SESSION = names.session(os.environ)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--target", default="drive", choices=["drive", "nvmet"],
                     help="what the host is cabled to")
    parser.addoption("--hosts", default="auto", choices=["auto", *HOST_KINDS],
                     help="what the hosts of files with the mark uml are; auto: user-mode "
                          "Linux if it is built already")
    parser.addoption("--keep-pictures", metavar="FOLDER",
                     help="write the pictures of the cockpit there: test_cockpit_story.py")
    parser.addoption("--keep-captures", metavar="FOLDER",
                     help="write what the peers send each other there: test_peers.py")


def pytest_collection_modifyitems(config: pytest.Config,
                                  items: list[pytest.Item]) -> None:
    if config.getoption("--target") == "nvmet":
        skip = pytest.mark.skip(reason="needs the drive itself")
        for item in items:
            if item.get_closest_marker("drive"):
                item.add_marker(skip)
    items[:] = mixed(items)


def mixed(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests by file, in an order in which workers that run beside each other fit.

    Files with the mark `uml` mostly wait, and files with stock hosts mostly compute, so
    they take turns, and both kinds end together.  Of each kind, the file with most tests
    is the first.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    order: list[tuple[float, int, list[pytest.Item]]] = []
    for is_uml in (False, True):
        kind = [tests for tests in files.values()
                if any(test.get_closest_marker("uml") for test in tests) == is_uml]
        kind.sort(key=len, reverse=True)
        order += [((at + 0.5) / len(kind), is_uml, tests) for at, tests in enumerate(kind)]
    order.sort(key=lambda one: one[:2])
    return [test for _, _, tests in order for test in tests]


@pytest.fixture(scope="session")
def target(pytestconfig: pytest.Config) -> str:
    return str(pytestconfig.getoption("--target"))


@pytest.fixture(scope="module")
def host_kind(request: pytest.FixtureRequest, target: str) -> str:
    """What the hosts of this file are."""
    asked = str(request.config.getoption("--hosts"))
    is_marked = any(item.get_closest_marker("uml") for item in request.session.items
                    if item.path == request.path)
    if not is_marked or target != "drive" or (asked == "auto" and not uml_build.is_built()):
        return STOCK
    return UML if asked == "auto" else asked


@pytest.fixture(scope="session")
def drives(pytestconfig: pytest.Config) -> Iterator[Callable[[str], essd.Drive]]:
    """A function that returns the session's drive with a host of one kind."""
    with contextlib.ExitStack() as stack:
        @functools.cache
        def drive(host_kind: str) -> essd.Drive:
            return stack.enter_context(session_drive(pytestconfig, host_kind))
        yield drive


@pytest.fixture(scope="module")
def essd_drive(drives: Callable[[str], essd.Drive], host_kind: str) -> essd.Drive:
    """The session's drive and its host, in place of the plug-in's."""
    return drives(host_kind)


def boot(wish: Wish, prepare: Callable[[], None] = lambda: None) -> Job:
    """A new drive and a host, both ready; `prepare` may write the drive's files before."""
    instance = Instance(wish.name)
    instance.stop()
    setup.forget(wish.name)
    prepare()
    instance.start(setup.configure(wish))
    instance.wait_ready("host")
    job = Job.of(instance)
    if wish.host_mtu <= (wish.mtu or 1500):     # else no connection is possible
        steps.wait_target(job)
    return job


@pytest.fixture(scope="session")
def nvmet_job() -> Iterator[Job]:
    """An nvmet guest and a host, for the whole session."""
    job = boot(Wish(name=SESSION, target="nvmet"))
    yield job
    job.instance.stop()


@pytest.fixture(scope="module")
def session_job(target: str, request: pytest.FixtureRequest) -> Job:
    """The session's drive and host, or an nvmet guest and a host."""
    if target == "drive":
        drive: essd.Drive = request.getfixturevalue("essd_drive")
        return Job.of(drive.instance)
    job: Job = request.getfixturevalue("nvmet_job")
    return job


@pytest.fixture
def job(session_job: Job) -> Iterator[Job]:
    """The session's drive and host, cleaned up before the test and checked after it.

    A restart that nobody asked for fails the test in which it happened, and no other.
    """
    set_right(session_job)
    before = {name: len(causes)
              for name, causes in evidence.restarts(session_job.instance).items()}
    yield session_job
    session_job.instance.check(before)


def set_right(job: Job) -> None:
    status = job.instance.status()
    if status["parts"][job.target]["state"] != "running":
        job.instance.ask("power-on", part=job.target)
    for number, cable in status["cables"].items():
        if not cable["plugged"]:
            job.instance.ask("port", port=int(number), plugged=True)
    steps.settle(job)


@pytest.fixture
def connected(job: Job) -> Iterator[Job]:
    """The session's drive and host, connected through port 0."""
    steps.connect(job)
    yield job
    steps.clean_host(job)


@pytest.fixture
def booted(target: str, host_kind: str,
           request: pytest.FixtureRequest) -> Iterator[Callable[..., Job]]:
    """Return a function that starts another drive and host: booted(nqn=..., mtu=...)."""
    instances: list[Instance] = []

    def make(prepare: Callable[[], None] = lambda: None, **options: object) -> Job:
        wish = Wish(name=f"{SESSION}-own", target=target, host_kind=host_kind,
                    size="512M" if target == "drive" and "media" not in options else None)
        for key, value in options.items():
            assert hasattr(wish, key), key
            setattr(wish, key, value)
        instances.append(Instance(wish.name))
        return boot(wish, prepare)

    make.instances = instances      # type: ignore[attr-defined]    # for their evidence
    yield make
    try:
        for instance in instances if target == "drive" else []:
            if instance.is_running:
                transport.check(instance, {},
                                request.node.get_closest_marker("rnr") is not None)
    finally:
        for instance in instances:
            instance.stop()
            setup.forget(instance.name)


@pytest.fixture(autouse=True)
def transport_counters(request: pytest.FixtureRequest,
                       lost_before: dict[str, losses.Losses]) -> Iterator[None]:
    """Print what went wrong on the wire of the session's drive; no RNR NAK is sent.

    A test that makes the drive send RNR NAKs has the mark `rnr`.
    """
    names = request.fixturenames
    if (request.config.getoption("--target") != "drive"
            or not {"session_job", "essd_drive"} & set(names)):
        yield
        return
    drive: essd.Drive = request.getfixturevalue("essd_drive")
    before = transport.read(drive.instance)
    if drive.instance.name not in lost_before:
        lost_before[drive.instance.name] = losses.read(drive.instance)
    yield
    transport.check(drive.instance, before,
                    request.node.get_closest_marker("rnr") is not None)


@pytest.fixture(scope="session", autouse=True)
def essd_losses() -> None:
    """In place of the plug-in's look after each test: frames_lost looks once for a file."""


@pytest.fixture(scope="session")
def lost_before() -> dict[str, losses.Losses]:
    """What had been lost when the last file's tests ended, by the instance's name.

    The next file goes on from there, so that each file needs one look only.
    """
    return {}


@pytest.fixture(autouse=True, scope="module")
def frames_lost(request: pytest.FixtureRequest,
                lost_before: dict[str, losses.Losses]) -> Iterator[None]:
    """During the tests of a file, neither a host nor a switch drops a frame.

    A part that was asked and has not said what it has lost fails the file, too.

    The counters of the session's drive are read after the file's tests, those of instances
    that the tests start and stop themselves when these are stopped.  A file with a test
    that makes frames disappear has the mark `lossy`.
    """
    found: dict[str, losses.Losses] = {}
    stop = Instance.stop
    # If the last test of a file has failed, fresh.py has ended its instances after the file.
    for name in [name for name in lost_before if not Instance(name).is_running]:
        del lost_before[name]

    def look_and_stop(instance: Instance) -> bool:
        before = lost_before.pop(instance.name, losses.Losses())
        if request.session.stash.get(fresh.IS_RENEWING, False):
            return stop(instance)       # A failed test may have left a host that hangs.
        try:
            lost = (losses.grown(before, losses.read(instance))
                    if instance.is_running else losses.Losses())
        except EssdError as error:      # The test has stopped the supervisor, or its end.
            lost = losses.Losses(unasked={"all parts": str(error)})
        found[instance.name] = found.get(instance.name, losses.Losses()) | lost
        return stop(instance)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Instance, "stop", look_and_stop)
        yield
    for name, before in lost_before.items():
        now = losses.read(Instance(name))
        lost_before[name] = losses.known(before, now)
        found[name] = losses.grown(before, now)
    for name, lost in found.items():
        print(f"{name}: {losses.words(lost)}")
    is_lossy = any(item.get_closest_marker("lossy") for item in request.session.items
                   if item.path == request.path)
    complaints = {name: lost.complaint for name, lost in found.items() if lost.complaint}
    assert is_lossy or not complaints, complaints


@pytest.fixture(scope="session")
def host_programs() -> dict[str, Path]:
    """The programs of tests/host by name."""
    from essd.build import native_build
    return {path.name: path for path in native_build.host_tests(lambda text: None)}
