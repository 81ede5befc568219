# SPDX-License-Identifier: BSD-2-Clause
"""Two checkouts of one user that build at once share the folders with downloads."""

import threading
from pathlib import Path

import pytest

from essd.build import qemu_build

OTHER_S = 2.0       # so long, the other build has time to come in between


def make_pip(folder: Path, **_: object) -> None:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "pip").touch()


def test_two_builds_do_not_take_each_others_python_packages_away(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second build begins while the first one is in the middle of its download."""
    monkeypatch.setattr(qemu_build, "cache", lambda: tmp_path)
    monkeypatch.setattr(qemu_build.venv, "create", make_pip)
    log = tmp_path / "log"
    found: list[Path] = []
    second = threading.Thread(target=lambda: found.append(qemu_build.fetch_wheels(log)))
    downloads = 0

    def download(command: list[str], _log: Path, _what: str) -> None:
        nonlocal downloads
        fresh = Path(command[command.index("--dest") + 1])
        (fresh / "one.whl").touch()
        downloads += 1
        if downloads == 1:
            second.start()
            second.join(OTHER_S)
        (fresh / "two.whl").touch()

    monkeypatch.setattr(qemu_build, "run_logged", download)
    found.append(qemu_build.fetch_wheels(log))
    second.join(60)
    assert len(found) == 2 and found[0] == found[1]
    assert sorted(path.name for path in found[0].iterdir()) == ["one.whl", "two.whl"]
    assert downloads == 1
