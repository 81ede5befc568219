/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces with metadata, where commands meet each other or the drive's
 * limits: buffers, fused pairs, formats, the ends of tags and lengths.
 */
#include "protection_bed.h"

#include "tests/test_fixture.h"

/* ---- Commands that do not wait for their end. */

struct result {
    bool is_done;
    uint16_t status;
};

static void take_result(void *ctx, const struct host_result *result)
{
    struct result *to = ctx;

    to->is_done = true;
    to->status =
        result->is_lost ? HOST_LOST : result->cqe.status & NVME_SC_MASK;
}

static bool is_done(void *ctx)
{
    return ((struct result *)ctx)->is_done;
}

static void start_io(struct result *result, const struct host_io *io)
{
    struct host_io mine = *io;

    *result = (struct result){0};
    mine.qid = 1;
    mine.nsid = 1;
    mine.kind = HOST_DATA_KEYED;
    mine.done = take_result;
    mine.ctx = result;
    assert_true(host_io_submit(&bed.host->host, &mine));
    verbs_flush(&bed.host->net.verbs);
    bed.host->sleep.is_asleep = false;
}

static uint16_t wait_io(struct result *result)
{
    assert_true(
        native_world_run(&bed.world, is_done, result, UINT64_C(10000000000)));
    return result->status;
}

/* ---- Buffers. */

enum { LONG_AT = 131072 }; /* in the host's area */

struct taken {
    struct nvmf_piece pieces[NVMF_MAX_PIECES];
    uint8_t count;
};

/* Take all buffers that an owner gets. */
static void take_all(const struct nvmf_bufs *bufs, uint8_t owner)
{
    static const uint32_t lens[] = {131072, 32768, 4096};
    struct taken taken;

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        while (bufs->get(bufs->ctx, owner, lens[i], taken.pieces,
                         &taken.count) != 0) {
        }
    }
}

static void expect_long_command(uint8_t opcode)
{
    const struct host_io io = {.opcode = opcode,
                               .lba = 4,
                               .ref_tag = 4,
                               .blocks = 3,
                               .offset = LONG_AT,
                               .len_bytes = 3 * block_stride()};
    const uint8_t owner = 0; /* the only controller */
    struct nvmf_bufs bufs;
    struct taken held[3];
    struct result result;

    bufs = buf_pool_seam(bed.drive->drive.bufs);
    for (size_t i = 0; i < ARRAY_LEN(held); i++) {
        assert_int_equal(
            bufs.get(bufs.ctx, owner, 4096, held[i].pieces, &held[i].count),
            4096);
    }
    /* One small buffer is left for long commands.  It has no room for a block
     * with its metadata. */
    start_io(&result, &io);
    native_world_pass(&bed.world, UINT64_C(100000000));
    assert_false(result.is_done);
    bufs.put(bufs.ctx, owner, held[0].pieces, held[0].count);
    assert_int_equal(run_io(NVM_READ, 0, 1, PRACT, 0), 0);
    assert_int_equal(wait_io(&result), 0);
    for (size_t i = 1; i < ARRAY_LEN(held); i++) {
        bufs.put(bufs.ctx, owner, held[i].pieces, held[i].count);
    }
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_command_waits_for_room_for_a_block(void **state)
{
    struct nvmf_bufs bufs;

    (void)state;
    format_with(4096, 1);
    write_blocks(0, 16, 1, PRACT, 0x1111);
    bufs = buf_pool_seam(bed.drive->drive.bufs);
    for (unsigned int owner = 1; owner < NVMF_BUF_OWNERS; owner++) {
        take_all(&bufs, (uint8_t)owner);
    }
    expect_long_command(NVM_READ);
    memcpy(area, area + LONG_AT, 3 * (size_t)block_stride());
    expect_area(4, 3, block_stride());
    fill_model(4, 3, 2, 0x2222);
    put_area(4, 3, block_stride());
    memcpy(area + LONG_AT, area, 3 * (size_t)block_stride());
    expect_long_command(NVM_WRITE);
    expect_blocks(0, 16);
    expect_long_command(NVM_COMPARE);
}

/* ---- Fused pairs. */

/* The host's area: the Compare's data, then those of the Write. */
enum { SECOND_AT = 65536 };

static void run_pair(uint32_t lba, uint32_t flags, uint16_t first_status,
                     uint16_t second_status)
{
    struct host_io io = {
        .opcode = NVM_COMPARE,
        .fuse = SQE_FUSE_FIRST,
        .lba = lba,
        .ref_tag = lba,
        .flags = flags,
        .len_bytes = flags & PRACT ? block_bytes : block_stride(),
        .app_tags = 0xabcd | UINT32_C(0xffff) << 16,
    };
    struct result first, second;

    start_io(&first, &io);
    io.opcode = NVM_WRITE;
    io.fuse = SQE_FUSE_SECOND;
    io.offset = SECOND_AT;
    start_io(&second, &io);
    assert_int_equal(wait_io(&first), first_status);
    assert_int_equal(wait_io(&second), second_status);
}

static void expect_pairs(uint32_t flags)
{
    uint32_t step = flags & PRACT ? block_bytes : block_stride();

    write_blocks(8, 4, 1, PRACT, 0xabcd);
    put_area(9, 1, step);
    fill_model(9, 1, 2, 0xabcd);
    memcpy(area + SECOND_AT, model[9], step);
    run_pair(9, flags, 0, 0);
    expect_blocks(8, 4);
    /* The block differs now from what is compared. */
    fill_model(9, 1, 1, 0xabcd);
    put_area(9, 1, step);
    fill_model(9, 1, 2, 0xabcd);
    run_pair(9, flags, NVME_SC_COMPARE_FAILED, NVME_SC_FUSED_FAILED);
    expect_blocks(8, 4);
}

static void expect_pair_checks(void)
{
    write_blocks(8, 4, 3, PRACT, 0xabcd);
    put_area(9, 1, block_stride());
    memcpy(area + SECOND_AT, model[9], block_stride());
    /* The Write's guard is wrong: it changes nothing. */
    area[SECOND_AT] ^= 1;
    run_pair(9, CHECK_GUARD, 0, NVME_SC_GUARD_CHECK);
    expect_blocks(8, 4);
    /* The guard on the medium is wrong: neither is executed. */
    model[9][0] ^= 1;
    put_area(9, 1, block_stride());
    assert_int_equal(run_io(NVM_WRITE, 9, 1, 0, 0), 0);
    run_pair(9, CHECK_GUARD, NVME_SC_GUARD_CHECK, NVME_SC_FUSED_FAILED);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_fused_pairs_take_blocks_with_metadata(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 6; i++) {
        format_with(i < 3 ? 4096 : 512, 1 + i % 3);
        expect_pairs(PRACT | CHECK_GUARD);
        expect_pairs(CHECK_GUARD | CHECK_APP);
        expect_pair_checks();
    }
}

/* ---- Lengths. */

static uint16_t run_length(uint8_t opcode, uint32_t blocks, uint32_t len_bytes,
                           uint32_t flags)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = opcode,
        .kind = HOST_DATA_KEYED,
        .nsid = 1,
        .blocks = blocks,
        .len_bytes = len_bytes,
        .flags = flags,
    };

    return host_io(&bed.host->host, &io) & NVME_SC_MASK;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_the_descriptor_counts_the_metadata_that_moves(void **state)
{
    static const uint8_t opcodes[] = {NVM_WRITE, NVM_COMPARE, NVM_READ};
    enum { MOST = NVMF_MAX_TRANSFER / (4096 + 8) };

    (void)state;
    format_with(4096, 1);
    memset(area, 0, NVMF_MAX_TRANSFER + 4096);
    for (size_t i = 0; i < ARRAY_LEN(opcodes); i++) {
        uint8_t opcode = opcodes[i];

        assert_int_equal(run_length(opcode, 2, 8192, 0),
                         NVME_SC_SGL_INVALID_LENGTH);
        assert_int_equal(run_length(opcode, 2, 8208, PRACT),
                         NVME_SC_SGL_INVALID_LENGTH);
        assert_int_equal(run_length(opcode, MOST, MOST * 4104, 0), 0);
        assert_int_equal(run_length(opcode, MOST + 1, (MOST + 1) * 4104, 0),
                         NVME_SC_INVALID_FIELD);
        assert_int_equal(run_length(opcode, 256, NVMF_MAX_TRANSFER, PRACT), 0);
        assert_int_equal(
            run_length(opcode, 257, NVMF_MAX_TRANSFER + 4096, PRACT),
            NVME_SC_INVALID_FIELD);
    }
}

/* ---- Tags. */

static uint16_t run_tagged(uint8_t opcode, uint64_t lba, uint32_t blocks,
                           uint32_t flags, uint32_t ref_tag)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = opcode,
        .kind = opcode == NVM_VERIFY ? HOST_DATA_NONE : HOST_DATA_KEYED,
        .nsid = 1,
        .lba = lba,
        .blocks = blocks,
        .len_bytes = opcode == NVM_VERIFY ? 0
                     : flags & PRACT      ? blocks * block_bytes
                                          : blocks * block_stride(),
        .flags = flags,
        .ref_tag = ref_tag,
    };

    return host_io(&bed.host->host, &io) & NVME_SC_MASK;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_the_reference_tag_of_type_2_wraps(void **state)
{
    enum { FIRST = 30, COUNT = 12 };
    const uint32_t tag = UINT32_MAX - 4;

    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        format_with(i == 0 ? 4096 : 512, 2);
        fill_model(FIRST, COUNT, 1, 0);
        for (uint32_t k = 0; k < COUNT; k++) {
            put_pi(model[FIRST + k], 0, tag + k);
        }
        put_area(FIRST, COUNT, block_bytes);
        assert_int_equal(run_tagged(NVM_WRITE, FIRST, COUNT, PRACT, tag), 0);
        memset(area, 0, COUNT * (size_t)block_stride());
        assert_int_equal(
            run_tagged(NVM_READ, FIRST, COUNT, CHECK_GUARD | CHECK_REF, tag),
            0);
        expect_area(FIRST, COUNT, block_stride());
        assert_int_equal(
            run_tagged(NVM_VERIFY, FIRST + 5, 4, CHECK_REF, tag + 5), 0);
        assert_int_equal(run_tagged(NVM_VERIFY, FIRST + 5, 4, CHECK_REF, tag),
                         NVME_SC_REF_TAG_CHECK);
        assert_int_equal(logged_lba(), FIRST + 5);
    }
}

/* With type 3, the application tag FFFFh alone switches nothing off. */
WITH_FIXTURE(setup_nand, teardown)
static void test_type_3_needs_both_escape_values(void **state)
{
    (void)state;
    format_with(512, 3);
    fill_model(8, 4, 1, T10_APP_TAG_ESCAPE);
    put_area(8, 4, block_stride());
    area[0] ^= 1; /* The guard is wrong. */
    assert_int_equal(run_io(NVM_WRITE, 8, 4, CHECK_GUARD, 0),
                     NVME_SC_GUARD_CHECK);
    assert_int_equal(run_io(NVM_WRITE, 8, 4, 0, 0), 0);
    assert_int_equal(run_io(NVM_READ, 8, 4, CHECK_GUARD, 0),
                     NVME_SC_GUARD_CHECK);
    assert_int_equal(
        run_io(NVM_READ, 9, 3, CHECK_APP, UINT32_C(0xffff) << 16 | 0x1234),
        NVME_SC_APP_TAG_CHECK);
    /* A reference tag that the drive inserts may be all ones, too. */
    put_area(8, 4, block_bytes);
    assert_int_equal(
        run_tagged(NVM_WRITE, 8, 4, PRACT | CHECK_GUARD, UINT32_MAX), 0);
    assert_int_equal(run_io(NVM_READ, 8, 4, CHECK_GUARD, 0), 0);
}

/* ---- Zeroes, and blocks that are deallocated. */

static uint16_t deallocate_blocks(uint32_t first, uint32_t count)
{
    const struct nvme_sqe sqe = {
        .opcode = NVM_DATASET_MANAGEMENT, .nsid = 1, .cdw11 = 4};
    uint8_t range[16] = {0};

    put_le32(range + 4, count);
    put_le64(range + 8, first);
    return host_command(&bed.host->host, 1, &sqe, range, sizeof(range)) &
           NVME_SC_MASK;
}

WITH_FIXTURE(setup_nand, teardown)
static void test_deallocation_takes_the_metadata_along(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        format_with(i == 0 ? 4096 : 512, 1);
        write_blocks(0, 40, 1, PRACT, 0x1212);
        flush_drive();
        assert_int_equal(deallocate_blocks(3, 19), 0);
        forget_blocks(3, 19);
        expect_blocks(0, 40);
        /* As Linux zeroes blocks: with PRACT and DEAC. */
        assert_int_equal(run_io(NVM_WRITE_ZEROES, 25, 9, PRACT | DEAC, 0), 0);
        forget_blocks(25, 9);
        expect_blocks(0, 40);
        flush_drive();
        cut_power();
        expect_blocks(0, 40);
    }
}

/* ---- Format while commands are outstanding. */

enum { PIPELINED = 24 };

static bool all_are_done(void *ctx)
{
    const struct result *results = ctx;

    for (unsigned int i = 0; i < PIPELINED; i++) {
        if (!results[i].is_done) {
            return false;
        }
    }
    return true;
}

/* The commands were made for one format, and some arrive in the other. */
static void format_under_load(uint32_t from, uint32_t to, unsigned int pi_type)
{
    struct result results[PIPELINED];

    format_with(from, pi_type);
    for (uint32_t i = 0; i < PIPELINED; i++) {
        const struct host_io io = {
            .opcode = i % 3 == 0 ? NVM_READ : NVM_WRITE,
            .lba = i,
            .ref_tag = i,
            .blocks = 8,
            .offset = i * 65536,
            .len_bytes = 8 * block_stride(),
        };

        start_io(&results[i], &io);
    }
    format_with(to, pi_type);
    assert_true(native_world_run(&bed.world, all_are_done, results,
                                 UINT64_C(10000000000)));
    for (uint32_t i = 0; i < PIPELINED; i++) {
        assert_true(results[i].status == 0 ||
                    results[i].status == NVME_SC_FORMAT_IN_PROGRESS ||
                    results[i].status == NVME_SC_SGL_INVALID_LENGTH);
    }
    assert_int_equal(deallocate_blocks(0, BLOCKS), 0);
    write_blocks(0, 32, 5, PRACT, 0x3434);
    expect_blocks(0, 40);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_format_waits_for_commands_in_the_old_one(void **state)
{
    (void)state;
    format_under_load(4096, 512, 1);
    format_under_load(512, 4096, 3);
}

/* ---- A namespace in several places of the medium. */

static uint64_t granule_bytes(void)
{
    uint8_t id[NVME_IDENTIFY_LEN];

    assert_int_equal(host_identify(&bed.host->host, CNS_NS_GRANULARITY, 0, id),
                     0);
    return get_le64(id + ID_GRANULARITY_SIZE);
}

static uint32_t create_ns(uint64_t blocks, uint8_t flbas, uint8_t dps)
{
    const struct nvme_sqe create = {.opcode = ADMIN_NS_MANAGEMENT};
    struct nvme_sqe attach = {.opcode = ADMIN_NS_ATTACHMENT};
    uint8_t data[NVME_IDENTIFY_LEN] = {0};

    put_le64(data + ID_NS_NSZE, blocks);
    put_le64(data + ID_NS_NCAP, blocks);
    data[ID_NS_FLBAS] = flbas;
    data[ID_NS_DPS] = dps;
    data[ID_NS_NMIC] = NMIC_SHARED;
    assert_int_equal(
        host_command(&bed.host->host, 0, &create, data, sizeof(data)), 0);
    attach.nsid = bed.host->host.last_dw0;
    memset(data, 0, sizeof(data));
    put_le16(data + CTRL_LIST_COUNT, 1);
    put_le16(data + CTRL_LIST_FIRST, bed.host->host.cntlid);
    assert_int_equal(
        host_command(&bed.host->host, 0, &attach, data, sizeof(data)), 0);
    return attach.nsid;
}

static void delete_ns(uint32_t nsid)
{
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_NS_MANAGEMENT, .nsid = nsid, .cdw10 = 1};

    assert_int_equal(send_command(0, &sqe), 0);
}

/* Blocks around the boundary of the first two places. */
static uint16_t run_across(uint32_t nsid, uint8_t opcode, uint64_t boundary,
                           uint32_t flags)
{
    const struct host_io io = {
        .qid = 1,
        .opcode = opcode,
        .kind = HOST_DATA_KEYED,
        .nsid = nsid,
        .lba = boundary - 9,
        .blocks = 21,
        .len_bytes = 21 * (flags & PRACT ? block_bytes : block_stride()),
        .flags = flags,
        .ref_tag = (uint32_t)boundary - 9,
        .app_tags = 0x4321 | UINT32_C(0xffff) << 16,
    };

    return host_io(&bed.host->host, &io) & NVME_SC_MASK;
}

static void check_places(uint32_t nsid, uint64_t boundary)
{
    uint32_t at = 15; /* a block beyond the boundary */
    uint8_t *pi = area + at * (size_t)block_stride() + block_bytes;

    for (uint32_t i = 0; i < 21 * block_stride() / 8; i++) {
        put_le64(area + i * 8, i * UINT64_C(0x9e3779b97f4a7c15));
    }
    assert_int_equal(run_across(nsid, NVM_WRITE, boundary, PRACT), 0);
    assert_int_equal(run_across(nsid, NVM_READ, boundary, CHECK_ALL), 0);
    for (uint32_t i = 0; i < 21; i++) {
        assert_int_equal(
            get_be32(area + i * (size_t)block_stride() + block_bytes + 4),
            (uint32_t)boundary - 9 + i);
    }
    assert_int_equal(run_across(nsid, NVM_WRITE, boundary, CHECK_ALL), 0);
    flush_drive();
    assert_int_equal(run_across(nsid, NVM_READ, boundary, CHECK_ALL), 0);
    assert_int_equal(run_across(nsid, NVM_COMPARE, boundary, CHECK_ALL), 0);
    /* The failing block is counted over both places. */
    pi[0] ^= 1;
    assert_int_equal(run_across(nsid, NVM_WRITE, boundary, CHECK_GUARD),
                     NVME_SC_GUARD_CHECK);
    assert_int_equal(logged_lba(), boundary - 9 + at);
    assert_int_equal(run_across(nsid, NVM_WRITE, boundary, 0), 0);
    assert_int_equal(run_across(nsid, NVM_READ, boundary, CHECK_GUARD | PRACT),
                     NVME_SC_GUARD_CHECK);
    assert_int_equal(logged_lba(), boundary - 9 + at);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_operations_in_two_places_count_on(void **state)
{
    uint64_t bytes = granule_bytes();
    uint32_t first, second;

    (void)state;
    delete_ns(1);
    for (unsigned int i = 0; i < 2; i++) {
        block_bytes = i == 0 ? 4096 : 512;
        type = 1;
        first = create_ns(bytes / 512, 0, 0);
        second = create_ns(bytes / 512, 0, 0);
        delete_ns(first);
        first = create_ns(3 * bytes / block_bytes,
                          (i == 0 ? FORMAT_4096 : FORMAT_512) | EXTENDED, 1);
        check_places(first, bytes / block_bytes);
        delete_ns(first);
        delete_ns(second);
    }
}
