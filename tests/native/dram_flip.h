/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by tests in which bits of the drive's DRAM flip immediately before a
 * device reads them.
 */
#ifndef ESSD_TEST_NATIVE_DRAM_FLIP_H
#define ESSD_TEST_NATIVE_DRAM_FLIP_H

#include "bed_fixture.h"

#include "storage/ftl/state.h"

enum {
    ONE = 1, /* bits to flip: a word with one wrong bit is corrected, a word */
    TWO = 3, /* with two is lost */
};

/* The bits of a word that flip immediately before a device reads it. */
static struct {
    uint64_t bits; /* 0: nothing flips */
    uint32_t skip; /* reads before the flip */
    uint32_t offset;
    /* @return whether the device reads the stage's memory at this address */
    bool (*is_stage)(uint64_t *addr, uint64_t len);
    bool is_judging;
    uint32_t flips;
} flip;

static inline struct hw_ecc *drive_ecc(void)
{
    return &bed.drive->machine.ecc;
}

static inline struct ftl *drive_ftl(void)
{
    return bed.drive->drive.nand.ftl;
}

static inline uint64_t addr_of(const void *ptr)
{
    return (uintptr_t)ptr + bed.drive->drive.nand.seam.moves.addr_offset;
}

static inline void before_dma(void *ctx, uint64_t addr, uint64_t len)
{
    (void)ctx;
    if (flip.bits == 0 || flip.is_judging) {
        return;
    }
    flip.is_judging = true;
    if (flip.is_stage(&addr, len) && flip.skip-- == 0) {
        assert_true(hw_ecc_inject(drive_ecc(), addr + flip.offset, flip.bits));
        flip.bits = 0;
        flip.flips++;
    }
    flip.is_judging = false;
}

static inline void flip_at(bool (*is_stage)(uint64_t *addr, uint64_t len),
                           uint32_t offset, uint64_t bits)
{
    flip.is_stage = is_stage;
    flip.offset = offset;
    flip.bits = bits;
    flip.skip = 0;
    flip.flips = 0;
    bed.drive->machine.before_dma = before_dma;
}

static inline bool is_in_slots(uint64_t addr)
{
    return addr - addr_of(drive_ftl()->buffer.data) <
           (uint64_t)drive_ftl()->buffer.num_slots * FTL_UNIT_DATA;
}

static inline bool is_list(uint64_t addr, uint64_t len)
{
    return addr == bed.drive->drive.nand.seam.move_list.list_addr &&
           len == NAND_MOVE_HEADER_LEN;
}

#endif
