/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Global Route Header: what RoCE v1 (EtherType 8915h) has in place of IP and
 * UDP.  It looks like an IPv6 header, its addresses are GIDs.
 * Spec: IBTA Vol 1 section 8.3; annex A16 (RoCE).
 *
 * A GID that stands for an IPv4 address is ::ffff:a.b.c.d, as Linux makes them
 * (rdma_ip2gid(), ib_addr.h), and so may be in this header.
 */
#ifndef ESSD_NET_WIRE_GRH_H
#define ESSD_NET_WIRE_GRH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum { /* byte offsets; fields of more than one byte big-endian */
       GRH_VERSION = 0, /* version:4 traffic class:8 flow label:20 */
       GRH_PAYLOAD_LEN = 4,
       GRH_NEXT_HEADER = 6,
       GRH_HOP_LIMIT = 7,
       GRH_SGID = 8,
       GRH_DGID = 24,
       GRH_LEN = 40,
};

enum { GRH_NEXT_HEADER_IBA = 0x1b };

struct grh {
    struct ip_addr sgid;
    struct ip_addr dgid;
    uint32_t flow_label;        /* 20 bits */
    uint16_t payload_len_bytes; /* from the BTH to the ICRC, both included */
    uint8_t traffic_class;
    uint8_t hop_limit;
};

/**
 * @param len  bytes that there are: the frame may be longer than the packet
 * @return false when cut, when the version is not 6, or when something else
 *         than a BTH follows
 */
MUST_USE bool grh_parse(struct grh *grh, const uint8_t *buf, size_t len);

/** Write GRH_LEN bytes. */
void grh_emit(const struct grh *grh, uint8_t *buf);

#endif
