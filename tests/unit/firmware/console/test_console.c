/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines on the console, with commands of the test's own: those of the drive are
 * in test_console_commands.c, and tests/native/test_buses.c types them at a
 * whole drive.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/console/console.h"
#include "firmware/console/console_commands.h"
#include "firmware/hal/time.h"
#include "firmware/requests/parts.h"
#include "tests/test_fixture.h"

enum { BUDGET = 1000, POLL_US = 50000 };

#define PROMPT "essd> "

static struct {
    struct log log;
    struct uart uart;
    struct console console;
    struct request_parts parts;
    const char *typed; /* what the UART still has */
    char shown[LOG_RING_BYTES + 1];
    size_t len;
    unsigned int sets, irqs;
    char set[16]; /* what the last command has set */
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

static void run_set(struct console *console, char **words, unsigned int count)
{
    assert_int_equal(count, 2);
    world.sets++;
    log_format(world.set, sizeof(world.set), "%s", words[1]);
    log_text(console->log, "ok");
}

static void run_nothing(struct console *console, char **words,
                        unsigned int count)
{
    (void)console;
    (void)words;
    (void)count;
}

/* A command that no word names. */
#define NO_COMMAND {"", "", "", 1, 1, run_nothing}

const struct console_command console_commands[CONSOLE_COMMANDS] = {
    {"speed", "10|25", "", 2, 2, run_set},
    {"stop", "", "", 1, 1, run_set},
    {"host", "", "", 1, 5, run_nothing},
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
    NO_COMMAND,
};

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
    assert_string_equal(world.set, "10");
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
    assert_string_equal(world.set, "25");
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
    expect_answer("stop now", "error: stop \r\n");
    assert_int_equal(world.sets, 0);
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
