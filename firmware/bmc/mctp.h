/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MCTP on SMBus: packets, and the assembly of messages from them.
 * Spec: DMTF DSP0236 1.3.1 (MCTP), clauses 8.1 to 8.8; DSP0237 (MCTP over
 * SMBus).
 *
 * Not implemented: bridging; a time limit between packets, which clause 8.8
 * leaves open; more than one message that is assembled at a time: a start ends
 * what was there. Transmission units below the baseline are accepted.
 */
#ifndef ESSD_BMC_MCTP_H
#define ESSD_BMC_MCTP_H

#include "lib/util.h"

enum {
    MCTP_UNIT = 64,         /* the baseline transmission unit, in bytes */
    MCTP_PACKET_MAX = 256,  /* bytes of a packet on the bus */
    MCTP_MESSAGE_MAX = 256, /* bytes of a message in several packets */
    MCTP_SEQ_MASK = 3,      /* sequence numbers are modulo 4 */
};

/* A packet, without its address on the bus. */
struct mctp_packet {
    uint8_t from_addr; /* of the sender on the bus, seven bits */
    uint8_t to_eid;    /* 0: whoever has the address */
    uint8_t from_eid;
    bool is_first;
    bool is_last;
    uint8_t seq; /* modulo 4 */
    bool is_tag_owner;
    uint8_t tag; /* 0 to 7 */
    const uint8_t *data;
    size_t len; /* of the data: 1 or more */
};

enum mctp_parsed { MCTP_PARSED, MCTP_MALFORMED, MCTP_BAD_PEC };

/**
 * Read a packet.
 *
 * @param to_addr  the address on the bus to which `bytes` was written
 * @param bytes    what follows the address, with the PEC; `packet->data` points
 *                 into it
 */
MUST_USE enum mctp_parsed mctp_packet_parse(struct mctp_packet *packet,
                                            uint8_t to_addr,
                                            const uint8_t *bytes, size_t len);

/**
 * Write a packet of at most MCTP_UNIT bytes of data.
 *
 * @param bytes  MCTP_PACKET_MAX bytes
 * @return how many of them are written, all to be sent to `to_addr`
 */
size_t mctp_packet_emit(const struct mctp_packet *packet, uint8_t to_addr,
                        uint8_t *bytes);

/* Who has sent a request, and where its response goes. */
struct mctp_peer {
    uint8_t addr; /* on the bus, seven bits */
    uint8_t eid;
    uint8_t tag;
};

struct mctp_message {
    struct mctp_peer from;
    const uint8_t *bytes;
    size_t len;
};

/* The message whose packets are arriving. Zeroes: there is none. */
struct mctp_assembly {
    bool is_active;
    struct mctp_peer from;
    uint8_t next_seq;
    size_t unit; /* bytes of data in each packet but the last */
    size_t len;
    uint8_t bytes[MCTP_MESSAGE_MAX];
};

enum mctp_verdict {
    MCTP_INCOMPLETE, /* more packets are expected */
    MCTP_COMPLETE,
    MCTP_DROPPED, /* the packet was wrong, or came at a wrong time */
};

/**
 * Take a packet of a request.
 *
 * A packet that is not for the drive, or belongs to a message whose start has
 * not come, is dropped and changes nothing. A packet out of sequence, or of
 * another size than the start (the last one: longer), ends its message. So does
 * a new start, which begins another one.
 *
 * @param eid      the drive's own, or 0
 * @param message  written when MCTP_COMPLETE is returned; valid until the next
 *                 packet is taken, or that of `packet` ends
 */
MUST_USE enum mctp_verdict mctp_assembly_take(struct mctp_assembly *assembly,
                                              uint8_t eid,
                                              const struct mctp_packet *packet,
                                              struct mctp_message *message);

#endif
