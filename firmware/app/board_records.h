/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records in flash of the long-running operations, of the latency monitor,
 * and of the shares of hosts.
 */
#ifndef ESSD_APP_BOARD_RECORDS_H
#define ESSD_APP_BOARD_RECORDS_H

#include "firmware/app/operations.h"
#include "firmware/hal/dram.h"
#include "firmware/store/area.h"

struct board_record {
    const struct flash *flash;
    const struct area *area;
    enum area_result state;
    uint8_t *data;
    size_t len;
    uint32_t sequence;
};

struct board_records {
    struct board_record self_test;
    struct board_record sanitize;
    struct board_record latency;
    struct board_record shares;
};

/** Read the records.  Without DRAM for them they count as never written. */
void board_records_read(struct board_records *records,
                        const struct flash *flash, struct dram *dram);

/** The records, for drive_config.operations. */
struct operations_stores board_records_stores(struct board_records *records);

#endif
