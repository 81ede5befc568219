# SPDX-License-Identifier: BSD-2-Clause
"""The boot key of a drive: a public key that is fused into its chip when it is created.

A drive with a boot key starts only firmware images that are signed with it
(docs/firmware-update.md).  The record beside its flash file has the public key, and
says where the PEM file with the private key is, with which `essd up` and `essd flash`
sign the firmware of the checkout.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ..base import files, persisted
from ..base.errors import EssdError
from ..instance.config import BootKey
from .image import Image, ImageError, is_private, public_key

FILE = "boot-key.json"


class DamagedError(EssdError):
    """The record of the drive's key cannot be read."""


def of_file(path: Path) -> BootKey:
    """The key in a PEM file, which has to be a private one."""
    public = public_key(path)
    if not is_private(path):
        raise ImageError(f"{path} has a public key only: give the file with the private key, "
                         "with which essd up signs the drive's firmware")
    return BootKey(public.hex(), str(path.absolute()))


def recorded(folder: Path) -> BootKey | None:
    """The key of the drive in this folder, or None if it has none."""
    place = folder / FILE
    try:
        found = persisted.parse(place.read_text(encoding="utf-8"), BootKey)
        if len(bytes.fromhex(found.public)) != 32:
            raise ValueError("the key does not have 64 hexadecimal digits")
        return found
    except FileNotFoundError:
        return None
    except (OSError, ValueError, persisted.ShapeError) as error:
        raise DamagedError(f"the record {place} of the drive's boot key cannot be read "
                           f"({error}): say with essd up --boot-key FILE which key it is"
                           ) from None


def record(folder: Path, key: BootKey) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.replace_file(folder / FILE, (json.dumps(asdict(key), indent=2) + "\n").encode())


def choose(folder: Path, asked: Path | None, is_old: bool,
           fits: Callable[[BootKey], bool] = lambda key: True) -> BootKey | None:
    """The drive's key; a new drive gets the one that is asked for, which is recorded.

    So does an old drive whose record is damaged: only its user knows which key it had.
    `fits` says whether an image of the drive is signed with a key.
    """
    try:
        kept = recorded(folder)
    except DamagedError:
        if asked is None:
            raise
        key = of_file(asked)
        if is_old and not fits(key):
            raise EssdError(f"--boot-key {asked}: no image of the drive is signed with it"
                            ) from None
        record(folder, key)
        return key
    if asked is None:
        return kept
    key = of_file(asked)
    if is_old and kept is None:
        raise EssdError("--boot-key: the drive has been created without a boot key: choose "
                        "another --name, or replace the drive by a new one with --new")
    if kept is not None and kept.public != key.public:
        raise EssdError(f"--boot-key {asked}: the drive has been created with another boot "
                        "key: omit --boot-key, or replace the drive by a new one with --new")
    if key != kept:
        record(folder, key)
    return key


def sign(image: Image, key: BootKey | None) -> Image:
    """Sign an image for a drive with this key; without one, the image stays as it is."""
    if key is None:
        return image
    path = Path(key.file)
    if not path.exists():
        raise EssdError(f"{path}, with which the drive's firmware is signed, does not exist: "
                        "say with essd up --boot-key FILE where the boot key is now")
    if public_key(path).hex() != key.public:
        raise EssdError(f"{path} does not have the drive's boot key any more: say with essd "
                        "up --boot-key FILE where the boot key is now")
    return image.sign(path)


def check(image: Image, key: BootKey | None) -> None:
    """EssdError unless a drive with this key, or without one, accepts the image."""
    if key is None:
        return
    if not image.signature:
        raise EssdError("the image is not signed, and the drive has a boot key: sign it with "
                        "essd firmware sign, or give --key")
    if not image.is_signed_with(bytes.fromhex(key.public)):
        raise EssdError("the signature of the image does not fit the drive's boot key: sign "
                        "it with that key")
