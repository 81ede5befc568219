/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that the NAND controller has refused because they broke a rule of
 * the flash: bugs of this firmware.  Each one is in the log of hardware errors,
 * and the console says what was wrong.
 * Reference: docs/hardware/nand.md, section 1; docs/hardware/flash.md,
 * "Hardware errors"
 */
#ifndef ESSD_APP_NAND_RULES_H
#define ESSD_APP_NAND_RULES_H

#include <stdint.h>

#include "firmware/ftl/ftl_flash.h"

/* Until this time, no such error is shown on the console. */
struct nand_rules {
    uint64_t quiet_us;
};

/** An operation broke this rule.  The function for
 * nand_medium_config.rule_broken. */
void nand_rules_note(void *drive, const struct ftl_flash_op *op, uint8_t rule);

#endif
