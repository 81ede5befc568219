# SPDX-License-Identifier: BSD-2-Clause
"""`essd bmc` with a drive whose answers are given, and with damaged ones."""

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from essd.base.errors import EssdError
from essd.drive import bmc, modules


def module(port: int) -> dict[str, Any]:
    """What the drive's firmware says of a module."""
    limits = {"high-alarm": 348150, "low-alarm": 268150, "high-warning": 343150,
              "low-warning": 273150}
    return {"port": port, "state": "identified", "insertions": 1, "removals": 0,
            "type": "25GBASE-SR", "vendor": "V", "part": "P", "serial": "S",
            "values": {"temperature": {"value": 344650, **limits,
                                       "exceeded": ["high-warning"]}}}


def fru() -> bytes:
    """VPD with a product area of three blocks and an NVMe record."""
    area = bytearray(40)
    area[:3] = 1, 5, 25
    texts = b"".join(bytes([0xc0 | len(t)]) + t for t in (b"Maker", b"Disk", b"P1", b"0.1",
                                                         b"SN7"))
    area[3:3 + len(texts) + 1] = texts + b"\xc1"
    area[39] = -sum(area) % 256
    head = bytearray([1, 0, 0, 0, 1, 6, 0, 0])
    head[7] = -sum(head) % 256
    record = bytearray(64)
    record[0] = 0x0b
    record[24:28] = struct.pack("<I", 123456)
    return bytes(head + area + record).ljust(256, b"\0")


# The bytes after the status of the response to each command.
ANSWERS = {
    bmc.SUBSYSTEM_HEALTH: bytes(3) + bytes([0x38, 0xfd, 0xfb, 7, 0, 0, 0, 0]),
    bmc.VPD_READ: bytes(3) + fru(),
    bmc.CONTROLLER_HEALTH: bytes([0, 0, 1]) + bmc.ENTRY.pack(0xffff, 1, 313, 7, 99, 2),
}


class CannedBus(bmc.Bus):
    """Its drive answers every command with the same data."""

    def __init__(self) -> None:
        super().__init__(socket.socket(socket.AF_UNIX))
        self.connection.close()
        self.damage = -1        # the number of a byte of each packet

    @classmethod
    def answering(cls, _question: str) -> "CannedBus":
        return cls()

    def transfer(self, address: int, data: bytes, read: int = 0) -> bytes:
        assert address == bmc.MCTP_ADDRESS
        assert bmc.pec(bytes([address << 1]) + data) == 0
        request = data[7:-1]
        assert bmc.crc32c(request[:-4]).to_bytes(4, "little") == request[-4:]
        answer = ANSWERS.get(request[4])
        message = request[:1] + bytes([0x88, 0, 0]) + (
            b"\x03\0\0\0" if answer is None else b"\0" + answer)
        message += bmc.crc32c(message).to_bytes(4, "little")
        for at in range(0, len(message), bmc.UNIT_BYTES):
            piece = message[at:at + bmc.UNIT_BYTES]
            flags = (bmc.FIRST_PACKET * (at == 0)
                     | bmc.LAST_PACKET * (at + bmc.UNIT_BYTES >= len(message)))
            packet = bytes([0x0f, len(piece) + 5, 0x3b, 1, 8, 0, flags]) + piece
            packet += bytes([bmc.pec(bytes([bmc.OWN_ADDRESS << 1]) + packet)])
            if self.damage >= 0:
                packet = bytes(byte ^ (number == self.damage)
                               for number, byte in enumerate(packet))
            self.messages.append(packet)
        return b""


def test_health_is_read() -> None:
    assert bmc.health(CannedBus()) == {
        "functional": True, "links": [True, False], "warnings": ["temperature"],
        "celsius": -5, "used-percent": 7}


def test_controllers_and_vpd_are_read() -> None:
    assert bmc.controllers(CannedBus()) == [
        {"cntlid": 0xffff, "ready": True, "celsius": 40, "used-percent": 7,
         "spare-percent": 99, "warnings": ["temperature"]}]
    assert bmc.vpd(CannedBus()) == {
        "manufacturer": "Maker", "product": "Disk", "part": "P1", "version": "0.1",
        "serial": "SN7", "capacity-bytes": 123456}


def test_what_is_damaged_or_refused_is_an_error() -> None:
    bus = CannedBus()
    with pytest.raises(EssdError, match="invalid opcode"):
        bmc.execute(bus, 9)
    bus.damage = 9
    with pytest.raises(EssdError, match="damaged packet"):
        bmc.health(bus)
    damaged = bytearray(fru())
    damaged[12] ^= 1
    with pytest.raises(EssdError, match="checksum"):
        bmc.parse_vpd(bytes(damaged))


def test_temperatures_have_their_signs() -> None:
    assert [bmc.celsius(byte) for byte in (0, 0x7f, 0x80, 0x81, 0xc4, 0xff)] \
        == [0, 127, None, None, -60, -1]


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[tuple[Path, list[bytes]]]:
    """A socket that acknowledges once, then does not, with a message in between."""
    path, got = tmp_path / "bmc.sock", []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def serve() -> None:
        connection, _ = server.accept()
        with connection, connection.makefile("rb") as lines:
            got.append(lines.readline())
            connection.sendall(b"message 10 0f0102\nack 0a0b\n")
            got.append(lines.readline())
            connection.sendall(b"nack 0\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield path, got
    thread.join(10)
    server.close()


def test_messages_and_replies_are_told_apart(wire) -> None:
    path, got = wire
    with bmc.dial(path) as bus:
        assert bus.transfer(0x6a, b"\x08", 2) == b"\x0a\x0b"
        assert bus.message() == b"\x0f\x01\x02"
        with pytest.raises(EssdError, match="nobody on the I2C bus acknowledges"):
            bus.transfer(0x6b, b"")
    assert got == [b"transfer 6a 08 2\n", b"transfer 6b - 0\n"]


def test_a_module_is_shown_with_its_limits(capsys) -> None:
    facts = module(0)["values"]["temperature"]
    facts["value"] = modules.scaled("temperature", facts["value"])
    text = modules.value_text("temperature", facts)
    assert (text.plain, str(text.style)) == ("71.5 C", "yellow")
    assert modules.scaled("rx-power", 631000) == 0.631
    absent = {"port": 1, "state": "absent", "insertions": 0, "removals": 0}
    assert modules.table([module(0) | {"values": {}}, absent]).row_count == 2


def test_what_is_wrong_with_a_module_is_said_in_a_line() -> None:
    facts = module(0)
    for name, value in facts["values"]["temperature"].items():
        if name != "exceeded":
            facts["values"]["temperature"][name] = modules.scaled("temperature", value)
    shown = [facts | {"diagnostics": "read"},
             {"port": 1, "state": "identified", "diagnostics": "external-calibration"}]
    assert list(modules.notes(shown)) == [
        "port 0: temperature is 71.5 C, beyond the high-warning limit of 70 C",
        "port 1: the module's diagnostics need external calibration, which is not "
        "supported"]
    facts["values"]["temperature"]["value"] = 69.5
    assert next(modules.notes(shown)) == (
        "port 0: temperature is 69.5 C, and was beyond the high-warning limit of 70 C")
    assert list(modules.notes([{"port": 0, "state": "unknown", "why": "it is off"}])) == []


def test_a_measurement_is_given_in_the_unit_that_is_shown() -> None:
    assert modules.measurement("rx-power=0.08") == ("rx-power", 80_000)
    assert modules.measurement("temperature=-5.5") == ("temperature", -5500)
    assert modules.measurement("voltage=3.3") == ("voltage", 3_300_000)
    assert modules.measurement("bias=7") == ("bias", 7000)
    for text in ("rx-power", "rx-power=", "bias=7mA"):
        with pytest.raises(EssdError, match="must be a number of m"):
            modules.measurement(text)
    for text in ("rx-power=6.6", "tx-power=-1", "tx-power=inf", "tx-power=nan"):
        with pytest.raises(EssdError, match="use 0 to 6.5535 mW"):
            modules.measurement(text)
    with pytest.raises(EssdError, match="use -128 to 127.99 C"):
        modules.measurement("temperature=128")
    with pytest.raises(EssdError, match="one of temperature, voltage, bias"):
        modules.measurement("humidity=3")
