/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identify.
 * Spec: NVM Express Base 2.0 section 5.17.  What is newer than the target's
 * level is left out by level.c.
 *
 * Left out, and refused as an invalid field: NVM sets, secondary controllers.
 */
#include "nvmeof/wire/identify.h"

#include <string.h>

#include "lib/t10_pi.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"
#include "nvmeof/target/admin/admin.h"
#include "nvmeof/target/logs/logs.h"
#include "nvmeof/target/base/level.h"
#include "nvmeof/wire/log.h"

enum {
    CSI_SHIFT = 24,   /* bit position of CSI in CDW11 */
    CNTID_SHIFT = 16, /* bit position of CNTID in CDW10 */
};

/* The fields that belong to namespace management. */
static void add_management(const struct nvmf_target *target,
                           struct identify_controller *id)
{
    const struct nvmf_volume *volume = &target->config.volume;
    struct nvmf_volume_capacity capacity;

    if (!ns_are_manageable(target)) {
        return;
    }
    volume->capacity(volume->ctx, &capacity);
    id->oacs |= OACS_FORMAT | OACS_NS_MANAGEMENT;
    id->ctratt |= CTRATT_NS_GRANULARITY | CTRATT_ENDURANCE_GROUPS;
    id->endgidmax = ENDURANCE_GROUP_ID;
    id->tnvmcap = capacity.total_bytes;
    id->unvmcap = capacity.free_bytes;
    id->mnan = NVMF_MAX_NAMESPACES;
    id->fna = 0; /* a Format and an erasure concern the namespaces named */
    id->nwpc = NWPC_WRITE_PROTECT | NWPC_UNTIL_POWER_CYCLE;
}

/* The fields that belong to Asymmetric Namespace Access. */
static void add_ana(const struct nvmf_target *target,
                    struct identify_controller *id)
{
    id->cmic |= CMIC_ANA;
    id->oaes |= OAES_ANA_CHANGE;
    id->mnan = NVMF_MAX_NAMESPACES;
    id->anatt = NVMF_ANATT_S;
    id->anacap = ANACAP_STATES | ANACAP_ID_IS_FIXED;
    if (ns_are_manageable(target)) {
        id->anacap |= ANACAP_ID_ON_CREATE;
    }
    id->anagrpmax = NVMF_ANA_GROUPS;
    id->nanagrpid = NVMF_ANA_GROUPS;
}

/* The fields that belong to operations in the background. */
static void add_operations(const struct nvmf_target *target,
                           struct identify_controller *id)
{
    const struct nvmf_operations *operations = &target->config.operations;

    if (self_test_exists(target)) {
        id->oacs |= OACS_SELF_TEST;
        id->edstt = operations->extended_minutes(operations->ctx);
        id->dsto = DSTO_ONE;
    }
    if (firmware_exists(target)) {
        id->oacs |= OACS_FIRMWARE;
        id->fwug = FWUG_4096;
    }
    id->sanicap = sanitize_capabilities(target);
}

static uint16_t build_controller(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    const struct nvmf_config *config = &target->config;
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);
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
        .ctratt = CTRATT_HOSTID_128 | CTRATT_TBKAS,
        .aerl = NVMF_MAX_AERS - 1,
        .lpa = LPA_EXTENDED_DATA | LPA_SUPPORTED_PAGES,
        .kas = KAS_100MS,
        .maxcmd = NVMF_MAX_DEPTH,
        .sgls = ctrl->transport->sgls,
        .icdoff = 0,
        .fcatt = 0, /* the controller model is dynamic */
        .msdbd = 1,
    };

    if (ctrl->is_discovery) {
        id.cntrltype = CNTRLTYPE_DISCOVERY;
        id.oaes = OAES_DISCOVERY_CHANGE;
        id.subnqn = config->discovery_nqn;
        identify_controller_emit(target->page, &id);
        return NVME_SC_SUCCESS;
    }
    id.cntrltype = CNTRLTYPE_IO;
    id.nvmsr = NVMSR_STORAGE_DEVICE;
    id.mec = config->has_bmc ? MEC_SMBUS : 0;
    id.rab = 6;
    id.oaes = OAES_NS_ATTRIBUTE | OAES_LBA_STATUS;
    id.oacs = OACS_GET_LBA_STATUS;
    id.acl = 3;
    id.frmw = firmware_capabilities(target);
    id.lpa |= LPA_COMMANDS_EFFECTS | LPA_PERSISTENT_EVENT |
              (telemetry_exists(target) ? LPA_TELEMETRY : 0u);
    id.pels = 1; /* PEL_PAGE_MAX is less */
    id.elpe = NVMF_ERROR_LOG_ENTRIES - 1;
    id.wctemp = DEFAULT_WCTEMP_K;
    id.cctemp = DEFAULT_CCTEMP_K;
    id.sqes = 0x66;
    id.cqes = 0x44;
    id.nn = NVMF_MAX_NAMESPACES;
    id.oncs = ONCS_COMPARE | ONCS_DATASET_MANAGEMENT | ONCS_WRITE_ZEROES |
              ONCS_SAVE_SELECT | ONCS_RESERVATIONS | ONCS_TIMESTAMP |
              ONCS_VERIFY | ONCS_COPY |
              (target->can_mark ? ONCS_WRITE_UNCORRECTABLE : 0);
    id.fuses = FUSES_COMPARE_AND_WRITE;
    id.acwu = FUSED_MAX_BLOCKS - 1;
    id.ocfs = OCFS_FORMAT_0 | OCFS_FORMAT_2;
    id.vwc = VWC_FLUSH_ALL | (target->has_volatile_cache ? VWC_PRESENT : 0);
    if (ctrl->transport->in_capsule_len != 0) {
        id.sgls |= SGLS_IN_CAPSULE;
    }
    id.subnqn = config->subnqn;
    id.ioccsz = (NVME_SQE_LEN + ctrl->transport->in_capsule_len) / 16;
    id.iorcsz = NVME_CQE_LEN / 16;
    id.power_cw = 2500;
    add_management(target, &id);
    add_ana(target, &id);
    add_operations(target, &id);
    identify_controller_emit(target->page, &id);
    return NVME_SC_SUCCESS;
}

/*
 * Find the namespace that NSID names; NULL if NSID is valid but inactive.
 *
 * @return a status when NSID is invalid
 */
static uint16_t find_namespace(struct nvmf_target *target,
                               struct nvmf_request *req,
                               const struct nvmf_ns **ns)
{
    *ns = ns_find_active(target, request_ctrl(target, req), req->sqe.nsid);
    if (*ns == NULL &&
        (req->sqe.nsid == 0 || req->sqe.nsid > NVMF_MAX_NAMESPACES)) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    return NVME_SC_SUCCESS;
}

typedef void namespace_emit(uint8_t *buf, const struct identify_namespace *id);

/* What all namespaces have in common. */
static struct identify_namespace common_fields(const struct nvmf_target *target)
{
    struct identify_namespace id = {
        .formats = ns_format_count(target),
        .dlfeat = DLFEAT_READS_ZEROES | DLFEAT_WRITE_ZEROES_DEAC,
    };

    for (uint8_t i = 0; i < id.formats; i++) {
        id.block_shift[i] = ns_format_shifts[i];
        id.metadata_len[i] = i >= NS_FORMATS_PLAIN ? T10_PI_LEN : 0;
    }
    if (id.formats > NS_FORMATS_PLAIN) {
        id.mc = MC_EXTENDED;
        id.dpc = DPC_TYPES | DPC_FIRST | DPC_LAST;
    }
    return id;
}

/* Blocks of an aligned range that a write changes as one; 0: one block. */
static uint16_t atomic_blocks(const struct media_geometry *geometry)
{
    if (geometry->atomic_shift <= geometry->block_shift) {
        return 0;
    }
    return (uint16_t)(1u << (geometry->atomic_shift - geometry->block_shift));
}

/* Blocks of a unit that the medium writes without a look at other blocks. */
static uint16_t preferred_blocks(const struct media_geometry *geometry)
{
    uint16_t blocks = atomic_blocks(geometry);

    return blocks != 0 ? blocks : 1;
}

/* The structure of a namespace; NULL: what all have in common. */
static struct identify_namespace namespace_fields(
    const struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
    const struct nvmf_ns *ns)
{
    struct identify_namespace id = common_fields(target);
    uint8_t shift = ns->geometry.block_shift;
    uint32_t nsid = ns->config.nsid;

    id.size_blocks = ns->geometry.size_blocks;
    id.used_blocks = id.size_blocks;
    id.owned_bytes = id.size_blocks << shift;
    id.anagrpid = ns->anagrpid;
    id.nmic = NMIC_SHARED;
    id.rescap = reservation_capabilities(target, ns);
    id.nsattr = ns->geometry.is_read_only ? NSATTR_WRITE_PROTECTED : 0;
    id.atomic_blocks = atomic_blocks(&ns->geometry);
    id.preferred_blocks = preferred_blocks(&ns->geometry);
    id.nguid = ns->config.nguid;
    id.eui64 = ns->config.eui64;
    id.mssrl = COPY_MAX_RANGE_BLOCKS;
    id.mcl = COPY_MAX_BLOCKS;
    id.msrc = COPY_MAX_RANGES - 1;
    if (ns_are_manageable(target)) {
        id.owned_bytes = ns->volume.owned_bytes;
        id.endgid = ENDURANCE_GROUP_ID;
        id.nmic = ns->volume.is_private ? 0 : NMIC_SHARED;
        id.format = ns_flbas(ns);
        id.dps = ns_dps(ns);
    } else {
        id.block_shift[0] = shift;
    }
    if (ana_hides_capacity(target, ctrl, nsid)) {
        id.used_blocks = 0;
        id.owned_bytes = 0;
    }
    return id;
}

/* Emit a namespace structure, which is zero for an inactive namespace. */
static uint16_t emit_namespace(struct nvmf_target *target,
                               struct nvmf_request *req, namespace_emit *emit)
{
    struct identify_namespace id;
    const struct nvmf_ns *ns;
    uint16_t status = find_namespace(target, req, &ns);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (ns == NULL) {
        memset(target->page, 0, NVME_IDENTIFY_LEN);
        return NVME_SC_SUCCESS;
    }
    id = namespace_fields(target, request_ctrl(target, req), ns);
    emit(target->page, &id);
    return NVME_SC_SUCCESS;
}

static uint16_t build_namespace(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    struct identify_namespace id = common_fields(target);

    if (req->sqe.nsid == NVME_NSID_ALL && ns_are_manageable(target)) {
        identify_namespace_emit(target->page, &id);
        return NVME_SC_SUCCESS;
    }
    return emit_namespace(target, req, identify_namespace_emit);
}

/* CNS 11h: as CNS 00h, also for a namespace that is not attached. */
static uint16_t build_allocated(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    const struct nvmf_ns *ns = ns_find_allocated(target, req->sqe.nsid);
    struct identify_namespace id;

    if (req->sqe.nsid == 0 || req->sqe.nsid > NVMF_MAX_NAMESPACES) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    memset(target->page, 0, NVME_IDENTIFY_LEN);
    if (ns != NULL) {
        id = namespace_fields(target, request_ctrl(target, req), ns);
        identify_namespace_emit(target->page, &id);
    }
    return NVME_SC_SUCCESS;
}

/* CNS 08h: the fields that every command set has. */
static uint16_t build_namespace_any(struct nvmf_target *target,
                                    struct nvmf_request *req)
{
    return emit_namespace(target, req, identify_namespace_any_emit);
}

/*
 * CNS 05h, the fields of a namespace that are specific to the NVM command set.
 * All are zero: protection information has a guard of 16 bits, and no storage
 * tags.
 */
static uint16_t build_namespace_nvm(struct nvmf_target *target,
                                    struct nvmf_request *req)
{
    const struct nvmf_ns *ns;

    memset(target->page, 0, NVME_IDENTIFY_LEN);
    return find_namespace(target, req, &ns);
}

/*
 * CNS 06h, the fields of a controller that are specific to the NVM command set.
 * All are zero: Verify, Write Zeroes, Write Uncorrectable and Dataset
 * Management have no limits other than the width of their fields.
 */
static uint16_t build_controller_nvm(struct nvmf_target *target,
                                     struct nvmf_request *req)
{
    (void)req;
    memset(target->page, 0, NVME_IDENTIFY_LEN);
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
        if (ns_is_active(request_ctrl(target, req), i + 1)) {
            nsid[count++] = i + 1;
        }
    }
    identify_ns_list_emit(target->page, nsid, count);
    return NVME_SC_SUCCESS;
}

/* CNS 10h: the allocated namespaces above NSID. */
static uint16_t build_allocated_list(struct nvmf_target *target,
                                     struct nvmf_request *req)
{
    uint32_t nsid[NVMF_MAX_NAMESPACES];
    uint16_t count = 0;

    if (req->sqe.nsid >= NVME_NSID_ALL - 1) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    for (uint32_t next = req->sqe.nsid + 1; next <= NVMF_MAX_NAMESPACES;
         next++) {
        if (ns_find_allocated(target, next) != NULL) {
            nsid[count++] = next;
        }
    }
    identify_ns_list_emit(target->page, nsid, count);
    return NVME_SC_SUCCESS;
}

/*
 * Emit the I/O controllers from the CNTID in dword 10 on, in ascending order.
 *
 * @param nsid  only those that this namespace is attached to; 0: all
 */
static uint16_t emit_controllers(struct nvmf_target *target,
                                 const struct nvmf_request *req, uint32_t nsid)
{
    uint16_t cntlid[NVMF_MAX_HOSTS];
    uint16_t count = 0;

    for (uint8_t i = 0; i < NVMF_MAX_HOSTS; i++) {
        const struct nvmf_ctrl *ctrl = &target->ctrl[i];
        uint16_t at = count;

        if (!ctrl_is(ctrl, CTRL_IS_MEMBER) ||
            ctrl->cntlid < req->sqe.cdw10 >> CNTID_SHIFT ||
            (nsid != 0 && !ns_is_active(ctrl, nsid))) {
            continue;
        }
        for (; at > 0 && cntlid[at - 1] > ctrl->cntlid; at--) {
            cntlid[at] = cntlid[at - 1];
        }
        cntlid[at] = ctrl->cntlid;
        count++;
    }
    identify_ctrl_list_emit(target->page, cntlid, count);
    return NVME_SC_SUCCESS;
}

/* CNS 12h: the controllers to which a namespace is attached. */
static uint16_t build_controllers_of_ns(struct nvmf_target *target,
                                        struct nvmf_request *req)
{
    if (req->sqe.nsid == NVME_NSID_ALL) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    if (req->sqe.nsid == 0 || req->sqe.nsid > NVMF_MAX_NAMESPACES) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    return emit_controllers(target, req, req->sqe.nsid);
}

/* CNS 13h: all controllers of the subsystem. */
static uint16_t build_controllers(struct nvmf_target *target,
                                  struct nvmf_request *req)
{
    return emit_controllers(target, req, 0);
}

/* CNS 16h: a namespace occupies a multiple of this. */
static uint16_t build_granularity(struct nvmf_target *target,
                                  struct nvmf_request *req)
{
    const struct nvmf_volume *volume = &target->config.volume;
    struct nvmf_volume_capacity capacity;

    (void)req;
    volume->capacity(volume->ctx, &capacity);
    identify_granularity_emit(target->page, capacity.granularity_bytes);
    return NVME_SC_SUCCESS;
}

/* CNS 19h: the endurance groups from the one in dword 11 on. */
static uint16_t build_endurance_groups(struct nvmf_target *target,
                                       struct nvmf_request *req)
{
    uint16_t first = (uint16_t)req->sqe.cdw11;

    identify_endurance_groups_emit(target->page, ENDURANCE_GROUP_ID,
                                   first <= ENDURANCE_GROUP_ID);
    return NVME_SC_SUCCESS;
}

static uint16_t build_descriptors(struct nvmf_target *target,
                                  struct nvmf_request *req)
{
    const struct nvmf_ns *ns =
        ns_find_active(target, request_ctrl(target, req), req->sqe.nsid);

    if (ns == NULL) {
        return refuse_field(req, NVME_SC_INVALID_NS, SQE_NSID, 0);
    }
    identify_ns_descriptors_emit(target->page, ns->config.uuid,
                                 ns->config.nguid, ns->config.eui64);
    return NVME_SC_SUCCESS;
}

/*
 * CNS 1Ch: the combinations of I/O command sets that a controller can have,
 * which is the NVM command set alone.  CNTID names this controller.
 */
static uint16_t build_command_sets(struct nvmf_target *target,
                                   struct nvmf_request *req)
{
    uint16_t cntid = (uint16_t)(req->sqe.cdw10 >> 16);

    if (cntid != 0xffff && cntid != request_ctrl(target, req)->cntlid) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10 + 2, 0);
    }
    memset(target->page, 0, NVME_IDENTIFY_LEN);
    target->page[0] = BIT(CSI_NVM);
    return NVME_SC_SUCCESS;
}

static const struct identify {
    uint8_t cns;
    bool is_on_discovery;
    bool has_csi; /* CDW11 31:24 names the I/O command set */
    uint16_t (*build)(struct nvmf_target *target, struct nvmf_request *req);
} identify[] = {
    {CNS_NAMESPACE, false, false, build_namespace},
    {CNS_CONTROLLER, true, false, build_controller},
    {CNS_ACTIVE_NS_LIST, false, false, build_active_list},
    {CNS_NS_DESCRIPTORS, false, false, build_descriptors},
    {CNS_NS_OF_COMMAND_SET, false, true, build_namespace_nvm},
    {CNS_CONTROLLER_OF_COMMAND_SET, false, true, build_controller_nvm},
    {CNS_ACTIVE_NS_LIST_OF_COMMAND_SET, false, true, build_active_list},
    {CNS_COMMAND_SETS, false, false, build_command_sets},
    {CNS_NS_OF_ALL_COMMAND_SETS, false, false, build_namespace_any},
};

/* The rows that exist if namespaces can be managed. */
static const struct identify management_identify[] = {
    {CNS_ALLOCATED_NS_LIST, false, false, build_allocated_list},
    {CNS_ALLOCATED_NS, false, false, build_allocated},
    {CNS_CONTROLLERS_OF_NS, false, false, build_controllers_of_ns},
    {CNS_CONTROLLERS, false, false, build_controllers},
    {CNS_NS_GRANULARITY, false, false, build_granularity},
    {CNS_ENDURANCE_GROUPS, false, false, build_endurance_groups},
};

/* @return NULL if this kind of controller has no such structure. */
static const struct identify *find_identify(struct nvmf_target *target,
                                            const struct nvmf_request *req)
{
    bool is_discovery = request_ctrl(target, req)->is_discovery;

    if (!level_has(target, LEVEL_CNS, req->sqe.cdw10 & 0xff)) {
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_LEN(identify); i++) {
        if (identify[i].cns == (req->sqe.cdw10 & 0xff)) {
            return is_discovery && !identify[i].is_on_discovery ? NULL
                                                                : &identify[i];
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(management_identify); i++) {
        if (management_identify[i].cns == (req->sqe.cdw10 & 0xff) &&
            !is_discovery && ns_are_manageable(target)) {
            return &management_identify[i];
        }
    }
    return NULL;
}

uint16_t identify_check(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct identify *row = find_identify(target, req);

    req->data_len = NVME_IDENTIFY_LEN;
    if (row == NULL) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10, 0);
    }
    if (row->has_csi && req->sqe.cdw11 >> CSI_SHIFT != CSI_NVM) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11 + 3, 0);
    }
    return NVME_SC_SUCCESS;
}

uint16_t identify_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct identify *row = find_identify(target, req);
    uint16_t status = row->build(target, req);

    if (row->cns == CNS_CONTROLLER) {
        level_trim(target, LEVEL_CONTROLLER, target->page);
    } else if (row->cns == CNS_NAMESPACE || row->cns == CNS_ALLOCATED_NS) {
        level_trim(target, LEVEL_NAMESPACE, target->page);
    }
    if (status == NVME_SC_SUCCESS) {
        request_write_data(req, 0, target->page, NVME_IDENTIFY_LEN);
    }
    return status;
}
