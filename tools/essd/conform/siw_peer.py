# SPDX-License-Identifier: BSD-2-Clause
"""Linux's own target over iWARP and RoCE: `essd conform --peer siw`.

The target is user-mode Linux, whose card has a device of siw and one of rxe.  nvmet
listens at all addresses, and so with both devices: the suite's own host uses RoCE, and
the chapter `iwarp` and `--over-iwarp` use TCP port 4420 of the same address.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..base import interrupts
from ..base.errors import EssdError
from ..build import uml_build
from ..instance.config import SERVICE
from ..instance.instance import Instance
from ..setup.temporary import Temporary
from ..topology import reader, setup as topology_setup
from .peer import BLOCK, KERNEL, NSID, NvmetPeer, SIZE_MIB, wait_listener

PART = "linux"
IP = "10.0.0.1"
NQN = "nqn.2014-08.org.nvmexpress:uuid:6e766d65-7400-4000-8000-0000000000c1"
TOPOLOGY = """\
hosts:
  {part}: {{kind: uml, card0: {ip}/24}}
switches:
  s: {{}}
cables:
  - {part}:0 - s
  - "s - listen={socket}"
"""
DEVICES = ("rdma link show | grep -q rxe0 || rdma link add rxe0 type rxe netdev eth0; "
           "rdma link add siw0 type siw netdev eth0")
PORT = "/sys/kernel/config/nvmet/ports/1"
SUBSYSTEM = f"/sys/kernel/config/nvmet/subsystems/{NQN}"
SERVE = f"""set -e
modprobe null_blk nr_devices=0
modprobe nvmet_rdma
null=/sys/kernel/config/nullb/disk
mkdir $null
echo {SIZE_MIB} > $null/size
echo {BLOCK} > $null/blocksize
echo 1 > $null/memory_backed
echo 1 > $null/discard
echo 1 > $null/power
mkdir {SUBSYSTEM}
echo 1 > {SUBSYSTEM}/attr_allow_any_host
mkdir {SUBSYSTEM}/namespaces/{NSID}
echo /dev/disk > {SUBSYSTEM}/namespaces/{NSID}/device_path
echo 1 > {SUBSYSTEM}/namespaces/{NSID}/enable
mkdir {PORT}
echo rdma > {PORT}/addr_trtype
echo ipv4 > {PORT}/addr_adrfam
echo 0.0.0.0 > {PORT}/addr_traddr
echo {SERVICE} > {PORT}/addr_trsvcid
ln -s {SUBSYSTEM} {PORT}/subsystems/
"""
# siw counts the references to its listener wrongly when a request is malformed, and frees
# it some seconds later.  Then nvmet's port is made again; a test waits for that.
LISTENS = ":1144 00000000:0000 0A"      # port 4420 in /proc/net/tcp
KEEP = f"""(while sleep 0.1; do
    grep -q '{LISTENS}' /proc/net/tcp || {{
        rm {PORT}/subsystems/*
        ln -s {SUBSYSTEM} {PORT}/subsystems/
        echo again
    }}
done > /tmp/listener.log 2>&1 < /dev/null &)"""


@contextlib.contextmanager
def started() -> Iterator[NvmetPeer]:
    """Boot the target; stop it and delete its files at the end."""
    if not uml_build.is_built():
        raise EssdError("--peer siw needs user-mode Linux: essd prepare --uml builds it")
    owner = Temporary("conform-siw-")
    instance = Instance(owner.name)
    try:
        with tempfile.TemporaryDirectory(prefix="essd-siw-") as folder:
            socket = Path(folder, "port0.sock")
            topology = reader.load(TOPOLOGY.format(part=PART, ip=IP, socket=socket),
                                   "essd conform --peer siw", Path(folder))
            config = topology_setup.configure(topology, instance.name)
            config.hosts[PART].kernel = [*config.hosts[PART].kernel, *KERNEL]
            instance.start(config, bound=True)
            instance.wait_ready(PART)
            wait_listener(socket)
            for script in (DEVICES, SERVE, KEEP):
                instance.run(script, part=PART)
            kernel = instance.run("uname -r", part=PART, apart=True).output.strip()
            yield NvmetPeer(socket, IP, "", NQN, NSID, 1500, SIZE_MIB, False, kernel,
                            instance, part=PART, has_iwarp=True)
    finally:
        with interrupts.ignored():
            instance.stop_started()
            owner.delete()
