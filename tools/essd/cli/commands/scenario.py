# SPDX-License-Identifier: BSD-2-Clause
"""`essd scenario`: uses of the drives as scripts, each with a report."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ...base import show
from .. import completion
from ..base import App, AsJson, RUN, app

scenario = App(
    help="Try one use of the drives, such as a RAID of which one drive dies, and write a "
         "report (docs/scenarios.md).", no_args_is_help=True)
app.add_typer(scenario, name="scenario", rich_help_panel=RUN)


@scenario.command("list")
def list_scenarios(as_json: AsJson = False) -> None:
    """List the scenarios."""
    from rich.table import Table

    from ...api import scenarios
    found = scenarios.listing()
    if as_json:
        print(json.dumps(found, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "drives", "what it answers"):
        table.add_column(heading, no_wrap=heading != "what it answers")
    for entry in found:
        table.add_row(entry["name"], str(entry["drives"]), entry["question"])
    show.console.print(table)


@scenario.command("run")
def run_scenario(
        name: Annotated[str, typer.Argument(
            metavar="NAME", autocompletion=completion.scenarios,
            help="Name of a scenario, or a file: your own copy of one.")],
        topology: Annotated[Path | None, typer.Option(
            metavar="FILE", help="Run it on this topology instead of its own.")] = None,
        out: Annotated[Path | None, typer.Option(
            metavar="FOLDER", help="Folder for the report.  Default: "
                                   "essd-reports/NAME.")] = None,
        as_json: Annotated[bool, typer.Option(
            "--json", help="Print the report as JSON.")] = False) -> None:
    """Run a scenario and write its report as Markdown, JSON and HTML.

    The exit status is 0 if everything that the scenario checks holds.
    """
    from ...api import scenarios
    raise typer.Exit(scenarios.command(scenarios.load(name), topology, out, as_json))
