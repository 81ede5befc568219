/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of NVMe/TCP PDUs that are followed: docs/hardware/toe.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hw-model/toe/pdu_follow.h"
#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "lib/random.h"
#include "lib/regfields.h"
#include "hw-model/regs/toe.h"
#include "tests/test_fixture.h"

enum {
    RING = 1 << 15,
    MEMORY = 1 << 16,
    STREAM = 1 << 15,
    HEADER_DIGEST = 1,
    DATA_DIGEST = 2,
    LAST = 4,
    CAPSULE = 4,
    H2C_DATA = 6,
    TTAG = 0x1234,
    CCCID = 7,
    OFFSET = 8192, /* of the R2T */
};

struct bed {
    struct pdu_places places;
    struct pdu_follow follow;
    uint8_t ring[RING];
    uint8_t memory[MEMORY];
    uint32_t published, consumed, taken;
    uint64_t lost;     /* address of a lost word; 0: none */
    bool is_ring_lost; /* the next bytes for the ring meet a lost word, which
                        * later ones overwrite as a whole */
    uint8_t digests;
    uint8_t stream[STREAM]; /* of the host */
    uint32_t length;
};

static bool store_bytes(void *ctx, uint32_t at, const uint8_t *data,
                        uint32_t len)
{
    struct bed *bed = ctx;

    assert_true(bed->published + at + len <= RING);
    if (bed->is_ring_lost) {
        bed->is_ring_lost = false;
        return false;
    }
    memcpy(bed->ring + bed->published + at, data, len);
    return true;
}

static bool place_bytes(void *ctx, uint64_t addr, const uint8_t *data,
                        uint32_t len)
{
    struct bed *bed = ctx;

    assert_true(addr + len <= MEMORY);
    if (bed->lost >= addr && bed->lost < addr + len && bed->lost != 0) {
        return false;
    }
    memcpy(bed->memory + addr, data, len);
    return true;
}

static void publish_bytes(void *ctx, uint32_t len)
{
    ((struct bed *)ctx)->published += len;
}

static void consume_bytes(void *ctx, uint32_t len)
{
    ((struct bed *)ctx)->consumed += len;
}

static void bed_begin(struct bed *bed, uint8_t digests)
{
    memset(bed->ring, 0xa5, sizeof(bed->ring));
    memset(bed->memory, 0xa5, sizeof(bed->memory));
    bed->published = bed->consumed = bed->taken = bed->length = 0;
    bed->lost = 0;
    bed->is_ring_lost = false;
    bed->digests = digests;
    pdu_places_init(&bed->places);
    pdu_follow_begin(&bed->follow, digests & HEADER_DIGEST,
                     digests & DATA_DIGEST);
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));

    assert_non_null(bed);
    bed_begin(bed, 0);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

TEST_FIXTURE(setup, teardown)

/* The bytes that go to the ring as they are go there. */
static void bed_take(struct bed *bed, const uint8_t *data, uint32_t len)
{
    const struct pdu_memory memory = {
        .ctx = bed,
        .store = store_bytes,
        .place = place_bytes,
        .publish = publish_bytes,
        .consume = consume_bytes,
    };
    uint32_t taken =
        pdu_follow_take(&bed->follow, &bed->places, &memory, data, len);

    assert_true(taken <= len);
    bed->taken += taken;
    (void)store_bytes(bed, 0, data + taken, len - taken);
    bed->published += len - taken;
}

static struct pdu_place place_of(uint64_t addr, uint32_t len)
{
    return (struct pdu_place){.ttag = TTAG,
                              .cccid = CCCID,
                              .offset = OFFSET,
                              .count = 1,
                              .pieces = {{addr, len}}};
}

static void add_place(struct bed *bed, uint64_t addr, uint32_t len)
{
    const struct pdu_place place = place_of(addr, len);

    assert_non_null(pdu_place_add(&bed->follow, &bed->places, &place));
}

static uint8_t pattern_byte(uint32_t i)
{
    return (uint8_t)(i * 7 + i / 256 + 1);
}

/* Add a PDU to the stream.  @return its first byte */
static uint8_t *add_pdu(struct bed *bed, uint8_t type, uint8_t flags,
                        uint32_t len)
{
    uint8_t *pdu = bed->stream + bed->length;
    uint8_t hlen = type == CAPSULE ? 72 : 24;
    uint32_t at = hlen;

    memset(pdu, 0x11, hlen);
    pdu[0] = type;
    pdu[1] = (uint8_t)(flags | (bed->digests & HEADER_DIGEST));
    pdu[2] = hlen;
    at += bed->digests & HEADER_DIGEST ? 4 : 0;
    pdu[3] = len != 0 ? (uint8_t)at : 0;
    for (uint32_t i = 0; i < len; i++) {
        pdu[at + i] = pattern_byte(i);
    }
    if (len != 0 && (bed->digests & DATA_DIGEST)) {
        pdu[1] |= DATA_DIGEST;
        put_le32(pdu + at + len, crc32c_update(0, pdu + at, len));
        at += 4;
    }
    at += len;
    put_le32(pdu + 4, at);
    bed->length += at;
    return pdu;
}

static void sum_header(const struct bed *bed, uint8_t *pdu)
{
    if (bed->digests & HEADER_DIGEST) {
        put_le32(pdu + pdu[2], crc32c_update(0, pdu, pdu[2]));
    }
}

static uint8_t *add_capsule(struct bed *bed, uint32_t len)
{
    uint8_t *pdu = add_pdu(bed, CAPSULE, 0, len);

    sum_header(bed, pdu);
    return pdu;
}

static uint8_t *add_data(struct bed *bed, uint8_t flags, uint32_t offset,
                         uint32_t len)
{
    uint8_t *pdu = add_pdu(bed, H2C_DATA, flags, len);

    put_le16(pdu + 8, CCCID);
    put_le16(pdu + 10, TTAG);
    put_le32(pdu + 12, offset);
    put_le32(pdu + 16, len);
    sum_header(bed, pdu);
    return pdu;
}

static void assert_placed(const struct bed *bed, uint64_t addr, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        assert_int_equal(bed->memory[addr + i], pattern_byte(i));
    }
}

/* The marks of the header at this byte of the ring. */
static uint8_t marks_at(const struct bed *bed, uint32_t at)
{
    return bed->ring[at + 7];
}

/* ---- What is received. */

/* A capsule without data, one with data, and the two H2CData of an R2T, in
 * segments of any two lengths. */
static void run_split(struct bed *bed, uint8_t digests, uint32_t first,
                      uint32_t step)
{
    uint32_t at;

    bed_begin(bed, digests);
    add_place(bed, 100, 60);
    (void)add_capsule(bed, 0);
    (void)add_capsule(bed, 33);
    (void)add_data(bed, 0, OFFSET, 40);
    (void)add_data(bed, LAST, OFFSET + 40, 20);
    at = MIN(first, bed->length);
    bed_take(bed, bed->stream, at);
    while (at < bed->length) {
        uint32_t len = MIN(step, bed->length - at);

        bed_take(bed, bed->stream + at, len);
        at += len;
    }
    assert_int_equal(bed->taken, bed->length);
    assert_int_equal(bed->published, 72 + 72 + 33 + 24 + 24);
    assert_int_equal(bed->published + bed->consumed, bed->length);
    assert_int_equal(marks_at(bed, 0), TOE_PDU_FOLLOWED);
    assert_int_equal(marks_at(bed, 72), TOE_PDU_FOLLOWED);
    assert_int_equal(bed->ring[144], pattern_byte(0));
    assert_int_equal(bed->ring[144 + 32], pattern_byte(32));
    assert_int_equal(marks_at(bed, 177), TOE_PDU_FOLLOWED | TOE_PDU_PLACED);
    assert_int_equal(marks_at(bed, 201), TOE_PDU_FOLLOWED | TOE_PDU_PLACED);
    assert_placed(bed, 100, 40);
    assert_placed(bed, 140, 20);
    assert_int_equal(bed->memory[99], 0xa5);
    assert_int_equal(bed->memory[160], 0xa5);
    assert_null(pdu_place_find(&bed->follow, &bed->places, TTAG));
    assert_int_equal(pdu_follow_begun(&bed->follow), TOE_BEGUN_NOTHING);
}

static void test_pdus_come_in_segments_of_any_length(void **state)
{
    struct bed *bed = *state;

    for (uint8_t digests = 0; digests < 4; digests++) {
        for (uint32_t first = 0; first < 320; first++) {
            run_split(bed, digests, first, UINT32_MAX);
        }
        for (uint32_t step = 1; step < 80; step++) {
            run_split(bed, digests, 0, step);
        }
    }
}

static void test_nothing_is_published_before_it_is_complete(void **state)
{
    struct bed *bed = *state;

    bed_begin(bed, HEADER_DIGEST | DATA_DIGEST);
    add_place(bed, 0, 50);
    (void)add_data(bed, LAST, OFFSET, 50);
    for (uint32_t i = 0; i < bed->length; i++) {
        assert_int_equal(bed->published, 0);
        assert_int_equal(pdu_follow_begun(&bed->follow),
                         i == 0   ? TOE_BEGUN_NOTHING
                         : i < 28 ? TOE_BEGUN_PDU
                                  : TOE_BEGUN_PLACED);
        bed_take(bed, bed->stream + i, 1);
    }
    assert_int_equal(bed->published, 24);
}

static void test_data_go_to_several_pieces(void **state)
{
    struct bed *bed = *state;
    struct pdu_place place = place_of(1000, 3);

    place.count = 3;
    place.pieces[1] = (struct pdu_place_piece){2000, 1};
    place.pieces[2] = (struct pdu_place_piece){3000, 5};
    assert_non_null(pdu_place_add(&bed->follow, &bed->places, &place));
    place.count = 1;
    place.pieces[0] = (struct pdu_place_piece){4000, 11};
    assert_non_null(pdu_place_add(&bed->follow, &bed->places, &place));
    (void)add_data(bed, LAST, OFFSET, 20);
    bed_take(bed, bed->stream, bed->length);
    assert_int_equal(bed->published, 24);
    assert_int_equal(bed->memory[1002], pattern_byte(2));
    assert_int_equal(bed->memory[1003], 0xa5);
    assert_int_equal(bed->memory[2000], pattern_byte(3));
    assert_int_equal(bed->memory[3004], pattern_byte(8));
    assert_int_equal(bed->memory[4000], pattern_byte(9));
    assert_int_equal(bed->memory[4010], pattern_byte(19));
}

static void test_a_wrong_data_digest_is_marked(void **state)
{
    struct bed *bed = *state;
    uint8_t *pdu;

    bed_begin(bed, DATA_DIGEST);
    add_place(bed, 0, 8);
    pdu = add_capsule(bed, 5);
    pdu[72] ^= 1;
    pdu = add_data(bed, LAST, OFFSET, 8);
    pdu[24 + 8 + 3] ^= 0x80;
    (void)add_capsule(bed, 5);
    bed_take(bed, bed->stream, bed->length);
    assert_int_equal(marks_at(bed, 0), TOE_PDU_FOLLOWED | TOE_PDU_BAD_DIGEST);
    assert_int_equal(marks_at(bed, 77),
                     TOE_PDU_FOLLOWED | TOE_PDU_PLACED | TOE_PDU_BAD_DIGEST);
    assert_int_equal(marks_at(bed, 101), TOE_PDU_FOLLOWED);
}

/* ---- Where following stops. */

/* Firmware reads the mark and all bytes from this PDU on. */
static void assert_stops(struct bed *bed, const uint8_t *pdu)
{
    uint32_t at = (uint32_t)(pdu - bed->stream);
    uint32_t before;

    for (uint32_t step = 1; step < 100; step += 7) {
        pdu_follow_end(&bed->follow, &bed->places, PDU_FOLLOW_OFF);
        pdu_follow_begin(&bed->follow, bed->digests & HEADER_DIGEST,
                         bed->digests & DATA_DIGEST);
        add_place(bed, 0, 64);
        bed->published = 0;
        bed_take(bed, bed->stream, at);
        before = bed->published;
        for (uint32_t i = at; i < bed->length; i += step) {
            bed_take(bed, bed->stream + i, MIN(step, bed->length - i));
        }
        assert_false(pdu_follow_is_on(&bed->follow));
        assert_int_equal(bed->ring[before], TOE_PDU_STOP);
        assert_memory_equal(bed->ring + before + TOE_PDU_STOP_LEN, pdu,
                            bed->length - at);
        assert_int_equal(bed->published,
                         before + TOE_PDU_STOP_LEN + bed->length - at);
        assert_int_equal(bed->memory[0], 0xa5);
        assert_int_equal(bed->places.first_free, 0);
    }
}

static void test_following_stops_at_wrong_headers(void **state)
{
    static const struct {
        uint8_t type, offset, change;
    } rows[] = {
        {CAPSULE, 0, CAPSULE ^ 2},                  /* H2CTermReq */
        {CAPSULE, 0, CAPSULE ^ 5},                  /* no PDU of a host */
        {CAPSULE, 0, 0x80},                         /* an unknown type */
        {CAPSULE, 1, 1},                            /* the flags of digests */
        {CAPSULE, 1, 2},           {CAPSULE, 2, 1}, /* HLEN */
        {CAPSULE, 3, 1},                            /* PDO */
        {CAPSULE, 5, 0x40}, /* PLEN: more than a capsule's data */
        {CAPSULE, 7, 0x80}, /* 2 GiB, in the byte of the marks */
        {H2C_DATA, 1, LAST},       {H2C_DATA, 4, 1},
        {H2C_DATA, 7, 1},          {H2C_DATA, 8, 1}, /* CCCID */
        {H2C_DATA, 10, 1},                           /* TTAG */
        {H2C_DATA, 12, 1},                           /* offset */
        {H2C_DATA, 16, 1},                           /* length */
    };
    struct bed *bed = *state;

    for (uint8_t digests = 0; digests < 4; digests++) {
        for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
            uint8_t *pdu;

            bed_begin(bed, digests);
            (void)add_capsule(bed, 10);
            pdu = rows[i].type == CAPSULE ? add_capsule(bed, 64)
                                          : add_data(bed, LAST, OFFSET, 64);
            pdu[rows[i].offset] ^= rows[i].change;
            if (rows[i].offset != 2) {
                sum_header(bed, pdu);
            }
            (void)add_capsule(bed, 10);
            assert_stops(bed, pdu);
        }
    }
}

/* Firmware answers a length that is wrong before more bytes come. */
static void test_lengths_are_judged_with_the_common_header(void **state)
{
    static const struct {
        uint8_t type;
        uint32_t len;
        bool stops;
    } rows[] = {
        {CAPSULE, TOE_CAPSULE_MAX, false},
        {CAPSULE, TOE_CAPSULE_MAX + 1, true},
        {H2C_DATA, TOE_H2C_MAX, false},
        {H2C_DATA, TOE_H2C_MAX + 1, true},
    };
    struct bed *bed = *state;

    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t *pdu;

        bed_begin(bed, 0);
        pdu = add_pdu(bed, rows[i].type, LAST, 1);
        put_le32(pdu + 4, pdu[2] + rows[i].len);
        bed_take(bed, pdu, 8);
        assert_int_equal(pdu_follow_is_on(&bed->follow), !rows[i].stops);
    }
}

static void test_following_stops_at_a_wrong_header_digest(void **state)
{
    struct bed *bed = *state;
    uint8_t *pdu;

    bed_begin(bed, HEADER_DIGEST);
    pdu = add_data(bed, LAST, OFFSET, 64);
    pdu[24] ^= 1;
    assert_stops(bed, pdu);
}

/* Data of a window must come once, in order, and end with LAST. */
static void test_following_stops_at_data_that_nothing_waits_for(void **state)
{
    struct bed *bed = *state;
    const uint8_t *pdu;

    bed_begin(bed, 0);
    add_place(bed, 0, 64);
    (void)add_data(bed, LAST, OFFSET, 64);
    pdu = add_data(bed, LAST, OFFSET, 64); /* again */
    bed_take(bed, bed->stream, bed->length);
    assert_false(pdu_follow_is_on(&bed->follow));
    assert_int_equal(bed->ring[24], TOE_PDU_STOP);
    assert_memory_equal(bed->ring + 32, pdu, 88);

    bed_begin(bed, 0);
    pdu = add_data(bed, LAST, OFFSET, 65); /* more than there is room for */
    assert_stops(bed, pdu);
    bed_begin(bed, 0);
    pdu = add_data(bed, 0, OFFSET, 65);
    assert_stops(bed, pdu);
    bed_begin(bed, 0);
    pdu = add_data(bed, 0, OFFSET, 64); /* LAST is missing */
    assert_stops(bed, pdu);
    bed_begin(bed, 0);
    pdu = add_data(bed, LAST, OFFSET, 63); /* LAST comes early */
    assert_stops(bed, pdu);
}

/* ---- The end. */

/* Wherever the stream is when firmware closes, nothing is written any more. */
static void test_nothing_is_placed_after_the_end(void **state)
{
    struct bed *bed = *state;

    for (uint32_t before = 0; before < 88; before++) {
        uint32_t placed = before < 24 ? 0 : before - 24;

        bed_begin(bed, 0);
        add_place(bed, 0, 64);
        (void)add_data(bed, LAST, OFFSET, 64);
        (void)add_capsule(bed, 30);
        bed_take(bed, bed->stream, before);
        pdu_follow_end(&bed->follow, &bed->places, PDU_FOLLOW_DEAF);
        assert_int_equal(bed->places.first_free, 0);
        assert_null(pdu_place_find(&bed->follow, &bed->places, TTAG));
        bed_take(bed, bed->stream + before, bed->length - before);
        assert_placed(bed, 0, placed);
        assert_int_equal(bed->memory[placed], 0xa5);
        assert_int_equal(bed->published, 0);
    }
}

/* The same tag stands for another place after it was used, and is not mistaken
 * for the former one. */
static void test_a_tag_can_be_used_again(void **state)
{
    struct bed *bed = *state;

    add_place(bed, 0, 8);
    (void)add_data(bed, LAST, OFFSET, 8);
    bed_take(bed, bed->stream, bed->length);
    memset(bed->memory, 0xa5, 8);
    bed->length = 0;
    add_place(bed, 100, 8);
    (void)add_data(bed, LAST, OFFSET, 8);
    bed_take(bed, bed->stream, bed->length);
    assert_placed(bed, 100, 8);
    assert_int_equal(bed->memory[0], 0xa5);
}

static void test_places_and_pieces_are_limited(void **state)
{
    struct bed *bed = *state;
    struct pdu_place place = place_of(0, 1);

    for (unsigned int i = 0; i < PDU_PLACES; i++) {
        place.ttag = (uint16_t)i;
        assert_non_null(pdu_place_add(&bed->follow, &bed->places, &place));
    }
    place.ttag = PDU_PLACES;
    assert_null(pdu_place_add(&bed->follow, &bed->places, &place));
    place.ttag = 5;
    for (unsigned int i = 1; i < PDU_PLACE_PIECES; i++) {
        assert_non_null(pdu_place_add(&bed->follow, &bed->places, &place));
    }
    assert_null(pdu_place_add(&bed->follow, &bed->places, &place));
    pdu_follow_end(&bed->follow, &bed->places, PDU_FOLLOW_OFF);
    pdu_follow_begin(&bed->follow, false, false);
    assert_non_null(pdu_place_add(&bed->follow, &bed->places, &place));
}

static void test_a_lost_word_publishes_nothing(void **state)
{
    struct bed *bed = *state;

    add_place(bed, 0, 64);
    bed->lost = 40;
    (void)add_data(bed, LAST, OFFSET, 64);
    bed_take(bed, bed->stream, bed->length);
    assert_int_equal(bed->published, 0);
}

/* Nor is it taken for a wrong header that has marks in it. */
static void test_a_lost_word_of_the_ring_publishes_nothing(void **state)
{
    struct bed *bed = *state;

    for (uint8_t digests = 0; digests < 4; digests++) {
        bed_begin(bed, digests);
        bed->is_ring_lost = true;
        (void)add_capsule(bed, 0);
        (void)add_capsule(bed, 0);
        bed_take(bed, bed->stream, bed->length);
        assert_int_equal(bed->taken, bed->length);
        assert_int_equal(bed->published, 0);
        assert_int_equal(bed->consumed, 0);
    }
}

/* ---- What is sent. */

/* PDUs of the drive, with padding before the data; digests that are to be wrong
 * have something else than 0 in their fields. */
static void run_fill(struct bed *bed, uint8_t digests, uint32_t first,
                     uint32_t step)
{
    enum { PDO = 40, LEN = 100 };
    static const uint32_t masks[2] = {0, UINT32_MAX};
    uint8_t *out = bed->stream;
    struct pdu_fill fill = {0};
    uint32_t length = 0;

    memset(out, 0, 1000);
    out[0] = 1; /* ICResp has no digests */
    out[1] = 3;
    out[2] = 128;
    put_le32(out + 4, 128);
    length = 128;
    for (unsigned int i = 0; i < 2; i++) {
        uint8_t *pdu = out + length;
        uint32_t end = PDO + LEN + (digests & DATA_DIGEST ? 4u : 0);

        memset(pdu, 0, end + 24 + 4);
        pdu[0] = 7; /* C2HData */
        pdu[1] = digests;
        pdu[2] = 24;
        pdu[3] = PDO;
        put_le32(pdu + 4, end);
        for (uint32_t k = 0; k < LEN; k++) {
            pdu[PDO + k] = pattern_byte(k + i);
        }
        if (digests & HEADER_DIGEST) {
            put_le32(pdu + 24, masks[i]);
        }
        if (digests & DATA_DIGEST) {
            put_le32(pdu + PDO + LEN, masks[i]);
        }
        pdu += end;
        pdu[0] = 5; /* CapsuleResp */
        pdu[1] = digests & HEADER_DIGEST;
        pdu[2] = 24;
        put_le32(pdu + 4, digests & HEADER_DIGEST ? 28 : 24);
        length += end + get_le32(pdu + 4);
    }
    for (uint32_t at = 0; at < length;) {
        uint32_t len = MIN(at == 0 && first != 0 ? first : step, length - at);

        pdu_fill_digests(&fill, out + at, len);
        at += len;
    }
    assert_int_equal(fill.at, 0);
    assert_int_equal(get_le32(out + 24), 0);
    out += 128;
    for (unsigned int i = 0; i < 2; i++) {
        if (digests & HEADER_DIGEST) {
            assert_int_equal(get_le32(out + 24),
                             crc32c_update(0, out, 24) ^ masks[i]);
        }
        if (digests & DATA_DIGEST) {
            assert_int_equal(get_le32(out + PDO + LEN),
                             crc32c_update(0, out + PDO, LEN) ^ masks[i]);
        }
        assert_int_equal(out[PDO], pattern_byte(i));
        out += get_le32(out + 4);
        if (digests & HEADER_DIGEST) {
            assert_int_equal(get_le32(out + 24), crc32c_update(0, out, 24));
        }
        out += get_le32(out + 4);
    }
}

static void test_digests_are_filled_in_wherever_sends_end(void **state)
{
    struct bed *bed = *state;

    for (uint8_t digests = 0; digests < 4; digests++) {
        for (uint32_t first = 0; first < 500; first++) {
            run_fill(bed, digests, first, UINT32_MAX);
        }
        for (uint32_t step = 1; step < 60; step++) {
            run_fill(bed, digests, 0, step);
        }
    }
}

/* A fault rule may send such PDUs: their headers are as long as HLEN says, and
 * a digest ends with the PDU, wherever SENDs end. */
static void test_short_plen_of_what_is_sent_counts_the_header(void **state)
{
    struct bed *bed = *state;
    uint8_t *out = bed->stream;

    for (uint32_t plen = 0; plen < 28; plen++) {
        const uint32_t begin = MAX(plen, 24);

        for (uint32_t step = 1; step < 60; step++) {
            const uint32_t length = begin + 28;
            struct pdu_fill fill = {0};

            memset(out, 0, length);
            for (uint32_t at = 0; at <= begin; at += begin) {
                out[at] = 5; /* CapsuleResp */
                out[at + 1] = HEADER_DIGEST;
                out[at + 2] = 24;
                put_le32(out + at + 4, at == 0 ? plen : 28);
            }
            for (uint32_t at = 0; at < length; at += step) {
                pdu_fill_digests(&fill, out + at, MIN(step, length - at));
            }
            assert_int_equal(fill.at, 0);
            assert_int_equal(get_le32(out + begin + 24),
                             crc32c_update(0, out + begin, 24));
        }
    }
}

/* ---- Streams that chance has made, against what a plain reader makes of
 * them. */

enum { TAGS = 3, PDUS_MAX = 14, STREAMS = 4000, DATA_MAX = 700 };

struct random_stream {
    struct bed *bed;
    uint64_t random;
    uint8_t ring[RING], memory[MEMORY]; /* what the bed's must be */
    uint32_t published;
    uint64_t next_place;               /* memory that no place has had */
    struct pdu_place places[TAGS + 1]; /* the last one is where it stops */
};

static uint32_t chance_draw(struct random_stream *all, uint32_t most)
{
    return (uint32_t)(random_next(&all->random) % most);
}

static void expect_bytes(struct random_stream *all, const uint8_t *data,
                         uint32_t len)
{
    memcpy(all->ring + all->published, data, len);
    all->published += len;
}

/* Prepare a place of some pieces, which lie in memory with gaps. */
static void place_draw(struct random_stream *all, unsigned int tag)
{
    struct pdu_place *place = &all->places[tag];

    *place = (struct pdu_place){.ttag = (uint16_t)(TTAG + tag),
                                .cccid = CCCID,
                                .offset = chance_draw(all, 5000)};
    place->count = (uint8_t)(1 + chance_draw(all, PDU_PLACE_PIECES));
    for (uint8_t i = 0; i < place->count; i++) {
        all->next_place += 1 + chance_draw(all, 9);
        place->pieces[i].addr = all->next_place;
        place->pieces[i].len_bytes = 1 + chance_draw(all, 200);
        place->len_bytes += place->pieces[i].len_bytes;
        all->next_place += place->pieces[i].len_bytes;
    }
    assert_true(all->next_place <= MEMORY);
    assert_non_null(pdu_place_add(&all->bed->follow, &all->bed->places, place));
}

static void expect_placed(struct random_stream *all, struct pdu_place *place,
                          uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        uint32_t at = place->done++;
        const struct pdu_place_piece *piece = place->pieces;

        for (; at >= piece->len_bytes; piece++) {
            at -= piece->len_bytes;
        }
        all->memory[piece->addr + at] = pattern_byte(i);
    }
}

/* Add a PDU that is followed. */
static void pdu_draw(struct random_stream *all)
{
    struct bed *bed = all->bed;
    struct pdu_place *place = &all->places[chance_draw(all, TAGS)];
    uint32_t len = chance_draw(all, DATA_MAX);
    uint8_t marks = TOE_PDU_FOLLOWED;
    uint32_t hlen = 72;
    uint8_t *pdu;
    uint8_t *copy = all->ring + all->published;

    if (chance_draw(all, 3) == 0 || place->done == place->len_bytes) {
        len = chance_draw(all, 2) * len;
        pdu = add_capsule(bed, len);
    } else {
        len = MIN(1 + len, place->len_bytes - place->done);
        pdu = add_data(bed, place->done + len == place->len_bytes ? LAST : 0,
                       place->offset + place->done, len);
        put_le16(pdu + 10, place->ttag);
        sum_header(bed, pdu);
        expect_placed(all, place, len);
        marks |= TOE_PDU_PLACED;
        hlen = 24;
    }
    if (len != 0 && (bed->digests & DATA_DIGEST) && chance_draw(all, 5) == 0) {
        bed->stream[bed->length - 1] ^= 0x40;
        marks |= TOE_PDU_BAD_DIGEST;
    }
    expect_bytes(all, pdu, hlen);
    copy[7] = marks;
    if (hlen == 72) {
        expect_bytes(all, pdu + pdu[3], len);
    }
}

/* Add one at which following stops, and bytes after it. */
static void stop_draw(struct random_stream *all)
{
    static const uint8_t mark[TOE_PDU_STOP_LEN] = {TOE_PDU_STOP};
    static const struct {
        uint8_t at, change; /* of a header of H2CData without a digest */
    } wrong[] = {{0, 1},    {0, 4},    {1, HEADER_DIGEST},
                 {1, LAST}, {2, 1},    {3, 4},
                 {4, 1},    {7, 1},    {8, 1},
                 {11, 1},   {12, 1},   {15, 1},
                 {16, 1},   {19, 0x80}};
    unsigned int which = chance_draw(all, ARRAY_LEN(wrong));
    struct bed *bed = all->bed;
    const struct pdu_place *place = &all->places[TAGS];
    uint32_t begin = bed->length;
    uint8_t *pdu;

    place_draw(all, TAGS);
    pdu = add_data(bed, LAST, place->offset, place->len_bytes);
    put_le16(pdu + 10, place->ttag);
    pdu[wrong[which].at] ^= wrong[which].change;
    sum_header(bed, pdu);
    (void)add_capsule(bed, chance_draw(all, 90));
    expect_bytes(all, mark, sizeof(mark));
    expect_bytes(all, bed->stream + begin, bed->length - begin);
}

static void stream_run(struct random_stream *all, uint32_t seed)
{
    struct bed *bed = all->bed;
    uint32_t count;
    bool stops;

    all->random = seed;
    bed_begin(bed, (uint8_t)chance_draw(all, 4));
    memset(all->ring, 0xa5, sizeof(all->ring));
    memset(all->memory, 0xa5, sizeof(all->memory));
    all->published = 0;
    all->next_place = 0;
    for (unsigned int tag = 0; tag < TAGS; tag++) {
        place_draw(all, tag);
    }
    count = chance_draw(all, PDUS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        pdu_draw(all);
    }
    stops = chance_draw(all, 2) != 0;
    if (stops) {
        stop_draw(all);
    }
    for (uint32_t at = 0; at < bed->length;) {
        uint32_t len =
            1 + chance_draw(all, chance_draw(all, 2) != 0 ? 12 : 1448);

        len = MIN(len, bed->length - at);
        bed_take(bed, bed->stream + at, len);
        at += len;
    }
    assert_int_equal(pdu_follow_is_on(&bed->follow), !stops);
    assert_int_equal(bed->published, all->published);
    assert_memory_equal(bed->ring, all->ring, all->published);
    assert_memory_equal(bed->memory, all->memory, MEMORY);
    assert_int_equal(bed->published + bed->consumed,
                     bed->length + (stops ? TOE_PDU_STOP_LEN : 0));
}

static void test_any_stream_in_any_segments_is_followed_as_it_is_read(
    void **state)
{
    struct random_stream *all = calloc(1, sizeof(*all));

    assert_non_null(all);
    all->bed = *state;
    for (uint32_t seed = 1; seed <= STREAMS; seed++) {
        stream_run(all, seed);
    }
    free(all);
}
