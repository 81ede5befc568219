/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares of a limited number of writes to flash, so that one host's changes do
 * not cost another host its own.
 *
 * A host may write as long as more writes are left for all hosts than it has
 * used lately; each hour of power-on halves what it has used.  So a host that
 * is alone takes half of the free writes at once, and what is left for others
 * stays above the number of writes that come in two hours.
 *
 * A host can restart the drive.  So what it has used is kept in flash
 * (firmware/usage/share_keeper.h); else its share would be full again.
 */
#ifndef ESSD_STORE_WRITE_SHARES_H
#define ESSD_STORE_WRITE_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

enum {
    WRITE_SHARES_HOSTS = 32,
    WRITE_SHARES_LEN = 8 + WRITE_SHARES_HOSTS * 8, /* of a record */
};

/* Treat as opaque; zero at the start. */
struct write_shares {
    uint64_t hours; /* when what the hosts have used was halved last */
    struct {
        uint32_t host;
        uint32_t used; /* 0: this element is free */
    } of[WRITE_SHARES_HOSTS];
};

/**
 * Whether a host may write once more.
 *
 * @param host   a number for the host
 * @param hours  of power-on
 * @param left   writes that are left for all hosts
 */
MUST_USE bool write_shares_allow(struct write_shares *shares, uint32_t host,
                                 uint64_t hours, uint64_t left);

/** The host has written so often, or is going to. */
void write_shares_count(struct write_shares *shares, uint32_t host,
                        uint32_t writes);

/** What hosts have used, as WRITE_SHARES_LEN bytes, and back. */
void write_shares_emit(const struct write_shares *shares, uint8_t *buf);
void write_shares_parse(struct write_shares *shares, const uint8_t *buf);

#endif
