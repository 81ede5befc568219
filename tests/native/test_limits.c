/* SPDX-License-Identifier: BSD-2-Clause */
/* The limits of the data sheet are reached, and one more is refused. */
#include "tests/test_fixture.h"
#include "bed_fixture.h"

#include <stdlib.h>
#include <string.h>

/* Admin queues of 32 entries leave room for only 255 associations. */
static void test_the_256th_host_is_refused(void **state)
{
    struct nvme_host *hosts = calloc(NVMF_MAX_HOSTS + 1, sizeof(*hosts));
    struct host_target target;
    struct nvme_host *last = &hosts[NVMF_MAX_HOSTS];

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = 0;
    for (unsigned int i = 0; i < NVMF_MAX_HOSTS; i++) {
        native_host_add(bed.host, &hosts[i], 0);
        assert_int_equal(host_connect(&hosts[i], &target), 0);
    }
    native_host_add(bed.host, last, 0);
    assert_int_equal(host_connect(last, &target), HOST_LOST);
    assert_int_equal(last->conn[0].reject_reason, CM_REJ_CONSUMER);
    assert_int_equal(last->conn[0].reject_status, NVME_RDMA_NO_RESOURCES);
    host_vanish(last);
    /* The others keep working; one that disconnects makes room for another. */
    assert_int_equal(host_keep_alive(&hosts[0]), 0);
    assert_int_equal(host_keep_alive(&hosts[NVMF_MAX_HOSTS - 1]), 0);
    host_disconnect(&hosts[17]);
    assert_int_equal(host_connect(last, &target), 0);
    for (unsigned int i = 0; i <= NVMF_MAX_HOSTS; i++) {
        host_disconnect(&hosts[i]);
    }
    bed_expect_idle(&bed);
    free(hosts);
}

/* The sum of all depths stays below 8192. */
static void test_the_sum_of_depths_is_bounded(void **state)
{
    /* 32 + 8 * 64 = 544 entries: fifteen hosts fit. */
    enum { HOSTS = 16, QUEUES = 8 };
    struct nvme_host *hosts = calloc(HOSTS, sizeof(*hosts));
    struct host_target target;
    unsigned int connected = 0;

    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = QUEUES;
    for (unsigned int i = 0; i < HOSTS; i++) {
        native_host_add(bed.host, &hosts[i], QUEUES);
        if (host_connect(&hosts[i], &target) == 0 &&
            hosts[i].io_queues == QUEUES) {
            connected++;
        }
    }
    assert_int_equal(connected, 15);
    for (unsigned int i = 0; i < 15; i++) {
        assert_int_equal(host_keep_alive(&hosts[i]), 0);
    }
    for (unsigned int i = 0; i < HOSTS; i++) {
        host_disconnect(&hosts[i]);
    }
    bed_expect_idle(&bed);
    free(hosts);
}

/* ---- 1024 queue pairs, on hosts of 1 + 16 queues. */

enum {
    QP_HOSTS = 61,
    QP_DEPTH = 5, /* 61 * 32 + 963 * 5 = 6767, which is below 8192. */
    QP_LAST = NVMF_MAX_QPAIRS - (QP_HOSTS - 1) * (1 + HOST_MAX_IO_QUEUES) - 1,
};

static void expect_stats(uint16_t expected_controllers,
                         uint16_t expected_qpairs)
{
    uint16_t controllers, qpairs;

    nvmf_target_stats(bed.drive->drive.target, &controllers, &qpairs);
    assert_int_equal(controllers, expected_controllers);
    assert_int_equal(qpairs, expected_qpairs);
}

/* Write one block on each queue, from `first` on, or read and compare it. */
static void use_each_queue(struct nvme_host *host, uint64_t first, bool write,
                           uint32_t version)
{
    uint8_t *data = host->config.data;
    uint8_t expected[BED_BLOCK];

    assert_int_equal(host_keep_alive(host), 0);
    for (uint16_t qid = 1; qid <= host->io_queues; qid++) {
        const struct host_io io = {
            .qid = qid,
            .opcode = write ? NVM_WRITE : NVM_READ,
            .kind = HOST_DATA_KEYED,
            .nsid = BED_NSID,
            .lba = first + qid,
            .blocks = 1,
            .len_bytes = BED_BLOCK,
        };

        bed_fill(expected, io.lba, 1, version);
        memset(data, 0xa5, BED_BLOCK);
        if (write) {
            memcpy(data, expected, BED_BLOCK);
        }
        assert_int_equal(host_io(host, &io), 0);
        assert_memory_equal(data, expected, BED_BLOCK);
    }
}

static void use_all_queues(struct nvme_host *hosts, bool write,
                           uint32_t version)
{
    for (unsigned int i = 0; i < QP_HOSTS; i++) {
        use_each_queue(&hosts[i], i * 32u, write, version);
    }
}

static void expect_refusal(struct nvme_host *host,
                           const struct host_target *target)
{
    assert_int_equal(host_connect(host, target), HOST_LOST);
    assert_int_equal(host->conn[0].reject_reason, CM_REJ_CONSUMER);
    assert_int_equal(host->conn[0].reject_status, NVME_RDMA_NO_RESOURCES);
    host_vanish(host);
}

static void test_the_1025th_queue_pair_is_refused(void **state)
{
    struct nvme_host *hosts = calloc(QP_HOSTS, sizeof(*hosts));
    struct native_node_config config = {.number = 3, .ipv4 = {0, 0x0a000103}};
    struct cable cable;
    struct native_host *other;
    struct host_target target, there;

    (void)state;
    assert_int_equal(QP_LAST, 3);
    cable_init(&cable);
    other = native_host_create(&bed.world, &config);
    native_disconnect(&bed.drive->machine, 1, &bed.host->machine, 1);
    native_connect(&bed.world, &cable, &bed.drive->machine, 1, &other->machine,
                   1);
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    assert_true(native_target(other, bed.drive, 1, &there));
    target.depth = QP_DEPTH;
    there.depth = 2;
    there.io_queues = QP_LAST;
    for (unsigned int i = 0; i < QP_HOSTS; i++) {
        target.io_queues = i < QP_HOSTS - 1 ? HOST_MAX_IO_QUEUES : QP_LAST;
        native_host_add(bed.host, &hosts[i], target.io_queues);
        assert_int_equal(host_connect(&hosts[i], &target), 0);
        assert_int_equal(hosts[i].io_queues, target.io_queues);
    }
    expect_stats(QP_HOSTS, NVMF_MAX_QPAIRS);
    use_all_queues(hosts, true, 1);

    expect_refusal(&other->host, &there);
    expect_stats(QP_HOSTS, NVMF_MAX_QPAIRS);
    use_all_queues(hosts, false, 1);

    /* One host disconnects: as many queue pairs are accepted again, and not one
     * more. */
    host_disconnect(&hosts[QP_HOSTS - 1]);
    expect_stats(QP_HOSTS - 1, NVMF_MAX_QPAIRS - 1 - QP_LAST);
    assert_int_equal(host_connect(&other->host, &there), 0);
    assert_int_equal(other->host.io_queues, QP_LAST);
    expect_stats(QP_HOSTS, NVMF_MAX_QPAIRS);
    expect_refusal(&hosts[QP_HOSTS - 1], &target);
    use_each_queue(&other->host, QP_HOSTS * 32, true, 2);
    use_each_queue(&other->host, QP_HOSTS * 32, false, 2);
    for (unsigned int i = 0; i < QP_HOSTS - 1; i++) {
        use_each_queue(&hosts[i], i * 32u, false, 1);
        use_each_queue(&hosts[i], i * 32u, true, 3);
    }
    assert_int_equal(bed.drive->drive.net.verbs.counters.commands_refused, 0);

    host_disconnect(&other->host);
    for (unsigned int i = 0; i < QP_HOSTS - 1; i++) {
        host_disconnect(&hosts[i]);
    }
    bed_expect_idle(&bed);
    native_host_destroy(other);
    machine_plug(&bed.drive->machine, 1, NULL, 0);
    cable_end(&cable);
    free(hosts);
}

/* A queue of depth 2 has a send ring of 8 entries: the largest commands fit. */
static void test_the_shallowest_queues_carry_the_largest_commands(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 2, 2);
    for (uint32_t i = 0; i < 20; i++) {
        uint16_t qid = (uint16_t)(1 + i % 2);

        assert_int_equal(
            bed_write(&bed, qid, i * 256, 256, HOST_DATA_KEYED, false, i), 0);
        bed_expect(&bed, qid, i * 256, 256, HOST_DATA_INVALIDATE, i);
    }
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
}

static void test_two_drives_run_in_one_process(void **state)
{
    struct medium medium;
    struct cable cable;
    struct native_drive_config config = {
        .node = {.number = 9, .ipv4 = {0x0a000003, 0x0a000103}},
        .medium = &medium,
    };
    struct native_drive *second;
    struct nvme_host other;
    struct host_target target;
    struct host_io io = {
        .qid = 1,
        .opcode = NVM_WRITE,
        .kind = HOST_DATA_KEYED,
        .nsid = BED_NSID,
        .lba = 77,
        .blocks = 1,
        .offset = 4096,
        .len_bytes = BED_BLOCK,
    };

    (void)state;
    medium_init(&medium, BED_MEDIUM_BYTES);
    cable_init(&cable);
    second = native_drive_create(&bed.world, &config);
    native_disconnect(&bed.drive->machine, 1, &bed.host->machine, 1);
    native_connect(&bed.world, &cable, &second->machine, 1, &bed.host->machine,
                   1);
    bed_connect(&bed, 0, 1, 64);
    native_host_add(bed.host, &other, 1);
    assert_true(native_target(bed.host, second, 1, &target));
    assert_int_equal(host_connect(&other, &target), 0);

    assert_int_equal(bed_write(&bed, 1, 77, 1, HOST_DATA_KEYED, false, 1), 0);
    bed_fill(bed.host->data + 4096, 77, 1, 2);
    assert_int_equal(host_io(&other, &io), 0);
    bed_expect(&bed, 1, 77, 1, HOST_DATA_KEYED, 1);
    /* One drive loses power, and the other goes on. */
    native_drive_power_cut(second);
    bed_expect(&bed, 1, 77, 1, HOST_DATA_KEYED, 1);
    host_vanish(&other);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
    machine_plug(&bed.host->machine, 1, NULL, 0);
    cable_end(&cable);
    medium_end(&medium);
}

/* The RNIC model refuses no command of the firmware. */
static void test_the_rnic_refuses_no_command_of_the_firmware(void **state)
{
    (void)state;
    bed_connect(&bed, 0, 8, 64);
    assert_int_equal(bed_write(&bed, 8, 0, 256, HOST_DATA_KEYED, true, 1), 0);
    host_disconnect(&bed.host->host);
    assert_int_equal(bed.drive->drive.net.verbs.counters.commands_refused, 0);
    assert_int_equal(bed.host->net.verbs.counters.commands_refused, 0);
}

/* A connected drive without commands sleeps: nothing polls. */
static void test_an_idle_drive_sleeps(void **state)
{
    uint64_t frames;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    native_world_pass(&bed.world, UINT64_C(60000000000));
    frames = bed.cables[0].frames;
    assert_true(bed.drive->sleep.is_asleep);
    native_world_pass(&bed.world, UINT64_C(1000000000));
    assert_true(bed.cables[0].frames - frames < 8);
    assert_int_equal(bed_read(&bed, 1, 0, 1, HOST_DATA_KEYED), 0);
}

TEST_FIXTURE(setup, teardown)
