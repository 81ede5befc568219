/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fragmented packets of IPv4 and IPv6: in any order, duplicated, overlapping,
 * and too many.  Replies in fragments are reassembled here and compared.
 */
#include "tests/unit/net/stack/net_test.h"

#include "lib/bytes.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/ipv6_ext.h"

enum { MESSAGE_MAX = 65536 };

static const struct mac_addr drive_mac = {{2, 0, 0, 0, 0, 0x10}};
static const struct ip_addr drive4 = {{[10] = 0xff, 0xff, 10, 0, 0, 2}};
static const struct ip_addr drive6 = {{0x20, 0x01, 0x0d, 0xb8, [15] = 2}};

struct packet {
    bool v4;
    struct ip_addr src;
    uint32_t id;
    uint8_t next_header; /* of IPv6; 0 for ICMPv6 */
    size_t len;          /* length of the message */
    uint8_t message[MESSAGE_MAX];
};

static void make_ping(struct packet *p, bool v4, size_t len)
{
    const struct icmp icmp = {
        .type = v4 ? ICMP_ECHO_REQUEST : ICMPV6_ECHO_REQUEST,
        .rest = 0x00070009,
    };

    p->v4 = v4;
    p->src = v4 ? host4 : host6;
    p->id = 0x4242;
    p->next_header = 0;
    p->len = len;
    for (size_t i = ICMP_LEN; i < len; i++) {
        p->message[i] = (uint8_t)(i * 31 + i / 251);
    }
    if (v4) {
        icmp_emit(&icmp, p->message, len);
    } else {
        icmpv6_emit(&icmp, &p->src, &drive6, p->message, len);
    }
}

/* Send the fragment of `len` bytes from `offset` on. */
static void send_fragment(struct world *w, const struct packet *p,
                          size_t offset, size_t len, bool more)
{
    static uint8_t frame[NET_FRAME_MAX];
    const struct eth eth = {
        .dst = drive_mac,
        .src = host_mac,
        .type = p->v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6,
    };
    size_t at = ETH_LEN;

    eth_emit(&eth, frame);
    if (p->v4) {
        ipv4_emit(
            &(struct ipv4){
                .src = p->src,
                .dst = drive4,
                .total_len_bytes = (uint16_t)(IPV4_LEN + len),
                .id = (uint16_t)p->id,
                .fragment_offset_bytes = (uint16_t)offset,
                .ttl = 61,
                .protocol = IP_PROTOCOL_ICMP,
                .more_fragments = more,
            },
            frame + at);
        at += IPV4_LEN;
    } else {
        ipv6_emit(
            &(struct ipv6){
                .src = p->src,
                .dst = drive6,
                .payload_len_bytes = (uint16_t)(IPV6_FRAGMENT_LEN + len),
                .next_header = IPV6_EXT_FRAGMENT,
                .hop_limit = 61,
            },
            frame + at);
        at += IPV6_LEN;
        ipv6_fragment_emit(
            &(struct ipv6_fragment){
                .id = p->id,
                .offset_bytes = (uint16_t)offset,
                .next_header =
                    p->next_header != 0 ? p->next_header : IP_PROTOCOL_ICMPV6,
                .more_fragments = more,
            },
            frame + at);
        at += IPV6_FRAGMENT_LEN;
    }
    memcpy(frame + at, p->message + offset, len);
    assert_true(world_input(w, 0, frame, at + len));
}

static void send_part(struct world *w, const struct packet *p, size_t part,
                      size_t each)
{
    size_t offset = part * each;
    size_t len = MIN(each, p->len - offset);

    send_fragment(w, p, offset, len, offset + len != p->len);
}

static size_t count_parts(const struct packet *p, size_t each)
{
    return (p->len + each - 1) / each;
}

/* Reassemble the frames that were sent after the first `since` ones; the result
 * must be the reply to p. */
static void expect_answer(const struct world *w, unsigned since,
                          const struct packet *p, size_t mtu)
{
    static uint8_t message[MESSAGE_MAX];
    struct icmp icmp;
    size_t got = 0;

    assert_true(w->sent_count - since <= SENT_MAX);
    for (unsigned i = since; i < w->sent_count; i++) {
        const uint8_t *l3 = w->sent[i % SENT_MAX].data + ETH_LEN;
        size_t l3_len = w->sent[i % SENT_MAX].len - ETH_LEN;
        size_t at = p->v4 ? IPV4_LEN : IPV6_LEN;
        struct ipv6_fragment fragment = {0};
        size_t offset, len;

        assert_in_range(l3_len, 1, mtu);
        if (p->v4) {
            struct ipv4 ip;

            assert_true(ipv4_parse(&ip, l3, l3_len));
            assert_true(ip_addr_equal(&ip.dst, &p->src));
            assert_false(ip.dont_fragment);
            assert_int_not_equal(ip.id, 0);
            fragment.offset_bytes = ip.fragment_offset_bytes;
            fragment.more_fragments = ip.more_fragments;
        } else {
            struct ipv6 ip;

            assert_true(ipv6_parse(&ip, l3, l3_len));
            assert_true(ip_addr_equal(&ip.dst, &p->src));
            assert_int_equal(ip.next_header, IPV6_EXT_FRAGMENT);
            assert_true(ipv6_fragment_parse(&fragment, l3 + at, l3_len - at));
            assert_int_equal(fragment.next_header, IP_PROTOCOL_ICMPV6);
            at += IPV6_FRAGMENT_LEN;
        }
        offset = fragment.offset_bytes;
        len = l3_len - at;
        assert_int_equal(offset, got); /* fragments are sent in order */
        assert_int_equal(fragment.more_fragments, offset + len != p->len);
        memcpy(message + offset, l3 + at, len);
        got += len;
    }
    assert_int_equal(got, p->len);
    assert_true(p->v4 ? icmp_parse(&icmp, message, got)
                      : icmpv6_parse(&icmp, &drive6, &p->src, message, got));
    assert_int_equal(icmp.type, p->v4 ? ICMP_ECHO_REPLY : ICMPV6_ECHO_REPLY);
    assert_int_equal(icmp.rest, 0x00070009);
    assert_memory_equal(message + ICMP_LEN, p->message + ICMP_LEN,
                        got - ICMP_LEN);
}

static struct world *world_small(uint16_t mtu_bytes)
{
    struct world *w = world_new();
    struct net_stack_config config = w->stack.config;

    config.ports[0].mtu_bytes = mtu_bytes;
    net_stack_init(&w->stack, &config);
    net_stack_link(&w->stack, 0, true, 0);
    world_run(w, 10 * SECOND);
    return w;
}

static unsigned in_use(const struct world *w)
{
    unsigned count = 0;

    for (size_t i = 0; i < NET_REASSEMBLIES; i++) {
        count += w->stack.reassemblies[i].state != REASSEMBLY_FREE;
    }
    return count;
}

static struct packet packet;

/* Sizes up to IP's limit, with fragments in order, in reverse order, and
 * duplicated. */
static void test_echoes_of_up_to_64_kb_are_answered(void **state)
{
    static const size_t sizes[] = {1473, 1480, 1481, 4000, 16384, 65515};

    (void)state;
    for (unsigned way = 0; way < 6; way++) {
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            struct world *w = world_small(1500);
            unsigned since = w->sent_count;
            size_t parts;

            make_ping(&packet, way % 2 == 0, sizes[i]);
            parts = count_parts(&packet, 1448);
            for (size_t n = 0; n < parts; n++) {
                size_t part = way / 2 == 1 ? parts - 1 - n : n;

                send_part(w, &packet, part, 1448);
                if (way / 2 == 2 && n + 1 < parts) {
                    send_part(w, &packet, part, 1448);
                }
            }
            world_run(w, w->now_us + SECOND / 100);
            if (sizes[i] + (packet.v4 ? IPV4_LEN : IPV6_LEN) > 1500) {
                expect_answer(w, since, &packet, 1500);
            }
            assert_int_equal(net_stack_counter(&w->stack, 0, NET_REASSEMBLED),
                             1);
            assert_int_equal(in_use(w), 0);
            world_free(w);
        }
    }
}

/* The reply to a fragmented packet is one packet if it fits the MTU. */
static void test_a_reply_that_fits_is_not_fragmented(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;

    (void)state;
    make_ping(&packet, true, 4000);
    for (size_t n = 0; n < count_parts(&packet, 1448); n++) {
        send_part(w, &packet, n, 1448);
    }
    assert_int_equal(w->sent_count, since + 1);
    assert_int_equal(w->sent[since % SENT_MAX].len, ETH_LEN + IPV4_LEN + 4000);
    assert_int_equal(in_use(w), 0);
    world_free(w);
}

/* Put `count` destination option headers of 8 bytes before the message. */
static void put_options(struct packet *p, size_t count)
{
    static const uint8_t options[] = {
        IPV6_EXT_DESTINATION, 0, 1, 4, 0, 0, 0, 0};

    memmove(p->message + count * sizeof(options), p->message, p->len);
    for (size_t i = 0; i < count; i++) {
        memcpy(p->message + i * sizeof(options), options, sizeof(options));
    }
    p->message[(count - 1) * sizeof(options)] = IP_PROTOCOL_ICMPV6;
    p->next_header = IPV6_EXT_DESTINATION;
    p->len += count * sizeof(options);
}

/* The message follows options in the payload; its reply has no options. */
static void test_a_message_after_options_is_answered(void **state)
{
    struct world *w = world_small(1500);
    unsigned since = w->sent_count;

    (void)state;
    make_ping(&packet, false, 20000);
    put_options(&packet, 3);
    for (size_t n = 0; n < count_parts(&packet, 1448); n++) {
        send_part(w, &packet, n, 1448);
    }
    world_run(w, w->now_us + SECOND);
    make_ping(&packet, false, 20000);
    expect_answer(w, since, &packet, 1500);
    assert_int_equal(in_use(w), 0);
    world_free(w);
}

static void test_packets_with_too_many_extension_headers_are_dropped(
    void **state)
{
    enum { MOST = 8 }; /* the Fragment header is one of them */
    struct world *w = world_small(1500);
    unsigned since = w->sent_count;

    (void)state;
    for (size_t count = MOST - 1; count <= MOST; count++) {
        make_ping(&packet, false, 100);
        put_options(&packet, count);
        send_fragment(w, &packet, 0, packet.len, false);
        world_run(w, w->now_us + SECOND);
        assert_int_equal(w->sent_count - since, 1);
        assert_int_equal(
            net_stack_counter(&w->stack, 0, NET_DROP_IPV6_EXTENSION),
            count == MOST);
    }
    world_free(w);
}

static void test_fragments_of_a_reply_wait_for_transmit_buffers(void **state)
{
    struct world *w = world_small(1500);
    unsigned since = w->sent_count;

    (void)state;
    make_ping(&packet, false, 20000);
    for (size_t n = 0; n < count_parts(&packet, 1448); n++) {
        send_part(w, &packet, n, 1448);
    }
    w->no_room = true;
    world_run(w, w->now_us + SECOND);
    assert_int_equal(w->sent_count, since);
    w->no_room = false;
    world_run(w, w->now_us + SECOND);
    expect_answer(w, since, &packet, 1500);
    world_free(w);
}

/* With a smaller path MTU, the reply to an unfragmented packet is
 * fragmented. */
static void test_replies_respect_the_path_mtu(void **state)
{
    struct world *w = world_ready();
    unsigned since = w->sent_count;
    uint16_t index = world_learn(w, 0, &host4, &host_mac);

    (void)state;
    assert_true(net_neigh_note_mtu(&w->stack, index, 576, w->now_us));
    make_ping(&packet, true, 1480);
    send_fragment(w, &packet, 0, 1480, false);
    world_run(w, w->now_us + SECOND);
    assert_int_equal(w->sent_count, since + 3);
    expect_answer(w, since, &packet, 576);
    world_free(w);
}

/* RFC 5722: an overlap discards the packet and all its further fragments. */
static void test_overlapping_fragments_refuse_the_packet(void **state)
{
    static const struct {
        size_t offset, len;
        bool more;
    } rows[] = {
        {8, 16, true},     /* inside the first, with other bytes */
        {1440, 16, true},  /* across its end */
        {0, 1456, true},   /* the first, but longer */
        {2888, 8, false},  /* a second last fragment */
        {1448, 800, false} /* ends before received data */
    };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
        struct world *w = world_small(1500);
        unsigned since = w->sent_count;

        make_ping(&packet, i % 2 == 0, 4344);
        send_part(w, &packet, 0, 1448);
        send_part(w, &packet, 2, 1448);
        packet.message[rows[i / 2].offset + 4] ^= 1;
        send_fragment(w, &packet, rows[i / 2].offset, rows[i / 2].len,
                      rows[i / 2].more);
        packet.message[rows[i / 2].offset + 4] ^= 1;
        assert_int_equal(
            net_stack_counter(&w->stack, 0, NET_DROP_FRAGMENT_OVERLAP), 1);
        for (size_t n = 0; n < 3; n++) {
            send_part(w, &packet, n, 1448);
        }
        assert_int_equal(
            net_stack_counter(&w->stack, 0, NET_DROP_FRAGMENT_OVERLAP), 4);
        world_run(w, w->now_us + NET_REASSEMBLY_US + SECOND);
        assert_int_equal(w->sent_count, since); /* no time-out error either */
        assert_int_equal(in_use(w), 0);
        world_free(w);
    }
}

/* Teardrop: the second fragment ends inside the first. */
static void test_the_teardrop_attack_does_no_harm(void **state)
{
    struct world *w = world_small(1500);

    (void)state;
    make_ping(&packet, true, 1448);
    send_fragment(w, &packet, 0, 40, true);
    packet.message[30] ^= 1;
    send_fragment(w, &packet, 24, 4, false);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_DROP_FRAGMENT_OVERLAP),
                     1);
    world_free(w);
}

/* Expect the first fragment, unchanged: RFC 792, RFC 4443 section 2.4 (c). */
static void expect_quoted(const uint8_t *quoted, const struct packet *whole,
                          size_t len)
{
    if (whole->v4) {
        assert_int_equal(get_be16(quoted + IPV4_TOTAL_LEN), IPV4_LEN + len);
        assert_int_equal(get_be16(quoted + IPV4_ID), (uint16_t)whole->id);
        assert_int_equal(get_be16(quoted + IPV4_FRAGMENT), 0x2000);
        assert_memory_equal(quoted + IPV4_LEN, whole->message, 8);
        return;
    }
    assert_int_equal(get_be16(quoted + IPV6_PAYLOAD_LEN),
                     IPV6_FRAGMENT_LEN + len);
    assert_int_equal(quoted[IPV6_NEXT_HEADER], IPV6_EXT_FRAGMENT);
    quoted += IPV6_LEN;
    assert_int_equal(quoted[0], IP_PROTOCOL_ICMPV6);
    assert_int_equal(get_be16(quoted + IPV6_FRAGMENT_OFFSET), 1);
    assert_int_equal(get_be32(quoted + IPV6_FRAGMENT_ID), whole->id);
    assert_memory_equal(quoted + IPV6_FRAGMENT_LEN, whole->message,
                        1280 - 2 * IPV6_LEN - ICMP_LEN - IPV6_FRAGMENT_LEN);
}

/* An error is sent only if the first fragment has arrived: RFC 1122 section
 * 3.3.2, RFC 8200 section 4.5. */
static void test_packets_that_stay_incomplete_time_out(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct world *w = world_small(1500);
        unsigned since = w->sent_count;
        bool has_first = i / 2 == 0;
        const struct sent *sent = &w->sent[since % SENT_MAX];

        make_ping(&packet, i % 2 == 0, 4344);
        send_part(w, &packet, has_first ? 0 : 1, 1448);
        w->no_room = true;
        world_run(w, w->now_us + NET_REASSEMBLY_US + SECOND);
        assert_int_equal(in_use(w), has_first);
        w->no_room = false;
        world_run(w, w->now_us + SECOND);
        assert_int_equal(
            net_stack_counter(&w->stack, 0, NET_DROP_FRAGMENT_TIMEOUT), 1);
        assert_int_equal(w->sent_count - since, has_first);
        assert_int_equal(in_use(w), 0);
        if (has_first) {
            size_t at = ETH_LEN + (packet.v4 ? IPV4_LEN : IPV6_LEN);

            assert_int_equal(sent->data[at], packet.v4 ? ICMP_TIME_EXCEEDED
                                                       : ICMPV6_TIME_EXCEEDED);
            assert_int_equal(sent->data[at + 1], 1);
            expect_quoted(sent->data + at + ICMP_LEN, &packet, 1448);
        }
        world_free(w);
    }
}

/* One source gets at most half of the entries. */
static void test_reassembly_entries_are_limited_for_each_source(void **state)
{
    struct world *w = world_small(1500);
    unsigned since = w->sent_count;

    (void)state;
    make_ping(&packet, true, 4344);
    packet.src = ip_addr_from_v4(0x0a000063);
    send_part(w, &packet, 0, 1448);
    packet.src = host4;
    for (uint32_t id = 0; id < 1000; id++) {
        packet.id = id;
        send_part(w, &packet, 0, 1448);
    }
    assert_int_equal(in_use(w), 1 + NET_REASSEMBLIES / 2);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_DROP_FRAGMENT_EVICTED),
                     1000 - NET_REASSEMBLIES / 2);
    packet.src = ip_addr_from_v4(0x0a000063);
    packet.id = 0x4242;
    send_part(w, &packet, 1, 1448);
    send_part(w, &packet, 2, 1448);
    world_run(w, w->now_us + SECOND / 10);
    expect_answer(w, since, &packet, 1500);
    for (uint32_t source = 0; source < 1000; source++) {
        packet.src = ip_addr_from_v4(0x0a000100 + source);
        send_part(w, &packet, 0, 1448);
        assert_true(in_use(w) <= NET_REASSEMBLIES);
    }
    world_free(w);
}

/* Replies that wait for a blocked port keep their entries; others are
 * refused. */
static void test_waiting_replies_are_not_evicted(void **state)
{
    struct world *w = world_small(1500);

    (void)state;
    for (uint32_t source = 0; source <= NET_REASSEMBLIES; source++) {
        make_ping(&packet, true, 2000);
        packet.src = ip_addr_from_v4(0x0a000100 + source);
        send_part(w, &packet, 0, 1448);
        send_part(w, &packet, 1, 1448);
    }
    assert_int_equal(in_use(w), NET_REASSEMBLIES);
    assert_int_equal(net_stack_counter(&w->stack, 0, NET_DROP_FRAGMENT_EVICTED),
                     2); /* both fragments of the last packet */
    net_stack_link(&w->stack, 0, false, w->now_us);
    world_run(w, w->now_us + SECOND);
    assert_int_equal(in_use(w), 0);
    world_free(w);
}

/* Random fragments of three packets in random order do no harm and leak
 * nothing. */
static void test_random_fragments_do_no_harm(void **state)
{
    uint32_t random = 1;
    struct world *w = world_small(1500);

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        size_t offset, len;

        random = random * 1664525 + 1013904223;
        make_ping(&packet, random >> 8 & 1, 256);
        packet.id = random >> 9 & 3;
        offset = (random >> 11 & 31) * 8;
        len = MIN(((random >> 16 & 7) + 1) * 8, 256 - MIN(offset, 248));
        send_fragment(w, &packet, MIN(offset, 248), len, random >> 20 & 7);
        w->now_us += SECOND / 100;
        (void)net_stack_timer(&w->stack, w->now_us);
    }
    world_run(w, w->now_us + NET_REASSEMBLY_US + SECOND);
    assert_int_equal(in_use(w), 0);
    world_free(w);
}
