/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection of iWARP, from its SYN to its end: see mpa_cm.h. */
#include "net/mpa_cm/internal.h"

#include <string.h>

enum { MPA_FIRST_BYTE = 'M' }; /* of "MPA ID Req Frame" */

/* Where each state may go. */
static const uint8_t conn_next[MPA_CM_STATES] = {
    [MPA_CM_FREE] = BIT(MPA_CM_OPENING),
    [MPA_CM_OPENING] =
        BIT(MPA_CM_WAITING) | BIT(MPA_CM_ABORTING) | BIT(MPA_CM_ENDED),
    [MPA_CM_WAITING] = BIT(MPA_CM_ASKED) | BIT(MPA_CM_CLOSING) |
                       BIT(MPA_CM_ABORTING) | BIT(MPA_CM_ENDED) |
                       BIT(MPA_CM_FREE),
    [MPA_CM_ASKED] = BIT(MPA_CM_OPEN) | BIT(MPA_CM_CLOSING) |
                     BIT(MPA_CM_ABORTING) | BIT(MPA_CM_ENDED),
    [MPA_CM_OPEN] = BIT(MPA_CM_CLOSING) | BIT(MPA_CM_ENDED),
    [MPA_CM_CLOSING] = BIT(MPA_CM_ABORTING) | BIT(MPA_CM_ENDED),
    [MPA_CM_ABORTING] = BIT(MPA_CM_ENDED),
    [MPA_CM_ENDED] = BIT(MPA_CM_FREE),
};

_Static_assert((int)MPA_CM_REPLY_LEN >= (int)MPA_SETUP_LEN +
                                            (int)MPA_ENHANCED_LEN +
                                            (int)RDMA_CM_PRIVATE_MAX,
               "every reply has room");

/* The only writer of conn->state. */
void mpa_conn_enter(struct mpa_cm_conn *conn, enum mpa_cm_state next)
{
    ASSERT(conn_next[conn->state] & BIT(next));
    conn->state = (uint8_t)next;
    conn->since_us = conn->cm->now_us;
}

void mpa_conn_needs_step(struct mpa_cm_conn *conn)
{
    if (!conn->needs_step) {
        conn->needs_step = true;
        conn->next_step = conn->cm->step_first;
        conn->cm->step_first = conn;
    }
}

static uint16_t conn_number(const struct mpa_cm_conn *conn)
{
    return (uint16_t)(conn - conn->cm->conns);
}

static uint8_t *reply_of(const struct mpa_cm_conn *conn)
{
    return conn->cm->config.replies +
           (size_t)conn_number(conn) * MPA_CM_REPLY_LEN;
}

/* ---- Ends. */

void mpa_conn_abort(struct mpa_cm_conn *conn)
{
    conn->reply_due = false;
    mpa_conn_enter(conn, MPA_CM_ABORTING);
    mpa_conn_needs_step(conn);
}

static struct mpa_cm_conn *older_of(struct mpa_cm_conn *one,
                                    struct mpa_cm_conn *other)
{
    return one != NULL && one->since_us <= other->since_us ? one : other;
}

/* A peer that sends no FIN keeps a connection, which others may need.  One more
 * begins to wait for its peer's FIN. */
static void limit_closings(struct mpa_cm_conn *last)
{
    struct mpa_cm *cm = last->cm;
    struct mpa_cm_conn *oldest = NULL, *oldest_own = NULL;
    unsigned int count = 0, own = 0;

    if (cm->used <= MPA_CM_AMPLE) {
        return;
    }
    for (unsigned int i = 0; i < MPA_CM_CONNS; i++) {
        struct mpa_cm_conn *conn = &cm->conns[i];

        if (conn->state != MPA_CM_CLOSING || conn == last) {
            continue;
        }
        count++;
        oldest = older_of(oldest, conn);
        if (memcmp(conn->peer.ip, last->peer.ip, sizeof(conn->peer.ip)) == 0) {
            own++;
            oldest_own = older_of(oldest_own, conn);
        }
    }
    if (count >= MPA_CM_CLOSINGS) {
        mpa_conn_abort(own >= MPA_CM_OWN_CLOSINGS ? oldest_own : oldest);
    }
}

void mpa_conn_close(struct mpa_cm_conn *conn)
{
    mpa_conn_enter(conn, MPA_CM_CLOSING);
    mpa_conn_needs_step(conn);
    limit_closings(conn);
}

/* The connection has ended, or is about to: its user has to let it go. */
static void tell_user(struct mpa_cm_conn *conn)
{
    if (conn->has_user && !conn->was_told) {
        conn->was_told = true;
        conn->handle.events->disconnected(conn->handle.ctx, &conn->handle);
    }
}

/* The peer has the reply. */
void mpa_conn_confirm(struct mpa_cm_conn *conn)
{
    if (conn->has_user && !conn->is_confirmed) {
        conn->is_confirmed = true;
        if (conn->handle.events->established != NULL) {
            conn->handle.events->established(conn->handle.ctx, &conn->handle);
        }
    }
}

/* ---- What has to be posted. */

/* The reply is taken before the queue pair may leave the stream.  @return false
 * when there is no room: the reply waits */
static bool post_reply(struct mpa_cm_conn *conn)
{
    const struct mpa_cm_socket *socket = &conn->cm->config.socket;

    if (conn->reply_due &&
        socket->send(socket->ctx, conn->id, reply_of(conn), conn->reply_len)) {
        conn->reply_due = false;
        conn->has_reply = true;
        socket->settle(socket->ctx);
    }
    return !conn->reply_due;
}

static void step_closing(struct mpa_cm_conn *conn)
{
    const struct mpa_cm_socket *socket = &conn->cm->config.socket;

    if (post_reply(conn) && !conn->was_closed &&
        socket->close(socket->ctx, conn->id)) {
        conn->was_closed = conn->has_close = true;
    }
    if (!conn->was_closed) {
        mpa_conn_needs_step(conn);
    }
}

static void step_aborting(struct mpa_cm_conn *conn)
{
    const struct mpa_cm_socket *socket = &conn->cm->config.socket;

    if (conn->was_aborted) {
        return;
    }
    if (socket->abort(socket->ctx, conn->id)) {
        conn->was_aborted = conn->has_abort = true;
    } else {
        mpa_conn_needs_step(conn);
    }
}

static void step_ended(struct mpa_cm_conn *conn)
{
    const struct mpa_cm_socket *socket = &conn->cm->config.socket;

    if (conn->has_user || conn->has_reply || conn->has_close ||
        conn->has_abort) {
        return;
    }
    if (socket->release(socket->ctx, conn->id)) {
        mpa_conn_enter(conn, MPA_CM_FREE);
        conn->cm->used--;
    } else {
        mpa_conn_needs_step(conn);
    }
}

/* ---- Requests. */

const struct mpa_cm_listener *mpa_cm_listener_at(const struct mpa_cm *cm,
                                                 uint16_t port)
{
    for (unsigned int i = 0; i < MPA_CM_LISTENERS; i++) {
        if (cm->listeners[i].events != NULL && cm->listeners[i].port == port) {
            return &cm->listeners[i];
        }
    }
    return NULL;
}

void mpa_conn_reply(struct mpa_cm_conn *conn, bool is_rejected,
                    const void *private_data, size_t len)
{
    ASSERT(conn->state == MPA_CM_ASKED && len <= RDMA_CM_PRIVATE_MAX);
    conn->reply_len =
        (uint8_t)mpa_reply(&conn->request, &conn->terms, is_rejected,
                           private_data, len, reply_of(conn));
    conn->reply_due = true;
}

void mpa_conn_refuse(struct mpa_cm_conn *conn, const void *private_data,
                     size_t len)
{
    conn->cm->counters[MPA_CM_REJECTED]++;
    mpa_conn_reply(conn, true, private_data, len);
    mpa_conn_close(conn);
    step_closing(conn);
}

static void ask_user(struct mpa_cm_conn *conn)
{
    const struct mpa_cm_listener *listener =
        mpa_cm_listener_at(conn->cm, conn->peer.local_port);
    struct rdma_cm_request request = {
        .laddr = conn->peer.laddr,
        .max_rd_atomic = conn->terms.ord,
        .max_dest_rd_atomic = conn->terms.ird,
        .private_data = conn->request.private_data,
        .private_len = conn->request.setup.private_len,
    };

    if (listener == NULL) {
        mpa_conn_refuse(conn, NULL, 0);
        return;
    }
    memcpy(request.peer.bytes, conn->peer.ip, sizeof(request.peer.bytes));
    conn->handle.events = listener->events;
    conn->handle.ctx = listener->ctx;
    listener->events->request(listener->ctx, &conn->handle, &request);
    ASSERT(conn->state != MPA_CM_ASKED); /* accept() or reject() was called */
}

/* The stream can change hands only when its ring is empty. */
static void step_asked(struct mpa_cm_conn *conn)
{
    const struct mpa_cm_socket *socket = &conn->cm->config.socket;

    if (!socket->credit(socket->ctx, conn->id, conn->received)) {
        mpa_conn_needs_step(conn);
        return;
    }
    socket->settle(socket->ctx);
    if (conn->request.setup.markers) {
        mpa_conn_refuse(conn, NULL, 0);
    } else {
        ask_user(conn);
    }
}

void mpa_conn_step(struct mpa_cm_conn *conn)
{
    switch ((enum mpa_cm_state)conn->state) {
    case MPA_CM_ASKED:
        step_asked(conn);
        break;
    case MPA_CM_OPEN:
        if (!post_reply(conn)) {
            mpa_conn_needs_step(conn);
        }
        break;
    case MPA_CM_CLOSING:
        step_closing(conn);
        break;
    case MPA_CM_ABORTING:
        step_aborting(conn);
        break;
    case MPA_CM_ENDED:
        step_ended(conn);
        break;
    case MPA_CM_FREE:
    case MPA_CM_OPENING:
    case MPA_CM_WAITING:
    case MPA_CM_STATES:
        break;
    }
}

static void read_request(struct mpa_cm_conn *conn)
{
    const struct mpa_cm_config *config = &conn->cm->config;
    const struct mpa_limits limits = {
        .wants_crc = config->wants_crc,
        .max_ird = config->max_dest_rd_atomic,
        .max_ord = config->max_rd_atomic,
    };
    const uint8_t *ring =
        config->rings + (size_t)conn_number(conn) * config->ring_bytes;

    switch (mpa_request_judge(&conn->request, ring, conn->received)) {
    case MPA_WAITS:
        break;
    case MPA_NOT_MPA:
        conn->cm->counters[MPA_CM_NOT_MPA]++;
        mpa_conn_close(conn);
        break;
    case MPA_ACCEPTABLE:
    case MPA_REFUSED:
        conn->cm->counters[MPA_CM_REQUESTS]++;
        mpa_choose(&conn->request, &limits, &conn->terms);
        mpa_conn_enter(conn, MPA_CM_ASKED);
        break;
    }
}

/* ---- Places of connections without a request. */

static bool is_half_open(const struct mpa_cm_conn *conn)
{
    return conn->state == MPA_CM_WAITING;
}

unsigned int mpa_cm_half_open(const struct mpa_cm *cm, const uint8_t *ip)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < MPA_CM_CONNS; i++) {
        const struct mpa_cm_conn *conn = &cm->conns[i];

        count += is_half_open(conn) &&
                 (ip == NULL ||
                  memcmp(conn->peer.ip, ip, sizeof(conn->peer.ip)) == 0);
    }
    return count;
}

/* How many of these connections have the address of one. */
static unsigned int count_address(struct mpa_cm_conn *const *list,
                                  unsigned int len,
                                  const struct mpa_cm_conn *one)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < len; i++) {
        count +=
            memcmp(list[i]->peer.ip, one->peer.ip, sizeof(one->peer.ip)) == 0;
    }
    return count;
}

/* The oldest one of the address that has most of them, and more than `own`. */
static struct mpa_cm_conn *find_displaceable(struct mpa_cm *cm,
                                             unsigned int own)
{
    struct mpa_cm_conn *list[MPA_CM_HALF_OPEN];
    struct mpa_cm_conn *found = NULL;
    unsigned int most = own;
    unsigned int len = 0;

    for (unsigned int i = 0; i < MPA_CM_CONNS && len < ARRAY_LEN(list); i++) {
        if (is_half_open(&cm->conns[i])) {
            list[len++] = &cm->conns[i];
        }
    }
    for (unsigned int i = 0; i < len; i++) {
        unsigned int count = count_address(list, len, list[i]);

        if (count > most || (count == most && found != NULL &&
                             list[i]->since_us < found->since_us)) {
            found = list[i];
            most = count;
        }
    }
    return found;
}

/* @return whether there is a place for one more of this address */
static bool make_place(struct mpa_cm *cm, const uint8_t *ip)
{
    struct mpa_cm_conn *conn;

    if (mpa_cm_half_open(cm, NULL) < MPA_CM_HALF_OPEN) {
        return true;
    }
    conn = find_displaceable(cm, mpa_cm_half_open(cm, ip));
    if (conn == NULL) {
        return false;
    }
    cm->counters[MPA_CM_DISPLACED]++;
    mpa_conn_abort(conn);
    mpa_conn_step(conn);
    return true;
}

/* ---- What the socket reports. */

void mpa_cm_asked(struct mpa_cm *cm, uint16_t number, uint32_t id,
                  const struct mpa_cm_peer *peer)
{
    struct mpa_cm_conn *conn = &cm->conns[number];

    ASSERT(conn->state == MPA_CM_FREE);
    /* Keep needs_step and next_step: it may still be in that list. */
    conn->id = id;
    conn->peer = *peer;
    conn->has_user = false;
    conn->was_told = false;
    conn->is_confirmed = false;
    conn->reply_due = false;
    conn->has_reply = false;
    conn->was_closed = conn->was_aborted = false;
    conn->has_close = conn->has_abort = false;
    conn->received = 0;
    mpa_conn_enter(conn, MPA_CM_OPENING);
    cm->used++;
}

void mpa_cm_established(struct mpa_cm *cm, uint16_t number)
{
    struct mpa_cm_conn *conn = &cm->conns[number];

    if (conn->state != MPA_CM_OPENING) {
        return; /* it is being aborted */
    }
    if (make_place(cm, conn->peer.ip)) {
        mpa_conn_enter(conn, MPA_CM_WAITING);
    } else {
        mpa_conn_abort(conn);
        mpa_conn_step(conn);
    }
}

bool mpa_cm_received(struct mpa_cm *cm, uint16_t number, uint32_t len_bytes)
{
    struct mpa_cm_conn *conn = &cm->conns[number];
    const uint8_t *ring =
        cm->config.rings + (size_t)number * cm->config.ring_bytes;

    if (conn->state != MPA_CM_WAITING) {
        return true; /* the stream goes on where it may not: it will end */
    }
    if (conn->received == 0 && ring[0] != MPA_FIRST_BYTE) {
        mpa_conn_enter(conn, MPA_CM_FREE);
        cm->used--;
        return false;
    }
    conn->received = (uint16_t)MIN(conn->received + len_bytes, UINT16_MAX);
    read_request(conn);
    mpa_conn_step(conn);
    return true;
}

void mpa_cm_sent(struct mpa_cm *cm, uint16_t number, bool is_ok)
{
    struct mpa_cm_conn *conn = &cm->conns[number];

    conn->has_reply = false;
    if (is_ok && conn->state == MPA_CM_OPEN) {
        mpa_conn_confirm(conn);
    }
    mpa_conn_step(conn);
}

void mpa_cm_finished(struct mpa_cm *cm, uint16_t number)
{
    struct mpa_cm_conn *conn = &cm->conns[number];

    if (conn->state == MPA_CM_OPEN) {
        tell_user(conn);
    } else if (conn->state == MPA_CM_WAITING || conn->state == MPA_CM_ASKED) {
        mpa_conn_close(conn);
        mpa_conn_step(conn);
    }
}

void mpa_cm_closed(struct mpa_cm *cm, uint16_t number)
{
    cm->conns[number].has_close = false;
    mpa_conn_step(&cm->conns[number]);
}

void mpa_cm_aborted(struct mpa_cm *cm, uint16_t number)
{
    cm->conns[number].has_abort = false;
    mpa_conn_step(&cm->conns[number]);
}

void mpa_cm_ended(struct mpa_cm *cm, uint16_t number)
{
    struct mpa_cm_conn *conn = &cm->conns[number];

    conn->reply_due = false;
    mpa_conn_enter(conn, MPA_CM_ENDED);
    tell_user(conn);
    mpa_conn_step(conn);
}
