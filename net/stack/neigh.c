/* SPDX-License-Identifier: BSD-2-Clause */
/* The neighbour table's protocol: soliciting, learning, exporting.  See
 * neigh.h. */
#include "net/stack/neigh_table.h"

enum { TX_RETRY_US = 1000 };

/* ---- Callbacks of the stack's user. */

static void publish_entry(struct net_stack *stack, uint16_t index)
{
    struct neigh_info info;

    if (neigh_entry_of(stack, index)->is_exported &&
        stack->config.neigh_update != NULL &&
        net_neigh_info(stack, index, &info)) {
        stack->config.neigh_update(stack->config.ctx, index, &info);
    }
}

static void export_entry(struct net_stack *stack, uint16_t index)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    if (!e->is_exported) {
        e->is_exported = true;
        publish_entry(stack, index);
    }
}

static void report_resolved(struct net_stack *stack, uint16_t index,
                            bool is_ready)
{
    if (stack->config.neigh_resolved != NULL) {
        stack->config.neigh_resolved(stack->config.ctx, index, is_ready);
    }
}

/* ---- Solicitations. */

static bool can_ask_from(const struct net_stack *stack,
                         const struct neigh_entry *e)
{
    const struct net_address_config *own = &stack->addresses[e->local].config;

    return net_stack_is_usable(stack, e->local) && own->port == e->port &&
           own->vlan == e->vlan &&
           ip_addr_is_v4(&own->ip) == ip_addr_is_v4(&e->ip);
}

/* Send one solicitation; the first ones of PROBE are unicast to the known MAC.
 * @return false when there was no transmit buffer */
static bool send_solicit(struct net_stack *stack, uint16_t index)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);
    bool unicast = e->state == NEIGH_PROBE && e->tries < NEIGH_UNICAST_TRIES;
    const struct mac_addr *mac = unicast ? &e->mac : NULL;
    uint8_t *frame;
    size_t len;

    if (!can_ask_from(stack, e)) { /* that address was removed: use another */
        int local = net_address_on_link(stack, e->port, e->vlan, &e->ip);

        e->local = local >= 0 ? (uint8_t)local : e->local;
    }
    if (can_ask_from(stack, e)) {
        frame = net_tx_begin(stack, e->port);
        if (frame == NULL) {
            return false;
        }
        len = ip_addr_is_v4(&e->ip)
                  ? net_arp_ask(stack, e->local, &e->ip, mac, frame)
                  : net_nd_ask(stack, e->local, &e->ip, mac, frame);
        net_tx_commit(stack, e->port, len, 0);
    }
    e->tries++; /* counts as a try even if there is no address to ask from */
    return true;
}

static bool ask_or_wait(struct net_stack *stack, uint16_t index,
                        uint64_t now_us)
{
    if (!send_solicit(stack, index)) {
        neigh_timer_now(stack, index, now_us);
        return false;
    }
    return true;
}

static bool probe_entry(struct net_stack *stack, uint16_t index,
                        uint64_t now_us)
{
    neigh_enter(stack, index, NEIGH_PROBE, now_us);
    return ask_or_wait(stack, index, now_us);
}

/* The entry is used: probe it, or its gateway, if that is stale. */
static void use_entry(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    neigh_touch(stack, index);
    if (e->via != NEIGH_NONE) {
        index = e->via;
        e = neigh_entry_of(stack, index);
    }
    if (e->state == NEIGH_STALE && !e->is_remote) {
        (void)probe_entry(stack, index, now_us);
    }
}

/*
 * Two MACs claim an address that is in use: solicit it by multicast, unless
 * that is under way already, or an answer came within the last second.
 */
static void solicit_all_hosts(struct net_stack *stack, uint16_t index,
                              uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    if ((e->state == NEIGH_PROBE && e->tries >= NEIGH_UNICAST_TRIES) ||
        (e->state == NEIGH_REACHABLE &&
         e->deadline_us > now_us + NEIGH_REACHABLE_US - NEIGH_RETRANS_US)) {
        return;
    }
    neigh_enter(stack, index, NEIGH_PROBE, now_us);
    e->tries = NEIGH_UNICAST_TRIES;
    (void)ask_or_wait(stack, index, now_us);
}

/* ---- Answers and time-outs. */

static void got_mac(struct net_stack *stack, uint16_t index,
                    const struct mac_addr *mac, enum neigh_state next,
                    uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);
    bool was_waited_for = e->state == NEIGH_INCOMPLETE;
    bool is_new = !neigh_has_mac(e) || !mac_addr_equal(&e->mac, mac);

    e->mac = *mac;
    neigh_enter(stack, index, next, now_us);
    if (!is_new) {
        return;
    }
    publish_entry(stack, index);
    if (was_waited_for && e->pins != 0 && e->is_exported) {
        report_resolved(stack, index, true);
    }
}

/* Set the MAC of an entry, and of all entries whose gateway it is. */
static void got_next_hop(struct net_stack *stack, uint16_t index,
                         const struct mac_addr *mac, enum neigh_state next,
                         uint64_t now_us)
{
    uint16_t behind;

    got_mac(stack, index, mac, next, now_us);
    behind = neigh_entry_of(stack, index)->behind.head;
    while (behind != NEIGH_NONE) {
        uint16_t following =
            neigh_entry_of(stack, behind)->link[NEIGH_BY_GATEWAY].next;

        got_mac(stack, behind, mac, NEIGH_STALE, now_us);
        behind = following;
    }
}

/* Nobody answered: report the failure to waiting users, and remove the entry
 * and its pins. */
static void fail_resolution(struct net_stack *stack, uint16_t index,
                            uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    net_count(stack, e->port, NET_NEIGH_FAILED);
    net_router_failed(stack, e->port, &e->ip);
    while (e->behind.head != NEIGH_NONE) {
        /* fail_resolution() removes the neighbour from the list. */
        fail_resolution(stack, e->behind.head, now_us);
    }
    if (e->pins != 0) {
        e->pins = 1;
        neigh_unpin(stack, index, now_us);
        report_resolved(stack, index, false);
    }
    neigh_release(stack, index, now_us);
}

static bool is_exhausted(const struct neigh_entry *e)
{
    return e->tries >= (e->state == NEIGH_PROBE
                            ? NEIGH_UNICAST_TRIES + NEIGH_MULTICAST_TRIES
                            : NEIGH_MULTICAST_TRIES);
}

/*
 * A retransmission is due.  A pinned entry that no longer answers keeps its
 * MAC, because the connection that pins it has time-outs of its own.
 */
static bool retransmit_solicit(struct net_stack *stack, uint16_t index,
                               uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    if (!is_exhausted(e)) {
        neigh_enter(stack, index, (enum neigh_state)e->state, now_us);
        return ask_or_wait(stack, index, now_us);
    }
    if (e->state == NEIGH_INCOMPLETE) {
        fail_resolution(stack, index, now_us);
        return true;
    }
    net_count(stack, e->port, NET_NEIGH_FAILED);
    net_router_failed(stack, e->port, &e->ip);
    if (e->pins != 0) {
        neigh_enter(stack, index, NEIGH_STALE, now_us);
    } else {
        neigh_release(stack, index, now_us);
    }
    return true;
}

static bool expire_entries(struct net_stack *stack, enum neigh_timer timer,
                           uint16_t index, uint64_t now_us)
{
    switch (timer) {
    case NEIGH_TIMER_RETRANS:
        return retransmit_solicit(stack, index, now_us);
    case NEIGH_TIMER_REACHABLE:
        if (neigh_entry_of(stack, index)->pins != 0) {
            return probe_entry(stack, index, now_us);
        }
        neigh_enter(stack, index, NEIGH_STALE, now_us);
        return true;
    default:
        neigh_release(stack, index, now_us);
        return true;
    }
}

/* ---- Functions for net/stack. */

/* The link has changed, and the cable may lead to other hosts: MACs of this
 * port are unconfirmed now. */
void net_neigh_link(struct net_stack *stack, uint8_t port, uint64_t now_us)
{
    for (uint16_t i = 0; i < NET_NEIGHBOURS; i++) {
        const struct neigh_entry *e = neigh_entry_of(stack, i);

        if (e->port == port &&
            (e->state == NEIGH_REACHABLE || e->state == NEIGH_PROBE)) {
            neigh_enter(stack, i, NEIGH_STALE, now_us);
        }
    }
}

uint64_t net_neigh_timer(struct net_stack *stack, uint64_t now_us)
{
    /* REACHABLE comes first, because it moves entries to the other lists. */
    static const uint8_t order[NEIGH_TIMERS] = {
        NEIGH_TIMER_REACHABLE, NEIGH_TIMER_RETRANS, NEIGH_TIMER_GC};
    uint64_t next_us = UINT64_MAX;
    bool room = true;

    for (size_t i = 0; i < NEIGH_TIMERS; i++) {
        const struct neigh_list *list = &stack->neigh.timers[order[i]];

        while (room && list->head != NEIGH_NONE &&
               neigh_entry_of(stack, list->head)->deadline_us <= now_us) {
            room = expire_entries(stack, order[i], list->head, now_us);
        }
    }
    for (size_t i = 0; i < NEIGH_TIMERS; i++) {
        uint16_t head = stack->neigh.timers[i].head;

        if (head != NEIGH_NONE) {
            next_us = MIN(next_us, neigh_entry_of(stack, head)->deadline_us);
        }
    }
    return room ? next_us : MAX(next_us, now_us + TX_RETRY_US);
}

void net_neigh_hear(struct net_stack *stack, uint8_t port, uint16_t vlan,
                    const struct ip_addr *ip, const struct neigh_heard *heard,
                    uint64_t now_us)
{
    uint16_t index = net_neigh_find(stack, port, vlan, ip);
    struct neigh_entry *e;
    bool differs;

    if (index == NEIGH_NONE) {
        int local = net_address_on_link(stack, port, vlan, ip);

        if (heard->may_create && local >= 0) {
            index = neigh_create(stack, (uint8_t)local, ip, false, now_us);
            if (index != NEIGH_NONE) {
                got_mac(stack, index, &heard->mac, NEIGH_STALE, now_us);
            }
        }
        return;
    }
    e = neigh_entry_of(stack, index);
    if (e->is_remote) {
        return; /* hosts of the link know nothing about remote addresses */
    }
    differs = heard->has_mac && !mac_addr_equal(&e->mac, &heard->mac);
    if (e->state == NEIGH_INCOMPLETE) {
        if (heard->has_mac) {
            got_next_hop(stack, index, &heard->mac,
                         heard->is_solicited ? NEIGH_REACHABLE : NEIGH_STALE,
                         now_us);
        }
    } else if (differs && !heard->is_override) {
        if (e->state == NEIGH_REACHABLE) {
            neigh_enter(stack, index, NEIGH_STALE, now_us);
        }
    } else if (differs) {
        got_next_hop(stack, index, &heard->mac,
                     heard->is_solicited ? NEIGH_REACHABLE : NEIGH_STALE,
                     now_us);
    } else if (heard->is_solicited) {
        neigh_enter(stack, index, NEIGH_REACHABLE, now_us);
    }
}

/* ---- Public functions. */

static bool is_host(const struct net_stack *stack, uint8_t local,
                    const struct ip_addr *ip)
{
    const struct net_address_config *own = &stack->addresses[local].config;

    return ip_addr_is_v4(ip) == ip_addr_is_v4(&own->ip) &&
           !ip_addr_is_unspecified(ip) && !ip_addr_is_multicast(ip) &&
           !ip_addr_is_loopback(ip) &&
           !net_ip_is_subnet_broadcast(stack, own->port, own->vlan, ip) &&
           net_stack_local(stack, own->port, own->vlan, ip) < 0;
}

static bool is_on_link(const struct net_stack *stack, uint8_t local,
                       const struct ip_addr *ip)
{
    const struct net_address_config *own = &stack->addresses[local].config;

    return net_address_on_link(stack, own->port, own->vlan, ip) >= 0;
}

/* Create an entry for an address on the link, and solicit it. */
static uint16_t solicit_new_entry(struct net_stack *stack, uint8_t local,
                                  const struct ip_addr *ip, uint64_t now_us)
{
    uint16_t index = neigh_create(stack, local, ip, false, now_us);

    if (index != NEIGH_NONE) {
        neigh_enter(stack, index, NEIGH_INCOMPLETE, now_us);
        (void)ask_or_wait(stack, index, now_us);
    }
    return index;
}

/* Create an entry for an address beyond the gateway, and pin the gateway. */
static uint16_t solicit_gateway_for(struct net_stack *stack, uint8_t local,
                                    const struct ip_addr *ip,
                                    const struct ip_addr *gateway,
                                    uint64_t now_us)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    uint16_t via = net_neigh_find(stack, own->port, own->vlan, gateway);
    uint16_t index;

    if (via == NEIGH_NONE) {
        via = solicit_new_entry(stack, local, gateway, now_us);
        if (via == NEIGH_NONE) {
            return NEIGH_NONE;
        }
    }
    neigh_pin(stack, via, now_us); /* or neigh_create() might evict it */
    index = neigh_create(stack, local, ip, true, now_us);
    if (index != NEIGH_NONE) {
        neigh_attach(stack, index, via, now_us);
    }
    neigh_unpin(stack, via, now_us);
    if (index == NEIGH_NONE) {
        return NEIGH_NONE;
    }
    if (neigh_has_mac(neigh_entry_of(stack, via))) {
        got_mac(stack, index, &neigh_entry_of(stack, via)->mac, NEIGH_STALE,
                now_us);
    } else {
        neigh_enter(stack, index, NEIGH_INCOMPLETE, now_us);
    }
    return index;
}

enum neigh_result net_neigh_resolve(struct net_stack *stack, uint8_t local,
                                    const struct ip_addr *ip, uint64_t now_us,
                                    uint16_t *index)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    const struct ip_addr *gateway =
        net_gateway(stack, own->port, own->vlan, ip_addr_is_v4(ip), now_us);

    ASSERT(local < NET_ADDRESSES);
    *index = NEIGH_NONE;
    if (!net_stack_is_usable(stack, local) || !is_host(stack, local, ip)) {
        return NEIGH_NO_ROUTE;
    }
    *index = net_neigh_find(stack, own->port, own->vlan, ip);
    if (*index == NEIGH_NONE && is_on_link(stack, local, ip)) {
        *index = solicit_new_entry(stack, local, ip, now_us);
    } else if (*index == NEIGH_NONE) {
        if (!is_host(stack, local, gateway) ||
            !is_on_link(stack, local, gateway)) {
            return NEIGH_NO_ROUTE;
        }
        *index = solicit_gateway_for(stack, local, ip, gateway, now_us);
    }
    if (*index == NEIGH_NONE) {
        return NEIGH_FULL;
    }
    neigh_pin(stack, *index, now_us);
    export_entry(stack, *index);
    use_entry(stack, *index, now_us);
    return neigh_has_mac(neigh_entry_of(stack, *index)) ? NEIGH_READY
                                                        : NEIGH_PENDING;
}

/* Whether this neighbour, which is on the link, has answered. */
static bool has_answered(const struct neigh_entry *e)
{
    return e->state == NEIGH_REACHABLE || e->state == NEIGH_PROBE;
}

/*
 * Whether the MAC address of a pinned entry is known to work: its owner has
 * answered us.  A peer beyond the link cannot be asked itself.  Its next hop
 * works if the gateway that it follows has answered, or if a connection to the
 * peer has.
 */
static bool is_mac_proven(struct net_stack *stack, uint16_t index)
{
    const struct neigh_entry *e = neigh_entry_of(stack, index);

    if (!e->is_remote) {
        return has_answered(e);
    }
    if (e->via != NEIGH_NONE && has_answered(neigh_entry_of(stack, e->via))) {
        return true;
    }
    return stack->config.neigh_is_reached != NULL &&
           stack->config.neigh_is_reached(stack->config.ctx, index);
}

/*
 * A packet does not prove who may use its source address.  So it does not
 * redirect the connections of a peer whose MAC address is proven.  While
 * nothing is proven, the latest packet decides.  If the MAC is disputed, the
 * address, or that of the gateway, is solicited at once.
 */
static void learn_mac(struct net_stack *stack, uint16_t index,
                      const struct mac_addr *mac, uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);
    bool is_disputed = neigh_has_mac(e) && e->pins != 0;

    if (!is_disputed || !is_mac_proven(stack, index)) {
        /* Its packets come from another next hop now. */
        neigh_detach(stack, index, now_us);
        got_next_hop(stack, index, mac, NEIGH_STALE, now_us);
    }
    if (is_disputed && !e->is_remote) {
        solicit_all_hosts(stack, index, now_us);
    } else if (is_disputed && e->via != NEIGH_NONE) {
        solicit_all_hosts(stack, e->via, now_us);
    }
}

enum neigh_result net_neigh_learn(struct net_stack *stack, uint8_t local,
                                  const struct ip_addr *ip,
                                  const struct mac_addr *mac, uint64_t now_us,
                                  uint16_t *index)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    struct neigh_entry *e;

    ASSERT(local < NET_ADDRESSES);
    *index = NEIGH_NONE;
    if (!net_stack_is_usable(stack, local) || !is_host(stack, local, ip) ||
        !net_mac_is_station(stack, own->port, mac)) {
        return NEIGH_NO_ROUTE;
    }
    *index = net_neigh_find(stack, own->port, own->vlan, ip);
    if (*index == NEIGH_NONE) {
        *index = neigh_create(stack, local, ip, !is_on_link(stack, local, ip),
                              now_us);
        if (*index == NEIGH_NONE) {
            return NEIGH_FULL;
        }
    }
    e = neigh_entry_of(stack, *index);
    if (!neigh_has_mac(e) || !mac_addr_equal(&e->mac, mac)) {
        learn_mac(stack, *index, mac, now_us);
    }
    neigh_touch(stack, *index);
    export_entry(stack, *index);
    return NEIGH_READY;
}

void net_neigh_pin(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    ASSERT(index < NET_NEIGHBOURS &&
           neigh_has_mac(neigh_entry_of(stack, index)));
    neigh_pin(stack, index, now_us);
    export_entry(stack, index);
}

void net_neigh_unpin(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    ASSERT(index < NET_NEIGHBOURS);
    neigh_unpin(stack, index, now_us);
}

void net_neigh_confirm(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    ASSERT(index < NET_NEIGHBOURS &&
           neigh_has_mac(neigh_entry_of(stack, index)));
    if (!neigh_entry_of(stack, index)->is_remote) {
        neigh_enter(stack, index, NEIGH_REACHABLE, now_us);
    }
}
