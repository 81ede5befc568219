/* SPDX-License-Identifier: BSD-2-Clause */
/* The Internet checksum: see checksum.h. */
#include "net/wire/checksum.h"

#include "lib/bytes.h"

static uint32_t fold_sum(uint64_t sum)
{
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint32_t)sum;
}

uint32_t checksum_add(uint32_t sum, const uint8_t *buf, size_t len)
{
    uint64_t total = sum;

    /* 2^32 is 1 modulo 2^16 - 1, so adding 32-bit words gives the same sum. */
    for (; len >= 4; buf += 4, len -= 4) {
        total += get_be32(buf);
    }
    if (len >= 2) {
        total += get_be16(buf);
        buf += 2;
        len -= 2;
    }
    if (len == 1) {
        total += (uint32_t)buf[0] << 8;
    }
    return fold_sum(total);
}

uint32_t checksum_pseudo(const struct ip_addr *src, const struct ip_addr *dst,
                         uint8_t protocol, size_t len)
{
    size_t skip = ip_addr_is_v4(src) && ip_addr_is_v4(dst) ? 12 : 0;
    uint32_t sum = checksum_add(0, src->bytes + skip, 16 - skip);

    sum = checksum_add(sum, dst->bytes + skip, 16 - skip);
    return fold_sum((uint64_t)sum + protocol + len);
}
