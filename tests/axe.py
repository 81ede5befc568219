# SPDX-License-Identifier: BSD-2-Clause
"""axe-core, which finds what people with disabilities cannot use in a page.

It is fetched from npm once, by the client npm, and kept in the cache; only a test that
asks for it needs it.
"""

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import chromium

from essd.base import files, paths

VERSION = "4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
FETCH_S = 60


def path() -> Path:
    return paths.cache() / "download" / f"axe-core-{VERSION}.js"


def fetch(to: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", f"axe-core@{VERSION}"], cwd=folder,
                       check=True, timeout=FETCH_S, capture_output=True)
        with tarfile.open(Path(folder) / f"axe-core-{VERSION}.tgz") as package:
            member = package.extractfile("package/axe.min.js")
            assert member is not None
            data = member.read()
    assert hashlib.sha256(data).hexdigest() == SHA256
    files.make_folder(to.parent)
    files.replace_file(to, data)


def why_missing() -> str:
    """Why there is no axe-core; "" if there is one."""
    if path().exists():
        return ""
    if shutil.which("npm") is None:
        return "no axe-core: install Debian's package npm, which fetches it once (0.7 MB)"
    try:
        fetch(path())
    except (subprocess.SubprocessError, OSError) as error:
        return f"no axe-core: npm could not fetch it: {error}"
    return ""


def violations(page: chromium.Page) -> list[tuple[str, str, list[str]]]:
    """What is wrong with a page: how serious, which rule, and the elements."""
    page.call("Page.setBypassCSP", enabled=True)
    page.run(path().read_text(encoding="utf-8") + ";0")
    found: Any = page.run(
        "axe.run(document, {resultTypes: ['violations']}).then((result) => "
        "result.violations.map((one) => [one.impact, one.id, one.nodes.map((node) => "
        "node.html.slice(0, 200))]))")
    page.call("Page.setBypassCSP", enabled=False)
    return [(impact, rule, nodes) for impact, rule, nodes in found]
