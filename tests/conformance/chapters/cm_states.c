/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a connection: each CM message is lost, repeated, late or forged.
 *
 * Spec: IBTA Vol 1 12.9 (states), 12.9.8 (stale connections, time-outs).
 */
#include <string.h>

#include "cm_lib.h"
#include "net_lib.h"
#include "lib/bytes.h"

static struct rc_config default_config(void)
{
    return (struct rc_config){0};
}

/* A REQ with which the target waits only a short time for our answers, and
 * repeats its own message up to `retries` times. */
static struct cm_attempt *new_impatient_req(struct conf *conf, uint8_t retries)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});

    attempt->req.local_cm_timeout = CM_SHORT_TIMEOUT + conf_patience(conf);
    attempt->req.max_cm_retries = retries;
    return attempt;
}

static struct nvme_sqe keep_alive(void)
{
    return (struct nvme_sqe){.opcode = ADMIN_KEEP_ALIVE};
}

/* The connection still carries commands: a command gets some response. */
static void expect_works(struct rc *rc)
{
    struct nvme_sqe sqe = keep_alive();
    uint16_t cid;

    cid = rc_send_capsule(rc, &sqe, NULL, NULL, 0);
    (void)cid;
    rc_expect_ack(rc, rc->psn - 1);
}

/* ---- REQ and REP. */

static void req_again(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});
    struct cm_rep first;

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    first = attempt->rc->rep;
    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    conf_equal(conf, "QPN of the second REP", attempt->rc->rep.local_qpn,
               first.local_qpn);
    conf_equal(conf, "communication id of the second REP",
               attempt->rc->rep.local_comm_id, first.local_comm_id);
    conf_equal(conf, "starting PSN of the second REP",
               attempt->rc->rep.starting_psn, first.starting_psn);
    rc_send_rtu(attempt->rc);
    expect_works(attempt->rc);
    rc_close(attempt->rc);
}

static void req_twice_at_once(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});
    struct cm_rep first;

    rc_send_req(attempt->rc, &attempt->req);
    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    first = attempt->rc->rep;
    if (rc_take_cm_within(attempt->rc, CM_REP, CM_QUIET_US) != NULL) {
        conf_note(conf, "both REQs were answered");
    }
    conf_equal(conf, "QPN", attempt->rc->rep.local_qpn, first.local_qpn);
    rc_send_rtu(attempt->rc);
    expect_works(attempt->rc);
    rc_close(attempt->rc);
}

static void req_after_rtu(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    rc_send_rtu(attempt->rc);
    expect_works(attempt->rc);
    rc_send_req(attempt->rc, &attempt->req); /* A late copy of the REQ. */
    conf_pass(conf, CM_QUIET_US);
    expect_works(attempt->rc);
    rc_close(attempt->rc);
}

static void rep_again(struct conf *conf)
{
    struct cm_attempt *attempt = new_impatient_req(conf, 3);
    const struct packet *first, *again;

    rc_send_req(attempt->rc, &attempt->req);
    first = rc_take_cm(attempt->rc, CM_REP);
    again = rc_take_cm(attempt->rc, CM_REP);
    conf_same(conf, "the REP sent again", again->cm, first->cm, MAD_DATA_LEN);
    conf_check(conf,
               conf_later_most_us(conf, first, again) >=
                   cm_short_timeout_us(conf) * 9 / 10,
               "the REP was sent again before our response timeout was over");
    rc_send_rej(attempt->rc, CM_ANSWERS_REP, CM_REJ_CONSUMER);
}

static void rep_retries(struct conf *conf)
{
    struct cm_attempt *attempt = new_impatient_req(conf, 2);
    struct cm_rej rej;

    rc_send_req(attempt->rc, &attempt->req);
    for (unsigned int i = 0; i < 3; i++) {
        rc_take_cm(attempt->rc, CM_REP);
    }
    rc_take_rej(attempt->rc, &rej);
    conf_equal(conf, "REJ reason (4: time-out)", rej.reason, CM_REJ_TIMEOUT);
    rc_expect_no_cm(attempt->rc, CM_REP, CM_QUIET_US);
    conf_expect_alive(conf);
}

static void rep_mra(struct conf *conf)
{
    struct cm_attempt *attempt = new_impatient_req(conf, 1);
    struct cm_mra mra = {.message = CM_ANSWERS_REP};
    uint8_t body[MAD_DATA_LEN];

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    mra.local_comm_id = attempt->rc->comm_id;
    mra.remote_comm_id = attempt->rc->target_comm_id;
    /* The MRA asks for twice the extra patience, because --slow multiplies the
     * wait below as well. */
    mra.service_timeout = (uint8_t)MIN(16 + 2 * conf_patience(conf), 31);
    cm_mra_emit(&mra, body);
    rc_send_mad(attempt->rc, CM_MRA, body);
    /* The MRA's time-out is at least 16 times as long, so that no REP is
     * repeated within the usual one. */
    rc_expect_no_cm(attempt->rc, CM_REP, 3 * cm_short_timeout_us(conf));
    rc_send_rtu(attempt->rc);
    expect_works(attempt->rc);
    rc_close(attempt->rc);
}

static void rep_rejected(struct conf *conf)
{
    struct cm_attempt *attempt = new_impatient_req(conf, 3);

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    rc_send_rej(attempt->rc, CM_ANSWERS_REP, CM_REJ_CONSUMER);
    rc_expect_no_cm(attempt->rc, CM_REP, 4 * cm_short_timeout_us(conf));
    conf_expect_alive(conf);
}

static void data_before_rtu(struct conf *conf)
{
    struct cm_attempt *attempt = new_impatient_req(conf, 15);

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    /* The RTU is lost; the first request stands for it. */
    expect_works(attempt->rc);
    conf_flush(conf);
    rc_expect_no_cm(attempt->rc, CM_REP, 4 * cm_short_timeout_us(conf));
    rc_close(attempt->rc);
}

static void rtu_twice(struct conf *conf)
{
    struct rc_config config = default_config();
    struct rc *rc = rc_open(conf, &config);

    rc_send_rtu(rc);
    rc_send_rtu(rc);
    expect_works(rc);
    rc_close(rc);
}

static void rtu_forged(struct conf *conf)
{
    struct cm_attempt *attempt = new_impatient_req(conf, 3);

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    attempt->rc->comm_id ^= 0x40; /* The id of some other connection. */
    rc_send_rtu(attempt->rc);
    attempt->rc->comm_id ^= 0x40;
    /* The forged RTU did not establish the connection, so the REP
     * is repeated. */
    rc_take_cm(attempt->rc, CM_REP);
    rc_send_rej(attempt->rc, CM_ANSWERS_REP, CM_REJ_CONSUMER);
}

/* ---- Stale connections. */

/* A connection that worked before: from now on the target answers nothing on
 * it. */
static void expect_over(struct rc *old)
{
    conf_pass(old->conf, CM_QUIET_US);
    conf_flush(old->conf);
    old->answers = false;
    rc_send(old, RC_SEND_ONLY, NULL, 64, true);
    rc_expect_silence(old, CM_QUIET_US);
}

static void stale_qpn(struct conf *conf)
{
    struct rc_config config = default_config();
    struct rc *old = rc_open(conf, &config);
    struct cm_attempt *attempt = cm_attempt_new(conf, &config);
    struct cm_rej rej;

    expect_works(old);
    /* The host has crashed, and starts again with the same queue
     * pair number. */
    attempt->req.local_qpn = old->qpn;
    attempt->req.local_ca_guid = (uint64_t)0x02 << 56 | old->qpn;
    attempt->rc->qpn = old->qpn;
    rc_send_req(attempt->rc, &attempt->req);
    if (rc_take_cm_within(attempt->rc, CM_REP, CM_QUIET_US) != NULL) {
        conf_note(conf,
                  "the target lets the new connection replace the old one");
    } else {
        rc_take_rej(attempt->rc, &rej);
        conf_equal(conf, "REJ reason (10: stale)", rej.reason,
                   CM_REJ_STALE_CONNECTION);
    }
    expect_over(old);
    conf_expect_alive(conf);
}

static void stale_comm_id(struct conf *conf)
{
    struct rc_config config = default_config();
    struct rc *old = rc_open(conf, &config);
    struct cm_attempt *attempt = cm_attempt_new(conf, &config);

    expect_works(old);
    /* A REQ that reuses the id of a connection ends that connection. */
    attempt->req.local_comm_id = old->comm_id;
    attempt->req.local_ca_guid = (uint64_t)0x02 << 56 | old->qpn;
    attempt->rc->comm_id = old->comm_id;
    rc_send_req(attempt->rc, &attempt->req);
    expect_over(old);
    conf_expect_alive(conf);
}

static void other_host_same_id(struct conf *conf)
{
    struct rc_config config = default_config(), other = {.peer = 1};
    struct rc *a = rc_open(conf, &config);
    struct cm_attempt *attempt = cm_attempt_new(conf, &other);

    /* A communication id belongs to the host that chose it, so that two hosts
     * may use the same one. */
    attempt->req.local_comm_id = a->comm_id;
    attempt->rc->comm_id = a->comm_id;
    conf_flush(conf);
    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    rc_send_rtu(attempt->rc);
    expect_works(a);
    expect_works(attempt->rc);
    rc_close(attempt->rc);
    rc_close(a);
}

/* ---- DREQ and DREP. */

static void dreq_answered(struct conf *conf)
{
    struct rc_config config = default_config();
    struct rc *rc = rc_open(conf, &config);
    const struct packet *drep;

    expect_works(rc);
    rc_send_dreq(rc);
    drep = rc_take_cm(rc, CM_DREP);
    conf_equal(conf, "local id of the DREP",
               get_be32(drep->cm + CM_DREP_LOCAL_COMM_ID), rc->target_comm_id);
    conf_equal(conf, "remote id of the DREP",
               get_be32(drep->cm + CM_DREP_REMOTE_COMM_ID), rc->comm_id);
    conf_equal(conf, "transaction id of the DREP", drep->mad.transaction_id,
               rc->tid);
    expect_over(rc);
}

static void dreq_again(struct conf *conf)
{
    struct rc_config config = default_config();
    struct rc *rc = rc_open(conf, &config);

    for (unsigned int i = 0; i < 3; i++) {
        rc_send_dreq(rc);
        rc_take_cm(rc, CM_DREP);
    }
    conf_expect_alive(conf);
}

static void dreq_unknown(struct conf *conf)
{
    struct rc *rc = rc_new(conf, &(struct rc_config){0});

    rc->target_comm_id = 0x12345678;
    rc->target_qpn = 0x1234;
    rc_send_dreq(rc);
    /* A DREP would help a peer whose own DREP was lost, but the target may stay
     * silent. */
    if (rc_take_cm_within(rc, CM_DREP, CM_QUIET_US) == NULL) {
        conf_note(conf, "the target did not answer");
    }
    conf_expect_alive(conf);
}

static void dreq_other_qpn(struct conf *conf)
{
    struct rc_config config = default_config();
    struct rc *rc = rc_open(conf, &config);

    rc->target_qpn ^= 1;
    rc_send_dreq(rc);
    rc->target_qpn ^= 1;
    conf_pass(conf, CM_QUIET_US);
    expect_works(rc);
    rc_close(rc);
}

static void dreq_other_host(struct conf *conf)
{
    struct rc_config config = default_config();
    struct rc *rc = rc_open(conf, &config);
    uint32_t own = rc->comm_id;

    rc->comm_id ^= 0x1000;
    rc_send_dreq(rc);
    rc->comm_id = own;
    conf_pass(conf, CM_QUIET_US);
    expect_works(rc);
    rc_close(rc);
}

/* The numbers are all correct, but another host sends them. */
static void dreq_forged(struct conf *conf)
{
    struct rc_config config = default_config(), other = {.peer = 1};
    struct rc *rc = rc_open(conf, &config);
    struct rc *forger = rc_new(conf, &other);

    forger->comm_id = rc->comm_id;
    forger->target_comm_id = rc->target_comm_id;
    forger->target_qpn = rc->target_qpn;
    rc_send_dreq(forger);
    conf_pass(conf, CM_QUIET_US);
    conf_flush(conf);
    expect_works(rc);
    rc_close(rc);
}

/*
 * A host on the link sends a REQ under the address of a peer beyond a router.
 * Whoever gets the answer, the target keeps sending the peer's packets to the
 * peer's router.
 */
static void remote_forged(struct conf *conf)
{
    struct rc_config config = default_config();
    struct conf_peer *peer = conf_peer(conf, 0, 0);
    struct conf_peer *forger_peer = conf_peer(conf, 1, 0);
    struct rc_config other = {.peer = 1};
    struct nvme_sqe sqe = keep_alive();
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct cm_req req;
    struct rc *rc, *forger;

    peer->ip4 = ip_addr_from_v4(0xc0a80505); /* 192.168.5.5 */
    forger_peer->ip4 = peer->ip4;
    rc = rc_open(conf, &config);
    forger = rc_new(conf, &other);
    rc_make_req(forger, &req, private_data);
    rc_send_req(forger, &req);
    conf_pass(conf, CM_QUIET_US);
    conf_flush(conf);
    rc_send_capsule(rc, &sqe, NULL, NULL, 0);
    conf_take(conf, "a frame to the peer's router", net_is_to, &peer->mac);
    conf_expect_none(conf, "a frame to the forger's MAC address", net_is_to,
                     &forger_peer->mac, 5000);
    rc_close(rc);
}

static void dreq_before_rtu(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    rc_close(attempt->rc);
    conf_expect_alive(conf);
}

static void rej_when_established(struct conf *conf)
{
    struct rc_config config = default_config();
    struct rc *rc = rc_open(conf, &config);

    expect_works(rc);
    /* REJ reason "time-out" would need our CA's GUID in the additional
     * information; "consumer" needs none. */
    rc_send_rej(rc, CM_ANSWERS_OTHER, CM_REJ_CONSUMER);
    expect_over(rc);
    conf_expect_alive(conf);
}

/* A copy of the REQ that arrives after the connection has ended makes no
 * connection. */
static void req_in_timewait(struct conf *conf)
{
    struct rc_config config = default_config();
    struct cm_attempt *attempt = cm_attempt_new(conf, &config);
    struct cm_rej rej;

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    rc_send_rtu(attempt->rc);
    rc_send_dreq(attempt->rc);
    rc_take_cm(attempt->rc, CM_DREP);
    conf_flush(conf);
    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rej(attempt->rc, &rej);
    conf_equal(conf, "REJ reason (10: stale connection)", rej.reason,
               CM_REJ_STALE_CONNECTION);
    conf_expect_alive(conf);
}

/* Messages from addresses that cannot be answered must not push a real
 * connection out of TIMEWAIT. */
static void timewait_nobody(struct conf *conf)
{
    struct rc_config config = default_config();
    struct cm_attempt *attempt = cm_attempt_new(conf, &config);
    struct cm_attempt *forged = cm_attempt_new(conf, &config);
    const struct ip_addr sources[] = {
        ip_addr_from_v4(0xe0000001), ip_addr_from_v4(0xffffffff),
        ip_addr_from_v4(0x7f000001), forged->rc->path.dst};
    struct cm_rej rej;

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    rc_send_rtu(attempt->rc);
    rc_send_dreq(attempt->rc);
    rc_take_cm(attempt->rc, CM_DREP);
    conf_flush(conf);
    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        forged->rc->path.src = sources[i];
        forged->req.local_gid = sources[i];
        rc_send_req(forged->rc, &forged->req);
        rc_send_dreq(forged->rc);
    }
    conf_pass(conf, CM_QUIET_US);
    conf_flush(conf);
    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rej(attempt->rc, &rej);
    conf_equal(conf, "REJ reason (10: stale connection)", rej.reason,
               CM_REJ_STALE_CONNECTION);
    conf_expect_alive(conf);
}

/* A connection that the target ends itself, with a DREQ. */
static struct rc *make_it_end(struct conf *conf, uint8_t retries)
{
    struct cm_attempt *attempt = new_impatient_req(conf, retries);

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rep(attempt->rc);
    rc_send_rtu(attempt->rc);
    /* A capsule shorter than an SQE ends the association: NVMe over Fabrics
     * 2.1. */
    rc_send(attempt->rc, RC_SEND_ONLY, "too short", 9, true);
    return attempt->rc;
}

static void dreq_from_target(struct conf *conf)
{
    struct rc *rc = make_it_end(conf, 15);
    const struct packet *dreq = rc_take_cm(rc, CM_DREQ);
    struct cm_dreq parsed;

    conf_check(conf, cm_dreq_parse(&parsed, dreq->cm, MAD_DATA_LEN),
               "the target's DREQ cannot be parsed");
    conf_equal(conf, "remote QPN in the DREQ", parsed.remote_qpn, rc->qpn);
    conf_equal(conf, "local id in the DREQ", parsed.local_comm_id,
               rc->target_comm_id);
    rc->tid = dreq->mad.transaction_id;
    rc_send_drep(rc);
    conf_flush(conf);
    rc_expect_no_cm(rc, CM_DREQ, 3 * cm_short_timeout_us(conf));
}

static void dreq_repeated(struct conf *conf)
{
    struct rc *rc = make_it_end(conf, 3);
    const struct packet *first = rc_take_cm(rc, CM_DREQ);
    const struct packet *again = rc_take_cm(rc, CM_DREQ);

    conf_same(conf, "the DREQ sent again", again->cm, first->cm, MAD_DATA_LEN);
    rc->tid = first->mad.transaction_id;
    rc_send_drep(rc);
}

static void dreq_retries(struct conf *conf)
{
    struct rc *rc = make_it_end(conf, 2);

    for (unsigned int i = 0; i < 3; i++) {
        rc_take_cm(rc, CM_DREQ);
    }
    rc_expect_no_cm(rc, CM_DREQ, 4 * cm_short_timeout_us(conf));
    conf_expect_alive(conf);
}

static void dreq_crossing(struct conf *conf)
{
    struct rc *rc = make_it_end(conf, 15);

    rc_take_cm(rc, CM_DREQ);
    rc_send_dreq(rc); /* Our own DREQ, sent before the target's arrived. */
    rc_take_cm(rc, CM_DREP);
    conf_flush(conf);
    rc_expect_no_cm(rc, CM_DREQ, 3 * cm_short_timeout_us(conf));
}

/* ---- Afterwards. */

static void qpn_not_reused(struct conf *conf)
{
    struct rc_config config = default_config();
    uint32_t before = 0;

    for (unsigned int i = 0; i < 4; i++) {
        struct rc *rc = rc_open(conf, &config);

        conf_check(conf, rc->target_qpn != before,
                   "queue pair %u was used again for the next connection",
                   before);
        before = rc->target_qpn;
        rc_close(rc);
    }
}

static void psn_differs(struct conf *conf)
{
    struct rc_config config = default_config();
    struct rc *a = rc_open(conf, &config);
    struct rc *b = rc_open(conf, &config);

    conf_check(conf, a->rep.starting_psn != b->rep.starting_psn,
               "two connections start with the same PSN");
    rc_close(a);
    rc_close(b);
}

static void many_in_a_row(struct conf *conf)
{
    struct rc_config config = default_config();

    for (unsigned int i = 0; i < 40; i++) {
        rc_close(rc_open(conf, &config));
    }
    conf_expect_alive(conf);
}

/* ---- Messages that are not valid. */

/*
 * Send a REQ that is correct except for `mad`; the target must not accept it.
 */
static void send_mad_of(struct conf *conf, const struct mad *mad, size_t len)
{
    struct rc *rc = rc_new(conf, &(struct rc_config){0});
    uint8_t private_data[CM_REQ_PRIVATE_LEN], payload[MAD_LEN];
    struct cm_req req;

    rc_make_req(rc, &req, private_data);
    mad_emit(mad, payload);
    cm_req_emit(&req, payload + MAD_HEADER_LEN);
    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = UD_SEND_ONLY, .dest_qp = GSI_QPN},
                           .deth = {.qkey = GSI_QKEY, .src_qp = GSI_QPN},
                           .data = payload,
                           .data_len = len,
                       });
    rc_expect_no_cm(rc, CM_REP, CM_QUIET_US);
    conf_expect_alive(conf);
}

static void send_mad_like(struct conf *conf, const struct mad *mad)
{
    send_mad_of(conf, mad, MAD_LEN);
}

static struct mad request_mad(void)
{
    return (struct mad){
        .mgmt_class = MAD_CLASS_CM,
        .class_version = MAD_CLASS_VERSION_CM,
        .method = MAD_METHOD_SEND,
        .attribute_id = CM_REQ,
        .transaction_id = 1,
    };
}

#define NO_MAD(name, change)                                                   \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct mad mad = request_mad();                                        \
                                                                               \
        change;                                                                \
        send_mad_like(conf, &mad);                                             \
    }

NO_MAD(mad_class, mad.mgmt_class = 0x03)
NO_MAD(mad_version, mad.class_version = 1)
NO_MAD(mad_method, mad.method = MAD_METHOD_GET)
NO_MAD(mad_attribute, mad.attribute_id = 0x19)
NO_MAD(mad_sidr, mad.attribute_id = 0x17)

static void mad_short(struct conf *conf)
{
    struct mad mad = request_mad();

    send_mad_of(conf, &mad, MAD_LEN - 4);
}

static void rep_unasked(struct conf *conf)
{
    struct rc *rc = rc_new(conf, &(struct rc_config){0});
    uint8_t body[MAD_DATA_LEN];
    struct cm_rep rep = {
        .local_comm_id = rc->comm_id,
        .remote_comm_id = 0x7777,
        .local_qpn = rc->qpn,
    };

    cm_rep_emit(&rep, body);
    rc_send_mad(rc, CM_REP, body);
    rc_expect_no_cm(rc, CM_RTU, CM_QUIET_US);
    conf_expect_alive(conf);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, "IBTA Vol 1 " clause, purpose, __VA_ARGS__)
#define BAD(id, clause, purpose, fn)                                           \
    CONF_TEST(id, "IBTA Vol 1 " clause, purpose, fn, .is_malformed = true)

static const struct conf_test tests[] = {
    TEST("req.again", "12.9.8.3", "a repeated REQ gets the same REP again",
         req_again),
    TEST("req.twice", "12.9.8.3",
         "two copies of a REQ at once make one connection", req_twice_at_once),
    TEST("req.late", "12.9.8.3",
         "a late copy of the REQ does not disturb the connection",
         req_after_rtu),
    TEST("rep.again", "12.9.8.7",
         "the REP is repeated when no RTU comes within our time-out", rep_again,
         .judges_time = true),
    TEST("rep.retries", "12.9.8.7",
         "the REP is repeated Max CM Retries times, then a REJ reports a "
         "time-out",
         rep_retries),
    TEST("rep.mra", "12.6.6",
         "after an MRA the target waits before it repeats the REP", rep_mra),
    TEST("rep.rejected", "12.9.7",
         "a REJ in answer to the REP ends the connection", rep_rejected),
    TEST("rtu.lost", "12.9.7",
         "the first request establishes a connection whose RTU was lost",
         data_before_rtu),
    TEST("rtu.twice", "12.9.7", "further RTUs have no effect", rtu_twice),
    TEST("rtu.forged", "12.7.1",
         "an RTU with the id of no connection has no effect", rtu_forged),
    TEST("stale.qpn", "12.9.8.3.1",
         "a REQ with a queue pair that is connected finds the old connection "
         "stale",
         stale_qpn),
    TEST("stale.comm-id", "12.9.8.3.1",
         "a new REQ with an id that is in use ends the old connection",
         stale_comm_id),
    TEST("stale.other-host", "12.7.1",
         "two hosts may use the same communication id", other_host_same_id),
    TEST("dreq.drep", "12.6.10",
         "a DREQ gets a DREP, and the queue pair is gone", dreq_answered),
    TEST("dreq.again", "12.9.8.5", "each DREQ gets a DREP", dreq_again),
    TEST("dreq.unknown", "12.9.8.5", "a DREQ for no connection does no harm",
         dreq_unknown),
    TEST("dreq.other-qpn", "12.6.10",
         "a DREQ with the number of another queue pair does not end the "
         "connection",
         dreq_other_qpn),
    TEST("dreq.other-id", "12.6.10",
         "a DREQ with another connection's id does not end the connection",
         dreq_other_host),
    TEST("dreq.forged", "12.6.10",
         "a DREQ from a host that is not the peer does not end the connection",
         dreq_forged),
    TEST("req.remote-forged", "12.7.1",
         "a REQ under a remote peer's address does not redirect the peer's "
         "packets",
         remote_forged),
    TEST("dreq.before-rtu", "12.9.7",
         "a DREQ ends a connection whose RTU has not come", dreq_before_rtu),
    TEST("rej.established", "12.9.7", "a late REJ ends the connection",
         rej_when_established),
    TEST("dreq.from-target", "12.6.10", "the target's own DREQ names our QPN",
         dreq_from_target),
    TEST("dreq.repeated", "12.9.8.7",
         "the target repeats its DREQ when no DREP comes", dreq_repeated),
    TEST("dreq.retries", "12.9.8.7",
         "the target repeats its DREQ Max CM Retries times", dreq_retries),
    TEST("dreq.crossing", "12.9.8.5", "two DREQs that cross end the connection",
         dreq_crossing),
    TEST("timewait.req", "12.9.8.3.1",
         "a REQ of a connection that has ended makes no new one",
         req_in_timewait),
    BAD("timewait.nobody", "12.9.8.4",
        "REQs and DREQs from group addresses or the target's own do no harm",
        timewait_nobody),
    TEST("timewait.qpn", "12.9.8.4",
         "a queue pair is not used again for the next connection",
         qpn_not_reused),
    TEST("rep.psn", "12.7.31", "two connections have different starting PSNs",
         psn_differs),
    TEST("conn.many", "12.9", "40 connections in a row are made and ended",
         many_in_a_row),
    BAD("mad.class", "13.4.2", "a MAD of another management class is ignored",
        mad_class),
    BAD("mad.version", "13.4.2", "a MAD of another class version is ignored",
        mad_version),
    BAD("mad.method", "13.4.2", "a MAD with method CommMgtGet is ignored",
        mad_method),
    BAD("mad.attribute", "12.6.1",
        "a LAP is not accepted, as there is no path migration", mad_attribute),
    BAD("mad.sidr", "12.11",
        "a SIDR_REQ is not accepted, as there are no unreliable datagrams",
        mad_sidr),
    BAD("mad.short", "13.4.2", "a MAD of 252 bytes is ignored", mad_short),
    BAD("rep.unasked", "12.9.6", "a REP for no REQ of the target's is ignored",
        rep_unasked),
};
CONF_TESTS(conf_tests_cm_states, "cm", tests);
