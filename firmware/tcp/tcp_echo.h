/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The diagnostic services over TCP, which are off by default: echo (RFC 862) on
 * port 7 and discard (RFC 863) on port 9.
 * Reference: docs/echo.md
 *
 * Received bytes are echoed from where the engine has put them, so that nothing
 * is copied.  A connection ends when its peer has closed and everything was
 * sent back, or after TCP_ECHO_IDLE_US of silence.
 */
#ifndef ESSD_TCP_TCP_ECHO_H
#define ESSD_TCP_TCP_ECHO_H

#include "firmware/drivers/toe.h"

enum {
    TCP_ECHO_PORT = 7,
    TCP_DISCARD_PORT = 9,
    TCP_ECHO_CONNS = 64,
    TCP_ECHO_RING_LOG2 = 13, /* what these services need */
    TCP_ECHO_COMMANDS = 4,   /* for one entry: CREDIT, two SENDs and CLOSE */
};
/* A connection ends after this time of silence. */
#define TCP_ECHO_IDLE_US UINT64_C(120000000)

enum tcp_echo_state {
    TCP_ECHO_FREE,
    TCP_ECHO_OPENING, /* accepted; waits for the handshake's end */
    TCP_ECHO_OPEN,    /* waits for bytes, and for the peer to close */
    TCP_ECHO_ENDING,  /* CLOSE or ABORT is posted; waits for the end */
    TCP_ECHO_ENDED,   /* waits for the completions of its sends */
};

/* Treat as opaque. */
struct tcp_echo_conn {
    uint8_t state; /* enum tcp_echo_state */
    bool is_echo;
    bool is_finished; /* the peer sends nothing more */
    bool has_close;   /* waits for the completion of CLOSE */
    bool has_abort;
    uint8_t outstanding; /* SENDs */
    uint32_t tid;
    uint32_t next_tid; /* waits for this one's place; 0: none */
    uint16_t next_port;
    uint64_t received; /* bytes, and how many of them were posted */
    uint64_t posted;
    uint64_t heard_us;
    uint8_t *ring;
};

struct tcp_echo_counters {
    uint64_t connections;
    uint64_t refused; /* no connection was free */
    uint64_t echoed_bytes;
    uint64_t discarded_bytes;
    uint64_t idle; /* connections that were silent for too long */
};

/* Treat as opaque, except for the counters. */
struct tcp_echo {
    struct toe *toe;
    uint8_t ring_log2; /* of the bytes of a connection's ring */
    bool is_listening;
    uint64_t now_us;
    struct tcp_echo_counters counters;
    unsigned int used; /* connections */
    struct tcp_echo_conn conns[TCP_ECHO_CONNS];
    uint8_t conn_of[TOE_SLOTS]; /* 1 + connection; 0: none */
};

/** Bytes of DRAM for rings of 2 to the power of this many bytes. */
static inline uint32_t tcp_echo_memory_len(uint8_t ring_log2)
{
    return (uint32_t)TCP_ECHO_CONNS << ring_log2;
}

/** Initialise the services, switched off.
 *
 * @param memory     tcp_echo_memory_len() bytes of DRAM, 64-byte aligned
 * @param ring_log2  that of the engine, which has one size for all rings */
void tcp_echo_init(struct tcp_echo *echo, struct toe *toe, uint8_t *memory,
                   uint8_t ring_log2);

/**
 * Listen, or stop to listen and abort the connections.  The engine is on.
 *
 * @return false when the engine has no listener left
 */
MUST_USE bool tcp_echo_listen(struct tcp_echo *echo, bool is_on);

/**
 * Take an entry of the engine.  TCP_ECHO_COMMANDS commands can be posted.
 *
 * @return whether it belongs to these services
 */
bool tcp_echo_take(struct tcp_echo *echo, const struct toe_entry *entry,
                   uint64_t now_us);

/**
 * End connections that were silent for too long.
 *
 * @return when to call this again at the latest
 */
uint64_t tcp_echo_step(struct tcp_echo *echo, uint64_t now_us);

#endif
