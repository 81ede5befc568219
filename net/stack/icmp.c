/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP and ICMPv6: echo, and the errors that the drive sends and receives.
 * Spec: RFC 792, RFC 1122 section 3.2.2, RFC 1191, RFC 4443, RFC 8201.
 */
#include "net/stack/internal.h"

#include "lib/bytes.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/ipv6_ext.h"
#include "net/wire/mld.h"
#include "net/wire/nd.h"

enum {
    HOP_LIMIT = 64,
    ERROR_MAX_IPV4 = 576,  /* longest error packet: RFC 1122 */
    ERROR_MAX_IPV6 = 1280, /* longest error packet: RFC 4443 */
    QUOTED_MIN = 8,        /* bytes quoted beyond the IP header, at least */
    PATH_MTU_MIN_IPV4 = 576,
    PATH_MTU_MIN_IPV6 = 1280,
};

/* The own address to answer from.  For a packet to a group it is the port's
 * link-local address, else any of its addresses. */
static int source_of(const struct net_stack *stack, const struct net_rx *rx)
{
    if (rx->local >= 0) {
        return rx->local;
    }
    for (int local = NET_ADDRESSES - 1; local >= 0; local--) {
        const struct net_address_config *own = &stack->addresses[local].config;

        if (net_stack_is_usable(stack, (uint8_t)local) &&
            own->port == rx->port && own->vlan == rx->vlan &&
            !ip_addr_is_v4(&own->ip)) {
            return local;
        }
    }
    return NET_NOT_OURS;
}

/* Send an ICMP message; `body`, which follows the header, is copied. */
static void icmp_send(struct net_stack *stack, struct net_rx *rx, uint8_t local,
                      const struct icmp *icmp, const uint8_t *body,
                      size_t body_len)
{
    bool v4 = ip_addr_is_v4(&rx->src);
    const struct net_ip_out out = {
        .src = stack->addresses[local].config.ip,
        .dst = rx->src,
        .mac = &rx->eth.src,
        .payload_len = ICMP_LEN + body_len,
        .vlan = rx->vlan,
        .port = rx->port,
        .priority = rx->eth.priority,
        .protocol = v4 ? IP_PROTOCOL_ICMP : IP_PROTOCOL_ICMPV6,
        .tos = rx->tos & 0xfc, /* the request's DSCP, without its ECN bits */
        .hop_limit = HOP_LIMIT,
    };
    size_t len = net_ip_emit(stack, &out, rx->answer);
    uint8_t *message = rx->answer + len;

    memcpy(message + ICMP_LEN, body, body_len);
    if (v4) {
        icmp_emit(icmp, message, out.payload_len);
    } else {
        icmpv6_emit(icmp, &out.src, &out.dst, message, out.payload_len);
    }
    net_tx_commit(stack, rx->port, len + out.payload_len, rx->eth.priority);
}

static uint32_t count_frames(const struct net_rx *rx, uint16_t mtu_bytes)
{
    return rx->reassembly == NULL
               ? 1
               : (uint32_t)(rx->l4_len / (mtu_bytes - IPV6_LEN - 16u)) + 1;
}

/* The reply exceeds the path MTU: fragment.c sends it piece by piece. */
static void echo_in_fragments(struct net_stack *stack, struct net_rx *rx,
                              const struct icmp *reply, uint8_t local)
{
    uint8_t *message = net_fragment_answer(stack, rx, local, rx->l4_len);
    const struct ip_addr *own = &stack->addresses[local].config.ip;

    if (message == NULL) {
        net_count(stack, rx->port, NET_DROP_LIMITED);
    } else if (ip_addr_is_v4(&rx->src)) {
        icmp_emit(reply, message, rx->l4_len);
    } else {
        icmpv6_emit(reply, own, &rx->src, message, rx->l4_len);
    }
}

static void echo_reply(struct net_stack *stack, struct net_rx *rx,
                       const struct icmp *asked, uint8_t type)
{
    size_t header_len = ip_addr_is_v4(&rx->src) ? IPV4_LEN : IPV6_LEN;
    const struct icmp reply = {.type = type, .rest = asked->rest};
    uint16_t mtu_bytes =
        net_path_mtu(stack, rx->port, rx->vlan, &rx->src, rx->now_us);
    int local = source_of(stack, rx);

    if (local < 0 || ip_addr_is_unspecified(&rx->src) ||
        net_ip_is_from_us(stack, rx)) {
        net_count(stack, rx->port, NET_DROP_SOURCE_IP);
    } else if (!net_limit_take(stack, rx->port, NET_LIMIT_ECHO,
                               count_frames(rx, mtu_bytes), rx->now_us)) {
        net_count(stack, rx->port, NET_DROP_LIMITED);
    } else if (header_len + rx->l4_len > mtu_bytes) {
        net_count(stack, rx->port, NET_ECHO_REPLIES);
        echo_in_fragments(stack, rx, &reply, (uint8_t)local);
    } else {
        net_count(stack, rx->port, NET_ECHO_REPLIES);
        icmp_send(stack, rx, (uint8_t)local, &reply, rx->l4 + ICMP_LEN,
                  rx->l4_len - ICMP_LEN);
    }
}

/* ---- Errors that others send. */

/*
 * A router reports that a packet of ours was too big.  We believe it for peers
 * behind a gateway if it quotes a packet that may be ours, within bounds and
 * for a limited time.  A forged report can then only shorten our packets to
 * that peer (RFC 5927 section 7), so that RoCE connections with longer ones are
 * refused.  For peers on our link we ignore it: no router is between us, and
 * one forged packet would shut a host out.
 */
static void receive_too_big(struct net_stack *stack, struct net_rx *rx,
                            uint32_t mtu_bytes)
{
    bool v4 = ip_addr_is_v4(&rx->src);
    size_t header_len = v4 ? IPV4_LEN : IPV6_LEN;
    const uint8_t *quoted = rx->l4 + ICMP_LEN;
    struct ip_addr src, dst;
    uint16_t index;

    if (rx->l4_len - ICMP_LEN < header_len + QUOTED_MIN ||
        quoted[0] >> 4 != (v4 ? 4 : 6)) {
        return;
    }
    src = v4 ? ip_addr_from_v4(get_be32(quoted + IPV4_SRC))
             : ip_addr_from_bytes(quoted + IPV6_SRC);
    dst = v4 ? ip_addr_from_v4(get_be32(quoted + IPV4_DST))
             : ip_addr_from_bytes(quoted + IPV6_DST);
    index = net_neigh_find(stack, rx->port, rx->vlan, &dst);
    if (v4 != ip_addr_is_v4(&src) || index == NEIGH_NONE ||
        net_address_on_link(stack, rx->port, rx->vlan, &dst) >= 0 ||
        !ip_addr_equal(&src, &rx->dst)) {
        return;
    }
    if (v4) { /* old routers report 0: RFC 1191 */
        mtu_bytes = MAX(mtu_bytes, PATH_MTU_MIN_IPV4);
    } else if (mtu_bytes < PATH_MTU_MIN_IPV6) {
        return; /* RFC 8201 section 4 */
    }
    if (net_neigh_note_mtu(stack, index, mtu_bytes, rx->now_us)) {
        net_count(stack, rx->port, NET_PATH_MTU_NOTED);
    }
}

static void error_input(struct net_stack *stack, struct net_rx *rx,
                        const struct icmp *icmp, bool is_too_big)
{
    net_count(stack, rx->port, NET_ICMP_ERRORS_RECEIVED);
    if (is_too_big && rx->local >= 0) {
        receive_too_big(stack, rx,
                        ip_addr_is_v4(&rx->src) ? icmp->rest & 0xffff
                                                : icmp->rest);
    }
}

/* ---- Messages. */

void net_icmp_input(struct net_stack *stack, struct net_rx *rx)
{
    struct icmp icmp;

    if (!icmp_parse(&icmp, rx->l4, rx->l4_len)) {
        net_count(stack, rx->port, NET_DROP_ICMP_MALFORMED);
        return;
    }
    switch (icmp.type) {
    case ICMP_ECHO_REQUEST:
        if (rx->local < 0) { /* RFC 1122 section 3.2.2.6: may be ignored */
            net_count(stack, rx->port, NET_DROP_ECHO_TO_GROUP);
        } else {
            echo_reply(stack, rx, &icmp, ICMP_ECHO_REPLY);
        }
        break;
    case ICMP_UNREACHABLE:
    case ICMP_SOURCE_QUENCH:
    case ICMP_TIME_EXCEEDED:
    case ICMP_PARAMETER_PROBLEM:
        error_input(stack, rx, &icmp,
                    icmp.type == ICMP_UNREACHABLE &&
                        icmp.code == ICMP_CODE_FRAGMENTATION_NEEDED);
        break;
    case ICMP_REDIRECT:
        net_count(stack, rx->port, NET_DROP_REDIRECT);
        break;
    default:
        net_count(stack, rx->port, NET_DROP_ICMP_TYPE);
        break;
    }
}

void net_icmpv6_input(struct net_stack *stack, struct net_rx *rx)
{
    struct icmp icmp;

    if (!icmpv6_parse(&icmp, &rx->src, &rx->dst, rx->l4, rx->l4_len)) {
        net_count(stack, rx->port, NET_DROP_ICMP_MALFORMED);
        return;
    }
    switch (icmp.type) {
    case ICMPV6_ECHO_REQUEST:
        echo_reply(stack, rx, &icmp, ICMPV6_ECHO_REPLY);
        break;
    case ND_NEIGHBOR_SOLICIT:
    case ND_NEIGHBOR_ADVERT:
        if (rx->is_fragmented) { /* RFC 6980 */
            net_count(stack, rx->port, NET_DROP_ND_MALFORMED);
        } else {
            net_nd_input(stack, rx);
        }
        break;
    case ND_ROUTER_ADVERT:
        if (rx->is_fragmented) {
            net_count(stack, rx->port, NET_DROP_ND_MALFORMED);
        } else {
            net_router_input(stack, rx);
        }
        break;
    case MLD_QUERY:
        net_mld_input(stack, rx);
        break;
    case ICMPV6_UNREACHABLE:
    case ICMPV6_TOO_BIG:
    case ICMPV6_TIME_EXCEEDED:
    case ICMPV6_PARAMETER_PROBLEM:
        error_input(stack, rx, &icmp, icmp.type == ICMPV6_TOO_BIG);
        break;
    case ND_REDIRECT:
        net_count(stack, rx->port, NET_DROP_REDIRECT);
        break;
    default:
        net_count(stack, rx->port, NET_DROP_ICMP_TYPE);
        break;
    }
}

/* ---- Errors that we send. */

/* An error must not answer an error: RFC 1122 3.2.2, RFC 4443 2.4 (e). */
static bool is_about_error(const struct net_rx *rx)
{
    size_t at = IPV6_LEN;
    uint8_t next = rx->l3[IPV6_NEXT_HEADER];

    if (ip_addr_is_v4(&rx->src)) {
        at = (size_t)(rx->l3[IPV4_VERSION_IHL] & 0xf) * 4;
        return rx->l3[IPV4_PROTOCOL] == IP_PROTOCOL_ICMP &&
               (at >= rx->l3_len || (rx->l3[at] != ICMP_ECHO_REQUEST &&
                                     rx->l3[at] != ICMP_ECHO_REPLY));
    }
    while (next == IPV6_EXT_HOP_BY_HOP || next == IPV6_EXT_ROUTING ||
           next == IPV6_EXT_DESTINATION || next == IPV6_EXT_FRAGMENT) {
        size_t len = next == IPV6_EXT_FRAGMENT && rx->l3_len - at >= 8
                         ? IPV6_FRAGMENT_LEN
                         : ipv6_ext_len(rx->l3 + at, rx->l3_len - at);

        if (len == 0) {
            return true; /* unknown: assume an error */
        }
        next = rx->l3[at];
        at += len;
    }
    return next == IP_PROTOCOL_ICMPV6 &&
           (at >= rx->l3_len || rx->l3[at] < ICMPV6_ECHO_REQUEST ||
            rx->l3[at] == ND_REDIRECT);
}

static bool may_be_told(const struct net_stack *stack, const struct net_rx *rx,
                        enum net_icmp_error error)
{
    return (rx->local >= 0 || error == NET_OPTION_PROBLEM) &&
           !ip_addr_is_unspecified(&rx->src) && !net_ip_is_from_us(stack, rx) &&
           !is_about_error(rx);
}

void net_icmp_error(struct net_stack *stack, struct net_rx *rx,
                    enum net_icmp_error error)
{
    static const struct {
        uint8_t type4, code4, type6, code6;
    } kinds[NET_ICMP_ERROR_KINDS] = {
        [NET_PORT_UNREACHABLE] = {ICMP_UNREACHABLE, ICMP_CODE_PORT_UNREACHABLE,
                                  ICMPV6_UNREACHABLE,
                                  ICMPV6_CODE_PORT_UNREACHABLE},
        [NET_PROTOCOL_UNREACHABLE] = {ICMP_UNREACHABLE,
                                      ICMP_CODE_PROTOCOL_UNREACHABLE,
                                      ICMPV6_PARAMETER_PROBLEM, 1},
        [NET_REASSEMBLY_TIME_EXCEEDED] = {ICMP_TIME_EXCEEDED, 1,
                                          ICMPV6_TIME_EXCEEDED, 1},
        [NET_HEADER_PROBLEM] = {0, 0, ICMPV6_PARAMETER_PROBLEM, 0},
        [NET_OPTION_PROBLEM] = {0, 0, ICMPV6_PARAMETER_PROBLEM, 2},
        [NET_OPTION_PROBLEM_UNICAST] = {0, 0, ICMPV6_PARAMETER_PROBLEM, 2},
    };
    bool v4 = ip_addr_is_v4(&rx->src);
    const struct icmp icmp = {
        .type = v4 ? kinds[error].type4 : kinds[error].type6,
        .code = v4 ? kinds[error].code4 : kinds[error].code6,
        .rest = v4 ? 0 : rx->pointer,
    };
    size_t room =
        (v4 ? ERROR_MAX_IPV4 - IPV4_LEN : ERROR_MAX_IPV6 - IPV6_LEN) - ICMP_LEN;
    int local = source_of(stack, rx);

    if (local < 0 || !may_be_told(stack, rx, error)) {
        return;
    }
    if (!net_limit_take(stack, rx->port, NET_LIMIT_ICMP_ERROR, 1, rx->now_us)) {
        net_count(stack, rx->port, NET_ICMP_ERRORS_LIMITED);
        return;
    }
    net_count(stack, rx->port, NET_ICMP_ERRORS_SENT);
    icmp_send(stack, rx, (uint8_t)local, &icmp, rx->l3, MIN(rx->l3_len, room));
}
