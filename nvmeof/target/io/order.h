/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the two orders of writes: order.c.
 */
#ifndef ESSD_NVMEOF_TARGET_IO_ORDER_H
#define ESSD_NVMEOF_TARGET_IO_ORDER_H

#include "nvmeof/target/request/queue.h"
#include "nvmeof/target/request_state.h"

/* Writes, in lists by the place of their first block: order.c. */
enum {
    ORDER_REGION_SHIFT = 11, /* a region has as many blocks as fit into one
                              * transfer, so a Write touches at most two */
    ORDER_REGIONS = 64,
    ORDER_LONG = ORDER_REGIONS, /* list of the writes that are longer */
    ORDER_LISTS,
};
_Static_assert(1 << ORDER_REGION_SHIFT >= NVMF_MAX_TRANSFER / 512,
               "a Write is not longer than a region");

struct nvmf_order {
    struct nvmf_write *list[ORDER_LISTS];
    uint64_t sequence; /* of the last write */
    uint32_t count;    /* writes in all lists */
    uint32_t reaching; /* those of them that touch more than one region */
    /*
     * Writes are listed.  Otherwise, of the writes that have their data: all of
     * them come from one controller, none of whose queue pairs has ended with
     * commands in flight, and none is exclusive.  Of those that have arrived:
     * no two come from different controllers of the same host.
     */
    bool is_kept;
    bool is_waking;
    bool looks_again; /* The turn of a waiting one may have come. */
    struct nvmf_queue waiting;
};

#endif
