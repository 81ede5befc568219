#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""NVMe/TCP behind TLS, over the kernel of this computer and with the TLS of OpenSSL.

Runs toe_tap (the drive's firmware and hardware models in a process) as toe_peer.py does.  NVMe is
written by hand here; TLS is that of `openssl s_client`, TCP the kernel's.  A host writes and reads
through an I/O queue behind TLS; others do what is not allowed, and disturb nobody.  tshark reads
what was on the wire with the secrets that the drive writes when it is asked to; OpenSSL has the
same.  Nothing else has a key or a secret: neither the wire, nor the drive's log pages, nor its
console, its trace records and its answers to requests.
"""
import base64
import hashlib
import hmac
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from kernel_peer import LIMIT_S, SKIPPED, connect, main, run, run_toe_tap, wait_closed

DRIVE = ("10.77.0.2", socket.AF_INET)
PORT = 4420
HOST = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
DISCOVERY = "nqn.2014-08.org.nvmexpress.discovery"
KEY = hashlib.sha256(b"the key of tls_peer.py").digest()
DATA = random.Random(1).randbytes(64 << 10)
EVERY_FRAME = 3
STREAMS = 3     # of transfer()
CROWD = 200     # addresses that do not finish a handshake
PIECE = 8       # bytes of a secret that are enough to find it
IN_BASE64 = 10  # characters that hold nothing but these bytes, wherever the text begins
BLOCK = 512
ICREQ = struct.pack("<BBBBI", 0, 0, 128, 0, 128) + bytes(120)


def key_text() -> str:
    crc = zlib.crc32(KEY).to_bytes(4, "little")
    return f"NVMeTLSkey-1:01:{base64.b64encode(KEY + crc).decode()}:"


def expand(secret: bytes, label: bytes, context: bytes) -> bytes:
    """HKDF-Extract and HKDF-Expand-Label with SHA-256, by RFC 5869 and RFC 8446."""
    key = hmac.new(bytes(32), secret, "sha256").digest()
    label = b"tls13 " + label
    info = b"\0\x20" + bytes([len(label)]) + label + bytes([len(context)]) + context
    return hmac.new(key, info + b"\1", hashlib.sha256).digest()


# The key, what is derived of it, and the secrets of connections that OpenSSL has written.
SECRETS = [KEY, expand(KEY, b"HostNQN", HOST.encode())]
# What the drive has sent as log pages.
LOGS: list[bytes] = []


class Tls:
    """A connection by s_client, with the key for a subsystem."""

    keylog = "/dev/null"    # the file for the secrets of connections

    def __init__(self, subsystem: str, *options: str, key: bytes = KEY) -> None:
        identity = f"NVMe0R01 {HOST} {subsystem}"
        psk = expand(expand(key, b"HostNQN", HOST.encode()), b"nvme-tls-psk", identity.encode())
        self.start(psk, identity, options)

    def start(self, psk: bytes, identity: str, options: Sequence[str]) -> None:
        SECRETS.append(psk)
        self.process = subprocess.Popen(
            ["openssl", "s_client", "-connect", f"{DRIVE[0]}:{PORT}", "-tls1_3", "-psk", psk.hex(),
             "-psk_identity", identity, "-keylogfile", self.keylog, *(options or ("-quiet",))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.to, self.from_ = self.process.stdin, self.process.stdout

    def sendall(self, data: bytes) -> None:
        self.to.write(data)
        self.to.flush()

    def exactly(self, size: int) -> bytes:
        data = self.from_.read(size)
        assert len(data) == size, f"the stream ends after {len(data)} of {size} bytes"
        return data

    def close(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=LIMIT_S)


class Refused(Exception):
    """A command was not successful: SCT and SC."""


class Stream(Protocol):
    """A connection: what an NVMe queue needs of it."""

    def sendall(self, data: bytes, /) -> None: ...

    def exactly(self, size: int) -> bytes: ...

    def close(self) -> None: ...


class Queue:
    """An NVMe queue on such a connection."""

    def __init__(self, stream: Stream, subsystem: str, qid: int, cntlid: int = 0xffff,
                 host: str = HOST) -> None:
        self.stream = stream
        stream.sendall(ICREQ)
        assert stream.exactly(128)[:3] == b"\x01\0\x80"
        data = bytearray(1024)
        data[16:18] = struct.pack("<H", cntlid)
        data[256:256 + len(subsystem)] = subsystem.encode()
        data[512:512 + len(host)] = host.encode()
        answer, _ = self.command(0x7f, capsule=bytes(data), at_4=b"\x01",
                                 at_40=struct.pack("<HHHBxI", 0, qid, 31, 0, 0))
        self.dw0 = struct.unpack("<I", answer[:4])[0]
        self.cntlid = self.dw0 & 0xffff

    def command(self, opcode: int, capsule: bytes = b"", write: bytes = b"", length: int = 0,
                at_4: bytes = b"\0\0\0\0", at_40: bytes = b"") -> tuple[bytes, bytes]:
        """Execute a command.  @return the first 8 bytes of the completion, and data"""
        sqe = bytearray(64)
        sqe[0:4] = struct.pack("<BBH", opcode, 0x40, 7)
        sqe[4:4 + len(at_4)] = at_4
        size = len(capsule or write) or length
        in_capsule = bool(capsule)
        sqe[24:40] = struct.pack("<QI3xB", 0, size, 0x01 if in_capsule else 0x5a)
        sqe[40:40 + len(at_40)] = at_40
        head = struct.pack("<BBBBI", 4, 0, 72, 72 if in_capsule else 0, 72 + len(capsule))
        self.stream.sendall(head + sqe + capsule)
        return self.answer(write)

    def answer(self, write: bytes) -> tuple[bytes, bytes]:
        data = b""
        while True:
            kind, flags, _, offset, plen = struct.unpack("<BBBBI", self.stream.exactly(8))
            body = self.stream.exactly(plen - 8)
            if kind == 5:
                if body[14:16] != b"\0\0":
                    raise Refused(struct.unpack("<H", body[14:16])[0] >> 1)
                return body[:8], data
            if kind == 9:       # R2T
                cccid, ttag, at, size = struct.unpack("<HHII", body[:12])
                part = write[at:at + size]
                head = struct.pack("<BBBBIHHII4x", 6, 4, 24, 24, 24 + size, cccid, ttag, at, size)
                self.stream.sendall(head + part)
            else:
                assert kind == 7, kind
                data += body[offset - 8:]
                if flags & 8:       # SUCCESS
                    return bytes(8), data


def subsystem_of(queue: Queue) -> str:
    """From the discovery log; also what it says of TLS."""
    def log(size: int) -> bytes:
        return queue.command(2, length=size,
                             at_40=struct.pack("<BBH", 0x70, 0, size // 4 - 1))[1]

    enable(queue)
    count = struct.unpack("<Q", log(1024)[8:16])[0]
    entries = [log(1024 * (1 + count))[1024 * n:1024 * (n + 1)] for n in range(1, 1 + count)]
    tcp = [e for e in entries if e[0] == 3]
    assert tcp and all(e[768] == 2 and e[3] & 3 == 1 for e in tcp), "TLS 1.3, required"
    return tcp[0][256:512].rstrip(b"\0").decode()


def enable(queue: Queue) -> None:
    queue.command(0x7f, at_4=b"\0", at_40=struct.pack("<B3xIQ", 0, 0x14, 0x460001))


def telemetry(admin: Queue) -> bytes:
    """The host-initiated telemetry log, made now."""
    def blocks(first: int, count: int, create: int) -> bytes:
        size = count * BLOCK
        return admin.command(2, length=size, at_40=struct.pack(
            "<BBHHHQ", 7, create, size // 4 - 1 & 0xffff, size // 4 - 1 >> 16, 0,
            first * BLOCK))[1]

    head = blocks(0, 1, 1)
    last = struct.unpack("<H", head[12:14])[0]      # of the third data area
    return head + b"".join(blocks(n, 1, 0) for n in range(1, 1 + last))


def transfer() -> str:
    """Write and read 300 KiB through an I/O queue.  @return the subsystem's NQN"""
    stream = Tls(DISCOVERY)
    subsystem = subsystem_of(Queue(stream, DISCOVERY, 0))
    stream.close()
    admin_stream, io_stream = Tls(subsystem), Tls(subsystem)
    admin = Queue(admin_stream, subsystem, 0)
    enable(admin)
    LOGS.append(telemetry(admin))
    admin.command(9, at_40=struct.pack("<II", 7, 0))        # one I/O queue
    queue = Queue(io_stream, subsystem, 1, admin.cntlid)
    data = DATA
    for n in range(4):
        queue.command(1, write=data, at_4=struct.pack("<I", 1),
                      at_40=struct.pack("<QI", n * len(data) // BLOCK, len(data) // BLOCK - 1))
    for n in range(4):
        _, back = queue.command(2, length=len(data), at_4=struct.pack("<I", 1),
                                at_40=struct.pack("<QI", n * len(data) // BLOCK,
                                                  len(data) // BLOCK - 1))
        assert back == data, f"{len(back)} bytes"
    io_stream.close()
    admin_stream.close()
    return subsystem


def ends(stream: Tls) -> str:
    """What s_client says until the drive ends the connection."""
    stream.process.wait(timeout=LIMIT_S)    # before its input ends
    out, error = stream.process.communicate(timeout=LIMIT_S)
    return (out + error).decode(errors="replace")


def refusals(subsystem: str) -> None:
    with connect(DRIVE, PORT) as sock:      # plain
        sock.sendall(ICREQ)
        try:
            assert sock.recv(100) == b""
        except ConnectionResetError:
            pass
    said = ends(Tls(subsystem, "-brief", key=bytes(32)))
    assert "alert number 51" in said, said
    stream = Tls(subsystem)     # the host of the key says that it is another one
    try:
        Queue(stream, subsystem, 0, host=HOST + "0")
    except Refused as refused:
        assert refused.args[0] & 0x7ff == 0x184, refused
    else:
        raise AssertionError("another host may use the key")
    stream.close()


def crowd_address(number: int) -> str:
    return f"10.77.1.{1 + number}"


def never_finished(subsystem: str) -> None:
    """Many begin a handshake and do not go on, or do not close when they were refused; a host
    connects meanwhile."""
    hello = b"\x16\x03\x01\x02\0\x01"
    crowd = []
    for n in range(CROWD):
        sock = socket.socket()
        sock.bind((crowd_address(n), 0))
        sock.settimeout(LIMIT_S)
        sock.connect((DRIVE[0], PORT))
        sock.sendall((b"", hello, b"\x16\x03\x01\0\x04\2\0\0\0")[n % 3])
        crowd.append(sock)
    begin = time.monotonic()
    stream = Tls(subsystem)
    Queue(stream, subsystem, 0)
    assert time.monotonic() - begin < 3, "it waited for the others"
    stream.close()
    for sock in crowd:
        try:
            while sock.recv(100):       # an alert
                pass
        except ConnectionResetError:
            pass
        sock.close()


class Capture:
    """The frames of tap0, as a file in pcap's format."""

    def __init__(self) -> None:
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_FRAME))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self.sock.bind(("tap0", 0))
        self.sock.settimeout(0.1)
        self.data = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 1 << 18, 1)
        self.is_over = False
        self.thread = threading.Thread(target=self.take)
        self.thread.start()

    def take(self) -> None:
        number = 0
        while True:
            try:
                frame = self.sock.recv(1 << 18)
            except TimeoutError:
                if self.is_over:
                    return
                continue
            self.data += struct.pack("<IIII", number, 0, len(frame), len(frame)) + frame
            number += 1

    def stop(self) -> bytes:
        self.is_over = True
        self.thread.join()
        self.sock.close()
        return self.data


def decrypted(capture: str, *options: str) -> bytes:
    """What tshark finds in the records of transfer()'s connections, both directions mixed."""
    follow = [word for n in range(STREAMS) for word in ("-z", f"follow,tls,raw,{n}")]
    done = subprocess.run(
        ["tshark", "-r", capture, "-q", "-d", f"tcp.port=={PORT},tls", *follow, *options],
        capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    return b"".join(bytes.fromhex(line) for line in lines
                    if len(line) % 2 == 0 and re.fullmatch("[0-9a-f]+", line))


def parts(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at:at + size] for at in range(len(data) - size + 1))


def texts_of(secret: bytes) -> Iterator[bytes]:
    """The secret in base64 after 0, 1 and 2 other bytes: the characters that it alone decides."""
    for before in range(3):
        text = base64.b64encode(bytes(before) + secret)
        yield text[(8 * before + 5) // 6:8 * (before + len(secret)) // 6]


def shows_secret(data: bytes) -> bool:
    """Whether there are 8 bytes of a key or a secret, as they are, as digits or in base64."""
    plain = {part for secret in SECRETS for way in (1, -1) for part in parts(secret[::way], PIECE)}
    digits = {part for secret in SECRETS for part in parts(secret.hex().encode(), 2 * PIECE)}
    texts = {part for secret in SECRETS for text in texts_of(secret)
             for part in parts(text, IN_BASE64)}
    return not (plain.isdisjoint(parts(data, PIECE))
                and digits.isdisjoint(parts(data.lower(), 2 * PIECE))
                and texts.isdisjoint(parts(data, IN_BASE64)))


def secrets_in(file: str) -> list[list[str]]:
    """The lines of a key log: a label, a ClientHello's random, a secret."""
    with open(file, encoding="ascii") as lines:
        return [line.split() for line in lines if not line.startswith("#")]


def transfer_that_is_read(keys: str) -> str:
    """As transfer(); tshark reads it with the secrets that the drive writes, and not without."""
    with tempfile.TemporaryDirectory() as folder:
        Tls.keylog = f"{folder}/secrets"
        capture = Capture()
        try:
            subsystem = transfer()
        finally:
            data = capture.stop()
        words = secrets_in(Tls.keylog)
        Tls.keylog = "/dev/null"
        assert len(words) == 5 * STREAMS, words
        SECRETS.extend(bytes.fromhex(line[2]) for line in words)
        # Of the five kinds, the drive has all but EXPORTER_SECRET.
        assert sorted(secrets_in(keys)) == sorted(
            line for line in words if line[0] != "EXPORTER_SECRET")
        assert not shows_secret(data)
        assert ICREQ not in data and DATA[:BLOCK] not in data
        if shutil.which("tshark") is not None:
            with open(f"{folder}/pcap", "wb") as file:
                file.write(data)
            assert decrypted(f"{folder}/pcap") == b""
            found = decrypted(f"{folder}/pcap", "-o", f"tls.keylog_file:{keys}")
            assert ICREQ in found and found.count(DATA[:BLOCK]) >= 2, found[:300]
    return subsystem


def exercise(keys: str) -> None:
    for n in range(CROWD):
        run("ip", "addr", "add", f"{crowd_address(n)}/16", "dev", "tap0")
    subsystem = transfer_that_is_read(keys)
    refusals(subsystem)
    never_finished(subsystem)
    wait_closed()


def inside(tool: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        keys, said = f"{folder}/keys", f"{folder}/said"
        run_toe_tap(tool, lambda: exercise(keys),
                    ("connections", "half_open", "pages", "slots", "refused_commands"),
                    TOE_TAP_TLS="required", TOE_TAP_HOST=HOST, TOE_TAP_KEY=key_text(),
                    TOE_TAP_KEYS=keys, TOE_TAP_SAID=said)
        with open(said, "rb") as file:
            outputs = [file.read(), *LOGS]
    print("searched for keys:", *(f"{len(output)} bytes" for output in outputs))
    # Trace records (one has the name of a host that was refused), the console, answers.
    for part in (b"-5555555555550\0", b"nvme-tcp: listening", b"it has a key of TLS",
                 b'"tls-identities"', b'"nvme-tls"', b'"crashes"'):
        assert part in outputs[0], part
    assert len(outputs[0]) > 40000 and all(len(log) > BLOCK for log in LOGS)
    for output in outputs:
        assert not shows_secret(output)
    for secret in SECRETS:      # It would have been found.
        piece = secret[3:11]
        for planted in (piece, piece[::-1], piece.hex().encode(), piece.hex().upper().encode(),
                        *(base64.b64encode(b"xyz"[:n] + piece) for n in range(3))):
            assert shows_secret(b"line 7 " + planted), planted


if __name__ == "__main__":
    if shutil.which("openssl") is None:
        print("tls_peer: skipped: there is no openssl")
        sys.exit(SKIPPED)
    sys.exit(main(__file__, inside))
