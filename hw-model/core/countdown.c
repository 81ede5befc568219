/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-model/core/countdown.h"

void countdown_start(struct countdown *countdown, uint64_t now_ns,
                     uint64_t length_ns)
{
    countdown->left_ns = length_ns;
    countdown->since_ns = now_ns;
    countdown->is_running = true;
}

void countdown_stop(struct countdown *countdown)
{
    countdown->is_running = false;
}

static uint64_t step_ns(const struct countdown *countdown)
{
    return MIN(countdown->left_ns, COUNTDOWN_STEP_NS);
}

uint64_t countdown_deadline_ns(const struct countdown *countdown)
{
    return countdown->is_running ? countdown->since_ns + step_ns(countdown)
                                 : UINT64_MAX;
}

uint64_t countdown_left_ns(const struct countdown *countdown, uint64_t now_ns)
{
    uint64_t most_ns = step_ns(countdown) + COUNTDOWN_LATE_NS;
    uint64_t past_ns = now_ns - countdown->since_ns;

    if (!countdown->is_running) {
        return countdown->left_ns;
    }
    past_ns = MIN(past_ns, most_ns);
    return countdown->left_ns - MIN(countdown->left_ns, past_ns);
}

bool countdown_look(struct countdown *countdown, uint64_t now_ns,
                    bool could_run)
{
    if (!countdown->is_running) {
        return false;
    }
    if (could_run) {
        countdown->left_ns = countdown_left_ns(countdown, now_ns);
    }
    countdown->since_ns = now_ns;
    countdown->is_running = countdown->left_ns != 0;
    return !countdown->is_running;
}
