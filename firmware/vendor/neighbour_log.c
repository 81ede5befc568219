/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/vendor/neighbour_log.h"

#include <string.h>

#include "lib/bytes.h"

enum { /* byte offsets in the header; little-endian */
       HEADER_VERSION = 0,
       HEADER_PLACES = 2,
       HEADER_PLACE_LEN = 4,
       /* 64 bits each, all counters of port 0, then those of port 1. */
       HEADER_COUNTERS = 16,
       VERSION = 1,
};

enum { /* byte offsets in a place */
       PLACE_USED = 0,
       PLACE_PORT = 1,
       PLACE_TTL_LEFT = 2,
       PLACE_CHASSIS_SUBTYPE = 4,
       PLACE_CHASSIS_LEN = 5,
       PLACE_PORT_SUBTYPE = 6,
       PLACE_PORT_LEN = 7,
       PLACE_CAPABILITIES = 8,
       PLACE_ENABLED = 10,
       PLACE_PVID = 12,
       PLACE_MAX_FRAME = 14,
       PLACE_MAU_TYPE = 16,
       PLACE_AUTONEG = 18,
       PLACE_ADDRESSES = 19,
       PLACE_CHASSIS_ID = 24,
       PLACE_PORT_ID = 88,
       PLACE_PORT_DESCRIPTION = 152,
       PLACE_SYSTEM_NAME = 216,
       PLACE_SYSTEM_DESCRIPTION = 280,
       PLACE_ADDRESS = 440,
       PLACE_RESERVED = 504,
       ADDRESS_LEN = 16,
};
_Static_assert(PLACE_ADDRESS + LLDP_MANAGEMENTS * ADDRESS_LEN == PLACE_RESERVED,
               "all addresses have room");

static void build_header(const struct lldp_agent *agent, uint8_t *page)
{
    uint8_t *at = page + HEADER_COUNTERS;

    put_le16(page + HEADER_VERSION, VERSION);
    put_le16(page + HEADER_PLACES, NEIGHBOUR_LOG_PLACES);
    put_le16(page + HEADER_PLACE_LEN, NEIGHBOUR_LOG_PART);
    for (uint8_t port = 0; port < NET_PORTS; port++) {
        for (unsigned int i = 0; i < LLDP_COUNTERS; i++) {
            put_le64(at, lldp_counter_read(agent, port, (enum lldp_counter)i));
            at += 8;
        }
    }
}

/*
 * Copy a text, cut to `room`.
 * @return its length
 */
static uint8_t put_text(uint8_t *at, size_t room, const struct lldp_text *text)
{
    size_t len = MIN(room, text->len_bytes);

    if (text->bytes != NULL) {
        memcpy(at, text->bytes, len);
    }
    return (uint8_t)len;
}

static void put_texts(const struct lldp *lldp, uint8_t *page)
{
    page[PLACE_CHASSIS_SUBTYPE] = lldp->chassis.subtype;
    page[PLACE_CHASSIS_LEN] =
        put_text(page + PLACE_CHASSIS_ID, PLACE_PORT_ID - PLACE_CHASSIS_ID,
                 &lldp->chassis.value);
    page[PLACE_PORT_SUBTYPE] = lldp->port.subtype;
    page[PLACE_PORT_LEN] =
        put_text(page + PLACE_PORT_ID, PLACE_PORT_DESCRIPTION - PLACE_PORT_ID,
                 &lldp->port.value);
    put_text(page + PLACE_PORT_DESCRIPTION,
             PLACE_SYSTEM_NAME - PLACE_PORT_DESCRIPTION,
             &lldp->port_description);
    put_text(page + PLACE_SYSTEM_NAME,
             PLACE_SYSTEM_DESCRIPTION - PLACE_SYSTEM_NAME, &lldp->system_name);
    put_text(page + PLACE_SYSTEM_DESCRIPTION,
             PLACE_ADDRESS - PLACE_SYSTEM_DESCRIPTION,
             &lldp->system_description);
}

void neighbour_log_build(const struct lldp_agent *agent, uint64_t now_us,
                         uint32_t part, uint8_t *page)
{
    uint8_t port = (uint8_t)((part - 1) / LLDP_NEIGHBOURS);
    struct lldp lldp;
    uint32_t left_s;

    memset(page, 0, NEIGHBOUR_LOG_PART);
    if (part == 0) {
        build_header(agent, page);
        return;
    }
    if (port >= NET_PORTS ||
        !lldp_neighbour_read(agent, port, (part - 1) % LLDP_NEIGHBOURS, now_us,
                             &lldp, &left_s)) {
        return;
    }
    page[PLACE_USED] = 1;
    page[PLACE_PORT] = port;
    /* The TTL field has 16 bits. */
    put_le16(page + PLACE_TTL_LEFT, (uint16_t)left_s);
    put_texts(&lldp, page);
    put_le16(page + PLACE_CAPABILITIES, lldp.capabilities);
    put_le16(page + PLACE_ENABLED, lldp.capabilities_enabled);
    put_le16(page + PLACE_PVID, lldp.pvid);
    put_le16(page + PLACE_MAX_FRAME, lldp.max_frame);
    put_le16(page + PLACE_MAU_TYPE, lldp.mau_type);
    page[PLACE_AUTONEG] = lldp.autoneg;
    page[PLACE_ADDRESSES] = lldp.management_count;
    for (size_t i = 0; i < lldp.management_count; i++) {
        memcpy(page + PLACE_ADDRESS + i * ADDRESS_LEN,
               lldp.management[i].ip.bytes, ADDRESS_LEN);
    }
}
