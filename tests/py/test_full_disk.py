# SPDX-License-Identifier: BSD-2-Clause
"""`essd up` on a full or read-only disk: a small tmpfs in a mount namespace of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from essd.base import paths
from essd.setup import prepare

# The first word of a script is the size of the disk.
MOUNT = 'mount -t tmpfs -o size=$0 none "$ESSD_DATA" || exit 99\n'
UNSHARE = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--user", "--map-root-user"])]
# `drive ...` is `essd ... --name s`; each command prints its exit status.
SCRIPT = """
trap 'drive down > /dev/null 2>&1' EXIT
drive() { "$PYTHON" -m essd -q "$@" --name s; echo "$1: $?"; }
files() { find "$ESSD_DATA" -type f ! -name '.*.lock' -printf '%P %s\\n' | sort; }
fill() { cat /dev/zero > "$ESSD_DATA/fill" 2> /dev/null; }
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Where the scripts mount the disk for the drives."""
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


def run(size: str, disk: Path, script: str) -> list[str]:
    """The lines that a script prints in which `disk` is a disk of this size."""
    done = subprocess.run(
        [*UNSHARE, "sh", "-c", MOUNT + SCRIPT + script, size], check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
        env={**os.environ, "ESSD_DATA": str(disk), "XDG_RUNTIME_DIR": str(disk.parent),
             "PYTHON": sys.executable, "PYTHONPATH": str(paths.TOP / "tools")})
    if done.returncode == 99 or "unshare failed" in done.stdout:
        pytest.skip(f"this user cannot mount a tmpfs: {done.stdout.strip()}")
    return done.stdout.splitlines()


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """What `essd up` builds is there, so that it prints nothing of this."""
    prepare.prepare(guest=False, drive=True)


@pytest.mark.parametrize(("size", "file"), [
    ("64k", "NAND file {}/nand.img: it cannot be written"),
    ("1m", "flash file {}/flash.img cannot be written"),
    ("20m", "flash file {}/flash.img cannot be written")])
def test_a_new_drive_for_which_there_is_no_space_leaves_nothing(size: str, file: str,
                                                                disk: Path) -> None:
    said = run(size, disk, "drive up --no-host --nand 300M; files")
    assert said == [f"essd: {file.format(disk / 's')}: No space left on device", "up: 1"]


def test_a_drive_on_a_full_disk_starts_and_its_files_stay_whole(disk: Path) -> None:
    said = run("80m", disk, """
drive up --no-host --nand 300M; drive down
fill; files
drive up --no-host --nand timing=realtime
drive up --no-host --port1 10.0.7.10/24
files
"$PYTHON" -m essd up --no-host --name s
echo "up: $?"
drive down
rm "$ESSD_DATA/fill"
drive up --no-host --nand timing=realtime --port1 10.0.7.10/24
grep timing "$ESSD_DATA/s/nand.img.essd.json"
""")
    text = "\n".join(said)
    found = re.match(r"up: 0\ndown: 0\n(?P<files>(?:\S+ \d+\n)+)"
                     rf"essd: {disk}/s/nand.img.essd.json, the record of nand.img, cannot be "
                     r"written: No space left on device\nup: 1\n"
                     rf"essd: flash file {disk}/s/flash.img cannot be written: No space left "
                     r"on device\nup: 1\n(?P=files)", text)
    assert found, text
    rest = text[found.end():]
    assert (f"the disk of {disk}/s has 0 bytes left: when it is full, the drive cannot store "
            "what hosts write\n") in rest
    assert re.search(r'\nup: 0\ndown: 0\nup: 0\n.*"timing": "realtime"', rest), rest


def test_a_runtime_folder_that_is_full_is_named(disk: Path) -> None:
    said = run("1m", disk, """
export XDG_RUNTIME_DIR="$ESSD_DATA" ESSD_DATA="$XDG_RUNTIME_DIR/drives"
mkdir "$XDG_RUNTIME_DIR/essd" && chmod 700 "$XDG_RUNTIME_DIR/essd"
cat /dev/zero > "$XDG_RUNTIME_DIR/fill" 2> /dev/null
drive up --no-host --nand 300M
""")
    assert said == [f"essd: {disk}/essd/s/config.json cannot be written: No space left on "
                    "device", "up: 1"]


def test_a_read_only_disk_is_named(disk: Path) -> None:
    said = run("80m", disk, """
drive up --no-host --nand 300M; drive down
mount -o remount,ro "$ESSD_DATA"
drive up --no-host
"$PYTHON" -m essd -q up --no-host --name t
""")
    assert said == ["up: 0", "down: 0",
                    *(line for name, end in (("s", ["up: 1"]), ("t", [])) for line in (
                        f"essd: cannot lock the drive {name}: {disk}/.{name}.lock: Read-only "
                        "file system", *end))]
