/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/net/wire/wire_test.h"

#include "lib/bytes.h"
#include "net/wire/dns.h"

/*
 * Scapy 2.8 has made these: a question that wants a unicast answer, with one
 * known answer; and a response with PTR, SRV and A records.
 */
static const uint8_t dns_query[] = {
    0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x0a, 0x5f, 0x6e, 0x76, 0x6d, 0x65, 0x2d, 0x64, 0x69, 0x73,
    0x63, 0x04, 0x5f, 0x75, 0x64, 0x70, 0x05, 0x6c, 0x6f, 0x63, 0x61,
    0x6c, 0x00, 0x00, 0x0c, 0x80, 0x01, 0xc0, 0x0c, 0x00, 0x0c, 0x00,
    0x01, 0x00, 0x00, 0x11, 0x94, 0x00, 0x0a, 0x07, 0x72, 0x61, 0x63,
    0x6b, 0x37, 0x2d, 0x30, 0xc0, 0x0c,
};
static const uint8_t dns_response[] = {
    0x00, 0x00, 0x84, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
    0x01, 0x0a, 0x5f, 0x6e, 0x76, 0x6d, 0x65, 0x2d, 0x64, 0x69, 0x73,
    0x63, 0x04, 0x5f, 0x75, 0x64, 0x70, 0x05, 0x6c, 0x6f, 0x63, 0x61,
    0x6c, 0x00, 0x00, 0x0c, 0x00, 0x01, 0x00, 0x00, 0x11, 0x94, 0x00,
    0x0a, 0x07, 0x72, 0x61, 0x63, 0x6b, 0x37, 0x2d, 0x30, 0xc0, 0x0c,
    0xc0, 0x2d, 0x00, 0x21, 0x80, 0x01, 0x00, 0x00, 0x00, 0x78, 0x00,
    0x10, 0x00, 0x00, 0x00, 0x00, 0x11, 0x44, 0x07, 0x72, 0x61, 0x63,
    0x6b, 0x37, 0x2d, 0x30, 0xc0, 0x1c, 0xc0, 0x49, 0x00, 0x01, 0x80,
    0x01, 0x00, 0x00, 0x00, 0x78, 0x00, 0x04, 0x0a, 0x00, 0x00, 0x02,
};

static struct dns_name name_of(const char *text)
{
    struct dns_name name;

    dns_name_init(&name);
    dns_name_add_text(&name, text);
    return name;
}

static bool is_name(const struct dns_name *name, const char *text)
{
    struct dns_name expected = name_of(text);

    return dns_name_equal(name, &expected);
}

/* Read a whole message. @return false when any part of it is refused */
static bool parse_all(struct dns_header *header, const uint8_t *buf, size_t len)
{
    struct dns_question question;
    struct dns_record record;
    size_t at = DNS_LEN;

    if (!dns_header_parse(header, buf, len)) {
        return false;
    }
    for (unsigned int i = 0; i < header->count[DNS_QUESTION]; i++) {
        if (!dns_question_parse(&question, buf, len, &at)) {
            return false;
        }
    }
    for (unsigned int s = DNS_ANSWER; s < DNS_SECTIONS; s++) {
        for (unsigned int i = 0; i < header->count[s]; i++) {
            if (!dns_record_parse(&record, buf, len, &at)) {
                return false;
            }
        }
    }
    return at == len;
}

static void test_dns_query_of_scapy_is_parsed(void **state)
{
    struct dns_header header;
    struct dns_question question;
    struct dns_record record;
    struct dns_name target;
    size_t at = DNS_LEN;

    (void)state;
    assert_true(dns_header_parse(&header, dns_query, sizeof(dns_query)));
    assert_false(header.is_response || header.is_truncated);
    assert_int_equal(header.count[DNS_QUESTION], 1);
    assert_int_equal(header.count[DNS_ANSWER], 1);
    assert_true(
        dns_question_parse(&question, dns_query, sizeof(dns_query), &at));
    assert_true(is_name(&question.name, "_NVMe-disc._udp.LOCAL"));
    assert_int_equal(question.type, DNS_PTR);
    assert_int_equal(question.dns_class, DNS_CLASS_IN);
    assert_true(question.wants_unicast);
    assert_true(dns_record_parse(&record, dns_query, sizeof(dns_query), &at));
    assert_int_equal(at, sizeof(dns_query));
    assert_true(is_name(&record.name, "_nvme-disc._udp.local"));
    assert_int_equal(record.ttl_s, 4500);
    assert_false(record.is_flushing);
    at = record.data_at;
    assert_true(dns_name_parse(&target, dns_query, sizeof(dns_query), &at));
    assert_true(is_name(&target, "rack7-0._nvme-disc._udp.local"));
    assert_int_equal(at, sizeof(dns_query));
}

static void test_dns_response_has_the_bytes_of_scapy(void **state)
{
    const struct dns_name type = name_of("_nvme-disc._udp.local");
    const struct dns_name instance = name_of("rack7-0._nvme-disc._udp.local");
    const struct dns_name host = name_of("rack7-0.local");
    const uint8_t address[] = {10, 0, 0, 2};
    const uint8_t srv[DNS_SRV_TARGET] = {0, 0, 0, 0, 0x11, 0x44};
    struct dns_record record = {
        .name = type,
        .type = DNS_PTR,
        .dns_class = DNS_CLASS_IN,
        .ttl_s = 4500,
    };
    struct dns_writer w;
    DIRTY(out, sizeof(dns_response));

    (void)state;
    dns_write_begin(&w, out, sizeof(out));
    w.header.is_response = true;
    w.header.is_authoritative = true;
    dns_write_pointing(&w, DNS_ANSWER, &record, NULL, &instance);
    record.name = instance;
    record.type = DNS_SRV;
    record.is_flushing = true;
    record.ttl_s = 120;
    record.data_len = sizeof(srv);
    dns_write_pointing(&w, DNS_ANSWER, &record, srv, &host);
    record.name = host;
    record.type = DNS_A;
    record.data_len = sizeof(address);
    dns_write_record(&w, DNS_ADDITIONAL, &record, address);
    assert_false(w.is_full);
    assert_int_equal(dns_write_end(&w), sizeof(dns_response));
    assert_memory_equal(out, dns_response, sizeof(dns_response));
}

static void test_dns_parse_refuses_every_truncation(void **state)
{
    struct dns_header header;

    (void)state;
    assert_true(parse_all(&header, dns_query, sizeof(dns_query)));
    assert_true(parse_all(&header, dns_response, sizeof(dns_response)));
    ASSERT_TRUNCATIONS_REFUSED(parse_all, &header, dns_query,
                               sizeof(dns_query));
    ASSERT_TRUNCATIONS_REFUSED(parse_all, &header, dns_response,
                               sizeof(dns_response));
}

/* Records that do not fit are left out, and the message stays whole. */
static void test_dns_message_without_room_ends_with_a_whole_record(void **state)
{
    const struct dns_name host = name_of("rack7-0.local");
    const uint8_t address[] = {10, 0, 0, 2};
    const struct dns_record record = {
        .name = host,
        .type = DNS_A,
        .dns_class = DNS_CLASS_IN,
        .data_len = sizeof(address),
    };
    uint8_t out[96];

    (void)state;
    for (size_t room = DNS_LEN; room < sizeof(out); room++) {
        struct dns_header header;
        struct dns_writer w;
        size_t len;

        dns_write_begin(&w, out, room);
        dns_write_question(&w, &host, DNS_A, DNS_CLASS_IN);
        dns_write_record(&w, DNS_ANSWER, &record, address);
        dns_write_record(&w, DNS_ANSWER, &record, address);
        len = dns_write_end(&w);
        assert_in_range(len, DNS_LEN, room);
        assert_true(parse_all(&header, out, len));
    }
}

/* ---- Names. */

static void test_dns_name_with_a_bad_pointer_is_refused(void **state)
{
    static const struct {
        uint8_t data[6];
        size_t len;
        size_t at;
    } bad[] = {
        {{0xc0, 0x00}, 2, 0},             /* a pointer to itself */
        {{0xc0, 0x02, 0xc0, 0x00}, 4, 0}, /* forward */
        {{0xc0, 0x02, 0xc0, 0x00}, 4, 2}, /* to a pointer that goes forward */
        {{1, 'a', 0xc0, 0x00}, 4, 0},     /* to the beginning of the name */
        {{1, 'a', 0xc0, 0x04, 0xc0, 0x00}, 6, 4}, /* a loop of two */
        {{0xc0}, 1, 0},                           /* half a pointer */
        {{0xc0, 0xff}, 2, 0},                     /* beyond the end */
        {{0x40, 0x00}, 2, 0},                     /* other types of labels */
        {{0x80, 0x00}, 2, 0},
        {{2, 'a'}, 2, 0}, /* a label that is cut short */
        {{1, 'a'}, 2, 0}, /* no end */
    };
    struct dns_name name;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        size_t at = bad[i].at;

        assert_false(dns_name_parse(&name, bad[i].data, bad[i].len, &at));
    }
}

static void test_dns_name_is_limited_in_length_and_pointers(void **state)
{
    uint8_t msg[1024];
    struct dns_name name;
    size_t at = 0;

    (void)state;
    /* Labels of 63 bytes: 3 * 64 + 62 + 1 is the longest name. */
    memset(msg, 'x', sizeof(msg));
    msg[0] = msg[64] = msg[128] = 63;
    msg[192] = 61;
    msg[254] = 0;
    assert_true(dns_name_parse(&name, msg, sizeof(msg), &at));
    assert_int_equal(name.len, DNS_NAME_MAX);
    assert_int_equal(at, DNS_NAME_MAX);
    at = 0;
    msg[192] = 62;
    msg[255] = 0;
    assert_false(dns_name_parse(&name, msg, sizeof(msg), &at));

    /* A chain of pointers, each to the one before. */
    msg[0] = 0;
    for (size_t i = 0; i < 17; i++) {
        put_be16(msg + 1 + 2 * i,
                 (uint16_t)(0xc000 | (i == 0 ? 0 : 2 * i - 1)));
    }
    at = 1 + 2 * 15;
    assert_true(dns_name_parse(&name, msg, sizeof(msg), &at));
    assert_int_equal(name.len, 1);
    assert_int_equal(at, 1 + 2 * 16);
    at = 1 + 2 * 16;
    assert_false(dns_name_parse(&name, msg, sizeof(msg), &at));
}

static void test_dns_names_differ_in_their_labels_not_in_their_text(
    void **state)
{
    struct dns_name a = name_of("ab.c"), b = name_of("a.bc");

    (void)state;
    assert_false(dns_name_equal(&a, &b));
    b = name_of("AB.C");
    assert_true(dns_name_equal(&a, &b));
    b = name_of("ab.c.d");
    assert_false(dns_name_equal(&a, &b));
}
