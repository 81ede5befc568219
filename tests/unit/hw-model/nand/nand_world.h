/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The NAND controller with a small array whose storage is memory.  The test
 * plays the firmware: it writes commands into the ring of queue 0 itself.
 */
#ifndef ESSD_TEST_NAND_WORLD_H
#define ESSD_TEST_NAND_WORLD_H

#include <stdlib.h>
#include <string.h>

#include "lib/regfields.h"
#include "hw-model/nand/hw_nand.h"
#include "hw-model/nand/nand_ram.h"
#include "hw-model/regs/nand.h"
#include "hw-model/regs/queue.h"
#include "lib/bytes.h"
#include "tests/unit/hw-model/test_env.h"

enum {
    W_PAGE = 0x0,
    W_CMD = 0x1000,
    W_CQ = 0x2000,
    W_LIST = 0x4000,
    W_BUF = 0x10000, /* data buffers, to the end of DRAM */
    W_DRAM_BYTES = 0x80000,
    W_CMD_LOG2 = 4,
    W_COMMANDS = 1 << W_CMD_LOG2,
};

/* The name of a part that is as "slc", but has cache operations. */
#define W_CACHED_SLC "cached slc"

struct nand_world {
    struct hw_nand nand;
    struct nand_ram ram;
    struct test_env env;
    uint8_t *dram;
    void *array_memory;
    struct nand_profile cached_slc;
    uint32_t cq_log2;
    uint32_t cmd_pi;
    uint32_t cq_ci;
};

static inline void w_io_done(void *ctx, uint32_t id, int result)
{
    hw_nand_io_done(ctx, id, result);
}

static inline uint32_t w_read(struct nand_world *w, uint32_t offset)
{
    uint32_t value;

    ASSERT(hw_nand_read(&w->nand, offset, &value));
    return value;
}

static inline void w_write(struct nand_world *w, uint32_t offset,
                           uint32_t value)
{
    ASSERT(hw_nand_write(&w->nand, offset, value));
}

static inline void w_enable_queue(struct nand_world *w)
{
    memset(w->dram, 0, W_LIST);
    w->cmd_pi = 0;
    w->cq_ci = 0;
    w_write(w, A_QUEUE_PAGE_LO, (uint32_t)TEST_DRAM_BASE + W_PAGE);
    w_write(w, A_QUEUE_PAGE_HI, 0);
    w_write(w, A_QUEUE_CMD_LO, (uint32_t)TEST_DRAM_BASE + W_CMD);
    w_write(w, A_QUEUE_CMD_HI, 0);
    w_write(w, A_QUEUE_CQ_LO, (uint32_t)TEST_DRAM_BASE + W_CQ);
    w_write(w, A_QUEUE_CQ_HI, 0);
    w_write(w, A_QUEUE_SIZES, W_CMD_LOG2 | w->cq_log2 << 8);
    w_write(w, A_QUEUE_ENABLE, 1);
    ASSERT(w_read(w, A_QUEUE_ENABLE) == 1);
}

static inline const struct nand_profile *w_profile(struct nand_world *w,
                                                   const char *name)
{
    if (strcmp(name, W_CACHED_SLC) != 0) {
        return nand_profile_find(name);
    }
    w->cached_slc = *nand_profile_find("slc");
    w->cached_slc.read_copy_ns = 500;
    w->cached_slc.program_copy_ns = 700;
    return &w->cached_slc;
}

/* Create an array, and switch the controller on with this environment. */
static inline void w_power_on(struct nand_world *w, const char *profile_name,
                              bool is_realtime, const struct dev_env *env)
{
    const struct nand_profile *profile = w_profile(w, profile_name);
    const struct nand_geometry geometry = {
        .channels = 2,
        .dies = 2,
        .planes = profile->planes,
        .units = profile->units,
        .pages = profile->native.pages,
        .blocks = 2,
        .wordlines = 2,
    };
    const struct hw_nand_config config = {.env = *env,
                                          .is_realtime = is_realtime};
    struct nand_file_failure failure;
    struct nand_file_source source;
    struct nand_layout layout;
    struct nand_file file;
    struct nand_backend backend;

    nand_file_new(&file, profile, &geometry, 1);
    nand_layout(&layout, &geometry);
    nand_ram_init(&w->ram, calloc(1, layout.size_bytes), layout.size_bytes);
    nand_ram_create(&w->ram, &file);
    w->ram.done = w_io_done;
    w->ram.ctx = &w->nand;
    backend = nand_ram_backend(&w->ram);
    w->array_memory =
        aligned_alloc(64, (hw_nand_array_bytes(&geometry) + 63) / 64 * 64);
    source = nand_ram_source(&w->ram);
    hw_nand_init(&w->nand, &config);
    ASSERT(hw_nand_attach(&w->nand, &file, &backend, w->array_memory, &source,
                          &failure));
}

/* The same, with DRAM and with queue 0 enabled. */
static inline struct nand_world *w_new(const char *profile, bool is_realtime,
                                       uint32_t cq_log2)
{
    struct nand_world *w = calloc(1, sizeof(*w));
    struct dev_env env;

    w->cq_log2 = cq_log2;
    w->dram = calloc(1, W_DRAM_BYTES);
    env = test_env_init(&w->env, w->dram, W_DRAM_BYTES);
    w_power_on(w, profile, is_realtime, &env);
    w_enable_queue(w);
    return w;
}

static inline void w_free(struct nand_world *w)
{
    free(w->dram);
    free(w->ram.bytes);
    free(w->array_memory);
    free(w);
}

/* Write a command of 64 bytes into the ring. */
static inline void w_put(struct nand_world *w, const uint8_t *command)
{
    memcpy(w->dram + W_CMD + (w->cmd_pi % W_COMMANDS) * NAND_CMD_LEN, command,
           NAND_CMD_LEN);
    w->cmd_pi++;
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_CMD_PI, w->cmd_pi);
}

static inline void w_run(struct nand_world *w)
{
    if (w->env.deferred) {
        w->env.deferred = false;
        hw_nand_run(&w->nand);
    }
}

/* Do everything that can be done without time. */
static inline void w_settle(struct nand_world *w)
{
    do {
        w_run(w);
    } while (nand_ram_step(&w->ram, 0) || w->env.deferred);
}

/* Let time pass up to the next deadline. @return whether there was one */
static inline bool w_next_deadline(struct nand_world *w)
{
    if (w->env.deadline_ns == DEV_NO_DEADLINE) {
        return false;
    }
    w->env.now_ns = MAX(w->env.now_ns, w->env.deadline_ns);
    w->env.deadline_ns = DEV_NO_DEADLINE;
    hw_nand_timer(&w->nand);
    return true;
}

/*
 * Take the next completion.
 * @return its status; 0xff when there is none
 */
static inline uint8_t w_take(struct nand_world *w, uint64_t *cookie)
{
    uint32_t entries = 1u << w->cq_log2;
    const uint8_t *cqe =
        w->dram + W_CQ + (w->cq_ci % entries) * (size_t)QUEUE_CQE_LEN;
    uint8_t phase = (w->cq_ci & entries) == 0;

    if ((cqe[QUEUE_CQE_FLAGS] & QUEUE_CQE_PHASE) != phase) {
        return 0xff;
    }
    if (cookie != NULL) {
        *cookie = get_le64(cqe + QUEUE_CQE_COOKIE);
    }
    w->cq_ci++;
    put_le32(w->dram + W_PAGE + QUEUE_PAGE_CQ_CI, w->cq_ci);
    return cqe[QUEUE_CQE_STATUS];
}

/* Check that the core's deadline is that of its next timer. */
static inline void w_check_timers(const struct nand_world *w)
{
    const struct hw_nand *nand = &w->nand;
    uint64_t first_ns = DEV_NO_DEADLINE;
    uint32_t armed = 0;

    for (uint32_t i = 0; i < HW_NAND_TIMERS; i++) {
        const struct hw_nand_timer *timer = &nand->timers[i];

        if (timer->heap_at != HW_NAND_NONE) {
            ASSERT(nand->heap[timer->heap_at] == i);
            first_ns = MIN(first_ns, timer->end_ns);
            armed++;
        }
    }
    ASSERT(armed == nand->heap_count);
    ASSERT(armed == 0 || nand->timers[nand->heap[0]].end_ns == first_ns);
    ASSERT(w->env.deadline_ns == first_ns);
}

/* Check that nothing is in progress and that the state can be saved. */
static inline void w_check_quiet(struct nand_world *w)
{
    ASSERT(w->nand.active_ops == 0 && w->nand.heap_count == 0);
    for (uint32_t d = 0; d < HW_NAND_DIES; d++) {
        const struct hw_nand_die *die = &w->nand.dies[d];

        ASSERT(die->suspended == HW_NAND_NONE);
        ASSERT(die->num_reads == 0 && die->reads.head == HW_NAND_NONE);
    }
    for (uint32_t r = 0; r < HW_NAND_REGISTERS; r++) {
        const struct hw_nand_register *reg = &w->nand.registers[r];

        ASSERT(reg->state == HW_DIE_IDLE && !reg->is_ready);
        ASSERT(reg->op == HW_NAND_NONE);
    }
    ASSERT(w->nand.more_reads == 0 && w->nand.more_entries == 0);
    for (uint32_t i = 0; i < HW_NAND_CHANNELS; i++) {
        ASSERT(!w->nand.channels[i].is_busy);
    }
    for (unsigned int q = 0; q < HW_NAND_QUEUES; q++) {
        const struct dev_queue *queue = &w->nand.regs.queues[q];

        /* Each command that was taken has got one completion. */
        ASSERT(w->nand.outstanding[q] == 0);
        ASSERT(!queue->is_on || queue->cq_pi == queue->cmd_ci);
    }
    ASSERT(hw_nand_loaded(&w->nand));
}

/* Stop the machine. */
static inline void w_stop(struct nand_world *w)
{
    hw_nand_quiesce(&w->nand);
    while (!hw_nand_is_quiet(&w->nand)) {
        ASSERT(nand_ram_step(&w->ram, 0));
    }
    w_check_quiet(w);
}

/* Reset the controller, and wait until the reset has ended.  All queues are off
 * then, until w_enable_queue(). */
static inline void w_reset(struct nand_world *w)
{
    w_write(w, A_NAND_CTRL, R_NAND_CTRL_RESET_MASK);
    while (w_read(w, A_NAND_CTRL) != 0) {
        ASSERT(nand_ram_step(&w->ram, 0));
    }
    w_check_quiet(w);
}

#endif
