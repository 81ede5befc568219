/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames of AoE.  The bytes are from a capture of Linux 6.12's driver (aoe
 * version 85) and vblade 25, without the Ethernet header.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tests/test_fixture.h"

#include <string.h>

#include "nvmeof/aoe/aoe_wire.h"

/* Frame 1: vblade announces its device when it starts. */
static const uint8_t announcement[] = {
    0x08, 0x00, 0x00, 0x01, 0x02, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x10, 0x40, 0x19, 0x02, 0x10, 0x00, 0x00,
};
/* Frame 33: the driver asks for all devices. */
static const uint8_t discovery[] = {
    0x10, 0x00, 0xff, 0xff, 0xff, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
/* Frame 2: the driver wants to know the device. */
static const uint8_t identify[] = {
    0x10, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x01, 0x56, 0x66, 0x00,
    0x00, 0x01, 0xec, 0x00, 0x00, 0x00, 0xa0, 0x00, 0x00, 0x00, 0x00,
};
/* Frame 38: a write of two sectors, without its data; frame 42 answers. */
static const uint8_t write_ext[] = {
    0x10, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x10, 0x5d, 0xc8, 0x41,
    0x00, 0x02, 0x34, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t written[] = {
    0x18, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x10, 0x5d, 0xc8, 0x41,
    0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

static void test_headers_are_parsed(void **state)
{
    struct aoe_header header;

    (void)state;
    assert_true(aoe_header_parse(&header, announcement, sizeof(announcement)));
    assert_int_equal(header.version, 0); /* vblade leaves it out here */
    assert_true(header.is_response);
    assert_int_equal(header.error, AOE_ERROR_NONE);
    assert_int_equal(header.major, 1);
    assert_int_equal(header.minor, 2);
    assert_int_equal(header.command, AOE_CONFIG);
    assert_int_equal(header.tag, 0);
    assert_true(aoe_header_parse(&header, discovery, sizeof(discovery)));
    assert_int_equal(header.version, AOE_VERSION);
    assert_false(header.is_response);
    assert_int_equal(header.major, AOE_MAJOR_ALL);
    assert_int_equal(header.minor, AOE_MINOR_ALL);
    assert_true(aoe_header_parse(&header, write_ext, sizeof(write_ext)));
    assert_int_equal(header.tag, 0x00105dc8);
}

static void test_registers_are_parsed(void **state)
{
    struct aoe_ata ata;

    (void)state;
    assert_true(aoe_ata_parse(&ata, identify + AOE_HEADER_LEN, AOE_ATA_LEN));
    assert_int_equal(ata.command, 0xec);
    assert_int_equal(ata.count, 1);
    assert_int_equal(ata.lba, 0xa0000000);
    assert_false(ata.is_lba48 || ata.is_write || ata.is_async || ata.is_device);
    assert_true(aoe_ata_parse(&ata, write_ext + AOE_HEADER_LEN, AOE_ATA_LEN));
    assert_int_equal(ata.command, 0x34);
    assert_int_equal(ata.count, 2);
    assert_true(ata.is_lba48 && ata.is_write);
    assert_int_equal(ata.lba, 0);
}

static void test_lbas_are_little_endian(void **state)
{
    uint8_t bytes[AOE_ATA_LEN] = {0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0};
    struct aoe_ata ata;

    (void)state;
    assert_true(aoe_ata_parse(&ata, bytes, sizeof(bytes)));
    assert_int_equal(ata.lba, 0x060504030201);
}

static void test_what_is_parsed_is_emitted_over_a_dirty_buffer(void **state)
{
    static const struct {
        const uint8_t *bytes;
        bool is_ata;
    } rows[] = {{announcement, false},
                {discovery, false},
                {identify, true},
                {write_ext, true},
                {written, true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const uint8_t *args = rows[i].bytes + AOE_HEADER_LEN;
        uint8_t buf[AOE_HEADER_LEN + AOE_ATA_LEN];
        struct aoe_header header;
        struct aoe_query query;
        struct aoe_ata ata;

        memset(buf, 0xa5, sizeof(buf));
        assert_true(aoe_header_parse(&header, rows[i].bytes, AOE_HEADER_LEN));
        aoe_header_emit(buf, &header);
        assert_memory_equal(buf, rows[i].bytes, AOE_HEADER_LEN);
        if (rows[i].is_ata) {
            assert_true(aoe_ata_parse(&ata, args, AOE_ATA_LEN));
            aoe_ata_emit(buf + AOE_HEADER_LEN, &ata);
            assert_memory_equal(buf + AOE_HEADER_LEN, args, AOE_ATA_LEN);
        } else {
            assert_true(aoe_query_parse(&query, args, AOE_CONFIG_LEN));
            aoe_query_emit(buf + AOE_HEADER_LEN, &query);
            buf[AOE_HEADER_LEN + AOE_CONFIG_COMMAND] &=
                header.is_response ? 0xff : 0x0f; /* requests have version 0 */
            assert_memory_equal(buf + AOE_HEADER_LEN, args, AOE_CONFIG_LEN);
        }
    }
}

static void test_an_error_sets_its_flag(void **state)
{
    const struct aoe_header refused = {
        .version = 1, .is_response = true, .error = AOE_ERROR_RESERVED};
    uint8_t buf[AOE_HEADER_LEN];
    struct aoe_header header;

    (void)state;
    aoe_header_emit(buf, &refused);
    assert_int_equal(buf[0], 0x1c);
    assert_int_equal(buf[1], 6);
    assert_true(aoe_header_parse(&header, buf, sizeof(buf)));
    assert_int_equal(header.error, AOE_ERROR_RESERVED);
    buf[0] = 0x18; /* without the flag, the byte says nothing */
    assert_true(aoe_header_parse(&header, buf, sizeof(buf)));
    assert_int_equal(header.error, AOE_ERROR_NONE);
}

static void test_truncated_frames_are_refused(void **state)
{
    struct aoe_header header;
    struct aoe_query query;
    struct aoe_ata ata;

    (void)state;
    for (size_t len = 0; len < AOE_HEADER_LEN; len++) {
        assert_false(aoe_header_parse(&header, identify, len));
    }
    for (size_t len = 0; len < AOE_ATA_LEN; len++) {
        assert_false(aoe_ata_parse(&ata, identify + AOE_HEADER_LEN, len));
    }
    for (size_t len = 0; len < AOE_CONFIG_LEN; len++) {
        assert_false(aoe_query_parse(&query, discovery + AOE_HEADER_LEN, len));
    }
}

static void test_a_string_has_to_fit(void **state)
{
    uint8_t bytes[AOE_CONFIG_LEN + AOE_STRING_MAX + 1] = {0};
    struct aoe_query query;

    (void)state;
    bytes[AOE_CONFIG_LENGTH + 1] = 5;
    assert_false(aoe_query_parse(&query, bytes, AOE_CONFIG_LEN + 4));
    assert_true(aoe_query_parse(&query, bytes, AOE_CONFIG_LEN + 5));
    assert_int_equal(query.length, 5);
    bytes[AOE_CONFIG_LENGTH] = AOE_STRING_MAX >> 8;
    bytes[AOE_CONFIG_LENGTH + 1] = 0;
    assert_true(aoe_query_parse(&query, bytes, sizeof(bytes)));
    bytes[AOE_CONFIG_LENGTH + 1] = 1;
    assert_false(aoe_query_parse(&query, bytes, sizeof(bytes)));
}
