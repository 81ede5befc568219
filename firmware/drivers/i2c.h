/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver of an I2C controller.  It transfers one request at a time, in the
 * order in which they were queued, and takes messages that other controllers of
 * the bus send to this drive.  A request may also be a frame on MDIO, for which
 * the controller's pins leave I2C: see mdio.h.
 * Reference: docs/hardware/i2c.md
 */
#ifndef ESSD_DRIVERS_I2C_H
#define ESSD_DRIVERS_I2C_H

#include "lib/util.h"

enum { I2C_TRANSFER_MAX = 256, I2C_TARGET_IMAGES = 2 };

enum i2c_outcome {
    I2C_OK,
    I2C_NO_TARGET, /* nobody has acknowledged the address */
    I2C_REFUSED,   /* the target did not acknowledge a byte */
    I2C_FAILED,    /* the controller has refused the request */
};

/* A write, a read, or a write and then a read without STOP between them. */
struct i2c_request {
    uint8_t addr; /* seven bits */
    uint16_t write_len;
    uint16_t read_len;
    uint8_t bytes[I2C_TRANSFER_MAX]; /* to write; then those that were read */
    bool is_mdio;   /* MDIO instead of the above; mdio.h makes such requests */
    uint32_t frame; /* I2C_MDIO: to send; then with the data that was read */

    /** The transfer has ended; the request belongs to the caller again. */
    void (*done)(void *ctx, struct i2c_request *request,
                 enum i2c_outcome outcome);
    void *ctx;
    struct i2c_request *next; /* the driver's */
    bool is_queued;           /* the driver's: not to be queued again yet */
};

struct i2c {
    uintptr_t regs; /* 0: there is no such controller */
    struct i2c_request *first;
    struct i2c_request *last;
};

/**
 * Reset and enable the controller.
 *
 * @return false when there is no controller at `regs`; requests then end with
 *         I2C_NO_TARGET
 */
MUST_USE bool i2c_init(struct i2c *i2c, uintptr_t regs, uint32_t speed_khz);

/** Queue a request.  `done` is called by i2c_poll(), never by this. */
void i2c_submit(struct i2c *i2c, struct i2c_request *request);

/** If the transfer in progress is over, end its request and start the next one.
 * @return whether a transfer has ended */
bool i2c_poll(struct i2c *i2c);

/** Clear the interrupt.  Call i2c_poll() and i2c_take_mail() for its causes. */
void i2c_irq_take(const struct i2c *i2c);

/* ---- The drive as a target. */

/** Take messages that are written to this address. */
void i2c_target_mail(const struct i2c *i2c, uint8_t addr);

/** Answer reads at this address with image 0 or 1, which is read-only. */
void i2c_target_image(const struct i2c *i2c, unsigned int image, uint8_t addr);

/** Publish the 256 bytes of an image, between two transfers. */
void i2c_publish(const struct i2c *i2c, unsigned int image,
                 const uint8_t *bytes);

/**
 * Take the oldest message.
 * @return its length; 0: there is none
 */
size_t i2c_take_mail(const struct i2c *i2c, uint8_t bytes[I2C_TRANSFER_MAX]);

#endif
