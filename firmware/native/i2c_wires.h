/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The I2C buses of a native machine and what is on them: the same devices as in
 * the QEMU machine.
 *
 * The sensors are the part of a TMP105 that the firmware uses: the temperature
 * register.
 */
#ifndef ESSD_NATIVE_I2C_WIRES_H
#define ESSD_NATIVE_I2C_WIRES_H

#include "hw-model/i2c/hw_i2c.h"
#include "hw-model/regs/soc.h"
#include "hw-model/sfp/sfp_module.h"

enum { I2C_WIRES_SENSORS = 2, I2C_WIRES_MESSAGE_MAX = 256 };

struct i2c_sensor {
    uint8_t addr;            /* 0: there is none on this bus */
    int16_t temperature_256; /* 1/256 degree Celsius */
    uint8_t pointer;
    uint8_t next; /* which byte of the register is read next */
};

/* A BMC, which takes what the drive writes to it. */
struct i2c_listener {
    uint8_t addr; /* 0: there is none on this bus */
    unsigned int messages;
    size_t len; /* of the last message */
    uint8_t bytes[I2C_WIRES_MESSAGE_MAX];
};

/* One bus. */
struct i2c_wires {
    struct i2c_sensor sensor[I2C_WIRES_SENSORS];
    struct sfp_module module; /* absent where there is no cage */
    struct i2c_listener listener;
    uint8_t selected; /* the address of the running transfer; 0: none */
};

/** Put what belongs on bus `number` onto it. */
void i2c_wires_init(struct i2c_wires *wires, unsigned int number);

/** The functions for the controller of the bus.  `wires` must outlive it. */
struct hw_i2c_wires i2c_wires_ops(struct i2c_wires *wires);

#endif
