/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Namespace Management: a namespace is created, or one or all are deleted.
 * Spec: NVM Express Base 1.4 section 5.20.
 */
#include "nvmeof/target/namespaces/ns_manage.h"

#include "lib/bytes.h"
#include "nvmeof/wire/identify.h"

enum {
    SELECT_CREATE = 0,
    SELECT_DELETE = 1,
    CSI_SHIFT = 24, /* of dword 11 */
    FLBAS_FORMAT = 0x0f,
    FLBAS_FORMAT_HIGH = 0x60, /* from Base 2.0: bits 5:4 of the index */
};

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
        if (command_set_of(req->sqe.cdw11 >> CSI_SHIFT) == NULL) {
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
        !ns_read_format(target, flbas & FLBAS_FORMAT, flbas & FLBAS_EXTENDED,
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
    ns_job_begin(target, req, &job, false);
    volume->start(volume->ctx, &target->manager.job);
    return NVMF_PENDING;
}

static uint16_t delete_ns(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_volume_job job = {.op = NVMF_VOLUME_DELETE};
    bool is_for_all = req->sqe.nsid == NVME_NSID_ALL;
    uint16_t status = is_for_all ? ana_check_all(target, req, false)
                                 : ns_check_allocated(target, req);

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
    if (is_for_all ? ns_is_any_unchangeable(target, NULL)
                   : !ns_is_changeable(&target->ns[req->sqe.nsid - 1])) {
        return NVME_SC_FORMAT_IN_PROGRESS; /* the host may try again */
    }
    ns_job_begin(target, req, &job, is_for_all);
    if (!is_for_all) {
        ns_change_begin(target, req->sqe.nsid);
        return NVMF_PENDING;
    }
    status = ns_change_next(target, 0);
    if (status != NVMF_PENDING) { /* there is no namespace */
        target->manager.req = NULL;
        request_resume(req);
    }
    return status;
}

uint16_t ns_management_execute(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    uint16_t status = ns_job_wait(target, req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    return (req->sqe.cdw10 & SELECT_MASK) == SELECT_CREATE
               ? create_ns(target, req)
               : delete_ns(target, req);
}
