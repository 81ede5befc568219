# SPDX-License-Identifier: BSD-2-Clause
"""A debugger halts the drive and its host, and their connection survives."""

import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from essd.base import interrupts
from essd.base.paths import TOP
from essd.debug import debugger
from essd.instance import steps
from essd.instance.steps import Job

KATO_S = 2
HALT_S = 8          # more than KATO, and than the margins that both sides add to it
IO = "--rw=randrw --bs=4k --iodepth=4 --size=8m --rate_iops=100"


def gdb(job: Job, *commands: str) -> str:
    """Run gdb commands on the drive; return gdb's output."""
    words = debugger.command(job.instance, None, [
        "-batch", *(word for text in commands for word in ("-ex", text))])
    done = subprocess.run(words, check=False, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0, done.stdout
    return done.stdout


def uptime_s(job: Job) -> float:
    return float(job.quiet("cat /proc/uptime").split()[0])


def rows(output: str, first: str) -> list[str]:
    """The rows of the table whose heading begins with this word."""
    found: list[str] = []
    for line in output.splitlines():
        if line.startswith(first + " "):
            found = [line]
        elif found and re.match(r"(0x)?[0-9a-f]+  ", line):
            found.append(line)
        elif found:
            break
    return found[1:]


@pytest.mark.drive
def test_a_connected_host_survives_a_long_halt_at_a_breakpoint(job: Job) -> None:
    """The breakpoint is in a function that handles every command of the host."""
    steps.connect(job, options=f"-k {KATO_S}")
    hostnqn = job.quiet("cat /etc/nvme/hostnqn").strip()
    # The drive's QPNs, as the host reports them.
    qpns = {int(x) for x in re.findall(
        r"rqpn (\d+)", job.quiet("rdma resource show qp | grep 'type RC'"))}
    log = job.instance.folder / "supervisor.log"
    said_before = log.read_text()
    command = steps.FIO.format(device=job.device(), name="halted", options=IO)
    with ThreadPoolExecutor(1) as pool:
        fio = pool.submit(job.instance.run, command, timeout_s=300, check=False)
        time.sleep(3)
        assert not fio.done(), fio.result().output
        before_s = uptime_s(job)
        started = time.monotonic()
        output = gdb(job, "break nvmf_capsule", "continue", "bt 3", "essd-controllers",
                     "essd-qps", "essd-requests", f"shell sleep {HALT_S}", "delete", "detach")
        guest_s = uptime_s(job) - before_s
        took_s = time.monotonic() - started
        # The guest's clock stood still as long as the drive's.
        assert guest_s < took_s - HALT_S + 1, (guest_s, took_s)
        assert not fio.done(), fio.result().output
        result = fio.result()
    assert result.status == 0 and "err= 0" in result.output, result.output
    assert re.search(r"^Breakpoint 1, .*nvmf_capsule \(", output, re.M), output
    # gdb shows the line of the source, so it has the ELF of the running image.
    assert re.search(r"nvmf_capsule \(.*nvmeof/target/[\w/]+\.c:\d+", output, re.S), output
    (controller,) = rows(output, "index")
    assert controller.endswith(hostnqn) and "ready" in controller, output
    assert f" {KATO_S}000 " in controller
    shown = {int(row.split()[0], 16) for row in rows(output, "QPN")
             if " live " in row}
    assert qpns and shown == qpns, (qpns, output)
    # Every Linux host leaves at least an Asynchronous Event Request in the drive.
    assert any(re.search(r" 0x0c .* aer ", row) for row in rows(output, "request")), output
    # The host has not noticed anything: this is the same association.
    name = job.controller().removeprefix("/dev/")
    assert job.quiet(f"cat /sys/class/nvme/{name}/state").strip() == "live"
    assert "keep-alive" not in job.quiet("dmesg").lower()
    halts = log.read_text().removeprefix(said_before)
    assert "host halted" in halts and "host continued" in halts, halts
    parts = job.instance.status()["parts"]
    assert not parts["drive"]["halted"] and not parts["host"]["halted"]
    steps.clean_host(job)


@pytest.mark.drive
@pytest.mark.parametrize("victim", ["essd", "gdb"])
def test_a_gdb_that_is_ended_leaves_no_breakpoint_and_a_second_gdb_is_refused(
        job: Job, victim: str) -> None:
    command = [str(TOP / "essd"), "gdb", "--name", job.instance.name, "--", "-batch"]
    address = job.instance.config.links[0].target_address
    with subprocess.Popen([*command, "-ex", "break nvmf_capsule", "-ex", "continue"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Breakpoint 1 at" in line:
                break
        second = subprocess.run([*command, "-ex", "detach"], capture_output=True,
                                text=True, check=False, timeout=60)
        assert second.returncode == 1 and "another gdb is attached" in second.stderr
        if victim == "essd":
            process.terminate()
        else:
            (gdb_pid,) = interrupts.children(process.pid)
            os.kill(gdb_pid, signal.SIGTERM)
        output = process.communicate(timeout=60)[0]
    job.instance.run(f"nvme discover -t rdma -a {address} -s 4420", timeout_s=60)
    parts = job.instance.status()["parts"]
    assert not parts["drive"]["halted"] and not parts["host"]["halted"], output
    gdb(job, "detach")
    assert not debugger.is_attached(job.instance)
