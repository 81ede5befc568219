# SPDX-License-Identifier: BSD-2-Clause
"""The step of the demo that writes a file by RoCE, and reads it over four protocols.

Its host is user-mode Linux, whose kernel has iWARP in software (siw) and AoE; the stock
guest has neither.
"""

import tempfile
from pathlib import Path

from ..base.errors import EssdError
from ..build import guest_build, uml_build
from ..instance.config import Config, SERVICE
from ..instance.steps import Job, MOUNT
from ..machine import uml
from ..topology import reader as topology_yaml, setup as topology_setup

SHELF = 7
TOPOLOGY = """\
drives:
  drive: {transports: [rdma, tcp, iwarp, aoe], config: settings.yaml}
hosts:
  host: {kind: uml}
cables:
  - host:0 - drive:0
  - host:1 - drive:1
"""
# What this step needs, and what the steps after it expect.
SETTINGS = f"nvme:\n  iwarp: on\naoe:\n  export: 1\n  shelf: {SHELF}\n"
SETTINGS_AFTER = "nvme:\n  iwarp: off\naoe:\n  export: none\n  shelf: 0\n"
AOE_DISK = f"/dev/etherd/e{SHELF}.0"
FILE = f"{MOUNT}/bin/bash"
PROTOCOLS = ("NVMe/RoCE", "NVMe/iWARP", "NVMe/TCP", "AoE")


def problem() -> str:
    """Why there is no such host on this computer; "" if it runs."""
    if not uml_build.is_built():
        return "user-mode Linux is not built (docs/hosts.md)"
    try:
        uml.check(uml_build.ensure(lambda text: None),
                  guest_build.ensure_guest(lambda text: None))
    except EssdError as error:
        return str(error)
    return ""


def configured(name: str, topology: str, settings: str, nqn: str | None = None) -> Config:
    """The configuration of the drive of a topology, with these settings."""
    with tempfile.TemporaryDirectory(prefix="essd-demo-") as folder:
        file = Path(folder, "settings.yaml")
        file.write_text(settings, encoding="utf-8")
        found = topology_yaml.load(topology, "essd demo", Path(folder))
        found.drives["drive"].config = file
        found.drives["drive"].nqn = nqn
        return topology_setup.configure(found, name)


def checksum(job: Job, device: str) -> str:
    """The checksum of the file, which is read from the drive through this device."""
    return job.run(f"mount -o ro {device} {MOUNT} && sha256sum {FILE} && umount {MOUNT}"
                   ).split()[0]


def write_file(job: Job, device: str) -> None:
    """Make a file system with the file: what earlier steps wrote was overwritten by fio."""
    job.run(f"mkfs.ext4 -q -F {device} && mount {device} {MOUNT} && mkdir -p {MOUNT}/bin && "
            f"cp /bin/bash {FILE} && umount {MOUNT}")


def by_nvme(job: Job, kind: str, port: int, writes: bool = False) -> str:
    job.run(f"nvme connect -t {kind} -a {job.addresses[port]} -s {SERVICE} -n {job.nqn}")
    if writes:
        write_file(job, job.device())
    found = checksum(job, job.device())
    job.quiet(f"nvme disconnect -n {job.nqn}")
    return found


def by_iwarp(job: Job) -> str:
    job.run("rdma link delete rxe1; rdma link add siw1 type siw netdev eth1")
    return by_nvme(job, "rdma", 1)


def by_aoe(job: Job) -> str:
    job.quiet(f"for n in $(seq 50); do echo > /dev/etherd/discover; [ -b {AOE_DISK} ] && exit 0; "
              "sleep 0.2; done; exit 1")
    return checksum(job, AOE_DISK)


def four_protocols(job: Job) -> None:
    """Read the file by each protocol; EssdError if one of them reads something else."""
    sums = dict(zip(PROTOCOLS, (by_nvme(job, "rdma", 0, writes=True), by_iwarp(job),
                                by_nvme(job, "tcp", 0), by_aoe(job)), strict=True))
    first = sums[PROTOCOLS[0]]
    for protocol, found in sums.items():
        if found != first:
            raise EssdError(f"by {protocol} the checksum of {FILE} is {found}, and by "
                            f"{PROTOCOLS[0]} it is {first}")
    job.claim(f"one file has the same checksum over {', '.join(PROTOCOLS[:-1])} and "
              f"{PROTOCOLS[-1]}", "nvme connect, /dev/etherd, mount, sha256sum")
