/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-i2c: one of the drive's I2C controllers; the core is hw-model/i2c.
 * Reference: docs/hardware/i2c.md
 *
 * QEMU interface:
 *  + sysbus MMIO region 0: the registers of hw-model/regs/i2c.h
 *  + sysbus IRQ 0: level, high while an enabled I2C_IRQ_STATUS bit is set
 *  + an I2C bus with the name of property "bus"; -device puts devices on it
 *  + property "mdio": the pins can carry MDIO; default false
 *  + link "port": the port whose PHY is on the MDIO bus; default none
 *
 * essd-i2c-target is the same controller as other controllers of its bus see
 * it: a device that answers at the addresses which the registers name.
 */
#include "qemu/osdep.h"
#include "essd_i2c.h"

#include "hw/qdev-properties.h"
#include "hw/sysbus.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "trace.h"

#include "essd_core.h"
#include "essd_port.h"
#include "hw-model/i2c/hw_i2c.h"

OBJECT_DECLARE_SIMPLE_TYPE(EssdI2CTarget, ESSD_I2C_TARGET)

struct EssdI2CTarget {
    I2CSlave parent_obj;

    EssdI2CState *controller;
    uint8_t addr; /* of the transfer that starts */
};

struct EssdI2CState {
    SysBusDevice parent_obj;

    EssdCore core;
    char *bus_name;
    bool has_mdio;
    EssdPortState *port;
    I2CBus *bus;
    EssdI2CTarget *target;
    struct hw_i2c i2c;
};

I2CBus *essd_i2c_bus(EssdI2CState *s)
{
    return s->bus;
}

/* The environment of the core. */

static bool essd_i2c_start(void *ctx, uint8_t addr, bool is_read)
{
    EssdI2CState *s = ctx;
    bool acked = i2c_start_transfer(s->bus, addr, is_read) == 0;

    trace_essd_i2c_start(s->bus_name, addr, is_read, acked);
    return acked;
}

static bool essd_i2c_send(void *ctx, uint8_t byte)
{
    EssdI2CState *s = ctx;

    return i2c_send(s->bus, byte) == 0;
}

static uint8_t essd_i2c_receive(void *ctx)
{
    EssdI2CState *s = ctx;

    return i2c_recv(s->bus);
}

static void essd_i2c_nack(void *ctx)
{
    EssdI2CState *s = ctx;

    i2c_nack(s->bus);
}

static void essd_i2c_stop(void *ctx)
{
    EssdI2CState *s = ctx;

    i2c_end_transfer(s->bus);
}

static void essd_i2c_timer(void *opaque)
{
    EssdI2CState *s = opaque;

    hw_i2c_timer(&s->i2c);
}

/* The controller as a target. */

static bool essd_i2c_target_match(I2CSlave *candidate, uint8_t address,
                                  bool broadcast, I2CNodeList *current_devs)
{
    EssdI2CTarget *target = ESSD_I2C_TARGET(candidate);
    I2CNode *node;

    if (broadcast ||
        !hw_i2c_target_matches(&target->controller->i2c, address)) {
        return false;
    }
    target->addr = address;
    node = g_new(struct I2CNode, 1);
    node->elt = candidate;
    QLIST_INSERT_HEAD(current_devs, node, next);
    return true;
}

static int essd_i2c_target_event(I2CSlave *slave, enum i2c_event event)
{
    EssdI2CTarget *target = ESSD_I2C_TARGET(slave);
    struct hw_i2c *i2c = &target->controller->i2c;

    switch (event) {
    case I2C_START_RECV:
        return hw_i2c_target_start(i2c, target->addr, true) ? 0 : -1;
    case I2C_START_SEND:
        return hw_i2c_target_start(i2c, target->addr, false) ? 0 : -1;
    case I2C_FINISH:
        hw_i2c_target_stop(i2c);
        return 0;
    case I2C_NACK:
        return 0;
    default:
        return -1;
    }
}

static int essd_i2c_target_send(I2CSlave *slave, uint8_t data)
{
    EssdI2CTarget *target = ESSD_I2C_TARGET(slave);

    return hw_i2c_target_send(&target->controller->i2c, data) ? 0 : -1;
}

static uint8_t essd_i2c_target_recv(I2CSlave *slave)
{
    EssdI2CTarget *target = ESSD_I2C_TARGET(slave);

    return hw_i2c_target_receive(&target->controller->i2c);
}

/* Registers. */

static bool essd_i2c_read(void *opaque, uint64_t offset, uint32_t *value)
{
    EssdI2CState *s = opaque;

    return hw_i2c_read(&s->i2c, offset, value);
}

static bool essd_i2c_write(void *opaque, uint64_t offset, uint32_t value)
{
    EssdI2CState *s = opaque;

    return hw_i2c_write(&s->i2c, offset, value);
}

static const EssdCoreOps essd_i2c_core_ops = {
    .type = TYPE_ESSD_I2C,
    .size = SOC_I2C_SIZE,
    .has_irq = true,
    .read = essd_i2c_read,
    .write = essd_i2c_write,
    .timer = essd_i2c_timer,
};

/* Creation, reset and migration. */

static void essd_i2c_reset_hold(Object *obj, ResetType type)
{
    hw_i2c_reset(&ESSD_I2C(obj)->i2c);
}

static void essd_i2c_realize(DeviceState *dev, Error **errp)
{
    EssdI2CState *s = ESSD_I2C(dev);
    DeviceState *target;

    if (s->bus_name == NULL) {
        error_setg(errp, "essd-i2c: \"bus\" is not set");
        return;
    }
    snprintf(s->core.name, sizeof(s->core.name), TYPE_ESSD_I2C " %s",
             s->bus_name);
    if (!essd_core_realize(&s->core, errp)) {
        return;
    }
    s->bus = i2c_init_bus(dev, s->bus_name);
    hw_i2c_init(&s->i2c, &(struct hw_i2c_config){
                             .env = essd_core_env(&s->core),
                             .wires =
                                 {
                                     .ctx = s,
                                     .start = essd_i2c_start,
                                     .send = essd_i2c_send,
                                     .receive = essd_i2c_receive,
                                     .nack = essd_i2c_nack,
                                     .stop = essd_i2c_stop,
                                 },
                             .mdio = s->port ? essd_port_mdio(s->port)
                                             : (struct mdio_bus){0},
                             .has_mdio = s->has_mdio,
                         });
    target = qdev_new(TYPE_ESSD_I2C_TARGET);
    object_property_add_child(OBJECT(dev), "target", OBJECT(target));
    s->target = ESSD_I2C_TARGET(target);
    s->target->controller = s;
    qdev_realize_and_unref(target, BUS(s->bus), errp);
}

static void essd_i2c_unrealize(DeviceState *dev)
{
    essd_core_unrealize(&ESSD_I2C(dev)->core);
}

static void essd_i2c_init(Object *obj)
{
    EssdI2CState *s = ESSD_I2C(obj);

    essd_core_init(&s->core, SYS_BUS_DEVICE(obj), &essd_i2c_core_ops, s);
}

static int essd_i2c_post_load(void *opaque, int version_id)
{
    EssdI2CState *s = opaque;

    return hw_i2c_loaded(&s->i2c) ? 0 : -EINVAL;
}

static const VMStateDescription essd_i2c_mail_vmstate = {
    .name = "essd-i2c/mail",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]){
        VMSTATE_UINT16(len, struct hw_i2c_mail),
        VMSTATE_UINT8_ARRAY(bytes, struct hw_i2c_mail, I2C_BUFFER_BYTES),
        VMSTATE_END_OF_LIST()}};

static const VMStateDescription essd_i2c_vmstate = {
    .name = TYPE_ESSD_I2C,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = essd_i2c_post_load,
    .fields = (const VMStateField[]){
        VMSTATE_UINT32(i2c.state.ctrl, EssdI2CState),
        VMSTATE_UINT32(i2c.state.irq_status, EssdI2CState),
        VMSTATE_UINT32(i2c.state.irq_enable, EssdI2CState),
        VMSTATE_UINT32(i2c.state.speed_khz, EssdI2CState),
        VMSTATE_UINT32(i2c.state.addr, EssdI2CState),
        VMSTATE_UINT32(i2c.state.lengths, EssdI2CState),
        VMSTATE_UINT32(i2c.state.status, EssdI2CState),
        VMSTATE_UINT32(i2c.state.mail_addr, EssdI2CState),
        VMSTATE_UINT32_ARRAY(i2c.state.image_addr, EssdI2CState, I2C_IMAGES),
        VMSTATE_UINT32(i2c.state.mdio, EssdI2CState),
        VMSTATE_UINT64(i2c.state.deadline_ns, EssdI2CState),
        VMSTATE_UINT8_ARRAY(i2c.state.tx, EssdI2CState, I2C_BUFFER_BYTES),
        VMSTATE_UINT8_ARRAY(i2c.state.rx, EssdI2CState, I2C_BUFFER_BYTES),
        VMSTATE_UINT8_2DARRAY(i2c.state.draft, EssdI2CState, I2C_IMAGES,
                              I2C_BUFFER_BYTES),
        VMSTATE_UINT8_2DARRAY(i2c.state.image, EssdI2CState, I2C_IMAGES,
                              I2C_BUFFER_BYTES),
        VMSTATE_UINT8_ARRAY(i2c.state.pointer, EssdI2CState, I2C_IMAGES),
        VMSTATE_UINT32(i2c.state.mail_count, EssdI2CState),
        VMSTATE_STRUCT_ARRAY(i2c.state.mail, EssdI2CState, I2C_MAIL_SLOTS, 1,
                             essd_i2c_mail_vmstate, struct hw_i2c_mail),
        VMSTATE_END_OF_LIST()}};

static const Property essd_i2c_properties[] = {
    DEFINE_PROP_STRING("bus", EssdI2CState, bus_name),
    DEFINE_PROP_BOOL("mdio", EssdI2CState, has_mdio, false),
    DEFINE_PROP_LINK("port", EssdI2CState, port, TYPE_ESSD_PORT,
                     EssdPortState *),
};

static void essd_i2c_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    dc->desc = "I2C controller of the drive";
    dc->realize = essd_i2c_realize;
    dc->unrealize = essd_i2c_unrealize;
    dc->vmsd = &essd_i2c_vmstate;
    dc->user_creatable = false;
    device_class_set_props(dc, essd_i2c_properties);
    rc->phases.hold = essd_i2c_reset_hold;
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static void essd_i2c_target_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    I2CSlaveClass *sc = I2C_SLAVE_CLASS(oc);

    dc->desc = "I2C controller of the drive, as a target";
    dc->user_creatable = false;
    sc->match_and_add = essd_i2c_target_match;
    sc->event = essd_i2c_target_event;
    sc->send = essd_i2c_target_send;
    sc->recv = essd_i2c_target_recv;
}

static const TypeInfo essd_i2c_types[] = {
    {
        .name = TYPE_ESSD_I2C,
        .parent = TYPE_SYS_BUS_DEVICE,
        .instance_size = sizeof(EssdI2CState),
        .instance_init = essd_i2c_init,
        .class_init = essd_i2c_class_init,
    },
    {
        .name = TYPE_ESSD_I2C_TARGET,
        .parent = TYPE_I2C_SLAVE,
        .instance_size = sizeof(EssdI2CTarget),
        .class_init = essd_i2c_target_class_init,
    },
};

DEFINE_TYPES(essd_i2c_types)
