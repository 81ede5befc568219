# SPDX-License-Identifier: BSD-2-Clause
"""Steps of the demo that need two paths, several namespaces or two hosts.

As in steps.py, each step runs real commands in a host and raises EssdError if the
result is not as expected.
"""

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator

from ..api import Drive, Fio, Host, Load
from ..base.errors import EssdError
from ..drive import ana, port
from ..instance import steps
from ..instance.config import SERVICE
from ..instance.steps import Job

MIB = 1 << 20
SECOND_HOST = "host2"
# Two hosts on two switches: each host can use both ports of the drive.
TWO_HOSTS = f"""\
drives:
  drive: {{transports: [rdma, tcp]}}
hosts:
  host: {{}}
  {SECOND_HOST}: {{}}
switches:
  switch[0-1]: {{}}
cables:
  - host - switch[0-1]
  - {SECOND_HOST} - switch[0-1]
  - drive:0 - switch0
  - drive:1 - switch1
"""
NOTICE_S = 30.0         # the time that a host gets to follow an event of the drive

# A host notices a lost path when the transport's retries end, or else when a keep-alive
# has no answer after 2 s.  It then tries to reconnect each second.
PATH_OPTIONS = "--keep-alive-tmo=2 --reconnect-delay=1 --ctrl-loss-tmo=120"
LOOK_S = 3              # how long frames are counted in each situation
QUIET_FRAMES = 40       # at most so many come in that time without I/O (keep-alive)
PAUSE_MAX_S = 30.0      # the longest pause of I/O that is allowed, on a busy machine
GROUP = 1               # ANA group of the namespace

NAMESPACE_MIB = 512
BLOCKS = (512, 512, 4096, 4096)
KEYS = {"host": "0xaaaa", SECOND_HOST: "0xbbbb"}
WRITE_EXCLUSIVE = 1


def wait_for(what: str, is_true: Callable[[], bool]) -> None:
    """Wait until something is true; EssdError says that it did not happen."""
    deadline = time.monotonic() + NOTICE_S
    while not is_true():
        if time.monotonic() > deadline:
            raise EssdError(f"within {NOTICE_S:.0f} s it did not happen that {what}")
        time.sleep(0.2)


# Two paths

def frames(job: Job) -> list[int]:
    """Frames that each port of the drive has received."""
    return [port.get(job.instance, number, "state")["counters"]["aFramesReceivedOK"]
            for number in (0, 1)]


def look(job: Job, used: tuple[int, ...]) -> None:
    """Count frames for some seconds; EssdError if other ports than these carry I/O."""
    before = frames(job)
    time.sleep(LOOK_S)
    got = [now - then for now, then in zip(frames(job), before, strict=True)]
    text = " and ".join(f"port {number} {count}" for number, count in enumerate(got))
    job.say(f"frames that the drive receives within {LOOK_S} s: {text}")
    for number, count in enumerate(got):
        if (count > QUIET_FRAMES) != (number in used):
            raise EssdError(f"port {number} has received {count} frames in {LOOK_S} s; "
                            f"expected {'more' if number in used else 'no more'} than "
                            f"{QUIET_FRAMES}")


def count_paths(job: Job, device: str, state: str) -> int:
    """How many paths of the device have this ANA state."""
    states = job.quiet(f"cat /sys/block/nvme*c*{device[device.rindex('n'):]}/ana_state")
    return states.split().count(state)


def ana_command(job: Job, state: str) -> str:
    """What to type for this state of the group at port 0."""
    return job.instance.hint("ana", state, "--group", str(GROUP), "--port", "0")


@contextlib.contextmanager
def undone_by(action: Callable[[], object]) -> Iterator[None]:
    """Call `action` at the end; its own EssdError is ignored after another error."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(EssdError):
            action()
        raise
    action()


def take_access_away(job: Job, device: str) -> None:
    """Make the namespace inaccessible through port 0, then optimized again."""
    job.say(f"{ana_command(job, 'inaccessible')}; the drive's event tells the host")
    ana.change(job.instance, "inaccessible", GROUP, 0)
    with undone_by(lambda: ana.change(job.instance, "optimized", GROUP, 0)):
        wait_for("the host sees an inaccessible path",
                 lambda: count_paths(job, device, "inaccessible") == 1)
        job.run(f"nvme list-subsys {device}")
        look(job, (1,))
        job.say(ana_command(job, "optimized"))
    wait_for("the host sees two optimized paths",
             lambda: count_paths(job, device, "optimized") == 2)
    look(job, (0, 1))


def dead_rxe(job: Job) -> list[str]:
    """The host's rxe devices whose connection manager has lost its queue pair (QP 1).

    A defect of Linux: docs/network.md.
    """
    return re.findall(r"^link (\S+)/\d+ lqpn 1 .*\bstate ERR\b",
                      job.quiet("rdma resource show qp", check=False), re.M)


def wait_reconnected(job: Job, host: Host, drive: Drive) -> None:
    """Wait for both paths; if the host's kernel cannot reconnect any more, say so."""
    try:
        host.wait_paths(drive, 2)
    except EssdError as error:
        if dead := dead_rxe(job):
            raise EssdError(
                f"{error}. QP 1 of the host's {' and '.join(dead)} is in error, so the host "
                "cannot connect to any target there: a defect of Linux's rxe "
                "(docs/network.md), not of the drive") from error
        raise


def take_cable_away(job: Job, host: Host, drive: Drive) -> None:
    """Pull the cable of port 0, and plug it in again."""
    job.say(f"{job.instance.hint('port', '0', '--unplug')}; the host gives the path up when "
            "nothing answers it")
    port.plug(job.instance, 0, False)
    with undone_by(lambda: port.plug(job.instance, 0, True)):
        host.wait_paths(drive, 1)
        look(job, (1,))
        job.say(f"{job.instance.hint('port', '0', '--plug')}; the host tries to reconnect each "
                "second")
    wait_reconnected(job, host, drive)
    look(job, (0, 1))


def check_load(job: Job, load: Load, pause_s: float) -> None:
    job.say(f"fio stopped: {len(load.ios)} I/Os without an error, and the longest pause was "
            f"{pause_s:.1f} s" if load.status == 0 and load.errors == 0 else
            f"fio stopped: {load.errors} errors")
    if load.status != 0 or load.errors:
        raise EssdError(f"fio has seen {load.errors} errors (status {load.status}): "
                        f"{load.output.strip()[-300:]}")
    if pause_s > PAUSE_MAX_S:
        raise EssdError(f"I/O stood still for {pause_s:.0f} s; expected at most "
                        f"{PAUSE_MAX_S:.0f} s")


def under_load(job: Job, host: Host, device: str, actions: Callable[[], None]) -> float:
    """Call `actions` while fio uses both paths; return the longest pause of I/O."""
    job.run("echo round-robin | tee /sys/class/nvme-subsystem/*/iopolicy")
    job.run(f"nvme list-subsys {device}")
    job.say("fio writes and verifies until the end of this step: 4K blocks, crc32c")
    fio = Fio(host, device, rw="randwrite", bs="4k", iodepth=4, size="16m",
              verify="crc32c", verify_fatal=1, verify_backlog=64)
    begin = time.monotonic()
    try:
        look(job, (0, 1))
        actions()
        end = time.monotonic()
    except BaseException:
        with contextlib.suppress(EssdError):
            fio.background.kill()
        raise
    load = fio.stop()
    _, pause_s = load.pause(begin, end)
    check_load(job, load, pause_s)
    return pause_s


def fail_over(job: Job) -> None:
    """Take port 0 away by ANA, then by cable, while fio writes and verifies."""
    steps.disconnect(job)
    for number in (0, 1):
        device = steps.connect(job, number, PATH_OPTIONS)
    host, drive = Host(job.instance, job.host), Drive(job.instance, job.target)
    host.wait_paths(drive, 2)

    def take_away() -> None:
        take_access_away(job, device)
        take_cable_away(job, host, drive)

    pause_s = under_load(job, host, device, take_away)
    job.claim("I/O goes on through port 1 when port 0 loses access or its cable, with at "
              f"most {pause_s:.1f} s of pause",
              "nvme list-subsys, frames of each port, fio verify=crc32c")


# Two transports

def both_transports(job: Job) -> None:
    """RoCE through port 0 and NVMe/TCP through port 1 are two paths of one device."""
    device = steps.connect(job, 0, PATH_OPTIONS)
    job.run(f"nvme connect -t tcp -a {job.addresses[1]} -s {SERVICE} -n {job.nqn} "
            f"{PATH_OPTIONS} --hdr-digest --data-digest")
    host, drive = Host(job.instance, job.host), Drive(job.instance, job.target)
    host.wait_paths(drive, 2)
    pause_s = under_load(job, host, device, lambda: take_cable_away(job, host, drive))
    steps.disconnect(job)
    job.claim("RoCE and NVMe/TCP are two paths of one device: I/O goes on by TCP when the cable "
              f"of the other port is pulled, with at most {pause_s:.1f} s of pause",
              "nvme connect -t rdma and -t tcp, list-subsys, fio verify=crc32c")


# Several namespaces

def cntlid(job: Job) -> int:
    """The number of the host's controller."""
    text = job.quiet(f"nvme id-ctrl {job.controller()} -o json")
    return int(json.loads(text)["cntlid"])


def create_namespace(job: Job, block: int, cntlids: list[int]) -> None:
    """Create a namespace with such blocks and attach it to these controllers."""
    count = NAMESPACE_MIB * MIB // block
    output = job.run(f"nvme create-ns {job.controller()} --nsze={count} --ncap={count} "
                     f"--block-size={block} --nmic=1")
    match = re.search(r"nsid:(\d+)", output)
    if match is None:
        raise EssdError("nvme create-ns did not print the NSID of a new namespace")
    job.run(f"nvme attach-ns {job.controller()} --namespace-id={match[1]} "
            f"--controllers={','.join(map(str, cntlids))}")


def four_namespaces(job: Job) -> None:
    """Replace the namespace by four, for two hosts, and use all of them at once."""
    other = job.at(SECOND_HOST)
    steps.connect(job, 0)
    steps.connect(other, 1)
    cntlids = sorted([cntlid(job), cntlid(other)])     # as a controller list has to be
    job.run(f"nvme delete-ns {job.controller()} --namespace-id=1")
    for block in BLOCKS:
        create_namespace(job, block, cntlids)
    job.say("the drive's event tells both hosts that there are other namespaces")
    for one in (job, other):
        wait_for(f"{one.host} has {len(BLOCKS)} namespaces",
                 lambda one=one: len(one.namespaces()) == len(BLOCKS))  # type: ignore[misc]
        one.run("nvme list")
    steps.run_fio(job, "fio --ioengine=libaio --direct=1 --rw=randwrite --bs=4k --iodepth=8 "
                  "--size=4m --verify=crc32c --verify_fatal=1 --group_reporting "
                  + " ".join(f"--name={device[5:]} --filename={device}"
                             for device in job.namespaces()))
    job.claim("four namespaces that a host has created are used at once",
              "nvme create-ns, attach-ns, list; fio verify=crc32c")


# Two hosts

def block_device(job: Job, nsid: int) -> str:
    """The block device of a namespace; Linux may number devices in another order."""
    script = " ".join(device[5:] for device in job.namespaces())
    found = job.quiet(f"cd /sys/block && for d in {script}; do echo $d $(cat $d/nsid); done")
    for line in found.splitlines():
        device, number = line.split()
        if number == str(nsid):
            return f"/dev/{device}"
    raise EssdError(f"{job.host} has no block device of namespace {nsid}")


def write(job: Job, device: str, may: bool) -> None:
    """Write 16 KiB; EssdError unless that works (`may`) or a reservation forbids it."""
    result = job.result(f"dd if=/dev/zero of={device} bs=4k count=4 oflag=direct "
                        "status=none && echo written", check=False)
    job.show_result(result)
    if (result.status == 0) != may:
        raise EssdError(f"{job.host} {'could not write' if may else 'could write'}, though "
                        f"{'nothing' if may else 'a reservation'} forbids it")
    if not may and "Invalid exchange" not in result.output:
        raise EssdError(f"the write of {job.host} failed, but not because of a reservation "
                        "(EBADE, Invalid exchange)")


def reservation_conflict(job: Job) -> None:
    """One host reserves a namespace; the other one cannot write until it is released."""
    other = job.at(SECOND_HOST)
    devices = {one.host: block_device(one, 1) for one in (job, other)}
    mine, theirs = devices[job.host], devices[other.host]
    for one in (job, other):
        one.run(f"nvme resv-register {devices[one.host]} --nrkey={KEYS[one.host]} --rrega=0")
    write(other, theirs, True)
    job.run(f"nvme resv-acquire {mine} --crkey={KEYS['host']} --rtype={WRITE_EXCLUSIVE} "
            "--racqa=0")
    job.say(f"host holds a Write Exclusive reservation; {SECOND_HOST} may read, not write")
    write(job, mine, True)
    other.run(f"dd if={theirs} of=/dev/null bs=4k count=4 iflag=direct status=none "
              "&& echo read")
    write(other, theirs, False)
    other.run("dmesg | grep -i 'reservation conflict' | tail -n 1")
    output = other.run(f"nvme resv-acquire {theirs} --crkey={KEYS[SECOND_HOST]} "
                       f"--rtype={WRITE_EXCLUSIVE} --racqa=0", check=False)
    if "conflict" not in output.lower():
        raise EssdError(f"{SECOND_HOST} could acquire a reservation that host holds")
    job.run(f"nvme resv-release {mine} --crkey={KEYS['host']} --rtype={WRITE_EXCLUSIVE} "
            "--rrela=0")
    write(other, theirs, True)
    job.claim(f"a reservation of one host keeps {SECOND_HOST} from writing until it is "
              "released", "nvme resv-register, -acquire, -release; dd")
    for one in (other, job):
        steps.disconnect(one)
