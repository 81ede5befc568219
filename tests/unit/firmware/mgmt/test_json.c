/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "firmware/mgmt/json_read.h"
#include "firmware/mgmt/json_write.h"

static bool parse_text(struct json_args *args, char *buf, const char *text)
{
    strcpy(buf, text);
    return json_parse(args, buf);
}

static void test_a_flat_object_is_read(void **state)
{
    struct json_args args;
    char buf[256];

    (void)state;
    assert_true(parse_text(&args, buf,
                           " { \"v\" : 1,\"request\":\"con\\\"f\\\\ig\", "
                           "\"a\":true,\"b\":false,\"c\":null,"
                           "\"n\":18446744073709551615 } \r"));
    assert_int_equal(args.count, 6);
    assert_int_equal(json_get_number(&args, "v", 0), 1);
    assert_string_equal(json_get_string(&args, "request", ""), "con\"f\\ig");
    assert_int_equal(json_find(&args, "a")->number, 1);
    assert_int_equal(json_find(&args, "b")->kind, JSON_BOOL);
    assert_int_equal(json_find(&args, "c")->kind, JSON_NULL);
    assert_true(json_get_number(&args, "n", 0) == UINT64_MAX);
    assert_null(json_find(&args, "d"));
    assert_string_equal(json_get_string(&args, "v", "none"), "none");
    assert_int_equal(json_get_number(&args, "request", 7), 7);
    assert_true(parse_text(&args, buf, "{}"));
    assert_int_equal(args.count, 0);
}

static void test_anything_but_a_flat_object_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "{",
        "}",
        "[]",
        "7",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,}",
        "{\"a\":1}x",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{\"a\":-1}",
        "{\"a\":01}",
        "{\"a\":1.5}",
        "{\"a\":18446744073709551616}",
        "{\"a\":{}}",
        "{\"a\":[1]}",
        "{\"a\":\"b}",
        "{\"a\":\"\\u0041\"}",
        "{\"a\":\"\\",
        "{\"a\":\"\x01\"}",
        "{\"a\":\"\xc3\xa4\"}",
        "{\"a\":trxe}",
        "{\"a\":nul",
        "{"
        "\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,"
        "\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,"
        "\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,\"a\":1,"
        "\"a\":1}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct json_args args;
        char buf[256];

        if (parse_text(&args, buf, wrong[i])) {
            fail_msg("taken: %s", wrong[i]);
        }
    }
}

static void test_every_truncation_is_refused(void **state)
{
    static const char whole[] =
        "{\"v\":1,\"request\":\"st\\\\atus\",\"t\":true}";

    (void)state;
    for (size_t len = 0; len < sizeof(whole) - 1; len++) {
        struct json_args args;
        char buf[sizeof(whole)];

        memcpy(buf, whole, len);
        buf[len] = '\0';
        assert_false(json_parse(&args, buf));
    }
}

static void write_all(struct json *json)
{
    json_begin_object(json, NULL);
    json_number(json, "n", UINT64_MAX);
    json_begin_array(json, "list");
    json_number(json, NULL, 0);
    json_bool(json, NULL, true);
    json_null(json, NULL);
    json_begin_object(json, NULL);
    json_end_object(json);
    json_end_array(json);
    json_string(json, "text", "a \"quoted\" \\ \n \x80");
    json_end_object(json);
}

static const char written[] =
    "{\"n\":18446744073709551615,\"list\":[0,true,null,{}],"
    "\"text\":\"a \\\"quoted\\\" \\\\ ? ?\"}";

static void test_written_text_is_json(void **state)
{
    struct json json;
    char buf[256];

    (void)state;
    json_init(&json, buf, sizeof(buf));
    write_all(&json);
    assert_false(json.is_cut);
    assert_int_equal(json.len, sizeof(written) - 1);
    assert_memory_equal(buf, written, json.len);
}

static void test_a_full_buffer_is_noticed_at_every_length(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof(written) - 1; size++) {
        struct json json;
        char buf[sizeof(written)];

        memset(buf, 0x5a, sizeof(buf));
        json_init(&json, buf, size);
        write_all(&json);
        assert_true(json.is_cut);
        assert_memory_equal(buf, written, size);
        assert_int_equal(buf[size], 0x5a);
    }
}
