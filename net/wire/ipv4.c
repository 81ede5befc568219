/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv4 header: see ipv4.h. */
#include "net/wire/ipv4.h"

#include "lib/bytes.h"
#include "net/wire/checksum.h"

enum { DONT_FRAGMENT = 0x4000, MORE_FRAGMENTS = 0x2000, OFFSET_MASK = 0x1fff };

_Static_assert(IPV4_DST + 4 == IPV4_LEN, "IPv4 without options is 20 bytes");

bool ipv4_parse(struct ipv4 *ip, const uint8_t *buf, size_t len)
{
    size_t header_len;
    uint16_t total_len, fragment;

    if (len < IPV4_LEN || buf[IPV4_VERSION_IHL] >> 4 != 4) {
        return false;
    }
    header_len = (size_t)(buf[IPV4_VERSION_IHL] & 0xf) * 4;
    total_len = get_be16(buf + IPV4_TOTAL_LEN);
    if (header_len < IPV4_LEN || total_len < header_len || total_len > len ||
        checksum_finish(checksum_add(0, buf, header_len)) != 0) {
        return false;
    }
    fragment = get_be16(buf + IPV4_FRAGMENT);
    *ip = (struct ipv4){
        .src = ip_addr_from_v4(get_be32(buf + IPV4_SRC)),
        .dst = ip_addr_from_v4(get_be32(buf + IPV4_DST)),
        .total_len_bytes = total_len,
        .id = get_be16(buf + IPV4_ID),
        .fragment_offset_bytes = (uint16_t)((fragment & OFFSET_MASK) * 8),
        .header_len_bytes = (uint8_t)header_len,
        .tos = buf[IPV4_TOS],
        .ttl = buf[IPV4_TTL],
        .protocol = buf[IPV4_PROTOCOL],
        .dont_fragment = fragment & DONT_FRAGMENT,
        .more_fragments = fragment & MORE_FRAGMENTS,
    };
    return true;
}

void ipv4_emit(const struct ipv4 *ip, uint8_t *buf)
{
    buf[IPV4_VERSION_IHL] = 4 << 4 | IPV4_LEN / 4;
    buf[IPV4_TOS] = ip->tos;
    put_be16(buf + IPV4_TOTAL_LEN, ip->total_len_bytes);
    put_be16(buf + IPV4_ID, ip->id);
    put_be16(buf + IPV4_FRAGMENT,
             (uint16_t)((ip->dont_fragment ? DONT_FRAGMENT : 0) |
                        (ip->more_fragments ? MORE_FRAGMENTS : 0) |
                        ip->fragment_offset_bytes / 8));
    buf[IPV4_TTL] = ip->ttl;
    buf[IPV4_PROTOCOL] = ip->protocol;
    put_be16(buf + IPV4_CHECKSUM, 0);
    put_be32(buf + IPV4_SRC, ip_addr_to_v4(&ip->src));
    put_be32(buf + IPV4_DST, ip_addr_to_v4(&ip->dst));
    put_be16(buf + IPV4_CHECKSUM,
             checksum_finish(checksum_add(0, buf, IPV4_LEN)));
}
