# SPDX-License-Identifier: BSD-2-Clause
"""Steps of the demo that show the state of the drive's NAND flash, and make a die fail.

As in steps.py, each step runs real commands in a host and raises EssdError if the
result is not as expected.
"""

import json
import re
import shlex

from ..api import Drive
from ..base.errors import EssdError
from ..instance import steps
from ..instance.steps import Job
from ..storage import nand_look

UNIT_BYTES = 512000     # NVMe Base Specification, SMART: 1000 units of 512 bytes
OCP_LINES = ("Physical media units written", "Physical media units read",
             "Bad user nand blocks", "XOR recovery count", "Percent free blocks")
# The operation at which the die fails: after fio has started, and before fio ends.
DIES_AT = 300
DIE = f"nand channel=1 die=0 when nth={DIES_AT} do die"
SPARE_LOW = 1 << 0      # SMART: the available spare is below its threshold


def smart(job: Job) -> dict[str, int]:
    return dict(json.loads(job.quiet(f"nvme smart-log {job.controller()} -o json")))


def ocp_smart(job: Job) -> str:
    """Return the lines of OCP's log page C0h that describe the flash, and show them."""
    command = f"nvme ocp smart-add-log {job.controller()}"
    result = job.result(command)
    lines = [line for line in result.output.splitlines()
             if line.strip().startswith(OCP_LINES)]
    job.show_result(type(result)(command, result.status, "\n".join(lines), result.part))
    return "\n".join(lines)


def number_of(lines: str, name: str) -> int:
    """Return the last number of the line with this name; EssdError if there is none."""
    for line in lines.splitlines():
        if line.strip().startswith(name) and (found := re.findall(r"\d+", line)):
            return int(found[-1])
    raise EssdError(f"nvme ocp smart-add-log shows no {name}")


def flash_health(job: Job) -> None:
    """Show how much the flash has programmed for what hosts have written so far."""
    lines = ocp_smart(job)
    written = int(smart(job)["data_units_written"]) * UNIT_BYTES
    programmed = number_of(lines, OCP_LINES[0])
    if programmed < written // 2:
        raise EssdError(f"the flash has programmed {programmed} bytes, though hosts have "
                        f"written {written}")
    ratio = programmed / max(written, 1)
    job.say(f"hosts have written {written >> 20} MiB; the flash has programmed "
            f"{programmed >> 20} MiB with parity and padding, which is {ratio:.2f} times as "
            "much")
    job.claim(f"the drive counts what its flash programs: {ratio:.2f} times what hosts wrote",
              "nvme ocp smart-add-log, smart-log")


def die_dies(job: Job) -> None:
    """Make a die fail while fio writes and verifies: no data is lost, and SMART warns."""
    device = job.device()
    if smart(job)["critical_warning"]:
        raise EssdError("SMART has a critical warning before a die has died")
    job.say(f"{job.instance.hint('faults', 'add', shlex.quote(DIE))}; from then on, this die "
            "never answers again")
    rules = Drive(job.instance, job.target).faults
    name = rules.add(DIE)
    try:
        steps.run_fio(job, steps.FIO.format(device=device, name="die", options=(
            "--rw=randwrite --bs=4k --iodepth=16 --size=32m")))
        if rules[name].fired != 1:
            raise EssdError("the die did not die while fio was writing")
    finally:
        rules.remove(name)
    job.run(f"nvme smart-log {job.controller()} | "
            "grep -E '^(critical_warning|available_spare|media_errors)'")
    ocp_smart(job)
    after = smart(job)
    if after["critical_warning"] & SPARE_LOW == 0:
        raise EssdError("a die has died, and SMART does not warn of it")
    if after["media_errors"]:
        raise EssdError(f"{after['media_errors']} reads of the host have failed")
    job.claim("a die of the NAND flash dies during I/O: nothing is lost, and SMART warns",
              "fio verify=crc32c, nvme smart-log")


def look_inside(job: Job) -> None:
    """Cut the power and draw the fill and the wear of the array."""
    job.instance.ask("power-cut", part=job.target)
    result = nand_look.run("info", job.instance.name, job.target)
    picture = result.text[result.text.find("\n\n") + 2:]
    job.say(f"power off; {job.instance.hint('media', 'info')}", picture.rstrip())
    if result.complaint:
        raise EssdError(result.complaint)
    job.claim("the array can be looked at while the drive is off", "essd media info")
