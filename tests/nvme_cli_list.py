# SPDX-License-Identifier: BSD-2-Clause
"""What nvme-cli's own tests did, and the list tests/nvme_cli/expected.txt."""

import re

from blktests_list import Expected, Outcome

from essd.base import paths

SOURCE = paths.TOP / "tests/nvme_cli"
EXPECTED = SOURCE / "expected.txt"
LINES_SHOWN = 20            # of a failed test


def outcome(name: str, output: str) -> Outcome:
    """The outcome of one of the files, from what unittest printed at its end."""
    last = re.findall(r"^(OK|FAILED)\b(.*)$", output, re.MULTILINE)
    ran = re.search(r"^Ran (\d+) tests? in", output, re.MULTILINE)
    if not last or ran is None or ran[1] == "0":
        return Outcome(name, "fail", ["no test ran", *output.splitlines()[-LINES_SHOWN:]])
    if last[-1][0] == "FAILED":
        reason = re.split(r"^=+$|^FAILED\b", output, flags=re.MULTILINE)[-2]
        return Outcome(name, "fail", reason.strip().splitlines()[-LINES_SHOWN:])
    if "skipped=" in last[-1][1]:
        return Outcome(name, "skip", [reason for _, reason in
                                      re.findall(r"skipped (['\"])(.*)\1", output)])
    return Outcome(name, "pass")


def read_expected(text: str) -> dict[str, Expected]:
    """The list has the columns test, drive and reason."""
    found = {}
    for line in text.splitlines():
        words = line.split("#")[0].split(maxsplit=2)
        if words:
            found[words[0]] = Expected(words[1], words[2].strip() if len(words) > 2 else "")
    return found
