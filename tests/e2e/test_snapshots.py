# SPDX-License-Identifier: BSD-2-Clause
"""Named snapshots of a drive with a connected stock host."""

import os
import subprocess
from collections.abc import Callable

import pytest
from conftest import SESSION

from essd.base.paths import TOP
from essd.instance import steps
from essd.instance.instance import Instance
from essd.instance.steps import Job
from essd.setup import setup

pytestmark = [pytest.mark.drive, pytest.mark.long]


def essd(*words: str) -> str:
    done = subprocess.run([str(TOP / "essd"), *words], check=False, text=True,
                          capture_output=True, timeout=300, env=os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def first_block(instance: Instance, device: str) -> str:
    """The text at the beginning of the device, read from the drive."""
    return instance.run(f"dd if={device} bs=4k count=1 iflag=direct | head -c 4",
                        apart=True).output


def write(instance: Instance, device: str, text: str) -> None:
    instance.run(f"printf {text} | dd of={device} bs=4k count=1 conv=sync oflag=direct "
                 "2>/dev/null")


def test_a_connected_system_goes_back_and_is_forked(booted: Callable[..., Job]) -> None:
    job = booted()
    name, copy = job.instance.name, f"{SESSION}-fork"
    setup.forget(copy)
    device = steps.connect(job)
    write(job.instance, device, "old1")
    job.instance.run("touch /tmp/before")
    essd("save", "first", "--name", name)
    # The saved system runs on.
    assert first_block(job.instance, device) == "old1"
    write(job.instance, device, "new2")
    job.instance.run("rm /tmp/before")
    try:
        essd("fork", "first", copy, "--name", name)
        other = Instance(copy)
        other.wait_ready("host")
        assert first_block(other, device) == "old1"
        other.run("test -e /tmp/before")
        write(other, device, "fork")
        other.check()
    finally:
        Instance(copy).stop()
        setup.forget(copy)
    assert first_block(job.instance, device) == "new2"
    essd("load", "first", "--name", name)
    job.instance.wait_ready("host")
    assert first_block(job.instance, device) == "old1"
    job.instance.run("test -e /tmp/before")
    job.instance.check()
    steps.disconnect(job)
