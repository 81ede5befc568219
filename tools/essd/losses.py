# SPDX-License-Identifier: BSD-2-Clause
"""Frames that were lost between the drives and the hosts of an instance.

The cables lose nothing, but what is at their ends may: the queue of a host's network card,
its virtio queues, the backlog of its kernel, and the output queues of switches.  RoCE
repeats what was lost, so that a loss shows as a slow or broken connection only.  The
drives' own counters are apart from these (docs/management.md, "counters").
"""

import contextlib
import json
import re
from typing import Any

from .errors import EssdError
from .instance import Instance

# A guest prints the queues of its cards, the drops of their drivers and its backlogs.
# tx_dropped and rx_dropped also count frames without a carrier and of unknown protocols.
SCRIPT = """
tc -s -j qdisc show
for card in /sys/class/net/eth[0-9]*; do
    echo card ${card##*/}
    ethtool -S ${card##*/}
    for name in tx_errors rx_errors; do
        read -r count < $card/statistics/$name
        echo "$name: $count"
    done
done
while read -r line; do echo "$line"; done < /proc/net/softnet_stat
"""
ANSWER_S = 30
# Counters of a switch's port; those of losses that its settings ask for are not here.
SWITCH = ("rx_offloaded", "tx_full", "tx_stalled", "tx_long", "tx_refused")


def of_guest(text: str) -> dict[str, int]:
    """The counters in what SCRIPT has printed."""
    found: dict[str, int] = {}
    lines = text.splitlines()
    for queue in json.loads(lines[0]):
        # A queue with children counts what they drop.
        if re.fullmatch(r"eth\d+", queue["dev"]) and queue.get("root"):
            found[f"{queue['dev']} {queue['kind']}"] = int(queue.get("drops", 0))
    card = ""
    for line in lines[1:]:
        if line.startswith("card "):
            card = line.split()[1]
        elif match := re.fullmatch(r"\s*(rx_drops|tx_tx_timeouts|[rt]x_errors): (\d+)", line):
            found[f"{card} {match[1]}"] = int(match[2])
        elif match := re.fullmatch(r"[0-9a-f]{8} ([0-9a-f]{8}) .*", line):
            found["backlog"] = found.get("backlog", 0) + int(match[1], 16)
    return found


def of_switch(shown: dict[str, Any]) -> dict[str, int]:
    """The counters in what a switch answers to "show"."""
    return {f"port {port['port']} {name}": int(port["counters"][name])
            for port in shown["ports"] for name in SWITCH}


def read(instance: Instance) -> dict[str, int]:
    """What each part has lost since it was started.

    One that is off or halted cannot be asked, and is left out.
    """
    found: dict[str, int] = {}
    config = instance.config
    parts = instance.status()["parts"]
    for part in [*config.hosts, *(["peer"] if config.peer else [])]:
        if parts[part]["ready"] and not parts[part]["halted"]:
            with contextlib.suppress(EssdError):        # It hangs, or ends just now.
                text = instance.run(SCRIPT, part=part, timeout_s=ANSWER_S, apart=True).output
                found |= {f"{part}: {name}": count for name, count in of_guest(text).items()}
    for part in config.switches:
        if parts[part]["state"] == "running":
            shown = instance.ask("switch", part=part, request="show")
            found |= {f"{part}: {name}": count for name, count in of_switch(shown).items()}
    return found


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What was lost in between; a part that was started again began at 0."""
    return {name: count - (before.get(name, 0) if count >= before.get(name, 0) else 0)
            for name, count in after.items() if count != before.get(name, 0) and count}


def words(lost: dict[str, int]) -> str:
    """One line for people."""
    text = ", ".join(f"{name} {count}" for name, count in lost.items())
    return f"frames lost between drive and host: {text or 'none'}"
