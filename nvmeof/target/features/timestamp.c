/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Setting the drive's clock: by a host, with the feature Timestamp (0Eh), or by
 * the drive itself.
 */
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/features/features.h"

void clock_set(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
               uint64_t epoch_ms, uint64_t now_us)
{
    uint64_t before_ms;
    bool was_set = nvmf_target_time(target, &before_ms);

    target->clock_ms = epoch_ms;
    target->clock_set_us = now_us;
    target->clock_left_out_us = 0;
    target->is_clock_set = true;
    pel_note_clock(target, ctrl, was_set, before_ms);
}

void nvmf_target_set_time(struct nvmf_target *target, uint64_t epoch_ms,
                          uint64_t now_us)
{
    clock_set(target, NULL, epoch_ms, now_us);
}
