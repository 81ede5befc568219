/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects the firmware updater with the target, and restarts the drive at a
 * subsystem reset if another image is to start.
 */
#ifndef ESSD_APP_FIRMWARE_UPDATE_H
#define ESSD_APP_FIRMWARE_UPDATE_H

#include "firmware/loop/loop.h"
#include "firmware/update/updater.h"

struct drive;
struct drive_config;

/* What the drive has to know about its image slots. */
struct firmware_config {
    const struct flash *flash; /* NULL: no slots; no firmware commands */
    bool is_bad[SLOT_COUNT];   /* the boot ROM has refused the slot */
    bool is_unplanned;         /* a watchdog or a panic has reset the drive */
    uint64_t dram_addr, dram_bytes;
    const uint8_t *key; /* images must be signed with it; NULL: need not */

    /* Reset the whole drive.  NULL: a subsystem reset activates nothing. */
    void (*restart)(void *ctx);
    void *ctx;
};

/* Treat as opaque. */
struct firmware_update {
    struct updater updater;
    void (*restart)(void *ctx);
    void *ctx;
    uint64_t longest_us; /* longest step of the commit in progress */
    uint64_t restart_us; /* latest time of a due restart; 0: none is due */
};

/** Reserve the memory for an image, and read the slots.  Without memory the
 * drive has no firmware commands. */
void firmware_update_start(struct drive *drive,
                           const struct drive_config *config);

/** Report an image that was given up.  Call this when the target has started.
 */
void firmware_update_report(struct drive *drive);

/** A host has reset the subsystem.  The function for
 * nvmf_config.subsystem_reset. */
void firmware_update_subsystem_reset(void *drive);

/** A step of the main loop. */
enum loop_work firmware_update_step(void *drive, struct loop_step *step);

#endif
