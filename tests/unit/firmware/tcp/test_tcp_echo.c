/* SPDX-License-Identifier: BSD-2-Clause */
/* Echo and discard over the TCP offload engine: docs/echo.md. */
#include "tests/unit/firmware/tcp/tcp_bed.h"

#include "firmware/tcp/tcp_echo.h"
#include "tests/test_fixture.h"

enum { SECOND = 1000000, LITTLE = 1000, MUCH = 300000, BUDGET = 64 };

static struct tcp_echo *echo_of(struct bed *bed)
{
    return bed->firmware;
}

/* As tcp_engine.c does. */
static void take_entry(void *ctx, const struct toe_entry *entry)
{
    struct bed *bed = ctx;

    if (!tcp_echo_take(echo_of(bed), entry, model.env.now_ns / 1000) &&
        entry->kind == TOE_KIND_ENDED) { /* one that was refused */
        assert_true(toe_release(&bed->toe, entry->tid));
    }
}

static void turn_services(struct bed *bed)
{
    while (toe_room(&bed->toe) >= BUDGET * TCP_ECHO_COMMANDS &&
           toe_poll(&bed->toe, BUDGET, take_entry, bed) != 0) {
        toe_kick(&bed->toe);
    }
    (void)tcp_echo_step(echo_of(bed), model.env.now_ns / 1000);
    toe_kick(&bed->toe);
}

static int setup(void **state)
{
    struct bed *bed = bed_new();
    struct tcp_echo *echo = calloc(1, sizeof(*echo));
    uint8_t *rings =
        dram_reserve(&model.dram, tcp_echo_memory_len(TCP_ECHO_RING_LOG2), 64);

    assert_non_null(echo);
    assert_non_null(rings);
    bed->firmware = echo;
    bed->turn = turn_services;
    tcp_echo_init(echo, &bed->toe, rings, TCP_ECHO_RING_LOG2);
    bed_start_engine(bed, TCP_ECHO_RING_LOG2);
    assert_true(tcp_echo_listen(echo, true));
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

/* Nothing of a connection is left in the services and in the engine. */
static void expect_idle(struct bed *bed)
{
    struct tcp_echo *echo = echo_of(bed);

    assert_int_equal(echo->used, 0);
    for (unsigned int i = 0; i < TCP_ECHO_CONNS; i++) {
        assert_int_equal(echo->conns[i].state, TCP_ECHO_FREE);
    }
    for (unsigned int i = 0; i < TOE_SLOTS; i++) {
        assert_int_equal(echo->conn_of[i], 0);
        assert_int_equal(bed->hw.state.conns[i].state, TOE_SLOT_FREE);
    }
    assert_int_equal(toe_counter_read(&bed->toe, TOE_COUNT_REFUSED), 0);
}

/* Open a connection, send, close, and wait for the rest of the echo. */
static void exchange_bytes(struct bed *bed, uint16_t from, uint32_t bytes)
{
    uint32_t id = bed_connect(bed, TCP_ECHO_PORT, from, HOST_PATTERN);
    struct host_conn *conn = &bed->peer->conns[id & 0xffff];

    for (int i = 0; i < 600 && bed->peer->established_id != id; i++) {
        bed_pass(bed, SECOND / 10);
    }
    assert_int_equal(bed->peer->established_id, id);
    host_send(bed->peer, id, bytes);
    conn->closes = true;
    for (int i = 0; i < 600 && conn->received != bytes; i++) {
        bed_pass(bed, SECOND / 10);
    }
    assert_int_equal(conn->received, bytes);
    assert_false(conn->is_wrong);
    for (int i = 0; i < 900 && conn->id != TCP_NO_ID; i++) {
        bed_pass(bed, SECOND / 10);
    }
    assert_int_equal(bed->peer->ended_id, id);
    assert_int_equal(bed->peer->end, TCP_END_CLOSED);
    bed_pass(bed, SECOND / 10);
}

static void test_what_is_sent_comes_back_and_both_sides_close(void **state)
{
    struct bed *bed = *state;

    exchange_bytes(bed, 40000, LITTLE);
    exchange_bytes(bed, 40001, MUCH);
    assert_int_equal(echo_of(bed)->counters.connections, 2);
    assert_int_equal(echo_of(bed)->counters.echoed_bytes, LITTLE + MUCH);
    expect_idle(bed);
}

/* The ring wraps at every place, and nothing is lost, doubled or mixed up. */
static void test_the_echo_is_right_although_frames_are_lost(void **state)
{
    struct bed *bed = *state;

    bed->lost_in = 5;
    for (uint16_t i = 0; i < 4; i++) {
        exchange_bytes(bed, (uint16_t)(40000 + i), MUCH / 10 + i);
    }
    bed->lost_in = 0;
    bed_pass(bed, 200 * (uint64_t)SECOND);
    expect_idle(bed);
    assert_true(toe_tcp_counter_read(&bed->toe, TCP_TX_RETRANSMITS) != 0);
}

static void test_discard_sends_nothing_and_counts(void **state)
{
    struct bed *bed = *state;
    uint32_t id = bed_connect(bed, TCP_DISCARD_PORT, 40000, HOST_PATTERN);

    bed_pass(bed, SECOND);
    host_send(bed->peer, id, MUCH);
    bed->peer->conns[id & 0xffff].closes = true;
    bed_pass(bed, 60 * SECOND);
    assert_int_equal(bed->peer->end, TCP_END_CLOSED);
    assert_int_equal(bed->peer->conns[id & 0xffff].received, 0);
    assert_int_equal(echo_of(bed)->counters.discarded_bytes, MUCH);
    expect_idle(bed);
}

/* A peer that does not read fills its window; its bytes wait, the services do
 * not, and the rest comes when it reads again. */
static void test_a_peer_that_does_not_read_stops_only_itself(void **state)
{
    struct bed *bed = *state;
    uint32_t id = bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_MANUAL);
    struct host_conn *conn;

    bed_pass(bed, SECOND);
    conn = host_conn(bed->peer, id);
    assert_non_null(conn);
    host_send(bed->peer, id, MUCH);
    bed_pass(bed, 5 * SECOND);
    assert_true(conn->received < MUCH);
    exchange_bytes(bed, 40001, LITTLE);
    for (unsigned int i = 0; i < 200 && conn->received < MUCH; i++) {
        conn->to_consume = (uint32_t)(conn->received - conn->consumed);
        bed_pass(bed, SECOND);
    }
    assert_int_equal(conn->received, MUCH);
    assert_false(conn->is_wrong);
    conn->to_consume = (uint32_t)(conn->received - conn->consumed);
    conn->closes = true;
    bed_pass(bed, 100 * SECOND);
    expect_idle(bed);
}

/* More pieces wait than SENDs may be outstanding when the peer closes: all of
 * them come back before the services close, too. */
static void test_what_waits_is_sent_after_the_peer_has_closed(void **state)
{
    enum { PIECES = 3 * TOE_SENDS, PIECE = 100 };
    struct bed *bed = *state;
    uint32_t window = bed->peer->config.window_bytes;
    uint32_t id = bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_MANUAL);
    struct host_conn *conn = &bed->peer->conns[id & 0xffff];

    bed_pass(bed, SECOND);
    host_send(bed->peer, id, window);
    bed_pass(bed, 5 * SECOND);
    assert_int_equal(conn->received, window); /* it takes no more now */
    for (unsigned int i = 0; i < PIECES; i++) {
        host_send(bed->peer, id, PIECE);
        bed_pass(bed, SECOND / 50);
    }
    assert_int_equal(echo_of(bed)->conns[0].outstanding, TOE_SENDS);
    conn->closes = true;
    bed_pass(bed, SECOND);
    assert_true(echo_of(bed)->conns[0].is_finished);
    for (int i = 0; i < 30 && !conn->finished; i++) {
        conn->to_consume = (uint32_t)(conn->received - conn->consumed);
        bed_pass(bed, SECOND);
    }
    assert_int_equal(conn->received, window + PIECES * PIECE);
    assert_false(conn->is_wrong);
    bed_pass(bed, SECOND);
    expect_idle(bed);
}

static void test_more_peers_than_there_are_connections_are_refused(void **state)
{
    enum { MORE = 8 };
    struct bed *bed = *state;
    struct host *peer = bed->peer;

    for (uint16_t i = 0; i < TCP_ECHO_CONNS + MORE; i++) {
        (void)bed_connect(bed, TCP_ECHO_PORT, (uint16_t)(40000 + i),
                          HOST_PATTERN);
        bed_pass(bed, 1000);
    }
    bed_pass(bed, SECOND);
    assert_int_equal(peer->established_count, TCP_ECHO_CONNS);
    assert_int_equal(peer->ended_count, MORE);
    assert_int_equal(peer->end, TCP_END_REFUSED);
    assert_int_equal(echo_of(bed)->counters.refused, MORE);
    assert_int_equal(echo_of(bed)->used, TCP_ECHO_CONNS);
    for (unsigned int i = 0; i < BED_PEERS; i++) {
        peer->conns[i].closes = peer->conns[i].id != TCP_NO_ID;
    }
    bed_pass(bed, 100 * SECOND);
    expect_idle(bed);
    exchange_bytes(bed, 50000, LITTLE); /* and there is room again */
}

static void test_a_silent_connection_is_reset(void **state)
{
    struct bed *bed = *state;

    (void)bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_PATTERN);
    bed_pass(bed, SECOND);
    assert_int_equal(echo_of(bed)->used, 1);
    bed_pass(bed, TCP_ECHO_IDLE_US - 2 * SECOND);
    assert_int_equal(echo_of(bed)->counters.idle, 0);
    bed_pass(bed, 3 * SECOND);
    bed_pass(bed, SECOND);
    assert_int_equal(echo_of(bed)->counters.idle, 1);
    assert_int_equal(bed->peer->end, TCP_END_RESET);
    expect_idle(bed);
}

static void test_a_reset_by_the_peer_frees_everything(void **state)
{
    struct bed *bed = *state;
    uint32_t id = bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_MANUAL);

    bed_pass(bed, SECOND);
    host_send(bed->peer, id, MUCH);
    bed_pass(bed, SECOND); /* its window is full: SENDs are outstanding */
    assert_true(echo_of(bed)->conns[0].outstanding != 0);
    tcp_abort(bed->peer->tcp, id, bed->peer->now_us);
    bed_pass(bed, SECOND);
    expect_idle(bed);
}

static void test_switching_off_resets_connections_of_every_state(void **state)
{
    struct bed *bed = *state;
    uint32_t busy = bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_MANUAL);
    uint32_t closing = bed_connect(bed, TCP_ECHO_PORT, 40001, HOST_MANUAL);

    (void)bed_connect(bed, TCP_DISCARD_PORT, 40002, HOST_PATTERN);
    bed_pass(bed, SECOND);
    host_send(bed->peer, busy, MUCH);
    host_send(bed->peer, closing, MUCH);
    bed->peer->conns[closing & 0xffff].closes = true;
    bed_pass(bed, SECOND);
    assert_true(tcp_echo_listen(echo_of(bed), false));
    bed_pass(bed, SECOND);
    assert_int_equal(bed->peer->ended_count, 3);
    assert_int_equal(bed->peer->end, TCP_END_RESET);
    expect_idle(bed);
    (void)bed_connect(bed, TCP_ECHO_PORT, 40003, HOST_PATTERN);
    bed_pass(bed, SECOND);
    assert_int_equal(bed->peer->end, TCP_END_REFUSED);
    assert_true(tcp_echo_listen(echo_of(bed), true));
    exchange_bytes(bed, 40004, LITTLE);
}

/* A word of a ring is lost before it is sent back: this connection ends, the
 * others go on. */
static void test_a_lost_word_ends_one_connection(void **state)
{
    struct bed *bed = *state;
    struct tcp_echo *echo = echo_of(bed);
    const struct tcp_echo_conn *c = &echo->conns[0];
    uint32_t id = bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_MANUAL);
    uint32_t other;
    struct host_conn *conn;

    bed_pass(bed, SECOND);
    conn = host_conn(bed->peer, id);
    assert_non_null(conn);
    other = bed_connect(bed, TCP_ECHO_PORT, 40001, HOST_PATTERN);
    host_send(bed->peer, id, MUCH);
    bed_pass(bed, 5 * SECOND); /* its window and the ring are full */
    model.env.lost =
        hal_dma_addr(c->ring) + (c->received - 64) % (1u << TCP_ECHO_RING_LOG2);
    conn->to_consume = (uint32_t)(conn->received - conn->consumed);
    bed_pass(bed, SECOND);
    assert_int_equal(bed->peer->ended_count, 1);
    assert_int_equal(bed->peer->ended_id, id);
    assert_int_equal(bed->peer->end, TCP_END_RESET);
    assert_int_equal(toe_counter_read(&bed->toe, TOE_COUNT_LOST_WORDS), 1);
    assert_int_equal(echo->used, 1);
    model.env.lost = 0;
    host_send(bed->peer, other, LITTLE);
    bed_pass(bed, SECOND);
    assert_int_equal(host_conn(bed->peer, other)->received, LITTLE);
}

/* The cable is pulled for 30 s in the middle of a transfer. */
static void test_a_transfer_goes_on_after_the_cable_was_pulled(void **state)
{
    struct bed *bed = *state;
    uint32_t id = bed_connect(bed, TCP_ECHO_PORT, 40000, HOST_PATTERN);
    const struct host_conn *conn;

    bed_pass(bed, SECOND);
    conn = host_conn(bed->peer, id);
    assert_non_null(conn);
    host_send(bed->peer, id, MUCH);
    bed_pass(bed, 1000);
    assert_in_range(conn->received, 1, MUCH - 1);
    bed->is_cut = true;
    bed_pass(bed, 30 * SECOND);
    bed->is_cut = false;
    bed_pass(bed, 80 * SECOND);
    assert_int_equal(conn->received, MUCH);
    assert_false(conn->is_wrong);
}

/* ---- A port that is full. */

enum { FALSE_SYNS = 60 };

static unsigned int refuse_frames(void *ctx, const struct frame_tx *burst,
                                  unsigned int count)
{
    (void)ctx;
    (void)burst;
    (void)count;
    return 0;
}

/* A SYN with a false source, of which the peer does not know, at port 1. */
static void send_false_syn(struct bed *bed, uint32_t source)
{
    uint8_t data[ETH_LEN + IPV4_LEN + TCP_LEN] = {0x02, 0, 0, 0, 0, 1, 0x02,
                                                  0,    0, 0, 0, 3, 8, 0};
    const struct tcp_header header = {.src_port = 40000,
                                      .dst_port = TCP_ECHO_PORT,
                                      .seq = 100,
                                      .window = 1000,
                                      .flags = TCP_SYN};
    const struct ipv4 ip = {.src = ip_addr_from_v4(0x0b000001 + source),
                            .dst = ip_addr_from_v4(BED_OWN),
                            .total_len_bytes = IPV4_LEN + TCP_LEN,
                            .ttl = 64,
                            .protocol = IP_PROTOCOL_TCP};
    uint8_t *tcp = data + ETH_LEN + IPV4_LEN;
    const struct frame_rx frame = {.data = data, .len_bytes = sizeof(data)};

    ipv4_emit(&ip, data + ETH_LEN);
    (void)tcp_header_emit(&header, tcp);
    put_be16(tcp + TCP_CHECKSUM, 0);
    put_be16(tcp + TCP_CHECKSUM, tcp_checksum(&ip.src, &ip.dst, tcp, TCP_LEN));
    hw_toe_rx(&bed->hw, 1, &frame, 1);
    model_settle();
    bed->turn(bed);
}

static void fill_places(struct bed *bed)
{
    const struct ip_addr own = ip_addr_from_v4(BED_OWN);

    hw_toe_attach_port(&bed->hw, 1,
                       &(struct frame_sink){.ctx = bed, .send = refuse_frames});
    assert_true(toe_set_laddr(&bed->toe, 1, 1, own.bytes, 0xffff));
    toe_kick(&bed->toe);
    for (uint16_t i = 0; i < TCP_ECHO_CONNS - FALSE_SYNS; i++) {
        (void)bed_connect(bed, TCP_ECHO_PORT, (uint16_t)(40000 + i),
                          HOST_PATTERN);
        bed_pass(bed, SECOND / 100);
    }
    for (uint32_t i = 0; i < FALSE_SYNS; i++) {
        send_false_syn(bed, i);
    }
    assert_int_equal(echo_of(bed)->used, TCP_ECHO_CONNS);
}

/* Places whose port takes no RST are free at once for honest peers of the other
 * port, and established connections keep theirs. */
static void test_syns_behind_a_full_port_keep_nobody_out(void **state)
{
    struct bed *bed = *state;

    fill_places(bed);
    for (uint16_t i = 0; i < 10; i++) {
        uint32_t id = bed_connect(bed, TCP_ECHO_PORT, (uint16_t)(50000 + i),
                                  HOST_PATTERN);

        bed_pass(bed, SECOND / 100);
        assert_int_equal(bed->peer->established_id, id);
    }
    assert_int_equal(echo_of(bed)->used, TCP_ECHO_CONNS);
    assert_int_equal(echo_of(bed)->counters.refused, 0);
    assert_int_equal(bed->peer->ended_count, 0);
}

/* Peers of the other port are reset at once when the services are switched off,
 * and the services come to an end although the full port stays so. */
static void test_switching_off_ends_although_a_port_stays_full(void **state)
{
    struct bed *bed = *state;

    fill_places(bed);
    assert_true(tcp_echo_listen(echo_of(bed), false));
    bed_pass(bed, SECOND / 100);
    assert_int_equal(bed->peer->ended_count, TCP_ECHO_CONNS - FALSE_SYNS);
    assert_int_equal(bed->peer->end, TCP_END_RESET);
    assert_int_equal(echo_of(bed)->used, FALSE_SYNS);
    bed_pass(bed, 4 * SECOND);
    expect_idle(bed);
}

/* The oldest connection that is to make room becomes established meanwhile: it
 * stays, and another one makes room. */
static void test_a_place_that_is_established_meanwhile_stays(void **state)
{
    struct bed *bed = *state;
    struct tcp_echo *echo = echo_of(bed);
    struct toe_entry asked = {.kind = TOE_KIND_ASKED, .port = TCP_ECHO_PORT};
    struct toe_entry established = {.kind = TOE_KIND_ESTABLISHED};

    fill_places(bed);
    asked.tid = 0x00010000 + TOE_SLOTS - 1; /* of which the engine knows not */
    established.tid = echo->conns[TCP_ECHO_CONNS - FALSE_SYNS].tid;
    assert_true(tcp_echo_take(echo, &asked, model.env.now_ns / 1000));
    assert_int_equal(echo->conns[TCP_ECHO_CONNS - FALSE_SYNS].next_tid,
                     asked.tid);
    assert_true(tcp_echo_take(echo, &established, model.env.now_ns / 1000));
    assert_int_equal(echo->conns[TCP_ECHO_CONNS - FALSE_SYNS].state,
                     TCP_ECHO_OPEN);
    assert_int_equal(echo->conns[TCP_ECHO_CONNS - FALSE_SYNS].next_tid, 0);
    assert_int_equal(echo->conns[TCP_ECHO_CONNS - FALSE_SYNS + 1].next_tid,
                     asked.tid);
}

TEST_FIXTURE(setup, teardown)
