/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/peripherals/sensors.h"

#include "lib/bytes.h"

enum {
    TMP105_TEMPERATURE = 0, /* register: 1/256 degree, big-endian */
    TMP105_TEMPERATURE_LEN = 2,
    UNITS_PER_DEGREE = 256,
    ZERO_CELSIUS_K = 273,
};

static void take_temperature(struct sensor *sensor, int16_t temperature_256)
{
    struct sensors *sensors = sensor->sensors;

    if (sensor->is_missing) {
        log_line(sensors->log, "sensors: %s answers again", sensor->name);
    }
    if (!sensor->is_known || sensor->temperature_256 != temperature_256) {
        sensors->has_changed = true;
    }
    sensor->is_known = true;
    sensor->is_missing = false;
    sensor->failures = 0;
    sensor->temperature_256 = temperature_256;
}

/* The last value stays in use while a sensor does not answer. */
static void note_failure(struct sensor *sensor)
{
    if (sensor->failures == SENSOR_ATTEMPTS) {
        return;
    }
    sensor->failures++;
    if (sensor->failures == SENSOR_ATTEMPTS) {
        sensor->is_missing = true;
        log_line(sensor->sensors->log,
                 "sensors: %s does not answer at I2C address %02x; SMART %s",
                 sensor->name, sensor->request.addr,
                 sensor->is_known ? "keeps its last temperature"
                                  : "does without it");
    }
}

static void read_done(void *ctx, struct i2c_request *request,
                      enum i2c_outcome outcome)
{
    if (outcome == I2C_OK) {
        take_temperature(ctx, (int16_t)get_be16(request->bytes));
    } else {
        note_failure(ctx);
    }
}

void sensors_init(struct sensors *sensors, const struct sensors_config *config)
{
    *sensors = (struct sensors){.bus = config->bus, .log = config->log};
    for (unsigned int i = 0; i < SENSORS; i++) {
        struct sensor *sensor = &sensors->sensor[i];

        sensor->sensors = sensors;
        sensor->name = config->sensor[i].name;
        sensor->request.addr = config->sensor[i].addr;
        sensor->request.done = read_done;
        sensor->request.ctx = sensor;
    }
}

uint64_t sensors_step(struct sensors *sensors, uint64_t now_us)
{
    if (now_us < sensors->next_us) {
        return sensors->next_us;
    }
    sensors->next_us = now_us + SENSOR_PERIOD_US;
    for (unsigned int i = 0; i < SENSORS; i++) {
        struct i2c_request *request = &sensors->sensor[i].request;

        if (!request->is_queued) {
            request->bytes[0] = TMP105_TEMPERATURE;
            request->write_len = 1;
            request->read_len = TMP105_TEMPERATURE_LEN;
            i2c_submit(sensors->bus, request);
        }
    }
    return sensors->next_us;
}

bool sensors_take_change(struct sensors *sensors)
{
    bool has_changed = sensors->has_changed;

    sensors->has_changed = false;
    return has_changed;
}

uint16_t sensors_kelvin(const struct sensors *sensors, unsigned int number)
{
    const struct sensor *sensor = &sensors->sensor[number];
    uint32_t kelvin_256 =
        (uint32_t)(sensor->temperature_256 + ZERO_CELSIUS_K * UNITS_PER_DEGREE +
                   UNITS_PER_DEGREE / 2);

    return sensor->is_known ? (uint16_t)(kelvin_256 / UNITS_PER_DEGREE) : 0;
}

uint16_t sensors_composite_kelvin(const struct sensors *sensors)
{
    uint16_t hottest = 0;

    for (unsigned int i = 0; i < SENSORS; i++) {
        hottest = MAX(hottest, sensors_kelvin(sensors, i));
    }
    return hottest;
}
