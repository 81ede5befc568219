/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/settings/config_text.h"

#include <limits.h>
#include <string.h>

#include "firmware/settings/config_value.h"
#include "firmware/hal/log.h"

enum { KEY_COMPARED = 40 }; /* characters of an unknown key that are compared */

/* ---- The list, made from settings.toml */

#define OFFSET_OF(field) offsetof(struct config, field)
#define SIZE_OF(field)   sizeof(((const struct config *)NULL)->field)

static const struct config_row rows[] = {
#include "firmware/settings/config_rows.inc"
};

/*
 * The keys "port.#." are listed port by port, "address.#." address by address.
 */
static const struct group {
    const char *prefix;
    uint8_t count;
    const char *too_many;
} groups[] = {
#include "firmware/settings/config_groups.inc"
};

enum { COUNT_GROUPS = ARRAY_LEN(groups) };

/* The group of a row that has a stride; NULL when the row is in no group. */
static const struct group *group_of(const struct config_row *row)
{
    if (row->stride == 0) {
        return NULL;
    }
    return &groups[row->name[0] == groups[0].prefix[0] ? 0 : 1];
}

/* ---- Numbers of keys: row by row; within a group, number by number. */

struct place {
    const struct config_row *row;
    uint8_t number;
};

static unsigned int rows_of(const struct group *group, size_t first)
{
    unsigned int count = 0;

    while (first + count < ARRAY_LEN(rows) &&
           group_of(&rows[first + count]) == group) {
        count++;
    }
    return count;
}

/*
 * Find the row and number of key `index`.
 * @return false when `index` is too high
 */
static bool place_of(unsigned int index, struct place *place)
{
    for (size_t first = 0; first < ARRAY_LEN(rows);) {
        const struct group *group = group_of(&rows[first]);
        unsigned int width = rows_of(group, first);
        unsigned int all = width * (group != NULL ? group->count : 1);

        if (index < all) {
            place->row = &rows[first + index % width];
            place->number = (uint8_t)(index / width);
            return true;
        }
        index -= all;
        first += width;
    }
    return false;
}

static void key_format(const struct place *place, struct config_line *line)
{
    const char *mark = strchr(place->row->name, '#');
    size_t len;

    log_format(line->key, sizeof(line->key), "%s", place->row->name);
    if (mark != NULL) {
        len = (size_t)(mark - place->row->name);
        line->key[len] = (char)('0' + place->number);
    }
}

unsigned int config_text_count(void)
{
    struct place place;
    unsigned int count = 0;

    while (place_of(count, &place)) {
        count++;
    }
    return count;
}

static void get_value(const struct config *config, const struct place *place,
                      struct config_line *line)
{
    key_format(place, line);
    place->row->kind->format(place->row,
                             (const uint8_t *)config + place->row->at +
                                 place->number * place->row->stride,
                             line);
}

void config_text_get(const struct config *config, unsigned int index,
                     struct config_line *line)
{
    struct place place;

    ASSERT(place_of(index, &place));
    get_value(config, &place, line);
}

/*
 * Levenshtein's distance: how many characters have to be inserted, removed or
 * replaced to make `known` of the first KEY_COMPARED characters of `key`.
 */
static unsigned int key_distance(const char *key, const char *known)
{
    /* Distances to each prefix of `known`. */
    unsigned int row[CONFIG_KEY_MAX + 1];
    size_t len = strlen(known);

    for (size_t i = 0; i <= len; i++) {
        row[i] = (unsigned int)i;
    }
    for (size_t i = 0; i < KEY_COMPARED && key[i] != '\0'; i++) {
        unsigned int diagonal = row[0];

        row[0]++;
        for (size_t k = 1; k <= len; k++) {
            unsigned int replaced = diagonal + (key[i] != known[k - 1]);

            diagonal = row[k];
            row[k] = MIN(MIN(row[k], row[k - 1]) + 1, replaced);
        }
    }
    return row[len];
}

/*
 * Whether `key` is the group or the last word of `known`: "lag" and "lag.mode".
 */
static bool key_is_part(const char *known, const char *key)
{
    size_t len = strlen(key);
    size_t known_len = strlen(known);

    return len < known_len &&
           ((strncmp(known, key, len) == 0 && known[len] == '.') ||
            (strcmp(known + known_len - len, key) == 0 &&
             known[known_len - len - 1] == '.'));
}

/* Find the first key that `key` is a part of, else the most similar key. */
static void nearest_key(const char *key, struct config_line *nearest)
{
    unsigned int least = UINT_MAX;
    struct place place;

    for (unsigned int i = 0; place_of(i, &place); i++) {
        struct config_line line;
        unsigned int distance;

        key_format(&place, &line);
        distance = key_is_part(line.key, key) ? 0 : key_distance(key, line.key);
        if (distance < least) {
            least = distance;
            *nearest = line;
        }
    }
}

/*
 * Explain why there is no such key: its number is too high or missing, or the
 * key is unknown.
 */
static void explain_key(const char *key, struct config_error *error)
{
    struct config_line nearest;

    for (size_t i = 0; i < COUNT_GROUPS; i++) {
        /* Length of the prefix up to its first dot. */
        size_t len = strlen(groups[i].prefix) - 2;

        if (strncmp(key, groups[i].prefix, len) == 0 && key[len] >= '0' &&
            key[len] <= '9') {
            bool is_known = key[len] < '0' + groups[i].count &&
                            (key[len + 1] == '.' || key[len + 1] == '\0');

            if (!is_known) {
                log_format(error->text, sizeof(error->text), "%.40s: %s", key,
                           groups[i].too_many);
                return;
            }
        }
    }
    nearest_key(key, &nearest);
    log_format(error->text, sizeof(error->text),
               "there is no key %.40s; the nearest is %s", key, nearest.key);
}

/* Whether `key` is the row's name with a digit in the place of '#'. */
static bool is_key_of(const struct config_row *row, const char *key,
                      uint8_t *number)
{
    const struct group *group = group_of(row);
    size_t mark = group != NULL ? strlen(group->prefix) - 2 : 0;

    *number = 0;
    if (group == NULL) {
        return strcmp(row->name, key) == 0;
    }
    if (strncmp(row->name, key, mark) != 0 || key[mark] < '0' ||
        key[mark] >= '0' + group->count) {
        return false;
    }
    *number = (uint8_t)(key[mark] - '0');
    return strcmp(row->name + mark + 1, key + mark + 1) == 0;
}

static bool find_key(const char *key, struct place *place,
                     struct config_error *error)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (is_key_of(&rows[i], key, &place->number)) {
            place->row = &rows[i];
            return true;
        }
    }
    explain_key(key, error);
    return false;
}

bool config_text_find(const struct config *config, const char *key,
                      struct config_line *line, struct config_error *error)
{
    struct place place;

    if (!find_key(key, &place, error)) {
        return false;
    }
    get_value(config, &place, line);
    return true;
}

bool config_text_is_live(const char *key)
{
    struct config_error error;
    struct place place;

    return find_key(key, &place, &error) && place.row->is_live;
}

bool config_text_set(struct config *config, const char *key, const char *value,
                     struct config_error *error)
{
    struct place place;
    const struct config_row *row;

    if (!find_key(key, &place, error)) {
        return false;
    }
    row = place.row;
    if (!row->kind->parse(
            row, (uint8_t *)config + row->at + place.number * row->stride,
            value)) {
        log_format(error->text, sizeof(error->text), "%s: %.60s is not %s", key,
                   value, row->allowed);
        return false;
    }
    return true;
}
