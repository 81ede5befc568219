# SPDX-License-Identifier: BSD-2-Clause
"""Make, read, sign and check firmware images: docs/hardware/flash.md, "Image slots".

An image's file is what a slot holds: a sector with the header, then the image,
padded to whole sectors.  So `nvme fw-download` can send it as it is.
"""

import hashlib
import struct
import subprocess
import tempfile
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..base.errors import EssdError, LOOK_UP_S

IMAGE_MAGIC = b"ESSD-IMG"
IMAGE_HEADER_LEN = 256
HEADER_1 = "<8sIIQQII32s52x"                # version 1 without its CRC
HEADER_2 = "<8sIIQQII32sIII12x64s64sB27x"   # version 2 without its CRC
SIGNED_LEN = 160
SEQUENCE = slice(12, 16)                    # which the signature does not cover
FLAG_SIGNED = 1
SECTOR = 4096
LOAD_ADDR = 0x80000000                      # the beginning of the DRAM
DRAM_BYTES = 512 << 20
BOARD = 0x44535345                          # "ESSD"
MAX = 0x800000 - SECTOR
# What precedes the 32 bytes of an Ed25519 public key in DER (RFC 8410).
DER_KEY = bytes.fromhex("302a300506032b6570032100")


class ImageError(EssdError):
    """An image is not good, or cannot be made; the text says why."""


class NotInstalled(ImageError):
    """The openssl program, which signs and checks signatures, is missing."""


@dataclass(frozen=True)
class Image:
    """A firmware image and the fields of its header."""

    data: bytes = field(repr=False)
    version: str
    sequence: int = 0
    load_addr: int = LOAD_ADDR
    entry: int = LOAD_ADDR
    format: int = 2
    security: int = 0                       # images with a lower one are refused
    signature: bytes = b""                  # of 64 bytes, or none
    board: int = BOARD
    made_here: bool = False                 # the tool wrote it into the flash file

    def header(self) -> bytes:
        if not 0 < len(self.data) <= MAX:
            raise ImageError(f"a firmware image of {len(self.data)} bytes does not "
                             f"fit into a slot (1 to {MAX} bytes)")
        name = self.version
        if not name or not name.isascii() or not name.isprintable() or len(name) > 32:
            raise ImageError(f"version {name!r} is not 1 to 32 characters of ASCII")
        common = (IMAGE_MAGIC, self.format, self.sequence, self.load_addr, self.entry,
                  len(self.data), zlib.crc32(self.data), name.encode())
        if self.format == 1:
            head = struct.pack(HEADER_1, *common)
        else:
            head = struct.pack(HEADER_2, *common, self.board, self.security,
                               FLAG_SIGNED if self.signature else 0,
                               hashlib.sha512(self.data).digest(), self.signature,
                               self.made_here)
        return head + struct.pack("<I", zlib.crc32(head))

    def file(self) -> bytes:
        """The bytes that a host downloads."""
        head = replace(self, made_here=False).header().ljust(SECTOR, b"\xff")
        return head + self.data + b"\xff" * (-len(self.data) % SECTOR)

    @classmethod
    def of_file(cls, data: bytes, name: str = "the image") -> "Image":
        image = cls.of_slot(data, name)
        text = data[40:72].rstrip(b"\0")
        if image.version.encode() != text or not text:
            raise ImageError(f"{name} has a version that is not 1 to 32 printable characters")
        if len(data) != len(image.file()):
            raise ImageError(f"{name} has {len(data)} bytes, but its header says "
                             f"{len(image.file())}")
        return image

    @classmethod
    def of_slot(cls, data: bytes, name: str = "the image") -> "Image":
        """Parse a slot's content, in which anything may follow the image."""
        if data[:8] != IMAGE_MAGIC or len(data) < SECTOR:
            raise ImageError(f"{name} does not begin with the header of an image")
        version = int.from_bytes(data[8:12], "little")
        length = 128 if version < 2 else IMAGE_HEADER_LEN
        head = data[:length]
        if zlib.crc32(head[:-4]) != int.from_bytes(head[-4:], "little"):
            raise ImageError(f"{name} has a header with a wrong CRC")
        if version not in (1, 2):
            raise ImageError(f"{name} has a header of the unknown version {version}")
        board, security, flags, digest, signature, made_here = BOARD, 0, 0, b"", b"", 1
        if version == 1:
            found = struct.unpack(HEADER_1, head[:-4])
        else:
            found = struct.unpack(HEADER_2, head[:-4])
            board, security, flags, digest, signature, made_here = found[8:]
        _, _, sequence, load_addr, entry, size, crc, text = found[:8]
        if board != BOARD:
            raise ImageError(f"{name} is made for another board ({board:#x})")
        if not (LOAD_ADDR <= load_addr <= LOAD_ADDR + DRAM_BYTES - size and
                load_addr <= entry < load_addr + size and entry % 4 == 0):
            raise ImageError(f"{name} does not fit into the DRAM at its load address "
                             f"{load_addr:#x}, or has its entry point elsewhere")
        body = data[SECTOR:SECTOR + size]
        if not 0 < size <= MAX or len(body) != size:
            raise ImageError(f"{name} has {len(data)} bytes, but its header says that "
                             f"an image of {size} bytes follows")
        if zlib.crc32(body) != crc:
            raise ImageError(f"{name} has a wrong CRC")
        if digest and hashlib.sha512(body).digest() != digest:
            raise ImageError(f"{name} has a wrong hash")
        return cls(body, _printable(text), sequence, load_addr, entry,
                   version, security, signature if flags & FLAG_SIGNED else b"", board,
                   bool(made_here))

    def signed_bytes(self) -> bytes:
        """What the signature covers: the header up to it, without the sequence number."""
        bytes_ = bytearray(replace(self, signature=bytes(64)).header()[:SIGNED_LEN])
        bytes_[SEQUENCE] = bytes(4)
        return bytes(bytes_)

    def sign(self, key: Path) -> "Image":
        """Sign the image with a private key in a PEM file."""
        image = replace(self, format=2)
        with tempfile.NamedTemporaryFile() as message:
            message.write(image.signed_bytes())
            message.flush()
            signature = openssl("pkeyutl", "-sign", "-rawin", "-inkey", str(key), "-in",
                                message.name)
        if len(signature) != 64:
            raise ImageError(f"{key} is not an Ed25519 key; essd firmware key makes one")
        return replace(image, signature=signature)

    def is_signed_with(self, public: bytes) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("key", "message", "signature")]
            for file, data in zip(files, (DER_KEY + public, self.signed_bytes(),
                                          self.signature), strict=True):
                file.write_bytes(data)
            try:
                openssl("pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER",
                        "-inkey", str(files[0]), "-in", str(files[1]), "-sigfile",
                        str(files[2]))
            except ImageError:
                return False
        return True


def _printable(text: bytes) -> str:
    """Return a version as the drive shows it, without characters that are not printable."""
    return "".join(chr(c) if 32 <= c <= 126 else "?" for c in text.split(b"\0")[0])


def openssl(*words: str) -> bytes:
    try:
        result = subprocess.run(["openssl", *words], capture_output=True, check=False,
                                stdin=subprocess.DEVNULL, timeout=LOOK_UP_S)
    except FileNotFoundError:
        raise NotInstalled("openssl is not installed: apt-get install openssl") from None
    if result.returncode != 0:
        lines = result.stderr.decode(errors="replace").strip().splitlines() or ["failed"]
        raise ImageError(f"openssl {words[0]}: {lines[0]}")
    return result.stdout


def make_key(path: Path) -> bytes:
    """Make a private key in a new PEM file; return its public key."""
    if path.exists():
        raise ImageError(f"{path} exists already; remove it to make another key")
    path.touch(mode=0o600)
    path.write_bytes(openssl("genpkey", "-algorithm", "ed25519"))
    return public_key(path)


def is_private(path: Path) -> bool:
    """Whether a PEM file says that it has a private key."""
    try:
        return "PRIVATE KEY" in path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}") from None


def public_key(path: Path) -> bytes:
    """The public key of a PEM file with a private or a public key."""
    kind = [] if is_private(path) else ["-pubin"]
    try:
        # With an empty passphrase, openssl does not ask for the one of an encrypted key.
        der = openssl("pkey", *kind, "-passin", "pass:", "-in", str(path), "-pubout",
                      "-outform", "DER")
    except NotInstalled:
        raise
    except ImageError:
        der = b""               # not a key, or an encrypted one
    if not der.startswith(DER_KEY) or len(der) != len(DER_KEY) + 32:
        raise ImageError(f"{path} is not a PEM file with an Ed25519 key that is not encrypted; "
                         "essd firmware key makes one")
    return der[len(DER_KEY):]


