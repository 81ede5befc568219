/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP and ICMPv6 messages: see icmp.h. */
#include "net/wire/icmp.h"

#include "lib/bytes.h"
#include "net/wire/checksum.h"
#include "net/wire/ipv4.h"

_Static_assert(ICMP_REST + 4 == ICMP_LEN, "the ICMP header is 8 bytes");

static bool icmp_parse_sum(struct icmp *icmp, uint32_t sum, const uint8_t *buf,
                           size_t len)
{
    if (len < ICMP_LEN || checksum_finish(checksum_add(sum, buf, len)) != 0) {
        return false;
    }
    *icmp = (struct icmp){
        .type = buf[ICMP_TYPE],
        .code = buf[ICMP_CODE],
        .rest = get_be32(buf + ICMP_REST),
    };
    return true;
}

static void icmp_emit_sum(const struct icmp *icmp, uint32_t sum, uint8_t *buf,
                          size_t len)
{
    buf[ICMP_TYPE] = icmp->type;
    buf[ICMP_CODE] = icmp->code;
    put_be16(buf + ICMP_CHECKSUM, 0);
    put_be32(buf + ICMP_REST, icmp->rest);
    put_be16(buf + ICMP_CHECKSUM, checksum_finish(checksum_add(sum, buf, len)));
}

bool icmp_parse(struct icmp *icmp, const uint8_t *buf, size_t len)
{
    return icmp_parse_sum(icmp, 0, buf, len);
}

bool icmpv6_parse(struct icmp *icmp, const struct ip_addr *src,
                  const struct ip_addr *dst, const uint8_t *buf, size_t len)
{
    return icmp_parse_sum(
        icmp, checksum_pseudo(src, dst, IP_PROTOCOL_ICMPV6, len), buf, len);
}

void icmp_emit(const struct icmp *icmp, uint8_t *buf, size_t len)
{
    icmp_emit_sum(icmp, 0, buf, len);
}

void icmpv6_emit(const struct icmp *icmp, const struct ip_addr *src,
                 const struct ip_addr *dst, uint8_t *buf, size_t len)
{
    icmp_emit_sum(icmp, checksum_pseudo(src, dst, IP_PROTOCOL_ICMPV6, len), buf,
                  len);
}
