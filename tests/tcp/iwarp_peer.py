#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""NVMe over iWARP on the drive's TCP port 4420, over the kernel of this computer.

Runs toe_tap (the drive's firmware and hardware models in a process) as toe_peer.py does.  MPA, DDP,
RDMAP and NVMe are written by hand here; TCP is the kernel's.  A host connects, answers the drive's
READ of its Connect data, reads the discovery log by the drive's WRITEs, and closes.  NVMe/TCP is
at the same port.
"""
import socket
import struct
import sys
import time
from collections.abc import Iterator

from kernel_peer import Host, connect, main, run_toe_tap, wait_closed

HOSTS: tuple[Host, ...] = (
    ("10.77.0.2", socket.AF_INET), ("fd00:0:0:1::1", socket.AF_INET6),
    ("10.78.0.2", socket.AF_INET), ("fd00:0:0:2::1", socket.AF_INET6))
PORT, ECHO = 4420, 7174
DISCOVERY = b"nqn.2014-08.org.nvmexpress.discovery"
WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, TERMINATE = 0, 1, 2, 3, 4, 7
TAGGED, LAST = 0x80, 0x40
CONNECT_STAG, LOG_STAG, BASE = 0x1234500, 0x7654300, 0xffff888001234560
RDMA, TCP = 1, 3                # transport types of the log
ROCEV2, IWARP = 4, 5            # RDMA protocols of the log


def crc_table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
        table.append(n)
    return table


TABLE = crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


class Peer:
    """A host's connection for one NVMe queue."""

    def __init__(self, sock: socket.socket, crc: bool = True) -> None:
        self.sock = sock
        self.crc = crc
        self.msn = {0: 1, 1: 1}         # of the next message for a queue
        self.memory: dict[int, bytearray] = {}

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            assert part, f"the stream ends after {len(data)} of {size} bytes"
            data += part
        return data

    def set_up(self, private: bytes, flags: int = 0x10) -> bytes:
        """Exchange MPA's frames.  @return the drive's whole reply"""
        self.sock.sendall(b"MPA ID Req Frame" + bytes((flags, 2))
                          + struct.pack(">HHH", 4 + len(private), 128, 0) + private)
        head = self.exactly(20)
        return head + self.exactly(struct.unpack(">H", head[18:])[0])

    def fpdu(self, ulpdu: bytes) -> bytes:
        body = struct.pack(">H", len(ulpdu)) + ulpdu
        body += bytes(-len(body) % 4)
        return body + struct.pack("<I", crc32c(body) if self.crc else 0)

    def send(self, data: bytes) -> None:
        """One message, in pieces that respect neither segments nor words."""
        ulpdu = struct.pack(">BBIIII", LAST | 1, 0x40 | SEND, 0, 0, self.msn[0], 0) + data
        self.msn[0] += 1
        stream = self.fpdu(ulpdu)
        for at in range(0, len(stream), 13):
            self.sock.sendall(stream[at:at + 13])

    def ulpdus(self) -> Iterator[bytes]:
        while True:
            size = struct.unpack(">H", head := self.exactly(2))[0]
            rest = self.exactly(size + -(size + 2) % 4 + 4)
            if self.crc:
                assert struct.unpack("<I", rest[-4:])[0] == crc32c(head + rest[:-4]), "CRC"
            yield rest[:size]

    def answer_read(self, ulpdu: bytes) -> None:
        sink, sink_to, size, source, source_to = struct.unpack(">IQIIQ", ulpdu[18:46])
        data = self.memory[source]
        at = source_to - BASE
        assert 0 <= at <= at + size <= len(data)
        self.sock.sendall(b"".join(
            self.fpdu(struct.pack(">BBIQ", TAGGED | 1 | (LAST if n + 400 >= size else 0),
                                  0x40 | READ_RESPONSE, sink, sink_to + n)
                      + data[at + n:at + min(n + 400, size)])
            for n in range(0, size, 400)))

    def completion(self) -> bytes:
        """Serve the drive until its response has come.  @return the completion"""
        for ulpdu in self.ulpdus():
            opcode = ulpdu[1] & 0xf
            if opcode == READ_REQUEST:
                self.answer_read(ulpdu)
            elif opcode == WRITE:
                stag, offset = struct.unpack(">IQ", ulpdu[2:14])
                at = offset - BASE
                self.memory[stag][at:at + len(ulpdu) - 14] = ulpdu[14:]
            else:
                assert opcode in (SEND, SEND_INV), f"opcode {opcode}: {ulpdu.hex()}"
                assert len(ulpdu) == 18 + 16
                return ulpdu[18:]
        raise AssertionError

    def command(self, cid: int, opcode: int, data: tuple[int, int] = (0, 0), **fields: bytes
                ) -> bytes:
        """@param data  STag and length; fields: bytes at `at_N`"""
        sqe = bytearray(64)
        sqe[0], sqe[1] = opcode, 0x40
        struct.pack_into("<H", sqe, 2, cid)
        sqe[24:40] = struct.pack("<QI", BASE if data[1] else 0, data[1])[:11] \
            + struct.pack("<IB", data[0], 0x40)
        for name, value in fields.items():
            at = int(name.removeprefix("at_"))
            sqe[at:at + len(value)] = value
        self.send(bytes(sqe))
        cqe = self.completion()
        assert struct.unpack("<H", cqe[12:14])[0] == cid
        status = struct.unpack("<H", cqe[14:16])[0] >> 1
        assert status == 0, f"command {opcode:#x} ended with status {status:#x}"
        return cqe


def connect_discovery(peer: Peer) -> None:
    reply = peer.set_up(struct.pack("<HHHH", 0, 0, 32, 31) + bytes(24))
    assert reply[:16] == b"MPA ID Rep Frame", reply
    assert reply[16] == 0x50 and reply[17] == 2, reply.hex()
    assert struct.unpack(">HH", reply[20:24]) == (0, 16), reply.hex()
    peer.memory[CONNECT_STAG] = data = bytearray(1024)
    data[:16] = bytes(range(16))
    data[16:18] = b"\xff\xff"
    data[256:256 + len(DISCOVERY)] = DISCOVERY
    name = b"nqn.2014-08.org.example:host"
    data[512:512 + len(name)] = name
    peer.command(1, 0x7f, (CONNECT_STAG, 1024), at_4=b"\x01", at_40=struct.pack("<HHH", 0, 0, 31))
    peer.command(2, 0x7f, at_4=b"\0", at_44=struct.pack("<IQ", 0x14, 0x460001))


def read_log(peer: Peer, size: int) -> bytes:
    peer.memory[LOG_STAG] = bytearray(size)
    peer.command(3, 0x02, (LOG_STAG, size), at_40=struct.pack("<BBH", 0x70, 0, size // 4 - 1))
    return bytes(peer.memory[LOG_STAG])


def discovery(host: Host) -> None:
    with connect(host, PORT) as sock:
        peer = Peer(sock)
        connect_discovery(peer)
        count = struct.unpack("<Q", read_log(peer, 1024)[8:16])[0]
        log = read_log(peer, 1024 * (1 + count))
        entries = [log[1024 * n:1024 * (n + 1)] for n in range(1, 1 + count)]
        kinds = {(e[0], e[768 + 1]) for e in entries if e[0] == RDMA}
        assert kinds == {(RDMA, ROCEV2), (RDMA, IWARP)}, kinds
        assert TCP in {e[0] for e in entries}
        iwarp = [e for e in entries if (e[0], e[769]) == (RDMA, IWARP)]
        assert all(e[32:64].strip(b" \0") == b"4420" for e in iwarp)
        assert host[0].encode() in {e[512:768].strip(b" \0") for e in iwarp}
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100) == b""    # a FIN, and no RST


def refusals() -> None:
    """What is not MPA gets no answer; a request that NVMe refuses gets a reply with R."""
    with connect(HOSTS[0], PORT) as sock:
        sock.sendall(b"MPA ID Rep Frame" + bytes(20))
        assert sock.recv(100) == b""
    with connect(HOSTS[1], PORT) as sock:
        reply = Peer(sock).set_up(struct.pack("<HHHH", 1, 0, 32, 31) + bytes(24))
        assert reply[16] & 0x20, reply.hex()
        assert reply[24:] == b"\0\0\x02\0", reply.hex()
        assert sock.recv(100) == b""


def nvme_tcp(host: Host) -> None:
    """The other transport at this port: ICReq, byte by byte, and ICResp."""
    with connect(host, PORT) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = struct.pack("<BBBBI", 0, 0, 128, 0, 128) + bytes(120)
        sock.sendall(request[:1])
        time.sleep(0.05)
        sock.sendall(request[1:])
        answer = b""
        while len(answer) < 128 and (part := sock.recv(128)):
            answer += part
        assert answer[:3] == b"\x01\0\x80", answer


def ping(host: Host) -> None:
    """The echo service over iWARP: the drive reads a source, and writes a sink."""
    with connect(host, ECHO) as sock:
        peer = Peer(sock)
        assert not peer.set_up(b"")[16] & 0x20
        source = bytes(n * 7 & 0xff for n in range(10_000))
        peer.memory = {CONNECT_STAG: bytearray(source), LOG_STAG: bytearray(len(source))}
        for stag in (CONNECT_STAG, LOG_STAG):
            peer.send(struct.pack(">QII", BASE, stag, len(source)))
            assert peer.completion() == bytes(16)
        assert peer.memory[LOG_STAG] == source


def exercise() -> None:
    for host in HOSTS:
        discovery(host)
        nvme_tcp(host)
        ping(host)
    refusals()
    wait_closed()


def inside(tool: str) -> None:
    run_toe_tap(tool, exercise, ("connections", "half_open", "pages", "slots",
                                 "refused_commands"))


if __name__ == "__main__":
    sys.exit(main(__file__, inside))
