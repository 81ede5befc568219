/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connects a driver to a device core: register accesses go to the core, DRAM is
 * the core's, and every register write is recorded.
 */
#ifndef ESSD_TEST_DRIVER_MODEL_H
#define ESSD_TEST_DRIVER_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/barrier.h"
#include "firmware/hal/dram.h"
#include "firmware/hal/mmio.h"
#include "firmware/hal/relax.h"
#include "tests/unit/hw-model/test_env.h"

enum {
    MODEL_DRAM_BYTES = 8 << 20,
    MODEL_REGS = 0x10000000,
    MODEL_LOG = 256,
};

struct model_write {
    uint32_t offset;
    uint32_t value;
};

struct model {
    struct test_env env;
    uint8_t *dram_base;
    struct dram dram;
    bool (*read)(uint32_t offset, uint32_t *value);
    bool (*write)(uint32_t offset, uint32_t value);
    void (*run)(void);
    bool is_held; /* the core does not run, as if asleep or slow */
    struct model_write log[MODEL_LOG];
    unsigned int num_log;
    unsigned int reads;
};

/* The model is static, because register functions have no context. */
static struct model model;

static void model_settle(void)
{
    while (model.env.deferred && !model.is_held) {
        model.env.deferred = false;
        model.run();
    }
}

static void model_init(void)
{
    /* Rings may be aligned to a page. */
    model = (struct model){.dram_base = aligned_alloc(4096, MODEL_DRAM_BYTES)};
    ASSERT(model.dram_base != NULL);
    memset(model.dram_base, 0, MODEL_DRAM_BYTES);
    dram_init(&model.dram, model.dram_base, MODEL_DRAM_BYTES);
}

static void model_forget_log(void)
{
    model.num_log = 0;
    model.reads = 0;
}

/* Check that the driver has made exactly these writes. */
static inline void model_expect_log(const struct model_write *want,
                                    unsigned int n)
{
    assert_int_equal(model.num_log, n);
    for (unsigned int i = 0; i < n; i++) {
        assert_int_equal(model.log[i].offset, want[i].offset);
        assert_int_equal(model.log[i].value, want[i].value);
    }
}

uint32_t mmio_read32(uintptr_t addr)
{
    uint32_t value = 0;

    model.reads++;
    ASSERT(model.read((uint32_t)(addr - MODEL_REGS), &value));
    return value;
}

void mmio_write32(uintptr_t addr, uint32_t value)
{
    uint32_t offset = (uint32_t)(addr - MODEL_REGS);

    ASSERT(model.num_log < MODEL_LOG);
    model.log[model.num_log++] = (struct model_write){offset, value};
    ASSERT(model.write(offset, value));
    model_settle();
}

uint64_t hal_dma_addr(const void *ptr)
{
    return TEST_DRAM_BASE + (uint64_t)((const uint8_t *)ptr - model.dram_base);
}

void hal_dma_wmb(void)
{
    dev_wmb();
}

void hal_dma_rmb(void)
{
    dev_rmb();
}

void hal_dma_mb(void)
{
    dev_mb();
}

#endif
