# SPDX-License-Identifier: BSD-2-Clause
"""Cables that lead out of an instance: to any program, machine or interface.

A cable is written KIND=VALUE, such as listen=/tmp/p0.sock.  QEMU attaches the
drive's end.  docs/connect-your-own.md shows what to attach at the other end.
"""

import os
import re
import socket
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base import chosen
from ..base.errors import EssdError
from .vm import option

VALUES = {"listen": "PATH", "dial": "PATH", "tcp": "ADDR:PORT",
          "tcp-listen": "[ADDR:]PORT", "tap": "NAME", "iface": "NAME"}
LOOPBACK = "127.0.0.1"
PATH_MAX = 107          # bytes of a UNIX socket's path, without the final zero
NETWORKS = Path("/sys/class/net")
DEVICES = Path("/dev")
TUN = Path("/dev/net/tun")
CAP_NET_ADMIN, CAP_NET_RAW = 12, 13
# How often QEMU tries to connect while nobody listens.
DIAL_MS = {"dial": 100, "tcp": 1000}


@dataclass(frozen=True)
class Outside:
    """What is at a cable's other end."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind}={self.value}"

    @classmethod
    def of(cls, text: str) -> "Outside":
        """The reverse of str()."""
        kind, _, value = text.partition("=")
        return cls(kind, value)

    @property
    def address(self) -> tuple[str, str]:
        """Address and port of a TCP connection."""
        host, _, port = self.value.rpartition(":")
        return host.removeprefix("[").removesuffix("]"), port


def usage() -> str:
    return ", ".join(f"{kind}={value}" for kind, value in VALUES.items())


# Reading what the user wrote

def parse(text: str, folder: Path | None = None) -> Outside:
    """Parse KIND=VALUE; EssdError says what is wrong with it.

    Relative paths start at `folder`, or else at the working folder.
    """
    kind, equals, value = text.partition("=")
    if kind not in VALUES or not equals:
        near = chosen.nearest(kind, VALUES)
        hint = f"did you mean {near}={VALUES[near]}?" if near else f"use one of {usage()}"
        raise EssdError(f"{text}: a cable cannot lead to {kind!r}: {hint}")
    if not value:
        raise EssdError(f"{text}: write {kind}={VALUES[kind]}")
    if kind in ("listen", "dial"):
        return Outside(kind, parse_path(text, value, folder or Path.cwd()))
    if kind in ("tcp", "tcp-listen"):
        return Outside(kind, parse_tcp(text, kind, value))
    if not re.fullmatch(r"[^\s/,]{1,15}", value):
        raise EssdError(f"{text}: {value!r} is not the name of a network interface")
    return Outside(kind, value)


def parse_path(text: str, value: str, folder: Path) -> str:
    path = str((folder / Path(value).expanduser()).absolute())
    if len(os.fsencode(path)) > PATH_MAX:
        raise EssdError(f"{text}: the path of a socket has at most {PATH_MAX} bytes, "
                        f"and {path} has {len(os.fsencode(path))}")
    return path


def parse_tcp(text: str, kind: str, value: str) -> str:
    host, colon, port = value.rpartition(":")
    if kind == "tcp-listen" and not colon:
        host = LOOPBACK
    if not host:
        raise EssdError(f"{text}: write {kind}={VALUES[kind]}, such as "
                        f"{kind}={LOOPBACK}:7000")
    if ":" in host and not re.fullmatch(r"\[.*\]", host):
        raise EssdError(f"{text}: put an IPv6 address in brackets, such as "
                        f"{kind}=[::1]:7000")
    if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise EssdError(f"{text}: {port!r} is not a TCP port (1 to 65535)")
    return f"{host}:{int(port)}"


def split(text: str | None) -> tuple[str | None, Outside | None]:
    """Separate the value of --port0 into addresses and the place of the cable's end.

    Words with "=" say where the cable leads; the others are addresses.  A comma of a path
    is written twice, as for QEMU.
    """
    if text is None:
        return None, None
    words = [word.strip().replace("\0", ",") for word in text.replace(",,", "\0").split(",")]
    places = [word for word in words if "=" in word]
    if len(places) > 1:
        raise EssdError(f"{text}: a port has one cable, not {len(places)}: "
                        f"{' and '.join(places)}")
    addresses = [word for word in words if "=" not in word]
    return (",".join(addresses) if addresses else None,
            parse(places[0]) if places else None)


# Checks before the start

def capabilities() -> int:
    """The capabilities of this process, one bit each."""
    found = re.search(r"^CapEff:\s+(\w+)", Path("/proc/self/status").read_text(), re.M)
    return int(found[1], 16) if found else 0


def check(place: Outside) -> None:
    """EssdError if the drive could not be attached there now."""
    checks = {"listen": check_listen, "tcp-listen": check_tcp_listen, "tap": check_tap,
              "iface": check_interface}
    if place.kind in checks:
        checks[place.kind](place)


def check_listen(place: Outside) -> None:
    path = Path(place.value)
    if not path.parent.is_dir():
        raise EssdError(f"{place}: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise EssdError(f"{place}: you cannot write to the folder {path.parent}")
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise EssdError(f"{place}: {path} exists and is not a socket")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return          # A program that has ended left it; QEMU replaces it.
    raise EssdError(f"{place}: another program listens there already")


def check_tcp_listen(place: Outside) -> None:
    host, port = place.address
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise EssdError(f"{place}: cannot listen there: {error.strerror or error}"
                        ) from None


def interfaces(of_tap: bool) -> list[str]:
    return sorted(path.name for path in NETWORKS.iterdir()
                  if not of_tap or (path / "tun_flags").exists())


def check_exists(place: Outside) -> Path:
    path = NETWORKS / place.value
    if not path.exists():
        names = interfaces(of_tap=place.kind == "tap")
        otherwise = f"there are {chosen.listed(names, 'and')}"
        if place.kind == "tap":
            otherwise = (f"create it with sudo ip tuntap add dev {place.value} mode tap "
                         f"user $USER && sudo ip link set {place.value} up")
        raise EssdError(f"{place}: there is no interface {place.value}: "
                        f"{chosen.mean_or(place.value, names, otherwise)}")
    return path


def check_tap(place: Outside) -> None:
    path = check_exists(place)
    if not (path / "tun_flags").exists():
        raise EssdError(f"{place}: {place.value} is not a tap interface; for another "
                        f"kind of interface use iface={place.value}")
    owner = (path / "owner").read_text().strip()
    if owner != str(os.getuid()) and not capabilities() >> CAP_NET_ADMIN & 1:
        raise EssdError(
            f"{place}: you may not use it (it belongs to "
            f"{'nobody' if owner == '-1' else 'user ' + owner}): run sudo ip tuntap del "
            f"dev {place.value} mode tap && sudo ip tuntap add dev {place.value} mode "
            "tap user $USER")
    if not os.access(TUN, os.R_OK | os.W_OK):
        raise EssdError(f"{place}: you cannot open {TUN}: run sudo chmod 666 {TUN}")


def macvtap_device(name: str) -> Path | None:
    """The device file of a macvtap interface; None for any other interface."""
    path = NETWORKS / name
    try:
        number = int((path / "ifindex").read_text())
    except (OSError, ValueError):
        return None
    return DEVICES / f"tap{number}" if (path / f"tap{number}").exists() else None


def needs_wire(place: Outside) -> bool:
    """Whether the program essd-switch stands between the drive and the interface."""
    return place.kind == "iface" and macvtap_device(place.value) is None


def check_interface(place: Outside) -> None:
    check_exists(place)
    device = macvtap_device(place.value)
    if device is not None and not os.access(device, os.R_OK | os.W_OK):
        raise EssdError(f"{place}: you cannot open {device}: run sudo chown $USER {device}")


def check_raw_frames(place: Outside, program: Path) -> None:
    """EssdError if the switch program may not send raw frames."""
    if capabilities() >> CAP_NET_RAW & 1:
        return
    try:
        os.getxattr(program, "security.capability")
    except OSError:
        raise EssdError(f"{place}: needs the privilege to send raw frames: run sudo "
                        f"setcap cap_net_raw+ep {program}, again after each build of it"
                        ) from None


# What QEMU is told

def open_device(place: Outside) -> int | None:
    """The open device of a macvtap interface, for QEMU to inherit; else None."""
    device = macvtap_device(place.value) if place.kind == "iface" else None
    return os.open(device, os.O_RDWR) if device is not None else None


def netdev(number: int, place: Outside, descriptor: int | None = None) -> list[str]:
    """QEMU's options for the drive's port with this number."""
    if descriptor is not None:
        return ["-netdev", f"tap,id=port{number},fd={descriptor}"]
    start = f"stream,id=port{number},"
    role = f"server=off,reconnect-ms={DIAL_MS[place.kind]}" \
        if place.kind in DIAL_MS else "server=on"
    if place.kind in ("listen", "dial"):
        return ["-netdev", f"{start}addr.type=unix,addr.path={option(place.value)},{role}"]
    if place.kind in ("tcp", "tcp-listen"):
        host, port = place.address
        return ["-netdev", f"{start}addr.type=inet,addr.host={host},addr.port={port},"
                           f"{role}"]
    assert place.kind == "tap"
    return ["-netdev", f"tap,id=port{number},ifname={place.value},script=no,"
                       "downscript=no,vnet_hdr=off"]


# What the user is told

def far_netdev(place: Outside, number: int) -> str:
    """The option with which a stock QEMU connects to a drive's port."""
    start = f"-netdev stream,id=essd{number}"
    role = "server=on" if place.kind in DIAL_MS else "server=off"
    if place.kind in ("listen", "dial"):
        return f"{start},{role},addr.type=unix,addr.path={option(place.value)}"
    host, port = place.address
    if host in ("0.0.0.0", "::"):
        host = "THIS-MACHINE"
    return f"{start},{role},addr.type=inet,addr.host={host},addr.port={port}"


WAITS = {"listen": "waits for a connection at the socket {}",
         "dial": "connects to the socket {} as soon as a program listens there",
         "tcp": "connects to {} over TCP as soon as a program listens there",
         "tcp-listen": "waits for a TCP connection at {}",
         "tap": "is attached to the tap interface {}",
         "iface": "is attached to the network interface {}"}
WHERE = {"tap": "on this machine, as root:",
         "iface": "on a machine in that network, where DEV is its card, as root:"}


def instructions(number: int, place: Outside, drive: Sequence[str],
                 host: Sequence[str], mtu: int) -> list[str]:
    """What to connect to a drive's port, and how: lines for the screen.

    `drive` and `host` are ADDR/LEN: the port's, and some for whoever connects.
    """
    lines = [f"port {number} {WAITS[place.kind].format(place.value)}"]
    if place.kind in WHERE:
        lines.append(f"  {WHERE[place.kind]}")
    else:
        size = f",host_mtu={mtu}" if mtu != 1500 else ""
        lines += ["  on the command line of your virtual machine (QEMU 7.2 or later):",
                  f"    {far_netdev(place, number)}",
                  f"    -device virtio-net-pci,netdev=essd{number}{size}",
                  *([] if place.kind in DIAL_MS else
                    ["  this connects once; with QEMU 9.2 or later, `,reconnect-ms=100` after "
                     "-netdev connects again after an interruption"]),
                  "  in that machine, where DEV is the card, as root:"]
    name = place.value if place.kind == "tap" else "DEV"
    size = f" mtu {mtu}" if mtu != 1500 else ""
    lines.append(f"    ip link set {name} up{size}")
    lines += [f"    ip address add {address} dev {name}" for address in host]
    # Other queues, such as fq_codel, drop frames of rxe: docs/connect-your-own.md.
    lines += [f"    tc qdisc replace dev {name} root pfifo limit 10000",
              f"    rdma link add rxe0 type rxe netdev {name}; modprobe nvme_rdma",
              f"    nvme discover -t rdma -a {drive[0].partition('/')[0]} -s 4420"]
    return lines
