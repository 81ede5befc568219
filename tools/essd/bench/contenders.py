# SPDX-License-Identifier: BSD-2-Clause
"""What `essd compare` compares: protocols of the drive, and Linux's own targets.

All of them have the same host and the same cables.  The host and the target called
"reference" have two cards each: RoCE (rxe), TCP, AoE and iSCSI use the first network,
iWARP (siw) the second one, because Linux takes one RDMA device for an address.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.errors import EssdError
from ..drive import access
from ..instance.config import SERVICE
from ..instance.instance import Instance

DRIVE, REFERENCE, HOST = "drive", "reference", "host"
SHELF, REFERENCE_SHELF = 7, 8
IQN = "iqn.2026-01.invalid.essd:compare"
NQN = "nqn.2014-08.org.nvmexpress:uuid:6e766d65-7400-4000-8000-0000000000c0"
CONNECT_S = 60
DEPTH = 128                 # entries of a queue of NVMe
# Addresses in the networks of the first and the second card.
ADDRESSES = {DRIVE: ("10.0.0.10", "10.0.1.10"), REFERENCE: ("10.0.0.20", "10.0.1.20")}

USE_SIW = ("rdma link show | grep -q siw1 && exit 0; rdma link delete rxe1 2>/dev/null; "
           "modprobe siw && rdma link add siw1 type siw netdev eth1")
# A disk in RAM, and Linux's NVMe target with it; each port is added when it is needed.
NVMET = f"""set -e
modprobe null_blk nr_devices=0
modprobe -a nvmet_rdma nvmet_tcp
null=/sys/kernel/config/nullb/disk-compare
subsystem=/sys/kernel/config/nvmet/subsystems/{NQN}
[ ! -d $subsystem ] || exit 0
mkdir $null
echo 64 > $null/size
echo 1 > $null/memory_backed
echo 1 > $null/power
mkdir $subsystem
echo 1 > $subsystem/attr_allow_any_host
mkdir $subsystem/namespaces/1
echo /dev/disk-compare > $subsystem/namespaces/1/device_path
echo 1 > $subsystem/namespaces/1/enable
"""
NVMET_PORT = """set -e
port=/sys/kernel/config/nvmet/ports/{number}
mkdir $port
echo {kind} > $port/addr_trtype
echo ipv4 > $port/addr_adrfam
echo {address} > $port/addr_traddr
echo {service} > $port/addr_trsvcid
ln -s /sys/kernel/config/nvmet/subsystems/{nqn} $port/subsystems/{nqn}
"""
WAIT_BLOCK = ("for n in $(seq 300); do [ -b {device} ] && exit 0; sleep 0.1; done; "
              "echo {device} did not appear; exit 1")
DISCOVER_AOE = ("modprobe aoe && echo eth0 > /dev/etherd/interfaces; "
                "for n in $(seq 50); do echo > /dev/etherd/discover; "
                "[ -b {device} ] && exit 0; sleep 0.2; done; echo no AoE disk answered; exit 1")
ISCSI_LOGIN = (f"modprobe -a iscsi_tcp sd_mod && {{{{ pidof iscsid || iscsid; }}}} && "
               f"iscsiadm -m discovery -t st -p {{address}} && "
               f"iscsiadm -m node -T {IQN} -p {{address}} --login")
ISCSI_DISK = ("for n in $(seq 100); do for d in /sys/class/iscsi_session/session*/device/"
              "target*/*/block/*; do [ -b /dev/${d##*/} ] && echo /dev/${d##*/} && exit 0; "
              "done; sleep 0.1; done; echo no iSCSI disk appeared; exit 1")

# tlshd makes the handshake.  It has joined a multicast group of generic netlink as soon as the
# kernel can call it.
START_TLSHD = """set -e
modprobe -a nvme_tcp tls
pidof tlshd > /dev/null || { tlshd > /tmp/tlshd.log 2>&1 & }
for n in $(seq 300); do
    awk '$2 == 16 && $4 !~ /^0+$/ { found = 1 } END { exit !found }' /proc/net/netlink && exit 0
    sleep 0.1
done
echo tlshd does not listen
exit 1
"""
# A new key in the host's keyring, and then its number there.
NEW_KEY = """set -e
names="--subsysnqn={nqn} --hostnqn=$(cat /etc/nvme/hostnqn)"
key=$(nvme gen-tls-key --hmac=1 $names | grep -o 'NVMeTLSkey-1:[^ ]*')
nvme check-tls-key --keydata=$key $names --identity=1 --insert > /dev/null
echo "$(cat /etc/nvme/hostnqn) $key $(awk '/ psk .*NVMe/ {{ print $1 }}' /proc/keys)"
"""


@dataclass(frozen=True)
class Contender:
    """One row of the comparison."""

    name: str
    what: str                   # for people
    target: str                 # DRIVE or REFERENCE
    medium: str                 # which disk it is; several rows may share one
    connect: Callable[[Instance, "Contender"], str]     # returns the block device
    card: int = 0               # of the host
    kind: str = ""              # of NVMe: rdma or tcp
    options: str = ""           # of nvme connect
    needs_peers: bool = False   # the guest with vblade, open-iscsi and tlshd
    copies: bool = False        # whether Copy is compared

    @property
    def address(self) -> str:
        return ADDRESSES[self.target][self.card]


def said(instance: Instance, part: str, script: str, what: str) -> str:
    """What a script in a guest prints; EssdError with its last line if it fails."""
    done = instance.run(script, part=part, check=False, timeout_s=CONNECT_S)
    if done.status != 0:
        instance.check()
        last = (done.output.strip() or f"status {done.status}").splitlines()[-1]
        raise EssdError(f"{what} failed: {last}")
    return done.output


def connect_nvme(instance: Instance, row: Contender, nqn: str, more: str = "") -> str:
    """Connect the host by NVMe; the option -D lets it connect to one address twice."""
    output = said(instance, HOST, f"modprobe nvme_{row.kind}; nvme connect -t {row.kind} "
                  f"-a {row.address} -s {SERVICE} -n {nqn} -Q {DEPTH} -i 1 -D {row.options}{more}",
                  "nvme connect")
    found = re.search(r"\bnvme(\d+)\b", output)
    if found is None:
        raise EssdError(f"nvme connect does not name the device: {output.strip()}")
    device = f"/dev/{found[0]}n1"
    said(instance, HOST, WAIT_BLOCK.format(device=device), "nvme connect")
    return device


def use_siw(instance: Instance, *parts: str) -> None:
    """Give the second card of these guests a device of siw in place of rxe's."""
    for part in parts:
        said(instance, part, USE_SIW, f"siw in the kernel of {part}")


def by_drive(instance: Instance, row: Contender) -> str:
    if row.card == 1:
        use_siw(instance, HOST)
    return connect_nvme(instance, row, instance.config.drives[DRIVE].nqn)


def by_nvmet(instance: Instance, row: Contender) -> str:
    said(instance, REFERENCE, NVMET, "nvmet")
    number = 1 + 2 * row.card + (row.kind == "tcp")
    if row.card == 1:
        use_siw(instance, HOST, REFERENCE)
    said(instance, REFERENCE, NVMET_PORT.format(
        number=number, kind=row.kind, address=row.address, service=SERVICE, nqn=NQN),
        "a port of nvmet")
    return connect_nvme(instance, row, NQN)


def aoe_disk(instance: Instance, shelf: int, slot: int) -> str:
    device = f"/dev/etherd/e{shelf}.{slot}"
    said(instance, HOST, DISCOVER_AOE.format(device=device), "AoE")
    return device


def aoe_of_drive(instance: Instance, _row: Contender) -> str:
    return aoe_disk(instance, SHELF, 0)


def by_vblade(instance: Instance, _row: Contender) -> str:
    said(instance, REFERENCE, f"serve-aoe eth0 {REFERENCE_SHELF} 1", "vblade")
    return aoe_disk(instance, REFERENCE_SHELF, 1)


def by_lio(instance: Instance, row: Contender) -> str:
    said(instance, REFERENCE, f"serve-iscsi {row.address} {IQN}", "LIO")
    said(instance, HOST, ISCSI_LOGIN.format(address=row.address), "iscsiadm")
    return said(instance, HOST, ISCSI_DISK, "iSCSI").strip()


def by_tls(instance: Instance, row: Contender) -> str:
    """The host makes a key; the drive learns it by its management channel, not by the network."""
    nqn = instance.config.drives[DRIVE].nqn
    said(instance, HOST, START_TLSHD, "tlshd")
    words = said(instance, HOST, NEW_KEY.format(nqn=nqn), "nvme check-tls-key").split()
    if len(words) != 3:
        raise EssdError("nvme check-tls-key did not put one key into the host's keyring")
    host_nqn, key, number = words
    access.change(instance.of(DRIVE), {"nqn": host_nqn, "tls-key": key})
    return connect_nvme(instance, row, nqn, f"--tls --tls_key=0x{number}")


ROWS = (
    Contender("drive-roce", "drive, NVMe/RoCE", DRIVE, "drive", by_drive, kind="rdma",
              copies=True),
    Contender("drive-iwarp", "drive, NVMe/iWARP", DRIVE, "drive", by_drive, 1, "rdma"),
    Contender("drive-tcp", "drive, NVMe/TCP", DRIVE, "drive", by_drive, kind="tcp",
              copies=True),
    Contender("drive-tcp-digests", "drive, NVMe/TCP with digests", DRIVE, "drive", by_drive,
              kind="tcp", options="-g -G"),
    Contender("drive-tcp-tls", "drive, NVMe/TCP with TLS", DRIVE, "drive", by_tls, kind="tcp",
              needs_peers=True),
    Contender("drive-aoe", "drive, AoE", DRIVE, "drive", aoe_of_drive),
    Contender("nvmet-roce", "Linux nvmet, NVMe/RoCE", REFERENCE, "nvmet", by_nvmet,
              kind="rdma"),
    Contender("nvmet-iwarp", "Linux nvmet, NVMe/iWARP", REFERENCE, "nvmet", by_nvmet, 1,
              "rdma"),
    Contender("nvmet-tcp", "Linux nvmet, NVMe/TCP", REFERENCE, "nvmet", by_nvmet, kind="tcp"),
    Contender("lio-iscsi", "Linux LIO, iSCSI", REFERENCE, "lio", by_lio, needs_peers=True),
    Contender("vblade-aoe", "vblade, AoE", REFERENCE, "vblade", by_vblade, needs_peers=True),
)


def settings_text(rows: Sequence[Contender]) -> str:
    """The settings of a drive that serves all of its protocols; TLS only if a row has it."""
    tls = "  tls: allowed\n" if any(row.connect is by_tls for row in rows) else ""
    return f"nvme:\n  tcp: on\n  iwarp: on\n{tls}aoe:\n  export: 1\n  shelf: {SHELF}\n"


def topology_text(rows: list[Contender], host_kind: str, guest: str, settings: str) -> str:
    """The topology for these rows; `guest` is a folder, "" for the default guest."""
    targets = {row.target for row in rows}
    host = ", ".join([f"kind: {host_kind}", *([f'guest: "{guest}"'] if guest else [])])
    lines = ["hosts:", f"  {HOST}: {{{host}, card0: 10.0.0.1/24, card1: 10.0.1.1/24}}"]
    cables = [f"  - {HOST}:{n} - net{n}" for n in range(2)]
    if REFERENCE in targets:
        cards = ", ".join(f"card{n}: {address}/24"
                          for n, address in enumerate(ADDRESSES[REFERENCE]))
        lines.append(f"  {REFERENCE}: {{{host}, {cards}}}")
        cables += [f"  - {REFERENCE}:{n} - net{n}" for n in range(2)]
    if DRIVE in targets:
        ports = ", ".join(f"port{n}: {address}/24"
                          for n, address in enumerate(ADDRESSES[DRIVE]))
        lines += ["drives:", f"  {DRIVE}: {{size: 256M, block: yes, {ports}, "
                  f'config: "{settings}"}}']
        cables += [f"  - {DRIVE}:{n} - net{n}" for n in range(2)]
    return "\n".join([*lines, "switches:", "  net[0-1]: {}", "cables:", *cables, ""])


def connect_all(instance: Instance, rows: list[Contender]) -> tuple[dict[str, str],
                                                                    dict[str, str]]:
    """The block device of each row that can be connected, and why the others cannot."""
    devices: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for row in rows:
        try:
            devices[row.name] = row.connect(instance, row)
        except EssdError as error:
            instance.check()
            reasons[row.name] = str(error)
    return devices, reasons


def wire(instance: Instance, card: int) -> tuple[int, int]:
    """Frames and bytes that the host has sent and received by a card so far."""
    shown: Any = instance.ask("switch", part=f"net{card}", request="show")
    end = instance.config.ports_of(HOST)[card].far_end(HOST)
    counters = next(port["counters"] for port in shown["ports"] if port["port"] == end.port)
    return (int(counters["rx_frames"]) + int(counters["tx_frames"]),
            int(counters["rx_bytes"]) + int(counters["tx_bytes"]))
