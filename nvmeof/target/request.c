/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a request: checked, given buffers, executed, answered.
 * Spec: NVMe over Fabrics 1.1 sections 2 and 3; states in transport.h.
 */
#include "nvmeof/target/internal.h"

#include <string.h>

/* Where each state may go. */
static const uint8_t request_next[NVMF_REQUEST_STATES] = {
    [NVMF_REQUEST_FREE] = BIT(NVMF_REQUEST_EXECUTING),
    [NVMF_REQUEST_EXECUTING] = 0xff & ~BIT(NVMF_REQUEST_EXECUTING),
    [NVMF_REQUEST_WAIT_BUFFER] =
        BIT(NVMF_REQUEST_EXECUTING) | BIT(NVMF_REQUEST_FREE),
    [NVMF_REQUEST_FETCHING] =
        BIT(NVMF_REQUEST_EXECUTING) | BIT(NVMF_REQUEST_FREE),
    [NVMF_REQUEST_WAIT_MEDIA] =
        BIT(NVMF_REQUEST_EXECUTING) | BIT(NVMF_REQUEST_FREE),
    [NVMF_REQUEST_MEDIA] = BIT(NVMF_REQUEST_EXECUTING),
    [NVMF_REQUEST_AER] = BIT(NVMF_REQUEST_EXECUTING),
    [NVMF_REQUEST_RESPONDING] = BIT(NVMF_REQUEST_FREE),
};

/* The only writer of req->state. */
static void request_enter(struct nvmf_request *req,
                          enum nvmf_request_state next)
{
    ASSERT(request_next[req->state] & BIT(next));
    if (__builtin_expect(req->trace != NULL, 0)) {
        observe_leave_state(req);
    }
    req->state = (uint8_t)next;
}

/* An Asynchronous Event Request waits, and goes on. */
void request_wait_event(struct nvmf_request *req)
{
    request_enter(req, NVMF_REQUEST_AER);
}

void request_resume(struct nvmf_request *req)
{
    request_enter(req, NVMF_REQUEST_EXECUTING);
}

static void queue_push(struct nvmf_queue *queue, struct nvmf_request *req)
{
    if (queue->is_retrying) { /* it was the head and still is */
        req->next = queue->head;
        queue->head = req;
        queue->tail = queue->tail == NULL ? req : queue->tail;
        return;
    }
    req->next = NULL;
    if (queue->tail != NULL) {
        queue->tail->next = req;
    } else {
        queue->head = req;
    }
    queue->tail = req;
}

static struct nvmf_request *queue_pop(struct nvmf_queue *queue)
{
    struct nvmf_request *req = queue->head;

    if (req != NULL) {
        queue->head = req->next;
        queue->tail = queue->head == NULL ? NULL : queue->tail;
    }
    return req;
}

/* Whether a newcomer must stand in line. */
static bool queue_is_ahead(const struct nvmf_queue *queue)
{
    return queue->head != NULL && !queue->is_retrying;
}

static struct nvmf_request *queue_take(struct nvmf_queue *queue, uint16_t qpair,
                                       bool any_cid, uint16_t cid)
{
    struct nvmf_request *prev = NULL;

    for (struct nvmf_request *req = queue->head; req != NULL;
         prev = req, req = req->next) {
        if (req->qpair != qpair || (!any_cid && req->sqe.cid != cid)) {
            continue;
        }
        if (prev != NULL) {
            prev->next = req->next;
        } else {
            queue->head = req->next;
        }
        if (queue->tail == req) {
            queue->tail = prev;
        }
        return req;
    }
    return NULL;
}

static void request_execute(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    uint16_t status = req->command->execute(target, req);

    if (status != NVMF_PENDING) {
        request_complete(target, req, status);
    }
}

static bool take_buffers(struct nvmf_target *target, struct nvmf_request *req)
{
    if (queue_is_ahead(&target->wait_buffer) ||
        !target->bufs.get(target->bufs.ctx, req->data_len, req->pieces,
                          &req->piece_count)) {
        request_enter(req, NVMF_REQUEST_WAIT_BUFFER);
        queue_push(&target->wait_buffer, req);
        return false;
    }
    req->owns_buffers = true;
    return true;
}

/* Checked: give it its data, then execute it. */
static void request_start(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_transport *transport;

    if (req->data_len == 0) {
        request_execute(target, req);
        return;
    }
    if (req->data.in_capsule.ptr != NULL) {
        req->pieces[0] = req->data.in_capsule;
        req->pieces[0].len_bytes = req->data_len;
        req->piece_count = 1;
        request_execute(target, req);
        return;
    }
    if (!take_buffers(target, req)) {
        return;
    }
    if (req->command->direction == DATA_TO_HOST) {
        request_execute(target, req);
        return;
    }
    req->fetch_len = req->data_len;
    request_enter(req, NVMF_REQUEST_FETCHING);
    transport = request_qpair(target, req)->transport;
    transport->fetch(transport->ctx, req);
}

static void release_buffers(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    struct nvmf_queue *queue = &target->wait_buffer;
    struct nvmf_request *waiting;

    if (!req->owns_buffers) {
        return;
    }
    req->owns_buffers = false;
    target->bufs.put(target->bufs.ctx, req->pieces, req->piece_count);
    req->piece_count = 0;
    if (queue->is_retrying) {
        return; /* further up the stack, and goes on */
    }
    queue->is_retrying = true;
    while ((waiting = queue_pop(queue)) != NULL) {
        request_enter(waiting, NVMF_REQUEST_EXECUTING);
        request_start(target, waiting);
        if (waiting == queue->head) {
            break; /* still too few */
        }
    }
    queue->is_retrying = false;
}

void request_drop(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t qpair = req->qpair;

    if (__builtin_expect(req->trace != NULL, 0)) {
        observe_leave_state(req);
        observe_end(target, req);
        req->trace = NULL;
    }
    release_buffers(target, req);
    request_enter(req, NVMF_REQUEST_FREE);
    qpair_request_ended(target, qpair);
}

/*
 * SQHD says how far the host may refill: one entry for each answer.  Without SQ
 * flow control Connect's says so, and it is reserved from then on.
 * Spec: NVMe-oF 1.1 2.2, 3.3
 */
static uint16_t next_sqhd(struct nvmf_qpair *qpair, bool is_connected)
{
    if (!qpair->has_sq_flow_control) {
        return is_connected ? 0xffff : 0;
    }
    qpair->sqhd++;
    if (qpair->sqhd >= qpair->sqsize) {
        qpair->sqhd = 0;
    }
    return qpair->sqhd;
}

void request_complete(struct nvmf_target *target, struct nvmf_request *req,
                      uint16_t status)
{
    struct nvmf_qpair *qpair = request_qpair(target, req);
    bool is_connect =
        req->sqe.opcode == NVME_FABRICS && req->sqe.fctype == FABRICS_CONNECT;
    bool is_connected = status == NVME_SC_SUCCESS && is_connect;
    bool sends_data =
        status == NVME_SC_SUCCESS && req->command->direction == DATA_TO_HOST;

    if (qpair->state == QPAIR_CLOSING || qpair->state == QPAIR_DRAINING) {
        request_drop(target, req);
        return;
    }
    if (is_connect) {
        observe_connect(target, req, status);
    }
    if (status != NVME_SC_SUCCESS && !req->is_unlogged &&
        (status & NVME_SC_MASK) != NVME_SC_ABORT_REQUESTED) {
        log_record_error(target, req, status);
        if (req->sqe.opcode != NVME_FABRICS && qpair->ctrl != NO_CTRL &&
            !target->ctrl[qpair->ctrl].is_discovery) {
            status |= NVME_STATUS_MORE; /* hosts compare Connect's exactly */
        }
    }
    req->send_len = sends_data ? req->data_len : 0;
    nvme_cqe_emit(req->cqe, &(struct nvme_cqe){
                                .dw0 = req->result[0],
                                .dw1 = req->result[1],
                                .sqhd = next_sqhd(qpair, is_connected),
                                .cid = req->sqe.cid,
                                .status = status,
                            });
    request_enter(req, NVMF_REQUEST_RESPONDING);
    qpair->transport->respond(qpair->transport->ctx, req);
    if (!sends_data) {
        release_buffers(target, req);
    }
}

void nvmf_capsule(struct nvmf_target *target, uint16_t qpair_index,
                  struct nvmf_request *req, const uint8_t *sqe,
                  const struct nvmf_data *data, uint64_t now_us)
{
    struct nvmf_qpair *qpair = &target->qpair[qpair_index];
    uint16_t status;

    request_enter(req, NVMF_REQUEST_EXECUTING);
    target->now_us = now_us;
    nvme_sqe_parse(&req->sqe, sqe);
    req->qpair = qpair_index;
    req->piece_count = 0;
    req->owns_buffers = false;
    req->is_unlogged = false;
    req->fetch_len = 0;
    req->send_len = 0;
    req->error_location = 0xffff;
    req->progress = 0;
    req->steps = 0;
    req->data_len = 0;
    req->result[0] = 0;
    req->result[1] = 0;
    req->data = *data;
    if (trace_is_on(target->trace, TRACE_GROUP_COMMANDS) ||
        trace_is_on(target->trace, TRACE_GROUP_MEDIA)) {
        observe_begin(target, req);
    }
    qpair->in_flight++;
    ASSERT(qpair->state != QPAIR_FREE && qpair->state != QPAIR_RESERVED &&
           qpair->state != QPAIR_DRAINING);
    if (qpair->state == QPAIR_CLOSING) {
        request_drop(target, req);
        return;
    }
    if (qpair->ctrl != NO_CTRL) {
        target->ctrl[qpair->ctrl].seen_us = now_us;
    }
    status = request_check(target, req);
    if (status == NVME_SC_SUCCESS) {
        request_start(target, req);
    } else {
        request_complete(target, req, status);
    }
}

void nvmf_request_fetched(struct nvmf_target *target, struct nvmf_request *req,
                          bool is_ok)
{
    uint16_t qpair = req->qpair;
    uint8_t state = target->qpair[qpair].state;

    ASSERT(req->state == NVMF_REQUEST_FETCHING);
    request_enter(req, NVMF_REQUEST_EXECUTING);
    if (!is_ok) {
        request_drop(target, req);
        if (state == QPAIR_CONNECTING || state == QPAIR_LIVE) {
            qpair_disconnect(target, qpair);
        }
    } else if (state == QPAIR_CLOSING || state == QPAIR_DRAINING) {
        request_drop(target, req);
    } else {
        request_execute(target, req);
    }
}

void nvmf_request_done(struct nvmf_target *target, struct nvmf_request *req)
{
    ASSERT(req->state == NVMF_REQUEST_RESPONDING);
    request_drop(target, req);
}

uint16_t request_media(struct nvmf_target *target, struct nvmf_request *req,
                       struct media_io *io)
{
    io->cookie = req;
    if (queue_is_ahead(&target->wait_media) ||
        !target->media.submit(target->media.ctx, io)) {
        request_enter(req, NVMF_REQUEST_WAIT_MEDIA);
        queue_push(&target->wait_media, req);
    } else {
        request_enter(req, NVMF_REQUEST_MEDIA);
    }
    return NVMF_PENDING;
}

static void retry_media(struct nvmf_target *target)
{
    struct nvmf_queue *queue = &target->wait_media;
    struct nvmf_request *waiting;

    queue->is_retrying = true;
    while ((waiting = queue_pop(queue)) != NULL) {
        request_enter(waiting, NVMF_REQUEST_EXECUTING);
        request_execute(target, waiting);
        if (waiting == queue->head) {
            break; /* still full */
        }
    }
    queue->is_retrying = false;
}

static uint16_t media_result(struct nvmf_target *target,
                             enum media_status status)
{
    static const uint16_t result[MEDIA_STATUSES] = {
        [MEDIA_OK] = NVME_SC_SUCCESS,
        [MEDIA_LBA_RANGE] = NVME_SC_LBA_RANGE | NVME_STATUS_DNR,
        [MEDIA_READ_ERROR] = NVME_SC_READ_ERROR,
        [MEDIA_WRITE_ERROR] = NVME_SC_WRITE_FAULT,
        [MEDIA_READ_ONLY] = NVME_SC_NS_WRITE_PROTECTED | NVME_STATUS_DNR,
        [MEDIA_INTERNAL_ERROR] = NVME_SC_INTERNAL,
        [MEDIA_ABORTED] = NVME_SC_ABORT_REQUESTED,
    };

    if (status == MEDIA_READ_ERROR || status == MEDIA_WRITE_ERROR) {
        target->counters.media_errors++;
    }
    return result[status];
}

void nvmf_media_done(struct nvmf_target *target, void *cookie,
                     enum media_status media_status)
{
    struct nvmf_request *req = cookie;
    uint16_t status = media_result(target, media_status);

    ASSERT(req->state == NVMF_REQUEST_MEDIA);
    request_enter(req, NVMF_REQUEST_EXECUTING);
    if (__builtin_expect(req->trace != NULL, 0) &&
        trace_is_on(target->trace, TRACE_GROUP_MEDIA)) {
        observe_media(target, req, media_status);
    }
    req->progress++;
    if (status == NVME_SC_SUCCESS && req->progress < req->steps) {
        request_execute(target, req);
    } else {
        if (status == NVME_SC_SUCCESS && req->command->finish != NULL) {
            req->command->finish(target, req);
        } else if (status != NVME_SC_SUCCESS && req->command->fail != NULL) {
            req->command->fail(target, req);
        }
        request_complete(target, req, status);
    }
    if (target->wait_media.head != NULL) {
        retry_media(target);
    }
}

void request_drop_waiting(struct nvmf_target *target, uint16_t qpair)
{
    struct nvmf_queue *const queues[] = {&target->wait_buffer,
                                         &target->wait_media};

    for (size_t i = 0; i < ARRAY_LEN(queues); i++) {
        struct nvmf_request *req;

        while ((req = queue_take(queues[i], qpair, true, 0)) != NULL) {
            request_drop(target, req);
        }
    }
}

bool request_abort_waiting(struct nvmf_target *target, uint16_t qpair,
                           uint16_t cid)
{
    struct nvmf_request *req =
        queue_take(&target->wait_buffer, qpair, false, cid);

    if (req == NULL) {
        return false;
    }
    request_enter(req, NVMF_REQUEST_EXECUTING);
    request_complete(target, req, NVME_SC_ABORT_REQUESTED);
    return true;
}

/* Walk the pieces that [offset, offset + len) of the data lies in. */
static void copy_data(const struct nvmf_request *req, uint32_t offset,
                      uint8_t *to, const uint8_t *from, uint32_t len)
{
    for (uint8_t i = 0; i < req->piece_count && len > 0; i++) {
        uint32_t piece_len = req->pieces[i].len_bytes;
        uint8_t *piece = req->pieces[i].ptr;
        uint32_t n;

        if (offset >= piece_len) {
            offset -= piece_len;
            continue;
        }
        n = MIN(piece_len - offset, len);
        if (from != NULL) {
            memcpy(piece + offset, from, n);
            from += n;
        } else if (to != NULL) {
            memcpy(to, piece + offset, n);
            to += n;
        } else {
            memset(piece + offset, 0, n);
        }
        offset = 0;
        len -= n;
    }
    ASSERT(len == 0);
}

/* Into the data for the host; zeroes when data is NULL. */
void request_write_data(struct nvmf_request *req, uint32_t offset,
                        const uint8_t *data, uint32_t len)
{
    copy_data(req, offset, NULL, data, len);
}

void request_read_data(const struct nvmf_request *req, uint32_t offset,
                       uint8_t *data, uint32_t len)
{
    copy_data(req, offset, data, NULL, len);
}
