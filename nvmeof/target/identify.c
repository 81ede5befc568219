/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identify.
 * Spec: NVM Express Base 1.4 section 5.15; Fabrics 1.1 section 4.1.
 *
 * Left out, and refused as an invalid field: lists that belong to namespace
 * management, NVM sets, secondary controllers and I/O command sets.
 */
#include "nvmeof/wire/identify.h"

#include <string.h>

#include "nvmeof/target/internal.h"

static uint16_t build_controller(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    const struct nvmf_config *config = &target->config;
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    bool has_1_4 = config->vs >= 0x00010400;
    bool has_own_nqn = config->discovery_nqn[0] != '\0';
    struct identify_controller id = {
        .vid = config->vid,
        .ssvid = config->ssvid,
        .sn = config->sn,
        .mn = config->mn,
        .fr = config->fr,
        .ieee = {config->ieee[0], config->ieee[1], config->ieee[2]},
        .cmic = CMIC_MULTI_PORT | CMIC_MULTI_CONTROLLER,
        .mdts = NVMF_MDTS,
        .cntlid = ctrl->cntlid,
        .ver = config->vs,
        .ctratt = CTRATT_HOSTID_128 | (has_1_4 ? CTRATT_TBKAS : 0u),
        .aerl = NVMF_MAX_AERS - 1,
        .lpa = LPA_EXTENDED_DATA,
        .kas = KAS_100MS,
        .maxcmd = NVMF_MAX_DEPTH,
        .sgls = ctrl->transport->sgls,
        .icdoff = 0,
        .fcatt = 0, /* dynamic controllers */
        .msdbd = 1,
    };

    if (ctrl->is_discovery) {
        id.cntrltype = has_1_4 ? CNTRLTYPE_DISCOVERY : 0;
        id.oaes = OAES_DISCOVERY_CHANGE;
        id.subnqn = has_own_nqn ? config->discovery_nqn : NVME_DISCOVERY_NQN;
        identify_controller_emit(target->page, &id);
        return NVME_SC_SUCCESS;
    }
    id.cntrltype = has_1_4 ? CNTRLTYPE_IO : 0;
    id.rab = 6;
    id.oaes = OAES_NS_ATTRIBUTE;
    id.acl = 3;
    id.frmw = 2 << 1; /* two slots */
    id.lpa |= LPA_COMMANDS_EFFECTS;
    id.elpe = NVMF_ERROR_LOG_ENTRIES - 1;
    id.wctemp = DEFAULT_WCTEMP_K;
    id.cctemp = DEFAULT_CCTEMP_K;
    id.sqes = 0x66;
    id.cqes = 0x44;
    id.nn = NVMF_MAX_NAMESPACES;
    id.oncs = ONCS_DATASET_MANAGEMENT | ONCS_WRITE_ZEROES | ONCS_SAVE_SELECT |
              ONCS_TIMESTAMP;
    id.vwc = VWC_FLUSH_ALL | (target->has_volatile_cache ? VWC_PRESENT : 0);
    if (ctrl->transport->in_capsule_len != 0) {
        id.sgls |= SGLS_IN_CAPSULE;
    }
    id.subnqn = config->subnqn;
    id.ioccsz = (NVME_SQE_LEN + ctrl->transport->in_capsule_len) / 16;
    id.iorcsz = NVME_CQE_LEN / 16;
    id.power_cw = 2500;
    identify_controller_emit(target->page, &id);
    return NVME_SC_SUCCESS;
}

/* A namespace that could be there but is not: all zeroes. */
static uint16_t build_namespace(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    const struct nvmf_ns *ns = ns_find(target, req->sqe.nsid);

    if (ns == NULL) {
        if (req->sqe.nsid == 0 || req->sqe.nsid > NVMF_MAX_NAMESPACES) {
            return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
        }
        memset(target->page, 0, NVME_IDENTIFY_LEN);
        return NVME_SC_SUCCESS;
    }
    identify_namespace_emit(
        target->page,
        &(struct identify_namespace){
            .size_blocks = ns->geometry.size_blocks,
            .block_shift = ns->geometry.block_shift,
            .nmic = NMIC_SHARED,
            .dlfeat = DLFEAT_READS_ZEROES | DLFEAT_WRITE_ZEROES_DEAC,
            .nsattr = ns->geometry.is_read_only ? NSATTR_WRITE_PROTECTED : 0,
            .nguid = ns->config.nguid,
            .eui64 = ns->config.eui64,
        });
    return NVME_SC_SUCCESS;
}

/* The active namespaces above NSID. */
static uint16_t build_active_list(struct nvmf_target *target,
                                  struct nvmf_request *req)
{
    uint32_t nsid[NVMF_MAX_NAMESPACES];
    uint16_t count = 0;

    if (req->sqe.nsid >= NVME_NSID_ALL - 1) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    for (uint32_t i = req->sqe.nsid; i < NVMF_MAX_NAMESPACES; i++) {
        if (target->ns[i].is_active) {
            nsid[count++] = i + 1;
        }
    }
    identify_ns_list_emit(target->page, nsid, count);
    return NVME_SC_SUCCESS;
}

static uint16_t build_descriptors(struct nvmf_target *target,
                                  struct nvmf_request *req)
{
    const struct nvmf_ns *ns = ns_find(target, req->sqe.nsid);

    if (ns == NULL) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    identify_ns_descriptors_emit(target->page, ns->config.uuid,
                                 ns->config.nguid, ns->config.eui64);
    return NVME_SC_SUCCESS;
}

static const struct {
    uint8_t cns;
    bool is_on_discovery;
    uint16_t (*build)(struct nvmf_target *target, struct nvmf_request *req);
} identify[] = {
    {CNS_NAMESPACE, false, build_namespace},
    {CNS_CONTROLLER, true, build_controller},
    {CNS_ACTIVE_NS_LIST, false, build_active_list},
    {CNS_NS_DESCRIPTORS, false, build_descriptors},
};

/* @return ARRAY_LEN(identify) if there is no such structure here. */
static size_t find(struct nvmf_target *target, const struct nvmf_request *req)
{
    bool is_discovery = request_ctrl(target, req)->is_discovery;
    size_t i = 0;

    while (i < ARRAY_LEN(identify) &&
           (identify[i].cns != (req->sqe.cdw10 & 0xff) ||
            (is_discovery && !identify[i].is_on_discovery))) {
        i++;
    }
    return i;
}

uint16_t identify_check(struct nvmf_target *target, struct nvmf_request *req)
{
    req->data_len = NVME_IDENTIFY_LEN;
    return find(target, req) < ARRAY_LEN(identify)
               ? NVME_SC_SUCCESS
               : refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
}

uint16_t identify_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t status = identify[find(target, req)].build(target, req);

    if (status == NVME_SC_SUCCESS) {
        request_write_data(req, 0, target->page, NVME_IDENTIFY_LEN);
    }
    return status;
}
