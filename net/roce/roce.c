/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport as a whole: reset, and the check of a loaded state. */
#include "net/roce/internal.h"

#include <string.h>

enum { /* values after a reset, the same as mlx5's */
       CNP_DSCP = 48,
       CNP_PRIORITY = 6,
       LINE_MBPS = 25000,
       RATE_MAX_MBPS = 0xfffff, /* largest value of the register */
};

void roce_reset(struct roce *roce)
{
    memset(roce->state, 0, sizeof(*roce->state));
    memset(roce->waited_for, 0, sizeof(roce->waited_for));
    roce->state->window = ROCE_WINDOW;
    timers_reset(&roce->state->timers);
    timers_reset(&roce->state->pacing);
    roce->state->ecn = (struct roce_ecn){
        .cnp_dscp = CNP_DSCP,
        .cnp_priority = CNP_PRIORITY,
        .line_mbps = LINE_MBPS,
    };
}

static bool ecn_valid(const struct roce_ecn *ecn)
{
    return ecn->codepoint < 3 && ecn->cnp_dscp <= 63 &&
           ecn->cnp_priority <= 7 && ecn->line_mbps != 0 &&
           ecn->line_mbps <= RATE_MAX_MBPS;
}

static bool path_valid(const struct rdma_objects *o,
                       const struct roce_path *path)
{
    return path->laddr < RDMA_LADDRS && path->neigh < RDMA_NEIGHS &&
           (!path->has_neigh || o->neighs[path->neigh].exists) &&
           path->path_mtu <= 5 && path->max_rd_atomic <= ROCE_MAX_RD_ATOMIC &&
           path->max_dest_rd_atomic <= ROCE_MAX_DEST_RD_ATOMIC &&
           path->ack_timeout <= 31 && path->rnr_timer <= 31 &&
           path->priority <= 7 && path->ecn <= 3;
}

/* Whether the started requests cover the PSNs up to next_psn without gaps. */
static bool sent_valid(const struct roce_requester *req, const uint32_t mtu)
{
    uint16_t count = (uint16_t)(req->sent_tail - req->sent_head);
    uint32_t psn = req->next_psn;
    unsigned int reads = 0;

    if (count > ROCE_INFLIGHT ||
        (uint16_t)(req->sent_tx - req->sent_head) > count) {
        return false;
    }
    for (uint16_t i = req->sent_tail; i != req->sent_head; i--) {
        const struct roce_sent *sent =
            &req->sent[(uint16_t)(i - 1) % ROCE_INFLIGHT];

        if (sent->opcode > VERBS_WR_LOCAL_INV &&
            sent->status == VERBS_WC_SUCCESS) {
            return false;
        }
        if (sent->packets != 0 &&
            sent->packets != roce_packets(sent->len_bytes, mtu)) {
            return false;
        }
        psn = psn_add(psn, 0u - sent->packets);
        if (sent->first_psn != psn) {
            return false;
        }
        reads += sent->opcode == VERBS_WR_READ && sent->packets != 0;
    }
    return reads == req->reads && psn_diff(req->una_psn, psn) >= 0 &&
           psn_diff(req->tx_psn, req->una_psn) >= 0 &&
           psn_diff(req->high_psn, req->tx_psn) >= 0 &&
           psn_diff(req->next_psn, req->high_psn) >= 0;
}

/* Whether sent[sent_tx] has tx_psn, or all started requests were sent. */
static bool sent_tx_valid(const struct roce_requester *req)
{
    const struct roce_sent *sent = &req->sent[req->sent_tx % ROCE_INFLIGHT];

    if (req->sent_tx == req->sent_tail) {
        return req->tx_psn == req->next_psn;
    }
    return psn_diff(req->tx_psn, sent->first_psn) >= 0 &&
           (sent->packets == 0 ||
            psn_diff(req->tx_psn, psn_add(sent->first_psn, sent->packets)) < 0);
}

static bool responder_valid(const struct roce_responder *resp, uint32_t mtu)
{
    uint16_t count = (uint16_t)(resp->read_tail - resp->read_head);
    uint16_t done = (uint16_t)(resp->read_next - resp->read_head);
    uint16_t fresh = (uint16_t)(resp->read_fresh - resp->read_head);
    const struct roce_read *read =
        &resp->reads[resp->read_next % ROCE_MAX_DEST_RD_ATOMIC];

    if (count > ROCE_MAX_DEST_RD_ATOMIC || fresh > count || done > fresh ||
        resp->epsn > PSN_MASK || resp->dropped_psn > PSN_MASK ||
        resp->message > ROCE_IN_WRITE || resp->reply > ROCE_REPLY_NAK ||
        resp->offset > resp->recv_len) {
        return false;
    }
    for (uint16_t i = resp->read_head; i != resp->read_tail; i++) {
        const struct roce_read *r = &resp->reads[i % ROCE_MAX_DEST_RD_ATOMIC];

        if (r->packets != roce_packets(r->len_bytes, mtu)) {
            return false;
        }
    }
    return done == count ? resp->read_packet == 0
                         : resp->read_packet < read->packets;
}

static bool qp_valid(const struct roce *roce, uint32_t slot)
{
    const struct rdma_qp *rqp = &roce->objects->qps[slot];
    const struct roce_qp *qp = &roce->state->qps[slot];
    bool is_live = rqp->state == VERBS_QPS_RTR || rqp->state == VERBS_QPS_RTS;

    if (!roce_has_qp(roce, slot)) {
        return true;
    }
    if (!path_valid(roce->objects, &qp->path) || !dcqcn_valid(&qp->dcqcn)) {
        return false;
    }
    if (rqp->type == VERBS_QP_UD || !is_live) {
        return qp->req.sent_head == qp->req.sent_tail &&
               qp->resp.read_next == qp->resp.read_tail;
    }
    return qp->path.has_neigh && qp->path.path_mtu != 0 &&
           sent_valid(&qp->req, roce_mtu(qp)) && sent_tx_valid(&qp->req) &&
           responder_valid(&qp->resp, roce_mtu(qp));
}

/* Rebuild queues and heap from the QPs; an entry too many is harmless. */
static void rebuild_lists(struct roce *roce)
{
    struct roce_state *state = roce->state;
    struct timers timers;

    memcpy(timers.due, state->timers.due, sizeof(timers.due));
    timers_reset(&state->timers);
    timers_reset(&state->pacing);
    memset(state->links, 0, sizeof(state->links));
    memset(state->queues, 0, sizeof(state->queues));
    memset(state->parked, 0, sizeof(state->parked));
    memset(state->port_blocked, 0, sizeof(state->port_blocked));
    memset(roce->waited_for, 0, sizeof(roce->waited_for));
    for (uint32_t slot = 0; slot < RDMA_QPS; slot++) {
        if (roce_has_qp(roce, slot)) {
            roce_timer_set(roce, slot, timers.due[slot]);
            roce_schedule(roce, slot, ROCE_LIST_CONTROL);
            roce_schedule(roce, slot, ROCE_LIST_DATA);
        }
    }
}

bool roce_reload(struct roce *roce)
{
    if (roce->state->window == 0 || !ecn_valid(&roce->state->ecn)) {
        return false;
    }
    for (uint32_t slot = 0; slot < RDMA_QPS; slot++) {
        if (!qp_valid(roce, slot)) {
            return false;
        }
    }
    rebuild_lists(roce);
    return true;
}
