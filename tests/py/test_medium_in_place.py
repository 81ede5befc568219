# SPDX-License-Identifier: BSD-2-Clause
"""Blocks that are in the page cache are read without a worker thread (qemu-patches/0018).

Where that is impossible, and when other nodes have been put around the file's, reads
still return what was written last.
"""

import os
import subprocess
from pathlib import Path

from test_port_media import (  # noqa: F401
    FUA, MIB, OK, WRITE, Machine, MediaQueue, medium, qemu, start)

LBA = 64
NO_CACHE = ("-global", "essd-media.cache-size=0")


def put_on(path: Path, offset: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def threads(machine: Machine) -> set[str]:
    return set(os.listdir(f"/proc/{machine.process.pid}/task"))


def node(path: Path, more: str = "") -> tuple[str, ...]:
    return ("-blockdev", f"driver=raw,node-name=other,file.driver=file,file.filename={path}"
            + more, "-M", "media=other")


def test_a_cached_block_is_read_without_a_worker(start, medium: Path) -> None:  # noqa: F811
    put_on(medium, LBA * 512, b"A" * 4096)
    machine = start(*NO_CACHE)
    queue = MediaQueue(machine)
    before = threads(machine)
    assert queue.get(LBA) == b"A"
    assert threads(machine) == before
    queue.put(LBA, b"B", FUA)
    assert threads(machine) != before, "the writes of this test have no worker either"
    assert queue.get(LBA) == b"B"


def test_a_block_that_is_not_cached_is_read(start, medium: Path) -> None:  # noqa: F811
    put_on(medium, LBA * 512, b"A" * 4096)
    with open(medium, "r+b") as file:
        os.fsync(file)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    queue = MediaQueue(start(*NO_CACHE))
    assert queue.get(LBA) == b"A"
    assert queue.get(LBA + 8) == b"\0", "a hole"


def test_a_raw_node_with_an_offset_is_read_there(start, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "image"
    with open(path, "wb") as file:
        file.truncate(66 * MIB)
    put_on(path, LBA * 512, b"A" * 4096)
    put_on(path, MIB + LBA * 512, b"B" * 4096)
    machine = start(*NO_CACHE, *node(path, f",offset={MIB},size={64 * MIB}"))
    assert MediaQueue(machine).get(LBA) == b"B"


def test_an_overlay_over_the_file_is_read(start, qemu: Path, tmp_path: Path,  # noqa: F811
                                          medium: Path) -> None:  # noqa: F811
    put_on(medium, LBA * 512, b"A" * 4096)
    machine = start(*NO_CACHE)
    queue = MediaQueue(machine)
    assert queue.get(LBA) == b"A"
    overlay = tmp_path / "overlay"
    subprocess.run([qemu.with_name("qemu-img"), "create", "-q", "-f", "qcow2", overlay,
                    str(64 * MIB)], check=True, timeout=60)
    machine.ask("blockdev-add", **{"driver": "qcow2", "node-name": "over", "backing": None,
                                   "file": {"driver": "file", "filename": str(overlay)}})
    machine.ask("blockdev-snapshot", node="m", overlay="over")
    assert queue.get(LBA) == b"A"
    machine.write(queue.DATA, b"B" * 4096)
    assert queue.run(WRITE, LBA, 8, FUA) == OK
    assert queue.get(LBA) == b"B"
    with open(medium, "rb") as file:
        file.seek(LBA * 512)
        assert file.read(1) == b"A", "the write went to the file below the overlay"
