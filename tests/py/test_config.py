# SPDX-License-Identifier: BSD-2-Clause
"""The user's wishes are checked and become the configuration of drive and host."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from essd.base import show
from essd.base.errors import EssdError
from essd.instance.config import Config, Drive, Host, Link, Peer, host_address
from essd.instance.instance import Instance
from essd.machine import vm
from essd.machine.drive import drive_command
from essd.machine.vm import guest_command
from essd.settings import block as config_block
from essd.setup import doctor, prepare, setup
from essd.setup.setup import Wish


@pytest.mark.parametrize(("target", "host"), [
    ("10.0.0.10/24", "10.0.0.1/24"), ("10.0.0.1/24", "10.0.0.2/24"),
    ("192.168.7.1/30", "192.168.7.2/30"), ("fd00::10/64", "fd00::1/64")])
def test_the_host_gets_the_first_free_address(target: str, host: str) -> None:
    assert host_address(target) == host


def test_configuration_survives_json() -> None:
    config = Config("x", "/guest", "tcg", [Link(0, ["10.0.0.10/24"], 9000, 0, True)],
                    {"drive": Drive("q", "f", "m", "raw", "nqn.x")}, {"host": Host()},
                    Peer())
    assert Config.from_json(config.to_json()) == config


def test_a_comma_in_a_file_name_does_not_begin_an_option(tmp_path: Path) -> None:
    config = Config("x", "/guest", "tcg", [],
                    {"drive": Drive("q", "/f,l", "/m,read-only=on", "raw", "nqn.x")})
    words = drive_command(config, tmp_path)
    assert any("file.filename=/f,,l" in word for word in words)
    node = json.loads(words[words.index("-blockdev") + 1])
    assert node["file"] == {"driver": "file", "filename": "/m,read-only=on",
                            "discard": "unmap"}
    assert "backing" not in node


def test_qemu_gets_explicit_formats_and_opens_no_backing_file(tmp_path: Path) -> None:
    config = Config("x", "/guest", "tcg", [],
                    {"drive": Drive("q", "/flash", "/media", "qcow2", "nqn.x")})
    words = drive_command(config, tmp_path)
    node = json.loads(words[words.index("-blockdev") + 1])
    assert (node["driver"], node["backing"]) == ("qcow2", None)
    assert node["file"]["driver"] == "file"
    drives = [words[n + 1] for n, word in enumerate(words) if word == "-drive"]
    drives += [one for one in guest_command(
        replace(config, hosts={"host": Host()}), "host", tmp_path) if one.startswith("if=")]
    assert len(drives) == 2
    for one in drives:
        assert "driver=raw,file.driver=file," in one.replace("readonly=on,", "")


@pytest.mark.parametrize("has_seccomp", [True, False])
def test_qemu_runs_in_a_sandbox_if_the_kernel_supports_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_seccomp: bool) -> None:
    monkeypatch.setattr(vm, "has_seccomp", lambda: has_seccomp)
    config = Config("x", "/guest", "tcg", [],
                    {"drive": Drive("q", "f", "m", "raw", "nqn.x")}, {"host": Host()})
    for words in (drive_command(config, tmp_path),
                  guest_command(config, "host", tmp_path)):
        assert ("-sandbox" in words) == has_seccomp
    assert doctor.sandbox().text.startswith("used" if has_seccomp else "not used")
    with show.console.capture() as captured:
        prepare.report_sandbox()
    assert ("without its sandbox" in captured.get()) == (not has_seccomp)


@pytest.mark.parametrize("text", [
    "10.0.0.300/24", "10.0.0.1/33", "", "10.0.0.0/24", "10.0.0.255/24",
    "10.0.0.1/31", "224.0.0.1/24", "127.0.0.1/8", "10.0.0.1/24,10.0.9.1/24",
    "host/24"])
def test_bad_addresses_are_refused(text: str) -> None:
    with pytest.raises(EssdError):
        setup.parse_addresses(text)


def test_a_port_may_have_both_families() -> None:
    assert setup.parse_addresses("10.0.0.10/24, fd00::10/64") == [
        "10.0.0.10/24", "fd00::10/64"]


@pytest.mark.parametrize("ports", [
    ["10.0.0.10/24", "10.0.0.11/24"], ["10.0.0.10/16", "10.0.1.10/24"],
    ["10.0.0.1/24,fd00::1/64", "10.0.1.1/24,fd00::2/64"]])
def test_both_ports_in_one_network_are_refused(ports: list[str]) -> None:
    with pytest.raises(EssdError, match="separate networks"):
        setup.far_ends(setup.wanted(Wish(ports=ports), None))


@pytest.mark.parametrize("mtu", [0, 1279, 9001])
def test_mtu_out_of_range_is_refused(mtu: int) -> None:
    with pytest.raises(EssdError, match="MTU"):
        setup.wanted(Wish(mtu=mtu), None)


def test_settings_that_are_not_asked_for_do_not_change() -> None:
    kept = config_block.Config((config_block.Port.of("10.7.0.9/24", mtu=9000, fec="rs"),
                         config_block.Port()), services=config_block.Services(name="seven"))
    assert setup.wanted(Wish(), kept) == kept
    assert [x.targets for x in setup.links(Wish(), kept)] == [
        ["10.7.0.9/24"], ["10.0.1.10/24"]]
    other = setup.wanted(Wish(ports=[None, "10.8.0.1/24"], mtu=4200), kept)
    assert [str(p.ipv4) for p in other.ports] == ["10.7.0.9/24", "10.8.0.1/24"]
    assert [(p.mtu, p.fec) for p in other.ports] == [(4200, "rs"), (4200, "fc")]
    assert other.services == kept.services


def test_a_port_without_an_address_gets_a_network_of_its_own() -> None:
    kept = config_block.Config((config_block.Port(), config_block.Port.of("10.0.0.1/8")))
    assert setup.far_ends(kept)[0] == ["192.168.3.10/24"]


def test_settings_that_the_drive_would_not_use_are_refused() -> None:
    kept = config_block.Config((replace(config_block.Port.of("10.0.0.10/24"), mtu=9000),
                         config_block.Port.of("10.0.1.10/24")))
    with pytest.raises(EssdError, match="aggregated ports need the same MTU"):
        setup.wanted(Wish(network=config_block.Network(lag="lacp")), kept)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", "."])
def test_a_name_that_is_a_path_is_refused(name: str) -> None:
    with pytest.raises(EssdError, match="use only"):
        Instance(name)


@pytest.mark.parametrize(("text", "found"), [
    ("4x1G", (4, 1024, False)), ("128", (128, 0, False)), ("2x512M@4096", (2, 512, True)),
    ("3@4096", (3, 0, True)), ("1x65535M@512", (1, 65535, False))])
def test_a_division_into_namespaces_is_parsed(text: str,
                                              found: tuple[int, int, bool]) -> None:
    assert setup.parse_namespaces(text) == found
    network = setup.wanted(Wish(namespaces=text), None).network
    assert (network.ns_count, network.ns_size, network.ns_4k) == found
    assert config_block.Network.unpack(network.pack()) == network


@pytest.mark.parametrize("text", ["", "0", "129", "4x", "4x0G", "0x1G", "4x1T", "4x64G",
                                  "4x1G@1024", "-1", "4x1g", "1 x 1G", "4x" + "9" * 5000 + "G"])
def test_a_division_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(EssdError, match="namespace"):
        setup.parse_namespaces(text)
