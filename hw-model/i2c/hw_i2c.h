/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * I2C controller: it transfers bytes as a controller ("master"), and answers at
 * up to three addresses as a target ("slave").  Two of the drive's three
 * controllers share their pins with MDIO.
 * Reference: docs/hardware/i2c.md
 *
 * A transfer lasts as long as its bits take, and happens at once at the end of
 * this time.  So a bus is never in use between two calls of this core.
 *
 * Not modelled: ten-bit addresses, arbitration lost to another controller in
 * the middle of a transfer, clock stretching, the bus time-out of SMBus.
 */
#ifndef ESSD_HW_I2C_H
#define ESSD_HW_I2C_H

#include "hw-model/core/env.h"
#include "hw-model/core/mdio.h"
#include "lib/regfields.h"
#include "hw-model/regs/i2c.h"

/* The wires: what the controller does on its bus. */
struct hw_i2c_wires {
    void *ctx;

    /** START or repeated START. @return whether a target has acknowledged */
    bool (*start)(void *ctx, uint8_t addr, bool is_read);

    /** @return whether the target has acknowledged the byte */
    bool (*send)(void *ctx, uint8_t byte);
    uint8_t (*receive)(void *ctx);

    /** The last byte of a read is not acknowledged. */
    void (*nack)(void *ctx);
    void (*stop)(void *ctx);
};

struct hw_i2c_config {
    struct dev_env env; /* `dma` and `defer` are not used */
    struct hw_i2c_wires wires;
    struct mdio_bus mdio;
    bool has_mdio;
    /* Transfers take no time.  essd-native uses this. */
    bool is_fast;
};

struct hw_i2c_mail {
    uint16_t len;
    uint8_t bytes[I2C_BUFFER_BYTES];
};

/* Saved state. */
struct hw_i2c_state {
    uint32_t ctrl;
    uint32_t irq_status;
    uint32_t irq_enable;
    uint32_t speed_khz;
    uint32_t addr;
    uint32_t lengths;
    uint32_t status;
    uint32_t mail_addr;
    uint32_t image_addr[I2C_IMAGES];
    uint32_t mdio;
    uint64_t deadline_ns; /* end of the running transfer; valid if BUSY */
    uint8_t tx[I2C_BUFFER_BYTES];
    uint8_t rx[I2C_BUFFER_BYTES];
    uint8_t draft[I2C_IMAGES][I2C_BUFFER_BYTES]; /* what firmware writes */
    uint8_t image[I2C_IMAGES][I2C_BUFFER_BYTES]; /* what the bus reads */
    uint8_t pointer[I2C_IMAGES]; /* where the next read of the image begins */
    uint32_t mail_count;
    struct hw_i2c_mail mail[I2C_MAIL_SLOTS]; /* the oldest one first */
};

struct hw_i2c {
    struct hw_i2c_config config;
    struct hw_i2c_state state;
    /* The transfer in which this block is the target. */
    uint8_t target_addr;
    bool is_target_read;
    bool has_pointer;
    uint16_t target_len;
    bool is_mastering; /* the block itself drives the bus */
};

void hw_i2c_init(struct hw_i2c *i2c, const struct hw_i2c_config *config);
void hw_i2c_reset(struct hw_i2c *i2c);

/** @return false when there is no such register; *value is 0 then */
MUST_USE bool hw_i2c_read(struct hw_i2c *i2c, uint32_t offset, uint32_t *value);
MUST_USE bool hw_i2c_write(struct hw_i2c *i2c, uint32_t offset, uint32_t value);

void hw_i2c_timer(struct hw_i2c *i2c);

/** @return false when the state that was loaded is not possible */
MUST_USE bool hw_i2c_loaded(struct hw_i2c *i2c);

/* ---- The block as a target of another controller on the bus. */

/** Whether the block answers at this address now. */
bool hw_i2c_target_matches(const struct hw_i2c *i2c, uint8_t addr);

/** @return whether the address is acknowledged */
MUST_USE bool hw_i2c_target_start(struct hw_i2c *i2c, uint8_t addr,
                                  bool is_read);
MUST_USE bool hw_i2c_target_send(struct hw_i2c *i2c, uint8_t byte);
uint8_t hw_i2c_target_receive(struct hw_i2c *i2c);
void hw_i2c_target_stop(struct hw_i2c *i2c);

#endif
