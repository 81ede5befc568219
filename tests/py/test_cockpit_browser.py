# SPDX-License-Identifier: BSD-2-Clause
"""The cockpit's page in a headless Chromium, in front of a fake supervisor."""

import json
import os
from collections.abc import Iterator

import chromium
import pytest
from cockpit_site import Site, cockpit
from metrics_bed import LookedAt, superblock

pytestmark = [pytest.mark.long, pytest.mark.skipif(
    chromium.program() is None,
    reason="no Chromium: install Debian's package chromium-headless-shell or chromium")]

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


def text_of(page: chromium.Page, selector: str) -> str:
    return str(page.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def test_the_address_line_has_no_token(shown: Shown) -> None:
    page, site, _ = shown
    assert page.run("location.href") == f"http://{site.host}/"
    assert page.run("document.cookie") == ""        # HttpOnly


def test_the_page_shows_drives_ports_hosts_and_the_uart(shown: Shown) -> None:
    page, _, _ = shown
    page.until("/reads \\d/.test(document.querySelector('#charts').textContent)")
    assert "serial S1" in text_of(page, "#picture .drive")
    assert "25 Gb/s" in text_of(page, "#picture .box[aria-label*='port 0']")
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


def test_hostile_names_stay_text(shown: Shown) -> None:
    page, _, _ = shown
    assert EVIL in text_of(page, "#controllers")
    assert EVIL in text_of(page, "#neighbours")
    assert page.run("document.querySelectorAll('main img, main script').length") == 0
    assert "hacked" not in page.run("document.title")


def click(page: chromium.Page, words: str, within: str = "main") -> None:
    page.run(f"[...document.querySelectorAll({json.dumps(f'{within} button')})].find("
             f"(button) => button.textContent === {json.dumps(words)}).click()")


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


def test_nothing_of_the_page_violates_its_policy(shown: Shown) -> None:
    page, site, _ = shown
    page.call("Page.navigate", url=f"http://{site.host}/")
    page.until("document.querySelector('#picture .drive') !== null")
    complaints = [text for text in page.complaints() if "favicon" not in text]
    assert complaints == []
    assert page.run("performance.getEntriesByType('resource').every((entry) => "
                    "entry.name.startsWith(location.origin))")
    # A script of a stranger does not run, even if it got into the document.
    page.run("(() => { const script = document.createElement('script');"
             "script.textContent = \"document.title = 'hacked'\";"
             "document.body.append(script); })()")
    assert "hacked" not in page.run("document.title")
