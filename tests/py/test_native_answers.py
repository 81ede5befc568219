# SPDX-License-Identifier: BSD-2-Clause
"""The same commands, chosen by a seed, get the same answers from both kinds of harts."""

import ipaddress
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from test_soc import Machine

from essd.build import fw_build, native_build, qemu_build
from essd.settings import block
from essd.storage import flash as fl
from essd.storage import media

ROUNDS = 60
# A drive with a native hart has no slots for firmware, and so no commands for them: Identify
# Controller and the log page of the supported commands say so.
DIFFERENT = {"identify 1", "log 5"}


@pytest.fixture(scope="module")
def program() -> Path:
    return native_build.native_program("fast", "tests/bench/native_answers", "the host")


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with flash and media of a drive that has never run."""
    folder = tmp_path_factory.mktemp("drive")
    address = ipaddress.IPv4Interface("10.0.0.10/24")
    config = block.Config(ports=(block.Port(ipv4=address), block.Port()))
    image = fl.new_flash(fw_build.ensure_firmware(), fl.Identity.random(), config)
    image.save(folder / "flash")
    media.create(folder / "media", 64 << 20)
    return folder


def answers(program: Path, drive: Path, folder: Path, seed: int, hart: str) -> list[str]:
    """What a copy of the drive answers."""
    folder.mkdir()
    for name in ("flash", "media"):
        shutil.copyfile(drive / name, folder / name)
    nqn = fl.FlashImage.load(folder / "flash").identity
    assert nqn is not None
    cable = folder / "cable"
    host = subprocess.Popen(
        [program, "--listen", cable, "--peer", "10.0.0.10", "--local", "10.0.0.1",
         "--nqn", nqn.nqn, "--seed", str(seed), "--rounds", str(ROUNDS)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not cable.exists():
        assert host.poll() is None
        time.sleep(0.01)
    words = f",hart=native,hart-image={fw_build.ensure_native_hart()}"
    machine = Machine(
        qemu_build.ensure_qemu(), folder, folder / "flash",
        "-netdev", f"stream,id=port0,addr.type=unix,addr.path={cable},server=off",
        "-blockdev", f"driver=raw,node-name=data,file.driver=file,file.filename={folder}/media",
        machine="essd,media=data,port0-netdev=port0" + (words if hart == "native" else ""))
    try:
        output, errors = host.communicate(timeout=300)
        assert host.returncode == 0, errors + machine.log()
        assert ("boot:" in machine.log()) == (hart == "riscv")
    finally:
        host.kill()
        machine.close()
    return output.splitlines()


@pytest.mark.parametrize("seed", [1, 20261130])
def test_both_harts_give_the_same_answers(program: Path, drive: Path, tmp_path: Path,
                                          seed: int) -> None:
    riscv, native = (answers(program, drive, tmp_path / hart, seed, hart)
                     for hart in ("riscv", "native"))
    assert len(riscv) == len(native) > 32 * ROUNDS
    assert not any("lost" in line for line in riscv)
    statuses = {match[1] for line in riscv if (match := re.search("status (....)", line))}
    assert len(statuses) >= 5       # commands that succeed, and four kinds of errors
    found = {a.partition(":")[0] for a, b in zip(riscv, native, strict=True) if a != b}
    assert found == DIFFERENT


def test_another_seed_gives_other_answers(program: Path, drive: Path, tmp_path: Path) -> None:
    first, second = (answers(program, drive, tmp_path / f"{seed}", seed, "native")
                     for seed in (1, 2))
    assert first != second
