# SPDX-License-Identifier: BSD-2-Clause
"""Scenarios: scripts that try one use of the drives and report what happened.

Each script of examples/scenarios has a `SCENARIO`, which says what it needs, and a
function `run(system, report)`.  As a program it calls `SCENARIO.main(run)`, so that it
can be copied, changed and run by itself.
"""

import argparse
import inspect
import json
import runpy
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import chosen, cpu, paths, show
from ..base.errors import EssdError
from ..build import guest_build, guest_variant
from .report import Report

if TYPE_CHECKING:
    from ..topology.topology import Topology
    from .system import System

FOLDER = paths.TOP / "examples/scenarios"
TOPOLOGIES = paths.TOP / "examples/topologies"
REPORTS = "essd-reports"        # folder of the reports, in the current one

Run = Callable[["System", Report], None]


@dataclass(frozen=True)
class Scenario:
    """What a scenario is about, and what a topology must have for it."""

    title: str
    question: str               # that its report answers
    topology: str               # file in examples/topologies
    drives: int = 1
    ports: int = 1              # cabled ports of each drive
    packages: tuple[str, ...] = ()      # of the first host's guest
    room_mib: int = 100         # disk space that its drives take

    def main(self, run: Run) -> None:
        """Run the scenario as the program that its file is, and exit."""
        from ..base import interrupts
        signal.signal(signal.SIGTERM, interrupts.exit_on_sigterm)
        parser = argparse.ArgumentParser(description=f"{self.title}: {self.question}")
        parser.add_argument("--topology", type=Path, metavar="FILE",
                            help="run it on this topology instead of its own")
        parser.add_argument("--out", type=Path, metavar="FOLDER",
                            help="folder for the report")
        parser.add_argument("--json", action="store_true",
                            help="print the report as JSON")
        options = parser.parse_args()
        path = Path(inspect.getfile(run))
        try:
            sys.exit(command(Script(script_name(path), path, self, run), options.topology,
                             options.out, options.json))
        except EssdError as error:
            show.error(str(error))
            sys.exit(1)
        except KeyboardInterrupt:
            sys.exit(130)


@dataclass(frozen=True)
class Script:
    """A scenario's file."""

    name: str
    path: Path
    scenario: Scenario
    run: Run


def script_name(path: Path) -> str:
    return path.stem.replace("_", "-")


def names() -> list[str]:
    """The scenarios of examples/scenarios."""
    return sorted(map(script_name, FOLDER.glob("*.py")))


def load(name: str) -> Script:
    """A scenario by its name, or by the path of its file; EssdError if there is none."""
    if name.endswith(".py"):
        path = Path(name)
        if not path.is_file():
            raise EssdError(f"{name}: there is no such file")
    else:
        chosen.check_word("scenario", name, names())
        path = FOLDER / f"{name.replace('-', '_')}.py"
    try:
        found = runpy.run_path(str(path))
    except Exception as error:
        raise EssdError(f"{path}: {type(error).__name__}: {error}") from None
    if not isinstance(found.get("SCENARIO"), Scenario) or not callable(found.get("run")):
        raise EssdError(f"{path}: a scenario needs SCENARIO = essd.Scenario(...) and a "
                        "function run(system, report)")
    return Script(script_name(path), path, found["SCENARIO"], found["run"])


# What must be there before anything starts

def read_topology(scenario: Scenario, file: Path | None) -> tuple[Path, "Topology"]:
    """The topology to run on; EssdError if there is none, or it is too small."""
    from ..topology import reader as topology_yaml
    path = TOPOLOGIES / scenario.topology if file is None else file
    if not path.is_file():
        there = sorted(one.name for one in TOPOLOGIES.glob("*.yaml"))
        raise EssdError(f"topology {path}: there is no such file"
                        f"{chosen.mean(path.name, there)}")
    topology = topology_yaml.read(path)
    check_topology(scenario, topology, path)
    check_room(scenario, topology)
    return path, topology


def check_topology(scenario: Scenario, topology: "Topology", path: Path) -> None:
    cabled = {(end.part, end.port) for cable in topology.cables for end in cable.ends}
    usable = [name for name in topology.drives
              if all((name, port) in cabled for port in range(scenario.ports))]
    if len(usable) < scenario.drives:
        ports = " with a cable at both ports" if scenario.ports == 2 else ""
        drives = f"{scenario.drives} drive{'s' * (scenario.drives != 1)}"
        raise EssdError(f"{path}: the scenario needs {drives}{ports}, and "
                        f"this topology has {len(usable)}")
    if not topology.hosts:
        raise EssdError(f"{path}: the scenario needs a host, and this topology has none")
    host = next(iter(topology.hosts.values()))
    there = set(guest_build.read_list(guest_variant.PACKAGES))
    if host.guest is not None:
        there |= set(guest_variant.read_list(host.guest / guest_variant.PACKAGES))
    missing = sorted(set(scenario.packages) - there)
    if missing:
        raise EssdError(f"{path}:{host.mark.line}:{host.mark.column}: {host.name} has no "
                        f"{chosen.listed(missing)}: give it "
                        f"guest: {FOLDER / 'guest'}")


def check_room(scenario: Scenario, topology: "Topology") -> None:
    """EssdError if memory or disk space is missing."""
    from ..topology import setup as topology_setup
    need, there = topology_setup.need_mib(topology), cpu.memory_mib()
    if need > there:
        raise EssdError(f"the scenario needs about {need} MiB of memory, and this machine "
                        f"has {there} MiB left: end other programs or instances, or use "
                        "--topology with smaller hosts")
    folder = next(path for path in (paths.drives(), *paths.drives().parents)
                  if path.exists())
    room = shutil.disk_usage(folder).free >> 20
    if room < scenario.room_mib:
        raise EssdError(f"the scenario writes about {scenario.room_mib} MiB to {folder}, "
                        f"which has {room} MiB left: free some space, or set ESSD_DATA to "
                        "another folder")


# Running

def run(script: Script, topology: Path | None = None) -> Report:
    """Start the topology, run the scenario on it, end everything; return the report.

    An error during the run is in the report.  EssdError if nothing could be started.
    """
    from ..observe import losses
    from .system import up
    path, _ = read_topology(script.scenario, topology)
    with up(topology=path) as system:
        report = Report(script.name, script.scenario.title, script.scenario.question)
        report.facts |= {"scenario": str(name_of(script.path)),
                         "topology": str(name_of(path)), **about(system)}
        begin = time.monotonic()
        try:
            script.run(system, report)
            system.check()
        except EssdError as error:
            report.error = str(error)
            report.event(f"ended by an error: {error}")
        report.duration_s = round(time.monotonic() - begin, 1)
        report.facts["losses"] = losses.since_start(system.instance)
        show.note(report.facts["losses"])
    return report


def name_of(path: Path) -> Path:
    """A file's name within the sources, or its path."""
    full = path.resolve()
    return full.relative_to(paths.TOP) if full.is_relative_to(paths.TOP) else path


def about(system: "System") -> dict[str, str]:
    from ..build.fw_build import version
    accel = {"tcg": "emulation (TCG)", "kvm": "KVM"}
    return {"drives": f"{len(system.drives)}, firmware {version()}",
            "host": f"Linux {system.host.read('uname -r').strip()}, "
                    f"{accel[system.instance.config.accel]}"}


def command(script: Script, topology: Path | None, out: Path | None,
            as_json: bool) -> int:
    """Run a scenario for a user; return the exit status."""
    folder = Path(REPORTS) / script.name if out is None else out
    check_out(folder)
    if as_json:
        show.only_data()
    report = run(script, topology)
    written = report.write(folder)
    show.note(f"{report.title}: {report.verdict}"
              + (f": {report.error}" if report.error else ""))
    show.note(f"report: {', '.join(map(str, written))}")
    if as_json:
        print(json.dumps(report.as_json(), indent=2))
    return 0 if report.verdict == "passed" else 1


def check_out(folder: Path) -> None:
    """EssdError, before minutes of work, if the report cannot be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EssdError(f"--out {folder}: {error.strerror}") from None


def listing() -> list[dict[str, Any]]:
    """What `essd scenario list --json` shows."""
    found = []
    for name in names():
        script = load(name)
        found.append({"name": name, "title": script.scenario.title,
                      "question": script.scenario.question,
                      "script": str(script.path),
                      "topology": str(TOPOLOGIES / script.scenario.topology),
                      "drives": script.scenario.drives})
    return found
