# SPDX-License-Identifier: BSD-2-Clause
"""`essd console` connects this terminal to the drive's UART.

Nothing else in the tools types on the UART of a user's drive: they use the
management channel (docs/management.md).  Only the conformance suite does, with a
drive of its own, since the console is one of the things that it tests.
"""

import contextlib
import fcntl
import os
import re
import select
import socket
import sys
import termios
import time
import tty
from collections.abc import Iterator
from typing import IO

from ..base.errors import EssdError
from ..instance.instance import Instance

LEAVE = b"\x1d"         # Ctrl-]
TAIL_BYTES = 4096
PROMPT = "essd> "
FORGET = b"\x03"         # Ctrl-C: the drive discards the line typed so far
LOOK_S = 0.2
LEFT_S = 1.0
LOG_LINE = re.compile(r"\[ *\d+\.\d+\] ")


@contextlib.contextmanager
def raw_terminal(descriptor: int) -> Iterator[None]:
    """Put the terminal into raw mode; restore it at the end."""
    if not os.isatty(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        # Output post-processing stays on, because essd's own notes end with \n
        # alone, unlike the UART's lines.
        mode = termios.tcgetattr(descriptor)
        mode[1] |= termios.OPOST | termios.ONLCR
        termios.tcsetattr(descriptor, termios.TCSANOW, mode)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def dial(instance: Instance) -> socket.socket | None:
    """Connect to the UART; wait while the drive is off.

    Returns None if the instance is not running.
    """
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(instance.file("console")))
            return connection
        except OSError:
            connection.close()
        if not instance.is_running:
            return None
        time.sleep(0.1)


def log(instance: Instance) -> bytes:
    with contextlib.suppress(OSError):
        return instance.file("console.log").read_bytes()
    return b""


def find_answer(text: str, line: str) -> str | None:
    """The console's answer to a command line, or None if it is not complete yet.

    The echo and the prompt are recognised at the beginning of a line only,
    because text from the network, such as a neighbour's name, is never printed
    there.  Log lines may come before the echo and between any two of its
    characters.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    log = r"(?:\n?\[ *\d+\.\d+\] [^\n]*\n)*"
    echo = rf"(?:\A|\n)(?:{PROMPT})*{log}{log.join(map(re.escape, line))}{log}\n"
    echoes = list(re.finditer(echo, text))
    if not echoes:
        return None
    found = re.match(rf"(.*\n)?{PROMPT}", text[echoes[-1].end():], re.S)
    return (found[1] or "").rstrip("\n") if found else None


HOLDER = "console.holder"    # the lock of the one `essd console` that is attached


def hold(instance: Instance) -> IO[str]:
    """Take the console for this process; EssdError names the process that has it.

    The UART's socket serves one connection; QEMU keeps a second one waiting in silence.
    """
    file = open(instance.file(HOLDER), "a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        raise EssdError(f"the console of {instance.the_drive} is in use by {holder}; leave "
                        "that one first, with Ctrl-].  To read along, use "
                        f"{instance.drive_hint('console', '--log')}") from None
    # QEMU takes a moment to notice that the last one has left.
    deadline = time.monotonic() + LEFT_S
    while is_connected(instance) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    if is_connected(instance):
        file.close()
        raise EssdError(f"the console of {instance.the_drive} is in use by a program that "
                        f"is connected to {instance.file('console')}")
    terminal = os.ttyname(sys.stdin.fileno()) if sys.stdin.isatty() else "no terminal"
    file.truncate(0)
    file.write(f"essd console, process {os.getpid()} on {terminal}\n")
    file.flush()
    return file


def is_connected(instance: Instance) -> bool:
    """Whether a client is connected to the UART's socket."""
    with contextlib.suppress(EssdError):        # The drive is off.
        return any(device["label"] == "console" and
                   not device["filename"].startswith("disconnected:")
                   for device in instance.ask("qmp", part=instance.drive,
                                              execute="query-chardev"))
    return False


def off_words(instance: Instance) -> str:
    """Why there is no console now and which command changes that, or "" if there is one."""
    part = instance.status()["parts"].get(instance.drive, {})
    name = instance.the_drive
    if part.get("halted"):
        return f"{name} is halted: {instance.drive_hint('gdb')} or " \
               f"{instance.drive_hint('qmp', 'cont')} continues it"
    if part.get("state") == "running":
        return ""
    if part.get("saved"):
        return f"{name} is saved: {instance.drive_hint('load')} resumes it"
    why = f" ({part['why']})" if part.get("why") else ""
    return f"{name} is off{why}: {instance.drive_hint('power-on')} starts it"


def leaves(keyboard: int, uart: socket.socket | None) -> bool:
    """Pass on what was typed; return whether it was Ctrl-] or the end of the input.

    Without a UART, what was typed is discarded.
    """
    data = os.read(keyboard, 4096)
    if not data or LEAVE in data:
        return True
    if uart is not None:
        uart.sendall(data)
    return False


def connect(instance: Instance, keyboard: int, screen: int) -> socket.socket | None:
    """Connect to the UART; say so and wait if the drive is off.

    Returns None if the user leaves, or if the instance is not running.
    """
    said = ""
    while True:
        try:
            words = off_words(instance)
        except EssdError:
            os.write(screen, b"[the instance has ended]\n")
            return None
        if words and words != said:
            os.write(screen, f"[{words}; waiting]\n".encode())
        said = words
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(instance.file("console")))
            return connection
        except OSError:
            connection.close()
        ready, _, _ = select.select([keyboard], [], [], LOOK_S)
        if ready and leaves(keyboard, None):
            return None


def attach(instance: Instance) -> None:
    """Copy both ways until Ctrl-], the end of input, or the end of the instance."""
    keyboard = sys.stdin.fileno()
    screen = sys.stdout.fileno()
    with hold(instance):
        os.write(screen, log(instance)[-TAIL_BYTES:])
        with raw_terminal(keyboard):
            while True:
                uart = connect(instance, keyboard, screen)
                if uart is None:
                    return
                with uart:
                    while True:
                        ready, _, _ = select.select([uart, keyboard], [], [])
                        if uart in ready:
                            data = uart.recv(4096)
                            if not data:
                                os.write(screen, b"\n")
                                break
                            os.write(screen, data)
                        if keyboard in ready and leaves(keyboard, uart):
                            return
                time.sleep(LOOK_S)      # The supervisor notices the drive's end, too.
