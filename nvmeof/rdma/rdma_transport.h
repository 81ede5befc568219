/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe over RDMA: a transport of the target on verbs and a connection manager.
 *
 * Follows NVMe over Fabrics 1.1, chapter 7.3.  Each NVMe queue pair has one
 * verbs QP, which is created at the host's connection request and destroyed
 * when the connection ends.
 *
 *   RECV    -> nvmf_capsule()
 *   fetch   -> READ, then nvmf_request_fetched()
 *   send    -> WRITE, then nvmf_request_sent() when it is acknowledged
 *   respond -> WRITE and SEND (with invalidate if the host asked), linked, then
 *              nvmf_request_done() when the SEND is acknowledged
 *
 * A receive buffer is posted again before the response that frees its SQ entry,
 * so that the host's next command always finds one.
 *
 * Left out: shared receive queues, more than one listening port number.
 */
#ifndef ESSD_NVMEOF_RDMA_TRANSPORT_H
#define ESSD_NVMEOF_RDMA_TRANSPORT_H

#include "lib/util.h"
#include "net/verbs/rdma_cm.h"
#include "net/verbs/verbs.h"
#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/target/target.h"
#include "nvmeof/wire/rdma_private.h"

/* Opaque: its owner provides the memory, rdma_transport_bytes() of it. */
struct rdma_transport;

/* A connection event, for the log: one when it is made, one when it ends. */
struct rdma_conn_event {
    bool is_connected; /* false: it has ended */
    uint16_t qpair;    /* the target's number of the queue pair */
    uint16_t qid;      /* 0: admin queue */
    uint8_t laddr;     /* index of the local address that the host used */
    struct rdma_cm_peer peer;
    enum nvme_rdma_status refused; /* not OK: it was never connected */
};

struct rdma_transport_config {
    struct verbs *verbs;
    struct rdma_cm cm; /* connection manager */
    struct nvmf_target *target;
    uint16_t service_port; /* 4420 */
    /* portid of the discovery entry, by local address index */
    uint16_t portid[NVMF_MAX_ADDRESSES];
    void *capsules; /* RDMA_CAPSULE_BYTES of DRAM, 64-byte aligned */
    void *bufs;     /* RDMA_BUF_BYTES of DRAM, 4096-byte aligned */
    void (*conn_event)(void *ctx, const struct rdma_conn_event *event);
    void *conn_event_ctx; /* conn_event may be NULL */
};

/** Bytes of memory that a transport needs, aligned as for any type. */
size_t rdma_transport_bytes(void);

/**
 * Start listening.  *config is copied; what it points to must be initialised
 * and stay.
 *
 * @return false when the connection manager has no listener left
 */
MUST_USE bool rdma_transport_init(struct rdma_transport *rdma,
                                  const struct rdma_transport_config *config);

/**
 * The data buffers for nvmf_target_init(), which may be called before or after
 * rdma_transport_init().
 */
void rdma_transport_bufs(struct rdma_transport *rdma, struct nvmf_bufs *bufs);

/**
 * The local address of this index has changed, or is gone: connections through
 * the former address end at the next step.
 */
void rdma_transport_set_address(struct rdma_transport *rdma, uint8_t laddr,
                                uint16_t portid);

/** The address of the host at the other end of a queue pair. */
struct rdma_cm_peer rdma_transport_peer(const struct rdma_transport *rdma,
                                        uint16_t qpair);

/** The time of the loop's present step, before verbs_poll() is called. */
void rdma_transport_tick(struct rdma_transport *rdma, uint64_t now_us);

/**
 * Do what must not be done inside a callback: end connections, and give back
 * what they held.  Call it after verbs_poll() and the media's completions, and
 * before verbs_flush().
 *
 * @return whether anything was done
 */
bool rdma_transport_step(struct rdma_transport *rdma);

/** How many responses the hosts have not acknowledged. */
uint32_t rdma_transport_unacked(const struct rdma_transport *rdma);

/** Whether a request waits for what acknowledgements of WRITEs and responses
 * make: room in a send ring, or the turn of the next window of its data. */
bool rdma_transport_is_short(const struct rdma_transport *rdma);

/* What is in use, for status lines and tests: all 0 without connections. */
struct rdma_usage {
    uint32_t qpairs;
    uint32_t capsules;
    uint32_t requests;
    uint32_t buf_bytes;
};
void rdma_transport_usage(const struct rdma_transport *rdma,
                          struct rdma_usage *usage);

#endif
