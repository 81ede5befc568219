/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces with metadata and protection information, on a drive with a NAND
 * array: what is checked, made and removed, and what a power cut leaves.
 */
#include <stdlib.h>

#include "protection_bed.h"

#include "tests/test_fixture.h"

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
