/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A time limit for hardware that is asked again and again until it has done
 * something.  It counts only time in which it was asked: the computer may stop
 * an emulated drive, hardware included, for any time between two questions, and
 * that time does not show that the hardware has failed.
 *
 *   patience_start(&patience, hal_now_us(), LIMIT_US);
 *   while (is_busy()) {
 *       if (patience_is_over(&patience, hal_now_us())) {
 *           ... it has failed ...
 *       }
 *   }
 */
#ifndef ESSD_LIB_PATIENCE_H
#define ESSD_LIB_PATIENCE_H

#include "lib/util.h"

/* What the time between two questions counts at most. */
#define PATIENCE_STEP_US UINT64_C(100000)

struct patience {
    uint64_t asked_us;
    uint64_t left_us;
};

static inline void patience_start(struct patience *patience, uint64_t now_us,
                                  uint64_t limit_us)
{
    patience->asked_us = now_us;
    patience->left_us = limit_us;
}

/** To be called after each question whose answer was no. */
static inline bool patience_is_over(struct patience *patience, uint64_t now_us)
{
    uint64_t past_us = now_us - patience->asked_us;

    past_us = MIN(past_us, PATIENCE_STEP_US);
    patience->asked_us = now_us;
    patience->left_us -= MIN(patience->left_us, past_us);
    return patience->left_us == 0;
}

#endif
