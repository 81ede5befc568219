/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/mld.h"

/* scapy has made all three. */

/* From fe80::e5:5dff:fe00:10 to ff02::16. */
static const uint8_t report[] = {
    0x8f, 0x00, 0x14, 0x04, 0x00, 0x00, 0x00, 0x01, 0x04, 0x00,
    0x00, 0x00, 0xff, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x01, 0xff, 0x00, 0x00, 0x10,
};

/* A query for all groups, with a response time of 10 s. */
static const uint8_t query_v2[] = {
    0x82, 0x00, 0x59, 0x13, 0x27, 0x10, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

/* A query for one group, with a response time of 1 s. */
static const uint8_t query_v1[] = {
    0x82, 0x00, 0x7f, 0x19, 0x03, 0xe8, 0x00, 0x00, 0xff, 0x02, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xff, 0x00, 0x00, 0x10,
};

static const struct ip_addr group = {
    {0xff, 0x02, [11] = 1, [12] = 0xff, [15] = 0x10}};

static void test_mld_report_has_the_bytes_of_scapy(void **state)
{
    const struct ip_addr src = {
        {0xfe, 0x80, [9] = 0xe5, 0x5d, 0xff, 0xfe, 0, 0, 0x10}};
    const struct ip_addr dst = {{0xff, 0x02, [15] = 0x16}};
    DIRTY(out, sizeof(report));

    (void)state;
    mld_report_emit(MLD_CHANGE_TO_EXCLUDE, &group, 1, &src, &dst, out);
    assert_int_equal(mld_report_len(1), sizeof(report));
    assert_memory_equal(out, report, sizeof(report));
}

static void test_mld_parse_reads_queries_of_both_versions(void **state)
{
    struct mld_query query;

    (void)state;
    assert_true(mld_query_parse(&query, query_v2, sizeof(query_v2)));
    assert_true(ip_addr_is_unspecified(&query.group));
    assert_int_equal(query.max_response_ms, 10000);
    assert_true(mld_query_parse(&query, query_v1, sizeof(query_v1)));
    assert_true(ip_addr_equal(&query.group, &group));
    assert_int_equal(query.max_response_ms, 1000);
}

static void test_mld_query_of_every_other_length_is_refused(void **state)
{
    struct mld_query query;

    (void)state;
    for (size_t len = 0; len < MLD_QUERY_V2_LEN; len++) {
        uint8_t *copy = malloc(len != 0 ? len : 1);

        assert_non_null(copy);
        memcpy(copy, query_v2, len);
        assert_int_equal(mld_query_parse(&query, copy, len),
                         len == MLD_QUERY_V1_LEN);
        free(copy);
    }
    assert_false(mld_query_parse(&query, report, sizeof(report)));
}

/* RFC 3810 section 5.1.3; version 1 has milliseconds in binary. */
static void test_mld_long_times_are_floating_point(void **state)
{
    static const struct {
        uint16_t code;
        uint32_t ms;
    } codes[] = {
        {0, 0},          {1, 1},          {0x7fff, 32767},
        {0x8000, 32768}, {0x8001, 32776}, {0xffff, 8387584},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        uint8_t buf[sizeof(query_v2)];
        struct mld_query query;

        memcpy(buf, query_v2, sizeof(buf));
        buf[MLD_MAX_RESPONSE] = (uint8_t)(codes[i].code >> 8);
        buf[MLD_MAX_RESPONSE + 1] = (uint8_t)codes[i].code;
        assert_true(mld_query_parse(&query, buf, sizeof(buf)));
        assert_int_equal(query.max_response_ms, codes[i].ms);
        assert_true(mld_query_parse(&query, buf, MLD_QUERY_V1_LEN));
        assert_int_equal(query.max_response_ms, codes[i].code);
    }
}
