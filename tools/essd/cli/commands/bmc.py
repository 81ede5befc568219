# SPDX-License-Identifier: BSD-2-Clause
"""The command that asks the drive what a BMC asks it."""

import json
from typing import Annotated

import typer

from ...base import show
from ...instance import fleet
from ...instance.instance import Instance
from ..base import AsJson, LOOK, Name, Part, command


@command(LOOK)
def bmc(question: Annotated[str, typer.Argument(
            metavar="health|vpd|controllers", help="What to ask the drive.")] = "health",
        part: Part = "",
        name: Name = "",
        as_json: AsJson = False) -> None:
    """Ask the drive what a BMC asks it, by NVMe-MI over I2C: docs/bmc.md."""
    from ...drive import bmc as bmc_module
    answer = bmc_module.ask(fleet.one(Instance(name), part), question)
    if as_json:
        print(json.dumps(answer, indent=2))
    elif isinstance(answer, dict):
        show.console.print(bmc_module.facts(answer))
    elif answer:
        show.console.print(bmc_module.table(answer))
    else:
        show.line("no host has a controller")
