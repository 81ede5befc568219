# SPDX-License-Identifier: BSD-2-Clause
"""What nvme-cli's own tests print is read, and their list."""

import subprocess
from pathlib import Path

from blktests_list import Expected, Outcome, surprises
from nvme_cli_list import EXPECTED, SOURCE, outcome, read_expected

PASSED = "ok\n\n------\nRan 1 test in 2.1s\n\nOK\n"
FAILED = """\
FAIL

======================================================================
FAIL: test_nvme_compare (nvme_compare_test.TestNVMeCompareCmd)
----------------------------------------------------------------------
AssertionError: 1 != 0

----------------------------------------------------------------------
Ran 1 test in 16.169s

FAILED (failures=1)

teardown: ctrl: /dev/nvme0
"""
SKIPPED = """\
test_verify (nvme_verify_test.TestNVMeVerify) ... skipped "because: 'Verify' is not there"

Ran 1 test in 1.1s

OK (skipped=1)
"""


def test_the_last_word_of_unittest_decides() -> None:
    assert outcome("a", PASSED) == Outcome("a", "pass")
    assert outcome("a", SKIPPED) == Outcome("a", "skip", ["because: 'Verify' is not there"])
    failed = outcome("a", FAILED)
    assert failed.status == "fail"
    assert failed.details[0].startswith("FAIL: test_nvme_compare")
    assert "AssertionError: 1 != 0" in failed.details


def test_a_file_of_which_no_test_ran_has_failed() -> None:
    for output in ("", "ModuleNotFoundError\n", "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n",
                   "Ran 0 tests in 0.000s\n\nOK\n"):
        assert outcome("a", output).details[0] == "no test ran"


def test_the_list_says_why_each_test_that_fails_does_so() -> None:
    found = read_expected(EXPECTED.read_text(encoding="utf-8"))
    assert len(found) == 20     # of nvme-cli 2.13
    assert all(line.status == "pass" or line.reason for line in found.values())
    assert read_expected("# a\nx_test  fail   two words  # b\n") == {
        "x_test": Expected("fail", "two words")}
    assert surprises([Outcome("x_test", "pass")], {"x_test": Expected("fail", "")})


def test_a_namespace_is_attached_to_the_controller_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "cntlid").write_text("17\n")
    text = (SOURCE / "nvme").read_text(encoding="utf-8")
    changed = text.replace("/sys/class/nvme/nvme0", str(tmp_path)).replace(
        "exec /usr/sbin/nvme", "printf '%s\\n'")
    assert changed.count(str(tmp_path)) == 1 and "printf" in changed
    script = tmp_path / "nvme"
    script.write_text(changed)
    said = subprocess.run(
        ["sh", script, "attach-ns", "/dev/nvme0", "--controllers=4", "a b"],
        check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout
    assert said.splitlines() == ["attach-ns", "/dev/nvme0", "--controllers=17", "a b"]
