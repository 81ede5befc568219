/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/peripherals/module_report.h"

#include <stdarg.h>

enum { VALUE_TEXT = 24 };

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

const char *module_diagnostics_name(enum module_diagnostics diagnostics)
{
    static const char *const names[MODULE_DIAGNOSTICS_KINDS] = {
        [MODULE_DIAGNOSTICS_READ] = "read",
        [MODULE_DIAGNOSTICS_NONE] = "none",
        [MODULE_DIAGNOSTICS_EXTERNAL] = "external-calibration",
        [MODULE_DIAGNOSTICS_UNANSWERED] = "unanswered",
        [MODULE_DIAGNOSTICS_DAMAGED] = "damaged",
    };

    return names[diagnostics];
}

const char *module_event_name(enum module_event_kind kind)
{
    static const char *const names[MODULE_EVENT_KINDS] = {
        [MODULE_EVENT_INSERTED] = "module inserted",
        [MODULE_EVENT_REMOVED] = "module removed",
        [MODULE_EVENT_UNREADABLE] = "module unreadable",
        [MODULE_EVENT_READABLE] = "module readable again",
        [MODULE_EVENT_EXCEEDED] = "module limit exceeded",
        [MODULE_EVENT_RESTORED] = "module value within limit again",
        [MODULE_EVENT_DIAGNOSTICS] = "module diagnostics",
    };

    return names[kind];
}

/* ---- One report. */

/* Whether a report may be made now; if so, it is counted. */
static bool may_report(struct module *module)
{
    if (module->pace_us <= module->now_us) {
        module->pace_us = module->now_us;
        module->is_slowed = false;
    }
    if (module->pace_us - module->now_us <=
        (MODULE_BURST - 1) * (uint64_t)MODULE_PACE_US) {
        module->pace_us += MODULE_PACE_US;
        return true;
    }
    if (!module->is_slowed) {
        module->is_slowed = true;
        log_line(module->config.log,
                 "port %u: module: it changes too often; reporting one change "
                 "in %u s",
                 module->config.port, MODULE_PACE_US / 1000000);
    }
    return false;
}

/*
 * Log a line that begins with the port, and raise the event.  A module that was
 * already in its cage when the drive started causes no event.
 *
 * @return false when no report may be made now: see may_report()
 */
__attribute__((format(printf, 3, 4))) static bool report_event(
    struct module *module, const struct module_event *like, const char *format,
    ...)
{
    char text[MODULE_EVENT_TEXT_MAX + 1];
    struct module_event event = *like;
    size_t len;
    va_list args;

    if (!may_report(module)) {
        return false;
    }
    len = log_format(text, sizeof(text), "port %u: ", module->config.port);
    va_start(args, format);
    (void)log_vformat(text + len, sizeof(text) - len, format, args);
    va_end(args);
    log_line(module->config.log, "%s", text);
    event.port = module->config.port;
    event.text = text;
    if (module->config.raise != NULL &&
        (module->is_looked_for || event.kind != MODULE_EVENT_INSERTED)) {
        module->config.raise(module->config.ctx, &event);
    }
    return true;
}

/* ---- The module and its diagnostics. */

static const char *diagnostics_note(enum module_diagnostics diagnostics)
{
    static const char *const notes[MODULE_DIAGNOSTICS_KINDS] = {
        [MODULE_DIAGNOSTICS_READ] = "",
        [MODULE_DIAGNOSTICS_NONE] = "; it has no diagnostics, so no limits are "
                                    "watched",
        [MODULE_DIAGNOSTICS_EXTERNAL] =
            "; it needs external calibration, which is not supported: no "
            "limits are watched",
        [MODULE_DIAGNOSTICS_UNANSWERED] = "",
        [MODULE_DIAGNOSTICS_DAMAGED] = "",
    };

    return notes[diagnostics];
}

static bool report_module(struct module *module, bool was_unreadable)
{
    const struct module_event inserted = {.kind = MODULE_EVENT_INSERTED};
    const struct module_event readable = {.kind = MODULE_EVENT_READABLE};
    const struct module_event unreadable = {.kind = MODULE_EVENT_UNREADABLE};

    if (module->state == MODULE_UNREADABLE) {
        return report_event(module, &unreadable,
                            "the identity of the module cannot be read, or has "
                            "a bad checksum; insert another module");
    }
    return report_event(module, was_unreadable ? &readable : &inserted,
                        "module %s: %s %s, serial %s, %s%s",
                        was_unreadable ? "can be read again" : "inserted",
                        module->vendor, module->part, module->serial,
                        module_type(module),
                        diagnostics_note(module->diagnostics));
}

/* @return whether every insertion and removal is reported */
static bool report_presence(struct module *module)
{
    const struct module_event removed = {.kind = MODULE_EVENT_REMOVED};
    bool is_same = module->insertions == module->reported.insertions;
    bool was_unreadable = module->reported.state == MODULE_UNREADABLE;

    if (is_same && module->state == module->reported.state) {
        return true;
    }
    if (module->reported.state != MODULE_ABSENT &&
        (module->state == MODULE_ABSENT || !is_same)) {
        if (!report_event(module, &removed, "module removed")) {
            return false;
        }
        module->reported.state = MODULE_ABSENT;
    }
    if (module->state != MODULE_ABSENT &&
        !report_module(module, is_same && was_unreadable)) {
        return false;
    }
    module->reported.state = module->state;
    module->reported.insertions = module->insertions;
    module->reported.diagnostics = module->diagnostics;
    module->reported.watched = MODULE_ALL_LIMITS;
    module->reported.exceeded = 0;
    return true;
}

static void report_diagnostics(struct module *module)
{
    static const char *const texts[MODULE_DIAGNOSTICS_KINDS] = {
        [MODULE_DIAGNOSTICS_READ] = "the diagnostics can be read again",
        [MODULE_DIAGNOSTICS_UNANSWERED] = "the diagnostics do not answer, so "
                                          "no limits are watched; insert "
                                          "another module",
        [MODULE_DIAGNOSTICS_DAMAGED] = "the limits have a bad checksum, so "
                                       "they are not watched; insert another "
                                       "module",
    };
    const struct module_event event = {.kind = MODULE_EVENT_DIAGNOSTICS};

    if (module->diagnostics != module->reported.diagnostics &&
        report_event(module, &event, "module: %s",
                     texts[module->diagnostics])) {
        module->reported.diagnostics = module->diagnostics;
    }
}

static void report_watched(struct module *module)
{
    const struct module_event event = {.kind = MODULE_EVENT_DIAGNOSTICS};
    unsigned int ignored = 0;

    for (unsigned int i = 0; i < MODULE_LIMIT(MODULE_QUANTITIES, 0); i++) {
        ignored += (module->watched & BIT(i)) == 0;
    }
    if (module->watched == module->reported.watched) {
        return;
    }
    if (ignored == 0
            ? report_event(module, &event,
                           "module: all of its limits are watched again")
            : report_event(module, &event,
                           "module: %u of its %u limits are not watched, "
                           "because the low limit is not below the high one",
                           ignored, MODULE_LIMIT(MODULE_QUANTITIES, 0))) {
        module->reported.watched = module->watched;
    }
}

/* ---- Limits. */

static void put_value(char text[VALUE_TEXT], enum module_quantity quantity,
                      int32_t value)
{
    unsigned int size = (unsigned int)(value < 0 ? -value : value);

    if (quantity == MODULE_TEMPERATURE) {
        (void)log_format(text, VALUE_TEXT, "%s%u.%02u C", value < 0 ? "-" : "",
                         size / 256, size % 256 * 100 / 256);
        return;
    }
    if (quantity == MODULE_BIAS) {
        size *= 20; /* in 0.1 microamperes, like the fractions of the others */
    }
    (void)log_format(text, VALUE_TEXT, "%u.%04u %s", size / 10000, size % 10000,
                     quantity == MODULE_VOLTAGE ? "V"
                     : quantity == MODULE_BIAS  ? "mA"
                                                : "mW");
}

/* A limit also counts as exceeded while the value is within the margin, or when
 * only the module's own flag says so. */
static const char *limit_verdict(const struct module_event *event)
{
    bool is_high = event->limit == MODULE_HIGH_ALARM ||
                   event->limit == MODULE_HIGH_WARNING;

    if (event->kind == MODULE_EVENT_RESTORED) {
        return "is again within";
    }
    return (is_high ? event->value > event->limit_value
                    : event->value < event->limit_value)
               ? "is beyond"
               : "now; it was beyond";
}

static bool report_limit(struct module *module, unsigned int quantity,
                         unsigned int limit, bool is_exceeded)
{
    const struct module_event event = {
        .kind = is_exceeded ? MODULE_EVENT_EXCEEDED : MODULE_EVENT_RESTORED,
        .has_limit = true,
        .quantity = (enum module_quantity)quantity,
        .limit = (enum module_limit)limit,
        .value = module->value[quantity],
        .limit_value = module->limit[quantity][limit],
    };
    char value[VALUE_TEXT], limit_value[VALUE_TEXT];

    put_value(value, event.quantity, event.value);
    put_value(limit_value, event.quantity, event.limit_value);
    return report_event(module, &event, "module: %s %s: %s %s the limit, %s",
                        module_quantity_name(event.quantity),
                        module_limit_name(event.limit), value,
                        limit_verdict(&event), limit_value);
}

static void report_limits(struct module *module)
{
    for (unsigned int i = 0; i < MODULE_QUANTITIES; i++) {
        for (unsigned int k = 0; k < MODULE_LIMITS; k++) {
            uint32_t bit = BIT(MODULE_LIMIT(i, k));

            if ((module->exceeded ^ module->reported.exceeded) & bit &&
                report_limit(module, i, k, (module->exceeded & bit) != 0)) {
                module->reported.exceeded ^= bit;
            }
        }
    }
}

void module_report_changes(struct module *module)
{
    if (!report_presence(module) || module->state != MODULE_IDENTIFIED) {
        return;
    }
    report_diagnostics(module);
    if (module->diagnostics != MODULE_DIAGNOSTICS_READ) {
        /* Without limits, it is not known which of them are exceeded. */
        module->reported.exceeded = 0;
    } else if (module->has_values) {
        report_watched(module);
        module->reported.exceeded &= module->watched;
        report_limits(module);
    }
}
