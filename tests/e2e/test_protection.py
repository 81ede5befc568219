# SPDX-License-Identifier: BSD-2-Clause
"""Protection information under a stock Linux host.

The kernel's own I/O sets PRACT.  The pass-through commands of nvme-cli do not: they transfer
extended LBAs, so the host sends and gets the protection information itself.
"""

from collections.abc import Callable, Iterator

import pytest

from essd.instance import steps
from essd.instance.steps import Job

pytestmark = pytest.mark.drive
SMALL = "100M,channels=1,profile=slc"
READ, WRITE = 2, 1
GUARD, APP, REF = 1 << 28, 1 << 27, 1 << 26     # PRCHK in dword 12; PRACT is 0
FORMATS = {512: 2, 4096: 3}
PI = 8
BLOCK = "/tmp/block"
UNIT = 5                                        # the unit of 4 KiB that is written
# The CRC-16/T10-DIF of the first block of the pattern.
GUARDS = {512: "ebe1", 4096: "e049"}


@pytest.fixture
def job(booted: Callable[..., Job]) -> Iterator[Job]:
    job = booted(nand=SMALL, size=None)
    steps.connect(job)
    yield job


def transfer(job: Job, opcode: int, size: int, checks: int, app_tag: int = 0) -> str:
    """Transfer one extended block from or to the file.  @return what nvme-cli says"""
    lba = UNIT * 4096 // size
    way = f"-r -b > {BLOCK}" if opcode == READ else f"-w --input-file={BLOCK}"
    return job.result(
        f"nvme io-passthru {job.device()} --opcode={opcode} --namespace-id=1 "
        f"--data-len={size + PI} --cdw10={lba} --cdw12={checks} --cdw14={lba} "
        f"--cdw15={0xffff << 16 | app_tag} 2>/tmp/says {way}; cat /tmp/says", check=False).output


def change(job: Job, offset: int) -> None:
    """Change a byte of the block in the file, which is not FFh before."""
    job.run(f"printf '\\377' | dd of={BLOCK} bs=1 seek={offset} conv=notrunc status=none")


@pytest.mark.parametrize("size", FORMATS)
def test_linux_transfers_protection_information_itself_or_leaves_it_to_the_drive(
        job: Job, size: int) -> None:
    device, lba = job.device(), UNIT * 4096 // size
    job.run(f"nvme format {device} -l {FORMATS[size]} -i 1 -m 1 -f")
    # The kernel sets PRACT: the drive makes what the extended read gets.
    job.run(f"seq -f %015g 256 | dd of={device} bs=4096 seek={UNIT} count=1 oflag=direct "
            "iflag=fullblock status=none")
    assert "Success" in transfer(job, READ, size, GUARD | APP | REF)
    made = job.run(f"od -An -tx1 -j{size} {BLOCK}").split()
    assert "".join(made) == f"{GUARDS[size]}0000{lba:08x}"
    # The host's own protection information is checked, and stored as it is.
    job.run(f"printf '\\022\\064' | dd of={BLOCK} bs=1 seek={size + 2} conv=notrunc status=none")
    assert "Application Tag Check Error" in transfer(job, WRITE, size, APP)
    assert "Success" in transfer(job, WRITE, size, GUARD | APP | REF, app_tag=0x1234)
    job.run(f"cp {BLOCK} /tmp/good")
    assert "Success" in transfer(job, READ, size, GUARD | APP | REF, app_tag=0x1234)
    job.run(f"cmp {BLOCK} /tmp/good")
    for offset, check, error in ((0, GUARD, "Guard"), (size + 7, REF, "Reference Tag")):
        job.run(f"cp /tmp/good {BLOCK}")
        change(job, offset)
        assert f"{error} Check Error" in transfer(job, WRITE, size, check)
        # A write that is not checked stores it, and the read finds it.
        assert "Success" in transfer(job, WRITE, size, 0)
        assert f"{error} Check Error" in transfer(job, READ, size, check)
    # The kernel's reads have PRACT and check the guard, too.
    job.run(f"cp /tmp/good {BLOCK}")
    change(job, 0)
    assert "Success" in transfer(job, WRITE, size, 0)
    assert job.result(f"dd if={device} of=/dev/null bs=4096 skip={UNIT} count=1 iflag=direct",
                      check=False).status != 0
    job.run(f"cp /tmp/good {BLOCK}")
    assert "Success" in transfer(job, WRITE, size, GUARD)
    job.run(f"dd if={device} bs=4096 skip={UNIT} count=1 iflag=direct status=none | "
            f"head -c {size} > /tmp/read; head -c {size} /tmp/good | cmp - /tmp/read")
