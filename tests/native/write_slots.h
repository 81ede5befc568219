/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes that are in progress when a drive is reset or loses its power.  Each
 * slot is a range of blocks with one write at a time.  After the drive's next
 * start, each block must have the version that was acknowledged last, or the
 * one that was in progress.
 */
#ifndef ESSD_TEST_NATIVE_WRITE_SLOTS_H
#define ESSD_TEST_NATIVE_WRITE_SLOTS_H

#include "bed.h"

enum { WRITE_SLOTS = 12 };

struct write_slots {
    struct bed *bed;
    struct write_slot {
        struct write_slots *slots;
        uint64_t lba;
        uint32_t offset; /* in the host's area */
        /* The version acknowledged last, and the one begun last. */
        uint32_t acknowledged, version;
        bool is_busy;
    } slot[WRITE_SLOTS];
};

void write_slots_init(struct write_slots *slots, struct bed *bed);
/* Begin writes in a random order for a random time. */
void write_slots_use(struct write_slots *slots, uint64_t *random);
/*
 * Fail unless each block has a version that it may have.  Then write one more
 * version of all blocks, and wait for these writes.
 * @return the sum of the versions that were acknowledged
 */
uint32_t write_slots_check(struct write_slots *slots);

#endif
