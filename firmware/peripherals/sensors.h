/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive's temperature sensors: TMP105 or compatible, on an I2C bus, read
 * once a second.
 * Reference: docs/hardware/i2c.md, "The sensors"
 */
#ifndef ESSD_PERIPHERALS_SENSORS_H
#define ESSD_PERIPHERALS_SENSORS_H

#include "firmware/drivers/i2c.h"
#include "firmware/hal/log.h"

enum {
    SENSORS = 2,
    SENSOR_PERIOD_US = 1000000,
    SENSOR_ATTEMPTS = 3, /* so many failed reads in a row are reported */
};

struct sensors;

/* Treat as opaque. */
struct sensor {
    struct sensors *sensors;
    struct i2c_request request;
    const char *name;
    bool is_known;           /* it has been read at least once */
    bool is_missing;         /* the last SENSOR_ATTEMPTS reads have failed */
    int16_t temperature_256; /* 1/256 degree Celsius */
    uint8_t failures;        /* in a row; stops at SENSOR_ATTEMPTS */
};

/* Treat as opaque. */
struct sensors {
    struct i2c *bus;
    struct log *log;
    uint64_t next_us;
    bool has_changed;
    struct sensor sensor[SENSORS];
};

struct sensors_config {
    struct i2c *bus;
    struct log *log;
    struct {
        uint8_t addr;
        const char *name;
    } sensor[SENSORS];
};

/** Begin to read. `sensors` must not move afterwards. */
void sensors_init(struct sensors *sensors, const struct sensors_config *config);

/** Start reads that are due. @return when to call this again */
uint64_t sensors_step(struct sensors *sensors, uint64_t now_us);

/** Whether a value has changed since the last call. */
bool sensors_take_change(struct sensors *sensors);

/** The temperature of sensor 0 or 1 in kelvin; 0: it is not known. */
uint16_t sensors_kelvin(const struct sensors *sensors, unsigned int number);

/** The composite temperature: that of the hottest sensor; 0: not known. */
uint16_t sensors_composite_kelvin(const struct sensors *sensors);

#endif
