# SPDX-License-Identifier: BSD-2-Clause
"""What an Instance says of a supervisor that ends while it is asked."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from essd.base.errors import EssdError
from essd.instance.instance import Instance
from essd.instance.steps import Job


@pytest.fixture
def ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Instance]:
    """The instance `lab`: each connection is accepted, read from and closed."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    instance = Instance("lab")
    instance.folder.mkdir(parents=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(instance.folder / "control.sock"))
    listener.listen()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)

    thread = threading.Thread(target=serve)
    thread.start()
    yield instance
    thread.join()
    listener.close()


def test_a_supervisor_that_ends_without_an_answer_does_not_run(ending: Instance) -> None:
    assert not ending.is_running


def test_the_log_is_named_if_the_supervisor_ends_during_a_command(
        ending: Instance) -> None:
    with pytest.raises(EssdError, match=r"^the supervisor of lab ended; see .*supervisor\.log$"):
        ending.ask("status")


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> Instance:
    """An instance whose ssh warns and runs the command here."""
    instance = Instance("lab")
    monkeypatch.setattr(instance, "ssh", lambda part="host": [
        "sh", "-c", 'echo "Warning: Identity file not accessible" >&2; exec sh -c "$2"', "ssh"])
    monkeypatch.setattr(instance, "check", lambda: None)
    return instance


def test_what_ssh_says_is_no_part_of_a_commands_output(guest: Instance) -> None:
    done = guest.run("echo one; echo two >&2; echo three")
    assert done.output == "one\ntwo\nthree\n" and not done.errors
    assert guest.run(["printf", "%s", '{"a": 1}']).output == '{"a": 1}'


def test_a_caller_that_parses_gets_the_standard_output_alone(guest: Instance) -> None:
    done = guest.run("echo '[1]'; echo two >&2", apart=True)
    assert done.output == "[1]\n"
    assert done.errors.splitlines()[1:] == ["two"]
    job = Job(guest, "drive", "nqn", [])
    assert job.quiet("echo '[1]'; echo two >&2") == "[1]\n"


@pytest.mark.parametrize("apart", [False, True])
def test_a_failure_shows_the_last_line_of_the_command(guest: Instance, apart: bool) -> None:
    with pytest.raises(EssdError, match="status 3: it failed; see"):
        guest.run("echo output; echo it failed >&2; exit 3", apart=apart)


def test_a_failure_of_ssh_shows_what_ssh_said(guest: Instance) -> None:
    with pytest.raises(EssdError, match="status 255: Warning: Identity file"):
        guest.run("exit 255")
