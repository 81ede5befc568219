/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams of NVMe/TCP PDUs that the TCP offload engine follows.  An input is a
 * head of HEAD_LEN bytes, places of PLACE_LEN bytes each, and what a host
 * sends.  The result does not depend on the segments: all bytes at once lead to
 * the same ring and memory as pieces.  Nothing is written outside of the
 * places, or twice, and the ring never needs more room than the bytes that have
 * come, and the mark.  The bytes are also sent, in both ways.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "hw-model/toe/pdu_follow.h"
#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "lib/regfields.h"
#include "hw-model/regs/toe.h"

enum {
    HEAD_DIGESTS = 0, /* 1: headers, 2: data */
    HEAD_PLACES = 1,  /* how many */
    HEAD_PIECE = 2,   /* longest segment */
    HEAD_LEN = 3,
    PLACE_TTAG = 0, /* one byte each */
    PLACE_CCCID = 1,
    PLACE_OFFSET = 2,
    PLACE_PIECES = 3,
    PLACE_BYTES = 4, /* of each piece */
    PLACE_LEN = 5,
    PLACES_MAX = 4,
    STREAM_MAX = 8192,
    MEMORY = PLACES_MAX * PDU_PLACE_PIECES * 256,
    CAPSULE = 4,
    CAPSULE_LEN = 72,
    H2C_DATA = 6,
    H2C_LEN = 24,
    LAST = 4,
};

struct world {
    struct pdu_places places;
    struct pdu_follow follow;
    uint8_t ring[STREAM_MAX + TOE_PDU_STOP_LEN];
    uint8_t memory[MEMORY];
    bool may_write[MEMORY];
    uint32_t come, published, consumed;
};

static struct world worlds[2];

static void check_that(bool good)
{
    if (!good) {
        abort();
    }
}

static bool store_bytes(void *ctx, uint32_t at, const uint8_t *data,
                        uint32_t len)
{
    struct world *w = ctx;

    check_that(w->published + at + len <=
               w->come - w->consumed + TOE_PDU_STOP_LEN);
    memcpy(w->ring + w->published + at, data, len);
    return true;
}

static bool place_bytes(void *ctx, uint64_t addr, const uint8_t *data,
                        uint32_t len)
{
    struct world *w = ctx;

    for (uint32_t i = 0; i < len; i++) {
        check_that(addr + i < MEMORY && w->may_write[addr + i]);
        w->may_write[addr + i] = false;
        w->memory[addr + i] = data[i];
    }
    return true;
}

static void publish_bytes(void *ctx, uint32_t len)
{
    ((struct world *)ctx)->published += len;
}

static void consume_bytes(void *ctx, uint32_t len)
{
    ((struct world *)ctx)->consumed += len;
}

/* A tag that occurs twice has the pieces of both. */
static void place_prepare(struct world *w, const uint8_t *bytes,
                          unsigned int number)
{
    struct pdu_place place = {.ttag = bytes[PLACE_TTAG],
                              .cccid = bytes[PLACE_CCCID],
                              .offset = bytes[PLACE_OFFSET] * 256u,
                              .count =
                                  1 + bytes[PLACE_PIECES] % PDU_PLACE_PIECES};

    for (uint8_t i = 0; i < place.count; i++) {
        uint32_t at = (number * PDU_PLACE_PIECES + i) * 256u;

        place.pieces[i].addr = at;
        place.pieces[i].len_bytes = MAX(bytes[PLACE_BYTES], 1);
    }
    if (pdu_place_add(&w->follow, &w->places, &place) == NULL) {
        return;
    }
    for (uint8_t i = 0; i < place.count; i++) {
        memset(w->may_write + place.pieces[i].addr, 1,
               place.pieces[i].len_bytes);
    }
}

static void world_take(struct world *w, const uint8_t *data, uint32_t len)
{
    const struct pdu_memory memory = {
        .ctx = w,
        .store = store_bytes,
        .place = place_bytes,
        .publish = publish_bytes,
        .consume = consume_bytes,
    };
    bool was_on = pdu_follow_is_on(&w->follow);
    uint32_t taken = 0;

    w->come += len;
    if (was_on) {
        taken = pdu_follow_take(&w->follow, &w->places, &memory, data, len);
    }
    check_that(taken == len || !pdu_follow_is_on(&w->follow));
    check_that(store_bytes(w, 0, data + taken, len - taken));
    w->published += len - taken;
}

static void world_run(struct world *w, const uint8_t *head,
                      const uint8_t *places, const uint8_t *stream,
                      uint32_t len, uint32_t most)
{
    memset(w, 0, sizeof(*w));
    pdu_places_init(&w->places);
    pdu_follow_begin(&w->follow, (head[HEAD_DIGESTS] & 1) != 0,
                     (head[HEAD_DIGESTS] & 2) != 0);
    for (unsigned int i = 0; i < head[HEAD_PLACES] % (PLACES_MAX + 1u); i++) {
        place_prepare(w, places + (size_t)i * PLACE_LEN, i);
    }
    for (uint32_t at = 0; at < len; at += most) {
        world_take(w, stream + at, MIN(most, len - at));
    }
}

/* What is sent does not depend on where SENDs end, either. */
static void fill_run(const uint8_t *stream, uint32_t len, uint32_t most)
{
    static uint8_t bytes[2][STREAM_MAX];
    struct pdu_fill fill[2] = {{0}, {0}};

    memcpy(bytes[0], stream, len);
    memcpy(bytes[1], stream, len);
    pdu_fill_digests(&fill[0], bytes[0], len);
    for (uint32_t at = 0; at < len; at += most) {
        pdu_fill_digests(&fill[1], bytes[1] + at, MIN(most, len - at));
    }
    check_that(memcmp(bytes[0], bytes[1], len) == 0);
    check_that(fill[0].at == fill[1].at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const uint8_t *places = data + HEAD_LEN;
    const uint8_t *stream;
    uint32_t most, length;

    if (len < HEAD_LEN + PLACES_MAX * PLACE_LEN ||
        len - HEAD_LEN - PLACES_MAX * PLACE_LEN > STREAM_MAX) {
        return 0;
    }
    stream = places + PLACES_MAX * PLACE_LEN;
    length = (uint32_t)(len - HEAD_LEN - PLACES_MAX * PLACE_LEN);
    most = MAX(data[HEAD_PIECE], 1);
    world_run(&worlds[0], data, places, stream, length, STREAM_MAX);
    world_run(&worlds[1], data, places, stream, length, most);
    check_that(worlds[0].published == worlds[1].published);
    check_that(worlds[0].consumed == worlds[1].consumed);
    check_that(memcmp(worlds[0].ring, worlds[1].ring, worlds[0].published) ==
               0);
    check_that(memcmp(worlds[0].memory, worlds[1].memory, MEMORY) == 0);
    check_that(worlds[0].follow.state == worlds[1].follow.state);
    check_that(pdu_follow_begun(&worlds[0].follow) ==
               pdu_follow_begun(&worlds[1].follow));
    fill_run(stream, length, most);
    return 0;
}

/* ---- Seeds: two capsules and the two H2CData of an R2T. */

static size_t seed_pdu(uint8_t *pdu, uint8_t digests, bool is_capsule,
                       uint8_t flags, uint32_t offset, uint32_t len)
{
    uint8_t hlen = is_capsule ? CAPSULE_LEN : H2C_LEN;
    uint32_t at = hlen + ((digests & 1) != 0 ? 4u : 0);
    uint32_t end = len != 0 && (digests & 2) != 0 ? 4 : 0;

    memset(pdu, 0x11, at + len);
    pdu[0] = is_capsule ? CAPSULE : H2C_DATA;
    pdu[1] = (uint8_t)(flags | (digests & 1) | (end != 0 ? 2 : 0));
    pdu[2] = hlen;
    pdu[3] = len != 0 ? (uint8_t)at : 0;
    put_le32(pdu + 4, at + len + end);
    if (!is_capsule) {
        put_le16(pdu + 8, 1);  /* CCCID */
        put_le16(pdu + 10, 2); /* TTAG */
        put_le32(pdu + 12, offset);
        put_le32(pdu + 16, len);
    }
    if ((digests & 1) != 0) {
        put_le32(pdu + hlen, crc32c_update(0, pdu, hlen));
    }
    if (end != 0) {
        put_le32(pdu + at + len, crc32c_update(0, pdu + at, len));
    }
    return at + len + end;
}

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    uint8_t digests = (uint8_t)n;
    size_t at = HEAD_LEN + PLACES_MAX * PLACE_LEN;

    if (n >= 4 || room < 1024) {
        return 0;
    }
    memset(buf, 0, at);
    buf[HEAD_DIGESTS] = digests;
    buf[HEAD_PLACES] = 1;
    buf[HEAD_PIECE] = 7;
    buf[HEAD_LEN + PLACE_TTAG] = 2;
    buf[HEAD_LEN + PLACE_CCCID] = 1;
    buf[HEAD_LEN + PLACE_OFFSET] = 1;
    buf[HEAD_LEN + PLACE_PIECES] = 2;
    buf[HEAD_LEN + PLACE_BYTES] = 20; /* three pieces: 60 bytes */
    at += seed_pdu(buf + at, digests, true, 0, 0, 0);
    at += seed_pdu(buf + at, digests, false, 0, 256, 33);
    at += seed_pdu(buf + at, digests, true, 0, 0, 50);
    at += seed_pdu(buf + at, digests, false, LAST, 256 + 33, 27);
    return at;
}
