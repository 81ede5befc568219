# SPDX-License-Identifier: BSD-2-Clause
"""`essd trace`: the decoder and printer, with records like those of the drive."""

import base64
import io
import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from essd import cli
from essd.base.errors import EssdError
from essd.base.paths import TOP
from essd.instance.instance import Instance
from essd.observe import trace

NUMBERS = {kind.name: number for number, kind in enumerate(trace.KINDS)}


def record(name: str, *args: int, source: int = 0, qpn: int = 0x802, request: int = 7,
           texts: int = 0, time_ns: int = 1_500_000_000) -> bytes:
    words = [*args, *[0] * (11 - len(args))]
    return trace.RECORD.pack(time_ns, NUMBERS[name], source, texts, qpn, request) + \
        trace.ARGS.pack(*words)


def text(characters: bytes) -> bytes:
    return trace.RECORD.pack(0, NUMBERS["TEXT"], 0, 0, 0, 0) + characters.ljust(44, b"\0")


def decode(*records: bytes) -> list[trace.Event]:
    return list(trace.Decoder().take(b"".join(records)))


def words(*records: bytes) -> str:
    return trace.line_of(decode(*records)[0], 0).partition("req     7  ")[2]


V4 = (0, 0, 0xffff, 10 << 24 | 1)


def test_the_list_of_events_is_read_from_the_header() -> None:
    assert [kind.name for kind in trace.KINDS[:4]] == ["TEXT", "HELLO", "LOST", "QP_STATE"]
    command = trace.KINDS[NUMBERS["COMMAND"]]
    assert command.group == "commands"
    assert command.words[:4] == (("opcode", 1), ("nsid", 1), ("lba", 2), ("bytes", 1))
    assert all(sum(width for _, width in kind.words) <= 11 for kind in trace.KINDS)
    assert {kind.group for kind in trace.KINDS} == {*trace.GROUPS, "all"}


def test_the_groups_are_in_the_headers_order() -> None:
    header = (TOP / "lib/trace.h").read_text()
    found = re.findall(r"TRACE_GROUP_(\w+),", header)
    assert tuple(name.lower() for name in found) == trace.GROUPS


def test_the_help_names_all_groups() -> None:
    command = typer.main.get_command(cli.app).commands["trace"]     # type: ignore[attr-defined]
    option = next(found for found in command.params if found.name == "events")
    named = re.findall(r"\w+", option.help.partition(":")[2])
    assert named == [*trace.GROUPS, "or", "all"]


def test_every_event_has_a_description() -> None:
    own = {"TEXT", "HELLO", "LOST"}
    assert set(trace.WORDS) == {kind.name for kind in trace.KINDS} - own


def test_a_read_is_shown_with_its_lba_status_and_stages() -> None:
    line = words(record("COMMAND", 0x02, 1, 100, 1, 4096, 0, 1, 0, 120, 30, 160))
    assert line == (f"Read nsid 1 lba {1 << 32 | 100} 4096 bytes: ok; 160 us "
                    "(wait 1, fetch 0, media 120, respond 30)")


def test_the_media_engine_shows_how_long_a_command_took() -> None:
    started = words(record("ENGINE_STARTED", 1, 100, 1, 8, source=3))
    assert started == f"engine READ lba {1 << 32 | 100} 8 blocks: started"
    ended = words(record("ENGINE_ENDED", 2, 100, 0, 8, 7, 312, source=3))
    assert ended == "engine WRITE lba 100 8 blocks: no space; 312 us"


def test_the_nand_controller_shows_place_and_time_of_a_command() -> None:
    started = words(record("NAND_STARTED", 2, 3, 1, 0xf, 200, 5, 48, 4, source=4))
    assert started == ("NAND PROGRAM for collection: channel 3 die 1 planes 0xf block 200 "
                       "wordline 5 48 entries: started")
    ended = words(record("NAND_ENDED", 3, 3, 1, 1, 200, 0, 0, 4, 3500, 11, source=4))
    assert ended == ("NAND ERASE for wipe: channel 3 die 1 planes 0x1 block 200: rule broken; "
                     "3500 us")


def tell(name: str, *args: int) -> str:
    return words(record(name, *args, source=5))


def test_the_life_of_a_tcp_connection_is_told() -> None:
    assert tell("TCP_OPENED", 0x10002, 1, 7, 4001, *V4) == \
        "tid 0x00010002 opened: 10.0.0.1:4001 with port 7 through port 1 of the drive"
    assert tell("TCP_ENDED", 0x10002, 2, 7, 4001, *V4) == \
        "tid 0x00010002 ended: 10.0.0.1:4001 with port 7: reset by the peer"
    assert tell("TCP_RETRANSMIT", 0x10002, 99, 1448) == \
        "tid 0x00010002 sends 1448 bytes from 99 again"
    assert tell("TCP_TIMEOUT", 0x10002, 1000000, 1) == \
        "tid 0x00010002 had no ACK for 1000000 us, 1 time-outs before"
    assert tell("TCP_RECOVERY", 0x10002, 0, 14480, 7240) == \
        "tid 0x00010002 recovery begins: cwnd 14480, ssthresh 7240"
    assert tell("TCP_RECOVERY", 0x10002, 1, 7240, 7240).endswith(
        "recovery ends: cwnd 7240, ssthresh 7240")
    assert tell("TCP_WINDOW", 0x10002, 0, 0) == "tid 0x00010002 peer's window closes"
    assert tell("TCP_WINDOW", 0x10002, 1, 4096) == \
        "tid 0x00010002 own window opens to 4096 bytes"
    assert tell("TCP_REFUSED", 4, 7, 4001, *V4) == \
        "no room in TIDs: the SYN is refused; 10.0.0.1:4001 with port 7"
    assert tell("TCP_REFUSED", 2, 7, 4001, 0xfd000000, 0, 0, 1).endswith(
        "dropped; [fd00::1]:4001 with port 7")


def test_pdus_are_told_in_words() -> None:
    assert tell("PDU_RECEIVED", 0, 0, 0, 0, 0, 0, 0) == "received ICReq: queue 0"
    assert tell("PDU_RECEIVED", 6, 7, 1, 3, 9, 512, 4096) == (
        "received H2CData: queue 1, cid 3, tag 9, offset 512, 4096 bytes, header digest, data "
        "digest, LAST")
    assert tell("PDU_SENT", 7, 12, 1, 3, 0, 0, 512) == (
        "sent C2HData: queue 1, cid 3, offset 0, 512 bytes, LAST, SUCCESS")
    assert tell("PDU_SENT", 5, 0, 2, 4, 0, 0, 0) == "sent CapsuleResp: queue 2, cid 4"
    assert tell("PDU_REFUSED", 8, 1, 1, 0) == (
        "a PDU of type 0x08 ends queue 1: invalid header field, FEI 0x0")


def test_commands_of_aoe_are_told_in_words() -> None:
    assert tell("AOE_COMMAND", 0x34, 2, 0x105dc8, 8, 1, 16, 1, 0x5d46e3a8, 0x02e5) == \
        "AoE Write (EXT) slot 2 tag 0x105dc8 lba 4294967304 16 sectors, from " \
        "02:e5:5d:46:e3:a8 through port 1"
    assert tell("AOE_END", 0x24, 0, 7, 0, 0, 90) == \
        "AoE Read (EXT) slot 0 tag 0x7: ok after 90 us"
    assert tell("AOE_END", 0x24, 0, 7, 0x10, 0, 3).endswith(": no such block after 3 us")
    assert tell("AOE_END", 0x34, 0, 7, 4, 1, 3).endswith(": no answer, to be repeated after 3 us")
    assert tell("AOE_REPEATED", 0, 7, 5, 0, 1) == \
        "AoE slot 0 tag 0x7 lba 5: a write again, that was executed"


def test_the_ends_and_pools_of_tcp_are_those_of_the_engine() -> None:
    ends = re.findall(r"TOE_END_(\w+) = (\d+)", (TOP / "hw-model/regs/toe.h").read_text())
    assert [int(number) for _, number in ends] == list(range(len(trace.TCP_ENDS)))
    pools = re.search(r"enum trace_pool \{(.*?)\}",
                      (TOP / "hw-model/toe/hw_toe_trace.c").read_text(), re.S)
    assert pools is not None and pools[1].count("POOL_") == len(trace.TCP_POOLS)


def test_an_admin_command_has_no_lba() -> None:
    line = words(record("COMMAND", 1 << 16 | 0x02, 0, 0, 0, 512, 0x4109))
    assert line.startswith("Get Log Page nsid 0 512 bytes: Invalid Log Page;")


def test_a_dropped_command_is_shown_as_dropped() -> None:
    assert ": dropped;" in words(record("COMMAND", 0x01, 1, 0, 0, 4096, 0xffff))


def test_a_refused_connect_has_the_hosts_name_and_address() -> None:
    name = b"nqn.2014-08.org.nvmexpress:uuid:" + b"0" * 36
    line = words(record("CONNECT", 0x182, 0, 0, 0x10100, *V4, texts=2),
                 text(name[:44]), text(name[44:]))
    assert line == ("Connect from 10.0.0.1 refused: queue 0, Connect Invalid Parameters, "
                    f"field 0x10100, host {name.decode()}")


def test_a_name_with_control_characters_is_made_printable() -> None:
    event = decode(record("CONNECT", 0, 1, 5, 0, *V4, texts=1), text(b"a\x1b[31m\xff"))[0]
    assert event.text == "a?[31m?"
    assert "\x1b" not in trace.line_of(event, 0)


def test_a_hardware_event_may_come_between_an_event_and_its_text() -> None:
    events = decode(record("CONNECT", 0, texts=1, qpn=1),
                    record("NAK_SENT", 0x60, 5, source=2, qpn=2), text(b"host"))
    assert [(event.qpn, event.text) for event in events] == [(2, ""), (1, "host")]


def test_records_may_arrive_in_pieces() -> None:
    whole = b"".join(record("QP_STATE", 0, 1, source=2, qpn=n) for n in range(5))
    for cut in range(len(whole)):
        decoder = trace.Decoder()
        found = [*decoder.take(whole[:cut]), *decoder.take(whole[cut:])]
        assert [event.qpn for event in found] == [0, 1, 2, 3, 4]


def test_invalid_records_are_counted_and_skipped() -> None:
    decoder = trace.Decoder()
    bad = trace.RECORD.pack(0, 999, 0, 0, 0, 0) + bytes(44)
    strange = trace.RECORD.pack(0, NUMBERS["COMMAND"], 9, 0, 0, 0) + bytes(44)
    found = list(decoder.take(bad + strange + text(b"of nothing") + record("CNP_SENT")))
    assert len(found) == 1 and decoder.unknown == 3


def test_a_count_of_lost_events_from_the_firmware_is_ignored() -> None:
    decoder = trace.Decoder()
    list(decoder.take(record("LOST", 5, 6, source=0)))
    assert decoder.lost_firmware == 0
    list(decoder.take(record("LOST", 5, 6, source=1)))
    assert (decoder.lost_firmware, decoder.lost_device) == (5, 6)


def printed(mask: int, as_json: bool, *records: bytes) -> tuple[str, trace.Printer]:
    out = io.StringIO()
    printer = trace.Printer(out, as_json, mask)
    printer.take({"event": "trace", "time": 12.5,
                  "records": base64.b64encode(b"".join(records)).decode()})
    return out.getvalue(), printer


def test_json_output_has_one_object_per_line() -> None:
    output, _ = printed(trace.mask_of("all"), True,
                        record("CONNECT", 0, 1, 5, 0, *V4, texts=1), text(b"me"),
                        record("NAK_RECEIVED", 0x60, 9, source=2, request=0xffffffff))
    first, second = map(json.loads, output.splitlines())
    assert first["hostnqn"] == "me" and first["peer"] == "10.0.0.1"
    assert first["qpn"] == 0x802 and first["request"] == 7 and first["wall"] == 12.5
    assert second["event"] == "nak_received" and second["request"] is None


def test_only_the_selected_groups_are_shown() -> None:
    output, printer = printed(trace.mask_of("qp"), False, record("COMMAND", 2),
                              record("QP_STATE", 2, 3, source=2))
    assert "RTR -> RTS" in output and "Read" not in output
    assert printer.summary() == "1 events, 0 lost"


def test_the_summary_counts_lost_events() -> None:
    _, printer = printed(1, False, record("LOST", 3, 4, source=1))
    assert printer.summary() == ("0 events, 7 lost (3 of the firmware's, "
                                 "4 of the hardware's)")


def test_unknown_groups_are_refused() -> None:
    with pytest.raises(EssdError, match="must be qp, cm"):
        trace.mask_of("qp,nonsense")


def test_a_text_after_lost_messages_is_not_given_to_an_older_event() -> None:
    out = io.StringIO()
    printer = trace.Printer(out, False, trace.mask_of("cm"))

    def take(*records: bytes) -> None:
        printer.take({"event": "trace", "time": 1.0,
                      "records": base64.b64encode(b"".join(records)).decode()})

    take(record("CONNECT", 0, 1, 5, 0, *V4, texts=1))
    printer.take({"event": "lost", "messages": 1})
    take(text(b"another host"))
    assert "another host" not in out.getvalue()
    assert "1 records were not understood" in printer.summary()


class FakeStream:
    """Yields one event, then ends, or waits for `script` to do something."""

    script: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, *_: object) -> None:
        pass

    def events(self) -> Iterator[dict[str, Any]]:
        yield {"event": "trace", "time": 1.0,
               "records": base64.b64encode(record("CNP_SENT", source=2)).decode()}
        type(self).script()

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def fake_stream(monkeypatch: pytest.MonkeyPatch) -> type[FakeStream]:
    monkeypatch.setattr(trace, "Stream", FakeStream)
    monkeypatch.setattr(FakeStream, "script", staticmethod(lambda: None))
    return FakeStream


@pytest.mark.parametrize(("output", "error"), [
    ("/dev/full", "No space left"), ("/nonexistent/x", "No such file"),
    ("/tmp", "Is a directory")])
def test_an_output_that_cannot_be_written_is_one_line(
        fake_stream: type[FakeStream], output: str, error: str) -> None:
    with pytest.raises(EssdError, match=f"--output {output}: {error}"):
        trace.run(Instance("unit"), "all", Path(output), False, 0)


def test_a_trace_says_that_the_instance_has_ended(
        fake_stream: type[FakeStream], capsys: pytest.CaptureFixture[str]) -> None:
    trace.run(Instance("unit"), "all", None, False, 0)
    said = capsys.readouterr()
    assert "congestion notification sent" in said.out
    assert "the instance has ended" in said.err and "1 events, 0 lost" in said.err


def test_a_second_interrupt_ends_a_trace_that_does_not_end(
        fake_stream: type[FakeStream], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt_twice() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the second interrupt was ignored")

    monkeypatch.setattr(FakeStream, "script", staticmethod(interrupt_twice))
    with pytest.raises(KeyboardInterrupt):
        trace.run(Instance("unit"), "all", None, False, 0)


def test_an_endless_time_limit_is_taken(fake_stream: type[FakeStream]) -> None:
    trace.run(Instance("unit"), "all", None, False, float("inf"))
