/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection manager: sent messages, from a bounded pool of buffers.
 *
 * Functions that send REQ, REP or DREQ return whether there was a buffer,
 * because the caller has a timer for retries.  The other messages are answers:
 * without a buffer they are dropped, and the peer sends its message again.
 * Spec: IBTA Vol 1 section 12.6.
 */
#include "net/cm/cm_internal.h"

static uint8_t *buffer_at(struct cm *cm, uint16_t buffer)
{
    return cm->config.memory + (size_t)buffer * MAD_LEN;
}

void cm_send_init(struct cm *cm)
{
    cm->send_free_count = 0;
    for (uint16_t i = 0; i < CM_SEND_BUFFERS; i++) {
        cm->send_neigh[i] = CM_NONE;
        cm->send_free[cm->send_free_count++] = i;
    }
}

void cm_send_done(struct cm *cm, uint16_t buffer)
{
    ASSERT(cm->send_neigh[buffer] != CM_NONE);
    cm->config.path_ops->unpin(cm->config.path_ctx, cm->send_neigh[buffer]);
    cm->send_neigh[buffer] = CM_NONE;
    cm->send_free[cm->send_free_count++] = buffer;
}

void cm_send_reset(struct cm *cm)
{
    for (uint16_t i = 0; i < CM_SEND_BUFFERS; i++) {
        if (cm->send_neigh[i] != CM_NONE) {
            cm_send_done(cm, i);
        }
    }
}

uint64_t cm_new_tid(struct cm *cm)
{
    return (uint64_t)cm->config.generation << 32 | ++cm->tid_count;
}

/* Take a buffer and write its MAD header. @return the message part, or NULL */
static uint8_t *build_message(struct cm *cm, enum cm_attribute attribute,
                              uint64_t tid)
{
    const struct mad mad = {
        .mgmt_class = MAD_CLASS_CM,
        .class_version = MAD_CLASS_VERSION_CM,
        .method = MAD_METHOD_SEND,
        .attribute_id = (uint16_t)attribute,
        .transaction_id = tid,
    };
    uint8_t *buf;

    if (cm->send_free_count == 0 || cm->qp != CM_QP_LIVE ||
        verbs_send_room(cm->config.verbs, GSI_QPN) == 0) {
        cm->counters.no_buffer++;
        return NULL;
    }
    cm->counters.sent[attribute - CM_REQ]++;
    buf = buffer_at(cm, cm->send_free[cm->send_free_count - 1]);
    mad_emit(&mad, buf);
    return buf + MAD_HEADER_LEN;
}

/* Post the message that build_message() has begun. */
static void post_mad(struct cm *cm, const struct cm_path *path)
{
    uint16_t buffer = cm->send_free[--cm->send_free_count];
    const struct verbs_send_wr wr = {
        .wr_id = buffer,
        .opcode = VERBS_WR_SEND,
        .signaled = true,
        .num_sge = 1,
        .sge = {{
            .addr = buffer_at(cm, buffer),
            .len_bytes = MAD_LEN,
            .lkey = verbs_local_key(cm->config.verbs),
        }},
        .ud =
            {
                .neigh = path->neigh,
                .laddr = path->laddr,
                .is_v1 = path->is_v1,
                .priority = path->priority,
                .dscp = path->dscp,
                .dest_qpn = GSI_QPN,
                .qkey = GSI_QKEY,
            },
    };
    bool posted;

    if (trace_is_on(cm->config.trace, TRACE_GROUP_CM)) {
        cm_observe(cm, TRACE_CM_SENT, buffer_at(cm, buffer), NULL);
    }
    cm->config.path_ops->pin(cm->config.path_ctx, path->neigh);
    cm->send_neigh[buffer] = path->neigh;
    posted = verbs_post_send(cm->config.verbs, GSI_QPN, &wr);
    ASSERT(posted); /* build_message() has checked for room */
}

static struct cm_path path_of(const struct cm_conn *conn)
{
    return (struct cm_path){
        .neigh = conn->neigh,
        .laddr = conn->laddr,
        .is_v1 = conn->is_v1,
        .priority = conn->priority,
        .dscp = conn->traffic_class >> 2,
    };
}

static void post_to_peer(const struct cm_conn *conn)
{
    struct cm_path path = path_of(conn);

    post_mad(conn->cm, &path);
}

struct cm_answer cm_conn_answer(const struct cm_conn *conn)
{
    return (struct cm_answer){
        .path = path_of(conn),
        .tid = conn->tid,
        .local_comm_id = conn->local_comm_id,
        .remote_comm_id = conn->remote_comm_id,
    };
}

bool cm_send_req(struct cm_conn *conn)
{
    struct cm *cm = conn->cm;
    uint8_t *msg = build_message(cm, CM_REQ, conn->tid);
    uint8_t data[RDMA_IP_CM_LEN + CM_PRIVATE_MAX];
    const struct rdma_ip_cm ip_cm = {
        .src = conn->local_ip,
        .dst = conn->peer_ip,
        .src_port = conn->local_port,
    };
    const struct cm_req req = {
        .service_id = conn->service_id,
        .local_ca_guid = cm->config.ca_guid,
        .local_comm_id = conn->local_comm_id,
        .local_qpn = conn->local_qpn,
        .starting_psn = conn->local_psn,
        .pkey = 0xffff,
        .local_lid = 0xffff, /* RoCE has no LIDs */
        .remote_lid = 0xffff,
        .local_gid = conn->local_ip,
        .remote_gid = conn->peer_ip,
        .responder_resources = cm->config.responder_resources,
        .initiator_depth = cm->config.initiator_depth,
        .remote_cm_timeout = cm->config.response_timeout,
        .transport_service_type = CM_TRANSPORT_RC,
        .local_cm_timeout = cm->config.response_timeout,
        .retry_count = conn->retry_count,
        .rnr_retry_count = conn->rnr_retry_count,
        .max_cm_retries = conn->max_retries,
        .path_mtu = conn->path_mtu,
        .packet_rate = 15, /* 25 Gb/s: IBTA table 153 */
        .traffic_class = conn->traffic_class,
        .hop_limit = CM_HOP_LIMIT,
        .sl = conn->priority,
        .local_ack_timeout = conn->ack_timeout,
        .end_to_end_flow_control = true,
        .private_data = data,
        .private_len = RDMA_IP_CM_LEN + (size_t)conn->private_len,
    };

    if (msg == NULL) {
        return false;
    }
    rdma_ip_cm_emit(&ip_cm, data);
    memcpy(data + RDMA_IP_CM_LEN, conn->private_data, conn->private_len);
    cm_req_emit(&req, msg);
    post_to_peer(conn);
    return true;
}

bool cm_send_rep(struct cm_conn *conn)
{
    struct cm *cm = conn->cm;
    uint8_t *msg = build_message(cm, CM_REP, conn->tid);
    const struct cm_rep rep = {
        .local_ca_guid = cm->config.ca_guid,
        .local_comm_id = conn->local_comm_id,
        .remote_comm_id = conn->remote_comm_id,
        .local_qpn = conn->local_qpn,
        .starting_psn = conn->local_psn,
        .responder_resources = conn->max_dest_rd_atomic,
        .initiator_depth = conn->max_rd_atomic,
        .target_ack_delay = CM_ACK_DELAY,
        .failover_accepted = 1, /* 1: alternate paths are not supported */
        .rnr_retry_count = CM_RNR_RETRY,
        .end_to_end_flow_control = true,
        .private_data = conn->private_data,
        .private_len = conn->private_len,
    };

    if (msg == NULL) {
        return false;
    }
    cm_rep_emit(&rep, msg);
    post_to_peer(conn);
    return true;
}

bool cm_send_dreq(struct cm_conn *conn)
{
    struct cm *cm = conn->cm;
    uint8_t *msg = build_message(cm, CM_DREQ, conn->tid);
    const struct cm_dreq dreq = {
        .local_comm_id = conn->local_comm_id,
        .remote_comm_id = conn->remote_comm_id,
        .remote_qpn = conn->remote_qpn,
    };

    if (msg == NULL) {
        return false;
    }
    cm_dreq_emit(&dreq, msg);
    post_to_peer(conn);
    return true;
}

void cm_send_rtu(struct cm_conn *conn)
{
    struct cm *cm = conn->cm;
    uint8_t *msg = build_message(cm, CM_RTU, conn->tid);
    const struct cm_rtu rtu = {
        .local_comm_id = conn->local_comm_id,
        .remote_comm_id = conn->remote_comm_id,
    };

    if (msg != NULL) {
        cm_rtu_emit(&rtu, msg);
        post_to_peer(conn);
    }
}

void cm_send_mra(const struct cm_conn *conn, enum cm_answered answered)
{
    struct cm *cm = conn->cm;
    uint8_t *msg = build_message(cm, CM_MRA, conn->tid);
    const struct cm_mra mra = {
        .local_comm_id = conn->local_comm_id,
        .remote_comm_id = conn->remote_comm_id,
        .message = (uint8_t)answered,
        .service_timeout = CM_SERVICE_TIMEOUT,
    };

    if (msg != NULL) {
        cm_mra_emit(&mra, msg);
        post_to_peer(conn);
    }
}

void cm_send_drep(struct cm *cm, const struct cm_answer *answer)
{
    uint8_t *msg = build_message(cm, CM_DREP, answer->tid);
    const struct cm_drep drep = {
        .local_comm_id = answer->local_comm_id,
        .remote_comm_id = answer->remote_comm_id,
    };

    if (msg != NULL) {
        cm_drep_emit(&drep, msg);
        post_mad(cm, &answer->path);
    }
}

void cm_send_rej(struct cm *cm, const struct cm_answer *answer,
                 enum cm_answered answered, uint16_t reason, const void *ari,
                 size_t ari_len, const void *private_data, size_t len)
{
    uint8_t *msg = build_message(cm, CM_REJ, answer->tid);
    const struct cm_rej rej = {
        .local_comm_id = answer->local_comm_id,
        .remote_comm_id = answer->remote_comm_id,
        .reason = reason,
        .message = (uint8_t)answered,
        .ari = ari,
        .ari_len = ari_len,
        .private_data = private_data,
        .private_len = len,
    };

    if (msg != NULL) {
        cm_rej_emit(&rej, msg);
        post_mad(cm, &answer->path);
    }
}

void cm_send_rej_timeout(struct cm_conn *conn, enum cm_answered answered)
{
    struct cm_answer answer = cm_conn_answer(conn);
    uint8_t guid[8];

    /* The peer may know only our GUID and communication id. */
    put_be64(guid, conn->cm->config.ca_guid);
    cm_send_rej(conn->cm, &answer, answered, CM_REJ_TIMEOUT, guid, sizeof(guid),
                NULL, 0);
}
