/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The environment of a device core: all functions that a core may call.  Its
 * owner, a QOM wrapper in hw-model/qemu/ or the native process, provides them.
 *
 * A core is plain C in one execution context: either one thread, or any thread
 * that holds the wrapper's lock.  Register accesses only change registers and
 * call defer(); the work is done by the core's run function, which is never
 * called from inside another call of the core.
 */
#ifndef ESSD_HW_CORE_ENV_H
#define ESSD_HW_CORE_ENV_H

#include "lib/util.h"

#define DEV_NO_DEADLINE UINT64_MAX

struct dev_env {
    void *ctx;

    /**
     * Map DRAM for DMA that reads it, or reads it and changes a part of it.
     *
     * This costs a comparison and an addition; call it for each access.
     *
     * @return a pointer to `len` contiguous bytes at bus address `addr`, valid
     *         until the machine is reset; NULL when any byte of them is not in
     *         DRAM, or has a memory error that cannot be corrected
     *         (docs/hardware/ecc.md)
     */
    void *(*dma)(void *ctx, uint64_t addr, uint64_t len);

    /**
     * As dma(), for DMA that overwrites all of the bytes.  Memory errors of the
     * words that they fill end.  NULL also when a word of which they fill only
     * a part has an error that cannot be corrected.
     */
    void *(*dma_write)(void *ctx, uint64_t addr, uint64_t len);

    /** Whether these bytes are in DRAM.  This does not access them. */
    bool (*is_dram)(void *ctx, uint64_t addr, uint64_t len);

    /*
     * Virtual time.  It never goes back, and stops while the machine is
     * stopped.
     */
    uint64_t (*now_ns)(void *ctx);

    /**
     * Call the core's timer function at `deadline_ns`.  A core has one
     * deadline, which each call replaces; DEV_NO_DEADLINE cancels it.
     */
    void (*set_timer)(void *ctx, uint64_t deadline_ns);

    /* Set the level of interrupt line `line` of this core. */
    void (*set_irq)(void *ctx, unsigned int line, bool level);

    /* Call the core's run function soon, but not from inside this call. */
    void (*defer)(void *ctx);
};

/* Barriers between threads that share rings in DRAM. */
static inline void dev_wmb(void)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void dev_rmb(void)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static inline void dev_mb(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
