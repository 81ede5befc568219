# SPDX-License-Identifier: BSD-2-Clause
"""`essd conform --drives N`: share the chapters among several drives in QEMU.

A drive in QEMU runs in real time, so that most of a run is waiting for its timers.
Each drive gets whole chapters, and a test program of its own.
"""

from collections.abc import Iterable, Sequence

from .results import Results

# Chapters that take long in QEMU, in seconds; each of the others takes about 5.
SECONDS = {"net": 147, "cm": 71, "nvme": 62, "robust": 42, "nvmf": 34, "tcp": 30, "nvme-tcp": 10,
           "limits": 14, "roce": 14}
OTHERS = 5


def chapter_of(word: str) -> str:
    """The chapter of a test, a group or a chapter."""
    return word.partition(".")[0]


def seconds_of(chapters: Iterable[str]) -> int:
    """How long a drive in QEMU takes for these chapters."""
    return sum(SECONDS.get(chapter, OTHERS) for chapter in chapters)


def share(ids: Iterable[str], drives: int) -> list[list[str]]:
    """The chapters of these tests for each drive; no drive is without a chapter.

    The longest chapter goes first, always to the drive with the least to do.
    """
    chapters = list(dict.fromkeys(map(chapter_of, ids)))
    shares: list[list[str]] = [[] for _ in range(min(drives, len(chapters)))]
    for chapter in sorted(chapters, key=lambda one: -seconds_of([one])):
        min(shares, key=seconds_of).append(chapter)
    return [sorted(share, key=chapters.index) for share in shares]


def join(results: Results, parts: Sequence[Results], ids: Sequence[str]) -> None:
    """Put the results of all drives into one, in the order in which tests are listed."""
    place = {one: number for number, one in enumerate(ids)}
    for part in parts:
        results.target = results.target or part.target
        results.seed = part.seed
        results.drive = part.drive | results.drive
        results.announced += part.announced
        results.tests += part.tests
        results.complaints += part.complaints
        results.transport += part.transport
    results.tests.sort(key=lambda test: place.get(test.id, len(place)))
    results.is_over = all(part.is_over for part in parts)
