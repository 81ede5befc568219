/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SENDs to the drive: data, lengths, acknowledgements, packet sequence numbers,
 * receiver not ready.
 *
 * Spec: IBTA Vol 1 9.7.
 */
#include <string.h>

#include "roce_lib.h"

static void send_message(struct echo_rc *echo, const uint8_t *data, size_t len)
{
    rc_send_message(echo->rc, data, len);
    rc_expect_ack(echo->rc, echo->rc->psn - 1);
}

static void expect_send_placed(struct conf *conf, size_t len, uint8_t mtu)
{
    struct rc_config config = {.path_mtu = mtu};
    struct echo_rc *echo = roce_echo(conf, &config, 0, 0);
    uint8_t *data = conf_alloc(conf, ROCE_DATA_MAX);

    roce_pattern(data, len, 3);
    send_message(echo, data, len);
    roce_expect_placed(echo, 0, data, len);
    rc_close(echo->rc);
}

static void send_only(struct conf *conf)
{
    expect_send_placed(conf, 100, 0);
}

static void first_last(struct conf *conf)
{
    expect_send_placed(conf, 1024 + 20, IB_MTU_1024);
}

static void first_middle_last(struct conf *conf)
{
    expect_send_placed(conf, 3 * 256 + 4, IB_MTU_256);
}

static void whole_mtu(struct conf *conf)
{
    expect_send_placed(conf, 1024, IB_MTU_1024);
}

static void whole_mtus(struct conf *conf)
{
    expect_send_placed(conf, 3 * 512, IB_MTU_512);
}

static void send_longest(struct conf *conf)
{
    expect_send_placed(conf, 16384, 0);
}

static void send_pads(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    uint8_t data[8];

    for (unsigned int len = 1; len <= 7; len++) {
        roce_pattern(data, sizeof(data), (uint8_t)len);
        send_message(echo, data, len);
        roce_expect_placed(echo, len - 1, data, len);
    }
    rc_close(echo->rc);
}

static void send_empty(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);

    send_message(echo, NULL, 0);
    send_message(echo, (const uint8_t *)"second", 6);
    roce_expect_placed(echo, 1, "second", 6);
    rc_close(echo->rc);
}

static void too_long(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;
    uint32_t psn = rc->psn;

    uint8_t *data = conf_alloc(conf, ROCE_DATA_MAX);

    rc_send_message(rc, data, (size_t)echo->rep.buffer_size_bytes + 1);
    rc_expect_nak(rc, AETH_NAK_INVALID_REQUEST,
                  psn + echo->rep.buffer_size_bytes / rc->mtu_bytes);
    roce_expect_dead(echo);
}

/* ---- Acknowledgements. */

static void ack_covers(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;

    for (unsigned int i = 0; i < 3; i++) {
        rc_send(rc, RC_SEND_ONLY, NULL, 16 + i * 4 + 4, false);
    }
    rc_send(rc, RC_SEND_ONLY, NULL, 64, true);
    for (;;) {
        const struct packet *packet = rc_take_opcode(rc, RC_ACKNOWLEDGE);

        conf_equal(conf, "AETH kind", packet->aeth.kind, AETH_ACK);
        if (packet->bth.psn == ((rc->psn - 1) & ROCE_PSN_MASK)) {
            conf_equal(conf, "MSN", packet->aeth.msn, 4);
            break;
        }
    }
    rc_close(rc);
}

static void ack_forwards(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;
    uint32_t last = rc->psn - 1;

    for (unsigned int i = 0; i < 8; i++) {
        rc_send(rc, RC_SEND_ONLY, NULL, 64, true);
    }
    while (last != rc->psn - 1) {
        const struct packet *packet = rc_take_opcode(rc, RC_ACKNOWLEDGE);
        uint32_t step = (packet->bth.psn - last) & ROCE_PSN_MASK;

        conf_check(conf, step != 0 && step <= 8,
                   "the PSNs of ACKs go backwards: %u after %u",
                   packet->bth.psn, last);
        last += step;
    }
    rc_close(rc);
}

static void msn_by_message(struct conf *conf)
{
    struct rc_config config = {.path_mtu = IB_MTU_256};
    struct echo_rc *echo = roce_echo(conf, &config, 0, 0);
    struct rc *rc = echo->rc;
    uint8_t data[600] = {0};

    for (unsigned int i = 1; i <= 3; i++) {
        rc_send_message(rc, data, sizeof(data));
        conf_equal(conf, "MSN", rc_take_opcode(rc, RC_ACKNOWLEDGE)->aeth.msn,
                   i);
    }
    rc_close(rc);
}

/* ---- Packet sequence numbers. */

static void send_at(struct rc *rc, uint32_t psn, const void *data, size_t len)
{
    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = RC_SEND_ONLY,
                                   .psn = psn & ROCE_PSN_MASK,
                                   .ack_requested = true},
                           .data = data,
                           .data_len = len,
                       });
}

static void psn_gap(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;

    send_at(rc, rc->psn + 1, "later", 5);
    rc_expect_nak(rc, AETH_NAK_PSN_SEQUENCE, rc->psn);
    send_message(echo, (const uint8_t *)"first", 5);
    send_message(echo, (const uint8_t *)"later", 5);
    roce_expect_placed(echo, 0, "first", 5);
    roce_expect_placed(echo, 1, "later", 5);
    rc_close(rc);
}

static void psn_one_nak(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;

    for (uint32_t i = 1; i <= 5; i++) {
        send_at(rc, rc->psn + i, NULL, 64);
    }
    rc_expect_nak(rc, AETH_NAK_PSN_SEQUENCE, rc->psn);
    rc_expect_silence(rc, ROCE_QUIET_US);
    roce_expect_works(echo);
    rc_close(rc);
}

static void psn_gap_again(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;

    for (unsigned int i = 0; i < 3; i++) {
        send_at(rc, rc->psn + 2, NULL, 64);
        rc_expect_nak(rc, AETH_NAK_PSN_SEQUENCE, rc->psn);
        send_message(echo, (const uint8_t *)"in turn", 7);
    }
    rc_close(rc);
}

static void psn_duplicate(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;

    send_message(echo, (const uint8_t *)"one", 3);
    send_at(rc, rc->psn - 1, "two", 3);
    rc_expect_ack(rc, rc->psn - 1);
    send_message(echo, (const uint8_t *)"three", 5);
    roce_expect_placed(echo, 0, "one", 3);
    roce_expect_placed(echo, 1, "three", 5);
    rc_close(rc);
}

static void psn_duplicate_old(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;

    for (unsigned int i = 0; i < 4; i++) {
        send_message(echo, (const uint8_t *)"message", 7);
    }
    send_at(rc, rc->psn - 4, "message", 7);
    /* The ACK has the most recent PSN, not the duplicate's. */
    rc_expect_ack(rc, rc->psn - 1);
    rc_close(rc);
}

/* A PSN 2^23 - 1 behind is a duplicate; one 2^23 ahead is not the next. */
static void psn_window(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;

    send_message(echo, (const uint8_t *)"one", 3);
    send_at(rc, rc->psn - 0x7fffff, "old", 3);
    rc_expect_ack(rc, rc->psn - 1);
    send_at(rc, rc->psn + 0x7fffff, "new", 3);
    rc_expect_nak(rc, AETH_NAK_PSN_SEQUENCE, rc->psn);
    send_message(echo, (const uint8_t *)"two", 3);
    roce_expect_placed(echo, 1, "two", 3);
    rc_close(rc);
}

static void psn_duplicate_last(struct conf *conf)
{
    struct rc_config config = {.path_mtu = IB_MTU_256};
    struct echo_rc *echo = roce_echo(conf, &config, 0, 0);
    struct rc *rc = echo->rc;
    uint8_t data[300];

    roce_pattern(data, sizeof(data), 1);
    send_message(echo, data, sizeof(data));
    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = RC_SEND_LAST,
                                   .psn = (rc->psn - 1) & ROCE_PSN_MASK,
                                   .ack_requested = true},
                           .fill = 0xee,
                           .data_len = sizeof(data) - 256,
                       });
    rc_expect_ack(rc, rc->psn - 1);
    roce_expect_placed(echo, 0, data, sizeof(data));
    rc_close(rc);
}

/* ---- Receiver not ready. */

static void send_rnr(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 1, 300);
    struct rc *rc = echo->rc;

    conf_provokes(conf, BIT(RNIC_COUNT_TX_RNR));
    send_message(echo, (const uint8_t *)"the only buffer", 15);
    send_at(rc, rc->psn, "none left", 9);
    rc_expect_rnr(rc, rc->psn);
    conf_pass(conf, 400000);
    send_at(rc, rc->psn, "a buffer again", 14);
    rc_expect_ack(rc, rc->psn++);
    roce_expect_placed(echo, 1, "a buffer again", 14);
    rc_close(rc);
}

static void rnr_blocks(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 1, 300);
    struct rc *rc = echo->rc;

    conf_provokes(conf, BIT(RNIC_COUNT_TX_RNR));
    send_message(echo, (const uint8_t *)"the only buffer", 15);
    send_at(rc, rc->psn, "none left", 9);
    rc_expect_rnr(rc, rc->psn);
    send_at(rc, rc->psn + 1, "behind it", 9);
    rc_expect_silence(rc, ROCE_QUIET_US);
    rc_close(rc);
}

static void rnr_not_write(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 1, 300);
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr, echo->rep.rkey, 8};

    send_message(echo, (const uint8_t *)"the only buffer", 15);
    roce_write_packet(rc, RC_WRITE_ONLY, &reth, "no queue", 8);
    rc_expect_ack(rc, rc->psn - 1);
    rc_close(rc);
}

static void rnr_timer(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 1, 300);
    struct rc *rc = echo->rc;
    const struct packet *packet;

    conf_provokes(conf, BIT(RNIC_COUNT_TX_RNR));
    send_message(echo, (const uint8_t *)"the only buffer", 15);
    send_at(rc, rc->psn, "none left", 9);
    packet = rc_take_opcode(rc, RC_ACKNOWLEDGE);
    conf_equal(conf, "AETH kind", packet->aeth.kind, AETH_RNR_NAK);
    conf_equal(conf, "MSN, which does not count the refused message",
               packet->aeth.msn, 1);
    rc_close(rc);
}

/* ---- Invalidate. */

static void send_invalidate(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr, echo->rep.write_rkey, 4};

    roce_write_packet(rc, RC_WRITE_ONLY, &reth, "good", 4);
    rc_expect_ack(rc, rc->psn - 1);
    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = RC_SEND_ONLY_INVALIDATE,
                                   .psn = rc->psn,
                                   .ack_requested = true},
                           .ieth_rkey = echo->rep.write_rkey,
                           .data_len = 32,
                       });
    rc_expect_ack(rc, rc->psn++);
    roce_write_packet(rc, RC_WRITE_ONLY, &reth, "gone", 4);
    rc_expect_nak(rc, AETH_NAK_REMOTE_ACCESS, rc->psn - 1);
}

/* The specification leaves open what happens to the queue pair, but not to the
 * keys of others. */
static void invalidate_unknown(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct echo_rc *other =
        roce_echo(conf, &(struct rc_config){.peer = 1}, 0, 0);
    struct rc *rc = echo->rc;

    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = RC_SEND_ONLY_INVALIDATE,
                                   .psn = rc->psn,
                                   .ack_requested = true},
                           .ieth_rkey = other->rep.rkey ^ 0x80,
                           .data_len = 32,
                       });
    rc_take(rc, "an ACK or a NAK");
    roce_expect_works(other);
    rc_close(other->rc);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, "IBTA Vol 1 " clause, purpose, __VA_ARGS__,                  \
              .needs = CONF_NEEDS_ECHO)

static const struct conf_test tests[] = {
    TEST("send.only", "9.4.1.1", "a SEND Only is delivered and acknowledged",
         send_only),
    TEST("send.first-last", "9.4.1.1", "two packets make one message",
         first_last),
    TEST("send.first-middle-last", "9.4.1.1", "four packets make one message",
         first_middle_last),
    TEST("send.mtu", "9.4.1.1",
         "a SEND Only of exactly the path MTU is delivered", whole_mtu),
    TEST("send.mtus", "9.4.1.1", "a Last of exactly the path MTU is delivered",
         whole_mtus),
    TEST("send.longest", "9.7.4.1.6",
         "a message that fills its buffer is delivered", send_longest),
    TEST("send.pads", "9.2.4",
         "messages of 1 to 7 bytes, with each pad, are delivered", send_pads),
    TEST("send.empty", "9.4.1.1", "a message of no bytes uses a buffer",
         send_empty),
    TEST("send.too-long", "9.7.4.1.6, 9.9.3.2",
         "a message one byte longer than the buffer gets NAK invalid request",
         too_long),
    TEST("ack.covers", "9.7.5.1.2", "an ACK covers all earlier packets",
         ack_covers),
    TEST("ack.forwards", "9.7.5.1.1", "the PSNs of ACKs never go backwards",
         ack_forwards),
    TEST("ack.msn", "9.7.7.1", "MSN counts messages, not packets",
         msn_by_message),
    TEST("responder.psn-gap", "9.7.5.2.3",
         "a gap gets a NAK with the expected PSN, and can be filled", psn_gap),
    TEST("responder.psn-one-nak", "9.7.5.2.3",
         "a gap gets one NAK, however many packets follow", psn_one_nak),
    TEST("responder.psn-gap-again", "9.7.5.2.3",
         "each new gap gets its own NAK", psn_gap_again),
    TEST("responder.duplicate-send", "9.7.5.1.4",
         "a duplicate is acknowledged, but not executed again", psn_duplicate),
    TEST("responder.duplicate-old", "9.7.5.1.4",
         "the ACK for a duplicate has the most recent PSN", psn_duplicate_old),
    TEST("responder.duplicate-last", "9.7.5.1.4",
         "a duplicate Last with other data has no effect", psn_duplicate_last),
    TEST("responder.psn-window", "9.7.4.1.1",
         "a PSN 2^23 - 1 behind is a duplicate, and one as far ahead is a gap",
         psn_window),
    TEST("rnr.nak", "9.7.5.2.8",
         "a SEND without a buffer gets an RNR NAK, and is delivered later",
         send_rnr),
    TEST("rnr.blocks", "9.7.5.2.8",
         "packets that follow one with an RNR NAK are dropped", rnr_blocks),
    TEST("rnr.write", "9.7.5.2.8", "a WRITE needs no receive buffer",
         rnr_not_write),
    TEST("rnr.msn", "9.7.7.1",
         "the MSN does not count a message that got an RNR NAK", rnr_timer),
    TEST("invalidate.key", "9.4.1.1.3", "an invalidated key gives no access",
         send_invalidate),
    TEST("invalidate.unknown", "9.4.1.1.3",
         "a key with a stale variant invalidates nothing", invalidate_unknown),
};
CONF_TESTS(conf_tests_roce_send, "roce", tests);
