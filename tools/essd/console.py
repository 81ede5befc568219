# SPDX-License-Identifier: BSD-2-Clause
"""`essd console` connects this terminal to the drive's UART; commands over the UART."""

import contextlib
import os
import re
import select
import socket
import sys
import termios
import time
import tty
from collections.abc import Iterator

from .errors import EssdError
from .instance import Instance

LEAVE = b"\x1d"         # Ctrl-]
TAIL_BYTES = 4096
PROMPT = "essd> "
FORGET = b"\x03"         # Ctrl-C: the drive discards the line typed so far
ANSWER_S = 20.0
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
            connection.connect(str(instance.file("console.sock")))
            return connection
        except OSError:
            connection.close()
        if not instance.is_running:
            return None
        time.sleep(0.1)


def log(instance: Instance) -> bytes:
    with contextlib.suppress(OSError):
        return (instance.folder / f"{instance.drive}.console").read_bytes()
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


def receive(uart: socket.socket) -> str:
    more = uart.recv(4096)
    if not more:
        raise EssdError("the drive was powered off")
    return more.decode(errors="replace")


def exchange(uart: socket.socket, command: str) -> str:
    """Discard a line that was typed before, then send a command."""
    uart.sendall(FORGET)
    heard = ""
    while f"\n{PROMPT}" not in heard:
        heard += receive(uart)
    uart.sendall(command.encode() + b"\r")
    while (answer := find_answer(heard, command)) is None:
        heard += receive(uart)
    return answer


def ask(instance: Instance, command: str,
        timeout_s: float | None = None) -> list[str]:
    """Run one console command; return the lines of its answer without log lines."""
    timeout_s = ANSWER_S if timeout_s is None else timeout_s
    uart = dial(instance)
    if uart is None:
        raise EssdError("the drive is not running")
    with uart:
        uart.settimeout(timeout_s)
        try:
            said = exchange(uart, command)
        except TimeoutError:
            raise EssdError(
                f"the drive's console did not answer within {timeout_s:.0f} s: either "
                "it is in use elsewhere (`essd console`), or the firmware hangs"
            ) from None
        except OSError as error:
            raise EssdError("the connection to the drive's console is gone: "
                            f"{error}") from None
    answer = [line for line in said.splitlines() if line and not LOG_LINE.match(line)]
    for line in answer:
        if line.startswith("error: "):
            raise EssdError("the drive's console reports: "
                            f"{line.removeprefix('error: ')}")
    return answer


def attach(instance: Instance) -> None:
    """Copy both ways until Ctrl-], the end of input, or the end of the instance."""
    keyboard = sys.stdin.fileno()
    screen = sys.stdout.fileno()
    os.write(screen, log(instance)[-TAIL_BYTES:])
    with raw_terminal(keyboard):
        while True:
            uart = dial(instance)
            if uart is None:
                return
            with uart:
                while True:
                    ready, _, _ = select.select([uart, keyboard], [], [])
                    if uart in ready:
                        data = uart.recv(4096)
                        if not data:
                            os.write(screen, b"\n[the drive is powered off]\n")
                            break
                        os.write(screen, data)
                    if keyboard in ready:
                        data = os.read(keyboard, 4096)
                        if not data or LEAVE in data:
                            return
                        uart.sendall(data)
            time.sleep(0.2)
