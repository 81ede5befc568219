# SPDX-License-Identifier: BSD-2-Clause
"""What `essd status` shows: the parts of an instance, and its cables."""

import contextlib
from typing import Any

from rich.table import Table

from ..base import cpu, patterns
from ..base.errors import EssdError
from ..debug import reflash
from ..drive import ana, mgmt, port_lag
from ..instance.instance import Instance

GUESTS = ("host", "peer")


def kind_of(name: str, facts: dict[str, Any]) -> str:
    """Whether a part is a drive, a host, the peer or a switch."""
    return str(facts.get("kind") or (name if name in GUESTS else "drive"))


def facts(instance: Instance, pattern: str = "") -> dict[str, Any]:
    """The supervisor's status, and what the drives say of themselves.

    With a pattern, only the parts that it names.

    With the one drive of an ordinary instance its answers are in "drive" and "lag",
    else in "drives" by the drive's name.
    """
    found = instance.status()
    if pattern:
        names = patterns.select(pattern, found["parts"])
        found["parts"] = {name: found["parts"][name] for name in names}
        found["cables"] = {number: cable for number, cable in found["cables"].items()
                           if any(end.partition(":")[0] in names for end in cable["ends"])}
    found["drives"] = {}
    for name, part in found["parts"].items():
        if kind_of(name, part) != "drive" or part["state"] != "running":
            continue
        one = instance.of(name)
        # A halted drive answers nobody.
        said: dict[str, Any] = {"drive": {"why": "the drive is halted"} if part["halted"]
                else mgmt.status(one), "lag": port_lag.read(one)}
        if not part["halted"]:
            said["ana"] = ana.of_running(one)
            with contextlib.suppress(EssdError):
                said["drive"] |= reflash.running_image(one)
        found["drives"][name] = said
        if name == "drive":
            found |= said
    return found


def state_words(name: str, part: dict[str, Any]) -> str:
    state = str(part["state"])
    if kind_of(name, part) in GUESTS and state == "running":
        state = "ready" if part["ready"] else "starting"
    if part["halted"]:
        state += ", halted"
    if part["restarts"]:
        state += f", restarted by itself ({part['restarts'][-1]})"
    return f"{state} {part['why']}".strip()


def parts_table(status: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("part", "state", "pid", "memory", "log"):
        table.add_column(heading)
    for name, part in status["parts"].items():
        memory = f"{cpu.resident_mib(part['pid']):.0f} MiB" if part["pid"] else ""
        table.add_row(name, state_words(name, part), str(part["pid"] or ""), memory,
                      part["console"])
    return table


def cable_words(cable: dict[str, Any], is_topology: bool) -> str:
    """The state of one cable."""
    words = ["plugged" if cable["plugged"] else "unplugged"]
    if cable.get("outside"):
        if cable["port_up"] is not None:
            words.append(f"link {'up' if cable['port_up'] else 'down'}")
        else:
            words.append("connected" if cable["connected"] else "not connected")
        if not is_topology:     # else its name says so
            words.append(f"leads to {cable['outside']}")
    elif cable.get("has_host", True):
        words.append("carrier" if cable["carrier"] else "no carrier")
    elif cable["port_up"] is not None:
        words.append(f"link {'up' if cable['port_up'] else 'down'}")
    return ", ".join(words)


def cable_lines(status: dict[str, Any]) -> list[str]:
    lines = []
    is_topology = any(kind_of(name, part) == "switch" or name not in ("drive", *GUESTS)
                      for name, part in status["parts"].items())
    for number, cable in status["cables"].items():
        name = " - ".join(cable["ends"]) if is_topology else f"cable {number}"
        lines.append(f"{name}: {cable_words(cable, is_topology)}")
    return lines


def firmware_lines(status: dict[str, Any]) -> list[str]:
    """A line for each running drive: which firmware runs, model and serial number."""
    lines = []
    for name, said in status.get("drives", {}).items():
        drive = said["drive"]
        if "firmware" not in drive:
            continue
        build = (drive.get("build-id") or "unknown")[:12]
        lines.append(f"{name}: firmware {drive['firmware']}, build {build}, slot "
                     f"{drive.get('slot') or 'unknown'}; {drive.get('model', '')}, serial "
                     f"{drive.get('serial', '')}")
    return lines


def tcp_lines(status: dict[str, Any]) -> list[str]:
    """A line for each drive that has TCP connections."""
    lines = []
    for name, said in status.get("drives", {}).items():
        count = said["drive"].get("tcp-connections", 0)
        queues = said["drive"].get("nvme-tcp-queues", 0)
        if count:
            nvme = f", {queues} of them for NVMe/TCP" if queues else ""
            lines.append(f"{name}: {count} TCP connection{'s' if count > 1 else ''}{nvme}; "
                         "see essd tcp")
    return lines


def ana_lines(status: dict[str, Any]) -> list[str]:
    """A line for each group of namespaces that a port does not reach at its best."""
    return [line for name, said in status.get("drives", {}).items()
            for line in ana.lines(name, said.get("ana", []))]


def is_bad(status: dict[str, Any]) -> bool:
    """Whether a part has crashed, or has restarted by itself."""
    return any(part["state"] == "crashed" or part["restarts"]
               for part in status["parts"].values())
