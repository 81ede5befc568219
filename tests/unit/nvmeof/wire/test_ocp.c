/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OCP's log pages and its latency feature, byte by byte.  The offsets are those
 * that nvme-cli (plugins/ocp) and Windows (nvme.h) use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/bytes.h"
#include "nvmeof/wire/ocp.h"
#include "tests/test_fixture.h"

static void expect_zero(const uint8_t *buf, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (buf[i] != 0) {
            fail_msg("byte %zu is %02x", i, buf[i]);
        }
    }
}

static void test_the_error_recovery_page_has_its_bytes(void **state)
{
    /* 5A1983BA3DFD4DABAE3430FE2131D944h, little-endian */
    static const uint8_t guid[16] = {0x44, 0xd9, 0x31, 0x21, 0xfe, 0x30,
                                     0x34, 0xae, 0xab, 0x4d, 0xfd, 0x3d,
                                     0xba, 0x83, 0x19, 0x5a};
    uint8_t buf[512];

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    ocp_recovery_emit(buf, 0x1122334455667788);
    expect_zero(buf, 0, 3);
    assert_int_equal(buf[3], 1);
    assert_int_equal(get_le64(buf + 4), 0x1122334455667788);
    expect_zero(buf, 12, 494);
    assert_int_equal(get_le16(buf + 494), 2);
    assert_memory_equal(buf + 496, guid, sizeof(guid));
}

static void test_the_device_capabilities_page_has_its_bytes(void **state)
{
    /* B7053C914B58495D98C9E1D10D054297h, little-endian */
    static const uint8_t guid[16] = {0x97, 0x42, 0x05, 0x0d, 0xd1, 0xe1,
                                     0xc9, 0x98, 0x5d, 0x49, 0x58, 0x4b,
                                     0x91, 0x3c, 0x05, 0xb7};
    static uint8_t buf[4096];

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    ocp_capabilities_emit(buf, &(struct ocp_capabilities){.out_of_band = 5,
                                                          .write_zeroes = 7,
                                                          .sanitize = 0x1d,
                                                          .dataset = 3,
                                                          .fused = 1});
    expect_zero(buf, 0, 2);
    assert_int_equal(get_le16(buf + 2), 5);
    assert_int_equal(get_le16(buf + 4), 7);
    assert_int_equal(get_le16(buf + 6), 0x1d);
    assert_int_equal(get_le16(buf + 8), 3);
    assert_int_equal(get_le16(buf + 10), 0);
    assert_int_equal(get_le16(buf + 12), 1);
    expect_zero(buf, 14, 4078);
    assert_int_equal(get_le16(buf + 4078), 1);
    assert_memory_equal(buf + 4080, guid, sizeof(guid));
}

/* What `nvme ocp set-latency-monitor-feature` sends without options. */
static void make_default(uint8_t *buf)
{
    static const uint8_t head[] = {0xe0, 0x07, 0x05, 0x13, 0x1e, 0x2e, 0xff,
                                   0x0f, 0x0a, 0x00, 0x00, 0x00, 0x01};

    memset(buf, 0, 4096);
    memcpy(buf, head, sizeof(head));
}

static void test_the_latency_feature_is_parsed_and_emitted(void **state)
{
    static uint8_t in[4096], out[4096];
    struct latency_feature feature;

    (void)state;
    make_default(in);
    latency_feature_parse(&feature, in);
    assert_true(feature.settings.is_on);
    assert_int_equal(feature.settings.timer, 0x7e0);
    assert_int_equal(feature.settings.threshold[0], 5);
    assert_int_equal(feature.settings.threshold[3], 0x2e);
    assert_int_equal(feature.settings.keeps_largest, 0xfff);
    assert_int_equal(feature.settings.min_window, 10);
    assert_int_equal(feature.debug_triggers, 0);
    assert_false(feature.has_reserved);
    memset(out, 0xa5, sizeof(out));
    latency_feature_emit(out, &feature.settings);
    assert_memory_equal(out, in, sizeof(in));
    in[9] = 0x34;
    in[10] = 0x12;
    in[11] = 2;
    in[12] = 3;
    in[4095] = 1;
    latency_feature_parse(&feature, in);
    assert_int_equal(feature.debug_triggers, 0x1234);
    assert_int_equal(feature.discard, 2);
    assert_int_equal(feature.enable, 3);
    assert_false(feature.settings.is_on);
    assert_true(feature.has_reserved);
}

static void test_the_latency_page_has_its_bytes(void **state)
{
    /* 85D45E58D4E643709C6C84D08CC07A92h, little-endian */
    static const uint8_t guid[16] = {0x92, 0x7a, 0xc0, 0x8c, 0xd0, 0x84,
                                     0x6c, 0x9c, 0x70, 0x43, 0xe6, 0xd4,
                                     0x58, 0x5e, 0xd4, 0x85};
    struct latency_log log = {
        .settings = {.is_on = true,
                     .timer = 0x7e0,
                     .threshold = {1, 2, 3, 4},
                     .keeps_largest = 0x0abc,
                     .min_window = 9},
        .timer = 0x1234,
    };
    uint8_t buf[512];

    (void)state;
    log.active.count[0][LATENCY_READ] = 0x01020304;
    log.active.count[3][LATENCY_DEALLOCATE] = 5;
    log.active.stamp_ms[3][LATENCY_DEALLOCATE] = 6;
    log.active.stamp_ms[0][LATENCY_READ] = LATENCY_NO_STAMP;
    log.active.measured_ms[3][LATENCY_WRITE] = 7;
    log.active.measured_ms[0][LATENCY_READ] = 8;
    log.active.is_epoch = latency_bit(1, LATENCY_WRITE);
    log.fixed.count[1][LATENCY_WRITE] = 9;
    log.fixed.stamp_ms[2][LATENCY_READ] = 10;
    log.fixed.measured_ms[2][LATENCY_READ] = 11;
    log.fixed.is_epoch = latency_bit(3, LATENCY_DEALLOCATE);
    memset(buf, 0xa5, sizeof(buf));
    latency_log_emit(buf, &log);
    assert_int_equal(buf[0], 7);
    assert_int_equal(buf[1], 0);
    assert_int_equal(get_le16(buf + 2), 0x1234);
    assert_int_equal(get_le16(buf + 4), 0x7e0);
    assert_memory_equal(buf + 6, "\x01\x02\x03\x04", 4);
    assert_int_equal(get_le16(buf + 10), 0x0abc);
    assert_int_equal(buf[12], 9);
    expect_zero(buf, 13, 44);
    assert_int_equal(get_le32(buf + 0x20 + 12), 0x01020304);
    assert_int_equal(get_le32(buf + 0x20 + 3 * 16 + 4), 5);
    assert_int_equal(get_le64(buf + 0x60), 6);
    assert_int_equal(get_le64(buf + 0x60 + 11 * 8), UINT64_MAX);
    assert_int_equal(get_le16(buf + 0xc0 + 2), 7);
    assert_int_equal(get_le16(buf + 0xc0 + 11 * 2), 8);
    assert_int_equal(get_le16(buf + 0xd8), 1 << 4);
    expect_zero(buf, 0xda, 0xf0 + 16 + 8);
    assert_int_equal(get_le32(buf + 0xf0 + 16 + 8), 9);
    assert_int_equal(get_le64(buf + 0x130 + 5 * 8), 10);
    assert_int_equal(get_le16(buf + 0x190 + 5 * 2), 11);
    assert_int_equal(get_le16(buf + 0x1a8), 1 << 11);
    expect_zero(buf, 0x1aa, 0x1c4);
    assert_int_equal(get_le64(buf + 0x1c4), UINT64_MAX);
    expect_zero(buf, 0x1cc, 0x1ee);
    assert_int_equal(get_le16(buf + 0x1ee), 1);
    assert_memory_equal(buf + 0x1f0, guid, sizeof(guid));
    log.settings.is_on = false;
    latency_log_emit(buf, &log);
    assert_int_equal(buf[0], 6);
}

static void test_a_window_comes_back_as_it_was(void **state)
{
    struct latency_window in, out;
    uint8_t buf[LATENCY_WINDOW_LEN];

    (void)state;
    memset(&in, 0, sizeof(in));
    memset(&out, 0xa5, sizeof(out));
    for (unsigned int bucket = 0; bucket < LATENCY_BUCKETS; bucket++) {
        for (unsigned int kind = 0; kind < LATENCY_KINDS; kind++) {
            in.count[bucket][kind] = 0x10000u * (bucket + 1) + kind;
            in.stamp_ms[bucket][kind] = UINT64_MAX - 10 * bucket - kind;
            in.measured_ms[bucket][kind] = (uint16_t)(1000 * bucket + kind);
        }
    }
    in.is_epoch = 0x0a5a;
    memset(buf, 0xa5, sizeof(buf));
    latency_window_emit(buf, &in);
    latency_window_parse(&out, buf);
    assert_memory_equal(in.count, out.count, sizeof(in.count));
    assert_memory_equal(in.stamp_ms, out.stamp_ms, sizeof(in.stamp_ms));
    assert_memory_equal(in.measured_ms, out.measured_ms,
                        sizeof(in.measured_ms));
    assert_int_equal(in.is_epoch, out.is_epoch);
}

TEST_FIXTURE(NULL, NULL)
