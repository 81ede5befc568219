# SPDX-License-Identifier: BSD-2-Clause
"""Lists of files that break the rule of a lint and are still permitted to.

A list is tools/not_yet_clean/<lint>.txt.  It can only shrink: a lint fails when
a file that is not listed breaks the rule, and also when a listed file keeps it.
With --shrink, a lint removes the files that have become clean from its list.
"""
import fnmatch
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ROOT / "tools" / "not_yet_clean"


def files(*patterns: str, root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """The project's files that match a pattern, without what builds made.

    The walk does not enter build/: a build that runs at the same time removes
    folders there, which would end the walk with an error.
    """
    found = []
    for folder, folders, names in os.walk(root):
        if pathlib.Path(folder) == root:
            folders[:] = [name for name in folders
                          if not name.startswith((".", "build"))]
        found += [pathlib.Path(folder, name) for name in names
                  if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    return sorted(found)


def read(lint: str) -> list[str]:
    path = LISTS / f"{lint}.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [line for line in lines if line and not line.startswith("#")]


def shrink(lint: str, dirty: set[str]) -> None:
    """Remove the files that keep the rule now; delete an empty list."""
    path = LISTS / f"{lint}.txt"
    if not path.exists():
        return
    kept = [line for line in path.read_text(encoding="utf-8").splitlines()
            if line.startswith("#") or line in dirty]
    if any(not line.startswith("#") for line in kept):
        path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    else:
        path.unlink()


def complaints(lint: str, found: dict[str, list[str]]) -> list[str]:
    """The complaints to print; `found` has those of every file, listed or not."""
    listed = read(lint)
    lines = [line for name in sorted(found) if name not in listed
             for line in found[name]]
    lines += [f"{name}: is clean now; remove it from tools/not_yet_clean/{lint}.txt "
              "with --shrink" for name in listed if not found.get(name)]
    return lines
