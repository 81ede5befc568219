/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every request opcode in every place of a message.
 *
 * A connection is brought to one of three places: between messages, in a SEND,
 * in a WRITE. Then the test sends one packet, which is correct except perhaps
 * for its opcode.
 *
 * Spec: IBTA Vol 1 9.7.4.1.2 (opcode sequence), 9.9.3.2 (class B: NAK invalid
 * request).
 */
#include "roce_lib.h"

enum place { BETWEEN, IN_SEND, IN_WRITE };

static void go_to(struct echo_rc *echo, enum place place)
{
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr, echo->rep.rkey, 2 * rc->mtu_bytes};

    if (place == IN_SEND) {
        rc_send(rc, RC_SEND_FIRST, NULL, rc->mtu_bytes, true);
    } else if (place == IN_WRITE) {
        roce_write_packet(rc, RC_WRITE_FIRST, &reth, NULL, rc->mtu_bytes);
    } else {
        return;
    }
    rc_expect_ack(rc, rc->psn - 1);
}

/* The length that a packet with this opcode needs at that place. */
static uint32_t right_length(const struct rc *rc, uint8_t opcode,
                             enum place place)
{
    if (opcode == RC_READ_REQUEST) {
        return 0;
    }
    if (roce_opcode_is(opcode, ROCE_FIRST | ROCE_MIDDLE)) {
        return rc->mtu_bytes;
    }
    return place == IN_WRITE ? rc->mtu_bytes : 64;
}

static bool opcode_fits(uint8_t opcode, enum place place)
{
    bool starts = roce_opcode_is(opcode, ROCE_FIRST | ROCE_ONLY) ||
                  opcode == RC_READ_REQUEST;

    switch (place) {
    case BETWEEN:
        return starts;
    case IN_SEND:
        return !starts && roce_opcode_is(opcode, ROCE_SEND);
    case IN_WRITE:
        return !starts && roce_opcode_is(opcode, ROCE_WRITE) &&
               !roce_opcode_is(opcode, ROCE_MIDDLE);
    }
    return false;
}

static void send_it(struct echo_rc *echo, uint8_t opcode, enum place place)
{
    struct rc *rc = echo->rc;
    uint32_t len = right_length(rc, opcode, place);
    uint32_t dma_len = opcode == RC_READ_REQUEST            ? 64
                       : roce_opcode_is(opcode, ROCE_FIRST) ? 2 * rc->mtu_bytes
                                                            : len;

    rc_send_packet(
        rc,
        &(struct packet_roce){
            .bth = {.opcode = opcode, .psn = rc->psn, .ack_requested = true},
            .reth = {echo->rep.addr, echo->rep.rkey, dma_len},
            .ieth_rkey = echo->rep.write_rkey,
            .data_len = len,
        });
    rc->psn = (rc->psn + 1) & ROCE_PSN_MASK;
}

static void check_order(struct conf *conf, enum place place, uint8_t opcode)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;
    bool is_right = opcode_fits(opcode, place);

    go_to(echo, place);
    send_it(echo, opcode, place);
    if (!is_right) {
        rc_expect_nak(rc, AETH_NAK_INVALID_REQUEST, rc->psn - 1);
        roce_expect_dead(echo);
        return;
    }
    if (opcode == RC_READ_REQUEST) {
        conf_equal(conf, "opcode of the answer",
                   rc_take(rc, "a READ response")->bth.opcode,
                   RC_READ_RESPONSE_ONLY);
    } else {
        rc_expect_ack(rc, rc->psn - 1);
    }
    if (roce_opcode_is(opcode, ROCE_LAST | ROCE_ONLY)) {
        roce_expect_works(echo);
        rc_close(rc);
    }
}

/*
 * All packets request an ACK: the target may send one for each, or one for all.
 */
static void expect_acked(struct rc *rc, uint32_t psn)
{
    const struct packet *packet;

    do {
        packet = rc_take_opcode(rc, RC_ACKNOWLEDGE);
        conf_equal(rc->conf, "AETH kind", packet->aeth.kind, AETH_ACK);
    } while (packet->bth.psn != (psn & ROCE_PSN_MASK));
}

/* A WRITE with a MIDDLE has three packets. */
static void write_middle_in_write(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(conf, &(struct rc_config){0}, 0, 0);
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr, echo->rep.rkey, 3 * rc->mtu_bytes};

    roce_write_packet(rc, RC_WRITE_FIRST, &reth, NULL, rc->mtu_bytes);
    roce_write_packet(rc, RC_WRITE_MIDDLE, NULL, NULL, rc->mtu_bytes);
    roce_write_packet(rc, RC_WRITE_LAST, NULL, NULL, rc->mtu_bytes);
    expect_acked(rc, rc->psn - 1);
    rc_close(rc);
}

#define ORDER_OPCODES(X, place)                                                \
    X(place, SEND_FIRST, "send-first")                                         \
    X(place, SEND_MIDDLE, "send-middle")                                       \
    X(place, SEND_LAST, "send-last")                                           \
    X(place, SEND_LAST_INVALIDATE, "send-last-invalidate")                     \
    X(place, SEND_ONLY, "send-only")                                           \
    X(place, SEND_ONLY_INVALIDATE, "send-only-invalidate")                     \
    X(place, WRITE_FIRST, "write-first")                                       \
    X(place, WRITE_LAST, "write-last")                                         \
    X(place, WRITE_ONLY, "write-only")                                         \
    X(place, READ_REQUEST, "read-request")

#define FUNCTION(place, opcode, name)                                          \
    static void order_##place##_##opcode(struct conf *conf)                    \
    {                                                                          \
        check_order(conf, place, RC_##opcode);                                 \
    }
ORDER_OPCODES(FUNCTION, BETWEEN)
ORDER_OPCODES(FUNCTION, IN_SEND)
ORDER_OPCODES(FUNCTION, IN_WRITE)

static void order_BETWEEN_WRITE_MIDDLE(struct conf *conf)
{
    check_order(conf, BETWEEN, RC_WRITE_MIDDLE);
}

static void order_IN_SEND_WRITE_MIDDLE(struct conf *conf)
{
    check_order(conf, IN_SEND, RC_WRITE_MIDDLE);
}

#define CLAUSE "IBTA Vol 1 9.7.4.1.2, 9.9.3.2"
#define ROW_BETWEEN(place, opcode, name)                                       \
    CONF_TEST("order.between." name, CLAUSE,                                   \
              name                                                             \
              " between messages is executed if it begins one, else NAKed",    \
              order_##place##_##opcode, .needs = CONF_NEEDS_ECHO,              \
              .is_malformed = true),
#define ROW_IN_SEND(place, opcode, name)                                       \
    CONF_TEST(                                                                 \
        "order.in-send." name, CLAUSE,                                         \
        name                                                                   \
        " inside a SEND is executed if it continues the SEND, else NAKed",     \
        order_##place##_##opcode, .needs = CONF_NEEDS_ECHO,                    \
        .is_malformed = true),
#define ROW_IN_WRITE(place, opcode, name)                                      \
    CONF_TEST(                                                                 \
        "order.in-write." name, CLAUSE,                                        \
        name                                                                   \
        " inside a WRITE is executed if it continues the WRITE, else NAKed",   \
        order_##place##_##opcode, .needs = CONF_NEEDS_ECHO,                    \
        .is_malformed = true),

static const struct conf_test tests[] = {
    ORDER_OPCODES(ROW_BETWEEN, BETWEEN)
        ROW_BETWEEN(BETWEEN, WRITE_MIDDLE, "write-middle")
            ORDER_OPCODES(ROW_IN_SEND, IN_SEND)
                ROW_IN_SEND(IN_SEND, WRITE_MIDDLE, "write-middle")
                    ORDER_OPCODES(ROW_IN_WRITE, IN_WRITE) CONF_TEST(
                        "order.in-write.write-middle", CLAUSE,
                        "First, Middle and Last of a WRITE are one message",
                        write_middle_in_write, .needs = CONF_NEEDS_ECHO),
};
CONF_TESTS(conf_tests_roce_order, "roce", tests);
