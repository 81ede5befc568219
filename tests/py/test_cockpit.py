# SPDX-License-Identifier: BSD-2-Clause
"""The cockpit over HTTP, in front of a fake supervisor: who may see it, and what it does."""

import asyncio
import contextlib
import fcntl
import itertools
import json
import os
import re
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest
import uvicorn
from cockpit_site import Site, cockpit
from metrics_bed import LookedAt
from prometheus_client.parser import text_string_to_metric_families

from essd.base import cpu, paths
from essd.base.errors import EssdError
from essd.cockpit import guard, rules, server, unproven
from essd.drive import fault_rules

NAMES = (f"pycockpit{os.getpid()}-{number}" for number in itertools.count())
REFUSED = guard.REFUSED.encode()


@dataclass
class Fake(Site):
    """A cockpit in front of a fake supervisor."""

    supervisor: LookedAt = field(default_factory=lambda: LookedAt("none"))

    def asked(self, command: str) -> list[dict[str, Any]]:
        return [request for request in self.supervisor.asked
                if request["command"] == command]


def serve(**hostile: str) -> Iterator[Fake]:
    with LookedAt(next(NAMES), **hostile) as supervisor:
        supervisor.folder.joinpath("drive/console.log").write_text("boot ok\n")
        with cockpit(supervisor.name) as site:
            yield Fake(**{**vars(site), "supervisor": supervisor})


@pytest.fixture(scope="module")
def site() -> Iterator[Fake]:
    """A cockpit that one browser has logged in to."""
    for found in serve():
        found.log_in()
        yield found


# Who may see it

@pytest.mark.parametrize("path", [*server.FILES, server.RULES, "/events", "/metrics", "/do",
                                  "/nowhere", "/login", "/login?token=", "/login?token=x",
                                  "/login?token=%00%ff"])
def test_without_a_token_there_is_one_line_and_nothing_else(site: Fake, path: str) -> None:
    reply = site.ask("GET", path, cookie=False)
    assert (reply.status, reply.read()) == (403, REFUSED)
    reply = site.ask("POST", path, {"do": "power", "part": "drive", "on": False}, cookie=False)
    assert (reply.status, reply.read()) == (403, REFUSED)
    assert not site.asked("power-cut")


@pytest.mark.parametrize("cookie", ["", "x", "essd-cockpit-{port}=", "essd-cockpit-{port}=x",
                                    "essd-cockpit-{port}=\"", "other=1"])
def test_a_wrong_cookie_is_refused(site: Fake, cookie: str) -> None:
    reply = site.ask("GET", "/", cookie=False, Cookie=cookie.format(port=site.port))
    assert (reply.status, reply.read()) == (403, REFUSED)


def test_the_token_is_exchanged_once_for_a_strict_cookie() -> None:
    for site in serve():
        path = site.link.partition(site.host)[2]
        reply = site.ask("GET", path, cookie=False)
        assert reply.status == 303
        assert reply.getheader("Location") == "/"       # without the token
        cookie = reply.getheader("Set-Cookie") or ""
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
        assert site.ask("GET", path, cookie=False).status == 403
        # The browser that has the cookie may open its link again.
        value = cookie.partition(";")[0]
        assert site.ask("GET", path, cookie=False, Cookie=value).status == 303
        assert site.ask("GET", "/", cookie=False, Cookie=value).status == 200
        # The terminal shows a new link for one more browser.
        assert site.process.stdout is not None
        more = site.process.stdout.readline().split()[-1]
        assert more.startswith("http://") and more != site.link
        assert site.ask("GET", more.partition(site.host)[2], cookie=False).status == 303


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1",
                                  "127.0.0.1:1", "127.0.0.2:{port}", "localhost.evil:{port}",
                                  "", "[::1]:{port}", "127.0.0.1:{port}:{port}"])
def test_a_name_that_points_to_this_machine_is_refused(site: Fake, host: str) -> None:
    reply = site.ask("GET", "/", Host=host.format(port=site.port))
    assert reply.status in (400, 403)
    assert b"<html" not in reply.read()


def test_two_host_headers_are_refused(site: Fake) -> None:
    with socket.create_connection(("127.0.0.1", site.port), 30) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {site.host}\r\nHost: evil.example\r\n"
                           f"Cookie: {site.cookie}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.split()[1] in (b"400", b"403") and b"<html" not in answer


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1",
                                    "https://127.0.0.1:{port}", "http://localhost:{port}"])
def test_a_request_of_another_origin_is_refused(site: Fake, origin: str) -> None:
    origin = origin.format(port=site.port)
    assert site.ask("GET", "/events", Origin=origin).status == 403
    reply = site.ask("POST", "/do", {"do": "reset", "part": "drive"}, Origin=origin)
    assert reply.status == 403
    assert not site.asked("reset")


def test_an_action_without_an_origin_is_refused(site: Fake) -> None:
    reply = site.ask("POST", "/do", {"do": "reset", "part": "drive"}, Origin="")
    assert reply.status == 403
    assert not site.asked("reset")


@pytest.mark.parametrize("where", ["cross-site", "same-site"])
def test_a_request_that_another_site_causes_is_refused(site: Fake, where: str) -> None:
    assert site.ask("GET", "/events", Sec_Fetch_Site=where).status == 403
    assert site.ask("GET", "/", Sec_Fetch_Site="same-origin").status == 200


def test_a_websocket_is_refused(site: Fake) -> None:
    reply = site.ask("GET", "/events", cookie=False, Connection="Upgrade", Upgrade="websocket",
                     Sec_WebSocket_Version="13", Sec_WebSocket_Key="AAAAAAAAAAAAAAAAAAAAAA==")
    assert reply.status == 403


def test_every_answer_forbids_foreign_scripts_frames_and_caches(site: Fake) -> None:
    for path in ("/", "/page.js", "/nowhere", "/login?token=x"):
        reply = site.ask("GET", path)
        policy = reply.getheader("Content-Security-Policy") or ""
        assert "default-src 'none'" in policy and "script-src 'self'" in policy
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert reply.getheader("X-Content-Type-Options") == "nosniff"
        assert reply.getheader("Referrer-Policy") == "no-referrer"
        assert reply.getheader("Cache-Control") == "no-store"


def test_the_cockpit_listens_on_loopback_only(site: Fake) -> None:
    mine = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()
            if f":{site.port:04X}" in line.split()[1]]
    assert {line[1] for line in mine if line[3] == "0A"} == {f"0100007F:{site.port:04X}"}


@pytest.mark.parametrize("listen, host, has", [
    ("127.0.0.1", "localhost:80", True), ("127.0.0.1", "10.0.0.1:80", False),
    ("0.0.0.0", "10.0.0.1:80", True), ("0.0.0.0", "evil.example:80", False),
    ("10.0.0.1", "localhost:80", False), ("10.0.0.1", "10.0.0.1:80", True),
    ("::1", "[::1]:80", True), ("::1", "::1:80", True), ("0.0.0.0", "10.0.0.1:81", False)])
def test_a_name_is_accepted_only_for_loopback(listen: str, host: str, has: bool) -> None:
    assert guard.Hosts(listen, 80).has(host) is has


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has ended this connection, of which nothing was read."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_requests_that_never_end_do_not_lock_the_cockpit(site: Fake) -> None:
    """More of them than the cockpit accepts connections; none has a token."""
    started = f"GET / HTTP/1.1\r\nHost: {site.host}\r\n".encode()
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(2 * (server.PROVEN_MAX + unproven.UNPROVEN_MAX)):
            held.append(stack.enter_context(
                socket.create_connection(("127.0.0.1", site.port), 30)))
            held[-1].sendall(started)
        assert site.ask("GET", "/").status == 200
        assert site.event()["frame"]
        still = [not is_closed(connection) for connection in held]
        # The last ones, and of them no more than the share of the unproven.
        assert sum(still) <= unproven.UNPROVEN_MAX
        assert still == sorted(still)


OTHERS = 65534          # the user nobody
# Opens connections to a port as another user, says so, and waits.
FLOOD = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
held = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30) for _ in range(100)]
for one in held:
    one.sendall(b"GET / HTTP/1.1\\r\\n")
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_does_not_take_the_place_of_a_slow_browser(site: Fake) -> None:
    with socket.create_connection(("127.0.0.1", site.port), 30) as slow:
        slow.sendall(f"GET / HTTP/1.1\r\nHost: {site.host}\r\n".encode())
        with subprocess.Popen(["/usr/bin/python3", "-c", FLOOD, str(site.port), str(OTHERS)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as flood:
            assert flood.stdout is not None
            assert flood.stdout.readline() == b"\n"
            # The cockpit has taken this connection after the others.
            assert site.ask("GET", "/").status == 200
            assert not is_closed(slow)
            flood.communicate(timeout=30)


@pytest.mark.parametrize(("peers", "closed"), [
    ([0, 0, 0], 0),                             # all of the cockpit's own user
    ([0, 0, 0, 7], 3),                          # who loses none to another one
    ([7, 8, 8], 1), ([7, 8, 8, 7], 0),          # the oldest of the greediest
    (["10.0.0.9", 0, "10.0.0.1", "10.0.0.1"], 2), (["gone", 0], 0)])
def test_the_oldest_connection_of_the_greediest_peer_ends(
        peers: list[str | int], closed: int) -> None:
    assert unproven.to_close(peers, 0) == closed


class FakeTransport(asyncio.Transport):
    def __init__(self, peer: tuple[Any, ...] | None, mine: tuple[Any, ...]) -> None:
        super().__init__({"peername": peer, "sockname": mine})


def test_a_peer_is_the_user_of_a_socket_or_an_address() -> None:
    for family, name in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as listener:
            listener.bind((name, 0))
            listener.listen()
            with socket.create_connection(listener.getsockname()[:2], 30):
                accepted, peer = listener.accept()
                with accepted:
                    found = unproven.peer_of(FakeTransport(peer, accepted.getsockname()),
                                             unproven.users())
                    assert found == os.getuid()

    def of(name: str) -> str | int:
        return unproven.peer_of(FakeTransport((name, 9), ("10.0.0.1", 80)), {})
    assert of("10.0.0.9") == of("::ffff:10.0.0.9") == "10.0.0.9" != of("::ffff:10.0.0.8")
    assert of("2001:db8::1") == of("2001:db8::2%eth0") == "2001:db8::/64"
    assert unproven.peer_of(FakeTransport(None, ("10.0.0.1", 80)), {}) == "gone"


class Bed:
    """A cockpit's connections in front of an application that knows one path."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        monkeypatch.setattr(unproven, "UNPROVEN_S", seconds)

    async def serve(self) -> tuple[asyncio.Server, int]:
        config = uvicorn.Config(self.answer, http=unproven.connections(), interface="asgi3",
                                lifespan="off", log_config=None,
                                timeout_keep_alive=1_000_000)
        config.load()
        state = uvicorn.server.ServerState()
        made = await asyncio.get_running_loop().create_server(
            lambda: config.http_protocol_class(             # type: ignore[call-arg,operator]
                config=config, server_state=state, app_state={}), "127.0.0.1", 0)
        return made, made.sockets[0].getsockname()[1]

    async def answer(self, scope: Any, _receive: Any, send: Any) -> None:
        if scope["path"] == "/proves":
            unproven.prove(scope)
        await send({"type": "http.response.start", "status": 200,
                    "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("first", [b"", b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_a_connection_without_a_token_ends_however_much_it_sends(
        monkeypatch: pytest.MonkeyPatch, first: bytes) -> None:
    async def dribble() -> float:
        server, port = await Bed(monkeypatch, 0.2).serve()
        began = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(first + b"GET / HTTP/1.1\r\n")
        with contextlib.suppress(OSError):
            while not reader.at_eof() and time.monotonic() - began < 30:
                writer.write(b"X: y\r\n")
                await writer.drain()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(65536), 0.02)
        writer.close()
        server.close()
        return time.monotonic() - began

    assert 0.2 <= asyncio.run(dribble()) < 30


def test_a_connection_that_has_shown_its_token_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask_twice() -> list[bytes]:
        server, port = await Bed(monkeypatch, 3600).serve()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        loop = asyncio.get_running_loop()
        clock = loop.time
        answers = []
        for _ in range(2):
            writer.write(b"GET /proves HTTP/1.1\r\nHost: x\r\n\r\n")
            answers.append(await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30))
            # An unproven connection's time is over now, however slow the machine is.
            monkeypatch.setattr(loop, "time", lambda: clock() + 7200)
            await asyncio.sleep(0.01)
        writer.close()
        server.close()
        return answers

    assert [answer.split()[1] for answer in asyncio.run(ask_twice())] == [b"200", b"200"]


# What it shows

def test_an_event_has_the_frame_and_the_end_of_the_uart(site: Fake) -> None:
    event = site.event()
    drive = event["frame"]["drives"]["drive"]
    assert drive["status"]["serial"] == "S1"
    assert drive["ports"][1]["fec"] == "rs"
    assert drive["faults"][0]["name"] == "bad-start"
    assert event["tracing"] == "" and event["sampling"] is False
    assert site.event("uart")["uart"] in ({}, {"drive": "boot ok\n"})


def test_hostile_text_of_the_network_reaches_the_page_as_json_only() -> None:
    evil = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    for site in serve(hostnqn=evil, neighbour=evil):
        site.log_in()
        reply = site.ask("GET", "/events")
        assert (reply.getheader("Content-Type") or "").startswith("text/event-stream")
        drive = site.event()["frame"]["drives"]["drive"]
        assert drive["controllers"]["rows"][0]["hostnqn"] == evil
        assert drive["neighbours"][0]["neighbours"][0]["system"] == evil
        for path in (*server.FILES, "/metrics"):
            assert evil.encode() not in site.ask("GET", path).read()


def test_the_page_never_makes_html_out_of_text() -> None:
    scripts = [path for path in server.FILES.values()
               if path.suffix == ".js" and path.parent == server.FOLDER]
    assert len(scripts) > 5
    script = "".join(path.read_text(encoding="utf-8") for path in scripts)
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                 "Function(", "setTimeout(\"", "DOMParser", "srcdoc", "createContextualFragment"):
        assert word not in script
    page = (Path(guard.__file__).parent / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"\son\w+=|style=|<script>|<style>|https?://", page)


def test_a_critical_warning_reaches_the_page(site: Fake) -> None:
    site.supervisor.critical_warning = 4
    try:
        drive = site.event(holds=lambda event: event["frame"]["drives"]["drive"]["warnings"])
        assert drive["frame"]["drives"]["drive"]["warnings"] == ["reliability"]
    finally:
        site.supervisor.critical_warning = 0


def test_metrics_are_read_with_the_token_of_the_file(site: Fake) -> None:
    file = Path(site.bearer_file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    bearer = f"Bearer {file.read_text()}"
    reply = site.ask("GET", "/metrics", cookie=False, Authorization=bearer)
    assert reply.status == 200
    names = {family.name for family in
             text_string_to_metric_families(reply.read().decode())}
    assert {"essd_commands", "essd_port_up", "essd_part_state"} <= names
    # It opens nothing else.
    assert site.ask("GET", "/events", cookie=False, Authorization=bearer).status == 403
    assert site.ask("GET", "/metrics", cookie=False, Authorization="Bearer x").status == 403


def test_nothing_is_asked_of_the_drive_while_nobody_looks() -> None:
    for site in serve():
        time.sleep(2.5)
        assert {request["command"] for request in site.supervisor.asked} == {"status"}
        assert len(site.supervisor.asked) == 1


def test_the_cockpit_takes_less_than_100_mb(site: Fake) -> None:
    site.event()
    assert cpu.resident_mib(site.process.pid) < 100e6 / (1 << 20)


# What it does

@pytest.mark.parametrize("body, command, expected", [
    ({"do": "power", "part": "drive", "on": False}, "power-cut", {"part": "drive"}),
    ({"do": "power", "part": "drive", "on": True}, "power-on", {"part": "drive"}),
    ({"do": "reset", "part": "drive"}, "reset", {"part": "drive"}),
    ({"do": "cable", "number": "1", "on": False}, "port", {"port": 1, "plugged": False}),
    ({"do": "fault", "part": "drive", "name": "bad-start", "on": False}, "faults",
     {"part": "drive", "names": ["bad-start"], "do": "off"}),
])
def test_a_switch_sends_its_command(site: Fake, body: dict[str, Any], command: str,
                                    expected: dict[str, Any]) -> None:
    assert site.do(**body) == (200, {})
    assert {"command": command, **expected} in site.asked(command)


def test_the_page_names_each_of_its_files_once() -> None:
    page = server.FILES["/"].read_text(encoding="utf-8")
    named = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    assert sorted(named) == sorted(set(server.FILES) - {"/"})


def test_the_words_of_fault_rules_are_there_to_compose_one(site: Fake) -> None:
    reply = site.ask("GET", server.RULES)
    assert reply.status == 200
    assert json.loads(reply.read()) == rules.grammar()


def test_a_composed_rule_is_added_and_removed(site: Fake) -> None:
    line = "nvme opcode=read do delay=20ms"
    assert site.do(do="fault-add", part="drive", rule=line, name="slow") == (200, {})
    assert {"command": "faults", "part": "drive", "do": "add",
            "rules": [{"rule": line, "name": "slow"}]} in site.asked("faults")
    assert site.do(do="fault-remove", part="drive", name="slow") == (200, {})
    assert {"command": "faults", "part": "drive", "do": "remove",
            "names": ["slow"]} in site.asked("faults")


def test_rules_are_saved_replaced_and_forgotten(tmp_path: Path) -> None:
    saved = rules.Saved(tmp_path / "new" / "rules.yaml")
    assert saved.all() == []
    saved.save("slow", "nvme opcode=read do delay=20ms")
    saved.save("dead", "nand operation=program when nth=1 do die")
    saved.save("slow", "nvme opcode=read do  delay=30ms")
    assert saved.all() == [
        {"name": "dead", "rule": "nand operation=program when nth=1 do die"},
        {"name": "slow", "rule": "nvme opcode=read do delay=30ms"}]
    # The command line takes the file.
    assert [rule.name for rule in fault_rules.load_file(saved.path)] == ["dead", "slow"]
    for name, line, complaint in (("", "nvme do drop", "needs"), ("a b", "nvme do drop", "name"),
                                  ("x", "nvme do dance", "cannot do"), ("x", "", "empty")):
        with pytest.raises(EssdError, match=complaint) if name else contextlib.nullcontext():
            saved.save(name or "slow", line)
    saved.save("slow", "nvme opcode=read do delay=30ms")
    saved.forget("dead")
    saved.forget("never saved")
    assert [entry["name"] for entry in saved.all()] == ["slow"]
    saved.forget("slow")
    assert saved.all() == []


def test_rules_that_several_save_at_once_are_all_kept(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (rules.Saved(tmp_path / "rules.yaml") for _ in range(2))
    write = first.write
    flock = fcntl.flock
    threads: list[threading.Thread] = []
    is_second_there = threading.Event()

    def lock(file: IO[str], kind: int) -> None:
        if threading.current_thread() in threads:
            is_second_there.set()
        flock(file, kind)

    def save() -> None:
        second.save("two", "nvme do drop")
        is_second_there.set()

    def write_later(found: list[dict[str, str]]) -> None:
        """Another cockpit saves a rule when this one has read the file."""
        threads.append(threading.Thread(target=save))
        threads[0].start()
        assert is_second_there.wait(60)
        threads[0].join(0.5)        # It waits for this one.
        write(found)

    monkeypatch.setattr(fcntl, "flock", lock)
    monkeypatch.setattr(first, "write", write_later)
    first.save("one", "nvme do drop")
    threads[0].join(60)
    assert [entry["name"] for entry in rules.Saved(first.path).all()] == ["one", "two"]


def test_the_folder_of_saved_rules_is_private(tmp_path: Path) -> None:
    saved = rules.Saved(tmp_path / "data/rules.yaml")
    saved.save("one", "nvme do drop")
    assert stat.S_IMODE(saved.path.parent.stat().st_mode) == 0o700


def test_a_saved_rule_reaches_the_page_and_a_mistake_in_the_file_is_said() -> None:
    with contextlib.ExitStack() as stack:
        saved = rules.Saved()
        stack.callback(lambda: saved.path.unlink(missing_ok=True))
        for site in serve():
            site.log_in()
            assert site.do(do="rule-save", name="slow", rule="nvme do dance")[0] == 409
            assert site.do(do="rule-save", name="slow", rule="nvme do drop") == (200, {})
            event = site.event(holds=lambda event: event["saved"])
            assert event["saved"] == [{"name": "slow", "rule": "nvme do drop"}]
            assert site.do(do="rule-forget", name="slow") == (200, {})
            saved.path.write_text("- nvme do dance\n")
            event = site.event(holds=lambda event: event["saved-why"])
            assert "dance" in event["saved-why"] and event["saved"] == []


def test_a_rule_that_was_turned_off_is_shown_so(site: Fake) -> None:
    site.do(do="fault", part="drive", name="bad-start", on=False)
    assert site.event()["frame"]["drives"]["drive"]["faults"][0]["on"] is False


@pytest.mark.parametrize("body", [
    {}, [], {"do": "stop"}, {"do": "mgmt", "part": "drive"}, {"do": "power", "part": "drive"},
    {"do": "power", "part": ["drive"], "on": True}, {"do": "power", "part": "drive", "on": 1},
    {"do": "cable", "number": 1, "on": True}, {"do": "cable", "number": "-1", "on": True},
    {"do": "x" * 5000}])
def test_an_action_that_makes_no_sense_is_refused(site: Fake, body: Any) -> None:
    before = len(site.supervisor.asked)
    reply = site.ask("POST", "/do", body)
    assert reply.status == 400 and json.loads(reply.read())["error"]
    commands = {request["command"] for request in site.supervisor.asked[before:]}
    # Those of a frame, which may come meanwhile.
    assert commands <= {"status", "several", "qmp", "mgmt", "faults"}


def test_an_action_that_is_not_json_is_refused(site: Fake) -> None:
    reply = site.ask("POST", "/do", {"do": "reset", "part": "drive"},
                     Content_Type="text/plain")
    assert reply.status == 400


def test_a_refusal_of_the_supervisor_is_shown(site: Fake) -> None:
    def refuse(_request: object) -> None:
        raise ValueError("the drive is not powered")

    before = site.supervisor.replies["reset"]
    site.supervisor.replies["reset"] = refuse
    try:
        assert site.do(do="reset", part="drive") == (409, {"error": "the drive is not powered"})
    finally:
        site.supervisor.replies["reset"] = before


def test_an_instance_that_ends_is_reported_to_the_page() -> None:
    for site in serve():
        site.log_in()
        site.event()
        (site.supervisor.folder / "control.sock").unlink()
        assert site.supervisor.name in site.event("why")["why"]


def test_the_file_with_the_token_goes_with_the_cockpit() -> None:
    for site in serve():
        assert Path(site.bearer_file).exists()
        site.process.terminate()
        assert site.process.wait(20) in (0, -15, 143)
        assert not Path(site.bearer_file).exists()


def test_a_cockpit_that_is_looked_at_ends_without_a_word(
        capfd: pytest.CaptureFixture[str]) -> None:
    for site in serve():
        site.log_in()
        site.event()                    # its connection stays open
        site.process.terminate()
        assert site.process.wait(20) in (0, -15, 143)
    assert capfd.readouterr().err == ""


def test_an_address_that_is_none_is_refused_in_one_line() -> None:
    with LookedAt(next(NAMES)) as supervisor:
        done = subprocess.run([sys.executable, "-m", "essd", "cockpit", "--name",
                               supervisor.name, "--listen", "everywhere"], check=False, text=True,
                              cwd=paths.TOP / "tools", capture_output=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("essd: --listen everywhere: use an IP address")
