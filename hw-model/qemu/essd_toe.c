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
 *  + link "mgmt": the block that gets its trace events; default: none
 *  + link "rnic": the RDMA engine whose iWARP uses the connections; realized
 *    before this device; default: none
 *
 * Everything runs under the big lock, in the threads that essd_data.h names,
 * and only while the machine runs.
 *
 * Not modelled: DMA to anything other than DRAM; saved connections: those of a
 * loaded machine have ended.
 */
#include "qemu/osdep.h"
#include "essd_toe.h"

#include "hw/qdev-properties.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "trace.h"

#include "essd_core.h"
#include "essd_mgmt.h"
#include "essd_rnic.h"
#include "hw-model/toe/hw_toe.h"

struct EssdToeState {
    SysBusDevice parent_obj;

    EssdCore core;
    EssdMgmtState *mgmt;
    EssdRnicState *rnic;
    uint32_t state_size;
    void *memory;
    struct hw_toe toe;
};

/* The work of the core. */

static void essd_toe_run(void *opaque)
{
    EssdToeState *s = opaque;

    hw_toe_run(&s->toe);
}

static void essd_toe_timer(void *opaque)
{
    EssdToeState *s = opaque;

    hw_toe_timer(&s->toe);
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

static bool essd_toe_read(void *opaque, uint64_t offset, uint32_t *value)
{
    EssdToeState *s = opaque;

    *value = hw_toe_read(&s->toe, offset);
    return true;
}

static bool essd_toe_write(void *opaque, uint64_t offset, uint32_t value)
{
    EssdToeState *s = opaque;

    return hw_toe_write(&s->toe, offset, value);
}

static const EssdCoreOps essd_toe_core_ops = {
    .type = TYPE_ESSD_TOE,
    .size = SOC_TOE_SIZE,
    .has_dma = true,
    .has_irq = true,
    .thread = ESSD_CORE_DATA,
    .read = essd_toe_read,
    .write = essd_toe_write,
    .run = essd_toe_run,
    .timer = essd_toe_timer,
};

/* Creation, reset and migration. */

static void essd_toe_reset_hold(Object *obj, ResetType type)
{
    EssdToeState *s = ESSD_TOE(obj);

    essd_core_cancel(&s->core);
    hw_toe_reset(&s->toe);
}

static void essd_toe_realize(DeviceState *dev, Error **errp)
{
    EssdToeState *s = ESSD_TOE(dev);
    struct hw_toe_config config = {
        .ports = {s->toe.sinks[0], s->toe.sinks[1]},
        .trace = s->mgmt ? essd_mgmt_trace(s->mgmt) : NULL,
        .aead = &record_gcm,
    };
    struct rdma_streams streams;

    if (!essd_core_realize(&s->core, errp)) {
        return;
    }
    s->memory = g_malloc0(hw_toe_memory_bytes());
    config.env = essd_core_env(&s->core);
    config.memory = s->memory;
    if (s->rnic) {
        config.rdma = essd_rnic_stream_user(s->rnic);
    }
    hw_toe_init(&s->toe, &config);
    if (s->rnic) {
        streams = hw_toe_streams(&s->toe);
        essd_rnic_set_streams(s->rnic, &streams);
    }
}

static void essd_toe_unrealize(DeviceState *dev)
{
    EssdToeState *s = ESSD_TOE(dev);

    essd_core_unrealize(&s->core);
    g_free(s->memory);
}

static void essd_toe_init(Object *obj)
{
    EssdToeState *s = ESSD_TOE(obj);

    s->state_size = sizeof(s->toe.state);
    essd_core_init(&s->core, SYS_BUS_DEVICE(obj), &essd_toe_core_ops, s);
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
    .version_id = 2,
    .minimum_version_id = 2,
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
    DEFINE_PROP_LINK("mgmt", EssdToeState, mgmt, TYPE_ESSD_MGMT,
                     EssdMgmtState *),
    DEFINE_PROP_LINK("rnic", EssdToeState, rnic, TYPE_ESSD_RNIC,
                     EssdRnicState *),
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
