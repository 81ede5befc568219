/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock of the drive, which hosts set and read.
 */
#include "nvmeof/target/base/base.h"

void clock_init(struct nvmf_clock *clock, uint64_t now_us)
{
    *clock = (struct nvmf_clock){.set_us = now_us};
}

void nvmf_target_held_back(struct nvmf_target *target, uint64_t us)
{
    target->clock.left_out_us += us;
}

uint64_t clock_read_ms(const struct nvmf_target *target, uint64_t now_us)
{
    uint64_t passed_us =
        now_us > target->clock.set_us ? now_us - target->clock.set_us : 0;

    return target->clock.ms + (passed_us + target->clock.left_out_us) / 1000;
}

bool nvmf_target_time(const struct nvmf_target *target, uint64_t *ms)
{
    *ms = clock_read_ms(target, target->now_us);
    return target->clock.is_set;
}
