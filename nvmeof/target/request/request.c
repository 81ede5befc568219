/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a request: the target checks it, takes buffers for it, executes
 * it and responds.
 * Spec: NVMe over Fabrics 1.1 sections 2 and 3; states in request_state.h.
 */
#include "nvmeof/target/request/request.h"

/* Allowed transitions. */
static const uint16_t request_next[NVMF_REQUEST_STATES] = {
    [NVMF_REQUEST_FREE] = BIT(NVMF_REQUEST_EXECUTING),
    [NVMF_REQUEST_EXECUTING] = 0xfff & ~BIT(NVMF_REQUEST_EXECUTING),
    [NVMF_REQUEST_WAIT_BUFFER] =
        BIT(NVMF_REQUEST_EXECUTING) | BIT(NVMF_REQUEST_FREE),
    [NVMF_REQUEST_FETCHING] =
        BIT(NVMF_REQUEST_EXECUTING) | BIT(NVMF_REQUEST_FREE),
    [NVMF_REQUEST_WAIT_MEDIA] =
        BIT(NVMF_REQUEST_EXECUTING) | BIT(NVMF_REQUEST_FREE),
    [NVMF_REQUEST_MEDIA] = BIT(NVMF_REQUEST_EXECUTING),
    [NVMF_REQUEST_AER] = BIT(NVMF_REQUEST_EXECUTING),
    [NVMF_REQUEST_RESPONDING] = BIT(NVMF_REQUEST_FREE),
    [NVMF_REQUEST_SENDING] =
        BIT(NVMF_REQUEST_EXECUTING) | BIT(NVMF_REQUEST_FREE),
    [NVMF_REQUEST_HELD] = BIT(NVMF_REQUEST_EXECUTING) | BIT(NVMF_REQUEST_FREE),
    [NVMF_REQUEST_AUTH] = BIT(NVMF_REQUEST_EXECUTING),
    [NVMF_REQUEST_WAIT_TURN] =
        BIT(NVMF_REQUEST_EXECUTING) | BIT(NVMF_REQUEST_FREE),
};

/* The only writer of req->state. */
void request_enter(struct nvmf_request *req, enum nvmf_request_state next)
{
    ASSERT(request_next[req->state] & BIT(next));
    if (__builtin_expect(req->trace != NULL, 0)) {
        observe_leave_state(req);
    }
    req->state = (uint8_t)next;
}

/* An Asynchronous Event Request starts to wait.  A request that waited for an
 * event or for an authentication continues. */
void request_wait_event(struct nvmf_request *req)
{
    request_enter(req, NVMF_REQUEST_AER);
}

/* The request waits until another command has ended.  It can be dropped. */
void request_wait_turn(struct nvmf_request *req)
{
    request_enter(req, NVMF_REQUEST_WAIT_TURN);
}

void request_resume(struct nvmf_request *req)
{
    request_enter(req, NVMF_REQUEST_EXECUTING);
}

/* A command waits for the volume, as others do for the media. */
void request_wait_media(struct nvmf_request *req)
{
    request_enter(req, NVMF_REQUEST_MEDIA);
}

/* ---- Windows: the part of the data that the request has buffers for. */

/* Drop the pieces that a last, shorter window does not need. */
static void trim_pieces(struct nvmf_request *req)
{
    uint32_t rest = req->window_len;
    uint8_t used = 0;

    while (rest != 0) {
        struct nvmf_piece *piece = &req->transfer.pieces[used++];

        piece->len_bytes = MIN(piece->len_bytes, rest);
        rest -= piece->len_bytes;
    }
    req->transfer.piece_count = used;
}

/* Set the length of the window that begins at data_offset. */
static void set_window(struct nvmf_request *req)
{
    req->window_len = req->data_len - req->transfer.data_offset;
    if (req->room_len < req->window_len) {
        req->window_len = req->ns != NULL && req->ns->geometry.has_metadata
                              ? protection_round_window(req, req->room_len)
                              : req->room_len;
        ASSERT(req->window_len != 0);
    }
    if (req->window_len < req->room_len) {
        trim_pieces(req);
    }
}

static bool is_last_window(const struct nvmf_request *req)
{
    return req->transfer.data_offset + req->window_len == req->data_len;
}

static void fetch_window(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_transport *transport =
        request_qpair(target, req)->transport;

    req->transfer.fetch_len = req->window_len;
    if (__builtin_expect(req->arrival_state != ARRIVAL_NONE, 0)) {
        req->fetch_us = target->now_us;
    }
    request_enter(req, NVMF_REQUEST_FETCHING);
    transport->fetch(transport->ctx, &req->transfer);
}

static void send_window(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_transport *transport =
        request_qpair(target, req)->transport;

    req->transfer.send_len = req->window_len;
    request_enter(req, NVMF_REQUEST_SENDING);
    transport->send(transport->ctx, &req->transfer);
}

static bool is_ending(const struct nvmf_target *target,
                      const struct nvmf_request *req)
{
    uint8_t state = target->qpair[req->qpair].state;

    return state == QPAIR_CLOSING || state == QPAIR_DRAINING;
}

/* The first command of a fused pair ends, and so decides about the second. */
static void end_fused_first(struct nvmf_target *target,
                            struct nvmf_request *req, uint16_t status)
{
    struct nvmf_request *second = req->partner;

    req->holds &= (uint8_t)~HOLDS_PARTNER;
    second->holds &= (uint8_t)~HOLDS_PARTNER;
    request_complete(target, req, status);
    request_hooks.pair_first_ended(target, second, status);
}

/* A window has been executed: continue with the next one, or respond. */
static void end_window(struct nvmf_target *target, struct nvmf_request *req,
                       uint16_t status)
{
    if (__builtin_expect(req->holds != 0, 0)) {
        request_hooks.release_holds(target, req);
        if (req->holds & HOLDS_PARTNER) {
            end_fused_first(target, req, status);
            return;
        }
        if ((req->holds & HOLDS_PREEMPTED) && status == NVME_SC_SUCCESS &&
            !is_last_window(req)) {
            status = NVME_SC_ABORT_PREEMPTED;
        }
    }
    if (status != NVME_SC_SUCCESS || is_last_window(req) ||
        is_ending(target, req)) {
        request_complete(target, req, status);
    } else if (req->command->direction == DATA_TO_HOST) {
        send_window(target, req);
    } else {
        req->transfer.data_offset += req->window_len;
        set_window(req);
        fetch_window(target, req);
    }
}

/* Execute a command.  What it saves counts for its host. */
static __attribute__((noinline)) uint16_t
execute_for_host(struct nvmf_target *target, struct nvmf_request *req)
{
    uint8_t before = target->acting_ctrl;
    uint16_t status;

    target->acting_ctrl = request_qpair(target, req)->ctrl;
    status = req->command->execute(target, req);
    target->acting_ctrl = before;
    return status;
}

void request_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_command *command = req->command;
    /* Commands that name blocks save nothing that counts for a host. */
    uint16_t status = command->flags & COMMAND_HAS_LBA
                          ? command->execute(target, req)
                          : execute_for_host(target, req);

    if (status != NVMF_PENDING) {
        end_window(target, req, status);
    }
}

/* A command's turn has come, for which it waited with request_wait_turn(). */
void request_restart(struct nvmf_target *target, struct nvmf_request *req)
{
    request_enter(req, NVMF_REQUEST_EXECUTING);
    request_execute(target, req);
}

/* The request has its buffers: fetch its data, or execute it. */
void request_start_window(struct nvmf_target *target, struct nvmf_request *req)
{
    set_window(req);
    if (req->command->direction == DATA_TO_HOST) {
        request_execute(target, req);
    } else {
        fetch_window(target, req);
    }
}

/* Get the data or buffers of a request, or execute it.  The data of a request
 * with a piece came with it. */
void request_begin(struct nvmf_target *target, struct nvmf_request *req)
{
    if (__builtin_expect(req->holds & HOLDS_PARTNER, 0)) {
        request_hooks.pair_begin(target, req);
    } else if (req->data_len == 0 || req->transfer.piece_count != 0) {
        request_execute(target, req);
    } else if (buffer_take(target, req)) {
        request_start_window(target, req);
    }
}

/* The request has passed its checks: get its data or buffers; execute it. */
static void request_start(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_data *data = req->data;

    if (req->data_len != 0) {
        if (data->in_capsule.ptr != NULL) {
            req->transfer.pieces[0] = data->in_capsule;
            req->transfer.pieces[0].len_bytes = req->data_len;
            req->transfer.piece_count = 1;
            req->window_len = req->data_len;
        } else if (__builtin_expect(req->owner == NVMF_BUF_NO_CTRL, 0) &&
                   req->data_len <= data->spare.len_bytes) {
            req->transfer.pieces[0] = data->spare;
            req->transfer.piece_count = 1;
            req->room_len = data->spare.len_bytes;
            request_start_window(target, req);
            return;
        }
    }
    if (__builtin_expect(!target->arrivals.is_kept, 1) ||
        !(req->command->flags & COMMAND_WRITES) ||
        request_hooks.arrive(target, req)) {
        request_begin(target, req);
    }
}

/* Return the request's buffers, if it has any, and serve waiting requests. */
static void buffer_release(struct nvmf_target *target, struct nvmf_request *req)
{
    if (req->owns_buffers) {
        buffer_return(target, req);
    }
}

/* The request goes back to the transport; it keeps nothing from others. */
static void free_request(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t qpair = req->qpair;

    if (__builtin_expect(req->trace != NULL, 0)) {
        observe_leave_state(req);
        observe_end(target, req);
        req->trace = NULL;
    }
    buffer_release(target, req);
    request_enter(req, NVMF_REQUEST_FREE);
    qpair_request_ended(target, qpair);
}

/* As request_hooks.release_holds(); the other command of a fused pair is
 * dropped, too, and waits for this one. */
static void drop_holds(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_request *partner = req->partner;

    request_hooks.release_holds(target, req);
    if (req->holds & HOLDS_PARTNER) {
        req->holds &= (uint8_t)~HOLDS_PARTNER;
        partner->holds &= (uint8_t)~HOLDS_PARTNER;
        ASSERT(partner->state == NVMF_REQUEST_WAIT_TURN);
        request_drop(target, partner);
    }
}

void request_drop(struct nvmf_target *target, struct nvmf_request *req)
{
    if (req->holds != 0) {
        drop_holds(target, req);
    }
    cid_release(req);
    ns_release(target, req, NVME_SC_ABORT_REQUESTED);
    if (req->arrival_state != ARRIVAL_NONE) {
        request_hooks.depart(target, req);
    }
    free_request(target, req);
}

/*
 * SQHD tells the host how many SQ entries are free again: one more with each
 * response.  When SQ flow control is off, Connect's response has the value that
 * says so (FFFFh), and the field is reserved afterwards.
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

/*
 * Whether the command's failure belongs into the error log.  Hosts send queries
 * at each connect, and monitoring tools at each poll, to find out what a drive
 * supports, and a growing count of errors would alarm those who watch SMART.
 * So a query that is refused leaves no trace, unless a fault rule has refused
 * it.
 */
static bool is_logged(const struct nvmf_request *req, uint16_t status)
{
    bool is_query = (req->command->flags & COMMAND_IS_QUERY) != 0;

    return status != NVME_SC_SUCCESS && !req->is_unlogged &&
           (!is_query || req->held_by != 0) &&
           (status & NVME_SC_MASK) != NVME_SC_ABORT_REQUESTED;
}

static bool is_connect(const struct nvmf_request *req)
{
    return req->sqe.opcode == NVME_FABRICS &&
           req->sqe.fctype == FABRICS_CONNECT;
}

/* A command of Fabrics has ended, or one has failed.  @return the status of its
 * response */
static __attribute__((noinline)) uint16_t note_status(
    struct nvmf_target *target, const struct nvmf_request *req, uint16_t status)
{
    if (is_connect(req)) {
        observe_connect(target, req, status);
    }
    if (is_logged(req, status) && log_takes_errors(target, req)) {
        log_record_error(target, req, status);
        if (req->sqe.opcode != NVME_FABRICS) {
            /* Not for Connect, whose status hosts compare exactly. */
            status |= NVME_STATUS_MORE;
        }
    }
    return status;
}

static void send_response(struct nvmf_target *target, struct nvmf_request *req,
                          uint16_t status)
{
    struct nvmf_qpair *qpair = request_qpair(target, req);
    bool sends_data =
        status == NVME_SC_SUCCESS && req->command->direction == DATA_TO_HOST;
    bool is_connected = false;

    if (__builtin_expect(
            status != NVME_SC_SUCCESS || req->sqe.opcode == NVME_FABRICS, 0)) {
        is_connected = status == NVME_SC_SUCCESS && is_connect(req);
        status = note_status(target, req, status);
    }
    req->transfer.send_len = sends_data ? req->window_len : 0;
    nvme_cqe_emit(req->transfer.cqe, &(struct nvme_cqe){
                                         .dw0 = req->result[0],
                                         .dw1 = req->result[1],
                                         .sqhd = next_sqhd(qpair, is_connected),
                                         .cid = req->sqe.cid,
                                         .status = status,
                                     });
    cid_release(req);
    request_enter(req, NVMF_REQUEST_RESPONDING);
    qpair->transport->respond(qpair->transport->ctx, &req->transfer);
    if (!sends_data) {
        buffer_release(target, req);
    }
}

/* Send a response that the latency monitor may have to measure. */
static void send_watched(struct nvmf_target *target, struct nvmf_request *req,
                         uint16_t status)
{
    if (target->answers_watched & ANSWERS_LATENCY) {
        request_hooks.measure(target, req);
    }
    send_response(target, req, status);
}

void request_complete(struct nvmf_target *target, struct nvmf_request *req,
                      uint16_t status)
{
    ns_release(target, req, status);
    if (__builtin_expect(req->arrival_state != ARRIVAL_NONE, 0)) {
        request_hooks.depart(target, req);
    }
    if (is_ending(target, req)) {
        request_drop(target, req);
    } else if (!answers_are_watched(target)) {
        send_response(target, req, status);
    } else if (!fault_rules_are_on(target) ||
               !request_hooks.hold_response(target, req, status)) {
        send_watched(target, req, status);
    }
}

/* A fault rule has held the response back long enough. */
void request_answer_held(struct nvmf_target *target, struct nvmf_request *req)
{
    request_enter(req, NVMF_REQUEST_EXECUTING);
    req->held_by = 0;
    send_watched(target, req, req->held_status);
}

/* Check a command that has arrived.  @return a status, or 0 */
uint16_t request_admit(struct nvmf_target *target, struct nvmf_qpair *qpair,
                       struct nvmf_request *req)
{
    uint16_t status = request_check(target, qpair, req);

    if (status == NVME_SC_SUCCESS && fault_rules_are_on(target)) {
        status = request_hooks.rule_status(target, req);
    }
    return status;
}

void nvmf_capsule(struct nvmf_target *target, uint16_t qpair_index,
                  struct nvmf_transfer *transfer, const uint8_t *sqe,
                  const struct nvmf_data *data, uint64_t now_us)
{
    struct nvmf_request *req = nvmf_request_of(transfer);
    struct nvmf_qpair *qpair = &target->qpair[qpair_index];
    enum qpair_state state = (enum qpair_state)qpair->state;
    uint16_t status;

    request_enter(req, NVMF_REQUEST_EXECUTING);
    target->now_us = now_us;
    nvme_sqe_parse(&req->sqe, sqe);
    req->qpair = qpair_index;
    req->arrived_us = now_us;
    req->transfer.piece_count = 0;
    req->data = data;
    req->transfer.data_offset = 0;
    req->transfer.fetch_len = 0;
    req->transfer.send_len = 0;
    req->data_len = 0;
    req->window_len = 0;
    req->result[0] = 0;
    req->result[1] = 0;
    req->progress = 0;
    req->steps = 0;
    req->held_by = 0;
    req->error_location = 0xffff;
    req->owns_buffers = false;
    req->is_unlogged = false;
    req->ns = NULL;
    if (trace_wants(target->trace, BIT(TRACE_GROUP_COMMANDS) |
                                       BIT(TRACE_GROUP_MEDIA) |
                                       BIT(TRACE_GROUP_PATH))) {
        observe_begin(target, req);
    }
    qpair->in_flight++;
    if (__builtin_expect(state != QPAIR_LIVE, 0)) {
        ASSERT(state != QPAIR_FREE && state != QPAIR_RESERVED &&
               state != QPAIR_DRAINING);
        if (state == QPAIR_CLOSING) {
            request_drop(target, req);
            return;
        }
    }
    req->owner = qpair_speaks_for_ctrl(qpair) ? qpair->ctrl : NVMF_BUF_NO_CTRL;
    if (req->owner != NVMF_BUF_NO_CTRL) {
        target->ctrl[req->owner].seen_us = now_us;
    }
    if (__builtin_expect((req->sqe.fuse | qpair->fused) != 0, 0) &&
        request_hooks.pair_capsule(target, req)) {
        return;
    }
    status = request_admit(target, qpair, req);
    if (status == NVME_SC_SUCCESS) {
        request_start(target, req);
    } else {
        request_complete(target, req, status);
    }
}

/*
 * The transport has moved a window's data.
 *
 * @return false when the request has ended with its connection
 */
static bool window_moved(struct nvmf_target *target, struct nvmf_request *req,
                         bool is_ok)
{
    uint16_t qpair = req->qpair;
    uint8_t state = target->qpair[qpair].state;

    request_enter(req, NVMF_REQUEST_EXECUTING);
    if (!is_ok) {
        request_drop(target, req);
        if (state == QPAIR_CONNECTING || state == QPAIR_AUTHENTICATING ||
            state == QPAIR_LIVE) {
            request_hooks.disconnect(target, qpair);
        }
        return false;
    }
    if (state == QPAIR_CLOSING || state == QPAIR_DRAINING) {
        request_drop(target, req);
        return false;
    }
    return true;
}

void nvmf_request_fetched(struct nvmf_target *target,
                          struct nvmf_transfer *transfer, bool is_ok)
{
    struct nvmf_request *req = nvmf_request_of(transfer);

    ASSERT(req->state == NVMF_REQUEST_FETCHING);
    if (window_moved(target, req, is_ok)) {
        request_execute(target, req);
    }
}

void nvmf_request_not_fetched(struct nvmf_target *target,
                              struct nvmf_transfer *transfer, uint16_t status)
{
    struct nvmf_request *req = nvmf_request_of(transfer);

    ASSERT(req->state == NVMF_REQUEST_FETCHING);
    if (window_moved(target, req, true)) {
        end_window(target, req, status);
    }
}

void nvmf_request_sent(struct nvmf_target *target,
                       struct nvmf_transfer *transfer, bool is_ok)
{
    struct nvmf_request *req = nvmf_request_of(transfer);

    ASSERT(req->state == NVMF_REQUEST_SENDING);
    if (window_moved(target, req, is_ok)) {
        req->transfer.data_offset += req->window_len;
        request_start_window(target, req);
    }
}

void nvmf_request_done(struct nvmf_target *target, struct nvmf_transfer *done)
{
    struct nvmf_request *req = nvmf_request_of(done);

    ASSERT(req->state == NVMF_REQUEST_RESPONDING);
    free_request(target, req);
}

static void end_media(struct media_owner *owner, enum media_status status);

uint16_t request_media(struct nvmf_target *target, struct nvmf_request *req,
                       struct media_io *io)
{
    req->target = target;
    req->media_owner.done = end_media;
    io->owner = &req->media_owner;
    io->number = req->transfer.number;
    if (queue_is_ahead(&target->wait_media) ||
        !target->media.submit(target->media.ctx, io)) {
        request_enter(req, NVMF_REQUEST_WAIT_MEDIA);
        queue_push(&target->wait_media, req);
    } else {
        request_enter(req, NVMF_REQUEST_MEDIA);
    }
    return NVMF_PENDING;
}

/* Flush all namespaces of the drive. */
uint16_t ns_flush_all(struct nvmf_target *target, struct nvmf_request *req)
{
    struct media_io io = {.op = MEDIA_FLUSH, .ns = MEDIA_NS_ALL};

    return request_media(target, req, &io);
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
            break; /* the media is still full */
        }
    }
    queue->is_retrying = false;
}

static uint16_t media_result(struct nvmf_target *target,
                             struct nvmf_request *req, enum media_status status)
{
    static const uint16_t result[MEDIA_STATUSES] = {
        [MEDIA_OK] = NVME_SC_SUCCESS,
        [MEDIA_LBA_RANGE] = NVME_SC_LBA_RANGE | NVME_STATUS_DNR,
        [MEDIA_READ_ERROR] = NVME_SC_READ_ERROR,
        [MEDIA_WRITE_ERROR] = NVME_SC_WRITE_FAULT,
        [MEDIA_READ_ONLY] = NVME_SC_NS_WRITE_PROTECTED | NVME_STATUS_DNR,
        [MEDIA_INTERNAL_ERROR] = NVME_SC_INTERNAL,
        [MEDIA_ABORTED] = NVME_SC_ABORT_REQUESTED,
        [MEDIA_MARKED] = NVME_SC_READ_ERROR | NVME_STATUS_DNR,
        [MEDIA_TRANSFER_ERROR] = NVME_SC_DATA_TRANSFER_ERROR,
        [MEDIA_GUARD_ERROR] = NVME_SC_GUARD_CHECK,
        [MEDIA_APP_TAG_ERROR] = NVME_SC_APP_TAG_CHECK,
        [MEDIA_REF_TAG_ERROR] = NVME_SC_REF_TAG_CHECK,
    };

    if (status == MEDIA_READ_ERROR || status == MEDIA_WRITE_ERROR) {
        if (status == MEDIA_READ_ERROR) {
            if (request_hooks.scan_takes_error(target, req, false)) {
                return NVME_SC_SUCCESS;
            }
            request_hooks.note_unreadable(target, req);
        }
        target->counters.media_errors++;
        request_hooks.media_error(target, req, result[status]);
    } else if (status == MEDIA_MARKED) {
        /* A host has marked the block, so this is no error of the medium. */
        if (request_hooks.scan_takes_error(target, req, true)) {
            return NVME_SC_SUCCESS;
        }
    } else if (status >= MEDIA_GUARD_ERROR) {
        if (target->media.failed_block != NULL) {
            req->error_lba += target->media.failed_block(target->media.ctx);
        }
        target->counters.media_errors++;
    }
    return result[status];
}

/* The media has done what request_media() started. */
static void end_media(struct media_owner *owner, enum media_status media_status)
{
    struct nvmf_request *req =
        container_of(owner, struct nvmf_request, media_owner);
    struct nvmf_target *target = req->target;
    uint16_t status = media_result(target, req, media_status);

    ASSERT(req->state == NVMF_REQUEST_MEDIA);
    request_enter(req, NVMF_REQUEST_EXECUTING);
    if (__builtin_expect(req->trace != NULL, 0) &&
        trace_is_on(target->trace, TRACE_GROUP_MEDIA)) {
        observe_media(target, req, media_status);
    }
    req->progress++;
    if (status == NVME_SC_SUCCESS && req->progress < req->steps) {
        if (req->holds != 0 && is_ending(target, req)) {
            /* Nobody waits for its other steps, except later writes. */
            end_window(target, req, NVME_SC_ABORT_REQUESTED);
        } else {
            request_execute(target, req);
        }
    } else {
        if (status == NVME_SC_SUCCESS && req->command->finish != NULL &&
            is_last_window(req)) {
            req->command->finish(target, req);
        } else if (status != NVME_SC_SUCCESS && req->command->fail != NULL) {
            req->command->fail(target, req);
        }
        end_window(target, req, status);
    }
    if (target->wait_media.head != NULL) {
        retry_media(target);
    }
}

void request_drop_waiting(struct nvmf_target *target, uint16_t qpair)
{
    struct nvmf_queue *const queues[] = {
        &target->wait_media,    &target->manager.waiting,
        &target->held,          &target->scratch.waiting,
        &target->order.waiting, &target->arrivals.waiting,
        &target->lba.waiting,   &target->awaiting,
        &target->protecting,    &target->connecting,
    };
    struct nvmf_request *req;

    while ((req = buffer_take_waiter(target, qpair, true, 0)) != NULL) {
        request_drop(target, req);
    }
    for (size_t i = 0; i < ARRAY_LEN(queues); i++) {
        while ((req = queue_take(queues[i], qpair, true, 0)) != NULL) {
            request_drop(target, req);
        }
    }
    request_hooks.pair_drop_first(target, &target->qpair[qpair]);
}

/* Abort a command that waits for buffers, for an earlier write, or for the turn
 * of its scan. */
bool request_abort_waiting(struct nvmf_target *target, uint16_t qpair,
                           uint16_t cid, uint16_t status)
{
    struct nvmf_request *req = buffer_take_waiter(target, qpair, false, cid);

    if (req == NULL) {
        req = queue_take(&target->order.waiting, qpair, false, cid);
    }
    if (req == NULL) {
        req = queue_take(&target->arrivals.waiting, qpair, false, cid);
    }
    if (req == NULL) {
        req = queue_take(&target->lba.waiting, qpair, false, cid);
    }
    if (req == NULL) {
        return false;
    }
    request_enter(req, NVMF_REQUEST_EXECUTING);
    request_hooks.release_holds(target, req);
    if (req->holds & HOLDS_PARTNER) {
        request_hooks.pair_abort_first(target, req);
    }
    request_complete(target, req, status);
    return true;
}
