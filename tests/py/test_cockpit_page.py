# SPDX-License-Identifier: BSD-2-Clause
"""The script of the cockpit's page, in Node: what it shows and what it asks before it acts."""

import atexit
import functools
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from essd.cockpit import guard, rules
from essd.drive import fault_rules
from essd.observe import metrics

NODE = shutil.which("node") or shutil.which("nodejs")
PAGE = Path(guard.__file__).parent
HTML = (PAGE / "page.html").read_text(encoding="utf-8")
IDS = re.findall(r'\bid="([^"]+)"', HTML)
SCRIPTS = [str(PAGE / name) for name in re.findall(r'<script src="/([^"]+)"', HTML)
           if not name.startswith("uplot/")]

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


@functools.cache
def bed() -> subprocess.Popen[str]:
    """Node with the page's scripts, for all tests of this process."""
    process = subprocess.Popen([str(NODE), str(Path(__file__).parent / "page_bed.js"),
                                json.dumps(SCRIPTS), json.dumps(IDS)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(process.kill)
    return process


def page(*statements: str) -> Any:
    """The value of the last of these statements, after a page has run all of them."""
    process = bed()
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps("; ".join(statements)) + "\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert "error" not in answer, answer["error"]
    return answer.get("value")


def test_a_latency_has_one_prefix() -> None:
    assert page("[0, 18.44, 999.4, 999.6, 18400, 99960, 2.5e6, 720e6, null].map(short_time)") \
        == ["0 μs", "18.4 μs", "999 μs", "1 ms", "18.4 ms", "100 ms", "2.5 sec", "720 sec", "–"]


def test_a_number_has_at_most_three_digits_and_a_prefix() -> None:
    assert page("[0, 999.4, 999.6, 18400, 5e9, 2e12, -1500, undefined].map(bytes_per_s)") == [
        "0 byte/s", "999 byte/s", "1 kB/s", "18.4 kB/s", "5 GB/s", "2 TB/s", "-1.5 kB/s", "–"]
    assert page("[short_number(18400), short_number(undefined)]") == ["18.4K", "–"]
    assert page("[0, 59000, 61000, 3700000, 90000000].map(duration)") == [
        "0 sec", "59 sec", "1 min 1 sec", "1 hr 1 min", "1 day 1 hr"]


def test_the_charts_show_latency_in_milliseconds() -> None:
    shown = page(f"take_event({event()}, 0)", "found.charts.textContent")
    assert "reads p50 18.4 ms" in shown and "p99 2 sec" in shown


def test_the_charts_have_the_past_and_a_gap_where_nothing_is_known() -> None:
    known = event(rates={"read-iops": 7, "write-iops": 3})
    later = json.loads(event())
    later["frame"]["time"] = 1e9 + 1
    assert page(f"take_event({known}, 0)", f"take_event({json.dumps(later)}, 1)",
                "charts[0].plot.data") == [[1e9, 1e9 + 1], [7, None], [3, None]]


def test_the_charts_have_a_gap_where_no_frame_came() -> None:
    known = event(rates={"read-iops": 7, "write-iops": 3})
    later = json.loads(known)
    later["frame"]["time"] = 1e9 + 60
    assert page(f"take_event({known}, 0)", "sources[0].onerror()",
                f"take_event({json.dumps(later)}, 60000)", "charts[0].plot.data.slice(1)") == [
        [7, None, 7], [3, None, 3]]


def test_a_row_that_comes_later_is_in_its_place() -> None:
    counters = DRIVE["counters"]
    first = event(counters=counters | {"media": {"reads": 0, "writes": 5}})
    later = event(counters=counters | {"media": {"reads": 2, "writes": 5}})
    assert page(f"take_event({first}, 0)", f"take_event({later}, 1)",
                "found.media.tBodies[0].children.map((row) => row.children[1].textContent)") == [
        "reads", "writes"]


def test_the_window_of_the_charts_ends_with_the_last_frame_until_a_part_is_chosen() -> None:
    early = json.loads(event())
    early["frame"]["time"] = 1e9 - 400
    took = (f"take_event({json.dumps(early)}, 0)", f"take_event({event()}, 0)")
    assert page(*took, "visible_time()") == [1e9 - 300, 1e9]
    assert page(*took, "zoomed = [5, 6]", "visible_time()") == [5, 6]
    assert page(*took, "choose_window({target: {value: '60'}})",
                "visible_time()") == [1e9 - 60, 1e9]
    # With less past than the window, there is what there is, but a minute at least.
    assert page(*took, "choose_window({target: {value: '900'}})",
                "visible_time()") == [1e9 - 400, 1e9]
    assert page(f"take_event({event()}, 0)", "visible_time()") == [1e9 - 60, 1e9]


def figure(name: str) -> str:
    return ("found.figures.children.find((one) => one.children[0].textContent === "
            f"'{name}')")


def test_a_critical_warning_is_shown_in_red_though_no_media_error_was_counted() -> None:
    smart, media, verdict, problems = page(
        f"take_event({event(warnings=['spare', 'reliability'])}, 0)",
        f"[[{figure('SMART')}.textContent, {figure('SMART')}.className], "
        f"{figure('Media errors')}.className, [found.verdict.textContent, "
        "found.verdict.className], found.problems.textContent]")
    assert "spare, reliability" in smart[0] and smart[1] == "figure bad"
    assert media == "figure plain"
    assert verdict == ["1 problem", "verdict bad"]
    assert ("drive: SMART warns: spare flash is nearly used up, medium or a sensor is not "
            "reliable") in problems
    smart, verdict = page(
        f"take_event({event()}, 0)",
        f"[[{figure('SMART')}.textContent, {figure('SMART')}.className], "
        "[found.verdict.textContent, found.verdict.className]]")
    assert "no critical warning" in smart[0] and smart[1] == "figure good"
    assert verdict == ["Nothing is wrong", "verdict good"]


def test_each_critical_warning_has_words() -> None:
    assert set(page("Object.keys(WARNING_WORDS)")) | {"spare"} == set(metrics.WARNINGS.values())
    counters = DRIVE["counters"] | {"flash": {"failed-blocks": 7, "spare-percent": 0}}
    shown = event(warnings=["spare", "read-only"], counters=counters)
    smart, problems = page(f"take_event({shown}, 0)",
                           f"[{figure('SMART')}.textContent, found.problems.textContent]")
    words = "spare flash is used up, drive takes no more writes"
    assert words in smart and "critical warning: spare, read-only" in smart
    assert f"drive: SMART warns: {words}" in problems


def test_the_threshold_of_the_spare_is_that_of_the_firmware() -> None:
    base = Path(__file__).parents[2] / "nvmeof" / "target" / "base" / "base.h"
    found = re.search(r"SPARE_THRESHOLD_PERCENT = (\d+)", base.read_text(encoding="utf-8"))
    assert found is not None
    assert page(f"take_event({event()}, 0)", "SPARE_THRESHOLD") == int(found[1])
    assert f"left; SMART warns below {found[1]}%" in page(
        f"take_event({event()}, 0)", f"{figure('Spare')}.textContent")


def test_the_header_says_how_the_processors_run() -> None:
    text, title = page(f"take_event({frame_of(accel='tcg')}, 0)",
                       "[found.about.textContent, found.about.attributes.title]")
    assert text.startswith("emulated (TCG), ") and "emulates the processors" in title
    assert page(f"take_event({event()}, 0)", "found.about.textContent").startswith("KVM, ")


def test_the_counters_of_the_flash_are_shown() -> None:
    assert "failed-blocks 7" in page(f"take_event({event()}, 0)",
                                     "found['flash-counters'].textContent")


FLASH = {"mounted": True, "channels": 2, "dies": 2, "dead-dies": [], "more": False, "rows": [
    {"superblock": 0, "state": "closed", "valid": 25, "capacity": 100, "erasures": 3},
    {"superblock": 1, "state": "open", "stream": "host", "valid": 3, "capacity": 100,
     "erasures": 0},
    {"superblock": 2, "state": "free", "valid": 0, "capacity": 100, "erasures": 7},
    {"superblock": 3, "state": "closed", "valid": 90, "capacity": 100, "erasures": 1,
     "moves-for": "scrub"}]}
SQUARES = "found.map.children"


def test_the_flash_is_a_map_of_its_superblocks() -> None:
    text, squares = page(
        f"take_event({event(**{'flash-map': FLASH})}, 0)",
        f"[found['map-words'].textContent + found.dies.textContent, {SQUARES}.map((one) => "
        "[one.className, one.title, one.shown['--share']])]")
    assert "4 superblocks: 2 closed, 1 open, 1 free" in text
    assert "channel 1 die 1" in text and "dead" not in text
    assert squares == [
        ["closed", "superblock 0: closed, 25% valid, 3 erasures", "0.25"],
        ["open", "superblock 1: open, filled by hosts, 3% valid, 0 erasures", "0.03"],
        ["free", "superblock 2: free, 0% valid, 7 erasures", 0],
        ["closed moves", "superblock 3: closed, 90% valid, 1 erasure, moves for scrub",
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


def test_a_dead_die_is_red_wherever_it_shows() -> None:
    dead = FLASH | {"dead-dies": [2]}
    picture, health, problem, dies, inside = page(
        f"take_event({event(**{'flash-map': dead})}, 0)",
        f"[{box('flash')}, [{figure('Dead dies')}.textContent, {figure('Dead dies')}.className], "
        "[found.problems.children[0].link.textContent, found.problems.children[0].link.className],"
        " found.dies.children.map((die) => [die.textContent, die.className]), "
        "found.picture.boxes.kept.get('flash').dies.children.map((die) => die.className)]")
    assert "channel 1 die 0 is dead" in picture[0] and picture[1] == "box bad"
    assert "channel 1 die 0" in health[0] and health[1] == "figure bad"
    assert problem == ["drive: channel 1 die 0 is dead", "bad"]
    assert dies == [["channel 0 die 0", ""], ["channel 0 die 1", ""],
                    ["channel 1 die 0: dead", "bad"], ["channel 1 die 1", ""]]
    assert inside == ["die", "die", "die dead", "die"]


@pytest.mark.parametrize(("dead", "errors", "loss", "blocks"), [
    ([], 0, "", "7 blocks of the flash have failed"),
    ([2], 0, "No read of a host has failed: the contents of the dead die are rebuilt from parity.",
     "have failed, including those of the dead die"),
    ([1, 2], 0, "No read of a host has failed so far, but with more than one dead die",
     "have failed, including those of the dead dies"),
    ([2], 3, "3 commands of hosts have failed because of the medium: data may be lost.",
     "have failed, including those of the dead die")])
def test_a_dead_die_says_what_is_known_of_the_data(
        dead: list[int], errors: int, loss: str, blocks: str) -> None:
    shown = event(**{"flash-map": FLASH | {"dead-dies": dead},
                     "counters": DRIVE["counters"] | {"media-errors": errors}})
    text, is_hidden, media = page(
        f"take_event({shown}, 0)",
        f"[found.loss.textContent, found.loss.hidden, {figure('Media errors')}.textContent]")
    assert text.startswith(loss) and is_hidden == (loss == "")
    assert media.strip().endswith(blocks)
    # Nobody knows of the data of a drive that says nothing.
    assert page(f"take_event({shown}, 0)", "sources[0].onerror()", "found.loss.hidden") is True


STATE = "[found.picture.drive.texts[1].textContent, found.picture.drive.texts[1].className]"


def test_a_drive_with_problems_does_not_merely_run() -> None:
    ill = event(warnings=["temperature"])
    assert page(f"take_event({event()}, 0)", STATE) == ["running", "state end good"]
    assert page(f"take_event({ill}, 0)", STATE) == ["running, with problems", "state end bad"]


@pytest.mark.parametrize(("width", "names"), [
    (300, ["channel 0", "channel 1", "die 0", "die 1"]),
    (120, ["ch 0", "ch 1", "die 0", "die 1"]), (80, ["0", "1", "die 0", "die 1"])])
def test_columns_and_rows_of_dies_have_names_that_fit(width: int, names: list[str]) -> None:
    assert page(f"take_event({event(**{'flash-map': FLASH})}, 0)",
                "const flash = found.picture.boxes.kept.get('flash')",
                f"draw_box(flash, {{x: 0, y: 0, w: {width}, h: 150}}, "
                "say_flash(last_event.frame, 'drive'))",
                "flash.labels.children.map((one) => one.textContent)") == names


@pytest.mark.parametrize(("width", "words"), [(200, "10 commands in flight"),
                                              (120, "10 in flight")])
def test_the_commands_in_flight_are_called_so_where_that_fits(width: int, words: str) -> None:
    pairs = {"rows": [{"in-flight": 10}], "more": False}
    assert page(f"take_event({event()}, 0)",
                f"last_event.frame.drives.drive['queue-pairs'] = {json.dumps(pairs)}",
                "const firmware = found.picture.boxes.kept.get('firmware')",
                f"draw_box(firmware, {{x: 0, y: 0, w: {width}, h: 76}}, "
                "say_inside(last_event.frame, 'drive')[1])",
                "firmware.texts[2].textContent") == words


def test_many_dead_dies_are_one_problem() -> None:
    dead = FLASH | {"dead-dies": [0, 1, 2, 3]}
    assert page(f"take_event({event(**{'flash-map': dead})}, 0)",
                "problems_of(last_event.frame).map((one) => one.text)") == [
        "drive: 4 of 4 dies are dead"]


def test_without_flash_there_is_no_map() -> None:
    assert page(f"take_event({event()}, 0)", "found.flash.hidden") is True


def box(key: str) -> str:
    """A box of the picture: its text and its style."""
    return (f"[found.picture.boxes.kept.get('{key}').textContent, "
            f"found.picture.boxes.kept.get('{key}').className]")


def frame_of(**more: Any) -> str:
    """The text of an event with another frame."""
    frame: dict[str, Any] = EVENT["frame"]      # type: ignore[assignment]
    return json.dumps(EVENT | {"frame": frame | more})


FLOWS = "found.picture.lines.kept.get('{}').flows.map((flow) => flow.className)"


def test_the_picture_shows_the_load_as_lines_that_move() -> None:
    port = DRIVE["ports"][0] | {"in-bytes-per-s": 5e6, "out-bytes-per-s": 100}
    shown = page(f"take_event({event(ports=[port])}, 0)", f"[{FLOWS.format('cable 0')}, "
                 f"{box('port drive:0')}, {box('part host')}]")
    assert shown[0] == ["flow write level4", "flow read level0"]
    assert "Port 0" in shown[1][0] and "in 5 MB/s" in shown[1][0]
    assert shown[1][1] == "box good" and shown[2][1] == "box good"


def test_a_pulled_cable_is_red_in_the_picture_and_nothing_moves() -> None:
    cable = {"number": "0", "ends": ["host:0", "drive:0"], "plugged": False}
    wire, flows, problems = page(
        f"take_event({frame_of(cables={'0': cable})}, 0)",
        "[[found.picture.lines.kept.get('cable 0').className, "
        f"found.picture.lines.kept.get('cable 0').textContent], {FLOWS.format('cable 0')}, "
        "found.problems.textContent]")
    assert wire[0] == "wire bad" and "pulled" in wire[1]
    assert flows == ["flow write level0", "flow read level0"]
    assert "The cable from host:0 to drive:0 is pulled" in problems


def test_a_cable_is_a_link_to_its_row() -> None:
    link, opened = page(
        f"take_event({event()}, 0)", "const cable = found.picture.lines.kept.get('cable 0')",
        "listeners_of.click({target: cable, preventDefault: () => 0})",
        "[[cable.name, cable.attributes.href, cable.attributes['aria-label'], cable.row], "
        "found.cables.is_in_view]")
    assert link == ["a", "#cables", "Cable from host:0 to drive:0, plugged", "0"]
    assert opened


def test_a_drive_that_is_off_keeps_its_place() -> None:
    off = frame_of(parts={"drive": PART | {"kind": "drive", "state": "off"},
                          "host": PART | {"kind": "host"}}, drives={},
                   layout={"drive": {"ports": [0], "channels": 2, "dies": 2}})
    for before in ((), (f"take_event({event(**{'flash-map': FLASH})}, 0)",)):
        keys, port, dies, problems = page(
            *before, f"take_event({off}, 1)", "[[...found.picture.boxes.kept.keys()], "
            f"{box('port drive:0')}, found.picture.boxes.kept.get('flash').dies.children.length, "
            "found.problems.textContent]")
        assert keys == ["part host", "port drive:0", "rnic", "firmware", "flash"]
        assert port[1] == "box off" and "no answer" in port[0]
        assert dies == 4
        assert "drive is off" in problems
    # What it said last is there, but is not shown as if it were true now.
    smart, ports = page(f"take_event({event()}, 0)", f"take_event({off}, 1)",
                        f"[[{figure('SMART')}.textContent, {figure('SMART')}.className], "
                        "found.ports.textContent]")
    assert "no answer" in smart[0] and smart[1] == "figure off"
    assert "drive:0" in ports and "no answer" in ports and "up" not in ports.split("no answer")[1]


def fleet(count: int, **one: Any) -> str:
    """The text of an event with so many drives; the second one differs by `one`."""
    names = [f"d{n}" for n in range(count)]
    return frame_of(parts={"host": PART | {"kind": "host"}, "sw": PART | {"kind": "switch"},
                           **{name: PART | {"kind": "drive"} for name in names}},
                    drives={name: DRIVE | (one if name == "d1" else {}) for name in names},
                    switches={"sw": [{"port": 0, "in-bytes-per-s": 5e6,
                                      "out-bytes-per-s": 5e3}]},
                    cables={"0": {"number": "0", "ends": ["host:0", "sw:0"], "plugged": True},
                            **{str(n + 1): {"number": str(n + 1), "plugged": True,
                                            "ends": [f"{name}:0", f"sw:{n + 1}"]}
                               for n, name in enumerate(names)}})


def test_one_drive_has_no_row_of_drives() -> None:
    assert page(f"take_event({event()}, 0)",
                "[found['fleet-section'].hidden, chosen]") == [True, "drive"]
    key = "found['key-towards'].textContent"
    assert page(f"take_event({event()}, 0)", key) == "━ towards the drive"
    assert page(f"take_event({fleet(2)}, 0)", key) == "━ towards the drives"


def test_of_several_drives_the_row_says_which_one_is_ill_and_one_is_chosen() -> None:
    took = (f"take_event({fleet(3, warnings=['spare'])}, 0)",)
    hidden, tiles, chosen, titles = page(
        *took, "[found['fleet-section'].hidden, found.fleet.children.map((tile) => "
        "[tile.textContent, tile.className]), chosen, [...found.picture.boxes.kept.keys()]]")
    assert not hidden and chosen == "d0"
    assert [style for _, style in tiles] == ["tile good", "tile bad", "tile good"]
    assert "SMART warns: spare" in tiles[1][0]
    assert "port d0:0" in titles and "part d1" in titles and "port d1:0" not in titles
    chosen, smart, ports = page(
        *took, "click('d1')", f"[chosen, {figure('SMART')}.className, "
        "[...found.picture.boxes.kept.keys()].filter((key) => key.startsWith('port'))]")
    assert (chosen, smart, ports) == ("d1", "figure bad", ["port d1:0"])


def test_a_switch_says_what_the_cable_of_a_host_carries() -> None:
    assert page(f"take_event({fleet(2)}, 0)", FLOWS.format("cable 0")) == [
        "flow write level4", "flow read level1"]


@pytest.mark.parametrize(("width", "words"), [
    (140, ""), (400, "SMART warns: spare flash is nearly used up")])
def test_a_small_box_has_whole_words_or_its_mark_alone(width: int, words: str) -> None:
    title, line, mark = page(
        f"take_event({fleet(3, warnings=['spare'])}, 0)",
        "const small = found.picture.boxes.kept.get('part d1')",
        f"draw_box(small, {{x: 0, y: 0, w: {width}, h: 20}}, "
        "say_small_drive(last_event.frame, 'd1'))",
        "[small.texts[0].textContent, small.texts[1].textContent, small.mark.textContent]")
    assert (title, line, mark) == ("d1", words, "✕")


def test_many_drives_do_not_overlap() -> None:
    for width in (480, 1440):
        boxes = page(f"take_event({fleet(24)}, 0)",
                     f"[...layout_picture(last_event.frame, {width}).boxes]")
        parts = [(at["x"], at["y"], at["w"], at["h"]) for key, at in boxes
                 if key.startswith("part ")]
        assert len(parts) == 26
        for n, (x, y, w, h) in enumerate(parts):
            assert x >= 0 and y >= 0 and x + w <= width
            assert all(x + w <= a or a + c <= x or y + h <= b or b + d <= y
                       for a, b, c, d in parts[:n])


def test_a_link_opens_the_details_and_shows_the_drive_of_a_problem() -> None:
    assert page(f"take_event({fleet(2, warnings=['spare'])}, 0)", "click('d1: SMART')",
                "[chosen, found.health.is_in_view, found.health.is_focused]") == ["d1", True, True]


@pytest.mark.parametrize(("words", "asks", "action"), [
    ("Cut power", "Cut the power of drive at once?", {"do": "power", "part": "drive", "on": False}),
    ("Reset", "Reset drive?", {"do": "reset", "part": "drive"}),
    ("Pull cable to host:0", "Pull the cable from host:0 to drive:0?",
     {"do": "cable", "number": "0", "on": False}),
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
    alert, classes, verdict, smart, states, is_disabled = page(
        *began, loss, "[found.lost.textContent, [...document.body.classes], "
        f"found.verdict.textContent, {figure('SMART')}.className, "
        "[found.picture.drive.textContent, found.parts.textContent], "
        "document.querySelectorAll('button').every((button) => button.disabled)]")
    since = page("clock(0)")
    assert alert == f"No answer since {since}; the values below are of then: {why}"
    assert classes == ["lost"] and is_disabled
    assert (verdict, smart) == ("No answer", "figure off")
    for text in states:
        assert "unknown" in text
        assert "running" not in text and "ready" not in text
    # The next frame ends it.
    again = page(*began, loss, f"take_event({event()}, 20000)",
                 "[found.lost.hidden, [...document.body.classes], found.parts.textContent, "
                 "document.querySelectorAll('button').some((button) => button.disabled)]")
    assert again[:2] == [True, []] and "running" in again[2] and again[3] is False


def test_a_slow_frame_is_no_silence() -> None:
    assert page(f"take_event({event()}, 0)", "check_silence(9000)",
                "document.body.classes.size") == 0


def test_a_question_that_is_open_is_answered_with_no_when_the_frames_end() -> None:
    assert page(f"take_event({event()}, 0)", "click('Cut power')", "sources[0].onerror()",
                "[found.question.open, asked]") == [False, []]


# Fault rules

RULES = rules.grammar()
EXAMPLES = re.findall(r'\["[^"]+", "(\S+ .* do [^"]+)"\]',
                      (PAGE / "faults.js").read_text(encoding="utf-8"))
assert len(EXAMPLES) == 6


@pytest.mark.parametrize("line", [
    "nvme opcode=read do delay=20ms",
    "nand operation=program channel=2 when nth=1 after=3 do die",
    "wire direction=in nvme.opcode=read when nth=3 do drop",
    "nvme queue=io do status=write-fault,dnr",
    *EXAMPLES])
def test_a_rule_is_composed_of_its_words_again(line: str) -> None:
    fault_rules.parse_line(line)        # the page's examples make sense
    assert page(f"line_of(read_line({json.dumps(line)}))") == line


OFF = {"drive": PART | {"kind": "drive", "state": "off"}, "host": PART | {"kind": "host"}}
ROWS = "found.faults.tBodies[0].children.map((row) => row.children.map((cell) => cell.textContent))"
LATER = {"name": "slow", "rule": "nvme do drop", "on": True, "matched": 0, "fired": 0}


def test_the_rules_of_a_drive_that_is_off_are_those_that_it_will_start_with() -> None:
    rules_now = [LATER, LATER | {"name": "cut", "on": False, "fired": 1}]
    off = frame_of(parts=OFF, drives={}, **{"kept-rules": {"drive": rules_now}})
    # Before it was off, it had another rule.
    rows, problems = page(f"take_event({event()}, 0)", f"take_event({off}, 1)",
                          f"[{ROWS}, found.problems.textContent]")
    assert rows == [
        ["drive", "slow", "nvme do drop", "acts when the drive starts", "–", "–", "Turn off",
         "Remove"],
        ["drive", "cut", "nvme do drop", "off", "–", "1", "Turn on", "Remove"]]
    assert "drive: 1 fault rule acts when it starts" in problems
    rows, problems = page(f"take_event({off}, 0)",
                          f"take_event({event(faults=[LATER])}, 1)",
                          f"[{ROWS}, found.problems.textContent]")
    assert rows == [["drive", "slow", "nvme do drop", "on", "0", "0", "Turn off", "Remove"]]
    assert "drive: 1 fault rule is on" in problems


def test_a_rule_of_a_drive_that_is_off_is_turned_on_from_its_next_start() -> None:
    off = frame_of(parts=OFF, drives={},
                   **{"kept-rules": {"drive": [LATER | {"on": False}]}})
    assert page(f"take_event({off}, 0)", "click('Turn on')",
                "found['question-text'].textContent") == (
        "Turn on the fault rule slow of drive, from its next start on? It makes things fail: "
        "nvme do drop")


def test_a_condition_without_a_value_is_no_condition() -> None:
    assert page("line_of({place: 'nvme', match: [['opcode', ' '], ['', '7']], "
                "when: [['nth', '']], action: 'drop', argument: ''})") == "nvme do drop"


def test_the_words_of_a_rule_are_those_of_essd_faults() -> None:
    assert set(RULES["places"]) == set(fault_rules.SITES)
    assert RULES["places"]["nvme"]["keys"]["opcode"] == list(fault_rules.NVM_OPCODES)
    assert RULES["places"]["wire"]["keys"]["tcp.flags"] == list(fault_rules.TCP_FLAGS)
    assert RULES["places"]["nand"]["actions"]["die"] == {"takes": "", "names": []}
    assert "write-fault" in RULES["places"]["nvme"]["actions"]["status"]["names"]
    for site, place in RULES["places"].items():
        for key, names in place["keys"].items():        # each name is a value of its key
            for name in names:
                action = next(iter(place["actions"]))
                value = {"duration": "5ms", "bits": "1"}.get(
                    place["actions"][action]["takes"], "")
                value = value or (place["actions"][action]["names"] or [""])[0]
                rule = fault_rules.Rule(site, {key: name}, {}, action, value)
                if site == "rdma" and key == "direction":
                    rule.action, rule.argument = "transfer", ""
                rule.check()
