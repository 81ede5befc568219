/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of commands that change namespaces: they run one after another, and
 * a namespace is deleted or formatted when no command uses it any more.
 * Spec: NVM Express Base 1.4 section 8.12.
 */
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/namespaces/ns_manage.h"

enum { MANAGE_WAITING_MAX = 2 }; /* commands with buffers of one controller */

bool ns_is_changeable(const struct nvmf_ns *ns)
{
    return ns->state == NS_READY ||
           (ns->state == NS_FORMATTING && ns->volume.has_failed);
}

/* Whether one of the namespaces that a command changes is write-protected. */
bool ns_is_any_protected(struct nvmf_target *target,
                         const struct nvmf_ctrl *active_on)
{
    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        const struct nvmf_ns *ns = ns_find_allocated(target, nsid);

        if (ns != NULL && ns->geometry.is_read_only &&
            (active_on == NULL || ns_is_active(active_on, nsid))) {
            return true;
        }
    }
    return false;
}

/*
 * Whether a namespace is being formatted since before a power cut, so that a
 * command for all namespaces would leave it out.
 *
 * @param active_on  only those that are active there; NULL: all
 */
bool ns_is_any_unchangeable(struct nvmf_target *target,
                            const struct nvmf_ctrl *active_on)
{
    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        const struct nvmf_ns *ns = ns_find_allocated(target, nsid);

        if (ns != NULL && !ns_is_changeable(ns) &&
            (active_on == NULL || ns_is_active(active_on, nsid))) {
            return true;
        }
    }
    return false;
}

uint16_t ns_check_allocated(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    uint32_t nsid = req->sqe.nsid;

    if (nsid == 0 || nsid > NVMF_MAX_NAMESPACES) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    if (ns_find_allocated(target, nsid) == NULL) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    return ana_check_allocated(target, req, nsid);
}

void ns_job_end(struct nvmf_target *target, uint16_t status)
{
    struct ns_manager *manager = &target->manager;
    struct nvmf_request *req = manager->req;
    struct nvmf_request *next;

    manager->req = NULL;
    request_complete(target, req, status);
    while (manager->req == NULL &&
           (next = queue_pop(&manager->waiting)) != NULL) {
        request_restart(target, next);
    }
}

static void start_job(struct nvmf_target *target)
{
    const struct nvmf_volume *volume = &target->config.volume;
    struct ns_manager *manager = &target->manager;

    manager->is_draining = false;
    volume->start(volume->ctx, &manager->job);
}

/* The last command that used a namespace has ended.  @return whether a command
 * that changes the namespace has waited for that */
bool ns_drained(struct nvmf_target *target, const struct nvmf_ns *ns)
{
    struct ns_manager *manager = &target->manager;

    if (!manager->is_draining || ns != &target->ns[manager->job.nsid - 1]) {
        return false;
    }
    start_job(target);
    return true;
}

void ns_change_begin(struct nvmf_target *target, uint32_t nsid)
{
    struct ns_manager *manager = &target->manager;
    struct nvmf_ns *ns = &target->ns[nsid - 1];

    manager->job.nsid = nsid;
    manager->is_draining = true;
    manager->patience = 0;
    if (manager->job.op == NVMF_VOLUME_DELETE) {
        ns_enter(ns, NS_DELETING);
        ns_update_attachments(target, nsid, false);
    } else {
        ns_enter(ns, NS_FORMATTING);
        ns->volume.has_failed = false; /* until the end of this one */
        ns_update_bars(target, nsid);
        ns_hooks.formatting(target, manager->is_for_all ? NVME_NSID_ALL : nsid);
    }
    ns_hooks.refuses(target, ns);
    if (manager->is_draining && ns->users == 0) {
        start_job(target);
    }
}

/* The next namespace of a command for all: allocated (delete) or active. */
static uint32_t next_nsid(struct nvmf_target *target, uint32_t after)
{
    const struct ns_manager *manager = &target->manager;
    const struct nvmf_ctrl *ctrl = request_ctrl(target, manager->req);

    for (uint32_t nsid = after + 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        if (ns_is_changeable(&target->ns[nsid - 1]) &&
            (manager->job.op == NVMF_VOLUME_DELETE ||
             ns_is_active(ctrl, nsid))) {
            return nsid;
        }
    }
    return 0;
}

/* Record that a command has changed namespaces, or has failed to. */
static void record_change(struct nvmf_target *target, uint16_t status,
                          uint32_t nsid)
{
    const struct ns_manager *manager = &target->manager;
    const struct nvmf_request *req = manager->req;

    if (manager->job.op == NVMF_VOLUME_FORMAT) {
        pel_note_format_end(target, req, req->sqe.nsid, status);
    } else if (status == NVME_SC_SUCCESS && manager->is_for_all) {
        pel_note_change_ns(target, req, NULL, NVME_NSID_ALL);
    } else if (status == NVME_SC_SUCCESS) {
        /* What a deleted namespace was is still there. */
        pel_note_change_ns(target, req, &target->ns[nsid - 1], nsid);
    }
}

/*
 * Whether a command for all namespaces may change this one, now that its turn
 * has come.  Hosts may have protected or reserved it, and its ANA state may
 * have changed, while the namespaces before it were changed.  A private
 * namespace may have come from another controller of the host.
 *
 * @return a status, or 0
 */
static uint16_t check_next(struct nvmf_target *target, uint32_t nsid)
{
    const struct nvmf_volume_job *job = &target->manager.job;
    const struct nvmf_ns *ns = &target->ns[nsid - 1];
    struct nvmf_request *req = target->manager.req;
    uint16_t status = ana_check_allocated(target, req, nsid);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (reservation_conflicts(target, request_ctrl(target, req), nsid, true)) {
        return reservation_refuse(req);
    }
    if (ns->geometry.is_read_only) {
        return refuse_status(NVME_SC_NS_WRITE_PROTECTED);
    }
    return job->op == NVMF_VOLUME_FORMAT && ns_is_too_small(ns, job)
               ? refuse_field(req, NVME_SC_INVALID_FORMAT, SQE_CDW10, 0)
               : NVME_SC_SUCCESS;
}

/*
 * Continue with the next namespace.  One that may not be changed ends the
 * command; those before it stay changed.
 *
 * @return NVMF_PENDING, or the status of the command: 0 after the last one
 */
uint16_t ns_change_next(struct nvmf_target *target, uint32_t after)
{
    uint32_t nsid = next_nsid(target, after);
    uint16_t status = nsid != 0 ? check_next(target, nsid) : NVME_SC_SUCCESS;

    if (nsid == 0 || status != NVME_SC_SUCCESS) {
        return status;
    }
    ns_change_begin(target, nsid);
    return NVMF_PENDING;
}

void nvmf_volume_done(struct nvmf_target *target,
                      enum nvmf_volume_result result, uint32_t nsid)
{
    struct ns_manager *manager = &target->manager;
    uint16_t status = ns_result_status(result);

    ASSERT(manager->req != NULL && !manager->is_draining);
    if (manager->job.op != NVMF_VOLUME_CREATE || status == NVME_SC_SUCCESS) {
        ns_load(target, nsid);
        if (manager->job.op != NVMF_VOLUME_FORMAT &&
            target->ns[nsid - 1].state == NS_FREE) {
            ns_hooks.forgotten(target, nsid);
        }
        if (manager->job.op == NVMF_VOLUME_FORMAT ||
            target->ns[nsid - 1].state == NS_FREE) {
            ns_hooks.blocks_gone(target, nsid);
        }
        ns_update_attachments(target, nsid,
                              manager->job.op == NVMF_VOLUME_FORMAT);
    }
    if (manager->job.op == NVMF_VOLUME_DELETE && status == NVME_SC_SUCCESS) {
        ns_hooks.deleted(target, nsid);
    }
    if (manager->job.op == NVMF_VOLUME_CREATE) {
        manager->req->result[0] = status == NVME_SC_SUCCESS ? nsid : 0;
    } else if (status == NVME_SC_SUCCESS && manager->is_for_all) {
        status = ns_change_next(target, nsid);
        if (status == NVMF_PENDING) {
            return;
        }
    }
    record_change(target, status, nsid);
    request_resume(manager->req);
    ns_job_end(target, status);
}

/* Record the end of a Format that a power cut had interrupted. */
static void record_late_format(struct nvmf_target *target, uint32_t nsid)
{
    const struct nvmf_ns *ns = &target->ns[nsid - 1];

    if (ns->state == NS_READY || ns->volume.has_failed) {
        pel_note_format_end(target, NULL, nsid, NVME_SC_SUCCESS);
    }
}

void nvmf_target_ns_loaded(struct nvmf_target *target, uint32_t nsid)
{
    const struct ns_manager *manager = &target->manager;
    bool was_formatting;

    if (manager->req != NULL && manager->job.op != NVMF_VOLUME_CREATE &&
        !manager->is_detaching && manager->job.nsid == nsid) {
        return; /* A command changes it, and loads it at its end. */
    }
    was_formatting = target->ns[nsid - 1].state == NS_FORMATTING;
    ns_load(target, nsid);
    if (was_formatting) {
        record_late_format(target, nsid);
        ns_hooks.blocks_gone(target, nsid);
    }
    ns_update_attachments(target, nsid, true);
}

/* How many commands of a controller hold buffers and wait for their turn. */
static unsigned int count_waiting(const struct nvmf_target *target,
                                  uint8_t ctrl)
{
    unsigned int count = 0;

    for (const struct nvmf_request *req = target->manager.waiting.head;
         req != NULL; req = req->next) {
        count += req->owns_buffers && target->qpair[req->qpair].ctrl == ctrl;
    }
    return count;
}

/*
 * Whether a command has to wait for its turn, or to be repeated.
 *
 * The current command may wait until commands that use a namespace have ended,
 * and these may need data buffers.  So few of a controller's commands that hold
 * buffers may wait here: fewer than the buffers that its other commands can
 * always have.
 *
 * @return a status, NVMF_PENDING when it waits, 0 when it can begin
 */
uint16_t ns_wait_turn(struct nvmf_target *target, struct nvmf_request *req)
{
    struct ns_manager *manager = &target->manager;

    if (manager->req == NULL) {
        return NVME_SC_SUCCESS;
    }
    if (req->owns_buffers &&
        count_waiting(target, request_qpair(target, req)->ctrl) ==
            MANAGE_WAITING_MAX) {
        return NVME_SC_COMMAND_INTERRUPTED; /* the host may try again */
    }
    request_wait_turn(req);
    queue_push(&manager->waiting, req);
    return NVMF_PENDING;
}

/* The same for commands that a sanitize operation forbids, which may have begun
 * while they waited. */
uint16_t ns_job_wait(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t status = ns_wait_turn(target, req);

    return status != NVME_SC_SUCCESS ? status : sanitize_status(target);
}

void ns_job_begin(struct nvmf_target *target, struct nvmf_request *req,
                  const struct nvmf_volume_job *job, bool is_for_all)
{
    struct ns_manager *manager = &target->manager;

    request_wait_media(req);
    manager->req = req;
    manager->job = *job;
    manager->job.host = ctrl_host_number(request_ctrl(target, req));
    manager->is_for_all = is_for_all;
}
