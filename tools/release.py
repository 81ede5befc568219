#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Make a release: date its section in CHANGELOG.md, commit that, and tag the commit.

    tools/release.py            # show what would be tagged, with the release notes
    tools/release.py --tag      # do it; prints the command that publishes the tag

The version is that of firmware/app/version.h.  Nothing is changed if a check fails:
the checkout has no changes, CHANGELOG.md has a section of this version that is not
released yet and not empty, no tag of this version exists, and no measured figure in the
documents is stale (tools/check_release.py).
"""
import argparse
import datetime
import pathlib
import re
import subprocess
import sys

import check_release

VERSION = re.compile(r'ESSD_FW_VERSION "(\d+\.\d+\.\d+)"')
UNRELEASED = "not released yet"
GIT_S = 120


class NotReady(Exception):
    """A check has failed; the text says which, and what to do."""


def git(top: pathlib.Path, *words: str, text: str | None = None) -> str:
    done = subprocess.run(["git", *words], cwd=top, input=text, text=True, check=False,
                          capture_output=True, timeout=GIT_S)
    if done.returncode != 0:
        raise NotReady(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout


def version_of(top: pathlib.Path) -> str:
    found = VERSION.search((top / "firmware/app/version.h").read_text())
    if found is None:
        raise NotReady("firmware/app/version.h has no version such as 1.2.3")
    return found[1]


def notes_of(changes: str, version: str) -> str:
    """The section of a version in CHANGELOG.md, without its heading."""
    heading = f"## {version} ({UNRELEASED})\n"
    if heading not in changes:
        raise NotReady(f'CHANGELOG.md has no heading "{heading.strip()}": raise the version '
                       "in firmware/app/version.h, or add the section")
    notes = changes.partition(heading)[2].partition("\n## ")[0].strip()
    if not re.search(r"^\* ", notes, re.M):
        raise NotReady(f"CHANGELOG.md says nothing about {version}: list what has changed")
    return notes


def check(top: pathlib.Path, tag: str) -> None:
    changed = git(top, "status", "--porcelain", "--untracked-files=no").splitlines()
    if changed:
        raise NotReady(f"{changed[0][3:]} has changes: commit them first")
    if git(top, "tag", "--list", tag).strip():
        raise NotReady(f"the tag {tag} exists: raise the version in firmware/app/version.h")
    stale = check_release.complaints(top)
    if stale:
        raise NotReady("\n".join([*stale, "measure again with the commands named, or take the "
                                  "figures out (tools/check_measured.py)"]))


def release(top: pathlib.Path, version: str, notes: str, today: str) -> None:
    path = top / "CHANGELOG.md"
    path.write_text(path.read_text().replace(f"## {version} ({UNRELEASED})",
                                             f"## {version} ({today})", 1))
    git(top, "commit", "--quiet", "--signoff", "--file", "-", "CHANGELOG.md",
        text=f"CHANGELOG: {version} is released\n")
    # "#" begins a heading of the notes, not a comment.
    git(top, "tag", "--annotate", "--cleanup=whitespace", "--file", "-", f"v{version}",
        text=f"essd {version}\n\n{notes}\n")


def main(arguments: list[str], top: pathlib.Path) -> int:
    parser = argparse.ArgumentParser(description="Make a release: see the file's head.")
    parser.add_argument("--tag", action="store_true", help="commit and tag")
    options = parser.parse_args(arguments)
    try:
        version = version_of(top)
        notes = notes_of((top / "CHANGELOG.md").read_text(), version)
        check(top, f"v{version}")
        if options.tag:
            release(top, version, notes, datetime.date.today().isoformat())
    except NotReady as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(notes)
    print(f"\nv{version} is tagged; publish it with: git push origin HEAD v{version}"
          if options.tag else f"\nv{version} is ready: run tools/release.py --tag")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], pathlib.Path(__file__).resolve().parent.parent))
