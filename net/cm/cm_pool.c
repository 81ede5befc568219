/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection manager: the pool of connections, the only writer of their state,
 * look-ups by the numbers in messages, and timers.
 * Spec: IBTA Vol 1 sections 12.9.5 to 12.9.7 (states), 12.9.8.3.1 (stale).
 */
#include "net/cm/cm_internal.h"

#include "lib/bytes.h"
#include "lib/random.h"

/* Allowed transitions. */
static const uint16_t next_states[CM_CONN_STATES] = {
    [CM_CONN_FREE] = BIT(CM_CONN_REQ_SENT) | BIT(CM_CONN_REQ_RCVD),
    [CM_CONN_REQ_SENT] = BIT(CM_CONN_REP_RCVD) | BIT(CM_CONN_TIMEWAIT),
    [CM_CONN_REP_RCVD] = BIT(CM_CONN_ESTABLISHED) | BIT(CM_CONN_TIMEWAIT),
    [CM_CONN_REQ_RCVD] = BIT(CM_CONN_REP_SENT) | BIT(CM_CONN_TIMEWAIT),
    [CM_CONN_REP_SENT] = BIT(CM_CONN_ESTABLISHED) | BIT(CM_CONN_DREQ_SENT) |
                         BIT(CM_CONN_TIMEWAIT),
    [CM_CONN_ESTABLISHED] = BIT(CM_CONN_DREQ_SENT) | BIT(CM_CONN_TIMEWAIT),
    [CM_CONN_DREQ_SENT] = BIT(CM_CONN_TIMEWAIT),
    [CM_CONN_TIMEWAIT] = BIT(CM_CONN_FREE),
};

static uint16_t index_of(const struct cm_conn *conn)
{
    return (uint16_t)(conn - conn->cm->conns);
}

/* ---- Lists: first in, first out; removal from anywhere */

static void list_append(struct cm *cm, struct cm_list *list, uint16_t i)
{
    struct cm_conn *conn = &cm->conns[i];

    conn->next = CM_NONE;
    conn->prev = list->tail;
    if (list->tail == CM_NONE) {
        list->head = i;
    } else {
        cm->conns[list->tail].next = i;
    }
    list->tail = i;
}

static void list_remove(struct cm *cm, struct cm_list *list, uint16_t i)
{
    struct cm_conn *conn = &cm->conns[i];

    if (conn->prev == CM_NONE) {
        list->head = conn->next;
    } else {
        cm->conns[conn->prev].next = conn->next;
    }
    if (conn->next == CM_NONE) {
        list->tail = conn->prev;
    } else {
        cm->conns[conn->next].prev = conn->prev;
    }
}

/* ---- Look-ups.  The hashes are seeded, because peers choose the keys. */

static uint16_t hash_ids(const struct cm *cm, uint64_t guid, uint16_t neigh,
                         uint32_t number)
{
    uint64_t word = (uint64_t)neigh << 32 | number;

    return random_mix(random_mix(guid ^ cm->config.random_seed) ^ word) &
           CM_INDEX_MASK;
}

static uint16_t *id_chain(struct cm *cm, const struct cm_conn *conn)
{
    return &cm->by_id[hash_ids(cm, conn->remote_ca_guid, conn->neigh,
                               conn->remote_comm_id)];
}

static uint16_t *qpn_chain(struct cm *cm, const struct cm_conn *conn)
{
    return &cm->by_qpn[hash_ids(cm, conn->remote_ca_guid, conn->neigh,
                                conn->remote_qpn)];
}

struct cm_conn *cm_by_local_id(struct cm *cm, uint32_t local_comm_id)
{
    struct cm_conn *conn = &cm->conns[local_comm_id & CM_INDEX_MASK];

    if (conn->state == CM_CONN_FREE || conn->local_comm_id != local_comm_id) {
        return NULL;
    }
    return conn;
}

struct cm_conn *cm_by_remote_id(struct cm *cm, uint64_t guid, uint16_t neigh,
                                uint32_t remote_comm_id)
{
    uint16_t i = cm->by_id[hash_ids(cm, guid, neigh, remote_comm_id)];

    while (i != CM_NONE && (cm->conns[i].remote_ca_guid != guid ||
                            cm->conns[i].remote_comm_id != remote_comm_id ||
                            cm->conns[i].neigh != neigh)) {
        i = cm->conns[i].next_by_id;
    }
    return i == CM_NONE ? NULL : &cm->conns[i];
}

struct cm_conn *cm_by_remote_qpn(struct cm *cm, uint64_t guid, uint16_t neigh,
                                 uint32_t qpn)
{
    uint16_t i = cm->by_qpn[hash_ids(cm, guid, neigh, qpn)];

    while (i != CM_NONE &&
           (cm->conns[i].remote_ca_guid != guid ||
            cm->conns[i].remote_qpn != qpn || cm->conns[i].neigh != neigh)) {
        i = cm->conns[i].next_by_qpn;
    }
    return i == CM_NONE ? NULL : &cm->conns[i];
}

void cm_index_remote(struct cm_conn *conn)
{
    struct cm *cm = conn->cm;
    uint16_t *id = id_chain(cm, conn);
    uint16_t *qpn = qpn_chain(cm, conn);

    ASSERT(!conn->in_by_id && !conn->in_by_qpn);
    conn->next_by_id = *id;
    *id = index_of(conn);
    conn->in_by_id = true;
    conn->next_by_qpn = *qpn;
    *qpn = index_of(conn);
    conn->in_by_qpn = true;
}

static void unindex_id(struct cm_conn *conn)
{
    struct cm *cm = conn->cm;
    uint16_t *link = id_chain(cm, conn);

    if (!conn->in_by_id) {
        return;
    }
    while (*link != index_of(conn)) {
        link = &cm->conns[*link].next_by_id;
    }
    *link = conn->next_by_id;
    conn->in_by_id = false;
}

static void unindex_qpn(struct cm_conn *conn)
{
    struct cm *cm = conn->cm;
    uint16_t *link = qpn_chain(cm, conn);

    if (!conn->in_by_qpn) {
        return;
    }
    while (*link != index_of(conn)) {
        link = &cm->conns[*link].next_by_qpn;
    }
    *link = conn->next_by_qpn;
    conn->in_by_qpn = false;
}

/* ---- Timers: a binary heap by deadline */

static void heap_put(struct cm *cm, uint32_t at, uint16_t i)
{
    cm->heap[at] = i;
    cm->conns[i].heap_at = (uint16_t)at;
}

static uint64_t heap_key(const struct cm *cm, uint32_t at)
{
    return cm->conns[cm->heap[at]].deadline_us;
}

static void heap_up(struct cm *cm, uint32_t at)
{
    uint16_t i = cm->heap[at];

    while (at > 0 && heap_key(cm, (at - 1) / 2) > cm->conns[i].deadline_us) {
        heap_put(cm, at, cm->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(cm, at, i);
}

static void heap_down(struct cm *cm, uint32_t at)
{
    uint16_t i = cm->heap[at];

    for (uint32_t child; (child = 2 * at + 1) < cm->heap_len; at = child) {
        if (child + 1 < cm->heap_len &&
            heap_key(cm, child + 1) < heap_key(cm, child)) {
            child++;
        }
        if (heap_key(cm, child) >= cm->conns[i].deadline_us) {
            break;
        }
        heap_put(cm, at, cm->heap[child]);
    }
    heap_put(cm, at, i);
}

void cm_timer_stop(struct cm_conn *conn)
{
    struct cm *cm = conn->cm;
    uint32_t at = conn->heap_at;
    uint16_t last;

    if (at == CM_NONE) {
        return;
    }
    conn->heap_at = CM_NONE;
    last = cm->heap[--cm->heap_len];
    if (at != cm->heap_len) {
        heap_put(cm, at, last);
        heap_up(cm, at);
        heap_down(cm, cm->conns[last].heap_at);
    }
}

void cm_timer_set(struct cm_conn *conn, uint64_t deadline_us)
{
    struct cm *cm = conn->cm;

    cm_timer_stop(conn);
    conn->deadline_us = deadline_us;
    cm->heap[cm->heap_len] = index_of(conn);
    heap_up(cm, cm->heap_len++);
}

struct cm_conn *cm_timer_first(struct cm *cm)
{
    return cm->heap_len == 0 ? NULL : &cm->conns[cm->heap[0]];
}

/* ---- The pool */

void cm_pool_init(struct cm *cm)
{
    cm->free = (struct cm_list){CM_NONE, CM_NONE};
    cm->resting = (struct cm_list){CM_NONE, CM_NONE};
    cm->leaving = (struct cm_list){CM_NONE, CM_NONE};
    for (uint16_t i = 0; i < CM_CONNS; i++) {
        cm->conns[i] = (struct cm_conn){
            .cm = cm,
            .local_comm_id = i,
            .heap_at = CM_NONE,
        };
        cm->by_id[i] = CM_NONE;
        cm->by_qpn[i] = CM_NONE;
        list_append(cm, &cm->free, i);
    }
}

bool cm_pool_forget(struct cm *cm)
{
    if (cm->resting.head == CM_NONE && cm->leaving.head != CM_NONE) {
        /* A peer that is alive then gets no DREP for its own DREQ. */
        cm_conn_enter(&cm->conns[cm->leaving.head], CM_CONN_TIMEWAIT);
    }
    if (cm->resting.head == CM_NONE) {
        return false;
    }
    cm_conn_enter(&cm->conns[cm->resting.head], CM_CONN_FREE);
    return true;
}

static uint64_t random_bits(struct cm *cm)
{
    uint8_t bytes[8];

    if (cm->config.random == NULL) {
        return random_mix(cm->config.random_seed ^
                          (uint64_t)cm->config.generation << 40 ^
                          cm->id_count++);
    }
    cm->config.random(cm->config.random_ctx, bytes, sizeof(bytes));
    return get_le64(bytes);
}

/*
 * Make the id of a new connection from random bits.  Its low bits are the index
 * of the entry.  The others cannot be guessed, so that an RTU with the right id
 * proves that its sender has received the REP; and they differ from those of
 * the entry's last connection, for which late messages may still come.
 */
static uint32_t make_comm_id(uint64_t bits, uint32_t last_id)
{
    uint32_t index = last_id & CM_INDEX_MASK;
    uint32_t id = ((uint32_t)bits & ~(uint32_t)CM_INDEX_MASK) | index;

    while (id == 0 || id == last_id) { /* 0 is not a valid id */
        id += CM_CONNS;
    }
    return id;
}

struct cm_conn *cm_pool_take(struct cm *cm)
{
    struct cm_conn *conn;
    uint64_t bits;

    if (cm->free.head == CM_NONE && !cm_pool_forget(cm)) {
        return NULL;
    }
    conn = &cm->conns[cm->free.head];
    list_remove(cm, &cm->free, cm->free.head);
    bits = random_bits(cm);
    *conn = (struct cm_conn){
        .cm = cm,
        .local_comm_id = make_comm_id(bits, conn->local_comm_id),
        .heap_at = CM_NONE,
        .neigh = CM_NONE,
        .local_psn = bits >> 32 & 0xffffff,
    };
    return conn;
}

static bool is_resting(const struct cm_conn *conn)
{
    return conn->state == CM_CONN_TIMEWAIT && conn->is_released;
}

static bool is_leaving(const struct cm_conn *conn)
{
    return conn->state == CM_CONN_DREQ_SENT && conn->is_released;
}

void cm_conn_enter(struct cm_conn *conn, enum cm_conn_state next)
{
    struct cm *cm = conn->cm;

    ASSERT(next_states[conn->state] & BIT(next));
    if (is_resting(conn)) {
        list_remove(cm, &cm->resting, index_of(conn));
    } else if (is_leaving(conn)) {
        list_remove(cm, &cm->leaving, index_of(conn));
    }
    conn->state = (uint8_t)next;
    cm_timer_stop(conn);
    if (next == CM_CONN_TIMEWAIT) {
        unindex_qpn(conn); /* the peer may use its QPN again */
        if (conn->is_released) {
            list_append(cm, &cm->resting, index_of(conn));
        }
    } else if (next == CM_CONN_FREE) {
        unindex_id(conn);
        if (conn->neigh != CM_NONE) {
            cm->config.path_ops->unpin(cm->config.path_ctx, conn->neigh);
        }
        list_append(cm, &cm->free, index_of(conn));
    }
}

void cm_conn_settle(struct cm_conn *conn)
{
    if (is_resting(conn) && conn->heap_at == CM_NONE) {
        cm_conn_enter(conn, CM_CONN_FREE);
    }
}

void cm_conn_disown(struct cm_conn *conn)
{
    ASSERT(!conn->is_released);
    conn->is_released = true;
    if (is_resting(conn)) {
        list_append(conn->cm, &conn->cm->resting, index_of(conn));
    } else if (is_leaving(conn)) {
        list_append(conn->cm, &conn->cm->leaving, index_of(conn));
    }
    cm_conn_settle(conn);
}
