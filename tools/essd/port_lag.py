# SPDX-License-Identifier: BSD-2-Clause
"""Link aggregation as the drive sees it: who works, what the partner says."""

import re
from typing import Any

from rich.table import Table

from . import console
from .errors import EssdError
from .instance import Instance

# The drive answers at once; whoever looks at a port does not wait for long.
ANSWER_S = 3.0
MODES = {"active/standby": "active-standby", "LACP": "lacp"}
# IEEE 802.1AX-2008 clause 5.4.2.2, bit 0 first.
STATE_BITS = ("active", "short-timeout", "aggregatable", "in-sync", "collecting",
              "distributing", "defaulted", "expired")

HEAD = re.compile(r"lag: (active/standby|LACP), (up|down)")
ROLE = re.compile(r"port (\d): (active|standby|out|link down)")
LACP = re.compile(r"port (\d): LACP ([a-z ]+), (.*), state ([0-9a-f]{2})")
PARTNER = re.compile(r"port (\d): partner (\S+), priority (\d+), key (\d+), "
                     r"port (\d+), state ([0-9a-f]{2})")
PDUS = re.compile(r"port (\d): LACPDUs (\d+) in, (\d+) out, (\d+) illegal")
FRAMES = re.compile(r"port (\d): RoCE frames (\d+) out, (\d+) dropped; "
                    r"raw (\d+) dropped")
LAST = re.compile(r"moved (\d+) times by itself, (\d+) frames had no port")


def state_words(text: str) -> list[str]:
    return [word for bit, word in enumerate(STATE_BITS) if int(text, 16) >> bit & 1]


def fact(line: str) -> dict[str, Any] | None:
    """What one line says of a port, without the port's number."""
    if match := ROLE.fullmatch(line):
        return {"role": match[2]}
    if match := LACP.fullmatch(line):
        return {"lacp": {"receive": match[2], "mux": match[3], "state": match[4],
                         "state-words": state_words(match[4])}}
    if match := PARTNER.fullmatch(line):
        return {"partner": {"system": match[2], "priority": int(match[3]),
                            "key": int(match[4]), "port": int(match[5]),
                            "state": match[6], "state-words": state_words(match[6])}}
    if match := PDUS.fullmatch(line):
        return {"lacpdus-in": int(match[2]), "lacpdus-out": int(match[3]),
                "lacpdus-illegal": int(match[4])}
    if match := FRAMES.fullmatch(line):
        return {"roce-out": int(match[2]), "roce-dropped": int(match[3]),
                "raw-dropped": int(match[4])}
    return None


def is_whole(lag: dict[str, Any]) -> bool:
    """Each port is a part of it; by LACP: of one with one partner."""
    partners = {(entry.get("partner") or {}).get("system") for entry in lag["ports"]}
    return (all(entry["role"] in ("active", "standby") for entry in lag["ports"])
            and (lag["mode"] != "lacp" or (len(partners) == 1 and None not in partners)))


def parse(lines: list[str]) -> dict[str, Any]:
    """The console's answer, as `--json` shows it."""
    if lines == ["lag: off"]:
        return {"mode": "off"}
    head = HEAD.fullmatch(lines[0]) if lines else None
    last = LAST.fullmatch(lines[-1]) if lines else None
    if head is None or last is None:
        raise EssdError("what the drive says of its aggregation is not understood: its "
                        "firmware is another version than this essd")
    ports: dict[int, dict[str, Any]] = {}
    for line in lines[1:-1]:
        found = fact(line)
        if found is None:
            raise EssdError(f"what the drive says of its aggregation is not understood: "
                            f"{line}")
        number = int(line[5])
        ports.setdefault(number, {"port": number}).update(found)
    lag: dict[str, Any] = {
        "mode": MODES[head[1]], "up": head[2] == "up",
        "ports": [ports[number] for number in sorted(ports)]}
    lag["aggregated"] = is_whole(lag)
    lag["active"] = [e["port"] for e in lag["ports"] if e["role"] == "active"]
    lag["partner-system"] = next(
        (e["partner"]["system"] for e in lag["ports"]
         if e["role"] == "active" and "partner" in e), None)
    lag["moves"], lag["frames-without-port"] = int(last[1]), int(last[2])
    return lag


def read(instance: Instance) -> dict[str, Any]:
    """Of a drive that runs.  One that does not answer has `why`, and no mode."""
    try:
        return parse(console.ask(instance, "lag", ANSWER_S))
    except EssdError as error:
        return {"mode": None, "why": str(error)}


def of_port(lag: dict[str, Any], number: int) -> dict[str, Any]:
    """`lag` as one port's entry has it: the others' facts left out."""
    mine = [entry for entry in lag.get("ports", []) if entry["port"] == number]
    whole = {key: value for key, value in lag.items() if key != "ports"}
    return whole | {key: value for entry in mine for key, value in entry.items()
                    if key != "port"}


def line(lag: dict[str, Any]) -> str:
    if lag["mode"] is None:
        return f"LAG: not known: {lag['why']}"
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
    """The ports of one that is on."""
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
