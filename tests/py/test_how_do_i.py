# SPDX-License-Identifier: BSD-2-Clause
"""Every command line of essd in the documents has options that exist: in blocks and in text.

Nothing is executed; tests/e2e/test_how_do_i.py and test_tutorials.py do that.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
import typer.exceptions

from essd import cli
from essd.base import chosen, paths
from essd.base.errors import EssdError
from essd.drive import fault_rules
from essd.observe import trace
from essd.setup import settings_cmd

PAGES = [*sorted((paths.TOP / "docs").rglob("*.md")), paths.TOP / "README.md",
         paths.TOP / "CONTRIBUTING.md", paths.TOP / "SECURITY.md"]
HOW = paths.TOP / "docs/how-do-i.md"
BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```", re.S | re.M)
FENCED = re.compile(r"^(```|~~~).*?^\1", re.S | re.M)
# A command in the text, such as `essd up` or `./essd port 0`.
SPAN = re.compile(r"(?<!`)`(?:\./)?essd ([^`]+)`(?!`)")
# A command in the text may leave out what a reader has to add.
INCOMPLETE = ("requires an argument", "Missing argument")
PROGRAM = typer.main.get_command(cli.app)
# Words that end a command in a shell.
ENDS = {"|", "&", ";", "&&", "||", ">", "<", "2>", ")", "2>&1"}


@pytest.fixture(autouse=True)
def no_running_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing asks which instance runs; others may run on this machine at the same time."""
    monkeypatch.setattr(chosen, "instance", lambda name: name or "default")


def command_lines(text: str) -> Iterator[str]:
    """The command lines of all blocks, with continued lines joined."""
    for block in BLOCK.findall(text):
        rest = block.replace("\\\n", " ")
        for found in re.finditer(r"(?:^|&& |; |bash )\./essd ", rest, re.M):
            yield whole_line(rest, found.end())


def whole_line(text: str, at: int) -> str:
    """The text from there to the end of the line on which its quotes are closed."""
    end = text.find("\n", at)
    while True:
        line = re.sub(r"(^|\s)#.*", "", text[at:end if end >= 0 else len(text)])
        if end < 0 or (line.count("'") % 2 == 0 and line.count('"') % 2 == 0):
            return line
        end = text.find("\n", end + 1)


def words_of(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words = []
    for word in lexer:
        if word in ENDS or word[0] in "|&;<>":
            break
        words.append(word)
    return words


def parse(command: Any, words: list[str], name: str = "essd", parent: Any = None) -> str:
    """Parse the words as the program does, but run nothing; return the command."""
    with command.make_context(name, list(words), parent=parent) as context:
        rest = [*getattr(context, "_protected_args", []), *context.args]
        if not rest or not hasattr(command, "resolve_command"):
            return name
        found, sub, remaining = command.resolve_command(context, rest)
        return parse(sub, remaining, found, context)


def all_lines() -> list[tuple[str, str]]:
    return [(str(page.relative_to(paths.TOP)), line) for page in PAGES
            for line in command_lines(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page, line", all_lines())
def test_a_command_line_of_a_document_is_one_that_essd_accepts(
        page: str, line: str) -> None:
    try:
        assert parse(PROGRAM, words_of(line)) != "essd" or line == "--help"
    except typer.exceptions.TyperException as error:
        pytest.fail(f"{page}: ./essd {line}: {error.format_message()}")
    except typer.Exit:
        pass                    # --help, --version


def commands_in_text(text: str) -> Iterator[str]:
    """The commands in code spans outside of blocks.

    Options of the program itself are left out: parsing --install-completion would
    install it.
    """
    for found in SPAN.findall(FENCED.sub("", text)):
        line = " ".join(found.split()).replace("\\|", "|")
        if not line.startswith("-"):
            yield line


def mistake_in_text(line: str) -> str:
    """What is wrong with a command in the text; "" if only something is left out."""
    try:
        return "" if parse(PROGRAM, words_of(line)) != "essd" else "there is no command"
    except typer.exceptions.TyperException as error:
        why = str(error.format_message())   # empty for a group, such as essd media
        return "" if any(text in why for text in INCOMPLETE) else why
    except typer.Exit:          # an option that prints something and ends, as config --keys
        return ""


def test_commands_in_the_text_of_documents_exist() -> None:
    found = [f"{page.relative_to(paths.TOP)}: essd {line}: {why}" for page in PAGES
             for line in commands_in_text(page.read_text(encoding="utf-8"))
             if (why := mistake_in_text(line))]
    assert found == []


@pytest.mark.parametrize("line", ["mgmt list", "up --drive 4", "faults frob"])
def test_a_mistake_in_the_text_is_noticed(line: str) -> None:
    assert mistake_in_text(line)


def test_commands_are_read_from_the_text() -> None:
    text = ("Type `./essd up\n--port0 10.0.0.1/24` or `essd port 0\\|1`, not\n"
            "```\nx `essd fly`\n```\n`./essd --help`, ``essd x``.\n")
    assert list(commands_in_text(text)) == ["up --port0 10.0.0.1/24", "port 0|1"]
    assert mistake_in_text("rm") == mistake_in_text("media") == ""


def check_meaning(words: list[str]) -> None:
    """What the options mean: keys of the configuration, fault rules, trace groups."""
    for option, value in zip(words, words[1:], strict=False):
        if option == "--set" and value != "KEY=VALUE":
            assert settings_cmd.read_words([value])[1] == []
        elif option == "--events":
            trace.mask_of(value)
        elif words[0] == "faults" and " do " in value:
            fault_rules.parse_line(value).check()


@pytest.mark.parametrize("page, line", all_lines())
def test_keys_rules_and_groups_of_a_document_exist(page: str, line: str) -> None:
    try:
        check_meaning([word for word in words_of(line) if word != "--part"])
    except EssdError as error:
        pytest.fail(f"{page}: ./essd {line}: {error}")


@pytest.mark.parametrize("line", [
    "config --set lldp.system-name=x", "trace --events cable",
    "faults add 'nvme opcode=read do explode'"])
def test_a_key_rule_or_group_that_does_not_exist_is_noticed(line: str) -> None:
    with pytest.raises((AssertionError, EssdError)):
        check_meaning(words_of(line))


@pytest.mark.parametrize("line", ["up --drive 4", "fly", "faults ad 'x'", "port 2x"])
def test_a_mistake_in_a_command_line_is_noticed(line: str) -> None:
    with pytest.raises(typer.exceptions.TyperException):
        parse(PROGRAM, words_of(line))


def test_lines_and_words_are_read_as_a_shell_reads_them() -> None:
    text = "```sh\n./essd host -- 'a\n  b' \\\n   -c | tail -1   # why\n./essd top\n```\n"
    assert [words_of(line) for line in command_lines(text)] == [
        ["host", "--", "a\n  b", "-c"], ["top"]]


def test_the_page_has_twenty_recipes_or_more() -> None:
    recipes = re.findall(r"^\*\*… (.+\?)\*\*", HOW.read_text(encoding="utf-8"), re.M)
    assert len(recipes) == len(set(recipes)) and 20 <= len(recipes) <= 40
