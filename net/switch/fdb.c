/* SPDX-License-Identifier: BSD-2-Clause */
/* Filtering database: see fdb.h. */
#include "net/switch/fdb.h"

#include "lib/bytes.h"

_Static_assert(IS_POW2(FDB_SETS), "a hash is masked with FDB_SETS - 1");

static uint64_t fdb_make_key(const struct mac_addr *mac, uint16_t vlan)
{
    return (uint64_t)get_be32(mac->bytes) << 32 |
           (uint64_t)get_be16(mac->bytes + 4) << 16 | vlan;
}

/* The index of the first of the FDB_WAYS entries that may hold a key. */
static size_t fdb_find_set(const struct fdb *fdb, uint64_t key)
{
    uint64_t hash = (key ^ fdb->hash_key) * 0x9e3779b97f4a7c15u;

    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
    return (hash >> 32 & (FDB_SETS - 1)) * FDB_WAYS;
}

bool fdb_is_live(const struct fdb *fdb, const struct fdb_entry *entry,
                 uint32_t now_s)
{
    return entry->key != 0 &&
           (fdb->ageing_s == 0 || now_s - entry->seen_s < fdb->ageing_s);
}

/*
 * Choose which of two entries to replace: one that is free or has aged, or else
 * the one that was refreshed longer ago.
 */
static struct fdb_entry *fdb_worse_entry(const struct fdb *fdb,
                                         struct fdb_entry *a,
                                         struct fdb_entry *b, uint32_t now_s)
{
    if (!fdb_is_live(fdb, a, now_s)) {
        return a;
    }
    if (!fdb_is_live(fdb, b, now_s)) {
        return b;
    }
    return now_s - b->seen_s > now_s - a->seen_s ? b : a;
}

void fdb_learn(struct fdb *fdb, const struct mac_addr *mac, uint16_t vlan,
               uint8_t port, uint32_t now_s)
{
    uint64_t key = fdb_make_key(mac, vlan);
    struct fdb_entry *set = &fdb->entries[fdb_find_set(fdb, key)];
    struct fdb_entry *victim = set;

    for (unsigned i = 0; i < FDB_WAYS; i++) {
        if (set[i].key == key) {
            set[i].port = port;
            set[i].seen_s = now_s;
            return;
        }
        victim = fdb_worse_entry(fdb, victim, &set[i], now_s);
    }
    *victim = (struct fdb_entry){.key = key, .seen_s = now_s, .port = port};
}

uint8_t fdb_port(const struct fdb *fdb, const struct mac_addr *mac,
                 uint16_t vlan, uint32_t now_s)
{
    uint64_t key = fdb_make_key(mac, vlan);
    const struct fdb_entry *set = &fdb->entries[fdb_find_set(fdb, key)];

    for (unsigned i = 0; i < FDB_WAYS; i++) {
        if (set[i].key == key && fdb_is_live(fdb, &set[i], now_s)) {
            return set[i].port;
        }
    }
    return FDB_NO_PORT;
}

void fdb_forget(struct fdb *fdb, uint8_t port)
{
    for (unsigned i = 0; i < FDB_ENTRIES; i++) {
        if (port == FDB_NO_PORT || fdb->entries[i].port == port) {
            fdb->entries[i] = (struct fdb_entry){0};
        }
    }
}
