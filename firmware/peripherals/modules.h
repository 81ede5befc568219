/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet module in a port's cage: who made it, what it measures, and
 * which of its limits are exceeded.  The firmware looks for modules once
 * a second, so that they can be inserted and removed at any time.
 * Spec: SFF-8472.
 */
#ifndef ESSD_PERIPHERALS_MODULES_H
#define ESSD_PERIPHERALS_MODULES_H

#include "firmware/drivers/i2c.h"
#include "firmware/hal/log.h"

enum {
    MODULE_TEXT_LEN = 16,
    MODULE_CHECK_LEN = 32,
    MODULE_PERIOD_US = 1000000,
};

enum module_state {
    MODULE_ABSENT,     /* No module answers; waits for one. */
    MODULE_IDENTIFIED, /* Its identity is known; its values are read. */
    MODULE_UNREADABLE, /* A module answers, but its identity is damaged. */
    MODULE_STATES,
};

/* What a module measures, in the order of the specification. */
enum module_quantity {
    MODULE_TEMPERATURE, /* 1/256 degree Celsius, signed */
    MODULE_VOLTAGE,     /* 100 microvolts */
    MODULE_BIAS,        /* 2 microamperes */
    MODULE_TX_POWER,    /* 0.1 microwatts */
    MODULE_RX_POWER,    /* 0.1 microwatts */
    MODULE_QUANTITIES,
};

/* The limits of a quantity, in the order of the specification. */
enum module_limit {
    MODULE_HIGH_ALARM,
    MODULE_LOW_ALARM,
    MODULE_HIGH_WARNING,
    MODULE_LOW_WARNING,
    MODULE_LIMITS,
};

/* Read only outside of modules.c. */
struct module {
    struct i2c *bus;
    struct log *log;
    struct i2c_request request;
    unsigned int port;
    enum module_state state;
    bool is_looked_for; /* the first look has ended */
    uint64_t next_us;
    uint32_t insertions; /* since the start */
    uint32_t removals;
    /* What is read now: 0 the identity, 1 limits and values. */
    uint8_t memory;
    /* The part of the identity that distinguishes one module from another. */
    uint8_t id_check[MODULE_CHECK_LEN];
    char vendor[MODULE_TEXT_LEN + 1];
    char part[MODULE_TEXT_LEN + 1];
    char serial[MODULE_TEXT_LEN + 1];
    uint8_t identifier; /* SFF-8024: 03h is an SFP */
    uint8_t compliance; /* SFF-8024: extended specification compliance */
    bool has_diagnostics;
    bool has_values; /* the next three are valid */
    int32_t value[MODULE_QUANTITIES];
    int32_t limit[MODULE_QUANTITIES][MODULE_LIMITS];
    /* BIT(quantity * MODULE_LIMITS + limit) for each limit that is exceeded. */
    uint32_t exceeded;
};

void module_init(struct module *module, unsigned int port, struct i2c *bus,
                 struct log *log);

/** Start a read if one is due. @return when to call this again */
uint64_t module_step(struct module *module, uint64_t now_us);

/** "temperature", "voltage", "bias", "tx-power", "rx-power". */
const char *module_quantity_name(enum module_quantity quantity);

/** "high-alarm", "low-alarm", "high-warning", "low-warning". */
const char *module_limit_name(enum module_limit limit);

/** What kind of module it is, such as "25GBASE-SR". */
const char *module_type(const struct module *module);

#endif
