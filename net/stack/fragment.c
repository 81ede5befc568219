/* SPDX-License-Identifier: BSD-2-Clause */
/* IP fragments: see fragment.h. */
#include "net/stack/internal.h"

#include "lib/bytes.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/ipv6_ext.h"

enum { TX_RETRY_US = 1000, BLOCK_LEN = 8, HOP_LIMIT = 64 };

_Static_assert(offsetof(struct net_reassembly, payload) ==
                   offsetof(struct net_reassembly, header) + IPV6_LEN,
               "the payload follows the header");

/* Allowed transitions; every state may also go to FREE. */
static const uint8_t next_states[REASSEMBLY_STATES] = {
    [REASSEMBLY_FREE] = BIT(REASSEMBLY_COLLECTING) | BIT(REASSEMBLY_ANSWERING),
    [REASSEMBLY_COLLECTING] =
        BIT(REASSEMBLY_REFUSED) | BIT(REASSEMBLY_ANSWERING),
};

/* The only writer of r->state. */
static void reassembly_enter(struct net_stack *stack, struct net_reassembly *r,
                             enum reassembly_state next, uint64_t deadline_us)
{
    ASSERT((next_states[r->state] | BIT(REASSEMBLY_FREE)) & BIT(next));
    r->state = (uint8_t)next;
    r->deadline_us = deadline_us;
    net_due(&stack->fragment_due_us, deadline_us);
}

/* ---- Find the packet that a fragment belongs to. */

static bool is_same(const struct net_reassembly *r, const struct net_rx *rx,
                    const struct net_fragment *f)
{
    return (r->state == REASSEMBLY_COLLECTING ||
            r->state == REASSEMBLY_REFUSED) &&
           r->id == f->id && r->port == rx->port && r->vlan == rx->vlan &&
           ip_addr_equal(&r->src, &rx->src) &&
           ip_addr_equal(&r->dst, &rx->dst) &&
           (!ip_addr_is_v4(&rx->src) || r->protocol == f->protocol);
}

/*
 * Take a free entry, or evict the oldest one; when this source has half of the
 * entries, evict its own oldest one.
 *
 * @return NULL when all entries hold answers that wait to be sent
 */
static struct net_reassembly *take_reassembly(struct net_stack *stack,
                                              const struct net_rx *rx)
{
    struct net_reassembly *oldest = NULL, *own = NULL;
    unsigned count = 0;

    for (size_t i = 0; i < NET_REASSEMBLIES; i++) {
        struct net_reassembly *r = &stack->reassemblies[i];

        if (r->state == REASSEMBLY_FREE) {
            oldest = r;
        } else if (r->state != REASSEMBLY_ANSWERING) {
            if (oldest == NULL || (oldest->state != REASSEMBLY_FREE &&
                                   r->deadline_us < oldest->deadline_us)) {
                oldest = r;
            }
            if (ip_addr_equal(&r->src, &rx->src)) {
                count++;
                own =
                    own == NULL || r->deadline_us < own->deadline_us ? r : own;
            }
        }
    }
    if (count >= NET_REASSEMBLIES / 2) {
        oldest = own;
    }
    if (oldest != NULL && oldest->state != REASSEMBLY_FREE) {
        net_count(stack, rx->port, NET_DROP_FRAGMENT_EVICTED);
        reassembly_enter(stack, oldest, REASSEMBLY_FREE, UINT64_MAX);
    }
    return oldest;
}

static void begin_reassembly(struct net_reassembly *r, const struct net_rx *rx)
{
    r->src = rx->src;
    r->dst = rx->dst;
    r->mac = rx->eth.src;
    r->port = rx->port;
    r->vlan = rx->vlan;
    r->priority = rx->eth.priority;
    r->tos = rx->tos;
    r->local = (int16_t)rx->local;
    r->received_bytes = r->highest_bytes = r->total_bytes = 0;
    r->sent_bytes = r->first_bytes = 0;
    r->header_len = ip_addr_is_v4(&rx->src) ? IPV4_LEN : IPV6_LEN;
}

static struct net_reassembly *find_reassembly(struct net_stack *stack,
                                              const struct net_rx *rx,
                                              const struct net_fragment *f)
{
    struct net_reassembly *r;

    for (size_t i = 0; i < NET_REASSEMBLIES; i++) {
        if (is_same(&stack->reassemblies[i], rx, f)) {
            return &stack->reassemblies[i];
        }
    }
    r = take_reassembly(stack, rx);
    if (r == NULL) {
        net_count(stack, rx->port, NET_DROP_FRAGMENT_EVICTED);
        return NULL;
    }
    begin_reassembly(r, rx);
    r->id = f->id;
    r->protocol = f->protocol;
    memset(r->blocks, 0, sizeof(r->blocks));
    reassembly_enter(stack, r, REASSEMBLY_COLLECTING,
                     rx->now_us + NET_REASSEMBLY_US);
    return r;
}

/* ---- Reassembly. */

/* How many of the blocks `first` to `end` - 1 have been received. */
static size_t count_blocks(const struct net_reassembly *r, size_t first,
                           size_t end)
{
    size_t count = 0;

    while (first < end) {
        size_t bit = first % 32;
        size_t n = MIN(32 - bit, end - first);
        uint32_t mask = (n == 32 ? UINT32_MAX : (1u << n) - 1) << bit;

        count += (size_t)__builtin_popcount(r->blocks[first / 32] & mask);
        first += n;
    }
    return count;
}

static void set_blocks(struct net_reassembly *r, size_t first, size_t end)
{
    for (; first < end; first++) {
        r->blocks[first / 32] |= 1u << first % 32;
    }
}

enum verdict { NEW, DUPLICATE, OVERLAP };

static enum verdict judge_fragment(const struct net_reassembly *r,
                                   const struct net_fragment *f, size_t len)
{
    size_t end = f->offset_bytes + len;
    size_t first = f->offset_bytes / BLOCK_LEN;
    size_t blocks = (len + BLOCK_LEN - 1) / BLOCK_LEN;
    size_t known = count_blocks(r, first, first + blocks);

    if ((r->total_bytes != 0 && end > r->total_bytes) ||
        (!f->more_fragments &&
         (end < r->highest_bytes ||
          (r->total_bytes != 0 && end != r->total_bytes)))) {
        return OVERLAP; /* contradicts the packet's known end */
    }
    if (known == 0) {
        return NEW;
    }
    return known == blocks &&
                   memcmp(r->payload + f->offset_bytes, f->payload, len) == 0
               ? DUPLICATE
               : OVERLAP;
}

static void keep_fragment(struct net_reassembly *r, const struct net_rx *rx,
                          const struct net_fragment *f, size_t len)
{
    size_t end = f->offset_bytes + len;

    memcpy(r->payload + f->offset_bytes, f->payload, len);
    set_blocks(r, f->offset_bytes / BLOCK_LEN,
               (end + BLOCK_LEN - 1) / BLOCK_LEN);
    r->received_bytes += (uint32_t)len;
    r->highest_bytes = MAX(r->highest_bytes, (uint32_t)end);
    r->mac = rx->eth.src;
    if (!f->more_fragments) {
        r->total_bytes = (uint32_t)end;
    }
    if (f->offset_bytes == 0) {
        r->first_bytes = (uint16_t)len;
        r->protocol = f->protocol;
        memcpy(r->header + IPV6_LEN - r->header_len, rx->l3, r->header_len);
        if (r->header_len == IPV6_LEN) { /* skip the extension headers */
            r->header[IPV6_NEXT_HEADER] = f->protocol;
        }
    }
}

/* Change the header to that of a whole packet: RFC 791, RFC 8200 4.5. */
static void mend_header(struct net_reassembly *r)
{
    uint8_t *header = r->header + IPV6_LEN - r->header_len;

    if (r->header_len == IPV6_LEN) {
        put_be16(header + IPV6_PAYLOAD_LEN, (uint16_t)r->total_bytes);
        header[IPV6_NEXT_HEADER] = r->protocol;
        return;
    }
    ipv4_emit(
        &(struct ipv4){
            .src = r->src,
            .dst = r->dst,
            .total_len_bytes = (uint16_t)(IPV4_LEN + r->total_bytes),
            .id = (uint16_t)r->id,
            .tos = r->tos,
            .ttl = header[IPV4_TTL],
            .protocol = r->protocol,
        },
        header);
}

bool net_fragment_input(struct net_stack *stack, struct net_rx *rx,
                        const struct net_fragment *f, size_t len)
{
    struct net_reassembly *r;

    net_count(stack, rx->port, NET_FRAGMENTS_RECEIVED);
    r = find_reassembly(stack, rx, f);
    if (r == NULL) {
        return false;
    }
    switch (r->state == REASSEMBLY_REFUSED ? OVERLAP
                                           : judge_fragment(r, f, len)) {
    case DUPLICATE:
        return false; /* an exact duplicate may be ignored: RFC 8200 */
    case OVERLAP:
        net_count(stack, rx->port, NET_DROP_FRAGMENT_OVERLAP);
        if (r->state == REASSEMBLY_COLLECTING) {
            reassembly_enter(stack, r, REASSEMBLY_REFUSED, r->deadline_us);
        }
        return false;
    default:
        keep_fragment(r, rx, f, len);
        break;
    }
    if (r->total_bytes == 0 || r->received_bytes != r->total_bytes) {
        return false;
    }
    mend_header(r);
    net_count(stack, rx->port, NET_REASSEMBLED);
    rx->reassembly = r;
    rx->is_fragmented = true;
    rx->l3 = r->header + IPV6_LEN - r->header_len;
    rx->l3_len = r->header_len + r->total_bytes;
    rx->l4 = r->payload;
    rx->l4_len = r->total_bytes;
    return true;
}

void net_fragment_done(struct net_stack *stack, struct net_rx *rx)
{
    if (rx->reassembly->state != REASSEMBLY_ANSWERING) {
        reassembly_enter(stack, rx->reassembly, REASSEMBLY_FREE, UINT64_MAX);
    }
}

/* ---- Answers in fragments. */

uint8_t *net_fragment_answer(struct net_stack *stack, struct net_rx *rx,
                             uint8_t local, size_t len)
{
    struct net_reassembly *r = rx->reassembly;

    ASSERT(len <= rx->l4_len);
    if (r == NULL) { /* not fragmented, but too long for the reply's path */
        r = take_reassembly(stack, rx);
        if (r == NULL) {
            return NULL;
        }
        begin_reassembly(r, rx);
        memcpy(r->payload, rx->l4, len);
    } else if (rx->l4 != r->payload) { /* options precede it */
        memmove(r->payload, rx->l4, len);
    }
    r->dst = stack->addresses[local].config.ip;
    r->local = local;
    r->total_bytes = (uint32_t)len;
    r->id = (uint32_t)net_random_below(stack, UINT32_MAX) + 1;
    reassembly_enter(stack, r, REASSEMBLY_ANSWERING, rx->now_us);
    return r->payload;
}

static void send_fragment(struct net_stack *stack, struct net_reassembly *r,
                          uint16_t mtu_bytes, uint8_t *frame)
{
    bool v4 = ip_addr_is_v4(&r->src);
    size_t room =
        (size_t)mtu_bytes - (v4 ? IPV4_LEN : IPV6_LEN + IPV6_FRAGMENT_LEN);
    size_t left = r->total_bytes - r->sent_bytes;
    size_t len = left > room ? room / BLOCK_LEN * BLOCK_LEN : left;
    const struct net_ip_out out = {
        .src = r->dst,
        .dst = r->src,
        .mac = &r->mac,
        .payload_len = len + (v4 ? 0 : IPV6_FRAGMENT_LEN),
        .fragment_id = r->id,
        .fragment_offset_bytes = (uint16_t)r->sent_bytes,
        .is_fragment = true,
        .more_fragments = len < left,
        .vlan = r->vlan,
        .port = r->port,
        .priority = r->priority,
        .protocol = v4 ? IP_PROTOCOL_ICMP : IP_PROTOCOL_ICMPV6,
        .tos = r->tos & 0xfc,
        .hop_limit = HOP_LIMIT,
    };
    size_t at = net_ip_emit(stack, &out, frame);

    memcpy(frame + at, r->payload + r->sent_bytes, len);
    r->sent_bytes += (uint32_t)len;
    net_count(stack, r->port, NET_FRAGMENTS_SENT);
    net_tx_commit(stack, r->port, at + len, r->priority);
}

/* @return false when there was no transmit buffer */
static bool send_answer(struct net_stack *stack, struct net_reassembly *r,
                        uint64_t now_us)
{
    uint16_t mtu_bytes = net_path_mtu(stack, r->port, r->vlan, &r->src, now_us);

    while (stack->link_up[r->port] && r->sent_bytes != r->total_bytes) {
        uint8_t *frame = net_tx_begin(stack, r->port);

        if (frame == NULL) {
            return false;
        }
        send_fragment(stack, r, mtu_bytes, frame);
    }
    reassembly_enter(stack, r, REASSEMBLY_FREE, UINT64_MAX);
    return true;
}

/* ---- Time. */

/*
 * Restore the first fragment of an IPv6 packet, which an ICMPv6 error quotes,
 * without the extension headers between the two headers.
 * Spec: RFC 4443 section 2.4 (c)
 */
static void unpack_first(struct net_reassembly *r)
{
    const struct ipv6_fragment fragment = {
        .id = r->id,
        .next_header = r->protocol,
        .more_fragments = true,
    };

    memmove(r->payload + IPV6_FRAGMENT_LEN, r->payload, r->first_bytes);
    ipv6_fragment_emit(&fragment, r->payload);
    r->first_bytes += IPV6_FRAGMENT_LEN;
    r->header[IPV6_NEXT_HEADER] = IPV6_EXT_FRAGMENT;
    put_be16(r->header + IPV6_PAYLOAD_LEN, r->first_bytes);
}

/* The time is over: report an error to the source if the first fragment has
 * arrived (RFC 1122 section 3.3.2, RFC 4443 section 3.3). */
static bool expire_reassembly(struct net_stack *stack, struct net_reassembly *r,
                              uint64_t now_us)
{
    struct net_rx rx = {
        .eth = {.src = r->mac, .priority = r->priority},
        .l3 = r->header + IPV6_LEN - r->header_len,
        .l3_len = (size_t)r->header_len + r->first_bytes,
        .src = r->src,
        .dst = r->dst,
        .now_us = now_us,
        .vlan = r->vlan,
        .port = r->port,
        .tos = r->tos,
        .local = r->local,
    };

    if (r->state == REASSEMBLY_COLLECTING && r->first_bytes != 0 &&
        stack->link_up[r->port] && rx.local >= 0 &&
        net_stack_is_usable(stack, (uint8_t)rx.local)) {
        rx.answer = net_tx_begin(stack, r->port);
        if (rx.answer == NULL) {
            return false;
        }
        if (r->header_len == IPV6_LEN) {
            unpack_first(r);
            rx.l3_len += IPV6_FRAGMENT_LEN;
        }
        net_icmp_error(stack, &rx, NET_REASSEMBLY_TIME_EXCEEDED);
    }
    net_count(stack, r->port, NET_DROP_FRAGMENT_TIMEOUT);
    reassembly_enter(stack, r, REASSEMBLY_FREE, UINT64_MAX);
    return true;
}

uint64_t net_fragment_timer(struct net_stack *stack, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;

    if (now_us < stack->fragment_due_us) {
        return stack->fragment_due_us;
    }
    for (size_t i = 0; i < NET_REASSEMBLIES; i++) {
        struct net_reassembly *r = &stack->reassemblies[i];

        if (r->state != REASSEMBLY_FREE && r->deadline_us <= now_us &&
            !(r->state == REASSEMBLY_ANSWERING
                  ? send_answer(stack, r, now_us)
                  : expire_reassembly(stack, r, now_us))) {
            r->deadline_us = now_us + TX_RETRY_US;
        }
        if (r->state != REASSEMBLY_FREE) {
            next_us = MIN(next_us, r->deadline_us);
        }
    }
    stack->fragment_due_us = next_us;
    return next_us;
}
