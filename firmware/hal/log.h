/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log: lines with a time stamp, in a ring that log_poll() empties as fast
 * as the log's sink takes characters.  Only log_flush() waits.  A line that
 * finds the ring full is dropped, and its bytes are counted.
 *
 * Formats: %s %c %d %u %x %lu %ld %lx %zu %p %%, with width, 0 and -; %s with
 * a precision.
 */
#ifndef ESSD_HAL_LOG_H
#define ESSD_HAL_LOG_H

#include "lib/util.h"

#include <stdarg.h>

#define LOG_RING_BYTES 8192 /* a power of two */

/* Where the characters go: on the drive, to the UART (drivers/uart.h). */
struct log_sink {
    void *ctx;
    /* Take as many of the `len` bytes as fit now. @return how many that was */
    size_t (*write)(void *ctx, const char *text, size_t len);
    /* Wait until everything that was written has left. */
    void (*drain)(void *ctx);
};

struct log {
    struct log_sink sink;
    uint32_t head;    /* next byte to write, counts on */
    uint32_t tail;    /* next byte to send, counts on */
    uint32_t dropped; /* bytes that found the ring full */
    bool is_mid_line; /* the last character was not a line end */
    char ring[LOG_RING_BYTES];
};

void log_init(struct log *log, struct log_sink sink);

/*
 * One line: "[seconds.microseconds] text" and a line end.  It begins at the
 * beginning of a line, even if the console's prompt or half of a typed line
 * stands there: the terminal goes to a new line first.
 */
void log_line(struct log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void log_vline(struct log *log, const char *format, va_list args);

/* The same without a time stamp: answers to whoever sits at the console. */
void log_text(struct log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Characters as they are; all or, when the ring is full, none. */
void log_raw(struct log *log, const char *text, size_t len);

/* Hand up to `max` characters to the sink, as many as it takes now.
 * @return how many it took */
size_t log_poll(struct log *log, size_t max);

/* Everything has been handed to the sink. */
bool log_is_empty(const struct log *log);

/* Wait until everything has left. */
void log_flush(struct log *log);

/**
 * The formatter behind the log, for other texts: writes at most size - 1 bytes
 * and a zero byte.
 *
 * @param size  at least 1
 * @return the length of the text without the zero byte, cut to size - 1
 */
size_t log_format(char *buf, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
size_t log_vformat(char *buf, size_t size, const char *format, va_list args);

#endif
