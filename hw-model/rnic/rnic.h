/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RNIC: registers, hart pages and command rings, with the transports of
 * net/roce and net/iwarp.
 * Reference: docs/hardware/rnic.md; registers in hw-model/regs/rnic.h.
 *
 * The RNIC has one execution context.  Register accesses only change registers
 * and request rnic_run(); all work is done in rnic_run(), rnic_rx() and
 * rnic_timer().  A frame_sink may call only rnic_port_ready().  Frames that a
 * sink loops back are dropped and counted.
 */
#ifndef ESSD_HW_RNIC_RNIC_H
#define ESSD_HW_RNIC_RNIC_H

#include "hw-model/core/env.h"
#include "hw-model/core/frame.h"
#include "net/iwarp/iwarp.h"
#include "net/roce/roce.h"

enum {
    RNIC_HARTS = RDMA_EQS,
    RNIC_HART_REGS = 9,
    RNIC_ENGINES = RDMA_ENGINES, /* transports: RoCE and iWARP */
};

struct rnic_hart {
    bool enabled;
    bool asleep; /* the ASLEEP word is 1 */
    uint8_t cmd_size_log2, db_size_log2;
    uint32_t regs[RNIC_HART_REGS]; /* the written values, PAGE_LO to SIZES */
    uint64_t page, cmd, db;        /* addresses that ENABLE has latched */
    uint32_t cmd_ci, db_ci;        /* entries taken; the counts wrap */
};

/* All saved state. */
struct rnic_state {
    uint32_t ctrl;
    uint32_t irq_status;
    uint32_t irq_enable;
    struct rnic_hart harts[RNIC_HARTS];
    struct rdma_objects objects;
    struct roce_state roce;
    struct iwarp_state iwarp;
};

struct rnic {
    struct dev_env env;
    struct rdma_dram dram;
    struct rdma_engine engines[RNIC_ENGINES];
    struct roce roce;            /* the first engine */
    struct iwarp iwarp;          /* the second one */
    struct rdma_streams streams; /* no functions: it has none */
    bool busy;                   /* one of the working functions is running */
    uint64_t timer_ns;           /* the last argument of set_timer() */
    struct rnic_state state;
};

struct rnic_config {
    struct dev_env env;                  /* interrupt line 0; copied */
    struct frame_sink ports[RDMA_PORTS]; /* sinks for sent frames; copied */
    const struct trace *trace; /* outlives the RNIC; NULL: no tracing */
};

/**
 * Initialise an RNIC in reset.  `rnic` must not be moved afterwards.
 */
void rnic_init(struct rnic *rnic, const struct rnic_config *config);

/* A part of rnic_init(): the engine of iWARP, without connections. */
void rnic_init_iwarp(struct rnic *rnic, const struct rnic_config *config);

/** Set the sink for frames of `port`; it is copied. */
void rnic_attach_port(struct rnic *rnic, unsigned int port,
                      const struct frame_sink *sink);

/** Set the fault rules that RoCE asks; NULL: none.  They outlive the RNIC. */
void rnic_set_faults(struct rnic *rnic, const struct roce_fault_hook *hook);

/** The same for iWARP. */
void rnic_set_iwarp_faults(struct rnic *rnic,
                           const struct iwarp_fault_hook *hook);

/**
 * Set the TCP connections of iWARP's queue pairs; copied.  Their owner calls
 * the functions of rnic_stream_user().  Without them, no queue pair of iWARP
 * gets to RTR.
 */
void rnic_set_streams(struct rnic *rnic, const struct rdma_streams *streams);

/** What iWARP's queue pairs do with their connections. */
struct rdma_stream_user rnic_stream_user(struct rnic *rnic);

/* The engine that serves queue pairs of a type (enum verbs_qp_type); NULL: none
 * does. */
static inline const struct rdma_engine *rnic_engine(const struct rnic *rnic,
                                                    uint8_t type)
{
    if (type == VERBS_QP_IW) {
        return &rnic->engines[1];
    }
    return type == VERBS_QP_RC || type == VERBS_QP_UD ? &rnic->engines[0]
                                                      : NULL;
}

/**
 * Reset the RNIC to its state after power-on.  This lowers the interrupt line.
 */
void rnic_reset(struct rnic *rnic);

/** Access a register.  Only aligned 32-bit accesses are possible. */
uint32_t rnic_read(struct rnic *rnic, uint32_t offset);

/** @return false when there is no such register, or when it is read-only */
bool rnic_write(struct rnic *rnic, uint32_t offset, uint32_t value);

/** Do the pending work that env.defer() has announced. */
void rnic_run(struct rnic *rnic);

/** The deadline set with env.set_timer() has passed. */
void rnic_timer(struct rnic *rnic);

/** Take RoCE frames (UDP port 4791) that a port received, and answer them. */
void rnic_rx(struct rnic *rnic, unsigned int port,
             const struct frame_rx *frames, unsigned int count);

/**
 * The sink of `port` has room again, after it has taken fewer frames than
 * offered.
 */
void rnic_port_ready(struct rnic *rnic, unsigned int port);

/** Report a port's link to firmware, by event LINK to every enabled hart. */
void rnic_link_changed(struct rnic *rnic, unsigned int port, bool is_up);

/**
 * Check a state that was loaded into rnic->state, and continue from it.
 *
 * @return false when it is invalid; the RNIC is then in reset
 */
MUST_USE bool rnic_state_loaded(struct rnic *rnic);

#endif
