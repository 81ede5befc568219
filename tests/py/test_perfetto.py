# SPDX-License-Identifier: BSD-2-Clause
"""`essd trace --perfetto`: slices of commands, and the summary of their times."""

import io
import json
from typing import Any

from test_trace import record

from essd.observe import perfetto, trace


def written(*records: bytes) -> tuple[list[dict[str, Any]], perfetto.PerfettoPrinter]:
    out = io.StringIO()
    printer = perfetto.PerfettoPrinter(out, False, trace.mask_of("all"))
    for event in printer.decoder.take(b"".join(records)):
        printer.write(event, 0)
    printer.finish()
    return json.loads(out.getvalue())["traceEvents"], printer


# A Read of 4 KiB at LBA 100 that took 160 us: 1 waiting, 120 at the media, 30 to answer.
READ = ("COMMAND", 0x02, 1, 100, 0, 4096, 0, 1, 0, 120, 30, 160)


def slices(entries: list[dict[str, Any]], track: str = "") -> list[dict[str, Any]]:
    """The slices of all tracks, or of those with a name, in the order of the file."""
    tracks = {(entry["pid"], entry["tid"]) for entry in entries
              if entry["name"] == "thread_name" and entry["args"]["name"] == track}
    return [entry for entry in entries if entry["ph"] == "X"
            and (not track or (entry["pid"], entry["tid"]) in tracks)]


def spans(entries: list[dict[str, Any]], track: str = "") -> list[tuple[str, float, float]]:
    """Name, start and end of each slice."""
    return [(entry["name"], entry["ts"], round(entry["ts"] + entry["dur"], 3))
            for entry in slices(entries, track)]


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


def path(arrived_us: int, acknowledged_us: int, **more: int) -> bytes:
    return record("COMMAND_PATH", 1000 * arrived_us, 0, 1000 * acknowledged_us, 0, **more)


# The Read of READ through the RNIC: its capsule arrived 12 us before the firmware took it,
# the response left 10 us after it was posted, and the acknowledgement waited for 4 us.
THROUGH = (record("RESPONSE_SENT", 77, 1, 0, source=2, time_ns=980_000),
           path(828, 996, time_ns=999_000), record(*READ, time_ns=1_000_000))


def test_a_command_begins_at_the_port_and_ends_with_the_acknowledgement() -> None:
    entries, printer = written(*THROUGH)
    assert spans(entries) == [
        ("Read", 828.0, 1000.0), ("arrive", 828.0, 840.0), ("firmware", 840.0, 849.0),
        ("wait", 849.0, 850.0), ("media", 850.0, 970.0), ("send", 970.0, 980.0),
        ("wire", 980.0, 996.0), ("complete", 996.0, 1000.0)]
    assert not any(entry["ph"] == "i" for entry in entries)
    assert printer.times.rows() == [{
        "command": "Read", "count": 1, "failed": 0, "mean-us": 172.0, "p50-us": 172.0,
        "p99-us": 172.0, "drive-us": 152.0, "arrive": 12.0, "firmware": 9.0, "wait": 1.0,
        "fetch": 0.0, "media": 120.0, "send": 10.0, "wire": 16.0, "complete": 4.0}]
    headings = [str(column.header) for column in printer.times.table().columns]
    assert headings[3:7] == ["mean us", "p50 us", "p99 us", "drive us"]
    assert headings[7:] == ["arrive", "firmware", "wait", "media", "send", "wire",
                            "complete"]


def test_a_response_that_is_sent_again_left_when_it_was_sent_first() -> None:
    again = record("RESPONSE_SENT", 77, 1, 1, source=2, time_ns=990_000)
    entries, _ = written(THROUGH[0], again, *THROUGH[1:])
    assert ("wire", 980.0, 996.0) in spans(entries)


def test_times_of_the_rnic_never_leave_the_command() -> None:
    """The clocks of firmware and RNIC are read at slightly different moments."""
    early = record("RESPONSE_SENT", 77, 1, 0, source=2, time_ns=969_000)
    entries, _ = written(early, path(841, 1001), record(*READ, time_ns=1_000_000))
    found = dict((name, (start, end)) for name, start, end in spans(entries))
    assert found["Read"] == (840.0, 1000.0) and found["wire"] == (970.0, 1000.0)
    assert not {"arrive", "send", "complete", "respond"} & set(found)


def test_a_command_without_acknowledgement_keeps_its_one_stage() -> None:
    entries, _ = written(path(828, 0), record(*READ, time_ns=1_000_000))
    assert ("respond", 970.0, 1000.0) in spans(entries)
    # The next command of the same number has nothing of it.
    entries, _ = written(*THROUGH, record(*READ, time_ns=2_000_000))
    assert ("respond", 1970.0, 2000.0) in spans(entries)


def test_commands_that_overlap_have_tracks_of_their_own() -> None:
    """The page calls them commands 1 and commands 2."""
    entries, _ = written(record(*READ, request=1), record(*READ, request=2),
                         record(*READ, request=3, time_ns=99 * 10**9))
    reads = [entry for entry in slices(entries, "commands") if entry["name"] == "Read"]
    assert [entry["tid"] for entry in reads] == [1, 2, 1]
    assert sum(entry["name"] == "process_name" for entry in entries) == 1


def test_stages_never_leave_their_command_and_never_overlap() -> None:
    """The page drops a slice of a track that overlaps its neighbour."""
    late = ("COMMAND", 0x02, 1, 100, 0, 4096, 0, 10, 20, 120, 30, 100)  # 180 of 100 us
    entries, _ = written(path(993, 0), record(*late, time_ns=1_000_001))
    command, *stages = spans(entries)
    assert stages and all(command[1] <= begun <= end <= command[2]
                          for _, begun, end in stages)
    assert all(before[2] <= after[1]
               for before, after in zip(stages, stages[1:], strict=False))


def pdu(name: str, kind: int, time_us: int, request: int = 7) -> bytes:
    """A PDU of the command with CID 3."""
    return record(name, kind, 0, 1, 3, 5, 0, 4096, request=request, time_ns=1000 * time_us)


# A Write of 8 KiB by NVMe/TCP in two windows: 50 us for its data, of which it waited for
# 30 until they began to come, 60 at the media and 20 to answer.
WRITE = (pdu("PDU_RECEIVED", 4, 835, 0), pdu("PDU_SENT", 9, 850),
         pdu("PDU_RECEIVED", 6, 870, 0), pdu("PDU_RECEIVED", 6, 872, 0),
         pdu("PDU_SENT", 9, 910), pdu("PDU_RECEIVED", 6, 920, 0),
         pdu("PDU_SENT", 5, 985),
         record("COMMAND", 0x01, 1, 100, 0, 8192, 0, 2, 50, 60, 20, 160,
                time_ns=1_000_000))


def test_a_command_of_nvme_tcp_has_the_stages_of_its_pdus() -> None:
    entries, printer = written(*WRITE)
    assert spans(entries) == [
        ("Write", 835.0, 1000.0), ("capsule", 835.0, 840.0), ("firmware", 840.0, 868.0),
        ("wait", 868.0, 870.0), ("r2t", 870.0, 900.0), ("h2c-data", 900.0, 920.0),
        ("media", 920.0, 980.0), ("c2h-data", 980.0, 985.0), ("response", 985.0, 1000.0)]
    row, = printer.times.rows()
    assert (row["mean-us"], row["drive-us"], row["response"]) == (165.0, 95.0, 15.0)
    # Each PDU is a mark, too, with the words of a line of the trace.
    assert sum(entry["ph"] == "i" for entry in entries) == len(WRITE) - 1


def test_the_pdus_of_a_command_are_not_those_of_the_next_with_its_cid() -> None:
    lost = record(*READ, request=9, time_ns=1_000_000)      # no PDU of it was traced
    entries, _ = written(*WRITE, lost)
    assert ("respond", 970.0, 1000.0) in spans(entries)
    # The host uses the CID again before the drive knows that it has the response.
    entries, _ = written(*WRITE[:-1], pdu("PDU_RECEIVED", 4, 995, 0), WRITE[-1],
                         pdu("PDU_SENT", 7, 1150, 8),
                         record(*READ, request=8, time_ns=1_160_000))
    assert ("response", 985.0, 1000.0) in spans(entries)
    assert ("capsule", 995.0, 1000.0) in spans(entries)
    assert spans(entries)[-1] == ("response", 1150.0, 1160.0)


def test_media_operations_and_instants_have_their_place() -> None:
    entries, _ = written(record("MEDIA", 0x02, 100, 0, 8, 0, 60, time_ns=1_000_000),
                         record("ENGINE_STARTED", 1, 100, 0, 8, source=3, qpn=0),
                         record("ENGINE_ENDED", 1, 100, 0, 8, 0, 50, source=3, qpn=0,
                                time_ns=1_000_000),
                         record("NAK_SENT", 0x60, 5, source=2))
    assert spans(entries) == [("READ", 950.0, 1000.0)]
    instant = entries[-1]
    assert (instant["ph"], instant["name"]) == ("i", "NAK sent: PSN sequence, PSN 5")


def test_operations_of_the_nand_controller_have_a_process_of_their_own() -> None:
    entries, _ = written(record("NAND_STARTED", 1, 3, 1, 1, 7, 0, 1, source=4, qpn=0),
                         record("NAND_ENDED", 1, 3, 1, 1, 7, 0, 1, 0, 50, source=4, qpn=0,
                                time_ns=1_000_000))
    assert spans(entries, "commands of channel 3 die 1") == [
        ("READ for host read", 950.0, 1000.0)]
    assert entries[0]["args"]["name"] == "NAND dies and channels"


def test_an_empty_trace_is_a_valid_file() -> None:
    entries, printer = written()
    assert entries == [] and printer.times.rows() == []


def test_the_summary_has_counts_failures_and_times() -> None:
    slow = ("COMMAND", 0x02, 1, 100, 0, 4096, 0x281, 0, 0, 900, 40, 960)
    _, printer = written(*[record(*READ)] * 3, record(*slow),
                         record("COMMAND", 1 << 16 | 0x0c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10**6))
    assert printer.times.rows() == [{
        "command": "Read", "count": 4, "failed": 1, "mean-us": 360.0, "p50-us": 160,
        "p99-us": 960, "drive-us": 327.5, "arrive": 0.0, "firmware": 11.8, "wait": 0.8,
        "fetch": 0.0, "media": 315.0, "respond": 32.5}]
