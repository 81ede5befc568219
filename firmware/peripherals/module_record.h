/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data of a module's event in the persistent event log.
 * Reference: docs/nvme.md, "Events of modules"
 */
#ifndef ESSD_PERIPHERALS_MODULE_RECORD_H
#define ESSD_PERIPHERALS_MODULE_RECORD_H

#include "firmware/peripherals/modules.h"

/*
 * Byte offsets in the data.  The values are in the units of SFF-8472: 1/256
 * degree Celsius (signed), 100 microvolts, 2 microamperes, 0.1 microwatts.
 */
enum {
    MODULE_RECORD_PORT = 0,
    MODULE_RECORD_QUANTITY = 1,    /* enum module_quantity */
    MODULE_RECORD_LIMIT = 2,       /* enum module_limit */
    MODULE_RECORD_VALUE = 4,       /* 4 bytes */
    MODULE_RECORD_LIMIT_VALUE = 8, /* 4 bytes */
    MODULE_RECORD_LEN = 12,
    MODULE_RECORD_NONE = 0xff, /* an event that is about no limit */
};

/** Write all bytes of `data`. */
void module_record_emit(const struct module_event *event,
                        uint8_t data[MODULE_RECORD_LEN]);

#endif
