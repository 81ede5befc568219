# SPDX-License-Identifier: BSD-2-Clause
"""Frames that were lost between the drives and the hosts of an instance.

The cables lose nothing, but what is at their ends may: the queue of a host's network card,
its virtio queues, the backlog of its kernel, and the output queues of switches.  RoCE
repeats what was lost, so that a loss shows as a slow or broken connection only.  The
drives' own counters are apart from these (docs/management.md, "counters").
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..base.errors import EssdError
from ..instance.instance import Instance

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


@dataclass
class Losses:
    """What was lost, and of which parts that is not known."""

    counts: dict[str, int] = field(default_factory=dict)    # by part and counter
    unknown: dict[str, str] = field(default_factory=dict)   # by part: it gave no answer
    unasked: dict[str, str] = field(default_factory=dict)   # by part: it was off or halted

    @property
    def complaint(self) -> str:
        """Why nobody can rely on a measurement or a test; "" if no frame was lost."""
        return words(self) if self.unknown or any(self.counts.values()) else ""

    def __or__(self, other: "Losses") -> "Losses":
        return Losses(self.counts | other.counts, self.unknown | other.unknown,
                      self.unasked | other.unasked)


class UnknownError(EssdError):
    """A part has not said what it has lost."""


def of_guest(text: str) -> dict[str, int]:
    """The counters in what SCRIPT has printed; UnknownError if they are not all there."""
    try:
        found = guest_counters(text)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise UnknownError(f"its counters cannot be read: {type(error).__name__}: {error}"
                           ) from None
    cards = [line.split()[1] for line in text.splitlines() if re.match(r"card \S", line)]
    # Each card has a queue and errors, and each processor a backlog.
    missing = [f"{card} {name}" for card in cards for name in ("tx_errors", "rx_errors")
               if f"{card} {name}" not in found]
    missing += [f"the queue of {card}" for card in cards
                if not any(re.fullmatch(rf"{card} [^_ ]+", name) for name in found)]
    missing += [] if "backlog" in found else ["backlog"]
    if missing or not cards:
        raise UnknownError(f"it has not printed {', '.join(missing) or 'its cards'}")
    return found


def guest_counters(text: str) -> dict[str, int]:
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


def of_switch(shown: Any) -> dict[str, int]:
    """The counters in what a switch answers to "show"; UnknownError if they are not there."""
    try:
        return {f"port {port['port']} {name}": int(port["counters"][name])
                for port in shown["ports"] for name in SWITCH}
    except (KeyError, TypeError, ValueError) as error:
        raise UnknownError(f"its counters cannot be read: {type(error).__name__}: {error}"
                           ) from None


def read(instance: Instance) -> Losses:
    """What each part has lost since it was started."""
    found = Losses()
    config = instance.config
    parts = instance.status()["parts"]

    def take(part: str, is_asked: bool, ask: Callable[[], dict[str, int]]) -> None:
        if not is_asked:
            state = parts[part]["state"]
            found.unasked[part] = "not ready" if state == "running" else str(state)
            return
        try:
            found.counts |= {f"{part}: {name}": count for name, count in ask().items()}
        except EssdError as error:
            found.unknown[part] = str(error)

    for part in [*config.hosts, *(["peer"] if config.peer else [])]:
        take(part, parts[part]["ready"] and not parts[part]["halted"],
             lambda part=part: of_guest(instance.run(     # type: ignore[misc]
                 SCRIPT, part=part, timeout_s=ANSWER_S, apart=True).output))
    for part in config.switches:
        take(part, parts[part]["state"] == "running",
             lambda part=part: of_switch(instance.ask(    # type: ignore[misc]
                 "switch", part=part, request="show")))
    return found


def grown(before: Losses, after: Losses) -> Losses:
    """What was lost in between; a part that was started again began at 0."""
    lost = Losses(unknown=dict(after.unknown), unasked=dict(after.unasked))
    for name, count in after.counts.items():
        part = name.partition(":")[0]
        first = before.counts.get(name, 0)
        if count and name not in before.counts and part in before.unknown:
            lost.unknown[part] = f"before: {before.unknown[part]}"
        elif count and count != first:
            lost.counts[name] = count - (first if count >= first else 0)
    return lost


def known(before: Losses, now: Losses) -> Losses:
    """What the next look is compared with: a part that was not asked now keeps its counters."""
    return Losses(before.counts | now.counts, now.unknown, now.unasked)


def words(lost: Losses) -> str:
    """One line for people."""
    texts = [f"{name} {count}" for name, count in lost.counts.items()]
    texts += [f"{part} unknown ({' '.join(why.split())})" for part, why in lost.unknown.items()]
    texts += [f"{part} was not asked ({why})" for part, why in lost.unasked.items()]
    if not lost.counts and not lost.unknown:
        texts.insert(0, "none")
    return f"frames lost between drive and host: {', '.join(texts)}"


def since_start(instance: Instance) -> str:
    """One line for people: what the parts have lost since they were started.

    If that is not known, the line says why.
    """
    try:
        lost = grown(Losses(), read(instance))
    except (EssdError, OSError) as error:
        lost = Losses(unknown={"all parts": str(error)})
    return words(lost)
