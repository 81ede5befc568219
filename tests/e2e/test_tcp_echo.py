# SPDX-License-Identifier: BSD-2-Clause
"""Echo and discard over the TCP offload engine, with the host's own nc at both ports."""

from collections.abc import Iterator

import pytest
import uart_dialogue

from essd.instance.steps import Job

pytestmark = [pytest.mark.drive, pytest.mark.uml]

PORTS = ("10.0.0.10", "10.0.1.10")
MAKE = "head -c 300000 /dev/urandom > /tmp/sent"


def switch(job: Job, value: str) -> None:
    (said,) = uart_dialogue.ask(job.instance, f"config set tcp.echo {value}")
    assert said == "ok: config save puts it in force at once", said
    assert uart_dialogue.ask(job.instance, "config save") == ["ok"]


@pytest.fixture
def served(job: Job) -> Iterator[Job]:
    switch(job, "on")
    yield job
    switch(job, "off")


def is_refused(job: Job, address: str, port: int) -> bool:
    said = job.quiet(f"nc -w 5 {address} {port} < /dev/null 2>&1 || true")
    return "refused" in said


def test_what_is_sent_comes_back(served: Job) -> None:
    served.quiet(MAKE)
    for address in PORTS:
        served.quiet(f"timeout 60 nc {address} 7 < /tmp/sent > /tmp/back; "
                     "cmp /tmp/sent /tmp/back")
        served.quiet(f"timeout 60 nc {address} 9 < /tmp/sent > /tmp/back; "
                     "test ! -s /tmp/back")
        assert is_refused(served, address, 4321)


def test_switched_off_nobody_is_served(served: Job) -> None:
    switch(served, "off")
    said = served.quiet(f"nc -w 5 {PORTS[0]} 7 < /dev/null 2>&1; echo $?")
    assert said.split()[-1] != "0"
    switch(served, "on")
    served.quiet(f"{MAKE}; timeout 60 nc {PORTS[0]} 7 < /tmp/sent | cmp - /tmp/sent")
