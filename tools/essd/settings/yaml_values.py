# SPDX-License-Identifier: BSD-2-Clause
"""A drive's configuration as YAML; every mistake in a file is reported with its line.

A file need not contain every key; the value of an absent key does not change.
"""

import yaml

from ..base import yaml_mistakes
from .settings import GROUPS, KEYS, NONE, Refused, Values, parse

DEPTH_MAX = 4
MARK_COLUMN = 32        # where comments begin, at the earliest
SPELLINGS = {"true": "on", "yes": "on", "false": "off", "no": "off"}


class Reader:
    """Reads the YAML nodes of one file and collects values and mistakes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: Values = {}
        self.lines: dict[str, int] = {}
        self.mistakes: list[str] = []

    def mistake(self, line: int, text: str) -> None:
        self.mistakes.append(f"{self.name}:{line}: {text}")

    def node(self, node: yaml.Node, path: tuple[str, ...]) -> None:
        key = ".".join(path)
        line = node.start_mark.line + 1
        if len(path) > DEPTH_MAX:
            self.mistake(line, f"{key}: the key has more than {DEPTH_MAX} levels")
        elif isinstance(node, yaml.MappingNode):
            self.mapping(node, path)
        elif isinstance(node, yaml.SequenceNode):
            self.sequence(node, path)
        elif not path:
            if node.value:
                self.mistake(line, "a configuration consists of keys and values, such "
                                   "as name: rack7")
        else:
            self.value(key, str(node.value), line)

    def mapping(self, node: yaml.MappingNode, path: tuple[str, ...]) -> None:
        seen = set()
        for name, value in node.value:
            line = name.start_mark.line + 1
            if not isinstance(name, yaml.ScalarNode):
                self.mistake(line, "a key must be one word")
                continue
            if name.value in seen:
                self.mistake(line, f"{'.'.join((*path, name.value))}: the key occurs "
                                   "twice")
            seen.add(name.value)
            self.node(value, (*path, *name.value.split(".")))

    def sequence(self, node: yaml.SequenceNode, path: tuple[str, ...]) -> None:
        line = node.start_mark.line + 1
        key = ".".join(path)
        kind = KEYS[key].name if key in KEYS else ""
        if len(path) == 1 and path[0] in GROUPS:
            for n, item in enumerate(node.value):
                self.node(item, (*path, str(n)))
        elif kind in ("priorities", "namespaces") and all(
                isinstance(x, yaml.ScalarNode) for x in node.value):
            self.value(key, ",".join(x.value for x in node.value) or NONE, line)
        else:
            self.mistake(line, f"{key}: the value cannot be a list" if key else
                         "a configuration consists of keys and values; it cannot be a "
                         "list")

    def value(self, key: str, text: str, line: int) -> None:
        if key in KEYS and KEYS[key].name == "switch":
            text = SPELLINGS.get(text.lower(), text)
        try:
            value = parse(key, NONE if text in ("", "~", "null") else text)
        except Refused as refused:
            self.mistake(line, str(refused))
            return
        if self.values.get(key, value) != value:
            self.mistake(line, f"{key}: the key has another value, {self.values[key]}, "
                               f"in line {self.lines[key]}")
        self.values[key] = value
        self.lines[key] = line


def load(text: str, name: str) -> tuple[Values, list[str]]:
    """The values of the keys in the file, and its mistakes."""
    reader = Reader(name)
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        line, _, words = yaml_mistakes.describe(error, text)
        reader.mistake(line, words)
        return {}, reader.mistakes
    if root is not None:
        reader.node(root, ())
    return reader.values, reader.mistakes


def dump(values: Values, marked: frozenset[str] = frozenset(), mark: str = "") -> str:
    """The values as nested YAML; load() returns the same values.

    The keys in `marked` are followed by the comment `mark`.
    """
    lines: list[str] = []
    path: list[str] = []
    for key, value in values.items():
        *groups, name = key.split(".")
        shared = 0
        while shared < min(len(groups), len(path)) and groups[shared] == path[shared]:
            shared += 1
        for depth in range(shared, len(groups)):
            lines.append("  " * depth + groups[depth] + ":")
        path = groups
        line = "  " * len(groups) + f"{name}: {quoted(value)}"
        lines.append(f"{line + ' ':<{MARK_COLUMN}}# {mark}" if key in marked else line)
    return "\n".join(lines) + "\n"


def quoted(value: str) -> str:
    """The value, in quotes if YAML would not read it as the same string."""
    try:
        node = yaml.compose(f"x: {value}", Loader=yaml.BaseLoader)
        plain = isinstance(node, yaml.MappingNode) and \
            node.value[0][1].value == value and node.value[0][1].style is None
    except yaml.YAMLError:
        plain = False
    return value if plain else "'" + value.replace("'", "''") + "'"
