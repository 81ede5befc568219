/* SPDX-License-Identifier: BSD-2-Clause */
/* The neighbour table: every event in every state, a full table, and random
 * operations. */
#include "tests/unit/net/stack/net_test.h"

#include "lib/random.h"
#include "net/wire/arp.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv6.h"
#include "net/wire/nd.h"
#include "tests/unit/net/stack/golden.h"

static const struct ip_addr drive4 = {{[10] = 0xff, 0xff, 10, 0, 0, 2}};

static uint16_t find_entry(const struct world *w, const struct ip_addr *ip)
{
    return net_neigh_find(&w->stack, 0, NET_VLAN_UNTAGGED, ip);
}

static enum neigh_state state_of(const struct world *w,
                                 const struct ip_addr *ip)
{
    uint16_t index = find_entry(w, ip);

    return index == NEIGH_NONE ? NEIGH_FREE : net_neigh_state(&w->stack, index);
}

static uint16_t learn_host(struct world *w, const struct mac_addr *mac)
{
    return world_learn(w, 0, &host4, mac);
}

static enum neigh_result resolve_ip(struct world *w, const struct ip_addr *ip,
                                    uint16_t *index)
{
    return net_neigh_resolve(&w->stack, ip_addr_is_v4(ip) ? 0 : 1, ip,
                             w->now_us, index);
}

static void send_arp(struct world *w, uint16_t operation,
                     const struct mac_addr *mac)
{
    uint8_t frame[64];
    size_t len = make_arp(frame, operation, mac, &host4, &drive4);

    assert_true(world_input(w, 0, frame, len));
}

/* ---- Every event in every state, IPv4. */

enum event {
    RESOLVE,
    LEARN_SAME,
    LEARN_OTHER,
    ANSWER_SAME,
    ANSWER_OTHER,
    HEARD_SAME, /* an ARP request of the host for us */
    HEARD_OTHER,
    TIMEOUT, /* the entry's own deadline */
    SILENCE, /* nine seconds without an answer */
    LINK_DOWN,
    EVENTS,
};

static void reach_state(struct world *w, enum neigh_state state, bool is_pinned)
{
    uint16_t index = NEIGH_NONE;

    if (state == NEIGH_INCOMPLETE || state == NEIGH_REACHABLE) {
        assert_int_equal(resolve_ip(w, &host4, &index), NEIGH_PENDING);
    } else if (state != NEIGH_FREE) {
        index = learn_host(w, &host_mac);
        net_neigh_pin(&w->stack, index, w->now_us);
    }
    if (state == NEIGH_REACHABLE) {
        send_arp(w, ARP_REPLY, &host_mac);
    } else if (state == NEIGH_PROBE) {
        assert_int_equal(resolve_ip(w, &host4, &index), NEIGH_READY);
        net_neigh_unpin(&w->stack, index, w->now_us);
    }
    if (index != NEIGH_NONE && !is_pinned) {
        net_neigh_unpin(&w->stack, index, w->now_us);
    }
    assert_int_equal(state_of(w, &host4), state);
}

static void make_event_happen(struct world *w, enum event event)
{
    uint16_t index = find_entry(w, &host4);

    switch (event) {
    case RESOLVE:
        (void)resolve_ip(w, &host4, &index);
        break;
    case LEARN_SAME:
        (void)learn_host(w, &host_mac);
        break;
    case LEARN_OTHER:
        (void)learn_host(w, &other_mac);
        break;
    case ANSWER_SAME:
        send_arp(w, ARP_REPLY, &host_mac);
        break;
    case ANSWER_OTHER:
        send_arp(w, ARP_REPLY, &other_mac);
        break;
    case HEARD_SAME:
        send_arp(w, ARP_REQUEST, &host_mac);
        break;
    case HEARD_OTHER:
        send_arp(w, ARP_REQUEST, &other_mac);
        break;
    case TIMEOUT:
        if (index != NEIGH_NONE) {
            w->now_us = w->stack.neigh.entries[index].deadline_us;
            (void)net_stack_timer(&w->stack, w->now_us);
        }
        break;
    case SILENCE:
        world_run(w, w->now_us + 9 * SECOND);
        break;
    default:
        net_stack_link(&w->stack, 0, false, w->now_us);
        break;
    }
}

/* Each row has one column for each event, with the first letter of the next
 * state. */
static const char letters[] = "firsp";

static void walk_table(const char *const rows[NEIGH_STATES], bool is_pinned)
{
    for (enum neigh_state from = NEIGH_FREE; from < NEIGH_STATES; from++) {
        for (enum event event = RESOLVE; event < EVENTS; event++) {
            struct world *w = world_ready();

            reach_state(w, from, is_pinned);
            make_event_happen(w, event);
            check_neigh(w);
            if (letters[state_of(w, &host4)] != rows[from][event]) {
                fail_msg("state %c, event %d: %c, not %c", letters[from],
                         (int)event, letters[state_of(w, &host4)],
                         rows[from][event]);
            }
            world_free(w);
        }
    }
}

static void test_neigh_pinned_every_state_and_event(void **state)
{
    static const char *const rows[NEIGH_STATES] = {
        [NEIGH_FREE] = "issffssfff",      [NEIGH_INCOMPLETE] = "issrrssifi",
        [NEIGH_REACHABLE] = "rrrrrrsprs", [NEIGH_STALE] = "psprrsspss",
        [NEIGH_PROBE] = "ppprrpspss",
    };

    (void)state;
    walk_table(rows, true);
}

static void test_neigh_unpinned_every_state_and_event(void **state)
{
    static const char *const rows[NEIGH_STATES] = {
        [NEIGH_FREE] = "issffssfff",      [NEIGH_INCOMPLETE] = "issrrssifi",
        [NEIGH_REACHABLE] = "rrsrrrssrs", [NEIGH_STALE] = "pssrrssfss",
        [NEIGH_PROBE] = "ppsrrpspfs",
    };

    (void)state;
    walk_table(rows, false);
}

/* ---- IPv6: what an advertisement may change.  RFC 4861 section 7.2.5. */

static void send_advert(struct world *w, bool solicited, bool override,
                        const struct mac_addr *mac)
{
    struct nd_neighbor nd = {
        .type = ND_NEIGHBOR_ADVERT,
        .solicited = solicited,
        .override = override,
        .has_lladdr = mac != NULL,
        .target = host6,
    };
    struct ip_addr dst = ip_addr_from_bytes(na_found + ETH_LEN + IPV6_DST);
    uint8_t frame[sizeof(na_found)];

    memcpy(frame, na_found, sizeof(frame));
    if (mac != NULL) {
        nd.lladdr = *mac;
    } else {
        frame[ETH_LEN + IPV6_PAYLOAD_LEN + 1] = ND_NEIGHBOR_OPTIONS;
    }
    (void)nd_neighbor_emit(&nd, &host6, &dst, frame + ETH_LEN + IPV6_LEN);
    INPUT(w, frame);
}

static void reach_state6(struct world *w, enum neigh_state state)
{
    uint16_t index;

    if (state == NEIGH_INCOMPLETE || state == NEIGH_REACHABLE) {
        assert_int_equal(resolve_ip(w, &host6, &index), NEIGH_PENDING);
    } else {
        index = world_learn(w, 1, &host6, &host_mac);
    }
    if (state == NEIGH_REACHABLE) {
        INPUT(w, na_found);
    } else if (state == NEIGH_PROBE) {
        assert_int_equal(resolve_ip(w, &host6, &index), NEIGH_READY);
    }
    assert_int_equal(state_of(w, &host6), state);
}

static void test_neigh_advertisements_as_in_rfc_4861(void **state)
{
    /* Columns: no MAC, same MAC, other MAC; for each of these no flag,
     * solicited, override, both flags.  Upper case: the other MAC is stored. */
    static const char *const rows[NEIGH_STATES] = {
        [NEIGH_FREE] = "ffff"
                       "ffff"
                       "ffff",
        [NEIGH_INCOMPLETE] = "iiii"
                             "srsr"
                             "SRSR",
        [NEIGH_REACHABLE] = "rrrr"
                            "rrrr"
                            "ssSR",
        [NEIGH_STALE] = "srsr"
                        "srsr"
                        "ssSR",
        [NEIGH_PROBE] = "prpr"
                        "prpr"
                        "ppSR",
    };
    const struct mac_addr *const macs[] = {NULL, &host_mac, &other_mac};

    (void)state;
    for (enum neigh_state from = NEIGH_FREE; from < NEIGH_STATES; from++) {
        for (unsigned column = 0; column < 12; column++) {
            struct world *w = world_ready();
            struct neigh_info info = {.port = 9};
            char got;

            if (from != NEIGH_FREE) {
                reach_state6(w, from);
            }
            send_advert(w, column & 1, column & 2, macs[column / 4]);
            got = letters[state_of(w, &host6)];
            if (find_entry(w, &host6) != NEIGH_NONE &&
                net_neigh_info(&w->stack, find_entry(w, &host6), &info) &&
                mac_addr_equal(&info.mac, &other_mac)) {
                got = (char)(got - 'a' + 'A');
            }
            if (got != rows[from][column]) {
                fail_msg("state %c, column %u: %c", letters[from], column, got);
            }
            world_free(w);
        }
    }
}

/* One address on two links means two hosts, even if their hashes are equal. */
static void test_neigh_is_found_only_on_its_own_link(void **state)
{
    struct world *w = world_ready();
    uint16_t index = world_learn(w, 0, &host4, &host_mac);

    (void)state;
    assert_int_equal(net_neigh_find(&w->stack, 0, NET_VLAN_UNTAGGED, &host4),
                     index);
    for (uint16_t vlan = 1; vlan < 4095; vlan++) {
        assert_int_equal(net_neigh_find(&w->stack, 0, vlan, &host4),
                         NEIGH_NONE);
        assert_int_equal(net_neigh_find(&w->stack, 1, vlan, &host4),
                         NEIGH_NONE);
    }
    world_free(w);
}

/* ---- Sent frames, and callbacks. */

static void test_neigh_resolve_solicits_and_reports(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    uint16_t index;

    (void)state;
    assert_int_equal(resolve_ip(w, &host4, &index), NEIGH_PENDING);
    expect_sent(w, since, arp_seek, sizeof(arp_seek));
    assert_int_equal(w->updates, 0);
    INPUT(w, arp_found);
    assert_int_equal(w->updates, 1);
    assert_int_equal(w->updated_index, index);
    assert_true(ip_addr_equal(&w->updated.ip, &host4));
    assert_true(mac_addr_equal(&w->updated.mac, &host_mac));
    assert_int_equal(w->updated.port, 0);
    assert_int_equal(w->updated.vlan, NET_VLAN_UNTAGGED);
    assert_int_equal(w->resolved_yes, 1);
    assert_int_equal(w->resolved_index, index);

    since = w->sent_count;
    assert_int_equal(resolve_ip(w, &host6, &index), NEIGH_PENDING);
    expect_sent(w, since, ns_seek, sizeof(ns_seek));
    INPUT(w, na_found);
    assert_int_equal(w->updates, 2);
    assert_int_equal(w->resolved_index, index);
    world_free(w);
}

static void test_neigh_probes_unicast_then_multicast(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    uint16_t index = world_learn(w, 1, &host6, &host_mac);

    (void)state;
    assert_int_equal(resolve_ip(w, &host6, &index), NEIGH_READY);
    expect_sent(w, since, ns_probe, sizeof(ns_probe));
    world_run(w, w->now_us + 20 * SECOND);
    assert_int_equal(w->sent_count, since + 6);
    for (unsigned i = 0; i < 6; i++) {
        assert_memory_equal(w->sent[(since + i) % SENT_MAX].data,
                            i < 3 ? ns_probe : ns_seek, sizeof(ns_seek));
    }
    assert_int_equal(net_neigh_state(&w->stack, index), NEIGH_STALE);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_NEIGH_FAILED), 1);
    assert_int_equal(w->removes, 0);       /* it is pinned */
    world_run(w, w->now_us + 20 * SECOND); /* it is solicited again */
    assert_true(w->sent_count > since + 6);
    world_free(w);
}

static void test_neigh_resolve_reports_a_failure(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    uint16_t index, again;

    (void)state;
    assert_int_equal(resolve_ip(w, &host4, &index), NEIGH_PENDING);
    assert_int_equal(resolve_ip(w, &host4, &again), NEIGH_PENDING);
    assert_int_equal(index, again);
    world_run(w, w->now_us + 3 * SECOND + 1);
    assert_int_equal(w->sent_count, since + 3);
    assert_int_equal(w->resolved_no, 1);
    assert_int_equal(w->resolved_index, index);
    assert_int_equal(w->stack.neigh.used, 0);
    assert_int_equal(w->updates + w->removes, 0);
    world_free(w);
}

static void test_neigh_overheard_entries_are_not_exported(void **state)
{
    struct world *w = world_ready();
    uint16_t index;

    (void)state;
    INPUT(w, arp_ask);
    INPUT(w, ns);
    assert_int_equal(w->stack.neigh.used, 2);
    assert_int_equal(w->updates, 0);
    assert_int_equal(resolve_ip(w, &host4, &index), NEIGH_READY);
    assert_int_equal(w->updates, 1);
    net_neigh_unpin(&w->stack, index, w->now_us);
    world_run(w, w->now_us + 700ull * SECOND); /* both expire */
    assert_int_equal(w->stack.neigh.used, 0);
    assert_int_equal(w->removes, 1);
    assert_int_equal(w->removed_index, index);
    world_free(w);
}

static void test_neigh_a_new_mac_is_exported_at_once(void **state)
{
    struct world *w = world_ready();
    uint16_t index = learn_host(w, &host_mac);

    (void)state;
    net_neigh_pin(&w->stack, index, w->now_us);
    /* The request is gratuitous, as after the failover of a bond. */
    send_arp(w, ARP_REQUEST, &other_mac);
    assert_int_equal(w->updates, 2);
    assert_int_equal(w->updated_index, index);
    assert_true(mac_addr_equal(&w->updated.mac, &other_mac));
    world_free(w);
}

static bool has_mac(const struct world *w, uint16_t index,
                    const struct mac_addr *mac)
{
    struct neigh_info info;

    assert_true(net_neigh_info(&w->stack, index, &info));
    return mac_addr_equal(&info.mac, mac);
}

/*
 * A packet with a host's source address and another MAC, as from beyond a
 * router, does not redirect the host's connections: the address is solicited.
 */
static void test_neigh_a_packet_does_not_move_a_host_that_answers(void **state)
{
    struct world *w = world_ready();
    uint16_t index = learn_host(w, &host_mac);
    unsigned since;

    (void)state;
    net_neigh_pin(&w->stack, index, w->now_us);
    send_arp(w, ARP_REPLY, &host_mac);
    assert_int_equal(net_neigh_state(&w->stack, index), NEIGH_REACHABLE);
    since = w->sent_count;
    /* It has just answered. */
    assert_int_equal(learn_host(w, &other_mac), index);
    assert_true(has_mac(w, index, &host_mac));
    assert_int_equal(w->sent_count, since);

    world_run(w, w->now_us + 2 * SECOND);
    assert_int_equal(learn_host(w, &other_mac), index);
    assert_int_equal(learn_host(w, &other_mac), index);
    assert_true(has_mac(w, index, &host_mac));
    expect_sent(w, since, arp_seek, sizeof(arp_seek));
    assert_int_equal(w->sent_count, since + 1);
    send_arp(w, ARP_REPLY, &host_mac);
    assert_int_equal(net_neigh_state(&w->stack, index), NEIGH_REACHABLE);
    assert_int_equal(w->updates, 1);

    /* The host has really moved. */
    world_run(w, w->now_us + 2 * SECOND);
    assert_int_equal(learn_host(w, &other_mac), index);
    send_arp(w, ARP_REPLY, &other_mac);
    assert_true(has_mac(w, index, &other_mac));
    assert_int_equal(w->updates, 2);
    world_free(w);
}

/* While no host has confirmed a MAC, the latest packet decides. */
static void test_neigh_a_packet_moves_a_host_that_never_answered(void **state)
{
    struct world *w = world_ready();
    uint16_t index = learn_host(w, &host_mac);
    unsigned since = w->sent_count;

    (void)state;
    net_neigh_pin(&w->stack, index, w->now_us);
    assert_int_equal(learn_host(w, &other_mac), index);
    assert_true(has_mac(w, index, &other_mac));
    expect_sent(w, since, arp_seek, sizeof(arp_seek));
    send_arp(w, ARP_REPLY, &host_mac);
    assert_true(has_mac(w, index, &host_mac));
    world_free(w);
}

/* An entry in PROBE is solicited by multicast at once, not after three
 * tries. */
static void test_neigh_a_packet_speeds_up_a_probe(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    uint16_t index;

    (void)state;
    reach_state(w, NEIGH_PROBE, true);
    index = find_entry(w, &host4);
    assert_int_equal(w->sent_count, since + 1);
    assert_int_equal(learn_host(w, &other_mac), index);
    assert_int_equal(learn_host(w, &other_mac), index);
    expect_sent(w, since + 1, arp_seek, sizeof(arp_seek));
    assert_int_equal(w->sent_count, since + 2);
    assert_true(has_mac(w, index, &host_mac));
    world_free(w);
}

static void test_neigh_confirm_replaces_a_probe(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    uint16_t index = learn_host(w, &host_mac);

    (void)state;
    net_neigh_pin(&w->stack, index, w->now_us);
    for (unsigned i = 0; i < 10; i++) {
        net_neigh_confirm(&w->stack, index, w->now_us);
        assert_int_equal(net_neigh_state(&w->stack, index), NEIGH_REACHABLE);
        world_run(w, w->now_us + 20 * SECOND);
    }
    assert_int_equal(w->sent_count, since);
    world_free(w);
}

static void test_neigh_solicitations_wait_for_a_transmit_buffer(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    uint16_t index;

    (void)state;
    w->no_room = true;
    assert_int_equal(resolve_ip(w, &host4, &index), NEIGH_PENDING);
    world_run(w, w->now_us + 10 * SECOND); /* no solicitation and no failure */
    assert_int_equal(w->resolved_no, 0);
    check_neigh(w);
    w->no_room = false;
    world_run(w, w->now_us + SECOND / 100);
    expect_sent(w, since, arp_seek, sizeof(arp_seek));
    world_free(w);
}

/* They are refused as invalid, not for lack of room: no entry is evicted. */
static void test_neigh_learn_refuses_addresses_that_no_host_has(void **state)
{
    const struct mac_addr group = {{1}}, zero = {{0}};
    const struct ip_addr any = ip_addr_from_v4(0);
    const struct ip_addr multicast = ip_addr_from_v4(0xe0000001);
    const struct ip_addr broadcast = ip_addr_from_v4(0xffffffff);
    const struct ip_addr our_subnet = ip_addr_from_v4(0x0a00ffff);
    const struct ip_addr loopback4 = ip_addr_from_v4(0x7f000001);
    const struct ip_addr loopback6 = {{[15] = 1}};
    struct world *w = world_ready();
    const struct mac_addr *own = &w->stack.config.ports[0].mac;
    const struct {
        uint8_t local;
        const struct ip_addr *ip;
        const struct mac_addr *mac;
    } rows[] = {
        {0, &host4, &group},        {0, &host4, &zero},
        {0, &host4, own},           {0, &multicast, &host_mac},
        {0, &broadcast, &host_mac}, {0, &our_subnet, &host_mac},
        {0, &loopback4, &host_mac}, {1, &loopback6, &host_mac},
        {0, &any, &host_mac},       {0, &drive4, &host_mac},
        {0, &host6, &host_mac},     {7, &host4, &host_mac},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint16_t index = 0;

        assert_int_equal(net_neigh_learn(&w->stack, rows[i].local, rows[i].ip,
                                         rows[i].mac, 0, &index),
                         NEIGH_NO_ROUTE);
        assert_int_equal(index, NEIGH_NONE);
    }
    assert_int_equal(w->stack.neigh.used, 0);
    world_free(w);
}

/* ---- A full table. */

static struct ip_addr nth_ip(unsigned n)
{
    return ip_addr_from_v4(0x0a000100 + n);
}

static uint16_t learn_nth(struct world *w, unsigned n)
{
    const struct ip_addr ip = nth_ip(n);

    w->now_us++;
    return world_learn(w, 0, &ip, &host_mac);
}

static void test_neigh_full_table_evicts_the_least_recently_used(void **state)
{
    struct world *w = world_ready();
    uint16_t indices[NET_NEIGHBOURS];

    (void)state;
    for (unsigned n = 0; n < NET_NEIGHBOURS; n++) {
        indices[n] = learn_nth(w, n);
        assert_int_not_equal(indices[n], NEIGH_NONE);
    }
    check_neigh(w);
    net_neigh_pin(&w->stack, indices[0], w->now_us);
    assert_int_equal(learn_nth(w, 1), indices[1]); /* it was used last */
    assert_int_equal(w->removes, 0);
    assert_int_equal(learn_nth(w, 5000), indices[2]);
    assert_int_equal(w->removes, 1);
    assert_int_equal(w->removed_index, indices[2]);
    assert_int_equal(w->updated_index, indices[2]);
    for (unsigned n = 0; n < NET_NEIGHBOURS;
         n++) { /* all others keep their entries */
        const struct ip_addr ip = nth_ip(n);

        assert_int_equal(find_entry(w, &ip), n == 2 ? NEIGH_NONE : indices[n]);
    }
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_NEIGH_EVICTED), 1);
    world_free(w);
}

static void test_neigh_table_full_of_pinned_entries_refuses(void **state)
{
    struct world *w = world_ready();
    uint16_t index;

    (void)state;
    for (unsigned n = 0; n < NET_NEIGHBOURS; n++) {
        net_neigh_pin(&w->stack, learn_nth(w, n), w->now_us);
    }
    assert_int_equal(
        net_neigh_learn(&w->stack, 0, &host4, &host_mac, w->now_us, &index),
        NEIGH_FULL);
    assert_int_equal(index, NEIGH_NONE);
    assert_int_equal(resolve_ip(w, &host4, &index), NEIGH_FULL);
    assert_int_equal(resolve_ip(w, &remote4, &index), NEIGH_FULL);
    INPUT(w, arp_ask); /* answered, but not stored */
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_NEIGH_REFUSED), 4);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_ARP_REPLIES), 1);
    assert_int_equal(w->removes, 0);
    net_neigh_unpin(&w->stack, 77, w->now_us);
    assert_int_equal(learn_nth(w, 5000), 77);
    assert_int_equal(w->removes, 1);
    world_free(w);
}

static void test_neigh_pinned_entries_survive_a_flood_of_other_hosts(
    void **state)
{
    struct world *w = world_ready();
    uint16_t index = learn_host(w, &host_mac);

    (void)state;
    net_neigh_pin(&w->stack, index, w->now_us);
    for (unsigned n = 0; n < 5000; n++) {
        const struct ip_addr ip = nth_ip(n);
        uint8_t frame[64];
        size_t len = make_arp(frame, ARP_REQUEST, &other_mac, &ip, &drive4);

        assert_true(world_input(w, 0, frame, len));
    }
    assert_int_equal(find_entry(w, &host4), index);
    assert_int_equal(w->updates, 1); /* none of them was exported to the RNIC */
    assert_int_equal(w->stack.neigh.used, NET_NEIGHBOURS);
    world_free(w);
}

/* ---- Peers beyond a gateway. */

static void gateway_arp(struct world *w, uint16_t operation,
                        const struct mac_addr *mac)
{
    uint8_t frame[64];
    size_t len = make_arp(frame, operation, mac, &gateway4, &drive4);

    assert_true(world_input(w, 0, frame, len));
}

static void test_neigh_remote_peers_follow_their_gateway(void **state)
{
    const struct ip_addr second = ip_addr_from_v4(0xc0a80506);
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    uint16_t index, index2;

    (void)state;
    assert_int_equal(resolve_ip(w, &remote4, &index), NEIGH_PENDING);
    assert_int_equal(w->sent_count, since + 1);
    assert_memory_equal(w->sent[since % SENT_MAX].data + 38,
                        gateway4.bytes + 12, 4);
    gateway_arp(w, ARP_REPLY, &host_mac);
    assert_int_equal(w->resolved_yes, 1);
    assert_int_equal(w->resolved_index, index);
    assert_int_equal(w->updates, 1); /* the gateway itself is not exported */
    assert_true(ip_addr_equal(&w->updated.ip, &remote4));
    assert_true(mac_addr_equal(&w->updated.mac, &host_mac));
    assert_int_equal(resolve_ip(w, &second, &index2), NEIGH_READY);
    assert_int_equal(w->updates, 2);
    /* Another router takes over the address. */
    gateway_arp(w, ARP_REQUEST, &other_mac);
    assert_int_equal(w->updates, 4);
    assert_true(mac_addr_equal(&w->updated.mac, &other_mac));
    check_neigh(w);

    /* While the peers are used, the gateway is probed; then all three
     * expire. */
    since = w->sent_count;
    world_run(w, w->now_us + 40 * SECOND);
    assert_true(w->sent_count > since);
    net_neigh_unpin(&w->stack, index, w->now_us);
    net_neigh_unpin(&w->stack, index2, w->now_us);
    world_run(w, w->now_us + 1300ull * SECOND);
    assert_int_equal(w->stack.neigh.used, 0);
    assert_int_equal(w->removes, 2);
    world_free(w);
}

static void test_neigh_a_silent_gateway_fails_all_peers_beyond_it(void **state)
{
    struct world *w = world_ready();
    uint16_t index;

    (void)state;
    for (uint32_t n = 0; n < 5; n++) {
        const struct ip_addr ip = ip_addr_from_v4(0xc0a80500 + n);

        assert_int_equal(resolve_ip(w, &ip, &index), NEIGH_PENDING);
    }
    assert_int_equal(resolve_ip(w, &gateway4, &index), NEIGH_PENDING);
    world_run(w, w->now_us + 4 * SECOND);
    assert_int_equal(w->resolved_no, 6);
    assert_int_equal(w->stack.neigh.used, 0);
    world_free(w);
}

static void test_neigh_without_a_gateway_there_is_no_route(void **state)
{
    struct world *w = world_ready();
    uint16_t index;

    (void)state;
    assert_int_equal(
        net_neigh_resolve(&w->stack, 3, &remote4, w->now_us, &index),
        NEIGH_NO_ROUTE);
    assert_int_equal(index, NEIGH_NONE);
    /* A remote peer can still be answered through the MAC it came from. */
    index = world_learn(w, 3, &remote4, &host_mac);
    assert_int_not_equal(index, NEIGH_NONE);
    net_neigh_pin(&w->stack, index, w->now_us);
    world_run(w, w->now_us + 3600ull * SECOND);
    assert_int_equal(net_neigh_state(&w->stack, index), NEIGH_STALE);
    assert_int_equal(
        net_neigh_resolve(&w->stack, 3, &remote4, w->now_us, &index),
        NEIGH_READY);
    world_free(w);
}

static void test_neigh_a_learnt_next_hop_replaces_the_gateway(void **state)
{
    struct world *w = world_ready();
    uint16_t index, learned;

    (void)state;
    assert_int_equal(resolve_ip(w, &remote4, &index), NEIGH_PENDING);
    learned = world_learn(w, 0, &remote4, &other_mac);
    assert_int_equal(learned, index);
    assert_int_equal(w->resolved_yes, 1);
    gateway_arp(w, ARP_REPLY, &host_mac);
    assert_true(mac_addr_equal(&w->updated.mac, &other_mac));
    check_neigh(w);
    world_free(w);
}

/*
 * A packet with a forged source address does not redirect the connections of a
 * peer beyond a router, since a packet of ours was acknowledged recently.
 */
static void test_neigh_a_packet_moves_no_remote_peer_that_is_reached(
    void **state)
{
    struct world *w = world_ready();
    uint16_t index = world_learn(w, 3, &remote4, &host_mac);
    unsigned since = w->sent_count;

    (void)state;
    net_neigh_pin(&w->stack, index, w->now_us);
    w->is_reached = true;
    assert_int_equal(world_learn(w, 3, &remote4, &other_mac), index);
    assert_true(has_mac(w, index, &host_mac));
    assert_int_equal(w->updates, 1);
    /* After a long time without an answer, the router may be another one. */
    w->is_reached = false;
    assert_int_equal(world_learn(w, 3, &remote4, &other_mac), index);
    assert_true(has_mac(w, index, &other_mac));
    assert_int_equal(w->sent_count, since); /* there is no gateway to solicit */
    /* Without connections the entry is not protected. */
    net_neigh_unpin(&w->stack, index, w->now_us);
    w->is_reached = true;
    assert_int_equal(world_learn(w, 3, &remote4, &host_mac), index);
    assert_true(has_mac(w, index, &host_mac));
    world_free(w);
}

/* The gateway answers ARP, so it can be solicited. */
static void test_neigh_a_packet_moves_no_remote_peer_whose_gateway_answers(
    void **state)
{
    struct world *w = world_ready();
    uint16_t index, gateway;
    unsigned since;

    (void)state;
    assert_int_equal(resolve_ip(w, &remote4, &index), NEIGH_PENDING);
    gateway_arp(w, ARP_REPLY, &host_mac);
    gateway = find_entry(w, &gateway4);
    assert_int_equal(net_neigh_state(&w->stack, gateway), NEIGH_REACHABLE);
    world_run(w, w->now_us + 2 * SECOND);
    since = w->sent_count;
    assert_int_equal(world_learn(w, 0, &remote4, &other_mac), index);
    assert_true(has_mac(w, index, &host_mac));
    /* The frame is an ARP request for the gateway. */
    assert_int_equal(w->sent_count, since + 1);
    assert_int_equal(net_neigh_state(&w->stack, gateway), NEIGH_PROBE);
    gateway_arp(w, ARP_REPLY, &other_mac); /* the gateway has really moved */
    assert_true(has_mac(w, index, &other_mac));
    /* A gateway that no longer answers does not protect the entry. */
    world_run(w, w->now_us + 60 * SECOND);
    assert_int_equal(net_neigh_state(&w->stack, gateway), NEIGH_STALE);
    assert_int_equal(world_learn(w, 0, &remote4, &host_mac), index);
    assert_true(has_mac(w, index, &host_mac));
    net_neigh_unpin(&w->stack, index, w->now_us);
    world_free(w);
}

/* ---- Random operations: the table must stay consistent. */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static void random_step(struct world *w, uint32_t *seed, uint8_t *pins)
{
    uint32_t n = next_random(seed) % 1500;
    struct ip_addr ip = n < 1300 ? nth_ip(n) : ip_addr_from_v4(0xc0a80000 + n);
    const struct mac_addr *mac =
        next_random(seed) % 8 == 0 ? &other_mac : &host_mac;
    uint16_t index = find_entry(w, &ip);
    uint8_t frame[64];

    switch (next_random(seed) % 8) {
    case 0:
        index = world_learn(w, 0, &ip, mac);
        assert_true(index < NET_NEIGHBOURS || w->stack.neigh.pinned != 0);
        break;
    case 1:
        if (index != NEIGH_NONE && pins[index] < 3 &&
            net_neigh_state(&w->stack, index) != NEIGH_INCOMPLETE) {
            net_neigh_pin(&w->stack, index, w->now_us);
            pins[index]++;
        }
        break;
    case 2:
    case 3:
        if (index != NEIGH_NONE && pins[index] != 0) {
            net_neigh_unpin(&w->stack, index, w->now_us);
            pins[index]--;
        }
        break;
    case 4:
        if (resolve_ip(w, &ip, &index) == NEIGH_READY) {
            net_neigh_unpin(&w->stack, index, w->now_us);
        } else if (index != NEIGH_NONE) {
            /* This user gives its pin back at once. */
            net_neigh_unpin(&w->stack, index, w->now_us);
        }
        break;
    case 5:
    case 6:
        assert_true(
            world_input(w, 0, frame,
                        make_arp(frame, (uint16_t)(1 + next_random(seed) % 2),
                                 mac, &ip, &drive4)));
        break;
    default:
        w->no_room = next_random(seed) % 16 == 0;
        w->now_us += next_random(seed) % (2 * SECOND);
        (void)net_stack_timer(&w->stack, w->now_us);
        w->no_room = false;
        break;
    }
}

static void test_neigh_table_stays_consistent_at_random(void **state)
{
    (void)state;
    for (uint32_t start = 1; start <= 4; start++) {
        struct world *w = world_ready();
        uint8_t pins[NET_NEIGHBOURS] = {0};
        uint32_t seed = start;

        for (unsigned step = 0; step < 20000; step++) {
            random_step(w, &seed, pins);
            if (step % 500 == 0) {
                gateway_arp(w, (uint16_t)(1 + step / 500 % 2),
                            step % 1000 == 0 ? &host_mac : &other_mac);
                check_neigh(w);
            }
        }
        world_free(w);
    }
}

/* ---- The data sheet's 1024 sources at the same time. */

static struct ip_addr source_of(unsigned i)
{
    return i % 2 == 0
               ? ip_addr_from_v4(0x0a000100 + i)
               : (struct ip_addr){
                     {0x20, 0x01, 0x0d,
                      0xb8, [14] = (uint8_t)(i >> 8), [15] = (uint8_t)(i + 3)}};
}

static struct mac_addr mac_of(unsigned i)
{
    return (struct mac_addr){{0x52, 0x54, 1, 0, (uint8_t)(i >> 8), (uint8_t)i}};
}

/* Odd ones have addresses from ::102 on, which are not the drive's. */
static uint16_t learn_source(struct world *w, unsigned i)
{
    struct ip_addr ip = source_of(i + 256);
    struct mac_addr mac = mac_of(i);

    return world_learn(w, i % 2, &ip, &mac);
}

/* The h-th address of a family in which addresses are alike. */
enum family {
    SAME_HALVES,     /* the two halves of the interface identifier are equal */
    SAME_UPPER_BITS, /* as before, and only their upper bits differ */
    INVERTED_HALF,   /* one half is the complement of the other */
    LOW_HALF,        /* only the lower half differs */
    HIGH_HALF,       /* only the upper half differs */
    TOP_BITS,        /* only the uppermost bits of the identifier differ */
    ROTATED,         /* one bit after the other */
    PREFIX_ONLY,     /* one identifier in many networks */
    PREFIX_HALVES,   /* the two halves of the prefix are equal */
    PREFIX_AND_ID,   /* the identifier equals the prefix */
    EUI_64,          /* of MACs that follow each other */
    EVERY_64TH,      /* steps of a power of two */
    FAMILIES
};

static struct ip_addr family_address(enum family family, uint64_t h)
{
    uint64_t prefix = 0x20010db800000000;
    uint64_t id = 0;
    struct ip_addr ip;

    switch (family) {
    case SAME_HALVES:
        id = h << 32 | h;
        break;
    case SAME_UPPER_BITS:
        id = h << 53 | h << 21;
        break;
    case INVERTED_HALF:
        id = h << 32 | (~h & UINT32_MAX);
        break;
    case LOW_HALF:
        id = h;
        break;
    case HIGH_HALF:
        id = h << 32;
        break;
    case TOP_BITS:
        id = h << 54;
        break;
    case ROTATED:
        id = 1ull << h % 64 | 1ull << (h / 64 + 17);
        break;
    case PREFIX_ONLY:
        prefix |= h;
        id = 1;
        break;
    case PREFIX_HALVES:
        prefix = (0x20010000 | h) << 32 | 0x20010000 | h;
        id = 1;
        break;
    case PREFIX_AND_ID:
        prefix |= h;
        id = prefix;
        break;
    case EUI_64:
        id = 0x021122fffe000000 | h;
        break;
    case EVERY_64TH:
    default:
        id = h * 64;
        break;
    }
    put_be64(ip.bytes, prefix);
    put_be64(ip.bytes + 8, id);
    return ip;
}

static unsigned longest_chain(const struct net_stack *stack)
{
    unsigned longest = 0;

    for (unsigned i = 0; i < NET_NEIGH_BUCKETS; i++) {
        uint16_t index = stack->neigh.buckets[i];
        unsigned length = 0;

        for (; index != NEIGH_NONE; length++) {
            index = stack->neigh.entries[index].hash_next;
        }
        longest = MAX(longest, length);
    }
    return longest;
}

/* A peer chooses its addresses, but not the seed.  The longest of 1024 chains
 * with 1024 addresses at random is shorter than 16, but for once in 10^10. */
static void test_neigh_no_family_of_addresses_collides(void **state)
{
    uint64_t seeds = 7;

    (void)state;
    for (unsigned round = 0; round < 12 * FAMILIES; round++) {
        struct world *w = world_ready();
        unsigned length;

        w->stack.config.random_seed = random_next(&seeds);
        assert_int_equal(w->stack.neigh.used, 0);
        for (unsigned h = 0; h < NET_NEIGHBOURS; h++) {
            struct ip_addr ip =
                family_address((enum family)(round % FAMILIES), h + 1);

            (void)world_learn(w, 1, &ip, &host_mac);
        }
        length = longest_chain(&w->stack);
        if (length >= 16) {
            fail_msg("family %u: %u addresses have one hash", round % FAMILIES,
                     length);
        }
        world_free(w);
    }
}

static void test_neigh_1024_sources_are_kept_at_once(void **state)
{
    static bool seen[NET_NEIGHBOURS];
    struct world *w = world_ready();
    uint64_t end_us;

    (void)state;
    memset(seen, 0, sizeof(seen));
    for (unsigned i = 0; i < NET_NEIGHBOURS; i++) {
        uint16_t index = learn_source(w, i);

        assert_in_range(index, 0, NET_NEIGHBOURS - 1);
        assert_false(seen[index]);
        seen[index] = true;
        net_neigh_pin(&w->stack, index, w->now_us);
    }
    assert_int_equal(w->updates, NET_NEIGHBOURS);

    /* For ten minutes packets of all of them arrive. */
    for (end_us = w->now_us + 600ull * SECOND; w->now_us < end_us;) {
        world_run(w, w->now_us + 20 * SECOND);
        for (unsigned i = 0; i < NET_NEIGHBOURS; i++) {
            struct ip_addr ip = source_of(i + 256);
            uint16_t index =
                net_neigh_find(&w->stack, 0, NET_VLAN_UNTAGGED, &ip);
            struct neigh_info info;
            struct mac_addr mac = mac_of(i);

            assert_int_not_equal(index, NEIGH_NONE);
            assert_true(net_neigh_info(&w->stack, index, &info));
            assert_true(mac_addr_equal(&info.mac, &mac));
            net_neigh_confirm(&w->stack, index, w->now_us);
        }
    }
    assert_int_equal(w->removes, 0);

    /* One more is refused and counted; after an unpin it gets an entry. */
    assert_int_equal(learn_source(w, NET_NEIGHBOURS), NEIGH_NONE);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_NEIGH_REFUSED), 1);
    net_neigh_unpin(&w->stack, 77, w->now_us);
    assert_int_equal(learn_source(w, NET_NEIGHBOURS), 77);
    assert_int_equal(w->removes, 1);
    assert_int_equal(w->removed_index, 77);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_NEIGH_EVICTED), 1);
    for (uint16_t i = 0; i < NET_NEIGHBOURS; i++) {
        if (i != 77) {
            net_neigh_unpin(&w->stack, i, w->now_us);
        }
    }
    world_free(w);
}
