# SPDX-License-Identifier: BSD-2-Clause
"""Who may connect to a drive: its list of hosts, as text, as JSON and from YAML.

Secrets go to the drive only.  They come from files or standard input, not from the
command line, where other users of the machine could read them.
"""

import base64
import secrets
import sys
import zlib
from pathlib import Path
from typing import Any

import yaml

from ..base import yaml_mistakes
from ..base.errors import EssdError
from ..instance.instance import Instance
from . import mgmt

# The arguments of the request "host-set", by their keys in a YAML file.
KEYS = ("nqn", "secret", "drive-secret", "tls-key", "least-hash", "least-group")

# The length of a key of TLS, by the hash function with which it is derived for a host: none,
# SHA-256, SHA-384.
TLS_KEY_BYTES = {0: 32, 1: 32, 2: 48}


def read(instance: Instance) -> dict[str, Any]:
    """Return `exclusive` and all `hosts`."""
    hosts: list[dict[str, Any]] = []
    reply = mgmt.ask(instance, "hosts")
    hosts += reply["hosts"]
    start = 0
    while reply.get("next", 0) > start:
        start = reply["next"]
        reply = mgmt.ask(instance, "hosts", **{"from": start})
        hosts += reply["hosts"]
    return {"exclusive": reply["exclusive"], "hosts": hosts}


def secret_of(file: str) -> str | None:
    """Return the secret in a file ("-": standard input); None if no file is named."""
    if not file:
        return None
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EssdError(f"the secret cannot be read: {error}") from None
    words = text.split()
    if len(words) != 1:
        raise EssdError(f"{file}: a secret is one word, as nvme gen-dhchap-key prints it")
    return words[0]


def tls_key_of(file: str) -> str | None:
    """As secret_of(); the word "none" removes a key."""
    key = secret_of(file)
    return "" if key == "none" else key


def new_tls_key(digest: int) -> str:
    """Return a random key as `nvme gen-tls-key --hmac=DIGEST` prints one."""
    if digest not in TLS_KEY_BYTES:
        raise EssdError(f"--hash has to be one of {', '.join(map(str, TLS_KEY_BYTES))}")
    key = secrets.token_bytes(TLS_KEY_BYTES[digest])
    text = base64.b64encode(key + zlib.crc32(key).to_bytes(4, "little")).decode()
    return f"NVMeTLSkey-1:{digest:02}:{text}:"


def change(instance: Instance, host: dict[str, Any]) -> None:
    """Add a host, or change what `host` names."""
    mgmt.ask(instance, "host-set", **host)


def load_file(path: Path) -> dict[str, Any]:
    """Read a YAML file with `exclusive` and `hosts`; EssdError if it makes no sense."""
    text = yaml_mistakes.read_file(path)
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        # The parser's own text may quote a secret.
        raise EssdError(f"{path}: line {mark.line + 1} is not YAML" if mark else
                        f"{path}: the file is not YAML") from None
    if not isinstance(found, dict) or set(found) - {"exclusive", "hosts"}:
        raise EssdError(f"{path}: the keys of the file are exclusive and hosts")
    if not isinstance(found.get("exclusive", False), bool):
        raise EssdError(f"{path}: exclusive has to be true or false")
    hosts = found.get("hosts") or []
    if not isinstance(hosts, list):
        raise EssdError(f"{path}: hosts has to be a list")
    for number, host in enumerate(hosts, 1):
        if not isinstance(host, dict) or "nqn" not in host or set(host) - set(KEYS) \
                or not all(isinstance(value, str) for value in host.values()):
            raise EssdError(f"{path}: host {number} has to have nqn, and may have "
                            f"{', '.join(KEYS[1:])}, all of them texts")
    return found


def apply_file(instance: Instance, path: Path) -> int:
    """Make the drive's list that of the file.  Return the number of hosts."""
    wanted = load_file(path)
    hosts = wanted.get("hosts") or []
    names = {host["nqn"] for host in hosts}
    exclusive = wanted.get("exclusive", False)
    kept = {old["nqn"] for old in read(instance)["hosts"]}
    if exclusive:   # before a host without its entry could connect without its secret
        mgmt.ask(instance, "hosts-exclusive", on=True)
    for nqn in sorted(kept - names):    # before new ones, for which there may be no room
        mgmt.ask(instance, "host-remove", nqn=nqn)
    for host in hosts:
        change(instance, {"secret": "", "drive-secret": "", "tls-key": "", "least-hash": "sha256",
                          "least-group": "null"} | host)
    if not exclusive:
        mgmt.ask(instance, "hosts-exclusive", on=False)
    return len(hosts)
