/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant CRC: the last 4 bytes of every RoCE packet.
 *
 * It covers eight bytes of FFh in place of the InfiniBand local route header,
 * then everything from the network header to the padding, where every field
 * that a switch or router may change counts as all ones.
 * Spec: IBTA Vol 1 section 7.8.1; annex A16.5 (v1), A17.3.3 (v2).
 *
 * Left out: IPv4 with options.
 */
#ifndef ESSD_NET_WIRE_ICRC_H
#define ESSD_NET_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"
#include "lib/crc32.h"
#include "net/wire/bth.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/udp.h"

enum { ICRC_LEN = 4 };

/* Lengths of the headers that have masked fields: all up to the BTH. */
enum {
    ICRC_IPV4_HEADERS_LEN = IPV4_LEN + UDP_LEN + BTH_LEN,
    ICRC_IPV6_HEADERS_LEN = IPV6_LEN + UDP_LEN + BTH_LEN,
    ICRC_GRH_HEADERS_LEN = IPV6_LEN + BTH_LEN,
};

/**
 * Start an ICRC with the headers as they are on the wire.  Continue with
 * icrc_add() over extended headers, payload and padding, piece by piece.
 *
 * @param headers  the network header, UDP, BTH: ICRC_..._HEADERS_LEN bytes
 */
uint32_t icrc_begin_ipv4(const uint8_t *headers);
uint32_t icrc_begin_ipv6(const uint8_t *headers);
/** RoCE v1: `headers` is the 40-byte GRH and the BTH; no UDP. */
uint32_t icrc_begin_grh(const uint8_t *headers);

static inline uint32_t icrc_add(uint32_t icrc, const void *piece, size_t len)
{
    return len != 0 ? crc32_update(icrc, piece, len) : icrc;
}

/** Write ICRC_LEN bytes; the ICRC is the packet's only little-endian field. */
static inline void icrc_emit(uint32_t icrc, uint8_t *buf)
{
    put_le32(buf, icrc);
}

static inline bool icrc_matches(uint32_t icrc, const uint8_t *buf)
{
    return get_le32(buf) == icrc;
}

#endif
