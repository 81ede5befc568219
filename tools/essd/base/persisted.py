# SPDX-License-Identifier: BSD-2-Clause
"""Reads JSON files that some version of essd has written, perhaps long ago.

Such a file may be cut, damaged, or of another version.  So everything that is used of it is
checked first: its version, its members and their types.  What is wrong ends in one line
that names the file.
"""

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

from .errors import EssdError

T = TypeVar("T")


class DamagedError(EssdError):
    """A file has not the content that it should have, or is of another version."""


class ShapeError(EssdError):
    """A value has not the type that it should have."""


def fill(kind: Any, value: Any, where: str = "") -> Any:
    """Make a `kind` of what JSON has returned; ShapeError if it is none.

    A kind is a dataclass, a list, dict or union of kinds, a plain type, or Any.  A JSON
    object has to have the members that have no default, and no unknown ones.
    """
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return filled(kind, value, where)
    if origin is types.UnionType:
        return fill(next(one for one in of if (one is types.NoneType) == (value is None)),
                    value, where)
    if origin is list and isinstance(value, list):
        return [fill(of[0], one, f"{where}[{n}]") for n, one in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {key_of(of[0], key, where): fill(of[1], one, f"{where}.{key}")
                for key, one in value.items()}
    if kind is float and type(value) is int:
        return float(value)
    if kind is types.NoneType and value is None:
        return None
    if type(value) is not kind:
        raise ShapeError(f"{place(where)} is {show(value)}, which is no {word(origin or kind)}")
    return value


def key_of(kind: Any, key: str, where: str) -> Any:
    """A key of an object; JSON writes those that are numbers as texts."""
    if kind is not int:
        return key
    if not (key.isascii() and key.isdecimal()):
        raise ShapeError(f"{place(where)} has a member {key}, which is no whole number")
    return int(key)


def filled(kind: type[Any], value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ShapeError(f"{place(where)} is {show(value)}, which is no object")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in value:
        if name not in fields:
            raise ShapeError(f"{place(where)} has an unknown member {name}")
    for name, field in fields.items():
        if name not in value and field.default is dataclasses.MISSING \
                and field.default_factory is dataclasses.MISSING:
            raise ShapeError(f"{place(where)} has no member {name}")
    kinds = typing.get_type_hints(kind)
    return kind(**{name: fill(kinds[name], one, f"{where}.{name}")
                   for name, one in value.items()})


def place(where: str) -> str:
    """What a message calls a value: the members that lead to it."""
    return where.removeprefix(".") or "the content"


def word(kind: Any) -> str:
    words = {str: "text", int: "whole number", float: "number", bool: "true or false",
             list: "list", dict: "object", types.NoneType: "null"}
    return words.get(kind) or str(kind)


def show(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 40 else f"{text[:36]}..."


def parse(text: str, kind: type[T], version: int | None = None) -> T:
    """What a file's text holds; ShapeError says what is wrong.

    With `version`, the text is an object that has this version as a member of its own.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ShapeError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ShapeError(f"it is not JSON from line {error.lineno} on" if text.strip()
                         else "it is empty") from None
    if version is not None:
        if not isinstance(value, dict):
            raise ShapeError(f"the content is {show(value)}, which is no object")
        found = value.pop("version", None)
        if found != version:
            raise ShapeError(f"its version is {show(found)}, and this essd reads {version}")
    return typing.cast(T, fill(kind, value))


def read(path: Path, what: str, kind: type[T], version: int | None = None,
         remedy: str = "") -> T:
    """What the file holds; DamagedError names `what` it is, what is wrong, and the remedy.

    FileNotFoundError if there is no such file.
    """
    try:
        return parse(path.read_text(encoding="utf-8"), kind, version)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = str(error.strerror)
    except UnicodeDecodeError:
        why = "it is not text"
    except ShapeError as error:
        why = str(error)
    raise DamagedError(f"{path}, {what}, cannot be used: {why}{remedy and f': {remedy}'}")


def read_or_none(path: Path, kind: type[T], version: int | None = None) -> T | None:
    """The same for a file that is made again; None if it is missing or cannot be used."""
    try:
        return read(path, "", kind, version)
    except (FileNotFoundError, DamagedError):
        return None
