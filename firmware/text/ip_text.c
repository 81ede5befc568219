/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/text/ip_text.h"

#include "lib/bytes.h"

static char *put_number(char *at, uint32_t value, uint32_t base)
{
    if (value >= base) {
        at = put_number(at, value / base, base);
    }
    *at = "0123456789abcdef"[value % base];
    return at + 1;
}

static char *put_v4(char *at, const uint8_t *bytes)
{
    for (unsigned int i = 0; i < 4; i++) {
        if (i != 0) {
            *at++ = '.';
        }
        at = put_number(at, bytes[i], 10);
    }
    return at;
}

/* Find the longest run of at least two zero groups, the first of equal ones. */
static unsigned int find_gap(const uint8_t *bytes, unsigned int *first)
{
    unsigned int best = 1;

    for (unsigned int i = 0; i < 8; i++) {
        unsigned int n = 0;

        while (i + n < 8 && get_be16(bytes + 2 * (i + n)) == 0) {
            n++;
        }
        if (n > best) {
            best = n;
            *first = i;
        }
    }
    return best >= 2 ? best : 0;
}

static char *put_v6(char *at, const uint8_t *bytes)
{
    unsigned int first = 8;
    unsigned int gap = find_gap(bytes, &first);

    for (unsigned int i = 0; i < 8; i++) {
        if (gap != 0 && i == first) {
            *at++ = ':';
            i += gap - 1;
            if (i == 7) {
                *at++ = ':';
            }
            continue;
        }
        if (i != 0) {
            *at++ = ':';
        }
        at = put_number(at, get_be16(bytes + 2 * i), 16);
    }
    return at;
}

struct ip_text ip_text(const struct ip_addr *ip)
{
    struct ip_text out;
    char *end = ip_addr_is_v4(ip) ? put_v4(out.text, ip->bytes + 12)
                                  : put_v6(out.text, ip->bytes);

    *end = '\0';
    return out;
}

static bool parse_v4(struct ip_addr *ip, const char *text, size_t len)
{
    uint32_t v4 = 0;
    size_t at = 0;

    for (unsigned int i = 0; i < 4; i++) {
        size_t start = at;
        uint32_t value = 0;

        while (at < len && text[at] >= '0' && text[at] <= '9') {
            value = value * 10 + (uint32_t)(text[at++] - '0');
            if (value > 255 || (at - start > 1 && text[start] == '0')) {
                return false;
            }
        }
        if (at == start || (i < 3 && (at == len || text[at++] != '.'))) {
            return false;
        }
        v4 = v4 << 8 | value;
    }
    *ip = ip_addr_from_v4(v4);
    return at == len;
}

/* @return the value of a digit, 16 when it is not one */
static uint32_t hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return (uint32_t)(c - '0');
    }
    if (c >= 'a' && c <= 'f') {
        return (uint32_t)(c - 'a') + 10;
    }
    return c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A') + 10 : 16;
}

/* Parse a group of up to four digits. @return the number of digits */
static size_t parse_group(const char *text, size_t len, uint16_t *group)
{
    size_t at = 0;

    *group = 0;
    while (at < len && at < 5 && hex_digit(text[at]) < 16) {
        *group = (uint16_t)((uint32_t)*group << 4 | hex_digit(text[at++]));
    }
    return at;
}

static bool parse_v6(struct ip_addr *ip, const char *text, size_t len)
{
    /* Number of groups; position of "::", 9 when there is none. */
    unsigned int count = 0, gap = 9;
    size_t at = 0;

    *ip = (struct ip_addr){0};
    while (at < len) {
        uint16_t group;
        size_t digits = parse_group(text + at, len - at, &group);
        bool is_gap = len - at >= 2 && text[at] == ':' && text[at + 1] == ':';

        if (is_gap && gap == 9 && count < 8) {
            gap = count;
            at += 2;
            continue;
        }
        if (count != 0 && gap != count) { /* a separator has to follow */
            if (digits != 0 || text[at++] != ':') {
                return false;
            }
            digits = parse_group(text + at, len - at, &group);
        }
        if (digits == 0 || digits > 4 || count == 8) {
            return false;
        }
        put_be16(ip->bytes + 2 * count++, group);
        at += digits;
    }
    if (gap == 9) {
        return count == 8;
    }
    if (count == 8) {
        return false;
    }
    memmove(ip->bytes + 16 - 2 * (count - gap), ip->bytes + 2 * gap,
            2 * (count - gap));
    memset(ip->bytes + 2 * gap, 0, 2 * (8 - count));
    return true;
}

bool ip_text_parse(struct ip_addr *ip, const char *text, size_t len)
{
    return memchr(text, ':', len) == NULL
               ? parse_v4(ip, text, len)
               : parse_v6(ip, text, len) && !ip_addr_is_v4(ip);
}
