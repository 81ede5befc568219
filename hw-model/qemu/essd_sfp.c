/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-sfp: an SFP28 module with diagnostics; the core is hw-model/sfp.
 * Reference: docs/hardware/i2c.md, "The modules"
 *
 * QEMU interface (I2C device at 50h and 51h):
 *  + "present": the module is in its cage; false: no address answers
 *  + "vendor", "part", "serial": texts of at most 16 characters
 *  + "temperature": thousandths of a degree Celsius
 *  + "voltage": microvolts; "bias": microamperes
 *  + "tx-power", "rx-power": nanowatts
 *
 * All of them can be set while the machine runs, and are saved with it.  The
 * modules of the machine's ports have types of their own, so that -global can
 * set the properties of one of them: -global essd-module1.present=off.
 */
#include "qemu/osdep.h"
#include "essd_i2c.h"

#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/module.h"
#include "trace.h"

#include "hw-model/sfp/sfp_module.h"

OBJECT_DECLARE_SIMPLE_TYPE(EssdSfpState, ESSD_SFP)

struct EssdSfpState {
    I2CSlave parent_obj;

    struct sfp_module module;
};

/* The quantities as properties: value = unit * property / per_unit. */
static const struct quantity_property {
    const char *name;
    int64_t numerator;
    int64_t denominator;
} quantities[SFP_QUANTITIES] = {
    [SFP_TEMPERATURE] = {"temperature", 256, 1000},
    [SFP_VOLTAGE] = {"voltage", 1, 100},
    [SFP_BIAS] = {"bias", 1, 2},
    [SFP_TX_POWER] = {"tx-power", 1, 100},
    [SFP_RX_POWER] = {"rx-power", 1, 100},
};

static bool essd_sfp_match(I2CSlave *candidate, uint8_t address, bool broadcast,
                           I2CNodeList *current_devs)
{
    EssdSfpState *s = ESSD_SFP(candidate);
    I2CNode *node;

    if (broadcast || !sfp_module_matches(&s->module, address)) {
        return false;
    }
    s->module.selected = address == SFP_ADDR_DIAGNOSTICS;
    node = g_new(struct I2CNode, 1);
    node->elt = candidate;
    QLIST_INSERT_HEAD(current_devs, node, next);
    return true;
}

static int essd_sfp_event(I2CSlave *slave, enum i2c_event event)
{
    EssdSfpState *s = ESSD_SFP(slave);
    uint8_t addr = SFP_ADDR_ID + s->module.selected;

    if (event == I2C_START_SEND || event == I2C_START_RECV) {
        sfp_module_start(&s->module, addr, event == I2C_START_RECV);
    }
    return 0;
}

static int essd_sfp_send(I2CSlave *slave, uint8_t data)
{
    return sfp_module_send(&ESSD_SFP(slave)->module, data) ? 0 : -1;
}

static uint8_t essd_sfp_recv(I2CSlave *slave)
{
    return sfp_module_receive(&ESSD_SFP(slave)->module);
}

/* Convert a property to the module's unit; halves are rounded away from 0, so
 * that what get_quantity() returns stands for the same value. */
static int64_t module_value(const struct quantity_property *quantity,
                            int64_t value)
{
    int64_t half = quantity->denominator / 2;

    return (value * quantity->numerator + (value < 0 ? -half : half)) /
           quantity->denominator;
}

static void get_quantity(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    const struct quantity_property *quantity = opaque;
    int64_t value = ESSD_SFP(obj)->module.value[quantity - quantities];

    value = value * quantity->denominator / quantity->numerator;
    visit_type_int(v, name, &value, errp);
}

static void set_quantity(Object *obj, Visitor *v, const char *name,
                         void *opaque, Error **errp)
{
    const struct quantity_property *quantity = opaque;
    enum sfp_quantity number = quantity - quantities;
    int64_t value;

    if (!visit_type_int(v, name, &value, errp)) {
        return;
    }
    if (value > INT32_MAX || value < INT32_MIN ||
        module_value(quantity, value) > sfp_module_max(number) ||
        module_value(quantity, value) < sfp_module_min(number)) {
        error_setg(errp, "essd-sfp: %s %" PRId64 " is out of range", name,
                   value);
        return;
    }
    ESSD_SFP(obj)->module.value[number] = module_value(quantity, value);
}

static bool get_present(Object *obj, Error **errp)
{
    return ESSD_SFP(obj)->module.is_present;
}

static void set_present(Object *obj, bool value, Error **errp)
{
    ESSD_SFP(obj)->module.is_present = value;
    trace_essd_sfp_present(value);
}

static void set_text(char *to, const char *value, Error **errp)
{
    if (strlen(value) > SFP_VENDOR_LEN) {
        error_setg(errp, "essd-sfp: '%s' has more than %d characters", value,
                   SFP_VENDOR_LEN);
        return;
    }
    memset(to, 0, SFP_VENDOR_LEN + 1);
    memcpy(to, value, strlen(value));
}

#define TEXT_PROPERTY(field)                                                   \
    static char *get_##field(Object *obj, Error **errp)                        \
    {                                                                          \
        return g_strdup(ESSD_SFP(obj)->module.field);                          \
    }                                                                          \
    static void set_##field(Object *obj, const char *value, Error **errp)      \
    {                                                                          \
        set_text(ESSD_SFP(obj)->module.field, value, errp);                    \
    }

TEXT_PROPERTY(vendor)
TEXT_PROPERTY(part)
TEXT_PROPERTY(serial)

static void essd_sfp_init(Object *obj)
{
    EssdSfpState *s = ESSD_SFP(obj);

    sfp_module_init(&s->module, "ESSDSFP");
    for (unsigned int i = 0; i < SFP_QUANTITIES; i++) {
        object_property_add(obj, quantities[i].name, "int", get_quantity,
                            set_quantity, NULL, (void *)&quantities[i]);
    }
    object_property_add_bool(obj, "present", get_present, set_present);
    object_property_add_str(obj, "vendor", get_vendor, set_vendor);
    object_property_add_str(obj, "part", get_part, set_part);
    object_property_add_str(obj, "serial", get_serial, set_serial);
}

static int essd_sfp_post_load(void *opaque, int version_id)
{
    EssdSfpState *s = opaque;

    return s->module.selected <= 1 && s->module.vendor[SFP_VENDOR_LEN] == 0 &&
                   s->module.part[SFP_VENDOR_LEN] == 0 &&
                   s->module.serial[SFP_VENDOR_LEN] == 0
               ? 0
               : -EINVAL;
}

#define SFP_TEXT(field)                                                        \
    VMSTATE_BUFFER_UNSAFE(module.field, EssdSfpState, 1, SFP_VENDOR_LEN + 1)

static const VMStateDescription essd_sfp_vmstate = {
    .name = TYPE_ESSD_SFP,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = essd_sfp_post_load,
    .fields = (const VMStateField[]){
        SFP_TEXT(vendor), SFP_TEXT(part), SFP_TEXT(serial),
        VMSTATE_BOOL(module.is_present, EssdSfpState),
        VMSTATE_INT32_ARRAY(module.value, EssdSfpState, SFP_QUANTITIES),
        VMSTATE_UINT8_ARRAY(module.pointer, EssdSfpState, 2),
        VMSTATE_UINT8(module.selected, EssdSfpState),
        VMSTATE_BOOL(module.has_pointer, EssdSfpState), VMSTATE_END_OF_LIST()}};

static void essd_sfp_class_init(ObjectClass *oc, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(oc);
    I2CSlaveClass *sc = I2C_SLAVE_CLASS(oc);

    dc->desc = "SFP28 module with diagnostics";
    dc->vmsd = &essd_sfp_vmstate;
    sc->match_and_add = essd_sfp_match;
    sc->event = essd_sfp_event;
    sc->send = essd_sfp_send;
    sc->recv = essd_sfp_recv;
}

/* The machine creates the modules of its ports. */
static void essd_module_class_init(ObjectClass *oc, void *data)
{
    DEVICE_CLASS(oc)->user_creatable = false;
}

static const TypeInfo essd_sfp_types[] = {
    {
        .name = TYPE_ESSD_SFP,
        .parent = TYPE_I2C_SLAVE,
        .instance_size = sizeof(EssdSfpState),
        .instance_init = essd_sfp_init,
        .class_init = essd_sfp_class_init,
    },
    {
        .name = TYPE_ESSD_MODULE "0",
        .parent = TYPE_ESSD_SFP,
        .class_init = essd_module_class_init,
    },
    {
        .name = TYPE_ESSD_MODULE "1",
        .parent = TYPE_ESSD_SFP,
        .class_init = essd_module_class_init,
    },
};

DEFINE_TYPES(essd_sfp_types)
