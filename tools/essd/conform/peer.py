# SPDX-License-Identifier: BSD-2-Clause
"""Linux's own NVMe-oF target as the target under test: `essd conform --peer nvmet`.

The target is a stock Debian guest whose network card is connected to a UNIX
stream socket.  QEMU keeps listening there after a program has disconnected, so
that one guest serves any number of runs.  The namespace is in the guest's memory
and has blocks of 512 bytes, as the drive's has.
"""

import contextlib
import ipaddress
import re
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base import interrupts, show
from ..base.errors import EssdError
from ..build import native_build
from ..instance.config import console_log
from ..instance.instance import Instance
from ..setup import setup
from ..setup.setup import Wish
from ..setup.temporary import Temporary

ADDRESSES = "10.0.0.1/24,fd00:0:0:1::1/64"
NSID = 1
SIZE_MIB = 256
BLOCK = 512
LISTENS_S = 10
# A warning of the kernel is a finding about Linux and must not end the run.  Three
# warnings are known, each caused by a test: rxe_comp.c's at an AETH of a reserved
# kind (roce.requester.aeth-reserved), page_alloc.c's at nvmet's kcalloc() for an
# HSQSIZE of 65535 (limits.sq.endless), and that of nvmet_rdma_queue_connect_fail()
# at a REJ of a connection that is established (cm.rej.established).
KERNEL = ["panic_on_warn=0"]
COMPLAINTS = re.compile(
    r"(?:WARNING: |BUG: |Oops|general protection fault|Kernel panic|"
    r"INFO: task .* blocked|refcount_t: ).*")


@dataclass(frozen=True)
class NvmetPeer:
    """A running nvmet guest: its socket, its addresses and its namespace."""

    socket: Path                # the network card's socket, on which QEMU listens
    ip: str
    ip6: str
    nqn: str
    nsid: int
    mtu: int
    size_mib: int
    has_echo: bool              # a program provides the diagnostic echo service
    kernel: str                 # the kernel's version, for reports
    instance: Instance
    part: str = "peer"          # the guest
    has_iwarp: bool = False     # it serves NVMe over iWARP, too

    @property
    def console_log(self) -> Path:
        return console_log(self.instance.folder, self.part)

    def run(self, command: str) -> str:
        """Run one command in the guest; return what it has written to stdout."""
        return self.instance.run(command, part=self.part, apart=True).output

    def complaints(self) -> list[str]:
        """Warnings and errors of the guest's kernel, and whether the guest ended."""
        found = [f"nvmet's kernel: {line[0]}" for line in COMPLAINTS.finditer(
            self.console_log.read_text(errors="replace"))]
        try:
            self.instance.check()
        except EssdError as error:
            found.append(str(error))
        return found

    def death(self) -> str:
        """The reason of the kernel's crash; "" while the guest is running."""
        found = [line[0] for line in COMPLAINTS.finditer(
            self.console_log.read_text(errors="replace"))
            if not line[0].startswith("WARNING")]
        # The console shows a panic before the supervisor notices that QEMU ended.
        if any(line.startswith("Kernel panic") for line in found):
            return found[0]
        is_running = all(part["state"] == "running" and not part["restarts"]
                         for part in self.instance.status()["parts"].values())
        return "" if is_running else "its virtual machine ended"


def blocks_script(nqn: str) -> str:
    """Shell script that makes the namespace use blocks of BLOCK bytes and support
    deallocation, as its ONCS field claims; the guest's default is made for speed."""
    namespace = shlex.quote(
        f"/sys/kernel/config/nvmet/subsystems/{nqn}/namespaces/{NSID}")
    disk = "/sys/kernel/config/nullb/nullb0"
    return (f"set -e; echo 0 > {namespace}/enable; echo 0 > {disk}/power; "
            f"echo {BLOCK} > {disk}/blocksize; echo 1 > {disk}/discard; "
            f"echo 1 > {disk}/power; "
            f"echo 1 > {namespace}/enable; "
            "cat /sys/block/nullb0/queue/logical_block_size")


def ipv6_script(address: str) -> str:
    """Shell script that adds an IPv6 port, which the guest's own script does not."""
    port = "/sys/kernel/config/nvmet/ports/6"
    return (f"set -e; mkdir {port}; echo rdma > {port}/addr_trtype; "
            f"echo ipv6 > {port}/addr_adrfam; echo {address} > {port}/addr_traddr; "
            f"echo 4420 > {port}/addr_trsvcid; "
            f"ln -s /sys/kernel/config/nvmet/subsystems/* {port}/subsystems/")


def start_echo(instance: Instance) -> None:
    """Start the diagnostic echo service (docs/echo.md) as a program in the guest."""
    program = next(path for path in native_build.host_tests(show.line)
                   if path.name == "echo_server")
    instance.put(program, "/tmp/echo_server", part="peer")
    instance.run("/tmp/echo_server > /tmp/echo.log 2>&1 & for i in 1 2 3 4 5 6 7 8; do "
                 "grep -q listening /tmp/echo.log && exit 0; sleep 1; done; "
                 "cat /tmp/echo.log; exit 1", part="peer")


def wait_listener(socket: Path) -> None:
    deadline = time.monotonic() + LISTENS_S
    while not socket.exists():
        if time.monotonic() > deadline:
            raise EssdError(f"nvmet's QEMU did not listen on {socket} within "
                            f"{LISTENS_S} s")
        time.sleep(0.02)


@contextlib.contextmanager
def nvmet(mtu: int = 1500) -> Iterator[NvmetPeer]:
    """Boot the guest; stop it and delete its files at the end."""
    owner = Temporary("conform-nvmet-")
    instance = Instance(owner.name)
    try:
        config = setup.configure(Wish(name=owner.name, target="nvmet", host=False, mtu=mtu,
                                      ports=[ADDRESSES, None], size=f"{SIZE_MIB}m",
                                      listens=True))
        assert config.peer is not None
        config.links = config.links[:1]
        config.peer.kernel = KERNEL
        instance.start(config, bound=True)
        instance.wait_ready("peer")
        link = config.links[0]
        wait_listener(link.socket(instance.folder))
        block = instance.run(blocks_script(config.peer.nqn), part="peer",
                             apart=True).output
        if block.strip() != str(BLOCK):
            raise EssdError(f"nvmet's null block device has blocks of {block.strip()} "
                            f"bytes, not {BLOCK}")
        # QEMU's card drops frames with a priority tag (VLAN 0) until Linux's 8021q
        # module asks for them.
        instance.run("modprobe 8021q", part="peer")
        start_echo(instance)
        ip, ip6 = (str(ipaddress.ip_interface(text).ip) for text in link.targets)
        instance.run(ipv6_script(ip6), part="peer")
        kernel = instance.run("uname -r", part="peer", apart=True).output.strip()
        yield NvmetPeer(link.socket(instance.folder), ip, ip6, config.peer.nqn, NSID,
                        mtu, SIZE_MIB, True, kernel, instance)
    finally:
        with interrupts.ignored():
            instance.stop_started()
            owner.delete()


def main() -> None:
    """Boot the guest, print the options to reach it, and wait for Enter."""
    with nvmet() as peer:
        print(f"--socket {peer.socket} --target {peer.ip} --nqn {peer.nqn} "
              f"--nsid {peer.nsid} --mtu {peer.mtu}", flush=True)
        with contextlib.suppress(EOFError, KeyboardInterrupt):
            input()


if __name__ == "__main__":
    main()
