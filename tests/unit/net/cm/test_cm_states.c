/* SPDX-License-Identifier: BSD-2-Clause */
/* Every event in every state; one table has the expected outcomes. */
#include "tests/unit/net/cm/cm_test.h"

#include "lib/bytes.h"

enum {
    PEER = 1,
    PEER_ID = 0xc0ffee01,
    PEER_QPN = 0x11,
    PEER_PSN = 0xabcdef,
    TIMEOUT_US = 4294968, /* a little more than code 20 */
};

enum situation {
    FREE,
    REQ_SENT,
    REP_RCVD,
    REQ_RCVD,
    REP_SENT,
    ESTABLISHED_PASSIVE,
    ESTABLISHED_ACTIVE,
    DREQ_SENT,
    TIMEWAIT,
    SITUATIONS,
};

enum event {
    IN_REQ, /* the connection's REQ, repeated */
    IN_REP,
    IN_RTU,
    IN_MRA_REQ,
    IN_MRA_REP,
    IN_REJ,
    IN_DREQ,
    IN_DREP,
    ON_TIMEOUT, /* with retries left */
    ON_LAST_TIMEOUT,
    ON_DATA, /* cm_data_received() */
    EVENTS,
};

static const char *const situation_name[SITUATIONS] = {
    "FREE",
    "REQ_SENT",
    "REP_RCVD",
    "REQ_RCVD",
    "REP_SENT",
    "ESTABLISHED (passive)",
    "ESTABLISHED (active)",
    "DREQ_SENT",
    "TIMEWAIT",
};

/* The outcome: next state, message sent (0 for none), and callback made. */
struct outcome {
    uint8_t state;
    uint8_t sent;
    enum { NOBODY, REQUEST, REPLIED, ESTABLISHED, DISCONNECTED } told;
};

#define SAME(s)    {CM_CONN_##s, 0, NOBODY}
#define SAYS(s, m) {CM_CONN_##s, CM_##m, NOBODY}
#define ENDS(m)    {CM_CONN_TIMEWAIT, m, DISCONNECTED}

static const struct outcome outcomes[SITUATIONS][EVENTS] = {
    /* clang-format off */
    [FREE] = {
        [IN_REQ] = {CM_CONN_REQ_RCVD, 0, REQUEST},
        [IN_REP] = SAME(FREE), [IN_RTU] = SAME(FREE),
        [IN_MRA_REQ] = SAME(FREE), [IN_MRA_REP] = SAME(FREE),
        [IN_REJ] = SAME(FREE), [IN_DREQ] = SAYS(FREE, DREP),
        [IN_DREP] = SAME(FREE), [ON_TIMEOUT] = SAME(FREE),
        [ON_LAST_TIMEOUT] = SAME(FREE), [ON_DATA] = SAME(FREE),
    },
    [REQ_SENT] = {
        [IN_REQ] = {CM_CONN_REQ_SENT, 0, REQUEST}, /* of another connection */
        [IN_REP] = {CM_CONN_REP_RCVD, 0, REPLIED},
        [IN_RTU] = SAME(REQ_SENT), [IN_MRA_REQ] = SAME(REQ_SENT),
        [IN_MRA_REP] = SAME(REQ_SENT), [IN_REJ] = ENDS(0),
        [IN_DREQ] = SAYS(REQ_SENT, DREP), /* belongs to no connection yet */
        [IN_DREP] = SAME(REQ_SENT), [ON_TIMEOUT] = SAYS(REQ_SENT, REQ),
        [ON_LAST_TIMEOUT] = ENDS(CM_REJ), [ON_DATA] = SAME(REQ_SENT),
    },
    [REP_RCVD] = {
        [IN_REQ] = SAME(REP_RCVD), [IN_REP] = SAYS(REP_RCVD, MRA),
        [IN_RTU] = SAME(REP_RCVD), [IN_MRA_REQ] = SAME(REP_RCVD),
        [IN_MRA_REP] = SAME(REP_RCVD), [IN_REJ] = ENDS(0),
        [IN_DREQ] = ENDS(CM_DREP), [IN_DREP] = SAME(REP_RCVD),
        [ON_TIMEOUT] = SAME(REP_RCVD), [ON_LAST_TIMEOUT] = SAME(REP_RCVD),
        [ON_DATA] = SAME(REP_RCVD),
    },
    [REQ_RCVD] = {
        [IN_REQ] = SAYS(REQ_RCVD, MRA), [IN_REP] = SAME(REQ_RCVD),
        [IN_RTU] = SAME(REQ_RCVD), [IN_MRA_REQ] = SAME(REQ_RCVD),
        [IN_MRA_REP] = SAME(REQ_RCVD), [IN_REJ] = ENDS(0),
        [IN_DREQ] = SAME(REQ_RCVD), [IN_DREP] = SAME(REQ_RCVD),
        [ON_TIMEOUT] = SAME(REQ_RCVD), [ON_LAST_TIMEOUT] = SAME(REQ_RCVD),
        [ON_DATA] = SAME(REQ_RCVD),
    },
    [REP_SENT] = {
        [IN_REQ] = SAYS(REP_SENT, REP), [IN_REP] = SAME(REP_SENT),
        [IN_RTU] = {CM_CONN_ESTABLISHED, 0, ESTABLISHED},
        [IN_MRA_REQ] = SAME(REP_SENT), [IN_MRA_REP] = SAME(REP_SENT),
        [IN_REJ] = ENDS(0), [IN_DREQ] = ENDS(CM_DREP),
        [IN_DREP] = SAME(REP_SENT), [ON_TIMEOUT] = SAYS(REP_SENT, REP),
        [ON_LAST_TIMEOUT] = ENDS(CM_REJ),
        [ON_DATA] = {CM_CONN_ESTABLISHED, 0, ESTABLISHED},
    },
    [ESTABLISHED_PASSIVE] = {
        [IN_REQ] = SAME(ESTABLISHED), [IN_REP] = SAME(ESTABLISHED),
        [IN_RTU] = SAME(ESTABLISHED), [IN_MRA_REQ] = SAME(ESTABLISHED),
        [IN_MRA_REP] = SAME(ESTABLISHED), [IN_REJ] = ENDS(0),
        [IN_DREQ] = ENDS(CM_DREP), [IN_DREP] = SAME(ESTABLISHED),
        [ON_TIMEOUT] = SAME(ESTABLISHED),
        [ON_LAST_TIMEOUT] = SAME(ESTABLISHED), [ON_DATA] = SAME(ESTABLISHED),
    },
    [ESTABLISHED_ACTIVE] = {
        [IN_REQ] = SAME(ESTABLISHED), [IN_REP] = SAYS(ESTABLISHED, RTU),
        [IN_RTU] = SAME(ESTABLISHED), [IN_MRA_REQ] = SAME(ESTABLISHED),
        [IN_MRA_REP] = SAME(ESTABLISHED), [IN_REJ] = ENDS(0),
        [IN_DREQ] = ENDS(CM_DREP), [IN_DREP] = SAME(ESTABLISHED),
        [ON_TIMEOUT] = SAME(ESTABLISHED),
        [ON_LAST_TIMEOUT] = SAME(ESTABLISHED), [ON_DATA] = SAME(ESTABLISHED),
    },
    [DREQ_SENT] = {
        [IN_REQ] = SAYS(DREQ_SENT, REJ), [IN_REP] = SAME(DREQ_SENT),
        [IN_RTU] = SAME(DREQ_SENT), [IN_MRA_REQ] = SAME(DREQ_SENT),
        [IN_MRA_REP] = SAME(DREQ_SENT), [IN_REJ] = ENDS(0),
        [IN_DREQ] = ENDS(CM_DREP), [IN_DREP] = ENDS(0),
        [ON_TIMEOUT] = SAYS(DREQ_SENT, DREQ), [ON_LAST_TIMEOUT] = ENDS(0),
        [ON_DATA] = SAME(DREQ_SENT),
    },
    [TIMEWAIT] = {
        [IN_REQ] = SAYS(TIMEWAIT, REJ), [IN_REP] = SAME(TIMEWAIT),
        [IN_RTU] = SAME(TIMEWAIT), [IN_MRA_REQ] = SAME(TIMEWAIT),
        [IN_MRA_REP] = SAME(TIMEWAIT), [IN_REJ] = SAME(TIMEWAIT),
        [IN_DREQ] = SAYS(TIMEWAIT, DREP), [IN_DREP] = SAME(TIMEWAIT),
        [ON_TIMEOUT] = SAME(TIMEWAIT), [ON_LAST_TIMEOUT] = SAME(TIMEWAIT),
        [ON_DATA] = SAME(TIMEWAIT),
    },
    /* clang-format on */
};

/* ---- The peer's messages */

static void emit_header(uint8_t *mad, enum cm_attribute attribute)
{
    const struct mad header = {
        .mgmt_class = MAD_CLASS_CM,
        .class_version = 2,
        .method = MAD_METHOD_SEND,
        .attribute_id = (uint16_t)attribute,
        .transaction_id = 0x99,
    };

    mad_emit(&header, mad);
}

static void make_message(uint8_t *mad, enum event event, uint32_t our_id,
                         uint32_t our_qpn)
{
    uint8_t *msg = mad + MAD_HEADER_LEN;

    switch (event) {
    case IN_REQ:
        memcpy(mad, linux_req, MAD_LEN);
        break;
    case IN_REP:
        emit_header(mad, CM_REP);
        cm_rep_emit(&(struct cm_rep){.local_ca_guid = 0x505400fffe123456,
                                     .local_comm_id = PEER_ID,
                                     .remote_comm_id = our_id,
                                     .local_qpn = PEER_QPN,
                                     .starting_psn = PEER_PSN,
                                     .responder_resources = 8,
                                     .initiator_depth = 2,
                                     .rnr_retry_count = 7},
                    msg);
        break;
    case IN_RTU:
        emit_header(mad, CM_RTU);
        cm_rtu_emit(&(struct cm_rtu){PEER_ID, our_id, NULL, 0}, msg);
        break;
    case IN_MRA_REQ:
    case IN_MRA_REP:
        emit_header(mad, CM_MRA);
        cm_mra_emit(&(struct cm_mra){.local_comm_id = PEER_ID,
                                     .remote_comm_id = our_id,
                                     .message = event == IN_MRA_REP,
                                     .service_timeout = 22},
                    msg);
        break;
    case IN_REJ:
        emit_header(mad, CM_REJ);
        cm_rej_emit(&(struct cm_rej){.local_comm_id = PEER_ID,
                                     .remote_comm_id = our_id,
                                     .reason = CM_REJ_STALE_CONNECTION,
                                     .message = CM_ANSWERS_REP},
                    msg);
        break;
    case IN_DREQ:
        emit_header(mad, CM_DREQ);
        cm_dreq_emit(&(struct cm_dreq){PEER_ID, our_id, our_qpn, NULL, 0}, msg);
        break;
    default:
        emit_header(mad, CM_DREP);
        cm_drep_emit(&(struct cm_drep){PEER_ID, our_id, NULL, 0}, msg);
        break;
    }
}

static void input_message(struct side *side, enum event event,
                          struct cm_conn *conn)
{
    uint8_t mad[MAD_LEN];

    make_message(mad, event, conn == NULL ? 0x1234800 : conn->local_comm_id,
                 conn == NULL ? 0x777 : conn->local_qpn);
    side_input(side, PEER, mad, MAD_LEN);
}

/* ---- Bringing a connection to each state */

static struct cm_conn *bring_to_situation(struct side *side,
                                          enum situation situation)
{
    struct cm_connect_param param = side_param(side, 2, PEER);
    struct cm_conn *conn = NULL;

    side->keep_after_end = true;
    side->confirm_later = situation == REP_RCVD;
    side->answer = situation == REQ_RCVD ? ANSWER_LATER : ANSWER_ACCEPT;
    switch (situation) {
    case REQ_SENT:
    case REP_RCVD:
    case ESTABLISHED_ACTIVE:
        conn = cm_connect(&side->cm, &param);
        assert_non_null(conn);
        if (situation != REQ_SENT) {
            input_message(side, IN_REP, conn);
        }
        break;
    case FREE:
        break;
    default:
        input_message(side, IN_REQ, NULL);
        conn = side->conn;
        if (situation > REP_SENT) {
            input_message(side, IN_RTU, conn);
        }
        if (situation > ESTABLISHED_ACTIVE) {
            cm_disconnect(conn);
        }
        if (situation == TIMEWAIT) {
            input_message(side, IN_DREP, conn);
        }
        break;
    }
    while (fake_take(&side->verbs) != NULL) {
    }
    side->requests = side->replies = side->establishments = side->ends = 0;
    side->answer = ANSWER_LATER;
    side->confirm_later = true;
    return conn;
}

static void make_event_happen(struct side *side, enum event event,
                              struct cm_conn *conn)
{
    uint64_t now = side->cm.now_us;

    switch (event) {
    case ON_TIMEOUT:
        if (conn != NULL && conn->state == CM_CONN_TIMEWAIT) {
            now += 1000; /* its TIMEWAIT is shorter */
        } else {
            now += TIMEOUT_US;
        }
        cm_poll(&side->cm, now);
        break;
    case ON_LAST_TIMEOUT:
        for (unsigned int i = 0; i < 17; i++) {
            while (fake_take(&side->verbs) != NULL) {
            }
            cm_poll(&side->cm, now += TIMEOUT_US);
            if (side->ends != 0) {
                break;
            }
        }
        break;
    case ON_DATA:
        if (conn != NULL) {
            cm_data_received(conn);
        }
        break;
    default:
        input_message(side, event, conn);
        break;
    }
}

static void test_every_state_times_every_event(void **state)
{
    (void)state;
    for (unsigned int s = 0; s < SITUATIONS; s++) {
        for (unsigned int e = 0; e < EVENTS; e++) {
            const struct outcome *expected = &outcomes[s][e];
            struct side *side = side_new(2, 7);
            struct cm_conn *conn = bring_to_situation(side, s);
            const struct fake_mad *sent;
            uint8_t attribute;

            make_event_happen(side, e, conn);
            if (conn == NULL && expected->state != CM_CONN_FREE) {
                conn = side->conn;
            }
            sent = fake_take(&side->verbs);
            attribute = sent == NULL ? 0 : sent->bytes[MAD_ATTRIBUTE_ID + 1];
            if ((conn == NULL ? CM_CONN_FREE : conn->state) !=
                    expected->state ||
                attribute != expected->sent ||
                side->requests != (expected->told == REQUEST) ||
                side->replies != (expected->told == REPLIED) ||
                side->establishments != (expected->told == ESTABLISHED) ||
                side->ends != (expected->told == DISCONNECTED)) {
                fail_msg("%s, event %u: state %u, sent %02x", situation_name[s],
                         e, conn ? conn->state : 0, attribute);
            }
            assert_null(fake_take(&side->verbs));
            side_free(side);
        }
    }
}

static void test_release_frees_everything_in_every_state(void **state)
{
    static const uint8_t said[SITUATIONS] = {
        [REQ_SENT] = CM_REJ,
        [REP_RCVD] = CM_REJ,
        [REQ_RCVD] = CM_REJ,
        [REP_SENT] = CM_DREQ,
        [ESTABLISHED_PASSIVE] = CM_DREQ,
        [ESTABLISHED_ACTIVE] = CM_DREQ,
    };

    (void)state;
    for (unsigned int s = FREE + 1; s < SITUATIONS; s++) {
        struct side *side = side_new(2, 7);
        struct cm_conn *conn = bring_to_situation(side, s);
        const struct fake_mad *sent;

        cm_release(conn);
        sent = fake_take(&side->verbs);
        assert_int_equal(sent == NULL ? 0 : sent->bytes[17], said[s]);
        for (unsigned int i = 1; i < 30; i++) {
            cm_poll(&side->cm, side->cm.now_us + TIMEOUT_US);
            fake_complete(&side->verbs);
        }
        assert_int_equal(side->ends, 0);
        assert_int_equal(conn->state, CM_CONN_FREE);
        assert_int_equal(side_pins(side), 0);
        assert_int_equal(cm_poll(&side->cm, side->cm.now_us), CM_NO_DEADLINE);
        side_free(side);
    }
}

static void test_the_rtu_has_the_transaction_id_of_the_rep(void **state)
{
    struct side *side = side_new(2, 7);
    struct cm_conn *conn = bring_to_situation(side, REQ_SENT);
    const uint8_t *mad;

    (void)state;
    side->confirm_later = false;
    input_message(side, IN_REP, conn);
    mad = side_sent(side, CM_RTU);
    assert_int_equal(get_be64(mad + MAD_TRANSACTION_ID), 0x99);
    assert_int_equal(get_be32(mad + MAD_HEADER_LEN), conn->local_comm_id);
    assert_int_equal(get_be32(mad + MAD_HEADER_LEN + 4), PEER_ID);
    side_free(side);
}

static void test_a_released_connection_still_answers_a_dreq(void **state)
{
    struct side *side = side_new(2, 7);
    struct cm_conn *conn = bring_to_situation(side, ESTABLISHED_PASSIVE);
    uint8_t dreq[MAD_LEN];

    (void)state;
    make_message(dreq, IN_DREQ, conn->local_comm_id, conn->local_qpn);
    cm_release(conn);
    side_sent(side, CM_DREQ);
    side_input(side, PEER, dreq, MAD_LEN); /* crosses our DREQ */
    side_sent(side, CM_DREP);
    /* The DREQ is repeated, as if our DREP was lost. */
    side_input(side, PEER, dreq, MAD_LEN);
    side_sent(side, CM_DREP);
    assert_int_equal(side->ends, 0);
    assert_int_equal(conn->state, CM_CONN_TIMEWAIT);
    cm_poll(&side->cm, side->cm.now_us + 2000000);
    assert_int_equal(conn->state, CM_CONN_FREE);
    side_free(side);
}
