/* SPDX-License-Identifier: BSD-2-Clause */
/* Room for new connections. */
#include "nvmeof/tcp/tcp_state.h"

#include <string.h>

#include "nvmeof/target/make_room.h"

enum { WAITING_OF_ADDRESS = 4 };

/* Whether a connection is one of those that a transport counts. */
static bool is_counted(const struct nvme_tcp_queue *queue,
                       const struct nvmf_transport *transport)
{
    return queue->is_behind_tls || transport->within == NULL;
}

/* Whether there are as many connections as there may be, with those that wait
 * for numbers.  Handshakes do not count, and not those that end without waiting
 * for their peers. */
static bool is_full(const struct nvme_tcp *tcp,
                    const struct nvmf_transport *transport)
{
    unsigned int open = 0;

    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        const struct nvme_tcp_queue *queue = &tcp->queues[i];

        open += (queue->state > TCP_QUEUE_OPENING || queue->awaits_number) &&
                queue->state < TCP_QUEUE_ABORTING &&
                is_counted(queue, transport);
    }
    return open >= transport->max_qpairs;
}

/* @return the connection that began to end first, of those whose FIN is ordered
 * and whose peers have not closed; or NULL.  A plain one's peer has all bytes;
 * behind TLS the last bytes may still be under way, because a record counts as
 * sent once it is sealed.  To lose them is better than to end a connection that
 * is in use. */
static struct nvme_tcp_queue *find_closing(
    struct nvme_tcp *tcp, const struct nvmf_transport *transport)
{
    struct nvme_tcp_queue *found = NULL;

    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        struct nvme_tcp_queue *queue = &tcp->queues[i];

        if ((queue->state == TCP_QUEUE_ENDING ||
             queue->state == TCP_QUEUE_CLOSING) &&
            queue->was_closed && is_counted(queue, transport) &&
            (found == NULL || queue->ending_us < found->ending_us)) {
            found = queue;
        }
    }
    return found;
}

static bool make_room(struct nvme_tcp *tcp,
                      const struct nvmf_transport *transport,
                      const uint8_t *host)
{
    while (is_full(tcp, transport)) {
        struct nvme_tcp_queue *closing = find_closing(tcp, transport);

        if (closing != NULL) {
            tcp_queue_abort(closing);
        } else if (nvmf_qpair_displace_tcp(tcp->config.target, transport, host,
                                           tcp->now_us)) {
            tcp->counters[NVME_TCP_DISPLACED]++;
        } else {
            return false;
        }
    }
    return true;
}

/* Whether as many connections of the address wait as may.  They have no queue
 * pairs yet, so its share does not say how many others had to go for them. */
static bool has_waiting(const struct nvme_tcp *tcp, const uint8_t *host)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < NVME_TCP_QUEUES && tcp->awaiting != 0; i++) {
        const struct nvme_tcp_queue *queue = &tcp->queues[i];

        count += queue->awaits_number &&
                 memcmp(queue->event.host, host, NVMF_ADDRESS_LEN) == 0;
    }
    return count >= WAITING_OF_ADDRESS;
}

bool tcp_room_make(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp *tcp = queue->tcp;

    return !has_waiting(tcp, queue->event.host) &&
           (!queue->is_behind_tls ||
            make_room(tcp, &tcp->behind_tls, queue->event.host)) &&
           make_room(tcp, &tcp->transport, queue->event.host);
}

bool nvme_tcp_has_room_behind_tls(struct nvme_tcp *tcp)
{
    return !is_full(tcp, &tcp->behind_tls) ||
           find_closing(tcp, &tcp->behind_tls) != NULL ||
           nvmf_qpair_may_displace_tcp(tcp->config.target, &tcp->behind_tls);
}

struct nvme_tcp_queue *tcp_room_take(struct nvme_tcp *tcp)
{
    struct nvme_tcp_queue *queue = tcp->queues;

    if (tcp->queues_used == NVME_TCP_QUEUES) {
        return NULL;
    }
    while (queue->state != TCP_QUEUE_FREE) {
        queue++;
    }
    return queue;
}

/* ---- Numbers of queue pairs. */

static struct nvmf_qpair_params params_of(const struct nvme_tcp_queue *queue)
{
    const struct nvme_tcp *tcp = queue->tcp;
    uint8_t laddr = queue->event.laddr;
    struct nvmf_qpair_params params = {
        .transport = queue->is_behind_tls ? &tcp->behind_tls : &tcp->transport,
    };

    if (laddr < NVMF_MAX_ADDRESSES) {
        params.portid = tcp->config.portid[laddr];
        params.link = tcp->config.link[laddr];
    }
    memcpy(params.host, queue->event.host, sizeof(params.host));
    return params;
}

static bool has_number(struct nvme_tcp_queue *queue)
{
    const struct nvmf_qpair_params params = params_of(queue);

    return nvmf_qpair_reserve(queue->tcp->config.target, &params,
                              &queue->number) == NVMF_RESERVE_OK;
}

bool tcp_room_reserve(struct nvme_tcp_queue *queue)
{
    struct nvme_tcp *tcp = queue->tcp;
    const struct nvmf_qpair_params params = params_of(queue);
    uint16_t other;

    if (has_number(queue)) {
        return true;
    }
    if (nvmf_qpair_numbers_expected(tcp->config.target) > tcp->awaiting ||
        nvmf_qpair_displace(tcp->config.target, &params, tcp->now_us, &other) !=
            NVMF_ROOM_NONE) {
        queue->awaits_number = true;
        queue->since_us = tcp->now_us;
        tcp->awaiting++;
    }
    return false;
}

static struct nvme_tcp_queue *first_waiting(struct nvme_tcp *tcp)
{
    struct nvme_tcp_queue *first = NULL;

    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        struct nvme_tcp_queue *queue = &tcp->queues[i];

        if (queue->awaits_number &&
            (first == NULL || queue->since_us < first->since_us)) {
            first = queue;
        }
    }
    return first;
}

void tcp_room_serve(struct nvme_tcp *tcp)
{
    struct nvme_tcp_queue *queue;

    while (tcp->awaiting != 0 && has_number(queue = first_waiting(tcp))) {
        tcp_queue_open(queue);
    }
}
