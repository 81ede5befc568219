/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/test_fixture.h"
#include "tests/unit/net/switch/switch_test.h"

TEST_FIXTURE(bed_setup, bed_teardown)

enum { LEN = 1000, WIRE = SWITCH_PREFIX + LEN };

/* Station n is behind port n. */
static void learn_stations(struct bed *bed)
{
    uint8_t frame[64];

    for (uint8_t port = 0; port < BED_PORTS; port++) {
        bed_frame(frame, sizeof(frame), 99, port, 0);
        bed_send(bed, port, frame, sizeof(frame));
    }
    for (uint8_t port = 0; port < BED_PORTS; port++) {
        bed_take_all(bed, port);
        switch_port_reset_counters(bed->core, port);
    }
}

static void number_frame(uint8_t *bytes, uint8_t dst, uint8_t src,
                         uint32_t number)
{
    put_be32(bytes, LEN);
    bed_frame(bytes + SWITCH_PREFIX, LEN, dst, src, 0);
    put_be32(bytes + SWITCH_PREFIX + 20, number);
}

/* Send numbered frames until no byte is taken. @return whole frames sent */
static uint32_t fill_port(struct bed *bed, uint8_t from, uint8_t to,
                          uint32_t number)
{
    uint8_t bytes[WIRE];

    for (;; number++) {
        size_t at = 0;

        number_frame(bytes, to, from, number);
        while (at < WIRE) {
            size_t n = bed_send_bytes(bed, from, bytes + at, WIRE - at);

            bed_run(bed);
            if (n == 0) {
                /* A frame is never half-sent here: room is 32 KiB or none. */
                assert_int_equal(at, 0);
                return number;
            }
            at += n;
        }
        assert_true(number < 10000);
    }
}

static uint32_t frame_number(const uint8_t *frame)
{
    return get_be32(frame + 20);
}

static void test_a_device_that_does_not_read_stops_its_sender_and_loses_nothing(
    void **state)
{
    struct bed *bed = *state;
    struct switch_port_status status;
    uint8_t frame[LEN], *at;
    uint32_t sent, got = 0;

    learn_stations(bed);
    sent = fill_port(bed, 0, 1, 0);
    assert_true(sent > SWITCH_QUEUE_MIN / WIRE);
    switch_port_status(bed->core, 0, &status);
    assert_true(status.paused);
    assert_int_equal(status.counters[SWITCH_RX_PAUSES], 1);
    assert_int_equal(switch_rx_room(bed->core, 0, &at), 0);
    while (bed_take(bed, 1, frame, LEN) != 0) {
        assert_int_equal(frame_number(frame), got);
        got++;
        bed_run(bed);
    }
    assert_int_equal(got, sent);
    assert_true(switch_rx_room(bed->core, 0, &at) != 0);
}

static void test_others_go_on_while_one_device_does_not_read(void **state)
{
    struct bed *bed = *state;
    uint8_t bytes[WIRE];

    learn_stations(bed);
    (void)fill_port(bed, 0, 1, 0);
    for (uint32_t i = 0; i < 1000; i++) {
        number_frame(bytes, 3, 2, i);
        bed_send(bed, 2, bytes + SWITCH_PREFIX, LEN);
        number_frame(bytes, 0, 3, i);
        bed_send(bed, 3, bytes + SWITCH_PREFIX, LEN);
        assert_int_equal(bed_take_all(bed, 3), 1);
        assert_int_equal(bed_take_all(bed, 0), 1);
    }
}

static void test_a_broadcast_waits_for_the_last_port_and_comes_once(
    void **state)
{
    struct bed *bed = *state;
    uint8_t frame[LEN];
    uint32_t sent;

    learn_stations(bed);
    sent = fill_port(bed, 0, 1, 0);
    bed_frame(frame, 60, 99, 2, 0);
    frame[0] = 0xff;
    bed_send(bed, 2, frame, 60);
    assert_int_equal(bed_take_all(bed, 0), 1);
    assert_int_equal(bed_take_all(bed, 3), 1);
    for (uint32_t got = 0; got < sent;) {
        size_t len = bed_take(bed, 1, frame, LEN);

        bed_run(bed);
        assert_true(len != 0);
        got += len == LEN;
    }
    bed_run(bed);
    (void)bed_take_all(bed, 1);
    assert_int_equal(bed_counter(bed, 1, SWITCH_TX_FRAMES), sent + 1);
    assert_int_equal(bed_take_all(bed, 0) + bed_take_all(bed, 3), 0);
}

static void test_inputs_that_wait_for_one_output_share_it(void **state)
{
    struct bed *bed = *state;
    uint32_t from[BED_PORTS] = {0}, next[BED_PORTS] = {0};
    uint8_t frame[LEN];

    learn_stations(bed);
    for (uint8_t port = 0; port < 3; port++) {
        next[port] = fill_port(bed, port, 3, 0);
    }
    (void)bed_take_all(bed, 3);
    bed_run(bed);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(bed_take(bed, 3, frame, LEN), LEN);
        bed_run(bed);
        from[frame[11]]++;
        for (uint8_t port = 0; port < 3; port++) {
            next[port] = fill_port(bed, port, 3, next[port]);
        }
    }
    for (uint8_t port = 0; port < 3; port++) {
        assert_in_range(from[port], 700, 1300);
    }
}

static void test_a_port_that_drops_stops_nobody(void **state)
{
    struct bed *bed = *state;
    struct switch_port_config config = bed_config(bed, 1);
    uint8_t bytes[WIRE];
    unsigned got;

    config.full = SWITCH_FULL_DROP;
    switch_port_set(bed->core, 1, &config);
    learn_stations(bed);
    for (uint32_t i = 0; i < 500; i++) {
        number_frame(bytes, 1, 0, i);
        bed_send(bed, 0, bytes + SWITCH_PREFIX, LEN);
    }
    got = bed_take_all(bed, 1);
    assert_in_range(got, 100, 200);
    assert_int_equal(bed_counter(bed, 1, SWITCH_TX_FULL), 500 - got);
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_PAUSES), 0);
}

static void test_a_stalled_port_drops_after_its_time_until_it_goes_on(
    void **state)
{
    struct bed *bed = *state;
    struct switch_port_config config = bed_config(bed, 1);
    uint8_t frame[LEN], *at;

    config.stall_ns = 5000;
    switch_port_set(bed->core, 1, &config);
    learn_stations(bed);
    (void)fill_port(bed, 0, 1, 0);
    assert_int_equal(bed->deadline_ns, bed->now_ns + 5000);
    bed->now_ns += 4999;
    bed_run(bed);
    assert_int_equal(switch_rx_room(bed->core, 0, &at), 0);
    bed->now_ns += 1;
    bed_run(bed);
    assert_true(switch_rx_room(bed->core, 0, &at) != 0);
    assert_true(bed_counter(bed, 1, SWITCH_TX_STALLED) != 0);
    assert_int_equal(bed_take(bed, 1, frame, LEN), LEN);
    (void)fill_port(bed, 0, 1, 0);
    assert_int_equal(switch_rx_room(bed->core, 0, &at), 0);
}

static void test_frames_on_a_long_cable_are_no_stall(void **state)
{
    struct bed *bed = *state;
    struct switch_port_config config = bed_config(bed, 1);

    config.stall_ns = 5000;
    config.cable[SWITCH_OUT].delay_ns = 1000000;
    switch_port_set(bed->core, 1, &config);
    learn_stations(bed);
    bed->now_ns += 2000000;
    bed_run(bed);
    (void)bed_take_all(bed, 1);
    (void)fill_port(bed, 0, 1, 0);
    bed->now_ns += 1000000 - 1;
    bed_run(bed);
    assert_int_equal(bed_counter(bed, 1, SWITCH_TX_STALLED), 0);
    bed->now_ns += 5000;
    bed_run(bed);
    assert_int_equal(bed_counter(bed, 1, SWITCH_TX_STALLED), 0);
    bed->now_ns += 1;
    bed_run(bed);
    assert_true(bed_counter(bed, 1, SWITCH_TX_STALLED) != 0);
}

static void test_an_input_goes_on_when_the_port_it_waits_for_is_unplugged(
    void **state)
{
    struct bed *bed = *state;
    uint8_t bytes[WIRE], *at;

    learn_stations(bed);
    (void)fill_port(bed, 0, 1, 0);
    switch_port_disconnect(bed->core, 1);
    bed_run(bed);
    assert_true(switch_rx_room(bed->core, 0, &at) != 0);
    (void)bed_take_all(bed, 2);
    number_frame(bytes, 2, 0, 0);
    bed_send(bed, 0, bytes + SWITCH_PREFIX, LEN);
    assert_int_equal(bed_take_all(bed, 2), 1);
}

static void test_an_input_whose_link_goes_down_drops_what_waits(void **state)
{
    struct bed *bed = *state;
    struct switch_port_config config = bed_config(bed, 0);
    struct switch_port_status status;
    uint8_t *at;

    learn_stations(bed);
    (void)fill_port(bed, 0, 1, 0);
    config.link_up = false;
    switch_port_set(bed->core, 0, &config);
    bed_run(bed);
    switch_port_status(bed->core, 0, &status);
    assert_false(status.paused);
    assert_true(status.counters[SWITCH_RX_LINK_DOWN] != 0);
    assert_true(switch_rx_room(bed->core, 0, &at) != 0);
}

/* More frames than the ring of received frames holds: the buffer has room for
 * them. */
enum { SHORT = 14, SHORT_FRAMES = 10000 };
#define SHORT_WIRE (SWITCH_PREFIX + SHORT)

/* Send short frames from station 0 to station 1, and `extra` bytes of the next
 * one. */
static void send_short_frames(struct bed *bed, size_t extra)
{
    uint8_t *bytes = calloc(SHORT_FRAMES + 1, SHORT_WIRE);
    size_t len = (size_t)SHORT_FRAMES * SHORT_WIRE + extra;

    for (size_t i = 0; i <= SHORT_FRAMES; i++) {
        put_be32(bytes + i * SHORT_WIRE, SHORT);
        bed_frame(bytes + i * SHORT_WIRE + SWITCH_PREFIX, SHORT, 1, 0, 0);
    }
    assert_int_equal(bed_send_bytes(bed, 0, bytes, len), len);
    free(bytes);
}

/* Take frames for station 1 until none comes. @return how many came */
static unsigned run_and_take_all(struct bed *bed)
{
    unsigned got = 0, more;

    do {
        bed_run(bed);
        more = bed_take_all(bed, 1);
        got += more;
    } while (more != 0);
    return got;
}

static void test_more_short_frames_than_the_rings_hold_are_not_lost(
    void **state)
{
    struct bed *bed = *state;

    learn_stations(bed);
    send_short_frames(bed, 0);
    assert_int_equal(run_and_take_all(bed), SHORT_FRAMES);
}

static void test_whole_frames_come_although_their_sender_has_disconnected(
    void **state)
{
    struct bed *bed = *state;
    uint8_t frame[SHORT];

    learn_stations(bed);
    send_short_frames(bed, SHORT_WIRE - 1);
    switch_port_disconnect(bed->core, 0);
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_CUT), 1);
    /* The next connection begins with a new frame, behind the old ones. */
    switch_port_connect(bed->core, 0);
    bed_frame(frame, SHORT, 1, 0, 0);
    bed_send(bed, 0, frame, SHORT);
    assert_int_equal(run_and_take_all(bed), SHORT_FRAMES + 1);
}

static void test_a_link_that_goes_down_drops_all_short_frames_that_wait(
    void **state)
{
    struct bed *bed = *state;
    struct switch_port_config config = bed_config(bed, 0);
    unsigned got;

    learn_stations(bed);
    send_short_frames(bed, 0);
    bed_run(bed);
    config.link_up = false;
    switch_port_set(bed->core, 0, &config);
    config.link_up = true;
    switch_port_set(bed->core, 0, &config);
    got = run_and_take_all(bed);
    assert_int_equal(got + bed_counter(bed, 0, SWITCH_RX_LINK_DOWN),
                     SHORT_FRAMES);
    assert_in_range(got, 1, SHORT_FRAMES / 2);
}
