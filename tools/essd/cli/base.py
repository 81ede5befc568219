# SPDX-License-Identifier: BSD-2-Clause
"""The typer application, the groups of its help, and options that commands share.

To add a command, put a file into the folder commands, or a function into one of
its files, like this; `essd --help` then shows it in its group:

    @command(LOOK)
    def temperature(name: Name = "") -> None:
        \"\"\"Show the drive's temperature.\"\"\"
        show.line(str(Instance(name).status()["temperature"]))

Every start of essd imports these files, also to complete a word at the shell's
prompt.  Therefore import modules that load slowly inside the functions that use
them; a test limits how long the start takes.
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
import typer.core

from ..base import chosen
from . import completion

RUN = "Run"
LOOK = "Look inside"
DISTURB = "Disturb"
DEVELOP = "Develop and test"
PANELS = (RUN, LOOK, DISTURB, DEVELOP)      # in the order of `essd --help`
# What a newcomer needs, in that order; it begins the help.  Other commands follow in the
# order of their files.
FIRST = ("demo", "up", "host", "status", "down", "list", "rm", "doctor")


class Command(typer.core.TyperCommand):
    """A command that takes the name of a part with --part, if it takes one.

    Older spellings go on working, and the help does not show them: --drive, and the name
    alone where the command has no arguments.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = {name for option in self.params for name in option.opts}
        if "--part" not in own:
            return super().parse_args(ctx, args)
        if "--drive" not in own:
            args = renamed(args)
        part = next(option.name for option in self.params if "--part" in option.opts)
        ctx.allow_extra_args = takes_none = not any(
            isinstance(option, typer.core.TyperArgument) for option in self.params)
        rest = super().parse_args(ctx, args)
        if takes_none and rest and not ctx.params[part]:
            ctx.params[part] = rest.pop(0)
        if takes_none and rest and not ctx.resilient_parsing:
            ctx.fail(f"got unexpected extra argument ({rest[0]})")
        return rest


def renamed(args: list[str]) -> list[str]:
    """The words of a command with --part in place of --drive."""
    end = args.index("--") if "--" in args else len(args)
    return ["--part" + word[len("--drive"):]
            if n < end and (word == "--drive" or word.startswith("--drive=")) else word
            for n, word in enumerate(args)]


class Group(typer.core.TyperGroup):
    """Commands, of which the nearest is suggested for a wrong one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        wrong = args[0] if args else ""
        if wrong and not ctx.resilient_parsing and not wrong.startswith("-") \
                and self.get_command(ctx, wrong) is None:
            ctx.fail(f"no such command {wrong!r}{chosen.mean(wrong, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


class App(typer.Typer):
    """A Group of Commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": Group, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        return super().command(name, **{"cls": Command, **settings})


class Commands(Group):
    """The commands, ordered by their group in the help, the first ones before others."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: (
            PANELS.index(getattr(self.commands[name], "rich_help_panel", DEVELOP)),
            FIRST.index(name) if name in FIRST else len(FIRST)))


app = App(
    cls=Commands,
    help="Run an emulated dual-port Ethernet SSD (NVMe-oF over RoCEv2) and a Linux "
         "host that uses it.\n\nStart with [bold]essd demo[/bold], or with "
         "[bold]essd up[/bold] and then [bold]essd host[/bold].",
    no_args_is_help=True, rich_markup_mode="rich", add_completion=False,
    pretty_exceptions_enable=False)

Function = TypeVar("Function", bound=Callable[..., Any])


def command(panel: str, name: str | None = None,
            **settings: Any) -> Callable[[Function], Function]:
    """Make the function a command of essd, in this group of the help."""
    def add(function: Function) -> Function:
        app.command(name, rich_help_panel=panel, **settings)(function)
        return function
    return add


def choose_instance(ctx: typer.Context, name: str) -> str:
    """The instance that a command without --name uses."""
    return name if ctx.resilient_parsing else chosen.instance(name)


# The instance a command works on.  With the default "" the command's function
# gets the name of the only running instance.
Name = Annotated[str, typer.Option(
    "--name", metavar="NAME", callback=choose_instance, show_default=False,
    autocompletion=completion.instances,
    help="Name of the instance.  Default: the only one that runs.")]
# Parts is for commands that work on several parts; Part is for commands that
# work on one drive.
Parts = Annotated[str, typer.Option(
    "--part", metavar="PART", show_default=False, autocompletion=completion.parts,
    help="Part of a topology, or a pattern such as drive[3-5] or drive*.  Default: the "
         "only drive.")]
Part = Annotated[str, typer.Option(
    "--part", metavar="DRIVE", show_default=False, autocompletion=completion.parts,
    help="Drive of a topology.  Default: the only one.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON (see essd fields).")]
LowerFloor = Annotated[bool, typer.Option(
    "--lower-floor", help="Write the firmware although the drive has had one with a higher "
    "security version, and forget that one (see docs/firmware-update.md).")]
PARTS = "drive, host or peer"
