# SPDX-License-Identifier: BSD-2-Clause
"""Native multipath of a stock Linux host: fail-over and back by ANA, cable and reset.

The host connects through both ports and makes one block device of the two paths.  fio
writes and verifies while paths fail and come back.
"""

import re
import time
from collections.abc import Callable, Iterator

import pytest

import essd
from essd.drive import ana
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.long]

OPTIONS = "--keep-alive-tmo=2 --reconnect-delay=1 --ctrl-loss-tmo=120"
NOTICE_S = 20           # for the host to follow an event
PAUSE_MAX_S = 30.0      # of I/O, on a machine that emulates others at the same time
CALM_S = 4


class Paths:
    """A host with a path through each port, and the drive."""

    def __init__(self, job: Job, drive: essd.Drive) -> None:
        self.job = job
        self.drive = drive
        self.host = drive.system.host

    def connect(self) -> None:
        for port in (0, 1):
            self.device = self.host.connect(self.drive, port, OPTIONS)
        self.host.wait_paths(self.drive, 2)

    def set_ana(self, state: str, port: int | None = None, transition_ms: int = 0) -> None:
        ana.change(self.drive.instance, state, 1, port, transition_ms)

    def states(self) -> list[str]:
        """The ANA state of the path through each port, as the kernel has it."""
        found = self.job.quiet(
            "for n in /sys/block/nvme*c*n*; do c=${n##*/}; c=nvme$(echo $c | sed "
            "'s/nvme[0-9]*c\\([0-9]*\\)n.*/\\1/'); "
            "echo $(cat /sys/class/nvme/$c/address) $(cat $n/ana_state); done")
        rows = {re.search(r"traddr=([^,]+)", line)[1]: line.split()[-1]   # type: ignore[index]
                for line in found.splitlines()}
        return [rows.get(address, "none") for address in self.job.addresses]

    def wait_states(self, *expected: str) -> float:
        start = time.monotonic()
        while self.states() != list(expected):
            assert time.monotonic() - start < NOTICE_S, self.states()
            time.sleep(0.2)
        return time.monotonic() - start

    def policy(self, name: str) -> None:
        self.job.quiet(f"echo {name} | tee /sys/class/nvme-subsystem/*/iopolicy")

    def frames(self) -> list[int]:
        """Frames that each port of the drive has received."""
        return [self.drive.port(n).counters()["aFramesReceivedOK"] for n in (0, 1)]

    def used(self, what: Callable[[], object]) -> list[int]:
        """Frames that each port receives meanwhile."""
        before = self.frames()
        what()
        return [now - then for now, then in zip(self.frames(), before, strict=True)]

    def load(self) -> essd.Fio:
        return essd.Fio(self.host, self.device, rw="randrw", bs="4k", iodepth=4, size="16m",
                        verify="crc32c", verify_fatal=1, verify_backlog=64)

    def check(self, load: essd.Fio, since: float) -> None:
        """No I/O failed, no byte was wrong, and I/O never stood still for long."""
        end = time.monotonic()
        done = load.stop()
        assert done.status == 0 and done.errors == 0, done.output
        _, pause = done.pause(since, end)
        print(f"{len(done.ios)} I/Os, the longest pause was {pause:.2f} s")
        assert len(done.ios) > 100 and pause < PAUSE_MAX_S


@pytest.fixture
def paths(job: Job, essd_drive: essd.Drive) -> Iterator[Paths]:
    """Both ports connected; afterwards all groups are optimized, the host is clean."""
    both = Paths(job, essd_drive)
    both.connect()
    yield both
    both.set_ana("optimized")
    steps.clean_host(job)


def test_io_follows_the_ana_state_and_comes_back(paths: Paths) -> None:
    load = paths.load()
    begin = time.monotonic()
    for port in (0, 1):
        states = ["optimized", "optimized"]
        states[port] = "inaccessible"
        paths.set_ana("inaccessible", port)
        paths.wait_states(*states)
        used = paths.used(lambda: time.sleep(CALM_S))
        print(f"frames while port {port} is inaccessible: {used}")
        assert used[1 - port] > 20 * max(used[port], 1)
        paths.set_ana("optimized", port)
        paths.wait_states("optimized", "optimized")
    paths.check(load, begin)


def test_an_optimized_path_is_preferred(paths: Paths) -> None:
    load = paths.load()
    begin = time.monotonic()
    paths.policy("round-robin")
    paths.set_ana("non-optimized", 0)
    paths.wait_states("non-optimized", "optimized")
    used = paths.used(lambda: time.sleep(CALM_S))
    assert used[1] > 20 * max(used[0], 1), used
    # Without another path, the one that is not optimized is used.
    paths.set_ana("inaccessible", 1)
    paths.wait_states("non-optimized", "inaccessible")
    used = paths.used(lambda: time.sleep(CALM_S))
    assert used[0] > 20 * max(used[1], 1), used
    paths.check(load, begin)


def test_io_waits_while_no_path_is_accessible(paths: Paths) -> None:
    load = paths.load()
    begin = time.monotonic()
    paths.set_ana("inaccessible")
    paths.wait_states("inaccessible", "inaccessible")
    used = paths.used(lambda: time.sleep(CALM_S))
    assert max(used) < 40, used     # keep-alive and acknowledgements
    paths.set_ana("optimized", 1)
    paths.wait_states("inaccessible", "optimized")
    used = paths.used(lambda: time.sleep(CALM_S))
    assert used[1] > 40, used
    paths.check(load, begin)


def test_io_survives_transitions(paths: Paths) -> None:
    """303h: the host reads the log, waits, and goes on with the state that follows."""
    load = paths.load()
    begin = time.monotonic()
    paths.policy("round-robin")
    for port in (0, 1):
        paths.set_ana("change", port, 2000)
        time.sleep(CALM_S)
        paths.wait_states("optimized", "optimized")
    paths.set_ana("inaccessible", 0, 1000)
    paths.wait_states("inaccessible", "optimized")
    paths.check(load, begin)


@pytest.mark.parametrize("policy", ["round-robin", "queue-depth"])
def test_a_policy_uses_both_ports(paths: Paths, policy: str) -> None:
    paths.policy(policy)
    assert policy in paths.job.quiet("cat /sys/class/nvme-subsystem/*/iopolicy")
    load = paths.load()
    begin = time.monotonic()
    used = paths.used(lambda: time.sleep(2 * CALM_S))
    print(f"{policy}: frames of each port: {used}")
    assert min(used) > max(used) / 4, used
    paths.check(load, begin)


def test_io_goes_on_when_a_cable_is_pulled_and_plugged(paths: Paths) -> None:
    paths.policy("round-robin")
    load = paths.load()
    begin = time.monotonic()
    for port in (0, 1):
        paths.drive.port(port).unplug()
        paths.host.wait_paths(paths.drive, 1)
        used = paths.used(lambda: time.sleep(CALM_S))
        assert used[port] == 0 and used[1 - port] > 40, used
        paths.drive.port(port).plug()
        paths.host.wait_paths(paths.drive, 2)
    paths.check(load, begin)


def test_io_goes_on_when_a_link_flaps(paths: Paths) -> None:
    """The port's link ends and comes back, as when the switch resets its port."""
    paths.policy("round-robin")
    load = paths.load()
    begin = time.monotonic()
    for port in (0, 1):
        paths.drive.port(port).flap(3)
        time.sleep(CALM_S)
        paths.host.wait_paths(paths.drive, 2)
    paths.check(load, begin)


def test_io_goes_on_when_the_host_resets_a_path(paths: Paths) -> None:
    paths.policy("round-robin")
    load = paths.load()
    begin = time.monotonic()
    for name in sorted(paths.host.paths(paths.drive)):
        paths.job.quiet(f"nvme reset /dev/{name}")
        paths.host.wait_paths(paths.drive, 2)
        time.sleep(CALM_S)
    paths.check(load, begin)


def test_nvme_cli_shows_the_groups(paths: Paths) -> None:
    name = min(paths.host.paths(paths.drive))
    log = paths.job.run(f"nvme ana-log /dev/{name}")
    assert re.search(r"grpid\s*:\s*1\b", log) and re.search(r"nsid\s*:\s*1\b", log), log
    paths.set_ana("non-optimized")
    paths.wait_states("non-optimized", "non-optimized")
    assert "non-optimized" in paths.job.run(f"nvme ana-log /dev/{name}")
    assert paths.job.run(f"nvme list-subsys {paths.device}").count("non-optimized") == 2
    namespace = paths.job.run(f"nvme id-ns {paths.device}")
    assert re.search(r"anagrpid\s*:\s*1\b", namespace), namespace
