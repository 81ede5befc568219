# SPDX-License-Identifier: BSD-2-Clause
"""A drive with a boot key in QEMU: it starts firmware that is signed with the key only."""

from dataclasses import replace
from pathlib import Path

import pytest
from test_soc import Machine

from essd.build import fw_build, qemu_build
from essd.debug import reflash
from essd.instance.config import BootKey
from essd.storage import boot_key, flash as fl
from essd.storage.image import make_key

STARTED = "nvme-of: listening"


@pytest.fixture
def key(tmp_path: Path) -> BootKey:
    make_key(tmp_path / "key.pem")
    return boot_key.of_file(tmp_path / "key.pem")


def said(folder: Path, flash: Path, key: BootKey, until: str) -> str:
    machine = Machine(qemu_build.ensure_qemu(), folder, flash,
                      machine=f"essd,media=media,boot-key={key.public}")
    try:
        return machine.wait_for(until)
    finally:
        machine.close()


def test_the_firmware_that_essd_up_signs_starts(tmp_path: Path, key: BootKey) -> None:
    firmware, flash = fw_build.ensure_firmware(), tmp_path / "flash.img"
    fl.ensure_flash(flash, firmware, fl.Config(), sign=lambda image: boot_key.sign(image, key))
    assert "signed" not in said(tmp_path, flash, key, STARTED)
    file = fl.FlashImage.load(flash)        # as essd flash
    reflash.write_new(file, "B", firmware.image.read_bytes(), "0.9.9", key)
    file.save(flash)
    said(tmp_path, flash, key, "boot: slot B: firmware 0.9.9, sequence 3")
    said(tmp_path, flash, key, STARTED)


def test_firmware_without_the_right_signature_does_not_start(tmp_path: Path,
                                                             key: BootKey) -> None:
    flash = tmp_path / "flash.img"
    fl.ensure_flash(flash, fw_build.ensure_firmware(), fl.Config())
    assert said(tmp_path, flash, key, "boot: stopped").count(
        "not signed with this drive's key") == 2
    make_key(tmp_path / "other.pem")
    file = fl.FlashImage.load(flash)
    image = file.image("A")
    assert image is not None
    file.set_image("A", replace(image.sign(tmp_path / "other.pem"), sequence=9))
    file.save(flash)
    assert said(tmp_path, flash, key, "boot: stopped").count(
        "not signed with this drive's key") == 2
