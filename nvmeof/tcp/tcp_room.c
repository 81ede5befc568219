/* SPDX-License-Identifier: BSD-2-Clause */
/* Room for new connections. */
#include "nvmeof/tcp/tcp_state.h"

#include "nvmeof/target/make_room.h"

/* Whether there are as many connections as there may be.  Handshakes do not
 * count, and not those that end without waiting for their peers. */
static bool is_full(const struct nvme_tcp *tcp)
{
    unsigned int open = 0;

    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        open += tcp->queues[i].state > TCP_QUEUE_OPENING &&
                tcp->queues[i].state < TCP_QUEUE_ABORTING;
    }
    return open >= NVME_TCP_OPEN_MAX;
}

/* @return the connection that began to end first, of those whose peers have
 * all bytes and a FIN, and have not closed; or NULL */
static struct nvme_tcp_queue *find_closing(struct nvme_tcp *tcp)
{
    struct nvme_tcp_queue *found = NULL;

    for (unsigned int i = 0; i < NVME_TCP_QUEUES; i++) {
        struct nvme_tcp_queue *queue = &tcp->queues[i];

        if ((queue->state == TCP_QUEUE_ENDING ||
             queue->state == TCP_QUEUE_CLOSING) &&
            queue->was_closed &&
            (found == NULL || queue->ending_us < found->ending_us)) {
            found = queue;
        }
    }
    return found;
}

bool tcp_room_make(struct nvme_tcp *tcp, const uint8_t *host)
{
    while (is_full(tcp)) {
        struct nvme_tcp_queue *closing = find_closing(tcp);

        if (closing != NULL) {
            tcp_queue_abort(closing);
        } else if (nvmf_qpair_displace_tcp(tcp->config.target, host,
                                           tcp->now_us)) {
            tcp->counters[NVME_TCP_DISPLACED]++;
        } else {
            return false;
        }
    }
    return true;
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
