/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of iWARP from the first byte to the end: net/mpa_cm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/mpa_cm/mpa_cm.h"
#include "tests/test_fixture.h"

enum {
    RING = 4096,
    PORT = 4420,
    QPN = 0x42,
    ID = 0x10000, /* of connection 0 at the socket */
    SECOND = 1000000,
};

/* What was asked of the socket for one connection. */
struct posted {
    uint8_t sent[MPA_CM_REPLY_LEN];
    uint32_t sent_len, credited;
    unsigned int sends, closes, aborts, releases;
};

struct bed {
    struct mpa_cm *cm;
    struct rdma_cm seam;
    uint8_t *rings, *replies;
    uint64_t now_us;
    struct posted posted[MPA_CM_CONNS];
    bool is_full; /* the socket takes nothing */
    bool fills;   /* it is so after the request */
    unsigned int settled;
    uint32_t credited_at_request; /* of connection 0 */

    /* The user. */
    struct rdma_cm_conn *conn;
    struct rdma_cm_request request;
    uint8_t private_data[64];
    unsigned int requests, establishments, ends;
    bool refuses;
    bool accepted;
};

static struct {
    unsigned int count;
    enum verbs_qp_state states[4];
    struct verbs_qp_attr attr;
    bool is_refused;
} modified;

bool verbs_modify_qp(struct verbs *verbs, uint32_t qpn,
                     enum verbs_qp_state next, const struct verbs_qp_attr *attr)
{
    (void)verbs;
    assert_int_equal(qpn, QPN);
    assert_in_range(modified.count, 0, ARRAY_LEN(modified.states) - 1);
    modified.states[modified.count++] = next;
    modified.attr = *attr;
    return !modified.is_refused;
}

/* ---- The socket. */

static struct posted *posted_of(struct bed *bed, uint32_t id)
{
    assert_in_range(id, ID, ID + MPA_CM_CONNS - 1);
    return &bed->posted[id - ID];
}

static bool socket_send(void *ctx, uint32_t id, const void *data, uint32_t len)
{
    struct bed *bed = ctx;
    struct posted *posted = posted_of(bed, id);

    if (bed->is_full) {
        return false;
    }
    assert_in_range(len, 1, sizeof(posted->sent));
    memcpy(posted->sent, data, len);
    posted->sent_len = len;
    posted->sends++;
    return true;
}

static bool socket_credit(void *ctx, uint32_t id, uint32_t len)
{
    struct bed *bed = ctx;

    posted_of(bed, id)->credited += bed->is_full ? 0 : len;
    return !bed->is_full;
}

static bool socket_close(void *ctx, uint32_t id)
{
    struct bed *bed = ctx;

    posted_of(bed, id)->closes += !bed->is_full;
    return !bed->is_full;
}

static bool socket_abort(void *ctx, uint32_t id)
{
    struct bed *bed = ctx;

    posted_of(bed, id)->aborts += !bed->is_full;
    return !bed->is_full;
}

static bool socket_release(void *ctx, uint32_t id)
{
    struct bed *bed = ctx;

    posted_of(bed, id)->releases += !bed->is_full;
    return !bed->is_full;
}

static void socket_settle(void *ctx)
{
    ((struct bed *)ctx)->settled++;
}

static void give_random(void *ctx, uint8_t *buf, size_t len)
{
    (void)ctx;
    memset(buf, 0x5a, len);
}

/* ---- The user. */

static void on_request(void *ctx, struct rdma_cm_conn *conn,
                       const struct rdma_cm_request *request)
{
    static const uint8_t answer[] = {0xa0, 0xa1, 0xa2, 0xa3};
    struct bed *bed = ctx;

    bed->requests++;
    bed->conn = conn;
    bed->request = *request;
    bed->credited_at_request = bed->posted[0].credited;
    assert_in_range(request->private_len, 0, sizeof(bed->private_data));
    memcpy(bed->private_data, request->private_data, request->private_len);
    if (bed->refuses) {
        conn->ops->reject(conn, RDMA_CM_REJECT_USER, answer, sizeof(answer));
        return;
    }
    bed->is_full |= bed->fills;
    bed->accepted = conn->ops->start_qp(conn, QPN, 0, 0);
    if (bed->accepted) {
        conn->ops->accept(conn, QPN, answer, sizeof(answer));
    } else {
        conn->ops->reject(conn, RDMA_CM_REJECT_NO_RESOURCES, NULL, 0);
    }
}

static void on_established(void *ctx, struct rdma_cm_conn *conn)
{
    struct bed *bed = ctx;

    assert_ptr_equal(conn, bed->conn);
    bed->establishments++;
}

static void on_disconnected(void *ctx, struct rdma_cm_conn *conn)
{
    struct bed *bed = ctx;

    assert_ptr_equal(conn, bed->conn);
    bed->ends++;
}

static const struct rdma_cm_events events = {
    .request = on_request,
    .established = on_established,
    .disconnected = on_disconnected,
};

/* ---- The bed. */

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct mpa_cm_config config = {
        .socket = {.ctx = bed,
                   .send = socket_send,
                   .credit = socket_credit,
                   .close = socket_close,
                   .abort = socket_abort,
                   .release = socket_release,
                   .settle = socket_settle},
        .ring_bytes = RING,
        .wants_crc = true,
        .max_rd_atomic = 16,
        .max_dest_rd_atomic = 8,
        .random = give_random,
    };

    memset(&modified, 0, sizeof(modified));
    config.rings = bed->rings = calloc(MPA_CM_CONNS, RING);
    config.replies = bed->replies = calloc(MPA_CM_CONNS, MPA_CM_REPLY_LEN);
    bed->cm = malloc(mpa_cm_bytes());
    bed->now_us = SECOND;
    mpa_cm_init(bed->cm, &config);
    bed->seam = mpa_cm_rdma(bed->cm);
    assert_true(bed->seam.ops->listen(bed->seam.cm, PORT, &events, bed));
    assert_false(bed->seam.ops->listen(bed->seam.cm, PORT, &events, bed));
    (void)mpa_cm_step(bed->cm, bed->now_us);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;

    free(bed->cm);
    free(bed->rings);
    free(bed->replies);
    free(bed);
    return 0;
}

/* A peer whose address ends with `host` connects. */
static void connect_peer(struct bed *bed, uint16_t conn, uint8_t host)
{
    const struct mpa_cm_peer peer = {
        .ip = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = host},
        .laddr = 3,
        .local_port = PORT,
    };

    mpa_cm_asked(bed->cm, conn, ID + conn, &peer);
    mpa_cm_established(bed->cm, conn);
}

/* The request of a stock siw: revision 2, IRD 128, ORD 0, 32 bytes. */
static const uint8_t siw_request[] = {
    'M',  'P',  'A',  ' ',  'I',  'D',  ' ',  'R',  'e',  'q',  ' ',
    'F',  'r',  'a',  'm',  'e',  0x10, 2,    0,    36,   0x00, 0x80,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x1f, [55] = 0};

/* What the drive answers to it: C is set, ORD 16. */
static const uint8_t siw_reply[] = {'M',  'P',  'A',  ' ',  'I',  'D',  ' ',
                                    'R',  'e',  'p',  ' ',  'F',  'r',  'a',
                                    'm',  'e',  0x50, 2,    0,    8,    0x00,
                                    0x00, 0x00, 0x10, 0xa0, 0xa1, 0xa2, 0xa3};

static bool give_bytes(struct bed *bed, uint16_t conn, uint32_t at,
                       const uint8_t *bytes, uint32_t len)
{
    memcpy(bed->rings + (size_t)conn * RING + at, bytes, len);
    return mpa_cm_received(bed->cm, conn, len);
}

/* Connection 0 gets as far as the user lets it. */
static void request_conn(struct bed *bed)
{
    connect_peer(bed, 0, 2);
    assert_true(give_bytes(bed, 0, 0, siw_request, sizeof(siw_request)));
}

static void take_turns(struct bed *bed, uint64_t time_us)
{
    for (uint64_t end = bed->now_us + time_us; bed->now_us < end;) {
        bed->now_us += SECOND / 4;
        (void)mpa_cm_step(bed->cm, bed->now_us);
    }
}

/* ---- Tests. */

static void test_mpa_cm_answers_a_stock_host(void **state)
{
    struct bed *bed = *state;
    const struct posted *posted = &bed->posted[0];

    request_conn(bed);
    assert_int_equal(bed->requests, 1);
    assert_int_equal(bed->request.laddr, 3);
    assert_int_equal(bed->request.max_rd_atomic, 16);
    assert_int_equal(bed->request.max_dest_rd_atomic, 0);
    assert_int_equal(bed->request.private_len, 32);
    assert_memory_equal(bed->private_data, siw_request + 24, 32);
    assert_int_equal(bed->request.peer.bytes[15], 2);
    assert_int_equal(posted->sent_len, sizeof(siw_reply));
    assert_memory_equal(posted->sent, siw_reply, sizeof(siw_reply));
    assert_int_equal(bed->establishments, 0);
    mpa_cm_sent(bed->cm, 0, true);
    assert_int_equal(bed->establishments, 1);
    bed->conn->ops->data_received(bed->conn);
    assert_int_equal(bed->establishments, 1);
}

/* The RNIC takes the stream only if the ring is empty by then. */
static void test_mpa_cm_gives_the_stream_to_the_queue_pair(void **state)
{
    struct bed *bed = *state;

    request_conn(bed);
    assert_int_equal(bed->credited_at_request, sizeof(siw_request));
    assert_int_equal(bed->settled, 2); /* and after the reply */
    assert_int_equal(modified.count, 2);
    assert_int_equal(modified.states[0], VERBS_QPS_RTR);
    assert_int_equal(modified.states[1], VERBS_QPS_RTS);
    assert_int_equal(modified.attr.iw.stream, ID);
    assert_true(modified.attr.iw.has_crc);
    assert_true(modified.attr.iw.is_first_mute);
    assert_false(modified.attr.iw.has_send_rtr);
    assert_int_equal(modified.attr.iw.key_seed, 0x5a5a5a5a5a5a5a5a);
    assert_int_equal(modified.attr.max_rd_atomic, 16);
    assert_int_equal(modified.attr.max_dest_rd_atomic, 0);
}

static void test_mpa_cm_reads_a_request_byte_by_byte(void **state)
{
    struct bed *bed = *state;

    connect_peer(bed, 0, 2);
    for (uint32_t i = 0; i < sizeof(siw_request); i++) {
        assert_int_equal(bed->requests, 0);
        assert_true(give_bytes(bed, 0, i, siw_request + i, 1));
    }
    assert_int_equal(bed->requests, 1);
    assert_int_equal(bed->credited_at_request, sizeof(siw_request));
}

/* A peer-to-peer build of siw: C, and an RTR of one of three kinds. */
static void test_mpa_cm_chooses_the_first_message(void **state)
{
    static const struct {
        uint8_t ird_high, ord_high; /* of the request */
        uint8_t reply_ird_high, reply_ord_high, dest_reads;
        bool has_send;
    } rows[] = {
        {0x80, 0x80, 0x80, 0x80, 0, false}, /* WRITE */
        {0xc0, 0xc0, 0x80, 0x80, 0, false}, /* any of the three */
        {0x80, 0x40, 0x80, 0x40, 1, false}, /* READ, which has to be served */
        {0xc0, 0x00, 0xc0, 0x00, 0, true},  /* SEND */
    };
    struct bed *bed = *state;

    for (uint16_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t request[sizeof(siw_request)];
        const uint8_t *sent = bed->posted[i].sent;

        memset(&modified, 0, sizeof(modified));
        memcpy(request, siw_request, sizeof(request));
        request[16] |= 0x40;
        request[20] |= rows[i].ird_high;
        request[22] |= rows[i].ord_high;
        connect_peer(bed, i, 2);
        assert_true(give_bytes(bed, i, 0, request, sizeof(request)));
        assert_int_equal(sent[20] & 0xc0, rows[i].reply_ird_high);
        assert_int_equal(sent[21], rows[i].dest_reads);
        assert_int_equal(sent[22] & 0xc0, rows[i].reply_ord_high);
        assert_int_equal(modified.attr.max_dest_rd_atomic, rows[i].dest_reads);
        assert_int_equal(modified.attr.iw.has_send_rtr, rows[i].has_send);
    }
}

static void test_mpa_cm_refuses_by_a_reply_and_a_fin(void **state)
{
    struct bed *bed = *state;
    const struct posted *posted = &bed->posted[0];

    bed->refuses = true;
    request_conn(bed);
    assert_int_equal(posted->sends, 1);
    assert_int_equal(posted->sent[16], 0x70);
    assert_memory_equal(posted->sent + 24, siw_reply + 24, 4);
    assert_int_equal(posted->closes, 1);
    mpa_cm_sent(bed->cm, 0, true);
    assert_int_equal(bed->establishments, 0);
    mpa_cm_closed(bed->cm, 0);
    assert_int_equal(posted->releases, 0);
    mpa_cm_ended(bed->cm, 0);
    assert_int_equal(posted->releases, 1);
    assert_int_equal(bed->ends, 0);
    assert_int_equal(mpa_cm_usage(bed->cm).connections, 0);
    assert_int_equal(mpa_cm_counter(bed->cm, MPA_CM_REJECTED), 1);
}

/* Markers are refused without asking the user; so is a port without one. */
static void test_mpa_cm_refuses_what_it_cannot(void **state)
{
    struct bed *bed = *state;
    uint8_t request[sizeof(siw_request)];
    struct mpa_cm_peer peer = {.local_port = PORT + 1};

    memcpy(request, siw_request, sizeof(request));
    request[16] |= 0x80;
    connect_peer(bed, 0, 2);
    assert_true(give_bytes(bed, 0, 0, request, sizeof(request)));
    assert_int_equal(bed->posted[0].sent[16] & 0xa0, 0x20);
    assert_int_equal(bed->posted[0].closes, 1);
    mpa_cm_asked(bed->cm, 1, ID + 1, &peer);
    mpa_cm_established(bed->cm, 1);
    assert_true(give_bytes(bed, 1, 0, siw_request, sizeof(siw_request)));
    assert_int_equal(bed->posted[1].sent[16] & 0x20, 0x20);
    assert_int_equal(bed->requests, 0);
}

static void test_mpa_cm_refuses_when_the_rnic_does(void **state)
{
    struct bed *bed = *state;

    modified.is_refused = true;
    request_conn(bed);
    assert_false(bed->accepted);
    assert_int_equal(modified.count, 1);
    assert_int_equal(bed->posted[0].sent[16], 0x70);
    assert_int_equal(bed->posted[0].closes, 1);
}

/* RFC 5044 section 7.1.4: nothing is answered to what is not MPA. */
static void test_mpa_cm_answers_nothing_to_what_is_not_mpa(void **state)
{
    struct bed *bed = *state;
    uint8_t request[sizeof(siw_request) + 1] = {0};

    memcpy(request, siw_request, sizeof(siw_request));
    connect_peer(bed, 0, 2);
    assert_true(give_bytes(bed, 0, 0, request, sizeof(request)));
    connect_peer(bed, 1, 2);
    request[4] = 'X';
    assert_true(give_bytes(bed, 1, 0, request, 6));
    for (unsigned int i = 0; i < 2; i++) {
        assert_int_equal(bed->posted[i].sends, 0);
        assert_int_equal(bed->posted[i].closes, 1);
    }
    assert_int_equal(mpa_cm_counter(bed->cm, MPA_CM_NOT_MPA), 2);
    assert_int_equal(bed->requests, 0);
    take_turns(bed, MPA_CM_END_US + 2 * SECOND);
    assert_int_equal(bed->posted[0].aborts, 1); /* it does not close */
}

/* A connection of another protocol at the same port. */
static void test_mpa_cm_leaves_other_first_bytes_to_others(void **state)
{
    static const uint8_t ic_req[128] = {0};
    struct bed *bed = *state;

    connect_peer(bed, 0, 2);
    assert_false(give_bytes(bed, 0, 0, ic_req, sizeof(ic_req)));
    assert_int_equal(mpa_cm_usage(bed->cm).connections, 0);
    take_turns(bed, 2 * MPA_CM_REQUEST_US);
    assert_int_equal(bed->posted[0].aborts + bed->posted[0].closes +
                         bed->posted[0].releases + bed->posted[0].credited,
                     0);
    request_conn(bed); /* the number is used again */
    assert_int_equal(bed->requests, 1);
}

static void test_mpa_cm_ends_a_connection_without_a_request(void **state)
{
    struct bed *bed = *state;

    connect_peer(bed, 0, 2);
    take_turns(bed, 5 * SECOND);
    assert_true(give_bytes(bed, 0, 0, siw_request, 30)); /* gains no time */
    take_turns(bed, 4 * SECOND);
    assert_int_equal(bed->posted[0].aborts, 0);
    take_turns(bed, 3 * SECOND);
    assert_int_equal(bed->posted[0].aborts, 1);
    assert_int_equal(mpa_cm_counter(bed->cm, MPA_CM_LATE), 1);
    mpa_cm_aborted(bed->cm, 0);
    mpa_cm_ended(bed->cm, 0);
    assert_int_equal(bed->posted[0].releases, 1);
}

/* The peer closes: the user destroys the queue pair, and lets go. */
static void test_mpa_cm_tells_the_user_of_a_fin_once(void **state)
{
    struct bed *bed = *state;
    const struct posted *posted = &bed->posted[0];

    request_conn(bed);
    mpa_cm_sent(bed->cm, 0, true);
    mpa_cm_finished(bed->cm, 0);
    assert_int_equal(bed->ends, 1);
    assert_int_equal(posted->closes, 0); /* the queue pair has the stream */
    bed->conn->ops->disconnect(bed->conn);
    take_turns(bed, SECOND / 4);
    assert_int_equal(posted->closes, 1);
    mpa_cm_closed(bed->cm, 0);
    mpa_cm_ended(bed->cm, 0);
    assert_int_equal(bed->ends, 1);
    assert_int_equal(posted->releases, 1);
}

/* The connection ends by itself: its number is kept for the user. */
static void test_mpa_cm_keeps_an_ended_connection_for_its_user(void **state)
{
    struct bed *bed = *state;
    const struct posted *posted = &bed->posted[0];

    request_conn(bed);
    mpa_cm_sent(bed->cm, 0, false);
    assert_int_equal(bed->establishments, 0);
    mpa_cm_ended(bed->cm, 0);
    assert_int_equal(bed->ends, 1);
    take_turns(bed, SECOND);
    assert_int_equal(posted->releases, 0);
    bed->conn->ops->disconnect(bed->conn);
    take_turns(bed, SECOND / 4);
    assert_int_equal(posted->releases, 1);
    assert_int_equal(posted->closes + posted->aborts, 0);
    assert_int_equal(mpa_cm_usage(bed->cm).connections, 0);
}

static void test_mpa_cm_disconnects_the_peer(void **state)
{
    struct bed *bed = *state;
    const struct posted *posted = &bed->posted[0];

    request_conn(bed);
    bed->conn->ops->disconnect(bed->conn);
    take_turns(bed, 2 * SECOND);
    assert_int_equal(posted->closes, 1);
    mpa_cm_sent(bed->cm, 0, true);
    assert_int_equal(bed->establishments, 0);
    take_turns(bed, MPA_CM_END_US);
    assert_int_equal(posted->aborts, 1);
    mpa_cm_closed(bed->cm, 0);
    mpa_cm_aborted(bed->cm, 0);
    mpa_cm_ended(bed->cm, 0);
    assert_int_equal(posted->releases, 1);
    assert_int_equal(bed->ends, 0);
}

/* A reply that finds no room, and a user that gives up meanwhile: the stream is
 * its queue pair's no more, and takes no bytes. */
static void test_mpa_cm_sends_no_reply_after_its_user_has_gone(void **state)
{
    struct bed *bed = *state;

    bed->fills = true;
    request_conn(bed);
    assert_true(bed->accepted);
    assert_int_equal(bed->posted[0].sends, 0);
    bed->conn->ops->disconnect(bed->conn);
    bed->is_full = false;
    take_turns(bed, SECOND / 4);
    assert_int_equal(bed->posted[0].sends, 0);
    assert_int_equal(bed->posted[0].closes, 1);
    mpa_cm_closed(bed->cm, 0);
    mpa_cm_ended(bed->cm, 0);
    assert_int_equal(bed->posted[0].releases, 1);
}

/* Whatever finds no room at the socket is tried again. */
static void test_mpa_cm_tries_again_when_there_is_room(void **state)
{
    struct bed *bed = *state;
    const struct posted *posted = &bed->posted[0];

    bed->is_full = true;
    request_conn(bed);
    assert_int_equal(bed->requests, 0);
    bed->is_full = false;
    take_turns(bed, SECOND / 4);
    assert_int_equal(bed->requests, 1);
    assert_int_equal(posted->sends, 1);
    bed->is_full = true;
    bed->conn->ops->disconnect(bed->conn);
    take_turns(bed, SECOND);
    assert_int_equal(posted->closes, 0);
    bed->is_full = false;
    take_turns(bed, SECOND / 4);
    assert_int_equal(posted->closes, 1);
    bed->is_full = true;
    mpa_cm_sent(bed->cm, 0, true);
    mpa_cm_closed(bed->cm, 0);
    mpa_cm_ended(bed->cm, 0);
    assert_int_equal(posted->releases, 0);
    bed->is_full = false;
    take_turns(bed, SECOND / 4);
    assert_int_equal(posted->releases, 1);
}

/* One address takes all places: another one gets one of them, the first none of
 * its own. */
static void test_mpa_cm_has_places_for_every_address(void **state)
{
    struct bed *bed = *state;

    for (uint16_t i = 0; i < MPA_CM_HALF_OPEN; i++) {
        connect_peer(bed, i, 2);
        bed->now_us += SECOND / 100;
        (void)mpa_cm_step(bed->cm, bed->now_us);
    }
    assert_int_equal(mpa_cm_usage(bed->cm).half_open, MPA_CM_HALF_OPEN);
    connect_peer(bed, MPA_CM_HALF_OPEN, 2);
    assert_int_equal(bed->posted[MPA_CM_HALF_OPEN].aborts, 1);
    connect_peer(bed, MPA_CM_HALF_OPEN + 1, 3);
    assert_int_equal(bed->posted[MPA_CM_HALF_OPEN + 1].aborts, 0);
    assert_int_equal(bed->posted[0].aborts, 1); /* the oldest one */
    assert_int_equal(bed->posted[1].aborts, 0);
    assert_int_equal(mpa_cm_counter(bed->cm, MPA_CM_DISPLACED), 1);
    assert_int_equal(mpa_cm_usage(bed->cm).half_open, MPA_CM_HALF_OPEN);
}

/* A peer sends what is not MPA, and does not close. */
static void fail_conn(struct bed *bed, uint16_t conn, uint8_t host)
{
    static const uint8_t wrong[] = "MPA?ID";

    connect_peer(bed, conn, host);
    assert_true(give_bytes(bed, conn, 0, wrong, sizeof(wrong)));
    bed->now_us += SECOND / 1000;
    (void)mpa_cm_step(bed->cm, bed->now_us);
    assert_int_equal(bed->posted[conn].closes, 1);
}

/* Peers that do not close what the drive has closed hold few connections when
 * these run out. */
static void test_mpa_cm_waits_for_few_that_do_not_close(void **state)
{
    struct bed *bed = *state;
    uint16_t conn = 0;

    while (conn < MPA_CM_AMPLE) {
        fail_conn(bed, conn++, 2);
    }
    for (uint16_t i = 0; i < MPA_CM_AMPLE; i++) {
        assert_int_equal(bed->posted[i].aborts, 0);
    }
    for (uint16_t i = 0; i < 20; i++) {
        fail_conn(bed, conn++, 2);
        assert_int_equal(bed->posted[i].aborts, 1);
        assert_int_equal(bed->posted[i + 1].aborts, 0);
    }
}

/* The oldest one of an address that has many goes for one more of it, and the
 * oldest of all for one of another address. */
static void test_mpa_cm_cuts_off_whose_address_has_many(void **state)
{
    struct bed *bed = *state;
    uint16_t conn = 0;

    fail_conn(bed, conn++, 3);
    while (conn < MPA_CM_AMPLE) {
        fail_conn(bed, conn++, 2);
    }
    for (unsigned int i = 0; i < 20; i++) {
        fail_conn(bed, conn++, 2);
    }
    assert_int_equal(bed->posted[0].aborts, 0);
    assert_int_equal(bed->posted[1].aborts, 1);
    fail_conn(bed, conn, 4);
    assert_int_equal(bed->posted[0].aborts, 1);
}

/* A connection with a request has left its place. */
static void test_mpa_cm_has_places_beside_those_with_a_request(void **state)
{
    struct bed *bed = *state;

    for (uint16_t i = 0; i < 4 * MPA_CM_HALF_OPEN; i++) {
        memset(&modified, 0, sizeof(modified));
        connect_peer(bed, i, 2);
        assert_true(give_bytes(bed, i, 0, siw_request, sizeof(siw_request)));
        assert_int_equal(bed->posted[i].sends, 1);
    }
    assert_int_equal(mpa_cm_usage(bed->cm).connections, 4 * MPA_CM_HALF_OPEN);
    assert_int_equal(mpa_cm_usage(bed->cm).half_open, 0);
}

TEST_FIXTURE(setup, teardown)
