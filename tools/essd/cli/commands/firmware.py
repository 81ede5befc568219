# SPDX-License-Identifier: BSD-2-Clause
"""Commands for those who change the firmware."""

import dataclasses
import json
from typing import Annotated

import typer

from ... import fleet, show
from ...instance import Instance
from .. import completion
from ..base import DEVELOP, AsJson, Name, Part, command


@command(DEVELOP)
def flash(part: Part = "",
          name: Name = "",
          slot: Annotated[str, typer.Option(
              metavar="A|B", show_default=False, autocompletion=completion.slots,
              help="Slot to write.  Default: the one that does not run.")] = "",
          back: Annotated[bool, typer.Option(
              "--back", help="Build nothing; start the image in the other slot again.")]
          = False,
          as_json: AsJson = False) -> None:
    """Build the firmware, write it into a flash slot, and restart the drive with it.

    The host stays.  Data that the drive has not flushed are lost, as in `power-cycle`.
    """
    from ... import reflash
    if as_json:
        show.only_data()
    done = reflash.run(fleet.one(Instance(name), part), slot, back, show.note)
    if as_json:
        print(json.dumps(dataclasses.asdict(done), indent=2))
    else:
        total = sum(done.seconds.values())
        show.line(f"running: slot {done.slot}, firmware {done.version}, build "
                  f"{done.build_id[:12]}, after {total:.1f} s")
