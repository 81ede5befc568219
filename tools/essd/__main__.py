# SPDX-License-Identifier: BSD-2-Clause
"""`python -m essd`: what the launcher starts."""

import errno
import os
import sys

# Python sets a stream to None if the caller has closed it, as in `essd list >&-`.
for closed in ("stdout", "stderr"):
    if getattr(sys, closed) is None:
        setattr(sys, closed, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115

from .cli import main  # noqa: E402


def run() -> None:
    """Run the command; standard output that cannot be written is a one-line error."""
    try:
        try:
            main()
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        print(f"essd: standard output cannot be written: {error.strerror}",
              file=sys.stderr, flush=True)
        os._exit(1)     # Python's own exit would try to write the output again.


if __name__ == "__main__":
    run()
