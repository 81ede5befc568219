/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Half-open connections: the drive has answered a request, and nothing proves
 * yet that the peer has received the answer.
 *
 * A connection request costs its sender one datagram, whose source address may
 * be forged, and the drive a queue pair until a time limit ends it.  So that
 * such requests cannot keep hosts out (those of iWARP are not half-open, since
 * TCP has proven their addresses; they count in the shares of addresses):
 *
 *  - One address has at most RDMA_HALF_OPEN_PER_HOST half-open connections.  A
 *    further request from there ends the oldest of them.
 *  - There are at most RDMA_HALF_OPEN_MAX of them.  Each may be from another
 *    address, and so take a neighbour, without which no host can connect.  A
 *    further request ends the oldest of them.
 *  - When the drive is full, a request ends the oldest of those half-open
 *    connections whose end makes room, if it is old or there are many.  A host
 *    that answers in time is not affected: its connection is one of the newest.
 *    While there are few, the drive is full of hosts, and a host that is
 *    connecting right now keeps its place.
 *
 * The peer's RTU or its first data prove that it received the answer, because
 * they need what only the answer says: communication id, QP number, starting
 * PSN.
 */
#include <string.h>

#include "nvmeof/rdma/rdma_state.h"
#include "nvmeof/target/make_room.h"

void rdma_half_open_init(struct rdma_transport *rdma)
{
    rdma->half_open.first = NULL;
    rdma->half_open.last = &rdma->half_open.first;
}

void rdma_half_open_add(struct rdma_queue *qp)
{
    struct rdma_half_open *list = &qp->rdma->half_open;

    ASSERT(!qp->is_half_open);
    if (qp->rdma->config.managers[qp->manager].qp_type == VERBS_QP_IW) {
        rdma_queue_confirm(qp);
        return;
    }
    qp->is_half_open = true;
    qp->requested_us = qp->rdma->now_us;
    qp->next_half_open = NULL;
    *list->last = qp;
    list->last = &qp->next_half_open;
}

static bool is_half_open(const struct rdma_queue *qp)
{
    return qp->state == RDMA_QUEUE_OPEN && !qp->is_proven;
}

/* Take queues out of the list that are proven now, or have ended.  @return how
 * many are left */
static uint32_t prune_list(struct rdma_half_open *list)
{
    struct rdma_queue **link = &list->first;
    uint32_t count = 0;

    while (*link != NULL) {
        struct rdma_queue *qp = *link;

        if (is_half_open(qp)) {
            link = &qp->next_half_open;
            count++;
        } else {
            qp->is_half_open = false;
            *link = qp->next_half_open;
        }
    }
    list->last = link;
    return count;
}

static void evict_queue(struct rdma_queue *qp)
{
    struct rdma_half_open *list = &qp->rdma->half_open;

    list->evicted++;
    rdma_queue_end_now(qp);
    (void)prune_list(list);
}

void rdma_half_open_limit(struct rdma_transport *rdma,
                          const struct rdma_cm_peer *peer)
{
    uint32_t total = prune_list(&rdma->half_open);
    struct rdma_queue *oldest = NULL;
    uint32_t count = 0;

    for (struct rdma_queue *qp = rdma->half_open.first; qp != NULL;
         qp = qp->next_half_open) {
        if (memcmp(qp->event.host, peer->bytes, sizeof(peer->bytes)) == 0) {
            count++;
            oldest = oldest == NULL ? qp : oldest;
        }
    }
    if (count >= RDMA_HALF_OPEN_PER_HOST) {
        evict_queue(oldest);
    } else if (total >= RDMA_HALF_OPEN_MAX) {
        evict_queue(rdma->half_open.first);
    }
}

bool rdma_half_open_evict(struct rdma_transport *rdma,
                          const struct nvmf_qpair_params *params)
{
    uint32_t count = prune_list(&rdma->half_open);
    struct rdma_queue *oldest = rdma->half_open.first;

    while (oldest != NULL && !nvmf_qpair_makes_room(rdma->config.target, params,
                                                    oldest->number)) {
        oldest = oldest->next_half_open;
    }
    if (oldest == NULL ||
        (count <= RDMA_HALF_OPEN_FEW &&
         rdma->now_us - oldest->requested_us < RDMA_HALF_OPEN_YOUNG_US)) {
        return false;
    }
    evict_queue(oldest);
    return true;
}
