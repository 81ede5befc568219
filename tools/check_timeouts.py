#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that every wait for another process has a time limit.

subprocess.run and its relatives need a timeout, and so do communicate() and
wait() of a Popen, so that a program that hangs is reported instead of hanging
whoever called it.  A call that has to wait as long as it takes says so in a
comment on its first line: "# no timeout: why".
"""
import ast
import pathlib
import sys

import lint_baseline

RUNNERS = {"run", "call", "check_call", "check_output"}
EXCUSE = "# no timeout: "


def waits_without_limit(tree: ast.AST) -> list[ast.Call]:
    """The calls that wait for a process without a time limit."""
    awaited = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Await)}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) \
                or id(node) in awaited or any(k.arg == "timeout" for k in node.keywords):
            continue
        name, owner = node.func.attr, node.func.value
        if isinstance(owner, ast.Name) and owner.id == "subprocess" and name in RUNNERS:
            found.append(node)
        elif name == "communicate":
            found.append(node)
        elif name == "wait" and not node.args and is_process(owner):
            found.append(node)
    return found


def is_process(owner: ast.expr) -> bool:
    """Whether the name is one that this project gives to a Popen object."""
    name = owner.attr if isinstance(owner, ast.Attribute) else \
        owner.id if isinstance(owner, ast.Name) else ""
    return name in ("process", "popen", "child")


def complaints(path: pathlib.Path, name: str) -> list[str]:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    return [f"{name}:{call.lineno}: waits for a process without a timeout"
            for call in waits_without_limit(ast.parse(text))
            if EXCUSE not in lines[call.lineno - 1]]


def main() -> int:
    found = [line for path in lint_baseline.files("*.py") for line in complaints(
        path, path.relative_to(lint_baseline.ROOT).as_posix())]
    for line in found:
        print(line)
    print(f"check_timeouts: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
