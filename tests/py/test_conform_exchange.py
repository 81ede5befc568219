# SPDX-License-Identifier: BSD-2-Clause
"""The commands in the report of a failed conformance test.

The entries are those that the conformance program recorded natively of a drive
with defect 403: "access to the last block is refused".
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from essd.build import native_build
from essd.conform import (mutants, report as conform_report, results as conform_results,
                          screen as conform_screen)
from essd.conform.results import Results, ResultsError

CONNECT = ("7f400100010000000000000000000000000000000000000000002200007f0000000400010"
           "0ed5e40000001001f00000000000000000000000000000000000000")
CONNECTED = "013f0000000000000100000001000000"
WRITE = ("01400200010000000000000000000000000000000000000000002200007f00000002000100ed5"
         "e40ff7f00000000000000000000000000000000000000000000")
REFUSED = "000000000000000002000000020000c1"
PROPERTY_SET = ("7f40020000000000000000000000000000000000000000000000000000000000000000000"
                "0000040000000001400000001004600000000000000000000000000")


def entry(number: int, qid: int = 1, **raw: str) -> dict[str, Any]:
    return {"time": 1.0, "wall": 1000.0 + number * 25e-6, "port": 0, "qp": 320 + qid,
            "psn": 100 + number, "queue": qid, **raw}


def failed(*exchange: dict[str, Any], reason: str = "") -> conform_results.Test:
    results = Results()
    results.take(json.dumps({
        "event": "test", "id": "nvme.io.last-block", "chapter": "nvme",
        "clause": "NVMe 1.4 6.15", "purpose": "the last block is written",
        "verdict": "fail", "seconds": 0.1, "steps": [], "pcap": "", "started": 1000.0,
        "reason": reason, "exchange": list(exchange)}))
    return results.tests[0]


def words_of(*exchange: dict[str, Any]) -> list[str]:
    return [line.partition(" port ")[2] for line in failed(*exchange).exchange]


def test_a_command_and_its_completion_are_one_line_with_names_and_times():
    assert words_of(entry(0, sqe=CONNECT), entry(1, cqe=CONNECTED),
                    entry(2, sqe=WRITE), entry(3, cqe=REFUSED)) == [
        "0 queue 1: Connect qid 1, sqsize 31, 1024 bytes, cid 1: "
        "ok, result 0x3f01; 25 us",
        "0 queue 1: Write nsid 1, lba 32767, 1 block, 512 bytes, cid 2: "
        "LBA Out of Range (080h), DNR; 25 us"]


def test_the_time_of_a_command_is_real_and_the_drives():
    line = failed(entry(2, sqe=WRITE)).exchange[0]
    assert line.split()[0].endswith(":40.000050") and line.split()[1] == "1.000000"


def test_an_opcode_on_the_admin_queue_is_named_by_the_admin_command_set():
    identify = "06" + WRITE[2:80] + "01" + WRITE[82:]
    assert words_of(entry(0, 0, sqe=identify), entry(1, 0, sqe=PROPERTY_SET)) == [
        "0 admin queue: Identify nsid 1, cns 0x1, 512 bytes, cid 2: no completion",
        "0 admin queue: Property Set offset 0x14, value 0x460001, cid 2: no completion"]


def test_repeated_packets_and_unexpected_completions_are_told_apart():
    again = entry(0, sqe=WRITE)
    assert words_of(again, again, entry(1, cqe=REFUSED), entry(2, cqe=REFUSED)) == [
        "0 queue 1: Write nsid 1, lba 32767, 1 block, 512 bytes, cid 2: no completion",
        "0 queue 1: Write nsid 1, lba 32767, 1 block, 512 bytes, cid 2 (sent again): "
        "LBA Out of Range (080h), DNR; 25 us",
        "0 queue 1: completion of cid 2: LBA Out of Range (080h), DNR"]


def test_a_reason_names_the_statuses():
    reason = failed(reason="Write: expected status 000h, got 080h (DNR)").reason
    assert reason == ("Write: expected status 000h (ok), got 080h (LBA Out of Range) "
                      "(DNR)")


def test_every_report_shows_the_commands_after_the_verdict(tmp_path: Path):
    test = failed(entry(2, sqe=WRITE), entry(3, cqe=REFUSED), reason="status 080h")
    results = Results(target="native", tests=[test], announced=1, is_over=True)
    facts = conform_report.Facts()
    for text in ("\n".join(conform_screen.failure_lines(test)),
                 conform_report.html(results, facts),
                 conform_report.junit(results, facts).decode()):
        assert "lba 32767, 1 block" in text
        assert text.index("LBA Out of Range") < text.index("lba 32767")
    saved = tmp_path / "run.json"
    saved.write_text(json.dumps(results.as_json()))
    assert Results.load(saved).tests[0].exchange == test.exchange


def test_an_entry_of_the_wrong_length_is_refused():
    with pytest.raises(ResultsError, match="15 bytes"):
        failed(entry(0, cqe=REFUSED[2:]))


@pytest.mark.long
def test_a_drive_with_a_seeded_defect_shows_the_command_that_it_refused(tmp_path: Path):
    program = native_build.native_program(mutants.PRESET, mutants.PROGRAM,
                                     "the drive with defects")
    subprocess.run(
        [program, "--native", "--mutant", "403", "--only", "nvme.io.last-block",
         "--results", tmp_path / "results.jsonl"], check=False, timeout=300)
    results = mutants.read_results(tmp_path / "results.jsonl")
    test, = results.of_verdict("fail")
    assert "got 080h (LBA Out of Range)" in test.reason
    assert "queue 1: Write nsid 1, lba 32767, 1 block, 512 bytes" in test.exchange[-1]
    assert "LBA Out of Range (080h), DNR; " in test.exchange[-1]
