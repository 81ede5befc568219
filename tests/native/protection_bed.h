/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by tests of namespaces with metadata: a drive with a NAND array, a
 * model of the contents of its first blocks, and commands with protection
 * information.
 */
#ifndef ESSD_TEST_NATIVE_PROTECTION_BED_H
#define ESSD_TEST_NATIVE_PROTECTION_BED_H

#include "bed_fixture.h"

#include "lib/bytes.h"
#include "lib/random.h"
#include "lib/t10_pi.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"

enum {
    FORMAT_512 = 2, /* the indices of the LBA formats with metadata */
    FORMAT_4096 = 3,
    EXTENDED = 1 << 4, /* of dword 10 of Format NVM */
    TYPE_SHIFT = 5,
    ERASE_USER_DATA = 1 << 9,

    PRACT = 1 << 29, /* of dword 12 */
    CHECK_GUARD = 1 << 28,
    CHECK_APP = 1 << 27,
    CHECK_REF = 1 << 26,
    CHECK_ALL = CHECK_GUARD | CHECK_APP | CHECK_REF,
    DEAC = 1 << 25,

    BLOCKS = 96, /* of the model */
    STRIDE_MAX = 4096 + T10_PI_LEN,
};

/* How the namespace is formatted. */
static uint32_t block_bytes;
static unsigned int type;

/* The model of the blocks' contents: data, then metadata. */
static uint8_t model[BLOCKS][STRIDE_MAX];
static uint8_t *area; /* of the host */

static const struct bed nand_bed = {
    .mtu_bytes = 1500, .has_nand = true, .keeps_namespaces = true};

static inline int setup_nand(void **state)
{
    (void)state;
    bed_init_like(&bed, &nand_bed);
    bed_connect(&bed, 0, 1, 64);
    area = bed.host->data;
    return 0;
}

static inline uint32_t block_stride(void)
{
    return block_bytes + T10_PI_LEN;
}

static inline uint16_t send_command(uint16_t qid, const struct nvme_sqe *sqe)
{
    return host_command(&bed.host->host, qid, sqe, NULL, 0) & NVME_SC_MASK;
}

static inline uint16_t send_format(uint32_t cdw10)
{
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_FORMAT_NVM, .nsid = 1, .cdw10 = cdw10};

    return send_command(0, &sqe);
}

static inline void forget_blocks(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        memset(model[i], 0, block_bytes);
        memset(model[i] + block_bytes, 0xff, T10_PI_LEN);
    }
}

static inline void format_with(uint32_t bytes, unsigned int pi_type)
{
    uint32_t format = bytes == 512 ? FORMAT_512 : FORMAT_4096;

    block_bytes = bytes;
    type = pi_type;
    assert_int_equal(send_format(format | EXTENDED | pi_type << TYPE_SHIFT |
                                 ERASE_USER_DATA),
                     0);
    forget_blocks(0, BLOCKS);
}

/* Run a command whose data is at the start of the host's area. */
static inline uint16_t run_io(uint8_t opcode, uint64_t lba, uint32_t blocks,
                              uint32_t flags, uint32_t app_tags)
{
    bool has_data = opcode != NVM_WRITE_ZEROES && opcode != NVM_VERIFY;
    const struct host_io io = {
        .qid = 1,
        .opcode = opcode,
        .kind = has_data ? HOST_DATA_KEYED : HOST_DATA_NONE,
        .nsid = 1,
        .lba = lba,
        .blocks = blocks,
        .len_bytes =
            has_data ? blocks * (flags & PRACT && type != 0 ? block_bytes
                                                            : block_stride())
                     : 0,
        .flags = flags,
        .ref_tag = (uint32_t)lba,
        .app_tags = app_tags,
    };

    return host_io(&bed.host->host, &io) & NVME_SC_MASK;
}

static inline void put_pi(uint8_t *block, uint16_t app_tag, uint32_t ref_tag)
{
    const struct t10_pi pi = {
        .guard = t10_crc_update(0, block, block_bytes),
        .app_tag = app_tag,
        .ref_tag = ref_tag,
    };

    t10_pi_emit(&pi, block + block_bytes);
}

/* Give blocks of the model new contents with correct protection information. */
static inline void fill_model(uint32_t first, uint32_t count, uint32_t version,
                              uint16_t app_tag)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lba = first + i;
        uint64_t seed = (uint64_t)version << 32 | lba;

        for (uint32_t at = 0; at < block_bytes; at += 8) {
            put_le64(model[lba] + at, random_next(&seed));
        }
        put_pi(model[lba], app_tag, type == 3 ? first : lba);
    }
}

/* Copy blocks of the model to the host's area, as they are transferred. */
static inline void put_area(uint32_t first, uint32_t count, uint32_t step)
{
    for (uint32_t i = 0; i < count; i++) {
        memcpy(area + (size_t)i * step, model[first + i], step);
    }
}

static inline void expect_area(uint32_t first, uint32_t count, uint32_t step)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_memory_equal(area + (size_t)i * step, model[first + i], step);
    }
}

static inline void write_blocks(uint32_t first, uint32_t count,
                                uint32_t version, uint32_t flags,
                                uint16_t app_tag)
{
    fill_model(first, count, version, app_tag);
    put_area(first, count, flags & PRACT ? block_bytes : block_stride());
    assert_int_equal(run_io(NVM_WRITE, first, count, flags,
                            app_tag | UINT32_C(0xffff) << 16),
                     0);
}

static inline void expect_blocks(uint32_t first, uint32_t count)
{
    memset(area, 0xa5, (size_t)count * block_stride());
    assert_int_equal(
        run_io(NVM_READ, first, count,
               type != 0 ? CHECK_GUARD | (type == 3 ? 0 : CHECK_REF) : 0, 0),
        0);
    expect_area(first, count, block_stride());
    if (type != 0) {
        memset(area, 0xa5, (size_t)count * block_bytes);
        assert_int_equal(run_io(NVM_READ, first, count, PRACT | CHECK_GUARD, 0),
                         0);
        expect_area(first, count, block_bytes);
    }
}

static inline void flush_drive(void)
{
    assert_int_equal(bed_flush(&bed, 1), 0);
}

static inline void cut_power(void)
{
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    area = bed.host->data;
}

static inline uint64_t logged_lba(void)
{
    uint8_t entry[LOG_ERROR_ENTRY_LEN];

    assert_int_equal(
        host_get_log(&bed.host->host, LOG_ERROR, 0, entry, sizeof(entry)), 0);
    return get_le64(entry + ERROR_LBA);
}

#endif
