# SPDX-License-Identifier: BSD-2-Clause
"""QEMU opens the media file only, even if its content names another file."""

import subprocess
from pathlib import Path

from essd.machine import drive
from essd.setup import setup
from essd.setup.setup import Wish
from essd.storage import media
from test_port_media import MIB, MediaQueue, medium, qemu, start  # noqa: F401

SECRET = b"a secret of the user"


def secret_overlay(qemu: Path, folder: Path, size: int) -> bytes:  # noqa: F811
    """A qcow2 image whose backing file is a file of the user."""
    secret = folder / "secret"
    secret.write_bytes(SECRET.ljust(size, b"."))
    overlay = folder / "overlay"
    subprocess.run([qemu.with_name("qemu-img"), "create", "-q", "-f", "qcow2", "-F",
                    "raw", "-b", secret, overlay], check=True, timeout=60)
    return overlay.read_bytes()


def node_options(qemu: Path, found: media.Media) -> tuple[str, ...]:  # noqa: F811
    """QEMU's options for the media."""
    node = drive.media_node_json(drive.Drive(
        str(qemu), "", str(found.path), found.format, ""))
    return ("-blockdev", node, "-M", "media=media")


def first_block(machine) -> bytes:
    queue = MediaQueue(machine)
    machine.write(queue.DATA, bytes(4096))
    assert queue.run(1, 0, 8) == 0
    return machine.read(queue.DATA, 4096)


def test_raw_media_stay_raw_if_a_host_writes_an_image_to_them(
        start, qemu, tmp_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "media.qcow2"
    setup.drive_media(Wish(name="x", media=path, size="64M"))
    image = secret_overlay(qemu, tmp_path, 64 * MIB)
    with open(path, "r+b") as file:     # A host can write this from LBA 0 on.
        file.write(image)
    found = setup.drive_media(Wish(name="x", media=path))
    block = first_block(start(*node_options(qemu, found)))
    assert block == image[:4096]


def test_a_backing_file_in_the_header_of_qcow2_media_is_not_opened(
        start, qemu, tmp_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "media.qcow2"
    path.write_bytes(secret_overlay(qemu, tmp_path, 64 * MIB))
    # setup.drive_media() would refuse this header, so the test does not call it.
    found = media.Media(path, "qcow2", 64 * MIB)
    block = first_block(start(*node_options(qemu, found)))
    assert block == bytes(4096)
