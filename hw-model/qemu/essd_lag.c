/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-lag: link aggregation of the drive's ports; the core is hw-model/lag.
 * Reference: docs/hardware/lag.md
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/lag.h
 *  + links "rnic", "toe": the RNIC and the TOE, whose frames pass through this
 *    block
 *
 * Everything runs under the big lock.
 *
 * Not modelled: see the list in the guide.
 */
#include "qemu/osdep.h"
#include "essd_lag.h"

#include "hw/qdev-properties.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "trace.h"

#include "essd_core.h"
#include "essd_rnic.h"
#include "essd_toe.h"
#include "hw-model/lag/hw_lag.h"

struct EssdLagState {
    SysBusDevice parent_obj;

    EssdCore core;
    EssdRnicState *rnic;
    EssdToeState *toe;
    const uint8_t *link_up[HW_LAG_PORTS];
    struct hw_lag lag;
};

/* The environment of the core. */

static void essd_lag_rnic_rx(void *ctx, unsigned port,
                             const struct frame_rx *frames, unsigned n)
{
    EssdLagState *s = ctx;

    essd_rnic_rx(s->rnic, port, frames, n);
}

static void essd_lag_toe_rx(void *ctx, unsigned port,
                            const struct frame_rx *frames, unsigned n)
{
    EssdLagState *s = ctx;

    essd_toe_rx(s->toe, port, frames, n);
}

static void essd_lag_rnic_ready(void *ctx, unsigned port)
{
    EssdLagState *s = ctx;

    essd_rnic_port_ready(s->rnic, port);
    essd_toe_port_ready(s->toe, port);
}

static void essd_lag_rnic_link(void *ctx, unsigned port, bool is_up)
{
    EssdLagState *s = ctx;

    essd_rnic_link_changed(s->rnic, port, is_up);
}

/* Ports. */

void essd_lag_attach_port(EssdLagState *s, unsigned port,
                          const struct frame_sink *sink, const uint8_t *link_up)
{
    assert(port < HW_LAG_PORTS);
    hw_lag_attach(&s->lag, port, sink);
    s->link_up[port] = link_up;
}

void essd_lag_rx(EssdLagState *s, unsigned port, const struct frame_rx *frames,
                 unsigned n)
{
    hw_lag_rx(&s->lag, port, frames, n);
}

void essd_lag_rx_toe(EssdLagState *s, unsigned port,
                     const struct frame_rx *frames, unsigned n)
{
    hw_lag_rx_toe(&s->lag, port, frames, n);
}

void essd_lag_port_ready(EssdLagState *s, unsigned port)
{
    hw_lag_ready(&s->lag, port);
}

void essd_lag_link_changed(EssdLagState *s, unsigned port, bool is_up)
{
    uint32_t before = s->lag.active;

    hw_lag_link(&s->lag, port, is_up);
    trace_essd_lag_link(port, is_up, before, s->lag.active);
}

/* Registers. */

static bool essd_lag_read(void *opaque, uint64_t offset, uint32_t *value)
{
    EssdLagState *s = opaque;

    return hw_lag_read(&s->lag, offset, value);
}

static bool essd_lag_write(void *opaque, uint64_t offset, uint32_t value)
{
    EssdLagState *s = opaque;

    return hw_lag_write(&s->lag, offset, value);
}

static const EssdCoreOps essd_lag_core_ops = {
    .type = TYPE_ESSD_LAG,
    .size = SOC_LAG_SIZE,
    .read = essd_lag_read,
    .write = essd_lag_write,
};

/* Creation, reset and migration. */

static void essd_lag_reset_hold(Object *obj, ResetType type)
{
    hw_lag_reset(&ESSD_LAG(obj)->lag);
}

static void essd_lag_realize(DeviceState *dev, Error **errp)
{
    EssdLagState *s = ESSD_LAG(dev);
    const struct hw_lag_ops ops = {
        .ctx = s,
        .now_ns = essd_core_now_ns,
        .rnic_rx = essd_lag_rnic_rx,
        .toe_rx = essd_lag_toe_rx,
        .rnic_ready = essd_lag_rnic_ready,
        .link_changed = essd_lag_rnic_link,
    };

    if (!s->rnic || !s->toe) {
        error_setg(errp, "essd-lag: a link \"rnic\" or \"toe\" is not set");
        return;
    }
    hw_lag_init(&s->lag, &ops);
    for (unsigned i = 0; i < HW_LAG_PORTS; i++) {
        struct frame_sink sink = hw_lag_sink(&s->lag, i);

        essd_rnic_attach_port(s->rnic, i, &sink);
        essd_toe_attach_port(s->toe, i, &sink);
    }
}

static void essd_lag_init(Object *obj)
{
    EssdLagState *s = ESSD_LAG(obj);

    essd_core_init(&s->core, SYS_BUS_DEVICE(obj), &essd_lag_core_ops, s);
}

/* The ports were loaded before.  Their cables are those of the new machine. */
static int essd_lag_post_load(void *opaque, int version_id)
{
    EssdLagState *s = opaque;

    s->lag.links = 0;
    for (unsigned i = 0; i < HW_LAG_PORTS; i++) {
        if (s->link_up[i] && *s->link_up[i]) {
            s->lag.links |= 1 << i;
        }
    }
    return hw_lag_loaded(&s->lag) ? 0 : -EINVAL;
}

static const VMStateDescription essd_lag_vmstate = {
    .name = TYPE_ESSD_LAG,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = essd_lag_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32(lag.ctrl, EssdLagState),
        VMSTATE_UINT32(lag.members, EssdLagState),
        VMSTATE_UINT32(lag.active, EssdLagState),
        VMSTATE_UINT32(lag.quiet_ms, EssdLagState),
        VMSTATE_UINT32(lag.counter_high, EssdLagState),
        VMSTATE_UINT64_ARRAY(lag.counters, EssdLagState, HW_LAG_COUNTERS),
        VMSTATE_UINT64_ARRAY(lag.heard_ns, EssdLagState, HW_LAG_PORTS),
        VMSTATE_END_OF_LIST()}};

static const Property essd_lag_properties[] = {
    DEFINE_PROP_LINK("rnic", EssdLagState, rnic, TYPE_ESSD_RNIC,
                     EssdRnicState *),
    DEFINE_PROP_LINK("toe", EssdLagState, toe, TYPE_ESSD_TOE, EssdToeState *),
};

static void essd_lag_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    dc->desc = "Link aggregation of the drive's ports";
    dc->realize = essd_lag_realize;
    dc->vmsd = &essd_lag_vmstate;
    dc->user_creatable = false;
    device_class_set_props(dc, essd_lag_properties);
    rc->phases.hold = essd_lag_reset_hold;
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static const TypeInfo essd_lag_types[] = {
    {
        .name = TYPE_ESSD_LAG,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdLagState),
        .instance_init = essd_lag_init,
        .class_init = essd_lag_class_init,
    },
};

DEFINE_TYPES(essd_lag_types)
