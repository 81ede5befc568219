# SPDX-License-Identifier: BSD-2-Clause
"""`essd ana`: how the drive's namespaces can be reached through each port."""

import json
from typing import Annotated

import typer

from ...base import show
from ...instance import fleet
from ...instance.instance import Instance
from ..base import AsJson, DISTURB, Name, command


@command(DISTURB)
def ana(state: Annotated[str, typer.Argument(
            metavar="[STATE]", show_default=False,
            help="optimized, non-optimized, inaccessible, persistent-loss or change.  "
            "Default: show the states.")] = "",
        group: Annotated[int | None, typer.Option(
            min=1, metavar="N", show_default=False,
            help="ANA group, 1 to 16.  Default: all.")] = None,
        port: Annotated[int | None, typer.Option(
            min=0, max=1, metavar="N", show_default=False,
            help="Port of the drive, 0 or 1.  Default: both.")] = None,
        transition: Annotated[float, typer.Option(
            min=0, max=10, metavar="SECONDS",
            help="Be in the state `change` for this time before.")] = 0,
        drive: Annotated[str, typer.Option(
            "--part", metavar="DRIVE", show_default=False,
            help="Drive of a topology.  Default: the only one.")] = "",
        name: Name = "",
        as_json: AsJson = False) -> None:
    """Show or set how namespaces are reached through each port (docs/nvme.md, "Two ports")."""
    from ...drive import ana as core
    instance = fleet.one(Instance(name), drive)
    if state:
        core.change(instance, state, group, port, round(transition * 1000))
    groups = core.read(instance)
    if as_json:
        print(json.dumps({"groups": groups}, indent=2))
    else:
        show.console.print(core.table(groups))
