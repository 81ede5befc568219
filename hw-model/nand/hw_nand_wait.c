/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists of the NAND controller, first in, first out: operations that wait for
 * their die, registers of dies that wait for their channel, and registers that
 * have work to do.
 */
#include "hw-model/nand/hw_nand_internal.h"

/* ---- Lists of operations */

void hw_nand_list_init(struct hw_nand_list *list)
{
    list->head = HW_NAND_NONE;
    list->tail = HW_NAND_NONE;
}

void hw_nand_list_put(struct hw_nand *nand, struct hw_nand_list *list,
                      struct hw_nand_op *op)
{
    uint32_t i = hw_nand_op_index(nand, op);

    op->next = HW_NAND_NONE;
    if (list->head == HW_NAND_NONE) {
        list->head = i;
    } else {
        nand->ops[list->tail].next = i;
    }
    list->tail = i;
}

void hw_nand_list_put_first(struct hw_nand *nand, struct hw_nand_list *list,
                            struct hw_nand_op *op)
{
    op->next = list->head;
    list->head = hw_nand_op_index(nand, op);
    if (op->next == HW_NAND_NONE) {
        list->tail = list->head;
    }
}

struct hw_nand_op *hw_nand_list_first(struct hw_nand *nand,
                                      const struct hw_nand_list *list)
{
    return list->head == HW_NAND_NONE ? NULL : &nand->ops[list->head];
}

struct hw_nand_op *hw_nand_list_take(struct hw_nand *nand,
                                     struct hw_nand_list *list)
{
    struct hw_nand_op *op = hw_nand_list_first(nand, list);

    if (op != NULL) {
        list->head = op->next;
        if (list->head == HW_NAND_NONE) {
            list->tail = HW_NAND_NONE;
        }
    }
    return op;
}

/* ---- Registers that have work to do */

void hw_nand_register_ready(struct hw_nand *nand, uint32_t r)
{
    struct hw_nand_register *reg = &nand->registers[r];

    if (reg->is_ready) {
        return;
    }
    reg->is_ready = true;
    reg->next_ready = HW_NAND_NONE;
    if (nand->ready_head == HW_NAND_NONE) {
        nand->ready_head = r;
    } else {
        nand->registers[nand->ready_tail].next_ready = r;
    }
    nand->ready_tail = r;
}

/* ---- Channels */

static struct hw_nand_channel *channel_of(struct hw_nand *nand, uint32_t r)
{
    return &nand->channels[r % HW_NAND_DIES / nand->geometry.dies];
}

bool hw_nand_channel_take(struct hw_nand *nand, uint32_t r)
{
    struct hw_nand_channel *channel = channel_of(nand, r);
    struct hw_nand_register *reg = &nand->registers[r];

    if (!channel->is_busy) {
        channel->is_busy = true;
        reg->clock_ns = MAX(reg->clock_ns, channel->free_ns);
        return true;
    }
    reg->next_waiting = HW_NAND_NONE;
    if (channel->head == HW_NAND_NONE) {
        channel->head = r;
    } else {
        nand->registers[channel->tail].next_waiting = r;
    }
    channel->tail = r;
    return false;
}

void hw_nand_channel_release(struct hw_nand *nand, uint32_t r, uint64_t end_ns)
{
    struct hw_nand_channel *channel = channel_of(nand, r);
    uint32_t next = channel->head;

    channel->free_ns = MAX(channel->free_ns, end_ns);
    if (next == HW_NAND_NONE) {
        channel->is_busy = false;
        return;
    }
    channel->head = nand->registers[next].next_waiting;
    nand->registers[next].clock_ns =
        MAX(nand->registers[next].clock_ns, channel->free_ns);
    hw_nand_register_ready(nand, next);
}

void hw_nand_channel_leave(struct hw_nand *nand, uint32_t r)
{
    struct hw_nand_channel *channel = channel_of(nand, r);
    uint32_t *link = &channel->head;
    uint32_t before = HW_NAND_NONE;

    while (*link != r) {
        before = *link;
        link = &nand->registers[*link].next_waiting;
    }
    *link = nand->registers[r].next_waiting;
    if (channel->tail == r) {
        channel->tail = before;
    }
}
