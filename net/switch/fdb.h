/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filtering database: behind which port a MAC address is, for each VLAN.
 * Spec: IEEE 802.1Q clause 8.8, independent VLAN learning.
 *
 * Entries age: one that has not been refreshed for the ageing time is not used
 * any more.  An address can be stored in FDB_WAYS entries only.  If all of them
 * are in use, the address replaces the one that was refreshed longest ago.
 */
#ifndef ESSD_NET_SWITCH_FDB_H
#define ESSD_NET_SWITCH_FDB_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/eth.h"

enum {
    FDB_SETS = 2048, /* a power of two */
    FDB_WAYS = 4,
    FDB_ENTRIES = FDB_SETS * FDB_WAYS,
    FDB_NO_PORT = 0xff,
};

struct fdb_entry {
    uint64_t key;    /* address, then VLAN in the low 16 bits; 0: free */
    uint32_t seen_s; /* when the last frame from this address arrived */
    uint8_t port;
};

struct fdb {
    struct fdb_entry entries[FDB_ENTRIES];
    uint32_t ageing_s; /* 0: entries do not age */
    uint64_t hash_key; /* makes it hard to choose addresses that collide */
};

/** Learn that a station is behind a port. */
void fdb_learn(struct fdb *fdb, const struct mac_addr *mac, uint16_t vlan,
               uint8_t port, uint32_t now_s);

/** @return the port of a station, or FDB_NO_PORT */
MUST_USE uint8_t fdb_port(const struct fdb *fdb, const struct mac_addr *mac,
                          uint16_t vlan, uint32_t now_s);

/** Forget what was learned on one port, or with FDB_NO_PORT, everything. */
void fdb_forget(struct fdb *fdb, uint8_t port);

/** Whether an entry is in use and has not aged. */
MUST_USE bool fdb_is_live(const struct fdb *fdb, const struct fdb_entry *entry,
                          uint32_t now_s);

static inline struct mac_addr fdb_entry_mac(const struct fdb_entry *entry)
{
    struct mac_addr mac;

    for (unsigned i = 0; i < sizeof(mac.bytes); i++) {
        mac.bytes[i] = (uint8_t)(entry->key >> (56 - 8 * i));
    }
    return mac;
}

static inline uint16_t fdb_entry_vlan(const struct fdb_entry *entry)
{
    return (uint16_t)entry->key;
}

#endif
