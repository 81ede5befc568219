# SPDX-License-Identifier: BSD-2-Clause
"""The names of the instances that the end-to-end tests start."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from essd.base import paths


@pytest.fixture(scope="module")
def names() -> ModuleType:
    spec = importlib.util.spec_from_file_location("e2e_names", paths.TOP / "tests/e2e/names.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_runs_in_two_checkouts_have_instances_of_their_own(names: ModuleType,
                                                           tmp_path: Path) -> None:
    worker = {"PYTEST_XDIST_WORKER": "gw3"}
    found = [names.session(environ, tmp_path / checkout)
             for checkout in ("one", "two") for environ in ({}, worker)]
    assert len({*found}) == 4
    assert found[1] == found[0] + "w3" and found[0] == names.base(worker, tmp_path / "one")


def test_one_checkout_has_one_name_by_whatever_path(names: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to("one")
    assert names.base({}, tmp_path / "link") == names.base({}, tmp_path / "one")


def test_a_name_can_be_given(names: ModuleType) -> None:
    assert names.session({"ESSD_E2E": "mine", "PYTEST_XDIST_WORKER": "gw0"}) == "minew0"
