/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copy: the drive copies blocks by itself, through a scratch buffer.
 * Spec: NVM Express NVM Command Set 1.0 section 3.2.2.
 *
 * Source ranges are copied one after the other.  A source range that overlaps
 * the destination is read as the ranges before it have left it.
 *
 * Left out: descriptor format 1 (protection information) and formats 2 and 3
 * (other namespaces as the source).
 */
#include "nvmeof/target/internal.h"

#include "lib/bytes.h"

enum { /* fields of dword 12 */
       COPY_FORMAT_SHIFT = 8,
       COPY_FUA_BIT = 30,
};

enum { /* byte offsets in a source range of format 0 */
       COPY_RANGE_SLBA = 8,
       COPY_RANGE_NLB = 16, /* 0's based */
       COPY_RANGE_LEN = 32,
};

struct copy_range {
    uint64_t first_lba;
    uint32_t count_blocks;
};

static uint32_t count_ranges(const struct nvmf_request *req)
{
    return (req->sqe.cdw12 & 0xff) + 1;
}

static struct copy_range copy_range(const struct nvmf_request *req, uint32_t i)
{
    uint8_t buf[COPY_RANGE_LEN];

    request_read_data(req, i * COPY_RANGE_LEN, buf, sizeof(buf));
    return (struct copy_range){
        .first_lba = get_le64(buf + COPY_RANGE_SLBA),
        .count_blocks = get_le16(buf + COPY_RANGE_NLB) + 1u,
    };
}

uint16_t copy_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t status = io_check_level(target, req);

    if (status == NVME_SC_SUCCESS) {
        status = io_check_writable(req);
    }
    if (status == NVME_SC_SUCCESS) {
        status = io_check_directive(req);
    }
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    if ((req->sqe.cdw12 >> COPY_FORMAT_SHIFT & 0xf) != 0) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW12 + 1, 0);
    }
    if (count_ranges(req) > COPY_MAX_RANGES) {
        return refuse_field(req, NVME_SC_SIZE_LIMIT, SQE_CDW12, 0);
    }
    req->data_len = count_ranges(req) * COPY_RANGE_LEN;
    req->steps = STEPS_UNKNOWN;
    req->chunk = (struct nvmf_chunk){0};
    return NVME_SC_SUCCESS;
}

/* Check all ranges before the first one is copied.  Sets *total to the length
 * of the destination. */
static uint16_t check_ranges(struct nvmf_request *req, uint32_t *total)
{
    const struct nvmf_ns *ns = req->ns;

    *total = 0;
    for (uint32_t i = 0; i < count_ranges(req); i++) {
        struct copy_range range = copy_range(req, i);

        *total += range.count_blocks;
        if (range.count_blocks > COPY_MAX_RANGE_BLOCKS ||
            *total > COPY_MAX_BLOCKS) {
            return refuse_status(NVME_SC_SIZE_LIMIT);
        }
        if (!io_is_in_range(ns, range.first_lba, range.count_blocks)) {
            return refuse_status(NVME_SC_LBA_RANGE);
        }
    }
    if (!io_is_in_range(ns, io_first_lba(&req->sqe), *total)) {
        return refuse_field(req, NVME_SC_LBA_RANGE, SQE_CDW10, 0);
    }
    return NVME_SC_SUCCESS;
}

/* A chunk has been written: continue with the next one. */
static void copy_advance_chunk(struct nvmf_request *req)
{
    struct nvmf_chunk *chunk = &req->chunk;
    uint32_t count = copy_range(req, chunk->range).count_blocks;

    chunk->done += chunk->blocks;
    if (chunk->done == count) {
        chunk->total += count;
        chunk->done = 0;
        chunk->range++;
    }
}

static uint16_t copy_read_chunk(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    struct copy_range range = copy_range(req, req->chunk.range);
    struct media_io io = {
        .op = MEDIA_READ,
        .ns = req->ns->config.media_ns,
        .first_lba = range.first_lba + req->chunk.done,
    };

    if (!scratch_take(target, req)) {
        return NVMF_PENDING;
    }
    req->chunk.blocks =
        scratch_blocks(req, range.count_blocks - req->chunk.done);
    io.count_blocks = req->chunk.blocks;
    return scratch_media(target, req, &io);
}

static uint16_t copy_write_chunk(struct nvmf_target *target,
                                 struct nvmf_request *req)
{
    struct media_io io = {
        .op = MEDIA_WRITE,
        .fua = req->sqe.cdw12 >> COPY_FUA_BIT & 1,
        .ns = req->ns->config.media_ns,
        .first_lba =
            io_first_lba(&req->sqe) + req->chunk.total + req->chunk.done,
        .count_blocks = req->chunk.blocks,
    };

    return scratch_media(target, req, &io);
}

/* Media operations alternate: a chunk is read, then written. */
uint16_t copy_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    bool was_written =
        req->progress != req->chunk.ops && req->progress % 2 == 0;
    uint16_t status;
    uint32_t total;

    if (req->progress == 0 && !(req->holds & HOLDS_ORDER)) {
        status = check_ranges(req, &total);
        if (status != NVME_SC_SUCCESS) {
            return status;
        }
        if (order_is_due(target, req) &&
            !order_enter_list(target, req, io_first_lba(&req->sqe), total)) {
            return NVMF_PENDING;
        }
    }
    req->chunk.ops = req->progress;
    if (was_written) {
        copy_advance_chunk(req);
        scratch_share(target, req);
    }
    if (req->chunk.range == count_ranges(req)) {
        target->counters.host_writes++;
        target->counters.written_blocks_512 +=
            ((uint64_t)req->chunk.total << req->ns->geometry.block_shift) / 512;
        return NVME_SC_SUCCESS;
    }
    return req->progress % 2 == 0 ? copy_read_chunk(target, req)
                                  : copy_write_chunk(target, req);
}

/* Dword 0 names the first range that was not copied completely. */
void copy_fail(struct nvmf_target *target, struct nvmf_request *req)
{
    (void)target;
    req->result[0] = req->chunk.range;
}
