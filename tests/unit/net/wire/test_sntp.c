/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "net/wire/sntp.h"
#include "tests/unit/net/wire/golden_services.h"

static void test_sntp_is_parsed_and_emitted(void **state)
{
    DIRTY(out, SNTP_LEN);
    struct sntp sntp;

    (void)state;
    assert_true(sntp_parse(&sntp, sntp_golden, sizeof(sntp_golden)));
    assert_int_equal(sntp.leap, 0);
    assert_int_equal(sntp.version, 4);
    assert_int_equal(sntp.mode, SNTP_SERVER);
    assert_int_equal(sntp.stratum, 2);
    assert_int_equal(sntp.poll, 6);
    assert_int_equal(sntp.precision, -23);
    assert_int_equal(sntp.root_delay, 0x100);
    assert_int_equal(sntp.root_dispersion, 0x200);
    assert_int_equal(sntp.reference_id, 0x0a0000fe);
    assert_int_equal(sntp.originate_time, 0x0102030405060708);
    assert_int_equal(sntp_epoch_ms(sntp.transmit_time), 1700000000500);
    sntp_emit(&sntp, out);
    assert_memory_equal(out, sntp_golden, SNTP_LEN);
}

static void test_sntp_parse_refuses_every_truncation(void **state)
{
    struct sntp sntp;

    (void)state;
    ASSERT_TRUNCATIONS_REFUSED(sntp_parse, &sntp, sntp_golden, SNTP_LEN);
}

static void test_sntp_time_goes_on_after_2036(void **state)
{
    (void)state;
    assert_int_equal(sntp_epoch_ms(0xffffffff00000000), 2085978495000);
    assert_int_equal(sntp_epoch_ms(0x0000000080000000), 2085978496500);
}
