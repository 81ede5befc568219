/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All of net/stack: a sequence of frames, waits, link changes and calls from
 * above, after which the neighbour table must be consistent.
 *
 * Each step has two bytes, its kind and a parameter; a frame follows with its
 * length in one byte.
 */
#include "tests/fuzz/replay.h"

#include "tests/unit/net/stack/golden.h"
#include "tests/unit/net/stack/net_test.h"

enum { FRAME, WAIT, LINK, LEARN, RESOLVE, STEPS };

static void input_frame(struct world *w, struct input *in, uint8_t parameter)
{
    size_t len = take_byte(in);

    len = MIN(len, in->len);
    w->no_room = parameter & 0x80;
    if (world_input(w, parameter & 1, in->data, len) == w->no_room) {
        abort();
    }
    w->no_room = false;
    in->data += len;
    in->len -= len;
}

static struct ip_addr peer_ip(uint8_t parameter)
{
    return ip_addr_from_v4((parameter & 0x80 ? 0xc0a80500 : 0x0a000000) +
                           parameter);
}

static void resolve_and_drop(struct world *w, uint8_t parameter)
{
    struct ip_addr ip = parameter == 0 ? host6 : peer_ip(parameter);
    uint16_t index;

    if (net_neigh_resolve(&w->stack, parameter == 0, &ip, w->now_us, &index) <=
        NEIGH_PENDING) {
        net_neigh_unpin(&w->stack, index, w->now_us);
    }
}

static void learn_peer(struct world *w, uint8_t parameter)
{
    struct ip_addr ip = peer_ip(parameter);
    uint16_t index =
        world_learn(w, 0, &ip, parameter & 2 ? &host_mac : &other_mac);

    if (index != NEIGH_NONE && (parameter & 4) != 0) {
        net_neigh_confirm(&w->stack, index, w->now_us);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct input in = {data, len};
    struct world *w = world_new();

    net_stack_link(&w->stack, 0, true, 0);
    while (in.len != 0) {
        uint8_t what = take_byte(&in) % STEPS;
        uint8_t parameter = take_byte(&in);

        switch (what) {
        case FRAME:
            input_frame(w, &in, parameter);
            break;
        case WAIT:
            world_run(w, w->now_us + ((uint64_t)parameter << 20));
            break;
        case LINK:
            net_stack_link(&w->stack, parameter & 1, parameter & 2, w->now_us);
            break;
        case LEARN:
            learn_peer(w, parameter);
            break;
        default:
            resolve_and_drop(w, parameter);
            break;
        }
    }
    world_free(w); /* This checks the neighbour table. */
    return 0;
}

#define SEED(name) {name, sizeof(name)}

static const struct {
    const uint8_t *frame;
    uint8_t len;
} seeds[] = {
    SEED(arp_ask),       SEED(arp_probe),     SEED(arp_claim),
    SEED(arp_found),     SEED(ping4),         SEED(ping6),
    SEED(ping4_vlan),    SEED(ping6_all),     SEED(ns),
    SEED(ns_plain),      SEED(ns_dad),        SEED(na_claim),
    SEED(na_found),      SEED(udp4),          SEED(udp6),
    SEED(tcp4_frame),    SEED(tcp6_frame),    SEED(hops6_frame),
    SEED(route6_frame),  SEED(report6_frame), SEED(late6_frame),
    SEED(atomic6_frame), SEED(mld_query_all), SEED(rs_ours),
};

static size_t add_frame(uint8_t *buf, size_t at, size_t seed, uint8_t parameter)
{
    buf[at] = FRAME;
    buf[at + 1] = parameter;
    buf[at + 2] = seeds[seed].len;
    memcpy(buf + at + 3, seeds[seed].frame, seeds[seed].len);
    return at + 3 + seeds[seed].len;
}

/* Each frame with another step before and after it; the last seed has all
 * frames. */
size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    static const uint8_t before[] = {RESOLVE, 1, RESOLVE, 0,
                                     LEARN,   2, RESOLVE, 0x85};
    static const uint8_t after[] = {WAIT, 40, LINK, 0, LINK, 2, WAIT, 3};
    size_t len = sizeof(before);

    if (n > ARRAY_LEN(seeds) || room < 8192) {
        return 0;
    }
    memcpy(buf, before, sizeof(before));
    for (size_t i = 0; i < ARRAY_LEN(seeds); i++) {
        if (i == n || n == ARRAY_LEN(seeds)) {
            len = add_frame(buf, len, i, 0x80);
            len = add_frame(buf, len, i, 0);
        }
    }
    memcpy(buf + len, after, sizeof(after));
    return len + sizeof(after);
}
