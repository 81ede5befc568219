# SPDX-License-Identifier: BSD-2-Clause
"""Commands about the documentation of essd itself."""

from pathlib import Path
from typing import Annotated

import typer

from ...base import show
from ..base import DEVELOP, LOOK, app, command


@command(LOOK)
def fields(words: Annotated[list[str] | None, typer.Argument(
               metavar="[COMMAND]", help="A command, such as port, or its first word; "
               "requests: those of the management channel.  Default: list the commands."
               )] = None) -> None:
    """Say what the fields mean that a command prints with --json (see docs/json.md)."""
    from ...drive import mgmt_words
    from .. import json_fields
    if words == ["requests"]:
        show.line(mgmt_words.text())
    elif words:
        show.line("\n\n".join(map(json_fields.text, json_fields.titles(words))))
    else:
        show.line("\n".join(json_fields.tables()))


@command(DEVELOP)
def man(folder: Annotated[Path, typer.Argument(
            metavar="DIR", help="Folder for the pages; they go into man1 below it.")]
        ) -> None:
    """Write a manual page for each command, made from its help.

    Read one with `man -M DIR essd-up`.
    """
    from typer.main import get_command

    from ...build import fw_build
    from .. import man as man_module
    written = man_module.write(folder, get_command(app), fw_build.version())
    show.note(f"wrote {len(written)} pages into {written[0].parent}")
