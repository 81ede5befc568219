/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SNTP client, with the tester as the server: what it sends and how often,
 * and which answers set the clock. The clock is read through NVMe's Timestamp.
 *
 * A drive has no server until one is configured, which takes effect at its next
 * start: each test configures the server, restarts the drive, and removes the
 * setting; the last test restarts the drive without a server.
 *
 * Spec: RFC 4330, sections 3 (timestamps), 5 (client), 8 (kiss of death), 10
 * (best practices).
 *
 * Left out: broadcast and manycast; servers by DHCP.
 */
#include <stdio.h>
#include <string.h>

#include "firmware/text/ip_text.h"
#include "literal.h"
#include "literal_frames.h"
#include "net/wire/sntp.h"
#include "net_lib.h"
#include "nvme_lib.h"

enum {
    SERVER = 3, /* Indexes for conf_peer(). */
    OTHER = 4,
    STRATUM = 2,
    POLL_S = 2,     /* Shorter than anybody but a test should set it. */
    USUAL_S = 1024, /* The default. */
    LEAST_S = 15,   /* The shortest interval of section 10. */
    START_US = 20000000,
    QUIET_US = 5000000, /* Two and a half intervals. */
    /* A request no older than this may still be answered. */
    FRESH_US = 300000,
    SECOND_US = 1000000,
    SLACK_US = 50000, /* Tolerance for clocks that differ. */
    /* Tolerance of the clock that was set, with half a round trip. */
    CLOCK_MS = 1000,
    DAYS_MS = 86400000,
};

/* Seconds since 1970. */
#define GOOD_S  UINT64_C(1924992000) /* 2031-01-01 */
#define BAD_S   UINT64_C(1988150400) /* 2033-01-01 */
#define ERA_1_S UINT64_C(2208988800) /* 2040-01-01 */

/* NTP counts seconds from 1900, and again from 2036. */
static uint64_t ntp_timestamp(uint64_t epoch_s)
{
    return (epoch_s + UINT64_C(2208988800)) << 32;
}

struct server {
    struct conf *conf;
    struct packet_path path; /* From the server to the target. */
    struct ip_addr ip;
    const struct packet *asked; /* The last request. */
    struct sntp question;
    uint64_t answered_us;
};

/* ---- Requests. */

static bool is_question(const struct packet *packet, const void *ctx)
{
    const struct server *server = ctx;

    return packet->has_udp && packet->udp.dst_port == SNTP_PORT &&
           ip_addr_equal(&packet->dst, &server->ip);
}

/* @return false when no request came */
static bool next_within(struct server *server, uint64_t timeout_us)
{
    struct conf *conf = server->conf;

    server->asked = conf_take_within(conf, is_question, server, timeout_us);
    if (server->asked == NULL) {
        return false;
    }
    conf_check(conf,
               sntp_parse(&server->question, server->asked->udp_payload,
                          server->asked->udp_payload_len),
               "a request of %zu bytes cannot be parsed",
               server->asked->udp_payload_len);
    return true;
}

static void take_question(struct server *server, uint64_t timeout_us)
{
    conf_check(server->conf, next_within(server, timeout_us),
               "no request came in %llu s",
               (unsigned long long)(timeout_us / SECOND_US));
}

/*
 * Take a request that can still be answered: in real time a request may have
 * come while the tester waited for something else, and the drive waits only a
 * second for its answer.
 */
static void next_fresh(struct server *server)
{
    take_question(server, START_US);
    while (conf_now_us(server->conf) - server->asked->time_us > FRESH_US) {
        conf_note(server->conf, "this request is too old to be answered");
        take_question(server, START_US);
    }
}

static void set_config(struct conf *conf, const char *key, const char *value)
{
    char line[80];

    snprintf(line, sizeof(line), "config set %s %s", key, value);
    conf_console(conf, line);
}

static void configure_server(struct conf *conf, const char *server,
                             unsigned int poll_s)
{
    char text[16];

    conf_console(conf, "config discard");
    set_config(conf, "sntp.server", server);
    snprintf(text, sizeof(text), "%u", poll_s);
    set_config(conf, "sntp.poll", text);
    if (strstr(conf_console(conf, "config save"), "error") != NULL) {
        conf_not_run(conf, "the drive does not accept the server's address");
    }
}

/* Start a drive with a configured server, and take its first request. */
static struct server *start_sntp(struct conf *conf, bool is_v6,
                                 unsigned int poll_s)
{
    struct server *server = conf_alloc(conf, sizeof(*server));
    struct conf_peer *peer = conf_peer(conf, SERVER, 0);

    server->conf = conf;
    server->path = net_path(conf, peer, is_v6);
    server->ip = server->path.src;
    if (strstr(conf_console(conf, "config"), "sntp.server ") == NULL) {
        conf_not_applicable(conf, "the console has no setting sntp.server");
    }
    configure_server(conf, ip_text(&server->ip).text, poll_s);
    conf_reset(conf);
    next_fresh(server);
    return server;
}

static void finish_sntp(struct server *server)
{
    if (!conf_target(server->conf)->is_virtual) {
        configure_server(server->conf, "none", USUAL_S);
    }
}

/* ---- Answers. */

struct reply {
    /* originate_time is XORed with the request's transmit time. */
    struct sntp sntp;
    uint16_t src_port;
    size_t len_bytes;
    const struct conf_peer *from; /* The sender; NULL: the server. */
};

static struct reply reply_of(const struct server *server, uint64_t epoch_s)
{
    return (struct reply){
        .sntp =
            {
                .version = server->question.version,
                .mode = SNTP_SERVER,
                .stratum = STRATUM,
                .poll = 6,
                .precision = -20,
                .root_delay = 0x100,
                .root_dispersion = 0x100,
                .reference_id = 0x7f7f0101,
                .reference_time = ntp_timestamp(epoch_s - 10),
                .receive_time = ntp_timestamp(epoch_s),
                .transmit_time = ntp_timestamp(epoch_s),
            },
        .src_port = SNTP_PORT,
        .len_bytes = SNTP_LEN,
    };
}

static void send_answer(struct server *server, const struct reply *reply)
{
    struct packet_path path = server->path;
    uint8_t payload[SNTP_LEN], frame[128];
    struct sntp sntp = reply->sntp;

    if (reply->from != NULL) {
        path.src_mac = reply->from->mac;
        path.src = reply->from->ip4;
    }
    path.dst = server->asked->src;
    path.dst_mac = server->asked->eth.src;
    sntp.originate_time ^= server->question.transmit_time;
    sntp_emit(&sntp, payload);
    server->answered_us = conf_now_us(server->conf);
    conf_send_frame(server->conf, 0, frame,
                    packet_udp(frame, &path, reply->src_port,
                               server->asked->udp.src_port, payload,
                               reply->len_bytes),
                    0);
}

static void answer_good(struct server *server)
{
    struct reply good = reply_of(server, GOOD_S);

    send_answer(server, &good);
}

/* ---- The clock. */

static uint64_t clock_ms(struct conf *conf)
{
    struct nvme *nvme = nvme_open_clock(conf);
    unsigned int origin;
    uint64_t ms = nvme_get_time(nvme, &origin);

    nvme_close(nvme);
    return ms;
}

static void expect_clock(struct server *server, uint64_t epoch_s)
{
    struct conf *conf = server->conf;
    uint64_t ms = clock_ms(conf), set_ms = epoch_s * 1000;
    uint64_t passed_ms = (conf_now_us(conf) - server->answered_us) / 1000;

    conf_check(conf, ms >= set_ms && ms <= set_ms + passed_ms + CLOCK_MS,
               "Timestamp is %llu ms: the server sent %llu, %llu ms ago",
               (unsigned long long)ms, (unsigned long long)set_ms,
               (unsigned long long)passed_ms);
}

/* The clock was never set: it counts from the drive's start. */
static void expect_unset(struct server *server)
{
    uint64_t ms = clock_ms(server->conf);

    conf_check(server->conf, ms < DAYS_MS,
               "Timestamp is %llu ms: the answer has set the clock",
               (unsigned long long)ms);
}

/* The answer to the next request sets the clock. */
static void expect_recovers(struct server *server)
{
    next_fresh(server);
    answer_good(server);
    expect_clock(server, GOOD_S);
}

/* ---- Tests of requests. */

/*
 * The drive's sntp.c parses and makes neither request nor answer: the answer is
 * a frame that scapy made, with the request's transmit time as its originate
 * time.
 */
static void literal_answer(struct conf *conf)
{
    enum { FIRST = 0, ORIGIN = 24, TRANSMIT = 40, SRC_PORT = 34 };
    static const uint8_t zeroes[TRANSMIT - 1];
    struct server *server = start_sntp(conf, false, POLL_S);
    struct literal *reply = LITERAL(conf, scapy_sntp_answer);
    const uint8_t *asked = server->asked->frame;
    const uint8_t *question = asked + LITERAL_UDP_PAYLOAD;

    conf_equal(conf, "frame with an untagged IPv4 datagram of 48 bytes",
               server->asked->len_bytes, LITERAL_UDP_PAYLOAD + 48);
    conf_equal(conf, "leap indicator 0, version 4, mode 3", question[FIRST],
               0x23);
    conf_same(conf, "stratum to receive timestamp", question + 1, zeroes,
              sizeof(zeroes));
    literal_to_drive(conf, reply);
    memcpy(reply->bytes + 6, asked, 6);
    memcpy(reply->bytes + LITERAL_IPV4_SRC, asked + LITERAL_IPV4_DST, 4);
    memcpy(reply->bytes + SRC_PORT + 2, asked + SRC_PORT, 2);
    memcpy(reply->bytes + LITERAL_UDP_PAYLOAD + ORIGIN, question + TRANSMIT, 8);
    server->answered_us = conf_now_us(conf);
    literal_send(conf, reply);
    expect_clock(server, GOOD_S);
    finish_sntp(server);
}

static void sntp_request(struct conf *conf)
{
    static const uint8_t zeroes[SNTP_TRANSMIT_TIME];
    struct server *server = start_sntp(conf, false, POLL_S);
    const struct packet *asked = server->asked;

    conf_equal(conf, "length of the request", asked->udp_payload_len, SNTP_LEN);
    conf_equal(conf, "mode", server->question.mode, SNTP_CLIENT);
    conf_equal(conf, "version", server->question.version, SNTP_VERSION);
    conf_equal(conf, "leap indicator", server->question.leap, 0);
    conf_same(conf, "stratum to receive timestamp",
              asked->udp_payload + SNTP_STRATUM, zeroes,
              SNTP_TRANSMIT_TIME - SNTP_STRATUM);
    conf_check(
        conf, server->question.transmit_time != 0,
        "the transmit timestamp is 0, so that answers cannot be told apart");
    conf_check(conf, asked->udp.src_port != 0,
               "the request's source port is 0");
    conf_same(conf, "source address", asked->src.bytes,
              conf_target_ip(conf, 0, false)->bytes, 16);
    finish_sntp(server);
}

/*
 * The transmit timestamp must not be a clock's reading, which could be guessed.
 */
static void check_leap(struct conf *conf, uint64_t before, uint64_t after)
{
    uint64_t ahead_s = (after - before) >> 32,
             behind_s = (before - after) >> 32;

    conf_check(conf, before != after,
               "two requests have the transmit timestamp %016llx",
               (unsigned long long)after);
    conf_check(conf, MIN(ahead_s, behind_s) > LEAST_S * 4,
               "transmit timestamp %016llx follows %016llx: it can be guessed",
               (unsigned long long)after, (unsigned long long)before);
}

static void sntp_unpredictable(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, 1);
    uint64_t first = server->question.transmit_time, second;

    take_question(server, START_US);
    second = server->question.transmit_time;
    check_leap(conf, first, second);
    take_question(server, START_US);
    check_leap(conf, second, server->question.transmit_time);
    /* The next start must not use the same timestamps again. */
    conf_reset(conf);
    take_question(server, START_US);
    check_leap(conf, first, server->question.transmit_time);
    finish_sntp(server);
}

static void sntp_interval(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    const struct packet *first = server->asked;

    answer_good(server);
    take_question(server, START_US);
    conf_check(
        conf,
        conf_later_most_us(conf, first, server->asked) + SLACK_US >=
            POLL_S * SECOND_US,
        "asked again after %llu ms; the interval is %u s",
        (unsigned long long)(conf_later_most_us(conf, first, server->asked) /
                             1000),
        POLL_S);
    conf_check(
        conf,
        conf_later_least_us(conf, first, server->asked) <=
            (POLL_S + 2) * SECOND_US,
        "asked again only after %llu ms; the interval is %u s",
        (unsigned long long)(conf_later_least_us(conf, first, server->asked) /
                             1000),
        POLL_S);
    finish_sntp(server);
}

static uint64_t wait_for_next(struct server *server)
{
    const struct packet *last = server->asked;
    uint64_t most_us;

    take_question(server, 8 * (uint64_t)LEAST_S * SECOND_US);
    most_us = conf_later_most_us(server->conf, last, server->asked);
    conf_check(server->conf, most_us + SLACK_US >= LEAST_S * SECOND_US,
               "asked again after %llu ms, in less than %u s",
               (unsigned long long)(most_us / 1000), LEAST_S);
    return conf_later_least_us(server->conf, last, server->asked);
}

static void no_answer(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, USUAL_S);
    uint64_t first_us = wait_for_next(server);
    uint64_t second_us = wait_for_next(server);

    conf_check(conf, second_us > first_us + SECOND_US,
               "without an answer the client asked after %llu ms, then after "
               "%llu ms: the interval does not grow",
               (unsigned long long)(first_us / 1000),
               (unsigned long long)(second_us / 1000));
    answer_good(server);
    expect_clock(server, GOOD_S);
    finish_sntp(server);
}

/* The shortest interval also holds when the link comes back. */
static void link_again(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, USUAL_S);

    answer_good(server);
    conf_partner(conf, 0, "present", "0");
    conf_pass(conf, SECOND_US);
    conf_partner(conf, 0, "present", "1");
    wait_for_next(server);
    finish_sntp(server);
}

/* ---- Answers that set the clock. */

static void set_clock(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);

    answer_good(server);
    expect_clock(server, GOOD_S);
    finish_sntp(server);
}

static void over_ipv6(struct conf *conf)
{
    struct server *server = start_sntp(conf, true, POLL_S);

    answer_good(server);
    expect_clock(server, GOOD_S);
    finish_sntp(server);
}

/* Bit 0 of the timestamp tells the era: section 3. */
static void sntp_era(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply reply = reply_of(server, ERA_1_S);

    conf_check(conf, (reply.sntp.transmit_time >> 63) == 0,
               "the timestamp is in era 0");
    send_answer(server, &reply);
    expect_clock(server, ERA_1_S);
    finish_sntp(server);
}

/* An announced leap second does not mean that the server is unsynchronised. */
static void sntp_leap(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply reply = reply_of(server, GOOD_S);

    for (uint8_t i = 1; i < SNTP_UNSYNCHRONISED; i++) {
        reply = reply_of(server, GOOD_S + i);
        reply.sntp.leap = i;
        send_answer(server, &reply);
        expect_clock(server, GOOD_S + i);
        next_fresh(server);
    }
    finish_sntp(server);
}

/* ---- Strays. */

/* Answers that must be ignored; the correct answer follows them. */

static void expect_strays_ignored(struct conf *conf, const struct reply *strays,
                                  unsigned int count, struct server *server)
{
    for (unsigned int i = 0; i < count; i++) {
        send_answer(server, &strays[i]);
    }
    answer_good(server);
    expect_clock(server, GOOD_S);
    conf_note(conf, "the client goes on asking");
    take_question(server, START_US);
    finish_sntp(server);
}

static void sntp_originate(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply strays[3];

    for (unsigned int i = 0; i < ARRAY_LEN(strays); i++) {
        strays[i] = reply_of(server, BAD_S);
    }
    /* The answer has originate time 0. */
    strays[0].sntp.originate_time = server->question.transmit_time;
    strays[1].sntp.originate_time = 1;
    strays[2].sntp.originate_time = UINT64_C(1) << 63;
    expect_strays_ignored(conf, strays, ARRAY_LEN(strays), server);
}

static void sntp_mode(struct conf *conf)
{
    static const uint8_t modes[] = {0, 1, 2, 3, 5, 6, 7};
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply strays[ARRAY_LEN(modes)];

    for (unsigned int i = 0; i < ARRAY_LEN(strays); i++) {
        strays[i] = reply_of(server, BAD_S);
        strays[i].sntp.mode = modes[i];
    }
    expect_strays_ignored(conf, strays, ARRAY_LEN(strays), server);
}

static void sntp_address(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply stray = reply_of(server, BAD_S);

    stray.from = conf_peer(conf, OTHER, 0);
    expect_strays_ignored(conf, &stray, 1, server);
}

static void sntp_port(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply strays[2] = {reply_of(server, BAD_S), reply_of(server, BAD_S)};

    strays[0].src_port = SNTP_PORT + 1;
    strays[1].src_port = server->asked->udp.src_port;
    expect_strays_ignored(conf, strays, ARRAY_LEN(strays), server);
}

static void sntp_cut(struct conf *conf)
{
    static const uint8_t lengths[] = {0, 1, SNTP_TRANSMIT_TIME, SNTP_LEN - 1};
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply strays[ARRAY_LEN(lengths)];

    for (unsigned int i = 0; i < ARRAY_LEN(strays); i++) {
        strays[i] = reply_of(server, BAD_S);
        strays[i].len_bytes = lengths[i];
    }
    expect_strays_ignored(conf, strays, ARRAY_LEN(strays), server);
}

/* Only the first answer to a request counts. */
static void sntp_twice(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply second = reply_of(server, BAD_S);

    answer_good(server);
    send_answer(server, &second);
    expect_clock(server, GOOD_S);
    finish_sntp(server);
}

/* ---- Answers without a valid time. */

static void expect_useless(struct server *server, const struct reply *reply)
{
    send_answer(server, reply);
    expect_unset(server);
    expect_recovers(server);
    finish_sntp(server);
}

static void sntp_unsynchronised(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply reply = reply_of(server, BAD_S);

    reply.sntp.leap = SNTP_UNSYNCHRONISED;
    expect_useless(server, &reply);
}

static void sntp_stratum(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply reply = reply_of(server, BAD_S);

    reply.sntp.stratum = SNTP_STRATUM_MAX + 1;
    expect_useless(server, &reply);
}

static void transmit_zero(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply reply = reply_of(server, BAD_S);

    reply.sntp.transmit_time = 0;
    expect_useless(server, &reply);
}

/* ---- Kisses of death. */

static struct server *send_kiss(struct conf *conf, uint32_t code)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply reply = reply_of(server, BAD_S);

    reply.sntp.stratum = 0;
    reply.sntp.leap = SNTP_UNSYNCHRONISED;
    reply.sntp.reference_id = code;
    send_answer(server, &reply);
    return server;
}

static void expect_silent(struct conf *conf, uint32_t code)
{
    struct server *server = send_kiss(conf, code);

    conf_check(conf, !next_within(server, QUIET_US),
               "the server that refused service was asked again");
    expect_unset(server);
    finish_sntp(server);
}

static void sntp_kiss_deny(struct conf *conf)
{
    expect_silent(conf, SNTP_KISS_DENY);
}

static void restrict_access(struct conf *conf)
{
    expect_silent(conf, SNTP_KISS_RSTR);
}

static void sntp_kiss_rate(struct conf *conf)
{
    struct server *server = send_kiss(conf, SNTP_KISS_RATE);
    const struct packet *first = server->asked;

    expect_unset(server);
    take_question(server, START_US);
    conf_check(
        conf,
        conf_later_most_us(conf, first, server->asked) + SLACK_US >=
            2 * POLL_S * SECOND_US,
        "asked again after %llu ms, although the interval of %u s was too "
        "short",
        (unsigned long long)(conf_later_most_us(conf, first, server->asked) /
                             1000),
        POLL_S);
    expect_recovers(server);
    finish_sntp(server);
}

/* A kiss of death from a host that does not know the request's timestamp. */
static void forged_kiss(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply stray = reply_of(server, BAD_S);

    stray.sntp.stratum = 0;
    stray.sntp.reference_id = SNTP_KISS_DENY;
    stray.sntp.originate_time = 1;
    expect_strays_ignored(conf, &stray, 1, server);
}

/* ---- No server. */

static bool is_to_server(const struct packet *packet, const void *ctx)
{
    (void)ctx;
    return packet->has_udp && packet->udp.dst_port == SNTP_PORT;
}

static void sntp_none(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);

    configure_server(conf, "none", USUAL_S);
    conf_reset(conf);
    conf_expect_none(server->conf, "question", is_to_server, NULL, QUIET_US);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("sntp." id, "RFC 4330 " clause, purpose, __VA_ARGS__)
#define CONTROL .needs = CONF_NEEDS_CONTROL
#define LONG    .needs = CONF_NEEDS_CONTROL | CONF_LONG

static const struct conf_test tests[] = {
    TEST("literal", "4, 5", "a literal answer sets the clock", literal_answer,
         CONTROL),
    TEST("request", "4, 5",
         "a request has 48 bytes, version 4, mode 3, and a transmit timestamp",
         sntp_request, CONTROL),
    TEST("unpredictable", "5",
         "transmit timestamps cannot be predicted from earlier ones",
         sntp_unpredictable, CONTROL),
    TEST("interval", "10",
         "the client asks again after the configured interval", sntp_interval,
         CONTROL, .judges_time = true),
    TEST("no-answer", "10",
         "without an answer the client asks after 15 s or more, and less often "
         "each time",
         no_answer, LONG, .judges_time = true),
    TEST("link", "10",
         "a link that comes back does not make the client ask within 15 s",
         link_again, LONG, .judges_time = true),
    TEST("clock", "5", "an answer sets the clock", set_clock, CONTROL),
    TEST("ipv6", "5", "an answer over IPv6 sets the clock", over_ipv6, CONTROL),
    TEST("era", "3", "a timestamp with bit 0 clear is later than 2036",
         sntp_era, CONTROL),
    TEST("leap", "4", "an answer that announces a leap second sets the clock",
         sntp_leap, CONTROL),
    TEST("originate", "5",
         "an answer with a wrong originate timestamp is ignored",
         sntp_originate, CONTROL),
    TEST("mode", "5", "an answer with a mode other than 4 is ignored",
         sntp_mode, CONTROL),
    TEST("address", "5", "an answer from another address is ignored",
         sntp_address, CONTROL),
    TEST("port", "5", "an answer from another port is ignored", sntp_port,
         CONTROL),
    TEST("cut", "4", "an answer of less than 48 bytes is ignored", sntp_cut,
         CONTROL, .is_malformed = true),
    TEST("twice", "5", "a second answer is ignored", sntp_twice, CONTROL),
    TEST("unsynchronised", "5",
         "an answer with leap indicator 3 does not set the clock",
         sntp_unsynchronised, CONTROL),
    TEST("stratum", "4", "an answer with stratum 16 does not set the clock",
         sntp_stratum, CONTROL),
    TEST("transmit-zero", "5",
         "an answer with transmit timestamp 0 does not set the clock",
         transmit_zero, CONTROL),
    TEST("kiss-deny", "8", "a server that answers DENY is not asked again",
         sntp_kiss_deny, CONTROL),
    TEST("kiss-rstr", "8", "a server that answers RSTR is not asked again",
         restrict_access, CONTROL),
    TEST("kiss-rate", "8", "a server that answers RATE is asked less often",
         sntp_kiss_rate, CONTROL, .judges_time = true),
    TEST("kiss-forged", "5, 8",
         "a kiss of death with a wrong originate timestamp is ignored",
         forged_kiss, CONTROL),
    TEST("none", "7", "without a configured server nobody is asked", sntp_none,
         CONTROL),
};
CONF_TESTS(conf_tests_net_sntp, "net", tests);
