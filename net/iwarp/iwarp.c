/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine as a whole: reset, turns of queue pairs, deadlines, and the check
 * of a loaded state. */
#include "net/iwarp/internal.h"

#include <string.h>

/* ---- Queue pairs that have something to do. */

void iwarp_schedule(struct iwarp *iwarp, uint32_t slot)
{
    struct iwarp_state *state = iwarp->state;

    if (state->links[slot].queued) {
        return;
    }
    state->links[slot].queued = true;
    if (state->count++ == 0) {
        state->first = (uint16_t)slot;
    } else {
        state->links[state->last].next = (uint16_t)slot;
    }
    state->last = (uint16_t)slot;
}

static uint32_t pop_slot(struct iwarp_state *state)
{
    uint16_t slot = state->first;

    state->first = state->links[slot].next;
    state->links[slot].queued = false;
    state->count--;
    return slot;
}

/* A queue pair without its stream: the machine was loaded. */
static void fail_lost(struct iwarp *iwarp, uint32_t slot)
{
    uint8_t state = iwarp_rdma_qp(iwarp, slot)->state;

    if (state == VERBS_QPS_RTR || state == VERBS_QPS_RTS) {
        iwarp_count(iwarp, IWARP_STREAMS_LOST);
        iwarp_qp_fail(iwarp, slot, VERBS_WC_RETRY_EXCEEDED);
    }
}

/* @return whether there is more to do in a further turn */
static bool take_turn(struct iwarp *iwarp, uint32_t slot)
{
    if (!iwarp_has_qp(iwarp, slot)) {
        return false;
    }
    switch ((enum iwarp_stage)iwarp_qp(iwarp, slot)->stage) {
    case IWARP_OPEN:
        return iwarp_send_turn(iwarp, slot);
    case IWARP_TERMINATING:
        iwarp_terminate_turn(iwarp, slot);
        return false;
    case IWARP_LEAVING:
        iwarp_leave(iwarp, slot);
        return false;
    default:
        fail_lost(iwarp, slot);
        return false;
    }
}

bool iwarp_transmit(struct iwarp *iwarp, unsigned int budget, uint64_t now_ns)
{
    iwarp->now_ns = now_ns;
    iwarp_settle(iwarp); /* RoCE may have overflowed a CQ of both */
    while (iwarp->state->count != 0) {
        uint32_t slot;

        if (budget-- == 0) {
            return true;
        }
        slot = pop_slot(iwarp->state);
        if (take_turn(iwarp, slot)) {
            iwarp_schedule(iwarp, slot);
        }
        iwarp_settle(iwarp);
    }
    return false;
}

/* ---- Deadlines: only of Terminates, which are rare. */

void iwarp_timer(struct iwarp *iwarp, uint64_t now_ns)
{
    iwarp->now_ns = now_ns;
    for (uint32_t slot = 0; iwarp->state->terminating != 0 && slot < RDMA_QPS;
         slot++) {
        struct iwarp_qp *qp = iwarp_qp(iwarp, slot);

        if (qp->stage == IWARP_TERMINATING && qp->due_ns <= now_ns) {
            iwarp_qp_fail(iwarp, slot, (enum verbs_wc_status)qp->end_status);
        }
    }
    iwarp_settle(iwarp);
}

uint64_t iwarp_deadline(const struct iwarp *iwarp)
{
    const struct iwarp_state *state = iwarp->state;
    uint64_t due_ns = UINT64_MAX;

    for (uint32_t slot = 0; state->terminating != 0 && slot < RDMA_QPS;
         slot++) {
        if (state->qps[slot].stage == IWARP_TERMINATING) {
            due_ns = MIN(due_ns, state->qps[slot].due_ns);
        }
    }
    return due_ns;
}

/* ---- Reset and load. */

void iwarp_reset(struct iwarp *iwarp)
{
    const struct rdma_streams *streams = iwarp->streams;

    for (uint32_t slot = 0; streams != NULL && slot < RDMA_QPS; slot++) {
        const struct iwarp_qp *qp = iwarp_qp(iwarp, slot);

        if (qp->stage != IWARP_NO_STREAM) {
            streams->abort(streams->ctx, qp->attr.stream);
            streams->detach(streams->ctx, qp->attr.stream);
        }
    }
    memset(iwarp->state, 0, sizeof(*iwarp->state));
}

/* Of a queue pair without its stream, only a receive buffer in use matters:
 * it is flushed. */
static void forget_stream(struct iwarp_qp *qp)
{
    struct iwarp_receiver rx = {
        .in_send = qp->rx.in_send,
        .recv_wr_id = qp->rx.recv_wr_id,
    };

    memset(qp, 0, sizeof(*qp));
    qp->rx = rx;
}

/* What was loaded into a bool may be any byte. */
static bool is_truth_value(const bool *value)
{
    uint8_t byte;

    memcpy(&byte, value, sizeof(byte));
    return byte <= 1;
}

bool iwarp_reload(struct iwarp *iwarp)
{
    struct iwarp_state *state = iwarp->state;

    for (uint32_t slot = 0; slot < RDMA_QPS; slot++) {
        const struct iwarp_qp *qp = &state->qps[slot];

        if (qp->stage >= IWARP_STAGES || !is_truth_value(&qp->rx.in_send)) {
            return false;
        }
    }
    memset(state->links, 0, sizeof(state->links));
    state->first = state->last = state->count = 0;
    state->terminating = 0;
    for (uint32_t slot = 0; slot < RDMA_QPS; slot++) {
        forget_stream(&state->qps[slot]);
        if (iwarp_has_qp(iwarp, slot)) {
            iwarp_schedule(iwarp, slot);
        }
    }
    return true;
}
