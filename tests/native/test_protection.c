/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces with metadata and protection information, on a drive with a NAND
 * array: what is checked, made and removed, and what a power cut leaves.
 */
#include <stdlib.h>

#include "bed_fixture.h"

#include "lib/bytes.h"
#include "lib/random.h"
#include "lib/t10_pi.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"
#include "tests/test_fixture.h"

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

/* What the blocks hold: data, then metadata. */
static uint8_t model[BLOCKS][STRIDE_MAX];
static uint8_t *area; /* of the host */

static const struct bed nand_bed = {
    .mtu_bytes = 1500, .has_nand = true, .keeps_namespaces = true};

static int setup_nand(void **state)
{
    (void)state;
    bed_init_like(&bed, &nand_bed);
    bed_connect(&bed, 0, 1, 64);
    area = bed.host->data;
    return 0;
}

static uint32_t block_stride(void)
{
    return block_bytes + T10_PI_LEN;
}

static uint16_t send_command(uint16_t qid, const struct nvme_sqe *sqe)
{
    return host_command(&bed.host->host, qid, sqe, NULL, 0) & NVME_SC_MASK;
}

static uint16_t send_format(uint32_t cdw10)
{
    const struct nvme_sqe sqe = {
        .opcode = ADMIN_FORMAT_NVM, .nsid = 1, .cdw10 = cdw10};

    return send_command(0, &sqe);
}

static void forget_blocks(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        memset(model[i], 0, block_bytes);
        memset(model[i] + block_bytes, 0xff, T10_PI_LEN);
    }
}

static void format_with(uint32_t bytes, unsigned int pi_type)
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
static uint16_t run_io(uint8_t opcode, uint64_t lba, uint32_t blocks,
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

static void put_pi(uint8_t *block, uint16_t app_tag, uint32_t ref_tag)
{
    const struct t10_pi pi = {
        .guard = t10_crc_update(0, block, block_bytes),
        .app_tag = app_tag,
        .ref_tag = ref_tag,
    };

    t10_pi_emit(&pi, block + block_bytes);
}

/* New contents of blocks, with protection information that fits. */
static void fill_model(uint32_t first, uint32_t count, uint32_t version,
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
static void put_area(uint32_t first, uint32_t count, uint32_t step)
{
    for (uint32_t i = 0; i < count; i++) {
        memcpy(area + (size_t)i * step, model[first + i], step);
    }
}

static void expect_area(uint32_t first, uint32_t count, uint32_t step)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_memory_equal(area + (size_t)i * step, model[first + i], step);
    }
}

static void write_blocks(uint32_t first, uint32_t count, uint32_t version,
                         uint32_t flags, uint16_t app_tag)
{
    fill_model(first, count, version, app_tag);
    put_area(first, count, flags & PRACT ? block_bytes : block_stride());
    assert_int_equal(run_io(NVM_WRITE, first, count, flags,
                            app_tag | UINT32_C(0xffff) << 16),
                     0);
}

static void expect_blocks(uint32_t first, uint32_t count)
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

static void flush_drive(void)
{
    assert_int_equal(bed_flush(&bed, 1), 0);
}

static void cut_power(void)
{
    bed_power_cycle(&bed);
    host_vanish(&bed.host->host);
    bed_connect(&bed, 0, 1, 64);
    area = bed.host->data;
}

static uint64_t logged_lba(void)
{
    uint8_t entry[LOG_ERROR_ENTRY_LEN];

    assert_int_equal(
        host_get_log(&bed.host->host, LOG_ERROR, 0, entry, sizeof(entry)), 0);
    return get_le64(entry + ERROR_LBA);
}

/* ---- Formats. */

WITH_FIXTURE(setup_nand, teardown)
static void test_identify_offers_formats_with_extended_metadata(void **state)
{
    uint8_t id[NVME_IDENTIFY_LEN];
    const struct nvme_sqe sqe = {.opcode = ADMIN_IDENTIFY, .nsid = 1};

    (void)state;
    format_with(4096, 2);
    assert_int_equal(host_command(&bed.host->host, 0, &sqe, id, sizeof(id)), 0);
    assert_int_equal(id[ID_NS_NLBAF], 3);
    assert_int_equal(id[ID_NS_FLBAS], EXTENDED | FORMAT_4096);
    assert_int_equal(id[ID_NS_METADATA_CAPABILITIES], MC_EXTENDED);
    assert_int_equal(id[ID_NS_PROTECTION_CAPABILITIES], 0x1f);
    assert_int_equal(id[ID_NS_DPS], 2);
    for (unsigned int i = 0; i < 4; i++) {
        assert_int_equal(get_le16(id + ID_NS_LBAF0 + 4 * (size_t)i),
                         i < 2 ? 0 : T10_PI_LEN);
        assert_int_equal(id[ID_NS_LBAF0 + 4 * i + 2], i % 2 == 0 ? 9 : 12);
    }
}

WITH_FIXTURE(setup_nand, teardown)
static void test_a_format_that_the_drive_lacks_is_refused(void **state)
{
    static const uint32_t refused[] = {
        FORMAT_512 | 1 << TYPE_SHIFT,            /* separate metadata */
        FORMAT_4096,                             /* the same, without PI */
        4,                                       /* there are four formats */
        0 | EXTENDED | 1 << TYPE_SHIFT,          /* no metadata for PI */
        FORMAT_512 | EXTENDED | 4 << TYPE_SHIFT, /* no such type */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_int_equal(send_format(refused[i]), NVME_SC_INVALID_FORMAT);
    }
}

/* ---- Checks. */

static void check_formats(void (*check)(void))
{
    for (unsigned int pi_type = 1; pi_type <= 3; pi_type++) {
        format_with(512, pi_type);
        check();
        format_with(4096, pi_type);
        check();
    }
}

static void check_round_trip(void)
{
    write_blocks(3, 21, 1, PRACT, 0x1234);
    expect_blocks(0, 40);
    flush_drive();
    expect_blocks(0, 40);
    write_blocks(5, 9, 2, CHECK_GUARD | CHECK_APP, 0xbeef);
    expect_blocks(0, 40);
    flush_drive();
    expect_blocks(0, 40);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_protection_information_is_made_kept_and_removed(void **state)
{
    (void)state;
    check_formats(check_round_trip);
}

static void expect_checks(uint32_t lba)
{
    static const struct {
        uint32_t check, byte;
        uint16_t status;
    } checks[] = {
        {CHECK_GUARD, 1, NVME_SC_GUARD_CHECK},
        {CHECK_APP, 3, NVME_SC_APP_TAG_CHECK},
        {CHECK_REF, 7, NVME_SC_REF_TAG_CHECK},
    };

    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        uint32_t first = lba - 4;

        if (type == 3 && checks[i].check == CHECK_REF) {
            continue;
        }
        put_area(first, 8, block_stride());
        area[4 * block_stride() + block_bytes + checks[i].byte] ^= 1;
        /* A write that asks for the check changes nothing. */
        assert_int_equal(run_io(NVM_WRITE, first, 8, checks[i].check,
                                0x1111 | UINT32_C(0xffff) << 16),
                         checks[i].status);
        assert_int_equal(logged_lba(), lba);
        expect_blocks(first, 8);
        /* One that does not ask stores it, and a read finds it. */
        put_area(first, 8, block_stride());
        area[4 * block_stride() + block_bytes + checks[i].byte] ^= 1;
        assert_int_equal(run_io(NVM_WRITE, first, 8, 0, 0), 0);
        assert_int_equal(run_io(NVM_READ, first, 8, checks[i].check,
                                0x1111 | UINT32_C(0xffff) << 16),
                         checks[i].status);
        assert_int_equal(logged_lba(), lba);
        flush_drive();
        assert_int_equal(run_io(NVM_READ, first, 8, checks[i].check | PRACT,
                                0x1111 | UINT32_C(0xffff) << 16),
                         checks[i].status);
        assert_int_equal(logged_lba(), lba);
        assert_int_equal(run_io(NVM_VERIFY, first, 8, checks[i].check,
                                0x1111 | UINT32_C(0xffff) << 16),
                         checks[i].status);
        assert_int_equal(run_io(NVM_READ, first, 8, 0, 0), 0);
        put_area(first, 8, block_stride());
        assert_int_equal(run_io(NVM_WRITE, first, 8, CHECK_GUARD, 0), 0);
    }
}

static void check_checks(void)
{
    write_blocks(0, 40, 1, CHECK_GUARD, 0x1111);
    expect_checks(13);
    expect_checks(24);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_each_check_fails_with_its_status_and_the_lba(void **state)
{
    (void)state;
    check_formats(check_checks);
}

static void check_escapes(void)
{
    write_blocks(8, 8, 1, 0, 0x2222);
    for (uint32_t lba = 8; lba < 16; lba++) {
        model[lba][0] ^= 0xff; /* The guard is wrong now. */
        put_be16(model[lba] + block_bytes + 2, T10_APP_TAG_ESCAPE);
        if (type == 3) {
            put_be32(model[lba] + block_bytes + 4, T10_REF_TAG_ESCAPE);
        }
    }
    put_area(8, 8, block_stride());
    assert_int_equal(run_io(NVM_WRITE, 8, 8, CHECK_GUARD | CHECK_APP, 0), 0);
    expect_blocks(0, 24);
    put_be32(model[9] + block_bytes + 4, 77);
    put_area(8, 8, block_stride());
    assert_int_equal(run_io(NVM_WRITE, 8, 8, CHECK_GUARD, 0),
                     type == 3 ? NVME_SC_GUARD_CHECK : 0);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_escape_values_switch_the_checks_off(void **state)
{
    (void)state;
    check_formats(check_escapes);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_wrong_uses_of_the_reference_tag_are_refused(void **state)
{
    struct nvme_sqe sqe = {.opcode = NVM_VERIFY,
                           .nsid = 1,
                           .cdw10 = 5,
                           .cdw12 = CHECK_REF,
                           .cdw14 = 6};

    (void)state;
    format_with(512, 1);
    assert_int_equal(send_command(1, &sqe), NVME_SC_INVALID_PROTECTION);
    sqe.cdw14 = 5;
    assert_int_equal(send_command(1, &sqe), 0);
    sqe.cdw12 = PRACT;
    assert_int_equal(send_command(1, &sqe), NVME_SC_INVALID_PROTECTION);
    format_with(512, 2);
    sqe.cdw12 = CHECK_REF;
    sqe.cdw14 = 6;
    assert_int_equal(send_command(1, &sqe), 0);
    format_with(512, 3);
    assert_int_equal(send_command(1, &sqe), NVME_SC_INVALID_PROTECTION);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_the_application_tag_mask_chooses_bits(void **state)
{
    (void)state;
    format_with(4096, 1);
    write_blocks(0, 4, 1, PRACT, 0x12ff);
    assert_int_equal(run_io(NVM_READ, 0, 4, CHECK_APP, 0xff000000 | 0x12aa), 0);
    assert_int_equal(run_io(NVM_READ, 0, 4, CHECK_APP, 0x00ff0000 | 0x12aa),
                     NVME_SC_APP_TAG_CHECK);
}

/* ---- Other commands. */

static void check_zeroes(void)
{
    write_blocks(0, 40, 1, PRACT, 0x3333);
    /* PRACT makes protection information. */
    assert_int_equal(run_io(NVM_WRITE_ZEROES, 3, 9, PRACT, 0x4444), 0);
    for (uint32_t lba = 3; lba < 12; lba++) {
        memset(model[lba], 0, block_bytes);
        put_pi(model[lba], 0x4444, type == 3 ? 3 : lba);
    }
    expect_blocks(0, 40);
    /* Without it, the metadata is 0. */
    assert_int_equal(run_io(NVM_WRITE_ZEROES, 20, 3, 0, 0), 0);
    for (uint32_t lba = 20; lba < 23; lba++) {
        memset(model[lba], 0, block_stride());
    }
    memset(area, 0xa5, 5 * block_stride());
    assert_int_equal(run_io(NVM_READ, 19, 5, 0, 0), 0);
    expect_area(19, 5, block_stride());
    /* Deallocated blocks have FFh, and are not checked. */
    assert_int_equal(run_io(NVM_WRITE_ZEROES, 13, 14, DEAC, 0), 0);
    forget_blocks(13, 14);
    expect_blocks(0, 40);
    assert_int_equal(run_io(NVM_WRITE_ZEROES, 13, 14, CHECK_GUARD, 0),
                     NVME_SC_INVALID_PROTECTION);
    flush_drive();
    expect_blocks(0, 40);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_zeroes_and_deallocated_blocks_have_their_metadata(void **state)
{
    (void)state;
    check_formats(check_zeroes);
}

static void check_compare(void)
{
    write_blocks(0, 20, 1, PRACT, 0x5555);
    put_area(2, 11, block_stride());
    assert_int_equal(run_io(NVM_COMPARE, 2, 11, CHECK_GUARD, 0), 0);
    area[3 * block_stride() + block_bytes + 2] ^= 1; /* not compared */
    assert_int_equal(run_io(NVM_COMPARE, 2, 11, 0, 0), 0);
    area[3 * block_stride()] ^= 1;
    assert_int_equal(run_io(NVM_COMPARE, 2, 11, 0, 0), NVME_SC_COMPARE_FAILED);
    put_area(2, 11, block_bytes);
    assert_int_equal(run_io(NVM_COMPARE, 2, 11, PRACT, 0), 0);
    area[10 * block_bytes] ^= 1;
    assert_int_equal(run_io(NVM_COMPARE, 2, 11, PRACT, 0),
                     NVME_SC_COMPARE_FAILED);
    assert_int_equal(
        run_io(NVM_COMPARE, 2, 11, CHECK_APP, UINT32_C(0xffff) << 16),
        NVME_SC_APP_TAG_CHECK);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_compare_takes_extended_blocks(void **state)
{
    (void)state;
    check_formats(check_compare);
}

/* Copy blocks 0 to 15 to block 40. */
static uint16_t run_copy(uint32_t flags)
{
    uint8_t range[32] = {0};
    const struct nvme_sqe sqe = {
        .opcode = NVM_COPY,
        .nsid = 1,
        .cdw10 = 40,
        .cdw12 = flags,
        .cdw14 = 40,
        .cdw15 = 0x6666,
    };

    put_le16(range + 16, 15);
    return host_command(&bed.host->host, 1, &sqe, range, sizeof(range)) &
           NVME_SC_MASK;
}

static void check_copy(void)
{
    enum { READ_PRACT = 1 << 15, READ_CHECK_GUARD = 1 << 14 };

    write_blocks(0, 20, 1, PRACT, 0x7777);
    assert_int_equal(run_copy(READ_PRACT | READ_CHECK_GUARD | PRACT), 0);
    for (uint32_t i = 0; i < 16; i++) {
        memcpy(model[40 + i], model[i], block_bytes);
        put_pi(model[40 + i], 0x6666, type == 3 ? 40 : 40 + i);
    }
    expect_blocks(30, 30);
    /* Without PRACT the metadata is copied, and its reference tags are those of
     * the source. */
    assert_int_equal(run_copy(READ_CHECK_GUARD | CHECK_GUARD), 0);
    memcpy(model[40], model[0], sizeof(model[0]) * 16);
    memset(area, 0xa5, 16 * block_stride());
    assert_int_equal(run_io(NVM_READ, 40, 16, CHECK_GUARD, 0), 0);
    expect_area(40, 16, block_stride());
    assert_int_equal(run_copy(PRACT), NVME_SC_INVALID_PROTECTION);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_copy_makes_or_copies_protection_information(void **state)
{
    (void)state;
    check_formats(check_copy);
}

WITH_FIXTURE(setup_nand, teardown)
static void test_metadata_without_protection_is_stored(void **state)
{
    (void)state;
    format_with(4096, 0);
    fill_model(0, 16, 1, 0);
    memset(model[3] + block_bytes, 0x5a, T10_PI_LEN);
    put_area(0, 16, block_stride());
    /* There is nothing to check or to make. */
    assert_int_equal(run_io(NVM_WRITE, 0, 16, PRACT | CHECK_ALL, 0), 0);
    expect_blocks(0, 20);
    put_area(0, 16, block_stride());
    area[5 * block_stride() + block_bytes] ^= 1;
    assert_int_equal(run_io(NVM_COMPARE, 0, 16, 0, 0), NVME_SC_COMPARE_FAILED);
}

/* ---- Lengths. */

WITH_FIXTURE(setup_nand, teardown)
static void test_metadata_counts_for_the_largest_transfer(void **state)
{
    uint32_t most = NVMF_MAX_TRANSFER / 520;
    uint64_t seed = 1;

    (void)state;
    format_with(512, 1);
    for (uint32_t i = 0; i < most * 520; i += 8) {
        put_le64(area + i, random_next(&seed));
    }
    assert_int_equal(run_io(NVM_WRITE, 1, most, 0, 0), 0);
    memset(area, 0, NVMF_MAX_TRANSFER);
    assert_int_equal(run_io(NVM_READ, 1, most, 0, 0), 0);
    seed = 1;
    for (uint32_t i = 0; i < most * 520; i += 8) {
        assert_int_equal(get_le64(area + i), random_next(&seed));
    }
    flush_drive();
    assert_int_equal(run_io(NVM_READ, 1, most, 0, 0), 0);
    seed = 1;
    for (uint32_t i = 0; i < most * 520; i += 8) {
        assert_int_equal(get_le64(area + i), random_next(&seed));
    }
    assert_int_equal(run_io(NVM_READ, 1, most + 1, 0, 0),
                     NVME_SC_INVALID_FIELD);
    /* 2048 blocks without metadata are exactly the most. */
    assert_int_equal(run_io(NVM_READ, 1, 2048, PRACT, 0), 0);
}

/* ---- Power cuts. */

WITH_FIXTURE(setup_nand, teardown)
static void test_formats_and_metadata_survive_power_cuts(void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 2; i++) {
        format_with(i == 0 ? 512 : 4096, 1 + i);
        write_blocks(1, 30, 1, PRACT, 0x7777);
        flush_drive();
        cut_power();
        expect_blocks(0, 40);
    }
}

static uint32_t random_number(uint64_t *state, uint32_t end)
{
    return (uint32_t)(random_next(state) % end);
}

/* Random commands; each power cut comes after a flush. */
WITH_FIXTURE(setup_nand, teardown)
static void test_random_commands_match_a_model(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        uint64_t random = seed;

        format_with(seed % 2 == 0 ? 512 : 4096, 1 + seed % 3);
        for (uint32_t i = 0; i < 400; i++) {
            uint32_t first = random_number(&random, BLOCKS);
            uint32_t count =
                1 + random_number(&random, MIN(BLOCKS - first, 24u));

            switch (random_number(&random, 8)) {
            case 0:
            case 1:
                write_blocks(first, count, i, PRACT, (uint16_t)i);
                break;
            case 2:
            case 3:
                write_blocks(first, count, i, CHECK_GUARD, (uint16_t)i);
                break;
            case 4:
                assert_int_equal(
                    run_io(NVM_WRITE_ZEROES, first, count, DEAC, 0), 0);
                forget_blocks(first, count);
                break;
            case 5:
                native_world_pass(&bed.world, random_number(&random, 200) *
                                                  UINT64_C(1000000));
                break;
            case 6:
                if (random_number(&random, 8) == 0) {
                    flush_drive();
                    cut_power();
                }
                break;
            default:
                expect_blocks(first, count);
                break;
            }
        }
        expect_blocks(0, BLOCKS);
    }
}
