/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/ip_text.h"

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

/* The longest run of zero groups, the first of equals, at least two. */
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
