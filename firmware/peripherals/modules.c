/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/peripherals/modules.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    ADDR_ID = 0x50,          /* A0h in the specification */
    ADDR_DIAGNOSTICS = 0x51, /* A2h */

    /* A0h. */
    ID_IDENTIFIER = 0,
    ID_VENDOR = 20,
    ID_COMPLIANCE = 36,
    ID_PART = 40,
    ID_CHECK_BASE = 63,
    ID_OPTIONS = 64,
    ID_SERIAL = 68,
    ID_DIAGNOSTICS = 92,
    ID_CHECK_EXTENDED = 95,
    ID_LEN = 96,
    DIAGNOSTICS_EXIST = 0x40, /* in ID_DIAGNOSTICS */
    DIAGNOSTICS_CALIBRATED = 0x20,

    /* A2h. */
    DIAG_VALUES = 96,
    DIAG_LEN = 106,

    SFP = 0x03,
};

static const uint8_t module_next[MODULE_STATES] = {
    [MODULE_ABSENT] = BIT(MODULE_IDENTIFIED) | BIT(MODULE_UNREADABLE),
    [MODULE_IDENTIFIED] = BIT(MODULE_ABSENT),
    [MODULE_UNREADABLE] = BIT(MODULE_ABSENT),
};

_Static_assert((int)ID_CHECK_EXTENDED - ID_OPTIONS + 1 == MODULE_CHECK_LEN,
               "bytes with serial number, date and checksum");

/* The only writer of module->state. */
static void module_enter(struct module *module, enum module_state next)
{
    ASSERT(module_next[module->state] & BIT(next));
    module->state = next;
}

const char *module_quantity_name(enum module_quantity quantity)
{
    static const char *const names[MODULE_QUANTITIES] = {
        "temperature", "voltage", "bias", "tx-power", "rx-power",
    };

    return names[quantity];
}

const char *module_limit_name(enum module_limit limit)
{
    static const char *const names[MODULE_LIMITS] = {
        "high-alarm",
        "low-alarm",
        "high-warning",
        "low-warning",
    };

    return names[limit];
}

const char *module_type(const struct module *module)
{
    if (module->identifier != SFP) {
        return "not an SFP";
    }
    switch (module->compliance) {
    case 0x02:
        return "25GBASE-SR";
    case 0x03:
        return "25GBASE-LR";
    case 0x04:
        return "25GBASE-ER";
    case 0x0b:
        return "25GBASE-CR CA-L";
    case 0x0c:
        return "25GBASE-CR CA-S";
    case 0x0d:
        return "25GBASE-CR CA-N";
    default:
        return "SFP";
    }
}

/* Copy text without the spaces that pad it; other characters become '?'. */
static void copy_text(char to[MODULE_TEXT_LEN + 1], const uint8_t *from)
{
    size_t len = MODULE_TEXT_LEN;

    while (len > 0 && (from[len - 1] == ' ' || from[len - 1] == 0)) {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        to[i] = from[i] >= ' ' && from[i] < 0x7f ? (char)from[i] : '?';
    }
    to[len] = '\0';
}

static bool sum_is(const uint8_t *bytes, size_t from, size_t to)
{
    uint8_t sum = 0;

    for (size_t i = from; i < to; i++) {
        sum = (uint8_t)(sum + bytes[i]);
    }
    return sum == bytes[to];
}

static void take_id(struct module *module, const uint8_t *id)
{
    module->insertions++;
    memcpy(module->id_check, id + ID_OPTIONS, sizeof(module->id_check));
    if (!sum_is(id, 0, ID_CHECK_BASE) ||
        !sum_is(id, ID_OPTIONS, ID_CHECK_EXTENDED)) {
        module_enter(module, MODULE_UNREADABLE);
        log_line(module->log,
                 "port %u: the identity of the module has a bad checksum; "
                 "insert another module",
                 module->port);
        return;
    }
    module->identifier = id[ID_IDENTIFIER];
    module->compliance = id[ID_COMPLIANCE];
    module->has_diagnostics =
        (id[ID_DIAGNOSTICS] & (DIAGNOSTICS_EXIST | DIAGNOSTICS_CALIBRATED)) ==
        (DIAGNOSTICS_EXIST | DIAGNOSTICS_CALIBRATED);
    copy_text(module->vendor, id + ID_VENDOR);
    copy_text(module->part, id + ID_PART);
    copy_text(module->serial, id + ID_SERIAL);
    module_enter(module, MODULE_IDENTIFIED);
    log_line(module->log, "port %u: module inserted: %s %s, serial %s, %s",
             module->port, module->vendor, module->part, module->serial,
             module_type(module));
}

/* Temperatures are signed, all other quantities are not. */
static int32_t quantity_at(const uint8_t *bytes, unsigned int quantity)
{
    uint16_t raw = get_be16(bytes);

    return quantity == MODULE_TEMPERATURE ? (int16_t)raw : raw;
}

static bool is_exceeded(int32_t value, int32_t limit, unsigned int kind)
{
    return kind == MODULE_HIGH_ALARM || kind == MODULE_HIGH_WARNING
               ? value > limit
               : value < limit;
}

/* Log each limit that is newly exceeded, or no longer exceeded. */
static void report_limits(struct module *module, uint32_t exceeded)
{
    uint32_t changed = exceeded ^ module->exceeded;

    module->exceeded = exceeded;
    for (unsigned int i = 0; changed != 0; i++, changed >>= 1) {
        if (changed & 1) {
            log_line(
                module->log, "port %u: module: %s %s: %s", module->port,
                module_quantity_name((enum module_quantity)(i / MODULE_LIMITS)),
                module_limit_name((enum module_limit)(i % MODULE_LIMITS)),
                exceeded & BIT(i) ? "the limit is exceeded; check the module, "
                                    "its cooling and its fibre"
                                  : "the value is back within its limit");
        }
    }
}

static void take_diagnostics(struct module *module, const uint8_t *diag)
{
    uint32_t exceeded = 0;

    for (unsigned int i = 0; i < MODULE_QUANTITIES; i++) {
        module->value[i] = quantity_at(diag + DIAG_VALUES + 2 * i, i);
        for (unsigned int k = 0; k < MODULE_LIMITS; k++) {
            module->limit[i][k] =
                quantity_at(diag + 2 * (i * MODULE_LIMITS + k), i);
            if (is_exceeded(module->value[i], module->limit[i][k], k)) {
                exceeded |= BIT(i * MODULE_LIMITS + k);
            }
        }
    }
    module->has_values = true;
    report_limits(module, exceeded);
}

static void take_removal(struct module *module)
{
    if (module->state != MODULE_ABSENT) {
        module->removals++;
        log_line(module->log, "port %u: module removed", module->port);
        module_enter(module, MODULE_ABSENT);
    } else if (!module->is_looked_for) {
        log_line(module->log, "port %u: no module in the cage", module->port);
    }
    module->has_values = false;
    module->exceeded = 0;
}

/* Read the module's identity, or its limits and values. */
static void submit_read(struct module *module, uint8_t memory)
{
    struct i2c_request *request = &module->request;

    module->memory = memory;
    request->addr = memory == 0 ? ADDR_ID : ADDR_DIAGNOSTICS;
    request->bytes[0] = 0;
    request->write_len = 1;
    request->read_len = memory == 0 ? ID_LEN : DIAG_LEN;
    i2c_submit(module->bus, request);
}

static void read_done(void *ctx, struct i2c_request *request,
                      enum i2c_outcome outcome)
{
    struct module *module = ctx;

    if (outcome != I2C_OK) {
        take_removal(module);
    } else if (module->memory == 1) {
        take_diagnostics(module, request->bytes);
    } else {
        /* A module may have been exchanged between two reads. */
        if (module->state != MODULE_ABSENT &&
            memcmp(module->id_check, request->bytes + ID_OPTIONS,
                   sizeof(module->id_check)) != 0) {
            take_removal(module);
        }
        if (module->state == MODULE_ABSENT) {
            take_id(module, request->bytes);
        }
        if (module->state == MODULE_IDENTIFIED && module->has_diagnostics) {
            submit_read(module, 1);
        }
    }
    module->is_looked_for = true;
}

void module_init(struct module *module, unsigned int port, struct i2c *bus,
                 struct log *log)
{
    *module = (struct module){.bus = bus, .log = log, .port = port};
    module->request.done = read_done;
    module->request.ctx = module;
}

uint64_t module_step(struct module *module, uint64_t now_us)
{
    if (now_us < module->next_us) {
        return module->next_us;
    }
    module->next_us = now_us + MODULE_PERIOD_US;
    if (!module->request.is_queued) {
        submit_read(module, 0);
    }
    return module->next_us;
}
