/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-toe: the drive's TCP offload engine; the core is hw-model/toe.
 * Reference: docs/hardware/toe.md
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/toe.h
 *  + sysbus IRQ 0: level, high while an enabled TOE_IRQ_STATUS bit is set
 *  + link "dram": the memory region that DMA reaches; default: the machine's
 *    RAM.  Bus addresses begin at SOC_DRAM_BASE
 *
 * Everything runs under the big lock, in the main loop, and only while the
 * machine runs.  The work that a register write starts runs directly after the
 * write, in the hart's thread.
 *
 * Not modelled: DMA to anything other than DRAM; saved connections: those of a
 * loaded machine have ended.
 */
#include "qemu/osdep.h"
#include "essd_toe.h"

#include "hw/irq.h"
#include "hw/qdev-properties.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "system/runstate.h"
#include "trace.h"

#include "essd_core.h"
#include "hw-model/toe/hw_toe.h"

struct EssdToeState {
    SysBusDevice parent_obj;

    EssdCore core;
    MemoryRegion mmio;
    qemu_irq irq;
    VMChangeStateEntry *vm_change;
    uint32_t state_size;
    void *memory;
    struct hw_toe toe;
};

/* The environment of the core. */

static void essd_toe_set_irq(void *ctx, unsigned int line, bool level)
{
    EssdToeState *s = container_of(ctx, EssdToeState, core);

    trace_essd_toe_irq(level);
    qemu_set_irq(s->irq, level);
}

static void essd_toe_bh(void *opaque)
{
    EssdToeState *s = opaque;

    if (runstate_is_running()) {
        hw_toe_run(&s->toe);
    }
}

static void essd_toe_timer(void *opaque)
{
    EssdToeState *s = opaque;

    trace_essd_toe_timer(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    hw_toe_timer(&s->toe);
}

/* Do the work that was put off while the machine was stopped. */
static void essd_toe_vm_change(void *opaque, bool running, RunState state)
{
    EssdToeState *s = opaque;

    if (running) {
        qemu_bh_schedule(s->core.bh);
    } else {
        qemu_bh_cancel(s->core.bh);
    }
}

/* Ports. */

void essd_toe_attach_port(EssdToeState *s, unsigned port,
                          const struct frame_sink *sink)
{
    assert(port < HW_TOE_PORTS);
    hw_toe_attach_port(&s->toe, port, sink);
}

void essd_toe_rx(EssdToeState *s, unsigned port, const struct frame_rx *frames,
                 unsigned n)
{
    trace_essd_toe_rx(port, n);
    hw_toe_rx(&s->toe, port, frames, n);
}

void essd_toe_port_ready(EssdToeState *s, unsigned port)
{
    hw_toe_port_ready(&s->toe, port);
}

/* Registers. */

static uint64_t essd_toe_read(void *opaque, hwaddr offset, unsigned size)
{
    EssdToeState *s = opaque;
    uint32_t value = hw_toe_read(&s->toe, offset);

    trace_essd_toe_read(offset, value);
    return value;
}

static void essd_toe_write(void *opaque, hwaddr offset, uint64_t value,
                           unsigned size)
{
    EssdToeState *s = opaque;

    trace_essd_toe_write(offset, value);
    essd_core_write_begins(&s->core);
    if (!hw_toe_write(&s->toe, offset, value)) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-toe: write of 0x%08" PRIx64
                      " to offset 0x%" HWADDR_PRIx "\n",
                      value, offset);
    }
    if (essd_core_write_ends(&s->core)) {
        essd_toe_bh(s);
    }
}

static const MemoryRegionOps essd_toe_ops = {
    .read = essd_toe_read,
    .write = essd_toe_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.min_access_size = 4,
    .valid.max_access_size = 4,
    .impl.min_access_size = 4,
    .impl.max_access_size = 4,
};

/* Creation, reset and migration. */

static void essd_toe_reset_hold(Object *obj, ResetType type)
{
    EssdToeState *s = ESSD_TOE(obj);

    qemu_bh_cancel(s->core.bh);
    hw_toe_reset(&s->toe);
}

static void essd_toe_realize(DeviceState *dev, Error **errp)
{
    EssdToeState *s = ESSD_TOE(dev);

    if (!essd_core_find_dram(&s->core, TYPE_ESSD_TOE, errp)) {
        return;
    }
    s->core.bh =
        qemu_bh_new_guarded(essd_toe_bh, s, &dev->mem_reentrancy_guard);
    s->core.timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, essd_toe_timer, s);
    s->vm_change = qdev_add_vm_change_state_handler(dev, essd_toe_vm_change, s);
    s->memory = g_malloc0(hw_toe_memory_bytes());
    hw_toe_init(&s->toe, &(struct hw_toe_config){
                             .env = essd_core_env(&s->core, essd_toe_set_irq),
                             .ports = {s->toe.sinks[0], s->toe.sinks[1]},
                             .memory = s->memory,
                         });
}

static void essd_toe_unrealize(DeviceState *dev)
{
    EssdToeState *s = ESSD_TOE(dev);

    qemu_del_vm_change_state_handler(s->vm_change);
    essd_core_end(&s->core);
    g_free(s->memory);
}

static void essd_toe_init(Object *obj)
{
    EssdToeState *s = ESSD_TOE(obj);

    s->state_size = sizeof(s->toe.state);
    memory_region_init_io(&s->mmio, obj, &essd_toe_ops, s, TYPE_ESSD_TOE,
                          SOC_TOE_SIZE);
    sysbus_init_mmio(SYS_BUS_DEVICE(obj), &s->mmio);
    sysbus_init_irq(SYS_BUS_DEVICE(obj), &s->irq);
}

static int essd_toe_post_load(void *opaque, int version_id)
{
    EssdToeState *s = opaque;

    return hw_toe_state_loaded(&s->toe) ? 0 : -EINVAL;
}

/*
 * The core's state contains no pointers and no frames, and is checked after
 * loading.  It is saved as raw bytes, for builds with the same layout.
 */
static const VMStateDescription essd_toe_vmstate = {
    .name = TYPE_ESSD_TOE,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = essd_toe_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32_EQUAL(state_size, EssdToeState,
                             "the TOE's state is laid out differently"),
        VMSTATE_BUFFER_UNSAFE(toe.state, EssdToeState, 1,
                              sizeof(struct hw_toe_state)),
        VMSTATE_END_OF_LIST()}};

static const Property essd_toe_properties[] = {
    DEFINE_PROP_LINK("dram", EssdToeState, core.dram, TYPE_MEMORY_REGION,
                     MemoryRegion *),
};

static void essd_toe_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    dc->desc = "TCP offload engine of the drive";
    dc->realize = essd_toe_realize;
    dc->unrealize = essd_toe_unrealize;
    dc->vmsd = &essd_toe_vmstate;
    dc->user_creatable = false;
    device_class_set_props(dc, essd_toe_properties);
    rc->phases.hold = essd_toe_reset_hold;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo essd_toe_types[] = {
    {
        .name = TYPE_ESSD_TOE,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdToeState),
        .instance_init = essd_toe_init,
        .class_init = essd_toe_class_init,
    },
};

DEFINE_TYPES(essd_toe_types)
