# SPDX-License-Identifier: BSD-2-Clause
"""A drive with NAND flash (docs/nand.md), used, filled and broken by a Linux host."""

import mmap
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sanitizing import DONE, FAILED, wait_sanitize
from test_namespaces import wait_devices

from essd.api import Drive
from essd.base import paths
from essd.demo import nand_steps
from essd.instance import steps
from essd.instance.steps import Job
from essd.storage import media, nand, nand_look

pytestmark = [pytest.mark.drive, pytest.mark.uml]
MIB = 1 << 20
# The smallest array there is: two dies, so it has no parity, with one bit in a cell.
SMALL = "100M,channels=1,profile=slc"


@pytest.fixture
def connect_nand(booted: Callable[..., Job]) -> Iterator[Callable[[str], Job]]:
    """Return a function that starts a drive with this array and connects to it."""
    def start(array: str) -> Job:
        job = booted(nand=array, size=None)
        steps.connect(job)
        return job
    yield start


def test_the_default_drive_has_flash_and_exactly_the_capacity_that_was_asked_for(
        connected: Job, pytestconfig: pytest.Config) -> None:
    array = connected.instance.config.drives[connected.target].nand
    asked = media.parse_size(str(pytestconfig.getoption("--essd-size")))
    assert array is not None and array.capacity == asked
    assert size_of(connected) == asked


def cut_power(job: Job) -> None:
    """Cut the power under a connected host, turn it on and connect again."""
    cut_power_and(job, lambda: True)


def cut_power_and(job: Job, is_true: Callable[[], bool]) -> None:
    """Cut the power, check what must be true while it is off, and connect again."""
    job.instance.ask("power-cut")
    assert is_true()
    steps.forget_target(job)
    job.instance.ask("power-on")
    steps.wait_target(job)
    steps.connect(job)


def size_of(job: Job) -> int:
    return int(job.quiet(f"blockdev --getsize64 {job.device()}"))


def fio(job: Job, seed: int, options: str) -> None:
    """Write or verify the whole namespace in an order and with contents of this seed.

    fio's headers hold the seed, so older contents are an error, too.
    """
    steps.run_fio(job, steps.FIO.format(device=job.device(), name=f"pass-{seed}", options=(
        f"--rw=randwrite --bs=4k --iodepth=32 --size=100% --randseed={seed} {options}")))


def overwrite(job: Job, passes: int) -> None:
    """Overwrite the namespace; after each pass, trim a part, cut the power and verify."""
    trimmed = 8 * MIB
    last = size_of(job) - trimmed
    limit = f"--size={last} "
    for seed in range(1, passes + 1):
        device = job.device()
        steps.run_fio(job, f"fio --name=tail --filename={device} --direct=1 --rw=write "
                           f"--bs=128k --ioengine=libaio --iodepth=4 --offset={last}")
        fio(job, seed, limit + "--do_verify=0 --end_fsync=1")
        job.run(f"blkdiscard --offset {last} --length {trimmed} {device}")
        job.run(f"nvme flush {device}")
        cut_power(job)
        fio(job, seed, limit + "--verify_only")
        zeroes = job.quiet(f"dd if={job.device()} bs=1M iflag=direct,skip_bytes skip={last} "
                           "status=none | tr -d '\\0' | wc -c")
        assert int(zeroes) == 0, "trimmed blocks have old contents after a power cut"


def test_a_full_drive_is_overwritten_trimmed_and_cut_without_a_wrong_byte(
        connect_nand: Callable[[str], Job]) -> None:
    job = connect_nand(SMALL)
    overwrite(job, 2)
    lines = nand_steps.ocp_smart(job)
    written = nand_steps.smart(job)["data_units_written"] * nand_steps.UNIT_BYTES
    programmed = nand_steps.number_of(lines, nand_steps.OCP_LINES[0])
    assert programmed > written, lines
    assert nand_steps.smart(job)["media_errors"] == 0
    age(job)


def age(job: Job) -> None:
    """Add erasures while the power is off, twice: SMART counts them like those of the drive."""
    erasures = 10_000       # The part is rated for 50,000.
    for times in (1, 2):
        cut_power_and(job, lambda: nand_look.age(
            job.instance.name, job.target, "--erasures", str(erasures)) is None)
        assert 20 * times <= nand_steps.smart(job)["percent_used"] <= 20 * times + 1
        lines = job.quiet(f"nvme ocp smart-add-log {job.controller()}")
        assert nand_steps.number_of(lines, "Min User data erase counts") >= erasures * times
        assert nand_steps.number_of(lines, "Max User data erase counts") < erasures * times + 1000


@pytest.mark.parametrize(("kind", "what"), [("program", "half_programmed_wordlines"),
                                            ("erase", "half_erased_blocks")])
def test_the_power_fails_in_the_middle_of_an_operation_and_no_flushed_byte_is_lost(
        connect_nand: Callable[[str], Job], kind: str, what: str) -> None:
    job = connect_nand(SMALL)
    drive = Drive(job.instance, job.target)
    tail = size_of(job) // MIB - 8
    fio(job, 1, f"--size={tail}m --do_verify=0 --end_fsync=1")
    drive.faults.add(f"nand operation={kind} when nth=5 do power-cut=during", "cut")
    job.run(f"(while dd if=/dev/zero of={job.device()} bs=1M count=8 seek={tail} "
            "oflag=direct conv=fsync; do :; done) < /dev/null > /dev/null 2>&1 &")
    deadline = time.monotonic() + 60
    while drive.is_on:
        assert time.monotonic() < deadline, "the rule did not cut the power"
        time.sleep(0.1)
    found = nand_look.run("check", job.instance.name, job.target, "--json")
    assert found.complaint == "" and 1 <= found.facts[what] <= 4
    steps.forget_target(job)
    job.instance.ask("power-on")
    steps.wait_target(job)
    steps.connect(job)
    fio(job, 1, f"--size={tail}m --verify_only")


@pytest.mark.long
@pytest.mark.parametrize("array", ["300M", "400M,profile=qlc"])
def test_a_drive_with_parity_is_overwritten_four_times(
        connect_nand: Callable[[str], Job], array: str) -> None:
    job = connect_nand(array)
    overwrite(job, 4)
    assert nand_steps.smart(job)["media_errors"] == 0


def has_bytes(job: Job, pattern: bytes) -> bool:
    """Whether these bytes are anywhere in the drive's NAND file; its power must be off."""
    path = Path(paths.drive(job.instance.name, "drive")) / nand.FILE
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        return memory.find(pattern) >= 0


def sanitize(job: Job) -> int:
    """Erase all blocks; return the status in the sanitize log when that has ended."""
    job.run(f"nvme sanitize {job.controller()} --sanact=start-block-erase")
    return wait_sanitize(job)


def test_a_sanitize_leaves_no_byte_in_the_flash_and_a_die_dies_without_loss(
        connect_nand: Callable[[str], Job]) -> None:
    job = connect_nand("300M")
    secret = b"not-to-be-found-after-a-sanitize"
    job.run(f"yes {secret.decode()} | dd of={job.device()} bs=1M count=4 iflag=fullblock "
            "oflag=direct conv=fsync status=none")
    cut_power_and(job, lambda: has_bytes(job, secret))
    assert sanitize(job) == DONE
    cut_power_and(job, lambda: not has_bytes(job, secret))
    nand_steps.die_dies(job)
    cut_power(job)
    assert nand_steps.smart(job)["critical_warning"] & nand_steps.SPARE_LOW
    fio(job, 1, "--size=16m")
    # What is in the dead die cannot be erased, and the drive does not claim it.
    assert sanitize(job) == FAILED


def file_mib(job: Job) -> float:
    """Disk space that the NAND file takes."""
    path = Path(paths.drive(job.instance.name, "drive")) / nand.FILE
    return path.stat().st_blocks * 512 / MIB


def wait_for_file(job: Job, least: float, most: float) -> None:
    """Wait until the NAND file takes so many MiB of disk space."""
    deadline = time.monotonic() + 120
    while not least <= file_mib(job) <= most:
        assert time.monotonic() < deadline, f"the NAND file has {file_mib(job):.1f} MiB"
        time.sleep(0.2)


def test_the_file_is_as_large_as_what_was_written_and_shrinks_after_a_trim(
        connect_nand: Callable[[str], Job]) -> None:
    job = connect_nand(SMALL)
    written = 40
    before = file_mib(job)
    assert before < 2
    job.run(f"dd if=/dev/urandom of={job.device()} bs=1M count={written} oflag=direct "
            "conv=fsync status=none")
    # Each unit of 4 KiB has 104 bytes more in the file, and the map has its checkpoints.
    wait_for_file(job, before + written, before + written * 1.1 + 4)
    job.run(f"blkdiscard {job.device()} && nvme flush {job.device()}")
    wait_for_file(job, 0, before + 4)


def reads(job: Job, first: int, count: int) -> bool:
    """Whether the host can read these blocks of 512 bytes, past its page cache."""
    return job.result(f"dd if={job.device()} of=/dev/null bs=512 skip={first} count={count} "
                      "iflag=direct status=none", check=False).status == 0


def test_a_host_makes_blocks_unreadable_until_it_writes_them(
        connect_nand: Callable[[str], Job]) -> None:
    job = connect_nand(SMALL)
    job.run(f"dd if=/dev/zero of={job.device()} bs=64k count=1 oflag=direct status=none")
    # Blocks 21 to 28: parts of two units.
    job.run(f"nvme write-uncor {job.device()} -s 21 -c 7")
    for _ in range(2):
        assert reads(job, 0, 21) and reads(job, 29, 90)
        assert not any(reads(job, block, 1) for block in range(21, 29))
        assert nand_steps.smart(job)["media_errors"] == 0
        job.run(f"nvme flush {job.device()}")
        cut_power(job)
    job.run(f"dd if=/dev/zero of={job.device()} bs=512 seek=21 count=8 oflag=direct status=none")
    assert reads(job, 0, 128)


def units_of(job: Job, device: str) -> list[list[int]]:
    """The 16 bytes that each unit of 4 KiB repeats, as four words.

    Consecutive units with the same bytes, such as units without contents, are one entry.
    """
    text = job.quiet(f"dd if={device} bs=1M iflag=direct status=none | "
                     "od -An -v -tu4 -w16 | uniq")
    return [[int(word) for word in line.split()] for line in text.splitlines()]


def rows_read(job: Job) -> list[int]:
    """How many rows each start has read until the medium was ready."""
    console = (job.instance.folder / "drive/console.log").read_text(errors="replace")
    return [int(rows) for rows in re.findall(r"ftl: ready after \d+ ms, (\d+) rows", console)]


def test_a_preconditioned_drive_holds_the_pattern_in_all_its_namespaces(
        booted: Callable[..., Job]) -> None:
    job = booted(nand=SMALL, size=None, namespaces="2x16M")
    job.instance.ask("power-cut")
    nand_look.precondition(job.instance.name, "", nand_look.Fill(80, 3))
    job.instance.ask("power-on")
    steps.wait_target(job)
    job.run(f"nvme connect -t rdma -a {job.addresses[0]} -s {steps.SERVICE} -n {job.nqn}")
    units = 16 * MIB // 4096
    filled, passes = units * 80 // 100, []
    devices = wait_devices(job, 2)
    for device in devices:
        nsid = int(job.quiet(f"cat /sys/block/{device[5:]}/nsid"))
        found = units_of(job, device)
        assert [line[:3] for line in found[:filled]] == [[n, 0, nsid] for n in range(filled)]
        assert found[filled:] == [[0, 0, 0, 0]], "what was not filled has contents"
        passes += [line[3] for line in found[:filled]]
    written = [number for number in passes if number]
    assert len(set(written)) == len(written), "a write is in two places"
    assert max(written) == 3 * 2 * units, "the last write is lost"
    assert passes.count(0) < len(passes) // 10, "units were not overwritten at random"
    # The checkpoint was found: a start read one row of each block of each die, and little more.
    assert rows_read(job)[-1] < 2 * 200 + 100
    assert nand_steps.smart(job)["media_errors"] == 0
    steps.run_fio(job, steps.FIO.format(device=devices[0], name="after", options=(
        "--rw=randwrite --bs=4k --iodepth=32 --size=8m")))
