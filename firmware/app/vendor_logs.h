/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vendor specific log pages of I/O controllers, and where each finds what
 * it is about in the drive.
 * Reference: docs/nvme.md, "Log pages of our own"
 *
 * To add a page:
 *  - a number from D2h on in nvmeof/wire/opcode.h;
 *  - in firmware/vendor, a function that builds the page from plain values,
 *    with its unit test; both are listed in a sources.cmake or CMakeLists.txt;
 *  - a row in vendor_logs.c, whose function reads the values from the drive,
 *    because firmware/vendor may not include the drivers.  A drive with a block
 *    medium has no NAND flash: drive.nand.ftl is NULL;
 *  - a paragraph in docs/nvme.md, and the number in its table of log pages.
 * The length of a page is a multiple of 64 bytes: test_vendor_logs.c, below
 * tests/native, reads every page in parts of so many.
 */
#ifndef ESSD_APP_VENDOR_LOGS_H
#define ESSD_APP_VENDOR_LOGS_H

#include "nvmeof/target/target.h"

struct drive;

/** Give the target the table of these pages. */
void vendor_logs_fill(struct nvmf_config *target, struct drive *drive);

#endif
