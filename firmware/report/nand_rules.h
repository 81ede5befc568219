/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports operations that the NAND controller has refused because they broke a
 * rule of the flash.  Each of them is a bug of this firmware.  Each one is in
 * the log of hardware errors; the console says what was wrong, at most once a
 * minute.
 * Reference: docs/hardware/nand.md, section 1; docs/hardware/flash.md,
 * "Hardware errors"
 */
#ifndef ESSD_REPORT_NAND_RULES_H
#define ESSD_REPORT_NAND_RULES_H

#include "firmware/hal/log.h"
#include "firmware/medium/nand_seam.h"
#include "firmware/usage/hw_log.h"

struct nand_rules {
    struct log *log;
    struct hw_log *hw_log;
    uint64_t quiet_us; /* until then, the console shows no such error */
};

/** Report that an operation broke this rule.  `seam` has counted it. */
void nand_rules_note(struct nand_rules *rules, const struct nand_seam *seam,
                     const struct ftl_flash_op *op, uint8_t rule,
                     uint64_t now_us);

#endif
