/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/persistent_event.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/util.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"
#include "nvmeof/wire/opcode.h"

enum {
    HEADER_REST_FROM = 20,   /* PEL_HEADER_REST counts from here */
    PEL_EVENT_REST_FROM = 3, /* PEL_EVENT_HEADER_REST counts from here */
    SN_LEN = ID_CTRL_MN - ID_CTRL_SN,
    MN_LEN = ID_CTRL_FR - ID_CTRL_MN,
    SUBNQN_LEN = PEL_GENERATION - PEL_SUBNQN,
};

void pel_header_emit(uint8_t *buf, const struct pel_header *header)
{
    memset(buf, 0, PEL_HEADER_LEN);
    buf[PEL_LID] = LOG_PERSISTENT_EVENT;
    put_le32(buf + PEL_EVENTS, header->events);
    put_le64(buf + PEL_LENGTH, header->length);
    buf[PEL_REVISION] = header->revision;
    put_le16(buf + PEL_HEADER_REST, PEL_HEADER_LEN - HEADER_REST_FROM);
    log_timestamp_emit(buf + PEL_TIMESTAMP, header->time_ms, header->has_time);
    put_le64(buf + PEL_POWER_ON_HOURS, header->power_on_hours);
    put_le64(buf + PEL_POWER_CYCLES, header->power_cycles);
    put_le16(buf + PEL_VID, header->vid);
    put_le16(buf + PEL_SSVID, header->ssvid);
    identify_put_ascii(buf + PEL_SN, header->sn, SN_LEN);
    identify_put_ascii(buf + PEL_MN, header->mn, MN_LEN);
    memcpy(buf + PEL_SUBNQN, header->subnqn,
           MIN(strlen(header->subnqn), (size_t)SUBNQN_LEN));
    put_le16(buf + PEL_GENERATION, header->generation);
    put_le32(buf + PEL_CONTEXT, header->context);
    put_le32(buf + PEL_SUPPORTED, header->supported);
    buf[PEL_SUPPORTED + PEL_TYPE_VENDOR / 8] = 1 << PEL_TYPE_VENDOR % 8;
}

void pel_event_emit(uint8_t *buf, const struct pel_event *header)
{
    memset(buf, 0, PEL_EVENT_HEADER_LEN);
    buf[PEL_EVENT_TYPE] = header->type;
    buf[PEL_EVENT_TYPE_REVISION] = 1;
    buf[PEL_EVENT_HEADER_REST] = PEL_EVENT_HEADER_LEN - PEL_EVENT_REST_FROM;
    buf[PEL_EVENT_PORT_TYPE] = header->has_port ? PEL_EVENT_PORT_TYPE_SUBSYSTEM
                                                : PEL_EVENT_PORT_TYPE_NONE;
    put_le16(buf + PEL_EVENT_CNTLID, header->cntlid);
    put_le64(buf + PEL_EVENT_TIMESTAMP, header->time_ms & LOG_TIMESTAMP_MASK);
    put_le16(buf + PEL_EVENT_PORT, header->has_port ? header->portid : 0);
    put_le16(buf + PEL_EVENT_LENGTH, header->len);
}

size_t pel_vendor_emit(uint8_t *buf, uint16_t code, enum pel_vendor_type type,
                       const void *data, uint16_t len)
{
    put_le16(buf + PEL_VENDOR_CODE, code);
    buf[PEL_VENDOR_DATA_TYPE] = (uint8_t)type;
    buf[PEL_VENDOR_UUID_INDEX] = 0;
    put_le16(buf + PEL_VENDOR_LENGTH, len);
    memcpy(buf + PEL_VENDOR_DATA, data, len);
    return PEL_VENDOR_DATA + (size_t)len;
}

uint32_t pel_event_len(const uint8_t *buf, uint32_t len)
{
    uint32_t data_len;

    if (len < PEL_EVENT_HEADER_LEN ||
        buf[PEL_EVENT_HEADER_REST] !=
            PEL_EVENT_HEADER_LEN - PEL_EVENT_REST_FROM) {
        return 0;
    }
    data_len = get_le16(buf + PEL_EVENT_LENGTH);
    return data_len <= PEL_EVENT_DATA_MAX &&
                   PEL_EVENT_HEADER_LEN + data_len <= len
               ? PEL_EVENT_HEADER_LEN + data_len
               : 0;
}
