# SPDX-License-Identifier: BSD-2-Clause
"""Cables that lead out of an instance: how they are written, checked and attached."""

import os
import socket
from pathlib import Path

import pytest

from essd.base.errors import EssdError
from essd.instance.config import Config, Drive, End, Link
from essd.machine import outside
from essd.machine.drive import drive_command
from essd.machine.outside import Outside
from essd.setup import setup
from essd.setup.setup import Wish


@pytest.mark.parametrize("text, addresses, place", [
    ("10.0.0.10/24", "10.0.0.10/24", None),
    ("10.0.0.10/24,fd00::10/64", "10.0.0.10/24,fd00::10/64", None),
    ("listen=/tmp/p0.sock", None, Outside("listen", "/tmp/p0.sock")),
    ("10.0.0.10/24,dial=/tmp/a b", "10.0.0.10/24", Outside("dial", "/tmp/a b")),
    ("10.0.0.10/24,dial=/tmp/a,,b,,,fd00::1/64", "10.0.0.10/24,fd00::1/64",
     Outside("dial", "/tmp/a,b,")),
    ("tap=tap0, 10.0.0.10/24", "10.0.0.10/24", Outside("tap", "tap0")),
    ("tcp=192.0.2.7:7000", None, Outside("tcp", "192.0.2.7:7000")),
    ("tcp-listen=7000", None, Outside("tcp-listen", "127.0.0.1:7000")),
    ("tcp-listen=0.0.0.0:7000", None, Outside("tcp-listen", "0.0.0.0:7000")),
    ("tcp-listen=[::1]:7000", None, Outside("tcp-listen", "[::1]:7000")),
    ("iface=eth1", None, Outside("iface", "eth1"))])
def test_a_port_has_addresses_and_a_place_where_its_cable_leads(
        text: str, addresses: str | None, place: Outside | None) -> None:
    assert outside.split(text) == (addresses, place)
    if place:
        assert Outside.of(str(place)) == place


@pytest.mark.parametrize("text, said", [
    ("lisen=/tmp/x", "did you mean listen=PATH?"),
    ("foo=/tmp/x", "use one of listen=PATH, dial=PATH"),
    ("listen=", "write listen=PATH"), ("=x", "use one of"),
    ("listen=/" + 108 * "x", "at most 107 bytes"),
    ("tcp=7000", "write tcp=ADDR:PORT"), ("tcp=host:0", "not a TCP port"),
    ("tcp=host:65536", "not a TCP port"), ("tcp=host:http", "not a TCP port"),
    ("tcp=::1:7000", "in brackets, such as tcp=[::1]:7000"),
    ("tap=a/b", "not the name of a network interface"),
    ("tap=" + 16 * "x", "not the name of a network interface"),
    ("listen=/a,dial=/b", "a port has one cable, not 2")])
def test_a_place_that_makes_no_sense_is_refused_in_one_line(text: str,
                                                            said: str) -> None:
    with pytest.raises(EssdError) as refused:
        outside.split(text)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text, words", [
    ("listen=/tmp/a,,b", "stream,id=port1,addr.type=unix,addr.path=/tmp/a,,,,b,server=on"),
    ("dial=/tmp/b", "stream,id=port1,addr.type=unix,addr.path=/tmp/b,server=off,"
     "reconnect-ms=100"),
    ("tcp=h:7", "stream,id=port1,addr.type=inet,addr.host=h,addr.port=7,server=off,"
     "reconnect-ms=1000"),
    ("tcp-listen=[::1]:7", "stream,id=port1,addr.type=inet,addr.host=::1,addr.port=7,"
     "server=on"),
    ("tap=t0", "tap,id=port1,ifname=t0,script=no,downscript=no,vnet_hdr=off")])
def test_the_drives_qemu_attaches_the_place(text: str, words: str, tmp_path: Path) -> None:
    config = Config("x", "/guest", "tcg", [
        Link(1, ["10.0.1.10/24"], ends=[End(outside=text), End("drive", 1)])],
        {"drive": Drive("q", "f", "m", "raw", "nqn.x")})
    command = drive_command(config, tmp_path)
    assert [word for word in command if "id=port1," in word] == [words]
    assert Config.from_json(config.to_json()) == config


def test_a_socket_in_use_is_refused_and_a_stale_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "p0"
    place = Outside("listen", str(path))
    outside.check(place)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(EssdError, match="another program listens there already"):
            outside.check(place)
    outside.check(place)
    path.unlink()
    path.write_text("")
    with pytest.raises(EssdError, match="exists and is not a socket"):
        outside.check(place)
    with pytest.raises(EssdError, match="the folder .* does not exist"):
        outside.check(Outside("listen", str(tmp_path / "no" / "p0")))


def test_a_tcp_port_in_use_is_refused() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(EssdError, match="Address already in use"):
            outside.check(Outside("tcp-listen", f"127.0.0.1:{other.getsockname()[1]}"))


@pytest.fixture
def networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of /sys/class/net, with the tap interface tap0 and eth0."""
    for name in ("tap0", "eth0"):
        (tmp_path / name).mkdir()
    (tmp_path / "tap0" / "tun_flags").write_text("0x1002\n")
    (tmp_path / "tap0" / "owner").write_text("-1\n")
    monkeypatch.setattr(outside, "NETWORKS", tmp_path)
    monkeypatch.setattr(outside, "TUN", tmp_path / "tap0" / "owner")
    monkeypatch.setattr(outside, "capabilities", lambda: 0)
    return tmp_path


@pytest.mark.parametrize("text, said", [
    ("tap=tap1", "there is no interface tap1: did you mean tap0?"),
    ("tap=other", "sudo ip tuntap add dev other mode tap user"),
    ("tap=eth0", "eth0 is not a tap interface; for another kind of interface use "
     "iface=eth0"),
    ("iface=eth7", "did you mean eth0?"), ("iface=wlan", "there are eth0 and tap0"),
    ("tap=tap0", "belongs to nobody): run sudo ip tuntap del")])
def test_an_interface_that_cannot_be_used_is_refused_with_what_to_do(
        networks: Path, text: str, said: str) -> None:
    with pytest.raises(EssdError) as refused:
        outside.check(outside.parse(text))
    assert said in str(refused.value)


def test_a_tap_interface_of_the_user_needs_no_privilege(networks: Path) -> None:
    (networks / "tap0" / "owner").write_text(f"{os.getuid()}\n")
    outside.check(outside.parse("tap=tap0"))


def test_a_macvtap_interface_is_opened_and_any_other_has_a_switch(
        networks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "DEVICES", networks / "dev")
    place = Outside("iface", "eth0")
    assert outside.needs_wire(place) and outside.open_device(place) is None
    (networks / "eth0/ifindex").write_text("9\n")
    (networks / "eth0/tap9").mkdir()
    with pytest.raises(EssdError, match="you cannot open .*/dev/tap9: run sudo chown"):
        outside.check(place)
    (networks / "dev").mkdir()
    (networks / "dev/tap9").write_text("")
    outside.check(place)
    assert not outside.needs_wire(place)
    descriptor = outside.open_device(place)
    assert descriptor is not None
    os.close(descriptor)
    assert outside.netdev(0, place, descriptor) == ["-netdev", f"tap,id=port0,fd={descriptor}"]


def test_raw_frames_need_a_privilege_and_the_message_says_which(networks: Path) -> None:
    program = networks / "switch"
    program.write_text("")
    with pytest.raises(EssdError, match=f"run sudo setcap cap_net_raw.ep {program}"):
        outside.check_raw_frames(Outside("iface", "eth0"), program)


@pytest.mark.parametrize("wish, said", [
    (Wish(outside=[Outside("dial", "/a"), Outside("dial", "/b")]), "add --no-host"),
    (Wish(outside=[Outside("dial", "/a"), Outside("dial", "/a")], host=False),
     "cannot lead to the same place"),
    (Wish(outside=[Outside("dial", "/a"), None], target="nvmet"), "--target nvmet")])
def test_places_that_do_not_go_together_are_refused(wish: Wish, said: str) -> None:
    with pytest.raises(EssdError, match=said):
        setup.check_outside(wish)


def test_the_user_is_told_what_to_connect_and_how() -> None:
    lines = outside.instructions(0, Outside("listen", "/tmp/p0"), ["10.0.0.10/24"],
                                 ["10.0.0.1/24"], 1500)
    assert "    -netdev stream,id=essd0,server=off,addr.type=unix,addr.path=/tmp/p0" \
        in lines
    assert "    -device virtio-net-pci,netdev=essd0" in lines
    assert "    ip address add 10.0.0.1/24 dev DEV" in lines
    assert "    tc qdisc replace dev DEV root pfifo limit 10000" in lines
    assert "    nvme discover -t rdma -a 10.0.0.10 -s 4420" in lines
    lines = outside.instructions(1, Outside("tcp-listen", "0.0.0.0:7000"),
                                 ["10.0.1.10/24"], ["10.0.1.1/24"], 9000)
    assert any("addr.host=THIS-MACHINE,addr.port=7000" in line for line in lines)
    assert any("netdev=essd1,host_mtu=9000" in line for line in lines)
