/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The SNTP client, the tester being the server: what it asks and how often,
 * which answers set the clock.  The clock is seen through NVMe's Timestamp.
 *
 * A drive has no server until it is told one, which waits for its next start:
 * each test configures it, restarts it, and puts the setting back; the last one
 * restarts the drive without.
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
    SERVER = 3, /* of conf_peer() */
    OTHER = 4,
    STRATUM = 2,
    POLL_S = 2,     /* shorter than any but a test should have it */
    USUAL_S = 1024, /* the default */
    LEAST_S = 15,   /* section 10 */
    START_US = 20000000,
    QUIET_US = 5000000, /* two intervals and a half */
    FRESH_US = 300000,  /* a question of that age may still be answered */
    SECOND_US = 1000000,
    SLACK_US = 50000, /* clocks differ */
    CLOCK_MS = 1000,  /* of error, half a round trip in it */
    DAYS_MS = 86400000,
};

/* Seconds since 1970. */
#define GOOD_S  UINT64_C(1924992000) /* 2031-01-01 */
#define BAD_S   UINT64_C(1988150400) /* 2033-01-01 */
#define ERA_1_S UINT64_C(2208988800) /* 2040-01-01 */

/* NTP's seconds begin in 1900 and again in 2036. */
static uint64_t ntp_timestamp(uint64_t epoch_s)
{
    return (epoch_s + UINT64_C(2208988800)) << 32;
}

struct server {
    struct conf *conf;
    struct packet_path path; /* to the target */
    struct ip_addr ip;
    const struct packet *asked; /* the last question */
    struct sntp question;
    uint64_t answered_us;
};

/* ---- Questions. */

static bool is_question(const struct packet *packet, const void *ctx)
{
    const struct server *server = ctx;

    return packet->has_udp && packet->udp.dst_port == SNTP_PORT &&
           ip_addr_equal(&packet->dst, &server->ip);
}

/* @return false: none came */
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
               "a question of %zu bytes", server->asked->udp_payload_len);
    return true;
}

static void take_question(struct server *server, uint64_t timeout_us)
{
    conf_check(server->conf, next_within(server, timeout_us),
               "no question came in %llu s",
               (unsigned long long)(timeout_us / SECOND_US));
}

/* One that can still be answered: in real time it may have come while something
 * else was waited for, and the drive waits a second. */
static void next_fresh(struct server *server)
{
    take_question(server, START_US);
    while (conf_now_us(server->conf) - server->asked->time_us > FRESH_US) {
        conf_note(server->conf, "too late for an answer to that one");
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
        conf_not_run(conf, "the drive does not take the server's address");
    }
}

/* A drive that has just asked for the first time. */
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
    struct sntp sntp; /* originate_time: xor of the question's */
    uint16_t src_port;
    size_t len_bytes;
    const struct conf_peer *from; /* NULL: the server */
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
               "Timestamp is %llu ms: the server said %llu, %llu ms ago",
               (unsigned long long)ms, (unsigned long long)set_ms,
               (unsigned long long)passed_ms);
}

/* It was never set: it runs from the drive's start. */
static void expect_unset(struct server *server)
{
    uint64_t ms = clock_ms(server->conf);

    conf_check(server->conf, ms < DAYS_MS,
               "Timestamp is %llu ms: the answer has set it",
               (unsigned long long)ms);
}

/* The next question's answer does. */
static void expect_recovers(struct server *server)
{
    next_fresh(server);
    answer_good(server);
    expect_clock(server, GOOD_S);
}

/* ---- Tests: questions. */

/* Question and answer are read and made without the drive's sntp.c: the answer
 * is a frame that scapy made, whose origin is the question's transmit time. */
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

    conf_equal(conf, "bytes of the question", asked->udp_payload_len, SNTP_LEN);
    conf_equal(conf, "mode", server->question.mode, SNTP_CLIENT);
    conf_equal(conf, "version", server->question.version, SNTP_VERSION);
    conf_equal(conf, "leap indicator", server->question.leap, 0);
    conf_same(conf, "stratum to receive timestamp",
              asked->udp_payload + SNTP_STRATUM, zeroes,
              SNTP_TRANSMIT_TIME - SNTP_STRATUM);
    conf_check(conf, server->question.transmit_time != 0,
               "the transmit timestamp is 0: no answer can be told from "
               "another");
    conf_check(conf, asked->udp.src_port != 0, "a question from port 0");
    conf_same(conf, "source address", asked->src.bytes,
              conf_target_ip(conf, 0, false)->bytes, 16);
    finish_sntp(server);
}

/* Not a clock's reading, which could be guessed. */
static void check_leap(struct conf *conf, uint64_t before, uint64_t after)
{
    uint64_t ahead_s = (after - before) >> 32,
             behind_s = (before - after) >> 32;

    conf_check(conf, before != after,
               "two questions with the transmit timestamp %016llx",
               (unsigned long long)after);
    conf_check(conf, MIN(ahead_s, behind_s) > LEAST_S * 4,
               "%016llx follows %016llx: it can be guessed",
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
    conf_reset(conf); /* not the same ones again */
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
        conf_later_most_us(first, server->asked) + SLACK_US >=
            POLL_S * SECOND_US,
        "asked again after %llu ms of %u s",
        (unsigned long long)(conf_later_most_us(first, server->asked) / 1000),
        POLL_S);
    conf_check(
        conf,
        conf_later_least_us(first, server->asked) <= (POLL_S + 2) * SECOND_US,
        "asked again only after %llu ms of %u s",
        (unsigned long long)(conf_later_least_us(first, server->asked) / 1000),
        POLL_S);
    finish_sntp(server);
}

static uint64_t wait_for_next(struct server *server)
{
    const struct packet *last = server->asked;
    uint64_t most_us;

    take_question(server, 8 * (uint64_t)LEAST_S * SECOND_US);
    most_us = conf_later_most_us(last, server->asked);
    conf_check(server->conf, most_us + SLACK_US >= LEAST_S * SECOND_US,
               "asked again after %llu ms: not in less than %u s",
               (unsigned long long)(most_us / 1000), LEAST_S);
    return conf_later_least_us(last, server->asked);
}

static void no_answer(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, USUAL_S);
    uint64_t first_us = wait_for_next(server);
    uint64_t second_us = wait_for_next(server);

    conf_check(conf, second_us > first_us + SECOND_US,
               "without an answer: asked after %llu ms, then %llu ms: it does "
               "not get less",
               (unsigned long long)(first_us / 1000),
               (unsigned long long)(second_us / 1000));
    answer_good(server);
    expect_clock(server, GOOD_S);
    finish_sntp(server);
}

/* However often a link comes. */
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

/* ---- Answers that count. */

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

/* Bit 0 of the timestamp says which: section 3. */
static void sntp_era(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply reply = reply_of(server, ERA_1_S);

    conf_check(conf, (reply.sntp.transmit_time >> 63) == 0, "of the next era");
    send_answer(server, &reply);
    expect_clock(server, ERA_1_S);
    finish_sntp(server);
}

/* A leap second is announced: the server is synchronised all the same. */
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

/* ---- Answers that are none: the right one counts, behind them. */

static void expect_strays_ignored(struct conf *conf, const struct reply *strays,
                                  unsigned int count, struct server *server)
{
    for (unsigned int i = 0; i < count; i++) {
        send_answer(server, &strays[i]);
    }
    answer_good(server);
    expect_clock(server, GOOD_S);
    conf_note(conf, "and it goes on asking");
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
    strays[0].sntp.originate_time = server->question.transmit_time; /* 0 */
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

/* One question, one answer. */
static void sntp_twice(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply second = reply_of(server, BAD_S);

    answer_good(server);
    send_answer(server, &second);
    expect_clock(server, GOOD_S);
    finish_sntp(server);
}

/* ---- Answers without a time. */

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
               "the server that refused was asked again");
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
        conf_later_most_us(first, server->asked) + SLACK_US >=
            2 * POLL_S * SECOND_US,
        "asked again after %llu ms: it was %u s, and too often",
        (unsigned long long)(conf_later_most_us(first, server->asked) / 1000),
        POLL_S);
    expect_recovers(server);
    finish_sntp(server);
}

/* From somebody who does not know the question. */
static void forged_kiss(struct conf *conf)
{
    struct server *server = start_sntp(conf, false, POLL_S);
    struct reply stray = reply_of(server, BAD_S);

    stray.sntp.stratum = 0;
    stray.sntp.reference_id = SNTP_KISS_DENY;
    stray.sntp.originate_time = 1;
    expect_strays_ignored(conf, &stray, 1, server);
}

/* ---- The end. */

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
    TEST("request", "4, 5", "48 bytes: version 4, mode 3, a transmit timestamp",
         sntp_request, CONTROL),
    TEST("unpredictable", "5", "no question's timestamp follows from another's",
         sntp_unpredictable, CONTROL),
    TEST("interval", "10", "asked again after the interval that is set",
         sntp_interval, CONTROL),
    TEST("no-answer", "10", "asked again not within 15 s, and less and less",
         no_answer, LONG),
    TEST("link", "10", "not within 15 s when the link comes again, either",
         link_again, LONG),
    TEST("clock", "5", "the answer sets the clock", set_clock, CONTROL),
    TEST("ipv6", "5", "the same over IPv6", over_ipv6, CONTROL),
    TEST("era", "3", "seconds that begin with bit 0 clear are behind 2036",
         sntp_era, CONTROL),
    TEST("leap", "4", "a leap second announced: the clock is set", sntp_leap,
         CONTROL),
    TEST("originate", "5",
         "an answer that does not bring the question back is none",
         sntp_originate, CONTROL),
    TEST("mode", "5", "only mode 4 is an answer", sntp_mode, CONTROL),
    TEST("address", "5", "an answer from another address is none", sntp_address,
         CONTROL),
    TEST("port", "5", "an answer from another port is none", sntp_port,
         CONTROL),
    TEST("cut", "4", "an answer of less than 48 bytes is none", sntp_cut,
         CONTROL, .is_malformed = true),
    TEST("twice", "5", "a second answer is none", sntp_twice, CONTROL),
    TEST("unsynchronised", "5", "leap indicator 3: no time",
         sntp_unsynchronised, CONTROL),
    TEST("stratum", "4", "stratum 16: no time", sntp_stratum, CONTROL),
    TEST("transmit-zero", "5", "transmit timestamp 0: no time", transmit_zero,
         CONTROL),
    TEST("kiss-deny", "8", "DENY: not asked again", sntp_kiss_deny, CONTROL),
    TEST("kiss-rstr", "8", "RSTR: not asked again", restrict_access, CONTROL),
    TEST("kiss-rate", "8", "RATE: asked less often", sntp_kiss_rate, CONTROL),
    TEST("kiss-forged", "5, 8",
         "a kiss of death from who does not know the question is none",
         forged_kiss, CONTROL),
    TEST("none", "7", "without a server nobody is asked", sntp_none, CONTROL),
};
CONF_TESTS(conf_tests_net_sntp, "net", tests);
