/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-mgmt: the drive's channel for tools; the core is hw-model/mgmt.
 * Reference: docs/hardware/mgmt.md
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/mgmt.h
 *  + sysbus IRQ 0: level, high while an enabled MGMT_IRQ_STATUS bit is set
 *  + property "chardev": the channel of messages, lines of JSON
 *  + property "trace": the channel of trace records
 *  + link "dram": the memory region that DMA reaches; default: the machine's
 *    RAM.  Bus addresses begin at SOC_DRAM_BASE
 *
 * A channel without a chardev has nobody at its far end.  Writes to a chardev
 * do not wait: when it takes no more, the block watches it until it has room.
 *
 * Everything runs under the big lock.
 */
#include "qemu/osdep.h"
#include "essd_mgmt.h"

#include "chardev/char-fe.h"
#include "hw/irq.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/log.h"
#include "qemu/module.h"
#include "system/runstate.h"
#include "trace.h"

#include "essd_core.h"
#include "hw-model/mgmt/hw_mgmt.h"

typedef struct EssdMgmtChannel {
    EssdMgmtState *mgmt;
    enum hw_mgmt_channel number;
    CharBackend chr;
    guint watch; /* 0: no watch */
} EssdMgmtChannel;

struct EssdMgmtState {
    SysBusDevice parent_obj;

    EssdCore core;
    MemoryRegion mmio;
    qemu_irq irq;
    VMChangeStateEntry *vm_change;
    EssdMgmtChannel channels[HW_MGMT_CHANNELS];
    struct hw_mgmt mgmt;
};

/* The environment of the core. */

static void essd_mgmt_set_irq(void *ctx, unsigned int line, bool level)
{
    EssdMgmtState *s = container_of(ctx, EssdMgmtState, core);

    trace_essd_mgmt_irq(level);
    qemu_set_irq(s->irq, level);
}

static gboolean essd_mgmt_writable(void *do_not_use, GIOCondition cond,
                                   void *opaque)
{
    EssdMgmtChannel *channel = opaque;

    channel->watch = 0;
    hw_mgmt_room(&channel->mgmt->mgmt, channel->number);
    return G_SOURCE_REMOVE;
}

static size_t essd_mgmt_send(void *ctx, enum hw_mgmt_channel number,
                             const uint8_t *data, size_t len)
{
    EssdMgmtState *s = ctx;
    EssdMgmtChannel *channel = &s->channels[number];
    int sent = qemu_chr_fe_write(&channel->chr, data, len);

    sent = MAX(sent, 0);
    if (sent < len && channel->watch == 0) {
        channel->watch = qemu_chr_fe_add_watch(
            &channel->chr, G_IO_OUT | G_IO_HUP, essd_mgmt_writable, channel);
    }
    return sent;
}

static void essd_mgmt_input_wanted(void *ctx)
{
    EssdMgmtState *s = ctx;

    qemu_chr_fe_accept_input(&s->channels[HW_MGMT_MESSAGES].chr);
}

static void essd_mgmt_bh(void *opaque)
{
    EssdMgmtState *s = opaque;

    if (runstate_is_running()) {
        hw_mgmt_run(&s->mgmt);
    }
}

static void essd_mgmt_timer(void *opaque)
{
    EssdMgmtState *s = opaque;

    hw_mgmt_timer(&s->mgmt);
}

static void essd_mgmt_vm_change(void *opaque, bool running, RunState state)
{
    EssdMgmtState *s = opaque;

    if (running) {
        qemu_bh_schedule(s->core.bh);
        qemu_chr_fe_accept_input(&s->channels[HW_MGMT_TRACE].chr);
    } else {
        qemu_bh_cancel(s->core.bh);
    }
}

const struct trace *essd_mgmt_trace(EssdMgmtState *s)
{
    return hw_mgmt_trace(&s->mgmt);
}

/* Channels. */

static int essd_mgmt_can_read(void *opaque)
{
    EssdMgmtChannel *channel = opaque;

    if (!runstate_is_running()) {
        return 0; /* DRAM must not change while the machine is stopped */
    }
    return channel->number == HW_MGMT_TRACE
               ? (int)sizeof(uint32_t)
               : (int)hw_mgmt_input_room(&channel->mgmt->mgmt);
}

static void essd_mgmt_receive(void *opaque, const uint8_t *data, int len)
{
    EssdMgmtChannel *channel = opaque;

    hw_mgmt_input(&channel->mgmt->mgmt, channel->number, data, len);
}

static void essd_mgmt_event(void *opaque, QEMUChrEvent event)
{
    EssdMgmtChannel *channel = opaque;

    if (event != CHR_EVENT_OPENED && event != CHR_EVENT_CLOSED) {
        return;
    }
    trace_essd_mgmt_channel(channel->number, event == CHR_EVENT_OPENED);
    if (channel->watch != 0) {
        g_source_remove(channel->watch);
        channel->watch = 0;
    }
    hw_mgmt_opened(&channel->mgmt->mgmt, channel->number,
                   event == CHR_EVENT_OPENED);
}

/* Registers. */

static uint64_t essd_mgmt_read(void *opaque, hwaddr offset, unsigned size)
{
    EssdMgmtState *s = opaque;
    uint32_t value;

    if (!hw_mgmt_read(&s->mgmt, offset, &value)) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-mgmt: read of offset 0x%" HWADDR_PRIx "\n", offset);
    }
    trace_essd_mgmt_read(offset, value);
    return value;
}

static void essd_mgmt_write(void *opaque, hwaddr offset, uint64_t value,
                            unsigned size)
{
    EssdMgmtState *s = opaque;

    trace_essd_mgmt_write(offset, value);
    if (!hw_mgmt_write(&s->mgmt, offset, value)) {
        qemu_log_mask(LOG_GUEST_ERROR,
                      "essd-mgmt: write of 0x%08" PRIx64
                      " to offset 0x%" HWADDR_PRIx "\n",
                      value, offset);
    }
}

static const MemoryRegionOps essd_mgmt_ops = {
    .read = essd_mgmt_read,
    .write = essd_mgmt_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.min_access_size = 4,
    .valid.max_access_size = 4,
    .impl.min_access_size = 4,
    .impl.max_access_size = 4,
};

/* Creation, reset and migration. */

static void essd_mgmt_reset_hold(Object *obj, ResetType type)
{
    EssdMgmtState *s = ESSD_MGMT(obj);

    qemu_bh_cancel(s->core.bh);
    hw_mgmt_reset(&s->mgmt);
}

static void essd_mgmt_realize(DeviceState *dev, Error **errp)
{
    EssdMgmtState *s = ESSD_MGMT(dev);

    if (!essd_core_find_dram(&s->core, TYPE_ESSD_MGMT, errp)) {
        return;
    }
    s->core.bh =
        qemu_bh_new_guarded(essd_mgmt_bh, s, &dev->mem_reentrancy_guard);
    s->core.timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, essd_mgmt_timer, s);
    s->vm_change =
        qdev_add_vm_change_state_handler(dev, essd_mgmt_vm_change, s);
    hw_mgmt_init(&s->mgmt,
                 &(struct hw_mgmt_config){
                     .env = essd_core_env(&s->core, essd_mgmt_set_irq),
                     .send = essd_mgmt_send,
                     .input_wanted = essd_mgmt_input_wanted,
                     .ctx = s,
                 });
    for (unsigned i = 0; i < HW_MGMT_CHANNELS; i++) {
        EssdMgmtChannel *channel = &s->channels[i];

        channel->mgmt = s;
        channel->number = i;
        qemu_chr_fe_set_handlers(&channel->chr, essd_mgmt_can_read,
                                 essd_mgmt_receive, essd_mgmt_event, NULL,
                                 channel, NULL, true);
    }
}

static void essd_mgmt_unrealize(DeviceState *dev)
{
    EssdMgmtState *s = ESSD_MGMT(dev);

    for (unsigned i = 0; i < HW_MGMT_CHANNELS; i++) {
        qemu_chr_fe_deinit(&s->channels[i].chr, false);
    }
    qemu_del_vm_change_state_handler(s->vm_change);
    essd_core_end(&s->core);
}

static void essd_mgmt_init(Object *obj)
{
    EssdMgmtState *s = ESSD_MGMT(obj);

    memory_region_init_io(&s->mmio, obj, &essd_mgmt_ops, s, TYPE_ESSD_MGMT,
                          SOC_MGMT_SIZE);
    sysbus_init_mmio(SYS_BUS_DEVICE(obj), &s->mmio);
    sysbus_init_irq(SYS_BUS_DEVICE(obj), &s->irq);
}

static int essd_mgmt_post_load(void *opaque, int version_id)
{
    EssdMgmtState *s = opaque;

    return hw_mgmt_loaded(&s->mgmt) ? 0 : -EINVAL;
}

static const VMStateDescription essd_mgmt_vmstate = {
    .name = TYPE_ESSD_MGMT,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = essd_mgmt_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32(mgmt.state.ctrl, EssdMgmtState),
        VMSTATE_UINT32(mgmt.state.irq_status, EssdMgmtState),
        VMSTATE_UINT32(mgmt.state.irq_enable, EssdMgmtState),
        VMSTATE_UINT32_ARRAY(mgmt.state.regs, EssdMgmtState, HW_MGMT_LOW_REGS),
        VMSTATE_UINT32(mgmt.state.time_high, EssdMgmtState),
        VMSTATE_UINT32(mgmt.state.in_pi, EssdMgmtState),
        VMSTATE_UINT32(mgmt.state.out_ci, EssdMgmtState),
        VMSTATE_UINT32(mgmt.state.trace_ci, EssdMgmtState),
        VMSTATE_END_OF_LIST()}};

static const Property essd_mgmt_properties[] = {
    DEFINE_PROP_CHR("chardev", EssdMgmtState, channels[HW_MGMT_MESSAGES].chr),
    DEFINE_PROP_CHR("trace", EssdMgmtState, channels[HW_MGMT_TRACE].chr),
    DEFINE_PROP_LINK("dram", EssdMgmtState, core.dram, TYPE_MEMORY_REGION,
                     MemoryRegion *),
};

static void essd_mgmt_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    dc->desc = "Management channel of the drive";
    dc->realize = essd_mgmt_realize;
    dc->unrealize = essd_mgmt_unrealize;
    dc->vmsd = &essd_mgmt_vmstate;
    dc->user_creatable = false;
    device_class_set_props(dc, essd_mgmt_properties);
    rc->phases.hold = essd_mgmt_reset_hold;
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static const TypeInfo essd_mgmt_types[] = {
    {
        .name = TYPE_ESSD_MGMT,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdMgmtState),
        .instance_init = essd_mgmt_init,
        .class_init = essd_mgmt_class_init,
    },
};

DEFINE_TYPES(essd_mgmt_types)
