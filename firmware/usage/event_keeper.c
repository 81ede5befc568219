/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/usage/event_keeper.h"

enum { RECORDS_A_STEP = 4 /* each takes about 1 ms */ };

void event_keeper_start(struct event_keeper *keeper,
                        const struct event_keeper_config *config,
                        struct nvmf_target *target)
{
    const uint8_t *event;
    uint32_t number;
    uint16_t len;
    size_t at = 0;

    *keeper = (struct event_keeper){
        .save = config->save,
        .save_ctx = config->save_ctx,
        .target = target,
    };
    while (config->events != NULL &&
           event_records_next(config->events, &at, &number, &event, &len)) {
        nvmf_target_restore_event(target, number, event, len);
    }
    keeper->saved = nvmf_target_events(target);
}

/* Write the next record of the next event.  An event that the flash refuses is
 * given up, since the next one may succeed. */
static void save_record(struct event_keeper *keeper)
{
    uint64_t number = keeper->saved + 1;
    uint8_t event[NVMF_EVENT_MAX];
    uint8_t record[RECORD_DATA_LEN];
    uint16_t len;

    if (nvmf_target_event(keeper->target, number, event, &len)) {
        event_part_emit(record, (uint32_t)number, event, len, keeper->parts);
        keeper->parts++;
        if (keeper->save(keeper->save_ctx, record) &&
            keeper->parts < event_part_count(len)) {
            return;
        }
    }
    keeper->saved = number;
    keeper->parts = 0;
}

static bool has_new_events(const struct event_keeper *keeper)
{
    return keeper->save != NULL &&
           keeper->saved != nvmf_target_events(keeper->target);
}

uint64_t event_keeper_step(struct event_keeper *keeper, uint64_t now_us)
{
    for (unsigned int i = 0; i < RECORDS_A_STEP && has_new_events(keeper);
         i++) {
        save_record(keeper);
    }
    return has_new_events(keeper) ? now_us : UINT64_MAX;
}

void event_keeper_stop(struct event_keeper *keeper)
{
    while (has_new_events(keeper)) {
        save_record(keeper);
    }
}
