/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks the commands that firmware writes and turns them into operations.
 * Reference: docs/hardware/nand.md, section 4.
 */
#include "hw-model/nand/hw_nand_internal.h"

enum { LIST_ALIGN = 64 };

static bool has_entries(const struct hw_nand_op *op)
{
    return op->opcode == NAND_CMD_READ || op->opcode == NAND_CMD_PROGRAM;
}

static enum nand_cqe_status check_form(const struct hw_nand_op *op,
                                       uint8_t flags)
{
    uint8_t allowed = 0;

    if (op->opcode > NAND_CMD_MARKS) {
        return NAND_CQE_BAD_OPCODE;
    }
    if (op->opcode == NAND_CMD_ERASE) {
        allowed = NAND_CMD_SLC | NAND_CMD_REUSE;
    } else if (op->opcode == NAND_CMD_READ) {
        allowed = NAND_CMD_URGENT;
    }
    if ((flags & ~allowed) || op->entries > NAND_READ_ENTRIES_MAX ||
        (op->entries > 0) != has_entries(op)) {
        return NAND_CQE_BAD_ARGUMENT;
    }
    return op->opcode == NAND_CMD_NOP || op->planes != 0
               ? NAND_CQE_OK
               : NAND_CQE_BAD_ARGUMENT;
}

static enum nand_cqe_status check_place(const struct hw_nand *nand,
                                        const struct hw_nand_op *op,
                                        uint8_t channel, uint8_t die)
{
    const struct nand_geometry *geometry = &nand->geometry;

    if (channel >= geometry->channels || die >= geometry->dies ||
        op->planes >> geometry->planes != 0) {
        return NAND_CQE_BAD_ADDRESS;
    }
    for (unsigned int i = 0; i < geometry->planes; i++) {
        if (op->planes & BIT(i) && op->opcode != NAND_CMD_MARKS &&
            op->block[i] >= geometry->blocks) {
            return NAND_CQE_BAD_ADDRESS;
        }
    }
    return op->opcode == NAND_CMD_PROGRAM && op->wordline >= geometry->wordlines
               ? NAND_CQE_BAD_ADDRESS
               : NAND_CQE_OK;
}

static enum nand_cqe_status map_list(const struct hw_nand *nand,
                                     struct hw_nand_op *op, uint64_t addr)
{
    uint64_t len = (uint64_t)op->entries * NAND_ENTRY_LEN;

    if (op->opcode == NAND_CMD_MARKS) {
        len = (uint64_t)nand->geometry.blocks *
              (unsigned int)__builtin_popcount(op->planes);
    }
    op->list = NULL;
    if (len == 0) {
        return NAND_CQE_OK;
    }
    if (addr % LIST_ALIGN != 0) {
        return NAND_CQE_BAD_ARGUMENT;
    }
    op->list = op->opcode == NAND_CMD_MARKS ? hw_nand_dma_write(nand, addr, len)
                                            : hw_nand_dma(nand, addr, len);
    return op->list != NULL ? NAND_CQE_OK : NAND_CQE_BAD_ADDRESS;
}

/* Check in the order of the guide.  The first failure decides the status. */
static enum nand_cqe_status judge_command(const struct hw_nand *nand,
                                          struct hw_nand_op *op,
                                          const uint8_t *bytes)
{
    uint8_t channel = bytes[NAND_CMD_CHANNEL];
    uint8_t die = bytes[NAND_CMD_DIE];
    enum nand_cqe_status status = check_form(op, bytes[NAND_CMD_FLAGS]);

    if (status != NAND_CQE_OK || op->opcode == NAND_CMD_NOP) {
        return status;
    }
    status = check_place(nand, op, channel, die);
    if (status != NAND_CQE_OK) {
        return status;
    }
    op->die = (uint32_t)channel * nand->geometry.dies + die;
    return map_list(nand, op, get_le64(bytes + NAND_CMD_LIST));
}

/* The marks do not change, so that MARKS need not wait for the die. */
static void write_marks(const struct hw_nand *nand, struct hw_nand_op *op)
{
    unsigned int channel = op->die / nand->geometry.dies;
    unsigned int die = op->die % nand->geometry.dies;
    uint8_t *to = op->list;

    if (nand_array_die_is_dead(nand->array, channel, die)) {
        op->status = NAND_CQE_DEAD;
        return;
    }
    for (unsigned int plane = 0; plane < nand->geometry.planes; plane++) {
        if (!(op->planes & BIT(plane))) {
            continue;
        }
        for (unsigned int i = 0; i < nand->geometry.blocks; i++) {
            const struct nand_block *block =
                nand_array_block(nand->array, channel, die, plane, i);

            *to++ = (block->flags & NAND_BLOCK_FACTORY_BAD) != 0;
        }
    }
}

static struct hw_nand_op *take_op(struct hw_nand *nand, unsigned int q)
{
    struct hw_nand_op *op = &nand->ops[nand->free_op];

    nand->free_op = op->next;
    nand->active_ops++;
    *op = (struct hw_nand_op){
        .is_used = true, .queue = (uint8_t)q, .next = HW_NAND_NONE};
    return op;
}

static void parse_command(struct hw_nand_op *op, const uint8_t *bytes)
{
    op->opcode = bytes[NAND_CMD_OPCODE];
    op->is_slc = bytes[NAND_CMD_FLAGS] & NAND_CMD_SLC;
    op->is_reused = bytes[NAND_CMD_FLAGS] & NAND_CMD_REUSE;
    op->is_urgent = bytes[NAND_CMD_FLAGS] & NAND_CMD_URGENT;
    op->entries = get_le16(bytes + NAND_CMD_ENTRIES);
    op->planes = bytes[NAND_CMD_PLANES];
    op->wordline = get_le16(bytes + NAND_CMD_WORDLINE);
    op->cookie = get_le64(bytes + NAND_CMD_COOKIE);
    for (unsigned int i = 0; i < HW_NAND_PLANES; i++) {
        op->block[i] = get_le16(bytes + NAND_CMD_BLOCK + 2 * i);
    }
}

void hw_nand_command_start(struct hw_nand *nand, unsigned int q,
                           const uint8_t *bytes)
{
    struct hw_nand_op *op = take_op(nand, q);

    if (bytes == NULL) { /* the command has a memory error */
        op->status = NAND_CQE_BAD_ADDRESS;
        hw_nand_command_end(nand, op);
        return;
    }
    parse_command(op, bytes);
    op->status = (uint8_t)judge_command(nand, op, bytes);
    op->tag = get_le32(bytes + NAND_CMD_TAG);
    op->taken_ns = hw_nand_now_ns(nand);
    if (trace_is_on(nand->config.trace, TRACE_GROUP_NAND)) {
        hw_nand_trace_start(nand, op);
    }
    if (op->status == NAND_CQE_OK && op->opcode != NAND_CMD_NOP &&
        op->opcode != NAND_CMD_MARKS) {
        hw_nand_die_submit(nand, op);
        return;
    }
    if (op->status == NAND_CQE_OK && op->opcode == NAND_CMD_MARKS) {
        write_marks(nand, op);
    }
    hw_nand_command_end(nand, op);
}

void hw_nand_command_end(struct hw_nand *nand, struct hw_nand_op *op)
{
    if (__builtin_expect(op->is_traced, 0)) {
        hw_nand_trace_end(nand, op);
    }
    if (!op->is_orphan) {
        hw_nand_queue_complete(nand, op);
    }
    op->is_used = false;
    op->next = nand->free_op;
    nand->free_op = hw_nand_op_index(nand, op);
    nand->active_ops--;
}
