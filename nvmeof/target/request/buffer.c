/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data buffers of requests, and the requests that wait for some.
 *
 * Each owner (a controller) has its own queues, so that commands of one host do
 * not wait behind another host's.  struct nvmf_bufs decides how many buffers an
 * owner may have.
 *
 * A host that has proven no identity gets no more than the buffers that are
 * kept for its controller, and moves longer data in windows of NVMF_SHORT_LEN.
 * So it takes no shared buffer from hosts that have.
 */
#include "nvmeof/target/request/request.h"

/* Only an admin queue can be that of such a host: an I/O queue has no
 * controller before the proof, and a discovery controller has none. */
static bool is_before_proof(const struct nvmf_target *target,
                            const struct nvmf_request *req)
{
    return target->qpair[req->qpair].qid == 0 &&
           req->owner != NVMF_BUF_NO_CTRL &&
           !ctrl_is(&target->ctrl[req->owner], CTRL_IS_MEMBER);
}

/* How many bytes to ask for; 0 if the host has all that it gets. */
static uint32_t wanted_len(const struct nvmf_target *target,
                           const struct nvmf_request *req)
{
    if (__builtin_expect(!req->is_before_proof, 1)) {
        return req->data_len;
    }
    return target->ctrl[req->owner].bufs_before_proof < NVMF_UNPROVEN_BUFS
               ? MIN(req->data_len, NVMF_SHORT_LEN)
               : 0;
}

static bool take_buffers(struct nvmf_target *target, struct nvmf_request *req)
{
    uint32_t len;

    req->is_before_proof = is_before_proof(target, req);
    len = wanted_len(target, req);
    req->room_len = len != 0 ? target->bufs.get(target->bufs.ctx, req->owner,
                                                len, req->transfer.pieces,
                                                &req->transfer.piece_count)
                             : 0;
    if (req->room_len == 0) {
        return false;
    }
    req->owned_count = req->transfer.piece_count;
    req->owns_buffers = true;
    if (req->is_before_proof) {
        target->ctrl[req->owner].bufs_before_proof++;
    }
    return true;
}

static struct nvmf_queue *wait_queue(struct nvmf_target *target,
                                     const struct nvmf_request *req)
{
    return &target->wait_buffer
                .queue[req->owner][req->data_len <= NVMF_SHORT_LEN ? WAIT_SHORT
                                                                   : WAIT_LONG];
}

static void wait_for_buffers(struct nvmf_target *target,
                             struct nvmf_request *req)
{
    struct nvmf_buffer_wait *wait = &target->wait_buffer;

    request_enter(req, NVMF_REQUEST_WAIT_BUFFER);
    queue_push(wait_queue(target, req), req);
    wait->count++;
    if (!wait->is_listed[req->owner]) {
        wait->is_listed[req->owner] = true;
        wait->turn[(wait->first_turn + wait->turns++) % NVMF_BUF_OWNERS] =
            req->owner;
    }
}

/* Take buffers for a request, or put it into its owner's wait queue.  @return
 * whether it has buffers */
bool buffer_take(struct nvmf_target *target, struct nvmf_request *req)
{
    bool is_first =
        target->wait_buffer.count == 0 || wait_queue(target, req)->head == NULL;

    if (is_first && take_buffers(target, req)) {
        return true;
    }
    wait_for_buffers(target, req);
    return false;
}

/* Start as many requests of one queue as there are buffers for. */
static void serve_queue(struct nvmf_target *target, struct nvmf_queue *queue)
{
    struct nvmf_request *req;

    while ((req = queue->head) != NULL && take_buffers(target, req)) {
        queue_pop(queue);
        target->wait_buffer.count--;
        request_enter(req, NVMF_REQUEST_EXECUTING);
        request_start_window(target, req);
    }
}

/* Start this owner's waiting requests, within its share. */
static void serve_owner(struct nvmf_target *target, uint8_t owner)
{
    struct nvmf_queue *queue = target->wait_buffer.queue[owner];

    serve_queue(target, &queue[WAIT_SHORT]);
    serve_queue(target, &queue[WAIT_LONG]);
}

/*
 * Buffers of `owner` were returned: serve it, and the next one of the other
 * waiting owners.  That suffices, because every waiting owner holds buffers
 * whose return will serve it.  So a put() costs the same however many wait.
 */
static void serve_after_put(struct nvmf_target *target, uint8_t owner)
{
    struct nvmf_buffer_wait *wait = &target->wait_buffer;
    uint8_t other;

    if (wait->count == 0 || wait->is_served) {
        return; /* the serve_after_put() that is running will go on */
    }
    wait->is_served = true;
    serve_owner(target, owner);
    if (wait->turns != 0) {
        other = wait->turn[wait->first_turn];
        wait->first_turn = (uint16_t)((wait->first_turn + 1) % NVMF_BUF_OWNERS);
        serve_owner(target, other);
        if (wait->queue[other][WAIT_SHORT].head != NULL ||
            wait->queue[other][WAIT_LONG].head != NULL) {
            wait->turn[(wait->first_turn + wait->turns - 1) % NVMF_BUF_OWNERS] =
                other;
        } else {
            wait->is_listed[other] = false;
            wait->turns--;
        }
    }
    wait->is_served = false;
}

/* Return the request's buffers and serve waiting requests. */
void buffer_return(struct nvmf_target *target, struct nvmf_request *req)
{
    req->owns_buffers = false;
    if (__builtin_expect(req->is_before_proof, 0)) {
        target->ctrl[req->owner].bufs_before_proof--;
    }
    target->bufs.put(target->bufs.ctx, req->owner, req->transfer.pieces,
                     req->owned_count);
    req->transfer.piece_count = 0;
    serve_after_put(target, req->owner);
}

/* Take a request that waits for buffers out of its queue; NULL if none does. */
struct nvmf_request *buffer_take_waiter(struct nvmf_target *target,
                                        uint16_t qpair, bool any_cid,
                                        uint16_t cid)
{
    struct nvmf_buffer_wait *wait = &target->wait_buffer;
    const uint8_t owners[] = {target->qpair[qpair].ctrl, NVMF_BUF_NO_CTRL};

    for (size_t i = 0; i < ARRAY_LEN(owners) && wait->count != 0; i++) {
        for (unsigned int kind = 0; kind < WAIT_KINDS; kind++) {
            struct nvmf_request *req =
                queue_take(&wait->queue[owners[i]][kind], qpair, any_cid, cid);

            if (req != NULL) {
                wait->count--;
                return req;
            }
        }
    }
    return NULL;
}
