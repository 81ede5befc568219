# SPDX-License-Identifier: BSD-2-Clause
"""The command line of essd: its start, and its error output.

The commands are in the folder commands; base.py says how to add one.
"""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.exceptions

from ..base import in_use, interrupts, process, show, system
from ..base.errors import EssdError, Mistakes
from . import commands, completion
from .base import app

__all__ = ["app", "main"]


def show_version(asked: bool) -> None:
    if asked:
        from ..build import fw_build
        show.line(f"essd {fw_build.version()}")
        raise typer.Exit


@app.callback()
def main_options(_version: Annotated[bool, typer.Option(
        "--version", help="Show the version of the drive and its tools, and exit.",
        callback=show_version, is_eager=True)] = False,
        quiet: Annotated[bool, typer.Option(
            "--quiet", "-q", help="Print only errors and what was asked for.")] = False,
        _show: completion.ShowCompletion = "",
        _install: completion.InstallCompletion = "") -> None:
    """Options that stand before the command."""
    show.is_quiet = quiet


commands.load()


def usage_line(mistake: Any) -> str:
    """Describe a mistake on the command line in one line of essd's own style."""
    text = " ".join(mistake.format_message().split()).removesuffix(".")
    command = mistake.ctx.command_path if getattr(mistake, "ctx", None) else "essd"
    see = " See" if text.endswith("?") else "; see"
    return f"{text[:1].lower()}{text[1:]}{see} {command} --help"


def program_name(command: Any) -> str:
    """The name of the program that a subprocess's command starts."""
    return Path(command if isinstance(command, str) else command[0]).name


def main() -> None:
    signal.signal(signal.SIGTERM, interrupts.exit_on_sigterm)
    process.find_system_programs()
    in_use.hold_python()
    try:
        system.refuse_others()
    except EssdError as error:
        show.error(str(error))
        sys.exit(2)
    try:
        # Without arguments typer prints the help and must not raise, hence
        # standalone mode.
        sys.exit(app(prog_name="essd", standalone_mode=not sys.argv[1:]) or 0)
    except typer.exceptions.TyperException as mistake:
        show.error(usage_line(mistake))
        sys.exit(mistake.exit_code)
    except Mistakes as mistakes:
        for text in mistakes.lines:
            show.error(text)
        sys.exit(1)
    except EssdError as error:
        show.error(str(error))
        sys.exit(1)
    except subprocess.TimeoutExpired as late:
        show.error(f"{program_name(late.cmd)} did not end within {late.timeout:.0f} s "
                   "and was killed")
        sys.exit(1)
    except OSError as error:
        if error.filename is None or isinstance(error, BrokenPipeError):
            raise
        show.error(f"{error.filename}: {error.strerror}")
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
