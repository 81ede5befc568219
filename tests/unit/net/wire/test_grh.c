/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/grh.h"
#include "tests/unit/net/wire/golden_grh.h"

static void test_grh_is_parsed_and_emitted(void **state)
{
    static const struct ip_addr link_local = {{0xfe, 0x80, 0, 0, 0, 0, 0, 0,
                                               0x50, 0x54, 0, 0xff, 0xfe, 0x12,
                                               0x34, 0x56}};
    struct ip_addr v4 = ip_addr_from_v4(0x0a000001);
    DIRTY(out, GRH_LEN);
    struct grh grh;

    (void)state;
    assert_true(grh_parse(&grh, grh_golden, sizeof(grh_golden)));
    assert_true(ip_addr_equal(&grh.sgid, &v4));
    assert_true(ip_addr_equal(&grh.dgid, &link_local));
    assert_int_equal(grh.flow_label, 0x12345);
    assert_int_equal(grh.payload_len_bytes, 0x20);
    assert_int_equal(grh.traffic_class, 0x68);
    assert_int_equal(grh.hop_limit, 63);
    grh_emit(&grh, out);
    assert_memory_equal(out, grh_golden, GRH_LEN);
}

static void test_grh_parse_refuses_every_truncation(void **state)
{
    struct grh grh;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(grh_parse, &grh, grh_golden, sizeof(grh_golden));
}

static void test_grh_parse_refuses_other_headers(void **state)
{
    struct grh grh;
    uint8_t buf[sizeof(grh_golden)];

    (void)state;
    for (unsigned int version = 0; version < 16; version++) {
        memcpy(buf, grh_golden, sizeof(buf));
        buf[0] = (uint8_t)(version << 4 | 6);
        assert_int_equal(grh_parse(&grh, buf, sizeof(buf)), version == 6);
    }
    memcpy(buf, grh_golden, sizeof(buf));
    for (unsigned int next = 0; next < 256; next++) {
        buf[6] = (uint8_t)next;
        assert_int_equal(grh_parse(&grh, buf, sizeof(buf)), next == 0x1b);
    }
}
