# SPDX-License-Identifier: BSD-2-Clause
"""`essd faults`: rules that make frames, messages, commands and media fail."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ...base import chosen, show
from ...base.errors import EssdError
from ...instance.instance import Instance
from ..base import App, AsJson, DISTURB, app

faults = App(
    help="Make things fail by rule: frames, RDMA messages, NVMe commands, the medium, "
         "the power (docs/faults.md).", no_args_is_help=False,
    invoke_without_command=True)
app.add_typer(faults, name="faults", rich_help_panel=DISTURB)

Name = Annotated[str, typer.Option(
    "--name", metavar="NAME", show_default=False,
    help="Name of the instance.  Default: the only one that runs.")]
Part = Annotated[str, typer.Option(
    "--part", metavar="DRIVE", help="The drive, if the instance has several.")]
Names = Annotated[list[str] | None, typer.Argument(
    metavar="[NAME]...", help="Names of rules.  Default: all of them.")]


def ask(ctx: typer.Context, name: str, part: str, do: str = "list",
        **arguments: Any) -> Any:
    """Ask the supervisor; --name and --part may stand before the subcommand, too."""
    before = ctx.obj or {}
    instance = Instance(chosen.instance(name or before.get("name", "")))
    return instance.ask("faults", part=part or before.get("part", ""), do=do, **arguments)


def show_rules(name: str, part: str, rules: list[dict[str, Any]], as_json: bool) -> None:
    from rich.table import Table
    from rich.text import Text
    if as_json:
        print(json.dumps(rules, indent=2))
        return
    if not rules:
        example = chosen.hint(name, "faults add", *chosen.part_words(part or "drive"),
                              "'wire bth.opcode=ack when nth=3 do drop'")
        show.note(f"no fault rules; add one, for example with {example}")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "state", "matched", "fired", "rule"):
        table.add_column(heading, justify="right" if "ed" in heading else "left")
    for rule in rules:
        table.add_row(rule["name"], "on" if rule["on"] else "off",
                      str(rule["matched"]), str(rule["fired"]), Text(rule["rule"]))
    show.console.print(table)


@faults.callback()
def list_rules(ctx: typer.Context, name: Name = "", part: Part = "",
               as_json: AsJson = False) -> None:
    """List the rules with their counters."""
    ctx.obj = {"name": name, "part": part}
    if ctx.invoked_subcommand is None:
        show_rules(chosen.instance(name), part, ask(ctx, name, part), as_json)


@faults.command()
def add(ctx: typer.Context,
        rule: Annotated[str, typer.Argument(
            help="The rule, in quotes, such as 'media operation=read lba=8 do error'.")],
        name: Name = "", part: Part = "",
        rule_name: Annotated[str, typer.Option(
            "--as", metavar="NAME", help="Name of the rule.  Default: rule-1, ...")] = "",
        ) -> None:
    """Add one rule, which is in force at once."""
    from ...drive.fault_rules import Wrong, parse_line
    try:
        parse_line(rule)
    except Wrong as wrong:
        raise EssdError(f"{rule}: {wrong}") from None
    names = ask(ctx, name, part, "add", rules=[{"rule": rule, "name": rule_name}])
    show.note(f"added {names[0]}")


@faults.command()
def words(places: Annotated[list[str] | None, typer.Argument(
              metavar="[PLACE]...", help="wire, rdma, pdu, nvme, media, nand, or when.  "
                                         "Default: all of them.")] = None) -> None:
    """Say what the keys and actions of rules mean."""
    from ...drive import fault_words
    chosen_places = places or [*fault_words.PLACES, fault_words.WHEN]
    show.line("\n\n".join(map(fault_words.text, chosen_places)))


@faults.command()
def load(ctx: typer.Context,
         file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file.")],
         name: Name = "", part: Part = "") -> None:
    """Add all rules of a YAML file, or none if one of them makes no sense."""
    from ...drive.fault_rules import load_file
    rules = load_file(file)
    names = ask(ctx, name, part, "add",
                rules=[{"rule": rule.text(), "name": rule.name} for rule in rules])
    show.note(f"added {', '.join(names) or 'no rule'}")


@faults.command()
def remove(ctx: typer.Context, names: Names = None, name: Name = "", part: Part = "") -> None:
    """Remove rules; what they hold back goes on."""
    ask(ctx, name, part, "remove", names=names or [])
    show.note("removed")


@faults.command()
def on(ctx: typer.Context, names: Names = None, name: Name = "", part: Part = "") -> None:
    """Turn rules on again after `off`."""
    ask(ctx, name, part, "on", names=names or [])
    show.note("on")


@faults.command()
def off(ctx: typer.Context, names: Names = None, name: Name = "", part: Part = "") -> None:
    """Turn rules off without removing them."""
    ask(ctx, name, part, "off", names=names or [])
    show.note("off")
