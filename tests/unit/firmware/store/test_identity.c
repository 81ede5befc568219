/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/store/identity.h"
#include "lib/bytes.h"
#include "lib/crc32.h"

#include <string.h>

static const struct identity sample = {
    .serial = "ESSD0123456789AB",
    .model = "essd",
    .mac = {{2, 0xe5, 0x5d, 1, 2, 0}, [7] = {2, 0xe5, 0x5d, 1, 2, 7}},
    .ca_guid = {0, 0xe5, 0x5d, 0xff, 0xfe, 1, 2, 0},
    .uuid = {0xaa, [6] = 0x4b, [8] = 0x8c, [15] = 0x55},
    .nguid = {0xbb, [11] = 0x77},
    .subsystem_nqn = "testsubsystem",
    .capacity_bytes = UINT64_C(0x0102030405060000),
};

static void emit_sample(uint8_t *buf)
{
    memset(buf, 0xa5, IDENTITY_LEN);
    identity_emit(&sample, buf);
}

/* Give a changed block a good CRC, so that only the change is checked. */
static void seal_block(uint8_t *buf)
{
    put_le32(buf + IDENTITY_LEN - 4, crc32_update(0, buf, IDENTITY_LEN - 4));
}

static void test_identity_survives_the_round_trip(void **state)
{
    uint8_t buf[IDENTITY_LEN];
    struct identity id;

    (void)state;
    emit_sample(buf);
    assert_true(identity_parse(&id, buf, sizeof(buf)));
    assert_memory_equal(&id, &sample, sizeof(id));
}

static void test_the_capacity_is_at_offset_384_in_little_endian(void **state)
{
    static const uint8_t golden[10] = {0, 0, 6, 5, 4, 3, 2, 1, 0, 0};
    uint8_t buf[IDENTITY_LEN];

    (void)state;
    emit_sample(buf);
    assert_memory_equal(buf + 384, golden, sizeof(golden));
}

static void test_identity_accepts_texts_of_full_length(void **state)
{
    uint8_t buf[IDENTITY_LEN];
    struct identity full = sample;
    struct identity id;

    (void)state;
    memset(full.serial, 's', IDENTITY_SERIAL_LEN);
    memset(full.model, 'm', IDENTITY_MODEL_LEN);
    memset(full.subsystem_nqn, 'n', IDENTITY_NQN_LEN);
    identity_emit(&full, buf);
    assert_true(identity_parse(&id, buf, sizeof(buf)));
    assert_memory_equal(&id, &full, sizeof(id));
}

static void test_identity_refuses_every_truncation(void **state)
{
    uint8_t buf[IDENTITY_LEN];
    struct identity id;

    (void)state;
    emit_sample(buf);
    for (size_t len = 0; len < sizeof(buf); len++) {
        assert_false(identity_parse(&id, buf, len));
    }
}

static void test_identity_refuses_every_bit_flip(void **state)
{
    uint8_t buf[IDENTITY_LEN];
    struct identity id;

    (void)state;
    emit_sample(buf);
    for (size_t bit = 0; bit < 8 * sizeof(buf); bit++) {
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(identity_parse(&id, buf, sizeof(buf)));
        buf[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void test_identity_refuses_wrong_values_with_a_good_crc(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } row[] = {
        {8, 2},     /* version */
        {10, 0},    /* length */
        {12, 0},    /* empty serial number */
        {13, '\n'}, /* not printable */
        {31, 'x'},  /* after the end of the text */
        {32, 0xe9}, /* not ASCII */
        {160, 0},   /* empty NQN */
        {383, 'x'}, /* NQN without an end */
    };
    uint8_t buf[IDENTITY_LEN];
    struct identity id;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        emit_sample(buf);
        buf[row[i].at] = row[i].value;
        seal_block(buf);
        assert_false(identity_parse(&id, buf, sizeof(buf)));
    }
}

static void test_each_namespace_has_its_own_identifiers(void **state)
{
    uint8_t id[16];

    (void)state;
    identity_namespace_uuid(&sample, 0x01020304, id);
    assert_memory_equal(id, sample.uuid, 12);
    assert_memory_equal(id + 12, "\1\2\3\x51", 4);
    identity_namespace_nguid(&sample, 128, id);
    assert_memory_equal(id, sample.nguid, 12);
    assert_memory_equal(id + 12, "\0\0\0\x80", 4);
}
