# SPDX-License-Identifier: BSD-2-Clause
"""`python -m essd`: what the launcher starts."""

import errno
import os
import stat
import sys

# Python sets a stream to None if the caller has closed it, as in `essd list >&-`.
for closed in ("stdout", "stderr"):
    if getattr(sys, closed) is None:
        setattr(sys, closed, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115

from .cli import main  # noqa: E402


def full_file() -> str:
    """Which file has no space: a terminal, a pipe or a socket never lacks any."""
    mode = os.fstat(sys.stdout.fileno()).st_mode
    is_stream = sys.stdout.isatty() or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return "a file" if is_stream else "standard output"


def run() -> None:
    """Run the command; a disk that is full is a one-line error."""
    try:
        try:
            main()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        print(f"essd: {full_file()} cannot be written: {error.strerror}", file=sys.stderr,
              flush=True)
        os._exit(1)     # Python's own exit would try to write the output again.


if __name__ == "__main__":
    run()
