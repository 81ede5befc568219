/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the values of a configuration go together: checked as a whole before
 * it is saved, by whatever way it came.  Each value by itself is in its range
 * already, see config_body_parse() and config_text_set().
 * Reference: docs/configuration.md, "What has to go together"
 */
#ifndef ESSD_SETTINGS_CONFIG_CHECK_H
#define ESSD_SETTINGS_CONFIG_CHECK_H

#include "firmware/settings/config_text.h"

/* Told once a mistake. */
typedef void config_mistake(void *ctx, const char *text);

/** @return how many mistakes there are */
unsigned int config_check(const struct config *config, config_mistake *tell,
                          void *ctx);

#endif
