/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands: see command.h. */
#include "hw-model/rnic/command.h"

#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"
#include "lib/bytes.h"

#include <string.h>

struct command {
    struct rnic *rnic;
    struct rdma_objects *objects;
    const uint8_t *buf;
    uint32_t index;
    uint32_t result;
};

/* Whether `len` bytes at `addr` are in DRAM and aligned to `align`. */
static bool is_dram(const struct command *c, uint64_t addr, uint64_t len,
                    uint32_t align)
{
    const struct dev_env *env = &c->rnic->env;

    return addr % align == 0 && env->is_dram(env->ctx, addr, len);
}

static bool is_ring(const struct command *c, uint64_t base, uint8_t size_log2,
                    uint32_t entry_len)
{
    return is_dram(c, base, (uint64_t)entry_len << size_log2, 64);
}

static bool is_record(const struct command *c, uint64_t record)
{
    return is_dram(c, record, sizeof(uint32_t), sizeof(uint32_t));
}

static uint8_t run_nop(struct command *c)
{
    (void)c;
    return RNIC_CMD_OK;
}

static uint8_t pd_create(struct command *c)
{
    if (c->index >= RDMA_PDS) {
        return RNIC_CMD_BAD_INDEX;
    }
    if (c->objects->pds[c->index].exists) {
        return RNIC_CMD_IN_USE;
    }
    c->objects->pds[c->index] = (struct rdma_pd){.exists = true};
    return RNIC_CMD_OK;
}

static uint8_t pd_destroy(struct command *c)
{
    if (c->index >= RDMA_PDS || !c->objects->pds[c->index].exists) {
        return RNIC_CMD_BAD_INDEX;
    }
    if (c->objects->pds[c->index].users != 0) {
        return RNIC_CMD_IN_USE;
    }
    c->objects->pds[c->index].exists = false;
    return RNIC_CMD_OK;
}

static bool pd_exists(const struct command *c, uint16_t pd)
{
    return pd < RDMA_PDS && c->objects->pds[pd].exists;
}

static uint8_t mr_create(struct command *c)
{
    struct rdma_mr mr = {
        .exists = true,
        .access = c->buf[RNIC_MR_ACCESS],
        .variant = c->buf[RNIC_MR_VARIANT],
        .pd = get_le16(c->buf + RNIC_MR_PD),
        .va = get_le64(c->buf + RNIC_MR_VA),
        .len_bytes = get_le64(c->buf + RNIC_MR_LENGTH),
        .dram = get_le64(c->buf + RNIC_MR_DRAM),
    };

    if (c->index >= RDMA_MRS || !pd_exists(c, mr.pd)) {
        return RNIC_CMD_BAD_INDEX;
    }
    if (c->objects->mrs[c->index].exists) {
        return RNIC_CMD_IN_USE;
    }
    if (mr.len_bytes == 0 || mr.va + (mr.len_bytes - 1) < mr.va ||
        mr.access >= 2 * RNIC_ACCESS_REMOTE_READ) {
        return RNIC_CMD_BAD_ARGUMENT;
    }
    if (!is_dram(c, mr.dram, mr.len_bytes, 1)) {
        return RNIC_CMD_BAD_ADDRESS;
    }
    c->objects->mrs[c->index] = mr;
    c->objects->pds[mr.pd].users++;
    c->result = c->index << 8 | mr.variant;
    return RNIC_CMD_OK;
}

static uint8_t mr_destroy(struct command *c)
{
    return rdma_mr_destroy(c->objects, c->index) ? RNIC_CMD_OK
                                                 : RNIC_CMD_BAD_INDEX;
}

static uint8_t cq_create(struct command *c)
{
    struct rdma_cq cq = {
        .exists = true,
        .hart = c->buf[RNIC_CQ_HART],
        .size_log2 = c->buf[RNIC_CQ_SIZE],
        .base = get_le64(c->buf + RNIC_CQ_BASE),
        .record = get_le64(c->buf + RNIC_CQ_RECORD),
    };

    if (c->index >= RDMA_CQS) {
        return RNIC_CMD_BAD_INDEX;
    }
    if (c->objects->cqs[c->index].exists) {
        return RNIC_CMD_IN_USE;
    }
    if (cq.hart >= RNIC_HARTS || cq.size_log2 < 1 || cq.size_log2 > 16) {
        return RNIC_CMD_BAD_ARGUMENT;
    }
    if (!is_ring(c, cq.base, cq.size_log2, RNIC_CQE_LEN) ||
        !is_record(c, cq.record)) {
        return RNIC_CMD_BAD_ADDRESS;
    }
    for (unsigned int i = 0; i < RDMA_ENGINES; i++) {
        c->objects->cqs_lost[i] &= ~(UINT64_C(1) << c->index);
    }
    c->objects->cqs[c->index] = cq;
    return RNIC_CMD_OK;
}

static uint8_t cq_destroy(struct command *c)
{
    if (c->index >= RDMA_CQS || !c->objects->cqs[c->index].exists) {
        return RNIC_CMD_BAD_INDEX;
    }
    if (c->objects->cqs[c->index].users != 0) {
        return RNIC_CMD_IN_USE;
    }
    c->objects->cqs[c->index] = (struct rdma_cq){0};
    return RNIC_CMD_OK;
}

static uint8_t rq_create(struct command *c)
{
    struct rdma_rq rq = {
        .exists = true,
        .size_log2 = c->buf[RNIC_RQ_SIZE],
        .pd = get_le16(c->buf + RNIC_RQ_PD),
        .low = get_le32(c->buf + RNIC_RQ_LOW),
        .base = get_le64(c->buf + RNIC_RQ_BASE),
        .record = get_le64(c->buf + RNIC_RQ_RECORD),
    };

    if (c->index >= RDMA_RQS || !pd_exists(c, rq.pd)) {
        return RNIC_CMD_BAD_INDEX;
    }
    if (c->objects->rqs[c->index].exists) {
        return RNIC_CMD_IN_USE;
    }
    if (rq.size_log2 > 15) {
        return RNIC_CMD_BAD_ARGUMENT;
    }
    if (!is_ring(c, rq.base, rq.size_log2, RNIC_RWQE_LEN) ||
        !is_record(c, rq.record)) {
        return RNIC_CMD_BAD_ADDRESS;
    }
    c->objects->rqs[c->index] = rq;
    c->objects->pds[rq.pd].users++;
    return RNIC_CMD_OK;
}

static uint8_t rq_destroy(struct command *c)
{
    struct rdma_rq *rq;

    if (c->index >= RDMA_RQS || !c->objects->rqs[c->index].exists) {
        return RNIC_CMD_BAD_INDEX;
    }
    rq = &c->objects->rqs[c->index];
    if (rq->users != 0) {
        return RNIC_CMD_IN_USE;
    }
    c->objects->pds[rq->pd].users--;
    *rq = (struct rdma_rq){0};
    return RNIC_CMD_OK;
}

/* Whether all objects that a queue pair names exist. */
static bool qp_refers_well(const struct command *c, const struct rdma_qp *qp)
{
    return pd_exists(c, qp->pd) && qp->send_cq < RDMA_CQS &&
           c->objects->cqs[qp->send_cq].exists && qp->recv_cq < RDMA_CQS &&
           c->objects->cqs[qp->recv_cq].exists && qp->rq < RDMA_RQS &&
           c->objects->rqs[qp->rq].exists;
}

static uint8_t qp_create(struct command *c)
{
    struct rdma_objects *o = c->objects;
    uint32_t slot = rdma_qp_slot(c->index);
    struct rdma_qp qp = {
        .exists = true,
        .state = VERBS_QPS_RESET,
        .type = c->buf[RNIC_QP_TYPE],
        .sq_size_log2 = c->buf[RNIC_QP_SQ_SIZE],
        .pd = get_le16(c->buf + RNIC_QP_PD),
        .send_cq = get_le16(c->buf + RNIC_QP_SEND_CQ),
        .recv_cq = get_le16(c->buf + RNIC_QP_RECV_CQ),
        .rq = get_le16(c->buf + RNIC_QP_RQ),
        .qpn = c->index,
        .sq_base = get_le64(c->buf + RNIC_QP_SQ_BASE),
        .sq_record = get_le64(c->buf + RNIC_QP_SQ_RECORD),
    };
    const struct rdma_engine *engine;

    if (c->index > 0xffffff || slot == 0 || slot >= RDMA_QPS ||
        !qp_refers_well(c, &qp)) {
        return RNIC_CMD_BAD_INDEX;
    }
    if (o->qps[slot].exists) {
        return RNIC_CMD_IN_USE;
    }
    engine = rnic_engine(c->rnic, qp.type);
    if (engine == NULL || qp.sq_size_log2 > 10 ||
        (qp.qpn == RDMA_MAD_QPN && qp.type != RNIC_QP_UD)) {
        return RNIC_CMD_BAD_ARGUMENT;
    }
    if (!is_ring(c, qp.sq_base, qp.sq_size_log2, RNIC_SWQE_LEN) ||
        !is_record(c, qp.sq_record)) {
        return RNIC_CMD_BAD_ADDRESS;
    }
    o->qps[slot] = qp;
    o->pds[qp.pd].users++;
    o->cqs[qp.send_cq].users++;
    o->cqs[qp.recv_cq].users++;
    o->rqs[qp.rq].users++;
    engine->ops->qp_create(engine->ctx, slot);
    return RNIC_CMD_OK;
}

/* The engine of an existing queue pair. */
static const struct rdma_engine *qp_engine(const struct command *c, int slot)
{
    return rnic_engine(c->rnic, c->objects->qps[slot].type);
}

static uint8_t qp_modify(struct command *c)
{
    static const uint8_t status[] = {
        [RDMA_MODIFIED] = RNIC_CMD_OK,
        [RDMA_MODIFY_BAD_STATE] = RNIC_CMD_BAD_STATE,
        [RDMA_MODIFY_BAD_ARGUMENT] = RNIC_CMD_BAD_ARGUMENT,
    };
    int slot = rdma_qp_find(c->objects, c->index);
    const struct rdma_engine *engine;

    if (slot < 0) {
        return RNIC_CMD_BAD_INDEX;
    }
    engine = qp_engine(c, slot);
    return status[engine->ops->qp_modify(
        engine->ctx, (uint32_t)slot,
        (enum verbs_qp_state)c->buf[RNIC_MOD_STATE], c->buf,
        c->rnic->env.now_ns(c->rnic->env.ctx))];
}

static uint8_t qp_destroy(struct command *c)
{
    int slot = rdma_qp_find(c->objects, c->index);

    if (slot < 0) {
        return RNIC_CMD_BAD_INDEX;
    }
    qp_engine(c, slot)->ops->qp_destroy(qp_engine(c, slot)->ctx,
                                        (uint32_t)slot);
    return RNIC_CMD_OK;
}

static uint8_t qp_query(struct command *c)
{
    int slot = rdma_qp_find(c->objects, c->index);

    if (slot < 0) {
        return RNIC_CMD_BAD_INDEX;
    }
    c->result = c->objects->qps[slot].state;
    return RNIC_CMD_OK;
}

static uint8_t laddr_set(struct command *c)
{
    struct rdma_laddr laddr = {
        .exists = true,
        .port = c->buf[RNIC_LADDR_PORT],
        .vlan = get_le16(c->buf + RNIC_LADDR_VLAN),
        .ip = ip_addr_from_bytes(c->buf + RNIC_LADDR_IP),
    };

    if (c->index >= RDMA_LADDRS) {
        return RNIC_CMD_BAD_INDEX;
    }
    if (laddr.port >= RDMA_PORTS ||
        (laddr.vlan > 4095 && laddr.vlan != RDMA_NO_VLAN)) {
        return RNIC_CMD_BAD_ARGUMENT;
    }
    if (laddr.vlan == 0) {
        laddr.vlan = RDMA_NO_VLAN;
    }
    memcpy(laddr.mac.bytes, c->buf + RNIC_LADDR_MAC, sizeof(laddr.mac.bytes));
    c->objects->laddrs[c->index] = laddr;
    return RNIC_CMD_OK;
}

static uint8_t laddr_clear(struct command *c)
{
    if (c->index >= RDMA_LADDRS || !c->objects->laddrs[c->index].exists) {
        return RNIC_CMD_BAD_INDEX;
    }
    c->objects->laddrs[c->index] = (struct rdma_laddr){0};
    return RNIC_CMD_OK;
}

static uint8_t neigh_set(struct command *c)
{
    struct rdma_neigh neigh = {
        .exists = true,
        .port = c->buf[RNIC_NEIGH_PORT],
        .vlan = get_le16(c->buf + RNIC_NEIGH_VLAN),
        .ip = ip_addr_from_bytes(c->buf + RNIC_NEIGH_IP),
    };
    uint8_t before;

    if (c->index >= RDMA_NEIGHS) {
        return RNIC_CMD_BAD_INDEX;
    }
    if (neigh.port >= RDMA_PORTS ||
        (neigh.vlan > 4095 && neigh.vlan != RDMA_NO_VLAN)) {
        return RNIC_CMD_BAD_ARGUMENT;
    }
    memcpy(neigh.mac.bytes, c->buf + RNIC_NEIGH_MAC, sizeof(neigh.mac.bytes));
    before = c->objects->neighs[c->index].port;
    neigh.users = c->objects->neighs[c->index].users;
    c->objects->neighs[c->index] = neigh;
    if (before != neigh.port) {
        for (unsigned int i = 0; i < RNIC_ENGINES; i++) {
            const struct rdma_engine *engine = &c->rnic->engines[i];

            engine->ops->port_left(engine->ctx, before);
        }
    }
    return RNIC_CMD_OK;
}

static uint8_t neigh_clear(struct command *c)
{
    if (c->index >= RDMA_NEIGHS || !c->objects->neighs[c->index].exists) {
        return RNIC_CMD_BAD_INDEX;
    }
    if (c->objects->neighs[c->index].users != 0) {
        return RNIC_CMD_IN_USE;
    }
    c->objects->neighs[c->index] = (struct rdma_neigh){0};
    return RNIC_CMD_OK;
}

static uint8_t run_drain(struct command *c)
{
    int slot = rdma_qp_find(c->objects, c->index);

    if (slot < 0) {
        return RNIC_CMD_BAD_INDEX;
    }
    qp_engine(c, slot)->ops->qp_drain(qp_engine(c, slot)->ctx, (uint32_t)slot);
    return RNIC_CMD_OK;
}

uint8_t rnic_execute(struct rnic *rnic, const uint8_t *cmd, uint32_t *result)
{
    static uint8_t (*const run[])(struct command *) = {
        [RNIC_CMD_NOP] = run_nop,
        [RNIC_CMD_PD_CREATE] = pd_create,
        [RNIC_CMD_PD_DESTROY] = pd_destroy,
        [RNIC_CMD_MR_CREATE] = mr_create,
        [RNIC_CMD_MR_DESTROY] = mr_destroy,
        [RNIC_CMD_CQ_CREATE] = cq_create,
        [RNIC_CMD_CQ_DESTROY] = cq_destroy,
        [RNIC_CMD_RQ_CREATE] = rq_create,
        [RNIC_CMD_RQ_DESTROY] = rq_destroy,
        [RNIC_CMD_QP_CREATE] = qp_create,
        [RNIC_CMD_QP_MODIFY] = qp_modify,
        [RNIC_CMD_QP_DESTROY] = qp_destroy,
        [RNIC_CMD_QP_QUERY] = qp_query,
        [RNIC_CMD_LADDR_SET] = laddr_set,
        [RNIC_CMD_LADDR_CLEAR] = laddr_clear,
        [RNIC_CMD_NEIGH_SET] = neigh_set,
        [RNIC_CMD_NEIGH_CLEAR] = neigh_clear,
        [RNIC_CMD_DRAIN] = run_drain,
    };
    struct command c = {
        .rnic = rnic,
        .objects = &rnic->state.objects,
        .buf = cmd,
        .index = get_le32(cmd + RNIC_CMD_INDEX),
    };
    uint8_t opcode = cmd[RNIC_CMD_OPCODE];
    uint8_t status =
        opcode < ARRAY_LEN(run) ? run[opcode](&c) : RNIC_CMD_BAD_OPCODE;

    *result = c.result;
    return status;
}
