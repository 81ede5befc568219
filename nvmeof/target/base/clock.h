/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the drive's clock: clock.c.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_CLOCK_H
#define ESSD_NVMEOF_TARGET_BASE_CLOCK_H

#include "lib/util.h"

struct nvmf_clock {
    uint64_t ms;          /* value that it was set to */
    uint64_t set_us;      /* when it was set; if never, power-on */
    uint64_t left_out_us; /* what now_us has left out since then */
    bool is_set;
};

/* It shows 0 now. */
void clock_init(struct nvmf_clock *clock, uint64_t now_us);

#endif
