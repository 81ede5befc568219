# SPDX-License-Identifier: BSD-2-Clause
"""`essd trace --perfetto`: slices of commands, and the summary of their times."""

import io
import json
from typing import Any

from test_trace import record

from essd import perfetto, trace


def written(*records: bytes) -> tuple[list[dict[str, Any]], perfetto.PerfettoPrinter]:
    out = io.StringIO()
    printer = perfetto.PerfettoPrinter(out, False, trace.mask_of("all"))
    for event in printer.decoder.take(b"".join(records)):
        printer.write(event, 0)
    printer.finish()
    return json.loads(out.getvalue())["traceEvents"], printer


# A Read of 4 KiB at LBA 100 that took 160 us: 1 waiting, 120 at the media, 30 to answer.
READ = ("COMMAND", 0x02, 1, 100, 0, 4096, 0, 1, 0, 120, 30, 160)


def spans(entries: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    """Name, start and end of each slice, in the order of their starts."""
    open_slices: list[dict[str, Any]] = []
    found = []
    for entry in entries:
        if entry["ph"] == "b":
            open_slices.append(entry)
        elif entry["ph"] == "e":
            start = next(s for s in open_slices if s["name"] == entry["name"]
                         and s["id"] == entry["id"])
            open_slices.remove(start)
            found.append((entry["name"], start["ts"], entry["ts"]))
    assert not open_slices
    return found


def test_a_command_is_a_slice_with_its_stages_inside() -> None:
    entries, _ = written(record(*READ, time_ns=1_000_000))
    assert spans(entries) == [
        ("Read", 840.0, 1000.0), ("firmware", 840.0, 849.0), ("wait", 849.0, 850.0),
        ("media", 850.0, 970.0), ("respond", 970.0, 1000.0)]
    read = next(entry for entry in entries if entry["name"] == "Read")
    assert read["args"] == {"nsid": 1, "lba": 100, "bytes": 4096, "status": "ok",
                            "request": 7}
    name = next(entry for entry in entries if entry["ph"] == "M")
    assert (name["pid"], name["args"]["name"]) == (0x802, "queue pair 0x802")


def test_commands_that_overlap_have_tracks_of_their_own() -> None:
    entries, _ = written(record(*READ, request=1), record(*READ, request=2))
    assert len({entry["id"] for entry in entries if entry["ph"] == "b"}) == 2
    assert sum(entry["ph"] == "M" for entry in entries) == 1


def test_media_operations_and_instants_have_their_place() -> None:
    entries, _ = written(record("MEDIA", 0x02, 100, 0, 8, 0, 60, time_ns=1_000_000),
                         record("ENGINE_STARTED", 1, 100, 0, 8, source=3, qpn=0),
                         record("ENGINE_ENDED", 1, 100, 0, 8, 0, 50, source=3, qpn=0,
                                time_ns=1_000_000),
                         record("NAK_SENT", 0x60, 5, source=2))
    assert spans(entries) == [("READ", 950.0, 1000.0)]
    instant = entries[-1]
    assert (instant["ph"], instant["name"]) == ("i", "NAK sent: PSN sequence, PSN 5")


def test_an_empty_trace_is_a_valid_file() -> None:
    entries, printer = written()
    assert entries == [] and printer.times.rows() == []


def test_the_summary_has_counts_failures_and_times() -> None:
    slow = ("COMMAND", 0x02, 1, 100, 0, 4096, 0x281, 0, 0, 900, 40, 960)
    _, printer = written(*[record(*READ)] * 3, record(*slow),
                         record("COMMAND", 1 << 16 | 0x0c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10**6))
    assert printer.times.rows() == [{
        "command": "Read", "count": 4, "failed": 1, "mean-us": 360.0, "p50-us": 160,
        "p99-us": 960, "firmware": 11.8, "wait": 0.8, "fetch": 0.0, "media": 315.0,
        "respond": 32.5}]
