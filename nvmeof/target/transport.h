/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport seam: what a transport sees of a command, and the functions of
 * a transport that the target calls.
 *
 * The functions that a transport calls are in target.h.  A transport keeps the
 * host's data descriptor (for RDMA: the keyed SGL) beside each command; the
 * target never sees an address or a key.
 */
#ifndef ESSD_NVMEOF_TARGET_TRANSPORT_H
#define ESSD_NVMEOF_TARGET_TRANSPORT_H

#include "nvmeof/limits.h"
#include "storage/block/media.h"
#include "nvmeof/wire/cqe.h"
#include "nvmeof/wire/discovery.h"
#include "nvmeof/wire/sqe.h"

#include <stddef.h>

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
 * What a transport sees of one command: which bytes to move, and the response.
 *
 * If there are too few buffers for all of its data, the data moves in several
 * windows through the same buffers.  Each window of a write is fetched and then
 * written to the media; each window of a read is read from the media and then
 * sent, the last one by respond().
 *
 * The transport provides memory for each command that it can have at a time,
 * one for each capsule buffer, and nvmf_request_init() makes this struct of it.
 * The target keeps the state of the command behind it, which no transport sees.
 * The target owns the memory from nvmf_capsule() to nvmf_request_done(), or
 * until the queue pair is drained.
 */
struct nvmf_transfer {
    void *owner;     /* the transport's; nvmf_request_init() sets it once */
    uint32_t number; /* label in traces, likewise */

    /*
     * The transport writes these fields, for traces only: when the command
     * arrived and when the host acknowledged the response, in the time of the
     * transport's hardware.  0: not known.
     */
    uint64_t arrived_ns;
    uint64_t acknowledged_ns;

    /* The transport reads these fields, in fetch(), send() and respond(). */
    uint8_t cqe[NVME_CQE_LEN]; /* respond(): the response capsule */
    struct nvmf_piece pieces[NVMF_MAX_PIECES];

    /*
     * nvmf_capsule() sets the fields from here on when a command arrives, and
     * the first ones of the target's state, which follow.  They are beside each
     * other so that this takes few stores.
     */
    uint8_t piece_count;
    uint32_t data_offset; /* offset of this window in the host's data */
    uint32_t fetch_len;   /* fetch(): bytes to copy into pieces */
    uint32_t send_len;    /* send(), respond(): bytes to send from pieces; may
                           * be 0 in respond() */
};

/** Bytes of memory for one command, so many that commands can stand side by
 * side in memory with the alignment of max_align_t. */
size_t nvmf_request_bytes(void);

/**
 * Make what a transport sees of a command, and the state behind it, in memory
 * of nvmf_request_bytes().
 *
 * @param number  its label in traces
 * @param owner   what the transport finds in nvmf_transfer.owner
 */
struct nvmf_transfer *nvmf_request_init(void *memory, uint32_t number,
                                        void *owner);

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

/* What protects a connection. */
enum nvmf_channel_kind {
    NVMF_CHANNEL_NO_TLS,   /* Nothing: TLS is off, or the transport has none. */
    NVMF_CHANNEL_PLAIN,    /* Nothing: its peer has not asked for TLS. */
    NVMF_CHANNEL_RETAINED, /* TLS, with the key that the host's entry has. */
    NVMF_CHANNEL_GENERATED /* TLS, with a key that the host has generated with
                            * the drive: generated.c */
};

struct nvmf_channel {
    uint8_t kind; /* enum nvmf_channel_kind */
    uint32_t key; /* number of the generated key; 0: it is not there any more */
};

/*
 * One transport.  The target may have several at the same time: each queue pair
 * points to the one that it was reserved with, so this struct must outlive all
 * queue pairs of the transport.
 *
 * None of the functions may call back into the target before it returns, except
 * that admits() and channel() may call nvmf_target_generated_key().
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
    /* Its host is a part of this drive: it needs no entry in the list of hosts
     * and no authentication. */
    bool is_inside;
    /* Most queue pairs that it can have, if that is fewer than the target's;
     * otherwise 0. */
    uint16_t max_qpairs;
    /* The transport of which this one is a part with a limit of its own: its
     * queue pairs count there, too.  NULL: none. */
    const struct nvmf_transport *within;

    /**
     * Whether the host with this NQN may have the queue pair: the peer may have
     * proven another name to the transport.  NULL: any may.
     */
    bool (*admits)(void *ctx, uint16_t qpair, const char *hostnqn);

    /** What protects a queue pair.  NULL: the transport has no TLS. */
    struct nvmf_channel (*channel)(void *ctx, uint16_t qpair);

    /**
     * Copy transfer->fetch_len bytes of the host's data, from
     * transfer->data_offset on, into transfer->pieces (RDMA: a READ).  The
     * transport then calls nvmf_request_fetched(), also if the queue pair
     * fails.  The target does not call fetch() for data in the capsule.
     */
    void (*fetch)(void *ctx, struct nvmf_transfer *transfer);

    /**
     * Copy transfer->send_len bytes from transfer->pieces to the host's data,
     * from transfer->data_offset on (RDMA: a WRITE).  More data follows before
     * the response.  The transport calls nvmf_request_sent() when it no longer
     * uses the pieces, also if the queue pair fails.
     */
    void (*send)(void *ctx, struct nvmf_transfer *transfer);

    /**
     * Send transfer->send_len bytes from transfer->pieces to
     * transfer->data_offset, then transfer->cqe.  The transport calls
     * nvmf_request_done() when the peer has acknowledged both, or when the
     * queue pair has failed.  (RDMA: a WRITE and a SEND, with invalidate if the
     * descriptor asked for it, as one linked pair.)
     */
    void (*respond)(void *ctx, struct nvmf_transfer *transfer);

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
