/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Aggregated ports on both ends: every way of losing one port, with verified
 * I/O outstanding.
 */
#include "bed.h"

#include <string.h>

#include "net/wire/arp.h"
#include "tests/test_fixture.h"

enum {
    QUEUES = 4,
    WRITES = 8,
    BLOCKS = 128,
    /* Steps of the world before the cable is pulled; a write takes fewer. */
    ROUNDS = 24,
};

#define SECOND_NS UINT64_C(1000000000)

static struct bed bed;

static int setup_standby(void **state)
{
    (void)state;
    bed_init_lag(&bed, 1500, CONFIG_LAG_ACTIVE_STANDBY);
    return 0;
}

static int setup_lacp(void **state)
{
    (void)state;
    bed_init_lag(&bed, 1500, CONFIG_LAG_LACP);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    bed_end(&bed);
    return 0;
}

static struct drive_lag *lag_of_drive(void)
{
    return &bed.drive->drive.net.lag;
}

static struct drive_lag *lag_of_host(void)
{
    return &bed.host->net.lag;
}

static uint64_t drive_counter(enum lag_counter counter)
{
    return bed.drive->machine.lag.counters[counter];
}

static bool console_says(const char *text)
{
    return strstr(machine_console(&bed.drive->machine), text) != NULL;
}

/* ---- Ways to lose a port, and to restore it. */

struct way {
    void (*lose)(unsigned int port);
    void (*restore)(unsigned int port);
};

static void unplug_port(unsigned int port)
{
    native_disconnect(&bed.drive->machine, port, &bed.host->machine, port);
}

static void plug_port(unsigned int port)
{
    native_connect(&bed.world, &bed.cables[port], &bed.drive->machine, port,
                   &bed.host->machine, port);
}

/* The drive keeps its link, and notices only that it receives nothing. */
static void host_off(unsigned int port)
{
    drive_net_disable_link(&bed.host->net, (uint8_t)port);
}

static void host_on(unsigned int port)
{
    assert_true(
        drive_net_set_link(&bed.host->net, (uint8_t)port, 25, CONFIG_FEC_FC));
}

/* Cut the cable so that neither end notices. */
static void cut_cable(unsigned int port)
{
    bed.cables[port].is_cut = true;
}

static void mend_cable(unsigned int port)
{
    bed.cables[port].is_cut = false;
}

static const struct way cable_pulled = {unplug_port, plug_port};
static const struct way host_side = {host_off, host_on};
static const struct way silence = {cut_cable, mend_cable};

/* ---- I/O. */

struct pending {
    unsigned int done;
    unsigned int failed;
};

static void write_done(void *ctx, const struct host_result *result)
{
    struct pending *pending = ctx;

    pending->done++;
    pending->failed += result->is_lost || result->cqe.status != 0;
}

static bool all_are_done(void *ctx)
{
    return ((const struct pending *)ctx)->done == WRITES;
}

static void submit_writes(struct pending *pending, uint32_t version)
{
    for (uint32_t i = 0; i < WRITES; i++) {
        struct host_io io = {
            .qid = (uint16_t)(1 + i % QUEUES),
            .opcode = NVM_WRITE,
            .kind = HOST_DATA_KEYED,
            .nsid = BED_NSID,
            .lba = (uint64_t)i * BLOCKS,
            .blocks = BLOCKS,
            .offset = i * BLOCKS * BED_BLOCK,
            .len_bytes = BLOCKS * BED_BLOCK,
            .done = write_done,
            .ctx = pending,
        };

        bed_fill(bed.host->data + io.offset, io.lba, BLOCKS, version);
        assert_true(host_io_submit(&bed.host->host, &io));
    }
    verbs_flush(&bed.host->net.verbs);
}

/* Write, and lose a port after that many steps; read while the port is lost. */
static void survive_loss(const struct way *way, unsigned int port,
                         unsigned int rounds, uint32_t version)
{
    struct pending pending = {0};

    submit_writes(&pending, version);
    for (unsigned int i = 0; i < rounds; i++) {
        (void)native_world_step(&bed.world);
    }
    way->lose(port);
    assert_true(
        native_world_run(&bed.world, all_are_done, &pending, 30 * SECOND_NS));
    assert_int_equal(pending.failed, 0);
    for (uint32_t i = 0; i < WRITES; i++) {
        bed_expect(&bed, (uint16_t)(1 + i % QUEUES), (uint64_t)i * BLOCKS,
                   BLOCKS, HOST_DATA_KEYED, version);
    }
    way->restore(port);
    native_world_pass(&bed.world, 8 * SECOND_NS);
    assert_false(host_is_broken(&bed.host->host));
}

/* With the patience of Linux: 7 retries of half a second. */
static void connect_patiently(void)
{
    struct host_target target;

    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = QUEUES;
    target.depth = 16;
    target.ack_timeout = 17;
    assert_int_equal(host_connect(&bed.host->host, &target), 0);
}

static void sweep_rounds(const struct way *way)
{
    connect_patiently();
    for (unsigned int rounds = 0; rounds < ROUNDS; rounds++) {
        survive_loss(way, rounds % SOC_PORTS, rounds, rounds + 1);
    }
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

static void test_standby_survives_pulled_cables(void **state)
{
    (void)state;
    bed_provokes(&bed, BED_LOSS);
    sweep_rounds(&cable_pulled);
    assert_true(console_says("lag: port 1 is active"));
    assert_true(drive_counter(LAG_COUNT_TX0) != 0);
    assert_true(drive_counter(LAG_COUNT_TX1) != 0);
    assert_true(lag_of_drive()->is_up);
}

/* The drive has both links, but receives the host on only one of them. */
static void test_standby_follows_a_host_that_has_lost_a_port(void **state)
{
    (void)state;
    bed_provokes(&bed, BED_LOSS);
    sweep_rounds(&host_side);
    assert_true(drive_counter(LAG_COUNT_MOVES) != 0);
    assert_int_equal(lag_of_drive()->links, 3);
}

WITH_FIXTURE(setup_lacp, teardown)
static void test_lacp_survives_pulled_cables(void **state)
{
    (void)state;
    bed_provokes(&bed, BED_LOSS);
    sweep_rounds(&cable_pulled);
    assert_true(drive_counter(LAG_COUNT_TX0) != 0);
    assert_true(drive_counter(LAG_COUNT_TX1) != 0);
    assert_int_equal(drive_counter(LAG_COUNT_TX_DROPPED), 0);
    assert_int_equal(lag_of_drive()->members, 3);
}

WITH_FIXTURE(setup_lacp, teardown)
static void test_lacp_survives_a_host_that_has_lost_a_port(void **state)
{
    (void)state;
    bed_provokes(&bed, BED_LOSS);
    sweep_rounds(&host_side);
    assert_true(console_says("lag: port 0 left the aggregate"));
    assert_true(console_says("lag: port 1 left the aggregate"));
}

WITH_FIXTURE(setup_lacp, teardown)
static void test_lacp_survives_silent_cables(void **state)
{
    (void)state;
    bed_provokes(&bed, BED_LOSS);
    sweep_rounds(&silence);
    assert_true(console_says("lag: port 0 left the aggregate"));
    assert_true(console_says("lag: port 1 left the aggregate"));
}

/* The partner was not silent, because nobody could hear it. */
WITH_FIXTURE(setup_lacp, teardown)
static void test_lacp_survives_pauses_of_the_computer(void **state)
{
    (void)state;
    native_world_pass(&bed.world, 10 * SECOND_NS);
    assert_int_equal(lag_of_drive()->members, 3);
    for (unsigned int i = 0; i < 5; i++) {
        native_world_stop(&bed.world, 30 * SECOND_NS);
        native_world_pass(&bed.world, 3 * SECOND_NS);
        assert_int_equal(lag_of_drive()->members, 3);
    }
    assert_false(console_says("left the aggregate"));
}

/* The partner counts the pauses, so LACPDUs come as often as without them. */
WITH_FIXTURE(setup_lacp, teardown)
static void test_lacp_is_not_silent_for_longer_because_of_pauses(void **state)
{
    const struct lacp_port *port = &lag_of_drive()->lacp.ports[0];

    (void)state;
    native_world_pass(&bed.world, 10 * SECOND_NS);
    for (unsigned int i = 0; i < 50; i++) {
        uint64_t before = port->counters[LACP_PDUS_TX];

        native_world_stop(&bed.world, SECOND_NS * 14 / 10);
        native_world_pass(&bed.world, SECOND_NS / 10);
        assert_true(port->counters[LACP_PDUS_TX] != before);
    }
    assert_int_equal(lag_of_drive()->members, 3);
}

static const char *type_line(const char *line)
{
    size_t before = strlen(machine_console(&bed.drive->machine));

    machine_type(&bed.drive->machine, line);
    native_world_pass(&bed.world, SECOND_NS);
    return machine_console(&bed.drive->machine) + before;
}

WITH_FIXTURE(setup_lacp, teardown)
static void test_console_shows_members_and_partner(void **state)
{
    const char *said;

    (void)state;
    unplug_port(1);
    native_world_pass(&bed.world, 2 * SECOND_NS);
    said = type_line("lag\r");
    assert_non_null(strstr(said, "lag: LACP, up\n"));
    assert_non_null(strstr(said, "port 0: active\n"));
    assert_non_null(strstr(said,
                           "port 0: LACP: receive state \"current\", mux state "
                           "\"collecting, distributing\", actor flags 3f\n"));
    assert_non_null(
        strstr(said, "port 0: LACP partner: system 02:e5:5d:00:02:00, priority "
                     "65535, key 1, port 1, flags 3f\n"));
    assert_non_null(strstr(said, "port 1: link down\n"));
    assert_non_null(strstr(
        said,
        "port 1: LACP: receive state \"no link\", mux state \"detached\""));
}

static void test_console_shows_the_standby_port(void **state)
{
    const char *said;

    (void)state;
    said = type_line("lag\r");
    assert_non_null(strstr(said, "lag: active/standby, up\n"));
    assert_non_null(strstr(said, "port 0: active\n"));
    assert_non_null(strstr(said, "port 1: standby\n"));
    assert_non_null(strstr(said, "port 1: RoCE frames sent: 0; received frames "
                                 "dropped because the port is not in the "
                                 "aggregate: 0 RoCE, 0 other\n"));
    assert_non_null(strstr(said, "lag: the active port changed 0 times by "
                                 "itself; 0 frames were dropped because no "
                                 "port could send them\n"));
}

/* Both links carry RoCE, and each queue pair uses only one of them. */
WITH_FIXTURE(setup_lacp, teardown)
static void test_lacp_distributes_queue_pairs(void **state)
{
    (void)state;
    bed_connect(&bed, 0, QUEUES, 16);
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        assert_true(lacp_is_working(&lag_of_drive()->lacp, (uint8_t)i));
        assert_true(lacp_is_working(&lag_of_host()->lacp, (uint8_t)i));
    }
    for (uint32_t i = 0; i < 32; i++) {
        uint16_t qid = (uint16_t)(1 + i % QUEUES);

        assert_int_equal(
            bed_write(&bed, qid, i, BLOCKS, HOST_DATA_KEYED, false, i), 0);
        bed_expect(&bed, qid, i, BLOCKS, HOST_DATA_KEYED, i);
    }
    assert_true(drive_counter(LAG_COUNT_TX0) != 0);
    assert_true(drive_counter(LAG_COUNT_TX1) != 0);
    assert_int_equal(
        bed.drive->machine.rnic.state.roce.counters[ROCE_TX_NAK_SEQUENCE], 0);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

/* The drive's addresses of both families work over the remaining port. */
WITH_FIXTURE(setup_standby, teardown)
WITH_FIXTURE(setup_lacp, teardown)
static void test_all_addresses_work_over_the_remaining_port(void **state)
{
    (void)state;
    for (unsigned int port = 0; port < SOC_PORTS; port++) {
        unplug_port(port);
        for (uint8_t local = 0; local < 4; local++) {
            bed_connect(&bed, local, 1, 16);
            assert_int_equal(
                bed_write(&bed, 1, local, 1, HOST_DATA_KEYED, false, local), 0);
            bed_expect(&bed, 1, local, 1, HOST_DATA_KEYED, local);
            host_disconnect(&bed.host->host);
        }
        plug_port(port);
        native_world_pass(&bed.world, 5 * SECOND_NS);
    }
    bed_expect_idle(&bed);
}

/* Without both ports the aggregate is down; either port brings it up again. */
WITH_FIXTURE(setup_standby, teardown)
WITH_FIXTURE(setup_lacp, teardown)
static void test_an_aggregate_without_ports_recovers(void **state)
{
    (void)state;
    unplug_port(0);
    unplug_port(1);
    native_world_pass(&bed.world, SECOND_NS);
    assert_false(lag_of_drive()->is_up);
    assert_true(console_says("lag: the aggregate is down"));
    plug_port(1);
    native_world_pass(&bed.world, 5 * SECOND_NS);
    assert_true(lag_of_drive()->is_up);
    bed_connect(&bed, 0, 1, 16);
    assert_int_equal(bed_write(&bed, 1, 0, 1, HOST_DATA_KEYED, false, 1), 0);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

/* Announce an address with an ARP request, as a bond does, in a frame of 60
 * bytes. */
static void announce_address(unsigned int port, const struct mac_addr *mac,
                             const struct ip_addr *ip)
{
    const struct eth eth = {
        .dst = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
        .src = *mac,
        .type = ETHERTYPE_ARP,
    };
    const struct arp arp = {
        .operation = ARP_REQUEST,
        .sender_mac = *mac,
        .sender_ip = *ip,
        .target_ip = *ip,
    };
    uint8_t data[60] = {0};
    const struct frame_rx frame = {.data = data, .len_bytes = sizeof(data)};

    eth_emit(&eth, data);
    arp_emit(&arp, data + ETH_LEN);
    hw_port_rx(&bed.drive->machine.ports[port], &frame, 1);
    /* Let the drive process it. */
    native_world_pass(&bed.world, SECOND_NS / 200);
}

/* Both ports are on one switch, so that frames sent on one arrive on the other:
 * this must not count as a move. */
static void test_standby_ignores_its_own_frames(void **state)
{
    const struct net_stack *stack = &bed.drive->drive.net.stack;

    (void)state;
    assert_int_equal(lag_of_drive()->active, 0);
    native_world_pass(&bed.world, SECOND_NS);
    announce_address(1, &stack->config.ports[0].mac,
                     &net_stack_address(stack, 0)->ip);
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(lag_of_drive()->active, 0);
    assert_false(console_says("lag: port 1 is active"));
}

/* Beyond switches both ports receive the same frame, one a little later: this
 * must not count as a move. */
static void test_standby_ignores_frames_that_both_ports_receive(void **state)
{
    static const struct mac_addr other = {{2, 9, 9, 9, 9, 9}};
    const struct ip_addr ip = ip_addr_from_v4(0x0a0000fa);

    (void)state;
    /* Let the host finish its announcements. */
    native_world_pass(&bed.world, 20 * SECOND_NS);
    announce_address(1, &other, &ip);
    announce_address(0, &other, &ip);
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(lag_of_drive()->active, 0);
    assert_false(console_says("lag: port 1 is active"));
    announce_address(1, &other, &ip); /* On one port alone, it is a move. */
    native_world_pass(&bed.world, SECOND_NS);
    assert_true(console_says("lag: port 1 is active"));
}

/* lag.revert decides whether the primary port becomes active again. */
static void test_standby_reverts_if_configured(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        lag_of_drive()->has_revert = i == 1;
        lag_of_host()->has_revert = i == 1;
        unplug_port(0);
        native_world_pass(&bed.world, SECOND_NS);
        assert_int_equal(lag_of_drive()->active, 1);
        plug_port(0);
        native_world_pass(&bed.world, 2 * SECOND_NS);
        assert_int_equal(lag_of_drive()->links, 3);
        assert_int_equal(lag_of_drive()->active, 1 - i);
    }
}

/* The preferred port becomes active when both settings ask for that. */
static void test_standby_preference_changes_while_the_drive_runs(void **state)
{
    (void)state;
    lag_of_drive()->has_revert = false;
    (void)type_line("config set lag.mode active-standby\r");
    (void)type_line("config set lag.primary 1\r");
    (void)type_line("config save\r");
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(lag_of_drive()->active, 0);
    (void)type_line("config set lag.revert on\r");
    (void)type_line("config save\r");
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(lag_of_drive()->active, 1);
}

WITH_FIXTURE(setup_lacp, teardown)
static void test_lacp_drops_frames_of_a_port_outside_the_aggregate(void **state)
{
    static const struct mac_addr other = {{2, 9, 9, 9, 9, 9}};
    const struct ip_addr ip = ip_addr_from_v4(0x0a0000fa);

    (void)state;
    cut_cable(1);
    native_world_pass(&bed.world, 7 * SECOND_NS);
    assert_int_equal(lag_of_drive()->links, 3);
    assert_int_equal(lag_of_drive()->collects, BIT(0));
    assert_non_null(
        strstr(type_line("lag\r"), "port 1: not in the aggregate\n"));
    announce_address(1, &other, &ip);
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(lag_of_drive()->dropped[1], 1);
    announce_address(0, &other, &ip);
    native_world_pass(&bed.world, SECOND_NS);
    assert_int_equal(lag_of_drive()->dropped[0], 0);
}

static unsigned int times_said(const char *text)
{
    const char *at = machine_console(&bed.drive->machine);
    unsigned int n = 0;

    while ((at = strstr(at, text)) != NULL) {
        at += strlen(text);
        n++;
    }
    return n;
}

/* Send what `host` would send about port 0, except for COLLECTING. */
static void say_collecting(const struct lacp_info *host, bool is_collecting)
{
    struct lacp lacp = {
        .actor = *host,
        .partner = lacp_actor(&lag_of_drive()->lacp, 0),
    };
    const struct eth eth = {
        .dst = slow_group,
        .src = lacp.actor.system,
        .type = ETHERTYPE_SLOW,
    };
    uint8_t data[ETH_LEN + SLOW_LEN];
    const struct frame_rx frame = {.data = data, .len_bytes = sizeof(data)};

    lacp.actor.state &= (uint8_t)~LACP_COLLECTING;
    lacp.actor.state |= is_collecting ? LACP_COLLECTING : 0;
    eth_emit(&eth, data);
    lacp_emit(&lacp, data + ETH_LEN);
    hw_port_rx(&bed.drive->machine.ports[0], &frame, 1);
}

/* The partner may change as often as it likes: the log stays readable, and ends
 * with the current state. */
WITH_FIXTURE(setup_lacp, teardown)
static void test_a_wavering_lacp_partner_does_not_fill_the_log(void **state)
{
    enum { TIMES = 300, PERIOD_MS = 100 };
    const struct lacp_info host = lacp_actor(&lag_of_host()->lacp, 0);
    unsigned int lines;

    (void)state;
    native_world_pass(&bed.world, 100 * SECOND_NS);
    lines = times_said("lag: ");
    cut_cable(0);
    for (unsigned int i = 0; i < TIMES; i++) {
        say_collecting(&host, i % 2 == 1);
        native_world_pass(&bed.world, PERIOD_MS * SECOND_NS / 1000);
        assert_int_equal(lag_of_drive()->members, i % 2 == 1 ? 3 : 2);
    }
    assert_in_range(times_said("lag: ") - lines, 8, 8 + 2 * 4);
    assert_true(console_says("changes since the last line"));
    say_collecting(&host, false);
    lines = times_said("lag: port 0 left the aggregate");
    native_world_pass(&bed.world, 11 * SECOND_NS);
    assert_int_equal(times_said("lag: port 0 left the aggregate"), lines + 1);
    lines = times_said("lag: ");
    native_world_pass(&bed.world, 30 * SECOND_NS);
    assert_int_equal(times_said("lag: "), lines);
}

/* The last of many moves is logged when its time has come, not with the next
 * move. */
static void test_standby_logs_the_result_of_many_moves(void **state)
{
    enum { MOVES = 21 };
    unsigned int lines;

    (void)state;
    native_world_pass(&bed.world, 100 * SECOND_NS);
    lines = times_said("lag: port ");
    for (unsigned int i = 0; i < MOVES; i++) {
        unplug_port(i % 2);
        native_world_pass(&bed.world, SECOND_NS / 10);
        plug_port(i % 2);
        native_world_pass(&bed.world, SECOND_NS / 10);
    }
    assert_int_equal(lag_of_drive()->active, 1);
    assert_in_range(times_said("lag: port ") - lines, 8, 12);
    native_world_pass(&bed.world, 10 * SECOND_NS);
    assert_int_equal(lag_of_drive()->told.changes, 0);
    assert_int_equal(lag_of_drive()->told.active, 1);
}

TEST_FIXTURE(setup_standby, teardown)
