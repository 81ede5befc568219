/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command queue of a device core: a page of shared words, a ring of commands
 * and a ring of completions, all in DRAM.
 * Reference: hw-model/regs/queue.h; docs/hardware/media.md, section 1.
 *
 * This is the saved state and the registers; dev_queue_rings.h takes commands
 * and writes completions.  The core calls all of it from its only execution
 * context.  The length of a command is the core's own, and a power of two.
 */
#ifndef ESSD_HW_CORE_DEV_QUEUE_H
#define ESSD_HW_CORE_DEV_QUEUE_H

#include "hw-model/core/env.h"

/* The state of a queue.  All of it is saved; all zero: reset. */
struct dev_queue {
    uint32_t page[2]; /* low and high word of the address */
    uint32_t cmd[2];
    uint32_t cq[2];
    uint32_t sizes;

    /* Latched by ENABLE. */
    uint8_t is_on;
    uint64_t page_addr;
    uint64_t cmd_addr;
    uint64_t cq_addr;
    uint32_t cmd_mask;
    uint32_t cq_mask;

    uint32_t cmd_ci; /* commands taken */
    uint32_t cq_pi;  /* completions written */
};

/* What the core does after a write of a register. */
enum dev_queue_action {
    DEV_QUEUE_REFUSED, /* there is no such register */
    DEV_QUEUE_WRITTEN, /* nothing */
    DEV_QUEUE_RUN,     /* calls env.defer(): there may be commands to take */
    DEV_QUEUE_ABANDON, /* lets commands in progress end without completion */
};

/**
 * Access a register.
 *
 * @param offset     that of the register for queue 0, a multiple of 4
 * @param value      0 when there is no such register
 * @param cmd_bytes  length of a command
 * @return read: false when there is no such register
 */
MUST_USE bool dev_queue_read(struct dev_queue *queue, uint32_t offset,
                             uint32_t *value);
MUST_USE enum dev_queue_action dev_queue_write(struct dev_queue *queue,
                                               const struct dev_env *env,
                                               uint32_t cmd_bytes,
                                               uint32_t offset, uint32_t value);

/** Whether a queue that was loaded can be used. */
MUST_USE bool dev_queue_is_valid(const struct dev_queue *queue,
                                 const struct dev_env *env, uint32_t cmd_bytes);

#endif
