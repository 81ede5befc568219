# SPDX-License-Identifier: BSD-2-Clause
"""`essd demo`: build, boot the drive and a host, run all steps, report."""

import time

from rich.table import Table

from . import interrupts, setup, show, steps
from .errors import EssdError
from .instance import Instance, Result
from .setup import Wish
from .steps import Job

NAME = "demo"


def show_result(result: Result) -> None:
    """Print a command that ran in the host, and its output.

    A "command" in brackets is an event outside the host, such as a power cut.
    """
    if result.command.startswith("["):
        show.line(result.command, "yellow")
    else:
        show.line(f"host# {result.command}", "cyan")
    for line in show.trim(result.output):
        show.line(f"  {line}")


def run_step(name: str, action: "steps.Step", job: Job) -> None:
    show.heading(name)
    start = time.monotonic()
    try:
        action(job)
    except EssdError as error:
        raise EssdError(f"{name}: {error}") from None
    show.line(f"({time.monotonic() - start:.1f} s)", "dim")


def boot(instance: Instance, wish: Wish) -> Job:
    start = time.monotonic()
    config = setup.configure(wish)
    with show.busy("starting the drive and the host (half a minute)"):
        instance.start(config, bound=True)
        instance.wait_ready("host")
        job = Job.of(instance, show_result)
        steps.wait_target(job)
    show.line(f"drive and host are up after {time.monotonic() - start:.1f} s")
    return job


def show_boot_log(instance: Instance) -> None:
    log = instance.folder / "drive.console"
    if log.exists():
        show.line("the drive's UART:", "cyan")
        for line in show.trim(log.read_text(errors="replace"), 30):
            show.line(f"  {line}")


def report(proven: list[tuple[str, str]], seconds: float) -> None:
    table = Table(title=f"checked in {seconds:.0f} s", title_justify="left")
    table.add_column("result")
    table.add_column("checked with")
    for what, how in proven:
        table.add_row(what, how)
    show.line()
    show.console.print(table)


def run_demo(target: str, keep: bool) -> None:
    begin = time.monotonic()
    instance = Instance(NAME)
    instance.stop()
    wish = Wish(name=NAME, target=target)
    try:
        show.heading("Build (5 to 10 minutes the first time) and start")
        setup.forget(NAME)
        job = boot(instance, wish)
        show_boot_log(instance)
        for name, action in steps.JOB:
            run_step(name, action, job)
        proven = job.proven
        show.heading("Restart the same drive with the data sheet's NQN")
        instance.stop()
        wish.nqn = "testsubsystem"
        job = boot(instance, wish)
        run_step("The commands of the data sheet", steps.datasheet_commands, job)
        proven += job.proven
    except interrupts.INTERRUPTS:
        end(instance)
        show.error("interrupted: ended and deleted the drive and the host of the demo")
        raise
    except BaseException:
        end(instance, keep)
        raise
    end(instance, keep)
    report(proven, time.monotonic() - begin)


def end(instance: Instance, keep: bool = False) -> None:
    """Stop the demo's instance and delete its drive, or leave both."""
    if keep:
        instance.release()
        return
    with interrupts.ignored():
        instance.stop()
        setup.forget(NAME)
