/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive as a requester: what it sends on an NVMe admin queue, and what it
 * does when answers are late, lost, duplicated or wrong.
 *
 * Spec: IBTA Vol 1 9.7.5 (responses), 9.7.6 (retries), 9.9.2 (errors).
 */
#include "roce_lib.h"

enum {
    TIMEOUT_CODE = 13, /* 4.096 us * 2^13 are 34 ms; longer in real time. */
    TIMEOUT_US = 33554,
    OWN_LIMIT_US =
        3000000,   /* The drive's limit for an ACK time-out is 1.07 s. */
    RNR_CODE = 18, /* 5.12 ms: IBTA table 45. */
    RNR_US = 5120,
    MTU = 256,
    READ_PACKETS = CONNECT_DATA_LEN / MTU,
};

static uint64_t timeout_us(const struct conf *conf)
{
    return (uint64_t)TIMEOUT_US << conf_patience(conf);
}

/* ---- A Connect command, whose data the drive READs. */

struct reading {
    struct rc *rc;
    uint16_t cid;
    uint32_t psn; /* The PSN of the READ request. */
};

static const struct packet *take_read(struct reading *reading)
{
    return rc_take_opcode(reading->rc, RC_READ_REQUEST);
}

static struct reading start_read(struct conf *conf,
                                 const struct rc_config *config)
{
    struct rc_config own = *config;
    struct reading reading;

    own.is_mute = true;
    own.path_mtu = own.path_mtu != 0 ? own.path_mtu : (uint8_t)IB_MTU_256;
    own.ack_timeout = TIMEOUT_CODE + conf_patience(conf);
    reading.rc = rc_open(conf, &own);
    reading.cid = rc_send_connect(reading.rc);
    reading.psn = reading.rc->epsn;
    return reading;
}

static void respond_packet(struct reading *reading, unsigned int i,
                           uint8_t opcode, uint32_t len)
{
    struct rc *rc = reading->rc;

    rc_send_packet(rc, &(struct packet_roce){
                           .bth = {.opcode = opcode,
                                   .psn = (reading->psn + i) & ROCE_PSN_MASK},
                           .aeth = {AETH_ACK, AETH_CREDIT_UNLIMITED, 1},
                           .data = rc->mem + (size_t)i * MTU,
                           .data_len = len,
                       });
}

static uint8_t response_opcode(unsigned int i)
{
    return i == 0                  ? RC_READ_RESPONSE_FIRST
           : i == READ_PACKETS - 1 ? RC_READ_RESPONSE_LAST
                                   : RC_READ_RESPONSE_MIDDLE;
}

static void respond_from(struct reading *reading, unsigned int first)
{
    for (unsigned int i = first; i < READ_PACKETS; i++) {
        /* Responses to a READ for the rest begin with a First again. */
        uint8_t opcode = i == first && i != READ_PACKETS - 1
                             ? (uint8_t)RC_READ_RESPONSE_FIRST
                             : response_opcode(i);

        if (i == first && i == READ_PACKETS - 1) {
            opcode = RC_READ_RESPONSE_ONLY;
        }
        respond_packet(reading, i, opcode, MTU);
    }
}

static void respond_to_read(struct reading *reading)
{
    respond_from(reading, 0);
}

static void send_aeth(struct rc *rc, enum aeth_kind kind, uint8_t value,
                      uint32_t psn)
{
    rc_send_packet(
        rc, &(struct packet_roce){
                .bth = {.opcode = RC_ACKNOWLEDGE, .psn = psn & ROCE_PSN_MASK},
                .aeth = {kind, value, 2},
            });
}

static void send_ack(struct rc *rc, uint32_t psn)
{
    send_aeth(rc, AETH_ACK, AETH_CREDIT_UNLIMITED, psn);
}

/* Take the response capsule, which must report success, and acknowledge it. */
static void finish_read(struct reading *reading)
{
    struct rc *rc = reading->rc;
    const struct packet *send = rc_take_opcode(rc, RC_SEND_ONLY);
    struct nvme_cqe cqe;

    conf_equal(rc->conf, "length of the response", send->data_len,
               NVME_CQE_LEN);
    nvme_cqe_parse(&cqe, send->data);
    conf_equal(rc->conf, "CID", cqe.cid, reading->cid);
    conf_status(rc->conf, "Connect", cqe.status, NVME_SC_SUCCESS);
    conf_equal(rc->conf, "PSN of the response", send->bth.psn,
               (reading->psn + READ_PACKETS) & ROCE_PSN_MASK);
    send_ack(rc, send->bth.psn);
    rc_close(rc);
}

static bool is_send(const struct packet *packet, const void *ctx)
{
    const struct rc *rc = ctx;

    return packet->has_bth && packet->bth.dest_qp == rc->qpn &&
           roce_opcode_is(packet->bth.opcode, ROCE_SEND);
}

/* The command must not succeed without its data; the connection ends, with a
 * DREQ or silently. */
static void expect_failed(struct reading *reading)
{
    struct rc *rc = reading->rc;
    const struct packet *send =
        conf_take_within(rc->conf, is_send, rc, timeout_us(rc->conf));
    struct nvme_cqe cqe;

    if (send != NULL) {
        nvme_cqe_parse(&cqe, send->data);
        conf_check(rc->conf, (cqe.status & NVME_SC_MASK) != NVME_SC_SUCCESS,
                   "the command succeeded without its data");
    }
    conf_expect_alive(rc->conf);
}

/* ---- What the drive sends. */

static void read_fields(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});
    const struct packet *read = take_read(&reading);

    conf_equal(conf, "PSN (the REQ's starting PSN)", read->bth.psn,
               reading.psn);
    conf_equal(conf, "address", read->reth.va, reading.rc->va);
    conf_equal(conf, "rkey", read->reth.rkey, reading.rc->rkey);
    conf_equal(conf, "length", read->reth.dma_len_bytes, CONNECT_DATA_LEN);
    conf_equal(conf, "P_Key", read->bth.pkey, BTH_PKEY_DEFAULT);
    conf_equal(conf, "length after the RETH", read->data_len, 0);
    conf_check(conf, read->dont_fragment,
               "the packet may be fragmented: DF is clear");
    respond_to_read(&reading);
    finish_read(&reading);
}

static void psn_wraps(struct conf *conf)
{
    struct reading reading = start_read(
        conf, &(struct rc_config){.has_psn = true, .starting_psn = 0xfffffe});

    conf_equal(conf, "PSN of the READ", take_read(&reading)->bth.psn, 0xfffffe);
    respond_to_read(&reading);
    finish_read(&reading);
}

static void psn_wraps_between(struct conf *conf)
{
    struct reading reading = start_read(
        conf, &(struct rc_config){.has_psn = true,
                                  .starting_psn = 0x1000000 - READ_PACKETS});

    take_read(&reading);
    respond_to_read(&reading);
    finish_read(&reading);
}

/* ---- Lost packets. */

static void read_lost(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});
    const struct packet *first = take_read(&reading);
    const struct packet *again = take_read(&reading);
    uint64_t after_us = conf_later_most_us(conf, first, again);

    conf_equal(conf, "PSN of the repeated READ", again->bth.psn,
               first->bth.psn);
    conf_same(conf, "RETH of the repeated READ", again->ext, first->ext,
              RETH_LEN);
    conf_check(conf, after_us >= timeout_us(conf) * 9 / 10,
               "repeated after %llu us, before the REQ's time-out of %llu us",
               (unsigned long long)after_us,
               (unsigned long long)timeout_us(conf));
    respond_to_read(&reading);
    finish_read(&reading);
}

/* The peer asks for no ACK time-out, or for one of 2.4 hours.  The drive has a
 * limit of its own. */
static void timeout_limited(struct conf *conf)
{
    static const uint8_t codes[] = {0, 31};

    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        uint8_t private_data[CM_REQ_PRIVATE_LEN];
        struct reading reading = {
            .rc = rc_new(conf, &(struct rc_config){.is_mute = true,
                                                   .path_mtu = IB_MTU_256}),
        };
        const struct packet *first, *again;
        struct cm_req req;

        rc_make_req(reading.rc, &req, private_data);
        req.local_ack_timeout = codes[i];
        rc_send_req(reading.rc, &req);
        rc_take_rep(reading.rc);
        rc_send_rtu(reading.rc);
        reading.cid = rc_send_connect(reading.rc);
        reading.psn = reading.rc->epsn;
        first = take_read(&reading);
        do { /* The Connect's own acknowledgement may come after the READ. */
            again = rc_take_within(reading.rc, OWN_LIMIT_US);
        } while (again != NULL && again->bth.opcode == RC_ACKNOWLEDGE);
        conf_check(conf, again != NULL && again->bth.opcode == RC_READ_REQUEST,
                   "the drive did not repeat its READ to a peer that asked for "
                   "ACK time-out %u",
                   codes[i]);
        conf_equal(conf, "PSN of the repeated READ", again->bth.psn,
                   first->bth.psn);
        respond_to_read(&reading);
        finish_read(&reading);
    }
}

/*
 * A missing response: the drive requests the data from there on, or all of it.
 */
static void response_lost(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});
    const struct packet *again;
    uint32_t step;

    take_read(&reading);
    respond_packet(&reading, 0, RC_READ_RESPONSE_FIRST, MTU);
    respond_packet(&reading, 2, RC_READ_RESPONSE_MIDDLE, MTU);
    respond_packet(&reading, 3, RC_READ_RESPONSE_LAST, MTU);
    again = take_read(&reading);
    step = (again->bth.psn - reading.psn) & ROCE_PSN_MASK;
    conf_check(conf, step <= 1,
               "the drive requests the data again from packet %u on", step);
    conf_equal(conf, "address", again->reth.va,
               reading.rc->va + (uint64_t)step * MTU);
    conf_equal(conf, "length", again->reth.dma_len_bytes,
               CONNECT_DATA_LEN - step * MTU);
    respond_from(&reading, step);
    finish_read(&reading);
}

static void last_response_lost(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});
    const struct packet *again;
    uint32_t step;

    take_read(&reading);
    for (unsigned int i = 0; i < 3; i++) {
        respond_packet(&reading, i, response_opcode(i), MTU);
    }
    again = take_read(&reading);
    step = (again->bth.psn - reading.psn) & ROCE_PSN_MASK;
    conf_check(conf, step <= 3,
               "the drive requests the data again from packet %u on", step);
    conf_equal(conf, "address", again->reth.va,
               reading.rc->va + (uint64_t)step * MTU);
    respond_from(&reading, step);
    finish_read(&reading);
}

static void response_icrc(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});
    struct rc *rc = reading.rc;

    take_read(&reading);
    rc_send_packet(
        rc, &(struct packet_roce){
                .bth = {.opcode = RC_READ_RESPONSE_FIRST, .psn = reading.psn},
                .aeth = {AETH_ACK, 31, 1},
                .fill = 0xbd,
                .data_len = MTU,
                .icrc_xor = 0x10,
            });
    conf_equal(conf, "PSN of the repeated READ", take_read(&reading)->bth.psn,
               reading.psn);
    respond_to_read(&reading);
    finish_read(&reading);
}

static void response_twice(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});

    take_read(&reading);
    for (unsigned int i = 0; i < READ_PACKETS; i++) {
        respond_packet(&reading, i, response_opcode(i), MTU);
        respond_packet(&reading, i, response_opcode(i), MTU);
    }
    finish_read(&reading);
}

static void ack_lost(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});
    struct rc *rc = reading.rc;
    const struct packet *first, *again;

    take_read(&reading);
    respond_to_read(&reading);
    first = rc_take_opcode(rc, RC_SEND_ONLY);
    again = rc_take_opcode(rc, RC_SEND_ONLY);
    conf_equal(conf, "PSN of the repeated SEND", again->bth.psn,
               first->bth.psn);
    conf_same(conf, "data of the repeated SEND", again->data, first->data,
              NVME_CQE_LEN);
    send_ack(rc, again->bth.psn);
    conf_flush(conf);
    conf_expect_none(conf, "repetition of a SEND that was acknowledged",
                     is_send, rc, 3 * timeout_us(conf));
    rc_close(rc);
}

/* ---- NAKs. */

static void nak_sequence(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});
    const struct packet *first = take_read(&reading), *again;

    send_aeth(reading.rc, AETH_NAK, AETH_NAK_PSN_SEQUENCE, reading.psn);
    again = take_read(&reading);
    conf_equal(conf, "PSN of the repeated SEND", again->bth.psn,
               first->bth.psn);
    conf_check(conf, conf_later_least_us(conf, first, again) < timeout_us(conf),
               "the drive ignored the NAK until its time-out");
    respond_to_read(&reading);
    finish_read(&reading);
}

static void nak_of_kind(struct conf *conf, enum aeth_nak nak)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});

    take_read(&reading);
    send_aeth(reading.rc, AETH_NAK, (uint8_t)nak, reading.psn);
    expect_failed(&reading);
}

static void nak_access(struct conf *conf)
{
    nak_of_kind(conf, AETH_NAK_REMOTE_ACCESS);
}

static void nak_invalid(struct conf *conf)
{
    nak_of_kind(conf, AETH_NAK_INVALID_REQUEST);
}

static void nak_operation(struct conf *conf)
{
    nak_of_kind(conf, AETH_NAK_REMOTE_OPERATION);
}

static void requester_rnr(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});
    struct rc *rc = reading.rc;
    const struct packet *first, *again;

    take_read(&reading);
    respond_to_read(&reading);
    first = rc_take_opcode(rc, RC_SEND_ONLY);
    send_aeth(rc, AETH_RNR_NAK, RNR_CODE, first->bth.psn);
    again = rc_take_opcode(rc, RC_SEND_ONLY);
    conf_equal(conf, "PSN of the repeated SEND", again->bth.psn,
               first->bth.psn);
    conf_check(conf, conf_later_most_us(conf, first, again) >= RNR_US * 9 / 10,
               "repeated after %llu us; the RNR NAK asked for %u us",
               (unsigned long long)conf_later_most_us(conf, first, again),
               RNR_US);
    send_ack(rc, again->bth.psn);
    rc_close(rc);
}

/* As many repetitions as the REQ's RNR retry count. */
static void rnr_limit(struct conf *conf)
{
    struct reading reading =
        start_read(conf, &(struct rc_config){.rnr_retry = 2});
    struct rc *rc = reading.rc;

    take_read(&reading);
    respond_to_read(&reading);
    for (unsigned int i = 0; i < 3; i++) {
        send_aeth(rc, AETH_RNR_NAK, RNR_CODE,
                  rc_take_opcode(rc, RC_SEND_ONLY)->bth.psn);
    }
    conf_expect_none(conf, "fourth SEND with RNR retry count 2", is_send, rc,
                     2 * timeout_us(conf));
    conf_expect_alive(conf);
}

static void rnr_for_ever(struct conf *conf)
{
    struct reading reading =
        start_read(conf, &(struct rc_config){.rnr_retry = 7});
    struct rc *rc = reading.rc;

    take_read(&reading);
    respond_to_read(&reading);
    for (unsigned int i = 0; i < 12; i++) {
        send_aeth(rc, AETH_RNR_NAK, 1,
                  rc_take_opcode(rc, RC_SEND_ONLY)->bth.psn);
    }
    send_ack(rc, rc_take_opcode(rc, RC_SEND_ONLY)->bth.psn);
    rc_close(rc);
}

static bool is_read(const struct packet *packet, const void *ctx)
{
    const struct rc *rc = ctx;

    return packet->has_bth && packet->bth.dest_qp == rc->qpn &&
           packet->bth.opcode == RC_READ_REQUEST;
}

static void retry_limit(struct conf *conf)
{
    struct reading reading =
        start_read(conf, &(struct rc_config){.retry_count = 2});

    for (unsigned int i = 0; i < 3; i++) {
        take_read(&reading);
    }
    conf_expect_none(conf, "fourth READ with retry count 2", is_read,
                     reading.rc, 5 * timeout_us(conf));
    conf_expect_alive(conf);
}

/* Progress restarts the retry count. */
static void retry_count_starts_again(struct conf *conf)
{
    struct reading reading =
        start_read(conf, &(struct rc_config){.retry_count = 2});
    struct rc *rc = reading.rc;
    const struct packet *send = NULL;

    take_read(&reading);
    take_read(&reading);
    take_read(&reading);
    respond_to_read(&reading);
    for (unsigned int i = 0; i < 3; i++) {
        send = rc_take_opcode(rc, RC_SEND_ONLY);
    }
    send_ack(rc, send->bth.psn);
    rc_close(rc);
}

/* ---- Wrong responses. */

static void response_wrong(struct conf *conf, uint8_t opcode, uint32_t len)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});

    take_read(&reading);
    respond_packet(&reading, 0, opcode, len);
    expect_failed(&reading);
}

static void response_only_short(struct conf *conf)
{
    response_wrong(conf, RC_READ_RESPONSE_ONLY, MTU);
}

static void response_first_short(struct conf *conf)
{
    response_wrong(conf, RC_READ_RESPONSE_FIRST, MTU - 4);
}

static void response_first_long(struct conf *conf)
{
    response_wrong(conf, RC_READ_RESPONSE_FIRST, 2 * MTU);
}

static void response_last_first(struct conf *conf)
{
    response_wrong(conf, RC_READ_RESPONSE_LAST, MTU);
}

static void ghost_ack(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});

    take_read(&reading);
    send_ack(reading.rc, reading.psn + 100);
    send_ack(reading.rc, reading.psn - 1);
    respond_to_read(&reading);
    finish_read(&reading);
}

/* An ACK for a later PSN does not acknowledge what was sent before. */
static void ghost_ack_of_send(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});
    struct rc *rc = reading.rc;
    const struct packet *first, *again;

    take_read(&reading);
    respond_to_read(&reading);
    first = rc_take_opcode(rc, RC_SEND_ONLY);
    send_ack(rc, first->bth.psn + 100);
    again = rc_take_opcode(rc, RC_SEND_ONLY);
    conf_equal(conf, "PSN of the repeated SEND", again->bth.psn,
               first->bth.psn);
    send_ack(rc, again->bth.psn);
    rc_close(rc);
}

/* An ACK does not complete a READ, which needs its responses. */
static void ack_instead(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});

    take_read(&reading);
    send_ack(reading.rc, reading.psn + READ_PACKETS - 1);
    conf_expect_none(conf, "response to a command whose data has not come",
                     is_send, reading.rc, timeout_us(conf) / 2);
    take_read(&reading);
    respond_to_read(&reading);
    finish_read(&reading);
}

static void reserved_aeth(struct conf *conf)
{
    struct reading reading = start_read(conf, &(struct rc_config){0});

    take_read(&reading);
    send_aeth(reading.rc, AETH_RESERVED, 0, reading.psn);
    take_read(&reading); /* The time-out passes as if nothing had come. */
    respond_to_read(&reading);
    finish_read(&reading);
}

/* ---- WRITEs of data to the host. */

static void identify_at(struct conf *conf, uint8_t mtu)
{
    struct rc *rc =
        rc_open_controller(conf, &(struct rc_config){.path_mtu = mtu});
    struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY,
                                .cdw10 = CNS_CONTROLLER};
    struct sgl sgl = rc_keyed(rc, 512, 4096);
    uint32_t count = 4096 / ib_mtu_bytes(mtu), psn = rc->epsn;

    conf_flush(conf);
    rc_send_capsule(rc, &identify, &sgl, NULL, 0);
    rc_expect_ack(rc, rc->psn - 1);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t opcode = i == 0 ? (count == 1 ? RC_WRITE_ONLY : RC_WRITE_FIRST)
                         : i == count - 1 ? RC_WRITE_LAST
                                          : RC_WRITE_MIDDLE;
        const struct packet *packet = rc_take(rc, "a WRITE packet");

        conf_equal(conf, "opcode", packet->bth.opcode, opcode);
        conf_equal(conf, "PSN", packet->bth.psn, (psn + i) & ROCE_PSN_MASK);
        conf_equal(conf, "length", packet->data_len, ib_mtu_bytes(mtu));
        if (i == 0) {
            conf_equal(conf, "address", packet->reth.va, rc->va + 512);
            conf_equal(conf, "rkey", packet->reth.rkey, rc->rkey);
            conf_equal(conf, "length in the RETH", packet->reth.dma_len_bytes,
                       4096);
        }
    }
    conf_equal(conf, "PSN of the response, which follows the data",
               rc_take_opcode(rc, RC_SEND_ONLY)->bth.psn,
               (psn + count) & ROCE_PSN_MASK);
    rc_close(rc);
}

static void mtu_256(struct conf *conf)
{
    identify_at(conf, IB_MTU_256);
}

static void mtu_512(struct conf *conf)
{
    identify_at(conf, IB_MTU_512);
}

static void mtu_1024(struct conf *conf)
{
    identify_at(conf, IB_MTU_1024);
}

static void write_refused(struct conf *conf)
{
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});
    struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY,
                                .cdw10 = CNS_CONTROLLER};
    /* An SGL that ends beyond the region. */
    struct sgl sgl = rc_keyed(rc, RC_MEMORY - 100, 4096);
    const struct rc_message *message;
    struct nvme_cqe cqe;

    rc_send_capsule(rc, &identify, &sgl, NULL, 0);
    message = rc_take_message_within(rc, timeout_us(conf));
    if (message != NULL) {
        nvme_cqe_parse(&cqe, message->data);
        conf_check(conf, (cqe.status & NVME_SC_MASK) != NVME_SC_SUCCESS,
                   "the command succeeded, although its data was refused");
    }
    conf_expect_alive(conf);
}

/* One ACK for the responses of several commands. */
static void ack_coalesced(struct conf *conf)
{
    struct rc *rc = rc_open_controller(
        conf,
        &(struct rc_config){.ack_timeout = TIMEOUT_CODE + conf_patience(conf)});
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    uint32_t psn = 0;

    rc->answers = false;
    conf_flush(conf);
    for (unsigned int i = 0; i < 3; i++) {
        rc_send_capsule(rc, &keep_alive, NULL, NULL, 0);
    }
    for (unsigned int i = 0; i < 3; i++) {
        psn = rc_take_opcode(rc, RC_SEND_ONLY)->bth.psn;
    }
    send_ack(rc, psn);
    conf_flush(conf);
    conf_expect_none(conf, "repetition of a SEND that was acknowledged",
                     is_send, rc, 3 * timeout_us(conf));
    rc->epsn = (psn + 1) & ROCE_PSN_MASK;
    rc_close(rc);
}

/* No more READs at once than the REQ's responder resources allow. */
static void read_depth(struct conf *conf)
{
    struct rc *rc = rc_open_controller(
        conf, &(struct rc_config){.responder_resources = 1, .ack_timeout = 18});
    struct nvme_sqe set = {.opcode = ADMIN_SET_FEATURES,
                           .cdw10 = FEATURE_TIMESTAMP};
    struct sgl sgl = rc_keyed(rc, 0, 8);
    const struct packet *first, *second;

    rc->answers = false;
    conf_flush(conf);
    rc_send_capsule(rc, &set, &sgl, NULL, 0);
    rc_send_capsule(rc, &set, &sgl, NULL, 0);
    first = rc_take_opcode(rc, RC_READ_REQUEST);
    conf_expect_none(conf, "second READ before the first was answered", is_read,
                     rc, ROCE_QUIET_US);
    rc_send_packet(
        rc, &(struct packet_roce){
                .bth = {.opcode = RC_READ_RESPONSE_ONLY, .psn = first->bth.psn},
                .aeth = {AETH_ACK, 31, 1},
                .data_len = 8,
            });
    second = rc_take_opcode(rc, RC_READ_REQUEST);
    conf_check(conf, second->bth.psn != first->bth.psn,
               "the first READ was repeated");
    rc_send_dreq(rc);
}

static void responses_in_order(struct conf *conf)
{
    struct rc *rc = rc_open_controller(conf, &(struct rc_config){0});
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    uint32_t last = rc->epsn - 1;

    conf_flush(conf);
    for (unsigned int i = 0; i < 16; i++) {
        rc_send_capsule(rc, &keep_alive, NULL, NULL, 0);
    }
    for (unsigned int i = 0; i < 16; i++) {
        const struct packet *send = rc_take_opcode(rc, RC_SEND_ONLY);

        conf_equal(conf, "PSN", send->bth.psn, (last + 1) & ROCE_PSN_MASK);
        last = send->bth.psn;
    }
    rc_close(rc);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST(id, "IBTA Vol 1 " clause, purpose, __VA_ARGS__)
#define BAD(id, clause, purpose, fn)                                           \
    CONF_TEST(id, "IBTA Vol 1 " clause, purpose, fn, .is_malformed = true)

static const struct conf_test tests[] = {
    TEST("requester.read-fields", "9.4.4, 9.3.3",
         "a READ requests what the SGL describes", read_fields),
    TEST("requester.psn-wrap", "9.7.4.1.1", "PSNs wrap inside a READ",
         psn_wraps),
    TEST("requester.psn-wrap-between", "9.7.4.1.1",
         "PSNs wrap between two requests", psn_wraps_between),
    TEST("requester.read-lost", "9.7.6.1.3",
         "a READ without an answer is repeated after the REQ's time-out",
         read_lost, .judges_time = true),
    CONF_TEST("requester.timeout-limit", "docs/nvme.md",
              "an ACK time-out of the REQ that is longer than 1.07 s, or none, "
              "does not keep the target from repeating a READ",
              timeout_limited),
    TEST("requester.response-lost", "9.7.5.1.3",
         "a READ with a missing response is requested again", response_lost),
    TEST("requester.last-response-lost", "9.7.6.1.3",
         "a READ without its last responses is requested again",
         last_response_lost),
    BAD("requester.response-icrc", "9.6, 9.7.6",
        "a damaged response is ignored", response_icrc),
    TEST("requester.response-twice", "9.7.5.1.3",
         "duplicate responses are ignored", response_twice),
    TEST("requester.ack-lost", "9.7.6.1.3",
         "a SEND is repeated until it is acknowledged", ack_lost),
    TEST("requester.nak-sequence", "9.7.5.2.3",
         "NAK PSN sequence error makes the drive repeat at once", nak_sequence,
         .judges_time = true),
    TEST("requester.nak-access", "9.9.2.4.1",
         "the command fails after NAK remote access", nak_access),
    TEST("requester.nak-invalid", "9.9.2.4.1",
         "the command fails after NAK invalid request", nak_invalid),
    TEST("requester.nak-operation", "9.9.2.4.1",
         "the command fails after NAK remote operational error", nak_operation),
    TEST("requester.rnr", "9.7.5.2.8",
         "a SEND is repeated when the RNR NAK's timer is over", requester_rnr,
         .judges_time = true),
    TEST("requester.rnr-limit", "9.9.2.4.2",
         "a SEND is repeated as often as the REQ's RNR retry count", rnr_limit),
    TEST("requester.rnr-for-ever", "9.7.5.2.8",
         "a SEND is repeated without limit with RNR retry count 7",
         rnr_for_ever),
    TEST("requester.retry-limit", "9.9.2.4.2",
         "a READ is repeated as often as the REQ's retry count", retry_limit),
    TEST("requester.retry-again", "9.9.2.4.2",
         "progress restarts the retry count", retry_count_starts_again),
    BAD("requester.response-only-short", "9.9.2.3",
        "the command fails after an Only with too few bytes",
        response_only_short),
    BAD("requester.response-first-short", "9.9.2.3",
        "the command fails after a First shorter than the path MTU",
        response_first_short),
    BAD("requester.response-first-long", "9.9.2.3",
        "the command fails after a First longer than the path MTU",
        response_first_long),
    BAD("requester.response-last-first", "9.9.2.3",
        "the command fails after a Last before the First", response_last_first),
    BAD("requester.ghost-ack", "9.7.5.1.2",
        "ACKs for packets that were never sent are ignored", ghost_ack),
    BAD("requester.ghost-ack-send", "9.7.5.1.2",
        "ACKs for packets that were never sent acknowledge nothing",
        ghost_ack_of_send),
    BAD("requester.ack-instead", "9.7.5.1.2", "an ACK does not complete a READ",
        ack_instead),
    BAD("requester.aeth-reserved", "9.7.5.2.1",
        "an ACK with a reserved AETH is ignored", reserved_aeth),
    TEST("requester.mtu-256", "9.4.3", "WRITE packets fit path MTU 256",
         mtu_256),
    TEST("requester.mtu-512", "9.4.3", "WRITE packets fit path MTU 512",
         mtu_512),
    TEST("requester.mtu-1024", "9.4.3", "WRITE packets fit path MTU 1024",
         mtu_1024),
    TEST("requester.write-refused", "9.9.2.4.1",
         "the command fails when its WRITE is refused", write_refused),
    TEST("requester.ack-coalesced", "9.7.5.1.2",
         "one ACK acknowledges three responses", ack_coalesced),
    TEST("requester.read-depth", "9.4.4, 12.7.29",
         "no more READs are outstanding than the REQ's responder resources",
         read_depth),
    TEST("requester.in-order", "9.5", "packets leave in PSN order",
         responses_in_order),
};
CONF_TESTS(conf_tests_roce_requester, "roce", tests);
