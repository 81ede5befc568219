/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines on standard error; a peer cannot have many of them written. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "program.h"

enum { LINES = 20 };
static const uint64_t interval_ns = 10000000000;

void log_line(const char *format, ...)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    char text[1024];
    va_list args;

    /* A line that nobody reads is left out rather than waited for. */
    if (poll(&out, 1, 0) == 0) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)fprintf(stderr, "essd-switch: %s\n", text);
}

static bool log_may_write(struct program *program, struct port *port)
{
    if (program->now_ns >= port->lines_ns) {
        port->lines_ns = program->now_ns + interval_ns;
        port->lines_left = LINES;
    }
    if (port->lines_left == 0) {
        return false;
    }
    port->lines_left--;
    return true;
}

void log_port(struct program *program, uint8_t number, const char *format, ...)
{
    struct port *port = &program->ports[number];
    char text[900];
    va_list args;

    if (!log_may_write(program, port)) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    log_line("port %u (%s): %s%s", number, port->options.name, text,
             port->lines_left == 0 ? "; further lines about this port are left "
                                     "out for up to 10 s"
                                   : "");
}
