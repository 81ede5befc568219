/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP header: see udp.h. */
#include "net/wire/udp.h"

#include "lib/bytes.h"
#include "net/wire/checksum.h"
#include "net/wire/ipv4.h"

_Static_assert(UDP_CHECKSUM + 2 == UDP_LEN, "the UDP header is 8 bytes");

bool udp_parse(struct udp *udp, const uint8_t *buf, size_t len)
{
    if (len < UDP_LEN) {
        return false;
    }
    *udp = (struct udp){
        .src_port = get_be16(buf + UDP_SRC_PORT),
        .dst_port = get_be16(buf + UDP_DST_PORT),
        .length_bytes = get_be16(buf + UDP_LENGTH),
        .checksum = get_be16(buf + UDP_CHECKSUM),
    };
    return udp->length_bytes >= UDP_LEN && udp->length_bytes <= len;
}

void udp_emit(const struct udp *udp, uint8_t *buf)
{
    put_be16(buf + UDP_SRC_PORT, udp->src_port);
    put_be16(buf + UDP_DST_PORT, udp->dst_port);
    put_be16(buf + UDP_LENGTH, udp->length_bytes);
    put_be16(buf + UDP_CHECKSUM, udp->checksum);
}

uint16_t udp_checksum(const struct ip_addr *src, const struct ip_addr *dst,
                      const uint8_t *buf, size_t len)
{
    uint32_t sum = checksum_pseudo(src, dst, IP_PROTOCOL_UDP, len);
    uint16_t checksum = checksum_finish(checksum_add(sum, buf, len));

    return checksum != 0 ? checksum : 0xffff;
}
