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
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
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
    EssdMgmtChannel channels[HW_MGMT_CHANNELS];
    struct hw_mgmt mgmt;
};

/* The environment of the core. */

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

static void essd_mgmt_run(void *opaque)
{
    EssdMgmtState *s = opaque;

    hw_mgmt_run(&s->mgmt);
}

static void essd_mgmt_timer(void *opaque)
{
    EssdMgmtState *s = opaque;

    hw_mgmt_timer(&s->mgmt);
}

static void essd_mgmt_resumed(void *opaque)
{
    EssdMgmtState *s = opaque;

    qemu_chr_fe_accept_input(&s->channels[HW_MGMT_TRACE].chr);
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

static bool essd_mgmt_read(void *opaque, uint64_t offset, uint32_t *value)
{
    EssdMgmtState *s = opaque;

    return hw_mgmt_read(&s->mgmt, offset, value);
}

static bool essd_mgmt_write(void *opaque, uint64_t offset, uint32_t value)
{
    EssdMgmtState *s = opaque;

    return hw_mgmt_write(&s->mgmt, offset, value);
}

static const EssdCoreOps essd_mgmt_core_ops = {
    .type = TYPE_ESSD_MGMT,
    .size = SOC_MGMT_SIZE,
    .has_dma = true,
    .has_irq = true,
    .read = essd_mgmt_read,
    .write = essd_mgmt_write,
    .run = essd_mgmt_run,
    .timer = essd_mgmt_timer,
    .resumed = essd_mgmt_resumed,
};

/* Creation, reset and migration. */

static void essd_mgmt_reset_hold(Object *obj, ResetType type)
{
    EssdMgmtState *s = ESSD_MGMT(obj);

    essd_core_cancel(&s->core);
    hw_mgmt_reset(&s->mgmt);
}

static void essd_mgmt_realize(DeviceState *dev, Error **errp)
{
    EssdMgmtState *s = ESSD_MGMT(dev);

    if (!essd_core_realize(&s->core, errp)) {
        return;
    }
    hw_mgmt_init(&s->mgmt, &(struct hw_mgmt_config){
                               .env = essd_core_env(&s->core),
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
    essd_core_unrealize(&s->core);
}

static void essd_mgmt_init(Object *obj)
{
    EssdMgmtState *s = ESSD_MGMT(obj);

    essd_core_init(&s->core, SYS_BUS_DEVICE(obj), &essd_mgmt_core_ops, s);
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
