/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots: units in DRAM. */
#ifndef ESSD_FTL_SLOT_H
#define ESSD_FTL_SLOT_H

#include "storage/ftl/base/ftl_list.h"

enum ftl_pool {
    FTL_POOL_HOST, /* the write buffer */
    FTL_POOL_TRIM, /* trim pages, health pages, wear pages */
    FTL_POOL_MOVE, /* units that garbage collection moves */
    FTL_POOLS
};

enum ftl_slot_state {
    FTL_SLOT_FREE,
    FTL_SLOT_FILLING, /* Its old contents are being read from flash; then it
                       * waits, with the write that needed them. */
    FTL_SLOT_WAITING, /* Waits to be put into a row; writes may change it. */
    FTL_SLOT_PROGRAMMING, /* Is being programmed; nothing changes it. */
};

struct ftl_slot {
    uint8_t state;    /* enum ftl_slot_state */
    uint8_t pool;     /* enum ftl_pool */
    bool is_trimmed;  /* while it was being programmed */
    uint16_t buffer;  /* index of the buffer with its data and metadata */
    uint16_t follows; /* the slot, being programmed, with the contents before
                       * these; or FTL_LIST_END */
    uint32_t number;  /* index in the map */
    /*
     * The entry of the map for the contents that these replace, or FTL_NOWHERE.
     * The replaced contents stay valid until these are durable.  In the pool of
     * garbage collection: the place from which the unit is moved.
     */
    uint32_t old_place;
    uint64_t accepted; /* its age: contents accepted later have larger ones */
    /* Of a unit that is moved: see struct ftl_system. */
    uint64_t version;
    uint8_t attempt;
    bool is_lost;
    uint8_t marks; /* blocks that a host has marked as unreadable, or of which a
                    * word was lost in DRAM */
    bool must_be_read; /* A word of a unit that is moved was lost in DRAM, so
                        * the unit has to be read from the flash again. */
};

/* The write buffer, and what garbage collection moves. */
struct ftl_buffer {
    uint32_t num_slots;
    struct ftl_slot *slots;
    uint8_t *data; /* of buffers: 4096 bytes each */
    uint8_t *meta; /* 64 bytes each */
    struct ftl_link *wait_links;
    struct ftl_link *dirty_links;
    struct ftl_list free_slots[FTL_POOLS];
    struct ftl_list waiting[FTL_POOLS];
    /* Slots that are not durable, in the order of `accepted`. */
    struct ftl_list dirty[FTL_POOLS];
    uint64_t last_accept_us;
    uint64_t flushed; /* a host's request has waited for everything that was
                       * accepted up to this number */
    uint32_t flush;   /* media_io.number of this request */

    uint64_t urgent; /* what was accepted up to this number may have been in a
                      * row that failed: it may use one more superblock */
};

#endif
