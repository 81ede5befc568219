# SPDX-License-Identifier: BSD-2-Clause
"""Trace events of the flash, of the groups `ftl` and `nand`, in words.

The tables have the order of the enums in storage/ftl and hw-model/nand;
tests/py/test_trace_flash.py compares them.
"""

from collections.abc import Callable
from typing import Any

from .trace_names import name_of

NAND_OPCODES = ("NOP", "READ", "PROGRAM", "ERASE", "MARKS")
NAND_STATUSES = ("ok", "bad opcode", "bad argument", "bad address", "rule broken",
                 "erased", "uncorrectable", "failed", "dead die", "storage error",
                 "aborted", "transfer error")
CAUSES = ("host read", "host write", "trim", "record", "collection", "wear levelling",
          "scrub", "read disturb", "rebuild", "checkpoint", "mount", "wipe",
          "power failure")
PHASES = ("idle", "waits for the channel", "receives", "starts", "busy", "finishes",
          "waits to send", "sends", "holds", "copies")
SUPERBLOCK_STATES = ("free", "erasing", "open", "closed", "retired", "checkpoint")
STREAMS = ("host", "move", "cold")      # the policy "by-source" has no third one
ROW_STATUSES = ("ok", "ok", "failed", "dead die", "transfer error", "storage error",
                "error", "not begun")
WAITS = ("the write buffer is full", "data is not on flash yet")
ACTIVITIES = ("mount", "checkpoint", "wipe")
ACTIVITY_PHASES = (
    ("probe", "load checkpoint", "scan", "repair", "read pages", "drop copies",
     "settle torn rows", "clear", "ready", "failed"),
    ("idle", "drain", "write", "erase the old one"),
    ("none", "wait", "clear the keeper", "keep records", "erase", "mount"))
NO_SUPERBLOCK = 0xffffffff


def cause_name(args: dict[str, Any]) -> str:
    return name_of(CAUSES, args["cause"])


def place_of(args: dict[str, Any]) -> str:
    words = f"channel {args['channel']} die {args['die']}"
    if "planes" in args:
        words += f" planes {args['planes']:#x}"
    words += f" block {args['block']}"
    if name_of(NAND_OPCODES, args["opcode"]) == "PROGRAM":
        words += f" wordline {args['wordline']}"
    return words


def nand_words(args: dict[str, Any]) -> str:
    return (f"NAND {name_of(NAND_OPCODES, args['opcode'])} for {cause_name(args)}: "
            + place_of(args) + (f" {args['entries']} entries" if args["entries"] else ""))


def phase_words(args: dict[str, Any]) -> str:
    cut = ", then suspended or dropped" if args["is_cut"] else ""
    return (f"die {name_of(PHASES, args['phase'])} for {args['ns'] / 1000:g} us{cut}: "
            f"{name_of(NAND_OPCODES, args['opcode'])} for {cause_name(args)}, "
            + place_of(args))


def superblock_words(args: dict[str, Any]) -> str:
    state = name_of(SUPERBLOCK_STATES, args["state"])
    words = f"superblock {args['superblock']} {state}"
    if state == "open" and args["stream"] < len(STREAMS):
        words += f" for stream {STREAMS[args['stream']]}"
    if state == "erasing":
        words += f" for {cause_name(args)}"
    return (f"{words}: {args['valid']} of {args['capacity']} units valid, "
            f"{args['erasures']} erasures; {args['free']} superblocks free")


def victim_words(args: dict[str, Any]) -> str:
    return (f"superblock {args['superblock']} is moved for {cause_name(args)}: "
            f"{args['valid']} of {args['capacity']} units valid, age {args['age']} rows, "
            f"{args['erasures']} erasures; {args['free']} superblocks free")


def row_of(args: dict[str, Any]) -> str:
    return f"superblock {args['superblock']} row {args['row']}"


def stream_row_of(args: dict[str, Any]) -> str:
    return (f"{row_of(args)} of stream {name_of(STREAMS, args['stream'])} for "
            f"{cause_name(args)}")


def wait_words(args: dict[str, Any]) -> str:
    words = name_of(WAITS, args["reason"])
    return (f"command {'goes on' if args['is_over'] else 'waits'}: {words}; "
            f"{args['buffer']} units in the buffer, {args['free']} superblocks free")


def activity_phase(args: dict[str, Any]) -> str:
    if args["activity"] >= len(ACTIVITIES):
        return str(args["phase"])
    return name_of(ACTIVITY_PHASES[args["activity"]], args["phase"])


def activity_words(args: dict[str, Any]) -> str:
    words = f"{name_of(ACTIVITIES, args['activity'])}: {activity_phase(args)}"
    if args["superblock"] != NO_SUPERBLOCK and args["activity"] != 0:
        words += f", superblock {args['superblock']}"
    return words


WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "NAND_STARTED": lambda a: nand_words(a) + ": started",
    "NAND_ENDED": lambda a: (f"{nand_words(a)}: "
                             f"{name_of(NAND_STATUSES, a['status'])}; {a['us']} us"),
    "NAND_PHASE": phase_words,
    "FTL_SUPERBLOCK": superblock_words,
    "FTL_VICTIM": victim_words,
    "FTL_ROW": lambda a: (f"{stream_row_of(a)} is programmed with {a['units']} units; "
                          f"{a['buffer']} in the buffer, {a['free']} superblocks free"),
    "FTL_ROW_DONE": lambda a: (f"{stream_row_of(a)} is programmed: "
                               f"{name_of(ROW_STATUSES, a['status'])}; {a['buffer']} units "
                               f"in the buffer, {a['free']} superblocks free"),
    "FTL_MOVE": lambda a: (f"{a['units']} units of {row_of(a)} are read to be moved, for "
                           f"{cause_name(a)}"),
    "FTL_WAIT": wait_words,
    "FTL_PHASE": activity_words,
    "FTL_REBUILT": lambda a: (f"{a['units']} units of {row_of(a)} were "
                              f"{'' if a['is_complete'] else 'not all '}rebuilt for "
                              f"{cause_name(a)}; {a['us']} us"),
}
