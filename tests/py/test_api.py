# SPDX-License-Identifier: BSD-2-Clause
"""The Python interface (docs/python.md) without virtual machines, and the pytest plug-in."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_supervisor import FakeSupervisor
from fake_qemu import make_fake

import essd
from essd.api import system as api_system
from essd.base import claims, ends, paths
from essd.instance.config import Config, Drive, Link
from essd.instance.instance import Instance
from essd.setup.temporary import Temporary, sweep


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty folders for what runs and for drives."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ESSD_DATA", str(tmp_path / "drives"))
    return tmp_path


@pytest.fixture
def fake() -> Iterator[FakeSupervisor]:
    with FakeSupervisor() as supervisor:
        yield supervisor


def fake_config(name: str, folder: Path) -> Config:
    """A drive whose QEMU only answers QMP commands."""
    return Config(name, "", "tcg", [Link(0, ["10.0.0.10/24"]), Link(1, ["10.0.1.10/24"])],
                  drives={"drive": Drive(str(make_fake(folder / "qemu")), "flash", "media",
                                         "raw", "nqn.x")})


@pytest.fixture
def fake_up(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., essd.System]:
    """essd.up(), which starts a drive that only answers QMP commands."""
    monkeypatch.setattr(api_system, "_configure",
                        lambda name, *_: fake_config(name, folders))
    monkeypatch.setattr(essd.Drive, "wait_ready", lambda *_: None)
    return essd.up


def test_the_package_exports_what_it_lists_and_loads_it_on_first_use() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, essd; print(*sys.modules)"], check=True,
        cwd=paths.TOP / "tools", text=True, capture_output=True, timeout=120).stdout.split()
    assert [name for name in loaded if name.startswith("essd")] == ["essd"]
    for name in essd.__all__:
        assert getattr(essd, name), name
    with pytest.raises(AttributeError, match="ups"):
        essd.ups        # noqa: B018


def test_every_parameter_of_up_is_documented() -> None:
    page = (paths.TOP / "docs/python.md").read_text()
    line = next(line for line in page.splitlines() if line.startswith("| `essd.up("))
    found = re.findall(r"(\w+)=", line.split(")`")[0])
    assert sorted(found) == sorted(inspect.signature(essd.up).parameters)


def test_every_public_name_is_documented_and_in_the_table() -> None:
    page = (paths.TOP / "docs/python.md").read_text()
    for name in set(essd.__all__) - {"EssdError", "__version__"}:
        public = getattr(essd, name)
        assert public.__doc__, name
        for member in vars(public) if isinstance(public, type) else ():
            value = vars(public)[member]
            if not member.startswith("_") and getattr(value, "__module__", "").startswith(
                    "essd.api") and callable(value):
                assert value.__doc__ or member in ("receive", "request"), member
        assert f"`{name}" in page or f"essd.{name}" in page, name
    for kind in (essd.System, essd.Drive, essd.Host, essd.Port, essd.Faults, essd.Trace):
        for member in vars(kind):
            if not member.startswith("_") and vars(kind)[member].__doc__:
                assert f"`{member}" in page, f"{kind.__name__}.{member}"


# What the parts ask the supervisor for

def requests(fake: FakeSupervisor) -> list[dict[str, object]]:
    return [asked for asked in fake.asked if asked["command"] != "status"]


def test_a_system_that_runs_can_be_attached_to_and_goes_on(fake: FakeSupervisor) -> None:
    with essd.attach() as system:
        assert [one.name for one in system.drives] == ["drive"]
        assert system.host.name == "host"
        assert system.drives[0].system is system
    assert requests(fake) == []
    assert system.is_running


def test_power_cables_and_partners_are_those_of_the_drive(fake: FakeSupervisor) -> None:
    drive = essd.attach().drives[0]
    drive.power_cut()
    drive.power_on()
    drive.reset(halt=True)
    drive.ports[1].unplug()
    drive.ports[1].plug()
    drive.port(0).partner(fec="rs", ber=1e-6, seed=7)
    assert requests(fake) == [
        {"command": "power-cut", "part": "drive"}, {"command": "power-on", "part": "drive"},
        {"command": "reset", "part": "drive", "halt": True},
        {"command": "port", "part": "drive", "port": 1, "plugged": False},
        {"command": "port", "part": "drive", "port": 1, "plugged": True},
        {"command": "partner", "part": "drive", "port": 0,
         "settings": {"seed": 7, "partner-fec": "rs", "ber": 1e-6}}]
    with pytest.raises(essd.EssdError, match="no cable at port 2"):
        drive.port(2)
    with pytest.raises(essd.EssdError, match="10 or 25"):
        drive.port(0).partner(speed=40)


def test_fault_rules_are_added_listed_and_removed(fake: FakeSupervisor) -> None:
    def answer(request: dict[str, object]) -> object:
        if request["do"] == "add":
            return ["rule-1"]
        return [{"name": "rule-1", "site": "media", "rule": "media do error", "on": True,
                 "matched": 5, "fired": 2}] if request["do"] == "list" else []
    fake.replies["faults"] = answer
    faults = essd.attach().drives[0].faults
    assert faults.add("media operation=read do error") == "rule-1"
    assert faults["rule-1"] == essd.FaultRule("rule-1", "media do error", True, 5, 2)
    assert [rule.fired for rule in faults] == [2]
    with pytest.raises(KeyError):
        faults["other"]         # noqa: B018
    faults.turn_off()
    faults.remove("rule-1")
    assert requests(fake)[-1] == {"command": "faults", "part": "drive", "do": "remove",
                                  "names": ["rule-1"]}
    with pytest.raises(essd.EssdError, match="nvme do explode"):
        faults.add("nvme do explode")


def test_management_requests_and_metrics(fake: FakeSupervisor) -> None:
    fake.mgmt = {"status": {"firmware": "0.1.0", "controllers": 1, "uptime-ms": 5},
                 "pools": {"capsules": {"used": 3, "all": 8}},
                 "counters": {"reads": 7, "rnic": {"frames": 9}}}
    drive = essd.attach().drives[0]
    assert drive.ask("status")["firmware"] == "0.1.0"
    metrics = drive.metrics()
    assert metrics["controllers"] == 1
    assert metrics["pool.capsules.used"] == 3
    assert (metrics["reads"], metrics["rnic.frames"]) == (7, 9)
    assert metrics["port1.linkChanges"] == 0
    assert all(isinstance(value, int) for value in metrics.values())
    with pytest.raises(essd.EssdError, match="dance"):
        drive.ask("dance")


def test_the_last_lines_of_a_console_have_no_control_characters(
        fake: FakeSupervisor) -> None:
    system = essd.attach()
    (system.folder / "drive/console.log").write_bytes(b"one\r\ntwo \x1b[31m\r\nthree\r\n")
    assert system.drives[0].last_lines(2) == ["two ?[31m", "three"]
    assert system.last_lines()["host"] == []
    assert system.drives[0].wait_log("^t.+e$", since=5)[0] == "three"
    with pytest.raises(essd.EssdError, match="has not printed 'one'"):
        system.drives[0].wait_log("one", 0, since=5)


def test_an_unknown_drive_is_answered_with_the_nearest_one(fake: FakeSupervisor) -> None:
    with pytest.raises(essd.EssdError, match="has no drive drvie; did you mean drive"):
        essd.attach().drive("drvie")


# How systems end

def test_a_system_ends_and_is_deleted_also_after_an_exception(fake_up) -> None:
    with pytest.raises(ZeroDivisionError), fake_up() as system:
        data = paths.drive(system.name)
        assert system.is_running and data.is_dir()
        raise ZeroDivisionError
    assert not system.is_running
    assert not data.exists()
    assert list(paths.runtime().glob(f"*{system.name}*")) == []
    assert list(paths.runtime().glob(".*.lock")) == []
    system.close()              # a second time is harmless


def test_a_system_ends_although_a_last_look_at_it_fails(
        fake_up, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []

    def look(system: essd.System) -> None:
        looked.append(system.is_running and system in api_system.open_systems()
                      and signal.getsignal(signal.SIGINT) != signal.SIG_IGN)
        raise ZeroDivisionError

    monkeypatch.setattr(ends, "before_end", [look])
    system = fake_up()
    with pytest.raises(ZeroDivisionError):
        system.close()
    assert looked == [True]
    assert not system.is_running and not paths.drive(system.name).exists()
    system.close()


def test_two_systems_have_different_names(fake_up) -> None:
    with fake_up() as one, fake_up() as other:
        assert one.name != other.name
        assert one.is_running and other.is_running


def test_a_system_that_does_not_start_leaves_nothing_and_shows_its_consoles(
        fake_up, monkeypatch) -> None:
    def fail(drive: essd.Drive, *_: object) -> None:
        (drive.instance.folder / "drive/console.log").write_text("panic: too hot\n")
        raise essd.EssdError("not ready")
    monkeypatch.setattr(essd.Drive, "wait_ready", fail)
    with pytest.raises(essd.EssdError, match="not ready") as caught:
        fake_up()
    assert "panic: too hot" in caught.value.__notes__[0]
    assert list(paths.drives().glob("py-*")) == []
    assert list(paths.runtime().glob("*/control.sock")) == []


def test_a_start_that_is_refused_shows_no_console_of_another(fake_up, monkeypatch) -> None:
    def refuse(instance: Instance, *_: object, **__: object) -> None:
        console = instance.folder / "drive/console.log"
        console.parent.mkdir(parents=True)
        console.write_text("of another\n")
        raise essd.EssdError("running already")
    monkeypatch.setattr(Instance, "start", refuse)
    with pytest.raises(essd.EssdError, match="running already") as caught:
        fake_up(name="lab")
    assert not hasattr(caught.value, "__notes__")


def test_a_host_of_a_topology_is_waited_for_by_its_name(monkeypatch) -> None:
    """One drive without a switch may have a host that is not called host."""
    waited: list[str] = []
    instance = SimpleNamespace(
        config=SimpleNamespace(hosts={"fast": None}, links=[]), wait_ready=waited.append,
        start=lambda *_, **__: None, wait_started=lambda *_: None)
    monkeypatch.setattr(api_system, "Drive", lambda *_: SimpleNamespace(wait_ready=lambda: None))
    api_system._start(instance, SimpleNamespace(
        switches={}, drives={"d": None}, hosts=instance.config.hosts))
    assert waited == ["fast"]


def test_arguments_that_make_no_sense_start_nothing() -> None:
    for arguments, why in (({"topology": "x.yaml", "size": "1G"}, "write them into x.yaml"),
                           ({"drives": 0}, "must be 1 to"),
                           ({"drives": 2, "config": "x.yaml"}, "single drive"),
                           ({"name": "a b"}, "use only the letters")):
        with pytest.raises(essd.EssdError, match=why):
            essd.up(**arguments)
    assert list(paths.drives().glob("py-*")) == []


SCRIPT = '''
import sys, time
sys.path[:0] = [{py!r}]
import essd
from essd.api import system
from pathlib import Path
from test_api import fake_config
system._configure = lambda name, *_: fake_config(name, Path({folder!r}))
essd.Drive.wait_ready = lambda *_: None
found = essd.up()
print(found.name, flush=True)
{then}
'''


def start_script(folder: Path, then: str) -> "tuple[subprocess.Popen[str], str]":
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(py=str(paths.TOP / "tests/py"), then=then,
                                             folder=str(folder))],
        stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(paths.TOP / "tools")})
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    assert name
    return process, name


def test_a_program_that_ends_without_close_leaves_nothing(folders: Path) -> None:
    process, name = start_script(folders, "raise RuntimeError")
    assert process.wait(60) == 1
    assert not Instance(name).is_running
    assert not paths.drive(name).exists()


def test_a_program_that_is_killed_leaves_no_process_and_the_next_one_its_no_data(
        folders: Path) -> None:
    process, name = start_script(folders, "time.sleep(600)")
    sweep()
    assert paths.drive(name).exists()       # its owner lives
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    deadline = time.monotonic() + 30
    while claims.holder(name):
        assert time.monotonic() < deadline, "the supervisor outlives its owner"
        time.sleep(0.05)
    mine = Temporary("py-")
    assert not paths.drive(name).exists()
    assert not paths.instance(name).exists()
    assert paths.drive(mine.name).exists()
    mine.delete()


# The pytest plug-in

FAILING = '''
from types import SimpleNamespace
import pytest
from essd.instance.instance import Instance

@pytest.fixture
def job():
    return SimpleNamespace(instance=Instance("default"))

def test_that_fails(job):
    assert job is None

def test_that_passes(job):
    assert job

def test_that_fails_without_a_drive():
    assert False
'''


def test_the_report_of_a_failed_test_has_the_last_lines_of_uart_and_host(
        fake: FakeSupervisor, tmp_path: Path) -> None:
    (fake.folder / "drive/console.log").write_text("".join(f"line {n}\n" for n in range(50)))
    fake.replies["faults"] = [{"name": "bad", "site": "nvme", "rule": "nvme do drop",
                               "on": True, "matched": 4, "fired": 1}]
    (fake.folder / "host/console.log").write_text("nvme nvme0: failed\n")
    fake.parts["drive"]["restarts"] = ["watchdog"]
    fake.mgmt["counters"] = {"reads": 7}
    (tmp_path / "test_it.py").write_text(FAILING)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "essd.pytest_plugin", "-p",
         "no:cacheprovider", "--color=no", "--rootdir", tmp_path, "--essd-evidence",
         tmp_path / "kept", tmp_path / "test_it.py"],
        text=True, capture_output=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(paths.TOP / "tools")})
    assert "2 failed, 1 passed" in done.stdout
    assert len(re.findall("last lines of the UART of drive", done.stdout)) == 1
    assert "line 49" in done.stdout and "line 20\n" not in done.stdout
    assert "nvme nvme0: failed" in done.stdout
    assert "bad: nvme do drop: on, matched 4, fired 1" in done.stdout
    # A drive that restarted by itself explains more than what its test says.
    restart = done.stdout.index(f"essd {fake.name}: RESTARTED BY ITSELF")
    assert restart < done.stdout.index("last lines of the UART")
    assert "drive has restarted by itself: watchdog" in done.stdout
    kept = tmp_path / "kept/test_it.py-test_that_fails"
    assert "line 0\n" in (kept / fake.name / "drive/console.log").read_text()
    assert json.loads((kept / fake.name / "drive-counters.json").read_text()) == {"reads": 7}
    assert (kept / fake.name / "system.json").exists()
    assert "watchdog" in (kept / "call.txt").read_text()
    assert not (tmp_path / "kept/test_it.py-test_that_passes").exists()


UNDONE = '''
from types import SimpleNamespace
import pytest
from essd.api.faults import Faults
from essd.api.host import Host
from essd.base.errors import EssdError

asked = []
rules = ["of the module"]

class Rules(Faults):
    def request(self, do, **arguments):
        if do == "add":
            rules.append(arguments["rules"][0]["name"])
            return rules[-1:]
        if do == "list":
            return [{"name": name, "rule": "", "on": True, "matched": 0, "fired": 0}
                    for name in rules]
        asked.append((do, arguments))
        if not set(arguments["names"]) <= set(rules):
            raise EssdError("no fault rule has this name")
        return []

class Lab(Host):
    def __init__(self):
        self.connected = []

    def run(self, command, *_):
        asked.append(command)

    def device(self, drive):
        return "/dev/nvme0n1"

@pytest.fixture(scope="session")
def essd_drive():
    return SimpleNamespace(
        faults=Rules(None), nqn="nqn.x", system=SimpleNamespace(hosts=[Lab()]),
        port=lambda number: SimpleNamespace(address="10.0.0.10"))

@pytest.fixture(scope="module")
def for_all(essd_drive):
    essd_drive.faults.added.append("of the module")

def test_that_fails(for_all, essd_drive):
    essd_drive.system.hosts[0].connect(essd_drive)
    essd_drive.faults.add("media operation=read do error", "bad")
    assert False

def test_after_it(essd_drive):
    assert asked[-2:] == [("remove", {"names": ["bad"]}), "nvme disconnect -n nqn.x"]
    assert essd_drive.faults.added == ["of the module"]

def test_that_has_lost_a_rule(essd_drive):
    essd_drive.faults.add("media operation=read do error", "lost")
    essd_drive.faults.add("media operation=read do error", "kept")
    rules.remove("lost")

def test_after_the_loss(essd_drive):
    assert asked[-1] == ("remove", {"names": ["kept"]})
    assert essd_drive.faults.added == ["of the module"]

def test_whose_rules_cannot_be_removed(essd_drive):
    essd_drive.system.hosts[0].connect(essd_drive)
    essd_drive.faults.add("media operation=read do error", "stuck")
    essd_drive.faults.remove = refuse

def refuse(*_):
    raise EssdError("the drive does not answer")

def test_after_the_refusal(essd_drive):
    assert asked[-1] == "nvme disconnect -n nqn.x"
    assert essd_drive.system.hosts[0].connected == []
'''


def test_rules_and_connections_of_a_failed_test_end_with_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(UNDONE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "essd.pytest_plugin", "-p",
         "no:cacheprovider", "--color=no", "--rootdir", tmp_path, tmp_path / "test_it.py"],
        text=True, capture_output=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": str(paths.TOP / "tools")})
    assert "1 failed, 5 passed, 1 error" in done.stdout, done.stdout


def test_the_plug_in_names_its_options_in_the_help_of_pytest() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "essd.pytest_plugin", "--help"], text=True,
        capture_output=True, check=True, timeout=120, cwd="/",
        env={**os.environ, "PYTHONPATH": str(paths.TOP / "tools")})
    assert "--essd-size" in done.stdout and "--essd-keep" in done.stdout
