/* SPDX-License-Identifier: BSD-2-Clause */
/* The SNTP client: its requests and their times, and the answers it accepts. */
#include "tests/unit/net/stack/net_test.h"

#include "net/stack/sntp.h"
#include "net/wire/arp.h"
#include "net/wire/ipv4.h"
#include "net/wire/udp.h"

enum { UDP_AT = ETH_LEN + IPV4_LEN, SNTP_AT = UDP_AT + UDP_LEN };

#define TIME_2023 0xe8fe6f8080000000u /* 1700000000.5 */

struct bed {
    struct world *w;
    struct sntp_client client;
    unsigned times, kisses;
    uint64_t epoch_ms;
    uint32_t code;
};

static void set_time(void *ctx, uint64_t epoch_ms, const struct sntp *answer)
{
    struct bed *bed = ctx;

    assert_int_equal(answer->mode, SNTP_SERVER);
    bed->times++;
    bed->epoch_ms = epoch_ms;
}

static void on_kiss(void *ctx, uint32_t code)
{
    struct bed *bed = ctx;

    bed->kisses++;
    bed->code = code;
}

static void run_for(struct bed *bed, uint64_t us)
{
    uint64_t until_us = bed->w->now_us + us;
    uint64_t next_us = bed->w->now_us;

    while (next_us <= until_us) {
        uint64_t sntp_us, stack_us;

        bed->w->now_us = next_us;
        sntp_us = sntp_timer(&bed->client, next_us);
        stack_us = net_stack_timer(&bed->w->stack, next_us);
        next_us = MIN(sntp_us, stack_us);
        assert_true(next_us > bed->w->now_us);
    }
    bed->w->now_us = until_us;
}

/* @return the last request that was sent */
static struct sntp last_question(const struct bed *bed)
{
    const struct sent *frame =
        &bed->w->sent[(bed->w->sent_count - 1) % SENT_MAX];
    struct ip_addr src = ip_addr_from_v4(0x0a000002);
    struct sntp sntp;
    struct udp udp;

    assert_int_equal(frame->len, SNTP_AT + SNTP_LEN);
    assert_true(udp_parse(&udp, frame->data + UDP_AT, frame->len - UDP_AT));
    assert_int_equal(udp.dst_port, SNTP_PORT);
    assert_int_equal(udp.src_port, SNTP_CLIENT_PORT);
    assert_int_equal(
        udp_checksum(&src, &host4, frame->data + UDP_AT, udp.length_bytes),
        0xffff);
    assert_true(sntp_parse(&sntp, frame->data + SNTP_AT, SNTP_LEN));
    assert_int_equal(sntp.mode, SNTP_CLIENT);
    assert_int_equal(sntp.version, 4);
    assert_int_not_equal(sntp.transmit_time, 0);
    return sntp;
}

/* The server answers the ARP request for its MAC. */
static void be_found(struct bed *bed)
{
    struct ip_addr us = ip_addr_from_v4(0x0a000002);
    uint8_t arp[64];

    assert_true(world_input(bed->w, 0, arp,
                            make_arp(arp, ARP_REPLY, &host_mac, &host4, &us)));
}

/* Make a client that has sent a request to a server whose MAC is known. */
static struct bed *bed_asking(uint16_t poll_s)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct sntp_config config = {
        .server = host4,
        .poll_s = poll_s,
        .random_seed = 7,
        .set_time = set_time,
        .kissed = on_kiss,
        .ctx = bed,
    };

    assert_non_null(bed);
    bed->w = world_ready();
    config.stack = &bed->w->stack;
    assert_true(sntp_init(&bed->client, &config, bed->w->now_us));
    run_for(bed, 1000);
    assert_int_equal(bed->w->sent[(bed->w->sent_count - 1) % SENT_MAX].len,
                     ETH_LEN + ARP_LEN);
    be_found(bed);
    run_for(bed, SNTP_WAIT_US);
    last_question(bed);
    assert_int_equal(bed->client.state, SNTP_ASKING);
    return bed;
}

static void bed_free(struct bed *bed)
{
    world_free(bed->w);
    free(bed);
}

struct reply {
    uint64_t originate_time; /* 0 for the request's timestamp */
    uint64_t transmit_time;
    uint32_t reference_id;
    uint16_t src_port;
    uint8_t leap, stratum, mode;
    bool is_elsewhere, is_cut;
};

static const struct reply good = {
    .transmit_time = TIME_2023,
    .src_port = SNTP_PORT,
    .stratum = 2,
    .mode = SNTP_SERVER,
};

static void send_answer(struct bed *bed, struct reply reply)
{
    const struct sntp sntp = {
        .leap = reply.leap,
        .version = 4,
        .mode = reply.mode,
        .stratum = reply.stratum,
        .reference_id = reply.reference_id,
        .originate_time = reply.originate_time != 0 ? reply.originate_time
                                                    : bed->client.nonce,
        .transmit_time = reply.transmit_time,
    };
    size_t len = reply.is_cut ? SNTP_LEN - 1 : SNTP_LEN;
    const struct eth eth = {
        .dst = {{2, 0, 0, 0, 0, 0x10}},
        .src = host_mac,
        .type = ETHERTYPE_IPV4,
    };
    const struct ipv4 ip = {
        .src = reply.is_elsewhere ? gateway4 : host4,
        .dst = ip_addr_from_v4(0x0a000002),
        .total_len_bytes = (uint16_t)(IPV4_LEN + UDP_LEN + len),
        .ttl = 64,
        .protocol = IP_PROTOCOL_UDP,
    };
    const struct udp udp = {
        .src_port = reply.src_port,
        .dst_port = SNTP_CLIENT_PORT,
        .length_bytes = (uint16_t)(UDP_LEN + len),
    };
    uint8_t frame[SNTP_AT + SNTP_LEN];

    eth_emit(&eth, frame);
    ipv4_emit(&ip, frame + ETH_LEN);
    udp_emit(&udp, frame + UDP_AT);
    sntp_emit(&sntp, frame + SNTP_AT);
    assert_true(world_input(bed->w, 0, frame, SNTP_AT + len));
}

static uint64_t read_counter(const struct bed *bed, enum sntp_counter which)
{
    return sntp_counter_read(&bed->client, which);
}

static void test_sntp_sets_the_time_and_polls_again_later(void **state)
{
    struct bed *bed = bed_asking(16);
    uint64_t first = last_question(bed).transmit_time;

    (void)state;
    run_for(bed, 8000);
    send_answer(bed, good);
    assert_int_equal(bed->times, 1);
    /* Half of the round trip, 4 ms, is added. */
    assert_int_equal(bed->epoch_ms, 1700000000500 + 4);
    run_for(bed, 15 * SECOND);
    assert_int_equal(read_counter(bed, SNTP_QUESTIONS), 1);
    run_for(bed, SECOND);
    assert_int_equal(read_counter(bed, SNTP_QUESTIONS), 2);
    assert_int_not_equal(last_question(bed).transmit_time, first);
    bed_free(bed);
}

static void test_sntp_accepts_only_the_matching_answer(void **state)
{
    struct bed *bed = bed_asking(16);
    struct reply reply[6] = {good, good, good, good, good, good};

    (void)state;
    reply[0].originate_time = 12345;
    reply[1].src_port = 124;
    reply[2].mode = SNTP_CLIENT;
    reply[3].mode = 5; /* broadcast */
    reply[4].is_elsewhere = true;
    reply[5].is_cut = true;
    for (size_t i = 0; i < ARRAY_LEN(reply); i++) {
        send_answer(bed, reply[i]);
        assert_int_equal(read_counter(bed, SNTP_STRAY), i + 1);
    }
    send_answer(bed, good);
    send_answer(bed, good); /* a second answer to one request */
    assert_int_equal(read_counter(bed, SNTP_STRAY), ARRAY_LEN(reply) + 1);
    assert_int_equal(bed->times, 1);
    bed_free(bed);
}

static void test_sntp_ignores_an_unsynchronised_server(void **state)
{
    struct reply reply[6] = {good, good, good, good, good, good};

    (void)state;
    reply[0].leap = SNTP_UNSYNCHRONISED;
    reply[1].stratum = 16;
    reply[2].transmit_time = 0;
    reply[3].transmit_time = (uint64_t)2208988800u << 32; /* 1970 */
    reply[4].transmit_time = 0x7fffffff00000000;          /* 2104 */
    reply[5].stratum = 0; /* unsynchronised, as chronyd reports it */
    reply[5].reference_id = 0;
    for (size_t i = 0; i < ARRAY_LEN(reply); i++) {
        struct bed *bed = bed_asking(16);

        send_answer(bed, reply[i]);
        assert_int_equal(bed->times, 0);
        assert_int_equal(bed->kisses, 0);
        assert_int_equal(read_counter(bed, SNTP_UNUSABLE), 1);
        assert_int_equal(bed->client.state, SNTP_RESTING);
        bed_free(bed);
    }
}

static void test_sntp_obeys_kiss_codes(void **state)
{
    static const struct {
        uint32_t code;
        enum sntp_state state;
        uint32_t poll_s;
    } row[] = {
        {SNTP_KISS_DENY, SNTP_IDLE, 16},
        {SNTP_KISS_RSTR, SNTP_IDLE, 16},
        {SNTP_KISS_RATE, SNTP_RESTING, 32},
        {0x494e4954, SNTP_RESTING, 16}, /* INIT */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct bed *bed = bed_asking(16);
        struct reply reply = good;

        reply.stratum = 0;
        reply.reference_id = row[i].code;
        send_answer(bed, reply);
        assert_int_equal(bed->times, 0);
        assert_int_equal(bed->kisses, 1);
        assert_int_equal(bed->code, row[i].code);
        assert_int_equal(bed->client.state, row[i].state);
        run_for(bed, (row[i].poll_s - 1) * (uint64_t)SECOND);
        assert_int_equal(read_counter(bed, SNTP_QUESTIONS), 1);
        run_for(bed, 3 * SECOND);
        assert_int_equal(read_counter(bed, SNTP_QUESTIONS) > 1,
                         row[i].state != SNTP_IDLE);
        if (row[i].state == SNTP_IDLE) {
            sntp_link_up(&bed->client, bed->w->now_us);
            run_for(bed, SECOND);
            assert_in_range(read_counter(bed, SNTP_QUESTIONS), 2, 3);
        }
        bed_free(bed);
    }
}

/* RFC 4330 section 8: RATE slows the client down, but does not stop it. */
static void test_sntp_rate_kisses_slow_it_down_at_most_16_times(void **state)
{
    struct bed *bed = bed_asking(16);
    struct reply reply = good;

    (void)state;
    reply.stratum = 0;
    reply.reference_id = SNTP_KISS_RATE;
    for (unsigned kisses = 1; kisses <= 6; kisses++) {
        uint64_t poll_s = 16u << MIN(kisses, 4u);

        send_answer(bed, reply);
        assert_int_equal(bed->kisses, kisses);
        run_for(bed, (poll_s - 1) * SECOND);
        assert_int_equal(bed->client.state, SNTP_RESTING);
        run_for(bed, SECOND);
        be_found(bed); /* its MAC is solicited again after a minute */
        run_for(bed, SNTP_WAIT_US);
        assert_int_equal(bed->client.state, SNTP_ASKING);
    }
    /* Another server has sent no kiss code. */
    sntp_set_server(&bed->client, &remote4, bed->w->now_us);
    assert_int_equal(bed->client.poll_s, 16);
    bed_free(bed);
}

static void expect_questions(uint16_t poll_s, const uint8_t *at_s,
                             unsigned count)
{
    struct bed *bed = bed_asking(poll_s);
    uint64_t start_us = bed->w->now_us;

    for (unsigned i = 0; i < count; i++) {
        uint64_t at_us = start_us + at_s[i] * (uint64_t)SECOND;

        if (i != 0) {
            run_for(bed, at_us - SECOND / 10 - bed->w->now_us);
            assert_int_equal(read_counter(bed, SNTP_QUESTIONS), i);
        }
        run_for(bed, at_us + SECOND / 10 - bed->w->now_us);
        assert_int_equal(read_counter(bed, SNTP_QUESTIONS), i + 1);
    }
    assert_int_equal(read_counter(bed, SNTP_TIMEOUTS), count - 1);
    bed_free(bed);
}

/* It waits 1 s for an answer and then rests 15, 30 ... s, up to the
 * interval. */
static void test_sntp_asks_a_silent_server_less_often(void **state)
{
    static const uint8_t usual_s[] = {0, 16, 47};
    static const uint8_t often_s[] = {0, 16, 37};
    static const uint8_t fast_s[] = {0, 5, 10, 15};

    (void)state;
    expect_questions(64, usual_s, ARRAY_LEN(usual_s));
    expect_questions(20, often_s, ARRAY_LEN(often_s));
    expect_questions(4, fast_s, ARRAY_LEN(fast_s));
}

/* RFC 4330 section 10: no request within 15 s, however often the link comes
 * up. */
static void test_sntp_keeps_its_rate_limit_after_a_link_change(void **state)
{
    struct bed *bed = bed_asking(64);

    (void)state;
    send_answer(bed, good);
    run_for(bed, 5 * SECOND);
    sntp_link_up(&bed->client, bed->w->now_us);
    run_for(bed, 9 * SECOND);
    assert_int_equal(read_counter(bed, SNTP_QUESTIONS), 1);
    run_for(bed, 2 * SECOND);
    assert_int_equal(read_counter(bed, SNTP_QUESTIONS), 2);
    send_answer(bed, good);
    run_for(bed, 20 * SECOND);
    sntp_link_up(&bed->client, bed->w->now_us);
    run_for(bed, SECOND / 10);
    assert_int_equal(read_counter(bed, SNTP_QUESTIONS), 3);
    bed_free(bed);
}

static void test_sntp_does_nothing_without_a_server(void **state)
{
    struct world *w = world_ready();
    struct sntp_config config = {.stack = &w->stack, .set_time = set_time};
    struct sntp_client client;
    unsigned start = w->sent_count;

    (void)state;
    assert_true(sntp_init(&client, &config, w->now_us));
    sntp_link_up(&client, w->now_us);
    assert_int_equal(sntp_timer(&client, w->now_us), UINT64_MAX);
    assert_int_equal(w->sent_count, start);
    world_free(w);
}

static void test_sntp_asks_another_server_at_once(void **state)
{
    struct bed *bed = bed_asking(64);
    struct ip_addr other = ip_addr_from_v4(0x0a000007);
    struct ip_addr us = ip_addr_from_v4(0x0a000002);
    static const struct ip_addr none;
    unsigned sent = bed->w->sent_count;
    uint8_t arp[64];

    (void)state;
    sntp_set_server(&bed->client, &host4, bed->w->now_us); /* the same server */
    assert_int_equal(bed->client.state, SNTP_ASKING);
    sntp_set_server(&bed->client, &other, bed->w->now_us);
    run_for(bed, SNTP_WAIT_US);
    assert_true(world_input(bed->w, 0, arp,
                            make_arp(arp, ARP_REPLY, &other_mac, &other, &us)));
    run_for(bed, SNTP_WAIT_US);
    assert_int_equal(bed->w->sent_count, sent + 2); /* ARP, then the request */
    assert_int_equal(bed->client.state, SNTP_ASKING);
    sntp_set_server(&bed->client, &none, bed->w->now_us);
    assert_int_equal(bed->client.state, SNTP_IDLE);
    sntp_link_up(&bed->client, bed->w->now_us);
    run_for(bed, 100 * (uint64_t)SECOND);
    assert_int_equal(sntp_counter_read(&bed->client, SNTP_QUESTIONS), 2);
    sntp_set_server(&bed->client, &host4, bed->w->now_us);
    assert_int_equal(bed->client.state, SNTP_RESTING);
    bed_free(bed);
}

static void test_sntp_uses_another_interval_from_now_on(void **state)
{
    struct bed *bed = bed_asking(1000);
    uint64_t due_us;

    (void)state;
    send_answer(bed, good);
    run_for(bed, 10 * SECOND);
    sntp_set_poll(&bed->client, 30, bed->w->now_us);
    run_for(bed, 29 * SECOND);
    assert_int_equal(read_counter(bed, SNTP_QUESTIONS), 1);
    run_for(bed, 2 * SECOND);
    assert_int_equal(read_counter(bed, SNTP_QUESTIONS), 2);
    send_answer(bed, good);

    /* A longer interval does not delay a request that is due. */
    due_us = bed->client.due_us;
    sntp_set_poll(&bed->client, 0, bed->w->now_us);
    assert_int_equal(bed->client.due_us, due_us);
    assert_int_equal(bed->client.config.poll_s, SNTP_POLL_S);
    bed_free(bed);
}
