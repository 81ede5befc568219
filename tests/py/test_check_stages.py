# SPDX-License-Identifier: BSD-2-Clause
"""The lint that looks for pointers from one stage of a command to another."""

import check_stages
import pytest

TARGET = ("nvmeof/target/a.h", "struct qpair {\n    int id; /* struct ftl *no; */\n};\n")
FTL = ("storage/ftl/b.h", "struct ftl {\n    struct page *page;\n};\nstruct page {\n};\n")


def test_the_tree_has_no_other_pointers_than_those_allowed() -> None:
    assert check_stages.main() == 0


@pytest.mark.parametrize("member", [
    "struct qpair *owner;", "const struct qpair *owner;", "struct qpair **owner;",
    "struct qpair *owner[4];", "struct qpair *owner[N + 1];"])
def test_a_pointer_to_another_stage_is_found_and_may_be_allowed(member: str) -> None:
    sources = [TARGET, FTL, ("nvmeof/rdma/c.h", f"struct queue {{\n    {member}\n}};\n")]
    assert check_stages.complaints(sources, {}) == [
        "nvmeof/rdma/c.h: queue.owner of the stage transport points to struct qpair of the "
        "stage target: send a message"]
    assert check_stages.complaints(sources, {"queue.owner": "why"}) == []


def test_the_volume_belongs_to_the_medium() -> None:
    assert check_stages.stage_of("storage/volume/volume.h") == "medium"


def test_pointers_within_a_stage_are_none_and_a_needless_entry_is_found() -> None:
    assert check_stages.complaints([TARGET, FTL], {}) == []
    assert check_stages.complaints([TARGET, FTL], {"ftl.page": "why"}) == [
        "tools/check_stages.py: ftl.page in MAY_POINT is no longer needed"]
