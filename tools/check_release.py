#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check what only a release has to keep: no figure in the documents is stale.

tools/check_measured.py says what stale means.  To make a block good again, run its
command and write the new figures with the new commit and date, or take the figures
out.  tools/release.py runs this check before it tags; `./essd lint release` runs it by
itself.  It is not among the lints that run by default, because figures become stale by
changes that are good.
"""
import pathlib
import sys

import check_measured
from lint_baseline import ROOT


def complaints(root: pathlib.Path = ROOT) -> list[str]:
    if not check_measured.is_checkout(root):
        return ["the age of measured figures is not known: this is not a git checkout "
                "with its whole history"]
    stale, _ = check_measured.report(root)
    return [f"stale figures: {line}" for line in stale]


def main() -> int:
    found = complaints()
    for line in found:
        print(line)
    print(f"check_release: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
