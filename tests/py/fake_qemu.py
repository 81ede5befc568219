# SPDX-License-Identifier: BSD-2-Clause
"""A script in place of QEMU, which answers QMP commands as a test says."""

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# What a test's script answers unless it says otherwise; `told` are the arguments.
ANSWERS = """
def answer(command, told):
    if command == "quit-badly":
        print("drive: something broke")
        sys.exit(3)
    if command == "qom-set":
        print(told["path"], told["property"], told["value"], flush=True)
    if command == "human-monitor-command":
        return " \\\\ cable0: index=0,type=stream,unix:/x/port0.sock\\r\\n" \\
               " \\\\ cable1: index=0,type=stream,\\r\\n"
    return {}
"""


def make_fake(path: Path, answers: str = ANSWERS, **values: object) -> Path:
    """Write the script.

    `answers` is the source of a function answer(command, told).  It can use `values` as
    global names; `files`, the open files that came with commands; and `name`, the part.
    """
    words = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    path.write_text(f"#!{sys.executable}\nimport sys\n"
                    f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
                    f"import fake_qemu\nname = fake_qemu.part_name()\n"
                    f"files = []\n{words}{answers}\nfake_qemu.serve(answer, files)\n")
    path.chmod(0o755)
    return path


def monitor() -> Path:
    """The monitor's socket, which the command line names."""
    return Path(next(word.split("path=")[1] for word in sys.argv
                     if word.startswith("socket,id=qmp,")))


def part_name() -> str:
    return monitor().parent.name


def serve(answer: Callable[[str, Any], object], files: list[int]) -> None:
    """Serve one client until it disconnects."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(monitor()))
    server.listen()
    connection = server.accept()[0]
    version = {"qemu": {"micro": 0, "minor": 0, "major": 10}, "package": ""}
    greeting = {"QMP": {"version": version, "capabilities": []}}
    connection.sendall(json.dumps(greeting).encode() + b"\n")
    text = ""
    while True:
        data, found, _, _ = socket.recv_fds(connection, 65536, 4)
        files += found
        if not data:
            return
        # Requests have no line ends, because QMP is a stream of JSON values.
        text += data.decode()
        while text.strip():
            try:
                request, end = json.JSONDecoder().raw_decode(text.strip())
            except ValueError:
                break
            text = text.strip()[end:]
            reply = {"return": answer(request["execute"], request.get("arguments")),
                     "id": request.get("id")}
            connection.sendall(json.dumps(reply).encode() + b"\n")
