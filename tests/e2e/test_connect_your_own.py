# SPDX-License-Identifier: BSD-2-Clause
"""The recipes of docs/connect-your-own.md, with what `essd up` prints."""

import contextlib
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SESSION

from essd import guest_build, paths, setup, vm
from essd.guest_build import Guest
from essd.instance import Instance
from essd.ssh import ssh_options

pytestmark = pytest.mark.drive

NAME = f"{SESSION}-own"
MAC = "52:54:00:e5:5d:01"
UUID = "e55d0000-0000-4000-8000-000000000001"     # the guest makes its host NQN of it
BOOT_S = 120
# As in the other tests: a direct, verified use of the namespace.
FIO = ("fio --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --name=own "
       "--rw=randwrite --bs=4k --size=2m --iodepth=8 --filename=/dev/nvme0n1")


def essd_up(*words: str) -> list[str]:
    """Run `essd up`; return the lines of its output."""
    done = subprocess.run([sys.executable, "-m", "essd", "up", "--name", NAME, "--new",
                           "--size", "256M", *words], cwd=paths.TOP / "tools", text=True,
                          capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    Instance(NAME).stop()
    setup.forget(NAME)


def options(said: list[str]) -> list[str]:
    """The options for QEMU that `essd up` has printed."""
    lines = [line.strip() for line in said if line.startswith("    -")]
    return [word for line in lines for word in shlex.split(line)]


def commands(said: list[str]) -> list[str]:
    """The commands for the other machine that `essd up` has printed."""
    return [line.strip() for line in said
            if line.startswith(("    ip ", "    rdma ", "    nvme "))]


class Machine:
    """A virtual machine that essd knows nothing of, started by a stock QEMU."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self.guest: Guest = guest_build.ensure_guest(lambda text: None)
        self.console = folder / "console"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.ssh_port = probe.getsockname()[1]
        self.process = subprocess.Popen([
            "qemu-system-x86_64", "-M", "pc,pit=off,usb=off", "-cpu", vm.EMULATED_CPU,
            "-m", "1G", "-display", "none", "-nodefaults", "-no-reboot",
            "-uuid", UUID,
            "-serial", f"file:{self.console}",
            "-kernel", self.guest.kernel, "-initrd", self.guest.initrd,
            "-append", f"{vm.KERNEL} essd.hostname=own essd.role=host "
                       f"essd.mgmt={MAC}",
            "-drive", f"if=none,id=root,format=raw,readonly=on,file={self.guest.root}",
            "-device", "virtio-blk-pci,drive=root", "-device", "virtio-rng-pci",
            "-netdev", "user,id=mgmt,net=192.168.76.0/24,"
            f"hostfwd=tcp:127.0.0.1:{self.ssh_port}-:22",
            "-device", f"virtio-net-pci,netdev=mgmt,mac={MAC}",
            *words], stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + BOOT_S
        while not self.is_ready():
            assert self.process.poll() is None
            assert time.monotonic() < deadline, "the machine did not boot"
            time.sleep(0.2)

    def is_ready(self) -> bool:
        """Whether the guest has set itself up and accepts connections by ssh."""
        text = self.console.read_text(errors="replace") if self.console.exists() else ""
        return "essd-guest: ready" in text and self.ssh("true").returncode == 0

    def ssh(self, command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([
            "ssh", *ssh_options(self.guest, Path("none")), "-p", str(self.ssh_port),
            "root@127.0.0.1", "--", command], stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)

    def run(self, command: str) -> str:
        done = self.ssh(command)
        assert done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout

    def card(self) -> str:
        """The card that is not the one for ssh."""
        return self.run("ls /sys/class/net | grep -vE '^(lo|mgmt)$'").strip()


@contextlib.contextmanager
def machine(folder: Path, words: list[str]) -> Iterator[Machine]:
    found = Machine(folder, words)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.wait(timeout=30)


def use_drive(own: Machine, said: list[str]) -> None:
    """Do what `essd up` has printed; then write and verify data."""
    card = own.card()
    for line in commands(said):
        answer = own.run(line.replace("DEV", card))
    nqn = Instance(NAME).config.drives["drive"].nqn
    assert nqn in answer        # of the last command, nvme discover
    address = commands(said)[-1].split(" -a ")[1].split()[0]
    own.run(f"nvme connect -t rdma -a {address} -s 4420 -n {nqn}")
    assert "err= 0" in own.run(FIO)


def test_a_stock_virtual_machine_is_connected_over_a_unix_socket(
        tmp_path: Path) -> None:
    said = essd_up("--no-host", "--port0", f"10.0.0.10/24,listen={tmp_path}/p0.sock")
    with machine(tmp_path, options(said)) as own:
        use_drive(own, said)
        # The machine's carrier does not follow the drive: the page says so.
        carrier = f"cat /sys/class/net/{own.card()}/carrier"
        Instance(NAME).ask("power-cut")
        assert own.run(carrier).strip() == "1"
