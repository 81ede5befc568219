# SPDX-License-Identifier: BSD-2-Clause
"""Tarballs from Debian's source packages, without a mirror."""

import hashlib
import threading
import time
from pathlib import Path

import pytest

from essd.build import debian_source
from essd.build.debian_source import Release, Source

CONTENTS = {"one.tar": b"one", "two.tar": b"two"}


def source(file: str) -> Source:
    release = Release("1", file, hashlib.sha256(CONTENTS[file]).hexdigest())
    return Source(file, file, (release,), "here")


class FakeApt:
    """Fails, as apt does, while another one has the same state."""

    runs = 0
    alone = threading.Lock()

    def __init__(self, _folder: Path, _log: Path) -> None:
        pass

    def sources(self, package: str) -> dict[str, dict[str, str]]:
        assert self.alone.acquire(blocking=False), "two at once"
        time.sleep(0.05)
        self.alone.release()
        return {"1": {package: source(package).releases[0].sha256}}

    def download(self, package: str, _version: str, folder: Path) -> bool:
        FakeApt.runs += 1
        (folder / package).write_bytes(CONTENTS[package])
        return True


def test_builds_beside_each_other_use_apt_in_turns(monkeypatch: pytest.MonkeyPatch,
                                                   tmp_path: Path) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path))
    monkeypatch.setattr(debian_source, "PrivateApt", FakeApt)
    found: list[Path] = []

    def fetch(file: str) -> None:
        found.append(debian_source.fetch(source(file), lambda _text: None, tmp_path / "log"))

    threads = [threading.Thread(target=fetch, args=(file,)) for file in [*CONTENTS] * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.name for path in found) == sorted([*CONTENTS] * 3)
    assert FakeApt.runs == len(CONTENTS)    # What one has downloaded, the next one uses.
