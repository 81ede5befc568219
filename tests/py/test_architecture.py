# SPDX-License-Identifier: BSD-2-Clause
"""The table of the main loop in docs/architecture.md is that of the firmware."""

import re

from essd.base import paths

COMPONENT = re.compile(r"\{\s*(\.name = \"(\w+)\"[^{}]*)\}")
BUDGET = re.compile(r"^    (\w+_BUDGET) = (\d+)", re.M)
ROW = re.compile(r"^\| (\w+)[^|]* \| ?([^|]*?) ?\| ?([^|]*?) ?\| ?([^|]*?) ?\|$", re.M)


def firmware() -> list[tuple[str, bool, bool, int]]:
    """Each component's name, whether it has a poll and a step, and its budget or 0."""
    found: list[tuple[str, bool, bool, int]] = []
    for name in ("firmware/app/board.c", "firmware/app/components.c"):
        text = (paths.TOP / name).read_text(encoding="utf-8")
        budgets = {key: int(value) for key, value in BUDGET.findall(text)}
        for body, component in COMPONENT.findall(text):
            budget = re.search(r"\.budget = (\w+)", body)
            found.append((component, ".poll =" in body, ".step =" in body,
                          budgets[budget[1]] if budget else 0))
    # A drive has "nand" in the place of "media"; the document has both, one after the other.
    order = [row for row in found if row[0] != "nand"]
    place = [row[0] for row in order].index("media")
    return order[:place] + [row for row in found if row[0] == "nand"] + order[place:]


def document() -> list[tuple[str, str, str, str]]:
    text = (paths.TOP / "docs/architecture.md").read_text(encoding="utf-8")
    table = text.partition("| component | its poll |")[2].partition("\n\n")[0]
    return [row for row in ROW.findall(table) if row[0] != "component"]


def test_the_table_of_the_main_loop_has_the_components_in_their_order() -> None:
    assert [row[0] for row in document()] == [row[0] for row in firmware()]


def test_polls_steps_and_budgets_of_the_table_are_those_of_the_firmware() -> None:
    for (name, poll, step, budget), (_, has_poll, has_step, units) in zip(
            document(), firmware(), strict=True):
        assert (bool(poll), bool(step)) == (has_poll, has_step), name
        if units:
            assert str(units) in budget.split(" ")[0], name
