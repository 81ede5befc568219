# SPDX-License-Identifier: BSD-2-Clause
"""Each recipe of docs/connect-your-own.md works with the options that `essd up` prints."""

import contextlib
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SESSION

from essd.base import paths
from essd.build import guest_build
from essd.build.guest_build import Guest
from essd.instance.instance import Instance
from essd.instance.ssh import ssh_options
from essd.machine import vm
from essd.setup import setup
from essd.topology import reader as topology_yaml, setup as topology_setup

pytestmark = pytest.mark.drive

NAME = f"{SESSION}-own"
MAC = "52:54:00:e5:5d:01"
UUID = "e55d0000-0000-4000-8000-000000000001"     # the guest's host NQN contains it
BOOT_S = 120
# Writes with O_DIRECT, which fio reads back and verifies, as in the other tests.
FIO = ("fio --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --name=own "
       "--rw=randwrite --bs=4k --size=2m --iodepth=8 --filename=/dev/nvme0n1")


PORTS = itertools.count(20000)  # The kernel chooses none of these for others.


def own_address() -> str:
    """An address of this computer that only this process uses: it has its number.

    So nobody takes a port there before the process that is to listen to it has started.
    """
    number = os.getpid()        # at most 22 bits
    return f"127.{64 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


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
            if line.startswith(("    ip ", "    tc ", "    rdma ", "    nvme "))]


class Machine:
    """A virtual machine that essd knows nothing of, started by a stock QEMU."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self.guest: Guest = guest_build.ensure_guest(lambda text: None)
        self.console = folder / "console"
        self.ssh_port = next(PORTS)
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
            f"hostfwd=tcp:{own_address()}:{self.ssh_port}-:22",
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
            f"root@{own_address()}", "--", f"exec 2>&1\n{command}"], stdin=subprocess.DEVNULL,
            text=True, stdout=subprocess.PIPE, timeout=120, check=False)

    def run(self, command: str) -> str:
        done = self.ssh(command)
        assert done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout

    def card(self) -> str:
        """The name of the network interface that leads to the drive."""
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
    assert nqn in answer        # The last command was nvme discover.
    address = commands(said)[-1].split(" -a ")[1].split()[0]
    own.run(f"nvme connect -t rdma -a {address} -s 4420 -n {nqn}")
    assert "err= 0" in own.run(FIO)


def test_a_stock_virtual_machine_is_connected_over_a_unix_socket(
        tmp_path: Path) -> None:
    said = essd_up("--no-host", "--port0", f"10.0.0.10/24,listen={tmp_path}/p0.sock")
    with machine(tmp_path, options(said)) as own:
        use_drive(own, said)
        # As the document says, the machine keeps its carrier when the drive is off.
        carrier = f"cat /sys/class/net/{own.card()}/carrier"
        Instance(NAME).ask("power-cut")
        assert own.run(carrier).strip() == "1"


@pytest.mark.long
def test_libvirts_client_interface_is_connected_over_tcp(tmp_path: Path) -> None:
    """The -netdev option is the one that libvirt generates for <interface type='client'>."""
    address, port = own_address(), next(PORTS)
    said = essd_up("--no-host", "--port0", f"10.0.0.10/24,tcp-listen={address}:{port}")
    assert any(f"addr.host={address},addr.port={port}" in line for line in said)
    with machine(tmp_path, ["-netdev", f"socket,id=essd0,connect={address}:{port}",
                            "-device", "virtio-net-pci,netdev=essd0"]) as own:
        use_drive(own, said)


def libvirt_xml() -> str:
    """The XML example in docs/connect-your-own.md."""
    page = (paths.TOP / "docs/connect-your-own.md").read_text()
    (found,) = re.findall(r"```xml\n(.*?)```", page, re.S)
    return str(found)


def test_libvirt_turns_the_documented_xml_into_that_option(tmp_path: Path) -> None:
    if shutil.which("virsh") is None:
        pytest.skip("not run: there is no virsh: apt-get install libvirt-clients "
                    "libvirt-daemon-driver-qemu")
    (tmp_path / "domain.xml").write_text(
        "<domain type='qemu'><name>own</name><memory>1048576</memory>"
        "<os><type arch='x86_64'>hvm</type></os><devices>"
        f"{libvirt_xml()}</devices></domain>")
    done = subprocess.run(["virsh", "-c", "qemu:///session", "domxml-to-native",
                           "qemu-argv", str(tmp_path / "domain.xml")], text=True,
                          capture_output=True, timeout=60, check=False)
    if "failed to connect" in done.stderr:
        pytest.skip(f"not run: virsh finds no libvirt: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    assert "connect" in done.stdout and "7000" in done.stdout


@pytest.mark.long
def test_the_topologies_of_two_machines_are_joined_over_tcp(tmp_path: Path) -> None:
    """One instance has the drive and a switch, the other one a host and a switch."""
    place = f"{own_address()}:{next(PORTS)}"
    texts = {f"{NAME}-a": "drives: {drive0: {size: 64M}}\nswitches: {s: {}}\ncables:\n"
                          "- drive0:0 - s\n"
                          f"- s - tcp-listen={place}\n",
             f"{NAME}-b": "hosts: {host: {card0: 10.0.0.100/24}}\nswitches: {s: {}}\n"
                          f"cables:\n- host - s\n- s - tcp={place}\n"}
    try:
        first, second = (topology_setup.start(topology_yaml.load(text, name, tmp_path),
                                              name, True, False, 0)
                         for name, text in texts.items())
        second.run("until ping -c 1 -W 1 10.0.0.10 > /dev/null; do :; done", timeout_s=60)
        nqn = first.config.drives["drive0"].nqn
        second.run(f"nvme connect -t rdma -a 10.0.0.10 -s 4420 -n {nqn}")
        assert "err= 0" in second.run(FIO).output
    finally:
        for name in texts:
            Instance(name).stop()
            setup.forget(name)


# The tests below create network interfaces in a namespace of their own, which needs no
# root where users may create namespaces.

SCRIPT = """
mount -t sysfs sysfs /sys
ip link set lo up
essd() {{ {essd} "$@"; }}
carrier() {{ cat /sys/class/net/$1/carrier; }}
conform() {{ # conform ADDRESS INTERFACE OWN
    ip link set $2 up
    essd conform --target $1 --via $2 --ip $3 --only smoke
}}
{script}
"""


def namespace() -> list[str]:
    """The words to put before a command, so that it runs in new network and mount namespaces."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", "--net", "--mount", *user]


def run_in_namespace(script: str) -> str:
    text = SCRIPT.format(essd=f"{sys.executable} -m essd", script=script)
    done = subprocess.run([*namespace(), "bash", "-euc", text], text=True, timeout=600,
                          cwd=paths.TOP / "tools", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def can_make_interfaces() -> None:
    """Skip the test, with the reason, if this user cannot make interfaces."""
    try:
        done = subprocess.run(
            [*namespace(), "bash", "-ec", "mount -t sysfs sysfs /sys; ip tuntap add dev t "
             "mode tap; ip link add v0 type veth peer name v1"], text=True, timeout=60,
            capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("not run: there is no program unshare: apt-get install util-linux")
    if done.returncode != 0:
        pytest.skip(f"not run: no interfaces can be made here: {done.stderr.strip()}")


@pytest.mark.long
def test_a_tap_interface_and_a_network_interface_lead_to_the_drive(
        can_make_interfaces: None) -> None:
    said = run_in_namespace(f"""
ip tuntap add dev tap0 mode tap
ip link add veth0 type veth peer name veth1
ip link set veth0 up
essd up --name {NAME} --new --size 64M --no-host --port0 10.0.0.10/24,tap=tap0 \\
    --port1 10.0.1.10/24,iface=veth0
conform 10.0.0.10 tap0 10.0.0.64
conform 10.0.1.10 veth1 10.0.1.64
essd power-cut --name {NAME}
echo tap carrier: $(carrier tap0), veth carrier: $(carrier veth1)
essd down --name {NAME}
""")
    assert "port 0 is attached to the tap interface tap0" in said
    assert "port 1 is attached to the network interface veth0" in said
    # As the document says, a tap loses its carrier when the drive is off; a veth does not.
    assert "tap carrier: 0, veth carrier: 1" in said


@pytest.mark.long
def test_a_macvtap_interface_leads_to_the_drive(can_make_interfaces: None) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: only root can open the device of a new macvtap interface")
    said = run_in_namespace(f"""
ip link add veth0 type veth peer name veth1
ip link set veth0 up
ip link add link veth0 name mv0 type macvtap mode passthru
ip link set mv0 up
essd up --name {NAME} --new --size 64M --no-host --port0 10.0.0.10/24,iface=mv0
conform 10.0.0.10 veth1 10.0.0.64
essd down --name {NAME}
""")
    assert "port 0 is attached to the network interface mv0" in said
