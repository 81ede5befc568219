/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection manager: public functions, timers, and QP 1. */
#include "net/cm/cm_internal.h"

#include "lib/random.h"

enum { RECV_WR_ID = 0x10000 }; /* lower values are send buffers */

/* ---- QP 1 */

static uint8_t *recv_buffer(struct cm *cm, uint32_t i)
{
    return cm->config.memory + (size_t)CM_SEND_BUFFERS * MAD_LEN +
           (size_t)i * (VERBS_UD_HEADER + MAD_LEN);
}

static void post_recv(struct cm *cm, uint32_t i)
{
    const struct verbs_sge sge = {
        .addr = recv_buffer(cm, i),
        .len_bytes = VERBS_UD_HEADER + MAD_LEN,
        .lkey = verbs_local_key(cm->config.verbs),
    };
    bool posted =
        verbs_post_recv(cm->config.verbs, GSI_QPN, RECV_WR_ID + i, &sge);

    ASSERT(posted); /* the ring has one entry for each buffer */
}

static void on_completion(void *ctx, const struct verbs_wc *wc)
{
    struct cm *cm = ctx;

    if (wc->status != VERBS_WC_SUCCESS) {
        cm->qp = CM_QP_FAILED; /* cm_poll() creates it and its buffers again */
        return;
    }
    if (wc->wr_id >= RECV_WR_ID) {
        uint32_t i = (uint32_t)wc->wr_id - RECV_WR_ID;

        cm_recv(cm, recv_buffer(cm, i), wc->len_bytes);
        if (cm->qp == CM_QP_LIVE) {
            post_recv(cm, i);
        }
    } else {
        cm_send_done(cm, (uint16_t)wc->wr_id);
    }
}

static void on_event(void *ctx, const struct verbs_event *event)
{
    struct cm *cm = ctx;

    if (event->type == VERBS_EVENT_QP_FATAL) {
        cm->qp = CM_QP_FAILED;
    }
}

static bool start_qp(struct cm *cm)
{
    static const struct verbs_qp_ops ops = {on_completion, on_event, NULL};
    const struct verbs_qp_config config = {
        .type = VERBS_QP_UD,
        .sq_depth = CM_SEND_BUFFERS,
        .rq_depth = CM_RECV_BUFFERS,
        .ops = &ops,
        .ctx = cm,
    };

    if (!verbs_create_mad_qp(cm->config.verbs, &config)) {
        return false;
    }
    for (uint32_t i = 0; i < CM_RECV_BUFFERS; i++) {
        post_recv(cm, i);
    }
    return true;
}

/* Messages in flight are lost; timers here and at the peers resend them. */
static void restart_qp(struct cm *cm)
{
    if (cm->qp == CM_QP_FAILED) {
        verbs_destroy_qp(cm->config.verbs, GSI_QPN);
        cm_send_reset(cm);
        cm->counters.restarts++;
    }
    cm->qp = start_qp(cm) ? CM_QP_LIVE : CM_QP_ABSENT;
}

bool cm_init(struct cm *cm, const struct cm_config *config)
{
    ASSERT(config->ca_guid != 0 && config->initiator_depth != 0 &&
           config->max_retries < 16);
    memset(cm, 0, sizeof(*cm));
    cm->config = *config;
    if (cm->config.trace == NULL) {
        cm->config.trace = &trace_off;
    }
    if (cm->config.response_timeout == 0) {
        cm->config.response_timeout = 20;
    }
    cm_pool_init(cm);
    cm_send_init(cm);
    return start_qp(cm);
}

/* ---- Timers */

/* Send the message for whose answer the state waits.  @return false when there
 * is no buffer */
static bool send_request(struct cm_conn *conn)
{
    switch (conn->state) {
    case CM_CONN_REQ_SENT:
        return cm_send_req(conn);
    case CM_CONN_REP_SENT:
        return cm_send_rep(conn);
    default:
        return cm_send_dreq(conn);
    }
}

/* Wait for the answer to a message, or for a buffer if it was not sent. */
static void set_answer_timer(struct cm_conn *conn, bool sent)
{
    uint64_t wait_us = sent ? conn->timeout_us : CM_BUFFER_WAIT_US;

    cm_timer_set(conn, MIN(conn->cm->now_us + wait_us, conn->give_up_us));
}

/* Enter a state that waits for an answer, and send its message. */
static void enter_and_send(struct cm_conn *conn, enum cm_conn_state state)
{
    bool sent;

    cm_conn_enter(conn, state);
    sent = send_request(conn);
    conn->retries_left = (uint8_t)(conn->max_retries + (sent ? 0 : 1));
    /* The values of an active connection are our own. */
    conn->give_up_us =
        conn->is_active ? CM_NO_DEADLINE : conn->cm->now_us + CM_PEER_LIMIT_US;
    set_answer_timer(conn, sent);
}

static void send_request_again(struct cm_conn *conn)
{
    bool sent = send_request(conn);

    if (sent) {
        conn->retries_left--;
        conn->cm->counters.retransmits++;
    }
    set_answer_timer(conn, sent);
}

static void expire_conn(struct cm_conn *conn)
{
    const struct cm_end end = {.reason = CM_END_TIMEOUT};

    cm_timer_stop(conn);
    if (conn->state == CM_CONN_TIMEWAIT) {
        cm_conn_settle(conn);
        return;
    }
    if (conn->retries_left != 0 && conn->cm->now_us < conn->give_up_us) {
        send_request_again(conn);
        return;
    }
    conn->cm->counters.timeouts++;
    if (conn->state == CM_CONN_REQ_SENT) {
        cm_send_rej_timeout(conn, CM_ANSWERS_REQ);
    } else if (conn->state == CM_CONN_REP_SENT) {
        cm_send_rej_timeout(conn, CM_ANSWERS_REP);
    }
    cm_conn_end(conn, &end);
}

uint64_t cm_poll(struct cm *cm, uint64_t now_us)
{
    struct cm_conn *conn;

    cm->now_us = now_us;
    if (cm->qp != CM_QP_LIVE) {
        restart_qp(cm);
    }
    while ((conn = cm_timer_first(cm)) != NULL && conn->deadline_us <= now_us) {
        expire_conn(conn);
    }
    if (cm->qp == CM_QP_ABSENT) {
        return now_us + CM_BUFFER_WAIT_US;
    }
    return conn == NULL ? CM_NO_DEADLINE : conn->deadline_us;
}

/* ---- For users */

bool cm_listen(struct cm *cm, uint64_t service_id, const struct cm_ops *ops,
               void *ctx)
{
    struct cm_listener *unused = NULL;

    ASSERT(ops->request != NULL);
    for (unsigned int i = 0; i < CM_LISTENERS; i++) {
        struct cm_listener *listener = &cm->listeners[i];

        if (listener->ops == NULL) {
            unused = unused != NULL ? unused : listener;
        } else if (listener->service_id == service_id) {
            return false;
        }
    }
    if (unused == NULL) {
        return false;
    }
    *unused = (struct cm_listener){service_id, ops, ctx};
    return true;
}

void cm_set_ctx(struct cm_conn *conn, void *ctx)
{
    conn->ctx = ctx;
}

void cm_qp_attr(const struct cm_conn *conn, struct verbs_qp_attr *attr)
{
    ASSERT(conn->in_by_id);
    *attr = (struct verbs_qp_attr){
        .laddr = conn->laddr,
        .is_v1 = conn->is_v1,
        .priority = conn->priority,
        .neigh = conn->neigh,
        .path_mtu = conn->path_mtu,
        .max_rd_atomic = conn->max_rd_atomic,
        .max_dest_rd_atomic = conn->max_dest_rd_atomic,
        .dest_qpn = conn->remote_qpn,
        /* The recipient of a starting PSN begins to send at that PSN. */
        .sq_psn = conn->remote_psn,
        .rq_psn = conn->local_psn,
        .ack_timeout = conn->ack_timeout,
        .retries = conn->retry_count,
        .rnr_retries = conn->rnr_retry_count,
        .rnr_timer = CM_RNR_TIMER,
        .dscp = conn->traffic_class >> 2,
        .hop_limit = CM_HOP_LIMIT,
        /* Each flow has a source port, by which switches spread flows. */
        .udp_sport =
            (uint16_t)(0xc000 | (random_mix(conn->local_comm_id) & 0x3fff)),
    };
}

void cm_serve_reads(struct cm_conn *conn, uint8_t max_dest_rd_atomic)
{
    ASSERT(conn->state == CM_CONN_REQ_RCVD);
    conn->max_dest_rd_atomic = max_dest_rd_atomic;
}

static void keep_private_data(struct cm_conn *conn, const void *data,
                              size_t len)
{
    ASSERT(len <= CM_PRIVATE_MAX);
    conn->private_len = (uint8_t)len;
    if (len != 0) {
        memcpy(conn->private_data, data, len);
    }
}

void cm_accept(struct cm_conn *conn, uint32_t qpn, const void *private_data,
               size_t len)
{
    ASSERT(conn->state == CM_CONN_REQ_RCVD && !conn->is_released);
    conn->local_qpn = qpn;
    keep_private_data(conn, private_data, len);
    enter_and_send(conn, CM_CONN_REP_SENT);
}

void cm_reject(struct cm_conn *conn, uint16_t reason, const void *private_data,
               size_t len)
{
    struct cm_answer answer = cm_conn_answer(conn);

    ASSERT(conn->state == CM_CONN_REQ_RCVD || conn->state == CM_CONN_REP_RCVD);
    cm_send_rej(conn->cm, &answer,
                conn->state == CM_CONN_REQ_RCVD ? CM_ANSWERS_REQ
                                                : CM_ANSWERS_REP,
                reason, NULL, 0, private_data, len);
    /* There is no TIMEWAIT: the same REQ would be refused again. */
    cm_conn_enter(conn, CM_CONN_TIMEWAIT);
    cm_conn_disown(conn);
}

void cm_data_received(struct cm_conn *conn)
{
    if (conn->state == CM_CONN_REP_SENT) {
        cm_conn_establish(conn);
    }
}

bool cm_is_reached(const struct cm *cm, uint16_t neigh)
{
    for (unsigned int i = 0; i < CM_CONNS; i++) {
        const struct cm_conn *conn = &cm->conns[i];

        if (conn->state == CM_CONN_ESTABLISHED && conn->neigh == neigh &&
            cm->now_us - conn->reached_us < CM_REACHED_US) {
            return true;
        }
    }
    return false;
}

void cm_disconnect(struct cm_conn *conn)
{
    if (conn->state == CM_CONN_DREQ_SENT || conn->state == CM_CONN_TIMEWAIT) {
        return;
    }
    ASSERT(conn->state == CM_CONN_ESTABLISHED ||
           conn->state == CM_CONN_REP_SENT);
    if (conn->state == CM_CONN_REP_SENT) {
        /* The peer may have forged its address, so whoever is there gets no
         * more than one message for this. */
        conn->max_retries = 0;
    }
    conn->tid = cm_new_tid(conn->cm);
    enter_and_send(conn, CM_CONN_DREQ_SENT);
}

void cm_release(struct cm_conn *conn)
{
    switch (conn->state) {
    case CM_CONN_REQ_RCVD:
    case CM_CONN_REP_RCVD:
        cm_reject(conn, CM_REJ_CONSUMER, NULL, 0);
        return;
    case CM_CONN_REQ_SENT:
        cm_send_rej_timeout(conn, CM_ANSWERS_REQ);
        cm_conn_enter(conn, CM_CONN_TIMEWAIT);
        break;
    case CM_CONN_REP_SENT:
    case CM_CONN_ESTABLISHED:
        cm_disconnect(conn);
        break;
    default:
        ASSERT(conn->state != CM_CONN_FREE);
        break;
    }
    cm_conn_disown(conn);
}

struct cm_conn *cm_connect(struct cm *cm, const struct cm_connect_param *param)
{
    struct cm_conn *conn = cm_pool_take(cm);

    if (conn == NULL) {
        return NULL;
    }
    conn->is_active = true;
    conn->ops = param->ops;
    conn->ctx = param->ctx;
    conn->neigh = param->path.neigh;
    conn->laddr = param->path.laddr;
    conn->is_v1 = param->path.is_v1;
    conn->priority = param->path.priority;
    conn->traffic_class = (uint8_t)(param->path.dscp << 2);
    conn->path_mtu = param->path.mtu;
    cm->config.path_ops->pin(cm->config.path_ctx, conn->neigh);
    conn->service_id = param->service_id;
    conn->local_ip = param->local_ip;
    conn->peer_ip = param->peer_ip;
    conn->local_port = param->local_port;
    conn->local_qpn = param->qpn;
    conn->ack_timeout = param->ack_timeout;
    conn->retry_count = param->retry_count;
    conn->rnr_retry_count = param->rnr_retry_count;
    conn->max_retries = cm->config.max_retries;
    conn->timeout_us = ib_time_us(cm->config.response_timeout);
    conn->tid = cm_new_tid(cm);
    keep_private_data(conn, param->private_data, param->private_len);
    enter_and_send(conn, CM_CONN_REQ_SENT);
    return conn;
}

void cm_confirm(struct cm_conn *conn)
{
    ASSERT(conn->state == CM_CONN_REP_RCVD);
    cm_conn_enter(conn, CM_CONN_ESTABLISHED);
    cm_data_acknowledged(conn); /* the REP answered our REQ */
    cm_send_rtu(conn);
}
