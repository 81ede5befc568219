/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps what hosts have used of their shares over restarts, and the secret that
 * makes the numbers of hosts.
 *
 * A host can restart the drive: it activates other firmware and resets the
 * subsystem.  Limits that a restart forgets are none.  So the shares are
 * written to flash in every orderly stop, which such a restart is, and every
 * hour in which one has changed.  After a power cut, which no host can cause,
 * hosts have what they had at the last of these.
 *
 * The secret is written as soon as it is made, because numbers of hosts are in
 * other records, too (those of the error log).  It never changes.
 *
 * Wear: hosts can restart the drive at most as often as they can activate an
 * image (firmware/update/update_slots.c).  With the writes of every hour, the
 * 32 sectors last for 6 years at that rate.
 * Reference: docs/hardware/flash.md, "Shares of hosts"
 */
#ifndef ESSD_USAGE_SHARE_KEEPER_H
#define ESSD_USAGE_SHARE_KEEPER_H

#include "firmware/operations/operation_store.h"
#include "firmware/store/write_shares.h"
#include "lib/siphash.h"
#include "nvmeof/target/target.h"

/* What hosts have shares of; the order is that of the record. */
enum share_of {
    SHARE_OF_NAMESPACES,
    SHARE_OF_RESERVATIONS,
    SHARE_OF_FENCES,
    SHARE_OF_SETTINGS,
    SHARE_OF_LATENCY,
    SHARE_OF_IMAGES,
    SHARE_OF_SLOTS,
    SHARE_KINDS
};

enum {
    SHARE_RECORD_HEADER_LEN = 20,
    SHARE_RECORD_LEN = SHARE_RECORD_HEADER_LEN + NVMF_EVENT_LIMITS_LEN +
                       SHARE_KINDS * WRITE_SHARES_LEN,
};

struct share_keeper_config {
    struct operation_store store;
    /* Fill a buffer with random bytes that nobody can predict. */
    void (*random)(void *ctx, uint8_t *buf, size_t len);
    void *random_ctx;
};

/* Treat as opaque. */
struct share_keeper {
    struct operation_store store;
    uint8_t key[SIPHASH_KEY_LEN];
    struct write_shares *shares[SHARE_KINDS];
    struct nvmf_target *target; /* NULL before share_keeper_start() */
    uint64_t saved_mark;        /* of the record that was written last */
    uint64_t save_us; /* when it is written next if it has changed; 0: not
                       * decided */
    uint8_t record[SHARE_RECORD_LEN];
};

/**
 * Take the secret from flash, or make it.
 *
 * @param config  its record is used until share_keeper_start()
 * @return false when the record in flash is damaged: all hosts have new numbers
 */
MUST_USE bool share_keeper_init(struct share_keeper *keeper,
                                const struct share_keeper_config *config);

/** The secret for nvmf_config.number_key, SIPHASH_KEY_LEN bytes. */
const uint8_t *share_keeper_key(const struct share_keeper *keeper);

/** Restore the shares, before hosts connect.  They outlive the keeper. */
void share_keeper_start(struct share_keeper *keeper,
                        struct write_shares *const shares[SHARE_KINDS],
                        struct nvmf_target *target);

/** Write the shares if it is time.  @return when to call this again */
uint64_t share_keeper_step(struct share_keeper *keeper, uint64_t now_us);

/** Write the shares, before an orderly stop. */
void share_keeper_stop(struct share_keeper *keeper);

#endif
