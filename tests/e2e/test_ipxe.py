# SPDX-License-Identifier: BSD-2-Clause
"""iPXE, in the ROM of a stock QEMU's network card, boots from a namespace by AoE.

A host at port 0 writes the disk by NVMe, and iPXE at port 1 boots from it.  The boot
sector reads more sectors and prints what they say.  When a key is pressed, it writes these
sectors to another place, where the host finds them.  iPXE sends a request again with the
same tag, so a write whose answer was lost is not executed a second time.
"""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uart_dialogue

from essd.api.faults import Faults
from essd.drive import mgmt
from essd.instance import steps
from essd.instance.steps import Job
from essd.machine import vm
from essd.machine.outside import Outside

pytestmark = [pytest.mark.drive, pytest.mark.uml]

WAIT_S = 120.0
SECTOR = 512
LOADED_LBA, WRITTEN_LBA, SECTORS = 5000, 9000, 32
LAST_LBA = WRITTEN_LBA + SECTORS
LOAD_AT = 0x8000
LOADED = b"The last loaded sector says this. Press a key.\r\n\0"
WRITTEN = b"All sectors are written.\r\n\0"
FAILED = b"The BIOS has reported an error.\r\n\0"
# Where the parts of the boot sector are in memory.
BEGIN, FAIL, PRINT, HALT = 0x7c00, 0x7c50, 0x7c60, 0x7c70
READ, WRITE, TEXTS = 0x7c80, 0x7c90, 0x7ca0


def word(number: int) -> bytes:
    return number.to_bytes(2, "little")


def call_print(at: int, text: int) -> bytes:
    """At this address: mov si, text; call PRINT."""
    return b"\xbe" + word(text) + b"\xe8" + word((PRINT - (at + 6)) & 0xffff)


def transfer(at: int, packet: int, function: int) -> bytes:
    """At this address: mov si, packet; mov ax, function; int 13h; jc FAIL."""
    return (b"\xbe" + word(packet) + b"\xb8" + word(function)
            + b"\xcd\x13\x72" + bytes([FAIL - (at + 10)]))


def address_packet(lba: int) -> bytes:
    """What the extended functions of int 13h read or write."""
    return (bytes([16, 0]) + word(SECTORS) + word(LOAD_AT) + word(0)
            + lba.to_bytes(8, "little"))


def boot_sector() -> bytes:
    code = bytearray(SECTOR)

    def put(at: int, data: bytes) -> int:
        code[at - BEGIN:at - BEGIN + len(data)] = data
        return at + len(data)

    # xor ax, ax; mov ds, ax; mov ss, ax; mov sp, BEGIN; cld.  The BIOS gives DL.
    at = put(BEGIN, b"\x31\xc0\x8e\xd8\x8e\xd0\xbc" + word(BEGIN) + b"\xfc")
    at = put(at, transfer(at, READ, 0x4200))
    at = put(at, call_print(at, LOAD_AT + (SECTORS - 1) * SECTOR))
    at = put(at, b"\x31\xc0\xcd\x16")           # xor ax, ax; int 16h: wait for a key
    at = put(at, transfer(at, WRITE, 0x4300))
    at = put(at, call_print(at, TEXTS))
    at = put(at, b"\xeb" + bytes([HALT - (at + 2)]))
    assert at <= FAIL
    at = put(FAIL, call_print(FAIL, TEXTS + len(WRITTEN)))
    put(at, b"\xeb" + bytes([HALT - (at + 2)]))
    # lodsb; test al, al; jz to ret; mov ah, 0Eh; mov bx, 7; int 10h; jmp to lodsb; ret
    put(PRINT, b"\xac\x84\xc0\x74\x09\xb4\x0e\xbb\x07\x00\xcd\x10\xeb\xf2\xc3")
    put(HALT, b"\xfb\xf4\xeb\xfd")              # sti; hlt; jmp to hlt: the console needs timers
    put(READ, address_packet(LOADED_LBA))
    put(WRITE, address_packet(WRITTEN_LBA))
    put(TEXTS, WRITTEN + FAILED)
    put(BEGIN + SECTOR - 2, b"\x55\xaa")
    return bytes(code)


class Machine:
    """A machine with one network card, no disk, and its console at a serial port."""

    def __init__(self, wire: Path) -> None:
        self.heard = b""
        self.process = subprocess.Popen([
            vm.QEMU, "-nodefaults", "-no-user-config", "-display", "none",
            "-M", "pc,usb=off,graphics=off", "-m", "64", "-serial", "stdio",
            "-netdev", f"stream,id=essd1,server=off,addr.type=unix,addr.path={wire}",
            "-device", "virtio-net-pci,netdev=essd1,mac=02:e5:5e:00:07:01"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def until(self, text: str) -> str:
        """Wait for a text; return what was printed before it."""
        assert self.process.stdout is not None
        end = time.monotonic() + WAIT_S
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while text.encode() not in self.heard:
                assert selector.select(max(0, end - time.monotonic())), self.heard
                more = os.read(self.process.stdout.fileno(), 4096)
                assert more, self.heard
                self.heard += more
        before, _, self.heard = self.heard.partition(text.encode())
        return before.decode(errors="replace")

    def press(self, keys: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(keys)

    def type_line(self, command: str) -> None:
        """Type at iPXE's command line: the BIOS has room for 16 keys, so wait for each echo."""
        for key in command:
            self.press(key.encode())
            self.until(key)
        self.press(b"\r")

    def order(self, command: str) -> str:
        """Give iPXE's command line a command; return what it prints."""
        self.type_line(command)
        return self.until("iPXE>")


@contextmanager
def ipxe(wire: Path) -> Iterator[Machine]:
    """iPXE at its command line, with its card open."""
    machine = Machine(wire)
    try:
        machine.until("for the iPXE command line...")
        machine.press(b"\x02")      # Ctrl-B
        machine.until("iPXE>")
        machine.order("ifopen net0")
        yield machine
    finally:
        machine.process.kill()
        machine.process.communicate(timeout=30)


def counters(job: Job) -> dict[str, int]:
    return dict(mgmt.ask(job.instance, "counters")["aoe"])


def prepare(job: Job, folder: Path) -> str:
    """Export namespace 1, and write the disk by NVMe; return the host's device."""
    for line in ("config set aoe.export 1", "config set aoe.shelf 7", "config save"):
        assert uart_dialogue.ask(job.instance, line)[-1].startswith("ok")
    job.instance.ask("power-cut")
    job.instance.ask("power-on")
    steps.wait_target(job)
    device = steps.connect(job)
    (folder / "boot").write_bytes(boot_sector())
    (folder / "loaded").write_bytes(os.urandom((SECTORS - 1) * SECTOR)
                                    + LOADED.ljust(SECTOR, b"\0"))
    for name, lba in (("boot", 0), ("loaded", LOADED_LBA)):
        job.instance.put(folder / name, f"/tmp/{name}")
        job.quiet(f"dd if=/tmp/{name} of={device} bs=512 seek={lba} oflag=direct status=none")
    return device


def test_ipxe_boots_from_a_namespace_and_writes_it(booted: Callable[..., Job],
                                                   tmp_path: Path) -> None:
    wire = tmp_path / "port1"
    job = booted(size="64M", outside=(None, Outside("listen", str(wire))))
    device = prepare(job, tmp_path)
    before = counters(job)
    with ipxe(wire) as machine:
        assert "Registered SAN device 0x80" in machine.order("sanhook --drive 0x80 aoe:e7.0")
        assert "SAN device" in machine.order("sanhook --drive 0x81 aoe:e7.1")   # not exported
        machine.order("sanunhook --drive 0x80")
        attached = counters(job)
        machine.type_line("sanboot aoe:e7.0")
        machine.until("Booting from SAN device 0x80")
        machine.until(LOADED.decode().rstrip("\r\n\0"))
        loaded = counters(job)
        Faults(job.instance).add("wire port=1 direction=out aoe.answer=1 when nth=1 do drop")
        machine.press(b" ")
        machine.until(WRITTEN.decode().rstrip("\r\n\0"))
    after = counters(job)
    print(before, attached, loaded, after, sep="\n")
    assert attached["dropped-not-ours"] > before["dropped-not-ours"]
    assert loaded["reads"] - attached["reads"] >= 1 + SECTORS // 2
    assert loaded["writes"] == before["writes"]
    assert after["writes"] - loaded["writes"] == SECTORS // 2
    assert after["repeated-writes"] == before["repeated-writes"] + 1
    for name in ("ata-errors", "refused", "dropped-malformed", "dropped-full"):
        assert after[name] == before[name], name
    job.quiet(f"dd if={device} bs=512 skip={WRITTEN_LBA} count={SECTORS} iflag=direct "
              "status=none | cmp - /tmp/loaded")
