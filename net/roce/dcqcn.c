/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast a queue pair may send: see dcqcn.h. */
#include "net/roce/dcqcn.h"

/* `a` times `b`, both of them fractions of DCQCN_ALPHA_ONE. */
static uint32_t stage_count(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b / DCQCN_ALPHA_ONE);
}

/* Apply alpha = (1 - g) alpha once for each K since the last update. */
static void settle_alpha(struct dcqcn *d, uint64_t now_ns)
{
    uint32_t factor = DCQCN_ALPHA_ONE - (DCQCN_ALPHA_ONE >> DCQCN_G_SHIFT);
    uint64_t count;

    if (d->alpha_ns == 0) {
        d->alpha = DCQCN_ALPHA_ONE;
        d->alpha_ns = now_ns;
        return;
    }
    if (now_ns < d->alpha_ns) {
        return;
    }
    count = (now_ns - d->alpha_ns) / DCQCN_ALPHA_NS;
    d->alpha_ns += count * DCQCN_ALPHA_NS;
    for (; count != 0 && d->alpha != 0; count >>= 1) {
        if (count & 1) {
            d->alpha = stage_count(d->alpha, factor);
        }
        factor = stage_count(factor, factor);
    }
}

/* A stage has ended, by time or by bytes: raise the rate. */
static void increase_rate(struct dcqcn *d, uint32_t line_kbps)
{
    unsigned int most = MAX(d->time_stages, d->byte_stages);
    unsigned int least = MIN(d->time_stages, d->byte_stages);
    uint64_t target = d->target_kbps;

    if (least > DCQCN_F) { /* hyper increase */
        target += (uint64_t)DCQCN_HAI_KBPS * (least - DCQCN_F);
    } else if (most >= DCQCN_F) { /* additive increase */
        target += DCQCN_AI_KBPS;
    }
    d->target_kbps = (uint32_t)MIN(target, (uint64_t)line_kbps);
    d->current_kbps =
        (uint32_t)(((uint64_t)d->target_kbps + d->current_kbps) / 2);
    if (d->current_kbps >= line_kbps - line_kbps / 128) {
        d->is_limited = false;
    }
}

static void next_stage(uint8_t *stages)
{
    if (*stages != UINT8_MAX) {
        ++*stages;
    }
}

static void settle_time(struct dcqcn *d, uint32_t line_kbps, uint64_t now_ns)
{
    while (d->is_limited && now_ns >= d->time_ns + DCQCN_TIME_NS) {
        d->time_ns += DCQCN_TIME_NS;
        next_stage(&d->time_stages);
        increase_rate(d, line_kbps);
    }
}

void dcqcn_cnp(struct dcqcn *d, uint32_t line_kbps, uint64_t now_ns)
{
    settle_time(d, line_kbps, now_ns);
    settle_alpha(d, now_ns);
    if (!d->is_limited) {
        d->is_limited = true;
        d->current_kbps = line_kbps;
        d->next_ns = now_ns;
    }
    d->target_kbps = d->current_kbps;
    d->current_kbps -= stage_count(d->current_kbps, d->alpha / 2);
    d->current_kbps = MAX(d->current_kbps, (uint32_t)DCQCN_MIN_KBPS);
    d->alpha = d->alpha - (d->alpha >> DCQCN_G_SHIFT) +
               (DCQCN_ALPHA_ONE >> DCQCN_G_SHIFT);
    d->alpha_ns = now_ns;
    d->time_stages = d->byte_stages = 0;
    d->bytes = 0;
    d->time_ns = now_ns;
}

bool dcqcn_may_send(struct dcqcn *d, uint32_t line_kbps, uint64_t now_ns)
{
    settle_time(d, line_kbps, now_ns);
    return !d->is_limited || d->next_ns <= now_ns + DCQCN_AHEAD_NS;
}

uint32_t dcqcn_take(struct dcqcn *d, uint32_t len_bytes, uint64_t now_ns)
{
    uint64_t ns = (uint64_t)len_bytes * 8 * 1000000 / d->current_kbps;

    /* Unused time does not accumulate, except for the delay of a late timer. */
    if (d->next_ns + DCQCN_AHEAD_NS < now_ns) {
        d->next_ns = now_ns - DCQCN_AHEAD_NS;
    }
    d->next_ns += ns;
    return (uint32_t)ns;
}

void dcqcn_sent(struct dcqcn *d, uint32_t line_kbps, uint32_t len_bytes)
{
    if (!d->is_limited) {
        return;
    }
    d->bytes += len_bytes;
    if (d->bytes >= DCQCN_BYTES) {
        d->bytes -= DCQCN_BYTES;
        next_stage(&d->byte_stages);
        increase_rate(d, line_kbps);
    }
}

bool dcqcn_valid(const struct dcqcn *d)
{
    return d->alpha <= DCQCN_ALPHA_ONE && d->bytes < DCQCN_BYTES &&
           (!d->is_limited || (d->current_kbps >= DCQCN_MIN_KBPS &&
                               d->target_kbps >= DCQCN_MIN_KBPS));
}
