/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vendor specific log pages of I/O controllers, and where each finds what
 * it is about in the drive.
 * Reference: docs/nvme.md, "Log pages of our own"
 *
 * To add a page: a number in nvmeof/wire/opcode.h; a function that builds the
 * page, with its unit test, in firmware/vendor; a row in vendor_logs.c.
 */
#ifndef ESSD_APP_VENDOR_LOGS_H
#define ESSD_APP_VENDOR_LOGS_H

#include "nvmeof/target/target.h"

struct drive;

/** Give the target the table of these pages. */
void vendor_logs_fill(struct nvmf_config *target, struct drive *drive);

#endif
