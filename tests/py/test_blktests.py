# SPDX-License-Identifier: BSD-2-Clause
"""What blktests prints is read and compared with the list of expected outcomes."""

import io
import os
import time
from pathlib import Path

import blktests_run
import pytest
from blktests_list import (EXPECTED, Expected, Outcome, parse_outcomes, read_expected,
                           surprises)

from essd.instance.instance import Instance

PRINTED = """\
nvme/003 (tr=rdma) (test if a host does this)
nvme/003 (tr=rdma) (test if a host does this)       [passed]
    runtime    ...  30.1s
nvme/018 (tr=rdma) (unit test)
nvme/018 (tr=rdma) (unit test)                               [failed]
    runtime    ...  3.1s
    --- tests/nvme/018.out
nvme/053 => nvme0n1 (rescan)                         [passed]
nvme/030 (tr=rdma) (generation counter)                      [not run]
    Linux kernel soft target not available
"""
LIST = """\
# test    run     drive  nvmet  reason
nvme/003  target  pass   pass
nvme/018  target  pass   fail   a reason   # a comment
nvme/030  target  skip   pass   it needs several words
nvme/053  device  pass   pass
nvme/054  target  ?      hang   not tried with the drive
"""


def test_each_test_has_one_outcome_and_a_failure_has_its_details() -> None:
    found = parse_outcomes(PRINTED)
    assert [(one.name, one.status) for one in found] == [
        ("nvme/003", "pass"), ("nvme/018", "fail"), ("nvme/053", "pass"),
        ("nvme/030", "skip")]
    assert found[1].details == ["runtime    ...  3.1s", "--- tests/nvme/018.out"]
    assert found[3].details == ["Linux kernel soft target not available"]


def test_the_list_has_a_column_for_each_target() -> None:
    assert read_expected(LIST, "target", "drive") == {
        "nvme/003": Expected("pass", ""), "nvme/018": Expected("pass", "a reason"),
        "nvme/030": Expected("skip", "it needs several words"),
        "nvme/054": Expected("?", "not tried with the drive")}
    assert read_expected(LIST, "target", "nvmet")["nvme/018"].status == "fail"
    assert list(read_expected(LIST, "device", "drive")) == ["nvme/053"]


@pytest.mark.parametrize(("name", "status", "is_surprise"), [
    ("nvme/003", "pass", False), ("nvme/003", "fail", True), ("nvme/003", "skip", True),
    ("nvme/030", "skip", False), ("nvme/030", "pass", True),
    ("nvme/054", "fail", False), ("nvme/054", "pass", False),
    # of a blktests that is newer than the list
    ("nvme/999", "pass", False), ("nvme/999", "skip", False), ("nvme/999", "fail", True)])
def test_what_differs_from_the_list_is_reported(name: str, status: str,
                                                is_surprise: bool) -> None:
    expected = read_expected(LIST, "target", "drive")
    only = {name: expected[name]} if name in expected else {}
    assert bool(surprises([Outcome(name, status)], only)) == is_surprise


def test_a_test_of_the_list_that_was_not_run_is_reported() -> None:
    expected = read_expected(LIST, "device", "drive")
    assert surprises([], expected) == ["nvme/053 has no outcome"]
    hanging = read_expected(LIST, "target", "nvmet")["nvme/054"]
    assert not surprises([], {"nvme/054": hanging})


def test_the_list_of_the_project_gives_a_reason_for_what_does_not_pass() -> None:
    text = EXPECTED.read_text(encoding="utf-8")
    for kind in ("target", "device", "no-multipath"):
        for target in ("drive", "nvmet"):
            found = read_expected(text, kind, target)
            assert found
            for name, line in found.items():
                assert line.status in ("pass", "fail", "skip", "hang", "?"), name
                assert line.status in ("pass", "?") or line.reason, f"{name} has no reason"


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch) -> Instance:
    """An instance whose guest is this machine."""
    instance = Instance("lab")
    monkeypatch.setattr(instance, "ssh", lambda part="host": ["sh", "-c", 'exec sh -c "$2"',
                                                              "ssh"])
    monkeypatch.setattr(blktests_run, "evidence", lambda instance: "the evidence")
    return instance


class Screen(io.StringIO):
    """What is shown; the first line lets the guest go on, which waits for a FIFO."""

    def __init__(self, fifo: Path) -> None:
        super().__init__()
        self.fifo = fifo

    def write(self, text: str) -> int:
        if not self.getvalue():
            self.fifo.write_text("yes\n")
        return super().write(text)


def test_each_line_is_shown_as_it_comes(guest: Instance, tmp_path: Path,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest goes on only after its first line has been shown."""
    fifo = tmp_path / "shown"
    os.mkfifo(fifo)
    screen = Screen(fifo)
    monkeypatch.setattr("sys.stdout", screen)
    text = blktests_run.follow(guest, f"echo nvme/003; read x < {fifo}; echo done >&2", 60)
    assert screen.getvalue() == text == "nvme/003\ndone\n"


@pytest.mark.parametrize(("hang_s", "timeout_s"), [(0.3, 60.0), (60.0, 0.3)])
def test_the_run_ends_at_the_first_test_that_hangs(guest: Instance, hang_s: float,
                                                   timeout_s: float) -> None:
    line = ("echo 'nvme/060 (tr=rdma) (x)  [passed]'; echo 'nvme/061 (tr=rdma) (y)'; "
            "echo '    runtime'; exec sleep 60")
    start = time.monotonic()
    with pytest.raises(blktests_run.Hung, match="^nvme/061 hangs, so .*\nthe evidence$"):
        blktests_run.follow(guest, line, timeout_s, hang_s)
    assert time.monotonic() - start < 30


def test_a_silent_test_that_asks_the_target_goes_on(guest: Instance) -> None:
    """The third look at the target is the last one that finds another request."""
    looks = []

    def requests() -> int:
        looks.append(len(looks))
        return min(len(looks), 3)

    line = "echo nvme/058; exec sleep 60"
    with pytest.raises(blktests_run.Hung):
        blktests_run.follow(guest, line, 60, 0.2, requests)
    # The last two looks, between which nothing was asked, have ended it.
    assert len(looks) > 3
