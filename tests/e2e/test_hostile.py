# SPDX-License-Identifier: BSD-2-Clause
"""A stock host works for ten minutes beside one that attacks the drive.

The stock host is on port 0: one fio verifies what it writes, and again and again the
host removes the other one's reservation key and looks for its own errors in the error
log.  The attacker is the conformance suite's test robust.hostile.real on port 1, repeated
with other seeds.  ESSD_HOSTILE_SEED is the first of them; a failure prints its own.
"""

import json
import os
import re
import secrets
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_namespaces import wait_devices
from watching import Standstill

from essd.build import native_build
from essd.conform import conform
from essd.debug import crash
from essd.drive import mgmt
from essd.instance import steps
from essd.instance.instance import Result
from essd.instance.steps import Job
from essd.machine.outside import Outside

RUN_S = int(os.environ.get("ESSD_HOSTILE_S", "600"))
pytestmark = [pytest.mark.drive, pytest.mark.long, pytest.mark.timeout(RUN_S + 900)]

LIMIT_S = 10            # the drive's limit for peers that do not answer, in its own time
ATTACK_S = 240          # one run of the attacks, on a busy computer
# Both names are those of tests/conformance/chapters/robust_hostile.c.
CLAIMED_NQN = "nqn.2026-01.net.example:conform-claimed"
PORTS = ("10.0.0.1/24", "10.0.1.1/24")
ATTACKED = "10.0.1.1"
TEST = "robust.hostile.real"
ATTACKED_NSID = 2       # the good host of the attacking program has it
KEY, OTHER_KEY = 0x600d, 0xbad
REGISTRANTS, PREEMPT_AND_ABORT = 3, 2
NSID = 1                # STOCK_NSID of the attacking program
FIO = ("fio --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --name=beside "
       "--filename={device} --rw=randwrite --bs=4k --iodepth=4 --size=16m "
       f"--verify_backlog=64 --time_based --runtime={RUN_S} --output-format=json "
       "--output=/tmp/fio.json")
CONFLICT = "conflict"
# The kernel's own times of a command: a busy host needs seconds to start a program.
TRACING = "/sys/kernel/tracing"
RESERVATION_ACQUIRE = 0x11
TRACE = (f"mount -t tracefs none {TRACING}; cd {TRACING}/events/nvme && "
         f"echo 'opcode == {RESERVATION_ACQUIRE}' > nvme_setup_cmd/filter && "
         "echo 1 > nvme_setup_cmd/enable && echo 1 > nvme_complete_rq/enable")
TRACED = re.compile(r" ([0-9.]+): (nvme_\w+): .*(qid=\d+, cmdid=\d+)")


def device_of(job: Job) -> str:
    """The stock host's namespace.  Linux numbers devices in the order in which it finds them."""
    devices = wait_devices(job, 2)
    return next(device for device in devices
                if int(job.quiet(f"cat /sys/block/{device[5:]}/nsid")) == NSID)


def reserve(job: Job, device: str) -> None:
    """The stock host reserves its namespace; other registrants may write, too."""
    job.run(f"nvme resv-register {device} --nrkey={KEY} --rrega=0")
    job.run(f"nvme resv-acquire {device} --crkey={KEY} --rtype={REGISTRANTS} --racqa=0")


def traced_time(trace: str) -> float:
    """From the first time that the host has sent the command until its completion."""
    found = [(float(at), event, name) for at, event, name in TRACED.findall(trace)]
    sent = [(at, name) for at, event, name in found if event == "nvme_setup_cmd"]
    ended = [at for at, event, name in found
             if event == "nvme_complete_rq" and name == sent[-1][1]]
    return ended[-1] - sent[0][0]


def preempt(job: Job, device: str, still: Standstill) -> bool:
    """Remove the attacker's key.  @return whether it was registered"""
    before = still.seconds
    done = job.instance.run(
        f"echo > {TRACING}/trace; "
        f"nvme resv-acquire {device} --crkey={KEY} --prkey={OTHER_KEY} "
        f"--rtype={REGISTRANTS} --racqa={PREEMPT_AND_ABORT}; status=$?; "
        f"grep -o ' [0-9.]*: nvme_.*' {TRACING}/trace; exit $status",
        timeout_s=120, check=False)
    assert done.status == 0 or CONFLICT in done.output.lower(), done.output
    took = traced_time(done.output)
    stood = still.seconds - before
    assert took < LIMIT_S + 2 + stood, \
        f"Preempt and Abort took {took:.1f} s; the drive stood still for {stood:.1f} s"
    return done.status == 0


def cause_error(job: Job, device: str, lba: int) -> None:
    done = job.instance.run(f"nvme read {device} -s {lba} -c 0 -z 512 > /dev/null",
                            check=False)
    assert done.status != 0


def logged_lbas(job: Job) -> list[int]:
    text = job.quiet("nvme error-log /dev/nvme0 -e 64 -o json")
    return [int(entry["lba"]) for entry in json.loads(text)["errors"]]


@contextmanager
def verified(job: Job, device: str, still: Standstill) -> Iterator["Future[Result]"]:
    """fio in the background; it must end without an error, and never stall."""
    with ThreadPoolExecutor(1) as pool:
        fio = pool.submit(job.instance.run, FIO.format(device=device),
                          timeout_s=RUN_S + 300, check=False)
        yield fio
        result = fio.result()
    assert result.status == 0, result.output
    found = json.loads(job.quiet("cat /tmp/fio.json"))["jobs"][0]
    assert found["error"] == 0
    slowest = {kind: found[kind]["clat_ns"]["max"] / 1e9 for kind in ("read", "write")}
    print(f"fio: {found['read']['total_ios']} reads, {found['write']['total_ios']} writes, "
          f"slowest {slowest['read']:.2f} s and {slowest['write']:.2f} s")
    print(f"the drive stood still for {still.seconds:.1f} s")
    assert max(slowest.values()) < LIMIT_S + still.seconds


def attack(program: Path, words: list[str], seed: int) -> None:
    """Run all attacks in the order of the seed."""
    done = subprocess.run(
        [str(program), *words, "--seed", str(seed), "--only", TEST],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=ATTACK_S, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stdout[-4000:]}"


def test_a_stock_host_works_beside_an_attacker(booted: Callable[..., Job]) -> None:
    program = native_build.native_program(conform.LINK_PRESET, conform.PROGRAM,
                                     "the conformance suite")
    seed = int(os.environ.get("ESSD_HOSTILE_SEED", secrets.randbelow(1 << 30)))
    print(f"ESSD_HOSTILE_SEED={seed}")
    with tempfile.TemporaryDirectory(prefix="essd-") as folder:
        wire = Path(folder) / "port1"
        job = booted(size="256M", namespaces="2x64M", ports=PORTS,
                     outside=(None, Outside("listen", str(wire))))
        secret = job.quiet(f"nvme gen-dhchap-key -m 1 -n {CLAIMED_NQN}").split()[-1]
        mgmt.ask(job.instance, "host-set", nqn=CLAIMED_NQN, secret=secret)
        job.run(f"nvme connect -t rdma -a {job.addresses[0]} -s {steps.SERVICE} "
                f"-n {job.nqn} -i 2")
        device = device_of(job)
        reserve(job, device)
        job.run(TRACE)
        words = ["--socket", str(wire), "--target", ATTACKED, "--nqn", job.nqn,
                 "--nsid", str(ATTACKED_NSID)]
        size = int(job.quiet(f"blockdev --getsz {device}"))
        runs = preempted = 0
        with Standstill(job.instance) as still, verified(job, device, still) as fio, \
                ThreadPoolExecutor(1) as pool:
            while not fio.done():
                attacker = pool.submit(attack, program, words, seed + runs)
                lba = size + 1 + runs
                cause_error(job, device, lba)
                while not attacker.done():
                    preempted += preempt(job, device, still)
                    time.sleep(1)
                attacker.result()
                assert lba in logged_lbas(job)
                runs += 1
        print(f"{runs} runs of the attacks; {preempted} keys preempted")
        assert preempted != 0
        assert not crash.in_drive(job.instance)
        assert job.instance.status()["parts"]["drive"]["restarts"] == []
        assert "error recovery" not in job.quiet("dmesg")
        job.instance.check()
