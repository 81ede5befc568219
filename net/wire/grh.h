/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Global Route Header: RoCE v1 (EtherType 8915h) uses it in place of IP and
 * UDP.  It has the layout of an IPv6 header; its addresses are GIDs.
 * Spec: IBTA Vol 1 section 8.3; annex A16 (RoCE).
 *
 * The GID of an IPv4 address is ::ffff:a.b.c.d, as Linux forms it
 * (rdma_ip2gid() in ib_addr.h), so such GIDs occur in this header.
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
    uint16_t payload_len_bytes; /* BTH to ICRC, both included */
    uint8_t traffic_class;
    uint8_t hop_limit;
};

/**
 * @param len  bytes in `buf`: the frame may be longer than the packet
 * @return false when the header is cut short, its version is not 6, or its next
 *         header is not a BTH
 */
MUST_USE bool grh_parse(struct grh *grh, const uint8_t *buf, size_t len);

/** Write GRH_LEN bytes. */
void grh_emit(const struct grh *grh, uint8_t *buf);

#endif
