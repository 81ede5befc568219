/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast listener discovery: see mld.h. */
#include "net/wire/mld.h"

#include "lib/bytes.h"
#include "net/wire/icmp.h"

_Static_assert(MLD_RECORD_GROUP + 16 == MLD_RECORD_LEN, "without sources");

/* Codes from 32768 on are floating-point numbers: RFC 3810 section 5.1.3. */
static uint32_t response_ms(uint16_t code)
{
    return code < 0x8000 ? code
                         : ((code & 0xfffu) | 0x1000) << ((code >> 12 & 7) + 3);
}

bool mld_query_parse(struct mld_query *query, const uint8_t *buf, size_t len)
{
    uint16_t code;

    if ((len != MLD_QUERY_V1_LEN && len < MLD_QUERY_V2_LEN) ||
        buf[ICMP_TYPE] != MLD_QUERY) {
        return false;
    }
    code = get_be16(buf + MLD_MAX_RESPONSE);
    *query = (struct mld_query){
        .group = ip_addr_from_bytes(buf + MLD_GROUP),
        .max_response_ms = len == MLD_QUERY_V1_LEN ? code : response_ms(code),
    };
    return true;
}

void mld_report_emit(enum mld_record record, const struct ip_addr *groups,
                     size_t count, const struct ip_addr *src,
                     const struct ip_addr *dst, uint8_t *buf)
{
    const struct icmp icmp = {.type = MLD_REPORT_V2, .rest = (uint32_t)count};

    for (size_t i = 0; i < count; i++) {
        uint8_t *to = buf + mld_report_len(i);

        to[MLD_RECORD_TYPE] = (uint8_t)record;
        to[MLD_RECORD_AUX_LEN] = 0;
        put_be16(to + MLD_RECORD_SOURCES, 0);
        memcpy(to + MLD_RECORD_GROUP, groups[i].bytes, sizeof(groups->bytes));
    }
    icmpv6_emit(&icmp, src, dst, buf, mld_report_len(count));
}
