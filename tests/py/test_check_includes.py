# SPDX-License-Identifier: BSD-2-Clause
"""tools/check_includes.py finds includes that break the layers, and no others."""

import importlib.util
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("check_includes",
                                              TOP / "tools" / "check_includes.py")
assert SPEC is not None and SPEC.loader is not None
check_includes = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_includes)

STATE = "nvmeof/target/state.h"


def complaints(root: Path, path: str, header: str) -> list[str]:
    """The complaints about a tree in which one file includes one header."""
    for name in (path, header):
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("/* nothing */\n")
    (root / path).write_text(f'#include "{header}"\n')
    found: list[str] = check_includes.complaints(root)
    return found


@pytest.mark.parametrize("path", ["nvmeof/target/connect/ctrl.c",
                                  "tests/unit/nvmeof/target/fake.h",
                                  "tests/native/test_slow.c"])
def test_a_private_header_may_be_included_in_its_directory_and_its_tests(
        tmp_path: Path, path: str) -> None:
    assert complaints(tmp_path, path, STATE) == []


@pytest.mark.parametrize("path", ["firmware/app/drive.h", "firmware/native/native.c",
                                  "nvmeof/rdma/rdma_transport.c",
                                  "tests/unit/nvmeof/rdma/test_other.c",
                                  "tests/native/test_io.c"])
@pytest.mark.parametrize("header", [STATE, "nvmeof/target/internal.h",
                                    "nvmeof/target/queue_internal.h",
                                    "nvmeof/target/queue_state.h"])
def test_a_private_header_may_not_be_included_elsewhere(tmp_path: Path, path: str,
                                               header: str) -> None:
    assert [f"{path}:1: {header} is private to its directory"] == [
        line for line in complaints(tmp_path, path, header) if "private" in line]


def test_a_layer_may_only_include_the_layers_in_its_row(tmp_path: Path) -> None:
    assert complaints(tmp_path, "firmware/hal/log.h", "firmware/drivers/uart.h") == [
        "firmware/hal/log.h:1: firmware/hal may not include firmware/drivers/uart.h"]


def test_a_layer_that_may_include_all_firmware_leaves_out_what_puts_it_together(
        tmp_path: Path) -> None:
    path = "firmware/requests/mgmt_lag.c"
    assert complaints(tmp_path, path, "firmware/net/drive_net.h") == []
    assert complaints(tmp_path, path, "firmware/app/drive.h") == [
        f"{path}:1: firmware/requests may not include firmware/app/drive.h"]


@pytest.mark.parametrize(("path", "header"), [
    ("nvmeof/target/request/buffer.c", "nvmeof/target/io/io.h"),
    ("nvmeof/target/io/copy.c", "nvmeof/target/logs/logs.h"),
    ("storage/ftl/ops/ftl_hold.c", "storage/ftl/space/space.h"),
    ("storage/ftl/background/ftl_move.c", "storage/ftl/mount/mount.h"),
])
def test_a_floor_may_not_include_one_above(tmp_path: Path, path: str, header: str) -> None:
    below, above = path.split("/")[2], header.split("/")[2]
    assert complaints(tmp_path, path, header) == [
        f"{path}:1: {below} is below {above}, so it may not include {header}"]


def test_what_is_on_a_floor_is_not_for_another_layer(tmp_path: Path) -> None:
    path, header = "firmware/medium/nand_seam.c", "storage/ftl/ops/ops.h"
    assert complaints(tmp_path, path, header) == [
        f"{path}:1: {header} is on a floor of storage/ftl: only that includes it"]


@pytest.mark.parametrize(("path", "header"), [
    ("nvmeof/target/io/copy.c", "nvmeof/target/request/request.h"),
    ("nvmeof/target/io/copy.c", "nvmeof/target/io/io.h"),
    ("storage/ftl/mount/ftl_mount.c", "storage/ftl/background/background.h"),
    ("storage/ftl/ftl_wipe.c", "storage/ftl/state.h"),
    ("nvmeof/target/io/copy.c", "nvmeof/target/target.h"),
    ("nvmeof/target/hooks.c", "nvmeof/target/logs/logs.h"),
    ("storage/volume/reservations.h", "nvmeof/target/base/reservation.h"),
])
def test_a_floor_is_for_those_above_and_for_whom_a_row_names_it(
        tmp_path: Path, path: str, header: str) -> None:
    assert complaints(tmp_path, path, header) == []


def test_a_floor_does_not_use_the_struct_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "storage/ftl/ops/ftl_hold.c"
    path.parent.mkdir(parents=True)
    path.write_text("struct ftl_ops *one;\nvoid f(const struct ftl *ftl);\n")
    assert check_includes.complaints(tmp_path) == [
        "storage/ftl/ops/ftl_hold.c:2: a floor's functions take that floor's struct "
        "(ops_floor.h), not what storage/ftl/state.h has"]
    path.write_text('#include "storage/ftl/state.h"\n')
    assert len(check_includes.complaints(tmp_path)) == 1


def test_who_passes_the_whole_on_may_name_it(tmp_path: Path) -> None:
    for name in (*check_includes.PASSES_WHOLE, "storage/ftl/ftl.h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("void f(struct ftl *ftl);\n")
    assert check_includes.complaints(tmp_path) == []


def test_other_layers_do_not_include_what_is_on_a_floor(tmp_path: Path) -> None:
    header = "nvmeof/target/io/io.h"
    assert complaints(tmp_path, "nvmeof/rdma/rdma_sgl.c", header) == [
        f"nvmeof/rdma/rdma_sgl.c:1: {header} is on a floor of nvmeof/target: only that includes it"]


def page(*rows: str) -> str:
    return "# A\n" + "".join((check_includes.BEGIN, "\n", check_includes.HEAD, *rows, "\n",
                              check_includes.END)) + "after\n"


def test_the_table_of_the_document_is_that_of_the_check() -> None:
    text = (TOP / check_includes.PAGE).read_text(encoding="utf-8")
    assert check_includes.page_complaints(text) == []


def test_a_cell_that_differs_is_noticed_and_written_anew() -> None:
    text = (TOP / check_includes.PAGE).read_text(encoding="utf-8")
    right = "| `lib`, `firmware/store/image.h` |"
    assert right in text
    wrong = text.replace(right, "| `lib`, `firmware/store` |")
    assert len(check_includes.page_complaints(wrong)) == 1
    assert check_includes.table(wrong) == text


def test_a_layer_without_a_row_gets_one_that_has_to_be_described(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_includes, "MAY_INCLUDE", {"lib": [], "net/new": ["lib"]})
    monkeypatch.setattr(check_includes, "EVERYTHING", ("tests",))
    monkeypatch.setattr(check_includes, "FLOORS", {})
    old = page("| `lib` | bytes | nothing |\n", "| `net/gone` | x | `lib` |\n",
               "| `tests` | tests | everything |\n")
    new = check_includes.table(old)
    assert new == page("| `lib` | bytes | nothing |\n",
                       "| `tests` | tests | everything |\n",
                       "| `net/new` | (describe this layer) | `lib` |\n")
    assert ["describe" in line for line in check_includes.page_complaints(new)] == [True]


def test_a_document_without_the_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="no markers"):
        check_includes.table("# A\n")


def test_a_header_is_included_once(tmp_path: Path) -> None:
    path = tmp_path / "lib/bytes.c"
    path.parent.mkdir()
    path.write_text("#include <stdint.h>\n#include <string.h>\n#include <stdint.h>\n")
    assert check_includes.complaints(tmp_path) == [
        "lib/bytes.c:3: the file has the line #include <stdint.h> twice"]
    path.write_text('#define X 1\n#include "rows.h"\n#undef X\n#include "rows.h"\n')
    assert check_includes.complaints(tmp_path) == []
