# SPDX-License-Identifier: BSD-2-Clause
"""The package that `pip install .` installs: what is in it, and that it boots a drive."""

import configparser
import email
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from essd.base import paths
from essd.build import fw_build, guest_build, qemu_build
from essd.testrun import lints

# Without these, which other places of the same tests may set.
CLEAN = {key: value for key, value in os.environ.items()
         if key not in ("PYTHONPATH", "PYTHONHOME")}
# What a drive, its guest and the conformance suite are built from, and the documents.
CARRIED = re.compile(r"(cmake|docs|examples|firmware|guest|hw-model|lib|net|nvmeof|qemu-patches|"
                     r"LICENSES|tools/(essd|nand|switch)|tests/(bench|conformance|native|soc|"
                     r"sweep|unit))/|tests/(CMakeLists\.txt|make_main\.py|[^/]*\.[ch])$")


def run(*words: str | Path, timeout_s: int = 600, **env: str) -> str:
    done = subprocess.run([str(word) for word in words], env={**CLEAN, **env}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          cwd="/", timeout=timeout_s)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    backend = tmp_path_factory.mktemp("backend")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    run(*pip, "install", "--require-hashes", "--only-binary", ":all:", "--target", backend,
        "-r", paths.TOP / "tools/essd/wheel_requirements.txt")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, paths.TOP,
        PYTHONPATH=str(backend))
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def of_package(unpacked: Path, expression: str) -> str:
    """What the unpacked package's Python prints."""
    return run(sys.executable, "-c", expression, PYTHONPATH=str(unpacked)).strip()


def test_the_wheel_has_every_source_of_drive_and_guest(unpacked: Path) -> None:
    missing = []
    for name in lints.tracked():
        if not CARRIED.match(name):
            continue
        at = name.removeprefix("tools/essd/") if name.startswith("tools/essd/") else (
            f"tree/{name}")
        source = (paths.TOP / name).read_bytes()
        target = unpacked / "essd" / at
        if not target.exists() or target.read_bytes() != source:
            missing.append(name)
    assert missing == []


def test_the_wheel_has_nothing_that_was_built_and_no_path_of_the_checkout(
        unpacked: Path) -> None:
    tracked = set(lints.tracked())
    for path in unpacked.rglob("*"):
        name = path.relative_to(unpacked).as_posix()
        if path.is_dir() or ".dist-info/" in name:
            continue
        source = name.removeprefix("essd/tree/") if name.startswith("essd/tree/") else (
            f"tools/{name}")
        assert source in tracked or lints.git("ls-files") is None, name
        assert str(paths.TOP).encode() not in path.read_bytes(), name


def test_the_package_would_build_the_same_qemu_and_the_same_guest(unpacked: Path) -> None:
    said = of_package(unpacked, "from essd.base import paths;"
                      "from essd.build import guest_build as g, qemu_build as q;"
                      "print(paths.IS_INSTALLED, g.guest_key(), q.stock_key(),"
                      "len(q.our_sources(b'rom')))")
    assert said.split() == ["True", guest_build.guest_key(), qemu_build.stock_key(),
                            str(len(qemu_build.our_sources(b"rom")))]


def test_an_installed_package_builds_in_the_cache(unpacked: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    said = run(sys.executable, "-c", "from essd.base import paths; print(paths.build())",
               PYTHONPATH=str(unpacked), ESSD_CACHE=str(cache)).strip()
    assert Path(said).is_relative_to(cache)


def test_cmake_finds_every_file_that_it_names(unpacked: Path, tmp_path: Path) -> None:
    tree = unpacked / "essd/tree"
    run("cmake", "-S", tree, "--preset", "fast", "-B", tmp_path / "fast")
    run("cmake", "-S", tree / "firmware/rv64", "-B", tmp_path / "rv64", "-G", "Ninja",
        "--toolchain", tree / "firmware/rv64/toolchain-gcc.cmake")


def test_version_licences_and_dependencies_come_from_their_one_place(
        unpacked: Path) -> None:
    (info,) = unpacked.glob("essd-*.dist-info")
    facts = email.message_from_string((info / "METADATA").read_text())
    assert facts["Version"] == fw_build.version()
    assert sorted(facts.get_all("License-File")) == [
        "LICENSES/BSD-2-Clause.txt", "LICENSES/GPL-2.0-or-later.txt",
        "tools/essd/cockpit/uplot/LICENSE"]
    for name in facts.get_all("License-File"):
        assert (info / "licenses" / name).read_text() == (paths.TOP / name).read_text()
    text = (paths.TOP / "tools/essd/requirements.in").read_text()
    at_run_time = text.split("tests and lints need")[0]
    wanted = [re.sub("[._]", "-", name) for name in
              re.findall(r"^[\w.]+", at_run_time, re.M)]
    found = [x for x in facts.get_all("Requires-Dist") if "extra" not in x]
    assert sorted(found) == sorted(wanted), "pyproject.toml and requirements.in differ"


def test_the_package_has_a_command_and_a_pytest_plug_in(unpacked: Path) -> None:
    (info,) = unpacked.glob("essd-*.dist-info")
    points = configparser.ConfigParser()
    points.read(info / "entry_points.txt")
    assert points["console_scripts"]["essd"] == "essd.cli:main"
    assert points["pytest11"]["essd.pytest_plugin"] == "essd.pytest_plugin"
    assert (unpacked / "essd/py.typed").exists()
    help_text = run(sys.executable, "-m", "pytest", "--help", PYTHONPATH=str(unpacked))
    assert "--essd-keep" in help_text       # pytest has found the entry point


def test_hints_name_the_installed_command(unpacked: Path) -> None:
    assert of_package(unpacked, "from essd.base import chosen; print(chosen.hint('default', 'up'))"
                      ) == "essd up"


BOOT = '''
import pathlib
import essd

def files():
    folder = pathlib.Path(essd.__file__).parent
    return sorted((str(path), path.stat().st_size) for path in folder.rglob("*")
                  if path.is_file() and "__pycache__" not in path.parts)

before = files()
with essd.up(drives=2, size="64M") as system:
    devices = [system.host.connect(drive) for drive in system.drives]
    system.host.run(f"dd if=/dev/zero of={devices[1]} bs=4k count=8 oflag=direct")
assert files() == before, "the installed sources were written to"
print("booted", len(devices))
'''


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_package_in_an_empty_environment_boots_drives_and_only_reads_its_sources(
        wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel)
    assert fw_build.version() in run(tmp_path / "venv/bin/essd", "--version")
    assert run(python, "-c", BOOT, timeout_s=3000).splitlines()[-1] == "booted 2"
