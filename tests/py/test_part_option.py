# SPDX-License-Identifier: BSD-2-Clause
"""One way to name a part for every command: --part.  Older spellings go on working."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from fake_supervisor import FakeSupervisor
from typer.testing import CliRunner

from essd import cli
from essd.base import paths
from essd.cli.base import Group, renamed


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, Group):
            yield f"{before}{name}", command
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


ALL = dict(commands(typer.main.get_command(cli.app)))
WITH_PART = [name for name, command in ALL.items()
             if any("--part" in option.opts for option in command.params)]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSupervisor]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "data"))
    with FakeSupervisor("lab") as lab:
        yield lab


def test_every_command_names_a_part_in_the_same_way() -> None:
    assert len(WITH_PART) > 25
    for name, command in ALL.items():
        shown = {text for option in command.params for text in option.opts}
        if name != "conform":       # --drive is how it drives the program: no part
            assert "--drive" not in shown, name
        for option in command.params:
            metavar = str(option.metavar)
            assert metavar not in ("[PART]", "[DRIVE]", "PART...", "[SNAPSHOT|PART]"), name


@pytest.mark.parametrize("words", [("--part", "drive"), ("--part=drive",), ("--drive", "drive"),
                                   ("--drive=drive",), ("drive",)])
def test_older_spellings_go_on_working(lab: FakeSupervisor, words: tuple[str, ...]) -> None:
    for command in ("reset", "power-cut"):
        done = CliRunner().invoke(cli.app, [command, *words])
        assert done.exit_code == 0, done.output
        assert (lab.asked[-1]["command"], lab.asked[-1]["part"]) == (command, "drive")


@pytest.mark.parametrize("words", [("nobody",), ("--part", "nobody"), ("--drive", "nobody")])
def test_a_wrong_part_is_refused_in_each_spelling(
        lab: FakeSupervisor, words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli.app, ["reset", *words])
    assert done.exit_code != 0 and "nobody" in str(done.exception)


def test_words_after_two_dashes_are_not_changed() -> None:
    assert renamed(["--drive", "a", "--", "--drive"]) == ["--part", "a", "--", "--drive"]
    assert renamed(["--driver", "x"]) == ["--driver", "x"]


def test_more_than_one_part_is_refused(lab: FakeSupervisor) -> None:
    for words in (("reset", "a", "b"), ("reset", "--part", "a", "b")):
        done = CliRunner().invoke(cli.app, words)
        assert done.exit_code == 2 and "unexpected extra argument" in done.output


@pytest.mark.parametrize(("words", "meant"), [
    (("pu",), "up"), (("dwon",), "down"), (("media", "inf"), "info"), (("faults", "oad"), "load"),
    (("firmware", "pdate"), "update"), (("power",), "power-on")])
def test_a_wrong_command_suggests_the_nearest(words: tuple[str, ...], meant: str) -> None:
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 2
    assert f"no such command {words[-1]!r}; did you mean {meant}?" in \
        " ".join(re.sub("[│╭╰─╮╯]", " ", done.output).split())


def test_the_documents_name_parts_with_the_option() -> None:
    """No command in a document has a part without --part."""
    alone = [name for name in WITH_PART if not any(
        option.param_type_name == "argument" for option in ALL[name].params)]
    pattern = re.compile(rf"essd ({'|'.join(alone)}) '?(drive|host|peer|switch)")
    found = [f"{path.name}: {line}" for folder in ("docs", "examples", "README.md")
             for path in [paths.TOP / folder, *(paths.TOP / folder).rglob("*")]
             if path.suffix in (".md", ".yaml") for line in path.read_text().splitlines()
             if pattern.search(line) or re.search("essd .*--drive ", line)]
    assert found == []
