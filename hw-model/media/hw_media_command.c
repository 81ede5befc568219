/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks the commands that firmware writes and turns them into operations.
 * Reference: docs/hardware/media.md, section 3.
 */
#include "hw-model/media/hw_media_internal.h"

enum { SECTOR_SHIFT = 9, LIST_ALIGN = 16 };

struct command {
    uint8_t opcode;
    uint8_t flags;
    uint16_t pieces;
    uint32_t count;
    uint64_t lba;
    uint64_t list;
    const uint8_t *inline_pieces;
};

static struct command parse_command(const uint8_t *p)
{
    return (struct command){
        .opcode = p[MEDIA_CMD_OPCODE],
        .flags = p[MEDIA_CMD_FLAGS],
        .pieces = get_le16(p + MEDIA_CMD_PIECES),
        .count = get_le32(p + MEDIA_CMD_COUNT),
        .lba = get_le64(p + MEDIA_CMD_LBA),
        .list = get_le64(p + MEDIA_CMD_LIST),
        .inline_pieces = p + MEDIA_CMD_PIECE,
    };
}

static bool has_range(const struct command *cmd)
{
    return cmd->opcode != MEDIA_CMD_NOP && cmd->opcode != MEDIA_CMD_FLUSH;
}

static bool has_data(const struct command *cmd)
{
    return cmd->opcode == MEDIA_CMD_READ || cmd->opcode == MEDIA_CMD_WRITE;
}

static enum media_cqe_status check_form(const struct hw_media *media,
                                        const struct command *cmd)
{
    bool is_list = cmd->flags & MEDIA_CMD_LIST_FLAG;

    if (cmd->opcode > MEDIA_CMD_DEALLOCATE) {
        return MEDIA_CQE_BAD_OPCODE;
    }
    if ((cmd->flags & ~(MEDIA_CMD_FUA | MEDIA_CMD_LIST_FLAG)) ||
        cmd->pieces > (is_list ? MEDIA_PIECES_MAX : MEDIA_INLINE_PIECES) ||
        (cmd->pieces > 0) != has_data(cmd)) {
        return MEDIA_CQE_BAD_ARGUMENT;
    }
    if (has_range(cmd) && cmd->count == 0) {
        return MEDIA_CQE_BAD_ARGUMENT;
    }
    if (has_data(cmd) &&
        cmd->count > (uint32_t)MEDIA_TRANSFER_MAX >> media->regs.block_shift) {
        return MEDIA_CQE_BAD_ARGUMENT;
    }
    return MEDIA_CQE_OK;
}

/* @param op  its range, which is empty, is set if the command has one */
static enum media_cqe_status check_range(const struct hw_media *media,
                                         const struct command *cmd,
                                         struct hw_media_op *op)
{
    uint32_t shift = media->regs.block_shift;
    uint64_t blocks = media->config.capacity_bytes >> shift;

    if (!has_range(cmd)) {
        return MEDIA_CQE_OK;
    }
    if (cmd->lba >= blocks || cmd->count > blocks - cmd->lba) {
        return MEDIA_CQE_LBA_RANGE;
    }
    op->first = cmd->lba << (shift - SECTOR_SHIFT);
    op->end = (cmd->lba + cmd->count) << (shift - SECTOR_SHIFT);
    return MEDIA_CQE_OK;
}

static void *map_data(const struct hw_media *media, const struct command *cmd,
                      uint64_t addr, uint64_t len)
{
    return cmd->opcode == MEDIA_CMD_READ ? media_dma_write(media, addr, len)
                                         : media_dma(media, addr, len);
}

static enum media_cqe_status map_pieces(const struct hw_media *media,
                                        const struct command *cmd,
                                        struct hw_media_op *op)
{
    const uint8_t *piece = cmd->inline_pieces;
    uint64_t total = 0;

    op->num_iov = cmd->pieces;
    if (cmd->flags & MEDIA_CMD_LIST_FLAG) {
        if (cmd->list % LIST_ALIGN != 0) {
            return MEDIA_CQE_BAD_ARGUMENT;
        }
        piece = media_dma(media, cmd->list,
                          (uint64_t)cmd->pieces * MEDIA_PIECE_LEN);
        if (piece == NULL) {
            return MEDIA_CQE_BAD_ADDRESS;
        }
    }
    for (unsigned int i = 0; i < cmd->pieces; i++, piece += MEDIA_PIECE_LEN) {
        uint32_t len = get_le32(piece + MEDIA_PIECE_LENGTH);
        void *data = NULL;

        if (len == 0) {
            return MEDIA_CQE_BAD_ARGUMENT;
        }
        data = map_data(media, cmd, get_le64(piece + MEDIA_PIECE_ADDR), len);
        if (data == NULL) {
            return MEDIA_CQE_BAD_ADDRESS;
        }
        op->iov[i] = (struct iovec){.iov_base = data, .iov_len = len};
        total += len;
    }
    return total == (op->end - op->first) << SECTOR_SHIFT || !has_data(cmd)
               ? MEDIA_CQE_OK
               : MEDIA_CQE_BAD_ARGUMENT;
}

/* Check in the order of the guide.  The first failure decides the status. */
static enum media_cqe_status judge_command(const struct hw_media *media,
                                           const struct command *cmd,
                                           struct hw_media_op *op)
{
    enum media_cqe_status status = check_form(media, cmd);

    if (status == MEDIA_CQE_OK) {
        status = check_range(media, cmd, op);
    }
    if (status == MEDIA_CQE_OK) {
        status = map_pieces(media, cmd, op);
    }
    return status;
}

void media_command_start(struct hw_media *media, struct hw_media_op *op,
                         const uint8_t *bytes)
{
    struct command cmd;

    op->pending = 0;
    op->state = HW_OP_IO;
    op->is_traced = false;
    op->has_range = false;
    op->first = 0;
    op->end = 0;
    if (bytes == NULL) { /* the command has a memory error */
        op->cookie = 0;
        op->opcode = MEDIA_CMD_NOP;
        op->status = MEDIA_CQE_BAD_ADDRESS;
        media_complete(media, op);
        return;
    }
    cmd = parse_command(bytes);
    op->cookie = get_le64(bytes + MEDIA_CMD_COOKIE);
    op->opcode = cmd.opcode;
    op->is_durable = cmd.flags & MEDIA_CMD_FUA;
    op->status = (uint8_t)judge_command(media, &cmd, op);
    if (trace_is_on(media->config.trace, TRACE_GROUP_MEDIA)) {
        op->tag = get_le32(bytes + MEDIA_CMD_TAG);
        media_trace_start(media, op);
    }
    if (op->status != MEDIA_CQE_OK) {
        media_complete(media, op);
        return;
    }
    media_overlap_begin(media, op);
}
