# SPDX-License-Identifier: BSD-2-Clause
"""The reports of a conformance run: JUnit XML for machines, HTML for people.

JUnit: the elements and attributes that Jenkins' schema (xunit plugin,
junit-10.xsd) and GitLab know: one suite a chapter, `failure` for what failed,
`skipped` for what does not apply, `error` for what could not be run.
"""

import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from .results import Count, Results, Test, VERDICTS, VERDICT_WORDS

TEMPLATE = "conform_report.html"
# Steps shown of a passed test, so that a phone can display the whole report.
STEPS_SHOWN = 24
# Characters that XML 1.0 cannot represent.
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Facts:
    """Facts in a report besides the results."""

    command: str = ""
    slow: int = 1
    started: float = field(default_factory=time.time)
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def when(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(self.started))

    @property
    def timestamp(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self.started))


# JUnit

def clean(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)


def numbers(count: Count) -> dict[str, str]:
    return {"tests": str(count.tests), "failures": str(count.of["fail"]),
            "errors": str(count.of["not-run"]), "time": f"{count.seconds:.3f}"}


def properties(parent: ElementTree.Element, pairs: dict[str, str]) -> None:
    if pairs:
        element = ElementTree.SubElement(parent, "properties")
        for name, value in pairs.items():
            ElementTree.SubElement(element, "property", name=name, value=clean(value))


def testcase(parent: ElementTree.Element, test: Test) -> None:
    case = ElementTree.SubElement(
        parent, "testcase", name=test.id.removeprefix(test.chapter + "."),
        classname=f"conform.{test.chapter}", time=f"{test.seconds:.3f}")
    kind = {"fail": "failure", "na": "skipped", "not-run": "error"}.get(test.verdict)
    if kind is not None:
        words = ElementTree.SubElement(
            case, kind, type=test.clause or test.verdict,
            message=clean(test.reason.partition("\n")[0]
                          or VERDICT_WORDS[test.verdict]))
        words.text = clean("\n".join([
            test.id, test.clause, test.purpose, "", *test.steps,
            *(["", "Commands:", *test.exchange] if test.exchange else []),
            *(["", "Counted by the drive:", *test.state] if test.state else []), test.reason,
            *([f"capture: {test.pcap}"] if test.pcap else [])]))


def junit(results: Results, facts: Facts) -> bytes:
    total = results.total
    trouble = list(results.complaints)
    if results.missing:
        trouble.append(f"{results.missing} announced tests have no result")
    errors = total.of["not-run"] - results.missing + len(trouble)
    root = ElementTree.Element("testsuites", {
        **numbers(total), "name": f"conform {results.target}",
        "tests": str(len(results.tests) + len(trouble)), "errors": str(errors)})
    pairs = {"target": results.target, "seed": str(results.seed),
             "command": facts.command, "verdict": results.verdict,
             **facts.versions, **dict(drive_facts(results.drive))}
    for chapter, count in results.chapters.items():
        suite = ElementTree.SubElement(root, "testsuite", {
            **numbers(count), "name": f"conform.{chapter}",
            "skipped": str(count.of["na"]), "timestamp": facts.timestamp})
        properties(suite, pairs)
        for test in results.tests:
            if test.chapter == chapter:
                testcase(suite, test)
    if trouble:
        suite = ElementTree.SubElement(root, "testsuite", {
            "name": "conform.run", "tests": str(len(trouble)), "failures": "0",
            "errors": str(len(trouble)), "skipped": "0",
            "timestamp": facts.timestamp})
        properties(suite, pairs)
        for number, text in enumerate(trouble, 1):
            case = ElementTree.SubElement(suite, "testcase", name=f"complaint-{number}",
                                          classname="conform.run", time="0.000")
            ElementTree.SubElement(case, "error", type="run",
                                   message=clean(text.partition("\n")[0])
                                   ).text = clean(text)
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


# HTML

def drive_facts(drive: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, value) pairs that describe the drive."""
    names = {"mn": "model", "sn": "serial number", "fr": "firmware", "subnqn": "NQN"}
    found = [(name, str(drive[key])) for key, name in names.items() if drive.get(key)]
    for number, port in enumerate(drive.get("ports") or []):
        words = [str(port[key]) for key in ("mac", "ipv4", "ipv6") if port.get(key)]
        found.append((f"port {number}", ", ".join(words)))
    known = {*names, "ports"}
    found += [(key, str(value)) for key, value in drive.items()
              if key not in known and isinstance(value, (str, int, float))]
    return found


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def html(results: Results, facts: Facts) -> str:
    import jinja2
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["duration"] = duration
    return environment.get_template(TEMPLATE).render(
        results=results, facts=facts, total=results.total, verdicts=VERDICTS,
        steps_shown=STEPS_SHOWN,
        words=VERDICT_WORDS, drive=drive_facts(results.drive),
        failures=results.of_verdict("fail"), not_run=results.of_verdict("not-run"),
        not_applicable=results.of_verdict("na"),
        colour={"pass": "good", "fail": "bad", "na": "mute", "not-run": "warn"},
        mark={"pass": "✓", "fail": "✗", "na": "–", "not-run": "!"})
