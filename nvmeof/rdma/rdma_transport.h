/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe over RDMA: a transport of the target.  It uses verbs and an RDMA
 * connection manager.
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
 * A receive buffer is posted again before the drive sends the response that
 * frees its SQ entry.  So the next command of a host that keeps within its
 * queue depth always finds a buffer.  A queue has at most as many
 * unacknowledged responses as it has SQ entries: if the host's acknowledgements
 * are late, or the RNIC delivers commands before them, further responses wait
 * in a list of their own, which delays neither commands nor data.
 *
 * Connections may come from several connection managers, one for each RDMA
 * protocol.  Every operation on a connection goes to its own manager, through
 * its `ops`; the limits of half-open connections count those of all managers.
 *
 * Left out: shared receive queues, more than one listening port number of a
 * manager.
 */
#ifndef ESSD_NVMEOF_RDMA_TRANSPORT_H
#define ESSD_NVMEOF_RDMA_TRANSPORT_H

#include "lib/util.h"
#include "net/verbs/rdma_cm.h"
#include "net/verbs/verbs.h"
#include "nvmeof/binding.h"
#include "nvmeof/rdma/rdma_limits.h"
#include "nvmeof/rdma/rdma_relay.h"
#include "nvmeof/target/target.h"
#include "nvmeof/wire/rdma_private.h"

/* Opaque.  Its owner provides rdma_transport_bytes() of memory. */
struct rdma_transport;

/* A connection manager, and the local addresses at which it takes requests. */
struct rdma_manager {
    struct rdma_cm cm;
    uint16_t service_port; /* to listen on; 4420 is NVMe/RDMA's */
    uint8_t qp_type;       /* enum verbs_qp_type of its queue pairs */
    /* PORTID of the discovery log's entry of each local address */
    uint16_t portid[NVMF_MAX_ADDRESSES];
    uint32_t link[NVMF_MAX_ADDRESSES]; /* and that entry's nvmf_address.link */
};

struct rdma_transport_config {
    struct verbs *verbs;
    struct rdma_manager managers[RDMA_MANAGERS];
    uint8_t manager_count; /* 1..RDMA_MANAGERS */
    struct nvmf_target *target;
    void *capsules; /* RDMA_CAPSULE_BYTES of DRAM, 64-byte aligned */
    void *requests; /* rdma_transport_request_bytes() of memory, with the
                     * alignment of max_align_t */
    /* Called for each connection event; may be NULL. */
    void (*conn_event)(void *ctx, const struct nvmf_conn_event *event);
    void *conn_event_ctx;
    /* What stands between the transport and the target; NULL: they call each
     * other. */
    const struct rdma_relay *relay;
};

/** Bytes of memory that a transport needs, with the alignment of max_align_t.
 */
size_t rdma_transport_bytes(void);

/** Bytes of memory for the commands of a transport. */
size_t rdma_transport_request_bytes(void);

/**
 * Start listening.  *config is copied.  The objects it points to must be
 * initialised and must outlive the transport.
 *
 * @return false when a connection manager has no listener left
 */
MUST_USE bool rdma_transport_init(struct rdma_transport *rdma,
                                  const struct rdma_transport_config *config);

/** The transport as the main loop sees it.  Its services are its managers, its
 * requests RDMA_REQUESTS. */
struct nvmf_binding rdma_transport_binding(struct rdma_transport *rdma);

/**
 * Report that the local address of this index of a manager has changed or was
 * removed.  The manager's connections that use the former address end at the
 * next step.
 *
 * @param manager  its index in rdma_transport_config.managers
 */
void rdma_transport_set_address(struct rdma_transport *rdma, uint8_t manager,
                                uint8_t laddr, uint16_t portid, uint32_t link);

/** Set the time of this step of the main loop; call it before verbs_poll(). */
void rdma_transport_tick(struct rdma_transport *rdma, uint64_t now_us);

/**
 * End the connections of peers that have acknowledged nothing for
 * NVMF_PATIENCE_S, although the drive waits for them.  Call it after
 * verbs_poll() and before rdma_transport_step().
 *
 * @return when to call it again at the latest; UINT64_MAX if there is no need
 */
uint64_t rdma_transport_watch(struct rdma_transport *rdma);

/**
 * End connections and give back what they held, which callbacks must not do.
 * Call it after verbs_poll() and the media's completions, and before
 * verbs_flush().
 *
 * @return whether it had work to do
 */
bool rdma_transport_step(struct rdma_transport *rdma);

/** Number of responses that hosts have not acknowledged yet. */
uint32_t rdma_transport_unacked(const struct rdma_transport *rdma);

/**
 * Whether any request waits for hosts to acknowledge WRITEs or responses: such
 * an acknowledgement makes room in a send ring, completes a window of data, or
 * lets a response go that waits behind others.
 */
bool rdma_transport_is_short(const struct rdma_transport *rdma);

/* Resources in use, for status lines and tests.  All are 0 when there is no
 * connection. */
struct rdma_usage {
    uint32_t qpairs;
    uint32_t capsules;
    uint32_t requests;
    /* Half-open connections that were ended for others, since power-on; not a
     * resource. */
    uint32_t half_open_evicted;
};
void rdma_transport_usage(const struct rdma_transport *rdma,
                          struct rdma_usage *usage);

/**
 * The request of a number from 0 to RDMA_REQUESTS - 1, whether or not it holds
 * a command: see nvmf_target_request_info().
 */
const struct nvmf_transfer *rdma_transport_request(
    const struct rdma_transport *rdma, uint32_t number);

#endif
