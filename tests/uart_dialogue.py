# SPDX-License-Identifier: BSD-2-Clause
"""Console commands that tests run over the UART of a drive of their own."""

import socket

from essd.base.errors import EssdError
from essd.drive.console import FORGET, LOG_LINE, PROMPT, dial, find_answer
from essd.instance.instance import Instance

ANSWER_S = 20.0


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
