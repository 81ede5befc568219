/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one source of connections may have: which half-open entry gives way to a
 * newer one, and how many connections are for others.
 * Spec: RFC 4987 section 3.3.
 */
#include <string.h>

#include "net/tcp/internal.h"

enum {
    SUBNET_LEN = 8,   /* of an IPv6 address, in bytes */
    SOURCES = 3,      /* that can have more than a quarter of all entries */
    OTHERS_PART = 16, /* of all connections, one source leaves this part */
};

/* A source of half-open connections. */
struct source {
    uint16_t entry; /* one of its ones */
    uint16_t share; /* 0: none is noted */
};

/* How many bytes of a peer's address tell its source.  Whoever has one IPv6
 * address behind a router has the other ones of its /64, too; on the own subnet
 * and on the link, every host has the same /64. */
size_t tcp_source_len(const struct tcp_ends *ends)
{
    const uint8_t *peer = ends->remote.bytes;
    bool is_link_local = peer[0] == 0xfe && (peer[1] & 0xc0) == 0x80;

    return ip_addr_is_v4(&ends->remote) || is_link_local ||
                   memcmp(peer, ends->local.bytes, SUBNET_LEN) == 0
               ? sizeof(ends->remote.bytes)
               : SUBNET_LEN;
}

static bool is_same_source(const struct tcp_ends *a, const struct tcp_ends *b)
{
    size_t len;

    if (memcmp(a->remote.bytes, b->remote.bytes, SUBNET_LEN) != 0) {
        return false; /* quick, with IPv6 */
    }
    len = tcp_source_len(a);

    return len == tcp_source_len(b) &&
           memcmp(a->remote.bytes, b->remote.bytes, len) == 0;
}

/* How many half-open connections a source has. */
static uint16_t half_share(const struct tcp *tcp, const struct tcp_ends *source)
{
    const struct tcp_node *nodes = &tcp->nodes[tcp_first_half(tcp)];
    uint16_t count = 0;

    for (uint16_t i = 0; i < tcp->config.half_open; i++) {
        if (nodes[i].used && is_same_source(&nodes[i].ends, source)) {
            count++;
        }
    }
    return count;
}

/* The entry that stands for a source, among those noted. */
static struct source *source_find(const struct tcp *tcp, struct source *noted,
                                  const struct tcp_ends *ends)
{
    const struct tcp_node *nodes = &tcp->nodes[tcp_first_half(tcp)];

    for (unsigned int i = 0; i < SOURCES; i++) {
        if (noted[i].share != 0 &&
            is_same_source(&nodes[noted[i].entry].ends, ends)) {
            return &noted[i];
        }
    }
    return NULL;
}

/* Note the sources that may have more than a quarter of the pool: no others can
 * have (J. Misra, D. Gries, "Finding repeated elements").  In a flood this is
 * done for each SYN, so that not every entry is compared with every other. */
static void sources_note(const struct tcp *tcp, struct source *noted)
{
    const struct tcp_node *nodes = &tcp->nodes[tcp_first_half(tcp)];

    for (uint16_t i = 0; i < tcp->config.half_open; i++) {
        struct source *source = source_find(tcp, noted, &nodes[i].ends);
        unsigned int free = 0;

        if (source != NULL) {
            source->share++;
            continue;
        }
        while (free < SOURCES && noted[free].share != 0) {
            free++;
        }
        if (free < SOURCES) {
            noted[free] = (struct source){.entry = i, .share = 1};
            continue;
        }
        for (unsigned int n = 0; n < SOURCES; n++) {
            noted[n].share--;
        }
    }
}

/* The oldest entry, of one source or of all.
 * @param source  NULL: of all */
static uint16_t half_oldest(const struct tcp *tcp,
                            const struct tcp_ends *source)
{
    const struct tcp_node *nodes = &tcp->nodes[tcp_first_half(tcp)];
    uint16_t oldest = TCP_NO_NODE;

    for (uint16_t i = 0; i < tcp->config.half_open; i++) {
        if ((source == NULL || is_same_source(&nodes[i].ends, source)) &&
            (oldest == TCP_NO_NODE ||
             tcp->halves[i].born_us < tcp->halves[oldest].born_us)) {
            oldest = i;
        }
    }
    return oldest;
}

/* Whose entry a newer one takes: all are in use.  Shares count only beyond a
 * quarter of the pool: in a flood from random addresses, the source with the
 * most entries is an honest host with two. */
uint16_t tcp_half_victim(const struct tcp *tcp, const struct tcp_ends *newer)
{
    const struct tcp_node *nodes = &tcp->nodes[tcp_first_half(tcp)];
    uint16_t most = (uint16_t)(half_share(tcp, newer) + 1);
    uint16_t part = tcp->config.half_open / 4;
    struct source noted[SOURCES] = {0};
    const struct tcp_ends *greedy = newer;

    sources_note(tcp, noted);
    for (unsigned int i = 0; i < SOURCES; i++) {
        const struct tcp_ends *ends = &nodes[noted[i].entry].ends;
        uint16_t share = noted[i].share != 0 ? half_share(tcp, ends) : 0;

        if (share > most) {
            most = share;
            greedy = ends;
        }
    }
    if (most <= part || half_share(tcp, greedy) == 0) {
        greedy = NULL;
    }
    return (uint16_t)(tcp_first_half(tcp) + half_oldest(tcp, greedy));
}

/* Whether a source may have one more connection: one source alone does not take
 * all of them. */
bool tcp_source_has_place(const struct tcp *tcp, const struct tcp_ends *source)
{
    uint16_t all = tcp->config.connections;
    uint16_t most = (uint16_t)(all - all / OTHERS_PART);
    uint16_t count = 0;

    if (tcp->saved->free_conn == TCP_NO_NODE) {
        return false;
    }
    if (tcp->saved->usage.connections < most) {
        return true;
    }
    for (uint16_t i = 0; i < all; i++) {
        if (tcp->nodes[i].used && is_same_source(&tcp->nodes[i].ends, source)) {
            count++;
        }
    }
    return count < most;
}
