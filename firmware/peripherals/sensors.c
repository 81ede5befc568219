/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/peripherals/sensors.h"

#include "lib/bytes.h"

enum {
    TMP105_TEMPERATURE = 0, /* register: 1/256 degree, big-endian */
    TMP105_TEMPERATURE_LEN = 2,
    UNITS_PER_DEGREE = 256,
    ZERO_CELSIUS_K = 273,
};

/* A sensor that fails again and again is reported once. */
static void note_good_read(struct sensor *sensor)
{
    struct sensors *sensors = sensor->sensors;

    sensor->failures = 0;
    if (sensor->has_failed && ++sensor->good_reads == SENSOR_GOOD_READS) {
        sensor->has_failed = false;
        sensors->has_changed = true;
        log_line(sensors->log, "sensors: %s answers again", sensor->name);
    }
}

static void take_temperature(struct sensor *sensor, int16_t temperature_256)
{
    struct sensors *sensors = sensor->sensors;

    if (sensor->state != SENSOR_WORKS ||
        sensor->temperature_256 != temperature_256) {
        sensors->has_changed = true;
    }
    sensor->state = SENSOR_WORKS;
    sensor->temperature_256 = temperature_256;
    sensor->read_us = sensors->now_us;
    note_good_read(sensor);
}

static void note_failure(struct sensor *sensor)
{
    sensor->good_reads = 0;
    if (sensor->failures == SENSOR_ATTEMPTS) {
        return;
    }
    sensor->failures++;
    if (sensor->failures == SENSOR_ATTEMPTS) {
        sensor->state = SENSOR_FAILED;
        sensor->sensors->has_changed = true;
        if (!sensor->has_failed) {
            sensor->has_failed = true;
            log_line(sensor->sensors->log,
                     "sensors: %s does not answer at I2C address %02x; SMART "
                     "and the BMC are told no temperature of it",
                     sensor->name, sensor->request.addr);
        }
    }
}

/* A read may take any time, for example on a bus that is stuck. */
static void forget_old_temperatures(struct sensors *sensors)
{
    for (unsigned int i = 0; i < SENSORS; i++) {
        struct sensor *sensor = &sensors->sensor[i];

        if (sensor->state == SENSOR_WORKS &&
            sensors->now_us - sensor->read_us > SENSOR_AGE_US) {
            sensor->state = SENSOR_NO_DATA;
            sensors->has_changed = true;
            log_line(sensors->log,
                     "sensors: %s has not been read for 5 s; SMART and the BMC "
                     "are told no temperature of it",
                     sensor->name);
        }
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
    sensors->now_us = now_us;
    if (now_us < sensors->next_us) {
        return sensors->next_us;
    }
    forget_old_temperatures(sensors);
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

    return sensor->state == SENSOR_WORKS
               ? (uint16_t)(kelvin_256 / UNITS_PER_DEGREE)
               : 0;
}

uint16_t sensors_composite_kelvin(const struct sensors *sensors)
{
    uint16_t hottest = 0;

    for (unsigned int i = 0; i < SENSORS; i++) {
        hottest = MAX(hottest, sensors_kelvin(sensors, i));
    }
    return hottest;
}

bool sensors_have_failed(const struct sensors *sensors)
{
    for (unsigned int i = 0; i < SENSORS; i++) {
        if (sensors->sensor[i].has_failed) {
            return true;
        }
    }
    return false;
}
