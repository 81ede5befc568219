/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport seam: requests, and the functions of a transport that the
 * target calls.
 *
 * The functions that a transport calls are in target.h.  A transport owns the
 * memory of its requests, one for each capsule buffer, and keeps the host's
 * data descriptor (for RDMA: the keyed SGL) beside each; the target never sees
 * an address or a key.
 */
#ifndef ESSD_NVMEOF_TARGET_TRANSPORT_H
#define ESSD_NVMEOF_TARGET_TRANSPORT_H

#include "lib/trace.h"
#include "nvmeof/limits.h"
#include "storage/block/media.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/discovery.h"
#include "nvmeof/wire/sqe.h"

/* The states of a request. */
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
                             * buffer, or the other one of its fused pair. */
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

/* The transport's result of reading the command's data descriptor (SGL1). */
struct nvmf_data {
    uint32_t len_bytes; /* length that the descriptor names; 0 for none */
    uint16_t status;    /* enum nvme_status; 0 if the descriptor is valid.
                         * Reported only if the command moves data. */
    struct nvmf_piece in_capsule; /* data that came with the command, of
                                   * len_bytes; valid until the request ends.
                                   * ptr is NULL if the host holds the data. */
    struct nvmf_piece spare; /* memory that the transport does not use before
                              * the response.  Connect puts its data there, so
                              * that it need not wait for a buffer.  len_bytes
                              * is 0 if the transport has no such memory. */
};

/*
 * One command.  If there are too few buffers for all of its data, the data
 * moves in several windows through the same buffers.  Each window of a write is
 * fetched and then written to the media; each window of a read is read from the
 * media and then sent, the last one by respond().
 *
 * A transport embeds this struct in a request struct of its own, which it finds
 * again with container_of().  The transport zeroes this struct before its first
 * use.  The target owns the request from nvmf_capsule() to nvmf_request_done(),
 * or until the queue pair is drained.
 */
struct nvmf_request {
    /* The transport reads these fields, in fetch(), send() and respond(). */
    uint16_t qpair;
    uint8_t state; /* enum nvmf_request_state */
    uint8_t piece_count;
    uint32_t number; /* label in traces; the transport sets it once */

    /*
     * nvmf_capsule() sets the fields from here to `ns` when a command arrives.
     * They are beside each other so that this takes few stores.
     */
    uint32_t data_offset; /* offset of this window in the host's data */
    uint32_t fetch_len;   /* fetch(): bytes to copy into pieces */
    uint32_t send_len;    /* send(), respond(): bytes to send from pieces; may
                           * be 0 in respond() */

    /* Only the target uses these fields, up to `ns`. */
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

    /* The transport reads these fields, too. */
    struct nvmf_piece pieces[NVMF_MAX_PIECES];
    uint8_t cqe[NVME_CQE_LEN]; /* respond(): the response capsule */

    /*
     * The transport writes these fields, for traces only: when the command
     * arrived and when the host acknowledged the response, in the time of the
     * transport's hardware.  0: not known.
     */
    uint64_t arrived_ns;
    uint64_t acknowledged_ns;

    /* Only the target uses these fields. */
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

/* An event of a connection, for the log: it is established, has ended, or was
 * refused before there was a queue pair. */
struct nvmf_conn_event {
    uint8_t trtype;     /* enum nvme_trtype */
    bool is_connected;  /* established; otherwise ended, or refused */
    uint16_t qpair;     /* the target's number of the queue pair */
    uint16_t qid;       /* NVMe queue identifier; 0 is the admin queue */
    uint8_t laddr;      /* index of the local address that the host used */
    uint8_t host[16];   /* nvmf_qpair_params.host */
    uint16_t status;    /* why it was refused, a number of the transport; 0: it
                         * was not refused */
    const char *reason; /* the same in words; NULL: the reason is unknown */
};

/*
 * One transport.  The target may have several at the same time: each queue pair
 * points to the one that it was reserved with, so this struct must outlive all
 * queue pairs of the transport.
 *
 * None of the functions may call back into the target before it returns.
 */
struct nvmf_transport {
    void *ctx;      /* first argument of every function below */
    uint8_t trtype; /* enum nvme_trtype, which names the transport in logs */
    uint32_t sgls;  /* descriptors that it supports: bits of Identify SGLS */
    uint32_t in_capsule_len; /* most bytes of data in an I/O command's capsule,
                              * right after the SQE; 0 for none */
    /* The same for an admin or Fabrics command.  NVMe/RDMA: 0; NVMe/TCP: 8192.
     * No field of Identify reports it. */
    uint32_t admin_in_capsule_len;

    /**
     * Copy req->fetch_len bytes of the host's data, from req->data_offset on,
     * into req->pieces (RDMA: a READ).  The transport then calls
     * nvmf_request_fetched(), also if the queue pair fails.  The target does
     * not call fetch() for data in the capsule.
     */
    void (*fetch)(void *ctx, struct nvmf_request *req);

    /**
     * Copy req->send_len bytes from req->pieces to the host's data, from
     * req->data_offset on (RDMA: a WRITE).  More data follows before the
     * response.  The transport calls nvmf_request_sent() when it no longer uses
     * the pieces, also if the queue pair fails.
     */
    void (*send)(void *ctx, struct nvmf_request *req);

    /**
     * Send req->send_len bytes from req->pieces to req->data_offset, then
     * req->cqe.  The transport calls nvmf_request_done() when the peer has
     * acknowledged both, or when the queue pair has failed.  (RDMA: a WRITE and
     * a SEND, with invalidate if the descriptor asked for it, as one linked
     * pair.)
     */
    void (*respond)(void *ctx, struct nvmf_request *req);

    /**
     * End this queue pair's connection after the responses given to respond()
     * so far have been sent.  The transport calls nvmf_qpair_closed() then, as
     * after every other end of a connection.  If the connection takes too long
     * to end, the target calls disconnect() once more: the transport must then
     * end it without waiting for the peer.
     */
    void (*disconnect)(void *ctx, uint16_t qpair);

    /**
     * Report that the target no longer uses a queue pair for which
     * nvmf_qpair_closed() returned false.  The target holds no request of this
     * queue pair, has released its part of the queue budget, and may return
     * its number from the next nvmf_qpair_reserve().  The target calls
     * drained() from inside the nvmf_ function that ended the last request.
     */
    void (*drained)(void *ctx, uint16_t qpair);
};

#endif
