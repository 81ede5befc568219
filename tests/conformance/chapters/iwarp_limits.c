/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `iwarp`: the budget of 1024 queue pairs, which iWARP shares with
 * RoCE, and how many may be of iWARP. Connections are made by hand, without
 * net/mpa; they never send a Connect.
 */
#include <string.h>

#include "iwarp_script.h"
#include "lib/bytes.h"
#include "limits_lib.h"
#include "nvme_tcp_peer.h"

enum {
    FIRST_PORT = 20000,
    CONNS = 256, /* of hosts that have proven no identity */
    SHARED = 200,
    END_US = 1000000,
    REQUEST_LEN = 56,
    FLAGS = 16,
    REJECTED = 0x20,
    QID = 26, /* after RECFMT */
    HRQSIZE = 28,
    HSQSIZE = 30,
    DEPTH = 2,
    REPLY_LEN = 56,
    REJECT_LEN = 28,
    REJECT_STATUS = 26,
    WINDOW = 65535,
    IDLE_US = 45000000,
};

struct conn {
    struct tcp_peer peer;
    uint32_t got; /* bytes of the drive */
    bool is_open;
};

struct crowd {
    struct conf *conf;
    struct limits *limits; /* queue pairs of RoCE */
    unsigned int num;
    struct conn conns[CONNS + 8];
};

static struct crowd *crowd_new(struct conf *conf)
{
    struct crowd *crowd = conf_alloc(conf, sizeof(*crowd));

    iwarp_service_start(conf);
    crowd->conf = conf;
    crowd->limits = limits_new(conf);
    return crowd;
}

static struct conn *conn_new(struct crowd *crowd)
{
    struct conn *conn = &crowd->conns[crowd->num];

    ASSERT(crowd->num < ARRAY_LEN(crowd->conns));
    *conn = (struct conn){
        .peer = tcp_peer_new(crowd->conf, 0, 0, false,
                             (uint16_t)(FIRST_PORT + crowd->num), STREAM_PORT)};
    crowd->num++;
    return conn;
}

static void send_segment(struct conn *conn, uint8_t flags, uint32_t sent,
                         const uint8_t *data, size_t len)
{
    tcp_peer_send(&conn->peer,
                  &(struct tcp_peer_out){.seq = conn->peer.isn + 1 + sent,
                                         .ack = conn->peer.iss + 1 + conn->got,
                                         .flags = flags,
                                         .window = WINDOW,
                                         .data = data,
                                         .len = len});
}

/* Take the reply of MPA, which comes in one segment. */
static bool take_reply(struct crowd *crowd, struct conn *conn, uint8_t *reply)
{
    struct tcp_peer_in in;

    do {
        (void)tcp_peer_take(&conn->peer, &in, 0);
        conf_check(crowd->conf, (in.flags & (SEG_RST | SEG_FIN)) == 0 || in.len,
                   "connection %u ends without a reply", crowd->num);
    } while (in.len == 0);
    conf_check(crowd->conf, in.len == REPLY_LEN || in.len == REJECT_LEN,
               "a reply of %u bytes", in.len);
    memcpy(reply, in.data, in.len);
    conn->got = in.len;
    send_segment(conn, SEG_ACK, REQUEST_LEN, NULL, 0);
    return (reply[FLAGS] & REJECTED) == 0;
}

/* @return whether the queue pair was accepted */
static bool ask_pair(struct crowd *crowd, struct conn *conn, uint8_t *reply)
{
    uint8_t request[REQUEST_LEN] = "MPA ID Req Frame\x10\x02\x00\x24\x00\x80";

    put_le16(request + QID, 1);
    put_le16(request + HRQSIZE, DEPTH);
    put_le16(request + HSQSIZE, DEPTH - 1);
    tcp_peer_open(&conn->peer);
    send_segment(conn, SEG_ACK | SEG_PSH, 0, request, sizeof(request));
    conn->is_open = true;
    return take_reply(crowd, conn, reply);
}

static struct conn *crowd_take(struct crowd *crowd)
{
    struct conn *conn = conn_new(crowd);
    uint8_t reply[REPLY_LEN];

    conf_check(crowd->conf, ask_pair(crowd, conn, reply),
               "queue pair %u of iWARP is refused", crowd->num);
    return conn;
}

/* One more gets the status of a lack of resources. */
static void expect_refusal(struct crowd *crowd)
{
    struct conn *conn = conn_new(crowd);
    uint8_t reply[REPLY_LEN];

    conf_check(crowd->conf, !ask_pair(crowd, conn, reply),
               "one more queue pair of iWARP is accepted");
    conf_equal(crowd->conf, "NVMe status in the reply",
               get_le16(reply + REJECT_STATUS), NVME_RDMA_NO_RESOURCES);
}

static void expect_end(struct crowd *crowd, struct conn *conn)
{
    struct tcp_peer_in in;

    conf_check(crowd->conf, tcp_peer_take(&conn->peer, &in, END_US),
               "the oldest connection does not end");
    conf_check(crowd->conf, (in.flags & (SEG_FIN | SEG_RST)) != 0,
               "the oldest connection gets a segment, but no end");
}

static void release_conn(struct conn *conn)
{
    send_segment(conn, SEG_RST, REQUEST_LEN, NULL, 0);
    conn->is_open = false;
}

static void end_crowd(struct crowd *crowd)
{
    for (unsigned int i = 0; i < crowd->num; i++) {
        if (crowd->conns[i].is_open) {
            release_conn(&crowd->conns[i]);
        }
    }
    limits_release_all(crowd->limits);
    limits_expect_idle(crowd->conf, IDLE_US);
    limits_expect_pool(crowd->conf, "iwarp-connections", 0);
    limits_expect_pool(crowd->conf, "tcp-connections", 0);
    conf_expect_alive(crowd->conf);
}

static void queue_pairs_256(struct conf *conf)
{
    struct crowd *crowd = crowd_new(conf);

    for (unsigned int i = 0; i < CONNS; i++) {
        (void)crowd_take(crowd);
    }
    limits_expect_pool(conf, "queue-pairs", CONNS);
    (void)crowd_take(crowd);
    expect_end(crowd, &crowd->conns[0]);
    limits_expect_pool(conf, "queue-pairs", CONNS);
    release_conn(&crowd->conns[1]);
    limits_expect_pool(conf, "queue-pairs", CONNS - 1);
    (void)crowd_take(crowd);
    limits_expect_pool(conf, "queue-pairs", CONNS);
    end_crowd(crowd);
}

static void queue_pairs_shared(struct conf *conf)
{
    struct crowd *crowd = crowd_new(conf);
    int some = LIMITS_NO_SLOT;

    for (unsigned int i = 0; i < SHARED; i++) {
        (void)crowd_take(crowd);
    }
    for (unsigned int i = SHARED; i < LIMITS_QUEUE_PAIRS; i++) {
        some = limits_take(crowd->limits, DEPTH);
    }
    limits_expect_pool(conf, "queue-pairs", LIMITS_QUEUE_PAIRS);
    expect_refusal(crowd);
    limits_expect_full(crowd->limits, 1, DEPTH);

    conf_note(conf, "what RoCE gives up, iWARP takes, and the other way round");
    limits_release(crowd->limits, some);
    limits_expect_pool(conf, "queue-pairs", LIMITS_QUEUE_PAIRS - 1);
    (void)crowd_take(crowd);
    limits_expect_full(crowd->limits, 1, DEPTH);
    expect_refusal(crowd);
    release_conn(&crowd->conns[17]);
    limits_expect_pool(conf, "queue-pairs", LIMITS_QUEUE_PAIRS - 1);
    (void)limits_take(crowd->limits, DEPTH);
    expect_refusal(crowd);
    end_crowd(crowd);
}

/* The Connect of IW_CONNECT, whose READ is not answered. */
#define IW_CAPSULE                                                             \
    "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "          \
    "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"             \
    "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 78563412 "      \
    "0201888800000000\n"

/* A part of the answer, and then some time. */
#define IW_SLOW(offset)                                                        \
    "f> 81 42 @+" offset " z64\n"                                              \
    "wait 4\n"

/* An empty WRITE, and then some time. */
#define IW_RTR                                                                 \
    "f> c1 40 00000000 z8\n"                                                   \
    "wait 9\n"

static const struct conf_test tests[] = {
    CONF_TEST("time.slow-request", "RFC 5044 7.1.1",
              "give a request up whose bytes come slowly", iwarp_script_run,
              .is_malformed = true,
              .text = "open\n"
                      "> \"MPA\"\n"
                      "wait 6\n"
                      "quiet\n"
                      "> \" ID\"\n"
                      "wait 6\n"
                      "< end\n"),
    CONF_TEST("time.no-fpdu", "RFC 5044 7.1.2",
              "end a connection whose host never begins", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "wait 20\n"
                              "quiet\n"
                              "wait 40\n"
                              "< end\n"),
    CONF_TEST("time.rtr-only", "RFC 5044 7.1.2",
              "end a connection whose host sends empty WRITEs, and no Connect",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN IW_RTR IW_RTR "quiet\n" IW_RTR IW_RTR IW_RTR
                                            "< end\n"),
    CONF_TEST("time.no-response", "RFC 5040 5.2",
              "end a connection whose host does not answer the READ of Connect",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN IW_CAPSULE "wait 4\n"
                                         "quiet\n"
                                         "wait 56\n"
                                         "< end\n"),
    CONF_TEST("time.half-response", "RFC 5040 5.2",
              "end a connection whose host answers half of the READ of Connect",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN IW_CAPSULE "f> 81 42 @ z512\n"
                                         "wait 4\n"
                                         "quiet\n"
                                         "wait 56\n"
                                         "< end\n"),
    CONF_TEST("time.slow-response", "RFC 5040 5.2",
              "end a connection whose host answers the READ of Connect slowly",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN IW_CAPSULE IW_SLOW("0") IW_SLOW(
                  "64") "quiet\n" IW_SLOW("128") IW_SLOW("192") "< end\n"),
    CONF_TEST("limits.queue-pairs", "data sheet",
              "256 queue pairs of iWARP are accepted; the oldest one makes "
              "room for one more",
              queue_pairs_256, .needs = CONF_NEEDS_CONTROL),
    CONF_TEST("limits.shared", "data sheet; NVMe-oF 1.1 7.3.6.5",
              "824 queue pairs of RoCE and 200 of iWARP share one budget",
              queue_pairs_shared, .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_iwarp_limits, "iwarp", tests);
