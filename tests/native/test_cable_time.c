/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames that take time on the cable of the native process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "firmware/native/cable.h"
#include "firmware/native/world.h"
#include "tests/test_fixture.h"

enum {
    LEN = 1000,
    FRAME_NS = (LEN + 24) * 8 / 25 + 1, /* at 25 Gb/s, rounded up */
    DELAY_NS = 500,
    FRAMES_MAX = 64,
};

static struct end {
    unsigned int frames, rooms;
    uint64_t at_ns[FRAMES_MAX];
} ends[2];

static struct native_world world;
static struct cable cable;

static void receive_frames(void *ctx, const struct frame_rx *frames,
                           unsigned int count)
{
    struct end *end = ctx;

    (void)frames;
    for (unsigned int i = 0; i < count; i++) {
        end->at_ns[end->frames++ % FRAMES_MAX] = world.now_ns;
    }
}

static void note_room(void *ctx)
{
    ((struct end *)ctx)->rooms++;
}

static int set_up(void **state)
{
    (void)state;
    native_world_init(&world);
    cable_init(&cable);
    for (unsigned int i = 0; i < 2; i++) {
        const struct link_port plug = {
            .ctx = &ends[i], .receive = receive_frames, .room = note_room};

        ends[i] = (struct end){0};
        cable_plug_in(&cable, i, &plug);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cable_end(&cable);
    native_world_end(&world);
    return 0;
}

TEST_FIXTURE(set_up, tear_down)

/* @return how many of `count` frames the cable has taken */
static unsigned int send_frames(unsigned int end, unsigned int count)
{
    static uint8_t data[LEN];
    const struct frame_sink sink = cable_sink(&cable, end);
    const struct frame_tx frame = {.num_pieces = 1,
                                   .pieces = {{data, sizeof(data)}}};
    unsigned int taken = 0;

    while (taken < count && sink.send(sink.ctx, &frame, 1) == 1) {
        taken++;
    }
    return taken;
}

/* Let time pass from one deadline of the cable to the next. */
static void pass_deadlines(void)
{
    uint64_t next_ns = cable_deadline_ns(&cable);

    while (next_ns != NATIVE_NO_DEADLINE) {
        assert_true(next_ns > world.now_ns);
        world.now_ns = next_ns;
        while (cable_step(&cable)) {
        }
        next_ns = cable_deadline_ns(&cable);
    }
}

static void set_speed(uint32_t fifo_bytes)
{
    const struct cable_time time = {
        .speed_mbps = 25000, .delay_ns = DELAY_NS, .fifo_bytes = fifo_bytes};

    cable_set_time(&cable, &time);
}

static void test_frames_take_no_time_by_default(void **state)
{
    uint64_t begin_ns = world.now_ns;

    (void)state;
    assert_int_equal(send_frames(0, 3), 3);
    assert_true(cable_step(&cable));
    assert_int_equal(ends[1].frames, 3);
    assert_int_equal(ends[1].at_ns[2], begin_ns);
    assert_true(cable_deadline_ns(&cable) == NATIVE_NO_DEADLINE);
}

static void test_frames_follow_each_other_at_line_rate(void **state)
{
    uint64_t begin_ns = world.now_ns;

    (void)state;
    set_speed(65536);
    assert_int_equal(send_frames(0, 20), 20);
    assert_int_equal(send_frames(1, 1), 1); /* the other direction is free */
    assert_false(cable_step(&cable));
    pass_deadlines();
    assert_int_equal(ends[1].frames, 20);
    assert_int_equal(ends[1].at_ns[0], begin_ns + FRAME_NS + DELAY_NS);
    assert_int_equal(ends[0].at_ns[0], begin_ns + FRAME_NS + DELAY_NS);
    /* 327.68 ns each: fractions of a nanosecond are not lost. */
    assert_int_equal(ends[1].at_ns[19], begin_ns + 6554 + DELAY_NS);
    assert_int_equal(cable.lane[0].busy_ps, 20 * 327680);
}

static void test_a_full_sender_waits_until_it_has_sent(void **state)
{
    unsigned int taken;

    (void)state;
    set_speed(4 * (LEN + 24));
    taken = send_frames(0, 20);
    assert_int_equal(taken, 5); /* four wait behind the one that is sent */
    assert_int_equal(ends[0].rooms, 0);
    pass_deadlines();
    assert_int_equal(ends[1].frames, 5);
    assert_int_equal(ends[0].rooms, 1);
    assert_int_equal(send_frames(0, 20), 5);
}

static void test_a_held_lane_has_no_deadline(void **state)
{
    (void)state;
    set_speed(65536);
    cable.lane[0].is_held = true;
    assert_int_equal(send_frames(0, 2), 2);
    assert_true(cable_deadline_ns(&cable) == NATIVE_NO_DEADLINE);
    world.now_ns += 1000000;
    assert_false(cable_step(&cable));
    cable.lane[0].is_held = false;
    assert_true(cable_step(&cable));
    assert_int_equal(ends[1].frames, 2);
}

static enum cable_verdict hold_the_first(void *ctx, unsigned int from,
                                         uint64_t number, uint8_t *data,
                                         uint32_t *len_bytes)
{
    (void)ctx;
    (void)from;
    (void)data;
    (void)len_bytes;
    return number == 0 ? CABLE_LATER : CABLE_PASS;
}

/* A frame that has been sent arrives, though another one, which goes before it,
 * is lost with its port. */
static void test_a_frame_that_is_not_sent_is_lost_wherever_it_is(void **state)
{
    const struct link_port plug = {.ctx = &ends[0], .receive = receive_frames};

    (void)state;
    set_speed(65536);
    cable.filter = hold_the_first;
    assert_int_equal(send_frames(0, 2), 2);
    world.now_ns += FRAME_NS;
    cable_plug_in(&cable, 0, &plug);
    assert_int_equal(cable.lane[0].put - cable.lane[0].get, 1);
    pass_deadlines();
    assert_int_equal(ends[1].frames, 1);
}
