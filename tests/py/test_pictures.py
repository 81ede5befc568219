# SPDX-License-Identifier: BSD-2-Clause
"""The pictures of the documents: state machines as the code asserts them."""

import importlib.util
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from essd.base import paths

TABLE = """
/* Allowed transitions; every state may also go to OFF and ERROR. */
static const uint8_t door_next[DOOR_STATES] = {
    [DOOR_SHUT] = BIT(DOOR_OPEN) | /* pushed */
                  BIT(DOOR_LOCKED),
    [DOOR_OPEN] = 0x7 & ~BIT(DOOR_OPEN),
    [DOOR_LOCKED] =
        BIT(DOOR_SHUT),
};
"""


@pytest.fixture
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "check_pictures", paths.TOP / "tools/check_pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_table_of_transitions_is_read_from_the_source(pictures) -> None:
    machine = pictures.read_table(TABLE, "door_next", "DOOR_")
    assert machine.moves == {"SHUT": ["OPEN", "LOCKED"], "OPEN": ["SHUT", "LOCKED"],
                             "LOCKED": ["SHUT"]}
    assert machine.always == ["OFF", "ERROR"]


@pytest.mark.parametrize("text, name", [
    (TABLE, "gate_next"), (TABLE.replace("0x7", "f(1)"), "door_next")])
def test_a_table_that_cannot_be_read_is_an_error(pictures, text: str, name: str) -> None:
    with pytest.raises(pictures.PictureError):
        pictures.read_table(text, name, "DOOR_")


def test_every_asserted_table_of_the_target_has_a_picture(pictures) -> None:
    """A new table in the target, the CM or the queue pairs needs a row in states.toml."""
    listed = (pictures.FOLDER / "states.toml").read_text()
    for folder in ("nvmeof", "net/cm", "net/verbs"):
        for path in (paths.TOP / folder).rglob("*.c"):
            for name in re.findall(r"^static const uint\d+_t (\w*next\w*)\[\w+STATES\]",
                                   path.read_text(), re.M):
                assert f'file = "{path.relative_to(paths.TOP)}"\ntable = "{name}"' in listed


def test_a_changed_transition_makes_the_picture_stale(
        pictures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "docs/pictures"
    shutil.copytree(pictures.FOLDER, folder)
    for name in re.findall(r'file = "(.+)"', (folder / "states.toml").read_text()):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paths.TOP / name, tmp_path / name)
    monkeypatch.setattr(pictures, "TOP", tmp_path)
    monkeypatch.setattr(pictures, "FOLDER", folder)
    assert pictures.complaints(write=False) == []
    source = tmp_path / "nvmeof/target/connect/ctrl.c"
    source.write_text(source.read_text().replace("[CTRL_FREE] = BIT(CTRL_UNPROVEN)",
                                                 "[CTRL_FREE] = BIT(CTRL_READY)"))
    (folder / "old.svg").write_text("<svg/>")
    assert [text.partition(":")[0] for text in pictures.complaints(write=False)] == [
        "docs/pictures/states-controller.svg", "docs/pictures/old.svg"]


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_every_picture(pictures) -> None:
    for source, text in pictures.sources().values():
        svg = pictures.render(source, text)
        assert pictures.mark(source, text) in svg and svg.endswith("</svg>\n")
