# SPDX-License-Identifier: BSD-2-Clause
"""Patterns that name several parts: drive[3-5], drive[0,2], drive*, a,b."""

import re
from collections.abc import Iterable

from . import chosen
from .errors import EssdError

NAME = re.compile(r"[a-z][a-z0-9_-]*")
NAME_MAX = 20           # characters, because socket paths contain the name
RANGE_MAX = 64          # names that one pair of brackets may stand for


def split(text: str) -> list[str]:
    """Split at the commas that are not inside brackets."""
    return [word.strip() for word in re.split(r",(?![^\[]*\])", text)]


def numbers(text: str, whole: str) -> list[str]:
    """The numbers of "3-5,7"; leading zeros are kept."""
    found = []
    for word in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", word)
        if match is None:
            raise EssdError(f"{whole}: write numbers and ranges in the brackets, such as "
                            "drive[0-3,7]")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise EssdError(f"{whole}: the range {word.strip()} ends before it begins")
        if int(last) - int(first) >= RANGE_MAX:
            raise EssdError(f"{whole}: the range {word.strip()} has more than {RANGE_MAX} "
                            "numbers")
        found += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return found


def expand(text: str) -> list[str]:
    """The names that a word with brackets stands for: drive[0-1] is drive0, drive1."""
    match = re.fullmatch(r"([^\[\]]*)\[([^\[\]]*)\]([^\[\]]*)", text)
    if match is None:
        if "[" in text or "]" in text:
            raise EssdError(f"{text}: one pair of brackets is possible, such as "
                            "drive[0-3]")
        return [text]
    names = [f"{match[1]}{number}{match[3]}" for number in numbers(match[2], text)]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise EssdError(f"{text}: {min(twice)} is named twice")
    return names


def check_name(name: str) -> None:
    """Raise EssdError if a part cannot have this name."""
    if not NAME.fullmatch(name) or len(name) > NAME_MAX:
        raise EssdError(f"{name!r} cannot be a part's name: use at most {NAME_MAX} of the "
                        "letters a to z, digits, - and _, beginning with a letter")


def select(pattern: str, names: Iterable[str], kind: str = "part") -> list[str]:
    """Those of `names` that match the pattern, in the order of `names`.

    Each word of the pattern has to match a name.  If one does not, EssdError
    names the nearest valid name.
    """
    valid = list(names)
    wanted: set[str] = set()
    for word in split(pattern):
        for one in expand(word):
            rule = ".*".join(map(re.escape, one.split("*")))
            found = {name for name in valid if re.fullmatch(rule, name)}
            if not found:
                raise EssdError(f"there is no {kind} {one}{chosen.mean(one, valid)}"
                                f" (there are {chosen.listed(valid, 'and')})")
            wanted |= found
    return [name for name in valid if name in wanted]
