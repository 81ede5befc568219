/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sanitize: the command, its log page, and what commands get while an operation
 * is in progress or has failed.  The owner of the operations seam erases the
 * medium.
 * Spec: NVM Express Base 1.4 sections 5.24, 5.14.1.16.2 and 8.15.
 *
 * Left out: Crypto Erase, because data on the medium is not encrypted;
 * persistent memory regions.
 */
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"
#include "nvmeof/target/admin/admin.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/log.h"

enum { /* fields of dword 10 */
       SANACT_MASK = 0x7,
       AUSE = 0x8,
       OWPASS_SHIFT = 4,
       OIPBP = 0x100,
       NO_DEALLOCATE = 0x200,
       PASSES_MAX = 16, /* OWPASS 0 */
};

static struct nvmf_sanitize_now sanitize_now(const struct nvmf_target *target)
{
    const struct nvmf_operations *operations = &target->config.operations;
    struct nvmf_sanitize_now now;

    operations->sanitize_now(operations->ctx, &now);
    return now;
}

/* Set the status of commands that are refused, by what the drive is doing. */
void sanitize_load(struct nvmf_target *target)
{
    struct nvmf_sanitize_now now;

    if (!sanitize_exists(target)) {
        return;
    }
    now = sanitize_now(target);
    target->sanitize.status = 0;
    if (now.outcome == NVMF_SANITIZE_IN_PROGRESS) {
        /* The host may try again. */
        target->sanitize.status = NVME_SC_SANITIZE_IN_PROGRESS;
    } else if (now.is_blocking) {
        target->sanitize.status = refuse_status(NVME_SC_SANITIZE_FAILED);
    }
}

/* Take all namespaces out of use, or put them back. */
static void set_namespaces(struct nvmf_target *target, enum ns_state from,
                           enum ns_state to)
{
    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        struct nvmf_ns *ns = &target->ns[nsid - 1];

        if (ns->state == from) {
            ns_enter(ns, to);
            ns_update_bars(target, nsid);
            if (to == NS_SANITIZING) {
                fused_end_waiting(target, ns);
                patience_abort_waiting(target, ns);
            }
        }
    }
}

/* ---- The command. */

static struct nvmf_sanitize parse_job(const struct nvme_sqe *sqe)
{
    uint32_t passes = sqe->cdw10 >> OWPASS_SHIFT & 0xf;

    return (struct nvmf_sanitize){
        .action = (enum nvmf_sanitize_action)(sqe->cdw10 & SANACT_MASK),
        .allows_exit = sqe->cdw10 & AUSE,
        .passes = (uint8_t)(passes != 0 ? passes : PASSES_MAX),
        .inverts = sqe->cdw10 & OIPBP,
        .keeps_blocks = sqe->cdw10 & NO_DEALLOCATE,
        .pattern = sqe->cdw11,
        .cdw10 = sqe->cdw10,
    };
}

uint16_t sanitize_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint32_t action = req->sqe.cdw10 & SANACT_MASK;

    if (!sanitize_exists(target)) {
        return refuse_field(req, NVME_SC_INVALID_OPCODE, SQE_OPCODE, 0);
    }
    if (action != NVMF_SANITIZE_EXIT_FAILURE &&
        action != NVMF_SANITIZE_BLOCK_ERASE &&
        action != NVMF_SANITIZE_OVERWRITE) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    return NVME_SC_SUCCESS;
}

/*
 * Whether a restricted operation (AUSE 0) has failed.  Then nobody may read
 * what was to be erased, and only another restricted operation ends this.
 */
static bool is_condemned(const struct nvmf_sanitize_now *now)
{
    return now->is_blocking && !now->job.allows_exit;
}

/* Whether a Format keeps the operation from starting.
 * @param also_failed  one that has failed does, too */
static bool is_any_formatting(const struct nvmf_target *target,
                              bool also_failed)
{
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        if (target->ns[i].state == NS_FORMATTING &&
            (also_failed || !target->ns[i].volume.has_failed)) {
            return true;
        }
    }
    return false;
}

/* Check what the drive is doing. */
static uint16_t check_state(struct nvmf_target *target,
                            const struct nvmf_sanitize *job)
{
    struct nvmf_sanitize_now now = sanitize_now(target);

    if (target->sanitize.req != NULL ||
        now.outcome == NVMF_SANITIZE_IN_PROGRESS) {
        return NVME_SC_SANITIZE_IN_PROGRESS; /* the host may try again */
    }
    if (is_condemned(&now) &&
        (job->action == NVMF_SANITIZE_EXIT_FAILURE || job->allows_exit)) {
        return refuse_status(NVME_SC_SANITIZE_FAILED);
    }
    return NVME_SC_SUCCESS;
}

/* Whether a reservation forbids the command, on any namespace.
 * @param also_closed  one of which nothing is known but that it is lost, too */
static bool is_reserved(struct nvmf_target *target,
                        const struct nvmf_request *req, bool also_closed)
{
    for (uint32_t nsid = 1; nsid <= NVMF_RESERVATION_NAMESPACES; nsid++) {
        if (reservation_conflicts(target, request_ctrl(target, req), nsid,
                                  true) &&
            (also_closed ||
             !reservation_is_closed(&target->reservation[nsid - 1]))) {
            return true;
        }
    }
    return false;
}

/*
 * Check all namespaces, also those that are not attached.  After a restricted
 * operation has failed, only this command is left: no host can attach or format
 * a namespace, end its write protection or register.  So what no host could end
 * does not count then: write protection of any kind, a closed reservation in
 * which nobody has registered, and a failed Format.  The contents that they
 * protect were to be erased by the operation that has failed.
 */
static uint16_t check_namespaces(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    struct nvmf_sanitize_now now = sanitize_now(target);
    bool counts = !is_condemned(&now);

    if (is_reserved(target, req, counts)) {
        return reservation_refuse(req);
    }
    if (counts && ns_is_any_protected(target, NULL)) {
        return refuse_status(NVME_SC_NS_WRITE_PROTECTED);
    }
    return is_any_formatting(target, counts) ? NVME_SC_FORMAT_IN_PROGRESS
                                             : NVME_SC_SUCCESS;
}

static uint16_t exit_failure(struct nvmf_target *target)
{
    const struct nvmf_operations *operations = &target->config.operations;

    if (!operations->exit_sanitize_failure(operations->ctx)) {
        return NVME_SC_INTERNAL;
    }
    sanitize_load(target);
    set_namespaces(target, NS_SANITIZING, NS_READY);
    return NVME_SC_SUCCESS;
}

static bool is_drained(const struct nvmf_target *target)
{
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        if (target->ns[i].users != 0) {
            return false;
        }
    }
    return true;
}

/* An event of an earlier operation is not reported any more. */
static void forget_events(struct nvmf_target *target)
{
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        uint16_t bit = BIT(CTRL_EVENT_SANITIZE_COMPLETED);

        target->ctrl[i].events_pending &= (uint16_t)~bit;
        target->ctrl[i].events_masked &= (uint16_t)~bit;
    }
}

/* No command uses a namespace any more.  @return the command's status */
static uint16_t start_operation(struct nvmf_target *target)
{
    const struct nvmf_operations *operations = &target->config.operations;
    uint16_t status = ns_result_status(
        operations->start_sanitize(operations->ctx, &target->sanitize.job));

    if (status == NVME_SC_SUCCESS) {
        pel_note_sanitize_start(target);
        return status;
    }
    sanitize_load(target); /* the state before the command is valid again */
    if (sanitize_status(target) == 0) {
        set_namespaces(target, NS_SANITIZING, NS_READY);
    }
    return status;
}

void sanitize_drained(struct nvmf_target *target)
{
    struct nvmf_request *req = target->sanitize.req;

    if (is_drained(target)) {
        target->sanitize.req = NULL;
        request_resume(req);
        request_complete(target, req, start_operation(target));
    }
}

uint16_t sanitize_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_sanitize job = parse_job(&req->sqe);
    uint16_t status = check_state(target, &job);

    if (status == NVME_SC_SUCCESS && firmware_is_pending(target)) {
        return refuse_status(NVME_SC_FIRMWARE_NEEDS_SUBSYSTEM_RESET);
    }
    if (status == NVME_SC_SUCCESS && firmware_is_committing(target)) {
        /* The commit may activate an image, and then Sanitize is refused. */
        return NVME_SC_COMMAND_INTERRUPTED;
    }
    if (status == NVME_SC_SUCCESS) {
        status = ns_wait_turn(target, req);
    }
    if (status == NVME_SC_SUCCESS && job.action == NVMF_SANITIZE_EXIT_FAILURE) {
        return exit_failure(target);
    }
    if (status == NVME_SC_SUCCESS) {
        status = check_namespaces(target, req);
    }
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    target->sanitize.job = job;
    target->sanitize.cntlid = request_ctrl(target, req)->cntlid;
    target->sanitize.status = NVME_SC_SANITIZE_IN_PROGRESS;
    forget_events(target);
    self_test_sanitizing(target);
    set_namespaces(target, NS_READY, NS_SANITIZING);
    if (is_drained(target)) {
        return start_operation(target);
    }
    target->sanitize.req = req;
    target->sanitize.patience = 0;
    request_wait_media(req);
    return NVMF_PENDING;
}

/* The fields SPROG and SSTAT of the log page. */
static void status_fields(const struct nvmf_sanitize_now *now,
                          uint16_t *progress, uint16_t *status)
{
    bool is_running = now->outcome == NVMF_SANITIZE_IN_PROGRESS;
    bool is_overwrite = now->job.action == NVMF_SANITIZE_OVERWRITE;
    uint32_t passes = is_overwrite ? now->passes : 0u;

    *progress =
        (uint16_t)(is_running ? MIN(now->progress, SANITIZE_NO_PROGRESS - 1)
                              : SANITIZE_NO_PROGRESS);
    *status = (uint16_t)((uint32_t)now->outcome |
                         passes << SANITIZE_STATUS_PASSES_SHIFT |
                         (now->is_erased ? SANITIZE_STATUS_ERASED : 0u));
}

static void record_end(struct nvmf_target *target)
{
    struct nvmf_sanitize_now now = sanitize_now(target);
    uint16_t progress, status;

    status_fields(&now, &progress, &status);
    pel_note_sanitize_end(target, progress, status);
}

void nvmf_sanitize_ended(struct nvmf_target *target)
{
    sanitize_load(target);
    record_end(target);
    for (uint32_t nsid = 1;
         sanitize_status(target) == 0 && nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        lba_status_forget(target, nsid);
    }
    if (sanitize_status(target) == 0) {
        set_namespaces(target, NS_SANITIZING, NS_READY);
    }
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        struct nvmf_ctrl *ctrl = &target->ctrl[i];

        if (ctrl_is(ctrl, CTRL_IS_MEMBER) &&
            ctrl->cntlid == target->sanitize.cntlid) {
            event_raise(target, ctrl, CTRL_EVENT_SANITIZE_COMPLETED);
        }
    }
}

/* ---- The log page. */

void log_build_sanitize(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t part)
{
    struct nvmf_sanitize_now now = sanitize_now(target);
    uint8_t *page = target->page;
    uint16_t progress, status;

    (void)ctrl;
    (void)part;
    memset(page, 0, LOG_SANITIZE_LEN);
    status_fields(&now, &progress, &status);
    put_le16(page + SANITIZE_PROGRESS, progress);
    put_le16(page + SANITIZE_STATUS, status);
    put_le32(page + SANITIZE_CDW10, now.job.cdw10);
    put_le32(page + SANITIZE_OVERWRITE_S,
             now.seconds[NVMF_SANITIZE_OVERWRITE_TIME]);
    put_le32(page + SANITIZE_ERASE_S, now.seconds[NVMF_SANITIZE_ERASE_TIME]);
    put_le32(page + SANITIZE_CRYPTO_S, SANITIZE_NO_ESTIMATE);
    put_le32(page + SANITIZE_OVERWRITE_KEEP_S,
             now.seconds[NVMF_SANITIZE_OVERWRITE_KEEP_TIME]);
    put_le32(page + SANITIZE_ERASE_KEEP_S,
             now.seconds[NVMF_SANITIZE_ERASE_KEEP_TIME]);
    put_le32(page + SANITIZE_CRYPTO_KEEP_S, SANITIZE_NO_ESTIMATE);
}
