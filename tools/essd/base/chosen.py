# SPDX-License-Identifier: BSD-2-Clause
"""Names that a user gives: which instance is meant, and what a wrong name is near.

Also builds the commands that messages suggest, so that each of them names the
instance that the message is about.
"""

import difflib
import os
import re
import socket
import struct
from collections.abc import Iterable

from . import claims, paths
from .errors import EssdError

DEFAULT = "default"
PROGRAM = "essd" if paths.IS_INSTALLED else "./essd"
NAME = re.compile(r"[A-Za-z0-9_-]+")
SOCKET_MAX = 107        # bytes of a UNIX socket's path
LONGEST_SOCKET = "console"          # of a drive or a switch
CONNECT_S = 2           # time limit for a connection to a supervisor
SSH_DRAFT = "ssh.0123456789abcdef"  # as ssh names its socket until it listens


def hint(name: str, command: str, *rest: str) -> str:
    """A command for the user to type, with --name unless it is the default one.

    `rest` comes after --name: hint("lab", "host", "--", "ls").
    """
    words = [PROGRAM, command, *([] if name == DEFAULT else ["--name", name]), *rest]
    return " ".join(words)


def part_words(drive: str) -> list[str]:
    """What a suggested command needs to act on this drive of an instance."""
    return [] if drive == "drive" else ["--part", drive]


def nearest(given: str, valid: Iterable[str]) -> str:
    """The valid word that is most like a wrong one, or "" if none is.

    A word of which the wrong one is the beginning comes before one with similar letters.
    """
    words = list(valid)
    lower = {word.lower(): word for word in words}
    longer = [word for word in lower if len(given) > 1 and word.startswith(given.lower())]
    if longer:
        return lower[min(longer, key=len)]
    found = difflib.get_close_matches(given.lower(), lower, 1, 0.5)
    return lower[found[0]] if found else ""


def mean(given: str, valid: Iterable[str]) -> str:
    """The end of a message about a wrong word: "; did you mean ...?", or ""."""
    found = nearest(given, valid)
    return f"; did you mean {found}?" if found else ""


def mean_or(given: str, valid: Iterable[str], otherwise: str = "") -> str:
    """A clause after a wrong word: "did you mean ...?", else `otherwise`, which is by
    default the list of all valid words."""
    words = list(valid)
    found = nearest(given, words)
    return f"did you mean {found}?" if found else \
        otherwise or f"use one of {', '.join(words)}"


def listed(words: Iterable[str], last: str = "or") -> str:
    """The words as a list in a sentence: "a, b or c"."""
    *most, end = list(words) or ["none"]
    return f"{', '.join(most)} {last} {end}" if most else end


def check_word(option: str, given: str, valid: Iterable[str]) -> str:
    """Return `given` if it is one of the valid words; EssdError names the nearest."""
    words = list(valid)
    if given not in words:
        raise EssdError(f"{option} {given}: must be {listed(words)}"
                        f"{mean(given, words) if len(words) > 1 else ''}")
    return given


def check_letters(name: str) -> str:
    """Return `name` if all its characters are allowed; EssdError says what is wrong.

    The name of a drive that is kept may be too long to run: its sockets would have been in
    a folder with a shorter path.
    """
    if not NAME.fullmatch(name):
        usable = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
        raise EssdError(f"--name {name!r}: use only the letters a to z and A to Z, digits, "
                        f"- and _{f', such as {usable}' if usable else ''}")
    return name


def check_name(name: str) -> str:
    """Return `name` if an instance can have it; EssdError says what is wrong with it."""
    check_letters(name)
    most = SOCKET_MAX - len(os.fsencode(paths.instance("") / "drive" / LONGEST_SOCKET)) - 1
    if len(name) > most:
        raise EssdError(f"--name {name}: has {len(name)} characters; at most {most} are "
                        f"possible, because the paths of its sockets in {paths.runtime()} "
                        "are limited")
    return name


def check_sockets(name: str, guests: Iterable[str], others: Iterable[str]) -> None:
    """EssdError if the path of a socket of one of these parts would be too long."""
    longest = max((*(f"{part}/{SSH_DRAFT}" for part in guests),
                   *(f"{part}/{LONGEST_SOCKET}" for part in others)), key=len, default="")
    path = paths.instance(name) / longest
    size = len(os.fsencode(path))
    if size > SOCKET_MAX:
        raise EssdError(f"--name {name}: the path {path} of a socket has {size} characters, "
                        f"and at most {SOCKET_MAX} are possible: choose a shorter --name or "
                        f"a shorter name than {longest.partition('/')[0]}, or set "
                        "XDG_RUNTIME_DIR to a folder with a shorter path")


def control_socket() -> socket.socket:
    """A socket with which connect() to a supervisor that accepts nobody ends, too: with
    BlockingIOError."""
    connection = socket.socket(socket.AF_UNIX)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                          struct.pack("ll", CONNECT_S, 0))
    return connection


def answers(name: str) -> bool:
    """Whether the supervisor of this instance accepts connections."""
    with control_socket() as connection:
        try:
            connection.connect(str(claims.folder(name) / "control.sock"))
        except BlockingIOError:         # So many others wait for it.
            return True
        except OSError:
            return False
    return True


def running() -> list[str]:
    """Names of the running instances, sorted.

    Those that hold their claim count also without an answer: their runtime folder may have
    been deleted, as the end of a login does.
    """
    names = {path.parent.name for path in paths.runtime().glob("*/control.sock")}
    return sorted({*claims.running(), *(name for name in names if answers(name))})


def is_running(name: str) -> bool:
    """Whether this instance is one of running()."""
    found = claims.holder(name)
    return bool(found and claims.is_running(found, name)) or answers(name)


def kept() -> list[str]:
    """Names of the instances that have drives, running or not, sorted."""
    return sorted({path.relative_to(paths.drives()).parts[0]
                   for pattern in ("*/flash.img", "*/*/flash.img", "*/drives/*/flash.img")
                   for path in paths.drives().glob(f"[!.]{pattern}") if path.is_file()})


def known() -> list[str]:
    """Names of all instances that run and of all drives, sorted."""
    return sorted({*running(), *kept()})


def instance(name: str = "") -> str:
    """`name`, or the only running instance, or the default one if none runs."""
    if name:
        return check_name(name)
    names = running()
    if len(names) > 1:
        raise EssdError("several instances are running: choose one with "
                        f"{listed(f'--name {name}' for name in names)}")
    return names[0] if names else DEFAULT


def not_running(name: str) -> str:
    """What to say if a command needs a running instance, and this one is not."""
    names = running()
    if name in names:
        folder = claims.folder(name)
        why = ("it is starting or ending: try again, or" if folder.is_dir() else
               f"its folder {folder} was deleted:")
        return f"{name} runs and cannot be reached, because {why} end it with {hint(name, 'down')}"
    if name == DEFAULT and not names:
        return f"nothing is running: start it with {hint(name, 'up')}"
    there = f"; running: {', '.join(names)}" if names else ""
    return (f"nothing is running as {name}: start it with {hint(name, 'up')}"
            f"{mean(name, names or kept()) or there}")
