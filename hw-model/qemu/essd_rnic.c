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
 *  + link "mgmt": the block that gets its trace events; default: none
 *  + links "port0", "port1": the ports, which call the functions of essd_rnic.h
 *  + the TCP offload engine gives it the streams of iWARP, by the same header
 *
 * Everything runs under the big lock, in the threads that essd_data.h names,
 * and only while the machine runs.
 *
 * Not modelled: DMA to anything other than DRAM; dirty logging of writes to
 * DRAM, so a machine must be stopped before it is saved or migrated.
 */
#include "qemu/osdep.h"
#include "essd_rnic.h"

#include "hw/qdev-properties.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "trace.h"

#include "essd_core.h"
#include "essd_faults.h"
#include "essd_mgmt.h"
#include "hw-model/rnic/rnic.h"
#include "net/wire/ddp.h"
#include "net/wire/roce_ext.h"
#include "net/wire/roce_opcode.h"

struct EssdRnicState {
    SysBusDevice parent_obj;

    EssdCore core;
    DeviceState *port[RDMA_PORTS];
    EssdMgmtState *mgmt;
    uint32_t state_size;
    struct rnic rnic;
    struct fault_table *faults;
    struct roce_fault_hook fault_hook;
    struct iwarp_fault_hook iwarp_hook;
    Notifier faults_changed;
};

/* The work of the core. */

static void essd_rnic_run(void *opaque)
{
    EssdRnicState *s = opaque;

    rnic_run(&s->rnic);
}

static void essd_rnic_timer(void *opaque)
{
    EssdRnicState *s = opaque;

    rnic_timer(&s->rnic);
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

/* Streams of iWARP. */

struct rdma_stream_user essd_rnic_stream_user(EssdRnicState *s)
{
    return rnic_stream_user(&s->rnic);
}

void essd_rnic_set_streams(EssdRnicState *s, const struct rdma_streams *streams)
{
    rnic_set_streams(&s->rnic, streams);
}

/* Registers. */

static bool essd_rnic_read(void *opaque, uint64_t offset, uint32_t *value)
{
    EssdRnicState *s = opaque;

    *value = rnic_read(&s->rnic, offset);
    return true;
}

static bool essd_rnic_write(void *opaque, uint64_t offset, uint32_t value)
{
    EssdRnicState *s = opaque;

    return rnic_write(&s->rnic, offset, value);
}

static const EssdCoreOps essd_rnic_core_ops = {
    .type = TYPE_ESSD_RNIC,
    .size = SOC_RNIC_SIZE,
    .has_dma = true,
    .has_irq = true,
    .thread = ESSD_CORE_DATA,
    .read = essd_rnic_read,
    .write = essd_rnic_write,
    .run = essd_rnic_run,
    .timer = essd_rnic_timer,
};

/* Creation, reset and migration. */

static void essd_rnic_reset_hold(Object *obj, ResetType type)
{
    EssdRnicState *s = ESSD_RNIC(obj);

    essd_core_cancel(&s->core);
    rnic_reset(&s->rnic);
}

/* Fault rules: docs/faults.md. */

static enum fault_request essd_rnic_request_kind(uint8_t opcode)
{
    switch (opcode) {
    case RC_READ_REQUEST:
        return FAULT_REQUEST_READ;
    case RC_WRITE_FIRST:
    case RC_WRITE_ONLY:
    case RC_WRITE_ONLY_IMM:
        return FAULT_REQUEST_WRITE;
    default:
        return FAULT_REQUEST_SEND;
    }
}

static uint8_t essd_rnic_judge(void *ctx, uint32_t qpn, uint8_t opcode)
{
    EssdRnicState *s = ctx;
    struct fault_verdict verdict =
        fault_judge_request(s->faults, qpn, essd_rnic_request_kind(opcode));

    switch (verdict.action) {
    case FAULT_NAK:
        return AETH_NAK << 5 | (verdict.argument & 0x1f);
    case FAULT_RNR:
        return AETH_RNR_NAK << 5 | (verdict.argument & 0x1f);
    case FAULT_POWER_CUT:
        essd_faults_power_cut(NULL, verdict.id);
        return 0;
    default:
        return 0;
    }
}

static enum fault_request essd_rnic_iwarp_kind(uint8_t opcode)
{
    switch (opcode) {
    case RDMAP_READ_REQUEST:
        return FAULT_REQUEST_READ;
    case RDMAP_WRITE:
        return FAULT_REQUEST_WRITE;
    default:
        return FAULT_REQUEST_SEND;
    }
}

static int essd_rnic_judge_iwarp(void *ctx, uint32_t qpn, uint8_t opcode)
{
    EssdRnicState *s = ctx;
    struct fault_verdict verdict =
        fault_judge_request(s->faults, qpn, essd_rnic_iwarp_kind(opcode));

    switch (verdict.action) {
    case FAULT_NAK:
        return verdict.argument == AETH_NAK_INVALID_REQUEST ? RDMAP_BAD_OPCODE
               : verdict.argument == AETH_NAK_REMOTE_ACCESS
                   ? RDMAP_PROTECT_ACCESS
                   : RDMAP_CATASTROPHIC;
    case FAULT_RNR:
        return DDP_UNTAGGED_NO_BUFFER;
    case FAULT_POWER_CUT:
        essd_faults_power_cut(NULL, verdict.id);
        return IWARP_EXECUTE;
    default:
        return IWARP_EXECUTE;
    }
}

static bool essd_rnic_judge_fpdu(void *ctx, uint32_t qpn)
{
    EssdRnicState *s = ctx;

    return fault_judge_fpdu(s->faults, qpn);
}

static bool essd_rnic_judge_transfer(void *ctx, uint32_t qpn, bool is_to_dram)
{
    EssdRnicState *s = ctx;

    return fault_judge_transfer(s->faults, qpn,
                                is_to_dram ? FAULT_IN : FAULT_OUT);
}

static void essd_rnic_faults_changed(Notifier *notifier, void *data)
{
    EssdRnicState *s = container_of(notifier, EssdRnicState, faults_changed);

    bool has_rules = fault_table_has(s->faults, FAULT_RDMA);

    rnic_set_faults(&s->rnic, has_rules ? &s->fault_hook : NULL);
    rnic_set_iwarp_faults(&s->rnic, has_rules ? &s->iwarp_hook : NULL);
}

static void essd_rnic_realize(DeviceState *dev, Error **errp)
{
    EssdRnicState *s = ESSD_RNIC(dev);

    if (!essd_core_realize(&s->core, errp)) {
        return;
    }
    rnic_init(&s->rnic,
              &(struct rnic_config){
                  .env = essd_core_env(&s->core),
                  .trace = s->mgmt ? essd_mgmt_trace(s->mgmt) : NULL,
                  .ports = {s->rnic.roce.sinks[0], s->rnic.roce.sinks[1]},
              });
    s->faults = essd_faults_table();
    s->fault_hook = (struct roce_fault_hook){
        .ctx = s,
        .judge = essd_rnic_judge,
        .judge_transfer = essd_rnic_judge_transfer,
    };
    s->iwarp_hook = (struct iwarp_fault_hook){
        .ctx = s,
        .judge = essd_rnic_judge_iwarp,
        .judge_fpdu = essd_rnic_judge_fpdu,
        .judge_transfer = essd_rnic_judge_transfer,
    };
    s->faults_changed.notify = essd_rnic_faults_changed;
    essd_faults_add_notifier(&s->faults_changed);
}

static void essd_rnic_unrealize(DeviceState *dev)
{
    EssdRnicState *s = ESSD_RNIC(dev);

    essd_core_unrealize(&s->core);
    notifier_remove(&s->faults_changed);
}

static void essd_rnic_init(Object *obj)
{
    EssdRnicState *s = ESSD_RNIC(obj);

    s->state_size = sizeof(s->rnic.state);
    essd_core_init(&s->core, SYS_BUS_DEVICE(obj), &essd_rnic_core_ops, s);
}

static int essd_rnic_post_load(void *opaque, int version_id)
{
    EssdRnicState *s = opaque;

    return rnic_state_loaded(&s->rnic) ? 0 : -EINVAL;
}

/*
 * The core's state contains no pointers and no frames, and is checked after
 * loading.  It is saved as raw bytes, for builds with the same layout.
 */
static const VMStateDescription essd_rnic_vmstate = {
    .name = TYPE_ESSD_RNIC,
    .version_id = 5,
    .minimum_version_id = 5,
    .post_load = essd_rnic_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32_EQUAL(state_size, EssdRnicState,
                             "the RNIC's state is laid out differently"),
        VMSTATE_BUFFER_UNSAFE(rnic.state, EssdRnicState, 1,
                              sizeof(struct rnic_state)),
        VMSTATE_END_OF_LIST()}};

static const Property essd_rnic_properties[] = {
    DEFINE_PROP_LINK("dram", EssdRnicState, core.dram, TYPE_MEMORY_REGION,
                     MemoryRegion *),
    DEFINE_PROP_LINK("port0", EssdRnicState, port[0], TYPE_DEVICE,
                     DeviceState *),
    DEFINE_PROP_LINK("mgmt", EssdRnicState, mgmt, TYPE_ESSD_MGMT,
                     EssdMgmtState *),
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
