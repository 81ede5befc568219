# SPDX-License-Identifier: BSD-2-Clause
"""`essd media`: what is on a drive's NAND array, and whether its file is in order."""

import json

import typer

from ... import show
from ..base import LOOK, AsJson, Part, app
from .snapshot import Of, instance_of

media = typer.Typer(
    help="Look at the NAND array of a drive that is off: wear, fill, bad blocks "
         "(docs/nand.md).", no_args_is_help=True)
app.add_typer(media, name="media", rich_help_panel=LOOK)


@media.command()
def info(part: Part = "", name: Of = "", as_json: AsJson = False) -> None:
    """Show what the array is, its fill, its wear and its bad blocks."""
    run("info", part, name, as_json)


@media.command()
def check(part: Part = "", name: Of = "", as_json: AsJson = False) -> None:
    """Read the whole array and report what is damaged.  Exit status 1 if something is."""
    run("check", part, name, as_json)


def run(what: str, part: str, name: str, as_json: bool) -> None:
    from ... import nand_look
    if as_json:
        show.only_data()
    done = nand_look.run(what, instance_of(name), part, as_json)
    print(json.dumps(done.facts, indent=2) if as_json else done.text, end="\n" * as_json)
    if done.complaint:
        show.error(done.complaint)
        raise typer.Exit(1)
