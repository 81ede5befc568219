/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/cm/cm_rdma.h"

#include <string.h>

#include "net/wire/rdma_ip_cm.h"

_Static_assert((int)RDMA_CM_PRIVATE_MAX == (int)CM_PRIVATE_MAX,
               "the seam promises what the messages carry");

static struct cm_conn *conn_of(struct rdma_cm_conn *handle)
{
    return container_of(handle, struct cm_conn, handle);
}

static bool start_qp(struct rdma_cm_conn *handle, uint32_t qpn,
                     unsigned int access, uint8_t max_dest_rd_atomic)
{
    struct cm_conn *conn = conn_of(handle);
    struct verbs *verbs = conn->cm->config.verbs;
    struct verbs_qp_attr attr;

    cm_serve_reads(conn, max_dest_rd_atomic);
    cm_qp_attr(conn, &attr);
    attr.access = (uint8_t)access;
    return verbs_modify_qp(verbs, qpn, VERBS_QPS_RTR, &attr) &&
           verbs_modify_qp(verbs, qpn, VERBS_QPS_RTS, &attr);
}

static void accept_conn(struct rdma_cm_conn *handle, uint32_t qpn,
                        const void *private_data, size_t len)
{
    cm_accept(conn_of(handle), qpn, private_data, len);
}

static void reject_conn(struct rdma_cm_conn *handle, enum rdma_cm_reject reason,
                        const void *private_data, size_t len)
{
    static const uint16_t reasons[] = {
        [RDMA_CM_REJECT_USER] = CM_REJ_CONSUMER,
        [RDMA_CM_REJECT_NO_SERVICE] = CM_REJ_INVALID_SERVICE_ID,
        [RDMA_CM_REJECT_NO_RESOURCES] = CM_REJ_NO_RESOURCES,
    };

    cm_reject(conn_of(handle), reasons[reason], private_data, len);
}

static void disconnect_conn(struct rdma_cm_conn *handle)
{
    cm_release(conn_of(handle));
}

static void data_received(struct rdma_cm_conn *handle)
{
    cm_data_received(conn_of(handle));
}

static void data_acknowledged(struct rdma_cm_conn *handle)
{
    cm_data_acknowledged(conn_of(handle));
}

/* ---- Events: ctx is the struct cm_rdma_listener of the service. */

static void on_established(void *ctx, struct cm_conn *conn)
{
    struct rdma_cm_conn *handle = &conn->handle;

    (void)ctx;
    if (handle->events->established != NULL) {
        handle->events->established(handle->ctx, handle);
    }
}

static void on_disconnected(void *ctx, struct cm_conn *conn,
                            const struct cm_end *end)
{
    struct rdma_cm_conn *handle = &conn->handle;

    (void)ctx;
    (void)end;
    handle->events->disconnected(handle->ctx, handle);
}

static void on_request(void *ctx, struct cm_conn *conn,
                       const struct cm_request *request)
{
    const struct cm_rdma_listener *listener = ctx;
    struct rdma_cm_request neutral = {
        .laddr = request->laddr,
        .max_rd_atomic = request->responder_resources,
        .max_dest_rd_atomic = request->initiator_depth,
        .private_data = request->private_data,
        .private_len = request->private_len,
    };

    memcpy(neutral.peer.bytes, request->peer_ip.bytes,
           sizeof(neutral.peer.bytes));
    conn->handle = (struct rdma_cm_conn){
        .ops = conn->cm->rdma_ops,
        .events = listener->events,
        .ctx = listener->ctx,
    };
    listener->events->request(listener->ctx, &conn->handle, &neutral);
}

/* Users of the seam never connect, so there is no `replied`. */
static const struct cm_ops conn_ops = {
    .request = on_request,
    .established = on_established,
    .disconnected = on_disconnected,
};

static bool listen_on_port(void *cm_ctx, uint16_t port,
                           const struct rdma_cm_events *events, void *ctx)
{
    struct cm *cm = cm_ctx;

    for (unsigned int i = 0; i < CM_LISTENERS; i++) {
        struct cm_rdma_listener *listener = &cm->rdma_listeners[i];

        if (listener->events == NULL) {
            *listener = (struct cm_rdma_listener){events, ctx};
            if (cm_listen(cm, rdma_ip_cm_service_id(port), &conn_ops,
                          listener)) {
                return true;
            }
            listener->events = NULL;
            return false;
        }
    }
    return false;
}

static const struct rdma_cm_ops rdma_ops = {
    .listen = listen_on_port,
    .start_qp = start_qp,
    .accept = accept_conn,
    .reject = reject_conn,
    .disconnect = disconnect_conn,
    .data_received = data_received,
    .data_acknowledged = data_acknowledged,
};

struct rdma_cm cm_rdma(struct cm *cm)
{
    cm->rdma_ops = &rdma_ops;
    return (struct rdma_cm){.ops = &rdma_ops, .cm = cm};
}
