# SPDX-License-Identifier: BSD-2-Clause
"""Several drives on switches: I/O to all of them while one loses its power."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SESSION

from essd.base import paths
from essd.instance.instance import Instance
from essd.setup import setup
from essd.topology import reader as topology_yaml, setup as topology_setup, topology

pytestmark = [pytest.mark.drive, pytest.mark.uml]

NAME = f"{SESSION}-topology"
COUNT = 4
FIO = ("fio --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --bs=4k "
       "--size=512k --iodepth=4 --rw=randwrite --name={name} --filename={device}")


def essd(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "essd", *words], text=True, check=False,
                          cwd=paths.TOP / "tools", capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def instance(host_kind: str) -> Iterator[Instance]:
    """Four small drives with one host, each of their ports at a switch."""
    found = Instance(NAME)
    text = topology.of_drives(COUNT, "64M", None, 1, 1, host_kind=host_kind)
    try:
        yield topology_setup.start(
            topology_yaml.load(text, "four.yaml", Path.cwd()), NAME, True, False, 0)
    finally:
        found.stop()
        setup.forget(NAME)


def device(instance: Instance, drive: str) -> str:
    """The host's block device of a drive."""
    nqn = instance.config.drives[drive].nqn
    found = instance.run("for s in /sys/class/nvme-subsystem/*; do "
                         f"grep -qx {nqn} $s/subsysnqn && ls $s; done; true", apart=True).output
    (name,) = re.findall(r"^nvme\d+n\d+$", found, re.M)
    return f"/dev/{name}"


def test_four_drives_on_switches_serve_one_host_and_one_loses_its_power(
        instance: Instance) -> None:
    connects = []
    for name, drive in instance.config.drives.items():
        # One drive is connected through both switches, the others alternately.
        for port, link in instance.config.ports_of(name).items():
            if name == "drive0" or port == int(name[-1]) % 2:
                # A controller whose drive is off is given up after 2 s.
                connects.append(f"nvme connect -t rdma -a {link.target_address} -s 4420 "
                                f"-n {drive.nqn} --ctrl-loss-tmo=2 --reconnect-delay=1")
    instance.run(" && ".join(connects))
    devices = {name: device(instance, name) for name in instance.config.drives}
    assert len({*devices.values()}) == COUNT
    jobs = " & ".join(FIO.format(name=name, device=path) + f" > /tmp/{name}"
                      for name, path in devices.items())
    instance.run(f"{jobs} & wait")
    for name in devices:
        assert "err= 0" in instance.run(f"cat /tmp/{name}").output

    # The last drive's power is cut; those before it go on, under load.
    *rest, victim = devices
    running = " & ".join(FIO.format(name=name, device=devices[name]) + f" > /tmp/{name}"
                         for name in rest)
    instance.run(f"({running} & wait; echo done > /tmp/done) > /dev/null 2>&1 &")
    assert f"{victim}: power is off" in essd("power-cut", victim, "--name", NAME)
    instance.run("until [ -e /tmp/done ]; do sleep 0.2; done", timeout_s=200)
    for name in rest:
        assert "err= 0" in instance.run(f"cat /tmp/{name}").output
    parts = instance.status()["parts"]
    assert [parts[name]["state"] for name in devices] == ["running"] * 3 + ["off"]

    # After its power-on, the drive has the same identity.
    essd("power-on", victim, "--name", NAME)
    address = instance.config.ports_of(victim)[0].target_address
    instance.run(f"until ping -c 1 -W 1 {address} > /dev/null; do :; done")
    nqn = instance.config.drives[victim].nqn
    assert nqn in instance.run(f"nvme discover -t rdma -a {address} -s 4420").output
    instance.check()


def wait_carrier(instance: Instance, card: str, value: int) -> None:
    instance.run(f"for n in $(seq 100); do [ $(cat /sys/class/net/{card}/carrier) = {value} "
                 f"] && exit 0; sleep 0.1; done; exit 1")


def test_a_switch_without_power_and_a_pulled_cable_take_the_hosts_carrier(
        instance: Instance) -> None:
    essd("power-cut", "switch1", "--name", NAME)
    wait_carrier(instance, "eth1", 0)
    wait_carrier(instance, "eth0", 1)
    essd("power-on", "switch1", "--name", NAME)
    wait_carrier(instance, "eth1", 1)
    address = instance.config.ports_of("drive0")[1].target_address
    instance.run(f"until ping -c 1 -W 1 {address} > /dev/null; do :; done", timeout_s=30)
    # A drive's cable is pulled: nothing comes through its switch any more.
    instance.ask("port", part="drive0", port=1, plugged=False)
    assert instance.run(f"ping -c 2 -W 1 {address}", check=False).status != 0
    instance.ask("port", part="drive0", port=1, plugged=True)
    instance.run(f"until ping -c 1 -W 1 {address} > /dev/null; do :; done", timeout_s=30)
