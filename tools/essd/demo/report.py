# SPDX-License-Identifier: BSD-2-Clause
"""The report of `essd demo`: one HTML file without references to other files.

After a failure, the consoles and logs of the demo's machines are beside it.
"""

import re
import shutil
import time
from pathlib import Path

from ..base import paths, show
from ..base.errors import EssdError
from ..build.fw_build import version
from ..build.provenance import versions
from ..instance.instance import Instance
from ..instance.steps import Job
from ..observe import evidence
from .transcript import ESSENCE, Transcript

TEMPLATE = Path(__file__).with_name("demo_report.html")
KEEP = 10               # reports in the cache
# Started after a demo, these work one after the other.
INSTANCE = "first"
REACH = "nvme connect-all -t rdma -a 10.0.0.10 -s 4420 && nvme list"


def next_commands() -> list[tuple[str, str]]:
    """Three things to try after the demo: what to type, and what for."""
    mine = Instance(INSTANCE)
    return [
        (f"{mine.hint('up')} && {mine.hint('host', '--', repr(REACH))}",
         "a drive and a host that stay, and the host uses the drive"),
        (mine.hint("cockpit"), "watch them in a browser, pull cables, cut the power"),
        (mine.hint("trace", "--events", "cm,commands", "--seconds", "10"),
         "what happens inside the drive, as it happens"),
    ]


def bench_command() -> str:
    return Instance("bench").hint("bench").partition(" --name")[0]


def folder_for(wanted: Path | None) -> Path:
    """The folder for a report: the one that was asked for, or a new one in the cache,
    which write() makes, with what was deleted meanwhile.  EssdError, before minutes of work,
    if it cannot be made."""
    folder = wanted or paths.cache() / "reports" / time.strftime("demo-%Y%m%d-%H%M%S")
    try:
        (folder if wanted else folder.parent).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EssdError(f"the report cannot be written: {folder}: {error.strerror}") from None
    return folder


def forget_old(folder: Path) -> None:
    """Delete the oldest reports of the cache, if this one is there."""
    if folder.parent == paths.cache() / "reports":
        for old in sorted(folder.parent.glob("demo-*"))[:-KEEP]:
            shutil.rmtree(old, ignore_errors=True)


def facts_of(job: Job) -> dict[str, str]:
    """What was started, with versions."""
    config = job.instance.config
    accel = {"tcg": "emulated (TCG)", "kvm": "with KVM"}[config.accel]
    drive = config.drives.get(job.target)
    found = versions(drive.qemu if drive else None)
    host = job.quiet("uname -r; nvme version | head -n 1; fio --version").splitlines()
    return {"target": f"the essd drive, firmware {version()}, ports "
                      f"{' and '.join(job.addresses)}" if drive else "Linux nvmet",
            "its NQN": job.nqn,
            "host": f"Linux {', '.join(host)}; {accel}",
            "essd": found.pop("suite"), **found}


def id_ctrl(text: str) -> str:
    """The lines of id-ctrl that identify the drive."""
    return "\n".join(line for line in text.splitlines()
                     if re.search(ESSENCE["nvme id-ctrl "], line))


def html(transcript: Transcript, facts: dict[str, str], error: str) -> str:
    import jinja2
    seen = [("nvme discover", transcript.first("nvme discover ")),
            ("nvme list", transcript.first("nvme list")),
            ("nvme id-ctrl (in part)", id_ctrl(transcript.first("nvme id-ctrl ")))]
    template = jinja2.Template(TEMPLATE.read_text(encoding="utf-8"), autoescape=True)
    return str(template.render(
        date=time.strftime("%Y-%m-%d, %H:%M"), seconds=time.monotonic() - transcript.begin,
        error=error, failed_step=transcript.steps[-1].name if transcript.steps else "",
        claims=transcript.claims(), facts=facts, measured=transcript.measured(),
        seen=[(title, text.rstrip()) for title, text in seen if text],
        kvm="KVM" in facts.get("host", ""), bench=bench_command(), next=next_commands(),
        repeat=Instance("demo").hint("demo").partition(" --name")[0], steps=transcript.steps))


def write(folder: Path, transcript: Transcript, facts: dict[str, str], error: str = "") -> Path:
    path = folder / "report.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(html(transcript, facts, error), encoding="utf-8")
    except OSError as problem:
        raise EssdError(f"the report cannot be written: {path}: {problem.strerror}") from None
    forget_old(folder)
    return path


def keep_evidence(folder: Path, instance: Instance) -> None:
    """Copy the consoles and logs of the machines, which the end of the demo deletes."""
    evidence.copy_files(instance.folder, folder)


def say_next(report: Path) -> None:
    """The end of the demo's output: where the report is, and what to try."""
    show.line()
    show.line(f"report: {report}")
    show.line()
    show.line("Three things to try next:", "bold")
    for command, why in next_commands():
        show.line(f"  {command}", "cyan")
        show.line(f"      {why}")
    show.line(f"{Instance(INSTANCE).hint('down')} ends what the first one has started; "
              "docs/how-do-i.md has more.")
