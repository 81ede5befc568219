/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVMe over TCP: a transport of the target.  It uses a socket (tcp_socket.h),
 * and knows nothing of what carries its connections.
 * Spec: NVM Express TCP Transport 1.0.
 *
 * Each NVMe queue has one connection.
 *
 *   CapsuleCmd -> nvmf_capsule(), with the data that came in the capsule
 *   fetch      -> R2T; H2CData is copied to the pieces; then
 *                 nvmf_request_fetched()
 *   send       -> C2HData, then nvmf_request_sent() when it is acknowledged
 *   respond    -> C2HData and CapsuleResp, then nvmf_request_done() when they
 *                 are acknowledged; C2HData with SUCCESS alone if the queue has
 *                 no SQ flow control
 *
 * A capsule that has come is always read, so that its command has its place in
 * the order of the writes of two paths: there is a slot for the data of each SQ
 * entry.  Only commands that need two slots, and those of a peer that
 * acknowledges no responses, may have to wait; then the connection is not read,
 * and the peer's window closes.  What it waits for are commands that have all
 * of their data, or acknowledgements, never bytes that are behind in the same
 * stream.  If these commands wait for commands of another stream, which may
 * stop for this one, one of them is interrupted.
 *
 * How a wrong PDU ends a connection, and what is left out: docs/nvme-tcp.md.
 */
#ifndef ESSD_NVMEOF_TCP_NVME_TCP_H
#define ESSD_NVMEOF_TCP_NVME_TCP_H

#include "lib/trace.h"
#include "lib/util.h"
#include "nvmeof/binding.h"
#include "nvmeof/target/target.h"
#include "nvmeof/tcp/tcp_fault.h"
#include "nvmeof/tcp/tcp_follow.h"
#include "nvmeof/tcp/tcp_limits.h"
#include "nvmeof/tcp/tcp_socket.h"

/* Opaque.  Its owner provides nvme_tcp_bytes() of memory. */
struct nvme_tcp;

struct nvme_tcp_config {
    struct nvme_tcp_socket socket;
    struct nvmf_target *target;
    /* NVME_TCP_MEMORY_BYTES that the socket can read and write, and the medium,
     * aligned to 4096 bytes. */
    uint8_t *memory;
    uint32_t handle;           /* of the pieces in this memory */
    void *requests;            /* nvme_tcp_request_bytes() of memory, with the
                                * alignment of max_align_t */
    uint32_t first_request;    /* label in traces of the first request */
    const struct trace *trace; /* NULL: none */
    struct nvme_tcp_faults *faults; /* rules for PDUs; NULL: none */
    /* PORTID of the discovery log's entry of each local address, and that
     * entry's nvmf_address.link. */
    uint16_t portid[NVMF_MAX_ADDRESSES];
    uint32_t link[NVMF_MAX_ADDRESSES];
    /* Whether the peer of a connection, by the socket's number, may say that it
     * is the host with this NQN; NULL: every one may. */
    bool (*admits)(void *ctx, uint32_t id, const char *hostnqn);
    /* What protects it.  NULL: nothing does, and nothing can. */
    struct nvmf_channel (*channel)(void *ctx, uint32_t id);
    void *admits_ctx; /* of both */
    /* Called for each connection event; may be NULL. */
    void (*conn_event)(void *ctx, const struct nvmf_conn_event *event);
    void *conn_event_ctx;
};

/** Bytes of memory that a transport needs, with the alignment of max_align_t.
 */
size_t nvme_tcp_bytes(void);

/** Bytes of memory for the commands of a transport. */
size_t nvme_tcp_request_bytes(void);

/** Initialise a transport without connections.  *config is copied. */
void nvme_tcp_init(struct nvme_tcp *tcp, const struct nvme_tcp_config *config);

/** The transport as the main loop sees it. */
struct nvmf_binding nvme_tcp_binding(struct nvme_tcp *tcp);

/* Resources in use, for status lines and tests.  All are 0 when there is no
 * connection. */
struct nvme_tcp_usage {
    uint32_t connections;
    uint32_t qpairs;
    uint32_t requests;
    uint32_t slots; /* for data in capsules, of those that all queues share */
};
struct nvme_tcp_usage nvme_tcp_usage(const struct nvme_tcp *tcp);

/* What a connection is used for. */
struct nvme_tcp_details {
    bool is_connected; /* Connect was accepted */
    uint16_t qid;      /* NVMe queue identifier; 0 before Connect */
    bool has_header_digest, has_data_digest;
    uint16_t commands;      /* without a response */
    uint16_t responses;     /* that are not acknowledged */
    uint16_t r2ts;          /* whose data have not come */
    bool is_waiting;        /* its stream is not read for the time being */
    uint32_t digest_errors; /* of data */
};

/** @param id  the socket's number of the connection
 * @return false when it is none of NVMe/TCP */
bool nvme_tcp_describe(const struct nvme_tcp *tcp, uint32_t id,
                       struct nvme_tcp_details *details);

/* Since power-on. */
enum nvme_tcp_counter {
    NVME_TCP_CONNECTIONS,    /* whose handshake was completed */
    NVME_TCP_REFUSED,        /* no connection or no queue pair was free */
    NVME_TCP_DISPLACED,      /* ended without proof, to make room */
    NVME_TCP_SILENT,         /* ended because the peer was silent */
    NVME_TCP_TERMS_SENT,     /* C2HTermReq */
    NVME_TCP_TERMS_RECEIVED, /* H2CTermReq */
    NVME_TCP_HEADER_DIGESTS, /* wrong ones */
    NVME_TCP_DATA_DIGESTS,
    /* PDUs. */
    NVME_TCP_CAPSULES, /* CapsuleCmd */
    NVME_TCP_H2C_DATA,
    NVME_TCP_R2TS,
    NVME_TCP_C2H_DATA,
    NVME_TCP_RESPONSES, /* CapsuleResp */
    NVME_TCP_SUCCESSES, /* C2HData with SUCCESS, instead of CapsuleResp */
    NVME_TCP_PLACED,    /* H2CData that the socket has placed */
    NVME_TCP_COUNTERS
};
uint64_t nvme_tcp_counter(const struct nvme_tcp *tcp,
                          enum nvme_tcp_counter counter);

/** End all connections, and refuse new ones or no longer. */
void nvme_tcp_serve(struct nvme_tcp *tcp, bool is_on);

/* ---- What the socket reports. */

/** Both ends of a connection, as IPv6 or IPv4-mapped addresses. */
struct nvme_tcp_peer {
    uint8_t host[NVMF_ADDRESS_LEN];
    uint8_t laddr; /* index of the local address; others have PORTID 0 */
    bool is_behind_tls;
};

enum { NVME_TCP_NONE = NVME_TCP_QUEUES }; /* no connection */

/**
 * A peer asks for a connection.  accept() or reject() is called inside.
 *
 * @param id  the socket's number of the connection
 * @return 0..NVME_TCP_QUEUES - 1, the number that the functions below take,
 *         until release(); NVME_TCP_NONE: it is rejected
 */
uint16_t nvme_tcp_asked(struct nvme_tcp *tcp, uint32_t id,
                        const struct nvme_tcp_peer *peer);
void nvme_tcp_established(struct nvme_tcp *tcp, uint16_t conn);

/** Whether a handshake is worth its cost: a place behind TLS is free, or is one
 * of a connection that may have to make room.  nvme_tcp_established() decides,
 * and may still refuse. */
bool nvme_tcp_has_room_behind_tls(struct nvme_tcp *tcp);

/** This many more bytes are in the ring. */
void nvme_tcp_received(struct nvme_tcp *tcp, uint16_t conn, uint32_t len_bytes);

/** What has begun besides, of a stream that is followed; until the next
 * nvme_tcp_received(). */
void nvme_tcp_begun(struct nvme_tcp *tcp, uint16_t conn,
                    enum nvme_tcp_begun begun);

/** The oldest send() has been acknowledged; not is_ok: its connection has
 * ended before. */
void nvme_tcp_sent(struct nvme_tcp *tcp, uint16_t conn, bool is_ok);

/** send() may succeed again, of which awaits_peer() has said that it waits for
 * the peer. */
void nvme_tcp_may_send(struct nvme_tcp *tcp, uint16_t conn);

/** The peer sends nothing more. */
void nvme_tcp_finished(struct nvme_tcp *tcp, uint16_t conn);
void nvme_tcp_closed(struct nvme_tcp *tcp, uint16_t conn);
void nvme_tcp_aborted(struct nvme_tcp *tcp, uint16_t conn);

/** The connection does not exist any more. */
void nvme_tcp_ended(struct nvme_tcp *tcp, uint16_t conn);

#endif
