/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RNIC driver: bring-up and queue pairs.
 * Reference: docs/hardware/rnic.md, sections 2 and 3.
 */
#include "firmware/drivers/rnic_internal.h"

#include "firmware/hal/relax.h"

/*
 * Depths sum to less than 8192 over at most 1024 QPs.  A send ring of class n
 * serves NVMe depths above 2^(n-3), so that at most 8192 / (2^(n-3) + 1) rings
 * of class n are in use; the smallest class serves all lower depths.  A few
 * spare rings serve QP 1 and users other than NVMe.
 *
 * A ring reserves as many entries of its CQ as it has itself.  There are send
 * rings for depths down to 2, so that no ring has 8 entries or more for each
 * entry of depth: 1024 rings reserve less than 8 * 8192 entries, the CQ's size.
 * (If 32 were the smallest depth, 198 QPs of depth 33 and 826 QPs of depth 2
 * would reserve 77120 entries.)
 */
const uint16_t rnic_default_sq_rings[RNIC_SQ_CLASSES] = {
    [3] = 1025, [4] = 1025, [5] = 1025, [6] = 911,
    [7] = 482,  [8] = 250,  [9] = 4,    [10] = 4,
};
const uint16_t rnic_default_rq_rings[RNIC_RQ_CLASSES] = {
    [4] = 1025, [5] = 911, [6] = 482, [7] = 250, [8] = 8, [9] = 4, [10] = 4,
};

static const uint32_t cq_log2[2] = {SEND_CQ_LOG2, RECV_CQ_LOG2};

/* ---- Ring memory */

static bool ring_class_init(struct rnic_ring_class *class, struct dram *dram,
                            uint16_t total, size_t len_bytes)
{
    *class = (struct rnic_ring_class){.total = total};
    if (total == 0) {
        return true;
    }
    class->base = dram_reserve(dram, total * len_bytes, 64);
    return class->base != NULL;
}

static uint8_t *ring_class_take(struct rnic_ring_class *class, size_t len_bytes)
{
    uint8_t *ring = class->free;

    if (ring != NULL) {
        memcpy(&class->free, ring, sizeof(class->free));
    } else if (class->carved < class->total) {
        ring = class->base + class->carved++ * len_bytes;
    }
    return ring;
}

static void ring_give(struct rnic_ring_class *class, uint8_t *ring)
{
    memcpy(ring, &class->free, sizeof(class->free));
    class->free = ring;
}

/*
 * Take a ring of at least `depth` entries from the smallest class that has one.
 */
static uint8_t *ring_take(struct rnic_ring_class *classes, unsigned int count,
                          size_t entry_len, uint32_t depth, uint8_t *class_out)
{
    for (unsigned int n = 0; n < count; n++) {
        if (1u << n >= depth) {
            uint8_t *ring = ring_class_take(&classes[n], entry_len << n);

            if (ring != NULL) {
                *class_out = (uint8_t)n;
                return ring;
            }
        }
    }
    return NULL;
}

static bool rings_init(struct verbs *verbs, const struct verbs_config *config)
{
    const uint16_t *sq =
        config->sq_rings != NULL ? config->sq_rings : rnic_default_sq_rings;
    const uint16_t *rq =
        config->rq_rings != NULL ? config->rq_rings : rnic_default_rq_rings;

    /* A class of 32-byte rings would break the alignment of 64 bytes. */
    ASSERT(rq[0] == 0);
    for (unsigned int n = 0; n < RNIC_SQ_CLASSES; n++) {
        if (!ring_class_init(&verbs->sq_class[n], config->dram, sq[n],
                             (size_t)RNIC_SWQE_LEN << n)) {
            return false;
        }
    }
    for (unsigned int n = 0; n < RNIC_RQ_CLASSES; n++) {
        if (!ring_class_init(&verbs->rq_class[n], config->dram, rq[n],
                             (size_t)RNIC_RWQE_LEN << n)) {
            return false;
        }
    }
    return true;
}

/* ---- Bring-up */

static bool memory_init(struct verbs *verbs, const struct verbs_config *config)
{
    struct dram *dram = config->dram;

    verbs->page = dram_alloc(dram, RNIC_PAGE_LEN, 64);
    verbs->commands = dram_alloc(dram, (size_t)RNIC_CMD_LEN << CMD_LOG2, 64);
    verbs->doorbells = dram_alloc(dram, (size_t)4 << DB_LOG2, 64);
    verbs->events = dram_alloc(dram, (size_t)RNIC_EQE_LEN << EQ_LOG2, 64);
    verbs->records =
        dram_alloc(dram, (size_t)RECORD_STRIDE * (RNIC_QP_SLOTS + 2), 64);
    if (verbs->page == NULL || verbs->commands == NULL ||
        verbs->doorbells == NULL || verbs->events == NULL ||
        verbs->records == NULL) {
        return false;
    }
    for (unsigned int i = 0; i < ARRAY_LEN(verbs->cq); i++) {
        struct rnic_cq *cq = &verbs->cq[i];

        cq->ring = dram_alloc(dram, (size_t)RNIC_CQE_LEN << cq_log2[i], 64);
        if (cq->ring == NULL) {
            return false;
        }
        cq->record =
            verbs->records + (size_t)RECORD_STRIDE * (RNIC_QP_SLOTS + i);
        cq->mask = (1u << cq_log2[i]) - 1;
        cq->room = 1u << cq_log2[i];
    }
    return rings_init(verbs, config);
}

static void write_address(struct verbs *verbs, uint32_t reg, const void *ptr)
{
    uint64_t addr = hal_dma_addr(ptr);

    mmio_write32(verbs->hart_regs + reg, (uint32_t)addr);
    mmio_write32(verbs->hart_regs + reg + 4, (uint32_t)(addr >> 32));
}

static bool hart_enable(struct verbs *verbs)
{
    uint32_t sizes = 0;

    write_address(verbs, A_RNIC_HART_PAGE_LO, verbs->page);
    write_address(verbs, A_RNIC_HART_CMD_LO, verbs->commands);
    write_address(verbs, A_RNIC_HART_DB_LO, verbs->doorbells);
    write_address(verbs, A_RNIC_HART_EQ_LO, verbs->events);
    sizes = FIELD_SET(sizes, RNIC_HART_SIZES, CMD, CMD_LOG2);
    sizes = FIELD_SET(sizes, RNIC_HART_SIZES, DB, DB_LOG2);
    sizes = FIELD_SET(sizes, RNIC_HART_SIZES, EQ, EQ_LOG2);
    mmio_write32(verbs->hart_regs + A_RNIC_HART_SIZES, sizes);
    mmio_write32(verbs->hart_regs + A_RNIC_HART_ENABLE, 1);
    return mmio_read32(verbs->hart_regs + A_RNIC_HART_ENABLE) == 1;
}

static bool objects_create(struct verbs *verbs,
                           const struct verbs_config *config)
{
    (void)rnic_cmd_begin(verbs, RNIC_CMD_PD_CREATE, PD);
    if (rnic_cmd_run(verbs) != RNIC_CMD_OK) {
        return false;
    }
    for (unsigned int i = 0; i < ARRAY_LEN(verbs->cq); i++) {
        uint8_t *cmd =
            rnic_cmd_begin(verbs, RNIC_CMD_CQ_CREATE, 2u * verbs->hart + i);

        dram_store8(cmd, RNIC_CQ_HART, verbs->hart);
        dram_store8(cmd, RNIC_CQ_SIZE, (uint8_t)cq_log2[i]);
        dram_store64(cmd, RNIC_CQ_BASE, hal_dma_addr(verbs->cq[i].ring));
        dram_store64(cmd, RNIC_CQ_RECORD, hal_dma_addr(verbs->cq[i].record));
        if (rnic_cmd_run(verbs) != RNIC_CMD_OK) {
            return false;
        }
    }
    verbs->local_key =
        verbs_reg_mr(verbs, config->dram->base, config->dram->size_bytes,
                     VERBS_ACCESS_LOCAL_WRITE);
    return verbs->local_key != VERBS_NO_MR;
}

/* CNPs get the priority and DSCP that other adapters use, too. */
static uint32_t ecn_of(bool has_cnp, bool has_dcqcn)
{
    enum { ECT_0 = 2, CNP_DSCP = 48, CNP_PRIORITY = 6 };
    uint32_t ecn = 0;

    ecn = FIELD_SET(ecn, RNIC_ECN, ANSWER, has_cnp);
    ecn = FIELD_SET(ecn, RNIC_ECN, OBEY, has_dcqcn);
    ecn = FIELD_SET(ecn, RNIC_ECN, CODEPOINT, has_dcqcn ? ECT_0 : 0);
    ecn = FIELD_SET(ecn, RNIC_ECN, CNP_DSCP, CNP_DSCP);
    return FIELD_SET(ecn, RNIC_ECN, CNP_PRIORITY, CNP_PRIORITY);
}

enum init_result verbs_init(struct verbs *verbs,
                            const struct verbs_config *config)
{
    /* An odd stride near 2^13 / golden ratio keeps the QPNs of boots apart. */
    uint16_t generation =
        (uint16_t)(config->generation * 5063u & GENERATION_MASK);

    ASSERT(config->hart < 4);
    memset(verbs, 0, sizeof(*verbs));
    verbs->regs = config->regs;
    verbs->hart = config->hart;
    verbs->parity_error = config->parity_error;
    verbs->ctx = config->ctx;
    verbs->hart_regs =
        config->regs + (uintptr_t)config->hart * RNIC_HART_STRIDE;
    if (mmio_read32(verbs->regs + A_RNIC_ID) != 0x52444d01) {
        return INIT_NO_DEVICE;
    }
    if (!memory_init(verbs, config)) {
        return INIT_NO_MEMORY;
    }
    verbs->addr_offset = hal_dma_offset(verbs->page);
    for (uint32_t slot = 0; slot < RNIC_QP_SLOTS; slot++) {
        verbs->qps[slot].generation = generation;
        verbs->qps[slot].records = verbs->records + slot * RECORD_STRIDE;
        if (slot > MAD_SLOT) {
            verbs->free_slots[verbs->free_put++] = (uint16_t)slot;
        }
    }
    for (uint16_t i = 0; i < RNIC_MR_SLOTS; i++) {
        verbs->mr_variant[i] = (uint8_t)config->generation;
        verbs->free_mrs[verbs->mr_put++] = i;
    }

    mmio_write32(verbs->regs + A_RNIC_CTRL, R_RNIC_CTRL_RESET_MASK);
    while (mmio_read32(verbs->regs + A_RNIC_CTRL) & R_RNIC_CTRL_RESET_MASK) {
        hal_relax();
    }
    if (!hart_enable(verbs) || !objects_create(verbs, config)) {
        return INIT_REFUSED;
    }
    mmio_write32(verbs->regs + A_RNIC_ECN,
                 ecn_of(config->has_cnp, config->has_dcqcn));
    mmio_write32(verbs->regs + A_RNIC_IRQ_ENABLE, BIT(verbs->hart));
    mmio_write32(verbs->regs + A_RNIC_CTRL, R_RNIC_CTRL_ENABLE_MASK);
    return INIT_OK;
}

void rnic_set_line_rate(struct verbs *verbs, uint32_t mbps)
{
    mmio_write32(verbs->regs + A_RNIC_LINE_RATE, mbps);
}

void rnic_set_ecn(struct verbs *verbs, bool has_cnp, bool has_dcqcn)
{
    mmio_write32(verbs->regs + A_RNIC_ECN, ecn_of(has_cnp, has_dcqcn));
}

static uint64_t counter_read(uintptr_t reg)
{
    uint32_t low = mmio_read32(reg);

    return (uint64_t)mmio_read32(reg + 4) << 32 | low;
}

uint64_t rnic_counter_read(const struct verbs *verbs, unsigned int counter)
{
    ASSERT(counter < RNIC_COUNTERS);
    return counter_read(verbs->regs + RNIC_COUNTER_BASE + 8 * counter);
}

uint64_t rnic_iw_counter_read(const struct verbs *verbs, unsigned int counter)
{
    ASSERT(counter < RNIC_IW_COUNTERS);
    return counter_read(verbs->regs + RNIC_IW_COUNTER_BASE + 8 * counter);
}

/* ---- Queue pairs */

/* Create the RNIC's objects of a QP whose software state is filled in. */
static bool qp_command(struct verbs *verbs, const struct rnic_qp *qp,
                       enum verbs_qp_type type)
{
    static const uint8_t types[VERBS_QP_TYPES] = {
        [VERBS_QP_RC] = RNIC_QP_RC,
        [VERBS_QP_UD] = RNIC_QP_UD,
        [VERBS_QP_IW] = RNIC_QP_IW,
    };
    uint32_t slot = qp->qpn & SLOT_MASK;
    uint8_t *cmd = rnic_cmd_begin(verbs, RNIC_CMD_RQ_CREATE, slot);

    dram_store16(cmd, RNIC_RQ_PD, PD);
    dram_store8(cmd, RNIC_RQ_SIZE, qp->rq_class);
    dram_store64(cmd, RNIC_RQ_BASE, hal_dma_addr(qp->rq));
    dram_store64(cmd, RNIC_RQ_RECORD, hal_dma_addr(qp->records + RECORD_RQ));
    if (rnic_cmd_run(verbs) != RNIC_CMD_OK) {
        return false;
    }
    cmd = rnic_cmd_begin(verbs, RNIC_CMD_QP_CREATE, qp->qpn);
    dram_store8(cmd, RNIC_QP_TYPE, types[type]);
    dram_store8(cmd, RNIC_QP_SQ_SIZE, qp->sq_class);
    dram_store16(cmd, RNIC_QP_PD, PD);
    dram_store16(cmd, RNIC_QP_SEND_CQ, (uint16_t)(2u * verbs->hart + CQ_SEND));
    dram_store16(cmd, RNIC_QP_RECV_CQ, (uint16_t)(2u * verbs->hart + CQ_RECV));
    dram_store16(cmd, RNIC_QP_RQ, (uint16_t)slot);
    dram_store64(cmd, RNIC_QP_SQ_BASE, hal_dma_addr(qp->sq));
    dram_store64(cmd, RNIC_QP_SQ_RECORD, hal_dma_addr(qp->records + RECORD_SQ));
    if (rnic_cmd_run(verbs) != RNIC_CMD_OK) {
        (void)rnic_cmd_begin(verbs, RNIC_CMD_RQ_DESTROY, slot);
        rnic_cmd_must_run(verbs);
        return false;
    }
    return true;
}

static void qp_give_rings(struct verbs *verbs, struct rnic_qp *qp)
{
    if (qp->sq != NULL) {
        ring_give(&verbs->sq_class[qp->sq_class], qp->sq);
    }
    if (qp->rq != NULL) {
        ring_give(&verbs->rq_class[qp->rq_class], qp->rq);
    }
    qp->sq = NULL;
    qp->rq = NULL;
    qp->qpn = 0;
}

static bool qp_create(struct verbs *verbs, const struct verbs_qp_config *config,
                      uint32_t qpn)
{
    struct rnic_qp *qp = qp_slot(verbs, qpn);
    uint32_t sq_depth = MAX(config->sq_depth, 1);
    uint32_t rq_depth = MAX(config->rq_depth, 1);

    ASSERT(qp->qpn == 0);
    qp->sq = ring_take(verbs->sq_class, RNIC_SQ_CLASSES, RNIC_SWQE_LEN,
                       sq_depth, &qp->sq_class);
    qp->rq = ring_take(verbs->rq_class, RNIC_RQ_CLASSES, RNIC_RWQE_LEN,
                       rq_depth, &qp->rq_class);
    if (qp->sq == NULL || qp->rq == NULL) {
        qp_give_rings(verbs, qp);
        return false;
    }
    qp->qpn = qpn;
    qp->sq_pi = qp->sq_ci = 0;
    qp->rq_pi = qp->rq_ci = 0;
    qp->sq_mask = (1u << qp->sq_class) - 1;
    qp->rq_mask = (1u << qp->rq_class) - 1;
    qp->type = (uint8_t)config->type;
    qp->ops = config->ops;
    qp->is_plain = config->ops->is_plain;
    qp->ctx = config->ctx;
    shared_store32(qp->records, RECORD_SQ, 0);
    shared_store32(qp->records, RECORD_RQ, 0);
    if (verbs->cq[CQ_SEND].room <= qp->sq_mask ||
        verbs->cq[CQ_RECV].room <= qp->rq_mask ||
        !qp_command(verbs, qp, config->type)) {
        qp_give_rings(verbs, qp);
        return false;
    }
    verbs->cq[CQ_SEND].room -= qp->sq_mask + 1;
    verbs->cq[CQ_RECV].room -= qp->rq_mask + 1;
    return true;
}

bool verbs_create_qp(struct verbs *verbs, const struct verbs_qp_config *config,
                     uint32_t *qpn)
{
    uint32_t slot;
    uint32_t number;

    if (verbs->free_get == verbs->free_put) {
        return false;
    }
    slot = verbs->free_slots[verbs->free_get % RNIC_SLOT_FIFO];
    number = (uint32_t)verbs->qps[slot].generation << SLOT_BITS | slot;
    if (!qp_create(verbs, config, number)) {
        return false;
    }
    verbs->free_get++;
    verbs->qps[slot].generation =
        (verbs->qps[slot].generation + 1) & GENERATION_MASK;
    *qpn = number;
    return true;
}

bool verbs_create_mad_qp(struct verbs *verbs,
                         const struct verbs_qp_config *config)
{
    static const enum verbs_qp_state way[] = {
        VERBS_QPS_INIT,
        VERBS_QPS_RTR,
        VERBS_QPS_RTS,
    };
    const struct verbs_qp_attr attr = {.qkey = MAD_QKEY};

    ASSERT(config->type == VERBS_QP_UD);
    if (!qp_create(verbs, config, MAD_SLOT)) {
        return false;
    }
    for (unsigned int i = 0; i < ARRAY_LEN(way); i++) {
        if (!verbs_modify_qp(verbs, MAD_SLOT, way[i], &attr)) {
            verbs_destroy_qp(verbs, MAD_SLOT);
            return false;
        }
    }
    return true;
}

/* The arguments of RoCE. */
static void write_roce(uint8_t *cmd, const struct verbs_qp_attr *attr)
{
    dram_store8(cmd, RNIC_MOD_LADDR, attr->laddr);
    dram_store16(cmd, RNIC_MOD_NEIGH, attr->neigh);
    dram_store8(cmd, RNIC_MOD_PATH_MTU, attr->path_mtu);
    dram_store32(cmd, RNIC_MOD_DEST_QPN, attr->dest_qpn);
    dram_store32(cmd, RNIC_MOD_QKEY, attr->qkey);
    dram_store32(cmd, RNIC_MOD_SQ_PSN, attr->sq_psn);
    dram_store32(cmd, RNIC_MOD_RQ_PSN, attr->rq_psn);
    dram_store8(cmd, RNIC_MOD_ACK_TIMEOUT, attr->ack_timeout);
    dram_store8(cmd, RNIC_MOD_RETRIES, attr->retries);
    dram_store8(cmd, RNIC_MOD_RNR_RETRIES, attr->rnr_retries);
    dram_store8(cmd, RNIC_MOD_RNR_TIMER, attr->rnr_timer);
    dram_store8(cmd, RNIC_MOD_PRIORITY, attr->priority);
    dram_store8(cmd, RNIC_MOD_DSCP, attr->dscp);
    dram_store8(cmd, RNIC_MOD_HOP_LIMIT, attr->hop_limit);
    dram_store16(cmd, RNIC_MOD_UDP_SPORT, attr->udp_sport);
    dram_store8(cmd, RNIC_MOD_ROCE, attr->is_v1 ? RNIC_ROCE_V1 : RNIC_ROCE_V2);
}

static void write_iw(uint8_t *cmd, const struct verbs_qp_attr *attr)
{
    const struct verbs_iw_attr *iw = &attr->iw;
    uint8_t flags = (uint8_t)((iw->has_crc ? RNIC_IW_CRC : 0) |
                              (iw->is_first_mute ? RNIC_IW_MUTE : 0) |
                              (iw->has_send_rtr ? RNIC_IW_SEND_RTR : 0));

    dram_store32(cmd, RNIC_MOD_IW_STREAM, iw->stream);
    dram_store8(cmd, RNIC_MOD_IW_FLAGS, flags);
    dram_store64(cmd, RNIC_MOD_IW_SEED, iw->key_seed);
}

bool verbs_modify_qp(struct verbs *verbs, uint32_t qpn,
                     enum verbs_qp_state next, const struct verbs_qp_attr *attr)
{
    static const uint8_t states[] = {
        [VERBS_QPS_RESET] = RNIC_QPS_RESET, [VERBS_QPS_INIT] = RNIC_QPS_INIT,
        [VERBS_QPS_RTR] = RNIC_QPS_RTR,     [VERBS_QPS_RTS] = RNIC_QPS_RTS,
        [VERBS_QPS_ERROR] = RNIC_QPS_ERROR,
    };
    const struct rnic_qp *qp = qp_get(verbs, qpn);
    uint8_t *cmd;

    /* Send the requests that were posted before. */
    verbs_flush(verbs);
    cmd = rnic_cmd_begin(verbs, RNIC_CMD_QP_MODIFY, qpn);
    dram_store8(cmd, RNIC_MOD_STATE, states[next]);
    if (attr != NULL) {
        dram_store8(cmd, RNIC_MOD_ACCESS, attr->access);
        dram_store8(cmd, RNIC_MOD_MAX_RD_ATOMIC, attr->max_rd_atomic);
        dram_store8(cmd, RNIC_MOD_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic);
        if (qp->type == VERBS_QP_IW) {
            write_iw(cmd, attr);
        } else {
            write_roce(cmd, attr);
        }
    }
    return rnic_cmd_run(verbs) == RNIC_CMD_OK;
}

void verbs_destroy_qp(struct verbs *verbs, uint32_t qpn)
{
    struct rnic_qp *qp = qp_get(verbs, qpn);
    uint32_t slot = qpn & SLOT_MASK;
    struct rnic_resting *rest;

    (void)rnic_cmd_begin(verbs, RNIC_CMD_QP_DESTROY, qpn);
    rnic_cmd_must_run(verbs);
    (void)rnic_cmd_begin(verbs, RNIC_CMD_RQ_DESTROY, slot);
    rnic_cmd_must_run(verbs);
    if (slot == MAD_SLOT) {
        rnic_forget(verbs, qpn);
    }

    rest = &verbs->resting[verbs->rest_put++ % RNIC_SLOT_FIFO];
    *rest = (struct rnic_resting){
        .slot = (uint16_t)slot,
        .claim = {qp->sq_mask + 1, qp->rq_mask + 1},
        .until = {verbs->cq[CQ_SEND].ci + verbs->cq[CQ_SEND].mask + 1,
                  verbs->cq[CQ_RECV].ci + verbs->cq[CQ_RECV].mask + 1},
    };
    qp_give_rings(verbs, qp);
}
