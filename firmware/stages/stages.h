/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stages of a command, on several harts.
 *
 *   transport  completions of the RNIC, NVMe/RDMA, the network below them
 *   target     the NVMe-oF target, its buffers, and what counts errors
 *   medium     volume, translation layer and NAND controller
 *
 * Each stage owns its state, and one hart at a time has the stage: it takes the
 * stage, does what is there to do, and gives it back.  So one queue pair is
 * served by several harts, which a shard for each queue pair would not do.
 * Stages tell each other by messages in rings, and never call each other.
 *
 * A stage does only what concerns it alone: plain commands
 * (nvmeof/target/plain.h), and successful completions.  All the rest waits for
 * a turn of the main loop, in which hart 0 has all stages, the rings are empty,
 * and calls are calls, as in firmware with one hart.
 *
 * A hart's loop:
 *
 *   if (hart is 0 && stages_want_turn() && stages_begin_turn()) {
 *       loop_turn(); stages_end_turn();
 *   } else if (stages_take(stages, hart, now_us)) {
 *       stages_give(stages, hart);
 *   } else {
 *       ... wait for an interrupt ...
 *   }
 *
 * Reasons: docs/decisions/0070-stages-on-harts.md
 */
#ifndef ESSD_STAGES_STAGES_H
#define ESSD_STAGES_STAGES_H

#include <stdalign.h>

#include "firmware/stages/stage_ring.h"
#include "nvmeof/rdma/rdma_relay.h"
#include "nvmeof/target/target.h"

struct dram;
struct nand_medium;
struct rdma_transport;
struct verbs;
struct volume;

/* What the stages consist of. */
struct stages_parts {
    struct rdma_transport *rdma;
    struct verbs *verbs;
    struct nvmf_target *target;
    struct volume *volume;
    struct nand_medium *nand;
};

enum drive_stage { STAGE_TRANSPORT, STAGE_TARGET, STAGE_MEDIUM, STAGES };

enum {
    STAGE_HARTS = 4,
    STAGE_OPS = 1024, /* operations of the medium that are in progress */
    /* A request has at most one message in a ring: its next one is put only
     * after the other stage has answered. */
    STAGE_MESSAGES = 16384,
};

/* From the transport to the target: a command has arrived. */
struct stage_capsule {
    struct nvmf_transfer *transfer;
    const uint8_t *sqe;
    uint64_t now_us;
    struct nvmf_data data;
    uint16_t qpair;
};

/* From the transport to the target: data were moved. */
struct stage_moved {
    struct nvmf_transfer *transfer;
    bool is_fetched; /* else they were sent */
    bool is_ok;
};

enum stage_order_kind { ORDER_FETCH, ORDER_SEND, ORDER_DISCONNECT };

/* From the target to the transport. */
struct stage_order {
    struct nvmf_transfer *transfer;
    uint8_t kind; /* enum stage_order_kind */
    uint16_t qpair;
};

/* From the target to the medium: start an operation. */
struct stage_start {
    uint16_t op; /* number */
    bool is_targets;
};

/* From the medium to the target: an operation has ended. */
struct stage_end {
    uint16_t op;
    uint8_t status; /* enum media_status */
    uint32_t failed_block;
};

/* An operation of the medium.  The target writes the first line only, so that
 * no other one moves between caches. */
struct stage_op {
    alignas(STAGE_LINE) struct media_io io;
    alignas(STAGE_LINE) struct media_owner owner; /* of the operation */
    struct stages *stages;
};

/* What only the target knows of an operation. */
struct stage_op_owner {
    struct media_owner *whole;
    bool is_targets; /* `whole` belongs to a command of the target */
    uint16_t next_free;
};

struct stages {
    struct stages_parts parts;
    struct rdma_relay relay;
    struct nvmf_media inner; /* the medium's own seam */
    bool is_apart;           /* not in a turn of the main loop: the stages may
                              * be on different harts */
    bool is_several;         /* there is more than one hart */
    bool wants_turn;
    uint64_t medium_us;      /* when the medium has work without a message */
    uint32_t holder[STAGES]; /* the hart that has it, plus 1; 0: none */
    uint8_t last[STAGES];    /* the hart that had it last */
    uint8_t stage_of[STAGE_HARTS]; /* enum drive_stage, or STAGES */
    uint16_t free_op;
    uint32_t failed_block;  /* of the completion that is handled now */
    uint64_t moves[STAGES]; /* how often it went to another hart */
    uint64_t lines[STAGES]; /* of the memory of the messages it has taken */
    struct stage_ring capsules, moved, done; /* to the target */
    struct stage_ring orders, responses;     /* from it to the transport */
    struct stage_ring starts, ends;          /* to the medium, and from it */
    struct stage_capsule capsule[STAGE_MESSAGES];
    struct stage_moved moves_ended[STAGE_MESSAGES];
    struct nvmf_transfer *ended[STAGE_MESSAGES];
    struct stage_order order[STAGE_MESSAGES];
    struct nvmf_transfer *response[STAGE_MESSAGES];
    struct stage_start start[STAGE_OPS];
    struct stage_end end[STAGE_OPS];
    struct stage_op ops[STAGE_OPS];
    struct stage_op_owner owners[STAGE_OPS];
};

/** Make the stages of a drive with a NAND array. @return NULL: no memory */
struct stages *stages_make(const struct stages_parts *parts, struct dram *dram);

/** The medium's seam, which the target uses while there is one hart. */
void stages_set_media(struct stages *stages, const struct nvmf_media *inner);

/** drive_medium.submit for what the drive does by itself. */
MUST_USE bool stages_submit_own(void *ctx, const struct media_io *io);

/** sanitize_config.wipe, with the same context. */
MUST_USE bool stages_wipe(void *ctx, struct media_owner *owner);

/** Use one hart, and no messages, or several.  At the start it is one.  No
 * command may be in progress. */
void stages_use_harts(struct stages *stages, unsigned int harts);

/** Whether a turn of the main loop has to come next. */
bool stages_want_turn(const struct stages *stages);
void stages_request_turn(struct stages *stages);

/**
 * Take all stages, for a turn of the main loop.
 * @return false while other harts have stages; no hart takes one meanwhile
 */
MUST_USE bool stages_begin_turn(struct stages *stages);
void stages_end_turn(struct stages *stages);

/**
 * Take a stage that has something to do, and do it.
 * @return false when there is none
 */
MUST_USE bool stages_take(struct stages *stages, unsigned int hart,
                          uint64_t now_us);

/** Show others what the stage has put into rings, and give the stage back. */
void stages_give(struct stages *stages, unsigned int hart);

#endif
