/* SPDX-License-Identifier: BSD-2-Clause */
/* The world of the net/stack tests: see net_test.h. */
#include "tests/unit/net/stack/net_test.h"

#include "net/wire/arp.h"

const struct mac_addr host_mac = {{0x52, 0x54, 0x00, 0x12, 0x34, 0x56}};
const struct mac_addr other_mac = {{0x52, 0x54, 0x00, 0x65, 0x43, 0x21}};
const struct ip_addr host4 = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
const struct ip_addr host6 = {{0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
const struct ip_addr remote4 = {{[10] = 0xff, 0xff, 192, 168, 5, 5}};
const struct ip_addr gateway4 = {{[10] = 0xff, 0xff, 10, 0, 0, 254}};

static uint8_t *tx_begin(void *ctx, uint8_t port)
{
    struct world *w = ctx;
    struct sent *slot = &w->sent[w->sent_count % SENT_MAX];

    if (w->no_room) {
        return NULL;
    }
    slot->port = port;
    memset(slot->data, 0xa5, sizeof(slot->data));
    return slot->data;
}

static void tx_commit(void *ctx, uint8_t port, size_t len, uint8_t priority)
{
    struct world *w = ctx;
    struct sent *slot = &w->sent[w->sent_count % SENT_MAX];

    assert_false(w->no_room);
    assert_int_equal(slot->port, port);
    assert_in_range(len, 14, NET_FRAME_MAX);
    assert_in_range(priority, 0, 7);
    slot->len = len;
    slot->priority = priority;
    w->sent_count++;
}

static void neigh_update(void *ctx, uint16_t index,
                         const struct neigh_info *info)
{
    struct world *w = ctx;

    w->updates++;
    w->updated_index = index;
    w->updated = *info;
}

static void neigh_remove(void *ctx, uint16_t index)
{
    struct world *w = ctx;

    w->removes++;
    w->removed_index = index;
}

static bool neigh_is_reached(void *ctx, uint16_t index)
{
    const struct world *w = ctx;

    (void)index;
    return w->is_reached;
}

static void neigh_resolved(void *ctx, uint16_t index, bool is_ready)
{
    struct world *w = ctx;

    *(is_ready ? &w->resolved_yes : &w->resolved_no) += 1;
    w->resolved_index = index;
}

static void address_conflict(void *ctx, uint8_t local,
                             const struct mac_addr *mac)
{
    struct world *w = ctx;

    (void)local;
    assert_false(mac_addr_is_zero(mac));
    w->conflicts++;
}

static void address_changed(void *ctx, uint8_t local)
{
    struct world *w = ctx;

    assert_true(local < NET_ADDRESSES);
    w->changes++;
}

struct world *world_new(void)
{
    struct net_stack_config config = {
        .ports = {{.mac = {{2, 0, 0, 0, 0, 0x10}},
                   .mtu_bytes = 9000,
                   .gateway4 = gateway4,
                   .gateway6 = {{0x20, 0x01, 0x0d, 0xb8, [15] = 0xfe}}},
                  {.mac = {{2, 0, 0, 0, 0, 0x11}}, .mtu_bytes = 1500}},
        .addresses = {{.ip = ip_addr_from_v4(0x0a000002),
                       .vlan = NET_VLAN_UNTAGGED,
                       .prefix_bits = 16},
                      {.ip = {{0x20, 0x01, 0x0d, 0xb8, [15] = 2}},
                       .vlan = NET_VLAN_UNTAGGED,
                       .prefix_bits = 64},
                      {.ip = ip_addr_from_v4(0x0a090002),
                       .vlan = 9,
                       .prefix_bits = 24},
                      {.ip = ip_addr_from_v4(0x0a010002),
                       .vlan = NET_VLAN_UNTAGGED,
                       .port = 1,
                       .prefix_bits = 16}},
        .random_seed = 42,
        .tx_begin = tx_begin,
        .tx_commit = tx_commit,
        .neigh_update = neigh_update,
        .neigh_remove = neigh_remove,
        .neigh_resolved = neigh_resolved,
        .neigh_is_reached = neigh_is_reached,
        .address_conflict = address_conflict,
        .address_changed = address_changed,
    };
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    config.ctx = w;
    net_stack_init(&w->stack, &config);
    return w;
}

struct world *world_ready(void)
{
    struct world *w = world_new();

    net_stack_link(&w->stack, 0, true, 0);
    net_stack_link(&w->stack, 1, true, 0);
    world_run(w, 10 * SECOND);
    return w;
}

void world_free(struct world *w)
{
    check_neigh(w);
    free(w);
}

void world_run(struct world *w, uint64_t until_us)
{
    uint64_t next_us = w->now_us;

    while (next_us <= until_us) {
        w->now_us = MAX(w->now_us, next_us);
        next_us = net_stack_timer(&w->stack, w->now_us);
        assert_true(next_us > w->now_us);
    }
    w->now_us = until_us;
}

bool world_input(struct world *w, uint8_t port, const uint8_t *frame,
                 size_t len)
{
    uint8_t *copy = malloc(len != 0 ? len : 1); /* ASan guards its end */
    bool taken;

    assert_non_null(copy);
    memcpy(copy, frame, len);
    taken = net_stack_input(&w->stack, port, copy, len, w->now_us);
    free(copy);
    return taken;
}

uint16_t world_learn(struct world *w, uint8_t local, const struct ip_addr *ip,
                     const struct mac_addr *mac)
{
    uint16_t index = 0;
    enum neigh_result result =
        net_neigh_learn(&w->stack, local, ip, mac, w->now_us, &index);

    assert_int_not_equal(result, NEIGH_PENDING);
    assert_int_equal(result == NEIGH_READY, index != NEIGH_NONE);
    return index;
}

void expect_sent(const struct world *w, unsigned since, const uint8_t *frame,
                 size_t len)
{
    const struct sent *sent = &w->sent[since % SENT_MAX];

    assert_int_equal(w->sent_count, since + 1);
    assert_int_equal(sent->len, len);
    assert_memory_equal(sent->data, frame, len);
}

size_t make_arp(uint8_t *frame, uint16_t operation, const struct mac_addr *mac,
                const struct ip_addr *sender, const struct ip_addr *target)
{
    const struct eth eth = {
        .dst = {{2, 0, 0, 0, 0, 0x10}},
        .src = *mac,
        .type = ETHERTYPE_ARP,
    };
    const struct arp arp = {
        .operation = operation,
        .sender_mac = *mac,
        .sender_ip = *sender,
        .target_ip = *target,
    };

    eth_emit(&eth, frame);
    arp_emit(&arp, frame + ETH_LEN);
    return ETH_LEN + ARP_LEN;
}

static unsigned check_list(const struct neigh_table *table,
                           const struct neigh_list *list, unsigned which)
{
    uint16_t previous = NEIGH_NONE;
    unsigned count = 0;

    for (uint16_t i = list->head; i != NEIGH_NONE;
         i = table->entries[i].link[which].next) {
        assert_true(i < NET_NEIGHBOURS);
        assert_int_equal(table->entries[i].link[which].prev, previous);
        previous = i;
        count++;
        assert_true(count <= NET_NEIGHBOURS);
    }
    assert_int_equal(list->tail, previous);
    return count;
}

void check_neigh(const struct world *w)
{
    const struct neigh_table *table = &w->stack.neigh;
    unsigned used = 0, pinned = 0, timed = 0, behind = 0, remote = 0;

    for (uint16_t i = 0; i < NET_NEIGHBOURS; i++) {
        const struct neigh_entry *e = &table->entries[i];

        if (e->state == NEIGH_FREE) {
            assert_int_equal(e->timer, NEIGH_TIMERS);
            continue;
        }
        used++;
        pinned += e->pins != 0;
        timed += e->timer != NEIGH_TIMERS;
        behind += check_list(table, &e->behind, NEIGH_BY_GATEWAY);
        remote += e->via != NEIGH_NONE;
        assert_int_equal(net_neigh_find(&w->stack, e->port, e->vlan, &e->ip),
                         i);
        assert_int_equal(mac_addr_is_zero(&e->mac),
                         e->state == NEIGH_INCOMPLETE);
        assert_true(e->is_remote || e->timer != NEIGH_TIMERS);
    }
    assert_int_equal(table->used, used);
    assert_int_equal(table->pinned, pinned);
    assert_int_equal(behind, remote);
    assert_int_equal(check_list(table, &table->unpinned, NEIGH_BY_USE),
                     used - pinned);
    assert_int_equal(check_list(table, &table->free, NEIGH_BY_USE),
                     NET_NEIGHBOURS - used);
    for (unsigned t = 0; t < NEIGH_TIMERS; t++) {
        uint64_t last_us = 0;

        timed -= check_list(table, &table->timers[t], NEIGH_BY_TIMER);
        for (uint16_t i = table->timers[t].head; i != NEIGH_NONE;
             i = table->entries[i].link[NEIGH_BY_TIMER].next) {
            assert_int_equal(table->entries[i].timer, t);
            assert_true(table->entries[i].deadline_us >= last_us ||
                        last_us <= w->now_us);
            last_us = table->entries[i].deadline_us;
        }
    }
    assert_int_equal(timed, 0);
}
