# SPDX-License-Identifier: BSD-2-Clause
"""Whether a process has ended."""

import os
import subprocess
import sys
import time

from essd.base import process
from essd.conform import mutants

# The first thread ends; another one goes on until its input is closed.
ENDS_FIRST = """
import ctypes, sys, threading
threading.Thread(target=lambda: (print(flush=True), sys.stdin.read(),
                                 {more})).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def started(more: str = "None") -> "subprocess.Popen[bytes]":
    child = subprocess.Popen([sys.executable, "-c", ENDS_FIRST.format(more=more)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"\n"
    deadline = time.monotonic() + 60
    while process.stat_fields(child.pid)[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return child


def test_a_process_has_not_ended_before_its_last_thread() -> None:
    child = started()
    first = process.start_time(child.pid)
    assert first > 0
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process.start_time(child.pid) == 0       # Nobody has waited for it yet.
    child.wait(60)
    assert process.start_time(child.pid) == 0
    child.communicate(timeout=60)


def test_a_test_whose_second_thread_computes_does_not_sleep() -> None:
    child = started("[0 for _ in iter(int, 1)]")
    assert child.stdin is not None
    child.stdin.close()
    deadline = time.monotonic() + 60
    while "R" not in [state for _, state, _ in mutants.family(child.pid)]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.kill()
    child.wait(60)
    assert child.stdout is not None
    child.stdout.close()
