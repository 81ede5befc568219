# SPDX-License-Identifier: BSD-2-Clause
"""What an open page of the cockpit costs, beside a running instance under load.

    PYTHONPATH=tools:tests python3 tests/cockpit_cost.py NAME [PAIRS]

Each pair is a time with the page open in Chromium and one without, in alternating
order.  Printed is the processor time of the cockpit, of the supervisor and of all parts
of the instance (its QEMU processes), in percent of one core, as the median of all pairs.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import chromium
from cockpit_site import Site, cockpit

from essd.base import cpu
from essd.instance.instance import Instance

SECONDS = 15.0
SETTLE_S = 3.0          # a page that opens, or is left
WITHOUT, WITH = "without", "with"


def used(instance: Instance, site: Site) -> dict[str, float]:
    """Processor time so far, in seconds."""
    parts: dict[str, Any] = instance.status()["parts"]
    state = json.loads((instance.folder / "state.json").read_text(encoding="utf-8"))
    pids = [part["pid"] for part in parts.values() if part["pid"]]
    (supervisor,) = {entry["pid"] for entry in state[:1]}   # itself, then its parts
    return {"cockpit": cpu.seconds(site.process.pid), "supervisor": cpu.seconds(supervisor),
            "parts": sum(map(cpu.seconds, pids))}


def measure(instance: Instance, site: Site) -> dict[str, float]:
    time.sleep(SETTLE_S)
    before, began = used(instance, site), time.monotonic()
    time.sleep(SECONDS)
    after, seconds = used(instance, site), time.monotonic() - began
    return {name: 100 * (after[name] - before[name]) / seconds for name in before}


def main() -> None:
    instance = Instance(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    found: dict[str, list[dict[str, float]]] = {WITHOUT: [], WITH: []}
    with (cockpit(instance.name) as site, tempfile.TemporaryDirectory() as folder,
          chromium.page(Path(folder)) as page):
        page.call("Page.navigate", url=site.link)       # the token becomes a cookie
        page.until("document.querySelector('#picture .drive') !== null")
        for pair in range(pairs):
            for which in (WITHOUT, WITH) if pair % 2 == 0 else (WITH, WITHOUT):
                page.call("Page.navigate",
                          url=f"http://{site.host}/" if which == WITH else "about:blank")
                found[which].append(measure(instance, site))
        memory = cpu.resident_mib(site.process.pid)
    for which, rows in found.items():
        print(f"{which} the page:", ", ".join(
            f"{name} {statistics.median(row[name] for row in rows):.2f} %" for name in rows[0]))
    share = statistics.median(
        100 * (row["cockpit"] + row["supervisor"]) / row["parts"] for row in found[WITH])
    print(f"cockpit and supervisor, of the parts' processor time: {share:.2f} %; "
          f"memory of the cockpit: {memory:.0f} MiB")


if __name__ == "__main__":
    main()
