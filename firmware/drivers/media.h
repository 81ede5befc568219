/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of the media engine, for one of its queues.
 * Reference: docs/hardware/media.md; registers in hw-model/regs/media.h.
 *
 * Commands complete in any order.  The driver does not copy data.
 */
#ifndef ESSD_FIRMWARE_DRIVERS_MEDIA_H
#define ESSD_FIRMWARE_DRIVERS_MEDIA_H

#include "firmware/drivers/cmd_queue.h"
#include "firmware/hal/dram.h"
#include "lib/regfields.h"
#include "hw-model/regs/media.h"
#include "lib/init_result.h"
#include "lib/util.h"

struct media_config {
    uintptr_t regs;      /* address of the registers */
    struct dram *dram;   /* rings are allocated here and never freed */
    uint8_t queue;       /* 0..3, one per hart; queue 0 resets the engine */
    uint8_t block_shift; /* 9 or 12; the same for every queue */
    uint16_t commands;  /* most outstanding commands: a power of two, 2..4096 */
    uint8_t max_pieces; /* most pieces of one command, 1..64 */
};

struct media_info {
    uint64_t size_blocks; /* size in blocks of 1 << block_shift bytes */
    uint64_t cache_bytes; /* size of the volatile write cache; 0: none */
    uint8_t block_shift;
};

struct media_piece {
    void *ptr;          /* in DRAM; any alignment */
    uint32_t len_bytes; /* at least 1 */
};

struct media_command {
    enum media_opcode opcode;
    bool fua;
    uint8_t piece_count;   /* READ and WRITE: 1..max_pieces; else 0 */
    uint32_t count_blocks; /* at least 1; ignored for FLUSH and NOP */
    uint64_t first_lba;
    uint64_t cookie; /* returned in media_done_fn */
    uint32_t tag;    /* what traces of the engine call the command */
    /* Together they hold count_blocks blocks. */
    const struct media_piece *pieces;
};

/* Treat as opaque. */
struct media {
    uintptr_t regs;
    struct cmd_queue queue;
    uintptr_t addr_offset; /* hal_dma_offset() */
    uint8_t *lists; /* a list of max_pieces for each command slot, or NULL */
    uint8_t index;  /* of the queue */
    uint8_t max_pieces;
    uint8_t block_shift;
};

/**
 * Called by media_poll() for each completed command.  It may submit new
 * commands.
 */
typedef void media_done_fn(void *ctx, uint64_t cookie,
                           enum media_cqe_status status);

/**
 * Set up one queue.  Queue 0 must come first: it resets the engine, and waits
 * until the DMA that was started before the reset has ended.  That takes as
 * long as the hardware's longest request.
 *
 * @return INIT_OK, or why the queue does not start
 */
MUST_USE enum init_result media_init(struct media *media,
                                     const struct media_config *config);

/** Read the size of the medium and of its cache. */
void media_info_get(const struct media *media, struct media_info *info);

/**
 * Write one command into the ring.  The command and its list of pieces are read
 * before this returns; the buffers belong to the engine until the completion.
 * Nothing starts before media_kick().
 *
 * @return false when the configured number of commands is outstanding; nothing
 *         was written, try again after media_poll()
 */
MUST_USE bool media_submit(struct media *media,
                           const struct media_command *command);

/** Start the submitted commands, with at most one register write per burst. */
void media_kick(struct media *media);

/**
 * Report at most `budget` completions.
 *
 * @return the number of completions reported
 */
unsigned int media_poll(struct media *media, unsigned int budget,
                        media_done_fn *done, void *ctx);

/** Number of commands that media_poll() has not reported yet. */
static inline uint32_t media_outstanding(const struct media *media)
{
    return cmd_queue_outstanding(&media->queue);
}

/**
 * Before sleeping: make the engine interrupt at the next completion.
 *
 * @return false when a completion is there already: do not sleep
 */
MUST_USE bool media_arm(struct media *media);

/** Enable the interrupt of this queue. */
void media_irq_enable(struct media *media);

/** Acknowledge this queue's interrupt.  Only needed after an interrupt. */
void media_irq_take(struct media *media);

/**
 * Turn the volatile write cache on or off for later commands.  Data that is
 * already in the cache stays volatile until a flush completes.
 */
void media_set_cache(struct media *media, bool is_on);

/** Read one of the engine's counters. */
uint64_t media_counter_read(const struct media *media,
                            enum media_counter counter);

#endif
