/* SPDX-License-Identifier: BSD-2-Clause */
/* The data of a module's event, as docs/nvme.md has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/peripherals/module_record.h"

static void expect_data(const struct module_event *event,
                        const uint8_t want[MODULE_RECORD_LEN])
{
    uint8_t data[MODULE_RECORD_LEN + 1];

    memset(data, 0xa5, sizeof(data));
    module_record_emit(event, data);
    assert_memory_equal(data, want, MODULE_RECORD_LEN);
    assert_int_equal(data[MODULE_RECORD_LEN], 0xa5);
}

static void test_an_exceeded_limit_has_its_numbers_and_values(void **state)
{
    static const struct module_event event = {
        .kind = MODULE_EVENT_EXCEEDED,
        .port = 1,
        .has_limit = true,
        .quantity = MODULE_BIAS,
        .limit = MODULE_HIGH_WARNING,
        .value = 0x11223344,
        .limit_value = 0x55667788,
    };
    static const uint8_t want[MODULE_RECORD_LEN] = {
        1,    MODULE_BIAS, MODULE_HIGH_WARNING,
        0,    0x44,        0x33,
        0x22, 0x11,        0x88,
        0x77, 0x66,        0x55};

    (void)state;
    expect_data(&event, want);
}

static void test_a_temperature_below_zero_is_signed(void **state)
{
    static const struct module_event event = {
        .kind = MODULE_EVENT_RESTORED,
        .has_limit = true,
        .quantity = MODULE_TEMPERATURE,
        .limit = MODULE_LOW_ALARM,
        .value = -256,
        .limit_value = -10 * 256,
    };
    static const uint8_t want[MODULE_RECORD_LEN] = {0,
                                                    MODULE_TEMPERATURE,
                                                    MODULE_LOW_ALARM,
                                                    0,
                                                    0x00,
                                                    0xff,
                                                    0xff,
                                                    0xff,
                                                    0x00,
                                                    0xf6,
                                                    0xff,
                                                    0xff};

    (void)state;
    expect_data(&event, want);
}

static void test_an_event_without_a_limit_says_so(void **state)
{
    static const struct module_event event = {
        .kind = MODULE_EVENT_INSERTED,
        .port = 1,
        .quantity = MODULE_BIAS,
        .limit = MODULE_LOW_WARNING,
    };
    static const uint8_t want[MODULE_RECORD_LEN] = {1, 0xff, 0xff};

    (void)state;
    expect_data(&event, want);
}
