# SPDX-License-Identifier: BSD-2-Clause
"""The cockpit's page in a browser: what a person does with it, and what there is to check."""

import base64
import json
from pathlib import Path
from typing import Any

import chromium

SIZES = [(1440, False), (480, False), (1440, True), (480, True)]    # width, is dark

# Texts of the picture that overlap, or that leave the picture or their box.
CROWDED = """(() => {
    const texts = [...document.querySelectorAll('#picture text')].filter(
        (text) => text.textContent.trim() !== '').map(
        (text) => [text.textContent, text.getBoundingClientRect(), text.closest('a')]);
    const all = document.querySelector('#picture').getBoundingClientRect();
    const found = texts.filter(([, at]) => at.left < all.left - 1 || at.right > all.right + 1);
    texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
            Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4) {
            found.push([one, other]);
        }
    }));
    for (const [text, at, link] of texts.filter(([, , link]) => link &&
                                                link.querySelector('rect'))) {
        const box = link.querySelector('rect').getBoundingClientRect();

        if (at.right > box.right || at.left < box.left || at.bottom > box.bottom + 2) {
            found.push([text, 'leaves its box']);
        }
    }
    return found.map(([text, other]) => [text, String(other)]);
})()"""
# Each chart that is there is as wide as its place, and has been drawn.
DRAWN = """[...document.querySelectorAll('.chart canvas')].every((canvas) => {
    const {clientWidth} = canvas.closest('.chart');

    return Math.abs(canvas.clientWidth - clientWidth) <= 2 && canvas.getContext('2d')
        .getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value !== 0);
})"""
FITS = "document.documentElement.scrollWidth <= window.innerWidth"
KEYS = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowDown": 40}


def text_of(page: chromium.Page, selector: str) -> str:
    return str(page.run(f"document.querySelector({json.dumps(selector)}).textContent"))


def click(page: chromium.Page, words: str, within: str = "main") -> None:
    page.run(f"[...document.querySelectorAll({json.dumps(f'{within} button')})].find("
             f"(button) => button.textContent === {json.dumps(words)}).click()")


def press(page: chromium.Page, key: str) -> None:
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                  windowsVirtualKeyCode=KEYS[key],
                  **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))


def tab_to(page: chromium.Page, words: str, steps: int = 60) -> None:
    """Press Tab until the button with these words has the focus."""
    for _ in range(steps):
        if page.run("document.activeElement.textContent") == words:
            return
        press(page, "Tab")
    raise AssertionError(f"the keyboard does not reach {words!r}")


def set_size(page: chromium.Page, width: int, is_dark: bool, height: int = 1000) -> None:
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
              deviceScaleFactor=1, mobile=False)
    page.call("Emulation.setEmulatedMedia", features=[
        {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}])
    # The next frame draws the picture at this width.
    page.until("(() => { const svg = document.querySelector('#picture');"
               "return Number(svg.getAttribute('width')) === svg.parentElement.clientWidth;"
               "})()")


def save_picture(page: chromium.Page, file: Path, until: str = "") -> None:
    """A PNG of the whole page, or of what is above the element `until`."""
    size: dict[str, Any] = page.run(
        "({width: window.innerWidth, height: " +
        (f"document.querySelector({json.dumps(until)}).getBoundingClientRect().top + "
         "window.scrollY - 7" if until else "document.documentElement.scrollHeight") + "})")
    found = page.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                      clip={"x": 0, "y": 0, "scale": 1, **size})
    file.write_bytes(base64.b64decode(found["data"]))
