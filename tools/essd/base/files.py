# SPDX-License-Identifier: BSD-2-Clause
"""Folders that are created, and files that are replaced as a whole."""

import os
import tempfile
from pathlib import Path

from .errors import EssdError


def make_folder(path: Path) -> None:
    """Create a private folder, and those that it is in, if they do not exist."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EssdError(f"cannot create the folder {path}: {error.strerror}") from None


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file, or create it; on any exception, the old file stays as it was.

    The new content is first in a file of a unique name, because another process may
    replace the same file at the same time.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    fresh = Path(name)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        if path.exists():
            fresh.chmod(path.stat().st_mode & 0o777)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
