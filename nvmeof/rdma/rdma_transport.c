/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/rdma/rdma_state.h"

#include <string.h>

#include "nvmeof/target/make_room.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/rdma_private.h"

void rdma_queue_needs_step(struct rdma_queue *qp)
{
    if (!qp->needs_step) {
        qp->needs_step = true;
        qp->next_step = qp->rdma->step_first;
        qp->rdma->step_first = qp;
    }
}

void rdma_queue_fail(struct rdma_queue *qp)
{
    if (qp->state < RDMA_QUEUE_FAILED) {
        qp->state = RDMA_QUEUE_FAILED;
        rdma_queue_needs_step(qp);
    }
}

void rdma_queue_confirm(struct rdma_queue *qp)
{
    qp->is_proven = true;
    nvmf_qpair_confirm(qp->rdma->config.target, qp->number);
}

void rdma_queue_heard(struct rdma_queue *qp)
{
    qp->is_heard = true;
    rdma_queue_confirm(qp);
    qp->conn->ops->data_received(qp->conn);
}

static void qp_event(void *ctx, const struct verbs_event *event)
{
    struct rdma_queue *qp = ctx;

    switch (event->type) {
    case VERBS_EVENT_QP_FATAL:
        rdma_queue_fail(qp);
        break;
    case VERBS_EVENT_QP_ESTABLISHED:
        rdma_queue_heard(qp);
        break;
    case VERBS_EVENT_QP_DRAINED:
        break;
    }
}

static const struct verbs_qp_ops qp_ops = {
    .completion = rdma_request_completion,
    .event = qp_event,
    .is_plain = rdma_relay_is_plain,
};

/* ---- Capsule buffers: one list of unused ones, and one list for each QP. */

static void capsules_init(struct rdma_transport *rdma)
{
    for (uint16_t i = 0; i < RDMA_CAPSULES; i++) {
        rdma->next_capsule[i] = (uint16_t)(i + 1);
    }
    rdma->next_capsule[RDMA_CAPSULES - 1] = RDMA_NO_CAPSULE;
    rdma->free_capsule = 0;
}

/* The target limits the sum of all depths, so there are always enough. */
static void capsules_take(struct rdma_queue *qp)
{
    struct rdma_transport *rdma = qp->rdma;

    qp->first_capsule = RDMA_NO_CAPSULE;
    for (uint16_t i = 0; i < qp->depth; i++) {
        uint16_t capsule = rdma->free_capsule;

        ASSERT(capsule != RDMA_NO_CAPSULE);
        rdma->free_capsule = rdma->next_capsule[capsule];
        rdma->next_capsule[capsule] = qp->first_capsule;
        qp->first_capsule = capsule;
    }
    rdma->capsules_in_use += qp->depth;
}

static void capsules_give(struct rdma_queue *qp)
{
    struct rdma_transport *rdma = qp->rdma;

    while (qp->first_capsule != RDMA_NO_CAPSULE) {
        uint16_t capsule = qp->first_capsule;

        qp->first_capsule = rdma->next_capsule[capsule];
        rdma->next_capsule[capsule] = rdma->free_capsule;
        rdma->free_capsule = capsule;
    }
    rdma->capsules_in_use -= qp->depth;
}

static void capsules_post(struct rdma_queue *qp)
{
    for (uint16_t capsule = qp->first_capsule; capsule != RDMA_NO_CAPSULE;
         capsule = qp->rdma->next_capsule[capsule]) {
        rdma_request_post_capsule(qp, capsule);
    }
}

/* ---- The end of a QP. */

static void report_conn_event(struct rdma_queue *qp, bool is_connected)
{
    const struct rdma_transport_config *config = &qp->rdma->config;

    if (config->conn_event != NULL && qp->event.is_connected != is_connected) {
        qp->event.is_connected = is_connected;
        config->conn_event(config->conn_event_ctx, &qp->event);
    }
}

static void release_queue(struct rdma_queue *qp)
{
    rdma_request_release_all(qp);
    capsules_give(qp);
    qp->state = RDMA_QUEUE_FREE;
    qp->rdma->qpairs_in_use--;
}

/* Remove the queue from the RNIC and from the connection manager.  The target
 * may still hold requests of it. */
static void take_down_queue(struct rdma_queue *qp)
{
    struct rdma_transport *rdma = qp->rdma;

    verbs_destroy_qp(rdma->config.verbs, qp->qpn);
    qp->conn->ops->disconnect(qp->conn);
    qp->conn = NULL;
    report_conn_event(qp, false);
    qp->state = RDMA_QUEUE_DRAINING;
    if (nvmf_qpair_closed(rdma->config.target, qp->number)) {
        release_queue(qp);
    } else {
        rdma_request_fail_all(qp);
    }
}

static void step_qp(struct rdma_queue *qp)
{
    qp->is_in_step = true;
    switch ((enum rdma_queue_state)qp->state) {
    case RDMA_QUEUE_ENDING:
        /* The connection manager completes the disconnect by itself.  So the
         * queue's memory is free even if the peer never answers. */
        if (qp->responding == 0) {
            take_down_queue(qp);
        }
        break;
    case RDMA_QUEUE_FAILED:
        take_down_queue(qp);
        break;
    case RDMA_QUEUE_DRAINING:
        rdma_request_fail_all(qp);
        break;
    case RDMA_QUEUE_FREE:
    case RDMA_QUEUE_OPEN:
    case RDMA_QUEUE_DRAINED:
        break;
    }
    qp->is_in_step = false;
    if (qp->state == RDMA_QUEUE_DRAINED) {
        release_queue(qp);
    }
}

void rdma_queue_end_now(struct rdma_queue *qp)
{
    qp->state = RDMA_QUEUE_FAILED;
    step_qp(qp);
}

/* Not inlined, so that a call without work need not save registers. */
static __attribute__((noinline)) void step_qps(struct rdma_transport *rdma)
{
    while (rdma->step_first != NULL) {
        struct rdma_queue *qp = rdma->step_first;

        rdma->step_first = qp->next_step;
        qp->needs_step = false;
        step_qp(qp);
    }
}

bool rdma_transport_step(struct rdma_transport *rdma)
{
    if (__builtin_expect(rdma->step_first == NULL, 1)) {
        return false;
    }
    step_qps(rdma);
    return true;
}

/* ---- Connection requests. */

/* Map the target's refusal of a queue pair to a status of NVMe/RDMA. */
static enum nvme_rdma_status reserve_status(enum nvmf_reserve_status status)
{
    static const uint8_t map[NVMF_RESERVE_STATUSES] = {
        [NVMF_RESERVE_OK] = NVME_RDMA_OK,
        [NVMF_RESERVE_INVALID_QID] = NVME_RDMA_INVALID_QID,
        [NVMF_RESERVE_INVALID_SQSIZE] = NVME_RDMA_INVALID_HSQSIZE,
        [NVMF_RESERVE_INVALID_CNTLID] = NVME_RDMA_INVALID_CNTLID,
        [NVMF_RESERVE_NO_RESOURCES] = NVME_RDMA_NO_RESOURCES,
    };

    return (enum nvme_rdma_status)map[status];
}

static void reject_request(struct rdma_cm_conn *conn,
                           enum nvme_rdma_status status)
{
    uint8_t private_data[NVME_RDMA_REJ_LEN];

    nvme_rdma_rej_emit(private_data, status);
    conn->ops->reject(conn, RDMA_CM_REJECT_USER, private_data,
                      sizeof(private_data));
}

/* End a connection whose host has proven no identity, if its address has more
 * than its share.  @return whether that has made room */
static bool displace_queue(struct rdma_transport *rdma,
                           const struct nvmf_qpair_params *params)
{
    uint16_t number;
    enum nvmf_room room =
        nvmf_qpair_displace(rdma->config.target, params, rdma->now_us, &number);

    if (room == NVMF_ROOM_OWN) {
        rdma_queue_end_now(&rdma->qps[number]);
    }
    return room == NVMF_ROOM_OWN || room == NVMF_ROOM_NOW;
}

/* Keep neighbours for hosts: end the connections of an address if too many
 * addresses have connections without proof. */
static void limit_addresses(struct rdma_transport *rdma,
                            const struct nvmf_qpair_params *params)
{
    uint8_t address[sizeof(params->host)] = {0};
    uint16_t number;

    while (nvmf_qpair_displace_address(rdma->config.target, params, address,
                                       &number)) {
        rdma_queue_end_now(&rdma->qps[number]);
    }
}

/* Reserve a queue pair, if need be that of another connection. */
static enum nvme_rdma_status reserve_queue(
    struct rdma_transport *rdma, const struct nvmf_qpair_params *params,
    uint16_t *number)
{
    enum nvmf_reserve_status status;

    do {
        status = nvmf_qpair_reserve(rdma->config.target, params, number);
    } while (
        status == NVMF_RESERVE_NO_RESOURCES &&
        (rdma_half_open_evict(rdma, params) || displace_queue(rdma, params)));
    return reserve_status(status);
}

static enum nvme_rdma_status judge_request(
    const struct rdma_listener *listener, const struct rdma_cm_request *request,
    struct nvme_rdma_req *req, uint16_t *number)
{
    struct rdma_transport *rdma = listener->rdma;
    const struct rdma_manager *manager =
        &rdma->config.managers[listener->manager];
    enum nvme_rdma_status status =
        nvme_rdma_req_parse(req, request->private_data, request->private_len);
    struct nvmf_qpair_hints hints;
    struct nvmf_qpair_params params = {
        .transport = &rdma->transport,
        .portid = request->laddr < NVMF_MAX_ADDRESSES
                      ? manager->portid[request->laddr]
                      : 0,
        .link = request->laddr < NVMF_MAX_ADDRESSES
                    ? manager->link[request->laddr]
                    : 0,
        .is_stream = manager->qp_type == VERBS_QP_IW,
        .hints = &hints,
    };

    if (status != NVME_RDMA_OK) {
        return status;
    }
    if (request->max_rd_atomic == 0) {
        return NVME_RDMA_INVALID_IRD; /* no READ could fetch data of writes */
    }
    if (req->hrqsize == 0) {
        return NVME_RDMA_INVALID_HRQSIZE; /* no buffer for a response */
    }
    hints = (struct nvmf_qpair_hints){
        .qid = req->qid,
        .sqsize = req->hsqsize,
        .cntlid = req->cntlid,
    };
    memcpy(params.host, request->peer.bytes, sizeof(params.host));
    rdma_half_open_limit(rdma, &request->peer);
    limit_addresses(rdma, &params);
    return reserve_queue(rdma, &params, number);
}

/* Create the verbs QP and bring it to a state in which it sends and receives.
 */
static bool bring_up_qp(struct rdma_queue *qp)
{
    struct verbs *verbs = qp->rdma->config.verbs;
    struct verbs_qp_config config = {
        .type =
            (enum verbs_qp_type)qp->rdma->config.managers[qp->manager].qp_type,
        .sq_depth = RDMA_SQ_PER_ENTRY * qp->depth,
        .rq_depth = qp->depth,
        .ops = &qp_ops,
        .ctx = qp,
    };
    const struct verbs_qp_attr attr = {.access = 0};

    if (!verbs_create_qp(verbs, &config, &qp->qpn)) {
        return false;
    }
    if (!verbs_modify_qp(verbs, qp->qpn, VERBS_QPS_INIT, &attr)) {
        verbs_destroy_qp(verbs, qp->qpn);
        return false;
    }
    capsules_take(qp);
    capsules_post(qp);
    /* The host gets no right to read or write the drive's memory. */
    if (!qp->conn->ops->start_qp(qp->conn, qp->qpn, 0, 0)) {
        verbs_destroy_qp(verbs, qp->qpn);
        capsules_give(qp);
        return false;
    }
    return true;
}

static void refuse_request(struct rdma_transport *rdma,
                           struct rdma_cm_conn *conn,
                           const struct rdma_cm_request *request,
                           enum nvme_rdma_status status)
{
    static const char *const reasons[] = {
        [NVME_RDMA_INVALID_LENGTH] = "the private data are too short",
        [NVME_RDMA_INVALID_RECFMT] = "the record format is unknown",
        [NVME_RDMA_INVALID_QID] = "the queue ID is not allowed",
        [NVME_RDMA_INVALID_HSQSIZE] = "the queue is too large or too small",
        [NVME_RDMA_INVALID_HRQSIZE] = "the receive queue has a wrong size",
        [NVME_RDMA_NO_RESOURCES] = "no queue pair or queue entry is free",
        [NVME_RDMA_INVALID_IRD] = "the host allows no RDMA READ",
        [NVME_RDMA_INVALID_ORD] = "the host's RDMA READ limit is invalid",
        [NVME_RDMA_INVALID_CNTLID] = "there is no such controller",
    };
    struct nvmf_conn_event event = {
        .trtype = TRTYPE_RDMA,
        .laddr = request->laddr,
        .status = (uint16_t)status,
        .reason = (size_t)status < ARRAY_LEN(reasons) ? reasons[status] : NULL,
    };

    memcpy(event.host, request->peer.bytes, sizeof(event.host));
    reject_request(conn, status);
    if (rdma->config.conn_event != NULL) {
        rdma->config.conn_event(rdma->config.conn_event_ctx, &event);
    }
}

static void conn_requested(void *ctx, struct rdma_cm_conn *conn,
                           const struct rdma_cm_request *request)
{
    const struct rdma_listener *listener = ctx;
    struct rdma_transport *rdma = listener->rdma;
    uint8_t private_data[NVME_RDMA_REP_LEN];
    struct nvme_rdma_req req;
    struct rdma_queue *qp;
    uint16_t number;
    enum nvme_rdma_status status =
        judge_request(listener, request, &req, &number);

    if (status != NVME_RDMA_OK) {
        refuse_request(rdma, conn, request, status);
        return;
    }
    qp = &rdma->qps[number];
    ASSERT(qp->state == RDMA_QUEUE_FREE);
    /* Keep needs_step and next_step: the queue may still be in that list. */
    qp->rdma = rdma;
    qp->number = number;
    qp->manager = listener->manager;
    qp->qid = req.qid;
    qp->depth = nvmf_qpair_depth(rdma->config.target, number);
    qp->in_use = 0;
    qp->responding = 0;
    qp->unacked = 0;
    qp->is_heard = false;
    qp->is_proven = false;
    qp->answered_us = 0;
    qp->watched_us = 0;
    qp->silent_checks = 0;
    qp->waiting = NULL;
    qp->held = NULL;
    qp->conn = conn;
    qp->event = (struct nvmf_conn_event){
        .trtype = TRTYPE_RDMA,
        .qpair = number,
        .qid = req.qid,
        .laddr = request->laddr,
    };
    memcpy(qp->event.host, request->peer.bytes, sizeof(qp->event.host));
    if (!bring_up_qp(qp)) {
        bool is_free = nvmf_qpair_closed(rdma->config.target, number);

        ASSERT(is_free); /* no command was received on the queue */
        refuse_request(rdma, conn, request, NVME_RDMA_NO_RESOURCES);
        return;
    }
    nvmf_qpair_set_label(rdma->config.target, number, qp->qpn);
    qp->state = RDMA_QUEUE_OPEN;
    rdma->qpairs_in_use++;
    conn->ctx = qp;
    nvmf_qpair_open(rdma->config.target, number, rdma->now_us);
    rdma_half_open_add(qp);
    nvme_rdma_rep_emit(private_data, qp->depth);
    conn->ops->accept(conn, qp->qpn, private_data, sizeof(private_data));
}

static void conn_established(void *ctx, struct rdma_cm_conn *conn)
{
    struct rdma_queue *qp = ctx;

    (void)conn;
    rdma_queue_confirm(qp);
    report_conn_event(qp, true);
}

static void conn_disconnected(void *ctx, struct rdma_cm_conn *conn)
{
    struct rdma_queue *qp = ctx;

    (void)conn;
    rdma_queue_fail(qp);
}

static const struct rdma_cm_events conn_events = {
    .request = conn_requested,
    .established = conn_established,
    .disconnected = conn_disconnected,
};

/* ---- Other functions of the transport seam. */

static void disconnect_queue(void *ctx, uint16_t qpair)
{
    struct rdma_transport *rdma = ctx;
    struct rdma_queue *qp = &rdma->qps[qpair];

    if (qp->state == RDMA_QUEUE_OPEN) {
        qp->state = RDMA_QUEUE_ENDING;
        rdma_queue_needs_step(qp);
    } else {
        rdma_queue_fail(qp); /* called again: stop waiting for the peer */
    }
}

static void queue_drained(void *ctx, uint16_t qpair)
{
    struct rdma_transport *rdma = ctx;
    struct rdma_queue *qp = &rdma->qps[qpair];

    ASSERT(qp->state == RDMA_QUEUE_DRAINING);
    qp->state = RDMA_QUEUE_DRAINED;
    if (!qp->is_in_step) {
        release_queue(qp);
    }
}

/* Take requests from every manager. */
static bool listen_everywhere(struct rdma_transport *rdma)
{
    for (uint8_t i = 0; i < rdma->config.manager_count; i++) {
        const struct rdma_manager *manager = &rdma->config.managers[i];

        rdma->listeners[i] = (struct rdma_listener){rdma, i};
        if (!manager->cm.ops->listen(manager->cm.cm, manager->service_port,
                                     &conn_events, &rdma->listeners[i])) {
            return false;
        }
    }
    return true;
}

size_t rdma_transport_bytes(void)
{
    return sizeof(struct rdma_transport);
}

size_t rdma_transport_request_bytes(void)
{
    return RDMA_REQUESTS * nvmf_request_bytes();
}

bool rdma_transport_init(struct rdma_transport *rdma,
                         const struct rdma_transport_config *config)
{
    ASSERT(config->manager_count <= RDMA_MANAGERS);
    rdma->config = *config;
    rdma->transport = (struct nvmf_transport){
        .ctx = rdma,
        .trtype = TRTYPE_RDMA,
        .sgls = SGLS_SUPPORTED | SGLS_KEYED,
        .in_capsule_len = NVMF_IN_CAPSULE_LEN,
        .admin_in_capsule_len = 0,
        .fetch = rdma_request_fetch,
        .send = rdma_request_send,
        .respond = rdma_request_respond,
        .disconnect = disconnect_queue,
        .drained = queue_drained,
    };
    rdma->direct = rdma->transport;
    rdma->relay = NULL;
    rdma->lkey = verbs_local_key(config->verbs);
    rdma->now_us = 0;
    rdma->watch_us = 0;
    rdma->requests_in_use = 0;
    rdma->responding = 0;
    rdma->waiting = 0;
    rdma->sending = 0;
    rdma->capsules_in_use = 0;
    rdma->qpairs_in_use = 0;
    rdma->step_first = NULL;
    rdma->half_open.evicted = 0;
    rdma_half_open_init(rdma);
    for (unsigned int i = 0; i < NVMF_MAX_QPAIRS; i++) {
        rdma->qps[i] = (struct rdma_queue){.rdma = rdma};
    }
    rdma_request_init(rdma);
    capsules_init(rdma);
    return listen_everywhere(rdma);
}

void rdma_transport_set_address(struct rdma_transport *rdma, uint8_t manager,
                                uint8_t laddr, uint16_t portid, uint32_t link)
{
    ASSERT(manager < rdma->config.manager_count && laddr < NVMF_MAX_ADDRESSES);
    rdma->config.managers[manager].portid[laddr] = portid;
    rdma->config.managers[manager].link[laddr] = link;
    for (unsigned int i = 0; i < NVMF_MAX_QPAIRS; i++) {
        struct rdma_queue *qp = &rdma->qps[i];

        if (qp->manager == manager && qp->event.laddr == laddr &&
            (qp->state == RDMA_QUEUE_OPEN || qp->state == RDMA_QUEUE_ENDING)) {
            rdma_queue_fail(qp);
        }
    }
}

void rdma_transport_tick(struct rdma_transport *rdma, uint64_t now_us)
{
    rdma->now_us = now_us;
}

uint32_t rdma_transport_unacked(const struct rdma_transport *rdma)
{
    return rdma->responding;
}

bool rdma_transport_is_short(const struct rdma_transport *rdma)
{
    return rdma->waiting != 0 || rdma->sending != 0;
}

void rdma_transport_usage(const struct rdma_transport *rdma,
                          struct rdma_usage *usage)
{
    *usage = (struct rdma_usage){
        .qpairs = rdma->qpairs_in_use,
        .half_open_evicted = rdma->half_open.evicted,
        .capsules = rdma->capsules_in_use,
        .requests = rdma->requests_in_use,
    };
}

const struct nvmf_transfer *rdma_transport_request(
    const struct rdma_transport *rdma, uint32_t number)
{
    ASSERT(number < RDMA_REQUESTS);
    return rdma->requests[number].nvmf;
}
