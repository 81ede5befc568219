/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA READ and WRITE requests to the drive: data, keys, bounds, lengths,
 * depth, duplicates.
 *
 * Spec: IBTA Vol 1 9.4.3 (WRITE), 9.4.4 (READ), 9.7.4, 9.9.3.
 */
#include <string.h>

#include "roce_lib.h"

static struct echo_rc *open_mtu(struct conf *conf, uint8_t mtu)
{
    return roce_echo(conf, &(struct rc_config){.path_mtu = mtu}, 0, 0);
}

/* ---- WRITE. */

/* Send a whole WRITE, and take the ACK of its last packet. */
static void write_all(struct echo_rc *echo, uint64_t va, const uint8_t *data,
                      uint32_t len)
{
    struct rc *rc = echo->rc;
    struct reth reth = {va, echo->rep.rkey, len};
    uint32_t left = len;
    bool is_first = true;

    do {
        uint32_t n = MIN(left, rc->mtu_bytes);
        bool is_last = n == left;
        uint8_t opcode = is_first ? (is_last ? RC_WRITE_ONLY : RC_WRITE_FIRST)
                                  : (is_last ? RC_WRITE_LAST : RC_WRITE_MIDDLE);

        rc_send_packet(rc, &(struct packet_roce){
                               .bth = {.opcode = opcode,
                                       .psn = rc->psn,
                                       .ack_requested = is_last},
                               .reth = reth,
                               .data = data,
                               .data_len = n,
                           });
        rc->psn = (rc->psn + 1) & ROCE_PSN_MASK;
        data += n;
        left -= n;
        is_first = false;
    } while (left != 0);
    rc_expect_ack(rc, rc->psn - 1);
}

static void expect_written(struct conf *conf, uint8_t mtu, uint32_t offset,
                           uint32_t len)
{
    struct echo_rc *echo = open_mtu(conf, mtu);
    uint8_t *data = conf_alloc(conf, ROCE_DATA_MAX);
    uint8_t *got = conf_alloc(conf, ROCE_DATA_MAX);

    roce_pattern(data, len, 9);
    write_all(echo, echo->rep.addr + offset, data, len);
    roce_read(echo->rc, echo->rep.addr + offset, echo->rep.rkey, len, got);
    conf_same(conf, "the data that was written", got, data, len);
    rc_close(echo->rc);
}

static void write_only(struct conf *conf)
{
    expect_written(conf, 0, 0, 40);
}

static void write_odd(struct conf *conf)
{
    expect_written(conf, 0, 13, 7);
}

static void write_many(struct conf *conf)
{
    expect_written(conf, IB_MTU_256, 100, 256 * 5 + 3);
}

static void write_mtus(struct conf *conf)
{
    expect_written(conf, IB_MTU_1024, 0, 4096);
}

static void write_all_of_it(struct conf *conf)
{
    expect_written(conf, IB_MTU_1024, 0, 65536);
}

static void write_nothing(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    struct rc *rc = echo->rc;
    struct reth nowhere = {0, 0, 0};

    roce_write_packet(rc, RC_WRITE_ONLY, &nowhere, NULL, 0);
    rc_expect_ack(rc, rc->psn - 1);
    roce_expect_works(echo);
    rc_close(rc);
}

static void write_once(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr, echo->rep.rkey, 5};
    uint8_t got[5];

    roce_write_packet(rc, RC_WRITE_ONLY, &reth, "first", 5);
    rc_expect_ack(rc, rc->psn - 1);
    rc->psn--;
    roce_write_packet(rc, RC_WRITE_ONLY, &reth, "again", 5);
    rc_expect_ack(rc, rc->psn - 1);
    roce_read(rc, reth.va, reth.rkey, 5, got);
    conf_same(conf, "memory after a duplicate WRITE", got, "first", 5);
    rc_close(rc);
}

static void write_refused(struct conf *conf, const struct reth *reth,
                          enum aeth_nak nak)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    struct rc *rc = echo->rc;
    struct reth own = *reth;

    own.va += echo->rep.addr;
    own.rkey += echo->rep.rkey;
    roce_write_packet(rc, RC_WRITE_ONLY, &own, NULL, 8);
    rc_expect_nak(rc, nak, rc->psn - 1);
    roce_expect_dead(echo);
}

static void write_bad_key(struct conf *conf)
{
    write_refused(conf, &(struct reth){0, 0x01000000, 8},
                  AETH_NAK_REMOTE_ACCESS);
}

static void write_stale_key(struct conf *conf)
{
    write_refused(conf, &(struct reth){0, 1, 8}, AETH_NAK_REMOTE_ACCESS);
}

static void write_beyond(struct conf *conf)
{
    write_refused(conf, &(struct reth){65536 - 7, 0, 8},
                  AETH_NAK_REMOTE_ACCESS);
}

static void write_before(struct conf *conf)
{
    write_refused(conf, &(struct reth){-(uint64_t)1, 0, 8},
                  AETH_NAK_REMOTE_ACCESS);
}

static void write_longer_than_said(struct conf *conf)
{
    write_refused(conf, &(struct reth){0, 0, 4}, AETH_NAK_INVALID_REQUEST);
}

static void write_shorter_than_said(struct conf *conf)
{
    write_refused(conf, &(struct reth){0, 0, 12}, AETH_NAK_INVALID_REQUEST);
}

static void write_read_only(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr, echo->rep.read_rkey, 8};

    roce_write_packet(rc, RC_WRITE_ONLY, &reth, NULL, 8);
    rc_expect_nak(rc, AETH_NAK_REMOTE_ACCESS, rc->psn - 1);
}

/* The first packet is checked against the whole length; nothing is written. */
static void write_checked_first(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, IB_MTU_256);
    struct echo_rc *other =
        roce_echo(conf, &(struct rc_config){.peer = 1}, 0, 0);
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr + 65536 - 256, echo->rep.rkey, 512};

    roce_write_packet(rc, RC_WRITE_FIRST, &reth, NULL, 256);
    rc_expect_nak(rc, AETH_NAK_REMOTE_ACCESS, rc->psn - 1);
    roce_expect_works(other);
    rc_close(other->rc);
}

static void first_of_length(struct conf *conf, uint8_t opcode, uint32_t len)
{
    struct echo_rc *echo = open_mtu(conf, IB_MTU_256);
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr, echo->rep.rkey, 1024};

    roce_write_packet(rc, opcode, &reth, NULL, len);
    rc_expect_nak(rc, AETH_NAK_INVALID_REQUEST, rc->psn - 1);
    roce_expect_dead(echo);
}

static void first_short(struct conf *conf)
{
    first_of_length(conf, RC_WRITE_FIRST, 252);
}

static void first_long(struct conf *conf)
{
    first_of_length(conf, RC_WRITE_FIRST, 260);
}

static void only_long(struct conf *conf)
{
    first_of_length(conf, RC_WRITE_ONLY, 512);
}

static void next_of_length(struct conf *conf, uint8_t opcode, uint32_t len)
{
    struct echo_rc *echo = open_mtu(conf, IB_MTU_256);
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr, echo->rep.rkey, 1024};

    roce_write_packet(rc, RC_WRITE_FIRST, &reth, NULL, 256);
    rc_expect_ack(rc, rc->psn - 1);
    roce_write_packet(rc, opcode, NULL, NULL, len);
    rc_expect_nak(rc, AETH_NAK_INVALID_REQUEST, rc->psn - 1);
}

static void middle_short(struct conf *conf)
{
    next_of_length(conf, RC_WRITE_MIDDLE, 128);
}

static void last_empty(struct conf *conf)
{
    next_of_length(conf, RC_WRITE_LAST, 0);
}

static void last_too_early(struct conf *conf)
{
    next_of_length(conf, RC_WRITE_LAST, 256);
}

static void last_long(struct conf *conf)
{
    next_of_length(conf, RC_WRITE_LAST, 512);
}

/* ---- READ. */

static void read_back(struct conf *conf, uint8_t mtu, uint32_t offset,
                      uint32_t len)
{
    struct echo_rc *echo = open_mtu(conf, mtu);
    uint8_t *data = conf_alloc(conf, ROCE_DATA_MAX);
    uint8_t *got = conf_alloc(conf, ROCE_DATA_MAX);

    roce_pattern(data, ROCE_DATA_MAX, 5);
    write_all(echo, echo->rep.addr, data, 8192);
    roce_read(echo->rc, echo->rep.addr + offset, echo->rep.read_rkey, len, got);
    conf_same(conf, "READ data", got, data + offset, len);
    rc_close(echo->rc);
}

static void read_only(struct conf *conf)
{
    read_back(conf, 0, 0, 64);
}

static void read_odd(struct conf *conf)
{
    read_back(conf, 0, 11, 13);
}

static void read_many(struct conf *conf)
{
    read_back(conf, IB_MTU_256, 3, 256 * 7 + 2);
}

static void read_mtu(struct conf *conf)
{
    read_back(conf, IB_MTU_512, 0, 512);
}

static void read_mtus(struct conf *conf)
{
    read_back(conf, IB_MTU_512, 0, 8192);
}

static void read_nothing(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    uint8_t none[1];

    roce_read(echo->rc, 0, 0, 0, none);
    rc_close(echo->rc);
}

static void read_aeth(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, IB_MTU_256);
    struct rc *rc = echo->rc;

    roce_request_read(rc, echo->rep.addr, echo->rep.rkey, 1024);
    for (unsigned int i = 0; i < 4; i++) {
        const struct packet *packet = rc_take(rc, "a READ response");

        if (i == 0 || i == 3) {
            conf_equal(conf, "AETH kind", packet->aeth.kind, AETH_ACK);
            conf_equal(conf, "MSN", packet->aeth.msn, 1);
        }
        conf_check(conf, !packet->bth.ack_requested,
                   "a response asks for an acknowledgement");
    }
    rc_close(rc);
}

static void read_refused(struct conf *conf, uint64_t offset, uint32_t key,
                         uint32_t len, enum aeth_nak nak)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    struct rc *rc = echo->rc;
    uint32_t psn = roce_request_read(rc, echo->rep.addr + offset,
                                     echo->rep.rkey + key, len);

    rc_expect_nak(rc, nak, psn);
    rc->psn = (psn + 1) & ROCE_PSN_MASK;
    roce_expect_dead(echo);
}

static void read_bad_key(struct conf *conf)
{
    read_refused(conf, 0, 0x01000000, 8, AETH_NAK_REMOTE_ACCESS);
}

static void read_beyond(struct conf *conf)
{
    read_refused(conf, 65536 - 4, 0, 8, AETH_NAK_REMOTE_ACCESS);
}

static void read_before(struct conf *conf)
{
    read_refused(conf, -(uint64_t)8, 0, 16, AETH_NAK_REMOTE_ACCESS);
}

static void read_wraps(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    uint32_t psn =
        roce_request_read(echo->rc, UINT64_MAX - 3, echo->rep.rkey, 8);

    rc_expect_nak(echo->rc, AETH_NAK_REMOTE_ACCESS, psn);
}

static void read_too_much(struct conf *conf)
{
    read_refused(conf, 0, 0, 0x80000001, AETH_NAK_INVALID_REQUEST);
}

static void read_write_only(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    uint32_t psn =
        roce_request_read(echo->rc, echo->rep.addr, echo->rep.write_rkey, 8);

    rc_expect_nak(echo->rc, AETH_NAK_REMOTE_ACCESS, psn);
    roce_expect_dead(echo);
}

static void read_with_payload(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    struct rc *rc = echo->rc;

    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = RC_READ_REQUEST, .psn = rc->psn},
                           .reth = {echo->rep.addr, echo->rep.rkey, 8},
                           .data_len = 8,
                       });
    rc_expect_nak(rc, AETH_NAK_INVALID_REQUEST, rc->psn);
}

/* As many READs at once as the REP granted. */
static void read_depth(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, IB_MTU_256);
    struct rc *rc = echo->rc;
    uint32_t psn[64];
    unsigned int depth = rc->rep.responder_resources;
    uint8_t got[600];

    conf_check(conf, depth != 0 && depth <= ARRAY_LEN(psn),
               "the REP grants %u READs", depth);
    for (unsigned int i = 0; i < depth; i++) {
        psn[i] = roce_request_read(rc, echo->rep.addr, echo->rep.rkey, 600);
    }
    for (unsigned int i = 0; i < depth; i++) {
        roce_take_read(rc, psn[i], 600, got);
    }
    roce_expect_works(echo);
    rc_close(rc);
}

static void read_depth_of_one(struct conf *conf)
{
    struct echo_rc *echo =
        roce_echo(conf, &(struct rc_config){.initiator_depth = 1}, 0, 0);

    conf_equal(conf, "responder resources in the REP",
               echo->rc->rep.responder_resources, 1);
    roce_expect_works(echo);
    rc_close(echo->rc);
}

static void read_then_send(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, IB_MTU_256);
    struct rc *rc = echo->rc;
    uint8_t got[1024];
    uint32_t psn =
        roce_request_read(rc, echo->rep.addr, echo->rep.rkey, sizeof(got));

    rc_send_message(rc, "behind the READ", 15);
    roce_take_read(rc, psn, sizeof(got), got);
    rc_expect_ack(rc, rc->psn - 1);
    rc_close(rc);
}

static void write_then_read(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr, echo->rep.rkey, 8};
    const struct packet *packet;
    uint32_t psn;

    roce_write_packet(rc, RC_WRITE_ONLY, &reth, "ordering", 8);
    psn = roce_request_read(rc, reth.va, reth.rkey, 8);
    do {
        packet = rc_take(rc, "a READ response");
    } while (packet->bth.opcode == RC_ACKNOWLEDGE);
    conf_equal(conf, "PSN of the response", packet->bth.psn, psn);
    conf_same(conf, "data of a READ after a WRITE", packet->data, "ordering",
              8);
    rc_close(rc);
}

static void read_duplicate(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, IB_MTU_256);
    struct rc *rc = echo->rc;
    uint8_t got[700], again[700];
    uint32_t psn =
        roce_request_read(rc, echo->rep.addr, echo->rep.rkey, sizeof(got));
    uint32_t next = rc->psn;

    roce_take_read(rc, psn, sizeof(got), got);
    rc->psn = psn;
    roce_request_read(rc, echo->rep.addr, echo->rep.rkey, sizeof(got));
    roce_take_read(rc, psn, sizeof(again), again);
    conf_equal(conf, "next PSN", rc->psn, next);
    roce_expect_works(echo);
    rc_close(rc);
}

/*
 * The network delivers a READ request twice.  The second copy arrives after the
 * answer has left, just before the next READ, which the agreed depth of one
 * allows.
 */
static void read_after_duplicate(struct conf *conf)
{
    struct echo_rc *echo = roce_echo(
        conf, &(struct rc_config){.path_mtu = IB_MTU_256, .initiator_depth = 1},
        0, 0);
    struct rc *rc = echo->rc;
    uint8_t got[700];
    uint32_t first =
        roce_request_read(rc, echo->rep.addr, echo->rep.rkey, sizeof(got));
    uint32_t second = rc->psn;

    roce_take_read(rc, first, sizeof(got), got);
    rc->psn = first;
    roce_request_read(rc, echo->rep.addr, echo->rep.rkey, sizeof(got));
    conf_equal(conf, "next PSN", rc->psn, second);
    roce_request_read(rc, echo->rep.addr, echo->rep.rkey, sizeof(got));
    roce_take_read(rc, first, sizeof(got), got);
    roce_take_read(rc, second, sizeof(got), got);
    roce_expect_works(echo);
    rc_close(rc);
}

/*
 * The network swaps two WRITEs.  The second one is dropped, and as nothing
 * follows them only a NAK tells the peer so.
 */
static void write_overtaken(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, 0);
    struct rc *rc = echo->rc;
    struct reth reth = {echo->rep.addr, echo->rep.rkey, 4};
    const uint32_t first = rc->psn;
    const struct packet *nak;

    rc->psn = (first + 1) & ROCE_PSN_MASK;
    roce_write_packet(rc, RC_WRITE_ONLY, &reth, "two", 4);
    rc->psn = first;
    roce_write_packet(rc, RC_WRITE_ONLY, &reth, "one", 4);
    do {
        nak = rc_take_opcode(rc, RC_ACKNOWLEDGE);
    } while (nak->aeth.kind == AETH_ACK);
    conf_equal(conf, "NAK code", nak->aeth.value, AETH_NAK_PSN_SEQUENCE);
    conf_check(conf,
               nak->bth.psn == first ||
                   nak->bth.psn == ((first + 1) & ROCE_PSN_MASK),
               "the NAK names PSN %u", nak->bth.psn);
    roce_write_packet(rc, RC_WRITE_ONLY, &reth, "two", 4);
    rc_expect_ack(rc, (first + 1) & ROCE_PSN_MASK);
    rc_close(rc);
}

/* A peer that missed the end of a READ requests only that. */
static void read_duplicate_tail(struct conf *conf)
{
    struct echo_rc *echo = open_mtu(conf, IB_MTU_256);
    struct rc *rc = echo->rc;
    uint8_t data[1024], got[1024];
    uint32_t psn;

    roce_pattern(data, sizeof(data), 8);
    write_all(echo, echo->rep.addr, data, sizeof(data));
    psn = roce_request_read(rc, echo->rep.addr, echo->rep.rkey, 1024);
    roce_take_read(rc, psn, 1024, got);
    rc->psn = (psn + 2) & ROCE_PSN_MASK;
    roce_request_read(rc, echo->rep.addr + 512, echo->rep.rkey, 512);
    roce_take_read(rc, psn + 2, 512, got);
    conf_same(conf, "the end of the data", got, data + 512, 512);
    roce_expect_works(echo);
    rc_close(rc);
}

static void keys_are_apart(struct conf *conf)
{
    struct echo_rc *one = open_mtu(conf, 0);
    struct echo_rc *two = roce_echo(conf, &(struct rc_config){.peer = 1}, 0, 0);

    conf_check(conf,
               one->rep.rkey != two->rep.rkey &&
                   one->rep.rkey != one->rep.read_rkey &&
                   one->rep.rkey != one->rep.write_rkey,
               "two regions have the same key");
    write_all(one, one->rep.addr, (const uint8_t *)"one", 3);
    write_all(two, two->rep.addr, (const uint8_t *)"two", 3);
    roce_expect_works(one);
    rc_close(one->rc);
    roce_expect_works(two);
    rc_close(two->rc);
}

/* The key of a connection that has ended gives no access. */
static void key_after_close(struct conf *conf)
{
    struct echo_rc *gone = open_mtu(conf, 0);
    struct echo_rc *here;
    uint32_t psn;

    rc_close(gone->rc);
    conf_pass(conf, 1000);
    here = roce_echo(conf, &(struct rc_config){.peer = 1}, 0, 0);
    psn = roce_request_read(here->rc, gone->rep.addr, gone->rep.rkey, 8);
    rc_expect_nak(here->rc, AETH_NAK_REMOTE_ACCESS, psn);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, "IBTA Vol 1 " clause, purpose, __VA_ARGS__,                  \
              .needs = CONF_NEEDS_ECHO)
#define BAD(id, clause, purpose, ...)                                          \
    CONF_TEST(id, "IBTA Vol 1 " clause, purpose, __VA_ARGS__,                  \
              .needs = CONF_NEEDS_ECHO, .is_malformed = true)

static const struct conf_test tests[] = {
    TEST("write.only", "9.4.3", "a WRITE Only is executed", write_only),
    TEST("write.odd", "9.4.3",
         "a WRITE to any address and of any length is executed", write_odd),
    TEST("write.many", "9.4.3", "six packets make one WRITE", write_many),
    TEST("write.mtus", "9.4.3", "a Last of exactly the path MTU is executed",
         write_mtus),
    TEST("write.all", "9.4.3", "a WRITE of a whole region is executed",
         write_all_of_it),
    TEST("write.nothing", "9.7.4.1.4",
         "a WRITE of no bytes is accepted with any key and address",
         write_nothing),
    TEST("write.duplicate", "9.7.5.1.4",
         "a duplicate WRITE is not executed again", write_once),
    BAD("write.bad-key", "9.7.4.1.3, 9.9.3.1",
        "an unknown key gets NAK remote access", write_bad_key),
    BAD("write.stale-key", "9.7.4.1.3",
        "a key with the correct index and a wrong variant gets NAK remote "
        "access",
        write_stale_key),
    BAD("write.beyond", "9.7.4.1.3",
        "a WRITE one byte beyond the region gets NAK remote access",
        write_beyond),
    BAD("write.before", "9.7.4.1.3",
        "a WRITE one byte before the region gets NAK remote access",
        write_before),
    BAD("write.read-only", "9.7.4.1.3",
        "a WRITE with a key for READ gets NAK remote access", write_read_only),
    BAD("write.checked-first", "9.7.4.1.3",
        "the first packet of a WRITE is checked with the whole length",
        write_checked_first),
    BAD("write.longer", "9.7.4.1.6",
        "more data than in the RETH gets NAK invalid request",
        write_longer_than_said),
    BAD("write.shorter", "9.7.4.1.6",
        "less data than in the RETH gets NAK invalid request",
        write_shorter_than_said),
    BAD("length.first-short", "9.7.4.1.6",
        "a First shorter than the path MTU gets NAK invalid request",
        first_short),
    BAD("length.first-long", "9.7.4.1.6",
        "a First longer than the path MTU gets NAK invalid request",
        first_long),
    BAD("length.only-long", "9.7.4.1.6",
        "an Only longer than the path MTU gets NAK invalid request", only_long),
    BAD("length.middle-short", "9.7.4.1.6",
        "a Middle shorter than the path MTU gets NAK invalid request",
        middle_short),
    BAD("length.last-empty", "9.7.4.1.6",
        "a Last without data gets NAK invalid request", last_empty),
    BAD("length.last-early", "9.7.4.1.6",
        "a Last before the RETH's length is reached gets NAK invalid request",
        last_too_early),
    BAD("length.last-long", "9.7.4.1.6",
        "a Last longer than the path MTU gets NAK invalid request", last_long),
    TEST("read.only", "9.4.4", "a short READ gets one response", read_only),
    TEST("read.odd", "9.4.4", "a READ of any address and length gets its data",
         read_odd),
    TEST("read.many", "9.4.4",
         "a long READ gets First, Middle and Last in order", read_many),
    TEST("read.mtu", "9.4.4",
         "a READ of exactly the path MTU gets one response", read_mtu),
    TEST("read.mtus", "9.4.4", "a READ gets a Last of exactly the path MTU",
         read_mtus),
    TEST("read.nothing", "9.7.4.1.4",
         "a READ of no bytes gets one empty response", read_nothing),
    TEST("read.aeth", "9.7.5.1.1", "First and Last have an AETH with the MSN",
         read_aeth),
    BAD("read.bad-key", "9.7.4.1.3", "an unknown key gets NAK remote access",
        read_bad_key),
    BAD("read.beyond", "9.7.4.1.3",
        "a READ beyond the region gets NAK remote access", read_beyond),
    BAD("read.before", "9.7.4.1.3",
        "a READ before the region gets NAK remote access", read_before),
    BAD("read.wraps", "9.7.4.1.3",
        "a READ that wraps at 2^64 gets NAK remote access", read_wraps),
    BAD("read.too-much", "9.7.4.1.6",
        "a READ of more than 2^31 bytes gets NAK invalid request",
        read_too_much),
    BAD("read.write-only", "9.7.4.1.3",
        "a READ with a key for WRITE gets NAK remote access", read_write_only),
    BAD("read.payload", "9.7.4.1.6",
        "a READ request with data gets NAK invalid request", read_with_payload),
    TEST("read.depth", "9.7.4.1.5",
         "as many READs at once as the REP grants are served", read_depth),
    TEST("read.depth-one", "12.7.30",
         "the REP grants no more READs than the REQ asked for",
         read_depth_of_one),
    TEST("read.then-send", "9.5", "an ACK does not overtake READ responses",
         read_then_send),
    TEST("read.after-write", "9.5",
         "a READ returns the data of the WRITE before it", write_then_read),
    TEST("responder.duplicate-read", "9.7.5.1.4",
         "a duplicate READ request is served again", read_duplicate),
    TEST("responder.duplicate-read-tail", "9.7.5.1.4",
         "a READ request for the rest of a READ is served",
         read_duplicate_tail),
    TEST("responder.overtaken", "9.7.5.2.8",
         "swapped packets cause a NAK for the one that was dropped",
         write_overtaken),
    TEST("responder.read-after-duplicate", "9.7.4.1.5",
         "a duplicate READ request does not count against the depth",
         read_after_duplicate),
    TEST("key.apart", "10.6.3", "each region has its own key", keys_are_apart),
    BAD("key.after-close", "10.6.3",
        "the key of a connection that has ended gives no access",
        key_after_close),
};
CONF_TESTS(conf_tests_roce_rdma, "roce", tests);
