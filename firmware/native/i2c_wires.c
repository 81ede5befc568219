/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/native/i2c_wires.h"

#include <string.h>

enum {
    REST_TEMPERATURE_256 = 40 * 256,
    NOTHING = 0xff, /* what the pull-ups of a bus let a reader see */
};

static struct i2c_sensor *sensor_at(struct i2c_wires *wires, uint8_t addr)
{
    for (unsigned int i = 0; i < I2C_WIRES_SENSORS; i++) {
        if (addr != 0 && wires->sensor[i].addr == addr) {
            return &wires->sensor[i];
        }
    }
    return NULL;
}

static bool wires_start(void *ctx, uint8_t addr, bool is_read)
{
    struct i2c_wires *wires = ctx;
    struct i2c_sensor *sensor = sensor_at(wires, addr);

    wires->selected = addr;
    if (sensor != NULL) {
        sensor->next = 0;
        return true;
    }
    if (sfp_module_matches(&wires->module, addr)) {
        sfp_module_start(&wires->module, addr, is_read);
        return true;
    }
    if (addr != 0 && addr == wires->listener.addr && !is_read) {
        wires->listener.len = 0;
        return true;
    }
    wires->selected = 0;
    return false;
}

static bool wires_send(void *ctx, uint8_t byte)
{
    struct i2c_wires *wires = ctx;
    struct i2c_sensor *sensor = sensor_at(wires, wires->selected);

    if (sensor != NULL) {
        sensor->pointer = byte;
        return true;
    }
    if (sfp_module_matches(&wires->module, wires->selected)) {
        return sfp_module_send(&wires->module, byte);
    }
    if (wires->selected == 0 ||
        wires->listener.len == sizeof(wires->listener.bytes)) {
        return false;
    }
    wires->listener.bytes[wires->listener.len++] = byte;
    return true;
}

static uint8_t wires_receive(void *ctx)
{
    struct i2c_wires *wires = ctx;
    struct i2c_sensor *sensor = sensor_at(wires, wires->selected);

    if (sensor != NULL) {
        uint16_t raw = (uint16_t)sensor->temperature_256;

        if (sensor->pointer != 0) {
            return NOTHING;
        }
        return sensor->next++ == 0 ? (uint8_t)(raw >> 8) : (uint8_t)raw;
    }
    if (sfp_module_matches(&wires->module, wires->selected)) {
        return sfp_module_receive(&wires->module);
    }
    return NOTHING;
}

static void wires_nack(void *ctx)
{
    (void)ctx;
}

static void wires_stop(void *ctx)
{
    struct i2c_wires *wires = ctx;

    if (wires->selected != 0 && wires->selected == wires->listener.addr) {
        wires->listener.messages++;
    }
    wires->selected = 0;
}

void i2c_wires_init(struct i2c_wires *wires, unsigned int number)
{
    static const char *const serial[SOC_PORTS] = {"ESSDSFP0", "ESSDSFP1"};

    *wires = (struct i2c_wires){0};
    if (number < SOC_PORTS) {
        sfp_module_init(&wires->module, serial[number]);
    } else {
        wires->sensor[0] = (struct i2c_sensor){
            .addr = SOC_SENSOR_CONTROLLER,
            .temperature_256 = REST_TEMPERATURE_256,
        };
        wires->sensor[1] = (struct i2c_sensor){
            .addr = SOC_SENSOR_MEDIA,
            .temperature_256 = REST_TEMPERATURE_256,
        };
    }
}

struct hw_i2c_wires i2c_wires_ops(struct i2c_wires *wires)
{
    return (struct hw_i2c_wires){
        .ctx = wires,
        .start = wires_start,
        .send = wires_send,
        .receive = wires_receive,
        .nack = wires_nack,
        .stop = wires_stop,
    };
}
