/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion notification packets (CNPs): we send them for marked packets, and
 * received ones slow down our queue pairs.
 * Spec: IBTA annex A17.9 (congestion management), A17.9.3 (CNP format): BTH
 * with BECN, no PSN, and 16 bytes of zero; RFC 3168 (the marks).
 *
 * CNPs are not acknowledged; one that cannot be sent at once is dropped.
 */
#include "net/roce/internal.h"

enum { CNP_ECN = 2 }; /* ECT(0), as ConnectX-4 Lx sends them */

void roce_marked(struct roce *roce, uint32_t slot, const struct roce_rx *rx)
{
    struct roce_qp *qp = roce_qp(roce, slot);

    roce_count(roce, ROCE_NP_ECN_MARKED);
    if (!roce->state->ecn.is_answered || !(rx->flags & ROCE_HAS_PAYLOAD) ||
        (rx->flags & ROCE_DETH) || roce->now_ns < qp->cnp_next_ns) {
        return;
    }
    qp->cnp_next_ns = roce->now_ns + DCQCN_CNP_NS;
    qp->cnp_wanted = true;
    roce_schedule(roce, slot, ROCE_LIST_CONTROL);
}

static bool may_leave(const struct roce *roce, unsigned int port, uint8_t state)
{
    const uint8_t *paused = roce->sinks[port].paused;

    return (state == VERBS_QPS_RTR || state == VERBS_QPS_RTS) &&
           (paused == NULL || !(*paused >> roce->state->ecn.cnp_priority & 1));
}

bool roce_cnp_build(struct roce *roce, uint32_t slot, struct frame_tx *tx,
                    struct roce_note *note)
{
    static const uint8_t reserved[ROCE_CNP_RESERVED];
    const struct roce_state *state = roce->state;
    struct roce_qp *qp = roce_qp(roce, slot);
    struct bth bth = {
        .opcode = CNP_NOTIFY,
        .becn = true,
        .pkey = BTH_PKEY_DEFAULT,
        .dest_qp = qp->path.dest_qpn,
    };
    struct roce_route route;

    qp->cnp_wanted = false;
    if (!may_leave(roce, roce->objects->neighs[qp->path.neigh].port,
                   roce->objects->qps[slot].state)) {
        return false;
    }
    roce_route_of(qp, &route);
    route.priority = state->ecn.cnp_priority;
    route.dscp = state->ecn.cnp_dscp;
    route.ecn = CNP_ECN;
    if (roce_packet_begin(roce->objects, &route, &bth, sizeof(reserved), tx) ==
        NULL) {
        return false;
    }
    roce_packet_add(tx, reserved, sizeof(reserved));
    roce_packet_end(&bth, tx);
    *note = (struct roce_note){.slot = (uint16_t)slot, .kind = ROCE_NOTE_CNP};
    return true;
}

void roce_cnp_rx(struct roce *roce, uint32_t slot)
{
    struct roce_state *state = roce->state;

    roce_trace(roce, TRACE_GROUP_ROCE, slot, TRACE_CNP_RECEIVED, 0, 0, 0);
    if (!state->ecn.is_obeyed ||
        roce->objects->qps[slot].state != VERBS_QPS_RTS) {
        return;
    }
    roce_count(roce, ROCE_RP_CNP_HANDLED);
    dcqcn_cnp(&state->qps[slot].dcqcn, roce_line_kbps(roce), roce->now_ns);
}
