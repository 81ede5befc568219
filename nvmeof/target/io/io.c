/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NVM command set: Flush, Write, Read, Write Zeroes, Dataset Management.
 * Compare and Verify are in compare.c, fused pairs in fused.c, Copy in copy.c,
 * Write Uncorrectable in uncorrectable.c.
 * Spec: NVM Express Base 1.4 section 6.
 *
 * Reservations are in reservation_command.c, commands for namespaces whose
 * blocks have metadata in protection.c.
 *
 * Left out: directives, which are refused, and access hints, which are ignored.
 */
#include "nvmeof/target/namespaces/namespaces.h"
#include "nvmeof/target/io/io.h"

#include "lib/bytes.h"

enum {
    RW_FUA_BIT = 30, /* bit position in dword 12 */
    WRITE_ZEROES_DEAC_BIT = 25,
    DSM_RANGE_LEN = 16,
    DSM_RANGE_COUNT = 4, /* offset in a range of the number of blocks */
    DSM_RANGE_SLBA = 8,  /* offset in a range of the first LBA */
};

/* Start the media operation for one window, or for a command without data. */
uint16_t io_submit(struct nvmf_target *target, struct nvmf_request *req,
                   enum media_op op)
{
    const struct nvmf_ns *ns = req->ns;
    uint8_t shift = ns->geometry.block_shift;
    struct media_io io = {
        .op = op,
        .fua = req->sqe.cdw12 >> RW_FUA_BIT & 1,
        .piece_count = req->transfer.piece_count,
        .ns = ns->config.media_ns,
        .first_lba =
            io_first_lba(&req->sqe) + (req->transfer.data_offset >> shift),
        .count_blocks = req->data_len != 0 ? req->window_len >> shift
                                           : io_count_blocks(&req->sqe),
        .pieces = req->transfer.pieces,
    };

    return request_media(target, req, &io);
}

static uint16_t read_execute(struct nvmf_target *target,
                             struct nvmf_request *req)
{
    return io_submit(target, req, MEDIA_READ);
}

static uint16_t write_execute(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    uint8_t shift = req->ns->geometry.block_shift;

    if (order_is_due(target, req) &&
        !order_enter_list(target, req,
                          io_first_lba(&req->sqe) +
                              (req->transfer.data_offset >> shift),
                          req->window_len >> shift)) {
        return NVMF_PENDING;
    }
    return io_submit(target, req, MEDIA_WRITE);
}

static void read_finish(struct nvmf_target *target, struct nvmf_request *req)
{
    target->counters.host_reads++;
    target->counters.read_blocks_512 += req->data_len / 512;
}

void io_write_finish(struct nvmf_target *target, struct nvmf_request *req)
{
    /* Metadata of one block in a fused pair does not count: 8 < 512. */
    target->counters.host_writes++;
    target->counters.written_blocks_512 += req->data_len / 512;
}

static uint16_t write_zeroes_check(struct nvmf_target *target,
                                   struct nvmf_request *req)
{
    uint16_t status = io_check_writable(req);

    (void)target;
    return status != NVME_SC_SUCCESS ? status : io_check_range(req);
}

/* With DEAC the blocks are deallocated, since these read as zeros too. */
static uint16_t write_zeroes_execute(struct nvmf_target *target,
                                     struct nvmf_request *req)
{
    bool may_deallocate = req->sqe.cdw12 >> WRITE_ZEROES_DEAC_BIT & 1;
    bool fua = req->sqe.cdw12 >> RW_FUA_BIT & 1;

    if (order_is_due(target, req) &&
        !order_enter_list(target, req, io_first_lba(&req->sqe),
                          io_count_blocks(&req->sqe))) {
        return NVMF_PENDING;
    }
    return io_submit(target, req,
                     may_deallocate && !fua ? MEDIA_DEALLOCATE
                                            : MEDIA_WRITE_ZEROES);
}

static uint16_t flush_check(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    req->steps = 1;
    if (req->sqe.nsid == NVME_NSID_ALL) {
        if (sanitize_status(target) != 0) {
            return sanitize_status(target);
        }
        if (reservation_conflicts_any(target, request_ctrl(target, req),
                                      false)) {
            return reservation_refuse(req);
        }
        return ana_check_all(target, req, true);
    }
    return ns_check(target, request_ctrl(target, req), req);
}

static uint16_t flush_execute(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    struct media_io io = {.op = MEDIA_FLUSH};

    if (req->sqe.nsid == NVME_NSID_ALL) {
        return ns_flush_all(target, req);
    }
    io.ns = req->ns->config.media_ns;
    return request_media(target, req, &io);
}

static uint16_t dsm_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t ranges = (uint16_t)((req->sqe.cdw10 & 0xff) + 1);

    req->steps = ranges;
    (void)target;
    req->data_len = (uint32_t)ranges * DSM_RANGE_LEN;
    return io_check_writable(req);
}

struct dsm_range {
    uint64_t first_lba;
    uint32_t count_blocks;
};

static struct dsm_range dsm_range(const struct nvmf_request *req, uint16_t i)
{
    uint8_t buf[DSM_RANGE_LEN];

    request_read_data(req, (uint32_t)i * DSM_RANGE_LEN, buf, sizeof(buf));
    return (struct dsm_range){
        .first_lba = get_le64(buf + DSM_RANGE_SLBA),
        .count_blocks = get_le32(buf + DSM_RANGE_COUNT),
    };
}

/* Check all ranges before the first one is executed. */
static uint16_t dsm_check_ranges(const struct nvmf_request *req)
{
    for (uint16_t i = 0; i < req->steps; i++) {
        struct dsm_range range = dsm_range(req, i);

        if (!io_is_in_range(req->ns, range.first_lba, range.count_blocks)) {
            return refuse_status(NVME_SC_LBA_RANGE);
        }
    }
    return NVME_SC_SUCCESS;
}

/* The command writes to everything from its lowest to its highest block. */
static bool dsm_enter_order(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    uint64_t first = UINT64_MAX;
    uint64_t end = 0;

    for (uint16_t i = 0; i < req->steps; i++) {
        struct dsm_range range = dsm_range(req, i);

        if (range.count_blocks != 0) {
            first = MIN(first, range.first_lba);
            end = MAX(end, range.first_lba + range.count_blocks);
        }
    }
    return end == 0 || order_enter_list(target, req, first, end - first);
}

static uint16_t dsm_execute(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    uint16_t status;

    if (req->progress == 0) {
        status = dsm_check_ranges(req);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
    }
    if (!(req->sqe.cdw11 & DSM_ATTRIBUTE_DEALLOCATE)) {
        return NVME_SC_SUCCESS; /* all other attributes are hints */
    }
    if (order_is_due(target, req) && !dsm_enter_order(target, req)) {
        return NVMF_PENDING;
    }
    for (; req->progress < req->steps; req->progress++) {
        struct dsm_range range = dsm_range(req, req->progress);
        struct media_io io = {
            .op = MEDIA_DEALLOCATE,
            .ns = req->ns->config.media_ns,
            .first_lba = range.first_lba,
            .count_blocks = range.count_blocks,
        };

        if (range.count_blocks != 0) {
            return request_media(target, req, &io);
        }
    }
    return NVME_SC_SUCCESS;
}

/* A command has deallocated all its ranges. */
static void note_deallocated(struct nvmf_target *target,
                             const struct nvmf_request *req,
                             const struct nvmf_ns *ns)
{
    for (uint16_t i = 0; i < req->steps; i++) {
        struct dsm_range range = dsm_range(req, i);

        lba_status_written(target, ns, range.first_lba, range.count_blocks);
    }
}

/* A command on a namespace with tracked blocks has ended: tell which blocks it
 * has written. */
void io_note_written(struct nvmf_target *target, const struct nvmf_request *req,
                     const struct nvmf_ns *ns, uint16_t status)
{
    bool is_ok = status == NVME_SC_SUCCESS;
    uint32_t bytes = req->transfer.data_offset + (is_ok ? req->window_len : 0);
    uint64_t first_lba = io_first_lba(&req->sqe);

    if (request_qpair(target, req)->qid == 0) {
        return;
    }
    if (req->sqe.opcode == NVM_WRITE) {
        /* The windows before one that has failed are written. */
        lba_status_written(target, ns, first_lba, io_blocks_in(ns, req, bytes));
    } else if (req->sqe.opcode == NVM_WRITE_ZEROES && is_ok) {
        lba_status_written(target, ns, first_lba, io_count_blocks(&req->sqe));
    } else if (req->sqe.opcode == NVM_COPY && is_ok) {
        lba_status_written(target, ns, first_lba, req->chunk.total);
    } else if (req->sqe.opcode == NVM_DATASET_MANAGEMENT && is_ok &&
               req->sqe.cdw11 & DSM_ATTRIBUTE_DEALLOCATE) {
        note_deallocated(target, req, ns);
    }
}

const struct nvmf_command io_flush_row = {
    .check = flush_check,
    .execute = flush_execute,
};

const struct nvmf_command io_write_row = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS | COMMAND_WRITES | COMMAND_HAS_LBA,
    .check = io_write_check,
    .execute = write_execute,
    .finish = io_write_finish,
};

const struct nvmf_command io_read_row = {
    .direction = DATA_TO_HOST,
    .flags = COMMAND_NEEDS_NS | COMMAND_HAS_LBA,
    .check = io_transfer_check,
    .execute = read_execute,
    .finish = read_finish,
};

const struct nvmf_command io_write_zeroes_row = {
    .flags = COMMAND_NEEDS_NS | COMMAND_WRITES | COMMAND_HAS_LBA,
    .check = write_zeroes_check,
    .execute = write_zeroes_execute,
};

/* Linux always describes room for 256 ranges. */
const struct nvmf_command io_dsm_row = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS | COMMAND_WRITES | COMMAND_SGL_LONGER,
    .check = dsm_check,
    .execute = dsm_execute,
};
