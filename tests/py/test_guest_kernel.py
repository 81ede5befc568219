# SPDX-License-Identifier: BSD-2-Clause
"""The lists of kernels that guests have instead of the default one, and what is fetched."""

import hashlib
from pathlib import Path

import pytest

from essd.base import paths
from essd.build import guest_build, guest_kernel, guest_variant
from essd.build.fw_build import BuildError
from essd.build.guest_build import Apt
from essd.build.guest_kernel import Kernel, Package

CONCAT = paths.TOP / "tests/concat/guest"
CONTENT = b"an archive"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
OLD = Package("linux-binary-7.3.4+deb13-amd64", "7.3.4-1~bpo13+1", SHA256)


class Archive(Apt):
    """An archive with the packages that `offered` names, each of which is CONTENT."""

    def __init__(self, archives: Path, offered: dict[str, str]) -> None:
        self.archives = archives
        self.offered = offered
        self.asked: list[str] = []

    def get(self, *arguments: str, cwd: Path | None = None) -> str:
        self.asked.append(arguments[0])
        return ""

    def fetch(self, versions: dict[str, str]) -> list[Path]:
        self.asked.append("fetch")
        for name, version in versions.items():
            if self.offered.get(name) != version:
                raise BuildError(f"apt-get failed (status 100): Version '{version}' for "
                                 f"'{name}' was not found; see log")
            Package(name, version, "").file(self.archives).write_bytes(CONTENT)
        return []


def fetch(archive: Archive, *packages: Package) -> list[Path]:
    kernel = Kernel("trixie-backports", packages, frozenset())
    return guest_kernel.fetch(kernel, archive.archives / "apt", archive.archives,
                              archive.archives / "log", lambda *_: archive)


def test_the_list_says_suite_packages_and_what_is_missing() -> None:
    kernel = guest_variant.kernel_of(CONCAT)
    assert kernel is not None
    assert kernel.suite == "trixie-backports"
    assert {name.split("-")[1] for name in kernel.versions} == {"base", "binary", "modules"}
    assert len(set(kernel.versions.values())) == 1
    known = {line.split()[0] for line in guest_build.read_list("modules.txt")}
    assert kernel.without < known
    assert guest_kernel.read([]) is None
    assert guest_variant.kernel_of(guest_variant.PEERS) is None


@pytest.mark.parametrize("lines, said", [
    (["suite a b"], "kernel.txt: 'suite a b' is neither"),
    (["package linux-image 7.3"], "kernel.txt: 'package linux-image 7.3' is neither"),
    (["package a 1 0f"], "kernel.txt needs one line `suite NAME`"),
    (["suite a", "suite b", "package a 1 0f"], "kernel.txt needs one line `suite NAME`"),
    (["suite a"], "and a line `package NAME VERSION SHA256`")])
def test_a_list_that_says_too_little_is_refused(lines: list[str], said: str) -> None:
    with pytest.raises(BuildError) as caught:
        guest_kernel.read(lines)
    assert said in str(caught.value)


def test_the_packages_replace_the_default_kernel() -> None:
    assert guest_kernel.DEFAULT in guest_variant.packages(guest_variant.PEERS)
    assert guest_kernel.DEFAULT not in guest_variant.packages(CONCAT)


def test_modules_for_the_default_kernel_need_it(tmp_path: Path) -> None:
    (tmp_path / "kernel.txt").write_text(f"suite a\npackage b 1 {SHA256}\n")
    (tmp_path / "sources.txt").write_text("siw drivers/infiniband/sw/siw\n")
    with pytest.raises(BuildError, match="has both kernel.txt and sources.txt"):
        guest_variant.kernel_of(tmp_path)


def test_what_the_cache_has_is_not_downloaded_again(tmp_path: Path) -> None:
    archive = Archive(tmp_path, {OLD.name: OLD.version})
    assert fetch(archive, OLD) == [tmp_path / f"{OLD.name}_{OLD.version}_amd64.deb"]
    assert archive.asked == ["update", "fetch"]
    fetch(archive, OLD)
    assert archive.asked == ["update", "fetch"]


def test_a_version_that_the_archive_no_longer_has_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(guest_kernel.Unavailable) as caught:
        fetch(Archive(tmp_path, {OLD.name: "7.3.5-1~bpo13+1"}), OLD)
    assert str(caught.value).startswith(
        f"trixie-backports of Debian's archive does not have {OLD.name} {OLD.version}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("said, is_unavailable", [
    ("E: Unable to locate package linux-binary-7.3.4", True),
    ("E: Package 'linux-image' has no installation candidate", True),
    ("E: The repository 'http://archive.invalid/debian x Release' does not have a Release file.",
     True),
    ("E: Failed to fetch http://archive.invalid/debian/InRelease  Could not resolve", False),
    ("E: Could not get lock lists/lock. It is held by process 4 (apt-get)", False),
    ("E: Failed to fetch http://archive.invalid/a.deb  404  Not Found", False),
    ("W: Failed to write: No space left on device", False)])
def test_only_what_the_archive_does_not_have_is_unavailable(
        said: str, is_unavailable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive(tmp_path, {})

    def fail(*_words: str) -> str:
        raise BuildError("apt-get failed (status 100)" + guest_build.apt_errors(said))

    monkeypatch.setattr(archive, "get", fail)
    with pytest.raises(BuildError) as caught:
        fetch(archive, OLD)
    assert isinstance(caught.value, guest_kernel.Unavailable) is is_unavailable
    assert guest_build.apt_errors(said) in str(caught.value)


def test_another_content_is_refused(tmp_path: Path) -> None:
    other = Package(OLD.name, OLD.version, hashlib.sha256(b"another").hexdigest())
    with pytest.raises(BuildError, match="does not have the checksum of kernel.txt"):
        fetch(Archive(tmp_path, {OLD.name: OLD.version}), other)


def test_apt_asks_for_the_suite_of_the_list(tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_build, "mirror", lambda: "http://archive.invalid/debian")
    monkeypatch.setattr(guest_build, "KEYRING", tmp_path)
    guest_kernel.SuiteApt("sid", tmp_path / "apt", tmp_path / "debs", tmp_path / "log")
    assert (tmp_path / "apt/sources.list").read_text().endswith(
        " http://archive.invalid/debian sid main\n")


def test_kernel_and_configuration_are_moved_to_boot(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib/modules/7.3.4"
    folder.mkdir(parents=True)
    for name in ("vmlinuz", "config", "modules.order"):
        (folder / name).write_text(name)
    guest_kernel.move_to_boot(tmp_path)
    assert {path.name for path in (tmp_path / "boot").iterdir()} == {
        "vmlinuz-7.3.4", "config-7.3.4"}
    assert [path.name for path in folder.iterdir()] == ["modules.order"]
