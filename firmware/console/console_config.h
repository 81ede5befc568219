/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The console's `config` command: docs/configuration.md, "On the console".
 */
#ifndef ESSD_CONSOLE_CONSOLE_CONFIG_H
#define ESSD_CONSOLE_CONSOLE_CONFIG_H

#include "firmware/settings/settings.h"

/** @param words  "config" and its arguments, `count` words in all */
void console_config(struct log *log, struct settings *settings, char **words,
                    unsigned int count);

#endif
