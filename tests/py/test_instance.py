# SPDX-License-Identifier: BSD-2-Clause
"""What an Instance says of a supervisor that ends while it is asked."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from essd.errors import EssdError
from essd.instance import Instance


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
