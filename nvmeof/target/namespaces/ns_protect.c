/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Setting the write protection of a namespace: feature 84h.
 * Spec: NVM Express Base 1.4 sections 5.21.1.28 and 8.19.
 *
 * Success means that the contents of that moment are durable, and that no write
 * follows.  So a command that protects a namespace refuses new writes at once,
 * waits for those that the drive has accepted before, commits the volatile
 * write cache, and only then saves the protection.  If one of these steps
 * fails, the connection ends, or the host loses the namespace, the namespace is
 * as it was: after a power cut no namespace is protected whose contents were
 * not committed.
 *
 * Such commands for the same namespace are executed one after another.
 */
#include "nvmeof/target/namespaces/ns_manage.h"

/* Whether a Format lets the protection be set.  After one that has failed it
 * can be ended: a lost record protects all namespaces, also this one. */
bool ns_takes_protection(const struct nvmf_ns *ns, uint32_t protection)
{
    return protection == NVMF_PROTECTION_NONE ? ns_is_changeable(ns)
                                              : ns->state == NS_READY;
}

/* The Compare of a fused pair counts as well, because the Write waits for the
 * Compare's data. */
static bool is_write(const struct nvmf_target *target,
                     const struct nvmf_request *req, const struct nvmf_ns *ns)
{
    (void)target;
    return req->ns == ns &&
           (req->command->flags & COMMAND_WRITES || req->holds & HOLDS_PARTNER);
}

static const struct await_rule writes = {
    .concerns = is_write,
    .status = NVME_SC_NS_WRITE_PROTECTED | NVME_STATUS_DNR,
};

static uint16_t set_protection(struct nvmf_target *target, uint32_t nsid,
                               enum nvmf_protection protection)
{
    const struct nvmf_volume *volume = &target->config.volume;
    enum nvmf_volume_result result =
        volume->protect(volume->ctx, nsid, protection);

    if (result == NVMF_VOLUME_OK) {
        ns_load(target, nsid);
        ns_update_attachments(target, nsid, true);
    }
    return ns_result_status(result);
}

static uint16_t save_protection(struct nvmf_target *target,
                                const struct nvmf_ns *ns,
                                enum nvmf_protection protection)
{
    return ns->volume.protection == protection
               ? NVME_SC_SUCCESS
               : set_protection(target, ns->config.nsid, protection);
}

/* Whether the host may still set the protection: while its command waited, it
 * may have lost the namespace, or reset its controller.
 * @return a status, or 0 */
static uint16_t check_host(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);

    if (req->epoch != ctrl->resets) {
        return NVME_SC_ABORT_REQUESTED;
    }
    return ns_is_active(ctrl, req->sqe.nsid)
               ? NVME_SC_SUCCESS
               : refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
}

/* The writes have ended: commit the cache, then save. */
static uint16_t go_on(struct nvmf_target *target, struct nvmf_request *req,
                      enum nvmf_protection protection)
{
    struct media_io io = {
        .op = MEDIA_FLUSH,
        .ns = req->ns->config.media_ns,
    };

    req->steps = 2; /* execute() is called again after the flush */
    return req->progress == 0 ? request_media(target, req, &io)
                              : save_protection(target, req->ns, protection);
}

/*
 * Set the protection of a command's namespace, which takes commands and may be
 * changed.
 *
 * @return a status, or NVMF_PENDING
 */
uint16_t ns_protect_execute(struct nvmf_target *target,
                            struct nvmf_request *req,
                            enum nvmf_protection protection)
{
    struct nvmf_ns *ns = &target->ns[req->sqe.nsid - 1];
    uint16_t status = check_host(target, req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (ns->protecting == req) {
        return go_on(target, req, protection);
    }
    if (ns->protecting != NULL) {
        request_wait_turn(req);
        queue_push(&target->protecting, req);
        return NVMF_PENDING;
    }
    if (protection == NVMF_PROTECTION_NONE) {
        return save_protection(target, ns, protection);
    }
    ns_use(ns, req);
    ns->protecting = req;
    req->holds |= HOLDS_PROTECTION;
    ns->geometry.is_read_only = true;
    if (await_commands(target, ns, &writes)) {
        await_push(target, req);
        return NVMF_PENDING;
    }
    return go_on(target, req, protection);
}

/* @return a command that waits to protect this namespace, or NULL */
static struct nvmf_request *take_waiting(struct nvmf_target *target,
                                         const struct nvmf_ns *ns)
{
    for (struct nvmf_request *req = target->protecting.head; req != NULL;
         req = req->next) {
        if (req->sqe.nsid == ns->config.nsid) {
            return queue_take(&target->protecting, req->qpair, false,
                              req->sqe.cid);
        }
    }
    return NULL;
}

/* The command ends.  If it has failed, the namespace is as it was before. */
void ns_protect_end(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_ns *ns = req->ns;

    req->holds &= (uint8_t)~HOLDS_PROTECTION;
    ns->protecting = NULL;
    target->media.geometry(target->media.ctx, ns->config.media_ns,
                           &ns->geometry);
    while (ns->protecting == NULL && (req = take_waiting(target, ns)) != NULL) {
        request_restart(target, req);
    }
}
