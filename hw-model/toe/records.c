/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw-model/toe/records.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/wipe.h"

enum {
    AT_TYPE = 0, /* of a record's header */
    AT_VERSION = 1,
    AT_LENGTH = 3,
    VERSION = 0x0303,
    BLOCK_LEN = 16,
};

/* RFC 8446 section 5.5: 2^24.5 records with 2^14 bytes. */
#define BLOCKS_MAX (UINT64_C(23726566) * (RECORD_PLAIN_MAX / BLOCK_LEN))

void record_half_begin(struct record_half *half, const struct record_aead *aead,
                       const uint8_t *key, size_t len, const uint8_t *iv,
                       uint64_t sequence)
{
    half->is_on = true;
    memcpy(half->iv, iv, sizeof(half->iv));
    half->sequence = sequence;
    half->blocks = 0;
    aead->set_key(&half->key, key, len);
}

bool record_half_is_spent(const struct record_half *half)
{
    return half->blocks >= BLOCKS_MAX || half->sequence == UINT64_MAX;
}

/* The nonce of the next record. */
static void next_nonce(struct record_half *half, uint32_t len, uint8_t *nonce)
{
    ASSERT(!record_half_is_spent(half));
    memcpy(nonce, half->iv, RECORD_IV_LEN);
    put_be64(nonce + 4, get_be64(nonce + 4) ^ half->sequence);
    half->sequence++;
    half->blocks += (len + BLOCK_LEN - 1) / BLOCK_LEN;
}

/* ---- Received. */

/* @return the alert for these bytes of a header */
static enum record_alert header_check(const uint8_t *header)
{
    uint16_t len = get_be16(header + AT_LENGTH);

    if (header[AT_TYPE] != RECORD_DATA) {
        return RECORD_UNEXPECTED;
    }
    if (header[AT_VERSION] != VERSION >> 8) {
        return RECORD_VERSION;
    }
    if (len > RECORD_CIPHER_MAX) {
        return RECORD_OVERFLOW;
    }
    return len < RECORD_OVERHEAD ? RECORD_BAD_MAC : RECORD_FINE;
}

/* Decrypt a whole record where it is.
 * @param len  that of its content, without padding */
static enum record_alert record_open(struct record_half *half,
                                     const struct record_aead *aead,
                                     uint8_t *record, uint32_t *len)
{
    uint32_t inner = get_be16(record + AT_LENGTH) - (uint32_t)RECORD_TAG_LEN;
    uint8_t *content = record + RECORD_HEADER_LEN;
    uint8_t nonce[RECORD_IV_LEN];

    if (record_half_is_spent(half)) {
        return RECORD_INTERNAL;
    }
    next_nonce(half, inner, nonce);
    if (!aead->open(&half->key, nonce, record, RECORD_HEADER_LEN, content,
                    inner, content + inner)) {
        return RECORD_BAD_MAC;
    }
    while (inner != 0 && content[inner - 1] == 0) {
        inner--;
    }
    if (inner == 0) {
        return RECORD_UNEXPECTED; /* padding only: RFC 8446 section 5.4 */
    }
    *len = inner - 1;
    return *len > RECORD_PLAIN_MAX ? RECORD_OVERFLOW : RECORD_FINE;
}

static void hold_stream(struct records_rx *rx, uint8_t type,
                        const uint8_t *content, uint32_t len)
{
    rx->is_held = true;
    rx->note = (struct record_note){.type = type, .len_bytes = (uint16_t)len};
    memcpy(rx->note.head, content, MIN(len, (uint32_t)RECORD_HEAD_LEN));
}

/* Take the record at this place, if it is complete.  @return its length */
static uint32_t take_record(struct records_rx *rx,
                            const struct record_aead *aead,
                            const struct records_sink *sink, uint32_t at)
{
    uint8_t *record = rx->bytes + at;
    const uint8_t *content = record + RECORD_HEADER_LEN;
    enum record_alert alert;
    uint32_t whole;
    uint32_t len;

    if (rx->have - at < RECORD_HEADER_LEN) {
        return 0;
    }
    alert = header_check(record);
    whole = RECORD_HEADER_LEN + (uint32_t)get_be16(record + AT_LENGTH);
    if (alert == RECORD_FINE) {
        if (rx->have - at < whole) {
            return 0;
        }
        alert = record_open(&rx->half, aead, record, &len);
    }
    if (alert != RECORD_FINE) {
        rx->alert = (uint8_t)alert;
        return rx->have - at;
    }
    if (content[len] == RECORD_DATA) {
        sink->consume(sink->ctx, whole - len);
        if (len != 0) {
            sink->deliver(sink->ctx, content, len);
        }
    } else {
        sink->consume(sink->ctx, whole);
        hold_stream(rx, content[len], content, len);
    }
    return whole;
}

static void take_records(struct records_rx *rx, const struct record_aead *aead,
                         const struct records_sink *sink)
{
    uint32_t at = 0;
    uint32_t len = 0;

    while (!rx->is_held && rx->alert == RECORD_FINE &&
           (len = take_record(rx, aead, sink, at)) != 0) {
        at += len;
    }
    if (rx->alert != RECORD_FINE) {
        sink->consume(sink->ctx, len);
        at = rx->have;
    }
    /* What was decrypted does not stay. */
    memmove(rx->bytes, rx->bytes + at, rx->have - at);
    wipe_bytes(rx->bytes + rx->have - at, at);
    rx->have -= at;
}

void records_keep(struct records_rx *rx, const uint8_t *data, uint32_t len)
{
    ASSERT(len <= sizeof(rx->bytes) - rx->have);
    memcpy(rx->bytes + rx->have, data, len);
    rx->have += len;
}

void records_take(struct records_rx *rx, const struct record_aead *aead,
                  const struct records_sink *sink, const uint8_t *data,
                  uint32_t len)
{
    if (rx->alert != RECORD_FINE) {
        sink->consume(sink->ctx, len);
        return;
    }
    records_keep(rx, data, len);
    take_records(rx, aead, sink);
}

void records_resume(struct records_rx *rx, const struct record_aead *aead,
                    const struct records_sink *sink)
{
    rx->is_held = false;
    take_records(rx, aead, sink);
}

/* ---- Sent. */

uint32_t records_room(const struct records_tx *tx)
{
    uint32_t room = RECORDS_TX_LEN - (uint32_t)(tx->made - tx->acked);
    uint32_t overhead = RECORD_HEADER_LEN + RECORD_OVERHEAD;

    return room <= overhead ? 0
                            : MIN(room - overhead, (uint32_t)RECORD_PLAIN_MAX);
}

void records_seal(struct records_tx *tx, const struct record_aead *aead,
                  enum record_type type, uint8_t *record, uint32_t len)
{
    uint8_t *content = record + RECORD_HEADER_LEN;
    uint32_t whole = RECORD_HEADER_LEN + len + RECORD_OVERHEAD;
    uint32_t at = (uint32_t)(tx->made % RECORDS_TX_LEN);
    uint32_t part = MIN(whole, RECORDS_TX_LEN - at);
    uint8_t nonce[RECORD_IV_LEN];

    ASSERT(len <= records_room(tx));
    record[AT_TYPE] = RECORD_DATA;
    put_be16(record + AT_VERSION, VERSION);
    put_be16(record + AT_LENGTH, (uint16_t)(len + RECORD_OVERHEAD));
    content[len] = (uint8_t)type;
    next_nonce(&tx->half, len + 1, nonce);
    aead->seal(&tx->half.key, nonce, record, RECORD_HEADER_LEN, content,
               len + 1, content + len + 1);
    memcpy(tx->bytes + at, record, part);
    memcpy(tx->bytes, record + part, whole - part);
    tx->made += whole;
}
