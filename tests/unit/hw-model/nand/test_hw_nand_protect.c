/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection information in lists of moves: insert, strip, pass, and check.
 * Reference: docs/hardware/nand.md, sections 9 and 10.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/test_fixture.h"
#include "tests/unit/hw-model/nand/nand_world.h"

enum {
    LIST = W_LIST,
    HOST = W_BUF,          /* the host's buffer */
    UNIT = W_BUF + 0x4000, /* a unit's data */
    META = W_BUF + 0x8000, /* its metadata */
    DRAM_END = W_DRAM_BYTES,
    PI_LEN = 8,
    ALL_CHECKS = NAND_MOVE_CHECKS,
    APP = 0x1234,
    REF = 0x89abcdef,
    CRC_123456789 = 0xd0db, /* the check value of CRC-16/T10-DIF */
};

static struct nand_world *w;
static uint32_t count; /* moves in the list */

static int setup(void **state)
{
    (void)state;
    w = w_new("slc", false, 4);
    count = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    w_free(w);
    return 0;
}

TEST_FIXTURE(setup, teardown)

static uint64_t addr_of(uint32_t offset)
{
    return offset != 0 ? TEST_DRAM_BASE + offset : 0;
}

static uint8_t *new_move(uint8_t opcode, uint32_t to, uint32_t from)
{
    uint8_t *move =
        w->dram + LIST + NAND_MOVE_HEADER_LEN + (size_t)count * NAND_MOVE_LEN;

    /* Nobody clears the fields that an opcode does not have. */
    memset(move, 0xa5, NAND_MOVE_LEN);
    put_le64(move + NAND_MOVE_SOURCE, addr_of(from));
    put_le64(move + NAND_MOVE_TARGET, addr_of(to));
    move[NAND_MOVE_OPCODE] = opcode;
    count++;
    return move;
}

static void put_data(uint8_t opcode, uint32_t to, uint32_t from, uint32_t len)
{
    put_le32(new_move(opcode, to, from) + NAND_MOVE_LENGTH, len);
}

static uint8_t *put_protect(uint8_t flags, uint32_t to, uint32_t from)
{
    uint8_t *move = new_move(NAND_MOVE_PROTECT, to, from);

    put_le32(move + NAND_MOVE_REF_TAG, REF);
    put_le16(move + NAND_MOVE_APP_TAG, APP);
    put_le16(move + NAND_MOVE_APP_MASK, 0xffff);
    move[NAND_MOVE_FLAGS] = flags;
    return move;
}

/* Do the moves, and forget them. @return the status */
static uint32_t run_list(uint32_t *done)
{
    uint8_t *header = w->dram + LIST;

    put_le32(header + NAND_MOVE_COUNT, count);
    put_le32(header + NAND_MOVE_DONE, 0);
    put_le32(header + NAND_MOVE_STATUS, 0xa5a5a5a5);
    w_write(w, A_NAND_MOVE,
            (uint32_t)((TEST_DRAM_BASE + LIST) / NAND_MOVE_ALIGN));
    *done = get_le32(header + NAND_MOVE_DONE);
    count = 0;
    return get_le32(header + NAND_MOVE_STATUS);
}

static void expect_all_done(void)
{
    uint32_t wanted = count, done;

    assert_int_equal(run_list(&done), NAND_MOVE_OK);
    assert_int_equal(done, wanted);
    assert_int_equal(get_le32(w->dram + LIST + NAND_MOVE_GUARD), 0);
}

/* The CRC, bit by bit, of the polynomial 8BB7h. */
static uint16_t crc_of(const uint8_t *data, uint32_t len)
{
    uint16_t crc = 0;

    for (uint32_t i = 0; i < len * 8; i++) {
        bool bit = (data[i / 8] >> (7 - i % 8) & 1) ^ crc >> 15;

        crc = (uint16_t)(crc << 1 ^ (bit ? 0x8bb7 : 0));
    }
    return crc;
}

static void fill_data(uint32_t offset, uint32_t len, uint8_t seed)
{
    for (uint32_t i = 0; i < len; i++) {
        w->dram[offset + i] = (uint8_t)(i * 31 + i / 251 + seed);
    }
}

static void put_information(uint32_t offset, uint16_t guard, uint16_t app,
                            uint32_t ref)
{
    put_be16(w->dram + offset, guard);
    put_be16(w->dram + offset + 2, app);
    put_be32(w->dram + offset + 4, ref);
}

static void expect_information(uint32_t offset, uint16_t guard, uint16_t app,
                               uint32_t ref)
{
    assert_int_equal(get_be16(w->dram + offset), guard);
    assert_int_equal(get_be16(w->dram + offset + 2), app);
    assert_int_equal(get_be32(w->dram + offset + 4), ref);
}

/* ---- Insert, strip and pass. */

static void test_protect_guard_is_the_crc_of_the_standard(void **state)
{
    (void)state;
    memcpy(w->dram + HOST + 3, "123456789", 9);
    put_data(NAND_MOVE_ADD_GUARD, 0, HOST + 3, 4);
    put_data(NAND_MOVE_ADD_GUARD, UNIT + 1, HOST + 7, 5);
    put_protect(1, META, 0);
    expect_all_done();
    expect_information(META, CRC_123456789, APP, REF);
    assert_memory_equal(w->dram + UNIT, "\00056789\000", 7);
}

/* The blocks of 4 KiB, for a write with PRACT. */
static void insert_blocks(uint32_t block_bytes, uint8_t type)
{
    uint32_t blocks = 4096 / block_bytes;

    fill_data(HOST, 4096, (uint8_t)(block_bytes / 512 + type));
    memset(w->dram + UNIT, 0x5a, 4096);
    memset(w->dram + META, 0x5a, 64);
    for (uint32_t i = 0; i < blocks; i++) {
        uint32_t at = i * block_bytes;

        put_data(NAND_MOVE_ADD_GUARD, UNIT + at, HOST + at, block_bytes);
        put_protect(type, META + i * PI_LEN, 0);
    }
    expect_all_done();
    assert_memory_equal(w->dram + UNIT, w->dram + HOST, 4096);
    for (uint32_t i = 0; i < blocks; i++) {
        expect_information(
            META + i * PI_LEN,
            crc_of(w->dram + HOST + (size_t)i * block_bytes, block_bytes), APP,
            REF);
    }
    for (uint32_t i = blocks * PI_LEN; i < 64; i++) {
        assert_int_equal(w->dram[META + i], 0x5a);
    }
}

/* Those blocks again, for a read with PRACT. */
static void strip_blocks(uint32_t block_bytes, uint8_t type)
{
    memset(w->dram + HOST, 0, 0x2000);
    for (uint32_t i = 0; i < 4096 / block_bytes; i++) {
        uint32_t at = i * block_bytes;

        put_data(NAND_MOVE_ADD_GUARD, HOST + at, UNIT + at, block_bytes);
        put_protect(type | ALL_CHECKS, 0, META + i * PI_LEN);
    }
    expect_all_done();
    assert_memory_equal(w->dram + UNIT, w->dram + HOST, 4096);
    assert_int_equal(w->dram[HOST + 4096], 0);
}

/* Those blocks again, as extended LBAs whose data is in two pieces each. */
static void pass_blocks(uint32_t block_bytes, uint8_t type)
{
    uint32_t stride = block_bytes + PI_LEN;

    for (uint32_t i = 0; i < 4096 / block_bytes; i++) {
        uint32_t at = i * block_bytes, to = HOST + i * stride;

        put_data(NAND_MOVE_ADD_GUARD, to, UNIT + at, 200);
        put_data(NAND_MOVE_ADD_GUARD, to + 200, UNIT + at + 200,
                 block_bytes - 200);
        put_protect(type | ALL_CHECKS, to + block_bytes, META + i * PI_LEN);
    }
    expect_all_done();
    for (uint32_t i = 0; i < 4096 / block_bytes; i++) {
        assert_memory_equal(w->dram + HOST + (size_t)i * stride,
                            w->dram + UNIT + (size_t)i * block_bytes,
                            block_bytes);
        assert_memory_equal(w->dram + HOST + (size_t)i * stride + block_bytes,
                            w->dram + META + (size_t)i * PI_LEN, PI_LEN);
    }
}

static void test_protect_inserts_strips_and_passes_blocks(void **state)
{
    (void)state;
    for (uint8_t type = 1; type <= 3; type++) {
        insert_blocks(512, type);
        strip_blocks(512, type);
        pass_blocks(512, type);
        insert_blocks(4096, type);
        strip_blocks(4096, type);
        pass_blocks(4096, type);
    }
}

/* A list may end in the middle of a block, and other moves may come between
 * those of a block. */
static void test_protect_block_may_be_in_several_lists(void **state)
{
    (void)state;
    fill_data(HOST, 512, 1);
    for (uint32_t at = 0; at < 512; at += 8) {
        uint32_t done;

        put_data(NAND_MOVE_COPY, META + 64, HOST + at, 8);
        put_data(NAND_MOVE_ADD_GUARD, UNIT + at, HOST + at, 8);
        put_data(NAND_MOVE_XOR, META + 64, HOST, 8);
        assert_int_equal(run_list(&done), NAND_MOVE_OK);
        assert_int_equal(done, 3);
    }
    put_protect(1, META, 0);
    expect_all_done();
    expect_information(META, crc_of(w->dram + HOST, 512), APP, REF);
}

/* ---- Checks. */

/* A good block of the host, with changes by the caller; then a second one. */
static uint32_t check_two_blocks(uint8_t flags, uint32_t *done)
{
    put_data(NAND_MOVE_ADD_GUARD, UNIT, HOST, 512);
    put_protect(flags, META, HOST + 512);
    put_data(NAND_MOVE_COPY, META + 8, HOST, 8);
    memset(w->dram + META, 0x5a, 16);
    return run_list(done);
}

static void put_good_block(void)
{
    fill_data(HOST, 512, 9);
    put_information(HOST + 512, crc_of(w->dram + HOST, 512), APP, REF);
}

static void test_protect_each_check_stops_the_list_with_its_status(void **state)
{
    static const struct {
        uint32_t byte; /* of the extended block that is wrong */
        uint8_t check;
        uint32_t status;
    } checks[] = {
        {0, NAND_MOVE_CHECK_GUARD, NAND_MOVE_BAD_GUARD},
        {511, NAND_MOVE_CHECK_GUARD, NAND_MOVE_BAD_GUARD},
        {512, NAND_MOVE_CHECK_GUARD, NAND_MOVE_BAD_GUARD},
        {513, NAND_MOVE_CHECK_GUARD, NAND_MOVE_BAD_GUARD},
        {514, NAND_MOVE_CHECK_APP, NAND_MOVE_BAD_APP_TAG},
        {515, NAND_MOVE_CHECK_APP, NAND_MOVE_BAD_APP_TAG},
        {516, NAND_MOVE_CHECK_REF, NAND_MOVE_BAD_REF_TAG},
        {519, NAND_MOVE_CHECK_REF, NAND_MOVE_BAD_REF_TAG},
    };

    (void)state;
    for (uint8_t type = 1; type <= 3; type++) {
        for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
            uint8_t others = (uint8_t)(ALL_CHECKS & ~checks[i].check);
            uint32_t done;

            put_good_block();
            assert_int_equal(check_two_blocks(type | ALL_CHECKS, &done), 0);
            assert_memory_equal(w->dram + META, w->dram + HOST + 512, 8);
            w->dram[HOST + checks[i].byte] ^= 1;
            assert_int_equal(check_two_blocks(type | checks[i].check, &done),
                             checks[i].status);
            assert_int_equal(done, 1); /* the PROTECT is move number 1 */
            assert_int_equal(w->dram[META], 0x5a);
            assert_int_equal(w->dram[META + 8], 0x5a);
            assert_int_equal(get_le32(w->dram + LIST + NAND_MOVE_GUARD), 0);
            assert_int_equal(check_two_blocks(type | others, &done), 0);
            assert_int_equal(done, 3);
        }
    }
}

static void test_protect_checks_come_in_the_order_of_the_fields(void **state)
{
    uint32_t done;

    (void)state;
    put_good_block();
    memset(w->dram + HOST + 512, 0x11, 8);
    assert_int_equal(check_two_blocks(1 | ALL_CHECKS, &done),
                     NAND_MOVE_BAD_GUARD);
    assert_int_equal(
        check_two_blocks(1 | NAND_MOVE_CHECK_APP | NAND_MOVE_CHECK_REF, &done),
        NAND_MOVE_BAD_APP_TAG);
    assert_int_equal(check_two_blocks(1 | NAND_MOVE_CHECK_REF, &done),
                     NAND_MOVE_BAD_REF_TAG);
}

static void test_protect_the_mask_chooses_bits_of_the_application_tag(
    void **state)
{
    (void)state;
    for (uint32_t mask = 0; mask <= 0xffff; mask += 0xff) {
        uint32_t done;
        uint8_t *move;

        put_good_block();
        put_be16(w->dram + HOST + 514, APP ^ 0x0100);
        move = put_protect(1 | NAND_MOVE_CHECK_APP, 0, HOST + 512);
        put_le16(move + NAND_MOVE_APP_MASK, (uint16_t)mask);
        assert_int_equal(run_list(&done),
                         mask & 0x0100 ? NAND_MOVE_BAD_APP_TAG : NAND_MOVE_OK);
    }
}

static void test_protect_escape_values_switch_the_checks_off(void **state)
{
    static const struct {
        uint16_t app;
        uint32_t ref;
        bool is_escaped[4]; /* by type */
    } tags[] = {
        {0xffff, 5, {false, true, true, false}},
        {0xffff, UINT32_MAX, {false, true, true, true}},
        {0xfffe, UINT32_MAX, {false, false, false, false}},
        {0xffff, UINT32_MAX - 1, {false, true, true, false}},
    };

    (void)state;
    for (uint8_t type = 1; type <= 3; type++) {
        for (size_t i = 0; i < ARRAY_LEN(tags); i++) {
            uint32_t done;

            fill_data(HOST, 512, 9);
            put_information(HOST + 512, 0, tags[i].app, tags[i].ref);
            assert_int_equal(check_two_blocks(type | ALL_CHECKS, &done),
                             tags[i].is_escaped[type] ? NAND_MOVE_OK
                                                      : NAND_MOVE_BAD_GUARD);
        }
    }
}

/* After a block that failed, the rest of the list can be done. */
static void test_protect_the_next_block_has_a_new_guard(void **state)
{
    uint32_t done;

    (void)state;
    put_good_block();
    w->dram[HOST] ^= 1;
    assert_int_equal(check_two_blocks(1 | ALL_CHECKS, &done),
                     NAND_MOVE_BAD_GUARD);
    put_good_block();
    assert_int_equal(check_two_blocks(1 | ALL_CHECKS, &done), NAND_MOVE_OK);
}

/* ---- Moves that are refused. */

static void test_protect_refuses_a_bad_form_and_changes_nothing(void **state)
{
    static const struct {
        uint8_t flags;
        uint32_t to, from;
    } bad[] = {
        {0, META, 0},                   /* no type */
        {NAND_MOVE_CHECK_REF, 0, META}, /* no type */
        {1 | 0x04, META, 0},            /* flags that do not exist */
        {1 | 0x08, META, 0},
        {1 | 0x80, META, 0},
        {1, 0, 0}, /* neither source nor target */
        {1, DRAM_END - 4, 0},
        {1, META, DRAM_END - 4},
        {1, 0, DRAM_END},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint32_t done;

        fill_data(HOST, 512, 3);
        memset(w->dram + META, 0x5a, 8);
        put_data(NAND_MOVE_ADD_GUARD, 0, HOST, 512);
        put_protect(bad[i].flags, bad[i].to, bad[i].from);
        assert_int_equal(run_list(&done), NAND_MOVE_REFUSED);
        assert_int_equal(done, 1);
        assert_int_equal(w->dram[META], 0x5a);
        /* The guard is kept, so that the list can go on. */
        put_protect(1, META, 0);
        expect_all_done();
        expect_information(META, crc_of(w->dram + HOST, 512), APP, REF);
    }
}

static void test_protect_a_refused_part_is_not_in_the_guard(void **state)
{
    uint32_t done;

    (void)state;
    fill_data(HOST, 512, 4);
    put_data(NAND_MOVE_ADD_GUARD, UNIT, HOST, 256);
    put_data(NAND_MOVE_ADD_GUARD, DRAM_END - 8, HOST + 256, 256);
    assert_int_equal(run_list(&done), NAND_MOVE_REFUSED);
    assert_int_equal(done, 1);
    put_data(NAND_MOVE_ADD_GUARD, UNIT + 256, HOST + 256, 256);
    put_protect(1, META, 0);
    expect_all_done();
    expect_information(META, crc_of(w->dram + HOST, 512), APP, REF);
    assert_memory_equal(w->dram + UNIT, w->dram + HOST, 512);
}
