# SPDX-License-Identifier: BSD-2-Clause
"""A drive with a native hart and a Linux host (docs/hardware/native-hart.md)."""

import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from essd.base.paths import TOP
from essd.instance import steps
from essd.instance.steps import Job
from test_save_load import verified_io

pytestmark = [pytest.mark.drive, pytest.mark.uml]

SERVES = "nvme-of: listening on 4420"
PATTERN = "seq -f %015g 65536"      # 1 MiB


@pytest.fixture
def job(booted: Callable[..., Job]) -> Iterator[Job]:
    job = booted(hart="native")
    steps.connect(job)
    yield job


def qmp(job: Job, command: str) -> None:
    job.instance.ask("qmp", part=job.target, execute=command)


def essd(job: Job, *words: str) -> str:
    """What a command says that is refused."""
    done = subprocess.run([TOP / "essd", *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout
    return done.stderr.replace("\n", " ")


def test_data_survive_stops_resets_and_the_end_of_the_power(job: Job) -> None:
    with verified_io(job) as fio:
        for _ in range(3):
            assert not fio.done()
            qmp(job, "stop")
            time.sleep(0.3)
            qmp(job, "cont")
            time.sleep(0.3)
    job.run(f"{PATTERN} | dd of={job.device()} bs=64k oflag=direct iflag=fullblock "
            "conv=fsync status=none")
    for restart in ("reset", "power-cycle"):
        if restart == "reset":
            job.instance.ask("reset", part=job.target)
        else:
            job.instance.ask("power-cut", part=job.target)
            job.instance.ask("power-on", part=job.target)
        steps.forget_target(job)
        steps.wait_target(job)
        steps.connect(job)
        job.run(f"{PATTERN} | cmp - {job.device()} -n 1048576")
    console = (job.instance.folder / "drive/console.log").read_text(errors="replace")
    assert console.count(SERVES) == 3
    assert "boot:" not in console and "panic" not in console


def test_what_a_native_hart_cannot_do_is_refused_in_words(job: Job) -> None:
    name = job.instance.name
    how = "start the drive without --hart native"
    for words, why in (
            (("save", "--name", name), "the state of a native hart cannot be saved"),
            (("save", "first", "--name", name), "the state of a native hart cannot be saved"),
            (("gdb", "--name", name), "essd gdb debugs RISC-V code"),
            (("flash", "--name", name), "does not run the firmware in the drive's flash"),
            (("firmware", "update", "--name", name),
             "does not run the firmware in the drive's flash"),
            (("reset", "--halt", "--name", name), "a native hart has no reset vector")):
        said = essd(job, *words)
        assert why in said and how in said, said
    assert "--halt does not go with --hart native" in essd(
        job, "up", "--hart", "native", "--halt", "--name", "not-started")
    controller = f"/dev/{job.device().removeprefix('/dev/').split('n1')[0]}"
    job.run("dd if=/dev/zero of=/tmp/image bs=4k count=1 status=none")
    result = job.result(f"nvme fw-download {controller} --fw=/tmp/image", check=False)
    assert result.status != 0 and "Invalid Command Opcode" in result.output, result.output
    assert job.instance.status()["parts"][job.target]["state"] == "running"
