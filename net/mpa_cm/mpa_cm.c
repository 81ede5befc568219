/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection manager for iWARP: see mpa_cm.h. */
#include "net/mpa_cm/internal.h"

/* ---- The seam of users. */

static struct mpa_cm_conn *conn_of(struct rdma_cm_conn *handle)
{
    return container_of(handle, struct mpa_cm_conn, handle);
}

static bool listen_on_port(void *cm_ctx, uint16_t port,
                           const struct rdma_cm_events *events, void *ctx)
{
    struct mpa_cm *cm = cm_ctx;

    if (mpa_cm_listener_at(cm, port) != NULL) {
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
    mpa_conn_reply(conn, false, private_data, len);
    mpa_conn_enter(conn, MPA_CM_OPEN);
    conn->has_user = true;
    conn->cm->counters[MPA_CM_ACCEPTED]++;
    mpa_conn_step(conn);
}

/* MPA has no reasons beside the private data of the user. */
static void reject_conn(struct rdma_cm_conn *handle, enum rdma_cm_reject reason,
                        const void *private_data, size_t len)
{
    (void)reason;
    mpa_conn_refuse(conn_of(handle), private_data, len);
}

static void disconnect_conn(struct rdma_cm_conn *handle)
{
    struct mpa_cm_conn *conn = conn_of(handle);

    conn->has_user = false;
    conn->reply_due = false; /* the queue pair has left the stream */
    if (conn->state == MPA_CM_OPEN) {
        mpa_conn_close(conn);
    } else {
        mpa_conn_needs_step(conn);
    }
}

static void data_received(struct rdma_cm_conn *handle)
{
    mpa_conn_confirm(conn_of(handle));
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
        mpa_conn_abort(conn);
    } else if (conn->state == MPA_CM_CLOSING && waited_us >= MPA_CM_END_US) {
        mpa_conn_abort(conn);
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
        mpa_conn_step(conn);
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
        .half_open = (uint16_t)mpa_cm_half_open(cm, NULL),
    };
}
