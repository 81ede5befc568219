/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NAND controller's queues: commands are taken from their rings, and
 * completions written.  Reference: docs/hardware/nand.md, sections 2 and 5.
 */
#include "hw-model/nand/hw_nand_internal.h"

enum {
    /* Commands taken from one queue before the next queue's turn. */
    QUEUE_TURN = 64,
    QUEUE_TURNS = 4, /* turns before other devices run */
};

/* ---- Interrupts */

void hw_nand_update_irq(struct hw_nand *nand)
{
    nand->config.env.set_irq(nand->config.env.ctx, 0,
                             (nand->regs.irq_status & nand->regs.irq_enable) !=
                                 0);
}

void hw_nand_queues_leave(struct hw_nand *nand)
{
    for (unsigned int q = 0; nand->notify != 0; q++) {
        if (nand->notify & BIT(q)) {
            nand->notify &= (uint8_t)~BIT(q);
            if (dev_queue_notify(&nand->regs.queues[q], &nand->config.env)) {
                nand->regs.irq_status |= BIT(q);
                hw_nand_update_irq(nand);
            }
        }
    }
    if (nand->is_starved && nand->free_op != HW_NAND_NONE &&
        !nand->is_stopped) {
        nand->is_starved = false;
        hw_nand_defer(nand);
    }
}

/* ---- Completions */

void hw_nand_queue_complete(struct hw_nand *nand, const struct hw_nand_op *op)
{
    struct dev_queue *queue = &nand->regs.queues[op->queue];
    uint8_t *cqe =
        dev_queue_complete(queue, &nand->config.env, op->cookie, op->status);

    nand->outstanding[op->queue]--;
    nand->notify |= (uint8_t)BIT(op->queue);
    if (cqe != NULL) {
        cqe[NAND_CQE_FAILED_PLANES] = op->failed_planes;
        cqe[NAND_CQE_DETAIL] = op->detail;
        cqe[NAND_CQE_STEPS] = op->steps;
        put_le16(cqe + NAND_CQE_BITS, op->bits);
        dev_queue_publish(queue, cqe);
    }
}

/* ---- Commands */

static void take_commands(struct hw_nand *nand, unsigned int q, uint8_t *page,
                          uint32_t count)
{
    struct dev_queue *queue = &nand->regs.queues[q];

    for (; count > 0 && nand->free_op != HW_NAND_NONE; count--) {
        nand->outstanding[q]++;
        hw_nand_command_start(
            nand, q, dev_queue_take(queue, &nand->config.env, NAND_CMD_LEN));
    }
    dev_queue_release(queue, page);
}

/* @return whether the queue has more commands to take */
static bool run_queue(struct hw_nand *nand, unsigned int q)
{
    const struct dev_queue *queue = &nand->regs.queues[q];
    uint8_t *page = dev_queue_page(queue, &nand->config.env);
    uint32_t pending;

    if (page == NULL) {
        return false;
    }
    pending = dev_queue_pending(queue, page, nand->outstanding[q]);
    if (pending == 0) {
        return false;
    }
    if (nand->free_op == HW_NAND_NONE) {
        /* The queue stays awake: it continues when an operation is free. */
        nand->is_starved = true;
        return false;
    }
    take_commands(nand, q, page, MIN(pending, (uint32_t)QUEUE_TURN));
    return true;
}

void hw_nand_queues_run(struct hw_nand *nand)
{
    bool again = !nand->is_stopped && !nand->is_resetting;

    for (unsigned int turn = 0; again && turn < QUEUE_TURNS; turn++) {
        again = false;
        for (unsigned int q = 0; q < NAND_QUEUES; q++) {
            again |= run_queue(nand, q);
        }
        hw_nand_dies_run(nand);
    }
    if (again) {
        hw_nand_defer(nand); /* let other devices use the thread */
    }
}

/* ---- Registers of a queue */

bool hw_nand_is_queue_offset(uint32_t offset)
{
    return offset >= A_QUEUE_PAGE_LO &&
           offset < A_QUEUE_PAGE_LO + NAND_QUEUES * QUEUE_STRIDE;
}

bool hw_nand_queue_read(struct hw_nand *nand, uint32_t offset, uint32_t *value)
{
    uint32_t q = (offset - A_QUEUE_PAGE_LO) / QUEUE_STRIDE;

    return dev_queue_read(&nand->regs.queues[q], offset - q * QUEUE_STRIDE,
                          value);
}

bool hw_nand_queue_write(struct hw_nand *nand, uint32_t offset, uint32_t value)
{
    uint32_t q = (offset - A_QUEUE_PAGE_LO) / QUEUE_STRIDE;

    switch (dev_queue_write(&nand->regs.queues[q], &nand->config.env,
                            NAND_CMD_LEN, offset - q * QUEUE_STRIDE, value)) {
    case DEV_QUEUE_RUN:
        hw_nand_defer(nand);
        return true;
    case DEV_QUEUE_ABANDON:
        hw_nand_queue_abandon(nand, q);
        return true;
    case DEV_QUEUE_WRITTEN:
        return true;
    case DEV_QUEUE_REFUSED:
        break;
    }
    return false;
}

void hw_nand_queue_abandon(struct hw_nand *nand, unsigned int q)
{
    if (nand->outstanding[q] == 0) {
        return;
    }
    nand->outstanding[q] = 0;
    for (uint32_t i = 0; i < HW_NAND_OPS; i++) {
        if (nand->ops[i].is_used && nand->ops[i].queue == q) {
            nand->ops[i].is_orphan = true;
        }
    }
}
