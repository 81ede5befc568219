# SPDX-License-Identifier: BSD-2-Clause
"""Media files are checked before anything starts; an error is one clear line."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from essd.instance.instance import EssdError
from essd.setup import setup
from essd.setup.setup import Wish
from essd.storage import media
from essd.storage.media import MediaError

MIB = 1 << 20


@pytest.mark.parametrize(("text", "size"), [
    ("64M", 64 * MIB), ("512MiB", 512 * MIB), ("8G", 8 << 30), ("8g", 8 << 30),
    ("16T", 16 << 40), (str(64 * MIB), 64 * MIB)])
def test_a_size_has_a_unit(text: str, size: int) -> None:
    assert media.parse_size(text) == size


@pytest.mark.parametrize("text", [
    "", "8X", "-1G", "63M", "17T", "G", "1.5G", str(64 * MIB + 1), "0"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(MediaError):
        media.parse_size(text)


@pytest.mark.parametrize(("text", "nearest"), [
    (str(64 * MIB + 1), "64M"), ("100001K", "100000K"), (str((1 << 40) + 4095), "1T")])
def test_a_size_of_no_whole_sectors_is_refused_with_the_nearest(text: str, nearest: str) -> None:
    why = f"not a multiple of 4096 bytes; the nearest is {nearest}$"
    with pytest.raises(MediaError, match=why):
        media.parse_size(text)
    assert media.exact_size(media.parse_size(nearest)) == nearest


def test_a_new_file_is_sparse_and_usable(tmp_path: Path) -> None:
    path = tmp_path / "media.raw"
    media.create(path, 1 << 30)
    assert media.recorded_format(path) == "raw"
    assert media.check(path, "raw") == media.Media(path, "raw", 1 << 30)
    assert path.stat().st_blocks * 512 < MIB


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "media.raw"
    path.write_bytes(b"data")
    with pytest.raises(MediaError):
        media.create(path, 64 * MIB)
    assert path.read_bytes() == b"data"
    assert media.recorded_format(path) is None


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="does not exist"):
        media.check(tmp_path / "none", "raw")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="folder"):
        media.check(tmp_path, "raw")


def test_a_device_is_refused() -> None:
    with pytest.raises(MediaError, match="not a regular file"):
        media.check(Path("/dev/null"), "raw")


@pytest.mark.skipif(os.getuid() == 0, reason="root can write every file")
def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "media.raw"
    media.create(path, 64 * MIB)
    path.chmod(0o400)
    with pytest.raises(MediaError, match="permission denied"):
        media.check(path, "raw")


@pytest.mark.parametrize(("size", "why"), [
    (64 * MIB - 4096, "too small"), (64 * MIB + 512, "not a multiple")])
def test_unsupported_file_sizes_are_refused(tmp_path: Path, size: int, why: str) -> None:
    path = tmp_path / "media.raw"
    media.create(path, size)
    with pytest.raises(MediaError, match=why):
        media.check(path, "raw")


def qcow2_header(size: int = 1 << 30, backing: int = 0, features: int = 0) -> bytes:
    return struct.pack(">4sIQIIQ40xQ", b"QFI\xfb", 3, backing, 0, 16, size, features)


def qcow2_file(path: Path, **fields: int) -> Path:
    path.write_bytes(qcow2_header(**fields) + bytes(MIB))
    return path


def test_a_qcow2_image_has_the_size_in_its_header(tmp_path: Path) -> None:
    path = qcow2_file(tmp_path / "media.img")
    assert media.check(path, "qcow2") == media.Media(path, "qcow2", 1 << 30)


@pytest.mark.parametrize(("fields", "why"), [
    ({"backing": 104}, "backing file"), ({"features": 4}, "data in another file")])
def test_a_qcow2_image_that_refers_to_another_file_is_refused(
        tmp_path: Path, fields: dict[str, int], why: str) -> None:
    path = qcow2_file(tmp_path / "media.qcow2", **fields)
    with pytest.raises(MediaError, match=why):
        media.check(path, "qcow2")


def test_a_raw_file_is_refused_as_a_qcow2_image(tmp_path: Path) -> None:
    path = tmp_path / "media.qcow2"
    media.create(path, 64 * MIB)
    with pytest.raises(MediaError, match="is not a qcow2 image"):
        media.check(path, "qcow2")


def wish_for(path: Path, **options: str) -> Wish:
    return Wish(name="x", media=path, **options)


@pytest.mark.parametrize("name", ["media.raw", "media.img", "media.qcow2"])
def test_a_qcow2_header_that_a_host_writes_does_not_change_the_format(tmp_path: Path,
                                                          name: str) -> None:
    path = tmp_path / name
    assert setup.drive_media(wish_for(path, size="64M")).format == "raw"
    with open(path, "r+b") as file:
        file.write(qcow2_header(backing=104))
    assert setup.drive_media(wish_for(path)) == media.Media(path, "raw", 64 * MIB)


@pytest.mark.parametrize("name", ["media.raw", "media.img", "media.qcow2"])
def test_a_file_without_a_recorded_format_needs_the_option_once(tmp_path: Path, name: str) -> None:
    path = qcow2_file(tmp_path / name)
    with pytest.raises(MediaError, match="--media-format"):
        setup.drive_media(wish_for(path))
    assert media.recorded_format(path) is None
    asked = setup.drive_media(wish_for(path, media_format="qcow2"))
    assert asked.format == "qcow2"
    assert setup.drive_media(wish_for(path)) == asked


def test_a_refused_format_is_not_recorded(tmp_path: Path) -> None:
    path = qcow2_file(tmp_path / "media.qcow2", backing=104)
    with pytest.raises(MediaError, match="backing file"):
        setup.drive_media(wish_for(path, media_format="qcow2"))
    assert media.recorded_format(path) is None


def test_an_option_does_not_change_the_recorded_format(tmp_path: Path) -> None:
    path = tmp_path / "media.qcow2"
    media.create(path, 64 * MIB)
    with pytest.raises(MediaError, match="is recorded as raw"):
        setup.drive_media(wish_for(path, media_format="qcow2"))
    with pytest.raises(MediaError, match="must be raw or qcow2"):
        setup.drive_media(wish_for(path, media_format="vmdk"))


def test_a_symbolic_link_has_the_format_of_its_target(tmp_path: Path) -> None:
    path, link = tmp_path / "media.raw", tmp_path / "link.qcow2"
    media.create(path, 64 * MIB)
    link.symlink_to(path)
    assert setup.drive_media(wish_for(link)) == media.Media(path, "raw", 64 * MIB)
    assert not media.record_path(link).exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "vmdk"}'])
def test_a_damaged_record_of_the_format_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "media.raw"
    media.create(path, 64 * MIB)
    media.record_path(path).write_text(text)
    with pytest.raises(MediaError, match="the record"):
        setup.drive_media(wish_for(path))


def test_a_missing_qcow2_file_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "media.qcow2"
    with pytest.raises(EssdError, match="qemu-img create"):
        setup.drive_media(wish_for(path, size="64M", media_format="qcow2"))
    assert not path.exists()


def test_own_media_of_a_drive_of_an_earlier_version_stay_raw(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_DATA", str(tmp_path))
    path = tmp_path / "x" / "media.raw"
    path.parent.mkdir()
    path.write_bytes(qcow2_header(backing=104).ljust(64 * MIB, b"\0"))
    assert setup.drive_media(Wish(name="x")).format == "raw"
    assert media.recorded_format(path) == "raw"


def test_a_file_in_use_by_another_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "media.raw"
    media.create(path, 64 * MIB)
    # The locks that QEMU takes for writing (block/file-posix.c).
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
            media.check(path, "raw")
    finally:
        holder.communicate(timeout=60)
    media.check(path, "raw")
