/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the wrappers of device cores have in common: registers, interrupt,
 * timer, the work that is put off, DMA, and which thread does that work.  These
 * are the environment of hw-model/core/env.h.
 *
 * A wrapper embeds an EssdCore and describes its device by an EssdCoreOps.  It
 * calls essd_core_init() when it is created, essd_core_realize() before it
 * initializes its core, essd_core_unrealize(), and essd_core_cancel() in a
 * reset.  A device that does DMA has a link property "dram" for core.dram.
 *
 * Everything runs under the big lock and, timers of the virtual clock and
 * registers apart, only while the machine runs.  Which thread may run a core is
 * said by EssdCoreOps.thread.
 */
#ifndef HW_ESSD_CORE_H
#define HW_ESSD_CORE_H

#include "exec/memory.h"
#include "hw/sysbus.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"

#include "essd_data.h"
#include "hw-model/core/env.h"
#include "hw-model/regs/soc.h"

/* The threads that do the work which a core puts off. */
enum essd_core_thread {
    /* The main loop: a hart that writes a register continues at once. */
    ESSD_CORE_MAIN_LOOP,
    /* The one in whose call the core puts it off, directly after this call: the
     * core belongs to the data path, see essd_data.h. */
    ESSD_CORE_DATA,
};

/* A device; `opaque` is the wrapper that was given to essd_core_init(). */
typedef struct EssdCoreOps {
    const char *type; /* the QOM type */
    uint64_t size;    /* of the registers, in bytes */
    bool has_dma;     /* the device has a link "dram" */
    bool has_irq;     /* the device has one interrupt */
    enum essd_core_thread thread;

    /* Return false for a register that does not exist or refuses the value: it
     * is logged as an error of the firmware.  *value is always set. */
    bool (*read)(void *opaque, uint64_t offset, uint32_t *value);
    bool (*write)(void *opaque, uint64_t offset, uint32_t value);

    /* Do the work that was put off.  NULL: the core puts nothing off. */
    void (*run)(void *opaque);
    /* The core's deadline has come.  NULL: the core has no timer. */
    void (*timer)(void *opaque);
    /* The machine continues, before run(), or has been stopped.  NULL: nothing
     * to do. */
    void (*resumed)(void *opaque);
    void (*stopped)(void *opaque);
} EssdCoreOps;

typedef struct EssdCore {
    const EssdCoreOps *ops;
    void *opaque;
    char name[32]; /* in messages and trace events: the type by default */
    MemoryRegion mmio;
    qemu_irq irq;
    VMChangeStateEntry *vm_change;
    QEMUBH *bh;    /* with ESSD_CORE_MAIN_LOOP */
    EssdWork work; /* with ESSD_CORE_DATA */
    QEMUTimer *timer;
    MemoryRegion *dram;
    uint8_t *dram_ptr;
    uint64_t dram_size;
    /* dram_size, or 0 while a word of a memory has an error: essd_ecc.h. */
    uint64_t direct_size;
    struct hw_ecc *ecc;
    struct EssdCore *next; /* of all cores of the machine */
} EssdCore;

/* Create registers and interrupt.  `ops` must remain. */
void essd_core_init(EssdCore *core, SysBusDevice *dev, const EssdCoreOps *ops,
                    void *opaque);

/* Find the DRAM, and create timer and bottom half.
 * @return false with *errp set if there is no DRAM */
bool essd_core_realize(EssdCore *core, Error **errp);
void essd_core_unrealize(EssdCore *core);

/* Forget the work that was put off. */
void essd_core_cancel(EssdCore *core);

/* The environment of the core, from essd_core_realize() on. */
struct dev_env essd_core_env(EssdCore *core);

/* The virtual clock, whatever `ctx` is. */
uint64_t essd_core_now_ns(void *ctx);

/* Let a timer expire at a deadline of the virtual clock, or never. */
void essd_core_timer_mod(QEMUTimer *timer, uint64_t deadline_ns);

/* In essd_ecc.c: let error correction know the core. */
void essd_core_attach(EssdCore *core);

/* In essd_ecc.c: as essd_core_map(), but looks for words with errors. */
void *essd_core_map_checked(EssdCore *core, uint64_t addr, uint64_t len,
                            bool is_write);

/* DRAM that nothing may access: before a native hart's stack.  Empty without.
 */
extern struct essd_core_guard {
    uint64_t bottom, top; /* bus addresses */
} essd_core_guard;

static inline bool essd_core_is_guarded(uint64_t addr, uint64_t len)
{
    return addr < essd_core_guard.top && (addr >= essd_core_guard.bottom ||
                                          len > essd_core_guard.bottom - addr);
}

/* @param is_write  whether the device overwrites all of the bytes */
static inline void *essd_core_map(EssdCore *core, uint64_t addr, uint64_t len,
                                  bool is_write)
{
    uint64_t offset = addr - SOC_DRAM_BASE;

    if (addr < SOC_DRAM_BASE || offset > core->direct_size ||
        len > core->direct_size - offset || essd_core_is_guarded(addr, len)) {
        return essd_core_map_checked(core, addr, len, is_write);
    }
    return core->dram_ptr + offset;
}

static inline bool essd_core_is_dram(const EssdCore *core, uint64_t addr,
                                     uint64_t len)
{
    uint64_t offset = addr - SOC_DRAM_BASE;

    return addr >= SOC_DRAM_BASE && offset <= core->dram_size &&
           len <= core->dram_size - offset && !essd_core_is_guarded(addr, len);
}

#endif
