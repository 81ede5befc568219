# SPDX-License-Identifier: BSD-2-Clause
"""Ctrl-C ends a real `essd up` with its machines, and a real `essd conform`."""

import sys
from pathlib import Path

import pytest
from conftest import SESSION
from marked import Command

from essd.base import paths
from essd.instance.instance import Instance
from essd.setup import instances

START_S = 600       # includes builds


def essd(tmp_path: Path, *words: str) -> Command:
    return Command([sys.executable, "-m", "essd", *words], tmp_path, tmp_path / "output")


def machines(command: Command) -> list[str]:
    return [text for text in command.left() if "-nodefaults" in text]


@pytest.mark.drive
def test_ctrl_c_ends_an_up_that_waits_for_the_host(tmp_path: Path) -> None:
    instance = Instance(f"{SESSION}-stop")
    up = essd(tmp_path, "up", "--name", instance.name)
    try:
        up.wait_for(lambda: len(machines(up)) == 2 and "host" in (
            instance.status()["parts"] if instance.is_running else ()), START_S)
        assert up.interrupt("Ctrl-C") == 130
        up.check_nothing_left()
    finally:
        up.end()
    assert "ended what this command had started (host, drive)" in up.output()
    assert not [path for path in instance.folder.iterdir() if path.is_socket()]
    instances.remove(instance.name)


@pytest.mark.drive
def test_ctrl_c_ends_a_conform_and_deletes_its_drive(tmp_path: Path) -> None:
    conform = essd(tmp_path, "conform", "--only", "smoke,eth")
    try:
        conform.wait_for(lambda: len(machines(conform)) == 1
                         and any("/essd_conform " in text for text in conform.left()), START_S)
        name = f"conform-{conform.process.pid}"
        assert (paths.drives() / name).exists()
        assert conform.interrupt("Ctrl-C") == 130
        conform.check_nothing_left()
    finally:
        conform.end()
    assert not (paths.drives() / name).exists()
    assert not paths.instance(name).exists()
