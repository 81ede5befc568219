/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/mgmt/json_write.h"

#include <string.h>

void json_init(struct json *json, char *buf, size_t size)
{
    *json = (struct json){.buf = buf, .size = size};
}

static void put_char(struct json *json, char c)
{
    if (json->len == json->size) {
        json->is_cut = true;
        return;
    }
    json->buf[json->len++] = c;
}

static void put_quoted(struct json *json, const char *text, size_t len)
{
    put_char(json, '"');
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c == '"' || c == '\\') {
            put_char(json, '\\');
        }
        put_char(json, c >= ' ' && c <= '~' ? c : '?');
    }
    put_char(json, '"');
}

/* Write what precedes a value: a comma if needed, and the key. */
static void begin_value(struct json *json, const char *key)
{
    if (json->needs_comma) {
        put_char(json, ',');
    }
    json->needs_comma = true;
    if (key != NULL) {
        put_quoted(json, key, strlen(key));
        put_char(json, ':');
    }
}

static void put_word(struct json *json, const char *word)
{
    while (*word != '\0') {
        put_char(json, *word++);
    }
}

static void begin_nested(struct json *json, const char *key, char bracket)
{
    begin_value(json, key);
    put_char(json, bracket);
    json->needs_comma = false;
}

static void end_nested(struct json *json, char bracket)
{
    put_char(json, bracket);
    json->needs_comma = true;
}

void json_begin_object(struct json *json, const char *key)
{
    begin_nested(json, key, '{');
}

void json_end_object(struct json *json)
{
    end_nested(json, '}');
}

void json_begin_array(struct json *json, const char *key)
{
    begin_nested(json, key, '[');
}

void json_end_array(struct json *json)
{
    end_nested(json, ']');
}

void json_number(struct json *json, const char *key, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);

    begin_value(json, key);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    while (at < sizeof(digits)) {
        put_char(json, digits[at++]);
    }
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin_value(json, key);
    put_word(json, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
    begin_value(json, key);
    put_word(json, "null");
}

void json_string_len(struct json *json, const char *key, const char *text,
                     size_t len)
{
    begin_value(json, key);
    put_quoted(json, text, len);
}

void json_string(struct json *json, const char *key, const char *text)
{
    json_string_len(json, key, text, strlen(text));
}
