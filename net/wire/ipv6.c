/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv6 fixed header: see ipv6.h. */
#include "net/wire/ipv6.h"

#include "lib/bytes.h"

_Static_assert(IPV6_DST + 16 == IPV6_LEN, "the IPv6 header is 40 bytes");

bool ipv6_parse(struct ipv6 *ip, const uint8_t *buf, size_t len)
{
    uint32_t first;

    if (len < IPV6_LEN || buf[IPV6_VERSION] >> 4 != 6 ||
        get_be16(buf + IPV6_PAYLOAD_LEN) > len - IPV6_LEN) {
        return false;
    }
    first = get_be32(buf + IPV6_VERSION);
    *ip = (struct ipv6){
        .src = ip_addr_from_bytes(buf + IPV6_SRC),
        .dst = ip_addr_from_bytes(buf + IPV6_DST),
        .flow_label = first & 0xfffff,
        .payload_len_bytes = get_be16(buf + IPV6_PAYLOAD_LEN),
        .traffic_class = (uint8_t)(first >> 20),
        .next_header = buf[IPV6_NEXT_HEADER],
        .hop_limit = buf[IPV6_HOP_LIMIT],
    };
    return !ip_addr_is_v4(&ip->src) && !ip_addr_is_v4(&ip->dst);
}

void ipv6_emit(const struct ipv6 *ip, uint8_t *buf)
{
    put_be32(buf + IPV6_VERSION, 6u << 28 | (uint32_t)ip->traffic_class << 20 |
                                     (ip->flow_label & 0xfffff));
    put_be16(buf + IPV6_PAYLOAD_LEN, ip->payload_len_bytes);
    buf[IPV6_NEXT_HEADER] = ip->next_header;
    buf[IPV6_HOP_LIMIT] = ip->hop_limit;
    memcpy(buf + IPV6_SRC, ip->src.bytes, sizeof(ip->src.bytes));
    memcpy(buf + IPV6_DST, ip->dst.bytes, sizeof(ip->dst.bytes));
}
