# SPDX-License-Identifier: BSD-2-Clause
"""A power cut loses exactly what the specification allows.

The volatile write cache really is volatile: data that was acknowledged but neither
flushed nor written with FUA may be lost.  NVMe Base Specification, "Flush command" and
"Volatile Write Cache".
"""

import json
from collections.abc import Callable

import pytest

from essd.instance import steps
from essd.instance.steps import Job

pytestmark = pytest.mark.uml

MIB = 1 << 20
AREA_MIB = 4


def fill(job: Job, device: str, at_mib: int, byte: str, how: str = "") -> None:
    job.instance.run(
        f"tr '\\0' '{byte}' < /dev/zero | dd of={device} bs=1M seek={at_mib} "
        f"count={AREA_MIB} iflag=fullblock oflag=direct {how} status=none")


def bytes_of(job: Job, device: str, at_mib: int, byte: str) -> int:
    """The number of bytes in an area that have this value."""
    output = job.instance.run(
        f"dd if={device} bs=1M skip={at_mib} count={AREA_MIB} iflag=direct "
        f"status=none | tr -cd '{byte}' | wc -c", apart=True).output
    return int(output)


def cut_after_writes(job: Job, prepare_cut: Callable[[Job], None] = lambda job: None) -> int:
    """Cut the power after a flush, a write with FUA, and writes that nobody flushes.

    `prepare_cut` is called before the writes that nobody flushes.  Return how many bytes
    of these have survived.
    """
    device = job.device()
    for area in (16, 32, 48):
        fill(job, device, area, "o", "conv=fsync")
    fill(job, device, 16, "f", "conv=fsync")            # flushed
    block = int(job.quiet(f"cat /sys/block/{device[5:]}/queue/logical_block_size"))
    size = 65536
    job.instance.run(f"tr '\\0' 'u' < /dev/zero | head -c {size} > /tmp/fua")
    job.instance.run(
        f"nvme write {device} --force-unit-access --start-block={32 * MIB // block} "
        f"--block-count={size // block - 1} --data-size={size} --data=/tmp/fua")
    prepare_cut(job)
    fill(job, device, 48, "n")                          # acknowledged, no more
    job.instance.ask("power-cut")
    steps.forget_target(job)
    job.instance.ask("power-on")
    steps.wait_target(job)
    device = steps.connect(job)
    assert bytes_of(job, device, 16, "f") == AREA_MIB * MIB
    assert bytes_of(job, device, 32, "u") == size
    unflushed = bytes_of(job, device, 48, "n")
    old = bytes_of(job, device, 48, "o")
    assert unflushed + old == AREA_MIB * MIB, "neither old nor new data"
    return unflushed


@pytest.mark.drive
def test_a_power_cut_keeps_flushed_data_and_nothing_but_old_or_new_data(
        connected: Job) -> None:
    """How much of the rest is lost depends on when the NAND flash was programmed."""
    cut_after_writes(connected)


def smart(job: Job) -> dict[str, int]:
    return dict(json.loads(job.quiet(f"nvme smart-log {job.controller()} -o json")))


def cut_power(job: Job) -> None:
    job.instance.ask("power-cut")
    steps.forget_target(job)
    job.instance.ask("power-on")
    steps.wait_target(job)


@pytest.mark.drive
def test_smart_counts_power_cycles_and_unsafe_shutdowns(connected: Job) -> None:
    job = connected
    job.run(f"dd if=/dev/zero of={job.device()} bs=1M count=8 oflag=direct status=none")
    steps.disconnect(job)               # CC.SHN: this one is safe
    cut_power(job)
    steps.connect(job)
    first = smart(job)
    assert first["data_units_written"] >= 8 * MIB // 512000
    assert first["host_write_commands"] > 0
    cut_power(job)                      # this one is not
    steps.connect(job)
    second = smart(job)
    assert second["unsafe_shutdowns"] == first["unsafe_shutdowns"] + 1
    assert second["data_units_written"] >= first["data_units_written"]
    steps.disconnect(job)
    cut_power(job)
    steps.connect(job)
    third = smart(job)
    assert third["unsafe_shutdowns"] == second["unsafe_shutdowns"]
    assert third["power_cycles"] == first["power_cycles"] + 2


@pytest.mark.drive
def test_the_error_log_survives_a_power_cut(connected: Job) -> None:
    job = connected

    def errors() -> list[dict[str, int]]:
        said = job.quiet(f"nvme error-log {job.controller()} -o json")
        return [entry for entry in json.loads(said)["errors"] if entry["error_count"]]

    before = len(errors())
    job.quiet(f"nvme admin-passthru {job.controller()} --opcode=0xc1", check=False)
    steps.disconnect(job)
    cut_power(job)
    steps.connect(job)
    told = errors()
    assert len(told) > before
    assert told[0]["error_count"] == smart(job)["num_err_log_entries"]
    job.quiet(f"nvme admin-passthru {job.controller()} --opcode=0xc1", check=False)
    assert errors()[0]["error_count"] > told[0]["error_count"]
    assert told[0] in errors()
    steps.disconnect(job)
