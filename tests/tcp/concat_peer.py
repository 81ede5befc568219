#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Keys of TLS that a host generates with the drive, and the TLS of OpenSSL.

Runs toe_tap as tls_peer.py does.  DH-HMAC-CHAP and the derivation of keys are written by hand here,
by NVM Express Base 2.1 section 8.3.4 and NVMe TCP 1.1 section 3.6.1: nothing is shared with the
drive but these texts.  A host authenticates without TLS, connects again with the key that it has
generated, writes and reads; then it replaces the key.  No key is in what the drive says.
"""
import base64
import hmac
import os
import shutil
import struct
import sys
import tempfile
import zlib
from fractions import Fraction
from hashlib import sha256

import tls_peer
from kernel_peer import SKIPPED, connect, main, run_toe_tap, wait_closed
from tls_peer import DISCOVERY, DRIVE, HOST, PORT, Queue, Refused, Tls, enable, ends

SECRET = bytes(range(7, 39))
DATA = tls_peer.DATA
SHA256 = 1      # s_client has external keys for this hash only
NEW, REPLACE = 2, 3
ATR = 0x20000
T_ID = 0x1234
MESSAGE = 4096
FFDHE2048 = 1
DH_BYTES = 256


def prime() -> int:
    """That of ffdhe2048, by RFC 7919 appendix A.1."""
    e, term, n = Fraction(0), Fraction(1), 1
    while term > Fraction(1, 2 ** 2000):
        e, term, n = e + term, term / n, n + 1
    return 2 ** 2048 - 2 ** 1984 + (int(2 ** 1918 * e) + 560316) * 2 ** 64 - 1


def secret_text() -> str:
    crc = zlib.crc32(SECRET).to_bytes(4, "little")
    return f"DHHC-1:00:{base64.b64encode(SECRET + crc).decode()}:"


def mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.new(key, b"".join(parts), "sha256").digest()


class Plain:
    """A connection without TLS."""

    def __init__(self) -> None:
        self.sock = connect(DRIVE, PORT)

    def sendall(self, data: bytes) -> None:
        self.sock.sendall(data)

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            assert part, f"the stream ends after {len(data)} of {size} bytes"
            data += part
        return data

    def close(self) -> None:
        self.sock.close()


def tls_key(subsystem: str, psk: bytes) -> tuple[str, bytes]:
    """The identity and the key of TLS from a generated key."""
    digest = base64.b64encode(
        mac(psk, f"{HOST} {subsystem} NVMe-over-Fabrics".encode())).decode()
    return (f"NVMe1G01 {HOST} {subsystem} {digest}",
            tls_peer.expand(psk, b"nvme-tls-psk", f"01 {digest}".encode()))


class Generated(Tls):
    """A connection by s_client, with a generated key."""

    def __init__(self, subsystem: str, key: bytes, *options: str) -> None:
        identity, psk = tls_key(subsystem, key)
        self.start(psk, identity, options)


def send(queue: Queue, message: bytes) -> None:
    queue.command(0x7f, capsule=message, at_4=b"\x05",
                  at_40=struct.pack("<II", 0xe9010100, len(message)))


def receive(queue: Queue) -> bytes:
    return queue.command(0x7f, length=MESSAGE, at_4=b"\x06",
                         at_40=struct.pack("<II", 0xe9010100, MESSAGE))[1]


def generate(queue: Queue, subsystem: str, concat: int) -> bytes:
    """Authenticate on an admin queue.  @return the key"""
    protocol = bytearray(64)
    protocol[0], protocol[2], protocol[3] = 1, 1, 1
    protocol[4], protocol[34] = SHA256, FFDHE2048
    send(queue, struct.pack("<BBHHBB", 0, 0, 0, T_ID, concat, 1) + protocol)
    challenge = receive(queue)
    assert challenge[:2] == b"\x01\x01", challenge[:16]
    size, got_hash, group, dh_size = struct.unpack("<BxBBH", challenge[6:12])
    assert (got_hash, group, dh_size) == (SHA256, FFDHE2048, DH_BYTES)
    seqnum = challenge[12:16]
    c1, value = challenge[16:16 + size], challenge[16 + size:16 + size + dh_size]

    p = prime()
    exponent = int.from_bytes(os.urandom(32), "big")
    session = sha256(pow(int.from_bytes(value, "big"), exponent, p).to_bytes(
        DH_BYTES, "big")).digest()
    c2 = os.urandom(size)
    r1 = mac(SECRET, mac(session, c1), seqnum, struct.pack("<HB", T_ID, concat),
             b"HostHost", HOST.encode(), b"\0", subsystem.encode())
    # A sequence number of 0: C2 is for the key only.
    send(queue, struct.pack("<BBHHBxBxHI", 1, 2, 0, T_ID, size, 1, DH_BYTES, 0) + r1 + c2
         + pow(2, exponent, p).to_bytes(DH_BYTES, "big"))
    success = receive(queue)
    assert success[:2] == b"\x01\x03" and success[8] == 0, success[:16]
    psk = mac(session, c1, c2)
    tls_peer.SECRETS.append(psk)
    return psk


def subsystem_name() -> str:
    """From the discovery log, which a host may read without TLS."""
    queue = Queue(Plain(), DISCOVERY, 0)
    enable(queue)
    page = queue.command(2, length=2048, at_40=struct.pack("<BBH", 0x70, 0, 511))[1]
    queue.stream.close()
    return page[1024 + 256:1024 + 512].rstrip(b"\0").decode()


def plain_key(subsystem: str) -> bytes:
    """A host that authenticates without TLS, and leaves."""
    queue = Queue(Plain(), subsystem, 0)
    assert queue.dw0 & ~0xffff == ATR, hex(queue.dw0)
    key = generate(queue, subsystem, NEW)
    enable(queue)       # the queue goes on
    queue.stream.close()
    return key


def transfer(subsystem: str, key: bytes, admin: Queue) -> None:
    """Write and read through an I/O queue of this association."""
    io = Queue(Generated(subsystem, key), subsystem, 1, admin.cntlid)
    assert io.dw0 & ~0xffff == 0, "the key has proven who it is"
    at_40 = struct.pack("<QI", 0, len(DATA) // tls_peer.BLOCK - 1)
    io.command(1, write=DATA, at_4=struct.pack("<I", 1), at_40=at_40)
    _, back = io.command(2, length=len(DATA), at_4=struct.pack("<I", 1), at_40=at_40)
    assert back == DATA, f"{len(back)} bytes"
    io.stream.close()


def is_refused(subsystem: str, key: bytes) -> bool:
    return "alert number 51" in ends(Generated(subsystem, key, "-brief"))


def exercise() -> None:
    subsystem = subsystem_name()
    for _ in range(2):
        key = plain_key(subsystem)
        assert is_refused(subsystem, bytes(len(key)))
        admin = Queue(Generated(subsystem, key), subsystem, 0)
        assert admin.dw0 & ~0xffff == 0
        enable(admin)
        transfer(subsystem, key, admin)
        second = Generated(subsystem, key)
        try:
            Queue(second, subsystem, 0)
        except Refused as refused:
            assert refused.args[0] & 0x7ff == 0x184, refused
        else:
            raise AssertionError("a second association has the same key")
        second.close()
        other = generate(admin, subsystem, REPLACE)
        assert is_refused(subsystem, key)
        transfer(subsystem, other, admin)
        admin.stream.close()
    wait_closed()


def inside(tool: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        said = f"{folder}/said"
        run_toe_tap(tool, exercise, ("connections", "half_open", "pages"), TOE_TAP_TLS="allowed",
                    TOE_TAP_HOST=HOST, TOE_TAP_SECRET=secret_text(), TOE_TAP_SAID=said)
        with open(said, "rb") as file:
            output = file.read()
    assert b"and generated a key of TLS" in output
    tls_peer.SECRETS.append(SECRET)
    assert not tls_peer.shows_secret(output)


if __name__ == "__main__":
    if shutil.which("openssl") is None:
        print("concat_peer: skipped: there is no openssl")
        sys.exit(SKIPPED)
    sys.exit(main(__file__, inside))
