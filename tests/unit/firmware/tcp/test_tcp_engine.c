/* SPDX-License-Identifier: BSD-2-Clause */
/* When the TCP offload engine is on, its addresses, and whose entries it has.
 * The users are the diagnostic services and sockets that the test plays. */
#include "tests/unit/firmware/tcp/tcp_bed.h"

#include <stdio.h>

#include "firmware/tcp/tcp_engine.h"
#include "tests/test_fixture.h"

enum {
    SECOND = 1000000,
    RING_LOG2 = TCP_ECHO_RING_LOG2,
    OTHER_PORT = 18515,
    STRANGE_PORT = 99,
};

static struct tcp_engine engine;
static struct net_stack stack;
static struct log log_of_test;
static char last_line[256];
static bool takes_frames;

/* ---- What is around it. */

void log_line(struct log *log, const char *format, ...)
{
    va_list args;

    assert_ptr_equal(log, &log_of_test);
    va_start(args, format);
    (void)vsnprintf(last_line, sizeof(last_line), format, args);
    va_end(args);
}

/* There is no connection of iWARP. */
bool verbs_modify_qp(struct verbs *verbs, uint32_t qpn,
                     enum verbs_qp_state next, const struct verbs_qp_attr *attr)
{
    (void)verbs;
    (void)qpn;
    (void)next;
    (void)attr;
    fail();
    return false;
}

static void note_switch(void *ctx, bool is_on)
{
    assert_ptr_equal(ctx, &stack);
    assert_int_not_equal(is_on, takes_frames);
    takes_frames = is_on;
}

static void fill_random(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    memset(buf, 0x5a, len);
}

static struct tcp_engine_config config_of(struct dram *dram)
{
    return (struct tcp_engine_config){
        .regs = MODEL_REGS,
        .dram = dram,
        .log = &log_of_test,
        .mtu_bytes = BED_MTU,
        .stack = &stack,
        .switched = note_switch,
        .ctx = &stack,
        .random = fill_random,
    };
}

static void turn_engine(struct bed *bed)
{
    uint64_t deadline_us = UINT64_MAX;

    (void)bed;
    if (!engine.is_on) {
        return;
    }
    while (tcp_engine_poll(&engine, model.env.now_ns / 1000)) {
        toe_kick(&engine.toe);
    }
    (void)tcp_engine_step(&engine, model.env.now_ns / 1000, &deadline_us);
    toe_kick(&engine.toe);
}

static void set_address(uint8_t i, uint32_t ip, uint8_t port, bool is_assigned)
{
    stack.addresses[i].config = (struct net_address_config){
        .ip = ip_addr_from_v4(ip), .vlan = NET_VLAN_UNTAGGED, .port = port};
    stack.addresses[i].is_assigned = is_assigned;
}

static int setup(void **state)
{
    struct bed *bed = bed_new();
    const struct tcp_engine_config config = config_of(&model.dram);
    uint8_t *rings = NULL;

    memset(&engine, 0, sizeof(engine));
    memset(&stack, 0, sizeof(stack));
    takes_frames = false;
    last_line[0] = '\0';
    set_address(0, BED_OWN, 0, true);
    bed->turn = turn_engine;
    assert_int_equal(tcp_engine_init(&engine, &config, &rings), INIT_OK);
    assert_non_null(rings);
    assert_true(engine.exists);
    assert_false(engine.is_on);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    bed_free(*state);
    return 0;
}

/* ---- On and off. */

static void test_the_services_switch_the_engine_on_and_off(void **state)
{
    struct bed *bed = *state;

    tcp_engine_switch(&engine, true);
    assert_true(engine.is_on && engine.is_wanted && takes_frames);
    assert_string_equal(last_line,
                        "tcp: echo listens on port 7, discard on port 9");
    bed_pass(bed, SECOND);
    assert_true(engine.is_on);
    tcp_engine_switch(&engine, false);
    assert_string_equal(last_line, "tcp: ports 7 and 9 are closed");
    bed_pass(bed, SECOND);
    assert_false(engine.is_on || takes_frames);
}

static void test_the_same_again_changes_nothing(void **state)
{
    (void)state;
    tcp_engine_switch(&engine, false);
    assert_string_equal(last_line, "");
    tcp_engine_switch(&engine, true);
    last_line[0] = '\0';
    tcp_engine_switch(&engine, true);
    assert_string_equal(last_line, "");
    assert_true(tcp_engine_begin(&engine));
    assert_true(engine.is_on);
}

static void test_the_engine_stays_on_until_the_last_connection_has_ended(
    void **state)
{
    struct bed *bed = *state;

    tcp_engine_switch(&engine, true);
    (void)bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_PATTERN);
    bed_pass(bed, SECOND / 10);
    assert_int_equal(engine.echo.used, 1);
    bed->is_cut = true; /* the peer cannot answer the reset */
    tcp_engine_switch(&engine, false);
    assert_true(engine.is_on);
    bed_pass(bed, 10 * SECOND);
    assert_int_equal(engine.echo.used, 0);
    assert_false(engine.is_on || takes_frames);
}

/* Others use the engine, so it stays on without the diagnostic services. */
static void test_another_user_keeps_the_engine_on(void **state)
{
    struct bed *bed = *state;

    engine.nvme_tcp = (struct nvme_tcp *)1; /* no entry is taken meanwhile */
    tcp_engine_switch(&engine, true);
    tcp_engine_switch(&engine, false);
    (void)bed;
    {
        uint64_t deadline_us = UINT64_MAX;

        (void)tcp_engine_step(&engine, 0, &deadline_us);
        assert_true(engine.is_on && takes_frames);
        engine.nvme_tcp = NULL;
        (void)tcp_engine_step(&engine, 0, &deadline_us);
        assert_false(engine.is_on || takes_frames);
    }
}

static void test_without_an_engine_nothing_is_switched_on(void **state)
{
    uint8_t few[64];
    struct dram dram;
    struct tcp_engine_config config = config_of(&dram);
    uint8_t *rings = NULL;

    (void)state;
    dram_init(&dram, few, 0);
    assert_int_equal(tcp_engine_init(&engine, &config, &rings), INIT_NO_MEMORY);
    tcp_engine_switch(&engine, true);
    assert_string_equal(last_line, "tcp: there is no TCP offload engine");
    assert_false(engine.is_on || engine.is_wanted || takes_frames);
}

/* ---- Addresses. */

static void put_tcb(uint8_t tcb[TOE_TCB_LEN], uint32_t ip, uint8_t port)
{
    const struct ip_addr own = ip_addr_from_v4(ip);

    memset(tcb, 0, TOE_TCB_LEN);
    memcpy(tcb + TOE_TCB_LOCAL_IP, own.bytes, sizeof(own.bytes));
    memset(tcb + TOE_TCB_VLAN, 0xff, 2);
    tcb[TOE_TCB_PORT] = port;
}

static uint8_t find_address(uint32_t ip, uint8_t port)
{
    uint8_t tcb[TOE_TCB_LEN];

    put_tcb(tcb, ip, port);
    return tcp_engine_find_address(&engine, tcb);
}

static void test_the_engine_follows_the_own_addresses(void **state)
{
    struct bed *bed = *state;
    uint32_t id;

    set_address(0, 0, 0, false);
    set_address(2, BED_OWN, 0, true);
    tcp_engine_switch(&engine, true);
    bed_pass(bed, SECOND);
    assert_int_equal(find_address(BED_OWN, 0), 2);
    assert_int_equal(find_address(BED_OWN, 1), NET_CONFIGURED);
    assert_int_equal(find_address(BED_PEER, 0), NET_CONFIGURED);
    id = bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_PATTERN);
    bed_pass(bed, SECOND);
    assert_int_equal(bed->peer->established_id, id);

    stack.addresses[2].is_assigned = false; /* it is a duplicate */
    bed_pass(bed, SECOND);
    assert_int_equal(find_address(BED_OWN, 0), NET_CONFIGURED);
    id = bed_connect(bed, TCP_ECHO_PORT, 40001, HOST_PATTERN);
    bed_pass(bed, SECOND);
    assert_int_not_equal(bed->peer->established_id, id);
}

/* Hosts are not served at addresses of control traffic. */
static void test_an_address_for_control_traffic_serves_no_hosts(void **state)
{
    struct bed *bed = *state;
    uint32_t id;

    set_address(0, 0, 0, false);
    set_address(NET_CONFIGURED, BED_OWN, 0, true);
    tcp_engine_switch(&engine, true);
    bed_pass(bed, SECOND);
    assert_int_equal(find_address(BED_OWN, 0), NET_CONFIGURED);
    id = bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_PATTERN);
    bed_pass(bed, SECOND);
    assert_int_equal(bed->peer->established_id, id);
}

/* ---- Entries. */

/* What nobody takes is refused, and its TID is given back. */
static void test_a_connection_of_nobody_leaves_nothing(void **state)
{
    struct bed *bed = *state;

    tcp_engine_switch(&engine, true);
    assert_true(toe_listen(&engine.toe, STRANGE_PORT));
    (void)bed_connect(bed, STRANGE_PORT, 40000, HOST_PATTERN);
    bed_pass(bed, 100 * (uint64_t)SECOND);
    assert_int_equal(engine.echo.used, 0);
    for (unsigned int i = 0; i < TOE_SLOTS; i++) {
        assert_int_equal(bed->hw.state.conns[i].state, TOE_SLOT_FREE);
    }
}

static void test_an_entry_is_an_event(void **state)
{
    struct bed *bed = *state;

    tcp_engine_switch(&engine, true);
    assert_false(tcp_engine_poll(&engine, 1));
    assert_false(engine.has_event);
    bed->turn = NULL;
    (void)bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_PATTERN);
    bed_pass(bed, SECOND / 10);
    assert_true(tcp_engine_poll(&engine, 1));
    assert_true(engine.has_event);
}

/* ---- Memory. */

static void test_users_need_memory_for_what_they_are(void **state)
{
    const struct tcp_engine_users none = {0};
    const struct tcp_engine_users tls = {.has_tls = true};
    const struct tcp_engine_users nvme = {.has_nvme_tcp = true};
    const struct tcp_engine_users both = {.has_nvme_tcp = true,
                                          .has_tls = true};
    const struct tcp_engine_users iwarp = {.has_iwarp = true};
    const uint64_t rings = tcp_echo_memory_len(NVME_TCP_RING_LOG2) -
                           tcp_echo_memory_len(TCP_ECHO_RING_LOG2);

    (void)state;
    assert_int_equal(tcp_engine_dram(&none), 0);
    assert_int_equal(tcp_engine_dram(&tls), 0);
    assert_int_equal(tcp_engine_ring_log2(&none), TCP_ECHO_RING_LOG2);
    assert_int_equal(tcp_engine_ring_log2(&nvme), NVME_TCP_RING_LOG2);
    assert_int_equal(tcp_engine_ring_log2(&iwarp), NVME_TCP_RING_LOG2);
    assert_true(tcp_engine_dram(&nvme) > rings + NVME_TCP_MEMORY_BYTES);
    assert_true(tcp_engine_dram(&both) >
                tcp_engine_dram(&nvme) + TLS_MEMORY_BYTES);
    assert_true(tcp_engine_dram(&iwarp) > rings + TCP_IWARP_MEMORY_BYTES);
}

TEST_FIXTURE(setup, teardown)
