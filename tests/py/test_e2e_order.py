# SPDX-License-Identifier: BSD-2-Clause
"""The order in which the end-to-end tests' files are given to workers."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from essd.base import paths

FOLDER = paths.TOP / "tests/e2e"


@pytest.fixture(scope="module")
def conftest() -> ModuleType:
    """The conftest of the end-to-end tests, which is not that of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FOLDER), *sys.path])
        spec = importlib.util.spec_from_file_location("e2e_conftest", FOLDER / "conftest.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def item(file: str, is_uml: bool) -> Any:
    return SimpleNamespace(path=Path(file), get_closest_marker=lambda name: (
        True if name == "uml" and is_uml else None))


def test_files_of_both_kinds_take_turns_and_end_together(conftest: ModuleType) -> None:
    files = [("a", False, 1), ("b", True, 2), ("c", True, 1), ("d", True, 4), ("e", False, 3),
             ("f", True, 3)]
    items = [item(file, is_uml) for file, is_uml, count in files for _ in range(count)]
    found = conftest.mixed(items)
    assert [test.path.name for test in found] == [*"dddd", *"eee", *"fff", *"bb", "a", "c"]
    assert sorted(map(id, found)) == sorted(map(id, items))


@pytest.mark.parametrize("is_uml", [True, False])
def test_one_kind_alone_has_the_files_with_most_tests_first(conftest: ModuleType,
                                                            is_uml: bool) -> None:
    items = [item(file, is_uml) for file in "abbccc"]
    assert [test.path.name for test in conftest.mixed(items)] == [*"ccc", *"bb", "a"]
    assert conftest.mixed([]) == []
