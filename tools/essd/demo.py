# SPDX-License-Identifier: BSD-2-Clause
"""`essd demo`: build, boot the drive and hosts, run all steps, report."""

import time
from pathlib import Path

from rich.table import Table

from . import (interrupts, nand_steps, setup, show, steps, subsystem_steps, topology_setup,
               topology_yaml)
from .config import Config, console_log
from .errors import EssdError
from .instance import Instance, Result
from .setup import Wish
from .steps import Job, Step

NAME = "demo"
DATASHEET_NQN = "testsubsystem"

# The steps in order, each with its heading.
FIRST_BOOT: list[tuple[str, Step]] = [
    ("Both ports answer", steps.ping),
    ("Discovery", steps.discover),
    ("Connect through port 0", steps.connect),
    ("What the host sees", steps.identify),
    ("fio with verification", steps.fio_verify),
    ("A file system", steps.file_system),
    ("The same data through port 1", steps.other_port),
    ("Power off and on", steps.power_cycle),
    ("One path: pull its cable", steps.cable_pull),
]
# Steps that need the drive itself, and are left out with nvmet as the target.
DRIVE_ONLY: list[tuple[str, Step]] = [
    ("How much the flash programs", nand_steps.flash_health),
    ("A die of the flash dies", nand_steps.die_dies),
    ("Two paths: fail over from port 0 to port 1", subsystem_steps.fail_over),
]
LAST: list[tuple[str, Step]] = [
    ("Disconnect", steps.disconnect),
]
# These steps switch the power off, and leave it off.
POWER_OFF: list[tuple[str, Step]] = [
    ("The array after all this", nand_steps.look_inside),
]
SECOND_BOOT: list[tuple[str, Step]] = [
    ("The commands of the data sheet", steps.datasheet_commands),
]
TWO_HOSTS: list[tuple[str, Step]] = [
    ("Four namespaces for two hosts", subsystem_steps.four_namespaces),
    ("One host reserves a namespace, the other one cannot write",
     subsystem_steps.reservation_conflict),
]


def show_result(result: Result) -> None:
    """Print a command that ran in the host, and its output.

    A "command" in brackets is an event outside the host, such as a power cut.
    """
    if result.command.startswith("["):
        show.line(result.command, "yellow")
    else:
        show.line(f"{result.part}# {result.command}", "cyan")
    for line in show.trim(result.output):
        show.line(f"  {line}")


def run_step(name: str, action: Step, job: Job) -> None:
    show.heading(name)
    start = time.monotonic()
    try:
        action(job)
    except EssdError as error:
        raise EssdError(f"{name}: {error}") from None
    show.line(f"({time.monotonic() - start:.1f} s)", "dim")


def boot(instance: Instance, config: Config) -> Job:
    """Start everything; return when each host can use the target."""
    start = time.monotonic()
    hosts = "the host" if len(config.hosts) == 1 else f"{len(config.hosts)} hosts"
    with show.busy(f"starting the drive and {hosts} (half a minute)"):
        instance.start(config, bound=True)
        for host in config.hosts:
            instance.wait_ready(host)
        job = Job.of(instance, show_result)
        for host in config.hosts:
            steps.wait_target(job.at(host))
    show.line(f"drive and {hosts} are up after {time.monotonic() - start:.1f} s")
    return job


def two_hosts(name: str) -> Config:
    """A drive with the data sheet's NQN, and two hosts, on two switches."""
    topology = topology_yaml.load(subsystem_steps.TWO_HOSTS, "two hosts", Path.cwd())
    topology.drives["drive"].nqn = DATASHEET_NQN
    return topology_setup.configure(topology, name)


def show_boot_log(instance: Instance) -> None:
    log = console_log(instance.folder, "drive")
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
    instance = Instance(NAME)
    with instance.claimed("essd demo"):
        run_claimed(instance, target, keep)


def run_claimed(instance: Instance, target: str, keep: bool) -> None:
    """Run the demo, while the name of its instance is claimed."""
    begin = time.monotonic()
    is_drive = target == "drive"
    try:
        show.heading("Build (5 to 10 minutes the first time) and start")
        setup.forget(NAME)
        job = boot(instance, setup.configure(Wish(name=NAME, target=target)))
        show_boot_log(instance)
        for name, action in [*FIRST_BOOT, *(DRIVE_ONLY if is_drive else []), *LAST,
                             *(POWER_OFF if is_drive else [])]:
            run_step(name, action, job)
        proven = job.proven
        show.heading("Restart the same drive with the data sheet's NQN"
                     + (" and two hosts on switches" if is_drive else ""))
        instance.stop()
        job = boot(instance, two_hosts(NAME) if is_drive else setup.configure(
            Wish(name=NAME, target=target, nqn=DATASHEET_NQN)))
        for name, action in [*SECOND_BOOT, *(TWO_HOSTS if is_drive else [])]:
            run_step(name, action, job)
        proven += job.proven
    except interrupts.INTERRUPTS:
        end(instance)
        show.error("interrupted: ended and deleted the drive and the hosts of the demo")
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
