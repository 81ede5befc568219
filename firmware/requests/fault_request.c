/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/requests/fault_request.h"

#include <string.h>

#include "nvmeof/wire/cqe.h"

enum { STATUS_MAX = 0x7ff }; /* status code type and status code */

/* Members that hold numbers with an upper limit. @return false: one exceeds it
 */
static bool read_limited(const struct json_args *args, const char *key,
                         uint64_t max, uint64_t otherwise, uint64_t *value)
{
    *value = json_get_number(args, key, otherwise);
    return *value <= max || *value == otherwise;
}

/* A member that is a number, or is absent and then means any. */
static bool read_or_any(const struct json_args *args, const char *key,
                        uint64_t max, int64_t *value)
{
    uint64_t number;

    if (!read_limited(args, key, max, UINT64_MAX, &number)) {
        return false;
    }
    *value = number == UINT64_MAX ? NVMF_FAULT_ANY : (int64_t)number;
    return true;
}

static bool read_action(const struct json_args *args, struct nvmf_fault *fault)
{
    const char *action = json_get_string(args, "do", "");
    uint64_t status;

    if (strcmp(action, "drop") == 0) {
        fault->action = NVMF_FAULT_DROP;
        return true;
    }
    if (strcmp(action, "delay") == 0) {
        fault->action = NVMF_FAULT_DELAY;
        fault->delay_us = json_get_number(args, "delay-us", 0);
        return fault->delay_us != 0 && fault->delay_us <= UINT32_MAX;
    }
    fault->action = NVMF_FAULT_STATUS;
    if (!read_limited(args, "status", STATUS_MAX | NVME_STATUS_DNR, 0,
                      &status) ||
        (status & ~(uint64_t)(STATUS_MAX | NVME_STATUS_DNR)) != 0) {
        return false;
    }
    fault->status = (uint16_t)status;
    return strcmp(action, "status") == 0 && (status & STATUS_MAX) != 0;
}

/* @param kind  enum nvmf_fault_queue */
static bool read_queue(const struct json_args *args, uint8_t *kind,
                       uint16_t *number)
{
    const char *queue = json_get_string(args, "queue", "any");
    uint64_t qid;

    if (!read_limited(args, "qid", UINT16_MAX, UINT64_MAX, &qid)) {
        return false;
    }
    if (qid != UINT64_MAX) {
        *kind = NVMF_FAULT_QID;
        *number = (uint16_t)qid;
        return true;
    }
    *kind = strcmp(queue, "admin") == 0 ? NVMF_FAULT_ADMIN_QUEUE
            : strcmp(queue, "io") == 0  ? NVMF_FAULT_IO_QUEUE
                                        : NVMF_FAULT_ANY_QUEUE;
    return *kind != NVMF_FAULT_ANY_QUEUE || strcmp(queue, "any") == 0;
}

static bool read_match(const struct json_args *args, struct nvmf_fault *fault)
{
    int64_t opcode, cntlid;

    fault->has_lba = json_find(args, "first-lba") != NULL;
    fault->first_lba = json_get_number(args, "first-lba", 0);
    fault->last_lba = json_get_number(args, "last-lba", UINT64_MAX);
    if (!read_or_any(args, "opcode", UINT8_MAX, &opcode) ||
        !read_or_any(args, "controller", UINT16_MAX, &cntlid) ||
        !read_or_any(args, "nsid", UINT32_MAX, &fault->nsid)) {
        return false;
    }
    fault->opcode = (int32_t)opcode;
    fault->cntlid = (int32_t)cntlid;
    return read_queue(args, &fault->queue, &fault->qid);
}

static bool read_fault_trigger(const struct json_args *args,
                               struct fault_trigger *trigger)
{
    uint64_t nth, every, after, times;

    if (!read_limited(args, "nth", UINT32_MAX, 0, &nth) ||
        !read_limited(args, "every", UINT32_MAX, 0, &every) ||
        !read_limited(args, "after", UINT32_MAX, 0, &after) ||
        !read_limited(args, "times", UINT32_MAX, 0, &times) ||
        !read_limited(args, "chance", FAULT_CHANCE_ALWAYS, FAULT_CHANCE_ALWAYS,
                      &trigger->chance)) {
        return false;
    }
    trigger->nth = (uint32_t)nth;
    trigger->every = (uint32_t)every;
    trigger->after = (uint32_t)after;
    trigger->times = (uint32_t)times;
    trigger->random = json_get_number(args, "seed", 1);
    return true;
}

/* ---- Rules for PDUs. */

static bool read_pdu_action(const struct json_args *args,
                            struct nvme_tcp_fault *fault)
{
    static const char *const actions[NVME_TCP_FAULT_ACTIONS] = {
        [NVME_TCP_FAULT_HEADER_DIGEST] = "header-digest",
        [NVME_TCP_FAULT_DATA_DIGEST] = "data-digest",
        [NVME_TCP_FAULT_RESET] = "reset",
    };
    const char *action = json_get_string(args, "do", "");

    for (uint8_t i = 0; i < NVME_TCP_FAULT_ACTIONS; i++) {
        if (strcmp(action, actions[i]) == 0) {
            fault->action = i;
            return true;
        }
    }
    return false;
}

static bool read_pdu_match(const struct json_args *args,
                           struct nvme_tcp_fault *fault)
{
    enum { IN = 1, OUT = 2, BOTH = IN | OUT };
    uint64_t directions;
    int64_t type;

    if (!read_or_any(args, "type", UINT8_MAX, &type) ||
        !read_limited(args, "directions", BOTH, BOTH, &directions) ||
        directions == 0) {
        return false;
    }
    fault->type = (int16_t)type;
    fault->is_in = (directions & IN) != 0;
    fault->is_out = (directions & OUT) != 0;
    return read_queue(args, &fault->queue, &fault->qid);
}

/* ---- Both kinds. */

bool fault_request_read_id(const struct json_args *args, uint32_t *id)
{
    uint64_t number;

    if (!read_limited(args, "rule", UINT32_MAX, 0, &number) || number == 0) {
        return false;
    }
    *id = (uint32_t)number;
    return true;
}

bool fault_request_read(const struct json_args *args,
                        struct fault_request *rule)
{
    const char *place = json_get_string(args, "place", "nvme");
    uint32_t id;

    memset(rule, 0, sizeof(*rule));
    rule->is_pdu = strcmp(place, "pdu") == 0;
    if (!fault_request_read_id(args, &id) ||
        (!rule->is_pdu && strcmp(place, "nvme") != 0)) {
        return false;
    }
    if (rule->is_pdu) {
        rule->pdu.id = id;
        return read_pdu_action(args, &rule->pdu) &&
               read_pdu_match(args, &rule->pdu) &&
               read_fault_trigger(args, &rule->pdu.trigger);
    }
    rule->nvme.id = id;
    return read_action(args, &rule->nvme) && read_match(args, &rule->nvme) &&
           read_fault_trigger(args, &rule->nvme.trigger);
}
