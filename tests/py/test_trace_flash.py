# SPDX-License-Identifier: BSD-2-Clause
"""The flash in traces: events in words, and its tracks in Perfetto."""

import re
from typing import Any

import pytest
from test_perfetto import slices, spans, written
from test_trace import decode, record, words

from essd.base.paths import TOP
from essd.observe import slow_commands, trace, trace_flash

COLLECTION = trace_flash.CAUSES.index("collection")
READ, WRITE = 0, 1          # causes
NO_STREAM = 0xffffffff      # FTL_NOWHERE
BUSY, RECEIVES, SENDS = (trace_flash.PHASES.index(name)
                         for name in ("busy", "receives", "sends"))


def enum_of(path: str, name: str) -> list[str]:
    """The names of a C enum, in order."""
    text = re.sub(r"/\*.*?\*/", "", (TOP / path).read_text(), flags=re.S)
    found = re.search(rf"enum {name} \{{(.*?)\}}", text, re.S)
    assert found is not None
    return re.findall(r"\w+", found[1])


@pytest.mark.parametrize("path, name, prefix, table, ends_with", [
    ("storage/ftl/ftl_flash.h", "ftl_cause", "FTL_CAUSE_", trace_flash.CAUSES, 1),
    ("storage/ftl/space/ftl_superblock.h", "ftl_superblock_state", "FTL_SUPERBLOCK_",
     trace_flash.SUPERBLOCK_STATES, 0),
    ("storage/ftl/ftl_flash.h", "ftl_flash_status", "FTL_FLASH_",
     trace_flash.ROW_STATUSES, 0),
    ("storage/ftl/base/ftl_trace.h", "ftl_wait", "FTL_WAIT_", trace_flash.WAITS, 0),
    ("storage/ftl/base/ftl_trace.h", "ftl_activity", "FTL_ACTIVITY_", trace_flash.ACTIVITIES, 0),
    ("storage/ftl/background/ftl_checkpointing.h", "ftl_checkpoint_state", "FTL_CHECKPOINT_",
     trace_flash.ACTIVITY_PHASES[1], 0),
    ("storage/ftl/ftl_wiping.h", "ftl_wipe_phase", "FTL_WIPE_",
     trace_flash.ACTIVITY_PHASES[2], 0),
    ("hw-model/nand/hw_nand.h", "hw_nand_die_state", "HW_DIE_", trace_flash.PHASES, 0),
])
def test_each_table_has_the_length_of_its_enum(path: str, name: str, prefix: str,
                                              table: tuple[str, ...], ends_with: int) -> None:
    found = enum_of(path, name)
    assert all(word.startswith(prefix[:-1]) for word in found)
    assert len(found) - ends_with == len(table)


def test_the_names_of_tables_stand_at_their_numbers() -> None:
    causes = enum_of("storage/ftl/ftl_flash.h", "ftl_cause")
    assert causes.index("FTL_CAUSE_COLLECT") == COLLECTION
    assert causes.index("FTL_CAUSE_DISTURB") == trace_flash.CAUSES.index("read disturb")
    assert causes.index("FTL_CAUSE_POWER") == trace_flash.CAUSES.index("power failure")
    states = enum_of("storage/ftl/space/ftl_superblock.h", "ftl_superblock_state")
    assert [name.removeprefix("FTL_SUPERBLOCK_").lower() for name in states[:5]] == \
        list(trace_flash.SUPERBLOCK_STATES[:5])
    phases = enum_of("storage/ftl/space/ftl_mount_found.h", "ftl_mount_phase")
    assert len(trace_flash.ACTIVITY_PHASES[0]) == len(phases) + 2   # ready and failed
    opcodes = re.findall(r"NAND_CMD_(\w+) = \d,",
                         re.search(r"enum nand_opcode \{(.*?)\}",
                                   (TOP / "hw-model/regs/nand.h").read_text(), re.S)[1])
    assert tuple(opcodes) == trace_flash.NAND_OPCODES
    dies = enum_of("hw-model/nand/hw_nand.h", "hw_nand_die_state")
    assert [dies.index(f"HW_DIE_{name}") for name in ("BUSY", "RECEIVES", "SENDS")] == \
        [BUSY, RECEIVES, SENDS]


def test_events_of_the_translation_layer_are_told() -> None:
    assert words(record("FTL_SUPERBLOCK", 12, 2, 0, 0, 5376, 3, 0, 6)) == (
        "superblock 12 open for stream host: 0 of 5376 units valid, 3 erasures; "
        "6 superblocks free")
    assert words(record("FTL_SUPERBLOCK", 12, 2, 2, 0, 5376, 3, 0, 6)).startswith(
        "superblock 12 open for stream cold: ")
    assert words(record("FTL_SUPERBLOCK", 12, 2, NO_STREAM, 0, 5376, 3, 0, 6)).startswith(
        "superblock 12 open: ")
    assert words(record("FTL_SUPERBLOCK", 12, 1, NO_STREAM, 0, 5376, 3, 9, 6)).startswith(
        "superblock 12 erasing for checkpoint: ")
    assert words(record("FTL_ROW", 12, 7, 1, COLLECTION, 48, 900, 6)) == (
        "superblock 12 row 7 of stream move for collection is programmed with 48 units; "
        "900 in the buffer, 6 superblocks free")
    assert words(record("FTL_ROW_DONE", 12, 7, 0, WRITE, 3, 900, 6)) == (
        "superblock 12 row 7 of stream host for host write is programmed: dead die; "
        "900 units in the buffer, 6 superblocks free")
    assert words(record("FTL_MOVE", 12, 7, 5, 30)) == (
        "30 units of superblock 12 row 7 are read to be moved, for wear levelling")
    assert words(record("FTL_WAIT", 0, 0, 960, 3)) == (
        "command waits: the write buffer is full; 960 units in the buffer, "
        "3 superblocks free")
    assert words(record("FTL_PHASE", 0, 2, trace_flash.NO_SUPERBLOCK)) == "mount: scan"
    assert words(record("FTL_PHASE", 1, 2, 30)) == "checkpoint: write, superblock 30"
    assert words(record("FTL_REBUILT", 12, 7, 0, 1, 1, 350)) == (
        "1 units of superblock 12 row 7 were rebuilt for host read; 350 us")
    assert words(record("NAND_PHASE", BUSY, 2, 1, 0, 40, 3, COLLECTION, 1, 0, 0, 500_000,
                        source=4)) == (
        "die busy for 500 us, then suspended or dropped: PROGRAM for collection, "
        "channel 1 die 0 block 40 wordline 3")


def test_a_victim_names_the_policy_that_has_chosen_it() -> None:
    victim = record("FTL_VICTIM", 12, COLLECTION, 900, 5376, 3, 7000, 0, 4, texts=1)
    name = trace.RECORD.pack(0, 0, 0, 0, 0, 0) + b"greedy".ljust(44, b"\0")
    event, = decode(victim, name)
    assert trace.line_of(event, 0).endswith(
        "superblock 12 is moved for collection: 900 of 5376 units valid, age 7000 rows, "
        "3 erasures; 4 superblocks free, policy greedy")
    assert event.as_json()["policy"] == "greedy"


def phase(phase: int, opcode: int, cause: int, begun_us: int, us: int, *, block: int = 7,
          die: int = 0, **more: int) -> bytes:
    return record("NAND_PHASE", phase, opcode, 1, die, block, 0, cause, 0,
                  1000 * begun_us, 0, 1000 * us, source=4, qpn=0,
                  time_ns=1000 * (begun_us + us), **more)


NONE = trace.NO_REQUEST
# A read of a host comes at 100 us.  Its die programs a row for collection up to 1000 us;
# then the channel sends the data of another die's read up to 1040 us.
SLOW_READ = (
    phase(BUSY, 2, COLLECTION, 0, 1000, request=NONE, block=9),
    phase(SENDS, 1, READ, 990, 50, die=1, request=3),
    phase(RECEIVES, 1, READ, 1040, 1, request=7),
    phase(BUSY, 1, READ, 1041, 60, request=7),
    phase(SENDS, 1, READ, 1101, 9, request=7),
    record("NAND_ENDED", 1, 1, 0, 1, 7, 0, 1, 0, 1010, READ, source=4, qpn=0,
           time_ns=1_110_000),
    record("COMMAND", 0x02, 1, 100, 0, 4096, 0, 1, 0, 1020, 30, 1060, time_ns=1_150_000))


def named(entries: list[dict[str, Any]], pid: int) -> dict[str, int]:
    """The tracks of a process, by name."""
    return {entry["args"]["name"]: entry["tid"] for entry in entries
            if entry["name"] == "thread_name" and entry["pid"] == pid}


def test_a_read_says_what_it_waited_for() -> None:
    entries, _ = written(*SLOW_READ)
    reads = [entry for entry in slices(entries) if "waited us" in entry["args"]]
    assert [entry["name"] for entry in reads] == ["READ for host read", "Read", "media"]
    for entry in reads:
        assert entry["args"]["waited us"] == {
            "die: PROGRAM for collection": 900.0, "channel: READ for host read": 40.0}
        assert entry["args"].get("request") == (None if entry["name"] == "media" else 7)
        assert (entry["args"]["channel"], entry["args"]["die"]) == (1, 0)
    assert ("READ for host read", 100.0, 1110.0) in spans(entries)


def test_the_summary_names_the_command_that_waited_longest(
        capsys: pytest.CaptureFixture[str]) -> None:
    _, printer = written(*SLOW_READ, record(
        "COMMAND", 0x02, 1, 100, 0, 4096, 0, 1, 0, 20, 30, 60, request=8, time_ns=9_000_000))
    printer.summary()
    told = " ".join(capsys.readouterr().out.split())
    assert ("die: PROGRAM for collection 1 900.0 900.0 "
            "channel: READ for host read 1 40.0 40.0") in told
    assert ("Read request 7 waited longest for the flash: 900 us for die: PROGRAM for "
            "collection, 40 us for channel: READ for host read. It begins at 0.000090 s of "
            "the page's time axis") in told


def test_reads_that_waited_stand_above_all_processes() -> None:
    """One track for each reason, with the read as its slices."""
    entries, _ = written(*SLOW_READ)
    above = [entry for entry in entries if entry["ph"] in "be"]
    assert all("id2" not in entry for entry in above)   # or the page hides them in process 0
    assert [(entry["ph"], entry["name"], entry["ts"]) for entry in above[:4]] == [
        ("b", "waited, die: PROGRAM for collection", 90.0),
        ("b", "Read: 900 of 1060 us", 90.0),
        ("e", "Read: 900 of 1060 us", 1150.0),
        ("e", "waited, die: PROGRAM for collection", 1150.0)]
    assert above[1]["args"]["die"] == 0 and above[1]["args"]["queue pair"] == "0x802"
    assert above[4]["name"] == "waited, channel: READ for host read"
    assert len({(entry["cat"], entry["id"]) for entry in above}) == 2


def test_arrows_lead_from_what_a_read_waited_for_to_the_read() -> None:
    """Each end of an arrow is inside the slice that it joins, which the file has before."""
    entries, _ = written(*SLOW_READ)
    arrows: dict[int, list[tuple[str, str, float]]] = {}
    for n, step in enumerate(entries):
        if step["ph"] in "stf":
            inside = [entry for entry in entries[:n] if entry["ph"] == "X"
                      and (entry["pid"], entry["tid"]) == (step["pid"], step["tid"])
                      and entry["ts"] <= step["ts"] < entry["ts"] + entry["dur"]]
            arrows.setdefault(step["id"], []).append(
                (step["ph"], inside[-1]["name"], step["ts"]))
    assert [[(phase, name) for phase, name, _ in arrow] for arrow in arrows.values()] == [
        [("s", "PROGRAM for collection"), ("t", "READ for host read"),
         ("t", "READ for host read"), ("t", "READ for host read"),
         ("f", "READ for host read")],
        [("s", "PROGRAM for collection"), ("f", "media")],
        [("s", "READ for host read"), ("f", "media")]]
    for arrow in arrows.values():       # at equal times the page joins them at random
        assert all(before[2] < after[2]
                   for before, after in zip(arrow, arrow[1:], strict=False))


def test_what_a_read_waited_for_is_its_first_argument() -> None:
    entries, _ = written(*SLOW_READ)
    for entry in slices(entries):
        if "waited us" in entry["args"]:
            assert list(entry["args"])[0] == "waited us"


def test_of_reads_that_waited_together_one_is_shown() -> None:
    """Ten of each reason at most, the slowest ones, and none that overlaps another."""
    reason = slow_commands.Reason()
    for n in range(100):
        for us in (n + 0.5, n):         # two that end together
            reason.take(slow_commands.Slow(us, 1000 * n, 1000 * n + 900, "Read", {}))
    assert reason.count == 200
    assert [slow.waited_us for slow in reason.shown()] == [n + 0.5 for n in range(99, 89, -1)]


def test_each_die_and_each_channel_has_a_track() -> None:
    entries, _ = written(*SLOW_READ)
    pid = next(entry["pid"] for entry in entries if entry["ph"] == "X")
    tracks = named(entries, pid)
    assert set(tracks) == {"channel 1 die 0", "channel 1", "commands of channel 1 die 0"}
    busy = [(entry["name"], entry["ts"], entry["dur"]) for entry in entries
            if entry["ph"] == "X" and entry["tid"] == tracks["channel 1 die 0"]]
    assert busy == [("PROGRAM for collection", 0.0, 1000.0),
                    ("READ for host read", 1041.0, 60.0)]
    program = next(entry for entry in entries if entry["name"] == "PROGRAM for collection")
    assert program["args"]["superblock"] == 9 and program["args"]["channel"] == 1
    assert sum(entry["ph"] == "X" and entry["tid"] == tracks["channel 1"]
               for entry in entries) == 3


def test_the_next_command_of_the_same_number_has_not_waited() -> None:
    entries, _ = written(*SLOW_READ, record(
        "COMMAND", 0x02, 1, 100, 0, 4096, 0, 1, 0, 20, 30, 60, time_ns=9_000_000))
    reads = [entry for entry in slices(entries) if entry["name"] == "Read"]
    assert ["waited us" in entry["args"] for entry in reads] == [True, False]
    assert ["die" in entry["args"] for entry in reads] == [True, False]


def test_collection_and_counters_have_tracks() -> None:
    entries, _ = written(
        record("FTL_VICTIM", 12, COLLECTION, 60, 5376, 3, 7000, 0, 4, time_ns=1_000_000,
               qpn=0, request=NONE),
        record("FTL_MOVE", 12, 0, COLLECTION, 48, qpn=0, request=NONE),
        record("FTL_MOVE", 12, 1, COLLECTION, 12, qpn=0, request=NONE),
        record("FTL_ROW", 3, 0, 1, COLLECTION, 48, 20, 4, 1000, 0, 2000, 0,
               time_ns=1_500_000, qpn=0, request=NONE),
        record("FTL_ROW_DONE", 3, 0, 1, COLLECTION, 0, 22, 4, time_ns=2_700_000, qpn=0,
               request=NONE),
        record("FTL_ROW", 4, 0, 0, WRITE, 48, 30, 4, 1048, 0, 2144, 0, time_ns=2_800_000,
               qpn=0, request=NONE),
        record("FTL_SUPERBLOCK", 12, 0, NO_STREAM, 0, 5376, 4, COLLECTION, 5,
               time_ns=3_000_000, qpn=0, request=NONE))
    moved, = slices(entries, "collection")
    assert (moved["name"], moved["ts"], moved["dur"]) == (
        "superblock 12 for collection", 1000.0, 2000.0)
    assert moved["args"]["moved"] == 60 and moved["args"]["result"] == "free"
    assert moved["args"]["age in rows"] == 7000 and moved["args"]["free superblocks"] == 4
    counters = [(" ".join((entry["name"], *entry["args"])), *entry["args"].values())
                for entry in entries if entry["ph"] == "C"]
    assert ("write amplification", 3.0) in counters     # 144 programmed for 48 written
    assert [value for name, value in counters if name == "write buffer units"] == [20, 22, 30]
    assert [value for name, value in counters if name == "free superblocks"][-1] == 5
    assert spans(entries, "rows of stream move") == [("row for collection", 1500.0, 2700.0)]


def test_waits_and_phases_are_slices() -> None:
    entries, _ = written(
        record("FTL_PHASE", 1, 1, 30, time_ns=1_000_000),
        record("FTL_PHASE", 1, 2, 30, time_ns=2_000_000),
        record("FTL_PHASE", 1, 0, 30, time_ns=5_000_000),
        record("FTL_WAIT", 0, 0, 960, 3, time_ns=5_000_000),
        record("FTL_WAIT", 0, 1, 900, 3, time_ns=7_000_000),
        record("FTL_PHASE", 0, 2, 0, time_ns=8_000_000),
        record("FTL_REBUILT", 12, 7, 0, 1, 1, 350, time_ns=9_000_000))
    assert spans(entries, "checkpoint") == [
        ("checkpoint: drain", 1000.0, 2000.0), ("checkpoint: write", 2000.0, 5000.0)]
    assert spans(entries, "mount") == [("mount: scan", 8000.0, 9000.0)]
    assert spans(entries, "commands that wait") == [
        ("the write buffer is full", 5000.0, 7000.0)]
    assert spans(entries, "rebuilds") == [("rebuild for host read", 8650.0, 9000.0)]
