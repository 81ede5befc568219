/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/peripherals/modules.h"

#include <string.h>

#include "firmware/peripherals/module_limits.h"
#include "firmware/peripherals/module_report.h"

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
    ID_ENHANCED = 93,
    ID_CHECK_EXTENDED = 95,
    ID_LEN = 96,
    DIAGNOSTICS_EXIST = 0x40, /* in ID_DIAGNOSTICS */
    DIAGNOSTICS_CALIBRATED = 0x20,
    DIAGNOSTICS_EXTERNAL = 0x10,
    ENHANCED_FLAGS = 0x80, /* in ID_ENHANCED */

    SFP = 0x03,
};

static const uint8_t module_next[MODULE_STATES] = {
    [MODULE_ABSENT] = BIT(MODULE_IDENTIFIED) | BIT(MODULE_UNREADABLE),
    [MODULE_IDENTIFIED] = BIT(MODULE_ABSENT) | BIT(MODULE_UNREADABLE),
    [MODULE_UNREADABLE] = BIT(MODULE_ABSENT) | BIT(MODULE_IDENTIFIED),
};

_Static_assert((int)ID_CHECK_EXTENDED - ID_OPTIONS + 1 == MODULE_CHECK_LEN,
               "bytes with serial number, date and checksum");

/* The only writer of module->state. */
static void module_enter(struct module *module, enum module_state next)
{
    ASSERT(module_next[module->state] & BIT(next));
    module->state = next;
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

static bool id_is_intact(const uint8_t *id)
{
    return sum_is(id, 0, ID_CHECK_BASE) &&
           sum_is(id, ID_OPTIONS, ID_CHECK_EXTENDED);
}

/* ---- Presence and identity. */

/* Forget the values that were measured. */
static void forget_values(struct module *module)
{
    module->has_values = false;
    module->exceeded = 0;
}

static enum module_diagnostics diagnostics_of(uint8_t byte)
{
    if ((byte & DIAGNOSTICS_EXIST) == 0) {
        return MODULE_DIAGNOSTICS_NONE;
    }
    return (byte & (DIAGNOSTICS_CALIBRATED | DIAGNOSTICS_EXTERNAL)) ==
                   DIAGNOSTICS_CALIBRATED
               ? MODULE_DIAGNOSTICS_READ
               : MODULE_DIAGNOSTICS_EXTERNAL;
}

static void copy_id(struct module *module, const uint8_t *id)
{
    module->has_id = true;
    memcpy(module->id_check, id + ID_OPTIONS, sizeof(module->id_check));
    module->identifier = id[ID_IDENTIFIER];
    module->compliance = id[ID_COMPLIANCE];
    module->has_flags = (id[ID_ENHANCED] & ENHANCED_FLAGS) != 0;
    module->diagnostics = diagnostics_of(id[ID_DIAGNOSTICS]);
    copy_text(module->vendor, id + ID_VENDOR);
    copy_text(module->part, id + ID_PART);
    copy_text(module->serial, id + ID_SERIAL);
}

/* A module may have been exchanged between two reads. */
static void take_id(struct module *module, const uint8_t *id)
{
    bool is_other = module->has_id && memcmp(module->id_check, id + ID_OPTIONS,
                                             sizeof(module->id_check)) != 0;

    if (module->state == MODULE_IDENTIFIED && !is_other) {
        return;
    }
    if (module->state != MODULE_ABSENT && is_other) {
        module->removals++;
        module_enter(module, MODULE_ABSENT);
    }
    if (module->state == MODULE_ABSENT) {
        module->insertions++;
    }
    forget_values(module);
    module->failures[1] = 0;
    copy_id(module, id);
    module_enter(module, MODULE_IDENTIFIED);
}

static void take_absence(struct module *module)
{
    if (module->state != MODULE_ABSENT) {
        module->removals++;
        module_enter(module, MODULE_ABSENT);
    } else if (!module->is_looked_for) {
        log_line(module->config.log, "port %u: no module in the cage",
                 module->config.port);
    }
    forget_values(module);
    module->has_id = false;
}

/* Count a read that has failed.  @return whether so many have failed in a row
 * that the failure is reported */
static bool note_failure(struct module *module, uint8_t memory)
{
    if (module->failures[memory] < MODULE_ATTEMPTS) {
        module->failures[memory]++;
    }
    return module->failures[memory] == MODULE_ATTEMPTS;
}

static void take_bad_id(struct module *module)
{
    if (!note_failure(module, 0) || module->state == MODULE_UNREADABLE) {
        return;
    }
    if (module->state == MODULE_ABSENT) {
        module->insertions++;
    }
    forget_values(module);
    module_enter(module, MODULE_UNREADABLE);
}

/* @return whether it is known now what is in the cage */
static bool id_done(struct module *module, const uint8_t *id,
                    enum i2c_outcome outcome)
{
    if (outcome != I2C_NO_TARGET && (outcome != I2C_OK || !id_is_intact(id))) {
        take_bad_id(module);
        return module->failures[0] == MODULE_ATTEMPTS;
    }
    module->failures[0] = 0;
    if (outcome == I2C_NO_TARGET) {
        take_absence(module);
    } else {
        take_id(module, id);
    }
    return true;
}

/* ---- Diagnostics. */

static void diagnostics_done(struct module *module, const uint8_t *diagnostics,
                             enum i2c_outcome outcome)
{
    bool is_read = outcome == I2C_OK;

    if (is_read) {
        module->values_us = module->now_us;
    }
    if (is_read && module_limits_are_intact(diagnostics)) {
        module->failures[1] = 0;
        module->diagnostics = MODULE_DIAGNOSTICS_READ;
        module_take_values(module, diagnostics);
        module_take_limits(module, diagnostics);
    } else if (note_failure(module, 1)) {
        module->diagnostics = is_read ? MODULE_DIAGNOSTICS_DAMAGED
                                      : MODULE_DIAGNOSTICS_UNANSWERED;
        forget_values(module);
        if (is_read) {
            module_take_values(module, diagnostics);
            module->watched = 0;
        }
    }
}

static bool has_diagnostics(const struct module *module)
{
    return module->state == MODULE_IDENTIFIED &&
           module->diagnostics != MODULE_DIAGNOSTICS_NONE &&
           module->diagnostics != MODULE_DIAGNOSTICS_EXTERNAL;
}

/* ---- Reading. */

/* Read the module's identity, or its limits and values. */
static void submit_read(struct module *module, uint8_t memory)
{
    struct i2c_request *request = &module->request;

    module->memory = memory;
    request->addr = memory == 0 ? ADDR_ID : ADDR_DIAGNOSTICS;
    request->bytes[0] = 0;
    request->write_len = 1;
    request->read_len = memory == 0 ? ID_LEN : MODULE_DIAGNOSTICS_LEN;
    i2c_submit(module->config.bus, request);
}

static void read_done(void *ctx, struct i2c_request *request,
                      enum i2c_outcome outcome)
{
    struct module *module = ctx;

    if (module->memory == 1) {
        diagnostics_done(module, request->bytes, outcome);
        module_report_changes(module);
        return;
    }
    if (id_done(module, request->bytes, outcome)) {
        module_report_changes(module);
        module->is_looked_for = true;
        if (module->failures[0] == 0 && has_diagnostics(module)) {
            submit_read(module, 1);
        }
    }
}

void module_init(struct module *module, const struct module_config *config)
{
    *module = (struct module){.config = *config};
    module->request.done = read_done;
    module->request.ctx = module;
}

/* A read may take any time, for example on a bus that is stuck. */
static void forget_old_values(struct module *module)
{
    if (module->has_values &&
        module->now_us - module->values_us > MODULE_AGE_US) {
        module->diagnostics = MODULE_DIAGNOSTICS_UNANSWERED;
        forget_values(module);
        module_report_changes(module);
    }
}

uint64_t module_step(struct module *module, uint64_t now_us)
{
    module->now_us = now_us;
    if (now_us < module->next_us) {
        return module->next_us;
    }
    forget_old_values(module);
    module->next_us = now_us + MODULE_PERIOD_US;
    if (!module->request.is_queued) {
        submit_read(module, 0);
    }
    return module->next_us;
}
