/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of the media engine, one queue of it.
 * Reference: docs/hardware/media.md; registers in hw-model/regs/media.h.
 *
 * Commands complete in any order; nothing here copies data.
 */
#ifndef ESSD_FIRMWARE_DRIVERS_MEDIA_H
#define ESSD_FIRMWARE_DRIVERS_MEDIA_H

#include "firmware/hal/dram.h"
#include "lib/regfields.h"
#include "hw-model/regs/media.h"
#include "lib/init_result.h"
#include "lib/util.h"

struct media_config {
    uintptr_t regs;      /* where the registers are */
    struct dram *dram;   /* rings are allocated here, for good */
    uint8_t queue;       /* 0..3; one per hart.  Queue 0 resets the engine */
    uint8_t block_shift; /* 9 or 12; the same for every queue */
    uint16_t commands;   /* outstanding at once: a power of two, 2..4096 */
    uint8_t max_pieces;  /* of one command, 1..64 */
};

struct media_info {
    uint64_t size_blocks; /* of 1 << block_shift bytes */
    uint64_t cache_bytes; /* 0: no volatile cache */
    uint8_t block_shift;
};

struct media_piece {
    void *ptr;          /* in DRAM; any alignment */
    uint32_t len_bytes; /* 1 and more */
};

struct media_command {
    enum media_opcode opcode;
    bool fua;
    uint8_t piece_count;   /* READ and WRITE: 1..max_pieces; else 0 */
    uint32_t count_blocks; /* 1 and more; ignored for FLUSH and NOP */
    uint64_t first_lba;
    uint64_t cookie;                  /* comes back in media_done_fn */
    const struct media_piece *pieces; /* count_blocks in total */
};

/* Treat as opaque. */
struct media {
    uintptr_t regs;
    uintptr_t queue_regs;
    uint8_t *page;
    uint8_t *commands;
    uint8_t *lists; /* one of max_pieces per command slot, or NULL */
    uint8_t *completions;
    uint32_t mask;   /* of both rings */
    uint32_t cmd_pi; /* written */
    uint32_t cmd_published;
    uint32_t cmd_ci; /* what we last read of the engine's */
    uint32_t cq_ci;
    uint8_t queue;
    uint8_t max_pieces;
    uint8_t block_shift;
};

/**
 * Called by media_poll() for each completed command.  It may submit.
 */
typedef void media_done_fn(void *ctx, uint64_t cookie,
                           enum media_cqe_status status);

/**
 * Set up one queue.  Queue 0 comes first: it resets the engine, and waits until
 * DMA of an earlier life of the firmware has ended (the hardware's longest
 * request).
 *
 * @return INIT_OK, or why it does not start
 */
MUST_USE enum init_result media_init(struct media *media,
                                     const struct media_config *config);

/** What the medium is. */
void media_info_get(const struct media *media, struct media_info *info);

/**
 * Write one command into the ring.  It, and the pieces, are read before this
 * returns; the buffers are the engine's until the completion.  Nothing starts
 * before media_kick().
 *
 * @return false when as many commands as were configured are outstanding:
 *         nothing happened, try again after media_poll()
 */
MUST_USE bool media_submit(struct media *media,
                           const struct media_command *command);

/** Start what was submitted: at most one register write a burst. */
void media_kick(struct media *media);

/**
 * Report at most `budget` completions.
 *
 * @return how many there were
 */
unsigned int media_poll(struct media *media, unsigned int budget,
                        media_done_fn *done, void *ctx);

/** Commands that media_poll() has not reported yet. */
static inline uint32_t media_outstanding(const struct media *media)
{
    return media->cmd_pi - media->cq_ci;
}

/**
 * Before sleeping: have the engine interrupt at the next completion.
 *
 * @return false when there is one already: do not sleep
 */
MUST_USE bool media_arm(struct media *media);

/** Let the interrupt line follow this queue. */
void media_irq_enable(struct media *media);

/** Acknowledge this queue's interrupt; needed after one only. */
void media_irq_take(struct media *media);

/**
 * Turn the volatile write cache on or off for commands taken from now on.
 * What is in it stays at risk until a flush completes.
 */
void media_set_cache(struct media *media, bool is_on);

/** One of the engine's counters. */
uint64_t media_counter_read(const struct media *media,
                            enum media_counter counter);

#endif
