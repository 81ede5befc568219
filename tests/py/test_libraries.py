# SPDX-License-Identifier: BSD-2-Clause
"""The libraries of others: one module unpacks each of them for CMake."""

import tarfile
from pathlib import Path

import pytest

from essd.build import libraries


@pytest.mark.parametrize("name, kept", [
    ("mbedtls", ["LICENSE", "include/a.h", "library/a.c"]),
    ("libsodium", ["LICENSE", "include/a.h", "library/a.c", "tests/big"]),
    ("lwip", ["LICENSE", "include/a.h", "library/a.c", "tests/big"])])
def test_what_the_builds_need_of_a_tarball_is_unpacked_once(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kept: list[str]) -> None:
    release = libraries.LIBRARIES[name].source.releases[0]
    top = tmp_path / f"{name}-{release.version}"
    for file in ("LICENSE", "include/a.h", "library/a.c", "tests/big"):
        (top / file).parent.mkdir(parents=True, exist_ok=True)
        (top / file).write_text(file)
    tarball = tmp_path / release.file
    with tarfile.open(tarball, "w:gz" if release.file.endswith("gz") else "w:bz2") as archive:
        archive.add(top, top.name)
    asked = []

    def fetch(source: libraries.Source, *_: object) -> Path:
        asked.append(source.package)
        return tarball

    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(libraries, "fetch", fetch)
    folder = libraries.ensure(name)
    assert libraries.ensure(name) == folder
    assert asked == [name]
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")
                  if path.is_file()) == kept


def test_a_library_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert libraries.main(["openssl"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "mbedtls|libsodium|lwip" in said.err
