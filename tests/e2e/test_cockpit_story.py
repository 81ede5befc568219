# SPDX-License-Identifier: BSD-2-Clause
"""The cockpit's page tells a story: I/O, a die dies, a cable is pulled, the power is cut.

A real drive and host are shown in a real browser, which does what a person would do.
`--keep-pictures FOLDER` keeps a picture of each scene at both widths, light and dark, and
those of the documents (docs/pictures/).
"""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import axe
import chromium
import cockpit_page as web
import pytest
from cockpit_site import Site, cockpit

import essd

pytestmark = [
    pytest.mark.drive, pytest.mark.uml,
    pytest.mark.skipif(chromium.program() is None,
                       reason="no Chromium: install Debian's package chromium")]

FIO = ("fio --name=load --filename={device} --direct=1 --ioengine=libaio --bs=16k --iodepth=16 "
       "--rw=randrw --rwmixread=60 --size=64M --time_based --runtime=3600")
DIE = "nand operation=program channel=2 die=1 when nth=1 do die"
LATER = "nvme opcode=read do delay=20ms"
SEEN_S = 10             # a dead die is on the page so soon
PROBLEM = ("[...document.querySelectorAll('#problems a')].some("
           "(link) => link.textContent.includes({words}))")


@dataclass
class Stage:
    """The system, the cockpit and its page."""

    system: essd.System
    site: Site
    page: chromium.Page
    pictures: Path

    @property
    def drive(self) -> essd.Drive:
        return self.system.drives[0]

    def wait_problem(self, words: str) -> None:
        self.page.until(PROBLEM.format(words=json.dumps(words)))

    def wait_fired(self, name: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not any(rule.name == name and rule.fired for rule in self.drive.faults):
            assert time.monotonic() < deadline, f"the fault rule {name} has not acted"
            time.sleep(0.1)

    def click_and_answer(self, words: str) -> None:
        """Click a button that asks, and answer with yes.  Nothing happened before."""
        web.click(self.page, words)
        assert self.page.run("document.querySelector('#question').open")
        web.click(self.page, words, "#question")

    def show(self, scene: str, says: tuple[str, ...] = ()) -> None:
        """Look at the scene at both widths, light and dark: `says` are on its pictures."""
        for width, is_dark in web.SIZES:
            web.set_size(self.page, width, is_dark)
            self.page.until(web.DRAWN)
            for words in says:
                assert words in web.text_of(self.page, "body")
            assert self.page.run(web.CROWDED) == []
            assert self.page.run(web.FITS)
            web.save_picture(self.page, self.pictures / (
                f"{scene}-{width}-{'dark' if is_dark else 'light'}.png"))
            if axe.why_missing() == "":
                assert axe.violations(self.page) == []
        web.set_size(self.page, 1440, False)


@pytest.fixture(scope="module")
def stage(host_kind: str, tmp_path_factory: pytest.TempPathFactory,
          pytestconfig: pytest.Config) -> Iterator[Stage]:
    kept = pytestconfig.getoption("--keep-pictures")
    pictures = Path(kept) if kept else tmp_path_factory.mktemp("pictures")
    pictures.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        system = stack.enter_context(essd.up(nand="600M,channels=4,dies=2",
                                             host_kind=host_kind))
        site = stack.enter_context(cockpit(system.name))
        page = stack.enter_context(chromium.page(tmp_path_factory.mktemp("chromium")))
        for port in (0, 1):
            system.host.connect(system.drives[0], port)
        page.call("Page.navigate", url=site.link)
        page.until("document.querySelector('#picture .drive') !== null")
        yield Stage(system, site, page, pictures)


def test_the_page_tells_the_story(stage: Stage) -> None:
    device = stage.system.host.device(stage.drive)
    stage.system.host.run(f"dd if=/dev/zero of={device} bs=1M count=96 oflag=direct "
                          "conv=fsync status=none")
    load = stage.system.host.start(FIO.format(device=device))
    load_is_shown(stage)
    a_die_dies(stage)
    a_cable_is_pulled(stage)
    load.kill()
    the_power_is_cut(stage)
    the_power_comes_back_with_the_rule(stage)
    assert stage.page.complaints() == []
    the_cockpit_ends(stage)


def load_is_shown(stage: Stage) -> None:
    page = stage.page
    page.until("document.querySelector('#verdict').textContent === 'Nothing is wrong'")
    page.run("document.querySelector('#latency').click()")
    page.until("/reads p99 \\d/.test(document.querySelector('#charts').textContent)")
    page.until("/writes [0-9.]+ [kM]B.s/.test(document.querySelector('#charts').textContent)")
    stage.show("load", ("Nothing is wrong", "8 dies", "all dies work"))


def a_die_dies(stage: Stage) -> None:
    """The rule is composed on the page; the dead die is seen within SEEN_S."""
    page = stage.page
    compose(page, DIE, "dead-die")
    stage.click_and_answer("Turn on for drive")
    stage.wait_fired("dead-die", 60)
    began = time.monotonic()
    stage.wait_problem("drive: channel 2 die 1 is dead")
    assert time.monotonic() - began < SEEN_S
    stage.wait_problem("drive: SMART warns: spare")
    stage.drive.faults.remove("dead-die")
    page.until("!document.querySelector('#problems').textContent.includes('fault rule')")
    page.run("document.querySelector('#composer').open = false")
    stage.show("die", ("channel 2 die 1 is dead", "critical warning"))
    web.save_picture(page, stage.pictures / "cockpit-die.png", until="#faults-section")


def compose(page: chromium.Page, line: str, name: str) -> None:
    """Fill the form by the words of a rule, as a person who has chosen all of them."""
    page.run("document.querySelector('#composer').open = true")
    page.until("document.querySelector('#line').textContent !== ''")
    page.run(f"fill_form(read_line({json.dumps(line)}), {json.dumps(name)})")
    assert web.text_of(page, "#line") == line


def a_cable_is_pulled(stage: Stage) -> None:
    """With the keyboard alone: Tab to the button, Enter, and Tab to the answer."""
    page = stage.page
    page.run("document.querySelector('#picture .drive').focus()")
    web.tab_to(page, "Pull cable to host:0")
    web.press(page, "Enter")
    assert page.run("document.activeElement.textContent") == "Cancel"
    web.press(page, "Enter")
    assert not page.run("document.querySelector('#question').open")
    assert stage.system.status()["cables"]["0"]["plugged"]
    web.tab_to(page, "Pull cable to host:0")
    web.press(page, "Enter")
    web.tab_to(page, "Pull cable to host:0", 3)
    web.press(page, "Enter")
    stage.wait_problem("The cable from host:0 to drive:0 is pulled")
    stage.wait_problem("drive: port 0 is down")
    # The host gives up the commands of this path after some seconds, and takes the other one.
    page.until("/in [0-9.]+ [kM]B.s/.test(document.querySelector("
               "\"#picture [data-key='port drive:1']\").textContent)")
    stage.show("cable", ("The cable from host:0 to drive:0 is pulled", "Plug cable to host:0"))
    web.save_picture(page, stage.pictures / "cockpit-cable.png", until="#charts-section")
    web.click(page, "Plug cable to host:0")     # repairs, so it does not ask
    page.until("!document.querySelector('#problems').textContent.includes('pulled')")


def the_power_is_cut(stage: Stage) -> None:
    """The drive keeps its place, and a rule is composed for its next start."""
    page = stage.page
    stage.click_and_answer("Cut power")
    stage.wait_problem("drive is off")
    assert page.run("document.querySelectorAll('#picture .die').length") == 8
    compose(page, LATER, "slow")
    page.until("document.querySelector('#add-rule').textContent === "
               "'Turn on when drive starts'")
    web.click(page, "Turn on when drive starts")
    page.until("document.querySelector('#faults').textContent.includes("
               "'acts when the drive starts')")
    stage.wait_problem("drive: 1 fault rule acts when it starts")
    stage.show("power", ("drive is off", "Power on", "acts when the drive starts"))
    web.save_picture(page, stage.pictures / "cockpit-power.png", until="#charts-section")


def the_power_comes_back_with_the_rule(stage: Stage) -> None:
    page = stage.page
    web.click(page, "Power on")
    stage.wait_problem("drive: 1 fault rule is on")
    page.until(f"!{PROBLEM.format(words=json.dumps('drive is off'))}")
    stage.wait_problem("drive: channel 2 die 1 is dead")        # it stays dead
    stage.wait_fired("slow", 120)       # by reads of the host, which connects again


def the_cockpit_ends(stage: Stage) -> None:
    """Everything is grey, and the page says since when."""
    page = stage.page
    stage.site.process.terminate()
    page.until("!document.querySelector('#lost').hidden")
    assert web.text_of(page, "#lost").startswith("No answer since ")
    assert page.run("getComputedStyle(document.querySelector('main')).filter") != "none"
    assert page.run("[...document.querySelectorAll('main button')].every("
                    "(button) => button.disabled)")
    stage.show("lost", ("No answer since", "unknown"))
