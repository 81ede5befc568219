# SPDX-License-Identifier: BSD-2-Clause
"""`essd fields requests` names the requests that the firmware has."""

import re

from typer.testing import CliRunner

from essd import cli
from essd.base import paths
from essd.drive import mgmt_words

ROW = re.compile(r'^    \{"([a-z-]+)", \w+, (?:handle|mgmt)_\w+\},$', re.M)


def test_the_words_are_about_the_requests_of_the_firmware() -> None:
    source = (paths.TOP / "firmware/requests/mgmt_requests.c").read_text(encoding="utf-8")
    known = ROW.findall(source)
    told = [name for names in mgmt_words.REQUESTS for name in names.split(", ")]
    assert len(known) > 35 and sorted(told) == sorted(known)


def test_the_requests_are_printed() -> None:
    said = CliRunner().invoke(cli.app, ["fields", "requests"])
    assert said.exit_code == 0 and said.output == mgmt_words.text() + "\n"
    assert max(map(len, said.output.splitlines())) <= mgmt_words.COLUMNS
