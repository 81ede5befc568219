/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection manager: received messages.
 * Spec: IBTA Vol 1 sections 12.9.7 (passive), 12.9.6 (active), 12.9.8
 * (special cases: duplicates, stale connections).
 *
 * A message is parsed, its connection is looked up, and a table gives the
 * action for each message in each state of the connection.
 */
#include "net/cm/cm_internal.h"

/* ---- The action for each message and state. */

enum event {
    EVENT_REQ_AGAIN, /* the connection's own REQ, repeated */
    EVENT_REP,
    EVENT_RTU,
    EVENT_MRA,
    EVENT_REJ,
    EVENT_DREQ,
    EVENT_DREP,
    EVENTS,
};

enum action {
    DROP = 0,     /* late, early or forged message; counted */
    IGNORE,       /* a duplicate that needs no answer */
    ASK_PATIENCE, /* send MRA: our user has not decided yet */
    REP_AGAIN,
    RTU_AGAIN,
    REFUSE_STALE, /* send REJ 10: the connection has ended */
    TAKE_REP,
    ESTABLISH,
    WAIT_LONGER,
    END,
    END_AND_AGREE, /* end the connection and send DREP */
    AGREE,         /* send DREP */
};

static const uint8_t actions[EVENTS][CM_CONN_STATES] = {
    [EVENT_REQ_AGAIN] =
        {
            [CM_CONN_REQ_RCVD] = ASK_PATIENCE,
            [CM_CONN_REP_SENT] = REP_AGAIN,
            [CM_CONN_ESTABLISHED] = IGNORE,
            [CM_CONN_DREQ_SENT] = REFUSE_STALE,
            [CM_CONN_TIMEWAIT] = REFUSE_STALE,
        },
    [EVENT_REP] =
        {
            [CM_CONN_REQ_SENT] = TAKE_REP,
            [CM_CONN_REP_RCVD] = ASK_PATIENCE,
            [CM_CONN_ESTABLISHED] = RTU_AGAIN,
        },
    [EVENT_RTU] =
        {
            [CM_CONN_REP_SENT] = ESTABLISH,
            [CM_CONN_ESTABLISHED] = IGNORE,
        },
    [EVENT_MRA] =
        {
            [CM_CONN_REQ_SENT] = WAIT_LONGER,
            [CM_CONN_REP_SENT] = WAIT_LONGER,
        },
    [EVENT_REJ] =
        {
            [CM_CONN_REQ_SENT] = END,
            [CM_CONN_REP_RCVD] = END,
            [CM_CONN_REQ_RCVD] = END,
            [CM_CONN_REP_SENT] = END,
            [CM_CONN_ESTABLISHED] = END,
            [CM_CONN_DREQ_SENT] = END,
            [CM_CONN_TIMEWAIT] = IGNORE,
        },
    [EVENT_DREQ] =
        {
            [CM_CONN_REP_RCVD] = END_AND_AGREE,
            [CM_CONN_REP_SENT] = END_AND_AGREE,
            [CM_CONN_ESTABLISHED] = END_AND_AGREE,
            [CM_CONN_DREQ_SENT] = END_AND_AGREE,
            [CM_CONN_TIMEWAIT] = AGREE,
        },
    [EVENT_DREP] =
        {
            [CM_CONN_DREQ_SENT] = END,
            [CM_CONN_TIMEWAIT] = IGNORE,
        },
};

/* ---- Begin and end of connections; timers use these too. */

void cm_conn_end(struct cm_conn *conn, const struct cm_end *end)
{
    bool is_known = conn->in_by_id; /* its peer has answered before */
    uint64_t rest_us = ib_time_us((uint8_t)MIN(conn->ack_timeout + 1, 20));

    cm_conn_enter(conn, CM_CONN_TIMEWAIT);
    if (is_known) {
        cm_timer_set(conn, conn->cm->now_us + rest_us);
    }
    if (!conn->is_released && conn->ops->disconnected != NULL) {
        conn->ops->disconnected(conn->ctx, conn, end);
    }
}

void cm_conn_establish(struct cm_conn *conn)
{
    cm_conn_enter(conn, CM_CONN_ESTABLISHED);
    cm_data_acknowledged(conn); /* an RTU or data answers our REP */
    if (conn->ops->established != NULL) {
        conn->ops->established(conn->ctx, conn);
    }
}

/* ---- One received message */

struct message {
    struct cm *cm;
    struct mad mad;
    const uint8_t *data; /* MAD_DATA_LEN bytes */
    struct verbs_ud_info from;
    struct cm_answer answer; /* filled in as far as it is known */
};

/*
 * Find the path to the sender.  With makes_room, connections in TIMEWAIT are
 * freed if the neighbour table is full; only a REQ may do that.
 */
static bool resolve_path(struct message *m, bool makes_room)
{
    const struct cm_config *config = &m->cm->config;
    enum cm_path_result result;

    do {
        result = config->path_ops->resolve(config->path_ctx, &m->from,
                                           &m->answer.path);
    } while (result == CM_PATH_FULL && makes_room && cm_pool_forget(m->cm));
    if (result != CM_PATH_READY) {
        m->cm->counters.no_path++;
    }
    return result == CM_PATH_READY;
}

static struct ip_addr source_of(const struct message *m)
{
    return ip_addr_from_bytes(m->from.src_ip.bytes);
}

/*
 * Find the connection with both communication ids, if the message comes from
 * its peer.  The active side learns the peer's id from the REP; until then only
 * our own id is compared.
 */
static struct cm_conn *conn_of(const struct message *m, uint32_t local_comm_id,
                               uint32_t remote_comm_id)
{
    struct cm_conn *conn = cm_by_local_id(m->cm, local_comm_id);
    struct ip_addr src = source_of(m);

    if (conn == NULL || conn->laddr != m->from.laddr ||
        !ip_addr_equal(&conn->peer_ip, &src) ||
        (conn->in_by_id && conn->remote_comm_id != remote_comm_id)) {
        return NULL;
    }
    return conn;
}

/* The table's action; unexpected messages are counted. */
static enum action judge_event(struct cm *cm, const struct cm_conn *conn,
                               enum event event)
{
    enum action action =
        conn == NULL ? DROP : (enum action)actions[event][conn->state];

    if (action == DROP) {
        cm->counters.unexpected++;
    } else if (action == REP_AGAIN || action == RTU_AGAIN ||
               action == ASK_PATIENCE || action == IGNORE) {
        cm->counters.duplicates++;
    }
    return action;
}

static void send_refusal(struct message *m, uint16_t reason, const void *ari,
                         size_t ari_len)
{
    cm_send_rej(m->cm, &m->answer, CM_ANSWERS_REQ, reason, ari, ari_len, NULL,
                0);
}

/* ---- REQ */

static const struct cm_listener *listener_of(const struct cm *cm,
                                             uint64_t service_id)
{
    for (unsigned int i = 0; i < CM_LISTENERS; i++) {
        if (cm->listeners[i].ops != NULL &&
            cm->listeners[i].service_id == service_id) {
            return &cm->listeners[i];
        }
    }
    return NULL;
}

/* @return the reason of the first check that a REQ fails, or 0 */
static uint16_t judge_req(const struct message *m, const struct cm_req *req,
                          const struct rdma_ip_cm *ip_cm)
{
    struct ip_addr src = source_of(m);
    struct ip_addr dst = ip_addr_from_bytes(m->from.dst_ip.bytes);

    if (listener_of(m->cm, req->service_id) == NULL) {
        return CM_REJ_INVALID_SERVICE_ID;
    }
    if (req->transport_service_type != CM_TRANSPORT_RC) {
        return CM_REJ_INVALID_TRANSPORT_TYPE;
    }
    /* With RoCE the primary path must have the datagram's addresses. */
    if (!ip_addr_equal(&req->local_gid, &src) ||
        !ip_addr_equal(&req->remote_gid, &dst)) {
        return CM_REJ_INVALID_GID;
    }
    if (req->local_qpn <= GSI_QPN || req->local_comm_id == 0 ||
        (req->pkey & 0x7fff) != 0x7fff || ip_cm == NULL) {
        return CM_REJ_UNSUPPORTED_REQUEST;
    }
    if (ib_mtu_bytes(req->path_mtu) == 0 ||
        req->path_mtu > m->answer.path.mtu) {
        return CM_REJ_INVALID_MTU;
    }
    return 0;
}

/* The ACK time-out for which a peer has asked, within the drive's own limit.
 * 0 asks the drive to wait for ever. */
static uint8_t own_ack_timeout(uint8_t asked)
{
    return asked == 0 ? (uint8_t)CM_MAX_ACK_TIMEOUT
                      : (uint8_t)MIN(asked, CM_MAX_ACK_TIMEOUT);
}

/* How long the drive waits for the peer's answer, within its own limits. */
static uint64_t own_timeout_us(uint8_t asked)
{
    return ib_time_us((uint8_t)MIN(MAX(asked, (uint8_t)CM_MIN_TIMEOUT),
                                   CM_MAX_SERVICE_TIMEOUT));
}

static void adopt_req(struct cm_conn *conn, const struct message *m,
                      const struct cm_req *req)
{
    const struct cm_config *config = &m->cm->config;

    conn->laddr = m->answer.path.laddr;
    conn->is_v1 = m->answer.path.is_v1;
    conn->priority = m->answer.path.priority;
    conn->neigh = m->answer.path.neigh;
    config->path_ops->pin(config->path_ctx, conn->neigh);
    conn->remote_ca_guid = req->local_ca_guid;
    conn->remote_comm_id = req->local_comm_id;
    conn->remote_qpn = req->local_qpn;
    conn->remote_psn = req->starting_psn;
    conn->service_id = req->service_id;
    conn->tid = m->mad.transaction_id;
    conn->local_ip = req->remote_gid;
    conn->peer_ip = req->local_gid;
    conn->path_mtu = req->path_mtu;
    conn->ack_timeout = own_ack_timeout(req->local_ack_timeout);
    conn->retry_count = req->retry_count;
    conn->rnr_retry_count = req->rnr_retry_count;
    conn->traffic_class = req->traffic_class;
    /* At least 1: with 0, some peers would refuse even the first READ. */
    conn->max_rd_atomic =
        (uint8_t)MAX(1, MIN(config->initiator_depth, req->responder_resources));
    conn->max_dest_rd_atomic =
        (uint8_t)MIN(config->responder_resources, req->initiator_depth);
    conn->max_retries = req->max_cm_retries;
    conn->timeout_us = own_timeout_us(req->local_cm_timeout);
}

static void req_again(struct message *m, struct cm_conn *conn)
{
    switch (judge_event(m->cm, conn, EVENT_REQ_AGAIN)) {
    case ASK_PATIENCE:
        cm_send_mra(conn, CM_ANSWERS_REQ);
        break;
    case REP_AGAIN:
        (void)cm_send_rep(conn); /* else the next REQ or our timer resends */
        break;
    case REFUSE_STALE:
        m->answer.local_comm_id = conn->local_comm_id;
        send_refusal(m, CM_REJ_STALE_CONNECTION, NULL, 0);
        break;
    default:
        break;
    }
}

/* The peer restarted: end the connection that it no longer knows. */
static void tear_down_stale(struct cm *cm, struct cm_conn *conn)
{
    const struct cm_end end = {.reason = CM_END_STALE};

    if (conn != NULL && conn->state != CM_CONN_TIMEWAIT) {
        cm->counters.stale++;
        cm_conn_end(conn, &end);
    }
}

static void recv_req(struct message *m)
{
    struct cm *cm = m->cm;
    const struct cm_listener *listener;
    struct rdma_ip_cm ip_cm;
    struct cm_request request;
    struct cm_conn *conn;
    struct cm_req req;
    uint16_t neigh, wrong;
    bool has_ip;

    if (!cm_req_parse(&req, m->data, MAD_DATA_LEN)) {
        cm->counters.bad_mad++;
        return;
    }
    m->answer.remote_comm_id = req.local_comm_id;
    if (!resolve_path(m, true)) {
        return;
    }
    m->answer.path.dscp = req.traffic_class >> 2;
    neigh = m->answer.path.neigh;
    conn = cm_by_remote_id(cm, req.local_ca_guid, neigh, req.local_comm_id);
    if (conn != NULL && conn->remote_qpn == req.local_qpn &&
        conn->remote_psn == req.starting_psn) {
        req_again(m, conn);
        return;
    }
    has_ip = rdma_ip_cm_parse(&ip_cm, req.private_data, req.private_len);
    wrong = judge_req(m, &req, has_ip ? &ip_cm : NULL);
    if (wrong != 0) {
        send_refusal(m, wrong, &m->answer.path.mtu,
                     wrong == CM_REJ_INVALID_MTU ? 1 : 0);
        return;
    }
    tear_down_stale(cm, conn);
    tear_down_stale(
        cm, cm_by_remote_qpn(cm, req.local_ca_guid, neigh, req.local_qpn));
    conn = cm_pool_take(cm);
    if (conn == NULL) {
        cm->counters.no_conn++;
        send_refusal(m, CM_REJ_NO_RESOURCES, NULL, 0);
        return;
    }
    listener = listener_of(cm, req.service_id);
    conn->ops = listener->ops;
    conn->ctx = listener->ctx;
    adopt_req(conn, m, &req);
    cm_conn_enter(conn, CM_CONN_REQ_RCVD);
    cm_index_remote(conn);
    request = (struct cm_request){
        .service_id = req.service_id,
        .peer_ip = req.local_gid,
        .local_ip = req.remote_gid,
        .peer_port = ip_cm.src_port,
        .laddr = conn->laddr,
        .path_mtu = conn->path_mtu,
        .responder_resources = req.responder_resources,
        .initiator_depth = req.initiator_depth,
        .peer_ca_guid = req.local_ca_guid,
        .private_data = req.private_data + RDMA_IP_CM_LEN,
        .private_len = req.private_len - RDMA_IP_CM_LEN,
    };
    conn->ops->request(conn->ctx, conn, &request);
}

/* ---- REP */

static void take_rep(struct message *m, struct cm_conn *conn,
                     const struct cm_rep *rep)
{
    struct cm *cm = m->cm;
    const struct cm_config *config = &cm->config;
    const struct cm_end end = {.reason = CM_END_STALE};

    conn->remote_comm_id = rep->local_comm_id;
    conn->tid = m->mad.transaction_id;
    if (cm_by_remote_qpn(cm, rep->local_ca_guid, conn->neigh, rep->local_qpn) !=
        NULL) {
        struct cm_answer answer = cm_conn_answer(conn);

        cm->counters.stale++;
        cm_send_rej(cm, &answer, CM_ANSWERS_REP, CM_REJ_STALE_CONNECTION, NULL,
                    0, NULL, 0);
        cm_conn_end(conn, &end);
        return;
    }
    conn->remote_ca_guid = rep->local_ca_guid;
    conn->remote_qpn = rep->local_qpn;
    conn->remote_psn = rep->starting_psn;
    conn->rnr_retry_count = rep->rnr_retry_count;
    conn->max_rd_atomic =
        (uint8_t)MAX(1, MIN(config->initiator_depth, rep->responder_resources));
    conn->max_dest_rd_atomic =
        (uint8_t)MIN(config->responder_resources, rep->initiator_depth);
    cm_conn_enter(conn, CM_CONN_REP_RCVD);
    cm_index_remote(conn);
    conn->ops->replied(conn->ctx, conn, rep->private_data, rep->private_len);
}

static void recv_rep(struct message *m)
{
    struct cm_conn *conn;
    struct cm_rep rep;

    if (!cm_rep_parse(&rep, m->data, MAD_DATA_LEN)) {
        m->cm->counters.bad_mad++;
        return;
    }
    conn = conn_of(m, rep.remote_comm_id, rep.local_comm_id);
    if (conn != NULL && !conn->is_active) {
        conn = NULL;
    }
    switch (judge_event(m->cm, conn, EVENT_REP)) {
    case TAKE_REP:
        take_rep(m, conn, &rep);
        break;
    case ASK_PATIENCE:
        cm_send_mra(conn, CM_ANSWERS_REP);
        break;
    case RTU_AGAIN:
        cm_send_rtu(conn);
        break;
    default:
        break;
    }
}

/* ---- RTU, MRA, REJ */

static void recv_rtu(struct message *m)
{
    struct cm_conn *conn;
    struct cm_rtu rtu;

    if (!cm_rtu_parse(&rtu, m->data, MAD_DATA_LEN)) {
        m->cm->counters.bad_mad++;
        return;
    }
    conn = conn_of(m, rtu.remote_comm_id, rtu.local_comm_id);
    if (judge_event(m->cm, conn, EVENT_RTU) == ESTABLISH) {
        cm_conn_establish(conn);
    }
}

static void recv_mra(struct message *m)
{
    struct cm_conn *conn;
    struct cm_mra mra;
    uint8_t expected;

    if (!cm_mra_parse(&mra, m->data, MAD_DATA_LEN)) {
        m->cm->counters.bad_mad++;
        return;
    }
    conn = conn_of(m, mra.remote_comm_id, mra.local_comm_id);
    expected =
        conn != NULL && conn->is_active ? CM_ANSWERS_REQ : CM_ANSWERS_REP;
    if (mra.message != expected) {
        conn = NULL;
    }
    if (judge_event(m->cm, conn, EVENT_MRA) == WAIT_LONGER) {
        uint8_t code =
            (uint8_t)MIN(mra.service_timeout, CM_MAX_SERVICE_TIMEOUT);
        uint64_t patient_us = m->cm->now_us + conn->timeout_us;

        conn->retries_left = conn->max_retries;
        cm_timer_set(conn,
                     MIN(patient_us + ib_time_us(code), conn->give_up_us));
    }
}

static void recv_rej(struct message *m)
{
    struct cm_conn *conn = NULL;
    struct cm_rej rej;
    struct cm_end end;

    if (!cm_rej_parse(&rej, m->data, MAD_DATA_LEN)) {
        m->cm->counters.bad_mad++;
        return;
    }
    if (rej.reason == CM_REJ_TIMEOUT && rej.ari_len >= 8 &&
        resolve_path(m, false)) {
        /* The peer never learnt our communication id: search by the peer's. */
        conn = cm_by_remote_id(m->cm, get_be64(rej.ari), m->answer.path.neigh,
                               rej.local_comm_id);
    }
    if (conn == NULL) {
        conn = conn_of(m, rej.remote_comm_id, rej.local_comm_id);
    }
    end = (struct cm_end){
        .reason = CM_END_REJ,
        .rej_reason = rej.reason,
        .private_data = rej.private_data,
        .private_len = rej.private_len,
    };
    if (judge_event(m->cm, conn, EVENT_REJ) == END) {
        cm_conn_end(conn, &end);
    }
}

/* ---- DREQ, DREP */

static void recv_dreq(struct message *m)
{
    const struct cm_end end = {.reason = CM_END_DREQ};
    struct cm_conn *conn;
    struct cm_dreq dreq;
    bool is_agreed = true;

    if (!cm_dreq_parse(&dreq, m->data, MAD_DATA_LEN)) {
        m->cm->counters.bad_mad++;
        return;
    }
    m->answer.local_comm_id = dreq.remote_comm_id;
    m->answer.remote_comm_id = dreq.local_comm_id;
    if (!resolve_path(m, false)) {
        return;
    }
    conn = conn_of(m, dreq.remote_comm_id, dreq.local_comm_id);
    if (conn != NULL && !conn->in_by_id) {
        conn = NULL;
    }
    if (conn != NULL) {
        if (conn->local_qpn != dreq.remote_qpn) {
            m->cm->counters.unexpected++;
            return;
        }
        m->answer.path.dscp = conn->traffic_class >> 2;
        switch (judge_event(m->cm, conn, EVENT_DREQ)) {
        case END_AND_AGREE:
            /* Answer first, since the callback may release the connection. */
            cm_send_drep(m->cm, &m->answer);
            cm_conn_end(conn, &end);
            return;
        case AGREE:
            break;
        default:
            is_agreed = false;
            break;
        }
    }
    if (is_agreed) {
        cm_send_drep(m->cm, &m->answer);
    }
}

static void recv_drep(struct message *m)
{
    const struct cm_end end = {.reason = CM_END_DREP};
    struct cm_conn *conn;
    struct cm_drep drep;

    if (!cm_drep_parse(&drep, m->data, MAD_DATA_LEN)) {
        m->cm->counters.bad_mad++;
        return;
    }
    conn = conn_of(m, drep.remote_comm_id, drep.local_comm_id);
    if (judge_event(m->cm, conn, EVENT_DREP) == END) {
        cm_conn_end(conn, &end);
    }
}

void cm_recv(struct cm *cm, const uint8_t *buffer, size_t len)
{
    static void (*const receivers[])(struct message *) = {
        [CM_REQ - CM_REQ] = recv_req,   [CM_MRA - CM_REQ] = recv_mra,
        [CM_REJ - CM_REQ] = recv_rej,   [CM_REP - CM_REQ] = recv_rep,
        [CM_RTU - CM_REQ] = recv_rtu,   [CM_DREQ - CM_REQ] = recv_dreq,
        [CM_DREP - CM_REQ] = recv_drep,
    };
    struct message m = {.cm = cm,
                        .data = buffer + VERBS_UD_HEADER + MAD_HEADER_LEN};
    unsigned int which;

    if (len < VERBS_UD_HEADER ||
        !mad_parse(&m.mad, buffer + VERBS_UD_HEADER, len - VERBS_UD_HEADER)) {
        cm->counters.bad_mad++;
        return;
    }
    if (m.mad.mgmt_class != MAD_CLASS_CM ||
        m.mad.class_version != MAD_CLASS_VERSION_CM ||
        m.mad.method != MAD_METHOD_SEND) {
        cm->counters.bad_class++;
        return;
    }
    which = (unsigned int)m.mad.attribute_id - CM_REQ;
    if (which >= ARRAY_LEN(receivers)) {
        cm->counters.bad_attribute++;
        return;
    }
    cm->counters.received[which]++;
    verbs_ud_info(&m.from, buffer);
    m.answer.tid = m.mad.transaction_id;
    if (trace_is_on(cm->config.trace, TRACE_GROUP_CM)) {
        cm_observe(cm, TRACE_CM_RECEIVED, buffer + VERBS_UD_HEADER,
                   m.from.src_ip.bytes);
    }
    receivers[which](&m);
}
