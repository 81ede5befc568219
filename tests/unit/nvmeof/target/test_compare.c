/* SPDX-License-Identifier: BSD-2-Clause */
/* Compare, Verify and the scratch buffers that they use. */
#include "fake.h"

#include <string.h>

#include "tests/test_fixture.h"

enum { LBA = 8, BLOCKS = 1536 }; /* 768 KiB: six scratch buffers */

static void fill_blocks(struct fake *fake, uint8_t *data, uint32_t blocks)
{
    for (uint32_t i = 0; i < blocks * 512; i++) {
        data[i] = (uint8_t)(i * 7 + (i >> 9));
    }
    memcpy(fake->blocks[0] + LBA * 512, data, (size_t)blocks * 512);
}

static uint16_t compare_blocks(struct fake *fake, uint16_t io, uint8_t *data,
                               uint32_t blocks)
{
    struct nvme_sqe sqe = fake_rw(NVM_COMPARE, LBA, blocks);

    return fake_exec(fake, io, &sqe, data, blocks * 512).status;
}

static void expect_finds_each_difference(struct fake *fake)
{
    static uint8_t data[BLOCKS * 512];
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    static const uint32_t at[] = {
        0, 511, 65535, 65536, 131071, 131072, 400000, 524288, BLOCKS * 512 - 1};

    fill_blocks(fake, data, BLOCKS);
    assert_int_equal(compare_blocks(fake, io, data, BLOCKS), 0);
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        data[at[i]] ^= 1;
        assert_int_equal(compare_blocks(fake, io, data, BLOCKS),
                         NVME_SC_COMPARE_FAILED | DNR);
        data[at[i]] ^= 1;
    }
    assert_int_equal(compare_blocks(fake, io, data, 1), 0);
    assert_int_equal(fake->target->scratch.used, 0);
    assert_int_equal(nvmf_target_counters(fake->target)->error_log_entries, 0);
}

static void test_compare_finds_each_difference(void **state)
{
    expect_finds_each_difference(*state);
}

static void test_compare_in_windows_finds_each_difference(void **state)
{
    struct fake *fake = *state;

    fake->window_max = 12288;
    fake->piece_bytes = 4096;
    expect_finds_each_difference(fake);
}

static void test_compare_of_data_in_the_capsule(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe sqe = fake_rw(NVM_COMPARE, LBA, 8);
    struct fake_request *request;
    uint8_t data[4096];

    fill_blocks(fake, data, 8);
    request = fake_send_in_capsule(fake, io, &sqe, data, sizeof(data));
    fake_run(fake);
    assert_int_equal(request->cqe.status, 0);
    data[4095] ^= 0x80;
    request = fake_send_in_capsule(fake, io, &sqe, data, sizeof(data));
    fake_run(fake);
    assert_int_equal(request->cqe.status, NVME_SC_COMPARE_FAILED | DNR);
}

static void test_compare_and_verify_count_as_reads(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe verify = fake_rw(NVM_VERIFY, 0, 2048);
    const struct nvmf_counters *counters = nvmf_target_counters(fake->target);
    static uint8_t data[BLOCKS * 512];

    fill_blocks(fake, data, BLOCKS);
    assert_int_equal(compare_blocks(fake, io, data, BLOCKS), 0);
    assert_int_equal(counters->host_reads, 1);
    assert_int_equal(counters->read_blocks_512, BLOCKS);
    assert_int_equal(fake_exec(fake, io, &verify, NULL, 0).status, 0);
    assert_int_equal(counters->read_blocks_512, BLOCKS + 2048);
    assert_int_equal(counters->host_writes, 0);
}

static void test_verify_reads_every_block_once(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe verify = fake_rw(NVM_VERIFY, 100, 1000);
    uint64_t next = 100;

    assert_int_equal(fake_exec(fake, io, &verify, NULL, 0).status, 0);
    for (unsigned int i = 0; i < fake->history_count; i++) {
        assert_int_equal(fake->history[i].op, MEDIA_READ);
        assert_int_equal(fake->history[i].first_lba, next);
        next += fake->history[i].count_blocks;
    }
    assert_int_equal(next, 1100);
}

static void test_verify_reports_an_error_of_the_media(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe verify = fake_rw(NVM_VERIFY, 0, 600);

    fake->media_status = MEDIA_READ_ERROR;
    assert_int_equal(fake_exec(fake, io, &verify, NULL, 0).status,
                     NVME_SC_READ_ERROR | MORE);
    assert_int_equal(fake->history_count, 1);
    assert_int_equal(fake->target->scratch.used, 0);
}

static void test_commands_share_the_scratch_buffers(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe verify = fake_rw(NVM_VERIFY, 0, 2048);
    struct fake_request *request[12];

    fake->hold_media = true;
    for (size_t i = 0; i < ARRAY_LEN(request); i++) {
        request[i] = fake_send(fake, io, &verify, NULL, 0);
    }
    assert_int_equal(fake->media_count, SCRATCH_COUNT);
    assert_int_equal(request[11]->req.state, NVMF_REQUEST_WAIT_TURN);
    /* After one chunk each of the first, the others have their turn. */
    for (size_t i = 0; i < ARRAY_LEN(request); i++) {
        assert_int_equal(request[i]->req.progress, 0);
        fake_run_media(fake);
        assert_int_equal(request[i]->req.progress, 1);
    }
    fake->hold_media = false;
    fake_run(fake);
    for (size_t i = 0; i < ARRAY_LEN(request); i++) {
        assert_true(request[i]->is_answered);
        assert_int_equal(request[i]->cqe.status, 0);
    }
    assert_int_equal(fake->target->scratch.used, 0);
}

static void test_the_end_of_a_queue_frees_its_scratch_buffers(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint16_t other = fake_io_queue(fake, admin, 2);
    struct nvme_sqe verify = fake_rw(NVM_VERIFY, 0, 2048);
    struct fake_request *request;

    fake->hold_media = true;
    for (unsigned int i = 0; i < 8; i++) {
        (void)fake_send(fake, io, &verify, NULL, 0);
    }
    request = fake_send(fake, other, &verify, NULL, 0);
    assert_false(nvmf_qpair_closed(fake->target, io));
    fake->hold_media = false;
    fake_run(fake);
    assert_int_equal(fake->drained_count, 1);
    assert_int_equal(request->cqe.status, 0);
    assert_int_equal(fake->target->scratch.used, 0);
    /* Each of the first four read one chunk, the last command all 8. */
    assert_int_equal(fake->history_count, SCRATCH_COUNT + 8);
}

static void test_verify_waits_for_room_in_the_media(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe verify = fake_rw(NVM_VERIFY, 0, 2048);
    struct fake_request *request[3];

    fake->media_room = 1;
    for (size_t i = 0; i < ARRAY_LEN(request); i++) {
        request[i] = fake_send(fake, io, &verify, NULL, 0);
    }
    fake_run(fake);
    for (size_t i = 0; i < ARRAY_LEN(request); i++) {
        assert_int_equal(request[i]->cqe.status, 0);
    }
    assert_int_equal(fake->history_count, 3 * 8);
}

TEST_FIXTURE(fake_setup, fake_teardown)
