/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NAND controller's queues: commands are taken from their rings, and
 * completions written.  Reference: docs/hardware/nand.md, sections 2 and 5.
 */
#include "hw-model/nand/hw_nand_internal.h"

#include "hw-model/core/shared_word.h"

enum {
    RING_ALIGN = 64,
    /* Commands taken from one queue before the next queue's turn. */
    QUEUE_TURN = 64,
    QUEUE_TURNS = 4, /* turns before other devices run */
};

static uint8_t *queue_page(const struct hw_nand *nand,
                           const struct hw_nand_queue *queue)
{
    return hw_nand_dma(nand, queue->page_addr, NAND_PAGE_LEN);
}

/* ---- Interrupts */

void hw_nand_update_irq(struct hw_nand *nand)
{
    nand->config.env.set_irq(nand->config.env.ctx, 0,
                             (nand->regs.irq_status & nand->regs.irq_enable) !=
                                 0);
}

static void notify_queue(struct hw_nand *nand, unsigned int q)
{
    uint8_t *page = queue_page(nand, &nand->regs.queues[q]);

    if (page == NULL) {
        return;
    }
    dev_mb();
    if (shared_load32(page + NAND_PAGE_ARMED)) {
        shared_store32(page + NAND_PAGE_ARMED, 0);
        nand->regs.irq_status |= BIT(q);
        hw_nand_update_irq(nand);
    }
}

void hw_nand_queues_leave(struct hw_nand *nand)
{
    for (unsigned int q = 0; nand->notify != 0; q++) {
        if (nand->notify & BIT(q)) {
            nand->notify &= (uint8_t)~BIT(q);
            notify_queue(nand, q);
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
    struct hw_nand_queue *queue = &nand->regs.queues[op->queue];
    const struct dev_env *env = &nand->config.env;
    uint32_t slot = queue->cq_pi & queue->cq_mask;
    uint8_t *cqe = hw_nand_dma(
        nand, queue->cq_addr + (uint64_t)slot * NAND_CQE_LEN, NAND_CQE_LEN);
    uint8_t phase = (queue->cq_pi & (queue->cq_mask + 1)) == 0;

    queue->cq_pi++;
    nand->outstanding[op->queue]--;
    nand->notify |= (uint8_t)BIT(op->queue);
    if (cqe == NULL) {
        return; /* cannot happen, because enabling the queue checked the ring */
    }
    put_le64(cqe + NAND_CQE_COOKIE, op->cookie);
    put_le64(cqe + NAND_CQE_TIMESTAMP, env->now_ns(env->ctx));
    cqe[NAND_CQE_STATUS] = op->status;
    cqe[NAND_CQE_FAILED_PLANES] = op->failed_planes;
    cqe[NAND_CQE_DETAIL] = op->detail;
    cqe[NAND_CQE_STEPS] = op->steps;
    put_le16(cqe + NAND_CQE_BITS, op->bits);
    dev_wmb();
    __atomic_store_n(cqe + NAND_CQE_FLAGS, phase, __ATOMIC_RELAXED);
}

/* ---- Commands */

/* How many commands the completion ring has room for. */
static uint32_t completion_room(const struct hw_nand *nand,
                                const struct hw_nand_queue *queue,
                                const uint8_t *page)
{
    uint32_t unread = queue->cq_pi - shared_load32(page + NAND_PAGE_CQ_CI);
    uint32_t used = unread + nand->outstanding[queue - nand->regs.queues];

    return used > queue->cq_mask ? 0 : queue->cq_mask + 1 - used;
}

/* How many commands of the ring may be taken now. */
static uint32_t pending_commands(const struct hw_nand *nand,
                                 const struct hw_nand_queue *queue,
                                 const uint8_t *page)
{
    uint32_t pending = shared_load32(page + NAND_PAGE_CMD_PI) - queue->cmd_ci;
    uint32_t room = completion_room(nand, queue, page);

    dev_rmb();
    /* With an invalid producer index, take nothing until it is valid. */
    return pending > queue->cmd_mask + 1 ? 0 : MIN(pending, room);
}

static void take_commands(struct hw_nand *nand, unsigned int q, uint8_t *page,
                          uint32_t count)
{
    struct hw_nand_queue *queue = &nand->regs.queues[q];

    for (; count > 0 && nand->free_op != HW_NAND_NONE; count--) {
        uint64_t slot = queue->cmd_ci & queue->cmd_mask;

        queue->cmd_ci++;
        nand->outstanding[q]++;
        hw_nand_command_start(nand, q,
                              hw_nand_dma(nand,
                                          queue->cmd_addr + slot * NAND_CMD_LEN,
                                          NAND_CMD_LEN));
    }
    dev_wmb(); /* read the command before its slot is given back */
    shared_store32(page + NAND_PAGE_CMD_CI, queue->cmd_ci);
}

/* @return whether the queue has more commands to take */
static bool run_queue(struct hw_nand *nand, unsigned int q)
{
    struct hw_nand_queue *queue = &nand->regs.queues[q];
    uint8_t *page = queue->is_on ? queue_page(nand, queue) : NULL;
    uint32_t pending;

    if (page == NULL) {
        return false;
    }
    shared_store32(page + NAND_PAGE_ASLEEP, 0);
    pending = pending_commands(nand, queue, page);
    if (pending == 0) {
        shared_store32(page + NAND_PAGE_ASLEEP, 1);
        dev_mb();
        pending = pending_commands(nand, queue, page);
        if (pending == 0) {
            return false;
        }
        shared_store32(page + NAND_PAGE_ASLEEP, 0);
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

static uint64_t words_address(const uint32_t words[2])
{
    return (uint64_t)words[1] << 32 | words[0];
}

static bool ring_fits(const struct hw_nand *nand, uint64_t addr,
                      uint32_t size_log2, uint32_t entry_len)
{
    return size_log2 >= 1 && size_log2 <= NAND_QUEUE_LOG2_MAX &&
           addr % RING_ALIGN == 0 &&
           hw_nand_dma(nand, addr, (uint64_t)entry_len << size_log2) != NULL;
}

static void enable_queue(struct hw_nand *nand, struct hw_nand_queue *queue)
{
    uint32_t cmd_log2 = FIELD_GET(queue->sizes, NAND_QUEUE_SIZES, CMD);
    uint32_t cq_log2 = FIELD_GET(queue->sizes, NAND_QUEUE_SIZES, CQ);

    if (queue->is_on || words_address(queue->page) % RING_ALIGN != 0 ||
        hw_nand_dma(nand, words_address(queue->page), NAND_PAGE_LEN) == NULL ||
        !ring_fits(nand, words_address(queue->cmd), cmd_log2, NAND_CMD_LEN) ||
        !ring_fits(nand, words_address(queue->cq), cq_log2, NAND_CQE_LEN)) {
        return;
    }
    queue->page_addr = words_address(queue->page);
    queue->cmd_addr = words_address(queue->cmd);
    queue->cq_addr = words_address(queue->cq);
    queue->cmd_mask = (1u << cmd_log2) - 1;
    queue->cq_mask = (1u << cq_log2) - 1;
    queue->cmd_ci = 0;
    queue->cq_pi = 0;
    queue->is_on = 1;
    hw_nand_defer(nand);
}

/* The variable of a plain read-write register of a queue, or NULL. */
static uint32_t *queue_word(struct hw_nand_queue *queue, uint32_t offset)
{
    switch (offset) {
    case A_NAND_QUEUE_PAGE_LO:
        return &queue->page[0];
    case A_NAND_QUEUE_PAGE_HI:
        return &queue->page[1];
    case A_NAND_QUEUE_CMD_LO:
        return &queue->cmd[0];
    case A_NAND_QUEUE_CMD_HI:
        return &queue->cmd[1];
    case A_NAND_QUEUE_CQ_LO:
        return &queue->cq[0];
    case A_NAND_QUEUE_CQ_HI:
        return &queue->cq[1];
    case A_NAND_QUEUE_SIZES:
        return &queue->sizes;
    default:
        return NULL;
    }
}

bool hw_nand_is_queue_offset(uint32_t offset)
{
    return offset >= A_NAND_QUEUE_PAGE_LO &&
           offset < A_NAND_QUEUE_PAGE_LO + NAND_QUEUES * NAND_QUEUE_STRIDE;
}

bool hw_nand_queue_read(struct hw_nand *nand, uint32_t offset, uint32_t *value)
{
    uint32_t q = (offset - A_NAND_QUEUE_PAGE_LO) / NAND_QUEUE_STRIDE;
    struct hw_nand_queue *queue = &nand->regs.queues[q];
    const uint32_t *word;

    offset -= q * NAND_QUEUE_STRIDE;
    word = queue_word(queue, offset);
    if (word != NULL) {
        *value = *word;
        return true;
    }
    *value = offset == A_NAND_QUEUE_ENABLE ? queue->is_on : 0;
    return offset == A_NAND_QUEUE_ENABLE || offset == A_NAND_QUEUE_KICK;
}

bool hw_nand_queue_write(struct hw_nand *nand, uint32_t offset, uint32_t value)
{
    uint32_t q = (offset - A_NAND_QUEUE_PAGE_LO) / NAND_QUEUE_STRIDE;
    struct hw_nand_queue *queue = &nand->regs.queues[q];
    uint32_t *word;

    offset -= q * NAND_QUEUE_STRIDE;
    word = queue_word(queue, offset);
    if (word != NULL) {
        *word = value;
        return true;
    }
    switch (offset) {
    case A_NAND_QUEUE_ENABLE:
        if (FIELD_GET(value, NAND_QUEUE_ENABLE, ON)) {
            enable_queue(nand, queue);
        } else {
            hw_nand_queue_abandon(nand, q);
        }
        return true;
    case A_NAND_QUEUE_KICK:
        hw_nand_defer(nand);
        return true;
    default:
        return false;
    }
}

void hw_nand_queue_abandon(struct hw_nand *nand, unsigned int q)
{
    nand->regs.queues[q].is_on = 0;
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

bool hw_nand_queue_is_valid(const struct hw_nand *nand,
                            const struct hw_nand_queue *queue)
{
    return !queue->is_on ||
           (queue->is_on == 1 && IS_POW2((uint64_t)queue->cmd_mask + 1) &&
            IS_POW2((uint64_t)queue->cq_mask + 1) &&
            queue->cmd_mask >> NAND_QUEUE_LOG2_MAX == 0 &&
            queue->cq_mask >> NAND_QUEUE_LOG2_MAX == 0 &&
            (queue->page_addr | queue->cmd_addr | queue->cq_addr) %
                    RING_ALIGN ==
                0 &&
            queue_page(nand, queue) != NULL &&
            hw_nand_dma(nand, queue->cmd_addr,
                        (uint64_t)NAND_CMD_LEN * (queue->cmd_mask + 1)) !=
                NULL &&
            hw_nand_dma(nand, queue->cq_addr,
                        (uint64_t)NAND_CQE_LEN * (queue->cq_mask + 1)) != NULL);
}
