/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports operations that the NAND controller has refused because they broke a
 * rule of the flash.  Each of them is a bug of this firmware.  Each one is in
 * the log of hardware errors; the console says what was wrong, at most once a
 * minute.
 * Reference: docs/hardware/nand.md, section 1; docs/hardware/flash.md,
 * "Hardware errors"
 */
#ifndef ESSD_APP_NAND_RULES_H
#define ESSD_APP_NAND_RULES_H

#include <stdint.h>

#include "storage/ftl/ftl_flash.h"

struct nand_rules {
    uint64_t quiet_us; /* until then, the console shows no such error */
};

/** Report that an operation broke this rule.  The function for
 * nand_medium_config.rule_broken. */
void nand_rules_note(void *drive, const struct ftl_flash_op *op, uint8_t rule);

#endif
