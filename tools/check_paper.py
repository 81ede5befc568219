#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that each constant of `essd paper` has a source that is for its value."""
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from essd.bench import paper_profile


def main() -> int:
    found = []
    for path in sorted(paper_profile.FOLDER.glob("*.toml")):
        found += paper_profile.complaints(
            path.name, tomllib.loads(path.read_text(encoding="utf-8")))
    print("\n".join([*found, f"check_paper: {len(found)} complaint(s)"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
