/* SPDX-License-Identifier: BSD-2-Clause */
/* The DHCP client and its fallback, 169.254/16. */
#include "tests/unit/net/stack/net_test.h"

#include "net/stack/dhcp.h"
#include "net/wire/arp.h"
#include "net/wire/ipv4.h"
#include "net/wire/udp.h"

enum { UDP_AT = ETH_LEN + IPV4_LEN, DHCP_AT = UDP_AT + UDP_LEN, MINUTE = 60 };

static const struct mac_addr own_mac = {{2, 0, 0, 0, 0, 0x10}};
static const struct mac_addr server_mac = {{0x52, 0x54, 0, 0, 0, 1}};
static const struct mac_addr to_all = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
static const struct ip_addr server = {{[10] = 0xff, 0xff, 10, 77, 0, 1}};
static const struct ip_addr leased = {{[10] = 0xff, 0xff, 10, 77, 0, 5}};
static const struct ip_addr router = {{[10] = 0xff, 0xff, 10, 77, 0, 254}};

struct bed {
    struct world *w;
    struct dhcp_client client;
    struct dhcp_port *port;
    unsigned told, lost;
    struct dhcp_lease lease;
    unsigned seen; /* frames that were examined */
    uint16_t vlan; /* VLAN of the server; 0 for untagged */
};

static void on_lease(void *ctx, uint8_t port, const struct dhcp_lease *lease)
{
    struct bed *bed = ctx;

    assert_int_equal(port, 0);
    if (lease == NULL) {
        bed->lost++;
    } else {
        bed->told++;
        bed->lease = *lease;
    }
}

static void step_time(struct bed *bed, uint64_t us)
{
    uint64_t until_us = bed->w->now_us + us;
    uint64_t next_us = bed->w->now_us;

    while (next_us <= until_us) {
        uint64_t stack_us, client_us;

        bed->w->now_us = next_us;
        (void)net_stack_timer(&bed->w->stack, next_us);
        (void)dhcp_client_timer(&bed->client, next_us);
        /* Each may have given the other something to do. */
        stack_us = net_stack_timer(&bed->w->stack, next_us);
        client_us = dhcp_client_timer(&bed->client, next_us);
        next_us = MIN(stack_us, client_us);
        assert_true(next_us > bed->w->now_us);
    }
    bed->w->now_us = until_us;
}

/* A client on port 0, untagged, that waits for its link. */
static struct bed *bed_new(bool is_fast)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct dhcp_client_config config = {
        .host_name = "rack7",
        .ports = {{true, NET_VLAN_UNTAGGED}},
        .is_fast = is_fast,
        .random_seed = 7,
        .ctx = bed,
        .leased = on_lease,
    };

    assert_non_null(bed);
    bed->w = world_ready();
    config.stack = &bed->w->stack;
    assert_true(dhcp_client_init(&bed->client, &config));
    bed->port = &bed->client.ports[0];
    bed->seen = bed->w->sent_count;
    return bed;
}

static void bed_free(struct bed *bed)
{
    world_free(bed->w);
    free(bed);
}

static void set_link(struct bed *bed, bool is_up)
{
    net_stack_link(&bed->w->stack, 0, is_up, bed->w->now_us);
    dhcp_client_link(&bed->client, 0, is_up, bed->w->now_us);
}

static struct bed *bed_up(bool is_fast)
{
    struct bed *bed = bed_new(is_fast);

    dhcp_client_link(&bed->client, 0, true, bed->w->now_us);
    return bed;
}

/* The next DHCP message among the sent frames; type 0 if there is none. */
struct seen {
    struct dhcp dhcp;
    struct mac_addr mac;
    struct ipv4 ip;
};

static struct seen next_message(struct bed *bed)
{
    struct seen seen = {0};

    assert_true(bed->w->sent_count - bed->seen <= SENT_MAX);
    while (bed->seen < bed->w->sent_count) {
        const struct sent *frame = &bed->w->sent[bed->seen++ % SENT_MAX];
        struct eth eth;
        struct udp udp;

        assert_true(eth_parse(&eth, frame->data, frame->len));
        if (frame->port != 0 || eth.type != ETHERTYPE_IPV4 || eth.tagged ||
            !ipv4_parse(&seen.ip, frame->data + ETH_LEN,
                        frame->len - ETH_LEN) ||
            seen.ip.protocol != IP_PROTOCOL_UDP) {
            continue;
        }
        assert_true(udp_parse(&udp, frame->data + UDP_AT, frame->len - UDP_AT));
        assert_int_equal(udp.src_port, DHCP_CLIENT_PORT);
        assert_int_equal(udp.dst_port, DHCP_SERVER_PORT);
        assert_int_equal(udp_checksum(&seen.ip.src, &seen.ip.dst,
                                      frame->data + UDP_AT, udp.length_bytes),
                         0xffff);
        assert_true(dhcp_parse(&seen.dhcp, frame->data + DHCP_AT,
                               udp.length_bytes - (size_t)UDP_LEN));
        assert_false(seen.dhcp.is_reply);
        assert_true(mac_addr_equal(&seen.dhcp.chaddr, &own_mac));
        assert_int_equal(seen.dhcp.client.len_bytes, 7);
        seen.mac = eth.dst;
        return seen;
    }
    return seen;
}

static struct seen expect_message(struct bed *bed, enum dhcp_type type)
{
    struct seen seen = next_message(bed);

    assert_int_equal(seen.dhcp.type, type);
    return seen;
}

static void expect_nothing(struct bed *bed)
{
    assert_int_equal(next_message(bed).dhcp.type, 0);
}

/* A server's reply with all required fields and no others. */
static struct dhcp server_reply(const struct bed *bed, enum dhcp_type type)
{
    return (struct dhcp){
        .type = (uint8_t)type,
        .is_reply = true,
        .xid = bed->port->xid,
        .ciaddr = ip_addr_from_v4(0),
        .yiaddr = leased,
        .chaddr = own_mac,
        .server = server,
        .lease_s = 10 * MINUTE,
        .has_mask = true,
        .prefix_bits = 24,
    };
}

static void deliver_from(struct bed *bed, const struct dhcp *dhcp,
                         const struct ip_addr *dst, uint16_t src_port)
{
    enum { TAG_LEN = ETH_TAGGED_LEN - ETH_LEN };
    uint8_t frame[DHCP_AT + 576 + TAG_LEN];
    size_t len = dhcp_emit(dhcp, frame + DHCP_AT, 576);
    struct eth eth = {
        .dst = to_all,
        .src = server_mac,
        .type = ETHERTYPE_IPV4,
    };
    struct ipv4 ip = {
        .src = server,
        .dst = *dst,
        .total_len_bytes = (uint16_t)(IPV4_LEN + UDP_LEN + len),
        .ttl = 64,
        .protocol = IP_PROTOCOL_UDP,
    };
    struct udp udp = {
        .src_port = src_port,
        .dst_port = DHCP_CLIENT_PORT,
        .length_bytes = (uint16_t)(UDP_LEN + len),
    };

    assert_int_not_equal(len, 0);
    if (!ip_addr_is_multicast(dst)) {
        eth.dst = own_mac;
    }
    eth_emit(&eth, frame);
    ipv4_emit(&ip, frame + ETH_LEN);
    udp_emit(&udp, frame + UDP_AT);
    len += DHCP_AT;
    if (bed->vlan != 0) {
        memmove(frame + ETH_TAGGED_LEN, frame + ETH_LEN, len - ETH_LEN);
        eth.tagged = true;
        eth.vlan = bed->vlan;
        eth_emit(&eth, frame);
        len += TAG_LEN;
    }
    assert_true(world_input(bed->w, 0, frame, len));
}

static void deliver_reply(struct bed *bed, const struct dhcp *dhcp)
{
    struct ip_addr all = ip_addr_from_v4(0xffffffff);

    deliver_from(bed, dhcp, &all, DHCP_SERVER_PORT);
}

static void answer_client(struct bed *bed, enum dhcp_type type)
{
    struct dhcp dhcp = server_reply(bed, type);

    deliver_reply(bed, &dhcp);
    step_time(bed, 0);
}

/* Another host claims the address by ARP. */
static void claim_address(struct bed *bed, const struct ip_addr *ip)
{
    uint8_t frame[64];

    assert_true(world_input(bed->w, 0, frame,
                            make_arp(frame, ARP_REPLY, &other_mac, ip, ip)));
}

static struct ip_addr own_address(const struct bed *bed)
{
    assert_true(bed->port->local >= 0);
    return net_stack_address(&bed->w->stack, (uint8_t)bed->port->local)->ip;
}

/* Make a client in this state by the shortest way, and check its messages. */
static struct bed *bed_in(enum dhcp_state state, bool is_fast)
{
    struct bed *bed = bed_new(is_fast);

    if (state == DHCP_OFF) {
        return bed;
    }
    dhcp_client_link(&bed->client, 0, true, bed->w->now_us);
    if (state == DHCP_INIT) {
        return bed;
    }
    step_time(bed, is_fast ? DHCP_FAST_START_US : DHCP_START_US);
    expect_message(bed, DHCP_DISCOVER);
    if (state == DHCP_SELECTING) {
        return bed;
    }
    answer_client(bed, DHCP_OFFER);
    expect_message(bed, DHCP_REQUEST);
    if (state == DHCP_REQUESTING) {
        return bed;
    }
    answer_client(bed, DHCP_ACK);
    if (state == DHCP_PROBING) {
        return bed;
    }
    step_time(bed, 10 * SECOND);
    if (state == DHCP_REBOOTING) {
        set_link(bed, false);
        step_time(bed, SECOND);
        set_link(bed, true);
        step_time(bed, 0);
        expect_message(bed, DHCP_REQUEST);
    } else if (state == DHCP_RENEWING) {
        step_time(bed, 5 * MINUTE * SECOND - 9 * SECOND);
    } else if (state == DHCP_REBINDING) {
        step_time(bed, 525 * SECOND - 9 * SECOND);
    }
    bed->seen = bed->w->sent_count;
    return bed;
}

/* ---- Getting a lease. */

static void test_a_lease_is_requested_probed_and_used(void **state)
{
    struct bed *bed = bed_up(false);
    struct dhcp dhcp;
    struct seen seen;

    (void)state;
    step_time(bed, DHCP_START_US);
    seen = expect_message(bed, DHCP_DISCOVER);
    assert_true(mac_addr_equal(&seen.mac, &to_all));
    assert_true(ip_addr_is_unspecified(&seen.ip.src));
    assert_int_equal(ip_addr_to_v4(&seen.ip.dst), 0xffffffff);
    assert_true(seen.dhcp.is_broadcast);
    assert_true(ip_addr_is_unspecified(&seen.dhcp.server));
    assert_int_equal(seen.dhcp.host_name.len_bytes, 5);
    assert_int_equal(seen.dhcp.parameters.len_bytes, 8);

    answer_client(bed, DHCP_OFFER);
    seen = expect_message(bed, DHCP_REQUEST);
    assert_true(mac_addr_equal(&seen.mac, &to_all));
    assert_true(ip_addr_is_unspecified(&seen.dhcp.ciaddr));
    assert_true(ip_addr_equal(&seen.dhcp.requested, &leased));
    assert_true(ip_addr_equal(&seen.dhcp.server, &server));

    dhcp = server_reply(bed, DHCP_ACK);
    dhcp.router = router;
    dhcp.ntp_server = host4;
    dhcp.mtu_bytes = 1400;
    deliver_reply(bed, &dhcp);
    step_time(bed, 0);
    assert_int_equal(bed->port->state, DHCP_PROBING);
    assert_false(
        net_stack_is_usable(&bed->w->stack, (uint8_t)bed->port->local));
    assert_int_equal(bed->told, 0);
    step_time(bed, 10 * SECOND);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    assert_int_equal(bed->told, 1);
    assert_true(ip_addr_equal(&bed->lease.ip, &leased));
    assert_true(ip_addr_equal(&bed->lease.ntp_server, &host4));
    assert_int_equal(bed->lease.mtu_bytes, 1400);
    assert_true(
        net_stack_is_assigned(&bed->w->stack, (uint8_t)bed->port->local));
    assert_true(
        ip_addr_equal(&bed->w->stack.config.ports[0].gateway4, &router));
    assert_int_equal(bed->w->stack.mtu4_bytes[0], 1400);
    expect_nothing(bed);
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_GOT_OFFER), 1);
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_GOT_ACK), 1);
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_SENT_DISCOVER), 1);
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_SENT_REQUEST), 1);
    bed_free(bed);
}

static void test_an_mtu_above_the_ports_is_ignored(void **state)
{
    static const uint16_t mtu[] = {576, 1279, 9001};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(mtu); i++) {
        struct bed *bed = bed_in(DHCP_REQUESTING, true);
        struct dhcp dhcp = server_reply(bed, DHCP_ACK);

        dhcp.mtu_bytes = mtu[i];
        deliver_reply(bed, &dhcp);
        step_time(bed, 10 * SECOND);
        assert_int_equal(bed->port->state, DHCP_BOUND);
        assert_int_equal(bed->w->stack.mtu4_bytes[0], 0);
        bed_free(bed);
    }
}

/* Each event in each state leads to the expected state. */
static void test_every_state_with_every_event(void **state)
{
    enum { OFFERED, ACKED, NAKED, LINK_DOWN, LINK_UP, EVENTS };
    static const uint8_t next[DHCP_STATES][EVENTS] = {
#define ROW(of, offered, acked, naked, up)                                     \
    [of] = {                                                                   \
        [OFFERED] = offered,    [ACKED] = acked, [NAKED] = naked,              \
        [LINK_DOWN] = DHCP_OFF, [LINK_UP] = up,                                \
    }
        ROW(DHCP_OFF, DHCP_OFF, DHCP_OFF, DHCP_OFF, DHCP_INIT),
        ROW(DHCP_INIT, DHCP_INIT, DHCP_INIT, DHCP_INIT, DHCP_INIT),
        ROW(DHCP_SELECTING, DHCP_REQUESTING, DHCP_SELECTING, DHCP_SELECTING,
            DHCP_INIT),
        ROW(DHCP_REQUESTING, DHCP_REQUESTING, DHCP_PROBING, DHCP_INIT,
            DHCP_INIT),
        ROW(DHCP_REBOOTING, DHCP_REBOOTING, DHCP_PROBING, DHCP_INIT,
            DHCP_REBOOTING),
        ROW(DHCP_PROBING, DHCP_PROBING, DHCP_PROBING, DHCP_PROBING,
            DHCP_REBOOTING),
        ROW(DHCP_BOUND, DHCP_BOUND, DHCP_BOUND, DHCP_BOUND, DHCP_REBOOTING),
        ROW(DHCP_RENEWING, DHCP_RENEWING, DHCP_BOUND, DHCP_INIT,
            DHCP_REBOOTING),
        ROW(DHCP_REBINDING, DHCP_REBINDING, DHCP_BOUND, DHCP_INIT,
            DHCP_REBOOTING),
#undef ROW
    };

    (void)state;
    for (unsigned from = 0; from < DHCP_STATES; from++) {
        for (unsigned event = 0; event < EVENTS; event++) {
            static const uint8_t type[] = {DHCP_OFFER, DHCP_ACK, DHCP_NAK};
            struct bed *bed = bed_in((enum dhcp_state)from, false);
            struct dhcp dhcp;

            assert_int_equal(bed->port->state, from);
            if (event <= NAKED) {
                dhcp = server_reply(bed, (enum dhcp_type)type[event]);
                deliver_reply(bed, &dhcp);
            } else {
                dhcp_client_link(&bed->client, 0, event == LINK_UP,
                                 bed->w->now_us);
            }
            assert_int_equal(bed->port->state, next[from][event]);
            bed_free(bed);
        }
    }
}

static void test_answers_for_other_clients_are_ignored(void **state)
{
    struct ip_addr all = ip_addr_from_v4(0xffffffff);
    struct bed *bed = bed_in(DHCP_SELECTING, false);
    const struct dhcp good = server_reply(bed, DHCP_OFFER);
    struct dhcp dhcp;
    unsigned tries = 0;

    (void)state;
#define STRAY(change)                                                          \
    dhcp = good;                                                               \
    change;                                                                    \
    deliver_reply(bed, &dhcp);                                                 \
    assert_int_equal(bed->port->state, DHCP_SELECTING);                        \
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_STRAY), ++tries)

    STRAY(dhcp.xid++);
    STRAY(dhcp.is_reply = false);
    STRAY(dhcp.chaddr = other_mac);
    STRAY(dhcp.type = DHCP_DISCOVER);
    STRAY(dhcp.yiaddr = ip_addr_from_v4(0));
    STRAY(dhcp.yiaddr = ip_addr_from_v4(0x7f000001));
    STRAY(dhcp.yiaddr = ip_addr_from_v4(0xe0000001));
    STRAY(dhcp.yiaddr = all);
    STRAY(dhcp.server = ip_addr_from_v4(0));
    STRAY(dhcp.lease_s = 0);
    STRAY(dhcp.has_mask = false);
    deliver_from(bed, &good, &all, 1067);
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_STRAY), ++tries);
    deliver_reply(bed, &good);
    assert_int_equal(bed->port->state, DHCP_REQUESTING);
    /* An ACK of another server or for another address is ignored too. */
    dhcp = server_reply(bed, DHCP_ACK);
    dhcp.server = router;
    deliver_reply(bed, &dhcp);
    dhcp = server_reply(bed, DHCP_ACK);
    dhcp.yiaddr = router;
    deliver_reply(bed, &dhcp);
    assert_int_equal(bed->port->state, DHCP_REQUESTING);
    bed_free(bed);
}

/* The world has an address on VLAN 9, where another server is. */
static void test_answers_from_another_vlan_are_ignored(void **state)
{
    struct bed *bed = bed_in(DHCP_SELECTING, false);

    (void)state;
    bed->vlan = 9;
    answer_client(bed, DHCP_OFFER);
    assert_int_equal(bed->port->state, DHCP_SELECTING);
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_STRAY), 1);
    bed->vlan = 0;
    answer_client(bed, DHCP_OFFER);
    assert_int_equal(bed->port->state, DHCP_REQUESTING);
    bed_free(bed);
}

static void test_malformed_answers_are_counted(void **state)
{
    struct bed *bed = bed_in(DHCP_SELECTING, false);
    struct dhcp dhcp = server_reply(bed, DHCP_OFFER);

    (void)state;
    dhcp.type = 9;
    deliver_reply(bed, &dhcp);
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_MALFORMED), 1);
    assert_int_equal(bed->port->state, DHCP_SELECTING);
    bed_free(bed);
}

static void test_requests_are_repeated_with_growing_intervals(void **state)
{
    struct bed *bed = bed_in(DHCP_SELECTING, false);
    uint64_t wait_us = DHCP_FIRST_US;
    uint32_t xid = bed->port->xid;

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t rest_us = bed->port->due_us - bed->w->now_us;

        if (i != 0) { /* the first one was sent before */
            assert_in_range(rest_us, wait_us / 4 * 3, wait_us / 4 * 5);
        }
        step_time(bed, rest_us);
        assert_int_equal(expect_message(bed, DHCP_DISCOVER).dhcp.xid, xid);
        expect_nothing(bed);
        wait_us = MIN(wait_us * 2, DHCP_LONGEST_US);
    }
    bed_free(bed);
}

static void test_unanswered_requests_lead_to_a_new_discover(void **state)
{
    struct bed *bed = bed_in(DHCP_REQUESTING, true);
    uint32_t xid = bed->port->xid;

    (void)state;
    step_time(bed, 10 * SECOND);
    for (unsigned i = 1; i < DHCP_REQUESTS; i++) {
        assert_int_equal(expect_message(bed, DHCP_REQUEST).dhcp.xid, xid);
    }
    assert_int_not_equal(expect_message(bed, DHCP_DISCOVER).dhcp.xid, xid);
    bed_free(bed);
}

static void test_the_client_waits_for_a_transmit_buffer(void **state)
{
    struct bed *bed = bed_up(true);

    (void)state;
    bed->w->no_room = true;
    step_time(bed, SECOND);
    expect_nothing(bed);
    bed->w->no_room = false;
    step_time(bed, SECOND / 10);
    expect_message(bed, DHCP_DISCOVER);
    expect_nothing(bed);
    bed_free(bed);
}

static void test_an_address_in_use_is_declined(void **state)
{
    struct bed *bed = bed_in(DHCP_PROBING, false);
    struct seen seen;

    (void)state;
    step_time(bed, SECOND);
    claim_address(bed, &leased);
    bed->w->no_room = true;
    for (unsigned i = 0; i < 3; i++) { /* each time there is no buffer */
        uint64_t next_us = dhcp_client_timer(&bed->client, bed->w->now_us);

        assert_in_range(next_us, bed->w->now_us + 1, bed->w->now_us + 1000);
        bed->w->now_us = next_us;
    }
    assert_int_equal(bed->port->state, DHCP_PROBING);
    bed->w->no_room = false;
    step_time(bed, SECOND / 100);
    seen = expect_message(bed, DHCP_DECLINE);
    assert_true(ip_addr_equal(&seen.dhcp.requested, &leased));
    assert_true(ip_addr_equal(&seen.dhcp.server, &server));
    assert_true(ip_addr_is_unspecified(&seen.dhcp.ciaddr));
    assert_true(ip_addr_is_unspecified(&seen.ip.src));
    assert_int_equal(seen.dhcp.parameters.len_bytes, 0);
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_SENT_DECLINE), 1);
    assert_int_equal(bed->port->local, -1);
    assert_int_equal(bed->told, 0);
    step_time(bed, DHCP_DECLINED_US - SECOND);
    expect_nothing(bed);
    step_time(bed, SECOND);
    expect_message(bed, DHCP_DISCOVER);
    bed_free(bed);
}

static void test_a_ninth_address_is_refused_and_requested_again_later(
    void **state)
{
    struct bed *bed = bed_in(DHCP_REQUESTING, true);

    (void)state;
    for (uint32_t i = 0; i < 4; i++) { /* the world has four already */
        struct net_address_config more = {
            .ip = ip_addr_from_v4(0x0a000010 + i),
            .vlan = NET_VLAN_UNTAGGED,
            .prefix_bits = 16,
        };

        assert_true(
            net_stack_address_add(&bed->w->stack, &more, bed->w->now_us) >= 0);
    }
    answer_client(bed, DHCP_ACK);
    assert_int_equal(net_stack_counter(&bed->w->stack, 0, NET_ADDRESS_REFUSED),
                     1);
    assert_int_equal(bed->port->state, DHCP_INIT);
    net_stack_address_remove(&bed->w->stack, 7);
    step_time(bed, MINUTE * SECOND);
    expect_message(bed, DHCP_DISCOVER);
    bed_free(bed);
}

/* ---- Renewal and end of a lease. */

static void test_a_lease_is_renewed_with_its_server(void **state)
{
    struct bed *bed = bed_in(DHCP_BOUND, false);
    uint64_t renew_us = bed->port->renew_us;
    struct ip_addr us = leased;
    uint8_t arp[64];
    struct dhcp dhcp;
    struct seen seen;

    (void)state;
    assert_int_equal(renew_us - bed->port->asked_us, 300 * (uint64_t)SECOND);
    step_time(bed, renew_us - bed->w->now_us - 1);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    step_time(bed, 1); /* solicits the server's MAC */
    assert_int_equal(bed->port->state, DHCP_RENEWING);
    assert_true(world_input(
        bed->w, 0, arp, make_arp(arp, ARP_REPLY, &server_mac, &server, &us)));
    step_time(bed, SECOND);
    seen = expect_message(bed, DHCP_REQUEST);
    assert_true(mac_addr_equal(&seen.mac, &server_mac));
    assert_true(ip_addr_equal(&seen.ip.src, &leased));
    assert_true(ip_addr_equal(&seen.ip.dst, &server));
    assert_true(ip_addr_equal(&seen.dhcp.ciaddr, &leased));
    assert_true(ip_addr_is_unspecified(&seen.dhcp.requested));
    assert_true(ip_addr_is_unspecified(&seen.dhcp.server));
    assert_false(seen.dhcp.is_broadcast);
    dhcp = server_reply(bed, DHCP_ACK);
    deliver_from(bed, &dhcp, &leased, DHCP_SERVER_PORT);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    assert_in_range(bed->port->renew_us, renew_us + 300 * (uint64_t)SECOND,
                    renew_us + 302 * (uint64_t)SECOND);
    assert_int_equal(bed->told, 2);
    assert_int_equal(bed->lost, 0);
    bed_free(bed);
}

/* RFC 2131 section 4.4.5: the parameters of the last ACK are used. */
static void test_a_renewal_may_change_the_mask(void **state)
{
    struct bed *bed = bed_in(DHCP_REBINDING, false);
    struct dhcp dhcp = server_reply(bed, DHCP_ACK);
    uint8_t local = (uint8_t)bed->port->local;

    (void)state;
    assert_int_equal(net_stack_address(&bed->w->stack, local)->prefix_bits, 24);
    dhcp.prefix_bits = 16;
    deliver_reply(bed, &dhcp);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    assert_int_equal(bed->port->local, local);
    assert_int_equal(bed->lease.prefix_bits, 16);
    assert_int_equal(net_stack_address(&bed->w->stack, local)->prefix_bits, 16);
    bed_free(bed);
}

static void test_any_server_may_renew_after_t2(void **state)
{
    struct bed *bed = bed_in(DHCP_REBINDING, false);
    struct dhcp dhcp;
    struct seen seen;

    (void)state;
    bed->seen--;
    seen = expect_message(bed, DHCP_REQUEST);
    assert_true(mac_addr_equal(&seen.mac, &to_all));
    assert_true(ip_addr_equal(&seen.dhcp.ciaddr, &leased));
    assert_true(ip_addr_equal(&seen.ip.src, &leased));
    dhcp = server_reply(bed, DHCP_ACK);
    dhcp.server = router;
    deliver_from(bed, &dhcp, &leased, DHCP_SERVER_PORT);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    assert_true(ip_addr_equal(&bed->lease.server, &router));
    assert_int_equal(bed->lost, 0);
    bed_free(bed);
}

/* The drive was stopped, and its clock with it, but not the server's. */
static void test_a_lease_goes_on_while_the_drive_is_held_back(void **state)
{
    struct bed *bed = bed_in(DHCP_BOUND, false);
    uint64_t lease_us = bed->port->expire_us - bed->port->asked_us;

    (void)state;
    dhcp_client_held_back(&bed->client, lease_us / 4);
    step_time(bed, 1);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    dhcp_client_held_back(&bed->client, lease_us / 4);
    step_time(bed, 1);
    assert_int_equal(bed->port->state, DHCP_RENEWING);
    dhcp_client_held_back(&bed->client, lease_us * 3 / 8);
    step_time(bed, 1);
    assert_int_equal(bed->port->state, DHCP_REBINDING);
    assert_int_equal(bed->lost, 0);
    dhcp_client_held_back(&bed->client, lease_us);
    step_time(bed, 1);
    assert_int_equal(bed->lost, 1);
    assert_int_equal(bed->port->local, -1);
    bed_free(bed);
}

static void test_an_expired_lease_is_given_up(void **state)
{
    struct bed *bed = bed_in(DHCP_REBINDING, false);
    struct ip_addr ip;

    (void)state;
    step_time(bed, bed->port->expire_us - bed->w->now_us - 1);
    ip = own_address(bed);
    assert_true(ip_addr_equal(&ip, &leased));
    assert_int_equal(bed->lost, 0);
    bed->seen = bed->w->sent_count;
    step_time(bed, 1);
    assert_int_equal(bed->lost, 1);
    assert_int_equal(bed->port->local, -1);
    assert_int_equal(
        net_stack_local(&bed->w->stack, 0, NET_VLAN_UNTAGGED, &leased), -1);
    assert_true(
        ip_addr_is_unspecified(&bed->w->stack.config.ports[0].gateway4));
    expect_message(bed, DHCP_DISCOVER);
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_EXPIRED), 1);
    bed_free(bed);
}

static void test_a_lease_ends_while_the_link_is_down(void **state)
{
    struct bed *bed = bed_in(DHCP_BOUND, false);

    (void)state;
    set_link(bed, false);
    step_time(bed, 601 * (uint64_t)SECOND);
    assert_int_equal(bed->lost, 1);
    assert_int_equal(bed->port->state, DHCP_OFF);
    set_link(bed, true);
    step_time(bed, DHCP_START_US);
    expect_message(bed, DHCP_DISCOVER);
    bed_free(bed);
}

static void test_a_nak_removes_the_address(void **state)
{
    struct bed *bed = bed_in(DHCP_RENEWING, false);

    (void)state;
    answer_client(bed, DHCP_NAK);
    assert_int_equal(bed->lost, 1);
    assert_int_equal(bed->port->local, -1);
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_GOT_NAK), 1);
    bed->seen = bed->w->sent_count;
    step_time(bed, DHCP_REFUSED_US);
    expect_message(bed, DHCP_DISCOVER);
    bed_free(bed);
}

static void test_an_infinite_lease_is_not_renewed(void **state)
{
    struct bed *bed = bed_in(DHCP_REQUESTING, false);
    struct dhcp dhcp = server_reply(bed, DHCP_ACK);

    (void)state;
    dhcp.lease_s = DHCP_FOREVER;
    deliver_reply(bed, &dhcp);
    step_time(bed, 10 * SECOND);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    assert_int_equal(bed->port->due_us, UINT64_MAX);
    assert_int_equal(bed->port->expire_us, UINT64_MAX);
    bed_free(bed);
}

static void test_valid_t1_and_t2_of_the_server_are_used(void **state)
{
    static const struct {
        uint32_t t1_s, t2_s, renew_s, rebind_s;
    } times[] = {
        {100, 200, 100, 200}, {0, 0, 300, 525},   {300, 200, 300, 525},
        {100, 601, 300, 525}, {0, 550, 300, 550}, {600, 600, 600, 600},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        struct bed *bed = bed_in(DHCP_REQUESTING, false);
        struct dhcp dhcp = server_reply(bed, DHCP_ACK);

        dhcp.t1_s = times[i].t1_s;
        dhcp.t2_s = times[i].t2_s;
        deliver_reply(bed, &dhcp);
        assert_int_equal((bed->port->renew_us - bed->port->asked_us) / SECOND,
                         times[i].renew_s);
        assert_int_equal((bed->port->rebind_us - bed->port->asked_us) / SECOND,
                         times[i].rebind_s);
        bed_free(bed);
    }
}

/* A lease of one second must not cause more than one message a second. */
static void test_short_leases_are_renewed_at_most_once_a_second(void **state)
{
    struct bed *bed = bed_in(DHCP_BOUND, true);
    uint64_t requests = dhcp_counter_read(&bed->client, DHCP_SENT_REQUEST);

    (void)state;
    set_link(bed, false);
    set_link(bed, true);
    for (unsigned i = 0; i < 100; i++) {
        struct dhcp dhcp = server_reply(bed, DHCP_ACK);

        dhcp.lease_s = 1;
        deliver_reply(bed, &dhcp);
        dhcp.type = DHCP_OFFER;
        deliver_reply(bed, &dhcp);
        step_time(bed, SECOND / 10);
    }
    requests = dhcp_counter_read(&bed->client, DHCP_SENT_REQUEST) - requests;
    assert_in_range(requests, 1, 15);
    assert_in_range(dhcp_counter_read(&bed->client, DHCP_SENT_DISCOVER), 1, 15);
    bed_free(bed);
}

/* T1 is at least one second, also in a short lease. */
static void test_a_lease_of_one_second_is_used_for_one_second(void **state)
{
    struct bed *bed = bed_in(DHCP_RENEWING, false);
    struct dhcp dhcp = server_reply(bed, DHCP_ACK);

    (void)state;
    /* Set the time of a REQUEST, as if the server's MAC were known. */
    bed->port->asked_us = bed->w->now_us;
    dhcp.lease_s = 1;
    deliver_reply(bed, &dhcp);
    step_time(bed, 0);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    expect_nothing(bed);
    bed_free(bed);
}

/* RFC 2131 section 4.4.5: the lease may begin when the server gets the
 * REQUEST. */
static void test_a_lease_counts_from_the_request(void **state)
{
    struct bed *bed = bed_in(DHCP_REQUESTING, false);
    uint64_t asked_us = bed->w->now_us;

    (void)state;
    step_time(bed, 2 * SECOND);
    expect_nothing(bed);
    answer_client(bed, DHCP_ACK);
    step_time(bed,
              asked_us + 5 * MINUTE * (uint64_t)SECOND - 1 - bed->w->now_us);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    step_time(bed, 1);
    assert_int_equal(bed->port->state, DHCP_RENEWING);
    bed_free(bed);
}

static void test_the_same_lease_is_requested_after_a_link_flap(void **state)
{
    struct bed *bed = bed_in(DHCP_BOUND, false);
    struct seen seen;

    (void)state;
    set_link(bed, false);
    step_time(bed, SECOND);
    set_link(bed, true);
    step_time(bed, 0);
    seen = expect_message(bed, DHCP_REQUEST);
    assert_true(ip_addr_equal(&seen.dhcp.requested, &leased));
    assert_true(ip_addr_is_unspecified(&seen.dhcp.server));
    assert_true(ip_addr_is_unspecified(&seen.dhcp.ciaddr));
    assert_true(seen.dhcp.is_broadcast);
    assert_int_equal(bed->lost, 0);
    answer_client(bed, DHCP_ACK);
    step_time(bed, 10 * SECOND);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    assert_int_equal(bed->told, 2);
    bed_free(bed);
}

static void test_a_lease_stays_valid_without_its_server(void **state)
{
    struct bed *bed = bed_in(DHCP_REBOOTING, false);

    (void)state;
    step_time(bed, 100 * SECOND);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    assert_true(net_stack_is_usable(&bed->w->stack, (uint8_t)bed->port->local));
    assert_int_equal(bed->lost, 0);
    bed_free(bed);
}

static void test_stopping_releases_the_lease(void **state)
{
    struct bed *bed = bed_in(DHCP_BOUND, false);
    struct seen seen;

    (void)state;
    dhcp_client_stop(&bed->client, bed->w->now_us);
    seen = expect_message(bed, DHCP_RELEASE);
    assert_true(mac_addr_equal(&seen.mac, &server_mac));
    assert_true(ip_addr_equal(&seen.ip.dst, &server));
    assert_true(ip_addr_equal(&seen.ip.src, &leased));
    assert_true(ip_addr_equal(&seen.dhcp.ciaddr, &leased));
    assert_true(ip_addr_equal(&seen.dhcp.server, &server));
    assert_int_equal(dhcp_counter_read(&bed->client, DHCP_SENT_RELEASE), 1);
    assert_int_equal(bed->lost, 1);
    step_time(bed, 100 * SECOND);
    expect_nothing(bed);
    bed_free(bed);
}

/* ---- 169.254/16 */

static struct ip_addr fallback_address(const struct bed *bed)
{
    assert_true(bed->port->fallback.local >= 0);
    return net_stack_address(&bed->w->stack, (uint8_t)bed->port->fallback.local)
        ->ip;
}

static struct bed *bed_fallen_back(void)
{
    struct bed *bed = bed_in(DHCP_SELECTING, true);

    step_time(bed, 14 * SECOND);
    assert_true(bed->port->fallback.local >= 0);
    assert_true(net_stack_is_usable(&bed->w->stack,
                                    (uint8_t)bed->port->fallback.local));
    bed->seen = bed->w->sent_count;
    return bed;
}

static void test_a_link_local_address_is_used_without_a_server(void **state)
{
    struct bed *bed = bed_fallen_back();
    struct bed *again = bed_fallen_back();
    struct ip_addr ip = fallback_address(bed), second = fallback_address(again);

    (void)state;
    assert_true(ip_addr_is_link_local(&ip));
    assert_in_range(ip_addr_to_v4(&ip), 0xa9fe0100, 0xa9fefeff);
    assert_true(ip_addr_equal(&ip, &second)); /* the same after a reboot */
    assert_int_equal(
        net_stack_address(&bed->w->stack, (uint8_t)bed->port->fallback.local)
            ->prefix_bits,
        16);
    step_time(bed, 3 * SECOND); /* the client still searches a server */
    expect_message(bed, DHCP_DISCOVER);
    bed_free(bed);
    bed_free(again);
}

/* A successful lease resets the count of earlier failures. */
static void test_a_lease_resets_the_count_of_failures(void **state)
{
    struct bed *bed = bed_in(DHCP_REQUESTING, true);

    (void)state;
    answer_client(bed, DHCP_NAK);
    step_time(bed, DHCP_REFUSED_US);
    expect_message(bed, DHCP_DISCOVER);
    answer_client(bed, DHCP_OFFER);
    expect_message(bed, DHCP_REQUEST);
    answer_client(bed, DHCP_NAK);
    step_time(bed, DHCP_REFUSED_US);
    expect_message(bed, DHCP_DISCOVER);
    answer_client(bed, DHCP_OFFER);
    expect_message(bed, DHCP_REQUEST);
    assert_int_equal(bed->port->failures, DHCP_FAILURES - 1);
    answer_client(bed, DHCP_ACK);
    step_time(bed, 10 * SECOND);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    step_time(bed, 5 * MINUTE * (uint64_t)SECOND);
    assert_int_equal(bed->port->state, DHCP_RENEWING);
    answer_client(bed, DHCP_NAK);
    step_time(bed, 0);
    assert_false(bed->port->fallback.is_wanted);
    bed_free(bed);
}

/* RFC 3927 section 2.1: 169.254.0.x and 169.254.255.x are for later use. */
static void test_no_candidate_is_in_a_reserved_block(void **state)
{
    struct world *w = world_ready();
    unsigned last[256] = {0}, used = 0;
    struct ipv4ll ll;

    (void)state;
    ipv4ll_init(&ll, &w->stack, 0, NET_VLAN_UNTAGGED);
    for (unsigned i = 0; i < 4000; i++) {
        uint32_t ip;

        ll.candidate = i;
        ipv4ll_start(&ll, w->now_us);
        (void)ipv4ll_timer(&ll, w->now_us);
        assert_true(ll.local >= 0);
        ip =
            ip_addr_to_v4(&net_stack_address(&w->stack, (uint8_t)ll.local)->ip);
        assert_in_range(ip, 0xa9fe0100, 0xa9fefeff);
        used += last[ip >> 8 & 0xff]++ == 0;
        ipv4ll_stop(&ll);
    }
    assert_int_equal(used, 254);
    world_free(w);
}

static void test_a_lease_replaces_the_link_local_address(void **state)
{
    struct bed *bed = bed_fallen_back();
    struct ip_addr ip = fallback_address(bed);

    (void)state;
    answer_client(bed, DHCP_OFFER);
    answer_client(bed, DHCP_ACK);
    /* It is kept until the leased address is usable. */
    assert_true(bed->port->fallback.local >= 0);
    step_time(bed, 10 * SECOND);
    assert_int_equal(bed->port->state, DHCP_BOUND);
    assert_int_equal(bed->port->fallback.local, -1);
    assert_int_equal(net_stack_local(&bed->w->stack, 0, NET_VLAN_UNTAGGED, &ip),
                     -1);
    bed_free(bed);
}

static void test_a_link_local_address_that_is_taken_is_not_used(void **state)
{
    struct bed *bed = bed_in(DHCP_SELECTING, true);
    struct ip_addr first, second;

    (void)state;
    while (bed->port->fallback.local < 0) {
        step_time(bed, SECOND / 10);
    }
    first = fallback_address(bed);
    claim_address(bed, &first);
    step_time(bed, 0);
    second = fallback_address(bed);
    assert_false(ip_addr_equal(&first, &second));
    bed_free(bed);
}

static void test_a_link_local_address_is_defended_once(void **state)
{
    struct bed *bed = bed_fallen_back();
    struct ip_addr first = fallback_address(bed), second;
    const struct sent *frame;
    unsigned sent;

    (void)state;
    sent = bed->w->sent_count;
    claim_address(bed, &first);
    assert_int_equal(bed->w->sent_count, sent + 1);
    frame = &bed->w->sent[sent % SENT_MAX];
    assert_int_equal(frame->len, ETH_LEN + ARP_LEN);
    step_time(bed, ADDRESS_DEFEND_US + SECOND);
    second = fallback_address(bed);
    assert_true(ip_addr_equal(&first, &second));
    claim_address(bed, &first); /* after a long time it is defended again */
    step_time(bed, SECOND);
    second = fallback_address(bed);
    assert_true(ip_addr_equal(&first, &second));
    claim_address(bed, &first);
    step_time(bed, 0);
    second = fallback_address(bed);
    assert_false(ip_addr_equal(&first, &second));
    bed_free(bed);
}

static void test_many_conflicts_slow_down_the_search(void **state)
{
    struct bed *bed = bed_in(DHCP_SELECTING, true);

    (void)state;
    while (bed->port->fallback.local < 0) {
        step_time(bed, SECOND / 10);
    }
    for (unsigned i = 0; i < IPV4LL_MAX_CONFLICTS; i++) {
        struct ip_addr ip = fallback_address(bed);

        claim_address(bed, &ip);
        step_time(bed, 0);
    }
    assert_int_equal(bed->port->fallback.local, -1);
    step_time(bed, IPV4LL_WAIT_US - SECOND);
    assert_int_equal(bed->port->fallback.local, -1);
    step_time(bed, SECOND);
    assert_true(bed->port->fallback.local >= 0);
    bed_free(bed);
}

static void test_arp_about_link_local_addresses_is_broadcast(void **state)
{
    struct bed *bed = bed_fallen_back();
    struct ip_addr ip = fallback_address(bed);
    struct ip_addr asker = ip_addr_from_v4(0xa9fe0505);
    unsigned sent = bed->w->sent_count;
    uint8_t frame[64];
    struct eth eth;

    (void)state;
    assert_true(
        world_input(bed->w, 0, frame,
                    make_arp(frame, ARP_REQUEST, &other_mac, &asker, &ip)));
    assert_int_equal(bed->w->sent_count, sent + 1);
    assert_true(eth_parse(&eth, bed->w->sent[sent % SENT_MAX].data,
                          bed->w->sent[sent % SENT_MAX].len));
    assert_int_equal(eth.type, ETHERTYPE_ARP);
    assert_true(mac_addr_equal(&eth.dst, &to_all));
    bed_free(bed);
}
