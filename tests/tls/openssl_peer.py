# SPDX-License-Identifier: BSD-2-Clause
"""The TLS server of the drive (tls_echo) against `openssl s_client`."""
from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import sys
import zlib

TIME_LIMIT_S = 30
SKIPPED = 77
HOST = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
SUBSYSTEM = "nqn.2024-01.test:essd:1"
IDENTITY = f"NVMe0R01 {HOST} {SUBSYSTEM}"
KEY = bytes(range(1, 33))
HELLO = "hello\n"


def expand(secret: bytes, label: bytes, context: bytes) -> bytes:
    """HKDF-Extract and HKDF-Expand-Label with SHA-256, by RFC 5869 and RFC 8446."""
    key = hmac.new(bytes(32), secret, "sha256").digest()
    label = b"tls13 " + label
    info = b"\0\x20" + bytes([len(label)]) + label + bytes([len(context)]) + context
    return hmac.new(key, info + b"\1", hashlib.sha256).digest()


def tls_key() -> bytes:
    return expand(expand(KEY, b"HostNQN", HOST.encode()), b"nvme-tls-psk", IDENTITY.encode())


def key_text() -> str:
    crc = zlib.crc32(KEY).to_bytes(4, "little")
    return f"NVMeTLSkey-1:01:{base64.b64encode(KEY + crc).decode()}:"


def talk(program: str, *options: str, key: bytes | None = None, identity: str = IDENTITY,
         text: str = HELLO) -> tuple[str, str]:
    """What s_client prints, and the last line of the server."""
    server = subprocess.Popen([program, key_text()], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    client = subprocess.Popen(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-psk", (key or tls_key()).hex(),
         "-psk_identity", identity, *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert client.stdin is not None and client.stdout is not None
    try:
        client.stdin.write(text)
        client.stdin.flush()
        said = ""
        while text not in said and (line := client.stdout.readline()):
            said += line
        client.stdin.close()
        said += client.stdout.read()
        client.wait(TIME_LIMIT_S)
        return said, server.communicate(timeout=TIME_LIMIT_S)[0].strip()
    finally:
        client.kill()
        server.kill()


def expect_echo(program: str, *options: str, text: str = HELLO) -> None:
    said, last = talk(program, "-tls1_3", *options, text=text)
    assert text in said and last == "closed", (said, last)


def expect_failure(program: str, alert: int, *options: str, key: bytes | None = None,
                   identity: str = IDENTITY) -> None:
    said, last = talk(program, *options, key=key, identity=identity)
    assert last == f"failed {alert}", (said, last)
    assert f"SSL alert number {alert}" in said, said


def main(program: str) -> int:
    if shutil.which("openssl") is None:
        print("skipped: there is no openssl")
        return SKIPPED
    expect_echo(program)
    expect_echo(program, "-groups", "X25519")
    # Its first group has the only key share: HelloRetryRequest.
    expect_echo(program, "-groups", "P-256:X25519")
    expect_echo(program, text="0123456789abcdef" * 2000 + "\n")
    expect_failure(program, 51, "-tls1_3", key=bytes(32))
    expect_failure(program, 51, "-tls1_3", identity=IDENTITY + "0")
    expect_failure(program, 51, "-tls1_3", identity="somebody")
    expect_failure(program, 40, "-tls1_3", "-groups", "P-256")
    expect_failure(program, 40, "-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")
    expect_failure(program, 70, "-tls1_2")
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
