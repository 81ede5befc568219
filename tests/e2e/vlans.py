# SPDX-License-Identifier: BSD-2-Clause
"""Addresses in a VLAN, at both ports of the drive and of the host."""

import contextlib
from collections.abc import Iterator

import uart_dialogue
from watching import until

from essd.instance.steps import Job

VLAN = 30
# Of the drive, of the host, and the port between them.
TAGGED = (("10.9.0.10/24", "10.9.0.1/24", 0), ("fd00:9::10/64", "fd00:9::1/64", 1))


def address_of(own: str) -> str:
    return own.partition("/")[0]


def set_address(job: Job, number: int, values: dict[str, object]) -> None:
    for key, value in values.items():
        uart_dialogue.ask(job.instance, f"config set address.{number}.{key} {value}")


@contextlib.contextmanager
def tagged(job: Job) -> Iterator[None]:
    """The drive and the host have an address in the VLAN at each port, the host's at the
    cards tagged0 and tagged1."""
    try:
        for number, (own, host, port) in enumerate(TAGGED):
            set_address(job, number, {"ip": own, "port": port, "vlan": VLAN})
            job.quiet(f"ip link add link eth{port} name tagged{port} type vlan id {VLAN} && "
                      f"ip link set tagged{port} up && ip addr add {host} dev tagged{port}")
        assert uart_dialogue.ask(job.instance, "config save") == ["ok"]
        addresses = [address_of(own) for own, _, _ in TAGGED]
        until(lambda: job.result(" && ".join(f"ping -c 1 -W 1 {to}" for to in addresses),
                                 check=False).status == 0, 30)
        yield
    finally:
        for number, (_, _, port) in enumerate(TAGGED):
            set_address(job, number, {"vlan": 0, "port": 0, "ip": "none"})
            job.quiet(f"ip link del tagged{port}")
        assert uart_dialogue.ask(job.instance, "config save") == ["ok"]
