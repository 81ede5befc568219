/* SPDX-License-Identifier: BSD-2-Clause */
/* The media engine's registers, queues and state: see hw_media.h. */
#include "hw-model/media/hw_media_internal.h"

#include <string.h>

_Static_assert((int)HW_MEDIA_QUEUES == MEDIA_QUEUES, "see hw_media.h");
_Static_assert((int)HW_MEDIA_PIECES == MEDIA_PIECES_MAX, "see hw_media.h");
_Static_assert((int)HW_MEDIA_OPS == MEDIA_COMMANDS_MAX, "see hw_media.h");
_Static_assert((int)HW_MEDIA_COUNTERS == MEDIA_COUNTERS, "see hw_media.h");

enum {
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

void media_leave(struct hw_media *media)
{
    media_overlap_wake(media);
    for (unsigned int q = 0; media->notify != 0; q++) {
        if (media->notify & BIT(q)) {
            media->notify &= (uint8_t)~BIT(q);
            if (dev_queue_notify(&media->regs.queues[q], &media->config.env)) {
                media_irq_raise(media, BIT(q));
            }
        }
    }
    if (media->is_starved && media->free_op != CACHE_NONE &&
        !media->is_stopped) {
        media->is_starved = false;
        media_defer(media);
    }
}

/* ---- Completions */

static void write_completion(struct hw_media *media, struct dev_queue *queue,
                             const struct hw_media_op *op)
{
    uint8_t *cqe =
        dev_queue_complete(queue, &media->config.env, op->cookie, op->status);

    if (cqe != NULL) {
        dev_queue_publish(queue, cqe);
    }
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
    media_overlap_end(media, op);
    op->state = HW_OP_FREE;
    op->next = media->free_op;
    media->free_op = media_op_index(media, op);
    media->active_ops--;
    if (media->active_ops == 0) {
        media->is_resetting = false;
    }
}

/* ---- Commands */

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
    struct dev_queue *queue = &media->regs.queues[q];

    for (; count > 0 && media->free_op != CACHE_NONE; count--) {
        media_command_start(
            media, take_op(media, q),
            dev_queue_take(queue, &media->config.env, MEDIA_CMD_LEN));
    }
    dev_queue_release(queue, page);
}

/* @return whether the queue has more commands to take */
static bool run_queue(struct hw_media *media, unsigned int q)
{
    const struct dev_queue *queue = &media->regs.queues[q];
    uint8_t *page = dev_queue_page(queue, &media->config.env);
    uint32_t pending;

    if (page == NULL) {
        return false;
    }
    pending = dev_queue_pending(queue, page, media->outstanding[q]);
    if (pending == 0) {
        return false;
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

void hw_media_note_cache_error(struct hw_media *media, bool is_lost)
{
    media_count(media,
                is_lost ? MEDIA_COUNT_CACHE_LOST : MEDIA_COUNT_CACHE_CORRECTED,
                1);
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
    media_list_init(&media->overlap_waiters);
    media_list_init(&media->room_waiters);
    media_list_init(&media->io_waiters);
    media_list_init(&media->drain_waiters);
    media_list_init(&media->flush_waiters);
    media_list_init(&media->flush_running);
}

/* Let the commands of queue `q`, which is off, end without a completion. */
static void abandon_queue(struct hw_media *media, unsigned int q)
{
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
    media_destage_again(media);
    media_destage_pump(media);
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

static bool is_queue_offset(uint32_t offset)
{
    return offset >= A_QUEUE_PAGE_LO &&
           offset < A_QUEUE_PAGE_LO + MEDIA_QUEUES * QUEUE_STRIDE;
}

static bool read_queue(struct hw_media *media, uint32_t offset, uint32_t *value)
{
    uint32_t q = (offset - A_QUEUE_PAGE_LO) / QUEUE_STRIDE;

    return dev_queue_read(&media->regs.queues[q], offset - q * QUEUE_STRIDE,
                          value);
}

static bool write_queue(struct hw_media *media, uint32_t offset, uint32_t value)
{
    uint32_t q = (offset - A_QUEUE_PAGE_LO) / QUEUE_STRIDE;

    switch (dev_queue_write(&media->regs.queues[q], &media->config.env,
                            MEDIA_CMD_LEN, offset - q * QUEUE_STRIDE, value)) {
    case DEV_QUEUE_RUN:
        media_defer(media);
        return true;
    case DEV_QUEUE_ABANDON:
        abandon_queue(media, q);
        return true;
    case DEV_QUEUE_WRITTEN:
        return true;
    case DEV_QUEUE_REFUSED:
        break;
    }
    return false;
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

bool hw_media_loaded(struct hw_media *media)
{
    for (unsigned int q = 0; q < MEDIA_QUEUES; q++) {
        if (!dev_queue_is_valid(&media->regs.queues[q], &media->config.env,
                                MEDIA_CMD_LEN)) {
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
