/* SPDX-License-Identifier: BSD-2-Clause */
/* A drive and its host at a switch instead of a cable. */
#include "bed_fixture.h"

#include "firmware/native/switch_link.h"
#include "tests/test_fixture.h"

#define LINK_TIMEOUT_NS UINT64_C(10000000000)

static struct switch_links switches;

static bool links_are_up(void *ctx)
{
    (void)ctx;
    return bed.drive->machine.ports[0].link_up &&
           bed.host->machine.ports[0].link_up;
}

/* Both first ports leave the cable for the switch. */
static void plug_into_switch(const struct shaper_config *cable)
{
    struct link link;

    bed_init(&bed, 1500);
    native_disconnect(&bed.drive->machine, 0, &bed.host->machine, 0);
    switch_links_init(&switches, 2, cable);
    link = switch_link(&switches, 0);
    machine_attach(&bed.drive->machine, 0, &link);
    link = switch_link(&switches, 1);
    machine_attach(&bed.host->machine, 0, &link);
    assert_true(
        native_world_run(&bed.world, links_are_up, NULL, LINK_TIMEOUT_NS));
}

static int set_up(void **state)
{
    (void)state;
    plug_into_switch(NULL);
    return 0;
}

/* 1 ms from the sender to the switch, and 1 ms from there to the receiver. */
static int set_up_far(void **state)
{
    const struct shaper_config far = {.speed_bps = 25000000000,
                                      .delay_ns = 1000000};

    (void)state;
    plug_into_switch(&far);
    return 0;
}

static int tear_down(void **state)
{
    machine_attach(&bed.drive->machine, 0, NULL);
    machine_attach(&bed.host->machine, 0, NULL);
    switch_links_end(&switches);
    return teardown(state);
}

WITH_FIXTURE(set_up, tear_down)
static void test_io_passes_through_a_switch(void **state)
{
    struct switch_port_status status;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 100, 64, HOST_DATA_KEYED, false, 1), 0);
    bed_expect(&bed, 1, 100, 64, HOST_DATA_KEYED, 1);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
    switch_port_status(switches.core, 0, &status);
    assert_in_range(status.counters[SWITCH_TX_FRAMES], 32, 1000);
    assert_in_range(status.counters[SWITCH_RX_FRAMES], 32, 1000);
}

WITH_FIXTURE(set_up_far, tear_down)
static void test_a_read_takes_the_time_of_the_cables(void **state)
{
    uint64_t begin_ns;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    begin_ns = bed.world.now_ns;
    assert_int_equal(bed_read(&bed, 1, 100, 1, HOST_DATA_KEYED), 0);
    /* The command and the response each pass two cables. */
    assert_in_range(bed.world.now_ns - begin_ns, 4000000, 4500000);
    host_disconnect(&bed.host->host);
}
