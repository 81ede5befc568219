/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/osdep.h"
#include "essd_core.h"

#include "hw/boards.h"
#include "hw/irq.h"
#include "hw/qdev-core.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/log.h"
#include "system/runstate.h"
#include "trace.h"

struct essd_core_guard essd_core_guard;

/* The environment of the core. */

static void *essd_core_dma(void *ctx, uint64_t addr, uint64_t len)
{
    return essd_core_map(ctx, addr, len, false);
}

static void *essd_core_dma_write(void *ctx, uint64_t addr, uint64_t len)
{
    return essd_core_map(ctx, addr, len, true);
}

static bool essd_core_env_is_dram(void *ctx, uint64_t addr, uint64_t len)
{
    return essd_core_is_dram(ctx, addr, len);
}

uint64_t essd_core_now_ns(void *ctx)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

void essd_core_timer_mod(QEMUTimer *timer, uint64_t deadline_ns)
{
    if (deadline_ns == DEV_NO_DEADLINE) {
        timer_del(timer);
    } else {
        timer_mod_ns(timer, MIN(deadline_ns, (uint64_t)INT64_MAX));
    }
}

static void essd_core_set_timer(void *ctx, uint64_t deadline_ns)
{
    EssdCore *core = ctx;

    essd_core_timer_mod(core->timer, deadline_ns);
}

static void essd_core_set_irq(void *ctx, unsigned int line, bool level)
{
    EssdCore *core = ctx;

    trace_essd_core_irq(core->name, level);
    qemu_set_irq(core->irq, level);
}

static void essd_core_put_off(EssdCore *core)
{
    if (core->ops->thread == ESSD_CORE_DATA) {
        essd_data_queue(&core->work);
    } else {
        qemu_bh_schedule(core->bh);
    }
}

static void essd_core_defer(void *ctx)
{
    if (runstate_is_running()) {
        essd_core_put_off(ctx);
    }
}

struct dev_env essd_core_env(EssdCore *core)
{
    return (struct dev_env){
        .ctx = core,
        .dma = essd_core_dma,
        .dma_write = essd_core_dma_write,
        .is_dram = essd_core_env_is_dram,
        .now_ns = essd_core_now_ns,
        .set_timer = essd_core_set_timer,
        .set_irq = essd_core_set_irq,
        .defer = essd_core_defer,
    };
}

/* When a core runs. */

static void essd_core_run(void *opaque)
{
    EssdCore *core = opaque;

    if (runstate_is_running()) {
        core->ops->run(core->opaque);
    }
}

static void essd_core_timer(void *opaque)
{
    EssdCore *core = opaque;

    trace_essd_core_timer(core->name, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    essd_data_enter();
    core->ops->timer(core->opaque);
    essd_data_leave();
}

void essd_core_cancel(EssdCore *core)
{
    if (core->bh) {
        qemu_bh_cancel(core->bh);
    }
    essd_data_cancel(&core->work);
}

/* Work that was put off while the machine was stopped is done when it
 * continues. */
static void essd_core_vm_change(void *opaque, bool running, RunState state)
{
    EssdCore *core = opaque;
    void (*follow)(void *) = running ? core->ops->resumed : core->ops->stopped;

    if (!running) {
        essd_core_cancel(core);
    }
    if (follow) {
        follow(core->opaque);
    }
    if (running) {
        essd_core_put_off(core);
    }
}

/* Registers. */

static uint64_t essd_core_read(void *opaque, hwaddr offset, unsigned size)
{
    EssdCore *core = opaque;
    uint32_t value;

    if (!core->ops->read(core->opaque, offset, &value)) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "%s: read of offset 0x%" HWADDR_PRIx "\n", core->name,
                      offset);
    }
    trace_essd_core_read(core->name, offset, value);
    return value;
}

static void essd_core_write(void *opaque, hwaddr offset, uint64_t value,
                            unsigned size)
{
    EssdCore *core = opaque;

    trace_essd_core_write(core->name, offset, value);
    essd_data_enter();
    if (!core->ops->write(core->opaque, offset, value)) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "%s: write of 0x%08" PRIx64 " to offset 0x%" HWADDR_PRIx
                      "\n",
                      core->name, value, offset);
    }
    essd_data_leave_write();
}

static const MemoryRegionOps essd_core_mmio_ops = {
    .read = essd_core_read,
    .write = essd_core_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.min_access_size = 4,
    .valid.max_access_size = 4,
    .impl.min_access_size = 4,
    .impl.max_access_size = 4,
};

/* Creation. */

void essd_core_init(EssdCore *core, SysBusDevice *dev, const EssdCoreOps *ops,
                    void *opaque)
{
    core->ops = ops;
    core->opaque = opaque;
    pstrcpy(core->name, sizeof(core->name), ops->type);
    memory_region_init_io(&core->mmio, OBJECT(dev), &essd_core_mmio_ops, core,
                          ops->type, ops->size);
    sysbus_init_mmio(dev, &core->mmio);
    if (ops->has_irq) {
        sysbus_init_irq(dev, &core->irq);
    }
}

/* Use the DRAM that the link names, or the machine's RAM. */
static bool essd_core_find_dram(EssdCore *core, Error **errp)
{
    if (!core->dram) {
        core->dram = MACHINE(qdev_get_machine())->ram;
    }
    if (!core->dram || !memory_region_is_ram(core->dram)) {
        error_setg(errp, "%s: \"dram\" is not RAM", core->ops->type);
        return false;
    }
    core->dram_ptr = memory_region_get_ram_ptr(core->dram);
    core->dram_size = memory_region_size(core->dram);
    essd_core_attach(core);
    return true;
}

bool essd_core_realize(EssdCore *core, Error **errp)
{
    DeviceState *dev = DEVICE(core->mmio.owner);

    if (core->ops->has_dma && !essd_core_find_dram(core, errp)) {
        return false;
    }
    if (core->ops->timer) {
        core->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, essd_core_timer, core);
    }
    if (core->ops->run) {
        core->work = (EssdWork){.run = essd_core_run, .opaque = core};
        core->bh = qemu_bh_new_guarded(essd_core_run, core,
                                       &dev->mem_reentrancy_guard);
        core->vm_change =
            qdev_add_vm_change_state_handler(dev, essd_core_vm_change, core);
    }
    return true;
}

void essd_core_unrealize(EssdCore *core)
{
    if (core->ops->run) {
        qemu_del_vm_change_state_handler(core->vm_change);
        essd_core_cancel(core);
        qemu_bh_delete(core->bh);
    }
    if (core->ops->timer) {
        timer_free(core->timer);
    }
}
