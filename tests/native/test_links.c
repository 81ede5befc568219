/* SPDX-License-Identifier: BSD-2-Clause */
/* What world/link.h asks of every link: cables, switches, sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "firmware/native/cable.h"
#include "firmware/native/socket_link.h"
#include "firmware/native/switch_link.h"
#include "firmware/native/world.h"
#include "tests/test_fixture.h"

enum {
    LEN = 1000,
    ENDS = 2,
    MANY = 4000, /* frames that fill every link */
    ROUNDS = 20 * MANY,
};

static struct native_world world;
static struct link links[ENDS];
static struct cable cable;
static struct switch_links switches;
static struct socket_link sockets[ENDS];

static struct end {
    unsigned int frames, rooms;
    bool is_in_order;
} ends[ENDS];

/* The number of a frame is in its first bytes after the Ethernet header. */
static void receive_frames(void *ctx, const struct frame_rx *frames,
                           unsigned int count)
{
    struct end *end = ctx;

    for (unsigned int i = 0; i < count; i++) {
        uint32_t number;

        assert_int_equal(frames[i].len_bytes, LEN);
        memcpy(&number, frames[i].data + 14, sizeof(number));
        end->is_in_order &= number == end->frames;
        end->frames++;
    }
}

static void note_room(void *ctx)
{
    ((struct end *)ctx)->rooms++;
}

static void plug_in(unsigned int i)
{
    const struct link_port port = {
        .ctx = &ends[i], .receive = receive_frames, .room = note_room};

    links[i].ops->plug(links[i].ctx, &port);
}

static int plug_both(void)
{
    for (unsigned int i = 0; i < ENDS; i++) {
        ends[i] = (struct end){.is_in_order = true};
        plug_in(i);
    }
    return 0;
}

static void make_cable(const struct cable_time *time)
{
    native_world_init(&world);
    cable_init(&cable);
    cable_set_time(&cable, time);
    for (unsigned int i = 0; i < ENDS; i++) {
        links[i] = cable_link(&cable, i);
    }
}

static int set_up_cable(void **state)
{
    const struct cable_time none = {0};

    (void)state;
    make_cable(&none);
    return plug_both();
}

static int set_up_slow_cable(void **state)
{
    const struct cable_time slow = {
        .speed_mbps = 25000, .delay_ns = 500, .fifo_bytes = 65536};

    (void)state;
    make_cable(&slow);
    return plug_both();
}

static int end_cable(void **state)
{
    (void)state;
    cable_end(&cable);
    native_world_end(&world);
    return 0;
}

static void make_switch(const struct shaper_config *config)
{
    native_world_init(&world);
    switch_links_init(&switches, ENDS, config);
    for (uint8_t i = 0; i < ENDS; i++) {
        links[i] = switch_link(&switches, i);
    }
}

static int set_up_switch(void **state)
{
    (void)state;
    make_switch(NULL);
    return plug_both();
}

static int set_up_slow_switch(void **state)
{
    const struct shaper_config slow = {.speed_bps = 25000000000,
                                       .delay_ns = 500};

    (void)state;
    make_switch(&slow);
    return plug_both();
}

static int end_switch(void **state)
{
    (void)state;
    switch_links_end(&switches);
    native_world_end(&world);
    return 0;
}

static int set_up_sockets(void **state)
{
    int fds[ENDS];

    (void)state;
    native_world_init(&world);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    for (unsigned int i = 0; i < ENDS; i++) {
        links[i] = socket_link_open(&sockets[i], fds[i]);
    }
    return plug_both();
}

static int end_sockets(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < ENDS; i++) {
        socket_link_close(&sockets[i]);
    }
    native_world_end(&world);
    return 0;
}

/* Send frames numbered from `first`. @return how many were taken */
static unsigned int send_frames(unsigned int from, uint32_t first,
                                unsigned int count)
{
    uint8_t data[LEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1};
    const struct frame_tx frame = {.num_pieces = 1,
                                   .pieces = {{data, sizeof(data)}}};

    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = first + i;

        memcpy(data + 14, &number, sizeof(number));
        if (links[from].ops->send(links[from].ctx, &frame, 1) == 0) {
            return i;
        }
    }
    return count;
}

static bool grant_both(void)
{
    bool is_busy = false;

    for (unsigned int i = 0; i < ENDS; i++) {
        is_busy |= links[i].ops->grant(links[i].ctx, world.now_ns);
    }
    return is_busy;
}

/* Until when both promise silence; LINK_NO_TIME if one promises nothing. */
static uint64_t silent_until_ns(void)
{
    return MIN(links[0].ops->silent_until_ns(links[0].ctx),
               links[1].ops->silent_until_ns(links[1].ctx));
}

/* Check the promise, and then let the time pass up to its end.
 * @return false when nothing will ever happen */
static bool pass_silence(void)
{
    uint64_t until_ns = silent_until_ns();
    unsigned int frames = ends[0].frames + ends[1].frames;
    unsigned int rooms = ends[0].rooms + ends[1].rooms;

    if (until_ns == LINK_FOREVER) {
        return false;
    }
    if (until_ns == LINK_NO_TIME) {
        world.now_ns++;
        return true;
    }
    assert_true(until_ns > world.now_ns);
    world.now_ns = until_ns - 1;
    grant_both();
    assert_int_equal(ends[0].frames + ends[1].frames, frames);
    assert_int_equal(ends[0].rooms + ends[1].rooms, rooms);
    world.now_ns = until_ns;
    return true;
}

static void pass_until_frames(unsigned int to, unsigned int count)
{
    for (unsigned int i = 0; i < ROUNDS && ends[to].frames < count; i++) {
        if (!grant_both() && !pass_silence()) {
            break;
        }
    }
    assert_int_equal(ends[to].frames, count);
    assert_true(ends[to].is_in_order);
}

WITH_FIXTURE(set_up_cable, end_cable)
WITH_FIXTURE(set_up_slow_cable, end_cable)
WITH_FIXTURE(set_up_switch, end_switch)
WITH_FIXTURE(set_up_slow_switch, end_switch)
WITH_FIXTURE(set_up_sockets, end_sockets)
static void test_frames_arrive_in_order_and_not_before_their_time(void **state)
{
    (void)state;
    assert_int_equal(send_frames(0, 0, 5), 5);
    assert_int_equal(ends[1].frames,
                     0); /* nothing is delivered inside send() */
    assert_int_equal(send_frames(1, 0, 3), 3);
    pass_until_frames(1, 5);
    pass_until_frames(0, 3);
}

WITH_FIXTURE(set_up_cable, end_cable)
WITH_FIXTURE(set_up_slow_cable, end_cable)
WITH_FIXTURE(set_up_switch, end_switch)
WITH_FIXTURE(set_up_slow_switch, end_switch)
WITH_FIXTURE(set_up_sockets, end_sockets)
static void test_a_link_that_was_full_reports_room(void **state)
{
    unsigned int taken = send_frames(0, 0, MANY);

    (void)state;
    assert_in_range(taken, 1, MANY - 1);
    assert_int_equal(ends[0].rooms, 0);
    pass_until_frames(1, taken);
    assert_true(ends[0].rooms >= 1);
    assert_int_equal(send_frames(0, taken, 1), 1);
    pass_until_frames(1, taken + 1);
}

WITH_FIXTURE(set_up_cable, end_cable)
WITH_FIXTURE(set_up_slow_cable, end_cable)
WITH_FIXTURE(set_up_switch, end_switch)
WITH_FIXTURE(set_up_slow_switch, end_switch)
static void test_a_link_without_frames_is_silent_for_ever(void **state)
{
    (void)state;
    assert_false(grant_both());
    assert_true(silent_until_ns() == LINK_FOREVER);
    assert_int_equal(send_frames(0, 0, 5), 5);
    pass_until_frames(1, 5);
    while (grant_both()) {
    }
    assert_true(silent_until_ns() == LINK_FOREVER);
}

WITH_FIXTURE(set_up_sockets, end_sockets)
static void test_a_peer_without_time_promises_nothing(void **state)
{
    (void)state;
    assert_true(silent_until_ns() == LINK_NO_TIME);
    assert_int_equal(send_frames(0, 0, 1), 1);
    assert_true(silent_until_ns() == LINK_NO_TIME);
}

WITH_FIXTURE(set_up_cable, end_cable)
WITH_FIXTURE(set_up_slow_switch, end_switch)
WITH_FIXTURE(set_up_sockets, end_sockets)
static void test_a_port_that_was_unplugged_gets_nothing(void **state)
{
    (void)state;
    links[1].ops->plug(links[1].ctx, NULL);
    assert_int_equal(send_frames(0, 0, 2), 2);
    for (unsigned int i = 0; i < 100 && (grant_both() || pass_silence()); i++) {
    }
    assert_int_equal(ends[1].frames, 0);
    plug_in(1);
    assert_int_equal(send_frames(0, 0, 1), 1);
    pass_until_frames(1, 1);
}

/* Not even if another one is plugged in while they are under way, whether they
 * were sent before or after the port was unplugged. */
WITH_FIXTURE(set_up_cable, end_cable)
WITH_FIXTURE(set_up_slow_cable, end_cable)
static void test_frames_under_way_in_a_cable_reach_no_other_port(void **state)
{
    (void)state;
    assert_int_equal(send_frames(0, 0, 2), 2);
    links[1].ops->plug(links[1].ctx, NULL);
    assert_int_equal(send_frames(0, 2, 1), 1);
    plug_in(1);
    for (unsigned int i = 0; i < 100 && (grant_both() || pass_silence()); i++) {
    }
    assert_int_equal(ends[1].frames, 0);
    assert_int_equal(send_frames(0, 0, 1), 1);
    pass_until_frames(1, 1);
}

/* A port is plugged in over another one, while that one has sent one frame, and
 * the next one in part. */
WITH_FIXTURE(set_up_slow_cable, end_cable)
static void test_an_unplugged_port_sends_no_frame_to_its_end(void **state)
{
    const uint64_t frame_ns = (LEN + 24) * 8 / 25 + 1;

    (void)state;
    assert_int_equal(send_frames(0, 0, 5), 5);
    world.now_ns += frame_ns + frame_ns / 2;
    plug_in(0);
    assert_int_equal(send_frames(0, 1, 1), 1);
    pass_until_frames(1, 2);
    assert_false(grant_both());
    assert_true(silent_until_ns() == LINK_FOREVER);
}

/* A sender that waits for room is told when the frames are lost, and the sender
 * that is unplugged is not. */
WITH_FIXTURE(set_up_cable, end_cable)
WITH_FIXTURE(set_up_slow_cable, end_cable)
static void test_a_full_cable_has_room_when_its_frames_are_lost(void **state)
{
    (void)state;
    assert_in_range(send_frames(0, 0, MANY), 1, MANY - 1);
    assert_in_range(send_frames(1, 0, MANY), 1, MANY - 1);
    plug_in(1);
    for (unsigned int i = 0; i < ROUNDS && (grant_both() || pass_silence());
         i++) {
    }
    assert_int_equal(ends[0].rooms, 1);
    assert_int_equal(ends[1].rooms, 0);
    assert_int_equal(ends[1].frames, 0);
}

/* Not even if it is plugged in again while the switch still had them. */
WITH_FIXTURE(set_up_switch, end_switch)
WITH_FIXTURE(set_up_slow_switch, end_switch)
static void test_frames_for_an_unplugged_port_are_lost(void **state)
{
    (void)state;
    assert_int_equal(send_frames(0, 0, 1), 1);
    while (switch_tx_frames(switches.core, 1) == 0) {
        world.now_ns++;
        switches.due_ns = switch_run(switches.core, world.now_ns);
    }
    links[1].ops->plug(links[1].ctx, NULL);
    plug_in(1);
    for (unsigned int i = 0; i < 100 && (grant_both() || pass_silence()); i++) {
    }
    assert_int_equal(ends[1].frames, 0);
    assert_int_equal(send_frames(0, 0, 1), 1);
    pass_until_frames(1, 1);
}
