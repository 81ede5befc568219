/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/loop/watchdog_keeper.h"

enum loop_work watchdog_keeper_step(void *ctx, struct loop_step *step)
{
    struct watchdog_keeper *keeper = ctx;
    uint64_t hal_us = step->now_us + step->left_out_us;

    if (hal_us >= keeper->kick_us) {
        watchdog_kick(keeper->watchdog);
        keeper->kick_us = hal_us + WATCHDOG_KICK_US;
    }
    loop_call_at(step, keeper->kick_us - step->left_out_us);
    return LOOP_IDLE;
}
