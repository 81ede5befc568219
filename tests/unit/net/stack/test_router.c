/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv6 routers and multicast listener reports, with golden frames by scapy. */
#include "tests/unit/net/stack/net_test.h"

#include "lib/bytes.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/ipv6_ext.h"
#include "net/wire/mld.h"
#include "net/wire/nd.h"
#include "tests/unit/net/stack/golden.h"

static const struct ip_addr all_nodes = {{0xff, 0x02, [15] = 1}};
static const struct ip_addr router = {{0xfe, 0x80, [15] = 0xaa}};
static const struct ip_addr second_router = {{0xfe, 0x80, [15] = 0xbb}};
static const struct ip_addr far_host = {{0x20, 0x01, 0x0d, 0xb8, 9, [15] = 1}};
static const struct ip_addr own_auto = {
    {0x20, 0x01, 0x0d, 0xb8, 0, 7, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 0x10}};

struct advert {
    const struct ip_addr *from;
    uint16_t lifetime_s;
    uint32_t mtu_bytes; /* 0 for no option */
    uint32_t valid_s;   /* of 2001:db8:0:7::/64 */
    uint32_t preferred_s;
    uint8_t prefix_bits; /* 0 for no option */
    uint8_t hop_limit;
    bool off_link;
};

static const struct advert usual = {
    .from = &router,
    .lifetime_s = 1800,
    .valid_s = 86400,
    .preferred_s = 14400,
    .prefix_bits = 64,
    .hop_limit = ND_HOP_LIMIT,
};

/* Make a frame with a router advertisement.  @return its length */
static size_t make_advert(uint8_t *frame, const struct advert *a)
{
    const struct eth eth = {
        .dst = {{0x33, 0x33, 0, 0, 0, 1}},
        .src = host_mac,
        .type = ETHERTYPE_IPV6,
    };
    const struct icmp icmp = {.type = ND_ROUTER_ADVERT,
                              .rest = 64u << 24 | a->lifetime_s};
    uint8_t *ra = frame + ETH_LEN + IPV6_LEN;
    size_t len = ND_RA_OPTIONS;

    memset(ra, 0, 128);
    memcpy(ra + len, "\1\1", 2);
    memcpy(ra + len + 2, host_mac.bytes, 6);
    len += 8;
    if (a->mtu_bytes != 0) {
        memcpy(ra + len, "\5\1", 2);
        put_be32(ra + len + ND_OPT_MTU, a->mtu_bytes);
        len += 8;
    }
    if (a->prefix_bits != 0) {
        memcpy(ra + len, "\3\4", 2);
        ra[len + ND_OPT_PREFIX_LEN] = a->prefix_bits;
        ra[len + ND_OPT_PREFIX_FLAGS] = a->off_link ? 0x40 : 0xc0;
        put_be32(ra + len + ND_OPT_PREFIX_VALID, a->valid_s);
        put_be32(ra + len + ND_OPT_PREFIX_PREFERRED, a->preferred_s);
        memcpy(ra + len + ND_OPT_PREFIX, own_auto.bytes, 8);
        len += 32;
    }
    eth_emit(&eth, frame);
    ipv6_emit(
        &(struct ipv6){
            .src = *a->from,
            .dst = all_nodes,
            .payload_len_bytes = (uint16_t)len,
            .next_header = IP_PROTOCOL_ICMPV6,
            .hop_limit = a->hop_limit,
        },
        frame + ETH_LEN);
    icmpv6_emit(&icmp, a->from, &all_nodes, ra, len);
    return ETH_LEN + IPV6_LEN + len;
}

static void send_advert(struct world *w, const struct advert *a)
{
    uint8_t frame[256];

    assert_true(world_input(w, 0, frame, make_advert(frame, a)));
}

/* Index 7 is free for an address of a router's prefix; no gateway is
 * configured. */
static struct world *world_auto(void)
{
    struct world *w = world_new();
    struct net_stack_config config = w->stack.config;

    config.ports[0].has_slaac = true;
    config.ports[0].gateway6 = (struct ip_addr){{0}};
    net_stack_init(&w->stack, &config);
    net_stack_link(&w->stack, 0, true, 0);
    world_run(w, 20 * SECOND);
    return w;
}

static int find_auto(const struct world *w)
{
    return net_stack_local(&w->stack, 0, NET_VLAN_UNTAGGED, &own_auto);
}

static unsigned count_type(const struct world *w, size_t at, uint8_t type)
{
    unsigned count = 0;

    assert_true(w->sent_count <= SENT_MAX);
    for (unsigned i = 0; i < w->sent_count; i++) {
        const struct sent *sent = &w->sent[i];

        count +=
            sent->len > at && sent->data[12] == 0x86 && sent->data[at] == type;
    }
    return count;
}

static void test_routers_are_solicited_until_one_answers(void **state)
{
    (void)state;
    for (int answered = 0; answered < 2; answered++) {
        struct world *w = world_new();

        net_stack_link(&w->stack, 0, true, 0);
        world_run(w, 2 * SECOND);
        assert_int_equal(count_type(w, 54, ND_ROUTER_SOLICIT), 1);
        if (answered) {
            send_advert(w, &usual);
        }
        world_run(w, 60 * SECOND);
        assert_int_equal(count_type(w, 54, ND_ROUTER_SOLICIT),
                         answered ? 1 : ROUTER_SOLICITS);
        world_free(w);
    }
}

static void test_solicits_and_reports_are_byte_exact(void **state)
{
    struct world *w = world_ready();
    unsigned solicits = 0, reports = 0;

    (void)state;
    for (unsigned i = 0; i < w->sent_count; i++) {
        const struct sent *sent = &w->sent[i];

        solicits += sent->len == sizeof(rs_ours) &&
                    memcmp(sent->data, rs_ours, sent->len) == 0;
        reports += sent->len == sizeof(mld_ours) &&
                   memcmp(sent->data, mld_ours, sent->len) == 0;
    }
    /* The first one may lack the link-layer option. */
    assert_in_range(solicits, 2, 3);
    /* The first one may have the unspecified source. */
    assert_in_range(reports, 1, 2);
    world_free(w);
}

static void test_a_router_is_the_gateway_to_remote_hosts(void **state)
{
    struct world *w = world_auto();
    struct advert gone = usual;
    struct neigh_info info;
    uint16_t index;

    (void)state;
    assert_int_equal(
        net_neigh_resolve(&w->stack, 1, &far_host, w->now_us, &index),
        NEIGH_NO_ROUTE);
    send_advert(w, &usual);
    assert_int_equal(
        net_neigh_resolve(&w->stack, 1, &far_host, w->now_us, &index),
        NEIGH_READY);
    assert_true(net_neigh_info(&w->stack, index, &info));
    assert_true(mac_addr_equal(&info.mac, &host_mac));
    net_neigh_unpin(&w->stack, index, w->now_us);

    gone.lifetime_s = 0;
    send_advert(w, &gone);
    index = NEIGH_NONE;
    struct ip_addr other = far_host;
    other.bytes[15] = 2;
    assert_int_equal(net_neigh_resolve(&w->stack, 1, &other, w->now_us, &index),
                     NEIGH_NO_ROUTE);
    send_advert(w, &usual);
    w->now_us += 1800ull * SECOND; /* its lifetime ends */
    assert_int_equal(net_neigh_resolve(&w->stack, 1, &other, w->now_us, &index),
                     NEIGH_NO_ROUTE);
    world_run(w, w->now_us);
    world_free(w);
}

/* RFC 4861 section 6.3.6: a router that does not answer is tried last. */
static void test_a_silent_router_is_replaced_by_another(void **state)
{
    struct world *w = world_auto();
    struct advert other = usual;

    (void)state;
    send_advert(w, &usual);
    other.from = &second_router;
    send_advert(w, &other);
    assert_true(ip_addr_equal(&w->stack.routers[0].routers[0].ip, &router));
    net_stack_link(&w->stack, 1, true, w->now_us);
    uint16_t index = net_neigh_find(&w->stack, 0, NET_VLAN_UNTAGGED, &router);
    net_neigh_pin(&w->stack, index, w->now_us);
    world_run(w, w->now_us + 60 * SECOND);
    assert_true(
        ip_addr_equal(&w->stack.routers[0].routers[0].ip, &second_router));
    net_neigh_unpin(&w->stack, index, w->now_us);
    world_free(w);
}

static void test_an_address_lasts_as_long_as_its_prefix(void **state)
{
    struct world *w = world_auto();
    struct advert a = usual;
    int local;

    (void)state;
    assert_int_equal(find_auto(w), -1);
    send_advert(w, &a);
    local = find_auto(w);
    assert_in_range(local, 0, NET_CONFIGURED - 1);
    assert_int_equal(net_stack_address(&w->stack, (uint8_t)local)->prefix_bits,
                     64);
    assert_true(net_stack_is_assigned(&w->stack, (uint8_t)local));
    world_run(w, w->now_us + 80000ull * SECOND);
    assert_int_equal(find_auto(w), local);
    send_advert(w, &a); /* renews the lifetime */
    world_run(w, w->now_us + 80000ull * SECOND);
    assert_int_equal(find_auto(w), local);
    world_run(w, w->now_us + 7000ull * SECOND);
    assert_int_equal(find_auto(w), -1);
    world_free(w);
}

/* RFC 4862 section 5.5.3 (e): a forged advertisement does not end it. */
static void test_a_prefix_is_not_withdrawn_at_once(void **state)
{
    struct world *w = world_auto();
    struct advert a = usual;

    (void)state;
    send_advert(w, &a);
    a.valid_s = a.preferred_s = 0;
    send_advert(w, &a);
    world_run(w, w->now_us + 7100ull * SECOND);
    assert_in_range(find_auto(w), 0, NET_CONFIGURED - 1);
    world_run(w, w->now_us + 200ull * SECOND);
    assert_int_equal(find_auto(w), -1);
    world_free(w);
}

static void test_invalid_advertisements_are_ignored(void **state)
{
    static const struct advert rows[] = {
        {.from = &router, .lifetime_s = 9, .hop_limit = 254},
        {.from = &host6, .lifetime_s = 9, .hop_limit = 255},
    };
    static const struct advert no_prefix[] = {
        {&router, 9, 0, 86400, 86401, 64, 255,
         false}, /* preferred exceeds valid */
        {&router, 9, 0, 86400, 86400, 48, 255, false}, /* not 64 bits */
        {&router, 9, 0, 0, 0, 64, 255, false},         /* lifetime 0 */
    };
    struct world *w = world_auto();
    uint8_t frame[256];
    size_t len;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        send_advert(w, &rows[i]);
        assert_int_equal(net_stack_counter(&w->stack, 0, NET_DROP_ND_MALFORMED),
                         i + 1);
    }
    len = make_advert(frame, &usual);
    for (size_t cut = 0; cut < len; cut++) {
        assert_true(world_input(w, 0, frame, cut));
    }
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_ROUTER_ADVERTS), 0);
    assert_true(ip_addr_is_unspecified(&w->stack.routers[0].routers[0].ip));
    for (size_t i = 0; i < ARRAY_LEN(no_prefix); i++) {
        send_advert(w, &no_prefix[i]);
        assert_int_equal(find_auto(w), -1);
    }
    w->stack.config.ports[0].has_slaac = false;
    send_advert(w, &usual);
    assert_int_equal(find_auto(w), -1);
    world_free(w);
}

/* RFC 6980: fragments could carry an advertisement past filters. */
static void test_an_advertisement_in_fragments_is_ignored(void **state)
{
    struct world *w = world_auto();
    const struct ip_addr *own = &w->stack.addresses[1].config.ip;
    uint8_t whole[256], frame[256 + IPV6_FRAGMENT_LEN];
    const size_t at = ETH_LEN + IPV6_LEN;
    size_t len = make_advert(whole, &usual) - at;
    struct icmp icmp = {.type = ND_ROUTER_ADVERT, .rest = 64u << 24 | 1800};

    (void)state;
    assert_false(ip_addr_is_v4(own));
    icmpv6_emit(&icmp, &router, own, whole + at, len);
    eth_emit(&(struct eth){.dst = {{2, 0, 0, 0, 0, 0x10}},
                           .src = host_mac,
                           .type = ETHERTYPE_IPV6},
             frame);
    for (unsigned int in_two = 0; in_two < 2; in_two++) {
        for (size_t from = 0; from < len; from += in_two ? 24 : len) {
            size_t part = in_two ? MIN(24, len - from) : len;
            struct ipv6 ip = {
                .src = router,
                .dst = *own,
                .payload_len_bytes = (uint16_t)(IPV6_FRAGMENT_LEN + part),
                .next_header = IPV6_EXT_FRAGMENT,
                .hop_limit = ND_HOP_LIMIT,
            };
            struct ipv6_fragment fragment = {
                .id = 7 + in_two,
                .offset_bytes = (uint16_t)from,
                .next_header = IP_PROTOCOL_ICMPV6,
                .more_fragments = from + part != len,
            };

            ipv6_emit(&ip, frame + ETH_LEN);
            ipv6_fragment_emit(&fragment, frame + at);
            memcpy(frame + at + IPV6_FRAGMENT_LEN, whole + at + from, part);
            assert_true(
                world_input(w, 0, frame, at + IPV6_FRAGMENT_LEN + part));
        }
        assert_int_equal(net_stack_counter(&w->stack, 0, NET_DROP_ND_MALFORMED),
                         in_two + 1);
    }
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_REASSEMBLED), 1);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_ROUTER_ADVERTS), 0);
    assert_true(ip_addr_is_unspecified(&w->stack.routers[0].routers[0].ip));
    assert_int_equal(find_auto(w), -1);
    world_free(w);
}

/* Of many prefixes and routers, two of each are kept; others are counted or
 * ignored. */
static void test_a_flood_of_advertisements_uses_limited_entries(void **state)
{
    struct world *w = world_auto();
    unsigned since = w->sent_count;
    unsigned used = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        struct ip_addr from = router;
        uint8_t frame[256];
        size_t len;
        struct advert a = usual;

        from.bytes[14] = (uint8_t)i;
        a.from = &from;
        len = make_advert(frame, &a);
        put_be16(frame + len - 12, (uint16_t)i); /* a byte pair of the prefix */
        icmpv6_emit(&(struct icmp){.type = ND_ROUTER_ADVERT, .rest = 1800},
                    &from, &all_nodes, frame + 54, len - 54);
        assert_true(world_input(w, 0, frame, len));
    }
    for (uint8_t local = 0; local < NET_CONFIGURED; local++) {
        used += w->stack.addresses[local].state != ADDRESS_UNUSED;
    }
    assert_int_equal(used, 4 + NET_AUTO_ADDRESSES);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_ADDRESS_REFUSED),
                     1000 - NET_AUTO_ADDRESSES);
    assert_int_equal(w->sent_count, since);
    world_free(w);
}

static void test_the_mtu_option_is_used_within_bounds(void **state)
{
    static const struct {
        uint32_t said;
        uint16_t is;
    } rows[] = {{1279, 9000}, {1280, 1280}, {9000, 9000}, {9001, 9000}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world *w = world_auto();
        struct advert a = usual;
        uint16_t index;

        a.mtu_bytes = rows[i].said;
        send_advert(w, &a);
        index = world_learn(w, 1, &host6, &host_mac);
        assert_int_equal(net_neigh_path_mtu(&w->stack, index, w->now_us),
                         rows[i].is);
        index = world_learn(w, 0, &host4, &host_mac);
        assert_int_equal(net_neigh_path_mtu(&w->stack, index, w->now_us), 9000);
        world_free(w);
    }
}

/* Each group is reported once, after a delay, however many queries arrive. */
static void test_queries_are_answered_for_each_group(void **state)
{
    struct world *w = world_ready();
    unsigned before = count_type(w, 62, MLD_REPORT_V2);

    (void)state;
    for (int i = 0; i < 10; i++) {
        INPUT(w, mld_query_all);
    }
    assert_int_equal(count_type(w, 62, MLD_REPORT_V2), before);
    world_run(w, w->now_us + 2 * SECOND);
    assert_int_equal(count_type(w, 62, MLD_REPORT_V2), before + 2);
    INPUT(w, mld_query_one);
    world_run(w, w->now_us + 2 * SECOND);
    assert_int_equal(count_type(w, 62, MLD_REPORT_V2), before + 3);
    INPUT(w, mld_query_other);
    world_run(w, w->now_us + 2 * SECOND);
    assert_int_equal(count_type(w, 62, MLD_REPORT_V2), before + 3);
    world_free(w);
}
