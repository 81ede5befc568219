/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "firmware/hal/log.h"
#include "firmware/hal/time.h"
#include "tests/test_fixture.h"

#include <stdio.h>
#include <string.h>

static struct {
    char text[4 * LOG_RING_BYTES];
    size_t len;
    size_t room; /* characters that the sink takes now */
    uint64_t now_us;
    bool is_drained;
} world;

uint64_t hal_now_us(void)
{
    return world.now_us;
}

static size_t sink_write(void *ctx, const char *text, size_t len)
{
    size_t n = MIN(len, world.room);

    assert_ptr_equal(ctx, &world);
    memcpy(world.text + world.len, text, n);
    world.len += n;
    world.room -= n;
    return n;
}

static void sink_drain(void *ctx)
{
    assert_ptr_equal(ctx, &world);
    world.is_drained = true;
}

static const struct log_sink sink = {&world, sink_write, sink_drain};

static int new_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    world.room = SIZE_MAX;
    return 0;
}

/*
 * Compare the log's formatter with the C library's, for formats that both know.
 */
#define SAME(...)                                                              \
    do {                                                                       \
        char ours_[80], theirs_[80];                                           \
        size_t len_ = log_format(ours_, sizeof(ours_), __VA_ARGS__);           \
        snprintf(theirs_, sizeof(theirs_), __VA_ARGS__);                       \
        assert_string_equal(ours_, theirs_);                                   \
        assert_int_equal(len_, strlen(theirs_));                               \
    } while (0)

static void test_log_formats_as_printf_does(void **state)
{
    (void)state;
    SAME("plain %% text");
    SAME("%d %d %d", 0, -7, 2147483647);
    SAME("%d %ld", -2147483647 - 1, -9223372036854775807L - 1);
    SAME("%u %lu %zu", 4294967295u, 18446744073709551615ul, (size_t)12);
    SAME("%x %08x %lx", 0xbeefu, 0xau, 0x123456789abcdeful);
    SAME("[%5d] [%-5d] [%05d] [%05d]", 42, 42, 42, -42);
    SAME("[%8s] [%-8s] [%.3s] [%.*s]", "abc", "abc", "abcdef", 2, "xyz");
    SAME("%c%c %p", 'o', 'k', (void *)0x1234);
    SAME("[%2d] [%1s]", 12345, "longer");
}

static void test_log_format_cuts_and_ends_the_text(void **state)
{
    char buf[5];

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    assert_int_equal(log_format(buf, sizeof(buf), "%s", "abcdefgh"), 4);
    assert_string_equal(buf, "abcd");
    assert_int_equal(log_format(buf, 1, "%d", 7), 0);
    assert_string_equal(buf, "");
}

static void test_log_line_has_time_and_end(void **state)
{
    static struct log log;

    (void)state;
    log_init(&log, sink);
    world.now_us = 12000345;
    log_line(&log, "hello %u", 5u);
    assert_int_equal(world.len, 0);
    assert_int_equal(log_poll(&log, SIZE_MAX), 23);
    assert_true(log_is_empty(&log));
    assert_string_equal(world.text, "[  12.000345] hello 5\r\n");
}

static void test_log_line_begins_a_new_line_after_a_prompt(void **state)
{
    static struct log log;

    (void)state;
    log_init(&log, sink);
    log_line(&log, "a");
    log_raw(&log, "essd> ", 6);
    log_raw(&log, "po", 2);
    log_line(&log, "b");
    log_raw(&log, "rt", 2);
    log_raw(&log, "\r\n", 2);
    log_line(&log, "c");
    (void)log_poll(&log, SIZE_MAX);
    assert_string_equal(world.text, "[   0.000000] a\r\nessd> po\r\n"
                                    "[   0.000000] b\r\nrt\r\n"
                                    "[   0.000000] c\r\n");
}

static void test_log_line_that_is_too_long_still_ends(void **state)
{
    static struct log log;
    char text[400];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_init(&log, sink);
    log_line(&log, "%s", text);
    (void)log_poll(&log, SIZE_MAX);
    assert_true(log_is_empty(&log));
    assert_true(world.len <= 256);
    assert_memory_equal(world.text + world.len - 3, "x\r\n", 3);
}

static void test_log_waits_for_its_sink_in_order(void **state)
{
    static struct log log;
    char all[LOG_RING_BYTES * 2] = "";
    size_t lines = 0;

    (void)state;
    log_init(&log, sink);
    for (unsigned int i = 0; i < 500; i++) {
        world.room = 7;
        log_line(&log, "line %u", i);
        assert_int_equal(log_poll(&log, SIZE_MAX), 7);
        world.room = SIZE_MAX;
        if (i % 50 == 49) {
            (void)log_poll(&log, SIZE_MAX);
            assert_true(log_is_empty(&log));
        }
    }
    assert_int_equal(log.dropped, 0);
    for (const char *at = world.text; (at = strstr(at, "line ")); at++) {
        snprintf(all, sizeof(all), "line %zu\r\n", lines++);
        assert_memory_equal(at, all, strlen(all));
    }
    assert_int_equal(lines, 500);
}

static void test_log_hands_over_no_more_than_it_is_told_to(void **state)
{
    static struct log log;
    size_t total = 0;

    (void)state;
    log_init(&log, sink);
    for (unsigned int i = 0; i < 600; i++) { /* so often that the ring wraps */
        log_line(&log, "0123456789");
        while (!log_is_empty(&log)) {
            size_t sent = log_poll(&log, 10);

            assert_in_range(sent, 1, 10);
            total += sent;
        }
    }
    assert_int_equal(log_poll(&log, 10), 0);
    assert_int_equal(total, 600 * strlen("[   0.000000] 0123456789\r\n"));
}

static void test_log_drops_whole_lines_when_full(void **state)
{
    static struct log log;

    (void)state;
    log_init(&log, sink);
    world.room = 0;
    for (unsigned int i = 0; i < 1000; i++) {
        log_line(&log, "0123456789");
    }
    assert_true(log.dropped > 0);
    assert_int_equal(log_poll(&log, SIZE_MAX), 0);
    assert_false(log_is_empty(&log));
    world.room = SIZE_MAX;
    log_flush(&log);
    assert_true(world.is_drained);
    assert_int_equal(world.len % strlen("[   0.000000] 0123456789\r\n"), 0);
    assert_int_equal(world.len + log.dropped,
                     1000 * strlen("[   0.000000] 0123456789\r\n"));
}

TEST_FIXTURE(new_world, NULL)
