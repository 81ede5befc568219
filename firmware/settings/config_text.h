/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The configuration as keys and values in text, as the console shows and takes
 * it, and `essd config` as YAML.
 * Reference: settings.toml, from which the list of keys is made;
 * docs/configuration.md
 */
#ifndef ESSD_SETTINGS_CONFIG_TEXT_H
#define ESSD_SETTINGS_CONFIG_TEXT_H

#include "firmware/store/config.h"

enum {
    CONFIG_KEY_MAX = 23, /* characters */
    CONFIG_VALUE_MAX = 49,
    CONFIG_ERROR_MAX = 199,
};

struct config_line {
    char key[CONFIG_KEY_MAX + 1];
    char value[CONFIG_VALUE_MAX + 1]; /* without spaces, not empty */
};

struct config_error {
    char text[CONFIG_ERROR_MAX + 1];
};

/** How many keys there are. */
unsigned int config_text_count(void);

/** Key number `index`, in the order of the list, and its value. */
void config_text_get(const struct config *config, unsigned int index,
                     struct config_line *line);

/** @return false when there is no such key; `error` then names the nearest */
MUST_USE bool config_text_find(const struct config *config, const char *key,
                               struct config_line *line,
                               struct config_error *error);

/** Whether a change of that key takes effect at once, not at the next start. */
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
