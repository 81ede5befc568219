# SPDX-License-Identifier: BSD-2-Clause
"""The TCP connections of a drive, for `essd tcp`."""

from collections.abc import Iterator
from typing import Any

from ..instance.instance import Instance
from . import mgmt


def read(instance: Instance) -> list[dict[str, Any]]:
    """One entry for each connection of the TCP offload engine, half-open ones and
    those in TIME-WAIT included (docs/management.md, `tcp-connections`)."""
    found: list[dict[str, Any]] = []
    start = 0
    while True:
        page = mgmt.ask(instance, "tcp-connections", **{"from": start})
        found += page["tcp-connections"]
        if page.get("next", 0) <= start:
            return found
        start = page["next"]


def end_text(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def milliseconds(microseconds: int) -> str:
    return f"{microseconds / 1000:g}ms"


def head_line(entry: dict[str, Any]) -> str:
    place = f"port {entry['port']}"
    if "vlan" in entry:
        place += f", VLAN {entry['vlan']}"
    ends = (f"{end_text(entry['local'], entry['local-port'])} "
            f"{end_text(entry['remote'], entry['remote-port'])}")
    return f"{entry['state']:<12} {entry['user'] or '-':<8} {ends}  {place}"


def window_words(entry: dict[str, Any]) -> Iterator[str]:
    yield f"mss:{entry['mss']}"
    yield f"wscale:{entry['send-scale']},{entry['receive-scale']}"
    yield f"send-window:{entry['send-window']}"
    yield f"receive-window:{entry['receive-window']}"
    yield f"cwnd:{entry['cwnd']}"
    if "ssthresh" in entry:
        yield f"ssthresh:{entry['ssthresh']}"


def time_words(entry: dict[str, Any]) -> Iterator[str]:
    if "rtt-us" in entry:
        yield (f"rtt:{milliseconds(entry['rtt-us'])}/"
               f"{milliseconds(entry['rtt-deviation-us'])}")
        yield f"minrtt:{milliseconds(entry['least-rtt-us'])}"
    yield f"rto:{milliseconds(entry['rto-us'])}"


def flight_words(entry: dict[str, Any]) -> Iterator[str]:
    yield f"in-flight:{entry['in-flight']}"
    for key in ("sacked", "ranges-early", "retransmits"):
        if entry[key]:
            yield f"{key}:{entry[key]}"
    yield from (word for word in ("recovers", "timestamps", "sack", "ecn") if entry[word])


def nvme_words(nvme: dict[str, Any]) -> Iterator[str]:
    yield f"qid:{nvme['qid']}" if "qid" in nvme else "no Connect yet"
    digests = [kind for kind in ("header", "data") if nvme[f"{kind}-digests"]]
    yield f"digests:{','.join(digests) or 'none'}"
    yield f"commands:{nvme['commands']}"
    for key in ("responses", "r2ts", "digest-errors"):
        if nvme[key]:
            yield f"{key}:{nvme[key]}"
    if nvme["waits"]:
        yield "not-read"


def detail_lines(entry: dict[str, Any]) -> Iterator[str]:
    """What `ss -ti` of Linux shows in its second line, in lines of a narrow screen."""
    if "rto-us" in entry:
        yield " ".join(window_words(entry))
        yield " ".join((*time_words(entry), *flight_words(entry)))
    if "sent-bytes" in entry:
        yield f"bytes-acked:{entry['sent-bytes']} bytes-received:{entry['received-bytes']}"
    if "nvme" in entry:
        yield " ".join(nvme_words(entry["nvme"]))
    if "left-ms" in entry:
        yield f"ends in {entry['left-ms'] / 1000:.1f} s"


def text(entries: list[dict[str, Any]]) -> str:
    """A line for each connection, and its details below, indented."""
    lines = []
    for entry in entries:
        lines.append(head_line(entry))
        lines += [f"    {line}" for line in detail_lines(entry)]
    return "\n".join(lines)
