/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/mgmt/json_read.h"

#include <string.h>

static char *skip_space(char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n') {
        p++;
    }
    return p;
}

/*
 * The character that a backslash and `c` stand for; '\\0' for an unknown
 * escape.
 */
static char unescape_char(char c)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = c != '\0' ? strchr(from, c) : NULL;

    return at != NULL ? to[at - from] : '\0';
}

/*
 * Read a string: unescape it in place and terminate it.
 *
 * @return the text that follows the string, or NULL when it is malformed
 */
static char *parse_string(char *p, const char **text)
{
    char *to;

    if (*p++ != '"') {
        return NULL;
    }
    *text = to = p;
    for (; *p != '"'; p++) {
        char c = *p == '\\' ? unescape_char(*++p) : *p;

        if (c == '\0' || (unsigned char)*p < ' ' || (unsigned char)*p > '~') {
            return NULL; /* the text ends too early, or is not ASCII */
        }
        *to++ = c;
    }
    *to = '\0';
    return p + 1;
}

static char *parse_number(char *p, uint64_t *number)
{
    char *first = p;

    *number = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');

        if (*number > (UINT64_MAX - digit) / 10) {
            return NULL;
        }
        *number = *number * 10 + digit;
    }
    if (p == first || (*first == '0' && p != first + 1)) {
        return NULL;
    }
    return p;
}

static char *parse_word(char *p, const char *word)
{
    size_t len = strlen(word);

    return strncmp(p, word, len) == 0 ? p + len : NULL;
}

static char *parse_value(char *p, struct json_member *member)
{
    switch (*p) {
    case '"':
        member->kind = JSON_STRING;
        return parse_string(p, &member->text);
    case 't':
        member->kind = JSON_BOOL;
        member->number = 1;
        return parse_word(p, "true");
    case 'f':
        member->kind = JSON_BOOL;
        return parse_word(p, "false");
    case 'n':
        member->kind = JSON_NULL;
        return parse_word(p, "null");
    default:
        member->kind = JSON_NUMBER;
        return parse_number(p, &member->number);
    }
}

static char *parse_member(char *p, struct json_member *member)
{
    *member = (struct json_member){0};
    p = parse_string(skip_space(p), &member->key);
    if (p == NULL) {
        return NULL;
    }
    p = skip_space(p);
    return *p == ':' ? parse_value(skip_space(p + 1), member) : NULL;
}

bool json_parse(struct json_args *args, char *text)
{
    char *p = skip_space(text);
    char last = '{';

    args->count = 0;
    if (*p++ != '{') {
        return false;
    }
    if (*skip_space(p) == '}') {
        return *skip_space(skip_space(p) + 1) == '\0';
    }
    while (last != '}') {
        if (args->count == JSON_MEMBERS) {
            return false;
        }
        p = parse_member(p, &args->member[args->count]);
        if (p == NULL) {
            return false;
        }
        args->count++;
        p = skip_space(p);
        last = *p;
        if (last != ',' && last != '}') {
            return false;
        }
        p++;
    }
    return *skip_space(p) == '\0';
}

const struct json_member *json_find(const struct json_args *args,
                                    const char *key)
{
    for (unsigned int i = 0; i < args->count; i++) {
        if (strcmp(args->member[i].key, key) == 0) {
            return &args->member[i];
        }
    }
    return NULL;
}

const char *json_get_string(const struct json_args *args, const char *key,
                            const char *otherwise)
{
    const struct json_member *member = json_find(args, key);

    return member != NULL && member->kind == JSON_STRING ? member->text
                                                         : otherwise;
}

uint64_t json_get_number(const struct json_args *args, const char *key,
                         uint64_t otherwise)
{
    const struct json_member *member = json_find(args, key);

    return member != NULL && member->kind == JSON_NUMBER ? member->number
                                                         : otherwise;
}

bool json_is_number_or_absent(const struct json_args *args, const char *key)
{
    const struct json_member *member = json_find(args, key);

    return member == NULL || member->kind == JSON_NUMBER;
}
