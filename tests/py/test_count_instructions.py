# SPDX-License-Identifier: BSD-2-Clause
"""tools/count_instructions.py: callgrind's file, and the comparison."""
import importlib.util
import pathlib
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("count_instructions",
                                              TOP / "tools/count_instructions.py")
assert SPEC is not None and SPEC.loader is not None
count_instructions = importlib.util.module_from_spec(SPEC)
sys.modules["count_instructions"] = count_instructions
SPEC.loader.exec_module(count_instructions)

# An extract of what callgrind 3.19 writes: drive_turn() costs 7 and calls
# loop_turn(), which costs 40 + 2 and calls itself at a deeper level.
CALLGRIND = """\
positions: line
events: Ir
summary: 59

ob=(1) native_cost
fl=(1) drive.c
fn=(1) drive_turn
10 3
+5 4
cfi=(2) loop.c
cfn=(2) loop_turn
calls=2 60
* 52

fl=(2)
fn=(2)
60 40
+1 2
cfn=(3) loop_turn'2
calls=1 60
* 10

fn=(3)
60 10
"""


def test_the_cost_of_a_call_counts_for_the_function_that_is_called():
    counted = count_instructions.read_callgrind(CALLGRIND.splitlines())
    assert counted.by_function == {"drive_turn": 7, "loop_turn": 52}
    assert counted.total == 59


def test_what_is_not_counted_is_switched_off_and_exists(tmp_path, monkeypatch):
    """A program in valgrind's place keeps its options and counts nothing."""
    tool = tmp_path / "valgrind"
    tool.write_text(f"""#!/bin/sh
printf '%s\\n' "$@" > {tmp_path}/words
for word; do case $word in --callgrind-out-file=*) : > "${{word#*=}}.1";; esac; done
""")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    count_instructions.run(tmp_path / "native_cost", "4k-read-qd1", 1)
    words = dict(word.split("=", 1) for word in (tmp_path / "words").read_text().split()
                 if word.startswith(("--zero", "--dump")))
    assert words == {"--zero-before": "cost_begins", "--dump-before": "cost_ends"}
    toggled = {word.partition("=")[2] for word in (tmp_path / "words").read_text().split()
               if word.startswith("--toggle-collect=")}
    assert toggled == {"drive_turn", "hw_nand_move", "native_world_charge"}
    sources = "".join(path.read_text()
                      for folder in ("firmware/native", "hw-model/nand", "tests/bench")
                      for path in sorted((TOP / folder).glob("*.c")))
    for name in (*toggled, *words.values()):
        assert f" {name}(" in sources


def test_a_program_that_does_not_say_what_counts_is_refused(tmp_path, monkeypatch):
    tool = tmp_path / "valgrind"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(count_instructions.CountError, match="has not called cost_ends"):
        count_instructions.run(tmp_path / "native_cost", "4k-read-qd1", 1)


@pytest.mark.parametrize(("workload", "commands"), [
    ("4k-read-qd1", 1000), ("nand-pi512-4k-read-qd64", 1000), ("128k-write-qd1", 200),
    ("nand-128k-write-qd1", 200), ("1m-read-qd1", 200)])
def test_a_figure_is_of_one_command(monkeypatch, workload, commands):
    def run(binary, name, count):
        return count_instructions.Count(
            count_instructions.Counter({"loop_turn": 3 * count}))
    asked = []
    monkeypatch.setattr(count_instructions, "run",
                        lambda *words: asked.append(words[2]) or run(*words))
    assert count_instructions.count(TOP, workload) == {"loop_turn": 3}
    assert asked == [commands]


def test_with_another_compiler_only_named_workloads_are_counted(monkeypatch, capsys):
    counted = []
    monkeypatch.setattr(count_instructions, "compiler", lambda: "gcc 0.1")
    monkeypatch.setattr(count_instructions, "build", lambda: None)
    monkeypatch.setattr(count_instructions, "count",
                        lambda binary, name: counted.append(name) or {"loop_turn": 1.0})
    assert count_instructions.main([]) == 0
    assert "this is gcc 0.1, so nothing is compared" in capsys.readouterr().out
    assert counted == []
    assert count_instructions.main(["4k-read-qd1"]) == 0
    assert counted == ["4k-read-qd1"]


def test_a_workload_may_need_as_much_more_as_is_allowed():
    lines, worse = count_instructions.judge({"4k-read-qd1": 1000}, {"4k-read-qd1": 1020}, 2.0)
    assert "+2.0 %" in lines[0]
    assert not worse


def test_a_workload_that_needs_too_much_is_named_with_its_figures():
    _, worse = count_instructions.judge({"4k-read-qd1": 1000, "4k-write-qd1": 1000},
                                        {"4k-read-qd1": 1021, "4k-write-qd1": 900}, 2.0)
    assert worse == ["4k-read-qd1 needs 1021 instructions instead of 1000 "
                     "(+2.1 %, allowed are +2.0 %)"]


def test_a_workload_without_a_figure_is_shown_and_not_judged():
    lines, worse = count_instructions.judge({}, {"1m-read-qd1": 5}, 2.0)
    assert "no figure" in lines[0]
    assert not worse


def test_figures_that_are_kept_can_be_read_again(tmp_path):
    path = tmp_path / "instructions.toml"
    count_instructions.write(path, 2.0, {"4k-read-qd1": 5392})
    file = count_instructions.tomllib.loads(path.read_text())
    assert file["instructions"] == {"4k-read-qd1": 5392}
    assert file["tolerance_percent"] == 2.0
    assert file["compiler"] == count_instructions.compiler()
