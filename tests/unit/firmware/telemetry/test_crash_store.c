/* SPDX-License-Identifier: BSD-2-Clause */
/* What console and tools show of crash dumps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/hal/log.h"
#include "firmware/hal/time.h"
#include "firmware/mgmt/json_write.h"
#include "firmware/telemetry/crash_store.h"
#include "lib/bytes.h"
#include "lib/section.h"
#include "tests/test_fixture.h"

static uint8_t dump[4096], buf[CRASH_DUMP_MAX];
static size_t dump_len;
static uint32_t dumps; /* in flash, numbered from 1 */
static struct log console;
static char text[4096];

uint64_t hal_now_us(void)
{
    return 0;
}

/* Make a dump, and let the flash have two of them. */
static int make_dump(void **state)
{
    const struct log_sink sink = {0};
    struct section_writer writer = {.buf = dump, .size = sizeof(dump)};
    uint8_t head[CRASH_HEAD_LEN] = {0}, registers[8 * CRASH_REGISTERS];

    (void)state;
    put_le16(head + CRASH_AT_VERSION, 1);
    head[CRASH_AT_CAUSE] = CRASH_ASSERTION;
    put_le32(head + CRASH_AT_LINE, 77);
    memset(head + CRASH_AT_BUILD_ID, 0xab, CRASH_BUILD_ID_LEN);
    put_le32(head + CRASH_AT_BOOT, 5);
    put_le64(head + CRASH_AT_TIME, 1500000000);
    put_le64(head + CRASH_AT_MCAUSE, 7);
    put_le64(head + CRASH_AT_MTVAL, 0x10);
    memcpy(head + CRASH_AT_FIRMWARE, "0.1.0", 5);
    memcpy(head + CRASH_AT_TEXT, "x.c: is_sound", 13);
    for (unsigned int i = 0; i < CRASH_REGISTERS; i++) {
        put_le64(registers + 8 * (size_t)i, 0x100 + i);
    }
    section_put(&writer, "crash", head, sizeof(head));
    section_put(&writer, "hart0", registers, sizeof(registers));
    dump_len = writer.len;
    dumps = 2;
    log_init(&console, sink);
    return 0;
}

static bool read_flash(void *ctx, uint32_t below, uint8_t *to, size_t *len,
                       uint32_t *number)
{
    assert_ptr_equal(ctx, &dumps);
    if (below == 1 || dumps == 0) {
        return false;
    }
    memcpy(to, dump, dump_len);
    *len = dump_len;
    *number = MIN(below - 1, dumps);
    return true;
}

static const char *print_crashes(void)
{
    const struct crash_store store = {.read = read_flash, .ctx = &dumps};

    crash_print(&console, &store, buf);
    text[log_tail(&console, text, sizeof(text) - 1)] = '\0';
    return text;
}

static void test_the_head_of_a_dump_is_read(void **state)
{
    struct crash_summary summary;

    (void)state;
    assert_true(crash_summarise(&summary, dump, dump_len));
    assert_int_equal(summary.cause, CRASH_ASSERTION);
    assert_int_equal(summary.line, 77);
    assert_int_equal(summary.boot, 5);
    assert_int_equal(summary.time_ns, 1500000000);
    assert_int_equal(summary.mcause, 7);
    assert_int_equal(summary.mtval, 0x10);
    assert_int_equal(summary.pc, 0x100);
    assert_int_equal(summary.ra, 0x101);
    assert_int_equal(summary.sp, 0x102);
    assert_string_equal(summary.version, "0.1.0");
    assert_string_equal(summary.text, "x.c: is_sound");
}

static void test_every_truncation_is_refused(void **state)
{
    struct crash_summary summary;

    (void)state;
    for (size_t len = 0; len < dump_len; len++) {
        assert_false(crash_summarise(&summary, dump, len));
    }
}

static void test_texts_without_an_end_are_ended(void **state)
{
    struct crash_summary summary;

    (void)state;
    memset(dump + SECTION_HEADER + CRASH_AT_FIRMWARE, 'v',
           CRASH_VERSION_LEN + CRASH_TEXT_LEN);
    assert_true(crash_summarise(&summary, dump, dump_len));
    assert_int_equal(strlen(summary.version), CRASH_VERSION_LEN);
    assert_int_equal(strlen(summary.text), CRASH_TEXT_LEN);
}

static void test_too_few_registers_or_a_short_head_are_refused(void **state)
{
    static const uint8_t zeroes[8 * CRASH_REGISTERS];
    struct crash_summary summary;
    struct section_writer writer = {.buf = dump, .size = sizeof(dump)};

    (void)state;
    /* The head of the whole dump stays where it is. */
    writer.len = SECTION_HEADER + CRASH_HEAD_LEN;
    section_put(&writer, "hart0", zeroes, sizeof(zeroes) - 4);
    assert_false(crash_summarise(&summary, dump, writer.len));
    writer.len = SECTION_HEADER + CRASH_HEAD_LEN;
    section_put(&writer, "hart0", zeroes, sizeof(zeroes));
    assert_true(crash_summarise(&summary, dump, writer.len));
    writer.len = 0;
    section_put(&writer, "crash", zeroes, CRASH_HEAD_LEN - 4);
    section_put(&writer, "hart0", zeroes, sizeof(zeroes));
    assert_false(crash_summarise(&summary, dump, writer.len));
}

static void test_a_dump_of_another_version_is_refused(void **state)
{
    struct crash_summary summary;

    (void)state;
    put_le16(dump + SECTION_HEADER + CRASH_AT_VERSION, 2);
    assert_false(crash_summarise(&summary, dump, dump_len));
}

static void test_causes_that_can_be_provoked_have_names(void **state)
{
    static const struct {
        const char *name;
        enum crash_cause cause;
    } rows[] = {{"assertion", CRASH_ASSERTION},
                {"trap", CRASH_TRAP},
                {"watchdog", CRASH_WATCHDOG}};
    enum crash_cause cause;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_true(crash_cause_parse(rows[i].name, &cause));
        assert_int_equal(cause, rows[i].cause);
        assert_string_equal(crash_cause_name(cause), rows[i].name);
    }
    assert_false(crash_cause_parse("memory", &cause));
    assert_false(crash_cause_parse("", &cause));
    assert_string_equal(crash_cause_name(CRASH_MEMORY), "memory");
    assert_string_equal(crash_cause_name((enum crash_cause)0), "unknown");
    assert_string_equal(crash_cause_name((enum crash_cause)5), "unknown");
}

static void test_a_summary_as_json(void **state)
{
    struct crash_summary summary;
    char json_text[1024];
    struct json json;

    (void)state;
    assert_true(crash_summarise(&summary, dump, dump_len));
    json_init(&json, json_text, sizeof(json_text));
    json_begin_object(&json, NULL);
    crash_put_summary(&json, 9, &summary);
    json_end_object(&json);
    json_text[json.len] = '\0';
    assert_string_equal(
        json_text,
        "{\"number\":9,\"cause\":\"assertion\",\"text\":\"x.c: is_sound\","
        "\"line\":77,\"mcause\":7,\"mtval\":16,\"pc\":256,\"ra\":257,"
        "\"boot\":5,\"time-ns\":1500000000,\"firmware\":\"0.1.0\","
        "\"build-id\":\"abababababababababababababababababababab\"}");
}

static void test_the_console_shows_all_dumps_the_newest_first(void **state)
{
    (void)state;
    assert_string_equal(
        print_crashes(),
        "crash 2: assertion, boot 5, 1.500 s after its reset, firmware 0.1.0, "
        "build abababababab\r\n"
        "  line 77 of x.c: is_sound\r\n"
        "  pc 0x100, ra 0x101, sp 0x102\r\n"
        "crash 1: assertion, boot 5, 1.500 s after its reset, firmware 0.1.0, "
        "build abababababab\r\n"
        "  line 77 of x.c: is_sound\r\n"
        "  pc 0x100, ra 0x101, sp 0x102\r\n"
        "essd dump shows the functions, lines and variables\r\n");
}

static void test_a_trap_is_shown_with_its_cause(void **state)
{
    (void)state;
    dumps = 1;
    dump[SECTION_HEADER + CRASH_AT_CAUSE] = CRASH_MEMORY;
    assert_non_null(strstr(print_crashes(), "crash 1: memory, boot 5"));
    assert_non_null(strstr(text, "  mcause 7, mtval 0x10\r\n"));
}

static void test_flash_without_a_dump_is_said(void **state)
{
    const struct crash_store none = {0};

    (void)state;
    dumps = 0;
    assert_string_equal(print_crashes(), "no crash is recorded\r\n");
    crash_print(&console, &none, buf);
}

TEST_FIXTURE(make_dump, NULL)
