/* SPDX-License-Identifier: BSD-2-Clause */
/* The drive's own addresses: every event in every state. */
#include "tests/unit/net/stack/net_test.h"

#include "net/wire/arp.h"
#include "tests/unit/net/stack/golden.h"

enum { V4 = 0, V6 = 1 };

enum event { LINK_UP, LINK_DOWN, TIMER, TIMERS, CONFLICT, EVENTS };

static void reach_state(struct world *w, uint8_t local,
                        enum address_state state)
{
    if (state != ADDRESS_DOWN) {
        net_stack_link(&w->stack, 0, true, 0);
    }
    if (state == ADDRESS_ANNOUNCING) {
        while (w->stack.addresses[local].state == ADDRESS_OPTIMISTIC) {
            world_run(w, w->now_us + SECOND / 10);
        }
    } else if (state == ADDRESS_READY) {
        world_run(w, 10 * SECOND);
    } else if (state == ADDRESS_DUPLICATE) {
        INPUT(w, na_claim);
    }
    assert_int_equal(w->stack.addresses[local].state, state);
}

static void make_event_happen(struct world *w, uint8_t local, enum event event)
{
    uint64_t due_us = w->stack.addresses[local].deadline_us;

    switch (event) {
    case LINK_UP:
    case LINK_DOWN:
        net_stack_link(&w->stack, 0, event == LINK_UP, w->now_us);
        break;
    case TIMER: /* advance to the address' next deadline */
        if (due_us != UINT64_MAX) {
            w->now_us = MAX(w->now_us, due_us);
            (void)net_stack_timer(&w->stack, w->now_us);
        }
        break;
    case TIMERS: /* advance by 20 s, past all deadlines */
        world_run(w, w->now_us + 20 * SECOND);
        break;
    default:
        if (local == V4) {
            INPUT(w, arp_claim);
        } else {
            INPUT(w, na_claim);
        }
        break;
    }
}

struct row {
    enum address_state state;
    enum address_state next[EVENTS];
};

static void walk_rows(uint8_t local, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (enum event event = LINK_UP; event < EVENTS; event++) {
            struct world *w = world_new();

            reach_state(w, local, rows[i].state);
            make_event_happen(w, local, event);
            if (w->stack.addresses[local].state != rows[i].next[event]) {
                fail_msg("state %d, event %d: %d", (int)rows[i].state,
                         (int)event, w->stack.addresses[local].state);
            }
            world_free(w);
        }
    }
}

static void test_ipv4_address_every_state_and_event(void **state)
{
    static const struct row rows[] = {
        {ADDRESS_DOWN,
         {ADDRESS_ANNOUNCING, ADDRESS_DOWN, ADDRESS_DOWN, ADDRESS_DOWN,
          ADDRESS_DOWN}},
        {ADDRESS_ANNOUNCING,
         {ADDRESS_ANNOUNCING, ADDRESS_DOWN, ADDRESS_ANNOUNCING, ADDRESS_READY,
          ADDRESS_ANNOUNCING}},
        {ADDRESS_READY,
         {ADDRESS_READY, ADDRESS_DOWN, ADDRESS_READY, ADDRESS_READY,
          ADDRESS_READY}},
    };

    (void)state;
    walk_rows(V4, rows, ARRAY_LEN(rows));
}

static void test_ipv6_address_every_state_and_event(void **state)
{
    static const struct row rows[] = {
        {ADDRESS_DOWN,
         {ADDRESS_OPTIMISTIC, ADDRESS_DOWN, ADDRESS_DOWN, ADDRESS_DOWN,
          ADDRESS_DOWN}},
        {ADDRESS_OPTIMISTIC,
         {ADDRESS_OPTIMISTIC, ADDRESS_DOWN, ADDRESS_OPTIMISTIC, ADDRESS_READY,
          ADDRESS_DUPLICATE}},
        {ADDRESS_ANNOUNCING,
         {ADDRESS_ANNOUNCING, ADDRESS_DOWN, ADDRESS_READY, ADDRESS_READY,
          ADDRESS_ANNOUNCING}},
        {ADDRESS_READY,
         {ADDRESS_READY, ADDRESS_DOWN, ADDRESS_READY, ADDRESS_READY,
          ADDRESS_READY}},
        {ADDRESS_DUPLICATE,
         {ADDRESS_DUPLICATE, ADDRESS_DOWN, ADDRESS_DUPLICATE, ADDRESS_DUPLICATE,
          ADDRESS_DUPLICATE}},
    };

    (void)state;
    walk_rows(V6, rows, ARRAY_LEN(rows));
}

static unsigned count_sent(const struct world *w, const uint8_t *frame,
                           size_t len)
{
    unsigned count = 0;

    assert_true(w->sent_count <= SENT_MAX);
    for (unsigned i = 0; i < w->sent_count; i++) {
        count +=
            w->sent[i].len == len && memcmp(w->sent[i].data, frame, len) == 0;
    }
    return count;
}

static void test_link_up_announces_every_address(void **state)
{
    struct world *w = world_new();

    (void)state;
    net_stack_link(&w->stack, 0, true, 0);
    assert_int_equal(w->sent_count, 0); /* only timer() and input() send */
    (void)net_stack_timer(&w->stack, 0);
    assert_int_equal(count_sent(w, arp_announce, sizeof(arp_announce)), 1);
    /* Also 10.9.0.2 on its VLAN, and the groups of two IPv6 addresses. */
    assert_int_equal(w->sent_count, 2 + 2);
    world_run(w, 10 * SECOND);
    assert_int_equal(count_sent(w, arp_announce, sizeof(arp_announce)), 2);
    assert_int_equal(count_sent(w, ns_dad_ours, sizeof(ns_dad_ours)), 1);
    assert_int_equal(count_sent(w, na_to_all, sizeof(na_to_all)), 2);
    /* Two reports for each group, and three router solicitations. */
    assert_int_equal(w->sent_count, 2 * 2 + 2 * 3 + 2 * 2 + 3);
    assert_true(net_stack_timer(&w->stack, w->now_us) == UINT64_MAX);
    net_stack_link(&w->stack, 0, false, w->now_us);
    net_stack_link(&w->stack, 0, true, w->now_us);
    world_run(w, 20 * SECOND);
    assert_int_equal(count_sent(w, arp_announce, sizeof(arp_announce)), 4);
    world_free(w);
}

static void test_link_down_silences_an_address(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;

    (void)state;
    net_stack_link(&w->stack, 0, false, w->now_us);
    INPUT(w, arp_ask);
    INPUT(w, ping4);
    INPUT(w, ns);
    INPUT(w, ping6);
    world_run(w, w->now_us + 100 * SECOND);
    assert_int_equal(w->sent_count, since);
    world_free(w);
}

/* RFC 4429: usable at once, but must not change neighbour caches. */
static void test_an_optimistic_address_answers_without_override(void **state)
{
    struct world *w = world_new();

    (void)state;
    net_stack_link(&w->stack, 0, true, 0);
    INPUT(w, ns);
    expect_sent(w, 0, na_optimistic, sizeof(na_optimistic));
    INPUT(w, ping6);
    expect_sent(w, 1, pong6, sizeof(pong6));
    world_free(w);
}

static void test_two_hosts_that_probe_one_address_both_give_it_up(void **state)
{
    struct world *w = world_new();

    (void)state;
    net_stack_link(&w->stack, 0, true, 0);
    INPUT(w, ns_dad);
    assert_int_equal(w->conflicts, 1);
    assert_int_equal(w->stack.addresses[V6].state, ADDRESS_DUPLICATE);
    INPUT(w, ns);
    INPUT(w, ping6);
    assert_int_equal(w->sent_count, 0);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_ADDRESS_CONFLICTS), 1);
    world_free(w);
}

static void test_a_claimed_address_is_defended_once_in_ten_seconds(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;

    (void)state;
    for (unsigned i = 0; i < 50; i++) { /* 25 seconds */
        INPUT(w, arp_claim);
        w->now_us += SECOND / 2;
    }
    assert_int_equal(w->sent_count, since + 3);
    /* The callback has the same rate limit. */
    assert_int_equal(w->conflicts, 3);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_ADDRESS_CONFLICTS),
                     50);
    assert_true(net_stack_is_usable(&w->stack, V4));
    world_free(w);
}

/* Count the frames of a port after the first `since` ones that announce an IPv4
 * address. */
static unsigned count_announcements(const struct world *w, unsigned since,
                                    uint8_t port, uint32_t ip)
{
    unsigned count = 0;

    for (unsigned i = since; i < w->sent_count; i++) {
        const struct sent *sent = &w->sent[i % SENT_MAX];
        struct ip_addr own = ip_addr_from_v4(ip);
        struct eth eth;
        struct arp arp;

        assert_true(eth_parse(&eth, sent->data, sent->len));
        count += sent->port == port && eth.type == ETHERTYPE_ARP &&
                 arp_parse(&arp, sent->data + eth_header_len(&eth),
                           sent->len - eth_header_len(&eth)) &&
                 ip_addr_equal(&arp.sender_ip, &own) &&
                 ip_addr_equal(&arp.target_ip, &own);
    }
    return count;
}

static void test_addresses_of_a_port_can_be_announced_again(void **state)
{
    struct world *w = world_ready();
    unsigned before = w->sent_count;
    uint64_t start_us = w->now_us;

    (void)state;
    net_stack_announce(&w->stack, 0, w->now_us);
    world_run(w, start_us + SECOND);
    assert_int_equal(count_announcements(w, before, 0, 0x0a000002), 1);
    assert_int_equal(count_announcements(w, before, 0, 0x0a090002), 1);
    /* This restarts the announcements. */
    net_stack_announce(&w->stack, 0, w->now_us);
    world_run(w, start_us + 10 * SECOND);
    assert_int_equal(count_announcements(w, before, 0, 0x0a000002), 3);
    assert_int_equal(count_announcements(w, before, 0, 0x0a090002), 3);
    assert_int_equal(count_announcements(w, before, 1, 0x0a010002), 0);
    assert_int_equal(w->stack.addresses[V4].state, ADDRESS_READY);
    assert_int_equal(w->stack.addresses[V6].state, ADDRESS_READY);
    world_free(w);
}

static void test_announcements_wait_for_a_transmit_buffer(void **state)
{
    struct world *w = world_new();

    (void)state;
    w->no_room = true;
    net_stack_link(&w->stack, 0, true, 0);
    world_run(w, SECOND / 100);
    assert_int_equal(w->stack.addresses[V4].state, ADDRESS_ANNOUNCING);
    assert_true(net_stack_counter(&w->stack, 0, NET_TX_NO_BUFFER) > 1);
    w->no_room = false;
    world_run(w, 10 * SECOND);
    assert_int_equal(count_sent(w, arp_announce, sizeof(arp_announce)), 2);
    world_free(w);
}

/* A drive whose own link-local address is configured has it only once. */
static void test_a_configured_link_local_is_not_doubled(void **state)
{
    struct world *w = world_new();
    struct net_stack_config config = w->stack.config;
    struct net_address_config *own = &config.addresses[7];

    (void)state;
    own->ip = w->stack.addresses[NET_CONFIGURED].config.ip;
    own->vlan = NET_VLAN_UNTAGGED;
    own->prefix_bits = 64;
    net_stack_init(&w->stack, &config);
    assert_int_equal(w->stack.addresses[NET_CONFIGURED].state, ADDRESS_UNUSED);
    assert_int_equal(net_stack_local(&w->stack, 0, NET_VLAN_UNTAGGED, &own->ip),
                     7);
    world_free(w);
}

static unsigned count_probes(const struct world *w)
{
    unsigned count = 0;
    struct arp arp;

    for (unsigned i = 0; i < w->sent_count; i++) {
        count += arp_parse(&arp, w->sent[i].data + 14, w->sent[i].len - 14) &&
                 ip_addr_to_v4(&arp.sender_ip) == 0 &&
                 ip_addr_to_v4(&arp.target_ip) == 0x0a000002;
    }
    return count;
}

static struct world *world_probing(void)
{
    struct world *w = world_new();
    struct net_stack_config config = w->stack.config;

    config.addresses[V4].is_probed = true;
    config.addresses[V6].is_probed = true;
    net_stack_init(&w->stack, &config);
    net_stack_link(&w->stack, 0, true, 0);
    return w;
}

/* RFC 5227 section 2.1.1; RFC 4862 section 5.4. */
static void test_a_probed_address_is_unused_until_probing_ends(void **state)
{
    struct world *w = world_probing();

    (void)state;
    INPUT(w, arp_ask);
    INPUT(w, ping4);
    INPUT(w, ns);
    assert_int_equal(w->sent_count, 0);
    assert_false(net_stack_is_assigned(&w->stack, V4));
    world_run(w, 3 * SECOND);
    assert_int_equal(w->stack.addresses[V4].state, ADDRESS_TENTATIVE);
    assert_true(net_stack_is_assigned(&w->stack, V6));
    world_run(w, 20 * SECOND);
    assert_int_equal(count_probes(w), 3);
    assert_int_equal(count_sent(w, arp_announce, sizeof(arp_announce)), 2);
    assert_int_equal(count_sent(w, ns_dad_ours, sizeof(ns_dad_ours)), 1);
    assert_int_equal(w->stack.addresses[V4].state, ADDRESS_READY);
    assert_int_equal(w->stack.addresses[V6].state, ADDRESS_READY);
    assert_true(net_stack_is_assigned(&w->stack, V4));
    world_free(w);
}

/* A conflict is a claim, an answer, or a probe of another host. */
static void test_a_probed_duplicate_is_probed_again_later(void **state)
{
    (void)state;
    for (int what = 0; what < 2; what++) {
        struct world *w = world_probing();
        unsigned since;

        world_run(w, SECOND);
        if (what == 0) {
            INPUT(w, arp_claim);
        } else {
            INPUT(w, arp_probe);
        }
        assert_int_equal(w->stack.addresses[V4].state, ADDRESS_DUPLICATE);
        assert_int_equal(w->conflicts, 1);
        assert_false(net_stack_is_assigned(&w->stack, V4));
        since = count_probes(w);
        world_run(w, 60 * SECOND);
        assert_int_equal(count_probes(w), since);
        world_run(w, 80 * SECOND);
        assert_int_equal(count_probes(w), since + 3);
        assert_int_equal(w->stack.addresses[V4].state, ADDRESS_READY);
        world_free(w);
    }
}

/* An address stays assigned while the link is down and while it is probed
 * again. */
static void test_a_probed_address_stays_assigned_over_link_changes(void **state)
{
    struct world *w = world_probing();
    unsigned changes;

    (void)state;
    world_run(w, 20 * SECOND);
    changes = w->changes;
    net_stack_link(&w->stack, 0, false, w->now_us);
    net_stack_link(&w->stack, 0, true, w->now_us);
    assert_int_equal(w->stack.addresses[V4].state, ADDRESS_TENTATIVE);
    assert_true(net_stack_is_assigned(&w->stack, V4));
    assert_int_equal(w->changes, changes);
    INPUT(w, arp_claim);
    assert_false(net_stack_is_assigned(&w->stack, V4));
    assert_int_equal(w->changes, changes + 1);
    world_free(w);
}

static void test_addresses_can_be_added_and_removed(void **state)
{
    struct world *w = world_ready();
    struct net_address_config own = {.vlan = NET_VLAN_UNTAGGED,
                                     .prefix_bits = 16};
    unsigned changes = w->changes;
    uint16_t index;
    int first;

    (void)state;
    own.ip = ip_addr_from_v4(0x0a000002);
    assert_int_equal(net_stack_address_add(&w->stack, &own, w->now_us), -1);
    for (unsigned i = 4; i < NET_CONFIGURED; i++) {
        own.ip = ip_addr_from_v4(0x0a000000 + (i << 8));
        assert_int_equal(net_stack_address_add(&w->stack, &own, w->now_us), i);
        assert_true(net_stack_is_assigned(&w->stack, (uint8_t)i));
    }
    assert_int_equal(w->changes, changes + 2 * (NET_CONFIGURED - 4));
    own.ip = ip_addr_from_v4(0x0a000909);
    assert_int_equal(net_stack_address_add(&w->stack, &own, w->now_us), -1);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_ADDRESS_REFUSED), 1);

    /* When the source address of a solicitation is removed, another one is
     * used. */
    assert_int_equal(net_neigh_resolve(&w->stack, 4, &host4, w->now_us, &index),
                     NEIGH_PENDING);
    changes = w->changes;
    net_stack_address_remove(&w->stack, 4);
    assert_int_equal(w->changes, changes + 1);
    assert_int_equal(net_stack_local(&w->stack, 0, NET_VLAN_UNTAGGED,
                                     &w->stack.neigh.entries[index].ip),
                     -1);
    own.port = 1;
    first = net_stack_address_add(&w->stack, &own, w->now_us);
    assert_int_equal(first, 4);
    world_run(w, w->now_us + SECOND);
    assert_int_not_equal(w->stack.neigh.entries[index].local, 4);
    INPUT(w, arp_found);
    assert_int_equal(w->resolved_yes, 1);
    net_neigh_unpin(&w->stack, index, w->now_us);
    world_free(w);
}
