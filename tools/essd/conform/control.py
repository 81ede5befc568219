# SPDX-License-Identifier: BSD-2-Clause
"""Serve the requests that the conformance program makes while it runs.

The program sends one request per line on a UNIX stream socket and gets one line
in reply: `ok`, `ok JSON` or `error TEXT`.  docs/conformance.md lists the
requests.  `EmulatedDrive` carries them out on a drive in QEMU.
"""

import contextlib
import re
import ipaddress
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from ..base.errors import EssdError
from ..drive import mgmt
from ..drive.console import FORGET, PROMPT, find_answer
from ..instance.config import Config, console_log, part_file, process_log
from ..instance.instance import Instance
from ..machine import drive as drive_module
from ..storage.flash import FlashImage

CONSOLE_S = 10.0
BOOT_S = 20.0
TURN_S = 10.0       # the machine may stand still meanwhile
NUDGE_S = 0.25      # interval of Ctrl-C until the console shows its prompt
NSID = 1            # namespace ID of a new drive
# Counters of the RNIC that tests/e2e/transport.py prints, too.
TRANSPORT = ("bad-icrc", "malformed", "out-of-order", "dropped", "sequence-naks-out",
             "other-naks-out", "rnr-naks-out", "naks-in", "rnr-naks-in", "timeouts",
             "retransmitted", "cq-overflows", "parity-errors")
ACCEPTS = 0x10000   # flag of a listening socket in /proc/net/unix

# By the request's word: (name of the port's property, function to parse a value)
WORDS = {"1": True, "true": True, "on": True, "yes": True,
         "0": False, "false": False, "off": False, "no": False}
PARTNER: dict[str, tuple[str, Any]] = {
    "speed": ("partner-speed", int), "fec": ("partner-fec", str),
    "ber": ("ber", float), "seed": ("seed", int),
    "present": ("present", lambda text: WORDS[text]),
    "fault": ("partner-fault", lambda text: WORDS[text]),
}


def echo_of(line: str) -> str:
    """Return what the console shows of a line: a secret appears as asterisks."""
    match = re.match(r"(host (?:drive-)?secret \S+ +)(.*)", line)
    return match[1] + re.sub(r"\S", "*", match[2]) if match else line


class ControlError(EssdError):
    """A request cannot be carried out; the program receives the text."""


class Controlled(Protocol):
    """The operations on a drive that the requests need."""

    def info(self) -> dict[str, Any]: ...

    def partner(self, port: int, name: str, value: object) -> None: ...

    def power_cut(self) -> None: ...

    def reset(self) -> None: ...

    def console(self, text: str) -> str: ...

    def log(self) -> str: ...

    def turn(self) -> None: ...


# Requests

def answer(drive: Controlled, line: str) -> str:
    """The reply to one request."""
    word, _, rest = line.strip().partition(" ")
    try:
        data = perform(drive, word, rest.strip())
    except (ControlError, EssdError, OSError) as error:
        return "error " + " ".join(str(error).split())
    return "ok" if data is None else "ok " + json.dumps(data)


def perform(drive: Controlled, word: str, rest: str) -> object:
    if word == "partner":
        drive.partner(*parse_partner(rest))
        return None
    if word == "console":
        return drive.console(rest)
    if rest:
        raise ControlError(f"{word} takes no argument")
    simple = {"info": drive.info, "power-cut": drive.power_cut,
              "reset": drive.reset, "log": drive.log, "turn": drive.turn}
    if word not in simple:
        raise ControlError(f"unknown request {word!r}; the requests are partner, console, "
                           + ", ".join(simple))
    return simple[word]()


def parse_partner(rest: str) -> tuple[int, str, object]:
    words = rest.split()
    if len(words) != 3:
        raise ControlError("the request must be: partner PORT KEY VALUE")
    if words[0] not in ("0", "1"):
        raise ControlError(f"there is no port {words[0]}; the ports are 0 and 1")
    if words[1] not in PARTNER:
        raise ControlError(f"there is no key {words[1]!r}; the keys are "
                           f"{', '.join(PARTNER)}")
    name, kind = PARTNER[words[1]]
    try:
        return int(words[0]), name, kind(words[2])
    except (ValueError, KeyError):
        raise ControlError(f"{words[1]} cannot be {words[2]!r}") from None


class Control:
    """A context manager that serves the socket in a thread of its own."""

    def __init__(self, path: Path, drive: Controlled) -> None:
        self.path = path
        self.drive = drive
        self.listener = socket.socket(socket.AF_UNIX)
        self.peers: list[socket.socket] = []
        self.is_over = False
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self) -> "Control":
        self.path.unlink(missing_ok=True)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.thread.start()
        return self

    def __exit__(self, *_details: object) -> None:
        self.is_over = True     # Set first, for a peer that connects now.
        for end in (self.listener, *self.peers):
            # Only shutdown() wakes a thread that waits in accept() or recv().
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self.listener.close()
        self.path.unlink(missing_ok=True)

    def serve(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.peers.append(peer)
            if self.is_over:
                peer.close()
                return
            with peer, peer.makefile("rw", encoding="utf-8", newline="\n") as lines, \
                    contextlib.suppress(OSError):
                for line in lines:
                    lines.write(answer(self.drive, line) + "\n")
                    lines.flush()
            self.peers.remove(peer)


# A drive in QEMU

def listens(path: Path) -> bool:
    """Whether a process listens on a UNIX socket, found out without connecting to it.

    QEMU creates a cable's socket first and listens a little later, in a thread of
    its own; a connection in between is refused.
    """
    for line in Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()[1:]:
        fields = line.split(None, 7)
        if fields[7:] == [str(path)] and int(fields[3], 16) & ACCEPTS:
            return True
    return False


def wait_listening(instance: Instance, paths: list[Path], timeout_s: float = 30) -> None:
    """Wait until the drive's QEMU listens on the sockets of its cables."""
    deadline = time.monotonic() + timeout_s
    while not all(map(listens, paths)):
        instance.check()
        if time.monotonic() > deadline:
            raise EssdError(f"the drive's QEMU did not start within {timeout_s:.0f} s; see "
                            f"{process_log(instance.folder, 'drive')}")
        time.sleep(0.02)


def used(prefix: str, members: dict[str, Any]) -> Iterator[str]:
    """`name value` of each counter and pool that is not 0."""
    for name, value in members.items():
        if isinstance(value, dict) and "used" in value:
            if value["used"]:
                yield f"{name} {value['used']} of {value['all']}"
        elif isinstance(value, dict):
            yield from used(f"{name} ", value)
        elif value:
            yield f"{prefix}{name} {value}"


class EmulatedDrive:
    """The drive of an instance.  A power cut recreates the sockets of its cables."""

    def __init__(self, instance: Instance, config: Config) -> None:
        assert config.drive is not None
        self.instance = instance
        self.config = config
        self.flash = Path(config.drive.flash)
        self.console_log = console_log(instance.folder, "drive")
        self.reported = 0       # bytes of the log that log() has returned before

    @property
    def image(self) -> FlashImage:
        return FlashImage.load(self.flash)

    def info(self) -> dict[str, Any]:
        identity = self.image.identity
        if identity is None:
            raise ControlError("the drive's flash has no valid identity block")
        macs = [mac.hex(":") for mac in identity.macs]
        ports = []
        for number, mac in enumerate(macs[:2]):
            port = {"mac": mac, "ipv4": "", "ipv6": ""}
            for text in self.config.link(number).targets:
                address = ipaddress.ip_interface(text).ip
                port[f"ipv{address.version}"] = str(address)
            ports.append(port)
        config = self.image.config
        return {"ports": ports, "nqn": identity.nqn, "nsid": NSID,
                "mtu": self.config.link(0).mtu, "macs": macs,
                "echo": config is not None and config.network.echo}

    def describe(self) -> dict[str, Any]:
        """Facts about the drive for the report."""
        identity, image = self.image.identity, self.image.image("A")
        info = self.info()
        return {"mn": identity.model if identity else "",
                "sn": identity.serial if identity else "",
                "fr": image.version if image else "", "subnqn": info["nqn"],
                "ports": info["ports"]}

    def counted(self) -> list[str]:
        """The counters that are not 0 and the pools in use, for a failed test's report."""
        try:
            return list(used("", mgmt.ask(self.instance, "counters")
                             | mgmt.ask(self.instance, "pools")))
        except EssdError as error:
            return [f"not known: {error}"]

    def transport(self) -> list[str]:
        """What went wrong on the wire since the drive's last start or reset.

        A native drive's counters are checked after each test.  In real time a busy
        computer makes packets late, so they are only shown.
        """
        try:
            counters = mgmt.ask(self.instance, "counters")["rnic"]
        except EssdError as error:
            return [f"not known: {error}"]
        return [f"{name} {counters[name]}" for name in TRANSPORT if counters.get(name)]

    def partner(self, port: int, name: str, value: object) -> None:
        command, arguments = drive_module.port_set(port, name, value)
        self.instance.ask("qmp", part="drive", execute=command, arguments=arguments)

    def power_cut(self) -> None:
        """Cut and restore the power; on return, QEMU listens on the sockets."""
        self.instance.ask("power-cut")
        sockets = [self.config.link(number).socket(self.instance.folder)
                   for number in range(2)]
        for path in sockets:
            path.unlink(missing_ok=True)        # It belonged to the killed QEMU.
        self.instance.ask("power-on")
        wait_listening(self.instance, sockets)

    def reset(self) -> None:
        self.instance.ask("reset")

    def turn(self) -> None:
        """Wait until the drive's main loop has made a turn.

        The drive answers requests of its management channel in full turns only.
        """
        mgmt.ask(self.instance, "status", TURN_S)

    def log(self) -> str:
        text = self.console_log.read_bytes() if self.console_log.exists() else b""
        news = text[self.reported:]
        self.reported = len(text)
        return news.decode(errors="replace").replace("\r\n", "\n")

    def console(self, text: str) -> str:
        with socket.socket(socket.AF_UNIX) as uart:
            uart.settimeout(NUDGE_S)
            uart.connect(str(part_file(self.instance.folder, "drive", "console")))
            self.wait_prompt(uart)
            uart.sendall(text.encode() + b"\r")
            heard = ""
            deadline = time.monotonic() + CONSOLE_S
            while (reply := find_answer(heard, echo_of(text))) is None:
                if time.monotonic() > deadline:
                    raise ControlError(f"the console did not answer {text!r} "
                                       f"within {CONSOLE_S:.0f} s")
                heard += self.receive(uart)
            return reply

    def wait_prompt(self, uart: socket.socket) -> None:
        """Wait for the prompt; input is lost while the firmware boots."""
        heard = news = ""
        deadline = time.monotonic() + BOOT_S
        while f"\n{PROMPT}" not in heard:
            if time.monotonic() > deadline:
                raise ControlError(f"the drive's console shows no prompt within "
                                   f"{BOOT_S:.0f} s; see "
                                   f"{self.console_log}")
            if not news:
                uart.sendall(FORGET)
            news = self.receive(uart)
            heard += news

    def receive(self, uart: socket.socket) -> str:
        with contextlib.suppress(TimeoutError):
            data = uart.recv(4096)
            if not data:
                raise ControlError("the connection to the drive's console was closed")
            return data.decode(errors="replace")
        return ""
