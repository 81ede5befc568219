/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests about modules, sensors and the BMC: docs/management.md. */
#include "firmware/requests/mgmt_requests.h"

#include "firmware/bmc/bmc.h"
#include "firmware/peripherals/modules.h"
#include "firmware/peripherals/sensors.h"
#include "firmware/requests/parts.h"
#include "hw-model/regs/soc.h"

/* Temperatures may be below 0 degrees Celsius, so they are sent in kelvin. */
enum { ZERO_CELSIUS_MK = 273150 };

static uint64_t millikelvin_of(int32_t temperature_256)
{
    int64_t thousandths = (int64_t)temperature_256 * 1000 / 256;

    return (uint64_t)(thousandths + ZERO_CELSIUS_MK);
}

/* A value of a module in whole units: millikelvin, microvolts, microamperes,
 * nanowatts. */
static uint64_t module_units(unsigned int quantity, int32_t value)
{
    if (quantity == MODULE_TEMPERATURE) {
        return millikelvin_of(value);
    }
    return (uint64_t)value * (quantity == MODULE_BIAS ? 2 : 100);
}

static void put_values(struct json *out, const struct module *module)
{
    json_begin_object(out, "values");
    for (unsigned int i = 0; i < MODULE_QUANTITIES; i++) {
        json_begin_object(out, module_quantity_name((enum module_quantity)i));
        json_number(out, "value", module_units(i, module->value[i]));
        for (unsigned int k = 0; k < MODULE_LIMITS; k++) {
            if (module->watched & BIT(MODULE_LIMIT(i, k))) {
                json_number(out, module_limit_name((enum module_limit)k),
                            module_units(i, module->limit[i][k]));
            }
        }
        json_begin_array(out, "exceeded");
        for (unsigned int k = 0; k < MODULE_LIMITS; k++) {
            if (module->exceeded & BIT(MODULE_LIMIT(i, k))) {
                json_string(out, NULL, module_limit_name((enum module_limit)k));
            }
        }
        json_end_array(out);
        json_end_object(out);
    }
    json_end_object(out);
}

static void put_module(struct json *out, const struct module *module)
{
    static const char *const states[MODULE_STATES] = {
        [MODULE_ABSENT] = "absent",
        [MODULE_IDENTIFIED] = "identified",
        [MODULE_UNREADABLE] = "unreadable",
    };

    json_begin_object(out, NULL);
    json_number(out, "port", module->config.port);
    json_string(out, "state", states[module->state]);
    json_number(out, "insertions", module->insertions);
    json_number(out, "removals", module->removals);
    if (module->state == MODULE_IDENTIFIED) {
        json_string(out, "type", module_type(module));
        json_string(out, "vendor", module->vendor);
        json_string(out, "part", module->part);
        json_string(out, "serial", module->serial);
        json_string(out, "diagnostics",
                    module_diagnostics_name(module->diagnostics));
        if (module->has_values) {
            put_values(out, module);
        }
    }
    json_end_object(out);
}

bool mgmt_modules(void *ctx, const struct json_args *args, struct json *out,
                  struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;

    (void)args;
    (void)refusal;
    json_begin_array(out, "modules");
    for (unsigned int i = 0; i < SOC_PORTS; i++) {
        put_module(out, &parts->modules[i]);
    }
    json_end_array(out);
    return true;
}

bool mgmt_sensors(void *ctx, const struct json_args *args, struct json *out,
                  struct mgmt_refusal *refusal)
{
    const struct request_parts *parts = ctx;
    const struct bmc_counters *bmc = parts->bmc;

    (void)args;
    (void)refusal;
    json_begin_array(out, "sensors");
    for (unsigned int i = 0; i < SENSORS; i++) {
        const struct sensor *sensor = &parts->sensors->sensor[i];

        json_begin_object(out, NULL);
        json_number(out, "address", sensor->request.addr);
        json_bool(out, "answers", sensor->state == SENSOR_WORKS);
        if (sensor->state == SENSOR_WORKS) {
            json_number(out, "millikelvin",
                        millikelvin_of(sensor->temperature_256));
        }
        json_end_object(out);
    }
    json_end_array(out);
    json_begin_object(out, "bmc");
    json_number(out, "requests", bmc->requests);
    json_number(out, "responses", bmc->responses);
    json_number(out, "bad-pec", bmc->bad_pec);
    json_number(out, "bad-packets", bmc->bad_packets);
    json_number(out, "bad-checks", bmc->bad_checks);
    json_number(out, "unsent", bmc->unsent);
    json_end_object(out);
    return true;
}
