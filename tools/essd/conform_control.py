# SPDX-License-Identifier: BSD-2-Clause
"""What the conformance program may ask for while it runs.

The program sends one request a line on a UNIX stream socket and gets one line
for each: `ok`, `ok JSON` or `error TEXT`.  docs/conformance.md lists the
requests; what they do to a drive in QEMU is `EmulatedDrive`.
"""

import contextlib
import ipaddress
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any, Protocol

from . import drive as drive_module
from .config import Config
from .console import FORGET, PROMPT, find_answer
from .errors import EssdError
from .flash import FlashImage
from .instance import Instance

CONSOLE_S = 10.0
BOOT_S = 20.0
NUDGE_S = 0.25      # how often Ctrl-C is pressed until the console answers
NSID = 1            # the namespace that a new drive has

# What a request calls it: (the port's property, how its value is read)
WORDS = {"1": True, "true": True, "on": True, "yes": True,
         "0": False, "false": False, "off": False, "no": False}
PARTNER: dict[str, tuple[str, Any]] = {
    "speed": ("partner-speed", int), "fec": ("partner-fec", str),
    "ber": ("ber", float), "seed": ("seed", int),
    "present": ("present", lambda text: WORDS[text]),
    "fault": ("partner-fault", lambda text: WORDS[text]),
}


class ControlError(EssdError):
    """A request that cannot be met; the text goes back to the program."""


class Controlled(Protocol):
    """The drive's machine, as requests see it."""

    def info(self) -> dict[str, Any]: ...

    def partner(self, port: int, name: str, value: object) -> None: ...

    def power_cut(self) -> None: ...

    def reset(self) -> None: ...

    def console(self, text: str) -> str: ...

    def log(self) -> str: ...


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
              "reset": drive.reset, "log": drive.log}
    if word not in simple:
        raise ControlError(f"no request {word!r}: there are partner, console, "
                           + ", ".join(simple))
    return simple[word]()


def parse_partner(rest: str) -> tuple[int, str, object]:
    words = rest.split()
    if len(words) != 3:
        raise ControlError("partner PORT KEY VALUE")
    if words[0] not in ("0", "1"):
        raise ControlError(f"no port {words[0]}: there are 0 and 1")
    if words[1] not in PARTNER:
        raise ControlError(f"no {words[1]!r}: there are {', '.join(PARTNER)}")
    name, kind = PARTNER[words[1]]
    try:
        return int(words[0]), name, kind(words[2])
    except (ValueError, KeyError):
        raise ControlError(f"{words[1]} cannot be {words[2]!r}") from None


class Control:
    """Listens on a socket, and answers in a thread of its own, until left."""

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
        self.is_over = True     # first: a peer that comes now sees it
        for end in (self.listener, *self.peers):
            # Only shutdown wakes a thread that waits in accept or recv.
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

class EmulatedDrive:
    """An instance's drive; its cables' sockets are new after a power cut."""

    def __init__(self, instance: Instance, config: Config) -> None:
        assert config.drive is not None
        self.instance = instance
        self.config = config
        self.flash = Path(config.drive.flash)
        self.console_log = instance.folder / "drive.console"
        self.told = 0           # bytes of the log that `log` has given away

    @property
    def image(self) -> FlashImage:
        return FlashImage.load(self.flash)

    def info(self) -> dict[str, Any]:
        identity = self.image.identity
        if identity is None:
            raise ControlError("the drive's flash holds no identity")
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
        """For the report."""
        identity, image = self.image.identity, self.image.image("A")
        info = self.info()
        return {"mn": identity.model if identity else "",
                "sn": identity.serial if identity else "",
                "fr": image.version if image else "", "subnqn": info["nqn"],
                "ports": info["ports"]}

    def partner(self, port: int, name: str, value: object) -> None:
        command, arguments = drive_module.port_set(port, name, value)
        self.instance.ask("qmp", part="drive", execute=command, arguments=arguments)

    def power_cut(self) -> None:
        """Off and on; QEMU listens at the cables' sockets when this returns."""
        self.instance.ask("power-cut")
        for number in range(2):
            # What a killed process leaves behind refuses, and is not "not yet".
            self.config.link(number).socket(self.instance.folder).unlink(
                missing_ok=True)
        self.instance.ask("power-on")

    def reset(self) -> None:
        self.instance.ask("reset")

    def log(self) -> str:
        text = self.console_log.read_bytes() if self.console_log.exists() else b""
        news = text[self.told:]
        self.told = len(text)
        return news.decode(errors="replace").replace("\r\n", "\n")

    def console(self, text: str) -> str:
        with socket.socket(socket.AF_UNIX) as uart:
            uart.settimeout(NUDGE_S)
            uart.connect(str(self.instance.folder / "console.sock"))
            self.wait_prompt(uart)
            uart.sendall(text.encode() + b"\r")
            heard = ""
            deadline = time.monotonic() + CONSOLE_S
            while (reply := find_answer(heard, text)) is None:
                if time.monotonic() > deadline:
                    raise ControlError(f"the console did not answer {text!r} "
                                       f"in {CONSOLE_S:.0f} s")
                heard += self.receive(uart)
            return reply

    def wait_prompt(self, uart: socket.socket) -> None:
        """The firmware may be booting, and what is typed then is lost."""
        heard = news = ""
        deadline = time.monotonic() + BOOT_S
        while f"\n{PROMPT}" not in heard:
            if time.monotonic() > deadline:
                raise ControlError(f"the drive's console gives no prompt; see "
                                   f"{self.console_log}")
            if not news:
                uart.sendall(FORGET)
            news = self.receive(uart)
            heard += news

    def receive(self, uart: socket.socket) -> str:
        with contextlib.suppress(TimeoutError):
            data = uart.recv(4096)
            if not data:
                raise ControlError("the drive went away")
            return data.decode(errors="replace")
        return ""
