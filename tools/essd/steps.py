# SPDX-License-Identifier: BSD-2-Clause
"""The job end to end, one function a step: what `demo` shows and e2e asserts.

Each step runs real commands in the host guest and raises EssdError when what
they say is not as it has to be.  The target is the drive, or a guest that runs
Linux nvmet: the same steps have to pass against either.
"""

import re
import shlex
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .config import SERVICE, Config
from .errors import EssdError
from .instance import Instance, Result

MOUNT = "/mnt"
SUMS = "/tmp/essd-sums"
FIO = ("fio --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 "
       "--group_reporting --filename={device} --name={name} {options}")
# A drive that is powered on answers within a second, the guest's ARP and our
# own polling included; a target guest has to boot first.
BOOT_TIMEOUT_S = 120
CABLE_OUT_S = 8

Tell = Callable[[Result], None]
Step = Callable[["Job"], object]


@dataclass
class Job:
    """A running instance, its target, and what has been shown so far."""

    instance: Instance
    target: str                       # "drive" or "peer"
    nqn: str
    addresses: list[str]
    persistent: bool = True           # data survive a power cycle
    tell: Tell = lambda result: None
    proven: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, instance: Instance, tell: Tell = lambda result: None) -> "Job":
        config: Config = instance.config
        target = "drive" if config.drive else "peer"
        return cls.on(instance, target, tell)

    @classmethod
    def on(cls, instance: Instance, target: str,
           tell: Tell = lambda result: None) -> "Job":
        """The job on one of an instance's targets, "drive" or "peer"."""
        config: Config = instance.config
        part = config.drive if target == "drive" else config.peer
        if part is None or config.host is None:
            raise EssdError("this needs a host and a target: ./essd up")
        return cls(instance, target, part.nqn,
                   [config.link(n).target_address for n in part.links],
                   persistent=target == "drive", tell=tell)

    def run(self, command: str, timeout_s: float = 300,
            check: bool = True) -> str:
        """One command in the host guest, shown to whoever watches."""
        result = self.instance.run(command, timeout_s=timeout_s, check=check)
        self.tell(result)
        return result.output

    def quiet(self, command: str, check: bool = True) -> str:
        return self.instance.run(command, check=check).output

    def claim(self, what: str, how: str) -> None:
        self.proven.append((what, how))

    # Looking things up

    def namespaces(self) -> list[str]:
        """Block devices of our subsystem, as the kernel has them now."""
        script = ("for s in /sys/class/nvme-subsystem/*; do "
                  f"[ \"$(cat $s/subsysnqn 2>/dev/null)\" = {shlex.quote(self.nqn)} ]"
                  " && ls $s; done; true")
        return sorted({f"/dev/{word}" for word in self.quiet(script).split()
                       if re.fullmatch(r"nvme\d+n\d+", word)})

    def device(self) -> str:
        deadline = time.monotonic() + 30
        while True:
            found = self.namespaces()
            if len(found) == 1:
                return found[0]
            if time.monotonic() > deadline:
                raise EssdError(f"expected one namespace of {self.nqn}, "
                                f"the host has {found or 'none'}")
            time.sleep(0.2)

    def controller(self) -> str:
        """The character device of our (only) controller."""
        script = ("for c in /sys/class/nvme/nvme*; do "
                  f"[ \"$(cat $c/subsysnqn)\" = {shlex.quote(self.nqn)} ]"
                  " && echo ${c##*/}; done; true")
        names = self.quiet(script).split()
        if len(names) != 1:
            raise EssdError(f"expected one controller, the host has {names}")
        return f"/dev/{names[0]}"


def wait_target(job: Job, timeout_s: float = BOOT_TIMEOUT_S) -> float:
    """Wait until every port answers; seconds that it took."""
    start = time.monotonic()
    for address in job.addresses:
        while "1 received" not in job.quiet(f"ping -c 1 -W 1 {address}", check=False):
            job.instance.check()
            if time.monotonic() - start > timeout_s:
                raise EssdError(f"{address} does not answer a ping; see "
                                f"{job.instance.folder}/{job.target}.console")
    while job.instance.run(f"nvme discover -t rdma -a {job.addresses[0]} "
                           f"-s {SERVICE}", check=False).status != 0:
        job.instance.check()
        if time.monotonic() - start > timeout_s:
            raise EssdError(f"no NVMe-oF service on {job.addresses[0]}; see "
                            f"{job.instance.folder}/{job.target}.console")
        time.sleep(0.2)
    return time.monotonic() - start


def ping(job: Job) -> None:
    for address in job.addresses:
        output = job.run(f"ping -c 3 -i 0.2 {address}")
        if "3 received" not in output:
            raise EssdError(f"{address}: not every ping was answered")
    job.claim("both ports answer", "ping")


def discover(job: Job) -> None:
    for address in job.addresses:
        output = job.run(f"nvme discover -t rdma -a {address} -s {SERVICE}")
        if job.nqn not in output:
            raise EssdError(f"discovery on {address} does not name {job.nqn}")
    job.claim("discovery names the subsystem on both ports", "nvme discover")


def connect(job: Job, port: int = 0, options: str = "") -> str:
    """Connect through one port; the namespace's block device."""
    job.run(f"nvme connect -t rdma -a {job.addresses[port]} -s {SERVICE} "
            f"-n {job.nqn}{' ' + options if options else ''}")
    return job.device()


def disconnect(job: Job) -> None:
    job.run(f"nvme disconnect -n {job.nqn}")
    left = job.namespaces()
    if left:
        raise EssdError(f"after nvme disconnect the host still has {left}")


def identify(job: Job) -> None:
    device = job.device()
    output = job.run("nvme list")
    if device not in output:
        raise EssdError(f"nvme list does not show {device}")
    output = job.run(f"nvme id-ctrl {job.controller()}")
    if job.nqn not in output:
        raise EssdError("nvme id-ctrl names another subsystem")
    job.run(f"nvme id-ns {device}")
    job.run(f"nvme smart-log {job.controller()}")
    job.claim("the host identifies controller and namespace",
              "nvme list, id-ctrl, id-ns, smart-log")


def fio_jobs(block: int) -> list[tuple[str, str]]:
    """The verified workloads; block is the namespace's block size in bytes."""
    return [
        ("random-4k", "--rw=randwrite --bs=4k --iodepth=32 --size=16m"),
        ("sequential-128k", "--rw=write --bs=128k --iodepth=8 --size=64m"),
        ("mixed-sizes", "--rw=randwrite --bssplit=4k/40:16k/30:64k/20:256k/10 "
                        "--iodepth=16 --size=48m"),
        # No multiple of any path MTU's payload when blocks are 512 bytes.
        ("unaligned", f"--rw=randwrite --bsrange={block}-{block * 41} "
                      f"--blockalign={block} --iodepth=16 --size=24m"),
    ]


def fio_summary(output: str) -> str:
    """The lines of fio's report that say what was done and how it ended."""
    wanted = re.compile(r"err=|^\s*(read|write)\s*:|verify|[Ee]rror|bad magic")
    return "\n".join(x for x in output.splitlines() if wanted.search(x))


def fio_verify(job: Job) -> None:
    device = job.device()
    block = int(job.quiet(f"cat /sys/block/{device[5:]}/queue/logical_block_size"))
    for name, options in fio_jobs(block):
        command = FIO.format(device=device, name=name, options=options)
        result = job.instance.run(command, timeout_s=600)
        job.tell(Result(result.command, result.status, fio_summary(result.output)))
        if "err= 0" not in result.output:
            raise EssdError(f"fio job {name} did not end with err= 0")
    job.claim("data come back as written: 4K random, 128K sequential, mixed, "
              "unaligned", "fio verify=crc32c")


def file_system(job: Job) -> None:
    """mkfs, mount, copy, sync; the sums stay in the guest for later."""
    device = job.device()
    job.run(f"mkfs.ext4 -q -F {device}", timeout_s=600)
    job.run(f"mount {device} {MOUNT}")
    job.run(f"cp -a /usr/bin /usr/sbin {MOUNT}/", timeout_s=600)
    job.run("sync")
    job.quiet(f"cd {MOUNT} && find bin sbin -type f -print0 | sort -z | "
              f"xargs -0 sha256sum > {SUMS}")
    files = len(job.quiet(f"cat {SUMS}").splitlines())
    compare_mounted(job)
    job.run(f"umount {MOUNT}")
    job.claim(f"a file system holds {files} files", "mkfs.ext4, cp, sync, sha256sum")


def compare_mounted(job: Job) -> None:
    # From the drive, not from the host's memory.
    job.quiet("echo 3 > /proc/sys/vm/drop_caches")
    job.run(f"cd {MOUNT} && sha256sum --quiet -c {SUMS} && "
            f"echo $(wc -l < {SUMS}) files are the same")


def compare_files(job: Job) -> None:
    device = job.device()
    job.run(f"mount -o ro {device} {MOUNT}")
    try:
        compare_mounted(job)
    finally:
        job.run(f"umount {MOUNT}")


def other_port(job: Job) -> None:
    """Disconnect, and read the same data through the other port."""
    disconnect(job)
    connect(job, port=1)
    compare_files(job)
    job.claim("the other port leads to the same data", "nvme connect, sha256sum")


def power_cycle(job: Job) -> None:
    """Power off and on with the host disconnected; the data must be there."""
    disconnect(job)
    job.instance.ask("power-cut", part=job.target)
    job.tell(Result(f"[{job.target}: power off]", 0, ""))
    job.instance.ask("power-on", part=job.target)
    seconds = wait_target(job)
    job.tell(Result(f"[{job.target}: power on]", 0,
                    f"both ports and the service answer after {seconds:.1f} s"))
    connect(job)
    if job.persistent:
        compare_files(job)
        job.claim("data survive a power cycle", "sha256sum after power off and on")


def carrier(job: Job, port: int) -> bool:
    output = job.run(f"ip -br link show eth{port}")
    return "NO-CARRIER" not in output


def cable_pull(job: Job, seconds_out: float = CABLE_OUT_S) -> None:
    """Pull port 0's cable under verified I/O; the host must recover alone."""
    device = job.device()
    # Some 20 s of I/O at a modest rate, so that the pull falls into it.
    command = FIO.format(device=device, name="cable", options=(
        "--rw=randwrite --bs=4k --iodepth=8 --size=24m --rate_iops=300"))
    with ThreadPoolExecutor(1) as pool:
        fio = pool.submit(job.instance.run, command, timeout_s=900, check=False)
        time.sleep(4)
        if fio.done():
            raise EssdError("fio ended before the cable was pulled: "
                            + fio_summary(fio.result().output))
        job.instance.ask("port", port=0, plugged=False)
        job.tell(Result("[cable of port 0 pulled]", 0, ""))
        try:
            time.sleep(0.5)
            if carrier(job, 0):
                raise EssdError("the cable is out and the host sees a carrier")
            time.sleep(max(0, seconds_out - 0.5))
        finally:
            job.instance.ask("port", port=0, plugged=True)
        job.tell(Result(f"[cable plugged again after {seconds_out:.0f} s]", 0, ""))
        result = fio.result()
    job.tell(Result(command, result.status, fio_summary(result.output)))
    if result.status != 0 or "err= 0" not in result.output:
        raise EssdError(f"fio did not survive the cable: status {result.status}")
    job.run("dmesg | grep -i 'nvme.*\\(reconnect\\|recover\\|keep\\)' | tail -n 6")
    if not carrier(job, 0):
        raise EssdError("the cable is plugged and the host sees no carrier")
    output = job.run("nvme list")
    shown = re.findall(r"^/dev/nvme\S+", output, re.M)
    if shown != [device]:
        raise EssdError(f"nvme list shows {shown}, expected {device} alone")
    job.claim(f"a cable out for {seconds_out:.0f} s is survived",
              "NO-CARRIER, reconnect, fio verify without an error")


def datasheet_commands(job: Job) -> None:
    """The data sheet's own commands, word for word (NQN "testsubsystem")."""
    address = job.addresses[0]
    job.run("modprobe -r nvme_rdma")
    for command in ("modprobe nvme_rdma register_always=0",
                    f"nvme discover -t rdma -a {address} -s {SERVICE}",
                    f"nvme connect -t rdma -a {address} -s {SERVICE} "
                    "-n testsubsystem",
                    "nvme list"):
        job.run(command)
    device = job.device()
    command = FIO.format(device=device, name="register_always-0", options=(
        "--rw=randwrite --bs=16k --iodepth=8 --size=8m"))
    result = job.instance.run(command)
    job.tell(Result(result.command, result.status, fio_summary(result.output)))
    job.run("nvme disconnect -n testsubsystem")
    job.run("modprobe -r nvme_rdma && modprobe nvme_rdma")
    job.claim("the data sheet's own commands work, register_always=0 too",
              "--nqn testsubsystem")


def clean_host(job: Job) -> None:
    """Leave the host with nothing connected, whatever happened before."""
    job.quiet(f"umount {MOUNT} 2>/dev/null; nvme disconnect-all; true", check=False)


def forget_target(job: Job) -> None:
    """Disconnect from a target that is gone, as soon as the host knows.

    One that does not know yet waits a minute for the answer to its good-bye.
    """
    deadline = time.monotonic() + 60
    while "live" in job.quiet("cat /sys/class/nvme/nvme*/state 2>/dev/null; true"):
        job.instance.check()
        if time.monotonic() > deadline:
            raise EssdError("the host does not notice that its target is gone")
        time.sleep(0.2)
    clean_host(job)


# The steps of one sitting, in order, each with what it is called.
JOB: list[tuple[str, Step]] = [
    ("Both ports answer", ping),
    ("Discovery", discover),
    ("Connect through port 0", connect),
    ("What the host sees", identify),
    ("fio with verification", fio_verify),
    ("A file system", file_system),
    ("The same data through port 1", other_port),
    ("Power off and on", power_cycle),
    ("Pull the cable", cable_pull),
    ("Disconnect", disconnect),
]
