/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations that the files of the mDNS responder share. */
#ifndef ESSD_NET_STACK_MDNS_INTERNAL_H
#define ESSD_NET_STACK_MDNS_INTERNAL_H

#include "net/stack/mdns.h"

enum {
    /* Unique sets claim a name.  Others may have shared sets, too. */
    MDNS_UNIQUE = BIT(MDNS_SRV) | BIT(MDNS_TXT) | BIT(MDNS_A) | BIT(MDNS_AAAA),
    MDNS_SHARED = BIT(MDNS_TYPES) | BIT(MDNS_SERVICE),
    MDNS_ALL =
        MDNS_UNIQUE | MDNS_SHARED | BIT(MDNS_NO_INSTANCE) | BIT(MDNS_NO_HOST),
    MDNS_TXT_MAX = 1 + 6 + 1 + 4 + 223,
    MDNS_NONE = -1,
};

/* mdns_records.c: the records */

/** Make the names that all ports share. */
void mdns_make_shared_names(struct mdns_agent *agent);
/** Make the names of one port. */
void mdns_make_names(struct mdns_agent *agent, uint8_t port);

/** The time to live of the records of a set. */
uint32_t mdns_ttl_s(enum mdns_set set);

/** The number of records in a set. */
unsigned int mdns_count(const struct mdns_link *link, enum mdns_set set);

/** Write the TXT data. @return their length */
uint16_t mdns_txt(const struct mdns_agent *agent, uint8_t txt[MDNS_TXT_MAX]);

struct mdns_style {
    enum dns_section section;
    uint32_t ttl_max_s; /* 0: goodbye */
    bool is_flushing;   /* unique records have the cache-flush bit */
};

/** Append the records of several sets, BIT(enum mdns_set). */
void mdns_write_sets(struct dns_writer *w, const struct mdns_agent *agent,
                     const struct mdns_link *link, uint16_t sets,
                     const struct mdns_style *style);

/** Append address records with which the host says goodbye to `gone`. */
void mdns_write_gone(struct dns_writer *w, const struct mdns_link *link);

/**
 * Find the set that has exactly this record of a message.
 * @return enum mdns_set, or MDNS_NONE
 */
int mdns_set_of(const struct mdns_agent *agent, const struct mdns_link *link,
                const uint8_t *msg, size_t len,
                const struct dns_record *record);

/**
 * Compare the records that we claim for a name with those of a simultaneous
 * probe: RFC 6762 section 8.2.
 *
 * @param at     offset of the first authority record of the probe
 * @param count  the number of authority records
 * @return below 0 when ours come first, and so lose
 */
int mdns_compare_claims(const struct mdns_agent *agent,
                        const struct mdns_link *link, bool is_host,
                        const uint8_t *msg, size_t len, size_t at,
                        unsigned int count);

/* mdns_input.c: received messages */

void mdns_input(void *ctx, const struct net_udp_rx *udp);

/* mdns.c: states and sending */

static inline void mdns_add(struct mdns_agent *agent, enum mdns_counter counter)
{
    agent->counters[counter]++;
}

/** Whether the port owns its names, and answers questions about them. */
static inline bool mdns_answers(const struct mdns_link *link)
{
    return link->state == MDNS_ANNOUNCING || link->state == MDNS_READY;
}

/** A random number below `limit`. */
uint64_t mdns_random(struct mdns_agent *agent, uint64_t limit);

/** Another station has one of the port's names. */
void mdns_conflict(struct mdns_agent *agent, uint8_t port, uint64_t now_us);

/** Another station probes the same name at the same time, and wins. */
void mdns_lose_probe(struct mdns_agent *agent, uint8_t port, uint64_t now_us);

#endif
