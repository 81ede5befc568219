/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP offload engine: registers, a queue of commands and events, receive
 * rings, and the way of segments from and to the ports, with the protocol of
 * net/tcp.
 * Reference: docs/hardware/toe.md; registers in hw-model/regs/toe.h.
 *
 * It has one execution context.  Register accesses only change registers and
 * request hw_toe_run(); all work is done in hw_toe_run(), hw_toe_rx() and
 * hw_toe_timer(). A frame_sink may call only hw_toe_port_ready().  Frames that
 * a sink loops back are dropped and counted.
 *
 * Not implemented: see "not modelled" in the guide.
 */
#ifndef ESSD_HW_TOE_TOE_H
#define ESSD_HW_TOE_TOE_H

#include "hw-model/core/dev_queue.h"
#include "hw-model/core/env.h"
#include "hw-model/core/frame.h"
#include "hw-model/toe/pdu_follow.h"
#include "hw-model/toe/records.h"
#include "lib/trace.h"
#include "net/verbs/stream.h"
#include "net/wire/eth.h"
#include "net/wire/ip_addr.h"

/* Sizes from regs/toe.h, repeated here; hw_toe.c asserts that they agree. */
enum {
    HW_TOE_PORTS = 2,
    HW_TOE_SLOTS = 1088,
    HW_TOE_LISTENERS = 16,
    HW_TOE_SENDS = 16,
    HW_TOE_SEND_PIECES = 3,
    HW_TOE_LADDRS = 16,
    HW_TOE_SECRET_WORDS = 4,
    HW_TOE_COUNTERS = 10,
    HW_TOE_PATHS = 4096,
    HW_TOE_ORPHANS = 2 * HW_TOE_SLOTS, /* of two loads shortly one after the
                                        * other */
    HW_TOE_IDS = 1024 + 64 + 256,      /* of net/tcp, by their low halves */
    HW_TOE_TLS = 64,                   /* connections with keys */
};

struct tcp; /* net/tcp/tcp.h, which has a name of the C library's */
struct tcp_user;

/* How frames reach a peer: as its own frames have come. */
struct hw_toe_path {
    struct mac_addr own;
    struct mac_addr peer;
    uint16_t tci; /* of the tag, if there is one */
    uint8_t port;
    bool is_tagged;
    bool is_used;
    uint16_t refs; /* connections that use it */
};

/* Bytes of DRAM to send. */
struct hw_toe_send {
    uint64_t cookie;
    uint32_t len_bytes; /* of all pieces */
    uint8_t count;      /* pieces */
    bool is_tls;        /* it goes into records */
    bool is_sealed;     /* all of it is in records */
    uint8_t record;     /* their type */
    struct hw_toe_piece {
        uint64_t addr;
        uint32_t len_bytes;
    } pieces[HW_TOE_SEND_PIECES];
};

/* A connection, or a SYN that firmware is asked about. */
struct hw_toe_conn {
    uint8_t state; /* enum toe_slot_state */
    uint8_t end;   /* enum toe_end */
    bool asked_due, established_due, finished_due, ended_due;
    bool is_lost;   /* a memory error: to be aborted */
    bool has_close; /* CLOSE waits for its completion */
    bool has_abort;
    bool abort_due; /* to be ended with a RST, which has not left yet */
    bool rst_due;   /* has ended; the end is reported when its RST has left */
    bool rst_lost;  /* has ended without the RST that was to leave */
    bool has_path;
    bool is_rdma;       /* a queue pair has it, in qp_slot */
    bool is_deaf;       /* one had it: received bytes are dropped */
    bool is_closed;     /* it has ordered the FIN */
    bool is_finished;   /* the peer sends nothing more */
    bool tell_finished; /* to the queue pair */
    uint16_t qp_slot;
    uint16_t generation; /* upper half of the TID; never 0 */
    uint16_t path;
    uint32_t id; /* of net/tcp; 0: it has none any more */
    struct ip_addr local, remote;
    uint16_t local_port, remote_port;
    uint64_t close_cookie, abort_cookie;

    uint64_t ring;     /* address of the receive ring */
    uint64_t received; /* bytes put into it, reported, and credited */
    uint64_t reported;
    uint64_t credited;

    struct hw_toe_send sends[HW_TOE_SENDS];
    uint8_t send_first, send_count;
    uint8_t sends_done;   /* of the first ones, to be completed with OK */
    uint64_t send_offset; /* in the stream, of the first one's first byte */
    uint64_t acked;
    uint64_t send_end;   /* of all bytes of SENDs */
    uint64_t rdma_bytes; /* that the queue pair has announced after these */
};

/* The records of a connection.  None is saved, since no connection is. */
struct hw_toe_tls {
    uint64_t tx_base;    /* where its first record begins in what is sent */
    uint32_t send_done;  /* bytes of the first unsealed SEND in records */
    bool note_due;       /* RECORD is to be reported */
    bool close_waits;    /* for bytes that are not in records */
    bool finished_waits; /* for records behind the one at which it is held */
    /* A key that follows SENDs which are not sealed yet. */
    struct hw_toe_tls_next {
        bool is_there;
        uint8_t after; /* such SENDs */
        uint8_t len_bytes;
        uint8_t bytes[RECORD_KEY_MAX];
        uint8_t iv[RECORD_IV_LEN];
        uint64_t sequence;
    } next;
    struct records_rx rx;
    struct records_tx tx;
};

/* The peer of a connection that was not loaded. */
struct hw_toe_orphan {
    struct ip_addr local, remote;
    uint16_t local_port, remote_port;
    uint16_t path;
    uint16_t asked; /* how often */
};

struct hw_toe_laddr {
    bool is_used;
    uint8_t port;
    uint16_t vlan; /* 0xffff: untagged */
    struct ip_addr ip;
};

/* All saved state.  That of net/tcp is not: see hw_toe_state_loaded(). */
struct hw_toe_state {
    uint32_t ctrl;
    uint32_t config;
    uint32_t irq_status;
    uint32_t irq_enable;
    uint32_t refused;
    uint32_t secret[HW_TOE_SECRET_WORDS];
    uint16_t ip_id;
    uint16_t cursor; /* the connection that reports next */
    struct dev_queue queue;
    uint16_t listeners[HW_TOE_LISTENERS]; /* TCP ports; 0: none */
    struct hw_toe_laddr laddrs[HW_TOE_LADDRS];
    struct hw_toe_path paths[HW_TOE_PATHS];
    struct hw_toe_conn conns[HW_TOE_SLOTS];
    /* Connections that have something to report, one bit each. */
    uint64_t due[HW_TOE_SLOTS / 64];
    uint64_t counters[HW_TOE_COUNTERS];
    uint16_t num_orphans;
    struct hw_toe_orphan orphans[HW_TOE_ORPHANS];
};

struct hw_toe_config {
    struct dev_env env;                    /* interrupt line 0; copied */
    struct frame_sink ports[HW_TOE_PORTS]; /* sinks for sent frames; copied */
    void *memory;              /* hw_toe_memory_bytes(), aligned to 16 bytes */
    const struct trace *trace; /* outlives the engine; NULL: no tracing */
    const struct record_aead *aead; /* likewise; NULL: no keys are taken */
    /* The RNIC, which has the queue pairs of RDMA over TCP; copied. */
    struct rdma_stream_user rdma; /* all NULL: there is none */
};

struct hw_toe {
    struct dev_env env;
    struct frame_sink sinks[HW_TOE_PORTS];
    void *memory;
    const struct trace *trace;
    const struct record_aead *aead;
    struct rdma_stream_user rdma;
    struct tcp_user *user; /* this and the next one are in `memory` */
    struct tcp *tcp;       /* NULL while the engine is off */
    bool busy;             /* one of the working functions is running */
    bool has_lost;         /* a connection has to be aborted */
    bool has_abort_due;    /* a connection may have abort_due */
    bool has_rst_due;      /* a connection may have rst_due */
    bool has_rdma_due;     /* a bit of rdma_due may be set */
    /* Connections with something for their queue pairs, one bit each. */
    uint64_t rdma_due[HW_TOE_SLOTS / 64];
    uint8_t blocked;    /* ports, one bit each, that have refused a frame */
    uint64_t run_us;    /* when this run has begun */
    uint64_t timer_ns;  /* the last argument of set_timer() */
    uint16_t rx_path;   /* of the segment that is being taken */
    uint32_t unslotted; /* a SYN to be rejected; 0: none */
    int8_t tcp_listener[HW_TOE_LISTENERS]; /* that of net/tcp; -1: none */
    uint16_t slot_of[HW_TOE_IDS];          /* by the low half of the id */
    uint64_t late_us[HW_TOE_SLOTS]; /* abort_due, rst_due: no RST after this */
    /* Streams of PDUs; none is saved, since no connection is. */
    struct hw_toe_follow {
        struct pdu_follow stream;
        uint32_t consumed; /* bytes that net/tcp is not told of yet */
        uint64_t absent;   /* bytes that the peer has sent and that did not
                            * come into the ring; less 8 for the mark; wraps */
        bool has_progress; /* DATA is due without bytes in the ring */
        uint8_t begun;     /* as the last DATA has reported it */
        uint64_t reported_us;
    } follows[HW_TOE_SLOTS];
    struct pdu_places places;
    struct hw_toe_tls *tls;       /* HW_TOE_TLS of them, in `memory` */
    uint8_t tls_of[HW_TOE_SLOTS]; /* 0: none; else its number plus 1 */
    uint8_t record[RECORD_HEADER_LEN + RECORD_PLAIN_MAX + RECORD_OVERHEAD];
    uint16_t orphan_next;
    uint8_t orphan_round;
    uint64_t orphan_due_us; /* when the next ones are asked */
    struct hw_toe_state state;
};

/** Size of the memory for connections and for bytes that come early. */
MUST_USE size_t hw_toe_memory_bytes(void);

/** Initialise an engine in reset.  `toe` must not be moved afterwards. */
void hw_toe_init(struct hw_toe *toe, const struct hw_toe_config *config);

/** Set the sink for frames of `port`; it is copied. */
void hw_toe_attach_port(struct hw_toe *toe, unsigned int port,
                        const struct frame_sink *sink);

/** Reset it to its state after power-on.  This lowers the interrupt line. */
void hw_toe_reset(struct hw_toe *toe);

/** Access a register.  Only aligned 32-bit accesses are possible. */
uint32_t hw_toe_read(struct hw_toe *toe, uint32_t offset);

/** @return false when there is no such register, or when it is read-only */
bool hw_toe_write(struct hw_toe *toe, uint32_t offset, uint32_t value);

/** Do the pending work that env.defer() has announced. */
void hw_toe_run(struct hw_toe *toe);

/** The deadline set with env.set_timer() has passed. */
void hw_toe_timer(struct hw_toe *toe);

/** Take TCP frames that a port received, and answer them. */
void hw_toe_rx(struct hw_toe *toe, unsigned int port,
               const struct frame_rx *frames, unsigned int count);

/** The connections as streams of RDMA.  A stream's number is its TID. */
struct rdma_streams hw_toe_streams(struct hw_toe *toe);

/** The sink of `port` has room again, after it has refused a frame. */
void hw_toe_port_ready(struct hw_toe *toe, unsigned int port);

/**
 * Check a state that was loaded into toe->state, and continue from it.  The
 * state of the connections is not saved: each ends with TOE_END_STOPPED, and
 * the peers are made to send a segment, which is answered with a RST.
 *
 * @return false when it is invalid; the engine is then in reset
 */
MUST_USE bool hw_toe_state_loaded(struct hw_toe *toe);

#endif
