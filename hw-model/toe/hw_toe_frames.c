/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of the TCP offload engine: IP and Ethernet around net/tcp's segments,
 * and the paths by which peers are reached.
 * Reference: docs/hardware/toe.md, section 5.
 */
#include "hw-model/toe/hw_toe_internal.h"

#include <string.h>

#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"

enum {
    HOP_LIMIT = 64,
    UNTAGGED = 0xffff,
    PROBES = 8, /* places in which a path may be */
    VID_MASK = 0xfff,
    PCP_SHIFT = 13,
};

/* ---- Paths. */

static bool path_is(const struct hw_toe_path *path,
                    const struct hw_toe_path *wanted)
{
    return path->is_used && mac_addr_equal(&path->peer, &wanted->peer) &&
           mac_addr_equal(&path->own, &wanted->own) &&
           path->tci == wanted->tci && path->port == wanted->port &&
           path->is_tagged == wanted->is_tagged;
}

/* The secret keeps a peer from choosing MACs with the same places. */
static uint32_t path_hash(const struct hw_toe_state *state,
                          const struct hw_toe_path *path)
{
    uint32_t hash = get_be32(path->peer.bytes + 2) ^ state->secret[0];

    hash ^= (uint32_t)get_be16(path->peer.bytes) << 7;
    hash ^= (uint32_t)path->tci << 16 | (uint32_t)path->port << 15;
    hash = (hash ^ hash >> 16) * (state->secret[1] | 1);
    hash *= 0x85ebca6b; /* a constant of MurmurHash3 */
    return hash ^ hash >> 15;
}

/* Connections and orphans hold their path; net/tcp sends by the paths of
 * answers that wait and of TIME-WAIT. */
static bool path_is_free(const struct hw_toe *toe, uint16_t index)
{
    const struct hw_toe_path *path = &toe->state.paths[index];

    return path->refs == 0 &&
           (!path->is_used || !tcp_route_is_needed(toe->tcp, index));
}

/* Look at `count` places.  @return whether the path is there; if not, *free is
 * one that may be taken, or -1 */
static bool path_look(const struct hw_toe *toe,
                      const struct hw_toe_path *wanted, uint32_t first,
                      uint32_t count, uint16_t *index, int *free)
{
    const struct hw_toe_path *paths = toe->state.paths;

    *free = -1;
    for (uint32_t i = 0; i < count; i++) {
        uint16_t at = (uint16_t)((first + i) % HW_TOE_PATHS);

        if (path_is(&paths[at], wanted)) {
            *index = at;
            return true;
        }
        if ((*free < 0 || (!paths[at].is_used && paths[*free].is_used)) &&
            path_is_free(toe, at)) {
            *free = at;
        }
    }
    return false;
}

_Static_assert((int)HW_TOE_PATHS > (int)HW_TOE_SLOTS + (int)HW_TOE_ORPHANS +
                                       (int)TCP_ANSWERS_MAX +
                                       (int)TCP_TIME_WAITS_MAX,
               "one path is free: see path_is_free()");

/*
 * Find a path, or remember it in place of one by which nothing is sent.  One is
 * always free, if not near where the path belongs.
 */
static uint16_t path_find(struct hw_toe *toe, const struct hw_toe_path *wanted)
{
    struct hw_toe_state *state = &toe->state;
    uint32_t hash = path_hash(state, wanted);
    uint16_t index = 0;
    int free;

    if (path_look(toe, wanted, hash, PROBES, &index, &free) ||
        (free < 0 &&
         path_look(toe, wanted, hash, HW_TOE_PATHS, &index, &free))) {
        return index;
    }
    ASSERT(free >= 0);
    state->paths[free] = *wanted;
    state->paths[free].is_used = true;
    return (uint16_t)free;
}

/* ---- Receive. */

struct ip_packet {
    struct ip_addr src, dst;
    uint8_t tos;
    const uint8_t *data;
    size_t len_bytes;
};

static bool parse_ip(struct ip_packet *packet, uint16_t type,
                     const uint8_t *data, size_t len)
{
    struct ipv4 v4;
    struct ipv6 v6;

    if (type == ETHERTYPE_IPV4) {
        if (!ipv4_parse(&v4, data, len) || v4.protocol != IP_PROTOCOL_TCP ||
            v4.more_fragments || v4.fragment_offset_bytes != 0) {
            return false;
        }
        *packet = (struct ip_packet){
            v4.src, v4.dst, v4.tos, data + v4.header_len_bytes,
            (size_t)v4.total_len_bytes - v4.header_len_bytes};
        return true;
    }
    if (type != ETHERTYPE_IPV6 || !ipv6_parse(&v6, data, len) ||
        v6.next_header != IP_PROTOCOL_TCP) {
        return false;
    }
    *packet = (struct ip_packet){v6.src, v6.dst, v6.traffic_class,
                                 data + IPV6_LEN, v6.payload_len_bytes};
    return true;
}

static bool is_own(const struct hw_toe_state *state, uint8_t port,
                   uint16_t vlan, const struct ip_addr *ip)
{
    for (unsigned int i = 0; i < HW_TOE_LADDRS; i++) {
        const struct hw_toe_laddr *laddr = &state->laddrs[i];

        if (laddr->is_used && laddr->port == port &&
            (laddr->vlan & UNTAGGED) == vlan && ip_addr_equal(&laddr->ip, ip)) {
            return true;
        }
    }
    return false;
}

/* Nobody else has an own address on this port and VLAN; on another one, where
 * addresses may overlap, somebody may.  Nobody has that of all (RFC 1122
 * section 4.2.3.10); net/tcp drops groups. */
static bool source_makes_sense(const struct hw_toe_state *state, uint8_t port,
                               uint16_t vlan, const struct ip_addr *ip)
{
    return !is_own(state, port, vlan, ip) && !ip_addr_is_loopback(ip) &&
           (!ip_addr_is_v4(ip) || get_be32(ip->bytes + 12) != UINT32_MAX);
}

void hw_toe_take_frame(struct hw_toe *toe, uint8_t port,
                       const struct frame_rx *frame, uint64_t now_us)
{
    struct hw_toe_path path = {.port = port};
    struct ip_packet ip;
    struct tcp_packet packet;
    struct eth eth;
    size_t header;
    uint16_t vlan;

    hw_toe_count(toe, TOE_COUNT_RX_FRAMES);
    if (!eth_parse(&eth, frame->data, frame->len_bytes)) {
        hw_toe_count(toe, TOE_COUNT_RX_MALFORMED);
        return;
    }
    header = eth_header_len(&eth);
    if (!parse_ip(&ip, eth.type, frame->data + header,
                  frame->len_bytes - header)) {
        hw_toe_count(toe, TOE_COUNT_RX_MALFORMED);
        return;
    }
    vlan = eth.vlan != 0 ? eth.vlan : (uint16_t)UNTAGGED;
    if (mac_addr_is_multicast(&eth.dst) || mac_addr_is_multicast(&eth.src) ||
        !is_own(&toe->state, port, vlan, &ip.dst) ||
        !source_makes_sense(&toe->state, port, vlan, &ip.src)) {
        hw_toe_count(toe, TOE_COUNT_RX_ADDRESS);
        return;
    }
    path.own = eth.dst;
    path.peer = eth.src;
    path.is_tagged = eth.tagged;
    path.tci = (uint16_t)(eth.priority << PCP_SHIFT | eth.vlan);
    toe->rx_path = path_find(toe, &path);
    packet = (struct tcp_packet){
        .local = ip.dst,
        .remote = ip.src,
        .route = toe->rx_path,
        .ecn = ip.tos & 3,
        .data = ip.data,
        .len_bytes = ip.len_bytes,
    };
    tcp_input(toe->tcp, &packet, now_us);
}

/* ---- Send. */

static size_t emit_eth(const struct hw_toe_path *path, bool is_v4, uint8_t *to)
{
    const struct eth eth = {
        .dst = path->peer,
        .src = path->own,
        .type = is_v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6,
        .tagged = path->is_tagged,
        .priority = (uint8_t)(path->tci >> PCP_SHIFT),
        .vlan = path->tci & VID_MASK,
    };

    eth_emit(&eth, to);
    return eth_header_len(&eth);
}

/* Routers may fragment: firmware does not pass their complaints on. */
static size_t emit_ip(struct hw_toe *toe, const struct tcp_segment *segment,
                      size_t len, uint8_t *to)
{
    const struct tcp_ends *ends = &segment->ends;

    if (ip_addr_is_v4(&ends->remote)) {
        const struct ipv4 ip = {
            .src = ends->local,
            .dst = ends->remote,
            .total_len_bytes = (uint16_t)(IPV4_LEN + len),
            .id = toe->state.ip_id++,
            .ttl = HOP_LIMIT,
            .tos = segment->ecn,
            .protocol = IP_PROTOCOL_TCP,
        };

        ipv4_emit(&ip, to);
        return IPV4_LEN;
    }
    const struct ipv6 ip = {
        .src = ends->local,
        .dst = ends->remote,
        .payload_len_bytes = (uint16_t)len,
        .traffic_class = segment->ecn,
        .next_header = IP_PROTOCOL_TCP,
        .hop_limit = HOP_LIMIT,
    };

    ipv6_emit(&ip, to);
    return IPV6_LEN;
}

static uint8_t path_priority(const struct hw_toe_path *path)
{
    return path->is_tagged ? (uint8_t)(path->tci >> PCP_SHIFT) : (uint8_t)0;
}

bool hw_toe_path_has_room(const struct hw_toe *toe, uint32_t index)
{
    const struct hw_toe_path *path = &toe->state.paths[index % HW_TOE_PATHS];
    const struct frame_sink *sink = &toe->sinks[path->port];

    return (toe->blocked & BIT(path->port)) == 0 &&
           (sink->paused == NULL ||
            (*sink->paused & BIT(path_priority(path))) == 0);
}

bool hw_toe_send_segment(void *ctx, const struct tcp_segment *segment)
{
    struct hw_toe *toe = ctx;
    const struct hw_toe_path *path =
        &toe->state.paths[segment->route % HW_TOE_PATHS];
    const struct frame_sink *sink = &toe->sinks[path->port];
    struct frame_tx frame = {.priority = path_priority(path),
                             .num_pieces = segment->num_pieces};
    size_t len = segment->header_len;
    size_t at;

    if (sink->send == NULL) {
        return true; /* nothing is attached: the frame is lost */
    }
    if (!hw_toe_path_has_room(toe, segment->route)) {
        return false;
    }
    for (unsigned int i = 0; i < segment->num_pieces; i++) {
        frame.pieces[i] = (struct frame_piece){segment->pieces[i].data,
                                               segment->pieces[i].len_bytes};
        len += segment->pieces[i].len_bytes;
    }
    at = emit_eth(path, ip_addr_is_v4(&segment->ends.remote), frame.head);
    at += emit_ip(toe, segment, len, frame.head + at);
    memcpy(frame.head + at, segment->header, segment->header_len);
    frame.head_len = (uint16_t)(at + segment->header_len);
    if (sink->send(sink->ctx, &frame, 1) == 0) {
        toe->blocked |= (uint8_t)BIT(path->port);
        return false;
    }
    hw_toe_count(toe, TOE_COUNT_TX_FRAMES);
    return true;
}
