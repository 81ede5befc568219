/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/peripherals/module_limits.h"

#include "lib/bytes.h"

enum { /* byte offsets */
       DIAG_LIMITS = 0,
       DIAG_CHECK = 95, /* the sum of the bytes before it */
       DIAG_VALUES = 96,
       DIAG_ALARMS = 112,
       DIAG_WARNINGS = 116,
};

enum { RANGE_IN_MARGINS = 64 };

_Static_assert((int)DIAG_WARNINGS + 2 == MODULE_DIAGNOSTICS_LEN,
               "the last flags are read");

bool module_limits_are_intact(const uint8_t *diagnostics)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < DIAG_CHECK; i++) {
        sum = (uint8_t)(sum + diagnostics[i]);
    }
    return sum == diagnostics[DIAG_CHECK];
}

/* Temperatures are signed, all other quantities are not. */
static int32_t quantity_at(const uint8_t *bytes, unsigned int quantity)
{
    uint16_t raw = get_be16(bytes);

    return quantity == MODULE_TEMPERATURE ? (int16_t)raw : raw;
}

void module_take_values(struct module *module, const uint8_t *diagnostics)
{
    for (unsigned int i = 0; i < MODULE_QUANTITIES; i++) {
        module->value[i] =
            quantity_at(diagnostics + DIAG_VALUES + (size_t)2 * i, i);
    }
    module->has_values = true;
}

static void read_limits(struct module *module, const uint8_t *diagnostics)
{
    for (unsigned int i = 0; i < MODULE_QUANTITIES; i++) {
        for (unsigned int k = 0; k < MODULE_LIMITS; k++) {
            module->limit[i][k] = quantity_at(
                diagnostics + DIAG_LIMITS + (size_t)2 * MODULE_LIMIT(i, k), i);
        }
    }
}

/* The two limits of a pair follow each other, the higher one first. */
static uint32_t pair_bits(unsigned int quantity, unsigned int high)
{
    return BIT(MODULE_LIMIT(quantity, high)) |
           BIT(MODULE_LIMIT(quantity, high + 1));
}

static uint32_t limits_in_order(const struct module *module)
{
    uint32_t found = 0;

    for (unsigned int i = 0; i < MODULE_QUANTITIES; i++) {
        for (unsigned int k = 0; k < MODULE_LIMITS; k += 2) {
            if (module->limit[i][k] > module->limit[i][k + 1]) {
                found |= pair_bits(i, k);
            }
        }
    }
    return found;
}

/* The limits that are exceeded according to the module's own flags.  If the
 * flags say that a value is both too high and too low, they are ignored. */
static uint32_t flags_at(const uint8_t *bytes, unsigned int high)
{
    uint16_t flags = get_be16(bytes);
    uint32_t found = 0;

    for (unsigned int i = 0; i < MODULE_QUANTITIES; i++) {
        bool is_high = (flags & 0x8000u >> 2 * i) != 0;
        bool is_low = (flags & 0x4000u >> 2 * i) != 0;

        if (is_high != is_low) {
            found |= BIT(MODULE_LIMIT(i, is_high ? high : high + 1));
        }
    }
    return found;
}

static bool is_exceeded(const struct module *module, unsigned int quantity,
                        unsigned int limit)
{
    const int32_t *limits = module->limit[quantity];
    bool is_high = limit == MODULE_HIGH_ALARM || limit == MODULE_HIGH_WARNING;
    unsigned int high = is_high ? limit : limit - 1;
    int32_t range = limits[high] - limits[high + 1];
    int32_t margin = module->exceeded & BIT(MODULE_LIMIT(quantity, limit))
                         ? range / RANGE_IN_MARGINS + 1
                         : 0;

    return is_high ? module->value[quantity] > limits[limit] - margin
                   : module->value[quantity] < limits[limit] + margin;
}

static uint32_t find_exceeded(const struct module *module)
{
    uint32_t found = 0;

    for (unsigned int i = 0; i < MODULE_QUANTITIES; i++) {
        for (unsigned int k = 0; k < MODULE_LIMITS; k++) {
            if (is_exceeded(module, i, k)) {
                found |= BIT(MODULE_LIMIT(i, k));
            }
        }
    }
    return found;
}

void module_take_limits(struct module *module, const uint8_t *diagnostics)
{
    uint32_t exceeded;

    read_limits(module, diagnostics);
    exceeded = find_exceeded(module);
    if (module->has_flags) {
        exceeded |= flags_at(diagnostics + DIAG_ALARMS, MODULE_HIGH_ALARM) |
                    flags_at(diagnostics + DIAG_WARNINGS, MODULE_HIGH_WARNING);
    }
    module->watched = limits_in_order(module);
    module->exceeded = exceeded & module->watched;
}
