/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The seam between NVMe/TCP and whatever has TCP connections: the drive's TCP
 * offload engine, or net/tcp in one process.
 *
 * A connection is named by a number of the socket, from nvme_tcp_asked() until
 * release().
 * Received bytes are in a ring of NVME_TCP_RING_LEN bytes: byte n of the stream
 * is at n modulo that.  Bytes that are sent belong to the socket until
 * nvme_tcp_sent(), which comes in the order of send().
 *
 * None of the functions calls back before it returns.  Those that return bool
 * return false when nothing has happened and they have to be called again after
 * a turn of the main loop, unless awaits_peer() says otherwise.
 */
#ifndef ESSD_NVMEOF_TCP_SOCKET_H
#define ESSD_NVMEOF_TCP_SOCKET_H

#include "lib/util.h"

struct nvmf_piece;

/* Where the data of an R2T go. */
struct nvme_tcp_place {
    uint16_t ttag, cccid;
    uint32_t offset, len_bytes;
    const struct nvmf_piece *pieces; /* len_bytes or more */
};

enum { NVME_TCP_SEND_PIECES = 3 }; /* of one send() */

/* Bytes to send. */
struct nvme_tcp_piece {
    const void *data;
    uint32_t len_bytes;
};

struct nvme_tcp_socket {
    void *ctx; /* first argument of every function below */

    /* Answer nvme_tcp_asked(), inside of that call.  The ring is the socket's
     * until nvme_tcp_ended(). */
    void (*accept)(void *ctx, uint32_t id, void *ring);
    void (*reject)(void *ctx, uint32_t id);

    /* Send 1 to NVME_TCP_SEND_PIECES pieces; at most NVME_TCP_SENDS calls are
     * outstanding. */
    bool (*send)(void *ctx, uint32_t id, const struct nvme_tcp_piece *pieces,
                 uint8_t count);

    /* Whether send(), which has returned false, goes on doing so until the
     * peer has acknowledged something: nvme_tcp_sent() or nvme_tcp_may_send()
     * follows then, and a turn is of no use before.  NULL: it never does. */
    bool (*awaits_peer)(void *ctx, uint32_t id);

    /* Received bytes are not needed any more: their place is free. */
    bool (*credit)(void *ctx, uint32_t id, uint32_t len_bytes);

    /* Send a FIN after all bytes.  nvme_tcp_closed() follows when the
     * connection has ended.  Nothing is written to places any more. */
    bool (*close)(void *ctx, uint32_t id);

    /* End the connection at once.  nvme_tcp_aborted() follows. */
    bool (*abort)(void *ctx, uint32_t id);

    /* Give the number back, after nvme_tcp_ended() and all completions. */
    bool (*release)(void *ctx, uint32_t id);

    /*
     * Follow the stream of PDUs, in both directions: tcp_follow.h.  `received`
     * bytes have come and were not given back; the call gives them back.
     * NULL, or false: the stream goes on as before, as it must when other bytes
     * have come already, or when those of the connection are transformed (TLS).
     */
    bool (*follow)(void *ctx, uint32_t id, uint32_t received,
                   bool has_header_digest, bool has_data_digest);

    /* Write the data of a TTAG to these pieces when they come. */
    bool (*place)(void *ctx, uint32_t id, const struct nvme_tcp_place *place);
};

#endif
