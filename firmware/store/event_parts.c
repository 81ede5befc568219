/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/store/event_parts.h"

#include "lib/bytes.h"

#include <string.h>

enum {                  /* byte offsets in a record */
       PART_NUMBER = 0, /* 4 bytes: of the event, from 1 */
       PART_LEN = 4,    /* 2 bytes: of the event */
       PART_INDEX = 6,  /* 1 byte: of the record, from 0 */
       PART_BYTES = 8,  /* of the event, as in the log page, then zeroes */

       HEAD_NUMBER = 0, /* in struct event_records */
       HEAD_LEN = 4,
};
_Static_assert((int)PART_BYTES + (int)EVENT_PART_BYTES == (int)RECORD_DATA_LEN,
               "a part fills a record");

unsigned int event_part_count(uint16_t len)
{
    return (len + EVENT_PART_BYTES - 1u) / EVENT_PART_BYTES;
}

void event_part_emit(uint8_t *data, uint32_t number, const uint8_t *event,
                     uint16_t len, unsigned int part)
{
    size_t from = (size_t)part * EVENT_PART_BYTES;

    memset(data, 0, RECORD_DATA_LEN);
    put_le32(data + PART_NUMBER, number);
    put_le16(data + PART_LEN, len);
    data[PART_INDEX] = (uint8_t)part;
    memcpy(data + PART_BYTES, event + from,
           MIN(len - from, (size_t)EVENT_PART_BYTES));
}

/* Begin to put an event together. @return false when there is no room */
static bool begin_event(struct event_records *events, const uint8_t *data)
{
    uint8_t *head = events->bytes + events->used;
    uint16_t len = get_le16(data + PART_LEN);

    if (len == 0 || sizeof(events->bytes) - events->used <
                        EVENT_RECORDS_HEAD + (size_t)len) {
        return false;
    }
    put_le32(head + HEAD_NUMBER, get_le32(data + PART_NUMBER));
    put_le16(head + HEAD_LEN, len);
    return true;
}

void event_records_add(struct event_records *events, const uint8_t *data)
{
    uint8_t *head = events->bytes + events->used;
    unsigned int part = data[PART_INDEX];
    size_t from = (size_t)part * EVENT_PART_BYTES;
    uint16_t len;

    if (part == 0) {
        events->parts = 0;
        if (!begin_event(events, data)) {
            return;
        }
    } else if (events->parts != part ||
               get_le32(head + HEAD_NUMBER) != get_le32(data + PART_NUMBER) ||
               get_le16(head + HEAD_LEN) != get_le16(data + PART_LEN)) {
        events->parts = 0; /* parts before this one are lost */
        return;
    }
    len = get_le16(head + HEAD_LEN);
    memcpy(head + EVENT_RECORDS_HEAD + from, data + PART_BYTES,
           MIN(len - from, (size_t)EVENT_PART_BYTES));
    events->parts++;
    if (events->parts == event_part_count(len)) {
        events->used += EVENT_RECORDS_HEAD + (size_t)len;
        events->parts = 0;
    }
}

bool event_records_next(const struct event_records *events, size_t *at,
                        uint32_t *number, const uint8_t **event, uint16_t *len)
{
    const uint8_t *head = events->bytes + *at;

    if (*at >= events->used) {
        return false;
    }
    *number = get_le32(head + HEAD_NUMBER);
    *len = get_le16(head + HEAD_LEN);
    *event = head + EVENT_RECORDS_HEAD;
    *at += EVENT_RECORDS_HEAD + (size_t)*len;
    return true;
}
