# SPDX-License-Identifier: BSD-2-Clause
"""`essd access`: the drive's list of hosts from the command line and from YAML."""

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from fake_supervisor import FakeSupervisor
from typer.testing import CliRunner

from essd.base.errors import EssdError
from essd.cli import app
from essd.drive import access

NQN = "nqn.2014-08.org.example:host"
SECRET = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"


@pytest.fixture(autouse=True)
def folder_of_instances(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "essd").mkdir(mode=0o700)


class Drive(FakeSupervisor):
    """A fake drive with a list of hosts, two of them in each reply."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.hosts: dict[str, dict[str, str]] = {}
        self.exclusive = False
        self.room = 64
        self.stands_still = False   # a reply that names itself as the next
        self.requests: list[str] = []

    def ask_drive(self, request: dict[str, Any]) -> Any:
        arguments = request["arguments"]
        self.requests.append(request["request"])
        if request["request"] == "host-set":
            assert len(self.hosts.keys() | {arguments["nqn"]}) <= self.room, "full"
            self.hosts.setdefault(arguments["nqn"], {}).update(arguments)
        elif request["request"] == "host-remove":
            del self.hosts[arguments["nqn"]]
        elif request["request"] == "hosts-exclusive":
            self.exclusive = arguments["on"]
        elif request["request"] == "disconnect":
            return {"ended": {"hostnqn": 1, "all": 3}[next(iter(arguments))]}
        else:
            first = arguments.get("from", 0)
            rows = [{"nqn": nqn, "secret": bool(host.get("secret")), "drive-secret": False,
                     "tls-key": bool(host.get("tls-key")),
                     "tls-identities": [f"NVMe{version}R01 {nqn} nqn.drive" for version in (0, 1)
                                        if host.get("tls-key")],
                     "least-hash": "sha256", "least-group": "null"}
                    for nqn, host in self.hosts.items()]
            more = {"next": first + 2} if len(rows) > first + 2 else {}
            more = {"next": first} if self.stands_still else more
            return {"exclusive": self.exclusive, "hosts": rows[first:first + 2]} | more
        return {}


def run(*words: str, given: str = "") -> str:
    result = CliRunner().invoke(app, ["access", *words], input=given)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_secret_comes_from_standard_input_and_is_never_shown() -> None:
    with Drive("unit") as drive:
        run("add", NQN, "--secret-file", "-", "--least-hash", "sha384", given=SECRET + "\n")
        assert drive.hosts == {NQN: {"nqn": NQN, "secret": SECRET, "least-hash": "sha384"}}
        shown = run("--json")
        assert json.loads(shown)["hosts"][0]["secret"] is True
        assert "DHHC" not in shown + run()


@pytest.mark.parametrize(("digest", "size"), [(0, 32), (1, 32), (2, 48)])
def test_a_new_tls_key_is_printed_once(digest: int, size: int) -> None:
    with Drive("unit") as drive:
        printed = run("new-tls-key", NQN, "--hash", str(digest)).split()[0]
        assert drive.hosts[NQN]["tls-key"] == printed
        head, number, text, end = printed.split(":")
        assert (head, number, end) == ("NVMeTLSkey-1", f"{digest:02}", "")
        key = base64.b64decode(text, validate=True)
        assert len(key) == size + 4
        assert key[size:] == zlib.crc32(key[:size]).to_bytes(4, "little")
        assert run("new-tls-key", NQN, "--hash", str(digest)).split()[0] != printed
        assert text not in run() + run("--json")


def test_hosts_with_a_tls_key_are_listed_with_its_names() -> None:
    with Drive("unit"):
        run("add", NQN + "-plain")
        run("new-tls-key", NQN)
        shown = run()
        assert f"TLS identity of {NQN}: NVMe0R01 {NQN} nqn.drive\n" in shown
        assert f"NVMe1R01 {NQN} nqn.drive and the key's digest" in shown
        assert "-plain:" not in shown
        rows = json.loads(run("--json"))["hosts"]
        assert [len(row["tls-identities"]) for row in rows] == [0, 2]


def test_a_new_tls_key_with_another_hash_is_refused() -> None:
    with pytest.raises(EssdError, match="--hash has to be one of 0, 1, 2"):
        access.new_tls_key(3)


def test_all_pages_of_the_list_are_read() -> None:
    with Drive("unit"):
        for number in range(5):
            run("add", f"{NQN}{number}")
        assert len(json.loads(run("--json"))["hosts"]) == 5


def test_a_yaml_file_replaces_the_list(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(f"exclusive: true\nhosts:\n- nqn: {NQN}\n  secret: '{SECRET}'\n"
                    f"- nqn: {NQN}2\n")
    with Drive("unit") as drive:
        run("add", NQN + "-old")
        run("load", str(file))
        assert set(drive.hosts) == {NQN, NQN + "2"}
        assert drive.hosts[NQN]["secret"] == SECRET
        assert drive.hosts[NQN + "2"]["secret"] == ""
        assert drive.exclusive
        run("open")
        assert not drive.exclusive
        run("remove", NQN)
        run("exclusive")
        assert drive.exclusive and set(drive.hosts) == {NQN + "2"}


def test_associations_are_ended() -> None:
    with Drive("unit"):
        assert "ended 1 association\n" in run("disconnect", NQN)
        assert "ended 3 associations\n" in run("disconnect", "--all")


@pytest.mark.parametrize("words", [[], ["--all", NQN], [""]])
def test_whose_associations_end_has_to_be_said(words: list[str]) -> None:
    with Drive("unit") as drive:
        result = CliRunner().invoke(app, ["access", "disconnect", *words])
        assert result.exit_code != 0
        assert "--all" in result.output + str(result.exception)
        assert drive.requests == []


def test_a_full_list_can_be_replaced_and_lets_nobody_in_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(f"exclusive: true\nhosts:\n- nqn: {NQN}5\n- nqn: {NQN}6\n")
    with Drive("unit") as drive:
        drive.room = 2
        run("add", NQN)
        run("add", NQN + "5")
        drive.requests.clear()
        run("load", str(file))
        assert set(drive.hosts) == {NQN + "5", NQN + "6"}
        assert [x for x in drive.requests if x != "hosts"][0] == "hosts-exclusive"


def test_a_drive_that_never_comes_to_the_end_of_its_list_holds_nobody_up() -> None:
    with Drive("unit") as drive:
        run("add", NQN)
        drive.stands_still = True
        assert len(json.loads(run("--json"))["hosts"]) == 1


@pytest.mark.parametrize("text", [
    "exclusive: 2020-13-45", "hosts: !!int x", "[" * 3000, "\x00", "- a list",
    "other: 1", "exclusive: maybe", "hosts: 7", "hosts: [{secret: x}]",
    "hosts: [{nqn: 7}]", f"hosts: [{{nqn: {NQN}, password: x}}]",
    f"hosts:\n- nqn: {NQN}\n  secret: '{SECRET}\n"])
def test_a_wrong_file_is_refused_in_one_line_without_secrets(text: str,
                                                             tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(text)
    with pytest.raises(EssdError) as error:
        access.load_file(file)
    assert "\n" not in str(error.value) and "DHHC" not in str(error.value)


def test_a_file_with_two_words_is_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("two words")
    with pytest.raises(EssdError, match="one word"):
        access.secret_of(str(file))
    with pytest.raises(EssdError, match="cannot be read"):
        access.secret_of(str(tmp_path / "missing"))
