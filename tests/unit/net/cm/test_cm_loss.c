/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connection managers, and a wire that loses, duplicates or delays message
 * k, or breaks before it, for every k.
 */
#include "tests/unit/net/cm/cm_test.h"

#include "lib/bytes.h"

enum { A = 1, B = 2 };
enum harm { LOSE, DOUBLE, DELAY, CORRUPT, HARMS };
enum script { HOST_LEAVES, DRIVE_LEAVES, BOTH_LEAVE, SCRIPTS };

struct wire {
    struct side *side[3]; /* by the number of the side */
    uint64_t now_us;
    unsigned int count; /* messages so far */
    unsigned int k;     /* number of the harmed message; 0 for none */
    enum harm harm;
    bool lose_all;
    uint8_t late[MAD_LEN]; /* delayed message, for the side of number... */
    uint8_t late_for;
};

static void wire_start(struct wire *wire, unsigned int k, enum harm harm)
{
    *wire = (struct wire){
        .side = {NULL, side_new(A, 3), side_new(B, 4)},
        .now_us = 1000000,
        .k = k,
        .harm = harm,
    };
}

static void wire_stop(struct wire *wire)
{
    side_free(wire->side[A]);
    side_free(wire->side[B]);
}

static void deliver_mad(struct wire *wire, uint8_t to, const uint8_t *mad)
{
    side_input(wire->side[to], A + B - to, mad, MAD_LEN);
}

/* Carry one message of `from`.  @return false when there is none */
static bool carry_mad(struct wire *wire, uint8_t from)
{
    const struct fake_mad *sent = fake_take(&wire->side[from]->verbs);
    uint8_t to = A + B - from;
    uint8_t mad[MAD_LEN];

    if (sent == NULL) {
        return false;
    }
    assert_int_equal(sent->neigh, to);
    memcpy(mad, sent->bytes, MAD_LEN);
    if (wire->lose_all) {
        return true;
    }
    if (++wire->count != wire->k) {
        deliver_mad(wire, to, mad);
    } else if (wire->harm == DOUBLE) {
        deliver_mad(wire, to, mad);
        deliver_mad(wire, to, mad);
    } else if (wire->harm == DELAY) {
        memcpy(wire->late, mad, MAD_LEN);
        wire->late_for = to;
        return true;
    } else if (wire->harm == CORRUPT) {
        mad[0] ^= 0xff;
        deliver_mad(wire, to, mad);
    }
    if (wire->late_for != 0) {
        uint8_t late_for = wire->late_for;

        wire->late_for = 0;
        deliver_mad(wire, late_for, wire->late);
    }
    return true;
}

/* Carry all messages and then advance the time to the next deadline, `turns`
 * times. */
static void run_wire(struct wire *wire, unsigned int turns)
{
    for (;;) {
        uint64_t next[3];

        while (carry_mad(wire, A) || carry_mad(wire, B)) {
        }
        for (uint8_t n = A; n <= B; n++) {
            next[n] = cm_poll(&wire->side[n]->cm, wire->now_us);
        }
        if (turns == 0) {
            return;
        }
        if (wire->side[A]->verbs.sent_get == wire->side[A]->verbs.sent_put &&
            wire->side[B]->verbs.sent_get == wire->side[B]->verbs.sent_put) {
            uint64_t deadline = MIN(next[A], next[B]);

            if (deadline == CM_NO_DEADLINE) {
                return;
            }
            assert_true(deadline > wire->now_us);
            wire->now_us = deadline;
            turns--;
        }
    }
}

static bool all_free(const struct side *side)
{
    for (unsigned int i = 0; i < CM_CONNS; i++) {
        if (side->cm.conns[i].state != CM_CONN_FREE) {
            return false;
        }
    }
    return side->cm.heap_len == 0 && side_pins(side) == 0;
}

static void play_script(struct wire *wire, enum script script)
{
    struct side *host = wire->side[A];
    struct side *drive = wire->side[B];
    struct cm_connect_param param = side_param(host, A, B);
    struct cm_conn *conn = cm_connect(&host->cm, &param);

    assert_non_null(conn);
    run_wire(wire, 6); /* long enough for one retransmission of each side */
    assert_int_equal(host->replies, 1);
    assert_int_equal(conn->state, CM_CONN_ESTABLISHED);
    assert_int_equal(drive->requests, 1);
    assert_memory_equal(host->private_data, "REP data", 8);
    assert_memory_equal(drive->private_data, "REQ data", 8);
    assert_int_equal(drive->establishments, 1);
    assert_int_equal(host->conn->remote_qpn, drive->conn->local_qpn);
    assert_int_equal(drive->conn->remote_qpn, host->conn->local_qpn);
    assert_int_equal(host->conn->remote_psn, drive->conn->local_psn);
    assert_int_equal(drive->conn->remote_psn, host->conn->local_psn);

    if (script != DRIVE_LEAVES) {
        cm_disconnect(host->conn);
    }
    if (script != HOST_LEAVES) {
        cm_disconnect(drive->conn);
    }
    run_wire(wire, 100);
    assert_int_equal(host->ends, 1);
    assert_int_equal(drive->ends, 1);
    assert_true(all_free(host));
    assert_true(all_free(drive));
}

static void test_connections_survive_the_harm_of_any_one_message(void **state)
{
    (void)state;
    for (enum script script = 0; script < SCRIPTS; script++) {
        for (enum harm harm = 0; harm < HARMS; harm++) {
            unsigned int k = 0;
            bool reached;

            do {
                struct wire wire;

                wire_start(&wire, ++k, harm);
                play_script(&wire, script);
                reached = wire.count >= k;
                assert_true(k < 20);
                wire_stop(&wire);
            } while (reached);
            /* The messages are REQ, REP, RTU, DREQ and DREP; then none is
             * harmed. */
            assert_true(k >= 5);
        }
    }
}

static void test_a_peer_that_vanishes_is_detected_in_every_phase(void **state)
{
    (void)state;
    /* The wire breaks permanently before message k. */
    for (unsigned int k = 1; k <= 6; k++) {
        struct wire wire;
        struct cm_connect_param param;
        struct cm_conn *conn;

        wire_start(&wire, 0, LOSE);
        param = side_param(wire.side[A], A, B);
        conn = cm_connect(&wire.side[A]->cm, &param);
        assert_non_null(conn);
        for (unsigned int i = 1; i < k; i++) {
            bool carried = carry_mad(&wire, A) || carry_mad(&wire, B);

            assert_int_equal(carried, i <= 3);
        }
        wire.lose_all = true;
        if (conn->state == CM_CONN_ESTABLISHED) {
            cm_disconnect(conn);
        }
        run_wire(&wire, 200);
        assert_int_equal(wire.side[A]->ends, 1);
        if (k > 3) {
            /* This is what a keep-alive time-out does. */
            cm_disconnect(wire.side[B]->conn);
            run_wire(&wire, 200);
        }
        assert_int_equal(wire.side[B]->ends, wire.side[B]->requests);
        assert_true(all_free(wire.side[A]));
        assert_true(all_free(wire.side[B]));
        wire_stop(&wire);
    }
}

static void test_a_rej_with_timeout_is_sent_when_we_give_up(void **state)
{
    struct wire wire;
    struct cm_connect_param param;

    (void)state;
    wire_start(&wire, 0, LOSE);
    wire.side[B]->answer = ANSWER_LATER;
    param = side_param(wire.side[A], A, B);
    assert_non_null(cm_connect(&wire.side[A]->cm, &param));
    /* The drive's user never decides; the drive sends MRAs. */
    run_wire(&wire, 40);
    assert_int_equal(wire.side[A]->ends, 0);
    assert_true(wire.side[B]->cm.counters.sent[CM_MRA - CM_REQ] > 1);
    cm_release(wire.side[A]->conn != NULL ? wire.side[A]->conn
                                          : &wire.side[A]->cm.conns[0]);
    run_wire(&wire, 40);
    assert_int_equal(wire.side[B]->ends, 1);
    assert_int_equal(wire.side[B]->end.rej_reason, CM_REJ_TIMEOUT);
    assert_true(all_free(wire.side[A]));
    assert_true(all_free(wire.side[B]));
    wire_stop(&wire);
}

static void test_a_refused_host_gets_the_reason(void **state)
{
    struct wire wire;
    struct cm_connect_param param;

    (void)state;
    wire_start(&wire, 0, LOSE);
    wire.side[B]->answer = ANSWER_REJECT;
    param = side_param(wire.side[A], A, B);
    assert_non_null(cm_connect(&wire.side[A]->cm, &param));
    run_wire(&wire, 5);
    assert_int_equal(wire.side[A]->ends, 1);
    assert_int_equal(wire.side[A]->end.reason, CM_END_REJ);
    assert_int_equal(wire.side[A]->end.rej_reason, CM_REJ_CONSUMER);
    assert_memory_equal(wire.side[A]->private_data, "\0\0\6\0", 4);
    assert_true(all_free(wire.side[A]));
    assert_true(all_free(wire.side[B]));
    wire_stop(&wire);
}

static void test_a_host_reconnects_at_once_to_a_drive_that_was_reset(
    void **state)
{
    struct wire wire;
    struct cm_connect_param param;

    (void)state;
    wire_start(&wire, 0, LOSE);
    for (unsigned int i = 0; i < 2; i++) {
        param = side_param(wire.side[A], A, B);
        assert_non_null(cm_connect(&wire.side[A]->cm, &param));
        run_wire(&wire, 0);
    }
    assert_int_equal(wire.side[B]->establishments, 2);
    /* The drive is reset: same identity, next boot.  The host does not
     * notice. */
    side_free(wire.side[B]);
    wire.side[B] = side_new(B, 5);
    param = side_param(wire.side[A], A, B);
    assert_non_null(cm_connect(&wire.side[A]->cm, &param));
    run_wire(&wire, 0);
    assert_int_equal(wire.side[A]->replies, 3);
    assert_int_equal(wire.side[A]->ends, 0);
    assert_int_equal(wire.side[B]->establishments, 1);
    /* Its old connections end with DREPs, although the drive does not know
     * them. */
    for (unsigned int i = 0; i < 2; i++) {
        cm_disconnect(&wire.side[A]->cm.conns[i]);
    }
    run_wire(&wire, 0);
    assert_int_equal(wire.side[A]->ends, 2);
    assert_int_equal(wire.side[A]->end.reason, CM_END_DREP);
    wire_stop(&wire);
}

static void test_a_drive_that_reuses_its_numbers_is_stale(void **state)
{
    struct wire wire;
    struct cm_connect_param param;

    (void)state;
    wire_start(&wire, 0, LOSE);
    param = side_param(wire.side[A], A, B);
    assert_non_null(cm_connect(&wire.side[A]->cm, &param));
    run_wire(&wire, 0);
    side_free(wire.side[B]);
    wire.side[B] = side_new(B, 4); /* the same boot counter again */
    param = side_param(wire.side[A], A, B);
    assert_non_null(cm_connect(&wire.side[A]->cm, &param));
    run_wire(&wire, 0);
    assert_int_equal(wire.side[A]->ends, 1);
    assert_int_equal(wire.side[A]->end.reason, CM_END_STALE);
    assert_int_equal(wire.side[B]->ends, 1);
    assert_int_equal(wire.side[B]->end.rej_reason, CM_REJ_STALE_CONNECTION);
    wire_stop(&wire);
}

static void test_two_hundred_connections_leak_nothing(void **state)
{
    struct wire wire;

    (void)state;
    wire_start(&wire, 0, LOSE);
    for (unsigned int i = 0; i < 200; i++) {
        struct cm_connect_param param = side_param(wire.side[A], A, B);
        struct cm_conn *conn = cm_connect(&wire.side[A]->cm, &param);

        assert_non_null(conn);
        run_wire(&wire, 0);
        assert_int_equal(wire.side[B]->establishments, i + 1);
        cm_disconnect(i & 1 ? conn : wire.side[B]->conn);
        run_wire(&wire, 0);
        assert_int_equal(wire.side[A]->ends, i + 1);
        assert_int_equal(wire.side[B]->ends, i + 1);
    }
    run_wire(&wire, 1000);
    assert_true(all_free(wire.side[A]));
    assert_true(all_free(wire.side[B]));
    wire_stop(&wire);
}
