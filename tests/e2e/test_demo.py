# SPDX-License-Identifier: BSD-2-Clause
"""`essd demo`, the README's first command, on a drive with NAND flash and stock hosts."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from essd.base.paths import TOP
from essd.build import uml_build
from essd.demo import demo, report as demo_report, transcript as demo_transcript

DEMO_S = 1800       # includes builds
NEXT_S = 300        # for each command that the demo recommends

pytestmark = [pytest.mark.drive, pytest.mark.long]


@pytest.fixture(scope="module")
def home() -> Iterator[dict[str, str]]:
    """An environment that is not the user's own, so that the user's demo is not touched."""
    with tempfile.TemporaryDirectory(prefix="demo") as folder:
        environment = os.environ | {"XDG_RUNTIME_DIR": folder, "ESSD_DATA": f"{folder}/data"}
        yield environment
        for words in (("down", "--name", demo_report.INSTANCE),
                      ("rm", "--yes", demo_report.INSTANCE)):
            subprocess.run([TOP / "essd", *words], env=environment, check=False, timeout=120)


def test_the_demo_succeeds_and_shows_what_it_has_checked(
        home: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "essd", "demo", "--report", str(tmp_path)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=DEMO_S, check=False, env=home)
    assert done.returncode == 0, done.stdout[-8000:]
    print(done.stdout)
    steps = [*demo.FIRST_BOOT, *demo.DRIVE_ONLY, *demo.LAST, *demo.POWER_OFF, *demo.SECOND_BOOT,
             *demo.TWO_HOSTS, *(demo.FOUR_PROTOCOLS if uml_build.is_built() else [])]
    missing = [name for name, _ in steps if name not in done.stdout]
    assert not missing, (missing, done.stdout)
    table = done.stdout[done.stdout.index("checked in"):]
    for words in ("both ports answer", "a die of the NAND flash dies", "I/O goes on through",
                  "RoCE and NVMe/TCP are two paths", "four namespaces", "a reservation of one host",
                  "the data sheet"):
        assert words in table, table
    ratio = re.search(r"([\d.]+) times what hosts wrote", table)
    assert ratio and float(ratio[1]) > 1, table
    assert table.rstrip().endswith("docs/how-do-i.md has more.")
    # Short, and nothing twice.
    nqn = re.search(r"NQN=(nqn\S+)", done.stdout)
    assert nqn and done.stdout.count(nqn[1]) == 1
    assert len(done.stdout.splitlines()) < 330 + 20 * uml_build.is_built()
    # One line for each port; the discovery subsystem has lines of its own.
    assert len(re.findall(r"service 4420, \$NQN$", done.stdout, re.M)) == 2
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("All ", "Discovery Log Entry 1", "cntlid", "/dev/nvme0n1", "random-4k"):
        assert words in page, words
    assert demo_transcript.SAME not in page


def test_what_the_demo_says_to_try_next_works(home: dict[str, str]) -> None:
    for command, _ in demo_report.next_commands():
        is_cockpit = "cockpit" in command           # Ctrl-C ends it: 0, or 130 at its start
        with subprocess.Popen(["bash", "-c", f"exec {command}" if is_cockpit else command],
                              cwd=TOP, env=home, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            if is_cockpit:
                assert "http://" in process.stdout.readline()
                process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=NEXT_S)[0]
        assert process.returncode in ((0, 130) if is_cockpit else (0,)), (command, said)
        if "nvme list" in command:
            assert re.search(r"^/dev/nvme\dn1", said, re.M), said
