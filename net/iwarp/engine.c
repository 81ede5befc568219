/* SPDX-License-Identifier: BSD-2-Clause */
/* iWARP as an engine of the RNIC: net/verbs/engine.h. */
#include "net/iwarp/internal.h"

#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"

static void reset_engine(void *engine)
{
    iwarp_reset(engine);
}

static bool reload_engine(void *engine)
{
    return iwarp_reload(engine);
}

static void take_doorbell(void *engine, uint32_t slot, uint64_t now_ns)
{
    iwarp_doorbell(engine, slot, now_ns);
}

static bool transmit_turns(void *engine, unsigned int budget, uint64_t now_ns)
{
    return iwarp_transmit(engine, budget, now_ns);
}

/* Frames belong to the owner of the streams. */
static void ignore_port(void *engine, unsigned int port)
{
    (void)engine;
    (void)port;
}

static void run_timer(void *engine, uint64_t now_ns)
{
    iwarp_timer(engine, now_ns);
}

static uint64_t next_deadline(const void *engine)
{
    return iwarp_deadline(engine);
}

static void create_qp(void *engine, uint32_t slot)
{
    iwarp_qp_create(engine, slot);
}

static void read_attr(const uint8_t *args, struct iwarp_attr *attr)
{
    uint8_t flags = args[RNIC_MOD_IW_FLAGS];

    *attr = (struct iwarp_attr){
        .stream = get_le32(args + RNIC_MOD_IW_STREAM),
        .access = args[RNIC_MOD_ACCESS],
        .max_rd_atomic = args[RNIC_MOD_MAX_RD_ATOMIC],
        .max_dest_rd_atomic = args[RNIC_MOD_MAX_DEST_RD_ATOMIC],
        .has_crc = flags & RNIC_IW_CRC,
        .is_mute = flags & RNIC_IW_MUTE,
        .has_send_rtr = flags & RNIC_IW_SEND_RTR,
        .key_seed = get_le64(args + RNIC_MOD_IW_SEED),
    };
}

/* Whether the arguments that this state transition takes are valid. */
static bool stage_fits(const struct rdma_qp *qp, enum verbs_qp_state next,
                       const struct iwarp_attr *attr)
{
    if (next == VERBS_QPS_RTR) {
        return attr->max_dest_rd_atomic <= IWARP_MAX_DEST_RD_ATOMIC;
    }
    return next != VERBS_QPS_RTS || qp->state != VERBS_QPS_RTR ||
           attr->max_rd_atomic <= IWARP_MAX_RD_ATOMIC;
}

static enum rdma_modified modify_qp(void *engine, uint32_t slot,
                                    enum verbs_qp_state next,
                                    const uint8_t *args, uint64_t now_ns)
{
    struct iwarp *iwarp = engine;
    const struct rdma_qp *qp = iwarp_rdma_qp(iwarp, slot);
    struct iwarp_attr attr;

    if (!rdma_qp_may_enter((enum verbs_qp_state)qp->state, next)) {
        return RDMA_MODIFY_BAD_STATE;
    }
    read_attr(args, &attr);
    if (!stage_fits(qp, next, &attr) ||
        !iwarp_qp_modify(iwarp, slot, next, &attr, now_ns)) {
        return RDMA_MODIFY_BAD_ARGUMENT;
    }
    return RDMA_MODIFIED;
}

static void destroy_qp(void *engine, uint32_t slot)
{
    iwarp_qp_destroy(engine, slot);
}

static void drain_qp(void *engine, uint32_t slot)
{
    iwarp_qp_drain(engine, slot);
}

const struct rdma_engine_ops iwarp_engine_ops = {
    .reset = reset_engine,
    .reload = reload_engine,
    .doorbell = take_doorbell,
    .transmit = transmit_turns,
    .port_ready = ignore_port,
    .port_left = ignore_port,
    .timer = run_timer,
    .deadline = next_deadline,
    .qp_create = create_qp,
    .qp_modify = modify_qp,
    .qp_destroy = destroy_qp,
    .qp_drain = drain_qp,
};
