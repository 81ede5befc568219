# SPDX-License-Identifier: BSD-2-Clause
"""Command lines of the Linux guests, and a test whether KVM can run them.

Each cable is a UNIX stream socket, which blocks a sender instead of dropping
frames.  The host's QEMU listens on it: QEMU 7.2 (Debian 12) keeps listening
after its peer has disconnected, but cannot reconnect by itself, and it is the
drive that is power-cycled while the host keeps running.
"""

import json
import os
import platform
import re
import selectors
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ..base import paths, persisted
from ..base.errors import LOOK_UP_S
from ..base.files import replace_file
from ..build.guest_build import Guest
from ..instance.config import (Config, Host, Link, Peer, console_log, monitor_socket,
                               user_socket)
from . import tsc

QEMU = "qemu-system-x86_64"
# A kernel warning or an oops ends the guest at once and makes the test fail.
KERNEL = ("console=ttyS0 panic_on_warn=1 oops=panic panic=-1 mitigations=off quiet "
          "loglevel=6 random.trust_cpu=on tsc=reliable no_timer_check "
          "log_buf_len=2M")
# The network for ssh, to which only this machine can connect, and the number of its card.
MANAGEMENT = ("-netdev", "user,id=mgmt,restrict=on,net=192.168.76.0/24,"
              "ipv6=off,hostfwd=tcp:127.0.0.1:0-:22")
MGMT_CARD = 255
# rxe computes the ICRC over the frame as it is sent, so all offloads to the card
# are disabled.
PLAIN_FRAMES = ("csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,"
                "guest_ecn=off,guest_ufo=off,host_tso4=off,host_tso6=off,"
                "host_ecn=off,host_ufo=off")

# QEMU 7.2 (Debian 12) without KVM ends with a segmentation fault when the driver starts a
# vhost-user card whose interrupts are MSI-X (virtio_pci_one_vector_unmask()).
SHARED_CARD = ",vectors=0"


def option(value: object) -> str:
    """Escape a value for QEMU's options, in which a comma begins the next option."""
    return str(value).replace(",", ",,")


def qmp_options(folder: Path, part: str) -> list[str]:
    """Options for two QMP monitors, one for the supervisor and one for the user."""
    options = []
    for name, path in (("qmp", monitor_socket(folder, part)),
                       ("qmp-user", user_socket(folder, part))):
        options += ["-chardev", f"socket,id={name},server=on,wait=off,path={option(path)}",
                    "-mon", f"chardev={name},mode=control"]
    return options


# The sandbox denies system calls that QEMU does not need here: those that start a
# program, change the user or the priority, and obsolete ones.
SANDBOX = ("on,obsolete=deny,elevateprivileges=deny,spawn=deny,"
           "resourcecontrol=deny")
SECCOMP = Path("/proc/sys/kernel/seccomp/actions_avail")


def has_seccomp() -> bool:
    """Whether this machine's kernel can filter system calls."""
    return SECCOMP.exists()


def sandbox_options() -> list[str]:
    return ["-sandbox", SANDBOX] if has_seccomp() else []


# QEMU 7.2 (Debian 12) leaves a stray value in EFLAGS after cmpxchg16b, and an
# interrupt at that place returns with it.  The guest then single-steps, or its
# string instructions run backwards.  Linux also works without the instruction.
EMULATED_CPU = "max,-cx16"
# Linux prefers the PIT to the HPET for calibrating the TSC.  On a machine that was
# busy while an emulated guest booted, the guest's clock then ran 3 to 6 times too
# fast ("PIT calibration deviates from HPET"), and its time-outs expired early.
MACHINE = "pc,usb=off"
EMULATED_MACHINE = f"{MACHINE},pit=off"


def machine(guest: Guest, accel: str, memory_mib: int, cpus: int) -> list[str]:
    board, cpu = ((MACHINE, "host") if accel == "kvm"
                  else (EMULATED_MACHINE, EMULATED_CPU))
    accel = "tcg,thread=multi" if accel == "tcg" else accel
    return [QEMU, "-nodefaults", "-no-user-config", "-display", "none",
            *sandbox_options(), "-no-reboot", "-M", board, "-accel", accel, "-cpu", cpu,
            "-smp", str(cpus), "-m", str(memory_mib),
            "-kernel", str(guest.kernel), "-initrd", str(guest.initrd)]


def mac(side: int, number: int) -> str:
    """A locally administered MAC address that neither a drive nor a test program
    uses."""
    return f"02:e5:5e:00:{side:02x}:{number:02x}"


def cable(link: Link, folder: Path, part: str) -> list[str]:
    """Options for the end of a cable."""
    if link.is_shared:
        # The drive listens.  QEMU tries again each second while it does not.
        return ["-chardev", f"socket,id=vhost{link.number},reconnect=1,"
                f"path={option(link.socket(folder))}",
                "-netdev", f"vhost-user,id=cable{link.number},chardev=vhost{link.number}"]
    mode = "on" if link.listens(part) else "off"
    return ["-netdev", f"stream,id=cable{link.number},server={mode},addr.type=unix,"
            f"addr.path={option(link.socket(folder))}"]


def card(address: str, link: Link, folder: Path, part: str) -> list[str]:
    """Options for one network card, with this MAC, that is connected to one cable."""
    return [*cable(link, folder, part), "-device",
            f"virtio-net-pci,id=port{link.number},netdev=cable{link.number},romfile=,"
            f"mac={address},host_mtu={link.card_mtu(part != 'peer')},{PLAIN_FRAMES},"
            "rx_queue_size=1024,speed=25000,duplex=full"
            + (SHARED_CARD if link.is_shared else "")]


def dump_options(link: Link, netdev: str, folder: Path) -> list[str]:
    """Options with which QEMU writes every frame of a cable to a file."""
    return ["-object", f"filter-dump,id=dump{link.number},netdev={netdev},"
            f"maxlen=65536,file={option(link.pcap(folder))}"]


def network_query() -> tuple[str, dict[str, str]]:
    """The QMP command whose text cables_connected() reads."""
    return "human-monitor-command", {"command-line": "info network"}


def cables_connected(text: str) -> dict[int, bool]:
    """From the text of "info network": which of a guest's cables with a socket are connected.

    QEMU shows the address of the other end if there is a connection.  Otherwise it
    shows nothing (7.2) or what it is doing (10.0).
    """
    found = re.findall(r"\bcable(\d+): index=\d+,type=stream,([^\r\n]*)", text)
    return {int(number): bool(re.match(r"(unix|tcp|fd):|fd=", state))
            for number, state in found}


def card_mac(what: Host | Peer, number: int) -> str:
    if isinstance(what, Peer):
        return mac(2, number)
    return f"{what.mac}:{number:02x}" if what.mac else mac(1, number)


def guest_words(config: Config, part: str) -> list[str]:
    """The words of the kernel's command line that /usr/lib/essd/start reads."""
    what: Host | Peer | None = config.peer if part == "peer" else config.hosts[part]
    assert what is not None
    is_host = isinstance(what, Host)
    words = [f"essd.hostname={part}", f"essd.role={'host' if is_host else 'target'}"]
    if isinstance(what, Peer):
        words += [f"essd.nqn={what.nqn}", f"essd.size={what.size}"]
    words += what.kernel
    for number, link in config.ports_of(part).items():
        words.append("essd.nic=" + ",".join(
            [card_mac(what, number), f"eth{number}", str(link.card_mtu(is_host)),
             *(link.hosts if is_host else link.targets)]))
    return [*words, f"essd.mgmt={card_mac(what, MGMT_CARD)}"]


def guest_command(config: Config, part: str, folder: Path) -> list[str]:
    """The command that starts a host or "peer"."""
    guest = Guest(Path(config.guest_of(part)))
    what: Host | Peer | None = config.peer if part == "peer" else config.hosts[part]
    assert what is not None
    command = machine(guest, config.accel, what.memory_mib, what.cpus)
    if any(link.is_shared for link in config.ports_of(part).values()):
        command += ["-object", "memory-backend-memfd,id=memory,share=on,"
                    f"size={what.memory_mib}M", "-machine", "memory-backend=memory"]
    command += ["-uuid", what.uuid, "-serial", f"file:{console_log(folder, part)}",
                "-drive", "if=none,id=root,driver=raw,readonly=on,file.driver=file,"
                f"file.locking=off,file.filename={option(guest.root)}",
                "-device", "virtio-blk-pci,drive=root",
                "-device", "virtio-rng-pci", *qmp_options(folder, part)]
    for number, link in config.ports_of(part).items():
        command += card(card_mac(what, number), link, folder, part)
    for link in config.captures(part):
        command += dump_options(link, f"cable{link.number}", folder)
    # Management card for ssh, which accepts connections from this machine only.
    command += [*MANAGEMENT, "-device",
                f"virtio-net-pci,netdev=mgmt,romfile=,mac={card_mac(what, MGMT_CARD)}"]
    words = [KERNEL, *(tsc.kernel_words() if config.accel == "tcg" else ()),
             *guest_words(config, part)]
    return [*command, "-append", " ".join(words)]


def try_kvm(guest: Guest, seconds: float = 15) -> bool:
    """Start the guest's kernel under KVM; return true if it reaches user space."""
    command = machine(guest, "kvm", 512, 1)
    command += ["-append", KERNEL, "-serial", "stdio", "-monitor", "none"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        seen = b""
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"essd-guest: initramfs" not in seen:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    break
                data = os.read(process.stdout.fileno(), 65536)
                if not data:
                    break
                seen += data
        process.kill()
    return b"essd-guest: initramfs" in seen


@dataclass
class KvmTest:
    """The file kvm.json in the cache."""

    key: str                # this machine's kernel and QEMU, and the guest
    works: bool


def kvm_verdict(guest: Guest) -> tuple[bool, str]:
    """Whether KVM runs the guest, and why (not).  The result is tested once and kept."""
    if os.environ.get("ESSD_ACCEL") == "tcg":
        return False, "ESSD_ACCEL=tcg"
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        why = "cannot be opened" if Path("/dev/kvm").exists() else "does not exist"
        return False, f"/dev/kvm {why}"
    version = subprocess.run([QEMU, "--version"], check=False, text=True,
                             stdout=subprocess.PIPE, timeout=LOOK_UP_S).stdout.split("\n")[0]
    key = f"{platform.release()} {version} {guest.path.name}"
    file = paths.cache() / "kvm.json"
    known = persisted.read_or_none(file, KvmTest)
    if known is None or known.key != key:
        known = KvmTest(key, try_kvm(guest))
        replace_file(file, json.dumps(asdict(known)).encode())
    if known.works:
        return True, "a guest kernel was started with it"
    return False, "/dev/kvm exists but does not run the guest's kernel"


def ensure_accel(guest: Guest) -> str:
    return "kvm" if kvm_verdict(guest)[0] else "tcg"
