/* SPDX-License-Identifier: BSD-2-Clause */
/* Copy. */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum { RANGE_LEN = 32, COPY_RANGES = 128, CC_READY = 0x460001 };

static void put_source(uint8_t *data, unsigned int i, uint64_t lba,
                       uint32_t blocks)
{
    memset(data + RANGE_LEN * i, 0, RANGE_LEN);
    put_le64(data + RANGE_LEN * i + 8, lba);
    put_le16(data + RANGE_LEN * i + 16, (uint16_t)(blocks - 1));
}

static struct nvme_sqe copy_sqe(uint64_t lba, uint32_t ranges)
{
    return fake_rw(NVM_COPY, lba, ranges);
}

static void fill_blocks(struct fake *fake)
{
    for (uint32_t i = 0; i < FAKE_BLOCKS * 512; i++) {
        fake->blocks[0][i] = (uint8_t)(i * 11 + (i >> 9));
    }
}

static void test_copy_copies_each_range_behind_the_other(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe sqe = copy_sqe(1000, 3);
    static uint8_t before[FAKE_BLOCKS * 512];
    uint8_t data[3 * RANGE_LEN];

    fill_blocks(fake);
    memcpy(before, fake->blocks[0], sizeof(before));
    put_source(data, 0, 3, 1);
    put_source(data, 1, 100, 600); /* three chunks */
    put_source(data, 2, 0, 2);
    sqe.cdw12 |= 1u << 30;
    assert_int_equal(fake_exec(fake, io, &sqe, data, sizeof(data)).status, 0);
    assert_memory_equal(fake->blocks[0], before, 1000 * 512);
    assert_memory_equal(fake->blocks[0] + 1000 * 512, before + 3 * 512, 512);
    assert_memory_equal(fake->blocks[0] + 1001 * 512, before + 100 * 512,
                        600 * 512);
    assert_memory_equal(fake->blocks[0] + 1601 * 512, before, 1024);
    assert_memory_equal(fake->blocks[0] + 1603 * 512, before + 1603 * 512,
                        445 * 512);
    for (unsigned int i = 0; i < fake->history_count; i++) {
        assert_int_equal(fake->history[i].op,
                         i % 2 == 0 ? MEDIA_READ : MEDIA_WRITE);
        assert_int_equal(fake->history[i].fua, i % 2);
    }
    assert_int_equal(fake->history_count, 2 * (1 + 3 + 1));
    assert_int_equal(nvmf_target_counters(fake->target)->written_blocks_512,
                     603);
    assert_int_equal(fake->target->order.count, 0);
    assert_int_equal(fake->target->scratch.used, 0);
}

static void test_the_limits_of_copy_are_those_of_identify(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe identify = fake_admin(ADMIN_IDENTIFY, 1, CNS_NAMESPACE, 0);
    uint32_t mssrl, mcl, ranges;
    uint8_t data[COPY_RANGES * RANGE_LEN];
    struct nvme_sqe sqe;

    fake_exec(fake, admin, &identify, fake->data, 4096);
    mssrl = get_le16(fake->data + 74);
    mcl = get_le32(fake->data + 76);
    ranges = fake->data[80] + 1u;
    assert_int_equal(ranges, COPY_RANGES);
    assert_true(mcl >= mssrl);

    for (uint32_t i = 0; i < ranges; i++) {
        put_source(data, i, i, 1);
    }
    sqe = copy_sqe(1000, ranges);
    assert_int_equal(fake_exec(fake, io, &sqe, data, ranges * RANGE_LEN).status,
                     0);

    /* The fake's namespace is smaller than the limits. */
    put_source(data, 0, 0, mssrl);
    sqe = copy_sqe(1000, 1);
    assert_int_equal(fake_exec(fake, io, &sqe, data, RANGE_LEN).status,
                     NVME_SC_LBA_RANGE | DNR | MORE);
    put_source(data, 0, 0, mssrl + 1);
    assert_int_equal(fake_exec(fake, io, &sqe, data, RANGE_LEN).status,
                     NVME_SC_SIZE_LIMIT | DNR | MORE);
    for (uint32_t i = 0; i < ranges; i++) {
        put_source(data, i, 0, 1024);
    }
    sqe = copy_sqe(0, mcl / 1024 + 1);
    assert_int_equal(
        fake_exec(fake, io, &sqe, data, (mcl / 1024 + 1) * RANGE_LEN).status,
        NVME_SC_SIZE_LIMIT | DNR | MORE);
    sqe = copy_sqe(0, mcl / 1024);
    assert_int_equal(
        fake_exec(fake, io, &sqe, data, mcl / 1024 * RANGE_LEN).status,
        NVME_SC_LBA_RANGE | DNR | MORE);
}

static void test_a_copy_beyond_the_end_copies_nothing(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe sqe = copy_sqe(2040, 2);
    uint8_t data[2 * RANGE_LEN];

    put_source(data, 0, 0, 4);
    put_source(data, 1, 0, 5); /* the destination has 8 blocks */
    assert_int_equal(fake_exec(fake, io, &sqe, data, sizeof(data)).status,
                     NVME_SC_LBA_RANGE | DNR | MORE);
    put_source(data, 1, 2045, 4); /* the source has 3 */
    assert_int_equal(fake_exec(fake, io, &sqe, data, sizeof(data)).status,
                     NVME_SC_LBA_RANGE | DNR | MORE);
    put_source(data, 1, UINT64_MAX, 2);
    assert_int_equal(fake_exec(fake, io, &sqe, data, sizeof(data)).status,
                     NVME_SC_LBA_RANGE | DNR | MORE);
    assert_int_equal(fake->history_count, 0);
    put_source(data, 1, 2044, 4);
    assert_int_equal(fake_exec(fake, io, &sqe, data, sizeof(data)).status, 0);
}

static void test_a_failed_copy_names_the_range(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe sqe = copy_sqe(1000, 3);
    struct fake_request *request;
    uint8_t data[3 * RANGE_LEN];

    for (unsigned int i = 0; i < 3; i++) {
        put_source(data, i, i, 1);
    }
    fake->hold_media = true;
    request = fake_send(fake, io, &sqe, data, sizeof(data));
    fake_run(fake);
    for (unsigned int i = 0; i < 3; i++) {
        fake_run_media(fake);
    }
    fake->media_status = MEDIA_WRITE_ERROR;
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(request->cqe.status, NVME_SC_WRITE_FAULT | MORE);
    assert_int_equal(request->cqe.dw0, 1);
    assert_int_equal(fake->target->order.count, 0);
    assert_int_equal(fake->target->scratch.used, 0);
}

static void test_copy_stops_when_its_queue_ends(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe sqe = copy_sqe(1000, 1);
    uint8_t data[RANGE_LEN];

    put_source(data, 0, 0, 1000);
    fake->hold_media = true;
    (void)fake_send(fake, io, &sqe, data, sizeof(data));
    fake_run(fake);
    assert_int_equal(fake->media_count, 1);
    assert_false(nvmf_qpair_closed(fake->target, io));
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(fake->history_count, 1);
    assert_int_equal(fake->drained_count, 1);
    assert_int_equal(fake->target->order.count, 0);
    assert_int_equal(fake->target->scratch.used, 0);
}

WITH_FIXTURE(NULL, NULL)
static void test_the_data_sheet_profile_has_no_copy_and_no_verify(void **state)
{
    struct fake *fake = fake_new();
    struct nvme_sqe copy = copy_sqe(0, 1), verify = fake_rw(NVM_VERIFY, 0, 1);
    uint8_t data[RANGE_LEN];
    uint16_t io;

    (void)state;
    fake->config.vs = 0x00010201;
    fake_start(fake);
    io = fake_io_queue(fake, fake_host(fake, 0), 1);
    put_source(data, 0, 0, 1);
    assert_int_equal(fake_exec(fake, io, &copy, data, sizeof(data)).status,
                     NVME_SC_INVALID_OPCODE | DNR | MORE);
    assert_int_equal(fake_exec(fake, io, &verify, NULL, 0).status,
                     NVME_SC_INVALID_OPCODE | DNR | MORE);
    fake_free(fake);
}

/* ---- Format 2: sources in other namespaces. */

static void enable_format_2(struct fake *fake, uint16_t admin)
{
    struct nvme_sqe sqe =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_HOST_BEHAVIOR, 0);

    memset(fake->data, 0, 512);
    put_le16(fake->data + 4, 1 << 2);
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 512).status, 0);
}

static uint16_t copy_from(struct fake *fake, uint16_t io, uint32_t nsid,
                          uint64_t from, uint64_t to, uint32_t blocks)
{
    struct nvme_sqe sqe = copy_sqe(to, 1);
    uint8_t data[RANGE_LEN];

    sqe.cdw12 |= 2 << 8;
    put_source(data, 0, from, blocks);
    put_le32(data, nsid);
    return fake_exec(fake, io, &sqe, data, sizeof(data)).status & NVME_SC_MASK;
}

static void test_format_2_copies_from_another_namespace(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    fill_blocks(fake);
    for (uint32_t i = 0; i < FAKE_BLOCKS * 512; i++) {
        fake->blocks[1][i] = (uint8_t)(i * 7 + 1);
    }
    assert_int_equal(copy_from(fake, io, 2, 0, 8, 1), NVME_SC_INVALID_FIELD);
    enable_format_2(fake, admin);
    assert_int_equal(copy_from(fake, io, 2, 40, 8, 500), 0);
    assert_memory_equal(fake->blocks[0] + 8 * 512, fake->blocks[1] + 40 * 512,
                        500 * 512);
    assert_int_equal(copy_from(fake, io, 1, 0, 1000, 8), 0);
    assert_memory_equal(fake->blocks[0] + 1000 * 512, fake->blocks[0], 8 * 512);
    assert_int_equal(fake->target->ns[1].users, 0);
}

static void test_format_2_refuses_sources_that_cannot_be_read(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe fast = copy_sqe(8, 1);
    uint8_t data[RANGE_LEN];

    enable_format_2(fake, admin);
    assert_int_equal(copy_from(fake, io, 0, 0, 8, 1), NVME_SC_INVALID_NS);
    assert_int_equal(copy_from(fake, io, NVME_NSID_ALL, 0, 8, 1),
                     NVME_SC_INVALID_NS);
    assert_int_equal(copy_from(fake, io, 3, 0, 8, 1), NVME_SC_INVALID_FIELD);
    assert_int_equal(copy_from(fake, io, 2, FAKE_BLOCKS, 8, 1),
                     NVME_SC_LBA_RANGE);
    assert_int_equal(copy_from(fake, io, 1, 0, 7, 8),
                     NVME_SC_OVERLAPPING_RANGE);
    assert_int_equal(copy_from(fake, io, 1, 15, 8, 8),
                     NVME_SC_OVERLAPPING_RANGE);
    assert_int_equal(copy_from(fake, io, 1, 16, 8, 8), 0);
    fake->target->ns[1].geometry.block_shift = 12;
    assert_int_equal(copy_from(fake, io, 2, 0, 8, 1), NVME_SC_INCOMPATIBLE_NS);
    fake->target->ns[1].geometry.block_shift = 9;
    put_source(data, 0, 0, 1);
    put_le32(data, 2);
    put_le16(data + 22, 0x8000);
    fast.cdw12 |= 2 << 8;
    assert_int_equal(fake_exec(fake, io, &fast, data, sizeof(data)).status &
                         NVME_SC_MASK,
                     NVME_SC_FAST_COPY_IMPOSSIBLE);
    assert_int_equal(fake->target->ns[1].users, 0);
    assert_int_equal(fake->history_count, 2);
}

static void test_host_behavior_is_checked_and_reset_with_the_controller(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_HOST_BEHAVIOR, 0);
    struct nvme_sqe get =
        fake_admin(ADMIN_GET_FEATURES, 0, FEATURE_HOST_BEHAVIOR, 0);
    static const struct {
        uint16_t byte;
        uint8_t value;
    } wrong[] = {{0, 2}, {1, 1}, {2, 1}, {4, 1}, {4, 8}, {5, 1}, {511, 1}};

    enable_format_2(fake, admin);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        memset(fake->data, 0, 512);
        fake->data[wrong[i].byte] = wrong[i].value;
        assert_int_equal(fake_exec(fake, admin, &set, fake->data, 512).status &
                             NVME_SC_MASK,
                         NVME_SC_INVALID_FIELD);
    }
    assert_int_equal(fake_exec(fake, admin, &get, fake->data, 512).status, 0);
    assert_int_equal(get_le16(fake->data + 4), 4);
    fake_property_set(fake, admin, PROPERTY_CC, CC_READY & ~1u);
    fake_property_set(fake, admin, PROPERTY_CC, CC_READY);
    assert_int_equal(fake_exec(fake, admin, &get, fake->data, 512).status, 0);
    assert_int_equal(get_le16(fake->data + 4), 0);
}

/* The value would outlive the reset that ends it. */
static void test_no_feature_is_set_by_a_command_from_before_a_reset(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe set =
        fake_admin(ADMIN_SET_FEATURES, 0, FEATURE_HOST_BEHAVIOR, 0);
    struct nvme_sqe get =
        fake_admin(ADMIN_GET_FEATURES, 0, FEATURE_HOST_BEHAVIOR, 0);
    struct fake_request *request;
    uint8_t data[512] = {[4] = 4};

    fake->hold_fetch = true;
    request = fake_send(fake, admin, &set, data, sizeof(data));
    fake_run(fake);
    fake_property_set(fake, admin, PROPERTY_CC, CC_READY & ~1u);
    fake_property_set(fake, admin, PROPERTY_CC, CC_READY);
    fake->hold_fetch = false;
    fake_run(fake);
    assert_int_equal(request->cqe.status & ~MORE, NVME_SC_ABORT_REQUESTED);
    assert_int_equal(fake_exec(fake, admin, &get, fake->data, 512).status, 0);
    assert_int_equal(get_le16(fake->data + 4), 0);
}

TEST_FIXTURE(fake_setup, fake_teardown)
