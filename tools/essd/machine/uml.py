# SPDX-License-Identifier: BSD-2-Clause
"""Command lines of a host that is user-mode Linux, and a test whether it runs here.

Two processes are such a host.  The kernel is an ordinary program, whose network cards are
datagram sockets.  The relay is a QEMU without a machine, which carries frames between
those sockets and the cables.  So a cable has the same socket as with any other host, is
pulled and captured by the same commands, and ssh comes in the same way: through QEMU's
user-mode network.

The kernel starts in the part's folder and finds its files there by short names, because
its options have no way to write commas, colons and spaces in paths.
"""

import ctypes
import json
import os
import platform
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from ..base import paths, persisted
from ..base.errors import EssdError
from ..base.files import replace_file
from ..build.guest_build import Cpio, Guest, UML_SOURCE
from ..build.uml_build import UmlKernel
from ..instance.config import VHOST_USER, Config, part_file
from .vm import (MANAGEMENT, MGMT_CARD, QEMU, cable, card_mac, dump_options, guest_words,
                 qmp_options, sandbox_options)

# A kernel warning or an oops ends the host at once and makes the test fail; "noreboot"
# makes a restart an end.  The processor's random numbers seed the kernel's.
KERNEL = ("panic_on_warn=1", "oops=panic", "panic=-1", "quiet", "loglevel=6",
          "random.trust_cpu=on", "noreboot", "log_buf_len=2M", "null_blk.nr_devices=0",
          "bonding.max_bonds=0", "dummy.numdummies=0")
CONSOLE = ("con=null", "con0=null,fd:1", "ssl=null")
ROOT, INITRD = "root.squashfs", "initrd"        # names in the part's folder
# Frames that a card takes in one system call.
DEPTH = 128
# A card whose frames pass through the host's memory: virtio 1.2, section 5.1.4.
VIRTIO_NET, LINK_UP, SPEED_MBPS, FULL_DUPLEX = 1, 1, 25000, 1
TRY_S = 30
SHARED = Path("/dev/shm")       # where a drive can take a kernel's memory from
PR_SET_PDEATHSIG = 1


def relay_command(config: Config, part: str, folder: Path,
                  descriptors: dict[int, int]) -> list[str]:
    """The command of the QEMU between the cables and the kernel's network cards.

    `descriptors` are QEMU's ends of the cards' sockets, by the card's number.
    """
    relay = config.hosts[part].relay or QEMU
    command = [relay, "-nodefaults", "-no-user-config", "-display", "none",
               *sandbox_options(), "-M", "none", *qmp_options(folder, part)]
    for number, link in config.ports_of(part).items():
        if link.is_shared:
            continue
        command += cable(link, folder, part)
        command += joined(number, f"cable{link.number}", f"port{link.number}",
                          descriptors[number])
    for link in config.captures(part):
        command += dump_options(link, f"cable{link.number}", folder)
    return [*command, *MANAGEMENT,
            *joined(MGMT_CARD, "mgmt", "mgmt-card", descriptors[MGMT_CARD])]


def joined(number: int, inside: str, card: str, descriptor: int) -> list[str]:
    """Options for a card's socket, and a hub that joins it with another network."""
    return ["-netdev", f"dgram,id={card},local.type=fd,local.str={descriptor}",
            "-netdev", f"hubport,id=hub{number}-0,hubid={number},netdev={inside}",
            "-netdev", f"hubport,id=hub{number}-1,hubid={number},netdev={card}"]


def shared_card(config: Config, part: str, number: int, folder: Path) -> str:
    """The kernel's word for a card whose frames pass through its memory (vhost-user).

    The last field is the card's configuration space (guest/uml, patch 0006).
    """
    link = config.ports_of(part)[number]
    space = struct.pack("<6sHHHIB", bytes.fromhex(card_mac(config.hosts[part], number)
                                                  .replace(":", "")),
                        LINK_UP, 1, link.card_mtu(True), SPEED_MBPS, FULL_DUPLEX)
    # From the kernel's folder: a path could have a colon, or be too long for a socket.
    path = os.path.relpath(link.socket(folder), part_file(folder, part, ""))
    return f"virtio_uml.device={path}:{VIRTIO_NET}:{number}:{space.hex()}"


def kernel_command(config: Config, part: str, folder: Path, descriptors: dict[int, int],
                   carrier: int) -> list[str]:
    """The command of the kernel.

    `descriptors` are the kernel's ends of its cards' sockets; from `carrier` it reads
    which cards have a carrier.
    """
    host = config.hosts[part]
    command = [str(UmlKernel(Path(host.uml)).program), f"mem={host.memory_mib}M",
               f"ubd0rc={ROOT}", f"initrd={INITRD}", "uml_dir=.", "umid=uml", *CONSOLE,
               f"ssl0=fd:{carrier},null", *KERNEL, f"essd.uuid={host.uuid}"]
    links = config.ports_of(part)
    for n, (number, descriptor) in enumerate(descriptors.items()):
        mtu = links[number].card_mtu(True) if number in links else 1500
        command.append(f"vec{n}:transport=fd,fd={descriptor},mac={card_mac(host, number)},"
                       f"mtu={mtu},depth={DEPTH}")
    command += [shared_card(config, part, number, folder)
                for number, link in links.items() if link.is_shared]
    return [*command, *guest_words(config, part)]


def initramfs(uml: UmlKernel, guest: Guest) -> bytes:
    """The guest's initramfs, which has busybox, with this kernel's files laid over it."""
    archive = Cpio()
    archive.file("init", UML_SOURCE / "init")
    folders = ["uml", "uml/lib", "uml/lib/essd", "uml/lib/modules",
               f"uml/lib/modules/{uml.modules.name}"]
    for name in folders:
        archive.folder(name)
    archive.file("uml/lib/essd/carrier", UML_SOURCE / "carrier")
    for path in sorted(uml.modules.iterdir()):
        archive.add(f"{folders[-1]}/{path.name}", stat.S_IFREG | 0o644, path.read_bytes())
    return guest.initrd.read_bytes() + archive.close()


def prepare_folder(config: Config, part: str, folder: Path) -> Path:
    """Put what the kernel opens into the part's folder, in which it is started."""
    here = part_file(folder, part, "")
    guest = Guest(Path(config.guest_of(part)))
    (here / INITRD).write_bytes(initramfs(UmlKernel(Path(config.hosts[part].uml)), guest))
    (here / ROOT).unlink(missing_ok=True)
    (here / ROOT).symlink_to(guest.root)
    return here


def memory_folder(folder: Path, memory_mib: int) -> Path:
    """Where the kernel keeps the file that is its memory, which has no name there.

    In a container, /dev/shm may be smaller than the memory, and a page that does not fit
    would end the kernel.
    """
    return folder if memory_problem(SHARED, memory_mib) else SHARED


def memory_problem(place: Path, memory_mib: int) -> str:
    """Why the file that is the kernel's memory cannot be in a folder; "" if it can."""
    try:
        there = os.statvfs(place)
    except OSError as error:
        return f"cannot be used ({error.strerror})"
    if there.f_flag & os.ST_NOEXEC:     # The kernel's processes run what is in its memory.
        return f"is mounted noexec, so it cannot hold {memory_mib} MiB"
    return "" if there.f_bavail * there.f_frsize >= memory_mib << 20 \
        else f"has no room for {memory_mib} MiB"


def check_shared_memory(memory_mib: int, instead: str) -> None:
    """EssdError if the kernel's memory is in no file that a drive takes (vhost_map.h).

    `instead` is what the user can write to have another cable.
    """
    if problem := memory_problem(SHARED, memory_mib):
        raise EssdError(f"{SHARED} {problem}, a host's memory, which a cable of kind "
                        f"{VHOST_USER} shares: give this machine or container a large "
                        f"{SHARED} without noexec, or use {instead}")


def environment(folder: Path, memory_mib: int) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(memory_folder(folder, memory_mib))}


def begin() -> None:
    """Called in the child: it ends with the supervisor, and leaves no core dump."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


# Whether it runs on this machine

@dataclass
class UmlTest:
    """The file uml.json in the cache."""

    key: str                # this machine's kernel, and the user-mode kernel
    problem: str            # "": it runs


def try_kernel(uml: UmlKernel, guest: Guest) -> str:
    """Start the kernel without a root file system; what stopped it before user space."""
    folder = paths.cache() / "uml" / f"try.{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        (folder / INITRD).write_bytes(initramfs(uml, guest))
        with subprocess.Popen(
                [uml.program, "mem=128M", f"initrd={INITRD}", "uml_dir=.", "umid=uml",
                 *CONSOLE, *KERNEL], cwd=folder, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace", env=environment(folder, 128), preexec_fn=begin) as process:
            try:
                said = process.communicate(timeout=TRY_S)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                return f"it does not reach user space within {TRY_S} s"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if "essd-guest: initramfs" in said:
        return ""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    cause = [line for line in lines if re.search(r"ptrace|fail|denied|Kernel panic", line, re.I)]
    return (cause or lines or ["it ends without a word"])[0 if cause else -1]


def check(uml: UmlKernel, guest: Guest) -> None:
    """EssdError if user-mode Linux does not run here.  That it does is tested once."""
    key = f"{platform.release()} {uml.path.name}"
    file = paths.cache() / "uml.json"
    known = persisted.read_or_none(file, UmlTest)
    if known is None or known.key != key or known.problem:
        known = UmlTest(key, try_kernel(uml, guest))
        replace_file(file, json.dumps(asdict(known)).encode())
    if known.problem:
        raise EssdError(f"user-mode Linux does not run on this machine: {known.problem}; "
                        "use --host-kind stock")
