/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections whose streams of PDUs the TCP offload engine follows.
 * Reference: docs/hardware/toe.md, section 4.2.
 */
#include "hw-model/toe/hw_toe_internal.h"

#include <string.h>

_Static_assert((int)TOE_PLACES == (int)PDU_PLACES &&
                   (int)TOE_PLACE_PIECES == (int)PDU_PLACE_PIECES,
               "see pdu_follow.h");
_Static_assert(TOE_PLACE_PIECE + TOE_PIECES_MAX * TOE_PIECE_LEN <= TOE_CMD_LEN,
               "the pieces fit into a command");
_Static_assert((1 << TOE_RING_LOG2_MIN) >= 2 * TOE_PDU_STOP_LEN,
               "the mark has room");

enum {
    PROGRESS_US = 1000000, /* between two DATA that report no bytes */
    /* Of a ring: a capsule that is not complete fills a third of it at most. */
    RING_MIN = 4 * TOE_CAPSULE_MAX,
};

void hw_toe_follow_reset(struct hw_toe *toe)
{
    memset(toe->follows, 0, sizeof(toe->follows));
    pdu_places_init(&toe->places);
}

void hw_toe_follow_end(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    struct hw_toe_follow *follow = hw_toe_follow_of(toe, conn);

    pdu_follow_end(&follow->stream, &toe->places, PDU_FOLLOW_OFF);
    *follow = (struct hw_toe_follow){.absent = follow->absent};
}

void hw_toe_follow_close(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    if (hw_toe_is_followed(toe, conn)) {
        pdu_follow_end(&hw_toe_follow_of(toe, conn)->stream, &toe->places,
                       PDU_FOLLOW_DEAF);
    }
}

/* ---- What the stream's bytes go to. */

struct target {
    struct hw_toe *toe;
    struct hw_toe_conn *conn;
};

static bool write_bytes(const struct target *to, uint64_t addr,
                        const uint8_t *data, uint32_t len)
{
    struct hw_toe *toe = to->toe;
    uint8_t *memory = toe->env.dma_write(toe->env.ctx, addr, len);

    if (memory == NULL) {
        hw_toe_conn_lose(toe, to->conn);
        return false;
    }
    memcpy(memory, data, len);
    return true;
}

static bool place_bytes(void *ctx, uint64_t addr, const uint8_t *data,
                        uint32_t len)
{
    return write_bytes(ctx, addr, data, len);
}

static bool store_bytes(void *ctx, uint32_t at, const uint8_t *data,
                        uint32_t len)
{
    const struct target *to = ctx;
    uint32_t size = hw_toe_ring_bytes(to->toe);
    uint64_t from = to->conn->received + at;

    while (len != 0) {
        uint32_t offset = (uint32_t)from & (size - 1);
        uint32_t part = MIN(len, size - offset);

        if (!write_bytes(to, to->conn->ring + offset, data, part)) {
            return false;
        }
        from += part;
        data += part;
        len -= part;
    }
    return true;
}

static void publish_bytes(void *ctx, uint32_t len)
{
    const struct target *to = ctx;

    to->conn->received += len;
}

static void consume_bytes(void *ctx, uint32_t len)
{
    const struct target *to = ctx;

    hw_toe_follow_of(to->toe, to->conn)->consumed += len;
    hw_toe_follow_of(to->toe, to->conn)->absent += len;
}

/* Firmware waits for a peer as long as it sends, so it is told sometimes. */
static void note_progress(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    struct hw_toe_follow *follow = hw_toe_follow_of(toe, conn);
    bool is_late = hw_toe_now_us(toe) - follow->reported_us >= PROGRESS_US;
    bool is_new = pdu_follow_begun(&follow->stream) != follow->begun;

    follow->has_progress |=
        (is_late || is_new) && follow->stream.state != PDU_FOLLOW_DEAF;
}

uint32_t hw_toe_follow_take(struct hw_toe *toe, struct hw_toe_conn *conn,
                            const uint8_t *data, uint32_t len)
{
    struct target to = {toe, conn};
    const struct pdu_memory memory = {
        .ctx = &to,
        .store = store_bytes,
        .place = place_bytes,
        .publish = publish_bytes,
        .consume = consume_bytes,
    };
    uint32_t taken = pdu_follow_take(&hw_toe_follow_of(toe, conn)->stream,
                                     &toe->places, &memory, data, len);

    if (!hw_toe_is_followed(toe, conn)) {
        /* The mark in the ring is no byte of the peer's. */
        hw_toe_follow_of(toe, conn)->absent -= TOE_PDU_STOP_LEN;
    }
    note_progress(toe, conn);
    hw_toe_conn_due(toe, conn);
    hw_toe_rdma_due(toe, conn); /* hw_toe_follow_settle() */
    return taken;
}

void hw_toe_follow_settle(struct hw_toe *toe, const struct hw_toe_conn *conn)
{
    struct hw_toe_follow *follow = hw_toe_follow_of(toe, conn);

    if (conn->is_lost) {
        follow->consumed = 0; /* net/tcp did not take the segment */
    }
    if (follow->consumed != 0 && conn->id != TCP_NO_ID) {
        tcp_consume(toe->tcp, conn->id, follow->consumed, hw_toe_now_us(toe));
    }
    follow->consumed = 0;
}

void hw_toe_follow_send(struct hw_toe *toe, struct hw_toe_conn *conn,
                        const struct hw_toe_send *send)
{
    struct pdu_follow *stream = &hw_toe_follow_of(toe, conn)->stream;

    /* A record of another type has no part of a PDU. */
    if (!stream->fills || send->record != 0 ||
        (!stream->has_header_digest && !stream->has_data_digest)) {
        return;
    }
    for (unsigned int i = 0; i < send->count; i++) {
        const struct hw_toe_piece *piece = &send->pieces[i];
        uint8_t *data =
            toe->env.dma(toe->env.ctx, piece->addr, piece->len_bytes);

        if (data == NULL) {
            hw_toe_conn_lose(toe, conn);
            return;
        }
        pdu_fill_digests(&stream->fill, data, piece->len_bytes);
    }
}

/* ---- Commands. */

enum toe_status hw_toe_follow_run(struct hw_toe *toe, struct hw_toe_conn *conn,
                                  const uint8_t *cmd)
{
    uint32_t len = get_le32(cmd + TOE_CMD_LENGTH);
    uint8_t flags = cmd[TOE_FOLLOW_FLAGS];
    struct hw_toe_follow *follow;
    uint64_t absent; /* stays: what records have added */

    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if (conn->state == TOE_SLOT_ENDED) {
        return TOE_ENDED;
    }
    if (conn->state != TOE_SLOT_OPEN || conn->is_rdma || conn->is_deaf ||
        conn->has_close || conn->abort_due || conn->is_lost ||
        hw_toe_follow_of(toe, conn)->stream.fills ||
        conn->received - conn->credited != len) {
        return TOE_BAD_STATE;
    }
    if (len < TOE_PDU_STOP_LEN || hw_toe_ring_bytes(toe) < RING_MIN ||
        conn->reported != conn->received ||
        (flags & ~(TOE_FOLLOW_HEADER_DIGEST | TOE_FOLLOW_DATA_DIGEST)) != 0) {
        return TOE_BAD_ARGUMENT;
    }
    follow = hw_toe_follow_of(toe, conn);
    absent = follow->absent;
    *follow = (struct hw_toe_follow){0};
    follow->absent = absent;
    pdu_follow_begin(&follow->stream, flags & TOE_FOLLOW_HEADER_DIGEST,
                     flags & TOE_FOLLOW_DATA_DIGEST);
    /* The mark where following stops is no byte of the peer's: its room is kept
     * out of the window. */
    conn->credited = conn->received;
    tcp_consume(toe->tcp, conn->id, len - TOE_PDU_STOP_LEN, hw_toe_now_us(toe));
    return TOE_OK;
}

/* @return whether all pieces of PLACE are in DRAM */
static bool read_pieces(const struct hw_toe *toe, const uint8_t *cmd,
                        struct pdu_place *place)
{
    for (uint8_t i = 0; i < place->count; i++) {
        const uint8_t *piece = cmd + TOE_PLACE_PIECE + i * TOE_PIECE_LEN;

        place->pieces[i].addr = get_le64(piece + TOE_PIECE_ADDR);
        place->pieces[i].len_bytes = get_le32(piece + TOE_PIECE_LENGTH);
        if (!toe->env.is_dram(toe->env.ctx, place->pieces[i].addr,
                              place->pieces[i].len_bytes)) {
            return false;
        }
    }
    return true;
}

enum toe_status hw_toe_place_run(struct hw_toe *toe,
                                 const struct hw_toe_conn *conn,
                                 const uint8_t *cmd)
{
    struct pdu_place place = {
        .ttag = get_le16(cmd + TOE_PLACE_TTAG),
        .cccid = get_le16(cmd + TOE_PLACE_CCCID),
        .offset = get_le32(cmd + TOE_PLACE_OFFSET),
        .count = cmd[TOE_PLACE_COUNT],
    };
    struct pdu_follow *stream;
    const struct pdu_place *found;

    if (conn == NULL) {
        return TOE_BAD_TID;
    }
    if (conn->state != TOE_SLOT_OPEN && conn->state != TOE_SLOT_ENDED) {
        return TOE_BAD_STATE;
    }
    if (place.count == 0 || place.count > TOE_PIECES_MAX) {
        return TOE_BAD_ARGUMENT;
    }
    if (!read_pieces(toe, cmd, &place)) {
        return TOE_BAD_ADDRESS;
    }
    for (uint8_t i = 0; i < place.count; i++) {
        if (place.pieces[i].len_bytes == 0 ||
            place.pieces[i].len_bytes > TOE_SEND_MAX) {
            return TOE_BAD_ARGUMENT;
        }
    }
    stream = &hw_toe_follow_of(toe, conn)->stream;
    if (!pdu_follow_is_on(stream) || stream->state == PDU_FOLLOW_DEAF) {
        return TOE_OK; /* it has stopped: firmware gets all bytes */
    }
    found = pdu_place_find(stream, &toe->places, place.ttag);
    if (found != NULL &&
        (found->done != 0 || pdu_place_is_coming(stream, &toe->places, found) ||
         found->cccid != place.cccid || found->offset != place.offset)) {
        return TOE_BAD_STATE;
    }
    return pdu_place_add(stream, &toe->places, &place) != NULL ? TOE_OK
                                                               : TOE_NO_ROOM;
}
