/* SPDX-License-Identifier: BSD-2-Clause */
/* The LLDP agent: when it sends what, whom it remembers and for how long. */
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

static void run(struct bed *bed, uint64_t seconds)
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

static struct lldp sent(const struct bed *bed)
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

/* A neighbour's frame, on port 0 unless told. */
struct said {
    const char *name;
    uint16_t ttl_s;
    uint16_t vlan;
    uint8_t port;
    uint8_t port_id;
    const struct mac_addr *dst;
};

static void hear(struct bed *bed, struct said said)
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

static unsigned neighbours(const struct bed *bed, uint8_t port)
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

static uint64_t counter(const struct bed *bed, enum lldp_counter which)
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

static void test_lldp_says_who_we_are(void **state)
{
    struct bed *bed = bed_new(0, 0);
    struct lldp lldp;

    (void)state;
    lldp_link(&bed->agent, 0, true, 10000, bed->w->now_us);
    run(bed, 0);
    lldp = sent(bed);
    assert_int_equal(lldp.chassis.subtype, LLDP_CHASSIS_MAC);
    assert_int_equal(lldp.chassis.value.bytes[5], 0x10);
    assert_int_equal(lldp.port.subtype, LLDP_PORT_IFNAME);
    assert_memory_equal(lldp.port.value.bytes, "port0", 5);
    assert_int_equal(lldp.ttl_s, 121);
    assert_memory_equal(lldp.system_name.bytes, "essd-1", 6);
    assert_memory_equal(lldp.system_description.bytes, "an essd", 7);
    assert_non_null(lldp.port_description.bytes);
    assert_int_equal(lldp.capabilities_enabled, LLDP_CAN_STATION);
    /* Those of both ports; there is no room for the link-local ones. */
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
    run(bed, 100);
    assert_int_equal(bed->w->sent_count, start);
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    lldp_link(&bed->agent, 1, true, 25000, bed->w->now_us); /* does not send */
    run(bed, 14);
    assert_int_equal(bed->w->sent_count, start + 3);
    assert_int_equal(sent(bed).ttl_s, 11);
    assert_int_equal(sent(bed).mau_type, LLDP_MAU_25GBASE_R);
    lldp_link(&bed->agent, 0, false, 0, bed->w->now_us);
    run(bed, 100);
    assert_int_equal(bed->w->sent_count, start + 3);
    assert_int_equal(counter(bed, LLDP_FRAMES_OUT), 3);
    bed_free(bed);
}

static void test_lldp_waits_for_room(void **state)
{
    struct bed *bed = bed_new(5, 2);
    unsigned start = bed->w->sent_count;

    (void)state;
    bed->w->no_room = true;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    run(bed, 1);
    bed->w->no_room = false;
    run(bed, 1);
    assert_int_equal(bed->w->sent_count, start + 1);
    bed_free(bed);
}

static void test_lldp_is_fast_for_a_new_neighbour(void **state)
{
    struct bed *bed = bed_new(30, 4);
    unsigned start;

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    run(bed, 10);
    start = bed->w->sent_count;
    hear(bed, (struct said){"switch", 120, .port_id = 1});
    assert_int_equal(bed->w->sent_count, start); /* not from inside of input */
    run(bed, 4);
    assert_int_equal(bed->w->sent_count, start + 4);
    hear(bed, (struct said){"switch", 120, .port_id = 1});
    run(bed, 20);
    assert_int_equal(bed->w->sent_count, start + 4);
    run(bed, 10);
    assert_int_equal(bed->w->sent_count, start + 5);
    bed_free(bed);
}

/* Five at once, and one a second. */
static void test_lldp_does_not_flood_when_much_changes(void **state)
{
    struct bed *bed = bed_new(3600, 1);
    unsigned start;

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    run(bed, 10);
    start = bed->w->sent_count;
    for (unsigned i = 0; i < 1000; i++) {
        lldp_changed(&bed->agent, bed->w->now_us);
        run(bed, 0);
    }
    assert_int_equal(bed->w->sent_count, start + 5);
    for (unsigned i = 0; i < 3; i++) {
        lldp_changed(&bed->agent, bed->w->now_us);
        run(bed, 1);
    }
    assert_in_range(bed->w->sent_count, start + 7, start + 8);
    bed_free(bed);
}

static void test_lldp_says_good_bye_once(void **state)
{
    struct bed *bed = bed_new(5, 2);
    unsigned start;

    (void)state;
    lldp_stop(&bed->agent, 0); /* the link is down: there is nobody */
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    run(bed, 1);
    start = bed->w->sent_count;
    lldp_stop(&bed->agent, 0);
    lldp_stop(&bed->agent, 0);
    run(bed, 60);
    assert_int_equal(bed->w->sent_count, start + 1);
    assert_int_equal(sent(bed).ttl_s, 0);
    assert_null(sent(bed).system_name.bytes);
    lldp_link(&bed->agent, 0, false, 0, bed->w->now_us);
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    run(bed, 0);
    assert_int_equal(sent(bed).ttl_s, 11);
    bed_free(bed);
}

static void test_lldp_is_set_anew_while_it_runs(void **state)
{
    static const struct lldp_port_config one[] = {{true, true}, {false, true}};
    static const struct lldp_port_config other[] = {{false, false},
                                                    {true, true}};
    struct bed *bed = bed_new(5, 2);
    unsigned start;

    (void)state;
    lldp_set(&bed->agent, one, 5, 2, bed->w->now_us); /* links are down */
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    lldp_link(&bed->agent, 1, true, 25000, bed->w->now_us);
    hear(bed, (struct said){.name = "a", .ttl_s = 120});
    run(bed, 6);

    /* Nothing new is nothing to tell; another TTL is, at once. */
    start = bed->w->sent_count;
    lldp_set(&bed->agent, one, 5, 2, bed->w->now_us);
    run(bed, 0);
    assert_int_equal(bed->w->sent_count, start);
    lldp_set(&bed->agent, one, 20, 3, bed->w->now_us);
    run(bed, 0);
    assert_int_equal(bed->w->sent_count, start + 1);
    assert_int_equal(sent(bed).ttl_s, 61);

    /* Port 0 says good-bye and forgets, port 1 begins. */
    start = bed->w->sent_count;
    assert_int_equal(neighbours(bed, 0), 1);
    lldp_set(&bed->agent, other, 0, 0, bed->w->now_us);
    assert_int_equal(bed->w->sent_count, start + 1);
    assert_int_equal(sent(bed).ttl_s, 0);
    assert_int_equal(neighbours(bed, 0), 0);
    assert_int_equal(bed->events[LLDP_GONE], 1);
    run(bed, 59);
    assert_int_equal(bed->w->sent_count, start + 3);
    assert_int_equal(sent(bed).ttl_s, 121);
    hear(bed, (struct said){.name = "a", .ttl_s = 120});
    assert_int_equal(neighbours(bed, 0), 0);
    bed_free(bed);
}

static void test_lldp_remembers_changes_and_forgets(void **state)
{
    struct bed *bed = bed_new(30, 4);

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    hear(bed, (struct said){"switch", 10, .port_id = 1});
    assert_int_equal(bed->events[LLDP_NEW], 1);
    assert_string_equal(bed->name, "switch");
    run(bed, 9);
    hear(bed, (struct said){"switch", 10, .port_id = 1});
    assert_int_equal(bed->events[LLDP_CHANGED], 0);
    hear(bed, (struct said){"other", 10, .port_id = 1});
    assert_int_equal(bed->events[LLDP_CHANGED], 1);
    assert_int_equal(neighbours(bed, 0), 1);
    run(bed, 9);
    assert_int_equal(neighbours(bed, 0), 1);
    run(bed, 1);
    assert_int_equal(neighbours(bed, 0), 0);
    assert_int_equal(bed->events[LLDP_GONE], 1);
    assert_string_equal(bed->name, "other");
    assert_int_equal(counter(bed, LLDP_AGEOUTS), 1);
    bed_free(bed);
}

static void test_lldp_forgets_who_says_good_bye(void **state)
{
    struct bed *bed = bed_new(30, 4);

    (void)state;
    lldp_link(&bed->agent, 1, true, 25000, bed->w->now_us);
    hear(bed, (struct said){"switch", 0, .port = 1});
    hear(bed, (struct said){"switch", 10, .port = 1});
    assert_int_equal(neighbours(bed, 1), 1);
    assert_int_equal(neighbours(bed, 0), 0);
    hear(bed, (struct said){"", 0, .port = 1});
    assert_int_equal(neighbours(bed, 1), 0);
    assert_int_equal(bed->events[LLDP_GONE], 1);
    assert_int_equal(bed->port, 1);
    bed_free(bed);
}

/* Nobody reads of one whose time is over, also before the timer has come. */
static void test_lldp_shows_nobody_whose_time_is_over(void **state)
{
    struct bed *bed = bed_new(30, 4);

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    hear(bed, (struct said){.name = "switch", .ttl_s = 10});
    bed->w->now_us += 10 * (uint64_t)SECOND - 1;
    assert_int_equal(neighbours(bed, 0), 1);
    bed->w->now_us++;
    assert_int_equal(neighbours(bed, 0), 0);
    bed_free(bed);
}

static void test_lldp_forgets_those_of_a_link_that_is_down(void **state)
{
    struct bed *bed = bed_new(30, 4);

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    lldp_link(&bed->agent, 1, true, 25000, bed->w->now_us);
    hear(bed, (struct said){"switch", 10, .port_id = 1});
    hear(bed, (struct said){"phone", 10, .port_id = 2});
    hear(bed, (struct said){"switch", 10, .port = 1});
    lldp_link(&bed->agent, 0, false, 0, bed->w->now_us);
    assert_int_equal(neighbours(bed, 0), 0);
    assert_int_equal(neighbours(bed, 1), 1);
    assert_int_equal(bed->events[LLDP_GONE], 2);
    assert_int_equal(lldp_counter_read(&bed->agent, 0, LLDP_AGEOUTS), 0);
    bed_free(bed);
}

static void test_lldp_remembers_so_many_and_no_more(void **state)
{
    struct bed *bed = bed_new(30, 4);

    (void)state;
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    for (uint8_t i = 0; i < LLDP_NEIGHBOURS + 1; i++) {
        hear(bed, (struct said){"switch", 10, .port_id = i});
    }
    assert_int_equal(neighbours(bed, 0), LLDP_NEIGHBOURS);
    assert_int_equal(counter(bed, LLDP_TOO_MANY_NEIGHBOURS), 1);
    assert_int_equal(counter(bed, LLDP_FRAMES_DISCARDED), 1);
    assert_int_equal(counter(bed, LLDP_FRAMES_IN), LLDP_NEIGHBOURS + 1);
    bed_free(bed);
}

static void test_lldp_ignores_what_is_not_for_it(void **state)
{
    static const struct mac_addr us = {{2, 0, 0, 0, 0, 0x10}};
    uint8_t broken[60] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e, 0x52, 0x54,
                          0x00, 0x12, 0x34, 0x56, 0x88, 0xcc, 0x04};
    struct bed *bed = bed_new(30, 4);

    (void)state;
    hear(bed, (struct said){"switch", 10, .port_id = 1}); /* the link is down */
    assert_int_equal(counter(bed, LLDP_FRAMES_IN), 0);
    lldp_link(&bed->agent, 0, true, 25000, bed->w->now_us);
    hear(bed, (struct said){"switch", 10, .vlan = 9});
    hear(bed, (struct said){"switch", 10, .dst = &us});
    assert_true(world_input(bed->w, 0, broken, sizeof(broken)));
    assert_int_equal(counter(bed, LLDP_FRAMES_IN_ERRORS), 3);
    assert_int_equal(neighbours(bed, 0), 0);
    bed_free(bed);
}

/* Every state times every event: what may be sent and heard afterwards. */
static void test_lldp_states_and_events(void **state)
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
