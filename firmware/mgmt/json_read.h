/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader of one flat JSON object (RFC 8259): strings, whole numbers from 0
 * to 2^64 - 1, true, false, null.
 *
 * Left out, and refused: nested objects and arrays, fractions, negative
 * numbers, characters beyond ASCII.
 */
#ifndef ESSD_MGMT_JSON_READ_H
#define ESSD_MGMT_JSON_READ_H

#include "lib/util.h"

enum { JSON_MEMBERS = 12 };

enum json_kind { JSON_STRING, JSON_NUMBER, JSON_BOOL, JSON_NULL };

struct json_member {
    const char *key;
    enum json_kind kind;
    const char *text; /* of JSON_STRING */
    uint64_t number;  /* of JSON_NUMBER; of JSON_BOOL 0 or 1 */
};

struct json_args {
    struct json_member member[JSON_MEMBERS];
    unsigned int count;
};

/**
 * Read an object.  `text` is changed, and the members point into it.
 *
 * @param text  NUL terminated
 * @return false when it is anything else, or has more than JSON_MEMBERS
 */
MUST_USE bool json_parse(struct json_args *args, char *text);

/** A member by its key, or NULL. */
const struct json_member *json_find(const struct json_args *args,
                                    const char *key);

/** A member's text; `otherwise` when there is none or it is no string. */
const char *json_get_string(const struct json_args *args, const char *key,
                            const char *otherwise);

/** A member's number; `otherwise` when there is none or it is no number. */
uint64_t json_get_number(const struct json_args *args, const char *key,
                         uint64_t otherwise);

#endif
