/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection manager for iWARP: net/verbs/rdma_cm.h by requests and replies
 * of MPA at the beginning of TCP connections.
 * Spec: RFC 5044 section 7, RFC 6581.
 *
 * A connection comes from a socket (struct mpa_cm_socket), which reports what
 * happens to it.  The socket's user numbers the connections: a number below
 * MPA_CM_CONNS is one connection from mpa_cm_asked() until release().
 *
 *   the request of the peer    -> events->request
 *   start_qp()                 -> the stream goes to the queue pair
 *   accept()                   -> the reply; events->established when the peer
 *                                 has it, or has sent its first FPDU
 *   the FIN or end of the TCP connection -> events->disconnected
 *   disconnect()               -> FIN
 *
 * struct rdma_cm_peer has the peer's IP address, as in net/cm.
 *
 * A peer proves its address by the handshake of TCP.  Until its request has
 * come, it holds one of MPA_CM_HALF_OPEN places for MPA_CM_REQUEST_US.  When
 * all of them are taken, the address that has most of them loses its oldest
 * one; a connection displaces nothing of its own address, and nothing of an
 * address that has no more than its own (docs/decisions/0022).
 *
 * A connection that the drive has closed waits for its peer's FIN, for
 * MPA_CM_END_US.  When more than MPA_CM_AMPLE connections are in use,
 * MPA_CM_CLOSINGS may wait: one more aborts the oldest one of its own address
 * if MPA_CM_OWN_CLOSINGS of that wait, or else the oldest of all.
 *
 * Left out: connections that the drive opens.
 */
#ifndef ESSD_NET_MPA_CM_H
#define ESSD_NET_MPA_CM_H

#include "lib/util.h"
#include "net/verbs/rdma_cm.h"
#include "net/verbs/verbs.h"

enum {
    MPA_CM_CONNS = 1088,
    MPA_CM_HALF_OPEN = 64,
    MPA_CM_AMPLE = 512, /* in use, while there is room for everybody */
    MPA_CM_CLOSINGS = 64,
    MPA_CM_OWN_CLOSINGS = 8, /* of one address */
    MPA_CM_LISTENERS = 2,
    MPA_CM_REPLY_LEN = 128,       /* memory of one reply */
    MPA_CM_REQUEST_US = 10000000, /* for a complete request; siw: the same */
    MPA_CM_END_US = 5000000,      /* for the end of a connection */
};

/* Opaque.  Its owner provides mpa_cm_bytes() of memory. */
struct mpa_cm;

/*
 * What carries the connections; `id` is the socket's number of one.  None of
 * the functions calls back before it returns.  Those that return bool return
 * false when nothing has happened and they have to be called again after a turn
 * of the main loop.
 */
struct mpa_cm_socket {
    void *ctx;

    /** Send bytes, which are the socket's until mpa_cm_sent(). */
    bool (*send)(void *ctx, uint32_t id, const void *data, uint32_t len_bytes);

    /** Received bytes are not needed any more. */
    bool (*credit)(void *ctx, uint32_t id, uint32_t len_bytes);

    /** Send a FIN after all bytes.  mpa_cm_closed() follows. */
    bool (*close)(void *ctx, uint32_t id);

    /** End the connection at once.  mpa_cm_aborted() follows. */
    bool (*abort)(void *ctx, uint32_t id);

    /** Give the number back, after mpa_cm_ended() and all completions. */
    bool (*release)(void *ctx, uint32_t id);

    /** Wait until all calls above have been carried out. */
    void (*settle)(void *ctx);
};

struct mpa_cm_config {
    struct mpa_cm_socket socket;
    struct verbs *verbs;
    /* Ring of received bytes of each connection: byte n of the stream is at n
     * modulo ring_bytes.  Connection c has the one at c * ring_bytes. */
    uint8_t *rings;
    uint32_t ring_bytes; /* at least 4096 */
    /* MPA_CM_CONNS * MPA_CM_REPLY_LEN bytes that the socket can read. */
    uint8_t *replies;
    bool wants_crc;        /* else only peers that ask for it get CRCs */
    uint8_t max_rd_atomic; /* READs of ours on a connection */
    uint8_t max_dest_rd_atomic;
    void (*random)(void *ctx, uint8_t *buf, size_t len);
    void *random_ctx;
};

/** Bytes of memory that a manager needs, with the alignment of max_align_t. */
size_t mpa_cm_bytes(void);

/** Initialise a manager without connections and listeners.  *config is copied.
 */
void mpa_cm_init(struct mpa_cm *cm, const struct mpa_cm_config *config);

/** The manager for users of the seam. */
struct rdma_cm mpa_cm_rdma(struct mpa_cm *cm);

/**
 * Try again what had no room, and end what has taken too long.
 *
 * @return when to call this again at the latest; UINT64_MAX if there is no need
 */
uint64_t mpa_cm_step(struct mpa_cm *cm, uint64_t now_us);

enum mpa_cm_counter {
    MPA_CM_REQUESTS, /* complete ones */
    MPA_CM_ACCEPTED,
    MPA_CM_REJECTED,  /* by the user, or for what they ask for */
    MPA_CM_NOT_MPA,   /* connections that began with something else */
    MPA_CM_LATE,      /* that had no complete request in time */
    MPA_CM_DISPLACED, /* ended to make room for others */
    MPA_CM_COUNTERS
};
uint64_t mpa_cm_counter(const struct mpa_cm *cm, enum mpa_cm_counter counter);

/* Connections in use.  All are 0 when there is none. */
struct mpa_cm_usage {
    uint16_t connections;
    uint16_t half_open; /* of these: without a request */
};
struct mpa_cm_usage mpa_cm_usage(const struct mpa_cm *cm);

/* ---- What the socket reports, for connection `conn`. */

struct mpa_cm_peer {
    uint8_t ip[16];
    uint8_t laddr; /* index of the own address */
    uint16_t local_port;
};

/** A peer's SYN was answered.  The number is free. */
void mpa_cm_asked(struct mpa_cm *cm, uint16_t conn, uint32_t id,
                  const struct mpa_cm_peer *peer);
void mpa_cm_established(struct mpa_cm *cm, uint16_t conn);

/**
 * This many more bytes are in the ring.
 *
 * @return false: the first byte is not MPA's: the connection is the socket's
 *         alone from now on, with all bytes in the ring
 */
MUST_USE bool mpa_cm_received(struct mpa_cm *cm, uint16_t conn,
                              uint32_t len_bytes);

/** The oldest send() has been acknowledged; not is_ok: its connection has ended
 * before. */
void mpa_cm_sent(struct mpa_cm *cm, uint16_t conn, bool is_ok);

/** The peer sends nothing more. */
void mpa_cm_finished(struct mpa_cm *cm, uint16_t conn);
void mpa_cm_closed(struct mpa_cm *cm, uint16_t conn);
void mpa_cm_aborted(struct mpa_cm *cm, uint16_t conn);

/** The connection does not exist any more. */
void mpa_cm_ended(struct mpa_cm *cm, uint16_t conn);

#endif
