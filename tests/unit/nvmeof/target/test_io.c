/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "lib/bytes.h"
#include "tests/test_fixture.h"

static void fill_pattern(uint8_t *data, uint32_t len, uint8_t seed)
{
    for (uint32_t i = 0; i < len; i++) {
        data[i] = (uint8_t)(seed + i + (i >> 8));
    }
}

static void test_written_data_is_read_back_in_every_size(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    static const uint32_t sizes[] = {1,   7,   8,   95,  96,  97,   192,  255,
                                     256, 257, 512, 513, 768, 1000, 1024, 1025};
    static uint8_t data[NVMF_MAX_TRANSFER], back[NVMF_MAX_TRANSFER];

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        uint32_t len = sizes[i] * 512;
        struct nvme_sqe write = fake_rw(NVM_WRITE, 10 * i, sizes[i]);
        struct nvme_sqe read = fake_rw(NVM_READ, 10 * i, sizes[i]);

        fill_pattern(data, len, (uint8_t)i);
        memset(back, 0xa5, sizeof(back));
        assert_int_equal(fake_exec(fake, io, &write, data, len).status, 0);
        assert_int_equal(fake_exec(fake, io, &read, back, len).status, 0);
        assert_memory_equal(data, back, len);
    }
    assert_int_equal(fake->buffers_out, 0);
}

static void test_in_capsule_data_is_written_without_a_buffer(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 5, 8);
    struct fake_request *request;
    uint8_t data[4096];

    fill_pattern(data, sizeof(data), 3);
    fake->buffers_free = 0;
    request = fake_send_in_capsule(fake, io, &write, data, sizeof(data));
    assert_int_equal(fake->fetch_count, 0);
    assert_int_equal(fake->media[0].pieces[0].handle, 0xca);
    fake_run(fake);
    assert_int_equal(request->cqe.status, 0);
    assert_memory_equal(fake->blocks[0] + 5 * 512, data, sizeof(data));
}

static void test_in_capsule_data_of_the_wrong_kind_is_refused(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 8);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 8);
    struct fake_request *request;
    uint8_t data[4096] = {0};

    request = fake_send_in_capsule(fake, io, &read, data, sizeof(data));
    fake_run(fake);
    assert_int_equal(request->cqe.status, NVME_SC_INVALID_FIELD | DNR | MORE);
    request = fake_send_in_capsule(fake, io, &write, data, 2048);
    fake_run(fake);
    assert_int_equal(request->cqe.status,
                     NVME_SC_SGL_INVALID_LENGTH | DNR | MORE);
}

/* A refused command: the change to a valid one, and the status. */
static const struct refused {
    const char *what;
    struct nvme_sqe sqe;
    uint32_t len;
    uint16_t status;
} refused[] = {
    {"Write Uncorrectable", {.opcode = 0x04, .nsid = 1}, 0, 0x001},
    {"Compare of NSID 0", {.opcode = 0x05}, 512, 0x00b},
    {"Compare across the end",
     {.opcode = 5, .nsid = 1, .cdw10 = 2047, .cdw12 = 1},
     1024,
     0x080},
    {"Compare above MDTS", {.opcode = 5, .nsid = 1, .cdw12 = 2048}, 0, 0x002},
    {"Verify of NSID 0", {.opcode = 0x0c}, 0, 0x00b},
    {"Verify across the end",
     {.opcode = 0x0c, .nsid = 1, .cdw10 = 2047, .cdw12 = 1},
     0,
     0x080},
    {"Copy with format 1",
     {.opcode = 0x19, .nsid = 1, .cdw12 = 1 << 8},
     32,
     0x002},
    {"Copy with a directive",
     {.opcode = 0x19, .nsid = 1, .cdw12 = 1 << 20},
     32,
     0x002},
    {"Copy of 129 ranges",
     {.opcode = 0x19, .nsid = 1, .cdw12 = 128},
     4128,
     0x183},
    {"Copy, SGL too long", {.opcode = 0x19, .nsid = 1}, 64, 0x00f},
    {"vendor opcode", {.opcode = 0xc0, .nsid = 1}, 0, 0x001},
    {"Read of NSID 0", {.opcode = 2}, 512, 0x00b},
    {"Read of NSID 129", {.opcode = 2, .nsid = 129}, 512, 0x00b},
    {"Read of all", {.opcode = 2, .nsid = ~0u}, 512, 0x00b},
    {"Read of inactive", {.opcode = 2, .nsid = 3}, 512, 0x002},
    {"Write of NSID 0", {.opcode = 1}, 512, 0x00b},
    {"Flush of NSID 0", {.opcode = 0}, 0, 0x00b},
    {"Flush of inactive", {.opcode = 0, .nsid = 128}, 0, 0x002},
    {"Write Zeroes of NSID 0", {.opcode = 8}, 0, 0x00b},
    {"DSM of NSID 0", {.opcode = 9}, 16, 0x00b},
    {"fused first", {.opcode = 2, .nsid = 1, .fuse = 1}, 512, 0x002},
    {"reserved FUSE", {.opcode = 5, .nsid = 1, .fuse = 3}, 512, 0x002},
    {"PRPs", {.opcode = 2, .nsid = 1, .psdt = 1}, 512, 0x002},
    {"SGL metadata", {.opcode = 2, .nsid = 1, .psdt = 3}, 512, 0x002},
    {"reserved PSDT", {.opcode = 2, .nsid = 1, .psdt = 2}, 512, 0x002},
    {"last LBA + 1", {.opcode = 2, .nsid = 1, .cdw10 = 2048}, 512, 0x080},
    {"across the end",
     {.opcode = 2, .nsid = 1, .cdw10 = 2047, .cdw12 = 1},
     1024,
     0x080},
    {"LBA of 33 bits", {.opcode = 2, .nsid = 1, .cdw11 = 1}, 512, 0x080},
    {"LBA that wraps",
     {.opcode = 1, .nsid = 1, .cdw10 = ~0u, .cdw11 = ~0u, .cdw12 = 1},
     1024,
     0x080},
    {"Write Zeroes across the end",
     {.opcode = 8, .nsid = 1, .cdw12 = 2048},
     0,
     0x080},
    {"above MDTS", {.opcode = 2, .nsid = 1, .cdw12 = 2048}, 0, 0x002},
    {"SGL too short", {.opcode = 2, .nsid = 1, .cdw12 = 1}, 512, 0x00f},
    {"SGL too long", {.opcode = 2, .nsid = 1}, 1024, 0x00f},
    {"no SGL", {.opcode = 1, .nsid = 1}, 0, 0x00f},
    {"directive", {.opcode = 1, .nsid = 1, .cdw12 = 1 << 20}, 512, 0x002},
    {"DSM, SGL too short", {.opcode = 9, .nsid = 1, .cdw10 = 1}, 16, 0x00f},
};

static void test_every_refused_field_gets_its_status(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);

    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct nvme_cqe cqe =
            fake_exec(fake, io, &refused[i].sqe, fake->data, refused[i].len);

        if (cqe.status != (refused[i].status | DNR | MORE)) {
            fail_msg("%s: status %x", refused[i].what, cqe.status);
        }
    }
    assert_int_equal(fake->history_count, 0);
    assert_int_equal(fake->buffers_out, 0);
    assert_int_equal(nvmf_target_counters(fake->target)->error_log_entries,
                     ARRAY_LEN(refused));
}

static void test_write_uncorrectable_across_the_end_is_refused(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe sqe = fake_rw(NVM_WRITE_UNCORRECTABLE, FAKE_BLOCKS - 1, 2);

    fake->target->can_mark = true;
    assert_int_equal(fake_exec(fake, io, &sqe, NULL, 0).status,
                     NVME_SC_LBA_RANGE | DNR | MORE);
    assert_int_equal(fake->history_count, 0); /* the medium is not asked */
}

static void test_an_invalid_descriptor_is_refused_only_if_data_moves(
    void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvmf_data bad = {.status = NVME_SC_SGL_INVALID_TYPE};
    struct nvmf_request flush = {0}, read = {0};
    uint8_t sqe[NVME_SQE_LEN] = {NVM_FLUSH, 0x40, 1, 0, 1};
    struct nvme_cqe cqe;

    nvmf_capsule(fake->target, io, &flush.transfer, sqe, &bad, fake->now_us);
    assert_int_equal(flush.state, NVMF_REQUEST_MEDIA);
    fake->media_count = 0;
    media_end(&flush.media_owner, MEDIA_OK);
    sqe[0] = NVM_READ;
    nvmf_capsule(fake->target, io, &read.transfer, sqe, &bad, fake->now_us);
    nvme_cqe_parse(&cqe, read.transfer.cqe);
    assert_int_equal(cqe.status, NVME_SC_SGL_INVALID_TYPE | DNR | MORE);
    fake->respond_count = 0;
}

static void test_fua_reaches_the_media(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);

    for (uint32_t fua = 0; fua < 2; fua++) {
        static const uint8_t opcodes[] = {NVM_WRITE, NVM_READ,
                                          NVM_WRITE_ZEROES};

        for (size_t i = 0; i < ARRAY_LEN(opcodes); i++) {
            struct nvme_sqe sqe = fake_rw(opcodes[i], 0, 1);
            uint32_t len = opcodes[i] == NVM_WRITE_ZEROES ? 0 : 512;

            sqe.cdw12 |= fua << 30;
            assert_int_equal(fake_exec(fake, io, &sqe, fake->data, len).status,
                             0);
            assert_int_equal(fake->history[fake->history_count - 1].fua, fua);
        }
    }
}

static void test_flush_flushes_one_namespace_or_all(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe flush = {.opcode = NVM_FLUSH, .nsid = 2};

    assert_int_equal(fake_exec(fake, io, &flush, NULL, 0).status, 0);
    assert_int_equal(fake->history_count, 1);
    assert_int_equal(fake->history[0].op, MEDIA_FLUSH);
    assert_int_equal(fake->history[0].ns, 71);

    flush.nsid = NVME_NSID_ALL;
    assert_int_equal(fake_exec(fake, io, &flush, NULL, 0).status, 0);
    assert_int_equal(fake->history_count, 2);
    assert_int_equal(fake->history[1].op, MEDIA_FLUSH);
    assert_int_equal(fake->history[1].ns, MEDIA_NS_ALL);
}

static void test_write_zeroes_deallocates_with_deac(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe sqe = fake_rw(NVM_WRITE_ZEROES, 8, 16);

    memset(fake->blocks[0], 0xff, 32 * 512);
    assert_int_equal(fake_exec(fake, io, &sqe, NULL, 0).status, 0);
    assert_int_equal(fake->history[0].op, MEDIA_WRITE_ZEROES);
    assert_int_equal(fake->blocks[0][8 * 512 - 1], 0xff);
    assert_int_equal(fake->blocks[0][8 * 512], 0);
    assert_int_equal(fake->blocks[0][24 * 512 - 1], 0);
    assert_int_equal(fake->blocks[0][24 * 512], 0xff);
    sqe.cdw12 |= 1u << 25;
    assert_int_equal(fake_exec(fake, io, &sqe, NULL, 0).status, 0);
    assert_int_equal(fake->history[1].op, MEDIA_DEALLOCATE);
    sqe.cdw12 |= 1u << 30;
    assert_int_equal(fake_exec(fake, io, &sqe, NULL, 0).status, 0);
    assert_int_equal(fake->history[2].op, MEDIA_WRITE_ZEROES);
}

static void put_range(uint8_t *data, unsigned int i, uint32_t count,
                      uint64_t lba)
{
    memset(data + 16 * i, 0, 16);
    put_le32(data + 16 * i + 4, count);
    put_le64(data + 16 * i + 8, lba);
}

static void test_dsm_deallocates_each_range(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe sqe = {
        .opcode = NVM_DATASET_MANAGEMENT, .nsid = 1, .cdw10 = 3, .cdw11 = 4};
    uint8_t data[4096]; /* space for 256 ranges, as Linux provides */

    put_range(data, 0, 10, 100);
    put_range(data, 1, 0, 5);
    put_range(data, 2, 1, 2047);
    put_range(data, 3, 0, 2048);
    assert_int_equal(fake_exec(fake, io, &sqe, data, 4096).status, 0);
    assert_int_equal(fake->history_count, 2);
    assert_int_equal(fake->history[0].first_lba, 100);
    assert_int_equal(fake->history[0].count_blocks, 10);
    assert_int_equal(fake->history[1].first_lba, 2047);

    /* One range exceeds the namespace: no range is deallocated. */
    put_range(data, 3, 1, 2048);
    assert_int_equal(fake_exec(fake, io, &sqe, data, 64).status,
                     NVME_SC_LBA_RANGE | DNR | MORE);
    assert_int_equal(fake->history_count, 2);

    /* Without AD the ranges are only hints. */
    put_range(data, 3, 1, 0);
    sqe.cdw11 = 3;
    assert_int_equal(fake_exec(fake, io, &sqe, data, 64).status, 0);
    assert_int_equal(fake->history_count, 2);
}

/* As when only small buffers are left: ranges are in different buffers. */
static void test_dsm_ranges_lie_in_several_pieces(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe sqe = {
        .opcode = NVM_DATASET_MANAGEMENT, .nsid = 1, .cdw10 = 7, .cdw11 = 4};
    uint8_t data[8 * 16];

    for (unsigned int i = 0; i < 8; i++) {
        put_range(data, i, 1 + i, 100 * i);
    }
    for (uint32_t piece = 16; piece <= 40; piece += 4) {
        fake->piece_bytes = piece;
        fake->history_count = 0;
        assert_int_equal(fake_exec(fake, io, &sqe, data, sizeof(data)).status,
                         0);
        assert_int_equal(fake->history_count, 8);
        for (unsigned int i = 0; i < 8; i++) {
            assert_int_equal(fake->history[i].first_lba, 100 * i);
            assert_int_equal(fake->history[i].count_blocks, 1 + i);
        }
    }
}

static void test_media_errors_become_statuses(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe sqe = fake_rw(NVM_READ, 0, 1);
    static const uint16_t status[MEDIA_STATUSES] = {
        [MEDIA_OK] = 0,
        [MEDIA_LBA_RANGE] = 0x080 | DNR | MORE,
        [MEDIA_READ_ERROR] = 0x281 | MORE,
        [MEDIA_WRITE_ERROR] = 0x280 | MORE,
        [MEDIA_READ_ONLY] = 0x020 | DNR | MORE,
        [MEDIA_INTERNAL_ERROR] = 0x006 | MORE,
        [MEDIA_ABORTED] = 0x007,
        [MEDIA_MARKED] = 0x281 | DNR | MORE,
        [MEDIA_TRANSFER_ERROR] = 0x004 | MORE,
        [MEDIA_GUARD_ERROR] = 0x282 | MORE,
        [MEDIA_APP_TAG_ERROR] = 0x283 | MORE,
        [MEDIA_REF_TAG_ERROR] = 0x284 | MORE,
    };

    for (int i = 0; i < MEDIA_STATUSES; i++) {
        fake->media_status = (enum media_status)i;
        assert_int_equal(fake_exec(fake, io, &sqe, fake->data, 512).status,
                         status[i]);
        assert_int_equal(fake->buffers_out, 0);
    }
    assert_int_equal(nvmf_target_counters(fake->target)->media_errors, 5);
    assert_int_equal(nvmf_target_counters(fake->target)->host_reads, 1);
}

WITH_FIXTURE(NULL, NULL)
static void test_read_only_namespace_refuses_writes(void **state)
{
    struct fake *fake = fake_new();
    struct nvme_sqe sqe;
    uint16_t io;

    (void)state;
    fake->is_read_only = true;
    fake_start(fake);
    io = fake_io_queue(fake, fake_host(fake, 0), 1);
    sqe = fake_rw(NVM_WRITE, 0, 1);
    assert_int_equal(fake_exec(fake, io, &sqe, fake->data, 512).status,
                     NVME_SC_NS_WRITE_PROTECTED | DNR | MORE);
    sqe = fake_rw(NVM_WRITE_ZEROES, 0, 1);
    assert_int_equal(fake_exec(fake, io, &sqe, NULL, 0).status,
                     NVME_SC_NS_WRITE_PROTECTED | DNR | MORE);
    sqe = fake_rw(NVM_DATASET_MANAGEMENT, 0, 1);
    assert_int_equal(fake_exec(fake, io, &sqe, fake->data, 16).status,
                     NVME_SC_NS_WRITE_PROTECTED | DNR | MORE);
    sqe = fake_rw(NVM_READ, 0, 1);
    assert_int_equal(fake_exec(fake, io, &sqe, fake->data, 512).status, 0);
    fake_free(fake);
}

WITH_FIXTURE(NULL, NULL)
static void test_io_works_with_blocks_of_4096_bytes(void **state)
{
    struct fake *fake = fake_new();
    struct nvme_sqe sqe;
    uint16_t io;

    (void)state;
    fake->block_shift = 12;
    fake_start(fake);
    io = fake_io_queue(fake, fake_host(fake, 0), 1);
    sqe = fake_rw(NVM_READ, 255, 1);
    assert_int_equal(fake_exec(fake, io, &sqe, fake->data, 4096).status, 0);
    sqe = fake_rw(NVM_READ, 256, 1);
    assert_int_equal(fake_exec(fake, io, &sqe, fake->data, 4096).status,
                     NVME_SC_LBA_RANGE | DNR | MORE);
    sqe = fake_rw(NVM_READ, 0, 257);
    assert_int_equal(fake_exec(fake, io, &sqe, fake->data, 4096).status,
                     NVME_SC_INVALID_FIELD | DNR | MORE);
    fake_free(fake);
}

/* Short commands wait behind short ones, long commands behind long ones. */
static void test_requests_wait_for_buffers_in_order(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe big = fake_rw(NVM_READ, 0, 256);
    struct nvme_sqe small = fake_rw(NVM_READ, 0, 1);
    struct fake_request *first, *second, *third, *fourth, *fifth;

    fake->buffers_free = 131072;
    fake->hold_done = true;
    first = fake_send(fake, io, &big, fake->data, 131072);
    second = fake_send(fake, io, &big, fake->data, 131072);
    third = fake_send(fake, io, &small, fake->data, 512);
    fourth = fake_send(fake, io, &small, fake->data, 512);
    fifth = fake_send(fake, io, &big, fake->data, 131072);
    fake_run(fake);
    assert_int_equal(first->req.state, NVMF_REQUEST_RESPONDING);
    assert_int_equal(second->req.state, NVMF_REQUEST_WAIT_BUFFER);
    assert_int_equal(third->req.state, NVMF_REQUEST_WAIT_BUFFER);
    assert_int_equal(fourth->req.state, NVMF_REQUEST_WAIT_BUFFER);
    assert_true(nvmf_target_is_short(fake->target));
    fake->hold_done = false;
    fake_run(fake);
    assert_true(first->is_done && second->is_done && third->is_done &&
                fourth->is_done && fifth->is_done);
    assert_int_equal(fake->history[1].owner == &third->req.media_owner, 1);
    assert_int_equal(fake->history[2].owner == &fourth->req.media_owner, 1);
    assert_int_equal(fake->history[3].owner == &second->req.media_owner, 1);
    assert_int_equal(fake->history[4].owner == &fifth->req.media_owner, 1);
    assert_false(nvmf_target_is_short(fake->target));
}

/* One host has all buffers and many waiting commands. */
static void test_commands_of_one_host_do_not_wait_for_those_of_another(
    void **state)
{
    struct fake *fake = *state;
    uint16_t greedy = fake_io_queue(fake, fake_host(fake, 0), 1);
    uint16_t other = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe big = fake_rw(NVM_READ, 0, 256);
    struct nvme_sqe small = fake_rw(NVM_READ, 0, 8);
    struct fake_request *requests[20], *first, *second;

    fake->buffers_free = 131072;
    fake->hold_done = true;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        requests[i] = fake_send(fake, greedy, &big, fake->data, 131072);
    }
    fake_run(fake);
    first = fake_send(fake, other, &small, fake->data, 4096);
    second = fake_send(fake, other, &small, fake->data, 4096);
    assert_int_equal(first->req.state, NVMF_REQUEST_MEDIA);
    assert_int_equal(second->req.state, NVMF_REQUEST_WAIT_BUFFER);
    fake->buffers_free += 4096; /* too little for the first host */
    fake->hold_done = false;
    fake_run(fake);
    assert_true(first->is_done && second->is_done);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        assert_true(requests[i]->is_done);
    }
}

/* ---- Data in several windows. */

static void check_windows(struct fake *fake, uint16_t io, uint32_t window,
                          uint32_t blocks)
{
    static uint8_t data[NVMF_MAX_TRANSFER], back[NVMF_MAX_TRANSFER];
    uint32_t len = blocks * 512, windows = (len + window - 1) / window;
    struct nvme_sqe write = fake_rw(NVM_WRITE, 1, blocks);
    struct nvme_sqe read = fake_rw(NVM_READ, 1, blocks);
    unsigned int before = fake->history_count;
    uint64_t reads = nvmf_target_counters(fake->target)->host_reads;

    write.cdw12 |= 1u << 30; /* FUA */
    fake->window_max = window;
    fill_pattern(data, len, (uint8_t)blocks);
    memset(back, 0xa5, sizeof(back));
    assert_int_equal(fake_exec(fake, io, &write, data, len).status, 0);
    assert_int_equal(fake->history_count, before + windows);
    for (uint32_t i = 0; i < windows; i++) {
        const struct media_io *part = &fake->history[before + i];

        assert_true(part->fua);
        assert_int_equal(part->first_lba, 1 + i * (window / 512));
    }
    assert_memory_equal(fake->blocks[0] + 512, data, len);
    assert_int_equal(fake_exec(fake, io, &read, back, len).status, 0);
    assert_int_equal(fake->history_count, before + 2 * windows);
    assert_memory_equal(data, back, len);
    assert_int_equal(nvmf_target_counters(fake->target)->host_reads, reads + 1);
    assert_int_equal(fake->buffers_out, 0);
}

static void test_long_data_moves_in_windows(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);

    check_windows(fake, io, 131072, 256);
    check_windows(fake, io, 131072, 257);
    check_windows(fake, io, 131072, 2047);
    check_windows(fake, io, 16384, 256);
    check_windows(fake, io, 16384, 33);
    check_windows(fake, io, 4096, 31);
}

/* The response, which may invalidate the key, comes after all data. */
static void test_only_the_last_window_is_sent_with_the_response(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 20);
    struct fake_request *request;

    fake->window_max = 4096;
    fake->hold_send = fake->hold_done = true;
    request = fake_send(fake, io, &read, fake->data, 20 * 512);
    for (uint32_t at = 0; at < 8192; at += 4096) {
        fake_run(fake);
        assert_int_equal(request->req.state, NVMF_REQUEST_SENDING);
        assert_int_equal(request->req.transfer.data_offset, at);
        assert_int_equal(request->req.transfer.send_len, 4096);
        assert_int_equal(fake->respond_count, 0);
        fake->hold_send = false;
        fake->hold_media = true;
        fake_run(fake);
        fake->hold_send = true;
        fake->hold_media = false;
    }
    fake_run(fake);
    assert_int_equal(request->req.state, NVMF_REQUEST_RESPONDING);
    assert_int_equal(request->req.transfer.data_offset, 8192);
    assert_int_equal(request->req.transfer.send_len, 2048);
    fake->hold_done = false;
    fake_run(fake);
    assert_true(request->is_done);
}

static void test_a_window_that_fails_ends_the_command(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    static const uint8_t opcodes[] = {NVM_READ, NVM_WRITE};

    fake->window_max = 4096;
    for (size_t i = 0; i < ARRAY_LEN(opcodes); i++) {
        struct nvme_sqe sqe = fake_rw(opcodes[i], 0, 32);
        struct fake_request *request;
        unsigned int before = fake->history_count;

        fake->hold_media = true;
        request = fake_send(fake, io, &sqe, fake->data, 16384);
        fake_run(fake);
        fake->hold_media = false;
        fake->hold_send = fake->hold_fetch = true;
        fake_run(fake); /* the first window is being sent to the host */
        fake->hold_send = fake->hold_fetch = false;
        fake->media_status = MEDIA_INTERNAL_ERROR;
        fake_run(fake);
        fake->media_status = MEDIA_OK;
        assert_true(request->is_done);
        assert_int_equal(request->cqe.status, NVME_SC_INTERNAL | MORE);
        assert_int_equal(fake->history_count, before + 2);
        assert_int_equal(fake->buffers_out, 0);
    }
    assert_int_equal(nvmf_target_counters(fake->target)->host_reads, 0);
    assert_int_equal(nvmf_target_counters(fake->target)->host_writes, 0);
}

static void test_a_failed_send_ends_the_connection(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 16);
    struct fake_request *request;

    fake->window_max = 4096;
    fake->fail_send = true;
    request = fake_send(fake, io, &read, fake->data, 8192);
    fake_run(fake);
    assert_int_equal(request->req.state, NVMF_REQUEST_FREE);
    assert_int_equal(fake->disconnect_count, 1);
    assert_int_equal(fake->buffers_out, 0);
    fake_close(fake, io);
}

/* Connect needs no buffer if its transport has spare memory. */
static void test_connect_waits_for_no_buffer(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair = fake_open(fake, 0, 31);
    uint8_t sqe[NVME_SQE_LEN], bytes[CONNECT_DATA_LEN], spare[4096];
    struct nvmf_data description = {
        .len_bytes = CONNECT_DATA_LEN,
        .spare = {spare, sizeof(spare), 7},
    };
    struct fake_request *request = calloc(1, sizeof(*request));
    struct connect_command command = {.sqsize = 31};
    struct connect_data data;
    struct nvme_sqe fields = {0};

    fake->request[fake->request_count++] = request;
    connect_command_build(&fields, &command);
    nvme_sqe_emit(sqe, &fields);
    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    connect_data_emit(bytes, &data);
    request->host = bytes;
    request->host_len = sizeof(bytes);
    nvmf_capsule(fake->target, qpair, &request->req.transfer, sqe, &description,
                 fake->now_us);
    assert_int_equal(request->req.state, NVMF_REQUEST_FETCHING);
    assert_ptr_equal(request->req.transfer.pieces[0].ptr, spare);
    assert_int_equal(fake->buffers_out, 0);
    fake_run(fake);
    assert_int_equal(request->cqe.status, 0);
}

/* A request that ends during its retry frees its buffer for the next one. */
static void test_a_retried_request_may_end_at_once(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct nvme_sqe good = fake_admin(ADMIN_IDENTIFY, 0, CNS_CONTROLLER, 0);
    struct nvme_sqe bad = fake_admin(ADMIN_IDENTIFY, 200, CNS_NAMESPACE, 0);
    struct fake_request *requests[5];

    fake->buffers_free = 4096;
    fake->hold_done = true;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        requests[i] = fake_send(fake, admin, i == 0 || i == 4 ? &good : &bad,
                                fake->data, 4096);
    }
    fake_run(fake);
    assert_int_equal(requests[1]->req.state, NVMF_REQUEST_WAIT_BUFFER);
    fake->hold_done = false;
    fake_run(fake);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        assert_true(requests[i]->is_done);
        assert_int_equal(requests[i]->cqe.status & NVME_SC_MASK,
                         i == 0 || i == 4 ? 0 : NVME_SC_INVALID_NS);
    }
    assert_int_equal(fake->buffers_free, 4096);
}

static void test_a_full_media_is_retried_in_order(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct fake_request *requests[20];

    fake->media_room = 1;
    fake->hold_media = true;
    for (uint64_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct nvme_sqe sqe = fake_rw(NVM_READ, i, 1);

        requests[i] = fake_send(fake, io, &sqe, fake->data, 512);
        assert_int_equal(requests[i]->req.state,
                         i == 0 ? NVMF_REQUEST_MEDIA : NVMF_REQUEST_WAIT_MEDIA);
    }
    fake->hold_media = false;
    fake_run(fake);
    for (unsigned int i = 0; i < ARRAY_LEN(requests); i++) {
        assert_true(requests[i]->is_done);
        assert_int_equal(fake->history[i].first_lba, i);
    }
    assert_int_equal(fake->history_count, ARRAY_LEN(requests));
}

static void test_a_failed_fetch_ends_the_connection(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe write = fake_rw(NVM_WRITE, 0, 8);
    struct fake_request *request;

    fake->fail_fetch = true;
    request = fake_send(fake, io, &write, fake->data, 4096);
    fake_run(fake);
    assert_int_equal(request->req.state, NVMF_REQUEST_FREE);
    assert_int_equal(fake->disconnect_count, 1);
    assert_int_equal(fake->disconnected[0], io);
    assert_int_equal(fake->history_count, 0);
    assert_int_equal(fake->buffers_out, 0);
    fake_close(fake, io);
}

static void test_sqhd_counts_responses_and_wraps(void **state)
{
    struct fake *fake = *state;
    uint16_t io = fake_io_queue(fake, fake_host(fake, 0), 1);
    struct nvme_sqe read = fake_rw(NVM_READ, 0, 1);

    for (unsigned int i = 2; i < 200; i++) { /* Connect was the first command */
        assert_int_equal(fake_exec(fake, io, &read, fake->data, 512).sqhd,
                         i % 64);
    }
}

TEST_FIXTURE(fake_setup, fake_teardown)
