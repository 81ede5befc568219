/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of TLS 1.3 in the engine: docs/hardware/toe.md, section 4.3. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/toe/records.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum { GOT = 1 << 17, RECORD = RECORD_HEADER_LEN + RECORD_CIPHER_MAX + 64 };

struct bed {
    struct records_tx tx;
    struct records_rx rx;
    struct records_sink sink;
    uint8_t got[GOT];
    uint32_t len, consumed;
    uint8_t record[RECORD];
};

static const uint8_t key_of[2][32] = {{1, 2, 3}, {9, 8, 7}};
static const uint8_t iv[RECORD_IV_LEN] = {4, 5, 6};

static void deliver_bytes(void *ctx, const uint8_t *data, uint32_t len)
{
    struct bed *bed = ctx;

    assert_true(bed->len + len <= GOT);
    memcpy(bed->got + bed->len, data, len);
    bed->len += len;
}

static void consume_bytes(void *ctx, uint32_t len)
{
    ((struct bed *)ctx)->consumed += len;
}

static void begin_half(struct record_half *half, unsigned int key, size_t len)
{
    record_half_begin(half, &record_gcm, key_of[key], len, iv, 0);
}

static struct bed *bed_new(size_t key_len)
{
    struct bed *bed = calloc(1, sizeof(*bed));

    assert_non_null(bed);
    bed->sink = (struct records_sink){bed, deliver_bytes, consume_bytes};
    bed->rx.alert = RECORD_FINE;
    begin_half(&bed->tx.half, 0, key_len);
    begin_half(&bed->rx.half, 0, key_len);
    return bed;
}

/* Make a record.  @return its length; it is at the end of tx.bytes */
static uint32_t seal_content(struct bed *bed, enum record_type type,
                             const void *data, uint32_t len)
{
    memcpy(bed->record + RECORD_HEADER_LEN, data, len);
    records_seal(&bed->tx, &record_gcm, type, bed->record, len);
    return RECORD_HEADER_LEN + len + RECORD_OVERHEAD;
}

/* Encrypt content that no sealing makes: padding, and too much. */
static uint32_t craft_record(struct bed *bed, const uint8_t *inner,
                             uint32_t len)
{
    uint8_t nonce[RECORD_IV_LEN];

    memcpy(nonce, iv, sizeof(nonce));
    nonce[RECORD_IV_LEN - 1] ^= (uint8_t)bed->tx.half.sequence++;
    bed->record[0] = RECORD_DATA;
    put_be16(bed->record + 1, 0x0303);
    put_be16(bed->record + 3, (uint16_t)(len + RECORD_TAG_LEN));
    memcpy(bed->record + RECORD_HEADER_LEN, inner, len);
    record_gcm.seal(&bed->tx.half.key, nonce, bed->record, RECORD_HEADER_LEN,
                    bed->record + RECORD_HEADER_LEN, len,
                    bed->record + RECORD_HEADER_LEN + len);
    return RECORD_HEADER_LEN + len + RECORD_TAG_LEN;
}

static void take_bytes(struct bed *bed, const uint8_t *data, uint32_t len)
{
    records_take(&bed->rx, &record_gcm, &bed->sink, data, len);
}

static void test_a_record_is_handed_on_only_when_it_is_whole(void **state)
{
    static const size_t key_lens[] = {16, 32};

    (void)state;
    for (unsigned int k = 0; k < ARRAY_LEN(key_lens); k++) {
        struct bed *bed = bed_new(key_lens[k]);
        uint32_t len = seal_content(bed, RECORD_DATA, "hello", 5);

        assert_memory_equal(bed->record, "\x17\x03\x03\x00\x16", 5);
        for (uint32_t at = 0; at < len; at++) {
            assert_int_equal(bed->len, 0);
            take_bytes(bed, bed->record + at, 1);
        }
        assert_int_equal(bed->len, 5);
        assert_memory_equal(bed->got, "hello", 5);
        assert_int_equal(bed->consumed, len - 5);
        assert_int_equal(bed->rx.have, 0);
        free(bed);
    }
}

static void test_a_changed_bit_ends_the_stream(void **state)
{
    (void)state;
    for (uint32_t at = 0; at < RECORD_HEADER_LEN + 5 + RECORD_OVERHEAD; at++) {
        struct bed *bed = bed_new(16);
        uint32_t len = seal_content(bed, RECORD_DATA, "hello", 5);
        uint8_t want = RECORD_BAD_MAC;

        if (at == 2 || at == 3 || at == 4) {
            /* The minor version is only authenticated; with another length the
             * record ends elsewhere. */
            want = at == 3 ? RECORD_FINE : RECORD_BAD_MAC;
        } else if (at < 2) {
            want = at == 0 ? RECORD_UNEXPECTED : RECORD_VERSION;
        }
        bed->record[at] ^= at == 4 ? 2 : 4;
        take_bytes(bed, bed->record, len);
        assert_int_equal(bed->rx.alert, want);
        assert_int_equal(bed->len, 0);
        if (want != RECORD_FINE) {
            take_bytes(bed, bed->record, len); /* all that follows is dropped */
            assert_int_equal(bed->consumed, 2 * len);
            assert_int_equal(bed->len, 0);
        }
        free(bed);
    }
}

static void test_a_replayed_record_is_refused(void **state)
{
    struct bed *bed = bed_new(16);
    uint32_t len = seal_content(bed, RECORD_DATA, "hello", 5);

    (void)state;
    take_bytes(bed, bed->record, len);
    take_bytes(bed, bed->record, len);
    assert_int_equal(bed->rx.alert, RECORD_BAD_MAC);
    assert_int_equal(bed->len, 5);
    free(bed);
}

static void test_lengths_at_the_limits(void **state)
{
    /* Of the content, and what its refusal is. */
    static const struct {
        uint32_t data, padding;
        uint8_t alert;
    } rows[] = {
        {0, 0, RECORD_FINE},
        {0, 100, RECORD_FINE},
        {RECORD_PLAIN_MAX, 0, RECORD_FINE},
        {RECORD_PLAIN_MAX + 1, 0, RECORD_OVERFLOW},
        {RECORD_PLAIN_MAX, 239, RECORD_FINE},
    };
    uint8_t *inner = calloc(1, RECORD);

    (void)state;
    assert_non_null(inner);
    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed *bed = bed_new(16);
        uint32_t len;

        memset(inner, 'x', RECORD);
        inner[rows[i].data] = RECORD_DATA;
        memset(inner + rows[i].data + 1, 0, rows[i].padding);
        len = craft_record(bed, inner, rows[i].data + 1 + rows[i].padding);
        take_bytes(bed, bed->record, len);
        assert_int_equal(bed->rx.alert, rows[i].alert);
        assert_int_equal(bed->len,
                         rows[i].alert == RECORD_FINE ? rows[i].data : 0);
        free(bed);
    }
    free(inner);
}

/* RFC 8446 section 5.4. */
static void test_padding_without_a_type_is_refused(void **state)
{
    static const uint8_t zeroes[40];
    struct bed *bed = bed_new(16);

    (void)state;
    take_bytes(bed, bed->record, craft_record(bed, zeroes, sizeof(zeroes)));
    assert_int_equal(bed->rx.alert, RECORD_UNEXPECTED);
    free(bed);
}

static void test_a_length_is_refused_before_the_record_is_there(void **state)
{
    static const struct {
        uint8_t header[RECORD_HEADER_LEN];
        uint8_t alert;
    } rows[] = {
        {{23, 3, 3, 0x41, 0x00}, RECORD_FINE},     /* 2^14 + 256 */
        {{23, 3, 3, 0x41, 0x01}, RECORD_OVERFLOW}, /* one more */
        {{23, 3, 3, 0, 17}, RECORD_FINE},
        {{23, 3, 3, 0, 16}, RECORD_BAD_MAC},
        {{23, 3, 3, 0, 0}, RECORD_BAD_MAC},
        {{20, 3, 3, 0, 1}, RECORD_UNEXPECTED},
    };

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed *bed = bed_new(16);

        take_bytes(bed, rows[i].header, RECORD_HEADER_LEN);
        assert_int_equal(bed->rx.alert, rows[i].alert);
        free(bed);
    }
}

/* What follows a record without data waits for the next key. */
static void test_other_records_hold_the_stream(void **state)
{
    struct bed *bed = bed_new(16);
    uint8_t *stream = calloc(1, RECORD);
    uint32_t first = seal_content(bed, RECORD_HANDSHAKE, "\x18\0\0\1\0", 5);
    uint32_t len;

    (void)state;
    assert_non_null(stream);
    memcpy(stream, bed->record, first);
    begin_half(&bed->tx.half, 1, 32);
    len = first + seal_content(bed, RECORD_DATA, "next", 4);
    memcpy(stream + first, bed->record, len - first);
    take_bytes(bed, stream, len);
    assert_true(bed->rx.is_held);
    assert_int_equal(bed->rx.note.type, RECORD_HANDSHAKE);
    assert_int_equal(bed->rx.note.len_bytes, 5);
    assert_memory_equal(bed->rx.note.head, "\x18\0\0\1\0\0\0\0", 8);
    assert_int_equal(bed->len, 0);
    assert_int_equal(bed->consumed, first);
    begin_half(&bed->rx.half, 1, 32);
    records_resume(&bed->rx, &record_gcm, &bed->sink);
    assert_false(bed->rx.is_held);
    assert_int_equal(bed->len, 4);
    assert_memory_equal(bed->got, "next", 4);
    free(stream);
    free(bed);
}

static void test_what_is_sealed_wraps(void **state)
{
    struct bed *bed = bed_new(16);
    uint8_t *data = calloc(1, RECORD_PLAIN_MAX);
    uint64_t taken = 0;

    (void)state;
    assert_non_null(data);
    for (unsigned int i = 0; i < 20; i++) {
        uint32_t len = MIN(records_room(&bed->tx), 5000 + i);

        memset(data, (int)i, len);
        (void)seal_content(bed, RECORD_DATA, data, len);
        while (taken != bed->tx.made) {
            uint32_t at = (uint32_t)(taken++ % RECORDS_TX_LEN);

            take_bytes(bed, bed->tx.bytes + at, 1);
        }
        assert_int_equal(bed->rx.alert, RECORD_FINE);
        assert_int_equal(bed->got[bed->len - 1], i);
        if (i % 3 == 0) {
            bed->tx.acked = bed->tx.made;
        }
    }
    free(data);
    free(bed);
}

static void test_room_ends_with_what_is_not_acknowledged(void **state)
{
    struct bed *bed = bed_new(16);
    uint8_t *data = calloc(1, RECORD_PLAIN_MAX);
    uint32_t room;

    (void)state;
    assert_non_null(data);
    while ((room = records_room(&bed->tx)) != 0) {
        (void)seal_content(bed, RECORD_DATA, data, room);
    }
    assert_true(bed->tx.made <= RECORDS_TX_LEN);
    assert_true(bed->tx.made + RECORD_HEADER_LEN + RECORD_OVERHEAD >=
                RECORDS_TX_LEN);
    bed->tx.acked = bed->tx.made;
    assert_int_equal(records_room(&bed->tx), RECORD_PLAIN_MAX);
    free(data);
    free(bed);
}

static void test_a_key_is_used_up(void **state)
{
    struct bed *bed = bed_new(16);
    uint32_t len = seal_content(bed, RECORD_DATA, "hello", 5);

    (void)state;
    bed->rx.half.blocks = UINT64_C(23726566) * 1024 - 1;
    assert_false(record_half_is_spent(&bed->rx.half));
    bed->rx.half.blocks++;
    assert_true(record_half_is_spent(&bed->rx.half));
    take_bytes(bed, bed->record, len);
    assert_int_equal(bed->rx.alert, RECORD_INTERNAL);
    assert_int_equal(bed->len, 0);
    free(bed);
}
