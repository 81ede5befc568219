/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A writer of JSON (RFC 8259) into a buffer of the caller.
 *
 * Members and elements are written in the order of the calls; `key` is NULL for
 * an element of an array.  When the text does not fit, is_cut becomes true and
 * the text is unusable.
 */
#ifndef ESSD_MGMT_JSON_WRITE_H
#define ESSD_MGMT_JSON_WRITE_H

#include "lib/util.h"

struct json {
    char *buf;
    size_t size;
    size_t len;
    bool needs_comma;
    bool is_cut;
};

/** Begin a text in an empty buffer. */
void json_init(struct json *json, char *buf, size_t size);

void json_begin_object(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_begin_array(struct json *json, const char *key);
void json_end_array(struct json *json);

void json_number(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

/** Write a string; characters other than printable ASCII become '?'. */
void json_string(struct json *json, const char *key, const char *text);
void json_string_len(struct json *json, const char *key, const char *text,
                     size_t len);

#endif
