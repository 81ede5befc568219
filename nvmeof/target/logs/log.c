/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Get Log Page.
 * Spec: NVM Express Base 1.4 section 5.14.
 */
#include "nvmeof/wire/log.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/crc32.h"
#include "nvmeof/target/events/events.h"
#include "nvmeof/target/connect/connect.h"
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"
#include "nvmeof/target/reservations/reservations.h"
#include "nvmeof/target/admin/admin.h"
#include "nvmeof/target/features/features.h"
#include "nvmeof/target/logs/logs.h"
#include "nvmeof/target/base/level.h"
#include "nvmeof/wire/discovery.h"
#include "nvmeof/wire/ocp.h"

enum {
    LOG_LSP_RGO = 0x100, /* of LID 0Ch: bit 0 of LSP in dword 10 */
    LOG_RAE_BIT = 15,    /* bit position in dword 10 */
};

static void build_smart(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl, uint32_t part)
{
    struct log_smart smart = log_smart_of_drive(target);

    (void)part;
    smart.critical_warning = log_critical_warning(target, ctrl);
    log_smart_emit(target->page, &smart);
    if (ns_are_manageable(target)) {
        target->page[SMART_ENDURANCE_WARNING] = endurance_warning(target, ctrl);
        level_trim(target, LEVEL_SMART, target->page);
    }
}

static void build_changed_ns(struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl, uint32_t part)
{
    uint8_t *entry = target->page;

    (void)part;
    memset(entry, 0, LOG_CHANGED_NS_LIST_LEN);
    for (uint32_t i = 0; i < NVMF_MAX_NAMESPACES; i++) {
        if (ctrl->changed_ns[i / 32] & BIT(i % 32)) {
            put_le32(entry, i + 1);
            entry += 4;
        }
    }
}
/* Put what a row says of a command, if this target has it. */
static void put_effects(const struct nvmf_target *target, enum level_kind kind,
                        uint8_t *buf, const struct nvmf_command *command,
                        uint32_t opcode)
{
    uint32_t effects = COMMANDS_EFFECTS_CSUPP;

    if (command == NULL || command->execute == NULL ||
        !level_has(target, kind, opcode)) {
        return;
    }
    if (command->flags & COMMAND_WRITES) {
        effects |= COMMANDS_EFFECTS_LBCC;
    }
    if (command->flags & COMMAND_CHANGES_NS) {
        effects |= COMMANDS_EFFECTS_NCC;
    }
    if (command->flags & COMMAND_CHANGES_NS_LIST) {
        effects |= COMMANDS_EFFECTS_NIC;
    }
    put_le32(buf + 4 * opcode, effects);
}

static void build_effects(struct nvmf_target *target,
                          const struct nvmf_ctrl *ctrl, uint32_t part)
{
    uint8_t *admin = target->page + COMMANDS_EFFECTS_ADMIN;
    uint8_t *io = target->page + COMMANDS_EFFECTS_IO;

    (void)ctrl;
    (void)part;
    memset(target->page, 0, LOG_COMMANDS_EFFECTS_LEN);
    for (uint32_t i = 0; i < ADMIN_COMMANDS; i++) {
        if (ns_are_manageable(target) ||
            !(admin_commands[i].flags & COMMAND_CHANGES_NS)) {
            put_effects(target, LEVEL_ADMIN, admin, &admin_commands[i], i);
        }
    }
    if (!self_test_exists(target)) {
        put_le32(admin + 4 * ADMIN_DEVICE_SELF_TEST, 0);
    }
    if (!firmware_exists(target)) {
        put_le32(admin + 4 * ADMIN_FIRMWARE_COMMIT, 0);
        put_le32(admin + 4 * ADMIN_FIRMWARE_DOWNLOAD, 0);
    }
    if (!sanitize_exists(target)) {
        put_le32(admin + 4 * ADMIN_SANITIZE, 0);
    }
    put_le32(admin + 4 * NVME_FABRICS, COMMANDS_EFFECTS_CSUPP);
    for (uint32_t i = 0; i < IO_COMMANDS; i++) {
        put_effects(target, LEVEL_IO, io, nvm_command_set.row[i], i);
    }
    if (!target->can_mark) {
        put_le32(io + 4 * NVM_WRITE_UNCORRECTABLE, 0);
    }
}

/* A log page is built in parts of part_len bytes.  A `len` of 0 stands for what
 * variable_len() returns. */
struct log_page {
    uint8_t lid;
    bool is_discovery;
    uint16_t len;
    uint16_t part_len;
    void (*build)(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                  uint32_t part);
    const struct nvmf_vendor_log *vendor; /* if not NULL, it builds the page */
};

static const struct log_page logs[] = {
    {LOG_ERROR, false, NVMF_ERROR_LOG_ENTRIES *LOG_ERROR_ENTRY_LEN,
     NVMF_ERROR_LOG_ENTRIES *LOG_ERROR_ENTRY_LEN, log_build_error, NULL},
    {LOG_SMART, false, LOG_SMART_LEN, LOG_SMART_LEN, build_smart, NULL},
    {LOG_FIRMWARE_SLOT, false, LOG_FIRMWARE_SLOT_LEN, LOG_FIRMWARE_SLOT_LEN,
     log_build_firmware_slot, NULL},
    {LOG_CHANGED_NS_LIST, false, LOG_CHANGED_NS_LIST_LEN,
     LOG_CHANGED_NS_LIST_LEN, build_changed_ns, NULL},
    {LOG_COMMANDS_EFFECTS, false, LOG_COMMANDS_EFFECTS_LEN,
     LOG_COMMANDS_EFFECTS_LEN, build_effects, NULL},
    {LOG_ANA, false, ANA_LOG_LEN, ANA_LOG_LEN, ana_log_build, NULL},
    {LOG_PERSISTENT_EVENT, false, 0, PEL_PART_LEN, pel_build, NULL},
    {LOG_LBA_STATUS, false, 0, sizeof(((struct nvmf_target *)0)->page),
     lba_log_build, NULL},
    {LOG_SELF_TEST, false, LOG_SELF_TEST_LEN, LOG_SELF_TEST_LEN,
     log_build_self_test, NULL},
    {LOG_SUPPORTED, false, LOG_SUPPORTED_LEN, LOG_SUPPORTED_LEN,
     log_build_supported, NULL},
    {LOG_FEATURE_EFFECTS, false, LOG_FEATURE_EFFECTS_LEN,
     LOG_FEATURE_EFFECTS_LEN, log_build_feature_effects, NULL},
    {LOG_MI_EFFECTS, false, LOG_MI_EFFECTS_LEN, LOG_MI_EFFECTS_LEN,
     log_build_mi_effects, NULL},
    {LOG_SANITIZE, false, LOG_SANITIZE_LEN, LOG_SANITIZE_LEN,
     log_build_sanitize, NULL},
    {LOG_OCP_SMART, false, LOG_OCP_SMART_LEN, LOG_OCP_SMART_LEN,
     log_build_ocp_smart, NULL},
    {LOG_OCP_RECOVERY, false, LOG_OCP_RECOVERY_LEN, LOG_OCP_RECOVERY_LEN,
     log_build_ocp_recovery, NULL},
    {LOG_OCP_LATENCY, false, LOG_OCP_LATENCY_LEN, LOG_OCP_LATENCY_LEN,
     log_build_ocp_latency, NULL},
    {LOG_OCP_CAPABILITIES, false, LOG_OCP_CAPABILITIES_LEN,
     LOG_OCP_CAPABILITIES_LEN, log_build_ocp_capabilities, NULL},
    {LOG_ERROR_TIMES, false, NVMF_ERROR_LOG_ENTRIES *LOG_ERROR_TIME_LEN,
     NVMF_ERROR_LOG_ENTRIES *LOG_ERROR_TIME_LEN, log_build_error_times, NULL},
    {LOG_RESERVATION, false, LOG_RESERVATION_LEN, LOG_RESERVATION_LEN,
     log_build_reservation, NULL},
    {LOG_ENDURANCE_GROUP, false, LOG_ENDURANCE_LEN, LOG_ENDURANCE_LEN,
     endurance_build, NULL},
    {LOG_TELEMETRY_HOST, false, 0, TELEMETRY_PART_LEN, telemetry_build_host,
     NULL},
    {LOG_TELEMETRY_CTRL, false, 0, TELEMETRY_PART_LEN, telemetry_build_ctrl,
     NULL},
    {LOG_DISCOVERY, true, 0, DISCOVERY_ENTRY_LEN, discovery_log_part, NULL},
};

_Static_assert(NVMF_ERROR_LOG_ENTRIES *LOG_ERROR_ENTRY_LEN <=
                   sizeof(((struct nvmf_target *)0)->page),
               "the page holds the error log");
_Static_assert((int)DISCOVERY_HEADER_LEN == (int)DISCOVERY_ENTRY_LEN,
               "all parts of the discovery log have one length");

/* Log pages of discovery controllers that I/O controllers have as well. */
static bool is_of_both(uint8_t lid)
{
    return lid == LOG_SUPPORTED || lid == LOG_FEATURE_EFFECTS;
}

/* Whether the target has what a page is about. */
static bool has_subject(const struct nvmf_target *target, uint8_t lid)
{
    if (lid == LOG_ENDURANCE_GROUP) {
        return ns_are_manageable(target);
    }
    if (lid == LOG_TELEMETRY_HOST || lid == LOG_TELEMETRY_CTRL) {
        return telemetry_exists(target);
    }
    return (lid != LOG_SELF_TEST || self_test_exists(target)) &&
           (lid != LOG_SANITIZE || sanitize_exists(target));
}

/* @return false if this kind of controller has no such page */
static bool find_log(const struct nvmf_target *target,
                     const struct nvmf_ctrl *ctrl, uint8_t lid,
                     struct log_page *log)
{
    for (size_t i = 0; i < ARRAY_LEN(logs); i++) {
        if (logs[i].lid == lid &&
            (logs[i].is_discovery == ctrl->is_discovery || is_of_both(lid)) &&
            has_subject(target, lid) && level_has(target, LEVEL_LOG, lid)) {
            *log = logs[i];
            return true;
        }
    }
    for (size_t i = 0; i < target->config.vendor_log_count; i++) {
        const struct nvmf_vendor_log *vendor = &target->config.vendor_logs[i];

        if (vendor->lid == lid && !ctrl->is_discovery) {
            *log = (struct log_page){
                .lid = lid,
                .len = vendor->len_bytes,
                .part_len = vendor->part_bytes,
                .vendor = vendor,
            };
            return true;
        }
    }
    return false;
}

bool log_exists(const struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                uint8_t lid)
{
    struct log_page log;

    return find_log(target, ctrl, lid, &log);
}

static uint32_t variable_len(struct nvmf_target *target,
                             const struct nvmf_ctrl *ctrl, uint8_t lid)
{
    return lid == LOG_TELEMETRY_HOST     ? telemetry_host_len(target)
           : lid == LOG_TELEMETRY_CTRL   ? telemetry_ctrl_len(target)
           : lid == LOG_PERSISTENT_EVENT ? pel_len(target, ctrl)
           : lid == LOG_LBA_STATUS       ? lba_log_len(target, ctrl)
                                         : discovery_log_len(target, ctrl);
}

static uint32_t log_len(struct nvmf_target *target,
                        const struct nvmf_ctrl *ctrl,
                        const struct log_page *log)
{
    return log->len != 0 ? log->len : variable_len(target, ctrl, log->lid);
}

static uint64_t log_offset(const struct nvme_sqe *sqe)
{
    return (uint64_t)sqe->cdw13 << 32 | sqe->cdw12;
}

/*
 * Whether a page can be asked for with the command's NSID.  No page belongs to
 * a single namespace.  smartctl asks for two of them with the NSID of the
 * device that it was given, so an active namespace may be named there: SMART /
 * Health Information, which has the values of the whole drive as LPA bit 0
 * says, and the self-test log, of which section 5.14 says that the command
 * should be refused.
 */
static bool takes_nsid(struct nvmf_target *target,
                       const struct nvmf_request *req)
{
    uint32_t nsid = req->sqe.nsid;
    uint8_t lid = (uint8_t)req->sqe.cdw10;

    if (nsid == 0 || nsid == NVME_NSID_ALL) {
        return true;
    }
    return (lid == LOG_SMART || lid == LOG_SELF_TEST) &&
           ns_find_active(target, request_ctrl(target, req), nsid) != NULL;
}

uint16_t log_check(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    const struct nvme_sqe *sqe = &req->sqe;
    uint32_t numd = (sqe->cdw11 & 0xffff) << 16 | sqe->cdw10 >> 16;
    struct log_page log;

    if (!find_log(target, ctrl, (uint8_t)sqe->cdw10, &log)) {
        return refuse_field(req, NVME_SC_INVALID_LOG_PAGE, SQE_CDW10, 0);
    }
    if (sanitize_refuses_log(target, (uint8_t)sqe->cdw10)) {
        return sanitize_status(target);
    }
    if (!takes_nsid(target, req)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    if (log.lid == LOG_ENDURANCE_GROUP && !endurance_is_valid(req)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW11 + 2, 0);
    }
    if (numd >= NVMF_MAX_TRANSFER / 4) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW10 + 2, 0);
    }
    req->data_len = (numd + 1) * 4;
    if (log.lid == LOG_PERSISTENT_EVENT) {
        return pel_check(req);
    }
    if (log.lid == LOG_LBA_STATUS) {
        lba_log_check_read(target, req);
    }
    if (log_offset(sqe) % 4 != 0 ||
        log_offset(sqe) > log_len(target, ctrl, &log)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW12, 0);
    }
    return NVME_SC_SUCCESS;
}

/* Copy the bytes [from, from + window_len) of the page, part by part, and
 * zeroes beyond its end. */
static void copy_log(struct nvmf_target *target, struct nvmf_request *req,
                     const struct log_page *log, uint64_t from)
{
    struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    uint32_t len = log_len(target, ctrl, log);
    uint32_t done = 0;

    while (done < req->window_len && from + done < len) {
        uint32_t at = (uint32_t)from + done;
        uint32_t part = at / log->part_len;
        uint32_t skip = at % log->part_len;
        uint32_t n = MIN(log->part_len - skip, req->window_len - done);

        /* Behind the end of the page, the buffer still holds what other
         * commands have put there. */
        n = MIN(n, len - at);
        if (log->vendor != NULL) {
            log->vendor->build(target->config.vendor_log_ctx, part,
                               target->page);
        } else {
            log->build(target, ctrl, part);
        }
        request_write_data(req, done, target->page + skip, n);
        done += n;
    }
    if (done < req->window_len) {
        request_write_data(req, done, NULL, req->window_len - done);
    }
}

/* Copy one window of the page; called for each window. */
uint16_t log_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_ctrl *ctrl = request_ctrl(target, req);
    bool is_last = req->transfer.data_offset + req->window_len == req->data_len;
    uint64_t offset = log_offset(&req->sqe) + req->transfer.data_offset;
    struct log_page log;

    ASSERT(find_log(target, ctrl, (uint8_t)req->sqe.cdw10, &log));
    if (log.lid == LOG_PERSISTENT_EVENT) {
        uint16_t status = pel_begin_read(target, req, &offset);

        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    telemetry_begin_read(target, req);
    if (log.lid == LOG_LBA_STATUS) {
        lba_log_begin_read(target, req);
    }
    if (log.lid == LOG_ANA && req->sqe.cdw10 & LOG_LSP_RGO) {
        log.build = ana_log_build_groups;
    }
    copy_log(target, req, &log, offset);
    if (is_last && !(req->sqe.cdw10 & BIT(LOG_RAE_BIT))) {
        if (log.lid == LOG_CHANGED_NS_LIST) {
            memset(ctrl->changed_ns, 0, sizeof(ctrl->changed_ns));
        }
        if (log.lid == LOG_FIRMWARE_SLOT) {
            firmware_log_was_read(target);
        }
        if (log.lid == LOG_RESERVATION) {
            notice_was_read(ctrl);
        }
        if (log.lid == LOG_LBA_STATUS) {
            lba_log_end_read(target, ctrl);
        }
        telemetry_end_read(target, log.lid);
        event_log_read(target, ctrl, log.lid);
    }
    return NVME_SC_SUCCESS;
}
