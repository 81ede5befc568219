/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the wrappers of device cores that access DRAM have in common: most
 * functions of the environment of hw-model/core/env.h.
 *
 * A wrapper embeds an EssdCore, which is the ctx of its core's dev_env, and has
 * its own link property "dram" for core.dram.  Everything runs under the big
 * lock.
 */
#ifndef HW_ESSD_CORE_H
#define HW_ESSD_CORE_H

#include "hw/boards.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "system/runstate.h"

#include "hw-model/core/env.h"
#include "hw-model/regs/soc.h"

typedef struct EssdCore {
    QEMUBH *bh; /* calls the core's run function */
    QEMUTimer *timer;
    MemoryRegion *dram;
    uint8_t *dram_ptr;
    uint64_t dram_size;
    /* dram_size, or 0 while a word of a memory has an error: essd_ecc.h. */
    uint64_t direct_size;
    struct hw_ecc *ecc;
    struct EssdCore *next; /* of all cores of the machine */
    bool in_write; /* a register write is running: the work follows it */
    bool run_follows;
} EssdCore;

/* In essd_ecc.c: let error correction know the core. */
void essd_core_attach(EssdCore *core);

/* In essd_ecc.c: as essd_core_map(), but looks for words with errors. */
void *essd_core_map_checked(EssdCore *core, uint64_t addr, uint64_t len,
                            bool is_write);

/* @param is_write  whether the device overwrites all of the bytes */
static inline void *essd_core_map(EssdCore *core, uint64_t addr, uint64_t len,
                                  bool is_write)
{
    uint64_t offset = addr - SOC_DRAM_BASE;

    if (addr < SOC_DRAM_BASE || offset > core->direct_size ||
        len > core->direct_size - offset) {
        return essd_core_map_checked(core, addr, len, is_write);
    }
    return core->dram_ptr + offset;
}

static inline void *essd_core_dma(void *ctx, uint64_t addr, uint64_t len)
{
    return essd_core_map(ctx, addr, len, false);
}

static inline void *essd_core_dma_write(void *ctx, uint64_t addr, uint64_t len)
{
    return essd_core_map(ctx, addr, len, true);
}

static inline bool essd_core_is_dram(void *ctx, uint64_t addr, uint64_t len)
{
    const EssdCore *core = ctx;
    uint64_t offset = addr - SOC_DRAM_BASE;

    return addr >= SOC_DRAM_BASE && offset <= core->dram_size &&
           len <= core->dram_size - offset;
}

/* The virtual clock, whatever `ctx` is. */
static inline uint64_t essd_core_now_ns(void *ctx)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/* Let a timer expire at a deadline of the virtual clock, or never. */
static inline void essd_core_timer_mod(QEMUTimer *timer, uint64_t deadline_ns)
{
    if (deadline_ns == DEV_NO_DEADLINE) {
        timer_del(timer);
    } else {
        timer_mod_ns(timer, MIN(deadline_ns, (uint64_t)INT64_MAX));
    }
}

static inline void essd_core_set_timer(void *ctx, uint64_t deadline_ns)
{
    EssdCore *core = ctx;

    essd_core_timer_mod(core->timer, deadline_ns);
}

static inline void essd_core_defer(void *ctx)
{
    EssdCore *core = ctx;

    if (core->in_write) {
        core->run_follows = true;
    } else if (runstate_is_running()) {
        qemu_bh_schedule(core->bh);
    }
}

/* @param set_irq  finds its wrapper by container_of() */
static inline struct dev_env essd_core_env(
    EssdCore *core, void (*set_irq)(void *ctx, unsigned int line, bool level))
{
    return (struct dev_env){
        .ctx = core,
        .dma = essd_core_dma,
        .dma_write = essd_core_dma_write,
        .is_dram = essd_core_is_dram,
        .now_ns = essd_core_now_ns,
        .set_timer = essd_core_set_timer,
        .set_irq = set_irq,
        .defer = essd_core_defer,
    };
}

/* Use the DRAM that the link names, or the machine's RAM. */
static inline bool essd_core_find_dram(EssdCore *core, const char *type,
                                       Error **errp)
{
    if (!core->dram) {
        core->dram = MACHINE(qdev_get_machine())->ram;
    }
    if (!core->dram || !memory_region_is_ram(core->dram)) {
        error_setg(errp, "%s: \"dram\" is not RAM", type);
        return false;
    }
    core->dram_ptr = memory_region_get_ram_ptr(core->dram);
    core->dram_size = memory_region_size(core->dram);
    essd_core_attach(core);
    return true;
}

/*
 * Called before and after a register write, whose work is done directly after
 * it in the hart's thread instead of in the main loop.
 */
static inline void essd_core_write_begins(EssdCore *core)
{
    core->in_write = true;
}

/* @return whether there is work to do now */
static inline bool essd_core_write_ends(EssdCore *core)
{
    bool run_follows = core->run_follows;

    core->in_write = false;
    core->run_follows = false;
    return run_follows;
}

static inline void essd_core_end(EssdCore *core)
{
    timer_free(core->timer);
    qemu_bh_delete(core->bh);
}

#endif
