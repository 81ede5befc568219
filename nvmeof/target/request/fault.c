/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault rules for NVMe commands.  Without rules each command costs one load and
 * a branch, twice.
 */
#include "nvmeof/target/fault.h"

#include <string.h>

#include "nvmeof/target/request/request.h"

static bool queue_matches(const struct nvmf_fault *fault, uint16_t qid)
{
    switch (fault->queue) {
    case NVMF_FAULT_ADMIN_QUEUE:
        return qid == 0;
    case NVMF_FAULT_IO_QUEUE:
        return qid != 0;
    case NVMF_FAULT_QID:
        return qid == fault->qid;
    default:
        return true;
    }
}

static bool lba_matches(const struct nvmf_fault *fault,
                        const struct nvmf_request *req)
{
    uint64_t first = (uint64_t)req->sqe.cdw11 << 32 | req->sqe.cdw10;
    uint64_t last = first + (req->sqe.cdw12 & 0xffff);

    return !fault->has_lba ||
           ((req->command->flags & COMMAND_HAS_LBA) != 0 &&
            first <= fault->last_lba && fault->first_lba <= last);
}

static bool fault_matches(struct nvmf_target *target,
                          const struct nvmf_fault *fault,
                          const struct nvmf_request *req)
{
    const struct nvmf_qpair *qpair = request_qpair(target, req);
    int32_t cntlid = qpair->ctrl == NO_CTRL ? NVMF_FAULT_ANY
                                            : target->ctrl[qpair->ctrl].cntlid;

    return queue_matches(fault, qpair->qid) &&
           (fault->opcode == NVMF_FAULT_ANY ||
            fault->opcode == req->sqe.opcode) &&
           (fault->nsid == NVMF_FAULT_ANY || fault->nsid == req->sqe.nsid) &&
           (fault->cntlid == NVMF_FAULT_ANY || fault->cntlid == cntlid) &&
           lba_matches(fault, req);
}

/* The first rule, of those that refuse or of the others, that fires. */
static const struct nvmf_fault *find_firing(struct nvmf_target *target,
                                            const struct nvmf_request *req,
                                            bool refuses)
{
    for (uint16_t i = 0; i < target->fault_count; i++) {
        struct nvmf_fault *fault = &target->fault[i];

        if (!fault->is_off && (fault->action == NVMF_FAULT_STATUS) == refuses &&
            fault_matches(target, fault, req) &&
            fault_trigger_event(&fault->trigger)) {
            return fault;
        }
    }
    return NULL;
}

uint16_t fault_status(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_fault *fault = find_firing(target, req, true);

    if (fault == NULL) {
        return NVME_SC_SUCCESS;
    }
    req->held_by = fault->id;
    return fault->status;
}

bool fault_hold_response(struct nvmf_target *target, struct nvmf_request *req,
                         uint16_t status)
{
    const struct nvmf_fault *fault;

    /* One rule decides about a command; it may have refused this one. */
    if (req->held_by != 0) {
        return false;
    }
    fault = find_firing(target, req, false);
    if (fault == NULL) {
        return false;
    }
    req->held_status = status;
    req->held_by = fault->id;
    req->held_until_us = fault->action == NVMF_FAULT_DROP
                             ? UINT64_MAX
                             : target->now_us + fault->delay_us;
    request_enter(req, NVMF_REQUEST_HELD);
    queue_push(&target->held, req);
    return true;
}

uint64_t fault_release_held(struct nvmf_target *target)
{
    struct nvmf_queue all = target->held;
    struct nvmf_request *req;
    uint64_t next_us = UINT64_MAX;

    target->held = (struct nvmf_queue){0};
    while ((req = queue_pop(&all)) != NULL) {
        if (req->held_until_us <= target->now_us) {
            request_answer_held(target, req);
        } else {
            queue_push(&target->held, req);
            next_us = MIN(next_us, req->held_until_us);
        }
    }
    return next_us;
}

static struct nvmf_fault *find_fault(struct nvmf_target *target, uint32_t id)
{
    for (uint16_t i = 0; i < target->fault_count; i++) {
        if (target->fault[i].id == id) {
            return &target->fault[i];
        }
    }
    return NULL;
}

bool nvmf_fault_add(struct nvmf_target *target, const struct nvmf_fault *fault)
{
    if (fault->id == 0 || target->fault_count == NVMF_FAULTS ||
        find_fault(target, fault->id) != NULL) {
        return false;
    }
    target->fault[target->fault_count++] = *fault;
    target->answers_watched |= ANSWERS_FAULTS;
    return true;
}

static void release_held_by(struct nvmf_target *target, uint32_t id)
{
    for (struct nvmf_request *req = target->held.head; req != NULL;
         req = req->next) {
        if (req->held_by == id) {
            req->held_until_us = 0;
        }
    }
}

bool nvmf_fault_remove(struct nvmf_target *target, uint32_t id)
{
    struct nvmf_fault *fault = find_fault(target, id);

    if (fault == NULL) {
        return false;
    }
    target->fault_count--;
    memmove(fault, fault + 1,
            (size_t)(&target->fault[target->fault_count] - fault) *
                sizeof(*fault));
    if (target->fault_count == 0) {
        target->answers_watched &= (uint8_t)~ANSWERS_FAULTS;
    }
    release_held_by(target, id);
    return true;
}

bool nvmf_fault_turn(struct nvmf_target *target, uint32_t id, bool is_on)
{
    struct nvmf_fault *fault = find_fault(target, id);

    if (fault == NULL) {
        return false;
    }
    fault->is_off = !is_on;
    if (!is_on) {
        release_held_by(target, id);
    }
    return true;
}

const struct nvmf_fault *nvmf_fault_at(const struct nvmf_target *target,
                                       uint16_t index)
{
    return index < target->fault_count ? &target->fault[index] : NULL;
}
