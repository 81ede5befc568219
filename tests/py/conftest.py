# SPDX-License-Identifier: BSD-2-Clause
"""What every test of the tools begins with."""

from pathlib import Path

import pytest

from essd import show


@pytest.fixture(autouse=True)
def plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands such as --json and --quiet change where this process writes."""
    monkeypatch.setattr(show.console, "stderr", False)
    monkeypatch.setattr(show, "is_quiet", False)


@pytest.fixture(autouse=True)
def no_drives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees, changes or deletes the drives of whoever runs it."""
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
