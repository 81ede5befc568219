# SPDX-License-Identifier: BSD-2-Clause
"""Programs stay in memory: essd.supervisor.resident."""

import subprocess
from pathlib import Path

from essd.supervisor.resident import Piece, Resident, lock, pieces, read_ahead

MAPS = """\
55d0c0000000-55d0c0002000 r--p 00000000 fe:00 1234                       /opt/a b/qemu
55d0c0002000-55d0c0009000 r-xp 00002000 fe:00 1234                       /opt/a b/qemu
55d0c0009000-55d0c000a000 rw-p 00009000 fe:00 1234                       /opt/a b/qemu
55d0c1000000-55d0c1001000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 r-xp 00000000 fe:00 99                         /lib/old.so (deleted)
7f0000001000-7f0000002000 r-xp 00000000 00:00 0                          [vdso]
"""


def locked_kib() -> int:
    """How much this process has locked, as the kernel says."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines()
                if line.startswith("VmLck:"))


def test_parts_of_files_that_cannot_be_written_are_found() -> None:
    assert list(pieces(MAPS)) == [Piece("/opt/a b/qemu", 0, 0x2000, False),
                                  Piece("/opt/a b/qemu", 0x2000, 0x7000, True)]


def test_a_running_program_is_locked_once() -> None:
    resident = Resident()
    before = locked_kib()
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()       # Now its libraries are loaded.
        resident.keep(process.pid)
        after = locked_kib()
        resident.keep(process.pid)
    assert after - before >= 1024       # The C library's code alone is larger.
    assert locked_kib() == after
    assert all(piece.is_code for piece in resident.locked
               if "/libc" in piece.path and piece.length > 1 << 20)


def test_a_process_that_has_ended_is_no_error() -> None:
    resident = Resident()
    resident.keep(int(subprocess.run(["/bin/sh", "-c", "echo $$"], check=True, timeout=10,
                                     capture_output=True).stdout))
    assert not resident.locked


def test_what_cannot_be_locked_is_left(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_bytes(bytes(4096))
    before = locked_kib()
    assert not lock(Piece(str(file), 65536, 4096, True))     # behind the file's end
    assert not lock(Piece(str(file), 1, 4096, True))         # not a page's offset
    assert locked_kib() == before
    read_ahead(tmp_path / "missing")
