# SPDX-License-Identifier: BSD-2-Clause
"""A Linux host by NVMe over TCP: discovery, digests, I/O, and RDMA beside it on one namespace."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sanitizing
import uart_dialogue
from kept_flash import kept_flash

import essd
from essd.drive import ana, mgmt
from essd.instance import steps
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]

FIO = ("fio --name=own --filename={device} --direct=1 --ioengine=libaio --bsrange=512-256k "
       "--iodepth=16 --rw=randwrite --size=8m --verify=crc32c --verify_fatal=1")


def switch(job: Job, value: str) -> None:
    steps.clean_host(job)
    for line in (f"config set nvme.tcp {value}", "config save"):
        assert uart_dialogue.ask(job.instance, line)[-1].startswith("ok")
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)


@pytest.fixture(scope="module")
def tcp(session_job: Job) -> Iterator[Job]:
    switch(session_job, "on")
    yield session_job
    switch(session_job, "off")


@pytest.fixture(autouse=True)
def clean(tcp: Job) -> Iterator[None]:
    yield
    steps.clean_host(tcp)


def connect(job: Job, port: int, options: str = "") -> None:
    job.quiet(f"nvme connect -t tcp -a {job.addresses[port]} -s 4420 -n {job.nqn} {options}")


def test_discovery_lists_both_transports(tcp: Job) -> None:
    for service in (4420, 8009):
        log = tcp.quiet(f"nvme discover -t tcp -a {tcp.addresses[0]} -s {service}")
        entries = re.findall(r"trtype:\s+(\w+).*?subtype:\s+(nvme|current).*?"
                             r"trsvcid:\s+(\d+).*?traddr:\s+(\S+)", log, re.DOTALL)
        assert sorted(entries) == sorted(
            (trtype, subtype, "4420", address) for trtype in ("rdma", "tcp")
            for subtype in ("nvme", "current") for address in tcp.addresses), log
        assert log.count("sectype: none") == 4, log


@pytest.mark.parametrize("digests", ["", "-g", "-G", "-g -G"])
def test_what_a_host_writes_it_reads(tcp: Job, digests: str) -> None:
    connect(tcp, 0, digests)
    found = tcp.quiet(f"nvme id-ctrl {tcp.controller()}")
    assert re.search(r"sgls\s+: 0x100001\b", found) and re.search(r"ioccsz\s+: 260\b", found)
    before = mgmt.ask(tcp.instance, "counters")["nvme-tcp"]
    tcp.quiet(FIO.format(device=tcp.device()))
    after = mgmt.ask(tcp.instance, "counters")["nvme-tcp"]
    # The engine has followed the streams all the time.
    assert after["h2c-data-placed"] - before["h2c-data-placed"] == \
        after["h2c-data-in"] - before["h2c-data-in"] > 100
    shown = [one["nvme"] for one in mgmt.ask(
        tcp.instance, "tcp-connections", **{"from": 0})["tcp-connections"] if "nvme" in one]
    assert sorted(one["qid"] for one in shown) == list(range(len(shown))), shown
    assert {(one["header-digests"], one["data-digests"], one["digest-errors"])
            for one in shown} == {("-g" in digests, "-G" in digests, 0)}
    assert mgmt.ask(tcp.instance, "counters")["nvme-tcp"]["r2ts-out"] > 0


def test_a_file_system(tcp: Job) -> None:
    connect(tcp, 1)
    device = tcp.device()
    tcp.quiet(f"mkfs.ext4 -q -F {device} && mount {device} /mnt && "
              "head -c 3000000 /dev/urandom > /tmp/data && cp /tmp/data /mnt/data && "
              f"umount /mnt && mount {device} /mnt && cmp /tmp/data /mnt/data && umount /mnt")


# ---- Verified I/O while paths and cables fail.

PATHS = "--keep-alive-tmo=2 --reconnect-delay=1 --ctrl-loss-tmo=120"
QUIET_FRAMES = 60       # at most so many come without I/O: keep-alive, acknowledgements


def verified_load(job: Job, device: str, **options: object) -> essd.Fio:
    return essd.Fio(essd.Host(job.instance, job.host), device, rw="randrw", bsrange="4k-64k",
                    iodepth=8, size="16m", verify="crc32c", verify_fatal=1, verify_backlog=32,
                    rate_iops=300, **options)


def check_load(load: essd.Fio) -> None:
    done = load.stop()
    assert done.status == 0 and done.errors == 0 and len(done.ios) > 100, done.output


def wait_states(job: Job, *expected: str) -> None:
    """Wait until the paths by RDMA and by TCP have these ANA states."""
    script = ("for n in /sys/block/nvme*c*n*; do c=${n##*/}; c=nvme$(echo $c | sed "
              "'s/nvme[0-9]*c\\([0-9]*\\)n.*/\\1/'); "
              "echo $(cat /sys/class/nvme/$c/transport $n/ana_state); done | sort")
    deadline = time.monotonic() + 20
    while (found := [line.split()[-1] for line in job.quiet(script).splitlines()]) \
            != list(expected):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def frames_of(job: Job) -> list[int]:
    """Frames that each port of the drive receives within two seconds."""
    drive = essd.Drive(job.instance, job.target)
    before = [drive.port(number).counters()["aFramesReceivedOK"] for number in (0, 1)]
    time.sleep(2)
    return [drive.port(number).counters()["aFramesReceivedOK"] - before[number]
            for number in (0, 1)]


def test_io_fails_over_between_the_transports_and_back(tcp: Job) -> None:
    """RoCE through port 0 and TCP through port 1 are paths of one device with ANA."""
    device = steps.connect(tcp, 0, PATHS)
    connect(tcp, 1, PATHS + " -g -G")
    host, drive = essd.Host(tcp.instance, tcp.host), essd.Drive(tcp.instance, tcp.target)
    host.wait_paths(drive, 2)
    assert tcp.namespaces() == [device]
    tcp.quiet("echo round-robin | tee /sys/class/nvme-subsystem/*/iopolicy")
    load = verified_load(tcp, device)
    assert min(frames_of(tcp)) > QUIET_FRAMES
    for port in (0, 1):
        states = ["optimized", "optimized"]
        states[port] = "inaccessible"
        ana.change(tcp.instance, "inaccessible", 1, port)
        try:
            wait_states(tcp, *states)
            used = frames_of(tcp)
        finally:
            ana.change(tcp.instance, "optimized", 1, port)
        assert used[port] <= QUIET_FRAMES < used[1 - port], (port, used)
        wait_states(tcp, "optimized", "optimized")
    # Only TCP's cable: while one is out, the queue pair of Linux's connection manager for
    # RDMA sometimes fails for good (docs/network.md).
    tcp.instance.ask("port", port=1, plugged=False)
    try:
        host.wait_paths(drive, 1)
        used = frames_of(tcp)
    finally:
        tcp.instance.ask("port", port=1, plugged=True)
    assert used[1] == 0 and used[0] > QUIET_FRAMES, used
    host.wait_paths(drive, 2)
    check_load(load)


def what_the_host_has(job: Job) -> str:
    """Every NVMe device and its format, as the kernel and nvme-cli show them."""
    return job.quiet(
        "nvme list -o json; cd /sys/block; for one in nvme*; do echo $one $(cat $one/nsid "
        "$one/size $one/queue/logical_block_size); done; ls /dev/nvme*n*; "
        f"nvme id-ns {job.device()} -o json")


def what_the_drive_has(job: Job) -> tuple[int, int]:
    """How many controllers and TCP connections there are."""
    return (len(mgmt.ask(job.instance, "controllers", **{"from": 0})["controllers"]),
            len([one for one in mgmt.ask(job.instance, "tcp-connections", **{"from": 0})
                 ["tcp-connections"] if "nvme" in one]))


@pytest.mark.parametrize(("seconds", "options"), [
    (4, PATHS), pytest.param(8, "", marks=pytest.mark.long),
    pytest.param(40, "", marks=pytest.mark.long)])
def test_io_survives_a_cable_that_is_out(tcp: Job, seconds: int, options: str) -> None:
    """What a host without a second path sees: a pause, then the same device."""
    connect(tcp, 0, options)
    host, drive = essd.Host(tcp.instance, tcp.host), essd.Drive(tcp.instance, tcp.target)
    before = what_the_host_has(tcp), what_the_drive_has(tcp)
    load = verified_load(tcp, tcp.device())
    time.sleep(1)
    tcp.instance.ask("port", port=0, plugged=False)
    time.sleep(seconds)
    tcp.instance.ask("port", port=0, plugged=True)
    host.wait_paths(drive, 1)
    assert max(frames_of(tcp)) > QUIET_FRAMES
    check_load(load)
    assert (what_the_host_has(tcp), what_the_drive_has(tcp)) == before


@pytest.mark.long
def test_verified_io_goes_on_after_a_power_cut(tcp: Job) -> None:
    connect(tcp, 0, PATHS)
    host, drive = essd.Host(tcp.instance, tcp.host), essd.Drive(tcp.instance, tcp.target)
    before = what_the_host_has(tcp), what_the_drive_has(tcp)
    load = verified_load(tcp, tcp.device(), sync=1)
    time.sleep(2)
    tcp.instance.ask("power-cut")
    tcp.instance.ask("power-on")
    host.wait_paths(drive, 1)
    assert max(frames_of(tcp)) > QUIET_FRAMES
    check_load(load)
    assert (what_the_host_has(tcp), what_the_drive_has(tcp)) == before


@pytest.mark.long
def test_verified_io_goes_on_after_the_drive_was_saved_and_loaded(tcp: Job) -> None:
    """The engine's connections end with a load; the host connects again."""
    connect(tcp, 0, PATHS)
    host, drive = essd.Host(tcp.instance, tcp.host), essd.Drive(tcp.instance, tcp.target)
    before = what_the_host_has(tcp), what_the_drive_has(tcp)
    load = verified_load(tcp, tcp.device())
    for _ in range(2):
        time.sleep(2)
        tcp.instance.ask("save")
        tcp.instance.ask("load")
        host.wait_paths(drive, 1)
    assert max(frames_of(tcp)) > QUIET_FRAMES
    check_load(load)
    assert (what_the_host_has(tcp), what_the_drive_has(tcp)) == before


@pytest.mark.long
def test_connect_all_connects_by_both_transports(tcp: Job) -> None:
    expected = []
    for transport, service in (("tcp", 8009), ("rdma", 4420)):
        tcp.quiet(f"nvme connect-all -t {transport} -a {tcp.addresses[0]} -s {service}")
        found = tcp.quiet("cd /sys/class/nvme; for one in nvme*; do "
                          "echo $(cat $one/transport $one/address); done")
        paths = re.findall(r"^(\w+) traddr=([^, ]+)", found, re.MULTILINE)
        expected += [(transport, address) for address in tcp.addresses]
        assert sorted(paths) == sorted(expected), found
    assert len(tcp.namespaces()) == 1


DISCOVERY = "nqn.2014-08.org.nvmexpress.discovery"


@pytest.mark.long
@pytest.mark.parametrize(("transport", "service"), [("tcp", 4420), ("tcp", 8009),
                                                    ("rdma", 4420)])
def test_a_discovery_controller_is_kept_alive(tcp: Job, transport: str, service: int) -> None:
    tcp.quiet(f"nvme connect -t {transport} -a {tcp.addresses[0]} -s {service} "
              f"-n {DISCOVERY} -k 1")
    time.sleep(5)
    state, own = tcp.quiet("cat /sys/class/nvme/nvme*/state "
                           "/sys/class/nvme/nvme*/subsysnqn").split()
    assert state == "live"
    # Linux names the subsystem as Identify does, which says the drive's own NQN.
    assert own == f"{tcp.nqn}:discovery"
    assert "disconnected 0" in tcp.quiet(f"nvme disconnect -n {DISCOVERY}")
    assert "disconnected 1" in tcp.quiet(f"nvme disconnect -n {own}")


# ---- Parts of the target, which do not depend on the transport.

UUIDS = [f"{n}{n}111111-2222-3333-4444-555555555555" for n in (1, 2)]
HOSTS = [f"nqn.2014-08.org.nvmexpress:uuid:{uuid}" for uuid in UUIDS]
REGISTER, ACQUIRE, RELEASE, WRITE = 0x0d, 0x11, 0x15, 0x01
WRITE_EXCLUSIVE = 1 << 8
CONFLICT = 0x83


@pytest.fixture
def host_list(tcp: Job) -> Iterator[Job]:
    yield tcp
    tcp.quiet("nvme disconnect-all")
    mgmt.ask(tcp.instance, "hosts-exclusive", on=False)
    for host in mgmt.ask(tcp.instance, "hosts")["hosts"]:
        mgmt.ask(tcp.instance, "host-remove", nqn=host["nqn"])


def connect_as(job: Job, host: int, options: str = "", transport: str = "tcp",
               port: int = 0) -> bool:
    """Connect as one of two hosts; return whether the drive accepted that."""
    return job.instance.run(
        f"nvme connect -t {transport} -a {job.addresses[port]} -s 4420 -n {job.nqn} "
        f"-q {HOSTS[host]} -I {UUIDS[host]} -i 1 {options}", timeout_s=120,
        check=False).status == 0


def test_an_exclusive_list_keeps_hosts_out(host_list: Job) -> None:
    mgmt.ask(host_list.instance, "hosts-exclusive", on=True)
    mgmt.ask(host_list.instance, "host-set", nqn=HOSTS[0])
    assert not connect_as(host_list, 1)
    assert connect_as(host_list, 0)


def test_a_host_authenticates_one_way_and_both_ways(host_list: Job) -> None:
    own, drive = (host_list.quiet(f"nvme gen-dhchap-key -m 1 -n {HOSTS[0]}").split()[-1]
                  for _ in range(2))
    mgmt.ask(host_list.instance, "host-set", **{
        "nqn": HOSTS[0], "secret": own, "drive-secret": drive, "least-hash": "sha256",
        "least-group": "null"})
    before = mgmt.ask(host_list.instance, "authentication")
    assert connect_as(host_list, 0, f"--dhchap-secret {own} -g -G")
    host_list.quiet(f"dd if={host_list.device()} of=/dev/null bs=64k count=16 iflag=direct")
    host_list.quiet("nvme disconnect-all")
    assert connect_as(host_list, 0, f"--dhchap-secret {own} --dhchap-ctrl-secret {drive}")
    host_list.quiet(f"dd if={host_list.device()} of=/dev/null bs=64k count=16 iflag=direct")
    host_list.quiet("nvme disconnect-all")
    assert not connect_as(host_list, 0, f"--dhchap-secret {drive}")
    assert not connect_as(host_list, 0)
    found = mgmt.ask(host_list.instance, "authentication")
    assert found["proven"] == before["proven"] + 4      # an admin and an I/O queue, twice
    assert found["refused"] == before["refused"] + 1


def submit(job: Job, controller: str, opcode: int, dword10: int, data: str,
           dword12: int = 0) -> int:
    """Send an I/O command by the path of one controller; return its status."""
    said = job.instance.run(
        f"printf '{data}' > /tmp/data && truncate -s %4096 /tmp/data && "
        f"nvme io-passthru {controller} --opcode={opcode} --namespace-id=1 --cdw10={dword10} "
        f"--cdw12={dword12} --data-len={4096 if opcode == WRITE else 16} --write "
        "--input-file=/tmp/data 2>&1", check=False)
    found = re.search(r"NVMe status:.*\((0x[0-9a-f]+)\)", said.output)
    assert said.status == 0 or found, said.output
    return int(found[1], 16) & 0x7ff if found else 0


KEY, ZERO = r"\1\2\3\4\5\6\7\10", r"\0" * 8


@pytest.fixture
def two_hosts(tcp: Job) -> Iterator[tuple[str, str]]:
    """The controllers of one host by RDMA through port 0, and of another by TCP through
    port 1."""
    assert connect_as(tcp, 0, transport="rdma")
    assert connect_as(tcp, 1, port=1)
    found = dict(line.split() for line in tcp.quiet(
        "for one in /sys/class/nvme/nvme*; do echo $(cat $one/transport) /dev/${one##*/}; done"
    ).splitlines())
    yield found["rdma"], found["tcp"]
    for controller in found.values():       # nothing is left of a test that failed
        submit(tcp, controller, REGISTER, 1 << 3, ZERO + KEY)
        submit(tcp, controller, RELEASE, WRITE_EXCLUSIVE, KEY)
        submit(tcp, controller, REGISTER, 1 << 3 | 1, KEY + ZERO)


def test_hosts_of_both_transports_see_each_others_reservations(
        tcp: Job, two_hosts: tuple[str, str]) -> None:
    last = 4096 // int(tcp.quiet(f"blockdev --getss {tcp.device()}")) - 1
    for holder, other in (two_hosts, two_hosts[::-1]):
        assert submit(tcp, holder, REGISTER, 1 << 3, ZERO + KEY) == 0
        assert submit(tcp, holder, ACQUIRE, WRITE_EXCLUSIVE, KEY + ZERO) == 0
        assert submit(tcp, other, WRITE, 0, "new", last) == CONFLICT
        assert submit(tcp, holder, WRITE, 0, "old", last) == 0
        assert submit(tcp, holder, RELEASE, WRITE_EXCLUSIVE, KEY) == 0
        assert submit(tcp, other, WRITE, 0, "new", last) == 0


# ---- Format, Sanitize, and many namespaces.

BUSY = ("fio --name=busy --filename={device} --direct=1 --ioengine=libaio --bs=4k --iodepth=8 "
        "--rw=randrw --time_based --runtime=600 --continue_on_error=all --minimal "
        "> /dev/null 2>&1 & echo $! > /tmp/busy")


@pytest.fixture
def divided(tcp: Job) -> Iterator[Job]:
    with kept_flash(tcp) as job:
        yield job


@pytest.mark.long
def test_format_and_sanitize_while_a_host_reads_and_writes(divided: Job) -> None:
    job = divided
    connect(job, 0, "-g -G")
    device, controller = job.device(), job.controller()
    before = what_the_host_has(job), what_the_drive_has(job)
    job.quiet(BUSY.format(device=device))
    try:
        for _ in range(3):
            job.quiet(f"nvme format {device} --lbaf=0 --ses=1 --force")
        job.quiet(f"nvme sanitize {controller} --sanact=start-block-erase")
        assert sanitizing.wait_sanitize(job) == sanitizing.DONE
    finally:
        job.quiet("kill $(cat /tmp/busy); wait; true")
    assert (what_the_host_has(job), what_the_drive_has(job)) == before
    job.quiet(f"nvme sanitize {controller} --sanact=start-block-erase")
    assert sanitizing.wait_sanitize(job) == sanitizing.DONE
    job.quiet(f"head -c 8M {device} | cmp -n 8388608 - /dev/zero")
    job.quiet(FIO.format(device=device))


def wait_namespaces(job: Job, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(found := job.namespaces()) != count:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


NAMESPACES = 128


@pytest.mark.long
def test_128_namespaces(divided: Job) -> None:
    job = divided
    connect(job, 0)
    controller = job.controller()
    found = json.loads(job.quiet(f"nvme id-ctrl {controller} -o json"))
    job.quiet(f"nvme delete-ns {controller} --namespace-id=1")
    job.quiet(f"set -e; for n in $(seq {NAMESPACES}); do nvme create-ns {controller} "
              "--nsze=2048 --ncap=2048 --flbas=0 --nmic=1 > /tmp/said; "
              f"nvme attach-ns {controller} --namespace-id=$n "
              f"--controllers={found['cntlid']} > /tmp/said; done")
    wait_namespaces(job, NAMESPACES)
    refused = job.quiet(f"nvme create-ns {controller} --nsze=2048 --ncap=2048 --flbas=0 "
                        "--nmic=1 2>&1", check=False)
    assert "NVMe status" in refused, refused
    job.quiet("nvme disconnect-all")
    connect(job, 1, "-g -G")
    wait_namespaces(job, NAMESPACES)
    listed = json.loads(job.quiet("nvme list -o json"))
    text = json.dumps(listed)
    assert text.count('"NameSpace"') == NAMESPACES or text.count('"NSID"') == NAMESPACES, text
    # By NSID: each gets bytes of its own, all of them at once.
    devices = dict(zip(job.quiet("cat $(ls -d /sys/block/nvme*n*/nsid)").split(),
                       job.quiet("ls -d /sys/block/nvme*n*").split(), strict=True))
    some = [f"/dev/{Path(devices[str(nsid)]).name}" for nsid in (1, 2, 63, 64, 127, 128)]
    jobs = " ".join(f"--name=j{i} --filename={device} --verify_pattern=0x{i + 1:02x}%o"
                    for i, device in enumerate(some))
    job.quiet("fio --direct=1 --ioengine=libaio --iodepth=8 --bs=4k --rw=randwrite --size=1m "
              f"--verify=pattern --do_verify=1 --verify_fatal=1 {jobs} --minimal > /tmp/said")
    for i, device in enumerate(some):
        byte = job.quiet(f"dd if={device} bs=1 count=1 iflag=fullblock status=none "
                         "| od -An -tu1")
        assert int(byte) == i + 1, (device, byte)
