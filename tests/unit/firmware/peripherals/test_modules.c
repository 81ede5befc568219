/* SPDX-License-Identifier: BSD-2-Clause */
/* Modules on a bus that the test simulates: what is reported, and how often. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/time.h"
#include "firmware/peripherals/modules.h"
#include "hw-model/sfp/sfp_module.h"
#include "lib/bytes.h"
#include "lib/random.h"
#include "tests/test_fixture.h"

enum {
    ID_VENDOR = 20,
    ID_COMPLIANCE = 36,
    ID_PART = 40,
    ID_CHECK = 63,
    ID_OPTIONS = 64,
    ID_SERIAL = 68,
    ID_DIAGNOSTICS = 92,
    ID_CHECK_EXTENDED = 95,
    DIAG_CHECK = 95,
    DIAG_VALUES = 96,
    DIAG_ALARMS = 112,
    DIAG_WARNINGS = 116,
    RX_WARNING = 891, /* of the modelled module; unit 0.1 microwatts */
    RX_ALARM = 708,
    RX_USUAL = 6310,
    RX_MARGIN = (17783 - 891) / 64 + 1,
    SECOND_US = 1000000,
};

/* The cage, and what was reported about it. */
static struct cage {
    uint8_t memory[2][SFP_MEMORY_BYTES];
    enum i2c_outcome outcome[2];
    struct log log;
    char console[1 << 18]; /* what was logged; a zero byte follows */
    size_t console_len;
    struct module module;
    uint64_t now_us;
    unsigned int events;
    unsigned int kinds[MODULE_EVENT_KINDS];
    struct module_event last;
    char text[MODULE_EVENT_TEXT_MAX + 1]; /* of the last event */
} cage;

uint64_t hal_now_us(void)
{
    return cage.now_us;
}

void i2c_submit(struct i2c *i2c, struct i2c_request *request)
{
    (void)i2c;
    assert_false(request->is_queued);
    request->is_queued = true;
}

/* Let the bus end a transfer. */
static void end_transfer(void)
{
    struct i2c_request *request = &cage.module.request;
    unsigned int memory = request->addr - SFP_ADDR_ID;
    uint8_t from = request->bytes[0];

    assert_in_range(memory, 0, 1);
    assert_int_equal(request->write_len, 1);
    for (unsigned int i = 0; i < request->read_len; i++) {
        request->bytes[i] = cage.memory[memory][from + i];
    }
    request->is_queued = false;
    request->done(request->ctx, request, cage.outcome[memory]);
}

/* Let the firmware look at the cage `times` times, once a second. */
static void look_at_cage(unsigned int times)
{
    while (times-- > 0) {
        unsigned int transfers = 0;

        cage.now_us += SECOND_US;
        (void)module_step(&cage.module, cage.now_us);
        while (cage.module.request.is_queued) {
            end_transfer();
            transfers++;
        }
        assert_in_range(transfers, 1, 2);
        (void)log_poll(&cage.log, LOG_RING_BYTES);
    }
}

static void raise_event(void *ctx, const struct module_event *event)
{
    assert_ptr_equal(ctx, &cage);
    assert_in_range(event->kind, 1, MODULE_EVENT_KINDS - 1);
    assert_in_range(strlen(event->text), 1, MODULE_EVENT_TEXT_MAX);
    cage.events++;
    cage.kinds[event->kind]++;
    cage.last = *event;
    memcpy(cage.text, event->text, strlen(event->text) + 1);
}

static size_t keep_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    if (cage.console_len + len < sizeof(cage.console)) {
        memcpy(cage.console + cage.console_len, text, len);
        cage.console_len += len;
    }
    return len;
}

static uint8_t sum_of(const uint8_t *bytes, unsigned int from, unsigned int to)
{
    uint8_t sum = 0;

    for (unsigned int i = from; i < to; i++) {
        sum = (uint8_t)(sum + bytes[i]);
    }
    return sum;
}

/* Make the checksums right after a change. */
static void fix_sums(void)
{
    cage.memory[0][ID_CHECK] = sum_of(cage.memory[0], 0, ID_CHECK);
    cage.memory[0][ID_CHECK_EXTENDED] =
        sum_of(cage.memory[0], ID_OPTIONS, ID_CHECK_EXTENDED);
    cage.memory[1][DIAG_CHECK] = sum_of(cage.memory[1], 0, DIAG_CHECK);
}

static void measure_value(enum module_quantity quantity, int value)
{
    put_be16(cage.memory[1] + DIAG_VALUES + 2 * quantity, (uint16_t)value);
}

static void set_limit(enum module_quantity quantity, enum module_limit limit,
                      int value)
{
    put_be16(cage.memory[1] + (size_t)2 * MODULE_LIMIT(quantity, limit),
             (uint16_t)value);
    fix_sums();
}

/* How often the log has a text. */
static unsigned int log_count(const char *text)
{
    unsigned int count = 0;

    for (const char *at = cage.console; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static int setup(void **state)
{
    struct sfp_module like;

    (void)state;
    cage = (struct cage){.outcome = {I2C_OK, I2C_OK}};
    log_init(&cage.log, (struct log_sink){.write = keep_text});
    sfp_module_init(&like, "SERIAL1");
    for (unsigned int i = 0; i < 2 * SFP_MEMORY_BYTES; i++) {
        cage.memory[i / SFP_MEMORY_BYTES][i % SFP_MEMORY_BYTES] =
            sfp_module_byte(&like, i / SFP_MEMORY_BYTES, (uint8_t)i);
    }
    module_init(&cage.module, &(struct module_config){
                                  .port = 1,
                                  .log = &cage.log,
                                  .raise = raise_event,
                                  .ctx = &cage,
                              });
    return 0;
}

TEST_FIXTURE(setup, NULL)

static void test_a_module_that_is_there_at_the_start_is_no_event(void **state)
{
    (void)state;
    look_at_cage(3);
    assert_int_equal(cage.module.state, MODULE_IDENTIFIED);
    assert_int_equal(log_count("port 1: module inserted: ESSD EMULATION "
                               "SFP28-25G-SR, serial SERIAL1, 25GBASE-SR\r\n"),
                     1);
    assert_int_equal(cage.events, 0);
}

static void test_insertion_and_removal_are_one_line_and_one_event(void **state)
{
    (void)state;
    cage.outcome[0] = cage.outcome[1] = I2C_NO_TARGET;
    look_at_cage(5);
    assert_int_equal(log_count("port 1: no module in the cage"), 1);
    assert_int_equal(cage.events, 0);
    cage.outcome[0] = cage.outcome[1] = I2C_OK;
    look_at_cage(5);
    assert_int_equal(log_count("port 1: module inserted"), 1);
    assert_int_equal(cage.kinds[MODULE_EVENT_INSERTED], 1);
    cage.outcome[0] = cage.outcome[1] = I2C_NO_TARGET;
    look_at_cage(5);
    assert_int_equal(log_count("port 1: module removed"), 1);
    assert_int_equal(cage.kinds[MODULE_EVENT_REMOVED], 1);
    assert_int_equal(cage.events, 2);
    assert_false(cage.last.has_limit);
    assert_int_equal(cage.last.port, 1);
    assert_false(cage.module.has_values);
}

static void test_another_module_between_two_looks_is_an_exchange(void **state)
{
    (void)state;
    look_at_cage(2);
    memcpy(cage.memory[0] + ID_SERIAL, "SERIAL2", 7);
    fix_sums();
    look_at_cage(2);
    assert_int_equal(cage.kinds[MODULE_EVENT_REMOVED], 1);
    assert_int_equal(cage.kinds[MODULE_EVENT_INSERTED], 1);
    assert_string_equal(cage.module.serial, "SERIAL2");
    assert_int_equal(cage.module.removals, 1);
    assert_int_equal(cage.module.insertions, 2);
}

/* ---- Limits. */

static void test_a_limit_is_reported_when_it_is_exceeded_and_when_not(
    void **state)
{
    (void)state;
    look_at_cage(1);
    measure_value(MODULE_RX_POWER, RX_WARNING - 1);
    look_at_cage(5);
    assert_int_equal(cage.events, 1);
    assert_int_equal(cage.last.kind, MODULE_EVENT_EXCEEDED);
    assert_true(cage.last.has_limit);
    assert_int_equal(cage.last.quantity, MODULE_RX_POWER);
    assert_int_equal(cage.last.limit, MODULE_LOW_WARNING);
    assert_int_equal(cage.last.value, RX_WARNING - 1);
    assert_int_equal(cage.last.limit_value, RX_WARNING);
    assert_string_equal(cage.text, "port 1: module: rx-power low-warning: "
                                   "0.0890 mW is beyond the limit, 0.0891 mW");
    measure_value(MODULE_RX_POWER, RX_USUAL);
    look_at_cage(5);
    assert_int_equal(cage.events, 2);
    assert_int_equal(cage.last.kind, MODULE_EVENT_RESTORED);
    assert_string_equal(cage.text,
                        "port 1: module: rx-power low-warning: 0.6310 mW is "
                        "again within the limit, 0.0891 mW");
    assert_int_equal(cage.module.exceeded, 0);
}

static void test_every_limit_is_watched(void **state)
{
    (void)state;
    look_at_cage(1);
    for (unsigned int i = 0; i < MODULE_QUANTITIES; i++) {
        for (unsigned int k = 0; k < MODULE_LIMITS; k++) {
            int32_t limit = cage.module.limit[i][k];
            int32_t usual =
                (int32_t)get_be16(cage.memory[1] + DIAG_VALUES + 2 * i);
            bool is_high = k == MODULE_HIGH_ALARM || k == MODULE_HIGH_WARNING;

            measure_value((enum module_quantity)i, limit);
            look_at_cage(1);
            assert_int_equal(cage.module.exceeded & BIT(MODULE_LIMIT(i, k)), 0);
            measure_value((enum module_quantity)i, limit + (is_high ? 1 : -1));
            look_at_cage(1);
            assert_int_not_equal(cage.module.exceeded & BIT(MODULE_LIMIT(i, k)),
                                 0);
            measure_value((enum module_quantity)i, usual);
            look_at_cage(100);
            assert_int_equal(cage.module.exceeded, 0);
        }
    }
}

/* A value that moves around its limit, or within the margin, is one event. */
static void test_a_value_at_its_limit_does_not_flood_the_log(void **state)
{
    (void)state;
    look_at_cage(1);
    for (unsigned int i = 0; i < 1000; i++) {
        measure_value(MODULE_RX_POWER,
                      RX_WARNING + (i & 1 ? RX_MARGIN - 1 : -1));
        look_at_cage(1);
    }
    assert_int_equal(cage.events, 1);
    measure_value(MODULE_RX_POWER, RX_WARNING + RX_MARGIN);
    look_at_cage(1);
    assert_int_equal(cage.events, 2);
    assert_int_equal(cage.last.kind, MODULE_EVENT_RESTORED);
}

/* A loose fibre: far beyond the limit and back, every second. */
static void test_a_value_that_swings_is_slowed_down(void **state)
{
    enum { SECONDS = 1000 };

    (void)state;
    look_at_cage(1);
    for (unsigned int i = 0; i < SECONDS; i++) {
        measure_value(MODULE_RX_POWER, i % 3 == 0 ? RX_WARNING - 1 : RX_USUAL);
        look_at_cage(1);
    }
    assert_in_range(cage.events, 16, 16 + SECONDS / 10);
    assert_int_equal(log_count("it changes too often; reporting one change in "
                               "10 s"),
                     1);
    /* When the value no longer changes, the last report is true. */
    measure_value(MODULE_RX_POWER, RX_USUAL);
    look_at_cage(30);
    assert_int_equal(cage.module.reported.exceeded, 0);
    assert_int_equal(cage.kinds[MODULE_EVENT_EXCEEDED],
                     cage.kinds[MODULE_EVENT_RESTORED]);
}

static void test_a_module_that_comes_and_goes_is_slowed_down(void **state)
{
    (void)state;
    look_at_cage(1);
    for (unsigned int i = 0; i < 1000; i++) {
        cage.outcome[0] = i & 1 ? I2C_OK : I2C_NO_TARGET;
        look_at_cage(1);
    }
    assert_in_range(cage.events, 15, 16 + 1000 / 10);
    cage.outcome[0] = I2C_OK;
    look_at_cage(30);
    assert_int_equal(cage.module.reported.state, MODULE_IDENTIFIED);
    assert_int_equal(cage.module.removals, 500);
}

static void test_flags_of_the_module_count_unless_they_contradict(void **state)
{
    (void)state;
    look_at_cage(1);
    put_be16(cage.memory[1] + DIAG_WARNINGS, 0x8000);
    look_at_cage(3);
    assert_int_equal(
        cage.module.exceeded,
        BIT(MODULE_LIMIT(MODULE_TEMPERATURE, MODULE_HIGH_WARNING)));
    assert_string_equal(cage.text,
                        "port 1: module: temperature high-warning: 38.00 C "
                        "now; it was beyond the limit, 70.00 C");
    put_be16(cage.memory[1] + DIAG_WARNINGS, 0);
    put_be16(cage.memory[1] + DIAG_ALARMS, 0x0040);
    look_at_cage(3);
    assert_int_equal(cage.module.exceeded,
                     BIT(MODULE_LIMIT(MODULE_RX_POWER, MODULE_LOW_ALARM)));
    put_be16(cage.memory[1] + DIAG_WARNINGS, 0xffff);
    put_be16(cage.memory[1] + DIAG_ALARMS, 0xffff);
    look_at_cage(3);
    assert_int_equal(cage.module.exceeded, 0);
    assert_int_equal(cage.events, 4);
}

/* ---- Modules that are damaged, strange, or not read to the end. */

static void test_limits_in_the_wrong_order_are_ignored(void **state)
{
    (void)state;
    set_limit(MODULE_BIAS, MODULE_HIGH_ALARM, 100);
    set_limit(MODULE_BIAS, MODULE_LOW_ALARM, 200);
    look_at_cage(10);
    assert_int_equal(cage.module.exceeded, 0);
    assert_int_equal(log_count("2 of its 20 limits are not watched"), 1);
    assert_int_equal(cage.events, 1);
    assert_int_equal(cage.last.kind, MODULE_EVENT_DIAGNOSTICS);
    /* The other limits of the same quantity are watched. */
    measure_value(MODULE_BIAS, 6001);
    look_at_cage(2);
    assert_int_equal(cage.module.exceeded,
                     BIT(MODULE_LIMIT(MODULE_BIAS, MODULE_HIGH_WARNING)));
}

static void test_limits_that_are_all_zeroes_are_ignored(void **state)
{
    (void)state;
    memset(cage.memory[1], 0, DIAG_VALUES);
    look_at_cage(10);
    assert_true(cage.module.has_values);
    assert_int_equal(cage.module.exceeded, 0);
    assert_int_equal(log_count("20 of its 20 limits are not watched"), 1);
    assert_int_equal(cage.events, 1);
}

static void test_limits_that_are_mended_are_watched_again(void **state)
{
    (void)state;
    set_limit(MODULE_BIAS, MODULE_HIGH_ALARM, 100);
    set_limit(MODULE_BIAS, MODULE_LOW_ALARM, 200);
    look_at_cage(2);
    assert_int_equal(log_count("2 of its 20 limits are not watched"), 1);
    set_limit(MODULE_BIAS, MODULE_LOW_ALARM, 50);
    set_limit(MODULE_BIAS, MODULE_HIGH_ALARM, 60000);
    look_at_cage(2);
    assert_int_equal(log_count("all of its limits are watched again"), 1);
    assert_int_equal(log_count("0 of its 20"), 0);
    assert_int_equal(cage.events, 2);
}

static void test_limits_with_a_bad_checksum_are_not_used(void **state)
{
    (void)state;
    look_at_cage(1);
    cage.memory[1][DIAG_CHECK] ^= 1;
    set_limit(MODULE_RX_POWER, MODULE_LOW_WARNING, 10000);
    cage.memory[1][DIAG_CHECK] ^= 1;
    look_at_cage(2); /* twice may be noise */
    assert_int_equal(cage.events, 0);
    look_at_cage(10);
    assert_int_equal(cage.module.diagnostics, MODULE_DIAGNOSTICS_DAMAGED);
    assert_int_equal(log_count("the limits have a bad checksum"), 1);
    assert_int_equal(cage.events, 1);
    assert_true(cage.module.has_values);
    assert_int_equal(cage.module.watched, 0);
    assert_int_equal(cage.module.exceeded, 0);
    fix_sums();
    look_at_cage(2);
    assert_int_equal(log_count("the diagnostics can be read again"), 1);
    assert_int_equal(cage.kinds[MODULE_EVENT_EXCEEDED], 1);
}

static void test_an_identity_with_a_bad_checksum_is_one_line(void **state)
{
    static const unsigned int damaged[] = {0, ID_CHECK, ID_SERIAL,
                                           ID_CHECK_EXTENDED};

    for (unsigned int i = 0; i < ARRAY_LEN(damaged); i++) {
        assert_int_equal(setup(state), 0);
        cage.memory[0][damaged[i]] ^= 0x10;
        look_at_cage(20);
        assert_int_equal(cage.module.state, MODULE_UNREADABLE);
        assert_int_equal(log_count("insert another module"), 1);
        assert_int_equal(cage.events, 1);
        assert_int_equal(cage.last.kind, MODULE_EVENT_UNREADABLE);
        cage.memory[0][damaged[i]] ^= 0x10;
        look_at_cage(2);
        assert_int_equal(cage.module.state, MODULE_IDENTIFIED);
        assert_int_equal(cage.kinds[MODULE_EVENT_READABLE], 1);
        cage.outcome[0] = I2C_NO_TARGET;
        look_at_cage(2);
        assert_int_equal(cage.events, 3);
        assert_int_equal(cage.module.insertions, cage.module.removals);
    }
}

static void test_memories_full_of_ones_are_an_unreadable_module(void **state)
{
    (void)state;
    memset(cage.memory, 0xff, sizeof(cage.memory));
    look_at_cage(100);
    assert_int_equal(cage.module.state, MODULE_UNREADABLE);
    assert_int_equal(cage.events, 1);
    /* Only the diagnostics. */
    assert_int_equal(setup(state), 0);
    memset(cage.memory[1], 0xff, sizeof(cage.memory[1]));
    look_at_cage(100);
    assert_int_equal(cage.module.state, MODULE_IDENTIFIED);
    assert_int_equal(cage.module.diagnostics, MODULE_DIAGNOSTICS_DAMAGED);
    assert_int_equal(cage.events, 1);
}

static void test_modules_without_usable_diagnostics_are_one_line(void **state)
{
    static const struct {
        uint8_t byte;
        enum module_diagnostics diagnostics;
        const char *text;
    } rows[] = {
        {0x00, MODULE_DIAGNOSTICS_NONE, "it has no diagnostics"},
        {0x28, MODULE_DIAGNOSTICS_NONE, "it has no diagnostics"},
        {0x58, MODULE_DIAGNOSTICS_EXTERNAL, "external calibration"},
        {0x78, MODULE_DIAGNOSTICS_EXTERNAL, "external calibration"},
        {0x48, MODULE_DIAGNOSTICS_EXTERNAL, "external calibration"},
    };

    for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(setup(state), 0);
        cage.memory[0][ID_DIAGNOSTICS] = rows[i].byte;
        fix_sums();
        measure_value(MODULE_RX_POWER, 0);
        look_at_cage(20);
        assert_int_equal(cage.module.diagnostics, rows[i].diagnostics);
        assert_int_equal(log_count(rows[i].text), 1);
        assert_int_equal(log_count("port 1:"), 1);
        assert_false(cage.module.has_values);
        assert_int_equal(cage.module.exceeded, 0);
    }
}

/* Vendor, part and serial number of 16 characters each. */
static void test_a_report_of_the_longest_names_is_not_cut(void **state)
{
    static const unsigned int names[] = {ID_VENDOR, ID_PART, ID_SERIAL};
    static const char end[] = "no limits are watched";

    (void)state;
    for (unsigned int i = 0; i < ARRAY_LEN(names); i++) {
        memset(cage.memory[0] + names[i], 'a' + (int)i, MODULE_TEXT_LEN);
    }
    cage.memory[0][ID_COMPLIANCE] = 0x0b; /* 25GBASE-CR CA-L */
    cage.memory[0][ID_DIAGNOSTICS] = 0x58;
    fix_sums();
    look_at_cage(1);
    cage.memory[0][ID_CHECK] ^= 1;
    look_at_cage(MODULE_ATTEMPTS);
    assert_int_equal(cage.module.state, MODULE_UNREADABLE);
    cage.memory[0][ID_CHECK] ^= 1;
    look_at_cage(1);
    assert_int_equal(cage.last.kind, MODULE_EVENT_READABLE);
    assert_string_equal(cage.text + strlen(cage.text) - strlen(end), end);
    assert_non_null(strstr(cage.text, "aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbb, "
                                      "serial cccccccccccccccc, "));
}

static void test_diagnostics_that_do_not_answer_are_one_line(void **state)
{
    static const enum i2c_outcome outcomes[] = {I2C_NO_TARGET, I2C_REFUSED,
                                                I2C_FAILED};

    for (unsigned int i = 0; i < ARRAY_LEN(outcomes); i++) {
        assert_int_equal(setup(state), 0);
        measure_value(MODULE_RX_POWER, 0);
        look_at_cage(1);
        assert_int_equal(cage.kinds[MODULE_EVENT_EXCEEDED], 2);
        cage.outcome[1] = outcomes[i];
        look_at_cage(20);
        assert_int_equal(cage.module.state, MODULE_IDENTIFIED);
        assert_int_equal(cage.module.diagnostics,
                         MODULE_DIAGNOSTICS_UNANSWERED);
        assert_false(cage.module.has_values);
        assert_int_equal(log_count("the diagnostics do not answer"), 1);
        assert_int_equal(cage.events, 3);
        cage.outcome[1] = I2C_OK;
        look_at_cage(5);
        assert_int_equal(cage.kinds[MODULE_EVENT_DIAGNOSTICS], 2);
        assert_int_equal(cage.kinds[MODULE_EVENT_EXCEEDED], 4);
    }
}

static void test_a_module_that_is_pulled_while_it_is_read_is_removed_once(
    void **state)
{
    (void)state;
    look_at_cage(2);
    cage.outcome[1] = I2C_REFUSED; /* its identity was read before */
    look_at_cage(1);
    cage.outcome[0] = cage.outcome[1] = I2C_NO_TARGET;
    look_at_cage(20);
    assert_int_equal(cage.events, 1);
    assert_int_equal(cage.kinds[MODULE_EVENT_REMOVED], 1);
    /* Pulled in the middle of the identity. */
    cage.outcome[0] = cage.outcome[1] = I2C_OK;
    look_at_cage(2);
    cage.outcome[0] = I2C_REFUSED;
    look_at_cage(1);
    cage.outcome[0] = I2C_NO_TARGET;
    look_at_cage(20);
    assert_int_equal(cage.kinds[MODULE_EVENT_REMOVED], 2);
    assert_int_equal(cage.events, 3);
}

static void test_two_bad_reads_in_a_row_are_ignored(void **state)
{
    (void)state;
    look_at_cage(2);
    for (unsigned int i = 0; i < 100; i++) {
        cage.outcome[i & 1] = I2C_REFUSED;
        look_at_cage(2);
        cage.outcome[i & 1] = I2C_OK;
        look_at_cage(1);
    }
    assert_int_equal(cage.events, 0);
    assert_int_equal(cage.module.state, MODULE_IDENTIFIED);
    cage.outcome[0] = I2C_FAILED;
    look_at_cage(20);
    assert_int_equal(cage.module.state, MODULE_UNREADABLE);
    assert_int_equal(cage.events, 1);
}

/* Whatever a module sends, there are not more reports than the pace allows. */
static void test_random_modules_do_not_flood_the_log(void **state)
{
    enum { SECONDS = 20000 };
    uint64_t random = 8472;

    (void)state;
    look_at_cage(1);
    for (unsigned int i = 0; i < SECONDS; i++) {
        unsigned int memory = random_next(&random) & 1;

        cage.memory[memory][random_next(&random) % SFP_MEMORY_BYTES] =
            (uint8_t)random_next(&random);
        if (random_next(&random) % 4 != 0) {
            fix_sums();
        }
        cage.outcome[memory] =
            random_next(&random) % 3 != 0
                ? I2C_OK
                : (enum i2c_outcome)(random_next(&random) % 4);
        look_at_cage(1);
    }
    assert_in_range(cage.events, 1, 16 + SECONDS / 10);
}

/* The bus is stuck: no read fails, because none ends. */
static void test_values_that_no_read_renews_are_no_values(void **state)
{
    (void)state;
    look_at_cage(2);
    assert_true(cage.module.has_values);
    cage.now_us += SECOND_US;
    (void)module_step(&cage.module, cage.now_us);
    assert_true(cage.module.request.is_queued);
    for (unsigned int s = 0; s < 4; s++) {
        cage.now_us += SECOND_US;
        (void)module_step(&cage.module, cage.now_us);
    }
    assert_true(cage.module.has_values);
    cage.now_us += SECOND_US;
    (void)module_step(&cage.module, cage.now_us);
    assert_false(cage.module.has_values);
    assert_int_equal(cage.module.diagnostics, MODULE_DIAGNOSTICS_UNANSWERED);
    assert_int_equal(cage.kinds[MODULE_EVENT_DIAGNOSTICS], 1);
    end_transfer();
    look_at_cage(1);
    assert_true(cage.module.has_values);
    assert_int_equal(cage.module.diagnostics, MODULE_DIAGNOSTICS_READ);
}
