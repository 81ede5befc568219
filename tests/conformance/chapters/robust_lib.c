/* SPDX-License-Identifier: BSD-2-Clause */
#include "robust_lib.h"

#include "firmware/native/native.h"
#include "lib/bytes.h"

enum {
    MAC_BYTES = 12,
    CM_RETRIES = 1,
    RC_RETRIES = 1,
    RETRIES_US = 400000,
    PERMILLE = 1000,
};

static bool is_roce(const struct conf_frame *frame, struct packet *packet)
{
    return packet_parse(packet, frame->data, *frame->len_bytes) &&
           packet->has_bth;
}

static bool is_kind(const struct packet *packet, enum robust_kind kind)
{
    bool is_cm = packet->bth.dest_qp == GSI_QPN;

    return kind == ROBUST_ANY || is_cm == (kind == ROBUST_CM);
}

static enum conf_verdict apply_fault(struct robust_hand *hand,
                                     const struct conf_frame *frame,
                                     enum robust_fault fault)
{
    uint64_t random;

    hand->hits[fault]++;
    switch (fault) {
    case ROBUST_LOSE:
        return CONF_DROP;
    case ROBUST_DOUBLE:
        return CONF_TWICE;
    case ROBUST_DELAY:
        return CONF_LATER;
    case ROBUST_BEND:
        random = conf_random(hand->conf);
        frame->data[MAC_BYTES +
                    (random >> 8) % (*frame->len_bytes - MAC_BYTES)] ^=
            (uint8_t)(1u << (random & 7));
        return CONF_PASS;
    }
    return CONF_PASS;
}

static enum conf_verdict robust_filter(void *ctx,
                                       const struct conf_frame *frame)
{
    struct robust_hand *hand = ctx;
    struct packet packet;

    if (!hand->is_active || !is_roce(frame, &packet)) {
        return CONF_PASS;
    }
    if (hand->is_deaf) {
        return CONF_DROP;
    }
    for (unsigned int i = 0; i < ARRAY_LEN(hand->chance); i++) {
        if (hand->chance[i] != 0 &&
            conf_random(hand->conf) % PERMILLE < hand->chance[i]) {
            return apply_fault(hand, frame, (enum robust_fault)i);
        }
    }
    if (hand->kind != ROBUST_ANY && !is_kind(&packet, hand->kind)) {
        return CONF_PASS;
    }
    if (frame->is_from_target != hand->is_from_target ||
        hand->seen++ != hand->at) {
        return CONF_PASS;
    }
    hand->was_hit = true;
    return apply_fault(hand, frame, hand->fault);
}

struct robust_hand *robust_hand_new(struct conf *conf)
{
    struct robust_hand *hand = conf_alloc(conf, sizeof(*hand));

    hand->conf = conf;
    hand->at = UINT32_MAX;
    conf_set_filter(conf, robust_filter, hand);
    return hand;
}

uint8_t robust_ack_timeout(const struct conf *conf)
{
    return ROBUST_ACK_TIMEOUT + conf_patience(conf);
}

struct native_host *robust_host(struct conf *conf)
{
    struct native_host *host = conf_host(conf);

    host->net.cm.config.response_timeout = ROBUST_CM_TIMEOUT;
    return host;
}

void robust_resolve(struct conf *conf, const struct conf_session *session,
                    struct host_target *target)
{
    robust_host(conf);
    conf_resolve(conf, session, target);
    target->ack_timeout = robust_ack_timeout(conf);
}

void robust_connect(struct conf *conf, struct nvme_host *host,
                    const struct host_target *target)
{
    uint16_t status = host_connect(host, target);

    conf_check(
        conf, status != HOST_LOST,
        "connect failed: no answer, or refused with REJ %u, NVMe status %u",
        host->conn[0].reject_reason, host->conn[0].reject_status);
    conf_status(conf, "connect", status, NVME_SC_SUCCESS);
}

/* ---- Connections made by hand. */

struct rc *robust_rc_half(struct conf *conf, const struct rc_config *config)
{
    struct rc_config own = *config;
    uint8_t private_data[CM_REQ_PRIVATE_LEN];
    struct cm_req req;
    struct rc *rc;

    if (own.ack_timeout == 0) {
        own.ack_timeout = robust_ack_timeout(conf);
    }
    if (own.retry_count == 0) {
        own.retry_count = RC_RETRIES + conf_patience(conf);
    }
    rc = rc_new(conf, &own);
    rc_make_req(rc, &req, private_data);
    req.local_cm_timeout = robust_ack_timeout(conf);
    req.remote_cm_timeout = robust_ack_timeout(conf);
    req.max_cm_retries = CM_RETRIES;
    rc_send_req(rc, &req);
    rc_take_rep(rc);
    return rc;
}

struct rc *robust_rc(struct conf *conf, const struct rc_config *config)
{
    struct rc *rc = robust_rc_half(conf, config);

    rc_send_rtu(rc);
    return rc;
}

static struct rc *robust_connected_rc(struct conf *conf,
                                      const struct rc_config *config)
{
    struct rc *rc = robust_rc(conf, config);

    rc_connect(rc);
    return rc;
}

struct nvmf_pair robust_pair(struct conf *conf)
{
    struct nvmf_pair pair = {
        .admin = robust_connected_rc(conf, &(struct rc_config){0}),
    };

    conf_status(conf, "Property Set CC",
                nvmf_set(pair.admin, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(pair.admin, CSTS_RDY, CSTS_RDY);
    pair.io = robust_connected_rc(conf, &(struct rc_config){
                                            .qid = 1,
                                            .cntlid = pair.admin->config.cntlid,
                                        });
    return pair;
}

void robust_let_retries_end(struct conf *conf)
{
    conf_pass(conf, RETRIES_US + conf_patience(conf) * UINT64_C(200000));
}

void robust_expect_clean(struct conf *conf)
{
    conf_set_filter(conf, NULL, NULL);
    /* Nobody reads the wire while the console command runs. */
    robust_let_retries_end(conf);
    limits_expect_idle(conf, ROBUST_IDLE_US);
    conf_expect_alive(conf);
    limits_expect_idle(conf, ROBUST_IDLE_US);
}
