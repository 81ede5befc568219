# SPDX-License-Identifier: BSD-2-Clause
"""The list of lints, and the commands that each of them runs.

`./essd lint` runs all of them, or some by name; `./essd test` runs them as its
first stage; .pre-commit-config.yaml runs them one by one.  To add a lint, write
a function that returns its commands and add it to LINTS.  A file
tools/check_*.py is found by its name and need not be listed here.  Lints of BY_NAME
run only if they are named: `./essd lint release`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from ..base.errors import BUILD_S, EssdError, LOOK_UP_S
from ..base.paths import TOP
from ..build import fw_build

Command = list[str | Path]

# Terms and names that codespell mistakes for misspelt words.
WORDS = "nd,aer,hart,wit,te,ser,memor,inout,hsi,fpr,ect,nome,passt"
WORKFLOWS = ".github/workflows"


def git(*words: str) -> list[str] | None:
    """The lines that git prints; None if git fails or this is not a checkout."""
    try:
        done = subprocess.run(["git", *words], cwd=TOP, check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=LOOK_UP_S)
    except OSError:
        return None
    return done.stdout.splitlines() if done.returncode == 0 else None


def tracked(*patterns: str) -> list[str]:
    """Files of the project; all files if this is not a git checkout."""
    names = git("ls-files", "--", *patterns)
    if names is None:
        names = [str(p.relative_to(TOP)) for pattern in patterns or ("*",)
                 for p in TOP.rglob(pattern) if p.is_file()]
    return [name for name in names if (TOP / name).is_file()
            and not name.startswith("build/")]


def changed() -> list[str]:
    """Files that differ from the main branch, or on it, from the previous commit.

    The list is empty if this is not a git checkout.
    """
    for main in ("@{upstream}", "origin/HEAD", "main"):
        base = git("merge-base", "HEAD", main)
        if base:
            break
    head = git("rev-parse", "HEAD")
    if not base or base == head:
        base = git("rev-parse", "HEAD~1")
    names = git("diff", "--name-only", "--diff-filter=d", base[0]) if base else None
    return names or []


def program(name: str) -> Path:
    """A program of the Python environment."""
    return Path(sys.executable).parent / name


def shell_scripts() -> list[str]:
    return [name for name in tracked() if (TOP / name).read_bytes()[:20].startswith(
        (b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env bash"))]


def check_scripts() -> list[str]:
    return sorted(p.name for p in (TOP / "tools").glob("check_*.py"))


# One function for each lint returns its commands; `every` is true with --all.

def shell(every: bool) -> list[Command]:
    return [["shellcheck", *shell_scripts()]]


def spelling(every: bool) -> list[Command]:
    return [[program("codespell"), "-q", "3", "-L", WORDS,
             *[n for n in tracked() if not n.startswith("LICENSES/") and "/uplot/" not in n]]]


def c_format(every: bool) -> list[Command]:
    return [[program("clang-format"), "--dry-run", "-Werror",
             *[n for n in tracked("*.c", "*.h") if "/regs/" not in n]]]


def ruff(every: bool) -> list[Command]:
    return [[program("ruff"), "check", "--output-format", "concise", "--no-cache",
             "--config", "tools/ruff.toml", "tools", "tests", "examples"]]


def workflow(every: bool) -> list[Command]:
    return [[program("check-jsonschema"), "--builtin-schema", "vendor.github-workflows",
             *sorted((TOP / WORKFLOWS).glob("*.yml"))]]


def tidy(every: bool) -> list[Command]:
    """Run clang-tidy on the sources of the drive that the native build compiles.

    The native build is configured first if that was not done before.
    """
    names = tracked("*.c") if every else [n for n in changed() if n.endswith(".c")]
    if not names:
        return []
    build = TOP / "build/native"
    with fw_build.alone(build, TOP):
        if not (build / "compile_commands.json").exists():
            subprocess.run(["cmake", "--preset", "native"], cwd=TOP, check=True,
                           stdout=subprocess.DEVNULL, timeout=BUILD_S)
    compiled = {entry["file"] for entry in json.loads(
        (build / "compile_commands.json").read_text(encoding="utf-8"))}
    names = [n for n in names if str(TOP / n) in compiled and not n.startswith("tests/")]
    return [[program("clang-tidy"), "-p", build, "--quiet", *names]] if names else []


def mypy(every: bool) -> list[Command]:
    return [[program("mypy"), "--config-file", "tools/mypy.ini", "tools",
             "examples/python"],
            *([program("mypy"), "--config-file", "tools/mypy-tests.ini", folder]
              for folder in ("tests/py", "tests/e2e"))]


# Lints that only run when they are named: a release has to keep them, not each commit.
BY_NAME = ("release",)
LINTS: dict[str, Callable[[bool], list[Command]]] = {
    "shell": shell, "spelling": spelling, "format": c_format, "ruff": ruff,
    "mypy": mypy, "workflow": workflow, "tidy": tidy,
}


def names() -> list[str]:
    """Names of all lints: each tools/check_<name>.py, and those of this file."""
    return [*(name[len("check_"):-len(".py")] for name in check_scripts()), *LINTS]


def default_names() -> list[str]:
    return [name for name in names() if name not in BY_NAME]


def commands(name: str, every: bool) -> list[Command]:
    if name in LINTS:
        return LINTS[name](every)
    if name in names():
        return [[sys.executable, f"tools/check_{name}.py"]]
    raise EssdError(f"there is no lint {name}; the lints are {', '.join(names())}")


def run_lints(only: list[str], every: bool) -> int:
    """Run `essd lint`; return the exit status of the process."""
    failed = []
    # A wrong name is refused before the first lint runs.
    wanted = {name: commands(name, every) for name in only or default_names()}
    for name, lines in wanted.items():
        for command in lines:
            status = subprocess.run(command, cwd=TOP, check=False, timeout=BUILD_S,
                                    env=os.environ | {"PYTHONUNBUFFERED": "1"}).returncode
            if status != 0 and name not in failed:
                failed.append(name)
    if failed:
        raise EssdError(f"these lints found mistakes: {', '.join(failed)}")
    return 0
