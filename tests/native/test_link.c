/* SPDX-License-Identifier: BSD-2-Clause */
/* Cables that lose frames or are pulled, and the other port meanwhile. */
#include "tests/test_fixture.h"
#include "bed_fixture.h"

#include <string.h>

static bool console_says(const char *text)
{
    return strstr(machine_console(&bed.drive->machine), text) != NULL;
}

struct pending {
    bool is_done;
    struct host_result result;
};

static void pending_done(void *ctx, const struct host_result *result)
{
    struct pending *pending = ctx;

    pending->is_done = true;
    pending->result = *result;
}

static bool pending_is_done(void *ctx)
{
    const struct pending *pending = ctx;

    return pending->is_done;
}

/* A loss of frames shorter than the retries is not noticed. */
static void test_connections_survive_a_short_loss(void **state)
{
    struct pending pending = {0};
    struct host_io io = {
        .qid = 1,
        .opcode = NVM_READ,
        .kind = HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .lba = 0,
        .blocks = 256,
        .len_bytes = 256 * BED_BLOCK,
        .done = pending_done,
        .ctx = &pending,
    };

    (void)state;
    bed_provokes(&bed, BED_LOSS);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 0, 256, HOST_DATA_KEYED, false, 1), 0);
    assert_true(host_io_submit(&bed.host->host, &io));
    verbs_flush(&bed.host->net.verbs);
    bed.cables[0].is_cut = true;
    native_world_pass(&bed.world, 200000000);
    assert_false(pending.is_done);
    bed.cables[0].is_cut = false;
    assert_true(native_world_run(&bed.world, pending_is_done, &pending,
                                 UINT64_C(5000000000)));
    assert_false(pending.result.is_lost);
    assert_int_equal(pending.result.cqe.status, 0);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

/* The offset over IPv4: Ethernet 14, IP 20, UDP 8, BTH 12, DETH 8, attribute of
 * the MAD 16. */
static enum cable_verdict lose_rtus(void *ctx, unsigned int from,
                                    uint64_t number, uint8_t *data,
                                    uint32_t *len_bytes)
{
    enum { OPCODE = 42, ATTRIBUTE = 78, RTU = 0x14 };
    bool is_mad = *len_bytes > 300 && data[OPCODE] == 0x64;

    (void)from;
    (void)number;
    if (is_mad && data[ATTRIBUTE] == 0 && data[ATTRIBUTE + 1] == RTU) {
        ++*(unsigned int *)ctx;
        return CABLE_DROP;
    }
    return CABLE_PASS;
}

/* The first command stands for a lost RTU, and no RTU is requested again. */
static void test_a_connection_works_without_an_rtu(void **state)
{
    unsigned int lost = 0;

    (void)state;
    bed.cables[0].filter = lose_rtus;
    bed.cables[0].filter_ctx = &lost;
    bed_connect(&bed, 0, 1, 64);
    assert_true(console_says("nvme-of: RDMA host 10.0.0.2 connected"));
    native_world_pass(&bed.world, UINT64_C(100000000000));
    /* Each of the two queues sent one RTU, and the drive asked for no more. */
    assert_int_equal(lost, 2);
    assert_int_equal(bed_write(&bed, 1, 7, 1, HOST_DATA_KEYED, false, 1), 0);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

/* The resources of a host that has vanished are free long before the drive
 * stops repeating its DREQ, which takes more than a minute. */
static void test_the_resources_of_a_silent_host_are_released(void **state)
{
    struct host_target target;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = 4;
    target.depth = 64;
    target.kato_ms = 5000;
    assert_int_equal(host_connect(&bed.host->host, &target), 0);
    bed.cables[0].is_cut = true;
    native_world_pass(&bed.world, UINT64_C(12000000000));
    bed_expect_idle(&bed);
    host_vanish(&bed.host->host);
    bed.cables[0].is_cut = false;
    bed_connect(&bed, 0, 1, 64);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

static void test_a_pulled_cable_is_noticed_and_the_link_comes_back(void **state)
{
    (void)state;
    bed_provokes(&bed, BED_LOSS);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 7, 1, HOST_DATA_KEYED, false, 1), 0);
    native_disconnect(&bed.drive->machine, 0, &bed.host->machine, 0);
    native_world_pass(&bed.world, UINT64_C(8000000000));
    assert_true(console_says("port 0: link down"));
    assert_int_equal(bed_read(&bed, 1, 7, 1, HOST_DATA_KEYED), HOST_LOST);
    host_vanish(&bed.host->host);
    /* The other port keeps working. */
    bed_connect(&bed, 1, 1, 64);
    bed_expect(&bed, 1, 7, 1, HOST_DATA_KEYED, 1);
    host_disconnect(&bed.host->host);

    native_connect(&bed.world, &bed.cables[0], &bed.drive->machine, 0,
                   &bed.host->machine, 0);
    native_world_pass(&bed.world, UINT64_C(120000000000));
    bed_expect_idle(&bed);
    bed_connect(&bed, 0, 1, 64);
    bed_expect(&bed, 1, 7, 1, HOST_DATA_KEYED, 1);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

TEST_FIXTURE(setup, teardown)
