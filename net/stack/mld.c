/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast listener reports.  Switches with MLD snooping forward neighbour
 * discovery for our addresses to us only after we reported their groups, and so
 * for the groups that services have joined.
 * Spec: RFC 3810 (version 2) section 6, RFC 3590, RFC 4862 section 5.4.2.
 *
 * Left out: version 1 reports for queriers of that version; leaving groups (the
 * querier notices that by itself); reports for ff02::1, which need none.
 */
#include "net/stack/internal.h"

#include "net/wire/ipv4.h"
#include "net/wire/ipv6_ext.h"
#include "net/wire/mld.h"
#include "net/wire/nd.h"

enum { REPORTS = 2, REPORT_INTERVAL_US = 1000000, HOP_LIMIT = 1 };

static const struct ip_addr all_listeners = {{0xff, 0x02, [15] = 0x16}};

/* A hop-by-hop header with the router alert option for MLD: RFC 2711. */
static const uint8_t router_alert[8] = {
    IP_PROTOCOL_ICMPV6, 0, 5, 2, 0, 0, 1, 0};

void net_mld_join(struct net_stack *stack, uint8_t local, uint64_t due_us)
{
    struct net_address *address = &stack->addresses[local];

    address->mld_left = REPORTS;
    address->mld_is_change = true;
    address->mld_due_us = due_us;
    net_due(&stack->address_due_us, due_us);
}

/* An own link-local address that is not optimistic, else the unspecified
 * address: RFC 3590. */
static struct ip_addr mld_source(const struct net_stack *stack,
                                 const struct net_address_config *own)
{
    for (uint8_t i = 0; i < NET_ADDRESSES; i++) {
        const struct net_address *other = &stack->addresses[i];

        if (net_stack_is_usable(stack, i) &&
            other->state != ADDRESS_OPTIMISTIC &&
            other->config.port == own->port &&
            other->config.vlan == own->vlan &&
            !ip_addr_is_v4(&other->config.ip) &&
            ip_addr_is_link_local(&other->config.ip)) {
            return other->config.ip;
        }
    }
    return (struct ip_addr){{0}};
}

/*
 * The groups that are reported for an address: its solicited-node group, and
 * those that services have joined.
 * @return their number
 */
static size_t mld_groups(const struct net_stack *stack,
                         const struct net_address_config *own,
                         struct ip_addr groups[1 + NET_GROUPS])
{
    size_t count = 0;

    groups[count++] = nd_solicited_node(&own->ip);
    for (size_t i = 0; i < NET_GROUPS; i++) {
        if (!ip_addr_is_unspecified(&stack->groups[i]) &&
            !ip_addr_is_v4(&stack->groups[i])) {
            groups[count++] = stack->groups[i];
        }
    }
    return count;
}

void net_mld_report(struct net_stack *stack, uint8_t local, uint8_t *frame,
                    uint64_t now_us)
{
    struct net_address *address = &stack->addresses[local];
    const struct net_address_config *own = &address->config;
    struct ip_addr groups[1 + NET_GROUPS];
    const size_t count = mld_groups(stack, own, groups);
    const struct mac_addr mac = nd_multicast_mac(&all_listeners);
    const struct net_ip_out out = {
        .src = mld_source(stack, own),
        .dst = all_listeners,
        .mac = &mac,
        .payload_len = sizeof(router_alert) + mld_report_len(count),
        .vlan = own->vlan,
        .port = own->port,
        .protocol = IPV6_EXT_HOP_BY_HOP,
        .hop_limit = HOP_LIMIT,
    };
    size_t at = net_ip_emit(stack, &out, frame);

    memcpy(frame + at, router_alert, sizeof(router_alert));
    at += sizeof(router_alert);
    mld_report_emit(address->mld_is_change ? MLD_CHANGE_TO_EXCLUDE
                                           : MLD_MODE_IS_EXCLUDE,
                    groups, count, &out.src, &out.dst, frame + at);
    net_tx_commit(stack, own->port, at + mld_report_len(count), 0);
    address->mld_left--;
    address->mld_due_us =
        now_us + 1 + net_random_below(stack, REPORT_INTERVAL_US);
}

/* A group whose report is pending is reported once, however many queries come.
 */
void net_mld_input(struct net_stack *stack, struct net_rx *rx)
{
    struct mld_query query;

    if (rx->hop_limit != HOP_LIMIT || rx->is_fragmented ||
        !ip_addr_is_link_local(&rx->src) ||
        !mld_query_parse(&query, rx->l4, rx->l4_len)) {
        net_count(stack, rx->port, NET_DROP_ND_MALFORMED);
        return;
    }
    for (uint8_t local = 0; local < NET_ADDRESSES; local++) {
        struct net_address *address = &stack->addresses[local];
        struct ip_addr group = nd_solicited_node(&address->config.ip);

        if (!net_stack_is_usable(stack, local) || address->mld_left != 0 ||
            address->config.port != rx->port ||
            address->config.vlan != rx->vlan ||
            ip_addr_is_v4(&address->config.ip) ||
            !(ip_addr_is_unspecified(&query.group) ||
              ip_addr_equal(&query.group, &group) ||
              net_group_is_joined(stack, &query.group))) {
            continue;
        }
        address->mld_left = 1;
        address->mld_is_change = false;
        address->mld_due_us =
            rx->now_us +
            net_random_below(stack, query.max_response_ms * 1000ull + 1);
        net_due(&stack->address_due_us, address->mld_due_us);
    }
}
