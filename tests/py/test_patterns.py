# SPDX-License-Identifier: BSD-2-Clause
"""Patterns that name several parts, and commands for several parts."""

import pytest

from essd.base import patterns, show
from essd.base.errors import EssdError, Mistakes
from essd.instance import fleet
from essd.instance.instance import Instance

NAMES = ["host", *(f"drive{n}" for n in range(12)), "switch0"]


@pytest.mark.parametrize("text, names", [
    ("drive3", ["drive3"]), ("drive[3-5]", ["drive3", "drive4", "drive5"]),
    ("drive[9-11,0]", ["drive0", "drive9", "drive10", "drive11"]),
    ("drive*", NAMES[1:13]), ("*", NAMES), ("host,drive1", ["host", "drive1"]),
    ("drive1*", ["drive1", "drive10", "drive11"]),
    ("drive[0-1], s*0", ["drive0", "drive1", "switch0"])])
def test_a_pattern_names_parts_in_their_own_order(text: str, names: list[str]) -> None:
    assert patterns.select(text, NAMES) == names


@pytest.mark.parametrize("text, said", [
    ("drive12", "there is no part drive12; did you mean drive"),
    ("drive[10-12]", "there is no part drive12"),
    ("", "there is no part"), ("nothing*", r"there is no part nothing\*"),
    ("drive[3-", "one pair of brackets is possible"), ("drive[]", "write numbers"),
    ("drive[5-3]", "the range 5-3 ends before it begins"),
    ("drive[0-9999]", "has more than 64 numbers"),
    ("drive[a-c]", "write numbers and ranges"), ("drive[1,1]", "drive1 is named twice"),
    ("a[0-1][0-1]", "one pair of brackets")])
def test_a_pattern_that_names_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(EssdError, match=said) as refused:
        patterns.select(text, NAMES)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name, is_valid", [
    ("drive0", True), ("a", True), ("top-of_rack2", True), ("", False), ("0a", False),
    ("Drive", False), ("a.b", False), ("a b", False), ("x" * 21, False)])
def test_names_of_parts_are_checked(name: str, is_valid: bool) -> None:
    if is_valid:
        patterns.check_name(name)
    else:
        with pytest.raises(EssdError, match="cannot be a part's name"):
            patterns.check_name(name)


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch) -> Instance:
    monkeypatch.setattr(Instance, "drives", property(
        lambda _self: ["drive0", "drive1", "drive2"]))
    return Instance("fleet")


def test_a_part_that_fails_leaves_the_others_and_is_listed_at_the_end(
        instance: Instance) -> None:
    done = []

    def act(one: Instance) -> str:
        if one.drive == "drive1":
            raise EssdError("the media is gone")
        done.append(one.drive)
        return "done"

    with show.console.capture() as captured, pytest.raises(Mistakes) as failed:
        fleet.run(instance, "drive*", act)
    assert done == ["drive0", "drive2"]
    assert captured.get().splitlines() == ["drive0: done", "drive2: done"]
    assert failed.value.lines == ["drive1: the media is gone", "1 of 3 parts failed"]


def test_a_command_for_one_drive_has_to_know_which(instance: Instance) -> None:
    with pytest.raises(EssdError, match="has several drives: name one of drive0, drive1"):
        fleet.run(instance, "", lambda one: one.drive)
    with pytest.raises(EssdError, match="this command works on one drive"):
        fleet.one(instance, "drive[0-1]")
    assert fleet.one(instance, "drive2").drive == "drive2"
