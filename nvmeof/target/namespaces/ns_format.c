/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Format NVM.
 * Spec: NVM Express Base 1.4 section 5.23.
 */
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/namespaces/ns_manage.h"

enum {
    FORMAT_LBAF_MASK = 0x0f, /* fields of dword 10 of Format NVM */
    FORMAT_MSET_SHIFT = 4,
    FORMAT_PI_SHIFT = 5,
    FORMAT_PIL_SHIFT = 8,
    FORMAT_SES_SHIFT = 9,
    FORMAT_SES_USER_DATA = 1,
    FORMAT_LBAF_HIGH_SHIFT = 12, /* from Base 2.0 */
};

/* Read the format that a Format names. @return false when there is none */
static bool read_format_command(const struct nvmf_target *target,
                                const struct nvmf_request *req,
                                struct nvmf_volume_job *job)
{
    uint32_t cdw10 = req->sqe.cdw10;
    uint8_t type = cdw10 >> FORMAT_PI_SHIFT & DPS_TYPE;
    bool is_first = cdw10 >> FORMAT_PIL_SHIFT & 1;

    *job = (struct nvmf_volume_job){.op = NVMF_VOLUME_FORMAT};
    return ns_read_format(target, cdw10 & FORMAT_LBAF_MASK,
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
            ns_is_too_small(&target->ns[nsid - 1], job)) {
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
        if (ns_is_any_unchangeable(target, ctrl)) {
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
    if (!ns_is_changeable(ns)) {
        return NVME_SC_FORMAT_IN_PROGRESS; /* the host may try again */
    }
    if (ns_is_too_small(ns, job)) {
        return refuse_field(req, NVME_SC_INVALID_FORMAT, SQE_CDW10, 0);
    }
    return NVME_SC_SUCCESS;
}

uint16_t ns_format_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_volume_job job;
    bool is_for_all = req->sqe.nsid == NVME_NSID_ALL;
    uint16_t status = ns_job_wait(target, req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    ASSERT(read_format_command(target, req, &job)); /* ns_format_check() */
    status = check_format(target, req, &job);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    ns_job_begin(target, req, &job, is_for_all);
    pel_note_format_start(target, req);
    if (!is_for_all) {
        ns_change_begin(target, req->sqe.nsid);
        return NVMF_PENDING;
    }
    status = ns_change_next(target, 0);
    if (status != NVMF_PENDING) { /* no namespace is attached */
        pel_note_format_end(target, req, req->sqe.nsid, status);
        target->manager.req = NULL;
        request_resume(req);
    }
    return status;
}
