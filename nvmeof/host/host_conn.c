/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection management of a host's queues: open, disconnect, drop. */
#include "nvmeof/host/host.h"

#include "net/wire/rdma_ip_cm.h"

enum {
    ACK_TIMEOUT = 14, /* 67 ms */
    RETRIES = 7,
    RNR_RETRIES = 7, /* the code for "without limit" */
};

static void take_reply(void *ctx, struct cm_conn *cm,
                       const uint8_t *private_data, size_t private_len)
{
    struct host_conn *conn = ctx;
    struct host_queue *queue = &conn->queue;
    struct verbs_qp_attr attr;

    cm_qp_attr(cm, &attr);
    attr.access = VERBS_ACCESS_REMOTE_READ | VERBS_ACCESS_REMOTE_WRITE;
    if (!nvme_rdma_rep_parse(&conn->crqsize, private_data, private_len) ||
        !verbs_modify_qp(queue->verbs, queue->qpn, VERBS_QPS_RTR, &attr) ||
        !verbs_modify_qp(queue->verbs, queue->qpn, VERBS_QPS_RTS, &attr)) {
        cm_reject(cm, CM_REJ_CONSUMER, NULL, 0);
        conn->cm = NULL;
        conn->state = HOST_CONN_REFUSED;
        return;
    }
    cm_confirm(cm);
    conn->state = HOST_CONN_LIVE;
}

static void take_disconnect(void *ctx, struct cm_conn *cm,
                            const struct cm_end *end)
{
    struct host_conn *conn = ctx;

    (void)cm;
    if (conn->state == HOST_CONN_CONNECTING) {
        conn->state = HOST_CONN_REFUSED;
        conn->reject_reason = end->rej_reason;
        if (end->reason == CM_END_REJ && end->rej_reason == CM_REJ_CONSUMER &&
            !nvme_rdma_rej_parse(&conn->reject_status, end->private_data,
                                 end->private_len)) {
            conn->reject_status = 0;
        }
        return;
    }
    conn->state = HOST_CONN_ENDED;
    conn->queue.is_failed = true;
}

static const struct cm_ops conn_ops = {
    .replied = take_reply,
    .disconnected = take_disconnect,
};

static bool is_decided(void *ctx)
{
    const struct host_conn *conn = ctx;

    return conn->state != HOST_CONN_CONNECTING;
}

static void close_conn(struct host_conn *conn)
{
    host_queue_close(&conn->queue);
    if (conn->cm != NULL) {
        cm_release(conn->cm);
        conn->cm = NULL;
    }
}

static bool start_queue(struct nvme_host *host, struct host_conn *conn,
                        const struct nvme_rdma_req *req)
{
    uint8_t private_data[NVME_RDMA_REQ_LEN];
    struct cm_connect_param param = {
        .service_id = rdma_ip_cm_service_id(host->target.service_port),
        .local_ip = host->target.local_ip,
        .peer_ip = host->target.peer_ip,
        .local_port = (uint16_t)(0xc000 + req->qid),
        .path = host->target.path,
        .qpn = conn->queue.qpn,
        .ack_timeout = host->target.ack_timeout != 0 ? host->target.ack_timeout
                                                     : (uint8_t)ACK_TIMEOUT,
        .retry_count = RETRIES,
        .rnr_retry_count = RNR_RETRIES,
        .private_data = private_data,
        .private_len = sizeof(private_data),
        .ops = &conn_ops,
        .ctx = conn,
    };
    struct verbs_qp_attr attr = {
        .access = VERBS_ACCESS_REMOTE_READ | VERBS_ACCESS_REMOTE_WRITE,
    };

    if (!verbs_modify_qp(host->config.verbs, conn->queue.qpn, VERBS_QPS_INIT,
                         &attr)) {
        return false;
    }
    host_queue_post_responses(&conn->queue);
    nvme_rdma_req_emit(private_data, req);
    conn->cm = cm_connect(host->config.cm, &param);
    return conn->cm != NULL;
}

bool host_open_queue(struct nvme_host *host, uint16_t qid,
                     const struct nvme_rdma_req *req)
{
    struct host_conn *conn = &host->conn[qid];
    uint8_t *dram = (uint8_t *)host->config.dram + HOST_ADMIN_DATA_LEN +
                    (size_t)qid * HOST_QUEUE_BYTES;

    *conn = (struct host_conn){.host = host, .state = HOST_CONN_CONNECTING};
    if (!host_queue_init(
            &conn->queue, host->config.verbs, qid,
            MIN((uint16_t)(req->hsqsize + 1), (uint16_t)NVMF_MAX_DEPTH),
            dram)) {
        conn->state = HOST_CONN_NONE;
        return false;
    }
    if (start_queue(host, conn, req)) {
        verbs_flush(host->config.verbs);
        if (host->config.run(host->config.run_ctx, is_decided, conn,
                             HOST_CONNECT_TIMEOUT_US) &&
            conn->state == HOST_CONN_LIVE) {
            return true;
        }
    }
    close_conn(conn);
    if (conn->state == HOST_CONN_CONNECTING) {
        conn->state = HOST_CONN_REFUSED;
    }
    return false;
}

static bool all_ended(void *ctx)
{
    const struct nvme_host *host = ctx;

    for (unsigned int i = 0; i <= HOST_MAX_IO_QUEUES; i++) {
        if (host->conn[i].state == HOST_CONN_DISCONNECTING) {
            return false;
        }
    }
    return true;
}

void host_disconnect(struct nvme_host *host)
{
    /* Disconnect I/O queues before the admin queue, as hosts do. */
    for (unsigned int i = HOST_MAX_IO_QUEUES + 1; i-- > 0;) {
        struct host_conn *conn = &host->conn[i];

        if (conn->state == HOST_CONN_LIVE) {
            conn->state = HOST_CONN_DISCONNECTING;
            cm_disconnect(conn->cm);
        }
    }
    verbs_flush(host->config.verbs);
    if (!host->config.run(host->config.run_ctx, all_ended, host,
                          HOST_CONNECT_TIMEOUT_US)) {
        /* The peer did not answer for a minute; drop the connections anyway. */
    }
    host_vanish(host);
}

void host_vanish(struct nvme_host *host)
{
    for (unsigned int i = 0; i <= HOST_MAX_IO_QUEUES; i++) {
        struct host_conn *conn = &host->conn[i];

        if (conn->state != HOST_CONN_NONE) {
            close_conn(conn);
            conn->state = HOST_CONN_NONE;
        }
    }
}

void host_fall_silent(struct nvme_host *host)
{
    for (unsigned int i = 0; i <= HOST_MAX_IO_QUEUES; i++) {
        if (host->conn[i].state != HOST_CONN_NONE) {
            host_queue_close(&host->conn[i].queue);
        }
    }
}
