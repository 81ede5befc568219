/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment of one device core in a test: DRAM, time, an interrupt line,
 * and deferred work.
 */
#ifndef ESSD_TEST_HW_ENV_H
#define ESSD_TEST_HW_ENV_H

#include "hw-model/core/env.h"
#include "lib/util.h"

#define TEST_DRAM_BASE UINT64_C(0x80000000)

struct test_env {
    uint8_t *dram;
    uint64_t dram_bytes;
    uint64_t now_ns;
    uint64_t deadline_ns;
    bool irq;
    bool deferred;
    uint64_t lost;      /* address of a word that cannot be corrected, or 0 */
    uint64_t dma_bytes; /* that DMA has asked for, to read or to write them */
};

static bool test_env_is_dram(void *ctx, uint64_t addr, uint64_t len)
{
    const struct test_env *env = ctx;
    uint64_t at = addr - TEST_DRAM_BASE;

    return addr >= TEST_DRAM_BASE && at <= env->dram_bytes &&
           len <= env->dram_bytes - at;
}

static void *test_env_dma(void *ctx, uint64_t addr, uint64_t len)
{
    struct test_env *env = ctx;
    bool is_lost = addr < env->lost + 8 && env->lost < addr + len;

    env->dma_bytes += len;
    return test_env_is_dram(ctx, addr, len) && !is_lost
               ? env->dram + (addr - TEST_DRAM_BASE)
               : NULL;
}

/* A write of the whole word makes it right. */
static void *test_env_dma_write(void *ctx, uint64_t addr, uint64_t len)
{
    struct test_env *env = ctx;

    if (test_env_is_dram(ctx, addr, len) && addr <= env->lost &&
        env->lost + 8 <= addr + len) {
        env->lost = 0;
    }
    return test_env_dma(ctx, addr, len);
}

static uint64_t test_env_now(void *ctx)
{
    return ((struct test_env *)ctx)->now_ns;
}

static void test_env_set_timer(void *ctx, uint64_t deadline_ns)
{
    ((struct test_env *)ctx)->deadline_ns = deadline_ns;
}

static void test_env_set_irq(void *ctx, unsigned int line, bool level)
{
    ASSERT(line == 0);
    ((struct test_env *)ctx)->irq = level;
}

static void test_env_defer(void *ctx)
{
    ((struct test_env *)ctx)->deferred = true;
}

static inline struct dev_env test_env_init(struct test_env *env, uint8_t *dram,
                                           uint64_t dram_bytes)
{
    *env = (struct test_env){
        .dram = dram,
        .dram_bytes = dram_bytes,
        .deadline_ns = DEV_NO_DEADLINE,
    };
    return (struct dev_env){
        .ctx = env,
        .dma = test_env_dma,
        .dma_write = test_env_dma_write,
        .is_dram = test_env_is_dram,
        .now_ns = test_env_now,
        .set_timer = test_env_set_timer,
        .set_irq = test_env_set_irq,
        .defer = test_env_defer,
    };
}

#endif
