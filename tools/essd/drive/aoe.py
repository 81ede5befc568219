# SPDX-License-Identifier: BSD-2-Clause
"""The devices that a drive exports by ATA over Ethernet, for `essd aoe`."""

from typing import Any

from ..instance.instance import Instance
from . import mgmt


def read(instance: Instance) -> dict[str, Any]:
    """Whether it is on, the shelf, and an entry for each namespace of aoe.export."""
    found: dict[str, Any] = mgmt.ask(instance, "aoe", **{"from": 1})
    start = found.pop("next", 0)
    while start:
        page = mgmt.ask(instance, "aoe", **{"from": start})
        found["devices"] += page["devices"]
        start = page.get("next", 0)
    return found


def forget(instance: Instance) -> None:
    """Drop config strings, mask lists and reservations, which any station may set."""
    mgmt.ask(instance, "aoe-forget")


def device_line(shelf: int, entry: dict[str, Any]) -> str:
    if not entry["exported"]:
        return f"namespace {entry['nsid']} is not exported: {entry['why']}"
    words = [f"e{shelf}.{entry['slot']}  namespace {entry['nsid']}"]
    if entry["masks"]:
        words.append(f"only {entry['masks']} MAC addresses may use it")
    if entry["holders"]:
        words.append(f"reserved for {entry['holders']} MAC addresses")
    if entry["string-bytes"]:
        words.append(f"config string of {entry['string-bytes']} bytes")
    return ", ".join(words)


def text(found: dict[str, Any]) -> str:
    """A line for each namespace of aoe.export."""
    if not found["on"]:
        return "nothing is exported; see aoe.export in docs/configuration.md"
    return "\n".join(device_line(found["shelf"], entry) for entry in found["devices"])
