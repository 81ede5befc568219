# SPDX-License-Identifier: BSD-2-Clause
"""The constants of `essd paper`, each with its source: bench/paper_profiles/NAME.toml."""

import difflib
import tomllib
from pathlib import Path
from typing import Any

from ..base.errors import EssdError

FOLDER = Path(__file__).with_name("paper_profiles")
DEFAULT = "samsung-2021"
# Every constant that a profile has to have.
TIMES = ("port_mbps", "cable_ns", "switch_ns", "rnic_ns", "fifo_bytes", "dma_mbps",
         "dma_ns", "memory_mbps", "memory_ns", "hart_mips",
         "handover_ns", "message_ns",
         "channel_mbps", "read_lower_ns", "read_middle_ns", "read_upper_ns", "program_ns",
         "erase_ns", "command_ns", "suspend_ns", "resume_ns", "read_copy_ns",
         "program_copy_ns", "decode_ns")
SIZES = ("harts", "channels", "dies", "queues_programs", "spare_percent")
MOST = 2**32 - 1            # of any constant


def complaints(name: str, found: dict[str, Any]) -> list[str]:
    """What is wrong with a profile: a constant that is missing, unknown, or has no source."""
    wrong = [f"{name}: no constant {key}" for key in TIMES + SIZES if key not in found]
    for key, constant in found.items():
        if key not in TIMES + SIZES:
            near = difflib.get_close_matches(key, TIMES + SIZES, 1)
            wrong.append(f"{name}: unknown constant {key}"
                         + f"; did you mean {near[0]}?" * bool(near))
            continue
        value = constant.get("value") if isinstance(constant, dict) else None
        if type(value) is not int or not 0 <= value <= MOST:
            wrong.append(f"{name}: {key}: value is not a whole number from 0 to {MOST}")
            continue
        number, colon, text = str(constant.get("source", "")).partition(":")
        if not colon or not text.strip():
            wrong.append(f'{name}: {key}: no source; write source = "{value}: ..."')
        elif number != str(value):
            wrong.append(f"{name}: {key} is {value}, but its source is for {number}: look the "
                         "new value up, and change the source too")
    return wrong


def file_of(name: str) -> Path:
    """The file of a profile: one that comes with essd, or a path that ends in .toml."""
    if name.endswith(".toml"):
        return Path(name)
    known = sorted(path.stem for path in FOLDER.glob("*.toml"))
    if name not in known:
        raise EssdError(f"--profile {name}: no such profile; use {', '.join(known)}, or a file "
                        "that ends in .toml")
    return FOLDER / f"{name}.toml"


def load(name: str) -> dict[str, int]:
    """The values of a profile's constants by their names."""
    path = file_of(name)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EssdError(f"--profile {name}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EssdError(f"--profile {name}: {error}") from None
    wrong = complaints(path.name, found)
    if wrong:
        raise EssdError(f"--profile {wrong[0]}")
    return {key: found[key]["value"] for key in TIMES + SIZES}
