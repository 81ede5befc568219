/* SPDX-License-Identifier: BSD-2-Clause */
/* Driver of the media engine: see media.h. */
#include "firmware/drivers/media.h"

#include "firmware/hal/relax.h"

enum { LIST_ALIGN = 64, MEDIA_UNIT_SHIFT = 9 };

static uint32_t reg_read(const struct media *media, uint32_t offset)
{
    return mmio_read32(media->regs + offset);
}

/* ---- Bring-up */

static bool config_is_valid(const struct media_config *config)
{
    return config->queue < MEDIA_QUEUES &&
           (config->block_shift == 9 || config->block_shift == 12) &&
           cmd_queue_size_is_valid(config->commands) &&
           config->max_pieces >= 1 && config->max_pieces <= MEDIA_PIECES_MAX;
}

static bool alloc_rings(struct media *media, const struct media_config *config)
{
    struct dram *dram = config->dram;
    size_t list_bytes = (size_t)config->max_pieces * MEDIA_PIECE_LEN;

    media->max_pieces = config->max_pieces;
    if (!cmd_queue_alloc(&media->queue, dram, config->commands,
                         MEDIA_CMD_LEN)) {
        return false;
    }
    if (config->max_pieces <= MEDIA_INLINE_PIECES) {
        return true;
    }
    media->lists =
        dram_reserve(dram, config->commands * list_bytes, LIST_ALIGN);
    return media->lists != NULL;
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

enum init_result media_init(struct media *media,
                            const struct media_config *config)
{
    *media = (struct media){
        .regs = config->regs,
        .queue.regs = config->regs + (uintptr_t)config->queue * QUEUE_STRIDE,
        .index = config->queue,
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
    media->addr_offset = hal_dma_offset(media->queue.page);
    return cmd_queue_start(&media->queue) ? INIT_OK : INIT_REFUSED;
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

/* Find the piece array of this slot: in the command, or in the slot's list. */
static uint8_t *place_pieces(const struct media *media, size_t index,
                             uint8_t *slot, uint8_t count, uint8_t *flags)
{
    uint8_t *list;

    if (count <= MEDIA_INLINE_PIECES) {
        return slot + MEDIA_CMD_PIECE;
    }
    list = media->lists + index * media->max_pieces * MEDIA_PIECE_LEN;
    dma_store64(slot, MEDIA_CMD_LIST, (uintptr_t)list + media->addr_offset);
    *flags |= MEDIA_CMD_LIST_FLAG;
    return list;
}

bool media_submit(struct media *media, const struct media_command *command)
{
    size_t index = media->queue.cmd_pi & media->queue.mask;
    uint8_t *slot = media->queue.commands + index * MEDIA_CMD_LEN;
    uint8_t flags = command->fua ? MEDIA_CMD_FUA : 0;
    uint8_t *pieces;

    ASSERT(command->piece_count <= media->max_pieces);
    if (!cmd_queue_has_room(&media->queue)) {
        return false;
    }
    pieces = place_pieces(media, index, slot, command->piece_count, &flags);
    for (size_t i = 0; i < command->piece_count; i++) {
        uint8_t *piece = pieces + i * MEDIA_PIECE_LEN;

        dma_store64(piece, MEDIA_PIECE_ADDR,
                    (uintptr_t)command->pieces[i].ptr + media->addr_offset);
        dma_store64(piece, MEDIA_PIECE_LENGTH, command->pieces[i].len_bytes);
    }
    dma_store32(slot, MEDIA_CMD_TAG, command->tag);
    dma_store64(slot, MEDIA_CMD_OPCODE,
                (uint64_t)command->opcode | (uint64_t)flags << 8 |
                    (uint64_t)command->piece_count << 16 |
                    (uint64_t)command->count_blocks << 32);
    dma_store64(slot, MEDIA_CMD_COOKIE, command->cookie);
    dma_store64(slot, MEDIA_CMD_LBA, command->first_lba);
    media->queue.cmd_pi++;
    return true;
}

void media_kick(struct media *media)
{
    cmd_queue_kick(&media->queue);
}

/* ---- Completions */

unsigned int media_poll(struct media *media, unsigned int budget,
                        media_done_fn *done, void *ctx)
{
    unsigned int count = 0;
    const uint8_t *entry;

    while (count < budget && (entry = cmd_queue_next(&media->queue)) != NULL) {
        uint64_t cookie;
        enum media_cqe_status status;

        hal_dma_rmb();
        cookie = dma_load64(entry, QUEUE_CQE_COOKIE);
        status = (enum media_cqe_status)dma_load8(entry, QUEUE_CQE_STATUS);
        media->queue.cq_ci++;
        count++;
        done(ctx, cookie, status);
    }
    if (count > 0) {
        cmd_queue_publish_taken(&media->queue);
    }
    return count;
}

bool media_arm(struct media *media)
{
    return cmd_queue_arm(&media->queue);
}

void media_irq_enable(struct media *media)
{
    uint32_t enable = reg_read(media, A_MEDIA_IRQ_ENABLE);

    mmio_write32(media->regs + A_MEDIA_IRQ_ENABLE, enable | BIT(media->index));
}

void media_irq_take(struct media *media)
{
    mmio_write32(media->regs + A_MEDIA_IRQ_STATUS, BIT(media->index));
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
