/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a socket that follows the stream of PDUs changes in it, after follow()
 * of tcp_socket.h.  docs/hardware/toe.md, section 4.2, says the same of the
 * TCP offload engine.
 *
 *   received  Only complete PDUs are reported.  Their digests are not in the
 *             ring, and neither are data that the socket has placed.  The last
 *             byte of PLEN, which is 0 on the wire, holds the marks below.  At
 *             the first PDU that is not as expected, the socket writes
 *             FOLLOW_STOP_LEN bytes of which the first one is FOLLOW_STOP, and
 *             then all bytes as they come.
 *   sent      Digests are added to what is in the fields for them (XOR): 0, or
 *             something else for a digest that is to be wrong.  This goes on
 *             when the received stream is not followed any more.
 */
#ifndef ESSD_NVMEOF_TCP_FOLLOW_H
#define ESSD_NVMEOF_TCP_FOLLOW_H

enum {
    FOLLOW_MARKS = 7, /* byte of the common header that holds the marks */
    FOLLOW_STOP = 0xff,
    FOLLOW_STOP_LEN = 8,
};

enum nvme_tcp_follow_marks {
    FOLLOW_FOLLOWED = 0x80,   /* always */
    FOLLOW_PLACED = 0x01,     /* the data are in their place */
    FOLLOW_BAD_DIGEST = 0x02, /* of the data */
};

/* What has begun and was not reported. */
enum nvme_tcp_begun {
    FOLLOW_BEGUN_NOTHING,
    FOLLOW_BEGUN_PDU,
    FOLLOW_BEGUN_PLACED, /* H2CData that is placed */
};

#endif
