#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that every source file includes only headers that its layer may include.

A file's layer is the longest prefix of its path that has a row in the table
below.  The column "may include" of the table in docs/architecture.md is made
from the same table: the check fails if it differs, and with --write it is
written anew.  What a layer is for, the second column, is written by hand.
"""
import argparse
import pathlib
import re
import sys

import lint_baseline
from lint_table import Table

# For each layer, the directories besides its own from which it may include headers.
MAY_INCLUDE = {
    "lib": [],
    "net/wire": ["lib"],
    "net/stack": ["lib", "net/wire"],
    "net/switch": ["lib", "net/wire"],
    "net/verbs": ["lib", "net/wire", "hw-model/regs", "hw-model/core"],
    "net/roce": ["lib", "net/wire", "net/verbs", "hw-model/regs",
                 "hw-model/core"],
    "net/tcp": ["lib", "net/wire"],
    "net/mpa": ["lib", "net/wire", "net/verbs/stream.h"],
    "net/iwarp": ["lib", "net/wire", "net/verbs", "net/mpa", "hw-model/regs",
                  "hw-model/core"],
    "net/cm": ["lib", "net/wire", "net/verbs"],
    "net/mpa_cm": ["lib", "net/verbs", "net/mpa"],
    # What is between a namespace and the flash.
    "storage/block": ["lib", "nvmeof/limits.h"],
    "storage/volume": ["lib", "firmware/hal", "firmware/store/identity.h",
                        "firmware/store/write_shares.h",
                        "nvmeof/limits.h", "storage/block/media.h",
                        "nvmeof/target/base/reservation.h",
                        "nvmeof/target/volume.h"],
    "storage/ftl": ["lib", "storage/block"],
    "nvmeof/wire": ["lib"],
    "nvmeof/limits.h": ["lib"],
    # A transport as the drive's main loop sees it.
    "nvmeof/binding.h": ["lib"],
    "nvmeof/auth": ["lib"],
    "nvmeof/tls": ["lib", "nvmeof/auth"],
    "nvmeof/target": ["lib", "nvmeof/auth", "nvmeof/wire", "nvmeof/limits.h",
                      "storage/block"],
    # The pool of data buffers that all transports use.
    "nvmeof/bufs": ["lib", "nvmeof/limits.h", "storage/block/piece.h"],
    # It uses a connection manager only through the seam rdma_cm.h.
    "nvmeof/rdma": ["lib", "nvmeof", "net/verbs/verbs.h",
                    "net/verbs/rdma_cm.h", "storage/block/piece.h"],
    # It uses TCP connections only through the seam in its own directory.
    "nvmeof/tcp": ["lib", "nvmeof/binding.h", "nvmeof/limits.h",
                   "nvmeof/target/fault.h",
                   "nvmeof/target/make_room.h", "nvmeof/target/target.h",
                   "nvmeof/target/transport.h", "nvmeof/wire"],
    # ATA over Ethernet is a host of the target, and a transport of its own.
    "nvmeof/aoe": ["lib", "nvmeof/binding.h", "nvmeof/limits.h",
                   "nvmeof/target/inside.h", "nvmeof/target/target.h",
                   "nvmeof/wire"],
    "nvmeof/loopback": ["lib", "nvmeof/limits.h", "nvmeof/target/target.h",
                        "nvmeof/wire"],
    "nvmeof/host": ["lib", "nvmeof/wire", "nvmeof/limits.h", "net/verbs",
                    "net/cm", "net/wire"],
    "hw-model/regs": [],
    "hw-model/core": ["lib", "hw-model/regs"],
    "hw-model/port": ["lib", "net/wire", "hw-model/regs", "hw-model/core"],
    "hw-model/rnic": ["lib", "net/wire", "net/verbs", "net/iwarp", "net/roce",
                      "hw-model/regs", "hw-model/core"],
    "hw-model/fault": ["lib", "net/wire", "hw-model/core",
                       "hw-model/media/media_backend.h",
                       "hw-model/nand/nand_inject.h"],
    "hw-model/ecc": ["lib", "hw-model/regs"],
    "hw-model/toe": ["lib", "net/wire", "net/tcp", "net/verbs/stream.h",
                     "hw-model/regs", "hw-model/core"],
    "hw-model/lag": ["lib", "net/wire", "hw-model/regs", "hw-model/core"],
    "hw-model/media": ["lib", "hw-model/regs", "hw-model/core"],
    "hw-model/nand": ["lib", "hw-model/regs", "hw-model/core"],
    "hw-model/i2c": ["lib", "hw-model/regs", "hw-model/core"],
    "hw-model/sfp": ["lib"],
    "hw-model/vhost": ["hw-model/core", "lib"],
    "hw-model/watchdog": ["hw-model/core", "hw-model/regs", "lib"],
    "world": ["lib", "hw-model/core"],
    "firmware/hal": ["lib"],
    "firmware/loop": ["lib", "firmware/drivers/watchdog.h"],
    "firmware/crypto": ["lib", "nvmeof/auth", "nvmeof/tls"],
    "firmware/text": ["lib", "firmware/hal", "net/wire", "net/stack"],
    "firmware/settings": ["lib", "firmware/hal", "firmware/store",
                          "firmware/text"],
    "firmware/hosts": ["lib", "firmware/drivers/flash.h",
                       "firmware/store/flash_layout.h", "nvmeof/auth",
                       "nvmeof/target/generated_key.h",
                       "nvmeof/target/target.h", "nvmeof/tls/tls_psk.h",
                       "nvmeof/wire"],
    "firmware/usage": ["lib", "firmware/operations/operation_store.h",
                       "firmware/store", "nvmeof/target/target.h",
                       "nvmeof/wire"],
    "firmware/operations": ["lib", "firmware/hal", "storage/volume/volume.h",
                            "nvmeof/limits.h", "storage/block/media.h",
                            "nvmeof/target/operations.h"],
    # The drive's medium: NAND flash or the media engine.
    "firmware/medium": ["lib", "firmware/drivers", "firmware/hal",
                        "firmware/loop", "firmware/store/usage.h",
                        "hw-model/regs", "nvmeof/limits.h",
                        "nvmeof/target/target.h", "storage"],
    "firmware/memory": ["lib", "firmware/hal", "firmware/drivers/ecc.h",
                        "firmware/usage/hw_log.h"],
    "firmware/telemetry": ["lib", "firmware/hal", "firmware/drivers/mgmt.h",
                           "firmware/mgmt", "nvmeof/target/target.h"],
    "firmware/vendor": ["lib", "firmware/hal", "firmware/net/drive_net.h",
                        "firmware/settings/settings.h", "net/stack/lldp.h",
                        "nvmeof/target/target.h", "nvmeof/wire"],
    "firmware/console": ["lib", "firmware", "hw-model/regs",
                         "nvmeof/target/ana.h"],
    # Addresses at which hosts are served.
    "firmware/discovery": ["lib", "firmware/hal", "firmware/text",
                           "firmware/net/drive_net.h", "net/stack",
                           "net/wire", "nvmeof/target/target.h",
                           "nvmeof/wire"],
    # LLDP, SNTP, DHCP and multicast DNS, as the configuration wants them.
    "firmware/services": ["lib", "firmware/hal", "firmware/text",
                          "firmware/net/drive_net.h", "net/stack",
                          "nvmeof/target/target.h"],
    # A command is served on several harts.
    "firmware/stages": ["lib", "firmware/drivers", "firmware/hal",
                        "firmware/loop", "firmware/medium", "nvmeof",
                        "storage/volume"],
    # The sequence of a power failure.
    "firmware/power": ["lib", "firmware/hal"],
    # What the drive says of connections and of errors of its hardware.
    "firmware/report": ["lib", "firmware/hal", "firmware/text",
                        "firmware/drivers/flash.h",
                        "firmware/medium/nand_seam.h",
                        "firmware/store/hw_error_log.h",
                        "firmware/telemetry/telemetry.h",
                        "firmware/usage/hw_log.h", "hw-model/regs/rnic.h",
                        "net/wire", "nvmeof/auth/auth_wire.h",
                        "nvmeof/target/target.h", "nvmeof/wire"],
    # Management requests are about every part of the drive, but not about the
    # whole of it.
    "firmware/requests": ["lib", "firmware", "hw-model/regs", "net", "nvmeof",
                          "storage"],
    "firmware/bmc": ["lib", "firmware/drivers/i2c.h"],
    "firmware/peripherals": ["lib", "firmware/hal", "firmware/drivers/i2c.h"],
    "firmware/echo": ["lib", "firmware/hal", "net/verbs/verbs.h",
                      "net/verbs/rdma_cm.h", "net/wire"],
    "firmware/tcp": ["lib", "firmware/hal", "firmware/drivers/toe.h",
                     "net/mpa_cm/mpa_cm.h", "net/stack/stack.h",
                     "nvmeof/tcp/nvme_tcp.h", "nvmeof/tls"],
    "firmware/net": ["lib", "firmware/hal", "firmware/drivers",
                     "firmware/store", "firmware/text", "hw-model/regs",
                     "net"],
    "firmware/arch": ["lib", "firmware/hal", "hw-model/regs"],
    # A panic prints its reason on the console, leaves a record and resets the drive.
    "firmware/arch/panic": ["lib", "firmware/hal", "firmware/arch",
                            "firmware/drivers", "hw-model/regs"],
    "firmware/native_hart": ["lib", "firmware/hal", "firmware/arch",
                             "firmware/drivers", "hw-model/regs",
                             "hw-model/core/native_hart.h"],
    "firmware/store": ["lib", "firmware/hal", "firmware/drivers/flash.h"],
    "firmware/signature": ["lib", "firmware/store/image.h"],
    "firmware/update": ["lib", "firmware/hal", "firmware/drivers/flash.h",
                        "firmware/signature", "firmware/store",
                        "nvmeof/target/firmware.h"],
    "firmware/flash_ram": ["lib", "firmware/drivers/flash.h", "firmware/signature",
                           "firmware/store", "hw-model/regs"],
    "firmware/boot": ["lib", "firmware/hal", "firmware/arch", "firmware/drivers",
                      "firmware/signature", "firmware/store", "hw-model/regs"],
    "hw-model/mgmt": ["lib", "hw-model/regs", "hw-model/core"],
    "firmware/mgmt": ["lib", "firmware/hal", "firmware/drivers/mgmt.h"],
    "firmware/drivers": ["lib", "firmware/hal", "hw-model/regs"],
    # The RNIC's driver implements the verbs.
    "firmware/drivers/rnic": ["lib", "firmware/hal", "hw-model/regs",
                              "net/verbs/verbs.h"],
}
# Directories of a layer that stand on floors: each may include headers of those
# before it, and of the layer's own directory.  Other layers include what is on
# the floors only where their row names it.
FLOORS = {
    "nvmeof/target": ("base", "request", "events", "connect", "namespaces", "io",
                      "reservations", "admin", "features", "logs"),
    "storage/ftl": ("base", "ops", "space", "map", "pages", "rows", "background",
                    "mount", "io"),
}
# What puts the drive together is above all layers, also above those whose rows
# allow "firmware".
ON_TOP = "firmware/app/"
# The header with the struct of the whole layer.  A floor has a struct of its own, and its
# functions take that one, so that they cannot see what belongs to a higher floor.
WHOLE = {"storage/ftl": ("storage/ftl/state.h", re.compile(r"\bstruct ftl\b"))}
# These files name the struct of the whole only to pass it on to functions of higher floors.
PASSES_WHOLE = ("storage/ftl/ops/ftl_kinds.h", "storage/ftl/map/ftl_op.h")
# These directories may include every header.
EVERYTHING = ("firmware/app", "firmware/native", "hw-model/qemu", "tests",
              "tools")
# Only the header's own directory, those below it, and that directory's unit
# tests (in tests/unit/<directory>) may include a header with such a name.
PRIVATE = re.compile(r"(^|_)(internal|state)\.h$")
# These tests include private headers on purpose, for the reason given.
WHITE_BOX = {
    # It checks that commands wait in both of the target's queues.
    "tests/native/test_slow.c": ["nvmeof/target/state.h"],
    # It checks that garbage is being collected when the drive is stopped.
    "tests/native/test_nand_drive.c": ["storage/ftl/state.h"],
    # When a checkpoint is written and a superblock is erased.
    "tests/native/test_full_disk.c": ["storage/ftl/state.h"],
    # It checks that checkpoints are written and loaded.
    "tests/native/test_reset.c": ["storage/ftl/state.h"],
    # It fails the power when the write buffer is full.
    "tests/native/test_plp.c": ["storage/ftl/state.h"],
    # Both flip bits of the slot in the write buffer that holds a certain unit.
    "tests/native/dram_flip.h": ["storage/ftl/state.h"],
    "tests/native/test_firmware.c": ["storage/ftl/state.h"],
    # It changes the description of the write buffer of the start before.
    "tests/fuzz/fuzz_ftl_mount.c": ["storage/ftl/state.h"],
    # It compares every answer with the commands that target and transport still have.
    "tests/fuzz/sequence/sequence.c": ["nvmeof/rdma/rdma_state.h",
                                       "nvmeof/target/state.h"],
    # It stands between target and medium, for test_data_path and
    # test_protection_path.
    "tests/native/media_spy.h": ["nvmeof/target/state.h"],
    # It tests the transport with a real target.
    "tests/unit/nvmeof/rdma/test_rdma_transport.c": ["nvmeof/target/state.h"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')

PAGE = "docs/architecture.md"
UNKNOWN = "(describe this layer)"
HEAD = "| layer | what is in it | may include |\n|---|---|---|\n"
TABLE = Table(PAGE, "tools/check_includes.py", "layers", UNKNOWN, HEAD)
BEGIN, END = TABLE.begin, TABLE.end


def cell(layer: str) -> str:
    """What a layer may include, as the document says it."""
    if layer in EVERYTHING:
        return "everything"
    return ", ".join(f"`{name}`" for name in MAY_INCLUDE[layer]) or "nothing"


def cells() -> dict[str, str]:
    return {layer: cell(layer) for layer in (*MAY_INCLUDE, *EVERYTHING)}


def table(page: str) -> str:
    """The page with the table as it should be; ValueError without markers."""
    return TABLE.written(page, cells())


def page_complaints(page: str) -> list[str]:
    found = TABLE.complaints(page, cells())
    for layer, floors in FLOORS.items():
        if ", ".join(f"`{floor}`" for floor in floors) not in page:
            found.append(f"{PAGE}: does not name the floors of {layer} in their order")
    return found


def floor_of(path: str) -> tuple[str, int] | None:
    """The layer of a file on a floor, and the number of that floor."""
    for layer, floors in FLOORS.items():
        for number, floor in enumerate(floors):
            if path.startswith(f"{layer}/{floor}/"):
                return layer, number
    return None


def floor_complaint(path: str, header: str) -> str | None:
    """What is wrong with a file that includes this header, as to floors."""
    above, own = floor_of(header), floor_of(path)
    if above is None:
        return None
    layer, number = above
    if own is not None and own[0] == layer:
        floors = FLOORS[layer]
        return (f"{floors[own[1]]} is below {floors[number]}, so it may not include {header}"
                if number > own[1] else None)
    if path.startswith(layer + "/") or header in MAY_INCLUDE[layer_of(path) or layer]:
        return None
    return f"{header} is on a floor of {layer}: only that includes it"


def whole_complaints(path: str, text: str) -> list[str]:
    """Where a file on a floor uses the struct of the whole layer."""
    own = floor_of(path)
    if own is None or own[0] not in WHOLE or path in PASSES_WHOLE:
        return []
    header, struct = WHOLE[own[0]]
    floor = FLOORS[own[0]][own[1]]
    return [f"{path}:{number}: a floor's functions take that floor's struct "
            f"({floor}_floor.h), not what {header} has"
            for number, line in enumerate(text.splitlines(), 1)
            if struct.search(line) or f'"{header}"' in line]


def layer_of(path: str) -> str | None:
    rows = [row for row in MAY_INCLUDE if path.startswith(row)]
    return max(rows, key=len, default=None)


def may_look_inside(path: str, header: str) -> bool:
    """Whether a file may include this header, which may be a private one."""
    directory, name = header.rsplit("/", 1)
    own = path.rsplit("/", 1)[0]
    return (not PRIVATE.search(name) or (own + "/").startswith(directory + "/")
            or (own + "/").startswith(f"tests/unit/{directory}/")
            or header in WHITE_BOX.get(path, []))


def repeated_complaints(path: str, text: str) -> list[str]:
    """What a file includes twice in one block of includes.

    clang-tidy's own check of this takes any include for a second one with -fms-extensions.
    """
    found: list[str] = []
    seen: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#") and not line.startswith("#include"):
            seen.clear()        # A header of macros may be used again with others.
        elif line.startswith("#include"):
            if line in seen:
                found.append(f"{path}:{number}: the file has the line {line} twice")
            seen.add(line)
    return found


def complaints(root: pathlib.Path) -> list[str]:
    found = []
    for source in lint_baseline.files("*.[ch]", root=root):
        path = source.relative_to(root).as_posix()
        found += repeated_complaints(path, source.read_text())
        for number, line in enumerate(source.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and "/" in match[1] and (root / match[1]).exists() \
                    and not may_look_inside(path, match[1]):
                found.append(f"{path}:{number}: {match[1]} is private to its "
                             "directory")
        if path.startswith(EVERYTHING):
            continue
        layer = layer_of(path)
        if layer is None:
            found.append(f"{path}: no layer of docs/architecture.md holds it")
            continue
        allowed = (layer, *MAY_INCLUDE[layer])
        found += whole_complaints(path, source.read_text())
        for number, line in enumerate(source.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or not (root / match[1]).exists():
                continue
            if not match[1].startswith(allowed) or match[1].startswith(ON_TOP):
                found.append(f"{path}:{number}: {layer} may not include "
                             f"{match[1]}")
            elif (floor := floor_complaint(path, match[1])) is not None:
                found.append(f"{path}:{number}: {floor}")
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Check which headers sources include.")
    parser.add_argument("--write", action="store_true",
                        help=f"write the table of layers in {PAGE}")
    options = parser.parse_args(arguments)
    root = pathlib.Path(__file__).resolve().parent.parent
    page = root / PAGE
    if options.write:
        page.write_text(table(page.read_text(encoding="utf-8")), encoding="utf-8")
    found = complaints(root) + page_complaints(page.read_text(encoding="utf-8"))
    for line in found:
        print(line)
    print(f"check_includes: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
