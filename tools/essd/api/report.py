# SPDX-License-Identifier: BSD-2-Clause
"""Reports of experiments: what was done and when, figures, checks, the drives' counters.

A report is written as Markdown for people, JSON for programs and HTML with plots.  Its
verdict follows from its checks: "passed" if all of them hold, "failed" if one does not,
"incomplete" if an error has ended the experiment.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import show
from ..base.errors import EssdError

if TYPE_CHECKING:
    from .system import System

TEMPLATE = Path(__file__).with_name("report.html")
BARS = "▁▂▃▄▅▆▇█"
# Counters that say little beside the others; report.json has them all.
MINOR = ("etherStats", "Raw", "cast", "Filtered", "media.", "boot")
BARS_MAX = 90           # characters of a line of bars
PLOT_WIDTH, PLOT_HEIGHT = 800, 160      # of a plot, in pixels


@dataclass(frozen=True)
class Event:
    at_s: float             # since the report began
    text: str


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class Check:
    text: str
    holds: bool
    detail: str


@dataclass(frozen=True)
class Series:
    """A value over time, drawn as bars in Markdown and as a plot in HTML."""

    title: str
    unit: str
    points: list[tuple[float, float]]   # (seconds since the report began, value)


@dataclass
class Report:
    """The report of one experiment.  Add to it as the experiment goes on."""

    name: str
    title: str
    question: str = ""
    facts: dict[str, str] = field(default_factory=dict)     # the topology, versions
    timeline: list[Event] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)   # by drive
    error: str = ""
    duration_s: float = 0.0

    def __post_init__(self) -> None:
        self.begin = time.monotonic()
        self._before: dict[str, dict[str, int]] = {}

    # What the experiment adds

    def event(self, text: str) -> float:
        """Note what happens now, and print it; return the time (time.monotonic())."""
        now = time.monotonic()
        self.timeline.append(Event(round(now - self.begin, 2), text))
        show.note(f"{now - self.begin:7.1f} s  {text}")
        return now

    def figure(self, name: str, value: float, unit: str = "") -> None:
        """Add a measured value."""
        self.figures.append(Figure(name, float(f"{value:.4g}"), unit))

    def check(self, text: str, holds: bool, detail: str = "") -> None:
        """Add a claim and whether it holds; the verdict follows from all of them."""
        self.checks.append(Check(text, bool(holds), detail))
        show.note(f"           {'holds' if holds else 'DOES NOT HOLD'}: {text}"
                  f"{f' ({detail})' if detail else ''}")

    def plot(self, title: str, unit: str, points: Sequence[tuple[float, float]],
             begin: float | None = None) -> None:
        """Add a series; `begin` is the time.monotonic() that its seconds count from."""
        shift = 0.0 if begin is None else begin - self.begin
        self.series.append(Series(title, unit, [(round(at + shift, 2), round(value, 2))
                                                for at, value in points]))

    # The drives' counters

    def count_from_now(self, system: "System") -> None:
        """Read the drives' counters; count() adds what they have counted since."""
        self._before = {drive.name: drive.metrics() for drive in system.drives}

    def count(self, system: "System") -> None:
        """Add by how much each drive's counters have grown.

        A drive that has lost its power counts from its last power-on.  A drive that is
        off now has no counters.
        """
        for drive in system.drives:
            before = self._before.get(drive.name, {})
            try:
                after = drive.metrics()
            except EssdError as error:
                self.facts[f"counters of {drive.name}"] = f"none: {error}"
                continue
            restarted = after.get("uptime-ms", 0) < before.get("uptime-ms", 0)
            if restarted:
                before = {}
                self.facts[f"counters of {drive.name}"] = "since its last power-on"
            self.counters[drive.name] = {
                key: value - before.get(key, 0) for key, value in after.items()
                if value - before.get(key, 0) > 0 and not key.startswith("pool.")}

    def main_counters(self) -> list[str]:
        """The names of the counters that people are shown."""
        keys = dict.fromkeys(key for one in self.counters.values() for key in one)
        return [key for key in keys if key == "media.flushes"
                or not any(word in key for word in MINOR)]

    # The result

    @property
    def verdict(self) -> str:
        """"passed", "failed" or "incomplete"."""
        if not all(check.holds for check in self.checks):
            return "failed"
        return "incomplete" if self.error or not self.checks else "passed"

    def as_json(self) -> dict[str, Any]:
        """The content of report.json."""
        data = {key: value for key, value in asdict(self).items()}
        data["verdict"] = self.verdict
        for entry in data["series"]:
            entry["points"] = [{"at_s": at, "value": value}
                               for at, value in entry["points"]]
        return data

    def markdown(self) -> str:
        """The report as the text of report.md."""
        lines = [f"# {self.title}", "", *([self.question, ""] if self.question else []),
                 f"**Verdict: {self.verdict}**" + (f": {self.error}" if self.error else ""),
                 ""]
        lines += ["| holds | check | detail |", "|---|---|---|"]
        lines += [f"| {'yes' if c.holds else '**no**'} | {cell(c.text)} | {cell(c.detail)} |"
                  for c in self.checks]
        if self.figures:
            lines += ["", "## Figures", "| | value | unit |", "|---|---:|---|"]
            lines += [f"| {cell(f.name)} | {f.value:g} | {cell(f.unit)} |"
                      for f in self.figures]
        lines += ["", "## Timeline", "| seconds | event |", "|---:|---|"]
        lines += [f"| {e.at_s:.1f} | {cell(e.text)} |" for e in self.timeline]
        for series in self.series:
            lines += ["", f"## {series.title}", *bars(series)]
        lines += self.markdown_counters()
        lines += ["", "## About this run", "| | |", "|---|---|"]
        lines += [f"| {cell(key)} | {cell(value)} |" for key, value in self.facts.items()]
        lines += [f"| duration | {self.duration_s:.0f} s |"]
        return "\n".join(lines) + "\n"

    def markdown_counters(self) -> list[str]:
        """The lines of that text about the counters of the drives."""
        if not self.counters:
            return []
        keys = self.main_counters()
        lines = ["", "## The drives' own counters",
                 f"| | {' | '.join(self.counters)} |", "|---|" + "---:|" * len(self.counters)]
        lines += [f"| {key} | " + " | ".join(str(one.get(key, 0))
                                             for one in self.counters.values()) + " |"
                  for key in keys]
        return lines

    def html(self) -> str:
        """The report as the page report.html."""
        import jinja2
        template = jinja2.Template(TEMPLATE.read_text(encoding="utf-8"), autoescape=True)
        return str(template.render(report=self, plots=[self.drawn(s) for s in self.series],
                                   width=PLOT_WIDTH, height=PLOT_HEIGHT,
                                   keys=self.main_counters()))

    def drawn(self, series: Series) -> dict[str, Any]:
        """The coordinates of a plot, with a mark for each event within its time."""
        first = series.points[0][0] if series.points else 0.0
        last = max(series.points[-1][0] if series.points else 1.0, first + 1e-9)
        top = max([value for _, value in series.points] + [1e-9])
        across = PLOT_WIDTH / (last - first)
        return {"title": series.title, "unit": series.unit, "top": f"{top:g}",
                "first": f"{first:.0f}", "last": f"{last:.0f}",
                "line": " ".join(f"{(at - first) * across:.1f},"
                                 f"{PLOT_HEIGHT * (1 - value / top):.1f}"
                                 for at, value in series.points),
                "marks": [{"x": f"{(event.at_s - first) * across:.1f}", "text": event.text}
                          for event in self.timeline if first <= event.at_s <= last]}

    def write(self, folder: Path | str) -> list[Path]:
        """Write report.md, report.json and report.html; return their paths."""
        folder = Path(folder)
        texts = {"report.md": self.markdown(), "report.html": self.html(),
                 "report.json": json.dumps(self.as_json(), indent=2) + "\n"}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise EssdError(f"the report cannot be written: {folder}: {error.strerror}"
                            ) from None
        return [folder / name for name in texts]


def cell(text: str) -> str:
    """Text inside a table of Markdown."""
    return " ".join(text.split()).replace("|", "\\|")


def bars(series: Series) -> list[str]:
    """One character for each step, as high as its value."""
    points = series.points
    if not points:
        return ["No data."]
    # Several steps are one character if there are too many.
    width = -(-len(points) // BARS_MAX)
    groups = [points[at:at + width] for at in range(0, len(points), width)]
    values = [sum(value for _, value in group) / len(group) for group in groups]
    top = max(values) or 1.0
    text = "".join(" " if value <= 0 else BARS[min(7, int(8 * value / top))]
                   for value in values)
    step = (points[-1][0] - points[0][0]) / max(1, len(points) - 1) * width
    return ["```", text, "```",
            f"From second {points[0][0]:.0f} to {points[-1][0]:.0f}, {step:g} s a character; "
            f"the highest is {top:.4g} {series.unit}, and a space is none at all."]
