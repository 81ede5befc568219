/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/hal/log.h"

#include "firmware/hal/time.h"

#include <string.h>

#define LINE_BYTES 256
#define TEXT_BYTES (LINE_BYTES - 2) /* a line without its end */

static void ring_write(struct log *log, const char *text, size_t len)
{
    if (LOG_RING_BYTES - (log->head - log->tail) < len) {
        log->dropped += (uint32_t)len;
        return;
    }
    for (size_t i = 0; i < len; i++) {
        log->ring[log->head++ % LOG_RING_BYTES] = text[i];
    }
    if (len != 0) {
        log->is_mid_line = text[len - 1] != '\n';
    }
}

void log_init(struct log *log, struct log_sink sink)
{
    log->sink = sink;
    log->head = 0;
    log->tail = 0;
    log->dropped = 0;
    log->is_mid_line = false;
}

void log_raw(struct log *log, const char *text, size_t len)
{
    ring_write(log, text, len);
}

/* Write a line.  `line` has room for a line end after `len` characters. */
static void write_line(struct log *log, char *line, size_t len)
{
    line[len++] = '\r';
    line[len++] = '\n';
    ring_write(log, line, len);
}

void log_text(struct log *log, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    size_t len;

    va_start(args, format);
    len = log_vformat(line, TEXT_BYTES, format, args);
    va_end(args);
    write_line(log, line, len);
}

void log_vline(struct log *log, const char *format, va_list args)
{
    uint64_t us = hal_now_us();
    char line[LINE_BYTES];
    size_t len = log_format(
        line, TEXT_BYTES, "%s[%4lu.%06lu] ", log->is_mid_line ? "\r\n" : "",
        (unsigned long)(us / 1000000), (unsigned long)(us % 1000000));

    len += log_vformat(line + len, TEXT_BYTES - len, format, args);
    write_line(log, line, len);
}

void log_line(struct log *log, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_vline(log, format, args);
    va_end(args);
}

size_t log_poll(struct log *log, size_t max)
{
    size_t total = 0;

    while (log->tail != log->head && total < max) {
        uint32_t at = log->tail % LOG_RING_BYTES;
        uint32_t len = MIN(log->head - log->tail, LOG_RING_BYTES - at);
        size_t wanted = MIN((size_t)len, max - total);
        size_t sent = log->sink.write(log->sink.ctx, log->ring + at, wanted);

        log->tail += (uint32_t)sent;
        total += sent;
        if (sent < wanted) {
            break;
        }
    }
    return total;
}

size_t log_tail(const struct log *log, char *buf, size_t size)
{
    uint32_t n = MIN(log->head, (uint32_t)LOG_RING_BYTES);

    n = MIN(n, (uint32_t)size);
    for (uint32_t i = 0; i < n; i++) {
        buf[i] = log->ring[(log->head - n + i) % LOG_RING_BYTES];
    }
    return n;
}

bool log_is_empty(const struct log *log)
{
    return log->tail == log->head;
}

void log_flush(struct log *log)
{
    while (!log_is_empty(log)) {
        (void)log_poll(log, LOG_RING_BYTES);
    }
    log->sink.drain(log->sink.ctx);
}
