/* SPDX-License-Identifier: BSD-2-Clause */
/* The mDNS responder: names, announcements, answers, and hostile messages. */
#include "tests/unit/net/stack/net_test.h"

#include "net/stack/mdns.h"
#include "net/wire/ipv4.h"
#include "net/wire/ipv6.h"
#include "net/wire/mld.h"
#include "net/wire/udp.h"

enum {
    IP4_AT = ETH_LEN,
    UDP4_AT = ETH_LEN + IPV4_LEN,
    DNS4_AT = UDP4_AT + UDP_LEN,
    MS = 1000,
    QU = DNS_CLASS_IN | DNS_CLASS_TOP,
    QM = DNS_CLASS_IN,
};

#define NQN      "nqn.2019-10.example:drive:discovery"
#define TYPE     "_nvme-disc._udp.local"
#define INSTANCE "rack7-0._nvme-disc._udp.local"
#define HOST     "rack7-0.local"

static const struct ip_addr group4 = {{[10] = 0xff, 0xff, 224, 0, 0, 251}};
static const struct ip_addr group6 = {{0xff, 0x02, [15] = 0xfb}};
static const struct ip_addr near4 = {{[10] = 0xff, 0xff, 10, 0, 0, 9}};

struct bed {
    struct world *w;
    struct mdns_agent agent;
    char name[64];
    char claimed[64];
    unsigned claims;
    unsigned seen; /* how many sent frames take_message() has looked at */
};

static void on_claim(void *ctx, uint8_t port, const char *host)
{
    struct bed *bed = ctx;

    if (port == 0) {
        bed->claims++;
        strcpy(bed->claimed, host);
    }
}

static void run_for(struct bed *bed, uint64_t us)
{
    uint64_t until_us = bed->w->now_us + us;
    uint64_t next_us = bed->w->now_us;

    while (next_us <= until_us) {
        uint64_t mdns_us, stack_us;

        bed->w->now_us = next_us;
        mdns_us = mdns_timer(&bed->agent, next_us);
        stack_us = net_stack_timer(&bed->w->stack, next_us);
        next_us = MIN(mdns_us, stack_us);
        assert_true(next_us > bed->w->now_us);
    }
    bed->w->now_us = until_us;
}

/* Make a responder on port 0 that is about to probe. */
static struct bed *bed_new(void)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct mdns_config config = {
        .nqn = NQN,
        .service_port = 4420,
        .vlan = {NET_VLAN_UNTAGGED, NET_VLAN_UNTAGGED},
        .is_on = true,
        .random_seed = 7,
        .ctx = bed,
        .claimed = on_claim,
    };

    assert_non_null(bed);
    bed->w = world_ready();
    strcpy(bed->name, "rack7");
    config.stack = &bed->w->stack;
    config.name = bed->name;
    assert_true(mdns_init(&bed->agent, &config, bed->w->now_us));
    /* The listener reports. */
    run_for(bed, 5 * SECOND);
    bed->seen = bed->w->sent_count;
    mdns_link(&bed->agent, 0, true, bed->w->now_us);
    return bed;
}

/* ... that has announced its names. */
static struct bed *bed_ready(void)
{
    struct bed *bed = bed_new();

    run_for(bed, 5 * SECOND);
    assert_int_equal(bed->agent.links[0].state, MDNS_READY);
    bed->seen = bed->w->sent_count;
    return bed;
}

static void bed_free(struct bed *bed)
{
    world_free(bed->w);
    free(bed);
}

/* ---- What the drive sends. */

struct message {
    const struct sent *frame;
    struct ip_addr dst;
    struct udp udp;
    struct dns_header header;
    uint8_t ttl;
    uint8_t dns[1500];
    size_t len;
};

/* Parse a sent frame. @return false when it is no IPv4 message of port 5353 */
static bool parse_message(struct message *m, const struct sent *frame)
{
    struct eth eth;
    struct ipv4 ip;

    m->frame = frame;
    if (!eth_parse(&eth, frame->data, frame->len) ||
        eth.type != ETHERTYPE_IPV4 ||
        !ipv4_parse(&ip, frame->data + IP4_AT, frame->len - IP4_AT) ||
        ip.protocol != IP_PROTOCOL_UDP ||
        !udp_parse(&m->udp, frame->data + UDP4_AT, frame->len - UDP4_AT) ||
        m->udp.src_port != MDNS_PORT) {
        return false;
    }
    m->dst = ip.dst;
    m->ttl = ip.ttl;
    m->len = m->udp.length_bytes - (size_t)UDP_LEN;
    memcpy(m->dns, frame->data + DNS4_AT, m->len);
    assert_true(dns_header_parse(&m->header, m->dns, m->len));
    return true;
}

/* Take the next message over IPv4 that was sent. */
static bool take_message(struct bed *bed, struct message *m)
{
    while (bed->seen < bed->w->sent_count) {
        const struct sent *frame = &bed->w->sent[bed->seen++ % SENT_MAX];

        if (parse_message(m, frame)) {
            return true;
        }
    }
    return false;
}

static void expect_silence(struct bed *bed)
{
    struct message m;

    assert_false(take_message(bed, &m));
}

static struct dns_name name_of(const char *text)
{
    struct dns_name name;

    dns_name_init(&name);
    dns_name_add_text(&name, text);
    return name;
}

/* Find the n-th record of that name and type in a section. */
static bool find_record(const struct message *m, enum dns_section section,
                        const char *name, uint16_t type, unsigned n,
                        struct dns_record *record)
{
    struct dns_name wanted = name_of(name);
    struct dns_question question;
    size_t at = DNS_LEN;

    for (unsigned i = 0; i < m->header.count[DNS_QUESTION]; i++) {
        assert_true(dns_question_parse(&question, m->dns, m->len, &at));
    }
    for (unsigned s = DNS_ANSWER; s <= section; s++) {
        for (unsigned i = 0; i < m->header.count[s]; i++) {
            assert_true(dns_record_parse(record, m->dns, m->len, &at));
            if (s == section && record->type == type &&
                dns_name_equal(&record->name, &wanted) && n-- == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool has_record(const struct message *m, enum dns_section section,
                       const char *name, uint16_t type)
{
    struct dns_record record;

    return find_record(m, section, name, type, 0, &record);
}

/* ---- What others send. */

struct other {
    struct ip_addr src;
    struct ip_addr dst;
    uint16_t src_port;
    bool is_response;
    bool is_truncated;
    uint16_t id;
};

static const struct other querier = {
    .src = {{[10] = 0xff, 0xff, 10, 0, 0, 9}},
    .dst = {{[10] = 0xff, 0xff, 224, 0, 0, 251}},
    .src_port = MDNS_PORT,
};

static struct other other_responder(void)
{
    struct other other = querier;

    other.is_response = true;
    return other;
}

static void begin_message(struct dns_writer *w, uint8_t *buf,
                          const struct other *other)
{
    dns_write_begin(w, buf, MDNS_MESSAGE_MAX);
    w->header.is_response = other->is_response;
    w->header.is_truncated = other->is_truncated;
    w->header.id = other->id;
}

static void add_question(struct dns_writer *w, const char *name, uint16_t type,
                         uint16_t dns_class)
{
    struct dns_name wire = name_of(name);

    dns_write_question(w, &wire, type, dns_class);
}

static void add_pointer(struct dns_writer *w, const char *name,
                        const char *target, uint32_t ttl_s)
{
    struct dns_name to = name_of(target);
    const struct dns_record record = {
        .name = name_of(name),
        .type = DNS_PTR,
        .dns_class = DNS_CLASS_IN,
        .ttl_s = ttl_s,
    };

    dns_write_pointing(w, DNS_ANSWER, &record, NULL, &to);
}

static void add_address(struct dns_writer *w, enum dns_section section,
                        const char *name, uint32_t v4)
{
    struct ip_addr ip = ip_addr_from_v4(v4);
    const struct dns_record record = {
        .name = name_of(name),
        .type = DNS_A,
        .dns_class = DNS_CLASS_IN,
        .is_flushing = section == DNS_ANSWER,
        .ttl_s = 120,
        .data_len = 4,
    };

    dns_write_record(w, section, &record, ip.bytes + 12);
}

static void send_bytes(struct bed *bed, const struct other *other,
                       const uint8_t *payload, size_t len)
{
    uint8_t frame[ETH_LEN + IPV4_LEN + UDP_LEN + 1500];
    const struct eth eth = {
        .dst = ip_addr_is_multicast(&other->dst)
                   ? (struct mac_addr){{1, 0, 0x5e, 0, 0, 0xfb}}
                   : (struct mac_addr){{2, 0, 0, 0, 0, 0x10}},
        .src = other_mac,
        .type = ETHERTYPE_IPV4,
    };
    const struct ipv4 ip = {
        .src = other->src,
        .dst = other->dst,
        .total_len_bytes = (uint16_t)(IPV4_LEN + UDP_LEN + len),
        .ttl = 255,
        .protocol = IP_PROTOCOL_UDP,
    };
    const struct udp udp = {
        .src_port = other->src_port,
        .dst_port = MDNS_PORT,
        .length_bytes = (uint16_t)(UDP_LEN + len), /* no checksum */
    };

    eth_emit(&eth, frame);
    ipv4_emit(&ip, frame + IP4_AT);
    udp_emit(&udp, frame + UDP4_AT);
    memcpy(frame + DNS4_AT, payload, len);
    assert_true(world_input(bed->w, 0, frame, DNS4_AT + len));
}

static void send_message(struct bed *bed, const struct other *other,
                         struct dns_writer *w)
{
    size_t len = dns_write_end(w);

    assert_false(w->is_full);
    send_bytes(bed, other, w->buf, len);
}

static void send_question(struct bed *bed, const struct other *other,
                          const char *name, uint16_t type, uint16_t dns_class)
{
    uint8_t buf[MDNS_MESSAGE_MAX];
    struct dns_writer w;

    begin_message(&w, buf, other);
    add_question(&w, name, type, dns_class);
    send_message(bed, other, &w);
}

/* ---- Names. */

static void test_mdns_probes_three_times_and_announces_twice(void **state)
{
    struct bed *bed = bed_new();
    struct message m;
    uint64_t from_us = bed->w->now_us;

    (void)state;
    run_for(bed, MDNS_PROBE_US);
    for (unsigned i = 0; i < MDNS_PROBES; i++) {
        assert_true(take_message(bed, &m));
        assert_false(m.header.is_response);
        assert_int_equal(m.header.count[DNS_QUESTION], 2);
        assert_true(has_record(&m, DNS_AUTHORITY, INSTANCE, DNS_SRV));
        assert_true(has_record(&m, DNS_AUTHORITY, INSTANCE, DNS_TXT));
        assert_true(has_record(&m, DNS_AUTHORITY, HOST, DNS_A));
        assert_true(has_record(&m, DNS_AUTHORITY, HOST, DNS_AAAA));
        expect_silence(bed);
        run_for(bed, MDNS_PROBE_US);
    }
    assert_string_equal(bed->claimed, "rack7-0");
    assert_true(bed->w->now_us - from_us <= 5 * MDNS_PROBE_US);
    for (unsigned i = 0; i < MDNS_ANNOUNCEMENTS; i++) {
        assert_true(take_message(bed, &m));
        assert_true(m.header.is_response && m.header.is_authoritative);
        assert_true(has_record(&m, DNS_ANSWER, TYPE, DNS_PTR));
        expect_silence(bed);
        run_for(bed, MDNS_ANNOUNCE_US);
    }
    expect_silence(bed);
    bed_free(bed);
}

/* Every record of an announcement, as hosts read it. */
static void test_mdns_announcement_has_the_service(void **state)
{
    static const char txt[] = "\x06p=roce\x27nqn=" NQN;
    struct bed *bed = bed_new();
    struct dns_record record;
    struct dns_name name, expected;
    struct message m;
    size_t at;

    (void)state;
    run_for(bed, 4 * MDNS_PROBE_US);
    while (take_message(bed, &m) && !m.header.is_response) {
    }
    assert_int_equal(m.udp.dst_port, MDNS_PORT);
    assert_int_equal(m.ttl, 255);
    assert_true(ip_addr_equal(&m.dst, &group4));
    assert_true(find_record(&m, DNS_ANSWER, TYPE, DNS_PTR, 0, &record));
    assert_false(record.is_flushing);
    assert_int_equal(record.ttl_s, 4500);
    at = record.data_at;
    assert_true(dns_name_parse(&name, m.dns, m.len, &at));
    expected = name_of(INSTANCE);
    assert_true(dns_name_equal(&name, &expected));

    assert_true(find_record(&m, DNS_ANSWER, INSTANCE, DNS_SRV, 0, &record));
    assert_true(record.is_flushing);
    assert_int_equal(record.ttl_s, 120);
    assert_memory_equal(m.dns + record.data_at, "\0\0\0\0\x11\x44", 6);
    at = record.data_at + DNS_SRV_TARGET;
    assert_true(dns_name_parse(&name, m.dns, m.len, &at));
    expected = name_of(HOST);
    assert_true(dns_name_equal(&name, &expected));

    assert_true(find_record(&m, DNS_ANSWER, INSTANCE, DNS_TXT, 0, &record));
    assert_int_equal(record.data_len, sizeof(txt) - 1);
    assert_memory_equal(m.dns + record.data_at, txt, sizeof(txt) - 1);

    assert_true(find_record(&m, DNS_ANSWER, HOST, DNS_A, 0, &record));
    assert_memory_equal(m.dns + record.data_at, "\x0a\0\0\x02", 4);
    assert_false(find_record(&m, DNS_ANSWER, HOST, DNS_A, 1, &record));
    assert_true(find_record(&m, DNS_ANSWER, HOST, DNS_AAAA, 1, &record));
    assert_true(
        has_record(&m, DNS_ANSWER, "_services._dns-sd._udp.local", DNS_PTR));
    bed_free(bed);
}

static void test_mdns_names_have_letters_digits_and_hyphens(void **state)
{
    struct bed *bed = bed_new();
    uint16_t vlan[NET_PORTS] = {NET_VLAN_UNTAGGED, NET_VLAN_UNTAGGED};

    (void)state;
    strcpy(bed->name, "rack.7/slot_3");
    assert_true(mdns_set(&bed->agent, true, true, vlan, bed->w->now_us));
    run_for(bed, 5 * SECOND);
    assert_string_equal(bed->claimed, "rack-7-slot-3-0");
    bed_free(bed);
}

/* Another station has the name: it keeps it, and ours gets a number. */
static void test_mdns_takes_another_name_if_a_probe_is_answered(void **state)
{
    struct bed *bed = bed_new();
    struct other other = other_responder();
    uint8_t buf[MDNS_MESSAGE_MAX];
    struct dns_writer w;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        run_for(bed, MDNS_PROBE_US + 1);
        begin_message(&w, buf, &other);
        add_address(&w, DNS_ANSWER, i == 0 ? HOST : "RACK7-0-2.local",
                    0x0a000009);
        send_message(bed, &other, &w);
    }
    run_for(bed, 5 * SECOND);
    assert_string_equal(bed->claimed, "rack7-0-3");
    assert_int_equal(mdns_counter_read(&bed->agent, MDNS_CONFLICTS_SEEN), 2);
    bed_free(bed);
}

/* The same record is no conflict: it may be an echo of our own. */
static void test_mdns_keeps_its_name_if_another_says_the_same(void **state)
{
    struct bed *bed = bed_new();
    struct other other = other_responder();
    uint8_t buf[MDNS_MESSAGE_MAX];
    struct dns_writer w;

    (void)state;
    run_for(bed, MDNS_PROBE_US + 1);
    begin_message(&w, buf, &other);
    add_address(&w, DNS_ANSWER, HOST, 0x0a000002);
    send_message(bed, &other, &w);
    run_for(bed, 5 * SECOND);
    assert_string_equal(bed->claimed, "rack7-0");
    bed_free(bed);
}

static void test_mdns_probes_again_if_its_name_is_contradicted(void **state)
{
    struct bed *bed = bed_ready();
    struct other other = other_responder();
    uint8_t buf[MDNS_MESSAGE_MAX];
    struct dns_writer w;
    struct message m;

    (void)state;
    begin_message(&w, buf, &other);
    add_address(&w, DNS_ANSWER, HOST, 0x0a000009);
    send_message(bed, &other, &w);
    assert_int_equal(bed->agent.links[0].state, MDNS_PROBING);
    run_for(bed, MDNS_PROBE_US + 1);
    assert_true(take_message(bed, &m));
    assert_true(has_record(&m, DNS_AUTHORITY, INSTANCE, DNS_SRV));
    run_for(bed, 5 * SECOND);
    assert_string_equal(bed->claimed, "rack7-0");
    assert_int_equal(bed->claims, 2);
    bed_free(bed);
}

/* Section 8.2: of two simultaneous probes, the one with the later data wins. */
static void test_mdns_loser_of_simultaneous_probes_waits_a_second(void **state)
{
    static const struct {
        uint32_t v4;
        bool is_lost;
    } rows[] = {{0x0a000001, false}, {0x0a000002, false}, {0x0a000003, true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed *bed = bed_new();
        uint8_t buf[MDNS_MESSAGE_MAX];
        struct dns_writer w;
        struct message m;

        run_for(bed, MDNS_PROBE_US + 1);
        while (take_message(bed, &m)) {
        }
        begin_message(&w, buf, &querier);
        add_question(&w, HOST, DNS_ANY, QU);
        add_address(&w, DNS_AUTHORITY, HOST, rows[i].v4);
        send_message(bed, &querier, &w);
        run_for(bed, 990 * MS);
        if (rows[i].is_lost) {
            expect_silence(bed);
            assert_int_equal(bed->agent.links[0].state, MDNS_PROBING);
        } else {
            assert_int_not_equal(bed->agent.links[0].state, MDNS_PROBING);
        }
        run_for(bed, 5 * SECOND);
        assert_string_equal(bed->claimed, "rack7-0");
        bed_free(bed);
    }
}

/* Add the record that another station claims for the drive's service. */
static void add_service(struct dns_writer *w, uint16_t port, const char *target)
{
    const uint8_t fixed[DNS_SRV_TARGET] = {
        0, 0, 0, 0, (uint8_t)(port >> 8), (uint8_t)port};
    struct dns_name to = name_of(target);
    const struct dns_record record = {
        .name = name_of(INSTANCE),
        .type = DNS_SRV,
        .dns_class = DNS_CLASS_IN,
        .ttl_s = 120,
        .data_len = DNS_SRV_TARGET,
    };

    dns_write_pointing(w, DNS_AUTHORITY, &record, fixed, &to);
}

static void add_text(struct dns_writer *w, const char *text, uint16_t len)
{
    const struct dns_record record = {
        .name = name_of(INSTANCE),
        .type = DNS_TXT,
        .dns_class = DNS_CLASS_IN,
        .ttl_s = 120,
        .data_len = len,
    };

    dns_write_record(w, DNS_AUTHORITY, &record, (const uint8_t *)text);
}

/* Two stations probe for the same service.  Their records are compared in the
 * order of their types, TXT before SRV, byte by byte: RFC 6762 section 8.2. */
static void test_mdns_simultaneous_probes_for_a_service_are_compared(
    void **state)
{
    static const char ours[] = "\x06p=roce\x27nqn=" NQN;
    static const struct {
        const char *text; /* NULL: no TXT record */
        uint16_t port;    /* 0: no SRV record */
        const char *target;
        bool is_lost;
    } rows[] = {
        {ours, 4420, HOST, false},            /* our own records */
        {ours, 4419, "zzzzz-0.local", false}, /* the port comes first */
        {ours, 4421, "aaaaa-0.local", true},
        {ours, 4420, "rack6-0.local", false},
        {ours, 4420, "rack8-0.local", true},
        {ours, 4420, "rack70-0.local", true}, /* a longer label */
        {ours, 0, NULL, false},               /* the longer list wins */
        {"\x06p=roca", 4421, HOST, false},
        {"\x06p=rocf", 1, HOST, true},
        {NULL, 4420, HOST, true}, /* SRV is the higher type */
        {NULL, 4421, HOST, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct bed *bed = bed_new();
        uint8_t buf[MDNS_MESSAGE_MAX];
        struct dns_writer w;
        struct message m;

        run_for(bed, MDNS_PROBE_US + 1);
        while (take_message(bed, &m)) {
        }
        begin_message(&w, buf, &querier);
        add_question(&w, INSTANCE, DNS_ANY, QU);
        if (rows[i].port != 0) {
            add_service(&w, rows[i].port, rows[i].target);
        }
        if (rows[i].text != NULL) {
            add_text(&w, rows[i].text,
                     rows[i].text == ours ? sizeof(ours) - 1 : 7);
        }
        send_message(bed, &querier, &w);
        run_for(bed, 990 * MS);
        if (rows[i].is_lost) {
            expect_silence(bed);
        }
        assert_int_equal(bed->agent.links[0].state == MDNS_PROBING,
                         rows[i].is_lost);
        run_for(bed, 5 * SECOND);
        assert_string_equal(bed->claimed, "rack7-0");
        bed_free(bed);
    }
}

/* A station that objects to everything does not make the drive probe without
 * end: after 15 conflicts it waits 5 s before each attempt. */
static void test_mdns_probes_rarely_after_many_conflicts(void **state)
{
    struct bed *bed = bed_new();
    struct other other = other_responder();
    uint8_t buf[MDNS_MESSAGE_MAX];
    unsigned sent;

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        const struct dns_name *host = &bed->agent.links[0].host;
        struct dns_record record = {
            .name = *host,
            .type = DNS_A,
            .dns_class = DNS_CLASS_IN,
            .ttl_s = 120,
            .data_len = 4,
        };
        struct dns_writer w;

        begin_message(&w, buf, &other);
        dns_write_record(&w, DNS_ANSWER, &record, near4.bytes + 12);
        send_message(bed, &other, &w);
        run_for(bed, 10 * MS);
    }
    sent = bed->w->sent_count;
    run_for(bed, 4900 * MS);
    assert_int_equal(bed->w->sent_count, sent);
    assert_int_equal(bed->claims, 0);
    run_for(bed, 5 * SECOND);
    assert_int_equal(bed->claims, 1);
    bed_free(bed);
}

/* ---- Answers. */

static void test_mdns_browser_gets_everything_in_one_answer(void **state)
{
    struct bed *bed = bed_ready();
    struct message m;

    (void)state;
    run_for(bed, SECOND);
    send_question(bed, &querier, "_NVME-disc._udp.local", DNS_PTR, QM);
    run_for(bed, 19 * MS);
    expect_silence(bed);
    run_for(bed, 102 * MS);
    assert_true(take_message(bed, &m));
    assert_true(m.header.is_response && m.header.id == 0);
    assert_true(ip_addr_equal(&m.dst, &group4));
    assert_int_equal(m.header.count[DNS_QUESTION], 0);
    assert_int_equal(m.header.count[DNS_ANSWER], 1);
    assert_true(has_record(&m, DNS_ANSWER, TYPE, DNS_PTR));
    assert_true(has_record(&m, DNS_ADDITIONAL, INSTANCE, DNS_SRV));
    assert_true(has_record(&m, DNS_ADDITIONAL, INSTANCE, DNS_TXT));
    assert_true(has_record(&m, DNS_ADDITIONAL, HOST, DNS_A));
    assert_true(has_record(&m, DNS_ADDITIONAL, HOST, DNS_AAAA));
    run_for(bed, 5 * SECOND);
    expect_silence(bed);
    bed_free(bed);
}

static void test_mdns_unique_records_are_answered_at_once(void **state)
{
    static const struct {
        const char *name;
        uint16_t type;
        uint16_t answer;
    } rows[] = {
        {INSTANCE, DNS_SRV, DNS_SRV}, {INSTANCE, DNS_TXT, DNS_TXT},
        {HOST, DNS_A, DNS_A},         {HOST, DNS_AAAA, DNS_AAAA},
        {HOST, DNS_ANY, DNS_AAAA},    {INSTANCE, DNS_ANY, DNS_TXT},
        {INSTANCE, DNS_A, DNS_NSEC},  {HOST, 13, DNS_NSEC},
    };
    struct bed *bed = bed_ready();
    struct message m;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        run_for(bed, 2 * SECOND);
        send_question(bed, &querier, rows[i].name, rows[i].type, QM);
        run_for(bed, 1 * MS);
        assert_true(take_message(bed, &m));
        assert_true(has_record(&m, DNS_ANSWER, rows[i].name, rows[i].answer));
    }
    bed_free(bed);
}

static void test_mdns_other_names_and_types_are_not_answered(void **state)
{
    struct bed *bed = bed_ready();

    (void)state;
    run_for(bed, SECOND);
    send_question(bed, &querier, "_nvme-disc._tcp.local", DNS_PTR, QM);
    send_question(bed, &querier, TYPE, DNS_SRV, QM);
    send_question(bed, &querier, "rack7-1.local", DNS_A, QM);
    send_question(bed, &querier, "local", DNS_ANY, QM);
    send_question(bed, &querier, HOST, DNS_A, 3); /* another class */
    run_for(bed, 5 * SECOND);
    expect_silence(bed);
    bed_free(bed);
}

/* Section 7.1: with half of its time to live left, an answer is known. */
static void test_mdns_known_answer_is_left_out(void **state)
{
    static const struct {
        const char *instance;
        uint32_t ttl_s;
        bool is_answered;
    } rows[] = {
        {INSTANCE, 2250, false},
        {INSTANCE, 2249, true},
        {"other._nvme-disc._udp.local", 4500, true},
    };
    struct bed *bed = bed_ready();
    struct message m;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t buf[MDNS_MESSAGE_MAX];
        struct dns_writer w;

        run_for(bed, 2 * SECOND);
        begin_message(&w, buf, &querier);
        add_question(&w, TYPE, DNS_PTR, QM);
        add_pointer(&w, TYPE, rows[i].instance, rows[i].ttl_s);
        send_message(bed, &querier, &w);
        run_for(bed, SECOND);
        assert_int_equal(take_message(bed, &m), rows[i].is_answered);
    }
    bed_free(bed);
}

/* Section 7.2: the known answers of a truncated query come in a second one. */
static void test_mdns_waits_for_known_answers_of_a_truncated_query(void **state)
{
    struct bed *bed = bed_ready();
    struct message m;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct other other = querier;
        uint8_t buf[MDNS_MESSAGE_MAX];
        struct dns_writer w;

        run_for(bed, 2 * SECOND);
        other.is_truncated = true;
        send_question(bed, &other, TYPE, DNS_PTR, QM);
        run_for(bed, 390 * MS);
        expect_silence(bed);
        other.is_truncated = false;
        other.src.bytes[15] = i == 2 ? 8 : 9; /* i = 2: another station */
        begin_message(&w, buf, &other);
        add_pointer(&w, TYPE, INSTANCE, 4500);
        if (i != 0) {
            send_message(bed, &other, &w);
        }
        run_for(bed, 200 * MS);
        assert_int_equal(take_message(bed, &m), i != 1);
    }
    bed_free(bed);
}

static void test_mdns_sends_a_record_once_a_second(void **state)
{
    struct bed *bed = bed_ready();
    struct message m;
    unsigned count = 0;

    (void)state;
    run_for(bed, 2 * SECOND);
    for (unsigned i = 0; i < 1000; i++) {
        send_question(bed, &querier, HOST, DNS_A, QM);
        run_for(bed, 10 * MS);
        count += take_message(bed, &m);
    }
    assert_in_range(count, 9, 11);
    bed_free(bed);
}

/* A probe for our name is answered at least each 250 ms: section 6. */
static void test_mdns_defends_its_name_against_a_probe(void **state)
{
    struct bed *bed = bed_ready();
    struct message m;

    (void)state;
    run_for(bed, 2 * SECOND);
    for (unsigned i = 0; i < 3; i++) {
        uint8_t buf[MDNS_MESSAGE_MAX];
        struct dns_writer w;

        begin_message(&w, buf, &querier);
        add_question(&w, HOST, DNS_ANY, QU);
        add_address(&w, DNS_AUTHORITY, HOST, 0x0a000009);
        send_message(bed, &querier, &w);
        run_for(bed, 250 * MS);
        assert_true(take_message(bed, &m));
        assert_true(has_record(&m, DNS_ANSWER, HOST, DNS_A));
        assert_true(ip_addr_equal(&m.dst, &group4));
    }
    assert_int_equal(bed->agent.links[0].state, MDNS_READY);
    bed_free(bed);
}

static void test_mdns_unicast_answer_if_the_group_has_heard_it(void **state)
{
    struct bed *bed = bed_ready();
    struct message m;

    (void)state;
    send_question(bed, &querier, INSTANCE, DNS_SRV, QU);
    run_for(bed, 1 * MS);
    assert_true(take_message(bed, &m));
    assert_true(ip_addr_equal(&m.dst, &near4));
    assert_int_equal(m.udp.dst_port, MDNS_PORT);
    assert_memory_equal(m.frame->data, other_mac.bytes, 6);
    assert_int_equal(m.header.count[DNS_QUESTION], 0);

    run_for(bed, 40 * SECOND); /* a quarter of 120 s is over */
    send_question(bed, &querier, INSTANCE, DNS_SRV, QU);
    run_for(bed, 1 * MS);
    assert_true(take_message(bed, &m));
    assert_true(ip_addr_equal(&m.dst, &group4));
    bed_free(bed);
}

/* Section 6.7: such as `dig @224.0.0.251 -p 5353`. */
static void test_mdns_simple_resolver_gets_a_usual_dns_answer(void **state)
{
    struct bed *bed = bed_ready();
    struct other other = querier;
    struct dns_question question;
    struct dns_record record;
    struct dns_name host = name_of(HOST), target;
    struct message m;
    size_t at = DNS_LEN;

    (void)state;
    other.src_port = 40000;
    other.id = 0x1234;
    send_question(bed, &other, INSTANCE, DNS_SRV, QM);
    run_for(bed, 1 * MS);
    assert_true(take_message(bed, &m));
    assert_true(ip_addr_equal(&m.dst, &near4));
    assert_int_equal(m.udp.dst_port, 40000);
    assert_int_equal(m.header.id, 0x1234);
    assert_true(dns_question_parse(&question, m.dns, m.len, &at));
    assert_int_equal(question.type, DNS_SRV);
    assert_true(find_record(&m, DNS_ANSWER, INSTANCE, DNS_SRV, 0, &record));
    assert_int_equal(record.ttl_s, 10);
    assert_false(record.is_flushing);
    /* The target is not compressed: section 18.14. */
    assert_int_equal(record.data_len, DNS_SRV_TARGET + host.len);
    at = record.data_at + DNS_SRV_TARGET;
    assert_true(dns_name_parse(&target, m.dns, m.len, &at));
    assert_true(dns_name_equal(&target, &host));
    bed_free(bed);
}

static void test_mdns_answers_to_stations_are_limited(void **state)
{
    struct bed *bed = bed_ready();
    struct other other = querier;
    struct message m;
    unsigned count = 0;

    (void)state;
    other.src_port = 40000;
    for (unsigned i = 0; i < 1000; i++) {
        send_question(bed, &other, HOST, DNS_A, QM);
        run_for(bed, 1 * MS);
        count += take_message(bed, &m);
    }
    assert_in_range(count, 25, 31);
    assert_true(mdns_counter_read(&bed->agent, MDNS_LIMITED) > 900);
    bed_free(bed);
}

/* ---- Changes. */

static void test_mdns_says_goodbye_to_a_removed_address(void **state)
{
    struct bed *bed = bed_ready();
    struct dns_record record;
    struct message m;

    (void)state;
    run_for(bed, 2 * SECOND);
    net_stack_address_remove(&bed->w->stack, 1); /* 2001:db8::2 */
    run_for(bed, 100 * MS);
    assert_true(take_message(bed, &m));
    assert_true(find_record(&m, DNS_ANSWER, HOST, DNS_AAAA, 0, &record));
    assert_int_equal(record.ttl_s, 120);
    assert_memory_equal(m.dns + record.data_at, "\xfe\x80", 2);
    assert_true(find_record(&m, DNS_ANSWER, HOST, DNS_AAAA, 1, &record));
    assert_int_equal(record.ttl_s, 0);
    assert_memory_equal(m.dns + record.data_at, "\x20\x01\x0d\xb8", 4);
    assert_false(find_record(&m, DNS_ANSWER, HOST, DNS_AAAA, 2, &record));
    run_for(bed, 2 * SECOND);
    assert_true(take_message(bed, &m));
    assert_false(find_record(&m, DNS_ANSWER, HOST, DNS_AAAA, 1, &record));
    bed_free(bed);
}

static void expect_goodbye(struct bed *bed)
{
    struct dns_record record;
    struct message m;

    assert_true(take_message(bed, &m));
    assert_true(find_record(&m, DNS_ANSWER, TYPE, DNS_PTR, 0, &record));
    assert_int_equal(record.ttl_s, 0);
    assert_true(find_record(&m, DNS_ANSWER, HOST, DNS_A, 0, &record));
    assert_int_equal(record.ttl_s, 0);
}

static void test_mdns_says_goodbye_when_it_stops(void **state)
{
    struct bed *bed = bed_ready();

    (void)state;
    mdns_stop(&bed->agent, bed->w->now_us);
    expect_goodbye(bed);
    send_question(bed, &querier, TYPE, DNS_PTR, QM);
    run_for(bed, 5 * SECOND);
    expect_silence(bed);
    bed_free(bed);
}

static unsigned count_groups(const struct bed *bed)
{
    struct mac_addr macs[NET_MULTICAST];
    size_t count = net_stack_multicast(&bed->w->stack, 0, macs);
    unsigned found = 0;

    for (size_t i = 0; i < count; i++) {
        found += memcmp(macs[i].bytes, "\x01\x00\x5e\x00\x00\xfb", 6) == 0;
        found += memcmp(macs[i].bytes, "\x33\x33\x00\x00\x00\xfb", 6) == 0;
    }
    return found;
}

static void test_mdns_is_switched_off_and_on(void **state)
{
    struct bed *bed = bed_ready();
    uint16_t vlan[NET_PORTS] = {NET_VLAN_UNTAGGED, NET_VLAN_UNTAGGED};

    (void)state;
    assert_int_equal(count_groups(bed), 2);
    assert_true(mdns_set(&bed->agent, false, false, vlan, bed->w->now_us));
    expect_goodbye(bed);
    assert_int_equal(count_groups(bed), 0);
    run_for(bed, 5 * SECOND);
    expect_silence(bed);
    assert_true(mdns_set(&bed->agent, true, false, vlan, bed->w->now_us));
    assert_int_equal(count_groups(bed), 2);
    run_for(bed, 5 * SECOND);
    assert_int_equal(bed->claims, 2);
    bed_free(bed);
}

static void test_mdns_new_name_replaces_the_old_one(void **state)
{
    struct bed *bed = bed_ready();
    uint16_t vlan[NET_PORTS] = {NET_VLAN_UNTAGGED, NET_VLAN_UNTAGGED};

    (void)state;
    strcpy(bed->name, "rack8");
    assert_true(mdns_set(&bed->agent, true, true, vlan, bed->w->now_us));
    expect_goodbye(bed); /* of the old name */
    run_for(bed, 5 * SECOND);
    assert_string_equal(bed->claimed, "rack8-0");
    bed_free(bed);
}

/* What is usable at the link's other end is unknown after a loss of the link.
 */
static void test_mdns_probes_again_after_the_link_was_down(void **state)
{
    struct bed *bed = bed_ready();
    struct message m;

    (void)state;
    net_stack_link(&bed->w->stack, 0, false, bed->w->now_us);
    mdns_link(&bed->agent, 0, false, bed->w->now_us);
    run_for(bed, 5 * SECOND);
    expect_silence(bed);
    net_stack_link(&bed->w->stack, 0, true, bed->w->now_us);
    mdns_link(&bed->agent, 0, true, bed->w->now_us);
    run_for(bed, 300 * MS);
    assert_true(take_message(bed, &m));
    assert_true(has_record(&m, DNS_AUTHORITY, INSTANCE, DNS_SRV));
    run_for(bed, 5 * SECOND);
    assert_int_equal(bed->claims, 2);
    bed_free(bed);
}

static void test_mdns_waits_for_a_transmit_buffer(void **state)
{
    struct bed *bed = bed_new();

    (void)state;
    bed->w->no_room = true;
    run_for(bed, SECOND);
    assert_int_equal(bed->claims, 0);
    bed->w->no_room = false;
    run_for(bed, 5 * SECOND);
    assert_int_equal(bed->claims, 1);
    bed_free(bed);
}

/* Every group that a service joins is reported to switches, too. */
static void test_mdns_group_is_in_listener_reports(void **state)
{
    struct bed *bed = bed_ready();
    uint16_t vlan[NET_PORTS] = {NET_VLAN_UNTAGGED, NET_VLAN_UNTAGGED};
    unsigned reports = 0;

    (void)state;
    assert_true(mdns_set(&bed->agent, false, false, vlan, bed->w->now_us));
    assert_true(mdns_set(&bed->agent, true, false, vlan, bed->w->now_us));
    run_for(bed, 3 * SECOND);
    for (unsigned i = bed->seen; i < bed->w->sent_count; i++) {
        const struct sent *frame = &bed->w->sent[i % SENT_MAX];
        const uint8_t *icmp = frame->data + ETH_LEN + IPV6_LEN + 8;

        if (frame->port == 0 && frame->data[12] == 0x86 &&
            frame->data[ETH_LEN + IPV6_NEXT_HEADER] == 0 &&
            icmp[0] == MLD_REPORT_V2) {
            reports++;
            assert_int_equal(frame->len, ETH_LEN + IPV6_LEN + 8 +
                                             (size_t)mld_report_len(2));
            assert_int_equal(icmp[MLD_RECORD_COUNT + 1], 2);
            assert_memory_equal(icmp + mld_report_len(1) + MLD_RECORD_GROUP,
                                group6.bytes, 16);
        }
    }
    assert_true(reports >= 4); /* two of each of two addresses */
    bed_free(bed);
}

/* ---- Hostile messages. */

static void test_mdns_malformed_messages_are_counted_and_not_answered(
    void **state)
{
    struct bed *bed = bed_ready();
    uint8_t buf[MDNS_MESSAGE_MAX],
        loop[] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 0x0c, 0, 12, 0, 1};
    struct dns_writer w;
    size_t len;

    (void)state;
    run_for(bed, 2 * SECOND);
    begin_message(&w, buf, &querier);
    add_question(&w, TYPE, DNS_PTR, QM);
    add_question(&w, HOST, DNS_A, QM);
    add_pointer(&w, TYPE, "other._nvme-disc._udp.local", 4500);
    len = dns_write_end(&w);
    for (size_t cut = 0; cut < len; cut++) {
        send_bytes(bed, &querier, buf, cut);
        assert_int_equal(mdns_counter_read(&bed->agent, MDNS_MALFORMED),
                         cut + 1);
    }
    send_bytes(bed, &querier, loop, sizeof(loop));
    assert_int_equal(mdns_counter_read(&bed->agent, MDNS_MALFORMED), len + 1);
    run_for(bed, 2 * SECOND);
    expect_silence(bed);
    bed_free(bed);
}

/* A response must come from the link and from port 5353: section 11. */
static void test_mdns_responses_from_elsewhere_are_ignored(void **state)
{
    struct bed *bed = bed_ready();
    struct other other = other_responder();
    uint8_t buf[MDNS_MESSAGE_MAX];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct dns_writer w;

        other.src_port = i == 0 ? 5354 : MDNS_PORT;
        other.src = i == 0 ? near4 : remote4;
        begin_message(&w, buf, &other);
        add_address(&w, DNS_ANSWER, HOST, 0x0a000009);
        send_message(bed, &other, &w);
        assert_int_equal(bed->agent.links[0].state, MDNS_READY);
    }
    assert_int_equal(mdns_counter_read(&bed->agent, MDNS_IGNORED), 2);

    /* Nor is a simple resolver answered that is not on the link. */
    other = querier;
    other.src = remote4;
    other.src_port = 40000;
    send_question(bed, &other, HOST, DNS_A, QM);
    run_for(bed, 2 * SECOND);
    expect_silence(bed);
    bed_free(bed);
}
