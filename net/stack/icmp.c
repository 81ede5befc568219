/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP and ICMPv6: echo, and the errors that we send.
 * Spec: RFC 792, RFC 1122 section 3.2.2, RFC 4443 sections 2.4, 3.1, 3.4, 4.
 */
#include "net/stack/internal.h"

#include "lib/bytes.h"
#include "net/wire/icmp.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/nd.h"

enum {
    HOP_LIMIT = 64,
    ERROR_BURST = 10, /* errors at once; then one each: */
    ERROR_INTERVAL_US = 100000,
    ERROR_MAX_IPV4 = 576,  /* RFC 1122: no more of the packet than fits */
    ERROR_MAX_IPV6 = 1280, /* RFC 4443 */
    PROTOCOL_UNREACHABLE = 2,
    PARAMETER_PROBLEM = 4,
    UNRECOGNIZED_NEXT_HEADER = 1,
};

/* Our address to answer from; for a group, the port's link-local or any. */
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

/* Send what follows an ICMP header at `body`, which is copied. */
static void answer(struct net_stack *stack, struct net_rx *rx, uint8_t local,
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
        .tos = rx->tos & 0xfc, /* DSCP; ECN is not for ICMP */
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

static void echo(struct net_stack *stack, struct net_rx *rx,
                 const struct icmp *asked, uint8_t type)
{
    const struct icmp reply = {.type = type, .rest = asked->rest};
    int local = source_of(stack, rx);

    if (rx->l3_len > stack->config.ports[rx->port].mtu_bytes) {
        net_count(stack, rx->port, NET_DROP_TOO_LONG);
        return;
    }
    if (local < 0 || ip_addr_is_unspecified(&rx->src) ||
        net_stack_local(stack, rx->port, rx->vlan, &rx->src) >= 0) {
        net_count(stack, rx->port, NET_DROP_SOURCE_IP);
        return;
    }
    net_count(stack, rx->port, NET_ECHO_REPLIES);
    answer(stack, rx, (uint8_t)local, &reply, rx->l4 + ICMP_LEN,
           rx->l4_len - ICMP_LEN);
}

void net_icmp_input(struct net_stack *stack, struct net_rx *rx)
{
    struct icmp icmp;

    if (!icmp_parse(&icmp, rx->l4, rx->l4_len)) {
        net_count(stack, rx->port, NET_DROP_ICMP_MALFORMED);
    } else if (icmp.type != ICMP_ECHO_REQUEST) {
        net_count(stack, rx->port, NET_DROP_ICMP_TYPE);
    } else if (rx->local < 0) { /* RFC 1122 section 3.2.2.6: may be ignored */
        net_count(stack, rx->port, NET_DROP_ECHO_TO_GROUP);
    } else {
        echo(stack, rx, &icmp, ICMP_ECHO_REPLY);
    }
}

void net_icmpv6_input(struct net_stack *stack, struct net_rx *rx)
{
    struct icmp icmp;

    if (!icmpv6_parse(&icmp, &rx->src, &rx->dst, rx->l4, rx->l4_len)) {
        net_count(stack, rx->port, NET_DROP_ICMP_MALFORMED);
    } else if (icmp.type == ICMPV6_ECHO_REQUEST) {
        echo(stack, rx, &icmp, ICMPV6_ECHO_REPLY);
    } else if (icmp.type == ND_NEIGHBOR_SOLICIT ||
               icmp.type == ND_NEIGHBOR_ADVERT) {
        net_nd_input(stack, rx);
    } else {
        net_count(stack, rx->port, NET_DROP_ICMP_TYPE);
    }
}

static bool take_token(struct net_stack *stack, uint64_t now_us)
{
    uint64_t earned = (now_us - stack->icmp_refilled_us) / ERROR_INTERVAL_US;

    if (earned != 0) {
        stack->icmp_tokens =
            (uint32_t)MIN(stack->icmp_tokens + earned, ERROR_BURST);
        stack->icmp_refilled_us += earned * ERROR_INTERVAL_US;
    }
    if (stack->icmp_tokens == 0) {
        return false;
    }
    stack->icmp_tokens--;
    return true;
}

void net_icmp_error(struct net_stack *stack, struct net_rx *rx,
                    enum net_icmp_error error)
{
    bool v4 = ip_addr_is_v4(&rx->src);
    struct icmp icmp = {
        .type = v4 ? ICMP_UNREACHABLE : ICMPV6_UNREACHABLE,
        .code = v4 ? ICMP_CODE_PORT_UNREACHABLE : ICMPV6_CODE_PORT_UNREACHABLE,
    };
    size_t room =
        (v4 ? ERROR_MAX_IPV4 - IPV4_LEN : ERROR_MAX_IPV6 - IPV6_LEN) - ICMP_LEN;

    if (rx->local < 0) {
        return; /* never in answer to a group */
    }
    if (!take_token(stack, rx->now_us)) {
        net_count(stack, rx->port, NET_ICMP_ERRORS_LIMITED);
        return;
    }
    if (error == NET_PROTOCOL_UNREACHABLE && v4) {
        icmp.code = PROTOCOL_UNREACHABLE;
    } else if (error == NET_PROTOCOL_UNREACHABLE) {
        icmp.type = PARAMETER_PROBLEM;
        icmp.code = UNRECOGNIZED_NEXT_HEADER;
        icmp.rest = IPV6_NEXT_HEADER;
    }
    net_count(stack, rx->port, NET_ICMP_ERRORS_SENT);
    answer(stack, rx, (uint8_t)rx->local, &icmp, rx->l3, MIN(rx->l3_len, room));
}
