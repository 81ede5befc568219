/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv6 extension headers: see ipv6_ext.h. */
#include "net/wire/ipv6_ext.h"

#include "lib/bytes.h"

_Static_assert(IPV6_FRAGMENT_ID + 4 == IPV6_FRAGMENT_LEN,
               "the fragment header is 8 bytes");

enum { MORE = 1, OFFSET_MASK = 0xfff8 };

bool ipv6_fragment_parse(struct ipv6_fragment *fragment, const uint8_t *buf,
                         size_t len)
{
    uint16_t word;

    if (len < IPV6_FRAGMENT_LEN) {
        return false;
    }
    word = get_be16(buf + IPV6_FRAGMENT_OFFSET);
    *fragment = (struct ipv6_fragment){
        .id = get_be32(buf + IPV6_FRAGMENT_ID),
        .offset_bytes = word & OFFSET_MASK,
        .next_header = buf[IPV6_EXT_NEXT_HEADER],
        .more_fragments = word & MORE,
    };
    return true;
}

void ipv6_fragment_emit(const struct ipv6_fragment *fragment, uint8_t *buf)
{
    buf[IPV6_EXT_NEXT_HEADER] = fragment->next_header;
    buf[IPV6_EXT_HDR_LEN] = 0; /* reserved here */
    put_be16(buf + IPV6_FRAGMENT_OFFSET,
             (uint16_t)((fragment->offset_bytes & OFFSET_MASK) |
                        (fragment->more_fragments ? MORE : 0)));
    put_be32(buf + IPV6_FRAGMENT_ID, fragment->id);
}

size_t ipv6_ext_len(const uint8_t *buf, size_t len)
{
    size_t header_len;

    if (len < IPV6_EXT_MIN_LEN) {
        return 0;
    }
    header_len = ((size_t)buf[IPV6_EXT_HDR_LEN] + 1) * 8;
    return header_len <= len ? header_len : 0;
}

enum ipv6_options ipv6_options_check(const uint8_t *buf, size_t len,
                                     size_t *offset)
{
    static const uint8_t unknown[] = {/* indexed by the type's top two bits */
                                      IPV6_OPTIONS_SKIP, IPV6_OPTIONS_DISCARD,
                                      IPV6_OPTIONS_REPORT,
                                      IPV6_OPTIONS_REPORT_UNICAST};
    size_t at = IPV6_EXT_OPTIONS;

    while (at < len) {
        uint8_t type = buf[at];

        *offset = at;
        if (type == IPV6_OPTION_PAD1) {
            at++;
            continue;
        }
        if (len - at < 2 || len - at - 2 < buf[at + 1]) {
            return IPV6_OPTIONS_MALFORMED;
        }
        if (unknown[type >> 6] != IPV6_OPTIONS_SKIP) {
            return (enum ipv6_options)unknown[type >> 6];
        }
        at += 2 + (size_t)buf[at + 1];
    }
    return IPV6_OPTIONS_SKIP;
}
