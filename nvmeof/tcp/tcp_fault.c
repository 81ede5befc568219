/* SPDX-License-Identifier: BSD-2-Clause */
/* Fault rules for PDUs.  Without rules each PDU costs two loads and a branch.
 */
#include "nvmeof/tcp/tcp_fault.h"

#include <string.h>

#include "nvmeof/tcp/tcp_state.h"

static bool queue_matches(const struct nvme_tcp_fault *fault, uint16_t qid)
{
    switch ((enum nvmf_fault_queue)fault->queue) {
    case NVMF_FAULT_ADMIN_QUEUE:
        return qid == 0;
    case NVMF_FAULT_IO_QUEUE:
        return qid != 0;
    case NVMF_FAULT_QID:
        return qid == fault->qid;
    case NVMF_FAULT_ANY_QUEUE:
    case NVMF_FAULT_QUEUES:
        break;
    }
    return true;
}

static bool has_digest(const struct tcp_pdu_head *head, uint8_t action)
{
    switch ((enum nvme_tcp_fault_action)action) {
    case NVME_TCP_FAULT_HEADER_DIGEST:
        return head->has_header_digest;
    case NVME_TCP_FAULT_DATA_DIGEST:
        return head->has_data_digest && head->pdo != 0;
    case NVME_TCP_FAULT_RESET:
    case NVME_TCP_FAULT_NONE:
        break;
    }
    return true;
}

enum nvme_tcp_fault_action tcp_fault_event_now(struct nvme_tcp_queue *queue,
                                               bool is_sent,
                                               const struct tcp_pdu_head *head)
{
    struct nvme_tcp_faults *faults = queue->tcp->config.faults;

    for (uint16_t i = 0; i < faults->count; i++) {
        struct nvme_tcp_fault *fault = &faults->list[i];

        if (!fault->is_off && (is_sent ? fault->is_out : fault->is_in) &&
            (fault->type == NVME_TCP_FAULT_ANY || fault->type == head->type) &&
            queue_matches(fault, queue->qid) &&
            has_digest(head, fault->action) &&
            fault_trigger_event(&fault->trigger)) {
            return (enum nvme_tcp_fault_action)fault->action;
        }
    }
    return NVME_TCP_FAULT_NONE;
}

/* ---- The table. */

static struct nvme_tcp_fault *find_fault(struct nvme_tcp_faults *faults,
                                         uint32_t id)
{
    for (uint16_t i = 0; i < faults->count; i++) {
        if (faults->list[i].id == id) {
            return &faults->list[i];
        }
    }
    return NULL;
}

bool nvme_tcp_fault_add(struct nvme_tcp_faults *faults,
                        const struct nvme_tcp_fault *fault)
{
    if (fault->id == 0 || faults->count == NVME_TCP_FAULTS ||
        find_fault(faults, fault->id) != NULL) {
        return false;
    }
    faults->list[faults->count++] = *fault;
    return true;
}

bool nvme_tcp_fault_remove(struct nvme_tcp_faults *faults, uint32_t id)
{
    struct nvme_tcp_fault *fault = find_fault(faults, id);

    if (fault == NULL) {
        return false;
    }
    faults->count--;
    memmove(fault, fault + 1,
            (size_t)(&faults->list[faults->count] - fault) * sizeof(*fault));
    return true;
}

bool nvme_tcp_fault_turn(struct nvme_tcp_faults *faults, uint32_t id,
                         bool is_on)
{
    struct nvme_tcp_fault *fault = find_fault(faults, id);

    if (fault == NULL) {
        return false;
    }
    fault->is_off = !is_on;
    return true;
}
