/* SPDX-License-Identifier: BSD-2-Clause */
/* RoCE as an engine of the RNIC: net/verbs/engine.h. */
#include "net/roce/internal.h"

#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"
#include "lib/bytes.h"

static void reset_engine(void *engine)
{
    roce_reset(engine);
}

static bool reload_engine(void *engine)
{
    return roce_reload(engine);
}

static void take_doorbell(void *engine, uint32_t slot, uint64_t now_ns)
{
    roce_doorbell(engine, slot, now_ns);
}

static bool transmit_bursts(void *engine, unsigned int budget, uint64_t now_ns)
{
    return roce_transmit(engine, budget, now_ns);
}

static void resume_port(void *engine, unsigned int port)
{
    roce_port_ready(engine, port);
}

static void leave_port(void *engine, unsigned int port)
{
    roce_port_left(engine, port);
}

static void run_timer(void *engine, uint64_t now_ns)
{
    roce_timer(engine, now_ns);
}

static uint64_t next_deadline(const void *engine)
{
    return roce_deadline(engine);
}

static void create_qp(void *engine, uint32_t slot)
{
    roce_qp_create(engine, slot);
}

static void read_path(const uint8_t *args, struct roce_path *path)
{
    *path = (struct roce_path){
        .laddr = args[RNIC_MOD_LADDR],
        .path_mtu = args[RNIC_MOD_PATH_MTU],
        .neigh = get_le16(args + RNIC_MOD_NEIGH),
        .access = args[RNIC_MOD_ACCESS],
        .max_rd_atomic = args[RNIC_MOD_MAX_RD_ATOMIC],
        .max_dest_rd_atomic = args[RNIC_MOD_MAX_DEST_RD_ATOMIC],
        .ack_timeout = args[RNIC_MOD_ACK_TIMEOUT],
        .retries = args[RNIC_MOD_RETRIES],
        .rnr_retries = args[RNIC_MOD_RNR_RETRIES],
        .rnr_timer = args[RNIC_MOD_RNR_TIMER],
        .priority = args[RNIC_MOD_PRIORITY],
        .dscp = args[RNIC_MOD_DSCP],
        .hop_limit = args[RNIC_MOD_HOP_LIMIT],
        .udp_sport = get_le16(args + RNIC_MOD_UDP_SPORT),
        .flow_label = get_le32(args + RNIC_MOD_FLOW_LABEL) & 0xfffff,
        .rate_mbps = get_le32(args + RNIC_MOD_RATE_MBPS),
        .is_v1 = args[RNIC_MOD_ROCE] == RNIC_ROCE_V1,
        .dest_qpn = get_le32(args + RNIC_MOD_DEST_QPN),
        .qkey = get_le32(args + RNIC_MOD_QKEY),
    };
}

static bool route_fits(const struct rdma_objects *objects,
                       const struct roce_path *path)
{
    return path->laddr < RDMA_LADDRS && path->neigh < RDMA_NEIGHS &&
           objects->laddrs[path->laddr].exists &&
           objects->neighs[path->neigh].exists && path->priority <= 7 &&
           path->dscp <= 63;
}

/* Whether the arguments that this state transition takes are valid. */
static bool stage_fits(const struct roce *roce, const struct rdma_qp *qp,
                       enum verbs_qp_state next, const uint8_t *args,
                       const struct roce_path *path)
{
    if (args[RNIC_MOD_ROCE] > RNIC_ROCE_V1) {
        return false;
    }
    if (qp->type == VERBS_QP_UD) {
        return path->path_mtu <= 5;
    }
    if (next == VERBS_QPS_RTR) {
        return route_fits(roce->objects, path) && path->path_mtu >= 1 &&
               path->path_mtu <= 5 && path->dest_qpn <= 0xffffff &&
               path->max_dest_rd_atomic <= ROCE_MAX_DEST_RD_ATOMIC &&
               path->rnr_timer <= 31;
    }
    if (next == VERBS_QPS_RTS && qp->state == VERBS_QPS_RTR) {
        return path->max_rd_atomic >= 1 &&
               path->max_rd_atomic <= ROCE_MAX_RD_ATOMIC &&
               path->ack_timeout <= 31 && path->retries <= 7 &&
               path->rnr_retries <= 7;
    }
    return next != VERBS_QPS_RTS || route_fits(roce->objects, path);
}

static enum rdma_modified modify_qp(void *engine, uint32_t slot,
                                    enum verbs_qp_state next,
                                    const uint8_t *args, uint64_t now_ns)
{
    struct roce *roce = engine;
    const struct rdma_qp *qp = roce_rdma_qp(roce, slot);
    struct roce_path path;

    if (!rdma_qp_may_enter((enum verbs_qp_state)qp->state, next)) {
        return RDMA_MODIFY_BAD_STATE;
    }
    read_path(args, &path);
    if (!stage_fits(roce, qp, next, args, &path)) {
        return RDMA_MODIFY_BAD_ARGUMENT;
    }
    roce_qp_modify(roce, slot, next, &path, get_le32(args + RNIC_MOD_SQ_PSN),
                   get_le32(args + RNIC_MOD_RQ_PSN), now_ns);
    return RDMA_MODIFIED;
}

static void destroy_qp(void *engine, uint32_t slot)
{
    roce_qp_destroy(engine, slot);
}

static void drain_qp(void *engine, uint32_t slot)
{
    roce_qp_drain(engine, slot);
}

const struct rdma_engine_ops roce_engine_ops = {
    .reset = reset_engine,
    .reload = reload_engine,
    .doorbell = take_doorbell,
    .transmit = transmit_bursts,
    .port_ready = resume_port,
    .port_left = leave_port,
    .timer = run_timer,
    .deadline = next_deadline,
    .qp_create = create_qp,
    .qp_modify = modify_qp,
    .qp_destroy = destroy_qp,
    .qp_drain = drain_qp,
};
