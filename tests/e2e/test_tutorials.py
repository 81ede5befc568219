# SPDX-License-Identifier: BSD-2-Clause
"""The tutorials in docs/tutorials are executed, so that they cannot become wrong.

Each block of `sh` runs in a copy of this tree; the lines of a block of `text` that
follows it must appear in its output, in their order.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from essd.base.paths import TOP
from essd.instance.instance import Instance
from essd.setup import setup

pytestmark = [pytest.mark.drive, pytest.mark.long]
TUTORIALS = sorted((TOP / "docs/tutorials").glob("*.md"))
BLOCK = re.compile(r"```sh\n(.*?)```\n(?:```text\n(.*?)```\n)?", re.S)
SECONDS = 900


def copy_tree(tree: Path) -> Path:
    """A copy of the tree, in which commands of a document may change files."""
    shutil.copytree(TOP, tree, symlinks=True,
                    ignore=shutil.ignore_patterns(".git", "build", "__pycache__"))
    return tree


def shell(commands: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a block of commands, until the first one that fails."""
    return subprocess.run(["bash", "-e", "-c", commands], cwd=folder, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
                          env=os.environ)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    yield copy_tree(tmp_path / "essd")
    Instance("tutorial").stop()
    setup.forget("tutorial")


def appear_in_order(lines: list[str], output: str) -> bool:
    at = 0
    for line in lines:
        at = output.find(line, at)
        if at < 0:
            return False
        at += len(line)
    return True


def test_every_tutorial_has_commands_and_expected_output() -> None:
    assert len(TUTORIALS) == 3
    for path in TUTORIALS:
        blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
        assert len(blocks) >= 3 and sum(bool(text) for _, text in blocks) >= 2, path.name


def contents(tree: Path) -> dict[str, bytes]:
    """The files of a checkout, without what is built."""
    return {name: path.read_bytes() for path in tree.rglob("*") if path.is_file()
            and not (name := path.relative_to(tree).as_posix()).startswith("build/")
            and "__pycache__" not in name}


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_does_what_it_says(path: Path, copy: Path) -> None:
    before = contents(copy)
    for commands, expected in BLOCK.findall(path.read_text(encoding="utf-8")):
        done = shell(commands, copy)
        assert done.returncode == 0, f"{commands}\n{done.stdout[-3000:]}"
        assert appear_in_order(expected.splitlines(), done.stdout), \
            f"{commands}\n{done.stdout[-3000:]}"
    assert contents(copy) == before, "the tutorial leaves files or changes in the checkout"
