# SPDX-License-Identifier: BSD-2-Clause
"""tools/release.py tags what is ready, and changes nothing else."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from essd.base import paths

spec = importlib.util.spec_from_file_location("release", paths.TOP / "tools/release.py")
assert spec is not None and spec.loader is not None
release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release)

CHANGES = """# Changes

## 1.2.3 (not released yet)

### Added
* Something new.

## 1.2.2 (2020-01-01)
* Something old.
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@example.com")
    (tmp_path / "firmware/app").mkdir(parents=True)
    (tmp_path / "firmware/app/version.h").write_text('#define ESSD_FW_VERSION "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "all")
    return tmp_path


def git(top: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=top, check=True, text=True,
                          capture_output=True, timeout=60).stdout


def test_without_tag_the_notes_are_shown_and_nothing_changes(checkout, capsys) -> None:
    before = git(checkout, "rev-parse", "HEAD")
    assert release.main([], checkout) == 0
    said = capsys.readouterr().out
    assert "Something new." in said and "Something old." not in said
    assert git(checkout, "rev-parse", "HEAD") == before
    assert git(checkout, "tag") == ""


def test_a_release_dates_its_section_and_tags_the_commit_with_the_notes(
        checkout, capsys) -> None:
    assert release.main(["--tag"], checkout) == 0
    text = (checkout / "CHANGELOG.md").read_text()
    assert re.search(r"^## 1\.2\.3 \(\d{4}-\d\d-\d\d\)$", text, re.M)
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout, "rev-parse", "v1.2.3^{commit}") == git(checkout, "rev-parse", "HEAD")
    message = git(checkout, "tag", "-l", "--format=%(contents)", "v1.2.3")
    assert message.startswith("essd 1.2.3\n\n### Added\n* Something new.")
    assert release.main(["--tag"], checkout) == 1       # it is released already


@pytest.mark.parametrize(("path", "text", "why"), [
    ("CHANGELOG.md", CHANGES + "more\n", "has changes"),
    ("firmware/app/version.h", '#define ESSD_FW_VERSION "1.2.4"\n', "no heading"),
    ("firmware/app/version.h", "nothing", "has no version"),
    ("CHANGELOG.md", CHANGES.replace("* Something new.\n", ""), "says nothing about 1.2.3")])
def test_a_release_that_is_not_ready_is_refused(
        checkout, capsys, path: str, text: str, why: str) -> None:
    (checkout / path).write_text(text)
    assert release.main(["--tag"], checkout) == 1
    assert why in capsys.readouterr().err
    assert git(checkout, "tag") == ""


def test_a_tag_that_exists_is_not_moved(checkout, capsys) -> None:
    git(checkout, "tag", "v1.2.3")
    assert release.main(["--tag"], checkout) == 1
    assert "the tag v1.2.3 exists" in capsys.readouterr().err


def test_a_release_with_stale_figures_is_refused(checkout, capsys) -> None:
    first = git(checkout, "rev-parse", "--short", "HEAD").strip()
    (checkout / "speed.md").write_text(
        f"# Speed\n| measured | 2 January 2020, commit `{first}` |\n|---|---|\n"
        "| command | `essd bench` |\n| of | `firmware` |\n\n100 IOPS\n")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "-m", "figures")
    assert release.main([], checkout) == 0          # nothing of firmware/ has changed
    (checkout / "firmware/new.c").touch()
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "-m", "a change, long after")
    assert release.main(["--tag"], checkout) == 1
    said = capsys.readouterr().err
    assert "speed.md:2" in said and "`essd bench`" in said
    assert git(checkout, "tag") == ""


def test_the_version_of_this_project_has_a_section_in_the_change_log() -> None:
    version = release.version_of(paths.TOP)
    assert f"\n## {version} (" in (paths.TOP / "CHANGELOG.md").read_text()
