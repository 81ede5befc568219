/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast DNS: the drive advertises its discovery service.  Each test
 * switches the responder on, with a name of its own, and off again.
 *
 * Spec: RFC 6762, RFC 6763; NVM Express TP 8009 for the type of the service and
 * the keys of its TXT record.
 *
 * Left out: several VLANs; simultaneous probes, which the unit tests have.
 */
#include <stdio.h>
#include <string.h>

#include "lib/bytes.h"
#include "net/wire/dns.h"
#include "net_lib.h"

enum {
    PORT = 5353,
    SIMPLE_PORT = 40000, /* of a resolver that knows nothing of mDNS */
    NVME_PORT = 4420,
    QUERIER = 3, /* Indexes for conf_peer(). */
    SECOND_US = 1000000,
    MS_US = 1000,
    SLACK_US = 30000,
    START_US = 5000000, /* Link, probes, announcements. */
    QUIET_US = 1500000,
    TTL_S = 4500,
    HOST_TTL_S = 120,
    SIMPLE_TTL_S = 10,
    QM = DNS_CLASS_IN,
    QU = DNS_CLASS_IN | DNS_CLASS_TOP,
};

#define TYPE  "_nvme-disc._udp.local"
#define TYPES "_services._dns-sd._udp.local"

static const struct ip_addr group4 = {{[10] = 0xff, 0xff, 224, 0, 0, 251}};
static const struct ip_addr group6 = {{0xff, 0x02, [15] = 0xfb}};
static const struct mac_addr mac4 = {{0x01, 0, 0x5e, 0, 0, 0xfb}};
static const struct mac_addr mac6 = {{0x33, 0x33, 0, 0, 0, 0xfb}};

struct mdns {
    struct conf *conf;
    struct packet_path path; /* From the querier to the group. */
    uint16_t src_port;
    char name[16]; /* The drive's name in this test. */
    struct dns_name instance, host;
    const struct packet *packet; /* The last message of the drive. */
    struct dns_header header;
};

/* ---- What the drive sends. */

static bool is_mdns(const struct packet *packet, const void *ctx)
{
    const struct mdns *mdns = ctx;

    return packet->port == 0 && packet->has_udp &&
           packet->udp.src_port == PORT &&
           ip_addr_is_v4(&packet->dst) == ip_addr_is_v4(&mdns->path.src);
}

/* @return false when no message came */
static bool next_within(struct mdns *mdns, uint64_t timeout_us)
{
    struct conf *conf = mdns->conf;

    mdns->packet = conf_take_within(conf, is_mdns, mdns, timeout_us);
    if (mdns->packet == NULL) {
        return false;
    }
    conf_check(conf,
               dns_header_parse(&mdns->header, mdns->packet->udp_payload,
                                mdns->packet->udp_payload_len),
               "a message of %zu bytes cannot be parsed",
               mdns->packet->udp_payload_len);
    return true;
}

static void take_message(struct mdns *mdns, const char *what)
{
    conf_check(mdns->conf, next_within(mdns, START_US), "%s did not come",
               what);
}

/* Let everything pass that was sent until now. */
static void forget_messages(struct mdns *mdns)
{
    while (next_within(mdns, 0)) {
    }
}

static void expect_nothing(struct mdns *mdns, const char *why)
{
    conf_check(mdns->conf, !next_within(mdns, QUIET_US), "the drive answers %s",
               why);
}

/* Find the n-th record with this name and type in a section. */
static bool find_record(const struct mdns *mdns, enum dns_section section,
                        const struct dns_name *name, uint16_t type, unsigned n,
                        struct dns_record *record)
{
    const uint8_t *msg = mdns->packet->udp_payload;
    size_t len = mdns->packet->udp_payload_len, at = DNS_LEN;
    struct dns_question question;

    for (unsigned i = 0; i < mdns->header.count[DNS_QUESTION]; i++) {
        if (!dns_question_parse(&question, msg, len, &at)) {
            return false;
        }
    }
    for (unsigned s = DNS_ANSWER; s <= section; s++) {
        for (unsigned i = 0; i < mdns->header.count[s]; i++) {
            if (!dns_record_parse(record, msg, len, &at)) {
                return false;
            }
            if (s == section && record->type == type &&
                dns_name_equal(&record->name, name) && n-- == 0) {
                return true;
            }
        }
    }
    return false;
}

static struct dns_record need_record(const struct mdns *mdns,
                                     enum dns_section section,
                                     const struct dns_name *name, uint16_t type)
{
    struct dns_record record = {.type = 0};

    conf_check(mdns->conf, find_record(mdns, section, name, type, 0, &record),
               "the message has no record of type %u in section %u", type,
               (unsigned)section);
    return record;
}

static struct dns_name name_of(const char *text)
{
    struct dns_name name;

    dns_name_init(&name);
    dns_name_add_text(&name, text);
    return name;
}

/* The name that ends a record's data, from `skip` on. */
static struct dns_name target_of(const struct mdns *mdns,
                                 const struct dns_record *record, size_t skip)
{
    size_t at = record->data_at + skip;
    struct dns_name name = {.len = 0};

    conf_check(mdns->conf,
               dns_name_parse(&name, mdns->packet->udp_payload,
                              mdns->packet->udp_payload_len, &at),
               "the data of a record of type %u have no name", record->type);
    return name;
}

/* ---- What the test sends. */

static void send_message(struct mdns *mdns, const uint8_t *payload, size_t len)
{
    uint8_t frame[1514];

    conf_send_frame(
        mdns->conf, 0, frame,
        packet_udp(frame, &mdns->path, mdns->src_port, PORT, payload, len), 0);
}

static void ask_question(struct mdns *mdns, const struct dns_name *name,
                         uint16_t type, uint16_t dns_class)
{
    uint8_t payload[512];
    struct dns_writer w;

    dns_write_begin(&w, payload, sizeof(payload));
    w.header.id = mdns->src_port == PORT ? 0 : 0x4711;
    dns_write_question(&w, name, type, dns_class);
    send_message(mdns, payload, dns_write_end(&w));
}

/* Ask for the service, and say which instance is known already. */
static void ask_knowing(struct mdns *mdns, uint32_t ttl_s)
{
    const struct dns_record record = {
        .name = name_of(TYPE),
        .type = DNS_PTR,
        .dns_class = DNS_CLASS_IN,
        .ttl_s = ttl_s,
    };
    uint8_t payload[512];
    struct dns_writer w;

    dns_write_begin(&w, payload, sizeof(payload));
    dns_write_question(&w, &record.name, DNS_PTR, QM);
    dns_write_pointing(&w, DNS_ANSWER, &record, NULL, &mdns->instance);
    send_message(mdns, payload, dns_write_end(&w));
}

/* A response that gives the drive's host name another address. */
static void contradict_host(struct mdns *mdns)
{
    static const uint8_t address[4] = {192, 0, 2, 1};
    const struct dns_record record = {
        .name = mdns->host,
        .type = DNS_A,
        .dns_class = DNS_CLASS_IN,
        .is_flushing = true,
        .ttl_s = HOST_TTL_S,
        .data_len = sizeof(address),
    };
    uint8_t payload[512];
    struct dns_writer w;

    dns_write_begin(&w, payload, sizeof(payload));
    w.header.is_response = true;
    w.header.is_authoritative = true;
    dns_write_record(&w, DNS_ANSWER, &record, address);
    send_message(mdns, payload, dns_write_end(&w));
}

/* ---- On and off. */

static void set_config(struct mdns *mdns, const char *key, const char *value)
{
    char line[80];

    snprintf(line, sizeof(line), "config set %s %s", key, value);
    conf_console(mdns->conf, line);
}

static void save_config(struct mdns *mdns)
{
    if (strstr(conf_console(mdns->conf, "config save"), "error") != NULL) {
        conf_not_run(mdns->conf, "the drive does not save the configuration");
    }
}

/* The names that the drive will claim on port 0. */
static void expect_names(struct mdns *mdns, const char *suffix)
{
    char label[32], text[64];

    snprintf(label, sizeof(label), "%s-0%s", mdns->name, suffix);
    snprintf(text, sizeof(text), "%s.local", label);
    mdns->host = name_of(text);
    snprintf(text, sizeof(text), "%s.%s", label, TYPE);
    mdns->instance = name_of(text);
}

static struct mdns *start_mdns(struct conf *conf, bool is_v6)
{
    struct mdns *mdns = conf_alloc(conf, sizeof(*mdns));

    mdns->conf = conf;
    mdns->path = net_path(conf, conf_peer(conf, QUERIER, 0), is_v6);
    mdns->path.dst = is_v6 ? group6 : group4;
    mdns->path.dst_mac = is_v6 ? mac6 : mac4;
    mdns->path.ttl = 255;
    mdns->src_port = PORT;
    snprintf(mdns->name, sizeof(mdns->name), "conf-%08x", net_rest(conf));
    expect_names(mdns, "");
    if (strstr(conf_console(conf, "config"), "\nmdns ") == NULL) {
        conf_not_applicable(conf, "the console has no setting mdns");
    }
    conf_console(conf, "config discard");
    set_config(mdns, "name", mdns->name);
    set_config(mdns, "mdns", "on");
    save_config(mdns);
    return mdns;
}

/* Start, and wait for both announcements. */
static struct mdns *ready_mdns(struct conf *conf, bool is_v6)
{
    struct mdns *mdns = start_mdns(conf, is_v6);

    for (unsigned int announcements = 0; announcements < 2;) {
        take_message(mdns, "an announcement");
        announcements += mdns->header.is_response;
    }
    return mdns;
}

static void finish_mdns(struct mdns *mdns)
{
    if (!conf_target(mdns->conf)->is_virtual) {
        set_config(mdns, "name", "none");
        set_config(mdns, "mdns", "off");
        save_config(mdns);
        /* The goodbye belongs to this test, not to the next one. */
        net_settle(mdns->conf, 0);
    }
}

/* ---- Tests of names. */

static void mdns_probe(struct conf *conf)
{
    struct mdns *mdns = start_mdns(conf, false);
    const struct packet *last = NULL;

    for (unsigned int i = 0; i < 3; i++) {
        take_message(mdns, "a probe");
        conf_check(conf, !mdns->header.is_response,
                   "after %u probes the drive uses the name", i);
        need_record(mdns, DNS_AUTHORITY, &mdns->instance, DNS_SRV);
        need_record(mdns, DNS_AUTHORITY, &mdns->host, DNS_A);
        if (last != NULL) {
            conf_check(conf,
                       conf_later_most_us(conf, last, mdns->packet) +
                               SLACK_US >=
                           250 * MS_US,
                       "the next probe came after %llu ms",
                       (unsigned long long)(conf_later_most_us(conf, last,
                                                               mdns->packet) /
                                            MS_US));
        }
        last = mdns->packet;
    }
    take_message(mdns, "an announcement");
    conf_check(conf, mdns->header.is_response, "a fourth probe came");
    finish_mdns(mdns);
}

static void mdns_announce(struct conf *conf)
{
    struct mdns *mdns = start_mdns(conf, false);
    const struct dns_name type = name_of(TYPE);
    const struct packet *first;

    do {
        take_message(mdns, "an announcement");
    } while (!mdns->header.is_response);
    for (unsigned int i = 0; i < 2; i++) {
        struct dns_record record;

        conf_equal(conf, "id", mdns->header.id, 0);
        conf_check(conf, mdns->header.is_authoritative, "AA is 0");
        record = need_record(mdns, DNS_ANSWER, &type, DNS_PTR);
        conf_check(conf, !record.is_flushing,
                   "the shared PTR record has the cache-flush bit");
        record = need_record(mdns, DNS_ANSWER, &mdns->instance, DNS_SRV);
        conf_check(conf, record.is_flushing,
                   "the SRV record lacks the cache-flush bit");
        conf_equal(conf, "TTL of SRV", record.ttl_s, HOST_TTL_S);
        if (i == 0) {
            first = mdns->packet;
            take_message(mdns, "the second announcement");
            conf_check(conf,
                       conf_later_most_us(conf, first, mdns->packet) +
                               SLACK_US >=
                           SECOND_US,
                       "the second announcement comes within a second");
        }
    }
    finish_mdns(mdns);
}

/* A probe that is answered makes the drive choose another name. */
static void mdns_rename(struct conf *conf)
{
    struct mdns *mdns = start_mdns(conf, false);

    take_message(mdns, "a probe");
    contradict_host(mdns);
    expect_names(mdns, "-2");
    do {
        take_message(mdns, "an announcement of another name");
    } while (!mdns->header.is_response);
    need_record(mdns, DNS_ANSWER, &mdns->instance, DNS_SRV);
    need_record(mdns, DNS_ANSWER, &mdns->host, DNS_A);
    finish_mdns(mdns);
}

static void mdns_conflict(struct conf *conf)
{
    struct mdns *mdns = ready_mdns(conf, false);

    contradict_host(mdns);
    take_message(mdns, "a new probe");
    conf_check(conf, !mdns->header.is_response,
               "the drive does not probe its name again");
    need_record(mdns, DNS_AUTHORITY, &mdns->host, DNS_A);
    finish_mdns(mdns);
}

static void mdns_elsewhere(struct conf *conf)
{
    struct mdns *mdns = ready_mdns(conf, false);

    mdns->src_port = PORT + 1;
    contradict_host(mdns);
    expect_nothing(mdns, "a response from another port");
    finish_mdns(mdns);
}

static void mdns_goodbye(struct conf *conf)
{
    struct mdns *mdns = ready_mdns(conf, false);
    const struct dns_name type = name_of(TYPE);
    struct dns_record record;

    set_config(mdns, "mdns", "off");
    save_config(mdns);
    take_message(mdns, "a goodbye");
    record = need_record(mdns, DNS_ANSWER, &type, DNS_PTR);
    conf_equal(conf, "TTL of PTR", record.ttl_s, 0);
    record = need_record(mdns, DNS_ANSWER, &mdns->host, DNS_A);
    conf_equal(conf, "TTL of A", record.ttl_s, 0);
    ask_question(mdns, &type, DNS_PTR, QM);
    expect_nothing(mdns, "although it is switched off");
    finish_mdns(mdns);
}

/* ---- Tests of answers. */

static bool has_text(const struct mdns *mdns, const struct dns_record *record,
                     const char *text)
{
    const uint8_t *data = mdns->packet->udp_payload + record->data_at;
    size_t at = 0, len = strlen(text);

    while (at < record->data_len) {
        if (data[at] >= len && memcmp(data + at + 1, text, len) == 0) {
            return true;
        }
        at += 1u + data[at];
    }
    return false;
}

/* Everything that a host needs for its connection is in one answer. */
static void check_service(struct mdns *mdns, bool is_v6)
{
    struct conf *conf = mdns->conf;
    const struct ip_addr *ip = conf_target_ip(conf, 0, is_v6);
    const struct dns_name type = name_of(TYPE);
    struct dns_record record = need_record(mdns, DNS_ANSWER, &type, DNS_PTR);
    struct dns_name name = target_of(mdns, &record, 0);
    const uint8_t *msg = mdns->packet->udp_payload;

    conf_equal(conf, "TTL of PTR", record.ttl_s, TTL_S);
    conf_check(conf, dns_name_equal(&name, &mdns->instance),
               "PTR names another instance");
    record = need_record(mdns, DNS_ADDITIONAL, &mdns->instance, DNS_SRV);
    name = target_of(mdns, &record, DNS_SRV_TARGET);
    conf_equal(conf, "port", get_be16(msg + record.data_at + DNS_SRV_PORT),
               NVME_PORT);
    conf_check(conf, dns_name_equal(&name, &mdns->host),
               "SRV names another host");
    record = need_record(mdns, DNS_ADDITIONAL, &mdns->instance, DNS_TXT);
    conf_check(conf, has_text(mdns, &record, "p=roce"), "TXT lacks p=roce");
    conf_check(conf, has_text(mdns, &record, "nqn=nqn."), "TXT has no NQN");
    for (unsigned int i = 0;; i++) {
        conf_check(conf,
                   find_record(mdns, DNS_ADDITIONAL, &mdns->host,
                               is_v6 ? DNS_AAAA : DNS_A, i, &record),
                   "the drive's address is in no record");
        if (memcmp(msg + record.data_at, ip->bytes + (is_v6 ? 0 : 12),
                   is_v6 ? 16 : 4) == 0) {
            return;
        }
    }
}

static void browse_service(struct conf *conf, bool is_v6)
{
    struct mdns *mdns = ready_mdns(conf, is_v6);
    const struct dns_name type = name_of("_NVMe-Disc._UDP.local");
    const struct packet *packet;
    uint64_t asked_us;

    /* A record is sent once a second, and was announced just now. */
    conf_pass(conf, SECOND_US);
    asked_us = conf_now_us(conf);
    ask_question(mdns, &type, DNS_PTR, QM);
    take_message(mdns, "an answer");
    packet = mdns->packet;
    check_service(mdns, is_v6);
    conf_equal(conf, "TTL of the packet", packet->ttl, 255);
    conf_equal(conf, "destination port", packet->udp.dst_port, PORT);
    conf_same(conf, "destination", packet->dst.bytes, mdns->path.dst.bytes, 16);
    conf_same(conf, "destination MAC", packet->eth.dst.bytes,
              mdns->path.dst_mac.bytes, 6);
    if (conf_target(conf)->is_virtual) {
        conf_check(conf,
                   packet->time_us - asked_us >= 20 * MS_US &&
                       packet->time_us - asked_us <= 121 * MS_US,
                   "the answer came after %llu us, not after 20 to 120 ms",
                   (unsigned long long)(packet->time_us - asked_us));
    }
    finish_mdns(mdns);
}

static void browse_ipv4(struct conf *conf)
{
    browse_service(conf, false);
}

static void browse_ipv6(struct conf *conf)
{
    browse_service(conf, true);
}

static void mdns_types(struct conf *conf)
{
    struct mdns *mdns = ready_mdns(conf, false);
    const struct dns_name types = name_of(TYPES), type = name_of(TYPE);
    struct dns_record record;
    struct dns_name name;

    ask_question(mdns, &types, DNS_PTR, QM);
    take_message(mdns, "an answer");
    record = need_record(mdns, DNS_ANSWER, &types, DNS_PTR);
    name = target_of(mdns, &record, 0);
    conf_check(conf, dns_name_equal(&name, &type), "PTR names another type");
    finish_mdns(mdns);
}

static void mdns_known(struct conf *conf)
{
    struct mdns *mdns = ready_mdns(conf, false);

    ask_knowing(mdns, TTL_S / 2);
    expect_nothing(mdns, "although its answer is known");
    ask_knowing(mdns, TTL_S / 2 - 1);
    take_message(mdns, "an answer that replaces an old one");
    finish_mdns(mdns);
}

static void mdns_rate(struct conf *conf)
{
    struct mdns *mdns = ready_mdns(conf, false);
    const struct packet *first;

    ask_question(mdns, &mdns->host, DNS_A, QM);
    take_message(mdns, "an answer");
    first = mdns->packet;
    ask_question(mdns, &mdns->host, DNS_A, QM);
    take_message(mdns, "a second answer");
    conf_check(
        conf,
        conf_later_most_us(conf, first, mdns->packet) + SLACK_US >= SECOND_US,
        "a record was sent twice within %llu ms",
        (unsigned long long)(conf_later_most_us(conf, first, mdns->packet) /
                             MS_US));
    finish_mdns(mdns);
}

static void mdns_unicast(struct conf *conf)
{
    struct mdns *mdns = ready_mdns(conf, false);

    ask_question(mdns, &mdns->instance, DNS_SRV, QU);
    take_message(mdns, "an answer");
    conf_same(conf, "destination", mdns->packet->dst.bytes,
              mdns->path.src.bytes, 16);
    need_record(mdns, DNS_ANSWER, &mdns->instance, DNS_SRV);
    finish_mdns(mdns);
}

static void mdns_simple(struct conf *conf)
{
    struct mdns *mdns = ready_mdns(conf, false);
    struct dns_record record;

    mdns->src_port = SIMPLE_PORT;
    ask_question(mdns, &mdns->instance, DNS_SRV, QM);
    take_message(mdns, "an answer");
    conf_same(conf, "destination", mdns->packet->dst.bytes,
              mdns->path.src.bytes, 16);
    conf_equal(conf, "destination port", mdns->packet->udp.dst_port,
               SIMPLE_PORT);
    conf_equal(conf, "id", mdns->header.id, 0x4711);
    conf_equal(conf, "questions", mdns->header.count[DNS_QUESTION], 1);
    record = need_record(mdns, DNS_ANSWER, &mdns->instance, DNS_SRV);
    conf_check(conf, record.ttl_s <= SIMPLE_TTL_S, "the TTL is %u s",
               record.ttl_s);
    conf_check(conf, !record.is_flushing, "the cache-flush bit is set");
    finish_mdns(mdns);
}

static void mdns_nsec(struct conf *conf)
{
    struct mdns *mdns = ready_mdns(conf, false);
    struct dns_record record;

    ask_question(mdns, &mdns->instance, DNS_A, QM);
    take_message(mdns, "an answer");
    record = need_record(mdns, DNS_ANSWER, &mdns->instance, DNS_NSEC);
    conf_check(conf, record.data_len >= 5, "the NSEC record is too short");
    /* One block of 5 octets with the types 16 (TXT) and 33 (SRV). */
    conf_same(conf, "types",
              mdns->packet->udp_payload + record.data_at + record.data_len - 7,
              "\0\5\0\0\x80\0\x40", 7);
    finish_mdns(mdns);
}

/*
 * The drive's dns.c parses neither this question nor this answer: the bytes of
 * the question are written out here, and those of the answer compared.
 */
static void mdns_literal(struct conf *conf)
{
    static const uint8_t question[] =
        "\0\0\0\0\0\1\0\0\0\0\0\0"
        "\x09_services\x07_dns-sd\x04_udp\x05local\0\0\x0c\0\1";
    static const uint8_t answer[] =
        "\0\0\x84\0\0\0\0\1\0\0\0\0"
        "\x09_services\x07_dns-sd\x04_udp\x05local\0"
        "\0\x0c\0\1\0\0\x11\x94\0\x0d\x0a_nvme-disc\xc0\x1e";
    struct mdns *mdns = ready_mdns(conf, false);

    send_message(mdns, question, sizeof(question) - 1);
    take_message(mdns, "an answer");
    conf_equal(conf, "length", mdns->packet->udp_payload_len,
               sizeof(answer) - 1);
    conf_same(conf, "answer", mdns->packet->udp_payload, answer,
              sizeof(answer) - 1);
    finish_mdns(mdns);
}

static void mdns_off(struct conf *conf)
{
    struct mdns *mdns = ready_mdns(conf, false);
    const struct dns_name type = name_of(TYPE);

    set_config(mdns, "mdns", "off");
    save_config(mdns);
    conf_reset(conf);
    conf_pass(conf, START_US);
    forget_messages(mdns);
    ask_question(mdns, &type, DNS_PTR, QM);
    expect_nothing(mdns, "although it is off");
    finish_mdns(mdns);
}

/* ---- Hostile messages. */

static void mdns_hostile(struct conf *conf)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
#define ROW(text) {text, sizeof(text) - 1}
        ROW("\0\0\0\0\0\1\0\0\0\0\0\0\xc0\x0c\0\x0c\0\1"), /* to itself */
        ROW("\0\0\0\0\0\1\0\0\0\0\0\0\xc0\x0e\xc0\x0c\0\x0c\0\1"), /* a loop */
        ROW("\0\0\0\0\0\1\0\0\0\0\0\0\x3f_nvme"), /* a label beyond the end */
        ROW("\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\x0c\0\1"),
        ROW("\0\0\0\0\0\1"), /* half a header */
        ROW("\0\0\x84\0\0\0\0\1\0\0\0\0\0\0\x0c\0\1\0\0\0\0\xff\xff\0"),
    };
    struct mdns *mdns = ready_mdns(conf, false);
    const struct dns_name type = name_of(TYPE);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        send_message(mdns, (const uint8_t *)rows[i].bytes, rows[i].len);
    }
    expect_nothing(mdns, "a malformed message");
    ask_question(mdns, &type, DNS_PTR, QM);
    take_message(mdns, "an answer to a good question");
    check_service(mdns, false);
    finish_mdns(mdns);
    conf_expect_alive(conf);
}

#define TEST(name_, clause_, purpose_, run_, ...)                              \
    CONF_TEST("mdns." name_, clause_, purpose_, run_,                          \
              .needs = CONF_NEEDS_CONTROL, ##__VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("probe", "RFC 6762 8.1",
         "a new name is probed three times, 250 ms apart, before it is used",
         mdns_probe, .judges_time = true),
    TEST("announce", "RFC 6762 8.3, 10.2",
         "records are announced twice, unique ones with the cache-flush bit",
         mdns_announce, .judges_time = true),
    TEST("rename", "RFC 6762 8.1, 9",
         "a name that another station has is given up for another one",
         mdns_rename),
    TEST("conflict", "RFC 6762 9",
         "a name in use that is contradicted is probed again", mdns_conflict),
    TEST("elsewhere", "RFC 6762 6, 11",
         "a response from a port other than 5353 is ignored", mdns_elsewhere),
    TEST("goodbye", "RFC 6762 10.1",
         "a responder that is switched off sends its records with TTL 0",
         mdns_goodbye),
    TEST("browse", "NVMe TP 8009; RFC 6763 4, 12.1; RFC 6762 6, 11",
         "a question for _nvme-disc._udp gets the instance, its host, port, "
         "address and TXT record after 20 to 120 ms",
         browse_ipv4),
    TEST("browse6", "NVMe TP 8009; RFC 6762 20", "the same over IPv6",
         browse_ipv6),
    TEST("types", "RFC 6763 9",
         "a question for all types of services is answered", mdns_types),
    TEST("known-answer", "RFC 6762 7.1",
         "an answer that the question has with half of its TTL is left out",
         mdns_known),
    TEST("rate", "RFC 6762 6",
         "a record is sent to the group at most once a second", mdns_rate,
         .judges_time = true),
    TEST("unicast", "RFC 6762 5.4",
         "a question that wants a unicast answer gets one", mdns_unicast),
    TEST("simple", "RFC 6762 6.7",
         "a simple resolver gets its question back, with a TTL of at most 10 s",
         mdns_simple),
    TEST("nsec", "RFC 6762 6.1",
         "a question for a type that a name has not gets an NSEC record",
         mdns_nsec),
    TEST("literal", "RFC 1035 4.1.4; RFC 6762 18",
         "an answer has exactly the bytes that the specification describes",
         mdns_literal),
    TEST("off", "RFC 6762 5", "without the setting nobody is answered",
         mdns_off),
    TEST("hostile", "RFC 1035 4.1.4; RFC 6762 18",
         "pointer loops and wrong lengths are ignored", mdns_hostile,
         .is_malformed = true),
};
CONF_TESTS(conf_tests_net_mdns, "net", tests);
