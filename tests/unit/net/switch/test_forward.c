/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/test_fixture.h"
#include "tests/unit/net/switch/switch_test.h"

TEST_FIXTURE(bed_setup, bed_teardown)

enum { LEN = 64 };

static void test_a_frame_to_an_unknown_address_leaves_through_all_other_ports(
    void **state)
{
    struct bed *bed = *state;
    uint8_t sent[LEN], got[LEN];

    bed_frame(sent, LEN, 9, 1, 0x5a);
    bed_send(bed, 0, sent, LEN);
    for (uint8_t port = 1; port < BED_PORTS; port++) {
        assert_int_equal(bed_take(bed, port, got, LEN), LEN);
        assert_memory_equal(got, sent, LEN);
    }
    assert_int_equal(bed_take(bed, 0, got, LEN), 0);
}

static void test_a_frame_to_a_learned_address_leaves_through_its_port(
    void **state)
{
    struct bed *bed = *state;
    uint8_t frame[LEN];

    bed_frame(frame, LEN, 9, 2, 0);
    bed_send(bed, 2, frame, LEN);
    assert_int_equal(bed_take_all(bed, 0), 1);
    assert_int_equal(bed_take_all(bed, 1) + bed_take_all(bed, 3), 2);
    bed_frame(frame, LEN, 2, 1, 0);
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed_take_all(bed, 2), 1);
    assert_int_equal(bed_take_all(bed, 1) + bed_take_all(bed, 3), 0);
}

static void test_a_frame_to_a_station_of_its_own_port_is_dropped(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[LEN];

    bed_frame(frame, LEN, 2, 1, 0);
    bed_send(bed, 0, frame, LEN);
    bed_frame(frame, LEN, 1, 2, 0);
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_NO_OUTPUT), 1);
    assert_int_equal(bed_take_all(bed, 1), 1);
}

static void test_a_learned_address_is_forgotten_after_the_ageing_time(
    void **state)
{
    struct bed *bed = *state;
    struct switch_settings settings = {.ageing_s = 10};
    uint8_t frame[LEN];

    switch_set(bed->core, &settings);
    bed_frame(frame, LEN, 9, 2, 0);
    bed_send(bed, 2, frame, LEN);
    bed_take_all(bed, 1);
    bed->now_ns += 9 * 1000000000ull;
    bed_frame(frame, LEN, 2, 1, 0);
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed_take_all(bed, 1), 0);
    bed->now_ns += 1000000000ull;
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed_take_all(bed, 1), 1);
}

static void test_a_station_that_moves_is_learned_at_its_new_port(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[LEN];

    bed_frame(frame, LEN, 9, 2, 0);
    bed_send(bed, 2, frame, LEN);
    bed_send(bed, 3, frame, LEN);
    for (uint8_t port = 0; port < BED_PORTS; port++) {
        bed_take_all(bed, port);
    }
    bed_frame(frame, LEN, 2, 1, 0);
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed_take_all(bed, 2), 0);
    assert_int_equal(bed_take_all(bed, 3), 1);
}

static void test_addresses_of_a_port_are_forgotten_when_it_is_unplugged(
    void **state)
{
    struct bed *bed = *state;
    uint8_t frame[LEN];

    bed_frame(frame, LEN, 9, 2, 0);
    bed_send(bed, 2, frame, LEN);
    bed_take_all(bed, 1);
    switch_port_disconnect(bed->core, 2);
    bed_frame(frame, LEN, 2, 1, 0);
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed_take_all(bed, 1), 1);
    assert_int_equal(bed_take_all(bed, 2), 0);
}

static void test_link_local_frames_end_at_the_switch(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[LEN];

    for (uint8_t last = 0; last <= 0x10; last++) {
        static const uint8_t prefix[] = {0x01, 0x80, 0xc2, 0, 0};

        bed_frame(frame, LEN, 0, 1, 0);
        memcpy(frame, prefix, sizeof(prefix));
        frame[5] = last;
        bed_send(bed, 0, frame, LEN);
        assert_int_equal(bed_take_all(bed, 1), last == 0x10);
    }
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_LINK_LOCAL), 16);
}

static void test_link_local_frames_pass_on_request_except_pause(void **state)
{
    struct bed *bed = *state;
    struct switch_settings settings = {.forwards_link_local = true};
    uint8_t frame[LEN];

    switch_set(bed->core, &settings);
    for (uint8_t last = 0; last < 0x10; last++) {
        static const uint8_t prefix[] = {0x01, 0x80, 0xc2, 0, 0};

        bed_frame(frame, LEN, 0, 1, 0);
        memcpy(frame, prefix, sizeof(prefix));
        frame[5] = last;
        bed_send(bed, 0, frame, LEN);
        assert_int_equal(bed_take_all(bed, 1), last != 1);
    }
}

static void test_a_frame_from_a_group_address_is_dropped(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[LEN];

    bed_frame(frame, LEN, 9, 1, 0);
    frame[6] |= 1;
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_BAD_SOURCE), 1);
    assert_int_equal(bed_take_all(bed, 1), 0);
}

static void test_short_frames_are_counted_and_dropped(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[18];

    bed_frame(frame, sizeof(frame), 9, 1, 0);
    for (size_t len = 0; len < 14; len++) {
        bed_send(bed, 0, frame, len);
        assert_int_equal(bed_counter(bed, 0, SWITCH_RX_SHORT), len + 1);
    }
    /* A tag that is cut. */
    put_be16(frame + 12, 0x8100);
    bed_send(bed, 0, frame, 17);
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_SHORT), 15);
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_FRAMES), 15);
    assert_int_equal(bed_take_all(bed, 1), 0);
}

static void test_the_longest_frame_passes_and_a_longer_one_breaks_the_stream(
    void **state)
{
    struct bed *bed = *state;
    uint8_t *frame = malloc(SWITCH_FRAME_MAX), *got = malloc(SWITCH_FRAME_MAX);
    uint8_t length[SWITCH_PREFIX], *at;

    bed_frame(frame, SWITCH_FRAME_MAX, 9, 1, 0x77);
    bed_send(bed, 0, frame, SWITCH_FRAME_MAX);
    assert_int_equal(bed_take(bed, 1, got, SWITCH_FRAME_MAX), SWITCH_FRAME_MAX);
    assert_memory_equal(got, frame, SWITCH_FRAME_MAX);
    put_be32(length, SWITCH_FRAME_MAX + 1);
    assert_true(switch_rx_room(bed->core, 0, &at) != 0);
    memcpy(at, length, sizeof(length));
    assert_false(switch_rx_commit(bed->core, 0, sizeof(length), bed->now_ns));
    /* Nothing more is taken of it, until it connects again. */
    assert_int_equal(switch_rx_room(bed->core, 0, &at), 0);
    switch_port_disconnect(bed->core, 0);
    switch_port_connect(bed->core, 0);
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed_take(bed, 1, got, SWITCH_FRAME_MAX), LEN);
    free(frame);
    free(got);
}

static void test_frames_before_a_wrong_length_are_passed_on(void **state)
{
    struct bed *bed = *state;
    uint8_t bytes[2 * (SWITCH_PREFIX + LEN) + SWITCH_PREFIX], *at;

    for (int i = 0; i < 2; i++) {
        put_be32(bytes + (size_t)i * (SWITCH_PREFIX + LEN), LEN);
        bed_frame(bytes + (size_t)i * (SWITCH_PREFIX + LEN) + SWITCH_PREFIX,
                  LEN, 9, 1, 0);
    }
    put_be32(bytes + 2 * (SWITCH_PREFIX + LEN), 0xffffffff);
    assert_true(switch_rx_room(bed->core, 0, &at) >= sizeof(bytes));
    memcpy(at, bytes, sizeof(bytes));
    assert_false(switch_rx_commit(bed->core, 0, sizeof(bytes), bed->now_ns));
    switch_port_disconnect(bed->core, 0);
    bed_run(bed);
    assert_int_equal(bed_take_all(bed, 1), 2);
}

static void test_frames_are_whole_however_their_bytes_come(void **state)
{
    struct bed *bed = *state;
    uint8_t bytes[SWITCH_PREFIX + LEN], got[LEN];

    put_be32(bytes, LEN);
    bed_frame(bytes + SWITCH_PREFIX, LEN, 9, 1, 0x11);
    for (size_t piece = 1; piece <= sizeof(bytes); piece++) {
        for (size_t at = 0; at < sizeof(bytes); at += piece) {
            size_t n = MIN(piece, sizeof(bytes) - at);

            assert_int_equal(bed_send_bytes(bed, 0, bytes + at, n), n);
            bed_run(bed);
        }
        assert_int_equal(bed_take(bed, 1, got, LEN), LEN);
        assert_memory_equal(got, bytes + SWITCH_PREFIX, LEN);
    }
}

static void test_half_a_frame_of_an_earlier_connection_is_dropped(void **state)
{
    struct bed *bed = *state;
    uint8_t bytes[SWITCH_PREFIX + LEN];

    put_be32(bytes, LEN);
    bed_frame(bytes + SWITCH_PREFIX, LEN, 9, 1, 0);
    for (size_t cut = 1; cut < sizeof(bytes); cut++) {
        assert_int_equal(bed_send_bytes(bed, 0, bytes, cut), cut);
        switch_port_disconnect(bed->core, 0);
        switch_port_connect(bed->core, 0);
        bed_send(bed, 0, bytes + SWITCH_PREFIX, LEN);
        assert_int_equal(bed_take_all(bed, 1), 1);
        assert_int_equal(bed_counter(bed, 0, SWITCH_RX_CUT), cut);
    }
}

static void test_a_port_that_is_not_connected_gets_nothing_later(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[LEN];

    switch_port_disconnect(bed->core, 1);
    bed_frame(frame, LEN, 9, 1, 0);
    bed_send(bed, 0, frame, LEN);
    switch_port_connect(bed->core, 1);
    assert_int_equal(bed_take_all(bed, 1), 0);
    assert_int_equal(bed_take_all(bed, 2), 1);
}

static void test_a_link_that_is_down_drops_both_directions(void **state)
{
    struct bed *bed = *state;
    struct switch_port_config config = bed_config(bed, 1);
    uint8_t frame[LEN];

    bed_frame(frame, LEN, 9, 1, 0);
    bed_send(bed, 0, frame, LEN);
    config.link_up = false;
    switch_port_set(bed->core, 1, &config);
    assert_int_equal(bed_counter(bed, 1, SWITCH_TX_UNPLUGGED), 1);
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed_take_all(bed, 1), 0);
    bed_take_all(bed, 2);
    bed_frame(frame, LEN, 9, 2, 0);
    bed_send(bed, 1, frame, LEN);
    assert_int_equal(bed_counter(bed, 1, SWITCH_RX_LINK_DOWN), 1);
    assert_int_equal(bed_take_all(bed, 2), 0);
    config.link_up = true;
    switch_port_set(bed->core, 1, &config);
    bed_send(bed, 1, frame, LEN);
    assert_int_equal(bed_take_all(bed, 2), 1);
}

static void test_a_link_that_goes_down_leaves_the_frame_that_was_begun(
    void **state)
{
    struct bed *bed = *state;
    struct switch_port_config config = bed_config(bed, 1);
    struct tx_piece piece[2];
    uint8_t frame[LEN];

    bed_frame(frame, LEN, 9, 1, 0);
    bed_send(bed, 0, frame, LEN);
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(switch_tx_bytes(bed->core, 1, piece), 2 * (4 + LEN));
    switch_tx_done(bed->core, 1, 10);
    config.link_up = false;
    switch_port_set(bed->core, 1, &config);
    assert_int_equal(switch_tx_bytes(bed->core, 1, piece), 4 + LEN - 10);
    switch_tx_done(bed->core, 1, 4 + LEN - 10);
    assert_int_equal(switch_tx_ports(bed->core) & 2, 0);
    assert_int_equal(bed_counter(bed, 1, SWITCH_TX_FRAMES), 1);
    assert_int_equal(bed_counter(bed, 1, SWITCH_TX_UNPLUGGED), 1);
}

static void test_a_captured_port_hands_over_both_directions(void **state)
{
    struct bed *bed = *state;
    uint8_t frame[LEN];

    switch_port_capture(bed->core, 1, true);
    bed_frame(frame, LEN, 9, 1, 0);
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed->captured[1], 0);
    bed_take_all(bed, 1);
    assert_int_equal(bed->captured[1], 1);
    bed_frame(frame, LEN, 9, 2, 0);
    bed_send(bed, 1, frame, LEN);
    assert_int_equal(bed->captured[1], 2);
    assert_int_equal(bed->captured[0], 0);
}

static void test_every_counter_has_a_name(void **state)
{
    struct bed *bed = *state;

    for (int i = 0; i < SWITCH_COUNTERS; i++) {
        assert_non_null(switch_counter_name[i]);
        switch_count(bed->core, 0, (enum switch_counter)i);
        assert_int_equal(bed_counter(bed, 0, (enum switch_counter)i), 1);
    }
    switch_port_reset_counters(bed->core, 0);
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_FRAMES), 0);
}
