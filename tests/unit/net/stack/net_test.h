/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test environment (struct world) for net/stack: two ports whose sent frames
 * are kept, a clock that the test sets, and a log of the callbacks.
 *
 * Drive: 02:00:00:00:00:10 10.0.0.2/16 (index 0), 2001:db8::2/64 (1),
 * 10.9.0.2/24 on VLAN 9 (2), gateways 10.0.0.254 and 2001:db8::fe; second port
 * ...:11 with 10.1.0.2/16 (3).  Host: 52:54:00:12:34:56 10.0.0.1 2001:db8::1.
 */
#ifndef ESSD_TESTS_NET_TEST_H
#define ESSD_TESTS_NET_TEST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/stack/stack.h"

enum { SENT_MAX = 64, SECOND = 1000000 };

struct sent {
    uint8_t data[NET_FRAME_MAX];
    size_t len;
    uint8_t port;
    uint8_t priority;
};

struct world {
    struct net_stack stack;
    struct sent sent[SENT_MAX];
    unsigned sent_count; /* all frames; the last SENT_MAX are kept */
    bool no_room;
    bool is_reached; /* result of neigh_is_reached() */

    unsigned updates, removes, conflicts, changes;
    uint16_t updated_index, removed_index;
    struct neigh_info updated;
    unsigned resolved_yes, resolved_no;
    uint16_t resolved_index;
    uint64_t now_us;
};

extern const struct mac_addr host_mac, other_mac;
extern const struct ip_addr host4, host6, remote4, gateway4;

/** Make a world: with links down, or with links up and every address READY. */
struct world *world_new(void);
struct world *world_ready(void);
void world_free(struct world *w);

/** Advance the time, and call the timer whenever it is due. */
void world_run(struct world *w, uint64_t until_us);

bool world_input(struct world *w, uint8_t port, const uint8_t *frame,
                 size_t len);

#define INPUT(w, frame) assert_true(world_input(w, 0, frame, sizeof(frame)))

/** Call net_neigh_learn().  @return the index, or NEIGH_NONE */
uint16_t world_learn(struct world *w, uint8_t local, const struct ip_addr *ip,
                     const struct mac_addr *mac);

/** Expect that the frame sent after the first `since` ones is exactly this
 * one. */
void expect_sent(const struct world *w, unsigned since, const uint8_t *frame,
                 size_t len);

/** Make a frame with an ARP packet from `mac`.  @return its length */
size_t make_arp(uint8_t *frame, uint16_t operation, const struct mac_addr *mac,
                const struct ip_addr *sender, const struct ip_addr *target);

/** Fail the test if the table's lists, hash, pins and states contradict. */
void check_neigh(const struct world *w);

#endif
