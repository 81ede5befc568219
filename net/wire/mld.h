/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast listener discovery: queries, and reports.
 * Spec: RFC 3810 sections 5.1 and 5.2; RFC 2710 (version 1 queries).
 *
 * Left out: source lists; reports that other listeners send.
 */
#ifndef ESSD_NET_WIRE_MLD_H
#define ESSD_NET_WIRE_MLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/util.h"
#include "net/wire/ip_addr.h"

enum { MLD_QUERY = 130, MLD_REPORT_V2 = 143 };

enum { /* query; offsets count from the ICMPv6 header */
       MLD_MAX_RESPONSE = 4,
       MLD_GROUP = 8,
       MLD_QUERY_V1_LEN = 24,
       MLD_QUERY_V2_LEN = 28,
};

enum { /* report; its records follow, without sources */
       MLD_RECORD_COUNT = 6,
       MLD_RECORDS = 8,
};

enum { /* record */
       MLD_RECORD_TYPE = 0,
       MLD_RECORD_AUX_LEN = 1,
       MLD_RECORD_SOURCES = 2,
       MLD_RECORD_GROUP = 4,
       MLD_RECORD_LEN = 20,
};

enum mld_record {
    MLD_MODE_IS_EXCLUDE = 2,   /* answers a query: listening to the group */
    MLD_CHANGE_TO_EXCLUDE = 4, /* sent unasked: begins to listen */
};

struct mld_query {
    struct ip_addr group;     /* ::, the unspecified address: all groups */
    uint32_t max_response_ms; /* time within which to answer */
};

/** @return false when cut short or not a query */
MUST_USE bool mld_query_parse(struct mld_query *query, const uint8_t *buf,
                              size_t len);

/** The length of a report of `count` groups. */
static inline size_t mld_report_len(size_t count)
{
    return MLD_RECORDS + count * MLD_RECORD_LEN;
}

/** Write a report of `count` groups, from any source. */
void mld_report_emit(enum mld_record record, const struct ip_addr *groups,
                     size_t count, const struct ip_addr *src,
                     const struct ip_addr *dst, uint8_t *buf);

#endif
