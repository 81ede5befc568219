# SPDX-License-Identifier: BSD-2-Clause
"""`essd demo`: build, boot the drive and hosts, run all steps, report."""

import time
from pathlib import Path

from rich.table import Table

from ..base import interrupts, show
from ..base.errors import EssdError
from ..instance import steps
from ..instance.config import Config, console_log
from ..instance.instance import Instance, Result
from ..instance.steps import Job, Step
from ..observe import losses
from ..setup import setup
from ..setup.setup import Wish
from . import nand_steps, protocol_steps, report as demo_report, subsystem_steps
from .transcript import Transcript, UART

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
# This step has a boot of its own, with a host of user-mode Linux, where that is built.
FOUR_PROTOCOLS: list[tuple[str, Step]] = [
    ("One file over four protocols", protocol_steps.four_protocols),
]
SECOND_BOOT: list[tuple[str, Step]] = [
    ("The commands of the data sheet", steps.datasheet_commands),
]
TWO_HOSTS: list[tuple[str, Step]] = [
    ("RoCE and NVMe/TCP as two paths of one device", subsystem_steps.both_transports),
    ("Four namespaces for two hosts", subsystem_steps.four_namespaces),
    ("One host reserves a namespace, the other one cannot write",
     subsystem_steps.reservation_conflict),
]


def run_step(name: str, action: Step, job: Job, transcript: Transcript) -> None:
    """Run a step; what it throws is an EssdError that names the step."""
    step = transcript.begin_step(name)
    known = len(job.proven)
    start = time.monotonic()
    try:
        action(job)
    except EssdError as error:
        step.error = str(error)
        raise
    finally:
        step.seconds = time.monotonic() - start
    transcript.end_step(job.proven[known:])


def boot(instance: Instance, config: Config, transcript: Transcript) -> Job:
    """Start everything; return when each host can use the target."""
    start = time.monotonic()
    hosts = "the host" if len(config.hosts) == 1 else f"{len(config.hosts)} hosts"
    with show.busy(f"starting the drive and {hosts} (half a minute)"):
        instance.start(config, bound=True)
        for host in config.hosts:
            instance.wait_ready(host)
        job = Job.of(instance, transcript.take)
        for host in config.hosts:
            steps.wait_target(job.at(host))
    show.line(f"drive and {hosts} are up after {time.monotonic() - start:.1f} s")
    return job


def stop(instance: Instance) -> None:
    """End everything, after a line that says which frames were lost."""
    show.line(losses.since_start(instance))
    instance.stop()


def two_hosts(name: str) -> Config:
    """A drive with the data sheet's NQN, and two hosts, on two switches."""
    return protocol_steps.configured(name, subsystem_steps.TWO_HOSTS,
                                     protocol_steps.SETTINGS_AFTER, DATASHEET_NQN)


def run_protocols(instance: Instance, transcript: Transcript) -> None:
    """Read a file by every protocol of the drive, if this computer has the host for it."""
    why_not = protocol_steps.problem()
    if why_not:
        show.line(f"One file over four protocols is left out: {why_not}")
        return
    transcript.begin_step("Restart the same drive with all of its protocols")
    stop(instance)
    job = boot(instance, protocol_steps.configured(NAME, protocol_steps.TOPOLOGY,
                                                   protocol_steps.SETTINGS), transcript)
    for name, action in FOUR_PROTOCOLS:
        run_step(name, action, job, transcript)


def show_boot_log(instance: Instance, transcript: Transcript) -> None:
    """What the firmware has written so far."""
    log = console_log(instance.folder, "drive")
    if log.exists():
        transcript.take(Result(UART, 0, show.printable(log.read_text(errors="replace"))))


def report(proven: list[tuple[str, str]], seconds: float) -> None:
    table = Table(title=f"checked in {seconds:.0f} s", title_justify="left")
    table.add_column("result")
    table.add_column("checked with")
    for what, how in proven:
        table.add_row(what, how)
    show.line()
    show.console.print(table)


def run_demo(target: str, keep: bool, folder: Path | None = None) -> None:
    """Run the demo; its report goes into the folder, or into a new one in the cache."""
    instance = Instance(NAME)
    with instance.claimed("essd demo"):
        run_claimed(instance, target, keep, folder)


def run_all(instance: Instance, target: str, transcript: Transcript,
            facts: dict[str, str]) -> None:
    """All steps; `facts` gets what was started."""
    is_drive = target == "drive"
    transcript.begin_step("Build (5 to 10 minutes the first time) and start")
    setup.forget(NAME)
    job = boot(instance, setup.configure(Wish(name=NAME, target=target)), transcript)
    facts |= demo_report.facts_of(job)
    transcript.name_nqn(job.nqn)
    show_boot_log(instance, transcript)
    for name, action in [*FIRST_BOOT, *(DRIVE_ONLY if is_drive else []), *LAST,
                         *(POWER_OFF if is_drive else [])]:
        run_step(name, action, job, transcript)
    if is_drive:
        run_protocols(instance, transcript)
    transcript.begin_step("Restart the same drive with the data sheet's NQN"
                          + (" and two hosts on switches" if is_drive else ""))
    stop(instance)
    job = boot(instance, two_hosts(NAME) if is_drive else setup.configure(
        Wish(name=NAME, target=target, nqn=DATASHEET_NQN)), transcript)
    for name, action in [*SECOND_BOOT, *(TWO_HOSTS if is_drive else [])]:
        run_step(name, action, job, transcript)
    show.line(losses.since_start(instance))


def run_claimed(instance: Instance, target: str, keep: bool, folder: Path | None) -> None:
    """Run the demo, while the name of its instance is claimed."""
    transcript = Transcript()
    facts: dict[str, str] = {}
    folder = demo_report.folder_for(folder)
    try:
        run_all(instance, target, transcript, facts)
    except interrupts.INTERRUPTS:
        end(instance)
        show.error("interrupted: ended and deleted the drive and the hosts of the demo")
        raise
    except EssdError as error:
        try:
            evidence = kept_evidence(folder, transcript, facts, instance, str(error))
        finally:
            try:
                end(instance, keep)
            except EssdError as problem:
                evidence += f"; it has not ended: {problem}"
        raise EssdError(f"the demo has failed in the step \"{transcript.steps[-1].name}\": "
                        f"{error}; {evidence}") from None
    except BaseException:
        end(instance, keep)
        raise
    end(instance, keep)
    report(transcript.claims(), time.monotonic() - transcript.begin)
    demo_report.say_next(demo_report.write(folder, transcript, facts))


def kept_evidence(folder: Path, transcript: Transcript, facts: dict[str, str],
                  instance: Instance, error: str) -> str:
    """Keep what is known of a failure; return where it is, or why it is not all there.

    Whatever goes wrong here is told beside the failure, and does not replace it.
    """
    try:
        demo_report.keep_evidence(folder, instance)
        logs = f"logs: {folder}"
    except Exception as problem:
        logs = f"the logs could not be kept: {type(problem).__name__}: {problem}"
    try:
        path = demo_report.write(folder, transcript, facts, error)
    except EssdError as problem:
        return f"{problem}; {logs}"
    except Exception as problem:
        return f"the report cannot be written: {type(problem).__name__}: {problem}; {logs}"
    return (f"evidence: {path}, with logs beside it" if logs.startswith("logs: ") else
            f"evidence: {path}; {logs}")


def end(instance: Instance, keep: bool = False) -> None:
    """Stop the demo's instance and delete its drive, or leave both."""
    if keep:
        instance.release()
        return
    with interrupts.ignored():
        instance.stop_started()
        setup.forget(NAME)
