# SPDX-License-Identifier: BSD-2-Clause
"""`essd clean`: delete what was built or downloaded."""

import json
import sys
from typing import Annotated

import typer

from ...base import show
from ...base.errors import EssdError, Mistakes
from ..base import AsJson, DEVELOP, command


@command(DEVELOP)
def clean(kinds: Annotated[list[str] | None, typer.Argument(
              metavar="[KIND]...", help="qemu, guest, build, python, downloads, reports or logs.  "
              "Default: all of them.")] = None,
          yes: Annotated[bool, typer.Option(
              "--yes", "-y", help="Do not ask.")] = False,
          as_json: AsJson = False) -> None:
    """Delete what was built or downloaded, after asking.  Drives keep their data.

    With --json, print what would be deleted; nothing is deleted unless --yes is given.
    """
    from ...setup import clean as clean_module, instances
    found = clean_module.find(clean_module.check_kinds(kinds or []))
    size = instances.size_words(sum(entry.size for entry in found))
    if as_json:
        print(json.dumps([entry.as_json() for entry in found], indent=2))
    else:
        show.console.print(clean_module.table(found))
    if not any(entry.folders for entry in found):
        if not as_json:
            show.note("there is nothing to delete")
        return
    if not yes:
        if as_json:
            return
        if not sys.stdin.isatty():
            raise EssdError("clean: cannot ask, because the input is not a terminal: give "
                            "--yes")
        if not typer.confirm(f"Delete all that ({size})?  It is built and fetched again "
                             "when it is needed."):
            raise EssdError("clean: nothing was deleted")
    failures = clean_module.delete(found)
    if failures:
        raise Mistakes(failures)
    if not as_json:
        show.note(f"deleted: {size}")
