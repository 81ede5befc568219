/* SPDX-License-Identifier: BSD-2-Clause */
/* The log's formatter: the few conversions that log.h names. */
#include "firmware/hal/log.h"

struct out {
    char *buf;
    size_t size;
    size_t len;
};

struct spec {
    bool zero;
    bool left;
    bool is_long;
    size_t width;
    size_t precision; /* SIZE_MAX: no precision given */
};

static void put_char(struct out *out, char c)
{
    if (out->len + 1 < out->size) {
        out->buf[out->len++] = c;
    }
}

static void put_padded(struct out *out, const char *s, size_t len,
                       const struct spec *spec)
{
    size_t pad = spec->width > len ? spec->width - len : 0;

    if (!spec->left) {
        if (spec->zero && len > 0 && s[0] == '-') {
            put_char(out, *s++);
            len--;
        }
        for (; pad > 0; pad--) {
            put_char(out, spec->zero ? '0' : ' ');
        }
    }
    for (size_t i = 0; i < len; i++) {
        put_char(out, s[i]);
    }
    for (; pad > 0; pad--) {
        put_char(out, ' ');
    }
}

static void put_number(struct out *out, uint64_t value, uint32_t base,
                       bool negative, const struct spec *spec)
{
    char digits[24];
    size_t at = sizeof(digits);

    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    if (negative) {
        digits[--at] = '-';
    }
    put_padded(out, digits + at, sizeof(digits) - at, spec);
}

static void put_string(struct out *out, const char *s, const struct spec *spec)
{
    size_t len = 0;

    while (len < spec->precision && s[len] != '\0') {
        len++;
    }
    put_padded(out, s, len, spec);
}

static const char *parse_spec(struct spec *spec, const char *f, va_list *args)
{
    *spec = (struct spec){.precision = SIZE_MAX};
    for (; *f == '0' || *f == '-'; f++) {
        spec->zero |= *f == '0';
        spec->left |= *f == '-';
    }
    for (; *f >= '0' && *f <= '9'; f++) {
        spec->width = spec->width * 10 + (size_t)(*f - '0');
    }
    if (*f == '.' && f[1] == '*') {
        spec->precision = (size_t)va_arg(*args, int);
        f += 2;
    } else if (*f == '.') {
        spec->precision = 0;
        for (f++; *f >= '0' && *f <= '9'; f++) {
            spec->precision = spec->precision * 10 + (size_t)(*f - '0');
        }
    }
    for (; *f == 'l' || *f == 'z'; f++) {
        spec->is_long = true;
    }
    return f;
}

static void put_signed(struct out *out, const struct spec *spec, va_list *args)
{
    int64_t v = spec->is_long ? va_arg(*args, long) : va_arg(*args, int);

    put_number(out, v < 0 ? -(uint64_t)v : (uint64_t)v, 10, v < 0, spec);
}

static void put_unsigned(struct out *out, const struct spec *spec,
                         uint32_t base, va_list *args)
{
    uint64_t v = spec->is_long ? va_arg(*args, unsigned long)
                               : va_arg(*args, unsigned int);

    put_number(out, v, base, false, spec);
}

static void put_conversion(struct out *out, char c, const struct spec *spec,
                           va_list *args)
{
    switch (c) {
    case 's':
        put_string(out, va_arg(*args, const char *), spec);
        break;
    case 'c':
        put_char(out, (char)va_arg(*args, int));
        break;
    case 'd':
        put_signed(out, spec, args);
        break;
    case 'u':
        put_unsigned(out, spec, 10, args);
        break;
    case 'x':
        put_unsigned(out, spec, 16, args);
        break;
    case 'p':
        put_char(out, '0');
        put_char(out, 'x');
        put_number(out, (uintptr_t)va_arg(*args, void *), 16, false, spec);
        break;
    default: /* '%', or an unknown conversion: print the character itself */
        put_char(out, c);
        break;
    }
}

static void format_args(struct out *out, const char *f, va_list *args)
{
    struct spec spec;

    while (*f != '\0') {
        if (*f != '%') {
            put_char(out, *f++);
            continue;
        }
        f = parse_spec(&spec, f + 1, args);
        if (*f == '\0') {
            break;
        }
        put_conversion(out, *f++, &spec, args);
    }
    out->buf[out->len] = '\0';
}

size_t log_vformat(char *buf, size_t size, const char *format, va_list args)
{
    struct out out = {.buf = buf, .size = size};
    va_list copy;

    va_copy(copy, args);
    format_args(&out, format, &copy);
    va_end(copy);
    return out.len;
}

size_t log_format(char *buf, size_t size, const char *format, ...)
{
    va_list args;
    size_t len;

    va_start(args, format);
    len = log_vformat(buf, size, format, args);
    va_end(args);
    return len;
}
