/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the page register and the cache register of a die have in common: how
 * they begin and end operations, and wait for time and for the channel.
 */
#include "hw-model/nand/hw_nand_internal.h"

static struct hw_nand_op *op_of(struct hw_nand *nand, uint32_t r)
{
    return &nand->ops[nand->registers[r].op];
}

/* A state that takes time ends.  Add it to the time for which the die or its
 * channel was busy. */
static void count_busy(struct hw_nand *nand, uint32_t r, uint64_t end_ns)
{
    const struct hw_nand_register *reg = &nand->registers[r];
    uint32_t die = r % HW_NAND_DIES;

    if (end_ns <= reg->clock_ns) {
        return;
    }
    if (reg->state == HW_DIE_BUSY) {
        nand->dies[die].busy_ns += end_ns - reg->clock_ns;
    } else if (reg->state == HW_DIE_RECEIVES || reg->state == HW_DIE_SENDS) {
        nand->channels[die / nand->geometry.dies].busy_ns +=
            end_ns - reg->clock_ns;
    }
}

uint64_t hw_nand_channel_time(const struct hw_nand *nand, uint32_t channel)
{
    return nand->channels[channel].busy_ns;
}

uint64_t hw_nand_busy_time(const struct hw_nand *nand, uint32_t die)
{
    const struct hw_nand_register *page = &nand->registers[die];
    uint64_t busy_ns = nand->dies[die].busy_ns;
    uint64_t now_ns = hw_nand_now_ns(nand);

    if (page->state == HW_DIE_BUSY && now_ns > page->clock_ns) {
        busy_ns += now_ns - page->clock_ns;
    }
    return busy_ns;
}

static void end_state(struct hw_nand *nand, uint32_t r, uint64_t end_ns,
                      bool is_cut)
{
    count_busy(nand, r, end_ns);
    if (trace_is_on(nand->config.trace, TRACE_GROUP_NAND)) {
        hw_nand_trace_phase(nand, r, end_ns, is_cut);
    }
}

void hw_nand_register_cut(struct hw_nand *nand, uint32_t r, uint64_t end_ns)
{
    if (nand->timers[r].heap_at != HW_NAND_NONE) {
        hw_nand_timer_stop(nand, r);
    }
    end_state(nand, r, end_ns, true);
    nand->registers[r].clock_ns = end_ns;
}

void hw_nand_register_elapsed(struct hw_nand *nand, uint32_t r, uint64_t end_ns)
{
    end_state(nand, r, end_ns, false);
    nand->registers[r].clock_ns = end_ns;
    hw_nand_register_ready(nand, r);
}

bool hw_nand_register_begin(struct hw_nand *nand, uint32_t r,
                            struct hw_nand_op *op)
{
    struct hw_nand_register *reg = &nand->registers[r];

    reg->op = hw_nand_op_index(nand, op);
    /* The register may have been waiting for storage when the command came. */
    reg->clock_ns = MAX(reg->clock_ns, op->taken_ns);
    if (!hw_nand_op_open(nand, op)) {
        return hw_nand_register_end(nand, r);
    }
    reg->state = HW_DIE_ACCEPTS;
    return hw_nand_channel_take(nand, r);
}

/* Whether the register waits in the list of its channel. */
static bool waits_for_channel(const struct hw_nand_register *reg)
{
    return reg->state == HW_DIE_ACCEPTS && !reg->is_ready;
}

static void leave_channel(struct hw_nand *nand, uint32_t r)
{
    const struct hw_nand_register *reg = &nand->registers[r];

    if (waits_for_channel(reg)) {
        hw_nand_channel_leave(nand, r);
    } else if (reg->state == HW_DIE_ACCEPTS || reg->state == HW_DIE_RECEIVES) {
        hw_nand_channel_release(nand, r, hw_nand_now_ns(nand));
    }
}

void hw_nand_register_put_back(struct hw_nand *nand, uint32_t r)
{
    struct hw_nand_register *reg = &nand->registers[r];
    struct hw_nand_op *op = op_of(nand, r);

    if (nand->timers[r].heap_at != HW_NAND_NONE) {
        hw_nand_register_cut(nand, r, hw_nand_now_ns(nand));
    }
    leave_channel(nand, r);
    nand_op_put(nand->array, op->array_op);
    op->array_op = NULL;
    hw_nand_list_put_first(nand, &nand->dies[op->die].normal, op);
    reg->op = HW_NAND_NONE;
    reg->state = HW_DIE_IDLE;
}

static void count_change(struct hw_nand *nand, const struct hw_nand_op *op)
{
    unsigned int planes = (unsigned int)__builtin_popcount(op->planes);
    unsigned int failed = (unsigned int)__builtin_popcount(op->failed_planes);

    if (op->opcode == NAND_CMD_PROGRAM) {
        hw_nand_count(nand, NAND_COUNT_UNITS_PROGRAMMED,
                      op->entries / planes * (planes - failed));
        hw_nand_count(nand, NAND_COUNT_PROGRAM_FAILURES, failed);
    } else {
        hw_nand_count(nand, NAND_COUNT_BLOCKS_ERASED, planes - failed);
        hw_nand_count(nand, NAND_COUNT_ERASE_FAILURES, failed);
    }
}

bool hw_nand_register_finish(struct hw_nand *nand, uint32_t r)
{
    struct hw_nand_op *op = op_of(nand, r);

    /* An operation that began later may have been the one at which the die
     * died: a read, while this one was suspended, or while the cache register
     * held the data of this one. */
    if (hw_nand_die_is_dead(nand, op->die)) {
        op->array_op->verdict = NAND_VERDICT_DEAD;
    }
    hw_nand_op_judge(nand, op);
    if (op->status == NAND_CQE_FAILED) {
        op->failed_planes = op->array_op->failed_planes;
    }
    if (op->opcode != NAND_CMD_READ &&
        (op->status == NAND_CQE_OK || op->status == NAND_CQE_FAILED)) {
        count_change(nand, op);
    }
    return hw_nand_register_end(nand, r);
}

bool hw_nand_register_end(struct hw_nand *nand, uint32_t r)
{
    struct hw_nand_register *reg = &nand->registers[r];
    struct hw_nand_op *op = op_of(nand, r);
    uint64_t decode_ns = hw_nand_op_close(nand, op);

    hw_nand_op_note_program(nand, op);
    reg->op = HW_NAND_NONE;
    reg->state = HW_DIE_IDLE;
    if (decode_ns == 0) {
        hw_nand_command_end(nand, op);
    } else {
        hw_nand_timer_start(nand,
                            HW_NAND_REGISTERS + hw_nand_op_index(nand, op),
                            reg->clock_ns + decode_ns);
    }
    return true;
}
