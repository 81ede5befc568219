# SPDX-License-Identifier: BSD-2-Clause
"""The script of the cockpit's page, in Node: what it shows and what it asks before it acts."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from essd.cockpit import guard

NODE = shutil.which("node") or shutil.which("nodejs")
PAGE = Path(guard.__file__).parent
IDS = re.findall(r'id="([^"]+)"', (PAGE / "page.html").read_text(encoding="utf-8"))

pytestmark = pytest.mark.skipif(NODE is None, reason="no Node: install Debian's package nodejs")

PART = {"state": "running", "why": "", "ready": True, "halted": False, "pid": 1,
        "restarts": [], "cpu-percent": 1, "memory-bytes": 1 << 20}
RULE = {"name": "slow", "rule": "nvme do delay", "on": False, "matched": 0, "fired": 0}
DRIVE: dict[str, Any] = {
    "why": "", "warnings": [], "rates": {}, "faults": [RULE],
    "latency": {"read": {"p50": 18400, "p99": 2000000}},
    "status": {"serial": "S1", "model": "essd", "firmware": "1", "boot": 1, "uptime-ms": 1000,
               "controllers": 1, "queue-pairs": 1},
    "counters": {"media-errors": 0, "flash": {"failed-blocks": 7}},
    "ports": [{"port": 0, "up": True, "reason": "", "speed": 25, "fec": "rs",
               "in-bytes-per-s": 18400, "out-bytes-per-s": None, "counters": {}}]}
EVENT = {"tracing": "", "sampling": True, "trace": [], "frame": {
    "name": "lab", "accel": "kvm", "time": 1e9, "cost": {"seconds": 0.01},
    "parts": {"drive": PART | {"kind": "drive"}, "host": PART | {"kind": "host"}},
    "drives": {"drive": DRIVE},
    "cables": {"0": {"number": "0", "ends": ["host:0", "drive:0"], "plugged": True}}}}


def event(**drive: Any) -> str:
    """The text of an event whose drive differs so from the one above."""
    frame: dict[str, Any] = EVENT["frame"]      # type: ignore[assignment]
    return json.dumps(EVENT | {"frame": frame | {"drives": {"drive": DRIVE | drive}}})


def page(*statements: str) -> Any:
    """The value of the last of these statements, after the page has run all of them."""
    done = subprocess.run(
        [str(NODE), str(Path(__file__).parent / "page_bed.js"), str(PAGE / "page.js"),
         json.dumps(IDS), "; ".join(statements)],
        capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_latency_has_one_prefix() -> None:
    assert page("[0, 18.44, 999.4, 999.6, 18400, 99960, 2.5e6, 7200e6, null].map(short_time)") \
        == ["0 µs", "18.4 µs", "999 µs", "1.0 ms", "18.4 ms", "100 ms", "2.5 s", "7200 s", "–"]


def test_a_number_has_at_most_four_digits_and_a_prefix() -> None:
    assert page("[0, 999.4, 999.6, 18400, 5e9, 2e12, -1500].map("
                "(value) => short_number(value, 'B/s'))") == [
        "0 B/s", "999 B/s", "1.0 kB/s", "18.4 kB/s", "5 GB/s", "2000 GB/s", "-1.5 kB/s"]
    assert page("[short_number(18400), short_number(undefined)]") == ["18.4 k", "–"]


def test_the_charts_show_latency_in_milliseconds() -> None:
    shown = page(f"take_event({event()}, 0)", "found.drives.textContent")
    assert "read p50 18.4 ms" in shown and "p99 2 s" in shown
    assert "kµs" not in shown and "Mµs" not in shown


def test_a_critical_warning_is_shown_in_red_though_no_media_error_was_counted() -> None:
    card = "found.drives.children[0]"
    text, style, is_warned = page(
        f"take_event({event(warnings=['spare', 'reliability'])}, 0)",
        f"[{card}.textContent, {card}.health.className, {card}.classes.has('warned')]")
    assert "SMART has a critical warning: spare, reliability" in text
    assert "media errors 0" in text
    assert (style, is_warned) == ("bad", True)
    text, style, is_warned = page(
        f"take_event({event()}, 0)",
        f"[{card}.textContent, {card}.health.className, {card}.classes.has('warned')]")
    assert "SMART: no critical warning" in text
    assert (style, is_warned) == ("good", False)


def test_the_counters_of_the_flash_are_shown() -> None:
    assert "failed-blocks 7" in page(f"take_event({event()}, 0)", "found.flash.textContent")


FLASH = {"mounted": True, "channels": 2, "dies": 2, "dead-dies": [], "more": False, "rows": [
    {"superblock": 0, "state": "closed", "valid": 25, "capacity": 100, "erasures": 3},
    {"superblock": 1, "state": "open", "stream": "host", "valid": 3, "capacity": 100,
     "erasures": 0},
    {"superblock": 2, "state": "free", "valid": 0, "capacity": 100, "erasures": 7},
    {"superblock": 3, "state": "closed", "valid": 90, "capacity": 100, "erasures": 1,
     "moves-for": "scrub"}]}
SQUARES = "found.maps.children[0].squares.children"


def test_the_flash_is_a_map_of_its_superblocks() -> None:
    text, squares = page(
        f"take_event({event(**{'flash-map': FLASH})}, 0)",
        f"[found.maps.textContent, {SQUARES}.map((one) => [one.className, one.title, "
        "one.shown['--share']])]")
    assert "4 superblocks: 2 closed, 1 open, 1 free" in text
    assert "channel 1 die 1" in text and "dead" not in text
    assert squares == [
        ["closed", "superblock 0: closed, 25% valid, 3 erasures", "0.25"],
        ["open", "superblock 1: open, filled by hosts, 3% valid, 0 erasures", "0.03"],
        ["free", "superblock 2: free, 0% valid, 7 erasures", 0],
        ["closed moves", "superblock 3: closed, 90% valid, 1 erasures, moves for scrub",
         "0.90"]]


def test_the_map_moves() -> None:
    later = json.loads(json.dumps(FLASH))
    later["rows"][0] |= {"state": "free", "valid": 0, "erasures": 4}
    before, after = page(
        f"take_event({event(**{'flash-map': FLASH})}, 0)", f"const first = {SQUARES}[0]",
        f"take_event({event(**{'flash-map': later})}, 1)",
        f"[{SQUARES}[0] === first, {SQUARES}[0].title]")
    assert before       # the element stays, so that a pointer over it does not lose it
    assert after == "superblock 0: free, 0% valid, 4 erasures"


def test_a_dead_die_is_red_in_the_map_and_in_the_drives_card() -> None:
    dead = FLASH | {"dead-dies": [2]}
    card, dies = "found.drives.children[0]", "found.maps.children[0].dies.children"
    shown, style, is_warned, styles = page(
        f"take_event({event(**{'flash-map': dead})}, 0)",
        f"[{card}.dead.textContent, {card}.dead.className, {card}.classes.has('warned'), "
        f"{dies}.map((die) => [die.textContent, die.className])]")
    assert (shown, style, is_warned) == ("Dead: channel 1 die 0", "bad", True)
    assert styles == [["channel 0 die 0", ""], ["channel 0 die 1", ""],
                      ["channel 1 die 0: dead", "bad"], ["channel 1 die 1", ""]]


def test_without_flash_there_is_no_map() -> None:
    assert page(f"take_event({event()}, 0)", "[found.maps.children.length, "
                "found.maps.parentElement.classes.has('empty')]") == [0, True]


@pytest.mark.parametrize(("words", "asks", "action"), [
    ("Cut power", "Cut the power of drive at once?", {"do": "power", "part": "drive", "on": False}),
    ("Reset", "Reset drive?", {"do": "reset", "part": "drive"}),
    ("Pull", "Pull the cable from host:0 to drive:0?", {"do": "cable", "number": "0", "on": False}),
    ("Turn on", "Turn on the fault rule slow of drive?",
     {"do": "fault", "part": "drive", "name": "slow", "on": True})])
def test_a_button_that_disturbs_something_asks_first(
        words: str, asks: str, action: dict[str, Any]) -> None:
    clicked = (f"take_event({event()}, 0)", f"click('{words}')")
    is_open, question, yes, sent = page(
        *clicked, "[found.question.open, found['question-text'].textContent, "
        "found['question-yes'].textContent, asked]")
    assert is_open and question.startswith(asks)
    assert (yes, sent) == (words, [])
    assert page(*clicked, "found.question.close()", "asked") == []
    assert page(*clicked, "found['question-yes'].listeners.click()", "asked") == [action]


def test_a_button_that_repairs_something_asks_nothing() -> None:
    off = EVENT | {"frame": EVENT["frame"] | {      # type: ignore[operator]
        "parts": {"drive": PART | {"kind": "drive", "state": "off"}},
        "drives": {}, "cables": {"0": {"number": "0", "ends": ["a", "b"], "plugged": False}}}}
    assert page(f"take_event({json.dumps(off)}, 0)", "click('Power on')", "click('Plug')",
                "asked") == [{"do": "power", "part": "drive", "on": True},
                             {"do": "cable", "number": "0", "on": True}]


@pytest.mark.parametrize(("loss", "why"), [
    ("sources[0].onerror()", "the cockpit does not answer"),
    ("take_event({why: 'lab does not run'}, 0)", "lab does not run"),
    ("check_silence(10001)", "the cockpit is silent")])
def test_without_frames_the_page_says_since_when_and_nothing_runs(loss: str, why: str) -> None:
    began = (f"take_event({event()}, 0)",)
    alert, classes, states, is_disabled = page(
        *began, loss, "[found.lost.textContent, [...document.body.classes], "
        "[found.drives.textContent, found.parts.textContent], "
        "document.querySelectorAll().every((button) => button.disabled)]")
    since = page("new Date(0).toLocaleTimeString()")
    assert alert == f"No answer since {since}; the values below are of then: {why}"
    assert classes == ["lost"] and is_disabled
    for text in states:
        assert "unknown" in text
        assert "running" not in text and "ready" not in text and "SMART: no" not in text
    # The next frame ends it.
    again = page(*began, loss, f"take_event({event()}, 20000)",
                 "[found.lost.hidden, [...document.body.classes], found.parts.textContent, "
                 "document.querySelectorAll().some((button) => button.disabled)]")
    assert again[:2] == [True, []] and "running" in again[2] and again[3] is False


def test_a_slow_frame_is_no_silence() -> None:
    assert page(f"take_event({event()}, 0)", "check_silence(9000)",
                "document.body.classes.size") == 0


def test_a_question_that_is_open_is_answered_with_no_when_the_frames_end() -> None:
    assert page(f"take_event({event()}, 0)", "click('Cut power')", "sources[0].onerror()",
                "[found.question.open, asked]") == [False, []]
