/* SPDX-License-Identifier: BSD-2-Clause */
#include "late.h"

bool late_wait(const struct late *late, bool (*is_done)(void *done_ctx),
               void *done_ctx, unsigned int *turns)
{
    uint64_t end_us = 0;

    *turns = 0;
    while (*turns < LATE_TURNS || late->now_us(late->ctx) < end_us) {
        if (!late->turn(late->ctx)) {
            return false;
        }
        if (*turns == 0) {
            /* From here on, the drive runs. */
            end_us = late->now_us(late->ctx) + LATE_US;
        }
        (*turns)++;
        if (late->run(late->ctx, is_done, done_ctx, LATE_LOOK_US)) {
            return true;
        }
    }
    return false;
}

static bool is_never_done(void *ctx)
{
    (void)ctx;
    return false;
}

void late_catch_up(const struct late *late)
{
    unsigned int turns = 0, all = LATE_FEW;

    while (turns++ < all) {
        uint64_t begin_us = late->now_us(late->ctx);

        if (!late->turn(late->ctx)) {
            return;
        }
        (void)late->run(late->ctx, is_never_done, NULL, 0);
        if (late->now_us(late->ctx) - begin_us > LATE_TURN_US) {
            all = LATE_TURNS;
        }
    }
}
