# SPDX-License-Identifier: BSD-2-Clause
"""Run a command in a network namespace where the interface WIRE leads to a drive.

    wire_interface.py SOCKET COMMAND...     in a new namespace: see `spawn`

WIRE is one end of a veth pair, with an address of the kernel's own.  The frames
of the other end are carried to and from QEMU's stream socket, each behind its
length in four bytes.  What Linux keeps beside a frame, its VLAN tag, is put back.
"""

import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

WIRE, FAR = "wire0", "wire1"
KERNEL_IP = "10.0.0.9/24"
MTU = 9000
LENGTH = struct.Struct(">I")
ROOM = 65536
ETH_P_ALL = 3
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_AUXDATA = 263, 1, 8
PACKET_MR_PROMISC, PACKET_OUTGOING = 1, 4
MEMBERSHIP = struct.Struct("iHH8s")
AUXDATA = struct.Struct("IIIHHHH")      # struct tpacket_auxdata
VLAN_VALID, TPID_VALID = 1 << 4, 1 << 6


def command(words: list[str | Path]) -> list[str]:
    """What runs this script in a namespace of its own; root is not needed."""
    new = ["unshare", "--net"]
    if os.geteuid() != 0:
        new += ["--user", "--map-root-user"]
    return [*new, sys.executable, __file__, *map(str, words)]


def obstacle() -> str:
    """Why it cannot be run here, or nothing."""
    try:
        done = subprocess.run(command(["--check"]), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=20, check=False)
    except FileNotFoundError:
        return "there is no program unshare"
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (lines or ["unshare failed"])[-1]


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, timeout=60)


def make_wire() -> None:
    ip(f"link add {WIRE} mtu {MTU} type veth peer name {FAR} mtu {MTU}")
    ip(f"address add {KERNEL_IP} dev {WIRE}")
    for name in ("lo", WIRE, FAR):
        ip(f"link set {name} up")


def far_end() -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    end.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    end.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, MEMBERSHIP.pack(
        socket.if_nametoindex(FAR), PACKET_MR_PROMISC, 0, b""))
    end.bind((FAR, ETH_P_ALL))
    return end


def whole_frame(data: bytes, ancillary: list[tuple[int, int, bytes]]) -> bytes:
    for level, kind, value in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tci, tpid = AUXDATA.unpack(value[:AUXDATA.size])
            if status & VLAN_VALID:
                tag = tpid if status & TPID_VALID else 0x8100
                return data[:12] + struct.pack(">HH", tag, tci) + data[12:]
    return data


def to_drive(end: socket.socket, drive: socket.socket) -> None:
    while True:
        data, ancillary, _, source = end.recvmsg(ROOM, 256)
        if source[2] != PACKET_OUTGOING:
            frame = whole_frame(data, ancillary)
            drive.sendall(LENGTH.pack(len(frame)) + frame)


def from_drive(end: socket.socket, drive: socket.socket) -> None:
    with drive.makefile("rb") as stream:
        while head := stream.read(LENGTH.size):
            end.send(stream.read(LENGTH.unpack(head)[0]))


def main(words: list[str]) -> int:
    make_wire()
    end = far_end()
    if words == ["--check"]:
        return 0
    drive = socket.socket(socket.AF_UNIX)
    drive.connect(words[0])
    for carry in (to_drive, from_drive):
        threading.Thread(target=carry, args=(end, drive), daemon=True).start()
    return subprocess.run(  # no timeout: whoever started this program ends it
        words[1:], stdin=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
