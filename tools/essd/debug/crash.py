# SPDX-License-Identifier: BSD-2-Clause
"""`essd dump`: the crash dumps of the firmware, with the functions and lines.

The format is that of firmware/hal/crash.h.  gdb unwinds the stack: this module
makes an ELF core file from a dump, which gdb opens like the core file of any program.
"""

import contextlib
import json
import re
import shutil
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import chosen, paths
from ..base.errors import EssdError
from ..build import elf, fw_build
from ..drive import mgmt
from ..instance.instance import Instance
from ..storage.flash import LAYOUT
from . import debugger, telemetry

CAUSES = {1: "assertion", 2: "trap", 3: "watchdog", 4: "memory"}
PROVOKED = ("assertion", "trap", "watchdog")
VERSION = 1
HEAD = struct.Struct("<HBBI20sIQQQQ16s128s")
REGISTERS = 32
NAMES = ("pc", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1",
         *(f"a{i}" for i in range(8)), *(f"s{i}" for i in range(2, 12)),
         "t3", "t4", "t5", "t6")
TRAPS = {0: "instruction address misaligned", 1: "instruction access fault",
         2: "illegal instruction", 3: "breakpoint", 4: "load address misaligned",
         5: "load access fault", 6: "store address misaligned",
         7: "store access fault", 11: "environment call"}
AREA = struct.Struct("<III8xI8s")       # header of a copy: docs/hardware/flash.md, "Areas"
AREA_MAGIC = b"ESSD-CD1"
COPIES = 8
GDB_S = 60
PROVOKE_S = 1.0
RESTART_S = 60.0
POLL_S = 0.1
UNWINDER = Path(__file__).with_name("gdb_backtrace.py")
MARK = "essd-backtrace: "
# ELF
ET_CORE, EM_RISCV, PT_LOAD, PT_NOTE, NT_PRSTATUS = 4, 243, 1, 4, 1
PRSTATUS_REGISTERS = 112        # bytes of struct elf_prstatus before the registers
PRSTATUS_LEN = PRSTATUS_REGISTERS + 8 * REGISTERS + 8
GDB_LINE = 64                   # bytes in a line of gdb's stack cache


@dataclass(frozen=True)
class Crash:
    number: int                 # counts the drive's crashes, from 1; 0: not known
    cause: str
    text: str                   # file and expression of an assertion
    line: int
    mcause: int
    mtval: int
    mstatus: int
    boot: int
    time_ns: int                # since the reset before
    firmware: str
    build_id: str
    registers: tuple[int, ...]  # in the order of NAMES
    memory: tuple[tuple[int, bytes], ...]
    log: str
    trace_records: int

    def why(self) -> str:
        if self.cause == "assertion":
            file, _, expression = self.text.partition(": ")
            return f"assertion failed: {expression} ({source(file)}:{self.line})"
        if self.cause == "trap":
            name = TRAPS.get(self.mcause, f"trap {self.mcause}")
            return f"trap: {name}, value 0x{self.mtval:x}"
        if self.cause == "watchdog":
            return "the firmware did not serve the watchdog: it hung"
        if self.cause == "memory":
            return f"a word of memory was lost: more than one bit was wrong at 0x{self.mtval:x}"
        return f"cause {self.cause}"


def parse(data: bytes, number: int = 0) -> Crash:
    sections = list(telemetry.sections_of(data, 0))
    found = {section.name: section.data for section in reversed(sections)}
    if len(found.get("crash", b"")) < HEAD.size or len(found.get("hart0", b"")) < 8 * REGISTERS:
        raise EssdError("this is no crash dump: it has no sections \"crash\" and \"hart0\"")
    (version, cause, _harts, line, identity, boot, time_ns, mcause, mtval, mstatus,
     firmware, text) = HEAD.unpack_from(found["crash"])
    if version != VERSION:
        raise EssdError(f"the crash dump has format {version}, and this essd knows format "
                        f"{VERSION}: use an essd of the same version as the firmware")
    memory = tuple((int.from_bytes(section.data[:8], "little"), section.data[8:])
                   for section in sections if section.name == "memory")
    return Crash(
        number=number, cause=CAUSES.get(cause, str(cause)), text=words(text), line=line,
        mcause=mcause, mtval=mtval, mstatus=mstatus, boot=boot, time_ns=time_ns,
        firmware=words(firmware), build_id=identity.hex(),
        registers=struct.unpack_from(f"<{REGISTERS}Q", found["hart0"]), memory=memory,
        log=found.get("log", b"").decode("ascii", errors="replace").replace("\r", ""),
        trace_records=len(found.get("trace", b"")) // telemetry.RECORD)


def words(data: bytes) -> str:
    return data.split(b"\0")[0].decode("ascii", errors="replace")


# ---- Where dumps come from.

def in_flash(data: bytes) -> list[Crash]:
    """The intact dumps in a flash image, the newest first."""
    found = []
    first, size = LAYOUT["FLASH_CRASH_ADDR"], LAYOUT["FLASH_CRASH_SIZE"]
    for copy in range(first, first + COPIES * size, size):
        number, length, body_crc, header_crc, magic = AREA.unpack_from(data, copy)
        body = data[copy + AREA.size:copy + AREA.size + length]
        if (magic == AREA_MAGIC and zlib.crc32(data[copy:copy + 20]) == header_crc
                and zlib.crc32(body) == body_crc):
            found.append(parse(body, number))
    return sorted(found, key=lambda crash: -crash.number)


def in_telemetry(path: Path) -> list[Crash]:
    """The dump in a controller-initiated telemetry log that was fetched with nvme-cli."""
    sections = [section for section in telemetry.read(path).sections if section.area > 1]
    data = b"".join(telemetry.SECTION.pack(telemetry.MAGIC, len(section.data),
                                           section.name.encode())
                    + section.data + bytes(-len(section.data) % 4) for section in sections)
    return [parse(data)] if data else []


def in_drive(instance: Instance) -> list[Crash]:
    """The dumps of a running drive, the newest first."""
    return [parse(read(instance, entry["number"]), entry["number"])
            for entry in mgmt.ask(instance, "crashes")["crashes"]]


def read(instance: Instance, number: int) -> bytes:
    data, place = b"", 0
    while True:
        reply = mgmt.ask(instance, "crash-data", number=number, **{"from": place})
        data += bytes.fromhex(reply["data"])
        if "next" not in reply:
            return data
        place = reply["next"]


def of_instance(instance: Instance) -> list[Crash]:
    """The dumps of a drive: from its firmware if it runs, else from its flash file."""
    if instance.is_running and instance.status()["parts"][instance.drive]["state"] == "running":
        return in_drive(instance)
    path = paths.drive(instance.name, instance.drive) / "flash.img"
    if not path.exists():
        raise EssdError(f"there is no drive {instance.name}"
                        f"{chosen.mean(instance.name, chosen.known())}")
    return in_file(path)


def in_file(path: Path) -> list[Crash]:
    """The dumps in a flash image or in a telemetry log."""
    try:
        data = path.read_bytes()
    except OSError as e:
        raise EssdError(f"{path} cannot be read: {e.strerror}") from e
    if len(data) == LAYOUT["SOC_FLASH_SIZE"]:
        return in_flash(data)
    return in_telemetry(path)


def choose(crashes: list[Crash], number: int) -> Crash:
    """The dump with this number; 0: the newest."""
    if not crashes:
        raise EssdError("no crash is recorded")
    for crash in crashes:
        if number in (0, crash.number):
            return crash
    raise EssdError(f"there is no crash dump {number}: there are "
                    + ", ".join(str(crash.number) for crash in crashes))


def provoke(instance: Instance, cause: str) -> None:
    """Crash the firmware of a running drive, which then restarts by itself."""
    chosen.check_word("--provoke", cause, PROVOKED)
    before = len(instance.status()["parts"][instance.drive]["restarts"])
    with contextlib.suppress(EssdError):        # a crashed drive does not answer
        mgmt.ask(instance, "crash-now", timeout_s=PROVOKE_S, how=cause)
    deadline = time.monotonic() + RESTART_S
    while len(instance.status()["parts"][instance.drive]["restarts"]) == before:
        if time.monotonic() > deadline:
            raise EssdError(f"the drive has not restarted within {RESTART_S:.0f} s")
        time.sleep(POLL_S)
    while "why" in mgmt.status(instance):
        if time.monotonic() > deadline:
            raise EssdError(f"the drive does not answer {RESTART_S:.0f} s after the crash")
        time.sleep(POLL_S)


# ---- Symbols.

def symbols(crash: Crash, firmware: Path | None) -> Path:
    """The ELF of the image that crashed; EssdError if `firmware` is another one."""
    if firmware is None:
        return elf.find(crash.build_id, "the firmware that crashed")
    try:
        identity = elf.build_id(firmware.read_bytes())
    except OSError as e:
        raise EssdError(f"{firmware} cannot be read: {e.strerror}") from e
    if identity != crash.build_id:
        raise EssdError(f"{firmware} has the build ID {identity}, but the firmware that "
                        f"crashed has {crash.build_id}: name the ELF of that build")
    return firmware


def core(crash: Crash, firmware: Path) -> bytes:
    """An ELF core file: the hart's registers, the memory in the dump, and the code."""
    status = bytearray(PRSTATUS_LEN)
    struct.pack_into("<I", status, 0, 6)        # si_signo: SIGABRT
    struct.pack_into("<H", status, 12, 6)       # pr_cursig
    struct.pack_into("<I", status, 32, 1)       # pr_pid
    struct.pack_into(f"<{REGISTERS}Q", status, PRSTATUS_REGISTERS, *crash.registers)
    note = struct.pack("<III8s", 5, len(status), NT_PRSTATUS, b"CORE\0\0\0\0") + bytes(status)
    parts = [(PT_NOTE, 0, note)]
    parts += [(PT_LOAD, *whole_lines(address, data)) for address, data in crash.memory]
    parts += [(PT_LOAD, address, data) for address, data in constants(firmware)]
    at = 64 + 56 * len(parts)
    headers, bodies = b"", b""
    for kind, address, data in parts:
        headers += struct.pack("<IIQQQQQQ", kind, 7 if kind == PT_LOAD else 0, at, address,
                               address, len(data), len(data) if kind == PT_LOAD else 0,
                               8 if kind == PT_LOAD else 4)
        padded = data + bytes(-len(data) % 8)
        bodies += padded
        at += len(padded)
    return struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), ET_CORE,
                       EM_RISCV, 1, 0, 64, 0, 0, 64, 56, len(parts), 0, 0, 0) + headers + bodies


def whole_lines(address: int, data: bytes) -> tuple[int, bytes]:
    """Extend memory to whole lines of gdb's stack cache; what the dump lacks is 0.

    If a part of a line is not in the core file, gdb reads all of the line from the ELF,
    where the stack is a section that has only zeros.
    """
    before = address % GDB_LINE
    data = bytes(before) + data
    return address - before, data + bytes(-len(data) % GDB_LINE)


def constants(firmware: Path) -> Iterator[tuple[int, bytes]]:
    """The loaded segments of the firmware's ELF, which gdb does not read beside a core."""
    data = firmware.read_bytes()
    offset, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _flags, start, address, _, length, _, _ = struct.unpack_from(
            "<IIQQQQQQ", data, offset + i * size)
        if kind == PT_LOAD and length:
            yield address, data[start:start + length]


def backtrace(crash: Crash, firmware: Path) -> list[dict[str, Any]]:
    """The frames, innermost first: `function`, `file`, `line`, `pc`, `inlined`, `arguments`."""
    if shutil.which(debugger.PROGRAM) is None:
        raise EssdError(f"{debugger.PROGRAM} is not installed: apt-get install "
                        f"{debugger.PROGRAM}")
    with tempfile.NamedTemporaryFile(prefix="essd-core-") as file:
        file.write(core(crash, firmware))
        file.flush()
        done = subprocess.run(gdb_words(firmware, Path(file.name),
                                        ["-batch", "-ex", f"source {UNWINDER}"]),
                              capture_output=True, text=True, timeout=GDB_S, check=False)
    found = re.search(f"^{MARK}(.*)$", done.stdout, re.M)
    if found is None:
        raise EssdError(f"{debugger.PROGRAM} does not unwind the stack: "
                        f"{(done.stderr.strip() or done.stdout.strip())[-300:]}")
    frames: list[dict[str, Any]] = json.loads(found[1])
    return [frame | {"file": source(frame["file"])} for frame in frames]


def source(name: str) -> str:
    """A source file's path from the top folder; the ELF has it from the build's folder."""
    return name.removeprefix("../../").removeprefix(f"{paths.TOP}/")


def gdb_words(firmware: Path, core_file: Path, options: list[str]) -> list[str]:
    return [debugger.PROGRAM, "-q", "-nx", "-ex", f"directory {fw_build.BUILD}:{paths.TOP}",
            "-ex", f"file {firmware}", "-ex", f"core-file {core_file}", *options]


# ---- What is printed.

def facts(crash: Crash, frames: list[dict[str, Any]] | None) -> dict[str, Any]:
    """What `essd dump --json` prints."""
    return {"number": crash.number, "cause": crash.cause, "why": crash.why(),
            "text": crash.text, "line": crash.line, "mcause": crash.mcause,
            "mtval": crash.mtval, "mstatus": crash.mstatus, "boot": crash.boot,
            "time-ns": crash.time_ns, "firmware": crash.firmware,
            "build-id": crash.build_id, "trace-records": crash.trace_records,
            "registers": dict(zip(NAMES, crash.registers, strict=True)),
            "backtrace": frames, "log": crash.log.splitlines()}


def title(crash: Crash) -> str:
    number = f"crash {crash.number}" if crash.number else "crash"
    return (f"{number}: {crash.why()}\n"
            f"boot {crash.boot}, {crash.time_ns / 1e9:.3f} s after its reset; firmware "
            f"{crash.firmware}, build {crash.build_id[:12]}")


def frame_line(number: int, frame: dict[str, Any]) -> str:
    where = f" at {frame['file']}:{frame['line']}" if frame["file"] else ""
    arguments = ", ".join(f"{name}={value}" for name, value in frame["arguments"].items())
    return f"#{number:<2} 0x{frame['pc']:08x} {frame['function']} ({arguments}){where}"


def text(crash: Crash, frames: list[dict[str, Any]] | None, log_lines: int) -> str:
    lines = [title(crash), ""]
    lines += [frame_line(i, frame) for i, frame in enumerate(frames or [])]
    lines += [""] if frames else []
    for i in range(0, REGISTERS, 4):
        lines.append("  ".join(f"{NAMES[j]:>3} {crash.registers[j]:016x}"
                               for j in range(i, i + 4)))
    tail = [line for line in crash.log.splitlines() if line][-log_lines:]
    return "\n".join([*lines, "", "the last lines of the log:", *tail])
