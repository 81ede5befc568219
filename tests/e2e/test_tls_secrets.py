# SPDX-License-Identifier: BSD-2-Clause
"""No output of a drive has a key or a secret of TLS, except the file of `--capture-keys`."""

import base64
import hashlib
import hmac
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cockpit_site import cockpit
from tls_host import (connect, decrypted, host_nqn, insert_key, new_key, running,
                      secrets_of_host, skip_without_guest)

import essd
from essd.base import paths
from essd.debug import crash

pytestmark = [pytest.mark.drive, pytest.mark.uml]

# What `essd` prints about a drive.
COMMANDS = (("access",), ("access", "--json"), ("config",), ("status", "--json"),
            ("tcp", "--json"), ("metrics",), ("dump",))
FAILS = {"status", "dump"}      # after a crash, and without one
# Requests that change nothing and have no arguments.
REQUESTS = ("status", "config", "hosts", "authentication", "counters", "pools", "controllers",
            "queue-pairs", "requests", "tcp-connections", "namespaces", "addresses", "crashes",
            "hardware-errors", "faults")
# Logs of the drive, as nvme-cli gets them.
LOGS = {"telemetry": "nvme telemetry-log {} --output-file={} > /dev/null",
        "persistent events":
            "nvme get-log {} --log-id=0xd --lsp=1 --log-len=4096 --raw-binary > {}",
        "errors": "nvme get-log {} --log-id=1 --log-len=4096 --raw-binary > {}"}
PIECE = 8       # bytes of a secret that are enough to find it
IN_BASE64 = 10  # characters that hold nothing but these bytes, wherever the text begins
TRAFFIC = {"CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET",
           "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"}


def expand_label(secret: bytes, label: bytes, context: bytes, length: int) -> bytes:
    """HKDF-Expand-Label with SHA-256 up to 32 bytes, by RFC 5869 and RFC 8446."""
    label = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes([len(label)]) + label
    info += bytes([len(context)]) + context
    return hmac.new(secret, info + b"\1", hashlib.sha256).digest()[:length]


def derive(secret: bytes, label: bytes, context: str) -> bytes:
    """Extract, and expand: how NVMe's keys are derived."""
    key = hmac.new(bytes(32), secret, "sha256").digest()
    return expand_label(key, label, context.encode(), 32)


def secrets_of(system: essd.System, key: str) -> list[bytes]:
    """The key of the host, what is derived of it, and secrets, keys and IVs of connections."""
    raw = base64.b64decode(key.split(":")[2])[:-4]
    retained = derive(raw, b"HostNQN", host_nqn(system))
    found = [raw, retained]
    identity = f"NVMe0R01 {host_nqn(system)} {system.drives[0].nqn}"
    found.append(derive(retained, b"nvme-tls-psk", identity))
    lines = secrets_of_host(system)
    assert TRAFFIC <= {label for label, _, _ in lines}, lines
    for label, _, digits in lines:
        secret = bytes.fromhex(digits)
        found.append(secret)
        if label in TRAFFIC:
            found += [expand_label(secret, b"key", b"", 16), expand_label(secret, b"iv", b"", 12)]
    return found


def parts(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at:at + size] for at in range(len(data) - size + 1))


def pieces_of(secrets: list[bytes]) -> dict[int, set[bytes]]:
    """Parts of secrets, as bytes, as digits and in base64, by their length."""
    found: dict[int, set[bytes]] = {PIECE: set(), 2 * PIECE: set(), IN_BASE64: set()}
    for secret in secrets:
        for way in (secret, secret[::-1]):
            found[PIECE].update(parts(way, PIECE))
        for digits in (secret.hex(), secret.hex().upper()):
            found[2 * PIECE].update(parts(digits.encode(), 2 * PIECE))
        for before in range(3):     # other bytes in front of it
            text = base64.b64encode(bytes(before) + secret)
            alone = text[(8 * before + 5) // 6:8 * (before + len(secret)) // 6]
            found[IN_BASE64].update(parts(alone, IN_BASE64))
    return found


def found_in(pieces: dict[int, set[bytes]], outputs: dict[str, bytes]) -> set[str]:
    return {name for name, data in outputs.items()
            if any(not some.isdisjoint(parts(data, size)) for size, some in pieces.items())}


def files_of(system: essd.System) -> dict[str, bytes]:
    """Consoles, logs, captures and the configuration of the system."""
    return {str(path): path.read_bytes() for path in system.folder.rglob("*")
            if path.is_file() and not path.is_symlink() and path.name != "initrd"}


def said_by(system: essd.System) -> dict[str, bytes]:
    """What the drive and the tools say about it."""
    drive = system.drives[0]
    said = {name: json.dumps(drive.ask(name)).encode() for name in REQUESTS}
    for words in COMMANDS:
        done = subprocess.run([sys.executable, "-m", "essd", *words, "--name", system.name],
                              cwd=paths.TOP, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0 or words[0] in FAILS, (words, done.stderr)
        said[" ".join(words)] = done.stdout + done.stderr
    with cockpit(system.name) as site:
        site.log_in()
        said["cockpit"] = json.dumps(site.event()).encode()
        said["cockpit's metrics"] = site.ask("GET", "/metrics").read()
    for one in crash.in_drive(system.instance):
        said[f"crash {one.number}"] = crash.read(system.instance, one.number)
    return said


def logs_of(host: essd.Host, controller: str) -> dict[str, bytes]:
    return {name: bytes.fromhex(host.read(
        f"{words.format(controller, '/tmp/log')} && "
        "od -An -v -tx1 /tmp/log | tr -d ' \\n'")) for name, words in LOGS.items()}


@pytest.fixture(scope="module")
def system(request: pytest.FixtureRequest, host_kind: str,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[essd.System]:
    skip_without_guest(request, host_kind)
    with running(tmp_path_factory.mktemp("tls")) as system:
        yield system


def test_no_output_has_a_key(system: essd.System) -> None:
    host, drive = system.hosts[0], system.drives[0]
    key = new_key(system)
    options = insert_key(system, key, 0)
    with drive.trace() as trace:
        connect(system, options)
        host.run(f"dd if={host.device(drive)} of=/dev/null bs=64k count=8 status=none")
        outputs = logs_of(host, host.device(drive).removesuffix("n1")) | said_by(system)
        host.disconnect(drive)
    events = trace.events
    args = b"".join((value % (1 << 64)).to_bytes(8, "little") for event in events
                    for value in event.args.values() if isinstance(value, int))
    texts = "".join(event.text for event in events).encode()
    crash.provoke(system.instance, "assertion")
    outputs |= {f"{name}, after a crash": data for name, data in said_by(system).items()}
    outputs |= {"events": args + texts} | files_of(system)
    assert len(args) > 1000 and all(len(outputs[name]) > 500 for name in LOGS)
    assert any(name.startswith("crash 1") for name in outputs)
    secrets = secrets_of(system, key)
    pieces = pieces_of(secrets)
    assert found_in(pieces, outputs) == set()
    # Each of the secrets would have been found.
    for secret in secrets:
        piece = secret[3:11]
        for planted in (piece, piece[::-1], piece.hex().encode(), piece.hex().upper().encode(),
                        *(base64.b64encode(b"xyz"[:n] + piece) for n in range(3))):
            assert found_in(pieces, {"planted": b"line 7 " + planted + b"\n"}) == {"planted"}


def test_capture_keys_has_the_secrets_with_which_tshark_reads_the_capture(
        request: pytest.FixtureRequest, host_kind: str, tmp_path: Path) -> None:
    skip_without_guest(request, host_kind)
    keys = tmp_path / "keys"
    with running(tmp_path, capture_keys=keys) as system:
        host, drive = system.hosts[0], system.drives[0]
        connect(system, insert_key(system, new_key(system), 1))
        host.run("yes essd-readable | head -c 65536 > /tmp/data && "
                 f"dd if=/tmp/data of={host.device(drive)} bs=64k oflag=direct status=none")
        host.disconnect(drive)
        assert keys.stat().st_mode & 0o777 == 0o600
        lines = keys.read_text().splitlines()
        assert sorted(lines) == sorted(" ".join(words) for words in secrets_of_host(system)
                                       if words[0] in TRAFFIC)
        assert len(lines) >= 8      # Four of each connection: an admin and an I/O queue.
        (capture,) = system.captures
        assert decrypted(capture) == b""
        assert b"essd-readable\n" in decrypted(capture, "-o", f"tls.keylog_file:{keys}")
        # Nothing else of the system has them.
        pieces = pieces_of([bytes.fromhex(line.split()[2]) for line in lines])
        assert found_in(pieces, files_of(system) | said_by(system)) == set()
