/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the files of the manager share:
 *
 *   mpa_conn.c  a connection from its SYN to its end
 *   mpa_cm.c    the seam of users, time, the manager as a whole
 */
#ifndef ESSD_NET_MPA_CM_INTERNAL_H
#define ESSD_NET_MPA_CM_INTERNAL_H

#include "net/mpa/mpa.h"
#include "net/mpa_cm/mpa_cm.h"

enum mpa_cm_state {
    MPA_CM_FREE,     /* Unused; waits for a SYN. */
    MPA_CM_OPENING,  /* Waits for the end of the handshake. */
    MPA_CM_WAITING,  /* Waits for the rest of the request. */
    MPA_CM_ASKED,    /* The request is complete; its bytes have to be given
                      * back before the user is asked. */
    MPA_CM_OPEN,     /* Accepted: belongs to the user until disconnect(). */
    MPA_CM_CLOSING,  /* Sends what is left and a FIN; waits for the end. */
    MPA_CM_ABORTING, /* Is ended with a RST; waits for the end. */
    MPA_CM_ENDED,    /* Waits for disconnect() and for completions. */
    MPA_CM_STATES
};

struct mpa_cm_conn {
    struct rdma_cm_conn handle;
    struct mpa_cm *cm;
    uint32_t id; /* of the socket */
    struct mpa_cm_peer peer;
    uint8_t state;     /* enum mpa_cm_state */
    bool has_user;     /* accepted, and not disconnected by the user */
    bool was_told;     /* of the end: events->disconnected */
    bool is_confirmed; /* the user has got events->established */
    bool reply_due;    /* is to be handed to the socket */
    bool has_reply;    /* the socket has it */
    bool was_closed, was_aborted; /* these were posted */
    bool has_close, has_abort;    /* and wait for their completions */
    bool needs_step;
    uint8_t reply_len;
    uint16_t received; /* bytes of the request */
    struct mpa_cm_conn *next_step;
    uint64_t since_us;          /* begin of the present wait */
    struct mpa_request request; /* valid while the user is asked */
    struct mpa_terms terms;
};

struct mpa_cm_listener {
    const struct rdma_cm_events *events; /* NULL: none */
    void *ctx;
    uint16_t port;
};

struct mpa_cm {
    struct mpa_cm_config config;
    uint16_t used;
    uint64_t now_us;
    uint64_t watch_us; /* next look at the times; 0: no connection */
    struct mpa_cm_conn *step_first;
    struct mpa_cm_listener listeners[MPA_CM_LISTENERS];
    uint64_t counters[MPA_CM_COUNTERS];
    struct mpa_cm_conn conns[MPA_CM_CONNS];
};

/* Move a connection to another state; the move must be allowed. */
void mpa_conn_enter(struct mpa_cm_conn *conn, enum mpa_cm_state next);

/* Make the next mpa_cm_step() look at the connection. */
void mpa_conn_needs_step(struct mpa_cm_conn *conn);

/* Do what the state of the connection asks for. */
void mpa_conn_step(struct mpa_cm_conn *conn);

/* End the connection by a FIN, or by a RST. */
void mpa_conn_close(struct mpa_cm_conn *conn);
void mpa_conn_abort(struct mpa_cm_conn *conn);

/* The peer has the reply: tell the user, once. */
void mpa_conn_confirm(struct mpa_cm_conn *conn);

/* Prepare the reply to the request of a connection in MPA_CM_ASKED. */
void mpa_conn_reply(struct mpa_cm_conn *conn, bool is_rejected,
                    const void *private_data, size_t len);

/* Refuse that request. */
void mpa_conn_refuse(struct mpa_cm_conn *conn, const void *private_data,
                     size_t len);

/* The listener at a port, or NULL. */
const struct mpa_cm_listener *mpa_cm_listener_at(const struct mpa_cm *cm,
                                                 uint16_t port);

/* Connections without a request: of one address, or of all if `ip` is NULL. */
unsigned int mpa_cm_half_open(const struct mpa_cm *cm, const uint8_t *ip);

#endif
