# SPDX-License-Identifier: BSD-2-Clause
"""The state of link aggregation (LAG) as the drive reports it."""

import copy
from typing import Any

from rich.table import Table

from ..base.errors import EssdError
from ..instance.instance import Instance
from . import mgmt

# The drive normally answers at once, so `essd port` does not wait long for it.
ANSWER_S = 3.0
# IEEE 802.1AX-2008 clause 5.4.2.2, bit 0 first.
STATE_BITS = ("active", "short-timeout", "aggregatable", "in-sync", "collecting",
              "distributing", "defaulted", "expired")

def state_words(text: str) -> list[str]:
    return [word for bit, word in enumerate(STATE_BITS) if int(text, 16) >> bit & 1]


def is_whole(lag: dict[str, Any]) -> bool:
    """Whether all ports are in the LAG and, with LACP, share one partner."""
    partners = {(entry.get("partner") or {}).get("system") for entry in lag["ports"]}
    return (all(entry["role"] in ("active", "standby") for entry in lag["ports"])
            and (lag["mode"] != "lacp" or (len(partners) == 1 and None not in partners)))


def from_reply(reply: dict[str, Any]) -> dict[str, Any]:
    """Convert the management channel's reply to what `--json` shows."""
    if reply["mode"] == "off":
        return {"mode": "off"}
    lag = copy.deepcopy(reply)
    for entry in lag["ports"]:
        for which in ("lacp", "partner"):
            if which in entry:
                state = f"{entry[which]['state']:02x}"
                entry[which] |= {"state": state, "state-words": state_words(state)}
    lag["aggregated"] = is_whole(lag)
    lag["active"] = [e["port"] for e in lag["ports"] if e["role"] == "active"]
    lag["partner-system"] = next(
        (e["partner"]["system"] for e in lag["ports"]
         if e["role"] == "active" and "partner" in e), None)
    return lag


def read(instance: Instance) -> dict[str, Any]:
    """Read the LAG's state from a running drive.

    If the drive does not answer, the mode is None and `why` has the reason.
    """
    try:
        return from_reply(mgmt.ask(instance, "lag", ANSWER_S))
    except EssdError as error:
        return {"mode": None, "why": str(error)}


def of_port(lag: dict[str, Any], number: int) -> dict[str, Any]:
    """The part of `lag` that concerns one port."""
    mine = [entry for entry in lag.get("ports", []) if entry["port"] == number]
    whole = {key: value for key, value in lag.items() if key != "ports"}
    return whole | {key: value for entry in mine for key, value in entry.items()
                    if key != "port"}


def line(lag: dict[str, Any]) -> str:
    if lag["mode"] is None:
        return f"LAG: unknown: {lag['why']}"
    if lag["mode"] == "off":
        return "LAG: off"
    words = ["LACP" if lag["mode"] == "lacp" else "active/standby",
             "up" if lag["up"] else "down",
             "aggregated" if lag["aggregated"] else "not aggregated"]
    if lag["mode"] == "lacp":
        words.append(f"partner {lag['partner-system'] or 'none'}")
    ports = " and ".join(map(str, lag["active"])) if lag["up"] else ""
    words.append(f"active: {ports or 'none'}")
    return f"LAG: {', '.join(words)}"


def table(lag: dict[str, Any]) -> Table:
    """A table of the ports of a LAG that is not off."""
    found = Table(box=None, pad_edge=False)
    has_lacp = lag["mode"] == "lacp"
    for heading in ("port", "role", *(("LACP", "state", "partner", "its port", "its key",
                                       "its state") if has_lacp else ()),
                    "RoCE out", "dropped"):
        found.add_column(heading)
    for entry in lag["ports"]:
        cells = [str(entry["port"]), entry["role"]]
        if has_lacp:
            lacp, partner = entry["lacp"], entry.get("partner")
            cells += [f"{lacp['receive']}, {lacp['mux']}", lacp["state"]]
            cells += ([partner["system"], str(partner["port"]), str(partner["key"]),
                       partner["state"]] if partner else ["none", "-", "-", "-"])
        found.add_row(*cells, str(entry["roce-out"]),
                      str(entry["roce-dropped"] + entry["raw-dropped"]))
    return found
