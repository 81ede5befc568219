/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RNIC driver: the data path.  Posting, doorbells, completions and events.
 * Reference: docs/hardware/rnic.md, sections 1, 4 and 5.
 */
#include "firmware/drivers/rnic_internal.h"

/* ---- Posting */

static void mark_dirty(struct verbs *verbs, struct rnic_qp *qp, uint8_t what)
{
    if (!(qp->dirty & DIRTY_LISTED)) {
        verbs->dirty[verbs->dirty_count++] = (uint16_t)(qp - verbs->qps);
    }
    qp->dirty |= (uint8_t)(what | DIRTY_LISTED);
}

static void write_sges(const struct verbs *verbs, uint8_t *wqe,
                       const struct verbs_send_wr *wr)
{
    for (unsigned int i = 0; i < wr->num_sge; i++) {
        uint8_t *sge = wqe + RNIC_SWQE_SGE + i * RNIC_SGE_LEN;

        dram_store64(sge, RNIC_SGE_ADDR,
                     (uintptr_t)wr->sge[i].addr + verbs->addr_offset);
        dram_store32(sge, RNIC_SGE_LENGTH, wr->sge[i].len_bytes);
        dram_store32(sge, RNIC_SGE_LKEY, wr->sge[i].lkey);
    }
}

static void write_ud(uint8_t *wqe, const struct verbs_send_wr *wr)
{
    dram_store16(wqe, RNIC_SWQE_UD_NEIGH, wr->ud.neigh);
    dram_store8(wqe, RNIC_SWQE_UD_LADDR, wr->ud.laddr);
    dram_store8(wqe, RNIC_SWQE_UD_ROCE,
                wr->ud.is_v1 ? RNIC_ROCE_V1 : RNIC_ROCE_V2);
    dram_store8(wqe, RNIC_SWQE_UD_PRIORITY, wr->ud.priority);
    dram_store8(wqe, RNIC_SWQE_UD_DSCP, wr->ud.dscp);
    dram_store32(wqe, RNIC_SWQE_UD_QPN, wr->ud.dest_qpn);
    dram_store32(wqe, RNIC_SWQE_UD_QKEY, wr->ud.qkey);
}

/* Most inline data are responses of 16 bytes, which need no call. */
static void write_inline(uint8_t *wqe, const struct verbs_sge *sge)
{
    enum { USUAL_LEN = 16 };

    dram_store8(wqe, RNIC_SWQE_SGES, 0);
    dram_store8(wqe, RNIC_SWQE_INLINE_LEN, (uint8_t)sge->len_bytes);
    if (sge->len_bytes == USUAL_LEN) {
        memcpy(wqe + RNIC_SWQE_SGE, sge->addr, USUAL_LEN);
    } else {
        memcpy(wqe + RNIC_SWQE_SGE, sge->addr, sge->len_bytes);
    }
}

bool verbs_post_send(struct verbs *verbs, uint32_t qpn,
                     const struct verbs_send_wr *wr)
{
    static const uint8_t opcodes[] = {
        [VERBS_WR_SEND] = RNIC_WR_SEND,
        [VERBS_WR_SEND_INV] = RNIC_WR_SEND_INV,
        [VERBS_WR_WRITE] = RNIC_WR_WRITE,
        [VERBS_WR_READ] = RNIC_WR_READ,
        [VERBS_WR_LOCAL_INV] = RNIC_WR_LOCAL_INV,
    };
    struct rnic_qp *qp = qp_get(verbs, qpn);
    uint8_t *wqe = qp->sq + (size_t)(qp->sq_pi & qp->sq_mask) * RNIC_SWQE_LEN;
    uint8_t flags = (uint8_t)((wr->signaled ? RNIC_WR_SIGNALED : 0) |
                              (wr->fence ? RNIC_WR_FENCE : 0) |
                              (wr->linked ? RNIC_WR_LINKED : 0) |
                              (wr->inline_data ? RNIC_WR_INLINE : 0));

    ASSERT(wr->num_sge <= VERBS_MAX_SGE);
    if (qp->sq_pi - qp->sq_ci > qp->sq_mask) {
        return false;
    }
    dram_store8(wqe, RNIC_SWQE_OPCODE, opcodes[wr->opcode]);
    dram_store8(wqe, RNIC_SWQE_FLAGS, flags);
    dram_store32(wqe, RNIC_SWQE_INV_KEY, wr->inv_rkey);
    dram_store64(wqe, RNIC_SWQE_WR_ID, wr->wr_id);
    dram_store64(wqe, RNIC_SWQE_REMOTE_ADDR, wr->remote_addr);
    dram_store32(wqe, RNIC_SWQE_RKEY, wr->rkey);
    dram_store32(wqe, RNIC_SWQE_AFTER_MEDIA, 0);
    dram_store8(wqe, RNIC_SWQE_PI_ACTION, 0);
    if (__builtin_expect(qp->type == VERBS_QP_UD, 0)) {
        write_ud(wqe, wr);
    }
    if (wr->inline_data) {
        ASSERT(wr->num_sge == 1 && wr->sge[0].len_bytes <= VERBS_MAX_INLINE);
        write_inline(wqe, &wr->sge[0]);
    } else {
        dram_store8(wqe, RNIC_SWQE_SGES, wr->num_sge);
        dram_store8(wqe, RNIC_SWQE_INLINE_LEN, 0);
        write_sges(verbs, wqe, wr);
    }
    qp->sq_pi++;
    mark_dirty(verbs, qp, DIRTY_SQ);
    return true;
}

uint32_t verbs_send_room(const struct verbs *verbs, uint32_t qpn)
{
    uint32_t slot = qpn & SLOT_MASK;
    const struct rnic_qp *qp = &verbs->qps[slot < RNIC_QP_SLOTS ? slot : 0];

    ASSERT(qpn != 0 && qp->qpn == qpn);
    return qp->sq_mask + 1 - (qp->sq_pi - qp->sq_ci);
}

bool verbs_post_recv(struct verbs *verbs, uint32_t qpn, uint64_t wr_id,
                     const struct verbs_sge *sge)
{
    struct rnic_qp *qp = qp_get(verbs, qpn);
    uint8_t *wqe = qp->rq + (size_t)(qp->rq_pi & qp->rq_mask) * RNIC_RWQE_LEN;

    if (qp->rq_pi - qp->rq_ci > qp->rq_mask) {
        return false;
    }
    dram_store64(wqe, RNIC_RWQE_WR_ID, wr_id);
    dram_store64(wqe, RNIC_RWQE_ADDR,
                 (uintptr_t)sge->addr + verbs->addr_offset);
    dram_store32(wqe, RNIC_RWQE_LENGTH, sge->len_bytes);
    dram_store32(wqe, RNIC_RWQE_LKEY, sge->lkey);
    qp->rq_pi++;
    mark_dirty(verbs, qp, DIRTY_RQ);
    return true;
}

void verbs_ud_info(struct verbs_ud_info *info, const void *buffer)
{
    const uint8_t *ud = buffer;

    info->port = ud[RNIC_UD_PORT];
    info->laddr = ud[RNIC_UD_LADDR];
    info->vlan = dram_load16(ud, RNIC_UD_VLAN);
    info->priority = ud[RNIC_UD_PRIORITY];
    info->is_v1 = ud[RNIC_UD_ROCE] == RNIC_ROCE_V1;
    info->src_qpn = dram_load32(ud, RNIC_UD_SRC_QPN);
    memcpy(info->src_mac, ud + RNIC_UD_SRC_MAC, sizeof(info->src_mac));
    memcpy(info->src_ip.bytes, ud + RNIC_UD_SRC_IP, 16);
    memcpy(info->dst_ip.bytes, ud + RNIC_UD_DST_IP, 16);
}

/* ---- Doorbells */

static bool doorbell_push(struct verbs *verbs, uint32_t qpn)
{
    uint32_t taken = shared_load32(verbs->page, RNIC_PAGE_DB_CI);
    uint32_t slot = verbs->db_pi & ((1u << DB_LOG2) - 1);

    if (verbs->db_pi - taken >= 1u << DB_LOG2) {
        verbs->counters.doorbell_waits++;
        return false;
    }
    dram_store32(verbs->doorbells, 4 * slot, qpn);
    verbs->db_pi++;
    verbs->counters.doorbells++;
    return true;
}

void verbs_flush(struct verbs *verbs)
{
    uint32_t db_pi = verbs->db_pi;
    uint32_t kept = 0;

    if (verbs->dirty_count == 0) {
        return;
    }
    hal_dma_wmb(); /* publish entries before indices */
    for (uint32_t i = 0; i < verbs->dirty_count; i++) {
        struct rnic_qp *qp = &verbs->qps[verbs->dirty[i]];

        if (qp->qpn != 0 && (qp->dirty & DIRTY_RQ)) {
            shared_store32(qp->records, RECORD_RQ, qp->rq_pi);
        }
    }
    /*
     * An RNIC that is awake may send what was posted at once.  The answer finds
     * the receive buffers that were posted before, on other QPs, too: QP 1
     * sends the answer to a connection request, and the first message comes on
     * the QP of the connection.
     */
    hal_dma_wmb();
    for (uint32_t i = 0; i < verbs->dirty_count; i++) {
        uint16_t slot = verbs->dirty[i];
        struct rnic_qp *qp = &verbs->qps[slot];

        if (qp->qpn != 0 && (qp->dirty & DIRTY_SQ)) {
            shared_store32(qp->records, RECORD_SQ, qp->sq_pi);
            if (!doorbell_push(verbs, qp->qpn)) {
                qp->dirty = DIRTY_SQ | DIRTY_LISTED;
                verbs->dirty[kept++] = slot;
                continue;
            }
        }
        qp->dirty = 0;
    }
    verbs->dirty_count = kept;
    if (verbs->db_pi != db_pi) {
        hal_dma_wmb(); /* publish doorbells and send indices before DB_PI */
        shared_store32(verbs->page, RNIC_PAGE_DB_PI, verbs->db_pi);
    }
    if (verbs->db_pi != db_pi || kept != 0) {
        rnic_kick_sleeper(verbs);
    }
}

/* ---- Completions and events */

static bool phase_is_new(uint8_t flags, uint32_t ci, uint32_t mask)
{
    bool first_kind = (ci & (mask + 1)) == 0; /* the phase of laps 1, 3, ... */

    return (flags & RNIC_CQE_PHASE) == (first_kind ? RNIC_CQE_PHASE : 0);
}
_Static_assert(RNIC_CQE_PHASE == 1,
               "events and completions have the phase in the same bit");

/* The oldest completion that was not delivered; NULL if there is none. */
static const uint8_t *cq_next_entry(const struct rnic_cq *cq)
{
    const uint8_t *cqe = cq->ring + (size_t)(cq->ci & cq->mask) * RNIC_CQE_LEN;

    return phase_is_new(shared_load8(cqe, RNIC_CQE_FLAGS), cq->ci, cq->mask)
               ? cqe
               : NULL;
}

static bool cq_has_entry(const struct rnic_cq *cq)
{
    return cq_next_entry(cq) != NULL;
}

static const uint8_t *event_slot(const struct verbs *verbs)
{
    return verbs->events +
           (size_t)(verbs->eq_ci & ((1u << EQ_LOG2) - 1)) * RNIC_EQE_LEN;
}

static bool eq_has_entry(const struct verbs *verbs)
{
    return phase_is_new(shared_load8(event_slot(verbs), RNIC_EQE_FLAGS),
                        verbs->eq_ci, (1u << EQ_LOG2) - 1);
}

/* What a completion of a send work request is called. */
static const uint8_t send_wc_opcode[] = {
    [RNIC_WR_SEND] = VERBS_WC_SEND,
    [RNIC_WR_SEND_INV] = VERBS_WC_SEND,
    [RNIC_WR_WRITE] = VERBS_WC_WRITE,
    [RNIC_WR_READ] = VERBS_WC_READ,
    [RNIC_WR_LOCAL_INV] = VERBS_WC_LOCAL_INV,
};

/* The RNIC and the verbs number statuses alike: no table on the data path. */
_Static_assert((int)RNIC_WC_SUCCESS == (int)VERBS_WC_SUCCESS &&
                   (int)RNIC_WC_FLUSHED == (int)VERBS_WC_FLUSHED &&
                   (int)RNIC_WC_RETRY_EXCEEDED ==
                       (int)VERBS_WC_RETRY_EXCEEDED &&
                   (int)RNIC_WC_BAD_RESPONSE == (int)VERBS_WC_BAD_RESPONSE,
               "completion statuses");

/* The flags are in the same 64-bit word. */
#define TIMESTAMP_MASK ((UINT64_C(1) << 56) - 1)
_Static_assert(RNIC_CQE_FLAGS == RNIC_CQE_TIMESTAMP + 7,
               "the timestamp has 56 bits");

/* Deliver a CQE to its QP. */
static inline void completion_pass(struct rnic_qp *qp, const uint8_t *cqe)
{
    uint8_t opcode = cqe[RNIC_CQE_OPCODE];
    struct verbs_wc wc = {
        .wr_id = dram_load64(cqe, RNIC_CQE_WR_ID),
        .qpn = qp->qpn,
        .opcode = VERBS_WC_SEND,
        .status = (enum verbs_wc_status)cqe[RNIC_CQE_STATUS],
        .len_bytes = dram_load32(cqe, RNIC_CQE_LENGTH),
        .timestamp_ns = dram_load64(cqe, RNIC_CQE_TIMESTAMP) & TIMESTAMP_MASK,
    };

    if (opcode == RNIC_WR_RECV) {
        wc.opcode = VERBS_WC_RECV;
        if (cqe[RNIC_CQE_FLAGS] & RNIC_CQE_WITH_INV) {
            wc.with_inv = true;
            wc.inv_rkey = dram_load32(cqe, RNIC_CQE_INV_KEY);
        }
        qp->rq_ci++;
    } else {
        uint32_t wqe = dram_load16(cqe, RNIC_CQE_WQE);

        if (opcode < ARRAY_LEN(send_wc_opcode)) {
            wc.opcode = (enum verbs_wc_opcode)send_wc_opcode[opcode];
        }
        /* This request and every unsignaled one before it are complete. */
        qp->sq_ci += ((wqe - qp->sq_ci) & qp->sq_mask) + 1;
    }
    qp->ops->completion(qp->ctx, &wc);
}

/* Deliver one CQE, unless its QP is destroyed. */
static inline void completion_deliver(struct verbs *verbs, const uint8_t *cqe)
{
    uint32_t qpn = dram_load32(cqe, RNIC_CQE_QPN);
    struct rnic_qp *qp = qp_slot(verbs, qpn);

    if (qp->qpn != qpn || qpn == 0) {
        verbs->counters.stale_completions++;
        return;
    }
    completion_pass(qp, cqe);
}

static unsigned int cq_poll(struct verbs *verbs, struct rnic_cq *cq,
                            unsigned int budget)
{
    const uint8_t *cqe;
    uint32_t start = cq->ci;

    while (cq->ci - start < budget && (cqe = cq_next_entry(cq)) != NULL) {
        hal_dma_rmb();
        cq->ci++;
        completion_deliver(verbs, cqe);
    }
    if (cq->ci != start) {
        hal_dma_mb(); /* read entries before giving them back */
        shared_store32(cq->record, 0, cq->ci);
    }
    return cq->ci - start;
}

static void parity_error_deliver(const struct verbs *verbs, const uint8_t *eqe)
{
    if (verbs->parity_error != NULL) {
        verbs->parity_error(verbs->ctx, dram_load32(eqe, RNIC_EQE_INDEX),
                            dram_load32(eqe, RNIC_EQE_INFO) ==
                                RNIC_TRANSFER_TO_DRAM);
    }
}

static void event_deliver(struct verbs *verbs, const uint8_t *eqe)
{
    uint32_t qpn = dram_load32(eqe, RNIC_EQE_INDEX);
    struct rnic_qp *qp = qp_slot(verbs, qpn);
    struct verbs_event event = {.qpn = qpn};

    switch (eqe[RNIC_EQE_TYPE]) {
    case RNIC_EVENT_QP_FATAL:
        event.type = VERBS_EVENT_QP_FATAL;
        event.status = (enum verbs_wc_status)dram_load32(eqe, RNIC_EQE_INFO);
        break;
    case RNIC_EVENT_QP_ESTABLISHED:
        event.type = VERBS_EVENT_QP_ESTABLISHED;
        break;
    case RNIC_EVENT_QP_DRAINED:
        event.type = VERBS_EVENT_QP_DRAINED;
        break;
    case RNIC_EVENT_PARITY_ERROR: /* is about the RNIC, even if its QP is gone
                                   */
        parity_error_deliver(verbs, eqe);
        return;
    default:
        verbs->counters.other_events++;
        return;
    }
    if (qp->qpn != qpn || qpn == 0) {
        verbs->counters.stale_events++;
        return;
    }
    if (qp->ops->event != NULL) {
        qp->ops->event(qp->ctx, &event);
    }
}

static unsigned int eq_poll(struct verbs *verbs)
{
    uint32_t start = verbs->eq_ci;

    while (eq_has_entry(verbs)) {
        const uint8_t *eqe = event_slot(verbs);

        hal_dma_rmb();
        verbs->eq_ci++;
        event_deliver(verbs, eqe);
    }
    if (verbs->eq_ci != start) {
        hal_dma_mb();
        shared_store32(verbs->page, RNIC_PAGE_EQ_CI, verbs->eq_ci);
    }
    return verbs->eq_ci - start;
}

/*
 * Release the reservations of destroyed QPs.  A destroyed QP writes no more
 * CQEs.  Those that it has written are all read once its CQ has been found
 * empty, or after one lap of the ring.
 */
static void rest_over(struct verbs *verbs)
{
    while (verbs->rest_get != verbs->rest_put) {
        struct rnic_resting *rest =
            &verbs->resting[verbs->rest_get % RNIC_SLOT_FIFO];

        for (unsigned int i = 0; i < ARRAY_LEN(verbs->cq); i++) {
            struct rnic_cq *cq = &verbs->cq[i];

            if (!cq_has_entry(cq) || (int32_t)(cq->ci - rest->until[i]) >= 0) {
                cq->room += rest->claim[i];
                rest->claim[i] = 0;
            }
        }
        if (rest->claim[CQ_SEND] != 0 || rest->claim[CQ_RECV] != 0) {
            return;
        }
        verbs->rest_get++;
        if (rest->slot != MAD_SLOT) {
            verbs->free_slots[verbs->free_put++ % RNIC_SLOT_FIFO] = rest->slot;
        }
    }
}

void rnic_forget(struct verbs *verbs, uint32_t qpn)
{
    for (unsigned int i = 0; i < ARRAY_LEN(verbs->cq); i++) {
        /* A copy, to walk ahead without consuming. */
        struct rnic_cq cq = verbs->cq[i];

        for (; cq_has_entry(&cq) && cq.ci - verbs->cq[i].ci <= cq.mask;
             cq.ci++) {
            uint8_t *cqe = cq.ring + (size_t)(cq.ci & cq.mask) * RNIC_CQE_LEN;

            if (dram_load32(cqe, RNIC_CQE_QPN) == qpn) {
                dram_store32(cqe, RNIC_CQE_QPN, 0);
            }
        }
    }
    for (uint32_t n = 0, ci = verbs->eq_ci; n < 1u << EQ_LOG2; n++, ci++) {
        uint32_t mask = (1u << EQ_LOG2) - 1;
        uint8_t *eqe = verbs->events + (size_t)(ci & mask) * RNIC_EQE_LEN;

        if (!phase_is_new(shared_load8(eqe, RNIC_EQE_FLAGS), ci, mask)) {
            break;
        }
        if (dram_load32(eqe, RNIC_EQE_INDEX) == qpn) {
            dram_store32(eqe, RNIC_EQE_INDEX, 0);
        }
    }
}

unsigned int verbs_poll(struct verbs *verbs, unsigned int budget)
{
    unsigned int delivered;
    unsigned int taken;

    if (verbs->rest_get != verbs->rest_put) {
        rest_over(verbs);
    }
    /*
     * Poll events first: "established" comes before the message that caused it.
     */
    delivered = eq_poll(verbs);
    /*
     * Sends first: they free what the messages that are received next need.
     * They cannot keep receives waiting for ever, because nothing is sent
     * without a message that asked for it.
     */
    taken = cq_poll(verbs, &verbs->cq[CQ_SEND], budget);
    taken += cq_poll(verbs, &verbs->cq[CQ_RECV], budget - taken);
    return delivered + taken;
}

/* The QP of a successful completion that is plain; NULL: it is not. */
static inline struct rnic_qp *plain_qp(struct verbs *verbs, const uint8_t *cqe)
{
    uint32_t qpn = dram_load32(cqe, RNIC_CQE_QPN);
    struct rnic_qp *qp = qp_slot(verbs, qpn);
    bool is_good = (qp->qpn == qpn) & (qpn != 0) & (qp->is_plain != NULL) &
                   (cqe[RNIC_CQE_STATUS] == RNIC_WC_SUCCESS);

    return is_good && qp->is_plain(qp->ctx) ? qp : NULL;
}

/* As cq_poll(), up to the first completion that is not plain. */
static unsigned int cq_poll_plain(struct verbs *verbs, struct rnic_cq *cq,
                                  unsigned int budget, bool *is_other)
{
    const uint8_t *cqe;
    uint32_t start = cq->ci;

    while (cq->ci - start < budget && (cqe = cq_next_entry(cq)) != NULL) {
        struct rnic_qp *qp;

        hal_dma_rmb();
        qp = plain_qp(verbs, cqe);
        if (qp == NULL) {
            *is_other = true;
            break;
        }
        cq->ci++;
        completion_pass(qp, cqe);
    }
    if (cq->ci != start) {
        hal_dma_mb(); /* read entries before giving them back */
        shared_store32(cq->record, 0, cq->ci);
    }
    return cq->ci - start;
}

unsigned int verbs_poll_plain(struct verbs *verbs, unsigned int budget,
                              bool *is_other)
{
    unsigned int taken;

    *is_other = verbs->rest_get != verbs->rest_put || eq_has_entry(verbs);
    if (*is_other) {
        return 0;
    }
    taken = cq_poll_plain(verbs, &verbs->cq[CQ_SEND], budget, is_other);
    return taken +
           cq_poll_plain(verbs, &verbs->cq[CQ_RECV], budget - taken, is_other);
}

void verbs_irq_take(struct verbs *verbs)
{
    mmio_write32(verbs->regs + A_RNIC_IRQ_STATUS, BIT(verbs->hart));
}

bool verbs_arm(struct verbs *verbs, bool sends_wait)
{
    if (verbs->dirty_count != 0) {
        /* Requests are not flushed, or the doorbell ring was full. */
        return false;
    }
    shared_store32(verbs->page, RNIC_PAGE_ARMED,
                   sends_wait ? RNIC_ARMED_URGENT : RNIC_ARMED_ALL);
    hal_dma_mb();
    if (eq_has_entry(verbs) || cq_has_entry(&verbs->cq[CQ_SEND]) ||
        cq_has_entry(&verbs->cq[CQ_RECV])) {
        shared_store32(verbs->page, RNIC_PAGE_ARMED, RNIC_ARMED_NOT);
        return false;
    }
    return true;
}
