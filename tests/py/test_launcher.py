# SPDX-License-Identifier: BSD-2-Clause
"""The launcher on machines that lack programs, which scripts in PATH simulate."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from essd import cli
from essd.base import paths, system
from essd.base.errors import EssdError
from essd.setup import doctor

LAUNCHER = paths.TOP / "essd"


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """A machine where dpkg-query knows no package and sudo asks for a password."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, body in (("dpkg-query", "exit 1"), ("sudo", "exit 1"),
                       ("apt-get", f"echo $@ >> {tmp_path}/apt; exit 1"),
                       ("id", "echo 1000")):
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}",
            "ESSD_CACHE": str(tmp_path / "cache"), "LC_ALL": "C"}


def start(machine: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LAUNCHER, *words], env=machine, check=False, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=300)


def test_one_line_and_status_2_without_root_and_sudo(machine: dict[str, str]) -> None:
    done = start(machine, "demo")
    assert done.returncode == 2
    assert done.stdout == ""
    line = done.stderr.splitlines()[1]
    assert line.startswith("sudo sh -c 'apt-get update && apt-get install ")
    for name in doctor.wanted_packages():
        assert f" {name}" in line
    assert len(done.stderr.splitlines()) == 2


UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nID=ubuntu\nVERSION_ID="24.04"\n'
DEBIAN_12 = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'
OTHERS = [
    (UBUNTU, "x86_64", "Ubuntu 24.04.1 LTS on x86_64"),
    (UBUNTU.replace("24.04", "12"), "x86_64", "Ubuntu 12.1 LTS on x86_64"),
    (DEBIAN_12.replace("12", "11"), "x86_64", "Debian GNU/Linux 11 (bookworm) on x86_64"),
    (DEBIAN_12, "aarch64", "Debian GNU/Linux 12 (bookworm) on aarch64"),
    (None, "x86_64", "Linux on x86_64")]


@pytest.mark.parametrize("release, architecture, name", OTHERS)
def test_another_system_is_refused_in_one_line(
        machine: dict[str, str], tmp_path: Path, release: str | None, architecture: str,
        name: str) -> None:
    file = tmp_path / "os-release"
    if release is not None:
        file.write_text(release)
    launcher = tmp_path / "essd"
    text = LAUNCHER.read_text().replace("/etc/os-release", str(file))
    assert text.count(str(file)) == 2
    launcher.write_text(text)
    launcher.chmod(0o755)
    uname = Path(machine["PATH"].split(":")[0]) / "uname"
    uname.write_text(f'#!/bin/sh\n[ "$1" = -m ] && echo {architecture} || echo Linux\n')
    uname.chmod(0o755)
    done = subprocess.run([launcher, "up"], env=machine, check=False, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ("essd: needs Debian 12 or 13 on x86-64; "
                           f"this system is {name}\n")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("release, architecture, name", OTHERS)
def test_the_installed_package_refuses_another_system_too(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str], release: str | None, architecture: str,
        name: str) -> None:
    file = tmp_path / "os-release"
    if release is not None:
        file.write_text(release)
    monkeypatch.setattr(system, "OS_RELEASE", file)
    monkeypatch.setattr(system.platform, "machine", lambda: architecture)
    with pytest.raises(EssdError) as refused:
        system.refuse_others()
    assert str(refused.value) == ("needs Debian 12 or 13 on x86-64; "
                                  f"this system is {name}")
    monkeypatch.setattr("sys.argv", ["essd", "list"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_debian_12_and_13_are_accepted(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "OS_RELEASE", tmp_path / "os-release")
    monkeypatch.setattr(system.platform, "machine", lambda: "x86_64")
    for version in ("12", "13"):
        system.OS_RELEASE.write_text(DEBIAN_12.replace("12", version))
        system.refuse_others()


def test_commands_that_only_show_something_need_python_only(machine: dict[str, str]) -> None:
    done = start(machine, "doctor")
    assert done.returncode == 2
    assert done.stderr.splitlines()[1].endswith(
        "--no-install-recommends python3 python3-venv'")


def test_a_failed_installation_names_its_log(machine: dict[str, str]) -> None:
    sudo = Path(machine["PATH"].split(":")[0]) / "sudo"
    sudo.write_text('#!/bin/sh\nshift\n[ "$1" = true ] || exec "$@"\n')
    done = start(machine, "demo")
    assert done.returncode == 1
    assert "installing packages failed" in done.stderr
    assert "packages.log" in done.stderr


def test_an_unreachable_mirror_is_named_in_the_error(machine: dict[str, str]) -> None:
    tools = Path(machine["PATH"].split(":")[0])
    (tools / "sudo").write_text('#!/bin/sh\nshift\n[ "$1" = true ] || exec "$@"\n')
    (tools / "apt-get").write_text(
        "#!/bin/sh\n[ $1 = install ] || {\n"
        "echo 'W: Failed to fetch http://a.example/  Could not connect'; exit 0; }\n"
        "echo 'E: Unable to locate package python3'; exit 100\n")
    done = start(machine, "demo")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 2       # that it installs, and this one
    assert ("E: Unable to locate package python3 W: Failed to fetch "
            "http://a.example/  Could not connect; see ") in done.stderr


def test_root_installs_nothing_if_the_user_declines(
        machine: dict[str, str], tmp_path: Path) -> None:
    identity = Path(machine["PATH"].split(":")[0]) / "id"
    identity.write_text("#!/bin/sh\necho 0\n")
    machine["ESSD_INSTALL"] = "no"
    assert start(machine, "demo").returncode == 2
    assert not (tmp_path / "apt").exists()


def test_a_cache_that_cannot_be_made_is_one_line(machine: dict[str, str]) -> None:
    """The launcher says so first; the installed package has no launcher."""
    done = subprocess.run(
        [sys.executable, "-m", "essd", "doctor"], check=False, text=True, timeout=60,
        stdin=subprocess.DEVNULL, capture_output=True,
        env={**machine, "ESSD_CACHE": "/dev/null/x", "PYTHONPATH": str(paths.TOP / "tools")})
    assert done.returncode == 2 and done.stderr == ""
    assert "folder for the cache: /dev/null/x: /dev/null is not a folder" in " ".join(
        done.stdout.split())
    with pytest.MonkeyPatch.context() as patched, pytest.raises(
            EssdError, match="cannot create the folder /dev/null/x: Not a directory; ESSD_CACHE"):
        patched.setenv("ESSD_CACHE", "/dev/null/x")
        paths.cache()


def test_importing_the_package_makes_no_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import essd.base.paths as p; p.IS_INSTALLED = True\n"
         "import essd.cli, essd.build.fw_build"], check=False, text=True, timeout=60,
        capture_output=True, env={**os.environ, "ESSD_CACHE": str(tmp_path / "none"),
                                  "PYTHONPATH": str(paths.TOP / "tools")})
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "none").exists()
