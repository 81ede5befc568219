#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Run a command, and print the CPU time of it and of everything that it has started.

    tests/bench/cpu_time.py COMMAND...

Drives and hosts outlive the command that starts them, so `time` does not see them.  Here
they become children of this program, which waits until all have ended.  What a process
has ended without waiting for it, or what still runs, is not counted.
"""

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36


def main() -> int:
    if not sys.argv[1:]:
        sys.exit("usage: cpu_time.py COMMAND...")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    begin = time.monotonic()
    try:
        status = subprocess.run(  # no timeout: whoever started this program ends it
            sys.argv[1:], check=False).returncode
    except OSError as error:
        sys.exit(f"{sys.argv[1]}: {error.strerror}")
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"CPU {used.ru_utime + used.ru_stime:.0f} s: user {used.ru_utime:.0f} s, "
          f"system {used.ru_stime:.0f} s; {time.monotonic() - begin:.0f} s passed")
    return status


if __name__ == "__main__":
    sys.exit(main())
