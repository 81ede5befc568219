/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands that change namespaces: Namespace Management, Namespace Attachment,
 * Format NVM.  They run one after another.  A namespace is deleted or formatted
 * when no command uses it any more.
 * Spec: NVM Express Base 1.4 sections 5.19, 5.20, 5.23 and 8.12.
 *
 * Attachments belong to hosts, by NQN, since a dynamic controller ends with its
 * association.  So all controllers of a host follow an attachment that names
 * one of them, except for private namespaces.
 */
#include "nvmeof/target/internal.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/identify.h"

enum {
    SELECT_MASK = 0xf, /* the field SEL of dword 10 */
    SELECT_CREATE = 0,
    SELECT_DELETE = 1,
    SELECT_ATTACH = 0,
    SELECT_DETACH = 1,
    CSI_SHIFT = 24, /* of dword 11 */

    MANAGE_WAITING_MAX = 2, /* commands with buffers of one controller */

    FLBAS_FORMAT = 0x0f,
    FLBAS_EXTENDED = 0x10,    /* metadata follows the data of its block */
    FLBAS_FORMAT_HIGH = 0x60, /* from Base 2.0: bits 5:4 of the index */
    DPS_TYPE = 0x07,
    DPS_FIRST = 0x08, /* protection information is in the first 8 bytes */
    PI_TYPE_MAX = 3,

    FORMAT_LBAF_MASK = 0x0f, /* fields of dword 10 of Format NVM */
    FORMAT_MSET_SHIFT = 4,
    FORMAT_PI_SHIFT = 5,
    FORMAT_PIL_SHIFT = 8,
    FORMAT_SES_SHIFT = 9,
    FORMAT_SES_USER_DATA = 1,
    FORMAT_LBAF_HIGH_SHIFT = 12, /* from Base 2.0 */
};

const uint8_t ns_format_shifts[NS_FORMATS] = {9, 12, 9, 12};

bool ns_are_manageable(const struct nvmf_target *target)
{
    return target->config.volume.capacity != NULL;
}

uint8_t ns_format_count(const struct nvmf_target *target)
{
    const struct nvmf_volume *volume = &target->config.volume;
    struct nvmf_volume_capacity capacity;

    if (!ns_are_manageable(target)) {
        return 1;
    }
    volume->capacity(volume->ctx, &capacity);
    return capacity.has_metadata ? NS_FORMATS : NS_FORMATS_PLAIN;
}

uint8_t ns_flbas(const struct nvmf_ns *ns)
{
    uint8_t format = ns->geometry.block_shift == ns_format_shifts[1];

    return ns->geometry.has_metadata
               ? (uint8_t)((NS_FORMATS_PLAIN + format) | FLBAS_EXTENDED)
               : format;
}

uint8_t ns_dps(const struct nvmf_ns *ns)
{
    return (uint8_t)(ns->geometry.pi_type |
                     (ns->geometry.pi_is_first ? DPS_FIRST : 0));
}

/*
 * Check what Format NVM and a creation say of the format.
 *
 * @param dps  the type, and DPS_FIRST
 * @param job  its format is set
 */
static bool read_format(const struct nvmf_target *target, uint8_t format,
                        bool is_extended, uint8_t dps,
                        struct nvmf_volume_job *job)
{
    uint8_t type = dps & DPS_TYPE;
    bool has_metadata = format >= NS_FORMATS_PLAIN;

    if (format >= ns_format_count(target) || type > PI_TYPE_MAX ||
        (has_metadata ? !is_extended : type != 0)) {
        return false;
    }
    job->block_shift = ns_format_shifts[format];
    job->has_metadata = has_metadata;
    job->pi_type = type;
    job->pi_is_first = type != 0 && (dps & DPS_FIRST);
    return true;
}

uint16_t ns_result_status(enum nvmf_volume_result result)
{
    static const uint16_t status[NVMF_VOLUME_RESULTS] = {
        [NVMF_VOLUME_OK] = NVME_SC_SUCCESS,
        [NVMF_VOLUME_NO_CAPACITY] =
            NVME_SC_NS_INSUFFICIENT_CAPACITY | NVME_STATUS_DNR,
        [NVMF_VOLUME_NO_IDENTIFIER] =
            NVME_SC_NS_IDENTIFIER_UNAVAILABLE | NVME_STATUS_DNR,
        [NVMF_VOLUME_ALREADY] = NVME_SC_NS_ALREADY_ATTACHED | NVME_STATUS_DNR,
        [NVMF_VOLUME_PRIVATE] = NVME_SC_NS_IS_PRIVATE | NVME_STATUS_DNR,
        [NVMF_VOLUME_NOT_ATTACHED] = NVME_SC_NS_NOT_ATTACHED | NVME_STATUS_DNR,
        [NVMF_VOLUME_NO_HOST] = NVME_SC_INTERNAL | NVME_STATUS_DNR,
        [NVMF_VOLUME_TOO_OFTEN] = NVME_SC_COMMAND_INTERRUPTED,
        [NVMF_VOLUME_FAILED] = NVME_SC_INTERNAL,
    };

    return status[result];
}

/* ---- What the target knows of a namespace. */

static bool is_attached_elsewhere(const struct nvmf_target *target,
                                  const struct nvmf_ctrl *own, uint32_t nsid)
{
    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        if (&target->ctrl[i] != own && ns_is_active(&target->ctrl[i], nsid)) {
            return true;
        }
    }
    return false;
}

/* Whether a namespace that exists is attached to this controller. */
static bool wants_attachment(const struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl, uint32_t nsid)
{
    const struct nvmf_volume *volume = &target->config.volume;

    if (volume->is_attached == NULL) {
        return true;
    }
    return volume->is_attached(volume->ctx, nsid, ctrl->hostnqn,
                               ctrl->portid) &&
           !(target->ns[nsid - 1].volume.is_private &&
             is_attached_elsewhere(target, ctrl, nsid));
}

/* Whether a namespace exists and is not being deleted. */
static bool is_attachable(const struct nvmf_ns *ns)
{
    return ns->state == NS_READY || ns->state == NS_FORMATTING ||
           ns->state == NS_SANITIZING;
}

/* Set the active namespaces of a new controller. */
void ns_attach_new(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    memset(ctrl->active_ns, 0, sizeof(ctrl->active_ns));
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES && !ctrl->is_discovery; i++) {
        if (is_attachable(&target->ns[i]) &&
            wants_attachment(target, ctrl, i + 1)) {
            ctrl->active_ns[i / 32] |= BIT(i % 32);
        }
    }
    ns_update_ctrl_bars(target, ctrl);
}

/*
 * Attach a namespace to the controllers that should have it and detach it from
 * all others, and tell the hosts.
 *
 * @param has_changed  the namespace itself has changed: tell every host that
 *   has it
 */
static void update_attachments(struct nvmf_target *target, uint32_t nsid,
                               bool has_changed)
{
    uint32_t i = nsid - 1;
    bool exists = is_attachable(&target->ns[i]);
    bool was_attached = false;

    for (uint8_t c = 0; c < NVMF_MAX_HOSTS; c++) {
        struct nvmf_ctrl *ctrl = &target->ctrl[c];
        bool was_active = ns_is_active(ctrl, nsid);
        bool is_active;

        if (!ctrl_is(ctrl, CTRL_IS_MEMBER)) {
            continue;
        }
        is_active = exists && wants_attachment(target, ctrl, nsid);
        if (is_active) {
            ctrl->active_ns[i / 32] |= BIT(i % 32);
        } else {
            ctrl->active_ns[i / 32] &= ~BIT(i % 32);
        }
        if (is_active != was_active) {
            ana_attachment_changed(target, ctrl, nsid);
        }
        was_attached |= is_active && !was_active;
        if (is_active != was_active || (is_active && has_changed)) {
            ns_tell_changed(target, ctrl, nsid);
        }
    }
    if (was_attached) {
        lba_status_attached(target, nsid);
    }
    ns_update_bars(target, nsid);
}

/*
 * A controller takes no commands any more.  A private namespace that was
 * attached to it goes to another controller of its host, which may have
 * connected before the drive knew that the association of this one was lost.
 */
void ns_detach_all(struct nvmf_target *target, struct nvmf_ctrl *ctrl)
{
    uint32_t active[ARRAY_LEN(ctrl->active_ns)];

    memcpy(active, ctrl->active_ns, sizeof(active));
    memset(ctrl->active_ns, 0, sizeof(ctrl->active_ns));
    ns_update_ctrl_bars(target, ctrl);
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        if ((active[i / 32] & BIT(i % 32)) && target->ns[i].volume.is_private) {
            update_attachments(target, i + 1, false);
        }
    }
}

/* Read what the volume knows of a namespace. */
void ns_load(struct nvmf_target *target, uint32_t nsid)
{
    const struct nvmf_volume *volume = &target->config.volume;
    struct nvmf_ns *ns = &target->ns[nsid - 1];

    if (!volume->describe(volume->ctx, nsid, &ns->volume)) {
        ns_enter(ns, NS_FREE);
        return;
    }
    ns->config.nsid = nsid;
    ns->anagrpid = ns->volume.anagrpid;
    ASSERT(ns->anagrpid >= 1 && ns->anagrpid <= NVMF_ANA_GROUPS);
    ns->config.media_ns = ns->volume.media_ns;
    memcpy(ns->config.uuid, ns->volume.uuid, sizeof(ns->config.uuid));
    memcpy(ns->config.nguid, ns->volume.nguid, sizeof(ns->config.nguid));
    ns_enter(ns, ns->volume.is_erasing          ? NS_FORMATTING
                 : sanitize_status(target) != 0 ? NS_SANITIZING
                                                : NS_READY);
    target->media.geometry(target->media.ctx, ns->config.media_ns,
                           &ns->geometry);
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
        lba_status_forget(target, nsid);
    }
    update_attachments(target, nsid, true);
}

/* Whether a namespace can be deleted or formatted.  After a Format that has
 * failed these two commands are all that it takes. */
static bool is_changeable(const struct nvmf_ns *ns)
{
    return ns->state == NS_READY ||
           (ns->state == NS_FORMATTING && ns->volume.has_failed);
}

/* ---- The order of commands. */

static void manage_end(struct nvmf_target *target, uint16_t status)
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

/* The last command that used a namespace has ended. */
void ns_drained(struct nvmf_target *target, const struct nvmf_ns *ns)
{
    struct ns_manager *manager = &target->manager;

    if (manager->is_draining && ns == &target->ns[manager->job.nsid - 1]) {
        start_job(target);
    } else if (target->sanitize.req != NULL) {
        sanitize_drained(target);
    }
}

/* Take a namespace out of use, then delete or format it. */
static void begin_change(struct nvmf_target *target, uint32_t nsid)
{
    struct ns_manager *manager = &target->manager;
    struct nvmf_ns *ns = &target->ns[nsid - 1];

    manager->job.nsid = nsid;
    manager->is_draining = true;
    manager->patience = 0;
    if (manager->job.op == NVMF_VOLUME_DELETE) {
        ns_enter(ns, NS_DELETING);
        update_attachments(target, nsid, false);
    } else {
        ns_enter(ns, NS_FORMATTING);
        ns_update_bars(target, nsid);
        self_test_formatting(target,
                             manager->is_for_all ? NVME_NSID_ALL : nsid);
    }
    fused_end_waiting(target, ns);
    patience_abort_waiting(target, ns);
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
        if (is_changeable(&target->ns[nsid - 1]) &&
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

/* Whether a namespace is smaller than one block of the size that a Format
 * gives it. */
static bool is_too_small(const struct nvmf_ns *ns,
                         const struct nvmf_volume_job *job)
{
    uint64_t bytes = ns->geometry.size_blocks << ns->geometry.block_shift;

    return bytes >> job->block_shift == 0;
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
    return job->op == NVMF_VOLUME_FORMAT && is_too_small(ns, job)
               ? refuse_field(req, NVME_SC_INVALID_FORMAT, SQE_CDW10, 0)
               : NVME_SC_SUCCESS;
}

/*
 * Continue with the next namespace.  One that may not be changed ends the
 * command; those before it stay changed.
 *
 * @return NVMF_PENDING, or the status of the command: 0 after the last one
 */
static uint16_t go_on(struct nvmf_target *target, uint32_t after)
{
    uint32_t nsid = next_nsid(target, after);
    uint16_t status = nsid != 0 ? check_next(target, nsid) : NVME_SC_SUCCESS;

    if (nsid == 0 || status != NVME_SC_SUCCESS) {
        return status;
    }
    begin_change(target, nsid);
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
            reservation_forget(target, nsid);
        }
        if (manager->job.op == NVMF_VOLUME_FORMAT ||
            target->ns[nsid - 1].state == NS_FREE) {
            lba_status_forget(target, nsid);
        }
        update_attachments(target, nsid, manager->job.op == NVMF_VOLUME_FORMAT);
    }
    if (manager->job.op == NVMF_VOLUME_DELETE && status == NVME_SC_SUCCESS) {
        self_test_ns_removed(target, nsid);
    }
    if (manager->job.op == NVMF_VOLUME_CREATE) {
        manager->req->result[0] = status == NVME_SC_SUCCESS ? nsid : 0;
    } else if (status == NVME_SC_SUCCESS && manager->is_for_all) {
        status = go_on(target, nsid);
        if (status == NVMF_PENDING) {
            return;
        }
    }
    record_change(target, status, nsid);
    request_resume(manager->req);
    manage_end(target, status);
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
static uint16_t manage_wait(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    uint16_t status = ns_wait_turn(target, req);

    return status != NVME_SC_SUCCESS ? status : sanitize_status(target);
}

static void manage_begin(struct nvmf_target *target, struct nvmf_request *req,
                         const struct nvmf_volume_job *job, bool is_for_all)
{
    struct ns_manager *manager = &target->manager;

    request_wait_media(req);
    manager->req = req;
    manager->job = *job;
    manager->job.host = ctrl_host_number(request_ctrl(target, req));
    manager->is_for_all = is_for_all;
}

/* ---- Namespace Management. */

uint16_t ns_management_check(struct nvmf_target *target,
                             struct nvmf_request *req)
{
    uint32_t select = req->sqe.cdw10 & SELECT_MASK;

    if (!ns_are_manageable(target)) {
        return refuse_field(req, NVME_SC_INVALID_OPCODE, SQE_OPCODE, 0);
    }
    if (select > SELECT_DELETE) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    if (select == SELECT_CREATE) {
        if (req->sqe.cdw11 >> CSI_SHIFT != CSI_NVM) {
            return refuse_field(req, NVME_SC_COMMAND_SET_UNSUPPORTED,
                                SQE_CDW11 + 3, 0);
        }
        req->data_len = NVME_IDENTIFY_LEN;
    }
    return NVME_SC_SUCCESS;
}

/* Check the data of a creation, and make the job from it. */
static uint16_t read_creation(const struct nvmf_target *target,
                              const struct nvmf_request *req,
                              struct nvmf_volume_job *job)
{
    bool is_ana_supported = ana_is_supported(target);
    uint8_t data[ID_NS_LBAF0];
    uint64_t size, capacity;
    uint32_t anagrpid;
    uint8_t flbas;

    request_read_data(req, 0, data, sizeof(data));
    size = get_le64(data + ID_NS_NSZE);
    capacity = get_le64(data + ID_NS_NCAP);
    flbas = data[ID_NS_FLBAS];
    *job = (struct nvmf_volume_job){.op = NVMF_VOLUME_CREATE};
    if (flbas & FLBAS_FORMAT_HIGH ||
        data[ID_NS_DPS] & ~(DPS_TYPE | DPS_FIRST) ||
        !read_format(target, flbas & FLBAS_FORMAT, flbas & FLBAS_EXTENDED,
                     data[ID_NS_DPS], job)) {
        return refuse_status(NVME_SC_INVALID_FORMAT);
    }
    if (size == 0 || capacity > size || data[ID_NS_NMIC] & ~NMIC_SHARED ||
        get_le16(data + ID_NS_NVMSETID) != 0 ||
        get_le16(data + ID_NS_ENDGID) > ENDURANCE_GROUP_ID) {
        return refuse_status(NVME_SC_INVALID_FIELD);
    }
    anagrpid = get_le32(data + ID_NS_ANAGRPID);
    if (anagrpid > (is_ana_supported ? NVMF_ANA_GROUPS : 0u)) {
        return refuse_status(NVME_SC_ANA_GROUP_INVALID);
    }
    if (capacity < size) {
        return refuse_status(NVME_SC_THIN_PROVISIONING);
    }
    if (size > (uint64_t)INT64_MAX >> job->block_shift) {
        return refuse_status(NVME_SC_NS_INSUFFICIENT_CAPACITY);
    }
    job->size_bytes = size << job->block_shift;
    job->is_private = !(data[ID_NS_NMIC] & NMIC_SHARED);
    job->anagrpid = (uint8_t)(anagrpid != 0 ? anagrpid : 1);
    return NVME_SC_SUCCESS;
}

static uint16_t create_ns(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_volume *volume = &target->config.volume;
    struct nvmf_volume_job job;
    uint16_t status = read_creation(target, req, &job);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    manage_begin(target, req, &job, false);
    volume->start(volume->ctx, &target->manager.job);
    return NVMF_PENDING;
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
static bool is_any_unchangeable(struct nvmf_target *target,
                                const struct nvmf_ctrl *active_on)
{
    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        const struct nvmf_ns *ns = ns_find_allocated(target, nsid);

        if (ns != NULL && !is_changeable(ns) &&
            (active_on == NULL || ns_is_active(active_on, nsid))) {
            return true;
        }
    }
    return false;
}

/* Check that an NSID is allocated, and that this port reaches it. */
static uint16_t check_allocated(struct nvmf_target *target,
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

static uint16_t delete_ns(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_volume_job job = {.op = NVMF_VOLUME_DELETE};
    bool is_for_all = req->sqe.nsid == NVME_NSID_ALL;
    uint16_t status = is_for_all ? ana_check_all(target, req, false)
                                 : check_allocated(target, req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (is_for_all
            ? reservation_conflicts_any(target, request_ctrl(target, req), true)
            : reservation_conflicts(target, request_ctrl(target, req),
                                    req->sqe.nsid, true)) {
        return reservation_refuse(req);
    }
    if (is_for_all ? ns_is_any_protected(target, NULL)
                   : target->ns[req->sqe.nsid - 1].geometry.is_read_only) {
        return refuse_status(NVME_SC_NS_WRITE_PROTECTED);
    }
    if (is_for_all ? is_any_unchangeable(target, NULL)
                   : !is_changeable(&target->ns[req->sqe.nsid - 1])) {
        return NVME_SC_FORMAT_IN_PROGRESS; /* the host may try again */
    }
    manage_begin(target, req, &job, is_for_all);
    if (!is_for_all) {
        begin_change(target, req->sqe.nsid);
        return NVMF_PENDING;
    }
    status = go_on(target, 0);
    if (status != NVMF_PENDING) { /* there is no namespace */
        target->manager.req = NULL;
        request_resume(req);
    }
    return status;
}

uint16_t ns_management_execute(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    uint16_t status = manage_wait(target, req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    return (req->sqe.cdw10 & SELECT_MASK) == SELECT_CREATE
               ? create_ns(target, req)
               : delete_ns(target, req);
}

/* ---- Namespace Attachment. */

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
    return check_allocated(target, req);
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
    manage_begin(target, req, &job, false);
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
        manage_end(target, NVME_SC_SUCCESS);
    }
}

uint16_t ns_attachment_execute(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    const struct nvmf_volume *volume = &target->config.volume;
    bool attach = (req->sqe.cdw10 & SELECT_MASK) == SELECT_ATTACH;
    struct nvmf_volume_host hosts[NVMF_MAX_HOSTS];
    uint16_t count;
    uint16_t status = manage_wait(target, req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    status = check_allocated(target, req); /* it may have been deleted */
    if (status == NVME_SC_SUCCESS &&
        reservation_conflicts(target, request_ctrl(target, req), req->sqe.nsid,
                              true)) {
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
    update_attachments(target, req->sqe.nsid, false);
    return attach ? NVME_SC_SUCCESS : wait_for_detached(target, req);
}

/* ---- Format NVM. */

/* Read the format that a Format names. @return false when there is none */
static bool read_format_command(const struct nvmf_target *target,
                                const struct nvmf_request *req,
                                struct nvmf_volume_job *job)
{
    uint32_t cdw10 = req->sqe.cdw10;
    uint8_t type = cdw10 >> FORMAT_PI_SHIFT & DPS_TYPE;
    bool is_first = cdw10 >> FORMAT_PIL_SHIFT & 1;

    *job = (struct nvmf_volume_job){.op = NVMF_VOLUME_FORMAT};
    return read_format(target, cdw10 & FORMAT_LBAF_MASK,
                       cdw10 >> FORMAT_MSET_SHIFT & 1,
                       (uint8_t)(type | (is_first ? DPS_FIRST : 0)), job);
}

uint16_t ns_format_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint32_t cdw10 = req->sqe.cdw10;
    struct nvmf_volume_job job;

    if (!ns_are_manageable(target)) {
        return refuse_field(req, NVME_SC_INVALID_OPCODE, SQE_OPCODE, 0);
    }
    if ((cdw10 >> FORMAT_SES_SHIFT & 7) > FORMAT_SES_USER_DATA) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10 + 1, 1);
    }
    if ((cdw10 & FORMAT_LBAF_MASK) >= ns_format_count(target) ||
        (cdw10 >> FORMAT_LBAF_HIGH_SHIFT & 3) != 0) {
        return refuse_field(req, NVME_SC_INVALID_FORMAT, SQE_CDW10, 0);
    }
    if (!read_format_command(target, req, &job)) {
        bool is_separate = (cdw10 & FORMAT_LBAF_MASK) >= NS_FORMATS_PLAIN &&
                           !(cdw10 >> FORMAT_MSET_SHIFT & 1);

        return refuse_field(req, NVME_SC_INVALID_FORMAT, SQE_CDW10,
                            is_separate ? FORMAT_MSET_SHIFT : FORMAT_PI_SHIFT);
    }
    return NVME_SC_SUCCESS;
}

static bool is_any_too_small(struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl,
                             const struct nvmf_volume_job *job)
{
    for (uint32_t nsid = 1; nsid <= NVMF_MAX_NAMESPACES; nsid++) {
        if (ns_is_active(ctrl, nsid) &&
            is_too_small(&target->ns[nsid - 1], job)) {
            return true;
        }
    }
    return false;
}

/* Check the namespaces that a Format names, when its turn has come. */
static uint16_t check_format(struct nvmf_target *target,
                             struct nvmf_request *req,
                             const struct nvmf_volume_job *job)
{
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    const struct nvmf_ns *ns;
    uint32_t nsid = req->sqe.nsid;
    uint16_t status;

    if (nsid == NVME_NSID_ALL
            ? reservation_conflicts_any(target, ctrl, false)
            : reservation_conflicts(target, ctrl, nsid, true)) {
        return reservation_refuse(req);
    }
    if (nsid == NVME_NSID_ALL) {
        status = ana_check_all(target, req, true);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
        if (ns_is_any_protected(target, ctrl)) {
            return refuse_status(NVME_SC_NS_WRITE_PROTECTED);
        }
        if (is_any_unchangeable(target, ctrl)) {
            return NVME_SC_FORMAT_IN_PROGRESS; /* the host may try again */
        }
        return is_any_too_small(target, ctrl, job)
                   ? refuse_field(req, NVME_SC_INVALID_FORMAT, SQE_CDW10, 0)
                   : NVME_SC_SUCCESS;
    }
    if (nsid == 0 || nsid > NVMF_MAX_NAMESPACES) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    ns = ns_find_active(target, ctrl, nsid);
    if (ns == NULL) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    status = ana_check_allocated(target, req, nsid);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (ns->geometry.is_read_only) {
        return refuse_status(NVME_SC_NS_WRITE_PROTECTED);
    }
    if (!is_changeable(ns)) {
        return NVME_SC_FORMAT_IN_PROGRESS; /* the host may try again */
    }
    if (is_too_small(ns, job)) {
        return refuse_field(req, NVME_SC_INVALID_FORMAT, SQE_CDW10, 0);
    }
    return NVME_SC_SUCCESS;
}

uint16_t ns_format_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_volume_job job;
    bool is_for_all = req->sqe.nsid == NVME_NSID_ALL;
    uint16_t status = manage_wait(target, req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    ASSERT(read_format_command(target, req, &job)); /* ns_format_check() */
    status = check_format(target, req, &job);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    manage_begin(target, req, &job, is_for_all);
    pel_note_format_start(target, req);
    if (!is_for_all) {
        begin_change(target, req->sqe.nsid);
        return NVMF_PENDING;
    }
    status = go_on(target, 0);
    if (status != NVMF_PENDING) { /* no namespace is attached */
        pel_note_format_end(target, req, req->sqe.nsid, status);
        target->manager.req = NULL;
        request_resume(req);
    }
    return status;
}

/* ---- Namespace Write Protection. */

uint16_t ns_protect(struct nvmf_target *target, uint32_t nsid,
                    enum nvmf_protection protection)
{
    const struct nvmf_volume *volume = &target->config.volume;
    enum nvmf_volume_result result =
        volume->protect(volume->ctx, nsid, protection);

    if (result == NVMF_VOLUME_OK) {
        ns_load(target, nsid);
        update_attachments(target, nsid, true);
    }
    return ns_result_status(result);
}
