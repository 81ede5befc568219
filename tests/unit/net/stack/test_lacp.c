/* SPDX-License-Identifier: BSD-2-Clause */
/* LACP: two ends that form an aggregation, and ends that do not. */
#include "tests/unit/net/stack/net_test.h"

#include "net/stack/lacp.h"

/* One end: two ports, each cabled to the same port of the other end. */
struct end {
    struct world *w;
    struct lacp_agent agent;
    unsigned taken; /* how many of its frames were delivered */
    unsigned frames[NET_PORTS];
};

struct bed {
    struct end ends[2];
    bool is_cut[NET_PORTS]; /* loses frames while the link stays up */
    uint64_t now_us;
};

static const struct mac_addr peer_mac = {{2, 0, 0, 0, 1, 0x10}};

static void end_init(struct end *end, uint8_t number, bool is_fast)
{
    struct lacp_config config = {
        .system = {{2, 0, 0, 0, number, 0x10}},
        .system_priority = 65535,
        .key = 7,
        .is_fast = is_fast,
    };

    end->w = world_new();
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        end->w->stack.config.ports[i].mac.bytes[4] = number;
    }
    config.stack = &end->w->stack;
    assert_true(lacp_init(&end->agent, &config));
}

static struct bed *bed_new(bool first_is_fast, bool second_is_fast)
{
    struct bed *bed = calloc(1, sizeof(*bed));

    assert_non_null(bed);
    bed->now_us = SECOND;
    end_init(&bed->ends[0], 0, first_is_fast);
    end_init(&bed->ends[1], 1, second_is_fast);
    return bed;
}

static void bed_free(struct bed *bed)
{
    world_free(bed->ends[0].w);
    world_free(bed->ends[1].w);
    free(bed);
}

static void set_link(struct bed *bed, uint8_t port, bool is_up)
{
    for (unsigned i = 0; i < 2; i++) {
        lacp_link(&bed->ends[i].agent, port, is_up, bed->now_us);
    }
}

static void deliver_sent(struct bed *bed, unsigned from)
{
    struct end *end = &bed->ends[from];

    for (; end->taken != end->w->sent_count; end->taken++) {
        const struct sent *frame = &end->w->sent[end->taken % SENT_MAX];
        struct end *to = &bed->ends[1 - from];

        end->frames[frame->port]++;
        if (!bed->is_cut[frame->port]) {
            assert_true(net_stack_input(&to->w->stack, frame->port, frame->data,
                                        frame->len, bed->now_us));
        }
    }
}

static void run_for(struct bed *bed, uint64_t milliseconds)
{
    uint64_t until_us = bed->now_us + milliseconds * 1000;

    for (;;) {
        uint64_t next_us = UINT64_MAX;

        for (unsigned i = 0; i < 2; i++) {
            uint64_t due_us = lacp_timer(&bed->ends[i].agent, bed->now_us);

            assert_true(due_us > bed->now_us);
            next_us = MIN(next_us, due_us);
        }
        if (bed->ends[0].taken == bed->ends[0].w->sent_count &&
            bed->ends[1].taken == bed->ends[1].w->sent_count) {
            if (next_us > until_us) {
                break;
            }
            bed->now_us = next_us;
        }
        deliver_sent(bed, 0);
        deliver_sent(bed, 1);
    }
    bed->now_us = until_us;
}

static const struct lacp_port *port_of(const struct bed *bed, uint8_t port)
{
    return &bed->ends[0].agent.ports[port];
}

static bool is_in_use(const struct bed *bed, uint8_t port)
{
    bool is_working = lacp_is_working(&bed->ends[0].agent, port);

    assert_int_equal(is_working, lacp_is_working(&bed->ends[1].agent, port));
    return is_working;
}

static struct bed *bed_working(bool is_fast)
{
    struct bed *bed = bed_new(is_fast, is_fast);

    set_link(bed, 0, true);
    set_link(bed, 1, true);
    run_for(bed, 4000);
    assert_true(is_in_use(bed, 0));
    assert_true(is_in_use(bed, 1));
    return bed;
}

/* Receive a LACPDU with these fields from the other end. */
static void hear_pdu(struct bed *bed, uint8_t port, const struct lacp *lacp)
{
    uint8_t frame[ETH_LEN + SLOW_LEN];
    const struct eth eth = {
        .dst = slow_group, .src = peer_mac, .type = ETHERTYPE_SLOW};

    eth_emit(&eth, frame);
    lacp_emit(lacp, frame + ETH_LEN);
    assert_true(net_stack_input(&bed->ends[0].w->stack, port, frame,
                                sizeof(frame), bed->now_us));
}

static struct lacp pdu_from(const struct bed *bed, uint8_t port)
{
    return (struct lacp){
        .actor = lacp_actor(&bed->ends[1].agent, port),
        .partner = lacp_actor(&bed->ends[0].agent, port),
    };
}

/* Clause 5.4.15: both ends wait for further ports, then both pass frames. */
static void test_lacp_two_ends_form_an_aggregation(void **state)
{
    struct bed *bed = bed_new(true, true);

    (void)state;
    set_link(bed, 0, true);
    set_link(bed, 1, true);
    run_for(bed, 1500);
    assert_int_equal(port_of(bed, 0)->rx, LACP_RX_CURRENT);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_WAITING);
    run_for(bed, 1500);
    for (uint8_t i = 0; i < NET_PORTS; i++) {
        struct lacp_info actor = lacp_actor(&bed->ends[0].agent, i);

        assert_true(is_in_use(bed, i));
        assert_int_equal(actor.state, LACP_ACTIVITY | LACP_TIMEOUT |
                                          LACP_AGGREGATION |
                                          LACP_SYNCHRONIZATION |
                                          LACP_COLLECTING | LACP_DISTRIBUTING);
        assert_true(
            mac_addr_equal(&port_of(bed, i)->partner.system, &peer_mac));
    }
    bed_free(bed);
}

static void test_lacp_sends_each_second_if_the_partner_asks(void **state)
{
    struct bed *bed = bed_working(true);
    unsigned before = bed->ends[0].frames[0];

    (void)state;
    run_for(bed, 60000);
    assert_in_range(bed->ends[0].frames[0] - before, 59, 61);
    bed_free(bed);
}

/* Each end sends at the rate that the other one asks for. */
static void test_lacp_sends_twice_a_minute_to_a_slow_end(void **state)
{
    struct bed *bed = bed_new(true, false);
    unsigned before[2];

    (void)state;
    set_link(bed, 0, true);
    set_link(bed, 1, true);
    run_for(bed, 10000);
    assert_true(is_in_use(bed, 0) && is_in_use(bed, 1));
    before[0] = bed->ends[0].frames[0];
    before[1] = bed->ends[1].frames[0];
    run_for(bed, 300000);
    assert_true(is_in_use(bed, 0) && is_in_use(bed, 1));
    assert_in_range(bed->ends[0].frames[0] - before[0], 9, 11);
    assert_in_range(bed->ends[1].frames[0] - before[1], 299, 301);
    bed_free(bed);
}

/* A changed rate is told to the partner at once, and the link stays in use. */
static void test_lacp_rate_changes_while_the_ports_work(void **state)
{
    struct bed *bed = bed_working(true);
    unsigned before;

    (void)state;
    lacp_set_fast(&bed->ends[0].agent, false);
    run_for(bed, 1000);
    before = bed->ends[1].frames[0];
    run_for(bed, 300000);
    assert_true(is_in_use(bed, 0) && is_in_use(bed, 1));
    assert_in_range(bed->ends[1].frames[0] - before, 9, 11);
    lacp_set_fast(&bed->ends[0].agent, true);
    run_for(bed, 1000);
    before = bed->ends[1].frames[0];
    run_for(bed, 60000);
    assert_true(is_in_use(bed, 0) && is_in_use(bed, 1));
    assert_in_range(bed->ends[1].frames[0] - before, 59, 61);
    bed_free(bed);
}

/* A partner like Linux's bond sends nothing for 30 s once it is told the slow
 * rate, which is no reason to take the port out of use. */
static void test_lacp_ports_stay_in_use_when_the_partner_becomes_slow(
    void **state)
{
    struct bed *bed = bed_working(true);

    (void)state;
    lacp_set_fast(&bed->ends[0].agent, false);
    bed->is_cut[0] = true;
    run_for(bed, 31000);
    assert_int_equal(port_of(bed, 0)->rx, LACP_RX_CURRENT);
    assert_true(lacp_is_working(&bed->ends[0].agent, 0));
    /* A partner that has gone is still noticed. */
    run_for(bed, 61000);
    assert_false(lacp_is_working(&bed->ends[0].agent, 0));
    bed_free(bed);
}

static void test_lacp_port_without_link_is_detached_at_once(void **state)
{
    struct bed *bed = bed_working(true);

    (void)state;
    set_link(bed, 0, false);
    assert_false(is_in_use(bed, 0));
    assert_true(is_in_use(bed, 1));
    run_for(bed, 10000);
    assert_true(is_in_use(bed, 1));
    set_link(bed, 0, true);
    run_for(bed, 4000);
    assert_true(is_in_use(bed, 0) && is_in_use(bed, 1));
    bed_free(bed);
}

/* Clause 5.4.12: it expires after three seconds, and defaults after three
 * more. */
static void test_lacp_silent_port_is_detached_after_the_short_timeout(
    void **state)
{
    struct bed *bed = bed_working(true);

    (void)state;
    bed->is_cut[0] = true;
    run_for(bed, 1900);
    assert_true(is_in_use(bed, 0));
    run_for(bed, 1200);
    assert_false(is_in_use(bed, 0));
    assert_true(is_in_use(bed, 1));
    assert_int_equal(port_of(bed, 0)->rx, LACP_RX_EXPIRED);
    run_for(bed, 3000);
    assert_int_equal(port_of(bed, 0)->rx, LACP_RX_DEFAULTED);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_DETACHED);
    bed->is_cut[0] = false;
    run_for(bed, 40000); /* a defaulted end sends slowly */
    assert_true(is_in_use(bed, 0) && is_in_use(bed, 1));
    bed_free(bed);
}

static void test_lacp_silent_port_is_detached_after_the_long_timeout(
    void **state)
{
    struct bed *bed = bed_working(false);

    (void)state;
    bed->is_cut[0] = true;
    run_for(bed, 59000);
    assert_true(is_in_use(bed, 0));
    run_for(bed, 32000);
    assert_false(is_in_use(bed, 0));
    assert_true(is_in_use(bed, 1));
    bed_free(bed);
}

/* A host that has not set up its aggregation yet can still reach the drive. */
static void test_lacp_one_port_is_used_when_no_partner_speaks_lacp(void **state)
{
    struct bed *bed = bed_new(true, true);

    (void)state;
    bed->is_cut[0] = bed->is_cut[1] = true;
    set_link(bed, 0, true);
    set_link(bed, 1, true);
    run_for(bed, 6000);
    assert_true(is_in_use(bed, 0));
    assert_false(is_in_use(bed, 1));
    set_link(bed, 0, false);
    run_for(bed, 3000);
    assert_true(is_in_use(bed, 1));
    bed->is_cut[0] = bed->is_cut[1] = false;
    set_link(bed, 0, true);
    run_for(bed, 40000);
    assert_true(is_in_use(bed, 0) && is_in_use(bed, 1));
    bed_free(bed);
}

static void test_lacp_ports_of_two_partners_are_not_mixed(void **state)
{
    struct bed *bed = bed_working(true);
    struct lacp lacp = pdu_from(bed, 1);

    (void)state;
    lacp.actor.system.bytes[5] = 0x99;
    bed->is_cut[1] = true;
    hear_pdu(bed, 1, &lacp);
    (void)lacp_timer(&bed->ends[0].agent, bed->now_us);
    assert_int_equal(port_of(bed, 1)->mux, LACP_MUX_DETACHED);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_WORKING);
    /* Another key of the same system means another aggregation. */
    lacp = pdu_from(bed, 1);
    lacp.actor.key++;
    hear_pdu(bed, 1, &lacp);
    run_for(bed, 2500);
    assert_int_equal(port_of(bed, 1)->mux, LACP_MUX_DETACHED);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_WORKING);
    /* So does another system priority, which is a part of the system ID. */
    lacp = pdu_from(bed, 1);
    lacp.actor.system_priority--;
    hear_pdu(bed, 1, &lacp);
    run_for(bed, 2500);
    assert_int_equal(port_of(bed, 1)->mux, LACP_MUX_DETACHED);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_WORKING);
    bed_free(bed);
}

/* Clause 5.4.14: an individual partner is the only one in its aggregation. */
static void test_lacp_individual_partner_is_not_aggregated(void **state)
{
    struct bed *bed = bed_new(true, true);

    (void)state;
    bed->is_cut[0] = bed->is_cut[1] = true;
    set_link(bed, 0, true);
    set_link(bed, 1, true);
    for (unsigned i = 0; i < 5; i++) {
        for (uint8_t port = 0; port < NET_PORTS; port++) {
            struct lacp lacp = pdu_from(bed, port);

            lacp.actor.state = LACP_ACTIVITY | LACP_TIMEOUT |
                               LACP_SYNCHRONIZATION | LACP_COLLECTING;
            hear_pdu(bed, port, &lacp);
        }
        run_for(bed, 1000);
    }
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_WORKING);
    assert_int_equal(port_of(bed, 1)->mux, LACP_MUX_DETACHED);
    bed_free(bed);
}

/* Clause 5.4.14.1: another partner has to be negotiated with first. */
static void test_lacp_partner_with_another_system_id_starts_again(void **state)
{
    struct bed *bed = bed_new(true, true);
    struct lacp lacp;

    (void)state;
    set_link(bed, 0, true);
    run_for(bed, 4000);
    assert_true(is_in_use(bed, 0));
    bed->is_cut[0] = true;
    lacp = pdu_from(bed, 0);
    lacp.actor.system.bytes[5] = 0x99;
    hear_pdu(bed, 0, &lacp);
    (void)lacp_timer(&bed->ends[0].agent, bed->now_us);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_WAITING);
    assert_false(lacp_is_collecting(&bed->ends[0].agent, 0));
    run_for(bed, 2100);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_WORKING);
    bed_free(bed);
}

/* Clause 5.4.14: a new port with a lower number does not replace a working
 * one. */
static void test_lacp_new_port_does_not_replace_a_working_one(void **state)
{
    struct bed *bed = bed_new(true, true);

    (void)state;
    set_link(bed, 1, true);
    run_for(bed, 4000);
    assert_true(is_in_use(bed, 1));
    bed->is_cut[0] = true;
    set_link(bed, 0, true);
    for (unsigned i = 0; i < 5; i++) {
        struct lacp lacp = pdu_from(bed, 0);

        lacp.actor.system.bytes[5] = 0x99;
        lacp.actor.state |= LACP_SYNCHRONIZATION | LACP_COLLECTING;
        hear_pdu(bed, 0, &lacp);
        run_for(bed, 1000);
        assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_DETACHED);
        assert_int_equal(port_of(bed, 1)->mux, LACP_MUX_WORKING);
    }
    bed_free(bed);
}

/* recordPDU: one of the two ends must be active. */
static void test_lacp_passive_partner_of_a_passive_end_is_not_in_sync(
    void **state)
{
    struct bed *bed = bed_working(true);
    struct lacp lacp = pdu_from(bed, 0);

    (void)state;
    lacp.actor.state &= (uint8_t)~LACP_ACTIVITY;
    hear_pdu(bed, 0, &lacp);
    (void)lacp_timer(&bed->ends[0].agent, bed->now_us);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_WORKING);
    lacp.partner.state &= (uint8_t)~LACP_ACTIVITY; /* its view of us */
    hear_pdu(bed, 0, &lacp);
    (void)lacp_timer(&bed->ends[0].agent, bed->now_us);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_ATTACHED);
    bed_free(bed);
}

/* Clause 5.4.13: a partner that asks for one LACPDU a second gets one at
 * once. */
static void test_lacp_partner_that_becomes_fast_gets_a_pdu_at_once(void **state)
{
    struct bed *bed = bed_working(false);
    struct lacp lacp;
    unsigned before;

    (void)state;
    run_for(bed, 1100);
    lacp = pdu_from(bed, 0);
    lacp.actor.state |= LACP_TIMEOUT;
    before = bed->ends[0].frames[0];
    hear_pdu(bed, 0, &lacp);
    run_for(bed, 10);
    assert_int_equal(bed->ends[0].frames[0], before + 1);
    bed_free(bed);
}

/* The partner's information about us must be correct. */
static void test_lacp_partner_that_names_another_actor_is_not_in_sync(
    void **state)
{
    struct bed *bed = bed_working(true);
    struct lacp lacp = pdu_from(bed, 0);

    (void)state;
    lacp.partner.port = 9;
    hear_pdu(bed, 0, &lacp);
    (void)lacp_timer(&bed->ends[0].agent, bed->now_us);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_ATTACHED);
    run_for(bed, 3000);
    assert_true(is_in_use(bed, 0));
    bed_free(bed);
}

/* Clause 5.4.15, independent control: no frames go to a partner that does not
 * collect. */
static void test_lacp_sends_no_frames_to_a_partner_that_does_not_collect(
    void **state)
{
    struct bed *bed = bed_working(true);
    struct lacp lacp = pdu_from(bed, 0);

    (void)state;
    lacp.actor.state &= (uint8_t) ~(LACP_COLLECTING | LACP_DISTRIBUTING);
    hear_pdu(bed, 0, &lacp);
    (void)lacp_timer(&bed->ends[0].agent, bed->now_us);
    assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_COLLECTING);
    assert_true(lacp_is_collecting(&bed->ends[0].agent, 0));
    assert_false(lacp_is_working(&bed->ends[0].agent, 0));
    assert_int_equal(lacp_actor(&bed->ends[0].agent, 0).state &
                         (LACP_COLLECTING | LACP_DISTRIBUTING),
                     LACP_COLLECTING);
    run_for(bed, 3000);
    assert_true(is_in_use(bed, 0));
    bed_free(bed);
}

static void test_lacp_looped_back_frames_form_no_aggregation(void **state)
{
    struct bed *bed = bed_new(true, true);
    struct lacp lacp;

    (void)state;
    bed->is_cut[0] = bed->is_cut[1] = true;
    set_link(bed, 0, true);
    set_link(bed, 1, true);
    lacp = (struct lacp){.actor = lacp_actor(&bed->ends[0].agent, 1),
                         .partner = lacp_actor(&bed->ends[0].agent, 0)};
    lacp.actor.state |= LACP_SYNCHRONIZATION;
    for (unsigned i = 0; i < 5; i++) {
        hear_pdu(bed, 0, &lacp);
        run_for(bed, 1000);
        assert_int_equal(port_of(bed, 0)->mux, LACP_MUX_DETACHED);
    }
    bed_free(bed);
}

/* Clause 5.4.16: at most three LACPDUs a second, whatever the partner sends. */
static void test_lacp_sends_at_most_three_pdus_a_second(void **state)
{
    struct bed *bed = bed_working(true);
    unsigned before = bed->ends[0].frames[0];

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        struct lacp lacp = pdu_from(bed, 0);

        lacp.partner.port = (uint16_t)i; /* a wrong value */
        hear_pdu(bed, 0, &lacp);
        run_for(bed, 100);
    }
    assert_in_range(bed->ends[0].frames[0] - before, 20, 33);
    bed_free(bed);
}

/* update_NTT: the correction is sent at once, not after 30 seconds. */
static void test_lacp_corrects_a_partner_with_wrong_information_at_once(
    void **state)
{
    struct bed *bed = bed_working(false);
    struct lacp lacp = pdu_from(bed, 0);
    unsigned before;

    (void)state;
    run_for(bed, 1100);
    before = bed->ends[0].frames[0];
    hear_pdu(bed, 0, &lacp);
    run_for(bed, 10);
    assert_int_equal(bed->ends[0].frames[0], before);
    lacp.partner.state ^= LACP_TIMEOUT;
    hear_pdu(bed, 0, &lacp);
    run_for(bed, 10);
    assert_int_equal(bed->ends[0].frames[0], before + 1);
    bed_free(bed);
}

/* Clause 5.4.12, EXPIRED: the partner is asked for fast LACPDUs, whatever rate
 * it had before. */
static void test_lacp_expired_partner_is_asked_for_fast_pdus(void **state)
{
    struct bed *bed = bed_working(false);
    unsigned before;

    (void)state;
    bed->is_cut[0] = true;
    bed->now_us = port_of(bed, 0)->current_while_us - 1;
    run_for(bed, 1);
    assert_int_equal(port_of(bed, 0)->rx, LACP_RX_EXPIRED);
    before = bed->ends[0].frames[0];
    run_for(bed, 2500);
    assert_in_range(bed->ends[0].frames[0] - before, 2, 4);
    bed_free(bed);
}

static void test_lacp_waits_for_a_transmit_buffer(void **state)
{
    struct bed *bed = bed_working(true);
    uint64_t due_us;
    unsigned before;

    (void)state;
    bed->now_us = port_of(bed, 0)->periodic_us;
    before = bed->ends[0].w->sent_count;
    bed->ends[0].w->no_room = true;
    due_us = lacp_timer(&bed->ends[0].agent, bed->now_us);
    assert_in_range(due_us, bed->now_us + 1, bed->now_us + 10000);
    assert_int_equal(bed->ends[0].w->sent_count, before);
    bed->ends[0].w->no_room = false;
    (void)lacp_timer(&bed->ends[0].agent, due_us);
    assert_true(bed->ends[0].w->sent_count > before);
    bed_free(bed);
}

static void test_lacp_answers_at_most_five_markers_a_second(void **state)
{
    struct bed *bed = bed_working(true);
    const struct marker asked = {
        .port = 2, .system = peer_mac, .transaction = 4711};
    const struct eth eth = {
        .dst = slow_group, .src = peer_mac, .type = ETHERTYPE_SLOW};
    uint8_t frame[ETH_LEN + SLOW_LEN];
    unsigned answers = 0;

    (void)state;
    eth_emit(&eth, frame);
    marker_emit(&asked, frame + ETH_LEN);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(net_stack_input(&bed->ends[0].w->stack, 1, frame,
                                    sizeof(frame), bed->now_us));
        (void)lacp_timer(&bed->ends[0].agent, bed->now_us);
    }
    for (unsigned i = bed->ends[0].taken; i < bed->ends[0].w->sent_count; i++) {
        const struct sent *sent = &bed->ends[0].w->sent[i % SENT_MAX];
        struct marker answer;

        if (marker_parse(&answer, sent->data + ETH_LEN, sent->len - ETH_LEN)) {
            assert_int_equal(sent->port, 1);
            assert_true(answer.is_response);
            assert_int_equal(answer.port, asked.port);
            assert_int_equal(answer.transaction, asked.transaction);
            assert_true(mac_addr_equal(&answer.system, &asked.system));
            answers++;
        }
    }
    assert_int_equal(answers, 5);
    assert_int_equal(port_of(bed, 1)->counters[LACP_MARKERS_RX], 20);
    assert_int_equal(port_of(bed, 1)->counters[LACP_MARKER_RESPONSES_TX], 5);
    run_for(bed, 1100); /* the last answer had to wait */
    assert_int_equal(port_of(bed, 1)->counters[LACP_MARKER_RESPONSES_TX], 6);
    bed_free(bed);
}

static void test_lacp_counts_malformed_frames(void **state)
{
    struct bed *bed = bed_working(true);
    const struct lacp lacp = pdu_from(bed, 0);
    struct eth eth = {
        .dst = slow_group, .src = peer_mac, .type = ETHERTYPE_SLOW};
    uint8_t frame[ETH_TAGGED_LEN + SLOW_LEN];
    struct net_stack *stack = &bed->ends[0].w->stack;
    const uint64_t *counters = port_of(bed, 0)->counters;
    uint64_t good = counters[LACP_PDUS_RX];

    (void)state;
    eth_emit(&eth, frame);
    lacp_emit(&lacp, frame + ETH_LEN);
    assert_true(
        net_stack_input(stack, 0, frame, ETH_LEN + SLOW_LEN - 1, bed->now_us));
    assert_int_equal(counters[LACP_ILLEGAL_RX], 1);
    frame[ETH_LEN + LACP_ACTOR + 1] = 19;
    assert_true(
        net_stack_input(stack, 0, frame, ETH_LEN + SLOW_LEN, bed->now_us));
    assert_int_equal(counters[LACP_ILLEGAL_RX], 2);
    frame[ETH_LEN] = 3; /* OAM */
    assert_true(
        net_stack_input(stack, 0, frame, ETH_LEN + SLOW_LEN, bed->now_us));
    assert_int_equal(counters[LACP_UNKNOWN_RX], 1);
    eth.dst = bed->ends[0].w->stack.config.ports[0].mac;
    eth_emit(&eth, frame);
    lacp_emit(&lacp, frame + ETH_LEN);
    assert_true(
        net_stack_input(stack, 0, frame, ETH_LEN + SLOW_LEN, bed->now_us));
    assert_int_equal(counters[LACP_ILLEGAL_RX], 3);
    eth = (struct eth){.dst = slow_group,
                       .src = peer_mac,
                       .type = ETHERTYPE_SLOW,
                       .tagged = true,
                       .vlan = 5};
    eth_emit(&eth, frame);
    lacp_emit(&lacp, frame + ETH_TAGGED_LEN);
    assert_true(net_stack_input(stack, 0, frame, sizeof(frame), bed->now_us));
    assert_int_equal(counters[LACP_ILLEGAL_RX], 4);
    assert_int_equal(counters[LACP_PDUS_RX], good);
    bed_free(bed);
}
