/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers that a peer cannot predict, from a secret and both ends.
 * Spec: RFC 6528 section 3; RFC 7323 section 5.4 (offset of timestamps).
 *
 * The keyed hash is SipHash-2-4 (Aumasson and Bernstein, 2012).  It also places
 * connections in hash buckets, so that nobody can fill one bucket on purpose.
 */
#include "net/tcp/internal.h"

enum { BEYOND_WINDOW = 1 << 17 }; /* further than a stray ACK of the old one */

static uint64_t rotate_left(uint64_t x, unsigned int bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], unsigned int rounds)
{
    for (; rounds != 0; rounds--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate_left(v[1], 13) ^ v[0];
        v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] = rotate_left(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate_left(v[1], 17) ^ v[2];
        v[3] = rotate_left(v[3], 21) ^ v[0];
        v[2] = rotate_left(v[2], 32);
    }
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
}

uint64_t tcp_hash(const struct tcp *tcp, const struct tcp_ends *ends,
                  uint64_t purpose)
{
    uint64_t k0 = get_le64(tcp->config.secret);
    uint64_t k1 = get_le64(tcp->config.secret + 8);
    uint64_t v[4] = {
        k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
        k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};

    sip_word(v, get_le64(ends->local.bytes));
    sip_word(v, get_le64(ends->local.bytes + 8));
    sip_word(v, get_le64(ends->remote.bytes));
    sip_word(v, get_le64(ends->remote.bytes + 8));
    sip_word(v, (uint64_t)ends->local_port << 16 | ends->remote_port);
    sip_word(v, purpose);
    sip_word(v, UINT64_C(48) << 56); /* the length, as SipHash ends */
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* A clock of 4 us, and an offset for each pair of ends. */
uint32_t tcp_isn(const struct tcp *tcp, const struct tcp_ends *ends)
{
    return (uint32_t)(tcp->now_us / 4 + tcp_hash(tcp, ends, 1));
}

/* RFC 6191 section 2: an old connection may have sent faster than the clock of
 * RFC 6528 runs. */
uint32_t tcp_isn_beyond(const struct tcp *tcp, const struct tcp_ends *ends,
                        const struct tcp_time_wait *wait)
{
    uint32_t isn = tcp_isn(tcp, ends);

    return wait != NULL ? seq_max(isn, wait->snd_nxt + BEYOND_WINDOW) : isn;
}

uint32_t tcp_times_base(const struct tcp *tcp, const struct tcp_ends *ends)
{
    return (uint32_t)tcp_hash(tcp, ends, 2);
}
