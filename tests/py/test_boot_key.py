# SPDX-License-Identifier: BSD-2-Clause
"""A drive with a boot key in QEMU: it starts firmware that is signed with the key only."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from test_soc import Machine

from essd.base.errors import EssdError
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


def test_a_full_disk_leaves_the_record_as_it_was(tmp_path: Path, key: BootKey,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    boot_key.record(tmp_path, key)

    def full(*words: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        boot_key.record(tmp_path, replace(key, file="/elsewhere/key.pem"))
    assert boot_key.recorded(tmp_path) == key


def test_a_damaged_record_is_replaced_when_the_key_is_given_again(tmp_path: Path,
                                                                  key: BootKey) -> None:
    (tmp_path / boot_key.FILE).write_bytes(b"")
    with pytest.raises(EssdError, match="say with essd up --boot-key FILE which key it is"):
        boot_key.choose(tmp_path, None, is_old=True)
    assert boot_key.choose(tmp_path, Path(key.file), is_old=True) == key
    assert boot_key.recorded(tmp_path) == key
