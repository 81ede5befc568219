# SPDX-License-Identifier: BSD-2-Clause
"""`essd media`: what is on a drive's NAND array, whether it is in order, and its age."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ...base import show
from ...base.errors import EssdError
from ..base import App, AsJson, LOOK, Part, app
from .run import can_ask
from .snapshot import Of, instance_of

media = App(
    help="Look at the NAND array of a drive, or, while it is off, check or age it: wear, "
         "fill, bad blocks (docs/nand.md).", no_args_is_help=True)
app.add_typer(media, name="media", rich_help_panel=LOOK)


@media.command()
def info(part: Part = "", name: Of = "", as_json: AsJson = False) -> None:
    """Show what the array is, its fill, its wear and its bad blocks."""
    run("info", part, name, as_json)


@media.command("map")
def show_map(part: Part = "", name: Of = "", as_json: AsJson = False,
             html: Annotated[Path | None, typer.Option(
                 metavar="FILE", help="Write a page to FILE instead.")] = None) -> None:
    """Show what each superblock of the flash holds, and how busy each die is."""
    from ...observe import flash_map, flash_page
    if as_json:
        show.only_data()
    facts = flash_map.read(instance_of(name), part)
    if html is not None:
        try:
            html.write_text(flash_page.page(facts), encoding="utf-8")
        except OSError as error:
            raise EssdError(f"--html {html}: {error.strerror}") from None
        show.note(f"wrote {html}")
    elif as_json:
        print(json.dumps(facts, indent=2))
    else:
        for line in flash_map.lines(facts):
            show.console.print(line)


@media.command()
def check(part: Part = "", name: Of = "", as_json: AsJson = False) -> None:
    """Read the whole array and report what is damaged.  Exit status 1 if something is."""
    run("check", part, name, as_json)


@media.command()
def age(part: Part = "", name: Of = "",
        erasures: Annotated[int, typer.Option(
            min=0, max=1_000_000, metavar="N", help="Add N erasures to those that each block "
            "has had.")] = 0,
        reads: Annotated[int, typer.Option(
            min=0, max=0xffffffff, metavar="N", help="Add N reads to those that each block "
            "has had since its last erasure (read disturb).")] = 0,
        bad: Annotated[bool, typer.Option(
            "--bad", help="Mark the blocks as bad, as the factory does.  They must never have "
            "been in use.  Needs --at.")] = False,
        place: Annotated[str, typer.Option(
            "--at", metavar="PLACE", help="Apply --erasures, --reads and --bad to these blocks "
            "only: channel=0,die=1,plane=0-3,block=17.  A key that is left "
            "out matches all.")] = "",
        days: Annotated[int, typer.Option(
            min=0, max=36_500, metavar="N", help="Days that pass while the drive is "
            "off, after the writes.")] = 0,
        fill: Annotated[int | None, typer.Option(
            min=1, max=100, metavar="PERCENT", help="Precondition the drive: write this share "
            "of each namespace sequentially.  Its data are lost.")] = None,
        drive_writes: Annotated[int, typer.Option(
            min=0, max=100, metavar="N", help="With --fill: then write the capacity of the "
            "namespaces N times, to random units of 4 KiB of this share.")] = 0,
        sequential: Annotated[bool, typer.Option(
            "--sequential", help="With --drive-writes: write sequentially.")] = False,
        seed: Annotated[int, typer.Option(
            min=0, max=(1 << 63) - 1, metavar="N", help="Chooses the random units: the same "
            "seed gives the same array.")] = 1,
        yes: Annotated[bool, typer.Option(
            "--yes", "-y", help="Do not ask before data are overwritten.")] = False) -> None:
    """Age the array of a drive that is off: add erasures, reads, bad blocks and days, or
    precondition it.

    The data stay, unless --fill preconditions the drive.  Then the drive's translation layer
    writes patterns to the array, as if hosts had written them.
    """
    from ...storage import nand_look
    if fill is None and (drive_writes or sequential):
        raise EssdError("media age: --drive-writes and --sequential need --fill PERCENT")
    if not (erasures or reads or bad or days or fill is not None):
        raise EssdError("media age: give --erasures N, --reads N, --bad, --days N, "
                        "--fill PERCENT, or several of them")
    if place and not (erasures or reads or bad):
        raise EssdError("media age: --at needs --erasures, --reads or --bad")
    if bad and not place:
        raise EssdError("media age: --bad needs --at PLACE, because a drive needs blocks that "
                        "are not bad")
    name = instance_of(name)
    options = ["--erasures", str(erasures), "--reads", str(reads), "--days", str(days),
               "--at", place, *["--bad"] * bad]
    if fill is None:
        nand_look.age(name, part, *options)
    else:
        ask_to_overwrite(name, part, fill, yes)
        show.note(nand_look.precondition(
            name, part, nand_look.Fill(fill, drive_writes, sequential, seed), *options))
    if erasures or reads or days:
        blocks = f"each block of {place}" if place else "each block"
        show.note(f"aged by {erasures} erasures and {reads} reads of {blocks}, and by {days} "
                  "days")
    if bad:
        show.note(f"the blocks of {place} are marked as bad")


def ask_to_overwrite(name: str, part: str, percent: int, yes: bool) -> None:
    from ...storage import nand_look
    instance, _ = nand_look.opened_array(name, part)
    if yes:
        return
    if not can_ask():
        raise EssdError("media age: --fill overwrites data, and cannot ask, because the input "
                        "is not a terminal: give --yes")
    if not typer.confirm(f"Overwrite {percent}% of each namespace of {instance.the_drive} of "
                         f"{name}?"):
        raise EssdError("media age: nothing was written")


def run(what: str, part: str, name: str, as_json: bool) -> None:
    from ...observe import flash_map
    from ...storage import nand_look
    if as_json:
        show.only_data()
    options = ["--json"] if as_json else []
    done = (flash_map.info(instance_of(name), part, *options) if what == "info" else
            nand_look.run(what, instance_of(name), part, *options))
    print(json.dumps(done.facts, indent=2) if as_json else done.text, end="\n" * as_json)
    if done.complaint:
        show.error(done.complaint)
        raise typer.Exit(1)
