/* SPDX-License-Identifier: BSD-2-Clause */
/* The media engine's registers, queues and state: see hw_media.h. */
#include "hw-model/media/hw_media_internal.h"

#include <string.h>

_Static_assert((int)HW_MEDIA_QUEUES == MEDIA_QUEUES, "see hw_media.h");
_Static_assert((int)HW_MEDIA_PIECES == MEDIA_PIECES_MAX, "see hw_media.h");
_Static_assert((int)HW_MEDIA_OPS == MEDIA_COMMANDS_MAX, "see hw_media.h");
_Static_assert((int)HW_MEDIA_COUNTERS == MEDIA_COUNTERS, "see hw_media.h");

enum {
    RING_ALIGN = 64,
    SECTOR_SHIFT = 9,
    LINE_SHIFT = 12,
    /* Commands taken from one queue before the next queue's turn. */
    QUEUE_TURN = 64,
    QUEUE_TURNS = 4, /* turns before other devices run */
};

/* ---- Lists of operations */

void media_list_put(struct hw_media *media, struct hw_media_list *list,
                    struct hw_media_op *op)
{
    uint32_t i = media_op_index(media, op);

    op->next = CACHE_NONE;
    if (list->head == CACHE_NONE) {
        list->head = i;
    } else {
        media->ops[list->tail].next = i;
    }
    list->tail = i;
}

void media_list_put_first(struct hw_media *media, struct hw_media_list *list,
                          struct hw_media_op *op)
{
    op->next = list->head;
    list->head = media_op_index(media, op);
    if (op->next == CACHE_NONE) {
        list->tail = list->head;
    }
}

struct hw_media_op *media_list_take(struct hw_media *media,
                                    struct hw_media_list *list)
{
    struct hw_media_op *op;

    if (list->head == CACHE_NONE) {
        return NULL;
    }
    op = &media->ops[list->head];
    list->head = op->next;
    if (list->head == CACHE_NONE) {
        list->tail = CACHE_NONE;
    }
    return op;
}

/* ---- Interrupts */

static void update_irq(struct hw_media *media)
{
    media->config.env.set_irq(
        media->config.env.ctx, 0,
        (media->regs.irq_status & media->regs.irq_enable) != 0);
}

void media_irq_raise(struct hw_media *media, uint32_t bits)
{
    media->regs.irq_status |= bits;
    update_irq(media);
}

static uint8_t *queue_page(const struct hw_media *media,
                           const struct hw_media_queue *queue)
{
    return media_dma(media, queue->page_addr, MEDIA_PAGE_LEN);
}

static void notify_queue(struct hw_media *media, unsigned int q)
{
    uint8_t *page = queue_page(media, &media->regs.queues[q]);

    if (page == NULL) {
        return;
    }
    dev_mb();
    if (shared_load32(page + MEDIA_PAGE_ARMED)) {
        shared_store32(page + MEDIA_PAGE_ARMED, 0);
        media_irq_raise(media, BIT(q));
    }
}

void media_leave(struct hw_media *media)
{
    for (unsigned int q = 0; media->notify != 0; q++) {
        if (media->notify & BIT(q)) {
            media->notify &= (uint8_t)~BIT(q);
            notify_queue(media, q);
        }
    }
    if (media->is_starved && media->free_op != CACHE_NONE &&
        !media->is_stopped) {
        media->is_starved = false;
        media_defer(media);
    }
}

/* ---- Completions */

static void write_completion(struct hw_media *media,
                             struct hw_media_queue *queue,
                             const struct hw_media_op *op)
{
    const struct dev_env *env = &media->config.env;
    uint32_t slot = queue->cq_pi & queue->cq_mask;
    uint8_t *cqe = media_dma(
        media, queue->cq_addr + (uint64_t)slot * MEDIA_CQE_LEN, MEDIA_CQE_LEN);
    uint8_t phase = (queue->cq_pi & (queue->cq_mask + 1)) == 0;

    queue->cq_pi++;
    if (cqe == NULL) {
        return; /* cannot happen, because enabling the queue checked the ring */
    }
    put_le64(cqe + MEDIA_CQE_COOKIE, op->cookie);
    put_le64(cqe + MEDIA_CQE_TIMESTAMP, env->now_ns(env->ctx));
    cqe[MEDIA_CQE_STATUS] = op->status;
    dev_wmb();
    __atomic_store_n(cqe + MEDIA_CQE_FLAGS, phase, __ATOMIC_RELAXED);
}

static const uint8_t done_counter[] = {
    [MEDIA_CMD_READ] = MEDIA_COUNT_READS,
    [MEDIA_CMD_WRITE] = MEDIA_COUNT_WRITES,
    [MEDIA_CMD_FLUSH] = MEDIA_COUNT_FLUSHES,
    [MEDIA_CMD_WRITE_ZEROES] = MEDIA_COUNT_WRITE_ZEROES,
    [MEDIA_CMD_DEALLOCATE] = MEDIA_COUNT_DEALLOCATES,
};

static void count_completion(struct hw_media *media,
                             const struct hw_media_op *op)
{
    if (op->status != MEDIA_CQE_OK) {
        media_count(media, MEDIA_COUNT_ERRORS, 1);
        return;
    }
    if (op->opcode == MEDIA_CMD_NOP) {
        return;
    }
    media_count(media, (enum media_counter)done_counter[op->opcode], 1);
    if (op->opcode == MEDIA_CMD_READ) {
        media_count(media, MEDIA_COUNT_READ_BLOCKS, op->end - op->first);
    } else if (op->opcode == MEDIA_CMD_WRITE) {
        media_count(media, MEDIA_COUNT_WRITE_BLOCKS, op->end - op->first);
    }
}

void media_complete(struct hw_media *media, struct hw_media_op *op)
{
    ASSERT(op->pending == 0);
    count_completion(media, op);
    if (__builtin_expect(op->is_traced, 0)) {
        media_trace_end(media, op);
    }
    if (!op->is_orphan) {
        write_completion(media, &media->regs.queues[op->queue], op);
        media->outstanding[op->queue]--;
        media->notify |= (uint8_t)BIT(op->queue);
    }
    op->state = HW_OP_FREE;
    op->next = media->free_op;
    media->free_op = media_op_index(media, op);
    media->active_ops--;
    if (media->active_ops == 0) {
        media->is_resetting = false;
    }
}

/* ---- Commands */

/* How many commands the completion ring has room for. */
static uint32_t completion_room(const struct hw_media *media,
                                const struct hw_media_queue *queue,
                                const uint8_t *page)
{
    uint32_t unread = queue->cq_pi - shared_load32(page + MEDIA_PAGE_CQ_CI);
    uint32_t used = unread + media->outstanding[queue - media->regs.queues];

    return used > queue->cq_mask ? 0 : queue->cq_mask + 1 - used;
}

/* How many commands of the ring may be taken now. */
static uint32_t pending_commands(const struct hw_media *media,
                                 const struct hw_media_queue *queue,
                                 const uint8_t *page)
{
    uint32_t pending = shared_load32(page + MEDIA_PAGE_CMD_PI) - queue->cmd_ci;
    uint32_t room = completion_room(media, queue, page);

    dev_rmb();
    /* With an invalid producer index, take nothing until it is valid. */
    return pending > queue->cmd_mask + 1 ? 0 : MIN(pending, room);
}

static struct hw_media_op *take_op(struct hw_media *media, unsigned int q)
{
    struct hw_media_op *op = &media->ops[media->free_op];

    media->free_op = op->next;
    media->active_ops++;
    media->outstanding[q]++;
    op->queue = (uint8_t)q;
    op->is_orphan = false;
    return op;
}

static void take_commands(struct hw_media *media, unsigned int q, uint8_t *page,
                          uint32_t count)
{
    struct hw_media_queue *queue = &media->regs.queues[q];

    for (; count > 0 && media->free_op != CACHE_NONE; count--) {
        uint64_t slot = queue->cmd_ci & queue->cmd_mask;

        queue->cmd_ci++;
        media_command_start(media, take_op(media, q),
                            media_dma(media,
                                      queue->cmd_addr + slot * MEDIA_CMD_LEN,
                                      MEDIA_CMD_LEN));
    }
    dev_wmb(); /* read the command before its slot is given back */
    shared_store32(page + MEDIA_PAGE_CMD_CI, queue->cmd_ci);
}

/* @return whether the queue has more commands to take */
static bool run_queue(struct hw_media *media, unsigned int q)
{
    struct hw_media_queue *queue = &media->regs.queues[q];
    uint8_t *page = queue->is_on ? queue_page(media, queue) : NULL;
    uint32_t pending;

    if (page == NULL) {
        return false;
    }
    shared_store32(page + MEDIA_PAGE_ASLEEP, 0);
    pending = pending_commands(media, queue, page);
    if (pending == 0) {
        shared_store32(page + MEDIA_PAGE_ASLEEP, 1);
        dev_mb();
        pending = pending_commands(media, queue, page);
        if (pending == 0) {
            return false;
        }
        shared_store32(page + MEDIA_PAGE_ASLEEP, 0);
    }
    if (media->free_op == CACHE_NONE) {
        /* The queue stays awake: it continues when an operation is free. */
        media->is_starved = true;
        return false;
    }
    take_commands(media, q, page, MIN(pending, (uint32_t)QUEUE_TURN));
    return true;
}

void hw_media_run(struct hw_media *media)
{
    bool again = !media->is_stopped;

    for (unsigned int turn = 0; again && turn < QUEUE_TURNS; turn++) {
        again = false;
        for (unsigned int q = 0; q < MEDIA_QUEUES; q++) {
            again |= run_queue(media, q);
        }
    }
    if (again) {
        media_defer(media); /* let other devices use the thread */
    }
    media_destage_pump(media);
    media_leave(media);
}

void hw_media_io_done(struct hw_media *media, uint32_t id, int result)
{
    if (id < IO_SLICE0) {
        media_op_io_done(media, &media->ops[id], result);
    } else if (id < IO_BATCH0) {
        media_op_slice_done(media, id - IO_SLICE0, result);
    } else if (id < IO_FLUSH) {
        media_destage_done(media, id - IO_BATCH0, result);
    } else {
        media_op_flush_done(media, result);
    }
    media_leave(media);
}

/* ---- Reset, stop */

static void clear_regs(struct hw_media *media)
{
    memset(&media->regs, 0, sizeof(media->regs));
    media->regs.block_shift = SECTOR_SHIFT;
    media->regs.cache_ctrl = R_MEDIA_CACHE_CTRL_ENABLE_MASK;
}

void hw_media_init(struct hw_media *media, const struct hw_media_config *config)
{
    memset(media, 0, sizeof(*media));
    media->config = *config;
    if (media->config.trace == NULL) {
        media->config.trace = &trace_off;
    }
    clear_regs(media);
    media_cache_init(&media->cache, config->cache_memory, config->cache_bytes);
    media->free_op = CACHE_NONE;
    media->free_slice = CACHE_NONE;
    media->free_batch = CACHE_NONE;
    for (uint32_t i = HW_MEDIA_OPS; i-- > 0;) {
        media->ops[i].next = media->free_op;
        media->free_op = i;
    }
    for (uint32_t i = HW_MEDIA_SLICES; i-- > 0;) {
        media->slices[i].next_free = media->free_slice;
        media->free_slice = i;
    }
    for (uint32_t i = HW_MEDIA_BATCHES; i-- > 0;) {
        media->batches[i].next_free = media->free_batch;
        media->free_batch = i;
    }
    media_list_init(&media->room_waiters);
    media_list_init(&media->io_waiters);
    media_list_init(&media->drain_waiters);
    media_list_init(&media->flush_waiters);
    media_list_init(&media->flush_running);
}

/* Let the commands of queue `q` end without a completion. */
static void abandon_queue(struct hw_media *media, unsigned int q)
{
    media->regs.queues[q].is_on = 0;
    if (media->outstanding[q] == 0) {
        return;
    }
    media->outstanding[q] = 0;
    for (uint32_t i = 0; i < HW_MEDIA_OPS; i++) {
        if (media->ops[i].state != HW_OP_FREE && media->ops[i].queue == q) {
            media->ops[i].is_orphan = true;
        }
    }
}

void hw_media_reset(struct hw_media *media)
{
    for (unsigned int q = 0; q < MEDIA_QUEUES; q++) {
        abandon_queue(media, q);
    }
    clear_regs(media);
    media->is_starved = false;
    media->is_resetting = media->active_ops > 0;
    update_irq(media);
}

bool hw_media_has_dma(const struct hw_media *media)
{
    return media->active_ops > 0;
}

void hw_media_quiesce(struct hw_media *media)
{
    media->is_stopped = true;
    media->is_draining = true;
    media->destage_failed = false; /* try to destage once more */
    media_op_wake(media);
    media_destage_pump(media);
    media_leave(media);
}

void hw_media_resume(struct hw_media *media)
{
    media->is_stopped = false;
    media_defer(media);
}

bool hw_media_is_quiet(const struct hw_media *media)
{
    return media->active_ops == 0 && media->batches_inflight == 0 &&
           !media->is_flushing &&
           (media->destage_failed ||
            (media->cache.used_lines == 0 && !media->medium_dirty));
}

/* ---- Registers */

static uint64_t page_address(const uint32_t words[2])
{
    return (uint64_t)words[1] << 32 | words[0];
}

static bool ring_fits(const struct hw_media *media, uint64_t addr,
                      uint32_t size_log2, uint32_t entry_len)
{
    return size_log2 >= 1 && size_log2 <= MEDIA_QUEUE_LOG2_MAX &&
           addr % RING_ALIGN == 0 &&
           media_dma(media, addr, (uint64_t)entry_len << size_log2) != NULL;
}

static void enable_queue(struct hw_media *media, struct hw_media_queue *queue)
{
    uint32_t cmd_log2 = FIELD_GET(queue->sizes, MEDIA_QUEUE_SIZES, CMD);
    uint32_t cq_log2 = FIELD_GET(queue->sizes, MEDIA_QUEUE_SIZES, CQ);

    if (queue->is_on || page_address(queue->page) % RING_ALIGN != 0 ||
        media_dma(media, page_address(queue->page), MEDIA_PAGE_LEN) == NULL ||
        !ring_fits(media, page_address(queue->cmd), cmd_log2, MEDIA_CMD_LEN) ||
        !ring_fits(media, page_address(queue->cq), cq_log2, MEDIA_CQE_LEN)) {
        return;
    }
    queue->page_addr = page_address(queue->page);
    queue->cmd_addr = page_address(queue->cmd);
    queue->cq_addr = page_address(queue->cq);
    queue->cmd_mask = (1u << cmd_log2) - 1;
    queue->cq_mask = (1u << cq_log2) - 1;
    queue->cmd_ci = 0;
    queue->cq_pi = 0;
    queue->is_on = 1;
    media_defer(media);
}

/* The variable of a plain read-write register of a queue, or NULL. */
static uint32_t *queue_word(struct hw_media_queue *queue, uint32_t offset)
{
    switch (offset) {
    case A_MEDIA_QUEUE_PAGE_LO:
        return &queue->page[0];
    case A_MEDIA_QUEUE_PAGE_HI:
        return &queue->page[1];
    case A_MEDIA_QUEUE_CMD_LO:
        return &queue->cmd[0];
    case A_MEDIA_QUEUE_CMD_HI:
        return &queue->cmd[1];
    case A_MEDIA_QUEUE_CQ_LO:
        return &queue->cq[0];
    case A_MEDIA_QUEUE_CQ_HI:
        return &queue->cq[1];
    case A_MEDIA_QUEUE_SIZES:
        return &queue->sizes;
    default:
        return NULL;
    }
}

static bool is_queue_offset(uint32_t offset)
{
    return offset >= A_MEDIA_QUEUE_PAGE_LO &&
           offset < A_MEDIA_QUEUE_PAGE_LO + MEDIA_QUEUES * MEDIA_QUEUE_STRIDE;
}

static bool read_queue(struct hw_media *media, uint32_t offset, uint32_t *value)
{
    uint32_t q = (offset - A_MEDIA_QUEUE_PAGE_LO) / MEDIA_QUEUE_STRIDE;
    struct hw_media_queue *queue = &media->regs.queues[q];
    const uint32_t *word;

    offset -= q * MEDIA_QUEUE_STRIDE;
    word = queue_word(queue, offset);
    if (word != NULL) {
        *value = *word;
        return true;
    }
    *value = offset == A_MEDIA_QUEUE_ENABLE ? queue->is_on : 0;
    return offset == A_MEDIA_QUEUE_ENABLE || offset == A_MEDIA_QUEUE_KICK;
}

static bool write_queue(struct hw_media *media, uint32_t offset, uint32_t value)
{
    uint32_t q = (offset - A_MEDIA_QUEUE_PAGE_LO) / MEDIA_QUEUE_STRIDE;
    struct hw_media_queue *queue = &media->regs.queues[q];
    uint32_t *word;

    offset -= q * MEDIA_QUEUE_STRIDE;
    word = queue_word(queue, offset);
    if (word != NULL) {
        *word = value;
        return true;
    }
    switch (offset) {
    case A_MEDIA_QUEUE_ENABLE:
        if (FIELD_GET(value, MEDIA_QUEUE_ENABLE, ON)) {
            enable_queue(media, queue);
        } else {
            abandon_queue(media, q);
        }
        return true;
    case A_MEDIA_QUEUE_KICK:
        media_defer(media);
        return true;
    default:
        return false;
    }
}

static uint32_t read_counter(struct hw_media *media, uint32_t word)
{
    uint64_t counter = media->regs.counters[word / 2];

    if (word % 2 == 1) {
        return media->regs.counter_high;
    }
    media->regs.counter_high = (uint32_t)(counter >> 32);
    return (uint32_t)counter;
}

static uint32_t read_limits(void)
{
    return FIELD_MAKE(MEDIA_LIMITS, QUEUES, MEDIA_QUEUES) |
           FIELD_MAKE(MEDIA_LIMITS, PIECES, MEDIA_PIECES_MAX) |
           FIELD_MAKE(MEDIA_LIMITS, COMMANDS, MEDIA_COMMANDS_MAX);
}

bool hw_media_read(struct hw_media *media, uint32_t offset, uint32_t *value)
{
    uint64_t sectors = media->config.capacity_bytes >> SECTOR_SHIFT;

    if (is_queue_offset(offset)) {
        return read_queue(media, offset, value);
    }
    if (offset >= MEDIA_COUNTER_BASE &&
        offset < MEDIA_COUNTER_BASE + 8 * MEDIA_COUNTERS) {
        *value = read_counter(media, (offset - MEDIA_COUNTER_BASE) / 4);
        return true;
    }
    switch (offset) {
    case A_MEDIA_ID:
        *value = MEDIA_ID_VALUE;
        return true;
    case A_MEDIA_LIMITS:
        *value = read_limits();
        return true;
    case A_MEDIA_CTRL:
        *value = FIELD_MAKE(MEDIA_CTRL, RESET, media->is_resetting);
        return true;
    case A_MEDIA_STATUS:
        *value =
            FIELD_MAKE(MEDIA_STATUS, DESTAGE_FAILED, media->destage_failed);
        return true;
    case A_MEDIA_CAPACITY_LO:
        *value = (uint32_t)sectors;
        return true;
    case A_MEDIA_CAPACITY_HI:
        *value = (uint32_t)(sectors >> 32);
        return true;
    case A_MEDIA_IRQ_STATUS:
        *value = media->regs.irq_status;
        return true;
    case A_MEDIA_IRQ_ENABLE:
        *value = media->regs.irq_enable;
        return true;
    case A_MEDIA_BLOCK:
        *value = media->regs.block_shift;
        return true;
    case A_MEDIA_CACHE_CTRL:
        *value = media->regs.cache_ctrl;
        return true;
    case A_MEDIA_CACHE_SIZE_KIB:
        *value = (uint32_t)(media->config.cache_bytes >> 10);
        return true;
    case A_MEDIA_CACHE_DIRTY_KIB:
        *value = media->cache.used_lines << (LINE_SHIFT - 10);
        return true;
    default:
        *value = 0;
        return false;
    }
}

static void write_block(struct hw_media *media, uint32_t value)
{
    uint32_t shift = FIELD_GET(value, MEDIA_BLOCK, SHIFT);

    for (unsigned int q = 0; q < MEDIA_QUEUES; q++) {
        if (media->regs.queues[q].is_on) {
            return;
        }
    }
    if (shift == SECTOR_SHIFT || shift == LINE_SHIFT) {
        media->regs.block_shift = shift;
    }
}

bool hw_media_write(struct hw_media *media, uint32_t offset, uint32_t value)
{
    if (is_queue_offset(offset)) {
        return write_queue(media, offset, value);
    }
    switch (offset) {
    case A_MEDIA_CTRL:
        if (FIELD_GET(value, MEDIA_CTRL, RESET)) {
            hw_media_reset(media);
        }
        return true;
    case A_MEDIA_IRQ_STATUS:
        media->regs.irq_status &= ~value;
        update_irq(media);
        return true;
    case A_MEDIA_IRQ_ENABLE:
        media->regs.irq_enable =
            value & (R_MEDIA_IRQ_STATUS_QUEUE_MASK |
                     R_MEDIA_IRQ_STATUS_DESTAGE_FAILED_MASK);
        update_irq(media);
        return true;
    case A_MEDIA_BLOCK:
        write_block(media, value);
        return true;
    case A_MEDIA_CACHE_CTRL:
        media->regs.cache_ctrl = value & R_MEDIA_CACHE_CTRL_ENABLE_MASK;
        return true;
    default:
        return false;
    }
}

/* ---- Load */

static bool queue_is_valid(const struct hw_media *media,
                           const struct hw_media_queue *queue)
{
    return !queue->is_on ||
           (queue->is_on == 1 && IS_POW2((uint64_t)queue->cmd_mask + 1) &&
            IS_POW2((uint64_t)queue->cq_mask + 1) &&
            queue->cmd_mask >> MEDIA_QUEUE_LOG2_MAX == 0 &&
            queue->cq_mask >> MEDIA_QUEUE_LOG2_MAX == 0 &&
            (queue->page_addr | queue->cmd_addr | queue->cq_addr) %
                    RING_ALIGN ==
                0 &&
            queue_page(media, queue) != NULL &&
            media_dma(media, queue->cmd_addr,
                      (uint64_t)MEDIA_CMD_LEN * (queue->cmd_mask + 1)) !=
                NULL &&
            media_dma(media, queue->cq_addr,
                      (uint64_t)MEDIA_CQE_LEN * (queue->cq_mask + 1)) != NULL);
}

bool hw_media_loaded(struct hw_media *media)
{
    for (unsigned int q = 0; q < MEDIA_QUEUES; q++) {
        if (!queue_is_valid(media, &media->regs.queues[q])) {
            return false;
        }
        media->outstanding[q] = 0;
    }
    if (media->active_ops != 0 || (media->regs.block_shift != SECTOR_SHIFT &&
                                   media->regs.block_shift != LINE_SHIFT)) {
        return false;
    }
    update_irq(media);
    media_defer(media);
    return true;
}
