/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive's temperature sensors: TMP105 or compatible, on an I2C bus, read
 * once a second.  A temperature is used until it is SENSOR_AGE_US old, or until
 * SENSOR_ATTEMPTS reads in a row have failed; then it is not known.
 * Reference: docs/hardware/i2c.md, "The sensors"
 */
#ifndef ESSD_PERIPHERALS_SENSORS_H
#define ESSD_PERIPHERALS_SENSORS_H

#include "firmware/drivers/i2c.h"
#include "firmware/hal/log.h"

enum {
    SENSORS = 2,
    SENSOR_PERIOD_US = 1000000,
    SENSOR_ATTEMPTS = 3,     /* so many failed reads in a row are a failure */
    SENSOR_AGE_US = 5000000, /* NVMe-MI: older data is no data */
    SENSOR_GOOD_READS = 10,  /* so many in a row end a failure */
};

enum sensor_state {
    SENSOR_NO_DATA, /* not read yet, or not read lately; waits for a read */
    SENSOR_WORKS,   /* The temperature is known. */
    SENSOR_FAILED,  /* The last reads have failed; waits for a good one. */
};

struct sensors;

/* Treat as opaque. */
struct sensor {
    struct sensors *sensors;
    struct i2c_request request;
    const char *name;
    enum sensor_state state;
    int16_t temperature_256; /* 1/256 degree Celsius; valid if it works */
    uint64_t read_us;        /* when it was read */
    uint8_t failures;        /* in a row; stops at SENSOR_ATTEMPTS */
    /* It has failed, and has not yet answered SENSOR_GOOD_READS times since. */
    bool has_failed;
    uint8_t good_reads; /* in a row, after a failure */
};

/* Treat as opaque. */
struct sensors {
    struct i2c *bus;
    struct log *log;
    uint64_t now_us;
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

/** Whether a temperature or a state has changed since the last call. */
bool sensors_take_change(struct sensors *sensors);

/** The temperature of sensor 0 or 1 in kelvin; 0: it is not known. */
uint16_t sensors_kelvin(const struct sensors *sensors, unsigned int number);

/** The composite temperature: that of the hottest sensor; 0: not known. */
uint16_t sensors_composite_kelvin(const struct sensors *sensors);

/**
 * Whether a sensor has failed, or has just begun to answer again; the other one
 * may work.
 */
bool sensors_have_failed(const struct sensors *sensors);

#endif
