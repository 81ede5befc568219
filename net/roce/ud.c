/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable datagrams: MADs of QP1.
 * Spec: IBTA Vol 1 section 9.8.3 (UD), 9.6.1.5 (Q_Key); docs/hardware/rnic.md,
 * sections 4 and 5.
 *
 * A datagram to an address that no longer exists is lost, as on a network.  A
 * datagram for a port that has taken nothing for long is dropped too: datagrams
 * behind it may be for the other port, whose connections depend on them.
 */
#include "net/roce/internal.h"

#include <string.h>

enum { MAD_LEN = 256 };

/* A port that has been blocked for this time is stuck. */
#define STUCK_NS UINT64_C(500000000)

static uint32_t ud_mtu(const struct roce_qp *qp)
{
    return qp->path.path_mtu != 0 ? roce_mtu(qp) : MAD_LEN;
}

static void fill_source(struct roce *roce, const struct roce_rx *rx,
                        struct rdma_ud_source *source)
{
    const struct rdma_objects *o = roce->objects;
    *source = (struct rdma_ud_source){
        .port = rx->port,
        .priority = rx->eth.priority,
        .is_v1 = rx->is_v1,
        .vlan = roce_rx_vlan(rx),
        .qpn = get_be24(rx->ext + DETH_SRC_QP),
        .mac = rx->eth.src,
        .src_ip = rx->src,
        .dst_ip = rx->dst,
    };
    for (uint8_t i = 0; i < RDMA_LADDRS; i++) {
        if (roce_rx_is_to(rx, &o->laddrs[i])) {
            source->laddr = i;
            break;
        }
    }
}

/* The buffer for `len` bytes; NULL when the datagram has to be dropped. */
static uint8_t *receive_buffer(struct roce *roce, uint32_t slot, uint32_t len,
                               struct rdma_recv *recv)
{
    const struct rdma_objects *o = roce->objects;
    const struct rdma_qp *rqp = &o->qps[slot];

    if (!rdma_rq_peek(&o->rqs[rqp->rq], &roce->dram, recv) ||
        recv->len_bytes < len) {
        return NULL;
    }
    return rdma_mr_map(o, &roce->dram, rqp->pd, recv->lkey,
                       VERBS_ACCESS_LOCAL_WRITE, recv->addr, len);
}

void roce_ud_rx(struct roce *roce, uint32_t slot, const struct roce_rx *rx)
{
    struct rdma_ud_source source;
    struct rdma_recv recv;
    uint8_t *buf =
        receive_buffer(roce, slot, VERBS_UD_HEADER + rx->payload_len, &recv);

    if ((rx->flags & ROCE_IMMDT) || buf == NULL) {
        roce_count(roce, ROCE_RX_DROPPED);
        return;
    }
    fill_source(roce, rx, &source);
    rdma_ud_source_emit(&source, buf);
    if (rx->payload_len != 0) {
        memcpy(buf + VERBS_UD_HEADER, rx->payload, rx->payload_len);
    }
    roce_rq_advance(roce, slot);
    roce_complete_recv(roce, slot,
                       &(struct rdma_completion){
                           .wr_id = recv.wr_id,
                           .len_bytes = VERBS_UD_HEADER + rx->payload_len,
                           .status = VERBS_WC_SUCCESS,
                       });
}

/* ---- Sending. */

static enum verbs_wc_status check_datagram(const struct roce_qp *qp,
                                           const struct rdma_wr *wr,
                                           uint32_t *len)
{
    uint64_t total = wr->inline_data ? wr->inline_len : 0;

    if (wr->opcode != VERBS_WR_SEND || wr->after_media != 0 ||
        wr->pi_action != 0 || wr->num_sge > RDMA_SGES ||
        wr->inline_len > RDMA_INLINE_MAX || wr->ud_laddr >= RDMA_LADDRS ||
        wr->ud_neigh >= RDMA_NEIGHS || wr->ud_roce > 1 || wr->ud_priority > 7 ||
        wr->ud_dscp > 63 || wr->ud_qpn > 0xffffff) {
        return VERBS_WC_LOCAL_OPERATION;
    }
    for (uint32_t i = 0; i < wr->num_sge && !wr->inline_data; i++) {
        total += wr->sge[i].len_bytes;
    }
    *len = (uint32_t)total;
    return total <= ud_mtu(qp) ? VERBS_WC_SUCCESS : VERBS_WC_LOCAL_LENGTH;
}

static bool add_payload(struct roce *roce, uint32_t slot,
                        const struct rdma_wr *wr, struct frame_tx *tx)
{
    const struct rdma_objects *o = roce->objects;

    if (wr->inline_data) {
        roce_packet_add(tx, wr->inline_bytes, wr->inline_len);
        return true;
    }
    for (uint32_t i = 0; i < wr->num_sge; i++) {
        const struct rdma_sge *sge = &wr->sge[i];
        void *data = rdma_mr_map(o, &roce->dram, o->qps[slot].pd, sge->lkey, 0,
                                 sge->addr, sge->len_bytes);

        if (data == NULL && sge->len_bytes != 0) {
            return false;
        }
        roce_packet_add(tx, data, sge->len_bytes);
    }
    return true;
}

/* Complete the oldest entry, which has been read into `wr`. */
static void complete_oldest(struct roce *roce, uint32_t slot,
                            const struct rdma_wr *wr,
                            enum verbs_wc_status status)
{
    roce_complete_send(roce, slot,
                       &(struct roce_sent){.wr_id = wr->wr_id,
                                           .opcode = wr->opcode,
                                           .signaled = wr->signaled},
                       status);
}

static void fail_oldest(struct roce *roce, uint32_t slot,
                        const struct rdma_wr *wr, enum verbs_wc_status status)
{
    complete_oldest(roce, slot, wr, status);
    roce_qp_fail(roce, slot, status);
}

static bool has_next(struct roce *roce, uint32_t slot, struct rdma_wr *wr)
{
    struct rdma_qp *rqp = roce_rdma_qp(roce, slot);

    return rqp->state == VERBS_QPS_RTS && rqp->sq_next != rqp->sq_pi &&
           rdma_sq_read(rqp, &roce->dram, rqp->sq_next, wr);
}

unsigned int roce_ud_port(struct roce *roce, uint32_t slot)
{
    struct rdma_wr wr;

    return has_next(roce, slot, &wr) && wr.ud_neigh < RDMA_NEIGHS
               ? roce->objects->neighs[wr.ud_neigh].port
               : 0;
}

/* Since when datagrams have waited for this paused priority; now, if this is
 * the first one. */
static uint64_t paused_since(struct roce *roce, unsigned int port,
                             unsigned int priority)
{
    if (!(roce->waited_for[port] & BIT(priority))) {
        roce->waited_for[port] |= (uint8_t)BIT(priority);
        roce->paused_ns[port][priority] = roce->now_ns;
    }
    return roce->paused_ns[port][priority];
}

bool roce_ud_is_paused(struct roce *roce, uint32_t slot, unsigned int port)
{
    struct rdma_wr wr;

    if (!has_next(roce, slot, &wr) ||
        !roce_is_priority_paused(roce, port, wr.ud_priority)) {
        return false;
    }
    (void)paused_since(roce, port, wr.ud_priority & 7);
    return true;
}

/* Whether the port has sent no datagram of that priority for STUCK_NS. */
static bool is_stuck(struct roce *roce, unsigned int port, uint8_t priority)
{
    uint64_t since_ns;

    if (roce->state->port_blocked[port]) {
        since_ns = roce->blocked_ns[port];
    } else if (roce_is_priority_paused(roce, port, priority)) {
        since_ns = paused_since(roce, port, priority & 7);
    } else {
        return false;
    }
    return roce->now_ns - since_ns >= STUCK_NS;
}

void roce_ud_make_way(struct roce *roce, uint32_t slot)
{
    struct rdma_wr wr;

    while (has_next(roce, slot, &wr)) {
        unsigned int port = roce_ud_port(roce, slot);

        if (!is_stuck(roce, port, wr.ud_priority)) {
            if (roce->state->timers.due[slot] == TIMERS_NONE) {
                roce_timer_set(roce, slot, roce->now_ns + STUCK_NS);
            }
            return;
        }
        roce_rdma_qp(roce, slot)->sq_next++;
        complete_oldest(roce, slot, &wr, VERBS_WC_SUCCESS);
        roce_port_left(roce, port);
    }
}

bool roce_ud_build(struct roce *roce, uint32_t slot, unsigned int port,
                   struct frame_tx *tx, struct roce_note *note)
{
    struct rdma_qp *rqp = roce_rdma_qp(roce, slot);
    struct roce_qp *qp = roce_qp(roce, slot);
    enum verbs_wc_status status;
    struct roce_route route;
    struct rdma_wr wr;
    struct bth bth;
    uint32_t len = 0;
    uint8_t *ext;

    while (has_next(roce, slot, &wr) && roce_ud_port(roce, slot) == port &&
           !roce_is_priority_paused(roce, port, wr.ud_priority)) {
        bool is_oldest = rqp->sq_next == rqp->sq_done;

        status = check_datagram(qp, &wr, &len);
        route = (struct roce_route){.laddr = wr.ud_laddr,
                                    .is_v1 = wr.ud_roce != 0,
                                    .neigh = wr.ud_neigh,
                                    .priority = wr.ud_priority,
                                    .dscp = wr.ud_dscp,
                                    .udp_sport = qp->path.udp_sport};
        bth = (struct bth){.opcode = UD_SEND_ONLY,
                           .solicited = wr.solicited,
                           .pkey = BTH_PKEY_DEFAULT,
                           .dest_qp = wr.ud_qpn,
                           .psn = qp->req.next_psn};
        ext = status == VERBS_WC_SUCCESS
                  ? roce_packet_begin(roce->objects, &route, &bth, len, tx)
                  : NULL;
        if (ext != NULL && !add_payload(roce, slot, &wr, tx)) {
            status = VERBS_WC_LOCAL_PROTECTION;
        }
        if ((status != VERBS_WC_SUCCESS || ext == NULL) && !is_oldest) {
            return false; /* wait until the datagrams in this burst are sent */
        }
        if (status != VERBS_WC_SUCCESS) {
            rqp->sq_next++;
            fail_oldest(roce, slot, &wr, status);
            return false;
        }
        rqp->sq_next++;
        if (ext == NULL) {
            complete_oldest(roce, slot, &wr, VERBS_WC_SUCCESS);
            continue;
        }
        deth_emit(&(struct deth){.qkey = wr.ud_qkey, .src_qp = rqp->qpn}, ext);
        roce_packet_end(&bth, tx);
        qp->req.next_psn = psn_add(qp->req.next_psn, 1);
        *note = (struct roce_note){
            .slot = (uint16_t)slot, .kind = ROCE_NOTE_UD, .psn = bth.psn};
        return true;
    }
    return false;
}

void roce_ud_sent(struct roce *roce, uint32_t slot)
{
    struct rdma_qp *rqp = roce_rdma_qp(roce, slot);
    struct rdma_wr wr;

    if (rdma_sq_read(rqp, &roce->dram, rqp->sq_done, &wr)) {
        complete_oldest(roce, slot, &wr, VERBS_WC_SUCCESS);
    }
}

void roce_ud_undo(struct roce *roce, uint32_t slot)
{
    struct roce_qp *qp = roce_qp(roce, slot);

    roce_rdma_qp(roce, slot)->sq_next--;
    qp->req.next_psn = psn_add(qp->req.next_psn, PSN_MASK);
}
