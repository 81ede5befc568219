# SPDX-License-Identifier: BSD-2-Clause
"""Media files are judged before anything starts, in one clear line."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from essd import media
from essd.media import MediaError

MIB = 1 << 20


@pytest.mark.parametrize(("text", "size"), [
    ("64M", 64 * MIB), ("512MiB", 512 * MIB), ("8G", 8 << 30), ("8g", 8 << 30),
    ("16T", 16 << 40), (str(64 * MIB), 64 * MIB)])
def test_size_is_read(text: str, size: int) -> None:
    assert media.parse_size(text) == size


@pytest.mark.parametrize("text", [
    "", "8X", "-1G", "63M", "17T", "G", "1.5G", str(64 * MIB + 1), "0"])
def test_bad_size_is_refused(text: str) -> None:
    with pytest.raises(MediaError):
        media.parse_size(text)


def test_new_file_is_sparse_and_good(tmp_path: Path) -> None:
    path = tmp_path / "media.raw"
    media.create(path, 1 << 30)
    assert media.check(path) == media.Media(path, "raw", 1 << 30)
    assert path.stat().st_blocks * 512 < MIB


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "media.raw"
    path.write_bytes(b"data")
    with pytest.raises(MediaError):
        media.create(path, 64 * MIB)
    assert not path.exists() or path.read_bytes() == b"data"


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="does not exist"):
        media.check(tmp_path / "none")


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="folder"):
        media.check(tmp_path)


def test_device_is_refused() -> None:
    with pytest.raises(MediaError, match="not an ordinary file"):
        media.check(Path("/dev/null"))


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everything")
def test_read_only_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "media.raw"
    media.create(path, 64 * MIB)
    path.chmod(0o400)
    with pytest.raises(MediaError, match="may not be written"):
        media.check(path)


@pytest.mark.parametrize(("size", "why"), [
    (64 * MIB - 4096, "too small"), (64 * MIB + 512, "no multiple")])
def test_odd_sizes_are_refused(tmp_path: Path, size: int, why: str) -> None:
    path = tmp_path / "media.raw"
    media.create(path, size)
    with pytest.raises(MediaError, match=why):
        media.check(path)


def test_qcow2_has_the_size_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "media.qcow2"
    path.write_bytes(struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 0, 0, 16, 1 << 30)
                     + bytes(MIB))
    assert media.check(path) == media.Media(path, "qcow2", 1 << 30)


def test_what_a_host_writes_does_not_make_raw_media_qcow2(tmp_path: Path) -> None:
    header = struct.pack(">4sIQIIQ", b"QFI\xfb", 3, 0, 0, 16, 1 << 30)
    for name in ("media.raw", "media.img"):
        path = tmp_path / name
        media.create(path, 64 << 20)
        with open(path, "r+b") as file:
            file.write(header)
    assert media.check(tmp_path / "media.raw").format == "raw"
    with pytest.raises(media.MediaError, match="begins like a qcow2 image"):
        media.check(tmp_path / "media.img")


def test_file_held_by_another_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "media.raw"
    media.create(path, 64 * MIB)
    # The locks QEMU takes for writing: block/file-posix.c.
    holder = subprocess.Popen(
        [sys.executable, "-c",
         "import fcntl, struct, sys\n"
         "f = open(sys.argv[1], 'r+b')\n"
         "fcntl.fcntl(f, 37, struct.pack('hhqqi4x', fcntl.F_RDLCK, 0, 101, 1, 0))\n"
         "print('held', flush=True)\n"
         "sys.stdin.read()\n", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(MediaError, match="in use"):
            media.check(path)
    finally:
        holder.communicate()
    media.check(path)
