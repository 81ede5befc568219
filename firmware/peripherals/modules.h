/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Ethernet module in a port's cage: who made it, what it measures, and
 * which of its limits are exceeded.  The firmware looks at each cage once
 * a second, so that modules can be inserted and removed at any time.
 *
 * Each change is logged and raised as an event, once.  A read that fails has no
 * effect until MODULE_ATTEMPTS reads have failed in a row.  But if a cage does
 * not acknowledge its address at all, it is taken as empty at once.  A module
 * that changes all the time causes MODULE_BURST reports at once, and after that
 * one in MODULE_PACE_US.  A change that is undone before its report is not
 * reported.
 *
 * Spec: SFF-8472.  Not supported: diagnostics with external calibration.
 */
#ifndef ESSD_PERIPHERALS_MODULES_H
#define ESSD_PERIPHERALS_MODULES_H

#include "firmware/drivers/i2c.h"
#include "firmware/hal/log.h"

enum {
    MODULE_TEXT_LEN = 16,
    MODULE_CHECK_LEN = 32,
    MODULE_EVENT_TEXT_MAX = 191,
    MODULE_PERIOD_US = 1000000,
    MODULE_ATTEMPTS = 3,
    MODULE_AGE_US = 5000000, /* older values are not shown as values */
    MODULE_BURST = 16,
    MODULE_PACE_US = 10 * 1000 * 1000,
};

enum module_state {
    MODULE_ABSENT,     /* No module answers; waits for one. */
    MODULE_IDENTIFIED, /* Its identity is known; its values are read. */
    MODULE_UNREADABLE, /* A module answers, but its identity is damaged. */
    MODULE_STATES,
};

/* Whether the values and limits of an identified module can be used. */
enum module_diagnostics {
    MODULE_DIAGNOSTICS_READ,       /* They are read once a second. */
    MODULE_DIAGNOSTICS_NONE,       /* The module has none. */
    MODULE_DIAGNOSTICS_EXTERNAL,   /* The firmware would calibrate them. */
    MODULE_DIAGNOSTICS_UNANSWERED, /* The module does not send them. */
    MODULE_DIAGNOSTICS_DAMAGED,    /* The checksum of the limits is wrong. */
    MODULE_DIAGNOSTICS_KINDS,
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

/* The number of a limit among all limits of a module. */
#define MODULE_LIMIT(quantity, limit)                                          \
    ((unsigned int)(quantity) * MODULE_LIMITS + (unsigned int)(limit))
#define MODULE_ALL_LIMITS (BIT(MODULE_QUANTITIES * MODULE_LIMITS) - 1)

/* The numbers are in the persistent event log, so they do not change. */
enum module_event_kind {
    MODULE_EVENT_INSERTED = 1,
    MODULE_EVENT_REMOVED = 2,
    MODULE_EVENT_UNREADABLE = 3,
    MODULE_EVENT_READABLE = 4,    /* after MODULE_EVENT_UNREADABLE */
    MODULE_EVENT_EXCEEDED = 5,    /* a limit */
    MODULE_EVENT_RESTORED = 6,    /* the value is within the limit again */
    MODULE_EVENT_DIAGNOSTICS = 7, /* whether they can be used has changed */
    MODULE_EVENT_KINDS,
};

struct module_event {
    enum module_event_kind kind;
    unsigned int port;
    /* What has happened: a sentence of at most MODULE_EVENT_TEXT_MAX
     * characters. */
    const char *text;
    bool has_limit; /* the next four are valid */
    enum module_quantity quantity;
    enum module_limit limit;
    int32_t value; /* in the unit of the quantity, like the next one */
    int32_t limit_value;
};

struct module_config {
    unsigned int port;
    struct i2c *bus;
    struct log *log;
    /* Something has changed, and has already been logged.  May be NULL. */
    void (*raise)(void *ctx, const struct module_event *event);
    void *ctx;
};

/* Code outside of firmware/peripherals only reads this. */
struct module {
    struct module_config config;
    struct i2c_request request;
    enum module_state state;
    bool is_looked_for; /* the first look has ended */
    uint64_t now_us;
    uint64_t next_us;
    uint32_t insertions; /* since the start */
    uint32_t removals;
    /* What is read now: 0 the identity, 1 limits and values. */
    uint8_t memory;
    /* Reads of each memory that have failed in a row, up to MODULE_ATTEMPTS. */
    uint8_t failures[2];
    /* The part of the identity that distinguishes one module from another;
     * known once the module has been read without an error. */
    bool has_id;
    uint8_t id_check[MODULE_CHECK_LEN];
    char vendor[MODULE_TEXT_LEN + 1];
    char part[MODULE_TEXT_LEN + 1];
    char serial[MODULE_TEXT_LEN + 1];
    uint8_t identifier; /* SFF-8024: 03h is an SFP */
    uint8_t compliance; /* SFF-8024: extended specification compliance */
    bool has_flags;     /* the module itself compares values with limits */
    enum module_diagnostics diagnostics;
    bool has_values;    /* the next five are valid */
    uint64_t values_us; /* when the module has sent the values */
    int32_t value[MODULE_QUANTITIES];
    int32_t limit[MODULE_QUANTITIES][MODULE_LIMITS];
    /* BIT(MODULE_LIMIT()) for each limit that can be used: the lower one of
     * a pair must be below the higher one. */
    uint32_t watched;
    uint32_t exceeded; /* BIT(MODULE_LIMIT()) */
    /* What the last report of each kind has said. */
    struct {
        enum module_state state;
        uint32_t insertions;
        enum module_diagnostics diagnostics;
        uint32_t watched;
        uint32_t exceeded;
    } reported;
    uint64_t pace_us; /* when MODULE_BURST reports are possible again */
    bool is_slowed;   /* a line has said that reports wait for this time */
};

void module_init(struct module *module, const struct module_config *config);

/** Start a read if one is due. @return when to call this again */
uint64_t module_step(struct module *module, uint64_t now_us);

/** "temperature", "voltage", "bias", "tx-power", "rx-power". */
const char *module_quantity_name(enum module_quantity quantity);

/** "high-alarm", "low-alarm", "high-warning", "low-warning". */
const char *module_limit_name(enum module_limit limit);

/** "read", "none", "external-calibration", "unanswered", "damaged". */
const char *module_diagnostics_name(enum module_diagnostics diagnostics);

/** "module inserted", and so on. */
const char *module_event_name(enum module_event_kind kind);

/** What kind of module it is, such as "25GBASE-SR". */
const char *module_type(const struct module *module);

#endif
