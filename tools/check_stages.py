#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that no stage of a command has a pointer to a structure of another stage.

Stages run on different harts, and tell each other by messages (firmware/stages/stages.h,
docs/decisions/0070-stages-on-harts.md).  A pointer from one to another would be a way
around the messages.  The check sees the pointers in the structures that a stage's sources
define; it does not see where a `void *`, or a pointer to a structure of no stage, leads.
Pointers that are used in another way are in MAY_POINT, each with the reason.
"""
import pathlib
import re
import sys
from collections.abc import Iterable

import lint_baseline

# Where the sources of each stage are: directories, and the beginnings of files' names.
STAGES = {
    "transport": ("nvmeof/rdma/", "net/verbs/", "firmware/drivers/rnic"),
    "target": ("nvmeof/target/",),
    "medium": ("firmware/medium/", "storage/ftl/", "storage/volume/", "firmware/drivers/nand"),
}
MAY_POINT = {
    "rdma_request.nvmf": "a message owns the request until the answer",
    "rdma_transport_config.target": "for calls in turns of the main loop; else the relay is used",
    "nand_health.verbs": "reads a counter in turns of the main loop",
}
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
POINTER = re.compile(r"^\s+(?:const )?struct (\w+) \*+(?:const )?(\w+)(?:\[[^\]]*\])*[;,]",
                     re.MULTILINE)


def stage_of(name: str) -> str | None:
    """The stage to which a file belongs."""
    for stage, beginnings in STAGES.items():
        if name.startswith(beginnings):
            return stage
    return None


def pointers(sources: Iterable[tuple[str, str]]) -> list[tuple[str, str, str, str, str]]:
    """Pointers to another stage: file, "struct.member", stage, structure, its stage."""
    owners: dict[str, str] = {}
    structs = []
    for name, text in sources:
        stage = stage_of(name)
        if stage is not None:
            for found in STRUCT.finditer(COMMENT.sub("", text)):
                owners[found[1]] = stage
                structs.append((name, stage, found[1], found[2]))
    return [(name, f"{struct}.{member}", stage, to, owners[to])
            for name, stage, struct, body in structs
            for to, member in POINTER.findall(body)
            if owners.get(to, stage) != stage]


def complaints(sources: Iterable[tuple[str, str]], may_point: dict[str, str]) -> list[str]:
    found = pointers(sources)
    lines = [f"{name}: {member} of the stage {stage} points to struct {to} of the stage "
             f"{other}: send a message" for name, member, stage, to, other in found
             if member not in may_point]
    members = {member for _, member, *_ in found}
    return lines + [f"tools/check_stages.py: {member} in MAY_POINT is no longer needed"
                    for member in may_point if member not in members]


def main() -> int:
    root: pathlib.Path = lint_baseline.ROOT
    files = [path for ending in ("*.h", "*.c") for path in lint_baseline.files(ending)]
    lines = complaints(((path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
                        for path in files), MAY_POINT)
    for line in lines:
        print(line)
    print(f"check_stages: {len(lines)} complaint(s)")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
