# SPDX-License-Identifier: BSD-2-Clause
"""What is wrong with a file that should be YAML, in one line."""

from pathlib import Path

import yaml

from .errors import EssdError

# PyYAML needs about 1 s and 100 MB of memory for each megabyte.
BYTES_MAX = 1 << 20


def read_file(path: Path) -> str:
    """The text of a YAML file; EssdError says why it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise EssdError(f"{path}: {error.strerror}") from None
    if len(data) > BYTES_MAX:
        raise EssdError(f"{path}: the file is too long: it may have 1 MiB at most")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise EssdError(f"{path}: not valid YAML: the file is not UTF-8 text") from None


def describe(error: Exception, text: str) -> tuple[int, int, str]:
    """Line and column, counted from 1, and what is wrong there."""
    if isinstance(error, RecursionError):
        return 1, 1, "not valid YAML: the nesting is too deep"
    if isinstance(error, yaml.reader.ReaderError):
        before = text[:error.position]
        return (before.count("\n") + 1, len(before) - before.rfind("\n"),
                f"not valid YAML: the character #x{error.character:04x} is not allowed")
    mark = getattr(error, "problem_mark", None)
    words = " ".join(str(getattr(error, "problem", None) or error).split())
    if mark is None:
        return 1, 1, f"not valid YAML: {words}"
    return mark.line + 1, mark.column + 1, f"not valid YAML: {words}"
