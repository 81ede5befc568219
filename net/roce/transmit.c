/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scheduling: each port has a queue of QPs that owe an acknowledgement and one
 * of QPs that have data.  The first queue is served first; within a queue each
 * QP sends ROCE_QUANTUM packets and goes to the end.
 *
 * Frames are built into one burst and offered to the port.  Frames that the
 * port does not take are undone, newest first.  No frame is ever stored, so a
 * destroyed QP leaves nothing here, and a saved state has no frames.
 */
#include "net/roce/internal.h"

#include <string.h>

/* ---- Queues of slots. */

static unsigned int port_of(struct roce *roce, uint32_t slot)
{
    const struct roce_qp *qp = roce_qp(roce, slot);

    if (roce_rdma_qp(roce, slot)->type == VERBS_QP_UD) {
        return roce_ud_port(roce, slot);
    }
    return roce->objects->neighs[qp->path.neigh].port;
}

/* Append to `queue`, which belongs to `list`: a slot is in at most one of the
 * queues of a list. */
static void push_slot(struct roce_state *state, struct roce_queue *queue,
                      enum roce_list list, uint16_t slot)
{
    struct roce_link *links = state->links[list];

    links[slot].queued = true;
    if (queue->count++ == 0) {
        queue->head = slot;
    } else {
        links[queue->tail].next = slot;
    }
    queue->tail = slot;
}

static uint16_t pop_slot(struct roce_state *state, unsigned int port,
                         enum roce_list list)
{
    struct roce_queue *queue = &state->queues[port][list];
    struct roce_link *links = state->links[list];
    uint16_t slot = queue->head;

    links[slot].queued = false;
    queue->head = links[slot].next;
    queue->count--;
    return slot;
}

/*
 * A datagram QP without datagrams belongs to no port.  If it stayed in the
 * queue of a blocked port, it could not send its next datagram through the
 * other one.
 */
static bool has_port(struct roce *roce, uint32_t slot)
{
    const struct rdma_qp *rqp = roce_rdma_qp(roce, slot);

    return rqp->type != VERBS_QP_UD || rqp->sq_next != rqp->sq_pi;
}

void roce_schedule(struct roce *roce, uint32_t slot, enum roce_list list)
{
    if (!roce->state->links[list][slot].queued && has_port(roce, slot)) {
        push_slot(roce->state, &roce->state->queues[port_of(roce, slot)][list],
                  list, (uint16_t)slot);
    }
}

/* Append the parked QPs to the queues again. */
static void unpark_slots(struct roce_state *state, unsigned int port)
{
    for (unsigned int list = 0; list < ROCE_LISTS; list++) {
        struct roce_queue *from = &state->parked[port][list];
        struct roce_queue *to = &state->queues[port][list];

        if (from->count == 0) {
            continue;
        }
        if (to->count == 0) {
            to->head = from->head;
        } else {
            state->links[list][to->tail].next = from->head;
        }
        to->tail = from->tail;
        to->count = (uint16_t)(to->count + from->count);
        from->count = 0;
    }
}

/* ---- Bursts. */

struct burst {
    unsigned int port;
    unsigned int count;
    struct frame_tx *frames;
    struct roce_note *notes;
};

typedef bool build_function(struct roce *roce, uint32_t slot,
                            struct frame_tx *tx, struct roce_note *note);

/* Build up to `max` frames of one kind. */
static unsigned int build_some(struct roce *roce, struct burst *burst,
                               uint32_t slot, build_function *build,
                               unsigned int max)
{
    unsigned int n = 0;

    while (n < max && burst->count < ROCE_BURST &&
           build(roce, slot, &burst->frames[burst->count],
                 &burst->notes[burst->count])) {
        burst->count++;
        n++;
    }
    return n;
}

static void build_ud(struct roce *roce, struct burst *burst, uint32_t slot)
{
    unsigned int n = 0;

    while (n < ROCE_QUANTUM && burst->count < ROCE_BURST &&
           roce_ud_build(roce, slot, burst->port, &burst->frames[burst->count],
                         &burst->notes[burst->count])) {
        burst->count++;
        n++;
    }
    if (roce_rdma_qp(roce, slot)->state == VERBS_QPS_RTS &&
        roce_rdma_qp(roce, slot)->sq_next != roce_rdma_qp(roce, slot)->sq_pi) {
        roce_schedule(roce, slot, ROCE_LIST_DATA);
    }
}

/*
 * build_rc() for a QP with a rate limit: one packet at a time.  A QP that has
 * to wait is scheduled when its next packet is due.
 */
static void build_paced(struct roce *roce, struct burst *burst, uint32_t slot)
{
    struct roce_qp *qp = roce_qp(roce, slot);
    struct dcqcn *dcqcn = &qp->dcqcn;
    unsigned int n = 0;

    (void)build_some(roce, burst, slot, roce_reply_build, 1);
    for (; n < ROCE_QUANTUM && burst->count < ROCE_BURST; n++) {
        unsigned int at = burst->count;

        if (!dcqcn_may_send(dcqcn, roce_line_kbps(roce), roce->now_ns)) {
            timers_set(&roce->state->pacing, (uint16_t)slot, dcqcn->next_ns);
            return;
        }
        if (build_some(roce, burst, slot, roce_response_build, 1) == 0 &&
            build_some(roce, burst, slot, roce_request_build, 1) == 0) {
            break;
        }
        if (dcqcn->is_limited) {
            uint32_t len = frame_tx_len(&burst->frames[at]);

            burst->notes[at].len_bytes = len;
            burst->notes[at].taken_ns = dcqcn_take(dcqcn, len, roce->now_ns);
        }
    }
    (void)build_some(roce, burst, slot, roce_reply_build, 1);
    if (n == ROCE_QUANTUM || burst->count == ROCE_BURST ||
        roce_reads_wait(qp)) {
        roce_schedule(roce, slot, ROCE_LIST_DATA);
    }
}

static void build_rc(struct roce *roce, struct burst *burst, uint32_t slot)
{
    const struct roce_qp *qp = roce_qp(roce, slot);
    unsigned int n;

    if (qp->dcqcn.is_limited) {
        build_paced(roce, burst, slot);
        return;
    }

    (void)build_some(roce, burst, slot, roce_response_build, ROCE_QUANTUM);
    (void)build_some(roce, burst, slot, roce_reply_build, 1);
    n = build_some(roce, burst, slot, roce_request_build, ROCE_QUANTUM);
    if (n == ROCE_QUANTUM || burst->count == ROCE_BURST ||
        roce_reads_wait(qp)) {
        roce_schedule(roce, slot, ROCE_LIST_DATA);
    }
}

/* Serve one QP.  It may have moved to the other port or be destroyed. */
static void take_turn(struct roce *roce, struct burst *burst,
                      enum roce_list list)
{
    uint32_t slot = pop_slot(roce->state, burst->port, list);
    const struct rdma_qp *rqp = roce_rdma_qp(roce, slot);
    bool is_ud = rqp->type == VERBS_QP_UD;

    if (!rqp->exists) {
        return;
    }
    if (port_of(roce, slot) != burst->port) {
        roce_schedule(roce, slot, list);
        return;
    }
    if (roce_qp(roce, slot)->cnp_wanted) {
        (void)build_some(roce, burst, slot, roce_cnp_build, 1);
        if (burst->count == ROCE_BURST) {
            roce_schedule(roce, slot, list); /* it may have more to send */
            return;
        }
    }
    if (is_ud ? roce_ud_is_paused(roce, slot, burst->port)
              : roce_is_paused(roce, burst->port, slot)) {
        push_slot(roce->state, &roce->state->parked[burst->port][list], list,
                  (uint16_t)slot);
    } else if (is_ud) {
        build_ud(roce, burst, slot);
    } else if (list == ROCE_LIST_DATA) {
        build_rc(roce, burst, slot);
    } else if (roce_reads_wait(roce_qp(roce, slot))) {
        roce_schedule(roce, slot, ROCE_LIST_DATA);
    } else {
        (void)build_some(roce, burst, slot, roce_reply_build, 1);
    }
}

static void note_sent(struct roce *roce, unsigned int port,
                      const struct roce_note *note)
{
    struct roce_qp *qp = roce_qp(roce, note->slot);

    roce_count(roce, ROCE_TX_PACKETS);
    if (note->len_bytes != 0) {
        dcqcn_sent(&qp->dcqcn, roce_line_kbps(roce), note->len_bytes);
    }
    switch (note->kind) {
    case ROCE_NOTE_REQUEST:
        if (note->again) {
            roce_count(roce, ROCE_RETRANSMITTED);
        }
        if (roce->trace != NULL && trace_is_on(roce->trace, TRACE_GROUP_PATH)) {
            roce_observe_sent(roce, port, note);
        }
        if (roce->state->timers.due[note->slot] == TIMERS_NONE &&
            roce_rdma_qp(roce, note->slot)->state == VERBS_QPS_RTS) {
            roce_timer_set(roce, note->slot, roce_ack_due(roce, qp));
        }
        break;
    case ROCE_NOTE_RESPONSE:
        roce_response_sent(roce, note->slot, note);
        break;
    case ROCE_NOTE_REPLY:
        if (note->syndrome >> 5 != AETH_ACK) {
            qp->resp.has_dropped = false; /* the requester goes back */
            roce_trace(roce, TRACE_GROUP_ROCE, note->slot, TRACE_NAK_SENT,
                       note->syndrome, note->psn, 0);
        }
        if (note->syndrome >> 5 == AETH_RNR_NAK) {
            roce_count(roce, ROCE_TX_RNR);
        } else if (note->syndrome >> 5 == AETH_NAK) {
            roce_count(roce, (note->syndrome & 0x1f) == AETH_NAK_PSN_SEQUENCE
                                 ? ROCE_TX_NAK_SEQUENCE
                                 : ROCE_TX_NAK_OTHER);
        }
        break;
    case ROCE_NOTE_UD:
        roce_ud_sent(roce, note->slot);
        break;
    case ROCE_NOTE_CNP:
        roce_count(roce, ROCE_NP_CNP_SENT);
        roce_trace(roce, TRACE_GROUP_ROCE, note->slot, TRACE_CNP_SENT, 0, 0, 0);
        break;
    default:
        break;
    }
}

static void note_undo(struct roce *roce, const struct roce_note *note)
{
    uint8_t state = roce_rdma_qp(roce, note->slot)->state;

    if (note->kind == ROCE_NOTE_REPLY) {
        roce_reply_undo(roce, note->slot, note);
        return;
    }
    if (note->kind == ROCE_NOTE_CNP) {
        roce_qp(roce, note->slot)->cnp_wanted = true;
        roce_schedule(roce, note->slot, ROCE_LIST_CONTROL);
        return;
    }
    if (note->len_bytes != 0) {
        dcqcn_undo(&roce_qp(roce, note->slot)->dcqcn, note->taken_ns);
    }
    if (state != VERBS_QPS_RTS &&
        !(state == VERBS_QPS_RTR && note->kind == ROCE_NOTE_RESPONSE)) {
        return; /* it failed while the burst was built: its state is reset */
    }
    if (note->kind == ROCE_NOTE_RESPONSE) {
        roce_response_undo(roce, note->slot, note);
    } else if (note->kind == ROCE_NOTE_REQUEST) {
        roce_request_undo(roce, note->slot, note);
    } else {
        roce_ud_undo(roce, note->slot);
    }
    roce_schedule(roce, note->slot, ROCE_LIST_DATA);
}

/* Build one burst and offer it to the port. @return false when it was empty */
static bool send_burst(struct roce *roce, unsigned int port)
{
    struct roce_state *state = roce->state;
    struct burst burst = {
        .port = port, .frames = roce->burst, .notes = roce->notes};
    const struct frame_sink *sink = &roce->sinks[port];
    unsigned int turns = state->queues[port][ROCE_LIST_CONTROL].count +
                         state->queues[port][ROCE_LIST_DATA].count;
    unsigned int sent;

    for (; turns != 0 && burst.count < ROCE_BURST; turns--) {
        if (state->queues[port][ROCE_LIST_CONTROL].count != 0) {
            take_turn(roce, &burst, ROCE_LIST_CONTROL);
        } else if (state->queues[port][ROCE_LIST_DATA].count != 0) {
            take_turn(roce, &burst, ROCE_LIST_DATA);
        }
    }
    if (burst.count == 0) {
        return false;
    }
    /* Set this before send(), which may call roce_port_ready(). */
    state->port_blocked[port] = true;
    roce->blocked_ns[port] = roce->now_ns;
    sent = sink->send != NULL ? sink->send(sink->ctx, burst.frames, burst.count)
                              : burst.count;
    ASSERT(sent <= burst.count);
    if (sent == burst.count) {
        state->port_blocked[port] = false;
    }
    for (unsigned int i = 0; i < sent; i++) {
        note_sent(roce, port, &burst.notes[i]);
    }
    for (unsigned int i = burst.count; i > sent; i--) {
        note_undo(roce, &burst.notes[i - 1]);
    }
    return true;
}

static bool has_work(const struct roce_state *state, unsigned int port)
{
    return !state->port_blocked[port] &&
           (state->queues[port][ROCE_LIST_CONTROL].count != 0 ||
            state->queues[port][ROCE_LIST_DATA].count != 0);
}

bool roce_transmit(struct roce *roce, unsigned int budget, uint64_t now_ns)
{
    bool more = true;

    roce->now_ns = now_ns;
    while (more) {
        more = false;
        for (unsigned int port = 0; port < RDMA_PORTS; port++) {
            if (!has_work(roce->state, port)) {
                continue;
            }
            if (budget-- == 0) {
                roce_settle(roce);
                return true;
            }
            (void)send_burst(roce, port);
            more = true;
        }
        roce_settle(roce);
    }
    return false;
}

void roce_port_ready(struct roce *roce, unsigned int port)
{
    const uint8_t *paused = roce->sinks[port].paused;

    roce->state->port_blocked[port] = false;
    roce->waited_for[port] &= paused != NULL ? *paused : 0;
    unpark_slots(roce->state, port);
}

void roce_port_left(struct roce *roce, unsigned int port)
{
    unpark_slots(roce->state, port);
    for (unsigned int list = 0; list < ROCE_LISTS; list++) {
        unsigned int count = roce->state->queues[port][list].count;

        for (; count != 0; count--) {
            uint16_t slot = pop_slot(roce->state, port, (enum roce_list)list);

            if (roce_rdma_qp(roce, slot)->exists) {
                roce_schedule(roce, slot, (enum roce_list)list);
            }
        }
    }
}

void roce_timer(struct roce *roce, uint64_t now_ns)
{
    uint16_t slot;

    roce->now_ns = now_ns;
    while (timers_expired(&roce->state->timers, now_ns, &slot)) {
        if (roce_rdma_qp(roce, slot)->type == VERBS_QP_UD) {
            roce_ud_make_way(roce, slot);
        } else {
            roce_completer_timer(roce, slot);
        }
    }
    while (timers_expired(&roce->state->pacing, now_ns, &slot)) {
        roce_schedule(roce, slot, ROCE_LIST_DATA);
    }
    roce_settle(roce);
}

uint64_t roce_deadline(const struct roce *roce)
{
    uint64_t ack_ns = timers_next(&roce->state->timers);
    uint64_t pacing_ns = timers_next(&roce->state->pacing);

    return MIN(ack_ns, pacing_ns);
}
