/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbour table: see neigh.h.
 *
 * Every entry in use is in a hash chain, in at most one timer list, and, while
 * nobody has it pinned, in the list of use.  Each timer list has one timeout,
 * so that appending keeps it in order and only its head is ever looked at.
 */
#include "net/stack/internal.h"

#include "lib/bytes.h"

enum { TX_RETRY_US = 1000 };

/* Where each state may go.  FREE is reachable from every one. */
static const uint8_t neigh_next[NEIGH_STATES] = {
    [NEIGH_FREE] = BIT(NEIGH_INCOMPLETE) | BIT(NEIGH_STALE),
    [NEIGH_INCOMPLETE] =
        BIT(NEIGH_INCOMPLETE) | BIT(NEIGH_REACHABLE) | BIT(NEIGH_STALE),
    [NEIGH_REACHABLE] =
        BIT(NEIGH_REACHABLE) | BIT(NEIGH_STALE) | BIT(NEIGH_PROBE),
    [NEIGH_STALE] = BIT(NEIGH_REACHABLE) | BIT(NEIGH_STALE) | BIT(NEIGH_PROBE),
    [NEIGH_PROBE] = BIT(NEIGH_REACHABLE) | BIT(NEIGH_STALE) | BIT(NEIGH_PROBE),
};

static const uint64_t timeout_us[NEIGH_TIMERS] = {
    [NEIGH_TIMER_RETRANS] = NEIGH_RETRANS_US,
    [NEIGH_TIMER_REACHABLE] = NEIGH_REACHABLE_US,
    [NEIGH_TIMER_GC] = NEIGH_GC_US,
};

static struct neigh_entry *entry_of(struct net_stack *stack, uint16_t index)
{
    return &stack->neigh.entries[index];
}

/* ---- Lists of indices. */

static void list_init(struct neigh_list *list)
{
    *list = (struct neigh_list){NEIGH_NONE, NEIGH_NONE};
}

static void list_insert(struct net_stack *stack, struct neigh_list *list,
                        unsigned which, uint16_t index, bool at_front)
{
    struct neigh_link *link = &entry_of(stack, index)->link[which];

    link->prev = at_front ? NEIGH_NONE : list->tail;
    link->next = at_front ? list->head : NEIGH_NONE;
    if (link->prev != NEIGH_NONE) {
        entry_of(stack, link->prev)->link[which].next = index;
    } else {
        list->head = index;
    }
    if (link->next != NEIGH_NONE) {
        entry_of(stack, link->next)->link[which].prev = index;
    } else {
        list->tail = index;
    }
}

static void list_append(struct net_stack *stack, struct neigh_list *list,
                        unsigned which, uint16_t index)
{
    list_insert(stack, list, which, index, false);
}

static void list_remove(struct net_stack *stack, struct neigh_list *list,
                        unsigned which, uint16_t index)
{
    const struct neigh_link *link = &entry_of(stack, index)->link[which];

    if (link->prev != NEIGH_NONE) {
        entry_of(stack, link->prev)->link[which].next = link->next;
    } else {
        list->head = link->next;
    }
    if (link->next != NEIGH_NONE) {
        entry_of(stack, link->next)->link[which].prev = link->prev;
    } else {
        list->tail = link->prev;
    }
}

/* ---- The hash: seeded, so that nobody can choose addresses that collide. */

static unsigned bucket_of(const struct net_stack *stack, uint8_t port,
                          uint16_t vlan, const struct ip_addr *ip)
{
    uint64_t x = get_be64(ip->bytes) ^ stack->config.random_seed;

    x = (x ^ x >> 32) * 0xbf58476d1ce4e5b9;
    x ^= get_be64(ip->bytes + 8) ^ ((uint64_t)port << 16 | vlan);
    x = (x ^ x >> 32) * 0x94d049bb133111eb;
    return (unsigned)(x >> 40) % NET_NEIGH_BUCKETS;
}

uint16_t net_neigh_find(const struct net_stack *stack, uint8_t port,
                        uint16_t vlan, const struct ip_addr *ip)
{
    uint16_t index = stack->neigh.buckets[bucket_of(stack, port, vlan, ip)];

    while (index != NEIGH_NONE) {
        const struct neigh_entry *e = &stack->neigh.entries[index];

        if (e->port == port && e->vlan == vlan && ip_addr_equal(&e->ip, ip)) {
            break;
        }
        index = e->hash_next;
    }
    return index;
}

static void hash_remove(struct net_stack *stack, uint16_t index)
{
    const struct neigh_entry *e = entry_of(stack, index);
    uint16_t *at =
        &stack->neigh.buckets[bucket_of(stack, e->port, e->vlan, &e->ip)];

    while (*at != index) {
        ASSERT(*at != NEIGH_NONE);
        at = &entry_of(stack, *at)->hash_next;
    }
    *at = e->hash_next;
}

/* ---- States. */

/* What a state waits for.  Remote entries are never asked themselves. */
static enum neigh_timer timer_of(const struct neigh_entry *e)
{
    switch ((enum neigh_state)e->state) {
    case NEIGH_INCOMPLETE:
        return e->is_remote ? NEIGH_TIMERS : NEIGH_TIMER_RETRANS;
    case NEIGH_PROBE:
        return NEIGH_TIMER_RETRANS;
    case NEIGH_REACHABLE:
        return NEIGH_TIMER_REACHABLE;
    case NEIGH_STALE:
        if (e->pins == 0) {
            return NEIGH_TIMER_GC;
        }
        /* Somebody uses it all the time, so it is probed when it is old. */
        return e->is_remote ? NEIGH_TIMERS : NEIGH_TIMER_REACHABLE;
    default:
        return NEIGH_TIMERS;
    }
}

static void timer_stop(struct net_stack *stack, uint16_t index)
{
    struct neigh_entry *e = entry_of(stack, index);

    if (e->timer != NEIGH_TIMERS) {
        list_remove(stack, &stack->neigh.timers[e->timer], NEIGH_BY_TIMER,
                    index);
        e->timer = NEIGH_TIMERS;
    }
}

static void timer_start(struct net_stack *stack, uint16_t index,
                        uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);

    timer_stop(stack, index);
    e->timer = (uint8_t)timer_of(e);
    if (e->timer != NEIGH_TIMERS) {
        e->deadline_us = now_us + timeout_us[e->timer];
        list_append(stack, &stack->neigh.timers[e->timer], NEIGH_BY_TIMER,
                    index);
    }
}

/* No room to send now: first in the list of those that are to send. */
static void timer_now(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);

    timer_stop(stack, index);
    e->timer = NEIGH_TIMER_RETRANS;
    e->deadline_us = now_us;
    list_insert(stack, &stack->neigh.timers[NEIGH_TIMER_RETRANS],
                NEIGH_BY_TIMER, index, true);
}

/* The only writer of entry->state. */
static void neigh_enter(struct net_stack *stack, uint16_t index,
                        enum neigh_state next, uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);

    ASSERT((neigh_next[e->state] | BIT(NEIGH_FREE)) & BIT(next));
    if (e->state != next) {
        e->tries = 0;
    }
    e->state = (uint8_t)next;
    timer_start(stack, index, now_us);
}

/* ---- Pins, use, birth and death. */

static void pin(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);

    ASSERT(e->state != NEIGH_FREE && e->pins < UINT16_MAX);
    if (e->pins++ != 0) {
        return;
    }
    stack->neigh.pinned++;
    list_remove(stack, &stack->neigh.unpinned, NEIGH_BY_USE, index);
    if (e->state == NEIGH_STALE) {
        timer_start(stack, index, now_us);
    }
}

static void unpin(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);

    ASSERT(e->state != NEIGH_FREE && e->pins != 0);
    if (--e->pins != 0) {
        return;
    }
    stack->neigh.pinned--;
    list_append(stack, &stack->neigh.unpinned, NEIGH_BY_USE, index);
    if (e->state == NEIGH_STALE) {
        timer_start(stack, index, now_us);
    }
}

static void touch(struct net_stack *stack, uint16_t index)
{
    if (entry_of(stack, index)->pins == 0) {
        list_remove(stack, &stack->neigh.unpinned, NEIGH_BY_USE, index);
        list_append(stack, &stack->neigh.unpinned, NEIGH_BY_USE, index);
    }
}

static bool has_mac(const struct neigh_entry *e)
{
    return e->state != NEIGH_FREE && e->state != NEIGH_INCOMPLETE;
}

/* Stop following the gateway. */
static void detach(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);

    if (e->via != NEIGH_NONE) {
        list_remove(stack, &entry_of(stack, e->via)->behind, NEIGH_BY_GATEWAY,
                    index);
        unpin(stack, e->via, now_us);
        e->via = NEIGH_NONE;
    }
}

/* Nobody has it pinned. */
static void release(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);
    bool tell = e->is_exported && has_mac(e);

    ASSERT(e->pins == 0 && e->behind.head == NEIGH_NONE);
    detach(stack, index, now_us);
    hash_remove(stack, index);
    list_remove(stack, &stack->neigh.unpinned, NEIGH_BY_USE, index);
    neigh_enter(stack, index, NEIGH_FREE, now_us);
    list_append(stack, &stack->neigh.free, NEIGH_BY_USE, index);
    stack->neigh.used--;
    if (tell && stack->config.neigh_remove != NULL) {
        stack->config.neigh_remove(stack->config.ctx, index);
    }
}

/* A new entry, FREE still: the caller gives it its first state at once. */
static uint16_t create(struct net_stack *stack, uint8_t local,
                       const struct ip_addr *ip, bool is_remote,
                       uint64_t now_us)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    struct neigh_table *table = &stack->neigh;
    uint16_t *bucket =
        &table->buckets[bucket_of(stack, own->port, own->vlan, ip)];
    struct neigh_entry *e;
    uint16_t index;

    if (table->free.head == NEIGH_NONE) {
        if (table->unpinned.head == NEIGH_NONE) {
            net_count(stack, own->port, NET_NEIGH_REFUSED);
            return NEIGH_NONE;
        }
        net_count(stack, own->port, NET_NEIGH_EVICTED);
        release(stack, table->unpinned.head, now_us);
    }
    index = table->free.head;
    list_remove(stack, &table->free, NEIGH_BY_USE, index);
    e = entry_of(stack, index);
    *e = (struct neigh_entry){
        .ip = *ip,
        .via = NEIGH_NONE,
        .hash_next = *bucket,
        .vlan = own->vlan,
        .port = own->port,
        .local = local,
        .state = NEIGH_FREE,
        .timer = NEIGH_TIMERS,
        .is_remote = is_remote,
    };
    list_init(&e->behind);
    *bucket = index;
    list_append(stack, &table->unpinned, NEIGH_BY_USE, index);
    table->used++;
    net_count(stack, own->port, NET_NEIGH_CREATED);
    return index;
}

/* ---- Telling others. */

static void publish(struct net_stack *stack, uint16_t index)
{
    struct neigh_info info;

    if (entry_of(stack, index)->is_exported &&
        stack->config.neigh_update != NULL &&
        net_neigh_info(stack, index, &info)) {
        stack->config.neigh_update(stack->config.ctx, index, &info);
    }
}

static void export(struct net_stack *stack, uint16_t index)
{
    struct neigh_entry *e = entry_of(stack, index);

    if (!e->is_exported) {
        e->is_exported = true;
        publish(stack, index);
    }
}

static void resolved(struct net_stack *stack, uint16_t index, bool is_ready)
{
    if (stack->config.neigh_resolved != NULL) {
        stack->config.neigh_resolved(stack->config.ctx, index, is_ready);
    }
}

/* ---- Asking. */

/* One request, unicast while we have a MAC that may still be right. */
static bool ask(struct net_stack *stack, uint16_t index)
{
    struct neigh_entry *e = entry_of(stack, index);
    bool unicast = e->state == NEIGH_PROBE && e->tries < NEIGH_UNICAST_TRIES;
    const struct mac_addr *mac = unicast ? &e->mac : NULL;
    uint8_t *frame;
    size_t len;

    if (net_stack_is_usable(stack, e->local)) {
        frame = net_tx_begin(stack, e->port);
        if (frame == NULL) {
            return false;
        }
        len = ip_addr_is_v4(&e->ip)
                  ? net_arp_ask(stack, e->local, &e->ip, mac, frame)
                  : net_nd_ask(stack, e->local, &e->ip, mac, frame);
        net_tx_commit(stack, e->port, len, 0);
    }
    e->tries++; /* without an address to ask from, time passes all the same */
    return true;
}

static bool ask_or_wait(struct net_stack *stack, uint16_t index,
                        uint64_t now_us)
{
    if (!ask(stack, index)) {
        timer_now(stack, index, now_us);
        return false;
    }
    return true;
}

static bool probe(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    neigh_enter(stack, index, NEIGH_PROBE, now_us);
    return ask_or_wait(stack, index, now_us);
}

/* Somebody uses it: an old one is asked whether it is still there. */
static void use(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);

    touch(stack, index);
    if (e->via != NEIGH_NONE) {
        index = e->via;
        e = entry_of(stack, index);
    }
    if (e->state == NEIGH_STALE && !e->is_remote) {
        (void)probe(stack, index, now_us);
    }
}

/* ---- Answers, and their absence. */

static void got_mac(struct net_stack *stack, uint16_t index,
                    const struct mac_addr *mac, enum neigh_state next,
                    uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);
    bool was_waited_for = e->state == NEIGH_INCOMPLETE;
    bool is_new = !has_mac(e) || !mac_addr_equal(&e->mac, mac);

    e->mac = *mac;
    neigh_enter(stack, index, next, now_us);
    if (!is_new) {
        return;
    }
    publish(stack, index);
    if (was_waited_for && e->pins != 0) {
        resolved(stack, index, true);
    }
}

/* The same for those behind it, if it is a gateway. */
static void got_next_hop(struct net_stack *stack, uint16_t index,
                         const struct mac_addr *mac, enum neigh_state next,
                         uint64_t now_us)
{
    uint16_t behind;

    got_mac(stack, index, mac, next, now_us);
    behind = entry_of(stack, index)->behind.head;
    while (behind != NEIGH_NONE) {
        uint16_t following =
            entry_of(stack, behind)->link[NEIGH_BY_GATEWAY].next;

        got_mac(stack, behind, mac, NEIGH_STALE, now_us);
        behind = following;
    }
}

/* Nobody answered: those who wait lose their pins and hear of it. */
static void give_up(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);

    net_count(stack, e->port, NET_NEIGH_FAILED);
    while (e->behind.head != NEIGH_NONE) {
        give_up(stack, e->behind.head, now_us); /* takes itself off the list */
    }
    if (e->pins != 0) {
        e->pins = 1;
        unpin(stack, index, now_us);
        resolved(stack, index, false);
    }
    release(stack, index, now_us);
}

static bool is_exhausted(const struct neigh_entry *e)
{
    return e->tries >= (e->state == NEIGH_PROBE
                            ? NEIGH_UNICAST_TRIES + NEIGH_MULTICAST_TRIES
                            : NEIGH_MULTICAST_TRIES);
}

/*
 * A retransmission is due.  A pinned entry that no longer answers keeps its
 * address: the connection that pins it has timeouts of its own.
 */
static bool retransmit(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = entry_of(stack, index);

    if (!is_exhausted(e)) {
        neigh_enter(stack, index, (enum neigh_state)e->state, now_us);
        return ask_or_wait(stack, index, now_us);
    }
    if (e->state == NEIGH_INCOMPLETE) {
        give_up(stack, index, now_us);
        return true;
    }
    net_count(stack, e->port, NET_NEIGH_FAILED);
    if (e->pins != 0) {
        neigh_enter(stack, index, NEIGH_STALE, now_us);
    } else {
        release(stack, index, now_us);
    }
    return true;
}

static bool expire(struct net_stack *stack, enum neigh_timer timer,
                   uint16_t index, uint64_t now_us)
{
    switch (timer) {
    case NEIGH_TIMER_RETRANS:
        return retransmit(stack, index, now_us);
    case NEIGH_TIMER_REACHABLE:
        if (entry_of(stack, index)->pins != 0) {
            return probe(stack, index, now_us);
        }
        neigh_enter(stack, index, NEIGH_STALE, now_us);
        return true;
    default:
        release(stack, index, now_us);
        return true;
    }
}

/* ---- What the rest of net/stack calls. */

void net_neigh_init(struct net_stack *stack)
{
    struct neigh_table *table = &stack->neigh;

    for (size_t i = 0; i < NET_NEIGH_BUCKETS; i++) {
        table->buckets[i] = NEIGH_NONE;
    }
    for (size_t i = 0; i < NEIGH_TIMERS; i++) {
        list_init(&table->timers[i]);
    }
    list_init(&table->unpinned);
    list_init(&table->free);
    for (uint16_t i = 0; i < NET_NEIGHBOURS; i++) {
        table->entries[i].timer = NEIGH_TIMERS;
        table->entries[i].via = NEIGH_NONE;
        list_init(&table->entries[i].behind);
        list_append(stack, &table->free, NEIGH_BY_USE, i);
    }
}

/* The cable may lead elsewhere now: what we knew is hearsay. */
void net_neigh_link(struct net_stack *stack, uint8_t port, uint64_t now_us)
{
    for (uint16_t i = 0; i < NET_NEIGHBOURS; i++) {
        const struct neigh_entry *e = entry_of(stack, i);

        if (e->port == port &&
            (e->state == NEIGH_REACHABLE || e->state == NEIGH_PROBE)) {
            neigh_enter(stack, i, NEIGH_STALE, now_us);
        }
    }
}

uint64_t net_neigh_timer(struct net_stack *stack, uint64_t now_us)
{
    /* The one that only moves entries into the others' lists comes first. */
    static const uint8_t order[NEIGH_TIMERS] = {
        NEIGH_TIMER_REACHABLE, NEIGH_TIMER_RETRANS, NEIGH_TIMER_GC};
    uint64_t next_us = UINT64_MAX;
    bool room = true;

    for (size_t i = 0; i < NEIGH_TIMERS; i++) {
        const struct neigh_list *list = &stack->neigh.timers[order[i]];

        while (room && list->head != NEIGH_NONE &&
               entry_of(stack, list->head)->deadline_us <= now_us) {
            room = expire(stack, order[i], list->head, now_us);
        }
    }
    for (size_t i = 0; i < NEIGH_TIMERS; i++) {
        uint16_t head = stack->neigh.timers[i].head;

        if (head != NEIGH_NONE) {
            next_us = MIN(next_us, entry_of(stack, head)->deadline_us);
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
            index = create(stack, (uint8_t)local, ip, false, now_us);
            if (index != NEIGH_NONE) {
                got_mac(stack, index, &heard->mac, NEIGH_STALE, now_us);
            }
        }
        return;
    }
    e = entry_of(stack, index);
    if (e->is_remote) {
        return; /* what the link says about addresses elsewhere is no news */
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

/* ---- What everybody calls. */

static bool is_host(const struct net_stack *stack, uint8_t local,
                    const struct ip_addr *ip)
{
    const struct net_address_config *own = &stack->addresses[local].config;

    return ip_addr_is_v4(ip) == ip_addr_is_v4(&own->ip) &&
           !ip_addr_is_unspecified(ip) && !ip_addr_is_multicast(ip) &&
           net_stack_local(stack, own->port, own->vlan, ip) < 0;
}

static bool is_on_link(const struct net_stack *stack, uint8_t local,
                       const struct ip_addr *ip)
{
    const struct net_address_config *own = &stack->addresses[local].config;

    return net_address_on_link(stack, own->port, own->vlan, ip) >= 0;
}

/* A new entry for an address on the link, and the first question. */
static uint16_t seek(struct net_stack *stack, uint8_t local,
                     const struct ip_addr *ip, uint64_t now_us)
{
    uint16_t index = create(stack, local, ip, false, now_us);

    if (index != NEIGH_NONE) {
        neigh_enter(stack, index, NEIGH_INCOMPLETE, now_us);
        (void)ask_or_wait(stack, index, now_us);
    }
    return index;
}

/* A new entry for an address behind the gateway, which is pinned for it. */
static uint16_t seek_behind(struct net_stack *stack, uint8_t local,
                            const struct ip_addr *ip,
                            const struct ip_addr *gateway, uint64_t now_us)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    uint16_t via = net_neigh_find(stack, own->port, own->vlan, gateway);
    uint16_t index;

    if (via == NEIGH_NONE) {
        via = seek(stack, local, gateway, now_us);
        if (via == NEIGH_NONE) {
            return NEIGH_NONE;
        }
    }
    pin(stack, via, now_us); /* or it might be the one evicted for the other */
    index = create(stack, local, ip, true, now_us);
    if (index == NEIGH_NONE) {
        unpin(stack, via, now_us);
        return NEIGH_NONE;
    }
    entry_of(stack, index)->via = via;
    list_append(stack, &entry_of(stack, via)->behind, NEIGH_BY_GATEWAY, index);
    if (has_mac(entry_of(stack, via))) {
        got_mac(stack, index, &entry_of(stack, via)->mac, NEIGH_STALE, now_us);
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
    const struct net_port_config *port = &stack->config.ports[own->port];
    const struct ip_addr *gateway =
        ip_addr_is_v4(ip) ? &port->gateway4 : &port->gateway6;

    ASSERT(local < NET_ADDRESSES);
    *index = NEIGH_NONE;
    if (!net_stack_is_usable(stack, local) || !is_host(stack, local, ip)) {
        return NEIGH_NO_ROUTE;
    }
    *index = net_neigh_find(stack, own->port, own->vlan, ip);
    if (*index == NEIGH_NONE && is_on_link(stack, local, ip)) {
        *index = seek(stack, local, ip, now_us);
    } else if (*index == NEIGH_NONE) {
        if (!is_host(stack, local, gateway) ||
            !is_on_link(stack, local, gateway)) {
            return NEIGH_NO_ROUTE;
        }
        *index = seek_behind(stack, local, ip, gateway, now_us);
    }
    if (*index == NEIGH_NONE) {
        return NEIGH_FULL;
    }
    pin(stack, *index, now_us);
    export(stack, *index);
    use(stack, *index, now_us);
    return has_mac(entry_of(stack, *index)) ? NEIGH_READY : NEIGH_PENDING;
}

uint16_t net_neigh_learn(struct net_stack *stack, uint8_t local,
                         const struct ip_addr *ip, const struct mac_addr *mac,
                         uint64_t now_us)
{
    const struct net_address_config *own = &stack->addresses[local].config;
    struct neigh_entry *e;
    uint16_t index;

    ASSERT(local < NET_ADDRESSES);
    if (!net_stack_is_usable(stack, local) || !is_host(stack, local, ip) ||
        !net_mac_is_station(stack, own->port, mac)) {
        return NEIGH_NONE;
    }
    index = net_neigh_find(stack, own->port, own->vlan, ip);
    if (index == NEIGH_NONE) {
        index = create(stack, local, ip, !is_on_link(stack, local, ip), now_us);
        if (index == NEIGH_NONE) {
            return NEIGH_NONE;
        }
    }
    e = entry_of(stack, index);
    if (!has_mac(e) || !mac_addr_equal(&e->mac, mac)) {
        detach(stack, index, now_us); /* its packets come another way */
        got_next_hop(stack, index, mac, NEIGH_STALE, now_us);
    }
    touch(stack, index);
    export(stack, index);
    return index;
}

void net_neigh_pin(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    ASSERT(index < NET_NEIGHBOURS && has_mac(entry_of(stack, index)));
    pin(stack, index, now_us);
    export(stack, index);
}

void net_neigh_unpin(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    ASSERT(index < NET_NEIGHBOURS);
    unpin(stack, index, now_us);
}

void net_neigh_confirm(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    ASSERT(index < NET_NEIGHBOURS && has_mac(entry_of(stack, index)));
    if (!entry_of(stack, index)->is_remote) {
        neigh_enter(stack, index, NEIGH_REACHABLE, now_us);
    }
}

bool net_neigh_info(const struct net_stack *stack, uint16_t index,
                    struct neigh_info *info)
{
    const struct neigh_entry *e = &stack->neigh.entries[index];

    ASSERT(index < NET_NEIGHBOURS);
    if (!has_mac(e)) {
        return false;
    }
    *info = (struct neigh_info){
        .ip = e->ip,
        .mac = e->mac,
        .vlan = e->vlan,
        .port = e->port,
    };
    return true;
}

enum neigh_state net_neigh_state(const struct net_stack *stack, uint16_t index)
{
    ASSERT(index < NET_NEIGHBOURS);
    return (enum neigh_state)stack->neigh.entries[index].state;
}
