/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands that the drive executes on blocks by itself: Compare, Verify, Copy,
 * and fused Compare and Write.
 *
 * Spec: NVM Express 1.4 4.12 (fused operations), 6.6 (Compare), 6.14 (Verify);
 * NVM Command Set 1.0 3.2.2 (Copy).
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    AT = 64, /* The first block that tests use. */
    TO = 4096,
    FUSED_RACES = 12,
    RANGE_LEN = 32,
    RANGE_SLBA = 8,
    RANGE_NLB = 16,
    FORMAT_SHIFT = 8,
    RANGES_MAX = 256,
};

/* Open a controller that has the command, by ONCS. */
static struct nvme *open_with(struct conf *conf, uint16_t oncs_bit)
{
    struct nvme *nvme = nvme_open(conf);

    if (!(get_le16(nvme->ctrl + ID_CTRL_ONCS) & oncs_bit)) {
        conf_not_applicable(conf, "ONCS bit %04xh is 0", oncs_bit);
    }
    return nvme;
}

/* ---- Compare. */

static uint16_t run_compare(struct nvme *nvme, uint64_t lba, uint32_t blocks)
{
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_COMPARE, lba, blocks);

    return nvme_run(nvme, nvme->io, &sqe, blocks * nvme->block_bytes, NULL);
}

static void compare_equal(struct conf *conf)
{
    struct nvme *nvme = open_with(conf, ONCS_COMPARE);
    const uint32_t blocks[] = {1, 7, 8, 9, nvme->max_blocks};

    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        nvme_write(nvme, AT, blocks[i], 5 + (uint32_t)i);
        conf_status(conf, "Compare of equal data",
                    run_compare(nvme, AT, blocks[i]), NVME_SC_SUCCESS);
    }
    nvme_close(nvme);
}

/* One wrong bit at each place of the data. */
static void compare_differs(struct conf *conf)
{
    struct nvme *nvme = open_with(conf, ONCS_COMPARE);
    uint32_t blocks = nvme->max_blocks;
    uint32_t len = blocks * nvme->block_bytes;
    const uint32_t places[] = {0, 1, 4095, 4096, len / 2, len - 1};

    nvme_write(nvme, AT, blocks, 6);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        nvme->io->mem[places[i]] ^= 0x40;
        conf_status(conf, "Compare of different data",
                    run_compare(nvme, AT, blocks), NVME_SC_COMPARE_FAILED);
        nvme->io->mem[places[i]] ^= 0x40;
    }
    nvme_verify(nvme, AT, blocks, 6);
    nvme_close(nvme);
}

static void compare_beyond(struct conf *conf)
{
    struct nvme *nvme = open_with(conf, ONCS_COMPARE);

    memset(nvme->io->mem, 0, 2 * nvme->block_bytes);
    conf_status(conf, "Compare across the end",
                run_compare(nvme, nvme->size_blocks - 1, 2), NVME_SC_LBA_RANGE);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/* ---- Verify. */

static void verify_reads(struct conf *conf)
{
    struct nvme *nvme = open_with(conf, ONCS_VERIFY);
    uint32_t most = (uint32_t)MIN(nvme->size_blocks, 65536);

    nvme_write(nvme, AT, 8, 7);
    conf_status(conf, "Verify of 8 blocks", nvme_rw(nvme, NVM_VERIFY, AT, 8),
                NVME_SC_SUCCESS);
    conf_status(conf, "Verify of as many blocks as NLB can name",
                nvme_rw(nvme, NVM_VERIFY, 0, most), NVME_SC_SUCCESS);
    conf_status(conf, "Verify across the end",
                nvme_rw(nvme, NVM_VERIFY, nvme->size_blocks - 1, 2),
                NVME_SC_LBA_RANGE);
    nvme_verify(nvme, AT, 8, 7);
    nvme_close(nvme);
}

/* ---- Copy. */

static uint32_t copy_ranges_max(const struct nvme *nvme)
{
    return nvme->ns[ID_NS_MSRC] + 1u;
}

static void put_range(struct nvme *nvme, uint32_t i, uint64_t lba,
                      uint32_t blocks)
{
    uint8_t *range = nvme->io->mem + (size_t)i * RANGE_LEN;

    memset(range, 0, RANGE_LEN);
    put_le64(range + RANGE_SLBA, lba);
    put_le16(range + RANGE_NLB, (uint16_t)(blocks - 1));
}

static uint16_t run_copy(struct nvme *nvme, uint64_t to, uint32_t ranges)
{
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_COPY, to, ranges);

    return nvme_run(nvme, nvme->io, &sqe, ranges * RANGE_LEN, NULL);
}

/* Blocks at `lba` must hold what `version` of the blocks at `from` is. */
static void expect_copied(struct nvme *nvme, uint64_t lba, uint64_t from,
                          uint32_t blocks, uint32_t version)
{
    size_t len = (size_t)blocks * nvme->block_bytes;
    uint8_t *expected = conf_alloc(nvme->conf, len);

    nvme_fill(nvme, from, blocks, version);
    memcpy(expected, nvme->io->mem, len);
    conf_status(nvme->conf, "Read", nvme_rw(nvme, NVM_READ, lba, blocks),
                NVME_SC_SUCCESS);
    conf_same(nvme->conf, "copied data", nvme->io->mem, expected, len);
}

static void copy_one(struct conf *conf)
{
    struct nvme *nvme = open_with(conf, ONCS_COPY);
    const uint32_t blocks[] = {1, 9, 300, nvme->max_blocks};

    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        uint32_t count =
            MIN(blocks[i], (uint32_t)get_le16(nvme->ns + ID_NS_MSSRL));

        nvme_write(nvme, AT, count, 8 + (uint32_t)i);
        nvme_write(nvme, TO - 1, 1, 3);
        nvme_write(nvme, TO + count, 1, 3);
        put_range(nvme, 0, AT, count);
        conf_status(conf, "Copy", run_copy(nvme, TO, 1), NVME_SC_SUCCESS);
        expect_copied(nvme, TO, AT, count, 8 + (uint32_t)i);
        nvme_verify(nvme, AT, count, 8 + (uint32_t)i);
        nvme_verify(nvme, TO - 1, 1, 3);
        nvme_verify(nvme, TO + count, 1, 3);
    }
    nvme_close(nvme);
}

/* As many ranges as MSRC allows, backwards. */
static void copy_many(struct conf *conf)
{
    struct nvme *nvme = open_with(conf, ONCS_COPY);
    uint32_t ranges = copy_ranges_max(nvme);

    nvme_write(nvme, AT, ranges, 9);
    for (uint32_t i = 0; i < ranges; i++) {
        put_range(nvme, i, AT + ranges - 1 - i, 1);
    }
    conf_status(conf, "Copy", run_copy(nvme, TO, ranges), NVME_SC_SUCCESS);
    expect_copied(nvme, TO, AT + ranges - 1, 1, 9);
    expect_copied(nvme, TO + ranges - 1, AT, 1, 9);
    expect_copied(nvme, TO + ranges / 2, AT + ranges - 1 - ranges / 2, 1, 9);
    nvme_close(nvme);
}

static void copy_limits(struct conf *conf)
{
    struct nvme *nvme = open_with(conf, ONCS_COPY);
    uint32_t mssrl = get_le16(nvme->ns + ID_NS_MSSRL);
    uint32_t mcl = get_le32(nvme->ns + ID_NS_MCL);
    uint32_t ranges = copy_ranges_max(nvme);
    uint32_t part = MIN(mssrl, mcl / ranges + 1);

    conf_check(conf, mssrl != 0 && mcl >= mssrl, "MSSRL %u, MCL %u", mssrl,
               mcl);
    nvme_write(nvme, TO, 1, 4);
    if (mssrl < 65536) {
        put_range(nvme, 0, 0, mssrl + 1);
        conf_status(conf, "a range above MSSRL", run_copy(nvme, TO, 1),
                    NVME_SC_SIZE_LIMIT);
    }
    if ((uint64_t)part * ranges > mcl && part <= nvme->size_blocks) {
        for (uint32_t i = 0; i < ranges; i++) {
            put_range(nvme, i, 0, part);
        }
        conf_status(conf, "ranges above MCL", run_copy(nvme, TO, ranges),
                    NVME_SC_SIZE_LIMIT);
    }
    if (ranges < RANGES_MAX) {
        for (uint32_t i = 0; i <= ranges; i++) {
            put_range(nvme, i, 0, 1);
        }
        conf_status(conf, "ranges above MSRC", run_copy(nvme, TO, ranges + 1),
                    NVME_SC_SIZE_LIMIT);
    }
    nvme_verify(nvme, TO, 1, 4);
    nvme_close(nvme);
}

static void copy_beyond(struct conf *conf)
{
    struct nvme *nvme = open_with(conf, ONCS_COPY);
    uint64_t last = nvme->size_blocks - 1;

    nvme_write(nvme, TO, 2, 4);
    nvme_write(nvme, last, 1, 4);
    put_range(nvme, 0, AT, 1);
    put_range(nvme, 1, last, 2);
    conf_status(conf, "a source across the end", run_copy(nvme, TO, 2),
                NVME_SC_LBA_RANGE);
    put_range(nvme, 0, AT, 1);
    put_range(nvme, 1, AT, 1);
    conf_status(conf, "a destination across the end", run_copy(nvme, last, 2),
                NVME_SC_LBA_RANGE);
    nvme_verify(nvme, TO, 2, 4);
    nvme_verify(nvme, last, 1, 4);
    nvme_close(nvme);
}

/* OCFS tells which formats of descriptors there are. */
static void copy_format(struct conf *conf)
{
    struct nvme *nvme = open_with(conf, ONCS_COPY);
    uint16_t formats = get_le16(nvme->ctrl + ID_CTRL_OCFS);

    nvme_write(nvme, TO, 1, 4);
    for (uint32_t format = 0; format < 16; format++) {
        struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_COPY, TO, 1);

        if (format < 16 && formats >> format & 1) {
            continue;
        }
        put_range(nvme, 0, AT, 1);
        sqe.cdw12 |= format << FORMAT_SHIFT;
        conf_status(conf, "a format that OCFS does not report",
                    nvme_run(nvme, nvme->io, &sqe, RANGE_LEN, NULL),
                    NVME_SC_INVALID_FIELD);
    }
    nvme_verify(nvme, TO, 1, 4);
    nvme_close(nvme);
}

/* Format 2 names the source's namespace; a host has to enable it. */
static uint16_t run_format_2(struct nvme *nvme, uint32_t nsid, uint64_t from,
                             uint64_t to, uint32_t blocks)
{
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_COPY, to, 1);

    put_range(nvme, 0, from, blocks);
    put_le32(nvme->io->mem, nsid);
    sqe.cdw12 |= 2 << FORMAT_SHIFT;
    return nvme_run(nvme, nvme->io, &sqe, RANGE_LEN, NULL);
}

static void copy_other(struct conf *conf)
{
    struct nvme *nvme = open_with(conf, ONCS_COPY);
    struct nvme_sqe sqe = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_HOST_BEHAVIOR};
    uint32_t nsid = nvme->nsid;

    if (!(get_le16(nvme->ctrl + ID_CTRL_OCFS) & OCFS_FORMAT_2)) {
        conf_not_applicable(conf, "OCFS bit 2 is 0");
    }
    nvme_write(nvme, AT, 9, 5);
    nvme_write(nvme, TO, 9, 6);
    conf_status(conf, "format 2 before the host enables it",
                run_format_2(nvme, nsid, AT, TO, 9), NVME_SC_INVALID_FIELD);
    memset(nvme->admin->mem, 0, 512);
    nvme->admin->mem[4] = 1 << 2;
    conf_status(conf, "Set Features Host Behavior Support",
                nvme_run(nvme, nvme->admin, &sqe, 512, NULL), NVME_SC_SUCCESS);
    conf_status(conf, "Copy of a range that overlaps the destination",
                run_format_2(nvme, nsid, TO + 8, TO, 9),
                NVME_SC_OVERLAPPING_RANGE);
    conf_status(conf, "Copy from namespace 0", run_format_2(nvme, 0, AT, TO, 9),
                NVME_SC_INVALID_NS);
    nvme_verify(nvme, TO, 9, 6);
    conf_status(conf, "Copy", run_format_2(nvme, nsid, AT, TO, 9),
                NVME_SC_SUCCESS);
    expect_copied(nvme, TO, AT, 9, 5);
    nvme_close(nvme);
}

/* ---- Fused Compare and Write: the Compare's block is at the start of io->mem,
 * the Write's block follows. */

static struct nvme *open_fused(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    if (!(get_le16(nvme->ctrl + ID_CTRL_FUSES) & FUSES_COMPARE_AND_WRITE)) {
        conf_not_applicable(conf, "FUSES bit 0 is 0");
    }
    return nvme;
}

static uint16_t send_half(struct nvme *nvme, uint8_t fuse, uint64_t lba)
{
    struct nvme_sqe sqe = nvme_rw_sqe(
        nvme, fuse == SQE_FUSE_FIRST ? NVM_COMPARE : NVM_WRITE, lba, 1);
    struct sgl sgl =
        rc_keyed(nvme->io, fuse == SQE_FUSE_FIRST ? 0 : nvme->block_bytes,
                 nvme->block_bytes);

    sqe.fuse = fuse;
    return rc_send_capsule(nvme->io, &sqe, &sgl, NULL, 0);
}

static void expect_answer(struct nvme *nvme, const char *what, uint16_t cid,
                          uint16_t expected)
{
    struct nvme_cqe cqe;

    rc_take_response(nvme->io, cid, &cqe);
    conf_status(nvme->conf, what, cqe.status & NVME_SC_MASK, expected);
}

/* Fill in both blocks: what the Compare expects, and what the Write writes. */
static void fill_pair(struct nvme *nvme, uint32_t old, uint32_t new)
{
    nvme_fill(nvme, AT, 1, new);
    memcpy(nvme->io->mem + nvme->block_bytes, nvme->io->mem, nvme->block_bytes);
    nvme_fill(nvme, AT, 1, old);
}

static void run_pair(struct nvme *nvme, uint16_t first, uint16_t second)
{
    uint16_t a = send_half(nvme, SQE_FUSE_FIRST, AT);
    uint16_t b = send_half(nvme, SQE_FUSE_SECOND, AT);

    expect_answer(nvme, "the fused Compare", a, first);
    expect_answer(nvme, "the fused Write", b, second);
}

static void fused_equal(struct conf *conf)
{
    struct nvme *nvme = open_fused(conf);

    nvme_write(nvme, AT, 1, 1);
    for (uint32_t i = 1; i < 4; i++) {
        fill_pair(nvme, i, i + 1);
        run_pair(nvme, NVME_SC_SUCCESS, NVME_SC_SUCCESS);
    }
    nvme_verify(nvme, AT, 1, 4);
    nvme_close(nvme);
}

static void fused_differs(struct conf *conf)
{
    struct nvme *nvme = open_fused(conf);

    nvme_write(nvme, AT, 1, 1);
    fill_pair(nvme, 2, 3);
    run_pair(nvme, NVME_SC_COMPARE_FAILED, NVME_SC_FUSED_FAILED);
    nvme_verify(nvme, AT, 1, 1);
    nvme_close(nvme);
}

static void fused_no_second(struct conf *conf)
{
    struct nvme *nvme = open_fused(conf);
    struct nvme_sqe flush = {.opcode = NVM_FLUSH, .nsid = nvme->nsid};
    uint16_t first, next;

    nvme_write(nvme, AT, 1, 1);
    fill_pair(nvme, 1, 2);
    first = send_half(nvme, SQE_FUSE_FIRST, AT);
    next = rc_send_capsule(nvme->io, &flush, NULL, NULL, 0);
    expect_answer(nvme, "a first command without a second", first,
                  NVME_SC_FUSED_MISSING);
    expect_answer(nvme, "the command after it", next, NVME_SC_SUCCESS);
    run_pair(nvme, NVME_SC_SUCCESS, NVME_SC_SUCCESS);
    nvme_verify(nvme, AT, 1, 2);
    nvme_close(nvme);
}

static void fused_no_first(struct conf *conf)
{
    struct nvme *nvme = open_fused(conf);

    nvme_write(nvme, AT, 1, 1);
    fill_pair(nvme, 1, 2);
    expect_answer(nvme, "a second command without a first",
                  send_half(nvme, SQE_FUSE_SECOND, AT), NVME_SC_FUSED_MISSING);
    nvme_verify(nvme, AT, 1, 1);
    nvme_close(nvme);
}

static void fused_first_refused(struct conf *conf)
{
    struct nvme *nvme = open_fused(conf);
    uint16_t a, b;

    nvme_write(nvme, AT, 1, 1);
    fill_pair(nvme, 1, 2);
    a = send_half(nvme, SQE_FUSE_FIRST, nvme->size_blocks);
    b = send_half(nvme, SQE_FUSE_SECOND, AT);
    expect_answer(nvme, "a Compare beyond the end", a, NVME_SC_LBA_RANGE);
    expect_answer(nvme, "the Write that is fused with it", b,
                  NVME_SC_FUSED_FAILED);
    nvme_verify(nvme, AT, 1, 1);
    nvme_close(nvme);
}

static void fused_other_block(struct conf *conf)
{
    struct nvme *nvme = open_fused(conf);
    uint16_t a, b;

    nvme_write(nvme, AT, 1, 1);
    nvme_write(nvme, AT + 1, 1, 1);
    fill_pair(nvme, 1, 2);
    a = send_half(nvme, SQE_FUSE_FIRST, AT);
    b = send_half(nvme, SQE_FUSE_SECOND, AT + 1);
    expect_answer(nvme, "the Compare of one block", a, NVME_SC_INVALID_FIELD);
    expect_answer(nvme, "the Write of another", b, NVME_SC_INVALID_FIELD);
    nvme_verify(nvme, AT, 1, 1);
    nvme_verify(nvme, AT + 1, 1, 1);
    nvme_close(nvme);
}

/* Send a command for one block, whose data is at io->mem + offset, in the
 * capsule if it fits there. */
static uint16_t send_block(struct nvme *nvme, const struct nvme_sqe *sqe,
                           uint32_t offset)
{
    uint32_t len = nvme->block_bytes;
    struct sgl keyed = rc_keyed(nvme->io, offset, len);
    struct sgl along = {.kind = SGL_IN_CAPSULE, .len_bytes = len};
    bool fits =
        (get_le32(nvme->ctrl + ID_CTRL_SGLS) & SGLS_IN_CAPSULE) &&
        get_le32(nvme->ctrl + ID_CTRL_IOCCSZ) * 16 >= NVME_SQE_LEN + len;

    return fits ? rc_send_capsule(nvme->io, sqe, &along, nvme->io->mem + offset,
                                  len)
                : rc_send_capsule(nvme->io, sqe, &keyed, NULL, 0);
}

/* The other host's Write comes before, between or after the halves of a pair,
 * and the pair has not been executed then. */
static void race_pair(struct nvme *nvme, struct nvme *other, unsigned int turn)
{
    const struct nvme_sqe write = nvme_rw_sqe(other, NVM_WRITE, AT, 1);
    struct nvme_sqe compare = nvme_rw_sqe(nvme, NVM_COMPARE, AT, 1);
    struct nvme_sqe second_write = write;
    struct nvme_cqe first_cqe, second_cqe, write_cqe;
    uint16_t first = 0, second = 0, third = 0;

    compare.fuse = SQE_FUSE_FIRST;
    second_write.fuse = SQE_FUSE_SECOND;
    for (unsigned int i = 0; i < 3; i++) {
        if (i == 2 - turn % 3) {
            third = send_block(other, &write, 0);
        } else if (first == 0) {
            first = send_block(nvme, &compare, 0);
        } else {
            second = send_block(nvme, &second_write, nvme->block_bytes);
        }
    }
    rc_take_response(nvme->io, first, &first_cqe);
    rc_take_response(nvme->io, second, &second_cqe);
    rc_take_response(other->io, third, &write_cqe);
    conf_status(nvme->conf, "the other host's Write",
                write_cqe.status & NVME_SC_MASK, NVME_SC_SUCCESS);
    if ((first_cqe.status & NVME_SC_MASK) != NVME_SC_SUCCESS) {
        conf_status(nvme->conf, "the fused Compare",
                    first_cqe.status & NVME_SC_MASK, NVME_SC_COMPARE_FAILED);
        conf_status(nvme->conf, "the fused Write",
                    second_cqe.status & NVME_SC_MASK, NVME_SC_FUSED_FAILED);
    }
}

/*
 * Another host writes the block while a pair is under way.  Whether the pair
 * succeeds depends on which comes first, but what the other host has written is
 * there afterwards: a pair that succeeds was before it, and a pair that is
 * after it fails.
 */
static void fused_other_host(struct conf *conf)
{
    struct nvme *nvme = open_fused(conf);
    struct nvme *other = nvme_open_host(conf, 1);

    for (uint32_t i = 0; i < FUSED_RACES; i++) {
        nvme_write(nvme, AT, 1, 3 * i + 1);
        fill_pair(nvme, 3 * i + 1, 3 * i + 2);
        nvme_fill(other, AT, 1, 3 * i + 3);
        race_pair(nvme, other, i);
        nvme_verify(nvme, AT, 1, 3 * i + 3);
    }
    nvme_close(other);
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, fn) CONF_TEST(id, clause, purpose, fn)

static const struct conf_test tests[] = {
    TEST("compare.equal", "NVMe 1.4 6.6", "Compare of equal data succeeds",
         compare_equal),
    TEST("compare.differs", "NVMe 1.4 6.6",
         "Compare finds one bit that differs, at each place", compare_differs),
    TEST("compare.beyond", "NVMe 1.4 6.6",
         "Compare across the end is refused with LBA Out of Range",
         compare_beyond),
    TEST("verify.reads", "NVMe 1.4 6.14",
         "Verify takes every range of the namespace, and none beyond it",
         verify_reads),
    TEST("copy.one", "NVM Command Set 1.0 3.2.2",
         "Copy copies one range, and nothing beside it", copy_one),
    TEST("copy.many", "NVM Command Set 1.0 3.2.2",
         "Copy copies as many ranges as MSRC allows, in their order",
         copy_many),
    TEST("copy.limits", "NVM Command Set 1.0 3.2.2, 4.1.5.1",
         "a Copy above MSSRL, MCL or MSRC gets Command Size Limit Exceeded",
         copy_limits),
    TEST("copy.beyond", "NVM Command Set 1.0 3.2.2",
         "a Copy beyond the end is refused, and copies nothing", copy_beyond),
    TEST("copy.format", "NVM Command Set 1.0 3.2.2; Base 2.0 5.17.2.1",
         "a format that OCFS does not report is refused with Invalid Field",
         copy_format),
    CONF_TEST("copy.other", "NVM Command Set 1.1 3.3.2",
              "format 2 copies what it names, once the host has enabled it",
              copy_other),
    TEST("fused.equal", "NVMe 1.4 4.12, 6.6",
         "a fused Compare and Write writes if the block is equal", fused_equal),
    TEST("fused.differs", "NVMe 1.4 4.12, 6.6",
         "a fused Write is aborted if its Compare fails", fused_differs),
    TEST("fused.no-second", "NVMe 1.4 4.12",
         "a first command without a second is aborted", fused_no_second),
    TEST("fused.no-first", "NVMe 1.4 4.12",
         "a second command without a first is aborted", fused_no_first),
    TEST("fused.first-refused", "NVMe 1.4 4.12",
         "a second command is aborted if the first is refused",
         fused_first_refused),
    TEST("fused.other-block", "NVMe 1.4 4.12",
         "a fused pair for two ranges is refused with Invalid Field",
         fused_other_block),
    TEST("fused.other-host", "NVMe 1.4 4.12, 6.6",
         "no other host's Write gets between a fused Compare and its Write",
         fused_other_host),
};
CONF_TESTS(conf_tests_nvme_copy, "nvme", tests);
