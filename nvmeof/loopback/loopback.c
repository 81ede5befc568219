/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/loopback/loopback.h"

#include <string.h>

#include "nvmeof/wire/identify.h"

static struct loopback_request *request_of(struct nvmf_transfer *nvmf)
{
    return nvmf->owner;
}

static struct loopback_queue *queue_of(const struct loopback *loopback,
                                       uint16_t number)
{
    ASSERT(number < loopback->config.queue_count);
    return &loopback->config.queues[number];
}

/* The request that has been in this state for the longest time, or NULL. */
static struct loopback_request *oldest_request(
    struct loopback_queue *queue, enum loopback_request_state state)
{
    struct loopback_request *oldest = NULL;

    for (size_t i = 0; i < ARRAY_LEN(queue->requests); i++) {
        struct loopback_request *req = &queue->requests[i];

        if (req->state == state &&
            (oldest == NULL || (int32_t)(req->order - oldest->order) < 0)) {
            oldest = req;
        }
    }
    return oldest;
}

/* ---- The transport seam. */

static void loopback_fetch(void *ctx, struct nvmf_transfer *nvmf)
{
    struct loopback_request *req = request_of(nvmf);

    (void)ctx;
    ASSERT(req->state == LOOPBACK_REQUEST_TARGET);
    req->state = LOOPBACK_REQUEST_FETCHING;
    req->order = req->queue->next_order++;
}

static void loopback_send_window(void *ctx, struct nvmf_transfer *nvmf)
{
    struct loopback_request *req = request_of(nvmf);

    (void)ctx;
    ASSERT(req->state == LOOPBACK_REQUEST_TARGET);
    req->state = LOOPBACK_REQUEST_SENDING;
    req->order = req->queue->next_order++;
}

static void loopback_respond(void *ctx, struct nvmf_transfer *nvmf)
{
    struct loopback_request *req = request_of(nvmf);

    (void)ctx;
    ASSERT(req->state == LOOPBACK_REQUEST_TARGET);
    req->state = LOOPBACK_REQUEST_RESPONDING;
    req->order = req->queue->next_order++;
}

static struct loopback_queue *queue_of_qpair(const struct loopback *loopback,
                                             uint16_t qpair)
{
    return queue_of(loopback, loopback->by_qpair[qpair]);
}

static void loopback_disconnect(void *ctx, uint16_t qpair)
{
    struct loopback_queue *queue = queue_of_qpair(ctx, qpair);

    queue->state = queue->state == LOOPBACK_QUEUE_OPEN ? LOOPBACK_QUEUE_ENDING
                                                       : LOOPBACK_QUEUE_FAILED;
}

/* The target no longer uses the queue.  The host can still receive completions
 * from it. */
static void queue_ended(struct loopback_queue *queue)
{
    queue->state =
        queue->is_closed ? LOOPBACK_QUEUE_FREE : LOOPBACK_QUEUE_ENDED;
    for (size_t i = 0; i < ARRAY_LEN(queue->requests); i++) {
        struct loopback_request *req = &queue->requests[i];

        if (queue->is_closed || req->state != LOOPBACK_REQUEST_DONE) {
            req->state = LOOPBACK_REQUEST_FREE;
        }
    }
}

static void loopback_drained(void *ctx, uint16_t qpair)
{
    struct loopback_queue *queue = queue_of_qpair(ctx, qpair);

    ASSERT(queue->state == LOOPBACK_QUEUE_DRAINING);
    queue_ended(queue);
}

/* ---- What loopback_step() does for one queue. */

/* Complete every fetch, send and response that the target waits for as failed:
 * the host's data must not be accessed any more. */
static void fail_requests(struct loopback_queue *queue)
{
    struct nvmf_target *target = queue->loopback->config.target;
    struct loopback_request *req;

    while (queue->state == LOOPBACK_QUEUE_DRAINING &&
           (req = oldest_request(queue, LOOPBACK_REQUEST_FETCHING)) != NULL) {
        req->state = LOOPBACK_REQUEST_TARGET;
        nvmf_request_fetched(target, req->nvmf, false);
    }
    while (queue->state == LOOPBACK_QUEUE_DRAINING &&
           (req = oldest_request(queue, LOOPBACK_REQUEST_SENDING)) != NULL) {
        req->state = LOOPBACK_REQUEST_TARGET;
        nvmf_request_sent(target, req->nvmf, false);
    }
    while (queue->state == LOOPBACK_QUEUE_DRAINING &&
           (req = oldest_request(queue, LOOPBACK_REQUEST_RESPONDING)) != NULL) {
        req->state = LOOPBACK_REQUEST_TARGET;
        nvmf_request_done(target, req->nvmf);
    }
}

static void end_queue(struct loopback_queue *queue)
{
    queue->state = LOOPBACK_QUEUE_DRAINING;
    if (nvmf_qpair_closed(queue->loopback->config.target, queue->qpair)) {
        queue_ended(queue);
    } else {
        fail_requests(queue);
    }
}

static void deliver_command(struct loopback_request *req)
{
    struct loopback *loopback = req->queue->loopback;
    const struct nvmf_data data = {.len_bytes = req->len_bytes};

    req->state = LOOPBACK_REQUEST_TARGET;
    nvmf_capsule(loopback->config.target, req->queue->qpair, req->nvmf,
                 req->sqe, &data, loopback->now_us);
}

static void deliver_data(struct loopback_request *req)
{
    struct nvmf_transfer *nvmf = req->nvmf;
    const uint8_t *from = req->data + nvmf->data_offset;
    uint32_t done = 0;

    ASSERT(nvmf->data_offset + nvmf->fetch_len <= req->len_bytes);
    for (uint8_t i = 0; done < nvmf->fetch_len; i++) {
        uint32_t len = MIN(nvmf->pieces[i].len_bytes, nvmf->fetch_len - done);

        memcpy(nvmf->pieces[i].ptr, from + done, len);
        done += len;
    }
    req->state = LOOPBACK_REQUEST_TARGET;
    nvmf_request_fetched(req->queue->loopback->config.target, nvmf, true);
}

/* Copy the data that the target sends in one window to the host. */
static void copy_to_host(const struct loopback_request *req)
{
    const struct nvmf_transfer *nvmf = req->nvmf;
    uint32_t done = 0;

    if (nvmf->send_len == 0) {
        return;
    }
    ASSERT(nvmf->data_offset + nvmf->send_len <= req->len_bytes);
    for (uint8_t i = 0; done < nvmf->send_len; i++) {
        uint32_t len = MIN(nvmf->pieces[i].len_bytes, nvmf->send_len - done);

        memcpy(req->data + nvmf->data_offset + done, nvmf->pieces[i].ptr, len);
        done += len;
    }
}

static void deliver_window(struct loopback_request *req)
{
    copy_to_host(req);
    req->state = LOOPBACK_REQUEST_TARGET;
    nvmf_request_sent(req->queue->loopback->config.target, req->nvmf, true);
}

static void deliver_response(struct loopback_request *req)
{
    struct nvmf_transfer *nvmf = req->nvmf;

    copy_to_host(req);
    memcpy(req->cqe, nvmf->cqe, sizeof(req->cqe));
    req->state = LOOPBACK_REQUEST_DONE;
    nvmf_request_done(req->queue->loopback->config.target, nvmf);
}

/* @return whether anything was moved */
static bool deliver_all(struct loopback_queue *queue)
{
    struct loopback_request *req;
    bool is_busy = false;

    while (queue->state == LOOPBACK_QUEUE_OPEN &&
           (req = oldest_request(queue, LOOPBACK_REQUEST_SENT)) != NULL) {
        deliver_command(req);
        is_busy = true;
    }
    while (queue->state == LOOPBACK_QUEUE_OPEN &&
           (req = oldest_request(queue, LOOPBACK_REQUEST_FETCHING)) != NULL) {
        deliver_data(req);
        is_busy = true;
    }
    while (queue->state == LOOPBACK_QUEUE_OPEN &&
           (req = oldest_request(queue, LOOPBACK_REQUEST_SENDING)) != NULL) {
        deliver_window(req);
        is_busy = true;
    }
    while ((queue->state == LOOPBACK_QUEUE_OPEN ||
            queue->state == LOOPBACK_QUEUE_ENDING) &&
           (req = oldest_request(queue, LOOPBACK_REQUEST_RESPONDING)) != NULL) {
        deliver_response(req);
        is_busy = true;
    }
    return is_busy;
}

static bool step_queue(struct loopback_queue *queue)
{
    bool is_busy = false;

    switch ((enum loopback_queue_state)queue->state) {
    case LOOPBACK_QUEUE_OPENING:
        queue->state = LOOPBACK_QUEUE_OPEN;
        nvmf_qpair_open(queue->loopback->config.target, queue->qpair,
                        queue->loopback->now_us);
        is_busy = true;
        break;
    case LOOPBACK_QUEUE_OPEN:
    case LOOPBACK_QUEUE_ENDING:
        is_busy = deliver_all(queue);
        break;
    case LOOPBACK_QUEUE_FREE:
    case LOOPBACK_QUEUE_FAILED:
    case LOOPBACK_QUEUE_DRAINING:
    case LOOPBACK_QUEUE_ENDED:
        break;
    }
    if (queue->state == LOOPBACK_QUEUE_ENDING ||
        queue->state == LOOPBACK_QUEUE_FAILED) {
        end_queue(queue);
        is_busy = true;
    }
    return is_busy;
}

bool loopback_step(struct loopback *loopback, uint64_t now_us)
{
    bool is_busy = false;

    loopback->now_us = now_us;
    for (uint16_t i = 0; i < loopback->config.queue_count; i++) {
        is_busy |= step_queue(&loopback->config.queues[i]);
    }
    return is_busy;
}

/* ---- For the host. */

size_t loopback_request_bytes(uint16_t queue_count)
{
    return queue_count * NVMF_MAX_DEPTH * nvmf_request_bytes();
}

static void init_requests(struct loopback *loopback, uint16_t queue)
{
    uint8_t *memory = loopback->config.requests;
    struct loopback_request *requests = loopback->config.queues[queue].requests;

    memory += loopback_request_bytes(queue);
    for (uint32_t i = 0; i < NVMF_MAX_DEPTH; i++) {
        requests[i].nvmf = nvmf_request_init(memory + i * nvmf_request_bytes(),
                                             0, &requests[i]);
    }
}

void loopback_init(struct loopback *loopback,
                   const struct loopback_config *config)
{
    ASSERT(config->queue_count >= 1 && config->queue_count <= NVMF_MAX_QPAIRS);
    *loopback = (struct loopback){
        .config = *config,
        .transport =
            {
                .ctx = loopback,
                .trtype = TRTYPE_INTRA_HOST,
                .sgls = SGLS_SUPPORTED,
                .fetch = loopback_fetch,
                .send = loopback_send_window,
                .respond = loopback_respond,
                .disconnect = loopback_disconnect,
                .drained = loopback_drained,
            },
    };
    for (uint16_t i = 0; i < config->queue_count; i++) {
        config->queues[i].state = LOOPBACK_QUEUE_FREE;
    }
}

static uint16_t find_free_queue(const struct loopback *loopback)
{
    for (uint16_t i = 0; i < loopback->config.queue_count; i++) {
        if (loopback->config.queues[i].state == LOOPBACK_QUEUE_FREE) {
            return i;
        }
    }
    return LOOPBACK_NO_QUEUE;
}

bool loopback_open(struct loopback *loopback, uint16_t *number)
{
    const struct nvmf_qpair_params params = {
        .transport = &loopback->transport,
        .portid = loopback->config.portid,
    };
    struct loopback_queue *queue;
    uint16_t qpair;

    *number = find_free_queue(loopback);
    if (*number == LOOPBACK_NO_QUEUE ||
        nvmf_qpair_reserve(loopback->config.target, &params, &qpair) !=
            NVMF_RESERVE_OK) {
        return false;
    }
    queue = queue_of(loopback, *number);
    memset(queue, 0, sizeof(*queue));
    queue->loopback = loopback;
    queue->qpair = qpair;
    queue->state = LOOPBACK_QUEUE_OPENING;
    init_requests(loopback, *number);
    loopback->by_qpair[qpair] = *number;
    return true;
}

bool loopback_is_open(const struct loopback *loopback, uint16_t number)
{
    const struct loopback_queue *queue = queue_of(loopback, number);

    return queue->state == LOOPBACK_QUEUE_OPENING ||
           queue->state == LOOPBACK_QUEUE_OPEN;
}

/* @return NULL when as many are in use as the queue may have */
static struct loopback_request *take_request(struct loopback_queue *queue)
{
    uint16_t depth =
        nvmf_qpair_depth(queue->loopback->config.target, queue->qpair);
    struct loopback_request *unused = NULL;
    uint16_t used = 0;

    for (size_t i = 0; i < ARRAY_LEN(queue->requests); i++) {
        if (queue->requests[i].state == LOOPBACK_REQUEST_FREE) {
            unused = &queue->requests[i];
        } else {
            used++;
        }
    }
    return used < depth ? unused : NULL;
}

bool loopback_send(struct loopback *loopback, uint16_t number,
                   const uint8_t *sqe, void *data, uint32_t len_bytes)
{
    struct loopback_queue *queue = queue_of(loopback, number);
    struct loopback_request *req;

    if (!loopback_is_open(loopback, number)) {
        return false;
    }
    req = take_request(queue);
    if (req == NULL) {
        return false;
    }
    req->queue = queue;
    req->state = LOOPBACK_REQUEST_SENT;
    req->order = queue->next_order++;
    memcpy(req->sqe, sqe, sizeof(req->sqe));
    req->data = data;
    req->len_bytes = len_bytes;
    return true;
}

bool loopback_receive(struct loopback *loopback, uint16_t number, uint8_t *cqe)
{
    struct loopback_request *req =
        oldest_request(queue_of(loopback, number), LOOPBACK_REQUEST_DONE);

    if (req == NULL) {
        return false;
    }
    memcpy(cqe, req->cqe, sizeof(req->cqe));
    req->state = LOOPBACK_REQUEST_FREE;
    return true;
}

void loopback_close(struct loopback *loopback, uint16_t number)
{
    struct loopback_queue *queue = queue_of(loopback, number);

    ASSERT(queue->state != LOOPBACK_QUEUE_FREE && !queue->is_closed);
    queue->is_closed = true;
    switch ((enum loopback_queue_state)queue->state) {
    case LOOPBACK_QUEUE_OPENING:
    case LOOPBACK_QUEUE_OPEN:
    case LOOPBACK_QUEUE_ENDING:
        queue->state = LOOPBACK_QUEUE_FAILED;
        break;
    case LOOPBACK_QUEUE_ENDED:
        queue_ended(queue);
        break;
    case LOOPBACK_QUEUE_FREE:
    case LOOPBACK_QUEUE_FAILED:
    case LOOPBACK_QUEUE_DRAINING:
        break;
    }
}

uint16_t loopback_queues_used(const struct loopback *loopback)
{
    uint16_t used = 0;

    for (uint16_t i = 0; i < loopback->config.queue_count; i++) {
        if (loopback->config.queues[i].state != LOOPBACK_QUEUE_FREE) {
            used++;
        }
    }
    return used;
}
