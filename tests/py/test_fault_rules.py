# SPDX-License-Identifier: BSD-2-Clause
"""The language of fault rules, and the supervisor's keeping of them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from essd import cli
from essd.base.errors import EssdError, Mistakes
from essd.drive import fault_rules, fault_words
from essd.drive.fault_rules import Wrong, parse_line
from essd.instance.config import Config, Drive as DriveConfig, Link
from essd.instance.instance import Instance
from essd.supervisor.channel import Refused
from essd.supervisor.fault_keeper import FaultKeeper
from essd.supervisor.supervisor import Supervisor

LINES = {
    "wire port=0 direction=in nvme.opcode=read when nth=3 do drop":
        "id=1 site=wire do=drop argument=0 ports=1 directions=1 field=6:0:1:ff:2:2 nth=3",
    "wire bth.opcode=ack do delay=5ms":
        "id=1 site=wire do=delay argument=5000000 field=5:0:1:ff:11:11",
    "wire bth.psn=0x10-0x1f do corrupt=9":
        "id=1 site=wire do=corrupt argument=9 field=5:9:3:ffffff:10:1f",
    "wire vlan.priority=3 vlan.id=100 do reorder":
        "id=1 site=wire do=reorder argument=1 field=1:0:2:e000:6000:6000 "
        "field=1:0:2:fff:64:64",
    "wire eth.src=02:e5:5e:00:00:01 ip.dst=10.0.0.10 do duplicate":
        "id=1 site=wire do=duplicate argument=0 "
        "field=0:6:6:ffffffffffff:2e55e000001:2e55e000001 "
        "field=2:16:4:ffffffff:a00000a:a00000a",
    "wire tcp.flags=syn,no-ack tcp.dst=7 do zero-window":
        "id=1 site=wire do=zero-window argument=0 field=7:13:1:12:2:2 "
        "field=7:2:2:ffff:7:7",
    "wire direction=out tcp.data=yes tcp.seq=1-9 when nth=2 do bad-checksum":
        "id=1 site=wire do=bad-checksum argument=0 directions=2 field=8:0:1:ff:0:ff "
        "field=7:4:4:ffffffff:1:9 nth=2",
    "wire direction=in aoe.ata=write-ext aoe.minor=2 do drop":
        "id=1 site=wire do=drop argument=0 directions=1 field=0:12:2:ffff:88a2:88a2 "
        "field=0:27:1:ff:34:34 field=0:18:1:ff:2:2",
    "wire aoe.answer=1 do delay=5ms":
        "id=1 site=wire do=delay argument=5000000 field=0:12:2:ffff:88a2:88a2 "
        "field=0:14:1:8:8:8",
    "wire ip6.src=fe80::1 do drop":
        "id=1 site=wire do=drop argument=0 "
        "field=3:8:8:ffffffffffffffff:fe80000000000000:fe80000000000000 "
        "field=3:16:8:ffffffffffffffff:1:1",
    "rdma request=send qpn=0x805 when probability=0.5 seed=4 do rnr":
        "id=1 site=rdma do=rnr argument=14 ops=1 qpn=2053 chance=2147483648 seed=4",
    "rdma direction=in qpn=0x805 do transfer":
        "id=1 site=rdma do=transfer argument=0 directions=1 qpn=2053",
    "rdma qpn=0x805 when nth=2 do bad-checksum":
        "id=1 site=rdma do=bad-checksum argument=0 qpn=2053 nth=2",
    "rdma do nak=remote-access": "id=1 site=rdma do=nak argument=2",
    "media operation=read,flush lba=8-15 when every=3 after=2 times=4 do error":
        "id=1 site=media do=error argument=0 ops=9 first=4096 end=8192 every=3 after=2 "
        "times=4",
    "nand operation=program channel=1 die=0 block=7-9 when nth=2 do error":
        "id=1 site=nand do=error argument=0 ops=2 place=0:1:1 place=1:0:0 place=3:7:9 nth=2",
    "nand operation=read page=2 unit=1 do bits=60":
        "id=1 site=nand do=bits argument=60 ops=1 place=5:2:2 place=6:1:1",
    "nand operation=erase block=7 when nth=2 do power-cut=during":
        "id=1 site=nand do=power-cut argument=1 ops=4 place=3:7:7 nth=2",
    "nand do power-cut=before": "id=1 site=nand do=power-cut argument=0",
    "nand do power-cut": "id=1 site=nand do=power-cut argument=0",
    "nand die=3 do die": "id=1 site=nand do=die argument=0 place=1:3:3",
    "media do stuck": "id=1 site=media do=stuck argument=0",
    "media lba=8-15 when times=1 do bits=2":
        "id=1 site=media do=bits argument=2 first=4096 end=8192 times=1",
}


@pytest.mark.parametrize("line", LINES)
def test_a_rule_is_translated_for_the_model(line: str) -> None:
    rule = parse_line(line)
    assert rule.text() == line
    assert rule.for_model(1) == LINES[line]


def test_a_rule_is_translated_for_the_firmware() -> None:
    rule = parse_line("nvme queue=io opcode=write lba=0x10-0x20 nsid=1 controller=257 "
                      "when nth=2 do status=unrecovered-read-error")
    assert rule.for_firmware(5) == {
        "rule": 5, "do": "status", "status": 0x281, "queue": "io", "opcode": 1,
        "first-lba": 16, "last-lba": 32, "nsid": 1, "controller": 257, "nth": 2}
    for status in ("unrecovered-read-error,dnr", "0x4281", "0x281,dnr"):
        rule = parse_line(f"nvme do status={status}")
        assert rule.for_firmware(1) == {"rule": 1, "do": "status", "status": 0x4281}
    assert parse_line("nvme queue=3 do delay=20ms").for_firmware(1) == {
        "rule": 1, "do": "delay", "delay-us": 20000, "qid": 3}
    assert parse_line("pdu direction=in type=h2c-data queue=io when nth=3 do data-digest"
                      ).for_firmware(4) == {
        "rule": 4, "place": "pdu", "do": "data-digest", "directions": 1, "type": 6,
        "queue": "io", "nth": 3}
    assert parse_line("pdu do reset").for_firmware(5) == {
        "rule": 5, "place": "pdu", "do": "reset"}
    assert parse_line("nvme queue=admin opcode=identify do drop").for_firmware(1) == {
        "rule": 1, "do": "drop", "queue": "admin", "opcode": 6}


@pytest.mark.parametrize(("line", "text"), [
    ("", "a rule is empty: write for example wire port=0 do drop"),
    ("sea do drop", "sea: no such place for faults; did you mean media?"),
    ("wire prt=0 do drop", "prt: wire rules do not match this; did you mean port?"),
    ("wire port=2 do drop", "port: 2 is not between 0 and 1"),
    ("wire port=0", "a rule ends with `do` and one action, such as do drop"),
    ("wire port=0 do", "a rule ends with `do` and one action, such as do drop"),
    ("wire do drop now", "a rule ends with `do` and one action, such as do drop"),
    ("wire tcp.flags=rsst do drop", "tcp.flags: rsst: unknown flag; did you mean rst?"),
    ("wire tcp.flags=syn,no-syn do drop", "tcp.flags: syn: the flag occurs twice"),
    ("wire tcp.data=no do drop", "tcp.data: no: write yes, or leave the key out"),
    ("wire do zero-window=1", "zero-window takes no argument"),
    ("wire do delay", "delay needs a value: delay=5ms"),
    ("wire do delay=", "delay=: a value is missing after ="),
    ("wire do delay=5", "5 is not a duration such as 5ms, 20us or 1.5s"),
    ("wire do drop=3", "drop takes no argument"),
    ("wire bth.opcode=akc do drop", "bth.opcode: akc: unknown name; did you mean ack?"),
    ("wire bth.psn=9-3 do drop", "bth.psn: 9-3: the range ends before it begins"),
    ("wire ip.src=fe80::1 do drop", "ip.src: fe80::1 is not an IPv4 address"),
    ("wire ip.src=10.0.0 do drop", "ip.src: 10.0.0 is not an IP address"),
    ("wire eth.src=2:3 do drop",
     "eth.src: 2:3 is not a MAC address such as 02:e5:5e:00:00:01"),
    ("wire nth=3 do drop", "nth: this belongs after `when`, as in when nth=3"),
    ("wire when nth=0 do drop", "nth: events are counted from 1"),
    ("wire when nth=x do drop", "nth: x is not a number"),
    ("wire when probability=2 do drop", "probability: 2 is not between 0 and 1"),
    ("wire when nht=1 do drop", "nht: unknown condition; did you mean nth?"),
    ("wire when nth=1 when nth=2 do drop", "when stands twice"),
    ("wire port=0 port=1 do drop", "port: the key occurs twice"),
    ("wire port do drop", "port: write key=value"),
    ("wire name=a/b do drop",
     "a/b: a name has up to 40 letters, digits, ., _ and -"),
    ("pdu do drop",
     "drop: pdu rules cannot do this; use one of header-digest, data-digest, reset"),
    ("pdu type=r2d do reset", "r2d: unknown name; did you mean r2t?"),
    ("pdu nsid=1 do reset", "nsid: pdu rules do not match this; use one of direction, type, queue"),
    ("nvme do nak=remote-access",
     "nak: nvme rules cannot do this; use one of status, delay, drop"),
    ("nvme opcode=reaad do drop", "opcode: reaad: unknown name; did you mean read?"),
    ("nvme lba=5-3 do drop", "lba: 5-3: the range ends before it begins"),
    ("nvme do status=0x800",
     "0x800 has bits beside status code type, status code and DNR (0x47ff)"),
    ("nvme do status=0x8000", "0x8000 is not between 0 and 18431"),
    ("nvme do status=internal-error,drn",
     "internal-error,drn: unknown name; did you mean internal-error?"),
    ("rdma do nak=remote", "remote: unknown NAK; did you mean remote-access?"),
    ("rdma request=send do transfer", "request: an rdma rule with transfer has no such key"),
    ("rdma request=send do bad-checksum",
     "request: an rdma rule with bad-checksum has no such key"),
    ("rdma direction=in do bad-checksum",
     "direction: an rdma rule with bad-checksum has no such key"),
    ("rdma direction=out do rnr", "direction: an rdma rule with rnr has no such key"),
    ("rdma do rnr=32", "32 is not between 0 and 31"),
    ("media operation=write do bits=2",
     "operation: a media rule with bits has no such key"),
    ("media do bits", "bits needs a value: bits=60"),
    ("media do bits=0", "bits: bits and frames are counted from 1"),
    ("media operation=reed do error",
     "operation: reed: unknown name; did you mean read?"),
])
def test_a_wrong_rule_is_refused_in_one_line(line: str, text: str) -> None:
    with pytest.raises(Wrong) as refused:
        parse_line(line)
    assert str(refused.value) == text


def test_a_rule_compares_at_most_eight_fields() -> None:
    fields = [f"{name}=1" for name in ("vlan.id", "vlan.priority", "ip.dscp", "udp.src",
                                       "udp.dst", "bth.qpn", "bth.psn", "nvme.cid")]
    parse_line(f"wire {' '.join(fields)} do drop")
    with pytest.raises(Wrong, match="at most 8 fields"):
        parse_line(f"wire {' '.join(fields)} nvme.nsid=1 do drop")


GOOD = """
- name: lose-third-read
  wire: {direction: in, nvme.opcode: read}
  when: {nth: 3}
  do: drop
- media: {operation: [read, write], lba: 0-2047}
  do: {delay: 20ms}
- nvme name=f opcode=flush do status=internal-error
- wire:
  do: drop
"""


def test_rules_are_read_from_yaml() -> None:
    rules = fault_rules.load_text(GOOD, "f.yaml")
    assert [rule.text() for rule in rules] == [
        "wire direction=in nvme.opcode=read when nth=3 do drop",
        "media operation=read,write lba=0-2047 do delay=20ms",
        "nvme opcode=flush do status=internal-error", "wire do drop"]
    assert [rule.name for rule in rules] == ["lose-third-read", "", "f", ""]
    assert len(fault_rules.load_text("faults:\n- wire do drop\n", "f")) == 1


@pytest.mark.parametrize(("text", "mistakes"), [
    ("- nvme: {opcode: reaad}\n  do: drop\n",
     ["f.yaml:1:18: opcode: reaad: unknown name; did you mean read?"]),
    ("- meedia: {}\n  do: error\n- wire: {prt: 1}\n  do: drop\n",
     ["f.yaml:1:3: meedia: unknown key; did you mean media?",
      "f.yaml:3:10: prt: wire rules do not match this; did you mean port?"]),
    ("- wire port=7 do drop\n", ["f.yaml:1:3: port: 7 is not between 0 and 1"]),
    ("- do: drop\n", ["f.yaml:1:3: the rule names no place: add one of wire, rdma, pdu, "
                      "nvme, media, nand"]),
    ("- wire: {}\n  media: {}\n  do: error\n",
     ["f.yaml:2:3: media: the rule has a place already, wire"]),
    ("- wire: {}\n  do: {delay: 1ms, drop: 1}\n",
     ["f.yaml:2:7: do needs one action"]),
    ("- {name: a, wire: , do: drop}\n- {name: a, wire: , do: drop}\n",
     ["f.yaml:2:3: a: another rule has this name"]),
    ("- [1]\n", ["f.yaml:1:3: a rule is a line of words, or a mapping"]),
    ("wire: 1\n", ["f.yaml:1:1: the file must be a list of rules"]),
    ("", ["f.yaml: the file is empty"]),
    ("- {a: [\n", ["f.yaml:2:1: not valid YAML: expected the node content, but found "
                   "'<stream end>'"]),
])
def test_each_mistake_in_yaml_has_its_place(text: str, mistakes: list[str]) -> None:
    with pytest.raises(Mistakes) as found:
        fault_rules.load_text(text, "f.yaml")
    assert found.value.lines == mistakes


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(EssdError, match="No such file or directory"):
        fault_rules.load_file(tmp_path / "none.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EssdError, match="the file is not UTF-8 text"):
        fault_rules.load_file(binary)
    with pytest.raises(EssdError, match="Is a directory"):
        fault_rules.load_file(tmp_path)
    with pytest.raises(EssdError, match="the file is too long: it may have 1 MiB at most"):
        fault_rules.load_file(Path("/dev/zero"))


BOMB = "- &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"- &{name} [{','.join([f'*{last}'] * 10)}]\n"
    for last, name in zip("abcdefg", "bcdefgh", strict=True))


@pytest.mark.parametrize(("text", "mistake"), [
    ("- ? [a, b]\n  : c\n", "f:1:5: this must be one word"),
    ("- wire: {? [a, b] : c}\n  do: drop\n", "f:1:12: this must be one word"),
    ("? [a, b]\n: c\n", "f:1:1: the file must be a list of rules"),
    ("- wire: {port: {a: b}}\n  do: drop\n", "f:1:16: this must be one word"),
    ("- wire: {port: ' 0'}\n  do: drop\n",
     "f:1:16: this must be one word, without spaces"),
    ("- name: a\n  name: b\n  wire:\n  do: drop\n", "f:2:3: name: the key occurs twice"),
    ("- wire do\x01drop\n", "f:1:10: not valid YAML: the character #x0001 is not allowed"),
    (BOMB + "- name: *h\n  wire:\n  do: drop\n", "f:8:3: this must be one word"),
])
def test_a_file_of_strange_yaml_gets_a_line_for_each_mistake(text: str, mistake: str) -> None:
    with pytest.raises(Mistakes) as mistakes:
        fault_rules.load_text(text, "f")
    assert str(mistakes.value).splitlines()[-1] == mistake


@pytest.mark.parametrize(("line", "text"), [
    (f"wire do delay={'9' * 400}s", "is more than an hour"),
    ("wire do delay=99999999999s", "99999999999s is more than an hour"),
    ("nvme opcode=1-5 do drop", "opcode: 1-5: this cannot be a range"),
    ("nvme do status=0x280-0x281", "0x280-0x281: this cannot be a range"),
    ("nvme do status=0", "0: this status means success"),
    ("nvme do status=0x4000", "0x4000: this status means success"),
    ("wire do corrupt=0", "corrupt: bits and frames are counted from 1"),
    ("wire do reorder=0", "reorder: bits and frames are counted from 1"),
    ("nand do power-cut=after", "after: unknown moment of a power cut; use one of before, during"),
    ("wire do power-cut=during", "power-cut takes no argument"),
])
def test_a_number_that_no_drive_accepts_is_refused(line: str, text: str) -> None:
    with pytest.raises(Wrong, match=text):
        parse_line(line)


# The supervisor's keeper

class Drive:
    """A drive that records what it is told, and whose firmware refuses as the real one."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.firmware: set[int] = set()     # numbers of the rules in it
        self.model: set[int] = set()
        self.refused = 0        # number of the rule that the firmware refuses
        self.keeper = FaultKeeper(self.execute, self.ask)   # with a block medium

    async def execute(self, command: str, arguments: dict[str, Any]) -> object:
        if command == "qom-get":
            return [{"id": number, "on": True, "matched": 5, "fired": 2}
                    for number in sorted(self.model)]
        assert command == "qom-set" and arguments["path"] == "/machine/faults"
        if arguments["property"] == "add":
            self.model.add(int(arguments["value"].split()[0].removeprefix("id=")))
        elif arguments["property"] == "remove":
            self.model.remove(arguments["value"])
        self.told.append((arguments["property"], arguments["value"]))
        return {}

    async def ask(self, request: str, arguments: dict[str, Any]) -> Any:
        if request == "faults":
            return {"faults": [{"rule": number, "matched": 9, "fired": 1}
                               for number in sorted(self.firmware)]}
        number = arguments["rule"]
        self.told.append((request, number))
        if number == self.refused or \
                (request == "fault-add") == (number in self.firmware):
            raise Refused("refused", "no")
        if request == "fault-add":
            self.firmware.add(number)
        elif request == "fault-remove":
            self.firmware.remove(number)
        return {}

    def add(self, *lines: str, is_running: bool = True) -> list[str]:
        return asyncio.run(self.keeper.add([{"rule": line} for line in lines], is_running))


MODEL, FIRMWARE = "wire do drop", "nvme do drop"
MODEL_WORDS = "id=1 site=wire do=drop argument=0"


def test_rules_reach_model_and_firmware_and_leave_them() -> None:
    drive = Drive()
    assert drive.add(MODEL, FIRMWARE) == ["rule-1", "rule-2"]
    asyncio.run(drive.keeper.turn(["rule-1", "rule-2"], False, True))
    asyncio.run(drive.keeper.turn([], False, True))     # they are off already
    asyncio.run(drive.keeper.turn(["rule-2"], True, True))
    asyncio.run(drive.keeper.remove([], True))
    assert drive.told == [("add", MODEL_WORDS), ("fault-add", 2), ("turn-off", 1),
                          ("fault-turn", 2), ("fault-turn", 2), ("remove", 1),
                          ("fault-remove", 2)]


def test_rules_are_given_again_when_the_drive_starts() -> None:
    drive = Drive()
    drive.add(MODEL, FIRMWARE, is_running=False)
    assert drive.told == []
    asyncio.run(drive.keeper.turn(["rule-1"], False, False))
    asyncio.run(drive.keeper.started())
    asyncio.run(drive.keeper.booted())
    assert drive.told == [("add", MODEL_WORDS), ("turn-off", 1), ("fault-add", 2)]


def test_a_rule_that_is_added_while_the_machine_starts_is_there_once() -> None:
    drive = Drive()
    drive.add(MODEL, is_running=False)
    drive.add(MODEL)            # its monitor answers already; started() comes later
    asyncio.run(drive.keeper.started())
    added = [value for name, value in drive.told if name == "add"]
    assert sorted(added) == [MODEL_WORDS, MODEL_WORDS.replace("id=1", "id=2")]


def test_rules_are_reported_with_their_counters() -> None:
    drive = Drive()
    drive.add(MODEL, FIRMWARE)
    assert asyncio.run(drive.keeper.report(True)) == [
        {"name": "rule-1", "site": "wire", "rule": MODEL, "on": True, "matched": 5,
         "fired": 2},
        {"name": "rule-2", "site": "nvme", "rule": FIRMWARE, "on": True, "matched": 9,
         "fired": 1}]


def test_a_rule_that_cut_the_power_is_off_and_named(tmp_path: Path) -> None:
    drive = Drive()
    drive.add("wire name=cut when nth=3 do power-cut")
    log = tmp_path / "drive.log"
    assert drive.keeper.cut_by(log) == ""
    log.write_text("$ qemu\nqemu-system-riscv64: info: fault rule 9 cuts the power\n")
    assert drive.keeper.cut_by(log) == ""
    log.write_text("$ qemu\nqemu-system-riscv64: info: fault rule 1 cuts the power\n")
    assert drive.keeper.cut_by(log) == "cut"
    report = asyncio.run(drive.keeper.report(False))
    assert (report[0]["on"], report[0]["fired"]) == (False, 1)


@pytest.mark.parametrize(("has_nand", "line", "said"), [
    (True, "media operation=read do error", "use a rule for nvme or nand, or a drive with a "
                                            "block medium"),
    (False, "nand operation=read do error", "created with a block medium")])
def test_a_rule_for_a_medium_that_the_drive_does_not_have_is_refused(
        has_nand: bool, line: str, said: str) -> None:
    drive = Drive()
    drive.keeper.has_nand = has_nand
    with pytest.raises(ValueError, match=said):
        drive.add(line)
    drive.keeper.has_nand = not has_nand
    assert drive.add(line) == ["rule-1"]


def test_what_makes_no_sense_adds_no_rule_at_all() -> None:
    drive = Drive()
    with pytest.raises(ValueError, match="sea: no such place"):
        drive.add(MODEL, "sea do drop")
    drive.add("wire name=a do drop")
    with pytest.raises(ValueError, match="a: another fault rule has this name"):
        drive.add(MODEL, "wire name=a do drop")
    with pytest.raises(ValueError, match="at most 32 fault rules"):
        drive.add(*[MODEL] * 32)
    assert len(drive.keeper.rules) == 1
    with pytest.raises(ValueError, match="b: no fault rule has this name"):
        drive.keeper.find("b")
    with pytest.raises(ValueError, match="at most 16 fault rules for nvme"):
        drive.add(*[FIRMWARE] * 17)
    with pytest.raises(ValueError, match="a name has up to 40 letters"):
        asyncio.run(drive.keeper.add([{"rule": MODEL, "name": "a\x1b[2J"}], True))
    assert len(drive.keeper.rules) == 1


def test_a_rule_that_the_firmware_refuses_takes_the_others_of_its_file_back() -> None:
    drive = Drive()
    drive.refused = 3
    with pytest.raises(Refused):
        drive.add(MODEL, FIRMWARE, FIRMWARE)
    assert drive.told[3:] == [("remove", 1), ("fault-remove", 2)]
    assert not drive.keeper.rules and not drive.firmware


def test_a_loaded_state_gets_the_rules_of_now_and_loses_those_of_then() -> None:
    drive = Drive()
    drive.add(FIRMWARE, FIRMWARE)
    asyncio.run(drive.keeper.remove(["rule-1"], False))     # after it was saved
    drive.add(FIRMWARE, is_running=False)
    asyncio.run(drive.keeper.booted())
    assert drive.firmware == {2, 3}
    asyncio.run(drive.keeper.remove([], False))
    assert drive.keeper.must_renew
    asyncio.run(drive.keeper.booted())
    assert not drive.firmware


def test_a_rule_can_be_named_twice_and_be_gone_from_firmware_that_restarted() -> None:
    drive = Drive()
    drive.add(FIRMWARE, FIRMWARE)
    drive.firmware.clear()
    asyncio.run(drive.keeper.turn(["rule-2"], False, True))
    asyncio.run(drive.keeper.remove(["rule-1", "rule-1"], True))
    assert [(kept.number, kept.is_on) for kept in drive.keeper.rules] == [(2, False)]


def test_a_rule_that_could_not_be_removed_is_still_listed() -> None:
    drive = Drive()
    drive.add(FIRMWARE)

    async def be_silent(_request: str, _arguments: dict[str, Any]) -> Any:
        raise ValueError("the drive did not answer")
    drive.keeper.ask = be_silent
    with pytest.raises(ValueError, match="did not answer"):
        asyncio.run(drive.keeper.remove([], True))
    assert len(drive.keeper.rules) == 1


@pytest.mark.parametrize("words", [
    ["faults", "--name", "lab", "--part", "drive1", "add", "wire do drop"],
    ["faults", "add", "wire do drop", "--name", "lab", "--part", "drive1"]])
def test_name_and_part_may_stand_before_or_after_the_subcommand(
        words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ask(instance: Instance, command: str, **arguments: Any) -> Any:
        asked.append((instance.name, command, arguments["part"], arguments["do"]))
        return ["rule-1"]

    monkeypatch.setattr(Instance, "ask", ask)
    result = CliRunner().invoke(cli.app, words)
    assert result.exit_code == 0, result.output
    assert asked == [("lab", "faults", "drive1", "add")]


def test_a_loaded_state_is_rid_of_rules_that_this_supervisor_never_saw(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed: list[str] = []

    async def start_drive(*more: str) -> list[str]:
        supervisor = Supervisor(tmp_path, Config(
            "unit", "", "tcg", [Link(0, ["10.0.0.10/24"])],
            drives={"drive": DriveConfig("/qemu", "flash", "media", "raw", "nqn")}))
        part = supervisor.parts["drive"]

        async def start(*_more: str) -> None:
            part.state = "running"

        async def nothing(*_arguments: Any) -> None:
            return

        async def booted() -> None:
            renewed.append("drive")

        monkeypatch.setattr(part, "start", start)
        monkeypatch.setattr(part, "execute", nothing)
        monkeypatch.setattr(supervisor.cables, "ask_links", nothing)
        monkeypatch.setattr(supervisor.faults["drive"], "booted", booted)
        await supervisor.start_part("drive", *more)
        await asyncio.gather(*part.tasks)
        return renewed

    assert asyncio.run(start_drive()) == []
    assert asyncio.run(start_drive("-incoming", "defer")) == ["drive"]


# What the words mean

def test_each_key_and_action_has_words_and_there_are_no_others() -> None:
    assert list(fault_words.PLACES) == list(fault_rules.SITES)
    assert set(fault_words.KEYS["when"]) == set(fault_rules.WHENS)
    for place in fault_rules.SITES:
        assert set(fault_words.KEYS[place]) == set(fault_rules.MATCHES[place]), place
        assert set(fault_words.ACTIONS[place]) == set(fault_rules.ACTIONS[place]), place


def test_the_words_are_printed_without_a_drive() -> None:
    run = CliRunner()
    everything = run.invoke(cli.app, ["faults", "words"])
    assert everything.exit_code == 0
    for place in (*fault_rules.SITES, "when"):
        said = run.invoke(cli.app, ["faults", "words", place]).output
        assert said in everything.output, place
        assert max(map(len, said.splitlines())) <= fault_words.COLUMNS
    with pytest.raises(EssdError, match="nadn: no such place for faults; did you mean nand"):
        fault_words.text("nadn")
