/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Crash dumps: what the firmware keeps of its own failures.  A dump waits in
 * DRAM over the reset (hal/crash.h).  The next start writes it to flash, which
 * keeps the newest eight dumps.
 */
#ifndef ESSD_APP_BOARD_CRASH_H
#define ESSD_APP_BOARD_CRASH_H

#include "firmware/telemetry/crash_store.h"
#include "firmware/drivers/flash.h"
#include "firmware/hal/log.h"

struct board_crash {
    const struct flash *flash; /* NULL: there is none */
    void *region;              /* the dump and its plan, in DRAM */
    /* The dump of the crash that led to this start, in the region. */
    const uint8_t *pending;
    size_t pending_len; /* 0: there is none */
    uint32_t sequence;  /* of the newest dump in flash */
};

/**
 * Begin the plan of a dump.  Call this before everything else at the start, so
 * that a failure of the start itself is recorded.
 */
void board_crash_init(struct board_crash *crash, void *region,
                      const uint8_t *build_id, uint32_t harts,
                      uintptr_t stack_bottom, uintptr_t stack_top);

/** Look for a dump in DRAM, and write it to flash. */
void board_crash_keep(struct board_crash *crash, const struct flash *flash,
                      struct log *log);

/** Let the next dump contain the newest lines of the log. */
void board_crash_add_log(struct board_crash *crash, const struct log *log);

/** The functions with which the drive reads the dumps. */
struct crash_store board_crash_store(struct board_crash *crash);

#endif
