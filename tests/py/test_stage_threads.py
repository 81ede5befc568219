# SPDX-License-Identifier: BSD-2-Clause
"""The stages of a command on threads, under ThreadSanitizer (tests/bench/native_threads.c)."""

import subprocess

import pytest

from essd.build import native_build

RUN_S = 600


@pytest.mark.long
def test_stages_on_threads_share_nothing_but_what_their_exchange_orders() -> None:
    program = native_build.native_program("threads", "tests/bench/native_threads",
                                          "the stages with ThreadSanitizer")
    done = subprocess.run([program], check=False, text=True, capture_output=True, timeout=RUN_S)
    assert "WARNING: ThreadSanitizer" not in done.stderr, done.stderr[:4000]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "288 reads verified" in done.stdout
