/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection manager for iWARP: see mpa_cm.h. */
#include "net/mpa_cm/mpa_cm.h"

#include <string.h>

#include "net/mpa/mpa.h"

enum { MPA_FIRST_BYTE = 'M' }; /* of "MPA ID Req Frame" */

enum mpa_cm_state {
    MPA_CM_FREE,     /* Unused; waits for a SYN. */
    MPA_CM_OPENING,  /* Waits for the end of the handshake. */
    MPA_CM_WAITING,  /* Waits for the rest of the request. */
    MPA_CM_ASKED,    /* The request is complete; its bytes have to be given
                      * back before the user is asked. */
    MPA_CM_OPEN,     /* Accepted: belongs to the user until disconnect(). */
    MPA_CM_CLOSING,  /* Sends what is left and a FIN; waits for the end. */
    MPA_CM_ABORTING, /* Is ended with a RST; waits for the end. */
    MPA_CM_ENDED,    /* Waits for disconnect() and for completions. */
    MPA_CM_STATES
};

struct mpa_cm_conn {
    struct rdma_cm_conn handle;
    struct mpa_cm *cm;
    uint32_t id; /* of the socket */
    struct mpa_cm_peer peer;
    uint8_t state;     /* enum mpa_cm_state */
    bool has_user;     /* accepted, and not disconnected by the user */
    bool was_told;     /* of the end: events->disconnected */
    bool is_confirmed; /* the user has got events->established */
    bool reply_due;    /* is to be handed to the socket */
    bool has_reply;    /* the socket has it */
    bool was_closed, was_aborted; /* these were posted */
    bool has_close, has_abort;    /* and wait for their completions */
    bool needs_step;
    uint8_t reply_len;
    uint16_t received; /* bytes of the request */
    struct mpa_cm_conn *next_step;
    uint64_t since_us;          /* begin of the present wait */
    struct mpa_request request; /* valid while the user is asked */
    struct mpa_terms terms;
};

struct mpa_cm_listener {
    const struct rdma_cm_events *events; /* NULL: none */
    void *ctx;
    uint16_t port;
};

struct mpa_cm {
    struct mpa_cm_config config;
    uint16_t used;
    uint64_t now_us;
    uint64_t watch_us; /* next look at the times; 0: no connection */
    struct mpa_cm_conn *step_first;
    struct mpa_cm_listener listeners[MPA_CM_LISTENERS];
    uint64_t counters[MPA_CM_COUNTERS];
    struct mpa_cm_conn conns[MPA_CM_CONNS];
};

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
static void conn_enter(struct mpa_cm_conn *conn, enum mpa_cm_state next)
{
    ASSERT(conn_next[conn->state] & BIT(next));
    conn->state = (uint8_t)next;
    conn->since_us = conn->cm->now_us;
}

static void conn_needs_step(struct mpa_cm_conn *conn)
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

static void conn_close(struct mpa_cm_conn *conn)
{
    conn_enter(conn, MPA_CM_CLOSING);
    conn_needs_step(conn);
}

static void conn_abort(struct mpa_cm_conn *conn)
{
    conn->reply_due = false;
    conn_enter(conn, MPA_CM_ABORTING);
    conn_needs_step(conn);
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
static void conn_confirm(struct mpa_cm_conn *conn)
{
    if (conn->has_user && !conn->is_confirmed) {
        conn->is_confirmed = true;
        if (conn->handle.events->established != NULL) {
            conn->handle.events->established(conn->handle.ctx, &conn->handle);
        }
    }
}

/* ---- What has to be posted. */

/* @return false when there is no room: the reply waits */
static bool post_reply(struct mpa_cm_conn *conn)
{
    const struct mpa_cm_socket *socket = &conn->cm->config.socket;

    if (conn->reply_due &&
        socket->send(socket->ctx, conn->id, reply_of(conn), conn->reply_len)) {
        conn->reply_due = false;
        conn->has_reply = true;
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
        conn_needs_step(conn);
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
        conn_needs_step(conn);
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
        conn_enter(conn, MPA_CM_FREE);
        conn->cm->used--;
    } else {
        conn_needs_step(conn);
    }
}

/* ---- Requests. */

static const struct mpa_cm_listener *listener_find(const struct mpa_cm *cm,
                                                   uint16_t port)
{
    for (unsigned int i = 0; i < MPA_CM_LISTENERS; i++) {
        if (cm->listeners[i].events != NULL && cm->listeners[i].port == port) {
            return &cm->listeners[i];
        }
    }
    return NULL;
}

static void prepare_reply(struct mpa_cm_conn *conn, bool is_rejected,
                          const void *private_data, size_t len)
{
    ASSERT(conn->state == MPA_CM_ASKED && len <= RDMA_CM_PRIVATE_MAX);
    conn->reply_len =
        (uint8_t)mpa_reply(&conn->request, &conn->terms, is_rejected,
                           private_data, len, reply_of(conn));
    conn->reply_due = true;
}

static void refuse_conn(struct mpa_cm_conn *conn, const void *private_data,
                        size_t len)
{
    conn->cm->counters[MPA_CM_REJECTED]++;
    prepare_reply(conn, true, private_data, len);
    conn_close(conn);
    step_closing(conn);
}

static void ask_user(struct mpa_cm_conn *conn)
{
    const struct mpa_cm_listener *listener =
        listener_find(conn->cm, conn->peer.local_port);
    struct rdma_cm_request request = {
        .laddr = conn->peer.laddr,
        .max_rd_atomic = conn->terms.ord,
        .max_dest_rd_atomic = conn->terms.ird,
        .private_data = conn->request.private_data,
        .private_len = conn->request.setup.private_len,
    };

    if (listener == NULL) {
        refuse_conn(conn, NULL, 0);
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
        conn_needs_step(conn);
        return;
    }
    socket->settle(socket->ctx);
    if (conn->request.setup.markers) {
        refuse_conn(conn, NULL, 0);
    } else {
        ask_user(conn);
    }
}

static void conn_step(struct mpa_cm_conn *conn)
{
    switch ((enum mpa_cm_state)conn->state) {
    case MPA_CM_ASKED:
        step_asked(conn);
        break;
    case MPA_CM_OPEN:
        if (!post_reply(conn)) {
            conn_needs_step(conn);
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
        conn_close(conn);
        break;
    case MPA_ACCEPTABLE:
    case MPA_REFUSED:
        conn->cm->counters[MPA_CM_REQUESTS]++;
        mpa_choose(&conn->request, &limits, &conn->terms);
        conn_enter(conn, MPA_CM_ASKED);
        break;
    }
}

/* ---- Places of connections without a request. */

static bool is_half_open(const struct mpa_cm_conn *conn)
{
    return conn->state == MPA_CM_WAITING;
}

static unsigned int count_half_open(const struct mpa_cm *cm, const uint8_t *ip)
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

/* The oldest one of the address that has most of them. */
static struct mpa_cm_conn *find_displaceable(struct mpa_cm *cm,
                                             unsigned int own)
{
    struct mpa_cm_conn *found = NULL;
    unsigned int most = own;

    for (unsigned int i = 0; i < MPA_CM_CONNS; i++) {
        struct mpa_cm_conn *conn = &cm->conns[i];
        unsigned int count =
            is_half_open(conn) ? count_half_open(cm, conn->peer.ip) : 0;

        if (count > most || (count == most && found != NULL &&
                             conn->since_us < found->since_us)) {
            found = conn;
            most = count;
        }
    }
    return found;
}

/* @return whether there is a place for one more of this address */
static bool make_place(struct mpa_cm *cm, const uint8_t *ip)
{
    struct mpa_cm_conn *conn;

    if (count_half_open(cm, NULL) < MPA_CM_HALF_OPEN) {
        return true;
    }
    conn = find_displaceable(cm, count_half_open(cm, ip));
    if (conn == NULL) {
        return false;
    }
    cm->counters[MPA_CM_DISPLACED]++;
    conn_abort(conn);
    conn_step(conn);
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
    conn_enter(conn, MPA_CM_OPENING);
    cm->used++;
}

void mpa_cm_established(struct mpa_cm *cm, uint16_t number)
{
    struct mpa_cm_conn *conn = &cm->conns[number];

    if (conn->state != MPA_CM_OPENING) {
        return; /* it is being aborted */
    }
    if (make_place(cm, conn->peer.ip)) {
        conn_enter(conn, MPA_CM_WAITING);
    } else {
        conn_abort(conn);
        conn_step(conn);
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
        conn_enter(conn, MPA_CM_FREE);
        cm->used--;
        return false;
    }
    conn->received = (uint16_t)MIN(conn->received + len_bytes, UINT16_MAX);
    read_request(conn);
    conn_step(conn);
    return true;
}

void mpa_cm_sent(struct mpa_cm *cm, uint16_t number, bool is_ok)
{
    struct mpa_cm_conn *conn = &cm->conns[number];

    conn->has_reply = false;
    if (is_ok && conn->state == MPA_CM_OPEN) {
        conn_confirm(conn);
    }
    conn_step(conn);
}

void mpa_cm_finished(struct mpa_cm *cm, uint16_t number)
{
    struct mpa_cm_conn *conn = &cm->conns[number];

    if (conn->state == MPA_CM_OPEN) {
        tell_user(conn);
    } else if (conn->state == MPA_CM_WAITING || conn->state == MPA_CM_ASKED) {
        conn_close(conn);
        conn_step(conn);
    }
}

void mpa_cm_closed(struct mpa_cm *cm, uint16_t number)
{
    cm->conns[number].has_close = false;
    conn_step(&cm->conns[number]);
}

void mpa_cm_aborted(struct mpa_cm *cm, uint16_t number)
{
    cm->conns[number].has_abort = false;
    conn_step(&cm->conns[number]);
}

void mpa_cm_ended(struct mpa_cm *cm, uint16_t number)
{
    struct mpa_cm_conn *conn = &cm->conns[number];

    conn->reply_due = false;
    conn_enter(conn, MPA_CM_ENDED);
    tell_user(conn);
    conn_step(conn);
}

/* ---- The seam of users. */

static struct mpa_cm_conn *conn_of(struct rdma_cm_conn *handle)
{
    return container_of(handle, struct mpa_cm_conn, handle);
}

static bool listen_on_port(void *cm_ctx, uint16_t port,
                           const struct rdma_cm_events *events, void *ctx)
{
    struct mpa_cm *cm = cm_ctx;

    if (listener_find(cm, port) != NULL) {
        return false;
    }
    for (unsigned int i = 0; i < MPA_CM_LISTENERS; i++) {
        if (cm->listeners[i].events == NULL) {
            cm->listeners[i] = (struct mpa_cm_listener){events, ctx, port};
            return true;
        }
    }
    return false;
}

static bool start_qp(struct rdma_cm_conn *handle, uint32_t qpn,
                     unsigned int access, uint8_t max_dest_rd_atomic)
{
    struct mpa_cm_conn *conn = conn_of(handle);
    const struct mpa_cm_config *config = &conn->cm->config;
    struct mpa_terms *terms = &conn->terms;
    struct verbs_qp_attr attr = {
        .access = (uint8_t)access,
        .iw = {.stream = conn->id,
               .has_crc = terms->crc,
               .is_first_mute = true,
               .has_send_rtr = terms->rtr == MPA_RTR_SEND},
    };

    terms->ird = MIN(terms->ird, max_dest_rd_atomic);
    if (terms->rtr == MPA_RTR_READ) {
        terms->ird = MAX(terms->ird, 1); /* that READ has to be served */
    }
    attr.max_rd_atomic = MAX(terms->ord, 1);
    attr.max_dest_rd_atomic = terms->ird;
    config->random(config->random_ctx, (uint8_t *)&attr.iw.key_seed,
                   sizeof(attr.iw.key_seed));
    return verbs_modify_qp(config->verbs, qpn, VERBS_QPS_RTR, &attr) &&
           verbs_modify_qp(config->verbs, qpn, VERBS_QPS_RTS, &attr);
}

static void accept_conn(struct rdma_cm_conn *handle, uint32_t qpn,
                        const void *private_data, size_t len)
{
    struct mpa_cm_conn *conn = conn_of(handle);

    (void)qpn;
    prepare_reply(conn, false, private_data, len);
    conn_enter(conn, MPA_CM_OPEN);
    conn->has_user = true;
    conn->cm->counters[MPA_CM_ACCEPTED]++;
    conn_step(conn);
}

/* MPA has no reasons beside the private data of the user. */
static void reject_conn(struct rdma_cm_conn *handle, enum rdma_cm_reject reason,
                        const void *private_data, size_t len)
{
    (void)reason;
    refuse_conn(conn_of(handle), private_data, len);
}

static void disconnect_conn(struct rdma_cm_conn *handle)
{
    struct mpa_cm_conn *conn = conn_of(handle);

    conn->has_user = false;
    if (conn->state == MPA_CM_OPEN) {
        conn_close(conn);
    } else {
        conn_needs_step(conn);
    }
}

static void data_received(struct rdma_cm_conn *handle)
{
    conn_confirm(conn_of(handle));
}

/* TCP keeps the path to the peer by itself. */
static void data_acknowledged(struct rdma_cm_conn *handle)
{
    (void)handle;
}

static const struct rdma_cm_ops mpa_cm_ops = {
    .listen = listen_on_port,
    .start_qp = start_qp,
    .accept = accept_conn,
    .reject = reject_conn,
    .disconnect = disconnect_conn,
    .data_received = data_received,
    .data_acknowledged = data_acknowledged,
};

struct rdma_cm mpa_cm_rdma(struct mpa_cm *cm)
{
    return (struct rdma_cm){.ops = &mpa_cm_ops, .cm = cm};
}

/* ---- Time. */

enum { WATCH_US = 1000000 };

static void conn_watch(struct mpa_cm_conn *conn)
{
    struct mpa_cm *cm = conn->cm;
    uint64_t waited_us = cm->now_us - conn->since_us;

    if (conn->state == MPA_CM_WAITING && waited_us >= MPA_CM_REQUEST_US) {
        cm->counters[MPA_CM_LATE]++;
        conn_abort(conn);
    } else if (conn->state == MPA_CM_CLOSING && waited_us >= MPA_CM_END_US) {
        conn_abort(conn);
    }
}

static void watch_conns(struct mpa_cm *cm)
{
    if (cm->watch_us == 0) {
        cm->watch_us = cm->now_us + WATCH_US;
    } else if (cm->now_us >= cm->watch_us) {
        cm->watch_us = cm->now_us + WATCH_US;
        for (unsigned int i = 0; i < MPA_CM_CONNS; i++) {
            conn_watch(&cm->conns[i]);
        }
    }
}

uint64_t mpa_cm_step(struct mpa_cm *cm, uint64_t now_us)
{
    struct mpa_cm_conn *conn = cm->step_first;

    cm->now_us = now_us;
    if (cm->used == 0) {
        cm->watch_us = 0;
        return UINT64_MAX;
    }
    watch_conns(cm);
    conn = cm->step_first;
    cm->step_first = NULL;
    while (conn != NULL) {
        struct mpa_cm_conn *next = conn->next_step;

        conn->needs_step = false;
        conn_step(conn);
        conn = next;
    }
    return cm->step_first != NULL ? now_us : cm->watch_us;
}

/* ---- The manager as a whole. */

size_t mpa_cm_bytes(void)
{
    return sizeof(struct mpa_cm);
}

void mpa_cm_init(struct mpa_cm *cm, const struct mpa_cm_config *config)
{
    *cm = (struct mpa_cm){.config = *config};
    for (unsigned int i = 0; i < MPA_CM_CONNS; i++) {
        cm->conns[i].cm = cm;
        cm->conns[i].handle.ops = &mpa_cm_ops;
    }
}

uint64_t mpa_cm_counter(const struct mpa_cm *cm, enum mpa_cm_counter counter)
{
    return cm->counters[counter];
}

struct mpa_cm_usage mpa_cm_usage(const struct mpa_cm *cm)
{
    return (struct mpa_cm_usage){
        .connections = cm->used,
        .half_open = (uint16_t)count_half_open(cm, NULL),
    };
}
