/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe-oF inside one process: a transport that needs no network.
 *
 * A host in the same process opens queues, sends commands with its data in
 * memory, and polls for their completions.  As with NVMe/TCP, the transport
 * learns QID and size of a queue from its Connect command.  Tests use it beside
 * RDMA; tools can use it to reach the target without a host.
 *
 * The calls of a host:
 *   loopback_open() -> loopback_send() of Connect -> loopback_receive()
 *   -> loopback_send() ... loopback_receive() ... -> loopback_close()
 *
 * The owner of the main loop calls loopback_step() in each turn.
 *
 * Left out: data in the capsule.  The transport does not read the commands'
 * SGLs; loopback_send() has arguments for address and length of the data.
 * Spec: NVMe over Fabrics 1.1, TRTYPE FEh (intra-host transport).
 */
#ifndef ESSD_NVMEOF_LOOPBACK_LOOPBACK_H
#define ESSD_NVMEOF_LOOPBACK_LOOPBACK_H

#include "lib/util.h"
#include "nvmeof/limits.h"
#include "nvmeof/target/target.h"

enum { LOOPBACK_NO_QUEUE = 0xffff };

/* The states of a queue. */
enum loopback_queue_state {
    LOOPBACK_QUEUE_FREE,     /* Unused; waits for loopback_open(). */
    LOOPBACK_QUEUE_OPENING,  /* Waits for the next step, which opens its queue
                              * pair in the target. */
    LOOPBACK_QUEUE_OPEN,     /* Takes commands, until either side ends it. */
    LOOPBACK_QUEUE_ENDING,   /* The target has ended it; the queue delivers the
                              * responses that it has, then closes its queue
                              * pair in the target. */
    LOOPBACK_QUEUE_FAILED,   /* The host has closed it, or the target has called
                              * disconnect() twice; the next step closes its
                              * queue pair, whatever is outstanding. */
    LOOPBACK_QUEUE_DRAINING, /* Waits until the target has drained it. */
    LOOPBACK_QUEUE_ENDED,    /* Waits for the host's loopback_close(). */
};

/* The states of a request. */
enum loopback_request_state {
    LOOPBACK_REQUEST_FREE,       /* Unused; waits for loopback_send(). */
    LOOPBACK_REQUEST_SENT,       /* Waits for the next step, which hands the
                                  * command to the target. */
    LOOPBACK_REQUEST_TARGET,     /* The target works on it, until it calls
                                  * fetch(), send() or respond(). */
    LOOPBACK_REQUEST_FETCHING,   /* Waits for the next step, which copies the
                                  * host's data to the target. */
    LOOPBACK_REQUEST_SENDING,    /* Waits for the next step, which copies one
                                  * window of the target's data to the host. */
    LOOPBACK_REQUEST_RESPONDING, /* Waits for the next step, which copies the
                                  * target's data to the host. */
    LOOPBACK_REQUEST_DONE,       /* Waits for loopback_receive(). */
};

/* One command.  Treat as opaque. */
struct loopback_request {
    struct nvmf_transfer *nvmf;
    struct loopback_queue *queue;
    uint8_t state; /* enum loopback_request_state */
    uint8_t sqe[NVME_SQE_LEN];
    uint8_t cqe[NVME_CQE_LEN];
    uint8_t *data; /* the host's data */
    uint32_t len_bytes;
    uint32_t order; /* counts changes of state in the queue; oldest is lowest */
};

/* One queue.  Treat as opaque. */
struct loopback_queue {
    struct loopback *loopback;
    uint16_t qpair; /* the target's number of it */
    uint8_t state;  /* enum loopback_queue_state */
    bool is_closed; /* the host has called loopback_close() */
    uint32_t next_order;
    struct loopback_request requests[NVMF_MAX_DEPTH];
};

struct loopback_config {
    struct nvmf_target *target; /* must be initialised before the first step */
    uint16_t portid;            /* PORTID that no other transport uses */
    struct loopback_queue *queues; /* memory for queue_count queues */
    uint16_t queue_count;          /* 1..NVMF_MAX_QPAIRS */
    void *requests; /* loopback_request_bytes(queue_count) of memory, with the
                     * alignment of max_align_t */
};

struct loopback {
    struct loopback_config config;
    struct nvmf_transport transport;
    uint64_t now_us;
    uint16_t by_qpair[NVMF_MAX_QPAIRS]; /* queue of each queue pair */
};

/** Bytes of memory for the commands of so many queues. */
size_t loopback_request_bytes(uint16_t queue_count);

/** Initialise without a queue.  *config is copied; the objects it points to
 * must outlive the transport. */
void loopback_init(struct loopback *loopback,
                   const struct loopback_config *config);

/**
 * Open a queue without QID and size.  Its Connect command, which names them,
 * must be sent next.
 *
 * @param queue  out: the number of the queue, until loopback_close()
 * @return false when no queue is free here, or no queue pair in the target
 */
MUST_USE bool loopback_open(struct loopback *loopback, uint16_t *queue);

/**
 * Send one command.  The next loopback_step() hands it to the target.
 *
 * @param sqe        NVME_SQE_LEN bytes, copied
 * @param data       data that the command moves, in either direction; the
 *                   transport reads and writes it until the completion has been
 *                   received or loopback_close() has returned; NULL when
 *                   len_bytes is 0
 * @param len_bytes  length of data: the target compares it with the length that
 *                   the command moves
 * @return false when the queue has ended, or is full: it has as many commands
 *         without a received completion as it has entries (one before Connect)
 */
MUST_USE bool loopback_send(struct loopback *loopback, uint16_t queue,
                            const uint8_t *sqe, void *data, uint32_t len_bytes);

/**
 * Receive the oldest completion.
 *
 * @param cqe  out: NVME_CQE_LEN bytes
 * @return false when there is none
 */
MUST_USE bool loopback_receive(struct loopback *loopback, uint16_t queue,
                               uint8_t *cqe);

/** Whether the queue takes commands; false after the target has ended it. */
bool loopback_is_open(const struct loopback *loopback, uint16_t queue);

/**
 * Close a queue, which may have ended already.  Commands that are outstanding
 * are never completed, and the transport accesses their data no more.
 * loopback_open() may return the same number after the target has drained it.
 */
void loopback_close(struct loopback *loopback, uint16_t queue);

/**
 * Move everything that waits: commands to the target, data in both directions,
 * completions, and the ends of queues.
 *
 * @param now_us  never goes back
 * @return whether anything was moved
 */
bool loopback_step(struct loopback *loopback, uint64_t now_us);

/** Number of queues in use, for tests and status lines. */
uint16_t loopback_queues_used(const struct loopback *loopback);

#endif
