# SPDX-License-Identifier: BSD-2-Clause
"""Hosts that are user-mode Linux: what they are asked to be, started with and tested for.

A script stands for the kernel; the relay is a real QEMU.
"""

import contextlib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import essd
from essd.base import paths
from essd.base.errors import EssdError
from essd.base.process import start_time
from essd.build import guest_build, uml_build
from essd.build.fw_build import BuildError
from essd.build.guest_build import Guest
from essd.build.uml_build import UmlKernel
from essd.instance.config import UML, VHOST_USER, Config, Host, Link, console_log
from essd.instance.instance import Instance
from essd.machine import uml
from essd.setup import prepare, setup
from essd.topology import reader as topology_yaml
from essd.topology import setup as topology_setup

# It prints its words, and then what it is told about its cards' carriers.
KERNEL = """#!/bin/bash
for word; do
    echo "word: $word"
    case $word in ssl0=*) carrier=${word#ssl0=fd:}; carrier=${carrier%,null} ;; esac
done
echo "opens: $(cat initrd | wc -c) $(readlink root.squashfs) $TMPDIR"
echo "$$" > pid
while read -r line <&"$carrier"; do echo "carrier: $line"; done
"""


def make_kernel(folder: Path, script: str = KERNEL) -> UmlKernel:
    (folder / "lib/modules/6.12.0").mkdir(parents=True)
    (folder / "lib/modules/6.12.0/modules.builtin").write_text("kernel/rdma_rxe.ko\n")
    (folder / "linux").write_text(script)
    (folder / "linux").chmod(0o755)
    return UmlKernel(folder)


def make_guest(folder: Path) -> Guest:
    folder.mkdir()
    (folder / "initrd").write_bytes(b"guest's own")
    return Guest(folder)


@pytest.fixture
def kernel(tmp_path: Path) -> UmlKernel:
    return make_kernel(tmp_path / "kernel")


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    return make_guest(tmp_path / "guest")


@pytest.fixture
def config(kernel: UmlKernel, guest: Guest) -> Config:
    links = [Link(0, ["10.0.0.10/24", "fd00::10/64"], mtu=1500, capture=True),
             Link(1, ["10.0.1.10/24"], mtu=9000)]
    return Config("unit", str(guest.path), "tcg", links,
                  hosts={"host": Host(memory_mib=512, uml=str(kernel.path))})


@pytest.fixture
def instance(config: Config, tmp_path: Path,
             monkeypatch: pytest.MonkeyPatch) -> Iterator[Instance]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    instance = Instance("unit")
    instance.start(config)
    wait_started(instance)
    yield instance
    instance.stop()


def wait_for(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_started(instance: Instance) -> None:
    """The kernel may print before the supervisor has noted its process."""
    wait_for(lambda: "opens: " in console(instance) and len(processes(instance)) == 3)


def console(instance: Instance) -> str:
    with contextlib.suppress(FileNotFoundError):
        return console_log(instance.folder, "host").read_text()
    return ""


def processes(instance: Instance) -> list[int]:
    """The supervisor, the relay and the kernel."""
    state = json.loads((instance.folder / "state.json").read_text())
    return [process["pid"] for process in state]


# The configuration of the kernel

def test_the_configuration_names_each_option_once() -> None:
    names = [line.split("=")[0] for line in uml_build.asked()]
    assert len(names) == len(set(names)) > 100
    text = uml_build.CONFIG.read_text()
    assert all(re.fullmatch(r"(#.*|CONFIG_[A-Z0-9_]+=(y|\d+|\".*\")|)", line)
               for line in text.splitlines())


def test_an_option_that_the_kernel_does_not_take_is_named(tmp_path: Path) -> None:
    asked = [line for line in uml_build.asked() if not line.startswith("CONFIG_RDMA_SIW")]
    source = tmp_path / "source"
    source.mkdir()
    (source / "Makefile").write_text("allnoconfig:\n\t@cp taken .config\n")
    (source / "taken").write_text("\n".join([*asked, "# CONFIG_RDMA_SIW is not set"]))
    with pytest.raises(BuildError, match="does not take CONFIG_RDMA_SIW=y: other"):
        uml_build.configure(source, tmp_path / "log")
    (source / "taken").write_text("\n".join(uml_build.asked()))
    uml_build.configure(source, tmp_path / "log")


def test_the_kernel_has_what_the_guests_modules_are_for() -> None:
    """Modules of the stock guest are options of the kernel, under their own names.

    dm_flakey, bridge, macvlan and tun are left out: no test that runs on it needs them.
    """
    options = "\n".join(uml_build.asked())
    names = {"rdma_rxe": "RDMA_RXE", "nvme_rdma": "NVME_RDMA", "nvme_tcp": "NVME_TCP",
             "nvmet_rdma": "NVME_TARGET_RDMA", "nvmet_tcp": "NVME_TARGET_TCP",
             "null_blk": "BLK_DEV_NULL_BLK", "loop": "BLK_DEV_LOOP", "ext4": "EXT4_FS",
             "8021q": "VLAN_8021Q", "bonding": "BONDING", "dummy": "DUMMY", "veth": "VETH",
             "sch_netem": "NET_SCH_NETEM", "sch_prio": "NET_SCH_PRIO",
             "sch_tbf": "NET_SCH_TBF", "ib_umad": "INFINIBAND_USER_MAD"}
    there = {line.split()[0] for line in guest_build.read_list("modules.txt")}
    assert set(names) <= there
    assert [name for name in names.values() if f"CONFIG_{name}=y" not in options] == []


def test_files_of_the_kernel_do_not_change_the_guest(monkeypatch: pytest.MonkeyPatch,
                                                     tmp_path: Path) -> None:
    (tmp_path / "uml").mkdir()
    (tmp_path / "packages.txt").write_text("bash\n")
    monkeypatch.setattr(guest_build, "SOURCE", tmp_path)
    monkeypatch.setattr(guest_build, "UML_SOURCE", tmp_path / "uml")
    monkeypatch.setattr(paths, "TOP", tmp_path)
    monkeypatch.setattr(guest_build, "__file__", str(tmp_path / "packages.txt"))
    before = guest_build.guest_key()
    (tmp_path / "uml/config").write_text("CONFIG_NET=y\n")
    assert guest_build.guest_key() == before
    (tmp_path / "packages.txt").write_text("dash\n")
    assert guest_build.guest_key() != before


@pytest.mark.parametrize("name", ["config", "0001-carrier.patch"])
def test_the_kernel_is_built_again_for_each_input(name: str, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uml_build, "FILES", tmp_path)
    monkeypatch.setattr(uml_build, "CONFIG", tmp_path / "config")
    for file in ("config", "0001-carrier.patch"):
        (tmp_path / file).write_text("a")
    before = uml_build.key()
    assert uml_build.key() == before
    (tmp_path / name).write_text("b")
    assert uml_build.key() != before


@pytest.mark.parametrize("offered", ["6.12.999-1", ""])
def test_one_line_says_that_the_source_is_not_to_be_had(
        offered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OtherSource:
        def __init__(self, *_: object) -> None:
            pass

        def get(self, *_: str) -> str:
            return ""

        def resolve(self, names: list[str], _skip: list[str]) -> dict[str, str]:
            return {**dict.fromkeys(names, offered), "xz-utils": "5"} if offered else {}

    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(guest_build, "Apt", OtherSource)
    with pytest.raises(BuildError) as caught:
        uml_build.ensure(lambda text: None)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(
        f"Debian's archive offers linux-source-6.12 in version {offered or 'none'}, but "
        "user-mode Linux is known to work with 6.12.")
    assert not uml_build.is_built()
    assert [p.name for p in uml_build.cache_folder().iterdir()] == ["lock"]


# Which tests have which hosts

def test_the_document_lists_the_end_to_end_tests_with_stock_hosts() -> None:
    page = (paths.TOP / "docs/hosts.md").read_text()
    table = page[page.index("These files stay with stock hosts"):page.index("What moved has a")]
    listed = [name for row in re.findall(r"^\| (`.*?) \|", table, re.M)
              for name in re.findall(r"`(\w+)`", row)]
    stock = [path.stem.removeprefix("test_") for path in (paths.TOP / "tests/e2e").glob("test_*.py")
             if "pytest.mark.uml" not in path.read_text()]
    assert sorted(listed) == sorted(stock)


# What can be asked for

def test_a_topology_can_mix_the_kinds_of_hosts() -> None:
    text = ("drives: {d: {}}\nhosts: {fast: {kind: uml}, plain: {}, other: {kind: stock}}\n"
            "switches: {s: }\ncables:\n- d:0 - s\n- fast - s\n- plain - s\n- other - s\n")
    found = topology_yaml.load(text, "t.yaml", Path("/nowhere"))
    assert {name: host.kind for name, host in found.hosts.items()} == {
        "fast": "uml", "plain": "stock", "other": "stock"}


@pytest.mark.parametrize("said, complaint", [
    ("{kind: umlaut}", "t.yaml:2:19: a host: 'umlaut' is no kind of host: there are stock "
                       "and uml"),
    ("{kind: uml, cpus: 2}", "t.yaml:2:9: h: a host of kind uml has one CPU, not 2")])
def test_a_topology_says_where_a_host_is_wrong(said: str, complaint: str) -> None:
    text = f"drives: {{d: {{}}}}\nhosts: {{h: {said}}}\ncables:\n- d:0 - h\n"
    with pytest.raises(EssdError) as caught:
        topology_yaml.load(text, "t.yaml", Path("/nowhere"))
    assert str(caught.value) == complaint


def test_a_wish_for_two_cpus_is_refused() -> None:
    setup.check_host_kind(setup.Wish(host_kind="stock", cpus=2))
    with pytest.raises(EssdError, match="of kind uml has one CPU, not 2"):
        setup.check_host_kind(setup.Wish(host_kind="uml", cpus=2))
    with pytest.raises(EssdError, match="'x' is no kind of host"):
        setup.check_host_kind(setup.Wish(host_kind="x"))


def test_a_topology_names_its_hosts_kinds_itself(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("drives: {d: {}}\n")
    with pytest.raises(EssdError, match="host_kind, hart and config are not for a topology"):
        essd.up(topology=tmp_path / "t.yaml", host_kind="uml")


# Whether it runs here

def test_a_kernel_that_reaches_user_space_is_tried_once(
        tmp_path: Path, guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    tried = make_kernel(tmp_path / "works", "#!/bin/sh\necho $PWD >> "
                        f"{tmp_path}/tries\necho essd-guest: initramfs\n")
    uml.check(tried, guest)
    uml.check(tried, guest)
    folder, = (tmp_path / "tries").read_text().split()
    assert not Path(folder).exists()


def test_a_machine_that_allows_no_tracing_is_named_and_tried_again(
        tmp_path: Path, guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESSD_CACHE", str(tmp_path / "cache"))
    tried = make_kernel(tmp_path / "fails", f"#!/bin/sh\necho >> {tmp_path}/tries\n"
                        "echo Core dump limits :\n"
                        "echo 'start_ptraced_child : ptrace failed: Not permitted'\necho Bye\n")
    for _ in range(2):
        with pytest.raises(EssdError) as caught:
            uml.check(tried, guest)
        assert str(caught.value) == (
            "user-mode Linux does not run on this machine: start_ptraced_child : ptrace "
            "failed: Not permitted; use --host-kind stock")
    assert len((tmp_path / "tries").read_text()) == 2


def test_what_is_not_asked_for_is_neither_built_nor_tried(
        monkeypatch: pytest.MonkeyPatch, guest: Guest) -> None:
    monkeypatch.setitem(prepare.TASKS, "guest", prepare.Task(
        "Linux guest", lambda _: guest, "", lambda: False))
    monkeypatch.setattr(uml_build, "ensure", None)
    assert prepare.prepare(guest=True, drive=False).uml is None


# How it is started

def test_the_kernel_opens_its_files_by_short_names(config: Config, tmp_path: Path) -> None:
    folder = tmp_path / "a b,c:d"
    words = uml.kernel_command(config, "host", folder, {0: 11, 1: 12, 255: 13}, 14)
    assert not any(str(folder) in word for word in words)
    assert {"mem=512M", "ubd0rc=root.squashfs", "initrd=initrd", "ssl0=fd:14,null",
            f"essd.uuid={config.hosts['host'].uuid}"} <= set(words)


def test_a_card_in_shared_memory_has_no_socket_of_the_relay(config: Config,
                                                            tmp_path: Path) -> None:
    """Its word tells the kernel its MAC, its MTU (9000, low byte first) and its speed."""
    config.links[1].kind = VHOST_USER
    folder = tmp_path / "a b,c:d"
    words = uml.kernel_command(config, "host", folder, {0: 11, 255: 13}, 14)
    assert [word for word in words if word.startswith("virtio_uml")] == [
        "virtio_uml.device=../port1.sock:1:1:02e55e000101" "0100" "0100" "2823" "a8610000" "01"]
    assert [word.split(",")[1] for word in words if word.startswith("vec")] == ["fd=11", "fd=13"]
    command = " ".join(uml.relay_command(config, "host", folder, {0: 21, 255: 23}))
    assert "cable0" in command and "mgmt" in command and "cable1" not in command


def test_shared_memory_needs_room_in_dev_shm(tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    there = SimpleNamespace(f_bavail=1024 << 8, f_frsize=4096, f_flag=0)
    monkeypatch.setattr(os, "statvfs", lambda place: there)
    wish = setup.Wish(name="unit", host_kind=UML, link=VHOST_USER)
    setup.check_host_kind(wish)
    assert uml.memory_folder(tmp_path, 1024) == Path("/dev/shm")
    there.f_bavail -= 1
    with pytest.raises(EssdError, match="/dev/shm has no room for 1024 MiB, .* or use "
                                        "--link stream$"):
        setup.check_host_kind(wish)
    there.f_bavail, there.f_flag = 1 << 30, os.ST_NOEXEC
    with pytest.raises(EssdError, match="/dev/shm is mounted noexec, .* or use link: stream$"):
        topology_setup.check_shared_memory(topology_yaml.load(
            "drives: {d: {}}\nhosts: {h: {kind: uml}}\n"
            "cables:\n- {cable: h - d:0, link: vhost-user}\n", "t.yaml", Path("/nowhere")))
    assert uml.memory_folder(tmp_path, 16) == tmp_path


def test_each_card_has_its_socket_its_mac_and_its_mtu(config: Config, tmp_path: Path) -> None:
    words = uml.kernel_command(config, "host", tmp_path, {0: 11, 1: 12, 255: 13}, 14)
    assert [word for word in words if word.startswith("vec")] == [
        "vec0:transport=fd,fd=11,mac=02:e5:5e:00:01:00,mtu=1500,depth=128",
        "vec1:transport=fd,fd=12,mac=02:e5:5e:00:01:01,mtu=9000,depth=128",
        "vec2:transport=fd,fd=13,mac=02:e5:5e:00:01:ff,mtu=1500,depth=128"]
    assert "essd.nic=02:e5:5e:00:01:00,eth0,1500,10.0.0.1/24,fd00::1/64" in words
    config.hosts["host"].relay = "/drives/qemu"     # takes datagrams in bursts
    relay = uml.relay_command(config, "host", tmp_path, {0: 21, 1: 22, 255: 23})
    assert relay[0] == "/drives/qemu"
    joined = " ".join(relay)
    for number, descriptor, network, card in ((0, 21, "cable0", "port0"),
                                              (1, 22, "cable1", "port1"),
                                              (255, 23, "mgmt", "mgmt-card")):
        assert f"dgram,id={card},local.type=fd,local.str={descriptor} " in joined
        for end, name in enumerate((network, card)):
            assert f"hubport,id=hub{number}-{end},hubid={number},netdev={name}" in joined
    assert "netdev=cable0,maxlen=65536" in joined and "dump1" not in joined


def test_memory_is_where_it_fits(tmp_path: Path) -> None:
    there = os.statvfs("/dev/shm")
    free_mib = there.f_bavail * there.f_frsize >> 20
    assert uml.memory_folder(tmp_path, free_mib + 1024) == tmp_path
    if free_mib > 1024:
        assert uml.memory_folder(tmp_path, 512) == Path("/dev/shm")


def test_the_relay_and_the_kernel_are_started(instance: Instance, guest: Guest) -> None:
    assert len(processes(instance)) == 3
    text = console(instance)
    assert "word: essd.role=host" in text
    opened = re.search(r"opens: (\d+) (\S+) (\S+)", text)
    assert opened and int(opened[1]) > 1000 and opened[2] == str(guest.root)
    part = instance.status()["parts"]["host"]
    assert part["state"] == "running" and part["pid"] == processes(instance)[2]
    assert (instance.folder / "link0.pcap").exists()


def test_a_card_has_the_carrier_of_its_cable(instance: Instance) -> None:
    """Nothing is connected to the cables, so there is none; the last state counts."""
    wait_for(lambda: {"carrier: eth0 0", "carrier: eth1 0"} <= set(
        console(instance).splitlines()))
    before = console(instance).count("carrier: eth1")
    instance.ask("port", port=1, plugged=False)
    wait_for(lambda: console(instance).count("carrier: eth1") > before)


def test_the_end_of_the_kernel_is_a_crash_of_the_host(instance: Instance) -> None:
    _, relay, kernel = processes(instance)
    os.kill(kernel, signal.SIGTERM)
    wait_for(lambda: instance.status()["parts"]["host"]["state"] == "crashed")
    assert "signal 15" in instance.status()["parts"]["host"]["why"]
    assert not start_time(relay) and not start_time(kernel)


def test_the_end_of_the_relay_ends_the_kernel(instance: Instance) -> None:
    _, relay, kernel = processes(instance)
    os.kill(relay, signal.SIGKILL)
    wait_for(lambda: instance.status()["parts"]["host"]["state"] == "crashed")
    assert "signal 9" in instance.status()["parts"]["host"]["why"]
    wait_for(lambda: not start_time(kernel))


def test_a_host_is_powered_off_and_on(instance: Instance) -> None:
    _, relay, kernel = processes(instance)
    instance.ask("power-cut", part="host")
    assert not start_time(relay) and not start_time(kernel)
    instance.ask("power-on", part="host")
    wait_started(instance)
    assert not set(processes(instance)[1:]) & {relay, kernel}


def test_the_kernel_ends_with_its_supervisor(instance: Instance) -> None:
    supervisor, relay, kernel = processes(instance)
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not start_time(relay) and not start_time(kernel))


def test_the_kernel_stands_still_with_a_halted_drive(instance: Instance) -> None:
    kernel = processes(instance)[2]

    def state() -> str:
        return Path(f"/proc/{kernel}/stat").read_text().rpartition(")")[2].split()[0]
    instance.ask("qmp", part="host", execute="stop")
    wait_for(lambda: state() == "T")
    instance.ask("qmp", part="host", execute="cont")
    wait_for(lambda: state() != "T")


def test_a_snapshot_is_refused_with_the_reason(instance: Instance) -> None:
    with pytest.raises(EssdError, match="the host is user-mode Linux, whose state cannot be "
                                        "saved"):
        instance.ask("save-all", name="one")
