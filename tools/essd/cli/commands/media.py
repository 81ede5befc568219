# SPDX-License-Identifier: BSD-2-Clause
"""`essd media`: what is on a drive's NAND array, whether it is in order, and its age."""

import json
from typing import Annotated

import typer

from ... import show
from ...errors import EssdError
from ..base import LOOK, AsJson, Part, app
from .snapshot import Of, instance_of

media = typer.Typer(
    help="Look at the NAND array of a drive that is off, or age it: wear, fill, bad "
         "blocks (docs/nand.md).", no_args_is_help=True)
app.add_typer(media, name="media", rich_help_panel=LOOK)


@media.command()
def info(part: Part = "", name: Of = "", as_json: AsJson = False) -> None:
    """Show what the array is, its fill, its wear and its bad blocks."""
    run("info", part, name, as_json)


@media.command()
def check(part: Part = "", name: Of = "", as_json: AsJson = False) -> None:
    """Read the whole array and report what is damaged.  Exit status 1 if something is."""
    run("check", part, name, as_json)


@media.command()
def age(part: Part = "", name: Of = "",
        erasures: Annotated[int, typer.Option(
            min=0, max=1_000_000, metavar="N", help="Erasures that each block has had in "
            "addition.")] = 0,
        days: Annotated[int, typer.Option(
            min=0, max=36_500, metavar="N", help="Days that pass while the drive is "
            "off.")] = 0) -> None:
    """Make the array older in an instant: wear of all blocks, and time.  Data stay."""
    from ... import nand_look
    if not erasures and not days:
        raise EssdError("media age: give --erasures N, --days N, or both")
    nand_look.run("age", instance_of(name), part, "--erasures", str(erasures),
                  "--days", str(days))
    show.note(f"aged by {erasures} erasures of each block and {days} days")


def run(what: str, part: str, name: str, as_json: bool) -> None:
    from ... import nand_look
    if as_json:
        show.only_data()
    done = nand_look.run(what, instance_of(name), part, *(["--json"] if as_json else []))
    print(json.dumps(done.facts, indent=2) if as_json else done.text, end="\n" * as_json)
    if done.complaint:
        show.error(done.complaint)
        raise typer.Exit(1)
