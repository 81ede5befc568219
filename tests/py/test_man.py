# SPDX-License-Identifier: BSD-2-Clause
"""The manual pages have every command and option, and groff formats them without warnings."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from essd import cli
from essd.cli import man

ROOT = get_command(cli.app)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return man.pages(ROOT, "1.2.3")


def plain(text: str) -> str:
    """A page without fonts and escapes."""
    return re.sub(r"\\f[BIR]", "", text).replace(r"\-", "-").replace(r"\&", "")


def test_each_command_has_a_page_with_all_its_options(pages: dict[str, str]) -> None:
    for name, command, _ in man.walk(ROOT, "essd"):
        text = plain(pages[f"{name.replace(' ', '-')}.1"])
        assert f".SH NAME\n{name.replace(' ', '-')} - " in text
        assert f".SH SYNOPSIS\n{name}" in text
        for parameter in command.params:
            for option in parameter.opts if parameter.param_type_name == "option" else ():
                assert re.search(rf"^([^\n]*, )?{option}\b", text, re.M), (name, option)


def test_the_main_page_lists_the_commands_in_their_groups(pages: dict[str, str]) -> None:
    text = plain(pages["essd.1"])
    assert re.findall(r"^\.SS (.+)$", text, re.M) == list(cli.base.PANELS)
    for command in ROOT.commands:       # type: ignore[attr-defined]
        assert f"\nessd-{command}(1)\n" in text
    assert '"essd 1.2.3"' in text


@pytest.mark.parametrize("text, said", [
    ("a-b", r"a\-b"), (".SH x", r"\&.SH x"), ("'x'", r"\&'x'"), ("a\\b", r"a\eb"),
    ("[bold]essd up[/bold] now", r"\fBessd up\fR now"), ("[N]", "[N]")])
def test_text_is_never_taken_for_a_macro(text: str, said: str) -> None:
    assert man.roff(text) == said


def test_the_command_writes_the_pages_where_man_finds_them(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli.app, ["man", str(tmp_path)])
    assert done.exit_code == 0, done.output
    written = sorted((tmp_path / "man1").iterdir())
    assert f"wrote {len(written)} pages" in done.output
    assert (tmp_path / "man1" / "essd-up.1").exists()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_formats_all_pages_without_a_warning(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8"], input=text, text=True,
                              check=True, capture_output=True, timeout=60)
        assert done.stderr == "", name
