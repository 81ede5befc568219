/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver of the media engine: see media.h. */
#include "firmware/drivers/media.h"

#include "firmware/drivers/dma_word.h"
#include "firmware/hal/barrier.h"
#include "firmware/hal/mmio.h"
#include "firmware/hal/relax.h"

enum { RING_ALIGN = 64, MEDIA_UNIT_SHIFT = 9 };

static uint32_t reg_read(const struct media *media, uint32_t offset)
{
    return mmio_read32(media->regs + offset);
}

static uint32_t queue_read(const struct media *media, uint32_t offset)
{
    return mmio_read32(media->queue_regs + offset);
}

static void queue_write(const struct media *media, uint32_t offset,
                        uint32_t value)
{
    mmio_write32(media->queue_regs + offset, value);
}

static void queue_write_addr(const struct media *media, uint32_t low_offset,
                             const void *ptr)
{
    uint64_t addr = hal_dma_addr(ptr);

    queue_write(media, low_offset, (uint32_t)addr);
    queue_write(media, low_offset + 4, (uint32_t)(addr >> 32));
}

/* ---- Bring-up */

static bool config_is_valid(const struct media_config *config)
{
    return config->queue < MEDIA_QUEUES &&
           (config->block_shift == 9 || config->block_shift == 12) &&
           IS_POW2(config->commands) && config->commands >= 2 &&
           config->commands <= 1 << MEDIA_QUEUE_LOG2_MAX &&
           config->max_pieces >= 1 && config->max_pieces <= MEDIA_PIECES_MAX;
}

static bool alloc_rings(struct media *media, const struct media_config *config)
{
    struct dram *dram = config->dram;
    size_t n = config->commands;
    bool needs_lists = config->max_pieces > MEDIA_INLINE_PIECES;

    media->page = dram_alloc(dram, MEDIA_PAGE_LEN, RING_ALIGN);
    media->commands = dram_alloc(dram, n * MEDIA_CMD_LEN, MEDIA_CMD_LEN);
    media->completions = dram_alloc(dram, n * MEDIA_CQE_LEN, RING_ALIGN);
    if (needs_lists) {
        media->lists = dram_reserve(
            dram, n * config->max_pieces * MEDIA_PIECE_LEN, RING_ALIGN);
    }
    media->mask = (uint32_t)n - 1;
    media->max_pieces = config->max_pieces;
    return media->page != NULL && media->commands != NULL &&
           media->completions != NULL && (!needs_lists || media->lists != NULL);
}

static void reset_engine(const struct media *media, uint8_t block_shift)
{
    mmio_write32(media->regs + A_MEDIA_CTRL,
                 FIELD_SET(0, MEDIA_CTRL, RESET, 1));
    while (FIELD_GET(reg_read(media, A_MEDIA_CTRL), MEDIA_CTRL, RESET)) {
        hal_relax();
    }
    mmio_write32(media->regs + A_MEDIA_BLOCK, block_shift);
}

static bool start_queue(const struct media *media)
{
    uint32_t log2 = (uint32_t)__builtin_ctz(media->mask + 1);
    uint32_t sizes = FIELD_SET(0, MEDIA_QUEUE_SIZES, CMD, log2);

    sizes = FIELD_SET(sizes, MEDIA_QUEUE_SIZES, CQ, log2);
    queue_write_addr(media, A_MEDIA_QUEUE_PAGE_LO, media->page);
    queue_write_addr(media, A_MEDIA_QUEUE_CMD_LO, media->commands);
    queue_write_addr(media, A_MEDIA_QUEUE_CQ_LO, media->completions);
    queue_write(media, A_MEDIA_QUEUE_SIZES, sizes);
    hal_dma_wmb();
    queue_write(media, A_MEDIA_QUEUE_ENABLE, 1);
    return queue_read(media, A_MEDIA_QUEUE_ENABLE) == 1;
}

enum init_result media_init(struct media *media,
                            const struct media_config *config)
{
    *media = (struct media){
        .regs = config->regs,
        .queue_regs =
            config->regs + (uintptr_t)config->queue * MEDIA_QUEUE_STRIDE,
        .queue = config->queue,
        .block_shift = config->block_shift,
    };
    if (!config_is_valid(config)) {
        return INIT_BAD_CONFIG;
    }
    if (reg_read(media, A_MEDIA_ID) != MEDIA_ID_VALUE) {
        return INIT_NO_DEVICE;
    }
    if (config->queue == 0) {
        reset_engine(media, config->block_shift);
    }
    if (reg_read(media, A_MEDIA_BLOCK) != config->block_shift) {
        return INIT_REFUSED;
    }
    if (!alloc_rings(media, config)) {
        return INIT_NO_MEMORY;
    }
    return start_queue(media) ? INIT_OK : INIT_REFUSED;
}

void media_info_get(const struct media *media, struct media_info *info)
{
    uint64_t units = reg_read(media, A_MEDIA_CAPACITY_LO) |
                     (uint64_t)reg_read(media, A_MEDIA_CAPACITY_HI) << 32;

    *info = (struct media_info){
        .size_blocks = units >> (media->block_shift - MEDIA_UNIT_SHIFT),
        .cache_bytes = (uint64_t)reg_read(media, A_MEDIA_CACHE_SIZE_KIB) << 10,
        .block_shift = media->block_shift,
    };
}

/* ---- Commands */

/*
 * Publish that completions up to cq_ci are read, so that the engine may
 * overwrite them.
 */
static void publish_taken(const struct media *media)
{
    hal_dma_mb();
    dma_store32(media->page, MEDIA_PAGE_CQ_CI, media->cq_ci);
}

/* Find the piece array of this slot: in the command, or in the slot's list. */
static uint8_t *place_pieces(const struct media *media, size_t index,
                             uint8_t *slot, uint8_t count, uint8_t *flags)
{
    uint8_t *list;

    if (count <= MEDIA_INLINE_PIECES) {
        return slot + MEDIA_CMD_PIECE;
    }
    list = media->lists + index * media->max_pieces * MEDIA_PIECE_LEN;
    dma_store64(slot, MEDIA_CMD_LIST, hal_dma_addr(list));
    *flags |= MEDIA_CMD_LIST_FLAG;
    return list;
}

/*
 * Whether the next ring slot is free.  Fewer commands are outstanding than the
 * ring has slots, but the engine may not have taken the slot's last command.
 */
static bool slot_is_free(struct media *media)
{
    if (media->cmd_pi - media->cmd_ci <= media->mask) {
        return true;
    }
    media->cmd_ci = dma_load32(media->page, MEDIA_PAGE_CMD_CI);
    hal_dma_mb();
    return media->cmd_pi - media->cmd_ci <= media->mask;
}

bool media_submit(struct media *media, const struct media_command *command)
{
    size_t index = media->cmd_pi & media->mask;
    uint8_t *slot = media->commands + index * MEDIA_CMD_LEN;
    uint8_t flags = command->fua ? MEDIA_CMD_FUA : 0;
    uint8_t *pieces;

    ASSERT(command->piece_count <= media->max_pieces);
    if (media_outstanding(media) > media->mask || !slot_is_free(media)) {
        return false;
    }
    pieces = place_pieces(media, index, slot, command->piece_count, &flags);
    for (size_t i = 0; i < command->piece_count; i++) {
        uint8_t *piece = pieces + i * MEDIA_PIECE_LEN;

        dma_store64(piece, MEDIA_PIECE_ADDR,
                    hal_dma_addr(command->pieces[i].ptr));
        dma_store64(piece, MEDIA_PIECE_LENGTH, command->pieces[i].len_bytes);
    }
    dma_store32(slot, MEDIA_CMD_TAG, command->tag);
    dma_store64(slot, MEDIA_CMD_OPCODE,
                (uint64_t)command->opcode | (uint64_t)flags << 8 |
                    (uint64_t)command->piece_count << 16 |
                    (uint64_t)command->count_blocks << 32);
    dma_store64(slot, MEDIA_CMD_COOKIE, command->cookie);
    dma_store64(slot, MEDIA_CMD_LBA, command->first_lba);
    media->cmd_pi++;
    return true;
}

void media_kick(struct media *media)
{
    if (media->cmd_pi == media->cmd_published) {
        return;
    }
    media->cmd_published = media->cmd_pi;
    /* Give the engine room for completions of these commands. */
    publish_taken(media);
    hal_dma_wmb();
    dma_store32(media->page, MEDIA_PAGE_CMD_PI, media->cmd_pi);
    hal_dma_mb();
    if (dma_load32(media->page, MEDIA_PAGE_ASLEEP)) {
        queue_write(media, A_MEDIA_QUEUE_KICK, 1);
    }
}

/* ---- Completions */

/* @return the next completion, or NULL when there is none */
static const uint8_t *next_completion(const struct media *media)
{
    const uint8_t *entry = media->completions +
                           (size_t)(media->cq_ci & media->mask) * MEDIA_CQE_LEN;
    uint8_t lap = (media->cq_ci & (media->mask + 1)) == 0;

    return (dma_load8(entry, MEDIA_CQE_FLAGS) & MEDIA_CQE_PHASE) == lap ? entry
                                                                        : NULL;
}

unsigned int media_poll(struct media *media, unsigned int budget,
                        media_done_fn *done, void *ctx)
{
    unsigned int count = 0;
    const uint8_t *entry;

    while (count < budget && (entry = next_completion(media)) != NULL) {
        uint64_t cookie;
        enum media_cqe_status status;

        hal_dma_rmb();
        cookie = dma_load64(entry, MEDIA_CQE_COOKIE);
        status = (enum media_cqe_status)dma_load8(entry, MEDIA_CQE_STATUS);
        media->cq_ci++;
        count++;
        done(ctx, cookie, status);
    }
    if (count > 0) {
        publish_taken(media);
    }
    return count;
}

bool media_arm(struct media *media)
{
    dma_store32(media->page, MEDIA_PAGE_ARMED, 1);
    hal_dma_mb();
    return next_completion(media) == NULL;
}

void media_irq_enable(struct media *media)
{
    uint32_t enable = reg_read(media, A_MEDIA_IRQ_ENABLE);

    mmio_write32(media->regs + A_MEDIA_IRQ_ENABLE, enable | BIT(media->queue));
}

void media_irq_take(struct media *media)
{
    mmio_write32(media->regs + A_MEDIA_IRQ_STATUS, BIT(media->queue));
}

void media_set_cache(struct media *media, bool is_on)
{
    mmio_write32(media->regs + A_MEDIA_CACHE_CTRL,
                 FIELD_SET(0, MEDIA_CACHE_CTRL, ENABLE, is_on));
}

uint64_t media_counter_read(const struct media *media,
                            enum media_counter counter)
{
    uint32_t offset = MEDIA_COUNTER_BASE + 8 * (uint32_t)counter;
    uint32_t low = reg_read(media, offset);

    return (uint64_t)reg_read(media, offset + 4) << 32 | low;
}
