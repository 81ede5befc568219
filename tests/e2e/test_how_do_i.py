# SPDX-License-Identifier: BSD-2-Clause
"""The recipes of docs/how-do-i.md are executed from top to bottom, as one session."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_tutorials import BLOCK, TOP, copy_tree, shell

from essd.instance.instance import Instance
from essd.setup import setup

pytestmark = [pytest.mark.drive, pytest.mark.long]
PAGE = TOP / "docs/how-do-i.md"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the tree, for a user of whom no other instance runs."""
    runtime = tempfile.mkdtemp(prefix="how-")   # a socket's path must be short
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    yield copy_tree(tmp_path / "essd")
    Instance("how").stop()
    setup.forget("how")
    shutil.rmtree(runtime)


def test_the_recipes_work_one_after_the_other(copy: Path) -> None:
    for commands, _ in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        done = shell(commands, copy)
        assert done.returncode == 0, f"{commands}\n{done.stdout[-3000:]}"
