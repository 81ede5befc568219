# SPDX-License-Identifier: BSD-2-Clause
"""What the tutorials' pages must not do; tests/e2e/test_tutorials.py executes them."""

import re

import pytest

from essd.base.paths import TOP

TUTORIALS = sorted((TOP / "docs/tutorials").glob("*.md"))
BLOCK = re.compile(r"```sh\n(.*?)```\n", re.S)
# Where a command of a tutorial writes a file: a redirection, or an option.
WRITES = re.compile(r"(?:(?<![0-9&])>\s*|--(?:perfetto|pcap|write|svg|output|json)[ =])(?!&)(\S+)")
BUILDS = re.compile(r"\./essd (up|flash|conform|bench|test|demo)\b")

pages = pytest.mark.parametrize("page", [path.read_text(encoding="utf-8") for path in TUTORIALS],
                                ids=[path.stem for path in TUTORIALS])


@pages
def test_a_tutorial_writes_no_file_into_the_checkout(page: str) -> None:
    for commands in BLOCK.findall(page):
        for name in WRITES.findall(commands):
            assert name.startswith(("/tmp/", "/dev/")), name
        made = set(re.findall(r"mkdir -p (\S+)", commands))
        assert all(f"rm -r {name}" in page for name in made)


@pages
def test_a_command_that_builds_shows_what_it_does(page: str) -> None:
    for commands in BLOCK.findall(page):
        for line in commands.replace("\\\n", " ").splitlines():
            assert not (BUILDS.search(line) and "> /dev/null" in line), line


@pages
def test_a_breakpoint_of_a_tutorial_is_where_only_its_command_arrives(page: str) -> None:
    """The functions that take every command also take the Connects of a reconnect."""
    for name in re.findall(r"-ex '(?:break|hbreak) (\w+)'", page):
        sources = (TOP / "nvmeof/target").rglob("*.c")
        assert any(re.search(rf"\b{name}\(struct nvmf_target", path.read_text())
                   for path in sources), name
        assert name.endswith("_execute"), name
