/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings in DRAM: see rings.h. */
#include "net/verbs/rings.h"

#include <string.h>

#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"
#include "lib/bytes.h"

_Static_assert((int)VERBS_UD_HEADER == (int)RNIC_UD_LEN, "one UD header");
_Static_assert((int)RDMA_WC_RECV == (int)RNIC_WR_RECV, "one name for RECV");
_Static_assert((int)VERBS_WR_LOCAL_INV == (int)RNIC_WR_LOCAL_INV &&
                   (int)VERBS_WR_READ == (int)RNIC_WR_READ,
               "verbs and registers number the opcodes alike");
_Static_assert((int)VERBS_WC_BAD_RESPONSE == (int)RNIC_WC_BAD_RESPONSE &&
                   (int)VERBS_WC_FLUSHED == (int)RNIC_WC_FLUSHED,
               "verbs and registers number the statuses alike");
_Static_assert((int)RDMA_EVENT_LINK == (int)RNIC_EVENT_LINK &&
                   (int)RDMA_EVENT_PARITY_ERROR ==
                       (int)RNIC_EVENT_PARITY_ERROR &&
                   (int)RDMA_FROM_DRAM == (int)RNIC_TRANSFER_FROM_DRAM,
               "events too");
_Static_assert((int)VERBS_QPS_ERROR == (int)RNIC_QPS_ERROR, "and states");

uint32_t rdma_read_word(const struct rdma_dram *dram, uint64_t addr)
{
    const uint32_t *word = rdma_map(dram, addr, sizeof(uint32_t));
    uint32_t value;

    if (word == NULL) {
        return 0;
    }
    value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    return get_le32((const uint8_t *)&value);
}

void rdma_write_word(const struct rdma_dram *dram, uint64_t addr,
                     uint32_t value)
{
    uint32_t *word = rdma_map(dram, addr, sizeof(uint32_t));
    uint32_t wire;

    if (word != NULL) {
        put_le32((uint8_t *)&wire, value);
        __atomic_store_n(word, wire, __ATOMIC_RELEASE);
    }
}

static void sge_parse(struct rdma_sge *sge, const uint8_t *buf)
{
    *sge = (struct rdma_sge){
        .addr = get_le64(buf + RNIC_SGE_ADDR),
        .len_bytes = get_le32(buf + RNIC_SGE_LENGTH),
        .lkey = get_le32(buf + RNIC_SGE_LKEY),
    };
}

static void wr_parse(struct rdma_wr *wr, const uint8_t *buf)
{
    uint8_t flags = buf[RNIC_SWQE_FLAGS];

    wr->opcode = buf[RNIC_SWQE_OPCODE];
    wr->signaled = flags & RNIC_WR_SIGNALED;
    wr->fence = flags & RNIC_WR_FENCE;
    wr->linked = flags & RNIC_WR_LINKED;
    wr->inline_data = flags & RNIC_WR_INLINE;
    wr->solicited = flags & RNIC_WR_SOLICITED;
    wr->num_sge = buf[RNIC_SWQE_SGES];
    wr->inline_len = buf[RNIC_SWQE_INLINE_LEN];
    wr->pi_action = buf[RNIC_SWQE_PI_ACTION];
    wr->ud_laddr = buf[RNIC_SWQE_UD_LADDR];
    wr->ud_roce = buf[RNIC_SWQE_UD_ROCE];
    wr->ud_priority = buf[RNIC_SWQE_UD_PRIORITY];
    wr->ud_dscp = buf[RNIC_SWQE_UD_DSCP];
    wr->ud_neigh = get_le16(buf + RNIC_SWQE_UD_NEIGH);
    wr->inv_key = get_le32(buf + RNIC_SWQE_INV_KEY);
    wr->wr_id = get_le64(buf + RNIC_SWQE_WR_ID);
    wr->remote_addr = get_le64(buf + RNIC_SWQE_REMOTE_ADDR);
    wr->rkey = get_le32(buf + RNIC_SWQE_RKEY);
    wr->after_media = get_le32(buf + RNIC_SWQE_AFTER_MEDIA);
    wr->ud_qpn = get_le32(buf + RNIC_SWQE_UD_QPN);
    wr->ud_qkey = get_le32(buf + RNIC_SWQE_UD_QKEY);
    wr->inline_bytes = buf + RNIC_SWQE_SGE;
    for (uint32_t i = 0; i < RDMA_SGES; i++) {
        sge_parse(&wr->sge[i], buf + RNIC_SWQE_SGE + i * RNIC_SGE_LEN);
    }
}

bool rdma_sq_read(const struct rdma_qp *qp, const struct rdma_dram *dram,
                  uint32_t count, struct rdma_wr *wr)
{
    uint32_t slot = count & ((1u << qp->sq_size_log2) - 1);
    const uint8_t *buf = rdma_map(
        dram, qp->sq_base + (uint64_t)slot * RNIC_SWQE_LEN, RNIC_SWQE_LEN);

    if (buf == NULL) {
        return false;
    }
    wr_parse(wr, buf);
    return true;
}

uint32_t rdma_rq_waiting(const struct rdma_rq *rq, const struct rdma_dram *dram)
{
    uint32_t waiting = rdma_read_word(dram, rq->record) - rq->ci;

    return waiting <= 1u << rq->size_log2 ? waiting : 0;
}

bool rdma_rq_peek(const struct rdma_rq *rq, const struct rdma_dram *dram,
                  struct rdma_recv *recv)
{
    uint32_t slot = rq->ci & ((1u << rq->size_log2) - 1);
    const uint8_t *buf;

    if (rdma_rq_waiting(rq, dram) == 0) {
        return false;
    }
    buf = rdma_map(dram, rq->base + (uint64_t)slot * RNIC_RWQE_LEN,
                   RNIC_RWQE_LEN);
    if (buf == NULL) {
        return false;
    }
    *recv = (struct rdma_recv){
        .wr_id = get_le64(buf + RNIC_RWQE_WR_ID),
        .addr = get_le64(buf + RNIC_RWQE_ADDR),
        .len_bytes = get_le32(buf + RNIC_RWQE_LENGTH),
        .lkey = get_le32(buf + RNIC_RWQE_LKEY),
    };
    return true;
}

/* 1 on the first lap, then alternating. */
static uint8_t phase_of(uint32_t count, uint8_t size_log2)
{
    return (count >> size_log2 & 1) == 0;
}

/* Write the byte that makes an entry valid, after all its other bytes. */
static void publish_byte(uint8_t *byte, uint8_t value)
{
    __atomic_store_n(byte, value, __ATOMIC_RELEASE);
}

/* Whether a hart may wait for this completion: all but successful SENDs and
 * WRITEs, which only free buffers. */
static bool is_urgent(const struct rdma_completion *c)
{
    return c->status != RNIC_WC_SUCCESS ||
           (c->opcode != RNIC_WR_SEND && c->opcode != RNIC_WR_SEND_INV &&
            c->opcode != RNIC_WR_WRITE);
}

bool rdma_cq_write(struct rdma_objects *o, const struct rdma_dram *dram,
                   uint16_t cq_index, const struct rdma_completion *c)
{
    struct rdma_cq *cq = &o->cqs[cq_index];
    uint32_t size = 1u << cq->size_log2;
    uint8_t *buf;

    if (cq->pi - rdma_read_word(dram, cq->record) >= size) {
        return false;
    }
    buf = rdma_map_write(
        dram, cq->base + (uint64_t)(cq->pi & (size - 1)) * RNIC_CQE_LEN,
        RNIC_CQE_LEN);
    if (buf == NULL) {
        return false;
    }
    put_le64(buf + RNIC_CQE_WR_ID, c->wr_id);
    put_le32(buf + RNIC_CQE_QPN, c->qpn);
    put_le32(buf + RNIC_CQE_LENGTH, c->len_bytes);
    put_le32(buf + RNIC_CQE_INV_KEY, c->inv_key);
    put_le16(buf + RNIC_CQE_WQE, c->wqe);
    buf[RNIC_CQE_OPCODE] = c->opcode;
    buf[RNIC_CQE_STATUS] = c->status;
    put_le32(buf + RNIC_CQE_TIMESTAMP, (uint32_t)c->timestamp_ns);
    put_le24(buf + RNIC_CQE_TIMESTAMP + 4, (uint32_t)(c->timestamp_ns >> 32));
    publish_byte(
        buf + RNIC_CQE_FLAGS,
        (uint8_t)((phase_of(cq->pi, cq->size_log2) ? RNIC_CQE_PHASE : 0) |
                  (c->with_inv ? RNIC_CQE_WITH_INV : 0)));
    cq->pi++;
    o->harts_dirty |= BIT(cq->hart);
    if (is_urgent(c)) {
        o->harts_urgent |= BIT(cq->hart);
    }
    return true;
}

void rdma_eq_write(struct rdma_objects *o, const struct rdma_dram *dram,
                   uint8_t hart, enum rdma_event_type type, uint32_t index,
                   uint32_t info)
{
    struct rdma_eq *eq = &o->eqs[hart];
    uint32_t size = 1u << eq->size_log2;
    uint8_t *buf = NULL;

    if (eq->exists && eq->pi - rdma_read_word(dram, eq->record) < size) {
        buf = rdma_map_write(
            dram, eq->base + (uint64_t)(eq->pi & (size - 1)) * RNIC_EQE_LEN,
            RNIC_EQE_LEN);
    }
    if (buf == NULL) {
        eq->dropped++;
        return;
    }
    put_le32(buf + RNIC_EQE_INDEX, index);
    put_le32(buf + RNIC_EQE_INFO, info);
    memset(buf + RNIC_EQE_TYPE, 0, RNIC_EQE_FLAGS - RNIC_EQE_TYPE);
    buf[RNIC_EQE_TYPE] = (uint8_t)type;
    publish_byte(buf + RNIC_EQE_FLAGS, phase_of(eq->pi, eq->size_log2));
    eq->pi++;
    o->harts_dirty |= BIT(hart);
    o->harts_urgent |= BIT(hart);
}

bool rdma_cq_complete(struct rdma_objects *o, const struct rdma_dram *dram,
                      uint16_t cq_index, const struct rdma_completion *c)
{
    struct rdma_cq *cq = &o->cqs[cq_index];

    if (__builtin_expect(rdma_cq_write(o, dram, cq_index, c), 1)) {
        return false;
    }
    for (unsigned int i = 0; i < RDMA_ENGINES; i++) {
        o->cqs_lost[i] |= UINT64_C(1) << cq_index;
    }
    if (cq->overflowed) {
        return false;
    }
    cq->overflowed = true;
    rdma_eq_write(o, dram, cq->hart, RDMA_EVENT_CQ_OVERFLOW, cq_index, 0);
    return true;
}

void rdma_ud_source_emit(const struct rdma_ud_source *source, uint8_t *buf)
{
    memset(buf, 0, RNIC_UD_LEN);
    buf[RNIC_UD_PORT] = source->port;
    buf[RNIC_UD_LADDR] = source->laddr;
    buf[RNIC_UD_PRIORITY] = source->priority;
    buf[RNIC_UD_ROCE] = source->is_v1 ? RNIC_ROCE_V1 : RNIC_ROCE_V2;
    put_le16(buf + RNIC_UD_VLAN, source->vlan);
    memcpy(buf + RNIC_UD_SRC_MAC, source->mac.bytes, 6);
    put_le32(buf + RNIC_UD_SRC_QPN, source->qpn);
    memcpy(buf + RNIC_UD_SRC_IP, source->src_ip.bytes, 16);
    memcpy(buf + RNIC_UD_DST_IP, source->dst_ip.bytes, 16);
}
