/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that the values of a configuration are consistent, before it is saved.
 * The range of each single value was checked before, by config_body_parse() or
 * config_text_set().
 * Reference: docs/configuration.md, "What has to go together"
 */
#ifndef ESSD_SETTINGS_CONFIG_CHECK_H
#define ESSD_SETTINGS_CONFIG_CHECK_H

#include "firmware/settings/config_text.h"

/* Called once for each mistake. */
typedef void config_mistake(void *ctx, const char *text);

/** @return the number of mistakes */
unsigned int config_check(const struct config *config, config_mistake *tell,
                          void *ctx);

#endif
