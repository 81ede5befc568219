/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The media engine with a medium in memory.  The test plays the firmware: it
 * writes commands into the rings itself.
 */
#ifndef ESSD_TEST_MEDIA_WORLD_H
#define ESSD_TEST_MEDIA_WORLD_H

#include <stdlib.h>
#include <string.h>

#include "lib/regfields.h"
#include "hw-model/media/backend_ram.h"
#include "hw-model/media/hw_media.h"
#include "hw-model/regs/media.h"
#include "hw-model/regs/queue.h"
#include "lib/bytes.h"
#include "tests/unit/hw-model/test_env.h"

enum {
    W_DRAM_BYTES = 8 << 20,
    W_PAGE = 0x0,
    W_CMD = 0x10000,
    W_CQ = 0x20000,
    W_LIST = 0x30000,
    W_BUF = 0x100000, /* data buffers, to the end of DRAM */
    W_LOG2 = 4,
    W_RING = 1 << W_LOG2,
    W_MEDIUM_BYTES = 4 << 20,
    W_DONE_MAX = 4096,
};

struct done {
    uint64_t cookie;
    uint8_t status;
};

struct world {
    struct hw_media media;
    struct backend_ram ram;
    struct test_env env;
    uint8_t *dram;
    void *cache_memory;

    uint32_t cmd_pi;
    uint32_t cq_ci;
    struct done done[W_DONE_MAX];
    unsigned int num_done;
    unsigned int kicks;
};

struct cmd {
    uint8_t opcode;
    uint8_t flags;
    uint32_t count;
    uint64_t lba;
    uint64_t cookie;
    uint32_t buf;    /* offset in DRAM */
    uint32_t pieces; /* 0: one for READ and WRITE, none for other commands */
    uint32_t piece_len;
    uint32_t tag;
};

static inline uint32_t w_read(struct world *w, uint32_t offset)
{
    uint32_t value;

    ASSERT(hw_media_read(&w->media, offset, &value));
    return value;
}

static void w_write(struct world *w, uint32_t offset, uint32_t value)
{
    ASSERT(hw_media_write(&w->media, offset, value));
}

static inline uint64_t w_counter(struct world *w, enum media_counter n)
{
    uint32_t low = w_read(w, MEDIA_COUNTER_BASE + 8 * (uint32_t)n);

    return (uint64_t)w_read(w, MEDIA_COUNTER_BASE + 8 * (uint32_t)n + 4) << 32 |
           low;
}

static void w_io_done(void *ctx, uint32_t id, int result)
{
    hw_media_io_done(ctx, id, result);
}

static void w_enable_queue(struct world *w)
{
    memset(w->dram, 0, W_LIST);
    w->cmd_pi = 0;
    w->cq_ci = 0;
    w_write(w, A_QUEUE_PAGE_LO, (uint32_t)TEST_DRAM_BASE + W_PAGE);
    w_write(w, A_QUEUE_CMD_LO, (uint32_t)TEST_DRAM_BASE + W_CMD);
    w_write(w, A_QUEUE_CQ_LO, (uint32_t)TEST_DRAM_BASE + W_CQ);
    w_write(w, A_QUEUE_SIZES, W_LOG2 | W_LOG2 << 8);
    w_write(w, A_QUEUE_ENABLE, 1);
    ASSERT(w_read(w, A_QUEUE_ENABLE) == 1);
}

/* Power the engine on with an empty cache.  The medium keeps its contents. */
static void w_power_on(struct world *w, uint64_t cache_bytes)
{
    struct hw_media_config config = {
        .env = test_env_init(&w->env, w->dram, W_DRAM_BYTES),
        .backend = backend_ram_backend(&w->ram),
        .capacity_bytes = W_MEDIUM_BYTES,
        .cache_bytes = cache_bytes,
    };

    free(w->cache_memory);
    w->cache_memory = aligned_alloc(
        4096, (media_cache_memory_bytes(cache_bytes) + 8191) / 4096 * 4096);
    config.cache_memory = w->cache_memory;
    hw_media_init(&w->media, &config);
    w_enable_queue(w);
}

static struct world *w_new(uint64_t cache_bytes)
{
    struct world *w = calloc(1, sizeof(*w));

    w->dram = calloc(1, W_DRAM_BYTES);
    backend_ram_init(&w->ram, calloc(1, W_MEDIUM_BYTES),
                     calloc(1, W_MEDIUM_BYTES), W_MEDIUM_BYTES);
    w->ram.done = w_io_done;
    w->ram.ctx = &w->media;
    w_power_on(w, cache_bytes);
    return w;
}

static void w_free(struct world *w)
{
    free(w->dram);
    free(w->ram.written);
    free(w->ram.stable);
    free(w->cache_memory);
    free(w);
}

/* Write a command into the ring.  The engine sees it at the next w_kick(). */
static void w_put(struct world *w, const struct cmd *cmd)
{
    uint8_t *slot =
        w->dram + W_CMD + (w->cmd_pi & (W_RING - 1)) * MEDIA_CMD_LEN;
    bool has_data =
        cmd->opcode == MEDIA_CMD_READ || cmd->opcode == MEDIA_CMD_WRITE;
    uint32_t shift = w->media.regs.block_shift;
    uint32_t pieces = cmd->pieces != 0 ? cmd->pieces : has_data;
    uint32_t len = cmd->piece_len != 0 ? cmd->piece_len : cmd->count << shift;
    uint8_t *piece = slot + MEDIA_CMD_PIECE;

    memset(slot, 0, MEDIA_CMD_LEN);
    slot[MEDIA_CMD_OPCODE] = cmd->opcode;
    slot[MEDIA_CMD_FLAGS] = cmd->flags;
    put_le16(slot + MEDIA_CMD_PIECES, (uint16_t)pieces);
    put_le32(slot + MEDIA_CMD_COUNT, cmd->count);
    put_le64(slot + MEDIA_CMD_COOKIE, cmd->cookie);
    put_le64(slot + MEDIA_CMD_LBA, cmd->lba);
    if (cmd->flags & MEDIA_CMD_LIST_FLAG) {
        put_le64(slot + MEDIA_CMD_LIST, TEST_DRAM_BASE + W_LIST);
        piece = w->dram + W_LIST;
    }
    for (uint32_t i = 0; i < pieces; i++, piece += MEDIA_PIECE_LEN) {
        put_le64(piece + MEDIA_PIECE_ADDR,
                 TEST_DRAM_BASE + cmd->buf + (uint64_t)i * len);
        put_le32(piece + MEDIA_PIECE_LENGTH, len);
    }
    put_le32(slot + MEDIA_CMD_TAG, cmd->tag);
    w->cmd_pi++;
}

/* Run the deferred work, and take the completions that firmware would see. */
static void w_settle(struct world *w)
{
    while (w->env.deferred) {
        w->env.deferred = false;
        hw_media_run(&w->media);
    }
    for (;;) {
        uint8_t *cqe =
            w->dram + W_CQ + (w->cq_ci & (W_RING - 1)) * QUEUE_CQE_LEN;
        uint8_t phase = (w->cq_ci & W_RING) == 0;

        if ((cqe[QUEUE_CQE_FLAGS] & QUEUE_CQE_PHASE) != phase) {
            break;
        }
        ASSERT(w->num_done < W_DONE_MAX);
        w->done[w->num_done++] = (struct done){
            .cookie = get_le64(cqe + QUEUE_CQE_COOKIE),
            .status = cqe[QUEUE_CQE_STATUS],
        };
        w->cq_ci++;
        put_le32(w->dram + W_PAGE + QUEUE_PAGE_CQ_CI, w->cq_ci);
    }
}

static void w_kick(struct world *w)
{
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_CMD_PI, w->cmd_pi);
    if (get_le32(w->dram + W_PAGE + QUEUE_PAGE_ASLEEP) ||
        w->media.active_ops == 0) {
        w->kicks++;
        w_write(w, A_QUEUE_KICK, 1);
    }
    w_settle(w);
}

/* End all requests to the medium, oldest first. */
static inline void w_finish(struct world *w)
{
    w_settle(w);
    while (backend_ram_step(&w->ram, 0)) {
        w_settle(w);
    }
}

/*
 * Run one command from start to end.
 * @return its status; 0xff when there was no completion
 */
static inline uint8_t w_do(struct world *w, const struct cmd *cmd)
{
    unsigned int before = w->num_done;

    w_put(w, cmd);
    w_kick(w);
    w_finish(w);
    return w->num_done == before + 1 ? w->done[before].status : 0xff;
}

#endif
