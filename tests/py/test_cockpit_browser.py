# SPDX-License-Identifier: BSD-2-Clause
"""The cockpit's page in a headless Chromium, in front of a fake supervisor."""

import json
import os
import time
from collections.abc import Iterator

import axe
import chromium
import pytest
from cockpit_page import CROWDED, FITS, SIZES, click, press, set_size, text_of
from cockpit_site import Site, cockpit
from metrics_bed import LookedAt, superblock

pytestmark = pytest.mark.skipif(
    chromium.program() is None,
    reason="no Chromium: install Debian's package chromium-headless-shell (64 MB) or chromium")

EVIL = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory,
          ) -> Iterator[tuple[chromium.Page, Site, LookedAt]]:
    """A page that has opened the link; names from the network are hostile."""
    name = f"pybrowser{os.getpid()}"
    with LookedAt(name, hostnqn=EVIL, neighbour=EVIL) as supervisor:
        supervisor.superblocks = [superblock(0, valid=100), superblock(1, "free", 0),
                                  superblock(2, "retired", 0)]
        supervisor.dead_dies = [2]
        (supervisor.folder / "drive/console.log").write_text(f"uart {EVIL}\n")
        with cockpit(name) as site, chromium.page(
                tmp_path_factory.mktemp("chromium")) as page:
            page.call("Page.navigate", url=site.link)
            page.until("document.querySelector('#picture .drive') !== null")
            yield page, site, supervisor


Shown = tuple[chromium.Page, Site, LookedAt]


@pytest.mark.long
def test_the_address_line_has_no_token(shown: Shown) -> None:
    page, site, _ = shown
    assert page.run("location.href") == f"http://{site.host}/"
    assert page.run("document.cookie") == ""        # HttpOnly


def test_the_page_shows_drives_ports_hosts_and_the_uart(shown: Shown) -> None:
    page, _, _ = shown
    page.until("/reads \\d/.test(document.querySelector('#charts').textContent)")
    assert "serial S1" in text_of(page, "#picture .drive")
    assert "25 Gb/s" in text_of(page, "#picture [data-key='port drive:0']")
    assert "25 Gb/s" in text_of(page, "#ports")
    assert "host:0" in text_of(page, "#cables")
    assert "bad-start" in text_of(page, "#faults")
    assert "10.0.0.1" in text_of(page, "#queues")
    assert "cache-full" in text_of(page, "#media")
    assert f"uart {EVIL}" in page.until("document.querySelector('#uart').textContent")


def test_a_chart_has_something_drawn(shown: Shown) -> None:
    page, _, _ = shown
    page.until("(() => { const canvas = document.querySelector('.chart canvas');"
               "return canvas.width > 0 && canvas.getContext('2d').getImageData("
               "0, 0, canvas.width, canvas.height).data.some((value) => value !== 0); })()")


def colour_of(page: chromium.Page, selector: str, of: str = "backgroundColor") -> str:
    return str(page.run(f"getComputedStyle(document.querySelector({json.dumps(selector)}))"
                        f".{of}"))


def test_the_flash_is_a_map_and_a_dead_die_is_red(shown: Shown) -> None:
    page, _, _ = shown
    page.until("document.querySelectorAll('#map i').length === 3")
    red = page.run("(() => { const probe = document.createElement('i');"
                   "probe.style.color = 'var(--bad)'; document.body.append(probe);"
                   "const found = getComputedStyle(probe).color; probe.remove();"
                   "return found; })()")
    assert colour_of(page, "#dies .bad") == red
    assert text_of(page, "#dies .bad") == "channel 1 die 0: dead"
    assert colour_of(page, "#picture .die.dead", "fill") == red
    assert page.run("document.querySelectorAll('#picture .die.dead').length") == 1
    assert colour_of(page, "#problems .bad", "color") == red
    assert text_of(page, "#problems .bad") == "drive: channel 1 die 0 is dead"
    assert colour_of(page, "#map .retired") == red
    full, free = (colour_of(page, f"#map .{name}") for name in ("closed", "free"))
    assert full != free
    width, height = page.run("(() => { const one = document.querySelector('#map i');"
                             "return [one.offsetWidth, one.offsetHeight]; })()")
    assert width >= 10 and abs(width - height) <= 1


@pytest.mark.long
def test_hostile_names_stay_text(shown: Shown) -> None:
    page, _, _ = shown
    assert EVIL in text_of(page, "#controllers")
    assert EVIL in text_of(page, "#neighbours")
    assert page.run("document.querySelectorAll('main img, main script').length") == 0
    assert "hacked" not in page.run("document.title")


@pytest.mark.long
def test_buttons_send_their_commands_once_the_question_is_answered(shown: Shown) -> None:
    page, _, supervisor = shown
    for words in ("Cut power", "Reset", "Pull"):
        click(page, words)
        assert page.run("document.querySelector('#question').open")
        click(page, "Cancel", "#question")
    assert not {"power-cut", "reset", "port"} & {request["command"]
                                                for request in supervisor.asked}
    for words in ("Cut power", "Reset", "Pull"):
        click(page, words)
        click(page, words, "#question")
    click(page, "Turn off")
    page.until("document.querySelector('#faults').textContent.includes('Turn on')")
    asked = [request["command"] for request in supervisor.asked]
    assert {"power-cut", "reset", "port"} <= set(asked)
    assert {"command": "port", "port": 0, "plugged": False} in supervisor.asked


@pytest.mark.long
def test_without_the_supervisor_the_page_says_since_when(shown: Shown) -> None:
    page, _, supervisor = shown
    socket = supervisor.folder / "control.sock"
    socket.rename(supervisor.folder / "away.sock")
    try:
        page.until("!document.querySelector('#lost').hidden")
        assert text_of(page, "#lost").startswith("No answer since ")
        assert "running" not in text_of(page, "#parts")
        assert page.run("getComputedStyle(document.querySelector('main')).filter") != "none"
    finally:
        (supervisor.folder / "away.sock").rename(socket)
    page.until("document.querySelector('#lost').hidden")
    assert "running" in text_of(page, "#parts")


@pytest.mark.long
def test_nothing_of_the_page_violates_its_policy(shown: Shown) -> None:
    page, site, _ = shown
    page.call("Page.navigate", url=f"http://{site.host}/")
    page.until("document.querySelector('#picture .drive') !== null")
    assert page.complaints() == []
    assert page.run("performance.getEntriesByType('resource').every((entry) => "
                    "entry.name.startsWith(location.origin))")
    # A script of a stranger does not run, even if it got into the document.
    page.run("(() => { const script = document.createElement('script');"
             "script.textContent = \"document.title = 'hacked'\";"
             "document.body.append(script); })()")
    assert "hacked" not in page.run("document.title")


# Layout, keyboard, contrast

@pytest.mark.parametrize("width", [1440, 480])
def test_nothing_is_crowded_or_beyond_the_page(shown: Shown, width: int) -> None:
    page, _, _ = shown
    set_size(page, width, False)
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    try:
        assert page.run(CROWDED) == []
        assert page.run(FITS)
        assert page.run("[...document.querySelectorAll('.chart')].every((chart) => "
                        "chart.scrollWidth <= chart.clientWidth + 1)")
    finally:
        page.run("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
        set_size(page, 1440, False)


RULE = "nvme opcode=read nsid=1 lba=100-200 when every=10 count=3 do status=internal-error"


@pytest.mark.parametrize("width", [1440, 480])
def test_no_table_of_fault_rules_scrolls_sideways(shown: Shown, width: int) -> None:
    """At 480 pixels each value of a rule has its heading before it."""
    page, _, supervisor = shown
    before = supervisor.rules
    supervisor.rules = [{"name": "a-rule-with-a-long-name", "rule": RULE, "on": True,
                         "matched": 123456, "fired": 12345}]
    set_size(page, width, False)
    try:
        page.until(f"document.querySelector('#faults').textContent.includes({RULE!r})")
        assert page.run("[...document.querySelectorAll('#faults-section > div')].filter((box) => "
                        "box.scrollWidth > box.clientWidth + 1).map((box) => box.id)") == []
        assert page.run("document.querySelector('#faults .code').clientHeight > 0")
        assert page.run("getComputedStyle([...document.querySelectorAll('#faults td')].find("
                        "(cell) => cell.textContent === '123456'), '::before').content") == (
            '"matched "' if width == 480 else "none")
    finally:
        supervisor.rules = before
        set_size(page, 1440, False)


@pytest.mark.long
@pytest.mark.parametrize(("width", "is_dark"), SIZES)
def test_axe_finds_nothing(shown: Shown, width: int, is_dark: bool) -> None:
    why = axe.why_missing()
    if why:
        pytest.skip(why)
    page, _, _ = shown
    set_size(page, width, is_dark)
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    try:
        assert axe.violations(page) == []
    finally:
        page.run("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
        set_size(page, 1440, False)


def test_the_keyboard_goes_from_the_picture_to_details_and_through_the_map(shown: Shown
                                                                           ) -> None:
    page, _, supervisor = shown
    page.run("document.querySelector('#picture .drive').focus()")
    for _ in range(12):
        press(page, "Tab")
        if page.run("document.activeElement.dataset.key") == "port drive:1":
            break
    press(page, "Enter")
    assert page.run("document.querySelector('#links').open")
    assert page.run("document.querySelector('#ports .marked').dataset.row") == "drive:1"
    page.run("document.querySelector('#map').focus()")
    press(page, "ArrowRight")
    first = supervisor.superblocks[0]
    try:                        # The page shows something new between the two keys.
        supervisor.superblocks[0] = superblock(0, valid=25)
        page.until("document.querySelector('#superblock').textContent.includes('25% valid')")
    finally:
        supervisor.superblocks[0] = first
    press(page, "ArrowRight")
    assert text_of(page, "#superblock").startswith("superblock 1: free")
    page.run("document.querySelector('#links').open = false")


@pytest.mark.long
def test_a_rule_is_composed_turned_on_and_saved(shown: Shown) -> None:
    page, _, supervisor = shown
    page.run("document.querySelector('#composer').open = true")
    page.until("document.querySelector('#line').textContent !== ''")
    for example, line, asks in (("nvme opcode=read do delay=20ms",
                                 "nvme opcode=read do delay=20ms", False),
                                ("nand operation=program when nth=1 do die",
                                 "nand operation=program when nth=1 do die", True)):
        page.run("(() => { const select = document.querySelector('#example');"
                 f"select.value = {json.dumps(example)};"
                 "select.dispatchEvent(new Event('change', {bubbles: true})); })()")
        assert text_of(page, "#line") == line
        click(page, "Turn on for drive")
        assert page.run("document.querySelector('#question').open") is asks
        if asks:
            click(page, "Turn on for drive", "#question")
        wanted = {"command": "faults", "part": "drive", "do": "add",
                  "rules": [{"rule": line, "name": ""}]}
        deadline = time.monotonic() + 10
        while wanted not in supervisor.asked:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    page.run("document.querySelector('#rule-name').value = 'mine';"
             "document.querySelector('#compose').dispatchEvent(new Event('input'))")
    click(page, "Save")
    page.until("document.querySelector('#saved').textContent.includes('mine')")
    # It comes back into the form, and is forgotten.
    page.run("document.querySelector('#rule-name').value = ''")
    click(page, "Use")
    page.until("document.querySelector('#rule-name').value === 'mine'")
    click(page, "Forget")
    page.until("!document.querySelector('#saved').textContent.includes('mine')")


@pytest.mark.long
def test_a_rule_is_composed_for_a_drive_that_is_off(shown: Shown) -> None:
    page, _, supervisor = shown
    page.run("document.querySelector('#composer').open = true")
    page.until("document.querySelector('#add-rule').textContent === 'Turn on for drive'")
    supervisor.rules[0]["on"] = True        # another test has turned it off
    supervisor.parts["drive"]["state"] = "off"
    try:
        page.until("document.querySelector('#add-rule').textContent === "
                   "'Turn on when drive starts'")
        page.until("document.querySelector('#faults').textContent.includes("
                   "'acts when the drive starts')")
        before = len(supervisor.asked)
        click(page, "Turn on when drive starts")
        if page.run("document.querySelector('#question').open"):
            click(page, "Turn on when drive starts", "#question")
        deadline = time.monotonic() + 10
        while not any(one.get("do") == "add" for one in supervisor.asked[before:]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        supervisor.parts["drive"]["state"] = "running"
    page.until("document.querySelector('#add-rule').textContent === 'Turn on for drive'")
