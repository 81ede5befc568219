/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RoCE transport: reliable connections as requester and responder, and
 * unreliable datagrams; v2 over IPv4 and IPv6, v1 over Ethernet alone.
 * Spec: IBTA Vol 1 chapter 9, annexes A16 (RoCE) and A17 (RoCEv2).
 *
 * Frames arrive through roce_rx().  They are sent in bursts, by roce_transmit()
 * only, through one frame_sink for each port.  Sent payload is not copied;
 * received payload is copied once, to its place in DRAM.
 *
 * docs/hardware/rnic.md, sections 5 and 6, gives the order of checks and the
 * answers.
 *
 * Left out: atomics, immediate data (both NAK invalid request), UC,
 * XRC, automatic path migration, end-to-end credits (RNR NAKs take their
 * place), and UDP checksums (the ICRC covers more).
 */
#ifndef ESSD_NET_ROCE_ROCE_H
#define ESSD_NET_ROCE_ROCE_H

#include "hw-model/core/frame.h"
#include "lib/trace.h"
#include "net/roce/dcqcn.h"
#include "net/roce/timers.h"
#include "net/verbs/engine.h"
#include "net/verbs/objects.h"

enum {
    ROCE_INFLIGHT = 128,          /* started work requests of one QP */
    ROCE_MAX_DEST_RD_ATOMIC = 16, /* outstanding READs of a peer */
    ROCE_MAX_RD_ATOMIC = 128,     /* outstanding READs of a QP of ours */
    ROCE_WINDOW = 128,            /* default of unacknowledged packets */
    ROCE_ACK_EVERY = 64,          /* most packets from one AckReq to the next */
    ROCE_BURST = 32,              /* frames handed to a port at once */
    ROCE_QUANTUM = 8,             /* packets that a QP sends in its turn */
};

/* In the order of enum rnic_counter. */
enum roce_counter {
    ROCE_RX_PACKETS,
    ROCE_TX_PACKETS,
    ROCE_RX_BAD_ICRC,
    ROCE_RX_MALFORMED,
    ROCE_RX_NO_QP,
    ROCE_RX_ADDRESS,
    ROCE_RX_KEY,
    ROCE_RX_DUPLICATE,
    ROCE_RX_OUT_OF_ORDER,
    ROCE_RX_DROPPED,
    ROCE_TX_NAK_SEQUENCE,
    ROCE_TX_NAK_OTHER,
    ROCE_TX_RNR,
    ROCE_RX_NAK,
    ROCE_RX_RNR,
    ROCE_TIMEOUTS,
    ROCE_RETRANSMITTED,
    ROCE_CQ_OVERFLOWS,
    ROCE_RX_CNP,
    ROCE_RP_CNP_HANDLED,
    ROCE_NP_CNP_SENT,
    ROCE_NP_ECN_MARKED,
    ROCE_PARITY_ERRORS,
    ROCE_COUNTERS,
};

/* The path of a QP to its peer, and its retry limits. */
struct roce_path {
    uint8_t laddr;
    uint8_t path_mtu; /* 1..5 for 256..4096 bytes; 0 if not set */
    uint16_t neigh;
    bool has_neigh; /* the neighbour's `users` counts this QP */
    bool is_v1;     /* RoCE v1: a GRH in place of IP and UDP */
    uint8_t access; /* enum verbs_access: the peer's rights */
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    uint8_t ack_timeout; /* 4.096 us << n; 0 for no time-out */
    uint8_t retries;
    uint8_t rnr_retries; /* 7 means without limit */
    uint8_t rnr_timer;
    uint8_t priority, dscp, hop_limit;
    uint8_t ecn; /* ECN code point of sent packets */
    uint16_t udp_sport;
    uint32_t flow_label;
    uint32_t rate_mbps;
    uint32_t dest_qpn;
    uint32_t qkey;
};

/* A started work request and its range of PSNs. */
struct roce_sent {
    uint64_t wr_id;
    uint32_t first_psn;
    uint32_t packets; /* number of its PSNs; may be 0 */
    uint32_t len_bytes;
    uint16_t wqe;   /* low bits of its entry's count */
    uint8_t opcode; /* enum verbs_wr_opcode */
    uint8_t status; /* enum verbs_wc_status to complete it with */
    bool signaled;
};

/* A READ of the peer.  Its responses are sent, being sent, or waiting. */
struct roce_read {
    uint64_t va;
    uint32_t first_psn;
    uint32_t packets;
    uint32_t len_bytes;
    uint32_t rkey;
};

enum roce_message {               /* the message that the responder receives */
                    ROCE_BETWEEN, /* none: expects a FIRST or ONLY packet */
                    ROCE_IN_SEND,
                    ROCE_IN_WRITE,
};

enum roce_reply { /* the acknowledgement that waits to be sent */
                  ROCE_REPLY_NONE,
                  ROCE_REPLY_ACK, /* acknowledges everything before epsn */
                  ROCE_REPLY_NAK, /* with reply_syndrome and reply_psn */
};

struct roce_requester {
    uint32_t next_psn;  /* PSN of the next work request to start */
    uint32_t una_psn;   /* oldest unacknowledged PSN */
    uint32_t tx_psn;    /* PSN of the next packet to send */
    uint32_t high_psn;  /* lowest PSN that was never sent */
    uint16_t sent_head; /* index in sent[]: next to complete; free-running */
    uint16_t sent_tail; /* index in sent[]: next to start */
    uint16_t sent_tx;   /* index in sent[]: has tx_psn; or the tail */
    uint16_t unacked;   /* sent packets from una_psn to tx_psn */
    uint16_t since_ack_req; /* packets since the last AckReq */
    uint8_t reads;          /* READs among sent[] */
    uint8_t retries;        /* retries since the last progress */
    uint8_t rnr_retries;
    bool rnr_waiting; /* RNR NAK received: sends nothing until the timer */
    bool gap_seen;    /* resending because a response was lost */
    struct roce_sent sent[ROCE_INFLIGHT];
};

struct roce_responder {
    uint32_t epsn;          /* expected PSN */
    uint32_t msn;           /* number of completed messages, 24 bits */
    uint8_t message;        /* enum roce_message */
    uint8_t reply;          /* enum roce_reply */
    uint8_t reply_syndrome; /* syndrome of ROCE_REPLY_NAK */
    bool nak_sent;        /* a NAK for this gap was sent; progress clears it */
    bool heard;           /* QP_ESTABLISHED has been raised */
    bool has_dropped;     /* dropped_psn is valid: no NAK was sent since */
    uint32_t dropped_psn; /* last packet dropped because of a gap before it */
    uint32_t reply_psn;   /* PSN of ROCE_REPLY_NAK */
    uint64_t recv_wr_id;  /* SEND: wr_id of the receive buffer */
    uint64_t recv_addr;
    uint32_t recv_len;
    uint32_t recv_lkey;
    uint32_t offset;   /* SEND: bytes received so far */
    uint64_t write_va; /* WRITE: address of the next byte */
    uint32_t write_rkey;
    uint32_t write_left;
    /* reads[]: the last READs in PSN order; head <= next <= fresh <= tail. */
    uint16_t read_tail;   /* free-running */
    uint16_t read_fresh;  /* first whose responses were never all sent */
    uint16_t read_next;   /* next to respond to; a repeat if before fresh */
    uint16_t read_head;   /* oldest READ that can be repeated */
    uint32_t read_packet; /* next response packet of reads[read_next] */
    uint32_t read_first;  /* first response packet of reads[read_next] */
    struct roce_read reads[ROCE_MAX_DEST_RD_ATOMIC];
};

struct roce_qp {
    struct roce_path path;
    struct roce_requester req;
    struct roce_responder resp;
    bool cnp_wanted;      /* a CNP is to be sent */
    uint64_t cnp_next_ns; /* earliest time of the next CNP */
    struct dcqcn dcqcn;
};

/* Congestion management as configured by firmware. */
struct roce_ecn {
    bool is_answered; /* marked packets are answered with CNPs */
    bool is_obeyed;   /* received CNPs slow down their queue pair */
    uint8_t codepoint;
    uint8_t cnp_dscp, cnp_priority;
    uint32_t line_mbps; /* rate of a queue pair without a limit */
};

/* Queues of QP slots that wait to send, linked by index. */
enum roce_list { ROCE_LIST_CONTROL, ROCE_LIST_DATA, ROCE_LISTS };

struct roce_link {
    uint16_t next;
    bool queued;
};

struct roce_queue {
    uint16_t head, tail; /* slots; valid while count != 0 */
    uint16_t count;
};

_Static_assert((int)TIMERS_MAX >= (int)RDMA_QPS, "a deadline a slot");

struct roce_state {
    struct roce_qp qps[RDMA_QPS];
    uint64_t counters[ROCE_COUNTERS];
    uint32_t window;      /* packets, at least 1; default ROCE_WINDOW */
    struct timers timers; /* by QP slot */
    struct roce_ecn ecn;
    /* roce_reload() derives all fields below from those above. */
    struct roce_link links[ROCE_LISTS][RDMA_QPS];
    struct roce_queue queues[RDMA_PORTS][ROCE_LISTS];
    struct roce_queue parked[RDMA_PORTS][ROCE_LISTS]; /* QPs that are paused */
    struct timers pacing; /* by QP slot: end of the delay by a rate limit */
    bool port_blocked[RDMA_PORTS];
};

enum { ROCE_PRIORITIES = 8 };

/* One frame of a burst.  The record serves to count the frame when the port has
 * taken it, or to undo it. */
struct roce_note {
    uint16_t slot;
    uint8_t kind; /* enum roce_note_kind, transmit.c */
    uint8_t syndrome;
    uint32_t psn;
    bool again;         /* REQUEST: is a retransmission */
    bool first;         /* RESPONSE: is the first of its READ */
    uint32_t len_bytes; /* length of the frame, if the QP has a rate limit */
    uint32_t taken_ns;
};

/*
 * Faults on demand: asked about each request message that is about to be
 * executed, and about each transfer of a packet's data from or to DRAM.
 */
struct roce_fault_hook {
    void *ctx;

    /* @return the AETH syndrome of an RNR NAK or a NAK to send in place of
     *  executing the message, whose first packet has this BTH opcode; 0:
     *  execute it */
    uint8_t (*judge)(void *ctx, uint32_t qpn, uint8_t opcode);

    /* @return whether the data has a parity error.  If so, it is neither sent
     * nor used, and the QP goes to ERROR. */
    bool (*judge_transfer)(void *ctx, uint32_t qpn, bool is_to_dram);
};

/* The transport.  Only `state` is saved, and the RNIC saves `objects`. */
struct roce {
    struct roce_state *state;
    struct rdma_objects *objects;         /* the RNIC's */
    const struct trace *trace;            /* NULL if tracing is off */
    const struct roce_fault_hook *faults; /* NULL without fault rules */
    struct rdma_dram dram;
    struct frame_sink sinks[RDMA_PORTS];
    uint64_t now_ns;                 /* time of the call in progress */
    uint64_t blocked_ns[RDMA_PORTS]; /* begin of port_blocked */
    uint8_t waited_for[RDMA_PORTS];  /* BIT(priority): a datagram is paused */
    uint64_t paused_ns[RDMA_PORTS][ROCE_PRIORITIES]; /* since when */
    struct frame_tx burst[ROCE_BURST];
    struct roce_note notes[ROCE_BURST];
};

/* RoCE as an engine of the RNIC; its context is a struct roce.  It serves the
 * types VERBS_QP_RC and VERBS_QP_UD.  The functions below do the work. */
extern const struct rdma_engine_ops roce_engine_ops;

/** Reset all state; `dram`, `sinks` and `objects` stay. */
void roce_reset(struct roce *roce);

/**
 * Take frames that `port` received: UDP to port 4791 over IPv4 or IPv6, or
 * EtherType 8915h, tagged or not.  Anything else is counted as malformed.
 * Answers wait for roce_transmit().
 */
void roce_rx(struct roce *roce, unsigned int port,
             const struct frame_rx *frames, unsigned int count,
             uint64_t now_ns);

/** A doorbell: requests were posted to the send queue of an existing QP. */
void roce_doorbell(struct roce *roce, uint32_t slot, uint64_t now_ns);

/**
 * Send what may be sent: acknowledgements first, then data, taking QPs in turn.
 *
 * @param budget  the largest number of bursts
 * @return true when it stopped because of the budget: call again
 */
bool roce_transmit(struct roce *roce, unsigned int budget, uint64_t now_ns);

/** The port takes frames again, or its paused priorities have changed. */
void roce_port_ready(struct roce *roce, unsigned int port);

/**
 * QPs have moved to another port, because they or their neighbours changed.
 * Those in the queues of this port are moved to the queues of their new port.
 */
void roce_port_left(struct roce *roce, unsigned int port);

/** Act on deadlines that have passed. */
void roce_timer(struct roce *roce, uint64_t now_ns);

/** When roce_timer() is due next; UINT64_MAX for never. */
uint64_t roce_deadline(const struct roce *roce);

/* ---- Operations of RNIC commands.  The caller checks the arguments unless a
 * comment says otherwise. */

/** Initialise a new QP in RESET whose struct rdma_qp is filled in. */
void roce_qp_create(struct roce *roce, uint32_t slot);

/** Move a QP to another state, which rdma_qp_may_enter() allows, with the path
 * for that state. */
void roce_qp_modify(struct roce *roce, uint32_t slot, enum verbs_qp_state next,
                    const struct roce_path *path, uint32_t sq_psn,
                    uint32_t rq_psn, uint64_t now_ns);

/** Remove a QP and release what it uses. */
void roce_qp_destroy(struct roce *roce, uint32_t slot);

/** Raise QP_DRAINED when everything posted so far has completed. */
void roce_qp_drain(struct roce *roce, uint32_t slot);

/**
 * Check a loaded `state`, and derive from it what is not saved.
 *
 * @return false when it is invalid; the caller then has to call roce_reset()
 */
MUST_USE bool roce_reload(struct roce *roce);

#endif
