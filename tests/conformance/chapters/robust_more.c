/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A slow host, which sends commands up to its queue's depth and acknowledges
 * nothing for a while; and peers that vanish in states that only a message of
 * their own leads to: MRA, DREQ, RNR NAK.
 *
 * Spec: IBTA Vol 1 9.7.5.1 (acknowledgements, retries), 9.7.5.2.8 (RNR), 12.9
 * (CM); NVMe over Fabrics 1.1 2.2 (one response for each command).
 */
#include "robust_lib.h"

#include "net/wire/psn.h"
#include "net/wire/roce_opcode.h"

enum {
    DEPTH = 4,
    ROUNDS =
        /* A command's entry is free after its response, even without an ACK. */
    2,
    BLOCKS = 8,
    BLOCK = 512,
    READ_LEN = BLOCKS * BLOCK,
    /* Shorter than any acknowledgement time-out of the target here. */
    PAUSE_US = 20000,
    IN_FLIGHT = 8,
    RNR_CODE = 18, /* 5.12 ms. */
    RNR_NAKS = 3,
    MRA_TIMEOUT = 15, /* 134 ms. */
};

/* Wait for DEPTH responses, and acknowledge none.  The target sends some of
 * them again if this takes long. */
static void await_responses(struct rc *rc)
{
    uint32_t next_psn = rc->epsn;
    unsigned int seen = 0;

    while (seen < DEPTH) {
        const struct bth *bth = &rc_take(rc, "a response")->bth;

        if (roce_opcode_is(bth->opcode, ROCE_SEND) &&
            psn_diff(bth->psn, next_psn) >= 0) {
            next_psn = psn_add(bth->psn, 1);
            seen++;
        }
    }
}

/* The host's commands fill its queue once more as soon as it has seen the
 * responses to the first ones.  The responses to the others may have to wait
 * for the acknowledgement of those. */
static void slow_to_acknowledge(struct conf *conf)
{
    struct nvmf_pair pair =
        nvmf_open_pair(conf, &(struct rc_config){.hsqsize = DEPTH - 1});
    struct nvme_sqe read = nvmf_io(conf, NVM_READ, 0, BLOCKS);
    bool is_answered[ROUNDS * DEPTH] = {0};
    uint16_t first = 0;

    conf_note(conf, "the host acknowledges nothing");
    pair.io->answers = false;
    for (unsigned int i = 0; i < ROUNDS * DEPTH; i++) {
        struct sgl sgl = rc_keyed(pair.io, i * READ_LEN, READ_LEN);
        uint16_t cid = rc_send_capsule(pair.io, &read, &sgl, NULL, 0);

        first = i == 0 ? cid : first;
        if (i == DEPTH - 1) {
            await_responses(pair.io);
        }
    }
    conf_pass(conf, PAUSE_US);
    conf_note(conf, "the host acknowledges everything");
    pair.io->answers = true;
    for (unsigned int i = 0; i < ROUNDS * DEPTH; i++) {
        const struct rc_message *message =
            rc_take_message(pair.io, "a response");
        struct nvme_cqe cqe;
        unsigned int index;

        nvme_cqe_parse(&cqe, message->data);
        index = (uint16_t)(cqe.cid - first);
        conf_status(conf, "Read", cqe.status, NVME_SC_SUCCESS);
        conf_check(conf, index < ROUNDS * DEPTH && !is_answered[index],
                   "CID %04xh was answered twice, or was never sent", cqe.cid);
        is_answered[index] = true;
    }
    conf_check(conf, rc_take_message_within(pair.io, PAUSE_US) == NULL,
               "there is a response too many");
    nvmf_close_pair(&pair);
    conf_expect_alive(conf);
}

/* ---- Peers that vanish. */

/* The peer asks for more time with an MRA, and sends nothing more. */
static void after_mra(struct conf *conf)
{
    struct rc *rc = robust_rc_half(conf, &(struct rc_config){.is_mute = true});
    struct cm_mra mra = {
        .message = CM_ANSWERS_REP,
        .service_timeout = MRA_TIMEOUT,
        .local_comm_id = rc->comm_id,
        .remote_comm_id = rc->target_comm_id,
    };
    uint8_t body[MAD_DATA_LEN];

    cm_mra_emit(&mra, body);
    rc_send_mad(rc, CM_MRA, body);
    conf_expect_alive(conf);
    robust_expect_clean(conf);
}

/* The target ends the connection, and the peer does not answer its DREQ. */
static void without_drep(struct conf *conf)
{
    struct rc *rc = robust_rc(conf, &(struct rc_config){.is_mute = true});

    conf_pass(conf, PAUSE_US); /* Let the RTU arrive first. */
    rc_send(rc, RC_SEND_ONLY, "no command", 10, true);
    rc_take_cm(rc, CM_DREQ);
    conf_expect_alive(conf);
    robust_expect_clean(conf);
}

static void send_reads(struct rc *rc)
{
    for (unsigned int i = 0; i < IN_FLIGHT; i++) {
        struct nvme_sqe read = nvmf_io(rc->conf, NVM_READ, i * BLOCKS, BLOCKS);
        struct sgl sgl = rc_keyed(rc, i * READ_LEN, READ_LEN);

        rc_send_capsule(rc, &read, &sgl, NULL, 0);
    }
}

/* The peer sends a DREQ with Reads outstanding, and does not wait for the
 * answer. */
static void after_dreq(struct conf *conf)
{
    struct nvmf_pair pair = robust_pair(conf);

    pair.io->answers = false;
    pair.admin->answers = false;
    send_reads(pair.io);
    rc_send_dreq(pair.io);
    rc_send_dreq(pair.admin);
    conf_expect_alive(conf);
    robust_expect_clean(conf);
}

/* The peer has no receive buffer for the response: it sends a few RNR NAKs,
 * then nothing. */
static void after_rnr(struct conf *conf)
{
    struct nvmf_pair pair = robust_pair(conf);
    struct nvme_sqe flush = nvmf_io(conf, NVM_FLUSH, 0, 1);

    pair.io->answers = false;
    pair.admin->answers = false;
    conf_flush(conf);
    rc_send_capsule(pair.io, &flush, NULL, NULL, 0);
    for (unsigned int i = 0; i < RNR_NAKS; i++) {
        uint32_t psn = rc_take_opcode(pair.io, RC_SEND_ONLY)->bth.psn;

        rc_send_packet(pair.io,
                       &(struct packet_roce){
                           .bth = {.opcode = RC_ACKNOWLEDGE, .psn = psn},
                           .aeth = {AETH_RNR_NAK, RNR_CODE, 1},
                       });
    }
    conf_expect_alive(conf);
    rc_send_dreq(pair.admin);
    robust_expect_clean(conf);
}

static const struct conf_test tests[] = {
    CONF_TEST("host.slow-acks", "IBTA Vol 1 9.7.5.1; NVMe-oF 1.1 2.2",
              "two queues of commands without an ACK are each answered once",
              slow_to_acknowledge),
    CONF_TEST(
        "vanish.mra", "IBTA Vol 1 12.6.6, 12.9.8",
        "the resources of a peer that vanishes after its MRA are released",
        after_mra),
    CONF_TEST("vanish.drep", "IBTA Vol 1 12.9.8.7",
              "the resources of a peer that does not answer the target's DREQ "
              "are released",
              without_drep),
    CONF_TEST("vanish.dreq", "IBTA Vol 1 12.9.8.5",
              "the resources of a peer that vanishes after a DREQ with Reads "
              "outstanding are released",
              after_dreq),
    CONF_TEST(
        "vanish.rnr", "IBTA Vol 1 9.7.5.2.8",
        "the resources of a peer that vanishes after RNR NAKs are released",
        after_rnr),
};

CONF_TESTS(conf_tests_robust_more, "robust", tests);
