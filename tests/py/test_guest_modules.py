# SPDX-License-Identifier: BSD-2-Clause
"""Modules that are built from Debian's source for a guest's kernel.

What needs the archive, the compiler and a kernel is tried by tests/e2e/test_peers.py.
"""

import subprocess
from pathlib import Path

import pytest

from essd.base import show
from essd.build import guest_build, guest_modules, guest_variant
from essd.setup import prepare
from essd.build.fw_build import BuildError
from essd.build.guest_build import Guest
from essd.build.guest_modules import Source, Unavailable

RELEASE, VERSION = "6.12.117+deb13-amd64", "6.12.117-1"
GUEST = {f"linux-image-{RELEASE}": VERSION, "bash": "5.2", "linux-image-amd64": VERSION}
OFFERED = {f"linux-headers-{RELEASE}": VERSION, "linux-source-6.12": VERSION,
           "gcc-14": "14.2.0-19", "libc6": "2.41-12", "systemd": "257", "pahole": "1.30"}


class Archive(guest_build.Apt):
    """An archive with some packages; without a package that is asked for it has none."""

    def __init__(self, offered: dict[str, str]) -> None:
        self.offered = offered

    def resolve(self, names: list[str], skip: list[str]) -> dict[str, str]:
        if set(names) - set(self.offered):
            raise BuildError("apt-get failed (status 100): Unable to locate package")
        return self.offered


def test_the_list_names_module_folder_and_constants() -> None:
    lines = guest_variant.read_list(guest_variant.PEERS / guest_modules.SOURCES)
    assert guest_modules.read_sources(lines) == [
        Source("siw", "drivers/infiniband/sw/siw"),
        Source("siw_strict", "drivers/infiniband/sw/siw",
               ("mpa_crc_required", "peer_to_peer"))]
    with pytest.raises(BuildError, match="sources.txt: siw needs a folder of Linux's source"):
        guest_modules.read_sources(["siw"])


def test_headers_and_source_are_those_of_the_guests_kernel() -> None:
    assert guest_modules.kernel_of(GUEST) == (RELEASE, VERSION)
    packages, source = guest_modules.resolve(Archive(OFFERED), RELEASE, VERSION)
    assert source == "linux-source-6.12"
    assert sorted(packages) == ["gcc-14", "libc6", f"linux-headers-{RELEASE}"]


@pytest.mark.parametrize("change, said", [
    ({f"linux-headers-{RELEASE}": None}, f"linux-headers-{RELEASE} in version none"),
    ({"linux-source-6.12": "6.12.118-1"}, "linux-source-6.12 in version 6.12.118-1")])
def test_a_version_that_the_archive_no_longer_has_is_named_in_one_line(
        change: dict[str, str | None], said: str) -> None:
    offered = {name: at for name, at in (OFFERED | change).items() if at is not None}
    with pytest.raises(Unavailable) as caught:
        guest_modules.resolve(Archive(offered), RELEASE, VERSION)
    assert str(caught.value) == (f"Debian's archive has {said}, and the guest's kernel is "
                                 f"{VERSION}")


def test_a_guest_without_its_modules_says_why(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_variant, "package_lists", lambda log: Archive({}))
    work, root = tmp_path / "work", tmp_path / "root"
    work.mkdir()
    guest_variant.add_modules(guest_variant.PEERS, GUEST, work, root, tmp_path / "log",
                              lambda text: None)
    found = guest_variant.missing(Guest(work))
    assert set(found) == {"siw", "siw_strict"}
    assert found["siw"].startswith(f"Debian's archive has linux-headers-{RELEASE} in version "
                                   "none")
    assert not root.exists() and not (work / "modules").exists()
    assert guest_variant.missing(Guest(root)) == {}

    # The line is printed whenever the guest is used.
    monkeypatch.setattr(guest_variant, "is_built", lambda folder: True)
    monkeypatch.setattr(guest_variant, "ensure", lambda folder, progress: Guest(work))
    said: list[str] = []
    monkeypatch.setattr(show, "line", said.append)
    prepare.prepare(guest=False, drive=False, variants=[guest_variant.PEERS])
    assert len(said) == 2 and said[0].startswith(
        f"the guest of {guest_variant.PEERS} has no module siw: Debian's archive has ")


def test_programs_start_with_the_loader_that_was_unpacked(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder in ("usr/bin", "usr/lib64", "usr/lib/x86_64-linux-gnu"):
        (root / folder).mkdir(parents=True)
    loader = root / "usr/lib64/ld-linux-x86-64.so.2"
    # A loader that says what it was asked to start.
    loader.write_text("#!/bin/sh\necho \"$@\"\n")
    loader.chmod(0o755)
    for name, content in (("tool", b"\x7fELF" + bytes(12) + b"\x03\x00"), ("script", b"#!"),
                          ("crt1.o", b"\x7fELF" + bytes(12) + b"\x01\x00"),
                          ("libx.so.1", b"\x7fELF" + bytes(12) + b"\x03\x00")):
        (root / "usr/bin" / name).write_bytes(content)
    (root / "usr/bin/other").symlink_to("tool")
    guest_modules.wrap_programs(root)
    assert sorted(path.name for path in (root / "usr/bin").iterdir()) == [
        "crt1.o", "libx.so.1", "other", "script", "tool", "tool.elf"]
    for name in ("tool", "other"):      # The second one is the compiler's way to find `as`.
        here = root / "usr/bin" / name
        done = subprocess.run([here, "-c", "a b"], capture_output=True, text=True, check=True,
                              timeout=30)
        assert done.stdout == (f"--argv0 {here} --library-path "
                               f"{root}/usr/lib/x86_64-linux-gnu {root}/usr/bin/tool.elf "
                               "-c a b\n")


def test_only_the_named_constants_are_changed(tmp_path: Path) -> None:
    folder = tmp_path / "siw"
    folder.mkdir()
    text = "const bool one;\nconst bool two;\nextern const bool one;\nint x; /* one; */\n"
    (folder / "main.c").write_text(text)
    (folder / "qp.c").write_text("int y;\n")
    (folder / "Makefile").write_text("obj-m := other.o\n")
    guest_modules.set_constants(folder, ("one",))
    assert (folder / "main.c").read_text() == text.replace(
        "const bool one;\nconst bool two", "const bool one = true;\nconst bool two")
    with pytest.raises(BuildError, match="siw: 0 files define const bool three: correct"):
        guest_modules.set_constants(folder, ("three",))
    guest_modules.write_kbuild(folder, "siw_strict")
    assert (folder / "Kbuild").read_text() == (
        "obj-m := siw_strict.o\nsiw_strict-y := main.o qp.o\n")
    assert not (folder / "Makefile").exists()
    with pytest.raises(BuildError, match="a file has the module's own name qp"):
        guest_modules.write_kbuild(folder, "qp")


def test_headers_include_their_other_half_where_it_was_unpacked(tmp_path: Path) -> None:
    headers = tmp_path / "usr/src" / f"linux-headers-{RELEASE}"
    headers.mkdir(parents=True)
    (headers / "Makefile").write_text("include /usr/src/linux-headers-common/Makefile\n")
    (headers / "vmlinux").touch()
    assert guest_modules.prepare_headers(tmp_path, RELEASE) == headers
    assert (headers / "Makefile").read_text() == (
        f"include {tmp_path}/usr/src/linux-headers-common/Makefile\n")
    assert not (headers / "vmlinux").exists()
    (headers / "Makefile").write_text("include ../Makefile\n")
    with pytest.raises(BuildError, match="does not include /usr/src"):
        guest_modules.prepare_headers(tmp_path, RELEASE)


def test_a_change_of_the_builder_builds_such_guests_again(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_modules, without = tmp_path / "with", tmp_path / "without"
    for folder in (with_modules, without):
        folder.mkdir()
        (folder / "packages.txt").write_text("bash\n")
    (with_modules / "sources.txt").write_text("siw drivers/infiniband/sw/siw\n")
    before = [guest_variant.key(folder) for folder in (with_modules, without)]
    (tmp_path / "other.py").write_text("")
    monkeypatch.setattr(guest_modules, "__file__", str(tmp_path / "other.py"))
    after = [guest_variant.key(folder) for folder in (with_modules, without)]
    assert before[0] != after[0] and before[1] == after[1]


def test_the_default_guest_does_not_know_of_the_peers() -> None:
    """Its cache key is made of the files in guest/ and of guest_build.py alone."""
    assert not guest_variant.PEERS.is_relative_to(guest_build.SOURCE)
