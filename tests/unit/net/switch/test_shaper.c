/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/test_fixture.h"
#include "tests/unit/net/switch/switch_test.h"

TEST_FIXTURE(bed_setup, bed_teardown)

enum { LEN = 1000 };

static void test_a_frame_takes_its_serialisation_time_and_the_delay(
    void **state)
{
    struct shaper shaper = {
        .config = {.speed_bps = 1000000000, .delay_ns = 500}};

    (void)state;
    /* 1024 bytes with preamble, FCS and gap: 8192 ns at 1 Gbit/s. */
    assert_int_equal(shaper_arrival_ns(&shaper, LEN, 100), 100 + 8192 + 500);
    assert_int_equal(shaper_arrival_ns(&shaper, LEN, 200),
                     100 + 2 * 8192 + 500);
    assert_int_equal(shaper_arrival_ns(&shaper, LEN, 1000000),
                     1000000 + 8192 + 500);
}

static void test_the_slowest_cable_with_the_longest_frame_is_exact(void **state)
{
    struct shaper shaper = {.config = {.speed_bps = 1000}};

    (void)state;
    assert_int_equal(shaper_arrival_ns(&shaper, SWITCH_FRAME_MAX, 0),
                     (uint64_t)(SWITCH_FRAME_MAX + SHAPER_OVERHEAD) * 8 *
                         1000000);
}

static void test_a_cable_without_settings_takes_no_time(void **state)
{
    struct shaper shaper = {.config = {.loss_ppb = 0}};

    (void)state;
    assert_int_equal(shaper_arrival_ns(&shaper, LEN, 100), 0);
    assert_false(shaper_loses_frame(&shaper));
}

static void test_frames_do_not_overtake_when_the_delay_ends(void **state)
{
    struct shaper shaper = {.config = {.delay_ns = 1000}};

    (void)state;
    assert_int_equal(shaper_arrival_ns(&shaper, LEN, 100), 1100);
    shaper.config.delay_ns = 0;
    assert_int_equal(shaper_arrival_ns(&shaper, LEN, 200), 1100);
    assert_int_equal(shaper_arrival_ns(&shaper, LEN, 1100), 0);
}

static void test_jitter_spreads_and_keeps_the_order(void **state)
{
    struct shaper shaper = {.config = {.delay_ns = 100, .jitter_ns = 50}};
    uint64_t least = UINT64_MAX, most = 0, before = 0;

    (void)state;
    shaper_seed(&shaper, 3);
    for (uint64_t now = 1000; now < 2000000; now += 1000) {
        uint64_t delay = shaper_arrival_ns(&shaper, LEN, now) - now;

        assert_in_range(delay, 100, 150);
        assert_true(now + delay >= before);
        before = now + delay;
        least = MIN(least, delay);
        most = MAX(most, delay);
    }
    assert_int_equal(least, 100);
    assert_int_equal(most, 150);
}

static unsigned count_losses(struct shaper *shaper, unsigned frames)
{
    unsigned lost = 0;

    while (frames-- != 0) {
        lost += shaper_loses_frame(shaper);
    }
    return lost;
}

static void test_losses_have_the_probability_and_follow_the_seed(void **state)
{
    struct shaper a = {.config = {.loss_ppb = 10000000}}, b = a;
    unsigned lost;

    (void)state;
    shaper_seed(&a, 7);
    shaper_seed(&b, 7);
    lost = count_losses(&a, 100000);
    /* 1000 expected; the deviation is 31. */
    assert_in_range(lost, 850, 1150);
    assert_int_equal(count_losses(&b, 100000), lost);
    shaper_seed(&b, 8);
    assert_int_not_equal(count_losses(&b, 100000), lost);
    a.config.loss_ppb = SHAPER_CERTAIN;
    assert_int_equal(count_losses(&a, 1000), 1000);
}

static void test_a_delayed_frame_comes_when_it_is_due_in_each_direction(
    void **state)
{
    struct bed *bed = *state;
    struct switch_port_config config = bed_config(bed, 0);
    uint64_t start = bed->now_ns;
    uint8_t frame[LEN];

    config.cable[SWITCH_IN].delay_ns = 1000;
    switch_port_set(bed->core, 0, &config);
    config = bed_config(bed, 1);
    config.cable[SWITCH_OUT].delay_ns = 200;
    switch_port_set(bed->core, 1, &config);
    bed_frame(frame, LEN, 9, 1, 0);
    bed_send(bed, 0, frame, LEN);
    assert_int_equal(bed->deadline_ns, start + 1000);
    assert_int_equal(bed_take_all(bed, 2), 0);
    bed->now_ns = start + 999;
    bed_run(bed);
    assert_int_equal(bed_take_all(bed, 2), 0);
    bed->now_ns = start + 1000;
    bed_run(bed);
    assert_int_equal(bed_take_all(bed, 2), 1);
    assert_int_equal(bed_take_all(bed, 1), 0);
    assert_int_equal(bed->deadline_ns, start + 1200);
    bed->now_ns = start + 1200;
    bed_run(bed);
    assert_int_equal(bed_take_all(bed, 1), 1);
    assert_int_equal(bed->deadline_ns, UINT64_MAX);
}

static void test_lost_frames_are_counted_on_their_cable(void **state)
{
    struct bed *bed = *state;
    struct switch_port_config config = bed_config(bed, 0);
    unsigned got = 0;
    uint8_t frame[LEN];

    config.cable[SWITCH_IN].loss_ppb = SHAPER_CERTAIN / 2;
    switch_port_set(bed->core, 0, &config);
    config = bed_config(bed, 1);
    config.cable[SWITCH_OUT].loss_ppb = SHAPER_CERTAIN / 2;
    switch_port_set(bed->core, 1, &config);
    bed_frame(frame, LEN, 9, 1, 0);
    for (int i = 0; i < 1000; i++) {
        bed_send(bed, 0, frame, LEN);
        got += bed_take_all(bed, 1);
        (void)bed_take_all(bed, 2);
        (void)bed_take_all(bed, 3);
    }
    assert_in_range(got, 190, 310);
    assert_int_equal(bed_counter(bed, 0, SWITCH_RX_LOST) +
                         bed_counter(bed, 1, SWITCH_TX_LOST) + got,
                     1000);
    assert_int_equal(bed_counter(bed, 2, SWITCH_TX_FRAMES),
                     1000 - bed_counter(bed, 0, SWITCH_RX_LOST));
}

static void test_a_seed_repeats_the_losses_of_a_port(void **state)
{
    struct bed *bed = *state;
    struct switch_port_config config = bed_config(bed, 0);
    bool first[200];
    uint8_t frame[LEN];

    config.cable[SWITCH_IN].loss_ppb = SHAPER_CERTAIN / 4;
    config.seed = 42;
    switch_port_set(bed->core, 0, &config);
    bed_frame(frame, LEN, 9, 1, 0);
    for (int round = 0; round < 2; round++) {
        switch_port_reseed(bed->core, 0);
        for (int i = 0; i < 200; i++) {
            bool came;

            bed_send(bed, 0, frame, LEN);
            came = bed_take_all(bed, 1) == 1;
            (void)bed_take_all(bed, 2);
            (void)bed_take_all(bed, 3);
            if (round == 0) {
                first[i] = came;
            } else {
                assert_int_equal(came, first[i]);
            }
        }
    }
}
