# SPDX-License-Identifier: BSD-2-Clause
"""The kernel of this computer as a TCP peer: what linux_peer.py and toe_peer.py share.

Each of them runs itself again in a network namespace of its own, where its program has TAP
devices, and talks to the program with ordinary sockets.
"""
import hashlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

SKIPPED = 77
LIMIT_S = 40.0
ECHO, DISCARD = 7, 9
Host = tuple[str, socket.AddressFamily]


def run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=10)


def connect(host: Host, port: int) -> socket.socket:
    sock = socket.socket(host[1], socket.SOCK_STREAM)
    sock.settimeout(LIMIT_S)
    sock.connect((host[0], port))
    return sock


def read_all(sock: socket.socket) -> bytes:
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def echo(host: Host, size: int) -> None:
    """Everything comes back, and the end of the stream, too."""
    data = random.Random(size).randbytes(size)
    with connect(host, ECHO) as sock:
        def send() -> None:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=send)
        thread.start()
        back = read_all(sock)
        thread.join()
    assert hashlib.sha256(back).digest() == hashlib.sha256(data).digest(), \
        f"{host[0]}: echo of {size} bytes returned {len(back)}, or other ones"


def wait_closed() -> None:
    """Until the last FIN has been acknowledged; the kernel's orphans are not seen here."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        with open("/proc/net/tcp", encoding="ascii") as table4, \
                open("/proc/net/tcp6", encoding="ascii") as table6:
            states = {line.split()[3] for table in (table4, table6)
                      for line in table.readlines()[1:]}
        if states <= {"06", "0A"}:  # TIME-WAIT, LISTEN
            return
        time.sleep(0.05)
    raise AssertionError(f"connections stay in the states {states}")


def set_up(port: int) -> None:
    """Give a TAP device of toe_tap its addresses."""
    run("ip", "link", "set", f"tap{port}", "address", f"02:77:00:00:00:1{port}", "up")
    run("ip", "addr", "add", f"10.{77 + port}.0.1/24", "dev", f"tap{port}")
    run("ip", "addr", "add", f"fd00:0:0:{1 + port}::ff/64", "dev", f"tap{port}", "nodad")


def run_toe_tap(tool: str, exercise: Callable[[], None], zero: Sequence[str],
                **settings: str) -> dict[str, int]:
    """Run toe_tap while `exercise` talks to it, with these variables in its environment.

    Returns the counters that it prints at its end; those in `zero` have to be 0.
    """
    run("ip", "link", "set", "lo", "up")
    with subprocess.Popen([tool, "tap0", "tap1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, env=os.environ | settings) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "ready\n":
                raise SystemExit("toe_tap did not start")
            set_up(0)
            set_up(1)
            exercise()
            out, _ = process.communicate(timeout=LIMIT_S)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise SystemExit(f"toe_tap failed with {process.returncode}")
    counters: dict[str, int] = json.loads(out)
    print({name: value for name, value in counters.items() if value})
    for kind in zero:
        assert counters[kind] == 0, f"{kind}: {counters[kind]}"
    return counters


def main(script: str, inside: Callable[[str], None]) -> int:
    """Run `inside` with the program's path in a namespace; 77: none, or no TAP can be made."""
    name = os.path.basename(script).removesuffix(".py")
    arguments = sys.argv[1:]
    if "--inside" in arguments:
        inside(arguments[0])
        print(f"{name}: ok")
        return 0
    probe = subprocess.run(["unshare", "-rn", "ip", "tuntap", "add", "tap0", "mode", "tap"],
                           capture_output=True, text=True, timeout=20, check=False) \
        if os.path.exists("/dev/net/tun") else None
    if probe is None or probe.returncode != 0:
        print(f"{name}: skipped: no TAP device can be made here:",
              probe.stderr.strip() if probe else "no /dev/net/tun")
        return SKIPPED
    return subprocess.run(["unshare", "-rn", sys.executable, script, *arguments, "--inside"],
                          timeout=110, check=False).returncode
