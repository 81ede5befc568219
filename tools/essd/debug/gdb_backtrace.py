# SPDX-License-Identifier: BSD-2-Clause
"""Print the frames of a core file as one line of JSON; `essd dump` runs this in gdb."""

import json
from typing import Any

import gdb

MARK = "essd-backtrace: "
FRAMES_MAX = 64


def arguments(frame: gdb.Frame) -> dict[str, str]:
    """What gdb knows of a function's arguments; memory may be missing from the dump."""
    found: dict[str, str] = {}
    try:
        block = frame.block()
    except RuntimeError:        # code without symbols
        return found
    while block is not None and block.function is None:
        block = block.superblock
    for symbol in block or ():
        if symbol.is_argument:
            try:
                value = symbol.value(frame).format_string(max_elements=40, max_depth=1)
            except gdb.error:
                value = "?"
            found[symbol.name] = value if len(value) <= 60 else value[:57] + "..."
    return found


def frames() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    frame = gdb.newest_frame()
    while frame is not None and len(found) < FRAMES_MAX:
        place = frame.find_sal()
        found.append({
            "function": frame.name() or "?", "pc": frame.pc(),
            "file": place.symtab.filename if place.symtab else "",
            "line": place.line if place.symtab else 0,
            "inlined": frame.type() == gdb.INLINE_FRAME, "arguments": arguments(frame)})
        try:
            frame = frame.older()
        except gdb.error:       # the stack is not in the dump
            break
    return found


print(MARK + json.dumps(frames()))
