/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the latency monitor over power cycles: its settings when a host changes
 * them, and its counts every LATENCY_SAVE_MINUTES while it is on, and before an
 * orderly power-off.  A power cut loses the counts since the last record.
 *
 * Wear: hosts' changes are limited as operation_may_save() says, and each host
 * has a share of those that are left (firmware/store/write_shares.h).  The
 * records of the counts, 52,560 a year, take turns in 32 sectors, each of which
 * endures 100,000 erasures: 60 years.
 */
#ifndef ESSD_USAGE_LATENCY_KEEPER_H
#define ESSD_USAGE_LATENCY_KEEPER_H

#include "firmware/operations/operation_store.h"
#include "firmware/store/write_shares.h"
#include "nvmeof/target/target.h"

enum { LATENCY_SAVE_MINUTES = 10 };

struct latency_keeper_config {
    struct operation_store store;
    uint64_t (*power_on_hours)(void *ctx);
    uint32_t (*acting_host)(void *ctx); /* whose command is executed now */
    void *ctx;
};

/* Treat as opaque. */
struct latency_keeper {
    struct latency_keeper_config config;
    struct nvmf_target *target; /* NULL before latency_keeper_start() */
    uint32_t writes;
    struct write_shares shares;
    uint64_t save_us; /* when the counts are written next; 0: not decided */
};

/** @param config  its record is used until latency_keeper_start() */
void latency_keeper_init(struct latency_keeper *keeper,
                         const struct latency_keeper_config *config);

/** The target's seam.  `keeper` outlives the target. */
struct nvmf_latency_store latency_keeper_seam(struct latency_keeper *keeper);

/**
 * Restore what earlier power cycles have left.
 *
 * @return false when the record in flash is damaged
 */
MUST_USE bool latency_keeper_start(struct latency_keeper *keeper,
                                   struct nvmf_target *target);

/** What hosts have used of the writes, to be kept over a restart. */
struct write_shares *latency_keeper_shares(struct latency_keeper *keeper);

/** Write the counts if it is time.  @return when to call this again */
uint64_t latency_keeper_step(struct latency_keeper *keeper, uint64_t now_us);

/** Write the counts, before an orderly power-off. */
void latency_keeper_stop(struct latency_keeper *keeper);

#endif
