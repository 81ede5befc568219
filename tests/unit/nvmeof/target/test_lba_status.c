/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Get LBA Status, the LBA Status Information log page, its event and its
 * feature: what is tracked, what ends it, and who waits for whom.
 */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/lba_status.h"
#include "tests/test_fixture.h"

enum {
    LIST_LEN = 4096,
    UNIT_US = 100 * 1000,
    RAE = 1 << 15,
    ALERT =
        LOG_LBA_STATUS << 16 | EVENT_NOTICE_LBA_STATUS << 8 | EVENT_TYPE_NOTICE,
};

static uint8_t list[LIST_LEN];

static struct nvme_sqe status_of(uint64_t slba, uint16_t blocks, uint8_t action,
                                 uint32_t bytes)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_GET_LBA_STATUS, 1, (uint32_t)slba,
                                     (uint32_t)(slba >> 32));

    sqe.cdw12 = bytes / 4 - 1;
    sqe.cdw13 = (uint32_t)action << LBA_STATUS_ATYPE | blocks;
    return sqe;
}

/* Execute the command with room for all descriptors.  @return NLSD */
static uint32_t get_status(struct fake *fake, uint16_t admin, uint64_t slba,
                           uint16_t blocks, uint8_t action)
{
    struct nvme_sqe sqe = status_of(slba, blocks, action, LIST_LEN);

    memset(fake->data, 0xa5, LIST_LEN);
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, LIST_LEN).status,
                     0);
    memcpy(list, fake->data, LIST_LEN);
    return get_le32(list + LBA_STATUS_NLSD);
}

static uint32_t count_tracked(struct fake *fake, uint16_t admin)
{
    return get_status(fake, admin, 0, 0, LBA_ACTION_TRACKED);
}

static void expect_descriptor(uint32_t i, uint64_t first, uint32_t count,
                              uint8_t status)
{
    const uint8_t *entry =
        list + LBA_STATUS_HEADER_LEN + i * LBA_DESCRIPTOR_LEN;

    assert_int_equal(get_le64(entry + LBA_DESCRIPTOR_DSLBA), first);
    assert_int_equal(get_le32(entry + LBA_DESCRIPTOR_NLB), count - 1);
    assert_int_equal(entry[LBA_DESCRIPTOR_STATUS], status);
    assert_int_equal(entry[12], 0);
    assert_int_equal(get_le16(entry + 14), 0);
}

static uint16_t run_io(struct fake *fake, uint16_t io, struct nvme_sqe sqe,
                       uint32_t len)
{
    return fake_exec(fake, io, &sqe, fake->data, len).status & NVME_SC_MASK;
}

/* Fail a read of these blocks. */
static void read_badly(struct fake *fake, uint16_t io, uint64_t lba,
                       uint32_t blocks)
{
    fake->bad_first = lba;
    fake->bad_count = blocks;
    assert_int_equal(
        run_io(fake, io, fake_rw(NVM_READ, lba, blocks), blocks * 512),
        NVME_SC_READ_ERROR);
    fake->bad_count = 0;
}

static uint16_t get_log(struct fake *fake, uint16_t admin, uint32_t flags,
                        uint32_t offset, uint32_t len)
{
    struct nvme_sqe sqe = fake_admin(
        ADMIN_GET_LOG_PAGE, 0, (len / 4 - 1) << 16 | flags | LOG_LBA_STATUS, 0);

    sqe.cdw12 = offset;
    memset(fake->data, 0xa5, len);
    return fake_exec(fake, admin, &sqe, fake->data, len).status & NVME_SC_MASK;
}

static const uint8_t *read_log(struct fake *fake, uint16_t admin,
                               uint32_t flags)
{
    assert_int_equal(get_log(fake, admin, flags, 0, LIST_LEN), 0);
    return fake->data;
}

/* ---- The command. */

static void test_without_errors_nothing_is_tracked(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    assert_int_equal(count_tracked(fake, admin), 0);
    assert_int_equal(list[LBA_STATUS_CMPC], LBA_CMPC_COMPLETE);
    for (uint32_t i = LBA_STATUS_CMPC + 1; i < LIST_LEN; i++) {
        assert_int_equal(list[i], 0);
    }
    assert_int_equal(fake->history_count, 0); /* no scan */
}

static void test_blocks_that_commands_cannot_read_are_tracked(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    read_badly(fake, io, 100, 1);
    read_badly(fake, io, 40, 8);
    fake->bad_first = 600;
    fake->bad_count = 1;
    assert_int_equal(run_io(fake, io, fake_rw(NVM_VERIFY, 500, 300), 0),
                     NVME_SC_READ_ERROR);
    fake->bad_first = 1001;
    assert_int_equal(run_io(fake, io, fake_rw(NVM_COMPARE, 1000, 2), 1024),
                     NVME_SC_READ_ERROR);
    assert_int_equal(count_tracked(fake, admin), 4);
    expect_descriptor(0, 40, 8, 0); /* one of them, or all */
    expect_descriptor(1, 100, 1, LBA_UNREADABLE);
    expect_descriptor(2, 500, 256, 0); /* the first piece of Verify */
    expect_descriptor(3, 1000, 2, 0);
    assert_int_equal(list[LBA_STATUS_CMPC], LBA_CMPC_COMPLETE);
}

static void test_the_source_of_a_failed_copy_is_tracked(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe copy = fake_rw(NVM_COPY, 1500, 1);

    copy.cdw12 = 1; /* two ranges */
    memset(fake->data, 0, 64);
    put_le64(fake->data + 8, 10);
    put_le64(fake->data + 32 + 8, 30);
    put_le16(fake->data + 32 + 16, 3);
    fake->bad_first = 31;
    fake->bad_count = 1;
    assert_int_equal(run_io(fake, io, copy, 64), NVME_SC_READ_ERROR);
    assert_int_equal(count_tracked(fake, admin), 1);
    expect_descriptor(0, 30, 4, 0);
}

static void test_a_failed_write_is_not_tracked(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    fake->media_status = MEDIA_WRITE_ERROR;
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE, 3, 1), 512),
                     NVME_SC_WRITE_FAULT);
    fake->media_status = MEDIA_OK;
    assert_int_equal(count_tracked(fake, admin), 0);
}

static void test_a_range_limits_what_is_returned(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    read_badly(fake, io, 100, 100);
    read_badly(fake, io, 300, 1);
    assert_int_equal(get_status(fake, admin, 110, 20, LBA_ACTION_TRACKED), 1);
    expect_descriptor(0, 110, 20, 0);
    assert_int_equal(get_status(fake, admin, 199, 101, LBA_ACTION_TRACKED), 1);
    expect_descriptor(0, 199, 1, 0);
    assert_int_equal(get_status(fake, admin, 199, 102, LBA_ACTION_TRACKED), 2);
    assert_int_equal(get_status(fake, admin, 301, 0, LBA_ACTION_TRACKED), 0);
    assert_int_equal(get_status(fake, admin, 0, 100, LBA_ACTION_TRACKED), 0);
}

static void test_mndw_limits_what_is_returned(void **state)
{
    static const struct {
        uint32_t bytes, descriptors;
        uint8_t cmpc;
    } rows[] = {{4, 0, LBA_CMPC_MORE}, /* MNDW 0: not even CMPC */
                {8, 0, LBA_CMPC_MORE},       {20, 0, LBA_CMPC_MORE},
                {24, 1, LBA_CMPC_MORE},      {36, 1, LBA_CMPC_MORE},
                {40, 2, LBA_CMPC_COMPLETE},  {44, 2, LBA_CMPC_COMPLETE},
                {8192, 2, LBA_CMPC_COMPLETE}};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    read_badly(fake, io, 7, 1);
    read_badly(fake, io, 5, 1);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t bytes = rows[i].bytes;
        struct nvme_sqe sqe = status_of(0, 16, LBA_ACTION_TRACKED, bytes);

        memset(fake->data, 0xa5, sizeof(fake->data));
        assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, bytes).status,
                         0);
        assert_int_equal(fake->data[bytes], 0xa5);
        assert_int_equal(get_le32(fake->data), rows[i].descriptors);
        assert_true(bytes < 8 || fake->data[4] == rows[i].cmpc);
    }
}

static void test_wrong_fields_are_refused_with_their_place(void **state)
{
    static const struct {
        uint32_t nsid;
        uint64_t slba;
        uint16_t blocks;
        uint8_t action;
        uint16_t status, location;
    } rows[] = {
        {1, 0, 1, 0x00, NVME_SC_INVALID_FIELD, SQE_CDW13 + 3},
        {1, 0, 1, 0x02, NVME_SC_INVALID_FIELD, SQE_CDW13 + 3},
        {1, 0, 1, 0x0f, NVME_SC_INVALID_FIELD, SQE_CDW13 + 3},
        {1, 0, 1, 0x12, NVME_SC_INVALID_FIELD, SQE_CDW13 + 3},
        {1, FAKE_BLOCKS, 0, 0x10, NVME_SC_LBA_RANGE, SQE_CDW10},
        {1, FAKE_BLOCKS, 1, 0x11, NVME_SC_LBA_RANGE, SQE_CDW10},
        {1, FAKE_BLOCKS - 1, 2, 0x10, NVME_SC_LBA_RANGE, SQE_CDW10},
        {1, UINT64_MAX, 0, 0x11, NVME_SC_LBA_RANGE, SQE_CDW10},
        {1, UINT64_MAX, 1, 0x10, NVME_SC_LBA_RANGE, SQE_CDW10},
        {1, UINT64_MAX - 1, 0xffff, 0x10, NVME_SC_LBA_RANGE, SQE_CDW10},
        {0, 0, 1, 0x11, NVME_SC_INVALID_NS, SQE_NSID},
        {NVME_NSID_ALL, 0, 1, 0x11, NVME_SC_INVALID_NS, SQE_NSID},
        {NVMF_MAX_NAMESPACES + 1, 0, 1, 0x10, NVME_SC_INVALID_NS, SQE_NSID},
        {FAKE_NAMESPACES + 1, 0, 1, 0x10, NVME_SC_INVALID_FIELD, SQE_NSID},
    };
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct log_error error;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct nvme_sqe sqe =
            status_of(rows[i].slba, rows[i].blocks, rows[i].action, LIST_LEN);

        sqe.nsid = rows[i].nsid;
        assert_int_equal(
            fake_exec(fake, admin, &sqe, fake->data, LIST_LEN).status,
            rows[i].status | DNR | MORE);
        assert_true(nvmf_target_error(fake->target, i + 1, &error));
        assert_int_equal(error.location, rows[i].location);
    }
    assert_int_equal(fake->history_count, 0);
    assert_int_equal(
        get_status(fake, admin, FAKE_BLOCKS - 1, 1, LBA_ACTION_SCAN), 0);
}

static void test_a_descriptor_that_is_too_short_is_refused(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe = status_of(0, 0, LBA_ACTION_TRACKED, 64);

    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 60).status,
                     NVME_SC_SGL_INVALID_LENGTH | DNR | MORE);
    sqe.cdw12 = UINT32_MAX; /* the drive never returns more than 4096 bytes */
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, LIST_LEN).status,
                     0);
}

/* ---- A scan. */

static void test_a_scan_reads_every_block_from_the_medium_once(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint64_t next = 100;

    assert_int_equal(get_status(fake, admin, 100, 1000, LBA_ACTION_SCAN), 0);
    assert_int_equal(list[LBA_STATUS_CMPC], LBA_CMPC_COMPLETE);
    for (unsigned int i = 0; i < fake->history_count; i++) {
        assert_int_equal(fake->history[i].op, MEDIA_READ);
        assert_true(fake->history[i].fua);
        assert_int_equal(fake->history[i].first_lba, next);
        next += fake->history[i].count_blocks;
    }
    assert_int_equal(next, 1100);
    assert_true(fake->history_count <= 6);
    assert_int_equal(fake->target->scratch.used, 0);
    assert_null(fake->target->lba.scan);
}

static void test_a_scan_finds_each_block_that_cannot_be_read(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const struct nvmf_counters *counters = nvmf_target_counters(fake->target);

    for (uint64_t first = 0; first < 2048; first += 97) {
        lba_list_forget(&fake->target->lba.list, 0);
        fake->history_count = 0;
        fake->bad_first = first;
        fake->bad_count = first % 3 + 1;
        uint64_t errors = counters->media_errors;
        uint32_t count = (uint32_t)MIN(fake->bad_count, 2048 - first);

        assert_int_equal(get_status(fake, admin, 0, 0, LBA_ACTION_SCAN), 1);
        expect_descriptor(0, first, count, LBA_UNREADABLE);
        assert_int_equal(list[LBA_STATUS_CMPC], LBA_CMPC_COMPLETE);
        assert_int_equal(counters->media_errors, errors + count);
        /* They are tracked from now on. */
        assert_int_equal(count_tracked(fake, admin), 1);
        expect_descriptor(0, first, count, LBA_UNREADABLE);
    }
}

static void test_a_scan_clears_what_can_be_read(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    read_badly(fake, io, 64, 64);
    fake->bad_first = 70;
    fake->bad_count = 1;
    assert_int_equal(get_status(fake, admin, 0, 100, LBA_ACTION_SCAN), 1);
    expect_descriptor(0, 70, 1, LBA_UNREADABLE);
    assert_int_equal(count_tracked(fake, admin), 2);
    expect_descriptor(0, 70, 1, LBA_UNREADABLE);
    expect_descriptor(1, 100, 28, 0); /* not in the range of the scan */
}

static void test_other_media_errors_end_a_scan(void **state)
{
    static const struct {
        enum media_status media;
        uint16_t status;
    } rows[] = {{MEDIA_INTERNAL_ERROR, NVME_SC_INTERNAL},
                {MEDIA_ABORTED, NVME_SC_ABORT_REQUESTED},
                {MEDIA_LBA_RANGE, NVME_SC_LBA_RANGE}};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe = status_of(0, 0, LBA_ACTION_SCAN, LIST_LEN);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        fake->media_status = rows[i].media;
        assert_int_equal(
            fake_exec(fake, admin, &sqe, fake->data, LIST_LEN).status &
                NVME_SC_MASK,
            rows[i].status);
        assert_null(fake->target->lba.scan);
        assert_int_equal(fake->target->scratch.used, 0);
    }
}

static void test_a_scan_stops_when_the_host_has_no_room(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe = status_of(0, 0, LBA_ACTION_SCAN, 20);

    fake->bad_first = 10;
    fake->bad_count = 1;
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 20).status, 0);
    assert_int_equal(get_le32(fake->data), 0);
    assert_int_equal(fake->data[LBA_STATUS_CMPC], LBA_CMPC_MORE);
    assert_int_equal(fake->history[fake->history_count - 1].first_lba, 10);
    /* With room for one, adjacent blocks still fit. */
    sqe = status_of(0, 0, LBA_ACTION_SCAN, 24);
    fake->bad_count = 3;
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 24).status, 0);
    memcpy(list, fake->data, 24);
    assert_int_equal(list[LBA_STATUS_CMPC], LBA_CMPC_COMPLETE);
    expect_descriptor(0, 10, 3, LBA_UNREADABLE);
}

static void test_scans_take_turns_and_leave_scratch_buffers(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t other = fake_host(fake, 0);
    struct nvme_sqe sqe = status_of(0, 0, LBA_ACTION_SCAN, LIST_LEN);
    struct fake_request *request[6];

    fake->hold_media = true;
    for (size_t i = 0; i < ARRAY_LEN(request); i++) {
        request[i] =
            fake_send(fake, i % 2 ? other : admin, &sqe, fake->data, LIST_LEN);
    }
    fake_run(fake);
    assert_int_equal(fake->media_count, 1);
    for (unsigned int turn = 0; turn < 12; turn++) {
        assert_ptr_equal(fake->media[0].owner,
                         &request[turn % 6]->req.media_owner);
        assert_int_equal(
            fake->target->scratch.used & (fake->target->scratch.used - 1), 0);
        fake_run_media(fake);
        assert_int_equal(fake->media_count, 1);
    }
    fake->hold_media = false;
    fake_run(fake);
    for (size_t i = 0; i < ARRAY_LEN(request); i++) {
        assert_true(request[i]->is_answered);
        assert_int_equal(request[i]->cqe.status, 0);
    }
    assert_null(fake->target->lba.scan);
    assert_null(fake->target->lba.waiting.head);
    assert_int_equal(fake->target->scratch.used, 0);
}

static void test_commands_with_data_wait_for_one_read_of_a_scan(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe scan = status_of(0, 0, LBA_ACTION_SCAN, LIST_LEN);
    struct nvme_sqe verify = fake_rw(NVM_VERIFY, 0, 8);
    struct fake_request *request[SCRATCH_COUNT];

    fake->hold_media = true;
    (void)fake_send(fake, admin, &scan, fake->data, LIST_LEN);
    fake_run(fake);
    for (size_t i = 0; i < ARRAY_LEN(request); i++) {
        request[i] = fake_send(fake, io, &verify, NULL, 0);
    }
    /* The last one waits for the scan's buffer, and gets it after one read. */
    assert_int_equal(request[SCRATCH_COUNT - 1]->req.state,
                     NVMF_REQUEST_WAIT_TURN);
    fake_run_media(fake);
    assert_int_equal(request[SCRATCH_COUNT - 1]->req.state, NVMF_REQUEST_MEDIA);
    fake->hold_media = false;
    fake_run(fake);
}

static void test_scans_of_a_host_that_leaves_end(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t other = fake_host(fake, 0);
    struct nvme_sqe sqe = status_of(0, 0, LBA_ACTION_SCAN, LIST_LEN);
    struct fake_request *left;

    fake->hold_media = true;
    (void)fake_send(fake, admin, &sqe, fake->data, LIST_LEN);
    fake_run(fake);
    left = fake_send(fake, other, &sqe, fake->data, LIST_LEN);
    (void)fake_send(fake, admin, &sqe, fake->data, LIST_LEN);
    fake_run(fake);
    assert_false(nvmf_qpair_closed(fake->target, admin));
    fake_run_media(fake);
    assert_ptr_equal(fake->target->lba.scan, &left->req);
    assert_null(fake->target->lba.waiting.head);
    fake->hold_media = false;
    fake_run(fake);
    assert_true(left->is_answered);
    assert_int_equal(left->cqe.status, 0);
    assert_int_equal(fake->target->ns[0].users, 0);
}

static void test_a_waiting_scan_can_be_aborted(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe = status_of(0, 0, LBA_ACTION_SCAN, LIST_LEN);
    struct nvme_sqe abort;
    struct fake_request *request;

    fake->hold_media = true;
    (void)fake_send(fake, admin, &sqe, fake->data, LIST_LEN);
    fake_run(fake);
    request = fake_send(fake, admin, &sqe, fake->data, LIST_LEN);
    fake_run(fake);
    abort = fake_admin(ADMIN_ABORT, 0, (uint32_t)request->req.sqe.cid << 16, 0);
    assert_int_equal(fake_exec(fake, admin, &abort, NULL, 0).dw0, 0);
    assert_int_equal(request->cqe.status & NVME_SC_MASK,
                     NVME_SC_ABORT_REQUESTED);
    fake->hold_media = false;
    fake_run(fake);
}

static void test_a_reset_ends_a_scan(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe sqe = status_of(0, 0, LBA_ACTION_SCAN, LIST_LEN);
    struct fake_request *request;

    fake->hold_media = true;
    request = fake_send(fake, admin, &sqe, fake->data, LIST_LEN);
    fake_run(fake);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE - CC_EN);
    fake_run_media(fake);
    assert_int_equal(fake->media_count, 0);
    fake_run(fake);
    assert_int_equal(request->cqe.status & NVME_SC_MASK,
                     NVME_SC_ABORT_REQUESTED);
    fake->hold_media = false;
}

/* ---- What ends it that a block is tracked. */

static void test_blocks_that_were_written_are_not_tracked(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe copy = fake_rw(NVM_COPY, 16, 1);
    struct nvme_sqe trim = fake_admin(NVM_DATASET_MANAGEMENT, 1, 1, 4);

    read_badly(fake, io, 0, 64);
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE, 0, 8), 8 * 512), 0);
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE_ZEROES, 8, 4), 0), 0);
    assert_int_equal(count_tracked(fake, admin), 1);
    expect_descriptor(0, 12, 52, 0);
    copy.cdw12 = 0;
    memset(fake->data, 0, 32);
    put_le64(fake->data + 8, 1000);
    put_le16(fake->data + 16, 3);
    assert_int_equal(run_io(fake, io, copy, 32), 0);
    memset(fake->data, 0, 32);
    put_le32(fake->data + 4, 10);
    put_le64(fake->data + 8, 20);
    put_le32(fake->data + 16 + 4, 1);
    put_le64(fake->data + 16 + 8, 63);
    assert_int_equal(run_io(fake, io, trim, 32), 0);
    assert_int_equal(count_tracked(fake, admin), 2);
    expect_descriptor(0, 12, 4, 0);
    expect_descriptor(1, 30, 33, 0);
}

static void test_other_commands_leave_blocks_tracked(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe other = fake_rw(NVM_WRITE, 5, 1);
    struct nvme_sqe hint = fake_admin(NVM_DATASET_MANAGEMENT, 1, 0, 1);

    read_badly(fake, io, 5, 1);
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE, 4, 1), 512), 0);
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE, 6, 1), 512), 0);
    other.nsid = 2;
    assert_int_equal(run_io(fake, io, other, 512), 0);
    memset(fake->data, 0, 16);
    put_le32(fake->data + 4, 100);
    assert_int_equal(run_io(fake, io, hint, 16), 0);
    fake->media_status = MEDIA_WRITE_ERROR;
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE, 5, 1), 512),
                     NVME_SC_WRITE_FAULT);
    fake->media_status = MEDIA_OK;
    assert_int_equal(count_tracked(fake, admin), 1);
    expect_descriptor(0, 5, 1, LBA_UNREADABLE);
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE, 5, 1), 512), 0);
    assert_int_equal(count_tracked(fake, admin), 0);
    assert_int_equal(fake->target->ns[0].caution, 0);
}

static void test_a_write_that_fails_halfway_clears_what_it_has_written(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe sqe = fake_rw(NVM_WRITE, 0, 24);
    struct fake_request *request;

    read_badly(fake, io, 0, 24);
    fake->window_max = 4096;
    fake->hold_media = true;
    request = fake_send(fake, io, &sqe, fake->data, 24 * 512);
    fake_run(fake);
    fake_run_media(fake); /* the first window */
    fake_run(fake);
    fake->media_status = MEDIA_WRITE_ERROR;
    fake_run_media(fake);
    fake->hold_media = false;
    fake->media_status = MEDIA_OK;
    fake_run(fake);
    assert_int_equal(request->cqe.status & NVME_SC_MASK, NVME_SC_WRITE_FAULT);
    assert_int_equal(count_tracked(fake, admin), 1);
    expect_descriptor(0, 8, 16, 0);
}

static void test_a_self_test_adds_the_block_that_it_has_found(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    nvmf_lba_unreadable(fake->target, 1, 77);
    nvmf_lba_unreadable(fake->target, 1, FAKE_BLOCKS); /* beyond its end */
    nvmf_lba_unreadable(fake->target, FAKE_NAMESPACES + 1, 0); /* not there */
    assert_int_equal(count_tracked(fake, admin), 1);
    expect_descriptor(0, 77, 1, LBA_UNREADABLE);
}

/* ---- The log page. */

static void test_the_log_page_names_namespaces_and_ranges(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    const uint8_t *page = read_log(fake, admin, 0);
    struct nvme_sqe read = fake_rw(NVM_READ, 9, 1);

    assert_int_equal(get_le32(page + LBA_LOG_LSLPLEN), LBA_LOG_HEADER_LEN);
    for (uint32_t i = LBA_LOG_NLSLNE; i < LIST_LEN; i++) {
        assert_int_equal(page[i], 0);
    }
    read_badly(fake, io, 5, 1);
    read_badly(fake, io, 16, 8);
    read.nsid = 2;
    fake->bad_first = 9;
    fake->bad_count = 1;
    assert_int_equal(run_io(fake, io, read, 512), NVME_SC_READ_ERROR);
    page = read_log(fake, admin, 0);
    assert_int_equal(get_le32(page + LBA_LOG_LSLPLEN), 16 + 2 * 16 + 3 * 16);
    assert_int_equal(get_le32(page + LBA_LOG_NLSLNE), 2);
    assert_int_equal(get_le32(page + LBA_LOG_ESTULB), 10);
    assert_int_equal(get_le16(page + LBA_LOG_LSGC), 3);
    assert_int_equal(get_le32(page + 16 + LBA_ELEMENT_NEID), 1);
    assert_int_equal(get_le32(page + 16 + LBA_ELEMENT_NLRD), 2);
    assert_int_equal(page[16 + LBA_ELEMENT_RATYPE], LBA_ACTION_TRACKED);
    assert_int_equal(get_le64(page + 32 + LBA_RANGE_RSLBA), 5);
    assert_int_equal(get_le32(page + 32 + LBA_RANGE_RNLB), 0);
    assert_int_equal(get_le64(page + 48 + LBA_RANGE_RSLBA), 16);
    assert_int_equal(get_le32(page + 48 + LBA_RANGE_RNLB), 7);
    assert_int_equal(get_le32(page + 64 + LBA_ELEMENT_NEID), 2);
    assert_int_equal(get_le32(page + 64 + LBA_ELEMENT_NLRD), 1);
    assert_int_equal(get_le64(page + 80 + LBA_RANGE_RSLBA), 9);
    assert_int_equal(get_log(fake, admin, 0, 100, 4), NVME_SC_INVALID_FIELD);
    assert_int_equal(get_log(fake, admin, 0, 80, 16), 0);
    assert_int_equal(get_le64(fake->data + LBA_RANGE_RSLBA), 9);
}

static void test_the_page_stays_as_it_is_while_events_are_retained(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t other = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    static uint8_t before[LIST_LEN];

    read_badly(fake, io, 5, 1);
    memcpy(before, read_log(fake, admin, RAE), sizeof(before));
    read_badly(fake, io, 100, 1);
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE, 5, 1), 512), 0);
    assert_memory_equal(read_log(fake, admin, RAE), before, sizeof(before));
    /* That is one controller's page. */
    assert_int_equal(get_le64(read_log(fake, other, RAE) + 32), 100);
    /* The read that clears the event shows what is new. */
    assert_int_equal(get_le64(read_log(fake, admin, 0) + 32), 100);
    assert_int_equal(get_le16(fake->data + LBA_LOG_LSGC), 2);
    read_badly(fake, io, 50, 1);
    assert_int_equal(get_le64(read_log(fake, admin, RAE) + 32), 50);
}

static void test_a_list_that_is_too_short_asks_for_a_scan(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint8_t *page;

    for (uint32_t i = 0; i < LBA_LIST_MAX; i++) {
        nvmf_lba_unreadable(fake->target, 1, 2 * i);
    }
    nvmf_lba_unreadable(fake->target, 2, 7);
    assert_int_equal(count_tracked(fake, admin), LBA_LIST_MAX);
    assert_int_equal(list[LBA_STATUS_CMPC], LBA_CMPC_COMPLETE);
    page = read_log(fake, admin, 0);
    assert_int_equal(get_le32(page + LBA_LOG_NLSLNE), 2);
    assert_int_equal(get_le32(page + LBA_LOG_ESTULB), LBA_LOG_UNKNOWN);
    page += 16 + 16 + LBA_LIST_MAX * 16;
    assert_int_equal(get_le32(page + LBA_ELEMENT_NEID), 2);
    assert_int_equal(get_le32(page + LBA_ELEMENT_NLRD), LBA_LOG_UNKNOWN);
    assert_int_equal(page[LBA_ELEMENT_RATYPE], LBA_ACTION_SCAN);
    /* It is reported once. */
    page = read_log(fake, admin, 0);
    assert_int_equal(get_le32(page + LBA_LOG_NLSLNE), 1);
    assert_int_equal(get_le32(page + LBA_LOG_ESTULB), LBA_LIST_MAX);
    nvmf_lba_unreadable(fake->target, 2, 9);
    assert_int_equal(get_le32(read_log(fake, admin, 0) + LBA_LOG_NLSLNE), 2);
}

static void test_the_generation_counter_goes_on_after_a_power_cycle(
    void **state)
{
    struct fake *fake = fake_new();
    uint16_t admin;

    (void)state;
    fake->config.counters.lba_generation = 0xffff;
    fake_start(fake);
    admin = fake_host(fake, 0);
    assert_int_equal(get_le16(read_log(fake, admin, 0) + LBA_LOG_LSGC), 0xffff);
    nvmf_lba_unreadable(fake->target, 1, 3);
    assert_int_equal(nvmf_target_counters(fake->target)->lba_generation,
                     0x10000);
    assert_int_equal(get_le16(read_log(fake, admin, 0) + LBA_LOG_LSGC), 0);
    nvmf_lba_unreadable(fake->target, 1, 3); /* nothing new */
    assert_int_equal(get_le16(read_log(fake, admin, 0) + LBA_LOG_LSGC), 0);
    fake_free(fake);
}

/* ---- The event and the feature. */

static uint32_t set_feature(struct fake *fake, uint16_t admin, uint8_t fid,
                            uint32_t value)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_SET_FEATURES, 0, fid, value);
    struct nvme_cqe cqe = fake_exec(fake, admin, &sqe, NULL, 0);

    assert_int_equal(cqe.status, 0);
    return cqe.dw0;
}

static uint32_t get_feature(struct fake *fake, uint16_t admin, uint32_t cdw10)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_GET_FEATURES, 0, cdw10, 0);
    struct nvme_cqe cqe = fake_exec(fake, admin, &sqe, NULL, 0);

    assert_int_equal(cqe.status, 0);
    return cqe.dw0;
}

static uint64_t pass_time(struct fake *fake, uint64_t us)
{
    uint64_t next;

    fake->now_us += us;
    next = nvmf_target_timer(fake->target, fake->now_us);
    fake_run(fake);
    return next;
}

static void test_the_report_interval_is_at_least_the_poll_interval(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t other = fake_host(fake, 0);

    assert_int_equal(get_feature(fake, admin, FEATURE_LBA_STATUS), 0xa000a);
    assert_int_equal(set_feature(fake, admin, FEATURE_LBA_STATUS, 0x1230064),
                     0xa0064);
    assert_int_equal(get_feature(fake, admin, FEATURE_LBA_STATUS), 0xa0064);
    assert_int_equal(get_feature(fake, admin, FEATURE_LBA_STATUS | 1 << 8),
                     0xa000a); /* the default */
    assert_int_equal(get_feature(fake, admin, FEATURE_LBA_STATUS | 3 << 8),
                     4); /* changeable */
    assert_int_equal(get_feature(fake, other, FEATURE_LBA_STATUS), 0xa000a);
    assert_int_equal(set_feature(fake, admin, FEATURE_LBA_STATUS, 9), 0xa000a);
    assert_int_equal(set_feature(fake, admin, FEATURE_LBA_STATUS, 0xffff),
                     0xaffff);
}

static void test_an_alert_comes_when_the_interval_has_passed(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe aer = fake_admin(ADMIN_ASYNC_EVENT_REQUEST, 0, 0, 0);
    struct fake_request *event = fake_send(fake, admin, &aer, NULL, 0);
    uint64_t next_us;

    set_feature(fake, admin, FEATURE_ASYNC_EVENT_CONFIG, OAES_LBA_STATUS);
    set_feature(fake, admin, FEATURE_LBA_STATUS, 50);
    nvmf_lba_unreadable(fake->target, 1, 3);
    (void)read_log(fake, admin, 0); /* the interval begins again */
    next_us = pass_time(fake, 49 * UNIT_US);
    assert_int_equal(next_us, fake->now_us + UNIT_US);
    assert_false(event->is_answered);
    pass_time(fake, UNIT_US);
    assert_true(event->is_answered);
    assert_int_equal(event->cqe.dw0, ALERT);
    /* Only something new is worth another one, and only after the page was
     * read. */
    event = fake_send(fake, admin, &aer, NULL, 0);
    pass_time(fake, 500 * UNIT_US);
    nvmf_lba_unreadable(fake->target, 1, 30);
    pass_time(fake, 500 * UNIT_US);
    assert_false(event->is_answered);
    (void)read_log(fake, admin, RAE);
    pass_time(fake, 500 * UNIT_US);
    assert_false(event->is_answered);
    (void)read_log(fake, admin, 0);
    fake_run(fake);
    assert_true(event->is_answered);
    event = fake_send(fake, admin, &aer, NULL, 0);
    (void)read_log(fake, admin, 0);
    pass_time(fake, 500 * UNIT_US);
    assert_false(event->is_answered);
}

static void test_no_alert_without_tracked_blocks_or_consent(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe aer = fake_admin(ADMIN_ASYNC_EVENT_REQUEST, 0, 0, 0);
    struct fake_request *event = fake_send(fake, admin, &aer, NULL, 0);

    nvmf_lba_unreadable(fake->target, 1, 3);
    pass_time(fake, 500 * UNIT_US);
    assert_false(event->is_answered);
    set_feature(fake, admin, FEATURE_ASYNC_EVENT_CONFIG, OAES_LBA_STATUS);
    assert_int_equal(get_feature(fake, admin, FEATURE_ASYNC_EVENT_CONFIG),
                     OAES_LBA_STATUS);
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE, 3, 1), 512), 0);
    assert_int_equal(pass_time(fake, 500 * UNIT_US), UINT64_MAX);
    assert_false(event->is_answered);
}

static void test_an_alert_that_nobody_has_got_is_withdrawn(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe aer = fake_admin(ADMIN_ASYNC_EVENT_REQUEST, 0, 0, 0);
    struct fake_request *event;

    set_feature(fake, admin, FEATURE_ASYNC_EVENT_CONFIG, OAES_LBA_STATUS);
    nvmf_lba_unreadable(fake->target, 1, 3);
    pass_time(fake, 500 * UNIT_US);
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE, 3, 1), 512), 0);
    event = fake_send(fake, admin, &aer, NULL, 0);
    fake_run(fake);
    assert_false(event->is_answered);
    nvmf_lba_unreadable(fake->target, 1, 3);
    pass_time(fake, 500 * UNIT_US);
    assert_true(event->is_answered);
}

static void test_an_alert_for_lost_blocks_comes_with_an_empty_list(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe aer = fake_admin(ADMIN_ASYNC_EVENT_REQUEST, 0, 0, 0);
    struct fake_request *event = fake_send(fake, admin, &aer, NULL, 0);

    set_feature(fake, admin, FEATURE_ASYNC_EVENT_CONFIG, OAES_LBA_STATUS);
    for (uint32_t i = 0; i < LBA_LIST_MAX; i++) {
        nvmf_lba_unreadable(fake->target, 1, 2 * i);
    }
    nvmf_lba_unreadable(fake->target, 2, 7);
    assert_int_equal(run_io(fake, io, fake_rw(NVM_WRITE, 0, 128), 128 * 512),
                     0);
    assert_int_equal(count_tracked(fake, admin), 0);
    pass_time(fake, 500 * UNIT_US);
    assert_true(event->is_answered);
    assert_int_equal(event->cqe.dw0, ALERT);
}

static void test_a_reset_begins_with_a_new_interval_and_page(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    nvmf_lba_unreadable(fake->target, 1, 3);
    (void)read_log(fake, admin, RAE);
    set_feature(fake, admin, FEATURE_LBA_STATUS, 500);
    nvmf_lba_unreadable(fake->target, 1, 5);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE - CC_EN);
    fake_run(fake);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    fake_run(fake);
    assert_int_equal(get_le32(read_log(fake, admin, RAE) + LBA_LOG_ESTULB), 2);
    assert_int_equal(get_feature(fake, admin, FEATURE_LBA_STATUS), 0xa000a);
}

static void test_an_older_level_has_nothing_of_it(void **state)
{
    struct fake *fake = fake_new();
    struct nvme_sqe sqe = status_of(0, 0, LBA_ACTION_TRACKED, LIST_LEN);
    struct nvme_sqe identify = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLER, 0);
    uint16_t admin;

    (void)state;
    fake->config.vs = NVMF_VS_1_2_1;
    fake_start(fake);
    admin = fake_host(fake, 0);
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, LIST_LEN).status,
                     NVME_SC_INVALID_OPCODE | DNR | MORE);
    assert_int_equal(get_log(fake, admin, 0, 0, 16), NVME_SC_INVALID_LOG_PAGE);
    set_feature(fake, admin, FEATURE_ASYNC_EVENT_CONFIG, OAES_LBA_STATUS);
    assert_int_equal(get_feature(fake, admin, FEATURE_ASYNC_EVENT_CONFIG), 0);
    sqe = fake_admin(ADMIN_GET_FEATURES, 0, FEATURE_LBA_STATUS, 0);
    assert_int_equal(fake_exec(fake, admin, &sqe, NULL, 0).status &
                         NVME_SC_MASK,
                     NVME_SC_INVALID_FIELD);
    assert_int_equal(
        fake_exec(fake, admin, &identify, fake->data, NVME_IDENTIFY_LEN).status,
        0);
    assert_int_equal(get_le16(fake->data + ID_CTRL_OACS) & OACS_GET_LBA_STATUS,
                     0);
    assert_int_equal(get_le32(fake->data + ID_CTRL_OAES) & OAES_LBA_STATUS, 0);
    fake_free(fake);
}

TEST_FIXTURE(fake_setup, fake_teardown)
