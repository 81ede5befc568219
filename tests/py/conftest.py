# SPDX-License-Identifier: BSD-2-Clause
"""What every test of the tools begins with."""

import pytest

from essd import show


@pytest.fixture(autouse=True)
def plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands such as --json and --quiet change where this process writes."""
    monkeypatch.setattr(show.console, "stderr", False)
    monkeypatch.setattr(show, "is_quiet", False)
