/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rate limits on what peers can make a port send: a token bucket for each kind
 * of answer.  A full bucket allows `burst` frames at once; one token is added
 * in each interval.
 * Spec: RFC 4443 section 2.4 (f), RFC 1812 section 4.3.2.8.
 */
#include "net/stack/internal.h"

static const struct {
    uint32_t burst;
    uint32_t interval_us;
} limits[NET_LIMITS] = {
    [NET_LIMIT_ICMP_ERROR] = {10, 100000},
    [NET_LIMIT_ECHO] = {512, 50}, /* each fragment counts */
    /* After a power cut all peers may ask at once. */
    [NET_LIMIT_ARP] = {2048, 500},
    [NET_LIMIT_ND] = {2048, 500},
    [NET_LIMIT_MDNS] = {20, 100000}, /* answers to one station only */
};

void net_limit_init(struct net_stack *stack)
{
    for (size_t port = 0; port < NET_PORTS; port++) {
        for (size_t i = 0; i < NET_LIMITS; i++) {
            stack->limits[port][i].tokens = limits[i].burst;
        }
    }
}

bool net_limit_take(struct net_stack *stack, uint8_t port, enum net_limit limit,
                    uint32_t count, uint64_t now_us)
{
    struct net_bucket *bucket = &stack->limits[port][limit];
    uint64_t interval_us = limits[limit].interval_us;
    uint64_t earned = (now_us - bucket->refilled_us) / interval_us;

    if (earned != 0) {
        bucket->tokens =
            (uint32_t)MIN(bucket->tokens + earned, limits[limit].burst);
        bucket->refilled_us += earned * interval_us;
    }
    if (bucket->tokens < count) {
        return false;
    }
    bucket->tokens -= count;
    return true;
}
