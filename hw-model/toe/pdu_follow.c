/* SPDX-License-Identifier: BSD-2-Clause */
/* PDUs of NVMe/TCP: see pdu_follow.h.  Spec: NVM Express TCP Transport 1.0,
 * section 3.6. */
#include "hw-model/toe/pdu_follow.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32c.h"
#include "lib/regfields.h"
#include "hw-model/regs/toe.h"

enum { /* byte offsets; everything little-endian */
       TYPE = 0,
       FLAGS = 1,
       HLEN = 2,
       PDO = 3,
       PLEN = 4,
       HEAD_LEN = 8,
       DATA_CCCID = 8, /* of H2CData, as the next ones */
       DATA_TTAG = 10,
       DATA_OFFSET = 12,
       DATA_LENGTH = 16,
       DIGEST_LEN = 4,
};

enum {
    TYPE_CAPSULE_CMD = 4, /* lower ones have no digests, whatever they say */
    TYPE_H2C_DATA = 6,
    CAPSULE_CMD_LEN = 72,
    H2C_DATA_LEN = 24,
    FLAG_HEADER_DIGEST = 1,
    FLAG_DATA_DIGEST = 2,
    FLAG_LAST = 4,
};

_Static_assert((int)PDU_HEADER_ROOM == (int)CAPSULE_CMD_LEN + (int)DIGEST_LEN,
               "see pdu_follow.h");

/* ---- Places. */

void pdu_places_init(struct pdu_places *places)
{
    places->first_free = 0;
    for (uint16_t i = 0; i < PDU_PLACES; i++) {
        places->all[i].next =
            i + 1 < PDU_PLACES ? (uint16_t)(i + 1) : (uint16_t)PDU_NO_PLACE;
    }
}

static uint16_t find_index(const struct pdu_follow *follow,
                           const struct pdu_places *places, uint16_t ttag)
{
    uint16_t i = follow->places;

    while (i != PDU_NO_PLACE && places->all[i].ttag != ttag) {
        i = places->all[i].next;
    }
    return i;
}

struct pdu_place *pdu_place_find(const struct pdu_follow *follow,
                                 struct pdu_places *places, uint16_t ttag)
{
    uint16_t i = find_index(follow, places, ttag);

    return i != PDU_NO_PLACE ? &places->all[i] : NULL;
}

bool pdu_place_is_coming(const struct pdu_follow *follow,
                         const struct pdu_places *places,
                         const struct pdu_place *place)
{
    return follow->place != PDU_NO_PLACE &&
           place == &places->all[follow->place];
}

static struct pdu_place *take_place(struct pdu_follow *follow,
                                    struct pdu_places *places,
                                    const struct pdu_place *like)
{
    uint16_t i = places->first_free;
    struct pdu_place *place;

    if (i == PDU_NO_PLACE) {
        return NULL;
    }
    place = &places->all[i];
    places->first_free = place->next;
    *place = (struct pdu_place){.next = follow->places,
                                .ttag = like->ttag,
                                .cccid = like->cccid,
                                .offset = like->offset};
    follow->places = i;
    return place;
}

/* Give a place back, which the connection has. */
static void give_place(struct pdu_follow *follow, struct pdu_places *places,
                       uint16_t index)
{
    uint16_t *link = &follow->places;

    while (*link != index) {
        link = &places->all[*link].next;
    }
    *link = places->all[index].next;
    places->all[index].next = places->first_free;
    places->first_free = index;
}

struct pdu_place *pdu_place_add(struct pdu_follow *follow,
                                struct pdu_places *places,
                                const struct pdu_place *piece)
{
    struct pdu_place *place = pdu_place_find(follow, places, piece->ttag);

    if (place == NULL) {
        place = take_place(follow, places, piece);
    }
    if (place == NULL || place->count + piece->count > PDU_PLACE_PIECES) {
        return NULL;
    }
    for (uint8_t i = 0; i < piece->count; i++) {
        place->pieces[place->count++] = piece->pieces[i];
        place->len_bytes += piece->pieces[i].len_bytes;
    }
    return place;
}

void pdu_follow_begin(struct pdu_follow *follow, bool has_header_digest,
                      bool has_data_digest)
{
    *follow = (struct pdu_follow){
        .state = PDU_FOLLOW_HEADER,
        .has_header_digest = has_header_digest,
        .has_data_digest = has_data_digest,
        .fills = true,
        .place = PDU_NO_PLACE,
        .places = PDU_NO_PLACE,
    };
}

void pdu_follow_end(struct pdu_follow *follow, struct pdu_places *places,
                    enum pdu_follow_state state)
{
    while (pdu_follow_is_on(follow) && follow->places != PDU_NO_PLACE) {
        give_place(follow, places, follow->places);
    }
    follow->place = PDU_NO_PLACE;
    follow->places = PDU_NO_PLACE;
    follow->state = (uint8_t)state;
}

/* ---- Headers. */

static uint32_t header_len(uint8_t type)
{
    return type == TYPE_CAPSULE_CMD ? (uint32_t)CAPSULE_CMD_LEN
           : type == TYPE_H2C_DATA  ? (uint32_t)H2C_DATA_LEN
                                    : 0;
}

/* Judge the common header, and find the length of the data. */
static bool head_is_usual(struct pdu_follow *follow)
{
    const uint8_t *header = follow->header;
    bool is_capsule = header[TYPE] == TYPE_CAPSULE_CMD;
    uint32_t plen = get_le32(header + PLEN);
    uint32_t begin = header_len(header[TYPE]);
    uint32_t end = follow->has_data_digest ? DIGEST_LEN : 0;

    if (begin == 0 || header[HLEN] != begin ||
        ((header[FLAGS] & FLAG_HEADER_DIGEST) != 0) !=
            follow->has_header_digest) {
        return false;
    }
    begin += follow->has_header_digest ? (uint32_t)DIGEST_LEN : 0;
    follow->left = 0;
    if (is_capsule && plen == begin) {
        return true;
    }
    if (((header[FLAGS] & FLAG_DATA_DIGEST) != 0) != follow->has_data_digest ||
        header[PDO] != begin || plen <= begin + end) {
        return false;
    }
    follow->left = plen - begin - end;
    return follow->left <=
           (is_capsule ? (uint32_t)TOE_CAPSULE_MAX : (uint32_t)TOE_H2C_MAX);
}

/* Find the place of H2CData.  Firmware ends the connection for what has
 * none. */
static bool find_place(struct pdu_follow *follow, struct pdu_places *places)
{
    const uint8_t *header = follow->header;
    uint16_t index = find_index(follow, places, get_le16(header + DATA_TTAG));
    const struct pdu_place *place;
    bool is_last = (header[FLAGS] & FLAG_LAST) != 0;

    if (index == PDU_NO_PLACE) {
        return false;
    }
    place = &places->all[index];
    if (get_le16(header + DATA_CCCID) != place->cccid ||
        get_le32(header + DATA_LENGTH) != follow->left ||
        get_le32(header + DATA_OFFSET) != place->offset + place->done ||
        follow->left > place->len_bytes - place->done ||
        is_last != (place->done + follow->left == place->len_bytes)) {
        return false;
    }
    follow->place = index;
    return true;
}

static bool header_is_usual(struct pdu_follow *follow,
                            struct pdu_places *places)
{
    const uint8_t *header = follow->header;

    if (follow->has_header_digest && crc32c_update(0, header, header[HLEN]) !=
                                         get_le32(header + header[HLEN])) {
        return false;
    }
    return header[TYPE] == TYPE_CAPSULE_CMD || find_place(follow, places);
}

/* ---- The stream. */

/* Firmware reads a mark, then the header's bytes, then all that comes. */
static void stop_following(struct pdu_follow *follow, struct pdu_places *places,
                           const struct pdu_memory *memory)
{
    uint8_t bytes[TOE_PDU_STOP_LEN + PDU_HEADER_ROOM] = {TOE_PDU_STOP};
    uint32_t len = TOE_PDU_STOP_LEN + (uint32_t)follow->have;

    memcpy(bytes + TOE_PDU_STOP_LEN, follow->header, follow->have);
    if (memory->store(memory->ctx, 0, bytes, len)) {
        memory->publish(memory->ctx, len);
    }
    pdu_follow_end(follow, places, PDU_FOLLOW_OFF);
}

/* A PDU is complete. */
static bool end_pdu(struct pdu_follow *follow, struct pdu_places *places,
                    const struct pdu_memory *memory, bool is_good)
{
    uint8_t *header = follow->header;
    uint8_t marks = TOE_PDU_FOLLOWED;
    uint32_t hlen = header[HLEN];
    uint32_t dropped = follow->has_header_digest ? DIGEST_LEN : 0;
    struct pdu_place *place;

    if (follow->stored != 0 || follow->place != PDU_NO_PLACE) {
        dropped += follow->has_data_digest ? (uint32_t)DIGEST_LEN : 0;
    }
    if (follow->place != PDU_NO_PLACE) {
        marks |= TOE_PDU_PLACED;
        place = &places->all[follow->place];
        if (place->done == place->len_bytes) {
            give_place(follow, places, follow->place);
        }
    }
    header[PLEN + 3] = is_good ? marks : (uint8_t)(marks | TOE_PDU_BAD_DIGEST);
    if (!memory->store(memory->ctx, 0, header, hlen)) {
        return false;
    }
    memory->publish(memory->ctx, hlen + follow->stored);
    memory->consume(memory->ctx, dropped);
    follow->state = PDU_FOLLOW_HEADER;
    follow->have = 0;
    follow->place = PDU_NO_PLACE;
    return true;
}

/* @return how many bytes of a header were taken; 0: a word is lost */
static uint32_t take_header(struct pdu_follow *follow,
                            struct pdu_places *places,
                            const struct pdu_memory *memory,
                            const uint8_t *data, uint32_t len)
{
    uint32_t want = HEAD_LEN;
    uint32_t taken;

    if (follow->have >= HEAD_LEN) {
        want = follow->header[HLEN] +
               (follow->has_header_digest ? (uint32_t)DIGEST_LEN : 0);
    }
    taken = MIN(len, want - follow->have);
    memcpy(follow->header + follow->have, data, taken);
    follow->have = (uint8_t)(follow->have + taken);
    if (follow->have < want) {
        return taken;
    }
    if (want == HEAD_LEN ? !head_is_usual(follow)
                         : !header_is_usual(follow, places)) {
        stop_following(follow, places, memory);
    } else if (want != HEAD_LEN) {
        follow->crc = 0;
        follow->stored = 0;
        if (follow->left != 0) {
            follow->state = PDU_FOLLOW_DATA;
        } else if (!end_pdu(follow, places, memory, true)) {
            return 0;
        }
    }
    return taken;
}

/* Where the next byte of a place goes, and how much fits there. */
static uint64_t place_next(const struct pdu_place *place, uint32_t *room)
{
    const struct pdu_place_piece *piece = place->pieces;
    uint32_t offset = place->done;

    while (offset >= piece->len_bytes) {
        offset -= piece->len_bytes;
        piece++;
    }
    *room = piece->len_bytes - offset;
    return piece->addr + offset;
}

static bool place_data(struct pdu_place *place, const struct pdu_memory *memory,
                       const uint8_t *data, uint32_t len)
{
    while (len != 0) {
        uint32_t room;
        uint64_t addr = place_next(place, &room);
        uint32_t part = MIN(room, len);

        if (!memory->place(memory->ctx, addr, data, part)) {
            return false;
        }
        place->done += part;
        data += part;
        len -= part;
    }
    return true;
}

/* @return how many bytes of data were taken; 0: a word is lost */
static uint32_t take_data(struct pdu_follow *follow, struct pdu_places *places,
                          const struct pdu_memory *memory, const uint8_t *data,
                          uint32_t len)
{
    uint32_t taken = MIN(len, follow->left);

    if (follow->has_data_digest) {
        follow->crc = crc32c_update(follow->crc, data, taken);
    }
    if (follow->place != PDU_NO_PLACE) {
        if (!place_data(&places->all[follow->place], memory, data, taken)) {
            return 0;
        }
        memory->consume(memory->ctx, taken);
    } else {
        if (!memory->store(memory->ctx, follow->header[HLEN] + follow->stored,
                           data, taken)) {
            return 0;
        }
        follow->stored += taken;
    }
    follow->left -= taken;
    if (follow->left == 0) {
        if (follow->has_data_digest) {
            follow->state = PDU_FOLLOW_DIGEST;
            follow->have = 0;
        } else if (!end_pdu(follow, places, memory, true)) {
            return 0;
        }
    }
    return taken;
}

static uint32_t take_digest(struct pdu_follow *follow,
                            struct pdu_places *places,
                            const struct pdu_memory *memory,
                            const uint8_t *data, uint32_t len)
{
    uint32_t taken = MIN(len, (uint32_t)(DIGEST_LEN - follow->have));

    memcpy(follow->trailer + follow->have, data, taken);
    follow->have = (uint8_t)(follow->have + taken);
    if (follow->have == DIGEST_LEN &&
        !end_pdu(follow, places, memory,
                 get_le32(follow->trailer) == follow->crc)) {
        return 0;
    }
    return taken;
}

uint32_t pdu_follow_take(struct pdu_follow *follow, struct pdu_places *places,
                         const struct pdu_memory *memory, const uint8_t *data,
                         uint32_t len)
{
    uint32_t done = 0;
    uint32_t taken = 1;

    while (done != len && taken != 0) {
        switch ((enum pdu_follow_state)follow->state) {
        case PDU_FOLLOW_OFF:
            return done;
        case PDU_FOLLOW_HEADER:
            taken =
                take_header(follow, places, memory, data + done, len - done);
            break;
        case PDU_FOLLOW_DATA:
            taken = take_data(follow, places, memory, data + done, len - done);
            break;
        case PDU_FOLLOW_DIGEST:
            taken =
                take_digest(follow, places, memory, data + done, len - done);
            break;
        case PDU_FOLLOW_DEAF:
            taken = len - done;
            memory->consume(memory->ctx, taken);
            break;
        }
        done += taken;
    }
    return len; /* what comes after a lost word is lost, too */
}

uint8_t pdu_follow_begun(const struct pdu_follow *follow)
{
    if (follow->state == PDU_FOLLOW_OFF || follow->state == PDU_FOLLOW_DEAF ||
        (follow->state == PDU_FOLLOW_HEADER && follow->have == 0)) {
        return TOE_BEGUN_NOTHING;
    }
    return follow->place != PDU_NO_PLACE ? TOE_BEGUN_PLACED : TOE_BEGUN_PDU;
}

/* ---- What is sent. */

static void add_digest(uint8_t *data, uint32_t len, uint32_t crc, uint32_t from)
{
    for (uint32_t i = 0; i < len; i++) {
        data[i] ^= (uint8_t)(crc >> 8 * (from + i));
    }
}

/* The parts of a PDU that is sent.  Bytes before its data are padding. */
enum part_kind { PART_HEADER, PART_DATA, PART_DIGEST, PART_OTHER };

struct part {
    enum part_kind kind;
    uint32_t begin, end;
};

/* Whatever PLEN is, a PDU has its header. */
static uint32_t sent_plen(const struct pdu_fill *fill)
{
    uint32_t hlen = MAX(fill->head[HLEN], (uint8_t)HEAD_LEN);

    return MAX(get_le32(fill->head + PLEN), hlen);
}

/* @return the part in which the next byte is */
static struct part find_part(const struct pdu_fill *fill)
{
    const uint8_t *head = fill->head;
    uint8_t flags = head[TYPE] < TYPE_CAPSULE_CMD ? 0 : head[FLAGS];
    uint32_t hlen = MAX(head[HLEN], (uint8_t)HEAD_LEN);
    uint32_t plen = sent_plen(fill);
    uint32_t after =
        hlen + ((flags & FLAG_HEADER_DIGEST) != 0 ? (uint32_t)DIGEST_LEN : 0);
    uint32_t begin = MAX((uint32_t)head[PDO], after);
    uint32_t end = plen;

    if (fill->at < HEAD_LEN) {
        return (struct part){PART_HEADER, 0, HEAD_LEN};
    }
    if (fill->at < hlen) {
        return (struct part){PART_HEADER, 0, hlen};
    }
    if (fill->at < after) {
        return (struct part){PART_DIGEST, hlen, MIN(after, plen)};
    }
    if ((flags & FLAG_DATA_DIGEST) == 0 || plen < begin + DIGEST_LEN) {
        return (struct part){PART_OTHER, after, plen};
    }
    end -= DIGEST_LEN;
    if (fill->at < begin) {
        return (struct part){PART_OTHER, after, begin};
    }
    return fill->at < end ? (struct part){PART_DATA, begin, end}
                          : (struct part){PART_DIGEST, end, plen};
}

void pdu_fill_digests(struct pdu_fill *fill, uint8_t *data, uint32_t len)
{
    while (len != 0) {
        struct part part = find_part(fill);
        uint32_t taken = MIN(part.end - fill->at, len);

        if (part.kind == PART_DIGEST) {
            add_digest(data, taken, fill->crc, fill->at - part.begin);
        } else if (part.kind != PART_OTHER) {
            fill->crc = fill->at == part.begin ? 0 : fill->crc;
            fill->crc = crc32c_update(fill->crc, data, taken);
        }
        if (fill->at < HEAD_LEN) {
            memcpy(fill->head + fill->at, data, taken);
        }
        fill->at += taken;
        data += taken;
        len -= taken;
        if (fill->at >= HEAD_LEN && fill->at >= sent_plen(fill)) {
            *fill = (struct pdu_fill){0};
        }
    }
}
