/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two transports in one target: RDMA hosts on the cable and loopback hosts in
 * the drive share its namespace, its queue budget and its buffers.
 */
#include "bed_fixture.h"

#include <stdlib.h>

#include "lib/bytes.h"
#include "loop_bed.h"
#include "nvmeof/wire/identify.h"
#include "tests/test_fixture.h"

enum {
    RDMA_LBA = 0,
    LOOP_LBA = 4096,
    ROUNDS = 20,
};

static struct loop_bed loop;

static int setup_both(void **state)
{
    (void)setup(state);
    loop_bed_init(&loop, &bed);
    return 0;
}

static bool are_all_gone(void *ctx)
{
    const struct bed *b = ctx;
    uint16_t controllers, qpairs;

    nvmf_target_stats(b->drive->drive.target, &controllers, &qpairs);
    return controllers == 0 && qpairs == 0;
}

static uint32_t depth_used(void)
{
    uint32_t depth, queues;

    nvmf_target_promised(bed.drive->drive.target, &depth, &queues);
    return depth;
}

static uint32_t queues_promised(void)
{
    uint32_t depth, queues;

    nvmf_target_promised(bed.drive->drive.target, &depth, &queues);
    return queues;
}

/* Check that the drive holds nothing of either transport. */
static int teardown_both(void **state)
{
    assert_true(native_world_run(&bed.world, are_all_gone, &bed,
                                 UINT64_C(10000000000)));
    bed_expect_idle(&bed);
    assert_int_equal(loopback_queues_used(&loop.loopback), 0);
    assert_int_equal(depth_used(), 0);
    assert_int_equal(queues_promised(), 0);
    (void)teardown(state);
    loop_bed_end(&loop);
    return 0;
}

static void write_and_check_by_rdma(uint32_t version)
{
    for (unsigned int i = 0; i < ROUNDS; i++) {
        uint64_t lba = RDMA_LBA + i * 8;

        assert_int_equal(
            bed_write(&bed, 1, lba, 8, HOST_DATA_KEYED, false, version), 0);
        bed_expect(&bed, 1, lba, 8, HOST_DATA_KEYED, version);
    }
}

static void test_one_transport_reads_what_the_other_has_written(void **state)
{
    struct loopback_host host;

    (void)state;
    loop_host_init(&loop, &host, 1);
    assert_int_equal(loopback_host_connect(&host, 2, 16), 0);
    bed_connect(&bed, 0, 2, 32);
    assert_int_equal(bed_write(&bed, 1, 5, 1, HOST_DATA_KEYED, false, 11), 0);
    loop_expect(&host, 1, 5, 11);
    loop_write(&host, 2, 6, 12);
    bed_expect(&bed, 2, 6, 1, HOST_DATA_KEYED, 12);
    loop_host_disconnect(&loop, &host);
    /* The host of the other transport is not affected. */
    assert_int_equal(host_keep_alive(&bed.host->host), 0);
    bed_expect(&bed, 1, 6, 1, HOST_DATA_KEYED, 12);
    host_disconnect(&bed.host->host);
}

static void test_both_do_io_at_the_same_time(void **state)
{
    struct loopback_host host;

    (void)state;
    loop_host_init(&loop, &host, 1);
    assert_int_equal(loopback_host_connect(&host, 1, 16), 0);
    bed_connect(&bed, 0, 1, 32);
    loop_traffic_start(&loop, &host, 1, LOOP_LBA);
    write_and_check_by_rdma(3);
    assert_true(loop.traffic.done > ROUNDS);
    loop_traffic_stop(&loop);
    host_disconnect(&bed.host->host);
    loop_host_disconnect(&loop, &host);
}

static void test_identify_describes_the_hosts_transport(void **state)
{
    const struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY,
                                      .cdw10 = CNS_CONTROLLER};
    static uint8_t id[NVME_IDENTIFY_LEN];
    struct loopback_host host;

    (void)state;
    loop_host_init(&loop, &host, 1);
    assert_int_equal(loopback_host_connect(&host, 0, 0), 0);
    assert_int_equal(loopback_host_command(&host, 0, &identify, id, sizeof(id)),
                     0);
    assert_int_equal(get_le32(id + ID_CTRL_IOCCSZ), 4);
    bed_connect(&bed, 0, 1, 32);
    assert_int_equal(host_identify(&bed.host->host, CNS_CONTROLLER, 0, id), 0);
    assert_int_equal(get_le32(id + ID_CTRL_IOCCSZ), 260);
    host_disconnect(&bed.host->host);
    loop_host_disconnect(&loop, &host);
}

/* ---- Both transports share one budget. */

static void test_the_sum_of_depths_counts_both_transports(void **state)
{
    struct loopback_host *hosts = calloc(16, sizeof(*hosts));
    struct host_target target;
    unsigned int used = 0, connected = 0;

    (void)state;
    /* 7 hosts of 32 + 16 * 64 entries use 7392 of 8191; 799 are left. */
    for (uint8_t i = 0; i < 7; i++) {
        loop_host_init(&loop, &hosts[i], i);
        assert_int_equal(loopback_host_connect(&hosts[i], 16, 64), 0);
        used += 32 + 16 * 64;
    }
    assert_int_equal(depth_used(), used);
    /* An RDMA host gets 11 of the 16 queues that it asks for: 32 +
     * 704 entries. */
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = 16;
    target.depth = 64;
    assert_int_equal(host_connect(&bed.host->host, &target), 0);
    assert_int_equal(bed.host->host.io_queues, 11);
    used += 32 + 11 * 64;
    assert_int_equal(depth_used(), used);
    /* 63 are left: enough for one more admin queue; Connect refuses
     * a second. */
    loop_host_init(&loop, &hosts[7], 7);
    loop_host_init(&loop, &hosts[8], 8);
    assert_int_equal(loopback_host_connect(&hosts[7], 0, 0), 0);
    assert_int_equal(loopback_host_connect(&hosts[8], 0, 0),
                     NVME_SC_CONNECT_BUSY);
    assert_int_equal(loopback_host_connect_queue(&hosts[7], 1, 32),
                     NVME_SC_CONNECT_BUSY);
    assert_int_equal(loopback_host_connect_queue(&hosts[7], 1, 31), 0);
    assert_int_equal(depth_used(), 8191);
    /* One transport can use what the other has released. */
    assert_int_equal(host_keep_alive(&bed.host->host), 0);
    host_disconnect(&bed.host->host);
    for (uint8_t i = 8; i < 10; i++) {
        loop_host_init(&loop, &hosts[i], i);
        connected += loopback_host_connect(&hosts[i], 5, 64) == 0;
    }
    assert_int_equal(connected, 2);
    /* 32 are left again: enough for an admin queue, but not for an
     * I/O queue. */
    assert_int_equal(host_connect(&bed.host->host, &target), HOST_LOST);
    assert_int_equal(bed.host->host.conn[0].state, HOST_CONN_LIVE);
    assert_int_equal(bed.host->host.conn[1].reject_status,
                     NVME_RDMA_NO_RESOURCES);
    host_disconnect(&bed.host->host);
    for (uint8_t i = 0; i < 10; i++) {
        loop_host_disconnect(&loop, &hosts[i]);
    }
    native_world_pass(&bed.world, 1000000);
    free(hosts);
}

/* A connection costs only its place until it tells its queue in Connect. */
static void test_an_rdma_host_is_refused_when_loopback_has_all(void **state)
{
    struct loopback_host *hosts = calloc(8, sizeof(*hosts));
    struct host_target target;

    (void)state;
    for (uint8_t i = 0; i < 7; i++) {
        loop_host_init(&loop, &hosts[i], i);
        assert_int_equal(loopback_host_connect(&hosts[i], 16, 64), 0);
    }
    loop_host_init(&loop, &hosts[7], 7); /* 799 - 32 - 11 * 64 = 63 */
    assert_int_equal(loopback_host_connect(&hosts[7], 11, 64), 0);
    assert_int_equal(loopback_host_connect_queue(&hosts[7], 12, 40), 0);
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = 1;
    assert_int_equal(host_connect(&bed.host->host, &target), HOST_LOST);
    assert_int_equal(bed.host->host.conn[0].reject_reason, CM_REJ_CONSUMER);
    assert_int_equal(bed.host->host.conn[0].reject_status,
                     NVME_RDMA_NO_RESOURCES);
    host_vanish(&bed.host->host);
    loop_host_disconnect(&loop, &hosts[7]);
    native_world_pass(&bed.world, 1000000);
    bed_connect(&bed, 0, 1, 32);
    assert_int_equal(bed_write(&bed, 1, 5, 1, HOST_DATA_KEYED, false, 1), 0);
    host_disconnect(&bed.host->host);
    for (uint8_t i = 0; i < 7; i++) {
        loop_host_disconnect(&loop, &hosts[i]);
    }
    free(hosts);
}

/* ---- A host of one transport ends while the other transport is busy. */

static void test_a_loopback_host_without_keep_alive_ends_alone(void **state)
{
    struct loopback_host silent, busy;

    (void)state;
    loop_host_init(&loop, &silent, 1);
    silent.config.kato_ms = 5000;
    loop_host_init(&loop, &busy, 2);
    assert_int_equal(loopback_host_connect(&silent, 2, 16), 0);
    assert_int_equal(loopback_host_connect(&busy, 1, 16), 0);
    bed_connect(&bed, 0, 1, 32);
    native_world_pass(&bed.world, UINT64_C(7000000000));
    assert_false(loopback_host_is_live(&silent, 0));
    assert_false(loopback_host_is_live(&silent, 1));
    assert_true(loopback_host_is_live(&busy, 1));
    loop_traffic_start(&loop, &busy, 1, LOOP_LBA);
    write_and_check_by_rdma(4);
    loop_traffic_stop(&loop);
    loop_host_disconnect(&loop, &silent);
    loop_host_disconnect(&loop, &busy);
    host_disconnect(&bed.host->host);
}

static void test_an_rdma_host_that_vanishes_ends_alone(void **state)
{
    struct host_target target;
    struct loopback_host host;
    unsigned int done;

    (void)state;
    loop_host_init(&loop, &host, 1);
    assert_int_equal(loopback_host_connect(&host, 1, 16), 0);
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = 2;
    target.depth = 32;
    target.kato_ms = 5000;
    assert_int_equal(host_connect(&bed.host->host, &target), 0);
    loop_traffic_start(&loop, &host, 1, LOOP_LBA);
    loop.traffic.interval_us = 50000;
    bed.cables[0].is_cut = true;
    for (unsigned int s = 0; s < 13; s++) {
        done = loop.traffic.done;
        native_world_pass(&bed.world, UINT64_C(1000000000));
        assert_in_range(loop.traffic.done - done, 19 * LOOP_BUSY,
                        21 * LOOP_BUSY);
    }
    loop_traffic_stop(&loop);
    {
        uint16_t controllers, qpairs;

        nvmf_target_stats(bed.drive->drive.target, &controllers, &qpairs);
        assert_int_equal(controllers, 1);
        assert_int_equal(qpairs, 2);
    }
    loop_host_disconnect(&loop, &host);
    host_vanish(&bed.host->host);
}

static void test_a_reset_of_a_loopback_controller_disturbs_no_rdma(void **state)
{
    struct loopback_host host;

    (void)state;
    loop_host_init(&loop, &host, 1);
    assert_int_equal(loopback_host_connect(&host, 4, 16), 0);
    bed_connect(&bed, 0, 1, 32);
    for (unsigned int i = 0; i < 3; i++) {
        const struct nvme_sqe read = {
            .opcode = NVM_READ, .nsid = BED_NSID, .cdw12 = 63};
        static uint8_t data[64 * BED_BLOCK];

        for (uint16_t qid = 1; qid <= 4; qid++) {
            assert_true(
                loopback_host_submit(&host, qid, &read, data, sizeof(data)));
        }
        assert_int_equal(loopback_host_enable(&host, false), 0);
        write_and_check_by_rdma(10 + i);
        for (uint16_t qid = 1; qid <= 4; qid++) {
            assert_false(loopback_host_is_live(&host, qid));
            loopback_close(&loop.loopback, host.queue[qid]);
            host.queue[qid] = LOOPBACK_NO_QUEUE;
        }
        assert_int_equal(loopback_host_enable(&host, true), 0);
        for (uint16_t qid = 1; qid <= 4; qid++) {
            assert_int_equal(loopback_host_connect_queue(&host, qid, 16), 0);
        }
    }
    loop_host_disconnect(&loop, &host);
    host_disconnect(&bed.host->host);
}

static void test_a_reset_of_an_rdma_controller_disturbs_no_loopback(
    void **state)
{
    struct loopback_host host;

    (void)state;
    loop_host_init(&loop, &host, 1);
    assert_int_equal(loopback_host_connect(&host, 1, 16), 0);
    loop_traffic_start(&loop, &host, 1, LOOP_LBA);
    loop.traffic.interval_us = 5000;
    for (unsigned int i = 0; i < 3; i++) {
        unsigned int done = loop.traffic.done;

        bed_connect(&bed, 0, 3, 32);
        assert_int_equal(bed_write(&bed, 2, 9, 8, HOST_DATA_KEYED, false, i),
                         0);
        assert_int_equal(host_property_set(&bed.host->host, PROPERTY_CC, 4, 0),
                         0);
        native_world_pass(&bed.world, 20000000);
        assert_true(loop.traffic.done > done);
        host_disconnect(&bed.host->host);
    }
    loop_traffic_stop(&loop);
    loop_host_disconnect(&loop, &host);
}

/* The drive ends every association of both transports. */
static void test_a_subsystem_reset_ends_both(void **state)
{
    struct loopback_host host, other;
    struct nvme_sqe sqe = {0};

    (void)state;
    loop_host_init(&loop, &host, 1);
    loop_host_init(&loop, &other, 2);
    assert_int_equal(loopback_host_connect(&host, 2, 16), 0);
    assert_int_equal(loopback_host_connect(&other, 1, 16), 0);
    bed_connect(&bed, 0, 2, 32);
    property_command_build(&sqe,
                           &(struct property_command){.size_bytes = 4,
                                                      .offset = PROPERTY_NSSR,
                                                      .value = NSSR_RESET});
    (void)!loopback_host_command(&host, 0, &sqe, NULL, 0);
    native_world_pass(&bed.world, UINT64_C(1000000000));
    assert_false(loopback_host_is_live(&host, 1));
    assert_false(loopback_host_is_live(&other, 0));
    assert_true(host_is_broken(&bed.host->host));
    loop_host_disconnect(&loop, &host);
    loop_host_disconnect(&loop, &other);
    host_vanish(&bed.host->host);
}

TEST_FIXTURE(setup_both, teardown_both)
