#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Check that every source file includes only headers that its layer may include.

docs/architecture.md states the rule in prose; the table below is the same
rule.  A file's layer is the longest prefix of its path that has a row.
"""
import pathlib
import re
import sys

import lint_baseline

# For each layer, the directories besides its own from which it may include headers.
MAY_INCLUDE = {
    "lib": [],
    "net/wire": ["lib"],
    "net/stack": ["lib", "net/wire"],
    "net/switch": ["lib", "net/wire"],
    "net/verbs": ["lib", "net/wire", "hw-model/regs", "hw-model/core"],
    "net/roce": ["lib", "net/wire", "net/verbs", "hw-model/regs",
                 "hw-model/core"],
    "net/cm": ["lib", "net/wire", "net/verbs"],
    "nvmeof/wire": ["lib"],
    "nvmeof/limits.h": ["lib"],
    "nvmeof/auth": ["lib"],
    "nvmeof/target": ["lib", "nvmeof/auth", "nvmeof/wire", "nvmeof/limits.h"],
    # It uses a connection manager only through the seam rdma_cm.h.
    "nvmeof/rdma": ["lib", "nvmeof", "net/verbs/verbs.h",
                    "net/verbs/rdma_cm.h"],
    "nvmeof/loopback": ["lib", "nvmeof/limits.h", "nvmeof/target/target.h",
                        "nvmeof/wire"],
    "nvmeof/host": ["lib", "nvmeof/wire", "nvmeof/limits.h", "net/verbs",
                    "net/cm", "net/wire"],
    "hw-model/regs": [],
    "hw-model/core": ["lib", "hw-model/regs"],
    "hw-model/port": ["lib", "net/wire", "hw-model/regs", "hw-model/core"],
    "hw-model/rnic": ["lib", "net/wire", "net/verbs", "net/roce",
                      "hw-model/regs", "hw-model/core"],
    "hw-model/fault": ["lib", "net/wire", "hw-model/core",
                       "hw-model/media/media_backend.h",
                       "hw-model/nand/nand_inject.h"],
    "hw-model/ecc": ["lib", "hw-model/regs"],
    "hw-model/lag": ["lib", "net/wire", "hw-model/regs", "hw-model/core"],
    "hw-model/media": ["lib", "hw-model/regs", "hw-model/core"],
    "hw-model/nand": ["lib", "hw-model/regs", "hw-model/core"],
    "hw-model/i2c": ["lib", "hw-model/regs", "hw-model/core"],
    "hw-model/sfp": ["lib"],
    "hw-model/watchdog": ["hw-model/core", "hw-model/regs", "lib"],
    "firmware/hal": ["lib"],
    "firmware/loop": ["lib"],
    "firmware/crypto": ["lib", "nvmeof/auth"],
    "firmware/text": ["lib", "firmware/hal", "net/wire", "net/stack"],
    "firmware/settings": ["lib", "firmware/hal", "firmware/store",
                          "firmware/text"],
    "firmware/hosts": ["lib", "firmware/drivers/flash.h",
                       "firmware/store/flash_layout.h", "nvmeof/auth",
                       "nvmeof/target/target.h"],
    "firmware/usage": ["lib", "firmware/operations/operation_store.h",
                       "firmware/store", "nvmeof/target/target.h",
                       "nvmeof/wire"],
    "firmware/volume": ["lib", "firmware/hal", "firmware/store/identity.h",
                        "firmware/store/write_shares.h",
                        "nvmeof/limits.h", "nvmeof/target/media.h",
                        "nvmeof/target/reservation.h",
                        "nvmeof/target/volume.h"],
    "firmware/ftl": ["lib", "nvmeof/target/media.h"],
    "firmware/operations": ["lib", "firmware/hal", "firmware/volume/volume.h",
                            "nvmeof/limits.h", "nvmeof/target/media.h",
                            "nvmeof/target/operations.h"],
    "firmware/bmc": ["lib", "firmware/drivers/i2c.h"],
    "firmware/peripherals": ["lib", "firmware/hal", "firmware/drivers/i2c.h"],
    "firmware/echo": ["lib", "firmware/hal", "net/verbs/verbs.h",
                      "net/verbs/rdma_cm.h", "net/wire"],
    "firmware/net": ["lib", "firmware/hal", "firmware/drivers",
                     "firmware/store", "firmware/text", "hw-model/regs",
                     "net"],
    "firmware/arch": ["lib", "firmware/hal", "hw-model/regs"],
    # A panic prints its reason on the console, leaves a record and resets the drive.
    "firmware/arch/panic": ["lib", "firmware/hal", "firmware/arch",
                            "firmware/drivers", "hw-model/regs"],
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
# These directories may include every header.
EVERYTHING = ("firmware/app", "firmware/native", "hw-model/qemu", "tests",
              "tools")
# Only the header's own directory and that directory's unit tests (in
# tests/unit/<directory>) may include a header with such a name.
PRIVATE = re.compile(r"(^|_)(internal|state)\.h$")
# These tests include private headers on purpose, for the reason given.
WHITE_BOX = {
    # It checks that commands wait in both of the target's queues.
    "tests/native/test_slow.c": ["nvmeof/target/state.h"],
    # It checks that garbage is being collected when the drive is stopped.
    "tests/native/test_nand_drive.c": ["firmware/ftl/ftl_internal.h"],
    # When a checkpoint is written and a superblock is erased.
    "tests/native/test_full_disk.c": ["firmware/ftl/ftl_internal.h"],
    # It checks that checkpoints are written and loaded.
    "tests/native/test_reset.c": ["firmware/ftl/ftl_internal.h"],
    # It fails the power when the write buffer is full.
    "tests/native/test_plp.c": ["firmware/ftl/ftl_internal.h"],
    # Both flip bits of the slot in the write buffer that holds a certain unit.
    "tests/native/dram_flip.h": ["firmware/ftl/ftl_internal.h"],
    "tests/native/test_firmware.c": ["firmware/ftl/ftl_internal.h"],
    # It compares every answer with the commands that target and transport still have.
    "tests/fuzz/sequence/sequence.c": ["nvmeof/rdma/rdma_state.h",
                                       "nvmeof/target/state.h"],
    # It tests the transport with a real target.
    "tests/unit/nvmeof/rdma/test_rdma_transport.c": ["nvmeof/target/state.h"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def layer_of(path: str) -> str | None:
    rows = [row for row in MAY_INCLUDE if path.startswith(row)]
    return max(rows, key=len, default=None)


def may_look_inside(path: str, header: str) -> bool:
    """Whether a file may include this header, which may be a private one."""
    directory, name = header.rsplit("/", 1)
    own = path.rsplit("/", 1)[0]
    return (not PRIVATE.search(name) or own == directory
            or (own + "/").startswith(f"tests/unit/{directory}/")
            or header in WHITE_BOX.get(path, []))


def complaints(root: pathlib.Path) -> list[str]:
    found = []
    for source in lint_baseline.files("*.[ch]", root=root):
        path = source.relative_to(root).as_posix()
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
        for number, line in enumerate(source.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and (root / match[1]).exists() \
                    and not match[1].startswith(allowed):
                found.append(f"{path}:{number}: {layer} may not include "
                             f"{match[1]}")
    return found


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    found = complaints(root)
    for line in found:
        print(line)
    print(f"check_includes: {len(found)} complaint(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
