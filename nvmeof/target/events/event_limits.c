/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limits of persistent events (persistent_event.c) as a record, so that a
 * host that can restart the drive does not get its share of the events again.
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/events/events.h"

/*
 * The record of the limits, in which bytes are in the order of the fields: for
 * each type, the time in ms until PEL_BURST events may be recorded again; then
 * for each host its number, and how many events of each type it has caused.
 */
enum {
    LIMITS_PACE_LEN = 4,
    LIMITS_HOSTS = PEL_TYPES * LIMITS_PACE_LEN,
    LIMITS_USED = 4, /* byte offset in the part of a host */
    LIMITS_HOST_LEN = LIMITS_USED + PEL_TYPES * 2,
};
_Static_assert((int)LIMITS_HOSTS + (int)PEL_SHARES * (int)LIMITS_HOST_LEN <=
                   (int)NVMF_EVENT_LIMITS_LEN,
               "the record has room for all hosts");
#define LIMITS_PACE_MAX_US ((uint64_t)PEL_BURST * PEL_PACE_US)

void nvmf_target_event_limits(const struct nvmf_target *target, uint8_t *record)
{
    const struct persistent_log *log = &target->pel;

    memset(record, 0, NVMF_EVENT_LIMITS_LEN);
    for (size_t k = 0; k < PEL_TYPES; k++) {
        uint64_t ahead_us =
            MAX(log->pace_us[k], target->now_us) - target->now_us;

        put_le32(record + LIMITS_PACE_LEN * k, (uint32_t)(ahead_us / 1000));
    }
    for (size_t i = 0; i < PEL_SHARES; i++) {
        uint8_t *to = record + LIMITS_HOSTS + LIMITS_HOST_LEN * i;

        put_le32(to, log->share[i].host);
        for (size_t k = 0; k < PEL_TYPES; k++) {
            put_le16(to + LIMITS_USED + 2 * k, log->share[i].used[k]);
        }
    }
}

void nvmf_target_restore_event_limits(struct nvmf_target *target,
                                      const uint8_t *record)
{
    struct persistent_log *log = &target->pel;

    log->halved_us = target->now_us;
    for (size_t k = 0; k < PEL_TYPES; k++) {
        uint64_t ahead_us =
            get_le32(record + LIMITS_PACE_LEN * k) * UINT64_C(1000);

        log->pace_us[k] = target->now_us + MIN(ahead_us, LIMITS_PACE_MAX_US);
    }
    for (size_t i = 0; i < PEL_SHARES; i++) {
        const uint8_t *from = record + LIMITS_HOSTS + LIMITS_HOST_LEN * i;

        log->share[i].host = get_le32(from);
        for (size_t k = 0; k < PEL_TYPES; k++) {
            log->share[i].used[k] = get_le16(from + LIMITS_USED + 2 * k);
        }
    }
}
