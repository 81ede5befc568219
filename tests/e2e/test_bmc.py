# SPDX-License-Identifier: BSD-2-Clause
"""The drive as a BMC sees it, through the socket of its I2C bus.

pymctp, which was not written for this project, decodes what the drive sends.
"""

import select
from collections.abc import Iterator

import pytest
from pymctp.layers.mctp import SmbusTransportPacket
from pymctp.layers.mctp.control import ControlHdrPacket
from test_fec import type_line

from essd.drive import bmc, mgmt
from essd.instance.steps import Job
from essd.machine import drive

pytestmark = [pytest.mark.drive, pytest.mark.uml]

TAG = 5
FLOOD_BYTES = 10_000_000        # far more than what the sockets' buffers hold


@pytest.fixture
def bus(job: Job) -> Iterator[bmc.Bus]:
    with bmc.dial(drive.bmc_socket(job.instance.folder, job.target)) as bus:
        bus.listen(bmc.OWN_ADDRESS)
        yield bus


def decode(packet: bytes) -> SmbusTransportPacket:
    """A packet that the drive has written; pymctp computes its PEC too."""
    whole = bytes([bmc.OWN_ADDRESS << 1]) + packet
    decoded = SmbusTransportPacket(whole)
    again = SmbusTransportPacket(whole[:-1] + b"\0")
    again.pec = None
    assert bytes(again)[-1] == packet[-1]
    assert decoded.src_addr == bmc.MCTP_ADDRESS << 1 | 1
    assert decoded.byte_count == len(packet) - 3
    return decoded


def exchange(bus: bmc.Bus, message: bytes) -> list[SmbusTransportPacket]:
    """Send a message; return the packets of the response."""
    for packet in bmc.packets(message, tag=TAG):
        bus.transfer(bmc.MCTP_ADDRESS, packet)
    found = [decode(bus.message())]
    while not found[-1].load.eom:
        found.append(decode(bus.message()))
    for number, packet in enumerate(found):
        header = packet.load
        is_first = bytes(header)[3] >> 7        # the bit that starts a message
        assert (is_first, header.to, header.tag) == (number == 0, 0, TAG)
        assert header.pkt_seq == number % 4
        assert header.dst == bmc.OWN_EID
    return found


def test_control_messages_are_decoded_by_pymctp(bus: bmc.Bus) -> None:
    """A BMC assigns an endpoint identifier and asks which messages the drive takes."""
    answer = exchange(bus, bytes([0, 0x80, 1, 0, 0x42]))[0].load
    control = answer[ControlHdrPacket]
    assert (control.rq, control.cmd_code, control.completion_code) == (0, 1, 0)
    answer = exchange(bus, bytes([0, 0x81, 2]))[0].load
    assert answer.src == 0x42
    control = answer[ControlHdrPacket]
    assert (control.instance_id, control.cmd_code) == (1, 2)
    assert bytes(control.payload)[0] == 0x42
    answer = exchange(bus, bytes([0, 0x82, 5]))[0].load
    assert bytes(answer[ControlHdrPacket].payload) == bytes([1, 4])


def test_the_health_poll_is_an_nvme_mi_message(bus: bmc.Bus) -> None:
    message = bytes([bmc.NVME_MI, 8, 0, 0, bmc.SUBSYSTEM_HEALTH, *bytes(11)])
    packets = exchange(bus, message + bmc.crc32c(message).to_bytes(4, "little"))
    assert len(packets) == 1
    header = packets[0].load
    assert (header.ic, int(header.msg_type)) == (1, 4)
    mi = header.payload
    assert mi.name == "NVMe-MI"
    assert (mi.nmimt, mi.ror) == (1, 1)


def test_health_controllers_and_vpd_are_read(bus: bmc.Bus) -> None:
    found = bmc.health(bus)
    assert found["functional"] and found["celsius"] == 40
    assert found["warnings"] == [] and found["links"] == [True, True]
    assert bmc.controllers(bus) == []
    data = bmc.vpd(bus)
    assert data["manufacturer"] == "Ethernet SSD emulation" and data["serial"]
    assert data["capacity-bytes"] > 0
    # The same bytes without MCTP, as an EEPROM has them.
    assert bmc.parse_vpd(bus.transfer(bmc.VPD_ADDRESS, b"\0", bmc.VPD_BYTES)) == data


def test_the_basic_management_command_has_the_right_pec(bus: bmc.Bus) -> None:
    for command, length in ((0, 8), (8, 24)):
        data = bus.transfer(bmc.BASIC_ADDRESS, bytes([command]), length)
        head = bytes([bmc.BASIC_ADDRESS << 1, command, bmc.BASIC_ADDRESS << 1 | 1])
        assert bmc.pec(head + data) == 0
        assert data[0] == length - 2


def test_a_program_that_does_not_read_does_not_stop_the_drive(connected: Job) -> None:
    """The drive serves its host and its tools, and the next program on the bus."""
    instance = connected.instance
    line = f"transfer {bmc.BASIC_ADDRESS:02x} 00 256\n".encode()
    with bmc.dial(drive.bmc_socket(instance.folder, connected.target)) as bus:
        bus.connection.setblocking(False)
        sent = 0
        while select.select([], [bus.connection], [], 1)[1]:
            sent += bus.connection.send(line * 100)
            assert sent < FLOOD_BYTES, "the drive takes requests without end"
        connected.quiet(f"dd if={connected.device()} of=/dev/null bs=64k count=64 "
                        "iflag=direct")
        assert mgmt.ask(instance, "status")["controllers"] == 1
        assert "essd> " in type_line(instance, "port 0")
    assert bmc.ask(instance, "health")["functional"]


def test_a_host_with_a_controller_is_in_the_list(connected: Job) -> None:
    assert [one["ready"] for one in bmc.ask(connected.instance, "controllers")] == [True]
