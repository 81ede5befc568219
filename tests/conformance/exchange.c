/* SPDX-License-Identifier: BSD-2-Clause */
#include "exchange.h"

#include <string.h>

#include "lib/bytes.h"
#include "net/wire/cm_msg.h"
#include "net/wire/rdma_ip_cm.h"
#include "nvmeof/wire/rdma_private.h"

/* ---- Which queue pair is which queue. */

static void add_queue(struct exchange *exchange, const struct packet *packet)
{
    const uint8_t *private_data = packet->cm + CM_REQ_PRIVATE + RDMA_IP_CM_LEN;

    exchange->queue[exchange->queues++ % EXCHANGE_QUEUES] =
        (struct exchange_queue){
            .port = packet->port,
            .comm_id = get_be32(packet->cm + CM_REQ_LOCAL_COMM_ID),
            .host_qpn = get_be24(packet->cm + CM_REQ_LOCAL_QPN),
            .qid = get_le16(private_data + RDMA_REQ_QID),
        };
}

/* Find the queue that was added last of those that match. */
static struct exchange_queue *find_queue(
    struct exchange *exchange,
    bool (*matches)(const struct exchange_queue *queue, uint32_t value),
    unsigned int port, uint32_t value)
{
    uint32_t kept = MIN(exchange->queues, (uint32_t)EXCHANGE_QUEUES);

    for (uint32_t i = 1; i <= kept; i++) {
        struct exchange_queue *queue =
            &exchange->queue[(exchange->queues - i) % EXCHANGE_QUEUES];

        if (queue->port == port && matches(queue, value)) {
            return queue;
        }
    }
    return NULL;
}

static bool has_comm_id(const struct exchange_queue *queue, uint32_t value)
{
    return queue->comm_id == value;
}

static bool has_host_qpn(const struct exchange_queue *queue, uint32_t value)
{
    return queue->host_qpn == value;
}

static bool has_target_qpn(const struct exchange_queue *queue, uint32_t value)
{
    return queue->has_target_qpn && queue->target_qpn == value;
}

static void complete_queue(struct exchange *exchange,
                           const struct packet *packet)
{
    struct exchange_queue *queue =
        find_queue(exchange, has_comm_id, packet->port,
                   get_be32(packet->cm + CM_REP_REMOTE_COMM_ID));

    if (queue != NULL) {
        queue->target_qpn = get_be24(packet->cm + CM_REP_LOCAL_QPN);
        queue->has_target_qpn = true;
    }
}

static void add_cm_message(struct exchange *exchange,
                           const struct packet *packet, bool is_from_target)
{
    if (packet->mad.mgmt_class != MAD_CLASS_CM) {
        return;
    }
    if (!is_from_target && packet->mad.attribute_id == CM_REQ) {
        add_queue(exchange, packet);
    } else if (is_from_target && packet->mad.attribute_id == CM_REP) {
        complete_queue(exchange, packet);
    }
}

/* ---- Commands and completions. */

static void add_entry(struct exchange *exchange, const struct packet *packet,
                      const struct exchange_queue *queue, bool is_completion,
                      uint64_t wall_us)
{
    struct exchange_entry *entry =
        &exchange->entry[exchange->entries++ % EXCHANGE_ENTRIES];

    *entry = (struct exchange_entry){
        .time_us = packet->time_us,
        .wall_us = wall_us,
        .port = packet->port,
        .host_qpn = queue->host_qpn,
        .psn = packet->bth.psn,
        .qid = queue->qid,
        .is_completion = is_completion,
    };
    memcpy(entry->bytes, packet->data,
           is_completion ? (size_t)NVME_CQE_LEN : (size_t)NVME_SQE_LEN);
}

void exchange_add(struct exchange *exchange, const struct packet *packet,
                  bool is_from_target, uint64_t wall_us)
{
    const struct exchange_queue *queue;
    uint8_t opcode = packet->bth.opcode;

    if (packet->has_mad) {
        add_cm_message(exchange, packet, is_from_target);
        return;
    }
    if (!packet->has_bth || packet->damage != NULL ||
        !roce_opcode_is(opcode, ROCE_SEND) ||
        !roce_opcode_is(opcode, ROCE_FIRST | ROCE_ONLY)) {
        return;
    }
    queue = find_queue(exchange, is_from_target ? has_host_qpn : has_target_qpn,
                       packet->port, packet->bth.dest_qp);
    if (queue == NULL) {
        return;
    }
    if (is_from_target && packet->data_len == NVME_CQE_LEN) {
        add_entry(exchange, packet, queue, true, wall_us);
    } else if (!is_from_target && packet->data_len >= NVME_SQE_LEN) {
        add_entry(exchange, packet, queue, false, wall_us);
    }
}

uint32_t exchange_count(const struct exchange *exchange)
{
    return MIN(exchange->entries, (uint32_t)EXCHANGE_ENTRIES);
}

const struct exchange_entry *exchange_get(const struct exchange *exchange,
                                          uint32_t index)
{
    uint32_t first = exchange->entries - exchange_count(exchange);

    return &exchange->entry[(first + index) % EXCHANGE_ENTRIES];
}
