# SPDX-License-Identifier: BSD-2-Clause
"""What happened in the demo: every command with its output, and the few lines of it that
the terminal shows.

The terminal shows what a newcomer needs: each answer once, of long answers the lines
that say something, and the drive's NQN as $NQN.  The report has everything.
"""

import re
import time
from dataclasses import dataclass, field

from rich.text import Text

from ..base import show
from ..instance.instance import Result

UART = "[the drive's UART]"     # the event whose details are the firmware's lines
WIDTH_MAX = 130         # of a command with its answer in one line
LINES_MAX = 8           # of an answer for which there is no rule below
SAME = "the same answer as before"
# The lines that are shown of what these commands print.
ESSENCE = {
    UART: r"boot: starting|drive: essd|nand: \d+ channels|port \d: [\d.]+/|listening on"
          r"|ftl: ready",
    "ping ": r"packets transmitted",
    "nvme id-ctrl ": r"^(sn|mn|fr|cntlid|ver|nn|mdts|subnqn)\s*:",
    "nvme id-ns ": r"^(nsze|nguid)\s*:|^lbaf .*in use",
    "nvme list-subsys ": r"^nvme-subsys|\+- ",
    "nvme smart-log ": r"^(critical_warning|temperature|available_spare|percentage_used"
                       r"|media_errors|unsafe_shutdowns)\s*:",
}


def fields(entry: str) -> dict[str, str]:
    """The "name: value" lines of one entry of a discovery log."""
    pairs = (line.partition(":") for line in entry.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def discovery(output: str) -> list[str]:
    """One line for each entry of a discovery log, as nvme-cli prints it."""
    found = [fields(entry) for entry in re.split(r"=+Discovery Log Entry \d+=+", output)[1:]]
    return [f"{entry.get('subtype', '?')}: {entry.get('trtype', '?')} "
            f"{entry.get('traddr', '?')}, service {entry.get('trsvcid', '?')}, "
            f"{entry.get('subnqn', '?')}" for entry in found]


@dataclass(frozen=True)
class Measured:
    """What one run of fio has measured."""

    name: str
    operation: str
    iops: str
    throughput: str


def measured(result: Result) -> list[Measured]:
    name = re.search(r"--name=(\S+)", result.command)
    return [Measured(name[1] if name else "fio", operation, iops, throughput)
            for operation, iops, throughput in re.findall(
                r"^\s*(read|write)\s*: IOPS=(\S+), BW=\S+ \(([^)]+)\)", result.output, re.M)]


def fio_lines(result: Result) -> list[str]:
    """What fio has measured, in one line, and its errors."""
    if "err= 0" not in result.output:
        return show.trim(result.output, LINES_MAX)
    found = [f"{one.operation} {one.iops} IOPS, {one.throughput}" for one in measured(result)]
    return ["; ".join([*found, "no error"])]


def essence(result: Result) -> list[str]:
    """The lines of a command's output that are worth a newcomer's time."""
    if result.status == 0:
        if result.command.startswith("nvme discover "):
            return discovery(result.output) or show.trim(result.output, LINES_MAX)
        if result.command.startswith("fio "):
            return fio_lines(result)
        for command, lines in ESSENCE.items():
            # With a pipe, the command has chosen its lines itself.
            if result.command.startswith(command) and "|" not in result.command:
                return [" ".join(line.split()).replace(" : ", ": ")
                        for line in result.output.splitlines() if re.search(lines, line)]
    return show.trim(result.output, LINES_MAX)


@dataclass
class Done:
    """One step of the demo."""

    name: str
    results: list[Result] = field(default_factory=list)
    claims: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""


@dataclass
class Transcript:
    """The steps so far; the last one may be running."""

    steps: list[Done] = field(default_factory=list)
    begin: float = field(default_factory=time.monotonic)
    nqn: str = ""               # that is shown as $NQN
    shown: set[str] = field(default_factory=set)

    def begin_step(self, name: str) -> Done:
        self.steps.append(Done(name))
        show.heading(name)
        return self.steps[-1]

    def name_nqn(self, nqn: str) -> None:
        """Show the drive's NQN once; from now on it is $NQN."""
        if nqn.startswith("nqn.") and nqn != self.nqn:
            self.nqn = nqn
            show.line(f"NQN={nqn}    # the drive's name in NVMe-oF", "cyan")

    def short(self, line: str) -> str:
        return line.replace(self.nqn, "$NQN") if self.nqn else line

    def take(self, result: Result) -> None:
        """Keep a result, and show what is worth it.

        A "command" in brackets is an event outside the host, such as a power cut.
        """
        if self.steps:
            self.steps[-1].results.append(result)
        command = self.short(result.command)
        if command.startswith("["):
            head = Text(show.printable(command[1:-1]), "yellow")
        else:
            fio = re.sub(r"^fio .*?(?=--name=)", "fio ... ", command)
            head = Text(show.printable(f"{result.part}# {fio}"), "cyan")
        lines = [self.short(line) for line in essence(result)]
        text = "\n".join(lines)
        if len(lines) > 1 and text in self.shown:
            lines = [SAME]
        self.shown.add(text)
        if len(lines) == 1 and len(head) + len(lines[0]) < WIDTH_MAX:
            head.append(f"  =>  {show.printable(lines.pop().strip())}", "default")
        show.console.print(head)
        for line in lines:
            show.line(f"  {line}")

    def end_step(self, claims: list[tuple[str, str]]) -> None:
        """Show what the step has proven."""
        step = self.steps[-1]
        step.claims = claims
        for what, _ in claims:
            show.line(f"checked: {what} ({step.seconds:.1f} s)", "green")

    def first(self, command: str) -> str:
        """The output of the first command that begins so; "" if there was none."""
        return next((result.output for step in self.steps for result in step.results
                     if result.command.startswith(command) and result.status == 0), "")

    def claims(self) -> list[tuple[str, str]]:
        return [claim for step in self.steps for claim in step.claims]

    def measured(self) -> list[Measured]:
        return [one for step in self.steps for result in step.results
                if result.command.startswith("fio ") for one in measured(result)]
