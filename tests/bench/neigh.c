/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the cost of a look-up in the neighbour table: nanoseconds of a hit
 * and of a miss, for tables that are filled to different degrees.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "net/stack/stack.h"

enum { LOOKUPS = 4000000 };

static uint8_t *tx_begin(void *ctx, uint8_t port)
{
    (void)port;
    return ctx;
}

static void tx_commit(void *ctx, uint8_t port, size_t len, uint8_t priority)
{
    (void)ctx;
    (void)port;
    (void)len;
    (void)priority;
}

static struct ip_addr ip_of(uint32_t i)
{
    return ip_addr_from_v4(0x0a010000 + i);
}

static double ns_each(const struct net_stack *stack, uint32_t first,
                      uint32_t count)
{
    struct timespec from, to;
    uint32_t sum = 0;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        struct ip_addr ip = ip_of(first + i * 7919u % count);

        sum += net_neigh_find(stack, 0, NET_VLAN_UNTAGGED, &ip);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    if (sum == 1) { /* keeps the compiler from removing the loop */
        (void)putchar(' ');
    }
    return ((double)(to.tv_sec - from.tv_sec) * 1e9 +
            (double)(to.tv_nsec - from.tv_nsec)) /
           (double)LOOKUPS;
}

int main(void)
{
    static uint8_t frame[NET_FRAME_MAX];
    static struct net_stack stack;
    const struct net_stack_config config = {
        .ports = {{.mac = {{2, [5] = 1}}, .mtu_bytes = 1500},
                  {.mac = {{2, [5] = 2}}, .mtu_bytes = 1500}},
        .addresses = {{.ip = ip_addr_from_v4(0x0a000001),
                       .vlan = NET_VLAN_UNTAGGED,
                       .prefix_bits = 8}},
        .random_seed = 42,
        .ctx = frame,
        .tx_begin = tx_begin,
        .tx_commit = tx_commit,
    };
    const struct mac_addr mac = {{0x52, [5] = 1}};

    net_stack_init(&stack, &config);
    net_stack_link(&stack, 0, true, 0);
    (void)printf("entries  hit ns  miss ns\n");
    for (uint32_t fill = 1; fill <= NET_NEIGHBOURS; fill *= 4) {
        for (uint32_t i = 0; i < fill; i++) {
            struct ip_addr ip = ip_of(i);
            uint16_t index;

            if (net_neigh_learn(&stack, 0, &ip, &mac, 0, &index) !=
                NEIGH_READY) {
                return EXIT_FAILURE;
            }
        }
        (void)printf("%7u  %6.1f  %7.1f\n", (unsigned)fill,
                     ns_each(&stack, 0, fill),
                     ns_each(&stack, 0x10000, NET_NEIGHBOURS));
    }
    return EXIT_SUCCESS;
}
