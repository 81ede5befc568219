# SPDX-License-Identifier: BSD-2-Clause
"""Guests with more packages than the default one: their lists and cache keys."""

from pathlib import Path

import pytest

from essd import guest_build, guest_variant, paths
from essd.config import Config, Host, Link
from essd.errors import EssdError
from essd.scenarios import FOLDER
from essd.vm import guest_command

GUESTS = [FOLDER / "guest", paths.TOP / "tests/blktests/guest"]


@pytest.mark.parametrize("guest", GUESTS)
@pytest.mark.parametrize("name", ["packages.txt", "modules.txt", "skip.txt"])
def test_a_list_is_read_without_its_comments(name: str, guest: Path) -> None:
    lines = guest_variant.read_list(guest / name)
    assert lines and len(set(lines)) == len(lines)
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
