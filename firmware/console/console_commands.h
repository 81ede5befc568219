/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the console's commands: docs/console.md. */
#ifndef ESSD_CONSOLE_CONSOLE_COMMANDS_H
#define ESSD_CONSOLE_CONSOLE_COMMANDS_H

#include <stdint.h>

struct console;

struct console_command {
    const char *name;
    const char *arguments;
    const char *help;
    uint8_t words_min; /* the name included */
    uint8_t words_max;
    void (*run)(struct console *console, char **words, unsigned int count);
};

enum { CONSOLE_COMMANDS = 17 };

extern const struct console_command console_commands[CONSOLE_COMMANDS];

#endif
