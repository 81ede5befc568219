/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every parser of net/wire. The first byte selects the parser; what the parser
 * accepts, emit must write so that it parses again and is emitted the same.
 */
#include "tests/fuzz/replay.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "net/wire/arp.h"
#include "net/wire/bth.h"
#include "net/wire/cm_msg.h"
#include "net/wire/dhcp.h"
#include "net/wire/grh.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/lacp.h"
#include "net/wire/lldp.h"
#include "net/wire/mac_control.h"
#include "net/wire/nd.h"
#include "net/wire/rdma_ip_cm.h"
#include "net/wire/roce_ext.h"
#include "net/wire/sntp.h"
#include "net/wire/tcp.h"
#include "net/wire/udp.h"
#include "tests/unit/net/wire/golden.h"
#include "tests/unit/net/wire/golden_grh.h"
#include "tests/unit/net/wire/golden_mac_control.h"
#include "tests/unit/net/wire/golden_lacp.h"
#include "tests/unit/net/wire/golden_services.h"

enum { OUT_MAX = 512 };

/* ipv4_parse() needs the whole packet, while emit writes only the header. */
#define FORMAT(name)                                                           \
    static bool try_##name(const uint8_t *in, size_t len, uint8_t *out)        \
    {                                                                          \
        struct name parsed;                                                    \
                                                                               \
        if (!name##_parse(&parsed, in, len)) {                                 \
            return false;                                                      \
        }                                                                      \
        name##_emit(&parsed, out);                                             \
        return true;                                                           \
    }

FORMAT(eth)
FORMAT(arp)
FORMAT(bth)
FORMAT(reth)
FORMAT(aeth)
FORMAT(deth)
FORMAT(mad)
FORMAT(cm_req)
FORMAT(cm_mra)
FORMAT(cm_rej)
FORMAT(cm_rep)
FORMAT(cm_rtu)
FORMAT(cm_dreq)
FORMAT(cm_drep)
FORMAT(rdma_ip_cm)
FORMAT(udp)
FORMAT(sntp)
FORMAT(mac_control)
FORMAT(lacp)
FORMAT(marker)

static bool try_ipv4(const uint8_t *in, size_t len, uint8_t *out)
{
    struct ipv4 ip;

    if (!ipv4_parse(&ip, in, len)) {
        return false;
    }
    ip.total_len_bytes = (uint16_t)MIN(ip.total_len_bytes, OUT_MAX);
    ipv4_emit(&ip, out);
    return true;
}

static bool try_ipv6(const uint8_t *in, size_t len, uint8_t *out)
{
    struct ipv6 ip;

    if (!ipv6_parse(&ip, in, len)) {
        return false;
    }
    ip.payload_len_bytes =
        (uint16_t)MIN(ip.payload_len_bytes, OUT_MAX - IPV6_LEN);
    ipv6_emit(&ip, out);
    return true;
}

/* What fits in a received header may not fit when emit aligns its options. */
static bool try_tcp(const uint8_t *in, size_t len, uint8_t *out)
{
    struct tcp_header tcp;

    if (!tcp_header_parse(&tcp, in, len) ||
        tcp_header_bytes(&tcp) > TCP_LEN_MAX) {
        return false;
    }
    (void)tcp_header_emit(&tcp, out);
    return true;
}

/* Any header; its options are 2, 4, 8 and 5. */
static const uint8_t tcp_golden[] = {
    0x9c, 0x40, 0x11, 0x44, 0,    0, 0, 5, 0,   0, 0,    9, 0xd0,
    0x12, 1,    0xf6, 0x5c, 0xd6, 0, 0, 2, 4,   5, 0xb4, 4, 2,
    8,    10,   0,    0,    0,    7, 0, 0, 0,   9, 1,    1, 5,
    10,   0,    0,    0,    100,  0, 0, 0, 200, 1, 1,    0, 0,
};

static const struct ip_addr some_ip = {{0xfe, 0x80, [15] = 1}};

static bool try_grh(const uint8_t *in, size_t len, uint8_t *out)
{
    struct grh grh;

    if (!grh_parse(&grh, in, len)) {
        return false;
    }
    grh.payload_len_bytes =
        (uint16_t)MIN(grh.payload_len_bytes, OUT_MAX - GRH_LEN);
    grh_emit(&grh, out);
    return true;
}

/* The next two emitters return the length of what they wrote; bytes behind that
 * must not be parsed. */

static bool try_nd_neighbor(const uint8_t *in, size_t len, uint8_t *out)
{
    struct nd_neighbor nd;
    struct icmp icmp;
    size_t out_len;

    if (!nd_neighbor_parse(&nd, in, len)) {
        return false;
    }
    out_len = nd_neighbor_emit(&nd, &some_ip, &some_ip, out);
    if (!icmpv6_parse(&icmp, &some_ip, &some_ip, out, out_len) ||
        !nd_neighbor_parse(&nd, out, out_len)) {
        abort();
    }
    /* Checked here, because there is nothing to compare outside. */
    memset(out, 0, OUT_MAX);
    return false;
}

static bool try_nd_router(const uint8_t *in, size_t len, uint8_t *out)
{
    struct nd_router_solicit rs;
    struct nd_router_advert ra;

    if (nd_router_advert_parse(&ra, in, len) &&
        ra.prefix_count > ND_RA_MAX_PREFIXES) {
        abort();
    }
    if (nd_router_solicit_parse(&rs, in, len) &&
        !nd_router_solicit_parse(
            &rs, out, nd_router_solicit_emit(&rs, &some_ip, &some_ip, out))) {
        abort();
    }
    return false;
}

/* emit does not write what parse skips, but always writes an End TLV. */
static bool try_lldp(const uint8_t *in, size_t len, uint8_t *out)
{
    struct lldp lldp;

    if (!lldp_parse(&lldp, in, len)) {
        return false;
    }
    if (lldp.len_bytes > len) {
        abort();
    }
    if (lldp_emit(&lldp, out, OUT_MAX) == 0) {
        if (lldp.len_bytes + 2 <= OUT_MAX) { /* 2 bytes for the End TLV. */
            abort();
        }
        return false;
    }
    return true;
}

/*
 * emit does not write what parse skips; both pad with options that parse skips.
 */
static bool try_dhcp(const uint8_t *in, size_t len, uint8_t *out)
{
    struct dhcp dhcp;

    return dhcp_parse(&dhcp, in, len) && dhcp_emit(&dhcp, out, OUT_MAX) != 0;
}

#define SEED(name, golden) {try_##name, golden, sizeof(golden)}

static const struct {
    bool (*try)(const uint8_t *in, size_t len, uint8_t *out);
    const uint8_t *seed;
    size_t seed_len;
} formats[] = {
    SEED(eth, eth_untagged),
    SEED(eth, eth_tagged),
    SEED(arp, arp_request),
    SEED(ipv4, ipv4_udp),
    SEED(ipv6, ipv6_udp),
    SEED(udp, icmp_echo), /* Any bytes will do. */
    SEED(nd_neighbor, nd_ns),
    SEED(nd_neighbor, nd_na),
    SEED(nd_router, nd_rs),
    SEED(nd_router, nd_ra),
    SEED(bth, bth_and_aeth),
    SEED(reth, bth_and_aeth),
    SEED(aeth, bth_and_aeth),
    SEED(deth, bth_and_aeth),
    SEED(mad, mad_header),
    SEED(cm_req, cm_req),
    SEED(cm_mra, cm_mra),
    SEED(cm_rej, cm_rej),
    SEED(cm_rep, cm_rep),
    SEED(cm_rtu, cm_rtu),
    SEED(cm_dreq, cm_dreq),
    SEED(cm_drep, cm_drep),
    SEED(rdma_ip_cm, rdma_ip_cm_v4),
    SEED(rdma_ip_cm, rdma_ip_cm_v6),
    SEED(lldp, lldp_golden),
    SEED(sntp, sntp_golden),
    SEED(tcp, tcp_golden),
    SEED(mac_control, mac_control_pause),
    SEED(mac_control, mac_control_pfc),
    SEED(grh, grh_golden),
    SEED(dhcp, dhcp_ack),
    SEED(dhcp, dhcp_discover),
    SEED(lacp, lacp_golden),
    SEED(marker, marker_golden),
};

size_t fuzz_seed(size_t n, uint8_t *buf, size_t room)
{
    if (n >= ARRAY_LEN(formats) || formats[n].seed_len >= room) {
        return 0;
    }
    buf[0] = (uint8_t)n;
    memcpy(buf + 1, formats[n].seed, formats[n].seed_len);
    return formats[n].seed_len + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint8_t once[OUT_MAX], twice[OUT_MAX];
    size_t format;

    if (len == 0 || len > OUT_MAX) {
        return 0;
    }
    format = data[0] % ARRAY_LEN(formats);
    memset(once, 0, sizeof(once));
    if (!formats[format].try(data + 1, len - 1, once)) {
        return 0;
    }
    /* Bytes that emit leaves alone must be equal. */
    memcpy(twice, once, sizeof(twice));
    if (!formats[format].try(once, sizeof(once), twice) ||
        memcmp(once, twice, sizeof(once)) != 0) {
        abort();
    }
    return 0;
}
