/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fused Compare and Write.
 * Spec: NVM Express Base 1.4 sections 4.12 and 6.6.
 *
 * The first command waits until the next command of its queue has arrived.  If
 * that is the matching Write, both get their data, and the Write takes an
 * exclusive place in the order of writes.  Then the Compare is executed, and if
 * it succeeds the Write.
 *
 * The data of both are in the memory of their capsules, so that a pair needs
 * none of the buffers for which writes to the same blocks may be waiting.  One
 * block always fits there, and Identify (ACWU) promises no more than one.
 */
#include "nvmeof/target/io/io.h"

enum fused_step {
    FUSED_FETCH,   /* The data of both are fetched. */
    FUSED_COMPARE, /* The Write has its place in the order; compare. */
    FUSED_WRITE,   /* The blocks are equal; write. */
};

/* Get the data of one of the two commands, or execute it if they came along. */
static void get_data(struct nvmf_target *target, struct nvmf_request *req)
{
    request_resume(req);
    if (req->room_len != 0) {
        request_start_window(target, req);
    } else {
        request_execute(target, req);
    }
}

/* The first command has its data: get those of the second one, or compare. */
static uint16_t first_execute(struct nvmf_target *target,
                              struct nvmf_request *first)
{
    struct nvmf_request *second = first->partner;

    if (second->fused_step == FUSED_FETCH) {
        request_wait_turn(first);
        get_data(target, second);
        return NVMF_PENDING;
    }
    return first->ns->geometry.has_metadata ? protection_compare(target, first)
                                            : compare_execute(target, first);
}

/* The second command has its data, or its turn in the order of writes. */
static uint16_t second_execute(struct nvmf_target *target,
                               struct nvmf_request *second)
{
    if (second->fused_step == FUSED_WRITE) {
        return second->ns->geometry.has_metadata
                   ? protection_write_fused(target, second)
                   : io_submit(target, second, MEDIA_WRITE);
    }
    if (!(second->holds & HOLDS_ORDER) &&
        !order_enter_exclusive(target, second, io_first_lba(&second->sqe),
                               io_count_blocks(&second->sqe))) {
        return NVMF_PENDING;
    }
    second->fused_step = FUSED_COMPARE;
    request_wait_turn(second);
    request_resume(second->partner);
    request_execute(target, second->partner);
    return NVMF_PENDING;
}

static const struct nvmf_command first_command = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS | COMMAND_HAS_LBA,
    .execute = first_execute,
};

static const struct nvmf_command second_command = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS | COMMAND_WRITES | COMMAND_HAS_LBA,
    .execute = second_execute,
    .finish = io_write_finish,
};

/* The Compare has ended with this status, and its response is sent. */
void fused_first_ended(struct nvmf_target *target, struct nvmf_request *second,
                       uint16_t status)
{
    request_resume(second);
    if (status == NVME_SC_SUCCESS) {
        second->fused_step = FUSED_WRITE;
        request_execute(target, second);
        return;
    }
    order_leave(target, second);
    second->is_unlogged = true;
    request_complete(target, second, NVME_SC_FUSED_FAILED);
}

/* The second command is aborted while it waits for its turn. */
void fused_abort_first(struct nvmf_target *target, struct nvmf_request *second)
{
    struct nvmf_request *first = second->partner;

    second->holds &= (uint8_t)~HOLDS_PARTNER;
    first->holds &= (uint8_t)~HOLDS_PARTNER;
    request_resume(first);
    request_complete(target, first, NVME_SC_FUSED_FAILED);
}

/* Check one of the two commands, and find the place of its data. */
static uint16_t admit_half(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_data *data = req->data;
    uint16_t status = request_admit(target, request_qpair(target, req), req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (io_count_blocks(&req->sqe) > FUSED_MAX_BLOCKS) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW12, 0);
    }
    req->owner = request_qpair(target, req)->ctrl;
    req->transfer.piece_count = 1;
    if (data->in_capsule.ptr != NULL) {
        req->transfer.pieces[0] = data->in_capsule;
        req->transfer.pieces[0].len_bytes = req->data_len;
        req->room_len = 0;
        req->window_len = req->data_len;
        return NVME_SC_SUCCESS;
    }
    req->transfer.pieces[0] = data->spare;
    req->room_len = data->spare.len_bytes;
    return req->data_len <= data->spare.len_bytes
               ? NVME_SC_SUCCESS
               : refuse_field(req, NVME_SC_INVALID_FIELD, SQE_FLAGS, 0);
}

static void take_first(struct nvmf_target *target, struct nvmf_request *first)
{
    struct nvmf_qpair *qpair = request_qpair(target, first);
    uint16_t status = admit_half(target, first);

    if (status != NVME_SC_SUCCESS) {
        qpair->fused = FUSED_FAILED;
        request_complete(target, first, status);
        return;
    }
    first->command = &first_command;
    request_wait_turn(first);
    qpair->fused = FUSED_WAITS;
    qpair->fused_first = first;
}

static bool is_same_range(const struct nvmf_request *a,
                          const struct nvmf_request *b)
{
    return a->ns == b->ns && io_first_lba(&a->sqe) == io_first_lba(&b->sqe) &&
           io_count_blocks(&a->sqe) == io_count_blocks(&b->sqe);
}

/* The pair's turn has come: get the data of both. */
void fused_begin(struct nvmf_target *target, struct nvmf_request *second)
{
    request_wait_turn(second);
    second->fetch_us = target->now_us; /* for both: only this one is listed */
    get_data(target, second->partner);
}

/* Both commands are there. */
static void take_pair(struct nvmf_target *target, struct nvmf_request *first,
                      struct nvmf_request *second)
{
    uint16_t status = admit_half(target, second);
    uint16_t first_status = NVME_SC_FUSED_FAILED;

    if (status == NVME_SC_SUCCESS && !is_same_range(first, second)) {
        status = refuse_field(second, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
        first_status = refuse_field(first, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    if (status != NVME_SC_SUCCESS) {
        request_resume(first);
        request_complete(target, first, first_status);
        request_complete(target, second, status);
        return;
    }
    second->command = &second_command;
    second->fused_step = FUSED_FETCH;
    first->partner = second;
    second->partner = first;
    first->holds |= HOLDS_PARTNER;
    second->holds |= HOLDS_PARTNER;
    if (!target->arrivals.is_kept || order_arrive(target, second)) {
        fused_begin(target, second);
    }
}

/* A second command without a valid first command. */
static void refuse_second(struct nvmf_target *target,
                          struct nvmf_request *second, enum nvme_status reason)
{
    uint16_t status =
        request_admit(target, request_qpair(target, second), second);

    request_complete(target, second,
                     status != NVME_SC_SUCCESS ? status : (uint16_t)reason);
}

/*
 * A command has arrived that is part of a fused pair, or that follows the first
 * command of one.
 *
 * @return false when it is a command of its own, with which nothing has been
 *         done
 */
bool fused_capsule(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_qpair *qpair = request_qpair(target, req);
    enum fused_state before = (enum fused_state)qpair->fused;
    struct nvmf_request *first = qpair->fused_first;
    bool is_second = req->sqe.fuse == SQE_FUSE_SECOND;

    qpair->fused = FUSED_NONE;
    qpair->fused_first = NULL;
    if (before == FUSED_WAITS && !is_second) {
        request_resume(first);
        request_complete(target, first, NVME_SC_FUSED_MISSING);
    }
    if (qpair->qid == 0 || qpair->state != QPAIR_LIVE) {
        return false;
    }
    if (req->sqe.fuse == SQE_FUSE_FIRST) {
        take_first(target, req);
    } else if (is_second && before == FUSED_WAITS) {
        take_pair(target, first, req);
    } else if (is_second) {
        refuse_second(target, req,
                      before == FUSED_FAILED ? NVME_SC_FUSED_FAILED
                                             : NVME_SC_FUSED_MISSING);
    } else {
        return false;
    }
    return true;
}

/*
 * A namespace is going to be deleted or formatted.  First commands that wait
 * for their second one end now, because a host that never sends the second one
 * would hold up the deletion, and every later one, for ever.
 */
void fused_end_waiting(struct nvmf_target *target, const struct nvmf_ns *ns)
{
    for (uint16_t i = 0; i < NVMF_MAX_QPAIRS; i++) {
        struct nvmf_qpair *qpair = &target->qpair[i];
        struct nvmf_request *first = qpair->fused_first;

        if (qpair->fused == FUSED_WAITS && first->ns == ns) {
            qpair->fused = FUSED_FAILED;
            qpair->fused_first = NULL;
            request_resume(first);
            request_complete(target, first, NVME_SC_FUSED_MISSING);
        }
    }
}

/* The queue pair ends: the second command will not come. */
void fused_drop_first(struct nvmf_target *target, struct nvmf_qpair *qpair)
{
    if (qpair->fused == FUSED_WAITS) {
        qpair->fused = FUSED_NONE;
        request_drop(target, qpair->fused_first);
    }
}
