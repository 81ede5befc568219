/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands for namespaces whose blocks have 8 bytes of metadata: Read, Write,
 * Compare, Verify, Write Zeroes, and the reads and writes of Copy.
 * Spec: NVM Express NVM Command Set 1.0 sections 3.2 and 5.2.
 *
 * Metadata is transferred as extended LBAs: each block is followed by its
 * metadata, and the length of the data counts both.  With PRACT set, only data
 * is transferred, and the medium makes or removes the protection information.
 * The medium also does the checks.
 *
 * For these namespaces, ns_check_closely() replaces the row of the command
 * table.  So the code here does not slow down commands for other namespaces.
 *
 * Left out: Compare does not check the protection information that the host
 * sends with the data.
 */
#include "nvmeof/target/base/protection.h"
#include "nvmeof/target/io/io.h"

enum {
    FUA_BIT = 30,           /* bit position in dword 12 */
    COPY_READ_SHIFT = 12,   /* the same, for the reads of Copy */
    PRINFO_CHECKS = 0x7,    /* guard, application tag, reference tag */
    PRINFO_CHECK_REF = 0x1, /* reference tag */
    WRITE_ZEROES_DEAC_BIT = 25,
};
/* The bits of the three checks have the same order at the media seam. */
enum { CHECKS_SHIFT = 4 };
_Static_assert((int)PRINFO_CHECKS << CHECKS_SHIFT == (int)MEDIA_CHECKS &&
                   (int)PRINFO_CHECK_REF << CHECKS_SHIFT ==
                       (int)MEDIA_CHECK_REF,
               "the checks of dword 12");

static uint32_t protection_blocks(const struct nvmf_request *req,
                                  uint32_t bytes)
{
    return bytes / protection_stride(req);
}

/* ---- Checks of the fields. */

/*
 * Check the action and the checks that a command asks for.
 *
 * @param byte  where the field is, for the error log
 */
static uint16_t check_prinfo(struct nvmf_request *req, uint32_t info,
                             uint64_t first_lba, uint32_t ref_tag,
                             uint16_t byte)
{
    uint8_t type = req->ns->geometry.pi_type;

    if (!(info & PRINFO_CHECK_REF) || type == 0 || type == 2 ||
        (type == 1 && ref_tag == (uint32_t)first_lba)) {
        return NVME_SC_SUCCESS;
    }
    return refuse_field(req, NVME_SC_INVALID_PROTECTION, byte, 0);
}

static uint16_t check_own_prinfo(struct nvmf_request *req)
{
    return check_prinfo(req, protection_info(req), io_first_lba(&req->sqe),
                        req->sqe.cdw14, SQE_CDW14);
}

static uint16_t protected_transfer_check(struct nvmf_target *target,
                                         struct nvmf_request *req)
{
    uint16_t status = check_own_prinfo(req);

    (void)target;
    if (status != NVME_SC_SUCCESS) {
        return status;
    }
    req->data_len = io_count_blocks(&req->sqe) * protection_stride(req);
    if (req->data_len > NVMF_MAX_TRANSFER) {
        return refuse_field(req, NVME_SC_INVALID_FIELD, SQE_CDW12, 0);
    }
    return io_check_range(req);
}

static uint16_t protected_write_check(struct nvmf_target *target,
                                      struct nvmf_request *req)
{
    uint16_t status = io_check_writable(req);

    if (status == NVME_SC_SUCCESS) {
        status = io_check_directive(req);
    }
    return status == NVME_SC_SUCCESS ? protected_transfer_check(target, req)
                                     : status;
}

/* ---- Operations of the medium. */

/* What media_io.protection says, without MEDIA_INTERLEAVED and checks. */
static uint8_t ns_protection(const struct nvmf_ns *ns)
{
    return (uint8_t)(ns->geometry.pi_type | MEDIA_METADATA |
                     (ns->geometry.block_shift == 12 ? MEDIA_4096 : 0));
}

/* As ns_protection(), with what an action and checks mean for a transfer. */
static uint8_t transfer_protection(const struct nvmf_ns *ns, uint32_t info)
{
    uint32_t checks =
        ns->geometry.pi_type != 0 ? (info & PRINFO_CHECKS) << CHECKS_SHIFT : 0;

    return (
        uint8_t)(ns_protection(ns) | checks |
                 (protection_drops_metadata(ns, info) ? 0 : MEDIA_INTERLEAVED));
}

/* Set the tags: these are the ones of a command's first block, and the
 * operation begins `done` blocks later. */
static void set_tags(struct media_io *io, uint32_t ref_tag, uint32_t app_tags,
                     uint32_t done)
{
    io->ref_tag = ref_tag + ((io->protection & MEDIA_PI_TYPE) == 3 ? 0 : done);
    io->app_tag = (uint16_t)app_tags;
    io->app_mask = (uint16_t)(app_tags >> 16);
}

/* Start an operation; an error of protection information names its blocks. */
static uint16_t submit_protected(struct nvmf_target *target,
                                 struct nvmf_request *req, struct media_io *io)
{
    req->error_lba = io->first_lba;
    return request_media(target, req, io);
}

/* The same, between the medium and the scratch buffer. */
static uint16_t submit_scratch(struct nvmf_target *target,
                               struct nvmf_request *req, struct media_io *io)
{
    struct nvmf_piece *piece = &target->scratch.piece[req->scratch];

    piece->len_bytes =
        io->count_blocks *
        protection_stride_bytes(req->ns, io->protection & MEDIA_INTERLEAVED);
    io->pieces = piece;
    io->piece_count = 1;
    return submit_protected(target, req, io);
}

/* Start the operation for one window. */
static uint16_t submit_window(struct nvmf_target *target,
                              struct nvmf_request *req, enum media_op op)
{
    uint32_t done = protection_blocks(req, req->transfer.data_offset);
    struct media_io io = {
        .op = op,
        .fua = req->sqe.cdw12 >> FUA_BIT & 1,
        .piece_count = req->transfer.piece_count,
        .protection = transfer_protection(req->ns, protection_info(req)),
        .ns = req->ns->config.media_ns,
        .first_lba = io_first_lba(&req->sqe) + done,
        .count_blocks = protection_blocks(req, req->window_len),
        .pieces = req->transfer.pieces,
    };

    set_tags(&io, req->sqe.cdw14, req->sqe.cdw15, done);
    return submit_protected(target, req, &io);
}

uint16_t protection_write_fused(struct nvmf_target *target,
                                struct nvmf_request *req)
{
    return submit_window(target, req, MEDIA_WRITE);
}

/* ---- Read and Write. */

static uint64_t transferred_blocks_512(const struct nvmf_request *req)
{
    return (uint64_t)io_count_blocks(&req->sqe)
           << (req->ns->geometry.block_shift - 9);
}

static uint16_t protected_read_execute(struct nvmf_target *target,
                                       struct nvmf_request *req)
{
    return submit_window(target, req, MEDIA_READ);
}

static void protected_read_finish(struct nvmf_target *target,
                                  struct nvmf_request *req)
{
    target->counters.host_reads++;
    target->counters.read_blocks_512 += transferred_blocks_512(req);
}

static uint16_t protected_write_execute(struct nvmf_target *target,
                                        struct nvmf_request *req)
{
    if (order_is_due(target, req) &&
        !order_enter_list(target, req,
                          io_first_lba(&req->sqe) +
                              protection_blocks(req, req->transfer.data_offset),
                          protection_blocks(req, req->window_len))) {
        return NVMF_PENDING;
    }
    return submit_window(target, req, MEDIA_WRITE);
}

static void protected_write_finish(struct nvmf_target *target,
                                   struct nvmf_request *req)
{
    target->counters.host_writes++;
    target->counters.written_blocks_512 += transferred_blocks_512(req);
}

/* ---- Compare and Verify. */

/* Read the next chunk of `blocks` from block `first` of the command on. */
static uint16_t read_protected_chunk(struct nvmf_target *target,
                                     struct nvmf_request *req, uint32_t first,
                                     uint32_t blocks, uint8_t protection)
{
    uint32_t done = first + req->chunk.done;
    struct media_io io = {
        .op = MEDIA_READ,
        .fua = req->sqe.cdw12 >> FUA_BIT & 1,
        .protection = protection,
        .ns = req->ns->config.media_ns,
        .first_lba = io_first_lba(&req->sqe) + done,
    };
    uint32_t room =
        SCRATCH_BYTES /
        protection_stride_bytes(req->ns, protection & MEDIA_INTERLEAVED);

    if (!scratch_take(target, req)) {
        return NVMF_PENDING;
    }
    req->chunk.blocks = MIN(room, blocks - req->chunk.done);
    io.count_blocks = req->chunk.blocks;
    set_tags(&io, req->sqe.cdw14, req->sqe.cdw15, done);
    return submit_scratch(target, req, &io);
}

/* Whether a chunk in the scratch buffer equals the host's data.  Protection
 * information is not compared, other metadata is. */
static bool chunk_is_equal(const struct nvmf_target *target,
                           const struct nvmf_request *req)
{
    const struct nvmf_chunk *chunk = &req->chunk;
    const uint8_t *data = scratch_data(target, req);
    uint32_t stride = protection_stride(req);
    uint32_t len = req->ns->geometry.pi_type != 0
                       ? UINT32_C(1) << req->ns->geometry.block_shift
                       : stride;

    for (uint32_t i = 0; i < chunk->blocks; i++) {
        if (!compare_data(req, (chunk->done + i) * stride,
                          data + (size_t)i * stride, len)) {
            return false;
        }
    }
    return true;
}

static uint16_t protected_compare_check(struct nvmf_target *target,
                                        struct nvmf_request *req)
{
    req->steps = STEPS_UNKNOWN;
    req->chunk = (struct nvmf_chunk){0};
    return protected_transfer_check(target, req);
}

/* Compare one window of the host's data. */
uint16_t protection_compare(struct nvmf_target *target,
                            struct nvmf_request *req)
{
    uint32_t blocks = protection_blocks(req, req->window_len);
    struct nvmf_chunk *chunk = &req->chunk;

    if (compare_chunk_arrived(req)) {
        if (!compare_memory_is_intact(target, req)) {
            return NVME_SC_DATA_TRANSFER_ERROR;
        }
        if (!chunk_is_equal(target, req)) {
            req->is_unlogged = true; /* a result, not an error */
            return refuse_status(NVME_SC_COMPARE_FAILED);
        }
        chunk->done += chunk->blocks;
        scratch_share(target, req);
    }
    if (chunk->done < blocks) {
        return read_protected_chunk(
            target, req, protection_blocks(req, req->transfer.data_offset),
            blocks, transfer_protection(req->ns, protection_info(req)));
    }
    chunk->done = 0;
    if (req->transfer.data_offset + req->window_len == req->data_len) {
        protected_read_finish(target, req);
    }
    return NVME_SC_SUCCESS;
}

static uint16_t protected_verify_check(struct nvmf_target *target,
                                       struct nvmf_request *req)
{
    uint16_t status = check_own_prinfo(req);

    if (status == NVME_SC_SUCCESS &&
        protection_drops_metadata(req->ns, protection_info(req))) {
        status =
            refuse_field(req, NVME_SC_INVALID_PROTECTION, SQE_CDW12 + 3, 5);
    }
    return status == NVME_SC_SUCCESS ? verify_check(target, req) : status;
}

static uint16_t protected_verify_execute(struct nvmf_target *target,
                                         struct nvmf_request *req)
{
    uint32_t blocks = io_count_blocks(&req->sqe);
    uint8_t protection =
        (uint8_t)(transfer_protection(req->ns, protection_info(req)) &
                  ~MEDIA_INTERLEAVED);

    if (compare_chunk_arrived(req)) {
        req->chunk.done += req->chunk.blocks;
        scratch_share(target, req);
    }
    if (req->chunk.done < blocks) {
        return read_protected_chunk(target, req, 0, blocks, protection);
    }
    target->counters.read_blocks_512 += transferred_blocks_512(req);
    return NVME_SC_SUCCESS;
}

/* ---- Write Zeroes. */

static uint16_t protected_zeroes_check(struct nvmf_target *target,
                                       struct nvmf_request *req)
{
    uint16_t status = io_check_writable(req);

    (void)target;
    if (status == NVME_SC_SUCCESS && req->ns->geometry.pi_type != 0 &&
        (protection_info(req) & PRINFO_CHECKS)) {
        status =
            refuse_field(req, NVME_SC_INVALID_PROTECTION, SQE_CDW12 + 3, 2);
    }
    return status != NVME_SC_SUCCESS ? status : io_check_range(req);
}

/* Without PRACT the metadata is 0, too.  With DEAC the blocks are deallocated,
 * if FUA does not forbid it. */
static uint16_t protected_zeroes_execute(struct nvmf_target *target,
                                         struct nvmf_request *req)
{
    uint32_t cdw12 = req->sqe.cdw12;
    struct media_io io = {
        .op = MEDIA_WRITE_ZEROES,
        .fua = cdw12 >> FUA_BIT & 1,
        .protection = transfer_protection(req->ns, protection_info(req)),
        .ns = req->ns->config.media_ns,
        .first_lba = io_first_lba(&req->sqe),
        .count_blocks = io_count_blocks(&req->sqe),
    };

    if (order_is_due(target, req) &&
        !order_enter_list(target, req, io.first_lba, io.count_blocks)) {
        return NVMF_PENDING;
    }
    if ((cdw12 >> WRITE_ZEROES_DEAC_BIT & 1) && !io.fua) {
        io.op = MEDIA_DEALLOCATE;
        io.protection = 0;
    }
    set_tags(&io, req->sqe.cdw14, req->sqe.cdw15, 0);
    return submit_protected(target, req, &io);
}

/* ---- Copy. */

static uint32_t copy_read_info(const struct nvmf_request *req)
{
    return req->sqe.cdw12 >> COPY_READ_SHIFT & 0xf;
}

static uint16_t protected_copy_check(struct nvmf_target *target,
                                     struct nvmf_request *req)
{
    uint16_t status = check_own_prinfo(req);

    /* PRACT must have the same effect on the reads and the writes of a Copy. */
    if (status == NVME_SC_SUCCESS &&
        protection_drops_metadata(req->ns, protection_info(req)) !=
            protection_drops_metadata(req->ns, copy_read_info(req))) {
        status =
            refuse_field(req, NVME_SC_INVALID_PROTECTION, SQE_CDW12 + 1, 7);
    }
    return status == NVME_SC_SUCCESS ? copy_check(target, req) : status;
}

uint16_t protection_check_copy_range(struct nvmf_request *req,
                                     uint64_t first_lba, uint32_t ref_tag)
{
    return check_prinfo(req, copy_read_info(req), first_lba, ref_tag,
                        SQE_CDW12 + 1);
}

/* Blocks of a chunk of Copy. */
uint32_t protection_copy_room(const struct nvmf_request *req)
{
    return SCRATCH_BYTES / protection_stride(req);
}

uint16_t protection_copy_chunk(struct nvmf_target *target,
                               struct nvmf_request *req, struct media_io *io,
                               uint32_t ref_tag, uint32_t app_tags,
                               uint32_t done)
{
    io->protection = transfer_protection(req->ns, io->op == MEDIA_READ
                                                      ? copy_read_info(req)
                                                      : protection_info(req));
    set_tags(io, ref_tag, app_tags, done);
    return submit_scratch(target, req, io);
}

/* ---- The rows. */

const struct nvmf_command protection_read_row = {
    .direction = DATA_TO_HOST,
    .flags = COMMAND_NEEDS_NS | COMMAND_HAS_LBA,
    .check = protected_transfer_check,
    .execute = protected_read_execute,
    .finish = protected_read_finish,
};

const struct nvmf_command protection_write_row = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS | COMMAND_WRITES | COMMAND_HAS_LBA,
    .check = protected_write_check,
    .execute = protected_write_execute,
    .finish = protected_write_finish,
};

const struct nvmf_command protection_compare_row = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS | COMMAND_HAS_LBA,
    .check = protected_compare_check,
    .execute = protection_compare,
};

const struct nvmf_command protection_verify_row = {
    .flags = COMMAND_NEEDS_NS | COMMAND_HAS_LBA,
    .check = protected_verify_check,
    .execute = protected_verify_execute,
};

const struct nvmf_command protection_zeroes_row = {
    .flags = COMMAND_NEEDS_NS | COMMAND_WRITES | COMMAND_HAS_LBA,
    .check = protected_zeroes_check,
    .execute = protected_zeroes_execute,
};

const struct nvmf_command protection_copy_row = {
    .direction = DATA_TO_CONTROLLER,
    .flags = COMMAND_NEEDS_NS | COMMAND_WRITES | COMMAND_HAS_LBA,
    .check = protected_copy_check,
    .execute = copy_execute,
    .fail = copy_fail,
};
