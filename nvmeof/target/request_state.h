/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of one command in the target.  A transport sees the first member
 * only: transport.h.
 */
#ifndef ESSD_NVMEOF_TARGET_REQUEST_STATE_H
#define ESSD_NVMEOF_TARGET_REQUEST_STATE_H

#include "lib/trace.h"
#include "nvmeof/target/transport.h"

/*
 * The states of a request.
 *
 * What a command has checked before it waits is either held, or waited for by
 * the command that changes it, or checked again afterwards:
 *  - Each I/O command holds its namespace, and a Copy those of its sources.
 *    Format, deletion and Sanitize wait for it, so that size, format and place
 *    cannot change.
 *  - Write protection, Preempt and Abort, and detachment wait for the commands
 *    that write.
 *  - Creation, deletion, Format, attachment, detachment and Sanitize are
 *    checked at their turn, and so is a Connect that has waited for room.
 *  - Reservation Register, Acquire and Release look again whether the namespace
 *    is in use and the host still has it; Get LBA Status does before each read,
 *    Firmware Image Download after each window, write protection before it
 *    commits the cache and before it saves, and Authentication Receive reads
 *    the host's entry again after the exponentiation.
 *  - Preempt and Abort, write protection, the end of the write cache, and
 *    Firmware Commit are in force before they wait.
 *  - The contents of Identify and Get Log Page are made after the wait.
 *  - A controller reset ends Set Features with data, write protection, and a
 *    shutdown.
 *
 * A reservation without Preempt and Abort, and a change of an ANA state,
 * concern later commands.  The map to the medium relies on none of this: an
 * operation with a block outside of its namespace moves no data, and ends with
 * 080h.
 */
enum nvmf_request_state {
    NVMF_REQUEST_FREE,        /* Holds no command; belongs to the transport. */
    NVMF_REQUEST_EXECUTING,   /* The target is working on it now. */
    NVMF_REQUEST_WAIT_BUFFER, /* Waits for data buffers, in arrival order. */
    NVMF_REQUEST_FETCHING,    /* Waits for nvmf_request_fetched(). */
    NVMF_REQUEST_WAIT_MEDIA,  /* The media are full; waits, in arrival order. */
    NVMF_REQUEST_MEDIA,       /* Waits for the media. */
    NVMF_REQUEST_AER,         /* Waits for an event to report. */
    NVMF_REQUEST_SENDING,     /* Waits for nvmf_request_sent(). */
    NVMF_REQUEST_RESPONDING,  /* Waits for nvmf_request_done(). */
    NVMF_REQUEST_HELD,      /* A fault rule holds its response back: fault.h. */
    NVMF_REQUEST_AUTH,      /* Waits for the arithmetic of an authentication. */
    NVMF_REQUEST_WAIT_TURN, /* Waits for another command: for an overlapping
                             * write, a change of its namespace, a scratch
                             * buffer, or the other one of its fused pair; or
                             * for the end of other connections. */
    NVMF_REQUEST_STATES
};

struct nvmf_command;
struct nvmf_request;

/* The place of a write in one of the two orders of order.c. */
struct nvmf_write {
    struct nvmf_write *next, **link; /* its place in a list of writes */
    uint64_t sequence;               /* order in which the writes came */
    uint64_t first_lba, end_lba;
    uint32_t nsid;
    bool is_exclusive; /* no overlapping write may be at the media with it */
    /* If it waits: an earlier one that holds it up, or NULL: it has to look
     * whether there is one. */
    const struct nvmf_write *waits_for;
};

/* The position of a scan of Get LBA Status. */
struct nvmf_scan {
    uint64_t next_lba;     /* all blocks of the range before it are done */
    uint32_t probe_blocks; /* most blocks of the next read */
    uint32_t read_blocks;  /* blocks of the last read */
    uint32_t found;        /* descriptors in the data */
    uint32_t bad_blocks;   /* blocks of the last descriptor */
    uint64_t bad_lba;      /* its first one */
    bool has_begun;
    bool has_failed; /* the last read has failed */
    bool is_mark;    /* it has failed because a host has marked a block */
};

/* The position of a command that works through scratch buffers. */
struct nvmf_chunk {
    uint16_t ops;    /* media operations whose results have been used */
    uint16_t range;  /* Copy: number of the source range */
    uint32_t blocks; /* length of this chunk */
    uint32_t done;   /* blocks of this window or source range before it */
    uint32_t total;  /* Copy: blocks of all source ranges before it */
    /* Copy: the namespaces that HOLDS_SOURCE is about, by NSID - 1; and those
     * of them whose nvmf_ns.awaited counts this command. */
    uint32_t sources[NVMF_MAX_NAMESPACES / 32];
    uint32_t awaited[NVMF_MAX_NAMESPACES / 32];
};

/* One command, from nvmf_capsule() until it is free again. */
struct nvmf_request {
    struct nvmf_transfer transfer;

    /* nvmf_capsule() sets these fields, up to `ns`, and the last ones of
     * `transfer`. */
    uint16_t qpair;
    uint8_t state;       /* enum nvmf_request_state */
    uint32_t data_len;   /* bytes that the command moves */
    uint32_t window_len; /* bytes that this window moves */
    uint32_t result[2];  /* dwords 0 and 1 of the CQE */
    uint16_t progress;   /* media operations completed, of `steps` */
    uint16_t steps;
    uint32_t held_by;        /* id of the fault rule that has given the status,
                              * or that holds the response back; 0: none */
    uint16_t error_location; /* of an invalid field: byte in 7:0, bit in 10:8 */
    bool owns_buffers;       /* The target must return the pieces with put(). */
    bool is_unlogged;        /* An error gets no entry in the error log. */
    struct nvmf_ns *ns;      /* the namespace that it uses; NULL: none */

    uint8_t owned_count;  /* pieces to return; last window may use fewer */
    uint8_t owner;        /* owner of these pieces */
    bool is_before_proof; /* they count in nvmf_ctrl.bufs_before_proof */
    uint32_t room_len;    /* bytes that fit into its buffers */
    uint8_t holds;        /* what it keeps from others: HOLDS_ORDER and so on */
    uint8_t scratch;      /* number of its scratch buffer, with HOLDS_SCRATCH */
    uint8_t fused_step;   /* of the second command of a fused pair */
    struct nvmf_request *next_cid;  /* in a list of identifiers in use */
    struct nvmf_request **cid_link; /* what points to this request there; NULL:
                                     * its identifier does not count as used */
    struct nvmf_request *partner;   /* the other command of its fused pair */
    union {
        struct {
            struct nvmf_write write;   /* with HOLDS_ORDER: the write that is at
                                        * the media, or waits for it */
            struct nvmf_write arrival; /* with an arrival_state: all blocks of
                                        * the command, from its arrival on */
        };
        struct nvmf_scan scan; /* of Get LBA Status */
    };
    uint64_t fetch_us; /* with an arrival_state: when the fetch of this window
                        * began */
    uint8_t arrival_state; /* enum arrival_state */
    uint8_t patience; /* checks of patience.c since it began to wait for the
                       * commands of others */
    struct nvmf_target *target;     /* in NVMF_REQUEST_MEDIA: for media_owner */
    struct media_owner media_owner; /* of the operation at the media */
    struct nvmf_chunk chunk;
    uint64_t error_lba; /* of an error of protection information */
    uint32_t shutdown;  /* of a Property Set: the shutdown that it began, by
                         * the number from ctrl_begin_shutdown() */
    /* What must not change while the data arrive.  Firmware Image Download:
     * firmware_manager.image.  Set Features: nvmf_ctrl.resets. */
    uint32_t epoch;
    const struct nvmf_command *command;
    const struct nvmf_data *data; /* during nvmf_capsule() only */
    struct nvme_sqe sqe;
    uint64_t arrived_us; /* when its command came */
    struct nvmf_request *next;
    uint64_t held_until_us; /* in NVMF_REQUEST_HELD; UINT64_MAX: for ever */
    uint16_t held_status;   /* in NVMF_REQUEST_HELD: status to respond with */
    const struct trace *trace; /* NULL if this request is not traced */
    uint64_t entered_us;       /* when it entered its state, if traced */
    uint32_t stage_us[NVMF_REQUEST_STATES]; /* time in each state, if traced */
};

/* The command whose transfer the transport names. */
static inline struct nvmf_request *nvmf_request_of(
    struct nvmf_transfer *transfer)
{
    return container_of(transfer, struct nvmf_request, transfer);
}

#endif
