/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader of one flat JSON object (RFC 8259): strings, whole numbers from 0 to
 * 2^64 - 1, true, false, null.
 *
 * Nested objects and arrays, fractions, negative numbers and characters beyond
 * ASCII are refused.
 */
#ifndef ESSD_MGMT_JSON_READ_H
#define ESSD_MGMT_JSON_READ_H

#include "lib/util.h"

enum { JSON_MEMBERS = 24 };

enum json_kind { JSON_STRING, JSON_NUMBER, JSON_BOOL, JSON_NULL };

struct json_member {
    const char *key;
    enum json_kind kind;
    const char *text; /* of a JSON_STRING */
    uint64_t number;  /* of a JSON_NUMBER; 0 or 1 for a JSON_BOOL */
};

struct json_args {
    struct json_member member[JSON_MEMBERS];
    unsigned int count;
};

/**
 * Read an object.  This changes `text`, and the members point into it.
 *
 * @param text  NUL terminated
 * @return false when the text is not such an object or has more than
 *         JSON_MEMBERS members
 */
MUST_USE bool json_parse(struct json_args *args, char *text);

/**
 * Find a member by its key.
 * @return NULL when there is none
 */
const struct json_member *json_find(const struct json_args *args,
                                    const char *key);

/**
 * The text of a member; `otherwise` when there is none or it is not a string.
 */
const char *json_get_string(const struct json_args *args, const char *key,
                            const char *otherwise);

/**
 * The number of a member; `otherwise` when there is none or it is not a number.
 */
uint64_t json_get_number(const struct json_args *args, const char *key,
                         uint64_t otherwise);

/** Whether there is no such member, or it is a number. */
bool json_is_number_or_absent(const struct json_args *args, const char *key);

#endif
