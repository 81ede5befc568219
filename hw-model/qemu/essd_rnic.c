/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-rnic: the drive's RDMA engine; the core is hw-model/rnic.
 * Reference: docs/hardware/rnic.md
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/rnic.h
 *  + sysbus IRQ 0: level, high while an enabled RNIC_IRQ_STATUS bit is set
 *  + link "dram": the memory region that DMA reaches; default: the machine's
 *    RAM.  Bus addresses begin at SOC_DRAM_BASE
 *  + links "port0", "port1": the ports, which essd_rnic.h ties to it
 *
 * Everything runs under the big lock, and not while the machine is stopped: in
 * the main loop, and what a register write asks for right after that write, in
 * the hart's thread.  That saves waking the main loop for each doorbell.
 *
 * Not modelled: DMA into anything but DRAM; dirty logging of what is written
 * there, so a machine must be stopped before it is saved or migrated.
 */
#include "qemu/osdep.h"
#include "essd_rnic.h"

#include "hw/boards.h"
#include "hw/irq.h"
#include "hw/qdev-properties.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "system/runstate.h"
#include "trace.h"

#include "hw-model/regs/soc.h"
#include "hw-model/rnic/rnic.h"

struct EssdRnicState {
    SysBusDevice parent_obj;

    MemoryRegion mmio;
    qemu_irq irq;
    QEMUBH *bh;
    QEMUTimer *timer;
    VMChangeStateEntry *vm_change;
    MemoryRegion *dram;
    DeviceState *port[RDMA_PORTS];
    uint8_t *dram_ptr;
    uint64_t dram_size;
    uint32_t state_size;
    bool in_write; /* of a register: the work follows it */
    bool run_follows;
    struct rnic rnic;
};

/* The core's world. */

static void *essd_rnic_dma(void *ctx, uint64_t addr, uint64_t len)
{
    EssdRnicState *s = ctx;
    uint64_t offset = addr - SOC_DRAM_BASE;

    if (addr < SOC_DRAM_BASE || offset > s->dram_size ||
        len > s->dram_size - offset) {
        return NULL;
    }
    return s->dram_ptr + offset;
}

static uint64_t essd_rnic_now_ns(void *ctx)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void essd_rnic_set_timer(void *ctx, uint64_t deadline_ns)
{
    EssdRnicState *s = ctx;

    if (deadline_ns == DEV_NO_DEADLINE) {
        timer_del(s->timer);
    } else {
        timer_mod_ns(s->timer, MIN(deadline_ns, (uint64_t)INT64_MAX));
    }
}

static void essd_rnic_set_irq(void *ctx, unsigned int line, bool level)
{
    EssdRnicState *s = ctx;

    trace_essd_rnic_irq(level);
    qemu_set_irq(s->irq, level);
}

static void essd_rnic_defer(void *ctx)
{
    EssdRnicState *s = ctx;

    if (s->in_write) {
        s->run_follows = true;
    } else if (runstate_is_running()) {
        qemu_bh_schedule(s->bh);
    }
}

static void essd_rnic_bh(void *opaque)
{
    EssdRnicState *s = opaque;

    if (runstate_is_running()) {
        rnic_run(&s->rnic);
    }
}

static void essd_rnic_timer(void *opaque)
{
    EssdRnicState *s = opaque;

    trace_essd_rnic_timer(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
    rnic_timer(&s->rnic);
}

/* What was put off while the machine stood still is done when it goes on. */
static void essd_rnic_vm_change(void *opaque, bool running, RunState state)
{
    EssdRnicState *s = opaque;

    if (running) {
        qemu_bh_schedule(s->bh);
    } else {
        qemu_bh_cancel(s->bh);
    }
}

/* Ports. */

void essd_rnic_attach_port(EssdRnicState *s, unsigned port,
                           const struct frame_sink *sink)
{
    assert(port < RDMA_PORTS);
    rnic_attach_port(&s->rnic, port, sink);
}

void essd_rnic_rx(EssdRnicState *s, unsigned port,
                  const struct frame_rx *frames, unsigned n)
{
    trace_essd_rnic_rx(port, n);
    rnic_rx(&s->rnic, port, frames, n);
}

void essd_rnic_port_ready(EssdRnicState *s, unsigned port)
{
    rnic_port_ready(&s->rnic, port);
}

void essd_rnic_link_changed(EssdRnicState *s, unsigned port, bool is_up)
{
    rnic_link_changed(&s->rnic, port, is_up);
}

/* Registers. */

static uint64_t essd_rnic_read(void *opaque, hwaddr offset, unsigned size)
{
    EssdRnicState *s = opaque;
    uint32_t value = rnic_read(&s->rnic, offset);

    trace_essd_rnic_read(offset, value);
    return value;
}

static void essd_rnic_write(void *opaque, hwaddr offset, uint64_t value,
                            unsigned size)
{
    EssdRnicState *s = opaque;

    trace_essd_rnic_write(offset, value);
    s->in_write = true;
    if (!rnic_write(&s->rnic, offset, value)) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-rnic: write of 0x%08" PRIx64
                      " to offset 0x%" HWADDR_PRIx "\n",
                      value, offset);
    }
    s->in_write = false;
    if (s->run_follows) {
        s->run_follows = false;
        essd_rnic_bh(s);
    }
}

static const MemoryRegionOps essd_rnic_ops = {
    .read = essd_rnic_read,
    .write = essd_rnic_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.min_access_size = 4,
    .valid.max_access_size = 4,
    .impl.min_access_size = 4,
    .impl.max_access_size = 4,
};

/* Life. */

static void essd_rnic_reset_hold(Object *obj, ResetType type)
{
    EssdRnicState *s = ESSD_RNIC(obj);

    qemu_bh_cancel(s->bh);
    rnic_reset(&s->rnic);
}

static bool essd_rnic_find_dram(EssdRnicState *s, Error **errp)
{
    if (!s->dram) {
        s->dram = MACHINE(qdev_get_machine())->ram;
    }
    if (!s->dram || !memory_region_is_ram(s->dram)) {
        error_setg(errp, "essd-rnic: \"dram\" is not RAM");
        return false;
    }
    s->dram_ptr = memory_region_get_ram_ptr(s->dram);
    s->dram_size = memory_region_size(s->dram);
    return true;
}

static void essd_rnic_realize(DeviceState *dev, Error **errp)
{
    EssdRnicState *s = ESSD_RNIC(dev);

    if (!essd_rnic_find_dram(s, errp)) {
        return;
    }
    s->bh = qemu_bh_new_guarded(essd_rnic_bh, s, &dev->mem_reentrancy_guard);
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, essd_rnic_timer, s);
    s->vm_change =
        qdev_add_vm_change_state_handler(dev, essd_rnic_vm_change, s);
    rnic_init(&s->rnic,
              &(struct rnic_config){
                  .env =
                      {
                          .ctx = s,
                          .dma = essd_rnic_dma,
                          .now_ns = essd_rnic_now_ns,
                          .set_timer = essd_rnic_set_timer,
                          .set_irq = essd_rnic_set_irq,
                          .defer = essd_rnic_defer,
                      },
                  .ports = {s->rnic.roce.sinks[0], s->rnic.roce.sinks[1]},
              });
}

static void essd_rnic_unrealize(DeviceState *dev)
{
    EssdRnicState *s = ESSD_RNIC(dev);

    qemu_del_vm_change_state_handler(s->vm_change);
    timer_free(s->timer);
    qemu_bh_delete(s->bh);
}

static void essd_rnic_init(Object *obj)
{
    EssdRnicState *s = ESSD_RNIC(obj);

    s->state_size = sizeof(s->rnic.state);
    memory_region_init_io(&s->mmio, obj, &essd_rnic_ops, s, TYPE_ESSD_RNIC,
                          SOC_RNIC_SIZE);
    sysbus_init_mmio(SYS_BUS_DEVICE(obj), &s->mmio);
    sysbus_init_irq(SYS_BUS_DEVICE(obj), &s->irq);
}

static int essd_rnic_post_load(void *opaque, int version_id)
{
    EssdRnicState *s = opaque;

    return rnic_state_loaded(&s->rnic) ? 0 : -EINVAL;
}

/*
 * The core's state has neither pointers nor frames, and is checked after
 * loading: it travels as it is, between builds that lay it out alike.
 */
static const VMStateDescription essd_rnic_vmstate = {
    .name = TYPE_ESSD_RNIC,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = essd_rnic_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32_EQUAL(state_size, EssdRnicState,
                             "the RNIC's state is laid out differently"),
        VMSTATE_BUFFER_UNSAFE(rnic.state, EssdRnicState, 1,
                              sizeof(struct rnic_state)),
        VMSTATE_END_OF_LIST()}};

static const Property essd_rnic_properties[] = {
    DEFINE_PROP_LINK("dram", EssdRnicState, dram, TYPE_MEMORY_REGION,
                     MemoryRegion *),
    DEFINE_PROP_LINK("port0", EssdRnicState, port[0], TYPE_DEVICE,
                     DeviceState *),
    DEFINE_PROP_LINK("port1", EssdRnicState, port[1], TYPE_DEVICE,
                     DeviceState *),
};

static void essd_rnic_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    dc->desc = "RDMA engine of the drive";
    dc->realize = essd_rnic_realize;
    dc->unrealize = essd_rnic_unrealize;
    dc->vmsd = &essd_rnic_vmstate;
    dc->user_creatable = false;
    device_class_set_props(dc, essd_rnic_properties);
    rc->phases.hold = essd_rnic_reset_hold;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo essd_rnic_types[] = {
    {
        .name = TYPE_ESSD_RNIC,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdRnicState),
        .instance_init = essd_rnic_init,
        .class_init = essd_rnic_class_init,
    },
};

DEFINE_TYPES(essd_rnic_types)
