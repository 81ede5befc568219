/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a drive reports about its NAND flash: counters over all power cycles,
 * the wear, and the number of blocks that may still fail.
 *
 * The flash's own counters begin at 0 with each start of the firmware.  The
 * usage keeper stores the sums (firmware/usage/usage_keeper.h).  The erasures
 * of each superblock are counted by the translation layer.
 */
#ifndef ESSD_MEDIUM_NAND_HEALTH_H
#define ESSD_MEDIUM_NAND_HEALTH_H

#include "firmware/medium/nand_medium.h"
#include "firmware/drivers/rnic.h"
#include "firmware/store/usage.h"
#include "nvmeof/target/target.h"

enum { NAND_HEALTH_US = 1000000 }; /* SMART's values are at most so old */

/* Treat as opaque. */
struct nand_health {
    const struct nand_medium *medium;
    const struct verbs *verbs;
    struct usage_flash before; /* the counters at the start */
    uint64_t seen;             /* sum of the counters that matter, last time */
    uint64_t check_us;
};

/**
 * @param verbs   the RNIC, whose parity errors count like those of the flash
 * @param before  is copied; the counters of earlier power cycles
 */
void nand_health_init(struct nand_health *health,
                      const struct nand_medium *medium,
                      const struct verbs *verbs,
                      const struct usage_flash *before);

/** The function for usage_keeper_add_flash(). */
void nand_health_count(void *health, struct usage_flash *flash);

/** The function for nvmf_config.read_flash. */
void nand_health_read(void *health, struct nvmf_flash_use *use);

/** Fill in the values of SMART that follow from the flash. */
void nand_health_fill(const struct nand_health *health,
                      struct nvmf_health *values);

/** Whether nand_health_fill() may give other values than the last time.
 * @param deadline_us  set to when to call this again */
MUST_USE bool nand_health_has_changed(struct nand_health *health,
                                      uint64_t now_us, uint64_t *deadline_us);

#endif
