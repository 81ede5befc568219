# SPDX-License-Identifier: BSD-2-Clause
"""The TCP engine beside smoltcp: the same peers, the same bytes (tests/tcp/stacks).

smoltcp is Rust, so this needs cargo, which nothing else does, and the archive of crates or a
copy of it in cargo's own cache.  `essd test --all` runs it.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from essd.base import paths
from essd.build import native_build

SOURCE = paths.TOP / "tests/tcp/stacks/smoltcp"
SEEDS = 1000
LEAST = (1, 80)     # rust-version in Cargo.toml
FETCH_S, BUILD_S, RUN_S = 120, 600, 120


def why_not(folder: Path) -> str | None:
    """Why the library cannot be built here, in a line; None if it can."""
    cargo = find_cargo()
    if cargo is None:
        return "cargo is not installed"
    said = run_cargo(cargo, folder, "--version", limit_s=30)
    found = re.match(r"cargo (\d+)\.(\d+)", said.stdout)
    if found is None or (int(found[1]), int(found[2])) < LEAST:
        return f"smoltcp needs Rust {LEAST[0]}.{LEAST[1]}, and this is {said.stdout.strip()}"
    said = run_cargo(cargo, folder, "fetch", "--locked", limit_s=FETCH_S)
    if said.returncode != 0:
        return f"smoltcp cannot be fetched: {said.stderr.strip().splitlines()[-1]}"
    return None


def find_cargo() -> str | None:
    """From the PATH, or where Rust's own installer puts it."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    return shutil.which("cargo") or shutil.which("cargo", path=str(home / "bin"))


def run_cargo(cargo: str, folder: Path, *words: str,
              limit_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run([cargo, *words], cwd=SOURCE, check=False, capture_output=True,
                          text=True, timeout=limit_s,
                          env=os.environ | {"CARGO_TARGET_DIR": str(folder),
                                            "CARGO_NET_RETRY": "0"})


@pytest.mark.long
def test_the_engine_delivers_what_smoltcp_delivers() -> None:
    folder = paths.build() / "smoltcp"
    reason = why_not(folder)
    if reason is not None:
        pytest.skip(reason)
    cargo = find_cargo()
    assert cargo is not None
    built = run_cargo(cargo, folder, "build", "--locked", "--offline", "--release",
                      limit_s=BUILD_S)
    assert built.returncode == 0, built.stderr
    program = native_build.native_program("native", "tests/tcp/stacks_smoltcp",
                                          "the engine beside smoltcp")
    done = subprocess.run([program, folder / "release/libessd_smoltcp.so", str(SEEDS)],
                          check=False, capture_output=True, text=True, timeout=RUN_S)
    assert done.returncode == 0, done.stderr


def test_without_cargo_a_line_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CARGO_HOME", str(tmp_path))
    assert why_not(tmp_path) == "cargo is not installed"


@pytest.mark.parametrize(("script", "reason"), [
    ("echo cargo 0.66.0", "smoltcp needs Rust 1.80, and this is cargo 0.66.0"),
    ("echo cargo 1.80.0; echo no network >&2; exit $(($# > 1))",
     "smoltcp cannot be fetched: no network"),
    ("echo cargo 1.85.1", None)])
def test_why_smoltcp_cannot_be_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                     script: str, reason: str | None) -> None:
    cargo = tmp_path / "cargo"
    cargo.write_text(f"#!/bin/sh\n{script}\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert why_not(tmp_path) == reason
