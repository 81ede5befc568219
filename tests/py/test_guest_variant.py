# SPDX-License-Identifier: BSD-2-Clause
"""Guests with more packages than the default one: their lists and cache keys."""

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from essd.api.scenarios import FOLDER
from essd.base import paths
from essd.base.errors import EssdError
from essd.build import guest_build, guest_variant
from essd.instance.config import Config, Host, Link
from essd.machine.vm import guest_command
from essd.setup import prepare

GUESTS = [FOLDER / "guest", paths.TOP / "tests/blktests/guest", guest_variant.PEERS]


@pytest.mark.parametrize("guest", GUESTS)
@pytest.mark.parametrize("name", ["packages.txt", "modules.txt", "skip.txt"])
def test_a_list_is_read_without_its_comments(name: str, guest: Path) -> None:
    lines = guest_variant.read_list(guest / name)
    assert lines or not (guest / name).exists()
    assert len(set(lines)) == len(lines)
    assert not any("#" in line for line in lines)


@pytest.mark.parametrize("guest", GUESTS)
def test_the_lists_repeat_nothing_that_the_default_guest_has(guest: Path) -> None:
    for name in ("packages.txt", "modules.txt"):
        assert not (set(guest_variant.read_list(guest / name))
                    & set(guest_build.read_list(name)))


def test_a_folder_without_a_package_list_is_no_guest(tmp_path: Path) -> None:
    with pytest.raises(EssdError, match="does not describe a guest"):
        guest_variant.check(tmp_path)
    (tmp_path / "packages.txt").write_text("mdadm\n")
    assert guest_variant.check(tmp_path) == tmp_path.resolve()


def test_each_file_of_the_folder_is_part_of_the_key(tmp_path: Path) -> None:
    (tmp_path / "rootfs/etc").mkdir(parents=True)
    (tmp_path / "packages.txt").write_text("mdadm\n")
    keys = {guest_variant.key(tmp_path)}
    (tmp_path / "rootfs/etc/motd").write_text("a")
    keys.add(guest_variant.key(tmp_path))
    (tmp_path / "rootfs/etc/motd").write_text("b")
    keys.add(guest_variant.key(tmp_path))
    (tmp_path / "rootfs/etc/motd").rename(tmp_path / "rootfs/etc/issue")
    keys.add(guest_variant.key(tmp_path))
    assert len(keys) == 4


def test_a_host_boots_its_own_guest_and_the_others_the_default_one(tmp_path: Path) -> None:
    config = Config("n", "/default", "tcg", [Link(0, ["10.0.0.10/24"])],
                    hosts={"host": Host(), "other": Host(guest="/own")})
    assert "/own/vmlinux" in guest_command(config, "other", tmp_path)
    assert "/default/vmlinux" in guest_command(config, "host", tmp_path)
    again = Config.from_json(config.to_json())
    assert again.guest_of("other") == "/own" and again.guest_of("peer") == "/default"


APT = """#!/bin/sh
case "$*" in
*indextargets*) echo "http://archive.invalid/debian trixie main" ;;
*update*) ;;
*no-such-thing*)
    echo "Reading package lists..."
    echo "E: Unable to locate package no-such-thing" >&2
    exit 100 ;;
*install*) echo "Inst bash (5.2 Debian:13 [amd64])" ;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and an apt that knows every package but one."""
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "keyring").touch()
    monkeypatch.setattr(guest_build, "KEYRING", tmp_path / "keyring")
    program = tmp_path / "bin/apt-get"
    program.parent.mkdir()
    program.write_text(APT)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path / "cache"


def described(folder: Path, package: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "packages.txt").write_text(f"{package}\n")
    return folder


def test_an_unknown_package_is_refused_before_anything_is_built(
        cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    for name, task in prepare.TASKS.items():
        monkeypatch.setitem(prepare.TASKS, name, replace(
            task, build=lambda progress, name=name: built.append(name),
            is_first=lambda: False))
    folder = described(tmp_path / "wrong", "no-such-thing")
    with pytest.raises(EssdError, match=r"wrong/packages.txt: apt-get failed \(status 100\): "
                                        "Unable to locate package no-such-thing; see "):
        prepare.prepare(variants=[folder])
    assert not built
    guest_variant.check_packages(described(tmp_path / "right", "mdadm"))


def test_a_kernel_is_fetched_while_no_other_build_fetches_packages(
        cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[bool] = []

    def fetch_kernel(_folder: Path, _log: Path) -> list[Path]:
        locked.append(paths.is_locked(paths.packages_lock()))
        return []

    monkeypatch.setattr(guest_variant, "fetch_kernel", fetch_kernel)
    guest_variant.check_packages(described(tmp_path / "right", "mdadm"))
    assert locked == [True]


def test_two_folders_of_one_name_have_two_logs(cache: Path, tmp_path: Path) -> None:
    for number, package in enumerate(("mdadm", "no-such-thing")):
        folder = described(tmp_path / str(number) / "guest", package)
        with contextlib.suppress(EssdError):
            guest_variant.build(folder, tmp_path / "target", lambda text: None)
    logs = {path.name: path.read_text() for path in (cache / "log").iterdir()}
    assert len(logs) == 2
    assert all(name.startswith("guest-guest-build-") for name in logs)
    assert sum("no-such-thing" in text for text in logs.values()) == 1


def test_a_failed_build_shows_what_apt_calls_an_error(tmp_path: Path) -> None:
    with pytest.raises(EssdError, match=r"^sh failed \(status 1\): no space: Failed to fetch x; "
                                        f"see {tmp_path}/log$"):
        guest_build.run(tmp_path / "log", "sh", "-c", "echo Get:1; echo 'E: no space' >&2; "
                        "echo 'W: Failed to fetch x' >&2; echo 'W: Failed y'; exit 1")
    with pytest.raises(EssdError, match=r"^false failed \(status 1\); see "):
        guest_build.run(tmp_path / "log", "false")


def test_a_folder_keeps_two_guests_and_leaves_those_of_others(cache: Path,
                                                              tmp_path: Path) -> None:
    folder = described(tmp_path / "checkout" / "peers" / "guest", "mdadm")
    same = described(tmp_path / "another" / "peers" / "guest", "mdadm")
    other = described(tmp_path / "checkout" / "stas" / "guest", "mdadm")
    made = {}
    for number, whose in enumerate([None, other, folder, same, other, folder, folder]):
        made[number] = guest_variant.cache_folder() / f"{number:016x}"
        made[number].mkdir(parents=True)
        if whose is not None:
            (made[number] / guest_variant.DESCRIPTION).write_text(guest_variant.name_of(whose))
        os.utime(made[number], (number, number))
    guest_variant.forget_older(folder, made[6])
    assert [number for number, path in made.items() if path.exists()] == [1, 4, 5, 6]
