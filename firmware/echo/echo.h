/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The diagnostic echo service on RDMA CM port 7174, which is off by default.
 * Reference: docs/echo.md
 *
 * It is a server for rdma-core's `rping`.  The client SENDs the location of its
 * source buffer; the service READs the buffer and SENDs a go-ahead.  The client
 * then SENDs the location of its sink; the service WRITEs the same bytes there
 * and SENDs a go-ahead; and so on.  The REP's private data (struct echo_rep of
 * firmware/echo/echo_wire.h) describes memory that conformance suites can READ
 * and WRITE.  Messages that are not 16 bytes long are received and counted, but
 * otherwise ignored.
 *
 * All connections share one protection domain, so that a peer that learns
 * another peer's keys can use them.  The service is meant for laboratories and
 * therefore off by default.
 *
 * Not implemented: rping's server side (the service never connects), immediate
 * data.
 */
#ifndef ESSD_ECHO_ECHO_H
#define ESSD_ECHO_ECHO_H

#include "firmware/echo/echo_wire.h"
#include "net/verbs/rdma_cm.h"
#include "net/verbs/verbs.h"

enum {
    ECHO_SERVICE_PORT = 7174,
    ECHO_MANAGERS = 2, /* of connections: one for each RDMA protocol */
    ECHO_CONNS = 4,
    ECHO_PING_MAX = 65536, /* in bytes; rping's own limit */
    ECHO_REGION_LEN = 65536,
    ECHO_BUFFERS = 8, /* receive buffers of each connection */
    ECHO_BUFFER_LEN = 16384,
    /* RDMA READs that a peer may have outstanding, if its REQ asks for them. */
    ECHO_MAX_DEST_RD_ATOMIC = 16,

    /* Bytes of DRAM that echo_init() needs, 4096-byte aligned. */
    ECHO_CONN_LEN =
        ECHO_PING_MAX + ECHO_REGION_LEN + ECHO_BUFFERS * ECHO_BUFFER_LEN,
    ECHO_MEMORY_LEN = ECHO_CONNS * ECHO_CONN_LEN,
};
/* A connection ends after this time of silence. */
#define ECHO_IDLE_US     UINT64_C(120000000)
#define ECHO_NO_DEADLINE UINT64_MAX

struct echo;

/* States of a connection. */
enum echo_state {
    ECHO_FREE,
    ECHO_OPEN, /* the REP is sent; waits for messages or the connection's end */
    ECHO_ENDING, /* echo_step() has to end it with a DREQ */
    ECHO_FAILED, /* echo_step() has to remove it */
};

/* What a ping waits for. */
enum echo_phase {
    ECHO_SOURCE,  /* waits for a message with the location of the source */
    ECHO_READING, /* waits for the READ to complete */
    ECHO_SINK,    /* waits for a message with the location of the sink */
    ECHO_WRITING, /* waits for the WRITE to complete */
};

struct echo_config {
    struct verbs *verbs;
    struct rdma_cm cm;       /* connection manager of RoCE */
    struct rdma_cm iwarp_cm; /* that of iWARP; no ops: there is none */
    void *memory;            /* ECHO_MEMORY_LEN bytes of DRAM */
};

struct echo_counters {
    uint64_t connections;
    /* Refused connections: all in use, or no resources for one more. */
    uint64_t refused;
    uint64_t messages; /* SENDs received */
    uint64_t pings;    /* pings that were read and written back */
    uint64_t ping_bytes;
    uint64_t bad; /* pings that could not be served: their connections ended */
    uint64_t failed;   /* queue pairs that went to ERROR */
    uint64_t timeouts; /* connections that were silent for too long */
};

/* A receive buffer that waits to be posted again. */
struct echo_held {
    uint8_t buffer;
    uint64_t due_us;
};

/* Treat as opaque. */
struct echo_conn {
    struct echo *echo;
    struct rdma_cm_conn *conn;
    uint32_t qpn;
    uint8_t state; /* enum echo_state */
    uint8_t phase; /* enum echo_phase */
    bool can_read; /* the peer answers RDMA READs */
    uint8_t buffers;
    uint8_t held_first, held_count;
    uint16_t hold_ms;
    uint32_t ping_bytes; /* length of the current ping */
    uint32_t key, read_key, write_key;
    uint64_t heard_us;
    uint8_t *ping; /* ECHO_PING_MAX bytes, which the peer cannot access */
    /* ECHO_REGION_LEN bytes, followed by the receive buffers. */
    uint8_t *region;
    struct echo_held held[ECHO_BUFFERS];
};

/* What a manager's requests come with. */
struct echo_listener {
    struct echo *echo;
    enum verbs_qp_type qp_type;
};

/* Treat as opaque, except for the counters. */
struct echo {
    struct echo_config config;
    uint64_t now_us;
    bool is_on;
    bool is_listening;
    struct echo_listener listeners[ECHO_MANAGERS];
    struct echo_counters counters;
    struct echo_conn conns[ECHO_CONNS];
};

/** Initialise the service, switched off.  The objects in *config outlive it. */
void echo_init(struct echo *echo, const struct echo_config *config);

/**
 * Switch the service on or off.  When it is off, connections are refused as on
 * a port without a listener (REJ, invalid service ID).  Switching it off ends
 * the current connections.
 *
 * @return false when the connection manager has no listener left; the service
 *         stays off
 */
MUST_USE bool echo_switch(struct echo *echo, bool is_on);

/** Set the time of the loop's current turn.  Call this before verbs_poll(). */
static inline void echo_tick(struct echo *echo, uint64_t now_us)
{
    echo->now_us = now_us;
}

/**
 * Do what must not be done inside a callback, and run the timers that are due.
 * Call this after verbs_poll() and before verbs_flush().
 *
 * @param deadline_us  set to when to call this again at the latest
 * @return whether anything was done
 */
bool echo_step(struct echo *echo, uint64_t *deadline_us);

/** Whether echo_step() has to be called: not if the service was never on, so
 * that there are no connections. */
static inline bool echo_has_work(const struct echo *echo)
{
    return echo->is_listening;
}

/** Whether the service waits for the completion of a WRITE: see verbs_arm(). */
bool echo_awaits_write(const struct echo *echo);

/**
 * The number of connections in use.  Each has a QP and three memory regions.
 */
unsigned int echo_conns_used(const struct echo *echo);

#endif
