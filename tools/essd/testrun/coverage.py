# SPDX-License-Identifier: BSD-2-Clause
"""`essd test --coverage`: measure which lines and branches of the drive tests reach.

The native programs are built separately with gcc's --coverage and without
sanitizers.  Then all tests of ctest run (unit and native tests, the kept
corpora), and the conformance suite against the native drive.  gcov's counters
are added up over all programs.  The table for docs/coverage.md is written to
build/coverage/table.md.

Branches of an ASSERT are not counted, because no input of a peer can reach them.
"""

import datetime
import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..base import interrupts, paths, show
from ..base.errors import LOOK_UP_S
from ..build import fw_build
from . import lints

BUILD = paths.TOP / "build" / "coverage"
SUITE = "tests/conformance/essd_conform"
# All code of the drive and of its models.  What only QEMU or the RISC-V build compiles
# has no counters here, so that it does not appear.
DIRECTORIES = ("lib/", "net/", "nvmeof/", "storage/", "hw-model/", "firmware/")
NOT_THE_DRIVE = ("firmware/native/",)
FLAGS = "-Og --coverage -fprofile-abs-path"
Command = Callable[..., None]

STYLE = """
body { font: 14px sans-serif; margin: 2em; } table { border-collapse: collapse; }
td, th { padding: 2px 12px; text-align: right; } td:first-child { text-align: left; }
pre { margin: 0; } .no { background: #fcc; } .part { background: #ffd; }
.count { color: #888; display: inline-block; width: 9em; }
"""


@dataclass
class Line:
    count: int = 0
    branches: list[int] = field(default_factory=list)

    def add(self, count: int, branches: list[int]) -> None:
        self.count += count
        if len(self.branches) < len(branches):
            self.branches += [0] * (len(branches) - len(self.branches))
        for i, taken in enumerate(branches):
            self.branches[i] += taken


@dataclass
class Sum:
    lines: int = 0
    lines_hit: int = 0
    branches: int = 0
    branches_hit: int = 0

    def add(self, line: Line) -> None:
        self.lines += 1
        self.lines_hit += line.count > 0
        self.branches += len(line.branches)
        self.branches_hit += sum(taken > 0 for taken in line.branches)

    def merge(self, other: "Sum") -> None:
        self.lines += other.lines
        self.lines_hit += other.lines_hit
        self.branches += other.branches
        self.branches_hit += other.branches_hit

    def row(self) -> tuple[str, str, str, str]:
        return (f"{percent(self.lines_hit, self.lines)}", f"{self.lines_hit}/{self.lines}",
                f"{percent(self.branches_hit, self.branches)}",
                f"{self.branches_hit}/{self.branches}")


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


Files = dict[str, dict[int, Line]]


def gcov(data: Path) -> Iterator[dict[str, object]]:
    """gcov's entries for the source files of one object."""
    done = subprocess.run(
        ["gcov", "--json-format", "--stdout", "--branch-probabilities", data],
        cwd=BUILD, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        timeout=LOOK_UP_S)
    for text in done.stdout.splitlines():
        yield from json.loads(text)["files"]


def is_ours(name: str) -> bool:
    return name.startswith(DIRECTORIES) and not name.startswith(NOT_THE_DRIVE)


def collect() -> Files:
    """The counters of all source files of the drive, added up over the programs."""
    files: Files = {}
    asserts: dict[str, set[int]] = {}
    data = sorted(BUILD.rglob("*.gcda"))
    with interrupts.pool(os.cpu_count() or 1) as pool:
        for found in pool.map(lambda path: list(gcov(path)), data):
            for entry in found:
                path = Path(str(entry["file"]))
                name = os.path.relpath(BUILD / path, paths.TOP)
                if not is_ours(name):
                    continue
                if name not in asserts:
                    asserts[name] = assert_lines(name)
                lines = files.setdefault(name, {})
                for line in entry["lines"]:      # type: ignore[attr-defined]
                    number = line["line_number"]
                    taken = [b["count"] for b in line["branches"]]
                    lines.setdefault(number, Line()).add(
                        line["count"], [] if number in asserts[name] else taken)
    return files


def assert_lines(name: str) -> set[int]:
    """The lines of statements that begin with ASSERT."""
    found: set[int] = set()
    inside = False
    for number, text in enumerate((paths.TOP / name).read_text().splitlines(), 1):
        inside = inside or re.match(r"\s*ASSERT\(", text) is not None
        if inside:
            found.add(number)
            inside = not text.rstrip().endswith(";")
    return found


def sums(files: Files) -> dict[str, Sum]:
    """Sums by directory; sums over each prefix in DIRECTORIES come last."""
    by_directory: dict[str, Sum] = {}
    for name in sorted(files):
        total = Sum()
        for line in files[name].values():
            total.add(line)
        for key in (str(Path(name).parent), whole_of(name)):
            by_directory.setdefault(key, Sum()).merge(total)
    wholes = [whole_of(prefix) for prefix in DIRECTORIES]
    return {key: by_directory[key] for key in
            [*(k for k in by_directory if k not in wholes), *wholes] if key in by_directory}


def whole_of(name: str) -> str:
    prefix = next(p for p in DIRECTORIES if name.startswith(p))
    return prefix.rstrip("/") + " (all)"


def gaps(lines: dict[int, Line]) -> list[str]:
    """Lines that were never reached, as ranges, then lines with missed branches."""
    missed = [n for n in sorted(lines) if lines[n].count == 0]
    ranges: list[str] = []
    order = {n: i for i, n in enumerate(sorted(lines))}
    start = 0
    for i, number in enumerate(missed):
        if i + 1 == len(missed) or order[missed[i + 1]] != order[number] + 1:
            first = missed[start]
            ranges.append(f"{first}-{number}" if first != number else str(number))
            start = i + 1
    partial = [str(n) for n in sorted(lines)
               if lines[n].count > 0 and 0 in lines[n].branches]
    return ([f"lines {' '.join(ranges)}"] if ranges else []) + (
        [f"branches in {' '.join(partial)}"] if partial else [])


def write_page(name: str, lines: dict[int, Line], folder: Path) -> str:
    page = folder / (name.replace("/", "_") + ".html")
    rows = []
    for number, text in enumerate((paths.TOP / name).read_text().splitlines(), 1):
        line = lines.get(number)
        mark, count = "", ""
        if line is not None:
            count = str(line.count)
            mark = "no" if line.count == 0 else "part" if 0 in line.branches else ""
            if line.branches:
                count += f" {sum(b > 0 for b in line.branches)}/{len(line.branches)}"
        rows.append(f'<pre class="{mark}" id="{number}"><span class="count">{number:5} {count}'
                    f"</span>{html.escape(text)}</pre>")
    page.write_text(f"<!doctype html><meta charset=utf-8><title>{name}</title>"
                    f"<style>{STYLE}</style><h1>{name}</h1>" + "\n".join(rows))
    return page.name


def write_html(files: Files, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def row(name: str, total: Sum) -> str:
        return f"<tr><td>{name}" + "".join(f"<td>{cell}" for cell in total.row())
    head = "<tr><th><th>lines<th><th>branches<th>"
    body = [row(name, total) for name, total in sums(files).items()]
    body.append(head)
    for name in sorted(files):
        total = Sum()
        for line in files[name].values():
            total.add(line)
        page = write_page(name, files[name], folder)
        body.append(row(f'<a href="{page}">{name}</a>', total))
    (folder / "index.html").write_text(
        f"<!doctype html><meta charset=utf-8><title>essd: coverage</title><style>{STYLE}"
        f"</style><h1>Coverage</h1><table>{head}" + "\n".join(body) + "</table>")


def markdown(files: Files, date: datetime.date, commit: str) -> str:
    """The table of docs/coverage.md, with the block of tools/check_measured.py."""
    rows = [f"| `{name.removesuffix(' (all)')}`{', all' if name.endswith(' (all)') else ''} "
            f"| {lines} ({of_lines.replace('/', ' of ')}) "
            f"| {branches} ({of_branches.replace('/', ' of ')}) |"
            for name, total in sums(files).items()
            for lines, of_lines, branches, of_branches in [total.row()]]
    of = ", ".join(f"`{name.rstrip('/')}`" for name in (*DIRECTORIES, "tests"))
    return "\n".join([
        f"| measured | {date.day} {date:%B %Y}, commit `{commit}` |", "|---|---|",
        "| command | `./essd test --coverage` |",
        f"| of | {of} |",
        "", "| directory | lines | branches |", "|---|---|---|", *rows]) + "\n"


def build(command: Command) -> None:
    """Delete old counters, configure and build."""
    jobs = str(os.cpu_count() or 1)
    with fw_build.alone(BUILD, paths.TOP):
        for data in BUILD.rglob("*.gcda"):
            data.unlink()
        command("cmake", "-G", "Ninja", "-B", BUILD, "-S", paths.TOP, "-DCMAKE_C_COMPILER=gcc",
                "-DCMAKE_BUILD_TYPE=Debug", "-DESSD_SANITIZE=OFF", f"-DCMAKE_C_FLAGS={FLAGS}",
                quiet=True)
        command("cmake", "--build", BUILD, "-j", jobs, quiet=True)


def report() -> None:
    files = collect()
    write_html(files, BUILD / "html")
    (BUILD / "uncovered.txt").write_text("".join(
        f"{name}: {gap}\n" for name in sorted(files) for gap in gaps(files[name])))
    commit = (lints.git("rev-parse", "--short=8", "HEAD") or ["not noted"])[0]
    (BUILD / "table.md").write_text(markdown(files, datetime.date.today(), commit))
    show.line(f"{'':28} {'lines':>8} {'':>12} {'branches':>9}")
    for name, total in sums(files).items():
        lines, of_lines, branches, of_branches = total.row()
        show.line(f"{name:28} {lines:>8} {of_lines:>12} {branches:>9} {of_branches:>12}")
    show.line(f"sources: {BUILD / 'html' / 'index.html'}; gaps: {BUILD / 'uncovered.txt'}; "
              f"for docs/coverage.md: {BUILD / 'table.md'}")


def measure(command: Command) -> None:
    """Run the native tests and the suite, and report the coverage."""
    build(command)
    try:
        command("ctest", "--test-dir", BUILD, "-j", str(os.cpu_count() or 1), "-LE",
                "long", "--output-on-failure", quiet=True)
        command(BUILD / SUITE, "--native", quiet=True)
    finally:
        report()            # Also if a test fails, for the tests that have run.
