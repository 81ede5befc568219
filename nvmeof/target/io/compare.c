/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compare and Verify.  Both read the blocks into a scratch buffer, chunk by
 * chunk.
 * Spec: NVM Express Base 1.4 sections 6.6 and 6.14.
 *
 * Namespaces whose blocks have metadata use protection.c instead.
 */
#include "nvmeof/target/io/io.h"

#include <string.h>

enum { COMPARE_FUA_BIT = 30 }; /* bit position in dword 12 */

static bool is_intact(const struct nvmf_target *target, const void *memory,
                      size_t len)
{
    const struct nvmf_config *config = &target->config;

    return config->is_intact == NULL ||
           config->is_intact(config->memory_ctx, memory, len);
}

bool compare_memory_is_intact(const struct nvmf_target *target,
                              const struct nvmf_request *req)
{
    bool all = is_intact(target, scratch_data(target, req),
                         target->scratch.piece[req->scratch].len_bytes);

    for (uint8_t i = 0; i < req->transfer.piece_count; i++) {
        all &= is_intact(target, req->transfer.pieces[i].ptr,
                         req->transfer.pieces[i].len_bytes);
    }
    return all;
}

bool compare_data(const struct nvmf_request *req, uint32_t offset,
                  const uint8_t *data, uint32_t len)
{
    for (uint8_t i = 0; i < req->transfer.piece_count && len > 0; i++) {
        uint32_t piece_len = req->transfer.pieces[i].len_bytes;
        uint32_t n;

        if (offset >= piece_len) {
            offset -= piece_len;
            continue;
        }
        n = MIN(piece_len - offset, len);
        if (memcmp((const uint8_t *)req->transfer.pieces[i].ptr + offset, data,
                   n) != 0) {
            return false;
        }
        offset = 0;
        data += n;
        len -= n;
    }
    ASSERT(len == 0);
    return true;
}

/* Read the next chunk of `blocks` from first_lba on. */
static uint16_t read_chunk(struct nvmf_target *target, struct nvmf_request *req,
                           uint64_t first_lba, uint32_t blocks)
{
    struct media_io io = {
        .op = MEDIA_READ,
        .fua = req->sqe.cdw12 >> COMPARE_FUA_BIT & 1,
        .ns = req->ns->config.media_ns,
        .first_lba = first_lba + req->chunk.done,
    };

    if (!scratch_take(target, req)) {
        return NVMF_PENDING;
    }
    req->chunk.blocks = scratch_blocks(req, blocks - req->chunk.done);
    io.count_blocks = req->chunk.blocks;
    return scratch_media(target, req, &io);
}

bool compare_chunk_arrived(struct nvmf_request *req)
{
    bool has_arrived = req->progress != req->chunk.ops;

    req->chunk.ops = req->progress;
    return has_arrived;
}

static uint16_t compare_check(struct nvmf_target *target,
                              struct nvmf_request *req)
{
    req->steps = STEPS_UNKNOWN;
    req->chunk = (struct nvmf_chunk){0};
    return io_transfer_check(target, req);
}

/* Compare one window of the host's data. */
uint16_t compare_execute(struct nvmf_target *target, struct nvmf_request *req)
{
    uint8_t shift = req->ns->geometry.block_shift;
    uint32_t blocks = req->window_len >> shift;
    struct nvmf_chunk *chunk = &req->chunk;

    if (compare_chunk_arrived(req)) {
        if (!compare_memory_is_intact(target, req)) {
            return NVME_SC_DATA_TRANSFER_ERROR;
        }
        if (!compare_data(req, chunk->done << shift, scratch_data(target, req),
                          chunk->blocks << shift)) {
            req->is_unlogged = true; /* a result, not an error */
            return refuse_status(NVME_SC_COMPARE_FAILED);
        }
        chunk->done += chunk->blocks;
        scratch_share(target, req);
    }
    if (chunk->done < blocks) {
        return read_chunk(target, req,
                          io_first_lba(&req->sqe) +
                              (req->transfer.data_offset >> shift),
                          blocks);
    }
    chunk->done = 0;
    if (req->transfer.data_offset + req->window_len == req->data_len) {
        target->counters.host_reads++;
        target->counters.read_blocks_512 += req->data_len / 512;
    }
    return NVME_SC_SUCCESS;
}

uint16_t verify_check(struct nvmf_target *target, struct nvmf_request *req)
{
    uint16_t status = io_check_level(target, req);

    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    req->steps = STEPS_UNKNOWN;
    req->chunk = (struct nvmf_chunk){0};
    return io_check_range(req);
}

static uint16_t verify_execute(struct nvmf_target *target,
                               struct nvmf_request *req)
{
    uint32_t blocks = io_count_blocks(&req->sqe);
    uint8_t shift = req->ns->geometry.block_shift;

    if (compare_chunk_arrived(req)) {
        req->chunk.done += req->chunk.blocks;
        scratch_share(target, req);
    }
    if (req->chunk.done < blocks) {
        return read_chunk(target, req, io_first_lba(&req->sqe), blocks);
    }
    target->counters.read_blocks_512 += ((uint64_t)blocks << shift) / 512;
    return NVME_SC_SUCCESS;
}

const struct nvmf_command compare_row = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS | COMMAND_HAS_LBA,
    .check = compare_check,
    .execute = compare_execute,
};

const struct nvmf_command verify_row = {
    .flags = COMMAND_NEEDS_NS | COMMAND_HAS_LBA,
    .check = verify_check,
    .execute = verify_execute,
};
