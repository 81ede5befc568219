/* SPDX-License-Identifier: BSD-2-Clause */
/* The NVMe/TCP transport as the main loop sees it, nvmeof/binding.h, and what
 * it tells of itself. */
#include "nvmeof/tcp/tcp_state.h"

static void binding_tick(void *ctx, uint64_t now_us)
{
    struct nvme_tcp *tcp = ctx;

    tcp->now_us = now_us;
    tcp->bytes_left = NVME_TCP_TURN_BYTES;
}

static bool binding_step(void *ctx)
{
    return nvme_tcp_step(ctx);
}

static uint64_t binding_watch(void *ctx)
{
    return nvme_tcp_watch(ctx);
}

/* Entries of the socket wake the loop by themselves. */
static enum nvmf_turn binding_needs_turn(const void *ctx)
{
    (void)ctx;
    return NVMF_TURN_NOT_NEEDED;
}

static void binding_set_address(void *ctx, uint8_t service, uint8_t laddr,
                                uint16_t portid, uint32_t link)
{
    struct nvme_tcp *tcp = ctx;

    (void)service;
    ASSERT(laddr < NVMF_MAX_ADDRESSES);
    tcp->config.portid[laddr] = portid;
    tcp->config.link[laddr] = link;
    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        if (tcp->queues[i].event.laddr == laddr) {
            tcp_queue_abort(&tcp->queues[i]);
        }
    }
}

static const struct nvmf_transfer *binding_request(const void *ctx,
                                                   uint32_t number)
{
    const struct nvme_tcp *tcp = ctx;

    ASSERT(number < NVME_TCP_REQUESTS);
    return tcp->requests[number].nvmf;
}

static const struct nvmf_binding_ops binding_ops = {
    .tick = binding_tick,
    .step = binding_step,
    .watch = binding_watch,
    .needs_turn = binding_needs_turn,
    .set_address = binding_set_address,
    .request = binding_request,
};

struct nvmf_binding nvme_tcp_binding(struct nvme_tcp *tcp)
{
    return (struct nvmf_binding){
        .ops = &binding_ops,
        .ctx = tcp,
        .services = 1,
        .requests = NVME_TCP_REQUESTS,
    };
}

/* ---- What it tells. */

struct nvme_tcp_usage nvme_tcp_usage(const struct nvme_tcp *tcp)
{
    return (struct nvme_tcp_usage){
        .connections = tcp->queues_used,
        .qpairs = tcp->qpairs_used,
        .requests = tcp->requests_used,
        .slots = NVME_TCP_POOL_SLOTS - tcp->pool_free,
    };
}

static const struct nvme_tcp_queue *find_queue(const struct nvme_tcp *tcp,
                                               uint32_t id)
{
    for (size_t i = 0; i < NVME_TCP_QUEUES; i++) {
        if (tcp->queues[i].state != TCP_QUEUE_FREE && tcp->queues[i].id == id) {
            return &tcp->queues[i];
        }
    }
    return NULL;
}

bool nvme_tcp_describe(const struct nvme_tcp *tcp, uint32_t id,
                       struct nvme_tcp_details *details)
{
    const struct nvme_tcp_queue *queue = find_queue(tcp, id);

    if (queue == NULL) {
        return false;
    }
    *details = (struct nvme_tcp_details){
        .is_connected = queue->is_connected,
        .qid = queue->qid,
        .has_header_digest = queue->rules.has_header_digest,
        .has_data_digest = queue->rules.has_data_digest,
        .commands = (uint16_t)(queue->in_use - queue->responding),
        .responses = queue->responding,
        .is_waiting = queue->reader.state == TCP_READ_WAIT,
        .digest_errors = queue->digest_errors,
    };
    for (const struct nvme_tcp_request *req = queue->fetching.first;
         req != NULL; req = req->next_listed) {
        details->r2ts++;
    }
    return true;
}

uint64_t nvme_tcp_counter(const struct nvme_tcp *tcp,
                          enum nvme_tcp_counter counter)
{
    return tcp->counters[counter];
}
