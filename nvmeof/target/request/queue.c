/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of requests that wait for something, first in, first out.
 */
#include "nvmeof/target/request/request.h"

void queue_push(struct nvmf_queue *queue, struct nvmf_request *req)
{
    if (queue->is_retrying) {
        /* The request was the head; its retry has failed, so it stays there. */
        req->next = queue->head;
        queue->head = req;
        queue->tail = queue->tail == NULL ? req : queue->tail;
        return;
    }
    req->next = NULL;
    if (queue->tail != NULL) {
        queue->tail->next = req;
    } else {
        queue->head = req;
    }
    queue->tail = req;
}

struct nvmf_request *queue_pop(struct nvmf_queue *queue)
{
    struct nvmf_request *req = queue->head;

    if (req != NULL) {
        queue->head = req->next;
        queue->tail = queue->head == NULL ? NULL : queue->tail;
    }
    return req;
}

struct nvmf_request *queue_take(struct nvmf_queue *queue, uint16_t qpair,
                                bool any_cid, uint16_t cid)
{
    struct nvmf_request *prev = NULL;

    for (struct nvmf_request *req = queue->head; req != NULL;
         prev = req, req = req->next) {
        if (req->qpair != qpair || (!any_cid && req->sqe.cid != cid)) {
            continue;
        }
        if (prev != NULL) {
            prev->next = req->next;
        } else {
            queue->head = req->next;
        }
        if (queue->tail == req) {
            queue->tail = prev;
        }
        return req;
    }
    return NULL;
}
