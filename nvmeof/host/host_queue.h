/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One NVMe queue of a host, on one verbs QP: commands out, responses in.
 *
 * The caller brings the QP to life (host.c, by the CM); here are capsules,
 * command identifiers and SQ flow control (NVMe over Fabrics 1.1, 2.4).
 */
#ifndef ESSD_NVMEOF_HOST_QUEUE_H
#define ESSD_NVMEOF_HOST_QUEUE_H

#include "lib/util.h"
#include "net/verbs/verbs.h"
#include "nvmeof/limits.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/sgl.h"
#include "nvmeof/wire/sqe.h"

enum {
    HOST_RESPONSE_STRIDE = 64,
    /* DRAM of one queue: a capsule and two response buffers an entry. */
    HOST_QUEUE_BYTES =
        NVMF_MAX_DEPTH * (NVMF_IO_CAPSULE_LEN + 2 * HOST_RESPONSE_STRIDE),
};

/* One answer.  For a connection that was lost, is_lost and nothing else. */
struct host_result {
    bool is_lost;
    bool with_inv; /* the target invalidated inv_rkey */
    uint32_t inv_rkey;
    struct nvme_cqe cqe;
};

struct host_command {
    struct nvme_sqe sqe;    /* CID is filled in here, PSDT too */
    struct sgl sgl;         /* keyed: of memory that the caller registered */
    const void *in_capsule; /* for SGL_IN_CAPSULE: copied to the capsule */
    void (*done)(void *ctx, const struct host_result *result);
    void *ctx;
};

struct host_slot {
    void (*done)(void *ctx, const struct host_result *result);
    void *ctx;
    uint16_t next_free;
    bool is_busy;
};

struct host_queue {
    struct verbs *verbs;
    uint32_t qpn; /* 0: no QP */
    uint16_t qid;
    uint16_t depth; /* entries of the SQ */
    uint16_t sq_tail;
    uint16_t sqhd; /* as last reported */
    uint16_t outstanding;
    uint16_t free_slot;
    bool is_failed; /* the QP is in ERROR, or the peer sent nonsense */
    uint8_t *capsules;
    uint8_t *responses;
    uint64_t bad_responses; /* of no command of ours */
    uint64_t commands;
    struct host_slot slots[NVMF_MAX_DEPTH];
};

/**
 * @param dram   HOST_QUEUE_BYTES, 64-byte aligned
 * @param depth  2..NVMF_MAX_DEPTH
 * @return false when no QP is free
 */
MUST_USE bool host_queue_init(struct host_queue *queue, struct verbs *verbs,
                              uint16_t qid, uint16_t depth, void *dram);

/** Post the response buffers: the QP must be in INIT or beyond. */
void host_queue_post_responses(struct host_queue *queue);

/**
 * Send a command.  Nothing leaves before verbs_flush().
 *
 * @return false when the SQ is full or the connection is lost
 */
MUST_USE bool host_queue_submit(struct host_queue *queue,
                                const struct host_command *command);

/** Destroy the QP; commands that wait for an answer get is_lost. */
void host_queue_close(struct host_queue *queue);

#endif
