/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/console/console.h"

#include <string.h>

#include "firmware/console/console_commands.h"
#include "firmware/console/console_hosts.h"
#include "firmware/requests/parts.h"

enum {
    POLL_US = 50000,
    WORDS_MAX = 8,
    BACKSPACE = '\b',
    DELETE = 127,
    CONTROL_C = 3,
};

static const char prompt[] = "essd> ";

#define say(console, ...) log_text((console)->log, __VA_ARGS__)

static unsigned int split_words(char *line, char **words)
{
    unsigned int count = 0;

    for (;;) {
        while (*line == ' ') {
            *line++ = '\0';
        }
        if (*line == '\0' || count == WORDS_MAX) {
            return count;
        }
        words[count++] = line;
        while (*line != ' ' && *line != '\0') {
            line++;
        }
    }
}

/* ---- Lines */

static void run_line(struct console *console)
{
    char *words[WORDS_MAX] = {0};
    unsigned int count = split_words(console->line, words);

    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < CONSOLE_COMMANDS; i++) {
        const struct console_command *command = &console_commands[i];

        if (strcmp(words[0], command->name) != 0) {
            continue;
        }
        if (count < command->words_min || count > command->words_max) {
            say(console, "error: %s %s", command->name, command->arguments);
            return;
        }
        command->run(console, words, count);
        return;
    }
    say(console, "error: there is no command %s; try help", words[0]);
}

/* Whether the last command waits for transfers. */
static bool is_command_running(const struct console *console)
{
    return console_i2c_is_busy(&console->i2c) ||
           console_phy_is_busy(&console->phy);
}

static void end_line(struct console *console)
{
    log_raw(console->log, "\r\n", 2);
    console->line[console->len] = '\0';
    if (console->is_too_long) {
        say(console, "error: a line has at most %u characters",
            CONSOLE_LINE_MAX);
    } else {
        run_line(console);
    }
    console->len = 0;
    console->is_too_long = false;
    console->is_waiting = is_command_running(console);
    if (!console->is_waiting) {
        log_raw(console->log, prompt, sizeof(prompt) - 1);
    }
}

static void erase_character(struct console *console)
{
    if (console->len != 0) {
        console->len--;
        log_raw(console->log, "\b \b", 3);
    }
}

static void take_character(struct console *console, char c)
{
    bool was_return = console->was_return;

    console->was_return = c == '\r';
    if (c == '\r' || (c == '\n' && !was_return)) {
        end_line(console);
    } else if (c == BACKSPACE || c == DELETE) {
        erase_character(console);
    } else if (c == CONTROL_C) {
        console->len = 0;
        end_line(console);
    } else if (c >= ' ' && c < DELETE) {
        console->is_too_long |= console->len == CONSOLE_LINE_MAX;
        if (!console->is_too_long) {
            bool is_secret = c != ' ' && console_hosts_is_secret(console->line,
                                                                 console->len);

            console->line[console->len++] = c;
            log_raw(console->log, is_secret ? "*" : &c, 1);
        }
    }
}

void console_wake(struct console *console)
{
    console->poll_us = 0;
}

bool console_step(struct console *console, uint64_t now_us, uint32_t budget)
{
    char c;

    if (console->is_waiting) {
        if (is_command_running(console)) {
            return false;
        }
        console->is_waiting = false;
        log_raw(console->log, prompt, sizeof(prompt) - 1);
    }
    if (now_us < console->poll_us) {
        return false;
    }
    for (uint32_t i = 0; i < budget; i++) {
        if (!uart_read(console->uart, &c)) {
            console->poll_us = now_us + POLL_US;
            return i != 0;
        }
        take_character(console, c);
        if (console->is_waiting) {
            break;
        }
    }
    return true; /* the next turn continues */
}

void console_init(struct console *console, struct uart *uart,
                  const struct request_parts *parts)
{
    *console =
        (struct console){.uart = uart, .log = parts->log, .parts = parts};
    uart_irq_enable(uart);
}
