/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Write Uncorrectable: which commands fail on marked blocks, and what makes the
 * blocks readable again.  Each test leaves blocks that can be read.
 *
 * Spec: NVM Command Set 1.0 3.2.7; NVMe 1.4 6.16.
 */
#include <string.h>

#include "nvme_lib.h"
#include "nvmeof/wire/lba_status.h"

enum {
    AT = 100, /* the first block that tests use */
    BLOCKS = 24,
    FIRST = AT + 5, /* the first marked block; not aligned to 4096 bytes */
    MARKED = 9,
};

static struct nvme *open_with_command(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    if (!(get_le16(nvme->ctrl + ID_CTRL_ONCS) & ONCS_WRITE_UNCORRECTABLE)) {
        conf_not_applicable(conf, "ONCS bit 1 is 0");
    }
    return nvme;
}

static void mark_blocks(struct nvme *nvme)
{
    nvme_write(nvme, AT, BLOCKS, 1);
    conf_status(nvme->conf, "Write Uncorrectable",
                nvme_rw(nvme, NVM_WRITE_UNCORRECTABLE, FIRST, MARKED),
                NVME_SC_SUCCESS);
}

static bool is_supported(const struct nvme *nvme, uint16_t oncs_bit)
{
    return get_le16(nvme->ctrl + ID_CTRL_ONCS) & oncs_bit;
}

#define WITH_MARKS(name)                                                       \
    static void name##_in(struct conf *conf, struct nvme *nvme);               \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct nvme *nvme = open_with_command(conf);                           \
                                                                               \
        mark_blocks(nvme);                                                     \
        name##_in(conf, nvme);                                                 \
        nvme_write(nvme, AT, BLOCKS, 2);                                       \
        nvme_verify(nvme, AT, BLOCKS, 2);                                      \
        nvme_close(nvme);                                                      \
    }                                                                          \
    static void name##_in(struct conf *conf, struct nvme *nvme)

static void expect_unreadable(struct nvme *nvme, uint64_t lba)
{
    conf_status(nvme->conf, "Read of a marked block",
                nvme_rw(nvme, NVM_READ, lba, 1), NVME_SC_READ_ERROR);
}

WITH_MARKS(reads)
{
    nvme_verify(nvme, AT, FIRST - AT, 1);
    nvme_verify(nvme, FIRST + MARKED, AT + BLOCKS - FIRST - MARKED, 1);
    for (uint64_t lba = FIRST; lba < FIRST + MARKED; lba++) {
        expect_unreadable(nvme, lba);
    }
    conf_status(conf, "Read of which one block is marked",
                nvme_rw(nvme, NVM_READ, AT, FIRST - AT + 1),
                NVME_SC_READ_ERROR);
}

WITH_MARKS(flushed)
{
    struct nvme_sqe flush = {.opcode = NVM_FLUSH, .nsid = nvme->nsid};

    conf_status(conf, "Flush", nvme_run(nvme, nvme->io, &flush, 0, NULL),
                NVME_SC_SUCCESS);
    nvme_verify(nvme, AT, FIRST - AT, 1);
    nvme_verify(nvme, FIRST + MARKED, AT + BLOCKS - FIRST - MARKED, 1);
    for (uint64_t lba = FIRST; lba < FIRST + MARKED; lba++) {
        expect_unreadable(nvme, lba);
    }
}

WITH_MARKS(written)
{
    nvme_write(nvme, FIRST + 2, 3, 3);
    nvme_verify(nvme, FIRST + 2, 3, 3);
    expect_unreadable(nvme, FIRST + 1);
    expect_unreadable(nvme, FIRST + 5);
    if (is_supported(nvme, ONCS_WRITE_ZEROES)) {
        conf_status(conf, "Write Zeroes",
                    nvme_rw(nvme, NVM_WRITE_ZEROES, FIRST, 2), NVME_SC_SUCCESS);
        nvme_verify_zeroes(nvme, FIRST, 2);
        expect_unreadable(nvme, FIRST + 5);
    }
}

WITH_MARKS(other_commands)
{
    struct nvme_sqe compare = nvme_rw_sqe(nvme, NVM_COMPARE, FIRST, 1);

    if (is_supported(nvme, ONCS_COMPARE)) {
        conf_status(conf, "Compare of a marked block",
                    nvme_run(nvme, nvme->io, &compare, nvme->block_bytes, NULL),
                    NVME_SC_READ_ERROR);
    }
    if (is_supported(nvme, ONCS_VERIFY)) {
        conf_status(conf, "Verify of marked blocks",
                    nvme_rw(nvme, NVM_VERIFY, AT, BLOCKS), NVME_SC_READ_ERROR);
        conf_status(conf, "Verify of the blocks before them",
                    nvme_rw(nvme, NVM_VERIFY, AT, FIRST - AT), NVME_SC_SUCCESS);
    }
    if (is_supported(nvme, ONCS_COPY)) {
        struct nvme_sqe copy = nvme_rw_sqe(nvme, NVM_COPY, 4096, 1);
        uint8_t *range = nvme->io->mem;

        memset(range, 0, 32);
        put_le64(range + 8, FIRST);
        put_le16(range + 16, MARKED - 1);
        conf_status(conf, "Copy of marked blocks",
                    nvme_run(nvme, nvme->io, &copy, 32, NULL),
                    NVME_SC_READ_ERROR);
    }
}

/* A scan finds the blocks. */
WITH_MARKS(lba_status)
{
    enum { LIST_LEN = 256 };
    struct nvme_sqe sqe = {
        .opcode = ADMIN_GET_LBA_STATUS,
        .nsid = nvme->nsid,
        .cdw10 = AT,
        .cdw12 = LIST_LEN / 4 - 1,
        .cdw13 = (uint32_t)LBA_ACTION_SCAN << LBA_STATUS_ATYPE | BLOCKS,
    };
    const uint8_t *mem = nvme->admin->mem;
    const uint8_t *entry = mem + LBA_STATUS_HEADER_LEN;

    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_GET_LBA_STATUS)) {
        return;
    }
    conf_status(conf, "Get LBA Status, action 10h",
                nvme_run(nvme, nvme->admin, &sqe, LIST_LEN, NULL),
                NVME_SC_SUCCESS);
    conf_equal(conf, "NLSD", get_le32(mem + LBA_STATUS_NLSD), 1);
    conf_equal(conf, "DSLBA", get_le64(entry + LBA_DESCRIPTOR_DSLBA), FIRST);
    conf_equal(conf, "NLB", get_le32(entry + LBA_DESCRIPTOR_NLB), MARKED - 1);
}

WITH_MARKS(beyond)
{
    conf_status(
        conf, "Write Uncorrectable across the end",
        nvme_rw(nvme, NVM_WRITE_UNCORRECTABLE, nvme->size_blocks - 1, 2),
        NVME_SC_LBA_RANGE);
}

#define TEST(id, purpose, fn)                                                  \
    CONF_TEST("uncorrectable." id, "NVM Command Set 1.0 3.2.7", purpose, fn)

static const struct conf_test tests[] = {
    TEST("reads", "reads of marked blocks, and of no others, fail", reads),
    TEST("flushed", "marks stay when they are on the medium", flushed),
    TEST("written", "a write makes its blocks readable again", written),
    TEST("others", "Compare, Verify and Copy of marked blocks fail",
         other_commands),
    TEST("lba-status", "Get LBA Status finds marked blocks", lba_status),
    TEST("beyond", "blocks beyond the end are refused", beyond),
};
CONF_TESTS(conf_tests_nvme_uncorrectable, "nvme", tests);
