/* SPDX-License-Identifier: BSD-2-Clause */
/* Global Route Header: see grh.h. */
#include "net/wire/grh.h"

#include "lib/bytes.h"

_Static_assert(GRH_DGID + 16 == GRH_LEN, "the GRH is 40 bytes");

bool grh_parse(struct grh *grh, const uint8_t *buf, size_t len)
{
    uint32_t first;

    if (len < GRH_LEN || buf[GRH_VERSION] >> 4 != 6 ||
        buf[GRH_NEXT_HEADER] != GRH_NEXT_HEADER_IBA ||
        get_be16(buf + GRH_PAYLOAD_LEN) > len - GRH_LEN) {
        return false;
    }
    first = get_be32(buf + GRH_VERSION);
    *grh = (struct grh){
        .sgid = ip_addr_from_bytes(buf + GRH_SGID),
        .dgid = ip_addr_from_bytes(buf + GRH_DGID),
        .flow_label = first & 0xfffff,
        .payload_len_bytes = get_be16(buf + GRH_PAYLOAD_LEN),
        .traffic_class = (uint8_t)(first >> 20),
        .hop_limit = buf[GRH_HOP_LIMIT],
    };
    return true;
}

void grh_emit(const struct grh *grh, uint8_t *buf)
{
    put_be32(buf + GRH_VERSION, 6u << 28 | (uint32_t)grh->traffic_class << 20 |
                                    (grh->flow_label & 0xfffff));
    put_be16(buf + GRH_PAYLOAD_LEN, grh->payload_len_bytes);
    buf[GRH_NEXT_HEADER] = GRH_NEXT_HEADER_IBA;
    buf[GRH_HOP_LIMIT] = grh->hop_limit;
    memcpy(buf + GRH_SGID, grh->sgid.bytes, sizeof(grh->sgid.bytes));
    memcpy(buf + GRH_DGID, grh->dgid.bytes, sizeof(grh->dgid.bytes));
}
