# SPDX-License-Identifier: BSD-2-Clause
"""The project's own lints, on texts that break their rules and on correct texts."""

import ast
import os
import sys
from pathlib import Path

import check_circles
import check_docs
import check_licences
import check_minmax
import check_names
import check_sizes
import check_sources
import check_timeouts
import lint_baseline
import pytest

from essd import cli
from essd.base import errors
from essd.build import fw_build
from essd.testrun import lints


@pytest.mark.parametrize("text", [
    "static void use(struct sntp *sntp)\n{\n}\n",
    "static inline uint32_t min2(uint32_t a)\n",
    "static MUST_USE bool\nact(void)\n{\n}\n",
    "static const struct row *seek(int n)\n",
])
def test_a_static_function_of_one_word_is_found(text: str) -> None:
    assert len(check_names.one_word_functions(text)) == 1


@pytest.mark.parametrize("text", [
    "static void sntp_use_sample(struct sntp *sntp)\n{\n}\n",
    "static int main(void)\n",
    "static const int table[] = { MAX(1), };\n",
    "static void (*const handlers[])(int);\n",
    "void use(void)\n",
    "    static int count(void);\n",
])
def test_other_definitions_are_not_taken_for_a_static_function_of_one_word(text: str) -> None:
    assert check_names.one_word_functions(text) == []


@pytest.mark.parametrize(("text", "what"), [
    ("x = MIN(next_random(&seed), max);", "next_random"),
    ("x = MAX(due_us,\n        timer->run(timer));", "run"),
    ("x = MIN(a, MAX(b, clock_ns()));", "clock_ns"),
    ("x = MIN(i++, 3);", "++"),
    ("x = MAX(a = 2, b);", "a ="),
])
def test_an_argument_of_min_or_max_that_does_something_is_found(text: str, what: str) -> None:
    found = check_minmax.complaints("a.c", "\n" + text)
    assert found and all(line.startswith("a.c:2: ") for line in found)
    assert what.split()[-1] in found[0]


@pytest.mark.parametrize("text", [
    "x = MIN(a, UINT32_C(7) << get_le16(p));",
    "x = MAX((a - b) * 3, MIN(c[i], sizeof(d)));",
    "x = MIN(strlen(text), a <= b ? 1u : 2u);",
    "/* MIN(next()) */ y = MAXIMUM(next());",
    "x = MIN(a, b) + next();",
])
def test_other_arguments_of_min_and_max_are_allowed(text: str) -> None:
    assert check_minmax.complaints("a.c", text) == []


def test_lines_of_more_than_100_columns_are_found_except_in_tables() -> None:
    text = "x" * 100 + "\n" + "x" * 101 + "\n| " + "x" * 200 + " |\n"
    assert [line.split(":")[1] for line in check_docs.wide_lines("a.md", text)] == ["2"]


def test_a_heading_gets_the_anchor_that_github_gives_it() -> None:
    text = "# Two `words`, one comma\n## Same\n## Same\n```\n# code\n```\n"
    assert check_docs.anchors(text) == {"two-words-one-comma", "same", "same-1"}


def test_functions_are_found_with_their_length() -> None:
    text = ("static const int table[] = {\n    1,\n};\n\n"
            "MUST_USE static bool\nfirst_one(int a,\n          int b)\n{\n    x();\n}\n\n"
            "#if 0\n#endif\nvoid second(void (*call)(int))\n{\n    if (a) {\n    }\nend:\n"
            "    return;\n}\nstruct a {\n    int x;\n};\n")
    assert list(check_sizes.functions(text)) == [("first_one", 6), ("second", 7)]


def test_a_long_file_and_a_long_function_are_found() -> None:
    body = "    x();\n"
    assert check_sizes.too_long("a.c", "void f(void)\n{\n" + 57 * body + "}\n") == {}
    assert check_sizes.too_long("a.c", "void f(void)\n{\n" + 58 * body + "}\n") == {
        "a.c:f": 61}
    assert check_sizes.too_long("a.c", 600 * "\n") == {}
    assert check_sizes.too_long("a.c", 601 * "\n") == {"a.c": 601}


def test_exceptions_of_the_sizes_may_not_grow_and_end_when_they_are_not_needed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint_baseline, "LISTS", tmp_path)
    (tmp_path / "sizes.txt").write_text("# why\nsame.c 700\ngrown.c 700\ngone.c 700\n"
                                        "less.c 700\nless.c:f 90\n")
    found = {"same.c": 700, "grown.c": 701, "less.c": 680, "less.c:f": 71, "new.c": 601}
    lines = check_sizes.complaints(found, check_sizes.listed())
    assert [line.split(": ")[0] for line in lines] == ["gone.c", "grown.c", "less.c", "new.c"]
    check_sizes.shrink(found)
    assert (tmp_path / "sizes.txt").read_text() == \
        "# why\nsame.c 700\ngrown.c 700\nless.c 680\nless.c:f 71\n"
    lines = check_sizes.complaints(found, check_sizes.listed())
    assert [line.split(": ")[0] for line in lines] == ["grown.c", "new.c"]


def test_a_circle_of_files_is_closed_by_calls_addresses_and_inline_functions() -> None:
    sources = {
        "a.c": "int a_call(void)\n{\n    return b_call();\n}\n",
        "b.c": "static const call table[] = {a_call};\nint b_call(void)\n{\n}\n",
        "c.h": "int d_call(void);\nstatic inline int c_call(void)\n{\n    d_call();\n}\n",
        "d.c": "int d_call(void)\n{\n    c_call();\n}\n",
        # A comment, a text, a declaration and a static function of the same name close none.
        "e.h": "int a_call(void);\n",
        "f.c": "/* a_call */\nstatic int b_call(void)\n{\n    log(\"a_call\");\n}\n"
               "int f_call(void)\n{\n    b_call();\n}\n",
        "g.c": "int g_call(void)\n{\n    a_call();\n}\n",
    }
    needs = check_circles.graph(sources)
    assert needs["g.c"] == {"a.c": {"a_call"}}
    assert check_circles.circles(needs) == [["a.c", "b.c"], ["c.h", "d.c"]]


def test_entries_of_circles_may_not_grow_and_end_when_they_are_not_needed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint_baseline, "LISTS", tmp_path)
    (tmp_path / "circles.txt").write_text("# why\nsame 9\ngrown 9\ngone 9\nless 9\nnear 9\n")
    largest = {"same": 9, "grown": 10, "gone": 2, "less": 6, "near": 7}
    lines = check_circles.complaints(largest, check_circles.listed())
    assert [line.split(": ")[0] for line in lines] == ["grown", "gone", "less"]
    check_circles.shrink(largest)
    assert (tmp_path / "circles.txt").read_text() == "# why\nsame 9\ngrown 9\nless 6\nnear 7\n"
    lines = check_circles.complaints(largest, check_circles.listed())
    assert [line.split(": ")[0] for line in lines] == ["grown"]


def test_a_directory_that_was_clean_may_have_no_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_circles, "CLEAN", ("pairs", "grown"))
    lines = check_circles.unclean({"pairs": 2, "grown": 3, "listed": 9})
    assert [line.split(": ")[0] for line in lines] == ["grown"]


def test_links_to_missing_files_and_headings_are_dead(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_docs, "ROOT", tmp_path)
    (tmp_path / "there.md").write_text("# Here\n")
    document = tmp_path / "a.md"
    text = ("[1](there.md) [2](there.md#here) [3](https://example.org/x)\n"
            "[4](gone.md)\n[5](there.md#elsewhere)\n`[6](gone.md)`\n"
            "```\n[7](gone.md)\n```\n[8](../outside.md)\n")
    found = check_docs.dead_links(document, text)
    assert [line.split(":")[1] for line in found] == ["2", "3", "8"]


def test_the_baseline_refuses_new_files_and_files_that_are_clean(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint_baseline, "LISTS", tmp_path)
    (tmp_path / "names.txt").write_text("# why\nclean.c\ndirty.c\n")
    found = {"dirty.c": ["dirty.c: x"], "new.c": ["new.c: x"]}
    lines = lint_baseline.complaints("names", found)
    assert [line.split(":")[0] for line in lines] == ["new.c", "clean.c"]
    lint_baseline.shrink("names", set(found))
    assert (tmp_path / "names.txt").read_text() == "# why\ndirty.c\n"
    lint_baseline.shrink("names", set())
    assert not (tmp_path / "names.txt").exists()


def test_a_source_in_no_list_and_one_listed_twice_are_found(tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    for name in ("a.c", "b.c", "c.c"):
        (part / name).touch()
    (part / "sources.cmake").write_text(
        "set(SOURCES\n    a.c\n    b.c\n)\nset(RV64_SOURCES\n    b.c\n)\n")
    found = check_sources.complaints(tmp_path)
    assert len(found) == 2
    assert "b.c twice" in found[0] and "part/c.c" in found[1]


@pytest.mark.parametrize("text", [
    "subprocess.run(['true'])", "subprocess.check_call(x, check=True)",
    "child.communicate()", "self.process.wait()",
])
def test_a_wait_for_a_process_needs_a_time_limit(text: str) -> None:
    assert len(check_timeouts.waits_without_limit(ast.parse(text))) == 1


@pytest.mark.parametrize("text", [
    "subprocess.run(['true'], timeout=1)", "child.communicate(timeout=1)",
    "process.wait(5)", "machine.wait(lambda: True, 'x')", "event.wait()",
    "async def f():\n    await process.wait()",
])
def test_other_waits_need_no_time_limit(text: str) -> None:
    assert check_timeouts.waits_without_limit(ast.parse(text)) == []


def test_a_comment_with_a_reason_permits_a_wait_without_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("subprocess.run(x)  # no timeout: the user ends it\n"
                    "subprocess.run(x)\n")
    assert [line.split(":")[1] for line in check_timeouts.complaints(path, "a.py")] == ["2"]


def test_a_file_names_its_folders_licence(tmp_path: Path) -> None:
    path = tmp_path / "x.c"
    path.write_text("/* SPDX-License-Identifier: BSD-2-Clause */\n")
    assert check_licences.complaint("lib/x.c", path) == ""
    assert "GPL-2.0-or-later" in check_licences.complaint("hw-model/qemu/x.c", path)


def test_what_is_linked_has_a_row_with_its_licence_in_the_readme() -> None:
    readme = (lints.TOP / "README.md").read_text(encoding="utf-8")
    used = check_licences.others(lints.TOP)
    assert {"libsodium", "mbedtls", "picolibc", "qemu"} <= used
    assert check_licences.readme_complaints(readme, used) == []
    without = "".join(line for line in readme.splitlines(True)
                      if not line.startswith("| libsodium"))
    assert "libsodium | ISC" in check_licences.readme_complaints(without, used)[0]
    other = readme.replace("| Mbed TLS | Apache-2.0 or GPL-2.0-or-later |", "| Mbed TLS | MIT |")
    assert "Mbed TLS | Apache-2.0" in check_licences.readme_complaints(other, used)[0]
    assert "libsodium, which the build does not use" in \
        check_licences.readme_complaints(readme, used - {"libsodium"})[0]


def test_a_library_that_is_new_to_the_build_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)\n")
    found = check_licences.readme_complaints("", check_licences.others(tmp_path))
    assert "add zlib" in found[0]


def test_the_texts_of_licences_are_those_that_files_have() -> None:
    assert check_licences.texts_complaints(
        {"BSD-2-Clause.txt", "GPL-2.0-or-later.txt"}) == []
    assert check_licences.texts_complaints({"BSD-2-Clause.txt", "MIT.txt"}) == [
        "LICENSES/GPL-2.0-or-later.txt: is missing", "LICENSES/MIT.txt: no file has it"]


def test_every_error_of_the_tools_has_one_base_class() -> None:
    for path in (lints.TOP / "tools/essd").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and path.name != "errors.py":
                bases = [ast.unparse(base) for base in node.bases]
                assert not {"Exception", "RuntimeError", "ValueError"} & set(bases), path


def test_a_program_that_hangs_fails_a_build(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fw_build, "BUILD_S", 0.1)
    with pytest.raises(errors.EssdError, match="waiting did not end within 0.1 s"):
        fw_build.run_logged(["sleep", "30"], tmp_path / "log", "waiting")


def test_a_program_that_hangs_is_reported_in_one_line(
        monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def hang(**_: object) -> None:
        lints.subprocess.run(["sleep", "30"], timeout=0.1)
    monkeypatch.setattr(cli, "app", hang)
    with pytest.raises(SystemExit):
        cli.main()
    assert "sleep did not end within" in capsys.readouterr().err


def test_the_version_has_one_place_and_an_entry_in_the_changes(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["essd", "--version"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    assert capsys.readouterr().out == f"essd {fw_build.version()}\n"
    changes = (lints.TOP / "CHANGELOG.md").read_text(encoding="utf-8")
    assert changes.split("\n## ")[1].startswith(fw_build.version() + " ")


def test_an_unknown_lint_is_refused_and_a_failed_one_is_named(
        monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.EssdError, match="there is no lint frob; the lints are"):
        lints.run_lints(["frob"], every=False)
    monkeypatch.setitem(lints.LINTS, "ruff",
                        lambda every: [[sys.executable, "-c", "exit(1)"]])
    with pytest.raises(errors.EssdError, match="these lints found mistakes: ruff"):
        lints.run_lints(["ruff"], every=False)


def test_lints_do_not_enter_the_build_folder(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that runs at the same time removes folders that the walk has seen."""
    for name in ("build/native/gone.c", ".git/gone.c", "net/kept.c"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.touch()
    entered: list[str] = []

    def scandir(folder: str) -> object:
        entered.append(Path(folder).relative_to(tmp_path).as_posix())
        return real(folder)

    real = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    assert lint_baseline.files("*.c", root=tmp_path) == [tmp_path / "net/kept.c"]
    assert entered == [".", "net"]
