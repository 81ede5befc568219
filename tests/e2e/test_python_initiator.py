# SPDX-License-Identifier: BSD-2-Clause
"""PyPI's package nvmeof, an NVMe/RDMA host in user space, over siw (iWARP) and rxe (RoCE).

It shares nothing with Linux's nvme-rdma but the verbs: it has no kernel connection, one key
for a buffer that lives long, and no keep-alive.  Its wheels are fetched from PyPI, and the
guest with Python is that of test_stas.py.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import uart_dialogue

import essd
from essd.base import paths
from essd.build import guest_variant
from essd.drive import mgmt
from essd.instance import steps
from essd.instance.config import UML
from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml, pytest.mark.long]

GUEST = paths.TOP / "tests/stas/guest"
WHEELS = """\
nvmeof==2026.10.22 --hash=sha256:741f3247119fb6254dca6c23d82f14d83f339dbdfe9ecbae08941ab680582bf5
ibverbs==2026.10.22 --hash=sha256:e4fc7aac60e9f2232633e841eaaab7fc8f3adc1014e6945221e028fedc148804
"""
TOPOLOGY = """\
drives:
  drive: {{size: 256M}}
hosts:
  host: {{kind: uml, guest: {guest}}}
cables:
  - drive:[0-1] - host
"""
PIECE, PIECES = 1 << 20, 8
PROGRAM = f"""
import hashlib, os, sys
sys.path.insert(0, "/tmp/initiator")
import nvmeof
address, nqn = sys.argv[1:]
with nvmeof.Controller.connect(address, nqn) as controller:
    namespace = controller.namespace(1)
    whole = hashlib.sha256()
    with controller.allocate({PIECE}) as out, controller.allocate({PIECE}) as back:
        blocks = {PIECE} // namespace.lba_size
        for piece in range({PIECES}):
            data = os.urandom({PIECE})
            whole.update(data)
            out.write(data)
            namespace.write(out, piece * blocks)
            namespace.read(back, piece * blocks)
            assert back.read() == data, piece
        namespace.flush()
print(whole.hexdigest())
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("wheels")
    (folder / "wanted.txt").write_text(WHEELS)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
         "--only-binary", ":all:", "-r", folder / "wanted.txt", "-d", folder],
        capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        pytest.skip(f"PyPI's nvmeof cannot be had: {done.stderr.strip().splitlines()[-1]}")
    return sorted(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python_host(host_kind: str, wheels: list[Path], tmp_path_factory: pytest.TempPathFactory,
                request: pytest.FixtureRequest) -> Iterator[Job]:
    """A drive that takes iWARP, and a host with Python; port 0 has siw, port 1 rxe."""
    if host_kind != UML:
        pytest.skip("user-mode Linux is not used, and Debian's kernel has no siw")
    if not guest_variant.is_built(GUEST) and "not long" in str(request.config.getoption("-m")):
        pytest.skip("the guest with Python is not built: `essd test --all` does")
    file = tmp_path_factory.mktemp("initiator") / "python.yaml"
    file.write_text(TOPOLOGY.format(guest=GUEST))
    with essd.up(topology=file) as system:
        job = Job.of(system.instance)
        for line in ("config set nvme.iwarp on", "config save"):
            assert uart_dialogue.ask(job.instance, line)[-1].startswith("ok")
        job.instance.ask("power-cut")
        job.instance.ask("power-on")
        steps.wait_target(job)
        job.quiet("rdma link delete rxe0 && rdma link add siw0 type siw netdev eth0")
        for wheel in wheels:
            job.instance.put(wheel, "/tmp/wheel")
            job.quiet("python3 -m zipfile -e /tmp/wheel /tmp/initiator")
        program = file.with_name("program.py")
        program.write_text(PROGRAM)
        job.instance.put(program, "/tmp/program.py")
        yield job


@pytest.mark.parametrize("port, is_iwarp", [(0, True), (1, False)], ids=["siw", "rxe"])
def test_what_the_package_writes_linux_reads(python_host: Job, port: int,
                                             is_iwarp: bool) -> None:
    job = python_host

    def fpdus() -> int:
        return int(mgmt.ask(job.instance, "counters")["iwarp"]["fpdus-in"])
    before = fpdus()
    written = job.quiet(f"python3 /tmp/program.py {job.addresses[port]} {job.nqn}").strip()
    assert (fpdus() > before) == is_iwarp
    device = steps.connect(job, port)
    read = job.quiet(f"dd if={device} bs={PIECE} count={PIECES} iflag=direct status=none "
                     "| sha256sum")
    assert read.split()[0] == written
    steps.disconnect(job)
