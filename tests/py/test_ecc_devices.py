# SPDX-License-Identifier: BSD-2-Clause
"""What devices do with words of DRAM and SRAM that have errors, and how these words are saved.

There is no firmware: the tests access registers and memory over qtest.
"""

import signal
import socket
import struct
from pathlib import Path

import pytest
from test_port_media import (ARP, DRAM, MEDIA, OK, PORT0, READ, Machine, MediaQueue,  # noqa: F401
                             medium, qemu, received, start, start_port)
from test_rnic import RNIC, Rnic

ECC, SPI_DMA, MGMT, SRAM = 0x1000a000, 0x10006000, 0x10130000, 0x08000000
STATUS, CORRECTED, UNCORRECTED, ADDRESS = 0x08, 0x0c, 0x10, 0x1c
MGMT_CTRL, MGMT_DOORBELL, MGMT_IRQ_STATUS = 0x10, 0x38, 0x3c
LOST_BY_DMA = 6         # STATUS: UNCORRECTED and BY_DMA
BAD_ADDRESS = 3         # of a completion


def flip(machine: Machine, address: int, bits: int) -> None:
    machine.ask("qom-set", path="/machine/ecc", property="inject", value=f"{address:x} {bits:x}")


def words(machine: Machine) -> int:
    return machine.ask("qom-get", path="/machine/ecc", property="words")


def findings(machine: Machine) -> tuple[int, int, int]:
    """STATUS, and the numbers of corrected and uncorrected errors."""
    return tuple(machine.read32(ECC + register) for register in (STATUS, CORRECTED, UNCORRECTED))


def save(machine: Machine, path: Path) -> None:
    machine.ask("stop")
    machine.ask("migrate", uri=f"file:{path}")
    machine.wait(lambda: machine.ask("query-migrate").get("status") == "completed", "save")
    machine.end(signal.SIGTERM)


def test_words_with_errors_are_saved_and_loaded(start, tmp_path: Path) -> None:  # noqa: F811
    """Also words of rings, which a device looks for when it is loaded, but does not read then."""
    machine = start()
    queue = MediaQueue(machine)
    start_port(machine)
    for address, bits in ((DRAM + 0x21000, 1), (DRAM + 0x21020, 3), (DRAM + queue.COMMANDS, 3),
                          (DRAM + 0x90000, 3), (DRAM + 0x90008, 1), (SRAM, 1)):
        flip(machine, address, bits)
    machine.write(0x50000, ARP)
    before = findings(machine)
    assert before == (0, 0, 0)
    save(machine, tmp_path / "state")

    machine = start("-incoming", f"file:{tmp_path}/state")
    machine.wait(lambda: machine.ask("query-status")["status"] != "inmigrate", "load")
    machine.ask("cont")
    assert (words(machine), findings(machine)) == (6, before)
    machine.read(0x90008, 8)
    assert findings(machine) == (1, 1, 0)
    machine.read(0x90000, 8)
    assert findings(machine) == (3, 1, 1)
    assert machine.read32(ECC + ADDRESS) == DRAM + 0x90000
    flip(machine, DRAM + 0x90000, 3)    # the same bits: the word is right again
    assert words(machine) == 5


def test_a_port_reads_and_writes_words_with_errors(start) -> None:  # noqa: F811
    machine = start()
    start_port(machine)
    near = str(machine.folder / "near")
    flip(machine, DRAM + 0x30000, 3)        # the first word of the first buffer
    machine.cable.sendto(ARP, near)
    machine.wait(lambda: received(machine) == 1, "frame")
    assert (words(machine), findings(machine)) == (0, (0, 0, 0))

    flip(machine, DRAM + 0x32400 + 56, 1)   # the last 4 of 60 bytes are in this word
    machine.cable.sendto(ARP, near)
    machine.wait(lambda: received(machine) == 2, "frame")
    assert (words(machine), findings(machine)) == (0, (1, 1, 0))

    flip(machine, DRAM + 0x34800 + 56, 3)
    machine.cable.sendto(ARP, near)
    machine.wait(lambda: findings(machine)[2] == 1, "error")
    assert (words(machine), findings(machine)) == (1, (7, 1, 1))
    assert received(machine) == 2
    flip(machine, DRAM + 0x34800 + 56, 3)

    flip(machine, DRAM + 0x50008, 1)        # of a frame that is sent
    machine.write(0x50000, ARP[:8])
    machine.write(0x50010, ARP[16:])
    machine.write(0x22000, struct.pack("<QIIQII", DRAM + 0x50000, len(ARP), 0,
                                       DRAM + 0x52000, len(ARP), 0))
    flip(machine, DRAM + 0x52000, 3)
    machine.write(0x20080, struct.pack("<I", 2))
    machine.write32(PORT0 + 0x120, 1)
    assert len(machine.cable.recv(2000)) == 60
    machine.wait(lambda: findings(machine)[2] == 2, "error")
    machine.cable.setblocking(False)
    with pytest.raises(BlockingIOError):
        machine.cable.recv(2000)


def test_the_media_engine_reads_and_writes_words_with_errors(start) -> None:  # noqa: F811
    machine = start()
    queue = MediaQueue(machine)
    queue.put(8, b"A")
    flip(machine, DRAM + queue.DATA, 3)
    assert queue.run(READ, 8, 8) == OK      # it overwrites the lost word
    assert (words(machine), findings(machine)) == (0, (0, 0, 0))
    flip(machine, DRAM + queue.DATA, 3)
    assert queue.run(2, 8, 8) == BAD_ADDRESS
    assert (words(machine), findings(machine)) == (1, (LOST_BY_DMA, 0, 1))
    command = queue.COMMANDS + queue.posted % 16 * 128
    machine.write(command, struct.pack("<BBHIQQQQII", READ, 0, 1, 8, 7, 8, 0,
                                       DRAM + queue.DATA, 4096, 0).ljust(128, b"\0"))
    flip(machine, DRAM + command + 64, 3)
    queue.posted += 1
    machine.write(queue.PAGE, struct.pack("<I", queue.posted))
    machine.write32(MEDIA + 0x120, 1)
    assert queue.take() == BAD_ADDRESS
    assert (words(machine), findings(machine)) == (2, (LOST_BY_DMA, 0, 2))
    flip(machine, DRAM + queue.COMPLETIONS + queue.taken % 16 * 32, 3)
    assert queue.run(READ, 8, 8) == OK      # the completion overwrites the lost word
    assert findings(machine)[2] == 2


def test_the_rnic_reads_words_with_errors(start) -> None:  # noqa: F811
    machine = start()
    Rnic(machine)
    for number, bits in ((1, 1), (2, 3)):   # both commands are PD_CREATE
        machine.write(0x101000 + 128 * (number - 1), struct.pack("<BxxxxxxxI", 1, number))
        flip(machine, DRAM + 0x101000 + 128 * (number - 1) + 64, bits)
        machine.write(0x100000, struct.pack("<I", number))
        machine.wait(lambda: machine.read(0x100100, 1) == b"\1", "sleep")
        machine.write32(RNIC + 0x128, 1)
        if bits == 1:
            machine.wait(lambda: machine.read(0x101001, 1) == b"\1", "command")
            assert findings(machine) == (1, 1, 0)
    machine.wait(lambda: findings(machine)[2] == 1, "error")
    assert findings(machine)[0] == 7
    assert machine.read(0x101081, 1) == b"\0"


def start_mgmt(machine: Machine) -> None:
    """Page at 0x60000, rings of 256 at 0x61000 (in), 0x62000 (out) and 0x64000 (records)."""
    machine.write(0x60000, bytes(0x140))
    for i, at in enumerate((0x60000, 0x61000, 0x62000, 0x64000)):
        machine.write_address(MGMT + 0x14 + 8 * i, at)
    machine.write32(MGMT + 0x34, 8 | 8 << 8 | 8 << 16)
    machine.write32(MGMT + MGMT_CTRL, 1)
    assert machine.read32(MGMT + MGMT_CTRL) == 1


@pytest.mark.parametrize("at, bits", [(0x61000, 3), (0x60000, 3), (0x61000, 1)])
def test_the_management_block_writes_words_with_errors(
        start, tmp_path: Path, at: int, bits: int) -> None:  # noqa: F811
    machine = start("-chardev", f"socket,id=c,path={tmp_path}/mgmt,server=on,wait=off", "-machine",
                    "mgmt=c")
    start_mgmt(machine)
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(f"{tmp_path}/mgmt")
        machine.wait(lambda: machine.read(0x60000, 4) == b"\1\0\0\0", "line feed")
        flip(machine, DRAM + at, bits)
        channel.sendall(b"abc")
        machine.write32(MGMT + MGMT_DOORBELL, 1)
        if bits == 1:
            machine.wait(lambda: machine.read(0x60000, 4) == b"\4\0\0\0", "input")
            assert (words(machine), findings(machine)) == (0, (1, 1, 0))
            return
        machine.wait(lambda: machine.read32(MGMT + MGMT_CTRL) == 0, "end")
        assert machine.read32(MGMT + MGMT_IRQ_STATUS) & 2
        assert findings(machine)[0] & 4


def test_the_management_block_reads_words_with_errors(start, tmp_path: Path) -> None:  # noqa: F811
    machine = start("-chardev", f"socket,id=c,path={tmp_path}/mgmt,server=on,wait=off", "-machine",
                    "mgmt=c")
    start_mgmt(machine)
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(30)
        channel.connect(f"{tmp_path}/mgmt")
        machine.wait(lambda: machine.read(0x60000, 4) == b"\1\0\0\0", "line feed")
        machine.write(0x62000, b"hello world, 24 of them.")
        flip(machine, DRAM + 0x62008, 1)
        machine.write(0x60044, struct.pack("<I", 8 + 8))
        machine.write32(MGMT + MGMT_DOORBELL, 1)
        assert channel.recv(100) == b"hello world, 24 "
        assert findings(machine) == (1, 1, 0)
        flip(machine, DRAM + 0x62010, 3)
        machine.write(0x60044, struct.pack("<I", 24))
        machine.write32(MGMT + MGMT_DOORBELL, 1)
        machine.wait(lambda: machine.read32(MGMT + MGMT_CTRL) == 0, "end")
        assert findings(machine) == (7, 1, 1)


def spi_dma(machine: Machine, address: int, size: int) -> int:
    """Read from the SPI bus into memory; return the channel's status."""
    for register, value in ((0, address), (4, 0), (8, size), (0xc, 1)):
        machine.write32(SPI_DMA + register, value)
    return machine.read32(SPI_DMA + 0x10)


@pytest.mark.parametrize("memory", [DRAM, SRAM])
def test_the_spi_dma_overwrites_lost_words(start, memory: int) -> None:  # noqa: F811
    machine = start()
    flip(machine, memory, 3)
    flip(machine, memory + 8, 1)
    flip(machine, memory + 16, 1)
    assert spi_dma(machine, memory, 20) == 0
    assert (words(machine), findings(machine)) == (0, (1, 1, 0))    # 4 bytes of the third word
    flip(machine, memory + 16, 3)
    assert spi_dma(machine, memory, 20) == 2
    assert (words(machine), findings(machine)) == (1, (7, 1, 1))
