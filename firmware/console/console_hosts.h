/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The console's `host` command: docs/console.md, "Commands".
 */
#ifndef ESSD_CONSOLE_CONSOLE_HOSTS_H
#define ESSD_CONSOLE_CONSOLE_HOSTS_H

#include "firmware/hal/log.h"
#include "firmware/hosts/host_table.h"

/** @param words  "host" and its arguments, `count` words in all; a secret among
 *                them is wiped */
void console_hosts(struct log *log, struct host_table *table, char **words,
                   unsigned int count);

/**
 * Whether the next character of a line belongs to a secret, so that an asterisk
 * is echoed instead of it.
 *
 * @param line  the characters before, `len` of them
 */
bool console_hosts_is_secret(const char *line, size_t len);

#endif
