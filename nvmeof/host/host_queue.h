/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One NVMe queue of a host, on one verbs QP: it sends commands and receives
 * responses.
 *
 * host_conn.c connects the QP.  This file does capsules, command identifiers
 * and SQ flow control (NVMe over Fabrics 1.1, 2.4).
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
    /* DRAM of one queue: a capsule and two response buffers for each entry. */
    HOST_QUEUE_BYTES =
        NVMF_MAX_DEPTH * (NVMF_IO_CAPSULE_LEN + 2 * HOST_RESPONSE_STRIDE),
};

/* The result of one command.  If is_lost is set, the other fields are not. */
struct host_result {
    bool is_lost;  /* the connection ended before a response arrived */
    bool with_inv; /* the target invalidated inv_rkey */
    uint32_t inv_rkey;
    struct nvme_cqe cqe;
};

struct host_command {
    struct nvme_sqe sqe;    /* host_queue_submit() sets CID and PSDT */
    struct sgl sgl;         /* if keyed, of memory that the caller registered */
    const void *in_capsule; /* data to copy to the capsule, or NULL */
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
    uint32_t qpn; /* 0 if there is no QP */
    uint16_t qid;
    uint16_t depth; /* entries of the SQ */
    uint16_t sq_tail;
    uint16_t sqhd;        /* SQ head that the last response reported */
    uint16_t outstanding; /* commands without a response */
    uint16_t free_slot;   /* list of free slots, linked by next_free */
    bool is_failed;       /* the QP or the connection has failed */
    uint8_t *capsules;
    uint8_t *responses;
    uint64_t bad_responses; /* malformed ones, and those to no command */
    uint64_t commands;      /* commands sent so far */
    struct host_slot slots[NVMF_MAX_DEPTH]; /* by CID */
};

/**
 * @param dram   HOST_QUEUE_BYTES, 64-byte aligned
 * @param depth  2..NVMF_MAX_DEPTH
 * @return false when no QP is free
 */
MUST_USE bool host_queue_init(struct host_queue *queue, struct verbs *verbs,
                              uint16_t qid, uint16_t depth, void *dram);

/** Post the response buffers.  The QP must be in INIT, RTR or RTS. */
void host_queue_post_responses(struct host_queue *queue);

/**
 * Send a command.  The QP sends nothing before verbs_flush().
 *
 * @return false when the SQ is full or the connection is lost
 */
MUST_USE bool host_queue_submit(struct host_queue *queue,
                                const struct host_command *command);

/** Destroy the QP.  Outstanding commands complete with is_lost. */
void host_queue_close(struct host_queue *queue);

#endif
