/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of the mDNS responder: see mdns.h. */
#include "net/stack/mdns_internal.h"

#include <string.h>

#include "lib/bytes.h"

enum {
    HOST_MAX = 48,       /* characters of the drive's name that are used */
    CLAIMS_MAX = 16,     /* records of a probe that are compared */
    NSEC_BITMAP_MAX = 7, /* window, length, and types 0 to 39 */
    SRV_MAX = DNS_SRV_TARGET + DNS_NAME_MAX,
};

static const char type_text[] = "_nvme-disc._udp.local";
static const char types_text[] = "_services._dns-sd._udp.local";

/* ---- Names. */

void mdns_make_shared_names(struct mdns_agent *agent)
{
    dns_name_init(&agent->types);
    dns_name_add_text(&agent->types, types_text);
    dns_name_init(&agent->service);
    dns_name_add_text(&agent->service, type_text);
}

static bool is_host_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9');
}

static size_t put_decimal(char *to, unsigned int value)
{
    size_t len = value >= 10 ? put_decimal(to, value / 10) : 0;

    to[len] = (char)('0' + value % 10);
    return len + 1;
}

/*
 * One label serves as the host's name and as the instance's: letters, digits
 * and hyphens of the drive's name, the port, and a number after a conflict.
 */
void mdns_make_names(struct mdns_agent *agent, uint8_t port)
{
    struct mdns_link *link = &agent->links[port];
    char label[DNS_LABEL_MAX];
    size_t len = 0;

    for (const char *c = agent->config.name; *c != '\0' && len < HOST_MAX;
         c++) {
        label[len++] = is_host_character(*c) ? *c : '-';
    }
    label[len++] = '-';
    len += put_decimal(label + len, port);
    if (link->number > 1) {
        label[len++] = '-';
        len += put_decimal(label + len, link->number);
    }
    dns_name_init(&link->host);
    dns_name_add(&link->host, label, len);
    dns_name_add_text(&link->host, "local");
    dns_name_init(&link->instance);
    dns_name_add(&link->instance, label, len);
    dns_name_add_text(&link->instance, type_text);
}

/* ---- Sets. */

uint32_t mdns_ttl_s(enum mdns_set set)
{
    return set == MDNS_SRV || set == MDNS_A || set == MDNS_AAAA ||
                   set == MDNS_NO_HOST
               ? MDNS_HOST_TTL_S
               : MDNS_TTL_S;
}

unsigned int mdns_count(const struct mdns_link *link, enum mdns_set set)
{
    unsigned int count = 0;

    if (set != MDNS_A && set != MDNS_AAAA) {
        return 1;
    }
    for (uint8_t i = 0; i < link->address_count; i++) {
        count += ip_addr_is_v4(&link->addresses[i]) == (set == MDNS_A);
    }
    return count;
}

static uint16_t put_string(uint8_t *to, const char *key, const char *value)
{
    size_t key_len = strlen(key), value_len = strlen(value);

    to[0] = (uint8_t)(key_len + value_len);
    memcpy(to + 1, key, key_len);
    memcpy(to + 1 + key_len, value, value_len);
    return (uint16_t)(1 + key_len + value_len);
}

uint16_t mdns_txt(const struct mdns_agent *agent, uint8_t txt[MDNS_TXT_MAX])
{
    uint16_t len = put_string(txt, "p=", "roce");

    return (uint16_t)(len + put_string(txt + len, "nqn=", agent->config.nqn));
}

/* A bitmap of types, all below 40: RFC 4034 section 4.1.2. @return its length
 */
static uint16_t put_bitmap(uint8_t *to, const enum dns_type *types,
                           size_t count)
{
    memset(to, 0, NSEC_BITMAP_MAX);
    for (size_t i = 0; i < count; i++) {
        unsigned int octet = types[i] / 8;

        to[2 + octet] |= (uint8_t)(0x80 >> types[i] % 8);
        to[1] = MAX(to[1], (uint8_t)(octet + 1));
    }
    return (uint16_t)(2 + to[1]);
}

/* The NSEC data: the name itself, then the types that it has. */
static void write_nsec(struct dns_writer *w, struct dns_record *record,
                       enum dns_section section, const struct mdns_link *link,
                       bool is_host)
{
    static const enum dns_type of_instance[] = {DNS_TXT, DNS_SRV};
    enum dns_type of_host[2];
    uint8_t data[DNS_NAME_MAX + NSEC_BITMAP_MAX];
    size_t count = 0;

    if (mdns_count(link, MDNS_A) != 0) {
        of_host[count++] = DNS_A;
    }
    if (mdns_count(link, MDNS_AAAA) != 0) {
        of_host[count++] = DNS_AAAA;
    }
    memcpy(data, record->name.bytes, record->name.len);
    record->type = DNS_NSEC;
    record->data_len =
        (uint16_t)(record->name.len +
                   put_bitmap(data + record->name.len,
                              is_host ? of_host : of_instance,
                              is_host ? count : ARRAY_LEN(of_instance)));
    dns_write_record(w, section, record, data);
}

static void write_address(struct dns_writer *w, struct dns_record *record,
                          enum dns_section section, const struct ip_addr *ip)
{
    bool v4 = ip_addr_is_v4(ip);

    record->type = v4 ? DNS_A : DNS_AAAA;
    record->data_len = v4 ? 4 : 16;
    dns_write_record(w, section, record, ip->bytes + (v4 ? 12 : 0));
}

static void write_set(struct dns_writer *w, const struct mdns_agent *agent,
                      const struct mdns_link *link, enum mdns_set set,
                      const struct mdns_style *style)
{
    uint8_t srv[DNS_SRV_TARGET] = {0}, txt[MDNS_TXT_MAX];
    struct dns_record record = {
        .dns_class = DNS_CLASS_IN,
        .is_flushing = style->is_flushing && !(BIT(set) & MDNS_SHARED),
        .ttl_s = MIN(mdns_ttl_s(set), style->ttl_max_s),
    };

    switch (set) {
    case MDNS_TYPES:
        record.name = agent->types;
        record.type = DNS_PTR;
        dns_write_pointing(w, style->section, &record, NULL, &agent->service);
        break;
    case MDNS_SERVICE:
        record.name = agent->service;
        record.type = DNS_PTR;
        dns_write_pointing(w, style->section, &record, NULL, &link->instance);
        break;
    case MDNS_SRV:
        put_be16(srv + DNS_SRV_PORT, agent->config.service_port);
        record.name = link->instance;
        record.type = DNS_SRV;
        record.data_len = sizeof(srv);
        dns_write_pointing(w, style->section, &record, srv, &link->host);
        break;
    case MDNS_TXT:
        record.name = link->instance;
        record.type = DNS_TXT;
        record.data_len = mdns_txt(agent, txt);
        dns_write_record(w, style->section, &record, txt);
        break;
    case MDNS_NO_INSTANCE:
        record.name = link->instance;
        write_nsec(w, &record, style->section, link, false);
        break;
    case MDNS_NO_HOST:
        record.name = link->host;
        write_nsec(w, &record, style->section, link, true);
        break;
    default:
        record.name = link->host;
        for (uint8_t i = 0; i < link->address_count; i++) {
            if (ip_addr_is_v4(&link->addresses[i]) == (set == MDNS_A)) {
                write_address(w, &record, style->section, &link->addresses[i]);
            }
        }
        break;
    }
}

void mdns_write_sets(struct dns_writer *w, const struct mdns_agent *agent,
                     const struct mdns_link *link, uint16_t sets,
                     const struct mdns_style *style)
{
    for (unsigned int set = 0; set < MDNS_SETS; set++) {
        if (sets & BIT(set)) {
            write_set(w, agent, link, (enum mdns_set)set, style);
        }
    }
}

void mdns_write_gone(struct dns_writer *w, const struct mdns_link *link)
{
    struct dns_record record = {
        .name = link->host,
        .dns_class = DNS_CLASS_IN,
    };

    for (uint8_t i = 0; i < link->gone_count; i++) {
        write_address(w, &record, DNS_ANSWER, &link->gone[i]);
    }
}

/* ---- Records of others. */

/* Whether the data of a record, from `skip` on, are exactly this name. */
static bool data_is_name(const uint8_t *msg, size_t len,
                         const struct dns_record *record, size_t skip,
                         const struct dns_name *expected)
{
    size_t at = record->data_at + skip;
    struct dns_name name;

    return record->data_len > skip && dns_name_parse(&name, msg, len, &at) &&
           at == record->data_at + record->data_len &&
           dns_name_equal(&name, expected);
}

static bool is_srv(const struct mdns_agent *agent, const struct mdns_link *link,
                   const uint8_t *msg, size_t len,
                   const struct dns_record *record)
{
    const uint8_t *data = msg + record->data_at;

    return record->data_len > DNS_SRV_TARGET &&
           get_be32(data + DNS_SRV_PRIORITY) == 0 &&
           get_be16(data + DNS_SRV_PORT) == agent->config.service_port &&
           data_is_name(msg, len, record, DNS_SRV_TARGET, &link->host);
}

static bool is_txt(const struct mdns_agent *agent, const uint8_t *msg,
                   const struct dns_record *record)
{
    uint8_t txt[MDNS_TXT_MAX];

    return record->data_len == mdns_txt(agent, txt) &&
           memcmp(msg + record->data_at, txt, record->data_len) == 0;
}

static bool has_address(const struct mdns_link *link, const uint8_t *data,
                        uint16_t data_len)
{
    for (uint8_t i = 0; i < link->address_count; i++) {
        const struct ip_addr *ip = &link->addresses[i];
        bool v4 = ip_addr_is_v4(ip);

        if (data_len == (v4 ? 4 : 16) &&
            memcmp(data, ip->bytes + (v4 ? 12 : 0), data_len) == 0) {
            return true;
        }
    }
    return false;
}

int mdns_set_of(const struct mdns_agent *agent, const struct mdns_link *link,
                const uint8_t *msg, size_t len, const struct dns_record *record)
{
    const uint8_t *data = msg + record->data_at;

    if (record->dns_class != DNS_CLASS_IN) {
        return MDNS_NONE;
    }
    if (record->type == DNS_PTR &&
        dns_name_equal(&record->name, &agent->types)) {
        return data_is_name(msg, len, record, 0, &agent->service) ? MDNS_TYPES
                                                                  : MDNS_NONE;
    }
    if (record->type == DNS_PTR &&
        dns_name_equal(&record->name, &agent->service)) {
        return data_is_name(msg, len, record, 0, &link->instance) ? MDNS_SERVICE
                                                                  : MDNS_NONE;
    }
    if (dns_name_equal(&record->name, &link->instance)) {
        if (record->type == DNS_SRV) {
            return is_srv(agent, link, msg, len, record) ? MDNS_SRV : MDNS_NONE;
        }
        return record->type == DNS_TXT && is_txt(agent, msg, record)
                   ? MDNS_TXT
                   : MDNS_NONE;
    }
    if (dns_name_equal(&record->name, &link->host) &&
        (record->type == DNS_A || record->type == DNS_AAAA) &&
        record->data_len == (record->type == DNS_A ? 4 : 16) &&
        has_address(link, data, record->data_len)) {
        return record->type == DNS_A ? MDNS_A : MDNS_AAAA;
    }
    return MDNS_NONE;
}

/* ---- Simultaneous probes. */

/* A record as it is compared: by type, then byte by byte. */
struct claim {
    uint16_t type;
    uint16_t len;
    const uint8_t *data;
};

struct claims {
    struct claim list[CLAIMS_MAX];
    unsigned int count;
    uint8_t srv[SRV_MAX]; /* the data of an SRV record, uncompressed */
    bool has_srv;
};

static int claim_compare(const struct claim *a, const struct claim *b)
{
    int difference;

    if (a->type != b->type) {
        return a->type < b->type ? -1 : 1;
    }
    difference = memcmp(a->data, b->data, MIN(a->len, b->len));
    if (difference != 0) {
        return difference;
    }
    return a->len == b->len ? 0 : (a->len < b->len ? -1 : 1);
}

/* Insert in order; what does not fit is left out. */
static void claim_add(struct claims *claims, uint16_t type, const uint8_t *data,
                      uint16_t len)
{
    const struct claim claim = {type, len, data};
    unsigned int at = claims->count;

    if (claims->count == CLAIMS_MAX) {
        return;
    }
    while (at != 0 && claim_compare(&claims->list[at - 1], &claim) > 0) {
        claims->list[at] = claims->list[at - 1];
        at--;
    }
    claims->list[at] = claim;
    claims->count++;
}

static void claim_add_srv(struct claims *claims, const uint8_t *fixed,
                          const struct dns_name *target)
{
    if (claims->has_srv) {
        return;
    }
    claims->has_srv = true;
    memcpy(claims->srv, fixed, DNS_SRV_TARGET);
    memcpy(claims->srv + DNS_SRV_TARGET, target->bytes, target->len);
    claim_add(claims, DNS_SRV, claims->srv,
              (uint16_t)(DNS_SRV_TARGET + target->len));
}

static void claims_of_probe(struct claims *claims, const struct dns_name *name,
                            const uint8_t *msg, size_t len, size_t at,
                            unsigned int count)
{
    struct dns_record record;
    struct dns_name target;

    for (unsigned int i = 0; i < count; i++) {
        size_t target_at;

        if (!dns_record_parse(&record, msg, len, &at)) {
            return;
        }
        if (!dns_name_equal(&record.name, name) ||
            record.dns_class != DNS_CLASS_IN) {
            continue;
        }
        target_at = record.data_at + DNS_SRV_TARGET;
        if (record.type != DNS_SRV) {
            claim_add(claims, record.type, msg + record.data_at,
                      record.data_len);
        } else if (record.data_len > DNS_SRV_TARGET &&
                   dns_name_parse(&target, msg, len, &target_at)) {
            claim_add_srv(claims, msg + record.data_at, &target);
        }
    }
}

static void claims_of_ours(struct claims *claims,
                           const struct mdns_agent *agent,
                           const struct mdns_link *link, bool is_host,
                           uint8_t txt[MDNS_TXT_MAX])
{
    uint8_t fixed[DNS_SRV_TARGET] = {0};

    if (!is_host) {
        put_be16(fixed + DNS_SRV_PORT, agent->config.service_port);
        claim_add(claims, DNS_TXT, txt, mdns_txt(agent, txt));
        claim_add_srv(claims, fixed, &link->host);
        return;
    }
    for (uint8_t i = 0; i < link->address_count; i++) {
        const struct ip_addr *ip = &link->addresses[i];
        bool v4 = ip_addr_is_v4(ip);

        claim_add(claims, v4 ? DNS_A : DNS_AAAA, ip->bytes + (v4 ? 12 : 0),
                  v4 ? 4 : 16);
    }
}

int mdns_compare_claims(const struct mdns_agent *agent,
                        const struct mdns_link *link, bool is_host,
                        const uint8_t *msg, size_t len, size_t at,
                        unsigned int count)
{
    struct claims ours = {.count = 0}, theirs = {.count = 0};
    uint8_t txt[MDNS_TXT_MAX];

    claims_of_probe(&theirs, is_host ? &link->host : &link->instance, msg, len,
                    at, count);
    if (theirs.count == 0) {
        return 0;
    }
    claims_of_ours(&ours, agent, link, is_host, txt);
    for (unsigned int i = 0; i < MIN(ours.count, theirs.count); i++) {
        int difference = claim_compare(&ours.list[i], &theirs.list[i]);

        if (difference != 0) {
            return difference;
        }
    }
    /* If all are equal, the longer list wins. */
    return (int)ours.count - (int)theirs.count;
}
