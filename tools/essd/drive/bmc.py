# SPDX-License-Identifier: BSD-2-Clause
"""`essd bmc`: ask the drive what a BMC asks it, over its I2C bus.

The socket belongs to a device on the bus (docs/hardware/i2c.md, "A program on the
bus").  Through this device, the module writes and reads as a controller of the bus, and
takes the drive's responses as a target.  Requests and responses are NVMe-MI messages in
MCTP packets (DMTF DSP0236 and DSP0237).
"""

import contextlib
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from ..base.errors import EssdError
from ..instance.instance import Instance
from ..machine import drive

OWN_ADDRESS = 0x10          # where BMCs usually are
OWN_EID = 8
MCTP_ADDRESS = 0x1d
BASIC_ADDRESS = 0x6a
VPD_ADDRESS = 0x53
VPD_BYTES = 256
ANSWER_S = 10.0

MCTP_COMMAND = 0x0f
HEADER_BYTES = 5            # of a packet, counted from its source address
UNIT_BYTES = 64             # of a message in one packet
FIRST_PACKET, LAST_PACKET, TAG_OWNER = 0x80, 0x40, 0x08
CONTROL, NVME_MI = 0x00, 0x84

READ_STRUCTURE, SUBSYSTEM_HEALTH, CONTROLLER_HEALTH, VPD_READ = 0, 1, 2, 5
CONTROLLER_LIST = 2
STATUS = {3: "invalid opcode", 4: "invalid parameter", 5: "invalid size",
          0x20: "VPD writes exceeded"}
WARNINGS = ("spare", "temperature", "reliability", "read-only", "volatile-memory",
            "persistent-memory")
ENTRY = struct.Struct("<HHHBBB7x")      # of a controller's health
ZERO_CELSIUS_K = 273


def pec(data: bytes) -> int:
    """The Packet Error Code of SMBus: CRC-8 with polynomial 07h."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ (0x07 if crc & 0x80 else 0)) & 0xff
    return crc


def crc32c(data: bytes) -> int:
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


@dataclass
class Bus:
    """The drive's I2C bus.  `messages` holds what the drive has written to us."""

    connection: socket.socket
    rest: bytes = b""
    messages: list[bytes] = field(default_factory=list)

    def line(self) -> str:
        while b"\n" not in self.rest:
            more = self.connection.recv(4096)
            if not more:
                raise EssdError("the drive was switched off")
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode("ascii")

    def take(self) -> str | None:
        """The next line, or None if it was a message, which is kept."""
        line = self.line()
        if line.startswith("message "):
            self.messages.append(bytes.fromhex(line.split(" ")[2]))
            return None
        return line

    def command(self, line: str) -> str:
        self.connection.sendall(line.encode("ascii") + b"\n")
        while (reply := self.take()) is None:
            pass
        return reply

    def listen(self, address: int) -> None:
        self.command(f"listen {address:02x}")

    def transfer(self, address: int, data: bytes, read: int = 0) -> bytes:
        """Write, then read; EssdError if nobody acknowledges."""
        reply = self.command(f"transfer {address:02x} {data.hex() or '-'} {read}")
        if not reply.startswith("ack "):
            raise EssdError(f"nobody on the I2C bus acknowledges address {address:02x}: "
                            "the drive's firmware does not run, or strap pin 3 switches "
                            "its BMC interface off")
        return bytes.fromhex(reply[4:])

    def message(self) -> bytes:
        while not self.messages:
            self.take()
        return self.messages.pop(0)


@contextlib.contextmanager
def dial(path: Path) -> Iterator[Bus]:
    """Connect to the bus through its socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_S)
        try:
            connection.connect(str(path))
            yield Bus(connection)
        except TimeoutError:
            raise EssdError(f"the drive has not answered within {ANSWER_S:.0f} s; is "
                            "another program using its I2C bus?") from None
        except OSError as error:
            raise EssdError(f"the drive's I2C bus cannot be reached: {error}") from None


def packets(message: bytes, eid: int = 0, tag: int = 0, unit: int = UNIT_BYTES
            ) -> Iterator[bytes]:
    """The packets of a message, as they are written after the target's address."""
    pieces = [message[at:at + unit] for at in range(0, len(message), unit)]
    for number, piece in enumerate(pieces):
        flags = (FIRST_PACKET * (number == 0)
                 | LAST_PACKET * (number == len(pieces) - 1)
                 | (number & 3) << 4 | TAG_OWNER | tag)
        packet = bytes([MCTP_COMMAND, len(piece) + HEADER_BYTES, OWN_ADDRESS << 1 | 1, 1,
                        eid, OWN_EID, flags]) + piece
        yield packet + bytes([pec(bytes([MCTP_ADDRESS << 1]) + packet)])


def assemble(bus: Bus) -> bytes:
    """The message in the packets that the drive writes; EssdError if one is damaged."""
    message, flags = b"", 0
    while not flags & LAST_PACKET:
        packet = bus.message()
        if len(packet) <= HEADER_BYTES + 2 or pec(bytes([OWN_ADDRESS << 1]) + packet):
            raise EssdError(f"the drive has sent a damaged packet: {packet.hex()}")
        flags = packet[6]
        message = (b"" if flags & FIRST_PACKET else message) + packet[7:-1]
    return message


def exchange(bus: Bus, message: bytes) -> bytes:
    bus.messages.clear()
    for packet in packets(message):
        bus.transfer(MCTP_ADDRESS, packet)
    return assemble(bus)


def request(opcode: int, dword0: int = 0, dword1: int = 0) -> bytes:
    """The message of an NVMe-MI command."""
    message = struct.pack("<BBxxBxxxII", NVME_MI, 1 << 3, opcode, dword0, dword1)
    return message + struct.pack("<I", crc32c(message))


def response(answer: bytes) -> tuple[bytes, bytes]:
    """The three bytes and the data of an NVMe-MI command's response."""
    if len(answer) < 12 or struct.unpack("<I", answer[-4:])[0] != crc32c(answer[:-4]):
        raise EssdError(f"the drive has sent a damaged message: {answer.hex()}")
    if answer[4] != 0:
        raise EssdError("the drive has refused the command: "
                        f"{STATUS.get(answer[4], f'status {answer[4]:#x}')}")
    return answer[5:8], answer[8:-4]


def execute(bus: Bus, opcode: int, dword0: int = 0, dword1: int = 0) -> tuple[bytes, bytes]:
    return response(exchange(bus, request(opcode, dword0, dword1)))


def warnings(bits: int) -> list[str]:
    return [name for number, name in enumerate(WARNINGS) if bits >> number & 1]


def celsius(byte: int) -> int | None:
    """A temperature as the health status has it; None if the drive does not know it."""
    if byte in (0x80, 0x81):
        return None
    return byte - 256 if byte > 0x80 else byte


def parse_health(data: bytes) -> dict[str, Any]:
    return {"functional": bool(data[0] & 0x20), "links": [bool(data[0] & 0x08),
                                                          bool(data[0] & 0x04)],
            "warnings": warnings(~data[1] & 0xff), "celsius": celsius(data[2]),
            "used-percent": data[3]}


def health(bus: Bus) -> dict[str, Any]:
    return parse_health(execute(bus, SUBSYSTEM_HEALTH)[1])


def controllers(bus: Bus) -> list[dict[str, Any]]:
    """The health of every controller; several polls, if there are many."""
    found: list[dict[str, Any]] = []
    first = 0
    while True:
        answer, data = execute(bus, CONTROLLER_HEALTH, 1 << 31 | 0xff << 16 | first)
        for at in range(answer[2]):
            number, status, kelvin, used, spare, warning = ENTRY.unpack_from(
                data, at * ENTRY.size)
            found.append({"cntlid": number, "ready": bool(status & 1),
                          "celsius": kelvin - ZERO_CELSIUS_K if kelvin else None,
                          "used-percent": used, "spare-percent": spare,
                          "warnings": warnings(warning)})
        if answer[2] == 0 or found[-1]["cntlid"] == 0xffff:
            return found
        first = found[-1]["cntlid"] + 1


def fields(area: bytes) -> Iterator[str]:
    """The texts of a product information area."""
    at = 3
    while area[at] != 0xc1:
        length = area[at] & 0x3f
        yield area[at + 1:at + 1 + length].decode("ascii", "replace")
        at += 1 + length


def parse_vpd(vpd: bytes) -> dict[str, Any]:
    """The fields of VPD in the format of FRU information; EssdError if it is damaged."""
    product, record = vpd[4] * 8, vpd[5] * 8
    if sum(vpd[:8]) % 256 or sum(vpd[product:product + vpd[product + 1] * 8]) % 256:
        raise EssdError("a checksum in the drive's VPD is wrong")
    names = ("manufacturer", "product", "part", "version", "serial")
    found: dict[str, Any] = dict(zip(names, fields(vpd[product:]), strict=False))
    if record and vpd[record] == 0x0b:
        found["capacity-bytes"] = int.from_bytes(vpd[record + 24:record + 37], "little")
    return found


def vpd(bus: Bus) -> dict[str, Any]:
    return parse_vpd(execute(bus, VPD_READ, 0, VPD_BYTES)[1])


QUESTIONS = {"health": health, "vpd": vpd, "controllers": controllers}


def ask(instance: Instance, question: str) -> Any:
    """The answer of a running drive to `health`, `vpd` or `controllers`."""
    if question not in QUESTIONS:
        raise EssdError(f"{question}: must be health, vpd or controllers")
    instance.status()       # Raises EssdError if the instance is not running.
    with dial(drive.bmc_socket(instance.folder, instance.drive)) as bus:
        bus.listen(OWN_ADDRESS)
        return QUESTIONS[question](bus)


# Output

def word(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(word(one) for one in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else str(value)


def facts(answer: dict[str, Any]) -> Table:
    found = Table(box=None, pad_edge=False, show_header=False)
    for name, value in answer.items():
        found.add_row(name, word(value))
    return found


def table(answer: list[dict[str, Any]]) -> Table:
    found = Table(*answer[0], box=None, pad_edge=False)
    for row in answer:
        found.add_row(*map(word, row.values()))
    return found
