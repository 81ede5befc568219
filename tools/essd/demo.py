# SPDX-License-Identifier: BSD-2-Clause
"""The whole story in one command: build, boot, use, break, compare, report."""

import time

from rich.table import Table

from . import setup, show, steps
from .errors import EssdError
from .instance import Instance, Result
from .setup import Wish
from .steps import Job

NAME = "demo"


def tell(result: Result) -> None:
    """A command as typed in the host, and what it said."""
    if result.command.startswith("["):
        show.line(result.command, "yellow")
    else:
        show.line(f"host# {result.command}", "cyan")
    for line in show.trim(result.output):
        show.line(f"  {line}")


def step(name: str, action: "steps.Step", job: Job) -> None:
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
        instance.start(config)
        instance.wait_ready("host")
        job = Job.of(instance, tell)
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
    table = Table(title=f"proven in {seconds:.0f} s", title_justify="left")
    table.add_column("what")
    table.add_column("how")
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
        show.heading("Building what is not built yet (5 to 10 minutes, once), starting")
        setup.forget(NAME)
        job = boot(instance, wish)
        show_boot_log(instance)
        for name, action in steps.JOB:
            step(name, action, job)
        proven = job.proven
        show.heading("The same drive under the data sheet's name")
        instance.stop()
        wish.nqn = "testsubsystem"
        job = boot(instance, wish)
        step("The data sheet's own commands", steps.datasheet_commands, job)
        proven += job.proven
    finally:
        if not keep:
            instance.stop()
    report(proven, time.monotonic() - begin)
