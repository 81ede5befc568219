/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/bth.h"
#include "net/wire/roce_ext.h"

static const uint8_t bytes16[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
                                    0xcd, 0xef, 0x10, 0x32, 0x54, 0x76,
                                    0x98, 0xba, 0xdc, 0xfe};

static void test_reth_is_parsed_and_emitted(void **state)
{
    DIRTY(out, RETH_LEN);
    struct reth reth;

    (void)state;
    assert_true(reth_parse(&reth, bytes16, sizeof(bytes16)));
    assert_true(reth.va == 0x0123456789abcdef);
    assert_int_equal(reth.rkey, 0x10325476);
    assert_int_equal(reth.dma_len_bytes, 0x98badcfe);
    reth_emit(&reth, out);
    assert_memory_equal(out, bytes16, RETH_LEN);
    ASSERT_TRUNCATIONS_REFUSED(reth_parse, &reth, bytes16, RETH_LEN);
}

static void test_aeth_is_parsed_and_emitted(void **state)
{
    const uint8_t *golden = bth_and_aeth + BTH_LEN;
    DIRTY(out, AETH_LEN);
    struct aeth aeth;

    (void)state;
    assert_true(aeth_parse(&aeth, golden, AETH_LEN));
    assert_int_equal(aeth.kind, AETH_NAK);
    assert_int_equal(aeth.value, 10);
    assert_int_equal(aeth.msn, 0x234567);
    aeth_emit(&aeth, out);
    assert_memory_equal(out, golden, AETH_LEN);
    ASSERT_TRUNCATIONS_REFUSED(aeth_parse, &aeth, golden, AETH_LEN);
}

static void test_aeth_syndromes_match_the_specification(void **state)
{
    static const struct {
        uint8_t syndrome;
        struct aeth aeth;
    } rows[] = {
        {0x1f, {.kind = AETH_ACK, .value = AETH_CREDIT_UNLIMITED}},
        {0x20, {.kind = AETH_RNR_NAK, .value = 0}},
        {0x3f, {.kind = AETH_RNR_NAK, .value = 31}},
        {0x60, {.kind = AETH_NAK, .value = AETH_NAK_PSN_SEQUENCE}},
        {0x61, {.kind = AETH_NAK, .value = AETH_NAK_INVALID_REQUEST}},
        {0x62, {.kind = AETH_NAK, .value = AETH_NAK_REMOTE_ACCESS}},
        {0x63, {.kind = AETH_NAK, .value = AETH_NAK_REMOTE_OPERATION}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        DIRTY(out, AETH_LEN);
        struct aeth aeth;

        aeth_emit(&rows[i].aeth, out);
        assert_int_equal(out[AETH_SYNDROME], rows[i].syndrome);
        assert_true(aeth_parse(&aeth, out, sizeof(out)));
        assert_int_equal(aeth.kind, rows[i].aeth.kind);
        assert_int_equal(aeth.value, rows[i].aeth.value);
    }
}

static void test_aeth_parse_refuses_the_reserved_bit(void **state)
{
    const uint8_t buf[AETH_LEN] = {0x80};
    struct aeth aeth;

    (void)state;
    assert_false(aeth_parse(&aeth, buf, sizeof(buf)));
}

static void test_deth_is_parsed_and_emitted(void **state)
{
    static const uint8_t golden[] = {0x80, 0x01, 0x00, 0x00,
                                     0x00, 0xab, 0xcd, 0xef};
    DIRTY(out, DETH_LEN);
    struct deth deth;

    (void)state;
    assert_true(deth_parse(&deth, golden, sizeof(golden)));
    assert_int_equal(deth.qkey, 0x80010000);
    assert_int_equal(deth.src_qp, 0xabcdef);
    deth_emit(&deth, out);
    assert_memory_equal(out, golden, DETH_LEN);
    ASSERT_TRUNCATIONS_REFUSED(deth_parse, &deth, golden, DETH_LEN);
}

static void test_ieth_and_immdt_are_parsed_and_emitted(void **state)
{
    DIRTY(out, IETH_LEN + IMMDT_LEN);
    uint32_t rkey, data;

    (void)state;
    assert_true(ieth_parse(&rkey, bytes16, sizeof(bytes16)));
    assert_true(immdt_parse(&data, bytes16 + 4, sizeof(bytes16) - 4));
    assert_int_equal(rkey, 0x01234567);
    assert_int_equal(data, 0x89abcdef);
    ieth_emit(rkey, out);
    immdt_emit(data, out + IETH_LEN);
    assert_memory_equal(out, bytes16, sizeof(out));
    ASSERT_TRUNCATIONS_REFUSED(ieth_parse, &rkey, bytes16, IETH_LEN);
    ASSERT_TRUNCATIONS_REFUSED(immdt_parse, &data, bytes16, IMMDT_LEN);
}

/* IBTA Vol 1 table 45, in units of 10 microseconds. */
static void test_rnr_timer_us_matches_the_specification(void **state)
{
    static const uint32_t table[32] = {
        65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    };

    (void)state;
    for (uint8_t code = 0; code < 32; code++) {
        assert_int_equal(rnr_timer_us(code), table[code] * 10);
    }
}
