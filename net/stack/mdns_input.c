/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that the mDNS responder receives: questions become pending answers,
 * and responses are searched for conflicts.  Nothing is sent from here.
 * Spec: RFC 6762 sections 5 to 9, 11 and 18.
 */
#include "net/stack/internal.h"
#include "net/stack/mdns_internal.h"

enum {
    /* Real messages have fewer.  A query with more questions or known answers
     * is refused; of other records, only so many are looked at. */
    QUESTIONS_MAX = 32,
    RECORDS_MAX = 64,
    /* Delays of answers: section 6, and 7.2 if more known answers follow. */
    SHARED_LEAST_US = 20000,
    SHARED_RANGE_US = 100000,
    TRUNCATED_LEAST_US = 400000,
    TRUNCATED_RANGE_US = 100000,
    FRESH_PART = 4, /* sent within a quarter of its TTL: section 5.4 */
};

#define SECOND_US UINT64_C(1000000)

struct message {
    const struct net_udp_rx *udp;
    struct dns_header header;
    struct dns_question asked; /* the first question that was for us */
    uint16_t sets;             /* the sets that answer its questions */
    bool wants_unicast;        /* all questions for us want it */
    size_t answers_at;         /* offset of the first record */
};

/* ---- Questions. */

static bool is_asked(const struct dns_question *question, uint16_t type)
{
    return question->type == type || question->type == DNS_ANY;
}

static uint16_t instance_sets(uint16_t type)
{
    switch (type) {
    case DNS_ANY:
        return BIT(MDNS_SRV) | BIT(MDNS_TXT);
    case DNS_SRV:
        return BIT(MDNS_SRV);
    case DNS_TXT:
        return BIT(MDNS_TXT);
    default:
        return BIT(MDNS_NO_INSTANCE);
    }
}

static uint16_t host_sets(const struct mdns_link *link, uint16_t type)
{
    uint16_t sets = 0;

    if (mdns_count(link, MDNS_A) != 0) {
        sets |= BIT(MDNS_A);
    }
    if (mdns_count(link, MDNS_AAAA) != 0) {
        sets |= BIT(MDNS_AAAA);
    }
    if (type != DNS_ANY) {
        sets &= type == DNS_A      ? BIT(MDNS_A)
                : type == DNS_AAAA ? BIT(MDNS_AAAA)
                                   : 0;
    }
    return sets != 0 ? sets : BIT(MDNS_NO_HOST);
}

/* The sets that answer a question; 0 if it is not about our names. */
static uint16_t sets_for(const struct mdns_agent *agent,
                         const struct mdns_link *link,
                         const struct dns_question *question)
{
    if (question->dns_class != DNS_CLASS_IN &&
        question->dns_class != DNS_CLASS_ANY) {
        return 0;
    }
    if (dns_name_equal(&question->name, &agent->types)) {
        return is_asked(question, DNS_PTR) ? BIT(MDNS_TYPES) : 0;
    }
    if (dns_name_equal(&question->name, &agent->service)) {
        return is_asked(question, DNS_PTR) ? BIT(MDNS_SERVICE) : 0;
    }
    if (dns_name_equal(&question->name, &link->instance)) {
        return instance_sets(question->type);
    }
    if (dns_name_equal(&question->name, &link->host)) {
        return host_sets(link, question->type);
    }
    return 0;
}

/* @return false when the message is malformed, or has too many questions */
static bool read_questions(const struct mdns_agent *agent,
                           const struct mdns_link *link,
                           struct message *message)
{
    const struct net_udp_rx *udp = message->udp;
    struct dns_question question;
    size_t at = DNS_LEN;

    if (message->header.count[DNS_QUESTION] > QUESTIONS_MAX) {
        return false;
    }
    message->wants_unicast = true;
    for (unsigned int i = 0; i < message->header.count[DNS_QUESTION]; i++) {
        uint16_t sets;

        if (!dns_question_parse(&question, udp->payload, udp->len_bytes, &at)) {
            return false;
        }
        sets = sets_for(agent, link, &question);
        if (sets != 0 && message->sets == 0) {
            message->asked = question;
        }
        if (sets != 0 && !question.wants_unicast) {
            message->wants_unicast = false;
        }
        message->sets |= sets;
    }
    message->answers_at = at;
    return true;
}

/*
 * Remove from *sets what the message has as known answers: a set is known when
 * each of its records is, with at least half of its time to live (section 7.1).
 *
 * @param authorities_at  set to the offset of the records that follow
 * @return false when the message is malformed, or has too many records
 */
static bool remove_known(const struct mdns_agent *agent,
                         const struct mdns_link *link,
                         const struct message *message, uint16_t *sets,
                         size_t *authorities_at)
{
    const struct net_udp_rx *udp = message->udp;
    unsigned int known[MDNS_SETS] = {0};
    struct dns_record record;
    size_t at = message->answers_at;

    if (message->header.count[DNS_ANSWER] > RECORDS_MAX) {
        return false;
    }
    for (unsigned int i = 0; i < message->header.count[DNS_ANSWER]; i++) {
        int set;

        if (!dns_record_parse(&record, udp->payload, udp->len_bytes, &at)) {
            return false;
        }
        set = mdns_set_of(agent, link, udp->payload, udp->len_bytes, &record);
        if (set != MDNS_NONE &&
            record.ttl_s >= mdns_ttl_s((enum mdns_set)set) / 2) {
            known[set]++;
        }
    }
    for (unsigned int set = 0; set < MDNS_SETS; set++) {
        if (known[set] >= MAX(mdns_count(link, (enum mdns_set)set), 1u)) {
            *sets &= (uint16_t)~BIT(set);
        }
    }
    *authorities_at = at;
    return true;
}

/* ---- Answers. */

static bool is_from_link(const struct mdns_agent *agent,
                         const struct net_udp_rx *udp)
{
    return net_address_on_link(agent->config.stack, udp->port, udp->vlan,
                               &udp->src) >= 0;
}

/* Whether all these sets were sent to the group a short time ago. */
static bool are_fresh(const struct mdns_link *link, uint16_t sets,
                      uint64_t now_us)
{
    for (unsigned int set = 0; set < MDNS_SETS; set++) {
        uint64_t fresh_us =
            mdns_ttl_s((enum mdns_set)set) * SECOND_US / FRESH_PART;

        if ((sets & BIT(set)) && (link->sent_us[set] == 0 ||
                                  now_us - link->sent_us[set] > fresh_us)) {
            return false;
        }
    }
    return true;
}

/* Note the answer to one station.  Until it is sent, others are not answered,
 * and have to ask again. */
static void answer_station(struct mdns_agent *agent, struct mdns_link *link,
                           const struct message *message, uint16_t sets)
{
    const struct net_udp_rx *udp = message->udp;

    if (link->direct.sets != 0 ||
        !net_limit_take(agent->config.stack, udp->port, NET_LIMIT_MDNS, 1,
                        udp->now_us)) {
        mdns_add(agent, MDNS_LIMITED);
        return;
    }
    link->direct = (struct mdns_direct){
        .mac = *udp->src_mac,
        .dst = udp->src,
        .question = message->asked,
        .sets = sets,
        .id = message->header.id,
        .dst_port = udp->src_port,
        .is_legacy = udp->src_port != MDNS_PORT,
    };
}

static uint64_t answer_delay_us(struct mdns_agent *agent,
                                const struct message *message, uint16_t sets)
{
    if (message->header.is_truncated) {
        return TRUNCATED_LEAST_US + mdns_random(agent, TRUNCATED_RANGE_US);
    }
    return sets & MDNS_SHARED
               ? SHARED_LEAST_US + mdns_random(agent, SHARED_RANGE_US)
               : 0;
}

static void answer_group(struct mdns_agent *agent, struct mdns_link *link,
                         const struct message *message, uint16_t sets)
{
    const struct net_udp_rx *udp = message->udp;
    uint64_t due_us = udp->now_us + answer_delay_us(agent, message, sets);
    bool is_alone = link->pending == 0;

    link->asker = is_alone || ip_addr_equal(&link->asker, &udp->src)
                      ? udp->src
                      : (struct ip_addr){{0}};
    link->pending_us = is_alone ? due_us : MIN(link->pending_us, due_us);
    link->pending |= sets;
    link->is_defence |= message->header.count[DNS_AUTHORITY] != 0;
}

/* ---- Queries. */

/* Take further known answers of a station that has sent its question in an
 * earlier message. */
static void take_more_known(struct mdns_agent *agent, struct mdns_link *link,
                            const struct message *message)
{
    size_t at;

    if (ip_addr_equal(&link->asker, &message->udp->src)) {
        (void)!remove_known(agent, link, message, &link->pending, &at);
    }
}

/* Another station probes one of our names, which we probe, too. */
static void compare_probe(struct mdns_agent *agent, struct mdns_link *link,
                          const struct message *message, size_t at)
{
    const struct net_udp_rx *udp = message->udp;
    unsigned int count =
        MIN(message->header.count[DNS_AUTHORITY], (uint16_t)RECORDS_MAX);

    if (link->tries == 0) {
        return; /* nothing of ours is on the wire yet */
    }
    for (unsigned int is_host = 0; is_host < 2; is_host++) {
        if (mdns_compare_claims(agent, link, is_host, udp->payload,
                                udp->len_bytes, at, count) < 0) {
            mdns_lose_probe(agent, udp->port, udp->now_us);
            return;
        }
    }
}

static void take_query(struct mdns_agent *agent, struct mdns_link *link,
                       struct message *message)
{
    const struct net_udp_rx *udp = message->udp;
    bool is_legacy = udp->src_port != MDNS_PORT, is_near;
    uint16_t sets;
    size_t at;

    mdns_add(agent, MDNS_QUERIES);
    if (!read_questions(agent, link, message)) {
        mdns_add(agent, MDNS_MALFORMED);
        return;
    }
    if (message->header.count[DNS_QUESTION] == 0) {
        take_more_known(agent, link, message);
        return;
    }
    sets = message->sets;
    if (sets == 0) {
        return;
    }
    if (!remove_known(agent, link, message, &sets, &at)) {
        mdns_add(agent, MDNS_MALFORMED);
        return;
    }
    if (!mdns_answers(link)) {
        compare_probe(agent, link, message, at);
        return;
    }
    is_near = is_from_link(agent, udp);
    if (sets == 0 || (is_legacy && !is_near)) {
        return;
    }
    if (is_legacy || (is_near && message->wants_unicast &&
                      message->header.count[DNS_AUTHORITY] == 0 &&
                      are_fresh(link, sets, udp->now_us))) {
        answer_station(agent, link, message, sets);
    } else {
        answer_group(agent, link, message, sets);
    }
}

/* ---- Responses. */

/*
 * Whether a record of another station contradicts ours.  While we probe, any
 * record of the name does: we have no right to it yet (section 8.1).  Later,
 * only one of a type that we have (section 9).
 */
static bool is_conflict(const struct mdns_agent *agent,
                        const struct mdns_link *link,
                        const struct message *message,
                        const struct dns_record *record)
{
    bool is_host = dns_name_equal(&record->name, &link->host);

    if (!is_host && !dns_name_equal(&record->name, &link->instance)) {
        return false;
    }
    if (record->dns_class != DNS_CLASS_IN || record->type == DNS_NSEC ||
        record->ttl_s == 0 ||
        mdns_set_of(agent, link, message->udp->payload, message->udp->len_bytes,
                    record) != MDNS_NONE) {
        return false;
    }
    if (!mdns_answers(link)) {
        return true;
    }
    return is_host ? record->type == DNS_A || record->type == DNS_AAAA
                   : record->type == DNS_SRV || record->type == DNS_TXT;
}

static void take_response(struct mdns_agent *agent, struct mdns_link *link,
                          struct message *message)
{
    const struct net_udp_rx *udp = message->udp;
    struct dns_record record;
    size_t at;

    mdns_add(agent, MDNS_RESPONSES);
    if (!read_questions(agent, link, message)) {
        mdns_add(agent, MDNS_MALFORMED);
        return;
    }
    at = message->answers_at;
    for (unsigned int i = 0;
         i < MIN(message->header.count[DNS_ANSWER], (uint16_t)RECORDS_MAX);
         i++) {
        if (!dns_record_parse(&record, udp->payload, udp->len_bytes, &at)) {
            mdns_add(agent, MDNS_MALFORMED);
            return;
        }
        if (is_conflict(agent, link, message, &record)) {
            mdns_conflict(agent, udp->port, udp->now_us);
            return;
        }
    }
}

void mdns_input(void *ctx, const struct net_udp_rx *udp)
{
    struct mdns_agent *agent = ctx;
    struct mdns_link *link = &agent->links[udp->port];
    struct message message = {.udp = udp};

    if (link->state == MDNS_OFF || udp->vlan != agent->config.vlan[udp->port]) {
        mdns_add(agent, MDNS_IGNORED);
        return;
    }
    if (!dns_header_parse(&message.header, udp->payload, udp->len_bytes)) {
        mdns_add(agent, MDNS_MALFORMED);
    } else if (message.header.opcode != 0 || message.header.rcode != 0 ||
               (message.header.is_response &&
                (udp->src_port != MDNS_PORT || !is_from_link(agent, udp)))) {
        mdns_add(agent, MDNS_IGNORED);
    } else if (message.header.is_response) {
        take_response(agent, link, &message);
    } else {
        take_query(agent, link, &message);
    }
}
