# SPDX-License-Identifier: BSD-2-Clause
"""The steps of the demo and of the end-to-end tests, one function for each.

Each step runs real commands in the host guest and raises EssdError if their
output is not as expected.  The target is the drive, or a guest that runs Linux
nvmet; the same steps must pass against both.
"""

import re
import shlex
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from ..base.errors import EssdError
from .config import Config, SERVICE, console_log
from .instance import Instance, Result

MOUNT = "/mnt"
SUMS = "/tmp/essd-sums"
FIO = ("fio --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 "
       "--group_reporting --filename={device} --name={name} {options}")
# The drive answers within a second of power-on, including the host's ARP
# resolution and the polling interval; an nvmet guest has to boot first.
BOOT_TIMEOUT_S = 120
CABLE_OUT_S = 8

ShowResult = Callable[[Result], None]
Step = Callable[["Job"], object]


@dataclass
class Job:
    """A running instance, its target, and the results checked so far."""

    instance: Instance
    target: str                       # "drive" or "peer"
    nqn: str
    addresses: list[str]
    persistent: bool = True           # data survive a power cycle
    host: str = "host"                # the guest that runs the commands
    show_result: ShowResult = lambda result: None   # called after each command
    proven: list[tuple[str, str]] = field(default_factory=list)   # (what, how)

    @classmethod
    def of(cls, instance: Instance,
           show_result: ShowResult = lambda result: None) -> "Job":
        """The job on the instance's only target: the drive, or else the peer."""
        config: Config = instance.config
        return cls.on(instance, (config.targets() or ["drive"])[0], show_result)

    @classmethod
    def on(cls, instance: Instance, target: str,
           show_result: ShowResult = lambda result: None) -> "Job":
        """The job on one of the instance's targets, "drive" or "peer"."""
        config: Config = instance.config
        part = config.peer if target == "peer" else config.drives.get(target)
        if part is None or config.host is None:
            raise EssdError(f"the instance has no host or no {target}: start one that "
                            f"has both with {instance.hint('up')}")
        return cls(instance, target, part.nqn,
                   [link.target_address for link in config.ports_of(target).values()
                    if not link.outside],
                   persistent=target != "peer", show_result=show_result)

    def at(self, host: str) -> "Job":
        """The same job, with another of the instance's hosts that runs the commands."""
        return replace(self, host=host)

    def result(self, command: str, timeout_s: float = 300, check: bool = True) -> Result:
        """Run one command in the host guest without showing it."""
        return self.instance.run(command, part=self.host, timeout_s=timeout_s, check=check)

    def run(self, command: str, timeout_s: float = 300,
            check: bool = True) -> str:
        """Run one command in the host guest and show it; return its output."""
        result = self.result(command, timeout_s, check)
        self.show_result(result)
        return result.output

    def quiet(self, command: str, check: bool = True) -> str:
        """Run one command in the host guest without showing it; return its stdout."""
        return self.instance.run(command, part=self.host, check=check, apart=True).output

    def say(self, event: str, details: str = "") -> None:
        """Show what happens outside the host, or what the job waits for."""
        self.show_result(Result(f"[{event}]", 0, details))

    def claim(self, what: str, how: str) -> None:
        """Record a result that has been checked, and what it was checked with."""
        self.proven.append((what, how))

    # Looking things up

    def namespaces(self) -> list[str]:
        """Block devices of the target's subsystem that the host has now."""
        script = ("for s in /sys/class/nvme-subsystem/*; do "
                  f"[ \"$(cat $s/subsysnqn 2>/dev/null)\" = {shlex.quote(self.nqn)} ]"
                  " && ls $s; done; true")
        return sorted({f"/dev/{word}" for word in self.quiet(script).split()
                       if re.fullmatch(r"nvme\d+n\d+", word)})

    def device(self) -> str:
        """The block device of the namespace; waits up to 30 s for it."""
        deadline = time.monotonic() + 30
        while True:
            found = self.namespaces()
            if len(found) == 1:
                return found[0]
            if time.monotonic() > deadline:
                raise EssdError(f"the host has {found or 'no'} namespaces of "
                                f"{self.nqn}; expected one")
            time.sleep(0.2)

    def controller(self) -> str:
        """The character device of the only controller of the subsystem."""
        script = ("for c in /sys/class/nvme/nvme*; do "
                  f"[ \"$(cat $c/subsysnqn)\" = {shlex.quote(self.nqn)} ]"
                  " && echo ${c##*/}; done; true")
        names = self.quiet(script).split()
        if len(names) != 1:
            raise EssdError(f"the host has the controllers {names} of {self.nqn}; "
                            "expected one")
        return f"/dev/{names[0]}"


def wait_target(job: Job, timeout_s: float = BOOT_TIMEOUT_S) -> float:
    """Wait until every port and the service answer; return the seconds it took."""
    start = time.monotonic()
    for address in job.addresses:
        while "1 received" not in job.quiet(f"ping -c 1 -W 1 {address}", check=False):
            job.instance.check()
            if time.monotonic() - start > timeout_s:
                raise EssdError(f"{address} did not answer a ping within "
                                f"{timeout_s:.0f} s; see "
                                f"{console_log(job.instance.folder, job.target)}")
    while job.result(f"nvme discover -t rdma -a {job.addresses[0]} -s {SERVICE}",
                     check=False).status != 0:
        job.instance.check()
        if time.monotonic() - start > timeout_s:
            raise EssdError(f"no NVMe-oF service answered on {job.addresses[0]} within "
                            f"{timeout_s:.0f} s; see "
                            f"{console_log(job.instance.folder, job.target)}")
        time.sleep(0.2)
    return time.monotonic() - start


def ping(job: Job) -> None:
    for address in job.addresses:
        output = job.run(f"ping -c 3 -i 0.2 {address}")
        if "3 received" not in output:
            raise EssdError(f"{address} did not answer all three pings")
    job.claim("both ports answer", "ping")


def discover(job: Job) -> None:
    for address in job.addresses:
        output = job.run(f"nvme discover -t rdma -a {address} -s {SERVICE}")
        if job.nqn not in output:
            raise EssdError(f"discovery on {address} does not list {job.nqn}")
    job.claim("discovery lists the subsystem on both ports", "nvme discover")


def connect(job: Job, port: int = 0, options: str = "") -> str:
    """Connect through one port; return the namespace's block device."""
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
        raise EssdError(f"nvme id-ctrl does not show the subsystem {job.nqn}")
    job.run(f"nvme id-ns {device}")
    job.run(f"nvme smart-log {job.controller()}")
    job.claim("the host identifies controller and namespace",
              "nvme list, id-ctrl, id-ns, smart-log")


def fio_jobs(block: int, part: int = 1) -> list[tuple[str, str]]:
    """fio's verified workloads; `block` is the namespace's block size in bytes.

    Each writes one `part`-th of its usual size.
    """
    return [
        ("random-4k", f"--rw=randwrite --bs=4k --iodepth=32 --size={16 // part}m"),
        ("sequential-128k", f"--rw=write --bs=128k --iodepth=8 --size={64 // part}m"),
        ("mixed-sizes", "--rw=randwrite --bssplit=4k/40:16k/30:64k/20:256k/10 "
                        f"--iodepth=16 --size={48 // part}m"),
        # With 512-byte blocks, the sizes are not multiples of any path MTU's payload.
        ("unaligned", f"--rw=randwrite --bsrange={block}-{block * 41} "
                      f"--blockalign={block} --iodepth=16 --size={24 // part}m"),
    ]


def fio_summary(output: str) -> str:
    """The lines of fio's report with the result, throughput and errors."""
    wanted = re.compile(r"err=|^\s*(read|write)\s*:|verify|[Ee]rror|bad magic")
    return "\n".join(x for x in output.splitlines() if wanted.search(x))


def run_fio(job: Job, command: str) -> None:
    """Run fio and show its result; EssdError if it has seen an error."""
    result = job.result(command, timeout_s=600)
    show_fio(job, result)
    if "err= 0" not in result.output:
        raise EssdError(f"fio did not end with err= 0: {command}")


def show_fio(job: Job, result: Result) -> None:
    job.show_result(replace(result, output=fio_summary(result.output)))


def fio_verify(job: Job, part: int = 1) -> None:
    device = job.device()
    block = int(job.quiet(f"cat /sys/block/{device[5:]}/queue/logical_block_size"))
    for name, options in fio_jobs(block, part):
        command = FIO.format(device=device, name=name, options=options)
        run_fio(job, command)
    job.claim("data are read back as written: 4K random, 128K sequential, mixed "
              "sizes, unaligned", "fio verify=crc32c")


def file_system(job: Job) -> None:
    """Create a file system with files; later steps compare their checksums."""
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
    # Drop the page cache, so that the files are read from the drive.
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
    """Disconnect, then read the same data through the other port."""
    disconnect(job)
    connect(job, port=1)
    compare_files(job)
    job.claim("the other port leads to the same data", "nvme connect, sha256sum")


def power_cycle(job: Job) -> None:
    """Power the target off and on; a persistent target must have kept the data."""
    disconnect(job)
    job.instance.ask("power-cut", part=job.target)
    job.say(f"{job.target}: power off")
    job.instance.ask("power-on", part=job.target)
    seconds = wait_target(job)
    job.say(f"{job.target}: power on",
            f"both ports and the service answer after {seconds:.1f} s")
    connect(job)
    if job.persistent:
        compare_files(job)
        job.claim("data survive a power cycle", "sha256sum after power off and on")


def carrier(job: Job, port: int) -> bool:
    output = job.run(f"ip -br link show eth{port}")
    return "NO-CARRIER" not in output


def cable_pull(job: Job, seconds_out: float = CABLE_OUT_S) -> None:
    """Pull port 0's cable during verified I/O; the host must reconnect by itself."""
    device = job.device()
    # About 20 s of I/O at a low rate, so that the cable is pulled during it.
    command = FIO.format(device=device, name="cable", options=(
        "--rw=randwrite --bs=4k --iodepth=8 --size=24m --rate_iops=300"))
    with ThreadPoolExecutor(1) as pool:
        fio = pool.submit(job.result, command, timeout_s=900, check=False)
        time.sleep(4)
        if fio.done():
            raise EssdError("fio ended before the cable was pulled: "
                            + fio_summary(fio.result().output))
        job.instance.ask("port", port=0, plugged=False)
        job.say("cable of port 0 pulled")
        try:
            time.sleep(0.5)
            if carrier(job, 0):
                raise EssdError("the cable is pulled, but the host reports a carrier")
            time.sleep(max(0, seconds_out - 0.5))
        finally:
            job.instance.ask("port", port=0, plugged=True)
        job.say(f"cable plugged again after {seconds_out:.0f} s")
        result = fio.result()
    show_fio(job, result)
    if result.status != 0 or "err= 0" not in result.output:
        raise EssdError("fio failed after the cable was pulled and plugged in again: "
                        f"status {result.status}")
    job.run("dmesg | grep -i 'nvme.*\\(reconnect\\|recover\\|keep\\)' | tail -n 6")
    if not carrier(job, 0):
        raise EssdError("the cable is plugged in, but the host reports no carrier")
    output = job.run("nvme list")
    shown = re.findall(r"^/dev/nvme\S+", output, re.M)
    if shown != [device]:
        raise EssdError(f"nvme list shows {shown}; expected only {device}")
    job.claim(f"I/O continues after a cable was out for {seconds_out:.0f} s",
              "NO-CARRIER, reconnect, fio verify without an error")


def datasheet_commands(job: Job) -> None:
    """Run the data sheet's commands verbatim; they use the NQN "testsubsystem"."""
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
    run_fio(job, command)
    job.run("nvme disconnect -n testsubsystem")
    job.run("modprobe -r nvme_rdma && modprobe nvme_rdma")
    job.claim("the commands of the data sheet work, also with register_always=0",
              "--nqn testsubsystem")


# Bash's own words as far as possible: each program that an emulated host starts
# costs 0.1 s.
CLEAN_HOST = (f'[[ $(</proc/mounts) == *" {MOUNT} "* ]] && umount {MOUNT}; '
              '[[ $(echo /sys/class/nvme/nvme*) == *"*" ]] || nvme disconnect-all; true')


def clean_host(job: Job) -> None:
    """Unmount and disconnect everything in the host; errors are ignored."""
    job.quiet(CLEAN_HOST, check=False)


def settle(job: Job) -> None:
    """Clean the host; return when every port and the service answer it."""
    pings = " && ".join(f"ping -c 1 -W 1 {address}" for address in job.addresses)
    result = job.result(f"{CLEAN_HOST}; {pings} && nvme discover -t rdma "
                        f"-a {job.addresses[0]} -s {SERVICE}", check=False)
    if result.status != 0:
        wait_target(job)


def forget_target(job: Job) -> None:
    """Disconnect from a target that is gone, after the host has noticed that.

    Before that, nvme disconnect would wait a minute for replies to its commands.
    """
    deadline = time.monotonic() + 60
    while "live" in job.quiet("cat /sys/class/nvme/nvme*/state 2>/dev/null; true"):
        job.instance.check()
        if time.monotonic() > deadline:
            raise EssdError("the host's controllers are still live 60 s after their "
                            "target has gone")
        time.sleep(0.2)
    clean_host(job)
