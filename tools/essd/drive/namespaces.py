# SPDX-License-Identifier: BSD-2-Clause
"""The namespaces of a drive, for `essd namespaces`."""

from typing import Any

from rich.table import Table

from ..instance.instance import Instance
from . import mgmt

MIB = 1 << 20
GIB = 1 << 30


def read(instance: Instance) -> dict[str, Any]:
    """The capacity of the drive, and one entry for each namespace."""
    start = 1
    found: dict[str, Any] = {}
    while True:
        page = mgmt.ask(instance, "namespaces", **{"from": start})
        namespaces = [*found.get("namespaces", []), *page["namespaces"]]
        found = {**page, "namespaces": namespaces}
        if found.pop("next", 0) <= start:
            return found
        start = page["next"]


def size_text(size: int) -> str:
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")):
        if size and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} bytes"


def hosts_text(entry: dict[str, Any]) -> str:
    """To whom a namespace is attached."""
    others = entry["other-hosts"]
    if entry["for-all-hosts"]:
        return "all" if others == 0 else f"all but {others}"
    return str(others) if others else "none"


def table(found: dict[str, Any]) -> Table:
    shown = Table(box=None, pad_edge=False)
    for heading in ("NSID", "size", "block", "hosts", "private", "ANA group", "write protection",
                    "state"):
        shown.add_column(heading, no_wrap=True)
    for entry in found["namespaces"]:
        shown.add_row(str(entry["nsid"]), size_text(entry["size-bytes"]),
                      str(entry["block-bytes"]), hosts_text(entry),
                      "yes" if entry["private"] else "no", str(entry["ana-group"]),
                      entry["write-protection"], entry["state"])
    return shown


def failed_lines(found: dict[str, Any]) -> list[str]:
    """A line for each namespace whose Format has failed."""
    return [f"Namespace {entry['nsid']} takes no I/O: its Format has failed.  Format it again."
            for entry in found["namespaces"] if entry["state"] == "format-failed"]


def capacity_line(found: dict[str, Any]) -> str:
    return (f"{size_text(found['free-bytes'])} of {size_text(found['total-bytes'])} are free; "
            f"namespaces occupy multiples of {size_text(found['granularity-bytes'])}")
