/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/bmc/mctp.h"

#include <string.h>

#include "firmware/bmc/mi_check.h"

enum { /* byte offsets in a packet, after the address */
       PACKET_COMMAND = 0,
       PACKET_COUNT = 1,  /* bytes that follow, without the PEC */
       PACKET_SOURCE = 2, /* the address of the sender, with bit 0 set */
       PACKET_VERSION = 3,
       PACKET_TO_EID = 4,
       PACKET_FROM_EID = 5,
       PACKET_FLAGS = 6,
       PACKET_DATA = 7,
       PEC_LEN = 1,
       COMMAND_MCTP = 0x0f,
       SOURCE_IS_MCTP = 1,
       VERSION = 1,
       VERSION_MASK = 0xf,
       FLAG_SOM = 0x80,
       FLAG_EOM = 0x40,
       FLAG_TAG_OWNER = 0x08,
       SEQ_SHIFT = 4,
       TAG_MASK = 7,
};
_Static_assert(PACKET_DATA + MCTP_UNIT + PEC_LEN <= MCTP_PACKET_MAX,
               "a packet of the baseline transmission unit fits");

/* ---- Packets. */

/* The PEC covers the address on the bus, too. */
static uint8_t packet_pec(uint8_t to_addr, const uint8_t *bytes, size_t len)
{
    uint8_t target = (uint8_t)(to_addr << 1);

    return mi_pec(mi_pec(0, &target, 1), bytes, len);
}

enum mctp_parsed mctp_packet_parse(struct mctp_packet *packet, uint8_t to_addr,
                                   const uint8_t *bytes, size_t len)
{
    if (len <= PACKET_DATA + PEC_LEN || bytes[PACKET_COMMAND] != COMMAND_MCTP ||
        bytes[PACKET_COUNT] != len - PACKET_SOURCE - PEC_LEN ||
        (bytes[PACKET_SOURCE] & SOURCE_IS_MCTP) == 0 ||
        (bytes[PACKET_VERSION] & VERSION_MASK) != VERSION) {
        return MCTP_MALFORMED;
    }
    if (packet_pec(to_addr, bytes, len - PEC_LEN) != bytes[len - PEC_LEN]) {
        return MCTP_BAD_PEC;
    }
    *packet = (struct mctp_packet){
        .from_addr = bytes[PACKET_SOURCE] >> 1,
        .to_eid = bytes[PACKET_TO_EID],
        .from_eid = bytes[PACKET_FROM_EID],
        .is_first = bytes[PACKET_FLAGS] & FLAG_SOM,
        .is_last = bytes[PACKET_FLAGS] & FLAG_EOM,
        .seq = bytes[PACKET_FLAGS] >> SEQ_SHIFT & MCTP_SEQ_MASK,
        .is_tag_owner = bytes[PACKET_FLAGS] & FLAG_TAG_OWNER,
        .tag = bytes[PACKET_FLAGS] & TAG_MASK,
        .data = bytes + PACKET_DATA,
        .len = len - PACKET_DATA - PEC_LEN,
    };
    return MCTP_PARSED;
}

size_t mctp_packet_emit(const struct mctp_packet *packet, uint8_t to_addr,
                        uint8_t *bytes)
{
    size_t len = PACKET_DATA + packet->len;
    unsigned int flags = (unsigned int)packet->seq << SEQ_SHIFT | packet->tag;

    ASSERT(packet->len <= MCTP_UNIT);
    flags |= packet->is_first ? FLAG_SOM : 0;
    flags |= packet->is_last ? FLAG_EOM : 0;
    flags |= packet->is_tag_owner ? FLAG_TAG_OWNER : 0;
    bytes[PACKET_COMMAND] = COMMAND_MCTP;
    bytes[PACKET_COUNT] = (uint8_t)(len - PACKET_SOURCE);
    bytes[PACKET_SOURCE] = (uint8_t)(packet->from_addr << 1 | SOURCE_IS_MCTP);
    bytes[PACKET_VERSION] = VERSION;
    bytes[PACKET_TO_EID] = packet->to_eid;
    bytes[PACKET_FROM_EID] = packet->from_eid;
    bytes[PACKET_FLAGS] = (uint8_t)flags;
    memcpy(bytes + PACKET_DATA, packet->data, packet->len);
    bytes[len] = packet_pec(to_addr, bytes, len);
    return len + PEC_LEN;
}

/* ---- Messages. */

/* Whether a packet is a request for the endpoint with this identifier. */
static bool is_request_for(uint8_t eid, const struct mctp_packet *packet)
{
    return packet->is_tag_owner &&
           (packet->to_eid == 0 || packet->to_eid == eid);
}

/*
 * Whether a packet is of the message that is being assembled: clause 8.5. Since
 * a source identifier of 0 says nothing, the address on the bus counts, too.
 */
static bool is_of_message(const struct mctp_assembly *assembly,
                          const struct mctp_packet *packet)
{
    return assembly->is_active && assembly->from.addr == packet->from_addr &&
           assembly->from.eid == packet->from_eid &&
           assembly->from.tag == packet->tag;
}

/* Whether a packet continues its message as clauses 8.3.1 and 8.8 ask. */
static bool is_next_part(const struct mctp_assembly *assembly,
                         const struct mctp_packet *packet)
{
    return packet->seq == assembly->next_seq &&
           (packet->len == assembly->unit ||
            (packet->is_last && packet->len < assembly->unit)) &&
           packet->len <= sizeof(assembly->bytes) - assembly->len;
}

static struct mctp_peer peer_of(const struct mctp_packet *packet)
{
    return (struct mctp_peer){
        .addr = packet->from_addr,
        .eid = packet->from_eid,
        .tag = packet->tag,
    };
}

/* A message of one packet is not assembled: clause 8.7. */
static enum mctp_verdict take_single(struct mctp_assembly *assembly,
                                     const struct mctp_packet *packet,
                                     struct mctp_message *message)
{
    if (is_of_message(assembly, packet)) {
        assembly->is_active = false;
    }
    *message = (struct mctp_message){
        .from = peer_of(packet),
        .bytes = packet->data,
        .len = packet->len,
    };
    return MCTP_COMPLETE;
}

static void start_message(struct mctp_assembly *assembly,
                          const struct mctp_packet *packet)
{
    assembly->is_active = true;
    assembly->from = peer_of(packet);
    assembly->next_seq = packet->seq;
    assembly->unit = packet->len;
    assembly->len = 0;
}

enum mctp_verdict mctp_assembly_take(struct mctp_assembly *assembly,
                                     uint8_t eid,
                                     const struct mctp_packet *packet,
                                     struct mctp_message *message)
{
    if (!is_request_for(eid, packet)) {
        return MCTP_DROPPED;
    }
    if (packet->is_first && packet->is_last) {
        return take_single(assembly, packet, message);
    }
    if (packet->is_first) {
        start_message(assembly, packet);
    }
    if (!is_of_message(assembly, packet)) {
        return MCTP_DROPPED;
    }
    if (!is_next_part(assembly, packet)) {
        assembly->is_active = false;
        return MCTP_DROPPED;
    }
    memcpy(assembly->bytes + assembly->len, packet->data, packet->len);
    assembly->len += packet->len;
    assembly->next_seq = (packet->seq + 1) & MCTP_SEQ_MASK;
    if (!packet->is_last) {
        return MCTP_INCOMPLETE;
    }
    assembly->is_active = false;
    *message = (struct mctp_message){
        .from = assembly->from,
        .bytes = assembly->bytes,
        .len = assembly->len,
    };
    return MCTP_COMPLETE;
}
