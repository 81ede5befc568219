/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of the NVMe/TCP queues, and the memory for data in capsules. */
#include "nvmeof/tcp/tcp_state.h"

#include "lib/bytes.h"
#include "nvmeof/tcp/tcp_sgl.h"
#include "nvmeof/wire/fabrics.h"
#include "nvmeof/wire/opcode.h"

static struct nvme_tcp_request *request_of(struct nvmf_transfer *nvmf)
{
    return nvmf->owner;
}

size_t nvme_tcp_request_bytes(void)
{
    return NVME_TCP_REQUESTS * nvmf_request_bytes();
}

void tcp_request_init(struct nvme_tcp *tcp)
{
    uint8_t *memory = tcp->config.requests;

    tcp->pool_free = NVME_TCP_POOL_SLOTS;
    for (uint16_t i = 0; i < NVME_TCP_POOL_SLOTS; i++) {
        tcp->free_slots[i] = (uint16_t)(NVME_TCP_POOL_SLOTS - 1 - i);
    }
    tcp->free_requests = NULL;
    for (uint32_t i = NVME_TCP_REQUESTS; i-- > 0;) {
        tcp->requests[i] = (struct nvme_tcp_request){
            .nvmf = nvmf_request_init(memory + i * nvmf_request_bytes(),
                                      tcp->config.first_request + i,
                                      &tcp->requests[i]),
            .next = tcp->free_requests,
        };
        tcp->free_requests = &tcp->requests[i];
    }
}

/* ---- Slots. */

static uint16_t slots_of_len(uint32_t data_len, enum nvme_tcp_spare spare)
{
    if (data_len > NVME_TCP_SLOT_LEN || spare != TCP_SPARE_NONE) {
        return 3;
    }
    return data_len != 0 ? 1 : 0;
}

/* @param shape  bits of the slots, from the first one on
 * @return bits of free ones; 0: there are too few */
static uint16_t find_slots(const struct nvme_tcp_queue *queue, uint16_t shape)
{
    unsigned int step = shape == 3 ? 2 : 1;

    for (unsigned int i = 0; i < NVME_TCP_SLOTS; i += step) {
        if (((unsigned int)queue->slots_used >> i & shape) == 0) {
            return (uint16_t)(shape << i);
        }
    }
    return 0;
}

static bool has_slot(const struct nvme_tcp_request *req)
{
    return req->slots != 0 || req->pool_slot != NVME_TCP_POOL_SLOTS;
}

uint8_t *tcp_request_slot(const struct nvme_tcp_request *req)
{
    const struct nvme_tcp *tcp = req->queue->tcp;
    unsigned int first = 0;

    if (req->pool_slot != NVME_TCP_POOL_SLOTS) {
        return tcp->config.memory + NVME_TCP_QUEUES * NVME_TCP_QUEUE_BYTES +
               (size_t)req->pool_slot * NVME_TCP_POOL_SLOT_LEN;
    }
    while ((req->slots & BIT(first)) == 0) {
        first++;
    }
    return req->queue->slots + (size_t)first * NVME_TCP_SLOT_LEN;
}

static void give_slots(struct nvme_tcp_request *req)
{
    struct nvme_tcp *tcp = req->queue->tcp;

    req->queue->slots_used &= (uint16_t)~req->slots;
    req->slots = 0;
    if (req->pool_slot != NVME_TCP_POOL_SLOTS) {
        tcp->free_slots[tcp->pool_free++] = req->pool_slot;
        req->pool_slot = NVME_TCP_POOL_SLOTS;
    }
}

/* Whether a command gets one of the slots that all queues share.  A connected
 * queue has one for each of its SQ entries. */
static bool is_for_pool(const struct nvme_tcp_queue *queue, uint32_t data_len,
                        enum nvme_tcp_spare spare)
{
    return (spare == TCP_SPARE_BLOCK ||
            (data_len != 0 && data_len <= NVME_TCP_SLOT_LEN)) &&
           queue->is_connected && queue->tcp->pool_free != 0;
}

/* ---- Requests. */

struct nvme_tcp_request *tcp_request_take(struct nvme_tcp_queue *queue,
                                          uint32_t data_len,
                                          enum nvme_tcp_spare spare)
{
    struct nvme_tcp *tcp = queue->tcp;
    struct nvme_tcp_request *req = tcp->free_requests;
    bool has_pool_slot = is_for_pool(queue, data_len, spare);
    uint16_t shape = has_pool_slot ? 0 : slots_of_len(data_len, spare);
    uint16_t slots = shape != 0 ? find_slots(queue, shape) : 0;

    if (req == NULL || (shape != 0 && slots == 0)) {
        return NULL;
    }
    tcp->free_requests = req->next;
    tcp->requests_used++;
    req->prev = NULL;
    req->next = queue->requests;
    if (req->next != NULL) {
        req->next->prev = req;
    }
    queue->requests = req;
    queue->in_use++;
    queue->slots_used |= slots;
    req->queue = queue;
    req->slots = slots;
    req->pool_slot = has_pool_slot ? tcp->free_slots[--tcp->pool_free]
                                   : (uint16_t)NVME_TCP_POOL_SLOTS;
    req->state = TCP_REQUEST_ARRIVING;
    req->received = 0;
    req->data_is_bad = false;
    return req;
}

static void give_request(struct nvme_tcp_request *req)
{
    struct nvme_tcp_queue *queue = req->queue;
    struct nvme_tcp *tcp = queue->tcp;

    give_slots(req);
    if (req->prev != NULL) {
        req->prev->next = req->next;
    } else {
        queue->requests = req->next;
    }
    if (req->next != NULL) {
        req->next->prev = req->prev;
    }
    queue->in_use--;
    req->queue = NULL;
    req->state = TCP_REQUEST_FREE;
    req->next = tcp->free_requests;
    tcp->free_requests = req;
    tcp->requests_used--;
}

/* ---- From the host. */

/* What Connect says takes effect when it is accepted. */
static void note_connect(struct nvme_tcp_queue *queue, const uint8_t *sqe)
{
    queue->event.qid = get_le16(sqe + CONNECT_QID);
    queue->has_flow_control =
        (sqe[CONNECT_CATTR] & CONNECT_CATTR_NO_SQ_FLOW_CONTROL) == 0;
}

void tcp_request_deliver(struct nvme_tcp_request *req, uint32_t data_len)
{
    struct nvme_tcp_queue *queue = req->queue;
    struct nvme_tcp *tcp = queue->tcp;
    const uint8_t *sqe = queue->reader.header + PDU_HEAD_LEN;
    struct nvmf_piece memory = {.handle = tcp->config.handle};
    struct nvmf_data data;

    if (has_slot(req)) {
        memory.ptr = tcp_request_slot(req);
        memory.len_bytes = data_len;
    }
    tcp_sgl_read(&data, sqe, &memory);
    if (req->data_is_bad) {
        data.status = NVME_SC_TRANSIENT_TRANSPORT;
    }
    if (has_slot(req) && data_len == 0) {
        memory.len_bytes =
            req->slots != 0 ? 2 * NVME_TCP_SLOT_LEN : NVME_TCP_POOL_SLOT_LEN;
        data.spare = memory;
    }
    req->cid = get_le16(sqe + SQE_CID);
    req->is_connect =
        sqe[SQE_OPCODE] == NVME_FABRICS && sqe[SQE_FCTYPE] == FABRICS_CONNECT;
    if (req->is_connect && !queue->is_connected) {
        note_connect(queue, sqe);
    }
    req->nvmf->arrived_ns = 0;
    req->nvmf->acknowledged_ns = 0;
    req->state = TCP_REQUEST_TARGET;
    nvmf_capsule(tcp->config.target, queue->number, req->nvmf, sqe, &data,
                 tcp->now_us);
}

void tcp_request_fetched(struct nvme_tcp_request *req)
{
    struct nvmf_target *target = req->queue->tcp->config.target;

    req->state = TCP_REQUEST_TARGET;
    if (req->data_is_bad) {
        nvmf_request_not_fetched(target, req->nvmf,
                                 NVME_SC_TRANSIENT_TRANSPORT);
    } else {
        nvmf_request_fetched(target, req->nvmf, true);
    }
}

/* ---- To the host. */

static void wait_for_turn(struct nvme_tcp_request *req,
                          enum nvme_tcp_request_state state)
{
    ASSERT(req->state == TCP_REQUEST_TARGET);
    req->state = (uint8_t)state;
    if (req->queue->state < TCP_QUEUE_CLOSING) {
        request_list_add(&req->queue->waiting, req);
    }
    tcp_queue_needs_step(req->queue);
}

void tcp_request_fetch(void *ctx, struct nvmf_transfer *nvmf)
{
    (void)ctx;
    wait_for_turn(request_of(nvmf), TCP_REQUEST_FETCH_ROOM);
}

void tcp_request_send(void *ctx, struct nvmf_transfer *nvmf)
{
    (void)ctx;
    wait_for_turn(request_of(nvmf), TCP_REQUEST_SEND_ROOM);
}

void tcp_request_respond(void *ctx, struct nvmf_transfer *nvmf)
{
    struct nvme_tcp_request *req = request_of(nvmf);
    struct nvme_tcp_queue *queue = req->queue;

    (void)ctx;
    queue->responding++;
    if (req->is_connect && !queue->is_connected &&
        get_le16(nvmf->cqe + CQE_STATUS) == 0) {
        tcp_queue_connected(queue);
    }
    if (nvmf->send_len == 0) {
        give_slots(req); /* another capsule may have them */
    }
    wait_for_turn(req, TCP_REQUEST_RESPOND_ROOM);
}

static void end_response(struct nvme_tcp_request *req)
{
    req->queue->responding--;
    nvmf_request_done(req->queue->tcp->config.target, req->nvmf);
}

void tcp_request_acknowledged(struct nvme_tcp_request *req)
{
    struct nvmf_target *target = req->queue->tcp->config.target;

    if (req->state == TCP_REQUEST_SENDING) {
        req->state = TCP_REQUEST_TARGET;
        nvmf_request_sent(target, req->nvmf, true);
    } else {
        ASSERT(req->state == TCP_REQUEST_RESPONDING);
        end_response(req);
        give_request(req);
    }
}

/* ---- The end of a queue. */

void tcp_request_fail_all(struct nvme_tcp_queue *queue)
{
    struct nvmf_target *target = queue->tcp->config.target;
    struct nvme_tcp_request *next;

    queue->waiting.first = NULL;
    queue->fetching.first = NULL;
    for (struct nvme_tcp_request *req = queue->requests;
         req != NULL && queue->qpair_state == TCP_QPAIR_DRAINING; req = next) {
        next = req->next;
        switch ((enum nvme_tcp_request_state)req->state) {
        case TCP_REQUEST_FETCH_ROOM:
        case TCP_REQUEST_FETCHING:
            req->state = TCP_REQUEST_TARGET;
            nvmf_request_fetched(target, req->nvmf, false);
            break;
        case TCP_REQUEST_SEND_ROOM:
        case TCP_REQUEST_SENDING:
            req->state = TCP_REQUEST_TARGET;
            nvmf_request_sent(target, req->nvmf, false);
            break;
        case TCP_REQUEST_RESPOND_ROOM:
        case TCP_REQUEST_RESPONDING:
            req->state = TCP_REQUEST_TARGET;
            end_response(req);
            break;
        case TCP_REQUEST_FREE:
        case TCP_REQUEST_ARRIVING:
        case TCP_REQUEST_TARGET:
            break;
        }
    }
}

void tcp_request_release_all(struct nvme_tcp_queue *queue)
{
    while (queue->requests != NULL) {
        give_request(queue->requests);
    }
}
