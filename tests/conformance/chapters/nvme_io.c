/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NVM command set at every boundary: blocks, lengths, ranges, zeroes.
 *
 * Spec: NVM Express 1.4 chapter 6; 4.4 (SGLs).
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    AT = 64, /* The first block that tests use. */
    FUA = 1u << 30,
    DEAC = 1u << 25,
    LR = 1u << 31,
    DSM_DEALLOCATE = 0x4,
    DSM_HINTS = 0x3,
    DSM_RANGES = 256,
    DSM_RANGE_BYTES = 16,
};

/* ---- Blocks. */

static void round_trip(struct conf *conf, bool from_end, uint32_t blocks)
{
    struct nvme *nvme = nvme_open(conf);
    uint32_t count = MIN(blocks, nvme->max_blocks);
    uint64_t lba = from_end ? nvme->size_blocks - count : 0;
    uint32_t version = (uint32_t)conf_random(conf);

    nvme_write(nvme, lba, count, version);
    nvme_verify(nvme, lba, count, version);
    nvme_verify(nvme, lba + count - 1, 1, version);
    nvme_close(nvme);
}

#define ROUND_TRIP(name, from_end, blocks)                                     \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        round_trip(conf, from_end, blocks);                                    \
    }
ROUND_TRIP(first_block, false, 1)
ROUND_TRIP(last_block, true, 1)
ROUND_TRIP(first_max, false, UINT32_MAX)
ROUND_TRIP(last_max, true, UINT32_MAX)
ROUND_TRIP(seven_blocks, false, 7)
ROUND_TRIP(eight_blocks, false, 8)
ROUND_TRIP(nine_blocks, true, 9)

/* Lengths around powers of two, up to MDTS; the neighbouring blocks keep their
 * data. */
static void long_data(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    static const uint32_t lens[] = {
        131072 - 4096, 131072,        131072 + 4096,  262144, 524288 - 4096,
        524288,        524288 + 4096, 1048576 - 4096, 1048576};
    uint32_t blocks = nvme->max_blocks;

    nvme_write(nvme, AT - 1, 1, 1);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        blocks = lens[i] / nvme->block_bytes;
        if (blocks > nvme->max_blocks) {
            break;
        }
        nvme_write(nvme, AT + blocks, 1, 1);
        nvme_write(nvme, AT, blocks, 2 + (uint32_t)i);
        nvme_verify(nvme, AT, blocks, 2 + (uint32_t)i);
        nvme_verify(nvme, AT + blocks - 1, 1, 2 + (uint32_t)i);
        nvme_verify(nvme, AT + blocks, 1, 1);
    }
    nvme_verify(nvme, AT - 1, 1, 1);
    nvme_close(nvme);
}

/* The neighbours of written blocks keep their data. */
static void io_neighbours(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    nvme_write(nvme, AT, 8, 1);
    nvme_write(nvme, AT + 3, 2, 2);
    nvme_verify(nvme, AT, 3, 1);
    nvme_verify(nvme, AT + 3, 2, 2);
    nvme_verify(nvme, AT + 5, 3, 1);
    nvme_close(nvme);
}

/* ---- Blocks beyond the end. */

enum place { ONE_BEYOND, STRADDLE, FAR, WRAP, HIGH_HALF };

static void lba_beyond(struct conf *conf, uint8_t opcode, enum place place)
{
    struct nvme *nvme = nvme_open(conf);
    uint64_t size = nvme->size_blocks;
    static const uint32_t blocks[] = {1, 2, 1, 2, 1};
    const uint64_t lba[] = {size, size - 1, UINT64_MAX, UINT64_MAX,
                            (uint64_t)1 << 32};

    if (place == HIGH_HALF && size > lba[HIGH_HALF]) {
        conf_not_applicable(conf, "NSZE is above 2^32");
    }
    nvme_write(nvme, size - 1, 1, 7);
    nvme_write(nvme, 0, 1, 7);
    memset(nvme->io->mem, 0x3c, 2 * nvme->block_bytes);
    conf_status(conf, "a range beyond the end",
                nvme_rw(nvme, opcode, lba[place], blocks[place]),
                NVME_SC_LBA_RANGE);
    conf_check(conf, opcode != NVM_READ || nvme->io->mem[0] == 0x3c,
               "a refused Read transferred data");
    nvme_verify(nvme, size - 1, 1, 7);
    nvme_verify(nvme, 0, 1, 7);
    nvme_close(nvme);
}

#define BEYOND_PLACES(X, opcode, name)                                         \
    X(opcode, name, ONE_BEYOND, "beyond",                                      \
      "an access to the block after the last one")                             \
    X(opcode, name, STRADDLE, "straddle",                                      \
      "an access to the last block and one more")                              \
    X(opcode, name, FAR, "far", "an access at an SLBA of all ones")            \
    X(opcode, name, WRAP, "wrap", "an access whose end wraps to 0")            \
    X(opcode, name, HIGH_HALF, "high",                                         \
      "an access at an SLBA with only dword 11 set")
#define BEYOND(X)                                                              \
    BEYOND_PLACES(X, READ, "read")                                             \
    BEYOND_PLACES(X, WRITE, "write")                                           \
    BEYOND_PLACES(X, WRITE_ZEROES, "zeroes")

#define BEYOND_FUNCTION(opcode, name, place, id, purpose)                      \
    static void beyond_##opcode##_##place(struct conf *conf)                   \
    {                                                                          \
        lba_beyond(conf, NVM_##opcode, place);                                 \
    }
BEYOND(BEYOND_FUNCTION)

/* ---- MDTS, and what the SGL describes. */

static void above_mdts(struct conf *conf, uint8_t opcode)
{
    struct nvme *nvme = nvme_open(conf);
    unsigned int mdts = nvme->ctrl[ID_CTRL_MDTS];

    if (mdts == 0 || mdts > 8) {
        conf_not_applicable(conf, "MDTS is %u", mdts);
    }
    conf_status(conf, "a command with one block more than MDTS",
                nvme_rw(nvme, opcode, 0, nvme->max_blocks + 1),
                NVME_SC_INVALID_FIELD);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

static void sgl_length_differs(struct conf *conf, uint8_t opcode,
                               int difference)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, opcode, AT, 2);
    uint32_t len = 2 * nvme->block_bytes;
    struct sgl sgl = rc_keyed(nvme->io, 0, (uint32_t)((int)len + difference));
    bool is_longer = get_le32(nvme->ctrl + ID_CTRL_SGLS) & SGLS_LONGER;

    nvme_write(nvme, AT, 2, 9);
    memset(nvme->io->mem, 0x3c, 2 * (size_t)len);
    conf_status(conf, "a command whose SGL has another length",
                nvme_run_sgl(nvme, nvme->io, &sqe, &sgl, NULL),
                difference > 0 && is_longer ? NVME_SC_SUCCESS
                                            : NVME_SC_SGL_INVALID_LENGTH);
    conf_check(conf, nvme->io->mem[len] == 0x3c,
               "more data was transferred than the blocks have");
    if (difference < 0 || !is_longer) {
        conf_check(conf, nvme->io->mem[0] == 0x3c,
                   "a refused command transferred data");
        nvme_verify(nvme, AT, 2, 9);
    }
    nvme_close(nvme);
}

#define DESCRIBED(name, opcode, difference)                                    \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        sgl_length_differs(conf, opcode, difference);                          \
    }
DESCRIBED(read_nothing, NVM_READ, -2 * CONF_BLOCK)
DESCRIBED(read_shorter, NVM_READ, -CONF_BLOCK)
DESCRIBED(read_byte_less, NVM_READ, -1)
DESCRIBED(read_longer, NVM_READ, CONF_BLOCK)
DESCRIBED(write_nothing, NVM_WRITE, -2 * CONF_BLOCK)
DESCRIBED(write_shorter, NVM_WRITE, -CONF_BLOCK)
DESCRIBED(write_byte_less, NVM_WRITE, -1)
DESCRIBED(write_longer, NVM_WRITE, CONF_BLOCK)

static void read_above_mdts(struct conf *conf)
{
    above_mdts(conf, NVM_READ);
}

static void write_above_mdts(struct conf *conf)
{
    above_mdts(conf, NVM_WRITE);
}

/* ---- Bits of Read and Write. */

static void with_bits(struct conf *conf, struct nvme_sqe more)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_WRITE, AT, 2);
    uint32_t len = 2 * nvme->block_bytes;
    uint8_t *expected = conf_alloc(conf, len);

    conf_fill(expected, AT, len / CONF_BLOCK, (uint32_t)conf_random(conf));
    for (unsigned int i = 0; i < 2; i++) {
        sqe.opcode = i == 0 ? NVM_WRITE : NVM_READ;
        sqe.cdw2 = more.cdw2;
        sqe.cdw3 = more.cdw3;
        sqe.mptr = more.mptr;
        sqe.cdw12 |= more.cdw12;
        sqe.cdw13 = more.cdw13;
        sqe.cdw14 = more.cdw14;
        sqe.cdw15 = more.cdw15;
        memcpy(nvme->io->mem, expected, i == 0 ? len : 0);
        conf_status(conf, i == 0 ? "Write" : "Read",
                    nvme_run(nvme, nvme->io, &sqe, len, NULL), NVME_SC_SUCCESS);
        conf_same(conf, "the data read", nvme->io->mem, expected, len);
        memset(nvme->io->mem, 0, len);
    }
    nvme_close(nvme);
}

#define WITH_BITS(name, ...)                                                   \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        with_bits(conf, (struct nvme_sqe){__VA_ARGS__});                       \
    }
WITH_BITS(fua, .cdw12 = FUA)
WITH_BITS(limited_retry, .cdw12 = LR)
WITH_BITS(both_bits, .cdw12 = FUA | LR)
WITH_BITS(dsm_field, .cdw13 = 0xff)
WITH_BITS(reserved_dwords, .cdw2 = UINT32_MAX, .cdw3 = UINT32_MAX)
WITH_BITS(reserved_bits, .cdw12 = 0x30000, .cdw13 = 0xff00)

static uint8_t protection_type(const struct nvme *nvme)
{
    return nvme->ns[29]; /* DPS. */
}

static void with_tags(struct conf *conf, struct nvme_sqe more)
{
    struct nvme *nvme = nvme_open(conf);
    bool has_protection = protection_type(nvme) & 7;

    nvme_close(nvme);
    if (has_protection) {
        conf_not_applicable(conf, "the namespace has protection (DPS)");
    }
    with_bits(conf, more);
}

static void io_prinfo(struct conf *conf)
{
    with_tags(conf, (struct nvme_sqe){.cdw12 = 0xfu << 26});
}

static void io_tags(struct conf *conf)
{
    with_tags(conf,
              (struct nvme_sqe){.cdw14 = 0x12345678, .cdw15 = 0xffff0001});
}

/* ---- Flush. */

static void io_flush(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    nvme_write(nvme, AT, 4, 3);
    conf_status(conf, "Flush", nvme_rw(nvme, NVM_FLUSH, 0, 1), NVME_SC_SUCCESS);
    nvme_verify(nvme, AT, 4, 3);
    nvme_close(nvme);
}

/* VWC bits 2:1: 2 means that Flush refuses NSID FFFFFFFFh, 3 that it accepts
 * it. */
static void flush_all(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = {.opcode = NVM_FLUSH, .nsid = NVME_NSID_ALL};
    unsigned int behaviour = nvme->ctrl[ID_CTRL_VWC] >> 1 & 3;
    uint16_t status = nvme_run(nvme, nvme->io, &sqe, 0, NULL);

    if (behaviour < 2) {
        conf_not_applicable(conf, "VWC bits 2:1 are %u", behaviour);
    }
    conf_status(conf, "Flush with NSID FFFFFFFFh", status,
                behaviour == 3 ? NVME_SC_SUCCESS : NVME_SC_INVALID_NS);
    nvme_close(nvme);
}

/* Dwords 10 to 15 are reserved in Flush. */
static void flush_fields(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_FLUSH, UINT64_MAX, 65536);

    sqe.cdw13 = sqe.cdw14 = sqe.cdw15 = UINT32_MAX;
    conf_status(conf, "Flush with reserved dwords set",
                nvme_run(nvme, nvme->io, &sqe, 0, NULL), NVME_SC_SUCCESS);
    nvme_close(nvme);
}

/* ---- Write Zeroes. */

static void write_zeroes(struct conf *conf, uint32_t bits, uint64_t lba,
                         uint32_t blocks)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe;

    if (!(get_le16(nvme->ctrl + ID_CTRL_ONCS) & ONCS_WRITE_ZEROES)) {
        conf_not_applicable(conf, "ONCS bit 3 is 0");
    }
    blocks = MIN(blocks, (uint32_t)MIN(nvme->size_blocks / 2, 65536));
    lba = lba == UINT64_MAX ? nvme->size_blocks - blocks : lba;
    sqe = nvme_rw_sqe(nvme, NVM_WRITE_ZEROES, lba, blocks);
    sqe.cdw12 |= bits;
    nvme_write(nvme, lba - 1, 1, 5);
    nvme_write(nvme, lba, 1, 5);
    nvme_write(nvme, lba + blocks - 1, 1, 5);
    if (lba + blocks < nvme->size_blocks) {
        nvme_write(nvme, lba + blocks, 1, 5);
    }
    conf_status(conf, "Write Zeroes", nvme_run(nvme, nvme->io, &sqe, 0, NULL),
                NVME_SC_SUCCESS);
    nvme_verify(nvme, lba - 1, 1, 5);
    nvme_verify_zeroes(nvme, lba, 1);
    nvme_verify_zeroes(nvme, lba + blocks - 1, 1);
    if (lba + blocks < nvme->size_blocks) {
        nvme_verify(nvme, lba + blocks, 1, 5);
    }
    nvme_close(nvme);
}

#define ZEROES(name, bits, lba, blocks)                                        \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        write_zeroes(conf, bits, lba, blocks);                                 \
    }
ZEROES(zeroes_one, 0, AT, 1)
ZEROES(zeroes_some, 0, AT, 100)
ZEROES(zeroes_last, 0, UINT64_MAX, 1)
ZEROES(zeroes_all, 0, AT, 65536)
ZEROES(zeroes_fua, FUA, AT, 8)
ZEROES(zeroes_deac, DEAC, AT, 8)
ZEROES(zeroes_deac_fua, DEAC | FUA, AT, 8)

/* ---- Dataset Management. */

struct range {
    uint64_t lba;
    uint32_t blocks;
};

static uint16_t send_dsm(struct nvme *nvme, const struct range *ranges,
                         unsigned int count, uint32_t attributes)
{
    struct nvme_sqe sqe = {.opcode = NVM_DATASET_MANAGEMENT,
                           .nsid = nvme->nsid,
                           .cdw10 = count - 1,
                           .cdw11 = attributes};

    for (unsigned int i = 0; i < count; i++) {
        uint8_t *range = nvme->io->mem + (size_t)i * DSM_RANGE_BYTES;

        put_le32(range, 0);
        put_le32(range + 4, ranges[i].blocks);
        put_le64(range + 8, ranges[i].lba);
    }
    return nvme_run(nvme, nvme->io, &sqe, count * DSM_RANGE_BYTES, NULL);
}

static struct nvme *dsm_open(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);

    if (!(get_le16(nvme->ctrl + ID_CTRL_ONCS) & ONCS_DATASET_MANAGEMENT)) {
        conf_not_applicable(conf, "ONCS bit 2 is 0");
    }
    return nvme;
}

/* DLFEAT tells how deallocated blocks read: 1 means zeroes, 0 means that it is
 * not reported. */
static void verify_deallocated(struct nvme *nvme, uint64_t lba)
{
    if ((nvme->ns[ID_NS_DLFEAT] & 7) == DLFEAT_READS_ZEROES) {
        nvme_verify_zeroes(nvme, lba, 1);
    } else {
        conf_status(nvme->conf, "Read", nvme_rw(nvme, NVM_READ, lba, 1),
                    NVME_SC_SUCCESS);
    }
}

static void dsm_ranges(struct conf *conf, unsigned int count)
{
    struct nvme *nvme = dsm_open(conf);
    struct range *ranges = conf_alloc(conf, count * sizeof(*ranges));

    for (unsigned int i = 0; i < count; i++) { /* Every other block. */
        ranges[i] = (struct range){AT + 2 * (uint64_t)i, 1};
    }
    nvme_write(nvme, AT, 4, 6);
    nvme_write(nvme, AT + 2 * (count - 1), 2, 6);
    conf_status(conf, "Dataset Management",
                send_dsm(nvme, ranges, count, DSM_DEALLOCATE), NVME_SC_SUCCESS);
    verify_deallocated(nvme, AT);
    nvme_verify(nvme, AT + 1, 1, 6);
    verify_deallocated(nvme, AT + 2 * (count - 1));
    nvme_verify(nvme, AT + 2 * (count - 1) + 1, 1, 6);
    nvme_close(nvme);
}

static void dsm_one(struct conf *conf)
{
    dsm_ranges(conf, 1);
}

static void dsm_two(struct conf *conf)
{
    dsm_ranges(conf, 2);
}

static void dsm_most(struct conf *conf)
{
    dsm_ranges(conf, DSM_RANGES);
}

static void dsm_last(struct conf *conf)
{
    struct nvme *nvme = dsm_open(conf);
    uint64_t last = nvme->size_blocks - 1;

    nvme_write(nvme, last, 1, 6);
    conf_status(conf, "Dataset Management of the last block",
                send_dsm(nvme, &(struct range){last, 1}, 1, DSM_DEALLOCATE),
                NVME_SC_SUCCESS);
    verify_deallocated(nvme, last);
    nvme_close(nvme);
}

/* A wrong range after a correct one. */
static void dsm_beyond(struct conf *conf, uint64_t past, uint32_t blocks)
{
    struct nvme *nvme = dsm_open(conf);
    struct range ranges[2] = {
        {AT, 1},
        {past == UINT64_MAX ? past : nvme->size_blocks - past, blocks}};

    conf_status(conf, "Dataset Management beyond the end",
                send_dsm(nvme, ranges, 2, DSM_DEALLOCATE), NVME_SC_LBA_RANGE);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

static void dsm_one_beyond(struct conf *conf)
{
    dsm_beyond(conf, 0, 1);
}

static void dsm_straddle(struct conf *conf)
{
    dsm_beyond(conf, 1, 2);
}

static void dsm_longest(struct conf *conf)
{
    dsm_beyond(conf, 1, UINT32_MAX);
}

static void dsm_wrap(struct conf *conf)
{
    dsm_beyond(conf, UINT64_MAX, 2);
}

/* The data is shorter than the number of ranges requires. */
static void dsm_short(struct conf *conf)
{
    struct nvme *nvme = dsm_open(conf);
    struct nvme_sqe sqe = {.opcode = NVM_DATASET_MANAGEMENT,
                           .nsid = nvme->nsid,
                           .cdw10 = 1,
                           .cdw11 = DSM_DEALLOCATE};
    struct sgl sgl = rc_keyed(nvme->io, 0, DSM_RANGE_BYTES);

    conf_status(conf, "two ranges in 16 bytes",
                nvme_run_sgl(nvme, nvme->io, &sqe, &sgl, NULL),
                NVME_SC_SGL_INVALID_LENGTH);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

static void dsm_hints(struct conf *conf)
{
    struct nvme *nvme = dsm_open(conf);

    nvme_write(nvme, AT, 4, 8);
    conf_status(conf, "Dataset Management without AD",
                send_dsm(nvme, &(struct range){AT, 4}, 1, DSM_HINTS),
                NVME_SC_SUCCESS);
    nvme_verify(nvme, AT, 4, 8);
    nvme_close(nvme);
}

static void dsm_empty(struct conf *conf)
{
    struct nvme *nvme = dsm_open(conf);
    struct range ranges[2] = {{AT, 0}, {AT + 1, 1}};

    nvme_write(nvme, AT, 3, 8);
    conf_status(conf, "a range of no blocks, followed by a range of one",
                send_dsm(nvme, ranges, 2, DSM_DEALLOCATE), NVME_SC_SUCCESS);
    nvme_verify(nvme, AT, 1, 8);
    verify_deallocated(nvme, AT + 1);
    nvme_verify(nvme, AT + 2, 1, 8);
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST("io." id, "NVMe 1.4 " clause, purpose, fn)
#define BEYOND_TEST(opcode, name, place, id, purpose)                          \
    TEST(name "-" id, "6.9, 6.15, 6.17",                                       \
         purpose " is refused with LBA Out of Range",                          \
         beyond_##opcode##_##place),

static const struct conf_test tests[] = {
    TEST("first-block", "6.15", "the first block is written and read back",
         first_block),
    TEST("last-block", "6.15", "the last block is written and read back",
         last_block),
    TEST("first-max", "6.15",
         "as many blocks as MDTS allows are written and read back from block 0 "
         "on",
         first_max),
    TEST("last-max", "6.15",
         "as many blocks as MDTS allows are written and read back up to the "
         "last block",
         last_max),
    TEST("long", "6.9, 6.15",
         "128 KiB to 1 MiB, as far as MDTS allows, are written and read back",
         long_data),
    TEST("page-less", "6.15", "seven blocks are written and read back",
         seven_blocks),
    TEST("page", "6.15", "eight blocks are written and read back",
         eight_blocks),
    TEST("page-more", "6.15",
         "nine blocks are written and read back up to the last block",
         nine_blocks),
    TEST("neighbours", "6.15",
         "the neighbours of written blocks keep their data", io_neighbours),
    BEYOND(BEYOND_TEST)
        TEST("read-mdts", "5.15.2.2, 6.9",
             "a Read of one block more than MDTS is refused with Invalid Field",
             read_above_mdts),
    TEST("write-mdts", "5.15.2.2, 6.15",
         "a Write of one block more than MDTS is refused with Invalid Field",
         write_above_mdts),
    TEST("read-sgl-none", "4.4", "a Read with an SGL of no bytes is refused",
         read_nothing),
    TEST("read-sgl-shorter", "4.4",
         "a Read with an SGL of half the bytes is refused", read_shorter),
    TEST("read-sgl-byte", "4.4",
         "a Read with an SGL one byte too short is refused", read_byte_less),
    TEST("read-sgl-longer", "4.4",
         "a Read with too long an SGL is accepted or refused, as SGLS bit 18 "
         "tells",
         read_longer),
    TEST("write-sgl-none", "4.4", "a Write with an SGL of no bytes is refused",
         write_nothing),
    TEST("write-sgl-shorter", "4.4",
         "a Write with an SGL of half the bytes is refused", write_shorter),
    TEST("write-sgl-byte", "4.4",
         "a Write with an SGL one byte too short is refused", write_byte_less),
    TEST("write-sgl-longer", "4.4",
         "a Write with too long an SGL is accepted or refused, as SGLS bit 18 "
         "tells",
         write_longer),
    TEST("fua", "6.9, 6.15", "Force Unit Access does not change the data", fua),
    TEST("limited-retry", "6.9, 6.15", "Limited Retry does not change the data",
         limited_retry),
    TEST("fua-limited-retry", "6.9, 6.15",
         "Force Unit Access with Limited Retry does not change the data",
         both_bits),
    TEST("dsm-field", "6.9, 6.15",
         "the hints in dword 13 do not change the data", dsm_field),
    TEST("reserved-dwords", "4.2", "dwords 2 and 3 are ignored",
         reserved_dwords),
    TEST("reserved-bits", "6.9, 6.15",
         "reserved bits of dwords 12 and 13 are ignored", reserved_bits),
    TEST("prinfo", "6.9, 8.3", "PRINFO without protection is ignored",
         io_prinfo),
    TEST("tags", "6.9, 8.3", "tags are ignored without protection", io_tags),
    TEST("flush", "6.8", "data is correct after a Flush", io_flush),
    TEST("flush-all", "6.8, 5.15.2.2",
         "Flush with NSID FFFFFFFFh is accepted or refused, as VWC tells",
         flush_all),
    TEST("flush-fields", "6.8", "reserved dwords of Flush are ignored",
         flush_fields),
    TEST("zeroes", "6.17",
         "Write Zeroes clears one block and leaves its neighbours alone",
         zeroes_one),
    TEST("zeroes-some", "6.17", "Write Zeroes clears 100 blocks", zeroes_some),
    TEST("zeroes-last", "6.17", "Write Zeroes clears the last block",
         zeroes_last),
    TEST("zeroes-most", "6.17",
         "Write Zeroes clears 65536 blocks, whatever MDTS is", zeroes_all),
    TEST("zeroes-fua", "6.17", "Write Zeroes works with Force Unit Access",
         zeroes_fua),
    TEST("zeroes-deac", "6.17", "Write Zeroes works with Deallocate",
         zeroes_deac),
    TEST("zeroes-deac-fua", "6.17",
         "Write Zeroes works with Deallocate and Force Unit Access",
         zeroes_deac_fua),
    TEST("dsm", "6.7", "Dataset Management deallocates one range", dsm_one),
    TEST("dsm-two", "6.7", "Dataset Management deallocates two ranges",
         dsm_two),
    TEST("dsm-most", "6.7", "Dataset Management deallocates 256 ranges",
         dsm_most),
    TEST("dsm-last", "6.7", "Dataset Management deallocates the last block",
         dsm_last),
    TEST("dsm-beyond", "6.7",
         "Dataset Management refuses the block after the last one",
         dsm_one_beyond),
    TEST("dsm-straddle", "6.7",
         "Dataset Management refuses the last block and one more",
         dsm_straddle),
    TEST("dsm-longest", "6.7",
         "Dataset Management refuses a length of all ones", dsm_longest),
    TEST("dsm-wrap", "6.7",
         "Dataset Management refuses a range that wraps to 0", dsm_wrap),
    TEST("dsm-short", "6.7, 4.4",
         "Dataset Management refuses data shorter than its ranges", dsm_short),
    TEST("dsm-hints", "6.7",
         "Dataset Management without Deallocate leaves data alone", dsm_hints),
    TEST("dsm-empty", "6.7", "Dataset Management accepts a range of no blocks",
         dsm_empty),
};
CONF_TESTS(conf_tests_nvme_io, "nvme", tests);
