/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the files of the engine share:
 *
 *   receive.c    bytes in: FPDUs, and the checks of DDP
 *   untagged.c   SENDs, READ requests and Terminates of the peer
 *   tagged.c     WRITEs of the peer, and responses to our READs
 *   send.c       work requests and responses become ranges of the stream
 *   fetch.c      bytes out: FPDUs made for an offset in the stream
 *   pieces.c     memory of work requests and regions
 *   terminate.c  Terminates, both ways
 *   qp.c         creation, completions and failure of QPs
 *   iwarp.c      reset, load, turns and deadlines
 *   engine.c     the transport as an engine of the RNIC
 */
#ifndef ESSD_NET_IWARP_INTERNAL_H
#define ESSD_NET_IWARP_INTERNAL_H

#include "lib/bytes.h"
#include "net/iwarp/iwarp.h"
#include "net/mpa/mpa.h"
#include "net/verbs/work.h"
#include "net/wire/ddp.h"

/* Keys of READs have this bit; those of regions never do. */
#define IWARP_SINK_KEY 0x80000000u

static inline struct rdma_qp *iwarp_rdma_qp(struct iwarp *iwarp, uint32_t slot)
{
    return &iwarp->objects->qps[slot];
}

static inline struct iwarp_qp *iwarp_qp(struct iwarp *iwarp, uint32_t slot)
{
    return &iwarp->state->qps[slot];
}

static inline struct iwarp_sent *iwarp_sent_at(struct iwarp_qp *qp, uint16_t i)
{
    return &qp->tx.sent[i % IWARP_INFLIGHT];
}

static inline struct iwarp_read *iwarp_read_at(struct iwarp_qp *qp, uint16_t i)
{
    return &qp->rx.reads[i % IWARP_MAX_DEST_RD_ATOMIC];
}

/* Whether this slot has a queue pair of this engine. */
static inline bool iwarp_has_qp(const struct iwarp *iwarp, uint32_t slot)
{
    const struct rdma_qp *rqp = &iwarp->objects->qps[slot];

    return rqp->exists && rqp->type == VERBS_QP_IW;
}

static inline void iwarp_count(struct iwarp *iwarp, enum iwarp_counter counter)
{
    iwarp->state->counters[counter]++;
}

/* A trace point: an event of a queue pair with up to three arguments. */
static inline void iwarp_trace(struct iwarp *iwarp, uint32_t slot,
                               enum trace_type type, uint32_t a, uint32_t b,
                               uint32_t c)
{
    if (iwarp->trace != NULL && trace_is_on(iwarp->trace, TRACE_GROUP_QP)) {
        iwarp->trace->emit(iwarp->trace->ctx,
                           &(struct trace_record){
                               .source = TRACE_SOURCE_RNIC,
                               .type = (uint16_t)type,
                               .qpn = iwarp_rdma_qp(iwarp, slot)->qpn,
                               .request = TRACE_NO_REQUEST,
                               .arg = {a, b, c},
                           },
                           NULL);
    }
}

/* ---- How a message is cut into FPDUs.  All but the last one are equal. */

/* Payload of all FPDUs but the last one. */
static inline uint32_t iwarp_payload_max(uint32_t max_fpdu, uint32_t header)
{
    return (max_fpdu - MPA_FPDU_OVERHEAD - header) & ~3u;
}

/* Number of FPDUs of a message; an empty message has one. */
static inline uint32_t iwarp_fpdus(uint32_t max_fpdu, uint32_t header,
                                   uint32_t len)
{
    uint32_t payload = iwarp_payload_max(max_fpdu, header);

    return len == 0 ? 1 : (len - 1) / payload + 1;
}

/* Bytes of each FPDU but the last one. */
static inline uint32_t iwarp_full_fpdu(uint32_t max_fpdu, uint32_t header)
{
    return mpa_fpdu_bytes(header + iwarp_payload_max(max_fpdu, header));
}

/* Bytes of a message in the stream. */
static inline uint64_t iwarp_message_bytes(uint32_t max_fpdu, uint32_t header,
                                           uint32_t len)
{
    uint32_t before = iwarp_fpdus(max_fpdu, header, len) - 1;
    uint32_t rest = len - before * iwarp_payload_max(max_fpdu, header);

    return (uint64_t)before * iwarp_full_fpdu(max_fpdu, header) +
           mpa_fpdu_bytes(header + rest);
}

/* Length of the header of a work request's segments. */
static inline uint32_t iwarp_request_header(uint8_t opcode)
{
    return opcode == VERBS_WR_WRITE  ? DDP_TAGGED_LEN
           : opcode == VERBS_WR_READ ? DDP_UNTAGGED_LEN + RDMAP_READ_LEN
                                     : DDP_UNTAGGED_LEN;
}

/* ---- pieces.c */

/* Read the entry of a started request again, and check that it is unchanged. */
bool iwarp_read_again(struct iwarp *iwarp, uint32_t slot,
                      const struct iwarp_sent *sent, struct rdma_wr *wr);

/* Scatter bytes of a READ's response.  False when memory or entry are invalid.
 */
bool iwarp_place(struct iwarp *iwarp, uint32_t slot,
                 const struct iwarp_sent *sent, uint32_t offset,
                 const uint8_t *data, uint32_t len);

/* Why a peer may not use bytes of a region. */
enum iwarp_access {
    IWARP_ACCESS_OK,
    IWARP_ACCESS_STAG,
    IWARP_ACCESS_STREAM, /* of another protection domain */
    IWARP_ACCESS_RIGHTS,
    IWARP_ACCESS_WRAP, /* beyond the end of all addresses */
    IWARP_ACCESS_BOUNDS,
    IWARP_ACCESS_MEMORY, /* not in DRAM, or an error that is ours */
};

/* What the queue pair's user is told: an error of the memory is ours. */
static inline enum verbs_wc_status iwarp_access_status(enum iwarp_access access)
{
    return access == IWARP_ACCESS_MEMORY ? VERBS_WC_LOCAL_PROTECTION
                                         : VERBS_WC_REMOTE_ACCESS;
}

/**
 * Find bytes of a region for the peer.
 *
 * @param right  VERBS_ACCESS_REMOTE_WRITE or VERBS_ACCESS_REMOTE_READ
 * @param data   out
 */
enum iwarp_access iwarp_map_remote(struct iwarp *iwarp, uint32_t slot,
                                   unsigned int right, uint32_t stag,
                                   uint64_t to, uint32_t len, uint8_t **data);

/** Whether the transfer of data between the RNIC and DRAM has a parity error:
 * counted, and reported to firmware. */
bool iwarp_transfer_fails(struct iwarp *iwarp, uint32_t slot, bool is_to_dram);

/* ---- receive.c, untagged.c, tagged.c */

/* A received segment. */
struct iwarp_segment {
    struct ddp ddp;
    const uint8_t *bytes; /* the whole segment */
    uint32_t segment_len;
    const uint8_t *payload;
    uint32_t len; /* of the payload */
};

/* What a segment of the peer has done wrong: it ends the connection. */
struct iwarp_fault {
    enum verbs_wc_status status; /* of the queue pair */
    enum rdmap_error error;      /* for the peer */
};

/* Each executes one segment with this opcode.  @return false: `fault` says why
 * it was refused, and nothing was done */
bool iwarp_take_send(struct iwarp *iwarp, uint32_t slot,
                     const struct iwarp_segment *segment,
                     struct iwarp_fault *fault);
bool iwarp_take_read_request(struct iwarp *iwarp, uint32_t slot,
                             const struct iwarp_segment *segment,
                             struct iwarp_fault *fault);
bool iwarp_take_terminate(struct iwarp *iwarp, uint32_t slot,
                          const struct iwarp_segment *segment,
                          struct iwarp_fault *fault);
bool iwarp_take_write(struct iwarp *iwarp, uint32_t slot,
                      const struct iwarp_segment *segment,
                      struct iwarp_fault *fault);
bool iwarp_take_read_response(struct iwarp *iwarp, uint32_t slot,
                              const struct iwarp_segment *segment,
                              struct iwarp_fault *fault);

static inline bool iwarp_refuse(struct iwarp_fault *fault,
                                enum verbs_wc_status status,
                                enum rdmap_error error)
{
    *fault = (struct iwarp_fault){status, error};
    return false;
}

/* ---- send.c */

/* Announce what may be announced.  @return true: there is more for a further
 * turn */
bool iwarp_send_turn(struct iwarp *iwarp, uint32_t slot);

/* The READ that is answered next; NULL: there is none. */
struct iwarp_sent *iwarp_open_read(struct iwarp_qp *qp);

/* ---- terminate.c */

/*
 * End a connection because of an error.  The peer gets a Terminate, after all
 * that was announced.
 *
 * @param segment  the segment of the peer that is to blame; NULL: none
 */
void iwarp_terminate(struct iwarp *iwarp, uint32_t slot,
                     const struct iwarp_fault *fault,
                     const struct iwarp_segment *segment);

/* With IWARP_TERMINATING: announce the Terminate and the FIN, once. */
void iwarp_terminate_turn(struct iwarp *iwarp, uint32_t slot);

/* Whether the peer has the Terminate. */
bool iwarp_terminate_acked(const struct iwarp_qp *qp);

/* ---- qp.c */

void iwarp_stage_enter(struct iwarp *iwarp, uint32_t slot,
                       enum iwarp_stage next);
void iwarp_qp_event(struct iwarp *iwarp, uint32_t slot,
                    enum rdma_event_type type, uint32_t info);
void iwarp_complete_recv(struct iwarp *iwarp, uint32_t slot,
                         struct rdma_completion *completion);
/* Complete the oldest requests that are done; the first one that has failed
 * ends the connection. */
void iwarp_complete_ready(struct iwarp *iwarp, uint32_t slot);
/* Take one entry of a receive queue; raises RQ_LOW when few are left. */
void iwarp_rq_advance(struct iwarp *iwarp, uint32_t slot);
/* Move a QP to ERROR because of a fault: raise the event and flush it.  The
 * stream is closed, or reset if the peer does not have all bytes. */
void iwarp_qp_fail(struct iwarp *iwarp, uint32_t slot,
                   enum verbs_wc_status status);
/* Close or reset the stream, and detach it: not inside of its functions. */
void iwarp_leave(struct iwarp *iwarp, uint32_t slot);
/* Move the QPs of CQs that overflowed to ERROR. */
void iwarp_settle(struct iwarp *iwarp);

/* ---- iwarp.c */

/** The QP has something to do in iwarp_transmit(). */
void iwarp_schedule(struct iwarp *iwarp, uint32_t slot);

#endif
