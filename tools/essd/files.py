# SPDX-License-Identifier: BSD-2-Clause
"""Folders that are created, and files that are replaced as a whole."""

import os
from pathlib import Path

from .errors import EssdError


def make_folder(path: Path) -> None:
    """Create a private folder, and those that it is in, if they do not exist."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EssdError(f"cannot create the folder {path}: {error.strerror}") from None


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file, or create it; on any exception, the old file stays as it was."""
    fresh = path.with_name(path.name + ".new")
    try:
        fresh.write_bytes(data)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
