/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespaces: which commands may use one, and which hosts hear of a change.
 */
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/namespaces/namespaces.h"

/*
 * Which commands of a controller ns_check_closely() may refuse for a
 * namespace, or execute in another way because its blocks have metadata, as
 * bits of nvmf_command.flags: COMMAND_NEEDS_NS for all of them. Whoever changes
 * something that this depends on calls ns_update_bars().
 */
static uint8_t ns_bars(const struct nvmf_target *target,
                       const struct nvmf_ctrl *ctrl, uint32_t nsid)
{
    return ns_is_active(ctrl, nsid) && target->ns[nsid - 1].state == NS_READY &&
                   !target->ns[nsid - 1].geometry.has_metadata &&
                   ana_is_reachable(target, ctrl, nsid) &&
                   !reservation_conflicts(target, ctrl, nsid, true)
               ? 0
               : COMMAND_NEEDS_NS;
}

/* A namespace has changed, or to whom it is attached. */
void ns_update_bars(struct nvmf_target *target, uint32_t nsid)
{
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        struct nvmf_ctrl *ctrl = &target->ctrl[i];

        ctrl->ns_bars[nsid - 1] = ns_bars(target, ctrl, nsid);
    }
}

/* The active namespaces of a controller have changed. */
void ns_update_ctrl_bars(const struct nvmf_target *target,
                         struct nvmf_ctrl *ctrl)
{
    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        ctrl->ns_bars[nsid - 1] = ns_bars(target, ctrl, nsid);
    }
}

/* Whether an active namespace takes commands now.  @return a status, or 0 */
uint16_t ns_check_state(struct nvmf_target *target, struct nvmf_request *req,
                        uint32_t nsid)
{
    uint16_t status = ana_check_allocated(target, req, nsid);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (target->ns[nsid - 1].state == NS_SANITIZING) {
        return sanitize_status(target);
    }
    return target->ns[nsid - 1].state == NS_READY
               ? NVME_SC_SUCCESS
               : NVME_SC_FORMAT_IN_PROGRESS; /* the host may try again */
}

/*
 * The same for the namespace of a command.  Commands of reservations use no
 * blocks, so they are executed after a Format has failed: a host that has not
 * registered could otherwise neither register nor format it again.
 */
uint16_t ns_check_own_state(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    uint16_t status = ns_check_state(target, req, req->sqe.nsid);

    return status == NVME_SC_FORMAT_IN_PROGRESS &&
                   target->ns[req->sqe.nsid - 1].volume.has_failed &&
                   target->qpair[req->qpair].qid != 0 &&
                   reservation_is_command(req->sqe.opcode)
               ? NVME_SC_SUCCESS
               : status;
}

/* The row for a namespace whose blocks have metadata. */
static const struct nvmf_command *metadata_row(const struct nvmf_target *target,
                                               const struct nvmf_request *req)
{
    const struct nvmf_ns *ns = &target->ns[req->sqe.nsid - 1];
    const struct nvmf_command *row;

    if (target->qpair[req->qpair].qid == 0) {
        return req->command; /* Admin commands have other opcodes. */
    }
    row = ns->command_set->metadata_row[req->sqe.opcode];
    return row != NULL ? row : req->command;
}

/* As ns_check(), for a command that may have to be refused. */
uint16_t ns_check_closely(struct nvmf_target *target, struct nvmf_request *req)
{
    uint32_t nsid = req->sqe.nsid;
    uint16_t status;

    if (nsid == 0 || nsid > NVMF_MAX_NAMESPACES) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    if (!ns_is_active(request_ctrl(target, req), nsid)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    status = ns_check_own_state(target, req);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    status = reservation_admit(target, req);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (target->ns[nsid - 1].geometry.has_metadata) {
        req->command = metadata_row(target, req);
    }
    ns_use(&target->ns[nsid - 1], req);
    return NVME_SC_SUCCESS;
}

/*
 * Check that a command may read a namespace that its NSID does not name: a
 * source of Copy, which holds it right after this check.
 *
 * @param ns  set to the namespace
 * @return a status, or 0
 */
uint16_t ns_check_source(struct nvmf_target *target, struct nvmf_request *req,
                         uint32_t nsid, struct nvmf_ns **ns)
{
    uint16_t status;

    if (!ns_is_valid(nsid)) {
        return refuse_status(NVME_SC_INVALID_NS);
    }
    *ns = ns_find_active(target, request_ctrl(target, req), nsid);
    if (*ns == NULL) {
        return refuse_status(NVME_SC_INVALID_FIELD);
    }
    status = ns_check_state(target, req, nsid);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    return reservation_conflicts(target, request_ctrl(target, req), nsid, false)
               ? reservation_refuse(req)
               : NVME_SC_SUCCESS;
}

/* Add a namespace to a controller's Changed Namespace List, and report it. */
void ns_tell_changed(struct nvmf_target *target, struct nvmf_ctrl *ctrl,
                     uint32_t nsid)
{
    uint32_t i = nsid - 1;

    if (ctrl_is(ctrl, CTRL_HEARS_NVM)) {
        ctrl->changed_ns[i / 32] |= BIT(i % 32);
        event_raise(target, ctrl, CTRL_EVENT_NS_CHANGED);
    }
}
