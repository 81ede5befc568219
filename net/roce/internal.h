/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the files of the transport share:
 *
 *   rx.c         frames in: headers judged, QP found
 *   judge.c      checks of a peer's request (RC)
 *   responder.c  execution of accepted requests
 *   response.c   READ responses and acknowledgements
 *   completer.c  responses to our requests (RC)
 *   requester.c  our requests (RC), and retransmission
 *   ud.c         datagrams, both ways
 *   notify.c     congestion notifications, both ways
 *   dcqcn.c      the rate limit of a QP after them
 *   transmit.c   scheduling, bursts, back-pressure
 *   packet.c     headers and ICRC of sent packets
 *   observe.c    events for traces
 *   qp.c         creation, completions and failure of QPs
 *   engine.c     the transport as an engine of the RNIC
 */
#ifndef ESSD_NET_ROCE_INTERNAL_H
#define ESSD_NET_ROCE_INTERNAL_H

#include "lib/bytes.h"
#include "net/roce/roce.h"
#include "net/verbs/work.h"
#include "net/wire/bth.h"
#include "net/wire/psn.h"
#include "net/wire/roce_ext.h"
#include "net/wire/roce_opcode.h"

/* ---- Helpers. */

static inline struct rdma_qp *roce_rdma_qp(struct roce *roce, uint32_t slot)
{
    return &roce->objects->qps[slot];
}

/* Whether a queue pair exists that RoCE serves, not another engine. */
static inline bool roce_has_qp(const struct roce *roce, uint32_t slot)
{
    const struct rdma_qp *rqp = &roce->objects->qps[slot];

    return rqp->exists &&
           (rqp->type == VERBS_QP_RC || rqp->type == VERBS_QP_UD);
}

static inline struct roce_qp *roce_qp(struct roce *roce, uint32_t slot)
{
    return &roce->state->qps[slot];
}

static inline void roce_count(struct roce *roce, enum roce_counter counter)
{
    roce->state->counters[counter]++;
}

/* observe.c */
void roce_observe(struct roce *roce, uint32_t slot, enum trace_type type,
                  const uint32_t args[3]);

/* A request packet has left through the port: report it if it ends a SEND. */
void roce_observe_sent(struct roce *roce, unsigned int port,
                       const struct roce_note *note);

/* A trace point: an event of a queue pair with up to three arguments. */
static inline void roce_trace(struct roce *roce, enum trace_group group,
                              uint32_t slot, enum trace_type type, uint32_t a,
                              uint32_t b, uint32_t c)
{
    if (roce->trace != NULL && trace_is_on(roce->trace, group)) {
        roce_observe(roce, slot, type, (const uint32_t[]){a, b, c});
    }
}

static inline uint32_t roce_mtu(const struct roce_qp *qp)
{
    return 128u << qp->path.path_mtu;
}

/* Number of packets of a message; an empty message has one. */
static inline uint32_t roce_packets(uint32_t len_bytes, uint32_t mtu)
{
    return len_bytes == 0 ? 1 : (len_bytes - 1) / mtu + 1;
}

/* Bytes of a message in its packet `k`. */
static inline uint32_t roce_packet_len(uint32_t len_bytes, uint32_t mtu,
                                       uint32_t k)
{
    return MIN(mtu, len_bytes - k * mtu);
}

/* Whether the port's partner has paused a priority. */
static inline bool roce_is_priority_paused(const struct roce *roce,
                                           unsigned int port, uint8_t priority)
{
    const uint8_t *paused = roce->sinks[port].paused;

    return paused != NULL && *paused != 0 && *paused >> (priority & 7) & 1;
}

/* Whether the priority of an RC pair is paused. */
static inline bool roce_is_paused(const struct roce *roce, unsigned int port,
                                  uint32_t slot)
{
    return roce_is_priority_paused(roce, port,
                                   roce->state->qps[slot].path.priority);
}

/* ---- A received packet with parsed headers. */

struct roce_rx {
    uint8_t port;
    uint32_t flags; /* enum roce_op_flag of the opcode */
    struct bth bth;
    struct eth eth;
    struct ip_addr src, dst;
    bool is_v1;
    bool is_ce;         /* a switch has marked it CE */
    const uint8_t *ext; /* extended headers, complete */
    const uint8_t *payload;
    uint32_t payload_len; /* without padding */
};

/* The VLAN of the packet; a priority tag counts as no VLAN. */
static inline uint16_t roce_rx_vlan(const struct roce_rx *rx)
{
    return rx->eth.tagged && rx->eth.vlan != 0 ? rx->eth.vlan
                                               : (uint16_t)RDMA_NO_VLAN;
}

/* Whether the packet's destination is that address on that port and VLAN. */
static inline bool roce_rx_is_to(const struct roce_rx *rx,
                                 const struct rdma_laddr *laddr)
{
    return laddr->exists && laddr->port == rx->port &&
           laddr->vlan == roce_rx_vlan(rx) &&
           ip_addr_equal(&laddr->ip, &rx->dst);
}

/* Offset of an extended header among those of the packet. */
static inline const uint8_t *roce_rx_ieth(const struct roce_rx *rx)
{
    return rx->payload - IETH_LEN; /* always the last */
}

/* responder.c */
void roce_responder_rx(struct roce *roce, uint32_t slot,
                       const struct roce_rx *rx);
/* Send a NAK for epsn in place of a waiting acknowledgement. */
void roce_reply_nak(struct roce *roce, uint32_t slot, enum aeth_kind kind,
                    uint8_t value);

/* response.c */
bool roce_response_build(struct roce *roce, uint32_t slot, struct frame_tx *tx,
                         struct roce_note *note);
bool roce_reply_build(struct roce *roce, uint32_t slot, struct frame_tx *tx,
                      struct roce_note *note);
/* The port has taken a packet of a response. */
void roce_response_sent(struct roce *roce, uint32_t slot,
                        const struct roce_note *note);
void roce_response_undo(struct roce *roce, uint32_t slot,
                        const struct roce_note *note);

void roce_reply_undo(struct roce *roce, uint32_t slot,
                     const struct roce_note *note);

static inline bool roce_reads_wait(const struct roce_qp *qp)
{
    return qp->resp.read_next != qp->resp.read_tail;
}

/*
 * Number of the peer's outstanding READs, for the limit that was agreed.
 * Repeated READs do not count: the peer may have had the first response.
 */
static inline uint16_t roce_reads_fresh(const struct roce_responder *resp)
{
    return (uint16_t)(resp->read_tail - resp->read_fresh);
}

/* completer.c */
void roce_completer_rx(struct roce *roce, uint32_t slot,
                       const struct roce_rx *rx);
void roce_completer_timer(struct roce *roce, uint32_t slot);
/* Complete the oldest requests that need no response. */
void roce_complete_ready(struct roce *roce, uint32_t slot);

/* requester.c */
bool roce_request_build(struct roce *roce, uint32_t slot, struct frame_tx *tx,
                        struct roce_note *note);
void roce_request_undo(struct roce *roce, uint32_t slot,
                       const struct roce_note *note);
/* Continue sending at `psn`, which is not before una_psn. */
void roce_request_seek(struct roce_qp *qp, uint32_t psn);
/* Scatter a READ's bytes; false when key, bounds or entry are invalid. */
bool roce_request_place(struct roce *roce, uint32_t slot,
                        const struct roce_sent *sent, uint32_t offset,
                        const uint8_t *data, uint32_t len);

/* notify.c */
enum { ROCE_CNP_RESERVED = 16 }; /* bytes after the BTH */
/* A packet marked CE has arrived. */
void roce_marked(struct roce *roce, uint32_t slot, const struct roce_rx *rx);
void roce_cnp_rx(struct roce *roce, uint32_t slot);
bool roce_cnp_build(struct roce *roce, uint32_t slot, struct frame_tx *tx,
                    struct roce_note *note);

static inline uint32_t roce_line_kbps(const struct roce *roce)
{
    return roce->state->ecn.line_mbps * 1000;
}

/* ud.c */
void roce_ud_rx(struct roce *roce, uint32_t slot, const struct roce_rx *rx);
bool roce_ud_build(struct roce *roce, uint32_t slot, unsigned int port,
                   struct frame_tx *tx, struct roce_note *note);
void roce_ud_sent(struct roce *roce, uint32_t slot);
void roce_ud_undo(struct roce *roce, uint32_t slot);
/* The port on which the next datagram is sent. */
unsigned int roce_ud_port(struct roce *roce, uint32_t slot);
/* Whether the next datagram's priority is paused on that port. */
bool roce_ud_is_paused(struct roce *roce, uint32_t slot, unsigned int port);
/* Drop the oldest datagrams if they wait for a stuck port and block others. */
void roce_ud_make_way(struct roce *roce, uint32_t slot);

/* transmit.c */
enum roce_note_kind {
    ROCE_NOTE_REQUEST,
    ROCE_NOTE_RESPONSE,
    ROCE_NOTE_REPLY,
    ROCE_NOTE_UD,
    ROCE_NOTE_CNP,
};

/** The QP has something to send: put it in a queue. */
void roce_schedule(struct roce *roce, uint32_t slot, enum roce_list list);

/* packet.c */
struct roce_route {
    uint8_t laddr;
    bool is_v1;
    uint16_t neigh;
    uint8_t priority, dscp, hop_limit;
    uint8_t ecn;
    uint16_t udp_sport;
    uint32_t flow_label;
};

/**
 * Begin a packet: write all headers up to the BTH for `payload_len` bytes of
 * payload, which is padded later.
 *
 * @return where the opcode's extended headers go; NULL when the local address
 *         or the neighbour no longer exists
 */
uint8_t *roce_packet_begin(const struct rdma_objects *objects,
                           const struct roce_route *route, struct bth *bth,
                           uint32_t payload_len, struct frame_tx *tx);

/** Add a piece of payload; empty ones take no room. */
static inline void roce_packet_add(struct frame_tx *tx, const void *data,
                                   uint32_t len)
{
    if (len != 0) {
        tx->pieces[tx->num_pieces++] = (struct frame_piece){data, len};
    }
}

/** Add padding and ICRC after headers and payload. */
void roce_packet_end(const struct bth *bth, struct frame_tx *tx);

void roce_route_of(const struct roce_qp *qp, struct roce_route *route);

/* qp.c */
/** Complete the oldest send request. */
void roce_complete_send(struct roce *roce, uint32_t slot,
                        const struct roce_sent *sent,
                        enum verbs_wc_status status);
void roce_complete_recv(struct roce *roce, uint32_t slot,
                        struct rdma_completion *completion);
/** Ask the fault rules about a transfer.  If it has a parity error, count it
 * and raise the event.  @return whether it has one */
bool roce_judge_transfer(struct roce *roce, uint32_t slot, bool is_to_dram);

/** Whether the transfer of a packet's data between RNIC and DRAM has a parity
 * error.  If so, the caller has to end the connection. */
static inline bool roce_transfer_fails(struct roce *roce, uint32_t slot,
                                       bool is_to_dram)
{
    return roce->faults != NULL && roce_judge_transfer(roce, slot, is_to_dram);
}

/** Move a QP to ERROR because of a fault: raise the event and flush it. */
void roce_qp_fail(struct roce *roce, uint32_t slot,
                  enum verbs_wc_status status);
/** Fail the oldest request and, with it, the QP. */
void roce_send_fail(struct roce *roce, uint32_t slot,
                    enum verbs_wc_status status);
void roce_qp_event(struct roce *roce, uint32_t slot, enum rdma_event_type type,
                   uint32_t info);
/** Take one entry of a receive queue; raises RQ_LOW when few are left. */
void roce_rq_advance(struct roce *roce, uint32_t slot);
/** Move the QPs of CQs that overflowed to ERROR. */
void roce_settle(struct roce *roce);

static inline void roce_timer_set(struct roce *roce, uint32_t slot,
                                  uint64_t due_ns)
{
    timers_set(&roce->state->timers, (uint16_t)slot, due_ns);
}

static inline uint64_t roce_ack_due(const struct roce *roce,
                                    const struct roce_qp *qp)
{
    return qp->path.ack_timeout == 0
               ? TIMERS_NONE
               : roce->now_ns + (UINT64_C(4096) << qp->path.ack_timeout);
}

#endif
