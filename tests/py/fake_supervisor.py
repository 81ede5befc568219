# SPDX-License-Identifier: BSD-2-Clause
"""A supervisor without virtual machines: it answers commands with given replies."""

import asyncio
import json
import os
import shutil
import socket
import threading
from pathlib import Path
from typing import Any

from essd.base import paths, process
from essd.instance.config import Config, Drive, Host, Link
from essd.supervisor.supervisor import Supervisor

PORT_STATE = {"up": True, "reason": "", "speed": 25, "fec": "rs", "counters": dict.fromkeys((
    "aFramesReceivedOK", "aFramesTransmittedOK", "aFrameCheckSequenceErrors",
    "aFECCorrectedBlocks", "aFECUncorrectableBlocks", "linkChanges"), 0)}
PROPERTIES = {"state": PORT_STATE, "link-up": True, "partner-fec": "rs",
              "partner-speed": 25, "present": True, "partner-fault": False, "ber": 0.0,
              "seed": 1}


def part(folder: Path, name: str, **more: Any) -> dict[str, Any]:
    """The status of one part that is running."""
    return {"state": "running", "why": "", "ready": name == "host", "pid": os.getpid(),
            "pids": [os.getpid()], "log": str(folder / f"{name}/process.log"),
            "console": str(folder / f"{name}/console.log"),
            "restarts": [], "saved": False, "halted": False, **more}


class FakeSupervisor:
    """Listens on an instance's control socket while it is used as a context manager.

    `replies` holds, for each command, a value or a function of the request.  A
    ValueError of that function becomes an error reply.
    """

    def __init__(self, name: str = "default") -> None:
        self.name = name
        self.folder = paths.instance(name)
        self.asked: list[dict[str, Any]] = []
        self.connections = 0
        self.parts = {"host": part(self.folder, "host", ssh_port=1),
                      "drive": part(self.folder, "drive")}
        self.mgmt: dict[str, Any] = {}
        self.flash_file = "/flash.img"
        self.replies: dict[str, Any] = {
            "status": lambda _request: self.status(), "stop": self.stop,
            "qmp": self.qmp, "mgmt": self.ask_drive, "several": self.several,
            "faults": [],
            **dict.fromkeys(("port", "partner", "module", "reset", "power-cut", "power-on",
                             "load"))}
        self.server = socket.socket(socket.AF_UNIX)
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def status(self) -> dict[str, Any]:
        """The status of the real supervisor's code, as if all parts were running."""
        found: dict[str, Any] = asyncio.run(self.real.do_status({}))   # type: ignore
        for name, facts in self.parts.items():
            found["parts"][name] |= facts
        for cable in found["cables"].values():
            cable |= {"plugged": True, "carrier": True, "connected": True, "port_up": True}
        return found

    def stop(self, _request: dict[str, Any]) -> None:
        (self.folder / "control.sock").unlink()

    def qmp(self, request: dict[str, Any]) -> Any:
        if request["execute"] == "qom-get":
            return PROPERTIES[request["arguments"]["property"]]
        return {}

    def ask_drive(self, request: dict[str, Any]) -> Any:
        if request["request"] not in self.mgmt:
            raise ValueError("the fake drive does not know the request "
                             f"{request['request']}")
        return self.mgmt[request["request"]]

    def several(self, request: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for part in request["parts"]:
            found[part] = []
            for one in request["requests"]:
                found[part].append(self.answer({**one, "part": part}))
                if "error" in found[part][-1]:
                    break
        return found

    def __enter__(self) -> "FakeSupervisor":
        self.folder.mkdir(exist_ok=True)
        config = Config(self.name, "/guest", "tcg",
                        [Link(0, ["10.0.0.10/24"]), Link(1, ["10.0.1.10/24"])],
                        {"drive": Drive("/qemu", self.flash_file, "/media.raw", "raw", "nqn.x")},
                        {"host": Host()})
        (self.folder / "config.json").write_text(config.to_json())
        self.real = Supervisor(self.folder, config)
        (self.folder / "state.json").write_text(json.dumps(
            [{"pid": os.getpid(), "start": process.start_time(os.getpid())}]))
        self.server.bind(str(self.folder / "control.sock"))
        self.server.listen()
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.thread.join(10)
        # Otherwise `down` would end this process, whose id is in the state file.
        (self.folder / "state.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder)

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            self.connections += 1
            with connection, connection.makefile("rwb") as file:
                line = file.readline()
                if line:
                    file.write(json.dumps(self.answer(json.loads(line))).encode() + b"\n")

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        reply = self.replies[request["command"]]
        try:
            return {"return": reply(request) if callable(reply) else reply}
        except ValueError as error:
            return {"error": str(error)}
