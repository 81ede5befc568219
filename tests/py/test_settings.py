# SPDX-License-Identifier: BSD-2-Clause
"""Keys, values and mistakes of the configuration, compared with the firmware's; YAML."""

import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from essd import cli
from essd.drive import mgmt
from essd.instance.instance import Instance
from essd.settings import block as config_block, settings, yaml_values as settings_yaml
from essd.setup import settings_cmd, setup
from essd.setup.setup import Wish
from essd.storage import flash

TOP = Path(__file__).resolve().parents[2]
LAYER = "firmware/settings"
SOURCES = ["tests/py/config_say.c", f"{LAYER}/config_check.c",
           f"{LAYER}/config_text.c", f"{LAYER}/config_value.c",
           "firmware/text/ip_text.c", "firmware/hal/log_format.c",
           "firmware/store/config.c", "lib/crc32_small.c", "lib/assert_native.c"]
MIXED = {
    "name": "rack7-slot3", "port.0.ipv4": "10.0.0.10/24",
    "port.0.ipv4-gateway": "10.0.0.1", "port.1.ipv6": "fd00::10/64",
    "port.1.ipv6-gateway": "fe80::1", "port.0.dhcp": "on", "port.1.slaac": "on",
    "port.0.probe": "on", "port.1.vlan": "4094", "port.0.priority": "7",
    "port.0.mtu": "9000", "port.1.fec": "rs", "port.0.fec": "none",
    "port.1.lldp": "receive", "address.3.ip": "10.0.0.11/24", "address.3.port": "1",
    "address.3.vlan": "5", "address.1.ip": "fd00::11/64", "dhcp.fast": "on",
    "lldp.interval": "1", "lldp.hold": "2", "sntp.server": "10.0.0.9",
    "sntp.poll": "64", "lag.mode": "active-standby", "port.1.mtu": "9000",
    "lag.lacp-fast": "on", "lag.primary": "1", "lag.revert": "on", "roce.v1": "on",
    "roce.cnp": "off", "roce.dcqcn": "off", "pfc": "0,3,7", "echo": "on", "mdns": "on",
    "tcp.echo": "on", "nvme.tcp": "on", "nvme.iwarp": "on", "iwarp.crc": "off",
    "discovery.rdma": "iwarp", "aoe.export": "1,3-5,128", "aoe.shelf": "65534",
}


@pytest.fixture(scope="session")
def say(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("config") / "config_say"
    subprocess.run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", TOP,
                    *(TOP / name for name in SOURCES), "-o", program], check=True,
                   timeout=120)
    return program


def firmware(say: Path, lines: list[tuple[str, str]]) -> list[str]:
    text = "".join(f"{key} {value}\n" for key, value in lines)
    return subprocess.run([say], input=text, check=True, capture_output=True,
                          text=True, timeout=60).stdout.splitlines()


def tools(lines: list[tuple[str, str]]) -> list[str]:
    """What the tools' settings make of the lines that config_say reads."""
    said = []
    values = dict(settings.DEFAULTS)
    for key, value in lines:
        try:
            values[key] = settings.parse(key, value)
        except settings.Refused as refused:
            said.append(f"error: {refused}")
    said += [f"mistake: {text}" for text in settings.check(values)]
    return said + [f"{key} {value}" for key, value in values.items()]


BAD = ["", "none", "all", "on", "off", "yes", "0", "1", "2", "3", "4", "7", "8", "10",
       "25", "30", "100", "101", "1279", "1280", "1500", "3600", "3601", "4094", "4095",
       "9000", "9001", "65535", "65536", "010", "-1", "+1", "1.0", "0x10", "99999999999",
       "10.0.0.1", "10.0.0.1/24", "10.0.0.0/24", "10.0.0.255/24", "10.0.0.1/31",
       "10.0.0.1/0", "10.0.0.1/33", "10.0.0.1/024", "10.0.0.1/", "10.0.0.256/24",
       "0.0.0.0", "0.0.0.0/8", "127.0.0.1/8", "127.0.0.1", "224.0.0.1/4", "224.0.0.1",
       "255.255.255.255", "240.0.0.1/8", "01.2.3.4", "fd00::1", "fd00::1/64",
       "FD00::00A1/64", "fd00::1/0", "fd00::1/129", "fd00::/64", "fe80::1", "fe80::1/64",
       "ff02::1", "ff02::1/64", "::", "::/64", "::1", "::1/128", "::ffff:10.0.0.1",
       "::ffff:a00:1", "::ffff:a00:1/128", "fd00::1%eth0", "fd00:0:0:0:1:0:0:1/64",
       "fd00:1:0:3:4:5:6:7", "1:2:3:4:5:6:7", "fc", "rs", "both", "send", "receive",
       "lacp", "active-standby", "0,3,4", "3,0", "0,0", "0,", ",0", "0,1,2,3,4,5,6,7",
       "0,8", "rack7", "x" * 32, "x" * 33, "x" * 90, "a/b", "~!", "None",
       "1,3-5", "1,2,3", "1-128", "128,1", "129", "3-1", "1-1", "2-3,3", "1-2-3", "1,,2",
       "1-", "-2", "01", "1,03", "1,3,5,7,9,11", "1,3,5,7,9,11,13", "1-3,4-5", "65534",
       "100-102,104-106,108-110,112-114,116-118,120-122"]


def test_tools_and_firmware_accept_the_same_values(say: Path) -> None:
    """Each key is tried with each value alone, so that no value hides another one."""
    for key in settings.KEYS:
        lines = [(key, value) for value in BAD]
        assert firmware(say, lines)[:-1] == tools(lines), key


@pytest.mark.parametrize("key", [
    "mtu", "port", "port.0", "port.2.mtu", "port.9", "port.x.mtu", "port.0.mut",
    "port.00.mtu", "port.10.mtu", "address.4.ip", "address.12.ip", "address.3",
    "lag", "lag.", "fec", "poll", "name.x", "PFC", "v1", ".", "k" * 90, "name.",
    "port.#.mtu", "addresses.0.ip"])
def test_tools_and_firmware_refuse_unknown_keys_in_the_same_words(say: Path, key: str) -> None:
    assert firmware(say, [(key, "1")])[0] == tools([(key, "1")])[0]


@pytest.mark.parametrize("changes", [
    {"port.0.ipv4": "10.0.0.1/24", "port.1.ipv4": "10.0.0.1/24"},
    {"port.0.ipv4": "10.0.0.1/24", "address.0.ip": "10.0.0.1/8",
     "address.1.ip": "10.0.0.1/9", "address.2.ip": "fd00::1/64",
     "address.3.ip": "fd00::1/64"},
    {"port.0.ipv4": "10.0.0.255/24", "port.0.ipv6": "ff02::1/64"},
    {"port.0.ipv4": "10.0.0.0/31", "port.1.ipv4": "10.0.0.1/31"},
    {"port.0.ipv4": "255.0.0.1/32", "port.1.ipv4": "223.255.255.255/32"},
    {"port.0.ipv4-gateway": "10.0.0.1", "port.1.ipv6-gateway": "fe80::1"},
    {"port.0.ipv4": "10.0.0.10/24", "port.0.ipv4-gateway": "10.0.1.1"},
    {"port.0.ipv4": "10.0.0.10/24", "port.0.ipv4-gateway": "10.0.0.10"},
    {"port.0.ipv4": "10.0.0.10/23", "port.0.ipv4-gateway": "10.0.1.255"},
    {"port.0.ipv4": "10.0.0.10/24", "port.0.ipv4-gateway": "224.0.0.1"},
    {"port.0.ipv6": "fd00::1/63", "port.0.ipv6-gateway": "fd00:0:0:1::1"},
    {"port.0.ipv6": "fd00::1/64", "port.0.ipv6-gateway": "fd00:0:0:1::1"},
    {"port.0.ipv6": "fd00::1/64", "port.0.ipv6-gateway": "febf::1"},
    {"port.0.ipv6": "fd00::1/64", "port.0.ipv6-gateway": "fec0::1"},
    {"port.0.speed": "10", "port.0.fec": "rs", "port.1.fec": "rs"},
    {"port.0.speed": "10", "port.1.speed": "10", "port.1.fec": "rs"},
    {"port.0.mtu": "9000", "lag.mode": "lacp"}, {"port.0.mtu": "9000"},
    {"address.0.port": "1", "address.3.vlan": "7"},
    {"sntp.server": "ff02::1"}, {"sntp.server": "127.0.0.1"}, MIXED,
])
def test_tools_and_firmware_find_the_same_inconsistencies(say: Path,
                                               changes: dict[str, str]) -> None:
    lines = list(changes.items())
    assert firmware(say, lines)[:-1] == tools(lines)


def test_tools_and_firmware_write_the_same_bytes_to_flash(say: Path) -> None:
    assert settings.check(settings.DEFAULTS | MIXED) == []
    config = settings.to_config(settings.DEFAULTS | MIXED)
    # The tools write defaults as numbers where the firmware writes 0.
    lines = list((settings.DEFAULTS | MIXED).items())
    assert config.pack()[24:].hex() == firmware(say, lines)[-1]
    assert settings.from_config(config) == settings.DEFAULTS | MIXED
    back = config_block.Config.unpack(config.pack())
    assert back is not None and settings.from_config(back) == settings.DEFAULTS | MIXED


def test_yaml_that_is_written_is_read_back() -> None:
    for values in (settings.DEFAULTS, settings.DEFAULTS | MIXED):
        text = settings_yaml.dump(values)
        assert settings_yaml.load(text, "x") == (values, [])
    assert "port:\n  0:\n    ipv4: 10.0.0.10/24\n" in settings_yaml.dump(
        settings.DEFAULTS | MIXED)


@pytest.mark.parametrize("name", ["-", "#1", "a:b", "a#b", "{x}", "[x", "&a", "*a", "!t",
                                  "%d", "@x", "`x`", "'x'", '"x"', "null", "~", "yes",
                                  "12", "0x1f", "1:30", "a,b", "|", ">", "?", "k:"])
def test_yaml_keeps_names_that_look_like_other_types(name: str) -> None:
    text = settings_yaml.dump(settings.DEFAULTS | {"name": name})
    values, mistakes = settings_yaml.load(text, "x")
    if name in ("~", "null"):       # YAML's word for none
        return
    assert (values["name"], mistakes) == (name, [])


def test_yaml_may_have_lists_nested_keys_and_its_own_words() -> None:
    values, mistakes = settings_yaml.load("""
name: rack7      # a comment
port:
  - {ipv4: 10.0.0.10/24, dhcp: no, slaac: True}
  - mtu: 9000
    fec: none
    ipv6: ~
address: [{ip: fd00::1/64, vlan: 7}]
pfc: [0, 3]
lag.mode: lacp
lldp: {interval: 1}
echo: yes
""", "x")
    assert mistakes == []
    assert values == {
        "name": "rack7", "port.0.ipv4": "10.0.0.10/24", "port.0.dhcp": "off",
        "port.0.slaac": "on", "port.1.mtu": "9000", "port.1.fec": "none",
        "port.1.ipv6": "none", "address.0.ip": "fd00::1/64", "address.0.vlan": "7",
        "pfc": "0,3", "lag.mode": "lacp", "lldp.interval": "1", "echo": "on"}


def test_every_mistake_in_a_file_is_reported_with_its_line() -> None:
    _, mistakes = settings_yaml.load("""port:
  0:
    mut: 9000
    mtu: 100
    mtu: 1500
  2: {mtu: 1500}
address: [{ip: none}, {ip: none}, {ip: none}, {ip: none}, {ip: 10.0.0.9/24}]
nome: rack7
echo: [on]
lag: lacp
? [a]
: b
sntp: {server: {ipv4: {a: {b: c}}}}
""", "f.yaml")
    assert mistakes == [
        "f.yaml:3: there is no key port.0.mut; the nearest is port.0.mtu",
        "f.yaml:4: port.0.mtu: 100 is not a number from 1280 to 9000",
        "f.yaml:5: port.0.mtu: the key occurs twice",
        "f.yaml:6: port.2.mtu: the ports are 0 and 1",
        "f.yaml:7: address.4.ip: a drive has eight addresses: two of each port, and "
        "address.0 to address.3",
        "f.yaml:8: there is no key nome; the nearest is name",
        "f.yaml:9: echo: the value cannot be a list",
        "f.yaml:10: there is no key lag; the nearest is lag.mode",
        "f.yaml:11: a key must be one word",
        "f.yaml:13: sntp.server.ipv4.a.b: the key has more than 4 levels",
    ]


@pytest.mark.parametrize("text", ["- 1", "x", "a: [", "a: b: c", "\t- x", "{", "&a [*a]",
                                  "port: &a {0: *a}", "\x01"])
def test_a_file_that_is_not_a_configuration_has_mistakes(text: str) -> None:
    values, mistakes = settings_yaml.load(text, "x")
    assert mistakes and not values
    assert all(m.startswith("x:") for m in mistakes)


def test_an_empty_file_changes_nothing() -> None:
    assert settings_yaml.load("", "x") == ({}, [])
    assert settings_yaml.load("# nothing\n", "x") == ({}, [])


def test_changes_are_checked_together_with_the_other_values(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("port: {0: {speed: 10}}\n")
    with pytest.raises(settings_cmd.Mistakes, match="both ports need the same speed"):
        settings_cmd.wanted(settings.DEFAULTS, path)
    whole = settings_cmd.wanted(settings.DEFAULTS, path, ["port.1.speed=10", "echo=on"])
    assert (whole["port.0.speed"], whole["port.1.speed"], whole["echo"]) == (
        "10", "10", "on")
    with pytest.raises(settings_cmd.Mistakes) as caught:
        settings_cmd.wanted(settings.DEFAULTS, None, ["eco=on", "echo", "echo=maybe"])
    assert caught.value.lines == [
        "there is no key eco; the nearest is echo", "--set echo: write KEY=VALUE",
        "echo: maybe is not on or off"]
    with pytest.raises(settings_cmd.EssdError, match="No such file"):
        settings_cmd.wanted(settings.DEFAULTS, tmp_path / "g.yaml")


def test_the_drives_answer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [{"key": key, "draft": value, "saved": value, "in-force": value}
            for key, value in settings.DEFAULTS.items()]
    keys[1] |= {"draft": "10.0.0.9/24", "saved": "none", "in-force": "10.0.0.8/24"}
    monkeypatch.setattr(mgmt, "ask", lambda _instance, request: {"keys": keys}
                        if request == "config" else {})
    said = settings_cmd.ask_running(Instance("unit"))
    assert said.saved[keys[1]["key"]] == "none"
    assert said.in_force[keys[1]["key"]] == "10.0.0.8/24"
    keys.pop()
    with pytest.raises(settings_cmd.EssdError, match="another version"):
        settings_cmd.ask_running(Instance("unit"))


def test_the_list_of_keys_says_which_take_effect_at_once(say: Path) -> None:
    text = settings_cmd.describe()
    rows = re.findall(r"^(\S+): .* \(default .*; (at once|next start)\)$", text, re.M)
    told = {re.sub(r"\.\d\.", ".N.", key) for key in settings.KEYS}
    assert {key for key, _ in rows} == told
    live = subprocess.run([say, "live"], check=True, capture_output=True,
                          text=True, timeout=60).stdout.split()
    assert {re.sub(r"\.\d\.", ".N.", key) for key in live} == {
        key for key, when in rows if when == "at once"}
    assert max(map(len, text.splitlines())) <= settings_cmd.COLUMNS
    assert "](" not in text and "`" not in text
    for page in re.findall(r"docs/\S*\.md", text):
        assert (TOP / page).exists(), page


def test_the_list_of_keys_needs_no_drive() -> None:
    said = CliRunner().invoke(cli.app, ["config", "--keys"])
    assert said.exit_code == 0
    assert "port.N.mtu: 1280 to 9000 (default 1500; next start)" in said.output


def test_the_printed_configuration_marks_the_keys_that_wait_for_a_start() -> None:
    text = settings_cmd.dump(settings.DEFAULTS)
    assert settings_yaml.load(text, "printed") == (settings.DEFAULTS, [])
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines.count("mtu: 1500 # from the next start") == 2
    assert "name: none" in lines and "interval: 30" in lines


def test_a_restart_is_offered_or_made_for_keys_that_wait(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(Instance, "ask", lambda _self, request, **words: asked.append(
        (request, words)))
    settings_cmd.report(Instance("unit"), [], restarts=True)
    assert not asked
    settings_cmd.report(Instance("unit"), ["port.0.mtu"])
    assert not asked
    said = capsys.readouterr().out
    assert "from the drive's next start: port.0.mtu\n" in said
    assert "reset --name unit restarts the firmware now" in said
    settings_cmd.report(Instance("unit", "drive1"), ["port.0.mtu"])
    assert "./essd reset --name unit --part drive1 restarts" in " ".join(
        capsys.readouterr().out.split())
    settings_cmd.report(Instance("unit"), ["port.0.mtu"], restarts=True)
    assert asked == [("reset", {"part": "drive", "halt": False})]
    assert "the firmware restarts, with the new port.0.mtu\n" in capsys.readouterr().out


def test_the_configuration_of_a_drive_without_power_is_in_its_flash(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_DATA", str(tmp_path))
    instance = Instance("test-settings")
    with pytest.raises(settings_cmd.EssdError, match="there is no drive"):
        settings_cmd.read(instance)
    assert settings_cmd.base(instance, is_check=True) == settings.DEFAULTS
    path = setup.flash_path(instance.name)
    path.parent.mkdir()
    image = flash.FlashImage()
    image.config = config_block.Config(sequence=7)
    image.save(path)
    assert settings_cmd.read(instance) == settings.DEFAULTS
    assert settings_cmd.write(instance, settings.DEFAULTS | MIXED) == []
    assert settings_cmd.read(instance) == settings.DEFAULTS | MIXED


def test_up_configures_a_new_drive_with_a_file(tmp_path: Path,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_DATA", str(tmp_path))
    path = tmp_path / "f.yaml"
    path.write_text("name: filed\nport: {1: {ipv4: 10.5.0.1/16, mtu: 9000}}\n")
    wish = Wish(name="test-settings", ports=["10.4.0.1/16", None])
    wish.config = settings_cmd.for_start(wish, path)
    config = setup.wanted(wish, None)
    assert [str(port.ipv4) for port in config.ports] == ["10.4.0.1/16", "10.5.0.1/16"]
    assert ([port.mtu for port in config.ports], config.services.name) == (
        [1500, 9000], "filed")
    assert [link.mtu for link in setup.links(wish, config)] == [1500, 9000]
    path.write_text("port: {1: {ipv4: 10.4.0.1/16}}\n")
    with pytest.raises(settings_cmd.Mistakes, match="port.0.ipv4 already"):
        settings_cmd.for_start(wish, path)
