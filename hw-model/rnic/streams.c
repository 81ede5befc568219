/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of iWARP's queue pairs.  What happens to one changes the
 * engine's state at once; the RNIC runs after it, to send and to wake harts.
 */
#include "hw-model/rnic/rnic.h"

#include "lib/regfields.h"
#include "hw-model/regs/rnic.h"

_Static_assert((int)RNIC_IW_COUNTERS == (int)IWARP_COUNTERS &&
                   (int)RNIC_IW_COUNT_RX_REFUSED == (int)IWARP_RX_REFUSED &&
                   (int)RNIC_IW_COUNT_TX_TERMINATES ==
                       (int)IWARP_TX_TERMINATES &&
                   (int)RNIC_IW_COUNT_PARITY_ERRORS == (int)IWARP_PARITY_ERRORS,
               "one list of counters in one order");

static uint64_t time_now(const struct rnic *rnic)
{
    return rnic->env.now_ns(rnic->env.ctx);
}

static uint32_t receive_bytes(void *ctx, uint32_t slot,
                              const struct rdma_stream_piece *pieces,
                              unsigned int count)
{
    struct rnic *rnic = ctx;
    uint32_t taken =
        iwarp_receive(&rnic->iwarp, slot, pieces, count, time_now(rnic));

    if (taken != 0) {
        rnic->env.defer(rnic->env.ctx);
    }
    return taken;
}

static unsigned int fetch_bytes(void *ctx, uint32_t slot, uint64_t offset,
                                uint32_t len, struct rdma_stream_piece *pieces)
{
    struct rnic *rnic = ctx;

    return iwarp_fetch(&rnic->iwarp, slot, offset, len, pieces);
}

static void note_acked(void *ctx, uint32_t slot, uint32_t len)
{
    struct rnic *rnic = ctx;

    iwarp_acked(&rnic->iwarp, slot, len, time_now(rnic));
    rnic->env.defer(rnic->env.ctx);
}

static void note_finished(void *ctx, uint32_t slot)
{
    struct rnic *rnic = ctx;

    iwarp_finished(&rnic->iwarp, slot, time_now(rnic));
    rnic->env.defer(rnic->env.ctx);
}

static void note_ended(void *ctx, uint32_t slot, enum rdma_stream_end end)
{
    struct rnic *rnic = ctx;

    iwarp_ended(&rnic->iwarp, slot, end, time_now(rnic));
    rnic->env.defer(rnic->env.ctx);
}

struct rdma_stream_user rnic_stream_user(struct rnic *rnic)
{
    return (struct rdma_stream_user){
        .ctx = rnic,
        .receive = receive_bytes,
        .fetch = fetch_bytes,
        .acked = note_acked,
        .finished = note_finished,
        .ended = note_ended,
    };
}

void rnic_set_streams(struct rnic *rnic, const struct rdma_streams *streams)
{
    rnic->streams = *streams;
    rnic->iwarp.streams = &rnic->streams;
}

void rnic_init_iwarp(struct rnic *rnic, const struct rnic_config *config)
{
    struct iwarp *iwarp = &rnic->iwarp;

    iwarp->state = &rnic->state.iwarp;
    iwarp->objects = &rnic->state.objects;
    iwarp->dram = rnic->dram;
    iwarp->trace = config->trace;
    iwarp->faults = NULL;
    iwarp->streams = NULL;
    rnic->engines[1] = (struct rdma_engine){&iwarp_engine_ops, iwarp};
}

void rnic_set_iwarp_faults(struct rnic *rnic,
                           const struct iwarp_fault_hook *hook)
{
    rnic->iwarp.faults = hook;
}
