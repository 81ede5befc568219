/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/usage/latency_keeper.h"

#define SAVE_US ((uint64_t)LATENCY_SAVE_MINUTES * 60 * 1000 * 1000)

void latency_keeper_init(struct latency_keeper *keeper,
                         const struct latency_keeper_config *config)
{
    *keeper = (struct latency_keeper){
        .config = *config,
        .writes = config->store.writes,
    };
}

static bool save_record(struct latency_keeper *keeper, const uint8_t *record,
                        size_t len)
{
    const struct operation_store *store = &keeper->config.store;

    keeper->writes++;
    return store->save(store->ctx, record, len);
}

/* A host has changed the settings. */
static enum nvmf_volume_result save_settings(void *ctx, const uint8_t *record,
                                             size_t len)
{
    struct latency_keeper *keeper = ctx;
    const struct latency_keeper_config *config = &keeper->config;

    uint32_t host = config->acting_host(config->ctx);
    uint64_t hours = config->power_on_hours(config->ctx);

    if (!write_shares_allow(&keeper->shares, host, hours,
                            operation_saves_left(keeper->writes, hours))) {
        return NVMF_VOLUME_TOO_OFTEN;
    }
    write_shares_count(&keeper->shares, host, 1);
    keeper->save_us = 0;
    return save_record(keeper, record, len) ? NVMF_VOLUME_OK
                                            : NVMF_VOLUME_FAILED;
}

struct nvmf_latency_store latency_keeper_seam(struct latency_keeper *keeper)
{
    return (struct nvmf_latency_store){
        .ctx = keeper,
        .save = keeper->config.store.save != NULL ? save_settings : NULL,
    };
}

struct write_shares *latency_keeper_shares(struct latency_keeper *keeper)
{
    return &keeper->shares;
}

bool latency_keeper_start(struct latency_keeper *keeper,
                          struct nvmf_target *target)
{
    const struct operation_store *store = &keeper->config.store;

    keeper->target = target;
    switch (store->state) {
    case OPERATION_RECORD_NONE:
        return true;
    case OPERATION_RECORD_OK:
    case OPERATION_RECORD_OLDER:
        return nvmf_target_restore_latency(target, store->record, store->len);
    case OPERATION_RECORD_DAMAGED:
        break;
    }
    return false;
}

/* @return false when the monitor is off */
static bool save_counts(struct latency_keeper *keeper)
{
    uint8_t record[NVMF_LATENCY_RECORD_LEN];

    if (!nvmf_target_latency_record(keeper->target, record)) {
        return false;
    }
    /* If the flash refuses this record, the next one may succeed. */
    (void)save_record(keeper, record, sizeof(record));
    return true;
}

uint64_t latency_keeper_step(struct latency_keeper *keeper, uint64_t now_us)
{
    if (keeper->config.store.save == NULL) {
        return UINT64_MAX;
    }
    if (keeper->save_us == 0) {
        keeper->save_us = now_us + SAVE_US;
    }
    if (now_us >= keeper->save_us) {
        keeper->save_us = now_us + SAVE_US;
        (void)save_counts(keeper);
    }
    return keeper->save_us;
}

void latency_keeper_stop(struct latency_keeper *keeper)
{
    if (keeper->config.store.save != NULL) {
        (void)save_counts(keeper);
    }
}
