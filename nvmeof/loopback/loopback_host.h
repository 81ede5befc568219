/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small host on the loopback transport: associations and commands.
 *
 * After loopback_host_connect(), loopback_host_command() sends one command and
 * waits for its completion; loopback_host_submit() and loopback_host_poll()
 * serve several commands at once.
 */
#ifndef ESSD_NVMEOF_LOOPBACK_LOOPBACK_HOST_H
#define ESSD_NVMEOF_LOOPBACK_LOOPBACK_HOST_H

#include "nvmeof/loopback/loopback.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/sqe.h"

enum {
    LOOPBACK_HOST_LOST = 0xffff, /* no status: the queue has ended or is full */
    LOOPBACK_HOST_TIMEOUT_US = 30000000,
};

struct loopback_host_config {
    struct loopback *loopback;
    char subnqn[NVME_NQN_FIELD];
    char hostnqn[NVME_NQN_FIELD];
    uint8_t hostid[NVME_HOSTID_LEN];
    uint32_t kato_ms; /* 0 for no keep-alive time-out */

    /**
     * Run the main loop, with loopback_step(), until is_done(done_ctx).
     * @return false when the time limit was reached before
     */
    bool (*run)(void *ctx, bool (*is_done)(void *done_ctx), void *done_ctx,
                uint64_t timeout_us);
    void *run_ctx;
};

struct loopback_host {
    struct loopback_host_config config;
    uint16_t cntlid;
    uint16_t queue[1 + NVMF_MAX_IO_QUEUES]; /* by QID; or LOOPBACK_NO_QUEUE */
    struct nvme_cqe cqe; /* completion of the last loopback_host_command() */
};

void loopback_host_init(struct loopback_host *host,
                        const struct loopback_host_config *config);

/**
 * Connect one queue, QID 0 first: its completion has the CNTLID that the I/O
 * queues name.
 *
 * @param depth  entries of the queue
 * @return 0, an NVMe status, or LOOPBACK_HOST_LOST.  Unless the result is 0,
 *         the queue is closed again.
 */
MUST_USE uint16_t loopback_host_connect_queue(struct loopback_host *host,
                                              uint16_t qid, uint16_t depth);

/** Write CC: enable or reset the controller.  @return a status, or
 * LOOPBACK_HOST_LOST */
MUST_USE uint16_t loopback_host_enable(struct loopback_host *host,
                                       bool is_enabled);

/** Connect the admin queue, enable the controller, and connect the I/O queues.
 * @return a status, or LOOPBACK_HOST_LOST */
MUST_USE uint16_t loopback_host_connect(struct loopback_host *host,
                                        uint16_t io_queues, uint16_t depth);

/** Close all queues, I/O queues first. */
void loopback_host_disconnect(struct loopback_host *host);

/** Whether a queue is connected and the target has not ended it. */
bool loopback_host_is_live(const struct loopback_host *host, uint16_t qid);

/**
 * Start a command.  This function sets PSDT.
 *
 * @param data  see loopback_send()
 * @return false when the queue is full or has ended
 */
MUST_USE bool loopback_host_submit(struct loopback_host *host, uint16_t qid,
                                   const struct nvme_sqe *sqe, void *data,
                                   uint32_t len_bytes);

/** @return false when no command of the queue has been completed */
MUST_USE bool loopback_host_poll(struct loopback_host *host, uint16_t qid,
                                 struct nvme_cqe *cqe);

/**
 * Send a command on a queue that has no other one outstanding, and wait for its
 * completion, which is in host->cqe afterwards.
 *
 * @return a status, or LOOPBACK_HOST_LOST
 */
MUST_USE uint16_t loopback_host_command(struct loopback_host *host,
                                        uint16_t qid,
                                        const struct nvme_sqe *sqe, void *data,
                                        uint32_t len_bytes);

#endif
