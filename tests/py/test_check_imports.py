# SPDX-License-Identifier: BSD-2-Clause
"""tools/check_imports.py finds imports that packages of essd may not make, and no others."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))      # for what the check itself imports
SPEC = importlib.util.spec_from_file_location("check_imports", TOP / "tools/check_imports.py")
assert SPEC is not None and SPEC.loader is not None
check_imports = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_imports)


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {"low": [], "high": ["low"]}
    monkeypatch.setattr(check_imports, "MAY_IMPORT", rows)
    return rows


def complaints(folder: Path, **files: str) -> list[str]:
    """The complaints about these files, beside one that makes the permitted import."""
    for name, text in {"high__user": "from ..low import a\n", **files}.items():
        path = folder / f"{name.replace('__', '/', 1)}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    found: list[str] = check_imports.complaints(folder)
    return found


def test_a_package_may_import_itself_and_what_its_row_names(tmp_path: Path) -> None:
    assert complaints(tmp_path, high__b="from . import a\nfrom ..low.a import f\nimport os\n",
                      low__a="from .b import g\n") == []


@pytest.mark.parametrize("text, line", [
    ("from ..high import b\n", 1),
    ("from ..high.b import f\n", 1),
    ("from essd.high import b\n", 1),
    ("import essd.high.b\n", 1),
    ("from .. import high\n", 1),
    ("def f():\n    from ..high import b\n    return b\n", 2),
    ("if TYPE_CHECKING:\n    from ..high.b import B\n", 2)])
def test_an_import_that_no_row_permits_is_found_wherever_it_is(
        tmp_path: Path, text: str, line: int) -> None:
    assert complaints(tmp_path, low__a=text) == [f"low/a.py:{line}: low may not import high"]


def test_every_module_is_in_a_package_that_has_a_row(tmp_path: Path) -> None:
    assert complaints(tmp_path, stray="", __main__="", other__a="") == [
        "other/a.py: MAY_IMPORT has no row for its package",
        "stray.py: belongs into a package; TOP has the files that do not"]


def test_a_row_cannot_permit_a_circle(tmp_path: Path, rows: dict[str, list[str]]) -> None:
    rows["low"] = ["high"]
    assert complaints(tmp_path, low__a="from ..high import b\n") == [
        "check_imports.py: low may not import high, which does not stand above it"]


def test_a_row_names_nothing_that_is_not_imported(
        tmp_path: Path, rows: dict[str, list[str]]) -> None:
    rows["top"] = ["low"]
    assert complaints(tmp_path, top__a="import low\n") == [
        "check_imports.py: top does not import low any more: take it out"]


def test_the_packages_and_the_table_of_the_document_are_right(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert check_imports.complaints(TOP / "tools/essd") == []
    page = (TOP / check_imports.PAGE).read_text(encoding="utf-8")
    assert check_imports.TABLE.complaints(page, check_imports.cells()) == []
