/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iWARP: RDMAP and DDP on TCP connections, as an engine of the RNIC.
 * Spec: RFC 5040 (RDMAP), RFC 5041 (DDP), RFC 5044 (MPA framing).
 *
 * Bytes arrive and leave through the seam net/verbs/stream.h.  Sent payload is
 * not copied; received payload is copied once, to its place in DRAM, after the
 * CRC of its FPDU was checked.
 *
 * There are no credits and no RNR: a SEND for which no buffer is posted ends
 * the connection.  Work requests complete in the order of their entries: SEND
 * and WRITE when the peer's TCP has all bytes, READ when its response is
 * complete.
 *
 * A queue pair in RTR has a stream and executes what it receives, and sends
 * nothing.  In RTS it sends as well; with `is_mute` only after the peer's first
 * FPDU (RFC 5044 section 7.1.2).
 *
 * What ends a connection: see enum iwarp_stage.
 *
 * Left out: atomics and immediate data (RFC 7306; Terminate), markers, and
 * placement of FPDUs that come early.
 */
#ifndef ESSD_NET_IWARP_IWARP_H
#define ESSD_NET_IWARP_IWARP_H

#include "lib/trace.h"
#include "net/verbs/engine.h"
#include "net/verbs/objects.h"
#include "net/verbs/stream.h"

enum {
    IWARP_INFLIGHT = 128,          /* started work requests of one QP */
    IWARP_MAX_DEST_RD_ATOMIC = 16, /* IRD: outstanding READs of a peer */
    IWARP_MAX_RD_ATOMIC = 128,     /* ORD: outstanding READs of a QP of ours */
    IWARP_MAX_FPDU = 16 * 1024,    /* longest FPDU that is sent or accepted */
    IWARP_SCRATCH = IWARP_MAX_FPDU + 1024, /* and headers of others */
    IWARP_WINDOW = 256 * 1024,             /* announced bytes without an ACK */
    IWARP_QUANTUM = 16,        /* announcements of a QP in its turn */
    IWARP_EXECUTE = -1,        /* of a fault hook */
    IWARP_TERMINATE_MS = 2000, /* longest wait for the ACK of a Terminate */
};

enum iwarp_counter {
    IWARP_RX_FPDUS,
    IWARP_TX_FPDUS, /* announced */
    IWARP_RX_BAD_CRC,
    IWARP_RX_BAD_LENGTH, /* of an FPDU */
    IWARP_RX_REFUSED,    /* DDP segments that ended their connection */
    IWARP_RX_NO_BUFFER,  /* SENDs without a receive buffer, among these */
    IWARP_RX_TERMINATES,
    IWARP_TX_TERMINATES,
    IWARP_STREAMS_LOST, /* connections that ended by themselves */
    IWARP_CQ_OVERFLOWS,
    IWARP_PARITY_ERRORS,
    IWARP_COUNTERS,
};

/* What the connection of a queue pair does, beside the state of the verbs.
 * iwarp_stage_enter() is the only writer. */
enum iwarp_stage {
    IWARP_NO_STREAM,   /* Has no stream; RTR attaches one. */
    IWARP_OPEN,        /* Receives and sends; ends by an error of either side,
                        * by the end of the stream, or by a command. */
    IWARP_TERMINATING, /* Announces a Terminate and a FIN, drops what it
                        * receives, and serves retransmissions; ends when the
                        * peer has the Terminate, when the stream ends, or when
                        * IWARP_TERMINATE_MS have passed.  Then the QP goes to
                        * ERROR. */
    IWARP_LEAVING,     /* The QP is in ERROR; the next iwarp_transmit() closes
                        * or resets the stream and detaches it. */
    IWARP_STAGES
};

/* A started work request, and the range of its bytes in the stream. */
struct iwarp_sent {
    uint64_t wr_id;
    uint64_t first;     /* offset in the stream of its first byte */
    uint64_t end;       /* and of the byte after its last one */
    uint32_t len_bytes; /* payload; READ: bytes to read */
    uint32_t msn;       /* SEND, READ: its message sequence number */
    uint32_t sink_key;  /* READ: STag of the place of the response */
    uint16_t wqe;       /* low bits of its entry's count */
    uint8_t opcode;     /* enum verbs_wr_opcode */
    uint8_t status;     /* enum verbs_wc_status to complete it with */
    bool signaled;
    bool is_answered; /* READ: the response is complete */
};

/* A READ of the peer, and the range of its response in the stream. */
struct iwarp_read {
    uint64_t first, end;
    uint64_t source_to, sink_to;
    uint32_t len_bytes;
    uint32_t source_stag, sink_stag;
};

/* What the arguments of a state change are for this engine. */
struct iwarp_attr {
    uint32_t stream;
    uint8_t access; /* enum verbs_access: the peer's rights */
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    bool has_crc;
    bool is_mute;      /* sends nothing before the peer's first FPDU */
    bool has_send_rtr; /* the first SEND is empty, and not for the user */
    uint64_t key_seed; /* random */
};

struct iwarp_sender {
    uint64_t announced; /* bytes of the stream */
    uint64_t acked;
    uint64_t message_end; /* end of the message that is being announced */
    uint32_t send_msn;    /* of the next SEND */
    uint32_t read_msn;    /* of the next READ */
    uint16_t head;        /* index in sent[]: next to complete; free-running */
    uint16_t tail;        /* next to start */
    uint16_t reads;       /* READs among sent[] that are not answered */
    uint16_t answering;   /* the READ that is answered next */
    uint32_t answered;    /* bytes of its response */
    struct iwarp_sent sent[IWARP_INFLIGHT];
};

struct iwarp_receiver {
    bool heard;   /* an FPDU has come, and QP_ESTABLISHED was raised */
    bool partial; /* a part of an FPDU waits for the rest of it */
    bool in_send;
    uint8_t opcode;      /* in_send: that of the first segment */
    uint32_t send_msn;   /* of the SEND that is expected, or being received */
    uint32_t read_msn;   /* of the READ that is expected */
    uint64_t recv_wr_id; /* in_send: the receive buffer */
    uint64_t recv_addr;
    uint32_t recv_len;
    uint32_t recv_lkey;
    uint32_t offset; /* in_send: bytes so far */
    /* reads[]: head <= next <= tail, free-running. */
    uint16_t read_head; /* oldest one whose response is not acknowledged */
    uint16_t read_next; /* the next response to announce */
    uint16_t read_tail;
    struct iwarp_read reads[IWARP_MAX_DEST_RD_ATOMIC];
};

enum { IWARP_TERMINATE_MAX = 72 };

struct iwarp_qp {
    struct iwarp_attr attr;
    uint8_t stage;       /* enum iwarp_stage */
    uint8_t end_status;  /* enum verbs_wc_status, with IWARP_TERMINATING */
    uint8_t lost_status; /* the same: why fetching has failed; 0: it has not */
    bool is_reset;       /* with IWARP_LEAVING: by a RST */
    bool terminate_sent; /* with IWARP_TERMINATING: it has been announced */
    uint32_t max_fpdu;   /* longest FPDU to send: a multiple of 4 */
    uint32_t max_rx_fpdu;
    uint64_t keys;   /* of READs: the state of their generator */
    uint64_t due_ns; /* with IWARP_TERMINATING */
    struct iwarp_sender tx;
    struct iwarp_receiver rx;
    uint64_t terminate_first; /* offset of the Terminate in the stream */
    uint8_t terminate_len;    /* of the ULPDU; 0: there is none */
    uint8_t terminate[IWARP_TERMINATE_MAX];
};

struct iwarp_link {
    uint16_t next;
    bool queued;
};

struct iwarp_state {
    struct iwarp_qp qps[RDMA_QPS];
    uint64_t counters[IWARP_COUNTERS];
    /* iwarp_reload() derives all fields below. */
    uint16_t first, last; /* queue of slots with work; valid with count */
    uint16_t count;
    uint16_t terminating; /* number of QPs in IWARP_TERMINATING */
    struct iwarp_link links[RDMA_QPS];
};

/* Faults on demand. */
struct iwarp_fault_hook {
    void *ctx;

    /* @return the error (enum rdmap_error) of a Terminate to send in place of
     *  executing the message of the peer that begins, or segment of a WRITE,
     *  with this opcode (enum rdmap_opcode); IWARP_EXECUTE: execute it */
    int (*judge)(void *ctx, uint32_t qpn, uint8_t opcode);

    /* @return whether the CRC of an FPDU that was received is to be wrong */
    bool (*judge_fpdu)(void *ctx, uint32_t qpn);

    /* @return whether the data has a parity error.  If so, it is neither sent
     * nor used, and the QP goes to ERROR. */
    bool (*judge_transfer)(void *ctx, uint32_t qpn, bool is_to_dram);
};

/* The engine.  Only `state` is saved, and the RNIC saves `objects`. */
struct iwarp {
    struct iwarp_state *state;
    struct rdma_objects *objects;          /* the RNIC's */
    const struct trace *trace;             /* NULL if tracing is off */
    const struct iwarp_fault_hook *faults; /* NULL without fault rules */
    const struct rdma_streams *streams;    /* NULL: RTR is refused */
    struct rdma_dram dram;
    uint64_t now_ns; /* time of the call in progress */
    uint8_t scratch[IWARP_SCRATCH];
};

/* iWARP as an engine of the RNIC; its context is a struct iwarp.  It serves the
 * type VERBS_QP_IW.  The functions below do the work. */
extern const struct rdma_engine_ops iwarp_engine_ops;

/* ---- What struct rdma_stream_user asks for.  After each of these but
 * iwarp_fetch(), the RNIC has to run: it transmits, and wakes harts. */

uint32_t iwarp_receive(struct iwarp *iwarp, uint32_t slot,
                       const struct rdma_stream_piece *pieces,
                       unsigned int count, uint64_t now_ns);

unsigned int iwarp_fetch(struct iwarp *iwarp, uint32_t slot, uint64_t offset,
                         uint32_t len_bytes, struct rdma_stream_piece *pieces);

void iwarp_acked(struct iwarp *iwarp, uint32_t slot, uint32_t len_bytes,
                 uint64_t now_ns);

void iwarp_finished(struct iwarp *iwarp, uint32_t slot, uint64_t now_ns);

void iwarp_ended(struct iwarp *iwarp, uint32_t slot, enum rdma_stream_end end,
                 uint64_t now_ns);

/* ---- The functions of iwarp_engine_ops. */

/** Reset all state; what was handed in stays.  Streams are detached. */
void iwarp_reset(struct iwarp *iwarp);

void iwarp_doorbell(struct iwarp *iwarp, uint32_t slot, uint64_t now_ns);

/**
 * Start work requests and announce their bytes, taking QPs in turn.
 *
 * @param budget  the largest number of turns
 * @return true when it stopped because of the budget: call again
 */
bool iwarp_transmit(struct iwarp *iwarp, unsigned int budget, uint64_t now_ns);

void iwarp_timer(struct iwarp *iwarp, uint64_t now_ns);
uint64_t iwarp_deadline(const struct iwarp *iwarp);

void iwarp_qp_create(struct iwarp *iwarp, uint32_t slot);

/** Move a QP to another state, which rdma_qp_may_enter() allows.
 *
 * @return false: RTR was asked for, and the stream cannot be attached */
MUST_USE bool iwarp_qp_modify(struct iwarp *iwarp, uint32_t slot,
                              enum verbs_qp_state next,
                              const struct iwarp_attr *attr, uint64_t now_ns);

/** Remove a QP and release what it uses.  Its stream is closed if the peer has
 * all bytes that were sent, and reset otherwise. */
void iwarp_qp_destroy(struct iwarp *iwarp, uint32_t slot);

void iwarp_qp_drain(struct iwarp *iwarp, uint32_t slot);

/**
 * Check a loaded `state`, and derive from it what is not saved.  Streams are
 * not loaded: QPs that had one fail, and firmware gets their QP_FATAL.
 *
 * @return false when it is invalid; the caller then has to call iwarp_reset()
 */
MUST_USE bool iwarp_reload(struct iwarp *iwarp);

#endif
