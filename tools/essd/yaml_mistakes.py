# SPDX-License-Identifier: BSD-2-Clause
"""What PyYAML reports about a text that is not YAML, as a place and one line."""

import yaml


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
