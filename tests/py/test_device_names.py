# SPDX-License-Identifier: BSD-2-Clause
"""Documents do not say that the drive is /dev/nvme0: after `nvme connect-all`, a discovery
controller may have that name."""

import re
import subprocess
from pathlib import Path

from essd.base import paths

# Names of devices in commands and text; namespaces are written with a pattern.
FIXED = re.compile(r"/dev/nvme\d")
WORDS = re.compile(r"^DRIVE=.*$", re.M)
DEFINED = "connect-your-own.md"
LINK = f"{DEFINED}#the-devices-name"


def documents() -> list[Path]:
    return [path for folder in ("docs", "examples") for path in (paths.TOP / folder).rglob("*")
            if path.suffix in (".md", ".yaml", ".py") and "decisions" not in path.parts] \
        + [paths.TOP / "README.md"]


def test_no_document_gives_the_drive_a_fixed_name() -> None:
    found = [f"{path.name}: {line.strip()}" for path in documents()
             for line in path.read_text(encoding="utf-8").splitlines() if FIXED.search(line)]
    (why,) = found      # The page that says why not.
    assert why.startswith(f"{DEFINED}: After `nvme connect-all`, ")


def test_each_document_with_the_variable_says_what_sets_it() -> None:
    for path in documents():
        text = path.read_text(encoding="utf-8")
        if "$DRIVE" in text and path.name != DEFINED:
            assert LINK in text, path.name


def set_by(folder: Path, **controllers: str) -> str:
    for name, kind in controllers.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "cntrltype").write_text(f"{kind}\n")
    found = WORDS.search((paths.TOP / "docs" / DEFINED).read_text(encoding="utf-8"))
    assert found is not None
    line = found[0].replace("/sys/class/nvme", str(folder))
    done = subprocess.run(["sh", "-c", f"{line}; echo $DRIVE"], capture_output=True, text=True,
                          timeout=60, check=True)
    return done.stdout.strip()


def test_the_variable_is_the_drive_and_no_discovery_controller(tmp_path: Path) -> None:
    assert set_by(tmp_path / "a", nvme0="discovery", nvme1="io", nvme2="io") == "/dev/nvme1"
    assert set_by(tmp_path / "b", nvme0="io", nvme1="discovery") == "/dev/nvme0"
