/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/usage/share_keeper.h"

#include <string.h>

enum {                    /* byte offsets in the record */
       SHARE_VERSION = 0, /* another one is not read */
       SHARE_TABLES = 1,  /* their number; 2 reserved bytes follow */
       SHARE_KEY = 4,     /* the secret */
       SHARE_EVENTS = SHARE_RECORD_HEADER_LEN, /* event_limits.c */
       /* Tables in the order of enum share_of: the hour of power-on in which
        * it was halved last (8 bytes), and for each host its number and its
        * writes (4 bytes each).  Later firmware may append more tables. */
       SHARE_FIRST_TABLE = SHARE_EVENTS + NVMF_EVENT_LIMITS_LEN,
       VERSION = 1,
};
_Static_assert((int)SHARE_KEY + (int)SIPHASH_KEY_LEN == (int)SHARE_EVENTS,
               "the secret ends the header");

#define HOUR_US (UINT64_C(3600) * 1000 * 1000)

/* How many tables a record has that this firmware can read.  @return false when
 * it can read nothing of it */
static bool read_header(const struct operation_store *store,
                        unsigned int *tables)
{
    if (store->len < SHARE_FIRST_TABLE ||
        store->record[SHARE_VERSION] != VERSION) {
        return false;
    }
    *tables =
        MIN((unsigned int)((store->len - SHARE_FIRST_TABLE) / WRITE_SHARES_LEN),
            store->record[SHARE_TABLES]);
    *tables = MIN(*tables, (unsigned int)SHARE_KINDS);
    return true;
}

/* Put the record together.  @return a mark that changes with it */
static uint64_t make_record(struct share_keeper *keeper)
{
    uint8_t *to = keeper->record;

    memset(to, 0, SHARE_RECORD_LEN);
    to[SHARE_VERSION] = VERSION;
    memcpy(to + SHARE_KEY, keeper->key, sizeof(keeper->key));
    if (keeper->target != NULL) {
        to[SHARE_TABLES] = SHARE_KINDS;
        nvmf_target_event_limits(keeper->target, to + SHARE_EVENTS);
        for (unsigned int i = 0; i < SHARE_KINDS; i++) {
            write_shares_emit(keeper->shares[i],
                              to + SHARE_FIRST_TABLE + i * WRITE_SHARES_LEN);
        }
    }
    return siphash(keeper->key, to, SHARE_RECORD_LEN);
}

/* If the flash refuses this record, the next one may succeed. */
static void save_record(struct share_keeper *keeper)
{
    const struct operation_store *store = &keeper->store;
    uint64_t mark = make_record(keeper);

    if (store->save != NULL && mark != keeper->saved_mark &&
        store->save(store->ctx, keeper->record, SHARE_RECORD_LEN)) {
        keeper->saved_mark = mark;
    }
}

bool share_keeper_init(struct share_keeper *keeper,
                       const struct share_keeper_config *config)
{
    const struct operation_store *store = &config->store;
    bool has_record = store->state == OPERATION_RECORD_OK ||
                      store->state == OPERATION_RECORD_OLDER;
    unsigned int tables;

    *keeper = (struct share_keeper){.store = *store};
    if (has_record && read_header(store, &tables)) {
        memcpy(keeper->key, store->record + SHARE_KEY, sizeof(keeper->key));
        return true;
    }
    keeper->store.state = OPERATION_RECORD_NONE;
    config->random(config->random_ctx, keeper->key, sizeof(keeper->key));
    save_record(keeper);
    return store->state == OPERATION_RECORD_NONE;
}

const uint8_t *share_keeper_key(const struct share_keeper *keeper)
{
    return keeper->key;
}

void share_keeper_start(struct share_keeper *keeper,
                        struct write_shares *const shares[SHARE_KINDS],
                        struct nvmf_target *target)
{
    const struct operation_store *store = &keeper->store;
    unsigned int tables = 0;

    memcpy(keeper->shares, shares, sizeof(keeper->shares));
    keeper->target = target;
    if (store->state == OPERATION_RECORD_NONE || !read_header(store, &tables)) {
        return;
    }
    nvmf_target_restore_event_limits(target, store->record + SHARE_EVENTS);
    for (unsigned int i = 0; i < tables; i++) {
        write_shares_parse(shares[i], store->record + SHARE_FIRST_TABLE +
                                          i * WRITE_SHARES_LEN);
    }
    keeper->saved_mark = make_record(keeper);
}

uint64_t share_keeper_step(struct share_keeper *keeper, uint64_t now_us)
{
    if (now_us >= keeper->save_us) {
        if (keeper->save_us != 0) {
            save_record(keeper);
        }
        keeper->save_us = now_us + HOUR_US;
    }
    return keeper->save_us;
}

void share_keeper_stop(struct share_keeper *keeper)
{
    save_record(keeper);
}
