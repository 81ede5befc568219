/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection requests: what the target grants, what it refuses, and with which
 * reason.
 *
 * Spec: IBTA Vol 1 12.6.5 (REQ), 12.6.7 (REJ), 12.6.8 (REP), annex A11 (IP);
 * NVMe over Fabrics 1.1 7.3.6.
 */
#include <string.h>

#include "cm_lib.h"
#include "lib/bytes.h"
#include "nvmeof/limits.h"

static void req_accepted(struct conf *conf)
{
    cm_expect_accepted(cm_attempt_new(conf, &(struct rc_config){0}));
}

static void accepted_v6(struct conf *conf)
{
    cm_expect_accepted(
        cm_attempt_new(conf, &(struct rc_config){.is_v6 = true}));
}

static void rep_fields(struct conf *conf)
{
    struct rc *rc = rc_open(conf, &(struct rc_config){.responder_resources = 3,
                                                      .initiator_depth = 2});

    conf_equal(conf, "remote communication id", rc->rep.remote_comm_id,
               rc->comm_id);
    conf_check(conf, rc->rep.local_comm_id != 0,
               "the REP has communication id 0");
    conf_check(conf, rc->rep.local_qpn > GSI_QPN, "QPN %u", rc->rep.local_qpn);
    conf_check(
        conf, rc->rep.responder_resources <= 2,
        "the REP has responder resources %u: the REQ's initiator depth was 2",
        rc->rep.responder_resources);
    conf_check(
        conf, rc->rep.initiator_depth <= 3,
        "the REP has initiator depth %u: the REQ's responder resources were 3",
        rc->rep.initiator_depth);
    conf_check(conf, !rc->rep.srq, "the REP claims a shared receive queue");
    rc_close(rc);
}

static void rep_private(struct conf *conf)
{
    struct rc *rc =
        rc_open(conf, &(struct rc_config){.hrqsize = 32, .hsqsize = 31});
    uint16_t crqsize;

    conf_check(
        conf,
        nvme_rdma_rep_parse(&crqsize, rc->rep_private, CM_REP_PRIVATE_LEN),
        "the REP's private data has record format %u",
        get_le16(rc->rep_private));
    conf_check(conf, crqsize >= 32,
               "CRQSIZE %u is less than the 32 commands of our queue", crqsize);
    rc_close(rc);
}

static void rep_transaction(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});
    const struct packet *rep;

    rc_send_req(attempt->rc, &attempt->req);
    rep = rc_take_cm(attempt->rc, CM_REP);
    conf_equal(conf, "transaction id of the REP", rep->mad.transaction_id,
               attempt->rc->tid);
    conf_equal(conf, "method", rep->mad.method, MAD_METHOD_SEND);
    conf_equal(conf, "class version", rep->mad.class_version,
               MAD_CLASS_VERSION_CM);
    conf_equal(conf, "status", rep->mad.status, 0);
    conf_equal(conf, "Q_Key", rep->deth.qkey, GSI_QKEY);
    conf_equal(conf, "source QP of the REP", rep->deth.src_qp, GSI_QPN);
    rc_send_rej(attempt->rc, CM_ANSWERS_REP, CM_REJ_CONSUMER);
}

static void ids_differ(struct conf *conf)
{
    struct rc *a = rc_open(conf, &(struct rc_config){0});
    struct rc *b = rc_open(conf, &(struct rc_config){0});

    conf_check(conf, a->rep.local_comm_id != b->rep.local_comm_id,
               "two connections have the same communication id");
    conf_check(conf, a->rep.local_qpn != b->rep.local_qpn,
               "two connections have the same queue pair");
    rc_close(a);
    rc_close(b);
}

/* ---- Refused by the CM. */

#define REFUSED(name, why, change)                                             \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct cm_attempt *attempt =                                           \
            cm_attempt_new(conf, &(struct rc_config){0});                      \
        struct cm_rej rej;                                                     \
                                                                               \
        change;                                                                \
        cm_expect_rej(attempt, why, &rej);                                     \
        conf_expect_alive(conf);                                               \
    }

REFUSED(service_unknown, CM_REJ_INVALID_SERVICE_ID,
        attempt->req.service_id = rdma_ip_cm_service_id(4421))
REFUSED(service_udp, CM_REJ_INVALID_SERVICE_ID,
        attempt->req.service_id = (uint64_t)RDMA_IP_CM_PS_UDP << 16 | 4420)
REFUSED(transport_uc, CM_REJ_INVALID_TRANSPORT_TYPE,
        attempt->req.transport_service_type = CM_TRANSPORT_UC)
REFUSED(transport_rd, CM_REJ_INVALID_TRANSPORT_TYPE,
        attempt->req.transport_service_type = CM_TRANSPORT_RD)
REFUSED(transport_xrc, CM_REJ_INVALID_TRANSPORT_TYPE,
        attempt->req.transport_service_type = CM_TRANSPORT_EXTENDED)
REFUSED(gid_local, CM_REJ_INVALID_GID, attempt->req.local_gid.bytes[15] ^= 1)
REFUSED(gid_remote, CM_REJ_INVALID_GID,
        attempt->req.remote_gid.bytes[15] ^= 0x10)
REFUSED(mtu_zero, CM_REJ_INVALID_MTU, attempt->req.path_mtu = 0)
REFUSED(mtu_reserved, CM_REJ_INVALID_MTU, attempt->req.path_mtu = 6)

static void mtu_too_large(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});
    uint8_t largest = conf_target(conf)->path_mtu;
    struct cm_rej rej;

    if (largest == IB_MTU_4096) {
        conf_not_applicable(conf, "the port can carry path MTU 4096");
    }
    attempt->req.path_mtu = (uint8_t)(largest + 1);
    cm_expect_rej(attempt, CM_REJ_INVALID_MTU, &rej);
    conf_equal(conf, "length of the additional information", rej.ari_len, 1);
    conf_equal(conf, "largest path MTU in the additional information",
               rej.ari[0], largest);
}

static void mtu_each(struct conf *conf)
{
    for (uint8_t mtu = IB_MTU_256; mtu <= conf_target(conf)->path_mtu; mtu++) {
        struct cm_attempt *attempt =
            cm_attempt_new(conf, &(struct rc_config){.path_mtu = mtu});

        cm_expect_accepted(attempt);
    }
}

/* Expect a REJ with any reason, because the specification leaves it open. */
static void refused_somehow(struct cm_attempt *attempt)
{
    struct conf *conf = attempt->rc->conf;
    struct cm_rej rej;

    rc_send_req(attempt->rc, &attempt->req);
    rc_take_rej(attempt->rc, &rej);
    conf_note(conf, "the REJ has reason %u", rej.reason);
    conf_expect_alive(conf);
}

static void qpn_of_management(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});

    attempt->req.local_qpn = GSI_QPN;
    refused_somehow(attempt);
}

static void ip_cm_version(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});

    attempt->private_data[RDMA_IP_CM_VERSION] = 0x20;
    refused_somehow(attempt);
}

static void ip_cm_family(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});

    attempt->private_data[RDMA_IP_CM_IP_VERSION] = 0x70;
    refused_somehow(attempt);
}

static void resources_zero(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});
    struct cm_rej rej;

    attempt->req.responder_resources = 0;
    if (conf_target(conf)->is_ours) {
        cm_expect_nvme_rej(attempt, NVME_RDMA_INVALID_IRD);
        return;
    }
    /* A target that never READs a host's memory may accept this. */
    rc_send_req(attempt->rc, &attempt->req);
    if (rc_take_answer(attempt->rc, &rej)) {
        rc_send_rej(attempt->rc, CM_ANSWERS_REP, CM_REJ_CONSUMER);
    } else {
        cm_check_nvme_rej(attempt, &rej, NVME_RDMA_INVALID_IRD);
    }
}

static void depth_zero(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});

    /* Hosts may do without READs of the target's memory. */
    attempt->req.initiator_depth = 0;
    cm_expect_accepted(attempt);
}

static void depth_large(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});

    attempt->req.initiator_depth = 255;
    attempt->req.responder_resources = 255;
    cm_expect_accepted(attempt);
    conf_check(conf, attempt->rc->rep.initiator_depth >= 1,
               "the REP has initiator depth 0, but the drive READs the data of "
               "writes");
}

/* ---- Refused by NVMe: 7.3.6.3. */

#define NVME_REFUSED(name, status, change)                                     \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct cm_attempt *attempt =                                           \
            cm_attempt_new(conf, &(struct rc_config){0});                      \
                                                                               \
        change;                                                                \
        cm_expect_nvme_rej(attempt, status);                                   \
        conf_expect_alive(conf);                                               \
    }

NVME_REFUSED(recfmt, NVME_RDMA_INVALID_RECFMT,
             put_le16(attempt->nvme + RDMA_REQ_RECFMT, 1))
NVME_REFUSED(recfmt_high, NVME_RDMA_INVALID_RECFMT,
             put_le16(attempt->nvme + RDMA_REQ_RECFMT, 0x100))
NVME_REFUSED(qid_large, NVME_RDMA_INVALID_QID,
             put_le16(attempt->nvme + RDMA_REQ_QID, 0xffff))
NVME_REFUSED(hsqsize_zero, NVME_RDMA_INVALID_HSQSIZE,
             put_le16(attempt->nvme + RDMA_REQ_HSQSIZE, 0))
NVME_REFUSED(hsqsize_large, NVME_RDMA_INVALID_HSQSIZE,
             (put_le16(attempt->nvme + RDMA_REQ_HSQSIZE, 0xffff),
              put_le16(attempt->nvme + RDMA_REQ_HRQSIZE, 0xffff)))
NVME_REFUSED(hrqsize_zero, NVME_RDMA_INVALID_HRQSIZE,
             put_le16(attempt->nvme + RDMA_REQ_HRQSIZE, 0))

static void rej_recfmt(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});
    struct cm_rej rej;

    put_le16(attempt->nvme + RDMA_REQ_RECFMT, 1);
    cm_expect_rej(attempt, CM_REJ_CONSUMER, &rej);
    conf_equal(conf, "record format of the REJ",
               get_le16(rej.private_data + RDMA_REJ_RECFMT), 0);
}

static void cntlid_unknown(struct conf *conf)
{
    struct cm_attempt *attempt =
        cm_attempt_new(conf, &(struct rc_config){.qid = 1, .cntlid = 0xffe0});
    struct cm_rej rej;

    rc_send_req(attempt->rc, &attempt->req);
    if (rc_take_cm_within(attempt->rc, CM_REP, CM_QUIET_US) != NULL) {
        conf_not_applicable(conf, "the target accepts the REQ and checks the "
                                  "CNTLID in Connect, as it may");
    }
    rc_take_rej(attempt->rc, &rej);
    conf_equal(conf, "REJ reason", rej.reason, CM_REJ_CONSUMER);
    conf_equal(conf, "NVMe status", get_le16(rej.private_data + RDMA_REJ_STS),
               NVME_RDMA_INVALID_CNTLID);
}

/* The target ignores reserved bytes of the private data. */
static void private_reserved(struct conf *conf)
{
    struct cm_attempt *attempt = cm_attempt_new(conf, &(struct rc_config){0});

    memset(attempt->nvme + 10, 0xa5, NVME_RDMA_REQ_LEN - 10);
    memset(attempt->nvme + NVME_RDMA_REQ_LEN, 0x5a,
           CM_REQ_PRIVATE_LEN - RDMA_IP_CM_LEN - NVME_RDMA_REQ_LEN);
    cm_expect_accepted(attempt);
}

#define TEST(id, clause, purpose, fn) CONF_TEST(id, clause, purpose, fn)

static const struct conf_test tests[] = {
    TEST("req.accepted", "IBTA 12.6.5",
         "a correct REQ is accepted; RTU, DREQ and DREP follow", req_accepted),
    TEST("req.accepted-v6", "IBTA 12.6.5, A11",
         "a correct REQ over IPv6 is accepted", accepted_v6),
    TEST("rep.fields", "IBTA 12.6.8, 12.7.29",
         "the REP has correct ids, QPN and depths", rep_fields),
    TEST("rep.private", "NVMe-oF 1.1 7.3.6.3",
         "CRQSIZE in the REP is at least our submission queue", rep_private),
    TEST("rep.mad", "IBTA 13.4.2", "the REP has a correct MAD header",
         rep_transaction),
    TEST("rep.ids", "IBTA 12.7.1",
         "each connection has its own communication id and queue pair",
         ids_differ),
    TEST("req.service", "IBTA 12.6.7.2 reason 8",
         "a REQ for a port on which nobody listens is refused",
         service_unknown),
    TEST("req.service-udp", "IBTA 12.6.7.2 reason 8",
         "a REQ for the UDP port space is refused", service_udp),
    TEST("req.uc", "IBTA 12.6.7.2 reason 9",
         "a REQ for an unreliable connection is refused", transport_uc),
    TEST("req.rd", "IBTA 12.6.7.2 reason 9",
         "a REQ for reliable datagrams is refused", transport_rd),
    TEST("req.xrc", "IBTA 12.6.7.2 reason 9",
         "a REQ for the extended transport is refused", transport_xrc),
    TEST("req.gid-local", "IBTA 12.6.7.2 reason 12",
         "a REQ whose local GID is not the sender's is refused", gid_local),
    TEST("req.gid-remote", "IBTA 12.6.7.2 reason 12",
         "a REQ whose remote GID is not the target's is refused", gid_remote),
    TEST("req.mtu-zero", "IBTA 12.6.7.2 reason 26",
         "a REQ with path MTU code 0 is refused", mtu_zero),
    TEST("req.mtu-reserved", "IBTA 12.6.7.2 reason 26",
         "a REQ with path MTU code 6 is refused", mtu_reserved),
    TEST("req.mtu-large", "IBTA 12.6.7.2 reason 26",
         "a REQ with too large a path MTU is refused, and the REJ names the "
         "largest",
         mtu_too_large),
    TEST("req.mtu-each", "IBTA 12.7.13",
         "every path MTU that the port can carry is accepted", mtu_each),
    TEST("req.qpn", "IBTA 12.7.9", "a REQ for the reserved QPN 1 is refused",
         qpn_of_management),
    TEST("req.ip-version", "IBTA A11.2",
         "a REQ with an unknown version of the RDMA IP CM header is refused",
         ip_cm_version),
    TEST("req.ip-family", "IBTA A11.2", "a REQ with IP version 7 is refused",
         ip_cm_family),
    TEST("req.resources-zero", "NVMe-oF 1.1 7.3.6.4",
         "a host that allows the target no READs is refused, or accepted by a "
         "target that needs none",
         resources_zero),
    TEST("req.depth-zero", "IBTA 12.7.30",
         "a host that sends no READs is accepted", depth_zero),
    TEST("req.depth-large", "IBTA 12.7.29",
         "a REQ with the largest depths is accepted, with depths that the "
         "target has",
         depth_large),
    TEST("nvme.recfmt", "NVMe-oF 1.1 7.3.6.4 status 2",
         "a REQ with record format 1 is refused", recfmt),
    TEST("nvme.recfmt-high", "NVMe-oF 1.1 7.3.6.4 status 2",
         "a REQ with record format 100h is refused", recfmt_high),
    TEST("nvme.rej-recfmt", "NVMe-oF 1.1 7.3.6.4",
         "the NVMe private data of a REJ has record format 0", rej_recfmt),
    TEST("nvme.qid", "NVMe-oF 1.1 7.3.6.4 status 3",
         "a REQ for queue 65535 is refused", qid_large),
    TEST("nvme.hsqsize-zero", "NVMe-oF 1.1 7.3.6.4 status 4",
         "a REQ for a submission queue of one entry is refused", hsqsize_zero),
    TEST("nvme.hsqsize-large", "NVMe-oF 1.1 7.3.6.4 status 4",
         "a REQ for a submission queue of 65536 entries is refused",
         hsqsize_large),
    TEST("nvme.hrqsize-zero", "NVMe-oF 1.1 7.3.6.4 status 5",
         "a REQ of a host without receive buffers for responses is refused",
         hrqsize_zero),
    TEST(
        "nvme.cntlid", "NVMe-oF 1.1 7.3.6.4 status 9",
        "a REQ for an I/O queue of a controller that does not exist is refused",
        cntlid_unknown),
    TEST("nvme.reserved", "NVMe-oF 1.1 7.3.6.2",
         "reserved bytes of the private data are ignored", private_reserved),
};
CONF_TESTS(conf_tests_cm_req, "cm", tests);
