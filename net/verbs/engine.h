/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam between the RNIC and the transports of its queue pairs.
 *
 * The RNIC owns the objects (objects.h), executes commands and takes doorbells.
 * An engine is one transport: it owns what a queue pair needs beyond struct
 * rdma_qp, starts the posted requests, and completes them through rings.h.  The
 * type of a queue pair decides which engine serves it.  RoCE is one engine;
 * frames reach an engine by functions of its own (roce_rx()).
 *
 * An engine runs in the RNIC's execution context: none of its functions is
 * called while another one is running, except port_ready() from inside of a
 * frame_sink.
 */
#ifndef ESSD_NET_VERBS_ENGINE_H
#define ESSD_NET_VERBS_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/verbs/verbs.h"

/* What became of a request to move a queue pair to another state. */
enum rdma_modified {
    RDMA_MODIFIED,
    RDMA_MODIFY_BAD_STATE, /* the move is not allowed; nothing has changed */
    RDMA_MODIFY_BAD_ARGUMENT,
};

/* The first argument of each function is rdma_engine.ctx. */
struct rdma_engine_ops {
    /** Forget all queue pairs.  The RNIC resets the objects before. */
    void (*reset)(void *engine);

    /**
     * Check a loaded state, and derive from it what is not saved.  The RNIC has
     * checked the objects before.
     *
     * @return false when it is invalid; reset() follows then
     */
    bool (*reload)(void *engine);

    /** Requests were posted to the send queue of an existing queue pair. */
    void (*doorbell)(void *engine, uint32_t slot, uint64_t now_ns);

    /**
     * Send what may be sent.
     *
     * @param budget  the largest number of bursts
     * @return true when it stopped because of the budget: call again
     */
    bool (*transmit)(void *engine, unsigned int budget, uint64_t now_ns);

    /** A port takes frames again, or its paused priorities have changed. */
    void (*port_ready)(void *engine, unsigned int port);

    /** Neighbours have moved from this port to another one. */
    void (*port_left)(void *engine, unsigned int port);

    /** Act on deadlines that have passed. */
    void (*timer)(void *engine, uint64_t now_ns);

    /** When timer() is due next; UINT64_MAX for never. */
    uint64_t (*deadline)(const void *engine);

    /** Initialise a new queue pair in RESET whose struct rdma_qp is filled
     * in. */
    void (*qp_create)(void *engine, uint32_t slot);

    /**
     * Move a queue pair to another state.
     *
     * @param next  any value; rdma_qp_may_enter() says whether it is allowed
     * @param args  the command: RNIC_CMD_LEN bytes, with RNIC_MOD_STATE and
     *              those of the other arguments that belong to the engine
     */
    enum rdma_modified (*qp_modify)(void *engine, uint32_t slot,
                                    enum verbs_qp_state next,
                                    const uint8_t *args, uint64_t now_ns);

    /** Remove a queue pair and release the objects that it uses. */
    void (*qp_destroy)(void *engine, uint32_t slot);

    /** Raise QP_DRAINED when everything posted so far has completed. */
    void (*qp_drain)(void *engine, uint32_t slot);
};

struct rdma_engine {
    const struct rdma_engine_ops *ops;
    void *ctx;
};

#endif
