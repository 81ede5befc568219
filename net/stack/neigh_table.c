/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data structure of the neighbour table: see neigh_table.h.
 *
 * Every entry in use is in a hash chain and in at most one timer list.  An
 * entry that is not pinned is also in the list `unpinned`.  All entries of a
 * timer list have the same time-out.  So a list to which entries are appended
 * stays sorted, and its head expires first.
 */
#include "net/stack/neigh_table.h"

#include "lib/bytes.h"
#include "lib/random.h"

/* Allowed transitions; every state may also go to FREE. */
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

/* ---- Lists of indices. */

static void list_init(struct neigh_list *list)
{
    *list = (struct neigh_list){NEIGH_NONE, NEIGH_NONE};
}

static void list_insert(struct net_stack *stack, struct neigh_list *list,
                        unsigned which, uint16_t index, bool at_front)
{
    struct neigh_link *link = &neigh_entry_of(stack, index)->link[which];

    link->prev = at_front ? NEIGH_NONE : list->tail;
    link->next = at_front ? list->head : NEIGH_NONE;
    if (link->prev != NEIGH_NONE) {
        neigh_entry_of(stack, link->prev)->link[which].next = index;
    } else {
        list->head = index;
    }
    if (link->next != NEIGH_NONE) {
        neigh_entry_of(stack, link->next)->link[which].prev = index;
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
    const struct neigh_link *link = &neigh_entry_of(stack, index)->link[which];

    if (link->prev != NEIGH_NONE) {
        neigh_entry_of(stack, link->prev)->link[which].next = link->next;
    } else {
        list->head = link->next;
    }
    if (link->next != NEIGH_NONE) {
        neigh_entry_of(stack, link->next)->link[which].prev = link->prev;
    } else {
        list->tail = link->prev;
    }
}

/*
 * ---- The hash.  It is seeded, so that peers cannot choose addresses whose
 * hashes collide.  Each word is mixed before the next one is added.  Otherwise
 * bits of one word could cancel those of another word, or of its own other
 * half, whatever the seed is.
 */

static unsigned bucket_of(const struct net_stack *stack, uint8_t port,
                          uint16_t vlan, const struct ip_addr *ip)
{
    uint64_t link = (uint64_t)port << 16 | vlan;
    uint64_t x = random_mix(stack->config.random_seed ^ link);

    x = random_mix(x ^ get_be64(ip->bytes));
    x = random_mix(x ^ get_be64(ip->bytes + 8));
    return (unsigned)x % NET_NEIGH_BUCKETS;
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
    const struct neigh_entry *e = neigh_entry_of(stack, index);
    uint16_t *at =
        &stack->neigh.buckets[bucket_of(stack, e->port, e->vlan, &e->ip)];

    while (*at != index) {
        ASSERT(*at != NEIGH_NONE);
        at = &neigh_entry_of(stack, *at)->hash_next;
    }
    *at = e->hash_next;
}

/* ---- States. */

/* The timer of an entry's state.  Remote entries are never solicited. */
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
        /* A pinned entry is in use, so it is probed when it is old. */
        return e->is_remote ? NEIGH_TIMERS : NEIGH_TIMER_REACHABLE;
    default:
        return NEIGH_TIMERS;
    }
}

static void timer_stop(struct net_stack *stack, uint16_t index)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    if (e->timer != NEIGH_TIMERS) {
        list_remove(stack, &stack->neigh.timers[e->timer], NEIGH_BY_TIMER,
                    index);
        e->timer = NEIGH_TIMERS;
    }
}

static void timer_start(struct net_stack *stack, uint16_t index,
                        uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    timer_stop(stack, index);
    e->timer = (uint8_t)timer_of(e);
    if (e->timer != NEIGH_TIMERS) {
        e->deadline_us = now_us + timeout_us[e->timer];
        list_append(stack, &stack->neigh.timers[e->timer], NEIGH_BY_TIMER,
                    index);
    }
}

/* No transmit buffer was free: put it first in the list of retransmissions. */
void neigh_timer_now(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    timer_stop(stack, index);
    e->timer = NEIGH_TIMER_RETRANS;
    e->deadline_us = now_us;
    list_insert(stack, &stack->neigh.timers[NEIGH_TIMER_RETRANS],
                NEIGH_BY_TIMER, index, true);
}

/* The only writer of entry->state. */
void neigh_enter(struct net_stack *stack, uint16_t index, enum neigh_state next,
                 uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    ASSERT((neigh_next[e->state] | BIT(NEIGH_FREE)) & BIT(next));
    if (e->state != next) {
        e->tries = 0;
    }
    e->state = (uint8_t)next;
    timer_start(stack, index, now_us);
}

/* ---- Pins, order of use, creation and removal. */

void neigh_pin(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

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

void neigh_unpin(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

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

void neigh_touch(struct net_stack *stack, uint16_t index)
{
    if (neigh_entry_of(stack, index)->pins == 0) {
        list_remove(stack, &stack->neigh.unpinned, NEIGH_BY_USE, index);
        list_append(stack, &stack->neigh.unpinned, NEIGH_BY_USE, index);
    }
}

void neigh_attach(struct net_stack *stack, uint16_t index, uint16_t via,
                  uint64_t now_us)
{
    neigh_pin(stack, via, now_us);
    neigh_entry_of(stack, index)->via = via;
    list_append(stack, &neigh_entry_of(stack, via)->behind, NEIGH_BY_GATEWAY,
                index);
}

/* Undo neigh_attach(). */
void neigh_detach(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    if (e->via != NEIGH_NONE) {
        list_remove(stack, &neigh_entry_of(stack, e->via)->behind,
                    NEIGH_BY_GATEWAY, index);
        neigh_unpin(stack, e->via, now_us);
        e->via = NEIGH_NONE;
    }
}

/* Remove an entry that is not pinned. */
void neigh_release(struct net_stack *stack, uint16_t index, uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);
    bool tell = e->is_exported && neigh_has_mac(e);

    ASSERT(e->pins == 0 && e->behind.head == NEIGH_NONE);
    neigh_detach(stack, index, now_us);
    hash_remove(stack, index);
    list_remove(stack, &stack->neigh.unpinned, NEIGH_BY_USE, index);
    neigh_enter(stack, index, NEIGH_FREE, now_us);
    list_append(stack, &stack->neigh.free, NEIGH_BY_USE, index);
    stack->neigh.used--;
    if (tell && stack->config.neigh_remove != NULL) {
        stack->config.neigh_remove(stack->config.ctx, index);
    }
}

/* The entry is still FREE: the caller gives it its first state at once. */
uint16_t neigh_create(struct net_stack *stack, uint8_t local,
                      const struct ip_addr *ip, bool is_remote, uint64_t now_us)
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
        neigh_release(stack, table->unpinned.head, now_us);
    }
    index = table->free.head;
    list_remove(stack, &table->free, NEIGH_BY_USE, index);
    e = neigh_entry_of(stack, index);
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

bool net_neigh_info(const struct net_stack *stack, uint16_t index,
                    struct neigh_info *info)
{
    const struct neigh_entry *e = &stack->neigh.entries[index];

    ASSERT(index < NET_NEIGHBOURS);
    if (!neigh_has_mac(e)) {
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

uint16_t net_neigh_path_mtu(const struct net_stack *stack, uint16_t index,
                            uint64_t now_us)
{
    const struct neigh_entry *e = &stack->neigh.entries[index];

    ASSERT(index < NET_NEIGHBOURS);
    return e->path_mtu_bytes != 0 && now_us < e->path_mtu_until_us
               ? e->path_mtu_bytes
               : net_link_mtu(stack, e->port, ip_addr_is_v4(&e->ip));
}

bool net_neigh_note_mtu(struct net_stack *stack, uint16_t index,
                        uint32_t mtu_bytes, uint64_t now_us)
{
    struct neigh_entry *e = neigh_entry_of(stack, index);

    if (mtu_bytes >= net_neigh_path_mtu(stack, index, now_us)) {
        return false;
    }
    e->path_mtu_bytes = (uint16_t)mtu_bytes;
    e->path_mtu_until_us = now_us + NEIGH_PATH_MTU_US;
    return true;
}
