/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines on the console, and commands that are about one part of the drive.
 * tests/native/test_buses.c types commands at a whole drive.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/console/console.h"
#include "firmware/hal/time.h"
#include "firmware/net/drive_net.h"
#include "firmware/requests/parts.h"
#include "firmware/settings/settings.h"
#include "firmware/telemetry/telemetry.h"
#include "hw-model/regs/port_names.h"
#include "tests/test_fixture.h"

enum { BUDGET = 1000, POLL_US = 50000 };

#define PROMPT "essd> "

static struct {
    struct log log;
    struct uart uart;
    struct console console;
    struct request_parts parts;
    struct settings settings;
    struct drive_net net;
    struct telemetry telemetry;
    const char *typed; /* what the UART still has */
    char shown[LOG_RING_BYTES + 1];
    size_t len;
    unsigned int sets, stops, provocations, irqs;
    uint8_t port, gbps;
    enum config_fec fec;
    enum settings_result result;
    enum crash_cause cause;
} world;

uint64_t hal_now_us(void)
{
    return 0;
}

bool uart_read(const struct uart *uart, char *c)
{
    assert_ptr_equal(uart, &world.uart);
    if (*world.typed == '\0') {
        return false;
    }
    *c = *world.typed++;
    return true;
}

void uart_irq_enable(const struct uart *uart)
{
    assert_ptr_equal(uart, &world.uart);
    world.irqs++;
}

enum settings_result settings_set_fec(struct settings *settings, uint8_t port,
                                      enum config_fec fec, bool save)
{
    assert_ptr_equal(settings, &world.settings);
    assert_true(save);
    world.sets++;
    world.port = port;
    world.fec = fec;
    return world.result;
}

enum settings_result settings_set_speed(struct settings *settings, uint8_t gbps,
                                        bool save)
{
    assert_ptr_equal(settings, &world.settings);
    assert_true(save);
    world.sets++;
    world.gbps = gbps;
    return world.result;
}

uint64_t drive_net_counter(const struct drive_net *net, uint8_t port,
                           enum port_counter counter)
{
    assert_ptr_equal(net, &world.net);
    return port == 1 && (unsigned int)counter < 2 ? 7u + (unsigned int)counter
                                                  : 0;
}

static void stop_drive(void *ctx)
{
    assert_ptr_equal(ctx, &world);
    world.stops++;
}

static void provoke_crash(enum crash_cause cause)
{
    world.provocations++;
    world.cause = cause;
}

static size_t show_text(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    assert_true(world.len + len < sizeof(world.shown));
    memcpy(world.shown + world.len, text, len);
    world.len += len;
    return len;
}

static void wait_for_text(void *ctx)
{
    (void)ctx;
}

static int new_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.typed = "";
    world.parts = (struct request_parts){
        .log = &world.log,
        .settings = &world.settings,
        .net = &world.net,
        .telemetry = &world.telemetry,
        .stop = stop_drive,
        .ctx = &world,
    };
    log_init(&world.log,
             (struct log_sink){.write = show_text, .drain = wait_for_text});
    console_init(&world.console, &world.uart, &world.parts);
    assert_int_equal(world.irqs, 1);
    return 0;
}

TEST_FIXTURE(new_world, NULL)

/* Type these characters.  world.shown is what the console answers, with their
 * echo. */
static void type_text(const char *text)
{
    world.typed = text;
    world.len = 0;
    console_wake(&world.console);
    (void)console_step(&world.console, 0, BUDGET);
    log_flush(&world.log);
    world.shown[world.len] = '\0';
}

static void expect_answer(const char *line, const char *answer)
{
    char all[LOG_RING_BYTES];

    log_format(all, sizeof(all), "%s\r", line);
    type_text(all);
    log_format(all, sizeof(all), "%s\r\n%s" PROMPT, line, answer);
    assert_string_equal(world.shown, all);
}

/* ---- Lines. */

static void test_a_line_is_run_at_its_end_and_a_prompt_follows(void **state)
{
    (void)state;
    type_text("speed 1");
    assert_string_equal(world.shown, "speed 1");
    assert_int_equal(world.sets, 0);
    type_text("0\r");
    assert_string_equal(world.shown, "0\r\nok\r\n" PROMPT);
    assert_int_equal(world.sets, 1);
    assert_int_equal(world.gbps, 10);
}

static void test_an_empty_line_has_a_prompt_only(void **state)
{
    (void)state;
    expect_answer("", "");
    expect_answer("   ", "");
}

static void test_cr_lf_ends_one_line(void **state)
{
    (void)state;
    type_text("\r\n");
    assert_string_equal(world.shown, "\r\n" PROMPT);
    type_text("\n");
    assert_string_equal(world.shown, "\r\n" PROMPT);
    type_text("\n\r");
    assert_string_equal(world.shown, "\r\n" PROMPT "\r\n" PROMPT);
}

static void test_both_keys_erase_one_character_each(void **state)
{
    (void)state;
    type_text("speed 99\b\x7f"
              "25\r");
    assert_string_equal(world.shown, "speed 99\b \b\b \b25\r\nok\r\n" PROMPT);
    assert_int_equal(world.gbps, 25);
    type_text("\b\b");
    assert_string_equal(world.shown, "");
}

static void test_control_c_drops_the_line(void **state)
{
    (void)state;
    type_text("speed 25\x03");
    assert_string_equal(world.shown, "speed 25\r\n" PROMPT);
    assert_int_equal(world.sets, 0);
}

static void test_other_control_characters_are_ignored(void **state)
{
    (void)state;
    type_text("sp\t\x1b"
              "eed 25\x01\r");
    assert_string_equal(world.shown, "speed 25\r\nok\r\n" PROMPT);
}

static void test_the_longest_line_runs_and_a_longer_one_is_refused(void **state)
{
    char line[CONSOLE_LINE_MAX + 3];

    (void)state;
    memset(line, ' ', sizeof(line));
    memcpy(line, "speed 25", 8);
    line[CONSOLE_LINE_MAX] = '\r';
    line[CONSOLE_LINE_MAX + 1] = '\0';
    type_text(line);
    assert_int_equal(world.sets, 1);
    line[CONSOLE_LINE_MAX] = ' ';
    line[CONSOLE_LINE_MAX + 1] = '\r';
    line[CONSOLE_LINE_MAX + 2] = '\0';
    type_text(line);
    assert_int_equal(world.sets, 1);
    assert_non_null(strstr(world.shown, "\r\nerror: a line has at most 360 "
                                        "characters\r\n" PROMPT));
    /* The next line is a new one. */
    expect_answer("speed 25", "ok\r\n");
}

static void test_a_secret_is_shown_as_stars(void **state)
{
    (void)state;
    type_text("host secret nqn.a DHHC-1 x");
    assert_string_equal(world.shown, "host secret nqn.a ****** *");
    assert_memory_equal(world.console.line, "host secret nqn.a DHHC-1 x", 26);
}

static void test_unknown_commands_and_wrong_counts_of_words_are_refused(
    void **state)
{
    (void)state;
    expect_answer("spee 25", "error: there is no command spee; try help\r\n");
    expect_answer("speed", "error: speed 10|25\r\n");
    expect_answer("speed 25 25", "error: speed 10|25\r\n");
    expect_answer("shutdown now", "error: shutdown \r\n");
    assert_int_equal(world.sets + world.stops, 0);
}

static void test_help_names_each_command(void **state)
{
    char first[80];

    (void)state;
    type_text("help\r");
    log_format(first, sizeof(first), "help\r\n%-11s%-19sprint this list\r\n",
               "help", "");
    assert_memory_equal(world.shown, first, strlen(first));
    assert_non_null(strstr(world.shown, "\r\nport       [PORT]"));
    assert_non_null(strstr(world.shown, "\r\nshutdown  "));
}

/* ---- When characters are read. */

static void test_the_uart_is_polled_each_50_ms_or_when_it_interrupts(
    void **state)
{
    struct console *console = &world.console;

    (void)state;
    world.typed = "a";
    assert_true(console_step(console, 1, BUDGET));
    world.typed = "b";
    assert_false(console_step(console, POLL_US, BUDGET));
    assert_string_equal(world.typed, "b");
    assert_true(console_step(console, 1 + POLL_US, BUDGET));
    assert_string_equal(world.typed, "");
    world.typed = "c";
    console_wake(console);
    assert_true(console_step(console, 2 + POLL_US, BUDGET));
    assert_memory_equal(console->line, "abc", 3);
    console_wake(console);
    assert_false(console_step(console, 3 + POLL_US, BUDGET));
}

static void test_a_step_reads_no_more_than_its_budget(void **state)
{
    (void)state;
    world.typed = "abcdef";
    assert_true(console_step(&world.console, 0, 4));
    assert_string_equal(world.typed, "ef");
    assert_true(console_step(&world.console, 0, 4));
    assert_string_equal(world.typed, "");
}

/* What is typed while a command waits for an I2C bus belongs to the next one.
 */
static void test_typed_characters_wait_for_the_last_command(void **state)
{
    (void)state;
    world.console.i2c.is_busy = true;
    type_text("speed 25\rspeed 10\r");
    assert_string_equal(world.shown, "speed 25\r\nok\r\n");
    assert_string_equal(world.typed, "speed 10\r");
    assert_false(console_step(&world.console, 1, BUDGET));
    world.console.i2c.is_busy = false;
    world.len = 0;
    assert_true(console_step(&world.console, 2, BUDGET));
    log_flush(&world.log);
    world.shown[world.len] = '\0';
    assert_string_equal(world.shown, PROMPT "speed 10\r\nok\r\n" PROMPT);
}

/* ---- Commands. */

static void test_fec_is_printed_and_set_for_one_port(void **state)
{
    (void)state;
    world.settings.in_force.port[1].fec = CONFIG_FEC_FC;
    expect_answer("fec 1", "fc\r\n");
    assert_int_equal(world.sets, 0);
    expect_answer("fec 1 rs", "ok\r\n");
    assert_int_equal(world.sets, 1);
    assert_int_equal(world.port, 1);
    assert_int_equal(world.fec, CONFIG_FEC_RS);
    expect_answer("fec 1 base",
                  "error: there is no FEC base; choose none, fc or rs\r\n");
    expect_answer("fec 2 rs",
                  "error: there is no port 2; the ports are 0 and 1\r\n");
    expect_answer("fec 11",
                  "error: there is no port 11; the ports are 0 and 1\r\n");
    assert_int_equal(world.sets, 1);
}

static void test_what_settings_refuse_is_said(void **state)
{
    (void)state;
    world.result = SETTINGS_INVALID;
    expect_answer("speed 10",
                  "error: the ports do not support this setting\r\n");
    world.result = SETTINGS_NOT_SAVED;
    expect_answer("speed 10", "error: writing to flash failed\r\n");
    world.result = SETTINGS_TOO_OFTEN;
    expect_answer("speed 10", "error: too many writes to flash: try again in "
                              "an hour\r\n");
    expect_answer("speed 40",
                  "error: there is no speed 40; choose 10 or 25\r\n");
    assert_int_equal(world.sets, 3);
}

static void test_counters_that_are_0_are_not_printed(void **state)
{
    char answer[200];

    (void)state;
    expect_answer("counters 0", "");
    log_format(answer, sizeof(answer), "%-28s 7\r\n%-28s 8\r\n",
               port_counter_name[0], port_counter_name[1]);
    expect_answer("counters 1", answer);
}

static void test_addresses_are_printed_with_their_states(void **state)
{
    struct net_stack *stack = &world.net.stack;

    (void)state;
    expect_answer("addresses", "");
    stack->addresses[0].state = ADDRESS_READY;
    stack->addresses[0].config = (struct net_address_config){
        .ip = ip_addr_from_v4(0x0a000001), .prefix_bits = 24};
    stack->addresses[2].state = ADDRESS_DUPLICATE;
    stack->addresses[2].config = (struct net_address_config){
        .ip = ip_addr_from_v4(0x0a000101), .port = 1, .prefix_bits = 16};
    expect_answer("addresses",
                  "port 0: 10.0.0.1/24: in use\r\n"
                  "port 1: 10.0.1.1/16: another station has it\r\n");
}

static void test_shutdown_stops_the_drive(void **state)
{
    (void)state;
    expect_answer("shutdown", "ok: the drive can be switched off now\r\n");
    assert_int_equal(world.stops, 1);
}

static void test_a_crash_is_provoked_by_its_name_where_that_is_possible(
    void **state)
{
    (void)state;
    expect_answer("crash trap", "");
    assert_int_equal(world.provocations, 0);
    world.telemetry.crashes.provoke = provoke_crash;
    expect_answer("crash memory", "error: choose assertion, trap or watchdog, "
                                  "not memory\r\n");
    expect_answer("crash", "");
    assert_int_equal(world.provocations, 0);
    expect_answer("crash trap", "");
    assert_int_equal(world.provocations, 1);
    assert_int_equal(world.cause, CRASH_TRAP);
}
