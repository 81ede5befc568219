/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA IP CM header: see rdma_ip_cm.h. */
#include "net/wire/rdma_ip_cm.h"

#include "lib/bytes.h"

_Static_assert(RDMA_IP_CM_DST + 16 == RDMA_IP_CM_LEN, "36 bytes");

static struct ip_addr get_address(const uint8_t *buf, bool v4)
{
    return v4 ? ip_addr_from_v4(get_be32(buf + 12)) : ip_addr_from_bytes(buf);
}

static void put_address(uint8_t *buf, const struct ip_addr *ip, bool v4)
{
    memcpy(buf, ip->bytes, 16);
    if (v4) {
        memset(buf, 0, 12);
    }
}

bool rdma_ip_cm_parse(struct rdma_ip_cm *ip_cm, const uint8_t *buf, size_t len)
{
    uint8_t version;

    if (len < RDMA_IP_CM_LEN || buf[RDMA_IP_CM_VERSION] != 0) {
        return false;
    }
    version = buf[RDMA_IP_CM_IP_VERSION] >> 4;
    if (version != 4 && version != 6) {
        return false;
    }
    *ip_cm = (struct rdma_ip_cm){
        .src = get_address(buf + RDMA_IP_CM_SRC, version == 4),
        .dst = get_address(buf + RDMA_IP_CM_DST, version == 4),
        .src_port = get_be16(buf + RDMA_IP_CM_SRC_PORT),
    };
    return true;
}

void rdma_ip_cm_emit(const struct rdma_ip_cm *ip_cm, uint8_t *buf)
{
    bool v4 = ip_addr_is_v4(&ip_cm->dst);

    buf[RDMA_IP_CM_VERSION] = 0;
    buf[RDMA_IP_CM_IP_VERSION] = (uint8_t)((v4 ? 4 : 6) << 4);
    put_be16(buf + RDMA_IP_CM_SRC_PORT, ip_cm->src_port);
    put_address(buf + RDMA_IP_CM_SRC, &ip_cm->src, v4);
    put_address(buf + RDMA_IP_CM_DST, &ip_cm->dst, v4);
}
