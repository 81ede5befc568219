/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant CRC: see icrc.h. */
#include "net/wire/icrc.h"

#include <string.h>

/* The CRC-32 of eight bytes FFh, the stand-in for the local route header. */
#define ICRC_SEED 0x2144df1cu

/* Set the fields that switches and routers may change to all ones. */

static void mask_ipv4(uint8_t *ip)
{
    ip[IPV4_TOS] = 0xff;
    ip[IPV4_TTL] = 0xff;
    memset(ip + IPV4_CHECKSUM, 0xff, 2);
}

static void mask_ipv6(uint8_t *ip)
{
    ip[IPV6_VERSION] |= 0x0f; /* traffic class, then the flow label */
    memset(ip + IPV6_VERSION + 1, 0xff, 3);
    ip[IPV6_HOP_LIMIT] = 0xff;
}

static void mask_udp(uint8_t *udp)
{
    memset(udp + UDP_CHECKSUM, 0xff, 2);
}

static void mask_bth(uint8_t *bth)
{
    bth[BTH_FECN] = 0xff;
}

uint32_t icrc_begin_ipv4(const uint8_t *headers)
{
    uint8_t masked[ICRC_IPV4_HEADERS_LEN];

    memcpy(masked, headers, sizeof(masked));
    mask_ipv4(masked);
    mask_udp(masked + IPV4_LEN);
    mask_bth(masked + IPV4_LEN + UDP_LEN);
    return crc32_update(ICRC_SEED, masked, sizeof(masked));
}

uint32_t icrc_begin_ipv6(const uint8_t *headers)
{
    uint8_t masked[ICRC_IPV6_HEADERS_LEN];

    memcpy(masked, headers, sizeof(masked));
    mask_ipv6(masked);
    mask_udp(masked + IPV6_LEN);
    mask_bth(masked + IPV6_LEN + UDP_LEN);
    return crc32_update(ICRC_SEED, masked, sizeof(masked));
}

uint32_t icrc_begin_grh(const uint8_t *headers)
{
    uint8_t masked[ICRC_GRH_HEADERS_LEN];

    memcpy(masked, headers, sizeof(masked));
    mask_ipv6(masked);
    mask_bth(masked + IPV6_LEN);
    return crc32_update(ICRC_SEED, masked, sizeof(masked));
}
