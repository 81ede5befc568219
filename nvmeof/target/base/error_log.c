/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The error log.
 * Spec: NVM Express Base 1.4 section 5.14.1.1.
 *
 * The error log belongs to the drive, not to a controller, so that errors of an
 * ended association can still be read.  It also survives resets and power
 * cycles, although section 5.14.1.1 says that it should not: engineers look for
 * the reason of a failure after a restart.  The application stores it.
 *
 * So that no host pushes the errors of others out of the log, a full log drops
 * the oldest entry of the host that has most of them.  What a host does before
 * it has proven its identity, or at a discovery controller, makes no entry.
 */
#include "nvmeof/target/base/base.h"

#include <string.h>

#include "nvmeof/wire/log.h"

bool nvmf_target_error(const struct nvmf_target *target, uint64_t count,
                       struct log_error *error)
{
    for (size_t i = 0; i < NVMF_ERROR_LOG_ENTRIES && count != 0; i++) {
        if (target->error_log.entry[i].count == count) {
            *error = target->error_log.entry[i];
            return true;
        }
    }
    return false;
}

bool nvmf_target_error_after(const struct nvmf_target *target, uint64_t count,
                             struct log_error *error)
{
    bool is_found = false;

    for (size_t i = 0; i < NVMF_ERROR_LOG_ENTRIES; i++) {
        const struct log_error *entry = &target->error_log.entry[i];

        if (entry->count > count &&
            (!is_found || entry->count < error->count)) {
            *error = *entry;
            is_found = true;
        }
    }
    return is_found;
}

/* The element of an owner, or a free one. */
static uint8_t owner_index(const struct error_log *log, uint32_t owner)
{
    uint8_t free = NVMF_ERROR_LOG_ENTRIES;

    for (uint8_t i = 0; i < NVMF_ERROR_LOG_ENTRIES; i++) {
        if (log->owner[i].kept == 0) {
            free = i;
        } else if (log->owner[i].owner == owner) {
            return i;
        }
    }
    return free;
}

/* How many entries an owner would have with one more of `owner`. */
static uint8_t share_with(const struct error_owner *of, uint32_t owner)
{
    return (uint8_t)(of->kept + (of->kept != 0 && of->owner == owner));
}

/*
 * Find where an entry goes: a free place, or that of the oldest entry among the
 * owners that then have most of them.
 */
static struct log_error *find_place(struct error_log *log, uint32_t owner)
{
    struct log_error *found = NULL;
    uint8_t most = 0;

    for (size_t i = 0; i < NVMF_ERROR_LOG_ENTRIES; i++) {
        most = MAX(most, share_with(&log->owner[i], owner));
    }
    for (size_t i = 0; i < NVMF_ERROR_LOG_ENTRIES; i++) {
        struct log_error *entry = &log->entry[i];

        if (entry->count == 0) {
            return entry;
        }
        if (share_with(&log->owner[log->owner_of[i]], owner) == most &&
            (found == NULL || entry->count < found->count)) {
            found = entry;
        }
    }
    return found;
}

static void keep_error(struct nvmf_target *target,
                       const struct log_error *error)
{
    struct error_log *log = &target->error_log;
    struct log_error *place = find_place(log, error->owner);
    size_t i = (size_t)(place - log->entry);

    if (place->count != 0) {
        if (place->owner == error->owner && place->count > error->count) {
            return; /* an entry is restored that is older than those kept */
        }
        log->owner[log->owner_of[i]].kept--;
    }
    log->owner_of[i] = owner_index(log, error->owner);
    log->owner[log->owner_of[i]].owner = error->owner;
    log->owner[log->owner_of[i]].kept++;
    *place = *error;
    place->vendor_log = LOG_ERROR_TIMES;
}

void nvmf_target_restore_error(struct nvmf_target *target,
                               const struct log_error *error)
{
    struct log_error kept;

    if (error->count == 0 || nvmf_target_error(target, error->count, &kept)) {
        return;
    }
    /* Until 0.1.0 its vendor_log was C1h, which is OCP's. */
    keep_error(target, error);
    target->counters.error_log_entries =
        MAX(target->counters.error_log_entries, error->count);
}

/* Get the newest entry below `count`.  @return false when there is none */
static bool error_before(const struct nvmf_target *target, uint64_t count,
                         struct log_error *error)
{
    error->count = 0;
    for (size_t i = 0; i < NVMF_ERROR_LOG_ENTRIES; i++) {
        const struct log_error *entry = &target->error_log.entry[i];

        if (entry->count < count && entry->count > error->count) {
            *error = *entry;
        }
    }
    return error->count != 0;
}

/* Build the error log, newest entry first; lost entries leave no gap. */
void log_build_error(struct nvmf_target *target, const struct nvmf_ctrl *ctrl,
                     uint32_t part)
{
    uint8_t *entry = target->page;
    struct log_error error = {.count = UINT64_MAX};

    (void)ctrl;
    (void)part;
    memset(entry, 0, NVMF_ERROR_LOG_ENTRIES * LOG_ERROR_ENTRY_LEN);
    while (error_before(target, error.count, &error)) {
        uint64_t lba = error.lba;

        if (sanitize_status(target) != 0) {
            error.lba = 0; /* Base 1.4 8.15.1 */
        }
        log_error_emit(entry, &error);
        error.lba = lba;
        entry += LOG_ERROR_ENTRY_LEN;
    }
}

/* Build the times of the errors, in the order of the error log. */
void log_build_error_times(struct nvmf_target *target,
                           const struct nvmf_ctrl *ctrl, uint32_t part)
{
    uint8_t *entry = target->page;
    struct log_error error = {.count = UINT64_MAX};

    (void)ctrl;
    (void)part;
    memset(entry, 0, NVMF_ERROR_LOG_ENTRIES * LOG_ERROR_TIME_LEN);
    while (error_before(target, error.count, &error)) {
        log_error_time_emit(entry, &error);
        entry += LOG_ERROR_TIME_LEN;
    }
}

static void append_error(struct nvmf_target *target, struct log_error error)
{
    error.count = ++target->counters.error_log_entries;
    error.has_time = nvmf_target_time(target, &error.time_ms);
    keep_error(target, &error);
}

uint32_t nvmf_target_acting_host(const struct nvmf_target *target)
{
    return target->acting_ctrl != NO_CTRL
               ? ctrl_host_number(&target->ctrl[target->acting_ctrl])
               : 0;
}

bool log_takes_errors(const struct nvmf_target *target,
                      const struct nvmf_request *req)
{
    const struct nvmf_qpair *qpair = &target->qpair[req->qpair];

    /* A queue that has proven nothing takes fabrics commands only. */
    return qpair->ctrl != NO_CTRL && !target->ctrl[qpair->ctrl].is_discovery &&
           (qpair->state == QPAIR_LIVE ||
            (qpair->state > QPAIR_LIVE && req->sqe.opcode != NVME_FABRICS));
}

void log_keep_alive_expired(struct nvmf_target *target,
                            const struct nvmf_ctrl *ctrl)
{
    append_error(target, (struct log_error){
                             .sqid = 0xffff,
                             .cid = 0xffff,
                             .status = NVME_SC_KEEP_ALIVE_EXPIRED,
                             .location = 0xffff,
                             .owner = ctrl_host_number(ctrl),
                         });
}

/* Whether protection information was wrong, in the block req->error_lba. */
static bool is_protection_error(uint16_t status)
{
    uint16_t code = status & NVME_SC_MASK;

    return code >= NVME_SC_GUARD_CHECK && code <= NVME_SC_REF_TAG_CHECK;
}

void log_record_error(struct nvmf_target *target,
                      const struct nvmf_request *req, uint16_t status)
{
    bool is_fabrics = req->sqe.opcode == NVME_FABRICS;
    const struct nvmf_qpair *qpair = request_qpair(target, req);
    uint16_t qid = qpair->qid;
    struct log_error entry = {
        .sqid = qid,
        .cid = req->sqe.cid,
        .status = status,
        .location = req->error_location,
        .nsid = is_fabrics ? 0 : req->sqe.nsid,
        .lba = req->command->flags & COMMAND_HAS_LBA
                   ? (uint64_t)req->sqe.cdw11 << 32 | req->sqe.cdw10
                   : 0,
        .trtype = qpair->transport->trtype,
        .owner = ctrl_host_number(&target->ctrl[qpair->ctrl]),
    };

    if (is_protection_error(status)) {
        entry.lba = req->error_lba;
    }
    append_error(target, entry);
}

void nvmf_target_log_error(struct nvmf_target *target, uint16_t status,
                           uint32_t nsid, uint64_t lba)
{
    append_error(target, (struct log_error){
                             .sqid = 0xffff,
                             .cid = 0xffff,
                             .status = status,
                             .location = 0xffff,
                             .nsid = nsid,
                             .lba = lba,
                         });
}
