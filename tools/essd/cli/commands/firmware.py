# SPDX-License-Identifier: BSD-2-Clause
"""Commands for those who change the firmware."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ...base import chosen, show
from ...instance import fleet
from ...instance.instance import Instance
from .. import completion
from ..base import App, AsJson, DEVELOP, LowerFloor, Name, Part, app, command
from .snapshot import Of, instance_of

firmware = App(
    help="Make, sign and show firmware images, and update the drive's firmware "
         "(docs/firmware-update.md).", no_args_is_help=True)
app.add_typer(firmware, name="firmware", rich_help_panel=DEVELOP)

File = Annotated[Path, typer.Argument(metavar="FILE", help="An image.")]
Key = Annotated[Path | None, typer.Option(
    "--key", metavar="FILE", show_default=False, help="PEM file with a key.")]
Slot = Annotated[str, typer.Option(
    "--slot", metavar="A|B", show_default=False, autocompletion=completion.slots,
    help="Slot to write.  Default: the one that does not run.")]


@command(DEVELOP)
def flash(part: Part = "",
          name: Name = "",
          slot: Annotated[str, typer.Option(
              metavar="A|B", show_default=False, autocompletion=completion.slots,
              help="Slot to write.  Default: the one that does not run.")] = "",
          back: Annotated[bool, typer.Option(
              "--back", help="Build nothing; start the image in the other slot again.")]
          = False,
          lower_floor: LowerFloor = False,
          as_json: AsJson = False) -> None:
    """Build the firmware, write it into a flash slot, and restart the drive with it.

    The host stays.  Data that the drive has not flushed are lost, as in `power-cycle`.
    """
    from ...debug import reflash
    if as_json:
        show.only_data()
    done = reflash.run(fleet.one(Instance(name), part), slot, back, show.note,
                       lower_floor)
    if as_json:
        print(json.dumps(dataclasses.asdict(done), indent=2))
    else:
        total = sum(done.seconds.values())
        show.line(f"running: slot {done.slot}, firmware {done.version}, build "
                  f"{done.build_id[:12]}, after {total:.1f} s")


def the_drive(name: str, part: str) -> Instance:
    return fleet.one(Instance(instance_of(name)), part)


def print_slots(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    for slot, image in facts["slots"].items():
        notes = [note for note, holds in (
            ("runs", slot == facts["running"]),
            ("starts next", slot == facts["starts-next"] != facts["running"]),
            ("on trial", facts["trial"] and slot == facts["starts-next"]),
            ("not proven", slot == facts["unproven"] and image is not None
             and not facts["trial"] and slot != facts["given-up"]),
            ("read-only", slot in facts["read-only"]),
            (f"given up: {facts['given-up-because']}", slot == facts["given-up"]),
            ) if holds]
        what = "empty or damaged" if image is None else (
            f"{image['version']}, {image['bytes']} bytes, build "
            f"{(image['build-id'] or 'unknown')[:12]}"
            + (", signed" if image["signed"] else ""))
        show.line(f"{slot}  {what}" + (f"  ({'; '.join(notes)})" if notes else ""))


@firmware.command("list")
def list_slots(part: Part = "", name: Of = "", as_json: AsJson = False) -> None:
    """Show what the drive's slots hold, which one runs, and which one starts next."""
    from ...setup import firmware_update
    if as_json:
        show.only_data()
    print_slots(firmware_update.slots(the_drive(name, part)), as_json)


@firmware.command()
def pack(output: Annotated[Path, typer.Argument(metavar="FILE",
                                                help="The image's file to write.")],
         binary: Annotated[Path | None, typer.Option(
             "--binary", metavar="FILE", show_default=False,
             help="A flat binary.  Default: the firmware of this checkout, which is "
                  "built.")] = None,
         version: Annotated[str, typer.Option(
             "--version", metavar="TEXT", show_default=False,
             help="Its version.  Default: that of the firmware that is built.")] = "",
         security: Annotated[int, typer.Option(
             "--security", min=0, max=0xffffffff, metavar="N",
             help="Its security version: drives that run a higher one refuse it.")] = 0,
         key: Key = None, as_json: AsJson = False) -> None:
    """Make an image that hosts can download; with --key, sign it."""
    from ...setup import firmware_update
    if as_json:
        show.only_data()
    image = firmware_update.pack(binary, version, security, key, show.note)
    output.write_bytes(image.file())
    print_image(firmware_update.describe(image, key), as_json)


def print_image(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        for name, value in facts.items():
            show.line(f"{name + ':':20} {value}")


@firmware.command("show")
def show_image(file: File, key: Key = None, as_json: AsJson = False) -> None:
    """Check an image and show its header; with --key, check its signature, too.

    Exit status 1 if the signature is not right.
    """
    from ...setup import firmware_update
    if as_json:
        show.only_data()
    facts = firmware_update.describe(firmware_update.load(file), key)
    print_image(facts, as_json)
    if not facts.get("signature-is-right", True):
        show.error(f"{file} is not signed with the key {key}")
        raise typer.Exit(1)


@firmware.command()
def sign(file: File, key: Annotated[Path, typer.Option(
        "--key", metavar="FILE", help="PEM file with the private key.")]) -> None:
    """Sign an image in place."""
    from ...base import files
    from ...setup import firmware_update
    # A symbolic link goes on leading to the image.
    files.replace_file(file.resolve(), firmware_update.load(file).sign(key).file())
    show.note(f"{file} is signed")


@firmware.command("key")
def make_key(file: Annotated[Path, typer.Argument(
        metavar="FILE", help="PEM file; a new private key is written if it does not "
        "exist.")]) -> None:
    """Make a key for signatures, and print its public key; essd up --boot-key uses the file."""
    from ...storage import image
    public = image.public_key(file) if file.exists() else image.make_key(file)
    print(public.hex())


@firmware.command()
def update(file: Annotated[Path | None, typer.Argument(
               metavar="[FILE]", show_default=False,
               help="An image.  Default: the firmware of this checkout, which is "
                    "built.")] = None,
           part: Part = "", name: Of = "", slot: Slot = "",
           store: Annotated[bool, typer.Option(
               "--store-only", help="Do not activate the image.")] = False,
           key: Key = None, as_json: AsJson = False) -> None:
    """Update the drive's firmware through its host, and restart it.

    The image of a drive that is off is written into its flash file.
    """
    from ...setup import firmware_update
    if as_json:
        show.only_data()
    if slot:
        chosen.check_word("--slot", slot, ("A", "B"))
    image = firmware_update.load(file) if file else \
        firmware_update.pack(None, "", 0, None, show.note)
    if key:
        image = image.sign(key)
    print_slots(firmware_update.update(the_drive(name, part), image, slot, not store,
                                       show.note), as_json)


@firmware.command()
def activate(slot: Annotated[str, typer.Argument(
                 metavar="A|B", autocompletion=completion.slots, help="The slot.")],
             part: Part = "", name: Of = "", as_json: AsJson = False) -> None:
    """Restart the drive with the image that a slot holds."""
    from ...setup import firmware_update
    if as_json:
        show.only_data()
    chosen.check_word("SLOT", slot, ("A", "B"))
    print_slots(firmware_update.activate(the_drive(name, part), slot, show.note), as_json)
