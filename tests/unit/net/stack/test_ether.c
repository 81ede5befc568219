/* SPDX-License-Identifier: BSD-2-Clause */
/* Handlers of EtherTypes: which frames they get, and what they send. */
#include "tests/unit/net/stack/net_test.h"

#include "lib/bytes.h"

enum { TYPE = 0x88a2 };

struct heard {
    struct world *w;
    unsigned int count;
    size_t len;
    uint16_t vlan;
    bool answers;
};

/* Answer from inside, as handlers may. */
static void hear_frame(void *ctx, const struct net_ether_rx *rx)
{
    struct heard *heard = ctx;
    const struct net_ether_to to = {
        .dst = *rx->src, .type = TYPE, .vlan = rx->vlan, .port = rx->port};
    uint8_t *payload;

    heard->count++;
    heard->len = rx->len_bytes;
    heard->vlan = rx->vlan;
    if (!heard->answers) {
        return;
    }
    payload = net_ether_begin(&heard->w->stack, &to);
    assert_non_null(payload);
    memcpy(payload, "pong", 4);
    net_ether_commit(&heard->w->stack, &to, 4);
}

/* A frame of the type to the drive's first port.  @return its length */
static size_t make_frame(const struct world *w, uint8_t *frame, uint16_t vlan)
{
    const struct eth eth = {
        .dst = w->stack.config.ports[0].mac,
        .src = host_mac,
        .type = TYPE,
        .tagged = vlan != 0,
        .vlan = vlan,
    };
    size_t len = eth_header_len(&eth);

    eth_emit(&eth, frame);
    memcpy(frame + len, "ping", 4);
    return len + 4;
}

static void test_a_type_without_a_group_adds_none(void **state)
{
    struct world *w = world_ready();
    struct mac_addr before[NET_MULTICAST], after[NET_MULTICAST];
    size_t count = net_stack_multicast(&w->stack, 0, before);

    (void)state;
    assert_true(net_stack_ether_bind(&w->stack, TYPE, NULL, hear_frame, w));
    assert_int_equal(net_stack_multicast(&w->stack, 0, after), count);
    assert_memory_equal(before, after, count * sizeof(before[0]));
    assert_false(net_stack_ether_bind(&w->stack, TYPE, NULL, hear_frame, w));
    world_free(w);
}

static void test_a_handler_answers_in_the_vlan_of_the_frame(void **state)
{
    static const uint16_t vlans[] = {0, 9};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vlans); i++) {
        struct world *w = world_ready();
        struct heard heard = {.w = w, .answers = true};
        unsigned int since = w->sent_count;
        uint8_t frame[64], answer[64];
        size_t len = make_frame(w, frame, vlans[i]);

        assert_true(
            net_stack_ether_bind(&w->stack, TYPE, NULL, hear_frame, &heard));
        assert_true(world_input(w, 0, frame, len));
        assert_int_equal(heard.count, 1);
        assert_int_equal(heard.len, 4);
        assert_int_equal(heard.vlan,
                         vlans[i] != 0 ? vlans[i] : NET_VLAN_UNTAGGED);
        memcpy(answer, frame, len);
        memcpy(answer, frame + ETH_SRC, 6);
        memcpy(answer + ETH_SRC, frame, 6);
        memcpy(answer + len - 4, "pong", 4);
        expect_sent(w, since, answer, len);
        world_free(w);
    }
}

static void test_an_unbound_type_is_only_counted(void **state)
{
    struct world *w = world_ready();
    unsigned int since = w->sent_count;
    uint8_t frame[64];
    size_t len = make_frame(w, frame, 0);

    (void)state;
    assert_true(world_input(w, 0, frame, len));
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_DROP_ETHERTYPE), 1);
    assert_int_equal(w->sent_count, since);
    world_free(w);
}

static void test_nothing_is_begun_without_a_link_or_a_buffer(void **state)
{
    struct world *w = world_ready();
    const struct net_ether_to to = {
        .dst = host_mac, .type = TYPE, .vlan = NET_VLAN_UNTAGGED, .port = 0};

    (void)state;
    assert_non_null(net_ether_begin(&w->stack, &to));
    w->no_room = true;
    assert_null(net_ether_begin(&w->stack, &to));
    w->no_room = false;
    net_stack_link(&w->stack, 0, false, w->now_us);
    assert_null(net_ether_begin(&w->stack, &to));
    world_free(w);
}
