/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace points of the translation layer: the events of group FTL in
 * lib/trace.h.  Each function below is called only while they are wanted:
 *
 *     if (ftl_is_traced(ftl)) {
 *         ftl_trace_row(&ftl->map_floor, request);
 *     }
 *
 * The cause of each operation of the flash goes with the operation itself, as
 * ftl_flash_op.tag, whether or not anybody traces.
 */
#ifndef ESSD_FTL_TRACE_H
#define ESSD_FTL_TRACE_H

#include "storage/ftl/base/base_floor.h"

/* What an event FTL_PHASE is about.  Its phases are those of the enums named
 * here. */
enum ftl_activity {
    FTL_ACTIVITY_MOUNT,      /* enum ftl_mount_phase, or one of the next two */
    FTL_ACTIVITY_CHECKPOINT, /* enum ftl_checkpoint_state */
    FTL_ACTIVITY_WIPE,       /* enum ftl_wipe_phase */
};
/* Why a command of a host waits. */
enum ftl_wait {
    FTL_WAIT_SLOT,    /* the write buffer is full: the host is throttled */
    FTL_WAIT_DURABLE, /* a flush or FUA waits until the data is on flash */
};

static inline bool ftl_is_traced(const struct ftl_base_floor *ftl)
{
    return trace_is_on(ftl->config.trace, TRACE_GROUP_FTL);
}

/** @return the request of a host that a tag of the flash names, as an event has
 * it */
static inline uint32_t ftl_trace_request(uint32_t tag)
{
    uint32_t number = tag & FTL_TAG_NUMBER;

    return number == FTL_TAG_NUMBER ? TRACE_NO_REQUEST : number;
}

void ftl_trace_emit(const struct ftl_base_floor *ftl,
                    const struct trace_record *record, const char *text);
/** @param superblock  what the activity works on, or FTL_NOWHERE */
void ftl_trace_phase(const struct ftl_base_floor *ftl,
                     enum ftl_activity activity, uint32_t phase,
                     uint32_t superblock);

#endif
