# SPDX-License-Identifier: BSD-2-Clause
"""The NVMe commands that a drive works on, for `essd requests`."""

from typing import Any

from rich.table import Table

from ..drive import mgmt
from ..instance.instance import Instance
from .trace import FABRICS, opcode_name


def read(instance: Instance) -> list[dict[str, Any]]:
    """One entry for each command in the drive, the oldest first."""
    found: list[dict[str, Any]] = []
    start = 0
    while True:
        page = mgmt.ask(instance, "requests", **{"from": start})
        found += page["requests"]
        if page.get("next", 0) <= start:
            return sorted(found, key=lambda entry: -int(entry["age-us"]))
        start = page["next"]


def command_name(entry: dict[str, Any]) -> str:
    if "fctype" in entry:
        return FABRICS.get(entry["fctype"], f"fabrics {entry['fctype']:#04x}")
    return opcode_name(entry["opcode"] | (0 if entry["qid"] else 1 << 16))


def table(requests: list[dict[str, Any]]) -> Table:
    found = Table(box=None, pad_edge=False)
    for heading in ("request", "queue pair", "QID", "CID", "command", "NSID", "LBA",
                    "bytes", "state", "age"):
        found.add_column(heading, no_wrap=True)
    for entry in requests:
        found.add_row(
            str(entry["request"]), f"{entry['qpn']:#08x}", str(entry["qid"]),
            str(entry["cid"]), command_name(entry), str(entry.get("nsid", "-")),
            str(entry.get("lba", "-")), str(entry["bytes"]), entry["state"],
            f"{entry['age-us'] / 1000:.1f} ms")
    return found
