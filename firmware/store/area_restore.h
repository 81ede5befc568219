/* SPDX-License-Identifier: BSD-2-Clause */
/* What a start does with a record that it has read from an area: area.h. */
#ifndef ESSD_STORE_AREA_RESTORE_H
#define ESSD_STORE_AREA_RESTORE_H

#include "firmware/hal/log.h"
#include "firmware/store/area.h"

/* What area_read() has found. */
struct area_found {
    enum area_result state;
    const uint8_t *record;
    size_t len;
};

/**
 * If the newest record was read, make both rings hold it, and say in the log
 * what had to be done.
 *
 * @param what      begins the line: "namespaces"
 * @param sequence  as of area_repair()
 * @return whether the newest record is lost
 */
MUST_USE bool area_restore(const struct flash *flash, struct log *log,
                           const struct area *area, const char *what,
                           uint32_t *sequence, const struct area_found *found);

#endif
