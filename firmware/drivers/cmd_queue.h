/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command queue of the media engine or the NAND controller: its rings in DRAM
 * and the protocol of their indices.  The drivers of these devices write the
 * commands and read the completions.
 * Reference: hw-model/regs/queue.h; docs/hardware/media.md, section 1.
 *
 * The length of a command is the device's; it is a power of two, at least 64.
 */
#ifndef ESSD_FIRMWARE_DRIVERS_CMD_QUEUE_H
#define ESSD_FIRMWARE_DRIVERS_CMD_QUEUE_H

#include "firmware/drivers/dma_word.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/dram.h"
#include "firmware/hal/mmio.h"
#include "lib/regfields.h"
#include "hw-model/regs/queue.h"
#include "lib/util.h"

struct cmd_queue {
    uintptr_t regs; /* of the device, plus the queue's share of QUEUE_STRIDE */
    uint8_t *page;
    uint8_t *commands;
    uint8_t *completions;
    uint32_t mask;   /* index mask of both rings */
    uint32_t cmd_pi; /* commands written */
    uint32_t cmd_published;
    uint32_t cmd_ci; /* commands that the device had taken when last read */
    uint32_t cq_ci;
};

/** Whether a queue may have this many commands outstanding. */
static inline bool cmd_queue_size_is_valid(uint16_t commands)
{
    return IS_POW2(commands) && commands >= 2 &&
           commands <= 1 << QUEUE_LOG2_MAX;
}

/**
 * Allocate page and rings, which are never freed.  `queue` is zero but for
 * `regs`.
 *
 * @param commands  that are outstanding at most; a valid size
 * @return false when there is not enough DRAM
 */
MUST_USE bool cmd_queue_alloc(struct cmd_queue *queue, struct dram *dram,
                              uint16_t commands, uint32_t cmd_bytes);

/**
 * Tell the device where page and rings are, and enable the queue.
 *
 * @return false when the device refused
 */
MUST_USE bool cmd_queue_start(const struct cmd_queue *queue);

/* ---- Commands */

/** Number of commands whose completion was not taken yet. */
static inline uint32_t cmd_queue_outstanding(const struct cmd_queue *queue)
{
    return queue->cmd_pi - queue->cq_ci;
}

/**
 * Whether another command may be written.  Fewer commands may be outstanding
 * than the ring has slots, and yet the device may not have taken the command
 * in the next slot.
 */
static inline bool cmd_queue_has_room(struct cmd_queue *queue)
{
    if (cmd_queue_outstanding(queue) > queue->mask) {
        return false;
    }
    if (queue->cmd_pi - queue->cmd_ci <= queue->mask) {
        return true;
    }
    queue->cmd_ci = dma_load32(queue->page, QUEUE_PAGE_CMD_CI);
    hal_dma_mb();
    return queue->cmd_pi - queue->cmd_ci <= queue->mask;
}

/*
 * Publish that completions up to cq_ci are read, so that the device may
 * overwrite them.
 */
static inline void cmd_queue_publish_taken(const struct cmd_queue *queue)
{
    hal_dma_mb();
    dma_store32(queue->page, QUEUE_PAGE_CQ_CI, queue->cq_ci);
}

/** Start the commands up to cmd_pi, with at most one register write. */
static inline void cmd_queue_kick(struct cmd_queue *queue)
{
    if (queue->cmd_pi == queue->cmd_published) {
        return;
    }
    queue->cmd_published = queue->cmd_pi;
    /* Give the device room for completions of these commands. */
    cmd_queue_publish_taken(queue);
    hal_dma_wmb();
    dma_store32(queue->page, QUEUE_PAGE_CMD_PI, queue->cmd_pi);
    hal_dma_mb();
    if (dma_load32(queue->page, QUEUE_PAGE_ASLEEP)) {
        mmio_write32(queue->regs + A_QUEUE_KICK, 1);
    }
}

/* ---- Completions */

/**
 * The next completion.  Its fields are valid after hal_dma_rmb(); whoever has
 * read them increments cq_ci.
 *
 * @return NULL when there is none
 */
static inline const uint8_t *cmd_queue_next(const struct cmd_queue *queue)
{
    const uint8_t *entry = queue->completions +
                           (size_t)(queue->cq_ci & queue->mask) * QUEUE_CQE_LEN;
    uint8_t lap = (queue->cq_ci & (queue->mask + 1)) == 0;

    return (dma_load8(entry, QUEUE_CQE_FLAGS) & QUEUE_CQE_PHASE) == lap ? entry
                                                                        : NULL;
}

/**
 * Before sleeping: make the device interrupt at the next completion.
 *
 * @return false when a completion is there already: do not sleep
 */
MUST_USE static inline bool cmd_queue_arm(struct cmd_queue *queue)
{
    dma_store32(queue->page, QUEUE_PAGE_ARMED, 1);
    hal_dma_mb();
    return cmd_queue_next(queue) == NULL;
}

#endif
