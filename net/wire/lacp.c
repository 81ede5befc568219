/* SPDX-License-Identifier: BSD-2-Clause */
/* LACPDUs and marker PDUs: see lacp.h. */
#include "net/wire/lacp.h"

#include "lib/bytes.h"

enum { /* of TLVs */
       TLV_TYPE = 0,
       TLV_LENGTH = 1, /* type and length included */
       TYPE_ACTOR = 1,
       TYPE_PARTNER = 2,
       TYPE_COLLECTOR = 3,
       TYPE_MARKER = 1,
       TYPE_MARKER_RESPONSE = 2,
       INFO_SYSTEM_PRIORITY = 2,
       INFO_SYSTEM = 4,
       INFO_KEY = 10,
       INFO_PORT_PRIORITY = 12,
       INFO_PORT = 14,
       INFO_STATE = 16,
       INFO_LEN = 20,
       COLLECTOR_DELAY = 2,
       COLLECTOR_LEN = 16,
       MARKER_TLV_LEN = 16,
};

_Static_assert(LACP_ACTOR + INFO_LEN == LACP_PARTNER, "IEEE 802.1AX 5.4.2");
_Static_assert(LACP_PARTNER + INFO_LEN == LACP_COLLECTOR, "the same");
_Static_assert(LACP_COLLECTOR + COLLECTOR_LEN == LACP_TERMINATOR, "the same");
_Static_assert(MARKER_TLV + MARKER_TLV_LEN == MARKER_TERMINATOR, "5.5.2");

const struct mac_addr slow_group = {{0x01, 0x80, 0xc2, 0x00, 0x00, 0x02}};

static void info_parse(struct lacp_info *info, const uint8_t *tlv)
{
    info->system_priority = get_be16(tlv + INFO_SYSTEM_PRIORITY);
    memcpy(info->system.bytes, tlv + INFO_SYSTEM, sizeof(info->system.bytes));
    info->key = get_be16(tlv + INFO_KEY);
    info->port_priority = get_be16(tlv + INFO_PORT_PRIORITY);
    info->port = get_be16(tlv + INFO_PORT);
    info->state = tlv[INFO_STATE];
}

static void info_emit(const struct lacp_info *info, uint8_t type, uint8_t *tlv)
{
    tlv[TLV_TYPE] = type;
    tlv[TLV_LENGTH] = INFO_LEN;
    put_be16(tlv + INFO_SYSTEM_PRIORITY, info->system_priority);
    memcpy(tlv + INFO_SYSTEM, info->system.bytes, sizeof(info->system.bytes));
    put_be16(tlv + INFO_KEY, info->key);
    put_be16(tlv + INFO_PORT_PRIORITY, info->port_priority);
    put_be16(tlv + INFO_PORT, info->port);
    tlv[INFO_STATE] = info->state;
}

static bool is_slow(const uint8_t *buf, size_t len, uint8_t subtype)
{
    return len >= SLOW_LEN && buf[SLOW_SUBTYPE] == subtype;
}

bool lacp_parse(struct lacp *lacp, const uint8_t *buf, size_t len)
{
    if (!is_slow(buf, len, SLOW_LACP) ||
        buf[LACP_ACTOR + TLV_LENGTH] != INFO_LEN ||
        buf[LACP_PARTNER + TLV_LENGTH] != INFO_LEN ||
        buf[LACP_COLLECTOR + TLV_LENGTH] != COLLECTOR_LEN ||
        buf[LACP_TERMINATOR + TLV_LENGTH] != 0) {
        return false;
    }
    info_parse(&lacp->actor, buf + LACP_ACTOR);
    info_parse(&lacp->partner, buf + LACP_PARTNER);
    lacp->max_delay = get_be16(buf + LACP_COLLECTOR + COLLECTOR_DELAY);
    return true;
}

void lacp_emit(const struct lacp *lacp, uint8_t *buf)
{
    memset(buf, 0, SLOW_LEN);
    buf[SLOW_SUBTYPE] = SLOW_LACP;
    buf[SLOW_VERSION] = SLOW_VERSION_1;
    info_emit(&lacp->actor, TYPE_ACTOR, buf + LACP_ACTOR);
    info_emit(&lacp->partner, TYPE_PARTNER, buf + LACP_PARTNER);
    buf[LACP_COLLECTOR + TLV_TYPE] = TYPE_COLLECTOR;
    buf[LACP_COLLECTOR + TLV_LENGTH] = COLLECTOR_LEN;
    put_be16(buf + LACP_COLLECTOR + COLLECTOR_DELAY, lacp->max_delay);
}

bool marker_parse(struct marker *marker, const uint8_t *buf, size_t len)
{
    if (!is_slow(buf, len, SLOW_MARKER) ||
        (buf[MARKER_TLV + TLV_TYPE] != TYPE_MARKER &&
         buf[MARKER_TLV + TLV_TYPE] != TYPE_MARKER_RESPONSE) ||
        buf[MARKER_TLV + TLV_LENGTH] != MARKER_TLV_LEN) {
        return false;
    }
    marker->is_response = buf[MARKER_TLV + TLV_TYPE] == TYPE_MARKER_RESPONSE;
    marker->port = get_be16(buf + MARKER_PORT);
    memcpy(marker->system.bytes, buf + MARKER_SYSTEM,
           sizeof(marker->system.bytes));
    marker->transaction = get_be32(buf + MARKER_TRANSACTION);
    return true;
}

void marker_emit(const struct marker *marker, uint8_t *buf)
{
    memset(buf, 0, SLOW_LEN);
    buf[SLOW_SUBTYPE] = SLOW_MARKER;
    buf[SLOW_VERSION] = SLOW_VERSION_1;
    buf[MARKER_TLV + TLV_TYPE] =
        marker->is_response ? TYPE_MARKER_RESPONSE : TYPE_MARKER;
    buf[MARKER_TLV + TLV_LENGTH] = MARKER_TLV_LEN;
    put_be16(buf + MARKER_PORT, marker->port);
    memcpy(buf + MARKER_SYSTEM, marker->system.bytes,
           sizeof(marker->system.bytes));
    put_be32(buf + MARKER_TRANSACTION, marker->transaction);
}
