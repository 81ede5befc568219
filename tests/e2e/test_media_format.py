# SPDX-License-Identifier: BSD-2-Clause
"""A host that writes a disk image to the drive always reads the same bytes back."""

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from essd.build import qemu_build
from essd.instance import steps
from essd.instance.steps import Job
from essd.setup import setup
from essd.setup.setup import Wish
from essd.storage.media import MediaError

pytestmark = pytest.mark.uml

SECRET = b"a secret of the user\n"
SIZE = 256 << 20


def image_with_secret(folder: Path) -> bytes:
    """A qcow2 image whose backing file is a file of the user."""
    secret = folder / "secret"
    secret.write_bytes(SECRET.ljust(SIZE, b"."))
    image = folder / "image"
    qemu_img = qemu_build.ensure_qemu().with_name("qemu-img")
    subprocess.run([qemu_img, "create", "-q", "-f", "qcow2", "-F", "raw", "-b", secret,
                    image], check=True, timeout=60)
    return image.read_bytes()


def read_sum(job: Job, size: int) -> str:
    """SHA-256 of the drive's first bytes, as the host reads them."""
    done = job.instance.run(f"dd if={job.device()} bs=4096 count={size // 4096} "
                            "iflag=direct status=none | sha256sum", apart=True)
    return done.output.split()[0]


@pytest.mark.drive
def test_an_image_that_a_host_writes_opens_no_file_at_the_next_start(
        booted: Callable[..., Job], tmp_path: Path) -> None:
    image = image_with_secret(tmp_path)
    image += bytes(-len(image) % 4096)
    media = tmp_path / "media.qcow2"        # a name that invites to believe it
    job = booted(media=media, size="256M")
    steps.connect(job)
    job.instance.run(f"dd of={job.device()} bs=4096 oflag=direct conv=fsync "
                     "iflag=fullblock status=none", send=image)
    steps.disconnect(job)
    job.instance.stop()
    assert media.read_bytes()[:len(image)] == image

    wish = Wish(name=job.instance.name, media=media)
    job.instance.start(setup.configure(wish))
    job.instance.wait_ready("host")
    job = Job.of(job.instance)
    steps.wait_target(job)
    steps.connect(job)
    assert read_sum(job, len(image)) == hashlib.sha256(image).hexdigest()
    steps.disconnect(job)
    job.instance.stop()
    with pytest.raises(MediaError, match="is recorded as raw"):
        setup.configure(Wish(name=job.instance.name, media=media, media_format="qcow2"))
