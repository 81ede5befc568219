# SPDX-License-Identifier: BSD-2-Clause
"""Topologies: what a file means, what is refused, and what is started."""

import dataclasses
from pathlib import Path

import pytest

from essd.base import paths
from essd.base.errors import Mistakes
from essd.instance.config import Config, Drive, End, Host, Switch
from essd.machine.switch import switch_command
from essd.machine.vm import guest_command
from essd.settings import block as config_block
from essd.setup import setup
from essd.topology import (command as topology_cmd, reader as topology_yaml,
                           setup as topology_setup, topology)
from essd.topology.topology import Topology

EXAMPLES = paths.TOP / "examples/topologies"
FOUR = topology.of_drives(4, "256M", None, 1, True)


def load(text: str) -> Topology:
    return topology_yaml.load(text, "t.yaml", Path("/nowhere"))


def mistakes(text: str) -> list[str]:
    with pytest.raises(Mistakes) as refused:
        load(text)
    return refused.value.lines


def cables(found: Topology) -> list[str]:
    return [f"{cable.ends[0]} - {cable.ends[1]}" for cable in found.cables]


def test_four_drives_have_a_host_and_two_switches() -> None:
    found = load(FOUR)
    assert list(found.drives) == ["drive0", "drive1", "drive2", "drive3"]
    assert cables(found) == [
        "host:0 - switch0:0", "host:1 - switch1:0",
        *(f"drive{n}:0 - switch0:{n + 1}" for n in range(4)),
        *(f"drive{n}:1 - switch1:{n + 1}" for n in range(4))]
    assert [str(found.drives["drive3"].ports[n][0]) for n in (0, 1)] == [
        "10.0.0.13/24", "10.0.1.13/24"]
    assert {n: [str(x) for x in a] for n, a in found.hosts["host"].cards.items()} == {
        0: ["10.0.0.1/24"], 1: ["10.0.1.1/24"]}


def test_both_ports_at_one_switch_give_the_host_an_address_in_each_network() -> None:
    found = load("drives: {'drive[0-1]': {}}\nhosts: {a: {}, b: {}}\nswitches: {s: }\n"
                 "cables:\n- drive0:[0-1] - s\n- drive1:[0-1] - s\n- a - s\n- b - s\n")
    assert [[str(x) for x in found.hosts[host].cards[0]] for host in "ab"] == [
        ["10.0.0.1/24", "10.0.1.1/24"], ["10.0.0.2/24", "10.0.1.2/24"]]


def test_addresses_count_up_and_are_kept_apart_by_network() -> None:
    found = load("drives:\n  d[0-1]: {port0: '10.5.0.7/24,fd00::7/64'}\n"
                 "hosts: {h: {}}\ncables:\n- h - d0:0\n- d1:0 - dial=/tmp/x\n")
    assert [str(x) for x in found.drives["d1"].ports[0]] == ["10.5.0.8/24", "fd00::8/64"]
    assert [str(x) for x in found.hosts["h"].cards[0]] == ["10.5.0.1/24", "fd00::1/64"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda x: x.stem)
def test_the_examples_are_valid(path: Path) -> None:
    found = topology_yaml.read(path)
    assert found.cables
    if path.stem == "ebof-24":
        assert (len(found.drives), len(found.hosts), len(found.switches)) == (24, 2, 2)
        assert topology_setup.need_mib(found) < 8 * 1024


BASE = "drives:\n  drive[0-3]: {}\nswitches:\n  switch0: {}\ncables:\n"


@pytest.mark.parametrize("text, said", [
    ("drive: {}", "1:1: a topology cannot have 'drive'; did you mean drives?"),
    ("", "1:1: the file is empty"), ("x", "1:1: a topology: write keys and values"),
    ("drives: {a: {}", "1:15: not valid YAML"),
    ("drives: {d[0-1]: {}}", "1:11: not valid YAML: expected ',' or '}', but got '[' "
     "(inside braces, put a name such as drive[0-3] in quotes)"),
    ("drives:\n  a\0: {}", "2:4: not valid YAML: the character #x0000 is not allowed"),
    ("[" * 5000, "1:1: not valid YAML: the nesting is too deep"),
    ("drives:\n  drive0: {syze: 1G}", "2:12: a drive cannot have 'syze'; did you mean "
     "size?"),
    ("drives:\n  drive0: {size: 1}", "2:18: a drive:"),
    ("drives:\n  drive0: {mtu: 100}", "2:17: a drive: the MTU 100 is not a number"),
    ("drives:\n  drive0: {port0: 10.0.0.300/24}", "2:19: a drive: '10.0.0.300/24' is not a"
     " valid address"),
    ("drives:\n  d[0-9]: {port0: 10.0.0.250/24}", "2:3: d5: 10.0.0.0/24 has no room"),
    ("drives:\n  Drive: {}", "2:3: 'Drive' cannot be a part's name"),
    ("drives: {a: {}}\nhosts:\n  a: {}", "3:3: a is there already, in line 1"),
    ("drives:\n  d[0-64]: {}", "2:3: d[0-64]: the range 0-64 has more than 64"),
    ("drives: {" + ", ".join(f"'d{n}_[0-63]': {{}}" for n in range(5)) + "}",
     "1:9: 320 drives are more than 64"),
    ("drives: {'d[0-1]': {port0: 10.0.0.1/30}}\nhosts: {h: {}}\nswitches: {s: {}}\n"
     "cables: ['d[0-1]:0 - s', h - s]", "2:9: h:0: 10.0.0.0/30 has no free address"),
    ("drives: {d: {}}\nswitches: {s: {}}\ncables: [{cable: d:0 - s, delay: 61s}]",
     "3:34: a cable: delay '61s': must be at most 60s"),
    ("drives: {d: {config: no.yaml}}", "1:22: a drive: there is no file /nowhere/no.yaml"),
    ("hosts:\n  h: {memory: 1}", "2:15: a host: 1 is not a memory size"),
    ("hosts:\n  h: {cpus: x}", "2:13: a host: x is not a number of CPUs"),
    ("switches:\n  s: {link-local: maybe}", "2:19: a switch: link-local 'maybe': must be "
     "drop or forward"),
    (BASE + "- drive0:0 - swich0", "6:3: there is no part swich0; did you mean switch0?"),
    (BASE + "- drive0 - switch0", "6:3: drive0 has two ports: write drive0:0 or drive0:1"),
    (BASE + "- drive0:2 - switch0", "6:3: drive0:2: a drive's ports are 0 to 1"),
    (BASE + "- drive0:x - switch0", "6:3: drive0:x: 'x' is not the number of a port"),
    (BASE + "- drive0:0 - switch0:3", "6:3: switch0:3: a switch numbers its ports"),
    (BASE + "- drive0:0 - switch0\n- drive0:0 - switch0", "7:3: drive0:0 has a cable "
     "already"),
    (BASE + "- drive0:0 - drive1:0", "6:3: drive0:0 - drive1:0: put a switch between"),
    (BASE + "- drive0:0 - iface=eth0", "6:3: drive0:0 - iface=eth0: put a switch between a "
     "drive and a network interface"),
    (BASE + "- switch0 - switch0", "6:3: both ends are at switch0"),
    (BASE + "- drive[0-2]:0 - drive[0-1]:1", "has 3 ends on one side and 2 on the other"),
    (BASE + "- drive0:0", "6:3: 'drive0:0' is not a cable: write its two ends"),
    (BASE + "- drive0:0 - lisen=/x", "6:3: lisen=/x: a cable cannot lead to 'lisen': did "
     "you mean listen=PATH?"),
    (BASE + "- {cable: drive0:0 - switch0, los: 1}", "a cable cannot have 'los'; did you "
     "mean loss?"),
    (BASE + "- {cable: drive0:0 - switch0, loss: 2}", "6:37: a cable: loss '2': must be a "
     "probability such as 0.01"),
    (BASE + "- {cable: drive0:0 - dial=/x, loss: 1}", "loss is a setting of a switch's "
     "port"),
    (BASE + "- {loss: 1}", "6:3: a cable needs its two ends"),
    (BASE + "- {cable: drive0:0 - switch0, link: vhost}", "6:37: a cable: link 'vhost': must be "
     "stream or vhost-user"),
    (BASE + "- {cable: drive0:0 - switch0, link: vhost-user}", "6:11: drive0:0 - switch0:0: a "
     "cable of kind vhost-user leads from a host to a drive"),
    ("cables: x", "1:9: cables: write a list of cables"),
    (BASE + "- drive[0-2]:0 - switch0", "2:3: drive3 has no cable"),
    ("drives: {d: {port0: 10.0.0.1/24, port1: 10.0.0.2/24}}\ncables: ['d:0 - dial=/x']",
     "1:10: d: the two ports must be in separate networks"),
    ("drives: {a: {port0: 10.0.0.1/24}, b: {port0: 10.0.0.1/24}}\nswitches: {s: }\n"
     "cables:\n- a:0 - s\n- b:0 - s", "b:0 and a:0 have the same address, 10.0.0.1"),
    ("hosts: {h: }\nswitches: {s: }\ncables: [h - s]", "1:9: h:0 has no drive in its "
     "network: give h a card0: ADDR/LEN"),
])
def test_a_mistake_is_reported_with_its_place_in_one_line(text: str, said: str) -> None:
    lines = mistakes(text)
    assert any(said in line for line in lines), lines
    assert all(line.startswith("t.yaml:") and "\n" not in line for line in lines)


def test_all_mistakes_are_reported_in_their_order() -> None:
    lines = mistakes("drives:\n  drive0: {syze: 1, mtu: 1}\nhosts:\n  h: {cpu: 1}\n")
    assert [line.split(":")[1] for line in lines] == ["2", "2", "4"]


@pytest.mark.parametrize("count", [0, 64, -1])
def test_the_number_of_drives_is_limited(count: int) -> None:
    with pytest.raises(Exception, match="must be 1 to 63"):
        topology.of_drives(count, None, None, 1, True)


def test_several_hosts_have_a_card_at_each_switch() -> None:
    found = topology_yaml.load(topology.of_drives(1, None, None, 2, 3), "t.yaml", Path.cwd())
    assert list(found.hosts) == ["host0", "host1", "host2"]
    assert list(found.drives) == ["drive0"]
    for name in found.hosts:
        assert sum(any(end.part == name for end in cable.ends)
                   for cable in found.cables) == 2


@pytest.mark.parametrize("hosts", [-1, 9])
def test_the_number_of_hosts_is_limited(hosts: int) -> None:
    with pytest.raises(Exception, match="must be 1 to 8"):
        topology.of_drives(1, None, None, 1, hosts)


def config_of(found: Topology) -> Config:
    """The configuration, with names in place of files that a build makes."""
    settings = {name: config_block.Config((config_block.Port.of(str(drive.ports[0][0])),
                                    config_block.Port.of(str(drive.ports[1][0]), mtu=9000)))
                for name, drive in found.drives.items()}
    return Config("x", "/guest", "tcg", topology_setup.links(found, settings, False),
                  {name: Drive("q", f"{name}.flash", "m", "raw", f"nqn.{name}")
                   for name in found.drives},
                  {name: Host(mac=topology_setup.mac_prefix("x", name))
                   for name in found.hosts},
                  switches={name: Switch("sw", one.options,
                                         topology_setup.port_words(found, name))
                            for name, one in found.switches.items()})


def test_hosts_listen_and_switches_and_drives_connect(tmp_path: Path) -> None:
    found = load(FOUR + "  - {cable: switch0 - dial=/tmp/far, loss: 0.01, vlan: 7}\n"
                        "  - {cable: switch0 - switch1, speed: 10G, capture: yes}\n")
    config = config_of(found)
    words = switch_command(config, "switch0", tmp_path)
    ports = [words[n + 1] for n, word in enumerate(words) if word == "--port"]
    assert ports == [
        f"dial={tmp_path}/port0.sock,name=host.0",
        *(f"listen={tmp_path}/port{n + 2}.sock,name=drive{n}.0" for n in range(4)),
        "dial=/tmp/far,name=outside5,loss=0.01,vlan=7",
        f"listen={tmp_path}/port11.sock,name=switch1.5,speed=10G,"
        f"capture={tmp_path}/link11.pcap"]
    assert switch_command(config, "switch1", tmp_path)[-1] == \
        f"dial={tmp_path}/port11.sock,name=switch0.6"
    assert [link.ends[0].part for link in config.links[:4]] == [
        "host", "host", "switch0", "switch0"]
    assert Config.from_json(config.to_json()) == config


def test_a_drive_listens_at_a_cable_in_shared_memory(tmp_path: Path) -> None:
    found = load("drives: {d: }\nhosts: {h: }\ncables:\n- h - d:0\n"
                 "- {cable: h - d:1, link: vhost-user}\n")
    config = config_of(found)
    assert [link.ends[0].part for link in config.links] == ["h", "d"]
    assert [link.kind for link in config.links] == ["stream", "vhost-user"]
    assert f"socket,id=vhost1,reconnect=1,path={tmp_path}/port1.sock" in guest_command(
        config, "h", tmp_path)


def test_each_end_of_a_cable_has_the_mtu_of_its_network() -> None:
    config = config_of(load(FOUR))
    assert [link.mtu for link in config.links] == [1500, 9000] + 4 * [1500] + 4 * [9000]


def test_several_hosts_have_different_cards(tmp_path: Path) -> None:
    found = load("drives: {d: }\nhosts: {'host[0-1]': }\nswitches: {s: }\n"
                 "cables: ['d:0 - s', 'host[0-1] - s']")
    config = config_of(found)
    said = ["".join(word for word in guest_command(config, name, tmp_path)
                    if "essd.nic" in word) for name in ("host0", "host1")]
    assert "eth0,1500,10.0.0.1/24" in said[0] and "eth0,1500,10.0.0.2/24" in said[1]
    assert len({config.hosts[name].mac for name in config.hosts}) == 2
    assert all(host.mac.startswith("02:e5:5e:") for host in config.hosts.values())


def test_no_two_hosts_have_the_same_mac_addresses() -> None:
    names = [f"host{n}" for n in range(2000)]
    found = topology_setup.mac_prefixes("x", names)
    assert len({topology_setup.mac_prefix("x", name) for name in names}) < len(names)
    assert len({*found.values()}) == len(names)


def test_a_drive_of_a_topology_has_a_folder_of_its_own(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_DATA", str(tmp_path))
    assert setup.flash_path("x") == tmp_path / "x/flash.img"
    assert setup.flash_path("x", "drive3") == tmp_path / "x/drives/drive3/flash.img"
    for part in ("drive10", "drive9"):
        setup.flash_path("x", part).parent.mkdir(parents=True)
        setup.flash_path("x", part).write_bytes(b"")
    assert paths.kept_drives("x") == ["drive9", "drive10"]


def test_a_setting_that_the_drive_refuses_names_the_drive(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_DATA", str(tmp_path))
    found = load(FOUR)
    (tmp_path / "bad.yaml").write_text("port: {0: {mtu: 1}}\n")
    found.drives["drive2"] = dataclasses.replace(found.drives["drive2"],
                                                 config=tmp_path / "bad.yaml")
    with pytest.raises(Mistakes) as refused:
        topology_setup.settings_of(found, topology_setup.wishes(found, "x"))
    assert any("bad.yaml:1: port.0.mtu" in line for line in refused.value.lines)


def test_ends_know_their_places() -> None:
    (link, *_) = config_of(load(FOUR)).links
    assert link.far_end("host") == End("switch0", 0)
    assert link.far_end("switch0") == End("host", 0)


THREE = ("switches: {'s[0-2]': {}}\ndrives: {d: {}}\ncables:\n- d:0 - s0\n- s0 - s1\n"
         "- s1 - s2\n")


@pytest.mark.parametrize("more, warning", [
    ("", ""),
    ("- s2 - s0\n", "t.yaml:7:3: the cables of s2, s1 and s0 form a loop; frames would "
     "circulate in it, because switches have no spanning tree: leave out one of its cables"),
    ("- s0 - s1\n", "t.yaml:7:3: the cables of s0 and s1 form a loop; "),
    ("- s2 - tcp=192.0.2.7:7000\n", ""),
    # The first cables carry every VLAN; these carry one.
    ("- {cable: s2 - s0, vlan: 10}\n", "t.yaml:7:11: the cables of s2, s1 and s0 form"),
    ("- {cable: s2 - s0, trunk: 7+10-12, native: 9}\n", "t.yaml:7:11: the cables of s2, s1"),
])
def test_a_loop_of_switches_is_warned_about_with_its_place(more: str, warning: str) -> None:
    found = load(THREE + more).warnings
    assert len(found) == bool(warning) and warning in "".join(found)


@pytest.mark.parametrize("words, count", [
    (("vlan: 10", "vlan: 20"), 0), (("vlan: 10", "vlan: 10"), 1),
    (("trunk: 10-20", "vlan: 15"), 1), (("trunk: 10-20", "vlan: 21"), 0),
    (("trunk: 10-20, native: 21", "vlan: 21"), 1), (("trunk: all", "vlan: 21"), 1)])
def test_cables_of_different_vlans_form_no_loop(words: tuple[str, ...], count: int) -> None:
    text = "switches: {'s[0-1]': {}}\ndrives: {d: {}}\ncables:\n- d:0 - s0\n"
    text += "".join(f"- {{cable: s0 - s1, {word}}}\n" for word in words)
    assert len(load(text).warnings) == count


def test_the_examples_have_no_loop() -> None:
    for path in EXAMPLES.glob("*.yaml"):
        assert topology_yaml.read(path).warnings == []


def test_drawing_a_file_with_a_loop_says_so(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "loop.yaml"
    file.write_text(THREE + "- s2 - s0\n")
    topology_cmd.draw(file, "", tmp_path / "loop.svg")
    assert f"{file}:7:3: the cables of s2, s1 and s0 form a loop" in \
        " ".join(capsys.readouterr().out.split())


KEPT_PORTS = (config_block.Port.of(setup.DEFAULT_PORTS[0]),
              config_block.Port.of(setup.DEFAULT_PORTS[1]))


def transports_of(words: str, kept: config_block.Config | None) -> tuple[object, ...]:
    found = load(f"drives: {{a: {{{words}}}}}\ncables: [a:0 - dial=/tmp/a]\n")
    config = setup.wanted(topology_setup.wishes(found, "x")["a"], kept)
    return config.network.nvme_tcp, config.network.nvme_iwarp, set(config.aoe.exports)


def test_transports_of_a_drive_are_all_that_it_serves() -> None:
    kept = config_block.Config(
        KEPT_PORTS, network=config_block.Network(nvme_tcp=True, nvme_iwarp=True),
        aoe=config_block.Aoe(frozenset({2, 3})))
    assert transports_of("", kept) == (True, True, {2, 3})
    assert transports_of("transports: [rdma]", kept) == (False, False, set())
    assert transports_of("transports: [tcp, rdma]", kept) == (True, False, set())
    assert transports_of("transports: [rdma, iwarp, aoe]", kept) == (False, True, {2, 3})
    assert transports_of("transports: [rdma, tcp, iwarp, aoe]", None) == (True, True, {1})


@pytest.mark.parametrize("words, expected", [
    ("transports: [rdma, tpc]",
     "a drive: transports: tpc: must be rdma, tcp, iwarp or aoe; did you mean tcp?"),
    ("transports: [rdma, tcp, tcp]", "a drive: transports: tcp occurs twice"),
    ("transports: [tcp]", "a drive: transports: every drive serves rdma: add it to the list"),
    ("transports: tcp", "a drive: transports: write a list here, such as [rdma, tcp]"),
    ("transports: []", "a drive: transports: write a list here, such as [rdma, tcp]"),
    ("transports: [rdma, [tcp]]", "a drive: transports: write a list here, such as [rdma, tcp]"),
    ("transport: [rdma]", "a drive cannot have 'transport'; did you mean transports?"),
    ("transports: [rdma], nvme-tcp: yes",
     "a drive has either transports, or nvme-tcp, which is the older word")])
def test_wrong_transports_are_one_clear_line(words: str, expected: str) -> None:
    with pytest.raises(Mistakes) as raised:
        load(f"drives: {{a: {{{words}}}}}\ncables: [a:0 - dial=/tmp/a]\n")
    assert len(raised.value.lines) == 1
    assert expected in raised.value.lines[0]


def test_nvme_tcp_of_a_drive_is_a_wish_and_otherwise_stays_as_it_was() -> None:
    found = load("drives: {a: {nvme-tcp: yes}, b: {nvme-tcp: no}, c: {}}\ncables:\n"
                 + "".join(f"- {name}:0 - dial=/tmp/{name}\n" for name in "abc"))
    wishes = topology_setup.wishes(found, "x")
    kept = config_block.Config((config_block.Port.of(setup.DEFAULT_PORTS[0]),
                                config_block.Port.of(setup.DEFAULT_PORTS[1])),
                               network=config_block.Network(nvme_tcp=True))
    assert [setup.wanted(wishes[name], None).network.nvme_tcp for name in "abc"] == [
        True, False, False]
    assert [setup.wanted(wishes[name], kept).network.nvme_tcp for name in "abc"] == [
        True, False, True]
