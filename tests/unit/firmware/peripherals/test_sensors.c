/* SPDX-License-Identifier: BSD-2-Clause */
/* Temperature sensors on a bus that the test simulates: how old a value is, and
 * what is told when it is too old. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/peripherals/sensors.h"
#include "lib/bytes.h"
#include "tests/test_fixture.h"

enum { SECOND_US = 1000000, KELVIN_0C = 273, ADDR = 0x48 };

static struct {
    struct sensors sensors;
    struct log log;
    char console[4096];
    size_t console_len;
    int celsius[SENSORS];
    enum i2c_outcome outcome[SENSORS];
    bool is_stuck; /* no transfer ends */
    uint64_t now_us;
} bed;

uint64_t hal_now_us(void)
{
    return bed.now_us;
}

void i2c_submit(struct i2c *i2c, struct i2c_request *request)
{
    (void)i2c;
    assert_false(request->is_queued);
    request->is_queued = true;
}

static size_t keep_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    assert_true(bed.console_len + len < sizeof(bed.console));
    memcpy(bed.console + bed.console_len, text, len);
    bed.console_len += len;
    return len;
}

static int new_bed(void **state)
{
    const struct log_sink sink = {.write = keep_text};
    const struct sensors_config config = {
        .log = &bed.log,
        .sensor = {{ADDR, "sensor A"}, {ADDR + 1, "sensor B"}},
    };

    (void)state;
    memset(&bed, 0, sizeof(bed));
    log_init(&bed.log, sink);
    bed.celsius[0] = 40;
    bed.celsius[1] = 50;
    sensors_init(&bed.sensors, &config);
    return 0;
}

static void end_transfer(unsigned int number)
{
    struct i2c_request *request = &bed.sensors.sensor[number].request;

    put_be16(request->bytes, (uint16_t)(bed.celsius[number] * 256));
    request->is_queued = false;
    request->done(request->ctx, request, bed.outcome[number]);
}

static void pass_seconds(unsigned int seconds)
{
    while (seconds-- > 0) {
        bed.now_us += SECOND_US;
        (void)sensors_step(&bed.sensors, bed.now_us);
        for (unsigned int i = 0; i < SENSORS && !bed.is_stuck; i++) {
            end_transfer(i);
        }
        (void)log_poll(&bed.log, LOG_RING_BYTES);
    }
}

static unsigned int count_lines(const char *text)
{
    unsigned int count = 0;

    for (const char *at = bed.console; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static void test_nothing_is_known_before_the_first_read(void **state)
{
    (void)state;
    assert_int_equal(sensors_composite_kelvin(&bed.sensors), 0);
    assert_false(sensors_have_failed(&bed.sensors));
    pass_seconds(1);
    assert_int_equal(sensors_composite_kelvin(&bed.sensors), KELVIN_0C + 50);
    assert_true(sensors_take_change(&bed.sensors));
    pass_seconds(1);
    assert_false(sensors_take_change(&bed.sensors));
}

static void test_failed_reads_in_a_row_are_a_failed_sensor(void **state)
{
    (void)state;
    pass_seconds(1);
    bed.outcome[1] = I2C_NO_TARGET;
    pass_seconds(SENSOR_ATTEMPTS - 1);
    assert_int_equal(sensors_kelvin(&bed.sensors, 1), KELVIN_0C + 50);
    assert_false(sensors_have_failed(&bed.sensors));
    assert_true(sensors_take_change(&bed.sensors));
    pass_seconds(1);
    assert_true(sensors_take_change(&bed.sensors));
    assert_int_equal(sensors_kelvin(&bed.sensors, 1), 0);
    assert_int_equal(sensors_composite_kelvin(&bed.sensors), KELVIN_0C + 40);
    assert_true(sensors_have_failed(&bed.sensors));
    pass_seconds(100);
    assert_int_equal(count_lines("sensor B does not answer"), 1);
}

static void test_good_read_ends_a_failure(void **state)
{
    (void)state;
    bed.outcome[0] = bed.outcome[1] = I2C_NO_TARGET;
    pass_seconds(10);
    assert_int_equal(sensors_composite_kelvin(&bed.sensors), 0);
    bed.outcome[0] = I2C_OK;
    bed.celsius[0] = 95;
    pass_seconds(1);
    assert_int_equal(sensors_composite_kelvin(&bed.sensors), KELVIN_0C + 95);
    bed.outcome[1] = I2C_OK;
    pass_seconds(SENSOR_GOOD_READS - 1);
    assert_true(sensors_have_failed(&bed.sensors)); /* the second one */
    assert_int_equal(count_lines("answers again"), 1);
    (void)sensors_take_change(&bed.sensors);
    pass_seconds(1);
    assert_true(sensors_take_change(&bed.sensors));
    assert_false(sensors_have_failed(&bed.sensors));
    assert_int_equal(count_lines("answers again"), 2);
}

static void test_sensor_that_fails_again_and_again_is_reported_once(
    void **state)
{
    (void)state;
    for (unsigned int i = 0; i < 100; i++) {
        bed.outcome[1] = I2C_NO_TARGET;
        pass_seconds(SENSOR_ATTEMPTS);
        assert_int_equal(sensors_kelvin(&bed.sensors, 1), 0);
        assert_true(sensors_have_failed(&bed.sensors));
        bed.outcome[1] = I2C_OK;
        pass_seconds(SENSOR_GOOD_READS - 1);
        assert_int_equal(sensors_kelvin(&bed.sensors, 1), KELVIN_0C + 50);
        assert_true(sensors_have_failed(&bed.sensors));
    }
    assert_int_equal(count_lines("sensor B"), 1);
}

static void test_value_that_no_read_renews_is_old_after_5_s(void **state)
{
    (void)state;
    pass_seconds(1);
    bed.is_stuck = true;
    pass_seconds(5);
    assert_int_equal(sensors_composite_kelvin(&bed.sensors), KELVIN_0C + 50);
    assert_true(sensors_take_change(&bed.sensors));
    pass_seconds(1);
    assert_true(sensors_take_change(&bed.sensors));
    assert_int_equal(sensors_composite_kelvin(&bed.sensors), 0);
    assert_false(sensors_have_failed(&bed.sensors)); /* it is only silent */
    pass_seconds(60);
    assert_int_equal(count_lines("has not been read for 5 s"), SENSORS);
    bed.is_stuck = false;
    pass_seconds(1);
    assert_int_equal(sensors_composite_kelvin(&bed.sensors), KELVIN_0C + 50);
}

TEST_FIXTURE(new_bed, NULL)
