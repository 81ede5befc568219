/* SPDX-License-Identifier: BSD-2-Clause */
/* Registers and saved state of a command queue: see dev_queue.h. */
#include "hw-model/core/dev_queue.h"

#include "lib/regfields.h"
#include "hw-model/regs/queue.h"

static uint64_t words_address(const uint32_t words[2])
{
    return (uint64_t)words[1] << 32 | words[0];
}

static bool is_dram(const struct dev_env *env, uint64_t addr, uint64_t len)
{
    return addr % QUEUE_ALIGN == 0 && env->is_dram(env->ctx, addr, len);
}

static bool ring_fits(const struct dev_env *env, uint64_t addr,
                      uint32_t size_log2, uint32_t entry_bytes)
{
    return size_log2 >= 1 && size_log2 <= QUEUE_LOG2_MAX &&
           is_dram(env, addr, (uint64_t)entry_bytes << size_log2);
}

/* @return whether the queue is enabled now and was not before */
static bool enable_queue(struct dev_queue *queue, const struct dev_env *env,
                         uint32_t cmd_bytes)
{
    uint32_t cmd_log2 = FIELD_GET(queue->sizes, QUEUE_SIZES, CMD);
    uint32_t cq_log2 = FIELD_GET(queue->sizes, QUEUE_SIZES, CQ);

    if (queue->is_on ||
        !is_dram(env, words_address(queue->page), QUEUE_PAGE_LEN) ||
        !ring_fits(env, words_address(queue->cmd), cmd_log2, cmd_bytes) ||
        !ring_fits(env, words_address(queue->cq), cq_log2, QUEUE_CQE_LEN)) {
        return false;
    }
    queue->page_addr = words_address(queue->page);
    queue->cmd_addr = words_address(queue->cmd);
    queue->cq_addr = words_address(queue->cq);
    queue->cmd_mask = (1u << cmd_log2) - 1;
    queue->cq_mask = (1u << cq_log2) - 1;
    queue->cmd_ci = 0;
    queue->cq_pi = 0;
    queue->is_on = 1;
    return true;
}

/* The variable of a plain read-write register, or NULL. */
static uint32_t *queue_word(struct dev_queue *queue, uint32_t offset)
{
    switch (offset) {
    case A_QUEUE_PAGE_LO:
        return &queue->page[0];
    case A_QUEUE_PAGE_HI:
        return &queue->page[1];
    case A_QUEUE_CMD_LO:
        return &queue->cmd[0];
    case A_QUEUE_CMD_HI:
        return &queue->cmd[1];
    case A_QUEUE_CQ_LO:
        return &queue->cq[0];
    case A_QUEUE_CQ_HI:
        return &queue->cq[1];
    case A_QUEUE_SIZES:
        return &queue->sizes;
    default:
        return NULL;
    }
}

bool dev_queue_read(struct dev_queue *queue, uint32_t offset, uint32_t *value)
{
    const uint32_t *word = queue_word(queue, offset);

    if (word != NULL) {
        *value = *word;
        return true;
    }
    *value = offset == A_QUEUE_ENABLE ? queue->is_on : 0;
    return offset == A_QUEUE_ENABLE || offset == A_QUEUE_KICK;
}

enum dev_queue_action dev_queue_write(struct dev_queue *queue,
                                      const struct dev_env *env,
                                      uint32_t cmd_bytes, uint32_t offset,
                                      uint32_t value)
{
    uint32_t *word = queue_word(queue, offset);

    if (word != NULL) {
        *word = value;
        return DEV_QUEUE_WRITTEN;
    }
    if (offset == A_QUEUE_KICK) {
        return DEV_QUEUE_RUN;
    }
    if (offset != A_QUEUE_ENABLE) {
        return DEV_QUEUE_REFUSED;
    }
    if (FIELD_GET(value, QUEUE_ENABLE, ON)) {
        return enable_queue(queue, env, cmd_bytes) ? DEV_QUEUE_RUN
                                                   : DEV_QUEUE_WRITTEN;
    }
    queue->is_on = 0;
    return DEV_QUEUE_ABANDON;
}

static bool mask_is_valid(uint32_t mask)
{
    return IS_POW2((uint64_t)mask + 1) && mask >> QUEUE_LOG2_MAX == 0;
}

bool dev_queue_is_valid(const struct dev_queue *queue,
                        const struct dev_env *env, uint32_t cmd_bytes)
{
    uint64_t commands = (uint64_t)queue->cmd_mask + 1;
    uint64_t completions = (uint64_t)queue->cq_mask + 1;

    return !queue->is_on ||
           (queue->is_on == 1 && mask_is_valid(queue->cmd_mask) &&
            mask_is_valid(queue->cq_mask) &&
            is_dram(env, queue->page_addr, QUEUE_PAGE_LEN) &&
            is_dram(env, queue->cmd_addr, commands * cmd_bytes) &&
            is_dram(env, queue->cq_addr, completions * QUEUE_CQE_LEN));
}
