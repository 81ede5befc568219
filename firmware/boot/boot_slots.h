/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the boot ROM chooses an image: it judges both slots, loads the chosen one
 * and keeps the record of an image on trial.
 * Reference: docs/hardware/boot.md
 */
#ifndef ESSD_BOOT_BOOT_SLOTS_H
#define ESSD_BOOT_BOOT_SLOTS_H

#include "firmware/store/image.h"
#include "firmware/store/slot_record.h"
#include "lib/regfields.h"
#include "hw-model/regs/sysctl.h"

struct boot_config {
    const struct flash *flash;
    uint8_t *dram; /* where the DRAM's first byte is for this hart */
    uint64_t dram_addr, dram_bytes;
    const uint8_t *key; /* public key of 32 bytes; NULL: none is fused */
    bool is_unplanned;  /* see sysctl_reset_is_unplanned() */
    /* Set the lost words of memory to zero; NULL: there are none. */
    void (*clear_lost_words)(void *ctx, const void *memory, size_t len);
    void *clear_ctx;
};

struct boot_slot {
    struct image_header header;
    enum sysctl_boot_verdict verdict;
};

struct boot_slots {
    struct boot_config config;
    struct boot_slot slot[SLOT_COUNT];
    struct slot_record state;
    uint32_t sequence; /* of the record */
    bool has_lost;     /* the newest record is damaged, and a new one is used */
    bool gave_up;      /* this start has given up the image on trial */
    bool waits;        /* the chosen image is not started after this reset */
    bool cannot_record; /* the flash has not taken the record; then an image on
                         * trial does not start */
};

/** Read the headers and the record. */
void boot_slots_read(struct boot_slots *slots,
                     const struct boot_config *config);

/**
 * Load the chosen image, or the other one if the chosen one is not good.  If
 * the chosen image is on trial, this start is counted in the flash before the
 * image is loaded.  If it has had all its starts, the other image is loaded
 * instead, and the image on trial is given up.
 *
 * After a reset by a watchdog or a panic, an image that was activated but never
 * started is not started yet.  The image that ran before is loaded again,
 * because the write buffer in DRAM has the layout of this image.
 *
 * @return 1 or 2, or 0 when no slot holds a good image
 */
uint8_t boot_slots_choose(struct boot_slots *slots);

#endif
