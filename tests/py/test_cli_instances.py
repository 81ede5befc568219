# SPDX-License-Identifier: BSD-2-Clause
"""`essd list`, `essd rm`, `--quiet`, and which names the command line takes."""

import ast
import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_supervisor import FakeSupervisor
from typer.main import get_command
from typer.testing import CliRunner

from essd import cli
from essd.base import chosen, claims, paths
from essd.base.errors import EssdError
from essd.cli.commands import run as run_commands
from essd.instance.instance import Instance
from essd.settings import block as config_block
from essd.setup import instances
from essd.storage import flash

SOURCES = sorted((paths.TOP / "tools/essd").rglob("*.py"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Empty folders for instances and for drives."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
    return SimpleNamespace(runtime=paths.runtime(), drives=paths.drives())


def make_drive(name: str, exist_ok: bool = False) -> Path:
    """The files of a drive that is not running."""
    folder = paths.drives() / name
    folder.mkdir(parents=True, exist_ok=exist_ok)
    image = flash.FlashImage()
    image.config = config_block.Config((config_block.Port.of("10.9.0.10/24"), config_block.Port()))
    image.save(folder / "flash.img")
    (folder / "media.raw").write_bytes(b"data" * 5000)
    return folder


def run(*words: str, text: str | None = None) -> str:
    done = CliRunner().invoke(cli.app, list(words), input=text)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


# essd list and essd rm

def test_list_shows_running_instances_and_stopped_drives(home) -> None:
    make_drive("shelf")
    with FakeSupervisor("lab") as lab:
        lab.parts["drive"] |= {"state": "off", "pid": None}
        shown = {entry["name"]: entry for entry in json.loads(run("list", "--json"))}
        table = run("list").splitlines()
    assert list(shown) == ["lab", "shelf"]
    assert shown["lab"]["state"] == "power off"
    assert shown["lab"]["parts"]["drive"] == {"state": "off", "ready": False, "pid": None}
    assert shown["lab"]["ports"][1] == {
        "part": "drive", "port": 1, "addresses": ["10.0.1.10/24"],
        "socket": str(lab.folder / "port1.sock")}
    assert str(lab.folder / "control.sock") in shown["lab"]["sockets"]
    assert shown["lab"]["uptime_s"] > 0
    assert shown["shelf"]["state"] == "stopped"
    assert shown["shelf"]["ports"] == [
        {"part": "drive", "port": 0, "addresses": ["10.9.0.10/24"], "socket": None},
        {"part": "drive", "port": 1, "addresses": [], "socket": None}]
    assert shown["shelf"]["uptime_s"] is None
    assert 20000 < shown["shelf"]["disk_bytes"] < 40 << 20
    assert [line.split()[0] for line in table[1:]] == ["lab", "shelf"]


def test_a_drive_whose_name_is_too_long_to_run_is_listed_and_deleted(home) -> None:
    name = "d" * 100        # It was made while the folder for sockets had a shorter path.
    folder = make_drive(name)
    assert [entry["name"] for entry in json.loads(run("list", "--json"))] == [name]
    run("rm", "--yes", name)
    assert not folder.exists()


def test_list_says_what_to_do_if_there_is_no_drive(home) -> None:
    assert "create one with ./essd up" in run("list")
    assert json.loads(run("list", "--json")) == []


@pytest.mark.parametrize("changes, word", [
    ({}, "running"), ({"state": "crashed"}, "crashed"), ({"halted": True}, "halted"),
    ({"state": "off"}, "power off"), ({"state": "off", "saved": True}, "saved")])
def test_the_state_of_an_instance_is_one_word(home, changes, word) -> None:
    parts = FakeSupervisor().parts
    parts["drive"] |= changes
    assert instances.state_word(parts, ["drive"]) == word


def test_rm_deletes_a_stopped_drive_and_its_logs(home) -> None:
    folder = make_drive("lab")
    other = make_drive("other")
    logs = home.runtime / "lab"
    logs.mkdir()
    assert "lab: deleted, " in run("rm", "lab", "--yes")
    assert not folder.exists() and not logs.exists() and other.exists()


def test_rm_refuses_a_running_drive(home) -> None:
    folder = make_drive("lab")
    with FakeSupervisor("lab"), pytest.raises(
            EssdError, match="lab is running: stop it with ./essd down --name lab first"):
        run("rm", "lab", "--yes")
    assert folder.exists()


def test_rm_asks_on_a_terminal_and_needs_yes_elsewhere(
        home, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_drive("lab")
    with pytest.raises(EssdError, match="not a terminal: give --yes"):
        run("rm", "lab")
    monkeypatch.setattr(run_commands, "can_ask", lambda: True)
    with pytest.raises(EssdError, match="nothing was deleted"):
        run("rm", "lab", text="n\n")
    assert folder.exists()
    run("rm", "lab", text="y\n")
    assert not folder.exists()


@pytest.mark.parametrize("words", [
    ["snapshots", "--remove", "one"], ["snapshots"], ["fork", "one", "new"],
    ["firmware", "activate", "A"], ["media", "info"],
    ["media", "age", "--erasures", "1"]], ids=" ".join)
def test_no_command_chooses_one_of_several_instances_by_itself(home, words: list[str]) -> None:
    folder = paths.drives() / "lab/snapshots/one"
    folder.mkdir(parents=True)
    with FakeSupervisor("lab") as lab, FakeSupervisor("shelf") as shelf:
        with pytest.raises(EssdError, match="several instances are running: choose one with "
                                            "--name lab or --name shelf"):
            run(*words)
        assert lab.asked == shelf.asked == [] and folder.is_dir()


def test_rm_names_the_nearest_drive(home) -> None:
    make_drive("lab-two")
    with pytest.raises(EssdError, match="there is no drive labtwo; did you mean lab-two"):
        run("rm", "labtwo", "--yes")


# Names

@pytest.mark.parametrize("name, said", [
    ("my drive", "such as my-drive"), ("a/b", "such as a-b"), ("é", "use only the letters"),
    ("x" * 200, "has 200 characters; at most")])
def test_a_name_that_is_not_possible_is_refused_where_it_is_given(
        home, name: str, said: str) -> None:
    with pytest.raises(EssdError, match=re.escape(said)):
        Instance(name)
    with pytest.raises(EssdError, match=re.escape(said)):
        run("up", "--name", name)


def test_a_command_for_an_instance_that_does_not_run_names_the_nearest(home) -> None:
    with FakeSupervisor("lab-one"), pytest.raises(EssdError) as caught:
        run("status", "--name", "labone")
    assert str(caught.value) == (
        "nothing is running as labone: start it with ./essd up --name labone"
        "; did you mean lab-one?")


def test_an_instance_that_is_starting_or_ending_is_not_said_to_be_missing(home) -> None:
    with claims.claimed("lab", "essd up") as file:
        folder = paths.instance("lab")
        folder.mkdir()
        claims.write_holder(file, claims.Holder(os.getpid(), "essd up", str(folder)))
        with pytest.raises(EssdError) as caught:
            run("status", "--name", "lab")
    assert str(caught.value) == (
        "lab runs and cannot be reached, because it is starting or ending: try again, or end "
        "it with ./essd down --name lab")


def test_what_the_last_supervisor_said_of_a_claim_does_not_count(home) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait(60)
    with claims.claimed("lab", "essd up") as file:
        claims.write_holder(file, claims.Holder(ended.pid, "essd up", "/old"))
        assert chosen.running() == [] and not chosen.is_running("lab")


@pytest.mark.parametrize("words, said", [
    (("qmp", "query-status", "--part", "drvie"), "must be host or drive; did you mean drive?"),
    (("host", "--part", "hots"), "--part hots: must be host"),
    (("port", "0", "--partner-fec", "rz"), "did you mean rs?"),
    (("port", "7"), "the drive has no port 7; its ports are 0 and 1"),
    (("trace", "--events", "qp,kommands"), "did you mean commands?"),
    (("bench", "--target", "nvmt"), "did you mean nvmet?"),
    (("bench", "--silent", "40"), "only with --native"),
    (("bench", "--native", "--silent", "61"), "use 0 to 60 hosts"),
    (("test", "--only", "lnt"), "did you mean lint?"),
    (("up", "--name", "z", "--target", "driv"), "did you mean drive?")])
def test_a_wrong_word_is_refused_with_the_nearest_valid_one(home, words, said) -> None:
    with FakeSupervisor(), pytest.raises(EssdError, match=re.escape(said)):
        run(*words)


def test_the_nearest_word_is_none_if_no_word_is_similar() -> None:
    assert chosen.nearest("zzz", ["drive", "host"]) == ""
    assert chosen.nearest("DRIVE", ["drive", "host"]) == "drive"


# Hints

def test_a_hint_has_the_name_unless_it_is_the_default_one() -> None:
    assert chosen.hint("default", "host", "--", "ls") == "./essd host -- ls"
    assert chosen.hint("lab", "host", "--", "ls") == "./essd host --name lab -- ls"


@pytest.mark.parametrize("command, said", [
    (("port",), "start it with ./essd power-on --name lab"),
    (("config",), "resume the drive first with ./essd load --name lab"),
    (("up", "--name", "lab"), "stop it with ./essd down --name lab")])
def test_hints_name_the_instance_that_the_message_is_about(home, command, said) -> None:
    with FakeSupervisor("lab") as lab, pytest.raises(EssdError, match=said):
        lab.parts["drive"] |= {"state": "off", "saved": command == ("config",)}
        run(*command)


def texts(source: Path) -> list[str]:
    """All strings of a source file except the documentation of its functions."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    documents = {id(node.body[0].value) for node in ast.walk(tree)
                 if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
                 and node.body and isinstance(node.body[0], ast.Expr)}
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)
            and isinstance(node.value, str) and id(node) not in documents]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_every_suggested_command_of_an_instance_is_built_by_the_hint_function(
        source: Path) -> None:
    commands = get_command(cli.app).commands        # type: ignore[attr-defined]
    for text in texts(source):
        for name in re.findall(r"\./essd ([a-z-]+)", text):
            assert not any("--name" in parameter.opts for parameter in
                           commands[name].params), text


# --quiet

# Commands that act on one drive, which a message about a drive has to name.
OF_A_DRIVE = ("console", "flash", "gdb", "load", "power-cut", "power-on", "qmp", "reset", "save")


def test_a_hint_for_a_drive_names_the_drive() -> None:
    """Where an instance has several, the command would not know which one is meant."""
    hint = re.compile(rf"(?<!drive_)\bhint\(([^()]*['\"](?:{'|'.join(OF_A_DRIVE)})['\"][^()]*)\)?")
    found = {(path.name, match[1]) for path in SOURCES
             for match in hint.finditer(path.read_text(encoding="utf-8"))
             if "--part" not in match[1] and "part_words" not in match[1]}
    assert found == {
        ("run.py", "'gdb'"), ("run.py", "'console'"),       # of `up`, which starts one drive
        ("snapshot.py", "name, 'save', 'NAME'")}            # of all drives at once


def test_a_hint_of_one_of_several_drives_has_its_part(home) -> None:
    assert Instance("lab").of("drive1").drive_hint("qmp", "cont") == (
        "./essd qmp --name lab --part drive1 cont")
    assert Instance("lab").of("drive").drive_hint("gdb") == "./essd gdb --name lab"


def test_quiet_prints_only_what_was_asked_for(home) -> None:
    make_drive("shelf")
    with FakeSupervisor():
        assert run("reset") == "reset\n"
        assert run("--quiet", "reset") == ""
        assert "shelf" in run("--quiet", "list")
    assert run("--quiet", "rm", "shelf", "--yes") == ""
    assert run("--quiet", "list") == ""
