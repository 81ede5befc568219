/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA IP CM: how IP addresses and ports travel in a CM REQ.
 * Spec: IBTA Vol 1 annex A11 ("RDMA IP CM Service").
 *
 * This header is the first 36 bytes of a REQ's private data; the consumer's
 * own private data follows.  REP, REJ and the other messages do not have it.
 */
#ifndef ESSD_NET_WIRE_RDMA_IP_CM_H
#define ESSD_NET_WIRE_RDMA_IP_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum {                            /* byte offsets; big-endian */
       RDMA_IP_CM_VERSION = 0,    /* major:4 minor:4, 0.0 */
       RDMA_IP_CM_IP_VERSION = 1, /* 4 or 6:4 reserved:4 */
       RDMA_IP_CM_SRC_PORT = 2,
       RDMA_IP_CM_SRC = 4, /* an IPv4 address is the last 4 of the 16 bytes */
       RDMA_IP_CM_DST = 20,
       RDMA_IP_CM_LEN = 36,
};

struct rdma_ip_cm {
    struct ip_addr src;
    struct ip_addr dst;
    uint16_t src_port;
};

/* The port spaces that Linux puts into the service identifier. */
enum {
    RDMA_IP_CM_PS_TCP = 0x0106,
    RDMA_IP_CM_PS_UDP = 0x0111,
};

/** The CM service identifier of an RDMA_PS_TCP port. */
static inline uint64_t rdma_ip_cm_service_id(uint16_t port)
{
    return (uint64_t)RDMA_IP_CM_PS_TCP << 16 | port;
}

/** @return false when cut short, or of another version or address family */
MUST_USE bool rdma_ip_cm_parse(struct rdma_ip_cm *ip_cm, const uint8_t *buf,
                               size_t len);

/** Write RDMA_IP_CM_LEN bytes; `dst` decides whether as IPv4 or as IPv6. */
void rdma_ip_cm_emit(const struct rdma_ip_cm *ip_cm, uint8_t *buf);

#endif
