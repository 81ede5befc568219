# SPDX-License-Identifier: BSD-2-Clause
"""`essd trace`: decode events inside a running drive (docs/tracing.md).

The events and their arguments are read from lib/trace.h, which the drive is
compiled with too.
"""

import base64
import contextlib
import ipaddress
import json
import re
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any

from ..base.chosen import check_word
from ..base.errors import EssdError
from ..base.paths import TOP
from ..instance.instance import Instance
from . import trace_flash
from .trace_names import name_of

SUBSCRIBED_S = 30.0     # time limit of the supervisor's answer

SECONDS_MAX = 1e8
GROUPS = ("qp", "cm", "commands", "media", "roce", "path", "tcp", "ftl", "nand",
          "pdus", "aoe")
NO_REQUEST = 0xffffffff
RECORD = struct.Struct("<QHBBII")
ARGS = struct.Struct("<11I")
RECORD_LEN = RECORD.size + ARGS.size

QP_STATES = ("RESET", "INIT", "RTR", "RTS", "ERROR")
REASONS = ("", "local length", "local protection", "local operation", "flushed",
           "remote invalid request", "remote access", "remote operation",
           "retries exceeded", "RNR retries exceeded", "bad response")
CM_MESSAGES = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU",
               0x15: "DREQ", 0x16: "DREP"}
NAKS = ("PSN sequence", "invalid request", "remote access", "remote operation",
        "invalid RD request")
MEDIA_STATUSES = ("ok", "LBA range", "read error", "write error", "read-only",
                  "internal error", "aborted", "marked by a host", "wrong guard",
                  "wrong application tag", "wrong reference tag")
ENGINE_OPCODES = ("NOP", "READ", "WRITE", "FLUSH", "WRITE_ZEROES", "DEALLOCATE")
ENGINE_STATUSES = ("ok", "bad opcode", "bad argument", "bad address", "LBA range",
                   "read error", "write error", "no space", "read-only", "aborted")
ADMIN = {0x02: "Get Log Page", 0x06: "Identify", 0x08: "Abort", 0x09: "Set Features",
         0x0a: "Get Features", 0x0c: "Async Event Request", 0x18: "Keep Alive",
         0x86: "Get LBA Status"}
NVM = {0x00: "Flush", 0x01: "Write", 0x02: "Read", 0x04: "Write Uncorrectable",
       0x05: "Compare", 0x08: "Write Zeroes", 0x09: "Dataset Management",
       0x0c: "Verify", 0x0d: "Reservation Register", 0x0e: "Reservation Report",
       0x11: "Reservation Acquire", 0x15: "Reservation Release"}
FABRICS = {0x00: "Property Set", 0x01: "Connect", 0x04: "Property Get",
           0x05: "Authentication Send", 0x06: "Authentication Receive",
           0x08: "Disconnect"}
TCP_ENDS = ("both sides have closed", "aborted", "reset by the peer", "refused",
            "the peer does not answer", "unreachable", "memory error",
            "the engine has stopped")
TCP_POOLS = {0: "half-open entries: the oldest makes room",
             1: "connections: the SYN is dropped",
             2: "pages: early bytes are dropped", 3: "TIME-WAIT: the oldest makes room",
             4: "TIDs: the SYN is refused"}
ATA = {0x20: "Read", 0x24: "Read (EXT)", 0x30: "Write", 0x34: "Write (EXT)"}
ATA_ERRORS = {0x04: "refused", 0x10: "no such block", 0x40: "unreadable"}
DROPPED = 0xffff
STATUSES = {
    0x000: "ok", 0x001: "Invalid Opcode", 0x002: "Invalid Field",
    0x003: "Command ID Conflict", 0x004: "Data Transfer Error",
    0x005: "Aborted due to Power Loss", 0x006: "Internal Error", 0x007: "Aborted",
    0x008: "Aborted due to SQ Deletion", 0x009: "Aborted due to Failed Fused Command",
    0x00a: "Aborted due to Missing Fused Command", 0x00b: "Invalid Namespace",
    0x00c: "Command Sequence Error", 0x00d: "SGL Segment Invalid",
    0x00e: "SGL Descriptor Count Invalid", 0x00f: "SGL Length Invalid",
    0x010: "SGL Metadata Length Invalid", 0x011: "SGL Type Invalid",
    0x016: "SGL Offset Invalid", 0x019: "Keep Alive Timeout Expired",
    0x01a: "Keep Alive Timeout Invalid", 0x01e: "SGL Data Block Granularity Invalid",
    0x020: "Namespace Write Protected", 0x021: "Command Interrupted",
    0x018: "Host Identifier Inconsistent Format",
    0x01b: "Aborted due to Preempt and Abort",
    0x080: "LBA Out of Range", 0x082: "Namespace Not Ready",
    0x083: "Reservation Conflict",
    0x101: "Invalid Queue Identifier", 0x103: "Abort Limit Exceeded",
    0x105: "AER Limit Exceeded", 0x106: "Invalid Firmware Slot",
    0x109: "Invalid Log Page", 0x10a: "Invalid Format", 0x10d: "Feature Not Saveable",
    0x10e: "Feature Not Changeable", 0x10f: "Feature Not Namespace Specific",
    0x180: "Connect Incompatible Format", 0x181: "Connect Controller Busy",
    0x182: "Connect Invalid Parameters", 0x183: "Connect Restart Discovery",
    0x184: "Connect Invalid Host", 0x190: "Discovery Restart",
    0x191: "Authentication Required", 0x280: "Write Fault",
    0x281: "Unrecovered Read Error", 0x285: "Compare Failure"}


@dataclass(frozen=True)
class Kind:
    """One event of lib/trace.h."""

    name: str
    group: str
    words: tuple[tuple[str, int], ...]      # each argument's name and 32-bit words


def read_kinds() -> tuple[Kind, ...]:
    text = (TOP / "lib/trace.h").read_text(encoding="utf-8")
    body = text.partition("#define TRACE_EVENTS(X)")[2].partition("/* clang-format on")[0]
    body = re.sub(r'"\s*\\\n\s*"', "", body)    # a string in two lines
    widths = {"": 1, "64": 2, "ip": 4}
    kinds = []
    for group, name, words in re.findall(r'X\((\w+), (\w+), "([^"]*)"\)', body):
        found = [word.partition(":") for word in words.split()]
        kinds.append(Kind(name, group.lower(),
                          tuple((key, widths[kind]) for key, _, kind in found)))
    return tuple(kinds)


KINDS = read_kinds()
# What the text of an event is called in a line and in JSON.
TEXTS = {"CONNECT": ("host", "hostnqn"), "FTL_VICTIM": ("policy", "policy")}
SOURCES = ("firmware", "mgmt", "rnic", "media", "nand", "toe")


@dataclass
class Event:
    """One event, with its text records joined."""

    time_ns: int
    kind: Kind
    source: str
    qpn: int
    request: int | None
    args: dict[str, Any]
    text: str = ""
    texts_due: int = 0

    def as_json(self) -> dict[str, Any]:
        """As `--json` shows it: the table in docs/tracing.md."""
        args = {key: str(value) if key == "peer" else value
                for key, value in self.args.items()}
        return {"time-ns": self.time_ns, "event": self.kind.name.lower(),
                "group": self.kind.group, "source": self.source, "qpn": self.qpn,
                "request": self.request, **args,
                **({TEXTS[self.kind.name][1]: self.text} if self.kind.name in TEXTS
                   else {})}


def address(words: tuple[int, ...]) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    found = ipaddress.IPv6Address(b"".join(word.to_bytes(4) for word in words))
    return found.ipv4_mapped or found


def read_args(kind: Kind, words: tuple[int, ...]) -> dict[str, Any]:
    args: dict[str, Any] = {}
    at = 0
    for name, width in kind.words:
        mine = words[at:at + width]
        args[name] = (mine[0] if width == 1 else mine[0] | mine[1] << 32 if width == 2
                      else address(mine))
        at += width
    return args


def printable(data: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "?"
                   for byte in data.partition(b"\0")[0])


@dataclass
class Decoder:
    """Decodes records into events, in order."""

    lost_firmware: int = 0
    lost_device: int = 0
    lost_messages: int = 0      # of the supervisor's, because we were too slow
    unknown: int = 0
    waiting: Event | None = None
    rest: bytes = field(default=b"")

    def of_message(self, message: dict[str, Any], mask: int) -> Iterator[Event]:
        """The events of these groups in a message of the supervisor."""
        if message["event"] == "lost":
            self.lost_messages += message["messages"]
            self.waiting = None         # its text may be among what was lost
        elif message["event"] == "trace":
            for event in self.take(base64.b64decode(message["records"])):
                if mask >> GROUPS.index(event.kind.group) & 1:
                    yield event

    def take(self, data: bytes) -> Iterator[Event]:
        data = self.rest + data
        whole = len(data) // RECORD_LEN * RECORD_LEN
        self.rest = data[whole:]
        for at in range(0, whole, RECORD_LEN):
            yield from self.take_record(data[at:at + RECORD_LEN])

    def take_record(self, record: bytes) -> Iterator[Event]:
        time_ns, number, source, texts, qpn, request = RECORD.unpack_from(record)
        if number >= len(KINDS) or source >= len(SOURCES):
            self.unknown += 1
            return
        kind = KINDS[number]
        if kind.name == "TEXT":
            yield from self.take_text(record[RECORD.size:])
            return
        words = ARGS.unpack_from(record, RECORD.size)
        event = Event(time_ns, kind, SOURCES[source], qpn,
                      None if request == NO_REQUEST else request,
                      read_args(kind, words), texts_due=texts)
        if kind.name in ("HELLO", "LOST"):
            if event.source == "mgmt":
                self.take_own(event)
            return
        if event.source == "firmware" and texts:
            self.waiting = event
        else:
            yield event

    def take_text(self, characters: bytes) -> Iterator[Event]:
        event = self.waiting
        if event is None:
            self.unknown += 1
            return
        event.text += printable(characters)
        event.texts_due -= 1
        if event.texts_due == 0:
            self.waiting = None
            yield event

    def take_own(self, event: Event) -> None:
        if event.kind.name == "LOST":
            self.lost_firmware = event.args["firmware"]
            self.lost_device = event.args["device"]


# One line for people

def opcode_name(word: int) -> str:
    opcode, fctype, is_admin = word & 0xff, word >> 8 & 0xff, word >> 16 & 1
    if opcode == 0x7f:
        return name_of(FABRICS, fctype)
    return name_of(ADMIN if is_admin else NVM, opcode)


def status_name(status: int) -> str:
    if status == DROPPED:
        return "dropped"
    return name_of(STATUSES, status & 0x7ff)


def command_words(args: dict[str, Any]) -> str:
    words = f"{opcode_name(args['opcode'])} nsid {args['nsid']}"
    if opcode_name(args["opcode"]) in ("Read", "Write", "Write Zeroes") and \
            not args["opcode"] >> 16:
        words += f" lba {args['lba']}"
    stages = ", ".join(f"{name} {args[name + '_us']}" for name in
                       ("wait", "fetch", "media", "respond"))
    return (f"{words} {args['bytes']} bytes: {status_name(args['status'])}; "
            f"{args['total_us']} us ({stages})")


def connect_words(args: dict[str, Any]) -> str:
    if args["status"] == 0:
        return (f"Connect from {args['peer']} accepted: queue {args['qid']}, "
                f"controller {args['cntlid']:#x}")
    return (f"Connect from {args['peer']} refused: queue {args['qid']}, "
            f"{status_name(args['status'])}, field {args['field']:#x}")


def cm_words(args: dict[str, Any]) -> str:
    words = name_of(CM_MESSAGES, args["message"])
    if words == "REJ":
        words += f" reason {args['reason']}"
    peer = args["peer"]
    return words + (f", peer {peer}" if int(peer) else "") + \
        f", ids {args['local']:#x} {args['remote']:#x}"


def nak_words(args: dict[str, Any]) -> str:
    kind, value = args["syndrome"] >> 5, args["syndrome"] & 0x1f
    what = f"RNR, timer code {value}" if kind == 1 else name_of(NAKS, value)
    return f"{what}, PSN {args['psn']}"


def state_words(args: dict[str, Any]) -> str:
    reason = name_of(REASONS, args["reason"])
    return (f"{name_of(QP_STATES, args['from'])} -> {name_of(QP_STATES, args['to'])}"
            + (f": {reason}" if reason else ""))


def engine_words(args: dict[str, Any]) -> str:
    return (f"engine {name_of(ENGINE_OPCODES, args['opcode'])} lba {args['lba']} "
            f"{args['blocks']} blocks")


def path_words(args: dict[str, Any]) -> str:
    words = f"command arrived at {args['arrived_ns'] / 1e9:.9f}"
    if args["acknowledged_ns"]:
        words += f", response acknowledged at {args['acknowledged_ns'] / 1e9:.9f}"
    return words


def sent_words(args: dict[str, Any]) -> str:
    return (f"response sent through port {args['port']}, PSN {args['psn']}"
            + (" (again)" if args["again"] else ""))


def tcp_ends_words(args: dict[str, Any]) -> str:
    address = args["peer"]
    host = f"[{address}]" if address.version == 6 else str(address)
    return f"{host}:{args['remote']} with port {args['local']}"


def aoe_words(args: dict[str, Any]) -> str:
    return f"AoE {name_of(ATA, args['ata'])} slot {args['slot']} tag {args['tag']:#x}"


def aoe_end_words(args: dict[str, Any]) -> str:
    end = name_of(ATA_ERRORS, args["error"]) if args["error"] else "ok"
    return (f"{aoe_words(args)}: {'no answer, to be repeated' if args['repeat'] else end} "
            f"after {args['us']} us")


def tcp_window_words(args: dict[str, Any]) -> str:
    whose = "own window" if args["is_own"] else "peer's window"
    return f"{whose} opens to {args['bytes']} bytes" if args["bytes"] else f"{whose} closes"


PDUS = {0: "ICReq", 1: "ICResp", 2: "H2CTermReq", 3: "C2HTermReq", 4: "CapsuleCmd",
        5: "CapsuleResp", 6: "H2CData", 7: "C2HData", 9: "R2T"}
PDU_FLAGS = ("header digest", "data digest", "LAST", "SUCCESS")
FES = ("", "invalid header field", "PDU sequence", "header digest", "data out of range",
       "data longer than MAXH2CDATA", "unsupported parameter")


def pdu_words(args: dict[str, Any]) -> str:
    kind = PDUS.get(args["type"], f"type {args['type']:#04x}")
    words = [f"queue {args['qid']}"]
    if kind in ("CapsuleCmd", "CapsuleResp", "H2CData", "C2HData", "R2T"):
        words.append(f"cid {args['cid']}")
    if kind in ("H2CData", "R2T"):
        words.append(f"tag {args['tag']}")
    if kind in ("H2CData", "C2HData", "R2T"):
        words.append(f"offset {args['offset']}")
    if args["bytes"]:
        words.append(f"{args['bytes']} bytes")
    words += [flag for bit, flag in enumerate(PDU_FLAGS) if args["flags"] >> bit & 1]
    return f"{kind}: {', '.join(words)}"


def refused_words(args: dict[str, Any]) -> str:
    return (f"a PDU of type {args['type']:#04x} ends queue {args['qid']}: "
            f"{name_of(FES, args['fes'])}, FEI {args['fei']:#x}")


WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "COMMAND": command_words, "CONNECT": connect_words,
    "QP_STATE": state_words,
    "CM_SENT": lambda a: "CM sent " + cm_words(a),
    "CM_RECEIVED": lambda a: "CM received " + cm_words(a),
    "NAK_SENT": lambda a: "NAK sent: " + nak_words(a),
    "NAK_RECEIVED": lambda a: "NAK received: " + nak_words(a),
    "TIMEOUT": lambda a: f"no answer to PSN {a['psn']}, {a['retries']} retries so far",
    "RETRANSMIT": lambda a: f"goes back to PSN {a['psn']}: {a['packets']} packets again",
    "TERMINATE_SENT": lambda a: f"Terminate sent: layer, type and code {a['error']:04x}",
    "TERMINATE_RECEIVED": lambda a: (f"Terminate received: layer, type and code "
                                     f"{a['error']:04x}, headers {a['headers']:02x}"),
    "CNP_SENT": lambda _: "congestion notification sent",
    "CNP_RECEIVED": lambda _: "congestion notification received",
    "MEDIA": lambda a: (f"media {name_of(NVM, a['opcode'])} lba {a['lba']} "
                        f"{a['blocks']} blocks: {name_of(MEDIA_STATUSES, a['status'])}; "
                        f"{a['us']} us"),
    "COMMAND_PATH": path_words, "RESPONSE_SENT": sent_words,
    "TCP_OPENED": lambda a: (f"tid {a['tid']:#010x} opened: {tcp_ends_words(a)} through "
                             f"port {a['port']} of the drive"),
    "TCP_ENDED": lambda a: (f"tid {a['tid']:#010x} ended: {tcp_ends_words(a)}: "
                            f"{name_of(TCP_ENDS, a['end'])}"),
    "TCP_RETRANSMIT": lambda a: (f"tid {a['tid']:#010x} sends {a['bytes']} bytes from "
                                 f"{a['seq']} again"),
    "TCP_TIMEOUT": lambda a: (f"tid {a['tid']:#010x} had no ACK for {a['us']} us, "
                              f"{a['again']} time-outs before"),
    "TCP_RECOVERY": lambda a: (f"tid {a['tid']:#010x} recovery "
                               f"{'ends' if a['is_over'] else 'begins'}: cwnd {a['cwnd']}, "
                               f"ssthresh {a['ssthresh']}"),
    "TCP_WINDOW": lambda a: f"tid {a['tid']:#010x} {tcp_window_words(a)}",
    "TCP_REFUSED": lambda a: (f"no room in {name_of(TCP_POOLS, a['pool'])}; "
                              f"{tcp_ends_words(a)}"),
    "PDU_RECEIVED": lambda a: "received " + pdu_words(a),
    "PDU_SENT": lambda a: "sent " + pdu_words(a), "PDU_REFUSED": refused_words,
    "AOE_COMMAND": lambda a: (
        f"{aoe_words(a)} lba {a['lba']} {a['sectors']} sectors, from "
        f"{a['station'].to_bytes(6).hex(':')} through port {a['port']}"),
    "AOE_END": aoe_end_words,
    "AOE_REPEATED": lambda a: (
        f"AoE slot {a['slot']} tag {a['tag']:#x} lba {a['lba']}: a write again, that "
        f"{'was executed' if a['done'] else 'is being executed'}"),
    "ENGINE_STARTED": lambda a: engine_words(a) + ": started",
    "ENGINE_ENDED": lambda a: (f"{engine_words(a)}: "
                               f"{name_of(ENGINE_STATUSES, a['status'])}; {a['us']} us"),
    **trace_flash.WORDS}


def line_of(event: Event, wall: float) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(wall))
    request = "-" if event.request is None else str(event.request)
    words = WORDS[event.kind.name](event.args)
    if event.text:
        words += f", {TEXTS[event.kind.name][0]} {event.text}"
    return (f"{clock} {event.time_ns / 1e9:16.9f} {event.kind.group:8} "
            f"qp {event.qpn:#08x} req {request:>5}  {words}")


# The stream

def mask_of(events: str) -> int:
    mask = 0
    for name in events.split(","):
        if name.strip() == "all":
            return (1 << len(GROUPS)) - 1
        word = check_word("--events", name.strip(), [*GROUPS, "all"])
        mask |= 1 << GROUPS.index(word)
    return mask


class Stream:
    """A subscription to an instance's events."""

    def __init__(self, instance: Instance, kinds: list[str], mask: int = 0) -> None:
        try:
            self.connection = instance.connect()
        except OSError:
            raise EssdError(instance.not_running()) from None
        request = {"command": "subscribe", "events": kinds, "mask": mask,
                   "part": instance.drive}
        self.connection.sendall(json.dumps(request).encode() + b"\n")
        instance.wait_answer(self.connection, SUBSCRIBED_S)
        self.file = self.connection.makefile("rb")
        reply = json.loads(self.file.readline() or b"{}")
        if "return" not in reply:
            raise EssdError(reply.get("error", "the supervisor ended"))

    def end(self) -> None:
        """End the subscription; events() returns the remaining events and ends."""
        with contextlib.suppress(OSError):      # the supervisor may have ended
            self.connection.sendall(b"\n")

    def events(self) -> Iterator[dict[str, Any]]:
        """Return events until the subscription or the supervisor ends."""
        with contextlib.suppress(ConnectionResetError):
            for line in self.file:
                event = json.loads(line)
                if event["event"] == "end":
                    return
                yield event

    def close(self) -> None:
        self.file.close()
        self.connection.close()


@dataclass
class Printer:
    """Writes events to a file or the screen, and notes to standard error."""

    out: IO[str]
    as_json: bool
    mask: int
    drive: str = "drive"
    decoder: Decoder = field(default_factory=Decoder)
    count: int = 0

    def take(self, event: dict[str, Any]) -> None:
        for found in self.decoder.of_message(event, self.mask):
            self.count += 1
            self.write(found, event["time"])
        if event["event"] == "trace":
            self.out.flush()
        elif event["event"] in ("part", "restart") and event["part"] == self.drive:
            what = event.get("state") or f"restarted by itself: {event['cause']}"
            self.note(f"{self.drive}: {what}")

    def write(self, event: Event, wall: float) -> None:
        if self.as_json:
            self.out.write(json.dumps({"wall": wall, **event.as_json()}) + "\n")
        else:
            self.out.write(line_of(event, wall) + "\n")

    def finish(self) -> None:
        """Write what stands after the last event."""

    def note(self, text: str) -> None:
        print(f"essd trace: {text}", file=sys.stderr, flush=True)

    def summary(self) -> str:
        lost = self.decoder.lost_firmware + self.decoder.lost_device
        words = f"{self.count} events, {lost} lost"
        if lost:
            words += (f" ({self.decoder.lost_firmware} of the firmware's, "
                      f"{self.decoder.lost_device} of the hardware's)")
        if self.decoder.unknown:
            words += (f"; {self.decoder.unknown} records were not understood, because the "
                      "drive was started by another version of essd or records were lost")
        if self.decoder.lost_messages:
            words += (f"; {self.decoder.lost_messages} messages of several events each were "
                      "lost because this program was too slow")
        return words


def open_output(output: Path | None) -> IO[str]:
    if output is None:
        return sys.stdout
    try:
        return open(output, "w", encoding="utf-8")
    except OSError as error:
        raise EssdError(f"--output {output}: {error.strerror}") from None


def run(instance: Instance, events: str, output: Path | None, as_json: bool,
        seconds: float, make: Callable[..., Printer] = Printer) -> None:
    """Run `essd trace` until Ctrl-C, or for the given number of seconds.

    `make` makes what writes the events, with the arguments of Printer.
    """
    mask = mask_of(events)
    stream = Stream(instance, ["trace", "part", "restart"], mask)
    out = open_output(output)
    printer = make(out, as_json, mask, instance.drive)
    has_ended = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal has_ended
        if has_ended:           # the remaining events do not come, or cannot be written
            raise KeyboardInterrupt
        has_ended = True
        stream.end()

    before = {number: signal.signal(number, stop)
              for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    if seconds:
        signal.setitimer(signal.ITIMER_REAL, min(seconds, SECONDS_MAX))
    printer.note(f"tracing {events}; press Ctrl-C to end")
    try:
        for event in stream.events():
            printer.take(event)
        printer.finish()
        if output:
            out.close()
    except OSError as error:
        if not output:          # such as the end of `essd trace | head`
            raise
        raise EssdError(f"--output {output}: {error.strerror}") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        stream.close()
        if output:
            with contextlib.suppress(OSError):
                out.close()
    if not has_ended:
        printer.note("the instance has ended")
    printer.note(printer.summary())
