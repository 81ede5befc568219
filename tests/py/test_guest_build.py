# SPDX-License-Identifier: BSD-2-Clause
"""The file formats that guest_build.py writes itself, and its cache keys."""

import base64
import fcntl
import subprocess
import threading
import time
from pathlib import Path

import pytest

from essd.base import paths
from essd.build import guest_build, uml_build
from essd.build.fw_build import BuildError


def test_a_cpio_archive_holds_the_names_and_contents_that_were_added(
        tmp_path: Path) -> None:
    archive = guest_build.Cpio()
    archive.folder("bin")
    content = bytes(range(256)) * 5 + b"odd"
    (tmp_path / "file").write_bytes(content)
    archive.file("bin/file", tmp_path / "file")
    data = archive.close()
    assert len(data) % 4 == 0
    # This reader follows the description of the format newc: all fields are hex.
    seen = {}
    at = 0
    while True:
        assert data[at:at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * n:at + 14 + 8 * n], 16) for n in range(13)]
        size, name_size = fields[6], fields[11]
        name = data[at + 110:at + 110 + name_size - 1].decode()
        at = (at + 110 + name_size + 3) & ~3
        if name == "TRAILER!!!":
            break
        seen[name] = data[at:at + size]
        at = (at + size + 3) & ~3
    assert seen == {"bin": b"", "bin/file": content}


def test_a_dropbear_key_contains_the_public_key_of_ssh_keygen(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                    tmp_path / "key"], check=True, timeout=60)
    kind, secret = guest_build.ssh_fields(
        guest_build.dropbear_key((tmp_path / "key").read_text()))
    blob = base64.b64decode((tmp_path / "key.pub").read_text().split()[1])
    assert kind == b"ssh-ed25519"
    assert guest_build.ssh_fields(blob)[1] == secret[32:]


def test_an_unknown_compression_of_the_kernel_is_an_error(tmp_path: Path) -> None:
    image = bytearray(4096)
    image[0x1f1] = 1
    image[0x248:0x24c] = (0).to_bytes(4, "little")
    image[0x24c:0x250] = (64).to_bytes(4, "little")
    with pytest.raises(BuildError, match="unknown method"):
        guest_build.kernel_elf(bytes(image), tmp_path / "vmlinux", tmp_path / "log")


@pytest.mark.parametrize("name", ["packages.txt", "skip.txt", "sysroot.txt",
                                  "modules.txt"])
def test_a_list_in_guest_is_read_without_its_comments(name: str) -> None:
    lines = guest_build.read_list(name)
    assert lines
    assert len(set(lines)) == len(lines)
    assert not any(line.startswith("#") for line in lines)


def test_a_changed_file_changes_the_key_of_the_guest(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_build.paths, "TOP", tmp_path)
    file = tmp_path / "file"
    file.write_text("a")
    first = guest_build.digest([file])
    file.write_text("b")
    assert guest_build.digest([file]) != first


@pytest.mark.parametrize("second", ["guest-variants", "sysroot", "uml"])
def test_only_one_build_at_a_time_fetches_packages(
        second: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They write them to one folder, where the other would read a half of a package."""
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path))
    monkeypatch.setattr(uml_build, "fetched", lambda progress, log: log)
    order: list[str] = []
    told: list[str] = []

    def build() -> None:
        if second == "uml":
            uml_build.fetch(told.append, tmp_path / "log")
            order.append(second)
            return
        with paths.locked(paths.cache() / second / "lock", told.append):
            order.append(second)
    other = threading.Thread(target=build)
    with paths.locked(paths.cache() / "guest/lock"):
        other.start()
        end = time.monotonic() + 60
        inode = f":{paths.packages_lock().stat().st_ino} "
        while not any("->" in line and inode in line     # Somebody waits for this lock.
                      for line in Path("/proc/locks").read_text().splitlines()):
            assert other.is_alive() and not order and time.monotonic() < end
            time.sleep(0.01)
        order.append("guest")
    other.join()
    assert order == ["guest", second]
    assert "waiting for another build that fetches packages" in told


def test_a_sysroot_that_is_there_needs_no_lock(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path))
    monkeypatch.setattr(guest_build, "digest", lambda files: "key")
    monkeypatch.setattr(paths, "locked", None)
    (tmp_path / "sysroot/key").mkdir(parents=True)
    assert guest_build.ensure_sysroot(print) == tmp_path / "sysroot/key"


def test_other_builds_do_not_wait_for_packages(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path))
    at_once = fcntl.LOCK_EX | fcntl.LOCK_NB
    with paths.locked(paths.cache() / "qemu/lock"), paths.flocked(paths.packages_lock(), at_once):
        pass
    with paths.locked(paths.cache() / "guest/lock"), pytest.raises(BlockingIOError), \
            paths.flocked(paths.packages_lock(), at_once):
        pass
