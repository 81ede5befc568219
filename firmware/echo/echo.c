/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/echo/echo.h"

#include <string.h>

#include "firmware/hal/dram.h"

enum {
    SQ_DEPTH = 8, /* a READ or WRITE, and the SENDs before and after it */
    READ_WRITE = VERBS_ACCESS_REMOTE_READ | VERBS_ACCESS_REMOTE_WRITE,
};

/* ---- The memory of a connection. */

static uint8_t *buffer_of(const struct echo_conn *c, uint8_t buffer)
{
    return c->region + ECHO_REGION_LEN + (size_t)buffer * ECHO_BUFFER_LEN;
}

static uint32_t readable_len(const struct echo_conn *c)
{
    return ECHO_REGION_LEN + c->buffers * (uint32_t)ECHO_BUFFER_LEN;
}

static void give_keys(struct echo_conn *c)
{
    struct verbs *verbs = c->echo->config.verbs;
    uint32_t *keys[] = {&c->key, &c->read_key, &c->write_key};

    for (unsigned int i = 0; i < ARRAY_LEN(keys); i++) {
        if (*keys[i] != VERBS_NO_MR) {
            verbs_dereg_mr(verbs, *keys[i]);
            *keys[i] = VERBS_NO_MR;
        }
    }
}

static bool take_keys(struct echo_conn *c)
{
    struct verbs *verbs = c->echo->config.verbs;

    c->key = verbs_reg_mr(verbs, c->region, ECHO_REGION_LEN, READ_WRITE);
    c->read_key = verbs_reg_mr(verbs, c->region, readable_len(c),
                               VERBS_ACCESS_REMOTE_READ);
    c->write_key = verbs_reg_mr(verbs, c->region, ECHO_REGION_LEN,
                                VERBS_ACCESS_REMOTE_WRITE);
    if (c->key == VERBS_NO_MR || c->read_key == VERBS_NO_MR ||
        c->write_key == VERBS_NO_MR) {
        give_keys(c);
        return false;
    }
    return true;
}

static void post_buffer(struct echo_conn *c, uint8_t buffer)
{
    struct verbs *verbs = c->echo->config.verbs;
    const struct verbs_sge sge = {
        .addr = buffer_of(c, buffer),
        .len_bytes = ECHO_BUFFER_LEN,
        .lkey = verbs_local_key(verbs),
    };
    bool posted = verbs_post_recv(verbs, c->qpn, buffer, &sge);

    ASSERT(posted); /* the ring has one entry for each buffer */
}

/* Post buffers in the order of the messages, so that a peer knows which buffer
 * its next message uses. */
static void give_buffer(struct echo_conn *c, uint8_t buffer)
{
    uint64_t due_us = c->echo->now_us + c->hold_ms * UINT64_C(1000);

    if (c->hold_ms == 0) {
        post_buffer(c, buffer);
        return;
    }
    ASSERT(c->held_count < ECHO_BUFFERS);
    c->held[(c->held_first + c->held_count++) % ECHO_BUFFERS] =
        (struct echo_held){buffer, due_us};
}

static void post_due_buffers(struct echo_conn *c)
{
    while (c->held_count != 0 &&
           c->held[c->held_first].due_us <= c->echo->now_us) {
        post_buffer(c, c->held[c->held_first].buffer);
        c->held_first = (uint8_t)((c->held_first + 1) % ECHO_BUFFERS);
        c->held_count--;
    }
}

/* ---- Pings. */

static void fail_conn(struct echo_conn *c)
{
    c->state = ECHO_FAILED;
}

static void end_conn(struct echo_conn *c)
{
    if (c->state == ECHO_OPEN) {
        c->state = ECHO_ENDING;
    }
}

static void post_send(struct echo_conn *c, const struct verbs_send_wr *wr)
{
    bool posted = verbs_post_send(c->echo->config.verbs, c->qpn, wr);

    ASSERT(posted); /* the send queue has room: see SQ_DEPTH */
}

static void post_transfer(struct echo_conn *c, enum verbs_wr_opcode opcode,
                          const struct ping_info *info)
{
    const struct verbs_send_wr wr = {
        .opcode = opcode,
        .signaled = true,
        .num_sge = 1,
        .sge = {{c->ping, c->ping_bytes,
                 verbs_local_key(c->echo->config.verbs)}},
        .remote_addr = info->addr,
        .rkey = info->rkey,
    };

    post_send(c, &wr);
}

/* Send the go-ahead message. rping checks only its length. */
static void send_go_ahead(struct echo_conn *c)
{
    uint8_t message[PING_INFO_LEN] = {0};
    const struct verbs_send_wr wr = {
        .opcode = VERBS_WR_SEND,
        .inline_data = true,
        .num_sge = 1,
        .sge = {{message, sizeof(message), 0}},
    };

    post_send(c, &wr);
}

static void take_info(struct echo_conn *c, const struct ping_info *info)
{
    switch ((enum echo_phase)c->phase) {
    case ECHO_SOURCE:
        if (!c->can_read || info->size_bytes == 0 ||
            info->size_bytes > ECHO_PING_MAX) {
            break;
        }
        c->ping_bytes = info->size_bytes;
        c->phase = ECHO_READING;
        post_transfer(c, VERBS_WR_READ, info);
        return;
    case ECHO_SINK:
        if (info->size_bytes < c->ping_bytes) {
            break;
        }
        c->phase = ECHO_WRITING;
        post_transfer(c, VERBS_WR_WRITE, info);
        return;
    case ECHO_READING:
    case ECHO_WRITING:
        break; /* no message was expected */
    }
    c->echo->counters.bad++;
    end_conn(c);
}

static void transfer_done(struct echo_conn *c)
{
    struct echo_counters *counters = &c->echo->counters;

    if (c->phase == ECHO_READING) {
        c->phase = ECHO_SINK;
    } else {
        c->phase = ECHO_SOURCE;
        counters->pings++;
        counters->ping_bytes += c->ping_bytes;
    }
    send_go_ahead(c);
}

static void message_received(struct echo_conn *c, uint8_t buffer,
                             uint32_t len_bytes)
{
    struct ping_info info;

    c->echo->counters.messages++;
    c->conn->ops->data_received(c->conn);
    if (ping_info_parse(&info, buffer_of(c, buffer), len_bytes)) {
        take_info(c, &info);
    }
    give_buffer(c, buffer);
}

static void take_completion(void *ctx, const struct verbs_wc *wc)
{
    struct echo_conn *c = ctx;

    if (wc->status != VERBS_WC_SUCCESS) {
        fail_conn(c);
        return;
    }
    if (c->state != ECHO_OPEN) {
        return; /* the connection is being removed, with its buffers */
    }
    c->heard_us = c->echo->now_us;
    switch (wc->opcode) {
    case VERBS_WC_RECV:
        message_received(c, (uint8_t)wc->wr_id, wc->len_bytes);
        break;
    case VERBS_WC_READ:
    case VERBS_WC_WRITE:
        transfer_done(c);
        break;
    case VERBS_WC_SEND:
    case VERBS_WC_LOCAL_INV:
        break;
    }
}

static void take_event(void *ctx, const struct verbs_event *event)
{
    struct echo_conn *c = ctx;

    switch (event->type) {
    case VERBS_EVENT_QP_FATAL:
        c->echo->counters.failed++;
        fail_conn(c);
        break;
    case VERBS_EVENT_QP_ESTABLISHED:
        c->conn->ops->data_received(c->conn);
        break;
    case VERBS_EVENT_QP_DRAINED:
        break;
    }
}

static const struct verbs_qp_ops qp_ops = {take_completion, take_event, NULL};

/* ---- Begin and end of a connection. */

/* Remove the connection from the RNIC and from the connection manager. */
static void take_down(struct echo_conn *c)
{
    verbs_destroy_qp(c->echo->config.verbs, c->qpn);
    give_keys(c);
    c->conn->ops->disconnect(c->conn);
    c->conn = NULL;
    c->state = ECHO_FREE;
}

static bool make_qp(struct echo_conn *c, enum verbs_qp_type type,
                    uint8_t max_dest_rd_atomic)
{
    struct verbs *verbs = c->echo->config.verbs;
    const struct verbs_qp_config config = {
        .type = type,
        .sq_depth = SQ_DEPTH,
        .rq_depth = ECHO_BUFFERS,
        .ops = &qp_ops,
        .ctx = c,
    };
    const struct verbs_qp_attr attr = {.access = READ_WRITE};

    if (!verbs_create_qp(verbs, &config, &c->qpn)) {
        return false;
    }
    if (!verbs_modify_qp(verbs, c->qpn, VERBS_QPS_INIT, &attr)) {
        verbs_destroy_qp(verbs, c->qpn);
        return false;
    }
    for (uint8_t i = 0; i < c->buffers; i++) {
        post_buffer(c, i);
    }
    if (!c->conn->ops->start_qp(c->conn, c->qpn, READ_WRITE,
                                max_dest_rd_atomic)) {
        verbs_destroy_qp(verbs, c->qpn);
        return false;
    }
    return true;
}

static struct echo_conn *conn_find_free(struct echo *echo)
{
    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        if (echo->conns[i].state == ECHO_FREE) {
            return &echo->conns[i];
        }
    }
    return NULL;
}

static bool bring_up(struct echo_conn *c, struct rdma_cm_conn *conn,
                     enum verbs_qp_type type, const struct echo_req *req,
                     const struct rdma_cm_request *request)
{
    uint8_t max_dest_rd_atomic = (uint8_t)MIN(
        (unsigned int)ECHO_MAX_DEST_RD_ATOMIC, request->max_dest_rd_atomic);

    c->conn = conn;
    c->phase = ECHO_SOURCE;
    c->can_read = request->max_rd_atomic != 0;
    c->buffers = req->buffers != 0 ? req->buffers : (uint8_t)ECHO_BUFFERS;
    c->hold_ms = req->hold_ms;
    c->held_first = 0;
    c->held_count = 0;
    c->heard_us = c->echo->now_us;
    /* Do not reveal what an earlier peer left in this memory. */
    memset(c->region, 0, ECHO_REGION_LEN + ECHO_BUFFERS * ECHO_BUFFER_LEN);
    if (!take_keys(c)) {
        return false;
    }
    if (!make_qp(c, type, max_dest_rd_atomic)) {
        give_keys(c);
        return false;
    }
    return true;
}

static void accept_conn(struct echo_conn *c)
{
    const struct echo_rep rep = {
        .addr = hal_dma_addr(c->region),
        .rkey = c->key,
        .size_bytes = ECHO_REGION_LEN,
        .read_addr = hal_dma_addr(c->region),
        .read_rkey = c->read_key,
        .read_size_bytes = readable_len(c),
        .write_rkey = c->write_key,
        .buffers = c->buffers,
        .buffer_size_bytes = ECHO_BUFFER_LEN,
    };
    uint8_t private_data[ECHO_REP_LEN];

    echo_rep_emit(&rep, private_data);
    c->conn->ops->accept(c->conn, c->qpn, private_data, sizeof(private_data));
}

static void conn_requested(void *ctx, struct rdma_cm_conn *conn,
                           const struct rdma_cm_request *request)
{
    const struct echo_listener *listener = ctx;
    struct echo *echo = listener->echo;
    struct echo_conn *c = conn_find_free(echo);
    struct echo_req req;

    if (!echo->is_on) {
        conn->ops->reject(conn, RDMA_CM_REJECT_NO_SERVICE, NULL, 0);
        return;
    }
    if (!echo_req_parse(&req, request->private_data, request->private_len)) {
        req = (struct echo_req){0};
    }
    if (req.buffers > ECHO_BUFFERS) {
        echo->counters.refused++;
        conn->ops->reject(conn, RDMA_CM_REJECT_USER, NULL, 0);
        return;
    }
    if (c == NULL || !bring_up(c, conn, listener->qp_type, &req, request)) {
        echo->counters.refused++;
        conn->ops->reject(conn, RDMA_CM_REJECT_NO_RESOURCES, NULL, 0);
        return;
    }
    c->state = ECHO_OPEN;
    echo->counters.connections++;
    conn->ctx = c;
    accept_conn(c);
}

static void conn_disconnected(void *ctx, struct rdma_cm_conn *conn)
{
    (void)conn;
    fail_conn(ctx);
}

static const struct rdma_cm_events conn_events = {
    .request = conn_requested,
    .disconnected = conn_disconnected,
};

void echo_init(struct echo *echo, const struct echo_config *config)
{
    *echo = (struct echo){.config = *config};
    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        uint8_t *memory = (uint8_t *)config->memory + (size_t)i * ECHO_CONN_LEN;

        echo->conns[i] = (struct echo_conn){
            .echo = echo,
            .key = VERBS_NO_MR,
            .read_key = VERBS_NO_MR,
            .write_key = VERBS_NO_MR,
            .ping = memory,
            .region = memory + ECHO_PING_MAX,
        };
    }
}

/* Take requests from a manager, if there is one. */
static bool listen_at(struct echo *echo, unsigned int i,
                      const struct rdma_cm *cm, enum verbs_qp_type type)
{
    echo->listeners[i] = (struct echo_listener){echo, type};
    return cm->ops == NULL ||
           cm->ops->listen(cm->cm, ECHO_SERVICE_PORT, &conn_events,
                           &echo->listeners[i]);
}

bool echo_switch(struct echo *echo, bool is_on)
{
    if (is_on && !echo->is_listening) {
        if (!listen_at(echo, 0, &echo->config.cm, VERBS_QP_RC) ||
            !listen_at(echo, 1, &echo->config.iwarp_cm, VERBS_QP_IW)) {
            return false;
        }
        echo->is_listening = true;
    }
    echo->is_on = is_on;
    for (unsigned int i = 0; !is_on && i < ECHO_CONNS; i++) {
        end_conn(&echo->conns[i]);
    }
    return true;
}

/* ---- Running. */

static bool step_conn(struct echo_conn *c, uint64_t *deadline_us)
{
    switch ((enum echo_state)c->state) {
    case ECHO_ENDING:
    case ECHO_FAILED:
        take_down(c);
        return true;
    case ECHO_OPEN:
        break;
    case ECHO_FREE:
        return false;
    }
    if (c->echo->now_us - c->heard_us >= ECHO_IDLE_US) {
        c->echo->counters.timeouts++;
        end_conn(c);
        return step_conn(c, deadline_us);
    }
    post_due_buffers(c);
    *deadline_us = MIN(*deadline_us, c->heard_us + ECHO_IDLE_US);
    if (c->held_count != 0) {
        *deadline_us = MIN(*deadline_us, c->held[c->held_first].due_us);
    }
    return false;
}

bool echo_step(struct echo *echo, uint64_t *deadline_us)
{
    bool is_busy = false;

    *deadline_us = ECHO_NO_DEADLINE;
    if (!echo->is_listening) {
        return false; /* it was never on: there are no connections */
    }
    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        is_busy |= step_conn(&echo->conns[i], deadline_us);
    }
    return is_busy;
}

bool echo_awaits_write(const struct echo *echo)
{
    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        if (echo->conns[i].state == ECHO_OPEN &&
            echo->conns[i].phase == ECHO_WRITING) {
            return true;
        }
    }
    return false;
}

unsigned int echo_conns_used(const struct echo *echo)
{
    unsigned int used = 0;

    for (unsigned int i = 0; i < ECHO_CONNS; i++) {
        used += echo->conns[i].state != ECHO_FREE;
    }
    return used;
}
