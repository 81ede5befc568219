/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespace Attachment.
 * Spec: NVM Express Base 1.4 section 5.19.
 */
#include "nvmeof/target/namespaces/ns_manage.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/identify.h"

enum {
    SELECT_ATTACH = 0,
    SELECT_DETACH = 1,
};

uint16_t ns_attachment_check(struct nvmf_target *target,
                             struct nvmf_request *req)
{
    if (!ns_are_manageable(target)) {
        return refuse_field(req, NVME_SC_INVALID_OPCODE, SQE_OPCODE, 0);
    }
    if ((req->sqe.cdw10 & SELECT_MASK) > SELECT_DETACH) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    if (req->sqe.nsid == NVME_NSID_ALL) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    req->data_len = NVME_IDENTIFY_LEN;
    return ns_check_allocated(target, req);
}

static bool has_host(const struct nvmf_volume_host *hosts, uint16_t count,
                     const struct nvmf_ctrl *ctrl)
{
    for (uint16_t i = 0; i < count; i++) {
        if (strncmp(hosts[i].hostnqn, ctrl->hostnqn, NVME_NQN_FIELD) == 0) {
            return true;
        }
    }
    return false;
}

/* Read the controller list; @return a status, or 0 */
static uint16_t read_hosts(struct nvmf_target *target,
                           const struct nvmf_request *req, bool attach,
                           struct nvmf_volume_host *hosts, uint16_t *count)
{
    const struct nvmf_ns *ns = &target->ns[req->sqe.nsid - 1];
    uint8_t data[CTRL_LIST_FIRST + 2 * NVMF_MAX_HOSTS];
    uint32_t last = 0;
    uint16_t listed;

    request_read_data(req, 0, data, sizeof(data));
    listed = get_le16(data + CTRL_LIST_COUNT);
    *count = 0;
    if (listed == 0 || listed > NVMF_MAX_HOSTS) {
        return refuse_status(NVME_SC_CONTROLLER_LIST_INVALID);
    }
    for (uint16_t i = 0; i < listed; i++) {
        uint16_t cntlid = get_le16(data + CTRL_LIST_FIRST + 2 * i);
        uint8_t index = ctrl_find(target, cntlid);
        const struct nvmf_ctrl *ctrl;

        if (index == NO_CTRL ||
            !ctrl_is(&target->ctrl[index], CTRL_IS_MEMBER) || cntlid <= last) {
            return refuse_status(NVME_SC_CONTROLLER_LIST_INVALID);
        }
        last = cntlid;
        ctrl = &target->ctrl[index];
        if (attach && ns_is_active(ctrl, req->sqe.nsid)) {
            return refuse_status(NVME_SC_NS_ALREADY_ATTACHED);
        }
        if (!attach && !ns_is_active(ctrl, req->sqe.nsid)) {
            return refuse_status(NVME_SC_NS_NOT_ATTACHED);
        }
        if (!has_host(hosts, *count, ctrl)) {
            hosts[(*count)++] =
                (struct nvmf_volume_host){ctrl->hostnqn, ctrl->portid};
        }
    }
    return attach && ns->volume.is_private && listed > 1
               ? refuse_status(NVME_SC_NS_IS_PRIVATE)
               : NVME_SC_SUCCESS;
}

/* Whether a controller's host has just lost the namespace. */
static bool has_lost(const struct nvmf_target *target,
                     const struct nvmf_ctrl *ctrl, const struct nvmf_ns *ns,
                     const void *arg)
{
    (void)target;
    (void)arg;
    return !ns_is_active(ctrl, ns->config.nsid);
}

/*
 * Whether a command is waited for.  The first command of a fused pair is left
 * alone: when the second one comes, both are refused.  So are reservation
 * commands: they use no blocks, they are refused when they have their keys, and
 * a Preempt and Abort that waits as well would wait for its own end.
 */
static bool is_waited_for(const struct nvmf_target *target,
                          const struct nvmf_request *req,
                          const struct nvmf_ns *ns)
{
    (void)ns;
    return target->qpair[req->qpair].fused_first != req &&
           !reservation_is_command(req->sqe.opcode);
}

/*
 * Wait until the hosts that have lost the namespace do not use it any more.
 * Another host may get it next, whose blocks they must neither overwrite nor
 * read.
 *
 * @return a status, or NVMF_PENDING
 */
static uint16_t wait_for_detached(struct nvmf_target *target,
                                  struct nvmf_request *req)
{
    static const struct await_rule rule = {
        .concerns_ctrl = has_lost,
        .concerns = is_waited_for,
        .status = NVME_SC_INVALID_FIELD | NVME_STATUS_DNR,
    };
    const struct nvmf_volume_job job = {.nsid = req->sqe.nsid};
    struct nvmf_ns *ns = &target->ns[req->sqe.nsid - 1];

    if (!await_commands(target, ns, &rule)) {
        return NVME_SC_SUCCESS;
    }
    ns_job_begin(target, req, &job, false);
    target->manager.is_detaching = true;
    target->manager.patience = 0;
    return NVMF_PENDING;
}

/* The commands have ended that were waited for. */
void ns_awaited_ended(struct nvmf_target *target, const struct nvmf_ns *ns)
{
    struct ns_manager *manager = &target->manager;

    if (manager->is_detaching && ns == &target->ns[manager->job.nsid - 1]) {
        manager->is_detaching = false;
        request_resume(manager->req);
        ns_job_end(target, NVME_SC_SUCCESS);
    }
}

/*
 * Whether a reservation forbids the change.  A namespace whose reservations are
 * lost may be attached: nobody reads or writes it before a host registers, and
 * if the table of namespaces is lost, too, it is attached to no host that
 * could.
 */
static bool is_reserved(struct nvmf_target *target,
                        const struct nvmf_request *req, bool attach)
{
    uint32_t nsid = req->sqe.nsid;

    return reservation_conflicts(target, request_ctrl(target, req), nsid,
                                 true) &&
           !(attach && reservation_is_closed(&target->reservation[nsid - 1]));
}

uint16_t ns_attachment_execute(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    const struct nvmf_volume *volume = &target->config.volume;
    bool attach = (req->sqe.cdw10 & SELECT_MASK) == SELECT_ATTACH;
    struct nvmf_volume_host hosts[NVMF_MAX_HOSTS];
    uint16_t count;
    uint16_t status = ns_job_wait(target, req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    status = ns_check_allocated(target, req); /* it may have been deleted */
    if (status == NVME_SC_SUCCESS && is_reserved(target, req, attach)) {
        status = reservation_refuse(req);
    }
    if (status == NVME_SC_SUCCESS) {
        status = read_hosts(target, req, attach, hosts, &count);
    }
    if (status == NVME_SC_SUCCESS) {
        status = ns_result_status(
            volume->attach(volume->ctx, req->sqe.nsid, hosts, count, attach));
    }
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    ns_update_attachments(target, req->sqe.nsid, false);
    return attach ? NVME_SC_SUCCESS : wait_for_detached(target, req);
}
