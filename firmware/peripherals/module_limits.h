/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values of a module, compared with its limits.
 *
 * A limit that is exceeded counts as exceeded until the value is back within it
 * by a 64th of the range between the low and the high limit.  So a value that
 * moves around its limit is reported once.
 */
#ifndef ESSD_PERIPHERALS_MODULE_LIMITS_H
#define ESSD_PERIPHERALS_MODULE_LIMITS_H

#include "firmware/peripherals/modules.h"

/* The bytes of the diagnostics (A2h) that are read: limits, values and flags.
 */
enum { MODULE_DIAGNOSTICS_LEN = 118 };

/** Whether the checksum of the limits is right. */
MUST_USE bool module_limits_are_intact(const uint8_t *diagnostics);

/** Take the values of a module. */
void module_take_values(struct module *module, const uint8_t *diagnostics);

/** Take the limits, and find out which of them the values exceed; call
 * module_take_values() before. */
void module_take_limits(struct module *module, const uint8_t *diagnostics);

#endif
