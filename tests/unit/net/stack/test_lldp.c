/* SPDX-License-Identifier: BSD-2-Clause */
/* The LLDP agent: its frames and their times, and its table of neighbours. */
#include "tests/unit/net/stack/net_test.h"

#include "net/stack/lldp.h"

struct bed {
    struct world *w;
    struct lldp_agent agent;
    unsigned events[3];
    uint8_t port;
    char name[64];
};

static const struct mac_addr group = {{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}};

static void on_neighbour(void *ctx, uint8_t port, enum lldp_event event,
                         const struct lldp *lldp)
{
    struct bed *bed = ctx;

    bed->events[event]++;
    bed->port = port;
    memcpy(bed->name, lldp->system_name.bytes, lldp->system_name.len_bytes);
    bed->name[lldp->system_name.len_bytes] = '\0';
}

static struct bed *bed_new(uint16_t interval_s, uint8_t hold)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct lldp_config config = {
        .ports = {{true, true}, {false, true}},
        .interval_s = interval_s,
        .hold = hold,
        .chassis = {{2, 0, 0, 0, 0, 0x10}},
        .system_name = "essd-1",
        .system_description = "an essd",
        .neighbour = on_neighbour,
    };

    assert_non_null(bed);
    bed->w = world_ready();
    config.stack = &bed->w->stack;
    config.ctx = bed;
    assert_true(lldp_init(&bed->agent, &config));
    return bed;
}

static void bed_free(struct bed *bed)
{
    world_free(bed->w);
    free(bed);
}

static void run_for(struct bed *bed, uint64_t seconds)
{
    uint64_t until_us = bed->w->now_us + seconds * SECOND;
    uint64_t next_us = bed->w->now_us;

    while (next_us <= until_us) {
        bed->w->now_us = next_us;
        next_us = lldp_timer(&bed->agent, next_us);
        assert_true(next_us > bed->w->now_us);
    }
    bed->w->now_us = until_us;
}

static struct lldp last_sent(const struct bed *bed)
{
    const struct sent *frame =
        &bed->w->sent[(bed->w->sent_count - 1) % SENT_MAX];
    struct lldp lldp;
    struct eth eth;

    assert_true(eth_parse(&eth, frame->data, frame->len));
    assert_true(mac_addr_equal(&eth.dst, &group));
    assert_int_equal(eth.type, ETHERTYPE_LLDP);
    assert_false(eth.tagged);
    assert_true(lldp_parse(&lldp, frame->data + ETH_LEN, frame->len - ETH_LEN));
    assert_int_equal(lldp.len_bytes, frame->len - ETH_LEN);
    return lldp;
}

/* A frame of a neighbour, on port 0 by default. */
struct said {
    const char *name;
    uint16_t ttl_s;
    uint16_t vlan;
    uint8_t port;
    uint8_t port_id;
    const struct mac_addr *dst;
};

static void hear_frame(struct bed *bed, struct said said)
{
    uint8_t frame[256] = {0};
    const struct eth eth = {
        .dst = said.dst != NULL ? *said.dst : group,
        .src = host_mac,
        .type = ETHERTYPE_LLDP,
        .tagged = said.vlan != 0,
        .vlan = said.vlan,
    };
    const struct lldp lldp = {
        .chassis = {{host_mac.bytes, 6}, LLDP_CHASSIS_MAC},
        .port = {{&said.port_id, 1}, LLDP_PORT_IFNAME},
        .ttl_s = said.ttl_s,
        .system_name = {(const uint8_t *)said.name,
                        (uint16_t)strlen(said.name)},
    };

    eth_emit(&eth, frame);
    assert_int_not_equal(lldp_emit(&lldp, frame + eth_header_len(&eth), 200),
                         0);
    assert_true(world_input(bed->w, said.port, frame, sizeof(frame)));
}

static unsigned count_neighbours(const struct bed *bed, uint8_t port)
{
    unsigned count = 0;

    for (size_t i = 0; i < LLDP_NEIGHBOURS; i++) {
        struct lldp lldp;
        uint32_t left_s;

        count += lldp_neighbour_read(&bed->agent, port, i, bed->w->now_us,
                                     &lldp, &left_s);
    }
    return count;
}

static uint64_t read_counter(const struct bed *bed, enum lldp_counter which)
{
    return lldp_counter_read(&bed->agent, 0, which);
}

static void test_lldp_group_passes_the_filters(void **state)
{
    struct bed *bed = bed_new(0, 0);
    struct mac_addr macs[NET_MULTICAST];
    size_t count = net_stack_multicast(&bed->w->stack, 1, macs);
    bool is_there = false;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        is_there = is_there || mac_addr_equal(&macs[i], &group);
    }
    assert_true(is_there);
    bed_free(bed);
}

static void test_lldp_announces_the_drive(void **state)
{
    struct bed *bed = bed_new(0, 0);
    struct lldp lldp;

    (void)state;
    lldp_link(&bed->agent, 0, true, 10000, bed->w->now_us);
    run_for(bed, 0);
    lldp = last_sent(bed);
    assert_int_equal(lldp.chassis.subtype, LLDP_CHASSIS_MAC);
    assert_int_equal(lldp.chassis.value.bytes[5], 0x10);
    assert_int_equal(lldp.port.subtype, LLDP_PORT_IFNAME);
    assert_memory_equal(lldp.port.value.bytes, "port0", 5);
    assert_int_equal(lldp.ttl_s, 121);
    assert_memory_equal(lldp.system_name.bytes, "essd-1", 6);
    assert_memory_equal(lldp.system_description.bytes, "an essd", 7);
    assert_non_null(lldp.port_description.bytes);
    assert_int_equal(lldp.capabilities_enabled, LLDP_CAN_STATION);
    /* Addresses of both ports; there is no room for the link-local ones. */
    assert_int_equal(lldp.management_count, 4);
    assert_int_equal(ip_addr_to_v4(&lldp.management[0].ip), 0x0a000002);
    assert_int_equal(lldp.management[0].interface, 1);
    assert_int_equal(lldp.management[1].ip.bytes[0], 0x20);
    assert_int_equal(ip_addr_to_v4(&lldp.management[3].ip), 0x0a010002);
    assert_int_equal(lldp.management[3].interface, 2);
    assert_int_equal(lldp.pvid, 1);
    assert_int_equal(lldp.vlan_count, 1);
    assert_int_equal(lldp.vlans[0].vlan, 9);
    assert_memory_equal(lldp.vlans[0].name.bytes, "vlan9", 5);
    assert_int_equal(lldp.mau_type, LLDP_MAU_10GBASE_R);
    assert_int_equal(lldp.max_frame, 9022);
    bed_free(bed);
}

static void test_lldp_sends_every_interval_while_the_link_is_up(void **state)
{
    struct bed *bed = bed_new(5, 2);
    unsigned start = bed->w->sent_count;

    (void)state;
    run_for(bed, 100);
    assert_int_equal(bed->w->sent_count, start);
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    /* Port 1 is configured not to send. */
    lldp_link(&bed->agent, 1, true, 25000, bed->w->now_us);
    run_for(bed, 14);
    assert_int_equal(bed->w->sent_count, start + 3);
    assert_int_equal(last_sent(bed).ttl_s, 11);
    assert_int_equal(last_sent(bed).mau_type, LLDP_MAU_25GBASE_R);
    lldp_link(&bed->agent, 0, false, 0, bed->w->now_us);
    run_for(bed, 100);
    assert_int_equal(bed->w->sent_count, start + 3);
    assert_int_equal(read_counter(bed, LLDP_FRAMES_OUT), 3);
    bed_free(bed);
}

static void test_lldp_waits_for_a_transmit_buffer(void **state)
{
    struct bed *bed = bed_new(5, 2);
    unsigned start = bed->w->sent_count;

    (void)state;
    bed->w->no_room = true;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    run_for(bed, 1);
    bed->w->no_room = false;
    run_for(bed, 1);
    assert_int_equal(bed->w->sent_count, start + 1);
    bed_free(bed);
}

static void test_lldp_sends_fast_for_a_new_neighbour(void **state)
{
    struct bed *bed = bed_new(30, 4);
    unsigned start;

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    run_for(bed, 10);
    start = bed->w->sent_count;
    hear_frame(bed, (struct said){"switch", 120, .port_id = 1});
    assert_int_equal(bed->w->sent_count, start); /* input() must not send */
    run_for(bed, 4);
    assert_int_equal(bed->w->sent_count, start + 4);
    hear_frame(bed, (struct said){"switch", 120, .port_id = 1});
    run_for(bed, 20);
    assert_int_equal(bed->w->sent_count, start + 4);
    run_for(bed, 10);
    assert_int_equal(bed->w->sent_count, start + 5);
    bed_free(bed);
}

/* It sends five frames at once, and then one a second. */
static void test_lldp_limits_its_rate_when_much_changes(void **state)
{
    struct bed *bed = bed_new(3600, 1);
    unsigned start;

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    run_for(bed, 10);
    start = bed->w->sent_count;
    for (unsigned i = 0; i < 1000; i++) {
        lldp_changed(&bed->agent, bed->w->now_us);
        run_for(bed, 0);
    }
    assert_int_equal(bed->w->sent_count, start + 5);
    for (unsigned i = 0; i < 3; i++) {
        lldp_changed(&bed->agent, bed->w->now_us);
        run_for(bed, 1);
    }
    assert_in_range(bed->w->sent_count, start + 7, start + 8);
    bed_free(bed);
}

static void test_lldp_sends_one_ttl_0_when_stopped(void **state)
{
    struct bed *bed = bed_new(5, 2);
    unsigned start;

    (void)state;
    lldp_stop(&bed->agent, 0); /* the link is down, so nothing is sent */
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    run_for(bed, 1);
    start = bed->w->sent_count;
    lldp_stop(&bed->agent, 0);
    lldp_stop(&bed->agent, 0);
    run_for(bed, 60);
    assert_int_equal(bed->w->sent_count, start + 1);
    assert_int_equal(last_sent(bed).ttl_s, 0);
    assert_null(last_sent(bed).system_name.bytes);
    lldp_link(&bed->agent, 0, false, 0, bed->w->now_us);
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    run_for(bed, 0);
    assert_int_equal(last_sent(bed).ttl_s, 11);
    bed_free(bed);
}

static void test_lldp_can_be_reconfigured_while_it_runs(void **state)
{
    static const struct lldp_port_config one[] = {{true, true}, {false, true}};
    static const struct lldp_port_config other[] = {{false, false},
                                                    {true, true}};
    struct bed *bed = bed_new(5, 2);
    unsigned start;

    (void)state;
    lldp_set(&bed->agent, one, 5, 2, bed->w->now_us); /* both links are down */
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    lldp_link(&bed->agent, 1, true, 25000, bed->w->now_us);
    hear_frame(bed, (struct said){.name = "a", .ttl_s = 120});
    run_for(bed, 6);

    /* The same settings send nothing; a changed TTL is announced at once. */
    start = bed->w->sent_count;
    lldp_set(&bed->agent, one, 5, 2, bed->w->now_us);
    run_for(bed, 0);
    assert_int_equal(bed->w->sent_count, start);
    lldp_set(&bed->agent, one, 20, 3, bed->w->now_us);
    run_for(bed, 0);
    assert_int_equal(bed->w->sent_count, start + 1);
    assert_int_equal(last_sent(bed).ttl_s, 61);

    /* Port 0 sends TTL 0 and removes its neighbours; port 1 begins. */
    start = bed->w->sent_count;
    assert_int_equal(count_neighbours(bed, 0), 1);
    lldp_set(&bed->agent, other, 0, 0, bed->w->now_us);
    assert_int_equal(bed->w->sent_count, start + 1);
    assert_int_equal(last_sent(bed).ttl_s, 0);
    assert_int_equal(count_neighbours(bed, 0), 0);
    assert_int_equal(bed->events[LLDP_GONE], 1);
    run_for(bed, 59);
    assert_int_equal(bed->w->sent_count, start + 3);
    assert_int_equal(last_sent(bed).ttl_s, 121);
    hear_frame(bed, (struct said){.name = "a", .ttl_s = 120});
    assert_int_equal(count_neighbours(bed, 0), 0);
    bed_free(bed);
}

static void test_lldp_adds_updates_and_removes_neighbours(void **state)
{
    struct bed *bed = bed_new(30, 4);

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    hear_frame(bed, (struct said){"switch", 10, .port_id = 1});
    assert_int_equal(bed->events[LLDP_NEW], 1);
    assert_string_equal(bed->name, "switch");
    run_for(bed, 9);
    hear_frame(bed, (struct said){"switch", 10, .port_id = 1});
    assert_int_equal(bed->events[LLDP_CHANGED], 0);
    hear_frame(bed, (struct said){"other", 10, .port_id = 1});
    assert_int_equal(bed->events[LLDP_CHANGED], 1);
    assert_int_equal(count_neighbours(bed, 0), 1);
    run_for(bed, 9);
    assert_int_equal(count_neighbours(bed, 0), 1);
    run_for(bed, 1);
    assert_int_equal(count_neighbours(bed, 0), 0);
    assert_int_equal(bed->events[LLDP_GONE], 1);
    assert_string_equal(bed->name, "other");
    assert_int_equal(read_counter(bed, LLDP_AGEOUTS), 1);
    bed_free(bed);
}

static void test_lldp_removes_a_neighbour_that_sends_ttl_0(void **state)
{
    struct bed *bed = bed_new(30, 4);

    (void)state;
    lldp_link(&bed->agent, 1, true, 25000, bed->w->now_us);
    hear_frame(bed, (struct said){"switch", 0, .port = 1});
    hear_frame(bed, (struct said){"switch", 10, .port = 1});
    assert_int_equal(count_neighbours(bed, 1), 1);
    assert_int_equal(count_neighbours(bed, 0), 0);
    hear_frame(bed, (struct said){"", 0, .port = 1});
    assert_int_equal(count_neighbours(bed, 1), 0);
    assert_int_equal(bed->events[LLDP_GONE], 1);
    assert_int_equal(bed->port, 1);
    bed_free(bed);
}

/* An expired neighbour is not reported, even before the timer removes it. */
static void test_lldp_reports_no_expired_neighbour(void **state)
{
    struct bed *bed = bed_new(30, 4);

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    hear_frame(bed, (struct said){.name = "switch", .ttl_s = 10});
    bed->w->now_us += 10 * (uint64_t)SECOND - 1;
    assert_int_equal(count_neighbours(bed, 0), 1);
    bed->w->now_us++;
    assert_int_equal(count_neighbours(bed, 0), 0);
    bed_free(bed);
}

static void test_lldp_removes_neighbours_when_the_link_goes_down(void **state)
{
    struct bed *bed = bed_new(30, 4);

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    lldp_link(&bed->agent, 1, true, 25000, bed->w->now_us);
    hear_frame(bed, (struct said){"switch", 10, .port_id = 1});
    hear_frame(bed, (struct said){"phone", 10, .port_id = 2});
    hear_frame(bed, (struct said){"switch", 10, .port = 1});
    lldp_link(&bed->agent, 0, false, 0, bed->w->now_us);
    assert_int_equal(count_neighbours(bed, 0), 0);
    assert_int_equal(count_neighbours(bed, 1), 1);
    assert_int_equal(bed->events[LLDP_GONE], 2);
    assert_int_equal(lldp_counter_read(&bed->agent, 0, LLDP_AGEOUTS), 0);
    bed_free(bed);
}

static void test_lldp_keeps_a_limited_number_of_neighbours(void **state)
{
    struct bed *bed = bed_new(30, 4);

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    for (uint8_t i = 0; i < LLDP_NEIGHBOURS + 1; i++) {
        hear_frame(bed, (struct said){"switch", 10, .port_id = i});
    }
    assert_int_equal(count_neighbours(bed, 0), LLDP_NEIGHBOURS);
    assert_int_equal(read_counter(bed, LLDP_TOO_MANY_NEIGHBOURS), 1);
    assert_int_equal(read_counter(bed, LLDP_FRAMES_DISCARDED), 1);
    assert_int_equal(read_counter(bed, LLDP_FRAMES_IN), LLDP_NEIGHBOURS + 1);
    bed_free(bed);
}

static void test_lldp_ignores_invalid_frames(void **state)
{
    static const struct mac_addr us = {{2, 0, 0, 0, 0, 0x10}};
    uint8_t broken[60] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e, 0x52, 0x54,
                          0x00, 0x12, 0x34, 0x56, 0x88, 0xcc, 0x04};
    struct bed *bed = bed_new(30, 4);

    (void)state;
    /* The link is down. */
    hear_frame(bed, (struct said){"switch", 10, .port_id = 1});
    assert_int_equal(read_counter(bed, LLDP_FRAMES_IN), 0);
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    hear_frame(bed, (struct said){"switch", 10, .vlan = 9});
    hear_frame(bed, (struct said){"switch", 10, .dst = &us});
    assert_true(world_input(bed->w, 0, broken, sizeof(broken)));
    assert_int_equal(read_counter(bed, LLDP_FRAMES_IN_ERRORS), 3);
    assert_int_equal(count_neighbours(bed, 0), 0);
    bed_free(bed);
}

/* Every event in every state: which frames may be sent and received after
 * it. */
static void test_lldp_every_state_and_event(void **state)
{
    static const struct {
        enum lldp_state after_up, after_down, after_stop;
    } expected[LLDP_STATES] = {
        [LLDP_DOWN] = {LLDP_UP, LLDP_DOWN, LLDP_DOWN},
        [LLDP_UP] = {LLDP_UP, LLDP_DOWN, LLDP_STOPPED},
        [LLDP_STOPPED] = {LLDP_UP, LLDP_DOWN, LLDP_STOPPED},
    };

    (void)state;
    for (unsigned from = 0; from < LLDP_STATES; from++) {
        for (unsigned event = 0; event < 3; event++) {
            struct bed *bed = bed_new(30, 4);
            unsigned state_now;

            if (from != LLDP_DOWN) {
                lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
            }
            if (from == LLDP_STOPPED) {
                lldp_stop(&bed->agent, 0);
            }
            if (event == 2) {
                lldp_stop(&bed->agent, 0);
            } else {
                lldp_link(&bed->agent, 0, event == 0, 25000, bed->w->now_us);
            }
            state_now = bed->agent.ports[0].state;
            assert_int_equal(state_now, event == 0 ? expected[from].after_up
                                        : event == 1
                                            ? expected[from].after_down
                                            : expected[from].after_stop);
            bed_free(bed);
        }
    }
}
