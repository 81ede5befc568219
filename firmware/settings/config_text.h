/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration as keys and values in text, for the console and for the
 * YAML files of `essd config`.
 * Reference: settings.toml, from which the list of keys is made;
 * docs/configuration.md
 */
#ifndef ESSD_SETTINGS_CONFIG_TEXT_H
#define ESSD_SETTINGS_CONFIG_TEXT_H

#include "firmware/store/config.h"

enum {
    CONFIG_KEY_MAX = 23, /* in characters */
    CONFIG_VALUE_MAX = 49,
    CONFIG_ERROR_MAX = 199,
};

struct config_line {
    char key[CONFIG_KEY_MAX + 1];
    char value[CONFIG_VALUE_MAX + 1]; /* not empty, without spaces */
};

struct config_error {
    char text[CONFIG_ERROR_MAX + 1];
};

/** The number of keys. */
unsigned int config_text_count(void);

/**
 * Write the key with number `index` in the list, and its value, into `line`.
 */
void config_text_get(const struct config *config, unsigned int index,
                     struct config_line *line);

/**
 * Find a key and its value.
 * @return false when there is no such key; `error` then names the nearest one
 */
MUST_USE bool config_text_find(const struct config *config, const char *key,
                               struct config_line *line,
                               struct config_error *error);

/** Whether a change of that key takes effect at once, without a restart. */
MUST_USE bool config_text_is_live(const char *key);

/**
 * Set one value after checking its range; config_check() checks consistency.
 *
 * @return false when the value is refused: `error` has the reason, and `config`
 *         is unchanged
 */
MUST_USE bool config_text_set(struct config *config, const char *key,
                              const char *value, struct config_error *error);

#endif
