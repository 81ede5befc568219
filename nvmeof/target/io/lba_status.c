/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Get LBA Status, and what the drive knows of unreadable blocks.
 *
 * Tracked LBAs are blocks that a command or a self-test could not read.  They
 * are kept in a list, which begins empty at power-on, until they are written or
 * deallocated.  Action 10h reads all blocks of its range from the medium, and
 * halves each part that cannot be read until it has found the blocks.
 *
 * One such scan at a time is at the medium.  Scans take turns after each read,
 * so that commands with data wait for one read at most.
 * Spec: NVM Command Set 1.0 section 4.2.1.
 *
 * Scans find blocks that a host has marked with Write Uncorrectable.  Such
 * blocks are not tracked, because the medium itself stores the marks.
 */
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"

#include "nvmeof/wire/lba_status.h"

enum { /* most bytes that the command returns: one short data buffer */
       LIST_BYTES_MAX = NVMF_SHORT_LEN,
};
_Static_assert(LBA_LIST_MAX <= (LIST_BYTES_MAX - LBA_STATUS_HEADER_LEN) /
                                   LBA_DESCRIPTOR_LEN,
               "all tracked ranges fit into one answer");

/* ---- The list of tracked blocks. */

/* Whether the list has blocks of a namespace may have changed. */
static void update_caution(struct nvmf_target *target, uint32_t nsid)
{
    ns_set_caution(&target->ns[nsid - 1], CAUTION_TRACKED,
                   lba_list_has(&target->lba.list, (uint8_t)nsid));
}

static void add_blocks(struct nvmf_target *target, uint32_t nsid,
                       uint64_t first_lba, uint32_t count_blocks)
{
    struct lba_status *lba = &target->lba;
    uint64_t number = target->counters.lba_generation + 1;
    enum lba_added added =
        lba_list_add(&lba->list, (uint8_t)nsid, first_lba, count_blocks,
                     count_blocks == 1, number);

    if (added != LBA_KNOWN) {
        target->counters.lba_generation = number;
    }
    if (added == LBA_FULL) {
        lba->lost[nsid - 1] = number;
        lba->has_lost = true;
    }
    update_caution(target, nsid);
}

static void remove_blocks(struct nvmf_target *target, uint32_t nsid,
                          uint64_t first_lba, uint64_t count_blocks)
{
    struct lba_list *list = &target->lba.list;

    if (!lba_list_overlaps(list, (uint8_t)nsid, first_lba, count_blocks)) {
        return;
    }
    if (!lba_list_remove(list, (uint8_t)nsid, first_lba, count_blocks)) {
        target->lba.lost[nsid - 1] = ++target->counters.lba_generation;
        target->lba.has_lost = true;
    }
    update_caution(target, nsid);
    lba_log_withdraw_alerts(target);
}

/* Find the blocks that a command was reading.  @return false for a command that
 * reads none */
static bool find_failed_blocks(const struct nvmf_target *target,
                               const struct nvmf_request *req, uint32_t *nsid,
                               uint64_t *first_lba, uint32_t *count_blocks)
{
    if (target->qpair[req->qpair].qid == 0 || req->ns == NULL) {
        return false;
    }
    *nsid = req->sqe.nsid;
    *first_lba = io_first_lba(&req->sqe) +
                 io_blocks_in(req->ns, req, req->transfer.data_offset);
    *count_blocks = req->chunk.blocks;
    switch (req->sqe.opcode) {
    case NVM_READ:
        *count_blocks = io_blocks_in(req->ns, req, req->window_len);
        return true;
    case NVM_COMPARE:
    case NVM_VERIFY:
        *first_lba += req->chunk.done;
        return true;
    case NVM_COPY:
        copy_find_source(req, nsid, first_lba);
        return true;
    default:
        return false;
    }
}

void lba_status_note_error(struct nvmf_target *target,
                           const struct nvmf_request *req)
{
    uint32_t nsid, count_blocks;
    uint64_t first_lba;

    if (find_failed_blocks(target, req, &nsid, &first_lba, &count_blocks)) {
        add_blocks(target, nsid, first_lba, count_blocks);
    }
}

void nvmf_lba_unreadable(struct nvmf_target *target, uint32_t nsid,
                         uint64_t lba)
{
    const struct nvmf_ns *ns = ns_find_allocated(target, nsid);

    if (ns != NULL && lba < ns->geometry.size_blocks) {
        add_blocks(target, nsid, lba, 1);
    }
}

void lba_status_written(struct nvmf_target *target, const struct nvmf_ns *ns,
                        uint64_t first_lba, uint64_t count_blocks)
{
    remove_blocks(target, ns->config.nsid, first_lba, count_blocks);
}

void lba_status_attached(struct nvmf_target *target, uint32_t nsid)
{
    struct lba_list *list = &target->lba.list;

    if (!lba_list_has(list, (uint8_t)nsid)) {
        return;
    }
    target->counters.lba_generation++;
    for (uint16_t i = 0; i < list->count; i++) {
        if (list->range[i].nsid == nsid) {
            list->range[i].number = target->counters.lba_generation;
        }
    }
}

void lba_status_forget(struct nvmf_target *target, uint32_t nsid)
{
    lba_list_forget(&target->lba.list, (uint8_t)nsid);
    target->lba.lost[nsid - 1] = 0;
    update_caution(target, nsid);
    lba_log_withdraw_alerts(target);
}

/* ---- The command. */

static uint32_t range_length(const struct nvmf_request *req)
{
    return req->sqe.cdw13 >> LBA_STATUS_RL & 0xffff;
}

static uint32_t action_of(const struct nvmf_request *req)
{
    return req->sqe.cdw13 >> LBA_STATUS_ATYPE;
}

/* The first LBA beyond the range of the command. */
static uint64_t range_end(const struct nvmf_request *req)
{
    return range_length(req) == 0 ? req->ns->geometry.size_blocks
                                  : io_first_lba(&req->sqe) + range_length(req);
}

uint16_t lba_status_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint64_t dwords = (uint64_t)req->sqe.cdw12 + 1; /* MNDW is 0's based */
    uint32_t blocks = MAX(range_length(req), 1);

    (void)target;
    if (action_of(req) != LBA_ACTION_SCAN &&
        action_of(req) != LBA_ACTION_TRACKED) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW13 + 3, 0);
    }
    if (!io_is_in_range(req->ns, io_first_lba(&req->sqe), blocks)) {
        return refuse_field(req, NVME_SC_LBA_RANGE, SQE_CDW10, 0);
    }
    req->data_len = (uint32_t)MIN(dwords * 4, (uint64_t)LIST_BYTES_MAX);
    req->steps = STEPS_UNKNOWN;
    req->scan = (struct nvmf_scan){
        .next_lba = io_first_lba(&req->sqe),
        .probe_blocks = UINT32_MAX,
    };
    return NVME_SC_SUCCESS;
}

/* How many descriptors the host has room for. */
static uint32_t descriptors_max(const struct nvmf_request *req)
{
    return req->data_len < LBA_STATUS_HEADER_LEN
               ? 0
               : (req->data_len - LBA_STATUS_HEADER_LEN) / LBA_DESCRIPTOR_LEN;
}

static void write_header(struct nvmf_request *req, uint32_t descriptors,
                         uint8_t cmpc)
{
    uint8_t header[LBA_STATUS_HEADER_LEN];

    lba_status_header_emit(header, descriptors, cmpc);
    request_write_data(req, 0, header, MIN(req->data_len, sizeof(header)));
}

static void write_descriptor(struct nvmf_request *req, uint32_t i,
                             uint64_t first_lba, uint32_t count_blocks,
                             bool is_certain)
{
    uint8_t buf[LBA_DESCRIPTOR_LEN];

    lba_descriptor_emit(buf, first_lba, count_blocks,
                        is_certain ? LBA_UNREADABLE : 0);
    request_write_data(req, LBA_STATUS_HEADER_LEN + i * LBA_DESCRIPTOR_LEN, buf,
                       sizeof(buf));
}

/* Action 11h: return the tracked blocks of the range. */
static uint16_t return_tracked(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    const struct lba_list *list = &target->lba.list;
    uint64_t first = io_first_lba(&req->sqe);
    uint64_t end = range_end(req);
    uint16_t i = lba_list_find(list, (uint8_t)req->sqe.nsid, first);
    uint32_t found = 0;
    uint8_t cmpc = LBA_CMPC_COMPLETE;

    for (; i < list->count && list->range[i].nsid == req->sqe.nsid &&
           list->range[i].first_lba < end;
         i++) {
        const struct lba_range *range = &list->range[i];
        uint64_t from = MAX(range->first_lba, first);
        uint64_t to = MIN(lba_range_end(range), end);

        if (found == descriptors_max(req)) {
            cmpc = LBA_CMPC_MORE;
            break;
        }
        write_descriptor(req, found++, from, (uint32_t)(to - from),
                         range->is_certain);
    }
    write_header(req, found, cmpc);
    return NVME_SC_SUCCESS;
}

/* ---- Action 10h: a scan. */

/* Start the scans that wait for their turn. */
static void serve_scans(struct nvmf_target *target)
{
    struct lba_status *lba = &target->lba;
    struct nvmf_request *next;

    if (lba->is_served) {
        return; /* the call that is serving will look again */
    }
    lba->is_served = true;
    while (lba->scan == NULL && (next = queue_pop(&lba->waiting)) != NULL) {
        request_resume(next);
        request_execute(target, next);
    }
    lba->is_served = false;
}

void lba_scan_give(struct nvmf_target *target, struct nvmf_request *req)
{
    ASSERT(target->lba.scan == req);
    target->lba.scan = NULL;
    req->holds &= (uint8_t)~HOLDS_SCAN;
    serve_scans(target);
}

static void wait_for_turn(struct nvmf_target *target, struct nvmf_request *req)
{
    request_wait_turn(req);
    queue_push(&target->lba.waiting, req);
}

/* A read has failed.
 * @param is_mark  because a host has marked a block
 * @return true if it was a read of a scan, so that the command goes on */
bool lba_scan_takes_error(struct nvmf_target *target, struct nvmf_request *req,
                          bool is_mark)
{
    if (!(req->holds & HOLDS_SCAN) || target->lba.scan != req) {
        return false;
    }
    req->scan.has_failed = true;
    req->scan.is_mark = is_mark;
    return true;
}

/* Whether the scan may go on.  @return a status, or 0 */
static uint16_t check_scan(struct nvmf_target *target, struct nvmf_request *req)
{
    const struct nvmf_ctrl *ctrl = request_ctrl(target, req);

    if (ctrl->state != CTRL_READY) {
        return NVME_SC_ABORT_REQUESTED;
    }
    if (!ns_is_active(ctrl, req->sqe.nsid)) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_NSID, 0);
    }
    return ns_check_state(target, req, req->sqe.nsid);
}

/* A single block cannot be read.  @return false when the host has no room for
 * one more descriptor */
static bool add_bad_block(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_scan *scan = &req->scan;

    if (scan->bad_blocks != 0 && scan->bad_blocks != UINT32_MAX &&
        scan->bad_lba + scan->bad_blocks == scan->next_lba) {
        scan->bad_blocks++;
    } else if (scan->found == descriptors_max(req)) {
        return false;
    } else {
        scan->found++;
        scan->bad_lba = scan->next_lba;
        scan->bad_blocks = 1;
    }
    write_descriptor(req, scan->found - 1, scan->bad_lba, scan->bad_blocks,
                     true);
    if (!scan->is_mark) {
        target->counters.media_errors++;
        add_blocks(target, req->sqe.nsid, scan->next_lba, 1);
    }
    return true;
}

/*
 * Take the result of a read: go on beyond what could be read, or look closer at
 * what could not.
 *
 * @return false when the host has no room for one more descriptor
 */
static bool take_result(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_scan *scan = &req->scan;

    if (!scan->has_failed) {
        remove_blocks(target, req->sqe.nsid, scan->next_lba, scan->read_blocks);
        scan->next_lba += scan->read_blocks;
        scan->probe_blocks = scan->read_blocks * 2;
        return true;
    }
    scan->has_failed = false;
    if (scan->read_blocks > 1) {
        scan->probe_blocks = scan->read_blocks / 2;
        return true;
    }
    if (!add_bad_block(target, req)) {
        return false;
    }
    scan->next_lba++;
    scan->probe_blocks = 1;
    return true;
}

/* Read the next blocks from the medium, past the write cache. */
static uint16_t read_next(struct nvmf_target *target, struct nvmf_request *req)
{
    struct nvmf_scan *scan = &req->scan;
    uint64_t rest = range_end(req) - scan->next_lba;
    struct media_io io = {
        .op = MEDIA_READ,
        .fua = true,
        .ns = req->ns->config.media_ns,
        .first_lba = scan->next_lba,
    };

    if (!(req->holds & HOLDS_SCAN)) {
        if (target->lba.scan != NULL) {
            wait_for_turn(target, req);
            return NVMF_PENDING;
        }
        target->lba.scan = req;
        req->holds |= HOLDS_SCAN;
    }
    if (!scratch_take(target, req)) {
        return NVMF_PENDING;
    }
    scan->read_blocks =
        scratch_blocks(req, (uint32_t)MIN(rest, (uint64_t)scan->probe_blocks));
    io.count_blocks = scan->read_blocks;
    return scratch_media(target, req, &io);
}

/* Let the other scans and commands have their turn after each read. */
static bool scan_yields(struct nvmf_target *target, struct nvmf_request *req)
{
    scratch_share(target, req);
    if (target->lba.waiting.head == NULL) {
        return false;
    }
    if (req->holds & HOLDS_SCRATCH) {
        scratch_give(target, req);
    }
    wait_for_turn(target, req);
    lba_scan_give(target, req);
    return true;
}

static uint16_t scan_blocks(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    struct nvmf_scan *scan = &req->scan;
    bool has_read = req->progress != 0;
    uint16_t status;

    req->progress = 0; /* it would overflow */
    if (has_read && !take_result(target, req)) {
        write_header(req, scan->found, LBA_CMPC_MORE);
        return NVME_SC_SUCCESS;
    }
    if (scan->next_lba >= range_end(req)) {
        write_header(req, scan->found, LBA_CMPC_COMPLETE);
        return NVME_SC_SUCCESS;
    }
    status = check_scan(target, req);
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if (has_read && scan_yields(target, req)) {
        return NVMF_PENDING;
    }
    return read_next(target, req);
}

uint16_t lba_status_execute(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    if (!req->scan.has_begun) {
        ASSERT(req->window_len == req->data_len);
        req->scan.has_begun = true;
        request_write_data(req, 0, NULL, req->data_len);
    }
    return action_of(req) == LBA_ACTION_SCAN ? scan_blocks(target, req)
                                             : return_tracked(target, req);
}
