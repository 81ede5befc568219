# SPDX-License-Identifier: BSD-2-Clause
"""The container recipe, as far as it can be tried without a container engine."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from essd.base import paths
from essd.setup import doctor

FOLDER = paths.TOP / "containers"
FAKE = '#!/bin/sh\necho "$(basename "$0") $*" >> "$LOG"\n'
# `python3 -m venv FOLDER` makes a folder with a pip.
FAKE_PYTHON = FAKE + """[ "$2" = venv ] || exit 0
/bin/mkdir -p "$3/bin"
/bin/cp "$0" "$3/bin/pip"
"""


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, with continued lines joined."""
    text = (FOLDER / "Containerfile").read_text().replace("\\\n", " ")
    return [(word, rest) for line in text.splitlines() if line and line[0] != "#"
            for word, _, rest in [line.partition(" ")]]


def build(folder: Path, programs: list[str],
          **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run containers/build with programs that only note how they are called."""
    binaries = folder / "bin"
    binaries.mkdir()
    for name in ("dirname", "readlink", "mktemp", "sed", "xargs", "tr", "rm", "basename", "sh",
                 "echo", "cp"):
        (binaries / name).symlink_to(f"/usr/bin/{name}")
    for name in programs:
        (binaries / name).write_text(FAKE_PYTHON if name == "python3" else FAKE)
        (binaries / name).chmod(0o755)
    return subprocess.run(
        [FOLDER / "build"], text=True, capture_output=True, check=False, timeout=60,
        env={"PATH": str(binaries), "LOG": str(folder / "log"), "TMPDIR": str(folder),
             "HOME": os.environ.get("HOME", "/"), **environment})


def test_every_instruction_is_one_that_container_engines_know() -> None:
    words = [word for word, _ in instructions()]
    assert words[0] == "FROM"
    assert set(words) <= {"FROM", "ADD", "COPY", "RUN", "USER", "ENV", "WORKDIR", "VOLUME",
                          "ENTRYPOINT"}
    # The program does not run as root.
    assert words.index("USER") < words.index("ENTRYPOINT")


def test_the_volume_belongs_to_the_user_of_the_program() -> None:
    """An engine gives a new volume the owner of the folder that is there, or root."""
    volume = next(rest for word, rest in instructions() if word == "VOLUME")
    made = next(rest for word, rest in instructions() if word == "RUN")
    assert re.search(rf"install --directory --owner=essd .* {volume} ", made)


def test_the_base_has_the_packages_that_the_launcher_installs(tmp_path: Path) -> None:
    done = build(tmp_path, ["mmdebstrap", "python3"],
                 ESSD_CONTEXT=str(tmp_path / "context"))
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "log").read_text()
    (included,) = re.findall(r"^mmdebstrap .*--include=(\S+) bookworm", log, re.M)
    assert sorted(included.split(",")) == sorted(doctor.wanted_packages())
    assert (f"pip wheel --quiet --no-deps --no-build-isolation --wheel-dir {tmp_path}/context "
            f"{paths.TOP}") in log


def test_a_missing_program_is_named_with_its_package(tmp_path: Path) -> None:
    done = build(tmp_path, ["mmdebstrap", "python3"])
    assert done.returncode == 2
    assert done.stderr == ("containers/build: buildah is missing: apt-get install podman, "
                           "or apt-get install buildah\n")


@pytest.mark.parametrize("engines, used", [
    (["podman"], "podman"), (["buildah"], "buildah"), (["buildah", "podman"], "podman")])
def test_podman_or_else_buildah_builds_the_image(
        tmp_path: Path, engines: list[str], used: str) -> None:
    done = build(tmp_path, ["mmdebstrap", "python3", *engines])
    log = (tmp_path / "log").read_text()
    assert f"{used} build --tag essd --file {FOLDER}/Containerfile" in log, done.stderr
    assert len(re.findall(r" build --tag ", log)) == 1


def test_what_the_recipe_copies_is_what_the_script_makes() -> None:
    script = (FOLDER / "build").read_text()
    copied = [rest.split()[0] for word, rest in instructions() if word in ("ADD", "COPY")]
    assert copied == ["base.tar", "essd-*.whl"]
    assert [rest for word, rest in instructions() if word == "COPY"] == [
        "essd-*.whl requirements.txt /tmp/"]
    assert "$context/base.tar" in script and "wheel --quiet" in script
    assert 'requirements.txt" "$context/"' in script


def test_every_python_package_is_checked_against_a_hash(tmp_path: Path) -> None:
    """The image then installs its own wheel with what was checked, and asks nobody."""
    build(tmp_path, ["mmdebstrap", "python3"], ESSD_CONTEXT=str(tmp_path / "context"))
    made = next(rest for word, rest in instructions() if word == "RUN")
    there = [line for line in made.split("&&") if "/pip" in line]
    here = [line for line in (tmp_path / "log").read_text().splitlines()
            if line.startswith("pip ")]
    assert len(there) == len(here) == 2
    for first, second in (there, here):
        assert "--require-hashes --only-binary :all:" in first
        assert "--no-index" in second or "--no-deps --no-build-isolation" in second


def test_the_wheel_is_made_with_the_versions_of_the_ordinary_set_up() -> None:
    def pinned(name: str) -> dict[str, list[str]]:
        text = (paths.TOP / "tools/essd" / name).read_text().replace("\\\n", " ")
        return {words[0].split("==")[0]: words for line in text.splitlines()
                if (words := line.split()) and "==" in words[0]}

    wheel, ordinary = pinned("wheel_requirements.txt"), pinned("requirements.txt")
    assert all(words[1].startswith("--hash=sha256:") for words in wheel.values())
    for name in wheel.keys() & ordinary.keys():
        assert wheel[name][0] == ordinary[name][0]
        assert set(wheel[name][1:]) <= set(ordinary[name][1:])
