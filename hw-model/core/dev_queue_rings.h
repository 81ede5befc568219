/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings of a command queue: how a device core takes commands and writes
 * completions.  See dev_queue.h.  These functions are inline, since every
 * command of the drive passes through them.
 */
#ifndef ESSD_HW_CORE_DEV_QUEUE_RINGS_H
#define ESSD_HW_CORE_DEV_QUEUE_RINGS_H

#include "lib/regfields.h"
#include "hw-model/core/dev_queue.h"
#include "hw-model/core/shared_word.h"
#include "hw-model/regs/queue.h"

/** @return the queue's page; NULL when the queue is off, or when the page has a
 *          memory error that cannot be corrected */
static inline uint8_t *dev_queue_page(const struct dev_queue *queue,
                                      const struct dev_env *env)
{
    return queue->is_on ? env->dma(env->ctx, queue->page_addr, QUEUE_PAGE_LEN)
                        : NULL;
}

/* How many commands of the ring may be taken now. */
static inline uint32_t dev_queue_look(const struct dev_queue *queue,
                                      const uint8_t *page, uint32_t outstanding)
{
    uint32_t entries = queue->cq_mask + 1;
    uint32_t pending = shared_load32(page + QUEUE_PAGE_CMD_PI) - queue->cmd_ci;
    uint32_t unread = queue->cq_pi - shared_load32(page + QUEUE_PAGE_CQ_CI);
    /* Each command that is taken finds room for its completion. */
    uint32_t used = unread + outstanding;
    uint32_t room = used >= entries ? 0 : entries - used;

    dev_rmb();
    /* With an invalid producer index, take nothing until it is valid. */
    return pending > queue->cmd_mask + 1 ? 0 : MIN(pending, room);
}

/**
 * Count the commands that may be taken now.  When there are none, the queue is
 * asleep afterwards: firmware will write KICK.
 *
 * @param outstanding  commands that were taken and have not completed
 */
static inline uint32_t dev_queue_pending(const struct dev_queue *queue,
                                         uint8_t *page, uint32_t outstanding)
{
    uint32_t pending;

    shared_store32(page + QUEUE_PAGE_ASLEEP, 0);
    pending = dev_queue_look(queue, page, outstanding);
    if (pending == 0) {
        shared_store32(page + QUEUE_PAGE_ASLEEP, 1);
        dev_mb();
        pending = dev_queue_look(queue, page, outstanding);
        if (pending != 0) {
            shared_store32(page + QUEUE_PAGE_ASLEEP, 0);
        }
    }
    return pending;
}

/**
 * Take the next command, of those that dev_queue_pending() has counted.
 *
 * @return its bytes, valid until dev_queue_release(); NULL when they have a
 *         memory error that cannot be corrected
 */
static inline const uint8_t *dev_queue_take(struct dev_queue *queue,
                                            const struct dev_env *env,
                                            uint32_t cmd_bytes)
{
    uint64_t slot = queue->cmd_ci++ & queue->cmd_mask;

    return env->dma(env->ctx, queue->cmd_addr + slot * cmd_bytes, cmd_bytes);
}

/** Give the slots of all commands that were taken back to firmware. */
static inline void dev_queue_release(const struct dev_queue *queue,
                                     uint8_t *page)
{
    dev_wmb(); /* read the command before its slot is given back */
    shared_store32(page + QUEUE_PAGE_CMD_CI, queue->cmd_ci);
}

/**
 * Begin the next completion with the fields that all devices have.  The core
 * writes its own fields and calls dev_queue_publish(), unless this returns
 * NULL, which cannot happen, because enabling the queue checked the ring.
 */
static inline uint8_t *dev_queue_complete(struct dev_queue *queue,
                                          const struct dev_env *env,
                                          uint64_t cookie, uint8_t status)
{
    uint64_t slot = queue->cq_pi++ & queue->cq_mask;
    uint8_t *cqe = env->dma_write(
        env->ctx, queue->cq_addr + slot * QUEUE_CQE_LEN, QUEUE_CQE_LEN);

    if (cqe != NULL) {
        put_le64(cqe + QUEUE_CQE_COOKIE, cookie);
        put_le64(cqe + QUEUE_CQE_TIMESTAMP, env->now_ns(env->ctx));
        cqe[QUEUE_CQE_STATUS] = status;
    }
    return cqe;
}

/** Let firmware see the completion that was begun last. */
static inline void dev_queue_publish(const struct dev_queue *queue,
                                     uint8_t *cqe)
{
    uint8_t phase = ((queue->cq_pi - 1) & (queue->cq_mask + 1)) == 0;

    dev_wmb();
    __atomic_store_n(cqe + QUEUE_CQE_FLAGS, phase, __ATOMIC_RELAXED);
}

/**
 * Call this after completions were published.
 *
 * @return whether firmware wants an interrupt for them
 */
MUST_USE static inline bool dev_queue_notify(const struct dev_queue *queue,
                                             const struct dev_env *env)
{
    uint8_t *page = dev_queue_page(queue, env);

    if (page == NULL) {
        return false;
    }
    dev_mb();
    if (!shared_load32(page + QUEUE_PAGE_ARMED)) {
        return false;
    }
    shared_store32(page + QUEUE_PAGE_ARMED, 0);
    return true;
}

#endif
