/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log: lines with a time stamp in a ring. log_poll() moves as many
 * characters from the ring to the log's sink as the sink takes.  Only
 * log_flush() waits.  A line that finds the ring full is dropped, and its bytes
 * are counted.
 *
 * Formats: %s %c %d %u %x %lu %ld %lx %zu %p %%, with width, 0 and -; %s with a
 * precision.
 */
#ifndef ESSD_HAL_LOG_H
#define ESSD_HAL_LOG_H

#include "lib/util.h"

#include <stdarg.h>

#define LOG_RING_BYTES 8192 /* a power of two */

/*
 * Takes the log's characters.  On the drive, the sink is the UART
 * (drivers/uart.h).
 */
struct log_sink {
    void *ctx;
    /*
     * Take as many of the `len` bytes as fit now.
     * @return the number of bytes
     */
    size_t (*write)(void *ctx, const char *text, size_t len);
    /* Wait until everything that was written has been sent. */
    void (*drain)(void *ctx);
};

struct log {
    struct log_sink sink;
    uint32_t head;    /* bytes written so far; wraps at 2^32 */
    uint32_t tail;    /* bytes sent so far; wraps at 2^32 */
    uint32_t dropped; /* bytes lost because the ring was full */
    bool is_mid_line; /* the last character was not a line end */
    char ring[LOG_RING_BYTES];
};

void log_init(struct log *log, struct log_sink sink);

/*
 * Write one line: "[seconds.microseconds] text" and a line end.  If the
 * console's prompt or a partly typed line stands on the current line, the log
 * line begins on a new one.
 */
void log_line(struct log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void log_vline(struct log *log, const char *format, va_list args);

/* Write a line without a time stamp: for answers on the console. */
void log_text(struct log *log, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Write characters unchanged: all of them, or none when the ring is full. */
void log_raw(struct log *log, const char *text, size_t len);

/*
 * Hand up to `max` characters to the sink, as many as it takes now.
 * @return the number of characters that it took
 */
size_t log_poll(struct log *log, size_t max);

/* Whether everything has been handed to the sink. */
bool log_is_empty(const struct log *log);

/**
 * Copy the newest characters of the log, sent or not, without consuming them.
 * @return the number of characters: at most `size`, and LOG_RING_BYTES
 */
size_t log_tail(const struct log *log, char *buf, size_t size);

/* Wait until everything has been sent. */
void log_flush(struct log *log);

/**
 * The log's formatter, for other texts: writes at most size - 1 bytes and a
 * zero byte.
 *
 * @param size  at least 1
 * @return the length of the text without the zero byte, at most size - 1
 */
size_t log_format(char *buf, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
size_t log_vformat(char *buf, size_t size, const char *format, va_list args);

#endif
