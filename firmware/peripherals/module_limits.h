/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values of a module, compared with its limits.
 *
 * A limit that is exceeded stays so until the value is back by a 64th of the
 * range between the lower and the higher limit, so that a value that moves
 * around its limit is reported once.
 */
#ifndef ESSD_PERIPHERALS_MODULE_LIMITS_H
#define ESSD_PERIPHERALS_MODULE_LIMITS_H

#include "firmware/peripherals/modules.h"

/* Of the diagnostics (A2h): limits, values and flags. */
enum { MODULE_DIAGNOSTICS_LEN = 118 };

/** Whether the checksum of the limits is right. */
MUST_USE bool module_limits_are_intact(const uint8_t *diagnostics);

/** Take the values of a module. */
void module_take_values(struct module *module, const uint8_t *diagnostics);

/** Take the limits too, and find out which of them are exceeded. */
void module_take_limits(struct module *module, const uint8_t *diagnostics);

#endif
