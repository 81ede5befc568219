/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver of the TCP offload engine, and what the engine tells of its
 * connections: docs/hardware/toe.md. */
#include "tests/unit/firmware/tcp/tcp_bed.h"

#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum { SECOND = 1000000, RING_LOG2 = 13, RING = 1 << RING_LOG2, PORT = 7 };

/* What the firmware of these tests knows. */
struct taken {
    uint8_t *ring;
    uint32_t tid;
    uint64_t received;
    unsigned int counts[TOE_KIND_ENDED + 1];
    uint32_t end;
    bool refuses;
    bool ignores;
};

static struct taken *taken_of(struct bed *bed)
{
    return bed->firmware;
}

static void take_entry(void *ctx, const struct toe_entry *entry)
{
    struct bed *bed = ctx;
    struct taken *taken = taken_of(bed);

    assert_in_range(entry->kind, TOE_KIND_SENT, TOE_KIND_ENDED);
    taken->counts[entry->kind]++;
    taken->tid = entry->tid;
    if (entry->kind == TOE_KIND_ASKED && !taken->ignores) {
        assert_int_equal(entry->port, PORT);
        assert_true(taken->refuses
                        ? toe_reject(&bed->toe, entry->tid)
                        : toe_accept(&bed->toe, entry->tid, taken->ring));
    }
    taken->received += entry->kind == TOE_KIND_DATA ? entry->value : 0;
    taken->end = entry->kind == TOE_KIND_ENDED ? entry->value : taken->end;
}

static void turn_firmware(struct bed *bed)
{
    while (toe_poll(&bed->toe, 64, take_entry, bed) != 0) {
        toe_kick(&bed->toe);
    }
}

static int setup(void **state)
{
    struct bed *bed = bed_new();
    struct taken *taken = calloc(1, sizeof(*taken));

    assert_non_null(taken);
    taken->ring = dram_reserve(&model.dram, RING, 64);
    bed->firmware = taken;
    bed->turn = turn_firmware;
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;

    free(bed->firmware);
    bed_free(bed);
    return 0;
}

static void start_engine(struct bed *bed)
{
    bed_start_engine(bed, RING_LOG2);
    assert_true(toe_listen(&bed->toe, PORT));
}

/* @return the id of the peer's connection, once it is established */
static uint32_t connect_peer(struct bed *bed, uint16_t from)
{
    uint32_t id = bed_connect(bed, PORT, from, HOST_PATTERN);

    bed_pass(bed, SECOND);
    assert_int_equal(bed->peer->established_id, id);
    return id;
}

static void test_the_driver_finds_its_device_and_checks_sizes(void **state)
{
    struct bed *bed = *state;
    struct toe_config config = {
        .regs = MODEL_REGS, .dram = &model.dram, .commands = 1000};
    struct dram none;
    uint8_t byte[64];

    assert_int_equal(toe_init(&bed->toe, &config), INIT_BAD_CONFIG);
    config.commands = 1024;
    config.regs = MODEL_REGS + 4; /* A_TOE_LIMITS is no identity */
    assert_int_equal(toe_init(&bed->toe, &config), INIT_NO_DEVICE);
    config.regs = MODEL_REGS;
    dram_init(&none, byte, sizeof(byte));
    config.dram = &none;
    assert_int_equal(toe_init(&bed->toe, &config), INIT_NO_MEMORY);
}

static void test_parameters_that_the_engine_refuses_are_reported(void **state)
{
    struct bed *bed = *state;
    struct toe_params params = {.mtu_bytes = 1279, .ring_log2 = RING_LOG2};

    assert_false(toe_start(&bed->toe, &params));
    params.mtu_bytes = BED_MTU;
    assert_true(toe_start(&bed->toe, &params));
}

static void test_listeners_are_answered_at_once(void **state)
{
    struct bed *bed = *state;

    assert_false(toe_listen(&bed->toe, PORT)); /* it is off */
    start_engine(bed);
    assert_false(toe_listen(&bed->toe, PORT));
    for (uint16_t i = 1; i < TOE_LISTENERS; i++) {
        assert_true(toe_listen(&bed->toe, (uint16_t)(100 + i)));
    }
    assert_false(toe_listen(&bed->toe, 200));
    toe_unlisten(&bed->toe, PORT);
    assert_true(toe_listen(&bed->toe, 200));
}

static void test_a_full_command_ring_changes_nothing(void **state)
{
    struct bed *bed = *state;

    start_engine(bed);
    model.is_held = true; /* the engine sleeps */
    for (unsigned int i = 0; i < BED_COMMANDS; i++) {
        assert_true(toe_release(&bed->toe, 0x10000 + i));
    }
    assert_int_equal(toe_room(&bed->toe), 0);
    assert_false(toe_release(&bed->toe, 1));
    assert_false(toe_reject(&bed->toe, 1));
    assert_false(toe_credit(&bed->toe, 1, 1));
    assert_false(toe_accept(&bed->toe, 1, taken_of(bed)->ring));
    assert_false(toe_send(&bed->toe, 1, taken_of(bed)->ring, 1, 0));
    assert_false(toe_close(&bed->toe, 1, 0));
    assert_false(toe_abort(&bed->toe, 1, 0));
    assert_false(toe_set_laddr(&bed->toe, 1, 0, NULL, 0));
    assert_null(toe_query(&bed->toe, 1));
    model.is_held = false;
    /* To look at connections, the driver waits for room. */
    assert_null(toe_query_next(&bed->toe, 0));
    assert_int_equal(toe_room(&bed->toe), BED_COMMANDS);
    assert_int_equal(toe_counter_read(&bed->toe, TOE_COUNT_REFUSED),
                     BED_COMMANDS);
}

static void test_bytes_arrive_and_leave_and_each_command_completes(void **state)
{
    struct bed *bed = *state;
    struct taken *taken = taken_of(bed);
    uint32_t id;

    start_engine(bed);
    id = connect_peer(bed, 40000);
    host_send(bed->peer, id, 3000);
    bed_pass(bed, SECOND);
    assert_int_equal(taken->received, 3000);
    assert_true(toe_send(&bed->toe, taken->tid, taken->ring, 3000, 77));
    assert_true(toe_credit(&bed->toe, taken->tid, 3000));
    toe_kick(&bed->toe);
    bed_pass(bed, SECOND);
    assert_int_equal(host_conn(bed->peer, id)->received, 3000);
    assert_int_equal(taken->counts[TOE_KIND_SENT], 1);
    assert_true(toe_close(&bed->toe, taken->tid, 78));
    toe_kick(&bed->toe);
    bed_pass(bed, SECOND);
    assert_int_equal(taken->counts[TOE_KIND_CLOSED], 1);
    assert_int_equal(taken->counts[TOE_KIND_ENDED], 1);
    assert_int_equal(taken->end, TOE_END_CLOSED);
    assert_true(toe_release(&bed->toe, taken->tid));
    toe_stop(&bed->toe);
}

/* ---- What is told of connections. */

static void test_a_query_tells_what_a_connection_does(void **state)
{
    struct bed *bed = *state;
    struct taken *taken = taken_of(bed);
    const uint8_t *tcb;
    uint32_t id;

    start_engine(bed);
    id = connect_peer(bed, 40000);
    host_send(bed->peer, id, 3000);
    bed_pass(bed, SECOND);
    tcb = toe_query(&bed->toe, taken->tid);
    assert_non_null(tcb);
    assert_int_equal(get_le32(tcb + TOE_TCB_TID), taken->tid);
    assert_int_equal(tcb[TOE_TCB_SLOT_STATE], TOE_SLOT_OPEN);
    assert_int_equal(tcb[TOE_TCB_STATE], TCP_STATE_ESTABLISHED);
    assert_int_equal(tcb[TOE_TCB_PORT], 0);
    assert_int_equal(get_le16(tcb + TOE_TCB_VLAN), 0xffff);
    assert_int_equal(get_le16(tcb + TOE_TCB_LOCAL_PORT), PORT);
    assert_int_equal(get_le16(tcb + TOE_TCB_REMOTE_PORT), 40000);
    assert_int_equal(get_le64(tcb + TOE_TCB_RECEIVED_BYTES), 3000);
    assert_int_equal(get_le32(tcb + TOE_TCB_RCV_WND), RING - 3000);
    assert_int_equal(tcb[TOE_TCB_FLAGS],
                     TOE_TCB_HAS_TIMES | TOE_TCB_HAS_SACK | TOE_TCB_HAS_ECN);
    assert_int_equal(tcb[TOE_TCB_RCV_SHIFT], 0);
    assert_int_equal(bed->peer->config.window_bytes >> 16,
                     1u << tcb[TOE_TCB_SND_SHIFT] >> 1);
    assert_in_range(get_le32(tcb + TOE_TCB_SRTT_US), 1, SECOND / 10);
    assert_in_range(get_le32(tcb + TOE_TCB_RTO_US), SECOND / 5, SECOND);
}

/* Slots, then TIME-WAIT, each once; and nothing is refused for it. */
static void test_a_search_finds_every_connection_once(void **state)
{
    struct bed *bed = *state;
    struct taken *taken = taken_of(bed);
    struct toe_usage usage;
    const uint8_t *tcb;
    uint32_t place = 0;
    unsigned int waits = 0, opens = 0, asked = 0;

    start_engine(bed);
    assert_null(toe_query_next(&bed->toe, 0));
    for (uint16_t i = 0; i < 3; i++) { /* the engine closes first */
        (void)connect_peer(bed, (uint16_t)(40000 + i));
        if (i != 1) {
            assert_true(toe_close(&bed->toe, taken->tid, 0));
            toe_kick(&bed->toe);
            bed_pass(bed, SECOND);
            assert_true(toe_release(&bed->toe, taken->tid));
            toe_kick(&bed->toe);
        }
    }
    taken->ignores = true;
    (void)bed_connect(bed, PORT, 40010, HOST_PATTERN);
    bed_pass(bed, SECOND);
    while ((tcb = toe_query_next(&bed->toe, place)) != NULL) {
        place = (get_le32(tcb + TOE_TCB_TID) & 0xffff) + 1;
        assert_int_equal(get_le16(tcb + TOE_TCB_LOCAL_PORT), PORT);
        asked += tcb[TOE_TCB_SLOT_STATE] == TOE_SLOT_ASKED;
        opens += tcb[TOE_TCB_SLOT_STATE] == TOE_SLOT_OPEN;
        if (tcb[TOE_TCB_SLOT_STATE] == TOE_TCB_TIME_WAIT) {
            assert_int_equal(get_le16(tcb + TOE_TCB_REMOTE_PORT),
                             waits == 0 ? 40000 : 40002);
            assert_in_range(get_le32(tcb + TOE_TCB_LEFT_MS), 1, 60000);
            waits++;
        }
    }
    assert_int_equal(opens, 1);
    assert_int_equal(asked, 1);
    assert_int_equal(waits, 2);
    assert_int_equal(toe_counter_read(&bed->toe, TOE_COUNT_REFUSED), 0);
    usage = toe_usage(&bed->toe);
    assert_int_equal(usage.connections, 1);
    assert_int_equal(usage.half_open, 1);
    assert_int_equal(usage.time_waits, 2);
    assert_int_equal(usage.pages, 0);
    bed_pass(bed, 70 * SECOND);
    assert_int_equal(toe_usage(&bed->toe).time_waits, 0);
}

/* ---- A loaded state. */

/* What was loaded is the present state; the connections are not in it. */
static void load_state(struct bed *bed)
{
    assert_true(hw_toe_state_loaded(&bed->hw));
    model_settle();
}

static void test_a_peer_that_only_waits_is_reset_after_a_load(void **state)
{
    struct bed *bed = *state;
    struct taken *taken = taken_of(bed);

    start_engine(bed);
    for (uint16_t i = 0; i < BED_PEERS; i++) {
        (void)bed_connect(bed, PORT, (uint16_t)(40000 + i), HOST_MANUAL);
        bed_pass(bed, SECOND / 100);
    }
    bed_pass(bed, SECOND);
    assert_int_equal(bed->peer->established_count, BED_PEERS);
    load_state(bed);
    bed_pass(bed, SECOND);
    assert_int_equal(taken->end, TOE_END_STOPPED);
    assert_int_equal(taken->counts[TOE_KIND_ENDED], BED_PEERS);
    assert_int_equal(bed->peer->ended_count, BED_PEERS);
    assert_int_equal(bed->peer->end, TCP_END_RESET);
}

/* The link is not up before some seconds; and nobody is asked for ever. */
static void test_peers_are_reset_although_the_link_comes_up_late(void **state)
{
    struct bed *bed = *state;
    unsigned int refs = 0;
    uint64_t sent;

    start_engine(bed);
    (void)connect_peer(bed, 40000);
    bed->is_cut = true;
    load_state(bed);
    bed_pass(bed, 5 * SECOND);
    assert_int_equal(bed->peer->ended_count, 0);
    bed->is_cut = false;
    bed_pass(bed, 12 * SECOND);
    assert_int_equal(bed->peer->ended_count, 1);
    assert_int_equal(bed->peer->end, TCP_END_RESET);
    bed_pass(bed, 30 * SECOND);
    sent = toe_counter_read(&bed->toe, TOE_COUNT_TX_FRAMES);
    bed_pass(bed, 100 * SECOND);
    assert_int_equal(toe_counter_read(&bed->toe, TOE_COUNT_TX_FRAMES), sent);
    for (unsigned int i = 0; i < HW_TOE_PATHS; i++) {
        refs += bed->hw.state.paths[i].refs;
    }
    assert_int_equal(refs, 1); /* the slot, which was not released */
}

/* ---- Trace events. */

static void test_a_trace_has_the_life_of_a_connection(void **state)
{
    struct bed *bed = *state;
    struct taken *taken = taken_of(bed);
    const struct trace_record *record = bed->records;

    start_engine(bed);
    (void)connect_peer(bed, 40000);
    assert_int_equal(bed->num_records, 0); /* nobody wants to know */
    bed->trace_mask = BIT(TRACE_GROUP_TCP);
    (void)connect_peer(bed, 40001);
    assert_int_equal(bed->num_records, 1);
    assert_int_equal(record->type, TRACE_TCP_OPENED);
    assert_int_equal(record->source, TRACE_SOURCE_TOE);
    assert_int_equal(record->request, TRACE_NO_REQUEST);
    assert_int_equal(record->arg[0], taken->tid);
    assert_int_equal(record->arg[1], 0);
    assert_int_equal(record->arg[2], PORT);
    assert_int_equal(record->arg[3], 40001);
    assert_int_equal(record->arg[6], 0xffff);
    assert_int_equal(record->arg[7], BED_PEER);
    assert_true(toe_abort(&bed->toe, taken->tid, 0));
    toe_kick(&bed->toe);
    bed_pass(bed, SECOND);
    assert_int_equal(bed->num_records, 2);
    assert_int_equal(record[1].type, TRACE_TCP_ENDED);
    assert_int_equal(record[1].arg[1], TOE_END_ABORTED);
    assert_int_equal(record[1].arg[3], 40001);
}

/* The first record of a type, whose TID is that of the only connection. */
static const struct trace_record *find_record(struct bed *bed,
                                              enum trace_type type,
                                              uint32_t second)
{
    for (unsigned int i = 0; i < bed->num_records; i++) {
        if (bed->records[i].type == type && bed->records[i].arg[1] == second) {
            assert_int_equal(bed->records[i].arg[0] & 0xffff, 0);
            return &bed->records[i];
        }
    }
    fail_msg("there is no record of type %u", (unsigned int)type);
    return NULL;
}

static void test_a_trace_has_losses_and_their_repair(void **state)
{
    struct bed *bed = *state;
    struct taken *taken = taken_of(bed);
    uint32_t id;

    start_engine(bed);
    id = connect_peer(bed, 40000);
    for (unsigned int i = 0; i < RING; i++) {
        taken->ring[i] = host_pattern(i);
    }
    bed->trace_mask = BIT(TRACE_GROUP_TCP);
    bed->is_cut = true; /* only a time-out repairs this */
    assert_true(toe_send(&bed->toe, taken->tid, taken->ring, 3000, 0));
    toe_kick(&bed->toe);
    bed_pass(bed, 2 * SECOND);
    bed->is_cut = false;
    bed_pass(bed, 5 * SECOND);
    assert_int_equal(host_conn(bed->peer, id)->received, 3000);
    assert_true(bed_count_records(bed, TRACE_TCP_TIMEOUT) >= 1);
    assert_true(bed_count_records(bed, TRACE_TCP_RETRANSMIT) >= 2);
    assert_int_equal(bed_count_records(bed, TRACE_TCP_RETRANSMIT),
                     toe_tcp_counter_read(&bed->toe, TCP_TX_RETRANSMITS));
    assert_true(find_record(bed, TRACE_TCP_RECOVERY, true)->arg[2] > 0);
}

static void test_a_trace_has_windows_that_close_and_open(void **state)
{
    struct bed *bed = *state;
    struct taken *taken = taken_of(bed);
    uint32_t id;

    start_engine(bed);
    id = connect_peer(bed, 40000);
    bed->trace_mask = BIT(TRACE_GROUP_TCP);
    host_send(bed->peer, id, 2 * RING); /* the firmware gives no credit */
    bed_pass(bed, 3 * SECOND);
    assert_int_equal(find_record(bed, TRACE_TCP_WINDOW, true)->arg[2], 0);
    assert_int_equal(bed_count_records(bed, TRACE_TCP_WINDOW), 1);
    assert_true(toe_credit(&bed->toe, taken->tid, RING));
    toe_kick(&bed->toe);
    bed_pass(bed, 3 * SECOND);
    assert_int_equal(bed_count_records(bed, TRACE_TCP_WINDOW), 3);
    assert_int_equal(taken->received, 2 * RING);
}

static void test_a_trace_has_what_a_pool_refuses(void **state)
{
    struct bed *bed = *state;
    struct taken *taken = taken_of(bed);

    start_engine(bed);
    taken->ignores = true;
    bed->trace_mask = BIT(TRACE_GROUP_TCP);
    for (uint16_t i = 0; i <= TOE_HALF_OPEN; i++) {
        (void)bed_connect(bed, PORT, (uint16_t)(40000 + i), HOST_PATTERN);
        bed_pass(bed, 1000);
    }
    assert_int_equal(bed_count_records(bed, TRACE_TCP_REFUSED), 1);
    for (unsigned int i = 0; i < bed->num_records; i++) {
        const struct trace_record *record = &bed->records[i];

        if (record->type == TRACE_TCP_REFUSED) {
            assert_int_equal(record->arg[0], 0); /* half-open entries */
            assert_int_equal(record->arg[1], PORT);
            assert_int_equal(record->arg[2], 40000); /* the oldest */
            assert_int_equal(record->arg[6], BED_PEER);
        }
    }
}

TEST_FIXTURE(setup, teardown)
