# SPDX-License-Identifier: BSD-2-Clause
"""Folders whose names have commas and percent signs, in the command lines that name them."""

import subprocess
import time
from pathlib import Path

import pytest

from essd.build.guest_build import Guest
from essd.instance import ssh
from essd.instance.config import (Config, Drive, End, Host, Link, Nand, Switch, console_log,
                                  part_file)
from essd.machine import drive, outside, switch, vm
from essd.machine.outside import Outside
from essd.machine.vm import QEMU

# The options of which QEMU takes the whole value as a path.
WHOLE = ("-kernel", "-initrd")


def config(folder: Path) -> Config:
    nand = Nand(str(folder / "nand.img"), "8G", "tlc2021", 4, 2, 1)
    return Config(
        "unit", str(folder / "guest"), "tcg",
        [Link(0, ["10.0.0.10/24"], capture=True, ends=[End("host", 0), End("drive", 0)]),
         Link(1, [], capture=True, ends=[End("switch", 0), End("drive", 1)]),
         Link(2, [], ends=[End("switch", 1), End(outside=f"dial={folder}/far.sock")])],
        {"drive": Drive("/qemu", str(folder / "flash.img"), str(folder / "media.raw"), "raw",
                        "nqn", nand=nand)},
        {"host": Host()}, switches={"switch": Switch("/switch")})


def test_every_path_in_an_option_is_escaped() -> None:
    folder = Path("/run/user/1,000/essd/x")
    known = config(folder)
    commands = [drive.drive_command(known, folder), vm.guest_command(known, "host", folder),
                switch.switch_command(known, "switch", folder)]
    count = 0
    for command in commands:
        for before, word in zip(command, command[1:], strict=False):
            if word.startswith(("{", "file:")) or before in (*WHOLE, "--control"):
                continue        # JSON, or the whole value is a path
            assert str(folder) not in word
            count += vm.option(folder) in word
    assert count == 17
    place = Outside("dial", str(folder / "p,0"))
    assert "addr.path=/run/user/1,,000/essd/x/p,,0," in outside.netdev(0, place)[1]
    assert outside.far_netdev(place, 0).endswith("addr.path=/run/user/1,,000/essd/x/p,,0")


def test_qemu_finds_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a,b, c"
    for name in ("host", "drive"):
        part_file(folder, name, "").mkdir(parents=True)
    known = config(folder)
    words = vm.guest_command(known, "host", folder)
    kept = [text for pair in zip(words, words[1:], strict=False) for text in pair
            if pair[0] in ("-chardev", "-mon", "-serial", "-netdev", "-object")
            and "user,id=mgmt" not in pair[1]]
    wanted = [console_log(folder, "host"), folder / "host/qmp", folder / "host/qmp-user",
              folder / "port0.sock", folder / "link0.pcap"]
    process = subprocess.Popen([QEMU, "-M", "none", "-nodefaults", "-display", "none", *kept],
                               stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not all(path.exists() for path in wanted) and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert process.poll() is None, process.communicate(timeout=60)[1]
    finally:
        process.kill()
        process.communicate(timeout=60)


@pytest.mark.parametrize("name", ["a,b", "a b", "a%hb"])
def test_ssh_reads_the_paths_as_they_are(tmp_path: Path, name: str) -> None:
    control = tmp_path / name / "ssh"
    done = subprocess.run(["ssh", *ssh.ssh_options(Guest(tmp_path / "guest"), control), "-G",
                           "localhost"], capture_output=True, text=True, timeout=60)
    assert f"controlpath {control}" in done.stdout.replace("%%", "%").splitlines(), done.stderr
